//! The cache of fetched packages: files by digest, and folders made of them.

use std::path::PathBuf;

use crate::{
    digest::{ContentDigest, TreeFile},
    source::SkillSource,
};

/// A read-only folder in the cache, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedTree {
    /// The folder.
    pub folder: PathBuf,
    /// Its files, in the byte order of their paths.
    pub files: Vec<TreeFile>,
    /// The digest of its files.
    pub digest: ContentDigest,
    /// The source that was asked for.
    pub source: SkillSource,
    /// The URL or path that it was fetched from, after redirects.
    pub url: String,
    /// The commit of a repository, in hex.
    pub commit: Option<String>,
    /// The branch or tag that was followed, such as `refs/heads/main`.
    pub reference: Option<String>,
    /// The version that a registry gave.
    pub version: Option<String>,
}
