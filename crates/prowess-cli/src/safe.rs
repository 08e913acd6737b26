//! Text from outside, made safe for a terminal.

use std::{borrow::Cow, fmt::Write as _};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Escapes characters that would move the cursor, change direction or be invisible as `\u{…}`; line
/// ends and tabs become spaces.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escape_with(text, |c, is_stray| match c {
        '\n' | '\r' | '\t' => Some(" ".to_owned()),
        c if is_hidden(c) || is_stray => Some(format!("\\u{{{:x}}}", u32::from(c))),
        _ => None,
    })
}

/// Like [`line`], but keeps line ends and tabs, and the joiners that emoji and scripts need.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escape_with(text, |c, is_stray| match c {
        '\n' | '\t' | '\u{200C}' | '\u{200D}' => None,
        c if is_hidden(c) || is_stray => Some(format!("\\u{{{:x}}}", u32::from(c))),
        _ => None,
    })
}

/// Like [`lines`], for text to be approved: nothing in it is joined, blank or pushed out of sight.
pub(crate) fn for_approval(text: &str) -> String {
    let plain = escape_with(text, |c, _| match c {
        '\n' | '\t' => None,
        c if is_hidden(c) || is_blank(c) => Some(format!("\\u{{{:x}}}", u32::from(c))),
        _ => None,
    });
    let mut out = String::with_capacity(plain.len());
    let mut blank = String::new();
    for c in plain.chars().chain(['\n']) {
        if matches!(c, ' ' | '\t') {
            blank.push(c);
            continue;
        }
        match blank.chars().map(|it| if it == '\t' { 8 } else { 1 }).sum::<usize>() {
            width if width < SPACES => out.push_str(&blank),
            width => drop(write!(out, "⟨{width} spaces⟩")),
        }
        blank.clear();
        out.push(c);
    }
    out.pop();
    out
}

/// The number of blank columns that could push the text after them out of sight.
const SPACES: usize = 40;

/// Returns whether a character takes room or joins the one before it, but is not visible itself.
fn is_blank(c: char) -> bool {
    matches!(c, '\u{A0}' | '\u{1680}' | '\u{202F}' | '\u{205F}' | '\u{2800}' | '\u{3000}')
        || matches!(c, '\u{180B}'..='\u{180F}' | '\u{2000}'..='\u{200A}')
        || matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// A decoder of text that comes in pieces of bytes and may be split inside a character.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Vec<u8>);

impl Pieces {
    /// Returns the text of a piece, after the rest of the one before it; invalid bytes are
    /// replaced.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let left = (1..4).find(|&length: &usize| {
            let end = self.0.len().checked_sub(length).map(|it| &self.0[it..]);
            let read = end.map(str::from_utf8);
            matches!(read, Some(Err(error)) if error.valid_up_to() == 0 && error.error_len().is_none())
        }).unwrap_or(0);
        let rest = self.0.split_off(self.0.len() - left);
        let whole = std::mem::replace(&mut self.0, rest);
        String::from_utf8_lossy(&whole).into_owned()
    }
}

/// Escapes such characters in JSON, which keeps its meaning.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    escape_with(text, |c, _| {
        (is_hidden(c) && !matches!(c, '\n' | '\r')).then(|| {
            let mut units = [0; 2];
            let mut out = String::new();
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
            out
        })
    })
}

/// The columns that a line takes at a terminal, without what only changes its style.
#[cfg(feature = "agent")]
pub(crate) fn columns(line: &str) -> usize {
    let mut is_style = false;
    let mut columns = 0;
    for c in line.chars() {
        match c {
            '\x1b' => is_style = true,
            'm' if is_style => is_style = false,
            _ if is_style => {}
            '\t' => columns = columns / 8 * 8 + 8,
            c => columns += c.width().unwrap_or(0),
        }
    }
    columns
}

/// Cuts a line to a width, with `…` where something was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut used = 0;
    // The cut: before the first character that leaves no room for the `…`.
    let mut end = None;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used >= width {
            end.get_or_insert(at);
        }
        if let Some(end) = end.filter(|_| used > width) {
            return format!("{}…", &text[..end]);
        }
    }
    text.to_owned()
}

