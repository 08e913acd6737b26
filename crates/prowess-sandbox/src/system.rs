//! The paths of the system that every program can read.

use std::path::Path;

/// The directories of the system that programs need, as found in the root.
pub(crate) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// The directories of the system's programs.
#[cfg(not(target_os = "macos"))]
pub(crate) const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The directories of the system's programs, and of those that Homebrew installs.
#[cfg(target_os = "macos")]
pub(crate) const SEARCH_PATH: &str = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin";

/// Whether a path is in one of the directories of the system, which every script can read.
pub fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|it| path.starts_with(it))
}

/// Returns the file with the certificates of all authorities that this system trusts.
pub fn certificate_file() -> Option<&'static str> {
    AUTHORITIES.iter().copied().find(|it| Path::new(it).exists())
}

/// The usual paths of that file.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
