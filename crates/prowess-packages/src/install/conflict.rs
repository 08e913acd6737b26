//! Why a change cannot be made without losing something of the user's.

use std::path::PathBuf;

/// A reason why nothing is changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallConflict {
    /// There is something that was not installed from a package.
    #[error("`{path}` is {what} that was not installed by Prowess")]
    Occupied {
        /// The skill.
        skill: String,
        /// The path, as the lock has it.
        path: String,
        /// What is there: `a folder`, `a file`, `a link` or `a special file`.
        what: &'static str,
    },
    /// An installed skill was changed since.
    #[error("`{path}` was changed since it was installed: {}", list(files))]
    Changed {
        /// The skill.
        skill: String,
        /// The path, as the lock has it.
        path: String,
        /// The files that were changed, added or removed.
        files: Vec<String>,
    },
    /// A skill would be installed over its own source, in it, or around it.
    #[error("`{path}` overlaps with the source of `{skill}`, `{}`", source_folder.display())]
    SourceOverlap {
        /// The skill.
        skill: String,
        /// The path, as the lock has it.
        path: String,
        /// The folder that it is copied from.
        source_folder: PathBuf,
    },
    /// Two targets of a skill are the same folder, because of a link.
    #[error("`{path}` and `{other}` are the same folder")]
    SamePlace {
        /// The skill.
        skill: String,
        /// The path of one, as the lock has it.
        path: String,
        /// The path of the other.
        other: String,
    },
    /// Two skills have one name, or names that some systems do not tell apart.
    #[error("`{name}` and `{other}` cannot be installed together: {}", if name == other { "they have the same name" } else { "some systems do not tell their names apart" })]
    SameName {
        /// The name of one.
        name: String,
        /// The name of the other.
        other: String,
    },
    /// There is a folder whose name some systems do not tell apart.
    #[error(
        "`{path}` cannot be created beside `{existing}`: some systems do not tell their names apart"
    )]
    SimilarName {
        /// The skill.
        skill: String,
        /// The path, as the lock has it.
        path: String,
        /// The name of the folder that is there.
        existing: String,
    },
    /// A directory of a client leads out of the project, or into the folder of a repository.
    #[error("`{}` is a link that leads out of the project, into `.git`, or to nothing", link.display())]
    LinkOutside {
        /// The skill.
        skill: String,
        /// The link.
        link: PathBuf,
    },
    /// There is a file in place of a directory of a client.
    #[error("`{}` is not a folder", path.display())]
    NotADirectory {
        /// The skill.
        skill: String,
        /// The path.
        path: PathBuf,
    },
    /// A target of the lock is in no directory that a client reads.
    #[error("`{path}` is in no directory that clients read")]
    NoClientDirectory {
        /// The skill.
        skill: String,
        /// The path, as the lock has it.
        path: String,
    },
    /// A name cannot be that of a folder on every system.
    #[error("`{name}` cannot be the name of an installed skill")]
    BadName {
        /// The name.
        name: String,
    },
}

impl InstallConflict {
    /// Returns what to do.
    pub fn hint(&self) -> String {
        match self {
            Self::Occupied { skill, path, .. } => format!(
                "move `{path}` away, or install the package under another name: \
                 `another-name = {{ source = …, skill = \"{skill}\" }}`"
            ),
            Self::Changed { skill, .. } => format!(
                "`prowess update {skill}` merges your changes with the new version, and `--force` moves \
                 them to the trash; `prowess undo` brings them back"
            ),
            Self::SourceOverlap { source_folder, .. } => format!(
                "clients find it where it is; to install a copy, move `{}` out of the directories of clients",
                source_folder.display()
            ),
            Self::SamePlace { path, .. } => {
                format!("leave `{path}` out: a client that reads one of them reads both")
            }
            Self::SameName { name, .. } => format!(
                "remove one of them, or install it under another name: \
                 `{name}-2 = {{ source = …, skill = \"{name}\" }}`"
            ),
            Self::SimilarName { existing, .. } => {
                format!("rename `{existing}`, or install the package under another name")
            }
            Self::LinkOutside { link, .. } => {
                format!(
                    "replace the link `{}` by a folder, or choose other clients",
                    link.display()
                )
            }
            Self::NotADirectory { path, .. } => {
                format!("move `{}` away, or choose other clients", path.display())
            }
            Self::NoClientDirectory { skill, .. } => {
                format!("edit the targets of `{skill}` in the lock file, or remove its entry")
            }
            Self::BadName { .. } => {
                "install it under another name, of letters, digits and hyphens".to_owned()
            }
        }
    }
}

/// Returns the first few of some names.
fn list(files: &[String]) -> String {
    const SHOWN: usize = 3;
    let named: Vec<String> = files.iter().take(SHOWN).map(|it| format!("`{it}`")).collect();
    let named = named.join(", ");
    match files.len().saturating_sub(SHOWN) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
