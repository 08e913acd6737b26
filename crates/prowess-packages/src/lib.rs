//! Packages of skills: read sources, fetch, discover, audit, lock, install and verify them.
//!
//! ```
//! use prowess_packages::{SkillSource, SourceKind};
//!
//! let source: SkillSource = "anthropics/skills@pdf".parse()?;
//! assert!(matches!(source.kind, SourceKind::Git(_)));
//! assert_eq!(source.skills, ["pdf"]);
//! # Ok::<(), prowess_packages::SourceSyntaxError>(())
//! ```
//!
//! The modules are in the order a package passes through them, and each uses only those before it.
//! Nothing here runs what a package brings, prints, or reads the environment: hosts say where the
//! cache is and who the user is. A runtime of `tokio` is needed to fetch. Agents, models and the
//! sandbox are not in this crate.
#![warn(missing_docs)]

mod digest;
mod source;
mod archive;
mod cache;
mod discover;
mod fetch;
mod audit;
mod manifest;
mod lock;
mod install;

pub use crate::{
    archive::{ArchiveError, ArchiveFormat, ArchiveLimits, unpack},
    audit::{
        AUDIT_RULES, AcceptedFinding, AuditBaseline, AuditError, AuditFile, AuditFinding,
        AuditLimits, AuditReport, BaselineError, audit_files, audit_folder,
    },
    cache::{CacheDraft, CacheError, FetchedTree, PackageCache, Placing},
    digest::{ContentDigest, FileDigest, TreeFile},
    discover::{DiscoveredPackage, PackagedSkill, discover},
    lock::{InstallTarget, LOCK_FILE, Lock, LockedSkill, TargetForm},
    manifest::WantedSkill,
    source::{GitSource, SkillSource, SourceKind, SourceSyntaxError},
};
