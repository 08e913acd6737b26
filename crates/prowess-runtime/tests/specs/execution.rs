//! The outcomes of skills, through the program and through the library.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use prowess::{Library, LiveLibrary};
use prowess_runtime::{
    Action, Authorizer, DenyAll, Executor, Launcher, Outcome, OutcomeStatus, Policy, Sandbox,
    SkillProvider, SkillRecord, Toolbox,
    approval::{ActionRequest, ApproveAll, Approver},
    executor::Script,
    sandbox::{RunLimits, SandboxLevel},
    toolbox::{Intent, ToolResult},
    tools::skill_tools,
};
use serde_json::{Map, Value as Json, json};

use crate::world::World;

/// Adds a skill of a type with a body, in `skills/`.
fn typed(world: World, kind: &str, name: &str, body: &str) -> World {
    let text =
        format!("---\nname: {name}\ndescription: Does {name}\ntype: {kind}\n---\n\n{body}\n");
    world.document(name, text)
}

fn script(world: World, name: &str, script: &str) -> World {
    typed(world, "script", name, &format!("```sh\n{script}\n```"))
}

fn executor(program: &str) -> Executor {
    let sandbox = Sandbox::new(Launcher::program(program), SandboxLevel::Landlock);
    Executor::new(sandbox, RunLimits::default())
}

