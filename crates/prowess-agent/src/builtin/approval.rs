//! Approval: asks before a tool is called.

use std::{fmt, sync::Arc};

use prowess::Call;
use prowess_runtime::{
    Action, Outcome, OutcomeStatus, Tool,
    approval::{Approver, ApproverFuture, ApproverReply as Approved, Question},
    toolbox::PlannedCall,
};

use super::calling::input;
use crate::{
    event::EventKind,
    middleware::request::Turn,
    middleware::{CallFuture, Middleware, NextCall},
};

/// Asks an approver before a call: by default, before every call that does more than read.
///
/// This is independent of a toolbox's authorizer, which asks by its policy and remembers approvals.
/// Here a yes counts for one call. A no is an outcome that the model receives. A call with a wrong
/// tool or input is not asked about: it would have no effect.
///
/// ```
/// # use std::sync::Arc;
/// use prowess_agent::{Agent, Approval, ScriptedModel};
/// use prowess_runtime::DenyAll;
///
/// let approval = Approval::new(Arc::new(DenyAll)).before(|call, _| call.name.starts_with("send_"));
/// let agent = Agent::new(Arc::new(ScriptedModel::new())).with(approval);
/// ```
#[derive(Clone)]
pub struct Approval {
    approver: Arc<dyn Approver>,
    before: Arc<Before>,
}

/// Decides whether to ask before a call.
type Before = dyn Fn(&Call, &Action) -> bool + Send + Sync;

/// An approver that reports every answer as an event, wherever it is asked.
///
/// It is for the authorizer of a toolbox, which has no turn. Middleware that asks reports its own
/// events.
#[derive(Debug, Clone)]
pub struct RecordingApprover {
    approver: Arc<dyn Approver>,
}

impl Approval {
    /// Asks before every call that does more than read.
    pub fn new(approver: Arc<dyn Approver>) -> Self {
        Self { approver, before: Arc::new(|_, action| !action.only_looks()) }
    }

    /// Asks before these calls instead.
    #[must_use]
    pub fn before(self, before: impl Fn(&Call, &Action) -> bool + Send + Sync + 'static) -> Self {
        Self { before: Arc::new(before), ..self }
    }
}

impl Middleware for Approval {
    fn name(&self) -> &str {
        "approval"
    }

    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let action = match next.tool() {
                Some(tool) => action(tool, &call).await,
                None => None,
            };
            let Some(action) = action.filter(|it| (self.before)(&call, it)) else {
                return next.call(call).await;
            };
            let why = "it does more than look".to_owned();
            let what = format!("call `{}` to {}", call.name, action.describe());
            let question = Question { what, ..question(&call, why) };
            match ask(turn, &*self.approver, question).await {
                Ok(()) => next.call(call).await,
                Err(refused) => *refused,
            }
        })
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval").field("approver", &self.approver).finish_non_exhaustive()
    }
}

impl RecordingApprover {
    /// Wraps an approver.
    pub fn new(approver: Arc<dyn Approver>) -> Self {
        Self { approver }
    }
}

impl Approver for RecordingApprover {
    fn who(&self) -> &str {
        self.approver.who()
    }

    fn who_answers(&self, question: &Question) -> &str {
        self.approver.who_answers(question)
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        Box::pin(async move {
            let reply = self.approver.ask(question).await;
            if let Some(turn) = Turn::current() {
                turn.note(approval_event(question, reply, self.who_answers(question)));
            }
            reply
        })
    }
}

/// Returns the action of a call; `None` if it would have no effect.
async fn action(tool: &Arc<dyn Tool>, call: &Call) -> Option<Action> {
    let planned = PlannedCall::new(tool.clone(), input(call).ok()?).await;
    planned.ok().map(|it| it.action)
}

/// Returns the question whether a tool may be called.
pub(super) fn question(call: &Call, why: String) -> Question {
    let what = format!("call `{}`", call.name);
    Question { what, why, content: Some(call.arguments.clone()), ..Question::default() }
}

/// Asks, and reports that as an event; a no is an outcome.
pub(super) async fn ask(
    turn: &Turn,
    approver: &dyn Approver,
    question: Question,
) -> Result<(), Box<Outcome>> {
    let reply = approver.ask(&question).await;
    turn.note(approval_event(&question, reply, approver.who()));
    if reply != Approved::No {
        return Ok(());
    }
    let Question { what, why, .. } = question;
    let message = match approver.who() {
        "nobody" => format!("there is no one to approve: {what} ({why})"),
        who => format!("not approved by {who}: {what} ({why})"),
    };
    Err(Box::new(
        Outcome::bad(OutcomeStatus::Refused, message).hint("do without it, or say what you need"),
    ))
}

fn approval_event(question: &Question, reply: Approved, by: &str) -> EventKind {
    let reply = match reply {
        Approved::No => "no",
        Approved::Once => "once",
        Approved::Session => "session",
        Approved::Always => "always",
    };
    EventKind::Approval {
        what: question.what.clone(),
        why: question.why.clone(),
        reply: reply.to_owned(),
        by: by.to_owned(),
    }
}
