//! Near duplicates: skills whose texts are almost the same.

use std::{cmp::Ordering, collections::HashMap, slice};

use super::{Lab, probe::probes};
use crate::{
    index::{Index, Words},
    read::skill::Skill,
};

/// Near duplicates, the skill that requests match first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NearDuplicates<'lib> {
    /// Whether their whole texts are almost the same, or else only their descriptions.
    pub whole: bool,
    /// The skills; at least two.
    pub members: Vec<NearDuplicate<'lib>>,
}

/// A skill of a family of near duplicates.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct NearDuplicate<'lib> {
    /// The skill.
    pub skill: &'lib Skill,
    /// The share of words that it has in common with the representative of the family; rare words
    /// count more.
    pub likeness: f64,
}

/// The minimum likeness of near duplicates.
const ALIKE: f32 = 0.8;
/// The minimum number of words to compare.
const LEAST_WORDS: usize = 3;
/// The number of closest pairs that are reported.
const CLOSEST: usize = 3;
/// The maximum number of others that a text is compared with.
const MOST_COMPARED: usize = 512;

impl<'lib> Lab<'lib> {
    /// Finds near duplicates, the largest families first.
    pub fn families(&self) -> Vec<NearDuplicates<'lib>> {
        let index = &self.library.searchable().index;
        let all: Vec<(u32, &Skill)> = self.matchable().collect();
        let same = group_similar(index, all.iter().map(|it| it.0), all_words);
        // Of whole duplicates, one is enough to compare descriptions.
        let one_each = same.iter().map(|it| it[0].0);
        let described = group_similar(index, one_each, |words| words.description().collect());
        let same = same.into_iter().map(|it| (true, it));
        let families = same.chain(described.into_iter().map(|it| (false, it)));
        let mut families: Vec<NearDuplicates<'lib>> = families
            .filter(|(_, members)| members.len() > 1)
            .map(|(whole, members)| self.family(whole, &members))
            .collect();
        families.sort_by_key(|it| std::cmp::Reverse((it.members.len(), it.whole)));
        families
    }

    /// Finds the pairs of skills whose descriptions have most in common, except for near
    /// duplicates. Of more than a few hundred skills only the `wanted` ones are compared.
    pub(super) fn closest(&self, wanted: impl Fn(&Skill) -> bool) -> Vec<NearDuplicates<'lib>> {
        let index = &self.library.searchable().index;
        let all: Vec<(&Skill, Text)> = self
            .matchable()
            .filter(|it| wanted(it.1))
            .take(MOST_COMPARED)
            .map(|(place, skill)| {
                let own = index.words(place);
                (skill, Text::new(index, own.name().collect(), own.description().collect()))
            })
            .filter(|it| it.1.words.len() >= LEAST_WORDS)
            .collect();
        let mut pairs: Vec<(f32, usize, usize)> = Vec::new();
        for (at, (_, one)) in all.iter().enumerate() {
            for (other_at, (_, other)) in all.iter().enumerate().skip(at + 1) {
                let share = one.overlap(other);
                if share > 0.0 && share < ALIKE {
                    pairs.push((share, at, other_at));
                }
            }
        }
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let pairs = pairs.into_iter().take(CLOSEST).map(|(share, one, other)| {
            let members =
                [one, other].map(|it| NearDuplicate { skill: all[it].0, likeness: share.into() });
            NearDuplicates { whole: false, members: members.into() }
        });
        pairs.collect()
    }

    /// Moves the skill to the front that matches requests meant for the first.
    fn family(&self, whole: bool, members: &[(u32, f32)]) -> NearDuplicates<'lib> {
        let members = members.iter().map(|(place, likeness)| NearDuplicate {
            skill: &self.library.skills[*place as usize],
            likeness: f64::from(*likeness),
        });
        let mut members: Vec<NearDuplicate<'lib>> = members.collect();
        let first = probes(&members[0].skill.manifest).into_iter().next();
        let order = self.ask(&first.unwrap_or_default());
        members.sort_by_key(|member| {
            let rank = order.iter().position(|it| std::ptr::eq(it.skill, member.skill));
            rank.unwrap_or(usize::MAX)
        });
        NearDuplicates { whole, members }
    }
}

/// Returns all words of a skill except for its name.
fn all_words(words: Words<'_>) -> Vec<u32> {
    words.words.skip(words.name().count()).collect()
}

