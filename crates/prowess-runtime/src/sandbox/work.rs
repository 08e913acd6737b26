//! The private directory of one run.

use std::{
    env,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    },
    path::{Component, Path, PathBuf},
};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use crate::root::{Links, Root, RootError};

/// The private directory of one run: where a script works, what it is given, and what it leaves.
/// All of it is gone when this is dropped.
#[derive(Debug)]
pub struct Work {
    base: PathBuf,
    path: PathBuf,
    /// Open for as long as this lives: when it closes, even because we were killed, the supervisor
    /// of the run removes whatever is left.
    pub(super) supervisor: Option<OwnedFd>,
}

impl Work {
    /// Makes a directory where temporary files belong: in `TMPDIR` if it can be used, else in `/tmp`
    /// or `/var/tmp`.
    pub fn new() -> io::Result<Self> {
        let places = [env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for place in places {
            match Self::within(&place) {
                Ok(work) => return Ok(work),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Makes a directory in this one.
    pub fn within(directory: &Path) -> io::Result<Self> {
        let directory = fs::canonicalize(directory)?;
        let mut builder = tempfile::Builder::new();
        let permissions = fs::Permissions::from_mode(0o700);
        let base = builder.prefix("prowess-").permissions(permissions).tempdir_in(directory)?;
        let base = base.keep();
        let work = Self { path: base.join(WORK), base, supervisor: None };
        for name in [WORK, GIVEN, TEMPORARY, ROOT] {
            DirBuilder::new().mode(0o700).create(work.base.join(name))?;
        }
        Ok(work)
    }

    /// Where the script works: its home and, unless the job says otherwise, its working directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a file where the script can read and run it, but not change it; returns where it lies.
    /// Its name may have folders in it.
    pub fn give(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.given(name);
        let mut parts = Path::new(name).components();
        let (true, Some(folder)) =
            (parts.all(|it| matches!(it, Component::Normal(_))), path.parent())
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o500).open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }

    /// Where a file or folder lies that is given under this name.
    pub fn given(&self, name: &str) -> PathBuf {
        self.base.join(GIVEN).join(name)
    }

    /// The files that lie here, sorted by path. No link is followed, and none is listed.
    pub fn files(&self) -> Result<Vec<String>, RootError> {
        let root = Root::open(&self.path)?;
        let mut files = Vec::new();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            // One that the script has locked is its own secret.
            for listed in root.list(&folder, Links::Never).unwrap_or_default() {
                let path = folder.join(&listed.name);
                match listed.kind {
                    FileType::Directory => folders.push(path),
                    FileType::RegularFile => files.push(path.to_string_lossy().into_owned()),
                    _ => {}
                }
            }
        }
        files.sort();
        Ok(files)
    }

    /// Reads a file that the script left, up to so many bytes. A link is refused.
    pub fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, RootError> {
        let failed = |source| RootError::Io { path: path.into(), source };
        let file = Root::open(&self.path)?.file(Path::new(path), Links::Never)?;
        let mut bytes = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > most {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        Ok(bytes)
    }

    /// Copies the files that the script left into a directory, under their own paths; returns these.
    /// Takes no more than so many bytes, counted as they are read: a file with holes may be larger
    /// than what it took to make.
    pub fn collect(&self, into: &Root, most: u64) -> Result<Vec<String>, RootError> {
        let files = self.files()?;
        let mut left = most;
        for path in &files {
            let bytes = self.read(path, left)?;
            left -= bytes.len() as u64;
            into.write(Path::new(path), &bytes)?;
        }
        Ok(files)
    }

    pub(super) fn base(&self) -> &Path {
        &self.base
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = remove(&self.base);
    }
}

/// What lies in the base of a work directory: what the script works in, what it is given, its
/// temporary files, and where its root is mounted.
pub(super) const WORK: &str = "work";
pub(super) const GIVEN: &str = "given";
pub(super) const TEMPORARY: &str = "tmp";
pub(super) const ROOT: &str = "root";

/// Removes a directory with all that is in it, however deep and however locked. What is below is
/// moved up and removed there, so that no path gets long; no link is followed.
pub(super) fn remove(base: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = rustix::fs::open(base, flags, Mode::empty())?;
    let mut next = 0_u64;
    loop {
        let mut folders = clear(&top, &top, &mut next)?;
        if folders.is_empty() {
            break;
        }
        while let Some(name) = folders.pop() {
            let _ = rustix::fs::chmodat(&top, &name, Mode::RWXU, AtFlags::empty());
            let folder = rustix::fs::openat(&top, &name, flags, Mode::empty())?;
            clear(&folder, &top, &mut next)?;
            rustix::fs::unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
        }
    }
    fs::remove_dir(base)
}

/// Removes the files of a folder. Folders of the top are returned, others become such.
fn clear(folder: &OwnedFd, top: &OwnedFd, next: &mut u64) -> io::Result<Vec<Vec<u8>>> {
    let is_top = std::ptr::eq(folder, top);
    let mut folders = Vec::new();
    for entry in Dir::read_from(folder.as_fd())? {
        let name = entry?.file_name().to_owned();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            rustix::fs::unlinkat(folder, &name, AtFlags::empty())?;
        } else if is_top {
            folders.push(name.into_bytes());
        } else {
            // A folder that is moved is written to: its `..` changes.
            let _ = rustix::fs::chmodat(folder, &name, Mode::RWXU, AtFlags::empty());
            loop {
                *next += 1;
                let up = format!("{next}");
                match rustix::fs::renameat(folder, &name, top, &up) {
                    Err(rustix::io::Errno::EXIST | rustix::io::Errno::NOTEMPTY) => {}
                    moved => break moved?,
                }
            }
        }
    }
    Ok(folders)
}
