//! Which part of a repository is fetched.

use std::collections::BTreeSet;

use crate::{
    digest::TreeFile,
    fetch::{error::FetchPackageError, git_program::shown, git_refs::Reference},
    source::{GitSource, SkillSource},
};

/// The part of a repository that is fetched.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    /// The folder, with `/`.
    pub(super) path: Option<String>,
    /// The names of skills, in lower case and order; empty for all.
    pub(super) skills: Vec<String>,
}

impl Selection {
    pub(super) fn new(git: &GitSource, source: &SkillSource) -> Self {
        let path = git.path.as_deref().map(|it| it.trim_matches('/'));
        let path = path.map(|it| it.strip_suffix("/SKILL.md").unwrap_or(it));
        let path = path.filter(|it| !matches!(*it, "" | "." | "SKILL.md")).map(str::to_owned);
        let mut skills: Vec<String> = source.skills.iter().map(|it| it.to_lowercase()).collect();
        skills.sort();
        skills.dedup();
        Self { path, skills }
    }

    /// Returns the keys of trees that have what is selected.
    pub(super) fn keys(&self, url: &str, commit: &str) -> Vec<String> {
        let path_only = Self { skills: Vec::new(), ..self.clone() };
        let all = [self.clone(), path_only, Self::default()];
        let mut keys: Vec<String> = all.iter().map(|it| it.key(url, commit)).collect();
        keys.dedup();
        keys
    }

    pub(super) fn key(&self, url: &str, commit: &str) -> String {
        format!("git\n{}\n{commit}\n{}", shown(url), self.text())
    }

    pub(super) fn key_of_reference(&self, url: &str, reference: &Reference) -> String {
        format!("git reference\n{}\n{reference:?}\n{}", shown(url), self.text())
    }

    fn text(&self) -> String {
        format!("{}\n{}", self.path.as_deref().unwrap_or_default(), self.skills.join("\n"))
    }

    /// Fails if the folder is not among these.
    pub(super) fn check(&self, paths: &[TreeFile], url: &str) -> Result<(), FetchPackageError> {
        let Some(path) = &self.path else { return Ok(()) };
        let below = format!("{path}/");
        match paths.iter().any(|it| it.path.starts_with(&below)) {
            true => Ok(()),
            false => Err(no_folder(path, paths.iter().map(|it| &*it.path), url)),
        }
    }

    /// Returns the entries below the folder.
    pub(super) fn below<'e, T>(
        &self,
        entries: &'e [T],
        path_of: impl Fn(&T) -> &str,
        url: &str,
    ) -> Result<Vec<&'e T>, FetchPackageError> {
        let Some(path) = &self.path else { return Ok(entries.iter().collect()) };
        let below = format!("{path}/");
        let found: Vec<&T> = entries.iter().filter(|it| path_of(it).starts_with(&below)).collect();
        match found.is_empty() {
            false => Ok(found),
            true => Err(no_folder(path, entries.iter().map(path_of), url)),
        }
    }
}

fn no_folder<'p>(path: &str, paths: impl Iterator<Item = &'p str>, url: &str) -> FetchPackageError {
    let mut folders = BTreeSet::new();
    for file in paths.take(100_000) {
        let mut folder = file;
        while let Some((above, _)) = folder.rsplit_once('/') {
            if !folders.insert(above) {
                break;
            }
            folder = above;
        }
    }
    let last = file_name(path);
    let same = folders.iter().find(|it| file_name(it).eq_ignore_ascii_case(last));
    let nearest = same.copied().or_else(|| prowess::nearest(path, folders.iter().copied()));
    FetchPackageError::NoFolder {
        url: url.to_owned(),
        path: path.to_owned(),
        nearest: nearest.map(str::to_owned),
    }
}

/// Returns the last name of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
