//! Finds the skills in a folder of a package.

use std::path::Path;

use prowess::Finding;

use crate::{
    digest::{ContentDigest, TreeFile},
    source::SkillSource,
};

/// A skill in a folder of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackagedSkill {
    /// The name in its frontmatter.
    pub name: String,
    /// The description in its frontmatter.
    pub description: String,
    /// The folder in the tree, with `/`; empty for a skill that is the whole tree.
    pub path: String,
    /// Its files, with paths below its folder, in byte order.
    pub files: Vec<TreeFile>,
    /// The digest of its files.
    pub digest: ContentDigest,
    /// The plugin that brings it.
    pub plugin: Option<String>,
    /// Whether other package managers for skills do not see it where it is.
    pub overlooked: bool,
    /// Whether its author keeps it from being offered: `metadata.internal` in its frontmatter.
    pub internal: bool,
}

/// What is in a folder of a package.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DiscoveredPackage {
    /// Its skills, by path.
    pub skills: Vec<PackagedSkill>,
    /// What is wrong with those that were left out, and with manifests of plugins.
    pub findings: Vec<Finding>,
    /// Plugins of its marketplace that are elsewhere: name and source.
    pub elsewhere: Vec<(String, SkillSource)>,
}

/// Finds all skills below a folder, whose files are listed in the byte order of their paths.
pub fn discover(_folder: &Path, _files: &[TreeFile], _below: &str) -> DiscoveredPackage {
    todo!()
}
