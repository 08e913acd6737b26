//! The catalog: the list of skills that a model is shown in advance.

use std::{borrow::Cow, collections::HashMap, fmt::Write as _, ops::Range};

use crate::{
    disclosure::marker::Marker,
    library::Library,
    read::skill::Skill,
    spec::MAX_DESCRIPTION,
    text::{
        shorten::{escape_tags, fit_line, one_line, shorten_line},
        tokens::Tokenizer,
    },
};

/// The minimum length of a useful description, in hundredths of a token.
const LEAST: usize = 500;

/// Options for a catalog.
#[derive(Debug, Clone)]
pub struct Cataloging<'c> {
    /// The format.
    pub format: Format,
    /// The token budget; unlimited if not given.
    pub budget: Option<usize>,
    /// The tokenizer to count with.
    pub vocabulary: Tokenizer,
    /// The instruction on how to activate a skill, above the list.
    pub activation: &'c str,
    /// The instruction on how to find skills that are left out, after their number.
    pub search: &'c str,
    /// The names of the most important skills, the best first: they are the last to be shortened or
    /// left out. The order of the catalog does not change.
    pub first: &'c [&'c str],
}

/// The format of a catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One line per skill with its name: about six tokens each.
    Names,
    /// One line per skill with name and description.
    #[default]
    List,
    /// `<available_skills>`, with name, description and location of each.
    Xml,
}

/// A catalog, with statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The text for the model; empty when there is nothing to show.
    pub text: String,
    /// Its length in tokens.
    pub tokens: usize,
    /// The number of skills that are listed.
    pub shown: usize,
    /// The number of those whose description is shortened.
    pub shortened: usize,
    /// The number of skills that are left out.
    pub dropped: usize,
    /// The range of the entries in the text, which are written by the skills' authors.
    entries: Range<usize>,
}

impl Catalog {
    /// Returns the text with its entries fenced by markers. A pair takes at most
    /// [`Marker::TOKENS`], which the budget does not include.
    pub fn fenced(&self, marker: &Marker) -> String {
        let Range { start, end } = self.entries;
        if self.text.is_empty() {
            return String::new();
        }
        let entries = marker.fence(&self.text[start..end]);
        format!("{}{entries}\n{}", &self.text[..start], &self.text[end..])
    }
}

impl Default for Cataloging<'_> {
    fn default() -> Self {
        Self {
            format: Format::default(),
            budget: None,
            vocabulary: Tokenizer::default(),
            activation: "When one of these skills fits the task, call `use_skill` with its name first and follow its instructions.",
            search: "search for them with `find_skills`",
            first: &[],
        }
    }
}

/// Writes the catalog of a library: the active skills that a model may activate, in the order of
/// their names. Without any the text is empty.
///
/// A budget is never exceeded, and is used as far as possible: a larger one never shows less.
/// Descriptions are shortened first, all to the same number of tokens, so that short ones stay
/// whole; then as many as necessary are left out; and only then names are, from the end of the
/// alphabet, which the last line reports. A skill that is added at the end changes nothing before
/// it unless the others have to be shortened further. The most important skills
/// ([`Cataloging::first`]) share up to half of the room before the others do.
pub fn catalog(library: &Library, how: &Cataloging<'_>) -> Catalog {
    let skills: Vec<&Skill> = library.skills().filter(|it| it.manifest.is_for_models()).collect();
    if skills.is_empty() {
        return Catalog::default();
    }
    let drawn = how.render_entries(&skills);
    let (mut text, mut entries) = (String::new(), 0..0);
    if !drawn.lines.is_empty() || !drawn.note.is_empty() {
        let (head, tail) = how.frame();
        entries = head.len()..head.len() + drawn.lines.len();
        text = head + &drawn.lines + tail + &drawn.note;
    }
    Catalog {
        tokens: how.vocabulary.count(&text),
        text,
        shown: drawn.shown,
        shortened: drawn.shortened,
        dropped: skills.len() - drawn.shown,
        entries,
    }
}

/// Renders a skill for a system prompt.
pub fn block(name: &str, description: &str, content: &str) -> String {
    format!("## Skill: {name}\n{description}\n\n{content}")
}

/// The parts of a skill that are shown, each on one line.
struct CatalogEntry {
    name: String,
    description: String,
    location: String,
    is_cut: bool,
}

