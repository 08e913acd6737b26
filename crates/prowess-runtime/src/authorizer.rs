//! Authorizes every call before anything happens: by the policy, then by asking.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
    slice,
    sync::Arc,
};

use prowess::{ChosenSkill, Level, Offer, Priority, ReadError, Skill, render_definition};
use prowess_sandbox::{SandboxLevel, ScriptConnection};
use serde_json::Value;

use crate::{
    active::ActiveSkills,
    approval_store::{Approval, ApprovalKey, ApprovalKind, ApprovalStore},
    approver::{Approver, ApproverReply, Coverage, Question},
    audit_log::{AuditEntry, AuditLog},
    blocking::blocking,
    change::{FileChange, FileState},
    commands::{self, Plan},
    entry::SkillRecord,
    outcome::Outcome,
    policy::Policy,
    protected::is_within,
    refusal::Refusal,
    remote_skill::{RemoteFile, RemoteSkill},
    ruling::{ActionRequest, Ground, Ruling},
    skill_folder::SkillFolder,
    subject::{Subject, file_difference, shorten_text},
    timestamp::timestamp,
    tool::{
        Action, ActionFacts, ApprovalFacts, AuditMode, InputDisplay, ListedAs, QuestionContent,
        SubjectSource, USE_SKILL,
    },
    warnings::Warnings,
};

/// Decides on requested actions, and records the decisions.
#[derive(Debug)]
pub struct Authorizer {
    /// The policy.
    pub policy: Policy,
    /// The approver to ask.
    pub approver: Arc<dyn Approver>,
    /// The approvals that people have given.
    pub approvals: ApprovalStore,
    /// The log of every decision.
    pub audit: AuditLog,
    warnings: Warnings,
}

impl Authorizer {
    /// An authorizer that forgets its approvals when the program ends, and logs nothing.
    pub fn new(policy: Policy, approver: Arc<dyn Approver>) -> Self {
        Self {
            policy,
            approver,
            approvals: ApprovalStore::in_memory(),
            audit: AuditLog::disabled(),
            warnings: Warnings::default(),
        }
    }

    /// Saves the approvals and the audit log in a directory.
    #[must_use]
    pub fn with_state(self, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let approvals = ApprovalStore::at(directory.clone());
        Self { approvals, audit: AuditLog::at(directory), ..self }
    }

