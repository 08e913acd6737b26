//! The policy: rules, approvals, and the effect of a skill's allowed tools.
//!
//! Everything here is plain data from a host or a `prowess.toml`. Nothing that a skill ships is
//! ever read as a policy.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

#[cfg(feature = "http")]
use prowess_http::{Hosts, HostsError};

use crate::{
    environment::InstalledInterpreter,
    protected::{ResolvedPath, is_within},
    repository::normalize,
    sensitive::why_secret,
    sys::slashed,
};
pub use crate::{glob::fits, protected::is_protected, roots::Roots};

/// The policy on actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The rules. Of those that match, deny beats ask beats allow.
    pub rules: Vec<PolicyRule>,
    /// When to ask about actions that no rule decides.
    pub approvals: Approvals,
    /// The effect of the tools that an active skill lists.
    pub allowed_tools: AllowedToolsMode,
    /// The permitted commands: each the first words of a command, such as `git status`.
    pub commands: Vec<String>,
    /// The only hosts that requests may go to; the whole internet if there is no list.
    pub hosts: Option<Vec<String>>,
    /// Whether those hosts must resolve to public addresses.
    pub are_hosts_public: bool,
    /// The hosts that scripts may connect to, after an approval that includes these hosts. The
    /// executor must use the same list.
    pub script_hosts: Vec<String>,
    /// The directories that commands and files are confined to.
    pub roots: Vec<PathBuf>,
    /// The environment variables that may be passed to scripts.
    pub environment: Vec<String>,
    /// The interpreters for commands, by name, if they are not the system's own.
    pub interpreters: BTreeMap<String, InstalledInterpreter>,
    /// Paths that nobody may read or write, whatever the roots are: a key, and the approvals.
    pub withheld: Vec<PathBuf>,
    /// Paths that nobody may write, whatever the roots are: the files that this was read from.
    pub protected: Vec<PathBuf>,
    /// The decision on writing a file that no rule covers. Secrets, hidden files, startup files and
    /// instructions of agents are asked about even if it is `Allow`.
    pub writes: Decision,
    /// The decision on a command that is not among `commands`.
    pub unlisted_commands: UnlistedCommands,
    /// The decision on reading a file with secrets that no rule covers. A command that names one
    /// counts as well.
    pub secret_reads: Decision,
    /// The decision on a request that is not read-only, to an unlisted host that no rule covers.
    pub sends: Decision,
}

/// A rule applies to actions that match all of its fields. One without fields applies to all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// Its decision.
    pub decision: Decision,
    /// A tool, with `*` and `?`, or its name in other clients.
    pub tool: Option<String>,
    /// The skill that is executed or brings the server, or an active one; with `*` and `?`.
    pub skill: Option<String>,
    /// The first words of a command: of any of its parts to deny or ask, of each to allow.
    pub command: Option<String>,
    /// The path of a file, with `*` and `?`: absolute or relative to a root of the policy. To deny
    /// or ask, it also matches the `SKILL.md` of a skill that is disclosed or executed.
    pub path: Option<String>,
}

/// The decision of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It is allowed without asking.
    Allow,
    /// The user is asked.
    Ask,
    /// It is denied.
    Deny,
}

/// The decision on an unlisted command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnlistedCommands {
    /// It is denied.
    #[default]
    Deny,
    /// The user is asked about this exact command.
    Ask,
}

/// When to ask about actions that no rule decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Approvals {
    /// If a skill requires it, or has changed since its approval.
    #[default]
    Needed,
    /// Before every action that is not read-only and not covered by an approval.
    Always,
    /// Never.
    Never,
}

/// The effect of the tools that an active skill lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AllowedToolsMode {
    /// They are allowed without asking.
    #[default]
    Preapprove,
    /// None; they are advice for the model.
    Advise,
    /// Other tools are refused while the skill is active.
    Enforce,
}

