//! The toolbox and the tool `use_skill`.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use prowess_runtime::{
    Action, Authorizer, DenyAll, Outcome, OutcomeStatus, Policy, Tool, Toolbox,
    policy::{Decision, PolicyRule, Roots},
    sandbox::Root,
    skill::ActiveSkills,
    tool::{ToolFormat, ToolFuture},
    toolbox::Calls,
    tools::{ReadFile, UseSkill},
};
use prowess_testing::tools::{dropped_when, reached};
use serde_json::{Value as Json, json};

use crate::world::World;

/// A tool that does what a test needs, and counts its calls.
#[derive(Debug)]
struct Sample {
    name: String,
    does: Does,
    calls: AtomicUsize,
    running: AtomicUsize,
    most: AtomicUsize,
}

#[derive(Debug, Clone, Copy)]
enum Does {
    Echo,
    Wait(Duration),
    Fail,
    Panic,
    PanicWhenAsked,
    Flood(usize),
}

impl Sample {
    fn new(name: &str, does: Does) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            does,
            calls: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

/// Exists while a call runs.
struct Running<'a>(&'a Sample);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tool for Sample {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> Cow<'_, str> {
        "Does what a test wants.".into()
    }

    fn input_schema(&self) -> Json {
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to say"},
                "times": {"type": "integer", "minimum": 1},
            },
            "required": ["text"],
            "additionalProperties": false,
        })
    }

    fn aliases(&self) -> &[(&str, &str)] {
        &[("words", "text")]
    }

    fn action(&self, _: &Json) -> Result<Action, Box<Outcome>> {
        match self.does {
            Does::PanicWhenAsked => panic!("it was asked"),
            _ => Ok(Action::Query("sample".to_owned())),
        }
    }

    fn perform<'a>(&'a self, _: Action, input: Json) -> ToolFuture<'a> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            let _running = Running(self);
            match self.does {
                Does::Echo => Outcome::ok(input),
                Does::Wait(time) => {
                    tokio::time::sleep(time).await;
                    Outcome::ok(input)
                }
                Does::Fail => Outcome::bad(OutcomeStatus::Failed, input["text"].as_str().unwrap()),
                Does::Panic | Does::PanicWhenAsked => panic!("it was called"),
                Does::Flood(bytes) => Outcome::ok("ä".repeat(bytes / 2)),
            }
        })
    }
}

fn authorizer(policy: Policy) -> Arc<Authorizer> {
    Arc::new(Authorizer::new(policy, Arc::new(DenyAll)))
}

fn toolbox(tools: impl IntoIterator<Item = Arc<Sample>>) -> Toolbox {
    let empty = Toolbox::new(authorizer(Policy::default()));
    tools.into_iter().fold(empty, |toolbox, tool| toolbox.with(tool))
}

fn said(outcome: &Outcome) -> (OutcomeStatus, &str, &str) {
    let (message, hint) = (outcome.message.as_deref(), outcome.hint.as_deref());
    (outcome.status, message.unwrap_or_default(), hint.unwrap_or_default())
}

/// Waits until no call of a tool is running.
async fn assert_let_go(tool: &Sample) {
    reached("no call is running", || tool.running() == 0).await;
}

mod the_toolbox_knows_its_tools {
    use super::*;

    #[tokio::test]
    async fn an_unknown_tool_is_told_from_a_wrong_input() {
        let toolbox = toolbox([Sample::new("read_file", Does::Echo)]);
        let outcome = toolbox.call("raed_file", json!({"x": 1})).await;
        let (message, hint) = ("there is no tool `raed_file`", "did you mean `read_file`?");
        assert_eq!(said(&outcome), (OutcomeStatus::NotFound, message, hint));
        let outcome = toolbox.call("something", json!({})).await;
        assert_eq!(said(&outcome).2, "there are read_file");
        assert_eq!(toolbox.call("read_file", json!({"x": 1})).await.status, OutcomeStatus::Invalid);
    }

    #[tokio::test]
    async fn a_name_is_found_in_any_case() {
        let echo = |name: &str| Sample::new(name, Does::Echo);
        let tools = || [echo("skill_c1"), echo("Two"), echo("TWO")];
        let own = toolbox(tools());
        let text = || json!({"text": "a"});
        assert!(own.call("skill_C1", text()).await.is_ok());
        assert!(own.call("Two", text()).await.is_ok());
        assert_eq!(own.call("two", text()).await.status, OutcomeStatus::NotFound);
        // A rule cannot be bypassed by a different case.
        let rule = PolicyRule { tool: Some("skill_c1".into()), ..PolicyRule::new(Decision::Deny) };
        let denying = authorizer(Policy { rules: vec![rule], ..Policy::default() });
        let own = tools().into_iter().fold(Toolbox::new(denying), |own, it| own.with(it));
        assert_eq!(own.call("SKILL_c1", text()).await.status, OutcomeStatus::Refused);
    }

