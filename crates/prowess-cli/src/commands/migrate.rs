use std::path::{Path, PathBuf};

use anyhow::Result;
use prowess::{Directory, spec::SKILL_FILE};
use prowess_runtime::{FileStore, SkillRecord, Store as _, StoreError};
use serde_json::{Value as Json, json};

use super::count;
use crate::{
    ExitStatus,
    arguments::Global,
    context::{self, TargetStore},
    migrate::{LostItem, MigratedSkill, migrate_all, plugins},
    printer::Printer,
    safe,
};

/// Convert plugins to skills
///
/// Reads plugins of Claude Code (`.claude-plugin/plugin.json`, `marketplace.json`), Agent Plugins 1.0
/// (`plugin.json`), and plugins with a `plugin-manifest.json`. Nothing in a plugin is executed, and existing skills
/// are not changed. Exits 1 if a plugin could not be converted, and 2 if a path does not exist.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Plugins: a manifest, the folder of a plugin or marketplace, or a folder of plugins
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Show which skills would be created, without writing anything
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let shelf = context::shelf_or_here(global, printer)?;
    let limits = context::config(global)?.options().limits;
    let mut made = Vec::new();
    let mut failed = Vec::new();
    let mut is_missing = false;
    // A dry run writes to a temporary store.
    let tried = args.dry_run.then(tempfile::tempdir).transpose()?;
    let tried = tried.as_ref().map(|it| FileStore::open(it.path())).transpose()?;
    for path in &args.paths {
        let path = context::resolve(&Directory::new(path), global);
        is_missing |= path.symlink_metadata().is_err();
        for plugin in plugins(&path) {
            let migrated = match migrate_all(&plugin, &limits) {
                Ok(migrated) => migrated,
                Err(error) => {
                    failed.push((plugin, error.into()));
                    continue;
                }
            };
            for migrated in migrated {
                let added = match &tried {
                    None => shelf.store.add(&migrated.files),
                    Some(tried) => tried.add(&migrated.files).and_then(|it| is_free(it, &shelf)),
                };
                match added {
                    Ok(entry) => made.push((plugin.clone(), entry, migrated)),
                    Err(error) => failed.push((plugin.clone(), error.into())),
                }
            }
        }
    }
    if printer.json {
        let made: Vec<Json> = made.iter().map(|it| made_json(it, &shelf)).collect();
        let failed: Vec<Json> = failed.iter().map(failed_json).collect();
        printer.document(&json!({ "migrated": made, "failed": failed }))?;
    } else {
        for (_, entry, migrated) in &made {
            let path = shelf.document(entry).display().to_string();
            printer.line(safe::line(&path))?;
            printer.flush()?;
            for LostItem { what, why } in &migrated.lost {
                printer.note(&format!("not carried over: {what}: {why}"));
            }
        }
        printer.flush()?;
    }
    for (_, error) in &failed {
        printer.error(error);
    }
    if !printer.json {
        let skills = count(made.len(), "skill");
        printer.note(&match args.dry_run {
            true => format!("{skills} would be created from plugins; nothing was written"),
            false => format!("{skills} created from plugins"),
        });
    }
    Ok(match failed.is_empty() {
        true => ExitStatus::Success,
        false if is_missing => ExitStatus::Error,
        false => ExitStatus::Failure,
    })
}

/// Returns a record that could be added to a store, because no entry has the name of its folder.
fn is_free(entry: SkillRecord, shelf: &TargetStore) -> Result<SkillRecord, StoreError> {
    let folder = entry.folder.as_deref().and_then(Path::file_name).unwrap_or_default();
    let folder = shelf.path.join(folder);
    match folder.symlink_metadata() {
        Ok(_) => Err(StoreError::AlreadyThere { name: entry.manifest.name.to_string(), folder }),
        Err(_) => Ok(entry),
    }
}

fn made_json(
    (plugin, entry, migrated): &(PathBuf, SkillRecord, MigratedSkill),
    shelf: &TargetStore,
) -> Json {
    let manifest = &entry.manifest;
    let lost = migrated.lost.iter().map(|it| json!({ "what": it.what, "why": it.why }));
    let files = migrated.files.keys().filter(|it| *it != SKILL_FILE);
    json!({
        "name": manifest.name,
        "description": manifest.description,
        "type": manifest.kind.as_str(),
        "status": manifest.status().as_str(),
        "path": shelf.document(entry).to_string_lossy(),
        "plugin": plugin.to_string_lossy(),
        "files": files.collect::<Vec<_>>(),
        "lost": lost.collect::<Vec<_>>(),
    })
}

fn failed_json((path, error): &(PathBuf, anyhow::Error)) -> Json {
    let message: Vec<String> = error.chain().map(|it| it.to_string()).collect();
    json!({ "plugin": path.to_string_lossy(), "message": message.join(": ") })
}
