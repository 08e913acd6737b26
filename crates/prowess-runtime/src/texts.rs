//! The texts of a directory, read for a search in them.

use std::{
    ffi::OsStr,
    io::Read as _,
    path::{Path, PathBuf},
};

use prowess_sandbox::{DirectoryEntry, FileType, Links, Root, RootError};

/// The texts of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Texts {
    /// Each file with its path inside the directory, sorted by it.
    pub files: Vec<(String, String)>,
    /// The files that were not read, each with the reason.
    pub left_out: Vec<String>,
}

/// The extensions of texts.
const EXTENSIONS: &[&str] = &["md", "markdown", "txt", "rst", "adoc"];
/// The maximum size of a file, and of all together, in bytes.
const MAX_FILE: u64 = 1024 * 1024;
const MAX_TOTAL: usize = 64 * 1024 * 1024;
/// The maximum depth, and the maximum number of entries of a directory.
const MAX_DEPTH: usize = 8;
const MAX_ENTRIES: usize = 10_000;
/// The maximum number of directories.
const MAX_DIRECTORIES: usize = 10_000;

/// Reads the Markdown and text files below a directory. Links are not followed, hidden files are
/// skipped, and files that are too large or not text are left out.
pub fn texts(root: &Root) -> Texts {
    let mut texts = Texts::default();
    let mut directories = vec![PathBuf::new()];
    let (mut looked, mut room) = (0, MAX_TOTAL);
    while let Some(directory) = directories.pop() {
        looked += 1;
        if looked > MAX_DIRECTORIES {
            texts.left_out.push(format!("there are more than {MAX_DIRECTORIES} directories"));
            break;
        }
        let page = match root.page(&directory, Links::Never, 0, MAX_ENTRIES) {
            Ok(page) => page,
            Err(error) => {
                texts.leave_out(&directory, &error.to_string());
                continue;
            }
        };
        if page.total > MAX_ENTRIES {
            texts.leave_out(
                &directory,
                &format!("of {} entries, {MAX_ENTRIES} are read", page.total),
            );
        }
        for DirectoryEntry { name, kind, .. } in page.entries {
            let path = directory.join(&name);
            let is_skipped = name.as_encoded_bytes().starts_with(b".") || name == "node_modules";
            match kind {
                _ if is_skipped => {}
                FileType::Directory if path.components().count() < MAX_DEPTH => {
                    directories.push(path);
                }
                FileType::Directory => texts.leave_out(&path, "it is nested too deeply"),
                FileType::RegularFile if is_text(&path) => match read(root, &path) {
                    Ok(text) if text.len() <= room => {
                        room -= text.len();
                        texts.files.push((path.to_string_lossy().into_owned(), text));
                    }
                    Ok(_) => texts.leave_out(&path, "the size limit is reached"),
                    Err(why) => texts.leave_out(&path, &why),
                },
                _ => {}
            }
        }
    }
    texts.files.sort();
    texts.left_out.sort();
    texts
}

impl Texts {
    fn leave_out(&mut self, path: &Path, why: &str) {
        self.left_out.push(format!("`{}`: {why}", path.display()));
    }
}

fn is_text(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    EXTENSIONS.iter().any(|it| it.eq_ignore_ascii_case(extension))
}

fn read(root: &Root, path: &Path) -> Result<String, String> {
    let file = root.file(path, Links::Never).map_err(|it: RootError| it.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|it| it.to_string())?;
    match String::from_utf8(bytes) {
        Ok(text) if text.len() as u64 > MAX_FILE => {
            Err(format!("it has more than {MAX_FILE} bytes"))
        }
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err("it is not text".to_owned()),
    }
}
