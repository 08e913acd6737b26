//! Packs the folder of a skill, the same bytes for the same files.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, Crc, GzBuilder, write::DeflateEncoder};

use crate::{
    archive::{ArchiveError, ArchiveFormat, ArchiveLimits, Contents, LeftOut, Tree, read_folder},
    digest::{ContentDigest, TreeFile},
};

/// The file that makes a folder a skill.
const SKILL: &str = "SKILL.md";

/// How a skill is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackOptions {
    /// The format: [`ArchiveFormat::Zip`], or a tar archive with or without gzip.
    pub format: ArchiveFormat,
    /// The most bytes of a file.
    pub file: u64,
    /// The most bytes of all files together.
    pub total: u64,
    /// The most files and folders.
    pub files: usize,
}

/// What ClawHub accepts, as a zip archive.
impl Default for PackOptions {
    fn default() -> Self {
        Self { format: ArchiveFormat::Zip, file: 10 << 20, total: 50 << 20, files: 2_000 }
    }
}

/// A packed skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedSkill {
    /// The archive.
    pub bytes: Vec<u8>,
    /// Its files, in the byte order of their paths.
    pub files: Vec<TreeFile>,
    /// The digest of its files.
    pub digest: ContentDigest,
}

/// A skill cannot be packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The folder has no `SKILL.md`.
    #[error("`{0}` has no `SKILL.md`")]
    NoSkill(PathBuf),
    /// A file or folder cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A limit is exceeded.
    #[error("the skill has more than {limit}")]
    TooLarge {
        /// The limit, such as `52428800 bytes`.
        limit: String,
    },
    /// Something cannot be part of an archive.
    #[error("the skill contains `{path}`, {reason}")]
    Refused {
        /// The path in the folder, without control characters.
        path: String,
        /// The reason, such as `a link that leads out of the package`.
        reason: &'static str,
    },
}

impl PackError {
    /// Returns what a user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSkill(_) => "name the folder of the skill itself",
            Self::Read { .. } => "check the path and its permissions",
            Self::TooLarge { .. } => "move large files elsewhere and let the skill say where",
            Self::Refused { .. } => "rename or remove it, or put a file in its place",
        }
    }
}

/// Packs the folder of a skill: its files at the top, sorted, with a fixed time.
///
/// Files and folders whose names start with a dot, and `node_modules`, are left out. Links within
/// the folder become what they point to; other links are an error. The same files give the same
/// bytes on every system; without executable bits, as on Windows, a script is one that begins with `#!`.
pub fn pack(folder: &Path, options: &PackOptions) -> Result<PackedSkill, PackError> {
    let limits = ArchiveLimits {
        unpacked: options.total,
        file: u64::MAX,
        files: options.files,
        ..ArchiveLimits::default()
    };
    let failed = |error| match error {
        ArchiveError::TooLarge { limit } => PackError::TooLarge { limit },
        ArchiveError::Refused { path, reason } => PackError::Refused { path, reason },
        ArchiveError::Damaged(source) | ArchiveError::Write { source, .. } => {
            PackError::Read { path: folder.to_owned(), source }
        }
    };
    let mut tree = Tree::new(&limits, Contents::Memory(Default::default()), true);
    let is_skipped = |name: &str| name.starts_with('.') || name == "node_modules";
    read_folder(folder, is_skipped, &limits, &mut tree)
        .map_err(|(path, source)| PackError::Read { path, source })?
        .map_err(failed)?;
    if let Some(LeftOut { path, reason }) = tree.left_out.pop() {
        return Err(PackError::Refused { path, reason });
    }
    if tree.files.values().any(|it| it.size > options.file) {
        return Err(PackError::TooLarge { limit: format!("{} bytes in a file", options.file) });
    }
    if !tree.files.contains_key(SKILL) {
        return Err(PackError::NoSkill(folder.to_owned()));
    }
    let files: Vec<TreeFile> = std::mem::take(&mut tree.files).into_values().collect();
    let Contents::Memory(contents) = tree.into_contents() else { unreachable!("it was given") };
    let packed: Vec<(&TreeFile, &[u8])> = files
        .iter()
        .map(|it| (it, contents.get(&it.path).map_or(&[][..], Vec::as_slice)))
        .collect();
    let bytes = match options.format {
        ArchiveFormat::Zip => zip(&packed),
        ArchiveFormat::Tar => tar(&packed),
        ArchiveFormat::TarGz => tar(&packed).and_then(|it| gzip(&it)),
    };
    let digest = ContentDigest::of(&files);
    Ok(PackedSkill { bytes: bytes.expect("memory can be written to"), files, digest })
}

