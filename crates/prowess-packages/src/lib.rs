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
mod cache;
mod pack;
mod signature;
mod discover;
mod fetch;
mod audit;
mod manifest;
mod lock;
mod foreign;
mod install;

#[doc(hidden)]
pub use crate::install::InstallStep;
pub use crate::{
    archive::{
        ArchiveError, ArchiveFormat, ArchiveLimits, CopyError, LeftOut, UnpackOptions,
        UnpackedArchive, copy_folder, format_of, unpack, unpack_with,
    },
    audit::{
        AUDIT_RULES, AcceptedFinding, AuditBaseline, AuditError, AuditFile, AuditFinding,
        AuditLimits, AuditReport, BaselineError, audit_files, audit_folder,
    },
    cache::{CacheDraft, CacheError, CacheSize, FetchedTree, PackageCache, Placing},
    digest::{ContentDigest, DigestSyntaxError, FileDigest, TreeFile},
    discover::{DiscoveredPackage, PackageNote, PackagedSkill, discover},
    fetch::{
        FetchCounts, FetchPackageError, FetchProgress, NewestVersion, PackageFetcher, Pin,
        RegistryMatch, SkillUpload, UploadError, UploadedSkill, publish_to_site,
    },
    foreign::{
        ExportedFile, ExportedSkill, ForeignError, ForeignFormat, ForeignHash, ForeignLock,
        ForeignSkill, HashCheck, HashError, LeftOut as ForeignLeftOut, export_apm_lock,
        export_apm_manifest, export_skills_lock, read_foreign, read_origin,
    },
    install::{
        FileReplacement, InstallAction, InstallConflict, InstallError, InstallOptions,
        InstallPlace, InstallPlan, InstallReport, InstallState, InstalledChange, Installer,
        LocalEdits, MergeResult, MergedFile, PlannedStep, RecoveredChange, RecoveryOutcome,
        TargetDirectory, TargetError, VerifiedTarget, VerifyFault, install_history,
        target_directories, verify,
    },
    lock::{InstallTarget, LOCK_FILE, Lock, LockDifference, LockError, LockedSkill, TargetForm},
    manifest::{
        MANIFEST_FILE, ManifestError, ManifestNote, PackageManifest, PackageSettings, SignerPolicy,
        WantedSkill,
    },
    pack::{PackError, PackOptions, PackedSkill, pack},
    signature::{
        MinisignKey, SecretKeyError, SignatureError, Signer, SignerSyntaxError, verify_bundle,
        verify_signature,
    },
    source::{GitSource, KnownHost, SkillSource, SourceKind, SourceSyntaxError},
};
