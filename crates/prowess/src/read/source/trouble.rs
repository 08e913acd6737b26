//! Reasons why an entry of a folder was skipped, and the findings about it.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::sys;
use crate::finding::{
    Finding, Severity,
    rule::{self, Rule},
};

/// The reason why an entry was skipped.
pub(super) enum Trouble {
    /// The system returned an error.
    Io(io::Error),
    /// A link leads outside of the configured directories.
    Escapes(PathBuf),
    /// A link leads back to where it came from, or is the second one on the path.
    Circle,
    /// It is a pipe, a device or a directory.
    NotRegular,
    /// It has `size` bytes, more than the limit.
    TooLarge { size: u64, limit: u64 },
    /// Its name is not valid UTF-8, so that it could not be asked for.
    NotText,
}

/// The role that an entry was expected to have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Folder,
    Document,
    Resource,
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        if sys::is_link_error(&error) { Self::Circle } else { Self::Io(error) }
    }
}

impl Role {
    /// Returns the rule that requires such an entry to be readable, and its severity.
    fn unreadable_rule(self) -> (&'static Rule, Severity) {
        match self {
            Self::Folder => (&rule::DIRECTORY_UNREADABLE, Severity::Error),
            Self::Document => (&rule::FILE_UNREADABLE, Severity::Error),
            Self::Resource => (&rule::RESOURCE_UNREADABLE, Severity::Warning),
        }
    }
}

/// Returns the finding about a skipped entry; `None` for one that would not be missed.
pub(super) fn finding(path: &Path, role: Role, trouble: Trouble) -> Option<Finding> {
    let (unreadable, weight) = role.unreadable_rule();
    let link_weight = if role == Role::Document { Severity::Error } else { Severity::Warning };
    let (rule, severity, message, hint) = match trouble {
        Trouble::Io(error) => match error.kind() {
            // It was deleted a moment ago, or it is a file in a directory of skills.
            io::ErrorKind::NotFound if !is_link(path) => return None,
            io::ErrorKind::NotADirectory if role == Role::Folder => return None,
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => (
                &rule::LINK_BROKEN,
                link_weight,
                "the target of the link does not exist".to_owned(),
                "remove the link, or restore its target",
            ),
            _ => (
                unreadable,
                weight,
                format!("it cannot be read: {}", reason(&error)),
                "check its permissions",
            ),
        },
        Trouble::Circle => (
            &rule::LINK_BROKEN,
            link_weight,
            "the link is circular or nested; it is not followed".to_owned(),
            "remove the link",
        ),
        // A link to some file in a directory of skills is not worth reporting.
        Trouble::Escapes(real) if role == Role::Folder && !real.is_dir() => return None,
        Trouble::Escapes(real) => (
            &rule::LINK_ESCAPES,
            Severity::Error,
            format!(
                "the link leaves the configured directories, to `{}`",
                sys::plain_path(real.clone()).display()
            ),
            "add its target to the directories, or copy the files",
        ),
        Trouble::NotRegular if role == Role::Document => (
            &rule::FILE_NOT_REGULAR,
            Severity::Error,
            "this is not a regular file".to_owned(),
            "replace it with a file",
        ),
        Trouble::NotRegular => (
            &rule::RESOURCE_NOT_REGULAR,
            Severity::Warning,
            "this is not a regular file; it is left out".to_owned(),
            "replace it with a file",
        ),
        Trouble::TooLarge { size, limit } if role == Role::Document => (
            &rule::FILE_TOO_LARGE,
            Severity::Error,
            format!("the file has {size} bytes, more than {limit}"),
            "move parts of it to other files",
        ),
        Trouble::TooLarge { size, limit } => (
            &rule::RESOURCE_TOO_LARGE,
            Severity::Warning,
            format!("the resource has {size} bytes, more than {limit}, and is left out"),
            "make it smaller, or raise the limit on the size of a file",
        ),
        Trouble::NotText => (
            unreadable,
            weight,
            "the name of this entry is not valid UTF-8; it is left out".to_owned(),
            "rename it",
        ),
    };
    Some(Finding::new(rule, severity, path, message, hint))
}

/// Returns the message of a system error, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.chars()
        .enumerate()
        .map(|(at, c)| if at == 0 { c.to_ascii_lowercase() } else { c })
        .collect()
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink())
}
