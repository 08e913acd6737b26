use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use prowess::{Scope, spec::SKILL_FILE};
use prowess_cli::settings::Config;
use serde_json::json;

use crate::{ExitStatus, arguments::Global, context, printer::Printer, surroundings::surroundings};

/// Write a first `prowess.toml` for the project you are in
///
/// The file lists the directories with skills found here, and other settings as comments. An existing file is never
/// overwritten.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the file instead of writing it
    #[arg(long)]
    dry_run: bool,
}

/// The name of the file.
const NAME: &str = "prowess.toml";

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let path = global.cwd.as_deref().unwrap_or(Path::new("")).join(NAME);
    let shown = path.display();
    if path.symlink_metadata().is_ok() {
        printer.error_text(&format!("`{shown}` exists already"));
        printer.hint("`prowess config` shows what it sets");
        return Ok(ExitStatus::Failure);
    }
    let before = context::config(global)?;
    let directories = project_directories(global)?;
    let text = Config::starter(&directories);
    if !args.dry_run {
        write(&path, &text).with_context(|| format!("cannot write `{shown}`"))?;
        global.configs.clear();
    }
    if printer.json {
        printer.document(&json!({
            "path": path.to_string_lossy(),
            "written": !args.dry_run,
            "directories": directories,
            "text": text,
        }))?;
        return Ok(ExitStatus::Success);
    }
    if args.dry_run {
        printer.text(&text)?;
        return Ok(ExitStatus::Success);
    }
    printer.line(printer.name(&shown.to_string()))?;
    printer.flush()?;
    printer.note(&match &directories[..] {
        [] => {
            "no directory with skills was found here; `prowess new NAME` creates a skill".to_owned()
        }
        found => format!("it lists {}", context::quote_entries(found)),
    });
    if let Some(project) = &before.project {
        let above = project.path.display();
        printer.warning(&format!("`{above}` no longer applies here, because this file is nearer"));
    }
    // A problem with the file, such as that others can write it, is reported at once.
    context::explain_ignored_settings(&context::config(global)?, printer);
    printer.note("next: `prowess list` shows the skills, `prowess config` the settings");
    Ok(ExitStatus::Success)
}

/// Returns the skills directories of clients in this project, relative to it.
fn project_directories(global: &Global) -> Result<Vec<String>> {
    let (surroundings, _) = surroundings(global, None)?;
    let here = surroundings.here().into_iter().filter(|it| it.scope == Scope::Project);
    let inside =
        here.filter_map(|it| it.path.strip_prefix(&surroundings.cwd).ok().map(PathBuf::from));
    let inside = inside.filter(|it| has_skills(&surroundings.cwd.join(it)));
    Ok(inside.filter_map(|it| it.to_str().map(str::to_owned)).collect())
}

/// Returns whether a directory has a folder with a `SKILL.md`.
fn has_skills(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    entries.flatten().any(|it| it.path().join(SKILL_FILE).is_file())
}

/// Creates a new file atomically.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes()).inspect_err(|_| drop(fs::remove_file(path)))
}
