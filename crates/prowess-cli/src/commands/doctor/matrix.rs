//! A table of skills and clients.

use anyhow::Result;
use prowess::{Client, ExaminedSkill, Verdict};
use unicode_width::UnicodeWidthStr as _;

use super::{
    super::count,
    lines::{print_wrapped, unbroken, verdict_style, width_beside},
};
use crate::{
    printer::{Printer, paint},
    safe,
};

/// The number of skills from which the table has only those with a problem.
const MANY: usize = 100;
/// The widest column of names.
const WIDEST: usize = 36;

/// Prints a table of skills and clients, in as many parts as the width needs.
pub(super) fn print_matrix(
    skills: &[ExaminedSkill],
    clients: &[&'static Client],
    printer: &mut Printer,
) -> Result<()> {
    let rows: Vec<&ExaminedSkill> = skills
        .iter()
        .filter(|it: &&ExaminedSkill| {
            skills.len() <= MANY || it.worst().is_some_and(|it| it > Verdict::Asks)
        })
        .collect();
    let columns: Vec<usize> = (0..clients.len())
        .filter(|number: &usize| rows.iter().any(|it| it.diagnoses[*number].path.is_some()))
        .collect();
    printer.line("")?;
    if !columns.is_empty() {
        let most = printer.width.map_or(WIDEST, |it| (it / 3).clamp(8, WIDEST));
        let names: Vec<String> = rows.iter().map(|it| row_name(it, &rows, most)).collect();
        let widest = names.iter().map(|it| it.width()).max().unwrap_or(0);
        let fits = width_beside(widest + 2, printer).unwrap_or(usize::MAX);
        let gap = if columns.len() * 2 <= fits { " " } else { "" };
        for part in columns.chunks(fits / (1 + gap.len())) {
            let head: Vec<String> =
                part.iter().map(|it| column_letter(&columns, *it).to_string()).collect();
            printer.line(format_args!("{}  {}", " ".repeat(widest), head.join(gap)))?;
            for (skill, name) in rows.iter().zip(&names) {
                let pad = " ".repeat(widest - name.width());
                let marks: Vec<String> = part
                    .iter()
                    .map(|it| painted_sign(skill.diagnoses[*it].verdict, printer))
                    .collect();
                printer.line(format_args!("{}{pad}  {}", printer.name(name), marks.join(gap)))?;
            }
            printer.line("")?;
        }
        let legend: Vec<String> = columns
            .iter()
            .map(|it| unbroken(&format!("{} {}", column_letter(&columns, *it), clients[*it].label)))
            .collect();
        print_wrapped(&legend.join(", "), 0, printer)?;
        let marks: Vec<String> = Verdict::ALL
            .iter()
            .map(|it| unbroken(&format!("{} {it}", verdict_sign(*it))))
            .collect();
        print_wrapped(&marks.join(", "), 0, printer)?;
    }
    match skills.len() - rows.len() {
        0 => Ok(()),
        well => print_wrapped(
            &format!(
                "{} not shown: loaded by every client that reads the directory",
                count(well, "skill")
            ),
            0,
            printer,
        ),
    }
}

/// Returns the label of a row: the name of the skill, or the end of its path if others share that
/// name. The rows are sorted by name.
fn row_name(skill: &ExaminedSkill, rows: &[&ExaminedSkill], most: usize) -> String {
    let from = rows.partition_point(|it| it.name < skill.name);
    if rows.get(from + 1).is_none_or(|it| it.name != skill.name) {
        return safe::cut(&safe::line(&skill.name), most);
    }
    let folder = skill.path.parent().unwrap_or(&skill.path).to_string_lossy();
    let folder = safe::line(&folder);
    let mut tail = folder.char_indices().map(|it| &folder[it.0..]);
    tail.find(|it| it.width() < most).map(|it| format!("…{it}")).unwrap_or_default()
}

/// Returns the letter of a column.
fn column_letter(columns: &[usize], column: usize) -> char {
    let at = columns.iter().position(|it| *it == column).unwrap_or_default();
    let letters = ('A'..='Z').chain('a'..='z').chain('0'..='9');
    letters.cycle().nth(at).unwrap_or('?')
}

fn verdict_sign(verdict: Verdict) -> char {
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

fn painted_sign(verdict: Verdict, printer: &Printer) -> String {
    paint(&verdict_sign(verdict).to_string(), verdict_style(verdict), printer.colored)
}
