//! The authorizer for SQLite, which asks about each action of a statement while it prepares it.
#![expect(unsafe_code, reason = "an authorizer and limits can only be set through the C interface")]

use std::ffi::{CStr, c_char, c_int, c_void};

use libsqlite3_sys::{self as ffi, sqlite3_get_autocommit, sqlite3_limit, sqlite3_set_authorizer};
use sqlx::sqlite::LockedSqliteHandle;

use crate::database::{Access, SqlLimits};

/// Limits of resources without a clock: a function that runs long on a large value cannot be
/// interrupted, so no value may become large.
const LIMITS: [(c_int, c_int); 4] = [
    (ffi::SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (ffi::SQLITE_LIMIT_VDBE_OP, 25_000),
    (ffi::SQLITE_LIMIT_ATTACHED, 0),
    (ffi::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 250),
];

/// Functions that load code or access files, if a host has added them.
const FORBIDDEN_FUNCTIONS: &[&str] = &[
    "load_extension",
    "fts3_tokenizer",
    "readfile",
    "writefile",
    "edit",
    "fsdir",
    "lsmode",
    "zipfile",
];

/// Pragmas that describe one table or index.
const TABLE_PRAGMAS: &[&str] = &[
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "foreign_key_check",
    "quick_check",
    "integrity_check",
];

/// Pragmas that only read, as long as they are not given a value.
const GETTER_PRAGMAS: &[&str] = &[
    "application_id",
    "collation_list",
    "compile_options",
    "data_version",
    "encoding",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "journal_mode",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "schema_version",
    "user_version",
];

/// The suffixes of the shadow tables of full-text and spatial indexes. SQLite prepares writing to
/// them even if they are only read.
const SHADOW_SUFFIXES: &[&str] = &[
    "_config",
    "_content",
    "_data",
    "_docsize",
    "_idx",
    "_node",
    "_parent",
    "_rowid",
    "_segdir",
    "_segments",
    "_stat",
];

/// The limits of a connection before it was restricted.
pub(crate) struct PreviousLimits(Vec<(c_int, c_int)>);

/// Restricts a connection to what `access` allows, until it is released.
pub(crate) fn restrict(
    handle: &mut LockedSqliteHandle<'_>,
    access: Access,
    limits: &SqlLimits,
) -> PreviousLimits {
    let database = handle.as_raw_handle().as_ptr();
    let length = c_int::try_from(limits.total.max(limits.cell)).unwrap_or(c_int::MAX);
    let limits = LIMITS.into_iter().chain([(ffi::SQLITE_LIMIT_LENGTH, length)]);
    let before = limits.map(|(what, most)| {
        // SAFETY: the handle is open and locked for us.
        (what, unsafe { sqlite3_limit(database, what, most) })
    });
    let before = before.collect();
    let authorize = match access {
        Access::Read => authorize_read,
        Access::Write => authorize_write,
    };
    // SAFETY: the handle is open and locked for us, and the callback needs no data.
    unsafe { sqlite3_set_authorizer(database, Some(authorize), std::ptr::null_mut()) };
    PreviousLimits(before)
}

/// Releases a connection: restores what it allowed before.
pub(crate) fn release(handle: &mut LockedSqliteHandle<'_>, previous: PreviousLimits) {
    let database = handle.as_raw_handle().as_ptr();
    for (what, most) in previous.0 {
        // SAFETY: the handle is open and locked for us.
        unsafe { sqlite3_limit(database, what, most) };
    }
    // SAFETY: the handle is open and locked for us.
    unsafe { sqlite3_set_authorizer(database, None, std::ptr::null_mut()) };
}

/// Whether a transaction is open on a connection.
pub(crate) fn is_in_transaction(handle: &mut LockedSqliteHandle<'_>) -> bool {
    // SAFETY: the handle is open and locked for us.
    unsafe { sqlite3_get_autocommit(handle.as_raw_handle().as_ptr()) == 0 }
}

extern "C" fn authorize_read(
    _: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    to_code(may_read(action, text(&first), text(&second)))
}

extern "C" fn authorize_write(
    _: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    to_code(may_read(action, text(&first), text(&second)) || may_write(action))
}

fn may_read(action: c_int, first: &str, second: &str) -> bool {
    match action {
        ffi::SQLITE_SELECT | ffi::SQLITE_READ | ffi::SQLITE_RECURSIVE => true,
        ffi::SQLITE_FUNCTION => !contains_name(FORBIDDEN_FUNCTIONS, second),
        // Only prepared: a read-only connection executes nothing that writes.
        ffi::SQLITE_INSERT | ffi::SQLITE_UPDATE | ffi::SQLITE_DELETE => {
            SHADOW_SUFFIXES.iter().any(|it| first.ends_with(it))
        }
        ffi::SQLITE_PRAGMA => {
            contains_name(TABLE_PRAGMAS, first)
                || second.is_empty() && contains_name(GETTER_PRAGMAS, first)
        }
        _ => false,
    }
}

fn contains_name(names: &[&str], name: &str) -> bool {
    names.iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// Whether an action only changes tables: no other file, no setting, no transaction.
fn may_write(action: c_int) -> bool {
    matches!(
        action,
        ffi::SQLITE_INSERT
            | ffi::SQLITE_UPDATE
            | ffi::SQLITE_DELETE
            | ffi::SQLITE_CREATE_TABLE
            | ffi::SQLITE_CREATE_TEMP_TABLE
            | ffi::SQLITE_CREATE_INDEX
            | ffi::SQLITE_CREATE_TEMP_INDEX
            | ffi::SQLITE_CREATE_VIEW
            | ffi::SQLITE_CREATE_TEMP_VIEW
            | ffi::SQLITE_CREATE_TRIGGER
            | ffi::SQLITE_CREATE_TEMP_TRIGGER
            | ffi::SQLITE_DROP_TABLE
            | ffi::SQLITE_DROP_TEMP_TABLE
            | ffi::SQLITE_DROP_INDEX
            | ffi::SQLITE_DROP_TEMP_INDEX
            | ffi::SQLITE_DROP_VIEW
            | ffi::SQLITE_DROP_TEMP_VIEW
            | ffi::SQLITE_DROP_TRIGGER
            | ffi::SQLITE_DROP_TEMP_TRIGGER
            | ffi::SQLITE_ALTER_TABLE
            | ffi::SQLITE_REINDEX
            | ffi::SQLITE_ANALYZE
    )
}

fn to_code(is_allowed: bool) -> c_int {
    if is_allowed { ffi::SQLITE_OK } else { ffi::SQLITE_DENY }
}

/// Returns a text of SQLite; for one that is missing or not UTF-8, a text that is on no list.
fn text(pointer: &*const c_char) -> &str {
    if pointer.is_null() {
        return "";
    }
    // SAFETY: SQLite passes texts that end in zero and outlive the call.
    unsafe { CStr::from_ptr(*pointer) }.to_str().unwrap_or("?")
}
