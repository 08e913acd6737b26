//! Fits the parameters of the matcher: the frequency of words, the weight of each feature of a
//! match, and
//! the likelihood of a match.
//!
//! Everything is fitted on requests with known right skills. The printed figures are
//! cross-validated over the repositories of the skills: the weights that rank a request have never
//! seen a skill of the same repository.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use anyhow::{Context as _, Result, bail};
use prowess::{
    Library,
    fitting::{self, FEATURES, Features, SIGNALS, Signals},
};

use crate::{
    metrics::{Answer, Quality, calibration_error},
    options::Options,
    pool::Pool,
    random::Random,
    retrieval::{Data, Request, Skill, id},
};

/// The number of folds.
const FOLDS: u64 = 5;
/// The sizes of the libraries that confidences are fitted on.
const POOLS: [usize; 6] = [5, 20, 50, 200, 1000, 5000];
/// The size of the installs that weights are fitted on, beside all skills at once.
const INSTALL: usize = 50;
/// The approximate number of requests to the libraries of one size.
const REQUESTS: usize = 3000;
/// The number of requests repeated after an unrelated skill is installed, for each size, and the
/// number of candidates for that skill.
const MOVES: usize = 300;
const STRANGERS: usize = 50;
/// A stem is in the table if it occurs in one of this many skills.
const COMMON: usize = 1000;
/// The penalty on large weights, and on weights for short requests that are far from those for long
/// ones: there are few short requests to learn from.
const RESTRAINT: f64 = 1e-4;
const KINSHIP: f64 = 1e-3;
/// The only weight that may be negative: that of the length of the body, in long requests. If more
/// of anything else could harm, a short request would be answered strangely.
const AGAINST: usize = FEATURES.len() + LENGTH;
const LENGTH: usize = 16;

/// Weights for requests of one word, then for long ones.
const WIDTH: usize = 2 * FEATURES.len();
type Weights = [f64; WIDTH];

/// Fits and writes one of the two: first `background`, then, with that compiled in, `weights`.
pub(crate) fn fit(what: &str, options: &Options<'_>) -> Result<()> {
    let data = Data::named(options)?;
    let text = match what {
        "background" => background(&data)?,
        "weights" => weights(&data)?,
        _ => bail!("`{what}` cannot be fitted, only `background` and `weights`"),
    };
    let path = options.path("--write")?;
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Returns the frequencies of the stems of the skills, as a table.
fn background(data: &Data) -> Result<String> {
    // In how many skills each stem is anywhere, and in how many in name or description.
    let mut counts: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for Skill { name, description, body, .. } in &data.skills {
        let described = fitting::english_stems(&format!("{name} {description}"));
        for stem in fitting::english_stems(body).union(&described) {
            let counts = counts.entry(stem.clone()).or_default();
            counts[0] += 1;
            counts[1] += usize::from(described.contains(stem));
        }
    }
    let all = data.skills.len() as f64;
    let rarity = |count: f64| (all / count).ln() * 10.0;
    let mut table = String::new();
    for (stem, [anywhere, described]) in &counts {
        if anywhere * COMMON >= data.skills.len() {
            let (anywhere, described) = (*anywhere as f64, *described as f64 + 0.5);
            writeln!(table, "{stem} {:.0} {:.0}", rarity(anywhere), rarity(described))?;
        }
    }
    Ok(table)
}

/// Fits the weights and prints their quality.
fn weights(data: &Data) -> Result<String> {
    let library = data.library(&(0..data.skills.len()).collect::<Vec<_>>());
    let mut asked: Vec<Asked<'_>> =
        data.requests.iter().map(|it| Asked::new(data, &library, it)).collect();
    asked.extend(asked_of_installs(data));
    cross_validate(&asked);
    let weights = rank(&asked.iter().collect::<Vec<_>>());
    let answered = answered(data, &weights);
    let confidence = confidence(&answered);
    let fall = fall(&answered, &confidence);
    report(&answered, &confidence, fall);
    report_moves(&moves(data, &weights), &confidence);
    source(&weights, &confidence, fall)
}

/// A request with its candidates.
struct Asked<'d> {
    request: &'d Request,
    found: Vec<Found>,
    fold: u64,
    /// The number of skills in the library.
    size: usize,
}

