use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::spec::SKILL_FILE;
use prowess_runtime::{
    Store as _,
    files::{ChangeHistory, ChangeRecord, UndoError},
};
use serde_json::{Value, json};

use super::{count, print_record, report_store_error};
#[cfg(feature = "packages")]
use crate::packages;
use crate::{
    ExitStatus,
    arguments::Global,
    context::{self, TargetStore, shell_quote},
    host,
    printer::Printer,
    safe, trust,
};

/// The number of changes elsewhere that are named.
const SHOWN: usize = 5;
/// The note that changes by scripts and commands are not recorded.
const NOT_RECORDED: &str = "changes by scripts and commands are not recorded";

/// Undo the last change: a file written by a tool, `check --fix` or `migrate`, or a skill that was installed, updated
/// or removed
///
/// A file gets its previous content back, or is removed if it was new; a file that has changed since is left alone.
/// Without an argument, only files of this project are restored: those in the repository of the working directory,
/// or below the directory; a note mentions newer changes elsewhere. Everything that one `check --fix` or
/// `migrate` wrote is undone as a group. The last 200 files and the last 50 removed skills are kept. Of files written by MCP servers,
/// only those that agents, editors or git act on are kept. Files written by scripts (`run --write`) and effects of
/// commands cannot be undone.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Undo the last change of this file or skill, the change or group with this ID, or the removal of this skill
    #[arg(value_name = "FILE|ID|NAME", conflicts_with = "list")]
    name: Option<String>,
    /// Skip files that have changed since, and undo the last change or group that can be undone
    #[arg(long, conflicts_with_all = ["name", "list"])]
    skip: bool,
    /// List the changes that can be undone, newest first
    #[arg(long)]
    list: bool,
}

/// A change that can be undone.
enum Change {
    File(ChangeRecord),
    /// A skill was removed from a directory.
    Skill {
        time: u64,
        name: String,
        directory: PathBuf,
    },
    /// Skills were installed, updated or removed.
    #[cfg(feature = "packages")]
    Package(packages::PackageChange),
}

impl Change {
    fn time(&self) -> u64 {
        match self {
            Self::File(record) => record.time,
            Self::Skill { time, .. } => *time,
            #[cfg(feature = "packages")]
            Self::Package(change) => change.time(),
        }
    }

    fn file(&self) -> Option<&ChangeRecord> {
        match self {
            Self::File(record) => Some(record),
            Self::Skill { .. } => None,
            #[cfg(feature = "packages")]
            Self::Package(_) => None,
        }
    }

    /// Returns its group.
    fn group(&self) -> Option<&str> {
        self.file()?.group.as_deref()
    }

