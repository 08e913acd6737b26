//! Whatever the conversation is, the fitted prompt fits, and nothing that matters is lost.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*, sample::select};
use prowess::{
    Call, ContextWindow, Extract, FitError, FitStep, FittedPrompt, Level, Message, Offer, Priority,
    Prompt, Role, Summarise, Tokenizer, fit, history,
};
use serde_json::{Value as Json, json};

/// Generates a text with everything that is difficult to cut.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~\n]{0,60}",
        "([a-z]{1,8}[ .]){0,80}",
        "[技能\u{1F600}é]{0,50}",
        ("[a-z \"\\\\]{1,9}", 0..600_usize).prop_map(|(text, times)| text.repeat(times)),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let id = select(&["a", "b", "c", ""][..]);
    (id, "[a-z_]{1,9}", text()).prop_map(|(id, name, text)| Call {
        id: id.to_owned(),
        name,
        arguments: json!({ "text": text }).to_string(),
        ..Call::default()
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role =
        select(&[Role::System, Role::User, Role::Assistant, Role::Assistant, Role::Tool][..]);
    let id = prop_oneof![Just(None), select(&["a", "b", "c", "d"][..]).prop_map(Some)];
    (role, text(), vec(call(), 0..3), id).prop_map(|(role, content, calls, id)| Message {
        role,
        content,
        calls: if role == Role::Assistant { calls } else { Vec::new() },
        call_id: id.filter(|_| role == Role::Tool).map(str::to_owned),
        ..Message::default()
    })
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let priority = select(&[Priority::Active, Priority::Relevant, Priority::Inactive][..]);
    let offers = vec((priority, text(), text()), 0..5);
    offers.prop_map(|them| {
        let offer = |(number, (priority, full, brief))| Offer {
            name: format!("skill-{number}"),
            description: format!("Does number {number}"),
            priority,
            contents: vec![(Level::Full, full), (Level::Brief, brief)],
        };
        them.into_iter().enumerate().map(offer).collect()
    })
}

fn prompts() -> impl Strategy<Value = Prompt> {
    let parts = ("[a-z \n]{0,80}", "[a-z \n]{0,80}", offers(), vec(message(), 0..40));
    parts.prop_map(|(system, catalog, skills, history)| {
        let tools = vec![json!({ "name": "use_skill" })];
        Prompt { system, catalog, skills, marker: None, tools, history: history.into() }
    })
}

/// A summariser that ignores its budget.
struct Rambling;

impl Summarise for Rambling {
    fn summarise(&self, messages: &[&Message], _budget: usize) -> String {
        "[Summary of 1 earlier messages]\nand so on ".repeat(messages.len() * 50)
    }
}

fn is_summary(message: &Message) -> bool {
    message.rest.get("name") == Some(&json!("summary"))
}

/// Returns the messages of the conversation, without the system prompt.
fn said(fitted: &FittedPrompt) -> &[Message] {
    let has_prompt = fitted.tokens.system > 0;
    &fitted.messages[usize::from(has_prompt)..]
}

/// Checks that every result directly follows its call, and that every call has its result.
fn assert_paired(messages: &[Message]) {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        if message.role == Role::Tool {
            let id = message.call_id.as_deref().unwrap();
            assert!(open.remove(id), "a result without its call: {message:?}");
            continue;
        }
        assert!(open.is_empty(), "without a result: {open:?}");
        open.extend(message.calls.iter().map(|it| it.id.as_str()));
        assert_eq!(open.len(), message.calls.len(), "two calls of one id");
        for call in &message.calls {
            assert!(serde_json::from_str::<Json>(&call.arguments).is_ok(), "{call:?}");
        }
    }
    assert!(open.is_empty(), "without a result: {open:?}");
}

