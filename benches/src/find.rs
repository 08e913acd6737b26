//! Finding: how often the right skill comes first, and how well confidence is calibrated.

use std::{
    collections::{BTreeMap, BTreeSet},
    slice,
};

use anyhow::Result;
use prowess::{Library, Match, Thresholds, matches_among};

use crate::{
    baseline::{Bm25, Keyword},
    metrics::{Answer, Quality, TOP, auroc, bins, calibration_error},
    options::Options,
    pool::Pool,
    random::Random,
    retrieval::{Data, Request, id},
};

/// The confidence from which a skill is disclosed in full, and from which more than its metadata.
const FULL: f64 = Thresholds::DEFAULT.full_at();
const SHOWN: f64 = Thresholds::DEFAULT.brief_at();

/// The sizes of installs, and the number of each: about a thousand requests per size.
const POOLS: &[(usize, usize)] = &[(5, 250), (50, 20), (200, 6), (1000, 6), (5000, 6)];
/// The same for near misses: requests that a skill looks right for and is not.
const NEAR_MISSES: (usize, usize) = (300, 5);

/// Prints every table.
pub(crate) fn find(options: &Options<'_>) -> Result<()> {
    let data = Data::named(options)?;
    let repositories: BTreeSet<&str> = data.skills.iter().map(|it| &*it.repo).collect();
    let sources: BTreeSet<&str> = data.requests.iter().map(|it| &*it.source_repo).collect();
    println!("{} skills of {} repositories", data.skills.len(), repositories.len());
    println!("{} requests of {} repositories", data.requests.len(), sources.len());
    rankings(&data)?;
    confidences(&data);
    if !data.negatives.is_empty() {
        near_misses(&data);
    }
    Ok(())
}

/// Returns the ids of the best skills for a request.
type Ranker<'d> = Box<dyn Fn(&str) -> Vec<&'d str> + 'd>;

fn rankings(data: &Data) -> Result<()> {
    let library = data.library(&(0..data.skills.len()).collect::<Vec<_>>());
    let left_out = library.left_out();
    println!("{} of the skills do not load", left_out.len());
    println!();
    println!("| stratum | requests | by | {} |", Quality::FIGURES.join(" | "));
    println!("|---|---:|---|{}", "---:|".repeat(Quality::FIGURES.len()));
    let rankers = rankers(data, &library);
    let mut by_stratum: BTreeMap<&str, Vec<Quality>> = BTreeMap::new();
    for request in &data.requests {
        let sums = by_stratum.entry(&request.stratum);
        let sums = sums.or_insert_with(|| vec![Quality::default(); rankers.len()]);
        for ((_, ranker), sum) in rankers.iter().zip(sums) {
            *sum += Quality::new(&ranker(&request.query), &request.gold);
        }
    }
    for (stratum, sums) in by_stratum {
        for ((name, _), sum) in rankers.iter().zip(sums) {
            let figures = sum.mean().map(|it| format!("{:.1}", 100.0 * it));
            println!("| {stratum} | {} | {name} | {} |", sum.requests, figures.join(" | "));
        }
    }
    Ok(())
}

/// Returns all methods, the matcher last.
fn rankers<'d>(data: &'d Data, library: &'d Library) -> Vec<(&'static str, Ranker<'d>)> {
    let ids = |places: Vec<usize>| places.into_iter().map(|it| &*data.skills[it].id).collect();
    let keyword = Keyword::new(&data.skills);
    let bm25 = |bm25: Bm25| move |request: &str| ids(bm25.best(request, TOP));
    vec![
        ("keyword tiers", Box::new(move |it| ids(keyword.best(it, TOP)))),
        ("BM25", Box::new(bm25(Bm25::described(&data.skills)))),
        ("BM25 with body", Box::new(bm25(Bm25::whole(&data.skills)))),
        ("prowess", Box::new(|it| best(library, it, TOP).iter().map(|it| id(it.skill)).collect())),
    ]
}

/// Returns the best matches, including shadowed ones.
fn best<'lib>(library: &'lib Library, request: &str, top: usize) -> Vec<Match<'lib>> {
    matches_among(library, request, top, |_| true)
}

/// The answers of the matcher to the requests of installs of one size.
#[derive(Default)]
struct Answers<'d> {
    /// The answers to requests with a skill, each with its stratum.
    matched: Vec<(&'d str, Answer)>,
    unmatched: Vec<Answer>,
}

