//! The subcommands of git that are known. Any other word may be an alias.

use self::{GitEffect::*, NamesOnly::*};

/// A subcommand of git that only reads, or changes only the repository.
#[derive(Debug)]
pub(super) struct GitCommand {
    pub(super) name: &'static str,
    pub(super) effect: GitEffect,
    /// The options with which it shows only names, times and messages, and no content of files.
    pub(super) names_only: NamesOnly,
}

/// The effect of a subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitEffect {
    /// Changes the repository.
    Changes,
    /// Only reads it.
    Reads,
    /// Only reads it and its submodules, unless an option excludes those.
    ReadsSubmodules,
}

/// The options with which a subcommand shows no content of files.
#[derive(Debug, Clone, Copy)]
pub(super) enum NamesOnly {
    /// None.
    Never,
    /// Any.
    Always,
    /// These.
    With(&'static [&'static str]),
    /// All but these.
    Without(&'static [&'static str]),
}

/// Options that show changes for an interactive choice.
const ASKING: &[&str] =
    &["-p", "--patch", "-i", "--interactive", "-v", "--verbose", "--show-current-patch"];

/// Options of `git log` that show no content of files.
const LOG: &[&str] = &[
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
];

#[rustfmt::skip]
const COMMANDS: &[GitCommand] = &[
    GitCommand { name: "add", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "annotate", effect: Reads, names_only: Never },
    GitCommand { name: "blame", effect: Reads, names_only: Never },
    GitCommand { name: "branch", effect: Changes, names_only: Without(&["--format"]) },
    GitCommand { name: "cat-file", effect: Reads, names_only: Never },
    GitCommand { name: "checkout", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "cherry", effect: Reads, names_only: Never },
    GitCommand { name: "cherry-pick", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "clean", effect: Changes, names_only: Always },
    GitCommand { name: "commit", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "count-objects", effect: Reads, names_only: Always },
    GitCommand { name: "describe", effect: Reads, names_only: Always },
    GitCommand { name: "diff", effect: ReadsSubmodules, names_only: Never },
    GitCommand { name: "diff-files", effect: ReadsSubmodules, names_only: Never },
    GitCommand { name: "diff-index", effect: ReadsSubmodules, names_only: Never },
    GitCommand { name: "diff-tree", effect: ReadsSubmodules, names_only: Never },
    GitCommand { name: "for-each-ref", effect: Reads, names_only: Never },
    GitCommand { name: "fsck", effect: Reads, names_only: Never },
    GitCommand { name: "grep", effect: Reads, names_only: Never },
    GitCommand { name: "init", effect: Changes, names_only: Always },
    GitCommand { name: "log", effect: ReadsSubmodules, names_only: With(LOG) },
    GitCommand { name: "ls-files", effect: Reads, names_only: Always },
    GitCommand { name: "ls-tree", effect: Reads, names_only: Always },
    GitCommand { name: "merge", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "merge-base", effect: Reads, names_only: Always },
    GitCommand { name: "mv", effect: Changes, names_only: Never },
    GitCommand { name: "name-rev", effect: Reads, names_only: Always },
    GitCommand { name: "range-diff", effect: Reads, names_only: Never },
    GitCommand { name: "rebase", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "reflog", effect: Changes, names_only: Never },
    GitCommand { name: "reset", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "restore", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "rev-list", effect: Reads, names_only: Never },
    GitCommand { name: "rev-parse", effect: Reads, names_only: Always },
    GitCommand { name: "revert", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "rm", effect: Changes, names_only: Always },
    GitCommand { name: "shortlog", effect: Reads, names_only: Always },
    GitCommand { name: "show", effect: ReadsSubmodules, names_only: Never },
    GitCommand { name: "show-branch", effect: Reads, names_only: Never },
    GitCommand { name: "show-ref", effect: Reads, names_only: Always },
    GitCommand { name: "stash", effect: Changes, names_only: Never },
    GitCommand { name: "status", effect: ReadsSubmodules, names_only: Without(&["-v", "--verbose"]) },
    GitCommand { name: "switch", effect: Changes, names_only: Without(ASKING) },
    GitCommand { name: "tag", effect: Changes, names_only: Without(&["--format"]) },
    GitCommand { name: "version", effect: Reads, names_only: Always },
    GitCommand { name: "whatchanged", effect: ReadsSubmodules, names_only: Never },
];

/// Returns the subcommand of a name.
pub(super) fn git_command(name: &str) -> Option<&'static GitCommand> {
    COMMANDS.iter().find(|it| it.name == name)
}
