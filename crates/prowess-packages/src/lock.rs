//! Reads and writes the lock file.

use crate::{
    digest::{ContentDigest, TreeFile},
    source::SkillSource,
};

/// The name of a lock file.
pub const LOCK_FILE: &str = "prowess.lock";

/// A lock file: what is installed, byte for byte.
#[derive(Debug, Clone, Default)]
pub struct Lock {
    /// The skills, by name.
    skills: Vec<LockedSkill>,
    /// The document that it was read from, with fields of newer versions.
    document: toml_edit::DocumentMut,
}

/// A skill of a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockedSkill {
    /// The name that it is installed under, which is also that of its folder.
    pub name: String,
    /// The name in its frontmatter, if it is another.
    pub skill: Option<String>,
    /// Where it comes from, as the manifest says it.
    pub source: SkillSource,
    /// The URL that it was fetched from.
    pub url: String,
    /// The branch or tag that was followed.
    pub reference: Option<String>,
    /// The commit, in hex.
    pub commit: Option<String>,
    /// The version that a registry gave.
    pub version: Option<String>,
    /// The folder in the repository or archive; empty for the whole.
    pub path: String,
    /// The digest of its files.
    pub digest: ContentDigest,
    /// Its files.
    pub files: Vec<TreeFile>,
    /// Who signed it.
    pub signer: Option<String>,
    /// Where it is installed.
    pub targets: Vec<InstallTarget>,
}

/// A place that a skill is installed in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct InstallTarget {
    /// The folder of the skill: relative to the project with `/`, or `~/…`.
    pub path: String,
    /// Whether it has its own files, or is a link to the first target.
    pub form: TargetForm,
}

/// The form of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TargetForm {
    /// A folder with the files.
    Folder,
    /// A relative link to the folder of another target.
    Link,
}

impl Lock {
    /// Returns the skills, by name.
    pub fn skills(&self) -> &[LockedSkill] {
        let _ = &self.document;
        &self.skills
    }
}
