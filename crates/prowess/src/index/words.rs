//! Splits text into terms: the same words in any spelling.
//!
//! A text is split into *chunks* (`front-end`, `GitHub's`, `next.js`) and a chunk into terms.

use std::{borrow::Cow, hash::Hasher};

use unicode_normalization::char::is_combining_mark;

use super::{background, endings, fold::fold, short, stem, stop::is_stop};

/// A term: the hash of a word's stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Term(pub(crate) u32);

impl Term {
    /// Returns the term of a folded lower-case word.
    pub(crate) fn new(word: &str) -> Self {
        Self::of(&stem(word))
    }

    /// Returns the term of a stem.
    pub(crate) fn of(stem: &str) -> Self {
        Self((hash(stem.as_bytes()) >> 32) as u32)
    }
}

/// The first letters of stems, to rule out most words quickly.
#[derive(Debug, Default)]
pub(crate) struct StemStarts([u32; 32]);

impl StemStarts {
    /// Adds a stem, and the abbreviations for it.
    pub(crate) fn add(&mut self, stem: &str) {
        self.mark(stem);
        let shorts =
            short::LONG.iter().filter(|it| Self::start_index(it.1) == Self::start_index(stem));
        shorts.for_each(|it| self.mark(it.0));
    }

    /// Whether a chunk may have one of the stems. Stemming removes the end of a word, and at its
    /// beginning at most the `e` of an umlaut; a chunk that is not a plain word is always allowed.
    pub(crate) fn allows(&self, chunk: &str) -> bool {
        let (row, column) = Self::start_index(chunk);
        self.0[row] & (1 << column) != 0
            || matches!(chunk.as_bytes(), [b'a' | b'o' | b'u', b'e', ..])
            || !chunk.bytes().all(|it| it.is_ascii_lowercase())
    }

    fn mark(&mut self, word: &str) {
        let (row, column) = Self::start_index(word);
        self.0[row] |= 1 << column;
    }

    /// Returns the position for the first two letters.
    fn start_index(word: &str) -> (usize, usize) {
        let at = |at: usize| word.as_bytes().get(at).map_or(0, |it| usize::from(it % 32));
        (at(0), at(1))
    }
}

/// Returns the stem of a folded lower-case word; that of its long form if it is an abbreviation.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    let stem = english_stem(word);
    let word = short::expand(word).unwrap_or(word);
    let bare = endings::strip_endings(word);
    if bare == word || background::is_known(&stem) {
        return stem;
    }
    let of_bare = stem::stem(&bare);
    let is_english = background::is_known(&of_bare);
    Cow::Owned(if is_english && of_bare.len() < 5 {
        // Most short words of English are one ending away from another word.
        format!("{bare}~")
    } else if is_english || bare.ends_with("ing") {
        of_bare.into_owned()
    } else {
        bare.into_owned()
    })
}

/// Returns the stem of a word that is treated as English, as in the table of common words.
pub(crate) fn english_stem(word: &str) -> Cow<'_, str> {
    stem::stem(short::expand(word).unwrap_or(word))
}

/// Returns the longest known words at the start and the end of a compound: German joins `Datenbank`
/// and `Sicherung`, with or without a letter between them.
pub(crate) fn compound_parts(
    word: &str,
    is_known: impl Fn(Term) -> bool,
) -> impl Iterator<Item = &str> {
    const SHORTEST: usize = 5;
    const REST: usize = 3;
    let length = if word.is_ascii() { word.len() } else { 0 };
    let places = REST..=length.saturating_sub(SHORTEST);
    let start = places.clone().map(|it| &word[..length - it]).find(|it| is_known(Term::new(it)));
    let end = places.map(|it| &word[it..]).find(|it| is_known(Term::new(it)));
    start.into_iter().chain(end)
}

/// A term of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkTerm {
    pub(crate) term: Term,
    pub(crate) is_stop: bool,
    /// Whether it is an extra term, as `github` is next to `git` and `hub`, and so has no position
    /// of its own among the words.
    pub(crate) is_extra: bool,
}

/// The maximum length; longer chunks are keys, hashes or pictures, not words.
const LONGEST: usize = 64;