impl CatalogEntry {
    /// Returns an entry without the description, which may be in a file of its own.
    fn without_description(skill: &Skill, format: Format) -> Self {
        let location = match format {
            Format::Xml => {
                let folder = skill.absolute_folder();
                let file = skill.origin.path.file_name().unwrap_or_default();
                let path = folder.as_deref().unwrap_or(skill.folder()).join(file);
                one_line(&path.display().to_string())
            }
            Format::Names | Format::List => String::new(),
        };
        let name = one_line(&skill.manifest.name);
        Self { name, description: String::new(), location, is_cut: false }
    }

    fn with_description(self, skill: &Skill) -> Self {
        let whole = one_line(&skill.description());
        let description = shorten_line(&whole, MAX_DESCRIPTION, |it| it.chars().count());
        let is_cut = matches!(description, Cow::Owned(_));
        Self { description: description.into_owned(), is_cut, ..self }
    }
}

/// The rendered entries of a catalog.
#[derive(Default)]
struct RenderedEntries {
    lines: String,
    shown: usize,
    shortened: usize,
    /// The note about skills that are left out.
    note: String,
}

impl RenderedEntries {
    fn push(&mut self, line: &str, is_cut: bool) {
        self.lines.push_str(line);
        self.shown += 1;
        self.shortened += usize::from(is_cut);
    }
}

impl Cataloging<'_> {
    /// Renders as much as the budget allows. Each line is counted once, in hundredths of a token,
    /// which add up.
    fn render_entries(&self, skills: &[&Skill]) -> RenderedEntries {
        let Some(budget) = self.budget else {
            let mut drawn = RenderedEntries::default();
            for skill in skills {
                let entry = self.entry_of(skill);
                drawn.push(&self.render_entry(&entry, &entry.description), entry.is_cut);
            }
            return drawn;
        };
        let count = |text: &str| self.vocabulary.hundredths(text);
        let (head, tail) = self.frame();
        let room = budget.saturating_mul(100).saturating_sub(count(&head) + count(tail));
        let (order, ranked) = self.order(skills);
        let mut left = room;
        let mut bare = Vec::new();
        for at in &order {
            let line =
                self.render_entry(&CatalogEntry::without_description(skills[*at], self.format), "");
            let cost = count(&line);
            bare.push((line, cost));
            // However many there are, no more are looked at than there is room for.
            let Some(rest) = left.checked_sub(cost) else {
                return self.render_names(&order, &bare, room, skills);
            };
            left = rest;
        }
        let entries: Vec<CatalogEntry> =
            order.iter().map(|at| self.entry_of(skills[*at])).collect();
        let whole: Vec<String> =
            entries.iter().map(|it| self.render_entry(it, &it.description)).collect();
        let costs = whole.iter().zip(&bare).map(|(line, bare)| count(line).saturating_sub(bare.1));
        let costs: Vec<usize> = costs.collect();
        let least = entries.first().zip(bare.first()).map_or(0, |(entry, bare)| {
            LEAST + count(&self.render_entry(entry, "x")).saturating_sub(bare.1)
        });
        let allowed = allowances(&costs, ranked, left, least);
        let mut lines: Vec<(usize, Cow<'_, str>, bool)> = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            let (allowed, own) = (allowed[number], &bare[number]);
            let (line, is_cut) = if costs[number] <= allowed {
                (Cow::Borrowed(&*whole[number]), entry.is_cut)
            } else if allowed < least {
                (Cow::Borrowed(&*own.0), true)
            } else {
                let fitting = fit_line(&entry.description, allowed, |it: &str| {
                    count(&self.render_entry(entry, it)).saturating_sub(own.1)
                });
                (Cow::Owned(self.render_entry(entry, &fitting)), true)
            };
            lines.push((order[number], line, is_cut));
        }
        lines.sort_unstable_by_key(|it| it.0);
        let mut drawn = RenderedEntries::default();
        lines.iter().for_each(|(_, line, is_cut)| drawn.push(line, *is_cut));
        drawn
    }

    /// Returns the skills in the order in which they get room, and the number of the most important
    /// ones.
    fn order(&self, skills: &[&Skill]) -> (Vec<usize>, usize) {
        let places: HashMap<&str, usize> = match self.first {
            [] => HashMap::new(),
            _ => skills.iter().enumerate().map(|(at, it)| (&*it.manifest.name, at)).collect(),
        };
        let mut is_first = vec![false; skills.len()];
        let mut order: Vec<usize> = Vec::with_capacity(skills.len());
        for at in self.first.iter().filter_map(|it| places.get(it)) {
            if !std::mem::replace(&mut is_first[*at], true) {
                order.push(*at);
            }
        }
        let ranked = order.len();
        order.extend((0..skills.len()).filter(|at| !is_first[*at]));
        (order, ranked)
    }

    /// Returns the entry of a skill.
    fn entry_of(&self, skill: &Skill) -> CatalogEntry {
        let entry = CatalogEntry::without_description(skill, self.format);
        if self.format == Format::Names { entry } else { entry.with_description(skill) }
    }

    /// Renders as many names as fit next to the note about the others.
    fn render_names(
        &self,
        order: &[usize],
        bare: &[(String, usize)],
        room: usize,
        skills: &[&Skill],
    ) -> RenderedEntries {
        let mut drawn = RenderedEntries::default();
        // The number of skills left out has no more digits than that of all skills.
        let reserved = self.vocabulary.hundredths(&self.note(skills.len()));
        let Some(mut left) = room.checked_sub(reserved) else { return drawn };
        let mut lines = Vec::new();
        for ((line, cost), at) in bare.iter().zip(order) {
            let Some(rest) = left.checked_sub(*cost) else { break };
            left = rest;
            lines.push((*at, line));
        }
        lines.sort_unstable_by_key(|it| it.0);
        for (at, line) in lines {
            let manifest = &skills[at].manifest;
            drawn.push(line, self.format != Format::Names && !manifest.description.is_empty());
        }
        drawn.note = self.note(skills.len() - drawn.shown);
        drawn
    }

    fn note(&self, dropped: usize) -> String {
        let skills = if dropped == 1 { "skill is" } else { "skills are" };
        format!("{dropped} more {skills} not listed; {}.\n", self.search)
    }

    /// Returns the text before and after the entries.
    fn frame(&self) -> (String, &'static str) {
        match self.format {
            Format::Names | Format::List => (format!("## Skills\n\n{}\n\n", self.activation), ""),
            Format::Xml => ("<available_skills>\n".to_owned(), "</available_skills>\n"),
        }
    }

    /// Renders one entry; without a description if that is empty.
    fn render_entry(&self, entry: &CatalogEntry, description: &str) -> String {
        let CatalogEntry { name, location, .. } = entry;
        match self.format {
            Format::Names => format!("{}\n", escape_tags(name)),
            Format::List if description.is_empty() => format!("- {}\n", escape_tags(name)),
            Format::List => format!("- {}: {}\n", escape_tags(name), escape_tags(description)),
            Format::Xml => {
                let mut text = String::from("<skill>\n");
                let parts =
                    [("name", &**name), ("description", description), ("location", location)];
                for (tag, value) in parts.into_iter().filter(|it| !it.1.is_empty()) {
                    let _ = writeln!(text, "<{tag}>{}</{tag}>", escape(value));
                }
                text + "</skill>\n"
            }
        }
    }
}

