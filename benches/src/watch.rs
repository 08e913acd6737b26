//! The latency of change notifications, their cost, and the memory they leave behind.

use std::{
    fs,
    io::{BufRead as _, BufReader, Lines},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value as Json;

use crate::{
    corpus::Corpus,
    load::number,
    measure::{cpu_ms_of, milliseconds, settled_kib_of},
    metrics::percentile,
    options::Options,
    sandbox::program,
};

/// The number of changes before memory is first measured.
const FIRST: usize = 20;
/// The time without changes for which the idle cost is measured.
const IDLE: Duration = Duration::from_secs(10);

/// Follows libraries of several sizes, and changes one skill at a time.
pub(crate) fn watch(options: &Options<'_>) -> Result<()> {
    let program = program(options)?;
    let edits = options.get("--edits").map_or(Ok(1000), number)?;
    println!(
        "| skills | start ms | edit to news p50 ms | p99 | CPU an edit ms | CPU idle ms a minute | MiB at the start | after {FIRST} edits | after {edits} |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for size in options.get("--sizes").unwrap_or("1000,20000").split(',') {
        let from = options.get("--from").map(PathBuf::from);
        let library =
            Corpus { skills: number(size)?, from, distinct: true, resources: true }.make()?;
        println!("| {size} | {} |", followed(&program, &library.root, edits)?.join(" | "));
    }
    Ok(())
}

fn followed(program: &Path, root: &Path, edits: usize) -> Result<Vec<String>> {
    let started = Instant::now();
    let mut following = Following::start(program, root)?;
    let list: Json = serde_json::from_str(&following.line()?)?;
    let start = milliseconds(started.elapsed());
    // Changes of a left-out skill are not notified.
    let skills = list["skills"].as_array().context("it lists skills")?;
    let skills: Vec<&str> = skills.iter().filter_map(|it| it["path"].as_str()).collect();
    ensure!(!skills.is_empty(), "there is nothing to change");
    let mib = |following: &Following| Ok::<_, anyhow::Error>(following.kib()? as f64 / 1024.0);
    let at_the_start = mib(&following)?;
    let before = following.cpu()?;
    thread::sleep(IDLE);
    let idle = (following.cpu()? - before) * 60.0 / IDLE.as_secs_f64();
    let before = following.cpu()?;
    let (mut times, mut first) = (Vec::new(), f64::NAN);
    for number in 0..edits {
        if number == FIRST {
            first = mib(&following)?;
        }
        let document = Path::new(skills[number * 7919 % skills.len()]);
        let mut text = fs::read(document)?;
        text.extend(format!("\nEdited for the {number}th time.\n").into_bytes());
        let draft = document.with_file_name(".draft");
        fs::write(&draft, text)?;
        let edited = Instant::now();
        fs::rename(&draft, document)?;
        let library_changes = following.line()?;
        ensure!(
            library_changes.contains("\"event\":\"changed\""),
            "an edit was told as {library_changes}"
        );
        times.push(milliseconds(edited.elapsed()));
    }
    let cpu = (following.cpu()? - before) / edits as f64;
    times.sort_by(f64::total_cmp);
    let (p50, p99) = (percentile(&times, 50), percentile(&times, 99));
    let last = mib(&following)?;
    let figures = [start, p50, p99, cpu, idle, at_the_start, first, last];
    Ok(figures.into_iter().map(|it| format!("{it:.1}")).collect())
}

/// The program that follows a list.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn start(program: &Path, root: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["list", "--watch", "--json", "--quiet", "--no-cache", "--dir"])
            .arg(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().context("it has a stdout")?).lines();
        Ok(Self { child, lines })
    }

    fn line(&mut self) -> Result<String> {
        Ok(self.lines.next().context("it goes on")??)
    }

    fn cpu(&self) -> Result<f64> {
        cpu_ms_of(self.child.id())
    }

    fn kib(&self) -> Result<u64> {
        settled_kib_of(self.child.id())
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
