//! The commands, one per file.

pub(crate) mod summary;
pub(crate) mod list;
pub(crate) mod check;
#[cfg(feature = "packages")]
pub(crate) mod audit;
pub(crate) mod rule;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod init;
pub(crate) mod lab;
pub(crate) mod show;
pub(crate) mod read;
pub(crate) mod prompt;
#[cfg(feature = "agent")]
pub(crate) mod ask;
#[cfg(feature = "agent")]
pub(crate) mod chat;
#[cfg(feature = "agent")]
pub(crate) mod sessions;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod catalog;
pub(crate) mod new;
pub(crate) mod create;
pub(crate) mod enable;
pub(crate) mod disable;
pub(crate) mod remove;
pub(crate) mod undo;
pub(crate) mod migrate;
#[cfg(feature = "packages")]
pub(crate) mod add;
#[cfg(feature = "packages")]
pub(crate) mod sync;
#[cfg(feature = "packages")]
pub(crate) mod outdated;
#[cfg(feature = "packages")]
pub(crate) mod update;
#[cfg(feature = "packages")]
pub(crate) mod verify;
#[cfg(feature = "packages")]
pub(crate) mod search;
#[cfg(feature = "packages")]
pub(crate) mod use_skill;
#[cfg(feature = "packages")]
pub(crate) mod import;
#[cfg(feature = "packages")]
pub(crate) mod export;
#[cfg(feature = "packages")]
pub(crate) mod publish;
#[cfg(feature = "packages")]
pub(crate) mod packages_cache;
pub(crate) mod config;
pub(crate) mod run;
#[cfg(feature = "http")]
pub(crate) mod prepare;
pub(crate) mod tool;
pub(crate) mod tools;
#[cfg(feature = "mcp")]
pub(crate) mod servers;
#[cfg(feature = "agent")]
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod approvals;
pub(crate) mod sandbox;
pub(crate) mod completions;
pub(crate) mod man;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
};

use anyhow::Result;
use prowess::{Finding, Library, Manifest, Resource, Skill, spec::SKILL_FILE};
use prowess_runtime::sys::{MetadataExt as _, set_file_mode, with_mode};
use prowess_runtime::{
    Launcher, Outcome, OutcomeStatus, SkillRecord, skill::definition_to_json, store::StoreError,
};
use serde::Serialize;
use serde_json::json;

use crate::{
    ExitStatus,
    arguments::{Arguments, Command, Global},
    context::{self, TargetStore},
    printer::Printer,
    safe,
};

/// Runs the command of the command line.
pub(crate) fn run(
    arguments: &Arguments,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let global = &arguments.global;
    let Some(command) = &arguments.command else { return summary::run(global, printer) };
    match command {
        Command::List(args) => list::run(args, global, printer),
        Command::Check(args) => check::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Audit(args) => audit::run(args, global, printer),
        Command::Rule(args) => rule::run(args, global, printer),
        Command::Doctor(args) => doctor::run(args, global, printer),
        Command::Find(args) => find::run(args, global, printer),
        Command::Lab(args) => lab::run(args, global, printer),
        Command::Show(args) => show::run(args, global, printer),
        Command::Read(args) => read::run(args, global, printer),
        Command::Prompt(args) => prompt::run(args, global, printer),
        #[cfg(feature = "agent")]
        Command::Ask(args) => ask::run(args, global, launcher, printer),
        #[cfg(feature = "agent")]
        Command::Chat(args) => chat::run(args, global, launcher, printer),
        #[cfg(feature = "agent")]
        Command::Sessions(args) => sessions::run(args, printer),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(args, global, launcher, printer),
        Command::Catalog(args) => catalog::run(args, global, printer),
        Command::New(args) => new::run(args, global, printer),
        Command::Create(args) => create::run(args, global, printer),
        Command::Enable(args) => enable::run(args, global, printer),
        Command::Disable(args) => disable::run(args, global, printer),
        Command::Remove(args) => remove::run(args, global, printer),
        Command::Undo(args) => undo::run(args, global, printer),
        Command::Migrate(args) => migrate::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Add(args) => add::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Sync(args) => sync::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Outdated(args) => outdated::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Update(args) => update::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Verify(args) => verify::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Search(args) => search::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Use(args) => use_skill::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Import(args) => import::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Export(args) => export::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Publish(args) => publish::run(args, global, printer),
        #[cfg(feature = "packages")]
        Command::Cache(args) => packages_cache::run(args, global, printer),
        Command::Config(args) => config::run(args, global, printer),
        Command::Init(args) => init::run(args, global, printer),
        Command::Run(args) => run::run(args, global, launcher, printer),
        #[cfg(feature = "http")]
        Command::Prepare(args) => prepare::run(args, global, launcher, printer),
        Command::Tool(args) => tool::run(args, global, launcher, printer),
        Command::Tools(args) => tools::run(args, global, launcher, printer),
        #[cfg(feature = "mcp")]
        Command::Servers(args) => servers::run(args, global, launcher, printer),
        #[cfg(feature = "agent")]
        Command::Trace(args) => trace::run(args, printer),
        Command::Trust(args) => trust::run(args, printer),
        Command::Approvals(args) => approvals::run(args, printer),
        Command::Sandbox(args) => sandbox::run(args, &launcher, printer),
        Command::Completions(args) => completions::run(args, printer),
        Command::Man(args) => man::run(args, printer),
    }
}

