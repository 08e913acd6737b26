use anyhow::Result;
use prowess::{Finding, Manifest, Profile, Severity, check_text, render, spec::SKILL_FILE};
use prowess_runtime::{Store as _, store::Files};

use super::{print_record, report_store_error};
use crate::{ExitStatus, arguments::Global, context, printer::Printer};

/// Create a skill to fill in: a folder with a template of `SKILL.md`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the skill: lowercase letters and digits, joined by single hyphens
    name: String,
    /// What it does and when to use it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let words = args.name.replace(['-', '_'], " ");
    let default = format!("TODO: describe what {words} does, and when to use it.");
    let manifest = Manifest {
        name: args.name.as_str().into(),
        description: args.description.as_deref().unwrap_or(&default).trim().into(),
        ..Manifest::default()
    };
    let text = render(&manifest, &instructions(&words));

    let findings = check_text(text.as_bytes(), Some(&args.name), Profile::Spec);
    // A name that most clients would refuse is refused here too.
    let unwise = ["name-not-ascii", "name-windows"];
    let (faults, others): (Vec<&Finding>, Vec<&Finding>) = findings
        .iter()
        .partition(|it| it.severity == Severity::Error || unwise.contains(&it.rule.code));
    // Faults with the same fix are reported once.
    let mut hints = Vec::new();
    for fault in &faults {
        if hints.contains(&&fault.hint) {
            continue;
        }
        hints.push(&fault.hint);
        printer.error_text(&fault.message);
        printer.hint(&fault.hint);
    }
    if !faults.is_empty() {
        return Ok(ExitStatus::Failure);
    }
    for finding in others {
        // Fields to be filled in are mentioned below.
        if finding.severity == Severity::Warning && finding.rule.code != "placeholder" {
            printer.finding(finding);
        }
    }

    let target = context::target_store_or_here(global, printer)?;
    match target.store.add(&Files::from([(SKILL_FILE.to_owned(), text.into_bytes())])) {
        Ok(entry) => {
            print_record(&entry, &target, printer)?;
            let folder = target.path.join(&args.name);
            printer.note(&format!(
                "fill in everything marked TODO, then run `prowess check {}`",
                folder.display()
            ));
            Ok(ExitStatus::Success)
        }
        Err(error) => Ok(report_store_error(error, printer)),
    }
}

fn instructions(words: &str) -> String {
    let title: String = words
        .chars()
        .enumerate()
        .map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c })
        .collect();
    format!(
        "# {title}\n\n## When to use\n\nTODO: say which requests this skill is for, and which it is not for.\n\n\
         ## Steps\n\nTODO: say what to do first, and how to see that it worked.\n\n\
         ## When something fails\n\nTODO: say what to try, and when to ask.\n"
    )
}