    /// Adds a warning for the person who runs the program.
    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.add(text.into());
    }

    /// Removes and returns all warnings: those of the approvals and of the audit log, then others.
    pub fn take_warnings(&self) -> Vec<String> {
        let mut warnings = self.approvals.take_warnings();
        warnings.extend(self.audit.take_warnings());
        warnings.extend(self.warnings.take());
        warnings
    }

    /// Authorizes an action, or returns the reason for the refusal and a hint. The caller must
    /// perform exactly this action at once. Returns the changes since the last approval, if they
    /// were approved now.
    pub async fn authorize(
        &self,
        requested: &ActionRequest<'_>,
    ) -> Result<Option<String>, Box<Outcome>> {
        self.decide(requested).await.map(|it| it.difference)
    }

    /// Does the same, and returns whether a person has approved it.
    pub(crate) async fn decide(
        &self,
        requested: &ActionRequest<'_>,
    ) -> Result<AuthorizedAction, Box<Outcome>> {
        let facts = &requested.action.facts();
        let plan = match &facts.subject {
            SubjectSource::Command { line, directory, preview } => {
                let plan = match preview {
                    Some(preview) => preview.plan.clone(),
                    None => commands::plan(line, directory, &self.policy),
                };
                let mut plan =
                    plan.map_err(|refusal| self.refuse(requested, None, "policy", refusal))?;
                plan.secrets.retain(|it| self.asks_about_secret(requested.tool, it));
                Some(plan)
            }
            SubjectSource::Input
            | SubjectSource::Words
            | SubjectSource::Parts(_)
            | SubjectSource::Skill(_)
            | SubjectSource::RemoteSkill(_) => None,
        };
        let (ground, asks) = match self.policy.ruling(requested, plan.as_ref()) {
            Ruling::Allow(ground) => {
                return self.allow(requested, skill_subject(facts).as_ref(), ground.as_str());
            }
            Ruling::Deny(ground) => {
                let subject = skill_subject(facts);
                let refusal = denial(requested, ground);
                return Err(self.refuse(requested, subject.as_ref(), ground.as_str(), refusal));
            }
            Ruling::Ask(ground) => (ground, true),
            Ruling::AskIfChanged => (Ground::Setting, false),
        };
        let old = self.approved_subject(requested);
        // The files of a read-only action are not read, unless it requires approval.
        if !asks && old.is_none() && requested.action.only_looks() {
            return self.allow(requested, None, ground.as_str());
        }
        let subject = match subject(requested, facts, plan.as_ref()) {
            Ok(subject) => match self.policy.hosts_of(facts) {
                [] => subject,
                hosts => subject.with_hosts(hosts),
            },
            // An action without approval needs no subject.
            Err(_) if old.is_none() && !asks => {
                return self.allow(requested, None, ground.as_str());
            }
            Err(refusal) => return Err(self.refuse(requested, None, "policy", refusal)),
        };
        match &old {
            Some(old) if old.digest == subject.digest => {
                let passed = self.allow(requested, Some(&subject), "approval")?;
                Ok(AuthorizedAction { is_agreed: is_personal(ground), ..passed })
            }
            None if !asks => self.allow(requested, Some(&subject), ground.as_str()),
            _ => self.ask_in_turn(requested, plan.as_ref(), subject, ground).await,
        }
    }

    /// Asks once no other question is open: the answer to that may cover this one as well.
    async fn ask_in_turn(
        &self,
        requested: &ActionRequest<'_>,
        plan: Option<&Plan>,
        subject: Subject,
        ground: Ground,
    ) -> Result<AuthorizedAction, Box<Outcome>> {
        let _turn = self.approvals.turn.lock().await;
        let old = self.approved_subject(requested);
        let is_approved = old.as_ref().is_some_and(|it| it.digest == subject.digest);
        let is_covered =
            ground == Ground::Writes && self.approvals.is_approved_for_session(&every_write());
        if is_approved || is_covered {
            let passed = self.allow(requested, Some(&subject), "approval")?;
            return Ok(AuthorizedAction { is_agreed: is_personal(ground), ..passed });
        }
        let key = self.approval_key(requested);
        if key.is_some_and(|it| self.approvals.is_refused_for_session(&it, &subject)) {
            let message = format!("approval to {} was denied", requested.action.describe());
            let hint =
                "you denied it earlier; you will be asked again in the next session".to_owned();
            return Err(self.refuse(
                requested,
                Some(&subject),
                "person",
                Refusal { message, hint },
            ));
        }
        self.ask(requested, plan, subject, ground, old).await
    }

    /// Whether this tool may only read a file with secrets after approval. Nothing is logged.
    pub(crate) fn asks_about_secret(&self, tool: &str, path: &Path) -> bool {
        let action = Action::Read(path.to_owned());
        let requested = ActionRequest { tool, action: &action, active: &[], given: None };
        self.policy.asks_about_secret(tool, path) && self.approved_subject(&requested).is_none()
    }

    /// Whether the policy denies the disclosure of a skill. Nothing is logged.
    pub fn is_denied(&self, skill: &Skill) -> bool {
        matches!(self.ruling(&disclosure_action(skill)), Ruling::Deny(_))
    }

    /// Offers a skill as far as no approval is needed, and returns whether one would be: then the
    /// offer only has its name and description. Nobody is asked, and nothing is logged.
    pub fn offer(&self, chosen: &ChosenSkill<'_>) -> Result<(Offer, bool), ReadError> {
        if chosen.level == Level::Metadata {
            return Ok((Offer::new(chosen)?, false));
        }
        // The text that is checked is the one that is offered.
        let skill = &chosen.skill.with_instructions(&chosen.skill.instructions()?);
        let chosen = ChosenSkill { skill, ..chosen.clone() };
        if self.can_disclose(skill) {
            return Ok((Offer::new(&chosen)?, false));
        }
        let (level, priority) = (Level::Metadata, Priority::Inactive);
        Ok((Offer::new(&ChosenSkill { level, priority, arguments: None, ..chosen })?, true))
    }

    /// Refuses to read files of an undisclosed skill: a rule about a skill applies to its files
    /// too, until it is activated.
    pub(crate) fn check_disclosed(
        &self,
        requested: &ActionRequest<'_>,
        active: &ActiveSkills,
    ) -> Result<(), Box<Outcome>> {
        let ListedAs::FileToRead(path) = requested.action.facts().listed_as else { return Ok(()) };
        let undisclosed = self.undisclosed_skills(active, |folder| is_within(path, folder));
        let Some((name, _)) = undisclosed.into_iter().next() else { return Ok(()) };
        let path = path.display();
        let message = format!("`{path}` belongs to the skill `{name}`, which is not active");
        let hint = format!("activate it with `{USE_SKILL}`, which requires approval");
        Err(self.refuse(requested, None, "policy", Refusal { message, hint }))
    }

    /// Returns the inactive skills that may not be disclosed and whose folder `is_meant` selects:
    /// each with its folder, with links resolved. Nobody is asked, and nothing is logged.
    pub(crate) fn undisclosed_skills(
        &self,
        active: &ActiveSkills,
        is_meant: impl Fn(&Path) -> bool,
    ) -> Vec<(String, PathBuf)> {
        let active_skills = active.skills();
        let approvals = OnceCell::new();
        active
            .library()
            .all()
            .filter_map(|skill| {
                // For most skills no file has to be read.
                let rule = self.disclosure_rule(skill, |key| {
                    let approvals = approvals.get_or_init(|| self.approvals.list());
                    Some(approvals.iter().rfind(|it| it.key == *key)?.subject.digest.clone())
                });
                if matches!(rule, DisclosureRule::Always)
                    || active_skills.iter().any(|it| it.origin.path == skill.origin.path)
                {
                    return None;
                }
                let folder = prowess::real_path(skill.absolute_folder()?).ok()?;
                let is_undisclosed = is_meant(&folder) && !rule.allows(skill);
                is_undisclosed.then(|| (skill.manifest.name.to_string(), folder))
            })
            .collect()
    }

    /// Whether a skill may be disclosed without asking. Nothing is logged.
    pub fn can_disclose(&self, skill: &Skill) -> bool {
        self.disclosure_rule(skill, |key| Some(self.approvals.approved_subject(key)?.digest))
            .allows(skill)
    }

    fn disclosure_rule(
        &self,
        skill: &Skill,
        approved: impl FnOnce(&ApprovalKey) -> Option<String>,
    ) -> DisclosureRule {
        let action = disclosure_action(skill);
        let unless = match self.ruling(&action) {
            Ruling::Allow(_) => return DisclosureRule::Always,
            Ruling::Deny(_) => return DisclosureRule::Never,
            Ruling::Ask(_) => DisclosureRule::Never,
            Ruling::AskIfChanged => DisclosureRule::Always,
        };
        let key = ApprovalKey::of(&disclosure_request(&action));
        key.and_then(|it| approved(&it)).map_or(unless, DisclosureRule::IfUnchanged)
    }

    /// Returns the reason why a skill may not be disclosed, with a hint; `None` if it may. Nothing
    /// is logged.
    pub fn why_withheld(&self, skill: &Skill) -> Option<Box<Outcome>> {
        let action = disclosure_action(skill);
        if self.can_disclose(skill) {
            return None;
        }
        let message = format!("approval is needed to {}", action.describe());
        let hint = format!("`{}` approves it", approval_command(&action.facts()));
        Some(Refusal { message, hint }.into())
    }

    /// Whether a file of a disclosed skill may be disclosed as well. Nothing is logged.
    pub fn can_disclose_file(&self, skill: &Skill, path: &Path) -> bool {
        let action = Action::Resource { path: path.to_owned(), bytes: Arc::default() };
        // Rules about an active skill apply to reading its files.
        let active = slice::from_ref(&skill.manifest);
        let requested =
            ActionRequest { tool: READ_SKILL_FILE, action: &action, active, given: None };
        matches!(self.policy.ruling(&requested, None), Ruling::Allow(_) | Ruling::AskIfChanged)
    }

    /// Whether a remote skill is approved as it is offered now; `None` if it was never approved.
    /// Nothing is logged.
    pub fn approves(&self, skill: &RemoteSkill) -> Option<bool> {
        let action = Action::TakeUp(Box::new(skill.clone()));
        let old = self.approved_subject(&disclosure_request(&action));
        old.map(|it| it.digest == Subject::of_remote(skill).digest)
    }

    /// Whether the policy denies the activation of a remote skill. Nothing is logged.
    pub fn denies(&self, skill: &RemoteSkill) -> bool {
        matches!(self.ruling(&Action::TakeUp(Box::new(skill.clone()))), Ruling::Deny(_))
    }

    fn ruling(&self, action: &Action) -> Ruling {
        self.policy.ruling(&disclosure_request(action), None)
    }

    /// Logs that an action was performed without a sandbox.
    pub fn note_unsandboxed(&self, requested: &ActionRequest<'_>) {
        let facts = requested.action.facts();
        self.audit.record(&AuditEntry {
            tool: requested.tool,
            skill: facts.skill,
            digest: skill_subject(&facts).as_ref().map(|it| &*it.digest),
            what: "run without a sandbox",
            decision: "ran",
            by: "flag",
            sandbox: Some(SandboxLevel::None),
        });
    }

    /// Logs the connections of a script, including refused ones.
    pub fn note_network(&self, tool: &str, skill: Option<&str>, outcome: &Outcome) {
        if outcome.network.is_empty() {
            return;
        }
        let mut what: Vec<String> = Vec::new();
        for ScriptConnection { host, port, refused, .. } in &outcome.network {
            let no = if refused.is_some() { " (refused)" } else { "" };
            what.push(format!("{host}:{port}{no}"));
        }
        what.sort_unstable();
        what.dedup();
        self.audit.record(&AuditEntry {
            tool,
            skill,
            what: &format!("connect to {}", what.join(", ")),
            decision: "ran",
            by: "proxy",
            sandbox: outcome.sandbox,
            ..AuditEntry::default()
        });
    }

    /// Returns the key of the approval of an action, which depends on network access; `None` if no
    /// approval is remembered.
    fn approval_key(&self, requested: &ActionRequest<'_>) -> Option<ApprovalKey> {
        let key = ApprovalKey::of(requested)?;
        let kind = if self.policy.hosts_of(&requested.action.facts()).is_empty() {
            key.kind
        } else {
            ApprovalKind::Network
        };
        Some(ApprovalKey { kind, ..key })
    }

    /// Returns the subject that was approved under the key of an action.
    fn approved_subject(&self, requested: &ActionRequest<'_>) -> Option<Subject> {
        self.approvals.approved_subject(&self.approval_key(requested)?)
    }

    async fn ask(
        &self,
        requested: &ActionRequest<'_>,
        plan: Option<&Plan>,
        subject: Subject,
        ground: Ground,
        old: Option<Subject>,
    ) -> Result<AuthorizedAction, Box<Outcome>> {
        let question = self.question(requested, plan, &subject, ground, old.as_ref());
        let who = self.approver.who_answers(&question).to_owned();
        let before = self.current_subject(requested).await?;
        let reply = self.approver.ask(&question).await;
        // It may have changed before the answer.
        if self.current_subject(requested).await? != before {
            let message = format!("it changed while you were asked whether to {}", question.what);
            let refusal = Refusal { message, hint: "check it, and try again".to_owned() };
            return Err(self.refuse(requested, Some(&subject), "policy", refusal));
        }
        let (difference, is_agreed) = (question.difference.clone(), who == "person");
        match reply {
            ApproverReply::No => {
                // Every conversation starts its servers again, but they are asked about once.
                let key = self.approval_key(requested).filter(|it| it.kind == ApprovalKind::Server);
                if let Some(key) = key
                    && is_agreed
                {
                    self.approvals.refuse_for_session(key, subject.clone());
                }
                let facts = requested.action.facts();
                let hosts = self.policy.hosts_of(&facts);
                let refusal = unapproved_refusal(&facts, &question, &who, hosts);
                let outcome = self.refuse(requested, Some(&subject), &who, refusal);
                Err(Box::new(Outcome { difference: question.difference, ..*outcome }))
            }
            ApproverReply::Once | ApproverReply::Session | ApproverReply::Always => {
                self.allow(requested, Some(&subject), &who)?;
                if let Some(key) = self.approval_key(requested) {
                    let approval = Approval { key, when: timestamp(), by: who, subject };
                    self.remember(reply, ground, approval);
                }
                Ok(AuthorizedAction { difference, is_agreed })
            }
        }
    }

    /// Remembers an approval as long as the reply says.
    fn remember(&self, reply: ApproverReply, ground: Ground, approval: Approval) {
        match reply {
            ApproverReply::No | ApproverReply::Once => {}
            ApproverReply::Session if ground == Ground::Writes => {
                self.approvals.approve_for_session(Approval { key: every_write(), ..approval });
            }
            ApproverReply::Session => self.approvals.approve_for_session(approval),
            ApproverReply::Always => self.approvals.approve(approval),
        }
    }

    /// Returns the current subject of an approval, regardless of what was read before.
    async fn current_subject(
        &self,
        requested: &ActionRequest<'_>,
    ) -> Result<Option<Subject>, Box<Outcome>> {
        match requested.action.facts().subject {
            SubjectSource::Command { line, directory, .. } => {
                let (line, directory) = (line.to_owned(), directory.to_owned());
                let policy = self.policy.clone();
                let planned = blocking(move || {
                    commands::plan(&line, &directory, &policy).map(|it| it.subject())
                });
                Ok(planned.await?.ok())
            }
            SubjectSource::Skill(entry) => {
                let folder = entry.folder.as_ref().map(SkillFolder::without_files);
                let entry = SkillRecord { folder, ..entry.clone() };
                blocking(move || Subject::of(&entry).ok()).await
            }
            // They are part of the action, which does not change.
            SubjectSource::Input
            | SubjectSource::Words
            | SubjectSource::Parts(_)
            | SubjectSource::RemoteSkill(_) => Ok(None),
        }
    }

    fn allow(
        &self,
        requested: &ActionRequest<'_>,
        subject: Option<&Subject>,
        by: &str,
    ) -> Result<AuthorizedAction, Box<Outcome>> {
        let is_logged = match requested.action.facts().logged {
            AuditMode::Never => false,
            AuditMode::WithSubject => subject.is_some(),
            AuditMode::Always => true,
        };
        if is_logged {
            self.record(requested, subject, "allowed", by);
        }
        Ok(AuthorizedAction { difference: None, is_agreed: false })
    }

    fn refuse(
        &self,
        requested: &ActionRequest<'_>,
        subject: Option<&Subject>,
        by: &str,
        refusal: Refusal,
    ) -> Box<Outcome> {
        self.record(requested, subject, "refused", by);
        refusal.into()
    }

    fn record(
        &self,
        requested: &ActionRequest<'_>,
        subject: Option<&Subject>,
        decision: &str,
        by: &str,
    ) {
        let facts = requested.action.facts();
        let words = facts.log_words.as_ref().unwrap_or(&facts.words);
        self.audit.record(&AuditEntry {
            tool: requested.tool,
            skill: facts.skill,
            digest: subject.map(|it| &*it.digest),
            what: &format!("{words}{}", connection_phrase(self.policy.hosts_of(&facts))),
            decision,
            by,
            sandbox: None,
        });
    }
}

