//! What systems do differently: the user's directories, signals and terminals.

#[cfg_attr(unix, path = "sys/unix.rs")]
#[cfg_attr(windows, path = "sys/windows.rs")]
mod platform;

pub(crate) use self::platform::*;

/// A directory of the program among those of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnDirectory {
    /// Settings.
    Config,
    /// State kept between runs.
    State,
    /// A cache, which can be rebuilt.
    Cache,
    /// Environments of scripts.
    Data,
}
