use std::{
    collections::HashSet,
    env, fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use prowess::{Directory, Finding, Profile, Severity, did_you_mean};
use prowess_packages::{
    AUDIT_RULES, AuditBaseline, AuditError, AuditFinding, AuditLimits, AuditReport, audit_folder,
};
use serde_json::{Value as Json, json};

use super::{
    Readers,
    check::{Format, github, sarif},
    count, rule, write_page,
};
use crate::{
    ExitStatus, arguments::Global, cli_error::CliError, completion, context, printer::Printer,
    safe, snippet, suggest,
};

/// Say what a skill could do to you, with the line and the reason
///
/// Looks for injected instructions, hidden characters, secrets that are sent elsewhere, credentials, dangerous or
/// obfuscated commands, downloads, programs, and what stays behind, in all files of a skill. Audits skill folders,
/// files, folders with skills at any depth, or skills by name; without arguments, the skills that `prowess list`
/// shows. Nothing is run. No audit can prove that a skill is harmless. Exits 1 if there are errors, and 2 if there is
/// nothing to audit.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Skill folders, files, folders of skills, or names of skills; a path wins over a name
    paths: Vec<PathBuf>,
    /// The least severity that makes the command exit 1 [default: error]
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Leave out the findings that are accepted in this file
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Accept the findings that fail, and write them to the baseline
    #[arg(long, requires = "baseline")]
    accept: bool,
    /// Why they are accepted
    #[arg(long, value_name = "TEXT", requires = "accept")]
    reason: Option<String>,
    /// Output format [default: text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Explain a rule, as `prowess rule` does
    #[arg(long, value_name = "RULE", conflicts_with = "paths", add = completion::audit_rules())]
    explain: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Warnings and errors
    Warning,
    /// Errors
    Error,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    if let Some(code) = &args.explain {
        return rule::explain(code, AUDIT_RULES, printer);
    }
    let format = Format::chosen(args.format, printer)?;
    let least = match args.fail_on {
        Some(FailOn::Warning) => Severity::Warning,
        Some(FailOn::Error) | None => Severity::Error,
    };
    let root = env::current_dir()?;
    // A baseline that cannot be read is known before the work.
    let baseline = args.baseline.as_deref().map(|it| read_baseline(it, args.accept)).transpose()?;
    let paths = paths(args, global, printer)?;
    let report = printer.with_progress("auditing skills", || audit(&paths));
    let mut report = report.map_err(|it| explained(&it))?;
    let mut accepted = 0;
    let mut stale = Vec::new();
    if let (Some(mut baseline), Some(path)) = (baseline, &args.baseline) {
        let folder = root.join(path);
        let folder = folder.parent().unwrap_or(&root);
        if args.accept {
            let reason = args.reason.as_deref().unwrap_or_default();
            let failing = report.findings.iter().filter(|it| it.finding.severity >= least);
            failing.for_each(|it| baseline.accept(it, folder, reason));
        }
        let (removed, unused) = baseline.remove_accepted(&mut report.findings, folder);
        accepted = removed;
        stale = unused.into_iter().cloned().collect();
        if args.accept {
            baseline.accepted.retain(|it| !stale.contains(it));
            stale.clear();
            write_page(path, &baseline.to_toml(), Readers::Usual)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
    }
    let findings: Vec<Finding> = report.findings.iter().map(|it| it.finding.clone()).collect();
    match format {
        Format::Text => print_findings(&findings, &report, accepted, printer)?,
        Format::Json => printer.document(&json!({
            "skills": report.skills,
            "files": report.files,
            "bytes": report.bytes,
            "findings": report.findings.iter().map(finding_json).collect::<Vec<_>>(),
            "omitted": report.omitted,
            "accepted": accepted,
            "stale": stale.iter().map(|it| json!({ "path": it.path, "rule": it.rule, "text": it.text })).collect::<Vec<_>>(),
        }))?,
        Format::Github => {
            for finding in findings.iter().filter(|it| it.severity >= Severity::Warning) {
                printer.line(github::annotation(finding, &root))?;
            }
            printer.flush()?;
        }
        Format::Sarif => printer.document(&sarif::log(&findings, Profile::Spec, &root))?,
    }
    if !stale.is_empty() {
        let entries = super::plural(stale.len(), "entry", "entries");
        printer.warning(&format!("{entries} of the baseline have no finding any more"));
        let first: Vec<String> =
            stale.iter().take(3).map(|it| format!("`{}` in `{}`", it.rule, it.path)).collect();
        printer.hint(&format!("such as {}; `--accept` removes them", first.join(", ")));
    }
    let failed = findings.iter().any(|it| it.severity >= least);
    Ok(if failed { ExitStatus::Failure } else { ExitStatus::Success })
}

/// Audits several paths, each file once.
fn audit(paths: &[PathBuf]) -> Result<AuditReport, AuditError> {
    let limits = AuditLimits::default();
    let mut whole = AuditReport::default();
    let mut seen = HashSet::new();
    for path in paths {
        if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
            continue;
        }
        let report = audit_folder(path, &limits)?;
        whole.findings.extend(report.findings);
        whole.skills += report.skills;
        whole.files += report.files;
        whole.bytes += report.bytes;
        whole.omitted += report.omitted;
    }
    let mut reported = HashSet::new();
    whole.findings.retain(|it| {
        let finding = &it.finding;
        reported.insert((
            finding.path.clone(),
            finding.line,
            finding.rule.code,
            finding.message.clone(),
        ))
    });
    Ok(whole)
}

