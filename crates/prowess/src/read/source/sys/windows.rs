//! Files and folders of Windows.
//!
//! There is no way to open a file by a name in an open folder, so a path is walked step by step:
//! each folder on it is opened without following a link or junction, and kept open so that it
//! cannot be renamed or removed before the next step.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::windows::fs::OpenOptionsExt as _,
    path::{Component, Path, PathBuf, Prefix},
    time::{Duration, SystemTime},
};

use winapi_util::file::{Information, information};

use super::{Kind, Mark, State};

const FILE_READ_DATA: u32 = 0x1;
const FILE_READ_ATTRIBUTES: u32 = 0x80;
const SYNCHRONIZE: u32 = 0x10_0000;
const GENERIC_READ: u32 = 0x8000_0000;
const FILE_SHARE_READ: u32 = 0x1;
const FILE_SHARE_WRITE: u32 = 0x2;
const FILE_SHARE_DELETE: u32 = 0x4;
const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x200_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x20_0000;
/// Folders too, and what a path names rather than what it leads to.
const ITSELF: u32 = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;
const FILE_ATTRIBUTE_DIRECTORY: u64 = 0x10;
const FILE_ATTRIBUTE_REPARSE_POINT: u64 = 0x400;
const ERROR_CANT_RESOLVE_FILENAME: i32 = 1921;
/// The years from 1601, when the clock of Windows begins, to 1970, in seconds.
const EPOCH: i64 = 11_644_473_600;
/// The ticks of that clock in a second.
const TICKS: u64 = 10_000_000;

/// An open folder. It keeps its place, with all folders on the path to it, as long as it is open.
#[derive(Debug)]
pub(crate) struct FolderHandle {
    path: PathBuf,
    own: File,
    _above: Vec<File>,
}

/// A folder for long use. It is opened for each use and closed again, so that people can rename it
/// meanwhile; another folder in its place is an error.
#[derive(Debug)]
pub(crate) struct BaseFolder {
    path: PathBuf,
    mark: Mark,
}

impl BaseFolder {
    /// Remembers a folder by a path without links.
    pub(crate) fn open(real: &Path) -> io::Result<Self> {
        let mark = FolderHandle::open(real)?.state()?.mark;
        Ok(Self { path: real.to_owned(), mark })
    }

    fn enter(&self) -> io::Result<FolderHandle> {
        let own = open_folder(&self.path)?;
        let folder = FolderHandle { path: self.path.clone(), own, _above: Vec::new() };
        let mark = folder.state()?.mark;
        let is_same = (mark.device, mark.inode) == (self.mark.device, self.mark.inode);
        if is_same { Ok(folder) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Opens a folder by its path below this one, following no link at all.
    pub(crate) fn folder_beneath(&self, path: &Path) -> io::Result<FolderHandle> {
        self.enter()?.walk(path)
    }

    /// Opens a file by its path below this folder, following no link at all.
    pub(crate) fn file_beneath(&self, path: &Path) -> io::Result<File> {
        let folder = self.enter()?.walk(path.parent().unwrap_or(Path::new("")))?;
        folder.file_named(path.file_name().ok_or(io::ErrorKind::NotFound)?)
    }

    /// Returns the state of the folder itself.
    pub(crate) fn state(&self) -> io::Result<State> {
        self.enter()?.state()
    }

    /// Returns the state of what has this path below the folder; a link itself, not its target.
    pub(crate) fn state_of(&self, path: &str) -> io::Result<State> {
        self.enter()?.state_of(path)
    }
}

impl FolderHandle {
    /// Opens a folder by a path without links; a link that has appeared since is an error.
    pub(crate) fn open(real: &Path) -> io::Result<Self> {
        let mut parts = real.components();
        let root = parts.by_ref().take_while(|it| !matches!(it, Component::RootDir));
        let mut path: PathBuf = root.collect();
        path.push(Component::RootDir);
        // The root of a drive cannot be renamed.
        let own = open_attributes(&path)?;
        Self { path, own, _above: Vec::new() }.walk(parts.as_path())
    }

    fn walk(mut self, path: &Path) -> io::Result<Self> {
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => {
                    self.path.push(plain_name(name)?);
                    let below = open_folder(&self.path)?;
                    self._above.push(std::mem::replace(&mut self.own, below));
                }
                _ => return Err(io::ErrorKind::NotFound.into()),
            }
        }
        Ok(self)
    }

