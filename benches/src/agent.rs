//! The overhead of an agent's middleware, with a model that replies at once.

use std::{
    hint::black_box,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use prowess::{
    Call, Cataloging, ContextWindow, Directory, Library, Matching, Message, Role, Thresholds,
    Tokenizer, choose,
};
use prowess_agent::{
    Agent, CatchErrors, EventKind, FitContext, Logging, Middleware, Retry, Session, SkillOptions,
    Skills, Spans, Spending, ToolLoop, Trace, Turn,
};
use prowess_runtime::{Authorizer, DenyAll, Policy, SkillProvider, Toolbox, policy::Approvals};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{
    corpus::Corpus,
    load::number,
    measure::{cpu_time, milliseconds},
    metrics::percentile,
    options::Options,
    random::Random,
    retrieval::Data,
    soak::Talker,
};

/// The number of turns of a long session, and of a short one.
const LONG: usize = 50;
const SHORT: usize = 3;

/// The age from which a file counts as unchanged.
const SETTLED: Duration = Duration::from_secs(3);

/// The times of a turn.
#[derive(Debug, Clone, Copy)]
struct Took {
    /// Its number in the session, from 0.
    turn: usize,
    steps: usize,
    wall: Duration,
    /// The CPU time of all threads.
    cpu: Duration,
}

/// Measures turns with all middleware and with none, interleaved, and prints a table.
pub(crate) fn overhead(options: &Options<'_>) -> Result<()> {
    let given = |option, usual| options.get(option).map_or(Ok(usual), number);
    let (size, sessions) = (given("--size", 1000)?, given("--sessions", 20)?);
    let corpus = Corpus { skills: size, from: None, distinct: false, resources: false }.make()?;
    let data = options.get("--skills").map(|_| Data::named(options)).transpose()?;
    // A library caches earlier requests, so that each measurement has its own.
    let load = || match &data {
        Some(data) => Ok(real(size, data)),
        None => made_up(&corpus.root),
    };
    // A file that was just written is read each time, because it may be written again.
    std::thread::sleep(SETTLED);
    let runtime = Runtime::new()?;
    println!("| vocabulary | case | turns | median µs | p99 | CPU median µs | p99 | ÷ floor |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    for vocabulary in [Tokenizer::Estimate, Tokenizer::O200k] {
        let ((library, requests), (other, _)) = (load()?, load()?);
        let shown = Arc::new(AtomicUsize::new(0));
        let all = with_layers(&library, vocabulary, Looker(shown.clone()));
        let none = Agent::new(Arc::new(talker(&library)));
        let mut times = [const { Vec::new() }; 3];
        for round in 0..=sessions {
            let requests = requests.iter().cycle().skip(round * LONG).take(LONG);
            let requests: Vec<&String> = requests.collect();
            let matched = requests.iter().enumerate().map(|it| matching(&other, it)).collect();
            let round_of = |agent| runtime.block_on(take_turns(agent, round, &requests));
            let took = [matched, round_of(&none)?, round_of(&all)?];
            // The first round builds the index, the catalog and the tokenizer.
            if round > 0 {
                times.iter_mut().zip(took).for_each(|(times, took)| times.extend(took));
            }
        }
        let shown = shown.load(Ordering::Relaxed) as f64 / ((sessions + 1) * LONG) as f64;
        ensure!(shown > 0.5, "a request is shown {shown} skills");
        print(vocabulary, &times);
        println!("\n{shown:.1} skills are shown for a request\n");
    }
    Ok(())
}

/// Counts the skills that are disclosed.
#[derive(Debug)]
struct Looker(Arc<AtomicUsize>);

impl Middleware for Looker {
    fn name(&self) -> &str {
        "looker"
    }

    fn note(&self, _: &Turn, what: &EventKind) {
        match what {
            EventKind::Matched { scores, .. } => {
                let shown = scores.iter().filter(|it| it.level.is_some()).count();
                self.0.fetch_add(shown, Ordering::Relaxed);
            }
            EventKind::Warned { message } => panic!("nothing may go wrong here: {message}"),
            _ => {}
        }
    }
}

/// Returns an agent with the middleware of the command line, in their order.
fn with_layers(library: &Arc<Library>, vocabulary: Tokenizer, looker: Looker) -> Agent {
    let policy = Policy { approvals: Approvals::Never, ..Policy::default() };
    let authorizer = Authorizer::new(policy, Arc::new(DenyAll));
    let window = ContextWindow { vocabulary, ..ContextWindow::default() };
    let provider: Arc<dyn SkillProvider> = Arc::new(library.clone());
    let cataloging =
        Cataloging { budget: Some(window.tokens / 10), vocabulary, ..Cataloging::default() };
    let showing = SkillOptions { catalog: Some(cataloging), ..SkillOptions::default() };
    let written = AtomicUsize::new(0);
    let trace = Trace::new(move |line| {
        written.fetch_add(black_box(line).len(), Ordering::Relaxed);
        Ok(())
    });
    Agent::new(Arc::new(talker(library)))
        .with_system("You do what you are asked.")
        .with(trace)
        .with(Spans::new("prowess"))
        .with(Logging::default())
        .with(looker)
        .with(CatchErrors::new())
        .with(Skills::new(Some(provider), showing))
        .with(ToolLoop::new(Arc::new(Toolbox::new(Arc::new(authorizer)))))
        .with(Spending::default())
        .with(FitContext::new(window).with_summaries(None))
        .with(Retry::default())
}

/// Returns a model that activates one skill after the other.
fn talker(library: &Library) -> Talker {
    Talker::new(calls(library).collect())
}

/// Returns calls that activate one skill after the other.
pub(crate) fn calls(library: &Library) -> impl Iterator<Item = Call> {
    library.skills().step_by(7).map(|it| {
        let arguments = json!({"name": it.manifest.name}).to_string();
        Call { name: "use_skill".to_owned(), arguments, ..Call::default() }
    })
}

async fn take_turns(agent: &Agent, round: usize, requests: &[&String]) -> Result<Vec<Took>> {
    let session = Session::new(format!("session {round}"));
    let mut took = Vec::new();
    for (turn, request) in requests.iter().enumerate() {
        let (start, cpu) = (Instant::now(), cpu_time());
        let answer = agent.ask(&session, *request).await?;
        let (wall, cpu) = (start.elapsed(), cpu_time() - cpu);
        took.push(Took { turn, steps: answer.steps, wall, cpu });
    }
    Ok(took)
}

/// Measures the choice of skills alone.
fn matching(library: &Library, (turn, request): (usize, &&String)) -> Took {
    let history = [Message::new(Role::User, request.as_str())];
    let (start, cpu) = (Instant::now(), cpu_time());
    black_box(choose(library, &history, &Matching::default(), Thresholds::default()));
    Took { turn, steps: 0, wall: start.elapsed(), cpu: cpu_time() - cpu }
}

/// Writes made-up skills to disk, and returns requests in their words.
pub(crate) fn made_up(root: &Path) -> Result<(Arc<Library>, Vec<String>)> {
    let directories = vec![Directory::new(root)];
    let options = prowess::Options { directories, ..prowess::Options::default() };
    let library = Library::load(&options)?;
    let request = |it: &prowess::Skill| {
        let words: Vec<&str> = it.manifest.name.split('-').collect();
        format!(
            "Please help me with the {} of our number {}",
            words[..2].join(" and the "),
            words[2]
        )
    };
    let mut requests: Vec<String> = library.skills().map(request).collect();
    Random::new(5).shuffle(&mut requests);
    Ok((Arc::new(library), requests))
}

/// Returns real requests, and the skills that are right for them among others.
fn real(size: usize, data: &Data) -> (Arc<Library>, Vec<String>) {
    let mut random = Random::new(5);
    let mut requests: Vec<_> = data.requests.iter().collect();
    random.shuffle(&mut requests);
    requests.truncate(size / 2);
    let mut which: Vec<usize> = requests.iter().flat_map(|it| data.right(it)).collect();
    let mut others: Vec<usize> = (0..data.skills.len()).collect();
    random.shuffle(&mut others);
    which.extend(others);
    let mut seen = vec![false; data.skills.len()];
    which.retain(|it| !std::mem::replace(&mut seen[*it], true));
    which.truncate(size);
    let requests = requests.into_iter().map(|it| it.query.clone()).collect();
    (Arc::new(data.library(&which)), requests)
}

fn print(vocabulary: Tokenizer, [matching, none, all]: &[Vec<Took>; 3]) {
    type Which = fn(&Took) -> bool;
    let cases: [(&str, &[Took], Which); 6] = [
        ("choosing skills alone", matching, |_| true),
        ("no layers", none, |_| true),
        ("all layers: the first 3 turns", all, |it| it.turn < SHORT),
        ("all 50 turns", all, |_| true),
        ("of them, without a call", all, |it| it.steps == 1),
        ("of them, with `use_skill`", all, |it| it.steps > 1),
    ];
    let sorted = |took: &[Took], which: Which, time: fn(&Took) -> Duration| {
        let times = took.iter().filter(|it| which(it)).map(|it| milliseconds(time(it)) * 1e3);
        let mut times: Vec<f64> = times.collect();
        times.sort_unstable_by(f64::total_cmp);
        times
    };
    let median = |took: &[Took]| percentile(&sorted(took, |_| true, |it| it.cpu), 50);
    let floor = median(matching) + median(none);
    for (name, took, which) in cases {
        let (wall, cpu) = (sorted(took, which, |it| it.wall), sorted(took, which, |it| it.cpu));
        let [median, p99] = [50, 99].map(|it| percentile(&wall, it));
        let [cpu_median, cpu_p99] = [50, 99].map(|it| percentile(&cpu, it));
        println!(
            "| {} | {name} | {} | {median:.0} | {p99:.0} | {cpu_median:.0} | {cpu_p99:.0} | {:.1} |",
            vocabulary.as_str(),
            wall.len(),
            cpu_median / floor,
        );
    }
}
