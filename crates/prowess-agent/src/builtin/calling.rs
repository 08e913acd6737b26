//! Tool calling: runs the model's calls until it makes no more.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use futures_util::future::join_all;
use prowess::{Call, Message, Role, did_you_mean, invisible, nearest, without_middle};
use prowess_runtime::{
    Action, Outcome, OutcomeStatus, Toolbox,
    text::{strict_json, strip_invisible},
    toolbox::PlannedCall,
};
use serde_json::{Value as Json, json};

use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Request, Turn, is_empty},
    middleware::{CallFuture, Middleware, Next, NextCall, ResponseFuture},
    model::{ChatResponse, IS_ERROR, StopReason},
    session::SessionError,
};

/// Offers the tools of a toolbox, and runs the model's calls. The model receives every outcome,
/// good or bad.
///
/// In the last step the model is told that there is no further one, so that it answers with what it
/// has. A tool that was not offered is not called, even if the toolbox has it.
#[derive(Debug)]
pub struct ToolLoop {
    /// The tools, and the authorizer before them. Tools of other middleware pass the same
    /// authorizer.
    pub toolbox: Arc<Toolbox>,
    /// The maximum number of requests to the model in a turn.
    pub max_steps: usize,
    /// The maximum number of calls per reply; further ones are answered with an error.
    pub max_calls: usize,
    /// The maximum size of a result in bytes.
    pub max_result: usize,
    /// The tools whose results are never cut: a rule missing from instructions would be broken.
    pub whole: Vec<String>,
}

/// The text appended to the last result when no further call is possible.
const LAST: &str = "[That was the last call of this turn. Answer now with what is known, and say \
                    what is left undone.]";
/// The size in bytes of the note that replaces a cut.
const MARK: usize = 50;
/// The result of a call that was never made, and whose tool is not available yet.
const UNMADE: &str = "This call was not made: the agent was interrupted. Call it again if it is \
                      still needed.";

impl ToolLoop {
    /// Allows 50 steps, 64 calls per step, and 32 KiB per result.
    pub fn new(toolbox: Arc<Toolbox>) -> Self {
        let whole = vec!["use_skill".to_owned()];
        Self { toolbox, max_steps: 50, max_calls: 64, max_result: 32 * 1024, whole }
    }
}

impl Middleware for ToolLoop {
    fn name(&self) -> &str {
        "calling"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(self.reply(request, next))
    }
}

impl ToolLoop {
    async fn reply(&self, mut request: Request, next: Next<'_>) -> Result<ChatResponse, TurnError> {
        let turn = request.turn.clone();
        for tool in self.toolbox.tools() {
            request.offer(tool.clone());
        }
        turn.offer(&request.tools);
        self.catch_up(&turn).await?;
        // Each step sets its own, longer history.
        request.prompt.history = Arc::default();
        let (mut was_empty, mut step) = (false, 0);
        while step < self.max_steps {
            step += 1;
            let mut history = turn.session.history();
            if step == self.max_steps
                && history.last().is_some_and(|it| it.role == Role::Tool)
                && let Some(last) = Arc::make_mut(&mut history).last_mut()
            {
                last.content = format!("{}\n\n{LAST}", last.content);
            }
            let mut asked = request.clone();
            asked.prompt.history = history;
            asked.skills_in_history = turn.skills_in_history();
            // The prompt fitted before does not include what was said since.
            asked.fitted = None;
            let mut reply = next.reply(asked).await?;
            if reply.stop == StopReason::Filtered {
                reply.message.calls.clear();
            }
            // Some models occasionally reply with nothing, but answer when asked again.
            if is_empty(&reply.message) && reply.stop == StopReason::Done && !was_empty {
                was_empty = true;
                // Asking again is not counted as a step.
                step -= 1;
                turn.note(EventKind::Warned { message: "the model returned nothing".to_owned() });
                continue;
            }
            if reply.message.calls.is_empty() {
                return Ok(reply);
            }
            if step == self.max_steps {
                break;
            }
            let message = with_unique_ids(reply.message, &turn);
            let calls = message.calls.clone();
            turn.session.push(message)?;
            self.call_all(&turn, &calls, reply.stop).await?;
        }
        Err(TurnError::Steps { steps: self.max_steps })
    }

