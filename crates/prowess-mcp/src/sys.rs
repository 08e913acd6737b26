//! What systems do differently: private files, and the other end of pipes.

#[cfg_attr(unix, path = "sys/unix.rs")]
#[cfg_attr(windows, path = "sys/windows.rs")]
mod platform;

#[cfg(all(feature = "client", feature = "http"))]
pub(crate) use self::platform::PrivateFolder;
#[cfg(feature = "server")]
pub(crate) use self::platform::is_output_closed;
#[cfg(feature = "client")]
pub(crate) use self::platform::split;
