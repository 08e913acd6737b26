//! The skills named on the command line, by name or path.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::{
    Checkup, Directory, ExaminedSkill, Finding, Library, Options, bundled, did_you_mean, nearest,
    spec::SKILL_FILE,
};

use crate::{
    arguments::Global,
    cli_error::CliError,
    context::{self, is_path},
    surroundings::absolute,
};

/// Returns the folder of the skill at a path, or of a name in the working directory.
pub(super) fn skill_folder(name: &str, global: &Global) -> Result<Option<PathBuf>, CliError> {
    let path = absolute(&context::resolve(&Directory::new(name), global)).unwrap_or_default();
    let folder = if path.is_file() { path.parent().unwrap_or(&path) } else { &path };
    match (folder.is_dir(), is_path(name)) {
        (true, _) if has_document(folder) => Ok(Some(folder.to_owned())),
        (_, false) => Ok(None),
        (true, true) => Err(CliError::invalid_input(format!("`{name}` has no `SKILL.md`"))),
        (false, true) => {
            let hint = "name the folder of a skill, or a skill in a directory that a client reads";
            Err(CliError::invalid_input(format!("there is no `{name}`")).hint(hint))
        }
    }
}

/// Returns whether a path names a folder to search, which is not a skill itself.
pub(super) fn is_folder_of_skills(name: &str, global: &Global) -> bool {
    let path = context::resolve(&Directory::new(name), global);
    is_path(name) && path.is_dir() && !has_document(&path)
}

/// Returns whether a folder has a `SKILL.md`, in any case, as far as it can be read.
fn has_document(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |it| {
        it.flatten().any(|it: fs::DirEntry| it.file_name().eq_ignore_ascii_case(SKILL_FILE))
    })
}

/// Returns the named skills: those in a folder for a path, otherwise those of a name, or in folders
/// of that name.
pub(super) fn find_skills<'a>(
    checkup: &'a Checkup,
    name: &str,
    folder: Option<&Path>,
) -> Result<Vec<&'a ExaminedSkill>, CliError> {
    let mut found: Vec<&ExaminedSkill> = Vec::new();
    if !is_path(name) {
        found.extend(checkup.skills.iter().filter(|it| it.name == name));
    }
    if found.is_empty() && !is_path(name) {
        found.extend(checkup.skills.iter().filter(|it| folder_name(&it.path) == Some(name)));
    }
    if found.is_empty() && folder.is_some() {
        found.extend(checkup.skills.iter().filter(|it| it.path.parent() == folder));
    }
    if found.is_empty() { Err(missing_skill(checkup, name, folder)) } else { Ok(found) }
}

/// Returns the error that there is no such skill, with the reason.
fn missing_skill(checkup: &Checkup, name: &str, folder: Option<&Path>) -> CliError {
    if let Some(finding) = checkup.findings.iter().find(|it: &&Finding| match folder {
        Some(folder) => it.path.starts_with(folder),
        None => it.path.file_name() == Some(name.as_ref()) || folder_name(&it.path) == Some(name),
    }) {
        let message = format!("{}: {}", finding.path.display(), finding.message);
        return CliError::invalid_input(message).hint(&*finding.hint);
    }
    let options = Options { sources: vec![bundled()], ..Options::default() };
    if Library::load(&options).is_ok_and(|it| it.get(name).is_some()) {
        let message =
            format!("`{name}` is bundled with Prowess, and not in a directory that a client reads");
        let hint = "`prowess mcp install --client NAME` makes it available to a client";
        return CliError::invalid_input(message).hint(hint);
    }
    let fault = CliError::invalid_input(format!(
        "there is no skill `{name}` in any directory that was examined"
    ));
    let names = checkup.skills.iter().map(|it| it.name.as_str());
    let folders = checkup.skills.iter().filter_map(|it| folder_name(&it.path));
    match nearest(name, names.chain(folders)) {
        Some(near) => fault.hint(did_you_mean(near)),
        None => fault.hint("name its folder, as in `prowess doctor ./my-skill`"),
    }
}

fn folder_name(path: &Path) -> Option<&str> {
    path.parent()?.file_name()?.to_str()
}

/// Returns the folder of the plugin or extension that a skill is part of.
pub(super) fn plugin_of(path: &Path) -> Option<&Path> {
    let manifests = [".claude-plugin/plugin.json", "plugin.json", "gemini-extension.json"];
    path.ancestors()
        .skip(2)
        .take(3)
        .find(|it: &&Path| manifests.iter().any(|manifest| it.join(manifest).is_file()))
}