fn confidences(data: &Data) {
    let mut strata: Vec<&str> = data.requests.iter().map(|it| &*it.stratum).collect();
    strata.sort_unstable();
    strata.dedup();
    println!();
    println!(
        "| installed | requests | Hit@1 where matched: {} | ECE | AUROC | ≥ {FULL}: precision | \
         right ones kept | no match, fired | ≥ {SHOWN}: right ones kept | no match, shown |",
        strata.join(" / ")
    );
    println!("|---:|---:|{}", "---:|".repeat(8));
    let mut all = Vec::new();
    let mut random = Random::new(45);
    for &(size, pools) in POOLS.iter().filter(|it| it.0 <= data.skills.len()) {
        let mut answers = Answers::default();
        for _ in 0..pools {
            answers.ask(data, &Pool::draw(data, size, &mut random));
        }
        answers.print(size, &strata);
        all.extend(answers.all());
    }
    println!();
    println!("| confidence | answers | mean confidence | right |");
    println!("|---|---:|---:|---:|");
    for (number, bin) in bins(&all).iter().enumerate() {
        let (from, to) = (number as f64 / 10.0, (number + 1) as f64 / 10.0);
        let (answers, confidence, right) = (bin.answers, bin.confidence, bin.right);
        println!("| {from:.1} to {to:.1} | {answers} | {confidence:.2} | {right:.2} |");
    }
}

impl<'d> Answers<'d> {
    fn ask(&mut self, data: &Data, pool: &Pool<'d>) {
        let library = data.library(&pool.skills);
        let answer = |request: &Request| match best(&library, &request.query, 1).first() {
            None => Answer { confidence: 0.0, is_right: false },
            Some(it) => Answer {
                confidence: it.confidence,
                is_right: request.gold.iter().any(|gold| gold == id(it.skill)),
            },
        };
        self.matched.extend(pool.matched.iter().map(|it| (&*it.stratum, answer(it))));
        self.unmatched.extend(pool.unmatched.iter().map(|it| answer(it)));
    }

    fn all(&self) -> Vec<Answer> {
        self.matched.iter().map(|it| it.1).chain(self.unmatched.iter().copied()).collect()
    }

    fn print(&self, size: usize, strata: &[&str]) {
        let all = self.all();
        let hits = strata.iter().map(|stratum| {
            let own = self.matched.iter().filter(|it| it.0 == *stratum);
            percent(share(own, |it| it.1.is_right))
        });
        let hits: Vec<String> = hits.collect();
        let is_over = |least: f64| move |it: &&Answer| it.confidence >= least;
        let kept = |least: f64| share(all.iter().filter(|it| it.is_right), is_over(least));
        let fired = |least: f64| share(&self.unmatched, is_over(least));
        println!(
            "| {size} | {} | {} | {:.3} | {:.3} | {:.2} | {} | {} | {} | {} |",
            all.len(),
            hits.join(" / "),
            calibration_error(&all),
            auroc(&all),
            share(all.iter().filter(is_over(FULL)), |it| it.is_right),
            percent(kept(FULL)),
            percent(fired(FULL)),
            percent(kept(SHOWN)),
            percent(fired(SHOWN)),
        );
    }
}

/// Prints how often a skill is disclosed for a near miss.
fn near_misses(data: &Data) {
    let (size, pools) = NEAR_MISSES;
    let tempting: BTreeSet<usize> =
        data.negatives.iter().filter_map(|it| data.place(&it.skill_id)).collect();
    let is_tempting = |it: &&Request| data.right(it).iter().any(|it| tempting.contains(it));
    let wanted: Vec<&Request> = data.requests.iter().filter(is_tempting).collect();
    let mut random = Random::new(46);
    // The confidences of skills that should not, or should, be disclosed.
    let (mut wrong, mut right) = (Vec::new(), Vec::new());
    for _ in 0..pools {
        let mut others: Vec<usize> =
            (0..data.skills.len()).filter(|it| !tempting.contains(it)).collect();
        random.shuffle(&mut others);
        let room = size.saturating_sub(tempting.len());
        let installed: Vec<usize> =
            tempting.iter().copied().chain(others.into_iter().take(room)).collect();
        let library = data.library(&installed);
        let confidence = |request: &str, ids: &[String]| {
            let found = best(&library, request, 3);
            let own = found.iter().find(|it| ids.iter().any(|id| id == self::id(it.skill)));
            own.map_or(0.0, |it| it.confidence)
        };
        let negatives = data.negatives.iter();
        wrong.extend(negatives.map(|it| confidence(&it.query, slice::from_ref(&it.skill_id))));
        right.extend(wanted.iter().map(|it| confidence(&it.query, &it.gold)));
    }
    println!();
    println!("| requests to {size} skills | answers | ≥ {FULL} | ≥ {SHOWN} |");
    println!("|---|---:|---:|---:|");
    for (what, figures) in
        [("that a skill must not answer", &wrong), ("that the same skills should answer", &right)]
    {
        let over = |least: f64| percent(share(figures, |it| **it >= least));
        println!("| {what} | {} | {} | {} |", figures.len(), over(FULL), over(SHOWN));
    }
}

/// Returns the share of items for which a condition holds.
fn share<T>(items: impl IntoIterator<Item = T>, is_true: impl Fn(&T) -> bool) -> f64 {
    let (mut all, mut count) = (0, 0);
    for item in items {
        all += 1;
        count += usize::from(is_true(&item));
    }
    count as f64 / f64::from(all)
}

fn percent(share: f64) -> String {
    if share.is_nan() { "-".to_owned() } else { format!("{:.1} %", 100.0 * share) }
}
