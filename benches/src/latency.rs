//! The latency of finding, next to its lower bound, in libraries of several sizes.

use std::{
    collections::HashMap,
    env,
    hint::black_box,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result};
use prowess::{fitting::index_bytes, matches};
use serde::{Deserialize, Serialize};

use crate::{
    baseline::Bm25,
    load::number,
    measure::{cpu_time, milliseconds, peak_kib, thread_time},
    metrics::percentile,
    options::Options,
    random::Random,
    retrieval::{self, Data, Skill},
};

/// The most requests, and the repetitions of each; the median counts.
const REQUESTS: usize = 1000;
const TIMES: usize = 3;
/// The number of matches requested.
const TOP: usize = 3;

/// The measurements of a library of one size.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    skills: usize,
    requests: usize,
    /// The bytes of all `SKILL.md` files.
    text: usize,
    index: usize,
    /// The CPU time, of all threads together.
    load_ms: f64,
    index_ms: f64,
    peak_kib: u64,
    rows: Vec<Row>,
}

/// The times of one method, in microseconds.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    p50: f64,
    p95: f64,
    p99: f64,
}

/// Measures each size in a process of its own, so that each has its own peak of memory.
pub(crate) fn latency(options: &Options<'_>) -> Result<()> {
    let sizes = options.get("--sizes").unwrap_or("1000,10000,50000").split(',');
    let sizes = sizes.map(number).collect::<Result<Vec<usize>>>()?;
    let mut reports = Vec::new();
    for size in sizes {
        let output = Command::new(env::current_exe()?)
            .args(["measure-latency", &size.to_string()])
            .args([options.path("--skills")?, options.path("--queries")?])
            .stderr(Stdio::inherit())
            .output()?;
        let report = serde_json::from_slice::<Report>(&output.stdout);
        reports.push(report.with_context(|| format!("measuring {size} skills failed"))?);
    }
    print_sizes(&reports);
    print_times(&reports);
    Ok(())
}

