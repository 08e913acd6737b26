//! The gate that every call passes before anything happens: the policy, then somebody who is asked.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
    slice,
    sync::Arc,
};

use prowess::{ChosenSkill, Level, Offer, Priority, ReadError, Skill, Type, render_definition};
use prowess_sandbox::{SandboxLevel, ScriptConnection};

use crate::{
    active::Active,
    approval_store::{Approval, ApprovalKey, ApprovalKind, ApprovalStore},
    approver::{Approver, ApproverReply, Coverage, Question},
    audit_log::{AuditEntry, AuditLog},
    blocking::blocking,
    change::{FileChange, FileState},
    commands::{self, Plan},
    entry::SkillRecord,
    outcome::Outcome,
    policy::Policy,
    protected::lies_in,
    refusal::Refusal,
    remote_skill::{RemoteFile, RemoteSkill},
    ruling::{ActionRequest, Ground, Ruling},
    skill_folder::SkillFolder,
    subject::{Subject, file_difference, shortened},
    timestamp::timestamp,
    tool::Action,
    warnings::Warnings,
};

/// Decides whether a wish comes true, and records what was decided.
#[derive(Debug)]
pub struct Authorizer {
    /// What may be done.
    pub policy: Policy,
    /// Who is asked.
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

    /// Lets a wish pass, or says why not and what to do about it. Whoever is let pass does at once
    /// what was wished, and nothing else. Returns what has changed since it was approved, where
    /// somebody has agreed to that.
    pub async fn authorize(
        &self,
        requested: &ActionRequest<'_>,
    ) -> Result<Option<String>, Box<Outcome>> {
        self.decide(requested).await.map(|it| it.difference)
    }

