//! The strength of confinement.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The strength of a program's confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// Not at all.
    None,
    /// By Landlock rules about files, and a filter of system calls.
    Landlock,
    /// By namespaces and a root directory of its own, on top of that.
    Strong,
}

impl SandboxLevel {
    /// Returns its name, as in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "landlock",
            Self::Strong => "strong",
        }
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
