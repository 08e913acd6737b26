use anyhow::Result;

use crate::{ExitStatus, arguments::Global, completion, printer::Printer};

/// Install skills from a repository, registry, archive or folder
///
/// Fetches the source, shows what is in it and what `check` and `audit` find, and asks before it writes anything. The skills go
/// where your clients look: one copy in `.agents/skills`, and links to it from the directories of clients that do not look there. `prowess.toml`
/// says what is installed from where, and `prowess.lock` exactly which version, so that others get the same with `prowess sync`.
/// Nothing that a skill brings is run.
///
/// A source is written as `owner/repo`, `owner/repo/path`, `owner/repo@skill`, any of them with `#branch`, a URL of a
/// repository or of a folder in it, a folder, an archive or a `SKILL.md` by path or URL, `npm:package`, `clawhub:skill`, or a web site with
/// skills. See `docs/packages.md`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the skills are, such as `anthropics/skills`
    #[arg(required = true, value_name = "SOURCE", value_hint = clap::ValueHint::AnyPath)]
    pub(super) sources: Vec<String>,
    /// Install the skill with this name; repeatable
    #[arg(short, long, value_name = "NAME")]
    pub(super) skill: Vec<String>,
    /// Install every skill of the source
    #[arg(long, conflicts_with = "skill")]
    pub(super) all: bool,
    /// Install for this client, such as `claude-code`; repeatable [default: those that are found]
    #[arg(long, value_name = "NAME", add = completion::clients())]
    pub(super) client: Vec<String>,
    /// Install for all your projects, instead of the one you are in
    #[arg(short, long)]
    pub(super) global: bool,
    /// Stay at this branch, tag, commit or version
    #[arg(long, value_name = "REF")]
    pub(super) pin: Option<String>,
    /// Give each client its own copy instead of a link
    #[arg(long)]
    pub(super) copy: bool,
    /// Show what is in the source, and install nothing
    #[arg(short, long, conflicts_with_all = ["all", "yes", "dry_run"])]
    pub(super) list: bool,
    /// Show what would be installed, without writing anything
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Install although `audit` reports errors
    #[arg(long)]
    pub(super) allow_findings: bool,
    /// Use only what was fetched before
    #[arg(long)]
    pub(super) offline: bool,
    /// Install without asking
    #[arg(short, long)]
    pub(super) yes: bool,
}
