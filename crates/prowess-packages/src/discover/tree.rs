//! The files of a package as folders, and their contents.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use prowess::spec::SKILL_FILE;

use super::PackageNote;
use crate::digest::TreeFile;

/// The most folders above a file.
const DEEPEST: usize = 64;

/// The files of a package.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    /// The folder with all links resolved; an error if there is none.
    root: io::Result<PathBuf>,
    files: &'t [TreeFile],
    /// The folders in each folder.
    children: BTreeMap<&'t str, BTreeSet<&'t str>>,
    /// The folders with a `SKILL.md`, and what it is called.
    documents: BTreeMap<&'t str, &'t str>,
    /// Names to add to folders.
    pending: Vec<(&'t str, &'t str)>,
    /// The number of files with paths that are not searched.
    odd: usize,
}

impl<'t> Tree<'t> {
    pub(super) fn new(folder: &Path, files: &'t [TreeFile]) -> Self {
        let mut tree = Self {
            root: fs::canonicalize(folder),
            files,
            children: BTreeMap::from([("", BTreeSet::new())]),
            documents: BTreeMap::new(),
            pending: Vec::new(),
            odd: 0,
        };
        for file in files {
            if !is_inside(&file.path) {
                tree.odd += 1;
                continue;
            }
            let folder = parent_of(&file.path);
            tree.add(folder);
            let name = name_of(&file.path);
            // The exact name wins over others, and comes first.
            if name.eq_ignore_ascii_case(SKILL_FILE) {
                let document = tree.documents.entry(folder).or_insert(name);
                if name == SKILL_FILE {
                    *document = name;
                }
            }
        }
        tree
    }

    /// Adds a folder, and those above it that are not known yet.
    fn add(&mut self, mut folder: &'t str) {
        while !self.children.contains_key(folder) {
            self.children.insert(folder, BTreeSet::new());
            let above = parent_of(folder);
            self.pending.push((above, name_of(folder)));
            folder = above;
        }
        while let Some((above, name)) = self.pending.pop() {
            self.children.entry(above).or_default().insert(name);
        }
    }

    /// Returns what is wrong with the tree.
    pub(super) fn notes(&self) -> Vec<PackageNote> {
        let mut notes = Vec::new();
        if let Err(error) = &self.root {
            notes.push(PackageNote::new(
                "",
                format!("the folder of the package cannot be read: {error}"),
                "fetch it again",
            ));
        }
        if self.odd > 0 {
            notes.push(PackageNote::new(
                "",
                format!("{} files have paths that cannot be used", self.odd),
                format!("paths are relative, and at most {DEEPEST} folders deep"),
            ));
        }
        notes
    }

    pub(super) fn has_folder(&self, path: &str) -> bool {
        self.children.contains_key(path)
    }

    pub(super) fn has_file(&self, path: &str) -> bool {
        self.files.binary_search_by(|it| it.path.as_str().cmp(path)).is_ok()
    }

    /// Returns the paths of all folders.
    pub(super) fn folders(&self) -> impl Iterator<Item = &'t str> {
        self.children.keys().copied()
    }

    /// Returns the names of the folders in a folder, in byte order.
    pub(super) fn children(&self, folder: &str) -> impl Iterator<Item = &'t str> {
        self.children.get(folder).into_iter().flatten().copied()
    }

    /// Returns the name of the `SKILL.md` in a folder.
    pub(super) fn document(&self, folder: &str) -> Option<&'t str> {
        self.documents.get(folder).copied()
    }

    /// Returns the folders with a `SKILL.md` in or below a folder.
    pub(super) fn documents_below(&self, below: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.documents.iter().map(|it| (*it.0, *it.1)).filter(move |it| is_below(it.0, below))
    }

    /// Returns the files below a folder.
    pub(super) fn below(&self, folder: &str) -> &'t [TreeFile] {
        if folder.is_empty() {
            return self.files;
        }
        let prefix = format!("{folder}/");
        let start = self.files.partition_point(|it| it.path.as_str() < prefix.as_str());
        let rest = &self.files[start..];
        &rest[..rest.partition_point(|it| it.path.starts_with(&prefix))]
    }

    /// Reads the beginning of a file of the tree. A link is not followed.
    pub(super) fn head(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let root = self.root.as_ref().map_err(|it| io::Error::from(it.kind()))?;
        if !is_inside(path) || !self.has_file(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let full = path.split('/').fold(root.clone(), |folder, name| folder.join(name));
        // A name such as `C:` would lead elsewhere on Windows.
        if !full.starts_with(root) || !fs::symlink_metadata(&full)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if fs::canonicalize(&full)?.parent() != full.parent() {
            return Err(io::Error::other("a link leads to it"));
        }
        let mut bytes = Vec::new();
        File::open(&full)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Whether a path is below the tree, and not too deep.
fn is_inside(path: &str) -> bool {
    let mut depth = 0;
    path.split('/').all(|it| {
        depth += 1;
        !it.is_empty() && !matches!(it, "." | "..") && !it.contains(['\\', '\0'])
    }) && depth <= DEEPEST
}

/// Whether a folder is another, or below it.
pub(super) fn is_below(folder: &str, above: &str) -> bool {
    above.is_empty()
        || folder.strip_prefix(above).is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// Returns the folder of a path; empty for the tree.
pub(super) fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |it| it.0)
}

/// Returns the last name of a path.
pub(super) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |it| it.1)
}

/// Returns a path below a folder.
pub(super) fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns a path that is written relative to a folder; none if it leads out of `top`.
pub(super) fn resolved(top: &str, folder: &str, path: &str) -> Option<String> {
    let mut names: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    let least = top.split('/').filter(|it| !it.is_empty()).count();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    let resolved = names.join("/");
    (names.len() >= least && is_below(&resolved, top)).then_some(resolved)
}
