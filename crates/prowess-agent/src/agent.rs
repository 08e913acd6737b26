//! The agent: a model, and the middleware before it.

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

/// A model, and the middleware before it. It holds no conversation, and can have many at once.
#[derive(Debug, Clone)]
pub struct Agent {
    model: Arc<dyn Model>,
    system: String,
    max_output: Option<usize>,
    middleware: Arc<[Arc<dyn Middleware>]>,
}

/// What an agent answers.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentAnswer {
    /// What the model said in the end.
    pub message: Message,
    /// Why it ended.
    pub stop: StopReason,
    /// What all its steps took.
    pub spent: TokenUsage,
    /// How often the model was asked.
    pub steps: usize,
}

/// What is told of a call that was broken off.
const UNKNOWN: &str = "This call was interrupted. It may or may not have taken effect; check \
                       before calling it again.";
/// What is told of a call that never began.
const UNDONE: &str = "This call was not made: the user interrupted.";

impl Agent {
    /// Begins with no middleware: the model alone.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model, system: String::new(), max_output: None, middleware: Arc::new([]) }
    }

    /// Tells the model this before anything else.
    #[must_use]
    pub fn with_system(self, system: impl Into<String>) -> Self {
        Self { system: system.into(), ..self }
    }

    /// Lets the model reply with so many tokens at once; else with what its provider has for usual.
    #[must_use]
    pub fn with_max_output(self, tokens: usize) -> Self {
        Self { max_output: Some(tokens), ..self }
    }

    /// Adds a middleware behind those that are there: the first one is the outermost.
    #[must_use]
    pub fn with(self, middleware: impl Middleware + 'static) -> Self {
        self.with_shared(Arc::new(middleware))
    }

    /// Does the same with a middleware that somebody else holds too.
    #[must_use]
    pub fn with_shared(self, middleware: Arc<dyn Middleware>) -> Self {
        Self { middleware: self.middleware.iter().cloned().chain([middleware]).collect(), ..self }
    }

    /// The model at the end.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.model
    }

    /// Asks for something. Dropping the future cancels it; what was said until then stays. Turns of
    /// one session wait for each other.
    pub async fn ask(
        &self,
        session: &Session,
        prompt: impl Into<String>,
    ) -> Result<AgentAnswer, TurnError> {
        let _turn = session.begin_turn().await;
        // Whoever says something new does not want what was left open.
        for (call, has_begun) in session.open_calls() {
            let text = if has_begun { UNKNOWN } else { UNDONE };
            session.push(Message { call_id: Some(call.id), ..Message::new(Role::Tool, text) })?;
        }
        let prompt = prompt.into();
        session.push(Message::new(Role::User, &*prompt))?;
        self.go_on(session, prompt).await
    }

    /// Goes on where a session was broken off; nothing if it had come to an end. What had begun
    /// is not done again: the model is told that it is not known how it ended.
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
        self.go_on(session, prompt.unwrap_or_default()).await.map(Some)
    }

    async fn go_on(&self, session: &Session, prompt: String) -> Result<AgentAnswer, TurnError> {
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

/// Notes that a turn has ended when it is dropped, however that comes about.
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
