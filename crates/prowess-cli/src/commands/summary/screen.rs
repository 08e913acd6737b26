//! The summary as text, folded until it fits on the screen.

use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use prowess::{
    Client, DirectoryReader, Location, SkillTrouble, Status, Surroundings, Symptom, Verdict,
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    super::{
        count,
        doctor::{unbroken, wrap_words},
    },
    Advice, Summary,
};
use crate::{
    context::OF_PLUGINS,
    printer::{DIM, NAME, Printer, paint},
    safe,
    surroundings::short_path,
};

/// The widest line.
const WIDEST: usize = 100;
/// The number of lines if the height of the screen is unknown.
const LINES: usize = 40;
/// The number of agents named in one place before the others are counted.
const NAMED: usize = 4;
/// The widest column of names.
const COLUMN: usize = 40;

/// The suggested commands if nothing is wrong.
const NEXT: &[(&str, &str)] = &[
    ("prowess find 'review my changes'", "find the skill for a request"),
    ("prowess check", "check them against the specification"),
    ("prowess lab", "find skills that compete for the same requests"),
];
/// The suggested commands if there is no skill.
const FIRST: &[(&str, &str)] = &[
    ("prowess new my-skill --dir .agents/skills", "create one where most agents look"),
    ("prowess list", "see the bundled skills"),
    ("prowess --dir DIR", "look in another directory"),
];

/// The suggested command if the named directories have no skill.
const EVERYTHING: &[(&str, &str)] = &[("prowess", "see everything agents find here")];

/// The level of detail before the rest is folded.
#[derive(Clone, Copy)]
struct Detail {
    locations: usize,
    /// Lines of names in a location.
    names: usize,
    /// Problems in a location.
    troubles: usize,
    /// Whether there are blank lines between locations.
    is_airy: bool,
}

const ALL: Detail =
    Detail { locations: usize::MAX, names: usize::MAX, troubles: usize::MAX, is_airy: true };

/// From the most detail to the least.
const DETAILS: &[Detail] = &[
    Detail { locations: 12, names: 3, troubles: 6, is_airy: true },
    Detail { locations: 12, names: 2, troubles: 4, is_airy: true },
    Detail { locations: 12, names: 1, troubles: 3, is_airy: true },
    Detail { locations: 12, names: 1, troubles: 2, is_airy: false },
    Detail { locations: 10, names: 1, troubles: 0, is_airy: false },
    Detail { locations: 8, names: 0, troubles: 0, is_airy: false },
    Detail { locations: 5, names: 0, troubles: 0, is_airy: false },
    Detail { locations: 3, names: 0, troubles: 0, is_airy: false },
    Detail { locations: 1, names: 0, troubles: 0, is_airy: false },
];

/// Prints the summary, with as much detail as fits on the screen.
pub(super) fn show(summary: &Summary<'_>, printer: &mut Printer) -> Result<()> {
    // The line of the prompt is on the screen too.
    let height = printer.height.map_or(LINES, |it| it.saturating_sub(1));
    let details: &[Detail] = if printer.verbose { &[ALL] } else { DETAILS };
    let mut drawn = Vec::new();
    for detail in details {
        let width = printer.width.unwrap_or(WIDEST).min(WIDEST);
        let mut canvas = Canvas {
            width,
            colored: printer.colored,
            detail: *detail,
            is_folded: false,
            lines: Vec::new(),
        };
        canvas.draw(summary);
        drawn = canvas.lines;
        if drawn.len() <= height {
            break;
        }
    }
    drawn.iter().try_for_each(|it| printer.line(it))
}

/// The lines drawn with some level of detail.
struct Canvas {
    width: usize,
    colored: bool,
    detail: Detail,
    is_folded: bool,
    lines: Vec<String>,
}

