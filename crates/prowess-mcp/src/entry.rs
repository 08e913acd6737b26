//! The entry of a skill: all that a host has to know before it reads any of its files.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{
    carried::{Carried, DOCUMENT},
    uri,
};

/// The entry of a skill, as `skills/list` and `skills/get` tell it.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    uri: String,
    frontmatter: Map<String, Value>,
    resources: Vec<Digested>,
}

/// A file of a skill, with what its content is known by.
#[derive(Debug, Serialize)]
struct Digested {
    uri: String,
    digest: String,
    size: usize,
}

impl Entry {
    /// Makes the entry of a skill whose folder has this URI. A file that cannot be read now is not
    /// served now, and is left out.
    pub(crate) fn new(skill: &Carried, base: &str) -> Self {
        let paths = skill.files.iter().map(|it| &*it.path);
        let digested = |path: &str| {
            let bytes = skill.read(path)?;
            let hex =
                Sha256::digest(&bytes).iter().map(|it| format!("{it:02x}")).collect::<String>();
            let (uri, digest) = (uri::below(base, path), format!("sha256:{hex}"));
            Some(Digested { uri, digest, size: bytes.len() })
        };
        Self {
            uri: uri::below(base, DOCUMENT),
            frontmatter: skill.frontmatter.clone(),
            resources: std::iter::once(DOCUMENT).chain(paths).filter_map(digested).collect(),
        }
    }

    /// Roughly how many bytes it takes to tell it; those that were read for it count a little.
    pub(crate) fn cost(&self) -> usize {
        let told = serde_json::to_string(self).map_or(0, |it| it.len());
        told + self.resources.iter().map(|it| it.size).sum::<usize>() / 16
    }
}