/// Returns a toolbox without tools that calls the skills of a provider.
fn toolbox(provider: Arc<dyn SkillProvider>, approver: impl Approver + 'static) -> Toolbox {
    let authorizer = Authorizer::new(Policy::default(), Arc::new(approver));
    let executor = executor(env!("CARGO_BIN_EXE_prowess_launcher"));
    Toolbox::new(Arc::new(authorizer)).with_skills(provider, executor)
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

mod a_skill_executes_as_its_type_says {
    use super::*;

    #[test]
    fn s_34_making_an_executor_touches_nothing() {
        let world = script(World::new(), "one", "echo");
        let library = world.load();
        let entry = SkillRecord::of(library.get("one").unwrap()).unwrap();
        let made = executor("/nowhere/prowess");
        let outcome = wait_for(made.execute(&entry, Map::new()));
        assert_eq!(outcome.status, OutcomeStatus::Refused, "{outcome:?}");
        let world = typed(world, "instruction", "two", "text");
        let entry = SkillRecord::of(world.load().get("two").unwrap()).unwrap();
        assert!(wait_for(made.execute(&entry, Map::new())).is_ok());
    }
}

mod a_script_among_the_files_of_a_skill_can_be_run {
    use super::*;

    fn with_scripts() -> World {
        World::new()
            .skill("one", "a")
            .file("skills/one/scripts/show.sh", "printf '<%s>' \"$@\"; echo")
            .file("skills/one/scripts/perl", "#!/usr/bin/env perl\nprint \"perl @ARGV\\n\";\n")
            .file("skills/one/scripts/sourcing.sh", ". \"$(dirname \"$0\")/lib.sh\"; hello")
            .file(
                "skills/one/scripts/lib.sh",
                "hello() { cat \"$SKILL_DIR/data/text.txt\"; echo \"$SKILL_NAME\"; }",
            )
            .file("skills/one/scripts/writing.sh", "echo x > \"$SKILL_DIR/data/text.txt\"")
            .file("skills/one/data/text.txt", "data\n")
            .file("skills/one/data/large.bin", vec![b'x'; 150_000])
            .file("outside.sh", "echo outside")
    }

    #[test]
    fn the_bytes_that_were_approved_are_the_bytes_that_run() {
        let world = with_scripts();
        let library = world.load();
        let script =
            prowess_runtime::executor::Script::of(library.get("one").unwrap(), "scripts/show.sh");
        let script = script.unwrap();
        world.write("skills/one/scripts/show.sh", "echo exchanged");
        let executor = executor(env!("CARGO_BIN_EXE_prowess_launcher"));
        let arguments = vec!["a".into()].into();
        let ran =
            executor.attempt_script(&script, arguments, Default::default(), Default::default());
        let outcome = wait_for(ran).unwrap();
        assert_eq!(outcome.stdout.unwrap().text, "<a>\n");
    }
}

mod a_script_runs_among_the_files_that_were_approved {
    use super::*;

    const GOOD: &str = "echo good";

    /// Creates a skill that runs a file next to it, approved with the good one.
    fn approved() -> (World, Arc<Authorizer>) {
        let text = "---\nname: one\ndescription: a\ntype: script\nrequires_approval: true\n---\n\n\
                    ```sh\nsh \"$SKILL_DIR/helper.sh\"\n```\n";
        let world = World::new().document("one", text).file("skills/one/helper.sh", GOOD);
        let authorizer = |approver: Arc<dyn Approver>| {
            Authorizer::new(Policy::default(), approver).with_state(world.path("state"))
        };
        let library = Arc::new(world.load());
        let yes = authorizer(Arc::new(ApproveAll));
        for entry in [entry(&library), script(&library).entry] {
            wait_for(authorize(&yes, &entry)).unwrap();
        }
        let authorizer = Arc::new(authorizer(Arc::new(DenyAll)));
        (world, authorizer)
    }

    fn entry(library: &Library) -> SkillRecord {
        SkillRecord::of(library.get("one").unwrap()).unwrap().with_files().unwrap()
    }

    fn script(library: &Library) -> Script {
        Script::of(library.get("one").unwrap(), "helper.sh").unwrap()
    }

    async fn authorize(authorizer: &Authorizer, entry: &SkillRecord) -> Result<(), Box<Outcome>> {
        let action = Action::Execute(Box::new(entry.clone()));
        let requested =
            ActionRequest { tool: "skill_one", action: &action, active: &[], given: None };
        authorizer.authorize(&requested).await.map(drop)
    }

    #[test]
    fn a_file_that_is_exchanged_again_and_again_is_never_run_unapproved() {
        let (world, authorizer) = approved();
        let library = Arc::new(world.load());
        let executor = executor(env!("CARGO_BIN_EXE_prowess_launcher"));
        let toolbox = skill_tools(&library, &[], &executor)
            .into_iter()
            .fold(Toolbox::new(authorizer.clone()), |toolbox, tool| toolbox.with(tool));
        let toolbox = toolbox.with_skills(Arc::new(library.clone()), executor.clone());
        let helper = world.path("skills/one/helper.sh");
        let is_over = AtomicBool::new(false);
        let exchange = || {
            let (beside, mut count) = (world.path("next.sh"), 0);
            while !is_over.load(Ordering::Relaxed) {
                // Good for about as long as bad, at intervals that are not in step with the runs.
                for (text, pause) in [("echo evil", 137), (GOOD, 211)] {
                    fs::write(&beside, text).unwrap();
                    fs::rename(&beside, &helper).unwrap();
                    thread::sleep(Duration::from_micros(pause + count % 500));
                }
                count += 7;
            }
        };
        let mut printed = Vec::new();
        thread::scope(|scope| {
            scope.spawn(exchange);
            for number in 0..150 {
                let outcome = match number % 3 {
                    0 => wait_for(toolbox.call("skill_one", json!({}))),
                    1 => wait_for(toolbox.call("one", json!({}))),
                    _ => wait_for(async {
                        let Ok(script) = Script::of(library.get("one").unwrap(), "helper.sh")
                        else {
                            return Outcome::new(OutcomeStatus::Refused);
                        };
                        match authorize(&authorizer, &script.entry).await {
                            Ok(()) => {
                                let (parameters, delivery) = Default::default();
                                let ran = executor.attempt_script(
                                    &script,
                                    Default::default(),
                                    parameters,
                                    delivery,
                                );
                                ran.await.unwrap()
                            }
                            Err(refused) => *refused,
                        }
                    }),
                };
                printed.extend(outcome.stdout.map(|it| it.text));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(!printed.is_empty(), "nothing ran");
        assert!(printed.iter().all(|it| it == "good\n"), "{printed:?}");
    }
}

mod tools_that_are_skills_are_executed {
    use super::*;

    fn greeting() -> World {
        let body = "```template\nHello {{.name}}\n```";
        typed(World::new(), "template", "say-hello", body)
    }

    #[test]
    fn p_08_a_tool_name_maps_to_its_skill_or_to_nothing() {
        let world = greeting();
        let live_library = Arc::new(LiveLibrary::start(&world.options()).unwrap());
        let toolbox = toolbox(live_library.clone(), DenyAll);
        for name in ["say-hello", "skill_say-hello", "SKILL_SAY_HELLO", "Say_Hello"] {
            assert_eq!(toolbox.skill_for(name).as_deref(), Some("say-hello"), "{name}");
        }
        for name in ["", "skill_", "say", "skill_say-hello-too"] {
            assert_eq!(toolbox.skill_for(name), None, "{name}");
        }
        assert_eq!(toolbox.skill_for("later"), None);
        let world = world.skill("later", "a");
        live_library.reload().unwrap();
        assert_eq!(toolbox.skill_for("later").as_deref(), Some("later"));
        fs::remove_dir_all(world.path("skills/later")).unwrap();
        live_library.reload().unwrap();
        assert_eq!(toolbox.skill_for("later"), None);
    }

    #[test]
    fn p_09_a_tool_call_becomes_a_request_with_every_argument() {
        let world = greeting();
        let toolbox = toolbox(Arc::new(Arc::new(world.load())), DenyAll);
        let given = json!({"name": "Ada", "list": [1, null, {"a": -0.5}], "empty": ""});
        let text = given.to_string();
        for arguments in [given.clone(), json!(text)] {
            let request = toolbox.skill_call("SKILL_SAY_HELLO", &arguments).unwrap();
            assert_eq!(request.skill, "say-hello");
            assert_eq!(Json::from(request.parameters), given);
        }
        let request = toolbox.skill_call("say-hello", &json!(null)).unwrap();
        assert!(request.parameters.is_empty());
        let request = toolbox.skill_call("say-hello", &json!(["a"])).unwrap();
        assert_eq!(Json::from(request.parameters), json!({"input": ["a"]}));
        assert_eq!(toolbox.skill_call("unknown", &given), None);
    }

    #[test]
    fn p_10_a_response_becomes_a_tool_result() {
        let world = script(greeting(), "prints", "echo out; echo err >&2; exit \"$PARAM_CODE\"");
        let world = typed(world, "composite", "plans", "```json\n{\"tool\": \"a\"}\n```");
        let toolbox = toolbox(Arc::new(Arc::new(world.load())), DenyAll);
        let result =
            |name: &str, arguments: Json| ToolResult::from(wait_for(toolbox.call(name, arguments)));
        let plan = json!([{"step": 1, "tool": "a", "params": {}}]);
        for (name, arguments, content) in [
            ("say-hello", json!({"name": "Ada"}), json!("Hello Ada\n")),
            ("plans", json!({}), plan.clone()),
            ("plans", json!({"x": 1}), plan),
            ("prints", json!({"code": 0}), json!("out\n")),
        ] {
            let result = result(name, arguments);
            assert_eq!((result.is_error, result.content), (false, content));
        }
        let failed = result("prints", json!({"code": 7}));
        assert!(failed.is_error);
        assert_eq!(failed.content["exit_code"], 7);
        assert_eq!(failed.content["stderr"], "err\n");
        let unknown = result("say-helo", json!({}));
        assert!(unknown.is_error);
        assert_eq!(unknown.content["status"], "not_found");
        assert!(unknown.content["hint"].as_str().unwrap().contains("`say-hello`"));
    }

    #[test]
    fn p_13_executing_by_intent_maps_executes_and_answers() {
        let text = "---\nname: say-hello\ndescription: Greet somebody by name with a friendly hello\n\
                    type: template\n---\n\n```template\nHello {{.name}}\n```\n";
        let world = World::new().document("say-hello", text).skill("deploy", "Ship the program");
        let toolbox = toolbox(Arc::new(Arc::new(world.load())), DenyAll);
        for intent in ["skill_say_hello", "please say hello to somebody"] {
            let parameters = Map::from_iter([("name".to_owned(), json!("Ada"))]);
            let intent = Intent { parameters, ..Intent::new(intent) };
            let response = wait_for(toolbox.call_by_intent(intent));
            assert_eq!(response.outcome.output, Some(json!("Hello Ada\n")));
            assert_eq!(response.skill.as_deref(), Some("say-hello"));
            assert!(response.confidence.unwrap() >= 0.7);
        }
    }

    #[test]
    fn p_14_executing_by_intent_needs_the_least_confidence() {
        let world = greeting().skill("deploy", "Ship the program to the staging servers");
        let toolbox = toolbox(Arc::new(Arc::new(world.load())), DenyAll);
        let run = |intent: &str, min_confidence: f64| {
            wait_for(toolbox.call_by_intent(Intent { min_confidence, ..Intent::new(intent) }))
        };
        let vague = run("program", 0.0);
        assert!(vague.outcome.is_ok(), "{vague:?}");
        let confidence = vague.confidence.unwrap();
        assert!(run("program", confidence).outcome.is_ok());
        for least in [confidence + 1e-9, 1.1, f64::NAN] {
            let unsure = run("program", least);
            let output = unsure.outcome.output.unwrap();
            assert_eq!(unsure.outcome.status, OutcomeStatus::NotFound);
            assert_eq!(output["best"], "deploy");
            assert!((output["confidence"].as_f64().unwrap() - confidence).abs() < 1e-4);
            assert!(unsure.outcome.message.unwrap().contains("`deploy`"));
        }
        let nothing = run("zzz qqq", 0.0);
        assert_eq!((nothing.outcome.status, nothing.skill), (OutcomeStatus::NotFound, None));
    }

    #[test]
    fn nothing_is_executed_that_does_not_pass_the_gate() {
        let text = "---\nname: one\ndescription: a\ntype: template\nrequires_approval: true\n---\n\n\
                    ```template\nran\n```\n";
        let world = World::new().document("one", text);
        let library: Arc<Library> = Arc::new(world.load());
        let result = |toolbox: Toolbox| ToolResult::from(wait_for(toolbox.call("one", json!({}))));
        let refused = result(toolbox(Arc::new(library.clone()), DenyAll));
        assert!(refused.is_error);
        assert_eq!(refused.content["status"], "refused");
        let approved = result(toolbox(Arc::new(library), ApproveAll));
        assert_eq!((approved.is_error, approved.content), (false, json!("ran\n")));
    }
}
