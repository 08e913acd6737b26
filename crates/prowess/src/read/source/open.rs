//! Opening files: each is opened without blocking and checked before it is read, so that a pipe or
//! device cannot block.

use std::{
    borrow::Cow,
    fs::File,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use super::{
    ReadError,
    sys::{self, FolderHandle, Kind},
    trouble::Trouble,
};

/// Reads a whole file, if it is inside `allowed`.
pub(super) fn read_all(path: &Path, allowed: &[PathBuf], limit: u64) -> Result<Vec<u8>, ReadError> {
    let file = open_contained(path, allowed)?;
    let size = file.metadata().map_or(0, |it| it.len()).min(limit);
    // With room for one more byte, the end is reached without growing the buffer.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// Opens a regular file that is inside `allowed` once every link is resolved.
///
/// The resolved path is opened without following any link, so that a link swapped in meanwhile is
/// not followed.
pub(super) fn open_contained(path: &Path, allowed: &[PathBuf]) -> Result<File, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let file = match open_plain(path, allowed) {
        Some(file) => file,
        None => {
            let real = std::fs::canonicalize(path).map_err(failed)?;
            if !is_inside(&real, allowed) {
                return Err(ReadError::Outside { path: path.to_owned() });
            }
            sys::open_file(&real).map_err(failed)?
        }
    };
    if sys::file_state(&file).map_err(failed)?.kind != Kind::File {
        return Err(ReadError::NotRegular { path: path.to_owned() });
    }
    Ok(file)
}

/// Opens a path that is inside `allowed` and contains no link, as most do: there is nothing to
/// resolve.
fn open_plain(path: &Path, allowed: &[PathBuf]) -> Option<File> {
    let is_plain = path.components().all(|it| it != Component::ParentDir);
    (is_plain && is_inside(path, allowed)).then(|| sys::open_unresolved(path))?
}

/// Whether a path without links is inside one of the directories, and not in a `.git` folder, which
/// may contain tokens.
pub(super) fn is_inside(real: &Path, allowed: &[PathBuf]) -> bool {
    let inside = allowed.iter().filter_map(|it| real.strip_prefix(it).ok());
    inside.into_iter().any(|it| !it.iter().any(|part| sys::is_name(part, ".git")))
}

/// One entry of a directory.
pub(super) struct FolderEntry {
    /// The name; with replacement characters if it is not valid UTF-8.
    pub(super) name: Box<str>,
    pub(super) is_text: bool,
    pub(super) kind: Kind,
}

/// A directory with its entries.
pub(super) struct Entries {
    pub(super) directory: FolderHandle,
    pub(super) names: Vec<FolderEntry>,
}

/// Lists the entries of a directory.
pub(super) fn list(directory: FolderHandle) -> Result<Entries, Trouble> {
    let mut names = Vec::new();
    directory.for_each_entry(|name, kind| {
        let text = name.to_string_lossy();
        let is_text = matches!(text, Cow::Borrowed(_));
        names.push(FolderEntry { name: text.into(), is_text, kind });
    })?;
    Ok(Entries { directory, names })
}