/// An authorized action.
pub(crate) struct AuthorizedAction {
    /// The changes since the last approval, if they were approved now.
    pub(crate) difference: Option<String>,
    /// Whether a person has approved exactly this, now or before.
    pub(crate) is_agreed: bool,
}

/// Whether only a person's approval is remembered permanently.
fn is_personal(ground: Ground) -> bool {
    matches!(ground, Ground::Unlisted | Ground::Secret(_))
}

/// The condition for the disclosure of a skill.
enum DisclosureRule {
    Always,
    /// As long as it has the approved digest.
    IfUnchanged(String),
    Never,
}

impl DisclosureRule {
    fn allows(&self, skill: &Skill) -> bool {
        match self {
            Self::Always => true,
            Self::IfUnchanged(digest) => SkillRecord::for_disclosure(skill)
                .ok()
                .and_then(|it| Subject::of(&it).ok())
                .is_some_and(|it| it.digest == *digest),
            Self::Never => false,
        }
    }
}

/// The tool that reads their files.
const READ_SKILL_FILE: &str = "read_skill_file";
/// The maximum number of files of a skill in a question.
const SHOWN: usize = 50;

/// Returns the request to disclose a skill.
fn disclosure_request(action: &Action) -> ActionRequest<'_> {
    ActionRequest { tool: USE_SKILL, action, active: &[], given: None }
}

