//! What may be done: rules, approvals, and what the tools of a skill count for.
//!
//! Everything here is plain data that a host or a `prowess.toml` gives. Nothing that a skill ships
//! is ever read as a policy.

mod glob;
mod grant;
mod sensitive;

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use prowess::{Definition, Manifest, Type};
#[cfg(feature = "http")]
use prowess_http::{Hosts, HostsError};
use serde_json::Value;

use crate::{
    commands::Plan,
    environment::InstalledInterpreter,
    protected::{ResolvedPath, lies_in},
    tool::Action,
};

pub use self::glob::fits;
pub(crate) use self::sensitive::{acted_on, guarded, holds_secrets};
use self::{
    grant::Grant,
    sensitive::{secret, sensitive},
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

/// Something that somebody wishes to do.
#[derive(Debug, Clone, Copy)]
pub struct ActionRequest<'a> {
    /// The tool that would do it.
    pub tool: &'a str,
    /// What it would do.
    pub action: &'a Action,
    /// The skills that are active.
    pub active: &'a [Manifest],
    /// What the tool is given, for whoever is asked.
    pub given: Option<&'a Value>,
}

/// What a policy says to a wish before anybody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// It may be done.
    Allow(Ground),
    /// Somebody is asked, unless the same was approved before.
    Ask(Ground),
    /// It may not be done.
    Deny(Ground),
    /// It may be done, unless something else was approved under its name before.
    AskIfChanged,
}

