//! The rules about the files beside a `SKILL.md`, and about links to them.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value as Json;

use super::{body::prose, hidden};
use crate::{
    finding::{Position, Report, rule},
    read::{
        parse::SplitDocument,
        source::{DiscoveredSkill, Resource, Source},
    },
    spec::SKILL_FILE,
};

/// The number of files that every MCP host must accept.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The maximum number of broken links of one skill that are reported one by one.
const MAX_BROKEN: usize = 50;

pub(super) fn check(
    source: &dyn Source,
    found: &DiscoveredSkill,
    reading: &SplitDocument<'_>,
    report: &mut Report,
) {
    let (files, total) = (resources(found).len() + 1, found.total());
    if files > MAX_FILES || total > MAX_BYTES {
        report.note(
            &rule::SKILL_TOO_MANY_FILES,
            Position::FILE,
            || {
            format!(
                "the skill has {files} files and {total} bytes; MCP hosts are only required to accept {MAX_FILES} files and {MAX_BYTES} bytes"
            )
        },
            "remove files that are not needed",
        );
    }
    hidden::check_names(resources(found).iter().map(|it| &*it.path), report);
    let linked = check_references(found, reading, report);
    check_chains(source, found, &linked, report);
    check_mentions(source, found, reading, report);
    check_evals(source, found, report);
}

/// Reports the broken links of the instructions, each target once; returns the others.
fn check_references(
    found: &DiscoveredSkill,
    reading: &SplitDocument<'_>,
    report: &mut Report,
) -> BTreeSet<String> {
    let body = reading.document.body;
    let mut seen = BTreeSet::new();
    let mut linked = BTreeSet::new();
    let mut broken = 0;
    for link in links(body.text) {
        if !seen.insert(link.target) {
            continue;
        }
        let path = link.path_in_skill();
        if let Some(path) = path.as_ref().filter(|it| exists(found, it)) {
            linked.insert(path.clone());
            continue;
        }
        broken += 1;
        if broken > MAX_BROKEN {
            continue;
        }
        let at =
            Position::columns(body.line + link.line, link.column, link.column + link.target.len());
        match path {
            Some(path) => report.note(
                &rule::REFERENCE_MISSING,
                at,
                || format!("there is no file `{path}` in the skill"),
                "correct the link or add the file",
            ),
            None if link.target.ends_with(SKILL_FILE) => report.note(
                &rule::REFERENCE_OUTSIDE,
                at,
                || format!("the link points into another skill: `{}`", link.target),
                "refer to the other skill by name; its folder may be elsewhere",
            ),
            None => report.note(
                &rule::REFERENCE_OUTSIDE,
                at,
                || format!("the link leaves the skill: `{}`", link.target),
                "copy the file into the skill, and link to it by a relative path",
            ),
        }
    }
    if broken > MAX_BROKEN {
        let more = broken - MAX_BROKEN;
        report.note(
            &rule::REFERENCE_MISSING,
            Position::line(body.line),
            || format!("{more} more links are broken"),
            "correct the others first",
        );
    }
    linked
}

/// Returns the resources, sorted by path.
fn resources(found: &DiscoveredSkill) -> &[Resource] {
    found.resources.as_deref().unwrap_or_default()
}

/// Whether a path is that of a file or folder of the skill.
fn exists(found: &DiscoveredSkill, path: &str) -> bool {
    let folder = format!("{path}/");
    let next = resources(found).partition_point(|it| *it.path < *folder);
    let in_folder = resources(found).get(next).is_some_and(|it| it.path.starts_with(&folder));
    let is_file = resources(found).binary_search_by(|it| (*it.path).cmp(path)).is_ok();
    is_document(found, path) || path.is_empty() || is_file || in_folder
}

/// Whether a path is that of the `SKILL.md`.
fn is_document(found: &DiscoveredSkill, path: &str) -> bool {
    found.path.file_name().is_some_and(|it| it.to_string_lossy() == *path)
}

