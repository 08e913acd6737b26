//! Traces: written by middleware, exported as spans, shown as a page in a real browser.

use std::{
    borrow::Cow, fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration,
};

use prowess::{Level, Offer, Priority};
use prowess_agent::{
    Agent, ChatResponse, EventKind, Middleware, ModelError, Next, Request, ResponseFuture,
    ScriptedModel, Session, SkillScore, TokenUsage, ToolLoop, Trace,
};
use prowess_runtime::{
    Action, Authorizer, DenyAll, Outcome, OutcomeStatus, Policy, Tool, Toolbox, files::Journal,
};
use serde_json::{Value as Json, json};

use crate::{
    ask::ask,
    browser::Page,
    model_server::{Answer, KEY, ModelServer},
    server::{Server, answer},
    world::World,
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

mod what_happens_is_told_as_spans {
    use super::*;

    fn attribute<'a>(of: &'a Json, key: &str) -> &'a Json {
        let all = of["attributes"].as_array().unwrap();
        all.iter().find(|it| it["key"] == key).map_or(&Json::Null, |it| &it["value"])
    }

    fn named<'a>(spans: &'a [Json], name: &str) -> Vec<&'a Json> {
        spans.iter().filter(|it| it["name"] == name).collect()
    }

    #[test]
    fn a_26_prowess_ask_sends_its_spans() {
        let world = World::new();
        let asked = |endpoint: &str| {
            let call = Answer::calls([("use_skill", json!({"name": "create-pr"}))]);
            let model = ModelServer::start([call, Answer::text("It is open.")]);
            let url = model.url();
            let variables = [
                ("OPENAI_API_KEY", KEY),
                ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ];
            let arguments = ["ask", "Open a PR", "--base-url", &url, "--model", "test-model"];
            let ran = world.run_with_env(&variables, &arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "It is open.\n"), "{}", ran.stderr);
            ran.stderr
        };
        let collector = Server::saying(answer("200 OK", "", "{}"));
        let stderr = asked(&collector.url(""));
        assert!(!stderr.contains("spans"), "{stderr}");
        let mut spans = Vec::new();
        for sent in collector.asked() {
            assert_eq!(sent.line, "POST /v1/traces");
            assert!(!sent.body.contains("It is open") && !sent.body.contains("Open a PR"));
            assert!(!sent.body.contains(KEY) && !sent.head.contains(KEY));
            let body: Json = serde_json::from_str(&sent.body).unwrap();
            let sent = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.extend(sent.as_array().unwrap().clone());
        }
        let turn = named(&spans, "invoke_agent prowess")[0];
        let inner = [named(&spans, "chat test-model"), named(&spans, "execute_tool use_skill")];
        assert_eq!((inner[0].len(), inner[1].len(), spans.len()), (2, 1, 4));
        for span in inner.concat() {
            assert_eq!(span["parentSpanId"], turn["spanId"]);
        }
        let tokens = attribute(turn, "gen_ai.usage.input_tokens");
        assert_eq!(*tokens, json!({"intValue": "50"}));
        let told = turn["events"].as_array().unwrap().iter().map(|it| &it["name"]);
        let told: Vec<&Json> = told.collect();
        for event in ["discovered", "matched", "disclosed", "fitted", "spending"] {
            assert!(told.contains(&&json!(event)), "no {event} in {told:?}");
        }
        drop(collector);
        let nobody = Server::saying("").url("");
        let stderr = asked(&nobody);
        assert!(stderr.contains("4 spans were not sent"), "{stderr}");
    }

    /// A field of a Protocol Buffers message: its number and value.
    #[derive(Debug, Clone)]
    enum Wired {
        Number(u64),
        Bytes(Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(first & 0x7F) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return number;
            }
        }
    }

    /// Returns the fields of a message.
    fn wired(mut bytes: &[u8]) -> Vec<(u64, Wired)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let what = match tag & 7 {
                0 => Wired::Number(varint(&mut bytes)),
                1 => {
                    let (eight, rest) = bytes.split_at(8);
                    bytes = rest;
                    Wired::Number(u64::from_le_bytes(eight.try_into().unwrap()))
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (own, rest) = bytes.split_at(length);
                    bytes = rest;
                    Wired::Bytes(own.to_vec())
                }
                other => panic!("no such type: {other}"),
            };
            fields.push((tag >> 3, what));
        }
        fields
    }

    /// Returns the messages, texts or ids in a field.
    fn inner(bytes: &[u8], field: u64) -> Vec<Vec<u8>> {
        let held = wired(bytes).into_iter().filter(|it| it.0 == field).map(|it| it.1);
        held.map(|it| if let Wired::Bytes(it) = it { it } else { panic!("{it:?}") }).collect()
    }

    fn number(bytes: &[u8], field: u64) -> Option<u64> {
        let found = wired(bytes).into_iter().find(|it| it.0 == field)?.1;
        if let Wired::Number(it) = found { Some(it) } else { panic!("{found:?}") }
    }

    fn texts(bytes: &[u8], field: u64) -> Vec<String> {
        inner(bytes, field).into_iter().map(|it| String::from_utf8(it).unwrap()).collect()
    }

    #[test]
    fn spans_are_protocol_buffers_unless_json_is_asked_for() {
        let world = World::new();
        let ask = |collector: &Server, more: &[(&str, &str)]| {
            let model = ModelServer::start([Answer::text("Done.")]);
            let (url, endpoint) = (model.url(), collector.url(""));
            let own = [("OPENAI_API_KEY", KEY), ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)];
            let variables: Vec<(&str, &str)> = own.iter().chain(more).copied().collect();
            let arguments = ["ask", "hello", "--base-url", &url, "--model", "m"];
            let ran = world.run_with_env(&variables, &arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "Done.\n"), "{}", ran.stderr);
            ran.stderr
        };
        let collector = Server::saying(answer("200 OK", "", ""));
        ask(&collector, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]);
        ask(&collector, &[]);
        for sent in collector.asked() {
            assert_eq!(sent.header("content-type").unwrap().trim(), "application/x-protobuf");
            let resource_spans = inner(&sent.bytes, 1).remove(0);
            let resource = inner(&inner(&resource_spans, 1)[0], 1).remove(0);
            assert_eq!(texts(&resource, 1), ["service.name"]);
            assert_eq!(texts(&inner(&resource, 2)[0], 1), ["prowess"]);
            let scope_spans = inner(&resource_spans, 2).remove(0);
            assert_eq!(texts(&inner(&scope_spans, 1)[0], 1), ["prowess"]);
            let spans = inner(&scope_spans, 2);
            let names: Vec<String> = spans.iter().flat_map(|it| texts(it, 5)).collect();
            assert_eq!(names, ["chat m", "invoke_agent prowess"]);
            let [chat, turn] = &spans[..] else { panic!("{names:?}") };
            assert_eq!((inner(chat, 1)[0].len(), inner(chat, 2)[0].len()), (16, 8));
            assert_eq!(inner(chat, 1), inner(turn, 1), "one trace");
            assert_eq!((inner(chat, 4), inner(turn, 4).len()), (inner(turn, 2), 0));
            assert_eq!((number(chat, 6), number(turn, 6)), (Some(3), Some(1)));
            let (start, end) = (number(chat, 7).unwrap(), number(chat, 8).unwrap());
            assert!(start > 1_600_000_000_000_000_000 && start <= end, "{start} {end}");
            let attribute = |key: &str| {
                let all = inner(chat, 9).into_iter();
                let mut own = all.filter(|it| texts(it, 1) == [key]);
                inner(&own.next().unwrap(), 2).remove(0)
            };
            assert_eq!(number(&attribute("gen_ai.usage.input_tokens"), 3), Some(25));
            assert_eq!(texts(&attribute("gen_ai.request.model"), 1), ["m"]);
            let reasons = inner(&attribute("gen_ai.response.finish_reasons"), 5).remove(0);
            assert_eq!(texts(&inner(&reasons, 1)[0], 1), ["stop"]);
            assert!(inner(turn, 11).iter().any(|it| texts(it, 2) == ["discovered"]));
        }
        assert_eq!(collector.asked().len(), 2);
        let json = Server::saying(answer("200 OK", "", ""));
        ask(&json, &[("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")]);
        assert_eq!(json.asked()[0].header("content-type").unwrap().trim(), "application/json");
        serde_json::from_str::<Json>(&json.asked()[0].body).unwrap();

        let choosy = Server::saying(answer("415 Unsupported", "", ""));
        let stderr = ask(&choosy, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]);
        for words in ["415", "does not take `http/json`", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            assert!(stderr.contains(words), "no {words} in {stderr}");
        }
        let stderr = ask(&choosy, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(
            stderr.contains("`OTEL_EXPORTER_OTLP_PROTOCOL` is not `http/protobuf`"),
            "{stderr}"
        );
    }
}

