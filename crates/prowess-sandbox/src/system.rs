//! Where the system keeps what every program can read.

use std::path::Path;

/// The directories of the system that programs need, as they lie in the root.
pub(crate) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Whether a path lies in one of the directories of the system, which every script can read.
pub fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().any(|it| path.starts_with(it))
}

/// The certificates of authorities that this system trusts, as one file.
pub fn certificate_file() -> Option<&'static str> {
    AUTHORITIES.iter().copied().find(|it| Path::new(it).exists())
}

/// Where systems keep the certificates of authorities, as one file.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