impl Canvas {
    fn draw(&mut self, summary: &Summary<'_>) {
        let checkup = summary.checkup;
        self.draw_head(summary);
        // The locations with most skills are shown, if there is no room for all.
        let mut numbers: Vec<usize> = (0..checkup.locations.len()).collect();
        numbers.sort_by_key(|it| std::cmp::Reverse(checkup.locations[*it].skills.len()));
        let rest = numbers.split_off(self.detail.locations.min(numbers.len()));
        numbers.sort_unstable();
        for (number, at) in numbers.iter().enumerate() {
            if number == 0 || self.detail.is_airy {
                self.push_line("");
            }
            self.draw_location(&checkup.locations[*at], summary);
        }
        if !rest.is_empty() {
            self.is_folded = true;
            let skills = rest.iter().map(|it| checkup.locations[*it].skills.len()).sum();
            let many = match rest.len() {
                1 => "1 more directory".to_owned(),
                many => format!("{many} more directories"),
            };
            self.draw_text(&format!("{many} with {}", count(skills, "skill")), 0, DIM);
        }
        self.draw_remarks(summary);
        self.push_line("");
        let in_plugins: &[(&str, &str)] = match summary.in_plugins {
            0 => &[],
            _ => &[("prowess list .", "list the skills of the plugins here")],
        };
        let (next, typed) = match checkup.locations.is_empty() {
            true if !summary.named.is_everything() => (EVERYTHING.to_vec(), ""),
            true => ([in_plugins, FIRST].concat(), ""),
            false => (NEXT.to_vec(), &*summary.typed),
        };
        if checkup.locations.is_empty() || summary.advice.is_empty() {
            let next = next.iter().map(|(command, why)| Advice {
                command: format!("{command}{typed}"),
                why: (*why).to_owned(),
            });
            self.draw_commands("What to do next:", &next.collect::<Vec<_>>());
        } else {
            self.draw_commands("What would help most:", &summary.advice);
        }
        self.push_line("");
        let mut hints: Vec<&str> = Vec::new();
        if self.is_folded {
            hints.push("`prowess -v` shows everything");
        }
        if !checkup.locations.is_empty() {
            hints.push("`prowess doctor` explains why");
        }
        hints.push("`prowess --help` lists commands");
        let hints: Vec<String> = hints.iter().map(|it| unbroken(it)).collect();
        self.draw_text(&hints.join(", "), 0, DIM);
    }

    /// Draws the number of skills, and the agents.
    fn draw_head(&mut self, summary: &Summary<'_>) {
        let Summary { checkup, clients, is_detected, .. } = summary;
        let skills = count(summary.counted.found, "skill");
        let rest = summary.counted.remainder();
        let line = match checkup.locations.len() {
            0 if !summary.named.directories.is_empty() => {
                let all: Vec<String> = summary
                    .named
                    .directories
                    .iter()
                    .map(|it: &PathBuf| unbroken(&summary_path(it, summary)))
                    .collect();
                format!("No skills found in {}", all.join(", "))
            }
            0 if !summary.named.is_everything() => "No skill with that name found".to_owned(),
            0 => "No skills found, in this project or in any agent's directory".to_owned(),
            1 => format!("{skills} in 1 directory{rest}"),
            many => format!("{skills} in {many} directories{rest}"),
        };
        self.draw_text(&line, 0, NAME);
        match is_detected {
            true => {
                let all = clients.iter().map(|it| unbroken(it.label)).collect::<Vec<_>>();
                self.draw_text(&format!("Installed agents: {}", all.join(", ")), 0, Style::new());
            }
            false => {
                let all = clients.len();
                let text = match checkup.locations.is_empty() {
                    true => "No installed agent was detected".to_owned(),
                    false => {
                        format!(
                            "No installed agent was detected, so all {all} known ones are included"
                        )
                    }
                };
                self.draw_text(&text, 0, Style::new());
            }
        }
    }

