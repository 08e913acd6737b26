//! The rule about characters that nobody sees.

use crate::{
    finding::{At, Report},
    parse::Reading,
    rule,
};

pub(super) fn characters(reading: &Reading<'_>, report: &mut Report) {
    if report.wants(&rule::HIDDEN_CHARACTERS).is_none() {
        return;
    }
    let blocks = [reading.document.frontmatter, Some(reading.document.body)];
    for block in blocks.into_iter().flatten().filter(|it| !is_plain(it.text)) {
        let mut found = hidden(block.text);
        let Some((at, c)) = found.next() else { continue };
        let more = found.count();
        let line = block.line + block.text[..at].matches('\n').count();
        let code = u32::from(c);
        let others = if more == 0 { String::new() } else { format!(" and {more} more like it") };
        report.note(
            &rule::HIDDEN_CHARACTERS,
            At::line(line),
            || format!("there is an invisible character here, U+{code:04X}{others}"),
            "take it out: what a person sees should be what a model reads",
        );
    }
}

/// Printable ASCII hides nothing, and is nearly everything.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'))
}

/// The characters that change what is seen without being seen.
fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = ' ';
    let mut in_flag = false;
    text.char_indices().filter(move |(_, c)| {
        in_flag = *c == '\u{1F3F4}' || (in_flag && is_tag(*c));
        let hidden = match c {
            '\t' | '\n' | '\r' => false,
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => true,
            '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{2028}' | '\u{2029}' => true,
            // Joiners belong to emoji and to scripts that join letters.
            '\u{200C}' | '\u{200D}' => before.is_ascii(),
            // Tags spell three flags, and nothing else.
            c if is_tag(*c) => !in_flag,
            c => c.is_control(),
        };
        before = *c;
        hidden
    })
}

fn is_tag(c: char) -> bool {
    ('\u{E0000}'..='\u{E007F}').contains(&c)
}
