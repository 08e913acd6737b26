//! An agent that runs for many turns: whether its memory stays small.

use std::{
    borrow::Cow,
    fmt,
    fs::{self, File},
    io::{Seek as _, Write as _},
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use prowess::{Call, Cataloging, ContextWindow, Library, Message, Role};
use prowess_agent::{
    Agent, Approval, CatchErrors, ChatRequest, ChatResponse, Delta, FitContext, Guard, Logging,
    Model, ModelFuture, Retry, Session, SkillOptions, Skills, Spans, Spending, ToolLoop, Trace,
    When,
};
use prowess_runtime::{
    Action, Authorizer, DenyAll, Outcome, Policy, SkillProvider, Tool, Toolbox,
    approval::ApproveAll, policy::Approvals, tool::ToolFuture,
};
use serde_json::{Value as Json, json};

use crate::{
    agent::{calls, made_up},
    corpus::Corpus,
    load::number,
    measure::milliseconds,
    options::Options,
};

/// A model that replies at once: it summarises, calls a tool every fourth time, or talks.
#[derive(Debug)]
pub(crate) struct Talker {
    turns: AtomicUsize,
    /// Its calls, one after the other.
    calls: Vec<Call>,
}

impl Talker {
    pub(crate) fn new(calls: Vec<Call>) -> Self {
        Self { turns: AtomicUsize::new(0), calls }
    }
}

impl Model for Talker {
    fn name(&self) -> &str {
        "talker"
    }

    fn provider(&self) -> &str {
        "bench"
    }

    fn reply<'a>(
        &'a self,
        ask: &'a ChatRequest,
        _: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> ModelFuture<'a> {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let is_asked = ask.messages.last().is_some_and(|it| it.role == Role::User);
        let can_call = !ask.tools.is_empty() && is_asked && turn.is_multiple_of(4);
        let mut message = Message::new(Role::Assistant, "");
        if can_call {
            message.calls.push(self.calls[turn / 4 % self.calls.len()].clone());
        } else {
            message.content = format!("Number {turn}. {}", "It is as it was before. ".repeat(8));
        }
        Box::pin(async { Ok(ChatResponse { message, ..ChatResponse::default() }) })
    }
}

/// A tool that does nothing, with a long output.
struct Work;

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

impl Tool for Work {
    fn name(&self) -> &str {
        "work"
    }

    fn description(&self) -> Cow<'_, str> {
        "Does some work.".into()
    }

    fn input_schema(&self) -> Json {
        json!({"type": "object"})
    }

    fn action(&self, _: &Json) -> Result<Action, Box<Outcome>> {
        Ok(Action::Write("/work".into()))
    }

    fn perform<'a>(&'a self, _: Action, _: Json) -> ToolFuture<'a> {
        Box::pin(async { Outcome::ok("It went well. ".repeat(20)) })
    }
}

/// Returns an agent with all middleware, which activates a skill in every second call.
fn agent(library: &Arc<Library>, window: usize, trace: Trace) -> Agent {
    let policy = Policy { approvals: Approvals::Never, ..Policy::default() };
    let authorizer = Authorizer::new(policy, Arc::new(DenyAll));
    let toolbox = Arc::new(Toolbox::new(Arc::new(authorizer)).with(Arc::new(Work)));
    let window = ContextWindow { tokens: window, ..ContextWindow::default() };
    let work = || Call { name: "work".to_owned(), arguments: "{}".to_owned(), ..Call::default() };
    let calls = calls(library).flat_map(|it| [work(), it]).collect();
    let provider: Arc<dyn SkillProvider> = Arc::new(library.clone());
    let cataloging = Cataloging { budget: Some(window.tokens / 10), ..Cataloging::default() };
    let showing = SkillOptions { catalog: Some(cataloging), ..SkillOptions::default() };
    Agent::new(Arc::new(Talker::new(calls)))
        .with_system("You do what you are asked.")
        .with(trace)
        .with(Spans::new("prowess"))
        .with(Logging::default())
        .with(CatchErrors::new())
        .with(Skills::new(Some(provider), showing))
        .with(Guard::new(Arc::new(ApproveAll)).asks(When::calls("w*").while_active("deploy-*")))
        .with(Approval::new(Arc::new(ApproveAll)))
        .with(ToolLoop::new(toolbox))
        .with(Spending::default())
        .with(FitContext::new(window).with_summaries(None))
        .with(Retry::default())
}

