//! Git with denied paths: the content of a file may also be in the history.

use std::path::Path;

use crate::{policy::Policy, protected::ResolvedPath, refusal::Refusal};

use super::{Argument, PlannedProgram, caution::is_option, git, refused};

/// The options with which a subcommand of git prints no file contents.
enum Options {
    Any,
    Only(&'static [&'static str]),
    But(&'static [&'static str]),
}

use Options::{Any, But, Only};

/// Subcommands of git that only print names, times and messages. All others may print file
/// contents.
const TELLING_NAMES: &[(&str, Options)] = &[
    ("add", But(ASKING)),
    ("branch", But(&["--format"])),
    ("checkout", But(ASKING)),
    ("cherry-pick", But(ASKING)),
    ("clean", Any),
    ("commit", But(ASKING)),
    ("count-objects", Any),
    ("describe", Any),
    ("init", Any),
    (
        "log",
        Only(&[
            "--",
            "--abbrev",
            "--abbrev-commit",
            "--after",
            "--all",
            "--author",
            "--before",
            "--branches",
            "--color",
            "--committer",
            "--date",
            "--date-order",
            "--decorate",
            "--dirstat",
            "--first-parent",
            "--follow",
            "--format",
            "--graph",
            "--grep",
            "--max-count",
            "--merges",
            "--name-only",
            "--name-status",
            "--no-color",
            "--no-decorate",
            "--no-merges",
            "--numstat",
            "--oneline",
            "--pretty",
            "--remotes",
            "--reverse",
            "--shortstat",
            "--since",
            "--skip",
            "--stat",
            "--summary",
            "--tags",
            "--topo-order",
            "--until",
            "-i",
            "-n",
            "-s",
        ]),
    ),
    ("ls-files", Any),
    ("ls-tree", Any),
    ("merge", But(ASKING)),
    ("merge-base", Any),
    ("name-rev", Any),
    ("rebase", But(ASKING)),
    ("reset", But(ASKING)),
    ("restore", But(ASKING)),
    ("rev-parse", Any),
    ("revert", But(ASKING)),
    ("rm", Any),
    ("shortlog", Any),
    ("show-ref", Any),
    ("status", But(&["-v", "--verbose"])),
    ("switch", But(ASKING)),
    ("tag", But(&["--format"])),
    ("version", Any),
];

/// Options that show changes to choose among.
const ASKING: &[&str] =
    &["-p", "--patch", "-i", "--interactive", "-v", "--verbose", "--show-current-patch"];

/// Refuses git commands that may print file contents, if a rule denies a path of the repository.
pub(super) fn check(
    step: &PlannedProgram,
    directory: &Path,
    policy: &Policy,
) -> Result<(), Refusal> {
    let words: Vec<Argument> = step.seen[0][1..].iter().map(|it| Argument::literal(it)).collect();
    let (at, directory) = git::subcommand(&words, directory);
    let top = directory.ancestors().find(|it| it.join(".git").exists()).unwrap_or(&directory);
    let Some(denied) = policy.denied().find(|it| is_near(it, top)) else { return Ok(()) };
    let Some(word) = words.get(at) else { return Ok(()) };
    let options = words[at + 1..].iter().filter(|it| it.text.starts_with('-'));
    let tells = match TELLING_NAMES.iter().find(|it| it.0 == word.text) {
        None => true,
        Some((_, Any)) => false,
        Some((_, Only(known))) => !options.into_iter().all(|it| is_among(&it.text, known)),
        Some((_, But(known))) => {
            options.into_iter().any(|it| known.iter().any(|own| is_option(&it.text, own)))
        }
    };
    if !tells {
        return Ok(());
    }
    let line = step.seen[0][1..].join(" ");
    Err(refused(
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
