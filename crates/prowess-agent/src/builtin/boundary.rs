//! The error boundary: what breaks down behind it takes nothing with it.

use std::{any::Any, fmt, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use prowess::{Call, Message, Role};
use prowess_runtime::{Outcome, OutcomeStatus};

use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Request, Turn},
    middleware::{CallFuture, Middleware, Next, NextCall, ResponseFuture},
    model::ChatResponse,
    session::SessionError,
};

/// Catches what breaks down in the middleware behind it, in a tool or in a skill. A request gets a reply
/// that says so, a call an outcome that does, and the agent goes on.
///
/// A panic and [`TurnError::Middleware`] are always caught: the fault is in a middleware, and nobody who asked
/// can do anything about it. Every other error says something that whoever asked can act on (a key
/// that is wrong, a limit that is reached) and passes, unless [`catching`](Self::catching) says
/// otherwise.
///
/// ```
/// # use std::sync::Arc;
/// use prowess_agent::{Agent, CatchErrors, ScriptedModel, TurnError};
///
/// // A chat that would rather say that it took too many steps than fail.
/// let boundary = CatchErrors::new().catching(|error| matches!(error, TurnError::Steps { .. }));
/// let agent = Agent::new(Arc::new(ScriptedModel::new())).with(boundary);
/// ```
#[derive(Clone, Default)]
pub struct CatchErrors {
    catches: Option<Arc<Catches>>,
}

/// Whether an error is caught.
type Catches = dyn Fn(&TurnError) -> bool + Send + Sync;

impl CatchErrors {
    /// Catches panics and the faults of middleware.
    pub fn new() -> Self {
        Self::default()
    }

    /// Catches these errors as well. An error of the session is never caught: what would be said could
    /// not be kept.
    #[must_use]
    pub fn catching(self, catches: impl Fn(&TurnError) -> bool + Send + Sync + 'static) -> Self {
        Self { catches: Some(Arc::new(catches)) }
    }
}

impl Middleware for CatchErrors {
    fn name(&self) -> &str {
        "boundary"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(self.reply(request, next))
    }

    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let name = call.name.clone();
            // What breaks down before there is a future is caught as well.
            let called = AssertUnwindSafe(async { next.call(call).await }).catch_unwind().await;
            called.unwrap_or_else(|panic| {
                let message = format!("`{name}` crashed: {}", said(&*panic));
                turn.note(EventKind::Warned { message: message.clone() });
                Outcome::bad(OutcomeStatus::Failed, message)
                    .hint("this is a bug in the tool, not in the input")
            })
        })
    }
}

impl CatchErrors {
    async fn reply(&self, request: Request, next: Next<'_>) -> Result<ChatResponse, TurnError> {
        let turn = request.turn.clone();
        let replied = AssertUnwindSafe(async { next.reply(request).await }).catch_unwind().await;
        let message = match replied {
            Ok(Err(error)) if self.is_caught(&error) => error.to_string(),
            Ok(replied) => return replied,
            Err(panic) => format!("middleware panicked: {}", said(&*panic)),
        };
        turn.note(EventKind::Warned { message: message.clone() });
        close_calls(&turn)?;
        let text = format!("Something went wrong, and there is no answer: {message}");
        Ok(ChatResponse { message: Message::new(Role::Assistant, text), ..ChatResponse::default() })
    }

    fn is_caught(&self, error: &TurnError) -> bool {
        match error {
            TurnError::Middleware { .. } => true,
            TurnError::Session(_) => false,
            error => self.catches.as_ref().is_some_and(|it| it(error)),
        }
    }
}

impl fmt::Debug for CatchErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Boundary").field("catches", &self.catches.is_some()).finish()
    }
}

/// Gives every call that was left open a result: what is said next stands behind it.
fn close_calls(turn: &Turn) -> Result<(), SessionError> {
    for (call, has_begun) in turn.session.open_calls() {
        let text = match has_begun {
            true => "This call was interrupted. It may or may not have taken effect.",
            false => "This call was not made.",
        };
        let result = Message::new(Role::Tool, text);
        turn.session.push(Message { call_id: Some(call.id), ..result })?;
    }
    Ok(())
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(|it| &**it)).unwrap_or("it did not say why")
}
