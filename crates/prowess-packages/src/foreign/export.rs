//! Writes lock files of other package managers.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{
    LeftOut,
    entry::left_out,
    hash::{HashError, apm_package, computed},
    yaml,
};
use crate::{
    lock::LockedSkill,
    source::{GitSource, SourceKind},
};

/// A locked skill and a folder with its files.
#[derive(Debug, Clone, Copy)]
pub struct ExportedSkill<'a> {
    /// The skill.
    pub skill: &'a LockedSkill,
    /// A folder with its files, as they were locked.
    pub folder: &'a Path,
}

/// A file of another package manager.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportedFile {
    /// The text of the file.
    pub text: String,
    /// The skills that the file cannot have.
    pub left_out: Vec<LeftOut>,
}

impl<'a> ExportedSkill<'a> {
    /// Creates one.
    pub fn new(skill: &'a LockedSkill, folder: &'a Path) -> Self {
        Self { skill, folder }
    }
}

/// Returns a `skills-lock.json`, version 1, which `npx skills` can install from.
pub fn export_skills_lock(skills: &[ExportedSkill<'_>]) -> Result<ExportedFile, HashError> {
    let mut entries: Vec<(&str, Value)> = Vec::new();
    let mut left_out_skills = Vec::new();
    for ExportedSkill { skill, folder } in skills {
        let name = skill.skill_name();
        match skills_lock_source(skill) {
            Err(reason) => left_out_skills.push(left_out(&skill.name, reason)),
            Ok(_) if entries.iter().any(|it| it.0 == name) => {
                left_out_skills.push(left_out(
                    &skill.name,
                    "another skill of its name is there, and the file can have only one",
                ));
            }
            Ok(mut entry) => {
                if !skill.path.is_empty() {
                    entry.insert("skillPath".to_owned(), format!("{}/SKILL.md", skill.path).into());
                }
                entry.insert("computedHash".to_owned(), computed(folder)?.into());
                entries.push((name, entry.into()));
            }
        }
    }
    entries.sort_by_key(|it| it.0);
    let skills: Map<String, Value> =
        entries.into_iter().map(|it| (it.0.to_owned(), it.1)).collect();
    let text = format!("{:#}\n", json!({ "version": 1, "skills": skills }));
    Ok(ExportedFile { text, left_out: left_out_skills })
}

fn skills_lock_source(skill: &LockedSkill) -> Result<Map<String, Value>, &'static str> {
    let mut entry = Map::new();
    let mut put = |key: &str, value: &str| drop(entry.insert(key.to_owned(), value.into()));
    match &skill.source.kind {
        SourceKind::Git(git) => {
            let github = on_github(&git.url);
            match github {
                Some(name) => put("source", name),
                None if is_on_this_machine(&git.url) => {
                    return Err("it is a repository on this machine");
                }
                None => {
                    put("source", &git.url);
                    put("sourceUrl", &git.url);
                }
            }
            if let Some(reference) = &git.reference {
                put("ref", reference);
            }
            let is_gitlab = git.url.starts_with("https://gitlab.com/");
            put(
                "sourceType",
                if github.is_some() {
                    "github"
                } else if is_gitlab {
                    "gitlab"
                } else {
                    "git"
                },
            );
        }
        SourceKind::Folder(path) => {
            let text = path
                .to_str()
                .ok_or("its folder has a name that is not Unicode")?
                .replace('\\', "/");
            let is_plain = !path.is_absolute() && !text.starts_with('.');
            put("source", &if is_plain { format!("./{text}") } else { text });
            put("sourceType", "local");
        }
        SourceKind::Site(url) => {
            let host = url.host_str().ok_or("its site has no host")?;
            put("source", host.strip_prefix("www.").unwrap_or(host));
            put("sourceUrl", url.as_str());
            put("sourceType", "well-known");
        }
        SourceKind::File(_) | SourceKind::Download(_) => {
            return Err("the file cannot have archives or single files");
        }
        SourceKind::ClawHub { .. } => return Err("the file cannot have skills of ClawHub"),
        SourceKind::Npm { .. } => {
            return Err("the file cannot have packages that are not in `node_modules`");
        }
    }
    Ok(entry)
}

