//! The treatment of a skill by a client.

use std::fmt;

/// The treatment of a skill by a client, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is loaded.
    Loads,
    /// It is loaded once the user trusts the folder.
    Asks,
    /// It is loaded, but truncated.
    Cut,
    /// It is loaded, but hidden from the model or from people.
    Hidden,
    /// Unknown.
    Unknown,
    /// Another skill of its name is loaded.
    Shadowed,
    /// It is found, but not loaded.
    Refused,
    /// It is not found.
    Unseen,
}

impl Verdict {
    /// All verdicts, the best first.
    pub const ALL: [Self; 8] = [
        Self::Loads,
        Self::Asks,
        Self::Cut,
        Self::Hidden,
        Self::Unknown,
        Self::Shadowed,
        Self::Refused,
        Self::Unseen,
    ];

    /// Returns the word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loads => "loads",
            Self::Asks => "asks",
            Self::Cut => "cut",
            Self::Hidden => "hidden",
            Self::Unknown => "unknown",
            Self::Shadowed => "shadowed",
            Self::Refused => "refused",
            Self::Unseen => "unseen",
        }
    }

    /// Whether it is not loaded.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Shadowed | Self::Refused | Self::Unseen)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
