//! Invisible characters that change what a text says.

use std::borrow::Cow;

/// Removes invisible characters from an untrusted text. Line ends become `\n`,
/// and tabs are kept; so are the characters of an emoji, a flag or a script.
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_plain(text) && !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut hidden = hidden_characters(text).map(|it| it.0).peekable();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_hidden = hidden.next_if_eq(&at).is_some();
        match c {
            '\r' if chars.peek().is_some_and(|it| it.1 == '\n') => {}
            '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\u{A0}' if is_hidden => out.push(' '),
            // They only choose a direction, which a model does not see.
            '\u{200E}' | '\u{200F}' | '\u{61C}' => {}
            _ if is_hidden => {}
            c => out.push(c),
        }
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Removes invisible characters from an untrusted text, and leaves everything else as it is, line
/// ends included.
pub fn without_invisible(text: &str) -> Cow<'_, str> {
    let mut hidden = hidden_characters(text)
        .filter(|it| !matches!(it.1, '\u{A0}' | '\u{2028}' | '\u{2029}'))
        .peekable();
    if is_plain(text) || hidden.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let shown = text.char_indices().filter(|it| hidden.next_if_eq(it).is_none());
    shown.map(|it| it.1).collect::<String>().into()
}

/// Counts the invisible characters of a text that [`visible`] removes and `check` reports.
pub fn invisible(text: &str) -> usize {
    match is_plain(text) {
        true => 0,
        false => hidden_characters(text).filter(|it| it.1 != '\u{A0}').count(),
    }
}

/// Whether a text has no byte that can begin an invisible character, as nearly every text.
pub(crate) fn is_plain(text: &str) -> bool {
    // Checking every byte without an early exit can be vectorized by the compiler.
    !text.bytes().fold(false, |any, byte| {
        any | (byte < 32 && !matches!(byte, b'\n' | b'\r' | b'\t'))
            | matches!(byte, 0x7F | 0xC2 | 0xCD | 0xD8 | 0xE1..=0xE3 | 0xEF | 0xF0 | 0xF3)
    })
}

/// Returns the invisible characters of a text that belong to no emoji, flag or script, with their
/// positions.
pub(crate) fn hidden_characters(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = '\n';
    let mut flag_end = 0;
    text.char_indices().filter(move |(at, c)| {
        if *c == '\u{1F3F4}' {
            flag_end = at + flag(&text[*at..]);
        }
        let hidden = match c {
            '\t' | '\n' | '\r' => false,
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{206F}' => true,
            '\u{200B}' | '\u{2060}'..='\u{2065}' | '\u{FEFF}' | '\u{2028}' | '\u{2029}' => true,
            '\u{AD}' | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' => true,
            '\u{180E}' | '\u{3164}' | '\u{FFA0}' | '\u{1D173}'..='\u{1D17A}' => true,
            '\u{FDD0}'..='\u{FDEF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{FFFE}' | '\u{FFFF}' => true,
            // Direction marks belong to scripts that have a direction, one at a time.
            '\u{200E}' | '\u{200F}' | '\u{61C}' => before == *c || before.is_ascii(),
            '\u{200C}' | '\u{200D}' => !is_joined(before),
            c if is_selector(*c) => !is_selected(before, *c),
            '\u{E0000}'..='\u{E007F}' => *at >= flag_end,
            // Non-breaking spaces at the start of a line are not indentation.
            '\u{A0}' => before == '\n',
            c => c.is_control(),
        };
        before = *c;
        hidden
    })
}

/// Whether a character selects a variant of the one before it.
pub(crate) fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' | '\u{180B}'..='\u{180D}' | '\u{180F}')
}