    /// Returns the id by which `prowess undo` reverts it, with all of its group.
    fn id(&self) -> String {
        match self {
            Self::File(record) => record.group.clone().unwrap_or_else(|| record.id()),
            Self::Skill { name, .. } => shell_quote(name),
            #[cfg(feature = "packages")]
            Self::Package(change) => change.id().to_owned(),
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let mut global = global.clone();
    // The settings may be the very thing to be undone.
    if let Err(error) = context::config(&global) {
        global.ignores_project_file = true;
        context::config(&global)?;
        printer.warning(&format!("the settings of the project are ignored: {error:#}"));
    }
    let global = &global;
    let target = context::store_of_removed_skill(args.name.as_deref(), global, printer)?;
    let history = host::history();
    let mut changes: Vec<Change> = Vec::new();
    match history.as_ref().map_or_else(|| Ok(Vec::new()), ChangeHistory::list) {
        Ok(records) => changes.extend(records.into_iter().map(Change::File)),
        Err(error) => printer.warning(&format!("the history of changes cannot be read: {error}")),
    }
    let removed = match target.store.removed() {
        Ok(removed) => removed,
        Err(error) => return Ok(report_store_error(error, printer)),
    };
    let directory = absolute(target.store.path());
    changes.extend(removed.into_iter().map(|(time, name)| Change::Skill {
        time,
        name,
        directory: directory.clone(),
    }));
    #[cfg(feature = "packages")]
    changes.extend(packages::package_changes(global).into_iter().map(Change::Package));
    changes.sort_by_key(|it| std::cmp::Reverse(it.time()));
    if args.list {
        return list(&changes, printer);
    }
    let project = trust::project_of(global.cwd.as_deref().unwrap_or(Path::new(".")));
    // A name means a skill in one of the searched directories.
    let searched =
        context::searched_directories(&context::config(global)?, global).into_iter().map(|it| it.0);
    let skills: Vec<PathBuf> = searched.chain([project.clone()]).collect();
    if args.name.is_none() && is_in_any(&directory, &skills) {
        changes.extend(removals_elsewhere(&skills));
        changes.sort_by_key(|it| std::cmp::Reverse(it.time()));
    }
    let (here, elsewhere): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(|it| match it {
        Change::File(record) => record.path.starts_with(&project),
        Change::Skill { directory, .. } => is_in_any(directory, &skills),
        #[cfg(feature = "packages")]
        Change::Package(change) => !change.is_global(),
    });
    let mut remaining = here.iter().copied();
    let change = match &args.name {
        None if args.skip => remaining.find(|it| can_undo(it, history.as_ref())),
        None => remaining.next(),
        Some(name) => find_named(name, &skills, &changes),
    };
    let renaming =
        args.name.as_deref().map(|it| find_renaming(it, &skills, &changes)).unwrap_or_default();
    let time = change.map_or(u64::MAX, Change::time);
    let newer = here.iter().filter(|it| it.time() > time).filter_map(|it| it.file());
    let mut skipped = SkippedFiles(args.skip.then(|| newer.collect()));
    let file = change.and_then(Change::file);
    let group =
        file.map(|it| changes_of_command(it, args.name.as_deref(), &changes)).unwrap_or_default();
    let status = match (change, &history) {
        (_, Some(history))
            if renaming.first().is_some_and(|it: &&ChangeRecord| {
                change.is_none_or(|change| change.time() <= it.time)
            }) =>
        {
            match &*renaming {
                [record] => restore_file(history, record, None, &skipped, printer),
                records => restore_files(history, records, &mut skipped, printer),
            }
        }
        // A file that cannot be undone yet may be once its folder is renamed back.
        (Some(Change::File(_)), Some(history)) if group.len() > 1 => {
            restore_files(history, &group, &mut skipped, printer)
        }
        (Some(Change::File(record)), Some(history)) => {
            let next = remaining.find(|it| args.name.is_none() && can_undo(it, Some(history)));
            restore_file(history, record, next, &skipped, printer)
        }
        #[cfg(feature = "packages")]
        (Some(Change::Package(change)), _) => packages::undo(change, global, printer),
        (None, _) if args.name.is_none() => {
            return report_nothing(&elsewhere, !here.is_empty(), &project, printer);
        }
        // A folder may have another name than its skill.
        _ => restore_skill(&target, args.name.as_deref(), printer),
    }?;
    skipped.note(printer);
    if args.name.is_none() {
        let newer = elsewhere.into_iter().filter(|it| it.time() > time);
        note_elsewhere(&newer.collect::<Vec<_>>(), change.and_then(Change::group), printer);
    }
    Ok(status)
}

fn can_undo(change: &Change, history: Option<&ChangeHistory>) -> bool {
    match (change, history) {
        (Change::File(record), Some(history)) => history.can_undo(record),
        _ => true,
    }
}

/// The files that `--skip` leaves as they are; `None` without it.
struct SkippedFiles<'c>(Option<Vec<&'c ChangeRecord>>);

impl SkippedFiles<'_> {
    /// Returns the files, each once.
    fn paths(&self) -> Vec<&Path> {
        let mut paths: Vec<&Path> = Vec::new();
        for record in self.0.iter().flatten() {
            if !paths.contains(&&*record.path) {
                paths.push(&record.path);
            }
        }
        paths
    }

    /// Adds the files to a JSON document.
    fn add_to(&self, mut document: Value) -> Value {
        if self.0.is_some() {
            document["skipped"] = json!(self.paths());
        }
        document
    }

    fn note(&self, printer: &mut Printer) {
        let paths = self.paths();
        if paths.is_empty() {
            return;
        }
        let named = paths.iter().take(SHOWN).map(|it| format!("`{}`", it.display()));
        let more = paths.len().saturating_sub(SHOWN);
        let named: Vec<_> = named.chain((more > 0).then(|| format!("and {more} more"))).collect();
        let (files, have) =
            (count(paths.len(), "file"), if paths.len() == 1 { "has" } else { "have" });
        printer.note(&format!("skipped {files} that {have} changed since: {}", named.join(", ")));
    }
}

/// Returns the latest removals of skills from directories outside these.
fn removals_elsewhere(directories: &[PathBuf]) -> Vec<Change> {
    let Some(store) = context::last_removal_store(|it| !is_in_any(it, directories)) else {
        return Vec::new();
    };
    let directory = store.path().to_owned();
    let removed = store.removed().unwrap_or_default().into_iter();
    removed.map(|(time, name)| Change::Skill { time, name, directory: directory.clone() }).collect()
}

