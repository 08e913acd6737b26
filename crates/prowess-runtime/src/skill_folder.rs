//! The folder of a skill: its path, and its files when it was read.

use std::{
    ffi::OsStr,
    fmt,
    fs::DirBuilder,
    io::{self, Read as _},
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::sys::{DirBuilderExt as _, OsStrExt as _, PermissionsExt as _, set_mode, symlink};

use prowess_sandbox::{FileType, Links, Root, RootError, Work};

/// The folder of a skill. Once it is read, the approved bytes are those that run, even if the
/// folder changes.
#[derive(Clone)]
pub struct SkillFolder {
    path: PathBuf,
    files: Option<Arc<Vec<SkillFile>>>,
}

/// A file of a skill, as it was read.
#[derive(Debug, Clone)]
pub struct SkillFile {
    /// Its path within the folder.
    pub(crate) path: String,
    pub(crate) kind: FileKind,
    /// Its content; for a link, the target.
    pub(crate) bytes: Vec<u8>,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A regular one, with its mode.
    Plain(u32),
    Link,
    Other(FileType),
}

impl SkillFile {
    /// Its path within the folder of the skill.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is an ordinary file, not a link or a device.
    pub fn is_plain(&self) -> bool {
        matches!(self.kind, FileKind::Plain(_))
    }
}

impl FileKind {
    /// Whether it is executable.
    pub(crate) fn is_executable(self) -> bool {
        matches!(self, Self::Plain(mode) if mode & 0o111 != 0)
    }
}

/// Copies the files of a skill into the work directory of a run, as a folder of this name; returns the folder.
pub fn give_folder(work: &Work, name: &str, files: &[SkillFile]) -> io::Result<PathBuf> {
    let folder = work.given_path(name);
    DirBuilder::new().mode(0o700).create(&folder)?;
    for file in files {
        if let FileKind::Plain(mode) = file.kind {
            let path = work.give(&format!("{name}/{}", file.path), &file.bytes)?;
            set_mode(&path, mode & 0o100 | 0o400)?;
        }
    }
    // Last of all, so that nothing is written through one.
    for link in files.iter().filter(|it| it.kind == FileKind::Link) {
        let path = folder.join(&link.path);
        let parent = path.parent().unwrap_or(&folder);
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        symlink(OsStr::from_bytes(&link.bytes), path)?;
    }
    Ok(folder)
}

/// A folder cannot be read completely.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// One of its files cannot be read.
    #[error("a file of the skill cannot be read")]
    Read(#[from] RootError),
    /// One of its files cannot be read.
    #[error("a file of the skill cannot be read")]
    Io(#[from] io::Error),
    /// It exceeds the limits.
    #[error("the folder of the skill has more than {MAX_FILES} files or {MAX_BYTES} bytes")]
    TooLarge,
    /// A file has a name that cannot be displayed.
    #[error("the skill has a file whose name is not valid UTF-8")]
    Name,
}

/// The limits on the files of a skill.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const MAX_DEPTH: usize = 32;

impl SkillFolder {
    /// Reads all its files. Links are not followed.
    pub fn read(&self) -> Result<Self, FolderError> {
        let root = Root::open(&self.path)?;
        let (mut files, mut seen, mut room) = (Vec::new(), 0, MAX_BYTES);
        let mut folders = vec![(String::new(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for listed in root.list(Path::new(&folder), Links::Never)? {
                seen += 1;
                if seen > MAX_FILES || depth > MAX_DEPTH {
                    return Err(FolderError::TooLarge);
                }
                let name = listed.name.to_str().ok_or(FolderError::Name)?;
                let path = if folder.is_empty() { name.into() } else { format!("{folder}/{name}") };
                let mut bytes = Vec::new();
                let kind = match listed.kind {
                    FileType::Directory => {
                        folders.push((path, depth + 1));
                        continue;
                    }
                    FileType::RegularFile => {
                        let file = root.file(Path::new(&path), Links::Never)?;
                        let mode = file.metadata()?.permissions().mode();
                        let read = file.take(room + 1).read_to_end(&mut bytes)?;
                        room = room.checked_sub(read as u64).ok_or(FolderError::TooLarge)?;
                        FileKind::Plain(mode)
                    }
                    FileType::Symlink => {
                        let target = root.read_link(Path::new(&path))?;
                        bytes = target.into_os_string().into_encoded_bytes();
                        FileKind::Link
                    }
                    kind => FileKind::Other(kind),
                };
                files.push(SkillFile { path, kind, bytes });
            }
        }
        Ok(self.with_files(files))
    }

    /// The same folder, with these files instead of those on disk.
    #[must_use]
    pub fn with_files(&self, files: Vec<SkillFile>) -> Self {
        Self { path: self.path.clone(), files: Some(Arc::new(files)) }
    }

    /// Returns the folder without the files that were read.
    pub(crate) fn without_files(&self) -> Self {
        self.path.clone().into()
    }

    /// Returns the files that were read; otherwise reads the current ones.
    pub(crate) fn files(&self) -> Result<Arc<Vec<SkillFile>>, FolderError> {
        match &self.files {
            Some(files) => Ok(files.clone()),
            None => Ok(self.read()?.files.expect("it was just read")),
        }
    }
}

impl From<PathBuf> for SkillFolder {
    fn from(path: PathBuf) -> Self {
        Self { path, files: None }
    }
}

impl Deref for SkillFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl PartialEq for SkillFolder {
    /// Whether both have the same path.
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl fmt::Debug for SkillFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}
