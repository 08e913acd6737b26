//! Checks what a lock says before anything is done with it.

use std::collections::BTreeMap;

use prowess::is_plain_name;
use unicode_normalization::UnicodeNormalization as _;

use super::{InstallTarget, LockError, LockedSkill};
use crate::{
    digest::ContentDigest,
    source::{SkillSource, check_reference},
};

/// Why two targets cannot be there at once.
const INSIDE: &str = "overlaps with the folder of another target";
/// The most files of a skill.
pub(super) const MAX_FILES: usize = 50_000;
/// The most targets of a skill.
const MAX_TARGETS: usize = 1000;
/// The most bytes of a path or another text.
const MAX_TEXT: usize = 4096;
/// The most folders above a file.
const MAX_DEPTH: usize = 64;

/// Fails if a skill is not one that can be installed, or that reads differently when it has been written.
pub(super) fn skill(skill: &LockedSkill) -> Result<(), LockError> {
    let name = &skill.name;
    if !is_plain_name(name) {
        return Err(value(name, "the name", name, "cannot be the name of an installed skill"));
    }
    let texts = [
        ("the skill", skill.skill.as_deref()),
        ("the URL", Some(&*skill.url)),
        ("the reference", skill.reference.as_deref()),
        ("the version", skill.version.as_deref()),
        ("the integrity", skill.integrity.as_deref()),
        ("the plugin", skill.plugin.as_deref()),
        ("the signer", skill.signer.as_deref()),
    ];
    for (field, text) in texts.into_iter().filter_map(|(field, it)| Some((field, it?))) {
        text_of(name, field, text)?;
    }
    for client in skill.clients.iter().flatten() {
        text_of(name, "the client", client)?;
    }
    // Git takes what begins with a hyphen as an option.
    if skill.url.starts_with('-') {
        return Err(value(name, "the URL", &skill.url, "begins with a hyphen"));
    }
    if let Some(reference) = skill.reference.as_ref().filter(|it| check_reference(it).is_err()) {
        return Err(value(name, "the reference", reference, "is not a branch, tag or commit"));
    }
    if let Some(commit) = &skill.commit {
        let is_hex = commit.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
        if !is_hex || !matches!(commit.len(), 40 | 64) {
            return Err(value(
                name,
                "the commit",
                commit,
                "is not 40 or 64 lowercase hexadecimal digits",
            ));
        }
    }
    if skill.published.is_some_and(|it| i64::try_from(it).is_err()) {
        return Err(value(name, "the time", "", "is too far away"));
    }
    if skill.source.to_string().parse::<SkillSource>().ok().as_ref() != Some(&skill.source) {
        return Err(value(name, "the source", &skill.source.to_string(), "cannot be written"));
    }
    if !skill.path.is_empty() {
        relative(&skill.path).map_err(|why| path(name, &skill.path, why))?;
    }
    files(skill)?;
    if skill.targets.len() > MAX_TARGETS {
        return Err(LockError::TooLarge { limit: format!("{MAX_TARGETS} targets of a skill") });
    }
    skill.targets.iter().try_for_each(|it| target(name, it))
}

/// Fails if two targets are the same folder, or one is inside of another.
pub(super) fn targets<'s>(skills: impl Iterator<Item = &'s LockedSkill>) -> Result<(), LockError> {
    let mut folders: Vec<(String, &str, &str)> = Vec::new();
    for skill in skills {
        for target in &skill.targets {
            folders.push((folded(&target.path) + "/", &skill.name, &target.path));
        }
    }
    folders.sort();
    // What is inside of a folder, or the same, follows it.
    for pair in folders.windows(2) {
        if pair[1].0.starts_with(&pair[0].0) {
            return Err(path(pair[1].1, pair[1].2, INSIDE));
        }
    }
    Ok(())
}

/// Fails if a target of a skill is the same folder as another, or one is inside of the other.
pub(super) fn targets_among<'s>(
    skill: &LockedSkill,
    others: impl Iterator<Item = &'s LockedSkill>,
) -> Result<(), LockError> {
    targets([skill].into_iter())?;
    for other in others.flat_map(|it| &it.targets) {
        let own = skill.targets.iter().find(|it| overlap(&it.path, &other.path));
        if let Some(own) = own {
            return Err(path(&skill.name, &own.path, INSIDE));
        }
    }
    Ok(())
}

