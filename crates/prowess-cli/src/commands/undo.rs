use std::path::PathBuf;

use anyhow::Result;
use prowess_runtime::{ChangeHistory, ChangeRecord, Store as _, UndoError};
use serde_json::json;

use super::{refused, show_entry};
use crate::{
    Status,
    arguments::Global,
    context::{self, Shelf},
    host,
    printer::Printer,
    safe,
};

/// Undo the last change: a file that a tool wrote, or a skill that was removed
///
/// A file gets the content back that it had before, or is removed if it was new; one that has changed
/// since is left alone. The last 200 files and the last 50 removed skills are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Undo the last change of this file, or the removal of this skill
    #[arg(value_name = "FILE|NAME", conflicts_with = "list")]
    name: Option<String>,
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
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Status> {
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
    let change = match &args.name {
        None => changes.first(),
        Some(name) => {
            let is_skill = |it: &&Change| matches!(it, Change::Skill(_, own) if own == name);
            let file = absolute(name);
            let is_file = |it: &&Change| matches!(it, Change::File(own) if own.path == file);
            changes.iter().find(is_skill).or_else(|| changes.iter().find(is_file))
        }
    };
    match (change, history) {
        (Some(Change::File(record)), Some(history)) => restore(&history, record, printer),
        (None, _) if args.name.is_none() => {
            printer.fault("there is nothing to undo");
            Ok(Status::AtFault)
        }
        // A folder may be called otherwise than its skill.
        _ => bring_back(&shelf, args.name.as_deref(), printer),
    }
}

fn list(changes: &[Change], printer: &mut Printer) -> Result<Status> {
    if printer.json {
        let changes: Vec<_> = changes
            .iter()
            .map(|it| match it {
                Change::File(ChangeRecord { when, path, size, .. }) => json!({
                    "change": if size.is_some() { "overwrite" } else { "create" },
                    "path": path,
                    "when": when,
                    "previous_size": size,
                }),
                Change::Skill(_, name) => json!({ "change": "remove", "skill": name }),
            })
            .collect();
        printer.document(&json!({ "changes": changes }))?;
        return Ok(Status::Well);
    }
    for change in changes {
        match change {
            Change::File(ChangeRecord { when, path, size, .. }) => {
                let path = path.display().to_string();
                let (verb, size) = match size {
                    Some(size) => ("overwrote", format!(" ({size} bytes before)")),
                    None => ("created", String::new()),
                };
                printer.line(format_args!("{when}  {verb} {}{size}", safe::line(&path)))?;
            }
            Change::Skill(_, name) => {
                printer.line(format_args!("{:20}  removed the skill {}", "", safe::line(name)))?;
            }
        }
    }
    if changes.is_empty() {
        printer.note("there is nothing to undo");
    }
    Ok(Status::Well)
}

fn restore(
    history: &ChangeHistory,
    record: &ChangeRecord,
    printer: &mut Printer,
) -> Result<Status> {
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
        return Ok(Status::AtFault);
    }
    if printer.json {
        let change = if record.size.is_some() { "restored" } else { "removed" };
        printer.document(&json!({ "path": record.path, "change": change }))?;
        return Ok(Status::Well);
    }
    match record.size {
        Some(_) => printer.note(&format!("`{path}` is as it was before")),
        None => printer.note(&format!("`{path}` is removed: it was new")),
    }
    Ok(Status::Well)
}

fn bring_back(shelf: &Shelf, name: Option<&str>, printer: &mut Printer) -> Result<Status> {
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
    Ok(Status::Well)
}

/// A path as the history has it: without links on the way.
fn absolute(name: &str) -> PathBuf {
    let path = std::path::absolute(name).unwrap_or_else(|_| name.into());
    let parent = path.parent().and_then(|it| it.canonicalize().ok());
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path,
    }
}
