//! The effect of `check --fix` on a folder of skills: the findings before and after, and that
//! nothing else changes.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use prowess::{Profile, fix};
use serde_json::Value as Json;

use crate::{options::Options, sandbox::program};

const PROFILES: [(&str, Profile); 3] =
    [("spec", Profile::Spec), ("lenient", Profile::Lenient), ("reference", Profile::Reference)];

/// Prints a row for each profile; fails if a change is not reported, differs from the library's, or
/// is repeated by a second run.
pub(crate) fn fixing(options: &Options<'_>) -> Result<()> {
    let (from, program) = (options.path("--from")?, program(options)?);
    let mut files = Vec::new();
    collect(from, &mut files)?;
    println!(
        "| profile | skills | warned of | with errors | findings fixed | files changed | then warned of | then with errors | the same to the byte |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, profile) in PROFILES {
        let copy = tempfile::tempdir()?;
        for file in &files {
            let path = copy.path().join(file.strip_prefix(from)?);
            fs::create_dir_all(path.parent().unwrap_or(copy.path()))?;
            fs::copy(file, path)?;
        }
        let check = |more: &[&str]| check(&program, copy.path(), name, more);
        let (before, after, again) = (check(&[])?, check(&["--fix"])?, check(&["--fix"])?);
        ensure!(fixed(&again).is_empty(), "what was fixed is fixed again");
        let mut same = 0;
        for file in &files {
            let path = copy.path().join(file.strip_prefix(from)?);
            let (old, new) = (fs::read(file)?, fs::read(&path)?);
            let is_fixed = fixed(&after).contains(&*path.to_string_lossy());
            ensure!(is_fixed != (old == new), "`{}` is not what was said", file.display());
            ensure!(!is_fixed || fix(&old, profile).bytes == new, "`{}` differs", file.display());
            same += usize::from(!is_fixed);
        }
        let findings = after["fixed"].as_array().into_iter().flatten();
        let findings: usize =
            findings.map(|it| it["findings"].as_array().map_or(0, Vec::len)).sum();
        println!(
            "| {name} | {} | {} | {} | {findings} | {} | {} | {} | {same} |",
            before["skills"],
            found(&before, false),
            found(&before, true),
            fixed(&after).len(),
            found(&after, false),
            found(&after, true),
        );
    }
    Ok(())
}

fn check(program: &Path, folder: &Path, profile: &str, more: &[&str]) -> Result<Json> {
    let mut command = Command::new(program);
    command.args(["check", "--json", "--depth", "6", "--profile", profile]).args(more).arg(folder);
    let said = command.output()?;
    serde_json::from_slice(&said.stdout).context("the program said no JSON")
}

/// Returns the number of files with an error, or with at least a warning.
fn found(said: &Json, is_error: bool) -> usize {
    let findings = said["findings"].as_array().into_iter().flatten();
    let counted = findings
        .filter(|it| it["severity"] == "error" || (!is_error && it["severity"] == "warning"));
    counted.filter_map(|it| it["path"].as_str()).collect::<BTreeSet<_>>().len()
}

/// Returns the fixed files.
fn fixed(said: &Json) -> BTreeSet<&str> {
    let files = said["fixed"].as_array().into_iter().flatten();
    let changed = files.filter(|it| it["diff"] != "");
    changed.filter_map(|it| it["path"].as_str()).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?
    {
        let entry = entry?;
        match entry.file_type()? {
            it if it.is_dir() => collect(&entry.path(), files)?,
            it if it.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    Ok(())
}
