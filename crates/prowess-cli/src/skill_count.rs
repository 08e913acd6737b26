//! How many skills there are, counted the same way by every command.

use std::{
    collections::HashSet,
    fmt, fs,
    path::{Path, PathBuf},
};

use prowess::{Finding, Library, Skill};

use crate::{commands::count, safe};

/// How many of the skills that are left out are named.
const NAMED: usize = 3;

/// How many skills were found, and why some of them are not in use.
#[derive(Debug, Default)]
pub(crate) struct SkillCount {
    /// All of them.
    pub(crate) found: usize,
    /// The folders of those that could not be loaded.
    pub(crate) left_out: Vec<String>,
    /// Copies of others, which are not taken twice.
    pub(crate) copies: usize,
    /// Those that Prowess does not read at all, because of its settings or because of where they are.
    pub(crate) unread: usize,
}

impl SkillCount {
    /// The skills of a library, with those that were found and are not in it.
    pub(crate) fn of(library: &Library) -> Self {
        let left_out: Vec<String> = library.left_out().iter().map(|it| folder(it)).collect();
        let copies = copies(library).count();
        let found = library.all().count() + left_out.len() + copies;
        Self { found, left_out, copies, unread: 0 }
    }

    /// The skills that are in these files, as a library takes them.
    pub(crate) fn among<'a>(paths: impl Iterator<Item = &'a Path>, library: &Library) -> Self {
        let used: HashSet<PathBuf> = library.all().map(|it| real(&it.origin.path)).collect();
        let left_out: HashSet<PathBuf> = library.left_out().iter().map(|it| real(it)).collect();
        let copies: HashSet<PathBuf> = copies(library).map(real).collect();
        let mut counted = Self::default();
        for path in paths {
            counted.found += 1;
            match real(path) {
                it if used.contains(&it) => {}
                it if left_out.contains(&it) => counted.left_out.push(folder(&it)),
                it if copies.contains(&it) => counted.copies += 1,
                _ => counted.unread += 1,
            }
        }
        counted
    }

    /// The part of a sentence that follows on how many there are: `, 1 of them left out (nodesc)`.
    pub(crate) fn remainder(&self) -> String {
        let names = self.left_out.iter().take(NAMED);
        let mut names: Vec<String> = names.map(|it| safe::line(it).into_owned()).collect();
        if self.left_out.len() > NAMED {
            names.push(format!("{} more", self.left_out.len() - NAMED));
        }
        let parts = [
            (self.left_out.len(), format!("left out ({})", names.join(", "))),
            (self.copies, if self.copies == 1 { "a copy" } else { "copies" }.to_owned()),
            (self.unread, "not read by Prowess".to_owned()),
        ];
        let mut text = String::new();
        for (number, what) in parts.iter().filter(|it| it.0 > 0) {
            let of_them = if text.is_empty() { " of them" } else { "" };
            text.push_str(&format!(", {number}{of_them} {what}"));
        }
        text
    }
}

impl fmt::Display for SkillCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", count(self.found, "skill"), self.remainder())
    }
}

/// The files of skills that are copies of others. A file that is reached on two paths is one skill.
fn copies(library: &Library) -> impl Iterator<Item = &Path> {
    let is_copy = |it: &&Finding| it.rule.code == "same-content";
    let copies: Vec<&Path> =
        library.findings().iter().filter(is_copy).map(|it| &*it.path).collect();
    let used: HashSet<PathBuf> = match copies.is_empty() {
        true => HashSet::new(),
        false => library.all().map(|it: &Skill| real(&it.origin.path)).collect(),
    };
    copies.into_iter().filter(move |it| !used.contains(&real(it)))
}

/// The name of the folder that a skill is in.
fn folder(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name).unwrap_or(path.as_os_str());
    folder.to_string_lossy().into_owned()
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
