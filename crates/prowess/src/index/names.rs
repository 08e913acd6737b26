//! The words of names, matched in spite of typing errors.

use std::fmt;

use super::{stop::is_stop, words};

/// The minimum length; shorter words have too many neighbours.
const SHORTEST: usize = 4;

/// The words of all names, by what remains of each when one letter is removed.
#[derive(Debug, Default)]
pub(crate) struct Names {
    words: Vec<Box<str>>,
    left: Vec<(u32, u32)>,
}

impl Names {
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut own = Vec::new();
        for name in names {
            words::chunks(name, |chunk| {
                words::terms(chunk, |found, word| {
                    let is_word = word.chars().count() >= SHORTEST && !is_stop(word);
                    own.extend((is_word && !found.is_extra).then(|| Box::from(word)));
                });
            });
        }
        own.sort_unstable();
        own.dedup();
        let mut left: Vec<(u32, u32)> = Vec::new();
        for (at, word) in own.iter().enumerate() {
            left.extend(deletions(word).map(|it| (key(&it), at as u32)));
        }
        left.sort_unstable();
        Self { words: own, left }
    }

    /// Returns the word that differs from `word` by one letter: added, removed, replaced, or two
    /// swapped. Of several, the first alphabetically.
    pub(crate) fn near(&self, word: &str) -> Option<&str> {
        if word.chars().count() < SHORTEST || word.len() > 64 {
            return None;
        }
        let candidates = deletions(word).flat_map(|it| {
            let key = key(&it);
            let from = self.left.partition_point(|it| it.0 < key);
            self.left[from..].iter().take_while(move |it| it.0 == key).map(|it| it.1)
        });
        let near = candidates.filter(|at| is_near(word, &self.words[*at as usize])).min();
        near.map(|at| &*self.words[at as usize])
    }
}

/// Returns the name that differs from `wanted` in the fewest letters, if it is near enough to be
/// meant. Ignores case.
pub fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = &wanted.to_lowercase();
    let allowed = (wanted.chars().count() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let lower = name.to_lowercase();
        let is_part = wanted.len() > 2 && lower != *wanted && lower.contains(wanted);
        let distance = if is_part { 1 } else { distance(wanted, &lower, allowed) };
        if distance <= allowed && best.is_none_or(|it| distance < it.0) {
            best = Some((distance, name));
        }
    }
    best.map(|it| it.1)
}

/// Returns the question whether a name is meant.
pub fn did_you_mean(near: impl fmt::Display) -> String {
    format!("did you mean `{near}`?")
}

/// Returns a hint about a name that does not exist: the nearest of those that do, else all of them.
pub fn name_hint<'n>(wanted: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    match nearest(wanted, names.clone()) {
        Some(near) => did_you_mean(near),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// Counts the letters that have to be changed, added, removed or swapped with the next; a result
/// over `most` may be inexact.
fn distance(a: &str, b: &str, most: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return most + 1;
    }
    // The previous row, and the one before that, for swapped letters.
    let mut before = vec![0; b.len() + 1];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let mut cost =
                (row[j] + usize::from(a[i] != b[j])).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                cost = cost.min(before[j - 1] + 1);
            }
            next.push(cost);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

/// Returns a word, and what remains of it when each letter in turn is removed.
fn deletions(word: &str) -> impl Iterator<Item = String> {
    let letters = word.char_indices().map(|(at, c)| {
        let mut left = word.to_owned();
        left.replace_range(at..at + c.len_utf8(), "");
        left
    });
    std::iter::once(word.to_owned()).chain(letters)
}

fn key(word: &str) -> u32 {
    (words::hash(word.as_bytes()) >> 32) as u32
}

/// Whether adding, removing or replacing one letter, or swapping two, turns `a` into `b`.
fn is_near(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    let tail = |skip_a: usize, skip_b: usize| a.get(skip_a..) == b.get(skip_b..);
    let swapped = a.len() > 1 && b.len() > 1 && a[0] == b[1] && a[1] == b[0] && tail(2, 2);
    (a.is_empty() && b.is_empty()) || tail(1, 1) || tail(1, 0) || tail(0, 1) || swapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_forgiven_and_two_are_not() {
        let names = Names::new(["kubernetes-deploy", "pdf-forms", "the-debug"].into_iter());
        for word in ["kubernets", "kubernetess", "kubernetis", "kuberentes", "kubernetes"] {
            assert_eq!(names.near(word), Some("kubernetes"), "{word}");
        }
        assert_eq!(names.near("kubrnets"), None);
        assert_eq!(names.near("pdg"), None);
        assert_eq!(names.near("debgu"), Some("debug"));
        assert_eq!(names.near(""), None);
    }

    #[test]
    fn the_nearest_name_is_one_that_could_be_meant() {
        let names = ["create-pr", "debug", "write-tests"];
        assert_eq!(nearest("creat-pr", names.into_iter()), Some("create-pr"));
        assert_eq!(nearest("tests", names.into_iter()), Some("write-tests"));
        assert_eq!(nearest("kubernetes", names.into_iter()), None);
        assert_eq!(nearest("fidn", ["bind", "find"].into_iter()), Some("find"));
        assert_eq!(nearest("nope", ["kode"].into_iter()), None);
    }
}