    #[tokio::test]
    async fn no_name_stands_for_two_tools() {
        let (first, second) = (Sample::new("one", Does::Echo), Sample::new("one", Does::Panic));
        let toolbox = toolbox([first.clone(), second.clone(), Sample::new("two", Does::Echo)]);
        let names: Vec<&str> = toolbox.tools().iter().map(|it| it.name()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(toolbox.left_out(), ["one"]);
        assert!(toolbox.call("one", json!({"text": "a"})).await.is_ok());
        assert_eq!((first.calls(), second.calls()), (1, 0));
    }
}

mod a_call_is_what_the_schema_asks_for {
    use super::*;

    #[tokio::test]
    async fn everything_that_is_wrong_with_an_input_is_told_at_once() {
        let tool = Sample::new("one", Does::Echo);
        let toolbox = toolbox([tool.clone()]);
        for (input, wanted) in [
            (
                json!({"times": "3", "txt": "a"}),
                "`text` is missing; `times` is not of type \"integer\"; `txt` is not a parameter",
            ),
            (json!({"text": "a", "times": 0}), "`times` is less than the minimum of 1"),
            (json!({"text": null}), "`text` is missing"),
            (json!(null), "`text` is missing"),
            (json!(["a"]), "is not of type \"object\""),
            (json!("{\"text\": \"a\"}"), "is not of type \"object\""),
        ] {
            let outcome = toolbox.call("one", input.clone()).await;
            let message = format!("invalid input: {wanted}");
            let meant = if input.get("txt").is_some() { "did you mean `text`? " } else { "" };
            let hint = format!("{meant}`one` takes `text` (string, required), `times` (integer)");
            assert_eq!(said(&outcome), (OutcomeStatus::Invalid, &*message, &*hint), "{input}");
        }
        assert_eq!(tool.calls(), 0);
    }

    #[tokio::test]
    async fn inputs_are_taken_under_the_names_that_others_use_for_them() {
        let toolbox = toolbox([Sample::new("one", Does::Echo)]);
        let outcome = toolbox.call("one", json!({"words": "a", "times": null})).await;
        assert_eq!(outcome.output, Some(json!({"text": "a"})));
    }
}

mod a_call_passes_the_gate_first {
    use super::*;

    #[tokio::test]
    async fn what_the_gate_refuses_is_not_called() {
        let tool = Sample::new("one", Does::Echo);
        let deny = PolicyRule { tool: Some("one".to_owned()), ..PolicyRule::new(Decision::Deny) };
        let policy = Policy { rules: vec![deny], ..Policy::default() };
        let toolbox = Toolbox::new(authorizer(policy)).with(tool.clone());
        let outcome = toolbox.call("one", json!({"text": "a"})).await;
        assert_eq!(outcome.status, OutcomeStatus::Refused);
        assert_eq!(tool.calls(), 0);
    }

    #[tokio::test]
    async fn the_gate_knows_which_skills_are_active() {
        let world = World::new().skill("careful", "a").skill("other", "b");
        let active = Arc::new(ActiveSkills::new(Arc::new(Arc::new(world.load()))));
        let deny = PolicyRule {
            tool: Some("one".to_owned()),
            skill: Some("careful".to_owned()),
            ..PolicyRule::new(Decision::Deny)
        };
        let policy = Policy { rules: vec![deny], ..Policy::default() };
        let toolbox = Toolbox::new(authorizer(policy))
            .with(Arc::new(UseSkill { active: active.clone() }))
            .with(Sample::new("one", Does::Echo))
            .with_active(active);
        let call = async || toolbox.call("one", json!({"text": "a"})).await.status;
        assert!(toolbox.call("use_skill", json!({"name": "other"})).await.is_ok());
        assert_eq!(call().await, OutcomeStatus::Ok);
        assert!(toolbox.call("use_skill", json!({"name": "careful"})).await.is_ok());
        assert_eq!(call().await, OutcomeStatus::Refused);
    }
}

mod a_call_is_bounded_and_harms_no_other {
    use super::*;

