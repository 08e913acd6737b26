//! Files that no command may use: those that the host withholds, and those that a rule denies.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::walk::{DIRECTORIES, DirectoryWalk};
use crate::{glob::fits, listing, policy::Policy, protected::ResolvedPath};

/// Files that no command may use.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    /// All existing ones, with links resolved.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Paths that lead there, or would if the target existed: they must not be replaced.
    pub(crate) ways: Vec<PathBuf>,
    /// The first directory that was not searched, for lack of room.
    pub(crate) unseen: Option<PathBuf>,
}

impl Withheld {
    /// Finds the files that a policy withholds.
    pub(crate) fn new(policy: &Policy) -> Self {
        let mut withheld = Self::default();
        for ResolvedPath { end, mut links } in policy.withheld.iter().map(|it| ResolvedPath::of(it))
        {
            withheld.ways.append(&mut links);
            if end.exists() {
                withheld.paths.insert(end);
            } else {
                withheld.ways.push(end);
            }
        }
        let denied = policy.denied().map(|it| it.strip_prefix("./").unwrap_or(it));
        let denied: Vec<&str> = denied.collect();
        for root in &policy.roots {
            for pattern in &denied {
                withheld.add_target(&root.join(pattern), policy);
            }
        }
        // The contents of a denied folder are denied with it.
        let is_below = |it: &str| it.strip_suffix("/*").is_some_and(|it| denied.contains(&it));
        let open: Vec<&str> = denied
            .iter()
            .copied()
            .filter(|it: &&str| it.contains(['*', '?']) && !is_below(it))
            .collect();
        if !open.is_empty() {
            withheld.search(&open, policy);
        }
        withheld
    }

    /// Searches for matches of a pattern in the roots and below, the nearest directories first.
    fn search(&mut self, patterns: &[&str], policy: &Policy) {
        let real = |it: &PathBuf| fs::canonicalize(it).ok();
        let roots: Vec<(&PathBuf, PathBuf)> =
            policy.roots.iter().filter_map(|it| Some((it, real(it)?))).collect();
        let is_denied = |path: &Path| {
            let readings = roots
                .iter()
                .filter_map(|(named, real): &(&PathBuf, PathBuf)| {
                    let rest = path.strip_prefix(real).ok()?;
                    Some([rest.to_owned(), named.join(rest)])
                })
                .flatten()
                .chain([path.to_owned()]);
            let mut texts = readings.map(|it| it.to_string_lossy().into_owned());
            texts.any(|text| patterns.iter().any(|it| fits(it, &text)))
        };
        let mut walk = DirectoryWalk::new(roots.iter().map(|it| it.1.clone()), DIRECTORIES);
        while let Some(directory) = walk.next_directory() {
            for entry in listing::entries(&directory) {
                let path = entry.path();
                if is_denied(&path) {
                    self.add_target(&path, policy);
                } else if entry.file_type().is_ok_and(|it| it.is_dir()) {
                    walk.enter(path);
                }
            }
        }
        if let Some(unseen) = walk.unseen() {
            self.unseen = Some(unseen);
        }
    }

    /// Adds the target of a path, if it exists and is in the roots: others are inaccessible anyway.
    fn add_target(&mut self, path: &Path, policy: &Policy) {
        let Ok(real) = fs::canonicalize(path) else { return };
        let mut roots = policy.roots.iter().filter_map(|it| fs::canonicalize(it).ok());
        if roots.any(|it| real.starts_with(it)) {
            self.paths.insert(real);
        }
    }
}
