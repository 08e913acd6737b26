//! Compares a lock with what a manifest asks for.

use std::fmt;

use super::{Lock, LockedSkill};
use crate::manifest::{PackageManifest, WantedSkill};

/// A difference between a lock and a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockDifference {
    /// The manifest asks for a skill that is not locked.
    Missing {
        /// The name.
        name: String,
    },
    /// The lock has a skill that the manifest does not ask for.
    Extra {
        /// The name.
        name: String,
    },
    /// The skill is locked from another source.
    Source {
        /// The name.
        name: String,
        /// The source in the lock.
        locked: String,
        /// The source in the manifest.
        wanted: String,
    },
    /// Another skill of the source is locked.
    Skill {
        /// The name.
        name: String,
        /// The name in the frontmatter, in the lock.
        locked: String,
        /// The name in the frontmatter, in the manifest.
        wanted: String,
    },
    /// The skill is locked for other clients; none are those that are found.
    Clients {
        /// The name.
        name: String,
        /// The clients in the lock.
        locked: Option<Vec<String>>,
        /// The clients in the manifest.
        wanted: Option<Vec<String>>,
    },
    /// Only one of both says that each client gets its own copy.
    Copy {
        /// The name.
        name: String,
        /// Whether it is the manifest.
        wanted: bool,
    },
}

impl LockDifference {
    /// Returns the name of the skill.
    pub fn name(&self) -> &str {
        match self {
            Self::Missing { name }
            | Self::Extra { name }
            | Self::Source { name, .. }
            | Self::Skill { name, .. }
            | Self::Clients { name, .. }
            | Self::Copy { name, .. } => name,
        }
    }
}

impl fmt::Display for LockDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name } => write!(f, "`{name}` is not in the lock file"),
            Self::Extra { name } => {
                write!(f, "`{name}` is in the lock file, but not in the manifest")
            }
            Self::Source { name, locked, wanted } => {
                write!(
                    f,
                    "`{name}` is locked from `{locked}`, and the manifest asks for `{wanted}`"
                )
            }
            Self::Skill { name, locked, wanted } => {
                write!(
                    f,
                    "`{name}` is locked as the skill `{locked}`, and the manifest asks for `{wanted}`"
                )
            }
            Self::Clients { name, locked, wanted } => {
                let names = |it: &Option<Vec<String>>| {
                    it.as_ref().map_or("those it finds".to_owned(), |it| it.join(", "))
                };
                write!(
                    f,
                    "`{name}` is locked for {}, and the manifest asks for {}",
                    names(locked),
                    names(wanted)
                )
            }
            Self::Copy { name, wanted: true } => {
                write!(f, "`{name}` is locked with links, and the manifest asks for copies")
            }
            Self::Copy { name, wanted: false } => {
                write!(f, "`{name}` is locked as copies, and the manifest asks for links")
            }
        }
    }
}

pub(super) fn differences(lock: &Lock, manifest: &PackageManifest) -> Vec<LockDifference> {
    let mut differences = Vec::new();
    for wanted in manifest.wanted() {
        match lock.get(&wanted.name) {
            None => differences.push(LockDifference::Missing { name: wanted.name.clone() }),
            Some(locked) => compare(locked, wanted, manifest, &mut differences),
        }
    }
    let extra = lock.skills().iter().filter(|it| manifest.get(&it.name).is_none());
    differences.extend(extra.map(|it| LockDifference::Extra { name: it.name.clone() }));
    // Those of one skill stay in their order.
    differences.sort_by(|a, b| a.name().cmp(b.name()));
    differences
}

fn compare(
    locked: &LockedSkill,
    wanted: &WantedSkill,
    manifest: &PackageManifest,
    out: &mut Vec<LockDifference>,
) {
    let name = &wanted.name;
    if locked.source != wanted.source {
        let (locked, wanted) = (locked.source.to_string(), wanted.source.to_string());
        out.push(LockDifference::Source { name: name.clone(), locked, wanted });
    }
    if locked.skill_name() != wanted.skill_name() {
        let (locked, wanted) = (locked.skill_name().to_owned(), wanted.skill_name().to_owned());
        out.push(LockDifference::Skill { name: name.clone(), locked, wanted });
    }
    let clients = manifest.clients_of(wanted);
    if sorted(locked.clients.as_deref()) != sorted(clients) {
        let (locked, wanted) = (locked.clients.clone(), clients.map(<[String]>::to_vec));
        out.push(LockDifference::Clients { name: name.clone(), locked, wanted });
    }
    if locked.copy != manifest.is_copied(wanted) {
        out.push(LockDifference::Copy { name: name.clone(), wanted: manifest.is_copied(wanted) });
    }
}

fn sorted(clients: Option<&[String]>) -> Option<Vec<&str>> {
    let mut names: Vec<&str> = clients?.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    Some(names)
}
