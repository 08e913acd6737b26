//! Finds the skills in a folder of a package.

use crate::digest::{ContentDigest, TreeFile};

/// A skill in a [`FetchedTree`](crate::FetchedTree).
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
