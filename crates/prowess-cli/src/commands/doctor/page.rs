//! A checkup as text, wrapped to the terminal.

use std::{env, path::Path};

use anyhow::Result;
use prowess::{
    Checkup, Client, CrowdedClient, Diagnosis, ExaminedSkill, Verdict, VerdictReason, common_spot,
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    super::count,
    faults::print_faults,
    lines::{INDENT, print_with_verdict, print_wrapped, unbroken, width_beside, wrap_words},
};
use crate::{context, needs::SkillNeeds, printer::Printer, safe};

/// The number of clients named by default that look elsewhere.
const NAMED: usize = 8;

/// Prints one skill: the clients that find it, and their verdicts.
pub(super) fn print_skill(
    skill: &ExaminedSkill,
    crowded: &[CrowdedClient],
    printer: &mut Printer,
) -> Result<()> {
    print_title(skill, printer)?;
    printer.line("")?;
    let found = skill
        .diagnoses
        .iter()
        .filter(|it: &&Diagnosis| it.path.is_some() && it.verdict != Verdict::Unseen);
    let verdicts: Vec<Verdict> = found.map(|it| it.verdict).collect();
    let is_unknown = verdicts.iter().all(|it| *it == Verdict::Unknown);
    let words = match verdicts.len() {
        1 if is_unknown => {
            "1 client reads this folder; whether it loads the skill is unknown".to_owned()
        }
        many @ 2.. if is_unknown => {
            format!("{many} clients read this folder; whether they load the skill is unknown")
        }
        0 => "no client finds it".to_owned(),
        1 => format!("1 client finds it: {}", count_verdicts(&verdicts, verdict_verb)),
        many => format!("{many} clients find it: {}", count_verdicts(&verdicts, verdict_verb)),
    };
    print_wrapped(&words, 0, printer)?;
    printer.line("")?;
    let (frameworks, others): (Vec<&Diagnosis>, Vec<&Diagnosis>) =
        skill.diagnoses.iter().partition(|it| it.client.is_told_where());
    groups(skill, &others).iter().try_for_each(|it| it.show(printer))?;
    let clients = skill.diagnoses.iter().filter(|it| it.is_elsewhere()).map(|it| it.client);
    print_elsewhere(&clients.collect::<Vec<_>>(), skill.in_project, printer)?;
    let crowded = crowded.iter().filter(|it| {
        skill
            .diagnoses
            .iter()
            .find(|diagnosis: &&Diagnosis| diagnosis.client.name == it.client.name)
            .is_some_and(|it| it.verdict <= Verdict::Cut)
    });
    crowded.into_iter().try_for_each(|it| print_crowded(it, printer))?;
    if !frameworks.is_empty() {
        printer.line("")?;
        print_wrapped("in frameworks, whose users choose the directory:", 0, printer)?;
        groups(skill, &frameworks).iter().try_for_each(|it| it.show(printer))?;
    }
    Ok(())
}

/// Prints the needs of a skill, and those that are missing.
pub(super) fn print_needs(name: &str, needs: &SkillNeeds, printer: &mut Printer) -> Result<()> {
    let lines = [
        needs.describe_needs(),
        needs.describe_missing(),
        needs.hint(name),
        needs.install_programs(),
    ];
    let lines: Vec<&String> = lines.iter().flatten().collect();
    if lines.is_empty() {
        return Ok(());
    }
    printer.line("")?;
    lines.into_iter().try_for_each(|it| print_wrapped(it, 0, printer))
}

pub(super) fn print_title(skill: &ExaminedSkill, printer: &mut Printer) -> Result<()> {
    printer.line(printer.name(&safe::line(&skill.name)))?;
    printer.line(printer.dim(&safe::line(&skill.path.to_string_lossy())))
}

/// Clients with the same verdict for the same reasons.
pub(super) struct Group<'a> {
    skill: &'a ExaminedSkill,
    clients: Vec<&'static Client>,
    verdict: Verdict,
    notes: Vec<&'a VerdictReason>,
}

/// Groups the verdicts on a skill, the worst first; clients that do not read its directory are left
/// out.
pub(super) fn groups<'a>(skill: &'a ExaminedSkill, diagnoses: &[&'a Diagnosis]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for Diagnosis { client, verdict, notes, .. } in diagnoses.iter().filter(|it| !it.is_elsewhere())
    {
        let mut notes: Vec<&VerdictReason> =
            notes.iter().filter(|it| it.verdict > Verdict::Loads).collect();
        notes.dedup_by(|a, b| a.reason == b.reason);
        match groups.iter_mut().find(|it| {
            let reasons = it.notes.iter().map(|it| &it.reason);
            it.verdict == *verdict && reasons.eq(notes.iter().map(|it| &it.reason))
        }) {
            Some(group) => group.clients.push(client),
            None => groups.push(Group { skill, clients: vec![client], verdict: *verdict, notes }),
        }
    }
    groups.sort_by_key(|it| std::cmp::Reverse(it.verdict));
    groups
}