/// Returns the action of disclosing a skill, for the policy: without its text.
fn disclosure_action(skill: &Skill) -> Action {
    Action::Disclose(Box::new(SkillRecord::text(skill, String::new())))
}

/// Returns the subject of the approval of an action.
fn subject(
    requested: &ActionRequest<'_>,
    facts: &ActionFacts<'_>,
    plan: Option<&Plan>,
) -> Result<Subject, Refusal> {
    let call = [requested.tool.as_bytes(), facts.words.as_bytes()];
    Ok(match (&facts.subject, plan) {
        (SubjectSource::Skill(entry), _) => Subject::of(entry).map_err(|error| Refusal {
            message: format!("{error}, so it cannot be approved"),
            hint: format!("look at the files of `{}`", entry.manifest.name),
        })?,
        (SubjectSource::RemoteSkill(skill), _) => Subject::of_remote(skill),
        (SubjectSource::Command { preview, .. }, Some(plan)) => {
            // The resources that it could access are part of the approval.
            let reach = preview.map(|it| it.reach.join("\n")).unwrap_or_default();
            let digest = plan.subject().digest;
            Subject::of_words([digest.as_bytes(), reach.as_bytes()])
        }
        (SubjectSource::Parts(parts), _) => Subject::of_words(parts.iter().map(|it| &**it)),
        (SubjectSource::Input, _) => {
            let input = requested.given.map(Value::to_string).unwrap_or_default();
            Subject::of_words(call.into_iter().chain([input.as_bytes()]))
        }
        (SubjectSource::Words, _) | (SubjectSource::Command { .. }, None) => {
            Subject::of_words(call)
        }
    })
}

