//! The agent: a model, and the middleware before it.

mod builder;

use std::sync::Arc;

use prowess::{Message, Role};

use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Request, Turn},
    middleware::{Middleware, Next},
    model::{ChatResponse, Model, StopReason, TokenUsage},
    session::Session,
};

pub use self::builder::AgentBuilder;

/// A model, and the middleware before it. It stores no conversation, and can serve many at once.
///
/// [`builder`](Self::builder) makes a useful one of a model and skills; [`new`](Self::new) is the
/// model alone, for middleware in an order of one's own. What is asked is awaited in a `tokio`
/// runtime that has its timers enabled.
#[derive(Debug, Clone)]
pub struct Agent {
    model: Arc<dyn Model>,
    system: String,
    max_output: Option<usize>,
    middleware: Arc<[Arc<dyn Middleware>]>,
}

/// The answer of an agent to a request.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentAnswer {
    /// The final message of the model.
    pub message: Message,
    /// The reason it ended.
    pub stop: StopReason,
    /// The token usage of all its steps.
    pub spent: TokenUsage,
    /// The number of requests to the model.
    pub steps: usize,
}

/// The result of a call that was interrupted.
const UNKNOWN: &str = "This call was interrupted. It may or may not have taken effect; check \
                       before calling it again.";
/// The result of a call that never began.
const UNDONE: &str = "This call was not made: the user interrupted.";

impl Agent {
    /// Begins an agent with skills, tools and safe defaults.
    pub fn builder(model: Arc<dyn Model>) -> AgentBuilder {
        AgentBuilder::new(model)
    }

    /// Creates an agent without middleware: the model alone.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model, system: String::new(), max_output: None, middleware: Arc::new([]) }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn with_system(self, system: impl Into<String>) -> Self {
        Self { system: system.into(), ..self }
    }

    /// Limits each reply of the model to this many tokens; the default is the provider's.
    #[must_use]
    pub fn with_max_output(self, tokens: usize) -> Self {
        Self { max_output: Some(tokens), ..self }
    }

    /// Adds a middleware after those already added: the first one is the outermost.
    #[must_use]
    pub fn with(self, middleware: impl Middleware + 'static) -> Self {
        self.with_shared(Arc::new(middleware))
    }

    /// Like [`with`](Self::with), for a middleware that is shared with others.
    #[must_use]
    pub fn with_shared(self, middleware: Arc<dyn Middleware>) -> Self {
        Self { middleware: self.middleware.iter().cloned().chain([middleware]).collect(), ..self }
    }

    /// Returns the model.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// Sends a request and returns the answer. Dropping the future cancels the turn; everything
    /// said until then stays in the session. Turns of one session wait for each other.
    pub async fn ask(
        &self,
        session: &Session,
        prompt: impl Into<String>,
    ) -> Result<AgentAnswer, TurnError> {
        let _turn = session.begin_turn().await;
        // A new request means that the calls left open are no longer wanted.
        for (call, has_begun) in session.open_calls() {
            let text = if has_begun { UNKNOWN } else { UNDONE };
            session.push(Message { call_id: Some(call.id), ..Message::new(Role::Tool, text) })?;
        }
        let prompt = prompt.into();
        session.push(Message::new(Role::User, &*prompt))?;
        self.run_turn(session, prompt).await
    }

    /// Continues an interrupted session; returns `None` if it had ended. Calls that had begun are
    /// not repeated: the model is told that their outcome is unknown.
    pub async fn resume(&self, session: &Session) -> Result<Option<AgentAnswer>, TurnError> {
        let _turn = session.begin_turn().await;
        for (call, _) in session.open_calls().into_iter().filter(|it| it.1) {
            let message = Message { call_id: Some(call.id), ..Message::new(Role::Tool, UNKNOWN) };
            session.push(message)?;
        }
        let messages = session.messages();
        let is_over = match messages.last() {
            Some(last) => last.role == Role::Assistant && last.calls.is_empty(),
            None => true,
        };
        if is_over {
            return Ok(None);
        }
        let prompt = prowess::request(&messages).map(|it| it.content.clone());
        self.run_turn(session, prompt.unwrap_or_default()).await.map(Some)
    }

    async fn run_turn(&self, session: &Session, prompt: String) -> Result<AgentAnswer, TurnError> {
        let turn = Arc::new(Turn::new(session.clone(), self.middleware.clone()));
        turn.note(EventKind::Began { prompt });
        let mut ending = TurnGuard { turn: turn.clone(), answer: None, error: None };
        let mut request = Request::new(turn.clone(), self.system.clone());
        request.max_output = self.max_output;
        let next = Next { middleware: &self.middleware, model: &*self.model };
        let answer = match next.reply(request).await {
            Ok(reply) => self.answer(&turn, reply),
            Err(error) => Err(error),
        };
        match &answer {
            Ok(answer) => ending.answer = Some(answer.message.content.clone()),
            Err(error) => ending.error = Some(error.to_string()),
        }
        answer
    }

    fn answer(&self, turn: &Turn, reply: ChatResponse) -> Result<AgentAnswer, TurnError> {
        turn.session.push(reply.message.clone())?;
        Ok(AgentAnswer {
            message: reply.message,
            stop: reply.stop,
            spent: turn.spent(),
            steps: turn.steps(),
        })
    }
}

/// Records the end of a turn when it is dropped, for whatever reason the turn ends.
struct TurnGuard {
    turn: Arc<Turn>,
    answer: Option<String>,
    error: Option<String>,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let (spent, took) = (self.turn.spent(), self.turn.began().elapsed());
        let (answer, mut error) = (self.answer.take(), self.error.take());
        if answer.is_none() && error.is_none() {
            error = Some("cancelled".to_owned());
        }
        self.turn.note(EventKind::Ended { answer, error, spent, took });
    }
}
