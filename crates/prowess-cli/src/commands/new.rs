use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
};

use anyhow::{Context as _, Result};
use prowess::{Finding, Manifest, Profile, Severity, Type, check_text, render};
use serde_json::json;

use crate::{Status, arguments::Global, context, printer::Printer, safe};

/// Make a new skill: a folder with a SKILL.md to fill in
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What it is called: lowercase letters and digits joined by single hyphens
    name: String,
    /// What it does and when to use it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Status> {
    let words = args.name.replace(['-', '_'], " ");
    let default = format!("Explains how to {words}. Use when somebody asks to {words}.");
    let manifest = Manifest {
        name: args.name.as_str().into(),
        description: args.description.as_deref().unwrap_or(&default).trim().into(),
        ..Manifest::default()
    };
    let text = render(&manifest, &instructions(&words));

    let findings = check_text(text.as_bytes(), Some(&args.name), Profile::Spec);
    // What most clients would refuse is better not begun.
    let refused = ["name-not-ascii", "name-windows"];
    let is_fault = |it: &Finding| it.severity == Severity::Error || refused.contains(&it.rule.code);
    let (faults, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|it| is_fault(it));
    for fault in &faults {
        printer.fault(&fault.message);
        printer.hint(&fault.hint);
    }
    if !faults.is_empty() {
        return Ok(Status::AtFault);
    }
    for warning in others.iter().filter(|it| it.severity == Severity::Warning) {
        printer.finding(warning);
    }

    let config = context::config(global)?;
    let parent = match config.directories().first() {
        Some(directory) => context::resolve(directory, global),
        None => global.cwd.clone().unwrap_or_default(),
    };
    let folder = parent.join(&args.name);
    if folder.symlink_metadata().is_ok() {
        printer.fault(&format!("`{}` is there already", folder.display()));
        printer.hint("choose another name, or edit what is there");
        return Ok(Status::AtFault);
    }
    write(&parent, &folder, &text)?;

    let path = folder.join("SKILL.md");
    if printer.json {
        printer.document(&json!({
            "name": manifest.name,
            "description": manifest.description,
            "type": Type::Instruction.as_str(),
            "status": manifest.status().as_str(),
            "path": path.to_string_lossy(),
        }))?;
    } else {
        printer.line(safe::line(&path.display().to_string()))?;
        printer.flush()?;
        printer.note(&format!("now write what it says, then `prowess check {}`", folder.display()));
    }
    Ok(Status::Well)
}

fn instructions(words: &str) -> String {
    let title: String = words
        .chars()
        .enumerate()
        .map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c })
        .collect();
    format!(
        "# {title}\n\n## When to use\n\nSay which requests this skill is for, and which it is not for.\n\n\
         ## Steps\n\n1. The first thing to do.\n2. How to see that it worked.\n\n\
         ## When something fails\n\nWhat to try, and when to ask.\n"
    )
}

/// Writes the folder whole or not at all: it is made under another name, and renamed once it is
/// safely on the disk.
fn write(parent: &Path, folder: &Path, text: &str) -> Result<()> {
    let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    fs::create_dir_all(here).with_context(|| format!("cannot create `{}`", here.display()))?;
    let cannot = || format!("cannot write `{}`", folder.display());
    let unfinished =
        tempfile::Builder::new().prefix(".prowess-new-").tempdir_in(here).with_context(cannot)?;
    let made = unfinished.path().join("skill");
    fs::create_dir(&made).with_context(cannot)?;
    let mut file = File::create_new(made.join("SKILL.md")).with_context(cannot)?;
    file.write_all(text.as_bytes()).with_context(cannot)?;
    file.sync_all().with_context(cannot)?;
    fs::rename(&made, folder).with_context(cannot)?;
    File::open(here).and_then(|it| it.sync_all()).with_context(cannot)
}
