//! Calls with their results, and results with their calls.

use std::collections::BTreeMap;

use super::message::{Message, Role};

/// Makes sure that every result stands right behind the message that calls it, and that every call
/// has its result, because no model takes one without the other. A result without its call and a
/// call without its result become text. Returns which messages were changed.
pub(super) fn mend(history: &mut [Message]) -> Vec<usize> {
    let mut changed = Vec::new();
    let mut next = 0;
    while next < history.len() {
        let results = results_behind(history, next);
        let (caller, others) = history[next..=next + results].split_at_mut(1);
        let caller = &mut caller[0];
        if caller.role == Role::Tool {
            as_text(caller);
            changed.push(next);
        }
        // Those that wait for their result, by id; the number is their place among the calls.
        let mut open: BTreeMap<String, usize> =
            caller.calls.iter().enumerate().rev().map(|(at, it)| (it.id.clone(), at)).collect();
        let mut answered = vec![false; caller.calls.len()];
        for result in others.iter_mut() {
            let id = result.call_id.clone().or_else(|| {
                // A result that names no call belongs to the first that waits.
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
            // What became text goes behind the results, so that they stay with their call.
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

/// How many results stand right behind a message of the model that calls tools.
fn results_behind(history: &[Message], caller: usize) -> usize {
    let Message { role: Role::Assistant, calls, .. } = &history[caller] else { return 0 };
    if calls.is_empty() {
        return 0;
    }
    history[caller + 1..].iter().take_while(|it| it.role == Role::Tool).count()
}

/// A result whose call is not there. It becomes the model's word and not a person's, so that what a
/// tool said is never taken for a request.
fn as_text(result: &mut Message) {
    result.role = Role::Assistant;
    result.call_id = None;
    result.parts.clear();
    result.content = format!("[result of a call that is not there]\n{}", result.content);
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
        caller.content +=
            &format!("[called `{}` with {}; there is no result]", call.name, call.arguments);
    }
    caller.parts.clear();
}
