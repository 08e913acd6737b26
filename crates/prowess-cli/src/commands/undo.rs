use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess_runtime::{ChangeHistory, ChangeRecord, Store as _, UndoError};
use serde_json::json;

use super::{count, refused, show_entry};
use crate::{
    ExitStatus,
    arguments::Global,
    context::{self, TargetStore},
    host,
    printer::Printer,
    safe, trust,
};

/// How many changes elsewhere are named.
const SHOWN: usize = 5;
/// What nobody should look for here.
const NOT_KEPT: &str = "what scripts and commands write is not kept";

/// Undo the last change: a file that a tool or `check --fix` wrote, or a skill that was removed
///
/// A file gets the content back that it had before, or is removed if it was new; one that has changed
/// since is left alone. Without an argument only files of this project are undone: those in the repository
/// of the working directory, or below it; all that one `check --fix` wrote is undone together. The last 200 files and
/// the last 50 removed skills are kept. Of what servers write, the files are kept that agents, editors or git act on. What
/// scripts write (`run --write`) and what commands do is not kept, and cannot be undone.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Undo the last change of this file or skill, the change or `check --fix` of this id, or the removal of this skill
    #[arg(value_name = "FILE|ID|NAME", conflicts_with = "list")]
    name: Option<String>,
    /// Pass over files that have changed since, and undo the last change that can be undone
    #[arg(long, conflicts_with_all = ["name", "list"])]
    skip: bool,
    /// List the changes that can be undone, the last one first
    #[arg(long)]
    list: bool,
}

/// A change that can be undone.
enum Change {
    File(ChangeRecord),
    /// The skill of this name was removed at this time.
    Skill(u64, String),
}

impl Change {
    fn time(&self) -> u64 {
        match self {
            Self::File(record) => record.time,
            Self::Skill(time, _) => *time,
        }
    }

    fn file(&self) -> Option<&ChangeRecord> {
        match self {
            Self::File(record) => Some(record),
            Self::Skill(..) => None,
        }
    }
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let shelf = context::shelf_of_removed(args.name.as_deref(), global, printer)?;
    let history = host::history();
    let mut changes: Vec<Change> = Vec::new();
    match history.as_ref().map_or_else(|| Ok(Vec::new()), ChangeHistory::list) {
        Ok(records) => changes.extend(records.into_iter().map(Change::File)),
        Err(error) => printer.warning(&format!("the history of changes cannot be read: {error}")),
    }
    let removed = match shelf.store.removed() {
        Ok(removed) => removed,
        Err(error) => return Ok(refused(error, printer)),
    };
    changes.extend(removed.into_iter().map(|(time, name)| Change::Skill(time, name)));
    changes.sort_by_key(|it| std::cmp::Reverse(it.time()));
    if args.list {
        return list(&changes, printer);
    }
    let project = trust::project_of(global.cwd.as_deref().unwrap_or(Path::new(".")));
    // A name means a skill that is found here.
    let searched = context::searched(&context::config(global)?, global).into_iter().map(|it| it.0);
    let skills: Vec<PathBuf> = searched.chain([project.clone()]).collect();
    let is_here = |it: &&Change| match it {
        Change::File(record) => record.path.starts_with(&project),
        Change::Skill(..) => true,
    };
    let can_undo = |it: &&Change| match (it, &history) {
        (Change::File(record), Some(history)) => history.can_undo(record),
        _ => true,
    };
    let mut here = changes.iter().filter(is_here);
    let change = match &args.name {
        None if args.skip => here.find(can_undo),
        None => here.next(),
        Some(name) => named(name, &skills, &changes),
    };
    let renaming =
        args.name.as_deref().map(|it| of_renaming(it, &skills, &changes)).unwrap_or_default();
    let is_last = |it: &&ChangeRecord| change.is_none_or(|change| change.time() <= it.time);
    match (change, &history) {
        (_, Some(history)) if renaming.first().is_some_and(is_last) => match &*renaming {
            [record] => restore(history, record, None, printer),
            records => restore_all(history, records, printer),
        },
        (Some(Change::File(record)), Some(history))
            if is_whole(args.name.as_deref(), record) && is_of_many(record, &changes) =>
        {
            let is_of_it = |it: &&ChangeRecord| it.group == record.group;
            let files = changes.iter().filter_map(Change::file);
            let is_meant = |it: &&ChangeRecord| !args.skip || history.can_undo(it);
            let group: Vec<_> = files.filter(is_of_it).filter(is_meant).collect();
            restore_all(history, &group, printer)
        }
        (Some(Change::File(record)), Some(history)) => {
            let next = here.find(can_undo).filter(|_| args.name.is_none());
            restore(history, record, next, printer)
        }
        (None, _) if args.name.is_none() => nothing(&changes, &project, printer),
        // A folder may be called otherwise than its skill.
        _ => bring_back(&shelf, args.name.as_deref(), printer),
    }
}

