//! News: what has become of skills from one library to the next.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::OsStr,
    sync::Arc,
};

use crate::{
    finding::Finding,
    library::Library,
    read::{skill::Skill, source::Resource},
};

/// One thing that is other than it was. Skills go by their addresses.
#[derive(Debug)]
pub enum LibraryChange<'lib> {
    /// A skill is there that was not.
    Added {
        /// By what it is found now.
        address: String,
        /// The skill.
        skill: &'lib Skill,
    },
    /// A skill is there no more.
    Removed {
        /// By what it was found.
        address: String,
        /// The skill as it was.
        skill: &'lib Skill,
    },
    /// A skill has other files, or another place.
    Changed {
        /// By what it is found.
        address: String,
        /// The skill as it is now.
        skill: &'lib Skill,
        /// The files that came, went or are others, by their paths within the skill.
        files: Vec<&'lib str>,
    },
    /// Something was found that is new.
    Found(&'lib Finding),
    /// Something is so no more.
    Cleared(&'lib Finding),
}

/// What is other in a library than in one before it: skills by their addresses, then findings.
pub fn library_changes<'lib>(
    before: &'lib Library,
    after: &'lib Library,
) -> Vec<LibraryChange<'lib>> {
    let (old, new) = (by_address(before, after), by_address(after, before));
    let addresses: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let skills = addresses.into_iter().filter_map(|it| {
        let address = it.clone();
        match (old.get(it), new.get(it)) {
            (Some(before), Some(after)) => changed(address, before, after),
            (None, Some(skill)) => Some(LibraryChange::Added { address, skill }),
            (Some(skill), None) => Some(LibraryChange::Removed { address, skill }),
            (None, None) => None,
        }
    });
    let (old, new) = (findings(before), findings(after));
    let cleared =
        old.iter().filter(|it| !new.contains_key(it.0)).map(|it| LibraryChange::Cleared(it.1));
    let found =
        new.iter().filter(|it| !old.contains_key(it.0)).map(|it| LibraryChange::Found(it.1));
    skills.chain(cleared).chain(found).collect()
}

/// The skills by their addresses, but for those that the other library has as well.
fn by_address<'lib>(library: &'lib Library, other: &Library) -> BTreeMap<String, &'lib Skill> {
    let shared: HashSet<*const Skill> = other.skills.iter().map(Arc::as_ptr).collect();
    let own = library.all().filter(|it| !shared.contains(&std::ptr::from_ref(*it)));
    own.map(|it| (library.address(it), it)).collect()
}

fn changed<'lib>(
    address: String,
    before: &'lib Skill,
    after: &'lib Skill,
) -> Option<LibraryChange<'lib>> {
    let is_same = before.origin == after.origin && before.manifest == after.manifest;
    let document = (!is_same).then_some("SKILL.md");
    let (old, new) = (resources(before), resources(after));
    let paths: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let others = paths.into_iter().filter(|it| old.get(it) != new.get(it));
    let files: Vec<&str> = document.into_iter().chain(others).collect();
    (!files.is_empty()).then_some(LibraryChange::Changed { address, skill: after, files })
}

/// The resources as far as they are listed; those that are wanted on demand tell nothing of then.
fn resources(skill: &Skill) -> BTreeMap<&str, &Resource> {
    skill.resources.get().into_iter().flatten().map(|it| (&*it.path, it)).collect()
}

/// Where a finding is, and what it says.
type FindingKey<'lib> = (&'lib OsStr, Option<usize>, &'lib str, &'lib str);

fn findings(library: &Library) -> BTreeMap<FindingKey<'_>, &Finding> {
    let findings = library.findings().iter();
    findings.map(|it| ((it.path.as_os_str(), it.line, it.rule.code, &*it.message), it)).collect()
}
