//! Characters that people do not see, or take for others.

use prowess::{Rule, Severity, without_invisible};

use super::{
    rules::{INVISIBLE_TEXT, LOOK_ALIKE_LETTERS},
    text::LOOK_ALIKES,
};

/// A character on a line of a text.
pub(super) struct Oddity {
    pub(super) rule: &'static Rule,
    pub(super) severity: Severity,
    /// The line, from 0, and the position within.
    pub(super) line: usize,
    pub(super) at: usize,
    pub(super) message: String,
}

/// The classes of invisible characters, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Tag,
    Selector,
    Direction,
    Terminal,
    Width,
}

/// Returns the first character of each class in a text.
pub(super) fn find(text: &str) -> Vec<Oddity> {
    let is_usual =
        |byte: u8| byte.is_ascii() && (byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t'));
    if text.bytes().all(is_usual) {
        return Vec::new();
    }
    let mut found: Vec<(Class, usize, usize, String, usize)> = Vec::new();
    let mut look_alike = None;
    for (number, line) in text.lines().enumerate() {
        if line.bytes().all(is_usual) {
            continue;
        }
        for (at, c) in hidden(line) {
            let class = class_of(c);
            match found.iter_mut().find(|it| it.0 == class) {
                Some(it) => {
                    it.4 += 1;
                    if it.3.len() < 160 {
                        it.3.extend(spelt(c));
                    }
                }
                None => found.push((class, number, at, spelt(c).into_iter().collect(), 1)),
            }
        }
        if look_alike.is_none() {
            look_alike = mixed_word(line).map(|(at, word)| (number, at, word.to_owned()));
        }
    }
    let mut oddities: Vec<Oddity> = found
        .into_iter()
        .map(|(class, line, at, words, count)| {
            let many = if count == 1 {
                "an invisible character".to_owned()
            } else {
                format!("{count} invisible characters")
            };
            let is_readable = words.chars().filter(char::is_ascii_alphabetic).count() > 3;
            let spelt =
                if is_readable { format!(", which spell `{words}`") } else { String::new() };
            let (severity, what) = match class {
                Class::Tag => (Severity::Error, "of the tags block"),
                Class::Selector if count > 3 => {
                    (Severity::Error, "that select variants of nothing")
                }
                Class::Selector => (Severity::Warning, "that select variants of nothing"),
                Class::Direction if line_is_latin(text, line) => {
                    (Severity::Error, "that change the direction of the text")
                }
                Class::Direction => (Severity::Warning, "that change the direction of the text"),
                Class::Terminal => (Severity::Warning, "that control terminals"),
                Class::Width if count > 8 => (Severity::Warning, "without width"),
                Class::Width => (Severity::Info, "without width"),
            };
            let message =
                format!("there are {many} {what}{spelt}").replace("there are an", "there is an");
            Oddity { rule: &INVISIBLE_TEXT, severity, line, at, message }
        })
        .collect();
    oddities.extend(look_alike.map(|(line, at, word)| Oddity {
        rule: &LOOK_ALIKE_LETTERS,
        severity: Severity::Warning,
        line,
        at,
        message: format!("the word `{word}` mixes Latin letters with others that look like them"),
    }));
    oddities
}

/// Returns the invisible characters of a line, with their positions.
fn hidden(line: &str) -> Vec<(usize, char)> {
    let shown = without_invisible(line);
    let mut shown = shown.chars().peekable();
    line.char_indices().filter(|it| shown.next_if_eq(&it.1).is_none()).collect()
}

fn class_of(c: char) -> Class {
    match c {
        '\u{E0000}'..='\u{E007F}' => Class::Tag,
        '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => Class::Selector,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Class::Direction,
        c if c.is_control() => Class::Terminal,
        _ => Class::Width,
    }
}

/// Returns the letter that an invisible character stands for.
fn spelt(c: char) -> Option<char> {
    let code = u32::from(c);
    let byte = match c {
        '\u{E0020}'..='\u{E007E}' => code - 0xE0000,
        '\u{E0100}'..='\u{E01EF}' => code - 0xE0100 + 16,
        _ => return None,
    };
    char::from_u32(byte).filter(|it| (' '..='~').contains(it) && *it != '`')
}

/// Whether a line has letters of scripts that are written from left to right only.
fn line_is_latin(text: &str, line: usize) -> bool {
    let line = text.lines().nth(line).unwrap_or("");
    !line.contains(|c: char| matches!(c, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFE}'))
}

/// Returns a word that is written with letters of two scripts.
fn mixed_word(line: &str) -> Option<(usize, &str)> {
    let mut at = 0;
    line.split_inclusive(|c: char| !c.is_alphanumeric()).find_map(|piece| {
        let start = at;
        at += piece.len();
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        if word.is_ascii() {
            return None;
        }
        let latin = word.chars().filter(char::is_ascii_alphabetic).count();
        let others: Vec<char> = word.chars().filter(|it| !it.is_ascii()).collect();
        let look_alike =
            |c: &char| *c >= '\u{370}' && LOOK_ALIKES.binary_search_by_key(c, |it| it.0).is_ok();
        (latin >= 2 && word.chars().count() >= 4 && others.iter().all(look_alike))
            .then_some((start, word))
    })
}