/// Whether two paths are the same folder, or one is inside of the other.
fn overlap(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short.is_ascii() && long.is_ascii() {
        let (short, long) = (short.as_bytes(), long.as_bytes());
        // Their last letters differ sooner than their first ones.
        return matches!(long.get(short.len()), None | Some(b'/'))
            && short.last().map(u8::to_ascii_lowercase)
                == short.len().checked_sub(1).map(|it| long[it].to_ascii_lowercase())
            && long[..short.len()].eq_ignore_ascii_case(short);
    }
    let (short, long) = (folded(short) + "/", folded(long) + "/");
    short.starts_with(&long) || long.starts_with(&short)
}

fn files(skill: &LockedSkill) -> Result<(), LockError> {
    let name = &skill.name;
    if skill.files.len() > MAX_FILES {
        return Err(LockError::TooLarge { limit: format!("{MAX_FILES} files of a skill") });
    }
    let mut size: u64 = 0;
    for file in &skill.files {
        relative(&file.path).map_err(|why| path(name, &file.path, why))?;
        size = size.saturating_add(file.size);
    }
    if i64::try_from(size).is_err() {
        return Err(LockError::TooLarge { limit: format!("{} bytes of a skill", i64::MAX) });
    }
    // Only what is not plain ASCII in lower case can collide without being equal.
    let mut seen: BTreeMap<String, bool> = BTreeMap::new();
    for file in &skill.files {
        let folded = folded(&file.path);
        for (at, _) in folded.match_indices('/') {
            if let Some(false) = seen.insert(folded[..at].to_owned(), true) {
                return Err(path(name, &file.path, "is below another file"));
            }
        }
        if seen.insert(folded, false).is_some() {
            return Err(path(
                name,
                &file.path,
                "is another file on systems that ignore case or compose letters",
            ));
        }
    }
    let actual = ContentDigest::of(&skill.files);
    if actual != skill.digest {
        let (skill, said) = (name.clone(), skill.digest);
        return Err(LockError::Mismatch { line: None, skill, said, actual });
    }
    Ok(())
}

fn target(name: &str, target: &InstallTarget) -> Result<(), LockError> {
    let below = target.path.strip_prefix("~/").unwrap_or(&target.path);
    relative(below).map_err(|why| path(name, &target.path, why))?;
    let folded = folded(below);
    let mut folders = folded.split('/');
    if folders.any(|it| it == ".git") {
        return Err(path(name, &target.path, "is inside of a repository's own folder"));
    }
    if below.rsplit('/').next() != Some(name) {
        return Err(path(name, &target.path, "does not end with the name of the skill"));
    }
    if below == name {
        return Err(path(name, &target.path, "is not in a folder of skills"));
    }
    Ok(())
}

/// Returns why a path is not below a folder, on every system.
fn relative(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("is empty");
    }
    if path.len() > MAX_TEXT {
        return Err("is too long");
    }
    if path.contains(char::is_control) {
        return Err("has control characters");
    }
    if path.contains('\\') {
        return Err("has a backslash");
    }
    if path.starts_with('/') || path.split('/').any(|it| it.contains(':')) || path.starts_with('~')
    {
        return Err("is absolute, or on another drive");
    }
    if path.split('/').any(|it| matches!(it, "" | "." | "..")) {
        return Err("leads elsewhere");
    }
    if path.split('/').count() > MAX_DEPTH {
        return Err("is too deep");
    }
    Ok(())
}

/// Returns a path as systems see it that ignore case and compose letters.
fn folded(path: &str) -> String {
    match path.is_ascii() {
        true => path.to_ascii_lowercase(),
        false => path.nfc().flat_map(char::to_lowercase).nfc().collect(),
    }
}

fn text_of(skill: &str, field: &'static str, text: &str) -> Result<(), LockError> {
    if text.is_empty() {
        return Err(value(skill, field, text, "is empty"));
    }
    if text.len() > MAX_TEXT {
        return Err(value(skill, field, "", "is too long"));
    }
    match text.contains(char::is_control) {
        true => Err(value(skill, field, text, "has control characters")),
        false => Ok(()),
    }
}

fn value(skill: &str, field: &'static str, value: &str, why: &'static str) -> LockError {
    let value = without_controls(value);
    LockError::Value { line: None, skill: without_controls(skill), field, value, why }
}

fn path(skill: &str, path: &str, why: &'static str) -> LockError {
    let path = without_controls(path);
    LockError::Path { line: None, skill: without_controls(skill), path, why }
}

fn without_controls(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(256).collect()
}
