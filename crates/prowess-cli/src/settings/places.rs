//! The places of settings files.

use std::path::{Path, PathBuf};

use prowess::spec::SKILL_FILE;
use prowess_runtime::sys::{MetadataExt as _, user_id};

/// The name of a settings file.
pub(super) const NAME: &str = "prowess.toml";

/// The places of settings files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// A file named by the user. No other is read then.
    pub only: Option<PathBuf>,
    /// The directory of the user's own file.
    pub user: Option<PathBuf>,
    /// The directory in which the search for a project's file begins; it goes up from here.
    pub from: Option<PathBuf>,
    /// The home directory, for `~`.
    pub home: Option<PathBuf>,
    /// The state directory, in which approvals of projects' files are looked up.
    pub state: Option<PathBuf>,
}

/// A file to read.
#[derive(Debug)]
pub(super) struct ConfigLayer {
    pub(super) file: PathBuf,
    pub(super) owner: Owner,
}

/// The owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    User,
    /// A project, whose file somebody else may have written.
    Project,
    /// The user, who named the file and so trusts it.
    Named,
}

impl Places {
    /// Returns the user's own file, whether or not it exists.
    pub fn user_file(&self) -> Option<PathBuf> {
        self.user.as_ref().map(|it| it.join(NAME))
    }

    /// Returns the files that are looked for, in order of precedence: that of a project first, from
    /// the nearest folder up, then the user's own.
    pub fn candidates(&self) -> Vec<PathBuf> {
        if let Some(file) = &self.only {
            return vec![file.clone()];
        }
        let from = self.from.as_ref().and_then(|it| prowess::real_path(it).ok());
        let above = from.iter().flat_map(|it| it.ancestors()).map(|it| it.join(NAME));
        above.chain(self.user_file()).collect()
    }

    /// Returns the files to read, the one of least precedence first, and those that were ignored.
    pub(super) fn layers(&self) -> (Vec<ConfigLayer>, Vec<(PathBuf, &'static str)>) {
        if let Some(file) = &self.only {
            return (vec![ConfigLayer { file: file.clone(), owner: Owner::Named }], Vec::new());
        }
        let mut ignored_files = Vec::new();
        let user = self.user_file().filter(|it| exists(it));
        let project = self.from.as_ref().and_then(|from| nearest(from, &mut ignored_files));
        let project = project.filter(|it| user.as_ref().is_none_or(|user| !is_same(user, it)));
        let user = user.map(|file| ConfigLayer { file, owner: Owner::User });
        let project = project.map(|file| ConfigLayer { file, owner: Owner::Project });
        (user.into_iter().chain(project).collect(), ignored_files)
    }
}

/// Returns the nearest settings file, here or above, that belongs to the user.
fn nearest(from: &Path, ignored_files: &mut Vec<(PathBuf, &'static str)>) -> Option<PathBuf> {
    let from = prowess::real_path(from).ok()?;
    let above: Vec<&Path> = from.ancestors().collect();
    // A file in a skill came with the skill, even if somebody works there.
    let names = [SKILL_FILE, "skill.md"];
    let inside = above.iter().rposition(|it| names.iter().any(|name| exists(&it.join(name))));
    for (at, folder) in above.into_iter().enumerate() {
        let file = folder.join(NAME);
        if !exists(&file) {
            continue;
        }
        if inside.is_some_and(|inside| at <= inside) {
            ignored_files.push((file, "it belongs to a skill"));
        } else if !is_own(&file) {
            ignored_files.push((file, "it belongs to another user"));
        } else if is_writable_by_all(&file) {
            ignored_files.push((file, "it can be written by everyone"));
        } else {
            return Some(file);
        }
    }
    None
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns whether a file belongs to the user, or to the system. Anybody can put one into a
/// directory such as `/tmp`.
fn is_own(file: &Path) -> bool {
    let own = [user_id(), 0];
    file.symlink_metadata().is_ok_and(|it| own.contains(&it.uid()))
}

/// Returns whether everybody can write a file.
fn is_writable_by_all(file: &Path) -> bool {
    file.metadata().is_ok_and(|it| it.mode() & 0o002 != 0)
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}
