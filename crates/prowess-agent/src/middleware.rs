//! Middleware: steps between an agent and its model, the first outermost.

pub(crate) mod request;

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use prowess::Call;
use prowess_runtime::{Outcome, Tool};

use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Request, Turn},
    model::{ChatResponse, Model},
};

/// The future of a reply or an error.
pub type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ChatResponse, TurnError>> + Send + 'a>>;
/// The future of the outcome of a call.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A middleware between an agent and its model, and between the model and its tools.
///
/// By default each method passes its input on to the next middleware. A middleware may change what
/// it passes on or returns, call the next one several times, or not at all. An implementer shares
/// no state of one session with another, and stops everything it started when the future is
/// dropped.
pub trait Middleware: Send + Sync + fmt::Debug {
    /// Its name, in one word.
    fn name(&self) -> &str;

    /// Handles a request on its way to the model.
    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        next.reply(request)
    }

    /// Handles a call on its way to a tool.
    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> CallFuture<'a> {
        let _ = turn;
        next.call(call)
    }

    /// Receives an event, raised by any middleware.
    fn note(&self, turn: &Turn, what: &EventKind) {
        let _ = (turn, what);
    }
}

/// The remaining middleware of a request, and the model behind it.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    pub(crate) middleware: &'a [Arc<dyn Middleware>],
    pub(crate) model: &'a dyn Model,
}

impl<'a> Next<'a> {
    /// Passes the request on.
    pub fn reply(self, request: Request) -> ResponseFuture<'a> {
        match self.middleware {
            [first, rest @ ..] => first.model(request, Self { middleware: rest, ..self }),
            [] => Box::pin(request.ask(self.model)),
        }
    }

    /// Passes the request on, with one more middleware behind all others, right before the model. A
    /// middleware that must act last can do so in any position.
    pub async fn reply_with(
        self,
        request: Request,
        last: Arc<dyn Middleware>,
    ) -> Result<ChatResponse, TurnError> {
        let middleware: Vec<Arc<dyn Middleware>> =
            self.middleware.iter().cloned().chain([last]).collect();
        Next { middleware: &middleware, ..self }.reply(request).await
    }

    /// Returns the model.
    pub fn model(&self) -> &'a dyn Model {
        self.model
    }
}

/// The remaining middleware of a call, and the tool behind it.
#[derive(Clone, Copy)]
pub struct NextCall<'a> {
    pub(crate) middleware: &'a [Arc<dyn Middleware>],
    pub(crate) turn: &'a Turn,
    pub(crate) tool: Option<&'a Arc<dyn Tool>>,
    pub(crate) last: &'a (dyn Fn(Call) -> CallFuture<'a> + Send + Sync),
}

impl<'a> NextCall<'a> {
    /// Passes the call on.
    pub fn call(self, call: Call) -> CallFuture<'a> {
        match self.middleware {
            [first, rest @ ..] => first.tool(self.turn, call, Self { middleware: rest, ..self }),
            [] => (self.last)(call),
        }
    }

    /// Returns the tool; `None` if the model called one that was not offered.
    pub fn tool(&self) -> Option<&'a Arc<dyn Tool>> {
        self.tool
    }
}

impl fmt::Debug for NextCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { middleware, tool, .. } = self;
        f.debug_struct("NextCall").field("middleware", middleware).field("tool", tool).finish()
    }
}