/// Returns the subject of a skill that is to run; `None` if the action has no skill.
fn skill_subject(facts: &ActionFacts<'_>) -> Option<Subject> {
    match facts.subject {
        SubjectSource::Skill(entry) => Subject::of(entry).ok(),
        SubjectSource::RemoteSkill(skill) => Some(Subject::of_remote(skill)),
        SubjectSource::Input
        | SubjectSource::Words
        | SubjectSource::Parts(_)
        | SubjectSource::Command { .. } => None,
    }
}

impl ApprovalKey {
    /// Returns the key of the approval of an action; `None` if no approval is remembered.
    fn of(requested: &ActionRequest<'_>) -> Option<Self> {
        let ApprovalFacts { kind, name, place, .. } = requested.action.facts().approval?;
        Some(Self { kind, name: name.unwrap_or_else(|| requested.tool.to_owned()), place })
    }
}

/// Returns the key of the approval to write all files that are not sensitive.
fn every_write() -> ApprovalKey {
    ApprovalKey { kind: ApprovalKind::Write, name: "session".to_owned(), place: String::new() }
}

impl Authorizer {
    fn question(
        &self,
        requested: &ActionRequest<'_>,
        plan: Option<&Plan>,
        subject: &Subject,
        ground: Ground,
        old: Option<&Subject>,
    ) -> Question {
        let facts = requested.action.facts();
        let (content, diff) = match facts.content {
            QuestionContent::Nothing => (None, None),
            QuestionContent::Text(text) => (Some(text.to_owned()), None),
            QuestionContent::Definition(entry) => {
                (Some(render_definition(&entry.definition, None)), None)
            }
            QuestionContent::Change(change) => shown_change(change),
            QuestionContent::RemoteSkill(skill) => (Some(list_files(skill)), None),
        };
        let preview = facts.subject.preview();
        let folder = facts.subject.record().and_then(|it| it.folder.as_ref());
        let question = Question {
            what: format!("{}{}", facts.words, connection_phrase(self.policy.hosts_of(&facts))),
            why: reason(plan, ground, old.is_some()),
            content,
            difference: None,
            files: subject.list_files(),
            given: shown_input(requested, facts.input),
            place: folder.map(|it| it.to_path_buf()),
            diff,
            reach: preview.map(|it| it.reach.clone()).unwrap_or_default(),
            // It is unconfined, or names secrets, so a flag must not approve it.
            in_person: facts.needs_person
                || matches!(ground, Ground::Sensitive(_) | Ground::Secret(_))
                || ground == Ground::Unlisted && preview.is_some_and(|it| !it.is_sandboxed)
                || plan.is_some_and(|it| !it.secrets.is_empty()),
            coverage: facts.approval.map_or(Coverage::Once, |it| self.coverage(it, ground)),
        };
        question.with_difference(old.map(|it| subject.difference(it)))
    }

