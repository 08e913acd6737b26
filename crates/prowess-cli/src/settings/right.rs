//! The rights of a project's file to set a setting.

/// The right of a project's file to set a setting. Somebody else may have written that file, so it
/// can restrict what the user allows and never extend it. The user's file, one named by `--config`
/// and flags may set everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectRight {
    /// None.
    Nothing,
    /// A stricter value than the one that applies without it.
    Stricter,
    /// Fewer entries than the list that applies without it.
    Narrower,
    /// Fewer entries; more only after the user has approved the file as it is.
    NarrowerOrApproved,
    /// More entries, such as more that is excluded or denied.
    More,
    /// Any path in the directory of its file.
    Inside,
    /// Any path in the directory of its file, if the user has set nothing.
    InsideUnset,
    /// Any value, if the user has set none.
    Unset,
    /// Any value.
    Any,
}

impl ProjectRight {
    /// All rights.
    pub const ALL: [Self; 9] = [
        Self::Nothing,
        Self::Stricter,
        Self::Narrower,
        Self::NarrowerOrApproved,
        Self::More,
        Self::Inside,
        Self::InsideUnset,
        Self::Unset,
        Self::Any,
    ];

    /// Returns the word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "no",
            Self::Stricter => "stricter",
            Self::Narrower => "narrower",
            Self::NarrowerOrApproved => "narrower-or-approved",
            Self::More => "more",
            Self::Inside => "inside",
            Self::InsideUnset => "inside-unset",
            Self::Unset => "unset",
            Self::Any => "yes",
        }
    }

    /// Returns a phrase for it, such as "a stricter value only".
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Nothing => "no",
            Self::Stricter => "a stricter value only",
            Self::Narrower => "fewer entries only",
            Self::NarrowerOrApproved => "fewer entries only, until you approve the file",
            Self::More => "more entries only",
            Self::Inside => "inside its own directory only",
            Self::InsideUnset => "inside its own directory, where the user sets nothing",
            Self::Unset => "where the user sets nothing",
            Self::Any => "yes",
        }
    }
}