    /// Does the same, and says whether a person has agreed.
    pub(crate) async fn decide(
        &self,
        requested: &ActionRequest<'_>,
    ) -> Result<AuthorizedAction, Box<Outcome>> {
        let plan = match requested.action {
            Action::Command { line, directory, preview } => {
                let plan = match preview {
                    Some(preview) => preview.plan.clone(),
                    None => commands::plan(line, directory, &self.policy),
                };
                let mut plan =
                    plan.map_err(|refusal| self.refuse(requested, None, "policy", refusal))?;
                plan.secrets.retain(|it| self.keeps_secret(requested.tool, it));
                Some(plan)
            }
            _ => None,
        };
        let (ground, asks) = match self.policy.ruling(requested, plan.as_ref()) {
            Ruling::Allow(ground) => {
                return self.allow(requested, skill_subject(requested).as_ref(), ground.as_str());
            }
            Ruling::Deny(ground) => {
                let subject = skill_subject(requested);
                let refusal = denied(requested, ground);
                return Err(self.refuse(requested, subject.as_ref(), ground.as_str(), refusal));
            }
            Ruling::Ask(ground) => (ground, true),
            Ruling::AskIfChanged => (Ground::Setting, false),
        };
        let old = self.approvals.approved(&self.key(requested));
        // The files of what is only told are not looked at, unless somebody has to agree.
        if !asks && old.is_none() && requested.action.only_looks() {
            return self.allow(requested, None, ground.as_str());
        }
        let subject = match subject(requested, plan.as_ref()) {
            Ok(subject) => match self.policy.hosts_of(requested.action) {
                [] => subject,
                hosts => subject.with_hosts(hosts),
            },
            // What nobody has to approve need not be told from others.
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

    /// Asks once nobody else is being asked: what they were asked may have answered this as well.
    async fn ask_in_turn(
        &self,
        requested: &ActionRequest<'_>,
        plan: Option<&Plan>,
        subject: Subject,
        ground: Ground,
    ) -> Result<AuthorizedAction, Box<Outcome>> {
        let _turn = self.approvals.turn.lock().await;
        let old = self.approvals.approved(&self.key(requested));
        let is_approved = old.as_ref().is_some_and(|it| it.digest == subject.digest);
        let is_covered =
            ground == Ground::Writes && self.approvals.is_approved_for_session(&every_write());
        if is_approved || is_covered {
            let passed = self.allow(requested, Some(&subject), "approval")?;
            return Ok(AuthorizedAction { is_agreed: is_personal(ground), ..passed });
        }
        if self.approvals.is_refused_for_session(&self.key(requested), &subject) {
            let message = format!("approval to {} was not given", what(requested.action));
            let hint =
                "you have said no to this; you will be asked again in the next session".to_owned();
            return Err(self.refuse(
                requested,
                Some(&subject),
                "person",
                Refusal { message, hint },
            ));
        }
        self.ask(requested, plan, subject, ground, old).await
    }

    /// Whether a file with secrets may only be read by this tool once somebody has agreed. Nothing is
    /// logged.
    pub(crate) fn keeps_secret(&self, tool: &str, path: &Path) -> bool {
        let action = Action::Read(path.to_owned());
        let key =
            ApprovalKey::of(&ActionRequest { tool, action: &action, active: &[], given: None });
        self.policy.keeps_secret(tool, path) && self.approvals.approved(&key).is_none()
    }

    /// Whether the policy lets nobody be told a skill. Nothing is logged.
    pub fn is_denied(&self, skill: &Skill) -> bool {
        matches!(self.ruling(&telling(skill)), Ruling::Deny(_))
    }

    /// Offers a skill as far as nobody has to be asked, and says whether somebody would have to be:
    /// then it is no more than its name and description. Nobody is asked, and nothing is logged.
    pub fn offer(&self, chosen: &ChosenSkill<'_>) -> Result<(Offer, bool), ReadError> {
        if chosen.level == Level::Metadata {
            return Ok((Offer::new(chosen)?, false));
        }
        // What is looked at is what is told.
        let skill = &chosen.skill.holding(&chosen.skill.instructions()?);
        let chosen = ChosenSkill { skill, ..chosen.clone() };
        if self.can_disclose(skill) {
            return Ok((Offer::new(&chosen)?, false));
        }
        let (level, priority) = (Level::Metadata, Priority::Inactive);
        Ok((Offer::new(&ChosenSkill { level, priority, arguments: None, ..chosen })?, true))
    }

    /// Refuses to read what belongs to a skill that is not told to whoever wants it: a rule about a
    /// skill holds for its files too, until it is taken up.
    pub(crate) fn guard(
        &self,
        requested: &ActionRequest<'_>,
        active: &Active,
    ) -> Result<(), Box<Outcome>> {
        let Action::Read(path) = requested.action else { return Ok(()) };
        let undisclosed = self.undisclosed(active, |folder| lies_in(path, folder));
        let Some((name, _)) = undisclosed.into_iter().next() else { return Ok(()) };
        let path = path.display();
        let message = format!("`{path}` belongs to the skill `{name}`, which is not active");
        let hint = format!("`{TELLER}` takes it up, once that is agreed to");
        Err(self.refuse(requested, None, "policy", Refusal { message, hint }))
    }

    /// The skills that are not told to whoever wants them and were not taken up, of which the folder
    /// is meant: each with its folder, without links. Nobody is asked, and nothing is logged.
    pub(crate) fn undisclosed(
        &self,
        active: &Active,
        is_meant: impl Fn(&Path) -> bool,
    ) -> Vec<(String, PathBuf)> {
        let taken = active.skills();
        let book = OnceCell::new();
        let undisclosed = |skill: &Skill| {
            // Of most skills no file has to be looked at.
            let told = self.told(skill, |key| {
                let book = book.get_or_init(|| self.approvals.all());
                Some(book.iter().rfind(|it| it.key == *key)?.subject.digest.clone())
            });
            if matches!(told, DisclosureRule::Always)
                || taken.iter().any(|it| it.origin.path == skill.origin.path)
            {
                return None;
            }
            let folder = skill.absolute_folder()?.canonicalize().ok()?;
            let is_untold = is_meant(&folder) && !told.holds(skill);
            is_untold.then(|| (skill.manifest.name.to_string(), folder))
        };
        active.library().all().filter_map(undisclosed).collect()
    }

    /// Whether a skill is told to whoever wants it: nobody has to be asked. Nothing is logged.
    pub fn can_disclose(&self, skill: &Skill) -> bool {
        self.told(skill, |key| Some(self.approvals.approved(key)?.digest)).holds(skill)
    }

    fn told(
        &self,
        skill: &Skill,
        approved: impl FnOnce(&ApprovalKey) -> Option<String>,
    ) -> DisclosureRule {
        let action = telling(skill);
        let unless = match self.ruling(&action) {
            Ruling::Allow(_) => return DisclosureRule::Always,
            Ruling::Deny(_) => return DisclosureRule::Never,
            Ruling::Ask(_) => DisclosureRule::Never,
            Ruling::AskIfChanged => DisclosureRule::Always,
        };
        let key = ApprovalKey::of(&wish_to_tell(&action));
        approved(&key).map_or(unless, DisclosureRule::As)
    }

    /// Why a skill is not told to whoever wants it, with what to do about it; nothing if it is.
    /// Nothing is logged.
    pub fn why_withheld(&self, skill: &Skill) -> Option<Box<Outcome>> {
        let action = telling(skill);
        let requested = wish_to_tell(&action);
        let message = format!("approval is needed to {}", what(&action));
        let refusal =
            || Refusal { message, hint: format!("`{}` approves it", approving(&requested)) };
        (!self.can_disclose(skill)).then(|| refusal().into())
    }

    /// Whether a file of a skill that is told is told as well. Nothing is logged.
    pub fn tells_file(&self, skill: &Skill, path: &Path) -> bool {
        let action = Action::Resource { path: path.to_owned(), bytes: Arc::default() };
        // What rules say about a skill in use holds for whoever reads its files.
        let active = slice::from_ref(&skill.manifest);
        let requested = ActionRequest { tool: READER, action: &action, active, given: None };
        matches!(self.policy.ruling(&requested, None), Ruling::Allow(_) | Ruling::AskIfChanged)
    }

    /// Whether somebody has approved a skill that a server offers, as it is offered now; nothing if
    /// nobody ever has. Nothing is logged.
    pub fn approves(&self, skill: &RemoteSkill) -> Option<bool> {
        let action = Action::TakeUp(Box::new(skill.clone()));
        let old = self.approvals.approved(&ApprovalKey::of(&wish_to_tell(&action)));
        old.map(|it| it.digest == Subject::offered(skill).digest)
    }

    /// Whether the policy lets nobody take up a skill that a server offers. Nothing is logged.
    pub fn denies(&self, skill: &RemoteSkill) -> bool {
        matches!(self.ruling(&Action::TakeUp(Box::new(skill.clone()))), Ruling::Deny(_))
    }

    fn ruling(&self, action: &Action) -> Ruling {
        self.policy.ruling(&wish_to_tell(action), None)
    }

    /// Logs that a wish came true with nothing to hold it.
    pub fn note_unsandboxed(&self, requested: &ActionRequest<'_>) {
        self.audit.record(&AuditEntry {
            tool: requested.tool,
            skill: skill(requested),
            digest: skill_subject(requested).as_ref().map(|it| &*it.digest),
            what: "run without a sandbox",
            decision: "ran",
            by: "flag",
            sandbox: Some(SandboxLevel::None),
        });
    }

    /// Logs what a script has connected to, and what it was refused.
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

    /// What an approval of a wish is found by: with a network by another than without.
    fn key(&self, requested: &ActionRequest<'_>) -> ApprovalKey {
        let key = ApprovalKey::of(requested);
        let kind = if self.policy.hosts_of(requested.action).is_empty() {
            key.kind
        } else {
            ApprovalKind::Network
        };
        ApprovalKey { kind, ..key }
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
        let before = self.on_disk(requested).await?;
        let reply = self.approver.ask(&question).await;
        // Somebody may have taken time to answer.
        if self.on_disk(requested).await? != before {
            let message = format!("it changed while you were asked whether to {}", question.what);
            let refusal = Refusal { message, hint: "check it, and try again".to_owned() };
            return Err(self.refuse(requested, Some(&subject), "policy", refusal));
        }
        let (difference, is_agreed) = (question.difference.clone(), who == "person");
        match reply {
            ApproverReply::No => {
                // A server is wanted again with every conversation, and asked about once.
                if is_agreed
                    && matches!(requested.action, Action::Start { .. } | Action::Connect { .. })
                {
                    self.approvals.refuse_for_session(self.key(requested), subject.clone());
                }
                let refusal =
                    unapproved(requested, &question, &who, self.policy.hosts_of(requested.action));
                let outcome = self.refuse(requested, Some(&subject), &who, refusal);
                Err(Box::new(Outcome { difference: question.difference, ..*outcome }))
            }
            ApproverReply::Once => {
                self.allow(requested, Some(&subject), &who)?;
                Ok(AuthorizedAction { difference, is_agreed })
            }
            ApproverReply::Session => {
                self.allow(requested, Some(&subject), &who)?;
                let key =
                    if ground == Ground::Writes { every_write() } else { self.key(requested) };
                self.approvals.approve_for_session(Approval {
                    key,
                    when: timestamp(),
                    by: who,
                    subject,
                });
                Ok(AuthorizedAction { difference, is_agreed })
            }
            ApproverReply::Always => {
                self.allow(requested, Some(&subject), &who)?;
                let key = self.key(requested);
                self.approvals.approve(Approval { key, when: timestamp(), by: who, subject });
                Ok(AuthorizedAction { difference, is_agreed })
            }
        }
    }

    /// What an approval would be bound to now, whatever was read before.
    async fn on_disk(
        &self,
        requested: &ActionRequest<'_>,
    ) -> Result<Option<Subject>, Box<Outcome>> {
        if let Action::Command { line, directory, .. } = requested.action {
            let (line, directory) = (line.clone(), directory.clone());
            let policy = self.policy.clone();
            let plan = move || commands::plan(&line, &directory, &policy).map(|it| it.subject());
            return Ok(blocking(plan).await?.ok());
        }
        let Some(entry) = requested.action.entry() else { return Ok(None) };
        let folder = entry.folder.as_ref().map(SkillFolder::unread);
        let entry = SkillRecord { folder, ..entry.clone() };
        blocking(move || Subject::of(&entry).ok()).await
    }

    fn allow(
        &self,
        requested: &ActionRequest<'_>,
        subject: Option<&Subject>,
        by: &str,
    ) -> Result<AuthorizedAction, Box<Outcome>> {
        // What only looks is not worth a line, unless somebody has agreed to it.
        let is_quiet = match requested.action {
            Action::Tell => true,
            Action::Disclose(_) | Action::Read(_) | Action::Resource { .. } => subject.is_none(),
            _ => false,
        };
        if !is_quiet {
            self.note(requested, subject, "allowed", by);
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
        self.note(requested, subject, "refused", by);
        refusal.into()
    }

    fn note(
        &self,
        requested: &ActionRequest<'_>,
        subject: Option<&Subject>,
        decision: &str,
        by: &str,
    ) {
        self.audit.record(&AuditEntry {
            tool: requested.tool,
            skill: skill(requested),
            digest: subject.map(|it| &*it.digest),
            what: &format!(
                "{}{}",
                logged(requested.action),
                reaching(self.policy.hosts_of(requested.action))
            ),
            decision,
            by,
            sandbox: None,
        });
    }
}

/// A wish that may come true.
pub(crate) struct AuthorizedAction {
    /// What has changed since it was approved, where somebody has agreed to that.
    pub(crate) difference: Option<String>,
    /// Whether a person has agreed to exactly this, now or before.
    pub(crate) is_agreed: bool,
}

/// Whether only a person leaves an approval behind that holds for good.
fn is_personal(ground: Ground) -> bool {
    matches!(ground, Ground::Unlisted | Ground::Secret(_))
}

/// When a skill is told to whoever wants it.
enum DisclosureRule {
    Always,
    /// As long as it is what was approved.
    As(String),
    Never,
}

impl DisclosureRule {
    fn holds(&self, skill: &Skill) -> bool {
        let subject = || Subject::of(&SkillRecord::told(skill).ok()?).ok();
        match self {
            Self::Always => true,
            Self::As(digest) => subject().is_some_and(|it| it.digest == *digest),
            Self::Never => false,
        }
    }
}

/// The tool that tells skills.
const TELLER: &str = "use_skill";
/// The tool that reads their files.
const READER: &str = "read_skill_file";
/// How many files of a skill are shown to whoever is asked about it.
const SHOWN: usize = 50;

/// The wish to tell a skill, whoever has it.
fn wish_to_tell(action: &Action) -> ActionRequest<'_> {
    ActionRequest { tool: TELLER, action, active: &[], given: None }
}

/// To tell a skill, as far as the policy looks at it: not at its text.
fn telling(skill: &Skill) -> Action {
    Action::Disclose(Box::new(SkillRecord::text(skill, String::new())))
}

/// What an approval of a wish is bound to.
fn subject(requested: &ActionRequest<'_>, plan: Option<&Plan>) -> Result<Subject, Refusal> {
    match requested.action {
        Action::TakeUp(skill) => return Ok(Subject::offered(skill)),
        Action::Connect { line, .. } => return Ok(Subject::of_words([line.as_bytes()])),
        _ => {}
    }
    match (requested.action.entry(), plan) {
        (Some(entry), _) => Subject::of(entry).map_err(|error| Refusal {
            message: format!("{error}, so it cannot be approved"),
            hint: format!("look at the files of `{}`", entry.manifest.name),
        }),
        (_, Some(plan)) => {
            // What it could reach is a part of what somebody agrees to.
            let reach = match requested.action {
                Action::Command { preview: Some(preview), .. } => preview.reach.join("\n"),
                _ => String::new(),
            };
            let digest = plan.subject().digest;
            Ok(Subject::of_words([digest.as_bytes(), reach.as_bytes()]))
        }
        (None, None)
            if let Action::Write(FileChange { path, .. })
            | Action::Read(path)
            | Action::Resource { path, .. } = requested.action =>
        {
            Ok(Subject::of_words([path.as_os_str().as_encoded_bytes()]))
        }
        (None, None)
            if let Action::Fetch { method, url, .. } = requested.action
                && !is_get(method) =>
        {
            Ok(Subject::of_words([origin(url).as_bytes()]))
        }
        (None, None) => {
            Ok(Subject::of_words([requested.tool.as_bytes(), what(requested.action).as_bytes()]))
        }
    }
}

/// What tells a skill that is to run from any other; nothing for what is no skill.
fn skill_subject(requested: &ActionRequest<'_>) -> Option<Subject> {
    match requested.action {
        Action::TakeUp(skill) => Some(Subject::offered(skill)),
        action => action.entry().and_then(|it| Subject::of(it).ok()),
    }
}

impl ApprovalKey {
    /// What an approval of a wish is found by.
    fn of(requested: &ActionRequest<'_>) -> Self {
        let folder = requested.action.entry().and_then(|it| it.folder.as_ref());
        let place = folder.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let (kind, name, place) = match requested.action {
            // To tell what stands in it is not to run it.
            Action::Disclose(entry) if entry.manifest.kind != Type::Instruction => {
                (ApprovalKind::Call, format!("{TELLER} {}", entry.manifest.name), place)
            }
            Action::Execute(entry) | Action::Disclose(entry) => {
                (ApprovalKind::Skill, entry.manifest.name.to_string(), place)
            }
            Action::Start { entry, server, .. } => {
                (ApprovalKind::Server, format!("{}/{server}", entry.manifest.name), place)
            }
            Action::Connect { server, file, .. } => {
                (ApprovalKind::Server, server.clone(), file.to_string_lossy().into_owned())
            }
            // The same URI is another skill at another server.
            Action::TakeUp(skill) => {
                let by = skill.set_by.as_deref().unwrap_or_default();
                (
                    ApprovalKind::Skill,
                    format!("{}:{}", skill.server, skill.name),
                    format!("{} {by}", skill.uri),
                )
            }
            Action::Read(path) | Action::Resource { path, .. } => {
                (ApprovalKind::Read, "read".to_owned(), path.to_string_lossy().into_owned())
            }
            Action::Fetch { method, url, .. } if !is_get(method) => {
                (ApprovalKind::Send, "send".to_owned(), origin(url))
            }
            // By whatever tool.
            Action::Write(change) => (
                ApprovalKind::Write,
                "write".to_owned(),
                change.path.to_string_lossy().into_owned(),
            ),
            action => (ApprovalKind::Call, requested.tool.to_owned(), what(action)),
        };
        Self { kind, name, place }
    }
}

/// What is approved when every file may be written that is not asked about each time.
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
        let entry = requested.action.entry();
        let question = Question {
            what: what(requested.action) + &reaching(self.policy.hosts_of(requested.action)),
            why: why(requested, plan, ground, old.is_some()),
            given: given(requested),
            files: subject.listed(),
            place: entry.and_then(|it| it.folder.as_ref()).map(|it| it.to_path_buf()),
            ..Question::default()
        };
        match requested.action {
            Action::Command { line, preview, .. } => Question {
                content: Some(line.clone()),
                reach: preview.as_ref().map(|it| it.reach.clone()).unwrap_or_default(),
                coverage: match ground {
                    Ground::Unlisted | Ground::Secret(_) => Coverage::More {
                        session: "this command in this directory".to_owned(),
                        always: "this command in this directory".to_owned(),
                    },
                    _ => Coverage::UntilChange,
                },
                // Nothing holds it, or it names secrets, so nobody agrees to it unseen.
                in_person: ground == Ground::Unlisted
                    && preview.as_ref().is_some_and(|it| !it.is_sandboxed)
                    || plan.is_some_and(|it| !it.secrets.is_empty()),
                ..question
            },
            Action::Read(_) | Action::Resource { .. } if matches!(ground, Ground::Secret(_)) => {
                Question {
                    coverage: Coverage::More {
                        session: "this file".to_owned(),
                        always: "this file".to_owned(),
                    },
                    in_person: true,
                    files: None,
                    ..question
                }
            }
            Action::Fetch { method, url, .. } if !is_get(method) => {
                let host = format!("every request to `{}`", origin(url));
                let coverage = Coverage::More { session: host.clone(), always: host };
                Question { coverage, files: None, ..question }
            }
            Action::Write(change) => {
                let (content, diff) = shown(change);
                let session = match ground {
                    Ground::Writes => {
                        let roots: Vec<_> =
                            self.policy.roots.iter().map(|it| it.display()).collect();
                        let roots: Vec<_> = roots.iter().map(|it| format!("`{it}`")).collect();
                        format!("every ordinary file in {}", roots.join(" and "))
                    }
                    _ => "this file".to_owned(),
                };
                let coverage = Coverage::More { session, always: "this file".to_owned() };
                let in_person = matches!(ground, Ground::Sensitive(_));
                Question { content, diff, coverage, in_person, files: None, ..question }
            }
            Action::Connect { line, .. } => Question { content: Some(line.clone()), ..question },
            Action::TakeUp(skill) => Question { content: Some(listed(skill)), ..question },
            _ => Question {
                content: entry.map(|it| render_definition(&it.definition, None)),
                ..question
            },
        }
        .with_difference(old.map(|it| subject.difference(it)))
    }
}

