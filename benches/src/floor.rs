//! The lower bound of finding skills on disk: the system calls and nothing else.

use std::{
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::Result;
use rustix::{
    fs::{AtFlags, Mode, OFlags, RawDir, open, openat, statat},
    io::{Errno, read},
};

/// The work for each folder.
#[derive(Clone, Copy)]
pub(crate) enum Floor {
    /// Opens its `SKILL.md` and reads the first 4 KiB.
    Probe,
    /// Also opens the folder and lists it.
    Walk,
    /// Only reads the size of its `SKILL.md`.
    Stat,
    /// Reads the size of the folder, too: the least that detects a change.
    Stats,
    /// Reads as `Probe` does and keeps the text of the frontmatter.
    Text,
}

/// The `SKILL.md` files that were found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) files: usize,
    pub(crate) texts: Vec<Box<[u8]>>,
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);
/// The number of folders that a thread takes at once.
const CHUNK: usize = 64;

impl Floor {
    pub(crate) fn run(self, root: &Path, threads: usize) -> Result<Found> {
        let root = open(root, FLAGS | OFlags::DIRECTORY, Mode::empty())?;
        let folders = folders(&root)?;
        let next = AtomicUsize::new(0);
        let work = || -> Result<Found, Errno> {
            let mut found = Found::default();
            loop {
                let start = next.fetch_add(CHUNK, Ordering::Relaxed);
                let Some(rest) = folders.get(start..) else { return Ok(found) };
                for folder in rest.iter().take(CHUNK) {
                    self.visit(&root, folder, &mut found)?;
                }
            }
        };
        let all: Result<Vec<Found>, Errno> = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let joined = others.into_iter().map(|it| it.join().expect("a floor never panics"));
            std::iter::once(work()).chain(joined).collect()
        });
        let mut sum = Found::default();
        for mut found in all? {
            sum.files += found.files;
            sum.texts.append(&mut found.texts);
        }
        Ok(sum)
    }

    fn visit(self, root: &OwnedFd, folder: &[u8], found: &mut Found) -> Result<(), Errno> {
        let mut path = [0; 512];
        let length = folder.len() + DOCUMENT.len();
        let path = path.get_mut(..length).ok_or(Errno::NAMETOOLONG)?;
        path[..folder.len()].copy_from_slice(folder);
        path[folder.len()..].copy_from_slice(DOCUMENT);
        match self {
            Self::Stat => {
                statat(root, &*path, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Self::Stats => {
                statat(root, folder, AtFlags::SYMLINK_NOFOLLOW)?;
                statat(root, &*path, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Self::Probe => {
                head(root, path, |_| {})?;
            }
            Self::Walk => {
                let directory = openat(root, folder, FLAGS | OFlags::DIRECTORY, Mode::empty())?;
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let mut entries = RawDir::new(&directory, &mut buffer);
                while let Some(entry) = entries.next() {
                    entry?;
                }
                head(&directory, &DOCUMENT[1..], |_| {})?;
            }
            Self::Text => head(root, path, |bytes| {
                found.texts.extend(frontmatter(bytes).map(Into::into));
            })?,
        }
        found.files += 1;
        Ok(())
    }
}

const DOCUMENT: &[u8] = b"/SKILL.md";

/// Returns the names of the folders in a folder.
fn folders(root: &OwnedFd) -> Result<Vec<Box<[u8]>>, Errno> {
    let mut names = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 32 * 1024];
    let mut entries = RawDir::new(root, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.into());
        }
    }
    Ok(names)
}

fn head(directory: &OwnedFd, path: &[u8], keep: impl FnOnce(&[u8])) -> Result<(), Errno> {
    let file = openat(directory, path, FLAGS, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let (bytes, _) = read(&file, &mut buffer)?;
    keep(bytes);
    Ok(())
}

/// Returns the text between the delimiters; `None` if they are in any way unusual.
fn frontmatter(bytes: &[u8]) -> Option<&[u8]> {
    let inside = bytes.strip_prefix(b"---\n").or_else(|| bytes.strip_prefix(b"---\r\n"))?;
    let mut start = 0;
    for line in inside.split_inclusive(|it| *it == b'\n') {
        if line.trim_ascii_end() == b"---" {
            return Some(&inside[..start]);
        }
        start += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_delimiters_is_kept() {
        let kept = |text: &'static str| frontmatter(text.as_bytes());
        assert_eq!(kept("---\na: 1\n---\nbody\n---\n"), Some(&b"a: 1\n"[..]));
        assert_eq!(kept("---\r\na: ---\r\n---\r\n"), Some(&b"a: ---\r\n"[..]));
        assert_eq!(kept("---\na: 1\n"), None);
        assert_eq!(kept("# Title\n---\n"), None);
    }

    #[test]
    fn every_floor_sees_every_skill_with_any_number_of_threads() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..200 {
            let folder = root.path().join(number.to_string());
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("SKILL.md"), "---\na: 1\n---\n").unwrap();
        }
        for floor in [Floor::Probe, Floor::Walk, Floor::Stat, Floor::Stats, Floor::Text] {
            for threads in [1, 2, 16] {
                assert_eq!(floor.run(root.path(), threads).unwrap().files, 200);
            }
        }
        assert_eq!(Floor::Text.run(root.path(), 2).unwrap().texts.len(), 200);
    }
}
