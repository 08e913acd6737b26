//! Baselines for finding: the common methods.
//!
//! They get the same words as the matcher (its stop words, its stems), so that only the use of the
//! words differs.

use std::collections::{HashMap, HashSet};

use prowess::fitting::stems;

use crate::retrieval::Skill;

/// BM25 over one text per skill, with the usual constants.
#[derive(Debug)]
pub(crate) struct Bm25 {
    words: Words,
    /// The number of occurrences of each word in each text.
    postings: Vec<Vec<(u32, u32)>>,
    lengths: Vec<f64>,
    mean_length: f64,
}

/// The saturation of repeated words.
const K1: f64 = 1.2;
/// The weight of the length of a text.
const B: f64 = 0.75;

impl Bm25 {
    /// Indexes name and description of each skill.
    pub(crate) fn described(skills: &[Skill]) -> Self {
        Self::new(skills.iter().map(|it| format!("{} {}", it.name, it.description)))
    }

    /// Indexes the instructions as well.
    pub(crate) fn whole(skills: &[Skill]) -> Self {
        Self::new(skills.iter().map(|it| format!("{} {} {}", it.name, it.description, it.body)))
    }

    fn new(texts: impl Iterator<Item = String>) -> Self {
        let mut words = Words::default();
        let (mut postings, mut lengths) = (Vec::<Vec<(u32, u32)>>::new(), Vec::new());
        for (text, number) in texts.zip(0..) {
            let mut found = words.learn(&text);
            found.sort_unstable();
            lengths.push(found.len() as f64);
            for same in found.chunk_by(|a, b| a == b) {
                let word = same[0] as usize;
                postings.resize_with(postings.len().max(word + 1), Vec::new);
                postings[word].push((number, same.len() as u32));
            }
        }
        let mean_length = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        Self { words, postings, lengths, mean_length }
    }

    /// Returns the indices of the best texts.
    pub(crate) fn best(&self, request: &str, top: usize) -> Vec<usize> {
        best(&self.scores(request), top)
    }

    fn scores(&self, request: &str) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        let mut asked = self.words.known(request);
        asked.sort_unstable();
        asked.dedup();
        for postings in asked.iter().map(|it| &self.postings[*it as usize]) {
            let (with, all) = (postings.len() as f64, scores.len() as f64);
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for &(text, times) in postings {
                let (text, times) = (text as usize, f64::from(times));
                let length = 1.0 - B + B * self.lengths[text] / self.mean_length;
                scores[text] += rarity * times * (K1 + 1.0) / (times + K1 * length);
            }
        }
        scores
    }
}

/// Strict tiers: the exact name, then words of the name, then words of the description. It is the
/// strategy `keyword`, but finds skills of one name too.
#[derive(Debug)]
pub(crate) struct Keyword {
    words: Words,
    skills: Vec<Keywords>,
}

#[derive(Debug)]
struct Keywords {
    spellings: [String; 2],
    name: Vec<u32>,
    description: HashSet<u32>,
}

impl Keyword {
    pub(crate) fn new(skills: &[Skill]) -> Self {
        let mut words = Words::default();
        let skills = skills.iter().map(|skill| {
            let name = skill.name.to_lowercase();
            let mut parts = words.learn(&name);
            parts.sort_unstable();
            parts.dedup();
            Keywords {
                spellings: [name.replace(['-', '_'], " "), name],
                name: parts,
                description: words.learn(&skill.description).into_iter().collect(),
            }
        });
        Self { skills: skills.collect(), words }
    }

