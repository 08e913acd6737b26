//! Fetches a source into the cache.
//!
//! Only the hosts are contacted that a source names, and those that they redirect to over HTTPS, which
//! must be on the internet. Nothing that is fetched is run.

mod error;
mod progress;
mod pipe;
mod sys;
mod web;
mod git_program;
mod git_refs;
mod selection;
mod packed;
mod host_archive;
mod git;
mod local;
mod download;
mod site;
mod clawhub;
mod npm;
mod upload;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use prowess_http::{CertificateError, Proxies, Resolver, Timeouts, Url};

pub use self::{
    clawhub::RegistryMatch,
    error::FetchPackageError,
    progress::{FetchCounts, FetchProgress},
    upload::{SkillUpload, UploadError, UploadedSkill, publish_to_site},
};
use self::{git_program::GitProgram, web::Web};
use crate::{
    archive::ArchiveLimits,
    cache::{CacheDraft, CacheError, FetchedTree, PackageCache},
    digest::{ContentDigest, TreeFile},
    source::{SkillSource, SourceKind},
};

/// Fetches sources into a cache.
///
/// Without [`with_git`](Self::with_git), repositories are fetched as archives over HTTPS, which
/// GitHub, GitLab, Forgejo and Bitbucket offer.
#[derive(Debug)]
pub struct PackageFetcher {
    cache: PackageCache,
    git: Option<GitProgram>,
    web: Web,
    limits: ArchiveLimits,
    offline: bool,
    has_terminal: bool,
    home: Option<PathBuf>,
    clawhub: String,
    npm: String,
    /// Where the APIs of registries are.
    registries: Mutex<BTreeMap<String, String>>,
    progress: FetchProgress,
}

/// The version that a fetched source has to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pin {
    /// This commit of a repository, in hex.
    Commit(String),
    /// This version of a registry.
    Version(String),
    /// A tree with this digest, for sources without versions.
    Digest(ContentDigest),
}

/// The newest version of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewestVersion {
    /// The commit of a repository, in hex.
    pub commit: Option<String>,
    /// The branch or tag that was followed, such as `refs/heads/main`.
    pub reference: Option<String>,
    /// The version of a registry; for a skill of a site, the digest in its index.
    pub version: Option<String>,
    /// When it was published, in seconds since 1970, if that is known without fetching it.
    pub published: Option<u64>,
    /// The digest of the tree, for sources without versions: folders, files and downloads.
    pub digest: Option<ContentDigest>,
}

/// The registry of skills that is used if a source names none.
const CLAWHUB: &str = "https://clawhub.ai";
/// The registry of npm packages.
const NPM: &str = "https://registry.npmjs.org";

impl PackageFetcher {
    /// Creates a fetcher without `git`, proxies and tokens.
    pub fn new(cache: PackageCache) -> Self {
        let progress = FetchProgress::default();
        Self {
            cache,
            git: None,
            web: Web::new(progress.clone()),
            limits: ArchiveLimits::default(),
            offline: false,
            has_terminal: false,
            home: None,
            clawhub: CLAWHUB.to_owned(),
            npm: NPM.to_owned(),
            registries: Mutex::default(),
            progress,
        }
    }

    /// Fetches repositories with this `git` program. It gets these variables, so that the user's settings,
    /// keys and credentials are used, without those that name a repository.
    #[must_use]
    pub fn with_git(
        mut self,
        program: Option<PathBuf>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.git = program.map(|program| GitProgram {
            program,
            environment: GitProgram::environment(variables),
            may_ask: self.has_terminal,
            idle: self.web.timeouts().idle,
            max_received: self.limits.unpacked,
            progress: self.progress.clone(),
        });
        self
    }

    /// Lets `git` ask for passwords at the terminal.
    #[must_use]
    pub fn with_terminal(mut self, has_terminal: bool) -> Self {
        self.has_terminal = has_terminal;
        if let Some(git) = &mut self.git {
            git.may_ask = has_terminal;
        }
        self
    }

