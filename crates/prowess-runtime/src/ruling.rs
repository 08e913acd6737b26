//! The ruling of a policy on a requested action, before anybody is asked.

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
        Readings::{self, All, Any},
    },
    sensitive::why_sensitive,
    tool::Action,
};

/// An action that is requested.
#[derive(Debug, Clone, Copy)]
pub struct ActionRequest<'a> {
    /// The tool that would do it.
    pub tool: &'a str,
    /// The action.
    pub action: &'a Action,
    /// The active skills.
    pub active: &'a [Manifest],
    /// The input of the tool, to show in a question.
    pub given: Option<&'a Value>,
}

/// The ruling of a policy, before anybody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// It is allowed.
    Allow(Ground),
    /// The user is asked, unless the same was approved before.
    Ask(Ground),
    /// It is denied.
    Deny(Ground),
    /// It is allowed, unless something else was approved under its name before.
    AskIfChanged,
}

/// The ground of a ruling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// A rule of the policy.
    Rule,
    /// The setting `approvals`.
    Setting,
    /// The tools listed by an active skill.
    AllowedTools,
    /// The skill requires approval.
    Required,
    /// It keeps running.
    Server,
    /// A server offers it.
    Offered,
    /// The setting `writes`, for a file to be written.
    Writes,
    /// It writes a file that is asked about each time, for this reason.
    Sensitive(&'static str),
    /// It reads a file that may contain secrets, for this reason.
    Secret(&'static str),
    /// It sends data to an unlisted host.
    Sends,
    /// It is an unlisted command.
    Unlisted,
    /// It is a script that would have network access.
    Network,
}

impl Policy {
    /// Returns the ruling on a requested action; `plan` is its command, parsed.
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
        // A rule that allows a tool does not cover commands outside of its list.
        if plan.is_some_and(|it| !it.unlisted.is_empty()) {
            return Ruling::Ask(Ground::Unlisted);
        }
        // Nor does it cover the network.
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
            _ => self.default_ruling(requested, listed == Some(true)),
        }
    }

    /// Whether this tool may only read a file with secrets after approval, if at all.
    pub(crate) fn asks_about_secret(&self, tool: &str, path: &Path) -> bool {
        let action = Action::Read(path.to_owned());
        let requested = ActionRequest { tool, action: &action, active: &[], given: None };
        let ruling = self.ruling(&requested, None);
        matches!(ruling, Ruling::Ask(Ground::Secret(_)) | Ruling::Deny(_))
    }

    /// Returns the hosts that a script to be run could connect to; none for other actions.
    pub(crate) fn hosts_of(&self, action: &Action) -> &[String] {
        match action {
            Action::Execute(entry) if matches!(entry.definition, Definition::Script { .. }) => {
                &self.script_hosts
            }
            _ => &[],
        }
    }

    /// Returns the ruling specific to writing a file, if there is one.
    fn write_ruling(
        &self,
        requested: &ActionRequest<'_>,
        path: &Path,
        ruled: Option<Decision>,
    ) -> Option<Ruling> {
        if let Some(why) = why_sensitive(&self.relative_to_root(path)) {
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

    /// Returns the ruling specific to reading a file, if there is one.
    fn read_ruling(
        &self,
        requested: &ActionRequest<'_>,
        path: &Path,
        ruled: Option<Decision>,
    ) -> Option<Ruling> {
        let why = self.why_secret(path)?;
        let denied = (self.secret_reads == Decision::Deny).then_some(Ground::Secret(why));
        self.path_ruling(requested, ruled, denied, Ground::Secret(why))
    }

    /// Returns the ruling on a file that is asked about, unless a rule covers its path.
    fn path_ruling(
        &self,
        requested: &ActionRequest<'_>,
        ruled: Option<Decision>,
        denied: Option<Ground>,
        ground: Ground,
    ) -> Option<Ruling> {
        let is_never = self.approvals == Approvals::Never;
        let mut allowing = self
            .rules
            .iter()
            .filter(|it: &&PolicyRule| it.decision == Decision::Allow && it.path.is_some());
        match (ruled, denied) {
            (Some(Decision::Allow), _) if allowing.any(|it| self.matches(it, requested, None)) => {
                None
            }
            (None, Some(denied)) => Some(Ruling::Deny(denied)),
            // Nobody can be asked, and a setting must not answer instead.
            _ if is_never => Some(Ruling::Deny(ground)),
            _ => Some(Ruling::Ask(ground)),
        }
    }

    /// Returns the ruling specific to an HTTP request, if there is one.
    fn send_ruling(&self, method: &str, ruled: Option<Decision>) -> Option<Ruling> {
        let only_gets = matches!(method, "GET" | "HEAD" | "OPTIONS");
        // Hosts that only the project lists were not approved by the user.
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

    fn default_ruling(&self, requested: &ActionRequest<'_>, listed: bool) -> Ruling {
        let always = self.approvals == Approvals::Always;
        match requested.action {
            _ if self.approvals == Approvals::Never => Ruling::Allow(Ground::Setting),
            // A skill cannot exempt another one that requires approval itself.
            Action::Execute(entry) if entry.manifest.requires_approval => {
                Ruling::Ask(Ground::Required)
            }
            // Instructions are asked about as if they ran. The text of any other skill has no
            // effect until the skill is executed.
            Action::Disclose(entry) if entry.manifest.kind != Type::Instruction => {
                Ruling::Allow(Ground::Setting)
            }
            Action::Disclose(entry) if entry.manifest.requires_approval => {
                Ruling::Ask(Ground::Required)
            }
            Action::Disclose(_) => Ruling::AskIfChanged,
            Action::Execute(_) if always => Ruling::Ask(Ground::Setting),
            Action::Execute(_) => Ruling::AskIfChanged,
            // Nor can it exempt its own servers.
            Action::Start { .. } | Action::Connect { .. } => Ruling::Ask(Ground::Server),
            // It is written by the server, which may change it at any time.
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

    /// Whether an active skill lists this; `None` if none lists any tool, or if the action only
    /// returns information.
    fn is_listed(&self, requested: &ActionRequest<'_>, plan: Option<&Plan>) -> Option<bool> {
        if matches!(
            requested.action,
            Action::Tell | Action::Disclose(_) | Action::Resource { .. } | Action::TakeUp(_)
        ) {
            return None;
        }
        let lists = requested.active.iter().map(|it| &it.allowed_tools.0);
        let grants: Vec<Grant<'_>> = lists.flatten().map(|it| Grant::parse(it)).collect();
        if grants.is_empty() {
            return None;
        }
        let starts = matches!(requested.action, Action::Start { .. });
        let fitting = grants.iter().filter(|it| {
            it.covers(requested.tool, requested.action)
                || (starts && it.covers_server(requested.tool))
        });
        Some(match requested.action {
            // Each part of a command may be covered by a different grant.
            Action::Command { .. } => {
                let patterns: Vec<Option<&str>> = fitting.map(|it| it.argument).collect();
                plan.is_some_and(|plan| {
                    plan.parts().all(|argv| {
                        patterns.iter().any(|it| it.is_none_or(|it| is_granted(argv, it)))
                    })
                })
            }
            Action::Read(_) | Action::Write(_) => fitting.into_iter().any(|it| {
                it.argument.is_none_or(|pattern: &str| {
                    requested.action.path().is_some_and(|it| self.path_matches(it, pattern, All))
                })
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
        let readings = if rule.decision == Decision::Allow { All } else { Any };
        rule.tool.as_ref().is_none_or(|it: &String| {
            fits(it, requested.tool) || Grant::parse(it).covers(requested.tool, requested.action)
        }) && rule.skill.as_ref().is_none_or(|it| skill_matches(it, requested, readings))
            && rule.command.as_ref().is_none_or(|it: &String| match plan {
                Some(plan) if readings == All => plan.parts().all(|argv| begins(argv, it)),
                Some(plan) => plan.parts().any(|argv| begins(argv, it)),
                None => false,
            })
            && rule.path.as_ref().is_none_or(|it| self.rule_path_matches(it, requested, readings))
    }

    fn rule_path_matches(
        &self,
        pattern: &str,
        requested: &ActionRequest<'_>,
        readings: Readings,
    ) -> bool {
        match requested.action {
            Action::Read(_) | Action::Write(_) | Action::Resource { .. } => {
                requested.action.path().is_some_and(|it| self.path_matches(it, pattern, readings))
            }
            // A permission to read a file is not a permission for the actions of the skill.
            Action::Execute(entry) | Action::Disclose(entry) if readings == Any => {
                let document = entry.folder.as_ref().map(|it| it.join(SKILL_FILE));
                document.is_some_and(|it| self.path_matches(&it, pattern, readings))
            }
            _ => false,
        }
    }
}

/// Whether an action belongs to a skill with this name, or an active skill has it.
fn skill_matches(pattern: &str, requested: &ActionRequest<'_>, readings: Readings) -> bool {
    let own: &str = match requested.action {
        Action::Execute(entry) | Action::Disclose(entry) | Action::Start { entry, .. } => {
            &entry.manifest.name
        }
        Action::Serve { skill: Some(skill), .. } => skill,
        Action::TakeUp(skill) => &skill.address,
        _ => return is_active(pattern, requested),
    };
    // A permission for one skill does not extend to another.
    fits(pattern, own) || (readings == Any && is_active(pattern, requested))
}

fn is_active(pattern: &str, requested: &ActionRequest<'_>) -> bool {
    requested.active.iter().any(|it| fits(pattern, &it.name))
}

/// Whether a command begins with these words; in each, `*` and `?` are wildcards, and a word `*`
/// matches all that follows.
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

/// Whether a command matches an entry of a skill: `git add:*` and `git add *` may be followed by
/// anything, `git add` only matches itself.
fn is_granted(argv: &[String], pattern: &str) -> bool {
    match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")) {
        Some(start) => begins(argv, start),
        None => begins(argv, pattern) && argv.len() == pattern.split_ascii_whitespace().count(),
    }
}

/// Whether a URL is in a domain: `domain:example.com`.
fn is_domain(pattern: &str, url: &str) -> bool {
    let Some(domain) = pattern.strip_prefix("domain:") else { return false };
    let rest = url.split_once("://").map_or(url, |it| it.1);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    host.split(':').next().is_some_and(|it| it.eq_ignore_ascii_case(domain))
}