/// Returns a trace in a file that is truncated when it is full, and its number of bytes.
fn trace(file: File) -> (Trace, Arc<AtomicUsize>) {
    let written = Arc::new(AtomicUsize::new(0));
    let (total, file) = (written.clone(), Mutex::new(file));
    let trace = Trace::new(move |line| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.stream_position()? > FULL {
            file.set_len(0)?;
            file.rewind()?;
        }
        total.fetch_add(line.len() + 1, Ordering::Relaxed);
        file.write_all(format!("{line}\n").as_bytes())
    });
    (trace, written)
}

/// The most bytes of a trace in the file.
const FULL: u64 = 64 << 20;

/// Runs many sessions of many turns each, concurrently, and fails if memory grows with them.
pub(crate) fn soak(options: &Options<'_>) -> Result<()> {
    let given = |option, usual| options.get(option).map_or(Ok(usual), number);
    let (sessions, turns) = (given("--sessions", 200)?, given("--turns", 1000)?);
    let (window, size) = (given("--window", 8000)?, given("--size", 1000)?);
    let corpus = Corpus { skills: size, from: None, distinct: false, resources: false }.make()?;
    let (library, requests) = made_up(&corpus.root)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let (trace, written) = trace(tempfile::tempfile()?);
    let agent = agent(&library, window, trace);
    let requests: Arc<[String]> = requests.into();
    let all: Vec<Session> = (0..sessions).map(|it| Session::new(format!("session {it}"))).collect();
    println!("| turns of {sessions} sessions | RSS | messages kept | ms a turn |");
    println!("|---:|---:|---:|---:|");
    let start = Instant::now();
    let mut tenth = None;
    for percent in (10..=100).step_by(10) {
        let from = turns * (percent - 10) / 100..turns * percent / 100;
        let tasks: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(number, session)| {
                let requests = Requests { all: requests.clone(), first: number };
                let turns = take_turns(agent.clone(), session.clone(), requests, from.clone());
                runtime.spawn(turns)
            })
            .collect();
        for task in tasks {
            runtime.block_on(task)??;
        }
        let resident = memory_kib("VmRSS:")?;
        let kept: usize = all.iter().map(|it| it.messages().len()).sum();
        let each = milliseconds(start.elapsed()) / (sessions * from.end).max(1) as f64;
        println!("| {} | {resident} KiB | {kept} | {each:.3} |", from.end);
        // By then every session has been compacted, and the allocator is warm.
        let most = *tenth.get_or_insert(resident) * 3 / 2 + 16 * 1024;
        ensure!(resident <= most, "{resident} KiB are more than {most} KiB");
    }
    let (peak, written) = (memory_kib("VmHWM:")?, written.load(Ordering::Relaxed) >> 20);
    println!("\nat most {peak} KiB; {written} MiB of trace");
    Ok(())
}

/// The requests of a session: each begins with another one.
struct Requests {
    all: Arc<[String]>,
    first: usize,
}

async fn take_turns(
    agent: Agent,
    session: Session,
    requests: Requests,
    turns: Range<usize>,
) -> Result<()> {
    let Requests { all, first } = requests;
    for number in turns {
        let request = &all[(first + number) % all.len()];
        let prompt = format!("Turn {number}: {request}. {}", "Please go on with it. ".repeat(8));
        let answer = agent.ask(&session, prompt).await?;
        ensure!(!answer.message.content.is_empty(), "there is no answer to turn {number}");
    }
    Ok(())
}

/// Returns the current or the peak memory of this process.
fn memory_kib(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|it| it.strip_prefix(name));
    let line = line.context("the system tells no size")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
