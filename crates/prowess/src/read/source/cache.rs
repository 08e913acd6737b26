//! The cache folder, through which libraries over the same files share what they have read.
//!
//! Each file in it is a header and a payload:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `prowess` and the version of this layout |
//! | 16 | the key: a digest of this build and of the library's sources; also the file's name |
//! | 8 | the length of the payload, in bytes |
//! | 8 | its checksum |
//!
//! A file is written whole under another name and then renamed, so that there is no locking and the
//! last writer wins. An invalid file is moved aside, with `.bad` appended to its name. Nothing here
//! is an error: anything that cannot be cached is read again.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{mark::SETTLED, sys};

/// A cache of what libraries have read, for later ones over the same files.
///
/// A cached file is used only while its inode, size and times are unchanged; a library with a cache
/// is the same as one without. The folder can be deleted at any time, and several processes can
/// share it. Anyone who can write to it can decide which skills there are.
#[derive(Debug, Clone)]
pub struct Cache {
    /// The folder; it is created when there is something to write.
    pub folder: PathBuf,
    /// The time for which a file must have been unchanged before it is cached: longer than the
    /// timestamp resolution of any file system.
    pub settled: Duration,
    /// The minimum number of skills that makes caching worthwhile; fewer are read just as fast.
    pub least: usize,
}

/// The key that identifies a file.
pub(crate) type Key = [u8; 16];

/// The first bytes of a file.
const MAGIC: [u8; 8] = *b"prowess\x01";
const HEADER: usize = 40;
/// The maximum size of a file, in bytes.
const LARGEST: u64 = 512 << 20;
/// The maximum number of files, and their maximum total size in bytes.
const MOST: (usize, u64) = (32, 1 << 30);
/// The interval after which a file in use is marked as used, and an unfinished one is removed.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Cache {
    /// Returns a cache in a folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), settled: SETTLED, least: 64 }
    }

    /// Reads the payload of a key; `None` if it is missing or damaged.
    pub(crate) fn read(&self, kind: &str, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(kind, key);
        let mut file = sys::open_no_link(&path).ok()?;
        let bytes = payload(&mut file, key);
        if bytes.is_none() {
            let _ = fs::rename(&path, path.with_extension("bad"));
            return None;
        }
        // Files that are no longer used are removed first.
        let age =
            file.metadata().and_then(|it| it.modified()).ok().and_then(|it| it.elapsed().ok());
        if age.is_some_and(|it| it > DAY) {
            let _ = file.set_modified(SystemTime::now());
        }
        bytes
    }

    /// Writes a payload under a key.
    pub(crate) fn write(&self, kind: &str, key: &Key, bytes: &[u8]) {
        if bytes.len() as u64 > LARGEST {
            return;
        }
        let _ = sys::create_private_folder(&self.folder);
        let path = self.path(kind, key);
        let mut random = [0; 8];
        if getrandom::fill(&mut random).is_err() {
            return;
        }
        let draft = path.with_extension(format!("{:016x}.draft", u64::from_le_bytes(random)));
        if write_draft(&draft, key, bytes).and_then(|()| fs::rename(&draft, &path)).is_err() {
            let _ = fs::remove_file(&draft);
        }
        self.prune();
    }

    fn path(&self, kind: &str, key: &Key) -> PathBuf {
        self.folder.join(format!("{:032x}.{kind}", u128::from_be_bytes(*key)))
    }

    /// Removes the least recently used files while there are too many.
    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let own = entries.flatten().filter(|it| is_own(&it.file_name().to_string_lossy()));
        let mut files: Vec<(SystemTime, u64, PathBuf)> = own
            .filter_map(|it| {
                let metadata = it.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), it.path()))
            })
            .collect();
        files.sort_unstable_by(|a, b| b.cmp(a));
        let (mut count, mut size) = (0, 0_u64);
        for (modified, length, path) in files {
            let is_draft = path.extension().is_some_and(|it| it == "draft");
            let is_left = is_draft && modified.elapsed().is_ok_and(|it| it > DAY);
            (count, size) = (count + 1, size.saturating_add(length));
            if is_left || count > MOST.0 || size > MOST.1 {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn write_draft(path: &Path, key: &Key, bytes: &[u8]) -> io::Result<()> {
    let mut file = sys::create_private(path)?;
    file.write_all(&header(key, bytes))?;
    file.write_all(bytes)
}

/// Whether a name is one of a cache file.
fn is_own(name: &str) -> bool {
    let (key, ending) = name.split_once('.').unwrap_or_default();
    let is_key = key.len() == 32 && key.bytes().all(|it| it.is_ascii_hexdigit());
    is_key && (matches!(ending, "skills" | "index" | "bad") || ending.ends_with(".draft"))
}

fn header(key: &Key, bytes: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..24].copy_from_slice(key);
    header[24..32].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    header[32..].copy_from_slice(&checksum(bytes).to_le_bytes());
    header
}

/// Reads the payload, if it agrees with the header.
fn payload(file: &mut File, key: &Key) -> Option<Vec<u8>> {
    let metadata = file.metadata().ok()?;
    let size = metadata.len().checked_sub(HEADER as u64)?;
    if !metadata.is_file() || size > LARGEST {
        return None;
    }
    let mut found = [0; HEADER];
    file.read_exact(&mut found).ok()?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
    file.take(size).read_to_end(&mut bytes).ok()?;
    (found == header(key, &bytes)).then_some(bytes)
}

/// Computes a checksum against damage, in four lanes, which is as fast as memory.
fn checksum(bytes: &[u8]) -> u64 {
    let (rows, rest) = bytes.as_chunks::<32>();
    let mut lanes = [1_u64, 2, 3, 4];
    for row in rows {
        for (lane, word) in lanes.iter_mut().zip(row.as_chunks().0) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let sum = rest.iter().fold(bytes.len() as u64, |sum, byte| mix(sum, u64::from(*byte)));
    lanes.into_iter().fold(sum, mix)
}

fn mix(sum: u64, word: u64) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    (sum ^ word).wrapping_mul(FACTOR).rotate_left(29)
}
