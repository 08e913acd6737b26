//! Splits a text into frontmatter and body.

use std::ops::Range;

/// A text, split at its delimiter lines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document<'a> {
    /// The lines between the delimiters; `None` if the text has no frontmatter.
    pub frontmatter: Option<Block<'a>>,
    /// Everything after the closing delimiter, or the whole text if there is no frontmatter.
    pub body: Block<'a>,
    /// Irregularities of the delimiters, usually none.
    pub quirks: Vec<Quirk>,
}

/// A run of whole lines of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    /// The lines, with their line ends.
    pub text: &'a str,
    /// The start, in bytes from the start of the text.
    pub start: usize,
    /// The number of the first line, counted from 1.
    pub line: usize,
}

/// An irregularity of the delimiters, with its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// Blank lines before the opening delimiter.
    BlankLinesBefore(usize),
    /// A delimiter has spaces before or after its dashes.
    Padded(usize),
    /// The closing line is `...` or has more than three dashes.
    OddClosing(usize),
    /// The opening delimiter of this line is never closed.
    Unclosed(usize),
    /// Something that looks like frontmatter begins on this line, after other text.
    NotFirst(usize),
}

/// Splits `text` at its delimiters: lines that contain only `---`.
///
/// Dashes inside a value or in the body never count. A text without frontmatter is all body.
pub fn split(text: &str) -> Document<'_> {
    let mut lines = Lines::new(text);
    let mut quirks = Vec::new();
    let Some(opening) = lines.find(|line| !line.text.trim().is_empty()) else {
        return Document { frontmatter: None, body: Block { text, start: 0, line: 1 }, quirks };
    };
    if opening.text.trim() != "---" {
        quirks.extend(late_opening(text, &opening).map(Quirk::NotFirst));
        return Document { frontmatter: None, body: Block { text, start: 0, line: 1 }, quirks };
    }
    if opening.number > 1 {
        quirks.push(Quirk::BlankLinesBefore(opening.number));
    }
    if opening.text != "---" {
        quirks.push(Quirk::Padded(opening.number));
    }

    let inside = opening.next;
    let Some(closing) = closing_line(lines) else {
        quirks.push(Quirk::Unclosed(opening.number));
        return Document { frontmatter: None, body: Block { text, start: 0, line: 1 }, quirks };
    };
    match closing.text.trim() {
        "---" if closing.text == "---" => {}
        "---" => quirks.push(Quirk::Padded(closing.number)),
        _ => quirks.push(Quirk::OddClosing(closing.number)),
    }
    Document {
        frontmatter: Some(Block {
            text: &text[inside..closing.start],
            start: inside,
            line: opening.number + 1,
        }),
        body: Block { text: &text[closing.next..], start: closing.next, line: closing.number + 1 },
        quirks,
    }
}

/// Returns the closing line: the first without indentation, else the first that is indented. An
/// indented `---` is the text of a block scalar if there is a better one.
fn closing_line<'a>(lines: Lines<'a>) -> Option<Line<'a>> {
    let mut indented = None;
    for line in lines {
        let dashes = line.text.trim_end();
        if dashes == "..." || (dashes.len() >= 3 && dashes.bytes().all(|byte| byte == b'-')) {
            return Some(line);
        }
        if indented.is_none() && dashes.trim_start() == "---" {
            indented = Some(line);
        }
    }
    indented
}

/// Returns the line of a `---` that seems to open a frontmatter after other text.
fn late_opening(text: &str, first: &Line<'_>) -> Option<usize> {
    let mut lines = Lines { text, at: first.next, number: first.number }.take(40).peekable();
    while let Some(line) = lines.next() {
        if line.text.trim_end() == "---"
            && lines.peek().is_some_and(|next| {
                ["name:", "description:"].iter().any(|it| next.text.starts_with(it))
            })
        {
            return Some(line.number);
        }
    }
    None
}

