//! What is in a folder on the disk, compared with what the lock says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use sha2::{Digest as _, Sha256};

use super::sys;
use crate::digest::{ContentDigest, FileDigest, TreeFile};

/// The most files and folders of a skill that are looked at.
const MAX_ENTRIES: usize = 100_000;
/// The most folders above a file.
const MAX_DEPTH: usize = 64;

/// What is in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DiskTree {
    /// The regular files, in the byte order of their paths.
    pub(super) files: Vec<TreeFile>,
    /// What is neither a file nor a folder, or has a name that no package can have: shown paths.
    pub(super) others: Vec<String>,
}

/// How a folder differs from what the lock says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TreeDifference {
    /// Files with other bytes.
    pub(super) changed: Vec<String>,
    /// Files with another mode.
    pub(super) modes: Vec<String>,
    /// Files that are gone.
    pub(super) missing: Vec<String>,
    /// Files, links and others that were added.
    pub(super) extra: Vec<String>,
}

impl TreeDifference {
    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty()
            && self.modes.is_empty()
            && self.missing.is_empty()
            && self.extra.is_empty()
    }

    /// Whether files are gone, and all that are there are as they were installed.
    pub(super) fn is_incomplete(&self) -> bool {
        self.changed.is_empty() && self.modes.is_empty() && !self.missing.is_empty()
    }
}

/// Lists and hashes the files of some folders, on all cores.
pub(super) fn read_trees(folders: &[PathBuf]) -> Vec<io::Result<DiskTree>> {
    let listed = in_parallel(folders.len(), |it| list(&folders[it]));
    let mut jobs = Vec::new();
    for (folder, listed) in listed.iter().enumerate() {
        let names = listed.as_ref().map_or(&[][..], |it| &it.files);
        jobs.extend(names.iter().map(|it| (folder, it)));
    }
    let hashed = in_parallel(jobs.len(), |it| {
        let (folder, path) = jobs[it];
        hash(&folders[folder], path)
    });
    let mut trees: Vec<io::Result<DiskTree>> = Vec::new();
    let mut hashed = hashed.into_iter();
    for listed in listed {
        let Ok(listed) = listed else {
            trees.push(listed.map(|_| DiskTree::default()));
            continue;
        };
        let mut tree = DiskTree { files: Vec::new(), others: listed.others };
        let mut failure = None;
        for (path, hashed) in listed.files.iter().zip(hashed.by_ref()) {
            match hashed {
                Ok(Some(file)) => tree.files.push(file),
                Ok(None) => tree.others.push(path.clone()),
                Err(error) => failure = Some(error),
            }
        }
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        tree.others.sort();
        trees.push(failure.map_or(Ok(tree), Err));
    }
    trees
}

/// Lists and hashes the files of a folder.
pub(super) fn read_tree(folder: &Path) -> io::Result<DiskTree> {
    read_trees(&[folder.to_owned()]).pop().unwrap_or_else(|| Ok(DiskTree::default()))
}

/// Does numbered pieces of work on all cores, and returns their results in order.
pub(super) fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, |it| it.get()).min(count / 8 + 1);
    if threads == 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let one = || {
            let mut own = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return own;
                }
                own.push((number, work(number)));
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let joined = workers.into_iter().map(|it| match it.join() {
            Ok(own) => own,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.flatten().collect()
    });
    done.sort_by_key(|it| it.0);
    done.into_iter().map(|it| it.1).collect()
}

/// The names in a folder, before any file is read.
struct FolderListing {
    files: Vec<String>,
    others: Vec<String>,
}

fn list(folder: &Path) -> io::Result<FolderListing> {
    let mut listed = FolderListing { files: Vec::new(), others: Vec::new() };
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    let mut seen = 0;
    while let Some((folder, above, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            seen += 1;
            if seen > MAX_ENTRIES {
                let message = format!("there are more than {MAX_ENTRIES} files and folders");
                return Err(io::Error::other(message));
            }
            let kind = entry.file_type()?;
            let name = entry.file_name();
            let text = name.to_str().filter(|it| !it.contains(char::is_control));
            let shown = match above.is_empty() {
                true => name.to_string_lossy().into_owned(),
                false => format!("{above}/{}", name.to_string_lossy()),
            };
            match text {
                Some(_) if kind.is_dir() && depth < MAX_DEPTH => {
                    folders.push((entry.path(), shown, depth + 1));
                }
                Some(_) if kind.is_file() => listed.files.push(shown),
                _ => listed.others.push(shown),
            }
        }
    }
    Ok(listed)
}

/// Hashes a file; `None` if it is none by now.
fn hash(folder: &Path, path: &str) -> io::Result<Option<TreeFile>> {
    let mut file = sys::open_file(&folder.join(path))?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let digest = FileDigest(hasher.finalize().into());
    let executable = sys::is_executable(&metadata).unwrap_or(false);
    Ok(Some(TreeFile { path: path.to_owned(), digest, size, executable }))
}

/// Whether systems and interpreters make such a file by themselves, so that it is nobody's work.
pub(super) fn is_by_product(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, ".DS_Store" | "Thumbs.db" | "desktop.ini")
        || path.split('/').rev().skip(1).any(|it| it == "__pycache__")
}

impl DiskTree {
    /// Returns a digest of everything in it, for noticing any change.
    pub(super) fn fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        let mut files = self.files.clone();
        files.iter_mut().for_each(|it| it.executable &= has_modes());
        hasher.update(ContentDigest::of(&files).0);
        for other in &self.others {
            hasher.update(other.as_bytes());
            hasher.update([0]);
        }
        ContentDigest(hasher.finalize().into()).to_string()
    }

    /// Compares it with the files that the lock says.
    pub(super) fn difference(&self, locked: &[TreeFile]) -> TreeDifference {
        let mut difference = TreeDifference::default();
        let mut own: BTreeMap<&str, &TreeFile> =
            self.files.iter().map(|it| (&*it.path, it)).collect();
        for file in locked {
            match own.remove(&*file.path) {
                None => difference.missing.push(file.path.clone()),
                Some(it) if it.digest != file.digest => difference.changed.push(file.path.clone()),
                Some(it) if has_modes() && it.executable != file.executable => {
                    difference.modes.push(file.path.clone());
                }
                Some(_) => {}
            }
        }
        let locked: BTreeSet<&str> = difference.missing.iter().map(|it| &**it).collect();
        let others = self.others.iter().filter(|it| !is_by_product(it));
        // A link in place of a file is a changed file.
        let (replaced, added): (Vec<String>, Vec<String>) =
            others.cloned().partition(|it| locked.contains(&**it));
        let extra = own.into_keys().filter(|it| !is_by_product(it)).map(str::to_owned);
        difference.extra.extend(extra.chain(added));
        difference.extra.sort();
        difference.missing.retain(|it| !replaced.contains(it));
        difference.changed.extend(replaced);
        difference.changed.sort();
        difference
    }
}

fn has_modes() -> bool {
    cfg!(unix)
}
