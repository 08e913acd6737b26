//! What is typed, or lies in a file that is named instead.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use anyhow::{Context as _, Result, bail};

use crate::ExitStatus;

/// The most that is read.
const MOST: u64 = 8 * 1024 * 1024;

/// The text that is meant: of the file behind `@`, of standard input for `-`, else what was typed.
pub(crate) fn text(typed: &str) -> Result<String> {
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

/// Opens an ordinary file.
pub(crate) fn open(path: &Path) -> Result<File> {
    let cannot = || format!("cannot open `{}`", path.display());
    // A pipe would be waited for, whoever writes to it or not.
    if !fs::metadata(path).with_context(cannot)?.is_file() {
        bail!("`{}` is not a regular file; `-` reads standard input", path.display());
    }
    File::open(path).with_context(cannot)
}

/// How a command ends whose input could not be taken: what could not be read is not known to be wrong.
pub(crate) fn status(error: &anyhow::Error) -> ExitStatus {
    let is_unread = error.chain().any(|it| it.is::<io::Error>());
    if is_unread { ExitStatus::Error } else { ExitStatus::Failure }
}
