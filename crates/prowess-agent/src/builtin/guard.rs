//! The guard: rules about requests, calls and replies, always or while a skill is active.

use std::{fmt, sync::Arc};

use prowess::{Call, Role};
use prowess_runtime::{
    Outcome, OutcomeStatus,
    approval::{Approver, Question},
    policy::fits,
};

use super::{
    approval::{ask, question},
    last::Last,
};
use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Request, Turn},
    middleware::{CallFuture, Middleware, Next, NextCall, ResponseFuture},
    model::ChatResponse,
};

/// Checks requests, calls and replies against rules.
///
/// A denial takes precedence over any question. A call that is denied or not approved is an outcome
/// that the model receives. A request or reply is a [`TurnError::Refused`] and is removed from the
/// conversation; parts of a reply that were already streamed cannot be taken back. In any position,
/// it checks a request right before the model receives it, and every reply.
///
/// ```
/// # use std::sync::Arc;
/// use prowess_agent::{Agent, Guard, ScriptedModel, When};
/// use prowess_runtime::DenyAll;
///
/// let guard = Guard::new(Arc::new(DenyAll))
///     .asks(When::calls("execute_*").while_active("deploy-*"))
///     .denies(When::calls("http_request").while_active("untrusted"))
///     .denies(When::replies(|text| text.contains("PRIVATE KEY").then(|| "holds a key".into())));
/// let agent = Agent::new(Arc::new(ScriptedModel::new())).with(guard);
/// ```
#[derive(Debug, Clone)]
pub struct Guard {
    approver: Arc<dyn Approver>,
    asks: Vec<When>,
    denies: Vec<When>,
}

/// The condition of a rule of a [`Guard`].
#[derive(Debug, Clone)]
pub struct When {
    about: About,
    skill: Option<String>,
}

#[derive(Clone)]
enum About {
    Calls(String),
    Requests(Scan),
    Replies(Scan),
}

/// Scans a text, and returns the fault in it, if any.
type Scan = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The subject of the rules.
#[derive(Clone, Copy)]
enum GuardedText<'a> {
    Call(&'a Call),
    Request(&'a str),
    Reply(&'a str),
}

impl Guard {
    /// Creates a guard without rules.
    pub fn new(approver: Arc<dyn Approver>) -> Self {
        Self { approver, asks: Vec::new(), denies: Vec::new() }
    }

    /// Asks before this.
    #[must_use]
    pub fn asks(mut self, when: When) -> Self {
        self.asks.push(when);
        self
    }

    /// Denies this.
    #[must_use]
    pub fn denies(mut self, when: When) -> Self {
        self.denies.push(when);
        self
    }
}

impl When {
    /// A call of a tool whose name matches, with `*` and `?`.
    pub fn calls(tool: impl Into<String>) -> Self {
        Self { about: About::Calls(tool.into()), skill: None }
    }

    /// A fault that is found in a user's request, in words that follow “it”.
    pub fn requests(scan: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { about: About::Requests(Arc::new(scan)), skill: None }
    }

    /// A fault that is found in the model's reply, in words that follow “it”.
    pub fn replies(scan: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { about: About::Replies(Arc::new(scan)), skill: None }
    }

    /// Restricts it to while a skill [is active](prowess_runtime::skill::ActiveSkills) whose name
    /// matches, with `*` and `?`.
    #[must_use]
    pub fn while_active(self, skill: impl Into<String>) -> Self {
        Self { skill: Some(skill.into()), ..self }
    }

    /// Returns the reason the condition is met, if it is.
    fn why(&self, turn: &Turn, seen: GuardedText<'_>) -> Option<String> {
        let because = match &self.skill {
            Some(pattern) => {
                let skill = turn.active().into_iter().find(|it| fits(pattern, it))?;
                format!("while `{skill}` is active")
            }
            None => "a rule says so".to_owned(),
        };
        let found = match (&self.about, seen) {
            (About::Calls(tool), GuardedText::Call(call)) => {
                return fits(tool, &call.name).then_some(because);
            }
            (About::Requests(scan), GuardedText::Request(text)) => scan(text)?,
            (About::Replies(scan), GuardedText::Reply(text)) => scan(text)?,
            _ => return None,
        };
        Some(format!("it {found}, {because}"))
    }
}

impl Middleware for Guard {
    fn name(&self) -> &str {
        "guard"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        self.pass_on(request, next)
    }

    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            match self.judge(turn, GuardedText::Call(&call)).await {
                Ok(()) => next.call(call).await,
                Err(refused) => *refused,
            }
        })
    }
}

impl Last for Guard {
    fn at_last<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(self.reply(request, next))
    }
}

impl Guard {
    async fn reply(&self, request: Request, next: Next<'_>) -> Result<ChatResponse, TurnError> {
        let turn = request.turn.clone();
        let asked = prowess::request(&request.prompt.history).map(|it| it.content.clone());
        // Later steps are about the same request.
        if let Some(asked) = asked.filter(|_| turn.steps() == 0)
            && let Err(refused) = self.judge(&turn, GuardedText::Request(&asked)).await
        {
            let mut messages = turn.session.messages();
            if messages.pop_if(|it| it.role == Role::User).is_some() {
                turn.session.compact(messages)?;
            }
            return Err(refusal(*refused));
        }
        let reply = next.reply(request).await?;
        match self.judge(&turn, GuardedText::Reply(&reply.message.content)).await {
            Ok(()) => Ok(reply),
            Err(refused) => Err(refusal(*refused)),
        }
    }

    async fn judge(&self, turn: &Turn, seen: GuardedText<'_>) -> Result<(), Box<Outcome>> {
        if let Some(why) = self.denies.iter().find_map(|it| it.why(turn, seen)) {
            let message = format!("may not {} ({why})", seen.question(String::new()).what);
            turn.note(EventKind::Warned { message: message.clone() });
            return Err(Box::new(Outcome::bad(OutcomeStatus::Refused, message)));
        }
        match self.asks.iter().find_map(|it| it.why(turn, seen)) {
            Some(why) => ask(turn, &*self.approver, seen.question(why)).await,
            None => Ok(()),
        }
    }
}

impl GuardedText<'_> {
    fn question(self, why: String) -> Question {
        let (what, text) = match self {
            Self::Call(call) => return question(call, why),
            Self::Request(text) => ("tell the model what was asked", text),
            Self::Reply(text) => ("take what the model replied", text),
        };
        let (what, content) = (what.to_owned(), Some(text.to_owned()));
        Question { what, why, content, ..Question::default() }
    }
}

impl fmt::Debug for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls(tool) => f.debug_tuple("Calls").field(tool).finish(),
            Self::Requests(_) => f.write_str("Requests"),
            Self::Replies(_) => f.write_str("Replies"),
        }
    }
}

fn refusal(outcome: Outcome) -> TurnError {
    TurnError::Refused { message: outcome.message.unwrap_or_default() }
}
