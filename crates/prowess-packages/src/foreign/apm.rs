//! `apm.lock.yaml`, versions 1 to 3, and `apm.yml` of `apm`.

use std::collections::BTreeMap;

use prowess::is_plain_name;
use serde_json::{Map, Value};

use super::{
    ForeignError, ForeignHash, ForeignLock, ForeignSkill, LeftOut,
    entry::{ForeignEntry, left_out, version},
    yaml,
};
use crate::source::{SourceKind, check_reference};

pub(super) fn read(bytes: &[u8]) -> Result<ForeignLock, ForeignError> {
    let file = yaml::read(bytes)?;
    version(&file, "lockfile_version", &["1", "2", "3"])?;
    let empty = Vec::new();
    let dependencies = match file.get("dependencies") {
        None | Some(Value::Null) => &empty,
        Some(Value::Array(items)) => items,
        Some(_) => return Err(wrong("`dependencies` is not a list")),
    };
    let mut lock = ForeignLock::default();
    for value in dependencies {
        let name = ["name", "virtual_path", "repo_url", "local_path"];
        let name = name.iter().find_map(|it| value.get(it)?.as_str()).unwrap_or("a dependency");
        match ForeignEntry::new(name, value).and_then(|it| dependency(&it)) {
            Ok(skills) => lock.skills.extend(skills),
            Err(it) => lock.left_out.push(it),
        }
    }
    Ok(lock)
}

/// Returns the skills of a package, each of which is in folders of its name.
fn dependency(entry: &ForeignEntry<'_>) -> Result<Vec<ForeignSkill>, LeftOut> {
    let place = entry.text("virtual_path").map(|it| entry.folder(it)).transpose()?;
    let commit = entry.commit("resolved_commit");
    let reference = entry.reference("resolved_tag")?.or(entry.reference("resolved_ref")?);
    let unpinned = match (entry.text("source"), &commit) {
        (Some("local"), _) => Some("it is a folder of this machine"),
        (_, Some(_)) => None,
        (_, None) => Some("the lock file has no commit"),
    };
    let address = address(entry)?;
    let package = entry.hash("content_hash", "sha256:", 64);
    let mut skills = Vec::new();
    let mut installed = deployed(entry)?;
    // A package that is one skill is that skill wherever it is installed.
    if installed.is_empty() && entry.text("package_type") == Some("claude_skill") {
        let last = place.as_deref().or(entry.text("repo_url")).and_then(|it| it.rsplit('/').next());
        let name = entry.text("name").or(last).unwrap_or_default();
        if is_plain_name(name) {
            installed.insert(name.to_owned(), Deployment::default());
        }
    }
    for (name, deployed) in installed {
        // Only a package that is the skill has the path of the skill.
        let path = place.clone().filter(|it| it.rsplit('/').next() == Some(&name));
        let is_skill = path.is_some() || entry.text("package_type") == Some("claude_skill");
        let hash = match (deployed.hashes.is_empty(), &package) {
            (false, _) => ForeignHash::ApmFiles(deployed.hashes),
            (true, Some(hash)) if is_skill => ForeignHash::ApmPackage(hash.clone()),
            (true, _) => ForeignHash::None("the lock file has no hash of its files"),
        };
        skills.push(ForeignSkill {
            source: match entry.text("source") {
                Some("local") => entry.source(&address)?,
                _ => entry.repository(&address, reference, place.as_deref())?,
            },
            name,
            reference: reference.map(str::to_owned),
            commit: commit.clone(),
            version: entry.text("version").filter(|it| *it != "unknown").map(str::to_owned),
            path,
            hash,
            folders: deployed.folders,
            unpinned,
        });
    }
    match skills.is_empty() {
        true => Err(left_out(entry.name, "it has installed no skill")),
        false => Ok(skills),
    }
}

/// Where a skill was installed.
#[derive(Default)]
struct Deployment {
    folders: Vec<String>,
    /// Those of the first folder, by their paths below it.
    hashes: BTreeMap<String, String>,
}