/// Whether a selector has a meaning after this character.
fn is_selected(before: char, selector: char) -> bool {
    match selector {
        '\u{FE0E}' | '\u{FE0F}' => {
            before.is_ascii_digit() || matches!(before, '#' | '*') || is_emoji(before)
        }
        '\u{E0100}'..='\u{E01EF}' => is_ideograph(before),
        '\u{180B}'..='\u{180F}' => matches!(before, '\u{1800}'..='\u{18AF}'),
        _ => {
            is_ideograph(before)
                || matches!(before, '\u{1000}'..='\u{109F}' | '\u{A840}'..='\u{A87F}' | '\u{AA60}'..='\u{AA7F}')
                || matches!(before, '\u{2200}'..='\u{22FF}' | '\u{2A00}'..='\u{2AFF}' | '\u{3001}' | '\u{3002}')
                || matches!(before, '\u{FF01}'..='\u{FF1F}' | '\u{13000}'..='\u{143FF}')
        }
    }
}

/// Whether a joiner has a meaning after this character: in an emoji, or in a script that joins
/// letters, which Latin, Greek and Cyrillic do not.
fn is_joined(before: char) -> bool {
    let is_letter = before >= '\u{530}' && !before.is_whitespace() && !before.is_control();
    let is_invisible = matches!(before, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}');
    is_emoji(before)
        || before == '\u{FE0F}'
        || (is_letter && !is_invisible && !is_selector(before) && before < '\u{E0000}')
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}')
        || matches!(c, '\u{20E3}' | '\u{2190}'..='\u{21FF}' | '\u{2300}'..='\u{27BF}' | '\u{2900}'..='\u{297F}')
        || matches!(c, '\u{2B00}'..='\u{2BFF}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}')
        || matches!(c, '\u{1F000}'..='\u{1FAFF}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}')
}

/// Returns the length of the flag at the start of a text: tags spell three of them, and nothing
/// else.
fn flag(text: &str) -> usize {
    let flags = ["gbeng\x7F", "gbsct\x7F", "gbwls\x7F"];
    let spelt = flags.map(|it| {
        std::iter::once('\u{1F3F4}')
            .chain(
                it.bytes()
                    .map(|byte: u8| char::from_u32(0xE0000 + u32::from(byte)).unwrap_or_default()),
            )
            .collect::<String>()
    });
    spelt.iter().find(|it| text.starts_with(it.as_str())).map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_left_out_and_lines_stay() {
        assert_eq!(visible("a\r\n\tb\u{1b}[2J\u{202e}\u{e0101}c\rd\u{2028}e"), "a\n\tb[2Jc\nd\ne");
        let (tags, text): (String, _) = (('\u{e0041}'..'\u{e0061}').collect(), "plain\n\ttext");
        assert_eq!(visible(&format!("pl{tags}ain\n\ttext")), text);
        assert_eq!(invisible(&tags), 32);
        let selectors: String = ('\u{fe00}'..='\u{fe0f}').chain('\u{e0100}'..'\u{e0110}').collect();
        assert_eq!(visible(&format!("😀{selectors}!")), "😀!");
        assert_eq!(visible(&format!("😀\u{fe0f}{selectors}!")), "😀\u{fe0f}!");
        assert_eq!(visible(&"x\u{fe00}\u{fe01}".repeat(8)), "x".repeat(8));
        assert_eq!(visible("a\u{200d}\u{200c}b\u{200b}c\u{2063}d"), "abcd");
        assert_eq!(
            without_invisible("a\r\n\u{a0}b\u{1b}[2J\u{202e}\u{e0101}c\rd"),
            "a\r\n\u{a0}b[2Jc\rd"
        );
        assert!(matches!(visible("nothing\n\tto do: é 技 🏽"), Cow::Borrowed(_)));
    }

    #[test]
    fn emoji_flags_and_scripts_keep_what_belongs_to_them() {
        let flag = "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}";
        for whole in [
            "👩\u{200d}💻 👩🏽\u{200d}🚀 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3} ©\u{fe0f} ☎\u{fe0e}",
            flag,
            "葛\u{e0100}城 ∩\u{fe00}",
            "می\u{200c}خواهم क्\u{200d}ष",
        ] {
            assert_eq!(visible(whole), whole);
            assert_eq!(invisible(whole), 0, "{whole}");
        }
    }
}