/// Why a policy says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// A rule.
    Rule,
    /// The setting `approvals`.
    Setting,
    /// The tools that an active skill lists.
    AllowedTools,
    /// The skill requires approval.
    Required,
    /// It goes on running.
    Server,
    /// A server offers it.
    Offered,
    /// It writes a file, and the setting `writes` says so.
    Writes,
    /// It writes a file that is asked about each time, for this reason.
    Sensitive(&'static str),
    /// It reads a file that may contain secrets, for this reason.
    Secret(&'static str),
    /// It sends something to a host that nobody has listed.
    Sends,
    /// It is a command that is not listed.
    Unlisted,
    /// It is a script that would reach the network.
    Network,
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

    /// What it says to a wish; `plan` is the command of the wish, taken apart.
    pub(crate) fn ruling(&self, requested: &ActionRequest<'_>, plan: Option<&Plan>) -> Ruling {
        let matching = self.rules.iter().filter(|it| self.matches(it, requested, plan));
        let ruled = matching.map(|it| it.decision).max();
        if ruled == Some(Decision::Deny) {
            return Ruling::Deny(Ground::Rule);
        }
        let listed = self.is_listed(requested, plan);
        if listed == Some(false) && self.allowed_tools == AllowedToolsMode::Enforce {
            return Ruling::Deny(Ground::AllowedTools);
        }
        // A rule that allows a tool says nothing about commands that it could not run before.
        if plan.is_some_and(|it| !it.unlisted.is_empty()) {
            return Ruling::Ask(Ground::Unlisted);
        }
        // Nor about the network.
        if !self.hosts_of(requested.action).is_empty() && self.approvals != Approvals::Never {
            return Ruling::Ask(Ground::Network);
        }
        if plan.is_some_and(|it| !it.secrets.is_empty()) {
            let ground = Ground::Secret("it names a file that may contain secrets");
            let is_denied =
                self.secret_reads == Decision::Deny || self.approvals == Approvals::Never;
            return if is_denied { Ruling::Deny(ground) } else { Ruling::Ask(ground) };
        }
        let special = match requested.action {
            Action::Write(change) => self.write_ruling(requested, &change.path, ruled),
            Action::Read(path) | Action::Resource { path, .. } => {
                self.read_ruling(requested, path, ruled)
            }
            Action::Fetch { method, .. } => self.send_ruling(method, ruled),
            _ => None,
        };
        if let Some(ruling) = special {
            return ruling;
        }
        match ruled {
            Some(Decision::Ask) if self.approvals != Approvals::Never => Ruling::Ask(Ground::Rule),
            Some(Decision::Allow) => Ruling::Allow(Ground::Rule),
            _ => self.unruled(requested, listed == Some(true)),
        }
    }

    /// Whether a file with secrets may only be read by this tool once somebody has agreed.
    pub(crate) fn keeps_secret(&self, tool: &str, path: &Path) -> bool {
        let action = Action::Read(path.to_owned());
        let requested = ActionRequest { tool, action: &action, active: &[], given: None };
        let ruling = self.ruling(&requested, None);
        matches!(ruling, Ruling::Ask(Ground::Secret(_)) | Ruling::Deny(_))
    }

    /// The hosts that a script which would run could connect to; none for anything else.
    pub(crate) fn hosts_of(&self, action: &Action) -> &[String] {
        match action {
            Action::Execute(entry) if matches!(entry.definition, Definition::Script { .. }) => {
                &self.script_hosts
            }
            _ => &[],
        }
    }

    /// Whether somebody can be asked about a command that is not listed.
    pub(crate) fn asks_about_commands(&self) -> bool {
        self.unlisted_commands == UnlistedCommands::Ask && self.approvals != Approvals::Never
    }

    /// What it says to a file that is to be written; nothing where that is like anything else.
    fn write_ruling(
        &self,
        requested: &ActionRequest<'_>,
        path: &Path,
        ruled: Option<Decision>,
    ) -> Option<Ruling> {
        if let Some(why) = sensitive(&self.inside(path)) {
            let denied = (self.writes == Decision::Deny).then_some(Ground::Writes);
            return self.path_ruling(requested, ruled, denied, Ground::Sensitive(why));
        }
        match (ruled, self.writes) {
            (None, Decision::Deny) => Some(Ruling::Deny(Ground::Writes)),
            (None, Decision::Ask) if self.approvals != Approvals::Never => {
                Some(Ruling::Ask(Ground::Writes))
            }
            _ => None,
        }
    }

    /// What it says to a file that is to be read; nothing where that is like anything else.
    fn read_ruling(
        &self,
        requested: &ActionRequest<'_>,
        path: &Path,
        ruled: Option<Decision>,
    ) -> Option<Ruling> {
        let why = self.secret(path)?;
        let denied = (self.secret_reads == Decision::Deny).then_some(Ground::Secret(why));
        self.path_ruling(requested, ruled, denied, Ground::Secret(why))
    }

    /// What it says to a file that is asked about, unless a rule has its path.
    fn path_ruling(
        &self,
        requested: &ActionRequest<'_>,
        ruled: Option<Decision>,
        denied: Option<Ground>,
        ground: Ground,
    ) -> Option<Ruling> {
        let is_never = self.approvals == Approvals::Never;
        let names_it = |it: &&PolicyRule| it.decision == Decision::Allow && it.path.is_some();
        let mut allowing = self.rules.iter().filter(names_it);
        match (ruled, denied) {
            (Some(Decision::Allow), _) if allowing.any(|it| self.matches(it, requested, None)) => {
                None
            }
            (None, Some(denied)) => Some(Ruling::Deny(denied)),
            // Nobody is asked, and it is not for a setting to answer.
            _ if is_never => Some(Ruling::Deny(ground)),
            _ => Some(Ruling::Ask(ground)),
        }
    }

    /// What it says to a request; nothing where that is like anything else.
    fn send_ruling(&self, method: &str, ruled: Option<Decision>) -> Option<Ruling> {
        let only_gets = matches!(method, "GET" | "HEAD" | "OPTIONS");
        // What only a project has listed nobody has agreed to.
        let is_listed = self.hosts.is_some() && !self.are_hosts_public;
        match (ruled, self.sends) {
            _ if only_gets || is_listed => None,
            (None, Decision::Deny) => Some(Ruling::Deny(Ground::Sends)),
            (None, Decision::Ask) if self.approvals != Approvals::Never => {
                Some(Ruling::Ask(Ground::Sends))
            }
            _ => None,
        }
    }

    /// Why somebody is asked before a file is read; nothing where nobody is.
    pub(crate) fn secret(&self, path: &Path) -> Option<&'static str> {
        match self.secret_reads {
            Decision::Allow => None,
            _ => self.known_secret(path),
        }
    }

    /// Why a file may hold secrets, whether anybody is asked about it or not.
    pub(crate) fn known_secret(&self, path: &Path) -> Option<&'static str> {
        secret(&self.inside(path))
    }

    /// A path behind the nearest root.
    fn inside(&self, path: &Path) -> PathBuf {
        let path = plain(path);
        let roots = self.roots.iter().flat_map(|it| [it.clone(), ResolvedPath::of(it).end]);
        let inside = roots.filter_map(|it| path.strip_prefix(it).ok().map(Path::to_owned));
        inside.min_by_key(|it| it.components().count()).unwrap_or(path)
    }

    fn unruled(&self, requested: &ActionRequest<'_>, listed: bool) -> Ruling {
        let always = self.approvals == Approvals::Always;
        match requested.action {
            _ if self.approvals == Approvals::Never => Ruling::Allow(Ground::Setting),
            // A skill cannot let another one off that asks for approval itself.
            Action::Execute(entry) if entry.manifest.requires_approval => {
                Ruling::Ask(Ground::Required)
            }
            // What tells a model what to do is asked about as if it ran. Of any other skill the text
            // does nothing, until the skill is executed.
            Action::Disclose(entry) if entry.manifest.kind != Type::Instruction => {
                Ruling::Allow(Ground::Setting)
            }
            Action::Disclose(entry) if entry.manifest.requires_approval => {
                Ruling::Ask(Ground::Required)
            }
            Action::Disclose(_) => Ruling::AskIfChanged,
            Action::Execute(_) if always => Ruling::Ask(Ground::Setting),
            Action::Execute(_) => Ruling::AskIfChanged,
            // Nor can it let its own servers off.
            Action::Start { .. } | Action::Connect { .. } => Ruling::Ask(Ground::Server),
            // Whoever serves it wrote it, and may write something else tomorrow.
            Action::TakeUp(_) => Ruling::Ask(Ground::Offered),
            _ if listed && self.allowed_tools == AllowedToolsMode::Preapprove => {
                Ruling::Allow(Ground::AllowedTools)
            }
            Action::Tell | Action::Resource { .. } | Action::Read(_) => {
                Ruling::Allow(Ground::Setting)
            }
            _ if always => Ruling::Ask(Ground::Setting),
            _ => Ruling::Allow(Ground::Setting),
        }
    }

    /// Whether an active skill lists this; nothing when none lists any tool, or when the wish is
    /// only to be told something.
    fn is_listed(&self, requested: &ActionRequest<'_>, plan: Option<&Plan>) -> Option<bool> {
        if matches!(
            requested.action,
            Action::Tell | Action::Disclose(_) | Action::Resource { .. } | Action::TakeUp(_)
        ) {
            return None;
        }
        let lists = requested.active.iter().map(|it| &it.allowed_tools.0);
        let grants: Vec<Grant<'_>> = lists.flatten().map(|it| Grant::read(it)).collect();
        if grants.is_empty() {
            return None;
        }
        let starts = matches!(requested.action, Action::Start { .. });
        let names = |it: &Grant<'_>| {
            it.names(requested.tool, requested.action) || (starts && it.needs(requested.tool))
        };
        let fitting = grants.iter().filter(|it| names(it));
        Some(match requested.action {
            // Each part of a command may be listed by another grant.
            Action::Command { .. } => {
                let patterns: Vec<Option<&str>> = fitting.map(|it| it.argument).collect();
                plan.is_some_and(|plan| {
                    plan.parts().all(|argv| {
                        patterns.iter().any(|it| it.is_none_or(|it| is_granted(argv, it)))
                    })
                })
            }
            Action::Read(_) | Action::Write(_) => fitting.into_iter().any(|it| {
                let lies = |pattern: &str| {
                    requested.action.path().is_some_and(|it| self.lies(it, pattern, All))
                };
                it.argument.is_none_or(lies)
            }),
            Action::Execute(entry) => fitting
                .into_iter()
                .any(|it| it.argument.is_none_or(|it| fits(it, &entry.manifest.name))),
            Action::Fetch { url, .. } => fitting
                .into_iter()
                .any(|it| it.argument.is_none_or(|it| fits(it, url) || is_domain(it, url))),
            Action::Query(_)
            | Action::Tell
            | Action::Disclose(_)
            | Action::Resource { .. }
            | Action::Start { .. }
            | Action::Serve { .. }
            | Action::Connect { .. }
            | Action::TakeUp(_) => fitting.into_iter().any(|it| it.argument.is_none()),
        })
    }

    fn matches(
        &self,
        rule: &PolicyRule,
        requested: &ActionRequest<'_>,
        plan: Option<&Plan>,
    ) -> bool {
        let all = if rule.decision == Decision::Allow { All } else { Any };
        let tool = |it: &String| {
            fits(it, requested.tool) || Grant::read(it).names(requested.tool, requested.action)
        };
        let active = |it: &String| requested.active.iter().any(|manifest| fits(it, &manifest.name));
        let skill = |it: &String| match requested.action {
            // What one skill may do does not speak for another.
            Action::Execute(entry) | Action::Disclose(entry) | Action::Start { entry, .. } => {
                fits(it, &entry.manifest.name) || (all == Any && active(it))
            }
            Action::Serve { skill: Some(skill), .. } => {
                fits(it, skill) || (all == Any && active(it))
            }
            Action::TakeUp(skill) => fits(it, &skill.address) || (all == Any && active(it)),
            _ => active(it),
        };
        let command = |it: &String| match plan {
            Some(plan) if all == All => plan.parts().all(|argv| begins(argv, it)),
            Some(plan) => plan.parts().any(|argv| begins(argv, it)),
            None => false,
        };
        let path = |it: &String| match requested.action {
            Action::Read(_) | Action::Write(_) | Action::Resource { .. } => {
                requested.action.path().is_some_and(|path| self.lies(path, it, all))
            }
            // To allow a file is not to allow what the skill does.
            Action::Execute(entry) | Action::Disclose(entry) if all == Any => {
                let document = entry.folder.as_ref().map(|it| it.join("SKILL.md"));
                document.is_some_and(|path| self.lies(&path, it, all))
            }
            _ => false,
        };
        rule.tool.as_ref().is_none_or(tool)
            && rule.skill.as_ref().is_none_or(skill)
            && rule.command.as_ref().is_none_or(command)
            && rule.path.as_ref().is_none_or(path)
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
    fn lies(&self, path: &Path, pattern: &str, readings: Readings) -> bool {
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
enum Readings {
    All,
    Any,
}

/// Whether a command begins with these words; in each, `*` and `?` stand for something, and a word
/// `*` for all that follows.
fn begins(argv: &[String], pattern: &str) -> bool {
    let mut rest = argv.iter();
    for word in pattern.split_ascii_whitespace() {
        match rest.next() {
            _ if word == "*" => return true,
            Some(it) if fits(word, it) => {}
            _ => return false,
        }
    }
    true
}

/// Whether a command is what a skill lists: `git add:*` and `git add *` may be followed by anything,
/// `git add` is that alone.
fn is_granted(argv: &[String], pattern: &str) -> bool {
    match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")) {
        Some(start) => begins(argv, start),
        None => begins(argv, pattern) && argv.len() == pattern.split_ascii_whitespace().count(),
    }
}

/// Whether an address lies in a domain: `domain:example.com`.
fn is_domain(pattern: &str, url: &str) -> bool {
    let Some(domain) = pattern.strip_prefix("domain:") else { return false };
    let rest = url.split_once("://").map_or(url, |it| it.1);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    host.split(':').next().is_some_and(|it| it.eq_ignore_ascii_case(domain))
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
