//! The directory in which a host saves its state: approvals, the audit log, trust and the change history.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    path::Path,
    time::Duration,
};

use crate::file_lock::lock_within;
use crate::sys::{DirBuilderExt as _, MetadataExt as _, NO_WAIT, OpenOptionsExt as _, user_id};

const LOCK: &str = "lock";
/// How long to wait for another process to release the directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Creates the directory, and locks it against other writers while the returned file is open.
pub(crate) fn lock_directory(directory: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_WAIT);
    let file = options.open(directory.join(LOCK))?;
    lock_within(file, LOCK_TIMEOUT)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

/// Whether a file belongs to the current user or to root, and has none of the permissions `others`.
pub(crate) fn is_own(metadata: &fs::Metadata, others: u32) -> bool {
    let own = [user_id(), 0];
    own.contains(&metadata.uid()) && metadata.mode() & others == 0
}
