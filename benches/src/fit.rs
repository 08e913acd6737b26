//! Fits what the matcher goes by: how common words are, what each feature of a match counts, and
//! what makes a match likely.
//!
//! Everything is fitted on requests with the skills that are right for them. What is printed is
//! cross-validated over the repositories of the skills: the weights that rank a request have never
//! seen a skill of the same repository.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use prowess::{
    Library,
    fitting::{self, FEATURES, Features, SIGNALS, Signals},
};

use crate::{
    random::Random,
    retrieval::{Data, Metrics, Request},
};

/// How many parts the repositories are divided into.
const FOLDS: u64 = 5;
/// The sizes of the libraries that confidences are fitted on.
const POOLS: [usize; 6] = [5, 20, 50, 200, 1000, 5000];
/// About how many requests are asked of the pools of one size.
const REQUESTS: usize = 1500;
/// A stem is in the table when it stands in one of so many skills.
const COMMON: usize = 1000;

/// Weights for requests of one word, then for long ones.
const WIDTH: usize = 2 * FEATURES.len();
type Weights = [f64; WIDTH];

/// Writes how common the stems of the skills are.
pub(crate) fn background(data: &Data, path: &Path) -> Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for skill in &data.skills {
        for stem in fitting::stems(&format!("{} {} {}", skill.name, skill.description, skill.body)) {
            *counts.entry(stem).or_default() += 1;
        }
    }
    let all = data.skills.len();
    let mut table = String::new();
    for (stem, count) in counts.iter().filter(|it| it.1 * COMMON >= all) {
        writeln!(table, "{stem} {:.0}", (all as f64 / *count as f64).ln() * 10.0)?;
    }
    fs::write(path, table).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Fits and writes the weights; prints what they come to.
pub(crate) fn weights(data: &Data, path: &Path) -> Result<()> {
    let all: Vec<usize> = (0..data.skills.len()).collect();
    let library = data.library(&all)?;
    let asked: Vec<Asked<'_>> =
        data.requests.iter().map(|it| Asked::new(data, &library, it)).collect();
    cross_validate(&asked);
    if par("CV", 0.0) > 0.0 { return Ok(()); }
    let weights = rank(&asked.iter().collect::<Vec<_>>());
    let pools = pools(data, &weights)?;
    let confidence = confidence(&pools);
    let fall = fall(&pools, &confidence);
    report(&pools, &confidence, fall);
    fs::write(path, source(&weights, &confidence, fall)?)
        .with_context(|| format!("cannot write `{}`", path.display()))
}

/// A request with what was found for it.
struct Asked<'d> {
    request: &'d Request,
    /// What was found: whether it is right, and its features, for short requests and long ones.
    found: Vec<(String, bool, Weights)>,
    features: Vec<Features>,
    places: Vec<u32>,
    fold: u64,
}

