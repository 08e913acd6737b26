//! The rule about invisible characters.

use std::{borrow::Cow, fmt::Write as _};

use prowess_frontmatter::{Style, Value};

use crate::{
    finding::{Position, Report, rule},
    read::{definition::fences, parse::SplitDocument},
    text::{
        invisible::{hidden_characters, is_plain, is_selector, visible},
        shorten::beginning,
    },
};

pub(super) fn check_document(reading: &SplitDocument<'_>, report: &mut Report) {
    if report.wants(&rule::HIDDEN_CHARACTERS).is_none() {
        return;
    }
    let blocks = [reading.document.frontmatter, Some(reading.document.body)];
    for block in blocks.into_iter().flatten() {
        if let Some(hidden) = Hidden::find(block.text) {
            let line = block.line + block.text[..hidden.at].matches('\n').count();
            hidden.note(Position::line(line), report);
        }
    }
    // An escape such as `\u202e` hides nothing in the file, but in the parsed text.
    for field in reading.fields.iter().flatten() {
        let at = Position::line(reading.line(field));
        if matches!(field.key, Cow::Owned(_)) {
            check_text(&field.key, || at, report);
        }
        check_escapes(&field.value, at, report);
    }
}

/// Reports hidden characters in the names of the files beside a `SKILL.md`.
pub(super) fn check_names<'p>(paths: impl Iterator<Item = &'p str>, report: &mut Report) {
    for path in paths {
        if let Some((_, c)) = hidden_characters(path).next() {
            let code = u32::from(c);
            report.note(
                &rule::HIDDEN_CHARACTERS,
                Position::FILE,
                || {
                    format!(
                        "the name of the file `{}` has an invisible character, U+{code:04X}",
                        visible(path)
                    )
                },
                "rename the file",
            );
        }
    }
}

/// Reports words in code that mix Latin letters with look-alikes.
pub(super) fn check_look_alikes(reading: &SplitDocument<'_>, report: &mut Report) {
    let body = reading.document.body;
    if body.text.is_ascii() {
        return;
    }
    for fence in fences(body.text) {
        let words = fence.text.split(|c: char| !c.is_alphanumeric());
        let mut mixed = words.filter(|it| {
            it.contains(|c: char| matches!(c, '\u{370}'..='\u{3FF}' | '\u{400}'..='\u{4FF}'))
                && it.contains(|c: char| c.is_ascii_alphabetic())
        });
        if let Some(word) = mixed.next() {
            report.note(
                &rule::HIDDEN_CHARACTERS,
                Position::line(body.line + fence.line - 1),
                || format!("the word `{word}` in this block mixes Latin letters with others that look like them"),
                "use letters of one script only",
            );
        }
    }
}

/// Reports hidden characters in a parsed text, such as a description.
pub(super) fn check_text(text: &str, at: impl FnOnce() -> Position, report: &mut Report) {
    if let Some(hidden) = Hidden::find(text) {
        hidden.note(at(), report);
    }
}

fn check_escapes(value: &Value<'_>, at: Position, report: &mut Report) {
    match value {
        Value::Scalar(scalar)
            if scalar.style == Style::Quoted && matches!(scalar.text, Cow::Owned(_)) =>
        {
            if let Some(hidden) = Hidden::find(&scalar.text) {
                hidden.note(at, report);
            }
        }
        Value::List(items) => items.iter().for_each(|it| check_escapes(it, at, report)),
        Value::Map(fields) => fields.iter().for_each(|it| check_escapes(&it.value, at, report)),
        Value::Scalar(_) | Value::Empty => {}
    }
}

/// The hidden characters of a text.
struct Hidden {
    /// The position of the first one.
    at: usize,
    message: String,
}

impl Hidden {
    fn find(text: &str) -> Option<Self> {
        if is_plain(text) {
            return None;
        }
        let found: Vec<(usize, char)> = hidden_characters(text).collect();
        let (at, first) = *found.first()?;
        let code = u32::from(first);
        let others = match found.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more like it"),
        };
        let mut message = format!("there is an invisible character here, U+{code:04X}{others}");
        let tags: Vec<u8> = found.iter().filter_map(|it| decode_tag(it.1)).collect();
        if let Some(spelt) = decode_message(&tags) {
            let _ = write!(message, "; the tag characters spell `{spelt}`");
        }
        let selectors = found.iter().map(|it| it.1).filter(|it| is_selector(*it));
        let bytes: Vec<u8> = selectors.filter_map(decode_selector).collect();
        if !bytes.is_empty() {
            let plural = if bytes.len() == 1 { "" } else { "s" };
            let _ = write!(message, "; {} variation selector{plural}", bytes.len());
            if let Some(spelt) = decode_message(&bytes).filter(|_| bytes.len() > 3) {
                let _ = write!(message, ", which spell `{spelt}`");
            }
        }
        Some(Self { at, message })
    }

    fn note(self, at: Position, report: &mut Report) {
        let hint = "remove it: people should see what a model reads";
        report.note(&rule::HIDDEN_CHARACTERS, at, || self.message, hint);
    }
}

/// The maximum number of characters shown of a hidden message.
const SPELT: usize = 120;

/// Decodes a hidden message, if it is readable.
fn decode_message(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    let text = text.replace(|c: char| c.is_control() || c == '`', " ");
    let text = visible(text.trim()).into_owned();
    let has_words = text.chars().any(char::is_alphanumeric);
    has_words.then(|| beginning(&text, SPELT).into_owned())
}

/// Returns the ASCII character that a tag character encodes.
fn decode_tag(c: char) -> Option<u8> {
    u8::try_from(u32::from(c).checked_sub(0xE0000)?).ok().filter(|it| (0x20..0x7F).contains(it))
}

/// Returns the byte that a variation selector encodes in a hidden message.
fn decode_selector(c: char) -> Option<u8> {
    let byte = match c {
        '\u{FE00}'..='\u{FE0F}' => u32::from(c) - 0xFE00,
        '\u{E0100}'..='\u{E01EF}' => u32::from(c) - 0xE0100 + 16,
        _ => 0,
    };
    u8::try_from(byte).ok()
}