/// Whether all that one command wrote is meant, and not one file of it.
fn is_whole(name: Option<&str>, record: &ChangeRecord) -> bool {
    name.is_none() || name == record.group.as_deref()
}

/// Whether one command wrote this file and others.
fn is_of_many(record: &ChangeRecord, changes: &[Change]) -> bool {
    let is_of_it = |it: &&Change| matches!(it, Change::File(it) if it.group == record.group);
    record.group.is_some() && changes.iter().filter(is_of_it).count() > 1
}

/// The removal of the skill of a name, else the last change of a file, the one of an id, the last of a command, or
/// that of the skill in a folder of this name.
fn named<'a>(name: &str, skills: &[PathBuf], changes: &'a [Change]) -> Option<&'a Change> {
    let file = absolute(name);
    let is_skill = |it: &&Change| matches!(it, Change::Skill(_, own) if own == name);
    let is_file = |it: &&Change| matches!(it, Change::File(own) if own.path == file);
    let is_it = |it: &&Change| matches!(it, Change::File(own) if own.id() == name);
    let is_of_it =
        |it: &&Change| matches!(it, Change::File(own) if own.group.as_deref() == Some(name));
    // A skill that is gone is brought back instead.
    let document = Path::new(name).join("SKILL.md");
    let is_known = |it: &Path| it.ends_with(&document) && it.exists() && lies_in_any(it, skills);
    let is_its_file = |it: &&Change| matches!(it, Change::File(own) if is_known(&own.path));
    let mut ways: [&dyn Fn(&&Change) -> bool; 5] =
        [&is_skill, &is_file, &is_it, &is_of_it, &is_its_file];
    ways.iter_mut().find_map(|is_meant| changes.iter().find(is_meant))
}

/// The last renaming of what has this path or lies in it, or of the skill of this name, with what the same command
/// wrote there, the last one first. What it is called now is as good as what it was called before.
fn of_renaming<'a>(name: &str, skills: &[PathBuf], changes: &'a [Change]) -> Vec<&'a ChangeRecord> {
    let (file, name) = (absolute(name), Some(OsStr::new(name)));
    let files = || changes.iter().filter_map(Change::file);
    let renaming = files().find_map(|it| {
        let before = it.renamed_from.as_deref()?;
        let is_skill = it.path.is_dir() && lies_in_any(&it.path, skills);
        let is_meant =
            |path: &Path| file.starts_with(path) || (is_skill && path.file_name() == name);
        (is_meant(&it.path) || is_meant(before)).then_some((it, before))
    });
    let Some((renaming, before)) = renaming else { return Vec::new() };
    let is_of_it = |it: &&ChangeRecord| {
        let is_with_it = it.group.is_some() && it.group == renaming.group;
        it.time == renaming.time || (is_with_it && it.path.starts_with(before))
    };
    files().filter(is_of_it).collect()
}

fn lies_in_any(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|it| path.starts_with(it))
}

/// Says that nothing of this project can be undone, and what can elsewhere.
fn nothing(changes: &[Change], project: &Path, printer: &mut Printer) -> Result<ExitStatus> {
    if changes.is_empty() {
        printer.fault("there is nothing to undo");
        printer.hint(NOT_KEPT);
        return Ok(ExitStatus::Failure);
    }
    let is_elsewhere = |it: &&Change| match it {
        Change::File(record) => !record.path.starts_with(project),
        Change::Skill(..) => false,
    };
    let elsewhere: Vec<&Change> = changes.iter().filter(is_elsewhere).collect();
    if elsewhere.is_empty() {
        printer.fault("every file that could be undone has changed since");
        printer.hint("`prowess undo --list` lists the changes");
        return Ok(ExitStatus::Failure);
    }
    printer.fault(&format!("there is nothing to undo in `{}`", project.display()));
    printer.note(&format!("{} elsewhere", count(elsewhere.len(), "change")));
    elsewhere.iter().take(SHOWN).for_each(|it| printer.told(&format!("  {}", line(it))));
    printer.hint("`prowess undo ID` undoes one of them, `prowess undo --list` lists all");
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
                    "id": record.id(), "change": "rename", "path": path, "from": from, "when": when,
                }),
                Change::File(record @ ChangeRecord { when, path, size, .. }) => json!({
                    "id": record.id(),
                    "change": if size.is_some() { "overwrite" } else { "create" },
                    "path": path,
                    "when": when,
                    "previous_size": size,
                }),
                Change::Skill(_, name) => json!({ "change": "remove", "skill": name }),
            })
            .collect();
        printer.document(&json!({ "changes": changes }))?;
        return Ok(ExitStatus::Success);
    }
    for change in changes {
        printer.line(line(change))?;
    }
    if changes.is_empty() {
        printer.note(&format!("there is nothing to undo; {NOT_KEPT}"));
    }
    Ok(ExitStatus::Success)
}