impl Question {
    fn with_difference(self, difference: Option<String>) -> Self {
        Self { difference: difference.filter(|it| !it.is_empty()), ..self }
    }
}

/// Why somebody is asked, in words that follow “because”.
fn why(
    requested: &ActionRequest<'_>,
    plan: Option<&Plan>,
    ground: Ground,
    is_changed: bool,
) -> String {
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
        _ if is_changed => "it has changed since it was approved",
        Ground::Required => "the skill requires approval",
        Ground::Server => match requested.action {
            Action::Start { url: Some(_), .. } | Action::Connect { url: Some(_), .. } => {
                "data passed to its tools leaves this machine"
            }
            Action::Connect { .. } => "this project's file wants to start a program",
            _ => "the skill wants to start a program",
        },
        Ground::Offered => "a server wrote it, and models follow it, even when running commands",
        Ground::Rule => "a rule of the policy asks for it",
        _ => "the policy asks before everything except reading",
    };
    why.to_owned()
}

/// Which files with secrets a command names, in words; nothing where it names none.
fn names_secrets(plan: &Plan) -> String {
    let names: Vec<String> = plan.secrets.iter().map(|it| format!("`{}`", it.display())).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("it names {}, which may contain secrets", names.join(" and ")),
    }
}

/// The largest text of a file of which is shown what changes.
const TEXT: usize = 1024 * 1024;