    /// Returns the coverage of an answer, which depends on the reason to ask.
    fn coverage(&self, approval: ApprovalFacts, ground: Ground) -> Coverage {
        let ApprovalFacts { coverage, special_coverage, .. } = approval;
        let coverage = match ground {
            Ground::Writes
            | Ground::Sensitive(_)
            | Ground::Secret(_)
            | Ground::Sends
            | Ground::Unlisted => special_coverage.unwrap_or(coverage),
            Ground::Rule
            | Ground::Setting
            | Ground::AllowedTools
            | Ground::Action(_)
            | Ground::Network => coverage,
        };
        match coverage {
            Coverage::More { always, .. } if ground == Ground::Writes => {
                let roots = self.policy.roots.iter().map(|it| format!("`{}`", it.display()));
                let roots: Vec<_> = roots.collect();
                let session = format!("every ordinary file in {}", roots.join(" and "));
                Coverage::More { session, always }
            }
            coverage @ (Coverage::UntilChange | Coverage::Once | Coverage::More { .. }) => coverage,
        }
    }
}

impl Question {
    fn with_difference(self, difference: Option<String>) -> Self {
        Self { difference: difference.filter(|it| !it.is_empty()), ..self }
    }
}

/// Returns the reason for a question, in words that follow “because”.
fn reason(plan: Option<&Plan>, ground: Ground, is_changed: bool) -> String {
    let why = match ground {
        Ground::Unlisted => {
            let parts = plan.map(|it| it.unlisted.join(", and ")).unwrap_or_default();
            let changed = if is_changed { "; it has changed since it was approved" } else { "" };
            let secrets = plan.map(names_secrets).filter(|it| !it.is_empty());
            let secrets = secrets.map(|it| format!("; {it}")).unwrap_or_default();
            return format!("{parts}{changed}{secrets}");
        }
        Ground::Secret(_) if let Some(plan) = plan => return names_secrets(plan),
        Ground::Secret(why) => why,
        Ground::Sends => "this host is not listed in `policy.hosts`",
        Ground::Sensitive(why) => why,
        Ground::Network if is_changed => "the skill or its hosts changed since they were approved",
        Ground::Network => "data sent there leaves this machine",
        Ground::Writes => "`policy.writes` is `ask`",
        Ground::Rule | Ground::Setting | Ground::AllowedTools | Ground::Action(_) if is_changed => {
            "it has changed since it was approved"
        }
        Ground::Action(why) => why,
        Ground::Rule => "a rule of the policy asks for it",
        Ground::Setting | Ground::AllowedTools => {
            "the policy asks before everything except reading"
        }
    };
    why.to_owned()
}

/// Returns a phrase with the files with secrets that a command names; empty if there are none.
fn names_secrets(plan: &Plan) -> String {
    let names: Vec<String> = plan.secrets.iter().map(|it| format!("`{}`", it.display())).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("it names {}, which may contain secrets", names.join(" and ")),
    }
}

/// The maximum size of a text whose changes are shown.
const TEXT: usize = 1024 * 1024;

/// Returns the content of a new file, or the changes to an existing one.
fn shown_change(change: &FileChange) -> (Option<String>, Option<String>) {
    let Some(after) = &change.after else { return (None, None) };
    let size = after.len();
    match (&change.before, shown_text(after)) {
        (FileState::Bytes(before), _) if before == after => {
            (None, Some("nothing would change\n".to_owned()))
        }
        (FileState::Bytes(before), Some(new)) if let Some(old) = shown_text(before) => {
            (None, Some(file_difference(old, new)))
        }
        (FileState::Bytes(before), _) => {
            let old = before.len();
            (None, Some(format!("too large or not text: {old} → {size} bytes\n")))
        }
        (FileState::TooLarge(old), _) => {
            (None, Some(format!("too large to show: {old} → {size} bytes\n")))
        }
        (_, Some("")) => (Some("an empty file".to_owned()), None),
        (_, Some(new)) => (Some(shorten_text(new)), None),
        (_, None) => (Some(format!("too large or not text: {size} bytes")), None),
    }
}

/// Returns the text of a file, unless it is too large to show.
fn shown_text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok().filter(|it| it.len() <= TEXT)?;
    (!text.contains('\0')).then_some(text)
}

/// The limits on the shown input of a tool: lines, and characters of a line.
const GIVEN: (usize, usize) = (40, 300);

