//! A checkup for people, as wide as their terminal.

use anyhow::Result;
use prowess::{Checkup, Client, Crowded, Diagnosis, Examined, Note, Verdict, common_spot};
use unicode_width::UnicodeWidthStr as _;

use super::{
    super::count,
    lines::{INDENT, labelled_lines, put, room_beside, whole, wrapped},
};
use crate::{printer::Printer, safe};

/// How many skills with a fault are shown without being asked for.
const SHOWN: usize = 10;

/// One skill: who finds it, and what becomes of it.
pub(super) fn section(skill: &Examined, crowded: &[Crowded], printer: &mut Printer) -> Result<()> {
    printer.line(printer.name(&safe::line(&skill.name)))?;
    printer.line(printer.dim(&safe::line(&skill.path.to_string_lossy())))?;
    printer.line("")?;
    let is_found = |it: &&Diagnosis| it.path.is_some() && it.verdict != Verdict::Unseen;
    let found = skill.diagnoses.iter().filter(is_found);
    let verdicts: Vec<Verdict> = found.map(|it| it.verdict).collect();
    let mut words = format!("found by {}", count(verdicts.len(), "client"));
    if !verdicts.is_empty() {
        words.push_str(&format!(": {}", told(&verdicts)));
    }
    put(&words, 0, printer)?;
    printer.line("")?;
    let (told, others): (Vec<&Diagnosis>, Vec<&Diagnosis>) =
        skill.diagnoses.iter().partition(|it| it.client.is_told_where());
    groups(&others).iter().try_for_each(|it| it.show(printer))?;
    elsewhere(skill, printer)?;
    let crowded = crowded.iter().filter(|it| {
        let own = |diagnosis: &&Diagnosis| diagnosis.client.name == it.client.name;
        skill.diagnoses.iter().find(own).is_some_and(|it| it.verdict <= Verdict::Cut)
    });
    crowded.map(room).try_for_each(|it| put(&it, 0, printer))?;
    if !told.is_empty() {
        printer.line("\nwhere they are told to look:")?;
        groups(&told).iter().try_for_each(|it| it.show(printer))?;
    }
    printer.line("")
}

/// Clients to which the same happens for the same reasons.
struct Group<'a> {
    clients: Vec<&'static Client>,
    verdict: Verdict,
    notes: Vec<&'a Note>,
}

/// What becomes of a skill, the worst first; who does not look where it lies is left out.
fn groups<'a>(diagnoses: &[&'a Diagnosis]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for Diagnosis { client, verdict, notes, .. } in diagnoses {
        if *verdict == Verdict::Unseen && notes.is_empty() {
            continue;
        }
        let notes: Vec<&Note> = notes.iter().filter(|it| it.verdict > Verdict::Loads).collect();
        let is_same = |it: &&mut Group<'_>| {
            let reasons =
                |notes: &[&Note]| notes.iter().map(|it| it.reason.clone()).collect::<Vec<_>>();
            it.verdict == *verdict && reasons(&it.notes) == reasons(&notes)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.clients.push(client),
            None => groups.push(Group { clients: vec![client], verdict: *verdict, notes }),
        }
    }
    groups.sort_by_key(|it| std::cmp::Reverse(it.verdict));
    groups
}

impl Group<'_> {
    fn show(&self, printer: &mut Printer) -> Result<()> {
        labelled_lines(self.verdict, &labels(&self.clients), printer)?;
        let mut fixes: Vec<&str> = Vec::new();
        for note in &self.notes {
            put(&note.reason, INDENT, printer)?;
            fixes.extend(note.fix.as_deref().filter(|it| !fixes.contains(it)));
        }
        fixes.iter().try_for_each(|it| put(&format!("→ {it}"), INDENT, printer))
    }
}

