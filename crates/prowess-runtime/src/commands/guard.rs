//! Files that others act on without being asked: a command must not leave anything in them.
//!
//! Where the sandbox mounts, they are read-only inside. What it cannot keep from being written, or
//! what was not there before, is put right once nobody is left to write.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use crate::protected::PROTECTED;

/// How many files of each are looked at, how far down, and how large one can be to be put right.
const FILES: usize = 500;
const DEPTH: usize = 8;
const SIZE: u64 = 256 * 1024;

/// What the protected files were before a command ran. Dropped, it puts them right.
#[derive(Debug)]
pub(crate) struct Guard {
    before: BTreeMap<PathBuf, Option<File>>,
    is_done: bool,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum File {
    Directory,
    /// A directory that was not looked into.
    Unseen,
    Link(PathBuf),
    /// With its mode; without its bytes where it is large.
    Plain(u32, Result<Vec<u8>, u64>),
    Other,
}

impl Guard {
    /// Looks at the protected files below the roots, and above the directory as far as a root.
    pub(crate) fn new(roots: &[PathBuf], directory: &Path) -> Self {
        let inside = |it: &&Path| roots.iter().any(|root| it.starts_with(root));
        let above = directory.ancestors().take_while(inside);
        let mut before = BTreeMap::new();
        for place in roots.iter().map(|it| &**it).chain(above) {
            for name in PROTECTED {
                look(&place.join(name), place, &mut before);
            }
        }
        Self { before, is_done: false }
    }

    /// The protected files and directories that are there. A link is none: what it leads to may be
    /// nothing for a command to read.
    pub(crate) fn there(&self) -> impl Iterator<Item = &Path> {
        let is_own = |it: &Option<File>| {
            matches!(it, Some(File::Directory | File::Unseen | File::Plain(..)))
        };
        let there = self.before.iter().filter(move |it| is_own(it.1) && is_top(it.0));
        there.map(|it| &**it.0)
    }

    /// Puts right what has changed, and says what that was.
    pub(crate) fn restore(mut self) -> Vec<String> {
        self.put_right()
    }

    fn put_right(&mut self) -> Vec<String> {
        self.is_done = true;
        let mut after = BTreeMap::new();
        for (path, _) in self.before.iter().filter(|it| is_top(it.0)) {
            look(path, &place(path), &mut after);
        }
        let mut said = Vec::new();
        // What is inside goes before what it is in, and comes back behind it.
        for (path, file) in after.iter().rev() {
            let old = self.before.get(path).cloned().flatten();
            if file.is_some() && !is_same(file, &old) && !self.is_unseen(path) {
                said.push(match (remove(path), &old) {
                    (Ok(()), None) => format!("`{}` was written and is removed", path.display()),
                    (Ok(()), Some(_)) => format!("`{}` was changed", path.display()),
                    (Err(error), _) => format!("`{}` was written: {error}", path.display()),
                });
            }
        }
        // What was not looked into this time is looked at by itself.
        let now = |path: &Path| after.get(path).cloned().unwrap_or_else(|| file(path));
        for (path, file) in &self.before {
            if let Some(file) = file
                && !is_same(&now(path), &Some(file.clone()))
            {
                said.push(match restore(path, file) {
                    Ok(()) => format!("`{}` is as it was", path.display()),
                    Err(error) => format!("`{}` could not be restored: {error}", path.display()),
                });
            }
        }
        said
    }

    /// Whether a path lies in a directory that was not looked into: nobody knows what was there.
    fn is_unseen(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|it| self.before.get(it) == Some(&Some(File::Unseen)))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_done {
            self.put_right();
        }
    }
}

fn is_top(path: &Path) -> bool {
    PROTECTED.iter().any(|name| path.ends_with(name))
}

/// The directory that a protected file was looked for in.
fn place(path: &Path) -> PathBuf {
    let name = PROTECTED.iter().find(|name| path.ends_with(name));
    let depth = name.map_or(1, |it| Path::new(it).components().count());
    path.ancestors().nth(depth).unwrap_or(path).to_owned()
}

/// Looks at a path and what is in it, following no link below `place`.
fn look(path: &Path, place: &Path, found: &mut BTreeMap<PathBuf, Option<File>>) {
    let is_directory = |it: &Path| fs::symlink_metadata(it).is_ok_and(|it| it.is_dir());
    let mut above = path.ancestors().skip(1).take_while(|it| *it != place);
    if !above.all(is_directory) {
        found.insert(path.to_owned(), None);
        return;
    }
    let mut open = vec![(path.to_owned(), 0)];
    let mut seen = 0;
    while let Some((path, depth)) = open.pop() {
        let mut file = file(&path);
        seen += 1;
        if file == Some(File::Directory) {
            if depth < DEPTH && seen < FILES {
                let inside = fs::read_dir(&path).into_iter().flatten().flatten();
                open.extend(inside.map(|it| (it.path(), depth + 1)));
            } else {
                file = Some(File::Unseen);
            }
        }
        found.insert(path, file);
    }
}

/// Whether nothing has changed, as far as was looked.
fn is_same(a: &Option<File>, b: &Option<File>) -> bool {
    let is_directory = |it: &_| matches!(it, Some(File::Directory | File::Unseen));
    a == b || is_directory(a) && is_directory(b)
}

fn file(path: &Path) -> Option<File> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(if metadata.is_dir() {
        File::Directory
    } else if metadata.is_symlink() {
        File::Link(fs::read_link(path).unwrap_or_default())
    } else if !metadata.is_file() {
        File::Other
    } else if metadata.len() > SIZE {
        File::Plain(metadata.permissions().mode(), Err(metadata.len()))
    } else {
        let bytes = fs::read(path).map_err(|_| metadata.len());
        File::Plain(metadata.permissions().mode(), bytes)
    })
}

/// Removes what is there, of a directory all that is in it; no link is followed.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(it) if it.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn restore(path: &Path, file: &File) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    if !fs::symlink_metadata(parent)?.is_dir() {
        return Err(io::Error::other("it lay in a directory that is none now"));
    }
    match file {
        File::Directory | File::Unseen => fs::create_dir(path),
        File::Link(to) => symlink(to, path),
        File::Plain(mode, Ok(bytes)) => {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(*mode & 0o777).open(path)?;
            file.write_all(bytes)
        }
        File::Plain(_, Err(_)) | File::Other => Err(io::Error::other("there is no copy of it")),
    }
}