/// The JSON form of a finding.
#[derive(Serialize)]
pub(crate) struct FindingJson<'a> {
    path: Cow<'a, str>,
    line: Option<usize>,
    rule: &'a str,
    severity: &'a str,
    message: &'a str,
    hint: &'a str,
}

/// The JSON form of a resource.
#[derive(Serialize)]
struct ResourceJson<'a> {
    path: &'a str,
    kind: &'a str,
    size: u64,
}

pub(crate) fn finding_json(finding: &Finding) -> FindingJson<'_> {
    FindingJson {
        path: finding.path.to_string_lossy(),
        line: finding.line,
        rule: finding.rule.code,
        severity: finding.severity.as_str(),
        message: &finding.message,
        hint: &finding.hint,
    }
}

fn resource_json(resource: &Resource) -> ResourceJson<'_> {
    ResourceJson { path: &resource.path, kind: resource.kind.as_str(), size: resource.size }
}

/// Returns findings in their order, with those of one rule about several files of a skill folded
/// into one that has their number.
fn fold_findings<'f, 'p>(
    findings: impl IntoIterator<Item = &'f Finding>,
    folders: impl IntoIterator<Item = &'p Path>,
) -> Vec<Cow<'f, Finding>> {
    let folders: HashSet<&Path> = folders.into_iter().collect();
    let mut folded: Vec<(Cow<'f, Finding>, usize)> = Vec::new();
    let mut places: HashMap<(&str, &Path), usize> = HashMap::new();
    for finding in findings {
        let is_beside = finding.line.is_none() && !finding.path.ends_with(SKILL_FILE);
        let skill = finding.path.ancestors().skip(1).find(|it| folders.contains(it));
        let place = skill.filter(|_| is_beside).map(|it| (finding.rule.code, it));
        match place.map(|it| *places.entry(it).or_insert(folded.len())) {
            Some(at) if at < folded.len() => folded[at].1 += 1,
            _ => folded.push((Cow::Borrowed(finding), 0)),
        }
    }
    let folded = folded.into_iter().map(|(finding, more)| match more {
        0 => finding,
        _ => {
            let files = count(more, "more file");
            let mut finding = finding.into_owned();
            finding.message = format!(
                "{} (as {} of this skill)",
                finding.message,
                match more {
                    1 => format!("is {files}"),
                    _ => format!("are {files}"),
                }
            );
            Cow::Owned(finding)
        }
    });
    folded.collect()
}