    const FOREVER: Does = Does::Wait(Duration::from_secs(3600));

    #[tokio::test]
    async fn a_call_that_takes_too_long_is_stopped() {
        let tool = Sample::new("slow", FOREVER);
        let timeout = Duration::from_millis(100);
        let toolbox = toolbox([tool.clone()]).with_calls(Calls { timeout, ..Calls::default() });
        let outcome = toolbox.call("slow", json!({"text": "a"})).await;
        assert_eq!(
            said(&outcome),
            (OutcomeStatus::TimedOut, "`slow` was stopped after 100 ms", "")
        );
        assert_let_go(&tool).await;
    }

    #[tokio::test]
    async fn an_output_that_is_too_long_is_cut_and_says_so() {
        let tools = [Sample::new("flood", Does::Flood(10_001)), Sample::new("echo", Does::Echo)];
        let toolbox = toolbox(tools).with_calls(Calls { output: 1001, ..Calls::default() });
        let output = toolbox.call("flood", json!({"text": "a"})).await.output.unwrap();
        let wanted = json!({"text": "ä".repeat(500), "left_out": "9000 of 10000 bytes"});
        assert_eq!(output, wanted);
        let input = json!({"text": "x".repeat(2000)});
        let output = toolbox.call("echo", input.clone()).await.output.unwrap();
        assert_eq!(output["text"], input.to_string()[..1001]);
        let short = toolbox.call("echo", json!({"text": "x"})).await.output.unwrap();
        assert_eq!(short, json!({"text": "x"}));
    }

    #[tokio::test]
    async fn a_tool_that_breaks_down_is_an_outcome() {
        let tools = [
            Sample::new("panic", Does::Panic),
            Sample::new("asked", Does::PanicWhenAsked),
            Sample::new("echo", Does::Echo),
        ];
        let toolbox = toolbox(tools);
        for name in ["panic", "asked"] {
            let outcome = toolbox.call(name, json!({"text": "a"})).await;
            let message = format!("the tool `{name}` crashed");
            let hint = "this is a bug in the tool, not in the input";
            assert_eq!(said(&outcome), (OutcomeStatus::Failed, &*message, hint));
        }
        assert!(toolbox.call("echo", json!({"text": "a"})).await.is_ok());
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_is_cancelled() {
        let tool = Sample::new("slow", FOREVER);
        let toolbox = toolbox([tool.clone()]).with_calls(Calls { at_once: 1, ..Calls::default() });
        for _ in 0..3 {
            let call = toolbox.call("slow", json!({"text": "a"}));
            dropped_when("the call is running", || tool.running() == 1, call).await;
            assert_let_go(&tool).await;
        }
        // Each had the only permit, and has released it.
        assert_eq!(tool.calls(), 3);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 8)]
    async fn five_hundred_calls_at_once_are_all_answered() {
        const AT_ONCE: usize = 40;
        const NAMES: [&str; 5] = ["echo", "slow", "fail", "panic", "endless"];
        let does =
            [Does::Echo, Does::Wait(Duration::from_millis(50)), Does::Fail, Does::Panic, FOREVER];
        let tools: Vec<Arc<Sample>> =
            NAMES.into_iter().zip(does).map(|(name, does)| Sample::new(name, does)).collect();
        let slow = tools[1].clone();
        let timeout = Duration::from_secs(2);
        let calls = Calls { timeout, at_once: AT_ONCE, ..Calls::default() };
        let toolbox = Arc::new(toolbox(tools).with_calls(calls));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..500 {
            let toolbox = toolbox.clone();
            tasks.spawn(async move {
                let input = json!({"text": number.to_string()});
                (number, toolbox.call(NAMES[number % 5], input).await)
            });
        }
        for (number, outcome) in tasks.join_all().await {
            let text = number.to_string();
            match number % 5 {
                0 | 1 => assert_eq!(outcome.output, Some(json!({"text": text})), "{outcome:?}"),
                2 => assert_eq!(said(&outcome), (OutcomeStatus::Failed, &*text, "")),
                3 => assert_eq!(outcome.message.unwrap(), "the tool `panic` crashed"),
                _ => assert_eq!(outcome.status, OutcomeStatus::TimedOut),
            }
        }
        assert_eq!(slow.calls(), 100);
        assert!(slow.most.load(Ordering::SeqCst) <= AT_ONCE);
    }
}

mod a_skill_is_taken_up_by_its_name {
    use super::*;