/// Returns the input of a tool that is not already part of the question; `None` if there is none.
fn shown_input(requested: &ActionRequest<'_>, display: InputDisplay) -> Option<String> {
    let given = match display {
        InputDisplay::Nowhere => return None,
        InputDisplay::InQuestion | InputDisplay::Everywhere => requested.given?,
    };
    if given.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    let text = serde_json::to_string_pretty(given).ok()?;
    let mut lines: Vec<String> = text
        .lines()
        .take(GIVEN.0)
        .map(|line: &str| match line.char_indices().nth(GIVEN.1) {
            Some((at, _)) => {
                format!("{}… and {} more characters", &line[..at], line[at..].chars().count())
            }
            None => line.to_owned(),
        })
        .collect();
    let more = text.lines().count() - lines.len();
    lines.extend((more > 0).then(|| format!("… and {more} more lines")));
    Some(lines.join("\n"))
}

/// Lists the files of a remote skill for its approval, without reading them.
fn list_files(skill: &RemoteSkill) -> String {
    let files: String = skill
        .files
        .iter()
        .take(SHOWN)
        .map(|it: &RemoteFile| format!("{}  {} bytes  {}\n", it.path, it.size, it.digest))
        .collect();
    let more = match skill.files.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("… and {more} more files\n"),
    };
    format!("{}\n{}\n\n{files}{more}", skill.description, skill.uri)
}

fn denial(requested: &ActionRequest<'_>, ground: Ground) -> Refusal {
    let what = requested.action.describe();
    match ground {
        Ground::AllowedTools => Refusal {
            message: format!("no active skill allows `{}` to {what}", requested.tool),
            hint: "only the tools in `allowed-tools` of an active skill may be used".to_owned(),
        },
        Ground::Writes => Refusal {
            message: format!("not allowed to {what}, because `policy.writes` is `deny`"),
            hint: "set `policy.writes = \"ask\"` in your own settings to be asked about each write"
                .to_owned(),
        },
        Ground::Sensitive(why) | Ground::Secret(why) => Refusal {
            message: format!(
                "approval is needed to {what}, because {why}, but the policy never asks for it"
            ),
            hint: "add a rule that allows the `path` to your own settings".to_owned(),
        },
        Ground::Sends => Refusal {
            message: format!("not allowed to {what}, because `policy.sends` is `deny`"),
            hint: "add the host to `policy.hosts` in your own settings".to_owned(),
        },
        Ground::Rule => Refusal {
            message: format!("not allowed to {what}, because of a rule with the decision `deny`"),
            hint: "`prowess config policy.rules` shows the rules".to_owned(),
        },
        Ground::Setting | Ground::Action(_) | Ground::Unlisted | Ground::Network => Refusal {
            message: format!("not allowed to {what}, because the policy denies it"),
            hint: "`prowess config policy` shows the policy".to_owned(),
        },
    }
}

fn unapproved_refusal(
    facts: &ActionFacts<'_>,
    question: &Question,
    who: &str,
    hosts: &[String],
) -> Refusal {
    let Question { what, why, .. } = question;
    match who {
        "nobody" | "flag" if question.coverage != Coverage::UntilChange => Refusal {
            message: format!(
                "approval is needed to {what}, because {why}, and there was no one to ask"
            ),
            hint: unasked_hint(facts, question),
        },
        "nobody" => Refusal {
            message: format!(
                "approval is needed to {what}, because {why}, and there was no one to ask"
            ),
            hint: {
                let command = with_hosts(approval_command(facts), hosts);
                format!("use `{command}`, or answer at a terminal")
            },
        },
        _ => Refusal {
            message: format!("approval to {what} was denied, because the answer was no"),
            hint: "nothing was done".to_owned(),
        },
    }
}

/// Returns the hint for a file or command if nobody could be asked.
fn unasked_hint(facts: &ActionFacts<'_>, question: &Question) -> String {
    let also = facts.how_to_allow;
    match question.in_person {
        true => format!("`--yes` is not enough: answer at a terminal, or {also}"),
        false => format!("use `--yes`, answer at a terminal, or {also}"),
    }
}

/// Returns the command that approves an action, or the option.
fn approval_command<'a>(facts: &'a ActionFacts<'_>) -> &'a str {
    facts.approval.as_ref().map_or("--yes", |it| &it.command)
}

/// Adds the hosts of a script to such a command.
fn with_hosts(command: &str, hosts: &[String]) -> String {
    let are_plain = hosts
        .iter()
        .all(|it| it.bytes().all(|it: u8| it.is_ascii_alphanumeric() || b"-.:".contains(&it)));
    match command.strip_suffix(" --yes") {
        Some(start) if !hosts.is_empty() && are_plain => {
            format!("{start} --net {} --yes", hosts.join(","))
        }
        _ => command.to_owned(),
    }
}

/// Returns a phrase with the hosts of a script, to follow the action.
fn connection_phrase(hosts: &[String]) -> String {
    match hosts {
        [] => String::new(),
        hosts => format!(" with a connection to `{}`", hosts.join("`, `")),
    }
}

impl Ground {
    /// Returns its name in the records.
    fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Setting => "setting",
            Self::AllowedTools => "allowed-tools",
            Self::Writes | Self::Sends => "setting",
            Self::Action(_)
            | Self::Sensitive(_)
            | Self::Secret(_)
            | Self::Unlisted
            | Self::Network => "policy",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use prowess::{AllowedTools, Manifest};
    use serde_json::json;

