//! Digests in hexadecimal.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

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
