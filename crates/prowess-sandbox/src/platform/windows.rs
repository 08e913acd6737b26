//! Windows: directories are opened with `cap-std`, name by name, and no link is followed. An open
//! directory cannot be moved or removed.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    io,
    path::{Component, Path, PathBuf, Prefix},
};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};
use tempfile::TempDir;

use crate::file_type::FileType;

/// The stream to a program that the caller interacts with.
pub type ProgramStream = tokio::io::DuplexStream;

/// The error of a link where none is followed.
const STOPPED_ON_LINK: i32 = 681;

/// Whether a path was not opened because a link on it may lead outside.
pub(crate) fn leads_outside(error: &io::Error) -> bool {
    error.raw_os_error() == Some(STOPPED_ON_LINK)
}

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    open: Dir,
    /// Its path, without links.
    path: PathBuf,
}

impl Directory {
    /// Opens a directory of the host: links on its path are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        Ok(Self { open: Dir::open_ambient_dir(&path, ambient_authority())?, path })
    }

    /// Opens a file beneath it. A path with a link is refused.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        let (parent, name) = self.open_parent(path)?;
        match parent.open.open_with(name, OpenOptions::new().read(true).follow(FollowSymlinks::No))
        {
            Ok(file) => Ok(file.into_std()),
            // Directories cannot be opened like this.
            Err(error) => match parent.inspect(name) {
                Ok((FileType::Symlink, _)) => Err(io::Error::from_raw_os_error(STOPPED_ON_LINK)),
                Ok((FileType::Directory, _)) => Err(io::ErrorKind::IsADirectory.into()),
                _ => Err(error),
            },
        }
    }

    /// Opens a directory beneath it. A path with a link is refused.
    pub(crate) fn open_directory(&self, path: &Path) -> io::Result<Self> {
        let mut directory = Self { open: self.open.try_clone()?, path: self.path.clone() };
        for name in path.components().filter(|it| *it != Component::CurDir) {
            let open = match directory.open.open_dir_nofollow(name) {
                Ok(open) => open,
                Err(error) => match directory.inspect(name.as_os_str()) {
                    Ok((FileType::Symlink, _)) => {
                        return Err(io::Error::from_raw_os_error(STOPPED_ON_LINK));
                    }
                    Ok((FileType::RegularFile, _)) => {
                        return Err(io::ErrorKind::NotADirectory.into());
                    }
                    _ => return Err(error),
                },
            };
            directory = Self { open, path: directory.path.join(name) };
        }
        Ok(directory)
    }

    fn open_parent<'p>(&self, path: &'p Path) -> io::Result<(Self, &'p OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        Ok((self.open_directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Opens the file that is locked by whoever writes in it.
    pub(crate) fn open_lock(&self) -> io::Result<File> {
        open_folder_lock(&self.path)
    }

    /// Returns the target of a link; `None` if there is something else.
    pub(crate) fn read_link(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let (parent, name) = self.open_parent(path)?;
        match parent.inspect(name)? {
            (FileType::Symlink, _) => parent.open.read_link_contents(name).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the names in it, in no order.
    pub(crate) fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
        Ok(self.open.entries()?.map(|entry| Ok(entry?.file_name())))
    }

    /// Returns the type and the size of a file in it; a link is not followed.
    pub(crate) fn inspect(&self, name: &OsStr) -> io::Result<(FileType, u64)> {
        let metadata = self.open.symlink_metadata(name)?;
        let kind = match metadata.file_type() {
            it if it.is_symlink() => FileType::Symlink,
            it if it.is_dir() => FileType::Directory,
            it if it.is_file() => FileType::RegularFile,
            _ => FileType::Unknown,
        };
        Ok((kind, metadata.len()))
    }

    /// Whether this user may write a file in it.
    pub(crate) fn is_writable(&self, name: &OsStr) -> bool {
        let mut options = OpenOptions::new();
        self.open.open_with(name, options.write(true).follow(FollowSymlinks::No)).is_ok()
    }

    /// Creates a directory in it.
    pub(crate) fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        self.open.create_dir(name)
    }

    /// Creates a file in it, which must not exist yet.
    pub(crate) fn create_file(&self, name: &OsStr, _executable: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        Ok(self.open.open_with(name, &options)?.into_std())
    }

    /// Gives a file the attributes of the one of this name. Its permissions are those of the
    /// directory anyway.
    pub(crate) fn copy_attributes(&self, name: &OsStr, _: &File) -> io::Result<()> {
        self.inspect(name).map(drop)
    }

    /// Moves a file, in place of another if there is one.
    pub(crate) fn rename(&self, old: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        self.open.rename(old, &to.open, new)
    }

    /// Moves something to a name that is not taken; our other writers hold a lock.
    pub(crate) fn rename_noreplace(&self, old: &OsStr, to: &Self, new: &OsStr) -> io::Result<()> {
        match to.inspect(new) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.rename(old, to, new),
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) => Err(error),
        }
    }

    /// Removes a file or a link.
    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        match self.inspect(name)? {
            (FileType::Directory, _) => Err(io::ErrorKind::IsADirectory.into()),
            _ => self.open.remove_file_or_symlink(name),
        }
    }

    /// Removes an empty directory.
    pub(crate) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        match self.inspect(name)? {
            (FileType::Directory, _) => self.open.remove_dir(name),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Does nothing: Windows keeps the names in a directory in order by its own journal.
    #[expect(clippy::unused_self, reason = "other systems need it")]
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a path without the prefix `\\\\?\\` that resolved paths have.
pub(crate) fn plain_path(path: PathBuf) -> PathBuf {
    let mut parts = path.components();
    let Some(Component::Prefix(prefix)) = parts.next() else { return path };
    let mut plain = match prefix.kind() {
        Prefix::VerbatimDisk(letter) => OsString::from(format!("{}:", char::from(letter))),
        Prefix::VerbatimUNC(server, share) => {
            let start = [OsStr::new(r"\\"), server, OsStr::new(r"\"), share];
            start.iter().copied().collect()
        }
        _ => return path,
    };
    plain.push(parts.as_path());
    plain.into()
}

/// Whether a name means a file of that name: not a device, not a stream of another file, and not
/// the name of another file for some programs, such as `GIT~1` for `.git`.
pub(crate) fn is_plain_name(name: &OsStr) -> bool {
    let Some(text) = name.to_str() else { return false };
    let start = text.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_numbered = |it: &str| {
        let mut rest = it.chars();
        matches!(rest.next(), Some('0'..='9' | '¹' | '²' | '³')) && rest.next().is_none()
    };
    let is_device = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&&*start)
        || ["COM", "LPT"].iter().any(|it| start.strip_prefix(it).is_some_and(is_numbered));
    let (stem, end) = text.split_once('.').unwrap_or((text, ""));
    let is_short = stem.len() <= 8
        && end.len() <= 3
        && stem
            .rsplit_once('~')
            .is_some_and(|it| !it.1.is_empty() && it.1.bytes().all(|it| it.is_ascii_digit()));
    !is_device
        && !is_short
        && !text.ends_with(['.', ' '])
        && !text.contains(|it: char| it.is_ascii_control() || r#"<>:"/\|?*"#.contains(it))
}

/// Creates a directory with a new name. The folder for temporary files is this user's own.
pub(crate) fn create_temporary(prefix: &str, within: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(prefix).tempdir_in(within)
}

/// Creates a directory, with its parents.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Creates a file.
pub(crate) fn create_private_script(path: &Path) -> io::Result<File> {
    File::create_new(path)
}

/// Opens the file that is locked by whoever uses a folder. A folder cannot be locked itself, so there
/// is one for it among the temporary files of this user.
pub(crate) fn open_folder_lock(path: &Path) -> io::Result<File> {
    let path = fs::canonicalize(path)?;
    let locks = env::temp_dir().join("prowess-locks");
    fs::create_dir_all(&locks)?;
    let lock = locks.join(format!("{:016x}", hash(path.as_os_str().as_encoded_bytes())));
    File::options().read(true).write(true).create(true).truncate(false).open(lock)
}

/// Returns a number for bytes, the same in every version: FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Whether a file belongs to this user, as those in its folder for temporary files do.
pub(crate) fn is_own(_: &Metadata) -> bool {
    true
}

/// Removes a directory with everything in it; no link is followed. Concurrent removal is not an
/// error.
pub fn remove_folder(base: &Path) -> io::Result<()> {
    match fs::remove_dir_all(base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns the size of a directory, with a minimum for each of its entries. Stops when it is more
/// than `most`; anything that cannot be read counts as too much.
pub fn folder_size(path: &Path, most: u64) -> u64 {
    const TOO_MUCH: u64 = u64::MAX / 4;
    const ENTRY: u64 = 4096;
    let (mut total, mut folders) = (0_u64, vec![path.to_owned()]);
    while let Some(folder) = folders.pop()
        && total <= most
    {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return TOO_MUCH,
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { return TOO_MUCH };
            if metadata.is_dir() {
                folders.push(entry.path());
            }
            total = total.saturating_add(ENTRY).saturating_add(metadata.len());
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_something_else_are_not_plain() {
        for plain in ["a", "a.txt", ".a", "console", "com", "com10", "ä b", "nul_"] {
            assert!(is_plain_name(OsStr::new(plain)), "{plain}");
        }
        for other in [
            "nul", "NUL.txt", "com1", "COM¹.a", "lpt9 .x", "con", "a.", "a ", "a:b", "a?", "a\\b",
            "\n",
        ] {
            assert!(!is_plain_name(OsStr::new(other)), "{other}");
        }
    }
}
