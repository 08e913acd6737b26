//! The rule about characters that nobody sees.

use std::borrow::Cow;

use prowess_frontmatter::{Style, Value};

use crate::{
    definition::fences,
    finding::{At, Report},
    parse::Reading,
    rule,
};

pub(super) fn characters(reading: &Reading<'_>, report: &mut Report) {
    if report.wants(&rule::HIDDEN_CHARACTERS).is_none() {
        return;
    }
    let blocks = [reading.document.frontmatter, Some(reading.document.body)];
    for block in blocks.into_iter().flatten() {
        if let Some((at, c, more)) = first(block.text) {
            let line = block.line + block.text[..at].matches('\n').count();
            note(At::line(line), c, more, report);
        }
    }
    // An escape such as `\u202e` hides nothing in the file, but in the text that is made of it.
    for field in reading.fields.iter().flatten() {
        let at = At::line(reading.line(field));
        if matches!(field.key, Cow::Owned(_)) {
            text(&field.key, || at, report);
        }
        escaped(&field.value, at, report);
    }
}

/// Notes what is hidden in the names of the files beside a `SKILL.md`.
pub(super) fn names<'p>(paths: impl Iterator<Item = &'p str>, report: &mut Report) {
    for path in paths {
        if let Some((_, c, _)) = first(path) {
            let code = u32::from(c);
            let message = || {
                format!("the name of the file `{path}` has an invisible character, U+{code:04X}")
            };
            report.note(&rule::HIDDEN_CHARACTERS, At::FILE, message, "rename the file");
        }
    }
}

/// Notes words in code that mix Latin letters with some that look like them.
pub(super) fn look_alikes(reading: &Reading<'_>, report: &mut Report) {
    let body = reading.document.body;
    if body.text.is_ascii() {
        return;
    }
    for fence in fences(body.text) {
        let words = fence.text.split(|c: char| !c.is_alphanumeric());
        let other = |c: char| matches!(c, '\u{370}'..='\u{3FF}' | '\u{400}'..='\u{4FF}');
        let mut mixed =
            words.filter(|it| it.contains(other) && it.contains(|c: char| c.is_ascii_alphabetic()));
        if let Some(word) = mixed.next() {
            report.note(
                &rule::HIDDEN_CHARACTERS,
                At::line(body.line + fence.line - 1),
                || format!("the word `{word}` in this block mixes Latin letters with others that look like them"),
                "write it in one script",
            );
        }
    }
}

/// Notes what is hidden in a text that was made of the file, such as a description.
pub(super) fn text(text: &str, at: impl FnOnce() -> At, report: &mut Report) {
    if let Some((_, c, more)) = first(text) {
        note(at(), c, more, report);
    }
}

fn escaped(value: &Value<'_>, at: At, report: &mut Report) {
    match value {
        Value::Scalar(scalar)
            if scalar.style == Style::Quoted && matches!(scalar.text, Cow::Owned(_)) =>
        {
            if let Some((_, c, more)) = first(&scalar.text) {
                note(at, c, more, report);
            }
        }
        Value::List(items) => items.iter().for_each(|it| escaped(it, at, report)),
        Value::Map(fields) => fields.iter().for_each(|it| escaped(&it.value, at, report)),
        Value::Scalar(_) | Value::Empty => {}
    }
}

fn note(at: At, c: char, more: usize, report: &mut Report) {
    let code = u32::from(c);
    let others = if more == 0 { String::new() } else { format!(" and {more} more like it") };
    report.note(
        &rule::HIDDEN_CHARACTERS,
        at,
        || format!("there is an invisible character here, U+{code:04X}{others}"),
        "take it out: what a person sees should be what a model reads",
    );
}

/// The first hidden character, where it stands, and how many follow.
fn first(text: &str) -> Option<(usize, char, usize)> {
    if is_plain(text) {
        return None;
    }
    let mut found = hidden(text);
    let (at, c) = found.next()?;
    Some((at, c, found.count()))
}

/// Whether a text has no byte that a hidden character begins with, as nearly every text.
fn is_plain(text: &str) -> bool {
    let control = |byte: u8| byte < 32 && !matches!(byte, b'\n' | b'\r' | b'\t');
    let begins = |byte: u8| matches!(byte, 0x7F | 0xC2 | 0xE1..=0xE3 | 0xEF | 0xF0 | 0xF3);
    // Looking at every byte without stopping is what a compiler can make fast.
    !text.bytes().fold(false, |any, byte| any | control(byte) | begins(byte))
}

/// The characters that change what is seen without being seen.
fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = '\n';
    let mut flag_end = 0;
    text.char_indices().filter(move |(at, c)| {
        if *c == '\u{1F3F4}' {
            flag_end = at + flag(&text[*at..]);
        }
        let hidden = match c {
            '\t' | '\n' | '\r' => false,
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => true,
            '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{2028}' | '\u{2029}' => true,
            '\u{AD}' | '\u{115F}' | '\u{1160}' | '\u{180E}' | '\u{3164}' | '\u{FFA0}' => true,
            // Joiners, marks and selectors belong to emoji and to other scripts, one at a time.
            '\u{200C}'..='\u{200F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => {
                before == *c || (before.is_ascii() && !is_keycap(before))
            }
            '\u{E0000}'..='\u{E007F}' => *at >= flag_end,
            // Spaces of another kind at the start of a line are no indentation.
            '\u{A0}' => before == '\n',
            c => c.is_control(),
        };
        before = *c;
        hidden
    })
}

/// What may stand before a selector in an emoji such as a keycap.
fn is_keycap(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '#' | '*')
}

/// How long the flag at the start of a text is: tags spell three of them, and nothing else.
fn flag(text: &str) -> usize {
    let tag = |byte: u8| char::from_u32(0xE0000 + u32::from(byte)).unwrap_or_default();
    let flags = ["gbeng\x7F", "gbsct\x7F", "gbwls\x7F"];
    let spelt =
        flags.map(|it| std::iter::once('\u{1F3F4}').chain(it.bytes().map(tag)).collect::<String>());
    spelt.iter().find(|it| text.starts_with(it.as_str())).map_or(0, String::len)
}
