use std::path::PathBuf;

use anyhow::{Context as _, Result};
use prowess_packages::{ExportedSkill, export_apm_lock, export_skills_lock};
use serde_json::json;

use super::{Readers, count, write_page};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    packages::{self, PackageSession},
    printer::Printer,
};

/// Write the lock file of another package manager
///
/// Writes what `prowess.lock` says in the format of another program, so that its users install the same. What that format
/// cannot say is reported, and left out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Export the skills for all your projects
    #[arg(short, long)]
    global: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// `skills-lock.json` of npx skills
    SkillsLock,
    /// `apm.lock.yaml` of apm
    Apm,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let session = PackageSession::open(args.global, true, global, printer)?;
    let lock = session.place.read_lock()?;
    let mut folders = Vec::new();
    for skill in lock.skills() {
        let folder = packages::folder_of_locked(skill, &session).ok_or_else(|| {
            CliError::invalid_input(format!(
                "the files of `{}` are not there as they were locked",
                skill.name
            ))
            .hint(format!("`prowess sync{}` installs them", session.place.flag()))
        })?;
        folders.push((skill, folder));
    }
    let skills: Vec<ExportedSkill<'_>> =
        folders.iter().map(|(skill, folder)| ExportedSkill::new(skill, folder)).collect();
    let exported = match args.format {
        Format::SkillsLock => export_skills_lock(&skills),
        Format::Apm => export_apm_lock(&skills),
    };
    let exported = exported.map_err(|error| {
        CliError::new(packages::chain(&error))
            .hint("check the files of the skill with `prowess verify`")
    })?;
    match &args.output {
        Some(path) => {
            let path = global.cwd.as_ref().map_or_else(|| path.clone(), |it| it.join(path));
            write_page(&path, &exported.text, Readers::Usual)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
            if printer.json {
                printer.document(&json!({
                    "path": path.to_string_lossy(),
                    "skills": skills.len() - exported.left_out.len(),
                    "left_out": exported.left_out.iter().map(|it| json!({
                        "name": it.name, "reason": it.reason,
                    })).collect::<Vec<_>>(),
                }))?;
            }
        }
        None => printer.raw(exported.text.as_bytes())?,
    }
    printer.flush()?;
    for left_out in &exported.left_out {
        printer.warning(&format!("left out `{}`: {}", left_out.name, left_out.reason));
    }
    let written = skills.len() - exported.left_out.len();
    printer.note(&format!("{} exported", count(written, "skill")));
    Ok(ExitStatus::Success)
}
