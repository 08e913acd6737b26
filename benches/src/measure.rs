//! The cases, each measured in a process of its own.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use prowess::{Cache, Directory, Library, Listing, Options, matches};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::floor::Floor;

/// One line of the table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
}

/// The work of a case.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    Nothing,
    /// The lower bound, with this many threads.
    Floor(Floor, usize),
    Load(Listing),
    /// A load from the cache of earlier rounds; and one with a request.
    Again,
    Find,
    /// The whole program, with these arguments and `--dir`.
    Program(&'static [&'static str]),
}

/// All cases.
pub(crate) const CASES: &[Case] = &[
    Case { name: "nothing", work: Work::Nothing },
    Case { name: "stat-1t", work: Work::Floor(Floor::Stat, 1) },
    Case { name: "stats-1t", work: Work::Floor(Floor::Stats, 1) },
    Case { name: "probe4k-1t", work: Work::Floor(Floor::Probe, 1) },
    Case { name: "probe4k-2t", work: Work::Floor(Floor::Probe, 2) },
    Case { name: "probe4k-16t", work: Work::Floor(Floor::Probe, 16) },
    Case { name: "walk4k-1t", work: Work::Floor(Floor::Walk, 1) },
    Case { name: "walk4k-2t", work: Work::Floor(Floor::Walk, 2) },
    Case { name: "text-1t", work: Work::Floor(Floor::Text, 1) },
    Case { name: "text-2t", work: Work::Floor(Floor::Text, 2) },
    Case { name: "load", work: Work::Load(Listing::AtOnce) },
    Case { name: "load on demand", work: Work::Load(Listing::OnDemand) },
    Case { name: "load again", work: Work::Again },
    Case { name: "find again", work: Work::Find },
    Case { name: "prowess list --no-cache", work: Work::Program(&["list", "--no-cache"]) },
    Case { name: "prowess list", work: Work::Program(&["list"]) },
    Case { name: "prowess list --json", work: Work::Program(&["list", "--json"]) },
    Case { name: "prowess find", work: Work::Program(&["find", REQUEST]) },
    Case { name: "prowess --version", work: Work::Program(&["--version"]) },
];

/// The request.
const REQUEST: &str = "make a report of the test coverage";

/// The cases that are measured with cold caches.
pub(crate) const COLD: &[&str] =
    &["probe4k-1t", "probe4k-2t", "probe4k-16t", "load", "load on demand"];

/// The result of one measurement.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) wall_ms: f64,
    pub(crate) cpu_ms: f64,
    /// Whether the CPU time comes from a clock that ticks every few milliseconds.
    pub(crate) ticks: bool,
    pub(crate) peak_kib: u64,
    /// The memory that is still in use when the work is done.
    pub(crate) settled_kib: u64,
    pub(crate) found: usize,
    pub(crate) left_out: usize,
    pub(crate) findings: usize,
    /// The bytes of the texts that were kept.
    pub(crate) kept: usize,
}

/// Measures a case in a new process.
pub(crate) fn outside(case: &Case, program: &Path, root: &Path) -> Result<Report> {
    if let Work::Program(arguments) = case.work {
        let mut command = Command::new(program);
        command.env("XDG_CACHE_HOME", root.with_file_name("cache"));
        return whole(command.args(arguments).arg("--dir").arg(root));
    }
    let output = Command::new(env::current_exe()?)
        .args(["measure", case.name])
        .arg(root)
        .stderr(Stdio::inherit())
        .output()?;
    serde_json::from_slice(&output.stdout).with_context(|| format!("`{}` failed", case.name))
}