/// Reports references that lead to further references, which a model may not follow.
fn check_chains(
    source: &dyn Source,
    found: &DiscoveredSkill,
    linked: &BTreeSet<String>,
    report: &mut Report,
) {
    if report.wants(&rule::REFERENCE_CHAIN).is_none() {
        return;
    }
    for path in linked.iter().filter(|it| it.ends_with(".md")) {
        let Ok(bytes) = source.read_beside(&found.path, path) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        check_contents(path, &text, report);
        let folder = path.rsplit_once('/').map_or("", |it| it.0);
        let deeper = links(&text).find_map(|link| {
            let joined = if folder.is_empty() {
                link.target.to_owned()
            } else {
                format!("{folder}/{}", link.target)
            };
            let target = normalize(&joined)?;
            let further = target.ends_with(".md") && !is_document(found, &target);
            (further && !linked.contains(&target) && exists(found, &target)).then_some(target)
        });
        if let Some(target) = deeper {
            report.note(
                &rule::REFERENCE_CHAIN,
                Position::FILE,
                || format!("`{path}` links to `{target}`, which the instructions do not mention"),
                "link to it from the instructions as well",
            );
        }
    }
}

/// The number of lines from which on a reference needs a table of contents.
const LONG_REFERENCE: usize = 300;
/// The number of lines within which the contents are expected.
const CONTENTS_WITHIN: usize = 60;

/// Titles of a table of contents.
const TITLES: &[&str] = &[
    "contents",
    "toc",
    "index",
    "overview",
    "sections",
    "目录",
    "目次",
    "목차",
    "inhalt",
    "sommaire",
    "índice",
    "содержание",
];

/// Reports a long reference without contents: a model that reads only its beginning misses the
/// rest.
fn check_contents(path: &str, text: &str, report: &mut Report) {
    let lines = text.lines().count();
    if lines <= LONG_REFERENCE {
        return;
    }
    let mut beginning = text.lines().take(CONTENTS_WITHIN);
    let links = beginning.clone().filter(|it| it.contains("](#")).count();
    if links < 3
        && !beginning.any(|line: &str| {
            let line = line.to_lowercase();
            line.starts_with(['#', '*']) && TITLES.iter().any(|it| line.contains(it))
        })
    {
        report.note(
            &rule::REFERENCE_CONTENTS,
            Position::FILE,
            || format!("`{path}` has {lines} lines but no table of contents"),
            "list its sections at the top, so that a model can jump to the right one",
        );
    }
}

/// Files that need not be mentioned: about the skill, or read by programs.
const UNMENTIONED: &[&str] = &[
    "license",
    "licence",
    "notice",
    "readme",
    "changelog",
    "contributing",
    "authors",
    "metadata.",
    "package",
    "requirements",
    "pyproject",
    "setup.",
    "makefile",
    "dockerfile",
    "tsconfig",
    "go.mod",
    "go.sum",
    "cargo.",
    "uv.lock",
    "yarn.lock",
    "__init__",
    "skill.",
    "agents.md",
    "claude.md",
    "conftest",
    ".",
];

/// Folders whose files are found by programs and tests.
const OF_PROGRAMS: &[&str] =
    &["evals", "tests", "test", "mcp", "agents", "node_modules", "__pycache__"];

/// The file with a skill's appearance in a client: it names the icons.
const INTERFACE: &str = "agents/openai.yaml";

/// The maximum number of files of a skill that are searched for links, and their maximum size in
/// bytes.
const MAX_READS: usize = 64;
const MAX_READ: u64 = 256 * 1024;

