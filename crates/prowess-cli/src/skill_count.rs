//! The number of skills, counted the same way by every command.

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use prowess::{Finding, Library, Skill};

use crate::{commands::count, safe, surroundings::real_path};

/// The number of left-out skills that are named.
const NAMED: usize = 3;

/// The number of skills found, and the reasons why some are not used.
#[derive(Debug, Default)]
pub(crate) struct SkillCount {
    /// All skills found.
    pub(crate) found: usize,
    /// The folders of skills that could not be loaded.
    pub(crate) left_out: Vec<String>,
    /// Copies of other skills, which are not loaded twice.
    pub(crate) copies: usize,
    /// Skills that Prowess does not read, because of its settings or their place.
    pub(crate) unread: usize,
}

impl SkillCount {
    /// Counts the skills of a library, and those that were found and are not in it.
    pub(crate) fn of(library: &Library) -> Self {
        let left_out: Vec<String> = library.left_out().iter().map(|it| folder(it)).collect();
        let copies = copies(library).count();
        let found = library.all().count() + left_out.len() + copies;
        Self { found, left_out, copies, unread: 0 }
    }

    /// Counts the skills in these files, as a library would load them.
    pub(crate) fn of_files<'a>(paths: impl Iterator<Item = &'a Path>, library: &Library) -> Self {
        let used: HashSet<PathBuf> = library.all().map(|it| real_path(&it.origin.path)).collect();
        let left_out: HashSet<PathBuf> =
            library.left_out().iter().map(|it| real_path(it)).collect();
        let copies: HashSet<PathBuf> = copies(library).map(real_path).collect();
        let mut counted = Self::default();
        for path in paths {
            counted.found += 1;
            match real_path(path) {
                it if used.contains(&it) => {}
                it if left_out.contains(&it) => counted.left_out.push(folder(&it)),
                it if copies.contains(&it) => counted.copies += 1,
                _ => counted.unread += 1,
            }
        }
        counted
    }

    /// Returns the part of a sentence after the number: `, 1 of them left out (nodesc)`.
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

/// Returns the files of skills that are copies of others. A file reached by two paths is one skill.
fn copies(library: &Library) -> impl Iterator<Item = &Path> {
    let copies: Vec<&Path> = library
        .findings()
        .iter()
        .filter(|it: &&Finding| it.rule.code == "same-content")
        .map(|it| &*it.path)
        .collect();
    let used: HashSet<PathBuf> = match copies.is_empty() {
        true => HashSet::new(),
        false => library.all().map(|it: &Skill| real_path(&it.origin.path)).collect(),
    };
    copies.into_iter().filter(move |it| !used.contains(&real_path(it)))
}

/// Returns the name of the folder of a skill.
fn folder(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name).unwrap_or(path.as_os_str());
    folder.to_string_lossy().into_owned()
}
