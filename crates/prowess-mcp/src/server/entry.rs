//! The entry of a skill: everything that a host needs before it reads any of its files.

use prowess::spec::SKILL_FILE;
use prowess_runtime::text::hex;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::server::{publishable::PublishableSkill, uri};

/// The entry of a skill, as returned by `skills/list` and `skills/get`.
#[derive(Debug, Serialize)]
pub(crate) struct SkillListing {
    uri: String,
    frontmatter: Map<String, Value>,
    resources: Vec<DigestedFile>,
}

/// A file of a skill with its digest.
#[derive(Debug, Serialize)]
pub(crate) struct DigestedFile {
    pub(crate) uri: String,
    pub(crate) digest: String,
    size: usize,
}

impl SkillListing {
    /// Creates the entry of a skill whose folder has this URI.
    pub(crate) fn new(skill: &PublishableSkill, base: &str) -> Self {
        let resources = Self::files(skill).map(|(path, digest, size)| DigestedFile {
            uri: uri::child_uri(base, path),
            digest,
            size,
        });
        Self {
            uri: uri::child_uri(base, SKILL_FILE),
            frontmatter: skill.frontmatter.clone(),
            resources: resources.collect(),
        }
    }

    /// Returns only the `SKILL.md` of a skill whose folder has this URI.
    pub(crate) fn document(skill: &PublishableSkill, base: &str) -> DigestedFile {
        let size = skill.document.len();
        DigestedFile {
            uri: uri::child_uri(base, SKILL_FILE),
            digest: digest(&skill.document),
            size,
        }
    }

    /// Returns path, digest and size of every file of a skill, the `SKILL.md` first. A file that
    /// cannot be read at the moment is left out.
    pub(crate) fn files(skill: &PublishableSkill) -> impl Iterator<Item = (&str, String, usize)> {
        let paths = skill.files.iter().map(|it| &*it.path);
        std::iter::once(SKILL_FILE).chain(paths).filter_map(|path| {
            let bytes = skill.read(path)?;
            Some((path, digest(&bytes), bytes.len()))
        })
    }

    /// Returns its approximate size in bytes; the bytes of its files count with a small weight.
    pub(crate) fn cost(&self) -> usize {
        let told = serde_json::to_string(self).map_or(0, |it| it.len());
        told + self.resources.iter().map(|it| it.size).sum::<usize>() / 16
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(Sha256::digest(bytes)))
}
