//! Unpacks archives with limits, and reads folders in the same way.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use flate2::bufread::MultiGzDecoder;

use crate::digest::TreeFile;

mod path;
mod tree;
mod links;
mod tar;
mod zip;
mod folder;

pub use self::folder::{CopyError, copy_folder};
pub(crate) use self::{
    folder::read_folder,
    links::replace_links,
    path::check_path,
    tree::{Contents, Tree},
};

/// The formats that can be unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveFormat {
    /// A zip archive.
    Zip,
    /// A tar archive packed with gzip.
    TarGz,
    /// A tar archive.
    Tar,
}

/// Limits of one archive or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// The most bytes before unpacking.
    pub packed: u64,
    /// The most bytes of all files together.
    pub unpacked: u64,
    /// The most bytes of a file.
    pub file: u64,
    /// The most files and folders.
    pub files: usize,
    /// The most folders above a file.
    pub depth: usize,
    /// The most unpacked bytes for a packed byte, beyond the first MiB.
    pub ratio: u64,
    /// The most bytes of a path.
    pub name: usize,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            packed: 256 << 20,
            unpacked: 1 << 30,
            file: 256 << 20,
            files: 50_000,
            depth: 32,
            ratio: 200,
            name: 1024,
        }
    }
}

/// How an archive is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnpackOptions {
    /// The limits.
    pub limits: ArchiveLimits,
    /// Whether the one folder that everything is in, if there is one, is left out of all paths.
    pub strip_wrapper: bool,
    /// Whether what cannot be used is left out and reported, and links within the archive become
    /// what they point to: for a repository, of which only the skills are wanted. Otherwise the
    /// first such entry is an error.
    pub leave_out: bool,
}

/// The files of an archive or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UnpackedArchive {
    /// Its files, in the byte order of their paths.
    pub files: Vec<TreeFile>,
    /// The commit that `git archive`, which hosts use, wrote into it, in hex.
    pub comment: Option<String>,
    /// The entries that were left out, in the order in which they were found.
    pub left_out: Vec<LeftOut>,
}

/// A file, link or something else that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The path, without control characters.
    pub path: String,
    /// The reason, such as `a link that leads out of the package`.
    pub reason: &'static str,
}

/// A fault of an archive; nothing of it is used then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It cannot be read to its end.
    #[error("the archive is damaged or incomplete")]
    Damaged(#[source] io::Error),
    /// A limit is exceeded.
    #[error("the archive has more than {limit}")]
    TooLarge {
        /// The limit, such as `50000 files and folders`.
        limit: String,
    },
    /// A name or type is not allowed.
    #[error("the archive contains `{path}`, {reason}")]
    Refused {
        /// The path in the archive, without control characters.
        path: String,
        /// The reason, such as `a link`.
        reason: &'static str,
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

impl ArchiveError {
    /// Returns what a user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Damaged(_) => "download it again; if that does not help, tell its author",
            Self::TooLarge { .. } => "limits keep a small archive from filling the disk",
            Self::Refused { .. } => {
                "ask its author for an archive of plain files with portable names"
            }
            Self::Write { .. } => "check the permissions and the free space",
        }
    }
}

/// Returns the format of an archive by its first bytes (512 are enough), or by its name if they do
/// not tell.
pub fn format_of(name: &str, first: &[u8]) -> Option<ArchiveFormat> {
    match first {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => return Some(ArchiveFormat::Zip),
        [0x1f, 0x8b, ..] => return Some(ArchiveFormat::TarGz),
        _ if first.get(257..262) == Some(b"ustar") => return Some(ArchiveFormat::Tar),
        _ => {}
    }
    let name = name.to_ascii_lowercase();
    let formats = [
        (".zip", ArchiveFormat::Zip),
        (".skill", ArchiveFormat::Zip),
        (".tar.gz", ArchiveFormat::TarGz),
        (".tgz", ArchiveFormat::TarGz),
        (".tar", ArchiveFormat::Tar),
    ];
    formats.into_iter().find(|it| name.ends_with(it.0)).map(|it| it.1)
}

