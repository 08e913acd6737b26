//! Changes to the disk, one step at a time, so that tests can fail at each of them.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::sys::{self, OpenDirectory};

/// A step that changes the disk, or syncs it.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallStep {
    Create,
    Write,
    Sync,
    Rename,
    SyncDirectory,
    Remove,
}

/// A hook before every step; a test fails there.
type StepHook = dyn Fn(InstallStep) -> io::Result<()> + Send + Sync;

/// The disk, with an optional hook before every step.
#[derive(Default)]
pub(super) struct Disk(pub(super) Option<Box<StepHook>>);

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

/// What is behind a name of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryKind {
    Folder,
    File,
    Link(PathBuf),
    /// A pipe, a socket or a device.
    Other,
}

/// An open directory, and the path without links by which it was opened.
#[derive(Debug)]
pub(super) struct Directory {
    open: OpenDirectory,
    path: PathBuf,
}

impl Disk {
    pub(super) fn before(&self, step: InstallStep) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |ask| ask(step))
    }

    /// Creates a file that must not exist, and syncs it.
    pub(super) fn create_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.before(InstallStep::Create)?;
        let mut file = sys::private_file().write(true).create_new(true).open(path)?;
        self.before(InstallStep::Write)?;
        file.write_all(bytes)?;
        self.before(InstallStep::Sync)?;
        file.sync_all()
    }

    /// Creates a file that must not exist, to be synced later.
    pub(super) fn create_unsynced(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.before(InstallStep::Create)?;
        sys::private_file().write(true).create_new(true).open(path)?.write_all(bytes)
    }

    pub(super) fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.before(InstallStep::SyncDirectory)?;
        sys::private_file().write(true).open(path)?.sync_all()
    }

    /// Syncs everything on the file system of a directory; `false` if that is not possible.
    pub(super) fn sync_file_system(&self, directory: &Path) -> io::Result<bool> {
        self.before(InstallStep::SyncDirectory)?;
        crate::sys::sync_file_system(directory)
    }

    /// Creates a file that must not exist, and syncs it. Others may read it as far as the system's
    /// default says, or it has these permissions.
    pub(super) fn create_public_file(
        &self,
        path: &Path,
        bytes: &[u8],
        permissions: Option<fs::Permissions>,
    ) -> io::Result<()> {
        self.before(InstallStep::Create)?;
        let mut file = File::options().write(true).create_new(true).open(path)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        self.before(InstallStep::Write)?;
        file.write_all(bytes)?;
        self.before(InstallStep::Sync)?;
        file.sync_all()
    }

    /// Writes a file of the state directory whole: a draft, then a rename.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let draft = path.with_extension("draft");
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.create_file(&draft, bytes)?;
        self.rename(&draft, path)
    }

    /// Renames a file or folder of the state directory.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before(InstallStep::Rename)?;
        fs::rename(from, to)?;
        self.sync_parent(to)
    }

    pub(super) fn sync_parent(&self, path: &Path) -> io::Result<()> {
        self.before(InstallStep::SyncDirectory)?;
        path.parent().map_or(Ok(()), sys::sync_directory)
    }

    pub(super) fn create_private_directory(&self, path: &Path) -> io::Result<()> {
        self.before(InstallStep::Create)?;
        sys::create_private_directory(path)
    }

    /// Removes a folder that is ours with all its contents, or a file or link. It may be gone.
    pub(super) fn remove_all(&self, path: &Path) -> io::Result<()> {
        self.before(InstallStep::Remove)?;
        let kind = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            metadata => metadata?.file_type(),
        };
        if !kind.is_dir() {
            return fs::remove_file(path);
        }
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                open_up(path, 0);
                fs::remove_dir_all(path)
            }
            removed => removed,
        }
    }

    /// Copies a file, a link or a folder with all its contents to a path that does not exist, and
    /// syncs it.
    pub(super) fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before(InstallStep::Create)?;
        copy(from, to, 0)
    }

    /// Copies a file of the cache, so that the user can write the copy.
    pub(super) fn copy_writable(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before(InstallStep::Create)?;
        let mut source = sys::open_file(from)?;
        let executable = sys::is_executable(&source.metadata()?).unwrap_or(false);
        let mut target = File::options().write(true).create_new(true).open(to)?;
        io::copy(&mut source, &mut target)?;
        target.sync_all()?;
        if executable { sys::set_executable(to) } else { Ok(()) }
    }

    /// Moves something to a path that does not exist, even on another disk. The directories of both
    /// are not synced.
    pub(super) fn move_across(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before(InstallStep::Rename)?;
        let moved = match fs::rename(from, to) {
            // A folder that may not be written cannot change its parent.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                sys::open_up(from);
                fs::rename(from, to)
            }
            moved => moved,
        };
        match moved {
            Err(error) if sys::is_other_device(&error) => {
                let part = to.with_extension("part");
                self.remove_all(&part)?;
                self.copy(from, &part)?;
                self.rename(&part, to)?;
                self.remove_all(from)
            }
            moved => moved,
        }
    }

    /// Opens a directory by a path without links.
    pub(super) fn open(&self, path: &Path) -> io::Result<Directory> {
        Ok(Directory { open: OpenDirectory::open(path)?, path: path.to_owned() })
    }

    /// Opens a directory by a path without links, and creates what is missing of it.
    pub(super) fn open_or_create(&self, path: &Path) -> io::Result<Directory> {
        match self.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let parent = self.open_or_create(parent)?;
        self.before(InstallStep::Create)?;
        match parent.open.create_directory(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        self.sync(&parent)?;
        self.open(path)
    }

    pub(super) fn sync(&self, directory: &Directory) -> io::Result<()> {
        self.before(InstallStep::SyncDirectory)?;
        directory.open.sync()
    }
}

