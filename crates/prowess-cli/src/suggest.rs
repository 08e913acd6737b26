//! What may be meant by a path that is not there.

use std::{fs, path::Path};

use prowess::nearest;

/// How many names of a folder are looked at.
const MOST: usize = 10_000;

/// What lies beside a path that is not there, and is called almost the same.
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
