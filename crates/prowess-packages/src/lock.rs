//! Reads and writes the lock file.

mod check;
mod compare;
mod error;
mod write;
mod plain;
mod read;

use std::{collections::BTreeMap, fmt, str::FromStr};

pub use self::{compare::LockDifference, error::LockError};
use crate::{
    digest::{ContentDigest, TreeFile},
    manifest::PackageManifest,
    source::SkillSource,
};

/// The name of a lock file.
pub const LOCK_FILE: &str = "prowess.lock";

/// The version of lock files that is written, and the newest that is read.
const VERSION: i64 = 1;

/// A lock file: what is installed, byte for byte.
///
/// The same skills are the same text. There is one field on a line and one skill behind the other,
/// by name, so that version control merges changes of different skills. Whoever can change a
/// project can change its lock: what is read here has been checked, and can be written again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    /// The skills, by name.
    skills: Vec<LockedSkill>,
    /// Fields that are not known, each as TOML.
    unknown: Vec<(String, String)>,
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
    /// When the version was published, in seconds since 1970.
    pub published: Option<u64>,
    /// The digest of the archive or file that a registry or index promises, as it writes it.
    pub integrity: Option<String>,
    /// The folder in the repository or archive; empty for the whole.
    pub path: String,
    /// The plugin that brings it.
    pub plugin: Option<String>,
    /// The digest of its files.
    pub digest: ContentDigest,
    /// Its files, in the byte order of their paths.
    pub files: Vec<TreeFile>,
    /// Who signed it.
    pub signer: Option<String>,
    /// The clients that the manifest said; none if it did not.
    pub clients: Option<Vec<String>>,
    /// Whether the manifest said that each client gets its own copy.
    pub copy: bool,
    /// Where it is installed.
    pub targets: Vec<InstallTarget>,
    /// Fields that are not known, each as TOML.
    unknown: Vec<(String, String)>,
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
    /// Reads a lock file. It may be anybody's: what it says has been checked.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        read::read(text)
    }

    /// Returns the skills, by name.
    pub fn skills(&self) -> &[LockedSkill] {
        &self.skills
    }

    /// Returns the skill of a name.
    pub fn get(&self, name: &str) -> Option<&LockedSkill> {
        self.place(name).ok().map(|at| &self.skills[at])
    }

    /// Adds a skill, and returns the one of that name before; unknown fields of that one stay.
    ///
    /// Fails, with nothing changed, if the lock could not be read again.
    pub fn insert(&mut self, skill: LockedSkill) -> Result<Option<LockedSkill>, LockError> {
        let before = self.get(&skill.name).cloned();
        self.insert_all([skill])?;
        Ok(before)
    }

    /// Adds and replaces skills like [`insert`](Self::insert), all or none of them; targets may move
    /// from one to another. Of several with one name, the last one counts.
    pub fn insert_all(
        &mut self,
        skills: impl IntoIterator<Item = LockedSkill>,
    ) -> Result<(), LockError> {
        let mut new: BTreeMap<String, LockedSkill> = BTreeMap::new();
        for mut skill in skills {
            skill.files.sort();
            check::skill(&skill)?;
            if let (true, Some(known)) = (skill.unknown.is_empty(), self.get(&skill.name)) {
                skill.unknown.clone_from(&known.unknown);
            }
            new.insert(skill.name.clone(), skill);
        }
        let kept = self.skills.iter().filter(|it| !new.contains_key(&it.name));
        if kept.clone().count() + new.len() > crate::manifest::MAX_SKILLS {
            return Err(LockError::too_many());
        }
        match (new.len(), new.values().next()) {
            // Only one can overlap.
            (1, Some(skill)) => check::targets_among(skill, kept)?,
            _ => check::targets(kept.chain(new.values()))?,
        }
        self.skills.retain(|it| !new.contains_key(&it.name));
        self.skills.extend(new.into_values());
        self.skills.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    /// Removes a skill.
    pub fn remove(&mut self, name: &str) -> Option<LockedSkill> {
        self.place(name).ok().map(|at| self.skills.remove(at))
    }

    /// Returns how the lock differs from what a manifest asks for, by name.
    pub fn differences(&self, manifest: &PackageManifest) -> Vec<LockDifference> {
        compare::differences(self, manifest)
    }

    /// Fails if a skill is installed outside of the project: such a target is only for the lock of a user.
    pub fn check_in_project(&self) -> Result<(), LockError> {
        for skill in &self.skills {
            if let Some(target) = skill.targets.iter().find(|it| !it.is_in_project()) {
                let (skill, path) = (skill.name.clone(), target.path.clone());
                return Err(LockError::Path {
                    line: None,
                    skill,
                    path,
                    why: "is outside of the project",
                });
            }
        }
        Ok(())
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.skills.binary_search_by(|it| it.name.as_str().cmp(name))
    }
}

impl LockedSkill {
    /// Creates one with these files, not installed anywhere yet.
    pub fn new(
        name: impl Into<String>,
        source: SkillSource,
        url: impl Into<String>,
        mut files: Vec<TreeFile>,
    ) -> Self {
        files.sort();
        Self {
            name: name.into(),
            skill: None,
            source,
            url: url.into(),
            reference: None,
            commit: None,
            version: None,
            published: None,
            integrity: None,
            path: String::new(),
            plugin: None,
            digest: ContentDigest::of(&files),
            files,
            signer: None,
            clients: None,
            copy: false,
            targets: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Returns the name in the frontmatter of the skill.
    pub fn skill_name(&self) -> &str {
        self.skill.as_deref().unwrap_or(&self.name)
    }
}

impl InstallTarget {
    /// Creates a target.
    pub fn new(path: impl Into<String>, form: TargetForm) -> Self {
        Self { path: path.into(), form }
    }

    /// Whether it is below the folder of the project, and not below that of the user.
    pub fn is_in_project(&self) -> bool {
        !self.path.starts_with('~')
    }
}

impl FromStr for Lock {
    type Err = LockError;

    fn from_str(text: &str) -> Result<Self, LockError> {
        Self::parse(text)
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write::write(self))
    }
}

impl TargetForm {
    /// Every form with its name in a lock.
    const NAMES: [(Self, &'static str); 2] = [(Self::Folder, "folder"), (Self::Link, "link")];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|it| it.0 == self).map_or("folder", |it| it.1)
    }
}
