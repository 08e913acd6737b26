//! Git with hardened settings: a repository can configure programs that git runs by itself.

use std::path::{Path, PathBuf};

use crate::{
    refusal::Refusal,
    repository::{git_directories, is_repository, read},
};

use super::{
    Argument,
    git_command::{GitEffect, git_command},
    refusal,
};

/// Settings that override those of any repository.
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
/// Settings that cannot be overridden, because their names vary. Spaces are removed.
const RUNNING: &[&str] =
    &["[filter", "[include", "[diff\"", "[diff.", "[merge\"", "[merge.", "external="];

const HINT: &str = "look at the settings of the repository, and run git yourself";

/// Returns the arguments to start git with, if no repository in use configures a program.
pub(super) fn harden(words: Vec<Argument>, directory: &Path) -> Result<Vec<Argument>, Refusal> {
    let (at, directory) = subcommand(&words, directory);
    directory.ancestors().try_for_each(check_repository)?;
    let mut hardened =
        vec![Argument::literal("--no-pager"), Argument::literal("--no-optional-locks")];
    for setting in SETTINGS {
        hardened.extend([Argument::literal("-c"), Argument::literal(setting)]);
    }
    let command = words.get(at).and_then(|it| git_command(&it.text));
    let inside = command.is_some_and(|it| it.effect == GitEffect::ReadsSubmodules);
    for (index, word) in words.into_iter().enumerate() {
        hardened.push(word);
        if inside && index == at {
            hardened.push(Argument::literal("--ignore-submodules=dirty"));
        }
    }
    Ok(hardened)
}

/// Whether a word leads into a `.git` directory, which may contain tokens.
pub(super) fn is_inside(word: &Argument, directory: &Path) -> bool {
    if word.is_glob {
        let hidden = word.text.split(['/', '=']).filter(|it| it.starts_with('.') && it.len() > 1);
        return hidden
            .map(|it: &str| it.split(['*', '?', '[']).next().unwrap_or_default().to_owned())
            .any(|it| ".git".starts_with(&it));
    }
    let path = match word.text.split_once('=') {
        Some((option, _)) if option.starts_with("--exclude") => return false,
        Some((_, path)) => path,
        None => &word.text,
    };
    // A path may directly follow a short option.
    let attached = path.strip_prefix('-').and_then(|it| it.get(1..));
    let paths = [Some(path), attached].into_iter().flatten();
    paths.filter_map(|it| prowess::real_path(directory.join(it)).ok()).any(|it| has_git(&it))
}

/// Whether a path leads through `.git`.
pub(super) fn has_git(path: &Path) -> bool {
    path.components().any(|it| it.as_os_str() == ".git")
}

/// Returns the position of the subcommand, and the directory that git runs in.
pub(super) fn subcommand(words: &[Argument], directory: &Path) -> (usize, PathBuf) {
    let (mut at, mut directory) = (0, directory.to_owned());
    while let Some(option) = words.get(at).map(|it| &*it.text).filter(|it| it.starts_with('-')) {
        if option == "-C" {
            directory.extend(words.get(at + 1).map(|it| &it.text));
        }
        at += if matches!(option, "-C" | "-c") { 2 } else { 1 };
    }
    // Git follows links.
    let real = prowess::real_path(&directory).unwrap_or(directory);
    (at, real)
}

/// Refuses a bare repository, and a work tree whose repository configures a program.
fn check_repository(directory: &Path) -> Result<(), Refusal> {
    // Git treats any folder with this layout as a repository.
    if is_repository(directory) {
        let message = format!("`{}` is a `.git` directory", directory.display());
        return Err(refusal(&message, "run git in the work tree of that repository"));
    }
    for place in git_directories(directory) {
        check_settings(&place.join("config"))?;
        check_settings(&place.join("config.worktree"))?;
    }
    Ok(())
}

fn check_settings(path: &Path) -> Result<(), Refusal> {
    let Some(bytes) = read(path) else { return Ok(()) };
    let shown = path.display();
    let Some(bytes) = bytes else {
        return Err(refusal(&format!("`{shown}` is not a file, or too large"), HINT));
    };
    let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let text: String = text.split_ascii_whitespace().collect();
    match RUNNING.iter().find(|it| text.contains(**it)) {
        Some(sign) => {
            let sign = sign.trim_matches(['[', '"', '.', '=']);
            Err(refusal(&format!("`{shown}` may make git run a program, by `{sign}`"), HINT))
        }
        None => Ok(()),
    }
}