    /// Returns the indices of the best skills.
    pub(crate) fn best(&self, request: &str, top: usize) -> Vec<usize> {
        let spoken = request.trim().to_lowercase();
        let is_part = |c: char| c.is_alphanumeric() || "-_:".contains(c);
        let written: HashSet<&str> = spoken.split(|c| !is_part(c)).collect();
        let asked: HashSet<u32> = self.words.known(request).into_iter().collect();
        let score = |skill: &Keywords| {
            let [apart, name] = &skill.spellings;
            let is_exact = spoken == *apart || spoken == *name || written.contains(name.as_str());
            let in_name = skill.name.iter().filter(|it| asked.contains(it)).count() as f64;
            let in_description = asked.intersection(&skill.description).count() as f64;
            let share = in_name / skill.name.len().max(1) as f64;
            // A tier outweighs everything below it.
            f64::from(u8::from(is_exact)) * 1e9 + share * 1e6 + in_name * 1e3 + in_description
        };
        let scores: Vec<f64> = self.skills.iter().map(score).collect();
        best(&scores, top)
    }
}

/// Returns the indices of the highest scores above zero; equal ones in their order.
fn best(scores: &[f64], top: usize) -> Vec<usize> {
    let mut found: Vec<usize> = (0..scores.len()).filter(|it| scores[*it] > 0.0).collect();
    let order = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
    if found.len() > top {
        found.select_nth_unstable_by(top, order);
        found.truncate(top);
    }
    found.sort_unstable_by(order);
    found
}

/// Numbers for stems.
#[derive(Debug, Default)]
struct Words {
    numbers: HashMap<String, u32>,
    /// The numbers of words that were seen before.
    seen: HashMap<String, Vec<u32>>,
}

impl Words {
    /// Returns the numbers of all words of a text; new ones get the next.
    fn learn(&mut self, text: &str) -> Vec<u32> {
        let mut found = Vec::new();
        for word in split(text) {
            if let Some(numbers) = self.seen.get(&word) {
                found.extend(numbers);
                continue;
            }
            let numbers = stems(&word).into_iter().map(|it| {
                let next = self.numbers.len() as u32;
                *self.numbers.entry(it).or_insert(next)
            });
            let numbers: Vec<u32> = numbers.collect();
            found.extend(&numbers);
            self.seen.insert(word, numbers);
        }
        found
    }

    /// Returns the numbers of the known words of a text.
    fn known(&self, text: &str) -> Vec<u32> {
        split(text)
            .flat_map(|it| stems(&it))
            .filter_map(|it| self.numbers.get(&it).copied())
            .collect()
    }
}

fn split(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|it| !it.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bm25_prefers_rare_words_and_short_texts() {
        let texts =
            ["deploy the cluster", "deploy deploy", "grape", "deploy, then harvest a ripe grape"];
        let bm25 = Bm25::new(texts.into_iter().map(str::to_owned));
        assert_eq!(bm25.best("grapes", 10), [2, 3]);
        assert_eq!(bm25.best("Deploying a grape", 10), [2, 3, 1, 0]);
        assert_eq!(bm25.best("Deploying a grape", 1), [2]);
        assert!(bm25.best("the unknown", 10).is_empty());
    }

    #[test]
    fn a_score_of_bm25_is_that_of_the_formula() {
        let bm25 = Bm25::new(["red car", "blue car", "car car"].into_iter().map(str::to_owned));
        // All are of mean length and contain it, so that it is worth ln(1 + 0.5 ÷ 3.5) = 0.1335.
        let expected = [0.1335, 0.1335, 0.1335 * 2.0 * 2.2 / 3.2];
        let scores = bm25.scores("Car car");
        let is_near = scores.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(is_near, "{scores:?} is not {expected:?}");
    }

    #[test]
    fn keywords_go_by_tiers() {
        let skill = |id: &str, name: &str, description: &str| Skill {
            id: id.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            body: String::new(),
            repo: String::new(),
        };
        let skills = [
            skill("a", "other", "Create a pull request, review it and merge it"),
            skill("b", "review-code", "Nothing of that"),
            skill("c", "create-pr", "Nothing of that"),
            skill("d", "cook", "Nothing of that"),
        ];
        let keyword = Keyword::new(&skills);
        assert_eq!(keyword.best("review and merge what create-pr made", 10), [2, 1, 0]);
        assert_eq!(keyword.best("Create PR", 10), [2, 0]);
        assert!(keyword.best("sing", 10).is_empty());
    }
}
