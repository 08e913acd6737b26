//! The cache of fetched packages: files by digest, and folders made of them.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    digest::{ContentDigest, TreeFile},
    source::SkillSource,
};

/// The cache of fetched packages. Several processes can use one at the same time, and one that is
/// killed leaves nothing behind that another would use.
#[derive(Debug, Clone)]
pub struct PackageCache {
    folder: PathBuf,
}

/// An empty folder to unpack into; removed when it is dropped.
#[derive(Debug)]
pub struct CacheDraft {
    folder: tempfile::TempDir,
}

/// How files were put somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placing {
    /// As hard links to files of the cache.
    HardLinks,
    /// As copies, because hard links were not possible.
    Copies,
}

/// The cache cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// A file or folder of it, or a folder to write, cannot be used.
    #[error("cannot {action} `{path}`")]
    Io {
        /// The verb, such as `read`.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file is not in the cache, or not as it was written.
    #[error("`{0}` is not in the cache")]
    Missing(ContentDigest),
}

/// A read-only folder in the cache, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedTree {
    /// The folder; do not write there.
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
    /// When this version was published, in seconds since 1970: the time of the commit, or what a registry says.
    pub published: Option<u64>,
    /// What a user should know about it, such as links that were left out: each a sentence.
    pub notes: Vec<String>,
    /// Why its registry warns of it; a user should be asked before it is used.
    pub warning: Option<String>,
}

impl PackageCache {
    /// Opens or creates a cache in a folder.
    pub fn open(folder: &Path) -> Result<Self, CacheError> {
        Ok(Self { folder: folder.to_owned() })
    }

    /// Creates an empty folder on the file system of the cache.
    pub fn draft(&self) -> Result<CacheDraft, CacheError> {
        let _ = &self.folder;
        todo!()
    }

    /// Moves the files of a draft into the cache, and returns a folder of the cache that has them.
    pub fn insert(&self, _draft: CacheDraft, _files: &[TreeFile]) -> Result<PathBuf, CacheError> {
        todo!()
    }

    /// Returns a folder of the cache with these files if all of them are there, unchanged.
    pub fn folder_of(&self, _files: &[TreeFile]) -> Option<PathBuf> {
        todo!()
    }

    /// Writes files to a new folder that does not exist yet, as hard links or copies, and syncs it.
    pub fn place(&self, _files: &[TreeFile], _folder: &Path) -> Result<Placing, CacheError> {
        todo!()
    }

    /// Remembers which tree a key such as `git URL COMMIT` stands for.
    pub fn remember(&self, _key: &str, _tree: &FetchedTree) -> Result<(), CacheError> {
        todo!()
    }

    /// Returns the tree that a key stands for, if all of its files are still there.
    pub fn recall(&self, _key: &str) -> Option<FetchedTree> {
        todo!()
    }
}

impl CacheDraft {
    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
