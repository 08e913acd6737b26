//! The skills that clients do not load although they read their directory.

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;
use prowess::{Checkup, Client, Diagnosis, ExaminedSkill, Symptom, Verdict};

use super::{
    super::count,
    has_unread,
    lines::{INDENT, print_with_verdict, print_wrapped, unbroken, width_beside},
    page::{fix_command, groups, join_labels, print_title},
};
use crate::{printer::Printer, safe};

/// The number of skills printed by default.
const SHOWN: usize = 10;
/// The widest name.
const WIDEST: usize = 80;
/// The reason of a skill that shares its name.
const SHADOWED: &str = "another skill with the same name comes first";

/// Prints each of a few, and the causes of many.
pub(super) fn print_faults(checkup: &Checkup, printer: &mut Printer) -> Result<()> {
    let faulty: Vec<&ExaminedSkill> = checkup
        .skills
        .iter()
        .filter(|it: &&ExaminedSkill| it.diagnoses.iter().any(Diagnosis::is_fault))
        .collect();
    let are_few = faulty.len() <= SHOWN || printer.verbose;
    if are_few {
        for skill in &faulty {
            printer.line("")?;
            print_title(skill, printer)?;
            let shown: Vec<&Diagnosis> =
                skill.diagnoses.iter().filter(|it| it.is_fault()).collect();
            groups(skill, &shown).iter().try_for_each(|it| it.show(printer))?;
        }
    } else {
        printer.line("")?;
        collect_causes(&faulty, Diagnosis::is_fault)
            .iter()
            .try_for_each(|it| it.show(3, printer))?;
    }
    let undecided = print_undecided(checkup, printer)?;
    printer.line("")?;
    let many = count(faulty.len(), "skill");
    let partly = checkup
        .skills
        .iter()
        .filter(|it: &&ExaminedSkill| {
            it.diagnoses.iter().any(|it| matches!(it.verdict, Verdict::Cut | Verdict::Hidden))
        })
        .map(|it| unbroken(&safe::line(&it.name)));
    let partly: Vec<String> = partly.take(SHOWN).collect();
    let words = match faulty.len() {
        0 if has_unread(checkup) => "every client loads what can be read".to_owned(),
        0 if !partly.is_empty() => format!(
            "no client refuses a skill, but some are truncated or hidden (see `prowess doctor NAME`): {}",
            partly.join(", ")
        ),
        0 if undecided => "every client loads what it finds, as far as is known".to_owned(),
        0 => "every client loads what it finds".to_owned(),
        _ if are_few => format!("{many} not loaded by every client that reads the directory"),
        _ => format!("{many} not loaded by every client that reads the directory (-v shows each)"),
    };
    print_wrapped(&words, 0, printer)?;
    let fixable: Vec<&Path> = faulty
        .iter()
        .filter(|it: &&&ExaminedSkill| {
            let notes = it.diagnoses.iter().filter(|it| it.is_fault()).flat_map(|it| &it.notes);
            notes.into_iter().any(|it| it.is_fixable)
        })
        .map(|it| &*it.path)
        .collect();
    if are_few || fixable.is_empty() {
        return Ok(());
    }
    let directories = fixable.iter().filter_map(|it| it.parent()?.parent());
    let command = fix_command(directories.collect::<BTreeSet<&Path>>());
    print_wrapped(
        &format!("→ `{command}` fixes what is safe to fix in {} of them", fixable.len()),
        0,
        printer,
    )
}

/// Lists the skills for which it is unknown whether a client loads them, by reason. Returns whether
/// there are any.
fn print_undecided(checkup: &Checkup, printer: &mut Printer) -> Result<bool> {
    let skills = checkup.skills.iter().filter(|it| it.diagnoses.iter().any(is_unknown));
    let skills: Vec<&ExaminedSkill> = skills.collect();
    if skills.is_empty() {
        return Ok(false);
    }
    printer.line("")?;
    let named = if printer.verbose { usize::MAX } else { SHOWN };
    collect_causes(&skills, is_unknown).iter().try_for_each(|it| it.show(named, printer))?;
    Ok(true)
}

/// Returns whether a client finds a skill, and it is unknown whether it loads it.
fn is_unknown(diagnosis: &Diagnosis) -> bool {
    diagnosis.path.is_some() && diagnosis.verdict == Verdict::Unknown
}

/// A reason for which clients do not load some skills, or may not.
struct Cause<'a> {
    verdict: Verdict,
    about: String,
    clients: Vec<&'static Client>,
    skills: Vec<&'a ExaminedSkill>,
}

/// Returns the reasons why skills are not loaded, the most frequent first.
fn collect_causes<'a>(
    skills: &[&'a ExaminedSkill],
    is_meant: impl Fn(&Diagnosis) -> bool,
) -> Vec<Cause<'a>> {
    let mut causes: Vec<Cause<'a>> = Vec::new();
    for skill in skills {
        for diagnosis in skill.diagnoses.iter().filter(|it| is_meant(it)) {
            let Diagnosis { client, notes, verdict, .. } = diagnosis;
            let is_unknown = *verdict == Verdict::Unknown;
            for note in notes.iter().filter(|it| !is_unknown || it.verdict == *verdict) {
                let about = note.symptom.map_or_else(|| SHADOWED.to_owned(), Symptom::about);
                let verdict = note.verdict;
                let at = causes
                    .iter()
                    .position(|it: &Cause<'_>| it.verdict == verdict && it.about == about)
                    .unwrap_or_else(|| {
                        let (clients, skills) = (Vec::new(), Vec::new());
                        causes.push(Cause { verdict, about, clients, skills });
                        causes.len() - 1
                    });
                let cause = &mut causes[at];
                if !cause.clients.iter().any(|it| it.name == client.name) {
                    cause.clients.push(client);
                }
                // The reasons of one skill are consecutive.
                if cause.skills.last().is_none_or(|it| it.path != skill.path) {
                    cause.skills.push(skill);
                }
            }
        }
    }
    causes.sort_by_key(|it| std::cmp::Reverse(it.skills.len()));
    causes
}

impl Cause<'_> {
    /// Prints it with the names of some skills.
    fn show(&self, named: usize, printer: &mut Printer) -> Result<()> {
        let text = format!("{}: {}", count(self.skills.len(), "skill"), self.about);
        print_with_verdict(self.verdict, &text, printer)?;
        print_wrapped(&join_labels(&self.clients), INDENT, printer)?;
        let most = width_beside(INDENT, printer).unwrap_or(WIDEST);
        let mut names: Vec<&str> = self.skills.iter().map(|it| &*it.name).collect();
        names.dedup();
        let some = names.iter().take(named).map(|it| unbroken(&safe::cut(&safe::line(it), most)));
        let some = some.collect::<Vec<_>>().join(", ");
        match names.len() > named {
            true => print_wrapped(&format!("such as {some}"), INDENT, printer),
            false => print_wrapped(&some, INDENT, printer),
        }
    }
}