    /// Makes the calls that were pending when a session was interrupted.
    async fn catch_up(&self, turn: &Arc<Turn>) -> Result<(), SessionError> {
        let open = turn.session.open_calls().into_iter().map(|it| it.0);
        let (known, other): (Vec<Call>, Vec<Call>) =
            open.partition(|it| turn.tool(&it.name).is_some());
        // A middleware further behind may offer it, but has not run yet.
        for call in other {
            turn.session
                .push(Message { call_id: Some(call.id), ..Message::new(Role::Tool, UNMADE) })?;
        }
        // Whether they had been cut off is no longer known.
        self.call_all(turn, &known, StopReason::Length).await
    }

    /// Makes these calls, in order; those that only read run concurrently.
    async fn call_all(
        &self,
        turn: &Arc<Turn>,
        calls: &[Call],
        stop: StopReason,
    ) -> Result<(), SessionError> {
        let (calls, over) = calls.split_at(calls.len().min(self.max_calls));
        let mut reads = Vec::new();
        for call in calls {
            // Planned after all calls before it that change something, so that it sees their changes.
            let planned = turn.within(self.plan(turn, call, stop)).await;
            if planned.as_ref().is_ok_and(only_looks) {
                reads.push((call, planned));
                continue;
            }
            self.call_together(turn, mem::take(&mut reads), stop).await?;
            self.call(turn, call, planned, stop).await?;
        }
        self.call_together(turn, reads, stop).await?;
        for call in over {
            let (call_id, most) = (Some(call.id.clone()), self.max_calls);
            let told = format!(
                "This call was not made: there were too many calls in one reply. Make at most {most}."
            );
            turn.session.push(Message { call_id, ..Message::new(Role::Tool, told) })?;
        }
        if !over.is_empty() {
            let message = format!("{} calls were skipped: too many in one reply", over.len());
            turn.note(EventKind::Warned { message });
        }
        Ok(())
    }

    /// Makes calls that do not depend on each other, concurrently.
    async fn call_together(
        &self,
        turn: &Arc<Turn>,
        calls: Vec<(&Call, Plan)>,
        stop: StopReason,
    ) -> Result<(), SessionError> {
        let calls = calls.into_iter().map(|(call, planned)| self.call(turn, call, planned, stop));
        join_all(calls).await.into_iter().collect()
    }

