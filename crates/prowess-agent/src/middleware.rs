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

/// A reply, or why there is none, once it is waited for.
pub type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ChatResponse, TurnError>> + Send + 'a>>;
/// What came of a call, once it is waited for.
pub type CallFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A middleware between an agent and its model, and between the model and its tools.
///
/// Each method does nothing unless it is written: what comes in goes on to the next middleware. A middleware may
/// change what goes on or comes back, go on several times, or not at all. It keeps nothing of one
/// session that another could see. Whatever it started ends when the future is dropped.
pub trait Middleware: Send + Sync + fmt::Debug {
    /// What it is called, in one word.
    fn name(&self) -> &str;

    /// A request on its way to the model.
    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        next.reply(request)
    }

    /// A call on its way to a tool.
    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> CallFuture<'a> {
        let _ = turn;
        next.call(call)
    }

    /// Something that happened on the way, in whichever middleware.
    fn note(&self, turn: &Turn, what: &EventKind) {
        let _ = (turn, what);
    }
}

/// The middleware that is still to come, and the model behind it.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    pub(crate) middleware: &'a [Arc<dyn Middleware>],
    pub(crate) model: &'a dyn Model,
}

impl<'a> Next<'a> {
    /// Goes on.
    pub fn reply(self, request: Request) -> ResponseFuture<'a> {
        match self.middleware {
            [first, rest @ ..] => first.model(request, Self { middleware: rest, ..self }),
            [] => Box::pin(request.ask(self.model)),
        }
    }

    /// Goes on, with one more middleware behind all others, right before the model. Whoever must have the
    /// last word has it so, wherever it stands.
    pub async fn reply_with(
        self,
        request: Request,
        last: Arc<dyn Middleware>,
    ) -> Result<ChatResponse, TurnError> {
        let middleware: Vec<Arc<dyn Middleware>> =
            self.middleware.iter().cloned().chain([last]).collect();
        Next { middleware: &middleware, ..self }.reply(request).await
    }

    /// The model at the end.
    pub fn model(&self) -> &'a dyn Model {
        self.model
    }
}

/// The middleware that a call is still to pass, and the tool behind it.
#[derive(Clone, Copy)]
pub struct NextCall<'a> {
    pub(crate) middleware: &'a [Arc<dyn Middleware>],
    pub(crate) turn: &'a Turn,
    pub(crate) tool: Option<&'a Arc<dyn Tool>>,
    pub(crate) last: &'a (dyn Fn(Call) -> CallFuture<'a> + Send + Sync),
}

impl<'a> NextCall<'a> {
    /// Goes on.
    pub fn call(self, call: Call) -> CallFuture<'a> {
        match self.middleware {
            [first, rest @ ..] => first.tool(self.turn, call, Self { middleware: rest, ..self }),
            [] => (self.last)(call),
        }
    }

    /// The tool at the end; nothing if the model calls one that was not offered.
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
