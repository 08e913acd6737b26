//! Reads a folder of this machine as a package.

use std::{
    fs::File,
    io::{self, Read, Seek as _},
    path::{Path, PathBuf},
};

use super::{
    ArchiveError, ArchiveLimits, UnpackedArchive, check_empty,
    links::replace_links,
    tree::{Contents, Tree, too_large},
};
use crate::sys::{EntryKind, OpenFolder, is_executable};

/// A folder cannot be copied; nothing of the copy is used then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A file or folder cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A limit is exceeded.
    #[error("`{path}` has more than {limit}")]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// The limit, such as `50000 files and folders`.
        limit: String,
    },
    /// A file cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl CopyError {
    /// Returns what a user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check the path and its permissions",
            Self::TooLarge { .. } => "name the folder of the skill instead of one above it",
            Self::Write { .. } => "check the permissions and the free space",
        }
    }
}

/// Copies a folder into an empty one as a package, and returns its files.
///
/// `.git` and `node_modules` are no part of it. Links within the folder become what they point to;
/// others, pipes, devices and names that cannot be used on every system are left out and reported.
pub fn copy_folder(
    from: &Path,
    limits: &ArchiveLimits,
    to: &Path,
) -> Result<UnpackedArchive, CopyError> {
    let failed = |error| match error {
        ArchiveError::TooLarge { limit } => CopyError::TooLarge { path: from.to_owned(), limit },
        ArchiveError::Write { path, source } => CopyError::Write { path, source },
        ArchiveError::Damaged(source) => CopyError::Read { path: from.to_owned(), source },
        ArchiveError::Refused { path, reason } => {
            CopyError::Read { path: from.join(path), source: io::Error::other(reason) }
        }
    };
    check_empty(to).map_err(failed)?;
    let mut tree = Tree::new(limits, Contents::Folder(to.to_owned()), true);
    let is_skipped = |name: &str| name.eq_ignore_ascii_case(".git") || name == "node_modules";
    read_folder(from, is_skipped, limits, &mut tree)
        .map_err(|(path, source)| CopyError::Read { path, source })?
        .map_err(failed)?;
    Ok(UnpackedArchive {
        files: tree.files.into_values().collect(),
        comment: None,
        left_out: tree.left_out,
    })
}

/// Adds the files of a folder to a tree, in the byte order of the names in each folder. The outer
/// error is of reading.
pub(crate) fn read_folder<'l>(
    from: &Path,
    is_skipped: impl Fn(&str) -> bool,
    limits: &'l ArchiveLimits,
    tree: &mut Tree<'l>,
) -> Result<Result<(), ArchiveError>, (PathBuf, io::Error)> {
    let root = OpenFolder::open(from).map_err(|error| (from.to_owned(), error))?;
    let mut reader = Reader { from, is_skipped, limits, tree };
    match reader.folder(&root, "", 0) {
        Ok(()) => Ok(replace_links(tree)),
        Err(Failure::Tree(error)) => Ok(Err(error)),
        Err(Failure::Read(path, error)) => Err((path, error)),
    }
}

struct Reader<'a, 'l, F> {
    from: &'a Path,
    is_skipped: F,
    limits: &'l ArchiveLimits,
    tree: &'a mut Tree<'l>,
}

enum Failure {
    Tree(ArchiveError),
    Read(PathBuf, io::Error),
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self::Tree(error)
    }
}

impl<F: Fn(&str) -> bool> Reader<'_, '_, F> {
    fn folder(&mut self, folder: &OpenFolder, above: &str, depth: usize) -> Result<(), Failure> {
        let unreadable = |error| Failure::Read(self.from.join(above), error);
        let mut entries = folder.entries().map_err(unreadable)?;
        if entries.len() > self.limits.files {
            return Err(too_large(format!("{} files and folders", self.limits.files)).into());
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, kind) in entries {
            let Some(text) = name.to_str() else {
                self.tree.count()?;
                let path = format!("{above}{}", name.to_string_lossy());
                self.tree.leave_out(&path, "a name that is not UTF-8")?;
                continue;
            };
            if (self.is_skipped)(text) {
                continue;
            }
            let path = format!("{above}{text}");
            let unreadable = |error| Failure::Read(self.from.join(&path), error);
            match kind {
                EntryKind::Folder if depth >= self.limits.depth => {
                    self.tree.count()?;
                    self.tree.leave_out(&path, "a path with too many folders")?;
                }
                EntryKind::Folder => {
                    let inner = folder.folder(&name).map_err(unreadable)?;
                    self.folder(&inner, &format!("{path}/"), depth + 1)?;
                }
                EntryKind::File => {
                    let file = folder.file(&name).map_err(unreadable)?;
                    self.file(file, &path)?;
                }
                EntryKind::Link => {
                    let target = folder.link(&name).map_err(unreadable)?;
                    match target.to_str() {
                        Some(target) => self.tree.add_link(&path, target)?,
                        None => {
                            self.tree.count()?;
                            self.tree.leave_out(&path, "a link that leads out of the package")?;
                        }
                    }
                }
                EntryKind::Other => {
                    self.tree.count()?;
                    self.tree.leave_out(&path, "a device, a pipe or a socket")?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, mut file: File, path: &str) -> Result<(), Failure> {
        let unreadable = |error| Failure::Read(self.from.join(path), error);
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            let swapped = io::Error::other("it has been replaced meanwhile");
            return Err(unreadable(swapped));
        }
        let mut start = [0; 2];
        let count = file.read(&mut start).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let executable = is_executable(&metadata, &start[..count]);
        match self.tree.add(path, metadata.len(), executable, &mut file) {
            Err(ArchiveError::Damaged(error)) => Err(unreadable(error)),
            other => Ok(other?),
        }
    }
}
