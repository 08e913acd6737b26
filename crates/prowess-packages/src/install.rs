//! Puts skills where clients look, and takes them away again, without ever losing a file of the
//! user's.
//!
//! `target_directories` chooses directories for clients. An `Installer` waits for other processes
//! and repairs what a killed one has left; its `plan` compares what is wanted with the lock and the
//! disk and refuses whatever is in the user's way; its `apply` makes all of the change or nothing.
//! What was there is moved, never deleted: `undo` brings it back.

mod sys;
mod disk;
mod tree;
mod merge;
mod conflict;
mod error;
mod place;
mod targets;
mod verify;
mod plan;
mod journal;
mod history;
mod installer;

#[doc(hidden)]
pub use self::disk::InstallStep;
pub use self::{
    conflict::InstallConflict,
    error::{InstallError, InstallState},
    history::{InstalledChange, install_history},
    installer::{
        FileReplacement, InstallOptions, InstallReport, Installer, RecoveredChange, RecoveryOutcome,
    },
    merge::{MergeResult, MergedFile},
    place::InstallPlace,
    plan::{InstallAction, InstallPlan, LocalEdits, PlannedStep},
    targets::{TargetDirectory, TargetError, target_directories},
    verify::{VerifiedTarget, VerifyFault, verify},
};