/// Notes the changes outside the project that are newer than the undone one, the newest first,
/// unless they were undone with it.
fn note_elsewhere(newer: &[&Change], undone: Option<&str>, printer: &mut Printer) {
    let mut groups: Vec<&str> = undone.into_iter().collect();
    let newer: Vec<&Change> = newer
        .iter()
        .copied()
        .filter(|it| match it.group() {
            Some(group) if groups.contains(&group) => false,
            Some(group) => {
                groups.push(group);
                true
            }
            None => true,
        })
        .collect();
    let Some(last) = newer.first() else { return };
    let changes = match newer.len() {
        1 => "a newer change is outside this project".to_owned(),
        many => format!("{many} newer changes are outside this project, the last one"),
    };
    let undo = format!("`prowess undo {}`", last.id());
    printer.note(&format!("{changes}: {}; {undo} undoes it", describe_change(last)));
}

/// Returns the changes of the same command that are undone with this one: all if no single file is
/// named, and those of the skill with this name if it was created.
fn changes_of_command<'a>(
    record: &ChangeRecord,
    name: Option<&str>,
    changes: &'a [Change],
) -> Vec<&'a ChangeRecord> {
    let is_whole = name.is_none() || name == record.group.as_deref();
    let is_new = record.size.is_none() && record.renamed_from.is_none();
    let folder = record.path.parent().filter(|it: &&Path| {
        is_new && record.path.ends_with(SKILL_FILE) && it.file_name() == name.map(OsStr::new)
    });
    let files = changes.iter().filter_map(Change::file);
    files
        .filter(|it: &&ChangeRecord| it.group.is_some() && it.group == record.group)
        .filter(|it| is_whole || folder.is_some_and(|folder| it.path.starts_with(folder)))
        .collect()
}

/// Returns the removal of the skill of a name, otherwise the last change of a file, the one of an
/// id, the last of a command, or that of the skill in a folder of this name.
fn find_named<'a>(name: &str, skills: &[PathBuf], changes: &'a [Change]) -> Option<&'a Change> {
    let (path, document) = (absolute(name), Path::new(name).join(SKILL_FILE));
    changes
        .iter()
        .find(|it| match it {
            Change::Skill { name: own, .. } => own == name,
            #[cfg(feature = "packages")]
            Change::Package(change) => change.is_about(name),
            Change::File(_) => false,
        })
        .or_else(|| find_file(changes, |it| it.path == path))
        .or_else(|| find_file(changes, |it| it.id() == name))
        .or_else(|| find_file(changes, |it| it.group.as_deref() == Some(name)))
        .or_else(|| {
            // A skill that is gone is restored instead.
            find_file(changes, |ChangeRecord { path, .. }| {
                path.ends_with(&document) && path.exists() && is_in_any(path, skills)
            })
        })
}

fn find_file(changes: &[Change], is_meant: impl Fn(&ChangeRecord) -> bool) -> Option<&Change> {
    changes.iter().find(|it| it.file().is_some_and(&is_meant))
}

/// Returns the last renaming of this path, a path in it, or the skill of this name, with the other
/// changes of the same command there, the newest first. Both the old and the new name match.
fn find_renaming<'a>(
    name: &str,
    skills: &[PathBuf],
    changes: &'a [Change],
) -> Vec<&'a ChangeRecord> {
    let (file, name) = (absolute(name), Some(OsStr::new(name)));
    let files = changes.iter().filter_map(Change::file);
    let renaming = files.clone().find_map(|it| {
        let before = it.renamed_from.as_deref()?;
        let is_skill = it.path.is_dir() && is_in_any(&it.path, skills);
        [&*it.path, before]
            .iter()
            .any(|path| file.starts_with(path) || (is_skill && path.file_name() == name))
            .then_some((it, before))
    });
    let Some((renaming, before)) = renaming else { return Vec::new() };
    files
        .filter(|it| {
            let is_with_it = it.group.is_some() && it.group == renaming.group;
            it.time == renaming.time || (is_with_it && it.path.starts_with(before))
        })
        .collect()
}

fn is_in_any(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|it| path.starts_with(it))
}

