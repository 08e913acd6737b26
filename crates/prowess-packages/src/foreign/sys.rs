//! Differences between systems about files.

use std::fs::Metadata;

/// Whether a file can be executed by its owner; `None` if the system does not know.
#[cfg(unix)]
pub(super) fn is_executable(metadata: &Metadata) -> Option<bool> {
    use std::os::unix::fs::PermissionsExt as _;

    Some(metadata.permissions().mode() & 0o100 != 0)
}

/// Whether a file can be executed by its owner; `None` if the system does not know.
#[cfg(not(unix))]
pub(super) fn is_executable(_metadata: &Metadata) -> Option<bool> {
    None
}
