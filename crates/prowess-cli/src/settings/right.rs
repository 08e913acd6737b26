//! What the file of a project may do with a setting.

/// What the file of a project may do with a setting. Somebody else may have written that file, so it can
/// narrow what its user allows and never widen it. The user's file, one that `--config` names and flags
/// may set everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectRight {
    /// It cannot set it.
    Nothing,
    /// A stricter value than the one that applies without it.
    Stricter,
    /// Fewer entries than the list that applies without it.
    Narrower,
    /// The same; more only after the user has approved the file as it is.
    NarrowerOrApproved,
    /// More entries, such as more that is excluded or denied.
    More,
    /// Whatever lies in the directory of its file.
    Inside,
    /// The same, where the user has set nothing.
    InsideUnset,
    /// Any value, where the user has set none.
    Unset,
    /// Any value.
    Any,
}

impl ProjectRight {
    /// All of them.
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

    /// One word for it, as JSON has it.
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

    /// It in words, as in "a project's file: a stricter value only".
    pub fn meaning(self) -> &'static str {
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
