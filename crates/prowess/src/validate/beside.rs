//! The rules about the files beside a `SKILL.md`, and about links to them.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value as Json;

use super::body::prose;
use crate::{
    finding::{At, Report},
    parse::Reading,
    rule,
    skill::Resource,
    source::{Found, Limits, Source},
};

/// What every MCP host must accept.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

pub(super) fn rules(
    source: &dyn Source,
    found: &Found,
    reading: &Reading<'_>,
    limits: &Limits,
    report: &mut Report,
) {
    let total = found.size + resources(found).map(|it| it.size).sum::<u64>();
    if total > limits.max_skill_size {
        let message = format!("the skill has {total} bytes, more than {}", limits.max_skill_size);
        report.note(
            &rule::SKILL_TOO_LARGE,
            At::FILE,
            || message,
            "make it smaller, or raise `max_skill_size`",
        );
    }
    let files = resources(found).count() + 1;
    if files > MAX_FILES || total > MAX_BYTES {
        let message = || {
            format!(
                "the skill has {files} files and {total} bytes; MCP hosts need to accept only {MAX_FILES} and {MAX_BYTES}"
            )
        };
        report.note(&rule::SKILL_TOO_MANY_FILES, At::FILE, message, "leave out what is not needed");
    }
    let body = reading.document.body;
    let mut linked = BTreeSet::new();
    for link in links(body.text) {
        let at = At::columns(body.line + link.line, link.column, link.column + link.target.len());
        match link.inside() {
            None => report.note(
                &rule::REFERENCE_OUTSIDE,
                at,
                || format!("the link leads out of the skill: `{}`", link.target),
                "copy the file into the skill, and link to it by a relative path",
            ),
            Some(path) if !exists(found, &path) => report.note(
                &rule::REFERENCE_MISSING,
                at,
                || format!("there is no file `{path}` in the skill"),
                "correct the link or add the file",
            ),
            Some(path) => drop(linked.insert(path)),
        }
    }
    chains(source, found, &linked, report);
    evals(source, found, report);
}

fn resources(found: &Found) -> impl Iterator<Item = &Resource> {
    found.resources.iter().flatten()
}

fn exists(found: &Found, path: &str) -> bool {
    let folder = format!("{path}/");
    is_document(found, path)
        || path.is_empty()
        || resources(found).any(|it| *it.path == *path || it.path.starts_with(&folder))
}

/// Whether a path is that of the `SKILL.md`.
fn is_document(found: &Found, path: &str) -> bool {
    found.path.file_name().is_some_and(|it| it.to_string_lossy() == *path)
}

/// References that lead to further references, which a model may not follow.
fn chains(source: &dyn Source, found: &Found, linked: &BTreeSet<String>, report: &mut Report) {
    if report.wants(&rule::REFERENCE_CHAIN).is_none() {
        return;
    }
    for path in linked.iter().filter(|it| it.ends_with(".md")) {
        let Ok(bytes) = source.read_beside(&found.path, path) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        let folder = path.rsplit_once('/').map_or("", |it| it.0);
        let deeper = links(&text).find_map(|link| {
            let joined = if folder.is_empty() {
                link.target.to_owned()
            } else {
                format!("{folder}/{}", link.target)
            };
            let target = normal(&joined)?;
            let further = target.ends_with(".md") && !is_document(found, &target);
            (further && !linked.contains(&target) && exists(found, &target)).then_some(target)
        });
        if let Some(target) = deeper {
            let message =
                || format!("`{path}` links on to `{target}`, which the instructions do not name");
            report.note(
                &rule::REFERENCE_CHAIN,
                At::FILE,
                message,
                "link to it from the instructions as well",
            );
        }
    }
}

/// `evals/evals.json` in either of the spellings that are in use.
fn evals(source: &dyn Source, found: &Found, report: &mut Report) {
    let known = resources(found).any(|it| &*it.path == "evals/evals.json");
    let Some(bytes) =
        known.then(|| source.read_beside(&found.path, "evals/evals.json").ok()).flatten()
    else {
        return;
    };
    let fault = match serde_json::from_slice::<Json>(&bytes) {
        Err(error) => Some(format!("`evals/evals.json` is not JSON: {error}")),
        Ok(json) => {
            let evals = json.get("evals").and_then(Json::as_array);
            match evals {
                None => Some("`evals/evals.json` has no list `evals`".to_owned()),
                Some(evals) => evals
                    .iter()
                    .any(|it| it.get("prompt").and_then(Json::as_str).is_none())
                    .then(|| "an entry of `evals/evals.json` has no `prompt`".to_owned()),
            }
        }
    };
    if let Some(message) = fault {
        report.note(
            &rule::EVALS,
            At::FILE,
            || message,
            "see the specification's guide to evaluations",
        );
    }
}

/// A link to a file.
struct Link<'t> {
    target: &'t str,
    /// Counted from 0.
    line: usize,
    column: usize,
}

impl Link<'_> {
    /// The path inside the skill; nothing when the link leads out of it.
    fn inside(&self) -> Option<String> {
        if Path::new(self.target).is_absolute() || self.target.starts_with('~') {
            return None;
        }
        normal(self.target)
    }
}

/// A relative path without `.` and `..`; nothing when it leaves its folder.
fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// How long the target of a link may be.
const MAX_TARGET: usize = 256;

/// The Markdown links of a text that lead to files, those in code left out.
fn links(text: &str) -> impl Iterator<Item = Link<'_>> {
    prose(text).flat_map(|(line, content)| {
        let starts = content.match_indices("](").map(|it| it.0 + 2);
        let (mut counted, mut ticks) = (0, 0);
        starts.filter_map(move |column| {
            // An odd number of backticks before it: the link stands in code.
            ticks +=
                content.bytes().take(column).skip(counted).filter(|byte| *byte == b'`').count();
            counted = column;
            let rest = &content[column..];
            let window = rest.as_bytes().iter().take(MAX_TARGET);
            let length = window.take_while(|byte| !matches!(byte, b')' | b' ' | b'#')).count();
            let target = rest.get(..length)?.trim_matches(['<', '>']);
            (is_file(target) && ticks % 2 == 0).then_some(Link { target, line, column })
        })
    })
}

/// Whether a link's target is meant as a file: not an address, and with a folder or an ending.
fn is_file(target: &str) -> bool {
    let scheme = target
        .split_once(':')
        .is_some_and(|it| it.0.chars().all(|c| c.is_ascii_alphanumeric() || c == '+'));
    let placeholder = target.contains(['{', '$', '%', '*', '…']);
    !target.is_empty()
        && !scheme
        && !target.starts_with("//")
        && !placeholder
        && target.contains(['/', '.'])
}
