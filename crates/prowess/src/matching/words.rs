//! From text to terms: the same words however they are written.
//!
//! A text falls into *chunks* (`front-end`, `GitHub's`, `next.js`) and a chunk into terms.

use std::{borrow::Cow, hash::Hasher};

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use super::{short, stem, stop::is_stop};

/// A term: the hash of a word's stem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Term(pub(crate) u32);

impl Term {
    /// The term of a lower-case word without accents.
    pub(crate) fn new(word: &str) -> Self {
        Self((hash(stem(word).as_bytes()) >> 32) as u32)
    }
}

/// The stem of a lower-case word without accents; that of its long form, where it is a short one.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    stem::stem(short::long(word).unwrap_or(word))
}

/// A term as a chunk has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) term: Term,
    pub(crate) is_stop: bool,
    /// Whether it stands beside the words of the text, as `github` does beside `git` and `hub`, and
    /// so has no place of its own among them.
    pub(crate) is_extra: bool,
}

/// Longer chunks are keys, hashes or pictures, and no words.
const LONGEST: usize = 64;

/// Gives every chunk of a text: letters and digits with the marks that join them. Scripts without
/// spaces give two characters at a time.
pub(crate) fn chunks<'t>(text: &'t str, mut take: impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let class = |at: usize| bytes.get(at).map_or(Class::Gap, |byte| CLASSES[*byte as usize]);
    let char = |at: usize| text[at..].chars().next().unwrap_or(' ');
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        loop {
            // Nearly everything is ASCII, and that goes byte by byte.
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
            Class::Beyond if is_dense(char(at)) => dense(text, at, &mut take),
            Class::Beyond => at + char(at).len_utf8(),
            _ => at + 1,
        };
    }
}

/// Whether a character beyond ASCII can stand in a word.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c) || c == '’'
}

/// Gives the pairs of a run of characters that has no spaces, or its one character.
fn dense<'t>(text: &'t str, start: usize, take: &mut impl FnMut(&'t str)) -> usize {
    let mut run = text[start..].char_indices().take_while(|it| is_dense(it.1)).peekable();
    let mut end = start;
    let mut before = None;
    while let Some((at, c)) = run.next() {
        end = start + at + c.len_utf8();
        match before {
            Some(before) => take(&text[before..end]),
            None if run.peek().is_none() => take(&text[start..end]),
            None => {}
        }
        before = Some(start + at);
    }
    end
}

/// Gives the terms of one chunk, each with the word that it stands for.
pub(crate) fn terms(chunk: &str, mut take: impl FnMut(Found, &str)) {
    let folded;
    let chunk = if chunk.is_ascii() {
        chunk
    } else {
        folded = chunk.nfkd().filter(|c| !is_combining_mark(*c)).collect::<String>();
        &*folded
    };
    let mut give = |word: &str, is_extra: bool| {
        let word = word.to_lowercase();
        let is_stop = is_stop(&word);
        let term = Term::new(&word);
        take(Found { term, is_stop, is_extra }, &word);
    };
    if chunk.ends_with(['#', '+']) {
        give(chunk, false);
        return;
    }
    let parts: Vec<&str> = parts(chunk).collect();
    for part in &parts {
        give(part, false);
        let inner = inner(part);
        if (2..=4).contains(&inner.len()) {
            inner.iter().filter(|it| it.len() > 1).for_each(|it| give(it, true));
        }
    }
    if (2..=3).contains(&parts.len()) {
        give(&parts.concat(), true);
    }
}

/// The parts of a chunk between its joints; what follows an apostrophe is an ending.
fn parts(chunk: &str) -> impl Iterator<Item = &str> {
    chunk.split(['-', '_', '.']).filter_map(|part| {
        let (word, ending) = part.split_once(['\'', '’']).unwrap_or((part, ""));
        let word = if word.chars().count() == 1 && !ending.is_empty() && ending.len() > 2 {
            ending
        } else {
            word
        };
        (!word.is_empty()).then_some(word)
    })
}

/// The words of `camelCase`, `HTMLPage` and `python3`; none where there is but one.
fn inner(part: &str) -> Vec<&str> {
    if part.bytes().all(|it| it.is_ascii_lowercase()) {
        return Vec::new();
    }
    let chars: Vec<(usize, char)> = part.char_indices().collect();
    let is_boundary = |at: usize| {
        let (before, c) = (chars[at - 1].1, chars[at].1);
        let next = chars.get(at + 1).map(|it| it.1);
        (before.is_lowercase() && c.is_uppercase())
            || (before.is_uppercase() && c.is_uppercase() && next.is_some_and(char::is_lowercase))
            || (before.is_alphabetic() && c.is_numeric())
            || (before.is_numeric() && c.is_alphabetic())
    };
    let mut words = Vec::new();
    let mut start = 0;
    for at in (1..chars.len()).filter(|at| is_boundary(*at)).map(|at| chars[at].0) {
        words.push(&part[start..at]);
        start = at;
    }
    words.push(&part[start..]);
    words
}

/// What a byte is to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A letter or a digit.
    Letter,
    /// What joins two words to one.
    Joint,
    /// Nothing that belongs to a word.
    Gap,
    /// A part of a character beyond ASCII.
    Beyond,
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
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF)
}

/// A hash that is the same on every machine and in every version: terms are kept by it.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let (words, rest) = bytes.as_chunks();
    let words = words.iter().map(|it| u64::from_le_bytes(*it));
    // The rest is filled up with zeros, byte by byte: a copy of so few costs more.
    let last = rest.iter().rfold(0, |word, byte| word << 8 | u64::from(*byte));
    for word in words.chain((!rest.is_empty()).then_some(last)) {
        let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = mixed ^ (mixed >> 29);
    }
    (hash ^ bytes.len() as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// A hasher for what is a hash already.
#[derive(Debug, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
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