    async fn call(
        &self,
        turn: &Arc<Turn>,
        call: &Call,
        planned: Plan,
        stop: StopReason,
    ) -> Result<(), SessionError> {
        let start = Instant::now();
        turn.session.begin(call)?;
        turn.note(EventKind::Called {
            id: call.id.clone(),
            tool: call.name.clone(),
            input: call.arguments.clone(),
            action: planned.as_ref().ok().map(PlannedCall::describe),
            only_reads: planned.as_ref().map_or(true, |it| it.action.only_reads()),
        });
        let tool = turn.tool(&call.name);
        let planned = Mutex::new(Some(planned));
        let last = |made: Call| -> CallFuture<'_> {
            let planned = planned.lock().unwrap_or_else(PoisonError::into_inner).take();
            // A middleware may have changed the call, or make it a second time.
            let planned = planned.filter(|_| made == *call);
            Box::pin(self.answer(turn, planned, made, stop))
        };
        let next =
            NextCall { middleware: turn.middleware(), turn, tool: tool.as_ref(), last: &last };
        let outcome = turn.within(next.call(call.clone())).await;
        let most = if self.whole.contains(&call.name) { usize::MAX } else { self.max_result };
        let is_skill_text = tool.as_ref().is_some_and(|it| it.is_skill_text(&outcome));
        let text = outcome_text(&without_invisible(turn, call, &outcome), most);
        let marker = turn.session.marker();
        let text = match is_skill_text {
            true => marker.fence(&text),
            // A middleware disclosed a skill.
            false if marker.is_fenced(&text) => text,
            // Files and programs are untrusted too, and a model may repeat the marker's code
            // itself.
            false => marker.defuse(&text).into_owned(),
        };
        let mut result = Message::new(Role::Tool, text);
        if !outcome.is_ok() {
            result.rest.insert(IS_ERROR.to_owned(), true.into());
        }
        turn.session.push(Message { call_id: Some(call.id.clone()), ..result })?;
        turn.note(EventKind::Returned {
            id: call.id.clone(),
            tool: call.name.clone(),
            outcome: Box::new(outcome),
            took: start.elapsed(),
        });
        Ok(())
    }

    async fn answer(
        &self,
        turn: &Turn,
        planned: Option<Plan>,
        call: Call,
        stop: StopReason,
    ) -> Outcome {
        let planned = match planned {
            Some(planned) => planned,
            None => self.plan(turn, &call, stop).await,
        };
        match planned {
            Ok(planned) => self.toolbox.call_planned(planned).await,
            Err(outcome) => *outcome,
        }
    }

    /// Reads the input of a call, and asks its tool what the call would do.
    async fn plan(&self, turn: &Turn, call: &Call, stop: StopReason) -> Plan {
        let Some(tool) = turn.tool(&call.name) else {
            return Err(Box::new(unknown_tool(&call.name, &turn.tools())));
        };
        match input(call) {
            // A call that was cut off before its input began has none.
            Ok(_) if stop == StopReason::Length && call.arguments.trim().is_empty() => {
                Err(Box::new(cut_off_outcome()))
            }
            Ok(input) => self.toolbox.plan(&tool, input).await,
            Err(_) if stop == StopReason::Length => Err(Box::new(cut_off_outcome())),
            Err(error) => {
                let message = format!("the input is not JSON: {error}");
                let outcome = Outcome::bad(OutcomeStatus::Invalid, message);
                Err(Box::new(outcome.hint("call it again with JSON")))
            }
        }
    }
}

/// A call that can be made, or the outcome of one that cannot.
type Plan = Result<PlannedCall, Box<Outcome>>;

/// Returns an outcome without invisible characters, and warns if there were some.
fn without_invisible(turn: &Turn, call: &Call, outcome: &Outcome) -> Outcome {
    let mut clean = outcome.clone();
    let mut before = 0;
    if let Some(output) = &mut clean.output {
        before += count_invisible(output);
        strip_invisible(output);
    }
    let captured = [&mut clean.stdout, &mut clean.stderr].into_iter().flatten();
    let texts = [&mut clean.message, &mut clean.hint, &mut clean.difference].into_iter().flatten();
    for text in captured.map(|it| &mut it.text).chain(texts).chain(&mut clean.denied) {
        before += invisible(text);
        *text = prowess::without_invisible(text).into_owned();
    }
    if before > 0 {
        let characters = if before == 1 { "character was" } else { "characters were" };
        let message =
            format!("{before} invisible {characters} left out of what `{}` returned", call.name);
        turn.note(EventKind::Warned { message });
    }
    clean
}

/// Returns the number of invisible characters in the texts of a value.
fn count_invisible(value: &Json) -> usize {
    match value {
        Json::String(text) => invisible(text),
        Json::Array(values) => values.iter().map(count_invisible).sum(),
        Json::Object(values) => values.values().map(count_invisible).sum(),
        _ => 0,
    }
}

/// Whether a call changes nothing anywhere. Activating a skill does not count: of two such calls
/// the first must disclose it, so their order matters.
fn only_looks(PlannedCall { action, .. }: &PlannedCall) -> bool {
    action.only_looks() && !matches!(action, Action::Disclose(_))
}

/// Returns the input of a call; empty arguments mean an empty object.
pub(super) fn input(call: &Call) -> Result<Json, serde_json::Error> {
    match call.arguments.trim() {
        "" => Ok(json!({})),
        text => match strict_json(text)? {
            // Some models quote it a second time.
            Json::String(inside) => match strict_json(&inside) {
                Err(error) if !error.is_data() => Ok(json!(inside)),
                input => input,
            },
            input => Ok(input),
        },
    }
}