/// Changes of names in a directory. None of them follows a link, and none is synced.
impl Directory {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn kind(&self, name: &str) -> io::Result<Option<EntryKind>> {
        self.open.kind(OsStr::new(name))
    }

    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        self.open.names()
    }

    /// Fails if its path leads elsewhere by now.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.open.is_at(&self.path) {
            Ok(true) => Ok(()),
            _ => Err(io::Error::other("the directory was replaced while it was used")),
        }
    }

    pub(super) fn create_link(&self, disk: &Disk, target: &Path, name: &str) -> io::Result<()> {
        disk.before(InstallStep::Create)?;
        self.open.create_link(target, OsStr::new(name))
    }

    /// Renames something to a name that is not taken.
    pub(super) fn rename(&self, disk: &Disk, old: &str, new: &str) -> io::Result<()> {
        disk.before(InstallStep::Rename)?;
        self.open.rename(OsStr::new(old), OsStr::new(new))
    }

    /// Renames a file, in place of another if there is one.
    pub(super) fn replace(&self, disk: &Disk, old: &str, new: &str) -> io::Result<()> {
        disk.before(InstallStep::Rename)?;
        self.open.replace(OsStr::new(old), OsStr::new(new))
    }

    /// Puts a draft in place of a file. Where the system can exchange them, the draft's name then
    /// has what was there.
    pub(super) fn exchange(&self, disk: &Disk, draft: &str, name: &str) -> io::Result<bool> {
        disk.before(InstallStep::Rename)?;
        let (draft, name) = (OsStr::new(draft), OsStr::new(name));
        if self.open.exchange(draft, name)? {
            return Ok(true);
        }
        self.open.replace(draft, name).map(|()| false)
    }

    pub(super) fn remove_file(&self, disk: &Disk, name: &str) -> io::Result<()> {
        disk.before(InstallStep::Remove)?;
        self.open.remove_file(OsStr::new(name))
    }

    /// Removes a folder if it is empty.
    pub(super) fn remove_directory(&self, disk: &Disk, name: &OsStr) -> io::Result<()> {
        disk.before(InstallStep::Remove)?;
        self.open.remove_directory(name)
    }
}

/// The folders above a file that are handled; more are not ours.
const MAX_DEPTH: usize = 64;

fn open_up(folder: &Path, depth: usize) {
    sys::open_up(folder);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if depth < MAX_DEPTH && entry.file_type().is_ok_and(|it| it.is_dir()) {
            open_up(&entry.path(), depth + 1);
        }
    }
}

fn copy(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_symlink() {
        return sys::create_link(&fs::read_link(from)?, to);
    }
    if metadata.is_file() {
        let (mut source, mut target) =
            (sys::open_file(from)?, File::options().write(true).create_new(true).open(to)?);
        io::copy(&mut source, &mut target)?;
        target.set_permissions(metadata.permissions())?;
        return target.sync_all();
    }
    if !metadata.is_dir() || depth > MAX_DEPTH {
        return Err(io::Error::other("it contains something other than files, folders and links"));
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()), depth + 1)?;
    }
    fs::set_permissions(to, metadata.permissions())?;
    sys::sync_directory(to)
}