impl Group<'_> {
    pub(super) fn show(&self, printer: &mut Printer) -> Result<()> {
        print_with_verdict(self.verdict, &join_labels(&self.clients), printer)?;
        let mut fixes: Vec<String> = Vec::new();
        for note in &self.notes {
            print_wrapped(&note.reason, INDENT, printer)?;
            let Some(fix) = &note.fix else { continue };
            let fix = match note.is_fixable {
                true => format!("{fix}: `{}`", fix_command(self.skill.path.parent())),
                false => fix.clone(),
            };
            fixes.extend(Some(fix).filter(|it| !fixes.contains(it)));
        }
        fixes.iter().try_for_each(|it| print_wrapped(&format!("→ {it}"), INDENT, printer))
    }
}

/// Returns the command that fixes skills, on one line so that it can be copied.
pub(super) fn fix_command<'a>(paths: impl IntoIterator<Item = &'a Path>) -> String {
    let paths: Vec<String> = paths.into_iter().map(as_argument).collect();
    unbroken(&format!("prowess check {} --fix", paths.join(" ")))
}

/// Returns a path as an argument of a command typed here.
fn as_argument(path: &Path) -> String {
    let here = env::current_dir().ok();
    let within = here.as_deref().and_then(|it| path.strip_prefix(it).ok());
    let path = within.filter(|it| !it.as_os_str().is_empty()).unwrap_or(path).to_string_lossy();
    context::shell_quote(&path)
}