/// Returns what to audit: what is on the command line, otherwise the folders of the listed skills.
fn paths(args: &Args, global: &Global, printer: &mut Printer) -> Result<Vec<PathBuf>> {
    if args.paths.is_empty() {
        let library = context::library(global, printer)?;
        let folders: Vec<PathBuf> =
            library.all().map(|it| it.folder().to_owned()).filter(|it| it.is_dir()).collect();
        if folders.is_empty() {
            let fault = CliError::new("no skills to audit in this project or your home directory");
            return Err(fault.hint("name a folder, as in `prowess audit PATH`").into());
        }
        return Ok(folders);
    }
    let mut library = None;
    let mut paths = Vec::new();
    for typed in &args.paths {
        let path = context::resolve(&Directory::new(typed), global);
        let name = typed.to_str().filter(|it| !context::is_path(it));
        if path.symlink_metadata().is_ok() || name.is_none() {
            paths.push(path);
            continue;
        }
        let name = name.unwrap_or_default();
        if library.is_none() {
            library = Some(context::library_for_counting(global)?);
        }
        let folder = library.as_ref().and_then(|it| context::folder_of_skill(it, name));
        match folder {
            Some(folder) => paths.push(folder),
            None => {
                let fault = CliError::new(format!(
                    "`{name}` is neither a path nor a skill in the searched directories"
                ));
                let near = suggest::path(&path).or_else(|| {
                    let library = library.as_ref()?;
                    context::nearest_skill(library, name).map(str::to_owned)
                });
                return Err(match near {
                    Some(near) => fault.hint(did_you_mean(near)).into(),
                    None => fault.hint("`prowess list` lists all skills").into(),
                });
            }
        }
    }
    Ok(paths)
}

/// Returns an error with its hint.
fn explained(error: &AuditError) -> anyhow::Error {
    let message = match error {
        AuditError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            format!("{error}: it does not exist")
        }
        AuditError::Io { source, .. } => format!("{error}: {source}"),
        _ => error.to_string(),
    };
    let fault = CliError::new(message);
    match error.hint() {
        Some(hint) => fault.hint(hint).into(),
        None => fault.into(),
    }
}

/// Reads a baseline; one that is to be written need not be there.
fn read_baseline(path: &Path, is_new: bool) -> Result<AuditBaseline> {
    let text = match fs::read_to_string(path) {
        Err(error) if is_new && error.kind() == io::ErrorKind::NotFound => {
            return Ok(AuditBaseline::default());
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let fault = CliError::new(format!("there is no baseline `{}`", path.display()));
            return Err(fault.hint("`--accept` writes it").into());
        }
        text => text.with_context(|| format!("cannot read `{}`", path.display()))?,
    };
    AuditBaseline::parse(&text)
        .map_err(|it| CliError::new(format!("`{}`: {it}", path.display())).hint(it.hint()).into())
}

fn finding_json(it: &AuditFinding) -> Json {
    let finding = &it.finding;
    json!({
        "path": finding.path.to_string_lossy(),
        "line": finding.line,
        "rule": finding.rule.code,
        "severity": finding.severity.as_str(),
        "message": finding.message,
        "hint": finding.hint,
        "excerpt": finding.excerpt,
        "digest": it.digest.to_string(),
    })
}

fn print_findings(
    findings: &[Finding],
    report: &AuditReport,
    accepted: usize,
    printer: &mut Printer,
) -> Result<()> {
    let least = if printer.verbose { Severity::Info } else { Severity::Warning };
    for finding in findings.iter().filter(|it| it.severity >= least) {
        printer.line(snippet::render(finding, printer) + "\n")?;
    }
    printer.flush()?;
    let number = |severity| findings.iter().filter(|it| it.severity == severity).count();
    let [errors, warnings, infos] =
        [Severity::Error, Severity::Warning, Severity::Info].map(number);
    let mut words = match report.skills {
        0 => format!("{} audited: ", count(report.files, "file")),
        skills => format!("{} audited: ", count(skills, "skill")),
    };
    words.push_str(&match (errors, warnings) {
        (0, 0) => "nothing suspicious found".to_owned(),
        (0, _) => count(warnings, "warning"),
        (_, 0) => count(errors, "error"),
        (_, _) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    });
    if accepted > 0 {
        words.push_str(&format!("; {accepted} accepted in the baseline"));
    }
    if report.omitted > 0 {
        words.push_str(&format!("; {} more not listed", report.omitted));
    }
    if infos > 0 && !printer.verbose {
        let (messages, them) = if infos == 1 { ("message", "it") } else { ("messages", "them") };
        words.push_str(&format!("; {infos} info {messages} hidden, `-v` shows {them}"));
    }
    printer.note(&words);
    let worst = findings.iter().filter(|it| it.severity >= least).max_by_key(|it| it.severity);
    if let Some(finding) = worst {
        let code = safe::line(finding.rule.code);
        printer.note(&format!("`prowess rule {code}` explains it, and what to do"));
    }
    Ok(())
}
