//! Suggestions for a path that does not exist.

use std::{fs, path::Path};

use prowess::nearest;

/// The most entries of a folder that are compared.
const MOST: usize = 10_000;

/// Returns the entry beside a missing path with almost the same name.
pub(crate) fn path(missing: &Path) -> Option<String> {
    if missing.symlink_metadata().is_ok() {
        return None;
    }
    let folder = missing.parent().filter(|it| !it.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.take(MOST);
    let mut names: Vec<String> =
        entries.filter_map(|it| it.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let near = nearest(missing.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(missing.with_file_name(near).to_string_lossy().into_owned())
}