/// Measures one size in this process.
pub(crate) fn inside(size: usize, skills: &Path, queries: &Path) -> Result<()> {
    let data = Data::read(skills, queries, None)?;
    let step = data.requests.len().div_ceil(REQUESTS);
    let requests: Vec<&str> = data.requests.iter().step_by(step).map(|it| &*it.query).collect();
    let skills = grown(data.skills, size);
    let size_of = |it: &Skill| it.name.len() + it.description.len() + it.body.len();

    let start = cpu_time();
    let library = retrieval::library(&skills);
    let loaded = cpu_time();
    let index = index_bytes(&library);
    let (load_ms, index_ms) = (milliseconds(loaded - start), milliseconds(cpu_time() - loaded));
    let prowess = timed("prowess", &requests, |it| matches(&library, it, TOP).len());
    let peak_kib = peak_kib()?;

    let scan = Scan::new(&skills);
    let words: HashMap<&str, String> = requests.iter().map(|it| (*it, scan.rarest(it))).collect();
    let scan = timed("scan", &requests, |it| scan.count(&words[it]));
    let bm25 = Bm25::described(&skills);
    let described = timed("BM25", &requests, |it| bm25.best(it, TOP).len());
    let bm25 = Bm25::whole(&skills);
    let whole = timed("BM25 with body", &requests, |it| bm25.best(it, TOP).len());
    let report = Report {
        skills: skills.len(),
        requests: requests.len(),
        text: skills.iter().map(size_of).sum(),
        index,
        load_ms,
        index_ms,
        peak_kib,
        rows: vec![scan, described, whole, prowess],
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Makes `size` skills of the given ones. Each one that is reused gets a made-up word of its own in
/// name and description and five in its body: words of many skills get more common as the library
/// grows, and new ones come in with every skill, as they do in reality. The word comes first in the
/// name, so that copies are apart, and the lines of the body are shuffled: a CPU predicts what it
/// has just read in another copy.
fn grown(mut skills: Vec<Skill>, size: usize) -> Vec<Skill> {
    let mut random = Random::new(47);
    random.shuffle(&mut skills);
    let real = skills.len();
    for number in real..size {
        let mut skill = skills[number % real].clone();
        let word = made_up(&mut random);
        skill.id = format!("{}x{number}", skill.id);
        skill.name = format!("{word}-{}", skill.name);
        skill.description = format!("{} {word}", skill.description);
        let mut lines: Vec<&str> = skill.body.lines().collect();
        random.shuffle(&mut lines);
        skill.body = lines.join("\n");
        for _ in 0..5 {
            skill.body = format!("{} {}", skill.body, made_up(&mut random));
        }
        skills.push(skill);
    }
    skills.truncate(size);
    skills
}

/// Returns a word of four syllables.
fn made_up(random: &mut Random) -> String {
    let mut syllable = || [random.pick(b"bdfgklmnprstvz"), random.pick(b"aeiou")];
    (0..4).flat_map(|_| syllable()).map(char::from).collect()
}

/// The lower bound: one search for a word through all descriptions.
struct Scan {
    descriptions: Vec<String>,
    /// The number of descriptions with each word.
    counts: HashMap<String, usize>,
}

impl Scan {
    fn new(skills: &[Skill]) -> Self {
        let descriptions: Vec<String> =
            skills.iter().map(|it| it.description.to_lowercase()).collect();
        let mut counts = HashMap::new();
        for description in &descriptions {
            let mut words: Vec<&str> = split(description).collect();
            words.sort_unstable();
            words.dedup();
            for word in words {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        }
        Self { descriptions, counts }
    }

    /// Returns the rarest word of a request that is in a description, otherwise its first.
    fn rarest(&self, request: &str) -> String {
        let request = request.to_lowercase();
        let known = split(&request).filter_map(|it| Some((self.counts.get(it)?, it)));
        let rarest = known.min().map(|it| it.1);
        rarest.or_else(|| split(&request).next()).unwrap_or_default().to_owned()
    }

    fn count(&self, word: &str) -> usize {
        self.descriptions.iter().filter(|it| it.contains(word)).count()
    }
}

fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty())
}

/// Answers every request once to warm up, and then several times. The CPU time of the thread
/// counts, so that other load on the machine is left out.
fn timed(name: &str, requests: &[&str], answer: impl Fn(&str) -> usize) -> Row {
    for request in requests {
        black_box(answer(request));
    }
    let middle = |request: &&str| {
        let mut times = [Duration::ZERO; TIMES].map(|_| {
            let start = thread_time();
            black_box(answer(request));
            thread_time() - start
        });
        times.sort_unstable();
        times[TIMES / 2].as_secs_f64() * 1e6
    };
    let mut times: Vec<f64> = requests.iter().map(middle).collect();
    times.sort_unstable_by(f64::total_cmp);
    let [p50, p95, p99] = [50, 95, 99].map(|it| percentile(&times, it));
    Row { name: name.to_owned(), p50, p95, p99 }
}

fn print_sizes(reports: &[Report]) {
    println!();
    println!(
        "| skills | text, bytes a skill | load, CPU ms | index, CPU ms | µs a skill | index, bytes a skill | \
         ÷ text | peak RSS MiB |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for it in reports {
        let each = |sum: f64| sum / it.skills as f64;
        println!(
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {} |",
            it.skills,
            each(it.text as f64),
            it.load_ms,
            it.index_ms,
            each(it.index_ms * 1e3),
            each(it.index as f64),
            it.index as f64 / it.text as f64,
            it.peak_kib / 1024,
        );
    }
}

fn print_times(reports: &[Report]) {
    println!();
    println!("| skills | by | p50 µs | p95 µs | p99 µs | p50 ÷ scan | ÷ BM25 | ÷ that of fewer |");
    println!("|---:|---|---:|---:|---:|---:|---:|---:|");
    let mut fewer: Option<&Report> = None;
    for report in reports {
        let (scan, bm25) = (&report.rows[0], &report.rows[1]);
        for (at, Row { name, p50, p95, p99 }) in report.rows.iter().enumerate() {
            let (to_scan, to_bm25) = (p50 / scan.p50, p50 / bm25.p50);
            let growth = fewer.map(|it| format!("{:.1}", p50 / it.rows[at].p50));
            println!(
                "| {} | {name} | {p50:.0} | {p95:.0} | {p99:.0} | {to_scan:.2} | {to_bm25:.2} | {} |",
                report.skills,
                growth.as_deref().unwrap_or("-"),
            );
        }
        fewer = Some(report);
    }
    let requests = reports.first().map_or(0, |it| it.requests);
    println!();
    println!("{requests} requests, each asked {TIMES} times; the middle of its CPU times counts");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(number: usize) -> Skill {
        Skill {
            id: format!("s{number}"),
            name: format!("skill-{number}"),
            description: format!("Bakes Bread and cake, number {number}"),
            body: "# Bread\n".to_owned(),
            repo: String::new(),
        }
    }

    #[test]
    fn a_library_grows_by_skills_of_their_own() {
        let grown = grown((0..3).map(skill).collect(), 8);
        let library = retrieval::library(&grown);
        assert_eq!(library.skills().count(), 8, "{:?}", library.findings());
        assert_eq!(super::grown((0..3).map(skill).collect(), 2).len(), 2);
    }

    #[test]
    fn the_floor_looks_for_the_rarest_word() {
        let scan = Scan::new(&(0..20).map(skill).collect::<Vec<_>>());
        assert_eq!(scan.rarest("Cake 7 please"), "7");
        assert_eq!(scan.rarest("Please sing"), "please");
        assert_eq!(scan.rarest("?!"), "");
        assert_eq!(scan.count("bread"), 20);
        assert_eq!(scan.count("number 1"), 11);
    }
}
