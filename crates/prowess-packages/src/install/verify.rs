//! Compares what is installed with the lock.

use std::path::PathBuf;

use super::{
    disk::{Disk, EntryKind},
    place::{InstallPlace, Location, LocationError},
    sys,
    tree::{DiskTree, read_trees},
};
use crate::lock::{InstallTarget, LockedSkill, TargetForm};

/// How a target of a skill differs from the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedTarget {
    /// The skill.
    pub skill: String,
    /// The folder, as the lock has it.
    pub path: String,
    /// What is wrong; empty if nothing is.
    pub faults: Vec<VerifyFault>,
}

/// What is wrong with a target.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyFault {
    /// The whole target is gone.
    Gone,
    /// There is something else in its place: `a file`, `a folder`, `a link` or `a special file`.
    Replaced(&'static str),
    /// A link leads elsewhere.
    LeadsElsewhere(PathBuf),
    /// A file has other bytes.
    Changed(String),
    /// A file can be executed and should not, or the other way round.
    Mode(String),
    /// A file is gone.
    Missing(String),
    /// A file was added.
    Extra(String),
    /// Something in it is a link or a special file.
    Unreadable(String),
    /// The lock names a place where no client looks; it was not read.
    NoClientDirectory,
}

/// Compares installed skills with the lock, on all cores: one result for each target, in order.
/// Files that systems and interpreters make by themselves, such as `.DS_Store` and `__pycache__`,
/// are not reported.
pub fn verify(place: &InstallPlace, skills: &[LockedSkill]) -> Vec<VerifiedTarget> {
    let mut locator = place.locator();
    let mut verified: Vec<VerifiedTarget> = Vec::new();
    let mut folders: Vec<(usize, &LockedSkill, PathBuf)> = Vec::new();
    for skill in skills {
        let first = skill.targets.iter().find(|it| it.form == TargetForm::Folder);
        let first = first.and_then(|it| locator.locate(it, &skill.name).ok());
        for target in &skill.targets {
            let (fault, folder) = match locator.locate(target, &skill.name) {
                Err(LocationError::NoClientDirectory) => {
                    (Some(VerifyFault::NoClientDirectory), None)
                }
                Err(LocationError::LinkOutside(_)) => (Some(VerifyFault::Replaced("a link")), None),
                Err(LocationError::NotADirectory(_)) => (Some(VerifyFault::Gone), None),
                Err(LocationError::Io(_, error)) => {
                    (Some(VerifyFault::Unreadable(error.to_string())), None)
                }
                Ok(location) => look(target, &location, first.as_ref()),
            };
            folders.extend(folder.map(|it| (verified.len(), skill, it)));
            let (skill, path) = (skill.name.clone(), target.path.clone());
            verified.push(VerifiedTarget { skill, path, faults: fault.into_iter().collect() });
        }
    }
    let paths: Vec<PathBuf> = folders.iter().map(|it| it.2.clone()).collect();
    for ((number, skill, _), tree) in folders.iter().zip(read_trees(&paths)) {
        verified[*number].faults = match tree {
            Ok(tree) => faults(&tree, skill),
            Err(error) => vec![VerifyFault::Unreadable(error.to_string())],
        };
    }
    verified
}

/// Returns what is wrong with a target, or the folder to compare.
fn look(
    target: &InstallTarget,
    location: &Location,
    first: Option<&Location>,
) -> (Option<VerifyFault>, Option<PathBuf>) {
    let opened = Disk::default().open(&location.directory);
    let kind = match opened.and_then(|it| it.kind(&location.name)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return (Some(VerifyFault::Unreadable(error.to_string())), None),
        Ok(kind) => kind,
    };
    let fault = match (kind, target.form) {
        (None, _) => VerifyFault::Gone,
        (Some(EntryKind::Folder), TargetForm::Folder) => return (None, Some(location.path())),
        (Some(EntryKind::Link(leads)), TargetForm::Link) => {
            let wanted = first.map(|it| sys::link_target(&location.link_to(it)));
            match wanted {
                Some(wanted) if wanted == leads => return (None, None),
                _ => VerifyFault::LeadsElsewhere(leads),
            }
        }
        (Some(EntryKind::Folder), _) => VerifyFault::Replaced("a folder"),
        (Some(EntryKind::Link(_)), _) => VerifyFault::Replaced("a link"),
        (Some(EntryKind::File), _) => VerifyFault::Replaced("a file"),
        (Some(EntryKind::Other), _) => VerifyFault::Replaced("a special file"),
    };
    (Some(fault), None)
}

fn faults(tree: &DiskTree, skill: &LockedSkill) -> Vec<VerifyFault> {
    let difference = tree.difference(&skill.files);
    let mut faults: Vec<VerifyFault> = Vec::new();
    faults.extend(difference.changed.into_iter().map(VerifyFault::Changed));
    faults.extend(difference.modes.into_iter().map(VerifyFault::Mode));
    faults.extend(difference.missing.into_iter().map(VerifyFault::Missing));
    faults.extend(difference.extra.into_iter().map(VerifyFault::Extra));
    faults
}
