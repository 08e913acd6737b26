//! What may be done: rules, approvals, and what the tools of a skill count for.
//!
//! Everything here is plain data that a host or a `prowess.toml` gives. Nothing that a skill ships
//! is ever read as a policy.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

#[cfg(feature = "http")]
use prowess_http::{Hosts, HostsError};

use crate::{
    environment::InstalledInterpreter,
    glob::fits,
    protected::{ResolvedPath, lies_in},
    sensitive::secret,
};

/// What may be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Who decides about what. Of the rules that match, deny beats ask beats allow.
    pub rules: Vec<PolicyRule>,
    /// When somebody is asked about what no rule decides.
    pub approvals: Approvals,
    /// What the tools count for that an active skill lists.
    pub allowed_tools: AllowedToolsMode,
    /// The commands that may run: each the first words of a command, such as `git status`.
    pub commands: Vec<String>,
    /// The hosts that may be asked, and no others; the internet when there is no list.
    pub hosts: Option<Vec<String>>,
    /// Whether those hosts lead to the internet alone, wherever their names are resolved to.
    pub are_hosts_public: bool,
    /// The hosts that scripts may connect to, each once somebody has approved it with these hosts. The
    /// executor has to be given the same.
    pub script_hosts: Vec<String>,
    /// The directories that commands and files are confined to.
    pub roots: Vec<PathBuf>,
    /// The environment variables that scripts may be given.
    pub environment: Vec<String>,
    /// What commands find under the names of interpreters, where that is not the system's own.
    pub interpreters: BTreeMap<String, InstalledInterpreter>,
    /// What nobody reads or writes, whatever the roots are: a key, and where approvals are kept.
    pub withheld: Vec<PathBuf>,
    /// What nobody writes, whatever the roots are: the files that this was read from.
    pub protected: Vec<PathBuf>,
    /// What happens when a tool wants to write a file that no rule decides about. Secrets, hidden
    /// files, startup files and instructions of agents are asked about also where it is `Allow`.
    pub writes: Decision,
    /// What happens when a command is not among `commands`.
    pub unlisted_commands: UnlistedCommands,
    /// What happens when a tool wants to read a file with secrets that no rule decides about. A command
    /// that names one counts as well.
    pub secret_reads: Decision,
    /// What happens when a request that does more than get something is to go to a host that nobody has
    /// listed, and that no rule decides about.
    pub sends: Decision,
}

/// A rule decides about whatever matches all that it names. One that names nothing matches all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// What it decides.
    pub decision: Decision,
    /// A tool, with `*` and `?`, or what clients call it.
    pub tool: Option<String>,
    /// The skill that is executed or brought the server, or one that is active; with `*` and `?`.
    pub skill: Option<String>,
    /// The first words of a command: of any of its parts to deny or ask, of each to allow.
    pub command: Option<String>,
    /// The path of a file, with `*` and `?`: from the root of the disk or from a root of the policy. To
    /// deny or ask, it is also that of the `SKILL.md` of a skill that is told or executed.
    pub path: Option<String>,
}

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It may be done, and nobody is asked.
    Allow,
    /// Somebody is asked.
    Ask,
    /// It may not be done.
    Deny,
}

/// What happens to a command that is not listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnlistedCommands {
    /// It is refused.
    #[default]
    Deny,
    /// Somebody is asked about exactly this command.
    Ask,
}

/// When somebody is asked about what no rule decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Approvals {
    /// When a skill requires it, or has changed since it was approved.
    #[default]
    Needed,
    /// Before whatever does more than look, and no approval covers.
    Always,
    /// Never.
    Never,
}

/// What the tools count for that an active skill lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AllowedToolsMode {
    /// Nobody is asked about them.
    #[default]
    Preapprove,
    /// Nothing; they are advice for the model.
    Advise,
    /// Other tools are refused while the skill is active.
    Enforce,
}

/// What may run when nobody says otherwise: commands that look, and change nothing.
const COMMANDS: &[&str] = &[
    "basename",
    "cat",
    "cut",
    "date",
    "diff",
    "dirname",
    "du",
    "echo",
    "file",
    "find",
    "git diff",
    "git log",
    "git show",
    "git status",
    "grep",
    "head",
    "ls",
    "printf",
    "pwd",
    "sha256sum",
    "sort",
    "stat",
    "tail",
    "tr",
    "true",
    "uname",
    "uniq",
    "wc",
];

