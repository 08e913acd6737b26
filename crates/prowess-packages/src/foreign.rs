//! Lock files and records of other package managers for skills.

mod order;
mod sys;
mod yaml;
mod hash;
mod entry;
mod skills_lock;
mod user_lock;
mod apm;
mod clawhub;
mod origin;
mod export;

use std::{collections::BTreeMap, path::Path};

pub use self::{
    export::{
        ExportedFile, ExportedSkill, export_apm_lock, export_apm_manifest, export_skills_lock,
    },
    hash::HashError,
    origin::read_origin,
};
use crate::{
    manifest::{MAX_FILE, MAX_SKILLS},
    source::SkillSource,
};

/// A file of another package manager that lists skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ForeignFormat {
    /// `skills-lock.json` of a project, by `npx skills`.
    SkillsLock,
    /// `.skill-lock.json` of a user, by `npx skills` and `gh skill`.
    UserLock,
    /// `apm.lock.yaml`, by `apm`.
    ApmLock,
    /// `apm.yml`, by `apm`: without its lock file.
    ApmManifest,
    /// `.clawhub/lock.json`, by `clawhub`.
    ClawHub,
}

/// The contents of a file of another package manager.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForeignLock {
    /// The skills that can be taken over, by name.
    pub skills: Vec<ForeignSkill>,
    /// The entries that cannot be taken over.
    pub left_out: Vec<LeftOut>,
}

/// A skill that another package manager installed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForeignSkill {
    /// The name that the other program knows it by.
    pub name: String,
    /// Where it came from, with what is known of reference and path.
    pub source: SkillSource,
    /// The branch, tag or commit that was asked for.
    pub reference: Option<String>,
    /// The commit, in hex.
    pub commit: Option<String>,
    /// The version that a registry gave.
    pub version: Option<String>,
    /// The folder in the repository; empty for the whole, none if it is not recorded.
    pub path: Option<String>,
    /// The hash of its files.
    pub hash: ForeignHash,
    /// The folders that it may be in: relative to the project with `/`, or `~/…`.
    pub folders: Vec<String>,
    /// Why the same bytes cannot be fetched again for certain; none if they can.
    pub unpinned: Option<&'static str>,
}

/// An entry that cannot be taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The name or key in the file.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// A hash of a skill, by the scheme of the program that recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignHash {
    /// None, for a reason.
    None(&'static str),
    /// `computedHash` of `npx skills`: SHA-256 of paths and contents, of the folder before it was installed.
    Computed(String),
    /// The SHA-1 of a git tree.
    GitTree(String),
    /// The fingerprint of an installed skill of `clawhub`.
    ClawHub(String),
    /// The hash that `clawhub` takes of a folder on GitHub.
    ClawHubContent(String),
    /// The hash that `apm` takes of a package.
    ApmPackage(String),
    /// The hashes that `apm` takes of installed files, by their paths in the folder of the skill.
    ApmFiles(BTreeMap<String, String>),
    /// The hash that `skillport` takes of a skill.
    SkillPort(String),
    /// The digest of an entry of `.well-known/agent-skills`: of files in version 0.1.0, else of an archive or file.
    WellKnown(String),
}

/// The result of comparing a folder with a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashCheck {
    /// The folder has the bytes that were recorded.
    Matches,
    /// It has not.
    Differs,
    /// It cannot be said, for a reason.
    NotChecked(String),
}

/// A file of another package manager cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignError {
    /// It has too many bytes or entries.
    #[error("the file has more than {limit}")]
    TooLarge {
        /// The limit.
        limit: String,
    },
    /// It is not JSON or YAML, or of another shape.
    #[error("the file cannot be read: {message}")]
    Syntax {
        /// The fault, with the line if it is known.
        message: String,
    },
    /// It has a version that is not known.
    #[error("the file has version {found}, and version {known} is read")]
    Version {
        /// The version of the file.
        found: String,
        /// The known version.
        known: &'static str,
    },
    /// The system does not give it.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl ForeignFormat {
    /// All formats.
    pub const ALL: [Self; 5] =
        [Self::SkillsLock, Self::UserLock, Self::ApmLock, Self::ApmManifest, Self::ClawHub];

    /// Returns where the files are: below the project, or below `~`. `$XDG_STATE_HOME/skills/.skill-lock.json` comes before that of the home.
    pub fn paths(self) -> &'static [&'static str] {
        match self {
            Self::SkillsLock => &["skills-lock.json"],
            Self::UserLock => &["~/.agents/.skill-lock.json"],
            Self::ApmLock => &["apm.lock.yaml"],
            Self::ApmManifest => &["apm.yml"],
            Self::ClawHub => &[".clawhub/lock.json", ".clawdhub/lock.json"],
        }
    }

    /// Returns the program that writes it.
    pub fn program(self) -> &'static str {
        match self {
            Self::SkillsLock => "npx skills",
            Self::UserLock => "npx skills or gh skill",
            Self::ApmLock | Self::ApmManifest => "apm",
            Self::ClawHub => "clawhub",
        }
    }

    /// Returns the format of a file by its name and that of its folder.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let folder = path.parent().and_then(Path::file_name).and_then(|it| it.to_str());
        Some(match name {
            "skills-lock.json" => Self::SkillsLock,
            ".skill-lock.json" => Self::UserLock,
            "apm.lock.yaml" => Self::ApmLock,
            "apm.yml" => Self::ApmManifest,
            "lock.json" if matches!(folder, Some(".clawhub" | ".clawdhub")) => Self::ClawHub,
            _ => return None,
        })
    }
}

/// Reads a file of another package manager.
pub fn read_foreign(format: ForeignFormat, bytes: &[u8]) -> Result<ForeignLock, ForeignError> {
    if bytes.len() > MAX_FILE {
        return Err(ForeignError::TooLarge { limit: format!("{} MiB", MAX_FILE >> 20) });
    }
    let mut lock = match format {
        ForeignFormat::SkillsLock => skills_lock::read(bytes),
        ForeignFormat::UserLock => user_lock::read(bytes),
        ForeignFormat::ApmLock => apm::read(bytes),
        ForeignFormat::ApmManifest => apm::read_manifest(bytes),
        ForeignFormat::ClawHub => clawhub::read(bytes),
    }?;
    if lock.skills.len() + lock.left_out.len() > MAX_SKILLS {
        return Err(ForeignError::TooLarge { limit: format!("{MAX_SKILLS} skills") });
    }
    lock.skills.sort_by(|a, b| a.name.cmp(&b.name));
    lock.left_out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(lock)
}

impl ForeignSkill {
    /// Compares a folder with the hash that was recorded.
    pub fn verify(&self, folder: &Path) -> HashCheck {
        self.hash.verify(folder)
    }
}

impl ForeignHash {
    /// Compares a folder with the hash, by the scheme of the program that recorded it.
    pub fn verify(&self, folder: &Path) -> HashCheck {
        hash::verify(self, folder)
    }
}

impl ForeignError {
    /// Returns a hint on what to do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Version { .. } => "run the program that wrote it, so that it writes its newest version, or add the skills with `prowess add`".to_owned(),
            Self::Syntax { .. } => "restore the file from version control, or let the program that wrote it write it again".to_owned(),
            Self::TooLarge { .. } | Self::Read { .. } => return None,
        })
    }
}
