//! `.skill-lock.json` of a user, version 3, which `npx skills` and `gh skill` share.

use super::{
    ForeignError, ForeignHash, ForeignLock, ForeignSkill, LeftOut,
    entry::{ForeignEntry, folder_name, folders, is_commit, json, read_skills, version},
    skills_lock::source,
};

pub(super) fn read(bytes: &[u8]) -> Result<ForeignLock, ForeignError> {
    let file = json(bytes)?;
    version(&file, "version", &["3"])?;
    read_skills(&file, skill)
}

fn skill(entry: &ForeignEntry<'_>) -> Result<ForeignSkill, LeftOut> {
    // With a namespace, the skill is in a folder of that.
    let (namespace, name) = match entry.name.rsplit_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, entry.name),
    };
    let kind = entry.text("sourceType").unwrap_or_default();
    let pinned = entry.reference("pinnedRef")?;
    let reference = pinned.or(entry.reference("ref")?);
    let path = entry.skill_folder("skillPath")?;
    let source = source(entry, kind, reference, path.as_deref())?;
    let commit = reference.filter(|it| is_commit(it)).map(str::to_lowercase);
    let tree = entry.hash("skillFolderHash", "", 40).map(ForeignHash::GitTree);
    let computed = entry.hash("skillFolderHash", "", 64).map(ForeignHash::Computed);
    let digest = entry.hash("wellKnownDigest", "sha256:", 64).map(ForeignHash::WellKnown);
    let hash =
        tree.or(computed).or(digest).unwrap_or(ForeignHash::None("the lock file has no hash"));
    let unpinned = match (&commit, kind) {
        (Some(_), _) => None,
        (None, "local") => Some("it is a folder of this machine"),
        (None, "well-known") => Some("a web site may change it"),
        (None, _) => Some(super::skills_lock::NO_COMMIT),
    };
    let folder = match namespace {
        Some(namespace) => format!("{}/{}", folder_name(namespace), folder_name(name)),
        None => folder_name(name),
    };
    Ok(ForeignSkill {
        name: name.to_owned(),
        source,
        reference: reference.map(str::to_owned),
        commit,
        version: None,
        path,
        hash,
        folders: folders(&folder, true),
        unpinned,
    })
}
