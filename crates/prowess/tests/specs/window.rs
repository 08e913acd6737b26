//! Prompts, and how they fit into the context window.

use prowess::{
    Call, ContextWindow, Extract, FitStep, FittedPrompt, Level, Message, Offer, Priority, Prompt,
    Role, Summarise, fit,
};
use prowess_testing::cost::assert_linear;
use serde_json::json;

/// Returns a message of a talkative person or model, about sixty words.
fn talk(role: Role, number: usize) -> Message {
    Message::new(role, format!("Number {number}. {}", "This is one of many words. ".repeat(10)))
}

/// A conversation in which both sides take turns; the user has the last word of an even number.
fn turns(count: usize) -> Vec<Message> {
    let role = |number: usize| match (count - number) % 2 {
        1 => Role::User,
        _ => Role::Assistant,
    };
    (0..count).map(|it| talk(role(it), it)).collect()
}

fn called(id: &str) -> Message {
    let call =
        Call { id: id.into(), name: "look".into(), arguments: "{}".into(), ..Call::default() };
    Message { calls: vec![call], ..Message::new(Role::Assistant, "") }
}

fn result(id: &str, text: &str) -> Message {
    Message { call_id: Some(id.into()), ..Message::new(Role::Tool, text) }
}

/// A skill at every level, of about `words` words.
fn offer(name: &str, priority: Priority, words: usize) -> Offer {
    Offer {
        name: name.into(),
        description: format!("Does {name}"),
        priority,
        contents: vec![
            (Level::Full, format!("All about {name}. {}", "More of it. ".repeat(words / 3))),
            (Level::Brief, format!("A little about {name}. {}", "More. ".repeat(words / 10))),
        ],
    }
}

fn prompt(history: Vec<Message>, skills: Vec<Offer>) -> Prompt {
    Prompt { system: "Be kind.".into(), skills, history: history.into(), ..Prompt::default() }
}

fn fitted(window: &ContextWindow, prompt: &Prompt) -> FittedPrompt {
    fit(window, prompt.clone(), &Extract::default()).unwrap()
}

/// Returns the tokens of a prompt when there is room for everything.
fn taken(prompt: &Prompt) -> usize {
    fitted(&ContextWindow { tokens: usize::MAX, ..ContextWindow::default() }, prompt).tokens.total()
}

/// Returns a window of which a prompt takes this many percent.
fn window(prompt: &Prompt, percent: usize) -> ContextWindow {
    ContextWindow { tokens: taken(prompt) * 100 / percent, ..ContextWindow::default() }
}

fn steps(fitted: &FittedPrompt) -> Vec<&'static str> {
    fitted.steps.iter().map(|it| it.step.as_str()).collect()
}

fn kept(fitted: &FittedPrompt) -> Vec<&str> {
    let kept = fitted.skills.iter().filter(|it| it.left_out.is_none());
    kept.map(|it| it.name.as_str()).collect()
}

/// Returns the messages after the system prompt.
fn said(fitted: &FittedPrompt) -> &[Message] {
    &fitted.messages[1..]
}

fn is_summary(message: &Message) -> bool {
    message.role == Role::User && message.content.starts_with("[Summary of ")
}

