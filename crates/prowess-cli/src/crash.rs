//! What the program does when it panics, which is always a bug of its own.

use std::{
    io::{self, Write as _},
    panic::{self, PanicHookInfo},
    process,
};

use crate::{safe, sys};

/// The exit status after a panic, which is that of Rust programs.
const CRASHED: i32 = 101;

/// Ends the program at a panic in any thread, with a message. Where panics unwind, as in tests, the
/// thread that panics is the only one that ends.
pub(crate) fn end_on_panic() {
    if cfg!(panic = "abort") {
        panic::set_hook(Box::new(|panic| {
            sys::restore_terminal();
            let _ = io::stderr().write_all(message(panic).as_bytes());
            end();
        }));
    }
}

/// Returns the message. The text of a panic may have parts of a foreign file in it.
fn message(panic: &PanicHookInfo<'_>) -> String {
    let what = panic.payload_as_str().unwrap_or("it did not say why");
    let place = panic.location().map(|it| format!(" ({it})")).unwrap_or_default();
    format!(
        "error: prowess crashed: {}{place}\n\
         hint: this is a bug; please report it with this message. Files and sessions are whole\n",
        safe::line(what),
    )
}

/// Ends without a core file, which would have keys and conversations in it.
#[expect(clippy::exit, reason = "main may not be able to return")]
fn end() -> ! {
    process::exit(CRASHED)
}
