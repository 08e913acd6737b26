//! What becomes of a skill in a client.

use std::fmt;

/// What becomes of a skill in a client, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is taken as it is.
    Loads,
    /// It is taken once somebody trusts the folder.
    Asks,
    /// It is taken, and a part of it is not shown.
    Cut,
    /// It is taken, and not shown to the model or to people.
    Hidden,
    /// Nobody knows.
    Unknown,
    /// Another of its name is taken.
    Shadowed,
    /// It is found, and not taken.
    Refused,
    /// It is not found.
    Unseen,
}

impl Verdict {
    /// Every verdict, the best first.
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

    /// The word for it, as in `--json`.
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

    /// Whether it is not taken.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Shadowed | Self::Refused | Self::Unseen)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
