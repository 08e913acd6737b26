//! The lab: its duration, and whether its judgement of skills agrees with real requests.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use prowess::{ExpectedMatch, Lab, Matching, ProbeStatus};

use crate::{
    load::number,
    measure::{cpu_time, milliseconds, peak_kib},
    options::Options,
    retrieval::Data,
};

/// The default numbers of skills.
const SIZES: &str = "1000,10000";

/// Prints every table.
pub(crate) fn lab(options: &Options<'_>) -> Result<()> {
    let data = Data::named(options)?;
    let sizes = options.get("--sizes").unwrap_or(SIZES).split(',');
    println!("| skills | index, s | study, s | µs a skill | of it families, s | peak RSS MiB |");
    println!("|---:|---:|---:|---:|---:|---:|");
    let mut borne_out = Vec::new();
    for size in sizes {
        let size = number(size)?.min(data.skills.len());
        borne_out = measured(&data, size)?;
    }
    println!();
    println!("| standing, in the largest | skills with requests | requests | right one first |");
    println!("|---|---:|---:|---:|");
    for (standing, skills, requests, right) in borne_out {
        let share = 100.0 * right as f64 / requests.max(1) as f64;
        println!("| {} | {skills} | {requests} | {share:.1} % |", standing.as_str());
    }
    Ok(())
}

/// For each status the number of requested skills, of their requests, and of those that bring the
/// right one first.
type BorneOut = Vec<(ProbeStatus, usize, usize, usize)>;

fn measured(data: &Data, size: usize) -> Result<BorneOut> {
    let library = data.library(&(0..size).collect::<Vec<_>>());
    let timed = |start| milliseconds(cpu_time() - start) / 1e3;
    let start = cpu_time();
    prowess::matches(&library, "", 0);
    let index = timed(start);
    let lab = Lab { library: &library, threshold: Matching::default().threshold };
    let start = cpu_time();
    lab.families();
    let families = timed(start);
    let start = cpu_time();
    let study = lab.study(&mut |_, _| {}, |_| true);
    let took = timed(start);
    let (each, peak) = (1e6 * took / size as f64, peak_kib()? >> 10);
    println!("| {size} | {index:.2} | {took:.2} | {each:.0} | {families:.2} | {peak} |");

    let is_there = |it: &usize| *it < size;
    let wanted = data.requests.iter().filter(|it| data.right(it).iter().all(is_there));
    let lines: Vec<String> = wanted
        .map(|it| serde_json::json!({"query": it.query, "skill": it.gold}).to_string())
        .collect();
    let trials = lab.trials(lines.join("\n").as_bytes(), "queries".as_ref(), None);
    let evaluation = lab.evaluate(trials.trials, &mut |_, _| {});
    let mut by_skill: HashMap<*const prowess::Skill, (usize, usize)> = HashMap::new();
    for tested in &evaluation.tested {
        let ExpectedMatch::AnyOf(skills) = &tested.trial.expected else { continue };
        let first = skills.first().context("a request has a skill")?;
        let (requests, right) = by_skill.entry(std::ptr::from_ref(*first)).or_default();
        *requests += 1;
        *right += usize::from(tested.passed);
    }
    let mut borne_out: BorneOut = Vec::new();
    for standing in [ProbeStatus::Found, ProbeStatus::Contested, ProbeStatus::NeverFound] {
        let own = study.skills.iter().filter(|it| it.standing == standing);
        let asked: Vec<_> =
            own.filter_map(|it| by_skill.get(&std::ptr::from_ref(it.skill))).collect();
        let (requests, right) =
            (asked.iter().map(|it| it.0).sum(), asked.iter().map(|it| it.1).sum());
        borne_out.push((standing, asked.len(), requests, right));
    }
    Ok(borne_out)
}