    /// Opens a folder by its name in this one, which must stay open; a link of that name is an
    /// error.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        let path = self.path.join(plain_name(OsStr::new(name))?);
        Ok(Self { own: open_folder(&path)?, path, _above: Vec::new() })
    }

    /// Opens a file by its name in this folder; a link of that name is an error.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        self.file_named(OsStr::new(name))
    }

    fn file_named(&self, name: &OsStr) -> io::Result<File> {
        let path = self.path.join(plain_name(name)?);
        let file = open_no_link(&path)?;
        let attributes = information(&file)?.file_attributes();
        let is_special = attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0;
        if is_special && attributes & FILE_ATTRIBUTE_DIRECTORY == 0 {
            // Content that the system keeps elsewhere, such as of a cloud drive; not a link.
            let content = open(&path, GENERIC_READ, SHARE_ALL, 0)?;
            let id =
                |it: &File| information(it).map(|it| (it.volume_serial_number(), it.file_index()));
            let is_same = id(&content)? == id(&file)?;
            return if is_same { Ok(content) } else { Err(io::ErrorKind::NotFound.into()) };
        }
        Ok(file)
    }

    /// Returns the state of the folder itself.
    pub(crate) fn state(&self) -> io::Result<State> {
        file_state(&self.own)
    }

    /// Returns the state of what has this path below the folder; a link itself, not its target.
    pub(crate) fn state_of(&self, path: &str) -> io::Result<State> {
        link_state(&self.path.join(path))
    }

    /// Calls `take` with the name and the kind of each entry.
    pub(crate) fn for_each_entry(&self, mut take: impl FnMut(&OsStr, Kind)) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            take(&entry.file_name(), kind_from(entry.file_type()?));
        }
        Ok(())
    }
}

/// Opens a file by a path without links; a link that has appeared since is an error.
pub(crate) fn open_file(real: &Path) -> io::Result<File> {
    let folder = FolderHandle::open(real.parent().ok_or(io::ErrorKind::NotFound)?)?;
    folder.file_named(real.file_name().ok_or(io::ErrorKind::NotFound)?)
}

/// Opens a file by a path that has not been resolved, if the system can tell that it contains no
/// link. Windows cannot, and a file has several names.
pub(crate) fn open_unresolved(_: &Path) -> Option<File> {
    None
}

/// Returns the state of an open file.
pub(crate) fn file_state(file: &File) -> io::Result<State> {
    let information = information(file)?;
    let (created, modified) = (information.creation_time(), information.last_write_time());
    let [changed, modified] = [created, modified].map(|it| since_1970(it.unwrap_or_default()));
    Ok(State {
        kind: kind_of(file, &information)?,
        size: information.file_size(),
        modified: u64::try_from(modified.0)
            .ok()
            .and_then(|it| SystemTime::UNIX_EPOCH.checked_add(Duration::new(it, modified.1))),
        mark: Mark {
            device: information.volume_serial_number(),
            inode: information.file_index(),
            size: information.file_size(),
            modified,
            changed,
        },
    })
}

/// Returns the state of what has this path; of the target if it is a link.
pub(crate) fn state(path: &Path) -> io::Result<State> {
    let flags = FILE_FLAG_BACKUP_SEMANTICS;
    file_state(&open(path, FILE_READ_ATTRIBUTES, SHARE_ALL, flags)?)
}

/// Returns the state of what has this path; a link itself, not its target.
pub(crate) fn link_state(path: &Path) -> io::Result<State> {
    file_state(&open_attributes(path)?)
}

/// Reads into the free capacity of a buffer, until it is full or the file ends.
pub(crate) fn fill(file: &File, bytes: &mut Vec<u8>) -> io::Result<()> {
    let free = bytes.capacity() - bytes.len();
    file.take(free as u64).read_to_end(bytes)?;
    Ok(())
}

/// Opens a file by its path; a link in its place is an error.
pub(crate) fn open_no_link(path: &Path) -> io::Result<File> {
    not_a_link(open(path, GENERIC_READ, SHARE_ALL, ITSELF)?)
}

