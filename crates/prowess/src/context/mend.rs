//! Pairs tool calls with their results.

use std::collections::BTreeMap;

use super::message::{Message, Role};

/// Ensures that every result directly follows the message that calls it, and that every call has
/// its result, because no model accepts one without the other. A result without its call and a call
/// without its result become text. Returns the messages that were changed.
pub(super) fn mend(history: &mut [Message]) -> Vec<usize> {
    let mut changed = Vec::new();
    let mut next = 0;
    while next < history.len() {
        let results = count_results_after(history, next);
        let (caller, others) = history[next..=next + results].split_at_mut(1);
        let caller = &mut caller[0];
        if caller.role == Role::Tool {
            as_text(caller);
            changed.push(next);
        }
        // The calls that wait for their result, by id, with their position among the calls.
        let mut open: BTreeMap<String, usize> =
            caller.calls.iter().enumerate().rev().map(|(at, it)| (it.id.clone(), at)).collect();
        let mut answered = vec![false; caller.calls.len()];
        for result in others.iter_mut() {
            let id = result.call_id.clone().or_else(|| {
                // A result that names no call belongs to the first one that waits.
                let first = answered.iter().position(|it| !it)?;
                Some(caller.calls[first].id.clone())
            });
            match id.as_ref().and_then(|it| open.remove(it)) {
                Some(call) => {
                    answered[call] = true;
                    result.call_id = id;
                }
                None => as_text(result),
            }
        }
        if others.iter().any(|it| it.role != Role::Tool) {
            // Results that became text are moved behind the others, so that those stay with their
            // call.
            others.sort_by_key(|it| it.role != Role::Tool);
            changed.extend(next + 1..=next + results);
        }
        if answered.contains(&false) {
            without_unanswered(caller, &answered);
            changed.push(next);
        }
        next += results + 1;
    }
    changed
}

/// Counts the results that directly follow a message of the model that calls tools.
fn count_results_after(history: &[Message], caller: usize) -> usize {
    let Message { role: Role::Assistant, calls, .. } = &history[caller] else { return 0 };
    if calls.is_empty() {
        return 0;
    }
    history[caller + 1..].iter().take_while(|it| it.role == Role::Tool).count()
}

/// Converts a result without its call to text. It becomes a message of the model, not of a person,
/// so that the output of a tool is never taken for a request.
fn as_text(result: &mut Message) {
    result.role = Role::Assistant;
    result.call_id = None;
    result.parts.clear();
    result.content = format!("[result of a missing call]\n{}", result.content);
}

fn without_unanswered(caller: &mut Message, answered: &[bool]) {
    let calls = std::mem::take(&mut caller.calls);
    for (call, answered) in calls.into_iter().zip(answered) {
        if *answered {
            caller.calls.push(call);
            continue;
        }
        if !caller.content.is_empty() {
            caller.content.push('\n');
        }
        caller.content += &format!("[called `{}` with {}; no result]", call.name, call.arguments);
    }
    caller.parts.clear();
}