    fn using(world: &World) -> Toolbox {
        let active = Arc::new(ActiveSkills::new(Arc::new(Arc::new(world.load()))));
        let roots = Arc::new(Roots::new(vec![Root::open(&world.path("home")).unwrap()]));
        Toolbox::new(authorizer(Policy::default()))
            .with(Arc::new(UseSkill { active: active.clone() }))
            .with(Arc::new(ReadFile::new(active.clone(), roots)))
            .with_active(active)
    }

    #[tokio::test]
    async fn m_16_m_17_the_instructions_come_with_the_files_of_the_skill() {
        let text = "---\nname: one\ndescription: a\n---\n\nRead `references/notes.md`.\n";
        let world = World::new()
            .document("one", text)
            .file("skills/one/references/notes.md", "the notes")
            .file("skills/one/scripts/go.sh", "echo");
        let toolbox = using(&world);
        let read = json!({"path": "references/notes.md"});
        assert_ne!(toolbox.call("read_file", read.clone()).await.status, OutcomeStatus::Ok);
        for input in [json!({"name": "one"}), json!({"skill_name": "one"})] {
            let output = toolbox.call("use_skill", input).await.output.unwrap();
            assert_eq!(output["name"], "one");
            assert_eq!(output["resources"], json!(["references/notes.md", "scripts/go.sh"]));
            assert_eq!(output["folder"], json!(world.path("skills/one")));
            assert!(output["instructions"].as_str().unwrap().contains("Read `"), "{output}");
        }
        let output = toolbox.call("read_file", read).await.output.unwrap();
        assert_eq!(output["content"], "the notes");
    }

    #[tokio::test]
    async fn m_18_an_unknown_name_is_told_with_the_nearest_one() {
        let world = World::new().skill("deploy-staging", "a").skill("run-tests", "b");
        let toolbox = using(&world);
        for (name, hint) in [
            ("deploy-stagin", "did you mean `deploy-staging`?"),
            ("something-else", ""),
            ("../deploy-staging", "did you mean `deploy-staging`?"),
            ("", ""),
        ] {
            let outcome = toolbox.call("use_skill", json!({"name": name})).await;
            let message = format!("skill `{name}` not found");
            assert_eq!(said(&outcome), (OutcomeStatus::NotFound, &*message, hint));
        }
    }

    #[tokio::test]
    async fn what_is_switched_off_or_hides_from_models_is_not_given() {
        let skill = |name: &str, more: &str| {
            format!("---\nname: {name}\ndescription: a\n{more}\n---\n\n# {name}\n")
        };
        let world = World::new()
            .document("off", skill("off", "status: disabled"))
            .document("draft", skill("draft", "status: draft"))
            .document("hidden", skill("hidden", "disable-model-invocation: true"))
            .document("on", skill("on", "status: active"));
        let toolbox = using(&world);
        for name in ["off", "draft", "hidden"] {
            let outcome = toolbox.call("use_skill", json!({"name": name})).await;
            assert_eq!(outcome.status, OutcomeStatus::NotFound, "{name}");
        }
        assert!(toolbox.call("use_skill", json!({"name": "on"})).await.is_ok());
    }
}

mod tools_are_told_as_their_readers_want_it {
    use super::*;

    #[test]
    fn each_convention_has_its_form() {
        let tool = Sample::new("one", Does::Echo);
        let schema = tool.input_schema();
        let formatted = |tool_format: ToolFormat| tool_format.format(&*tool).unwrap();
        let description = "Does what a test wants.";
        assert_eq!(
            formatted(ToolFormat::Anthropic),
            json!({"name": "one", "description": description, "input_schema": schema})
        );
        assert_eq!(
            formatted(ToolFormat::Mcp),
            json!({"name": "one", "description": description, "inputSchema": schema})
        );
        let wanted = json!({"type": "function", "function": {
            "name": "one",
            "description": description,
            "strict": true,
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "What to say"},
                    "times": {"type": ["integer", "null"], "minimum": 1},
                },
                "required": ["text", "times"],
                "additionalProperties": false,
            },
        }});
        assert_eq!(formatted(ToolFormat::OpenAi), wanted);
        for name in ["", "no spaces", "ä", &"x".repeat(129)] {
            assert_eq!(ToolFormat::Mcp.format(&*Sample::new(name, Does::Echo)), None, "{name}");
        }
    }
}
