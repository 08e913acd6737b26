//! Replacements for SQLite functions that take quadratic time in the length of their arguments and
//! cannot be interrupted: the same in linear time.
#![expect(unsafe_code, reason = "functions can only be replaced through the C interface")]

use std::{
    collections::HashSet,
    ffi::{CStr, c_char, c_int, c_void},
    ptr, slice,
};

use libsqlite3_sys::{self as ffi, sqlite3_context, sqlite3_value};
use sqlx::sqlite::LockedSqliteHandle;

type Function = unsafe extern "C" fn(*mut sqlite3_context, c_int, *mut *mut sqlite3_value);

/// The name, the number of arguments, and the implementation.
const FUNCTIONS: &[(&CStr, c_int, Function)] = &[
    (c"instr", 2, instr),
    (c"replace", 3, replace),
    (c"trim", 2, trim),
    (c"ltrim", 2, trim_start),
    (c"rtrim", 2, trim_end),
];

/// Installs them on a connection, for as long as it is open.
pub(crate) fn install(handle: &mut LockedSqliteHandle<'_>) {
    let database = handle.as_raw_handle().as_ptr();
    let kind = ffi::SQLITE_UTF8 | ffi::SQLITE_DETERMINISTIC | ffi::SQLITE_INNOCUOUS;
    for (name, arguments, function) in FUNCTIONS {
        // SAFETY: the handle is open and locked for us, the name ends in zero, and the functions
        // need no data. One that could not be replaced is unchanged.
        unsafe {
            ffi::sqlite3_create_function_v2(
                database,
                name.as_ptr(),
                *arguments,
                kind,
                ptr::null_mut(),
                Some(*function),
                None,
                None,
                None,
            );
        }
    }
}

/// Returns the bytes of an argument: as a text in SQLite's conversion, or the bytes of a blob;
/// `None` for a null.
///
/// # Safety
///
/// The arguments are those of a call of SQLite, and there is one at this index. The bytes are valid
/// until the call ends.
unsafe fn bytes<'v>(values: *mut *mut sqlite3_value, at: usize, is_text: bool) -> Option<&'v [u8]> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let value = *values.add(at);
        if ffi::sqlite3_value_type(value) == ffi::SQLITE_NULL {
            return None;
        }
        // The pointer is requested first: that converts a number to a text.
        let start = match is_text {
            true => ffi::sqlite3_value_text(value).cast::<c_void>(),
            false => ffi::sqlite3_value_blob(value),
        };
        let length = usize::try_from(ffi::sqlite3_value_bytes(value)).unwrap_or(0);
        match start.is_null() || length == 0 {
            true => Some(&[]),
            false => Some(slice::from_raw_parts(start.cast::<u8>(), length)),
        }
    }
}

/// Returns bytes that are not a text as one in which each is a character: so the same search works
/// for both.
fn decode_latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|it| char::from(*it)).collect()
}

unsafe extern "C" fn instr(
    context: *mut sqlite3_context,
    _: c_int,
    values: *mut *mut sqlite3_value,
) {
    // SAFETY: SQLite calls this with two arguments.
    unsafe {
        let is_bytes =
            (0..2).all(|at| ffi::sqlite3_value_type(*values.add(at)) == ffi::SQLITE_BLOB);
        let (Some(text), Some(part)) = (bytes(values, 0, !is_bytes), bytes(values, 1, !is_bytes))
        else {
            return ffi::sqlite3_result_null(context);
        };
        let [text, part] = [text, part].map(|it| match is_bytes {
            true => decode_latin1(it),
            false => String::from_utf8_lossy(it).into_owned(),
        });
        let at = text.find(&part).map(|at| text[..at].chars().count());
        let at = at.map_or(0, |it| it + 1);
        ffi::sqlite3_result_int64(context, i64::try_from(at).unwrap_or(0));
    }
}

unsafe extern "C" fn replace(
    context: *mut sqlite3_context,
    _: c_int,
    values: *mut *mut sqlite3_value,
) {
    // SAFETY: SQLite calls this with three arguments, and the connection outlives the call.
    unsafe {
        let all = (bytes(values, 0, true), bytes(values, 1, true), bytes(values, 2, true));
        let (Some(text), Some(part), Some(other)) = all else {
            return ffi::sqlite3_result_null(context);
        };
        if part.is_empty() {
            return return_text(context, text);
        }
        let database = ffi::sqlite3_context_db_handle(context);
        let most = ffi::sqlite3_limit(database, ffi::SQLITE_LIMIT_LENGTH, -1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (whole, part) = (decode_latin1(text), decode_latin1(part));
        let mut result = Vec::new();
        for (number, piece) in whole.split(&*part).enumerate() {
            if number > 0 {
                result.extend_from_slice(other);
            }
            result.extend(piece.chars().map(|it| it as u8));
            if result.len() > most {
                return ffi::sqlite3_result_error_toobig(context);
            }
        }
        return_text(context, &result);
    }
}

unsafe extern "C" fn trim(
    context: *mut sqlite3_context,
    _: c_int,
    values: *mut *mut sqlite3_value,
) {
    // SAFETY: SQLite calls this with two arguments.
    unsafe { trim_argument(context, values, true, true) }
}

unsafe extern "C" fn trim_start(
    context: *mut sqlite3_context,
    _: c_int,
    values: *mut *mut sqlite3_value,
) {
    // SAFETY: SQLite calls this with two arguments.
    unsafe { trim_argument(context, values, true, false) }
}

unsafe extern "C" fn trim_end(
    context: *mut sqlite3_context,
    _: c_int,
    values: *mut *mut sqlite3_value,
) {
    // SAFETY: SQLite calls this with two arguments.
    unsafe { trim_argument(context, values, false, true) }
}

/// Trims characters off the start and the end of a text.
///
/// # Safety
///
/// The arguments are those of a call of SQLite, and there are two.
unsafe fn trim_argument(
    context: *mut sqlite3_context,
    values: *mut *mut sqlite3_value,
    start: bool,
    end: bool,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (Some(text), Some(off)) = (bytes(values, 0, true), bytes(values, 1, true)) else {
            return ffi::sqlite3_result_null(context);
        };
        let text = match (str::from_utf8(text), str::from_utf8(off)) {
            (Ok(text), Ok(off)) => trim_text(text, off, start, end).as_bytes().to_vec(),
            _ => trim_text(&decode_latin1(text), &decode_latin1(off), start, end)
                .chars()
                .map(|it| it as u8)
                .collect(),
        };
        return_text(context, &text);
    }
}

fn trim_text<'t>(mut text: &'t str, off: &str, start: bool, end: bool) -> &'t str {
    let off: HashSet<char> = off.chars().collect();
    if start {
        text = text.trim_start_matches(|it| off.contains(&it));
    }
    if end {
        text = text.trim_end_matches(|it| off.contains(&it));
    }
    text
}

/// Returns a text as the result of the call.
///
/// # Safety
///
/// The context is that of a call of SQLite.
unsafe fn return_text(context: *mut sqlite3_context, text: &[u8]) {
    // SAFETY: SQLite copies the text before this returns.
    unsafe {
        ffi::sqlite3_result_text64(
            context,
            text.as_ptr().cast::<c_char>(),
            text.len() as u64,
            ffi::SQLITE_TRANSIENT(),
            ffi::SQLITE_UTF8 as u8,
        );
    }
}