/// What is shown of a file that would be written: its content if it is new, else what changes.
fn shown(change: &FileChange) -> (Option<String>, Option<String>) {
    let Some(after) = &change.after else { return (None, None) };
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok().filter(|it| it.len() <= TEXT)?;
        (!text.contains('\0')).then(|| text.to_owned())
    };
    let size = after.len();
    match (&change.before, text(after)) {
        (FileState::Bytes(before), new) if before == after => {
            drop(new);
            (None, Some("nothing would change\n".to_owned()))
        }
        (FileState::Bytes(before), Some(new)) if let Some(old) = text(before) => {
            (None, Some(file_difference(&old, &new)))
        }
        (FileState::Bytes(before), _) => {
            let old = before.len();
            (None, Some(format!("too large or not text: {old} → {size} bytes\n")))
        }
        (FileState::TooLarge(old), _) => {
            (None, Some(format!("too large to show: {old} → {size} bytes\n")))
        }
        (_, Some(new)) if new.is_empty() => (Some("an empty file".to_owned()), None),
        (_, Some(new)) => (Some(shortened(&new)), None),
        (_, None) => (Some(format!("too large or not text: {size} bytes")), None),
    }
}

/// How much is shown of what a tool is given: lines, and characters of a line.
const GIVEN: (usize, usize) = (40, 300);