fn mode(file: &TreeFile) -> u32 {
    if file.executable { 0o100_755 } else { 0o100_644 }
}

/// The packed size, size and so on of files are far below 4 GiB, and their paths below 64 KiB.
fn zip(files: &[(&TreeFile, &[u8])]) -> io::Result<Vec<u8>> {
    /// 1980-01-01, the first day that there is.
    const DATE: u16 = 1 << 5 | 1;
    const VERSION: u16 = 20;
    const UNIX: u16 = 3 << 8;
    const UTF_8: u16 = 1 << 11;
    let small = |it: usize| u32::try_from(it).map_err(io::Error::other);
    let short = |it: usize| u16::try_from(it).map_err(io::Error::other);
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (file, bytes) in files {
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::new(6));
        deflated.write_all(bytes)?;
        let deflated = deflated.finish()?;
        let (method, packed): (u16, &[u8]) =
            if deflated.len() < bytes.len() { (8, &deflated) } else { (0, bytes) };
        let mut crc = Crc::new();
        crc.update(bytes);
        let flags = if file.path.is_ascii() { 0 } else { UTF_8 };
        let mut shared = Vec::new();
        for field in [VERSION, flags, method, 0, DATE] {
            shared.extend(field.to_le_bytes());
        }
        for field in [crc.sum(), small(packed.len())?, small(bytes.len())?] {
            shared.extend(field.to_le_bytes());
        }
        for field in [short(file.path.len())?, 0] {
            shared.extend(field.to_le_bytes());
        }
        let offset = small(archive.len())?;
        directory.extend(b"PK\x01\x02");
        directory.extend((UNIX | VERSION).to_le_bytes());
        directory.extend(&shared);
        // No comment, the first disk, no internal attributes.
        directory.extend([0; 6]);
        directory.extend((mode(file) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(file.path.as_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(shared);
        archive.extend(file.path.as_bytes());
        archive.extend(packed);
    }
    let (offset, size, count) =
        (small(archive.len())?, small(directory.len())?, short(files.len())?);
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(size.to_le_bytes());
    archive.extend(offset.to_le_bytes());
    archive.extend([0; 2]);
    Ok(archive)
}

fn tar(files: &[(&TreeFile, &[u8])]) -> io::Result<Vec<u8>> {
    const BLOCK: usize = 512;
    let mut archive = Vec::new();
    for (file, bytes) in files {
        let mut name = file.path.as_bytes();
        if name.len() > 100 || !file.path.is_ascii() {
            let record = pax_record("path", &file.path);
            archive.extend(tar_header(b"PaxHeaders", record.len(), 0o644, b'x'));
            archive.extend(record.as_bytes());
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
            // Read only where pax is not known.
            name = &name[..name.len().min(100)];
        }
        archive.extend(tar_header(name, bytes.len(), mode(file) & 0o777, b'0'));
        archive.extend(*bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

fn tar_header(name: &[u8], size: usize, mode: u32, kind: u8) -> [u8; 512] {
    /// 1980-01-01, as in a zip archive.
    const TIME: u64 = 315_532_800;
    let mut header = [0; 512];
    let mut field = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    field(0, name);
    field(100, format!("{mode:07o}").as_bytes());
    field(108, b"0000000");
    field(116, b"0000000");
    field(124, format!("{size:011o}").as_bytes());
    field(136, format!("{TIME:011o}").as_bytes());
    field(148, b"        ");
    field(156, &[kind]);
    field(257, b"ustar\x0000");
    field(329, b"0000000");
    field(337, b"0000000");
    let sum: u32 = header.iter().map(|it| u32::from(*it)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

/// Returns a pax record, whose length counts its own digits.
fn pax_record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n")
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    /// Not known, so that it is the same everywhere.
    const SYSTEM: u8 = 255;
    let writer = GzBuilder::new().mtime(0).operating_system(SYSTEM);
    let mut writer = writer.write(Vec::new(), Compression::new(6));
    writer.write_all(bytes)?;
    writer.finish()
}