/// Measures a case in this process.
pub(crate) fn inside(case: &Case, root: &Path) -> Result<Report> {
    let options = Options { directories: vec![Directory::new(root)], ..Options::default() };
    let start = Clock::start();
    let mut report = Report::default();
    match case.work {
        Work::Nothing => start.stop(&mut report)?,
        Work::Floor(floor, threads) => {
            let found = floor.run(root, threads)?;
            start.stop(&mut report)?;
            report.found = found.files;
            report.kept = found.texts.iter().map(|it| it.len()).sum();
        }
        Work::Load(resources) => {
            let library = Library::load(&Options { resources, ..options })?;
            start.stop(&mut report)?;
            report.found = library.all().count();
            report.left_out = library.left_out().len();
            report.findings = library.findings().len();
        }
        Work::Again | Work::Find => {
            let cache = Some(Cache::new(root.with_file_name("kept")));
            let library = Library::load(&Options { cache, ..options })?;
            if matches!(case.work, Work::Find) {
                report.kept = matches(&library, REQUEST, 5).len();
            }
            start.stop(&mut report)?;
            report.found = library.all().count();
        }
        Work::Program(_) => bail!("a whole program is measured from outside"),
    }
    Ok(report)
}

struct Clock {
    wall: Instant,
    cpu: Duration,
}

impl Clock {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_time() }
    }

    fn stop(&self, report: &mut Report) -> Result<()> {
        report.wall_ms = milliseconds(self.wall.elapsed());
        report.cpu_ms = milliseconds(cpu_time().saturating_sub(self.cpu));
        report.peak_kib = peak_kib()?;
        let status = fs::read_to_string("/proc/self/status")?;
        report.settled_kib = kib(&status, "VmRSS:").context("the system tells no size")?;
        Ok(())
    }
}

/// Returns the peak memory of this process.
pub(crate) fn peak_kib() -> Result<u64> {
    peak_kib_of(std::process::id())
}

/// Returns the peak memory of a running process.
pub(crate) fn peak_kib_of(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    kib(&status, "VmHWM:").context("the system tells no peak")
}

/// Returns the current memory of a process.
pub(crate) fn settled_kib_of(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    kib(&status, "VmRSS:").context("the system tells no memory")
}

/// Returns the CPU time of a process, by a clock that ticks every few milliseconds.
pub(crate) fn cpu_ms_of(pid: u32) -> Result<f64> {
    Ok(in_ms(ticks(&pid.to_string(), 11)?))
}

/// Returns the CPU time of this thread.
pub(crate) fn thread_time() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

/// Returns the CPU time of all threads of this process.
pub(crate) fn cpu_time() -> Duration {
    duration(clock_gettime(ClockId::ProcessCPUTime))
}

fn duration(time: Timespec) -> Duration {
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Returns a figure of `/proc/PID/status`.
fn kib(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|it| it.strip_prefix(key))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Measures a program from its start to its end.
fn whole(command: &mut Command) -> Result<Report> {
    let before = ticks("self", CHILDREN)?;
    let start = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let done = AtomicBool::new(false);
    let (ended, wall_ms, peak_kib) = thread::scope(|scope| {
        // The peak is gone together with the process, so it is polled until then. A program that
        // ends before the first poll has none.
        let watcher = scope.spawn(|| {
            let mut peaks = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let now = fs::read_to_string(&status).ok();
                peaks.extend(now.and_then(|it| kib(&it, "VmHWM:")));
                thread::sleep(Duration::from_millis(2));
            }
            if peaks.len() < 5 { 0 } else { peaks.into_iter().max().unwrap_or(0) }
        });
        let ended = child.wait();
        let wall_ms = milliseconds(start.elapsed());
        done.store(true, Ordering::Relaxed);
        (ended, wall_ms, watcher.join().expect("the watcher never panics"))
    });
    if !ended?.success() {
        bail!("the program failed: {command:?}");
    }
    let cpu_ms = in_ms(ticks("self", CHILDREN)? - before);
    Ok(Report { wall_ms, cpu_ms, ticks: true, peak_kib, ..Report::default() })
}

/// The field of the CPU time of ended children in `/proc/PID/stat`.
const CHILDREN: usize = 13;

/// Returns the CPU time of a process, in ticks.
fn ticks(pid: &str, field: usize) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program may contain spaces; fields are counted from its end.
    let fields = stat.rsplit_once(')').context("the system tells no times")?.1;
    let times = fields.split_whitespace().skip(field).take(2);
    times.map(|it| it.parse::<u64>().context("the system tells no times")).sum()
}

fn in_ms(ticks: u64) -> f64 {
    ticks as f64 * 1000.0 / rustix::param::clock_ticks_per_second() as f64
}