/// What a tool is given beside what the question says anyway; nothing where that is nothing.
fn given(requested: &ActionRequest<'_>) -> Option<String> {
    let given = match requested.action {
        Action::Tell | Action::Disclose(_) | Action::Resource { .. } | Action::Read(_) => {
            return None;
        }
        Action::Command { .. } => return None,
        Action::Write(FileChange { after: Some(_), .. }) => return None,
        _ => requested.given?,
    };
    if given.as_object().is_some_and(serde_json::Map::is_empty) {
        return None;
    }
    let text = serde_json::to_string_pretty(given).ok()?;
    let cut = |line: &str| match line.char_indices().nth(GIVEN.1) {
        Some((at, _)) => {
            format!("{}… and {} more characters", &line[..at], line[at..].chars().count())
        }
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = text.lines().take(GIVEN.0).map(cut).collect();
    let more = text.lines().count() - lines.len();
    lines.extend((more > 0).then(|| format!("… and {more} more lines")));
    Some(lines.join("\n"))
}

/// What somebody approves of a skill that a server offers: its files as they are listed, of which none
/// was read.
fn listed(skill: &RemoteSkill) -> String {
    let file = |it: &RemoteFile| format!("{}  {} bytes  {}\n", it.path, it.size, it.digest);
    let files: String = skill.files.iter().take(SHOWN).map(file).collect();
    let more = match skill.files.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("… and {more} more files\n"),
    };
    format!("{}\n{}\n\n{files}{more}", skill.description, skill.uri)
}

