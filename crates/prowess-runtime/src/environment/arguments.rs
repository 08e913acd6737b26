//! Arguments of a script that name files: the script can read these, by the path that was typed.

use std::{
    ffi::{OsStr, OsString},
    fs::DirBuilder,
    io,
    path::{Component, Path, PathBuf},
};

use crate::sys::{DirBuilderExt as _, OsStrExt as _, symlink};

use prowess_sandbox::{Work, is_of_system};

/// Arguments of a script. Those made from a list of words are passed on unchanged, and name no
/// files.
#[derive(Debug, Clone, Default)]
pub struct ScriptArguments {
    pub(crate) words: Vec<OsString>,
    /// Files that the script may read, because they are named.
    pub(crate) reads: Vec<PathBuf>,
    /// Named files that the script may not read.
    pub(crate) withheld: Vec<PathBuf>,
    /// Relative paths, and their targets.
    links: Vec<(PathBuf, PathBuf)>,
}

/// The way in which a script reaches the file behind a relative path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathAccess {
    /// Directly: the script starts in the user's directory.
    Plain,
    /// By a link in the directory that the script starts in.
    Link,
    /// As an absolute path.
    Absolute,
}

impl From<Vec<OsString>> for ScriptArguments {
    fn from(words: Vec<OsString>) -> Self {
        Self { words, ..Self::default() }
    }
}

impl ScriptArguments {
    /// Lets a script read all files that its arguments name, relative to the directory `here`. The
    /// script starts in `directory`, or in its work directory.
    pub fn naming_files(words: &[OsString], here: &Path, directory: Option<&Path>) -> Self {
        let way = match directory {
            None => PathAccess::Link,
            Some(directory) if directory == here => PathAccess::Plain,
            Some(_) => PathAccess::Absolute,
        };
        let mut arguments = Self::default();
        for word in words {
            let word = arguments.add(word, here, way);
            arguments.words.push(word);
        }
        arguments
    }

    /// Makes relative paths also lead to a directory below `here` that the script may write to.
    pub fn leading_to(&mut self, directory: &Path, here: &Path) {
        if let Ok(below) = directory.strip_prefix(here)
            && below.components().next().is_some()
        {
            self.links.push((below.to_owned(), directory.to_owned()));
        }
    }

    /// Removes the files that `may_read` rejects.
    pub(crate) fn retain(&mut self, may_read: impl Fn(&Path) -> bool) {
        self.reads.retain(|it| may_read(it));
        self.links.retain(|it| may_read(&it.1));
    }

    /// Creates links in the work directory, in which the script starts; returns their paths.
    pub(crate) fn create_links(&self, work: &Work) -> io::Result<Vec<PathBuf>> {
        let mut placed = Vec::new();
        let mut links: Vec<_> = self.links.iter().collect();
        // A folder before its contents.
        links.sort_by_key(|it| it.0.components().count());
        for (path, target) in links {
            let place = work.path().join(path);
            let folder = place.parent().unwrap_or(work.path());
            // A link to a parent folder leads there already.
            if place.exists()
                || DirBuilder::new().recursive(true).mode(0o700).create(folder).is_err()
            {
                continue;
            }
            symlink(target, &place)?;
            placed.push(path.clone());
        }
        Ok(placed)
    }

    /// Adds the file that a word names; returns the word to pass to the script.
    fn add(&mut self, word: &OsStr, here: &Path, way: PathAccess) -> OsString {
        // `--input=a.pdf` names a file after the equals sign.
        let bytes = word.as_bytes();
        let is_option = bytes.starts_with(b"-");
        let sign = bytes.iter().position(|it| *it == b'=').filter(|_| is_option);
        let (option, path) = bytes.split_at(sign.map_or(0, |it| it + 1));
        let path = Path::new(OsStr::from_bytes(path));
        let absolute = here.join(path);
        let names_nothing = path.as_os_str().is_empty() || (is_option && sign.is_none());
        if names_nothing || !absolute.exists() {
            return word.to_owned();
        }
        let plain: PathBuf = path.components().filter(|it| *it != Component::CurDir).collect();
        let is_below = plain.components().all(|it| matches!(it, Component::Normal(_)));
        if !is_everywhere(&absolute) {
            self.reads.push(absolute.clone());
        }
        match way {
            _ if path.is_absolute() => word.to_owned(),
            PathAccess::Plain => word.to_owned(),
            PathAccess::Link if is_below && plain.components().next().is_some() => {
                self.links.push((plain, absolute));
                word.to_owned()
            }
            PathAccess::Link | PathAccess::Absolute => {
                let mut word = OsStr::from_bytes(option).to_owned();
                word.push(absolute);
                word
            }
        }
    }
}

/// Whether every script can read it anyway, as far as it is readable at all.
pub(crate) fn is_everywhere(path: &Path) -> bool {
    let is_own = ["/proc", "/sys", "/dev"].iter().any(|it| path.starts_with(it));
    is_own || path == Path::new("/") || is_of_system(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_arguments_name_is_reached_by_the_path_that_was_typed() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("here");
        fs::create_dir_all(here.join("sub")).unwrap();
        for name in ["a.pdf", "sub/b.pdf", "../c.pdf", "-o"] {
            fs::write(here.join(name), name).unwrap();
        }
        let absolute = here.join("a.pdf");
        let typed =
            ["a.pdf", "./sub/b.pdf", "--in=a.pdf", "../c.pdf", "-o", "out.pdf", "", "/dev/null"];
        let words: Vec<OsString> =
            typed.into_iter().map(OsString::from).chain([absolute.clone().into()]).collect();
        let found = ScriptArguments::naming_files(&words, &here, None);
        let outside = here.join("../c.pdf");
        let mut expected = words.clone();
        expected[3] = outside.clone().into();
        assert_eq!(found.words, expected);
        let b = here.join("./sub/b.pdf");
        let reads: Vec<&Path> = found.reads.iter().map(PathBuf::as_path).collect();
        assert_eq!(reads, [&*absolute, &b, &absolute, &outside, &absolute]);
        let work = Work::new().unwrap();
        found.create_links(&work).unwrap();
        assert_eq!(fs::read_to_string(work.path().join("sub/b.pdf")).unwrap(), "sub/b.pdf");
        let plain = ScriptArguments::naming_files(&words, &here, Some(&here));
        assert_eq!(plain.words, words);
        let elsewhere = ScriptArguments::naming_files(&words[..1], &here, Some(folder.path()));
        assert_eq!(elsewhere.words, [absolute.into_os_string()]);
    }
}
