//! What systems do differently: `unix.rs` is for Unix, `other.rs` for all others.

#[cfg_attr(unix, path = "sys/unix.rs")]
#[cfg_attr(not(unix), path = "sys/other.rs")]
mod platform;

pub(crate) use self::platform::*;

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Link,
    Other,
}