/// Groups documents around the first of their kind, with their likeness to it.
///
/// Two texts can only be alike if they share one of the rarest words of both, so each is compared
/// only with those that contain such a word.
fn group_similar(
    index: &Index,
    documents: impl Iterator<Item = u32>,
    words: impl Fn(Words<'_>) -> Vec<u32>,
) -> Vec<Vec<(u32, f32)>> {
    let mut families: Vec<(Text, Vec<(u32, f32)>)> = Vec::new();
    let mut by_word: HashMap<u32, Vec<usize>> = HashMap::new();
    for document in documents {
        let own = index.words(document);
        let text = Text::new(index, own.name().collect(), words(own));
        if text.words.len() < LEAST_WORDS {
            families.push((text, vec![(document, 1.0)]));
            continue;
        }
        let mut known: Vec<usize> = text
            .informative_words()
            .filter_map(|it| by_word.get(&it.id))
            .flatten()
            .copied()
            .collect();
        known.sort_unstable();
        known.dedup();
        let alike = known.into_iter().take(MOST_COMPARED).find_map(|at| {
            let other = &families[at].0;
            let likeness = text.likeness(other).filter(|_| !text.is_beside(other))?;
            Some((at, likeness))
        });
        match alike {
            Some((at, likeness)) => families[at].1.push((document, likeness)),
            None => {
                for word in text.informative_words() {
                    by_word.entry(word.id).or_default().push(families.len());
                }
                families.push((text, vec![(document, 1.0)]));
            }
        }
    }
    families.into_iter().map(|it| it.1).collect()
}

/// The distinct words of a text, the rarest first.
struct Text {
    words: Vec<Word>,
    /// Those that are in its name as well: its topics.
    topics: Vec<Word>,
    /// The total weight of all words.
    total: f32,
}

#[derive(Debug, Clone, Copy)]
struct Word {
    /// The number of skills in which it occurs.
    count: u32,
    id: u32,
    /// Its weight: the rarer, the higher.
    weight: f32,
}

impl Word {
    /// Orders the rarest first.
    fn order(&self, other: &Self) -> Ordering {
        (self.count, self.id).cmp(&(other.count, other.id))
    }
}

impl Text {
    fn new(index: &Index, name: Vec<u32>, mut ids: Vec<u32>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        let skills = index.len() as f32;
        let mut words: Vec<Word> = ids
            .into_iter()
            .map(|id| {
                let count = index.count(id).max(1);
                Word { count, id, weight: (skills / count as f32).ln_1p() }
            })
            .collect();
        words.sort_unstable_by(Word::order);
        let topics = words.iter().filter(|it| name.contains(&it.id)).copied().collect();
        let total = words.iter().map(|it| it.weight).sum();
        Self { words, topics, total }
    }

    /// Returns the share of words in common, from 0 to 1.
    fn overlap(&self, other: &Self) -> f32 {
        let both: f32 = self
            .words
            .iter()
            .filter(|it: &&Word| other.words.binary_search_by(|own| own.order(it)).is_ok())
            .map(|it| it.weight)
            .sum();
        let all = self.total + other.total - both;
        if all > 0.0 { both / all } else { 0.0 }
    }

    /// Returns the rarest words, of which any alike text has at least one among its own rarest.
    fn informative_words(&self) -> impl Iterator<Item = Word> {
        let mut left = self.total;
        self.words.iter().copied().take_while(move |it| {
            let is_significant = left >= ALIKE * self.total;
            left -= it.weight;
            is_significant
        })
    }

    /// Whether each has a topic that the other never mentions, however alike the rest is: many
    /// skills follow one pattern.
    fn is_beside(&self, other: &Self) -> bool {
        self.has_topic_beyond(other) && other.has_topic_beyond(self)
    }

    fn has_topic_beyond(&self, other: &Self) -> bool {
        self.topics.iter().any(|topic| other.words.binary_search_by(|it| it.order(topic)).is_err())
    }

    /// Returns the share of words in common, from 0 to 1; `None` if they are not alike.
    fn likeness(&self, other: &Self) -> Option<f32> {
        let all = self.total + other.total;
        // The maximum weight of words in one text only. The rarest words come first and soon exceed
        // it.
        let most = all * (1.0 - ALIKE) / (1.0 + ALIKE);
        let (mut own, mut others) = (self.words.iter(), other.words.iter());
        let take = |from: &mut slice::Iter<'_, Word>, is_next: bool| {
            if is_next { from.next().map_or(0.0, |it| it.weight) } else { 0.0 }
        };
        let mut alone = 0.0;
        while alone <= most {
            let order = match (own.as_slice(), others.as_slice()) {
                ([], []) => return Some((all - alone) / (all + alone)),
                ([a, ..], [b, ..]) => a.order(b),
                (_, []) => Ordering::Less,
                ([], _) => Ordering::Greater,
            };
            alone += (take(&mut own, order.is_le()) - take(&mut others, order.is_ge())).abs();
        }
        None
    }
}
