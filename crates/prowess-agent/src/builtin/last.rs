//! Middleware that acts last before the model.

use std::{fmt, sync::Arc};

use crate::{
    middleware::request::Request,
    middleware::{Middleware, Next, ResponseFuture},
};

/// A middleware that acts right before the model in any position, on everything that others added.
pub(super) trait Last: Clone + fmt::Debug + Send + Sync + 'static {
    /// Handles the request there.
    fn at_last<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a>;

    /// Passes the request on, to be handled last.
    fn pass_on<'a>(&self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(next.reply_with(request, Arc::new(AtLast(self.clone()))))
    }
}

#[derive(Debug)]
struct AtLast<L>(L);

impl<L: Last> Middleware for AtLast<L> {
    fn name(&self) -> &str {
        "last"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        self.0.at_last(request, next)
    }
}
