//! Tool calling: what the model calls is called, until it has nothing left to call.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use futures_util::future::join_all;
use prowess::{Call, Message, Prompt, Role};
use prowess_runtime::{Outcome, Status, Tool, Toolbox, strict_json};
use serde_json::{Value as Json, json};

use crate::{
    error::TurnError,
    event::What,
    layer::{Called, Layer, Next, NextCall, Replied},
    model::Reply,
    request::{Request, Turn},
    session::SessionError,
};

/// Offers the tools of a toolbox, and calls what the model calls. Whatever comes of a call, the model
/// hears of it.
#[derive(Debug)]
pub struct Calling {
    /// The tools, and the gate before them. Tools that other layers offer pass the same gate.
    pub toolbox: Arc<Toolbox>,
    /// How often the model is asked at the most before there must be an answer.
    pub max_steps: usize,
    /// How many bytes of a result the model is told.
    pub max_result: usize,
}

impl Calling {
    /// Takes 50 steps at the most, and 32 KiB of a result.
    pub fn new(toolbox: Arc<Toolbox>) -> Self {
        Self { toolbox, max_steps: 50, max_result: 32 * 1024 }
    }
}

impl Layer for Calling {
    fn name(&self) -> &str {
        "calling"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> Replied<'a> {
        Box::pin(self.reply(request, next))
    }
}

impl Calling {
    async fn reply(&self, mut request: Request, next: Next<'_>) -> Result<Reply, TurnError> {
        let turn = request.turn.clone();
        for tool in self.toolbox.tools() {
            request.offer(tool.clone());
        }
        turn.offer(&request.tools);
        // A session that was broken off may have calls that were never made.
        let open: Vec<Call> = turn.session.open_calls().into_iter().map(|it| it.0).collect();
        self.call_all(&turn, &open).await?;
        for _ in 0..self.max_steps {
            let history = turn.session.messages();
            let prompt = Prompt { history, ..request.prompt.clone() };
            let reply = next.reply(Request { prompt, ..request.clone() }).await?;
            if reply.message.calls.is_empty() {
                return Ok(reply);
            }
            let message = numbered(reply.message, &turn);
            let calls = message.calls.clone();
            turn.session.push(message)?;
            self.call_all(&turn, &calls).await?;
        }
        Err(TurnError::Steps { steps: self.max_steps })
    }

    /// Makes these calls, in their order; those that only look, side by side.
    async fn call_all(&self, turn: &Arc<Turn>, calls: &[Call]) -> Result<(), SessionError> {
        let looks = |call: &Call| self.only_looks(turn, call);
        for group in calls.chunk_by(|a, b| looks(a) && looks(b)) {
            let made = join_all(group.iter().map(|it| self.call(turn, it))).await;
            made.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(())
    }

    async fn call(&self, turn: &Arc<Turn>, call: &Call) -> Result<(), SessionError> {
        let start = Instant::now();
        turn.session.begin(call)?;
        turn.note(What::Called {
            id: call.id.clone(),
            tool: call.name.clone(),
            input: call.arguments.clone(),
        });
        let tool = turn.tool(&call.name);
        let last = |call: Call| -> Called<'_> { Box::pin(self.answer(tool.as_ref(), call)) };
        let next = NextCall { layers: turn.layers(), turn, tool: tool.as_ref(), last: &last };
        let outcome = turn.within(next.call(call.clone())).await;
        let content = told(&outcome, self.max_result);
        turn.note(What::Returned {
            id: call.id.clone(),
            tool: call.name.clone(),
            outcome,
            took: start.elapsed(),
        });
        let result = Message::new(Role::Tool, content);
        turn.session.push(Message { call_id: Some(call.id.clone()), ..result })
    }

    async fn answer(&self, tool: Option<&Arc<dyn Tool>>, call: Call) -> Outcome {
        let input = match input(&call) {
            Ok(input) => input,
            Err(error) => {
                let message = format!("the input cannot be taken as JSON: {error}");
                return Outcome::bad(Status::Invalid, message).hint("call it again with JSON");
            }
        };
        match tool {
            Some(tool) => self.toolbox.call_tool(tool, input).await,
            None => self.toolbox.call(&call.name, input).await,
        }
    }

    /// Whether a call changes nothing, wherever.
    fn only_looks(&self, turn: &Turn, call: &Call) -> bool {
        let act = turn.tool(&call.name).zip(input(call).ok()).map(|(it, input)| it.act(&input));
        act.is_some_and(|it| it.is_ok_and(|act| act.only_looks()))
    }
}

/// What a call gives its tool; nothing at all is an empty object.
fn input(call: &Call) -> Result<Json, serde_json::Error> {
    match call.arguments.trim() {
        "" => Ok(json!({})),
        text => strict_json(text),
    }
}

/// A message whose calls can be told from each other, and from all that came before.
fn numbered(mut message: Message, turn: &Turn) -> Message {
    let said = turn.session.messages();
    let mut taken: BTreeSet<&str> =
        said.iter().flat_map(|it| &it.calls).map(|it| &*it.id).collect();
    for (number, call) in message.calls.iter_mut().enumerate() {
        if call.id.is_empty() || taken.contains(&*call.id) {
            call.id = format!("call_{}_{}_{}", turn.number, turn.steps(), number + 1);
        }
        taken.insert(&call.id);
    }
    message
}

/// What the model is told of an outcome: its output where all is well, else all that is known.
fn told(outcome: &Outcome, most: usize) -> String {
    let text = match (&outcome.output, outcome.is_ok()) {
        (Some(Json::String(text)), true) => text.clone(),
        (Some(output), true) if outcome.plan.is_none() && outcome.stdout.is_none() => {
            output.to_string()
        }
        _ => {
            let mut json = serde_json::to_value(outcome).unwrap_or_default();
            if let Some(json) = json.as_object_mut() {
                json.retain(|key, _| !["duration_ms", "sandbox"].contains(&&**key));
            }
            json.to_string()
        }
    };
    shortened(text, most)
}

/// The beginning and the end of a text that is too long.
fn shortened(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let head = text.floor_char_boundary(most / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - most / 3);
    let left_out = tail - head;
    format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head], &text[tail..])
}
