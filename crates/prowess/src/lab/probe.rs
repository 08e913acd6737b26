//! Probes: requests for a skill in the words of its author.

use crate::{
    index::{count_informative, positive_sentences},
    read::manifest::Manifest,
};

/// The maximum number of probes for a skill, and of those from the author's example phrases.
const MOST: usize = 6;
const MOST_PHRASES: usize = 3;
/// The maximum number of words in a request.
const LONGEST: usize = 24;
/// The minimum number of informative words in a part of a sentence that can stand alone.
const LEAST: usize = 2;
/// Words that authors put before what they mean; no request begins with them.
const LEAD: &str = "a about activate activates also an and any anything apply are as ask asked asking asks \
    be by e.g etc for handles if in includes including invoke is it keywords like load \
    mention mentions must need needs on or other proactively says should skill such that the \
    these this to trigger triggers use used user users want wants when whenever with you \
    your";

/// Derives requests from what a skill says about itself, the same ones every time: its first
/// sentence, the author's example phrases, and a part of every sentence, then a second one, those
/// about when to use it first. A skill without informative words gives none.
pub(super) fn probes(manifest: &Manifest) -> Vec<String> {
    let dialect = manifest.dialect();
    let when = dialect.when_to_use.as_deref().unwrap_or_default();
    let sentences: Vec<&str> =
        positive_sentences(&manifest.description).chain(positive_sentences(when)).collect();
    let (about_when, about_what): (Vec<&str>, Vec<&str>) =
        sentences.iter().partition(|it| is_about_when(it));
    let asked: Vec<Vec<&str>> =
        about_when.iter().chain(&about_what).map(|it| request_parts(it)).collect();
    let most = asked.iter().map(Vec::len).max().unwrap_or(0);
    let parts = (0..most).flat_map(|at| asked.iter().filter_map(move |it| it.get(at).copied()));
    let phrases = dialect.triggers.iter().map(|it| &**it);
    let phrases = phrases.chain(sentences.iter().flat_map(|it| quoted_parts(it)));
    let phrases = phrases.filter(|it| count_informative(it) > 0);
    let mut probes = Probes { name: manifest.name.to_lowercase(), made: Vec::new() };
    probes.extend(sentences.iter().copied(), 0, 1);
    probes.extend(phrases, 0, 1 + MOST_PHRASES);
    probes.extend(parts, LEAST, MOST);
    probes.made
}

struct Probes {
    name: String,
    made: Vec<String>,
}

impl Probes {
    /// Adds texts with at least `least` informative words, until there are `most`.
    fn extend<'t>(&mut self, texts: impl Iterator<Item = &'t str>, least: usize, most: usize) {
        for text in texts {
            if self.made.len() >= most {
                return;
            }
            let request = self.request(text);
            let is_new = !self.made.iter().any(|it| it.eq_ignore_ascii_case(&request));
            if is_new && count_informative(&request) >= least.max(1) {
                self.made.push(request);
            }
        }
    }

    /// Strips the lead-in of a text, and the name of the skill: a user who knows that needs no
    /// matcher.
    fn request(&self, text: &str) -> String {
        let words = text
            .split_whitespace()
            .filter(|it| {
                !self.name.contains('-') || trim_punctuation(it).to_lowercase() != self.name
            })
            .skip_while(|it| is_lead(it));
        let request = words.take(LONGEST).collect::<Vec<_>>().join(" ");
        request
            .trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '#' | '+' | ')' | '%'))
            .to_owned()
    }
}

/// Whether a word is part of a lead-in.
fn is_lead(word: &str) -> bool {
    let word = trim_punctuation(word);
    word.is_empty() || LEAD.split(' ').any(|it| it.eq_ignore_ascii_case(word))
}

/// Strips the punctuation around a word.
fn trim_punctuation(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn is_about_when(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase();
    ["when", "trigger", "use for", "use this", "used for"].iter().any(|it| sentence.contains(it))
}

/// Returns the quoted parts of a sentence.
fn quoted_parts(sentence: &str) -> impl Iterator<Item = &str> {
    [('"', '"'), ('“', '”'), ('「', '」')].into_iter().flat_map(move |(open, close)| {
        let mut rest = sentence;
        std::iter::from_fn(move || {
            let (_, after) = rest.split_once(open)?;
            let (inside, after) = after.split_once(close)?;
            rest = after;
            Some(inside)
        })
    })
}

/// Returns the parts of a sentence that can be requests by themselves; all of it if none can, as in
/// a list of single words.
fn request_parts(sentence: &str) -> Vec<&str> {
    let parts: Vec<&str> = parts(sentence)
        .filter(|part: &&str| {
            let words: Vec<&str> = part.split_whitespace().skip_while(|it| is_lead(it)).collect();
            count_informative(&words.join(" ")) >= LEAST
        })
        .collect();
    if parts.is_empty() { vec![sentence] } else { parts }
}

/// Splits a sentence into parts, which often list several things to ask for.
fn parts(sentence: &str) -> impl Iterator<Item = &str> {
    const BETWEEN: [char; 14] =
        [',', ';', ':', '(', ')', '—', '–', '•', '|', '"', '“', '”', '、', '，'];
    let pieces = sentence.split(BETWEEN).flat_map(|it| it.split(" or "));
    pieces.flat_map(|it| it.split(" - "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes_of(description: &str) -> Vec<String> {
        let manifest = Manifest {
            name: "pdf-tool".into(),
            description: description.into(),
            ..Manifest::default()
        };
        probes(&manifest)
    }

    #[test]
    fn sentences_phrases_and_parts_become_requests() {
        let description = "Edits PDF files. Use when the user wants to merge documents, split pages or says \"stamp it\". Do not use for images.";
        assert_eq!(
            probes_of(description),
            ["Edits PDF files", "stamp it", "merge documents", "split pages"]
        );
    }

    #[test]
    fn every_sentence_is_asked_for_and_single_words_together() {
        let description = "Brews coffee, grinds beans, froths milk, rinses cups, wipes tables, heats water. Also decalcifies, vents or primes.";
        assert_eq!(
            probes_of(description)[1..4],
            ["Brews coffee", "decalcifies, vents or primes", "grinds beans"]
        );
        assert_eq!(
            probes_of("Brews coffee. Use when asked for ristretto, lungo, cortado."),
            ["Brews coffee", "ristretto, lungo, cortado"]
        );
    }

    #[test]
    fn nobody_says_the_name_or_what_says_nothing() {
        assert_eq!(probes_of("Use pdf-tool to shrink files."), ["shrink files"]);
        assert_eq!(probes_of("Use this when you need it."), [""; 0]);
    }
}
