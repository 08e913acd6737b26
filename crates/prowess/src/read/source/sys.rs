//! What systems do differently: opening files and folders so that no link leads elsewhere, their
//! state, and the bytes of paths. `unix.rs` and `windows.rs` have the same functions.

#[cfg_attr(unix, path = "sys/unix.rs")]
#[cfg_attr(windows, path = "sys/windows.rs")]
mod platform;

use std::time::SystemTime;

use super::mark::Mark;

pub(crate) use self::platform::*;

/// The kind of an entry of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    /// A pipe, a device or a socket.
    Other,
    /// The listing does not say. That of Windows always does.
    #[cfg_attr(windows, expect(dead_code, reason = "a listing of Windows tells every kind"))]
    Unknown,
}

/// The state of a file or folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) mark: Mark,
}
