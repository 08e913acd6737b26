//! Digests of files and of folders of files.

use std::{
    fmt,
    fs::File,
    io::{self, Read as _},
    path::Path,
    str::FromStr,
};

use sha2::{Digest as _, Sha256};

/// The SHA-256 of the bytes of a file, written as `sha256:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDigest(pub [u8; 32]);

/// The digest of a folder: of the paths, contents and executable bits of its files.
///
/// It is the SHA-256 over one record for each file, in the byte order of their paths: the path
/// with `/`, a zero byte, the 32 bytes of its [`FileDigest`], an `x` if it can be executed, and a line end.
/// No path contains a control character, so that no two folders have the same records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentDigest(pub [u8; 32]);

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TreeFile {
    /// The path below the folder, with `/`.
    pub path: String,
    /// The digest of its bytes.
    pub digest: FileDigest,
    /// The size in bytes.
    pub size: u64,
    /// Whether it can be executed.
    pub executable: bool,
}

/// A text is not `sha256:` and 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not `sha256:` followed by 64 hexadecimal digits")]
#[non_exhaustive]
pub struct DigestSyntaxError {
    /// The text.
    pub text: String,
}

impl TreeFile {
    /// Creates a file.
    pub fn new(path: impl Into<String>, digest: FileDigest, size: u64, executable: bool) -> Self {
        Self { path: path.into(), digest, size, executable }
    }
}

impl FileDigest {
    /// Returns the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Reads a file and returns its digest and size.
    pub fn of_file(path: &Path) -> io::Result<(Self, u64)> {
        let mut hasher = Sha256::new();
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 64 * 1024];
        let mut size = 0;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok((Self(hasher.finalize().into()), size)),
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    size += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl ContentDigest {
    /// Returns the digest of a folder with these files, which are in the byte order of their paths.
    pub fn of(files: &[TreeFile]) -> Self {
        debug_assert!(files.is_sorted_by(|a, b| a.path < b.path));
        let mut hasher = Sha256::new();
        for file in files {
            hasher.update(file.path.as_bytes());
            hasher.update([0]);
            hasher.update(file.digest.0);
            hasher.update(if file.executable { "x\n" } else { "\n" });
        }
        Self(hasher.finalize().into())
    }
}

macro_rules! written_as_hex {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("sha256:")?;
                self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = DigestSyntaxError;

            fn from_str(text: &str) -> Result<Self, DigestSyntaxError> {
                digest(text).map(Self).ok_or_else(|| DigestSyntaxError { text: text.to_owned() })
            }
        }
    )*};
}

written_as_hex!(FileDigest ContentDigest);

fn digest(text: &str) -> Option<[u8; 32]> {
    let hex = text.strip_prefix("sha256:").filter(|it| it.len() == 64 && it.is_ascii())?;
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        let [high, low] = [digits[0], digits[1]].map(|it| char::from(it).to_digit(16));
        *byte = u8::try_from(high? * 16 + low?).ok()?;
    }
    Some(bytes)
}