/// Unpacks an archive into an empty folder, and returns its files in the byte order of their paths.
///
/// Nothing is ever written outside of the folder. After an error, drop the folder: it has what came
/// before. A host that counts or stops does so in the reader.
pub fn unpack(
    archive: impl Read + Seek,
    format: ArchiveFormat,
    limits: &ArchiveLimits,
    folder: &Path,
) -> Result<UnpackedArchive, ArchiveError> {
    let options = UnpackOptions { limits: *limits, ..UnpackOptions::default() };
    unpack_with(archive, format, &options, folder)
}

/// Unpacks an archive like [`unpack`], with options.
pub fn unpack_with(
    mut archive: impl Read + Seek,
    format: ArchiveFormat,
    options: &UnpackOptions,
    folder: &Path,
) -> Result<UnpackedArchive, ArchiveError> {
    check_empty(folder)?;
    let limits = &options.limits;
    let contents = Contents::Folder(folder.to_owned());
    let mut tree = Tree::new(limits, contents, options.leave_out);
    let length = archive.seek(SeekFrom::End(0)).map_err(ArchiveError::Damaged)?;
    if length > limits.packed {
        return Err(tree::too_large(format!("{} bytes before unpacking", limits.packed)));
    }
    archive.rewind().map_err(ArchiveError::Damaged)?;
    let comment = match format {
        ArchiveFormat::Zip => zip::read(io::BufReader::new(archive), limits, &mut tree)?,
        ArchiveFormat::TarGz => {
            let unpacked = MultiGzDecoder::new(io::BufReader::new(archive));
            tar::read(
                &mut LimitedReader { bytes: unpacked, limits, length, count: 0 },
                true,
                &mut tree,
            )?
        }
        ArchiveFormat::Tar => tar::read(&mut io::BufReader::new(archive), false, &mut tree)?,
    };
    links::replace_links(&mut tree)?;
    if options.strip_wrapper {
        tree.strip_wrapper()?;
    }
    Ok(UnpackedArchive {
        files: tree.files.into_values().collect(),
        comment,
        left_out: tree.left_out,
    })
}

impl ArchiveLimits {
    /// Fails if there are too many unpacked bytes for so many packed ones.
    fn check_ratio(&self, packed: u64, unpacked: u64) -> Result<(), ArchiveError> {
        const FREE: u64 = 1 << 20;
        match unpacked > packed.saturating_mul(self.ratio).saturating_add(FREE) {
            true => Err(tree::too_large(format!("{} times its packed size", self.ratio))),
            false => Ok(()),
        }
    }
}

/// Reads what a stream unpacks to, names and padding included, within the limits.
struct LimitedReader<'l, R> {
    bytes: R,
    limits: &'l ArchiveLimits,
    length: u64,
    count: u64,
}

impl<R: Read> Read for LimitedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        self.count += count as u64;
        // A header and padding for each file, a name for each.
        let overhead = (self.limits.files as u64).saturating_mul(4096);
        let most = self.limits.unpacked.saturating_add(overhead);
        let checked = match self.count > most {
            true => Err(tree::too_large(format!("{most} bytes"))),
            false => self.limits.check_ratio(self.length, self.count),
        };
        checked.map(|()| count).map_err(io::Error::other)
    }
}

fn check_empty(folder: &Path) -> Result<(), ArchiveError> {
    let failed = |source| ArchiveError::Write { path: folder.to_owned(), source };
    match std::fs::read_dir(folder).map_err(failed)?.next() {
        None => Ok(()),
        Some(_) => Err(failed(io::ErrorKind::DirectoryNotEmpty.into())),
    }
}

/// Returns a comment that is a commit: 40 or 64 hex digits.
fn commit(comment: &[u8]) -> Option<String> {
    let is_hex = comment.iter().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
    let is_commit = is_hex && matches!(comment.len(), 40 | 64);
    is_commit.then(|| String::from_utf8_lossy(comment).into_owned())
}
