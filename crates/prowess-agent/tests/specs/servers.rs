//! Servers of skills in an agent: when they are started, offered and ended.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use prowess::{Call, Library};
use prowess_agent::{
    Agent, CallFuture, EventKind, Middleware, Next, NextCall, Request, ResponseFuture,
    ScriptedModel, Servers, Session, ToolLoop, Turn,
};
use prowess_mcp::client::McpLauncher;
use prowess_runtime::{
    Authorizer, DenyAll, Policy, SkillProvider, Toolbox,
    approval::{ApproveAll, Approver, ApproverReply},
    skill::ActiveSkills,
    tools::UseSkill,
};
use prowess_testing::{
    mcp_sdk::{self, SDK, SdkServer},
    skill_servers::{Stage, local, mcp_launcher},
    tools::Asked,
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::world::until;

mod a_server_starts_only_when_somebody_has_approved_it {
    use super::*;

    #[test]
    fn a_17_without_an_approval_the_skill_goes_on_without_its_server() {
        let no = Arc::new(Asked::new(ApproverReply::No));
        let approvers: [Arc<dyn Approver>; 2] = [Arc::new(DenyAll), no.clone()];
        for approver in approvers {
            let stage = Stage::with_server("");
            let model = Arc::new(ScriptedModel::new().says("one").says("two"));
            let (agent, events) = agent(&stage, &model, mcp_launcher(Policy::default(), approver));
            let session = Session::new("s");
            stage.runtime.block_on(async {
                assert_eq!(agent.ask(&session, "x").await.unwrap().message.content, "one");
                assert_eq!(agent.ask(&session, "y").await.unwrap().message.content, "two");
            });
            assert_eq!(states(&events), ["refused"]);
            let said = messages(&events);
            assert!(said.contains("approval") && said.contains("`files`"), "{said}");
            assert!(offered(&model).iter().all(|it| !it.contains("mcp")));
            assert_eq!(stage.processes(), 0);
        }
        assert_eq!(no.questions().len(), 1);
    }
}

mod tools_of_a_server_are_called_like_any_others {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip and a network")]
    fn a_17_a_server_on_the_official_sdk_is_asked() {
        let text = fs::read_to_string(mcp_sdk::SERVER).unwrap();
        let stage = Stage::new().file("server.py", text).file(
            "mcp/sums.json",
            json!({"command": "python3", "args": ["server.py"], "env": {"SITE": "${SITE}"}}),
        );
        let launcher = mcp_launcher(Policy::default(), Arc::new(ApproveAll))
            .with_reads(vec![SDK.clone()])
            .with_environment([("SITE".to_owned(), SDK.to_str().unwrap().to_owned())].into());
        let model = Arc::new(
            ScriptedModel::new()
                .calls("use_skill", json!({"name": "notes"}))
                .calls("mcp__sums__add", json!({"a": 2, "b": 40}))
                .calls("mcp__sums__greet", json!({"name": "Ada"}))
                .calls("mcp__sums__picture", json!({}))
                .calls("mcp__sums__divide", json!({"a": 1, "b": 0}))
                .calls("mcp__sums__add", json!({"a": "two"}))
                .says("done"),
        );
        let (agent, events) = agent_taking(&stage, &model, launcher, &[]);
        let session = Session::new("s");
        stage.runtime.block_on(agent.ask(&session, "sum up")).unwrap();
        let asked = model.asked();
        let names = |at: usize| -> Vec<String> {
            asked[at].tools.iter().map(|it| it.name.clone()).collect()
        };
        assert_eq!(names(0), ["use_skill"]);
        let all = [
            "use_skill",
            "mcp__sums__add",
            "mcp__sums__greet",
            "mcp__sums__picture",
            "mcp__sums__divide",
            "mcp__sums__learn",
        ];
        for at in 1..7 {
            assert_eq!(names(at), all);
        }
        let add = &asked[1].tools[1];
        assert!(add.description.starts_with("Adds two numbers.\n"), "{}", add.description);
        assert!(add.description.contains("the server `sums`, which the skill `notes` brought"));
        assert_eq!(add.input_schema["properties"]["a"]["type"], "integer");
        let results: Vec<String> = session
            .messages()
            .into_iter()
            .filter(|it| it.call_id.is_some())
            .map(|it| it.content)
            .collect();
        assert_eq!(results[1], "42");
        assert_eq!(results[2], "Hello, Ada!");
        assert_eq!(results[3], "[image image/png, 30 bytes]");
        assert!(
            results[4].contains(r#""status":"failed""#) && results[4].contains("divide"),
            "{results:#?}"
        );
        assert!(results[5].contains(r#""status":"invalid""#), "{results:#?}");
        assert_eq!(states(&events), ["started"]);
        drop((agent, session));
        stage.nobody_is_left();
    }

    #[test]
    fn no_name_stands_in_for_another() {
        let names = "['read_file', 'use_skill', 'mcp__files__echo', 'a b', 'a.b', 'a/b', '../x', '…', 'x' * 300 + 'a', 'x' * 300 + 'b', 'echo', 'Echo']";
        let stage = Stage::with_server(&format!(
            "def tools(cursor): return {{'tools': [tool(it) for it in {names}]}}\ndef call(name, given): return text(name[-1] + str(len(name)))"
        ));
        stage.world.write("skills/more/SKILL.md", "---\nname: more\ndescription: More\n---\n");
        for file in [".mcp.json", "server.py"] {
            fs::copy(
                stage.world.path("skills/notes").join(file),
                stage.world.path("skills/more").join(file),
            )
            .unwrap();
        }
        let model =
            Arc::new(ScriptedModel::new().calls("mcp__files__a_b_2", json!({})).says("done"));
        let (agent, events) = agent_taking(
            &stage,
            &model,
            mcp_launcher(Policy::default(), Arc::new(ApproveAll)),
            &["notes", "more"],
        );
        let session = Session::new("s");
        stage.runtime.block_on(agent.ask(&session, "x")).unwrap();
        let names = offered(&model);
        assert_eq!(
            names[..10],
            [
                "use_skill",
                "mcp__files__read_file",
                "mcp__files__use_skill",
                "mcp__files__mcp_files_echo",
                "mcp__files__a_b",
                "mcp__files__a_b_2",
                "mcp__files__a_b_3",
                "mcp__files__x",
                &format!("mcp__files__{}", "x".repeat(52)),
                &format!("mcp__files__{}_2", "x".repeat(50)),
            ]
        );
        assert!(names.contains(&"mcp__more_files__read_file".to_owned()), "{names:#?}");
        assert_eq!(names.len(), 1 + 11 + 11);
        let is_plain = |it: &String| {
            it.len() <= 64 && it.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
        };
        assert!(names.iter().all(is_plain), "{names:#?}");
        assert!(messages(&events).contains("`…` is left out"), "{}", messages(&events));
        let result = session.messages().into_iter().find(|it| it.call_id.is_some()).unwrap();
        assert_eq!(result.content, "b3");
    }

    #[test]
    fn lists_come_in_pages_and_change() {
        let stage = Stage::with_server(
            "later = []\n\
             def tools(cursor):\n    page = int(cursor or 0)\n    \
             return {'tools': [tool(f't{page}')] + later, **({'nextCursor': str(page + 1)} if page < 3 else {})}\n\
             def call(name, given):\n    later.append(tool('late'))\n    send(method='notifications/tools/list_changed')\n    return text('ok')",
        );
        let model = Arc::new(ScriptedModel::new().calls("mcp__files__t0", json!({})).says("done"));
        let (agent, events) =
            agent(&stage, &model, mcp_launcher(Policy::default(), Arc::new(ApproveAll)));
        let session = Session::new("s");
        stage.runtime.block_on(agent.ask(&session, "x")).unwrap();
        let first: Vec<String> = model.asked()[0].tools.iter().map(|it| it.name.clone()).collect();
        assert_eq!(
            first[1..],
            ["mcp__files__t0", "mcp__files__t1", "mcp__files__t2", "mcp__files__t3"]
        );
        // A notification of a server may arrive a moment after an answer.
        until("the new tool is offered", || {
            let _ = stage.runtime.block_on(agent.ask(&session, "y"));
            offered(&model).contains(&"mcp__files__late".to_owned())
        });
        assert_eq!(states(&events), ["started", "started"]);
    }
}

mod a_server_can_run_somewhere_else {
    use super::*;

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs pip and a network")]
    fn a_17_one_on_the_official_sdk_is_asked_over_http() {
        for options in [&["--http"][..], &["--http", "--json"]] {
            let remote = SdkServer::new(options);
            let url = format!("http://127.0.0.1:{}/mcp", remote.port);
            let headers = json!({"Authorization": "Bearer ${WORD}"});
            let stage = Stage::new().file("mcp/sums.json", json!({"url": url, "headers": headers}));
            let word = [("WORD".to_owned(), "open sesame".to_owned())];
            let launcher =
                mcp_launcher(local(), Arc::new(ApproveAll)).with_environment(word.into());
            let model = Arc::new(
                ScriptedModel::new()
                    .calls("mcp__sums__add", json!({"a": 2, "b": 40}))
                    .calls("mcp__sums__picture", json!({}))
                    .calls("mcp__sums__divide", json!({"a": 1, "b": 0}))
                    .calls("mcp__sums__learn", json!({}))
                    .calls("mcp__sums__greet", json!({"name": "Ada"}))
                    .calls("mcp__sums__late", json!({}))
                    .says("done"),
            );
            let (agent, events) = agent(&stage, &model, launcher);
            let session = Session::new("s");
            stage.runtime.block_on(agent.ask(&session, "sum up")).unwrap();
            let messages = session.messages().into_iter();
            let results: Vec<String> =
                messages.filter(|it| it.call_id.is_some()).map(|it| it.content).collect();
            assert_eq!(results[..2], ["42", "[image image/png, 30 bytes]"]);
            assert!(results[2].contains(r#""status":"failed""#), "{results:#?}");
            assert_eq!(results[3..], ["learnt", "Hello, Ada!", "late"]);
            assert_eq!(states(&events), ["started", "started"], "{}", super::messages(&events));
            let lines = remote.lines();
            assert_eq!(lines[0], "POST False");
            assert!(lines.contains(&"GET True".to_owned()), "{lines:?}");
            assert!(!lines.iter().any(|it| it.starts_with("DELETE")), "{lines:?}");
            drop((agent, session));
            until("it is told", || remote.lines().contains(&"DELETE True".to_owned()));
        }
    }
}

mod a_bad_server_is_an_outcome {
    use super::*;

    #[test]
    fn one_that_has_died_is_started_again_once_a_turn() {
        let stage = Stage::with_server("def call(name, given): sys.exit(3)");
        let step = |it: ScriptedModel| it.calls("mcp__files__echo", json!({}));
        let model = step(step(step(ScriptedModel::new()))).says("one");
        let model = step(model).says("two");
        let model = Arc::new(model.says("three"));
        let (agent, events) =
            agent(&stage, &model, mcp_launcher(Policy::default(), Arc::new(ApproveAll)));
        let session = Session::new("s");
        stage.runtime.block_on(async {
            for (prompt, answer) in [("x", "one"), ("y", "two"), ("z", "three")] {
                assert_eq!(agent.ask(&session, prompt).await.unwrap().message.content, answer);
            }
        });
        assert_eq!(
            states(&events),
            ["started", "failed", "started", "failed", "started", "failed"]
        );
        let has: Vec<bool> = model.asked().iter().map(|it| it.tools.len() == 2).collect();
        // Turn one: starts, restarts, stays down, stays down. Turn two: restarts, and is not
        // called.
        assert_eq!(has, [true, true, false, false, true, false, false]);
        assert!(messages(&events).contains("exited with code 3"));
    }
}

mod servers_end_with_whom_they_belong_to {
    use super::*;

    #[test]
    fn a_17_they_end_with_the_session_the_agent_and_the_skill() {
        let stage = Stage::with_server("");
        let asks = |agent: &Agent| {
            let session = Session::new("same");
            stage.runtime.block_on(agent.ask(&session, "x")).unwrap();
            session
        };
        let model = Arc::new((0..6).fold(ScriptedModel::new(), |it, _| it.says("x")));
        let (agent, events) =
            agent(&stage, &model, mcp_launcher(Policy::default(), Arc::new(ApproveAll)));
        let (first, second) = (asks(&agent), asks(&agent));
        assert_eq!((stage.processes(), stage.works()), (2, 2));
        drop(first);
        until("one is left", || (stage.processes(), stage.works()) == (1, 1));
        stage.runtime.block_on(agent.ask(&second, "y")).unwrap();
        assert_eq!(states(&events), ["started", "started"]);
        drop(agent);
        stage.nobody_is_left();
        until("no directory is left", || stage.works() == 0);
        drop(second);

        let provider = Arc::new(Shelf(Mutex::new(Arc::new(stage.world.load()))));
        let (agent, events) = agent_of(
            &model,
            mcp_launcher(Policy::default(), Arc::new(ApproveAll)),
            provider.clone(),
            &["notes"],
        );
        let session = asks(&agent);
        assert_eq!(stage.processes(), 1);
        stage.world.remove("skills/notes/SKILL.md");
        *provider.0.lock().unwrap() = Arc::new(stage.world.load());
        stage.runtime.block_on(agent.ask(&session, "y")).unwrap();
        assert_eq!(states(&events), ["started", "stopped"]);
        assert_eq!(model.asked().last().unwrap().tools.len(), 1);
        stage.nobody_is_left();
    }

    #[test]
    fn a_17_a_killed_agent_leaves_nobody() {
        const CHILD: &str = "PROWESS_SPECS_SERVERS";
        const NAME: &str =
            "servers::servers_end_with_whom_they_belong_to::a_17_a_killed_agent_leaves_nobody";
        if let Some(root) = env::var_os(CHILD) {
            // This is the process that is killed.
            let options = prowess::Options {
                directories: vec![prowess::Directory::new("skills")],
                cwd: Some(PathBuf::from(&root)),
                home: Some(PathBuf::from(&root)),
                ..prowess::Options::default()
            };
            let library = Arc::new(Library::load(&options).unwrap());
            let model = ScriptedModel::new().says("x");
            let layer = Servers::new(
                mcp_launcher(Policy::default(), Arc::new(ApproveAll)),
                Arc::new(library),
            );
            let agent =
                Agent::new(Arc::new(model)).with(Takes(vec!["notes".to_owned()])).with(layer);
            let session = Session::new("s");
            let runtime = Runtime::new().unwrap();
            runtime.block_on(agent.ask(&session, "x")).unwrap();
            fs::write(Path::new(&root).join("ready"), "").unwrap();
            thread::sleep(Duration::from_secs(60));
            return;
        }
        let stage = Stage::with_server("");
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, stage.world.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the agent has begun", || stage.world.path("ready").exists());
        assert_eq!((stage.processes(), stage.works()), (1, 1));
        child.kill().unwrap();
        child.wait().unwrap();
        stage.nobody_is_left();
        until("its directory is gone", || stage.works() == 0);
    }
}

/// Returns an agent in which `notes` is active.
fn agent(stage: &Stage, model: &Arc<ScriptedModel>, launcher: McpLauncher) -> (Agent, Events) {
    agent_taking(stage, model, launcher, &["notes"])
}

fn agent_taking(
    stage: &Stage,
    model: &Arc<ScriptedModel>,
    launcher: McpLauncher,
    skills: &[&str],
) -> (Agent, Events) {
    let provider = Arc::new(Arc::new(stage.world.load()));
    agent_of(model, launcher, provider, skills)
}

fn agent_of(
    model: &Arc<ScriptedModel>,
    launcher: McpLauncher,
    provider: Arc<dyn SkillProvider>,
    skills: &[&str],
) -> (Agent, Events) {
    let events = Events::default();
    let authorizer = Authorizer::new(Policy::default(), Arc::new(DenyAll));
    let active = Arc::new(ActiveSkills::new(provider.clone()));
    let toolbox = Toolbox::new(Arc::new(authorizer)).with(Arc::new(UseSkill { active }));
    let agent = Agent::new(model.clone())
        .with(Watches(events.clone()))
        .with(ToolLoop::new(Arc::new(toolbox)))
        .with(Takes(skills.iter().map(|&it| it.to_owned()).collect()))
        .with(Servers::new(launcher, provider));
    (agent, events)
}

type Events = Arc<Mutex<Vec<EventKind>>>;

/// Returns the states of servers, in order.
fn states(events: &Events) -> Vec<String> {
    let events = events.lock().unwrap();
    let states = events.iter().filter_map(|it| match it {
        EventKind::Server { state, .. } => Some(state.clone()),
        _ => None,
    });
    states.collect()
}

/// Returns the messages about servers.
fn messages(events: &Events) -> String {
    let events = events.lock().unwrap();
    let messages = events.iter().filter_map(|it| match it {
        EventKind::Server { message, .. } | EventKind::Warned { message } => Some(message.clone()),
        _ => None,
    });
    messages.collect::<Vec<_>>().join("\n")
}

/// Returns the tools in the last request to a model.
fn offered(model: &ScriptedModel) -> Vec<String> {
    model.asked().last().unwrap().tools.iter().map(|it| it.name.clone()).collect()
}

/// Records events.
#[derive(Debug)]
struct Watches(Events);

impl Middleware for Watches {
    fn name(&self) -> &str {
        "watches"
    }

    fn note(&self, _: &Turn, what: &EventKind) {
        self.0.lock().unwrap().push(what.clone());
    }
}

/// Activates these skills, and those that the model activates.
#[derive(Debug)]
struct Takes(Vec<String>);

impl Middleware for Takes {
    fn name(&self) -> &str {
        "takes"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        self.0.iter().for_each(|it| request.turn.activate(it));
        next.reply(request)
    }

    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> CallFuture<'a> {
        let input: Json = serde_json::from_str(&call.arguments).unwrap();
        if call.name == "use_skill" {
            turn.activate(input["name"].as_str().unwrap());
        }
        next.call(call)
    }
}

/// A library that changes.
#[derive(Debug)]
struct Shelf(Mutex<Arc<Library>>);

impl SkillProvider for Shelf {
    fn library(&self) -> Arc<Library> {
        self.0.lock().unwrap().clone()
    }
}
