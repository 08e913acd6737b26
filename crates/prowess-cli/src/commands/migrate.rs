use std::{
    env, io,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::{Directory, spec::SKILL_FILE};
use prowess_runtime::{
    FileStore, SkillRecord, Store as _, files::ChangeHistory, store::StoreError,
};
use serde_json::{Value as Json, json};

use super::count;
use crate::{
    ExitStatus,
    arguments::Global,
    context::{self, TargetStore},
    host,
    migrate::{MigratedSkill, migrate_all, plugins},
    printer::Printer,
    safe, trust,
};

/// The most files that are recorded for `undo`; more would displace other changes.
const MOST_RECORDED: usize = 100;

/// A plugin, and a skill that was created from it.
type CreatedSkill = (PathBuf, SkillRecord, MigratedSkill);

/// Convert plugins to skills
///
/// Reads plugins of Claude Code (`.claude-plugin/plugin.json`, `marketplace.json`), Agent Plugins 1.0
/// (`plugin.json`), and plugins with a `plugin-manifest.json`. The skills are written to the directory of `--dir`, by
/// default to the project's client folder or `.agents/skills`; `undo` removes them again. Nothing in a plugin is
/// executed, and existing skills are not changed. Exits 1 if a plugin could not be converted, and 2 if a path does not exist.
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
    let target = context::target_store_or_here(global, printer)?;
    let limits = context::config(global)?.options().limits;
    if !printer.json {
        let would = if args.dry_run { "would be" } else { "are" };
        printer.note(&format!("skills {would} written to `{}`", target.path.display()));
    }
    let new_parents = target.store.path().ancestors().take_while(|it: &&Path| !it.exists()).count();
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
                    None => target.store.add(&migrated.files),
                    Some(tried) => {
                        tried.add(&migrated.files).and_then(|it| check_free(it, &target))
                    }
                };
                match added {
                    Ok(entry) => made.push((plugin.clone(), entry, migrated)),
                    Err(error) => failed.push((plugin.clone(), error.into())),
                }
            }
        }
    }
    let group = if args.dry_run { None } else { record(&made, new_parents) };
    if printer.json {
        let made: Vec<Json> = made.iter().map(|it| created_json(it, &target)).collect();
        let failed: Vec<Json> = failed.iter().map(failed_json).collect();
        printer.document(&json!({ "migrated": made, "failed": failed }))?;
    } else {
        for (_, entry, migrated) in &made {
            let path = target.document(entry).display().to_string();
            printer.line(safe::line(&path))?;
            printer.flush()?;
            migrated.lost.iter().for_each(|it| printer.note(&it.describe()));
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
            false if made.is_empty() => format!("{skills} created from plugins"),
            false => {
                format!(
                    "{skills} created from plugins; {}",
                    describe_removal(&made, group.as_deref())
                )
            }
        });
    }
    Ok(match failed.is_empty() {
        true => ExitStatus::Success,
        false if is_missing => ExitStatus::Error,
        false => ExitStatus::Failure,
    })
}

/// Records the files of new skills for `undo`, all or none, and returns the ID of their group.
fn record(made: &[CreatedSkill], new_parents: usize) -> Option<String> {
    let history = host::history()?.of_one_command();
    if made.iter().map(|it| it.2.files.len()).sum::<usize>() > MOST_RECORDED {
        return None;
    }
    let mut times = Vec::new();
    if record_files(made, new_parents, &history, &mut times).is_err() {
        times.into_iter().for_each(|it| history.forget(it));
        return None;
    }
    history.group().map(str::to_owned)
}

fn record_files(
    made: &[CreatedSkill],
    new_parents: usize,
    history: &ChangeHistory,
    times: &mut Vec<u64>,
) -> io::Result<()> {
    for (_, entry, migrated) in made {
        let folder = prowess::real_path(entry.folder.as_deref().unwrap_or(Path::new("")))?;
        for (path, bytes) in &migrated.files {
            let new_folders = new_parents + Path::new(path).components().count();
            times.push(history.keep_new(&folder.join(path), bytes, new_folders)?);
        }
    }
    Ok(())
}

/// Describes how the new skills are removed again.
fn describe_removal(made: &[CreatedSkill], group: Option<&str>) -> String {
    let it = if made.len() == 1 { "it" } else { "them" };
    let Some(group) = group else {
        return format!("`prowess remove NAME` removes one, `prowess undo` does not remove {it}");
    };
    let project = env::current_dir().map(|it| trust::project_of(&it)).unwrap_or_default();
    let is_here = made.iter().all(|(_, entry, _): &CreatedSkill| {
        let folder = entry.folder.as_deref().and_then(|it| prowess::real_path(it).ok());
        folder.is_some_and(|it| it.starts_with(&project))
    });
    match is_here {
        true => format!("`prowess undo` removes {it}"),
        false => format!("`prowess undo {group}` removes {it}"),
    }
}

/// Returns a record that could be added to a store, because no entry has the name of its folder.
fn check_free(entry: SkillRecord, target: &TargetStore) -> Result<SkillRecord, StoreError> {
    let folder = entry.folder.as_deref().and_then(Path::file_name).unwrap_or_default();
    let folder = target.path.join(folder);
    match folder.symlink_metadata() {
        Ok(_) => Err(StoreError::AlreadyThere { name: entry.manifest.name.to_string(), folder }),
        Err(_) => Ok(entry),
    }
}

fn created_json((plugin, entry, migrated): &CreatedSkill, target: &TargetStore) -> Json {
    let manifest = &entry.manifest;
    let lost = migrated.lost.iter().map(|it| json!({ "what": it.what, "why": it.why }));
    let files = migrated.files.keys().filter(|it| *it != SKILL_FILE);
    json!({
        "name": manifest.name,
        "description": manifest.description,
        "type": manifest.kind.as_str(),
        "status": manifest.status().as_str(),
        "path": target.document(entry).to_string_lossy(),
        "plugin": plugin.to_string_lossy(),
        "files": files.collect::<Vec<_>>(),
        "lost": lost.collect::<Vec<_>>(),
    })
}

fn failed_json((path, error): &(PathBuf, anyhow::Error)) -> Json {
    let message: Vec<String> = error.chain().map(|it| it.to_string()).collect();
    json!({ "plugin": path.to_string_lossy(), "message": message.join(": ") })
}