fn denied(requested: &ActionRequest<'_>, ground: Ground) -> Refusal {
    let what = what(requested.action);
    match ground {
        Ground::AllowedTools => Refusal {
            message: format!("no active skill allows `{}` to {what}", requested.tool),
            hint: "only the tools in `allowed-tools` of an active skill may be used".to_owned(),
        },
        Ground::Writes => Refusal {
            message: format!("not allowed to {what}, because `policy.writes` is `deny`"),
            hint: "with `policy.writes = \"ask\"` in your own settings, every write is asked about"
                .to_owned(),
        },
        Ground::Sensitive(why) | Ground::Secret(why) => Refusal {
            message: format!(
                "approval is needed to {what}, because {why}, and it is never asked for"
            ),
            hint: "allow the `path` by a rule in your own settings".to_owned(),
        },
        Ground::Sends => Refusal {
            message: format!("not allowed to {what}, because `policy.sends` is `deny`"),
            hint: "`policy.hosts` in your own settings can list the host".to_owned(),
        },
        _ => Refusal {
            message: format!("not allowed to {what}, because of a rule with the decision `deny`"),
            hint: "`prowess config policy.rules` shows the rules".to_owned(),
        },
    }
}

fn unapproved(
    requested: &ActionRequest<'_>,
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
            hint: unasked(requested, question),
        },
        "nobody" => Refusal {
            message: format!(
                "approval is needed to {what}, because {why}, and there was no one to ask"
            ),
            hint: {
                let command = with_hosts(approving(requested), hosts);
                format!("use `{command}`, or answer at a terminal")
            },
        },
        _ => Refusal {
            message: format!("approval to {what} was not given, because the answer was no"),
            hint: "nothing was done".to_owned(),
        },
    }
}