/// Asserts that every result follows its call, and every call has its result.
fn assert_paired(messages: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match &message.call_id {
            Some(id) => {
                let at = open.iter().position(|it| it == id);
                open.remove(at.unwrap_or_else(|| panic!("{id} was not called in {messages:#?}")));
            }
            None => {
                assert_eq!(open, Vec::<&str>::new(), "{messages:#?}");
                open.extend(message.calls.iter().map(|it| it.id.as_str()));
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

mod every_part_of_a_prompt_is_counted {
    use super::*;

    #[test]
    fn q_13_system_prompt_history_skills_and_tools_are_counted_and_add_up() {
        let whole = Prompt {
            catalog: "- one: Does one".into(),
            tools: vec![json!({"name": "use_skill", "description": "Takes up a skill"})],
            skills: vec![offer("one", Priority::Active, 90), offer("two", Priority::Relevant, 30)],
            ..prompt(turns(4), Vec::new())
        };
        let window = ContextWindow::default();
        let all = fitted(&window, &whole);
        let tokens = all.tokens;
        assert_eq!(tokens.total(), tokens.system + tokens.history + tokens.skills + tokens.tools);
        assert_eq!(tokens.history, said(&all).iter().map(|it| window.count(it)).sum::<usize>());
        assert_eq!(tokens.tools, window.vocabulary.count(&whole.tools[0].to_string()));
        let each: Vec<usize> = all.skills.iter().map(|it| it.tokens).collect();
        assert_eq!(tokens.skills, each.iter().sum::<usize>());
        assert!(each[0] > each[1] && each[1] > 30, "{each:?}");
        assert!(tokens.system > window.vocabulary.count("Be kind. - one: Does one"));

        let without = fitted(&window, &Prompt { skills: Vec::new(), ..whole.clone() }).tokens;
        assert_eq!((without.skills, without.history), (0, tokens.history));
        let without =
            fitted(&window, &Prompt { history: Vec::new().into(), ..whole.clone() }).tokens;
        assert_eq!((without.history, without.system), (0, tokens.system));
        let without = fitted(&window, &Prompt { tools: Vec::new(), ..whole }).tokens;
        assert_eq!((without.tools, without.skills), (0, tokens.skills));
        assert_eq!(fitted(&window, &Prompt::default()).tokens.total(), 0);
    }

    #[test]
    fn an_image_has_a_price_and_passes_as_it_came() {
        let image = json!({"type": "image_url", "image_url": {"url": "A".repeat(100_000)}});
        let message = json!({"role": "user", "content": [{"type": "text", "text": "Look"}, image]});
        let read = prowess::history(&json!([message]).to_string()).unwrap();
        let tokens = ContextWindow::default().count(&read[0]);
        assert!((1000..1100).contains(&tokens), "{tokens}");
        let fitted = fitted(&ContextWindow::default(), &prompt(read, Vec::new()));
        assert_eq!(serde_json::to_value(&said(&fitted)[0]).unwrap(), message);
    }

    #[test]
    fn a_prompt_that_need_not_fit_is_told_whole() {
        let mut history = turns(4);
        history.extend([called("a"), result("a", "found"), called("b"), result("x", "lost")]);
        let skills = vec![
            offer("late", Priority::Inactive, 20),
            offer("first", Priority::Active, 20),
            Offer { contents: vec![], ..offer("bare", Priority::Relevant, 20) },
        ];
        let prompt = Prompt { catalog: "## Skills".to_owned(), ..prompt(history, skills) };
        let window = ContextWindow { tokens: 1_000_000, ..ContextWindow::default() };
        assert_eq!(prompt.clone().whole(), fitted(&window, &prompt).messages);
        assert_eq!(Prompt::default().whole(), []);
    }
}

mod old_messages_are_summarised_first {
    use super::*;

    #[test]
    fn q_14_over_80_percent_the_oldest_messages_are_summarised_and_the_last_ten_stay() {
        let prompt = prompt(turns(40), Vec::new());
        let window = window(&prompt, 85);
        let fitted = fitted(&window, &prompt);
        assert_eq!(steps(&fitted), ["compress"]);
        let (summary, rest) = said(&fitted).split_first().unwrap();
        assert!(summary.content.starts_with("[Summary of 30 earlier messages]\n"), "{summary:?}");
        assert!(summary.content.contains("Number 0."), "{summary:?}");
        assert_eq!(rest, &prompt.history[30..]);
        let step = &fitted.steps[0];
        assert_eq!((step.before, step.after), (taken(&prompt), fitted.tokens.total()));
        assert!(step.after < step.before / 2, "{step:?}");
        assert_eq!(step.what, "summarised 30 messages");
    }

    #[test]
    fn exactly_80_percent_is_not_over_it() {
        let mut prompt = prompt(turns(30), Vec::new());
        // Until there is a window of which it takes exactly 80 %.
        while !taken(&prompt).is_multiple_of(4) {
            prompt.system.push_str(" Be kind.");
        }
        let tokens = taken(&prompt) / 4 * 5;
        let exact = fitted(&ContextWindow { tokens, ..ContextWindow::default() }, &prompt);
        assert_eq!((steps(&exact), said(&exact)), (Vec::new(), &prompt.history[..]));
        let over =
            fitted(&ContextWindow { tokens: tokens - 1, ..ContextWindow::default() }, &prompt);
        assert_eq!(steps(&over), ["compress"]);
    }

    #[test]
    fn a_call_stays_with_its_result() {
        let mut history = turns(30);
        let mut caller = called("a");
        caller.calls.extend(["b", "c"].map(|id| called(id).calls.remove(0)));
        history.push(caller);
        history.extend(["c", "a", "b"].map(|id| result(id, "It is there.")));
        history.extend(turns(8));
        let prompt = prompt(history, Vec::new());
        let window = window(&prompt, 85);
        let ten = fitted(&window, &prompt);
        // The tenth from the end is a result, so one call and one result more stay.
        assert_eq!(said(&ten)[1..], prompt.history[30..]);
        for keep_recent in 0..20 {
            assert_paired(said(&fitted(&ContextWindow { keep_recent, ..window }, &prompt)));
        }
    }

    #[test]
    fn the_last_message_of_the_user_stays_wherever_it_stands() {
        let mut history = turns(20);
        history.push(Message::new(Role::User, "Find out why the cellar is wet."));
        for number in 0..100 {
            let id = number.to_string();
            history.push(called(&id));
            history.push(result(&id, "Dry walls. Nothing to see here. ".repeat(5).as_str()));
        }
        let prompt = prompt(history, Vec::new());
        for percent in [85, 400, 2000] {
            let fitted = fitted(&window(&prompt, percent), &prompt);
            let at = said(&fitted).iter().position(|it| *it == prompt.history[20]);
            assert_eq!(at, Some(1), "{:#?}", said(&fitted));
            assert!(said(&fitted)[0].content.starts_with("[Summary of 20 "));
            assert!(is_summary(&said(&fitted)[2]));
            assert!(!said(&fitted)[2].content.contains("many words"));
            assert_paired(said(&fitted));
        }
    }

    #[test]
    fn system_messages_of_a_history_stay() {
        let mut history = turns(40);
        history.insert(3, Message::new(Role::System, "Answer in German."));
        history.insert(20, Message::new(Role::System, "Prices are in euros."));
        let prompt = prompt(history, Vec::new());
        let fitted = fitted(&window(&prompt, 500), &prompt);
        let stays: Vec<&str> = said(&fitted)
            .iter()
            .filter(|it| it.role == Role::System)
            .map(|it| it.content.as_str())
            .collect();
        assert_eq!(stays, ["Answer in German.", "Prices are in euros."]);
        assert!(steps(&fitted).contains(&"squeeze"));
        assert!(said(&fitted).iter().any(is_summary));
    }

    #[test]
    fn a_summary_tells_what_matters() {
        let mut history =
            vec![Message::new(Role::User, "Move the shop to another database, please.")];
        history.extend(turns(30));
        history.push(Message::new(Role::Assistant, "We decided to drop the table orders_old."));
        history.push(called("a"));
        let error = "error: src/db.rs:42: relation is missing. ".repeat(9);
        history.push(result("a", &error));
        history.extend(turns(30));
        let prompt = prompt(history, Vec::new());
        let fitted = fitted(&window(&prompt, 85), &prompt);
        let summary = &said(&fitted)[0].content;
        for wanted in [
            "- user: Move the shop to another database, please.",
            "- assistant: We decided to drop the table orders_old.",
            "- tool: error: src/db.rs:42: relation is missing.",
            "bytes cut)",
        ] {
            assert!(summary.contains(wanted), "no {wanted:?} in {summary}");
        }
    }

    #[test]
    fn a_summary_of_a_summary_is_one_summary() {
        let mut history = turns(40);
        history[0] = Message::new(Role::User, "Start with the garden.");
        let window = window(&prompt(history.clone(), Vec::new()), 110);
        let mut gone = 0;
        let mut longest = 0;
        for _ in 0..6 {
            let before = history.len();
            let fitted = fitted(&window, &prompt(history, Vec::new()));
            assert_eq!(steps(&fitted), ["compress"]);
            let (summary, rest) = said(&fitted).split_first().unwrap();
            // The summary of the last time is one of the messages that are gone now.
            gone += before - rest.len() - usize::from(gone > 0);
            let header = format!("[Summary of {gone} earlier messages]\n");
            assert!(summary.content.starts_with(&header), "{header} {summary:?}");
            assert_eq!(summary.content.matches("[Summary").count(), 1, "{summary:?}");
            assert!(summary.content.contains("\n- user: Start with the garden."), "{summary:?}");
            assert_eq!(rest.iter().filter(|it| is_summary(it)).count(), 0);
            longest = longest.max(window.count(summary));
            history = said(&fitted).to_vec();
            history.extend(turns(36));
        }
        assert!(longest <= window.tokens / 10, "{longest} of {}", window.tokens);
    }

    #[test]
    fn a_summariser_that_does_not_keep_its_budget_is_cut() {
        struct Says(&'static str, usize);
        impl Summarise for Says {
            fn summarise(&self, _messages: &[&Message], _budget: usize) -> String {
                self.0.repeat(self.1)
            }
        }
        let prompt = prompt(turns(40), Vec::new());
        let window = window(&prompt, 85);
        let summary = |summarise: &dyn Summarise| {
            let fitted = fit(&window, prompt.clone(), summarise).unwrap();
            said(&fitted)[0].clone()
        };
        let long = summary(&Says("and so on, ", 100_000));
        assert!(long.content.contains("tokens cut …]"), "{long:?}");
        assert!(window.count(&long) <= window.tokens / 10);
        assert_eq!(summary(&Says("All good.", 1)).content.lines().nth(1), Some("All good."));
        assert_eq!(summary(&Says(" \n", 1)), summary(&Extract::default()));
    }
}

mod skills_make_room_by_their_priority {
    use super::*;

    fn three(words: usize) -> Vec<Offer> {
        vec![
            offer("dusty", Priority::Inactive, words),
            offer("handy", Priority::Relevant, words),
            offer("busy", Priority::Active, words),
        ]
    }

    #[test]
    fn q_15_over_90_percent_inactive_skills_are_evicted() {
        let prompt = prompt(turns(3), three(300));
        let fitted = fitted(&window(&prompt, 93), &prompt);
        assert_eq!(steps(&fitted), ["compress", "evict"]);
        assert_eq!(kept(&fitted), ["busy", "handy"]);
        assert_eq!(fitted.skills[2].left_out, Some(FitStep::Evict));
        assert!(!fitted.messages[0].content.contains("dusty"));
        assert!(fitted.messages[0].content.contains("All about handy."));
        assert_eq!(said(&fitted), *prompt.history);
        // If summarising brings it below 90 %, nothing is evicted.
        let prompt = super::prompt(turns(40), three(30));
        let fitted = super::fitted(&window(&prompt, 93), &prompt);
        assert_eq!((steps(&fitted), kept(&fitted).len()), (vec!["compress"], 3));
    }

    #[test]
    fn q_16_over_95_percent_the_last_five_messages_and_the_top_skill_stay() {
        let mut skills = three(600);
        skills.remove(0);
        skills.push(offer("eager", Priority::Active, 600));
        let prompt = prompt(turns(12), skills);
        // The two oldest are summarised first, and that is not enough.
        let fitted = fitted(&window(&prompt, 120), &prompt);
        assert_eq!(steps(&fitted), ["compress", "evict", "squeeze"]);
        assert_eq!(kept(&fitted), ["busy"]);
        assert!(said(&fitted)[0].content.starts_with("[Summary of 7 earlier messages]"));
        assert_eq!(said(&fitted)[1..], prompt.history[7..]);
        assert!(fitted.messages[0].content.contains("All about busy."));
        assert!(fitted.skills[1..].iter().all(|it| it.left_out == Some(FitStep::KeepRecent)));
    }

    #[test]
    fn q_20_active_skills_come_first_and_then_relevant_ones() {
        let offers = [
            ("a", Priority::Inactive),
            ("b", Priority::Relevant),
            ("c", Priority::Active),
            ("d", Priority::Relevant),
            ("e", Priority::Active),
        ];
        let offers = offers.map(|(name, priority)| offer(name, priority, 9)).to_vec();
        let fitted = fitted(&ContextWindow::default(), &prompt(turns(1), offers));
        let headings: Vec<&str> = fitted.messages[0]
            .content
            .lines()
            .filter_map(|it| it.strip_prefix("## Skill: "))
            .collect();
        assert_eq!(headings, ["c", "e", "b", "d", "a"]);
        assert_eq!(kept(&fitted), headings);
    }

    #[test]
    fn less_of_a_skill_is_shown_before_it_is_refused() {
        let prompt = prompt(turns(1), vec![offer("busy", Priority::Active, 900)]);
        let bare = taken(&super::prompt(turns(1), Vec::new()));
        let level = |tokens: usize| {
            let fitted = fitted(&ContextWindow { tokens, ..ContextWindow::default() }, &prompt);
            let placed = &fitted.skills[0];
            assert_eq!(said(&fitted), *prompt.history);
            let shown = placed.left_out.is_none().then_some(placed.level);
            (shown, steps(&fitted).last().copied())
        };
        assert_eq!(level(taken(&prompt) * 2), (Some(Level::Full), None));
        assert_eq!(level(taken(&prompt) - 1), (Some(Level::Brief), Some("degrade")));
        assert_eq!(level(bare + 30), (Some(Level::Metadata), Some("degrade")));
        let short = super::prompt(vec![Message::new(Role::User, "Hm.")], prompt.skills);
        let bare = taken(&super::prompt(short.history.to_vec(), Vec::new()));
        let fitted = fitted(&ContextWindow { tokens: bare, ..ContextWindow::default() }, &short);
        assert_eq!(fitted.skills[0].left_out, Some(FitStep::Evict));
        assert_eq!(said(&fitted), *short.history);
    }
}

mod what_is_too_much_is_cut_and_what_cannot_be_cut_is_refused {
    use super::*;

    #[test]
    fn a_long_message_is_cut_in_the_middle() {
        let long = format!("It begins. {} It ends.", "x".repeat(1_000_000));
        let mut history = turns(2);
        history.push(Message::new(Role::User, "What does the log say?"));
        history.push(called("a"));
        history.push(result("a", &long));
        let prompt = prompt(history, vec![offer("busy", Priority::Active, 90)]);
        let window = ContextWindow { tokens: 2000, ..ContextWindow::default() };
        let fitted = fitted(&window, &prompt);
        assert!(fitted.tokens.total() <= 2000);
        assert_eq!(steps(&fitted).last(), Some(&"shorten"));
        let cut = &said(&fitted).last().unwrap().content;
        assert!(cut.starts_with("It begins.") && cut.ends_with("It ends."), "{cut}");
        let words: Vec<&str> = cut.lines().nth(1).unwrap().split(' ').collect();
        assert_eq!((words[0], words[2..].join(" ")), ("[…", "tokens cut …]".to_owned()));
        let number: usize = words[1].parse().unwrap();
        let whole = window.vocabulary.count(&long);
        assert!(number < whole && number > whole - 2000, "{number} of {whole}");
        assert!(said(&fitted).contains(&prompt.history[2]));
        assert_paired(said(&fitted));
    }

    #[test]
    fn a_request_that_is_too_long_alone_is_cut_last() {
        let mut history = turns(2);
        history.insert(0, Message::new(Role::Assistant, "An old and long answer. ".repeat(500)));
        let request = format!("Please do it. {} That is all.", "And this. ".repeat(5000));
        history.push(Message::new(Role::User, request));
        let prompt = prompt(history, Vec::new());
        let fitted = fitted(&ContextWindow { tokens: 1000, ..ContextWindow::default() }, &prompt);
        let request = &said(&fitted).last().unwrap().content;
        assert!(request.starts_with("Please do it."), "{request}");
        assert!(request.ends_with("That is all."), "{request}");
        assert!(request.contains("tokens cut …]"), "{request}");
        assert!(said(&fitted)[0].content.contains("tokens cut …]"), "{:?}", said(&fitted)[0]);
        // All others have given what they could before the request was touched.
        let window = ContextWindow::default();
        let others = said(&fitted).iter().rev().skip(1).map(|it| window.count(it));
        assert!(others.max().unwrap() < 40);
        assert!(window.count(said(&fitted).last().unwrap()) > 750);
    }

    #[test]
    fn ten_thousand_messages_fit_at_once() {
        let prompt = prompt(turns(10_000), vec![offer("busy", Priority::Active, 90)]);
        let first = fitted(&ContextWindow { tokens: 8000, ..ContextWindow::default() }, &prompt);
        assert_linear("fitting", 10_000, |size| {
            let prompt = super::prompt(turns(size), vec![offer("busy", Priority::Active, 90)]);
            super::fitted(&ContextWindow { tokens: 8000, ..ContextWindow::default() }, &prompt);
        });
        assert!(first.tokens.total() <= 8000);
        assert!(said(&first)[0].content.starts_with("[Summary of 9990 "));
        assert_eq!(said(&first)[1..], prompt.history[9990..]);
        assert_eq!(
            first,
            fitted(&ContextWindow { tokens: 8000, ..ContextWindow::default() }, &prompt)
        );
    }

    #[test]
    fn a_result_without_its_call_becomes_text() {
        let history = json!([
            {"role": "tool", "tool_call_id": "0", "content": "42 degrees"},
            {"role": "user", "content": "And now?"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "2", "type": "function", "function": {"name": "measure", "arguments": "{}"}}
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "cold"},
            {"role": "tool", "tool_call_id": "1", "content": "twice"},
            {"role": "tool", "content": "without a number"},
        ]);
        let history = prowess::history(&history.to_string()).unwrap();
        let fitted = fitted(&ContextWindow::default(), &prompt(history, Vec::new()));
        assert_paired(said(&fitted));
        assert_eq!(steps(&fitted), ["mend"]);
        let roles: Vec<&str> = said(&fitted).iter().map(|it| it.role.as_str()).collect();
        assert_eq!(roles, ["assistant", "user", "assistant", "tool", "tool", "assistant"]);
        let all: Vec<&str> = said(&fitted).iter().map(|it| it.content.as_str()).collect();
        assert!(all[0].ends_with("\n42 degrees"), "{all:?}");
        assert_eq!(all[3..5], ["cold", "without a number"]);
        assert!(all[5].ends_with("\ntwice"), "{all:?}");

        let history = vec![Message::new(Role::User, "Go on."), called("1")];
        let fitted = super::fitted(&ContextWindow::default(), &prompt(history, Vec::new()));
        assert_eq!(said(&fitted)[1].calls, []);
        assert_eq!(said(&fitted)[1].content, "[called `look` with {}; no result]");
    }
}
