use std::collections::BTreeMap;

use anyhow::Result;
use prowess_packages::{LockedSkill, VerifiedTarget, VerifyFault, verify};
use serde_json::{Value, json};

use super::count;
use crate::{
    ExitStatus,
    arguments::Global,
    completion,
    packages::{self, PackageSession},
    printer::Printer,
    safe,
};

/// Compare installed skills with `prowess.lock`
///
/// Reads every installed file, and reports what is changed, missing or extra, and links that lead elsewhere. Exits 1 if
/// there is any of that.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look only at these skills
    #[arg(value_name = "NAME", add = completion::installed_skills())]
    names: Vec<String>,
    /// Verify the skills for all your projects
    #[arg(short, long)]
    global: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let session = PackageSession::open(args.global, true, global, printer)?;
    let lock = session.place.read_lock()?;
    let skills = packages::named(&lock, &args.names, &session)?;
    let verified =
        printer.with_progress("reading installed skills", || verify(&session.install, &skills));
    let manifest = session.place.read_manifest()?;
    let differences = match args.names.is_empty() {
        true => lock.differences(&manifest),
        false => Vec::new(),
    };
    let mut by_skill: BTreeMap<&str, Vec<&VerifiedTarget>> = BTreeMap::new();
    for target in &verified {
        by_skill.entry(&target.skill).or_default().push(target);
    }
    let targets_of = |it: &LockedSkill| by_skill.get(&*it.name).map_or(&[][..], |it| it);
    let is_well = verified.iter().all(|it| it.faults.is_empty());
    if printer.json {
        let of = |skill: &LockedSkill| {
            let own = targets_of(skill);
            json!({
                "name": skill.name,
                "ok": own.iter().all(|it| it.faults.is_empty()),
                "targets": own.iter().map(|it| json!({
                    "path": it.path,
                    "faults": it.faults.iter().map(fault_json).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
            })
        };
        printer.document(&json!({
            "ok": is_well,
            "skills": skills.iter().map(of).collect::<Vec<_>>(),
            "differences": differences.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))?;
    } else {
        for target in &verified {
            for fault in &target.faults {
                let (word, file) = fault_text(fault);
                let path = match file {
                    Some(file) => format!("{}/{file}", target.path),
                    None => target.path.clone(),
                };
                printer.line(format_args!("{word:9} {}", safe::line(&path)))?;
            }
        }
        printer.flush()?;
    }
    for difference in &differences {
        printer.warning(&format!("{difference}; see `prowess sync{}`", session.place.flag()));
    }
    let faulty = skills.iter().filter(|it| targets_of(it).iter().any(|one| !one.faults.is_empty()));
    match faulty.count() {
        0 if skills.is_empty() => printer.note("no skills are installed here"),
        0 => {
            let files: usize = skills.iter().map(|it| it.files.len()).sum();
            let (skills, files) = (count(skills.len(), "skill"), count(files, "file"));
            printer.note(&format!("{skills} with {files} as in the lock file"));
        }
        many => {
            let (skills, differ) =
                (count(many, "skill"), if many == 1 { "differs" } else { "differ" });
            printer.error_text(&format!("{skills} {differ} from the lock file"));
            printer.hint(
                "if you made the change, keep it: an update merges it; else `prowess remove NAME --force` and `prowess sync` restore the skill",
            );
        }
    }
    Ok(if is_well { ExitStatus::Success } else { ExitStatus::Failure })
}

/// Returns the word for a fault, and the file that it is about.
fn fault_text(fault: &VerifyFault) -> (String, Option<&str>) {
    match fault {
        VerifyFault::Gone => ("missing".to_owned(), None),
        VerifyFault::Replaced(what) => (format!("replaced by {what}"), None),
        VerifyFault::LeadsElsewhere(to) => (format!("leads to `{}`", to.display()), None),
        VerifyFault::Changed(path) => ("changed".to_owned(), Some(path)),
        VerifyFault::Mode(path) => ("mode".to_owned(), Some(path)),
        VerifyFault::Missing(path) => ("missing".to_owned(), Some(path)),
        VerifyFault::Extra(path) => ("extra".to_owned(), Some(path)),
        VerifyFault::Unreadable(path) => ("unreadable".to_owned(), Some(path)),
        VerifyFault::NoClientDirectory => ("no client looks here".to_owned(), None),
        _ => ("different".to_owned(), None),
    }
}

fn fault_json(fault: &VerifyFault) -> Value {
    let (word, file) = fault_text(fault);
    json!({ "fault": word, "file": file })
}