    /// Draws one directory: its skills, the agents that load them, and the problems of the others.
    fn draw_location(&mut self, location: &Location, summary: &Summary<'_>) {
        let checkup = summary.checkup;
        let many = count(location.skills.len(), "skill");
        let room = self.width.saturating_sub(many.width() + 2);
        let path = path_end(&summary_path(&location.directory, summary), room);
        let many = self.paint(&many, DIM);
        self.push_line(&format!("{}  {many}", self.paint(&path, NAME)));
        if !location.aliases.is_empty() {
            let all = location.aliases.iter().map(|it| unbroken(&summary_path(it, summary)));
            let all: Vec<String> = all.collect();
            self.draw_text(&format!("the same directory as {}", all.join(", ")), 2, DIM);
        }
        let names = location.skills(checkup).map(|it| {
            let name = safe::line(&it.name);
            match it.status {
                Status::Active => name.into_owned(),
                status => format!("{name} ({})", status.as_str()),
            }
        });
        self.draw_names(&names.collect::<Vec<_>>());
        self.draw_readers(location, summary);
        let troubles = location.troubles(checkup);
        let shown = self.detail.troubles.min(troubles.len());
        let widest = troubles[..shown].iter().map(|it| safe::line(&it.skill.name).width()).max();
        let column = widest.unwrap_or(0).min(COLUMN).min(self.width * 2 / 5);
        troubles[..shown].iter().for_each(|it| self.draw_trouble(it, column));
        self.draw_folded_troubles(&troubles[shown..], shown > 0);
    }

    /// Draws the names of skills, in as many lines as allowed.
    fn draw_names(&mut self, names: &[String]) {
        if self.detail.names == 0 {
            self.is_folded |= !names.is_empty();
            return;
        }
        let room = self.width.saturating_sub(2);
        let names: Vec<String> = names.iter().map(|it| unbroken(&safe::cut(it, room))).collect();
        // As many as fit: more names never take fewer lines.
        let (mut low, mut high) = (1, names.len());
        while low < high {
            let middle = (low + high).div_ceil(2);
            let lines = wrap_names(&names, middle, room);
            if lines.len() <= self.detail.names { low = middle } else { high = middle - 1 }
        }
        self.is_folded |= low < names.len();
        for line in wrap_names(&names, low, room) {
            self.push_line(&format!("  {line}"));
        }
    }

    /// Draws the agents that load the skills of a directory.
    fn draw_readers(&mut self, location: &Location, summary: &Summary<'_>) {
        let all = location.skills.len();
        let readers = location.readers(summary.checkup);
        let (mut full, mut part) = (Vec::new(), Vec::new());
        let (mut unknown, mut none) = (Vec::new(), Vec::new());
        for DirectoryReader { client, loaded, hidden, unknown: undecided, .. } in &readers {
            let label = client.label;
            match (*loaded, *hidden) {
                (0, _) if *undecided > 0 => unknown.push(label.to_owned()),
                (loaded, 0) if loaded == all => full.push(label.to_owned()),
                (loaded, hidden) if loaded == all => {
                    full.push(format!("{label} ({hidden} hidden)"));
                }
                (0, _) => none.push(label.to_owned()),
                (loaded, 0) => part.push(format!("{label} ({loaded} of {all})")),
                (loaded, hidden) => {
                    part.push(format!("{label} ({loaded} of {all}, {hidden} hidden)"));
                }
            }
        }
        let is_well = part.is_empty() && none.is_empty() && !full.is_empty();
        let strangers = match summary.is_detected {
            true => location.strangers(summary.checkup),
            false => Vec::new(),
        };
        let clauses = [
            ("loaded by", "loaded by", self.join_words(full)),
            ("partly loaded by", "partly by", self.join_words(part)),
            ("not loaded by", "not by", self.join_words(none)),
            ("may be loaded by", "maybe by", self.join_words(unknown)),
            ("not read by", "not read by", self.join_labels(&strangers)),
        ];
        let mut text = String::new();
        for (first, further, whom) in clauses.iter().filter(|it| !it.2.is_empty()) {
            let is_first = text.is_empty();
            let verb = if is_first { first } else { further };
            text.push_str(&format!("{}{verb} {whom}", if is_first { "" } else { "; " }));
        }
        if readers.is_empty() {
            let whom = if summary.is_detected { "installed" } else { "known" };
            text = format!("not read by any {whom} agent");
        }
        let color = if is_well { AnsiColor::Green } else { AnsiColor::Yellow };
        self.draw_text(&text, 2, color.on_default());
    }