fn check(window: &ContextWindow, prompt: &Prompt, summarise: &dyn Summarise) {
    let fitted: Result<FittedPrompt, FitError> = fit(window, prompt.clone(), summarise);
    assert_eq!(fitted, fit(window, prompt.clone(), summarise));
    let fitted = match fitted {
        Ok(fitted) => fitted,
        Err(error) => return assert!(error.needed.total() > window.tokens, "{error:?}"),
    };
    let total = fitted.tokens.total();
    assert!(total <= window.tokens, "{total} of {}", window.tokens);
    assert_eq!(
        fitted.tokens.history,
        said(&fitted).iter().map(|it| window.count(it)).sum::<usize>()
    );
    assert_eq!(fitted.tokens.tools, window.vocabulary.count(&prompt.tools[0].to_string()));
    let kept = fitted.skills.iter().filter(|it| it.left_out.is_none());
    assert_eq!(fitted.tokens.skills, kept.map(|it| it.tokens).sum::<usize>());
    let all: usize = fitted.messages.iter().map(|it| window.count(it)).sum();
    assert!(all + fitted.tokens.tools <= total, "{all} in {total}");
    assert!(fitted.skills.is_sorted_by_key(|it| it.priority));
    assert_paired(said(&fitted));

    // Every system message is kept unchanged, and the request keeps its head and its tail.
    let systems = |them: &[Message]| -> Vec<Message> {
        them.iter().filter(|it| it.role == Role::System).cloned().collect()
    };
    assert_eq!(systems(said(&fitted)), systems(&prompt.history));
    if let Some(request) = prompt.history.iter().rfind(|it| it.role == Role::User) {
        let kept =
            said(&fitted).iter().rfind(|it| it.role == Role::User && !is_summary(it)).unwrap();
        let is_whole = kept.content == request.content;
        let head: String = request.content.chars().take(5).collect();
        let is_cut = kept.content.contains("tokens cut …]") && kept.content.starts_with(&head);
        assert!(is_whole || is_cut, "{request:?} became {kept:?}");
    }
    assert!(fitted.steps.iter().all(|it| it.after <= it.before || it.step == FitStep::PairCalls));
    for (one, next) in fitted.steps.iter().zip(fitted.steps.iter().skip(1)) {
        assert_eq!(one.after, next.before, "{:?}", fitted.steps);
    }
    assert!(said(&fitted).iter().filter(|it| is_summary(it)).count() <= 2);

    // A fitted prompt can be read again, and then fits as it is.
    let text = serde_json::to_string(said(&fitted)).unwrap();
    assert_eq!(history(&text).unwrap(), said(&fitted));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whatever_was_said_fits(
        prompt in prompts(),
        tokens in prop_oneof![0..200_usize, 200..3000_usize, 3000..20_000_usize],
        keep_recent in 0..15_usize,
    ) {
        let window = ContextWindow { tokens, keep_recent, vocabulary: Tokenizer::Estimate };
        check(&window, &prompt, &Extract::default());
        check(&window, &prompt, &Rambling);
    }

    #[test]
    fn any_text_is_a_history_or_an_error(text in "[\\[\\]{}\":,a-z0-9 \n]{0,60}") {
        let _ = history(&text);
    }
}

#[test]
fn messages_pass_as_they_came() {
    let messages = json!([
        {"role": "system", "content": "Be brief", "name": "host"},
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        ]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}, "index": 0}
        ]},
        {"role": "tool", "content": "a cat", "tool_call_id": "1"},
        {"role": "assistant", "content": "A cat.", "refusal": null}
    ]);
    let read = history(&messages.to_string()).unwrap();
    assert_eq!(read[1].content, "What is this?\n[image_url]");
    assert_eq!(serde_json::to_value(&read).unwrap(), messages);
    let lines: Vec<String> = messages.as_array().unwrap().iter().map(Json::to_string).collect();
    assert_eq!(history(&lines.join("\n")).unwrap(), read);
}

#[test]
fn calls_and_results_in_parts_are_calls_and_results() {
    let messages = json!([
        {"role": "user", "content": "Look at both"},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I will."},
            {"type": "tool_use", "id": "1", "name": "look", "input": {"at": 1}},
            {"type": "tool_use", "id": "2", "name": "look", "input": {"at": 2}}
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "a cat"},
            {"type": "tool_result", "tool_use_id": "2", "content": [{"type": "text", "text": "a dog"}]},
            {"type": "text", "text": "Which is larger?"}
        ]}
    ]);
    let read = history(&messages.to_string()).unwrap();
    assert_paired(&read);
    let shown: Vec<(&str, &str)> = read.iter().map(|it| (it.role.as_str(), &*it.content)).collect();
    let wanted = [
        ("user", "Look at both"),
        ("assistant", "I will."),
        ("tool", "a cat"),
        ("tool", "a dog"),
        ("user", "Which is larger?"),
    ];
    assert_eq!(shown, wanted);
    assert_eq!(read[1].calls[1].arguments, "{\"at\":2}");
}