    /// Sets how long hosts may send nothing, and how long a request may take.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        if let Some(git) = &mut self.git {
            git.idle = timeouts.idle;
        }
        self.web.set_timeouts(timeouts);
        self
    }

    /// Limits what is fetched of a source.
    #[must_use]
    pub fn with_limits(mut self, limits: ArchiveLimits) -> Self {
        self.limits = limits;
        if let Some(git) = &mut self.git {
            git.max_received = limits.unpacked;
        }
        self
    }

    /// Reads paths that begin with `~/` below this folder.
    #[must_use]
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// Contacts no host: what is not in the cache is an error.
    #[must_use]
    pub fn with_offline(mut self, offline: bool) -> Self {
        self.offline = offline;
        self
    }

    /// Uses these proxies. `git` has those of its variables.
    #[must_use]
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.web.set_proxies(proxies);
        self
    }

    /// Resolves the names of hosts with this resolver instead of the system's. `git` has its own.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.web.set_resolver(resolver);
        self
    }

    /// Trusts the authorities of these certificates (PEM) in addition to those of the system.
    pub fn with_certificates(mut self, pem: &[u8]) -> Result<Self, CertificateError> {
        self.web.set_certificates(pem)?;
        Ok(self)
    }

    /// Sends a token to this host only, over HTTPS or to this machine. For `github.com` it is one of
    /// GitHub, for the others what follows `Bearer`.
    #[must_use]
    pub fn with_token(mut self, host: &str, token: String) -> Self {
        self.web.add_token(host, token);
        self
    }

    /// Uses this registry for skills whose source names none.
    #[must_use]
    pub fn with_registry(mut self, url: &Url) -> Self {
        url.as_str().trim_end_matches('/').clone_into(&mut self.clawhub);
        self
    }

    /// Uses this registry of npm packages.
    #[must_use]
    pub fn with_npm_registry(mut self, url: &Url) -> Self {
        url.as_str().trim_end_matches('/').clone_into(&mut self.npm);
        self
    }

    /// Returns the counts of everything that it fetches.
    pub fn progress(&self) -> FetchProgress {
        self.progress.clone()
    }

    /// Fetches a source; with a pin, exactly that commit, version or digest. Dropping the future ends
    /// what it has started, and leaves nothing behind.
    pub async fn fetch(
        &self,
        source: &SkillSource,
        pin: Option<&Pin>,
    ) -> Result<FetchedTree, FetchPackageError> {
        if let Some(Pin::Digest(digest)) = pin
            && let Some(tree) = self.recall(vec![key_of_tree(digest)]).await
        {
            return Ok(FetchedTree { source: source.clone(), ..tree });
        }
        let tree = match &source.kind {
            SourceKind::Git(git) => self.fetch_git(source, git, pin).await?,
            SourceKind::Folder(path) => self.fetch_folder(source, &self.at_home(path)).await?,
            SourceKind::File(path) => self.fetch_file(source, &self.at_home(path)).await?,
            SourceKind::Download(url) => self.fetch_download(source, url).await?,
            SourceKind::Site(url) => self.fetch_site(source, url, pin).await?,
            SourceKind::ClawHub { .. } => self.fetch_clawhub(source, pin).await?,
            SourceKind::Npm { name, range } => {
                self.fetch_npm(source, name, range.as_deref(), pin).await?
            }
        };
        match pin {
            Some(Pin::Digest(digest)) if *digest != tree.digest => Err(FetchPackageError::Moved {
                what: source.to_string(),
                expected: digest.to_string(),
                found: tree.digest.to_string(),
            }),
            _ => Ok(tree),
        }
    }

    /// Returns the newest version of a source. Its files are fetched only if there is no other way
    /// to tell.
    pub async fn newest(&self, source: &SkillSource) -> Result<NewestVersion, FetchPackageError> {
        match &source.kind {
            SourceKind::Git(git) => self.newest_git(source, git).await,
            SourceKind::Site(url) => self.newest_of_site(source, url).await,
            SourceKind::ClawHub { .. } => self.newest_of_clawhub(source).await,
            SourceKind::Npm { name, range } => {
                self.newest_of_npm(source, name, range.as_deref()).await
            }
            SourceKind::Folder(_) | SourceKind::File(_) | SourceKind::Download(_) => {
                let tree = self.fetch(source, None).await?;
                Ok(NewestVersion { digest: Some(tree.digest), ..NewestVersion::default() })
            }
        }
    }

    fn at_home(&self, path: &Path) -> PathBuf {
        match (&self.home, path.strip_prefix("~")) {
            (Some(home), Ok(below)) => home.join(below),
            _ => path.to_owned(),
        }
    }

    /// Creates an empty folder in the cache.
    async fn draft(&self) -> Result<CacheDraft, FetchPackageError> {
        let cache = self.cache.clone();
        blocking(move || Ok(cache.draft()?)).await
    }

    /// Returns the first tree in the cache that one of these keys stands for.
    async fn recall(&self, keys: Vec<String>) -> Option<FetchedTree> {
        let cache = self.cache.clone();
        blocking(move || Ok(keys.iter().find_map(|it| cache.recall(it)))).await.ok().flatten()
    }

    /// Remembers a tree by these keys.
    async fn remember(
        &self,
        keys: Vec<String>,
        tree: &FetchedTree,
    ) -> Result<(), FetchPackageError> {
        let (cache, tree) = (self.cache.clone(), tree.clone());
        blocking(move || Ok(keys.iter().try_for_each(|it| cache.remember(it, &tree))?)).await
    }

    /// Moves the files of a draft into the cache.
    async fn insert(
        &self,
        draft: CacheDraft,
        files: Vec<TreeFile>,
        facts: TreeFacts,
    ) -> Result<FetchedTree, FetchPackageError> {
        let cache = self.cache.clone();
        blocking(move || {
            let folder = cache.insert(draft, &files)?;
            let tree = FetchedTree {
                commit: facts.commit,
                reference: facts.reference,
                version: facts.version,
                published: facts.published,
                notes: facts.notes,
                warning: facts.warning,
                ..FetchedTree::new(folder, files, facts.source, &facts.url)
            };
            if tree.commit.is_none() {
                // A commit is the better key.
                cache.remember(&key_of_tree(&tree.digest), &tree)?;
            }
            Ok(tree)
        })
        .await
    }
}

/// The facts about a tree besides its files.
#[derive(Debug, Clone)]
struct TreeFacts {
    source: SkillSource,
    url: String,
    commit: Option<String>,
    reference: Option<String>,
    version: Option<String>,
    published: Option<u64>,
    notes: Vec<String>,
    warning: Option<String>,
}

impl TreeFacts {
    fn new(source: &SkillSource) -> Self {
        Self {
            source: source.clone(),
            url: String::new(),
            commit: None,
            reference: None,
            version: None,
            published: None,
            notes: Vec::new(),
            warning: None,
        }
    }
}

/// The key that a tree is remembered by if nothing but its digest is known.
fn key_of_tree(digest: &ContentDigest) -> String {
    format!("tree\n{digest}")
}

/// Does work that waits for the disk on a thread for that.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchPackageError> + Send + 'static,
) -> Result<T, FetchPackageError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(FetchPackageError::Cache(CacheError::Io {
                action: "use",
                path: PathBuf::new(),
                source: std::io::Error::other(error),
            })),
        },
    }
}