    /// Draws the verdict on one skill, and its reason.
    fn draw_trouble(&mut self, trouble: &SkillTrouble<'_>, column: usize) {
        let SkillTrouble { skill, verdict, clients, note, .. } = trouble;
        let name = safe::cut(&safe::line(&skill.name), column);
        let pad = " ".repeat(column.saturating_sub(name.width()));
        let reason = note.map(|it| it.symptom.map_or_else(|| SHADOWED.to_owned(), Symptom::about));
        let reason = reason.map(|it| format!(": {it}")).unwrap_or_default();
        let by = if *verdict == Verdict::Unknown { "in" } else { "by" };
        let fate = match (verdict, note.and_then(|it| it.symptom)) {
            (Verdict::Hidden, Some(Symptom::NotForPeople)) => "loaded, but hidden from people",
            (Verdict::Hidden, _) => "loaded, but hidden from the model",
            _ => verdict_participle(*verdict),
        };
        let text = format!("{fate} {by} {}{reason}", self.join_labels(clients));
        let indent = column + 6;
        let lines = wrap_words(&text, Some(self.width.saturating_sub(indent).max(10)));
        for (number, line) in lines.iter().enumerate() {
            let line = match number {
                0 => {
                    format!(
                        "  {} {name}{pad}  {line}",
                        self.paint(verdict_mark(*verdict), verdict_style(*verdict))
                    )
                }
                _ => format!("{}{line}", " ".repeat(indent)),
            };
            self.push_line(&line);
        }
    }

