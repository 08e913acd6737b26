//! Git with denied paths: the content of a file may also be in the history.

use std::path::Path;

use crate::{policy::Policy, protected::ResolvedPath, refusal::Refusal};

use super::{
    Argument, PlannedProgram,
    caution::is_option,
    git,
    git_command::{NamesOnly, git_command},
    refusal,
};

/// Refuses git commands that may print file contents, if a rule denies a path of the repository.
pub(super) fn check(
    program: &PlannedProgram,
    directory: &Path,
    policy: &Policy,
) -> Result<(), Refusal> {
    let words: Vec<Argument> =
        program.words[0][1..].iter().map(|it| Argument::literal(it)).collect();
    let (at, directory) = git::subcommand(&words, directory);
    let top = directory.ancestors().find(|it| it.join(".git").exists()).unwrap_or(&directory);
    let Some(denied) = policy.denied_paths().find(|it| is_near(it, top)) else { return Ok(()) };
    let Some(word) = words.get(at) else { return Ok(()) };
    let options = words[at + 1..].iter().filter(|it| it.text.starts_with('-'));
    let mut options = options.map(|it| &*it.text);
    let prints_content = match git_command(&word.text).map(|it| it.names_only) {
        None | Some(NamesOnly::Never) => true,
        Some(NamesOnly::Always) => false,
        Some(NamesOnly::With(known)) => !options.all(|it| is_among(it, known)),
        Some(NamesOnly::Without(known)) => {
            options.any(|it| known.iter().any(|own| is_option(it, own)))
        }
    };
    if !prints_content {
        return Ok(());
    }
    let line = program.words[0][1..].join(" ");
    Err(refusal(
        &format!("`git {line}` may show the content of `{denied}`, which may not be read"),
        "`git log`, `git log --stat` and `git status` show which files have changed",
    ))
}

/// Whether an option is one of these, unabbreviated, or a number of commits.
fn is_among(option: &str, known: &[&str]) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    let number = option.strip_prefix("-n").or_else(|| option.strip_prefix('-'));
    known.contains(&name)
        || number.is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
}

/// Whether a pattern may match something in a directory.
fn is_near(pattern: &str, directory: &Path) -> bool {
    if !pattern.starts_with('/') {
        return true;
    }
    let plain = match pattern.find(['*', '?']) {
        Some(at) => &pattern[..pattern[..at].rfind('/').unwrap_or(0)],
        None => pattern,
    };
    let plain = ResolvedPath::of(Path::new(plain)).end;
    plain.starts_with(directory) || directory.starts_with(&plain)
}
