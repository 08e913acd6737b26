//! From an action somebody requests to a ruling of the policy, before anybody is asked.

mod grant;

use std::path::Path;

use prowess::{Definition, Manifest, Type, spec::SKILL_FILE};
use serde_json::Value;

use self::grant::Grant;
use crate::{
    commands::Plan,
    glob::fits,
    policy::{
        AllowedToolsMode, Approvals, Decision, Policy, PolicyRule,
        Readings::{All, Any},
    },
    sensitive::sensitive,
    tool::Action,
};

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

impl Policy {
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
                let document = entry.folder.as_ref().map(|it| it.join(SKILL_FILE));
                document.is_some_and(|path| self.lies(&path, it, all))
            }
            _ => false,
        };
        rule.tool.as_ref().is_none_or(tool)
            && rule.skill.as_ref().is_none_or(skill)
            && rule.command.as_ref().is_none_or(command)
            && rule.path.as_ref().is_none_or(path)
    }
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