/// Reports that nothing of this project can be undone, and what can elsewhere.
fn report_nothing(
    elsewhere: &[&Change],
    is_any_here: bool,
    project: &Path,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let project = project.display();
    match (is_any_here, elsewhere.is_empty()) {
        (true, true) => printer.error_text("every file that could be undone has changed since"),
        (true, false) => printer.error_text(&format!(
            "every file that could be undone in `{project}` has changed since"
        )),
        (false, true) => printer.error_text("there is nothing to undo"),
        (false, false) => printer.error_text(&format!("there is nothing to undo in `{project}`")),
    }
    if elsewhere.is_empty() {
        let hint =
            if is_any_here { "`prowess undo --list` lists the changes" } else { NOT_RECORDED };
        printer.hint(hint);
        return Ok(ExitStatus::Failure);
    }
    printer.note(&format!("{} elsewhere", count(elsewhere.len(), "change")));
    for change in elsewhere.iter().take(SHOWN) {
        printer.dimmed_note(&format!("  {}", change_line(change)));
    }
    let by = match elsewhere.iter().take(SHOWN).any(|it| it.file().is_none()) {
        true => "`prowess undo ID` or, of a skill, `prowess undo NAME`",
        false => "`prowess undo ID`",
    };
    printer.hint(&format!("{by} undoes one of them, `prowess undo --list` lists all"));
    Ok(ExitStatus::Failure)
}

fn list(changes: &[Change], printer: &mut Printer) -> Result<ExitStatus> {
    if printer.json {
        let changes: Vec<_> = changes
            .iter()
            .map(|it| match it {
                Change::File(
                    record @ ChangeRecord { when, path, renamed_from: Some(from), .. },
                ) => json!({
                    "id": record.id(), "group": record.group, "change": "rename", "path": path,
                    "from": from, "when": when,
                }),
                Change::File(record @ ChangeRecord { when, path, size, .. }) => json!({
                    "id": record.id(),
                    "group": record.group,
                    "change": if size.is_some() { "overwrite" } else { "create" },
                    "path": path,
                    "when": when,
                    "previous_size": size,
                }),
                Change::Skill { name, .. } => json!({ "change": "remove", "skill": name }),
                #[cfg(feature = "packages")]
                Change::Package(change) => change.json(),
            })
            .collect();
        printer.document(&json!({ "changes": changes }))?;
        return Ok(ExitStatus::Success);
    }
    for change in changes {
        printer.line(change_line(change))?;
    }
    if changes.iter().any(|it| it.group().is_some()) {
        printer.flush()?;
        printer.note("`prowess undo GROUP` undoes all changes of a group");
    }
    if changes.is_empty() {
        printer.note(&format!("there is nothing to undo; {NOT_RECORDED}"));
    }
    Ok(ExitStatus::Success)
}

/// Formats a change in one line, the id first and the id of its group last.
fn change_line(change: &Change) -> String {
    let summary = describe_change(change);
    match change {
        Change::File(record) => {
            let group = record.group.as_ref().map(|it| format!("  [group {it}]"));
            format!("{}  {}  {summary}{}", record.id(), record.when, group.unwrap_or_default())
        }
        Change::Skill { .. } => format!("{:8}  {:20}  {summary}", "", ""),
        #[cfg(feature = "packages")]
        Change::Package(change) => format!("{:8}  {:20}  {summary}", change.id(), change.when()),
    }
}

/// Describes a change and its place.
fn describe_change(change: &Change) -> String {
    let text = match change {
        Change::File(ChangeRecord { path, renamed_from: Some(from), .. }) => {
            format!("renamed {} to {}", from.display(), path.display())
        }
        Change::File(ChangeRecord { path, size: Some(size), .. }) => {
            format!("overwrote {} ({size} bytes before)", path.display())
        }
        Change::File(ChangeRecord { path, .. }) => format!("created {}", path.display()),
        Change::Skill { name, directory, .. } => {
            format!("removed the skill {name} from {}", directory.display())
        }
        #[cfg(feature = "packages")]
        Change::Package(change) => change.describe(),
    };
    safe::line(&text).into_owned()
}

/// Restores the files of one command that have not changed since.
fn restore_files<'c>(
    history: &ChangeHistory,
    records: &[&'c ChangeRecord],
    skipped: &mut SkippedFiles<'c>,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let (mut restored, mut has_failed, mut saved_in) = (Vec::new(), false, None);
    for record in records {
        match (history.undo(record), &mut skipped.0) {
            (Ok(removed), _) => {
                restored.push(*record);
                saved_in =
                    removed.as_deref().and_then(Path::parent).map(Path::to_owned).or(saved_in);
            }
            (Err(error), Some(skipped)) if is_changed(&error) => skipped.push(record),
            (Err(error), _) => {
                printer.error_text(&format!("{:#}", anyhow::Error::from(error)));
                has_failed = true;
            }
        }
    }
    if printer.json {
        let changes: Vec<_> = restored.iter().map(|it| restored_json(it)).collect();
        printer.document(&skipped.add_to(json!({ "changes": changes })))?;
    } else {
        for record in &restored {
            let path = record.renamed_from.as_ref().unwrap_or(&record.path);
            printer.dimmed_note(&format!("  {}", path.display()));
        }
        if !restored.is_empty() {
            printer.note(&describe_restored(&restored));
        }
        if let Some(directory) = saved_in.filter(|_| !printer.quiet) {
            let directory = directory.display();
            printer.hint(&format!("the contents of removed files are in `{directory}`"));
        }
    }
    if !has_failed {
        return Ok(ExitStatus::Success);
    }
    printer.hint("`prowess undo --list` lists what was not undone");
    Ok(ExitStatus::Failure)
}

