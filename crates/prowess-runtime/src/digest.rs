//! Digests in hexadecimal.

use std::{
    fmt::Write as _,
    fs::OpenOptions,
    io::{self, Read as _},
    path::Path,
};

use sha2::{Digest as _, Sha256};

use crate::sys::{NO_WAIT, OpenOptionsExt as _};

/// Formats bytes in hexadecimal.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the SHA-256 of some bytes, in hexadecimal.
pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> String {
    hex(Sha256::digest(bytes))
}

/// Returns the SHA-256 of a regular file, in hexadecimal; links are not followed.
pub fn file_digest(path: &Path) -> io::Result<String> {
    let mut file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let (mut all, mut piece) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(all.finalize())),
            read => all.update(&piece[..read]),
        }
    }
}