/// Returns an `apm.lock.yaml`, version 1.
///
/// It does not say which files are installed: `apm install` removes those of a lock file that it has
/// not installed itself.
pub fn export_apm_lock(skills: &[ExportedSkill<'_>]) -> Result<ExportedFile, HashError> {
    let mut entries = Vec::new();
    let mut left_out_skills = Vec::new();
    for ExportedSkill { skill, folder } in skills {
        match apm_entry(skill) {
            Err(reason) => left_out_skills.push(left_out(&skill.name, reason)),
            Ok(mut entry) => {
                entry.insert("content_hash".to_owned(), apm_package(folder)?.into());
                entries.push(Value::Object(entry));
            }
        }
    }
    let text = yaml::write(&json!({ "lockfile_version": "1", "dependencies": entries }));
    Ok(ExportedFile { text, left_out: left_out_skills })
}

fn apm_entry(skill: &LockedSkill) -> Result<Map<String, Value>, &'static str> {
    let SourceKind::Git(git) = &skill.source.kind else {
        return Err("apm locks repositories only");
    };
    let (host, repository) =
        host_and_path(&git.url).ok_or("its repository is not at an HTTPS address")?;
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
    put("repo_url", repository.into());
    put("name", skill.name.as_str().into());
    put("host", host.into());
    if let Some(commit) = &skill.commit {
        put("resolved_commit", commit.as_str().into());
    }
    if let Some(reference) = &git.reference {
        put("resolved_ref", reference.as_str().into());
    }
    if !skill.path.is_empty() {
        put("virtual_path", skill.path.as_str().into());
        put("is_virtual", true.into());
    }
    put("package_type", "claude_skill".into());
    Ok(entry)
}

/// Returns an `apm.yml` that asks for the same skills.
pub fn export_apm_manifest(project: &str, skills: &[ExportedSkill<'_>]) -> ExportedFile {
    let mut wanted: Vec<Value> = Vec::new();
    let mut left_out_skills = Vec::new();
    for ExportedSkill { skill, .. } in skills {
        match &skill.source.kind {
            SourceKind::Git(git) if !is_on_this_machine(&git.url) => {
                wanted.push(apm_dependency(git, &skill.path));
            }
            SourceKind::Folder(path) if path.to_str().is_some() => {
                wanted.push(json!({ "path": path.to_string_lossy().replace('\\', "/") }));
            }
            _ => left_out_skills
                .push(left_out(&skill.name, "apm installs repositories and folders only")),
        }
    }
    let text = yaml::write(&json!({
        "name": project,
        "version": "1.0.0",
        "dependencies": { "apm": wanted },
    }));
    ExportedFile { text, left_out: left_out_skills }
}

fn apm_dependency(git: &GitSource, path: &str) -> Value {
    if let Some(name) = on_github(&git.url) {
        let path = if path.is_empty() { String::new() } else { format!("/{path}") };
        let reference = git.reference.as_ref().map(|it| format!("#{it}")).unwrap_or_default();
        return format!("{name}{path}{reference}").into();
    }
    let mut entry = Map::new();
    entry.insert("git".to_owned(), git.url.as_str().into());
    if !path.is_empty() {
        entry.insert("path".to_owned(), path.into());
    }
    if let Some(reference) = &git.reference {
        entry.insert("ref".to_owned(), reference.as_str().into());
    }
    entry.into()
}

/// Returns owner and name of a repository on GitHub.
fn on_github(url: &str) -> Option<&str> {
    let path = url.strip_prefix("https://github.com/")?.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (path.split('/').count() == 2).then_some(path)
}

fn host_and_path(url: &str) -> Option<(&str, &str)> {
    let (host, path) = url.strip_prefix("https://")?.split_once('/')?;
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!host.contains(['@', ':']) && !path.is_empty()).then_some((host, path))
}

fn is_on_this_machine(url: &str) -> bool {
    url.starts_with(['/', '.', '~']) || url.contains(":\\")
}
