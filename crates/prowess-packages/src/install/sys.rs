//! What systems do differently: open directories, modes and links. `unix.rs` and `windows.rs` have
//! the same names.

#[cfg_attr(unix, path = "sys/unix.rs")]
#[cfg_attr(windows, path = "sys/windows.rs")]
mod platform;

pub(super) use self::platform::*;
