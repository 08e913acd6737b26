//! Loading: makes a library, measures every case, and prints the table.

use std::{
    env,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    USAGE,
    corpus::{Corpus, Library},
    measure::{self, CASES, COLD, Case, Report, Work},
    random::Random,
};

/// The library to load, and the number of rounds.
pub(crate) struct Options {
    corpus: Corpus,
    rounds: usize,
    cold: bool,
    program: PathBuf,
}

impl Options {
    pub(crate) fn new(words: &[&str]) -> Result<Self> {
        let mut corpus = Corpus { skills: 20_000, from: None, distinct: false, resources: false };
        let (mut rounds, mut cold) = (9, false);
        let mut program = env::current_exe()?.with_file_name("prowess");
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` wants a value"));
            match word {
                "--skills" => corpus.skills = number(value()?)?,
                "--from" => corpus.from = Some(value()?.into()),
                "--distinct" => corpus.distinct = true,
                "--resources" => corpus.resources = true,
                "--rounds" => rounds = number(value()?)?,
                "--cold" => cold = true,
                "--program" => program = value()?.into(),
                _ => bail!("there is no option `{word}`\n{USAGE}"),
            }
        }
        Ok(Self { corpus, rounds, cold, program })
    }
}

/// Makes a library, measures every case, and prints the table.
pub(crate) fn load(options: &Options) -> Result<()> {
    let library = options.corpus.make()?;
    println!("{} skills, {} rounds; {}", options.corpus.skills, options.rounds, library.about);
    // Pending writes would disturb the first rounds.
    rustix::fs::sync();
    // Files that were just written are not cached.
    thread::sleep(Duration::from_secs(3));

    let mut cases: Vec<&Case> = CASES.iter().collect();
    if !options.program.is_file() {
        println!("there is no `{}`: whole programs are skipped", options.program.display());
        cases.retain(|it| !matches!(it.work, Work::Program(_)));
    }
    let mut rows: Vec<Row> =
        CASES.iter().map(|it| Row { name: it.name, reports: vec![] }).collect();
    let mut random = Random::new(7);
    for round in 0..=options.rounds {
        random.shuffle(&mut cases);
        for case in &cases {
            let report = measure::outside(case, &options.program, &library.root)?;
            // The first round only warms up.
            if round > 0 {
                let row = rows.iter_mut().find(|it| it.name == case.name);
                row.context("every case has a row")?.reports.push(report);
            }
        }
    }
    rows.retain(|it| !it.reports.is_empty());
    print_table(&rows);
    print_load(&rows, options.corpus.skills);
    if options.cold { cold(&library, &options.program) } else { Ok(()) }
}

/// The results of one case over all rounds.
struct Row {
    name: &'static str,
    reports: Vec<Report>,
}

impl Row {
    fn median(&self, figure: impl Fn(&Report) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.reports.iter().map(figure).collect();
        figures.sort_unstable_by(f64::total_cmp);
        figures[figures.len() / 2]
    }

    fn wall(&self) -> f64 {
        self.median(|it| it.wall_ms)
    }

    /// Returns the median, or the mean if the clock only ticks every few milliseconds.
    fn cpu(&self) -> f64 {
        if self.reports.iter().any(|it| it.ticks) {
            let sum: f64 = self.reports.iter().map(|it| it.cpu_ms).sum();
            return sum / self.reports.len() as f64;
        }
        self.median(|it| it.cpu_ms)
    }
}

fn row<'a>(rows: &'a [Row], name: &str) -> Option<&'a Row> {
    rows.iter().find(|it| it.name == name)
}

fn print_table(rows: &[Row]) {
    let ratio = |wall: f64, name: &str| {
        row(rows, name).map_or_else(|| "-".to_owned(), |it| format!("{:.2}", wall / it.wall()))
    };
    println!();
    println!(
        "| case | wall ms | least | CPU ms | ÷ stat-1t | ÷ probe4k-2t | ÷ walk4k-2t | peak RSS MiB |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for it in rows {
        let (wall, cpu) = (it.wall(), it.cpu());
        let least = it.reports.iter().map(|it| it.wall_ms).fold(f64::INFINITY, f64::min);
        let peak = it.median(|it| it.peak_kib as f64) / 1024.0;
        let peak = if peak > 0.0 { format!("{peak:.1}") } else { "-".to_owned() };
        let ratios = ["stat-1t", "probe4k-2t", "walk4k-2t"].map(|it| ratio(wall, it)).join(" | ");
        println!("| {} | {wall:.1} | {least:.1} | {cpu:.1} | {ratios} | {peak} |", it.name);
    }
    println!();
    println!("wall and CPU: the median; CPU of whole programs: the mean of what the system ticked");
}

/// Prints the skills found, and the memory kept beyond the text.
fn print_load(rows: &[Row], skills: usize) {
    let (Some(load), Some(text), Some(nothing)) =
        (row(rows, "load"), row(rows, "text-1t"), row(rows, "nothing"))
    else {
        return;
    };
    let Report { found, left_out, findings, .. } = load.reports[0];
    println!("load: {found} found, {left_out} left out, {findings} findings");
    let kept = text.reports[0].kept as f64;
    let beyond = |figure: fn(&Report) -> u64| {
        let grown = load.median(|it| figure(it) as f64) - nothing.median(|it| figure(it) as f64);
        (grown * 1024.0 - kept) / skills as f64
    };
    println!(
        "memory: {:.0} bytes of frontmatter per skill; beyond it {:.0} bytes at the peak, {:.0} \
         when loaded",
        kept / skills as f64,
        beyond(|it| it.peak_kib),
        beyond(|it| it.settled_kib)
    );
}

/// Measures some cases once each with cold caches of the system.
fn cold(library: &Library, program: &Path) -> Result<()> {
    println!();
    println!("| cold | wall ms | CPU ms |");
    println!("|---|---:|---:|");
    for case in CASES.iter().filter(|it| COLD.contains(&it.name)) {
        rustix::fs::sync();
        if let Err(error) = std::fs::write("/proc/sys/vm/drop_caches", "3") {
            println!("the caches cannot be dropped, which takes root: {error}");
            return Ok(());
        }
        let report = measure::outside(case, program, &library.root)?;
        println!("| {} | {:.0} | {:.0} |", case.name, report.wall_ms, report.cpu_ms);
    }
    Ok(())
}

/// Parses a number from 1.
pub(crate) fn number(word: &str) -> Result<usize> {
    match word.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => bail!("`{word}` is not a number from 1"),
    }
}
