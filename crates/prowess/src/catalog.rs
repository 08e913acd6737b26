//! The catalog: what a model is shown of a library before it has asked for anything.

use std::{borrow::Cow, fmt::Write as _};

use crate::{
    disclose::description,
    library::Library,
    shorten::{defused, one_line, shortened},
    skill::Skill,
    tokens::Vocabulary,
};

/// How many characters of a description are shown at the most; the specification allows no more.
const MAX_DESCRIPTION: usize = 1024;
/// Fewer hundredths of a token of a description say nothing.
const LEAST: usize = 1200;

/// How a catalog is written.
#[derive(Debug, Clone)]
pub struct Cataloging<'c> {
    /// In which form.
    pub format: Format,
    /// How many tokens it may take; any number when not given.
    pub budget: Option<usize>,
    /// Whose tokens they are.
    pub vocabulary: Vocabulary,
    /// How a skill is taken up: what stands above the list.
    pub activation: &'c str,
    /// How the skills are found that are left out: what stands behind their number.
    pub search: &'c str,
}

/// The form of a catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// A line with the name of each: about six tokens a skill.
    Names,
    /// A line with name and description of each.
    #[default]
    List,
    /// `<available_skills>`, with name, description and location of each.
    Xml,
}

/// A catalog, and what became of the skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// What the model is shown; empty when there is nothing to show.
    pub text: String,
    /// How long it is.
    pub tokens: usize,
    /// How many skills it names.
    pub shown: usize,
    /// How many of them have lost some of their description.
    pub shortened: usize,
    /// How many are left out.
    pub dropped: usize,
}

impl Default for Cataloging<'_> {
    fn default() -> Self {
        Self {
            format: Format::default(),
            budget: None,
            vocabulary: Vocabulary::default(),
            activation: "When one of these skills fits the task, call `use_skill` with its name first and follow its instructions.",
            search: "search for them with `find_skills`",
        }
    }
}

/// Writes the catalog of a library: the active skills that a model may take up, in the order of
/// their names. With none there is no text at all.
///
/// A budget is never exceeded. Descriptions are shortened first, all to the same number of tokens,
/// so that short ones stay whole; then they are left out; and only then names are, from the end of the
/// alphabet, which the last line says. A skill that is added at the end changes nothing before
/// it unless the others have to be shortened further.
pub fn catalog(library: &Library, how: &Cataloging<'_>) -> Catalog {
    let skills: Vec<&Skill> = library.skills().filter(|it| it.manifest.is_for_models()).collect();
    if skills.is_empty() {
        return Catalog::default();
    }
    let drawn = how.drawn(&skills);
    let mut text = String::new();
    if !drawn.lines.is_empty() || !drawn.note.is_empty() {
        let (head, tail) = how.frame();
        text = head + &drawn.lines + tail + &drawn.note;
    }
    Catalog {
        tokens: how.vocabulary.count(&text),
        text,
        shown: drawn.shown,
        shortened: drawn.shortened,
        dropped: skills.len() - drawn.shown,
    }
}

/// Writes a skill as it stands in a system prompt.
pub fn block(name: &str, description: &str, content: &str) -> String {
    format!("## Skill: {name}\n{description}\n\n{content}")
}

/// What is shown of a skill, each part on one line.
struct Entry {
    name: String,
    description: String,
    location: String,
    is_cut: bool,
}

impl Entry {
    /// A skill without its description, which may stand in a file of its own.
    fn bare(skill: &Skill, format: Format) -> Self {
        let location = || {
            let folder = skill.absolute_folder();
            let file = skill.origin.path.file_name().unwrap_or_default();
            let path = folder.as_deref().unwrap_or(skill.folder()).join(file);
            one_line(&path.display().to_string())
        };
        Self {
            name: one_line(&skill.manifest.name),
            description: String::new(),
            location: if format == Format::Xml { location() } else { String::new() },
            is_cut: false,
        }
    }

    fn described(self, skill: &Skill) -> Self {
        let whole = one_line(&description(skill));
        let description = shortened(&whole, MAX_DESCRIPTION, |it| it.chars().count());
        let is_cut = matches!(description, Cow::Owned(_));
        Self { description: description.into_owned(), is_cut, ..self }
    }
}

/// The entries of a catalog as they are written.
#[derive(Default)]
struct Drawn {
    lines: String,
    shown: usize,
    shortened: usize,
    /// What is said about those that are left out.
    note: String,
}

impl Drawn {
    fn push(&mut self, line: &str, is_cut: bool) {
        self.lines.push_str(line);
        self.shown += 1;
        self.shortened += usize::from(is_cut);
    }
}