/// Prints a record of a store: all of it as JSON, otherwise its path.
fn print_record(entry: &SkillRecord, target: &TargetStore, printer: &mut Printer) -> Result<()> {
    let (manifest, path) = (&entry.manifest, target.document(entry));
    if !printer.json {
        printer.line(safe::line(&path.to_string_lossy()))?;
        return printer.flush();
    }
    let mut json = json!({
        "name": manifest.name,
        "description": manifest.description,
        "type": manifest.kind.as_str(),
        "status": manifest.status().as_str(),
        "scope": target.scope.as_str(),
        "path": path.to_string_lossy(),
        "tags": manifest.tags,
        "requires_approval": manifest.requires_approval,
        "definition": definition_to_json(&entry.definition),
    });
    if let Some(parameters) = &entry.parameters {
        json["parameters"] = parameters.clone();
    }
    if let Some(source) = &manifest.source {
        json["source"] = json!(source);
    }
    printer.document(&json)
}

/// Reports why a store refused an operation, with a hint.
fn report_store_error(error: StoreError, printer: &mut Printer) -> ExitStatus {
    let (hint, status) =
        (error.hint(), if error.is_fault() { ExitStatus::Failure } else { ExitStatus::Error });
    printer.error(&error.into());
    if let Some(hint) = hint {
        printer.hint(&hint);
    }
    status
}

/// Like [`report_store_error`], for a skill that should be in the store; names its path if it is somewhere
/// else.
fn report_missing_skill(
    mut error: StoreError,
    global: &Global,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let elsewhere = match &mut error {
        StoreError::NoSuchSkill { name, nearest } => {
            let library = context::library(global, printer)?;
            // The skill that is meant may be in another directory than the store.
            if nearest.is_none() && library.get(name).is_none() {
                *nearest = context::nearest_skill(&library, name).map(str::to_owned);
            }
            library.get(name).map(|it| it.folder().parent().unwrap_or(it.folder()).to_owned())
        }
        _ => None,
    };
    let status = report_store_error(error, printer);
    if let Some(directory) = elsewhere {
        let directory = directory.display();
        printer.hint(&format!("it is in `{directory}`; use `--dir {directory}`"));
    }
    Ok(status)
}

/// Warns about the fields of a skill that is about to be executed: they may not mean what their
/// author meant.
fn warn_about_fields(library: &Library, skill: &Skill, printer: &mut Printer) {
    let own = library.findings().iter().filter(|it| *it.path == *skill.origin.path);
    own.filter(|it| it.rule.code == "field-type").for_each(|it| printer.finding(it));
}

/// Returns the outcome for a skill that is disabled.
fn disabled_outcome(manifest: &Manifest) -> Box<Outcome> {
    let (name, status) = (&manifest.name, manifest.status().as_str());
    let message = format!("skill `{name}` is {status}");
    let hint = format!("`prowess enable {name}` enables it");
    Box::new(Outcome::bad(OutcomeStatus::Refused, message).hint(hint))
}

/// The readers of a page.
enum Readers {
    /// The owner alone, because the page contains a conversation.
    #[cfg(feature = "agent")]
    Owner,
    /// Everyone that the user's umask allows.
    Usual,
}

/// Writes a page atomically. A link stays a link, and anything that is not a regular file, such as
/// a pipe, is written to directly.
fn write_page(path: &Path, page: &str, readers: Readers) -> Result<()> {
    let path = prowess::real_path(path).unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(&path).ok();
    if before.as_ref().is_some_and(|it| !it.is_file()) {
        return Ok(OpenOptions::new().write(true).open(&path)?.write_all(page.as_bytes())?);
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let mode = match readers {
        #[cfg(feature = "agent")]
        Readers::Owner => 0o600,
        Readers::Usual => 0o666,
    };
    let mut draft = with_mode(&mut tempfile::Builder::new(), mode)
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    if let Some(before) = before {
        // Readers excluded by the old file stay excluded.
        let mode = draft.as_file().metadata()?.mode() & before.mode() & 0o777;
        set_file_mode(draft.as_file(), mode)?;
    }
    draft.write_all(page.as_bytes())?;
    draft.persist(path)?;
    Ok(())
}

/// Returns a number with its noun, for irregular plurals such as `2 matches`.
pub(crate) fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Returns a number with its noun, such as `2 skills`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
