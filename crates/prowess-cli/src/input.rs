//! Input from the command line, a file or standard input.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use anyhow::{Context as _, Result, bail};

use crate::ExitStatus;

/// The largest input, in bytes.
const MOST: u64 = 8 * 1024 * 1024;

/// Returns the text of an argument: the file after `@`, standard input for `-`, otherwise the
/// argument itself.
pub(crate) fn read_text(typed: &str) -> Result<String> {
    let (source, name): (Box<dyn Read>, &str) = match (typed, typed.strip_prefix('@')) {
        ("-", _) => (Box::new(io::stdin()), "standard input"),
        (_, Some(path)) => (Box::new(open(Path::new(path))?), path),
        _ => return Ok(typed.to_owned()),
    };
    let mut text = String::new();
    let read = source.take(MOST + 1).read_to_string(&mut text);
    read.with_context(|| format!("cannot read `{name}`"))?;
    if text.len() as u64 > MOST {
        bail!("`{name}` has more than {MOST} bytes");
    }
    Ok(text)
}

/// Opens a regular file.
pub(crate) fn open(path: &Path) -> Result<File> {
    // Opening a pipe would wait for its writer.
    let opened = match fs::metadata(path) {
        Ok(it) if !it.is_file() => {
            bail!("`{}` is not a regular file; `-` reads standard input", path.display());
        }
        Ok(_) => File::open(path),
        Err(error) => Err(error),
    };
    opened.with_context(|| format!("cannot open `{}`", path.display()))
}

/// Returns the exit status of a command whose input could not be read: input that was not read is
/// not known to be wrong.
pub(crate) fn exit_status(error: &anyhow::Error) -> ExitStatus {
    let is_unread = error.chain().any(|it| it.is::<io::Error>());
    if is_unread { ExitStatus::Error } else { ExitStatus::Failure }
}