impl Cataloging<'_> {
    /// Writes as much as the budget allows. Each line is counted once, in hundredths of a token, which
    /// add up.
    fn drawn(&self, skills: &[&Skill]) -> Drawn {
        let count = |text: &str| self.vocabulary.hundredths(text);
        let mut drawn = Drawn::default();
        let (head, tail) = self.frame();
        let budget = self.budget.unwrap_or(usize::MAX).saturating_mul(100);
        let room = budget.saturating_sub(count(&head) + count(tail));
        let (mut entries, mut bare, mut least) = (Vec::new(), Vec::new(), Vec::new());
        let mut left = room;
        for skill in skills {
            let entry = Entry::bare(skill, self.format);
            let line = self.line(&entry, "");
            let cost = if self.budget.is_some() { count(&line) } else { 0 };
            let rest = left.checked_sub(cost);
            entries.push(entry);
            bare.push(line);
            least.push(cost);
            // However many there are, no more are looked at than there is room for.
            let Some(rest) = rest else { return self.dropped(&bare, &least, room, skills) };
            left = rest;
        }
        if self.format != Format::Names {
            let described = entries.into_iter().zip(skills).map(|(it, skill)| it.described(skill));
            entries = described.collect();
        }
        let whole = entries.iter().map(|it| self.line(it, &it.description));
        if self.budget.is_none() {
            whole.zip(&entries).for_each(|(line, it)| drawn.push(&line, it.is_cut));
            return drawn;
        }

        let lines: Vec<String> = whole.collect();
        let costs =
            lines.iter().zip(&least).map(|(line, least)| count(line).saturating_sub(*least));
        let costs: Vec<usize> = costs.collect();
        let cap = cap(&costs, left);
        for (number, entry) in entries.iter().enumerate() {
            if costs[number] <= cap {
                drawn.push(&lines[number], entry.is_cut);
            } else if cap < LEAST {
                drawn.push(&bare[number], true);
            } else {
                let cost = |it: &str| count(&self.line(entry, it)).saturating_sub(least[number]);
                let fitting = shortened(&entry.description, cap, cost);
                drawn.push(&self.line(entry, &fitting), true);
            }
        }
        drawn
    }

    /// As many names as there is room for beside the note about the others.
    fn dropped(&self, bare: &[String], least: &[usize], room: usize, skills: &[&Skill]) -> Drawn {
        let mut drawn = Drawn::default();
        let note = |dropped: usize| {
            let skills = if dropped == 1 { "skill is" } else { "skills are" };
            format!("{dropped} more {skills} not listed; {}.\n", self.search)
        };
        // The number of those left out has no more digits than that of all.
        let reserved = self.vocabulary.hundredths(&note(skills.len()));
        let Some(mut left) = room.checked_sub(reserved) else { return drawn };
        for ((line, least), skill) in bare.iter().zip(least).zip(skills) {
            let Some(rest) = left.checked_sub(*least) else { break };
            left = rest;
            let has_more = self.format != Format::Names && !skill.manifest.description.is_empty();
            drawn.push(line, has_more);
        }
        drawn.note = note(skills.len() - drawn.shown);
        drawn
    }

    /// What stands before and behind the entries.
    fn frame(&self) -> (String, &'static str) {
        match self.format {
            Format::Names | Format::List => (format!("## Skills\n\n{}\n\n", self.activation), ""),
            Format::Xml => ("<available_skills>\n".to_owned(), "</available_skills>\n"),
        }
    }

    /// One entry; without a description when that is empty.
    fn line(&self, entry: &Entry, description: &str) -> String {
        let Entry { name, location, .. } = entry;
        match self.format {
            Format::Names => format!("{}\n", defused(name)),
            Format::List if description.is_empty() => format!("- {}\n", defused(name)),
            Format::List => format!("- {}: {}\n", defused(name), defused(description)),
            Format::Xml => {
                let mut text = String::from("<skill>\n");
                for (tag, value) in
                    [("name", &**name), ("description", description), ("location", location)]
                {
                    let _ = writeln!(text, "<{tag}>{}</{tag}>", escaped(value));
                }
                text + "</skill>\n"
            }
        }
    }
}

/// The most tokens that each may take so that all together take no more than `room`.
fn cap(costs: &[usize], room: usize) -> usize {
    let mut costs = costs.to_vec();
    costs.sort_unstable();
    let mut left = room;
    for (number, cost) in costs.iter().enumerate() {
        let share = left / (costs.len() - number);
        if *cost > share {
            return share;
        }
        left -= cost;
    }
    usize::MAX
}

/// A text as it stands between two tags.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            c => out.push(c),
        }
    }
    out
}