/// Breaks a line into at most this many lines of this width, with `…` where text was cut: after a
/// word, or inside one that is too wide.
pub(crate) fn cut_at_word(text: &str, width: usize, lines: usize) -> Vec<String> {
    let mut words = text.split_whitespace().peekable();
    let mut out: Vec<String> = Vec::new();
    while words.peek().is_some() && out.len() < lines {
        let mut line = String::new();
        while let Some(word) = words.peek() {
            let gap = usize::from(!line.is_empty());
            if line.width() + gap + word.width() > width {
                break;
            }
            line.push_str(if gap == 1 { " " } else { "" });
            line.push_str(word);
            words.next();
        }
        if line.is_empty() {
            let word = words.next().unwrap_or_default();
            out.push(cut(word, width));
        } else {
            out.push(line);
        }
    }
    if words.peek().is_some()
        && let Some(last) = out.last_mut()
    {
        let marks = ['.', ',', ';', ':', '…'];
        let mut bare = last.trim_end_matches(marks);
        while bare.width() + 2 > width {
            match bare.rfind(' ') {
                Some(end) => bare = bare[..end].trim_end_matches(marks),
                None => break,
            }
        }
        *last = cut(&format!("{bare} …"), width);
    }
    out
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{115F}' | '\u{1160}' | '\u{180E}' | '\u{3164}' | '\u{FFA0}')
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
        || ('\u{E0000}'..='\u{E007F}').contains(&c)
        || ('\u{E0100}'..='\u{E01EF}').contains(&c)
}

/// Replaces the characters for which `escape` returns a replacement. Its second argument says
/// whether a character is a variation selector after another.
fn escape_with(text: &str, escape: impl Fn(char, bool) -> Option<String>) -> Cow<'_, str> {
    // Nearly all text is plain ASCII, and a loop without an early exit detects that fastest.
    if text.bytes().fold(true, |is_plain, it| is_plain & matches!(it, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut copied = 0;
    let mut was_selector = false;
    for (at, c) in text.char_indices() {
        let is_selector = matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}');
        let is_stray = is_selector && was_selector;
        was_selector = is_selector;
        if let Some(shown) = (!(' '..='~').contains(&c)).then(|| escape(c, is_stray)).flatten() {
            out.push_str(&text[copied..at]);
            out.push_str(&shown);
            copied = at + c.len_utf8();
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_moves_its_cursor() {
        assert_eq!(line("a\x1b[2Jb\r\nc\u{202e}d"), "a\\u{1b}[2Jb  c\\u{202e}d");
        assert_eq!(lines("a\nb\x07"), "a\nb\\u{7}");
        assert_eq!(for_approval("a\u{2800}\u{fe0f}\u{a0}b"), "a\\u{2800}\\u{fe0f}\\u{a0}b");
        let pushed = format!("    ls{}; rm x", " ".repeat(500));
        assert_eq!(for_approval(&pushed), "    ls⟨500 spaces⟩; rm x");
        assert_eq!(json("\"\u{202e}\u{9b}\u{e0041}\""), "\"\\u202e\\u009b\\udb40\\udc41\"");
    }

    #[test]
    fn no_character_is_split_between_pieces() {
        let mut pieces = Pieces::default();
        let mut text = |bytes: &[u8]| pieces.text(bytes);
        assert_eq!([text(b"a\xe2"), text(b"\x82"), text(b"\xacb")], ["a", "", "\u{20ac}b"]);
        assert_eq!([text(b"\xff\xf0\x9f"), text(b"x")], ["\u{fffd}", "\u{fffd}x"]);
    }

    #[test]
    fn a_cut_is_seen_and_counts_wide_characters() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("技能技能", 5), "技能…");
    }

    #[test]
    fn styles_take_no_columns() {
        assert_eq!(columns("a\x1b[1m技\x1b[0m\tb"), 9);
    }

    #[test]
    fn a_text_is_cut_behind_a_word() {
        assert_eq!(cut_at_word("one two three", 20, 2), ["one two three"]);
        assert_eq!(cut_at_word("one two, three", 9, 1), ["one two …"]);
        assert_eq!(cut_at_word("one two three four", 9, 2), ["one two", "three …"]);
        assert_eq!(cut_at_word("onetwothreefour five", 8, 1), ["onetwot…"]);
    }
}