/// Returns where each skill was installed, by name.
fn deployed(entry: &ForeignEntry<'_>) -> Result<BTreeMap<String, Deployment>, LeftOut> {
    let mut skills: BTreeMap<String, Deployment> = BTreeMap::new();
    let files = entry.field("deployed_files").and_then(Value::as_array).into_iter().flatten();
    for path in files.filter_map(Value::as_str) {
        let folder = match path.strip_suffix("/SKILL.md") {
            Some(folder) => folder,
            // Older versions list the folder itself.
            None => {
                let folder = path.trim_end_matches('/');
                match folder.rsplit_once('/') {
                    Some((above, name)) if above.ends_with("skills") && !name.contains('.') => {
                        folder
                    }
                    _ => continue,
                }
            }
        };
        let folder = entry.folder(folder)?;
        let Some(name) =
            folder.rsplit('/').next().filter(|it| !it.is_empty() && !it.contains(char::is_control))
        else {
            continue;
        };
        let skill = skills.entry(name.to_owned()).or_default();
        if !skill.folders.contains(&folder) {
            skill.folders.push(folder);
        }
    }
    let empty = Map::new();
    let hashes = entry.field("deployed_file_hashes").and_then(Value::as_object).unwrap_or(&empty);
    for skill in skills.values_mut() {
        let Some(first) = skill.folders.first().map(|it| format!("{it}/")) else { continue };
        let own = hashes.iter().filter_map(|(path, hash)| {
            let hash = hash.as_str().filter(|it| it.len() == 71 && it.starts_with("sha256:"))?;
            Some((path.strip_prefix(&first)?.to_owned(), hash.to_lowercase()))
        });
        skill.hashes = own.collect();
    }
    Ok(skills)
}

fn address(entry: &ForeignEntry<'_>) -> Result<String, LeftOut> {
    match entry.text("source") {
        Some("local") => {
            let path = entry
                .text("local_path")
                .ok_or_else(|| left_out(entry.name, "its entry has no folder"))?;
            Ok(if path.starts_with(['.', '/']) { path.to_owned() } else { format!("./{path}") })
        }
        Some("registry") => Err(left_out(entry.name, "it comes from a registry of apm")),
        _ => {
            let url = entry
                .text("repo_url")
                .ok_or_else(|| left_out(entry.name, "its entry has no repository"))?;
            if url.contains(':') {
                return Ok(url.to_owned());
            }
            let host = entry.text("host").unwrap_or("github.com");
            let port = entry.text("port").map(|it| format!(":{it}")).unwrap_or_default();
            Ok(format!("https://{host}{port}/{url}"))
        }
    }
}

pub(super) fn read_manifest(bytes: &[u8]) -> Result<ForeignLock, ForeignError> {
    let file = yaml::read(bytes)?;
    let mut lock = ForeignLock::default();
    for key in ["dependencies", "devDependencies"] {
        let listed = file.get(key).and_then(|it| it.get("apm"));
        for value in listed.and_then(Value::as_array).into_iter().flatten() {
            match wanted(value) {
                Ok(skill) => lock.skills.push(skill),
                Err(it) => lock.left_out.push(it),
            }
        }
    }
    Ok(lock)
}

fn wanted(value: &Value) -> Result<ForeignSkill, LeftOut> {
    let wrapped;
    let (text, path, entry_value) = match value {
        Value::String(text) => {
            wrapped = Value::Object(Map::new());
            (text.as_str(), None, &wrapped)
        }
        _ => {
            let text = value.get("git").or(value.get("path")).and_then(Value::as_str);
            let is_git = value.get("git").is_some();
            let path = value.get("path").and_then(Value::as_str).filter(|_| is_git);
            let text = text.ok_or_else(|| {
                let name = value.get("name").or(value.get("id")).and_then(Value::as_str);
                left_out(
                    name.unwrap_or("a dependency"),
                    "it comes from a marketplace or registry of apm",
                )
            })?;
            (text, path, value)
        }
    };
    let entry = ForeignEntry::new(text, entry_value)?;
    if text.contains(char::is_control) {
        return Err(left_out(text, "its source has control characters"));
    }
    let (address, fragment) = match text.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (text, None),
    };
    let reference = entry.reference("ref")?.or(fragment).filter(|it| !it.is_empty());
    if reference.is_some_and(|it| check_reference(it).is_err()) {
        return Err(left_out(text, "its reference is not a branch, tag or commit"));
    }
    let path = path.map(|it| entry.folder(it)).transpose()?;
    // A host without a scheme is one of apm's spellings.
    let first = address.split('/').next().unwrap_or_default();
    let is_host = first.contains('.') && !first.starts_with('.') && !address.contains(':');
    let address = if is_host { format!("https://{address}") } else { address.to_owned() };
    let mut source = entry.source(&address)?;
    if let SourceKind::Git(git) = &source.kind {
        let folder = path.as_deref().or(git.path.as_deref());
        source = entry.repository(&git.url, reference, folder)?;
    }
    let last = path.as_deref().unwrap_or(&address).trim_end_matches('/').rsplit('/').next();
    let name = last.unwrap_or_default().trim_end_matches(".git");
    Ok(ForeignSkill {
        name: name.to_owned(),
        source,
        reference: reference.map(str::to_owned),
        commit: None,
        version: None,
        path,
        hash: ForeignHash::None("`apm.yml` has no hashes"),
        folders: Vec::new(),
        unpinned: Some("`apm.yml` has no commits"),
    })
}

fn wrong(message: &str) -> ForeignError {
    ForeignError::Syntax { message: message.to_owned() }
}
