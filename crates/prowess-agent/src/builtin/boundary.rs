//! The error boundary: a failure behind it does not end the agent.

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

/// Catches failures of the middleware behind it, of a tool or of a skill. A request gets a reply
/// that reports the failure, a call gets such an outcome, and the agent continues.
///
/// A panic and [`TurnError::Middleware`] are always caught: the fault is in a middleware, and the
/// caller cannot do anything about it. Every other error is something the caller can act on (a
/// wrong key, a limit that is reached) and passes, unless [`catching`](Self::catching) says
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

/// Decides whether an error is caught.
type Catches = dyn Fn(&TurnError) -> bool + Send + Sync;

impl CatchErrors {
    /// Catches panics and the faults of middleware.
    pub fn new() -> Self {
        Self::default()
    }

    /// Catches these errors as well. A session error is never caught: the reply about it could not
    /// be saved.
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
            // A panic before there is a future is caught as well.
            let called = AssertUnwindSafe(async { next.call(call).await }).catch_unwind().await;
            called.unwrap_or_else(|panic| {
                let message = format!("`{name}` crashed: {}", panic_message(&*panic));
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
            Err(panic) => format!("middleware panicked: {}", panic_message(&*panic)),
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

/// Adds a result to every open call, so that the next message follows it.
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

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(|it| &**it)).unwrap_or("it did not say why")
}