/// Passes every chunk of a text to `take`: letters and digits with the marks that join them.
/// Scripts without spaces yield two characters at a time.
pub(crate) fn chunks<'t>(text: &'t str, mut take: impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let class = |at: usize| bytes.get(at).map_or(Class::Gap, |byte| CLASSES[*byte as usize]);
    let char = |at: usize| text[at..].chars().next().unwrap_or(' ');
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        loop {
            // Nearly everything is ASCII, which is processed byte by byte.
            while class(at) == Class::Letter {
                at += 1;
            }
            let goes_on = match class(at) {
                Class::Joint => {
                    at > start && matches!(class(at + 1), Class::Letter | Class::Beyond)
                }
                Class::Beyond => !is_dense(char(at)) && is_letter(char(at)),
                Class::Letter | Class::Gap => false,
            };
            if !goes_on {
                break;
            }
            at += char(at).len_utf8();
        }
        if at > start {
            // `c++` and `c#` are names of languages.
            let rest = &bytes[at..];
            let tail =
                if rest.starts_with(b"++") { 2 } else { usize::from(rest.starts_with(b"#")) };
            let tail = if at - start <= 2 { tail } else { 0 };
            if at - start <= LONGEST {
                take(&text[start..at + tail]);
            }
            at += tail;
            continue;
        }
        at = match class(at) {
            Class::Beyond if is_dense(char(at)) => take_dense_run(text, at, &mut take),
            Class::Beyond => at + char(at).len_utf8(),
            _ => at + 1,
        };
    }
}

/// Whether a non-ASCII character can be part of a word.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c) || c == '’'
}

/// Passes the character pairs of a run without spaces to `take`, or its only character. A character
/// includes its marks. Each kind of Japanese letters forms runs of its own, because they hardly
/// ever change within a word, and those for foreign words write one word at a time.
fn take_dense_run<'t>(text: &'t str, start: usize, take: &mut impl FnMut(&'t str)) -> usize {
    let rest = &text[start..];
    let is_kana = [is_hiragana, is_katakana].map(|it| (it, rest.starts_with(it)));
    let length = rest
        .find(|c| {
            let is_same = is_kana.iter().all(|(is_kana, starts)| is_kana(c) == *starts);
            !(is_mark(c) || is_dense(c) && is_same)
        })
        .unwrap_or(rest.len());
    let run = &rest[..length];
    // A leading mark is a character of its own.
    let starts = run.char_indices().filter(|(at, c)| *at == 0 || !is_mark(*c)).map(|it| it.0);
    let starts: Vec<usize> = starts.chain([length]).collect();
    if starts.len() == 2 || (rest.starts_with(is_katakana) && length <= LONGEST) {
        take(run);
    } else {
        starts.windows(3).for_each(|pair| take(&run[pair[0]..pair[2]]));
    }
    start + length
}

/// Passes the terms of one chunk to `take`, each with its word.
pub(crate) fn terms(chunk: &str, mut take: impl FnMut(ChunkTerm, &str)) {
    let folded;
    let chunk = if chunk.is_ascii() {
        chunk
    } else {
        folded = fold(chunk);
        &*folded
    };
    let mut give = |word: &str, is_extra: bool| {
        let word = word.to_lowercase();
        let is_stop = is_stop(&word);
        let term = Term::new(&word);
        take(ChunkTerm { term, is_stop, is_extra }, &word);
    };
    if chunk.ends_with(['#', '+']) {
        give(chunk, false);
        return;
    }
    if chunk.starts_with(is_katakana) {
        // `サーバー` is also written without its last sign.
        let word = chunk.strip_suffix('ー').filter(|it| !it.is_empty()).unwrap_or(chunk);
        give(word, false);
        let starts: Vec<usize> = word.char_indices().map(|it| it.0).chain([word.len()]).collect();
        let pairs = starts.windows(3).filter(|_| starts.len() > 3);
        pairs.for_each(|pair| give(&word[pair[0]..pair[2]], true));
        return;
    }
    let parts: Vec<&str> = parts(chunk).collect();
    for part in &parts {
        give(part, false);
        let inner = split_case(part);
        if (2..=4).contains(&inner.len()) {
            inner.iter().filter(|it| it.len() > 1).for_each(|it| give(it, true));
        }
    }
    if (2..=3).contains(&parts.len()) {
        give(&parts.concat(), true);
    }
}

/// Passes the words of a text to `take`, except for stop words, with their terms.
pub(crate) fn for_each_word(text: &str, mut take: impl FnMut(Term, &str)) {
    chunks(text, |chunk| {
        terms(chunk, |found, word| {
            if !found.is_stop && !found.is_extra {
                take(found.term, word);
            }
        });
    });
}

