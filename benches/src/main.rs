//! Benchmarks: how long things take, next to their lower bound; and how good they are.
//!
//! Each command prints tables in Markdown: `load` (in the modules up to it), `tokens`, and, on
//! requests with known right skills, `find`, `lab`, `latency` and `prompt`; `agent` measures the
//! overhead of middleware; `reliability` breaks things on purpose, and fails if something is lost;
//! `soak` runs an agent for many turns, and fails if memory grows with them; `mcp` measures the
//! latency of the server; `watch` measures the time from a change of files to its notification;
//! `fix` measures the effect of `check --fix` on a folder of skills, and fails if it does anything
//! else; `packages` measures how long it takes to place, sync and verify installed skills.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod random;
mod corpus;
mod floor;
mod measure;
mod load;
mod tokens;
mod options;
mod retrieval;
mod metrics;
mod baseline;
mod pool;
mod find;
mod lab;
mod fit;
mod latency;
mod lexicon;
mod prompt;
mod prepared;
mod sandbox;
mod store;
mod races;
mod soak;
mod agent;
mod mcp;
mod watch;
mod fixing;
mod packages;

use std::{env, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{measure::CASES, options::Options};

const USAGE: &str = "usage: prowess-benches load [--skills N] [--from DIR [--distinct]] \
                     [--resources] [--rounds N] [--cold] [--program PATH]\n       \
                     prowess-benches tokens --from DIR|JSONL\n       \
                     prowess-benches find --skills F --queries F [--requests F] [--negatives F]\n       \
                     prowess-benches fit background|weights --skills F --queries F [--requests F] --write F\n       \
                     prowess-benches lexicon --from DIR --write F\n       \
                     prowess-benches latency --skills F --queries F [--sizes N,N]\n       \
                     prowess-benches lab --skills F --queries F [--sizes N,N]\n       \
                     prowess-benches prompt --skills F --queries F\n       \
                     prowess-benches sandbox [--rounds N] [--program PATH]\n       \
                     prowess-benches prepared --with DIR --without DIR --script PATH [--rounds N] [--program PATH]\n       \
                     prowess-benches reliability sandbox [--runs N] [--program PATH]\n       \
                     prowess-benches reliability store [--cycles N] [--program PATH]\n       \
                     prowess-benches reliability races [--swaps N]\n       \
                     prowess-benches agent [--skills F --queries F] [--size N] [--sessions N]\n       \
                     prowess-benches soak [--sessions N] [--turns N] [--window N] [--size N]\n       \
                     prowess-benches mcp [--sizes N,N] [--from DIR] [--sessions N] [--program PATH]\n       \
                     prowess-benches watch [--sizes N,N] [--from DIR] [--edits N] [--program PATH]\n       \
                     prowess-benches fix --from DIR [--program PATH]\n       \
                     prowess-benches packages [--skills N] [--rounds N] [--in DIR]";

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["load", ref options @ ..] => load::load(&load::Options::new(options)?),
        ["tokens", "--from", path] => tokens::tokens(Path::new(path)),
        ["find", ref words @ ..] => find::find(&Options::new(
            words,
            &["--skills", "--queries", "--requests", "--negatives"],
        )?),
        ["lexicon", ref words @ ..] => {
            lexicon::lexicon(&Options::new(words, &["--from", "--write"])?)
        }
        ["fit", what, ref words @ ..] => fit::fit(
            what,
            &Options::new(words, &["--skills", "--queries", "--requests", "--write"])?,
        ),
        ["latency", ref words @ ..] => {
            latency::latency(&Options::new(words, &["--skills", "--queries", "--sizes"])?)
        }
        ["lab", ref words @ ..] => {
            lab::lab(&Options::new(words, &["--skills", "--queries", "--sizes"])?)
        }
        ["prompt", ref words @ ..] => {
            prompt::prompt(&Options::new(words, &["--skills", "--queries"])?)
        }
        ["sandbox", ref words @ ..] => {
            sandbox::overhead(&Options::new(words, &["--rounds", "--program"])?)
        }
        ["prepared", ref words @ ..] => prepared::overhead(&Options::new(
            words,
            &["--with", "--without", "--script", "--rounds", "--program"],
        )?),
        ["reliability", "sandbox", ref words @ ..] => {
            sandbox::timeouts(&Options::new(words, &["--runs", "--program"])?)
        }
        ["reliability", "store", ref words @ ..] => {
            store::store(&Options::new(words, &["--cycles", "--program"])?)
        }
        ["reliability", "races", ref words @ ..] => {
            races::races(&Options::new(words, &["--swaps"])?)
        }
        ["agent", ref words @ ..] => agent::overhead(&Options::new(
            words,
            &["--skills", "--queries", "--size", "--sessions"],
        )?),
        ["soak", ref words @ ..] => {
            soak::soak(&Options::new(words, &["--sessions", "--turns", "--window", "--size"])?)
        }
        ["mcp", ref words @ ..] => {
            mcp::mcp(&Options::new(words, &["--sizes", "--from", "--sessions", "--program"])?)
        }
        ["watch", ref words @ ..] => {
            watch::watch(&Options::new(words, &["--sizes", "--from", "--edits", "--program"])?)
        }
        ["fix", ref words @ ..] => fixing::fixing(&Options::new(words, &["--from", "--program"])?),
        ["packages", ref words @ ..] => {
            packages::packages(&Options::new(words, &["--skills", "--rounds", "--in"])?)
        }
        ["reliability-store-writer", path, seed, from] => store::writer(path, seed, from),
        ["reliability-store-saver", path, own] => store::saver(path, own),
        // Measures a case: this program calls itself.
        ["measure", name, root] => {
            let case = CASES.iter().find(|it| it.name == name).context("there is no such case")?;
            println!("{}", serde_json::to_string(&measure::inside(case, Path::new(root))?)?);
            Ok(())
        }
        ["measure-latency", size, skills, queries] => {
            latency::inside(load::number(size)?, Path::new(skills), Path::new(queries))
        }
        _ => bail!(USAGE),
    }
}