/// Returns requests to installs: each about once to skills from everywhere, and once to those that
/// were published together, which are more alike.
fn asked_of_installs(data: &Data) -> Vec<Asked<'_>> {
    let mut random = Random::new(13);
    let mut asked = Vec::new();
    while asked.len() < data.requests.len() {
        let pool = Pool::draw(data, INSTALL, &mut random);
        let library = data.library(&pool.skills);
        asked.extend(pool.matched.iter().map(|it| Asked::new(data, &library, it)));
    }
    let mut repositories: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, skill) in data.skills.iter().enumerate() {
        repositories.entry(&skill.repo).or_default().push(place);
    }
    for mut skills in repositories.into_values() {
        random.shuffle(&mut skills);
        for install in skills.chunks(INSTALL) {
            let library = data.library(install);
            let is_there = |it: &&Request| install.contains(&data.right(it)[0]);
            let requests = data.requests.iter().filter(is_there);
            asked.extend(requests.map(|it| Asked::new(data, &library, it)));
        }
    }
    asked
}

/// A candidate skill.
struct Found {
    id: String,
    /// Its index in the library.
    place: u32,
    is_right: bool,
    features: Features,
    /// The features, weighted by how short and how long the request is.
    both: Weights,
}

impl<'d> Asked<'d> {
    fn new(data: &Data, library: &Library, request: &'d Request) -> Self {
        let candidates = fitting::candidates(library, &request.query);
        let skills: Vec<_> = library.all().collect();
        let long = f64::from(candidates.long);
        let found = candidates.found.into_iter().map(|(place, features)| {
            let id = id(skills[place as usize]).to_owned();
            let mut both = [0.0; WIDTH];
            for (at, feature) in features.iter().enumerate() {
                both[at] = f64::from(*feature) * (1.0 - long);
                both[FEATURES.len() + at] = f64::from(*feature) * long;
            }
            let is_right = request.gold.contains(&id);
            Found { id, place, is_right, features, both }
        });
        let repository =
            data.right(request).first().map_or("", |place| data.skills[*place].repo.as_str());
        let hash = repository
            .bytes()
            .fold(7_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let (found, fold) = (found.collect(), (hash >> 20) % FOLDS);
        Self { request, found, fold, size: skills.len() }
    }

    /// Returns its weight: requests that a model made up, and vague ones, are often right for other
    /// skills too.
    fn counts(&self) -> f64 {
        if matches!(&*self.request.stratum, "llm" | "hard") { 0.3 } else { 1.0 }
    }

    /// Returns the candidates with their scores, best first.
    fn ranked(&self, weights: &Weights) -> Vec<(&Found, f64)> {
        let mut ranked: Vec<(&Found, f64)> =
            self.found.iter().map(|it| (it, dot(&it.both, weights))).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    /// Returns the evidence for the first candidate.
    fn signals(&self, library: &Library, ranked: &[(&Found, f64)]) -> Option<Signals> {
        let scored: Vec<(u32, f32, Features)> =
            ranked.iter().map(|(it, score)| (it.place, *score as f32, it.features)).collect();
        fitting::signals(library, &self.request.query, &scored)
    }
}

/// Prints the quality of weights on requests about repositories that they have not seen.
fn cross_validate(asked: &[Asked<'_>]) {
    let mut strata: BTreeMap<(&str, usize), Quality> = BTreeMap::new();
    for fold in 0..FOLDS {
        let seen: Vec<&Asked<'_>> = asked.iter().filter(|it| it.fold != fold).collect();
        let weights = rank(&seen);
        for it in asked.iter().filter(|it| it.fold == fold) {
            let ids: Vec<&str> = it.ranked(&weights).iter().map(|it| &*it.0.id).collect();
            let right: Vec<&str> = it.request.gold.iter().map(|it| &**it).collect();
            *strata.entry((&it.request.stratum, it.size.next_multiple_of(50))).or_default() +=
                Quality::new(&ids, &right);
        }
    }
    println!("| cross-validated | skills | requests | {} |", Quality::FIGURES.join(" | "));
    println!("|---|---:|---:|{}", "---:|".repeat(Quality::FIGURES.len()));
    for ((stratum, size), quality) in strata {
        let figures = quality.mean().map(|it| format!("{:.1}", it * 100.0));
        println!("| {stratum} | {size} | {} | {} |", quality.requests, figures.join(" | "));
    }
}

/// Returns the weights under which the right skills are most likely to be first.
fn rank(asked: &[&Asked<'_>]) -> Weights {
    let useful: Vec<_> = asked.iter().filter(|it| it.found.iter().any(|it| it.is_right)).collect();
    let total: f64 = useful.iter().map(|it| it.counts()).sum();
    let least = |at: usize| if at == AGAINST { f64::NEG_INFINITY } else { 0.0 };
    descend([1.0; WIDTH], 300, least, |weights, slope| {
        for it in &useful {
            let scores: Vec<f64> = it.found.iter().map(|it| dot(&it.both, weights)).collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let likely = || scores.iter().map(|score| (score - top).exp()).zip(&it.found);
            let all: f64 = likely().map(|it| it.0).sum();
            let right: f64 = likely().filter(|it| it.1.is_right).map(|it| it.0).sum();
            for (likely, found) in likely() {
                let wanted = if found.is_right { likely / right.max(1e-300) } else { 0.0 };
                let step = it.counts() * (likely / all - wanted) / total;
                if step.abs() > 1e-9 {
                    slope.iter_mut().zip(&found.both).for_each(|(slope, it)| *slope += step * it);
                }
            }
        }
        for (at, slope) in slope.iter_mut().enumerate() {
            let (own, other) = (weights[at], weights[(at + FEATURES.len()) % WIDTH]);
            *slope += RESTRAINT * own + KINSHIP * (own - other);
        }
    })
}

/// A request with the answer of a library.
struct Answered {
    /// The number of skills in the library.
    size: usize,
    /// The evidence for the first being right.
    signals: Signals,
    /// Whether each of the best is right, and the distance of its score from the first.
    best: Vec<(bool, f64)>,
    counts: f64,
}

impl Answered {
    /// Returns the likelihood that the first is right.
    fn first(&self, confidence: &Signals) -> f64 {
        logistic(dot(&self.signals.map(f64::from), &confidence.map(f64::from)))
    }
}

/// Sends requests to libraries of every size; half of them match no skill in it.
fn answered(data: &Data, weights: &Weights) -> Vec<Answered> {
    let mut random = Random::new(11);
    let mut answered = Vec::new();
    for size in POOLS.into_iter().filter(|it| *it <= data.skills.len()) {
        let mut requests = 0;
        while requests < REQUESTS {
            let pool = Pool::draw(data, size, &mut random);
            let library = data.library(&pool.skills);
            requests += pool.matched.len() + pool.unmatched.len();
            let few = pool.matched.len().div_ceil(4).min(data.unanswerable.len());
            let none = (0..few).map(|_| (random.unit() * data.unanswerable.len() as f64) as usize);
            let none: Vec<&Request> = none.map(|at| &data.unanswerable[at]).collect();
            for request in pool.matched.iter().chain(&pool.unmatched).chain(&none) {
                let asked = Asked::new(data, &library, request);
                let ranked = asked.ranked(weights);
                let Some(signals) = asked.signals(&library, &ranked) else { continue };
                let behind = |(it, score): &(&Found, f64)| (it.is_right, score - ranked[0].1);
                let best = ranked.iter().take(5).map(behind).collect();
                answered.push(Answered { size, signals, best, counts: asked.counts() });
            }
        }
    }
    answered
}

/// Returns the weights under which the outcomes of the first matches are most likely.
fn confidence(answered: &[Answered]) -> Signals {
    let total: f64 = answered.iter().map(|it| it.counts).sum();
    let any = |_: usize| f64::NEG_INFINITY;
    let weights = descend([0.0; SIGNALS.len()], 800, any, |weights, slope| {
        for it in answered {
            let signals = it.signals.map(f64::from);
            let off = logistic(dot(&signals, weights)) - f64::from(u8::from(it.best[0].0));
            let step = it.counts * off / total;
            slope.iter_mut().zip(&signals).for_each(|(slope, it)| *slope += step * it);
        }
    });
    weights.map(|it| it as f32)
}

/// Returns how fast confidence falls with the score after the first.
fn fall(answered: &[Answered], confidence: &Signals) -> f64 {
    let loss = |fall: f64| -> f64 {
        let behind = answered.iter().flat_map(|it| {
            let first = it.first(confidence);
            it.best[1..].iter().map(move |(is_right, score)| {
                let likely = (first * (score * fall).exp()).clamp(1e-6, 1.0 - 1e-6);
                -it.counts * if *is_right { likely } else { 1.0 - likely }.ln()
            })
        });
        behind.sum()
    };
    let tries = (1..200).map(|it| f64::from(it) * 0.05);
    tries.min_by(|a, b| loss(*a).total_cmp(&loss(*b))).unwrap_or(1.0)
}

/// Prints the calibration error of confidences, by the size of the library.
fn report(answered: &[Answered], confidence: &Signals, fall: f64) {
    println!("\n| skills | requests | ECE of the first | ECE of the second to fifth |");
    println!("|---:|---:|---:|---:|");
    for size in POOLS {
        let own: Vec<&Answered> = answered.iter().filter(|it| it.size == size).collect();
        let (mut firsts, mut others) = (Vec::new(), Vec::new());
        for it in &own {
            let first = it.first(confidence);
            firsts.push(Answer { confidence: first, is_right: it.best[0].0 });
            others.extend(it.best[1..].iter().map(|(is_right, score)| Answer {
                confidence: first * (score * fall).exp(),
                is_right: *is_right,
            }));
        }
        let (firsts, others) = (calibration_error(&firsts), calibration_error(&others));
        println!("| {size} | {} | {firsts:.3} | {others:.3} |", own.len());
    }
}

/// A request before and after an unrelated skill is installed, with the evidence for the first.
struct Move {
    size: usize,
    before: Signals,
    after: Signals,
}

/// Installs, for requests whose right skill comes first, the candidate that shares most with the
/// request without being right for it.
fn moves(data: &Data, weights: &Weights) -> Vec<Move> {
    let mut random = Random::new(12);
    let mut moves = Vec::new();
    for size in POOLS.into_iter().filter(|it| *it <= 200) {
        let wanted = moves.len() + MOVES;
        while moves.len() < wanted {
            let pool = Pool::draw(data, size, &mut random);
            let others = Pool::draw(data, STRANGERS, &mut random).skills;
            let (library, strangers) = (data.library(&pool.skills), data.library(&others));
            for request in &pool.matched {
                let is_free =
                    |it: &&usize| !pool.skills.contains(*it) && !data.right(request).contains(*it);
                let asked = Asked::new(data, &strangers, request);
                let ranked = asked.ranked(weights);
                let mut nearest = ranked.iter().filter_map(|it| data.place(&it.0.id));
                let Some(nearest) = nearest.find(|it| is_free(&it)) else { continue };
                let more: Vec<usize> = pool.skills.iter().copied().chain([nearest]).collect();
                let (before, after) = (
                    first(data, &library, request, weights),
                    first(data, &data.library(&more), request, weights),
                );
                if let (Some((true, before)), Some((true, after))) = (before, after) {
                    moves.push(Move { size, before, after });
                }
            }
        }
    }
    moves
}

/// Returns whether the first skill is right, and the evidence for it.
fn first(
    data: &Data,
    library: &Library,
    request: &Request,
    weights: &Weights,
) -> Option<(bool, Signals)> {
    let asked = Asked::new(data, library, request);
    let ranked = asked.ranked(weights);
    Some((ranked.first()?.0.is_right, asked.signals(library, &ranked)?))
}

/// Prints how far an unrelated skill moves the confidence of the first.
fn report_moves(moves: &[Move], confidence: &Signals) {
    println!("\n| skills | requests | moved on average | by 0.05 or more | at most |");
    println!("|---:|---:|---:|---:|---:|");
    for size in POOLS {
        let likely = |it: &Signals| logistic(dot(&it.map(f64::from), &confidence.map(f64::from)));
        let own = moves.iter().filter(|it| it.size == size);
        let own: Vec<f64> = own.map(|it| (likely(&it.before) - likely(&it.after)).abs()).collect();
        if own.is_empty() {
            continue;
        }
        let all = own.len() as f64;
        let mean = own.iter().sum::<f64>() / all;
        let far = own.iter().filter(|it| **it >= 0.05).count() as f64 / all;
        let most = own.iter().copied().fold(0.0, f64::max);
        println!("| {size} | {} | {mean:.3} | {:.1} % | {most:.2} |", own.len(), far * 100.0);
    }
}

/// Minimizes by gradient descent (Adam) from `start`, never below `least`; `slope` adds up the
/// gradient at some weights.
fn descend<const N: usize>(
    start: [f64; N],
    steps: i32,
    least: impl Fn(usize) -> f64,
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
            let step = pace * mean / (square.sqrt() + 1e-9);
            weights[at] = (weights[at] - step).max(least(at));
        }
    }
    weights
}

fn logistic(sum: f64) -> f64 {
    1.0 / (1.0 + (-sum).exp())
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the weights as source code of the library.
fn source(weights: &Weights, confidence: &Signals, fall: f64) -> Result<String> {
    let mut out = String::from(
        "//! Written by `prowess-benches fit`; `docs/benchmarks.md` names the data.\n\n\
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
    table(
        "SHORT",
        "Features",
        "The weight of each feature in a request of one word.",
        short,
        &FEATURES,
    )?;
    table(
        "LONG",
        "Features",
        "The weight of each feature in a request of 32 words or more.",
        long,
        &FEATURES,
    )?;
    let confidence = confidence.map(f64::from);
    table("CONFIDENCE", "Signals", "The weight of each signal.", &confidence, &SIGNALS)?;
    write!(
        out,
        "\n/// The fall of confidence with the score, after the first.\n\
         pub(crate) const FALL: f32 = {fall:.3};\n"
    )?;
    Ok(out)
}