/// Creates a file. Only those who can read its folder can read it.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Creates a folder, and those above it. Below the user's own folders only this user can enter it.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Whether an error says that there is a link where none may be, or a circle of links.
pub(crate) fn is_link_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_CANT_RESOLVE_FILENAME)
}

/// Whether an error says that something cannot be opened at all, such as a socket.
pub(crate) fn is_unopenable(_: &io::Error) -> bool {
    false
}

/// Whether a name is a certain one to the file system.
pub(crate) fn is_name(name: &OsStr, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted)
}

/// Whether a folder is on another machine, whose changes may cause no event.
pub(crate) fn is_shared(real: &Path) -> bool {
    let Some(Component::Prefix(prefix)) = real.components().next() else { return false };
    matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..))
}

/// Returns a path as people write it: without the `\\?\` of resolved paths, so that equal paths are
/// written alike.
pub(crate) fn plain_path(path: PathBuf) -> PathBuf {
    let mut parts = path.components();
    let start = match parts.next() {
        Some(Component::Prefix(prefix)) => match prefix.kind() {
            Prefix::VerbatimDisk(letter) => format!("{}:", char::from(letter)),
            Prefix::VerbatimUNC(server, share) => {
                format!(r"\\{}\{}", server.to_string_lossy(), share.to_string_lossy())
            }
            _ => return path,
        },
        _ => return path,
    };
    let mut plain = OsString::from(start);
    plain.push(parts.as_path());
    plain.into()
}

/// Returns the bytes of a path.
pub(crate) fn path_bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Returns the path with these bytes; `None` if it is not valid Unicode.
pub(crate) fn path_from(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Opens a folder that then cannot be renamed or removed.
fn open_folder(path: &Path) -> io::Result<File> {
    let access = FILE_READ_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE;
    let folder = match open(path, access, FILE_SHARE_READ | FILE_SHARE_WRITE, ITSELF) {
        // Nobody keeps skills in a folder that they may pass through but not list.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open_attributes(path),
        opened => opened,
    };
    let folder = not_a_link(folder?)?;
    match information(&folder)?.file_attributes() & FILE_ATTRIBUTE_DIRECTORY {
        0 => Err(io::ErrorKind::NotADirectory.into()),
        _ => Ok(folder),
    }
}

/// Opens whatever has this path to learn its state, which nobody notices.
fn open_attributes(path: &Path) -> io::Result<File> {
    open(path, FILE_READ_ATTRIBUTES, SHARE_ALL, ITSELF)
}

fn open(path: &Path, access: u32, share: u32, flags: u32) -> io::Result<File> {
    OpenOptions::new().access_mode(access).share_mode(share).custom_flags(flags).open(path)
}

fn not_a_link(file: File) -> io::Result<File> {
    match kind_of(&file, &information(&file)?)? {
        Kind::Link => Err(io::Error::from_raw_os_error(ERROR_CANT_RESOLVE_FILENAME)),
        _ => Ok(file),
    }
}

/// Refuses names with another meaning: `file:stream` is a second content of a file.
fn plain_name(name: &OsStr) -> io::Result<&OsStr> {
    let is_plain = !name.as_encoded_bytes().iter().any(|it| matches!(it, b':' | b'/' | b'\\'));
    if is_plain { Ok(name) } else { Err(io::ErrorKind::NotFound.into()) }
}

fn kind_of(file: &File, information: &Information) -> io::Result<Kind> {
    let attributes = information.file_attributes();
    if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        return Ok(kind_from(file.metadata()?.file_type()));
    }
    let is_folder = attributes & FILE_ATTRIBUTE_DIRECTORY != 0;
    Ok(if is_folder { Kind::Folder } else { Kind::File })
}

/// Junctions count as links.
fn kind_from(kind: fs::FileType) -> Kind {
    match kind {
        it if it.is_symlink() => Kind::Link,
        it if it.is_dir() => Kind::Folder,
        it if it.is_file() => Kind::File,
        _ => Kind::Other,
    }
}

/// Converts a time of Windows to seconds since 1970, and nanoseconds.
fn since_1970(ticks: u64) -> (i64, u32) {
    let seconds = (ticks / TICKS).cast_signed() - EPOCH;
    (seconds, u32::try_from(ticks % TICKS * 100).unwrap_or_default())
}
