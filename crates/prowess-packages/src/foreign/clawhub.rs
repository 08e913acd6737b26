//! `.clawhub/lock.json` of `clawhub`, version 1, and the record in each of its skills.

use url::Url;

use super::{
    ForeignError, ForeignHash, ForeignLock, ForeignSkill, LeftOut,
    entry::{ForeignEntry, is_commit, json, left_out, map, version},
};
use crate::source::{SkillSource, SourceKind};

/// The registry that needs no name.
const REGISTRY: &str = "https://clawhub.ai";

pub(super) fn read(bytes: &[u8]) -> Result<ForeignLock, ForeignError> {
    let file = json(bytes)?;
    version(&file, "version", &["1"])?;
    let mut lock = ForeignLock::default();
    for (key, value) in map(&file, "skills")? {
        match ForeignEntry::new(key, value).and_then(|it| skill(&it, key, "version", None)) {
            Ok(skill) => lock.skills.push(skill),
            Err(it) => lock.left_out.push(it),
        }
    }
    Ok(lock)
}

/// Reads the record in the folder of a skill.
pub(super) fn read_origin(
    bytes: &[u8],
    name: &str,
) -> Result<Result<ForeignSkill, LeftOut>, ForeignError> {
    let file = json(bytes)?;
    version(&file, "version", &["1"])?;
    Ok(ForeignEntry::new(name, &file).and_then(|entry| {
        let slug = entry.text("slug").ok_or_else(|| left_out(name, "its record has no slug"))?;
        let registry = entry.text("registry");
        let mut skill = skill(&entry, slug, "installedVersion", registry)?;
        if let Some(fingerprint) = entry.hash("fingerprint", "", 64) {
            skill.hash = ForeignHash::ClawHub(fingerprint);
        }
        skill.folders.clear();
        Ok(skill)
    }))
}

fn skill(
    entry: &ForeignEntry<'_>,
    key: &str,
    version: &str,
    registry: Option<&str>,
) -> Result<ForeignSkill, LeftOut> {
    let version = entry.text(version);
    // A skill that is on GitHub, whose version is its commit.
    if key.starts_with("skills-sh:") || entry.text("sourceKind") == Some("skills-sh") {
        return on_github(entry, key, version);
    }
    let (owner, slug) = match key.split_once('/') {
        Some((owner, slug)) => (Some(owner.trim_start_matches('@')), slug),
        None => (entry.text("ownerHandle").map(|it| it.trim_start_matches('@')), key),
    };
    let is_plain = |it: &str| {
        !it.is_empty()
            && it.len() <= 128
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'))
            && !it.starts_with('.')
    };
    if !is_plain(slug) || owner.is_some_and(|it| !is_plain(it)) {
        return Err(left_out(entry.name, "its name is not one of a registry"));
    }
    let registry = match registry.map(|it| it.trim_end_matches('/')).filter(|it| *it != REGISTRY) {
        Some(text) => {
            let url = Url::parse(text).ok().filter(|it| matches!(it.scheme(), "https" | "http"));
            Some(url.ok_or_else(|| left_out(entry.name, "its registry is not a URL"))?)
        }
        None => None,
    };
    let folder = match key.starts_with('@') {
        true => format!("skills/{key}"),
        false => format!("skills/{slug}"),
    };
    let kind = SourceKind::ClawHub {
        registry,
        owner: owner.map(str::to_owned),
        slug: slug.to_owned(),
        version: version.map(str::to_owned),
    };
    Ok(ForeignSkill {
        name: slug.to_owned(),
        source: SkillSource { kind, skills: Vec::new() },
        reference: None,
        commit: None,
        version: version.map(str::to_owned),
        path: None,
        hash: ForeignHash::None(
            "the lock file has no hash; the record in the folder of the skill may have one",
        ),
        folders: vec![folder],
        unpinned: version.is_none().then_some("the lock file has no version"),
    })
}

fn on_github(
    entry: &ForeignEntry<'_>,
    key: &str,
    version: Option<&str>,
) -> Result<ForeignSkill, LeftOut> {
    let from_key = key.strip_prefix("skills-sh:").and_then(|it| it.rsplit_once('/'));
    let name = from_key.map_or(key, |it| it.1);
    let repository = entry.text("sourceRepository").or(from_key.map(|it| it.0));
    let repository =
        repository.ok_or_else(|| left_out(entry.name, "its entry has no repository"))?;
    let address = match repository.contains(':') {
        true => repository.to_owned(),
        false => format!("https://github.com/{repository}"),
    };
    let path = entry.text("sourcePath").map(|it| entry.folder(it)).transpose()?;
    let commit = version.filter(|it| is_commit(it)).map(str::to_lowercase);
    let source = entry.repository(&address, None, path.as_deref())?;
    Ok(ForeignSkill {
        name: name.to_owned(),
        source,
        reference: None,
        unpinned: commit.is_none().then_some("the lock file has no commit"),
        commit,
        version: None,
        path,
        hash: ForeignHash::None(
            "the lock file has no hash; the record in the folder of the skill may have one",
        ),
        folders: vec![format!("skills/{name}")],
    })
}
