//! A change of the skills of a place: what is wanted afterwards, and what has to be done for it.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::Result;
use prowess_packages::{
    FetchedTree, FileReplacement, InstallAction, InstallConflict, InstallError, InstallOptions,
    InstallPlan, InstallReport, Installer, LocalEdits, Lock, LockedSkill, PackageManifest,
    PackagedSkill, PlannedStep, RecoveryOutcome, Signer, SourceKind, TargetDirectory, TargetForm,
    WantedSkill, target_directories,
};
use serde_json::{Value, json};

use super::{PackageSession, chain};
use crate::{
    cli_error::CliError,
    commands::count,
    context::quote_entries,
    host,
    printer::{self, Printer},
};

/// A change of the skills of a place. Nothing is changed before it is applied.
pub(crate) struct Change<'s> {
    pub(crate) session: &'s PackageSession,
    /// The manifest as it will be.
    pub(crate) manifest: PackageManifest,
    /// The lock as it is.
    pub(crate) lock: Lock,
    /// The skills as they will be, by name.
    wanted: BTreeMap<String, LockedSkill>,
    /// The handling of files that the user edited.
    pub(crate) edits: LocalEdits,
    /// The bytes of both files.
    manifest_before: Option<Vec<u8>>,
    lock_before: Option<Vec<u8>>,
    /// The targets of each skill, as they are after the change was applied.
    applied: BTreeMap<String, Vec<String>>,
    /// Those that were determined already.
    directories: RefCell<KnownDirectories>,
}

/// The directories for clients, and for whether each gets its own copy.
type KnownDirectories = BTreeMap<(Vec<String>, bool), Vec<TargetDirectory>>;

/// A version of a skill that is to be locked.
#[derive(Clone, Copy)]
pub(crate) struct SkillVersion<'p> {
    pub(crate) entry: &'p WantedSkill,
    pub(crate) skill: &'p PackagedSkill,
    pub(crate) tree: &'p FetchedTree,
    pub(crate) signer: Option<&'p Signer>,
}

/// A plan with what it comes to.
pub(crate) struct ChangePlan {
    installer: Installer,
    plan: InstallPlan,
}

impl ChangePlan {
    /// Returns what is done with each target.
    pub(crate) fn steps(&self) -> &[PlannedStep] {
        self.plan.steps()
    }
}

impl<'s> Change<'s> {
    /// Finishes or takes back what a killed process began, and reads the manifest and the lock.
    pub(crate) fn begin(session: &'s PackageSession, printer: &mut Printer) -> Result<Self> {
        let installer = open(session)?;
        for recovered in installer.recovered() {
            let what = format!("`{}` in `{}`", recovered.title, recovered.root.display());
            match &recovered.outcome {
                RecoveryOutcome::RolledBack => printer
                    .note(&format!("{what} was interrupted, and everything is as it was before")),
                RecoveryOutcome::Finished => {
                    printer.note(&format!("{what} was interrupted, and is finished now"));
                }
                RecoveryOutcome::Waiting(why) => printer
                    .warning(&format!("{what} was interrupted, and cannot be taken back: {why}")),
                _ => {}
            }
        }
        Self::read(session)
    }

    /// Reads the manifest and the lock.
    fn read(session: &'s PackageSession) -> Result<Self> {
        let place = &session.place;
        let manifest = place.read_manifest()?;
        let lock = place.read_lock()?;
        if !place.is_global {
            lock.check_in_project().map_err(|error| {
                let hint =
                    error.hint().unwrap_or_else(|| "restore it from version control".to_owned());
                CliError::new(format!("`{}`: {error}", place.short(&place.lock))).hint(hint)
            })?;
        }
        let wanted = lock.skills().iter().map(|it| (it.name.clone(), it.clone())).collect();
        Ok(Self {
            session,
            manifest,
            wanted,
            lock,
            edits: LocalEdits::Refuse,
            manifest_before: bytes_of(&place.manifest)?,
            lock_before: bytes_of(&place.lock)?,
            applied: BTreeMap::new(),
            directories: RefCell::default(),
        })
    }

