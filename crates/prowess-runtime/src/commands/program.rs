//! The program behind a name: found in fixed directories and among the user's interpreters, and
//! identified by more than its name.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::sys::{MetadataExt as _, PermissionsExt as _};
use crate::{policy::Policy, refusal::Refusal};

use super::Argument;

/// A program of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// The path to start it by; a program may behave differently by name.
    pub(super) path: PathBuf,
    /// The target of the links in that path.
    real: PathBuf,
    /// The name that it was allowed by.
    name: String,
    stamp: Stamp,
}

/// Identifies a file, to detect its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// The search path for programs. The environment is ignored.
const PLACES: &[&str] =
    &["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Programs that can do anything, so that they must not be allowed under another name.
const POWERFUL: &[&str] = &[
    "ash", "awk", "bash", "busybox", "chroot", "dash", "doas", "env", "ex", "expect", "fish",
    "gawk", "irb", "ksh", "lua", "luajit", "mksh", "node", "nodejs", "nsenter", "perl", "php",
    "pkexec", "pypy", "python", "rbash", "ruby", "sh", "sudo", "su", "tclsh", "toybox", "unshare",
    "vi", "vim", "xargs", "zsh",
];

/// Builtins of a shell.
const BUILTINS: &[&str] = &[
    ".", ":", "alias", "bg", "bind", "builtin", "cd", "command", "declare", "disown", "enable",
    "eval", "exec", "exit", "export", "fc", "fg", "getopts", "hash", "history", "jobs", "let",
    "local", "mapfile", "popd", "pushd", "read", "readonly", "return", "set", "shift", "shopt",
    "source", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait",
];

pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

impl Program {
    /// Returns the program of a command that begins with the words of an entry; `None` if it does
    /// not.
    pub(super) fn matching(
        argv: &[Argument],
        entry: &[&str],
        directory: &Path,
        policy: &Policy,
    ) -> Option<Result<Self, Refusal>> {
        let (name, words) = entry.split_first()?;
        let (typed, rest) = argv.split_first()?;
        let typed = &typed.text;
        if rest.len() < words.len() || rest.iter().zip(words).any(|(a, b)| a.text != *b) {
            return None;
        }
        if typed == name && !name.contains('/') {
            return Some(Self::find(name, policy));
        }
        // A path matches a name only if both are the same file with the same name, and itself only
        // if the policy spells it out.
        let path = Path::new(typed);
        let spelled = typed == name && path.is_absolute();
        let same_name = path.components().count() > 1 && path.file_name()?.to_str()? == *name;
        if !spelled && !same_name {
            return None;
        }
        let program = Self::at(&directory.join(path), name)?;
        let is_same = spelled || Self::find(name, policy).is_ok_and(|it| it.real == program.real);
        is_same.then_some(Ok(program))
    }

    /// Finds a program by a path, or by the name of one of the system.
    pub(super) fn named(name: &str, directory: &Path, policy: &Policy) -> Result<Self, Refusal> {
        if !name.contains('/') {
            return Self::find(name, policy);
        }
        Self::at(&directory.join(name), name).ok_or_else(|| Refusal {
            message: format!("there is no program `{name}`"),
            hint: "a relative path starts at the directory in which the command runs".to_owned(),
        })
    }

    /// Finds an interpreter of the user by its name, else a program of the system, else one next to
    /// such an interpreter, as in a virtual environment.
    fn find(name: &str, policy: &Policy) -> Result<Self, Refusal> {
        if let Some(own) = policy.interpreters.get(name) {
            return Self::at(&own.program, name).ok_or_else(|| Refusal {
                message: format!("there is no program `{}`", own.program.display()),
                hint: "it is the configured or active interpreter".to_owned(),
            });
        }
        let found = Self::of_system(name);
        let mut beside = policy.interpreters.values().filter_map(|it| it.program.parent());
        match found {
            Ok(found) => Ok(found),
            Err(refusal) => beside.find_map(|it| Self::at(&it.join(name), name)).ok_or(refusal),
        }
    }

    pub(super) fn of_system(name: &str) -> Result<Self, Refusal> {
        let found = PLACES.iter().find_map(|place| Self::at(&Path::new(place).join(name), name));
        found.ok_or_else(|| Refusal {
            message: format!("there is no program `{name}`"),
            hint: format!("programs are looked for in {}", PLACES.join(", ")),
        })
    }

    fn at(path: &Path, name: &str) -> Option<Self> {
        let real = prowess::real_path(path).ok()?;
        let metadata = fs::metadata(&real).ok()?;
        let is_program = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
        let stamp = stamp(&metadata);
        is_program.then(|| Self { path: path.to_owned(), real, name: name.to_owned(), stamp })
    }

    /// Returns its names, in the policy and on disk.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let own = Path::new(&self.name).file_name().and_then(|it| it.to_str());
        let own = own.unwrap_or_default();
        let real = family(self.real.file_name().and_then(|it| it.to_str()).unwrap_or_default());
        std::iter::once(own).chain((real != family(own)).then_some(real))
    }

    /// Whether it is git, by any of its names.
    pub(super) fn is_git(&self) -> bool {
        self.names().any(|it| it == "git")
    }

    /// Returns the real name, if it is a program that can do anything under an innocent name.
    pub(super) fn disguised_name(&self) -> Option<&str> {
        let mut names = self.names();
        let own = family(names.next().unwrap_or_default());
        let is_obvious = POWERFUL.contains(&own);
        names.next().filter(|it| {
            // awk has many names, which are all treated alike.
            POWERFUL.contains(it) && !is_obvious && !(own.ends_with("awk") && it.ends_with("awk"))
        })
    }

    /// Returns a text that identifies the exact program.
    pub(super) fn identity(&self) -> String {
        format!("{}\0{}\0{:?}", self.path.display(), self.real.display(), self.stamp)
    }

    /// Whether the same file is still in its place.
    pub(super) fn is_unchanged(&self) -> bool {
        let real = prowess::real_path(&self.path).is_ok_and(|it| it == self.real);
        real && fs::metadata(&self.real).is_ok_and(|it| stamp(&it) == self.stamp)
    }

    /// Returns its path, and the target of that.
    pub(super) fn places(&self) -> impl Iterator<Item = &Path> {
        [&*self.path, &*self.real].into_iter()
    }
}

/// Returns a name without its version: `python3.11` is `python`.
pub(super) fn family(name: &str) -> &str {
    let plain = name.split('.').next().unwrap_or(name);
    let plain = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
    if plain.is_empty() { name } else { plain }
}

fn stamp(metadata: &fs::Metadata) -> Stamp {
    Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        changed: (metadata.mtime(), metadata.mtime_nsec()),
    }
}
