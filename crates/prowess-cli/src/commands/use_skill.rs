use std::{
    env,
    ffi::OsString,
    path::Path,
    process::{Command, ExitStatus as ProgramStatus},
};

use anyhow::{Context as _, Result};
use prowess::{is_plain_name, spec::SKILL_FILE};
use prowess_packages::FetchedTree;
use serde_json::json;

use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    packages::{self, PackageSession, ReviewedSkill, choose, version_text},
    printer::Printer,
    safe,
};

/// Use a skill without installing it
///
/// Without a command, prints the skill's instructions and lists its files. With one, puts the skill into a temporary folder
/// and starts the command: `PROWESS_SKILL_DIR` is the folder of the skill, `PROWESS_SKILLS_DIR` the one above it, and `{}` in an
/// argument stands for the folder of the skill. Claude Code (`claude`) is also given the folder with `--add-dir`. The folder is
/// removed when the command ends, with whose status this ends too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the skill is, such as `anthropics/skills@pdf`
    #[arg(value_name = "SOURCE", value_hint = clap::ValueHint::AnyPath)]
    source: String,
    /// The skill with this name
    #[arg(short, long, value_name = "NAME")]
    skill: Option<String>,
    /// Use it although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Use only what was fetched before
    #[arg(long)]
    offline: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let session = PackageSession::open(false, args.offline, global, printer)?;
    let source = packages::parse_source(&args.source, global)?;
    let names: Vec<String> = source.skills.iter().chain(&args.skill).cloned().collect();
    let fetched = session.fetch(&[(source, None)], printer)?;
    let tree = fetched.into_iter().next().context("nothing was fetched")?;
    let tree: FetchedTree = tree.map_err(|it| packages::fetch_error(&it))?;
    packages::check_age(&tree, &session)?;
    packages::check_signature(&tree, &session)?;
    let found = packages::discover_in(&tree);
    let Some(chosen) = choose(&found, &tree, &names, false, printer)? else {
        return Ok(packages::declined("used", printer));
    };
    let [skill] = chosen.skills[..] else {
        let fault = CliError::invalid_input("one skill can be used at a time");
        return Err(fault.hint("choose it with `--skill NAME`").into());
    };
    if let Some(warning) = &tree.warning {
        printer.safety_warning(warning);
    }
    let reviewed = ReviewedSkill::new(skill, &tree, session.rules);
    if reviewed.dangers > 0 && !args.allow_findings {
        packages::print_skills(&[&reviewed], printer)?;
        printer.flush()?;
        return Err(packages::dangerous(reviewed.dangers, "used").into());
    }
    if args.command.is_empty() {
        return show(&reviewed, &tree, printer);
    }
    let folder = tempfile::Builder::new().prefix("prowess-use-").tempdir()?;
    let folder_path = prowess::real_path(folder.path())?;
    let name = if is_plain_name(&skill.name) { &*skill.name } else { "skill" };
    // Claude Code looks for skills in `.claude/skills` of the folders that it is given.
    let skills = folder_path.join(".claude/skills");
    std::fs::create_dir_all(&skills)?;
    let own = skills.join(name);
    session
        .cache
        .copy(&skill.files, &own)
        .map_err(|error| CliError::new(packages::chain(&error)).hint(error.hint()))?;
    let version = version_text(&tree);
    let version = if version.is_empty() { version } else { format!(", {version}") };
    printer.note(&format!("using `{}` from `{}`{version}", skill.name, tree.source.name()));
    let status = start(args, &folder_path, &own, printer)?;
    Ok(match status.code() {
        Some(0) => ExitStatus::Success,
        Some(code) => ExitStatus::Program(u8::try_from(code).unwrap_or(1)),
        // As shells do, for a program that was ended by a signal.
        None => ExitStatus::Program(packages::signal_status(&status)),
    })
}

/// Starts the command, and waits for it.
fn start(args: &Args, folder: &Path, own: &Path, printer: &mut Printer) -> Result<ProgramStatus> {
    let [program, arguments @ ..] = &args.command[..] else {
        return Err(CliError::new("there is no command").into());
    };
    let is_claude = Path::new(program).file_stem().is_some_and(|it| it == "claude");
    let filled = arguments.iter().map(|it| match it.to_str() {
        Some(text) if text.contains("{}") => text.replace("{}", &own.to_string_lossy()).into(),
        _ => it.clone(),
    });
    let mut command = Command::new(program);
    if is_claude {
        command.arg("--add-dir").arg(folder);
    }
    command
        .args(filled)
        .env("PROWESS_SKILL_DIR", own)
        .env("PROWESS_SKILLS_DIR", own.parent().unwrap_or(folder));
    printer.flush()?;
    // Ctrl-C is for the command; the folder is removed when it has ended.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(async {
        let _ignored = crate::host::stop_signal()?;
        command.status()
    });
    Ok(status.map_err(|error| {
        let name = program.to_string_lossy();
        let why = error.to_string();
        let why = why.split(" (os error").next().unwrap_or(&why).to_owned();
        let fault = CliError::new(format!("cannot start `{name}`: {why}"));
        match env::var_os("PATH") {
            Some(_) => fault.hint("check the spelling, and that it is on your `PATH`"),
            None => fault.hint("`PATH` is not set"),
        }
    })?)
}

/// Prints the instructions of a skill, and its files.
fn show(reviewed: &ReviewedSkill, tree: &FetchedTree, printer: &mut Printer) -> Result<ExitStatus> {
    let skill = &reviewed.skill;
    let folder =
        if skill.path.is_empty() { tree.folder.clone() } else { tree.folder.join(&skill.path) };
    let path = folder.join(SKILL_FILE);
    let text = std::fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if printer.json {
        let mut json = reviewed.json();
        json["source"] = json!(tree.source.to_string());
        json["commit"] = json!(tree.commit);
        json["version"] = json!(tree.version);
        json["text"] = json!(text);
        json["folder"] = json!(folder.to_string_lossy());
        printer.document(&json)?;
        return Ok(ExitStatus::Success);
    }
    printer.text(&text)?;
    let others: Vec<&str> =
        skill.files.iter().map(|it| &*it.path).filter(|it| *it != SKILL_FILE).collect();
    if !others.is_empty() {
        let folder = folder.display().to_string();
        printer.line(format_args!("\nFiles in {}:", safe::line(&folder)))?;
        for path in others {
            printer.line(format_args!("  {}", safe::line(path)))?;
        }
    }
    printer.flush()?;
    reviewed.print_findings(printer)?;
    Ok(ExitStatus::Success)
}
