//! Prompts, and how they fit into the context window.

use prowess::{
    Call, ContextWindow, Extract, FitError, FittedPrompt, Level, Message, Offer, Priority, Prompt,
    Role, fit,
};
use serde_json::{Value as Json, json};

use crate::world::{Ran, SKILLS, World, with_code};

/// Returns a message of a talkative person or model, about sixty words.
fn talk(role: Role, number: usize) -> Message {
    Message::new(role, format!("Number {number}. {}", "This is one of many words. ".repeat(10)))
}

/// Returns a conversation of alternating messages; the user has the last of an even number.
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

/// Returns a skill at every level, of about `words` words.
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

fn refused(tokens: usize, prompt: &Prompt) -> FitError {
    let window = ContextWindow { tokens, ..ContextWindow::default() };
    fit(&window, prompt.clone(), &Extract::default()).unwrap_err()
}

/// Returns the tokens of a prompt when there is room for everything.
fn taken(prompt: &Prompt) -> usize {
    fitted(&ContextWindow { tokens: usize::MAX, ..ContextWindow::default() }, prompt).tokens.total()
}

/// Returns a window of which a prompt takes this many percent.
fn window(prompt: &Prompt, percent: usize) -> ContextWindow {
    ContextWindow { tokens: taken(prompt) * 100 / percent, ..ContextWindow::default() }
}

/// Returns the messages after the system prompt.
fn said(fitted: &FittedPrompt) -> &[Message] {
    &fitted.messages[1..]
}

