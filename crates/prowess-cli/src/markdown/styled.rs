//! Text in several styles, broken into lines.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::printer::paint;

/// The text of a paragraph, heading or cell, in its styles. It must be made safe first.
#[derive(Debug, Default, Clone)]
pub(super) struct StyledText(Vec<(String, Style)>);

/// A line of such a text.
#[derive(Debug, Default, Clone)]
pub(super) struct StyledLine {
    spans: Vec<(String, Style)>,
    pub(super) width: usize,
}

/// A word; parts of it can differ in style.
#[derive(Debug, Default)]
struct StyledWord {
    spans: Vec<(String, Style)>,
    width: usize,
    /// Whether it always begins a line.
    begins_line: bool,
}

/// The treatment of words that are wider than a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WideWords {
    /// They stay whole, so that they can be copied.
    Whole,
    /// They are broken where the line ends.
    Broken,
}

impl StyledText {
    pub(super) fn push(&mut self, text: &str, style: Style) {
        self.0.push((text.to_owned(), style));
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|it| it.0.is_empty())
    }

    /// Returns the width of its widest line, if nothing is broken.
    pub(super) fn width(&self) -> usize {
        let lines = self.wrap(usize::MAX, WideWords::Whole);
        lines.iter().map(|it| it.width).max().unwrap_or(0)
    }

    pub(super) fn longest_word(&self) -> usize {
        self.words().iter().map(|it| it.width).max().unwrap_or(0)
    }

    /// Breaks it between words.
    pub(super) fn wrap(&self, width: usize, wide: WideWords) -> Vec<StyledLine> {
        let mut lines = vec![StyledLine::default()];
        let mut is_fresh = true;
        for word in self.words() {
            let line = lines.last_mut().expect("there is a line from the start");
            let is_full = line.width.saturating_add(1 + word.width) > width;
            if !is_fresh && (word.begins_line || is_full) {
                lines.push(StyledLine::default());
            } else if !is_fresh {
                line.push_gap(&word);
            }
            is_fresh = false;
            let room = if wide == WideWords::Whole { usize::MAX } else { width };
            for (text, style) in word.spans {
                push_span(&mut lines, &text, style, room);
            }
        }
        lines
    }

    fn words(&self) -> Vec<StyledWord> {
        let mut words = vec![StyledWord::default()];
        for (text, style) in &self.0 {
            for (line_number, line) in text.split('\n').enumerate() {
                for (number, part) in line.split(' ').enumerate() {
                    if line_number + number > 0 {
                        let begins_line = number == 0;
                        words.push(StyledWord { begins_line, ..StyledWord::default() });
                    }
                    let word = words.last_mut().expect("there is a word from the start");
                    word.spans.push((part.to_owned(), *style));
                    word.width += part.width();
                }
            }
        }
        words
    }
}

/// Adds a part of a word to the last line, and to new lines if it is too wide.
fn push_span(lines: &mut Vec<StyledLine>, text: &str, style: Style, width: usize) {
    let mut rest = text;
    loop {
        let line = lines.last_mut().expect("there is a line from the start");
        let room = width.saturating_sub(line.width);
        let fits = if rest.width() <= room { rest.len() } else { prefix(rest, room) };
        // A character wider than a whole line goes there all the same.
        let is_new = line.width == 0;
        let end =
            if fits == 0 && is_new { rest.chars().next().map_or(0, char::len_utf8) } else { fits };
        line.push(&rest[..end], style);
        rest = &rest[end..];
        if rest.is_empty() {
            return;
        }
        lines.push(StyledLine::default());
    }
}

/// Returns the length of the longest prefix that fits.
fn prefix(text: &str, room: usize) -> usize {
    let mut used = 0;
    text.char_indices()
        .find(|it: &(usize, char)| {
            used += it.1.width().unwrap_or(0);
            used > room
        })
        .map_or(text.len(), |it| it.0)
}

impl StyledLine {
    fn push(&mut self, text: &str, style: Style) {
        self.width += text.width();
        match self.spans.last_mut() {
            Some(last) if last.1 == style => last.0.push_str(text),
            _ => self.spans.push((text.to_owned(), style)),
        }
    }

    /// Adds the space before a word, styled if the words on both sides share a style.
    fn push_gap(&mut self, word: &StyledWord) {
        let (before, behind) =
            (self.spans.last().map(|it| it.1), word.spans.first().map(|it| it.1));
        let style = before.filter(|it| Some(*it) == behind).unwrap_or_default();
        self.push(" ", style);
    }

    pub(super) fn paint(&self, colored: bool) -> String {
        self.spans.iter().map(|(text, style)| paint(text, *style, colored)).collect()
    }
}