/// Divides the room among the entries, of which the first ones share up to half before the others
/// do. No entry gets less when there is more room.
fn allowances(costs: &[usize], ranked: usize, room: usize, least: usize) -> Vec<usize> {
    let mut allowed = vec![0; costs.len()];
    let (first, others) = costs.split_at(ranked);
    let (own, rest) = allowed.split_at_mut(ranked);
    let most = cap(first, room / 2).max(cap(costs, room));
    // As long as the first ones have too little, the others get nothing.
    let Some(left) = share(first, most, room, least, own) else { return allowed };
    let even = cap(others, left);
    share(others, even, left, least, rest);
    if even == usize::MAX {
        // Room that the others do not need goes to the first ones.
        let left = room - others.iter().sum::<usize>();
        share(first, cap(first, left).max(most), left, least, own);
    }
    allowed
}

/// Gives each entry up to `cap`; if that is too little to be useful, the first of them get the
/// useful minimum, as long as there is room. Returns the rest if that was enough for all of them.
fn share(
    costs: &[usize],
    cap: usize,
    room: usize,
    least: usize,
    allowed: &mut [usize],
) -> Option<usize> {
    let mut left = room;
    for (cost, allowed) in costs.iter().zip(allowed) {
        let most = cap.max(least);
        left = left.checked_sub(most.min(*cost))?;
        *allowed = most;
    }
    Some(left)
}

/// Returns the largest cap at which all together take no more than `room`.
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

/// Escapes a text for use between two tags.
fn escape(text: &str) -> String {
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