fn labels(clients: &[&'static Client]) -> String {
    clients.iter().map(|it| whole(it.label)).collect::<Vec<_>>().join(", ")
}

/// Who does not look where a skill lies, and what would reach most of them.
fn elsewhere(skill: &Examined, printer: &mut Printer) -> Result<()> {
    let is_elsewhere = |it: &&Diagnosis| it.verdict == Verdict::Unseen && it.notes.is_empty();
    let clients = skill.diagnoses.iter().filter(is_elsewhere).map(|it| it.client);
    let clients: Vec<&'static Client> = clients.collect();
    if clients.is_empty() {
        return Ok(());
    }
    let look = if clients.len() == 1 { "looks" } else { "look" };
    let many = count(clients.len(), "client");
    let text = format!("{many} {look} elsewhere: {}", labels(&clients));
    labelled_lines(Verdict::Unseen, &text, printer)?;
    let spot = common_spot(&clients, skill.diagnoses.iter().any(|it| it.in_project));
    let Some((path, reached)) = spot else { return Ok(()) };
    let whom = match (reached.len(), clients.len()) {
        (1, 1) => "it".to_owned(),
        (2, 2) => "both".to_owned(),
        (few, all) if few == all => format!("all {all}"),
        (few, all) => format!("{few} of the {all}"),
    };
    put(&format!("→ a copy or a link in `{path}` reaches {whom}"), INDENT, printer)
}

/// All skills: what becomes of them in each client, and those that somebody does not take.
pub(super) fn overview(
    checkup: &Checkup,
    clients: &[&'static Client],
    printer: &mut Printer,
) -> Result<()> {
    let Checkup { skills, crowded, .. } = checkup;
    let seen = |number: usize| {
        let all = skills.iter().map(move |it| &it.diagnoses[number]);
        all.filter(|it| it.path.is_some()).map(|it| it.verdict).collect::<Vec<_>>()
    };
    let lookers: Vec<(&Client, Vec<Verdict>)> = clients
        .iter()
        .enumerate()
        .map(|(number, it)| (*it, seen(number)))
        .filter(|it| !it.1.is_empty())
        .collect();
    let words = format!(
        "{}, and {} that {} where some of them lie",
        count(skills.len(), "skill"),
        count(lookers.len(), "client"),
        if lookers.len() == 1 { "looks" } else { "look" },
    );
    put(&words, 0, printer)?;
    if skills.is_empty() {
        return put("→ name a directory, as in `prowess doctor --dir skills`", 0, printer);
    }
    printer.line("")?;
    let widest = lookers.iter().map(|it| it.0.label.width()).max().unwrap_or(0);
    for (client, verdicts) in &lookers {
        let pad = " ".repeat(widest - client.label.width() + 2);
        let lines = wrapped(&told(verdicts), room_beside(widest + 2, printer));
        for (number, line) in lines.iter().enumerate() {
            let label = match number {
                0 => format!("{}{pad}", client.label),
                _ => " ".repeat(widest + 2),
            };
            printer.line(format_args!("{label}{line}"))?;
        }
    }
    let unfound = skills.iter().filter(|it| it.worst().is_none()).count();
    if unfound > 0 {
        let lie = if unfound == 1 { "lies" } else { "lie" };
        put(&format!("{} {lie} where no client looks", count(unfound, "skill")), 0, printer)?;
    }
    crowded.iter().map(room).try_for_each(|it| put(&it, 0, printer))?;
    faults(skills, printer)
}

/// The skills that a client does not take although it looks where they lie.
fn faults(skills: &[Examined], printer: &mut Printer) -> Result<()> {
    let is_faulty = |it: &&Examined| it.worst().is_some_and(Verdict::is_fault);
    let faulty: Vec<&Examined> = skills.iter().filter(is_faulty).collect();
    let most = if printer.verbose { faulty.len() } else { SHOWN };
    for skill in faulty.iter().take(most) {
        printer.line("")?;
        let (name, path) = (safe::line(&skill.name), skill.path.to_string_lossy());
        printer.line(printer.name(&name))?;
        printer.line(printer.dim(&safe::line(&path)))?;
        let is_shown = |it: &&Diagnosis| it.path.is_some() && it.verdict.is_fault();
        let shown: Vec<&Diagnosis> = skill.diagnoses.iter().filter(is_shown).collect();
        groups(&shown).iter().try_for_each(|it| it.show(printer))?;
    }
    printer.line("")?;
    let words = match faulty.len() {
        0 => "every client takes what it finds".to_owned(),
        all if all <= most => {
            format!("not taken by every client that finds it: {}", count(all, "skill"))
        }
        all => format!("{} more like these (-v shows them)", all - most),
    };
    put(&words, 0, printer)?;
    match faulty.is_empty() {
        true => Ok(()),
        false => put("→ `prowess check FOLDER --fix` puts right what is safe", 0, printer),
    }
}

/// `3 loads, 1 refused`.
fn told(verdicts: &[Verdict]) -> String {
    let count = |it: Verdict| verdicts.iter().filter(|other| **other == it).count();
    let told = Verdict::ALL.iter().map(|it| (it, count(*it))).filter(|it| it.1 > 0);
    told.map(|(verdict, count)| whole(&format!("{count} {verdict}"))).collect::<Vec<_>>().join(", ")
}

fn room(crowded: &Crowded) -> String {
    let Crowded { client, skills, characters, room } = crowded;
    format!(
        "{} has room for about {room} characters of names and descriptions, and its {} have {characters}: some are shortened",
        client.label,
        count(*skills, "skill"),
    )
}