/// What to do about a file or command that nobody could be asked about.
fn unasked(requested: &ActionRequest<'_>, question: &Question) -> String {
    let also = match requested.action {
        Action::Command { .. } => "add it to `policy.commands` in your own settings",
        Action::Fetch { .. } => "add the host to `policy.hosts` in your own settings",
        _ => "allow this `path` by a rule in your own settings",
    };
    match question.in_person {
        true => format!("`--yes` is not enough: answer at a terminal, or {also}"),
        false => format!("use `--yes`, answer at a terminal, or {also}"),
    }
}

/// What to type so that the same wish comes true: a command where it is safe to be copied.
fn approving(requested: &ActionRequest<'_>) -> String {
    let is_plain = |it: &str| {
        let is_letter = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
        it.split('/').all(|it| !it.starts_with('-') && it.bytes().all(is_letter))
    };
    if let Action::TakeUp(skill) = requested.action
        && skill.address.split(':').all(is_plain)
    {
        return format!("prowess servers show {} --yes", skill.address);
    }
    let name = skill(requested).filter(|it| is_plain(it));
    match (requested.action, name.map(|it| (it, it.split_once('/')))) {
        (Action::Disclose(entry), Some((name, _))) if entry.manifest.kind != Type::Instruction => {
            format!(r#"prowess tool {TELLER} '{{"name":"{name}"}}' --yes"#)
        }
        (Action::Execute(_), Some((_, Some((name, script))))) => {
            format!("prowess run {name} --script {script} --yes")
        }
        (Action::Disclose(_) | Action::Execute(_), Some((name, None))) => {
            format!("prowess run {name} --yes")
        }
        _ => "--yes".to_owned(),
    }
}

/// The same, for a script that may connect to hosts.
fn with_hosts(command: String, hosts: &[String]) -> String {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || b"-.:".contains(&it);
    let are_plain = hosts.iter().all(|it| it.bytes().all(is_letter));
    match command.strip_suffix(" --yes") {
        Some(start) if !hosts.is_empty() && are_plain => {
            format!("{start} --net {} --yes", hosts.join(","))
        }
        _ => command,
    }
}

/// What a script could connect to, in words that follow what would be done.
fn reaching(hosts: &[String]) -> String {
    match hosts {
        [] => String::new(),
        hosts => format!(" with a connection to `{}`", hosts.join("`, `")),
    }
}

fn skill<'a>(requested: &ActionRequest<'a>) -> Option<&'a str> {
    match requested.action {
        Action::Serve { skill, .. } => skill.as_deref(),
        Action::TakeUp(skill) => Some(&skill.address),
        action => action.entry().map(|it| &*it.manifest.name),
    }
}

