//! Files that no command may use: those that the host withholds, and those that a rule denies.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::walk::{DIRECTORIES, DirectoryWalk};
use crate::{glob::fits, listing, policy::Policy, protected::ResolvedPath, sys::slashed};

/// Files that no command may use.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    /// All existing ones, with links resolved.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Paths that lead there, or would if the target existed: they must not be replaced.
    pub(crate) links: Vec<PathBuf>,
    /// The first directory that was not searched, because there are too many.
    pub(crate) unsearched: Option<PathBuf>,
}

/// Whether a pattern matches a path: the whole path, or its part below one of the roots, by the
/// given or the resolved path of the root.
fn matches_any(patterns: &[&str], path: &Path, roots: &[(&PathBuf, PathBuf)]) -> bool {
    let spellings = roots
        .iter()
        .filter_map(|(given, real): &(&PathBuf, PathBuf)| {
            let rest = path.strip_prefix(real).ok()?;
            Some([rest.to_owned(), given.join(rest)])
        })
        .flatten()
        .chain([path.to_owned()]);
    let mut texts = spellings.map(|it| slashed(&it).into_owned());
    texts.any(|text| patterns.iter().any(|it| fits(it, &text)))
}

impl Withheld {
    /// Finds the files that a policy withholds.
    pub(crate) fn new(policy: &Policy) -> Self {
        let mut withheld = Self::default();
        for ResolvedPath { end, mut links } in policy.withheld.iter().map(|it| ResolvedPath::of(it))
        {
            withheld.links.append(&mut links);
            if end.exists() {
                withheld.paths.insert(end);
            } else {
                withheld.links.push(end);
            }
        }
        let denied = policy.denied_paths().map(|it| it.strip_prefix("./").unwrap_or(it));
        let denied: Vec<&str> = denied.collect();
        for root in &policy.roots {
            for pattern in &denied {
                withheld.add_target(&root.join(pattern), policy);
            }
        }
        let globs: Vec<&str> = denied
            .iter()
            .copied()
            .filter(|it: &&str| {
                // The contents of a denied folder are denied with it.
                let is_below = it.strip_suffix("/*").is_some_and(|it| denied.contains(&it));
                it.contains(['*', '?']) && !is_below
            })
            .collect();
        if !globs.is_empty() {
            withheld.search(&globs, policy);
        }
        withheld
    }

    /// Searches for matches of a pattern in the roots and below, the nearest directories first.
    fn search(&mut self, patterns: &[&str], policy: &Policy) {
        let roots: Vec<(&PathBuf, PathBuf)> =
            policy.roots.iter().filter_map(|it| Some((it, prowess::real_path(it).ok()?))).collect();
        let mut walk = DirectoryWalk::new(roots.iter().map(|it| it.1.clone()), DIRECTORIES);
        while let Some(directory) = walk.next_directory() {
            for entry in listing::entries(&directory) {
                let path = entry.path();
                if matches_any(patterns, &path, &roots) {
                    self.add_target(&path, policy);
                } else if entry.file_type().is_ok_and(|it| it.is_dir()) {
                    walk.enter(path);
                }
            }
        }
        if let Some(first_unsearched) = walk.first_unsearched() {
            self.unsearched = Some(first_unsearched);
        }
    }

    /// Adds the target of a path, if it exists and is in the roots: others are inaccessible anyway.
    fn add_target(&mut self, path: &Path, policy: &Policy) {
        let Ok(real) = prowess::real_path(path) else { return };
        let mut roots = policy.roots.iter().filter_map(|it| prowess::real_path(it).ok());
        if roots.any(|it| real.starts_with(it)) {
            self.paths.insert(real);
        }
    }
}