/// A line of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The text, without its line end.
    pub(crate) text: &'a str,
    pub(crate) start: usize,
    /// The start of the next line.
    pub(crate) next: usize,
    /// The line number, from 1.
    pub(crate) number: usize,
}

impl Line<'_> {
    /// Returns the bytes of the line, without its line end.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// Returns the length of the first line of a text, without its line end.
pub(crate) fn line_length(text: &str) -> usize {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    // Eight bytes at a time: the lowest high bit of the sum marks the first byte that was zero.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let bytes = text.as_bytes();
    let (words, _) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found =
            zeros(word ^ (ONES * u64::from(b'\n'))) | zeros(word ^ (ONES * u64::from(b'\r')));
        if found != 0 {
            return number * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let rest = bytes.iter().skip(words.len() * 8).position(|byte| matches!(byte, b'\n' | b'\r'));
    rest.map_or(bytes.len(), |at| words.len() * 8 + at)
}

/// The lines of a text; LF, CRLF and a lone CR each end one.
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    /// The number of the previous line.
    pub(crate) number: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let length = line_length(rest);
        let ending = match &rest.as_bytes()[length..] {
            [] => 0,
            [b'\r', b'\n', ..] => 2,
            _ => 1,
        };
        let start = self.at;
        self.at += length + ending;
        self.number += 1;
        let text = &self.text[start..start + length];
        Some(Line { text, start, next: self.at, number: self.number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of `text`, with its quirks.
    fn parts(text: &str) -> (Option<&str>, &str, Vec<Quirk>) {
        let document = split(text);
        (document.frontmatter.map(|it| it.text), document.body.text, document.quirks)
    }

    #[test]
    fn whole_lines_of_dashes_delimit() {
        assert_eq!(parts("---\na: 1\n---\nbody\n"), (Some("a: 1\n"), "body\n", vec![]));
    }

    #[test]
    fn dashes_in_values_and_in_the_body_do_not() {
        let text = "---\na: x --- y\nb: |\n  ---\n---\none\n---\ntwo\n";
        assert_eq!(parts(text), (Some("a: x --- y\nb: |\n  ---\n"), "one\n---\ntwo\n", vec![]));
    }

    #[test]
    fn a_text_without_delimiters_is_all_body() {
        assert_eq!(parts("# Title\n\n---\n"), (None, "# Title\n\n---\n", vec![]));
        assert_eq!(parts(""), (None, "", vec![]));
    }

    #[test]
    fn every_line_end_counts() {
        assert_eq!(parts("---\r\na: 1\r\n---\r\nb"), (Some("a: 1\r\n"), "b", vec![]));
        assert_eq!(parts("---\ra: 1\r---\rb"), (Some("a: 1\r"), "b", vec![]));
    }

    #[test]
    fn quirks_name_their_line() {
        assert_eq!(
            parts("\n \n--- \na: 1\n----\nb").2,
            [Quirk::BlankLinesBefore(3), Quirk::Padded(3), Quirk::OddClosing(5)]
        );
        assert_eq!(parts("---\na: 1\n...\nb").2, [Quirk::OddClosing(3)]);
        assert_eq!(parts("---\na: 1\n  ---\nb").2, [Quirk::Padded(3)]);
        assert_eq!(parts("---\na: 1\n").2, [Quirk::Unclosed(1)]);
        assert_eq!(parts("<!-- x -->\n---\nname: a\n---\n").2, [Quirk::NotFirst(2)]);
    }

    #[test]
    fn blocks_know_their_place() {
        let document = split("---\na: 1\n---\nbody");
        assert_eq!(document.frontmatter.map(|it| (it.start, it.line)), Some((4, 2)));
        assert_eq!((document.body.start, document.body.line), (13, 4));
    }

    #[test]
    fn an_empty_frontmatter_is_there() {
        assert_eq!(parts("---\n---\n"), (Some(""), "", vec![]));
        assert_eq!(parts("---\n---"), (Some(""), "", vec![]));
    }
}
