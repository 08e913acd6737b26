//! The gate that every call passes before anything happens: the policy, then somebody who is asked.

use std::sync::Arc;

use prowess::render_definition;

use crate::{
    approver::{Approver, Question, Reply},
    commands::{self, Plan},
    content::Content,
    outcome::{Outcome, Status},
    policy::{Ground, Policy, Ruling, Wish},
    records::{Approval, Kind, Note, Records, now},
    tool::Act,
};

/// Decides whether a wish comes true, and records what was decided.
#[derive(Debug)]
pub struct Gate {
    /// What may be done.
    pub policy: Policy,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// What was decided before.
    pub records: Records,
}

impl Gate {
    /// Lets a wish pass, or says why not and what to do about it. Whoever is let pass does at once
    /// what was wished, and nothing else.
    pub async fn pass(&self, wish: &Wish<'_>) -> Result<(), Box<Outcome>> {
        let plan = match wish.act {
            Act::Command { line, directory } => {
                let plan = commands::plan(line, directory, &self.policy);
                Some(plan.map_err(|refusal| self.refuse(wish, None, "policy", refusal))?)
            }
            _ => None,
        };
        let ruling = self.policy.ruling(wish, plan.as_ref());
        let (ground, asks) = match ruling {
            Ruling::Allow(ground) => return self.allow(wish, None, ground.as_str()),
            Ruling::Deny(ground) => {
                let refusal = denied(wish, ground);
                return Err(self.refuse(wish, None, ground.as_str(), refusal));
            }
            Ruling::Ask(ground) => (ground, true),
            Ruling::AskIfChanged => (Ground::Setting, false),
        };
        let content = content(wish, plan.as_ref())
            .map_err(|refusal| self.refuse(wish, None, "policy", refusal))?;
        let old = self.approved(wish, &content);
        match &old {
            Old::Same => return self.allow(wish, Some(&content), "approval"),
            Old::None if !asks => return self.allow(wish, Some(&content), ground.as_str()),
            _ => {}
        }
        self.ask(wish, content, ground, old).await
    }

    async fn ask(
        &self,
        wish: &Wish<'_>,
        content: Content,
        ground: Ground,
        old: Old,
    ) -> Result<(), Box<Outcome>> {
        let question = question(wish, &content, ground, &old);
        let who = self.approver.who().to_owned();
        match self.approver.ask(&question).await {
            Reply::No => {
                let refusal = unapproved(&question, &who);
                Err(self.refuse(wish, Some(&content), &who, refusal))
            }
            Reply::Once => self.allow(wish, Some(&content), &who),
            Reply::Always => {
                let passed = self.allow(wish, Some(&content), &who);
                let (kind, name, place) = identity(wish);
                self.records.approve(Approval { kind, name, place, when: now(), by: who, content });
                passed
            }
        }
    }

    /// What was approved before, of what is wished now.
    fn approved(&self, wish: &Wish<'_>, content: &Content) -> Old {
        let (kind, name, place) = identity(wish);
        if kind == Kind::Call {
            return if self.records.has_call(content) { Old::Same } else { Old::None };
        }
        match self.records.skill(&name, &place) {
            Some(old) if old.content.digest == content.digest => Old::Same,
            Some(old) => Old::Other(Box::new(old.content)),
            None => Old::None,
        }
    }

    fn allow(
        &self,
        wish: &Wish<'_>,
        content: Option<&Content>,
        by: &str,
    ) -> Result<(), Box<Outcome>> {
        // What only looks is not worth a line.
        if !matches!(wish.act, Act::Tell | Act::Read(_)) {
            self.note(wish, content, "allowed", by);
        }
        Ok(())
    }

    fn refuse(
        &self,
        wish: &Wish<'_>,
        content: Option<&Content>,
        by: &str,
        refusal: Refusal,
    ) -> Box<Outcome> {
        self.note(wish, content, "refused", by);
        refusal.into()
    }

    fn note(&self, wish: &Wish<'_>, content: Option<&Content>, decision: &str, by: &str) {
        self.records.note(&Note {
            tool: wish.tool,
            skill: skill(wish),
            digest: content.map(|it| &*it.digest),
            what: &logged(wish.act),
            decision,
            by,
            sandbox: None,
        });
    }
}

/// Why something is refused, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl From<Refusal> for Box<Outcome> {
    fn from(refusal: Refusal) -> Self {
        Self::new(Outcome::bad(Status::Refused, refusal.message).hint(refusal.hint))
    }
}