/// Counts the distinct words of a text, except for stop words.
pub(crate) fn count_informative(text: &str) -> usize {
    let mut terms = Vec::new();
    for_each_word(text, |term, _| terms.push(term));
    terms.sort_unstable();
    terms.dedup();
    terms.len()
}

/// Splits a chunk at its joints. Text after an apostrophe is an ending if it is short, as in
/// `GitHub's`, and else a word, as in `dell'azienda`; one letter before it is dropped.
fn parts(chunk: &str) -> impl Iterator<Item = &str> {
    chunk.split(['-', '_', '.']).flat_map(|part| {
        let (word, rest) = part.split_once(['\'', '’']).unwrap_or((part, ""));
        let rest = rest.split(['\'', '’']).filter(|it| it.len() > 2);
        let is_word = word.chars().nth(1).is_some() || rest.clone().next().is_none();
        [word].into_iter().filter(move |it| is_word && !it.is_empty()).chain(rest)
    })
}

/// Splits `camelCase`, `HTMLPage` and `python3` into words; empty if there is only one.
fn split_case(part: &str) -> Vec<&str> {
    if part.bytes().all(|it| it.is_ascii_lowercase()) {
        return Vec::new();
    }
    let chars: Vec<(usize, char)> = part.char_indices().collect();
    let mut words = Vec::new();
    let mut start = 0;
    for at in (1..chars.len()).filter(|at| is_boundary(&chars, *at)).map(|at| chars[at].0) {
        words.push(&part[start..at]);
        start = at;
    }
    words.push(&part[start..]);
    words
}

/// Whether a new word begins at a character, as in `createPR` and `sha256sum`.
fn is_boundary(chars: &[(usize, char)], at: usize) -> bool {
    let (before, c) = (chars[at - 1].1, chars[at].1);
    let next = chars.get(at + 1).map(|it| it.1);
    (before.is_lowercase() && c.is_uppercase())
        || (before.is_uppercase() && c.is_uppercase() && next.is_some_and(char::is_lowercase))
        || (before.is_alphabetic() && c.is_numeric())
        || (before.is_numeric() && c.is_alphabetic())
}

/// The role of a byte in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A letter or a digit.
    Letter,
    /// A mark that joins two words.
    Joint,
    /// Not part of a word.
    Gap,
    /// A part of a non-ASCII character.
    Beyond,
}

/// Whether a character modifies the letter before it.
fn is_mark(c: char) -> bool {
    is_combining_mark(c) || matches!(c, '\u{AD}' | '\u{200D}' | '\u{FF9E}' | '\u{FF9F}')
}

fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{309F}')
}

fn is_katakana(c: char) -> bool {
    matches!(c, '\u{30A1}'..='\u{30FA}' | '\u{30FC}'..='\u{30FF}' | '\u{FF66}'..='\u{FF9F}')
}

/// The class of every byte.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Beyond; 256];
    let mut byte = 0;
    while byte < 0x80_u8 {
        classes[byte as usize] = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Class::Letter,
            b'-' | b'_' | b'.' | b'\'' => Class::Joint,
            _ => Class::Gap,
        };
        byte += 1;
    }
    classes
};

/// Whether a character is of a script that puts no spaces between words.
fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FA | 0x30FC..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF)
}

/// Computes a hash that is the same on every machine and in every version: terms are stored by it.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let (words, rest) = bytes.as_chunks();
    let words = words.iter().map(|it| u64::from_le_bytes(*it));
    // The rest is padded with zeros, byte by byte: copying so few would cost more.
    let last = rest.iter().rfold(0, |word, byte| word << 8 | u64::from(*byte));
    for word in words.chain((!rest.is_empty()).then_some(last)) {
        let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = mixed ^ (mixed >> 29);
    }
    (hash ^ bytes.len() as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// A hasher for keys that are already hashes.
#[derive(Debug, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(bytes);
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = u64::from(value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_common_in_english_keeps_its_stem() {
        for known in background::stems() {
            for ending in ["", "s", "e", "es", "er", "ing", "ed", "en", "ation"] {
                let word = format!("{known}{ending}");
                if word.is_ascii() && short::expand(&word).is_none() && stem::stem(&word) == known {
                    assert_eq!(stem(&word), known);
                }
            }
        }
    }
}