/// Returns the output of `prompt --json` on `skills/`.
fn prompted(world: &World, arguments: &[&str]) -> Json {
    let ran = run(world, &[&["--json"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.json()
}

fn run(world: &World, arguments: &[&str]) -> Ran {
    world.run(["prompt"].iter().chain(&SKILLS).chain(arguments))
}

/// Returns the names of the skills of a document, each with its value of a field.
fn skills<'d>(document: &'d Json, field: &str) -> Vec<(&'d str, &'d Json)> {
    let skills = document["skills"].as_array().unwrap();
    skills.iter().map(|it| (it["name"].as_str().unwrap(), &it[field])).collect()
}

fn priority<'d>(document: &'d Json, name: &str) -> &'d str {
    let skills = skills(document, "priority");
    let found = skills.iter().find(|it| it.0 == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {document:#}")).1.as_str().unwrap()
}

/// Returns the system prompt of a document.
fn system(document: &Json) -> &str {
    assert_eq!(document["messages"][0]["role"], "system");
    document["messages"][0]["content"].as_str().unwrap()
}

mod old_messages_are_summarised_first {
    use super::*;

    #[test]
    fn q_14_how_many_messages_stay_can_be_set() {
        let prompt = prompt(turns(40), Vec::new());
        let window = ContextWindow { keep_recent: 4, ..window(&prompt, 85) };
        let fitted = fitted(&window, &prompt);
        assert!(said(&fitted)[0].content.starts_with("[Summary of 36 "));
        assert_eq!(said(&fitted)[1..], prompt.history[36..]);

        let world = World::new().skill("one", "Does one");
        world.write("history.json", serde_json::to_string(&prompt.history).unwrap());
        let arguments = ["--history", "history.json", "--window", "2500", "--keep", "3"];
        let document = prompted(&world, &arguments);
        assert_eq!(document["messages"].as_array().unwrap().len(), 1 + 1 + 3);
        assert_eq!(document["steps"][0]["step"], "compress");
    }
}

mod skills_make_room_by_their_priority {
    use super::*;

    #[test]
    fn q_17_referred_to_is_active_matched_is_relevant_used_long_ago_is_inactive() {
        let world = World::new()
            .skill("bake-bread", "Bakes bread in an oven")
            .skill("mow-lawn", "Mows the lawn in straight lines")
            .skill("tune-piano", "Tunes a piano by ear")
            .skill("wash-car", "Washes a car with soap");
        let mut history = Vec::new();
        let mut take_up = |id: &str, name: &str| {
            let mut caller = called(id);
            caller.calls[0].name = "use_skill".into();
            caller.calls[0].arguments = json!({ "name": name }).to_string();
            history.extend([Message::new(Role::User, "Hm."), caller, result(id, "Here it is")]);
            history.extend([Message::new(Role::Assistant, "Done.")]);
        };
        take_up("1", "bake-bread");
        for id in ["2", "3", "4"] {
            take_up(id, "no-such-skill");
        }
        take_up("5", "mow-lawn");
        world.write("history.json", serde_json::to_string(&history).unwrap());
        let query = "tune the piano by ear, then @wash-car";
        let document = prompted(&world, &[query, "--history", "history.json", "--threshold", "0"]);
        let priorities = ["bake-bread", "mow-lawn", "tune-piano", "wash-car"]
            .map(|name| priority(&document, name));
        assert_eq!(priorities, ["inactive", "active", "relevant", "active"]);
    }

    #[test]
    fn q_18_matched_skills_stand_in_the_system_prompt() {
        let body = "# Tuning\n\n1. Strike `A4`.\n\n## Then\n\n- Turn the pin.";
        let text = format!("---\nname: tune-piano\ndescription: Tunes a piano\n---\n\n{body}\n");
        let world = World::new().document("tune-piano", text).skill("wash-car", "Washes a car");
        let document = prompted(&world, &["please $tune-piano today"]);
        let block = format!("## Skill: tune-piano\nTunes a piano\n\n{body}\n");
        assert!(system(&document).contains(&block), "{}", system(&document));
        assert!(!system(&document).contains("## Skill: wash-car"));
        let matched = prompted(&world, &["tune a piano"]);
        assert!(system(&matched).contains("## Skill: tune-piano\nTunes a piano"));
        assert!(!system(&matched).contains("# tune-piano\n"), "{}", system(&matched));
    }

    #[test]
    fn a_skill_that_is_invoked_gets_its_arguments_and_absolute_paths() {
        let text = "---\nname: fix-issue\ndescription: Fixes an issue\n---\n\
                    Fix $0 of all of $ARGUMENTS as [the guide](docs/guide.md) says.\n";
        let world = World::new()
            .document("fix-issue", text)
            .file("skills/fix-issue/docs/guide.md", "# Guide\n");
        let ran = world.run([&SKILLS[..], &["prompt", "/fix-issue 12 now", "--json"]].concat());
        let system = ran.json()["messages"][0]["content"].to_string();
        let guide = world.path("skills/fix-issue/docs/guide.md").canonicalize().unwrap();
        let told = format!("Fix 12 of all of 12 now as [the guide]({}) says.", guide.display());
        assert!(system.contains(&told), "{system}");
    }

    #[test]
    fn q_08_q_12_the_three_best_matches_are_loaded() {
        let mut world = World::new();
        for kind in ["monthly", "weekly", "yearly", "daily", "hourly"] {
            world = world.skill(&format!("report-{kind}"), "Writes a report about sales");
        }
        let loaded = |arguments: &[&str]| {
            let query = ["write a report about sales", "--threshold", "0"];
            let document = prompted(&world, &[&query, arguments].concat());
            let blocks = system(&document).matches("## Skill: report-").count();
            assert_eq!(skills(&document, "kept").len(), blocks);
            blocks
        };
        assert_eq!(loaded(&[]), 3);
        assert_eq!(loaded(&["--top", "2"]), 2);
        assert_eq!(loaded(&["--top", "0"]), 0);
    }

    #[test]
    fn a_24_several_skills_are_active_together() {
        let world = World::new().skill("tune-piano", "Tunes a piano").skill("wash-car", "Washes");
        let document = prompted(&world, &["@wash-car and (@tune-piano), in this order"]);
        for name in ["wash-car", "tune-piano"] {
            assert_eq!(priority(&document, name), "active");
            assert!(system(&document).contains(&format!("\n\n# {name}\n")), "{document:#}");
        }
    }

    #[test]
    fn a_small_window_is_used() {
        let lines: String =
            (0..1500).map(|it| format!("{it}. Book the next train of the trip.\n")).collect();
        let code = format!("```sh\n{lines}```\n\nThe end.\n");
        let about =
            "Plans a trip by train. Use when somebody asks for a route, a timetable or a ticket.";
        let document = |name: &str, body: &str| {
            format!("---\nname: {name}\ndescription: {about}\n---\n\n# {name}\n\n{body}")
        };
        let world = (0..40).fold(World::new(), |world, it| {
            world.document(
                &format!("other-{it:02}"),
                document(&format!("other-{it:02}"), "Nothing.\n"),
            )
        });
        let world = world
            .document("plan-trip", document("plan-trip", &code))
            .document("plan-walk", document("plan-walk", "Go.\n"));
        for window in ["4000", "8000"] {
            let json = prompted(&world, &["@plan-trip tomorrow", "--window", window]);
            let (used, all) = (&json["tokens"]["total"], window.parse::<u64>().unwrap());
            let used = used.as_u64().unwrap();
            assert!(used <= all && used * 4 >= all * 3, "{used} of {window}");
            let system = json["messages"][0]["content"].as_str().unwrap();
            let described =
                system.lines().filter(|it| it.starts_with("- other-") && it.contains(": Plans"));
            assert_eq!(described.count(), 40, "{system}");
            let skill =
                json["skills"].as_array().unwrap().iter().find(|it| it["name"] == "plan-trip");
            assert_eq!(skill.unwrap()["kept"], true);
            let body = system.split_once("# plan-trip\n").unwrap().1;
            let shown = body.lines().filter(|it| it.ends_with("train of the trip.")).count();
            // The fence is closed, and the omission is reported: the other lines, the fence and the
            // end.
            let missing = format!(
                "```\n\n[{} more lines of this skill do not fit into the context window]",
                1500 - shown + 3
            );
            assert!(shown > 50 && body.contains(&missing), "{shown}: {missing}: {body}");
        }
        let json = prompted(&world, &["@plan-walk tomorrow", "--window", "4000"]);
        assert_eq!((&json["skills"][0]["level"], &json["steps"]), (&json!("full"), &json!([])));
    }
}

mod the_query_is_what_was_asked_last {
    use super::*;

    #[test]
    fn a_23_the_query_is_the_last_message_of_the_user() {
        let world = World::new().skill("tune-piano", "Tunes a piano").skill("wash-car", "Washes");
        let history = json!([
            {"role": "user", "content": "first @wash-car"},
            {"role": "assistant", "content": "Done. Shall I @paint-fence?"},
            {"role": "user", "content": "now tune a piano with @tune-piano"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "wash the car"}
        ]);
        world.write("history.json", history.to_string());
        let document = prompted(&world, &["--history", "history.json"]);
        assert_eq!(document["query"], "now tune a piano with @tune-piano");
        assert_eq!(priority(&document, "tune-piano"), "active");
        assert_eq!(document["messages"].as_array().unwrap().len(), 1 + 5);

        let document = prompted(&world, &["and again", "--history", "history.json"]);
        assert_eq!(document["query"], "and again");
        assert_eq!(document["messages"][6], json!({"role": "user", "content": "and again"}));
    }

    #[test]
    fn without_a_query_there_is_the_catalog_alone() {
        let world = World::new()
            .skill("tune-piano", "Tunes a piano")
            .file("empty.json", "[]")
            .file("nothing.json", "")
            .file("system.json", r#"[{"role": "system", "content": "tune a piano"}]"#);
        for (file, more) in [("", 0), ("empty.json", 0), ("nothing.json", 0), ("system.json", 1)] {
            let history = ["--history", file];
            let arguments = if file.is_empty() { &[][..] } else { &history };
            let document = prompted(&world, arguments);
            assert!(system(&document).contains("tune-piano: Tunes a piano"), "{document:#}");
            assert_eq!(document["messages"].as_array().unwrap().len(), 1 + more);
            assert_eq!((&document["query"], &document["steps"]), (&Json::Null, &json!([])));
            assert_eq!(document["skills"], json!([]));
        }
        let none = World::new();
        assert_eq!(prompted(&none, &[])["messages"], json!([]));
        assert_eq!(prompted(&none, &[])["tokens"]["total"], 0);
    }
}

mod what_is_too_much_is_cut_and_what_cannot_be_cut_is_refused {
    use super::*;

    #[test]
    fn a_window_that_is_too_small_is_refused_with_what_it_would_need() {
        let prompt = Prompt {
            system: "You must do as you are told. ".repeat(40),
            tools: vec![json!({"name": "use_skill"})],
            ..prompt(turns(2), vec![offer("busy", Priority::Active, 90)])
        };
        let error = refused(100, &prompt);
        assert!(error.needed.system > 100 && error.needed.tools > 0, "{error:?}");
        assert_eq!((error.window, error.needed.skills), (100, 0));
        assert!(error.to_string().contains(&error.needed.system.to_string()), "{error}");
        assert_eq!(refused(0, &prompt).window, 0);

        let world = World::new().skill("one", "Does one").file("long", "Be kind. ".repeat(400));
        for arguments in [
            &["hello", "--window", "0"][..],
            &["--window", "1"],
            &["hello", "--window", "300", "--system", "@long"],
        ] {
            let ran = run(&world, &[arguments, &["--json"]].concat());
            assert_eq!(ran.code, Some(1), "{arguments:?}");
            assert!(ran.json().get("messages").is_none(), "{}", ran.stdout());
            assert!(ran.stderr.contains("error: a context window of "), "{}", ran.stderr);
            assert!(ran.stderr.contains("the system prompt needs "), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_broken_history_is_refused_with_its_place() {
        let world = World::new().skill("one", "Does one");
        for (text, place) in [
            ("[{\"role\": \"user\",\n \"content\": hello}]", "line 2, column 13"),
            ("{\"role\": \"user\", \"content\": \"a\"}\n\nhello\n", "line 3, column 1"),
            (
                "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"robot\", \"content\": \"a\"}]",
                "message 2",
            ),
            ("[{\"content\": \"a\"}]", "message 1"),
            ("[{\"role\": \"user\", \"content\": 7}]", "message 1"),
            ("{}", "message 1"),
            ("42", "message 1"),
            ("\"hello\"", "message 1"),
            ("[[[[", "line 1, column 4"),
        ] {
            world.write("history.json", text);
            let ran = run(&world, &["--history", "history.json"]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{text}");
            assert!(ran.stderr.contains(place), "{place} in {} for {text}", ran.stderr);
        }
        world.write("history.json", r#"[{"role": "robot", "content": ""}]"#);
        let ran = run(&world, &["--history", "history.json"]);
        assert!(ran.stderr.contains("unknown role `robot`, expected `system`"), "{}", ran.stderr);
        world.write("history.json", "[".repeat(100_000));
        assert_eq!(run(&world, &["--history", "history.json"]).code, Some(1));
        assert_eq!(run(&world, &["--history", "nowhere.json"]).code, Some(2));
        assert_eq!(run(&world, &["--system", "@nowhere.txt"]).code, Some(2));
    }

    #[test]
    fn what_cannot_be_a_setting_is_refused() {
        let world = World::new().skill("one", "Does one");
        for arguments in [
            ["--threshold", "nan"],
            ["--threshold", "inf"],
            ["--threshold", "-0.5"],
            ["--threshold", "1.5"],
            ["--threshold", "much"],
            ["--window", "-1"],
            ["--window", "large"],
            ["--keep", "-1"],
            ["--top", "all"],
            ["--strategy", "magic"],
        ] {
            let ran = run(&world, &arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments:?}");
            assert!(!ran.stderr.is_empty(), "{arguments:?}");
        }
        assert_eq!(run(&world, &["--window", "18446744073709551615"]).code, Some(0));
    }
}

mod the_command_prompt_is_for_people_and_for_programs {
    use super::*;

    fn keys(object: &Json) -> Vec<&str> {
        object.as_object().unwrap().keys().map(String::as_str).collect()
    }

    /// Returns a world with a long history in `history.json`, and the arguments that make it fit.
    fn squeezed() -> (World, [&'static str; 5]) {
        let world = World::new().skill("tune-piano", "Tunes a piano");
        world.write("history.json", serde_json::to_string(&turns(40)).unwrap());
        (world, ["@tune-piano now", "--history", "history.json", "--window", "1500"])
    }

    #[test]
    fn the_fields_of_a_prompt_are_stable() {
        let (world, arguments) = squeezed();
        let document = prompted(&world, &arguments);
        let fields =
            ["query", "messages", "window", "counted", "tokens", "skills", "steps", "tools"];
        assert_eq!(keys(&document), fields);
        assert_eq!(keys(&document["tokens"]), ["system", "history", "skills", "tools", "total"]);
        let fields = ["name", "priority", "level", "tokens", "kept", "left_out_by"];
        assert_eq!(keys(&document["skills"][0]), fields);
        assert_eq!(keys(&document["steps"][0]), ["step", "before", "after", "what"]);
        assert_eq!(document["window"], 1500);
        assert_eq!(document["tools"][0]["name"], "use_skill");
        assert!(document["tools"][0]["input_schema"]["properties"]["name"].is_object());
        let tokens = &document["tokens"];
        let sum: u64 = ["system", "history", "skills", "tools"]
            .map(|it| tokens[it].as_u64().unwrap())
            .iter()
            .sum();
        assert_eq!(tokens["total"], sum);
        for message in document["messages"].as_array().unwrap() {
            assert!(message["role"].is_string() && message["content"].is_string(), "{message}");
        }
        assert_eq!(document["messages"][11]["content"], "@tune-piano now");
    }

    #[test]
    fn a_request_needs_no_quotes() {
        let world = World::new().skill("tune-piano", "Tunes a piano");
        let document = prompted(&world, &["tune", "my", "piano"]);
        assert_eq!(document["query"], "tune my piano");
        assert_eq!(document["messages"][1]["content"], "tune my piano");
    }

    #[test]
    fn in_a_pipe_the_text_is_the_data() {
        let (world, arguments) = squeezed();
        let ran = run(&world, &arguments);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout().starts_with("[system]\n"), "{}", ran.stdout());
        assert!(ran.stdout().contains("\n\n[user]\n[Summary of "), "{}", ran.stdout());
        assert!(ran.stdout().ends_with("\n\n[user]\n@tune-piano now\n"), "{}", ran.stdout());
        for wanted in ["of 1,500 tokens", "history", "tune-piano", "active", "compress", " → "] {
            assert!(ran.stderr.contains(wanted), "no {wanted:?} in {}", ran.stderr);
        }
        let bar = ran.stderr.lines().find(|it| it.starts_with('s')).unwrap();
        assert_eq!(bar.len(), 80);
        assert!(bar.chars().all(|it| "skht.".contains(it)), "{bar}");
        let quiet = run(&world, &[&arguments[..], &["-q"]].concat());
        let same = |it: &Ran| with_code(it.stdout(), "bcdfghjkmn");
        assert_eq!((same(&quiet), &*quiet.stderr), (same(&ran), ""));
        let coloured = run(&world, &[&arguments[..], &["--color", "always"]].concat());
        assert!(coloured.stderr.contains("\x1b[33m█"), "{}", coloured.stderr);
    }

    #[test]
    fn a_history_comes_from_stdin_and_as_lines() {
        let (world, arguments) = squeezed();
        let from_file = run(&world, &arguments);
        let list = std::fs::read_to_string(world.path("history.json")).unwrap();
        let lines: Vec<String> =
            turns(40).iter().map(|it| serde_json::to_string(it).unwrap()).collect();
        for text in [list, lines.join("\n"), lines.join("\r\n\r\n")] {
            let arguments =
                ["prompt", arguments[0], "--history", "-", "--window", "1500", "--dir", "skills"];
            let ran = world.run_reading(&text, &arguments);
            let same = |it: &Ran| with_code(it.stdout(), "bcdfghjkmn");
            assert_eq!((ran.code, same(&ran)), (Some(0), same(&from_file)));
        }
    }

    #[test]
    fn what_was_said_cannot_move_the_cursor() {
        let bad = "a\u{1b}[2Jb\u{202e}c\u{7}\u{9b}d";
        let document = format!("---\nname: evil\ndescription: \"{}\"\n---\n{bad}\n", "\\e[2Jx");
        let world = World::new().document("evil", document);
        let call = json!({"id": "1", "function": {"name": bad, "arguments": bad}});
        let history = json!([
            {"role": "user", "content": format!("@evil {bad}")},
            {"role": "assistant", "content": bad, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": bad},
        ]);
        world.write("history.json", history.to_string());
        world.write(bad, "hello");
        for arguments in [
            &["--history", "history.json"][..],
            &["--history", "history.json", "--json"],
            &["--history", bad],
            &["@a\u{1b}[2J", "--window", "7"],
        ] {
            run(&world, arguments).assert_safe();
        }
        let document = prompted(&world, &["--history", "history.json"]);
        assert_eq!(document["messages"][3]["content"], bad);
    }
}