pub(super) fn join_labels(clients: &[&'static Client]) -> String {
    clients.iter().map(|it| unbroken(it.label)).collect::<Vec<_>>().join(", ")
}

/// Prints the clients that do not read the directory of a skill, and how to reach most of them.
fn print_elsewhere(
    clients: &[&'static Client],
    in_project: bool,
    printer: &mut Printer,
) -> Result<()> {
    if clients.is_empty() {
        return Ok(());
    }
    let named = if printer.verbose { clients.len() } else { NAMED };
    let more = match clients.len().saturating_sub(named) {
        0 => String::new(),
        more => format!(" and {more} more (-v names them)"),
    };
    let named = join_labels(&clients[..named.min(clients.len())]);
    let text = match clients.len() {
        1 => format!("1 client does not read this directory: {named}"),
        many => format!("{many} clients do not read this directory: {named}{more}"),
    };
    print_with_verdict(Verdict::Unseen, &text, printer)?;
    match copy_advice(clients, in_project) {
        Some(advice) => print_wrapped(&format!("→ {advice}"), INDENT, printer),
        None => Ok(()),
    }
}

/// Returns the place where a copy would reach most of some clients, and how many a link would
/// reach.
fn copy_advice(clients: &[&'static Client], in_project: bool) -> Option<String> {
    let (path, reached) = common_spot(clients, in_project)?;
    let whom = match (reached.len(), clients.len()) {
        (1, 1) => "reaches it".to_owned(),
        (2, 2) => "reaches both".to_owned(),
        (few, all) if few == all => format!("reaches all {all}"),
        (few, all) => format!("reaches {few} of these {all}"),
    };
    let linked = reached.iter().filter(|it| it.follows_links(in_project)).count();
    Some(match linked {
        0 => format!("a copy in `{path}` {whom}"),
        all if all == reached.len() => format!("a copy or a link in `{path}` {whom}"),
        some => format!("a copy in `{path}` {whom}; {some} of them are known to follow a link"),
    })
}

/// Prints all skills: the verdicts of each client, and the skills that some client does not load.
pub(super) fn print_overview(
    checkup: &Checkup,
    clients: &[&'static Client],
    is_asked: bool,
    printer: &mut Printer,
) -> Result<()> {
    let Checkup { skills, crowded, .. } = checkup;
    if skills.is_empty() {
        print_wrapped("no skills in any client's directories", 0, printer)?;
        return print_wrapped(
            "→ name a directory, as in `prowess doctor --dir skills`",
            0,
            printer,
        );
    }
    let mut readers: Vec<(&Client, Vec<Verdict>)> = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        let diagnoses = skills.iter().map(|it| &it.diagnoses[number]);
        let found = diagnoses.filter(|it| it.path.is_some());
        readers.push((client, found.map(|it| it.verdict).collect()));
    }
    readers.retain(|it| !it.1.is_empty());
    let words = format!(
        "{}; {} of their directories",
        count(skills.len(), "skill"),
        match readers.len() {
            0 => "no client reads one".to_owned(),
            1 => "1 client reads some".to_owned(),
            many => format!("{many} clients read some"),
        },
    );
    print_wrapped(&words, 0, printer)?;
    printer.line("")?;
    let widest = readers.iter().map(|it| it.0.label.width()).max().unwrap_or(0);
    for (client, verdicts) in &readers {
        let pad = " ".repeat(widest - client.label.width() + 2);
        let lines = wrap_words(
            &count_verdicts(verdicts, verdict_participle),
            width_beside(widest + 2, printer),
        );
        for (number, line) in lines.iter().enumerate() {
            let label = match number {
                0 => format!("{}{pad}", client.label),
                _ => " ".repeat(widest + 2),
            };
            printer.line(format_args!("{label}{line}"))?;
        }
    }
    crowded.iter().try_for_each(|it| print_crowded(it, printer))?;
    let unfound = skills.iter().filter(|it| it.worst().is_none()).count();
    if unfound > 0 {
        let is = if unfound == 1 { "is" } else { "are" };
        let many = count(unfound, "skill");
        print_wrapped(&format!("{many} {is} in a directory that none of them reads"), 0, printer)?;
    }
    if is_asked && skills.iter().flat_map(|it| &it.diagnoses).any(Diagnosis::is_elsewhere) {
        printer.line("")?;
        print_overlooked(skills, clients, printer)?;
    }
    print_faults(checkup, printer)
}

/// Prints the skills that the named clients do not read.
fn print_overlooked(
    skills: &[ExaminedSkill],
    clients: &[&'static Client],
    printer: &mut Printer,
) -> Result<()> {
    for (number, client) in clients.iter().enumerate() {
        let missed = skills.iter().filter(|it| it.diagnoses[number].is_elsewhere());
        let missed: Vec<&ExaminedSkill> = missed.collect();
        let Some(first) = missed.first() else { continue };
        let many = count(missed.len(), "skill");
        let text = format!("{} does not read the directory of {many}", client.label);
        print_with_verdict(Verdict::Unseen, &text, printer)?;
        if let Some(advice) = copy_advice(&[client], first.in_project) {
            print_wrapped(&format!("→ {advice}"), INDENT, printer)?;
        }
    }
    Ok(())
}

/// Joins the number of each verdict in a few words, such as `3 loaded, 1 refused`.
fn count_verdicts(verdicts: &[Verdict], word: fn(Verdict, usize) -> &'static str) -> String {
    let words = Verdict::ALL.iter().filter_map(|verdict| {
        let count = verdicts.iter().filter(|it| *it == verdict).count();
        (count > 0).then(|| unbroken(&format!("{count} {}", word(*verdict, count))))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the verb for a verdict of some clients.
fn verdict_verb(verdict: Verdict, count: usize) -> &'static str {
    let is_one = count == 1;
    match verdict {
        Verdict::Loads if is_one => "loads it",
        Verdict::Loads => "load it",
        Verdict::Asks if is_one => "loads it once the folder is trusted",
        Verdict::Asks => "load it once the folder is trusted",
        Verdict::Cut if is_one => "truncates it",
        Verdict::Cut => "truncate it",
        Verdict::Hidden if is_one => "hides it",
        Verdict::Hidden => "hide it",
        Verdict::Unknown => "unknown",
        Verdict::Shadowed if is_one => "loads another skill with its name",
        Verdict::Shadowed => "load another skill with its name",
        Verdict::Refused if is_one => "refuses it",
        Verdict::Refused => "refuse it",
        Verdict::Unseen if is_one => "overlooks it",
        Verdict::Unseen => "overlook it",
    }
}

/// Returns the participle for a verdict on skills.
fn verdict_participle(verdict: Verdict, _: usize) -> &'static str {
    match verdict {
        Verdict::Loads => "loaded",
        Verdict::Asks => "once trusted",
        Verdict::Cut => "truncated",
        Verdict::Hidden => "hidden",
        Verdict::Unknown => "unknown",
        Verdict::Shadowed => "shadowed",
        Verdict::Refused => "refused",
        Verdict::Unseen => "overlooked",
    }
}

/// Prints that a client cannot list all skills.
fn print_crowded(crowded: &CrowdedClient, printer: &mut Printer) -> Result<()> {
    let CrowdedClient { client, skills, characters, room, .. } = crowded;
    let text = format!(
        "{} has room for about {room} characters of names and descriptions, and its {} have {characters}: some are shortened or left out",
        client.label,
        count(*skills, "skill"),
    );
    print_wrapped(&text, 0, printer)?;
    print_wrapped("→ shorten descriptions, or move rarely used skills elsewhere", 0, printer)
}
