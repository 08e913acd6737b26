//! How long loading takes, next to the least that it could take; and how near estimates come.
//!
//! `cargo run --release -p prowess-benches -- load` makes a library, measures each case in a
//! process of its own, and prints one table. The modules stand in that order; `tokens` stands alone.
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
mod fit;

use std::{env, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{measure::CASES, options::Options};

const USAGE: &str = "usage: prowess-benches load [--skills N] [--from DIR [--distinct]] \
                     [--resources] [--rounds N] [--cold] [--program PATH]\n       \
                     prowess-benches tokens --from DIR|JSONL\n       \
                     prowess-benches find --skills F --queries F [--negatives F]\n       \
                     prowess-benches fit background|weights --skills F --queries F --write F";

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["load", ref options @ ..] => load::load(&load::Options::new(options)?),
        ["tokens", "--from", path] => tokens::tokens(Path::new(path)),
        ["find", ref words @ ..] => {
            find::find(&Options::new(words, &["--skills", "--queries", "--negatives"])?)
        }
        ["fit", what, ref words @ ..] => {
            fit::fit(what, &Options::new(words, &["--skills", "--queries", "--write"])?)
        }
        // What the cases are measured with: this program calls itself.
        ["measure", name, root] => {
            let case = CASES.iter().find(|it| it.name == name).context("there is no such case")?;
            println!("{}", serde_json::to_string(&measure::inside(case, Path::new(root))?)?);
            Ok(())
        }
        _ => bail!(USAGE),
    }
}
