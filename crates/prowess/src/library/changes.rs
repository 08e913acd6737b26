//! Changes of skills from one library to the next.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    ffi::OsStr,
    sync::Arc,
};

use crate::{
    finding::Finding,
    library::Library,
    read::{skill::Skill, source::Resource},
    spec::SKILL_FILE,
};

/// One difference between two libraries. Skills are identified by their addresses.
#[derive(Debug)]
#[non_exhaustive]
pub enum LibraryChange<'lib> {
    /// A new skill.
    Added {
        /// Its address now.
        address: String,
        /// The skill.
        skill: &'lib Skill,
    },
    /// A skill that is gone.
    Removed {
        /// Its former address.
        address: String,
        /// The skill as it was.
        skill: &'lib Skill,
    },
    /// A skill with other files, or in another place.
    Changed {
        /// Its address.
        address: String,
        /// The skill as it is now.
        skill: &'lib Skill,
        /// The files that were added, removed or changed, by their paths within the skill.
        files: Vec<&'lib str>,
    },
    /// A new finding.
    Found(&'lib Finding),
    /// A finding that is gone.
    Cleared(&'lib Finding),
}

/// Returns the changes from one library to a later one: skills by their addresses, then findings.
pub fn library_changes<'lib>(
    before: &'lib Library,
    after: &'lib Library,
) -> Vec<LibraryChange<'lib>> {
    let (old, new) = (by_address(before, after), by_address(after, before));
    let addresses: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let skills = addresses.into_iter().filter_map(|it| {
        let address = it.clone();
        match (old.get(it), new.get(it)) {
            (Some(before), Some(after)) => compare(address, before, after),
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

/// Returns the skills by their addresses, except for those that the other library contains as well.
fn by_address<'lib>(library: &'lib Library, other: &Library) -> BTreeMap<String, &'lib Skill> {
    let shared: HashSet<*const Skill> = other.skills.iter().map(Arc::as_ptr).collect();
    let own = library.all().filter(|it| !shared.contains(&std::ptr::from_ref(*it)));
    own.map(|it| (library.address(it), it)).collect()
}

fn compare<'lib>(
    address: String,
    before: &'lib Skill,
    after: &'lib Skill,
) -> Option<LibraryChange<'lib>> {
    let is_same = before.origin == after.origin && before.manifest == after.manifest;
    let document = (!is_same).then_some(SKILL_FILE);
    let (old, new) = (resources(before), resources(after));
    let paths: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let others = paths.into_iter().filter(|it| old.get(it) != new.get(it));
    let files: Vec<&str> = document.into_iter().chain(others).collect();
    (!files.is_empty()).then_some(LibraryChange::Changed { address, skill: after, files })
}

/// Returns the resources if they are listed; those listed on demand are not compared.
fn resources(skill: &Skill) -> BTreeMap<&str, &Resource> {
    skill.resources.get().into_iter().flatten().map(|it| (&*it.path, it)).collect()
}

/// The position and content of a finding.
type FindingKey<'lib> = (&'lib OsStr, Option<usize>, &'lib str, &'lib str);

fn findings(library: &Library) -> BTreeMap<FindingKey<'_>, &Finding> {
    let findings = library.findings().iter();
    findings.map(|it| ((it.path.as_os_str(), it.line, it.rule.code, &*it.message), it)).collect()
}