/// What would be done, in words that follow “to”.
fn what(action: &Action) -> String {
    match action {
        Action::Tell => "tell what there is".to_owned(),
        Action::Disclose(entry) => format!("use the skill `{}`", entry.manifest.name),
        Action::Execute(entry) => format!("run the skill `{}`", entry.manifest.name),
        Action::Command { line, directory, .. } => {
            format!("run `{line}` in `{}`", directory.display())
        }
        Action::Read(path) | Action::Resource { path, .. } => format!("read `{}`", path.display()),
        Action::Write(FileChange { path, before, .. }) => {
            let verb = match before {
                FileState::Unknown => "write",
                FileState::Missing => "create",
                FileState::Bytes(_) | FileState::TooLarge(_) => "overwrite",
            };
            format!("{verb} `{}`", path.display())
        }
        Action::Fetch { method, url, body: None } => format!("send {method} to `{url}`"),
        Action::Fetch { method, url, body: Some(size) } => {
            format!("send {method} with a body of {size} bytes to `{url}`")
        }
        Action::Query(sql) => format!("ask the database `{sql}`"),
        Action::Start { entry, server, url } => {
            let of = format!("the server `{server}` of the skill `{}`", entry.manifest.name);
            match url {
                None => format!("start {of}"),
                Some(url) => format!("connect to {of} at `{url}`"),
            }
        }
        Action::Serve { server, skill: Some(skill), tool } => {
            format!("use `{tool}` of the server `{server}` that the skill `{skill}` brought")
        }
        Action::Serve { server, tool, .. } => format!("use `{tool}` of the server `{server}`"),
        Action::Connect { server, file, url, .. } => {
            let of = format!("the server `{server}` that `{}` sets", file.display());
            match url {
                None => format!("start {of}"),
                Some(url) => format!("connect to {of} at `{url}`"),
            }
        }
        Action::TakeUp(skill) => {
            format!("use the skill `{}` that the server `{}` offers", skill.address, skill.server)
        }
    }
}

/// The same for the log, without what could be a secret in an address or a statement.
fn logged(action: &Action) -> String {
    match action {
        Action::Fetch { url, .. }
        | Action::Start { url: Some(url), .. }
        | Action::Connect { url: Some(url), .. } => what(action).replace(&**url, &bare(url)),
        Action::Query(_) => "ask the database".to_owned(),
        action => what(action),
    }
}

/// Whether a request only gets something.
fn is_get(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS")
}

/// The scheme, host and port of an address.
#[cfg(feature = "http")]
fn origin(url: &str) -> String {
    url::Url::parse(url).map_or_else(|_| bare(url), |it| it.origin().ascii_serialization())
}

/// Without HTTP nothing is sent anywhere.
#[cfg(not(feature = "http"))]
fn origin(url: &str) -> String {
    bare(url)
}

/// An address without what could be a secret in it.
fn bare(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let start = url[..end].find("://").map_or(0, |it| it + "://".len());
    let host = url[start..end].split('/').next().unwrap_or_default();
    let user = host.rfind('@').map_or(0, |it| it + 1);
    format!("{}{}", &url[..start], &url[start + user..end])
}

impl Ground {
    /// The word for it in the records.
    fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Setting => "setting",
            Self::AllowedTools => "allowed-tools",
            Self::Required => "skill",
            Self::Server | Self::Offered => "server",
            Self::Writes | Self::Sends => "setting",
            Self::Sensitive(_) | Self::Secret(_) | Self::Unlisted | Self::Network => "policy",
        }
    }
}