/// Writes the trace of two turns, the second of which fails, to `trace.jsonl`.
async fn two_turns(world: &World) {
    let journal = Journal::open(world.path("trace.jsonl")).unwrap();
    let model = ScriptedModel::new()
        .calls_all([("look", json!({"at": "the sea"})), ("look", json!({"fail": true}))])
        .replies(ChatResponse {
            message: prowess::Message::new(prowess::Role::Assistant, "I have seen the sea."),
            spent: TokenUsage { input: 300, output: 12, cached: 200, ..TokenUsage::default() },
            ..ChatResponse::default()
        })
        .fails(ModelError::Timeout { model: "scripted".to_owned(), after: Duration::from_secs(3) });
    let agent = agent(model, vec![Arc::new(Trace::journal(journal))]);
    let session = Session::new("voyage");
    agent.ask(&session, "look at the sea").await.unwrap();
    agent.ask(&session, "and at the sky").await.unwrap_err();
}

/// Makes a page of `trace.jsonl` and opens it.
fn page(world: &World) -> Page {
    let ran = world.run(["trace", "trace.jsonl", "-o", "page.html"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    Page::open(&world.path("page.html"))
}

const LABELS: &str = "[...document.querySelectorAll('.row')].filter((it) => it.offsetParent).map((it) => it.querySelector('.label').textContent)";
const SELECTED: &str = "document.querySelector('[aria-selected=true] .label').textContent";
const DETAIL: &str = "document.getElementById('detail').textContent";

mod a_trace_is_shown_as_one_page {
    use super::*;

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn m_32_the_page_has_a_timeline_of_turns_steps_and_calls() {
        let world = World::new();
        two_turns(&world).await;
        let mut page = page(&world);
        let labels = page.eval(LABELS);
        let expected = [
            "look at the sea",
            "Step 1 → look, look",
            "look {\"at\":\"the sea\"}",
            "look {\"fail\":true}",
            "Step 2 I have seen the sea.",
            "and at the sky",
            "Step 1 `scripted` sent nothing for 3 s",
        ];
        assert_eq!(labels, json!(expected));
        let levels =
            "[...document.querySelectorAll('[role=treeitem]')].map((it) => it.ariaLevel).join('')";
        assert_eq!(page.text(levels), "1233212");
        assert!(page.is("[...document.querySelectorAll('.row')].every((it) => it.querySelector('.track i').offsetWidth > 0 && /[0-9] (µs|ms|s)$/.test(it.querySelector('.time').textContent))"));
        let failed = "[...document.querySelectorAll('.row')].map((it) => it.classList.contains('failed') ? 'x' : '-').join('')";
        assert_eq!(page.text(failed), "---x-xx");
        assert_eq!(page.text("document.title"), "Trace: look at the sea");
        let totals = page.text("document.getElementById('totals').innerText").replace('\n', " ");
        for total in ["turns 2", "steps 3", "calls 2", "cached 200", "cost 0.25", "errors 3"] {
            assert!(totals.contains(total), "no {total} in {totals}");
        }
        let color = |row: &str| {
            format!("getComputedStyle(document.querySelector('{row} .track i')).background")
        };
        let bars = [".row.call:not(.failed)", ".row.call.failed", ".row.step:not(.failed)"];
        let bars = bars.map(|it| page.text(&color(it)));
        assert!(bars[0] != bars[1] && bars[0] != bars[2], "{bars:?}");
        let detail = page.text(DETAIL);
        for shown in [
            "Turn 1",
            "I have seen the sea.",
            "3 skills discovered",
            "a finding",
            "lookout",
            "91 %",
            "look in name",
            "carried over",
            "telescope",
            "lokout",
            "shown to the model (full, matched)",
            "evict",
            "telescope is left out",
            "look out of the window",
            "it is far",
            "person",
            "voyage",
        ] {
            assert!(detail.contains(shown), "no {shown} in {detail}");
        }
        page.press("End");
        assert!(page.text(DETAIL).contains("The model did not reply"));
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    fn m_32_what_prowess_ask_did_is_on_the_page() {
        let settings =
            "[model]\ninput_price = 3\noutput_price = 15\n[policy]\napprovals = \"always\"\n";
        let world = World::new().file("set.toml", settings);
        let first = [
            Answer::status(429).header("retry-after", "0"),
            Answer::calls([("use_skill", json!({"name": "debug"}))]),
            Answer::calls([("execute_command", json!({"command": "echo done"}))]),
        ];
        let later = (0..20).map(|_| Answer::text(&"Many words were said. ".repeat(150)));
        let server = ModelServer::start(first.into_iter().chain(later));
        let more = format!("Explain how this code works. {}", "And more. ".repeat(200));
        for prompt in ["Open a PR with @creat-pr"].into_iter().chain([&*more; 5]) {
            let traced = ["--trace", "trace.jsonl", "--session", "s", "--config", "set.toml"];
            let arguments = [&[prompt, "--window", "8000"], &traced[..]].concat();
            let ran = ask(&world, &server, &arguments);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
        let mut page = page(&world);
        let labels = page.eval(LABELS);
        assert!(!labels.to_string().contains("Other events"), "{labels}");
        let mut turns = String::new();
        for _ in labels.as_array().unwrap() {
            turns +=
                &Some(page.text(DETAIL)).filter(|it| it.starts_with("Turn")).unwrap_or_default();
            page.press("j");
        }
        assert!(!turns.contains("undefined") && !turns.contains("NaN"), "{turns}");
        // No currency is configured.
        assert!(!turns.contains('$'), "{turns}");
        let mut missing = vec![
            "7 skills discovered",
            "not found creat-pr",
            "debug shown to the model (full, use_skill)",
            "try 2",
            "is rate limited",
            "no to run `echo done`",
            "left out: squeeze",
            "test-model summarised ",
            "summarised by model",
            "spent in the session",
        ];
        missing.retain(|it| !turns.contains(it));
        assert!(missing.is_empty(), "{missing:?} in {turns}");
        let texts = fs::read_to_string(world.path("trace.jsonl")).unwrap();
        assert!(!texts.contains(KEY));
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn the_exact_prompt_of_a_step_shows_what_came_from_which_skill() {
        let world = World::new();
        two_turns(&world).await;
        let mut page = page(&world);
        page.press("j");
        assert_eq!(page.text("document.querySelector('#detail h2').textContent"), "Step 1");
        let froms = "[...document.querySelectorAll('.part')].map((it) => it.dataset.from)";
        assert_eq!(
            page.eval(froms),
            json!(["system", "catalog", "skill:lookout", "skill:binoculars", "user"])
        );
        let text = "[...document.querySelectorAll('.part pre')].slice(0, -1).map((it) => it.textContent).join('')";
        let model = looker();
        let spy = Arc::new(model);
        let agent = Agent::new(spy.clone()).with_system("You look at things.");
        let agent = agent.with(ToolLoop::new(toolbox())).with(Shows);
        agent.ask(&Session::new("s"), "look at the sea").await.unwrap();
        let same = |it: &str| crate::world::with_code(it, "bcdfghjkmn");
        assert_eq!(same(&page.text(text)), same(&spy.asked()[0].messages[0].content));
        let color = |from: &str| {
            format!(
                "getComputedStyle(document.querySelector('[data-from=\"{from}\"]')).borderLeftColor"
            )
        };
        let colors = ["system", "catalog", "skill:lookout", "skill:binoculars", "user"]
            .map(|it| page.text(&color(it)));
        for (at, one) in colors.iter().enumerate() {
            assert!(one.starts_with("rgb") && !colors[at + 1..].contains(one), "{colors:?}");
        }
        for _ in 0..3 {
            page.press("j");
        }
        assert_eq!(page.text(SELECTED), "Step 2 I have seen the sea.");
        let open = "[...document.querySelectorAll('.message')].filter((it) => it.querySelector('.part, .block')).map((it) => `${it.querySelector('.role').textContent} ${it.open}`)";
        let shown = page.eval(open);
        let messages = ["system false", "user false", "assistant true", "tool true", "tool true"];
        assert_eq!(shown.as_array().unwrap()[..5], json!(messages).as_array().unwrap()[..]);
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn every_step_has_its_token_budget_as_a_stacked_bar() {
        let world = World::new();
        two_turns(&world).await;
        let mut page = page(&world);
        assert_eq!(page.eval("document.querySelectorAll('.row.step .budget').length"), 3);
        assert_eq!(page.eval("document.querySelectorAll('#detail .bars .budget').length"), 2);
        page.press("j");
        let parts = "[...document.querySelectorAll('#detail .budget i')].map((it) => it.title.split(':')[0])";
        let names = ["system", "catalog", "skill binoculars", "skill lookout", "history", "tools"];
        assert_eq!(page.eval(parts), json!(names));
        let legend = page.text("document.querySelector('#detail .legend').textContent");
        assert!(legend.contains("rest of the window"), "{legend}");
        let shares = "(() => { const bar = document.querySelector('#detail .budget'); const parts = (of) => [...of.querySelectorAll('i')]; const of = (it) => Number(it.title.split(': ')[1].replace(',', '')); const all = Math.max(...[...document.querySelectorAll('.row.step .budget')].map((it) => parts(it).reduce((sum, it) => sum + of(it), 0))); return parts(bar).every((it) => Math.abs(it.getBoundingClientRect().width - Math.max(2, of(it) * bar.clientWidth / all)) < 2.5 && of(it) > 0); })()";
        assert!(page.is(shares));
        let tick = "document.querySelector('#detail .budget .window').title";
        assert_eq!(page.text(tick), "window: 2,000 tokens");
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn an_answer_is_shown_as_markdown_and_nothing_in_it_is_active() {
        let answer = "# Seen\n\n- one\n- **two** and `look <b>`\n\n```sh\nls *x*\n```\n\n> quoted\n\n[here](javascript:alert(1)) <img src=x>";
        let world = World::new();
        let journal = Journal::open(world.path("trace.jsonl")).unwrap();
        let model = ScriptedModel::new().says(answer);
        let agent = agent(model, vec![Arc::new(Trace::journal(journal))]);
        agent.ask(&Session::new("voyage"), "look").await.unwrap();
        let mut page = page(&world);
        let texts = |page: &mut Page, what: &str| {
            page.eval(&format!("[...document.querySelectorAll('#detail .markdown {what}')].map((it) => it.textContent)"))
        };
        assert_eq!(texts(&mut page, ".heading"), json!(["Seen"]));
        assert_eq!(texts(&mut page, ".item"), json!(["•one", "•two and look <b>"]));
        assert_eq!(texts(&mut page, "strong"), json!(["two"]));
        assert_eq!(texts(&mut page, "code"), json!(["look <b>"]));
        assert_eq!(texts(&mut page, "pre"), json!(["ls *x*"]));
        assert_eq!(texts(&mut page, ".quote"), json!(["quoted"]));
        assert_eq!(texts(&mut page, ":is(a, img, b)"), json!([]));
        assert!(page.text(DETAIL).contains("here (javascript:alert(1)) <img src=x>"));
        assert!(page.text(DETAIL).contains("session voyage"));
        assert!(page.is("/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}/.test(document.querySelector('#detail .facts').textContent)"));
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn the_errors_can_be_gone_through() {
        let world = World::new();
        two_turns(&world).await;
        let mut page = page(&world);
        let jump = "document.querySelector('.jump').click()";
        for label in [
            "look {\"fail\":true}",
            "Step 1 `scripted` sent nothing for 3 s",
            "look {\"fail\":true}",
        ] {
            page.eval(jump);
            assert_eq!(page.text(SELECTED), label);
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn everything_is_searched() {
        let world = World::new();
        two_turns(&world).await;
        let mut page = page(&world);
        let found = "document.getElementById('found').textContent";
        let marks = "[...new Set([...document.querySelectorAll('#detail mark')].map((it) => it.textContent))]";
        for (query, hits, labels, marked) in [
            ("MAST first", "1 hit", 2, "mast first"),
            ("lokout", "2 hits", 2, "lokout"),
            ("\"the sea\"", "3 hits", 4, "\"the sea\""),
            ("sent nothing", "2 hits", 2, "sent nothing"),
        ] {
            page.press("/");
            page.type_text(query);
            assert_eq!(page.text(found), hits, "{query}: {}", page.eval(LABELS));
            assert_eq!(page.eval(LABELS).as_array().unwrap().len(), labels, "{query}");
            assert_eq!(page.eval(marks), json!([marked]), "{query}");
            page.press("Escape");
        }
        page.press("/");
        page.type_text("no such words");
        assert_eq!(page.text(found), "Nothing found");
        assert_eq!(page.eval(LABELS), json!([]));
        page.press("Escape");
        assert_eq!(page.eval(LABELS).as_array().unwrap().len(), 7);
        assert_eq!(page.eval("document.querySelectorAll('mark').length"), 0);
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn the_page_is_used_by_keyboard_alone() {
        let world = World::new();
        two_turns(&world).await;
        let mut page = page(&world);
        let focus = "document.activeElement.id";
        assert_eq!(page.text(SELECTED), "look at the sea");
        for (key, label) in [
            ("j", "Step 1 → look, look"),
            ("ArrowDown", "look {\"at\":\"the sea\"}"),
            ("k", "Step 1 → look, look"),
            ("End", "Step 1 `scripted` sent nothing for 3 s"),
            ("j", "Step 1 `scripted` sent nothing for 3 s"),
            ("ArrowUp", "and at the sky"),
            ("Home", "look at the sea"),
            ("ArrowUp", "look at the sea"),
        ] {
            page.press(key);
            assert_eq!(page.text(SELECTED), label, "after {key}");
            assert!(
                page.is(
                    "document.activeElement === document.querySelector('[aria-selected=true]')"
                )
            );
            assert_eq!(
                page.eval(
                    "document.querySelectorAll('[aria-selected=true], .row[tabindex=\"0\"]').length"
                ),
                1
            );
        }
        let outlined = "getComputedStyle(document.activeElement).outlineStyle";
        assert_eq!(page.text(outlined), "solid");
        page.press("ArrowDown");
        page.press("ArrowDown");
        page.press("ArrowLeft");
        assert_eq!(page.text(SELECTED), "Step 1 → look, look");
        page.press("Enter");
        assert_eq!(
            (page.text(focus), page.text(outlined)),
            ("detail".to_owned(), "solid".to_owned())
        );
        page.press("ArrowDown");
        assert_eq!(page.text(SELECTED), "Step 1 → look, look");
        page.press("Tab");
        assert!(page.is("document.getElementById('detail').contains(document.activeElement) && document.activeElement.id !== 'detail'"));
        page.press("ArrowLeft");
        assert!(page.is("document.activeElement.matches('[role=treeitem]')"));
        page.press("/");
        assert_eq!(page.text(focus), "search");
        page.type_text("sky");
        page.press("j");
        assert_eq!(page.text("document.getElementById('search').value"), "skyj");
        page.press("Escape");
        assert_eq!(page.text("document.getElementById('search').value"), "");
        assert!(page.is("document.activeElement.matches('[role=treeitem]')"));
        page.press("?");
        assert!(page.is("document.getElementById('keys').open"));
        page.press("Escape");
        assert!(!page.is("document.getElementById('keys').open"));
        let named = "[...document.querySelectorAll('button, input')].every((it) => it.textContent.trim() || it.ariaLabel || it.labels?.[0]?.textContent.trim())";
        assert!(page.is(named));
        assert_eq!(
            page.text("document.querySelector('[role=tree]').ariaLabel"),
            "Turns, steps and calls"
        );
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn the_page_is_light_or_dark_as_the_system_or_the_reader_wants_it_and_narrow() {
        let world = World::new();
        two_turns(&world).await;
        let mut page = page(&world);
        let brightness = "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3";
        let bright = |page: &mut Page| page.eval(brightness).as_f64().unwrap() > 128.0;
        assert!(bright(&mut page));
        page.look(1400, 900, "dark");
        assert!(!bright(&mut page));
        page.press("t");
        assert!(bright(&mut page));
        page.eval("document.getElementById('theme').click()");
        assert!(!bright(&mut page));
        let contrast = "(() => { const light = (c) => { const [r, g, b] = c.match(/[0-9.]+/g).map((it) => { const v = it / 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; }; const [a, b] = [getComputedStyle(document.querySelector('.time')).color, getComputedStyle(document.querySelector('nav')).backgroundColor].map(light); return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); })()";
        assert!(page.eval(contrast).as_f64().unwrap() > 4.5);
        page.press("t");
        assert!(page.eval(contrast).as_f64().unwrap() > 4.5);
        for at in 0..7 {
            page.look(400, 800, "light");
            let wide = "[...document.querySelectorAll('body *')].filter((it) => it.getBoundingClientRect().right > 401 && !it.closest('.scroll')).map((it) => it.className)";
            assert_eq!(page.eval(wide), json!([]), "row {at}");
            assert!(page.is("document.documentElement.scrollWidth <= 400"));
            page.press("j");
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn the_page_needs_nothing_else_and_lets_nothing_else_in() {
        let world = World::new();
        two_turns(&world).await;
        let mut page = page(&world);
        assert_eq!(page.eval("performance.getEntriesByType('resource').length"), 0);
        let policy = page.text("document.querySelector('meta[http-equiv]').content");
        assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        page.eval("(() => { const it = document.createElement('script'); it.textContent = 'window.strange = 1'; document.body.append(it); document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.strange = 2\">'); })()");
        let after = "new Promise((done) => setTimeout(() => done(typeof window.strange), 200))";
        assert_eq!(page.text(after), "undefined");
        assert!(page.is("fetch('https://example.com').then(() => false, () => true)"));
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn nothing_in_a_trace_is_run() {
        let attack = "</script><script>document.title='pwned'</script><!--<script>\u{2028}\
                      <img src=x onerror=\"document.title='pwned'\"><svg onload=document.title='pwned'>\
                      {data}{script}${document.title='pwned'}javascript:alert(1)\"'`&lt;b&gt;";
        let world = World::new();
        let journal = Journal::open(world.path("trace.jsonl")).unwrap();
        let trace = Arc::new(Trace::journal(journal));
        let model = ScriptedModel::new()
            .calls("look", json!({"at": attack}))
            .calls(attack, json!({}))
            .says(attack);
        let agent = agent(model, vec![trace]).with_system(attack);
        agent.ask(&Session::new(attack), attack).await.unwrap();
        let mut text = fs::read_to_string(world.path("trace.jsonl")).unwrap();
        let at = |event: Json| format!("{event}\n");
        for kind in
            ["matched", "disclosed", "fitted", "approval", "server", "warned", "retried", attack]
        {
            let score = json!({"name": attack, "confidence": attack, "level": attack, "why": [attack, {"a": attack}]});
            text += &at(json!({
                "at": 1, "session": attack, "turn": 1, "event": kind, "skill": attack, "level": attack, "by": attack,
                "tokens": attack, "scores": [score], "unknown": [attack], "strategy": attack, "what": attack, "why": attack,
                "reply": attack, "message": attack, "server": attack, "state": attack, "window": attack,
                "steps": [{"step": attack, "before": attack, "what": attack}], "skills": [{"name": attack, "kept": false, "left_out_by": attack}],
            }));
        }
        world.write("trace.jsonl", &text);
        let mut page = page(&world);
        let rows = page.eval("document.querySelectorAll('.row').length").as_u64().unwrap();
        assert!(rows >= 6);
        for row in 0..rows {
            assert_eq!(page.eval("document.scripts.length"), 2, "row {row}");
            assert_eq!(page.eval("document.querySelectorAll('img, iframe, object, embed, b').length - document.querySelectorAll('.facts b, .legend b').length"), 0);
            assert!(page.is("document.querySelectorAll('svg').length === 1"));
            assert!(
                page.text(DETAIL).contains("<script>document.title='pwned'</script>"),
                "row {row}"
            );
            assert!(page.text("document.title").starts_with("Trace: </script><script>"));
            page.press("j");
        }
    }
}

mod the_command_makes_a_page_or_a_summary_of_any_file {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn the_page_goes_where_it_should() {
        let world = World::new();
        two_turns(&world).await;
        let trace = fs::read(world.path("trace.jsonl")).unwrap();
        let piped = world.run(["trace", "trace.jsonl"]);
        assert!(piped.stdout().starts_with("<!doctype html>"), "{}", piped.stderr);
        assert_eq!((piped.code, &*piped.stderr), (Some(0), ""));
        let ran = world.run(["trace", "trace.jsonl", "-o", "out.html"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), ""));
        assert_eq!(fs::read(world.path("out.html")).unwrap(), piped.out);
        assert_eq!(mode(&world.path("out.html")), 0o600);
        assert_eq!(mode(&world.path("trace.jsonl")), 0o600);
        let ran = world.run_at_terminal("", "trace trace.jsonl");
        assert!(ran.stdout().contains("the page is `trace.jsonl.html`"), "{}", ran.stdout());
        assert_eq!(fs::read(world.path("trace.jsonl.html")).unwrap(), piped.out);
        for output in ["trace.jsonl", "./skills/../trace.jsonl", "no/such/folder.html", "skills"] {
            let ran = world.run(["trace", "trace.jsonl", "-o", output]);
            assert_eq!(ran.code, Some(2), "{output}: {}", ran.stderr);
        }
        assert_eq!(fs::read(world.path("trace.jsonl")).unwrap(), trace);
    }

    #[tokio::test]
    async fn the_summary_has_the_numbers() {
        let world = World::new();
        two_turns(&world).await;
        let json = world.run(["trace", "trace.jsonl", "--json"]).json();
        for (key, value) in [
            ("turns", json!(2)),
            ("steps", json!(3)),
            ("calls", json!(2)),
            ("errors", json!(3)),
            ("sessions", json!(["voyage"])),
            ("models", json!(["scripted"])),
            ("cost", json!(0.25)),
            ("approvals", json!(2)),
            ("torn", json!(false)),
        ] {
            assert_eq!(json[key], value, "{key} of {json:#}");
        }
        assert_eq!(json["tokens"]["cached"], 200);
        assert!(json["tokens"]["input"].as_u64().unwrap() > 300);
        let tool = &json["tools"][0];
        assert_eq!(
            (&tool["name"], &tool["calls"], &tool["failed"]),
            (&json!("look"), &json!(2), &json!(1))
        );
        assert_eq!(
            json["skills"][0],
            json!({"name": "lookout", "levels": ["full"], "by": ["matched"]})
        );
        for key in ["began", "took_ms", "models_ms", "tools_ms"] {
            assert!(json[key].as_f64().unwrap() > 0.0, "{key}");
        }
    }

    #[test]
    fn what_is_no_trace_is_refused_with_a_reason() {
        let world = World::new()
            .file("empty", "")
            .file("blank", "\n \n")
            .file("words", "hello\nworld\n")
            .file("bytes", [0xff, 0xfe, 0, 1, b'\n', 0xff])
            .file("list", "[1,2]\n{\"a\":1}\n")
            .file(
                "session",
                "{\"type\":\"session\",\"version\":1,\"id\":\"s\"}\n{\"type\":\"message\"}\n",
            )
            .file("later", "{\"event\":\"trace\",\"version\":99}\n{\"event\":\"began\"}\n");
        for (file, why) in [
            ("empty", "it is empty"),
            ("blank", "it is empty"),
            ("words", "it is not a trace"),
            ("bytes", "it is not a trace"),
            ("list", "it is not a trace"),
            ("session", "it is a session, not a trace"),
            ("later", "the trace has version 99"),
        ] {
            for arguments in [&["trace", file][..], &["trace", file, "--json"]] {
                let ran = world.run(arguments);
                assert_eq!(ran.code, Some(1), "{file}");
                assert!(!ran.stdout().contains("turns"), "{}", ran.stdout());
                assert!(
                    ran.stderr.contains(&format!("cannot show `{file}`: {why}")),
                    "{}",
                    ran.stderr
                );
            }
        }
        for file in ["missing", "skills"] {
            let ran = world.run(["trace", file]);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
            assert!(ran.stderr.contains(&format!("cannot read `{file}`")), "{}", ran.stderr);
        }
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn what_is_broken_or_unknown_costs_nothing_else() {
        let world = World::new();
        two_turns(&world).await;
        let mut text = fs::read_to_string(world.path("trace.jsonl")).unwrap();
        text.insert_str(0, "not json\n");
        text += "{\"event\":\"teleported\",\"to\":\"mars\"}\n";
        text += "{\"event\":\"asked\",\"messages\":[\"gone\",7,null],\"tools\":{},\"turn\":\"x\",\"at\":-1}\n";
        text += "{\"event\":\"returned\",\"outcome\":[],\"took_ms\":\"long\",\"session\":5}\n";
        text += "{\"event\":\"said\",\"id\":[]}\n{\"event\":\"matched\",\"scores\":\"all\"}\n{\"event\":\"ended\",\"spent\":1}\n";
        text += "{\"event\":\"called\",\"id\":nu";
        world.write("trace.jsonl", &text);
        let json = world.run(["trace", "trace.jsonl", "--json"]).json();
        assert_eq!(
            (&json["torn"], &json["unreadable"], &json["other"]),
            (&json!(true), &json!([1]), &json!(1))
        );
        assert_eq!(json["steps"], 4);
        let mut page = page(&world);
        let notices = page.text("document.getElementById('notices').textContent");
        assert!(
            notices.contains("last line") && notices.contains("were left out: 1."),
            "{notices}"
        );
        let rows = page.eval(LABELS);
        let rows = rows.as_array().unwrap();
        assert!(rows.len() > 8 && rows[0] == "look at the sea", "{rows:?}");
        for _ in rows {
            assert!(!page.text(DETAIL).is_empty());
            page.press("j");
        }
        assert!(page.text(DETAIL).contains("teleported") && page.text(DETAIL).contains("mars"));
    }

    #[tokio::test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    async fn a_huge_trace_makes_a_page_of_bounded_size() {
        let world = World::new();
        two_turns(&world).await;
        let mut text = fs::read_to_string(world.path("trace.jsonl")).unwrap();
        let filling = "<wörds> ".repeat(12_000);
        let mut number = 0;
        while text.len() < 100_000_000 {
            number += 1;
            let message = json!({"role": "user", "parts": [{"from": "user", "text": format!("{number} {filling}")}]});
            text += &format!(
                "{}\n",
                json!({"event": "said", "id": format!("{number}"), "message": message})
            );
        }
        world.write("trace.jsonl", &text);
        let ran = world.run(["trace", "trace.jsonl"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.out.len() < 50_000_000, "{}", ran.out.len());
        world.write("page.html", &ran.out);
        let mut page = Page::open(&world.path("page.html"));
        let notices = page.text("document.getElementById('notices').textContent");
        assert!(notices.contains("The trace is large"), "{notices}");
        assert_eq!(page.eval(LABELS)[0], "look at the sea");
    }
}