impl Default for Policy {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            approvals: Approvals::default(),
            allowed_tools: AllowedToolsMode::default(),
            commands: COMMANDS.iter().map(|&it| it.to_owned()).collect(),
            hosts: None,
            are_hosts_public: false,
            script_hosts: Vec::new(),
            roots: Vec::new(),
            environment: Vec::new(),
            interpreters: BTreeMap::new(),
            withheld: Vec::new(),
            protected: Vec::new(),
            writes: Decision::Allow,
            unlisted_commands: UnlistedCommands::default(),
            secret_reads: Decision::Allow,
            sends: Decision::Allow,
        }
    }
}

impl PolicyRule {
    /// A rule that decides about everything.
    pub fn new(decision: Decision) -> Self {
        Self { decision, tool: None, skill: None, command: None, path: None }
    }
}

impl Policy {
    /// The hosts that requests may go to.
    #[cfg(feature = "http")]
    pub fn request_hosts(&self) -> Result<Hosts, HostsError> {
        let hosts = self.hosts.as_ref().map_or_else(|| Ok(Hosts::default()), Hosts::new)?;
        Ok(if self.are_hosts_public { hosts.internet_only() } else { hosts })
    }

    /// Whether somebody can be asked about a command that is not listed.
    pub(crate) fn asks_about_commands(&self) -> bool {
        self.unlisted_commands == UnlistedCommands::Ask && self.approvals != Approvals::Never
    }

    /// Why somebody is asked before a file is read; nothing where nobody is.
    pub(crate) fn secret(&self, path: &Path) -> Option<&'static str> {
        match self.secret_reads {
            Decision::Allow => None,
            _ => self.known_secret(path),
        }
    }

    /// Why a file may hold secrets, whether anybody is asked about it or not.
    pub fn known_secret(&self, path: &Path) -> Option<&'static str> {
        secret(&self.inside(path))
    }

    /// A path behind the nearest root.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        let path = plain(path);
        let roots = self.roots.iter().flat_map(|it| [it.clone(), ResolvedPath::of(it).end]);
        let inside = roots.filter_map(|it| path.strip_prefix(it).ok().map(Path::to_owned));
        inside.min_by_key(|it| it.components().count()).unwrap_or(path)
    }

    /// Whether nobody may use a path: it is withheld, or a rule denies it to everybody.
    pub(crate) fn withholds(&self, path: &Path) -> bool {
        let is_denied = |it: &Path| self.denied().any(|pattern| self.lies(it, pattern, Any));
        self.withheld.iter().any(|it| lies_in(path, &ResolvedPath::of(it).end))
            || path.ancestors().any(is_denied)
    }

    /// The paths that are denied to everybody, with `*` and `?`.
    pub(crate) fn denied(&self) -> impl Iterator<Item = &str> {
        let is_general =
            |it: &&PolicyRule| (&it.tool, &it.skill, &it.command) == (&None, &None, &None);
        let denying = self.rules.iter().filter(|it| it.decision == Decision::Deny);
        denying.filter(is_general).filter_map(|it| it.path.as_deref())
    }

    /// Whether a path fits a pattern: in all of its readings, or in any of them. It reads as it is
    /// written and as its links lead.
    pub(crate) fn lies(&self, path: &Path, pattern: &str, readings: Readings) -> bool {
        let written = plain(path);
        let led = real(&written);
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let fitting = |path: &Path| {
            let inside = self.roots.iter().filter_map(|it| path.strip_prefix(it).ok());
            fits(pattern, &path.to_string_lossy())
                || inside.into_iter().any(|it| fits(pattern, &it.to_string_lossy()))
        };
        match readings {
            All => fitting(&written) && fitting(&led),
            Any => fitting(&written) || fitting(&led),
        }
    }
}

use Readings::{All, Any};

/// How many readings of the same thing have to match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readings {
    All,
    Any,
}

/// A path without `.` and `..`, as it is written.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Where the links of a path lead, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let real = ancestors.find_map(|it| Some((it, std::fs::canonicalize(it).ok()?)));
    match real {
        Some((there, real)) => match path.strip_prefix(there) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path.to_owned(),
        },
        None => path.to_owned(),
    }
}