    /// Draws the number of hidden problems, by kind.
    fn draw_folded_troubles(&mut self, troubles: &[SkillTrouble<'_>], is_rest: bool) {
        if troubles.is_empty() {
            return;
        }
        self.is_folded = true;
        let mut words: Vec<(&'static str, Vec<&Path>)> = Vec::new();
        for trouble in troubles {
            let (word, path) = (verdict_participle(trouble.verdict), &*trouble.skill.path);
            match words.iter_mut().find(|it| it.0 == word) {
                Some(known) if known.1.last() == Some(&path) => {}
                Some(known) => known.1.push(path),
                None => words.push((word, vec![path])),
            }
        }
        let texts = words.iter().enumerate().map(|(number, (word, paths))| {
            let more = if is_rest { " more" } else { "" };
            let what = match (number, paths.len()) {
                (0, 1) => " skill",
                (0, _) => " skills",
                _ => "",
            };
            unbroken(&format!("{}{more}{what} {word}", paths.len()))
        });
        let texts: Vec<String> = texts.collect();
        self.draw_text(&texts.join(", "), 2, AnsiColor::Yellow.on_default());
    }

    /// Draws the remarks that do not belong to one directory.
    fn draw_remarks(&mut self, summary: &Summary<'_>) {
        let checkup = summary.checkup;
        let mut texts: Vec<String> = Vec::new();
        if summary.in_plugins > 0 {
            let skills = count(summary.in_plugins, "skill");
            texts.push(format!("{skills} in {OF_PLUGINS} here, where agents do not look: `prowess list .` lists them"));
        }
        for it in checkup.crowded.iter().filter(|_| summary.is_detected) {
            texts.push(format!(
                "{} shows about {} characters of names and descriptions, and its {} have {}: some are shortened",
                it.client.label,
                it.room,
                count(it.skills, "skill"),
                it.characters,
            ));
        }
        match checkup.findings.len() {
            0 => {}
            1 => texts.push("1 file or directory cannot be examined".to_owned()),
            many => texts.push(format!("{many} files or directories cannot be examined")),
        }
        if let Some(plugins) = &summary.plugins {
            let Summary { surroundings, .. } = summary;
            let plugins = short_path(plugins, &surroundings.cwd, surroundings.home.as_deref());
            texts.push(format!("skills of plugins in {plugins} are not examined"));
        }
        if !texts.is_empty() && self.detail.is_airy {
            self.push_line("");
        }
        for text in texts {
            self.draw_text(&safe::line(&text), 0, DIM);
        }
    }

    /// Draws commands, each on one line so that it can be copied, with their purpose.
    fn draw_commands(&mut self, title: &str, all: &[Advice]) {
        self.push_line(&self.paint(title, NAME));
        let shown: Vec<String> =
            all.iter().map(|it| safe::line(&it.command).into_owned()).collect();
        let widest = shown.iter().map(|it| it.width()).max().unwrap_or(0);
        let longest = all.iter().map(|it| it.why.width()).max().unwrap_or(0);
        let is_beside = 2 + widest + 3 + longest <= self.width;
        for (command, advice) in shown.iter().zip(all) {
            let bold = self.paint(command, AnsiColor::Cyan.on_default());
            if is_beside {
                let pad = " ".repeat(widest - command.width() + 3);
                let why = self.paint(&safe::line(&advice.why), DIM);
                self.push_line(&format!("  {bold}{pad}{why}"));
            } else {
                self.push_line(&format!("  {bold}"));
                if self.detail.is_airy {
                    self.draw_text(&safe::line(&advice.why), 6, DIM);
                }
            }
        }
    }

    /// Joins the labels of clients.
    fn join_labels(&self, clients: &[&'static Client]) -> String {
        self.join_words(clients.iter().map(|it| it.label.to_owned()).collect())
    }

    /// Joins words; of many, the first and the number of the others.
    fn join_words(&self, words: Vec<String>) -> String {
        let shown = match self.detail.names > 3 || words.len() <= NAMED + 1 {
            true => words.len(),
            false => NAMED,
        };
        let mut shown_words: Vec<String> = words[..shown].iter().map(|it| unbroken(it)).collect();
        if words.len() > shown {
            shown_words.push(unbroken(&format!("{} more", words.len() - shown)));
        }
        match shown_words.pop() {
            Some(last) if !shown_words.is_empty() => {
                format!("{} and {last}", shown_words.join(", "))
            }
            last => last.unwrap_or_default(),
        }
    }

    /// Draws a safe text, wrapped.
    fn draw_text(&mut self, text: &str, indent: usize, style: Style) {
        let room = self.width.saturating_sub(indent).max(10);
        for line in wrap_words(text, Some(room)) {
            let line = format!("{}{}", " ".repeat(indent), self.paint(&line, style));
            self.push_line(&line);
        }
    }

    fn push_line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    fn paint(&self, text: &str, style: Style) -> String {
        paint(text, style, self.colored)
    }
}

/// Returns the lines of the first names and the number of the others.
fn wrap_names(names: &[String], shown: usize, width: usize) -> Vec<String> {
    let more = match names.len() - shown {
        0 => String::new(),
        more => unbroken(&format!(" and {more} more")).replacen('\u{a0}', " ", 1),
    };
    wrap_words(&format!("{}{more}", names[..shown].join(", ")), Some(width))
}

/// Returns a shortened path, made safe for a terminal.
fn summary_path(path: &Path, summary: &Summary<'_>) -> String {
    let Surroundings { cwd, home, .. } = summary.surroundings;
    safe::line(&short_path(path, cwd, home.as_deref())).into_owned()
}

/// The reason of a skill that shares its name.
const SHADOWED: &str = "another skill with the same name comes first";

/// Returns the participle for a verdict other than a full load.
fn verdict_participle(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Refused | Verdict::Unseen => "dropped",
        Verdict::Shadowed => "shadowed",
        Verdict::Cut => "truncated",
        Verdict::Hidden => "hidden",
        Verdict::Loads | Verdict::Asks => "loaded",
        Verdict::Unknown => "may not load",
    }
}

fn verdict_mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Refused | Verdict::Unseen => "x",
        Verdict::Shadowed => "=",
        Verdict::Unknown => "?",
        Verdict::Cut => "~",
        _ => "-",
    }
}

fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Refused | Verdict::Unseen | Verdict::Shadowed => {
            AnsiColor::Red.on_default().bold()
        }
        Verdict::Cut | Verdict::Unknown => AnsiColor::Yellow.on_default(),
        _ => DIM,
    }
}

/// Returns the end of a path that is too wide.
fn path_end(path: &str, width: usize) -> String {
    if path.width() <= width {
        return path.to_owned();
    }
    let mut tails = path.char_indices().map(|it| &path[it.0..]);
    tails.find(|it| it.width() < width).map(|it| format!("…{it}")).unwrap_or_default()
}