    use super::*;
    use crate::{
        approver::{ApproveAll, ApproverFuture, DenyAll},
        policy::{AllowedToolsMode, Approvals, Decision, PolicyRule},
    };

    #[test]
    fn an_action_with_the_strictest_facts_is_asked_about_each_time() {
        for approvals in [Approvals::Needed, Approvals::Always] {
            for reply in [ApproverReply::Once, ApproverReply::Session, ApproverReply::Always] {
                let (authorizer, questions) =
                    asking(Policy { approvals, ..Policy::default() }, reply);
                for body in ["hello", "hello", "attached: all keys"] {
                    assert!(send(&authorizer, body, &[]).is_ok());
                }
                let questions = questions.0.lock().unwrap();
                let given: Vec<_> = questions.iter().map(|it| it.given.as_deref()).collect();
                assert_eq!(given.len(), 3, "{approvals:?}, {reply:?}");
                assert!(given[2].unwrap().contains("attached: all keys"));
                assert!(questions.iter().all(|it| it.coverage == Coverage::Once && it.in_person));
                assert_eq!(authorizer.approvals.remembered(), []);
            }
        }
    }

    #[test]
    fn only_a_setting_or_a_rule_of_the_user_allows_it_without_a_question() {
        let rule = |decision| PolicyRule {
            tool: Some("send_mail".to_owned()),
            ..PolicyRule::new(decision)
        };
        let listing =
            Manifest { allowed_tools: AllowedTools::from_text("send_mail"), ..Manifest::default() };
        let allow = Policy { rules: vec![rule(Decision::Allow)], ..Policy::default() };
        let ask = Policy { rules: vec![rule(Decision::Ask)], ..Policy::default() };
        let never = Policy { approvals: Approvals::Never, ..Policy::default() };
        let preapprove =
            Policy { allowed_tools: AllowedToolsMode::Preapprove, ..Policy::default() };
        for (policy, active, asked) in [
            (allow, &[][..], 0),
            (never, &[], 0),
            (ask, &[], 1),
            (preapprove, slice::from_ref(&listing), 1),
        ] {
            let (authorizer, questions) = asking(policy, ApproverReply::Once);
            assert!(send(&authorizer, "hello", active).is_ok());
            assert_eq!(questions.0.lock().unwrap().len(), asked);
        }
    }

    #[test]
    fn no_flag_approves_it_and_the_hint_names_a_rule() {
        let approvers: [Arc<dyn Approver>; 2] = [Arc::new(ApproveAll), Arc::new(DenyAll)];
        for approver in approvers {
            let authorizer = Authorizer::new(Policy::default(), approver);
            let refusal = send(&authorizer, "hello", &[]).unwrap_err();
            assert_eq!(
                refusal.message.as_deref(),
                Some(
                    "approval is needed to send mail to `ann@example.com`, because every call of \
                     it needs approval, and there was no one to ask"
                )
            );
            assert_eq!(
                refusal.hint.as_deref(),
                Some(
                    "`--yes` is not enough: answer at a terminal, or add a rule that allows this \
                     `tool` to your own settings"
                )
            );
        }
    }

    #[test]
    fn its_subject_contains_the_whole_input() {
        let digest = |body: &str| {
            let (action, given) = mail(body);
            let requested = request(&action, &given, &[]);
            subject(&requested, &action.facts(), None).unwrap().digest
        };
        assert_eq!(digest("hello"), digest("hello"));
        assert_ne!(digest("hello"), digest("attached: all keys"));
    }

    /// Records the questions, and gives the same reply to each.
    #[derive(Debug)]
    struct Recorder(Arc<Questions>, ApproverReply);

    #[derive(Debug, Default)]
    struct Questions(Mutex<Vec<Question>>);

    impl Approver for Recorder {
        fn who(&self) -> &str {
            "person"
        }

        fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
            self.0.0.lock().unwrap().push(question.clone());
            Box::pin(async { self.1 })
        }
    }

    fn asking(policy: Policy, reply: ApproverReply) -> (Authorizer, Arc<Questions>) {
        let questions = Arc::<Questions>::default();
        let approver = Arc::new(Recorder(questions.clone(), reply));
        (Authorizer::new(policy, approver), questions)
    }

    fn send(authorizer: &Authorizer, body: &str, active: &[Manifest]) -> Result<(), Box<Outcome>> {
        let (action, given) = mail(body);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let requested = request(&action, &given, active);
        runtime.block_on(authorizer.authorize(&requested)).map(drop)
    }

    /// Returns the action of sending mail, whose words contain the address alone, and its input.
    fn mail(body: &str) -> (Action, Value) {
        let to = "ann@example.com";
        (Action::Mail { to: to.to_owned() }, json!({"to": to, "body": body}))
    }

    fn request<'a>(
        action: &'a Action,
        given: &'a Value,
        active: &'a [Manifest],
    ) -> ActionRequest<'a> {
        ActionRequest { tool: "send_mail", action, active, given: Some(given) }
    }
}
