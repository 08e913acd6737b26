mod fix;
mod place;
pub(super) mod github;
pub(super) mod sarif;

use std::{
    borrow::Cow,
    env,
    path::{Path, PathBuf},
};

use anyhow::Result;
use prowess::{
    CheckError, CheckResult, CheckedScript, Directory, Finding, HERE, Library, Profile, Severity,
    check_directories, did_you_mean, rule,
};
use prowess_cli::settings::Config;
use prowess_shell::lint;
use serde_json::json;

use self::fix::{FixArgs, FixedFile};
use super::{count, finding_json, fold_findings};
use crate::{
    ExitStatus, arguments::Global, cli_error::CliError, context, printer::Printer, snippet, suggest,
};

/// Check skills, and fix what is safe to fix
///
/// Checks skill folders, `SKILL.md` files, folders with skills at any depth, such as a repository, or skills by
/// name. Without arguments, checks the configured directories, or else every directory in which a client would find
/// skills here. Exits 1 if there are errors, and 2 if there is nothing to check.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Skill folders, `SKILL.md` files, folders of skills, or names of skills; a path wins over a name
    paths: Vec<PathBuf>,
    #[command(flatten)]
    fix: FixArgs,
    /// Output format [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people, each with the line that it is about
    Text,
    /// One JSON document, as with `--json`
    Json,
    /// Annotations for GitHub Actions
    Github,
    /// One SARIF 2.1.0 document, for code scanning
    Sarif,
}

impl Format {
    /// Returns the format that was chosen with `--format` or `--json`.
    pub(super) fn chosen(format: Option<Self>, printer: &Printer) -> Result<Self> {
        match (format, printer.json) {
            (Some(_), true) => {
                let fault = CliError::new("`--format` and `--json` cannot be used together");
                Err(fault.hint("`--format json` is the same as `--json`").into())
            }
            (None, true) => Ok(Self::Json),
            (format, false) => Ok(format.unwrap_or(Self::Text)),
        }
    }
}

/// The longest line that is shown with a finding, in bytes.
const MAX_EXCERPT: usize = 8192;

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let format = Format::chosen(args.format, printer)?;
    let profile = Profile::from(global.profile);
    let config = context::config(global)?;
    context::note_ignored_settings(&config, printer);
    let limits = config.options().limits;
    let mut paths = paths(args, global, &config, printer)?;
    if paths.is_empty() {
        let fault = CliError::new("no skills to check in this project or your home directory");
        return Err(fault.hint("name a folder, as in `prowess check PATH`").into());
    }
    let checked =
        printer.with_progress("checking skills", || check_directories(&paths, profile, &limits));
    let mut checked = match checked {
        Err(CheckError::NoSkill { path }) => return Err(no_skill(&path, paths.len()).into()),
        checked => checked?,
    };
    if args.paths.is_empty() && !context::has_directories(&config) {
        let places = context::list_directories(&paths, context::home().as_deref());
        printer.note(&format!("checking {places} (preset `{HERE}`)"));
    }
    let for_people = format == Format::Text && (printer.is_terminal || printer.colored);
    let fixed =
        args.fix.fix.then(|| fix::fix_files(&args.fix, &checked, profile, &limits, for_people));
    if !args.fix.dry_run && fixed.as_ref().is_some_and(|it| !it.is_empty()) {
        for Directory { path, .. } in &mut paths {
            let moved = fixed.iter().flatten().find_map(|it| it.renamed_path(path));
            moved.into_iter().for_each(|it| *path = it);
        }
        // A path that was renamed by way of another path is checked by that one.
        paths.retain(|it| it.path.exists());
        checked = check_directories(&paths, profile, &limits)?;
    }
    add_dangers(&mut checked, profile);
    let failed = checked.findings.iter().any(|it| it.severity == Severity::Error);
    if let Some(fixed) = fixed.as_ref().filter(|_| args.fix.dry_run) {
        fix::remove_fixed(&mut checked.findings, fixed);
    }
    match format {
        Format::Text => {
            if let Some(fixed) = &fixed {
                fix::print_changes(&args.fix, fixed, printer)?;
            }
            print_findings(
                &checked,
                &args.fix,
                true,
                printer,
                |it: &Finding, printer: &Printer| snippet::render(it, printer) + "\n",
            )?;
            fix::note_fixes(&args.fix, &checked, profile, &limits, printer);
        }
        Format::Json => {
            let findings: Vec<_> = checked.findings.iter().map(finding_json).collect();
            let mut document = json!({ "skills": checked.skills, "findings": findings });
            if let Some(fixed) = &fixed {
                document["fixed"] = fixed.iter().map(FixedFile::json).collect();
            }
            printer.document(&document)?;
        }
        Format::Github => {
            let root = env::current_dir()?;
            print_findings(&checked, &args.fix, false, printer, |it, _| {
                github::annotation(it, &root)
            })?;
        }
        Format::Sarif => {
            let root = env::current_dir()?;
            printer.document(&sarif::log(&checked.findings, profile, &root))?;
        }
    }
    let errors = fixed.iter().flatten().filter_map(|it| it.error.as_ref());
    if errors.map(|it| printer.error(it)).count() > 0 {
        printer
            .hint("files that could not be fixed are unchanged; resolve the cause and try again");
        return Ok(ExitStatus::Error);
    }
    Ok(if failed { ExitStatus::Failure } else { ExitStatus::Success })
}

