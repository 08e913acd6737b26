//! A checkup for people, as wide as their terminal.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use prowess::{Checkup, Client, Crowded, Diagnosis, Examined, Note, Verdict, nearest_spot};
use unicode_width::UnicodeWidthStr as _;

use super::super::count;
use crate::{
    printer::{Printer, painted},
    safe,
};

/// A space between words that belong together.
const NO_BREAK: &str = "\u{a0}";
/// How many skills with a fault are shown without being asked for.
const SHOWN: usize = 10;
/// From how many skills on the table has only those that are not well everywhere.
const MANY: usize = 100;
/// The widest column of names.
const WIDEST: usize = 36;
/// Where the reasons begin: behind the longest word for a verdict.
const INDENT: usize = 10;

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

/// A text that is not broken between its words.
fn whole(text: &str) -> String {
    text.replace(' ', NO_BREAK)
}

/// Who does not look where a skill lies, and what would reach most of them.
fn elsewhere(skill: &Examined, printer: &mut Printer) -> Result<()> {
    let is_elsewhere = |it: &&Diagnosis| it.verdict == Verdict::Unseen && it.notes.is_empty();
    let clients = skill.diagnoses.iter().filter(is_elsewhere).map(|it| it.client);
    let clients: Vec<&'static Client> = clients.collect();
    if clients.is_empty() {
        return Ok(());
    }
    let text = format!("{} look elsewhere: {}", count(clients.len(), "client"), labels(&clients));
    labelled_lines(Verdict::Unseen, &text, printer)?;
    let spot = nearest_spot(&clients, skill.diagnoses.iter().any(|it| it.in_project));
    let Some((path, reached)) = spot else { return Ok(()) };
    let whom = match (reached.len(), clients.len()) {
        (1, 1) => "it".to_owned(),
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
        "{}, and {} that look where some of them lie",
        count(skills.len(), "skill"),
        count(lookers.len(), "client"),
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
        put(&format!("{} lie where no client looks", count(unfound, "skill")), 0, printer)?;
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
    put(&words, 0, printer)
}

/// A table of skills and clients, in as many parts as the width takes.
pub(super) fn matrix(
    skills: &[Examined],
    clients: &[&'static Client],
    printer: &mut Printer,
) -> Result<()> {
    let is_shown =
        |it: &&Examined| skills.len() <= MANY || it.worst().is_some_and(|it| it > Verdict::Asks);
    let rows: Vec<&Examined> = skills.iter().filter(is_shown).collect();
    let is_looker = |number: &usize| rows.iter().any(|it| it.diagnoses[*number].path.is_some());
    let columns: Vec<usize> = (0..clients.len()).filter(is_looker).collect();
    printer.line("")?;
    if !columns.is_empty() {
        let most = printer.width.map_or(WIDEST, |it| (it / 3).clamp(8, WIDEST));
        let names: Vec<String> = rows.iter().map(|it| row_name(it, &rows, most)).collect();
        let widest = names.iter().map(|it| it.width()).max().unwrap_or(0);
        let fits = room_beside(widest + 2, printer).unwrap_or(usize::MAX);
        let gap = if columns.len() * 2 <= fits { " " } else { "" };
        for part in columns.chunks(fits / (1 + gap.len())) {
            let head: Vec<String> =
                part.iter().map(|it| letter(&columns, *it).to_string()).collect();
            printer.line(format_args!("{}  {}", " ".repeat(widest), head.join(gap)))?;
            for (skill, name) in rows.iter().zip(&names) {
                let pad = " ".repeat(widest - name.width());
                let marks: Vec<String> =
                    part.iter().map(|it| mark(skill.diagnoses[*it].verdict, printer)).collect();
                printer.line(format_args!("{}{pad}  {}", printer.name(name), marks.join(gap)))?;
            }
            printer.line("")?;
        }
        let legend: Vec<String> = columns
            .iter()
            .map(|it| whole(&format!("{} {}", letter(&columns, *it), clients[*it].label)))
            .collect();
        put(&legend.join(", "), 0, printer)?;
        let marks: Vec<String> =
            Verdict::ALL.iter().map(|it| whole(&format!("{} {it}", sign(*it)))).collect();
        put(&marks.join(", "), 0, printer)?;
    }
    match skills.len() - rows.len() {
        0 => Ok(()),
        well => put(
            &format!("{} not shown: well wherever a client looks", count(well, "skill")),
            0,
            printer,
        ),
    }
}

/// What a row is called: the name of the skill, or the end of its path where others have that name too. The rows come
/// sorted by name.
fn row_name(skill: &Examined, rows: &[&Examined], most: usize) -> String {
    let from = rows.partition_point(|it| it.name < skill.name);
    if rows.get(from + 1).is_none_or(|it| it.name != skill.name) {
        return safe::cut(&safe::line(&skill.name), most);
    }
    let folder = skill.path.parent().unwrap_or(&skill.path).to_string_lossy();
    let folder = safe::line(&folder);
    let mut tail = folder.char_indices().map(|it| &folder[it.0..]);
    tail.find(|it| it.width() < most).map(|it| format!("…{it}")).unwrap_or_default()
}

/// The letter of a column.
fn letter(columns: &[usize], column: usize) -> char {
    let at = columns.iter().position(|it| *it == column).unwrap_or_default();
    let letters = ('A'..='Z').chain('a'..='z').chain('0'..='9');
    letters.cycle().nth(at).unwrap_or('?')
}

fn sign(verdict: Verdict) -> char {
    match verdict {
        Verdict::Loads => '+',
        Verdict::Asks => 'a',
        Verdict::Cut => 'c',
        Verdict::Hidden => 'h',
        Verdict::Unknown => '?',
        Verdict::Shadowed => 's',
        Verdict::Refused => 'x',
        Verdict::Unseen => '.',
    }
}

fn mark(verdict: Verdict, printer: &Printer) -> String {
    painted(&sign(verdict).to_string(), style(verdict), printer.colored)
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Loads => AnsiColor::Green.on_default(),
        Verdict::Asks | Verdict::Cut | Verdict::Hidden | Verdict::Unknown => {
            AnsiColor::Yellow.on_default()
        }
        Verdict::Shadowed | Verdict::Refused => AnsiColor::Red.on_default().bold(),
        Verdict::Unseen => Style::new().dimmed(),
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

/// Lines behind the word for a verdict.
fn labelled_lines(verdict: Verdict, text: &str, printer: &mut Printer) -> Result<()> {
    let word = painted(verdict.as_str(), style(verdict), printer.colored);
    let pad = " ".repeat(INDENT - verdict.as_str().len());
    let lines = wrapped(&safe::line(text), room_beside(INDENT, printer));
    for (number, line) in lines.iter().enumerate() {
        match number {
            0 => printer.line(format_args!("{word}{pad}{line}"))?,
            _ => printer.line(format_args!("{}{line}", " ".repeat(INDENT)))?,
        }
    }
    Ok(())
}

/// Prints a text, made safe, in as many lines as it takes.
fn put(text: &str, indent: usize, printer: &mut Printer) -> Result<()> {
    let lines = wrapped(&safe::line(text), room_beside(indent, printer));
    lines.iter().try_for_each(|it| printer.line(format_args!("{}{it}", " ".repeat(indent))))
}

/// How wide a text may be beside something; nothing where it does not matter.
fn room_beside(taken: usize, printer: &Printer) -> Option<usize> {
    printer.width.map(|it| it.saturating_sub(taken).max(10))
}

/// The lines of a text, broken between words; a word that is too long stays whole.
fn wrapped(text: &str, width: Option<usize>) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let width = width.unwrap_or(usize::MAX);
    for word in text.split(' ').filter(|it| !it.is_empty()) {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|it| it.replace(NO_BREAK, " ")).collect()
}
