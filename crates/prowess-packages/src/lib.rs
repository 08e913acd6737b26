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

mod sys;
mod digest;
mod source;
mod archive;
mod pack;
mod signature;
mod cache;
mod discover;
mod fetch;
mod audit;
mod manifest;
mod lock;
mod install;

pub use crate::{
    archive::{
        ArchiveError, ArchiveFormat, ArchiveLimits, CopyError, LeftOut, UnpackOptions, Unpacked,
        copy_folder, format_of, unpack, unpack_with,
    },
    cache::{CacheDraft, CacheError, CacheSize, FetchedTree, PackageCache, Placing},
    digest::{ContentDigest, FileDigest, TreeFile},
    discover::{DiscoveredPackage, PackageNote, PackagedSkill, discover},
    fetch::{
        FetchCounts, FetchPackageError, FetchProgress, NewestVersion, PackageFetcher, Pin,
        RegistryMatch, SkillUpload, UploadError, UploadedSkill, publish_to_site,
    },
    lock::{InstallTarget, LOCK_FILE, Lock, LockedSkill, TargetForm},
    manifest::WantedSkill,
    pack::{PackError, PackOptions, PackedSkill, pack},
    signature::{
        MinisignKey, SecretKeyError, SignatureError, Signer, SignerSyntaxError, verify_bundle,
        verify_signature,
    },
    source::{GitSource, KnownHost, SkillSource, SourceKind, SourceSyntaxError},
};
