//! Advice: why a skill performs badly, and which words would help.

use std::collections::{BTreeMap, HashMap};

use super::{
    Lab, NearDuplicates,
    study::{MissReason, ProbeStatus, StudiedSkill},
};
use crate::{
    check::validate::is_template_text,
    index::{Index, Searchable, Term, chunks, count_informative, for_each_word, is_stop, rarity},
    read::skill::Skill,
};

/// The number of informative words below which a description is short.
const SHORT: usize = 5;
/// A word is common if the descriptions of one in this many skills contain it, and at least this
/// many.
const COMMON: (usize, usize) = (50, 10);
/// The number of skills from which on hardly any word is in no description at all.
const MANY: usize = 1000;
/// The maximum number of words in an advice.
const WORDS: usize = 4;
/// The maximum count of a word that is repeated, and the count of one in a heading.
const OFTEN: usize = 6;
const HEADING: usize = 3;

/// The words that skills are described by, and the families of near duplicates.
pub(super) struct Advisor<'l, 'lib> {
    lab: &'l Lab<'lib>,
    index: &'lib Index,
    /// The number of skills that each term describes.
    described: Vec<u32>,
    /// The families of each skill that has some, by position.
    families: HashMap<usize, Vec<usize>>,
}

impl<'l, 'lib> Advisor<'l, 'lib> {
    pub(super) fn new(lab: &'l Lab<'lib>, families: &[NearDuplicates<'lib>]) -> Self {
        let Searchable { index, .. } = lab.library.searchable();
        let mut described = vec![0; index.id_count()];
        for (place, _) in lab.matchable() {
            for id in description_terms(index, place) {
                described[id as usize] += 1;
            }
        }
        let mut numbers: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, family) in families.iter().enumerate() {
            for place in family.members.iter().filter_map(|it| lab.library.position_of(it.skill)) {
                numbers.entry(place).or_default().push(number);
            }
        }
        Self { lab, index, described, families: numbers }
    }

    /// Adds to a skill the reason why it performs badly, and advice.
    pub(super) fn advise(&self, studied: &mut StudiedSkill<'lib>) {
        match studied.standing {
            ProbeStatus::Found | ProbeStatus::NotInUse => return,
            ProbeStatus::ForPeople => {
                let advice = "remove `disable-model-invocation` if requests should match it";
                return studied.advice.push(advice.to_owned());
            }
            ProbeStatus::Hidden => {
                return studied.advice.push("rename it, or remove one of the two".to_owned());
            }
            ProbeStatus::NeverFound | ProbeStatus::Contested => {}
        }
        let because = self.miss_reason(studied);
        let competitor = studied.competitors.first().map(|it| it.skill);
        studied.shared =
            competitor.map_or_else(Vec::new, |it| self.shared_words(studied.skill, it));
        studied.own = self.own_words(studied.skill);
        studied.because = Some(because);
        let no_other = if self.index.len() < MANY { "no" } else { "hardly any" };
        studied.advice = advice_for(studied, because, self.lab.threshold, no_other);
    }