    /// Adds or replaces skills, with their entries in the manifest.
    pub(crate) fn set_all(&mut self, versions: &[SkillVersion<'_>]) -> Result<()> {
        let entries: Vec<WantedSkill> = versions.iter().map(|it| it.entry.clone()).collect();
        self.set_entries(&entries)?;
        self.lock_all(versions)
    }

    /// Changes entries of the manifest, all or none of them.
    pub(crate) fn set_entries(&mut self, entries: &[WantedSkill]) -> Result<(), CliError> {
        self.manifest.set_all(entries).map_err(|error| {
            let place = &self.session.place;
            let message = format!("`{}`: {error}", place.short(&place.manifest));
            let hint = error.hint().unwrap_or_else(|| "edit it by hand".to_owned());
            CliError::invalid_input(message).hint(hint)
        })
    }

    /// Locks versions of skills whose entries are in the manifest.
    pub(crate) fn lock_all(&mut self, versions: &[SkillVersion<'_>]) -> Result<()> {
        let locked: Result<Vec<LockedSkill>, CliError> =
            versions.iter().map(|it| self.locked(it)).collect();
        self.insert_all(locked?)
    }

    fn locked(&self, version: &SkillVersion<'_>) -> Result<LockedSkill, CliError> {
        let SkillVersion { entry, skill, tree, signer } = *version;
        let (name, source) = (&*entry.name, entry.source.clone());
        // Others have a folder of this machine where the manifest says.
        let url = match &source.kind {
            SourceKind::Folder(_) | SourceKind::File(_) => source.to_string(),
            _ => tree.url.clone(),
        };
        let mut locked = LockedSkill::new(name, source, url, skill.files.clone());
        locked.skill = entry.skill.clone();
        locked.reference = tree.reference.clone();
        locked.commit = tree.commit.clone();
        locked.version = tree.version.clone();
        locked.published = tree.published;
        locked.path = skill.path.clone();
        locked.plugin = skill.plugin.clone();
        locked.signer = signer.map(ToString::to_string);
        locked.clients = self.manifest.clients_of(entry).map(<[String]>::to_vec);
        locked.copy = self.manifest.is_copied(entry);
        locked.targets = self.directories(entry)?.iter().map(|it| it.target(name)).collect();
        Ok(locked)
    }

    /// Adds or replaces locked skills. Unknown fields of the lock stay.
    pub(crate) fn insert_all(&mut self, skills: Vec<LockedSkill>) -> Result<()> {
        let names: Vec<String> = skills.iter().map(|it| it.name.clone()).collect();
        let mut lock = self.lock.clone();
        lock.insert_all(skills).map_err(|error| {
            let hint = error.hint().unwrap_or_else(|| "leave it out".to_owned());
            CliError::invalid_input(error.to_string()).hint(hint)
        })?;
        let inserted = names.iter().filter_map(|it| lock.get(it));
        self.wanted.extend(inserted.map(|it| (it.name.clone(), it.clone())));
        Ok(())
    }

    /// Removes a skill from the manifest and the lock.
    pub(crate) fn remove(&mut self, name: &str) -> Result<()> {
        self.manifest.remove(name).map_err(|error| {
            let place = &self.session.place;
            let message = format!("`{}`: {error}", place.short(&place.manifest));
            CliError::invalid_input(message).hint("edit it by hand")
        })?;
        self.wanted.remove(name);
        Ok(())
    }

    /// Returns the skill of a name as it will be locked.
    pub(crate) fn wanted(&self, name: &str) -> Option<&LockedSkill> {
        self.wanted.get(name)
    }

    /// Returns the directories that a skill is installed in.
    pub(crate) fn directories(
        &self,
        entry: &WantedSkill,
    ) -> Result<Vec<TargetDirectory>, CliError> {
        let clients = match self.manifest.clients_of(entry) {
            Some(clients) => clients.to_vec(),
            None => self.session.clients(),
        };
        let copy = self.manifest.is_copied(entry) || self.session.config.packages.copy.value;
        let key = (clients, copy);
        // Most skills have the same clients, and finding these looks at the disk.
        if let Some(known) = self.directories.borrow().get(&key) {
            return Ok(known.clone());
        }
        let found = target_directories(&self.session.install, &key.0, copy)
            .map_err(|error| CliError::new(error.to_string()).hint(error.hint()))?;
        self.directories.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    /// Compares what is wanted with the disk. Other processes wait until the plan is dropped or applied.
    pub(crate) fn plan(&self) -> Result<ChangePlan> {
        let installer = open(self.session)?;
        self.check_files()?;
        let wanted = self.wanted.values().cloned().collect();
        let plan = installer
            .plan(self.lock.skills(), wanted, self.edits)
            .map_err(|error| install_error(&error))?;
        Ok(ChangePlan { installer, plan })
    }

    /// Fails if the manifest or the lock was changed since they were read.
    fn check_files(&self) -> Result<()> {
        let place = &self.session.place;
        for (path, before) in
            [(&place.manifest, &self.manifest_before), (&place.lock, &self.lock_before)]
        {
            if bytes_of(path)? != *before {
                let fault = CliError::new(format!("`{}` was changed meanwhile", place.short(path)));
                return Err(fault.hint("nothing was changed; run the command again").into());
            }
        }
        Ok(())
    }

    /// Returns whether a plan changes nothing, neither on the disk nor in the manifest and the lock.
    pub(crate) fn is_nothing(&self, planned: &ChangePlan) -> bool {
        let wanted: Vec<LockedSkill> = self.wanted.values().cloned().collect();
        planned.plan.is_empty()
            && wanted == self.lock.skills()
            && self.manifest_text().into_bytes() == self.manifest_before.clone().unwrap_or_default()
    }

    fn manifest_text(&self) -> String {
        self.manifest.to_string()
    }

    /// Makes a change: folders, links, manifest and lock, all or nothing.
    pub(crate) fn apply(
        &mut self,
        planned: ChangePlan,
        title: &str,
        printer: &mut Printer,
    ) -> Result<InstallReport> {
        let ChangePlan { installer, plan } = planned;
        let (cancelled, counts) =
            (Arc::new(AtomicBool::new(false)), [const { AtomicUsize::new(0) }; 2]);
        let report_progress = |done: usize, total: usize| {
            counts[0].store(done, Ordering::Relaxed);
            counts[1].store(total, Ordering::Relaxed);
        };
        let options =
            InstallOptions::new(title).with_progress(&report_progress).with_cancel(&cancelled);
        let failed: RefCell<Option<anyhow::Error>> = RefCell::new(None);
        let place = &self.session.place;
        let lock = self.lock.clone();
        let manifest = self.manifest_text();
        let files = |skills: &[LockedSkill]| match lock_text(lock, skills) {
            Ok(text) => {
                let after =
                    (!skills.is_empty() || self.lock_before.is_some()).then(|| text.into_bytes());
                let mut files =
                    vec![FileReplacement::new(&place.lock, self.lock_before.clone(), after)];
                let after = manifest.into_bytes();
                if self.manifest_before.as_ref() != Some(&after) {
                    let before = self.manifest_before.clone();
                    files.push(FileReplacement::new(&place.manifest, before, Some(after)));
                }
                files
            }
            Err(error) => {
                *failed.borrow_mut() = Some(error.into());
                cancelled.store(true, Ordering::Relaxed);
                Vec::new()
            }
        };
        if let Some(folder) = place.manifest.parent() {
            fs::create_dir_all(folder)?;
        }
        let stop = Arc::clone(&cancelled);
        let done = with_stop(&stop, || {
            thread::scope(|scope| {
                let (done, is_done) = std::sync::mpsc::channel::<()>();
                let counts = &counts;
                scope.spawn(move || {
                    let mut wait = printer::LONG;
                    while is_done.recv_timeout(wait)
                        == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                    {
                        let [done, total] =
                            [0, 1].map(|it: usize| counts[it].load(Ordering::Relaxed));
                        printer.progress_bar("installing", (done, total));
                        wait = super::REDRAW;
                    }
                    printer.progress_ends();
                });
                let applied = installer.apply(plan, &options, files);
                drop(done);
                applied
            })
        })?;
        if let Some(error) = failed.into_inner() {
            return Err(error);
        }
        let report = done.map_err(|error| match error {
            InstallError::Cancelled { .. } => super::stopped(),
            error => install_error(&error),
        })?;
        for skill in &report.skills {
            let targets = skill.targets.iter().map(|it| it.path.clone()).collect();
            self.applied.insert(skill.name.clone(), targets);
        }
        Ok(report)
    }

    /// Returns the folders that a skill is installed in.
    pub(crate) fn places_of(&self, name: &str) -> Vec<String> {
        self.applied.get(name).cloned().unwrap_or_default()
    }

    /// Describes where the skills of some entries go, a line for each set of directories.
    pub(crate) fn describe_targets(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
        for name in names {
            let Some(entry) = self.manifest.get(name) else { continue };
            let directories = self.directories(entry)?;
            let parts: Vec<String> = directories
                .iter()
                .enumerate()
                .map(|(at, it)| {
                    let clients: Vec<&str> = it.clients.iter().map(|it| it.label).collect();
                    let clients = match clients.len() {
                        0 => String::new(),
                        1..=4 => format!(" ({})", clients.join(", ")),
                        more => format!(" ({} and {} more)", clients[..3].join(", "), more - 3),
                    };
                    let what = match (at, it.form) {
                        (0, _) => "into",
                        (_, TargetForm::Link) => "linked from",
                        _ => "copied into",
                    };
                    format!("{what} `{}`{clients}", it.path)
                })
                .collect();
            let line = parts.join(", ");
            match lines.iter_mut().find(|it| it.0 == line) {
                Some(known) => known.1.push(name),
                None => lines.push((line, vec![name])),
            }
        }
        let is_one = lines.len() == 1;
        Ok(lines
            .into_iter()
            .map(
                |(line, names)| {
                    if is_one { line } else { format!("{}: {line}", quote_entries(&names)) }
                },
            )
            .collect())
    }
}

/// Returns the steps of a plan as JSON, without those that change nothing.
pub(crate) fn steps_json(steps: &[PlannedStep]) -> Value {
    let changed = steps.iter().filter(|it| it.action != InstallAction::Keep);
    let steps = changed.map(|it| {
        json!({
            "skill": it.skill,
            "path": it.path,
            "action": action_word(it.action),
            "link": it.form == TargetForm::Link,
        })
    });
    steps.collect()
}

/// Returns the word for an action in JSON.
pub(crate) fn action_word(action: InstallAction) -> &'static str {
    match action {
        InstallAction::Create => "create",
        InstallAction::Replace => "replace",
        InstallAction::Keep => "keep",
        InstallAction::KeepEdited => "keep-edited",
        InstallAction::Merge => "merge",
        InstallAction::SetAside => "set-aside",
        InstallAction::Remove => "remove",
        InstallAction::Forget => "forget",
        _ => "other",
    }
}

/// Waits for other processes that install something, and opens the place.
fn open(session: &PackageSession) -> Result<Installer, CliError> {
    let on_wait =
        || printer::write_stderr("note: waiting for another process that installs skills\n");
    Installer::open(&session.install, &session.cache, &on_wait).map_err(|it| install_error(&it))
}

/// Turns an error of installing into that of a command.
pub(crate) fn install_error(error: &InstallError) -> CliError {
    let InstallError::Conflicts(conflicts) = error else {
        let fault = CliError::new(chain(error));
        return match error.hint() {
            Some(hint) => fault.hint(hint),
            None => fault.hint("nothing of yours was changed"),
        };
    };
    /// The conflicts that are named.
    const NAMED: usize = 5;
    let mut hints: Vec<String> = Vec::new();
    let lines: Vec<String> = conflicts.iter().take(NAMED).map(ToString::to_string).collect();
    for hint in conflicts.iter().map(conflict_hint) {
        if !hints.contains(&hint) && hints.len() < NAMED {
            hints.push(hint);
        }
    }
    let more = match conflicts.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {}", count(more, "more conflict")),
    };
    let fault = CliError::invalid_input(format!("{}{more}; nothing was changed", lines.join("; ")));
    hints.into_iter().fold(fault, CliError::hint)
}

fn conflict_hint(conflict: &InstallConflict) -> String {
    conflict.hint()
}

fn bytes_of(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(anyhow::Error::from(error).context(format!("cannot read `{}`", path.display())))
        }
    }
}

/// Returns the text of a lock with these skills, and the unknown fields of the one before.
fn lock_text(mut lock: Lock, skills: &[LockedSkill]) -> Result<String, CliError> {
    let kept: BTreeSet<&str> = skills.iter().map(|it| &*it.name).collect();
    let gone: Vec<String> =
        lock.skills().iter().map(|it| it.name.clone()).filter(|it| !kept.contains(&**it)).collect();
    for name in gone {
        lock.remove(&name);
    }
    lock.insert_all(skills.iter().cloned()).map_err(|error| CliError::new(error.to_string()))?;
    Ok(lock.to_string())
}

/// Does work that can be stopped by Ctrl-C.
fn with_stop<T>(cancelled: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let stop = {
        let _entered = runtime.enter();
        host::stop_signal()?
    };
    let flag = Arc::clone(cancelled);
    runtime.spawn(async move {
        stop.await;
        flag.store(true, Ordering::Relaxed);
    });
    let done = work();
    runtime.shutdown_background();
    Ok(done)
}