/// A change in one line, the id first.
fn line(change: &Change) -> String {
    match change {
        Change::File(record @ ChangeRecord { when, path, size, .. }) => {
            let path = path.display().to_string();
            if let Some(from) = &record.renamed_from {
                let (from, path) = (from.display().to_string(), safe::line(&path));
                return format!("{}  {when}  renamed {} to {path}", record.id(), safe::line(&from));
            }
            let (verb, size) = match size {
                Some(size) => ("overwrote", format!(" ({size} bytes before)")),
                None => ("created", String::new()),
            };
            format!("{}  {when}  {verb} {}{size}", record.id(), safe::line(&path))
        }
        Change::Skill(_, name) => {
            format!("{:8}  {:20}  removed the skill {}", "", "", safe::line(name))
        }
    }
}

/// Restores the files of one command, each as far as it has not changed since.
fn restore_all(
    history: &ChangeHistory,
    records: &[&ChangeRecord],
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let mut restored = Vec::new();
    for record in records {
        match history.undo(record) {
            Ok(()) => restored.push(*record),
            Err(error) => printer.fault(&format!("{:#}", anyhow::Error::from(error))),
        }
    }
    if printer.json {
        let changes: Vec<_> = restored.iter().map(|it| undone(it)).collect();
        printer.document(&json!({ "changes": changes }))?;
    } else {
        for record in &restored {
            let path = record.renamed_from.as_ref().unwrap_or(&record.path);
            printer.told(&format!("  {}", path.display()));
        }
        let (files, are) = (
            count(restored.len(), "file"),
            if restored.len() == 1 { "is as it was" } else { "are as they were" },
        );
        printer.note(&format!("{files} {are} before"));
    }
    if restored.len() == records.len() {
        return Ok(ExitStatus::Success);
    }
    printer.hint("`prowess undo --list` lists what was not undone");
    Ok(ExitStatus::Failure)
}

/// What became of a file, as JSON.
fn undone(record: &ChangeRecord) -> serde_json::Value {
    if let Some(before) = &record.renamed_from {
        return json!({ "path": before, "change": "renamed" });
    }
    let change = if record.size.is_some() { "restored" } else { "removed" };
    json!({ "path": record.path, "change": change })
}

/// Restores a file. Where that cannot be, says what else can be undone.
fn restore(
    history: &ChangeHistory,
    record: &ChangeRecord,
    next: Option<&Change>,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let path = record.path.display().to_string();
    if let Err(error) = history.undo(record) {
        let kept = match &error {
            UndoError::Changed { kept, .. } | UndoError::Moved { kept, .. } => kept.clone(),
            _ => None,
        };
        printer.fault(&format!("{:#}", anyhow::Error::from(error)));
        if let Some(kept) = kept {
            printer.hint(&format!("its previous content is in `{}`", kept.display()));
        }
        match next {
            Some(next) => printer.hint(&format!(
                "`prowess undo --skip` passes over it, to this change: {}",
                line(next).trim_start()
            )),
            None => printer.hint("`prowess undo --list` lists the other changes"),
        }
        return Ok(ExitStatus::Failure);
    }
    if printer.json {
        printer.document(&undone(record))?;
        return Ok(ExitStatus::Success);
    }
    match record.size {
        _ if let Some(before) = &record.renamed_from => {
            printer.note(&format!("`{path}` is `{}` again", before.display()));
        }
        Some(_) => printer.note(&format!("`{path}` is as it was before")),
        None => printer.note(&format!("`{path}` is removed: it was new")),
    }
    Ok(ExitStatus::Success)
}

fn bring_back(
    shelf: &TargetStore,
    name: Option<&str>,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let name = match shelf.store.undo(name) {
        Ok(name) => name,
        Err(error) => return Ok(refused(error, printer)),
    };
    match shelf.store.get(&name) {
        Ok(entry) => show_entry(&entry, shelf, printer)?,
        // It was no skill when it was removed.
        Err(error) => printer.warning(&error.to_string()),
    }
    printer.note(&format!("`{name}` is back in `{}`", shelf.path.display()));
    Ok(ExitStatus::Success)
}

/// A path as the history has it: without links on the way.
fn absolute(name: &str) -> PathBuf {
    let path = std::path::absolute(name).unwrap_or_else(|_| name.into());
    // What was renamed is not there any more.
    let real = |it: &Path| Some((it.canonicalize().ok()?, path.strip_prefix(it).ok()?));
    let real = path.ancestors().skip(1).find_map(real);
    real.map_or_else(|| path.clone(), |(above, rest)| above.join(rest))
}