    fn miss_reason(&self, studied: &StudiedSkill<'lib>) -> MissReason<'lib> {
        let manifest = &studied.skill.manifest;
        let when = manifest.dialect().when_to_use.as_deref().unwrap_or_default();
        let words = count_informative(&format!("{}\n{when}", manifest.description));
        let others = self.index_of(studied.skill).map_or(0, |it| {
            let own = description_terms(self.index, it as u32);
            let others = own.iter().map(|id| self.described[*id as usize].saturating_sub(1));
            others.min().unwrap_or(0) as usize
        });
        let common = (self.index.len() / COMMON.0).max(COMMON.1);
        let lost: usize = studied.competitors.iter().map(|it| it.takes).sum();
        match &studied.competitors[..] {
            _ if is_template_text(&manifest.description) => MissReason::Placeholder,
            _ if words == 0 => MissReason::Wordless,
            [first, ..] if self.are_family(studied.skill, first.skill) => {
                MissReason::Twin(first.skill)
            }
            _ if words < SHORT => MissReason::Short(words),
            [first, ..] if spells_out_name(studied.skill, first.skill) => {
                MissReason::Names(first.skill)
            }
            _ if others >= common => MissReason::Common(others),
            [] => {
                let surest = studied.probes.iter().map(|it| it.confidence);
                MissReason::Unsure(surest.fold(0.0, f64::max))
            }
            [first, ..] if first.takes * 2 >= lost => MissReason::Shadowed(first.skill),
            competitors => MissReason::Crowded(competitors.len()),
        }
    }

    fn are_family(&self, a: &Skill, b: &Skill) -> bool {
        let [a, b] = [a, b].map(|it| self.index_of(it).and_then(|it| self.families.get(&it)));
        a.into_iter().flatten().any(|own| b.into_iter().flatten().any(|it| it == own))
    }

    fn index_of(&self, skill: &Skill) -> Option<usize> {
        self.lab.library.position_of(skill)
    }

    /// Returns the words that describe both skills, the most informative first.
    fn shared_words(&self, skill: &Skill, other: &Skill) -> Vec<String> {
        let others = self.index_of(other).map(|it| description_terms(self.index, it as u32));
        let others = others.unwrap_or_default();
        let mut words: BTreeMap<String, f32> = BTreeMap::new();
        for text in [&skill.manifest.name, &skill.manifest.description] {
            for_each_word(text, |term, word| {
                if let Some(id) = self.index.id(term).filter(|it| others.contains(it)) {
                    words.insert(word.to_owned(), rarity(word, self.index.count(id), self.index));
                }
            });
        }
        heaviest_words(words, self.index)
    }

    /// Returns the words of a skill's instructions that describe no skill (one in a thousand, if
    /// there are so many) and that few others use, the most informative first. Code is left out.
    fn own_words(&self, skill: &Skill) -> Vec<String> {
        let instructions = skill.instructions().unwrap_or_default();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in prose(&instructions) {
            let times = if line.starts_with('#') { HEADING } else { 1 };
            // Text in backticks is code.
            for text in line.split('`').step_by(2) {
                chunks(text, |chunk| {
                    if is_plain(chunk) {
                        *counts.entry(chunk.to_lowercase()).or_default() += times;
                    }
                });
            }
        }
        let own = self.index_of(skill).map(|it| description_terms(self.index, it as u32));
        let own = own.unwrap_or_default();
        // In a short text no word is repeated.
        let least = counts.values().copied().max().unwrap_or(0).min(2);
        let few = (self.index.len() / COMMON.0).max(1) as u32;
        let hardly_any = (self.index.len() / MANY) as u32;
        let words = counts.into_iter().filter_map(|(word, count)| {
            let id = self.index.id(Term::new(&word))?;
            let others = self.index.count(id);
            let is_free = self.described[id as usize] <= hardly_any && !own.contains(&id);
            let telling = count.min(OFTEN) as f32 * rarity(&word, others, self.index);
            let is_own = is_free
                && others <= few
                && count >= least
                && !is_stop(&word)
                && is_topic(&word, count);
            is_own.then_some((word, telling))
        });
        heaviest_words(words.collect(), self.index)
    }
}

/// Returns the lines of Markdown outside of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Whether a chunk is an ordinary word: not part of a name or a path, and not an identifier.
fn is_plain(chunk: &str) -> bool {
    let mut letters = chunk.chars();
    letters.next();
    let is_one_case = chunk.chars().all(char::is_uppercase) || !letters.any(char::is_uppercase);
    chunk.chars().count() > 2 && chunk.chars().all(char::is_alphabetic) && is_one_case
}

/// Whether a word is likely to be used in requests: not a contraction, and a derived one (`-ness`,
/// `-ization`) only if the instructions use it repeatedly.
fn is_topic(word: &str, count: usize) -> bool {
    let is_contraction = word.ends_with("nt")
        && [
            "does", "do", "is", "are", "was", "were", "has", "have", "had", "ca", "wo", "could",
            "should", "would", "did",
        ]
        .contains(&&word[..word.len() - 2]);
    let is_derived = ["ic", "ical", "ically", "ization", "ness", "fully", "er", "ers"]
        .iter()
        .any(|it| word.ends_with(it));
    !is_contraction && (!is_derived || count >= OFTEN)
}

/// Whether the description of a skill spells out the joined name of another.
fn spells_out_name(skill: &Skill, other: &Skill) -> bool {
    let name = &*other.manifest.name;
    let mut is_written = false;
    chunks(&skill.manifest.description, |it| is_written |= it.eq_ignore_ascii_case(name));
    is_written && name.contains(['-', '_'])
}

/// Returns the words with the highest weight, one for each term.
fn heaviest_words(words: BTreeMap<String, f32>, index: &Index) -> Vec<String> {
    let mut words: Vec<(String, f32)> = words.into_iter().collect();
    words.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut ids = Vec::new();
    words.retain(|(word, _)| {
        let id = index.id(Term::new(word));
        let is_new = !ids.contains(&id);
        ids.push(id);
        is_new
    });
    words.into_iter().map(|it| it.0).take(WORDS).collect()
}

/// Returns the distinct terms of a skill's name, description and tags.
fn description_terms(index: &Index, place: u32) -> Vec<u32> {
    let mut ids: Vec<u32> = index.words(place).described().collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn advice_for(
    studied: &StudiedSkill<'_>,
    because: MissReason<'_>,
    threshold: f64,
    no_other: &str,
) -> Vec<String> {
    let mut advice = vec![match because {
        MissReason::Placeholder => {
            "replace the placeholder: say what the skill does, and when to use it".to_owned()
        }
        MissReason::Wordless => {
            "write a description: what the skill does, and when to use it".to_owned()
        }
        MissReason::Twin(other) => {
            let other = &other.manifest.name;
            format!("remove it or `{other}`, or say in each what it is not for")
        }
        MissReason::Names(other) => {
            let apart = other.manifest.name.replace(['-', '_'], " ");
            format!("write `{apart}`: joined, it is the name of another skill")
        }
        MissReason::Short(1) => "say more: one word is not enough to be found".to_owned(),
        MissReason::Short(words) => {
            format!("say more: {words} meaningful words are not enough to be found")
        }
        MissReason::Common(others) => format!(
            "say what it is about: every word of its description is also in at least {others} others"
        ),
        MissReason::Shadowed(other) => {
            let other = &other.manifest.name;
            format!("say what `{other}` does not do, and when to use this one")
        }
        MissReason::Crowded(others) => {
            format!("say what is special about it: {others} skills match the same words")
        }
        MissReason::Unsure(surest) => format!(
            "say more about when to use it: its confidence is {:.0} % at most, and {:.0} % are needed",
            surest * 100.0,
            threshold * 100.0
        ),
    }];
    let is_placeholder = matches!(because, MissReason::Placeholder);
    if is_placeholder {
        return advice;
    }
    if let (Some(competitor), false) = (studied.competitors.first(), studied.shared.is_empty()) {
        let verb = if studied.shared.len() == 1 { "is" } else { "are" };
        let shared = quote_list(&studied.shared, "and");
        let other = &competitor.skill.manifest.name;
        advice.push(format!("{shared} {verb} in `{other}` as well"));
    }
    if !studied.own.is_empty() {
        let own = quote_list(&studied.own, "or");
        advice.push(format!("use {own}: its instructions do, and {no_other} description does"));
    }
    advice
}

/// Formats a list as `a`, `b` and `c`.
fn quote_list(words: &[String], last: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|it| format!("`{it}`")).collect();
    match &quoted[..] {
        [rest @ .., end] if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
