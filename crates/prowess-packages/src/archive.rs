//! Unpacks archives with limits.

use std::{io, path::Path};

use crate::digest::TreeFile;

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
#[non_exhaustive]
pub struct ArchiveLimits {
    /// The most bytes before unpacking.
    pub packed: u64,
    /// The most bytes of all files together.
    pub unpacked: u64,
    /// The most bytes of a file.
    pub file: u64,
    /// The most files.
    pub files: usize,
    /// The most folders above a file.
    pub depth: usize,
    /// The most unpacked bytes for a packed byte, beyond the first MiB.
    pub ratio: u64,
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
        }
    }
}

/// What is wrong with an archive; nothing of it is used then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It cannot be read to its end.
    #[error("the archive is damaged or incomplete")]
    Damaged(#[source] io::Error),
    /// A limit is exceeded.
    #[error("the archive has more than {limit}")]
    TooLarge {
        /// The limit, such as `50000 files`.
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
        path: std::path::PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Unpacks an archive into an empty folder, and returns its files in the byte order of their paths.
pub fn unpack(
    _archive: impl io::Read + io::Seek,
    _format: ArchiveFormat,
    _limits: &ArchiveLimits,
    _folder: &Path,
) -> Result<Vec<TreeFile>, ArchiveError> {
    todo!()
}
