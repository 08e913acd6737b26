//! Why an entry of a folder was not taken, and what is said about it.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::{
    finding::{Finding, Severity},
    rule::{self, Rule},
};

/// Why an entry was not taken.
pub(super) enum Trouble {
    Io(io::Error),
    Escapes(PathBuf),
    NotRegular,
    TooLarge(u64),
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// The finding about an entry that was not taken; `unreadable` is the rule for a plain refusal.
pub(super) fn finding(path: &Path, unreadable: &'static Rule, trouble: Trouble) -> Option<Finding> {
    let document = std::ptr::eq(unreadable, &rule::FILE_UNREADABLE)
        && path.file_name().is_some_and(|it| it.eq_ignore_ascii_case("SKILL.md"));
    let weight = if document { Severity::Error } else { Severity::Warning };
    Some(match trouble {
        // It was there a moment ago: nobody misses it.
        Trouble::Io(error) if error.kind() == io::ErrorKind::NotFound && !is_link(path) => {
            return None;
        }
        Trouble::Io(error) if error.kind() == io::ErrorKind::NotFound => Finding::about(
            &rule::LINK_BROKEN,
            weight,
            path,
            "the link leads nowhere".to_owned(),
            "remove the link or restore what it leads to",
        ),
        Trouble::Io(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            Finding::about(
                &rule::LINK_BROKEN,
                weight,
                path,
                "the link leads back to itself".to_owned(),
                "remove the link",
            )
        }
        // A file in a directory of skills is nothing to report.
        Trouble::Io(error) if error.kind() == io::ErrorKind::NotADirectory => return None,
        Trouble::Io(error) => Finding::about(
            unreadable,
            Severity::Error,
            path,
            format!("cannot be read: {}", lower(&error)),
            "check its permissions",
        ),
        Trouble::Escapes(real) => Finding::about(
            &rule::LINK_ESCAPES,
            Severity::Error,
            path,
            format!("the link leads out of the configured directories, to `{}`", real.display()),
            "name the directory that it leads to as well, or copy the folder",
        ),
        Trouble::NotRegular => Finding::about(
            if document { &rule::FILE_NOT_REGULAR } else { &rule::RESOURCE_NOT_REGULAR },
            weight,
            path,
            "this is not an ordinary file".to_owned(),
            "replace it with a file",
        ),
        Trouble::TooLarge(size) => Finding::about(
            &rule::FILE_TOO_LARGE,
            Severity::Error,
            path,
            format!("the file has {size} bytes, more than the limit"),
            "move parts of it to files beside it",
        ),
    })
}

/// The finding about an entry whose name is no text, so that nobody could ask for it.
pub(super) fn not_text(path: &Path) -> Finding {
    Finding::about(
        &rule::FILE_UNREADABLE,
        Severity::Error,
        path,
        "the name of this entry is not valid UTF-8; it is left out".to_owned(),
        "rename it",
    )
}

/// The words of a system error, without its number.
fn lower(error: &io::Error) -> String {
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
