//! The accuracy and the speed of the token estimate, next to exact counts.

use std::{fs, hint::black_box, path::Path, time::Instant};

use anyhow::{Context as _, Result, bail};
use prowess::Tokenizer;
use serde_json::Value as Json;

use crate::corpus::collect;

/// Measures on every second text in `from`; the others are those that the rule was made from.
pub(crate) fn tokens(from: &Path) -> Result<()> {
    let texts = texts(from).with_context(|| format!("cannot read `{}`", from.display()))?;
    let held_out: Vec<&str> = texts.iter().skip(1).step_by(2).map(String::as_str).collect();
    if held_out.is_empty() {
        bail!("there are not two skills in `{}`", from.display());
    }
    let bytes: usize = held_out.iter().map(|it| it.len()).sum();
    let megabytes = bytes as f64 / 1e6;
    println!("{} texts, {megabytes:.1} MB", held_out.len());
    println!();
    println!("| vocabulary | first use, MB of estimate | MB/s | ÷ estimate |");
    println!("|---|---:|---:|---:|");
    let mut estimate = 0.0;
    for vocabulary in Tokenizer::ALL {
        let start = Instant::now();
        black_box(vocabulary.count("."));
        let first = start.elapsed().as_secs_f64();
        let start = Instant::now();
        black_box(counts(&held_out, *vocabulary));
        let speed = megabytes / start.elapsed().as_secs_f64();
        if *vocabulary == Tokenizer::Estimate {
            estimate = speed;
        }
        let (word, first, share) = (vocabulary.as_str(), first * estimate, speed / estimate);
        println!("| {word} | {first:.1} | {speed:.0} | {share:.2} |");
    }
    println!();
    println!(
        "| rule | against | in total | mean of each | half within | 95 of 100 within | worst |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|");
    let quarters: Vec<usize> = held_out.iter().map(|it| it.len().div_ceil(4)).collect();
    let estimates = counts(&held_out, Tokenizer::Estimate);
    for (rule, guesses) in [("estimate", &estimates), ("bytes ÷ 4", &quarters)] {
        for exact in Tokenizer::ALL.iter().filter(|it| **it != Tokenizer::Estimate) {
            print_errors(rule, guesses, exact.as_str(), &counts(&held_out, *exact));
        }
    }
    Ok(())
}

fn counts(texts: &[&str], vocabulary: Tokenizer) -> Vec<usize> {
    texts.iter().map(|it| vocabulary.count(it)).collect()
}

fn print_errors(rule: &str, guesses: &[usize], against: &str, exact: &[usize]) {
    let error = |guess: usize, exact: usize| 100.0 * (guess as f64 / exact as f64 - 1.0);
    let total = error(guesses.iter().sum(), exact.iter().sum());
    let each = guesses.iter().zip(exact).map(|(guess, exact)| error(*guess, *exact).abs());
    let mut each: Vec<f64> = each.collect();
    each.sort_by(f64::total_cmp);
    let mean = each.iter().sum::<f64>() / each.len() as f64;
    let at = |percent: usize| each[(each.len() * percent / 100).min(each.len() - 1)];
    let (half, most, worst) = (at(50), at(95), at(100));
    println!(
        "| {rule} | {against} | {total:+.1} % | {mean:.1} % | {half:.1} % | {most:.1} % | {worst:.0} % |"
    );
}

/// Returns the texts of every `SKILL.md` below a folder, or the field `body` of every line of a
/// JSON file.
fn texts(from: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    if from.is_dir() {
        let mut files = Vec::new();
        collect(from, &mut files)?;
        files.sort_unstable();
        for file in files {
            texts.push(String::from_utf8_lossy(&fs::read(file)?).into_owned());
        }
    } else {
        for line in fs::read_to_string(from)?.lines() {
            let json: Json = serde_json::from_str(line)?;
            texts.push(json["body"].as_str().unwrap_or_default().to_owned());
        }
    }
    texts.retain(|it| !it.is_empty());
    Ok(texts)
}
