//! What systems do differently. `unix.rs` and `windows.rs` have the same names: on Windows those of
//! the traits of Unix, with what they mean there. Not for users of this crate.

#[cfg_attr(unix, path = "sys/unix.rs")]
#[cfg_attr(windows, path = "sys/windows.rs")]
mod platform;

pub use self::platform::*;