/// How what was approved before stands to what is wished now.
enum Old {
    Same,
    Other(Box<Content>),
    None,
}

/// What an approval of a wish is bound to.
fn content(wish: &Wish<'_>, plan: Option<&Plan>) -> Result<Content, Refusal> {
    match (wish.act, plan) {
        (Act::Execute(entry), _) => Content::of(entry).map_err(|error| Refusal {
            message: format!("{error}, so that nobody can approve it"),
            hint: format!("look at the files of `{}`", entry.manifest.name),
        }),
        (_, Some(plan)) => Ok(plan.content()),
        (act, None) => Ok(Content::of_words([wish.tool.as_bytes(), what(act).as_bytes()])),
    }
}

/// What an approval is found by: its kind, its name and where it lies.
fn identity(wish: &Wish<'_>) -> (Kind, String, String) {
    match wish.act {
        Act::Execute(entry) => {
            let place = entry.folder.as_ref().map(|it| it.to_string_lossy().into_owned());
            (Kind::Skill, entry.manifest.name.to_string(), place.unwrap_or_default())
        }
        Act::Command { directory, .. } => {
            (Kind::Call, wish.tool.to_owned(), directory.to_string_lossy().into_owned())
        }
        _ => (Kind::Call, wish.tool.to_owned(), String::new()),
    }
}

fn question(wish: &Wish<'_>, content: &Content, ground: Ground, old: &Old) -> Question {
    let (why, difference) = match (old, ground) {
        (Old::Other(old), _) => {
            ("it has changed since it was approved", Some(content.difference(old)))
        }
        (_, Ground::Required) => ("the skill requires approval", None),
        (_, Ground::Rule) => ("a rule of the policy asks for it", None),
        _ => ("the policy asks before everything that runs", None),
    };
    let content = match wish.act {
        Act::Execute(entry) => Some(render_definition(&entry.definition, None)),
        _ => None,
    };
    Question { what: what(wish.act), why: why.to_owned(), content, difference }
}

fn denied(wish: &Wish<'_>, ground: Ground) -> Refusal {
    let what = what(wish.act);
    match ground {
        Ground::AllowedTools => Refusal {
            message: format!("no active skill allows `{}` to {what}", wish.tool),
            hint: "only the tools in `allowed-tools` of an active skill may be used".to_owned(),
        },
        _ => Refusal {
            message: format!("the policy does not allow to {what}"),
            hint: "a rule with the decision `deny` says so; `prowess config policy.rules` shows it"
                .to_owned(),
        },
    }
}

fn unapproved(question: &Question, who: &str) -> Refusal {
    let Question { what, why, .. } = question;
    match who {
        "nobody" => Refusal {
            message: format!("approval is needed to {what}, because {why}, and nobody was asked"),
            hint: "`--yes` approves it, and so does an answer at a terminal".to_owned(),
        },
        _ => Refusal {
            message: format!("approval to {what} was not given"),
            hint: "nothing was done".to_owned(),
        },
    }
}

fn skill<'a>(wish: &Wish<'a>) -> Option<&'a str> {
    match wish.act {
        Act::Execute(entry) => Some(&entry.manifest.name),
        _ => None,
    }
}

/// What would be done, in words that follow “to”.
fn what(act: &Act) -> String {
    match act {
        Act::Tell => "tell what there is".to_owned(),
        Act::Execute(entry) => format!("run the skill `{}`", entry.manifest.name),
        Act::Command { line, directory } => format!("run `{line}` in `{}`", directory.display()),
        Act::Read(path) => format!("read `{}`", path.display()),
        Act::Write(path) => format!("write `{}`", path.display()),
        Act::Fetch { method, url } => format!("send {method} to `{url}`"),
        Act::Query(sql) => format!("ask the database `{sql}`"),
    }
}

/// The same for the log, without what could be a secret in an address or a statement.
fn logged(act: &Act) -> String {
    match act {
        Act::Fetch { method, url } => {
            let end = url.find(['?', '#']).unwrap_or(url.len());
            let (scheme, rest) = url[..end].split_once("://").unwrap_or(("", &url[..end]));
            let host = rest.split('/').next().unwrap_or_default();
            let user = host.rfind('@').map_or(0, |it| it + 1);
            format!("send {method} to `{scheme}://{}`", &rest[user..])
        }
        Act::Query(_) => "ask the database".to_owned(),
        act => what(act),
    }
}

impl Ground {
    /// The word for it in the records.
    fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Setting => "setting",
            Self::AllowedTools => "allowed-tools",
            Self::Required => "skill",
        }
    }
}
