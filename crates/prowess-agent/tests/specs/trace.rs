//! Traces: written by middleware, exported as spans, shown as a page in a real browser.

use std::{
    borrow::Cow,
    fs, io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use prowess::{Level, Offer, Priority};
use prowess_agent::{
    Agent, Collector, CollectorProtocol, EventKind, Middleware, Model, ModelError, Next, Otlp,
    RecordedTrace, Request, ResponseFuture, ScriptedModel, Session, SkillScore, SpanExporter,
    Spans, TokenUsage, ToolLoop, Trace, Turn,
};
use prowess_runtime::{
    Action, Authorizer, DenyAll, Outcome, OutcomeStatus, Policy, Tool, Toolbox, files::Journal,
};
use prowess_testing::tools::dropped_when;
use serde_json::{Value as Json, json};

use crate::{
    server::{Server, answer, nowhere},
    world::{World, several_subscribers},
};

/// A tool that returns its input, or fails on request.
#[derive(Debug)]
struct Look;

impl Tool for Look {
    fn name(&self) -> &str {
        "look"
    }

    fn description(&self) -> Cow<'_, str> {
        "Looks at something".into()
    }

    fn input_schema(&self) -> Json {
        json!({"type": "object", "properties": {"at": {"type": "string"}, "fail": {"type": "boolean"}}})
    }

    fn action(&self, _: &Json) -> Result<Action, Box<Outcome>> {
        Ok(Action::Tell)
    }

    fn perform<'a>(&'a self, _: Action, input: Json) -> prowess_runtime::tool::ToolFuture<'a> {
        Box::pin(async move {
            match input["fail"] == true {
                true => Outcome::bad(OutcomeStatus::Failed, "cannot see with Bearer s3cr3ttoken"),
                false => {
                    Outcome::ok(format!("seen: {}", input["at"].as_str().unwrap_or("nothing")))
                }
            }
        })
    }
}

/// Middleware that discloses two skills, and emits the events of others.
#[derive(Debug)]
struct Shows;

impl Middleware for Shows {
    fn name(&self) -> &str {
        "shows"
    }

    fn model<'a>(&'a self, mut request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        let turn = request.turn.clone();
        let score = |name: &str, confidence, level: Option<&str>, why: &str| {
            let mut score = SkillScore::new(name, confidence);
            score.level = level.map(str::to_owned);
            score.why = vec![why.to_owned()];
            score.carried = name == "binoculars";
            score
        };
        if turn.steps() == 0 {
            turn.note(EventKind::Discovered { skills: 3, findings: vec!["a finding".to_owned()] });
            turn.note(EventKind::Matched {
                query: "look".to_owned(),
                strategy: "semantic".to_owned(),
                scores: vec![
                    score("lookout", 0.91, Some("full"), "look in name"),
                    score("binoculars", 0.4, Some("brief"), "far in body"),
                    score("telescope", 0.1, None, "stars in tags"),
                ],
                unknown: vec!["lokout".to_owned()],
            });
            for (skill, level, tokens) in [("lookout", "full", 120), ("binoculars", "brief", 14)] {
                let (skill, level) = (skill.to_owned(), level.to_owned());
                turn.note(EventKind::Disclosed { skill, level, by: "matched".to_owned(), tokens });
            }
            turn.note(EventKind::Approval {
                what: "look out of the window".to_owned(),
                why: "it is far".to_owned(),
                reply: "once".to_owned(),
                by: "person".to_owned(),
            });
        }
        turn.note(EventKind::Fitted {
            window: 2000,
            tokens: json!({"system": 10}),
            skills: json!([{"name": "telescope", "priority": "inactive", "level": "brief", "tokens": 7, "kept": false, "left_out_by": "evict"}]),
            steps: json!([{"step": "evict", "before": 1900, "after": 1700, "what": "telescope is left out"}]),
        });
        let spent = TokenUsage { input: 100, output: 20, cached: 0, ..TokenUsage::default() };
        turn.note(EventKind::Spending { spent, cost: Some(0.25), turn_cost: Some(0.25) });
        request.prompt.catalog = "Skills: lookout, binoculars, telescope.".to_owned();
        let offer = |name: &str, text: &str| Offer {
            name: name.to_owned(),
            description: "helps to look".to_owned(),
            priority: Priority::Active,
            contents: vec![(Level::Full, text.to_owned())],
        };
        request.prompt.skills = vec![
            offer("lookout", "Climb the mast first."),
            offer("binoculars", "Clean the lenses."),
        ];
        next.reply(request)
    }
}

