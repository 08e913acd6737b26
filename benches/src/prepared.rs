//! The cost of running a script with prepared packages, against the same script without any.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    load::number, measure::milliseconds, metrics::percentile, options::Options, random::Random,
    sandbox::program,
};

/// Runs a script of two skills, interleaved: one needs packages that are prepared, the other needs
/// none.
pub(crate) fn overhead(options: &Options<'_>) -> Result<()> {
    let rounds = options.get("--rounds").map_or(Ok(100), number)?;
    let program = program(options)?;
    let get = |name: &str| options.get(name).with_context(|| format!("`{name}` is missing"));
    let (with, without, script) = (get("--with")?, get("--without")?, get("--script")?);
    let skills = [("without packages", without), ("with prepared packages", with)];
    let mut times = skills.map(|_| Vec::new());
    let mut order = [0, 1];
    let mut random = Random::new(11);
    for round in 0..=rounds {
        random.shuffle(&mut order);
        for at in order {
            let took = run(&program, skills[at].1, script)?;
            // The first round only warms up.
            if round > 0 {
                times[at].push(took);
            }
        }
    }
    println!("\n| script | median ms | p90 | least | over the first |\n|---|---:|---:|---:|---:|");
    let mut first = None;
    for ((name, _), mut times) in skills.into_iter().zip(times) {
        times.sort_unstable_by(f64::total_cmp);
        let [least, median, p90] = [1, 50, 90].map(|it| percentile(&times, it));
        let over = median - *first.get_or_insert(median);
        println!("| {name} | {median:.2} | {p90:.2} | {least:.2} | {over:.2} |");
    }
    println!("\n{rounds} rounds, interleaved");
    Ok(())
}

/// Returns the time of a run of a script, from the start of the program to its end.
fn run(program: &Path, skill: &str, script: &str) -> Result<f64> {
    let start = Instant::now();
    let mut command = Command::new(program);
    command.args(["run", skill, "--script", script, "--yes", "--quiet"]);
    let output = command.stdin(Stdio::null()).output()?;
    let took = milliseconds(start.elapsed());
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(took)
}
