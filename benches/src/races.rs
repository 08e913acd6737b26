//! Races: files are read and written while links are swapped in.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context as _, Result, bail, ensure};
use prowess_runtime::{
    Outcome, OutcomeStatus, Tool as _, policy::Roots, sandbox::Root, tools::FileOperations,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::{load::number, options::Options};

/// Prints the outcomes; fails if anything outside was read or written.
pub(crate) fn races(options: &Options<'_>) -> Result<()> {
    let swaps = options.get("--swaps").map_or(Ok(100_000), number)?;
    println!(
        "| what is swapped | swaps | read | refused | lost | written | refused | lost | escapes |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for case in CASES {
        race(case, swaps)?;
    }
    Ok(())
}

/// A path element that is swapped between two forms, and a path through it.
struct Case {
    name: &'static str,
    path: &'static str,
    /// Creates the files in a folder with `work` and `outside` in it.
    make: fn(folder: &Path) -> Result<()>,
    /// Swaps the two forms.
    swap: fn(folder: &Path, turn: usize) -> Result<()>,
}

const CASES: &[Case] = &[
    Case {
        name: "a directory for a link to one outside",
        path: "place/x",
        make: |folder| {
            fs::create_dir(folder.join("work/place"))?;
            fs::write(folder.join("work/place/x"), INSIDE)?;
            Ok(symlink("../outside", folder.join("work/swap"))?)
        },
        swap: |folder, _| exchange(&folder.join("work/place"), &folder.join("work/swap")),
    },
    Case {
        name: "a link inside for a link to the outside",
        path: "link/x",
        make: |folder| {
            fs::create_dir(folder.join("work/place"))?;
            fs::write(folder.join("work/place/x"), INSIDE)?;
            symlink("place", folder.join("work/link"))?;
            Ok(symlink("../outside", folder.join("work/swap"))?)
        },
        swap: |folder, _| exchange(&folder.join("work/link"), &folder.join("work/swap")),
    },
    Case {
        name: "a file for a link to one outside",
        path: "x",
        make: |folder| Ok(fs::write(folder.join("work/x"), INSIDE)?),
        // A write replaces the link, so a new one is needed each time.
        swap: |folder, turn| {
            let next = folder.join("next");
            if turn.is_multiple_of(2) {
                symlink(folder.join("outside/x"), &next)?;
            } else {
                fs::write(&next, INSIDE)?;
            }
            Ok(fs::rename(next, folder.join("work/x"))?)
        },
    },
];

fn exchange(one: &Path, other: &Path) -> Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

const INSIDE: &str = "inside";
const OUTSIDE: &str = "outside";

/// The number of calls by outcome.
#[derive(Default)]
struct Count {
    well: usize,
    refused: usize,
    lost: usize,
}

fn race(case: &Case, swaps: usize) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let folder = temporary.path();
    for name in ["work", "outside"] {
        fs::create_dir(folder.join(name))?;
    }
    fs::write(folder.join("outside/x"), OUTSIDE)?;
    (case.make)(folder)?;
    let roots = Roots::new(vec![Root::open(&folder.join("work"))?]);
    let tool = FileOperations::new(Arc::new(roots));
    let done = AtomicBool::new(false);
    let (reads, writes) = thread::scope(|scope| -> Result<_> {
        let again = |input: Value| calls(&tool, input, &done);
        let reads = scope.spawn(move || again(json!({ "operation": "read", "path": case.path })));
        let input = json!({ "operation": "write", "path": case.path, "content": INSIDE });
        let writes = scope.spawn(move || again(input));
        let swapped = (0..swaps).try_for_each(|turn| (case.swap)(folder, turn));
        done.store(true, Ordering::Relaxed);
        let joined = |it: thread::ScopedJoinHandle<'_, Result<Count>>| {
            it.join().ok().context("a thread panicked")?
        };
        let joined = (joined(reads)?, joined(writes)?);
        swapped.map(|()| joined)
    })?;
    let outside = folder.join("outside");
    ensure!(fs::read_to_string(outside.join("x"))? == OUTSIDE, "it was written outside");
    ensure!(fs::read_dir(outside)?.count() == 1, "something was made outside");
    println!(
        "| {} | {swaps} | {} | {} | {} | {} | {} | {} | 0 |",
        case.name, reads.well, reads.refused, reads.lost, writes.well, writes.refused, writes.lost,
    );
    Ok(())
}

/// Calls the tool until it is done.
fn calls(tool: &FileOperations, input: Value, done: &AtomicBool) -> Result<Count> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut count = Count::default();
    while !done.load(Ordering::Relaxed) {
        let Outcome { status, message, output, .. } = runtime.block_on(tool.call(input.clone()));
        match status {
            OutcomeStatus::Ok => count.well += 1,
            OutcomeStatus::Refused => count.refused += 1,
            // Something was swapped between two system calls.
            OutcomeStatus::NotFound | OutcomeStatus::Failed => count.lost += 1,
            other => bail!("{other:?}: {message:?}"),
        }
        let content = output.as_ref().and_then(|it| it.get("content"));
        ensure!(content.is_none_or(|it| it == INSIDE), "it was read from outside: {content:?}");
    }
    Ok(count)
}