/// Describes what was done to the files of one command.
fn describe_restored(records: &[&ChangeRecord]) -> String {
    let are_new = records.iter().all(|it| it.size.is_none() && it.renamed_from.is_none());
    let (files, is_one) = (count(records.len(), "file"), records.len() == 1);
    match (are_new, is_one) {
        (true, true) => format!("{files} is removed: it was new"),
        (true, false) => format!("{files} are removed: they were new"),
        (false, true) => format!("{files} is restored"),
        (false, false) => format!("{files} are restored"),
    }
}

/// Returns whether a file has changed since.
fn is_changed(error: &UndoError) -> bool {
    matches!(error, UndoError::Changed { .. } | UndoError::Moved { .. } | UndoError::Taken { .. })
}

/// Returns the result for a file as JSON.
fn restored_json(record: &ChangeRecord) -> Value {
    if let Some(before) = &record.renamed_from {
        return json!({ "path": before, "change": "renamed" });
    }
    let change = if record.size.is_some() { "restored" } else { "removed" };
    json!({ "path": record.path, "change": change })
}

/// Restores a file. If that fails, names what else can be undone.
fn restore_file(
    history: &ChangeHistory,
    record: &ChangeRecord,
    next: Option<&Change>,
    skipped: &SkippedFiles<'_>,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let path = record.path.display().to_string();
    let removed = match history.undo(record) {
        Ok(removed) => removed,
        Err(error) => return Ok(report_failure(error, next, printer)),
    };
    if printer.json {
        printer.document(&skipped.add_to(restored_json(record)))?;
        return Ok(ExitStatus::Success);
    }
    match record.size {
        _ if let Some(before) = &record.renamed_from => {
            printer.note(&format!("`{path}` is `{}` again", before.display()));
        }
        Some(_) => printer.note(&format!("`{path}` is restored")),
        None => {
            printer.note(&format!("`{path}` is removed: it was new"));
            if let Some(kept) = removed.filter(|_| !printer.quiet) {
                printer.hint(&format!("its content is in `{}`", kept.display()));
            }
        }
    }
    Ok(ExitStatus::Success)
}

/// Reports why a change could not be undone, and what else can be.
fn report_failure(error: UndoError, next: Option<&Change>, printer: &mut Printer) -> ExitStatus {
    let kept = match &error {
        UndoError::Changed { kept, .. } | UndoError::Moved { kept, .. } => kept.clone(),
        _ => None,
    };
    printer.error_text(&format!("{:#}", anyhow::Error::from(error)));
    if let Some(kept) = kept {
        printer.hint(&format!("its previous content is in `{}`", kept.display()));
    }
    match next {
        Some(next) => printer.hint(&format!(
            "`prowess undo --skip` skips it, and undoes {}: {}",
            if next.group().is_some() { "what belongs to this change" } else { "this change" },
            change_line(next).trim_start()
        )),
        None => printer.hint("`prowess undo --list` lists the other changes"),
    }
    ExitStatus::Failure
}

fn restore_skill(
    target: &TargetStore,
    name: Option<&str>,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let name = match target.store.undo(name) {
        Ok(name) => name,
        Err(error) => return Ok(report_store_error(error, printer)),
    };
    match target.store.get(&name) {
        Ok(entry) => print_record(&entry, target, printer)?,
        // The removed folder was not a skill.
        Err(error) => printer.warning(&error.to_string()),
    }
    printer.note(&format!("`{name}` is restored in `{}`", target.path.display()));
    Ok(ExitStatus::Success)
}

/// Returns a path as the history has it: with links resolved.
fn absolute(name: impl AsRef<Path>) -> PathBuf {
    let name = name.as_ref();
    let path = std::path::absolute(name).unwrap_or_else(|_| name.into());
    // A renamed folder does not exist any more.
    let mut above = path.ancestors().skip(1);
    let real =
        above.find_map(|it| Some(prowess::real_path(it).ok()?.join(path.strip_prefix(it).ok()?)));
    real.unwrap_or(path)
}