/// Reports files that are not mentioned in the instructions, nor in a file that these mention.
fn check_mentions(
    source: &dyn Source,
    found: &DiscoveredSkill,
    reading: &SplitDocument<'_>,
    report: &mut Report,
) {
    if report.wants(&rule::RESOURCE_UNMENTIONED).is_none() {
        return;
    }
    let mut rest: Vec<&Resource> =
        resources(found).iter().filter(|it| !is_of_program(&it.path)).collect();
    let mut texts = vec![reading.document.body.text.to_lowercase()];
    if !rest.is_empty() && exists(found, INTERFACE) {
        texts.splice(..0, read_lowercase(source, found, INTERFACE));
    }
    let mut reads = MAX_READS;
    while let Some(text) = texts.pop() {
        let (reached, others): (Vec<&Resource>, _) =
            rest.into_iter().partition(|it| leads_to(&text, &it.path));
        rest = others;
        if rest.is_empty() {
            return;
        }
        let readable = reached.iter().filter(|it| it.is_text && it.size <= MAX_READ).take(reads);
        let before = texts.len();
        texts.extend(readable.filter_map(|it| read_lowercase(source, found, &it.path)));
        reads -= texts.len() - before;
    }
    let Some(first) = rest.first().map(|it| &it.path) else { return };
    report.note(
        &rule::RESOURCE_UNMENTIONED,
        Position::FILE,
        || match rest.len() {
            1 => format!("the instructions do not mention `{first}`"),
            2 => format!("the instructions do not mention `{first}` and 1 more file"),
            more => {
                format!("the instructions do not mention `{first}` and {} more files", more - 1)
            }
        },
        "say what the file is for and when to read or run it, or remove it",
    );
}

fn read_lowercase(source: &dyn Source, found: &DiscoveredSkill, path: &str) -> Option<String> {
    let bytes = source.read_beside(&found.path, path).ok()?;
    Some(String::from_utf8_lossy(&bytes).to_lowercase())
}

/// Whether a file is found by a program, or is about the skill.
fn is_of_program(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    UNMENTIONED.iter().any(|it| name.starts_with(it))
        || path.split('/').any(|it| OF_PROGRAMS.contains(&it) || it.starts_with('.'))
}

/// Whether a text in lower case names a file, or the folder that it is in.
fn leads_to(text: &str, path: &str) -> bool {
    let path = path.to_lowercase();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let stem = name.split('.').next().unwrap_or(name);
    let top = folder.split('/').next().unwrap_or("");
    let has = |it: &str| it.len() > 2 && text.contains(it);
    has(name)
        || has(stem)
        || (!folder.is_empty()
            && (has(folder) || has(&format!("{top}/")) || has(&format!("`{top}`"))))
}

/// Checks `evals/evals.json` in either of the spellings that are in use.
fn check_evals(source: &dyn Source, found: &DiscoveredSkill, report: &mut Report) {
    let known = exists(found, "evals/evals.json");
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
            Position::FILE,
            || message,
            "see the specification's guide to evaluations",
        );
    }
}

/// A link to a file.
struct Link<'t> {
    target: &'t str,
    /// The line, counted from 0.
    line: usize,
    column: usize,
}

impl Link<'_> {
    /// Returns the path inside the skill; `None` if the link leads out of it.
    fn path_in_skill(&self) -> Option<String> {
        if Path::new(self.target).is_absolute() || self.target.starts_with('~') {
            return None;
        }
        normalize(self.target)
    }
}

/// Normalizes a relative path with `.` and `..`; `None` if it leaves its folder.
fn normalize(path: &str) -> Option<String> {
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

/// The maximum length of a link's target, in bytes.
const MAX_TARGET: usize = 256;

/// Returns the Markdown links of a text that lead to files, except for those in code.
fn links(text: &str) -> impl Iterator<Item = Link<'_>> {
    prose(text).flat_map(|(line, content)| {
        let starts = content.match_indices("](").map(|it| it.0 + 2);
        let (mut counted, mut ticks) = (0, 0);
        starts.filter_map(move |column| {
            // An odd number of backticks before it: the link is in code.
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

/// Whether a link's target is a file: not an address, a command or a placeholder, and with a folder
/// or an extension.
fn is_file(target: &str) -> bool {
    let address = target.contains([':', '@', '?']) || target.starts_with("//");
    let placeholder = target.contains(['{', '$', '%', '*', '…']);
    let name = target.rsplit('/').next().unwrap_or(target);
    // `/deploy` is a command or a page; `/etc/hosts.conf` is a file.
    let path =
        if target.starts_with('/') { name.contains('.') } else { target.contains(['/', '.']) };
    let host = !target.contains('/')
        && [".com", ".org", ".net", ".io", ".dev", ".ai"].iter().any(|it| name.ends_with(it));
    !target.is_empty() && !address && !host && !placeholder && path
}