/// Returns the paths to check: those on the command line, otherwise the configured directories,
/// otherwise those that exist here.
fn paths(
    args: &Args,
    global: &Global,
    config: &Config,
    printer: &mut Printer,
) -> Result<Vec<Directory>> {
    let mut paths = Vec::new();
    for path in &args.paths {
        let directory = resolve(Directory::repository(path), global);
        let name = path.to_str().filter(|it| !context::is_path(it));
        paths.push(match name.filter(|_| directory.path.symlink_metadata().is_err()) {
            Some(name) => find_skill(name, &directory.path, config, global, printer)?,
            None => directory,
        });
    }
    if !paths.is_empty() {
        return Ok(paths);
    }
    let directories = context::directories(config, global).into_iter();
    let (there, missing): (Vec<_>, Vec<_>) =
        directories.map(|it| resolve(it, global)).partition(|it| it.path.exists());
    for directory in missing.iter().filter(|it| !it.optional && !there.is_empty()) {
        printer.warning(&format!("`{}` does not exist", directory.path.display()));
    }
    Ok(if there.is_empty() { missing } else { there })
}

fn resolve(directory: Directory, global: &Global) -> Directory {
    Directory { path: context::resolve(&directory, global), ..directory }
}

/// Returns the folder of a skill by name, if there is no such path.
fn find_skill(
    name: &str,
    path: &Path,
    config: &Config,
    global: &Global,
    printer: &mut Printer,
) -> Result<Directory> {
    let library = Library::load(&context::options(config, global))?;
    if let Some(folder) = context::folder_of_skill(&library, name) {
        printer.note(&format!("checking `{name}` in `{}`", folder.display()));
        return Ok(Directory::repository(folder));
    }
    let fault = CliError::new(format!(
        "`{name}` is neither a path nor a skill in the searched directories"
    ));
    let near =
        suggest::path(path).or_else(|| context::nearest_skill(&library, name).map(str::to_owned));
    Err(match near {
        Some(near) => fault.hint(did_you_mean(near)).into(),
        None => fault.hint("`prowess list` lists all skills").into(),
    })
}

/// Returns the error that there is nothing to check.
fn no_skill(path: &Path, paths: usize) -> CliError {
    let more = match paths {
        1 => String::new(),
        _ => format!(" or in {} other places", paths - 1),
    };
    CliError::new(format!("there is no skill in `{}`{more}", path.display()))
        .hint("a skill is a folder with a `SKILL.md`; build output and files ignored by git are searched only if given explicitly")
}

/// Adds the dangers in scripts to the findings, in their place within a file.
fn add_dangers(checked: &mut CheckResult, profile: Profile) {
    let weight = rule("script-dangerous").and_then(|rule| Some((rule, rule.severity(profile)?)));
    let Some((rule, severity)) = weight else { return };
    for CheckedScript { path, line, text, .. } in &checked.scripts {
        let Some(hazard) = lint(text) else { continue };
        let hint = "change the script; it is refused as it is";
        let excerpt =
            text.lines().nth(hazard.line.saturating_sub(1)).filter(|it| it.len() <= MAX_EXCERPT);
        let message = format!("the script {} (`{}`)", hazard.kind.description(), hazard.command);
        let mut finding = Finding::new(rule, severity, path, message, hint);
        finding.line = Some((line + hazard.line).saturating_sub(1));
        finding.excerpt = excerpt.map(Into::into);
        checked.findings.insert(
            checked
                .findings
                .partition_point(|it: &Finding| (&it.path, it.line) <= (path, finding.line)),
            finding,
        );
    }
}

fn print_findings(
    checked: &CheckResult,
    args: &FixArgs,
    is_folded: bool,
    printer: &mut Printer,
    render: impl Fn(&Finding, &Printer) -> String,
) -> Result<()> {
    let least = if printer.verbose { Severity::Info } else { Severity::Warning };
    let shown = checked.findings.iter().filter(|it| it.severity >= least);
    let all: Vec<Cow<'_, Finding>> = match is_folded {
        true => {
            let folders = checked.files.iter().filter_map(|it| it.path.parent());
            fold_findings(shown.clone(), folders)
        }
        false => shown.clone().map(Cow::Borrowed).collect(),
    };
    for finding in &all {
        printer.line(render(finding, printer))?;
    }
    printer.flush()?;
    let severities = [Severity::Error, Severity::Warning, Severity::Info];
    let [errors, warnings, infos] = severities
        .map(|severity| checked.findings.iter().filter(|it| it.severity == severity).count());
    let mut words = format!("{} checked: ", count(checked.skills, "skill"));
    words.push_str(&match (errors, warnings) {
        (0, 0) if args.dry_run => "nothing".to_owned(),
        (0, 0) => "no problems found".to_owned(),
        (0, _) => count(warnings, "warning"),
        (_, 0) => count(errors, "error"),
        (_, _) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    });
    if args.dry_run {
        words.push_str(" would remain");
    }
    if infos > 0 && !printer.verbose {
        let (messages, them) = if infos == 1 { ("message", "it") } else { ("messages", "them") };
        words.push_str(&format!("; {infos} info {messages} hidden, `-v` shows {them}"));
    }
    printer.note(&words);
    if let Some(finding) = shown.rev().max_by_key(|it| it.severity) {
        printer
            .note(&format!("`prowess rule {}` explains it, and how to fix it", finding.rule.code));
    }
    Ok(())
}
