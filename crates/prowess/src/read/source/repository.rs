//! The folders of a repository that are searched for skills.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    ignore::Ignore,
    open::Entries,
    sys::{self, Kind},
    trouble::Trouble,
};
use crate::{clients::CLIENTS, lock::lock, spec::SKILL_FILE};

/// Folders that never contain skills.
const NEVER: &[&str] =
    &[".git", ".hg", ".jj", ".svn", ".trash", "__pycache__", "bower_components", "node_modules"];
/// Folders of build output, unless they directly contain a `SKILL.md`.
const OUTPUT: &[&str] = &["dist", "target"];
/// Files that mark caches and virtual environments.
const MARKERS: &[&str] = &["CACHEDIR.TAG", "pyvenv.cfg"];
/// The number of bytes of a `.gitignore` that are read.
const MAX_IGNORE: u64 = 256 * 1024;

/// A directory that is searched as a repository, with the `.gitignore` files that were found in it.
#[derive(Debug, Default)]
pub(super) struct Repository {
    /// The `.gitignore` files of its parent folders, the nearest first, each with the path from
    /// there to here.
    above: Vec<(PathBuf, Ignore)>,
    /// The `.gitignore` of each folder that has one.
    inside: Mutex<HashMap<PathBuf, Ignore>>,
    ignores_anything: AtomicBool,
}

impl Repository {
    /// Reads the `.gitignore` files above. A folder that is named explicitly is searched even if it
    /// is ignored, so then none of those apply.
    pub(super) fn new(real: &Path) -> Self {
        let mut above = Vec::new();
        if let Some(root) = real.ancestors().find(|it: &&Path| it.join(".git").exists()) {
            for folder in real.ancestors().skip(1).take_while(|it| it.starts_with(root)) {
                let way = real.strip_prefix(folder).unwrap_or(real).to_owned();
                let file = sys::open_file(&folder.join(".gitignore")).ok();
                above.extend(file.map(|it| (way, read(it))));
            }
        }
        let is_ignored = real.ancestors().any(|folder| {
            let matched = above.iter().find_map(|(way, ignore)| {
                let from = real.ancestors().nth(way.components().count())?;
                ignore.decision(folder.strip_prefix(from).ok()?)
            });
            matched == Some(true)
        });
        if is_ignored {
            above.clear();
        }
        let ignores_anything = AtomicBool::new(!above.is_empty());
        Self { above, ignores_anything, ..Self::default() }
    }

    /// Reads the `.gitignore` of a folder, before its subfolders are checked.
    pub(super) fn enter(&self, folder: &Path, entries: &Entries) {
        let mut names = entries.names.iter();
        let mut inside = lock(&self.inside);
        inside.remove(folder);
        if !names
            .any(|it| &*it.name == ".gitignore" && matches!(it.kind, Kind::File | Kind::Unknown))
        {
            return;
        }
        if let Ok(file) = entries.directory.file(".gitignore") {
            inside.insert(folder.to_owned(), read(file));
            self.ignores_anything.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the search depends on more than the folders themselves.
    pub(super) fn ignores_anything(&self) -> bool {
        self.ignores_anything.load(Ordering::Relaxed)
    }

    /// Whether a subfolder is not searched.
    pub(super) fn skips(&self, folder: &Path, name: &str) -> bool {
        if NEVER.contains(&name) {
            return true;
        }
        let path = folder.join(name);
        !is_open(&path) || self.ignores_anything() && self.ignores(&path)
    }

    /// Whether git ignores a folder: the nearest file with a matching pattern decides.
    fn ignores(&self, path: &Path) -> bool {
        let inside = lock(&self.inside);
        let mut folders = path.ancestors().skip(1);
        let matched = folders.find_map(|folder| {
            let within = path.strip_prefix(folder).ok()?;
            inside.get(folder)?.decision(within)
        });
        matched.or_else(|| self.above.iter().find_map(|(way, it)| it.decision(&way.join(path))))
            == Some(true)
    }
}

/// Whether a folder itself is hidden.
pub(super) fn is_hidden(folder: &Path) -> bool {
    folder.file_name().is_some_and(has_dot)
}

/// Whether a folder that is not a skill contains the output of a tool.
pub(super) fn has_output(folder: &Path, entries: &Entries) -> bool {
    let is_output = folder.file_name().is_some_and(|it| OUTPUT.iter().any(|output| it == *output));
    is_output || entries.names.iter().any(|it| MARKERS.contains(&&*it.name))
}

/// Whether a problem with a folder of a repository is worth reporting: a link among skills, or to
/// one, and everything that is not a link.
pub(super) fn is_reported_link(root: &Path, folder: &Path, trouble: &Trouble) -> bool {
    let folder = root.join(folder);
    let is_among_skills = folder.iter().rev().take(2).any(|it| is_skills(Some(it)));
    match trouble {
        Trouble::Escapes(real) => is_among_skills || real.join(SKILL_FILE).is_file(),
        Trouble::Circle => is_among_skills,
        Trouble::Io(error) => error.kind() != std::io::ErrorKind::NotFound || is_among_skills,
        _ => true,
    }
}

/// Whether nothing on the path to a folder is hidden, except for folders in which clients keep
/// skills: `skills` in any hidden folder, or those in the table of clients.
fn is_open(path: &Path) -> bool {
    let parts: Vec<&OsStr> = path.iter().collect();
    let Some(hidden) = parts.iter().rposition(|it| has_dot(it)) else { return true };
    match &parts[hidden..] {
        [_] => true,
        [_, second, ..] if is_skills(Some(second)) => true,
        way => {
            let spots = CLIENTS.iter().flat_map(|it| it.spots).map(|it| Path::new(it.path));
            let spots = spots.map(|it| it.iter().skip_while(|it| !has_dot(it)));
            // On the path to the directory of a client, or inside it.
            spots.into_iter().any(|it| it.clone().count() > 1 && it.zip(way).all(|(a, b)| a == *b))
        }
    }
}

fn has_dot(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

fn is_skills(name: Option<&OsStr>) -> bool {
    name.is_some_and(|it| it == "skills" || it == "skill")
}

/// Reads a `.gitignore`, with invalid bytes replaced.
fn read(file: File) -> Ignore {
    let is_file = file.metadata().is_ok_and(|it| it.is_file());
    let mut bytes = Vec::new();
    if is_file {
        // A file that cannot be read ignores nothing.
        let _ = file.take(MAX_IGNORE).read_to_end(&mut bytes);
    }
    Ignore::new(&String::from_utf8_lossy(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_hidden_folders_only_those_with_skills_are_open() {
        for path in [
            "a/b",
            ".claude",
            ".claude/skills",
            "x/.cursor/skills/group/deep",
            ".apm/skills/a",
            ".opencode/skill/a",
            ".tabnine/agent",
            ".tabnine/agent/skills/a",
        ] {
            assert!(is_open(Path::new(path)), "{path}");
        }
        for path in [".claude/commands", ".cache/a", "x/.idea/skill-set", ".tabnine/other"] {
            assert!(!is_open(Path::new(path)), "{path}");
        }
    }
}
