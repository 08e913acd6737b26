//! Shows the changes of a new version: first of the text that a model would read, then of other files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::Result;
use prowess::{ResourceKind, spec::SKILL_FILE};
use prowess_packages::{LockedSkill, TreeFile};
use serde_json::{Value, json};

use super::review::size_text;
use crate::{commands::plural, diff, printer::Printer, safe};

/// The lines of context around a change.
const AROUND: usize = 3;
/// The lines of a difference that are printed without `-v`.
const LINES: usize = 200;
/// The largest file that is compared.
const LARGEST: u64 = 1 << 20;

/// The difference between two versions of a skill.
#[derive(Debug, Default)]
pub(crate) struct VersionChange {
    /// The differences of files that a model reads, each in the format of `diff -u`.
    pub(crate) texts: Vec<String>,
    /// The other files that are new, changed and gone.
    pub(crate) added: Vec<TreeFile>,
    pub(crate) changed: Vec<(TreeFile, TreeFile)>,
    pub(crate) removed: Vec<TreeFile>,
}

impl VersionChange {
    /// Compares two versions, each in a folder; the old one may not be there any more.
    pub(crate) fn between(old: (&[TreeFile], Option<&Path>), new: (&[TreeFile], &Path)) -> Self {
        let by_path = |files: &[TreeFile]| -> BTreeMap<String, TreeFile> {
            files.iter().map(|it| (it.path.clone(), it.clone())).collect()
        };
        let (before, after) = (by_path(old.0), by_path(new.0));
        let mut paths: Vec<&String> =
            before.keys().chain(after.keys()).collect::<BTreeSet<_>>().into_iter().collect();
        paths.sort_by_key(|it| (*it != SKILL_FILE, (*it).clone()));
        let mut change = Self::default();
        for path in paths {
            let (one, other) = (before.get(path), after.get(path));
            if one == other {
                continue;
            }
            let text = is_read(path)
                .then(|| {
                    let was = match (one, old.1) {
                        (None, _) => String::new(),
                        (Some(file), Some(folder)) => text_of(file, folder)?,
                        (Some(_), None) => return None,
                    };
                    let is = other.map_or(Some(String::new()), |it| text_of(it, new.1))?;
                    Some(diff::diff(path, &was, &is, AROUND))
                })
                .flatten()
                .filter(|it| !it.is_empty());
            match (text, one, other) {
                (Some(text), ..) => change.texts.push(text),
                (None, Some(one), Some(other)) => change.changed.push((one.clone(), other.clone())),
                (None, Some(one), None) => change.removed.push(one.clone()),
                (None, None, Some(other)) => change.added.push(other.clone()),
                (None, None, None) => {}
            }
        }
        change
    }

    /// Returns it as JSON.
    pub(crate) fn json(&self) -> Value {
        let paths = |files: &[TreeFile]| files.iter().map(|it| it.path.clone()).collect::<Vec<_>>();
        let changed: Vec<&str> = self.changed.iter().map(|it| &*it.1.path).collect();
        json!({
            "diff": self.texts.concat(),
            "added": paths(&self.added),
            "changed": changed,
            "removed": paths(&self.removed),
        })
    }
}

/// Returns whether a model may read a file as it is.
fn is_read(path: &str) -> bool {
    path == SKILL_FILE || ResourceKind::of(path) == ResourceKind::Reference
}

fn text_of(file: &TreeFile, folder: &Path) -> Option<String> {
    if file.size > LARGEST {
        return None;
    }
    String::from_utf8(fs::read(folder.join(&file.path)).ok()?).ok()
}

/// Prints a difference: texts, then the other files.
pub(crate) fn print_version_change(change: &VersionChange, printer: &mut Printer) -> Result<()> {
    let text: String =
        change.texts.iter().map(|it| diff::for_terminal(it, printer.colored)).collect();
    let lines: Vec<&str> = text.lines().collect();
    let most = if printer.verbose { lines.len() } else { LINES };
    for line in lines.iter().take(most) {
        printer.line(line)?;
    }
    if lines.len() > most {
        let more = plural(lines.len() - most, "more line", "more lines");
        printer.line(printer.dim(&format!("… {more}; `-v` shows all")))?;
    }
    let mut files: Vec<(char, &TreeFile, String)> = Vec::new();
    files.extend(change.added.iter().map(|it| ('+', it, size_text(it.size))));
    files.extend(change.changed.iter().map(|(old, new)| {
        let mode =
            if old.executable != new.executable && new.executable { ", executable" } else { "" };
        ('~', new, format!("{} before, {} now{mode}", size_text(old.size), size_text(new.size)))
    }));
    files.extend(change.removed.iter().map(|it| ('-', it, size_text(it.size))));
    files.sort_by(|a, b| a.1.path.cmp(&b.1.path));
    for (sign, file, size) in files {
        let size = printer.dim(&size);
        printer.line(format_args!("{sign} {}  {size}", safe::line(&file.path)))?;
    }
    printer.flush()
}

/// Returns the folder with the files of a locked skill: that of the cache, or the installed one if it is unchanged.
pub(crate) fn folder_of_locked(
    locked: &LockedSkill,
    session: &super::PackageSession,
) -> Option<std::path::PathBuf> {
    session.cache.folder_of(&locked.files).or_else(|| {
        let verified = prowess_packages::verify(&session.install, std::slice::from_ref(locked));
        let whole = verified.iter().find(|it| it.faults.is_empty())?;
        Some(match whole.path.strip_prefix("~/") {
            Some(rest) => crate::context::home()?.join(rest),
            None => session.place.root.join(&whole.path),
        })
    })
}
