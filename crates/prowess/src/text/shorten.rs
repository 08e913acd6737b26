//! Shortens untrusted texts to one line and to a number of tokens.

use std::borrow::Cow;

use crate::text::invisible::visible;

/// Puts a text on one line: every run of whitespace becomes one space, and invisible characters are
/// removed.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in visible(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Escapes a text so that nothing opens or closes a tag. `&` is written as `&amp;` where it would
/// be read as the beginning of an escape, so that no two texts have the same result.
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    if !text.contains(['<', '&']) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        let (sign, behind) = rest[at..].split_at(1);
        out.push_str(match sign {
            "<" if is_tag(behind) => "&lt;",
            "&" if is_reference(behind) => "&amp;",
            sign => sign,
        });
        rest = behind;
    }
    out.push_str(rest);
    out.into()
}

/// Whether `<` before this text begins a tag.
fn is_tag(behind: &str) -> bool {
    behind.starts_with(|c: char| c.is_alphabetic() || matches!(c, '/' | '!' | '?'))
}

/// Whether `&` before this text is a character reference, as in `&lt;`.
fn is_reference(behind: &str) -> bool {
    let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '#');
    end.is_some_and(|it| it > 0 && behind[it..].starts_with(';'))
}

/// Cuts a text after so many characters, with `…` in place of the rest.
pub fn beginning(text: &str, characters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Cuts the middle out of a text that has more than so many bytes, and says how many are left out.
pub fn without_middle(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return text.into();
    }
    let head = text.floor_char_boundary(bytes / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - bytes / 3);
    let left_out = tail - head;
    format!("{}\n[… {left_out} bytes left out …]\n{}", &text[..head], &text[tail..]).into()
}

/// Puts a text on one line of at most so many characters, cut after a word.
pub fn brief_line(text: &str, characters: usize) -> String {
    shorten_line(&one_line(text), characters, |it| it.chars().count()).into_owned()
}

/// Cuts a line after a word so that it measures at most `most`, with `…` in place of the rest. If
/// not even one word fits, the result is empty.
pub(crate) fn shorten_line(
    line: &str,
    most: usize,
    measure: impl Fn(&str) -> usize,
) -> Cow<'_, str> {
    let whole = measure(line);
    if whole <= most {
        return Cow::Borrowed(line);
    }
    // Tokens are about evenly distributed, so few attempts are needed.
    let mut length = line.len().saturating_mul(most) / whole;
    loop {
        let words = cut(line, length);
        if words.is_empty() {
            return Cow::Borrowed("");
        }
        let attempt = format!("{words}…");
        let measured = measure(&attempt);
        if measured <= most {
            return Cow::Owned(attempt);
        }
        // A step has a minimum length, so that all of them together take no longer than a few.
        length = (words.len().saturating_mul(most) / measured).min(words.len() * 31 / 32);
    }
}

/// Cuts a line as [`shorten_line`] does, after the last word that leaves it within `most`: with a
/// larger `most`, the line is never shorter.
pub(crate) fn fit_line(line: &str, most: usize, measure: impl Fn(&str) -> usize) -> Cow<'_, str> {
    let found = shorten_line(line, most, &measure);
    let Cow::Owned(mut best) = found else {
        if !found.is_empty() || line.is_empty() {
            return found;
        }
        return first_word(line, most, &measure);
    };
    // The ends of words after the part that already fits.
    let known = best.len() - '…'.len_utf8();
    let ends: Vec<usize> =
        line[known..].match_indices(' ').map(|it| known + it.0).filter(|it| *it > known).collect();
    let (mut low, mut high, mut step) = (0, ends.len(), 1);
    while low < high {
        let next = (low + step - 1).min(high - 1);
        let attempt = format!("{}…", cut(line, ends[next]));
        if measure(&attempt) > most {
            (high, step) = (next, 1);
            continue;
        }
        if attempt.len() > best.len() {
            best = attempt;
        }
        (low, step) = (next + 1, step * 2);
    }
    Cow::Owned(best)
}

/// Returns the first word of a line, if it fits.
fn first_word(line: &str, most: usize, measure: impl Fn(&str) -> usize) -> Cow<'_, str> {
    let word = format!("{}…", cut(line, line.find(' ').unwrap_or(0)));
    match word.len() > '…'.len_utf8() && measure(&word) <= most {
        true => Cow::Owned(word),
        false => Cow::Borrowed(""),
    }
}

/// Cuts a shortened line back to its last whole sentence, if that leaves half of it.
pub(crate) fn to_sentence(line: Cow<'_, str>) -> Cow<'_, str> {
    if matches!(line, Cow::Borrowed(_)) {
        return line;
    }
    let ends = line.match_indices(['.', '!', '?', '。']).map(|(at, mark)| at + mark.len());
    let mut whole =
        ends.filter(|end| line[*end..].starts_with(' ') || line[..*end].ends_with('。'));
    match whole.next_back() {
        Some(end) if end >= line.len() / 2 => Cow::Owned(format!("{} …", &line[..end])),
        _ => line,
    }
}

/// Returns the words of a line that end within its first bytes; if no word ends there, the
/// characters.
fn cut(line: &str, length: usize) -> &str {
    let start = &line[..line.floor_char_boundary(length)];
    let is_whole = line[start.len()..].starts_with(' ');
    let words = match start.rfind(' ') {
        Some(end) if !is_whole => &start[..end],
        _ => start,
    };
    words.trim_end_matches([' ', ',', ';', ':', '.', '…'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_behind_a_word() {
        let cut = |line: &'static str, most| shorten_line(line, most, |it| it.chars().count());
        assert_eq!(cut("one two, three", 14), "one two, three");
        assert_eq!(cut("one two, three", 12), "one two…");
        assert_eq!(cut("one two, three", 4), "one…");
        assert_eq!(cut("one two, three", 0), "");
        assert_eq!(cut("技能技能技能", 4), "技能技…");
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(beginning("技能技能", 4), "技能技能");
        assert_eq!(beginning("技能技能", 3), "技能技…");
        assert_eq!(without_middle("0123456789", 10), "0123456789");
        assert_eq!(without_middle("0123456789", 6), "0123\n[… 4 bytes left out …]\n89");
        assert_eq!(without_middle("技技技技", 10), "技技\n[… 3 bytes left out …]\n技");
    }

    #[test]
    fn a_cut_goes_back_to_a_sentence_that_leaves_half() {
        let cut = |line: &str| to_sentence(Cow::Owned(line.to_owned())).into_owned();
        assert_eq!(cut("Opens files. Then it…"), "Opens files. …");
        assert_eq!(cut("Opens. Then it goes on and on…"), "Opens. Then it goes on and on…");
        assert_eq!(cut("Opens v1.2 files and…"), "Opens v1.2 files and…");
        assert_eq!(to_sentence("Whole. It ends so…".into()), "Whole. It ends so…");
    }

    #[test]
    fn a_line_has_no_line_ends_and_nothing_hidden() {
        assert_eq!(
            one_line(" a\r\n\n \u{200b} - b\u{2028}c\u{202e}d\u{0}\u{e0041} \u{7}"),
            "a - b cd"
        );
        assert_eq!(escape_tags("1 < 2 </a><b> <!-- <?x"), "1 < 2 &lt;/a>&lt;b> &lt;!-- &lt;?x");
        assert_eq!(
            escape_tags("<b &lt;b &amp;lt;b R&D; &;"),
            "&lt;b &amp;lt;b &amp;amp;lt;b R&amp;D; &;"
        );
        assert!(matches!(escape_tags("Q&A, R & D"), Cow::Owned(it) if it == "Q&A, R & D"));
    }
}
