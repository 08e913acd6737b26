//! Validates names and paths from outside.

use std::{ffi::OsStr, path::Path};

use prowess::{is_plain_name, spec::SKILL_FILE};

use super::StoreError;
use crate::protected::is_named;

/// The maximum length of the path of a resource, in bytes.
const MAX_LENGTH: usize = 1024;

/// Refuses a name that is invalid for a new folder.
pub(super) fn check_name(name: &str) -> Result<&str, StoreError> {
    if is_plain_name(name) { Ok(name) } else { Err(StoreError::BadName { name: name.to_owned() }) }
}

/// Refuses a path that is invalid for a resource, on this or any other system.
pub(super) fn check_resource(path: &str) -> Result<&Path, StoreError> {
    let bad = |why| Err(StoreError::BadPath { path: path.to_owned(), why });
    let inside = path.strip_prefix("./").unwrap_or(path);
    let mut parts = inside.split('/');
    if inside.len() > MAX_LENGTH {
        bad("it is too long")
    } else if inside.contains(char::is_control) {
        bad("it has control characters")
    } else if inside.contains(['\\', ':']) {
        bad("it has a backslash or a colon")
    } else if inside.starts_with('/') {
        bad("it is absolute")
    } else if parts.clone().any(|it| it == "..") {
        bad("it leaves the folder")
    } else if parts.clone().any(|it| matches!(it, "" | ".")) {
        bad("a part of it is empty")
    } else if parts.clone().any(|it| is_named(OsStr::new(it), ".git")) {
        bad("this path is reserved for git")
    } else if parts.next().is_some_and(|it| it.eq_ignore_ascii_case(SKILL_FILE)) {
        bad("it is the skill itself")
    } else {
        Ok(Path::new(inside))
    }
}