/// The default commands, which are read-only.
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
    /// Creates a rule that applies to everything.
    pub fn new(decision: Decision) -> Self {
        Self { decision, tool: None, skill: None, command: None, path: None }
    }
}

impl Policy {
    /// Returns the hosts that requests may go to.
    #[cfg(feature = "http")]
    pub fn request_hosts(&self) -> Result<Hosts, HostsError> {
        let hosts = self.hosts.as_ref().map_or_else(|| Ok(Hosts::default()), Hosts::new)?;
        Ok(if self.are_hosts_public { hosts.internet_only() } else { hosts })
    }

    /// Whether the user can be asked about an unlisted command.
    pub(crate) fn asks_about_commands(&self) -> bool {
        self.unlisted_commands == UnlistedCommands::Ask && self.approvals != Approvals::Never
    }

    /// Returns the reason to ask before a file is read; `None` if it is not asked about.
    pub(crate) fn why_secret(&self, path: &Path) -> Option<&'static str> {
        match self.secret_reads {
            Decision::Allow => None,
            Decision::Ask | Decision::Deny => self.known_secret(path),
        }
    }

    /// Returns the reason why a file may contain secrets, whether it is asked about or not.
    pub fn known_secret(&self, path: &Path) -> Option<&'static str> {
        why_secret(&self.relative_to_root(path))
    }

    /// Returns a path relative to the nearest root.
    pub(crate) fn relative_to_root(&self, path: &Path) -> PathBuf {
        let path = normalize(path);
        let roots = self.roots.iter().flat_map(|it| [it.clone(), ResolvedPath::of(it).end]);
        let inside = roots.filter_map(|it| path.strip_prefix(it).ok().map(Path::to_owned));
        inside.min_by_key(|it| it.components().count()).unwrap_or(path)
    }

    /// Whether nobody may use a path: it is withheld, or a rule denies it to everybody.
    pub(crate) fn withholds(&self, path: &Path) -> bool {
        self.withheld.iter().any(|it| is_within(path, &ResolvedPath::of(it).end))
            || path
                .ancestors()
                .any(|it| self.denied_paths().any(|pattern| self.path_matches(it, pattern, Any)))
    }

    /// Returns the paths that are denied to everybody, with `*` and `?`.
    pub(crate) fn denied_paths(&self) -> impl Iterator<Item = &str> {
        let denying = self.rules.iter().filter(|it| it.decision == Decision::Deny);
        denying
            .filter(|it| it.tool.is_none() && it.skill.is_none() && it.command.is_none())
            .filter_map(|it| it.path.as_deref())
    }

    /// Whether a path matches a pattern: in all of its readings, or in any of them. The readings
    /// are the path as written, and with links resolved.
    pub(crate) fn path_matches(&self, path: &Path, pattern: &str, readings: Readings) -> bool {
        let written = normalize(path);
        let resolved = resolve_links(&written);
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        match readings {
            All => {
                self.reading_matches(&written, pattern) && self.reading_matches(&resolved, pattern)
            }
            Any => {
                self.reading_matches(&written, pattern) || self.reading_matches(&resolved, pattern)
            }
        }
    }

    /// Whether a path, or its part below a root, matches a pattern.
    fn reading_matches(&self, path: &Path, pattern: &str) -> bool {
        let mut inside = self.roots.iter().filter_map(|it| path.strip_prefix(it).ok());
        fits(pattern, &slashed(path)) || inside.any(|it| fits(pattern, &slashed(it)))
    }
}

use Readings::{All, Any};

/// The number of readings that have to match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readings {
    All,
    Any,
}

/// Resolves the links of a path, as far as it exists.
fn resolve_links(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let existing = ancestors.find_map(|it| Some((it, prowess::real_path(it).ok()?)));
    match existing {
        Some((existing, real)) => match path.strip_prefix(existing) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path.to_owned(),
        },
        None => path.to_owned(),
    }
}
