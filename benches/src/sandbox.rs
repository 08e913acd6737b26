//! The cost of the sandbox, against a plain `sh`; and whether a process ever survives it.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use prowess_sandbox::{Job, Launcher, RunLimits, RunStatus, Sandbox, SandboxLevel, Work};
use tokio::{process::Command, runtime::Runtime};

use crate::{
    load::number, measure::milliseconds, metrics::percentile, options::Options, random::Random,
};

/// The script: the least that prints something.
const SCRIPT: &str = "echo hello";

/// Measures the same script without a sandbox and at each level, interleaved, and prints a table.
pub(crate) fn overhead(options: &Options<'_>) -> Result<()> {
    let rounds = options.get("--rounds").map_or(Ok(300), number)?;
    let launcher = Launcher::program(program(options)?);
    let runtime = Runtime::new()?;
    let levels =
        [None, Some(SandboxLevel::None), Some(SandboxLevel::Landlock), Some(SandboxLevel::Strong)];
    let mut times = levels.map(|_| Vec::new());
    let mut order: Vec<usize> = (0..levels.len()).collect();
    let mut random = Random::new(11);
    for round in 0..=rounds {
        random.shuffle(&mut order);
        for at in &order {
            let took = match levels[*at] {
                None => runtime.block_on(plainly())?,
                Some(level) => runtime.block_on(held(&launcher, level))?,
            };
            // The first round only warms up.
            if round > 0 {
                times[*at].push(milliseconds(took));
            }
        }
    }
    println!(
        "\n| held by | median ms | p90 | least | over plain `sh` |\n|---|---:|---:|---:|---:|"
    );
    let mut plain = 0.0;
    for (level, mut times) in levels.into_iter().zip(times) {
        times.sort_unstable_by(f64::total_cmp);
        let [least, median, p90] = [0, 50, 90].map(|it| percentile(&times, it.max(1)));
        if level.is_none() {
            plain = median;
        }
        let name = level.map_or("plain `sh`", SandboxLevel::as_str);
        println!("| {name} | {median:.2} | {p90:.2} | {least:.2} | {:.2} |", median - plain);
    }
    println!("\n{rounds} rounds, interleaved");
    Ok(())
}

/// Times out runs that try to survive; fails if any process is left.
pub(crate) fn timeouts(options: &Options<'_>) -> Result<()> {
    let runs = options.get("--runs").map_or(Ok(1000), number)?;
    let launcher = Launcher::program(program(options)?);
    let runtime = Runtime::new()?;
    println!(
        "| what | level | runs | left alive | left on disk | slowest end after its deadline |"
    );
    println!("|---|---|---:|---:|---:|---:|");
    for level in [SandboxLevel::Strong, SandboxLevel::Landlock, SandboxLevel::None] {
        let mut slowest = Duration::ZERO;
        for run in 0..runs {
            let word = format!("7{}.{run:05}", std::process::id());
            // Some are in sessions of their own, some ignore signals, some are orphans.
            let script = format!(
                "trap '' TERM HUP INT\nsetsid sleep {word} &\n(setsid sh -c \"trap '' TERM; sleep {word}\" &)\n\
                 (sleep {word} | sleep {word}) &\nsleep {word}"
            );
            let limits = RunLimits { timeout: Duration::from_millis(30), ..RunLimits::default() };
            let (job, base) = job(&script, limits)?;
            let start = Instant::now();
            let result = runtime.block_on(sandbox(&launcher, level).run(job))?;
            slowest = slowest.max(start.elapsed().saturating_sub(limits.timeout));
            ensure!(result.status == RunStatus::TimedOut, "run {run}: {result:?}");
            ensure!(!base.exists(), "run {run} left `{}`", base.display());
            ensure!(alive(&word)? == 0, "run {run} left somebody alive");
        }
        println!("| timeouts | {level} | {runs} | 0 | 0 | {:.0} ms |", milliseconds(slowest));
    }
    Ok(())
}

pub(crate) fn program(options: &Options<'_>) -> Result<PathBuf> {
    let path = match options.get("--program") {
        Some(path) => path.into(),
        None => env::current_exe()?.with_file_name("prowess"),
    };
    ensure!(path.is_file(), "there is no `{}`", path.display());
    Ok(path)
}

async fn plainly() -> Result<Duration> {
    let start = Instant::now();
    let output = Command::new("sh").args(["-c", SCRIPT]).stdin(Stdio::null()).output().await?;
    let took = start.elapsed();
    ensure!(output.stdout == b"hello\n", "{output:?}");
    Ok(took)
}

async fn held(launcher: &Launcher, level: SandboxLevel) -> Result<Duration> {
    let start = Instant::now();
    let (job, _) = job(SCRIPT, RunLimits::default())?;
    let result = sandbox(launcher, level).run(job).await?;
    let took = start.elapsed();
    ensure!(result.status == RunStatus::Ok && result.level == level, "{result:?}");
    Ok(took)
}

fn sandbox(launcher: &Launcher, level: SandboxLevel) -> Sandbox {
    let sandbox = Sandbox::new(launcher.clone(), SandboxLevel::Landlock);
    if level == SandboxLevel::None { sandbox.unconfined() } else { sandbox.at_most(level) }
}

/// Returns a job that runs a script, and the parent of its directories.
fn job(script: &str, limits: RunLimits) -> Result<(Job, PathBuf)> {
    let work = Work::new()?;
    let path = work.give("script", script.as_bytes())?;
    let base = work.path().parent().unwrap_or(Path::new("/")).to_owned();
    let argv: Vec<OsString> = vec!["sh".into(), path.into()];
    Ok((Job::new(argv, work, limits), base))
}

/// Returns the number of processes with a word in their command line.
fn alive(word: &str) -> Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir("/proc")? {
        let line = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        count += usize::from(line.windows(word.len()).any(|it| it == word.as_bytes()));
    }
    Ok(count)
}
