//! The ruling of a policy on a requested action, before anybody is asked.

mod grant;

use std::path::Path;

use prowess::Manifest;
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
    tool::{Action, ActionFacts, DefaultRuling, ListedAs, PolicySetting, RulePath},
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
    /// The action itself is asked about, for this reason.
    Action(&'static str),
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
        let facts = &requested.action.facts();
        let matching = self.rules.iter().filter(|it| self.matches(it, requested, facts, plan));
        let ruled = matching.map(|it| it.decision).max();
        if ruled == Some(Decision::Deny) {
            return Ruling::Deny(Ground::Rule);
        }
        let listed = self.is_listed(requested, facts.listed_as, plan);
        if listed == Some(false) && self.allowed_tools == AllowedToolsMode::Enforce {
            return Ruling::Deny(Ground::AllowedTools);
        }
        // A rule that allows a tool does not cover commands outside of its list.
        if plan.is_some_and(|it| !it.unlisted.is_empty()) {
            return Ruling::Ask(Ground::Unlisted);
        }
        // Nor does it cover the network.
        if !self.hosts_of(facts).is_empty() && self.approvals != Approvals::Never {
            return Ruling::Ask(Ground::Network);
        }
        if plan.is_some_and(|it| !it.secrets.is_empty()) {
            let ground = Ground::Secret("it names a file that may contain secrets");
            let is_denied =
                self.secret_reads == Decision::Deny || self.approvals == Approvals::Never;
            return if is_denied { Ruling::Deny(ground) } else { Ruling::Ask(ground) };
        }
        let special = match facts.setting {
            PolicySetting::Writes(path) => self.write_ruling(requested, path, ruled),
            PolicySetting::SecretReads(path) => self.read_ruling(requested, path, ruled),
            PolicySetting::Sends => self.send_ruling(ruled),
            PolicySetting::None => None,
        };
        if let Some(ruling) = special {
            return ruling;
        }
        match ruled {
            Some(Decision::Ask) if self.approvals != Approvals::Never => Ruling::Ask(Ground::Rule),
            Some(Decision::Allow) => Ruling::Allow(Ground::Rule),
            Some(Decision::Ask | Decision::Deny) | None => {
                self.default_ruling(facts.default, listed == Some(true))
            }
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
    pub(crate) fn hosts_of(&self, facts: &ActionFacts<'_>) -> &[String] {
        if facts.runs_script { &self.script_hosts } else { &[] }
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
            (Some(Decision::Allow), _)
                if allowing
                    .any(|it| self.matches(it, requested, &requested.action.facts(), None)) =>
            {
                None
            }
            (None, Some(denied)) => Some(Ruling::Deny(denied)),
            // Nobody can be asked, and a setting must not answer instead.
            _ if is_never => Some(Ruling::Deny(ground)),
            _ => Some(Ruling::Ask(ground)),
        }
    }

    /// Returns the ruling specific to an HTTP request that is not read-only, if there is one.
    fn send_ruling(&self, ruled: Option<Decision>) -> Option<Ruling> {
        // Hosts that only the project lists were not approved by the user.
        let is_listed = self.hosts.is_some() && !self.are_hosts_public;
        match (ruled, self.sends) {
            _ if is_listed => None,
            (None, Decision::Deny) => Some(Ruling::Deny(Ground::Sends)),
            (None, Decision::Ask) if self.approvals != Approvals::Never => {
                Some(Ruling::Ask(Ground::Sends))
            }
            _ => None,
        }
    }

    fn default_ruling(&self, default: DefaultRuling, listed: bool) -> Ruling {
        let always = self.approvals == Approvals::Always;
        let is_preapproved = listed && self.allowed_tools == AllowedToolsMode::Preapprove;
        match default {
            _ if self.approvals == Approvals::Never => Ruling::Allow(Ground::Setting),
            DefaultRuling::Ask(why) => Ruling::Ask(Ground::Action(why)),
            DefaultRuling::AskIfChanged => Ruling::AskIfChanged,
            DefaultRuling::AskIfChangedOrAlways if always => Ruling::Ask(Ground::Setting),
            DefaultRuling::AskIfChangedOrAlways => Ruling::AskIfChanged,
            DefaultRuling::AskIfAlways | DefaultRuling::Allow if is_preapproved => {
                Ruling::Allow(Ground::AllowedTools)
            }
            DefaultRuling::AskIfAlways if always => Ruling::Ask(Ground::Setting),
            DefaultRuling::AskIfAlways | DefaultRuling::Allow => Ruling::Allow(Ground::Setting),
        }
    }

    /// Whether an active skill lists this; `None` if none lists any tool, or if the action only
    /// returns information.
    fn is_listed(
        &self,
        requested: &ActionRequest<'_>,
        listed_as: ListedAs<'_>,
        plan: Option<&Plan>,
    ) -> Option<bool> {
        let lists = requested.active.iter().map(|it| &it.allowed_tools.0);
        let grants: Vec<Grant<'_>> = lists.flatten().map(|it| Grant::parse(it)).collect();
        if grants.is_empty() {
            return None;
        }
        let mut arguments = grants
            .iter()
            .filter(|it| {
                it.covers(requested.tool, listed_as)
                    || (matches!(listed_as, ListedAs::Server) && it.covers_server(requested.tool))
            })
            .map(|it| it.argument);
        Some(match listed_as {
            ListedAs::Nothing => return None,
            // Each part of a command may be covered by a different grant.
            ListedAs::Command => {
                let patterns: Vec<Option<&str>> = arguments.collect();
                plan.is_some_and(|plan| {
                    plan.parts().all(|argv| {
                        patterns.iter().any(|it| it.is_none_or(|it| is_granted(argv, it)))
                    })
                })
            }
            ListedAs::FileToRead(path) | ListedAs::FileToWrite(path) => {
                arguments.any(|it| it.is_none_or(|pattern| self.path_matches(path, pattern, All)))
            }
            ListedAs::Skill(name) => arguments.any(|it| it.is_none_or(|it| fits(it, name))),
            ListedAs::Url(url) => {
                arguments.any(|it| it.is_none_or(|it| fits(it, url) || is_domain(it, url)))
            }
            ListedAs::Tool | ListedAs::Server | ListedAs::ServerTool => {
                arguments.any(|it| it.is_none())
            }
        })
    }

    fn matches(
        &self,
        rule: &PolicyRule,
        requested: &ActionRequest<'_>,
        facts: &ActionFacts<'_>,
        plan: Option<&Plan>,
    ) -> bool {
        let readings = if rule.decision == Decision::Allow { All } else { Any };
        rule.tool.as_ref().is_none_or(|it: &String| {
            fits(it, requested.tool) || Grant::parse(it).covers(requested.tool, facts.listed_as)
        }) && rule
            .skill
            .as_ref()
            .is_none_or(|it| skill_matches(it, facts.skill, requested.active, readings))
            && rule.command.as_ref().is_none_or(|it: &String| match plan {
                Some(plan) if readings == All => plan.parts().all(|argv| begins(argv, it)),
                Some(plan) => plan.parts().any(|argv| begins(argv, it)),
                None => false,
            })
            && rule
                .path
                .as_ref()
                .is_none_or(|it| self.rule_path_matches(it, &facts.rule_path, readings))
    }

    fn rule_path_matches(
        &self,
        pattern: &str,
        rule_path: &RulePath<'_>,
        readings: Readings,
    ) -> bool {
        match rule_path {
            RulePath::File(path) => self.path_matches(path, pattern, readings),
            RulePath::Document(path) => {
                readings == Any && self.path_matches(path, pattern, readings)
            }
            RulePath::None => false,
        }
    }
}

/// Whether an action belongs to a skill with this name, or an active skill has it.
fn skill_matches(
    pattern: &str,
    own: Option<&str>,
    active: &[Manifest],
    readings: Readings,
) -> bool {
    let is_active = || active.iter().any(|it| fits(pattern, &it.name));
    match own {
        // A permission for one skill does not extend to another.
        Some(own) => fits(pattern, own) || (readings == Any && is_active()),
        None => is_active(),
    }
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