fn cut_off_outcome() -> Outcome {
    let outcome =
        Outcome::bad(OutcomeStatus::Invalid, "the reply was cut off before the input ended");
    outcome.hint("call it again with a shorter input")
}

fn unknown_tool(name: &str, offered: &[String]) -> Outcome {
    let outcome = Outcome::bad(OutcomeStatus::NotFound, format!("there is no tool `{name}`"));
    let names: Vec<&str> = offered.iter().map(String::as_str).collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => outcome.hint(did_you_mean(near)),
        None if names.is_empty() => outcome.hint("there are no tools"),
        None => outcome.hint(format!("there are {}", names[..names.len().min(20)].join(", "))),
    }
}

/// Returns a message whose calls have ids that are unique in the session.
fn with_unique_ids(mut message: Message, turn: &Turn) -> Message {
    let mut taken: Vec<String> = Vec::new();
    for call in &mut message.calls {
        let is_new = |id: &String| !taken.contains(id) && !turn.session.has_call(id);
        if call.id.is_empty() || !is_new(&call.id) {
            let mut ids = (1..).map(|it| format!("call_{}_{}_{it}", turn.number, turn.steps()));
            call.id = ids.find(is_new).unwrap_or_default();
        }
        taken.push(call.id.clone());
    }
    message
}

/// Returns the text of an outcome for the model: its output on success, else everything known. A
/// long text is cut, and JSON stays valid JSON.
fn outcome_text(outcome: &Outcome, most: usize) -> String {
    let mut told = match (&outcome.output, outcome.is_ok()) {
        (Some(Json::String(text)), true) => return without_middle(text, most).into_owned(),
        (Some(output), true) if outcome.plan.is_none() && outcome.stdout.is_none() => {
            output.clone()
        }
        _ => {
            let mut json = serde_json::to_value(outcome).unwrap_or_default();
            if let Some(json) = json.as_object_mut() {
                json.retain(|key, _| !["duration_ms", "sandbox"].contains(&&**key));
            }
            json
        }
    };
    shorten(&mut told, most);
    told.to_string()
}

/// Cuts the largest parts of a value, until it is hardly longer than `most`.
fn shorten(json: &mut Json, most: usize) {
    let length = json.to_string().len();
    if length <= most {
        return;
    }
    match json {
        // The note that replaces a short text may be longer than the text.
        Json::String(text) if text.len() > 2 * MARK => {
            let most = text.len() * most / length;
            *text = without_middle(text, most).into_owned();
        }
        Json::Array(items) => {
            let (count, mut room) = (items.len(), most);
            let kept = items
                .iter()
                .take_while(|it: &&Json| {
                    let length = it.to_string().len() + 1;
                    room.checked_sub(length).inspect(|it| room = *it).is_some()
                })
                .count()
                .max(1);
            items.truncate(kept);
            items.iter_mut().for_each(|it| shorten(it, most));
            if kept < count {
                items.push(format!("[… {} entries left out …]", count - kept).into());
            }
        }
        Json::Object(fields) => {
            let mut left = length;
            let mut largest: Vec<(usize, &mut Json)> =
                fields.values_mut().map(|it| (it.to_string().len(), it)).collect();
            largest.sort_by_key(|it| std::cmp::Reverse(it.0));
            for (length, field) in largest {
                shorten(field, most.saturating_sub(left - length));
                left = left - length + field.to_string().len();
                if left <= most + MARK {
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_twice_is_refused_also_in_quotes() {
        let read =
            |arguments: &str| input(&Call { arguments: arguments.to_owned(), ..Call::default() });
        assert_eq!(read("").expect("nothing is an object"), json!({}));
        assert_eq!(read(r#""{\"a\": 1}""#).expect("it is JSON"), json!({"a": 1}));
        assert_eq!(read("\"words\"").expect("it is JSON"), json!("words"));
        for twice in [r#"{"a": 1, "a": 2}"#, r#""{\"a\": 1, \"a\": 2}""#] {
            assert!(read(twice).is_err_and(|it| it.to_string().contains("`a` appears twice")));
        }
    }
}
