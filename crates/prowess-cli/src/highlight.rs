//! Colours for streamed Markdown at a terminal. No character changes, so that the text can be
//! copied.

use anstyle::{AnsiColor, Style};

use crate::printer::{DIM, NAME};

const CODE: Style = AnsiColor::Cyan.on_default();

/// Colours Markdown piece by piece: headings, code blocks, and inline code.
#[derive(Debug, Default)]
pub(crate) struct Highlighter {
    /// The beginning of a line that may still become a heading or a code fence.
    start: String,
    line: Line,
    /// The fence character of the code block we are in.
    fence: Option<char>,
    /// The current colour.
    style: Option<Style>,
}

/// The kind of a line, as far as it is known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    #[default]
    Undecided,
    /// It opens or closes a code block.
    Fence,
    /// A heading, or a line of code.
    Whole,
    Prose,
    /// Inline code in a line of prose.
    Code,
}

impl Highlighter {
    /// Colours a whole text.
    pub(crate) fn whole(text: &str) -> String {
        let mut highlighter = Self::default();
        highlighter.piece(text) + &highlighter.end()
    }

    /// Colours the next piece of a text, as far as its kind is known.
    pub(crate) fn piece(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 16);
        text.chars().for_each(|it| self.take(it, &mut out));
        out
    }

    /// Returns the rest of the text, and resets the colour.
    pub(crate) fn end(&mut self) -> String {
        let mut out = String::new();
        if self.line == Line::Undecided && !self.start.is_empty() {
            self.decide(None, &mut out);
        }
        self.paint(None, &mut out);
        *self = Self { fence: self.fence, ..Self::default() };
        out
    }

    fn take(&mut self, sign: char, out: &mut String) {
        if sign == '\n' {
            let end = self.end();
            out.push_str(&end);
            out.push('\n');
            return;
        }
        match self.line {
            Line::Undecided if matches!(sign, ' ' | '#' | '`' | '~') => {
                self.start.push(sign);
                let marks = self.start.trim_start();
                let is_fence = marks == "```" || marks == "~~~";
                if is_fence || marks.ends_with(' ') {
                    self.decide(None, out);
                }
            }
            Line::Undecided => self.decide(Some(sign), out),
            Line::Prose if sign == '`' => {
                self.line = Line::Code;
                self.paint(Some(CODE), out);
                out.push(sign);
            }
            Line::Code if sign == '`' => {
                self.line = Line::Prose;
                out.push(sign);
                self.paint(None, out);
            }
            _ => out.push(sign),
        }
    }

    /// Decides the kind of a line by its beginning and the character after it.
    fn decide(&mut self, next: Option<char>, out: &mut String) {
        let start = std::mem::take(&mut self.start);
        let marks = start.trim_start();
        let first = marks.chars().next();
        let is_fence =
            (marks == "```" || marks == "~~~") && self.fence.is_none_or(|it| Some(it) == first);
        let is_heading = marks.ends_with(' ') && marks.trim_end().chars().all(|it| it == '#');
        let style = match self.fence {
            _ if is_fence => Some(DIM),
            Some(_) => Some(CODE),
            None if is_heading && !marks.trim_end().is_empty() => Some(NAME),
            None => None,
        };
        self.line = match style {
            _ if is_fence => Line::Fence,
            Some(_) => Line::Whole,
            None => Line::Prose,
        };
        if is_fence {
            self.fence = if self.fence.is_some() { None } else { first };
        }
        self.paint(style, out);
        match self.line {
            // The beginning may contain backticks.
            Line::Prose => start.chars().chain(next).for_each(|it| self.take(it, out)),
            _ => {
                out.push_str(&start);
                out.extend(next);
            }
        }
    }

    fn paint(&mut self, style: Option<Style>, out: &mut String) {
        if let Some(before) = std::mem::replace(&mut self.style, style) {
            out.push_str(&format!("{before:#}"));
        }
        if let Some(style) = style {
            out.push_str(&style.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# One\n\nSome `code` here, # no heading\n\n- `a` b\n  ```sh\n  # c\n  ```\n#no\n``` \nx\n~~~\n```\n";

    fn plain(text: &str) -> String {
        let mut out = String::new();
        let mut is_escape = false;
        for sign in text.chars() {
            match sign {
                '\x1b' => is_escape = true,
                'm' if is_escape => is_escape = false,
                _ if is_escape => {}
                _ => out.push(sign),
            }
        }
        out
    }

    #[test]
    fn headings_and_code_have_colours() {
        let shown = Highlighter::whole(TEXT);
        assert!(shown.starts_with("\x1b[1m# One\x1b[0m\n"), "{shown:?}");
        assert!(shown.contains("Some \x1b[36m`code`\x1b[0m here, # no heading\n"), "{shown:?}");
        assert!(shown.contains("- \x1b[36m`a`\x1b[0m b\n"), "{shown:?}");
        assert!(shown.contains("\x1b[36m  # c\x1b[0m\n\x1b[2m  ```\x1b[0m\n#no\n"), "{shown:?}");
        assert!(
            shown.contains("\x1b[36mx\x1b[0m\n\x1b[36m~~~\x1b[0m\n\x1b[2m```\x1b[0m\n"),
            "{shown:?}"
        );
    }

    #[test]
    fn no_character_changes_in_whatever_pieces_it_comes() {
        let whole = Highlighter::whole(TEXT);
        assert_eq!(plain(&whole), TEXT);
        for length in 1..6 {
            let mut highlighter = Highlighter::default();
            let signs: Vec<char> = TEXT.chars().collect();
            let pieces = signs.chunks(length).map(|it| it.iter().collect::<String>());
            let shown: String = pieces.map(|it| highlighter.piece(&it)).collect();
            assert_eq!(shown + &highlighter.end(), whole, "{length}");
        }
    }
}