fn toolbox() -> Arc<Toolbox> {
    let authorizer = Authorizer::new(Policy::default(), Arc::new(DenyAll));
    Arc::new(Toolbox::new(Arc::new(authorizer)).with(Arc::new(Look)))
}

/// Returns an agent with the tool, and with these outer middleware.
fn agent(model: ScriptedModel, layers: Vec<Arc<dyn Middleware>>) -> Agent {
    let agent = Agent::new(Arc::new(model)).with_system("You look at things.");
    let agent = layers.into_iter().fold(agent, Agent::with_shared);
    agent.with(ToolLoop { max_steps: 60, ..ToolLoop::new(toolbox()) }).with(Shows)
}

/// Returns a model that calls the tool once and then reports its result.
fn looker() -> ScriptedModel {
    ScriptedModel::new().calls("look", json!({"at": "the sea"})).says("I have seen the sea.")
}

/// Returns a trace in memory, and its lines.
fn memory() -> (Arc<Trace>, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let own = lines.clone();
    let trace = Trace::new(move |line| {
        own.lock().unwrap().push(line.to_owned());
        Ok(())
    });
    (Arc::new(trace), lines)
}

fn events(lines: &Mutex<Vec<String>>) -> Vec<Json> {
    lines.lock().unwrap().iter().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn kinds(events: &[Json]) -> Vec<&str> {
    events.iter().map(|it| it["event"].as_str().unwrap()).collect()
}

/// A model that never replies.
#[derive(Debug, Default)]
struct Silent {
    asked: AtomicBool,
}

impl Model for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn provider(&self) -> &str {
        "gemini"
    }

    fn reply<'a>(
        &'a self,
        _: &'a prowess_agent::ChatRequest,
        _: &'a (dyn Fn(prowess_agent::Delta<'_>) + Send + Sync),
    ) -> prowess_agent::ModelFuture<'a> {
        self.asked.store(true, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

mod everything_that_happens_is_written_down {
    use super::*;

    #[tokio::test]
    async fn a_26_every_event_is_a_line_of_json() {
        let world = World::new();
        let journal = Journal::open(world.path("trace.jsonl")).unwrap();
        let agent = agent(looker(), vec![Arc::new(Trace::journal(journal))]);
        agent.ask(&Session::new("s1"), "look at the sea").await.unwrap();
        let text = fs::read_to_string(world.path("trace.jsonl")).unwrap();
        assert!(text.ends_with('\n'));
        let lines: Vec<Json> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let kinds: Vec<&str> = kinds(&lines).into_iter().filter(|it| *it != "said").collect();
        let expected = [
            "trace",
            "began",
            "discovered",
            "matched",
            "disclosed",
            "disclosed",
            "approval",
            "fitted",
            "spending",
            "asked",
            "replied",
            "called",
            "returned",
            "fitted",
            "spending",
            "asked",
            "replied",
            "ended",
        ];
        assert_eq!(kinds, expected);
        for event in lines.iter().filter(|it| it["event"] != "said" && it["event"] != "trace") {
            assert!(event["at"].as_u64().unwrap() > 1_700_000_000_000, "{event}");
            assert_eq!((&event["session"], &event["turn"]), (&json!("s1"), &json!(1)), "{event}");
        }
        let find = |kind| lines.iter().find(|it| it["event"] == kind).unwrap();
        assert_eq!(find("began")["prompt"], "look at the sea");
        assert_eq!(find("returned")["outcome"]["output"], "seen: the sea");
        assert_eq!(find("ended")["answer"], "I have seen the sea.");
        assert_eq!(find("asked")["model"], "scripted");
    }

    #[tokio::test]
    async fn m_32_a_04_discovery_activation_and_disclosure_are_in_the_trace() {
        let (trace, lines) = memory();
        let agent = agent(looker(), vec![trace]);
        agent.ask(&Session::new("s"), "look").await.unwrap();
        let events = events(&lines);
        let find = |kind| events.iter().find(|it| it["event"] == kind).unwrap();
        assert_eq!(find("discovered")["skills"], 3);
        let first = json!({"name": "lookout", "confidence": 0.91, "level": "full", "why": ["look in name"]});
        assert_eq!(find("matched")["scores"][0], first);
        assert_eq!(find("matched")["scores"][2].get("level"), None);
        let disclosed = find("disclosed");
        let fields = ["skill", "level", "by"].map(|it| disclosed[it].as_str().unwrap());
        assert_eq!(fields, ["lookout", "full", "matched"]);
    }

    #[tokio::test]
    async fn what_is_said_again_is_written_once() {
        let (trace, lines) = memory();
        let filling = "x".repeat(2000);
        let model = (0..50).fold(ScriptedModel::new(), |model, number| {
            model.calls("look", json!({"at": format!("place-{number} {filling}")}))
        });
        let agent = agent(model.says("done"), vec![trace]);
        agent.ask(&Session::new("s"), "the only request").await.unwrap();
        let events = events(&lines);
        let asked: Vec<&Json> = events.iter().filter(|it| it["event"] == "asked").collect();
        assert_eq!(asked.len(), 51);
        let said: Vec<&Json> = events.iter().filter(|it| it["event"] == "said").collect();
        let about = |word: &str| said.iter().filter(|it| it.to_string().contains(word)).count();
        // The call, and its result.
        assert_eq!([about("place-0 "), about("the only request"), about("Looks at")], [2, 1, 1]);
        let size: usize = lines.lock().unwrap().iter().map(String::len).sum();
        let resolve = |id: &Json| *said.iter().find(|it| it["id"] == *id).unwrap();
        let mut last: Vec<&Json> = Vec::new();
        let mut prompts = 0;
        for step in asked {
            last.truncate(step["same"].as_u64().unwrap() as usize);
            last.extend(step["messages"].as_array().unwrap().iter().map(resolve));
            prompts += last.iter().map(|it| it.to_string().len()).sum::<usize>();
        }
        assert!(size * 9 < prompts, "{size} bytes for prompts of {prompts}");
        let longest = lines.lock().unwrap().iter().map(String::len).max().unwrap();
        assert!(longest < 3000, "{longest}");
        assert_eq!(last.len(), 102);
        let text = |message: &Json| -> String {
            let parts = message["message"]["parts"].as_array().unwrap();
            parts.iter().map(|it| it["text"].as_str().unwrap()).collect()
        };
        assert!(text(last[0]).starts_with("You look at things.\n"));
        assert_eq!(text(last[1]), "the only request");
        assert_eq!(text(last[101]), format!("seen: place-49 {filling}"));
        assert_eq!(last[101]["message"]["parts"][0]["from"], "tool:look");
    }

    #[tokio::test]
    async fn a_long_text_is_written_once_whatever_it_is_told_with() {
        let (trace, lines) = memory();
        let long = "far away ".repeat(600);
        let look = json!({"at": format!("{long}sk-ant-api03-Abcdef123456")});
        let model =
            ScriptedModel::new().calls("look", look.clone()).calls("look", look).says("done");
        agent(model, vec![trace]).ask(&Session::new("s"), "look twice").await.unwrap();
        let texts = events(&lines).into_iter().filter(|it| it["event"] == "said");
        let texts: Vec<Json> = texts.filter_map(|it| it.get("text").cloned()).collect();
        assert_eq!(texts, [format!("seen: {long}sk-[masked]")]);
        let read = json!(RecordedTrace::read(lines.lock().unwrap().join("\n").as_bytes()).unwrap());
        let said = read["said"].as_object().unwrap().values();
        let results: Vec<&Json> = said.filter(|it| it["role"] == "tool").collect();
        let part = json!([{"from": "tool:look", "text": texts[0]}]);
        assert_eq!(results.iter().map(|it| &it["parts"]).collect::<Vec<_>>(), [&part, &part]);
    }

    #[tokio::test]
    async fn no_secret_is_written() {
        let (trace, lines) = memory();
        let at = "https://api.test/v1?key=qwertz&page=2 with sk-ant-api03-Abcdef123456 and \
                  Authorization: Basic dXNlcjpwYXNz\nnext line";
        let model = ScriptedModel::new()
            .calls(
                "look",
                json!({"at": at, "headers": {"x-api-key": "hunter", "accept": "text/plain"}}),
            )
            .calls("look", json!({"at": "postgres://me:geheim@db/x"}))
            .says("your token is ghp_0123456789abcdefghij");
        let agent = agent(model, vec![trace]);
        agent.ask(&Session::new("s"), "use Bearer abcdef123456 please").await.unwrap();
        let all = lines.lock().unwrap().join("\n");
        for secret in [
            "qwertz",
            "Abcdef123456",
            "dXNlcjpwYXNz",
            "hunter",
            "geheim",
            "0123456789abcdefghij",
            "abcdef123456",
        ] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
        for kept in ["page=2", "next line", "text/plain", "postgres://me:", "please"] {
            assert!(all.contains(kept), "no {kept} in {all}");
        }
    }

    /// Counts the warnings.
    #[derive(Debug, Default)]
    struct Warnings(AtomicUsize);

    impl Middleware for Warnings {
        fn name(&self) -> &str {
            "warnings"
        }

        fn note(&self, _: &Turn, what: &EventKind) {
            if let EventKind::Warned { message } = what {
                assert_eq!(message, "cannot write the trace: storage full");
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    #[tokio::test]
    async fn a_trace_that_cannot_be_written_spoils_nothing() {
        let tries = Arc::new(AtomicUsize::new(0));
        let own = tries.clone();
        let trace = Trace::new(move |_| {
            own.fetch_add(1, Ordering::SeqCst);
            Err(io::Error::other("storage full"))
        });
        let warnings = Arc::new(Warnings::default());
        let agent = agent(looker(), vec![Arc::new(trace), warnings.clone()]);
        let answer = agent.ask(&Session::new("s"), "look").await.unwrap();
        assert_eq!(answer.message.content, "I have seen the sea.");
        assert!(tries.load(Ordering::SeqCst) > 5);
        assert_eq!(warnings.0.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_turn_that_is_cancelled_has_an_end() {
        let (trace, lines) = memory();
        let model = Arc::new(Silent::default());
        let agent = Agent::new(model.clone()).with_shared(trace);
        let session = Session::new("s");
        let is_asked = || model.asked.load(Ordering::SeqCst);
        dropped_when("the model is asked", is_asked, agent.ask(&session, "hello")).await;
        let events = events(&lines);
        assert_eq!(kinds(&events), ["trace", "began", "said", "asked", "ended"]);
        assert_eq!(events[4]["error"], "cancelled");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn sessions_side_by_side_write_whole_lines() {
        let world = World::new();
        let journal = Journal::open(world.path("trace.jsonl")).unwrap();
        let trace: Arc<dyn Middleware> = Arc::new(Trace::journal(journal));
        let mut asking = tokio::task::JoinSet::new();
        for number in 0..20 {
            let agent = agent(looker(), vec![trace.clone()]);
            asking.spawn(async move {
                agent.ask(&Session::new(format!("s{number}")), "look").await.map(|it| it.steps)
            });
        }
        while let Some(answer) = asking.join_next().await {
            assert_eq!(answer.unwrap().unwrap(), 2);
        }
        let text = fs::read_to_string(world.path("trace.jsonl")).unwrap();
        let lines: Vec<Json> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(kinds(&lines).iter().filter(|it| **it == "trace").count(), 1);
        for number in 0..20 {
            let own: Vec<Json> =
                lines.iter().filter(|it| it["session"] == format!("s{number}")).cloned().collect();
            let kinds = kinds(&own);
            assert_eq!((kinds[0], kinds[kinds.len() - 1], kinds.len()), ("began", "ended", 17));
        }
    }
}

mod what_happens_is_told_as_spans {
    use super::*;

    /// Longer than a collector that answers takes.
    const PATIENT: Duration = Duration::from_secs(30);

    fn collector(url: String, timeout: Duration) -> Collector {
        let headers = vec![("x-team".to_owned(), "sea".to_owned())];
        let service = "specs".to_owned();
        Collector { url, headers, protocol: CollectorProtocol::Json, service, timeout }
    }

    /// Runs a future while its spans are exported.
    fn sending<T>(collector: Collector, run: impl Future<Output = T>) -> (T, SpanExporter) {
        several_subscribers();
        let (otlp, sending) = Otlp::start(collector);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        (tracing::subscriber::with_default(otlp, || runtime.block_on(run)), sending)
    }

    /// Returns the spans that a collector got from a run.
    fn spans<T>(run: impl Future<Output = T>) -> (T, Vec<Json>) {
        let server = Server::saying(answer("200 OK", "", "{}"));
        let (result, sending) = sending(collector(server.url("/v1/traces"), PATIENT), run);
        sending.finish().unwrap();
        let mut spans = Vec::new();
        for asked in server.asked() {
            assert_eq!(asked.line, "POST /v1/traces");
            assert_eq!(asked.header("content-type").unwrap().trim(), "application/json");
            assert_eq!(asked.header("x-team").unwrap().trim(), "sea");
            let body: Json = serde_json::from_str(&asked.body).unwrap();
            let resource = &body["resourceSpans"][0];
            assert_eq!(attribute(&resource["resource"], "service.name")["stringValue"], "specs");
            spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().clone());
        }
        (result, spans)
    }

    fn attribute<'a>(of: &'a Json, key: &str) -> &'a Json {
        let all = of["attributes"].as_array().unwrap();
        all.iter().find(|it| it["key"] == key).map_or(&Json::Null, |it| &it["value"])
    }

    fn named<'a>(spans: &'a [Json], name: &str) -> Vec<&'a Json> {
        spans.iter().filter(|it| it["name"] == name).collect()
    }

    #[test]
    fn a_26_turn_steps_and_calls_are_spans_within_each_other() {
        let spans_layer = Arc::new(Spans::new("sailor"));
        let agent = agent(looker(), vec![spans_layer]);
        let (_, spans) = spans(async { agent.ask(&Session::new("s1"), "look").await.unwrap() });
        assert_eq!(spans.len(), 4, "{spans:#?}");
        let turn = named(&spans, "invoke_agent sailor")[0];
        let steps = named(&spans, "chat scripted");
        let call = named(&spans, "execute_tool look")[0];
        assert_eq!(steps.len(), 2);
        assert_eq!(turn.get("parentSpanId"), None);
        for span in steps.iter().chain([&call]) {
            assert_eq!(span["parentSpanId"], turn["spanId"]);
            assert_eq!(span["traceId"], turn["traceId"]);
        }
        for span in &spans {
            assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
            assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
            let time = |key: &str| span[key].as_str().unwrap().parse::<u128>().unwrap();
            let (start, end) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
            let outer = |key: &str| turn[key].as_str().unwrap().parse::<u128>().unwrap();
            assert!(
                outer("startTimeUnixNano") <= start
                    && start <= end
                    && end <= outer("endTimeUnixNano")
            );
            assert_eq!(span["status"], json!({}));
        }
        let mut ids: Vec<&str> = spans.iter().map(|it| it["spanId"].as_str().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4);
        assert_eq!([&turn["kind"], &steps[0]["kind"], &call["kind"]], [1, 3, 1]);
        for (span, key, value) in [
            (turn, "gen_ai.operation.name", json!({"stringValue": "invoke_agent"})),
            (turn, "gen_ai.agent.name", json!({"stringValue": "sailor"})),
            (turn, "gen_ai.conversation.id", json!({"stringValue": "s1"})),
            (steps[0], "gen_ai.operation.name", json!({"stringValue": "chat"})),
            (steps[0], "gen_ai.provider.name", json!({"stringValue": "scripted"})),
            (steps[0], "gen_ai.request.model", json!({"stringValue": "scripted"})),
            (
                steps[0],
                "gen_ai.response.finish_reasons",
                json!({"arrayValue": {"values": [{"stringValue": "tool_calls"}]}}),
            ),
            (
                steps[1],
                "gen_ai.response.finish_reasons",
                json!({"arrayValue": {"values": [{"stringValue": "stop"}]}}),
            ),
            (steps[1], "gen_ai.usage.output_tokens", json!({"intValue": "6"})),
            (call, "gen_ai.operation.name", json!({"stringValue": "execute_tool"})),
            (call, "gen_ai.tool.name", json!({"stringValue": "look"})),
            (call, "gen_ai.tool.type", json!({"stringValue": "function"})),
            (call, "prowess.status", json!({"stringValue": "ok"})),
        ] {
            assert_eq!(*attribute(span, key), value, "{key} of {span:#}");
        }
        assert!(attribute(call, "gen_ai.tool.call.id")["stringValue"].as_str().unwrap().len() > 3);
        let told: Vec<&str> = turn["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        let expected = [
            "discovered",
            "matched",
            "disclosed",
            "disclosed",
            "approval",
            "fitted",
            "spending",
            "fitted",
            "spending",
        ];
        assert_eq!(told, expected);
        let disclosed = &turn["events"][2];
        assert_eq!(attribute(disclosed, "prowess.skill")["stringValue"], "lookout");
        assert_eq!(attribute(disclosed, "prowess.tokens")["intValue"], "120");
        assert_eq!(attribute(&turn["events"][6], "prowess.cost")["doubleValue"], 0.25);
    }

    #[test]
    fn what_goes_wrong_is_seen_in_its_span() {
        let failing =
            ScriptedModel::new().calls("look", json!({"fail": true})).fails(ModelError::Server {
                provider: "scripted".to_owned(),
                message: "Bearer s3cr3ttoken overloaded".to_owned(),
                wait: None,
            });
        let agent = agent(failing, vec![Arc::new(Spans::new("sailor"))]);
        let (answer, spans) = spans(async { agent.ask(&Session::new("s"), "look").await });
        answer.unwrap_err();
        let steps = named(&spans, "chat scripted");
        let call = named(&spans, "execute_tool look")[0];
        let turn = named(&spans, "invoke_agent sailor")[0];
        assert_eq!(steps[0]["status"], json!({}));
        for (span, kind, words) in [
            (call, "failed", "cannot see"),
            (steps[1], "server_error", "overloaded"),
            (turn, "server_error", "overloaded"),
        ] {
            assert_eq!(span["status"]["code"], 2);
            assert!(span["status"]["message"].as_str().unwrap().contains(words), "{span:#}");
            assert_eq!(attribute(span, "error.type")["stringValue"], kind);
        }
        assert!(!json!(spans).to_string().contains("s3cr3ttoken"));
    }

    #[test]
    fn what_was_said_is_not_sent() {
        let model =
            ScriptedModel::new().calls("look", json!({"at": "xyzzy-input"})).says("xyzzy-answer");
        let agent = agent(model, vec![Arc::new(Spans::new("sailor"))]);
        let (_, spans) =
            spans(async { agent.ask(&Session::new("s"), "xyzzy-request").await.unwrap() });
        assert_eq!(spans.len(), 4);
        assert!(!json!(spans).to_string().contains("xyzzy"));
    }

    #[test]
    fn a_turn_that_is_cancelled_ends_its_spans() {
        let model = Arc::new(Silent::default());
        let agent = Agent::new(model.clone()).with(Spans::new("sailor"));
        let (_, spans) = spans(async {
            let session = Session::new("s");
            let is_asked = || model.asked.load(Ordering::SeqCst);
            dropped_when("the model is asked", is_asked, agent.ask(&session, "hello")).await;
        });
        let names: Vec<&str> = spans.iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["chat silent", "invoke_agent sailor"]);
        assert_eq!(attribute(&spans[0], "gen_ai.provider.name")["stringValue"], "gcp.gemini");
        assert_eq!(spans[1]["status"], json!({"code": 2, "message": "cancelled"}));
    }

    #[test]
    fn a_collector_that_does_not_answer_holds_nobody_up() {
        let nobody = format!("http://{}/v1/traces", nowhere());
        let broken = Server::saying(answer("503 Busy", "", ""));
        let hanging = Server::new(|_, _| {
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        });
        for (url, timeout, why) in [
            (nobody, PATIENT, "Connection refused"),
            (broken.url("/"), PATIENT, "the collector answers 503"),
            (hanging.url("/"), Duration::from_secs(1), "timed out after 1 s"),
            ("ftp://example.com".to_owned(), PATIENT, "expected `http:` or `https:`"),
        ] {
            let agent = agent(looker(), vec![Arc::new(Spans::new("sailor"))]);
            let (answer, sending) = sending(collector(url, timeout), async {
                agent.ask(&Session::new("s"), "look").await.unwrap()
            });
            assert_eq!(answer.message.content, "I have seen the sea.");
            let error = sending.finish().unwrap_err();
            assert!(error.starts_with("4 spans were not sent: ") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_usual_variables_name_the_collector() {
        let named = |set: &[(&str, &str)]| {
            let variable = |name: &str| Some(set.iter().find(|it| it.0 == name)?.1.to_owned());
            Collector::from_variables(variable)
        };
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/");
        let collector = named(&[endpoint]).unwrap().unwrap();
        assert_eq!(collector.url, "http://localhost:4318/v1/traces");
        assert_eq!((&*collector.service, collector.timeout), ("prowess", Duration::from_secs(10)));
        let collector = named(&[
            endpoint,
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c.test/traces"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "X-Key=a%20b%3D, other=c"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_SERVICE_NAME", "fleet"),
        ]);
        let collector = collector.unwrap().unwrap();
        assert_eq!(collector.url, "https://c.test/traces");
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(collector.headers, [header("x-key", "a b="), header("other", "c")]);
        assert_eq!((&*collector.service, collector.timeout), ("fleet", Duration::from_millis(250)));
        assert!(!format!("{collector:?}").contains("a b"), "{collector:?}");
        for set in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[endpoint, ("OTEL_SDK_DISABLED", "true")],
            &[endpoint, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert!(named(set).unwrap().is_none(), "{set:?}");
        }
        for (set, error) in [
            (
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317"),
                "`OTEL_EXPORTER_OTLP_ENDPOINT` is not an address with `http` or `https`",
            ),
            (
                ("OTEL_EXPORTER_OTLP_HEADERS", "novalue"),
                "`OTEL_EXPORTER_OTLP_HEADERS` is not a list of `name=value`",
            ),
            (
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
                "`OTEL_EXPORTER_OTLP_TIMEOUT` is not a number of milliseconds",
            ),
        ] {
            let set = if set.0 == endpoint.0 { vec![set] } else { vec![endpoint, set] };
            assert_eq!(named(&set).unwrap_err().to_string(), error);
        }
    }
}
