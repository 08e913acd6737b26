//! Git, held to what its words say: a repository can name programs that git runs on its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    refusal::Refusal,
    repository::{git_directories, is_repository, read},
};

use super::{
    Argument,
    git_command::{GitEffect, git_command},
    refused,
};

/// What git is told before all else, so that no repository decides it.
const SETTINGS: &[&str] = &[
    "core.askPass=false",
    "core.editor=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "credential.helper=",
    "diff.ignoreSubmodules=dirty",
    "diff.submodule=short",
    "gc.auto=0",
    "gpg.openpgp.program=false",
    "gpg.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "interactive.diffFilter=cat",
    "log.showSignature=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
    "protocol.ssh.allow=never",
    "safe.bareRepository=explicit",
    "sequence.editor=false",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
];
/// What a repository cannot be kept from by a setting, because it goes by names of its own. Spaces
/// are left out.
const RUNNING: &[&str] =
    &["[filter", "[include", "[diff\"", "[diff.", "[merge\"", "[merge.", "external="];

const HINT: &str = "look at the settings of the repository, and run git yourself";

/// The arguments that git is started with, if no repository that it would use names a program.
pub(super) fn held(words: Vec<Argument>, directory: &Path) -> Result<Vec<Argument>, Refusal> {
    let (at, directory) = told(&words, directory);
    directory.ancestors().try_for_each(repository)?;
    let mut held = vec![Argument::plain("--no-pager"), Argument::plain("--no-optional-locks")];
    for setting in SETTINGS {
        held.extend([Argument::plain("-c"), Argument::plain(setting)]);
    }
    let command = words.get(at).and_then(|it| git_command(&it.text));
    let inside = command.is_some_and(|it| it.effect == GitEffect::ReadsSubmodules);
    for (index, word) in words.into_iter().enumerate() {
        held.push(word);
        if inside && index == at {
            held.push(Argument::plain("--ignore-submodules=dirty"));
        }
    }
    Ok(held)
}

/// Whether a word leads to what a repository keeps for git, where tokens may lie.
pub(super) fn is_inside(word: &Argument, directory: &Path) -> bool {
    if word.is_glob {
        let start = |it: &str| it.split(['*', '?', '[']).next().unwrap_or_default().to_owned();
        let hidden = word.text.split(['/', '=']).filter(|it| it.starts_with('.') && it.len() > 1);
        return hidden.map(start).any(|it| ".git".starts_with(&it));
    }
    let path = match word.text.split_once('=') {
        Some((option, _)) if option.starts_with("--exclude") => return false,
        Some((_, path)) => path,
        None => &word.text,
    };
    // Behind a short option a path may stand without a space.
    let attached = path.strip_prefix('-').and_then(|it| it.get(1..));
    let paths = [Some(path), attached].into_iter().flatten();
    paths.filter_map(|it| fs::canonicalize(directory.join(it)).ok()).any(|it| has_git(&it))
}

/// Whether a path leads through `.git`.
pub(super) fn has_git(path: &Path) -> bool {
    path.components().any(|it| it.as_os_str() == ".git")
}

/// Where the word stands that tells git what to do, and the directory in which it is done.
pub(super) fn told(words: &[Argument], directory: &Path) -> (usize, PathBuf) {
    let (mut at, mut directory) = (0, directory.to_owned());
    while let Some(option) = words.get(at).map(|it| &*it.text).filter(|it| it.starts_with('-')) {
        if option == "-C" {
            directory.extend(words.get(at + 1).map(|it| &it.text));
        }
        at += if matches!(option, "-C" | "-c") { 2 } else { 1 };
    }
    // Where git goes is where links lead.
    let real = fs::canonicalize(&directory).unwrap_or(directory);
    (at, real)
}

/// Refuses a directory that is a repository, or has one, that makes git run something.
fn repository(directory: &Path) -> Result<(), Refusal> {
    // Git takes any folder that looks like this for a repository, however it came there.
    if is_repository(directory) {
        let message = format!("`{}` is a `.git` directory", directory.display());
        return Err(refused(&message, "run git in the directory that the repository is of"));
    }
    for place in git_directories(directory) {
        settings(&place.join("config"))?;
        settings(&place.join("config.worktree"))?;
    }
    Ok(())
}

fn settings(path: &Path) -> Result<(), Refusal> {
    let Some(bytes) = read(path) else { return Ok(()) };
    let shown = path.display();
    let Some(bytes) = bytes else {
        return Err(refused(&format!("`{shown}` is not a file, or too large"), HINT));
    };
    let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let text: String = text.split_ascii_whitespace().collect();
    match RUNNING.iter().find(|it| text.contains(**it)) {
        Some(sign) => {
            let sign = sign.trim_matches(['[', '"', '.', '=']);
            Err(refused(&format!("`{shown}` may make git run a program, by `{sign}`"), HINT))
        }
        None => Ok(()),
    }
}