impl<'d> Asked<'d> {
    fn new(data: &Data, library: &Library, request: &'d Request) -> Self {
        let candidates = fitting::candidates(library, &request.query);
        let skills: Vec<_> = library.all().collect();
        let long = f64::from(candidates.long);
        let found = candidates.found.iter().map(|(place, features)| {
            let id = data.id(skills[*place as usize]);
            let mut both = [0.0; WIDTH];
            for (at, feature) in features.iter().enumerate() {
                both[at] = f64::from(*feature) * (1.0 - long);
                both[FEATURES.len() + at] = f64::from(*feature) * long;
            }
            let is_right = request.gold.contains(&id);
            (id, is_right, both)
        });
        let repository = data.repository(&request.gold[0]);
        let fold = repository.bytes().fold(7_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self {
            request,
            found: found.collect(),
            features: candidates.found.iter().map(|it| it.1).collect(),
            places: candidates.found.iter().map(|it| it.0).collect(),
            fold: (fold >> 20) % FOLDS,
        }
    }

    /// How much it counts: requests that a model made up are often right for other skills too.
    fn counts(&self) -> f64 {
        if self.request.stratum == "llm" { par("LLM", 0.4) } else { 1.0 }
    }

    /// The places of what was found, best first, with their scores.
    fn ranked(&self, weights: &Weights) -> Vec<(usize, f64)> {
        let mut ranked: Vec<(usize, f64)> =
            self.found.iter().map(|it| dot(&it.2, weights)).enumerate().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }
}

/// Prints how well the weights do on requests about repositories that they have not seen.
fn cross_validate(asked: &[Asked<'_>]) {
    let mut ranked: Vec<(&Request, Vec<String>)> = Vec::new();
    for fold in 0..FOLDS {
        let seen: Vec<&Asked<'_>> = asked.iter().filter(|it| it.fold != fold).collect();
        let weights = rank(&seen);
        for it in asked.iter().filter(|it| it.fold == fold) {
            let order = it.ranked(&weights);
            ranked.push((it.request, order.iter().map(|at| it.found[at.0].0.clone()).collect()));
        }
    }
    println!("\nCross-validated over repositories:\n");
    Metrics::print("prowess", ranked.iter().map(|(request, ids)| (*request, &ids[..])));
}

/// The weights under which the right skills are most likely to be first.
fn rank(asked: &[&Asked<'_>]) -> Weights {
    let useful: Vec<_> = asked.iter().filter(|it| it.found.iter().any(|it| it.1)).collect();
    let total: f64 = useful.iter().map(|it| it.counts()).sum();
    let mut start = [0.0; WIDTH];
    (start[0], start[FEATURES.len()]) = (10.0, 10.0);
    descend(start, par("STEPS", 250.0) as i32, |weights, slope| {
        for it in &useful {
            // Only what is near the first can change the order.
            let mut scores: Vec<(f64, bool, &Weights)> =
                it.found.iter().map(|it| (dot(&it.2, weights), it.1, &it.2)).collect();
            let top = scores.iter().map(|it| it.0).fold(f64::NEG_INFINITY, f64::max);
            scores.iter_mut().for_each(|it| it.0 = (it.0 - top).exp());
            let all: f64 = scores.iter().map(|it| it.0).sum();
            let right: f64 = scores.iter().filter(|it| it.1).map(|it| it.0).sum::<f64>().max(1e-300);
            for (score, is_right, features) in scores {
                let share = score / all - if is_right { score / right } else { 0.0 };
                if share.abs() > 1e-5 {
                    let step = it.counts() * share / total;
                    slope.iter_mut().zip(features).for_each(|(slope, it)| *slope += step * it);
                }
            }
        }
        slope.iter_mut().zip(weights).for_each(|(slope, weight)| *slope += par("L2", 1e-6) * weight);
    })
}

/// A request asked of a small library: what speaks for the first, and what was right.
struct Pool {
    size: usize,
    stratum: String,
    signals: Signals,
    /// Whether each of the best is right, and how far its score is behind.
    best: Vec<(bool, f64)>,
    counts: f64,
}

/// Asks requests of libraries of every size; half of them fit no skill that is there.
fn pools(data: &Data, weights: &Weights) -> Result<Vec<Pool>> {
    let mut random = Random::new(11);
    let mut pools = Vec::new();
    for size in POOLS {
        let mut right = 0;
        while right < REQUESTS {
            let (library, with, without) = data.pool(size, &mut random)?;
            for request in with.iter().chain(&without) {
                let it = Asked::new(data, &library, request);
                let ranked = it.ranked(weights);
                let scored: Vec<(u32, f32, Features)> = ranked
                    .iter()
                    .map(|(at, score)| (it.places[*at], *score as f32, it.features[*at]))
                    .collect();
                let Some(signals) = fitting::signals(&library, &request.query, &scored) else { continue };
                let top = ranked[0].1;
                let best =
                    ranked.iter().take(5).map(|(at, score)| (it.found[*at].1, score - top)).collect();
                let (stratum, counts) = (request.stratum.clone(), it.counts());
                pools.push(Pool { size, stratum, signals, best, counts });
            }
            right += with.len();
        }
    }
    Ok(pools)
}

/// The weights under which the confidences of first matches are most likely.
fn confidence(pools: &[Pool]) -> Signals {
    let total: f64 = pools.iter().map(|it| it.counts).sum();
    let weights = descend([0.0; SIGNALS.len()], 800, |weights, slope| {
        for pool in pools {
            let signals = pool.signals.map(f64::from);
            let off = 1.0 / (1.0 + (-dot(&signals, weights)).exp()) - f64::from(u8::from(pool.best[0].0));
            let step = pool.counts * off / total;
            slope.iter_mut().zip(&signals).for_each(|(slope, it)| *slope += step * it);
        }
    });
    weights.map(|it| it as f32)
}

/// How fast confidence falls with the score, behind the first.
fn fall(pools: &[Pool], confidence: &Signals) -> f32 {
    let loss = |fall: f64| -> f64 {
        let behind = pools.iter().flat_map(|pool| {
            let first = first(pool, confidence);
            pool.best[1..].iter().map(move |(right, score)| {
                let likely = (first * (score * fall).exp()).clamp(1e-6, 1.0 - 1e-6);
                -pool.counts * if *right { likely.ln() } else { (1.0 - likely).ln() }
            })
        });
        behind.sum()
    };
    let tries = (1..200).map(|it| f64::from(it) * 0.05);
    tries.min_by(|a, b| loss(*a).total_cmp(&loss(*b))).unwrap_or(1.0) as f32
}

fn first(pool: &Pool, confidence: &Signals) -> f64 {
    let sum: f32 = pool.signals.iter().zip(confidence).map(|(signal, weight)| signal * weight).sum();
    1.0 / (1.0 + f64::from(-sum).exp())
}

/// Prints how far confidences are from the truth, by the size of the library.
fn report(pools: &[Pool], confidence: &Signals, fall: f32) {
    println!("\n| skills | requests | first matches: off by | second to fifth: off by |");
    println!("|---:|---:|---:|---:|");
    for size in POOLS {
        let own: Vec<&Pool> = pools.iter().filter(|it| it.size == size).collect();
        let firsts = own.iter().map(|it| (first(it, confidence), it.best[0].0));
        let others = own.iter().flat_map(|it| {
            let likely = first(it, confidence);
            it.best[1..].iter().map(move |(right, score)| (likely * (score * f64::from(fall)).exp(), *right))
        });
        let (firsts, others) = (off(firsts.collect()), off(others.collect()));
        println!("| {size} | {} | {firsts:.3} | {others:.3} |", own.len());
    }
    for stratum in ["author", "named", "llm", "skillsbench"] {
        let own = pools.iter().filter(|it| it.stratum == stratum);
        println!("{stratum}: off by {:.3}", off(own.map(|it| (first(it, confidence), it.best[0].0)).collect()));
    }
}

/// The expected calibration error over ten bins.
fn off(said: Vec<(f64, bool)>) -> f64 {
    let mut bins = [(0.0, 0.0, 0.0); 10];
    for (likely, is_right) in &said {
        let bin = &mut bins[((likely * 10.0) as usize).min(9)];
        *bin = (bin.0 + likely, bin.1 + f64::from(u8::from(*is_right)), bin.2 + 1.0);
    }
    bins.iter().map(|it| (it.0 - it.1).abs()).sum::<f64>() / said.len().max(1) as f64
}

/// Goes downhill (Adam) from `start`; `slope` adds up the slope at some weights.
fn descend<const N: usize>(
    start: [f64; N],
    steps: i32,
    mut slope: impl FnMut(&[f64; N], &mut [f64; N]),
) -> [f64; N] {
    let mut weights = start;
    let (mut mean, mut square) = ([0.0; N], [0.0; N]);
    for step in 1..=steps {
        let mut now = [0.0; N];
        slope(&weights, &mut now);
        let pace = 0.6 * (1.0 - f64::from(step) / f64::from(steps + 1));
        for at in 0..N {
            mean[at] = 0.9 * mean[at] + 0.1 * now[at];
            square[at] = 0.99 * square[at] + 0.01 * now[at] * now[at];
            let (mean, square) =
                (mean[at] / (1.0 - 0.9_f64.powi(step)), square[at] / (1.0 - 0.99_f64.powi(step)));
            weights[at] -= pace * mean / (square.sqrt() + 1e-9);
        }
    }
    weights
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The weights as source of the library.
fn source(weights: &Weights, confidence: &Signals, fall: f32) -> Result<String> {
    let mut out = String::from(
        "//! Written by `prowess-benches fit`; `docs/benchmarks.md` says from what.\n\n\
         use super::{confidence::Signals, rank::Features};\n",
    );
    let (short, long) = weights.split_at(FEATURES.len());
    let mut table = |name: &str, kind: &str, about: &str, values: &[f64], names: &[&str]| {
        write!(out, "\n/// {about}\npub(crate) const {name}: {kind} = [\n")?;
        for (value, name) in values.iter().zip(names) {
            writeln!(out, "    {value:.3}, // {name}")?;
        }
        writeln!(out, "];")
    };
    table("SHORT", "Features", "What each feature counts in a request of one word.", short, &FEATURES)?;
    table("LONG", "Features", "What it counts in a request of 32 words or more.", long, &FEATURES)?;
    let confidence = confidence.map(f64::from);
    table("CONFIDENCE", "Signals", "What each signal counts.", &confidence, &SIGNALS)?;
    write!(
        out,
        "\n/// How fast confidence falls with the score, behind the first.\n\
         pub(crate) const FALL: f32 = {fall:.3};\n"
    )?;
    Ok(out)
}

fn par(name: &str, default: f64) -> f64 { std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default) }
