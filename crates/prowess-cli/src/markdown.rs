//! Renders our own Markdown, such as the pages of rules, for a terminal.
//!
//! It supports what those pages use: headings, paragraphs, lists, code blocks, and inline code.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::printer::{DIM, NAME, painted};

const CODE: Style = AnsiColor::Cyan.on_default();

/// The indent of code.
const MARGIN: &str = "    ";

/// Renders a text in lines no wider than `width`, unless a word is.
pub(crate) fn render(text: &str, width: usize, colored: bool) -> String {
    let mut page = Page { width, colored, out: String::new(), paragraph: String::new() };
    let mut fence = None;
    for line in text.lines() {
        match fence {
            Some(ticks) if line == ticks => fence = None,
            Some(_) => page.code(line),
            None if line.starts_with("```") => {
                page.end_paragraph();
                let info = line.trim_start_matches('`');
                fence = Some(&line[..line.len() - info.len()]);
                page.caption(info);
            }
            None => page.prose(line),
        }
    }
    page.end_paragraph();
    page.out
}

/// A page that is being rendered.
struct Page {
    width: usize,
    colored: bool,
    out: String,
    /// The words of the open paragraph or item.
    paragraph: String,
}

impl Page {
    fn prose(&mut self, line: &str) {
        if line.is_empty() || line.starts_with("- ") || line.starts_with('#') {
            self.end_paragraph();
        }
        match line.trim_start_matches('#') {
            "" => self.out.push('\n'),
            heading if heading != line => {
                self.out.push_str(&painted(heading.trim(), NAME, self.colored));
                self.out.push('\n');
            }
            _ => {
                self.paragraph.push_str(line);
                self.paragraph.push(' ');
            }
        }
    }

    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if paragraph.is_empty() {
            return;
        }
        let indent = if paragraph.starts_with("- ") { "  " } else { "" };
        let mut is_code = false;
        for line in wrapped(paragraph.trim_end(), self.width, indent) {
            for (number, piece) in line.split('`').enumerate() {
                if number > 0 {
                    is_code = !is_code;
                    self.out.push_str(if self.colored { "" } else { "`" });
                }
                let painted = painted(piece, CODE, self.colored && is_code && !piece.is_empty());
                self.out.push_str(&painted);
            }
            self.out.push('\n');
        }
    }

    /// Adds the name of the file that a code block shows.
    fn caption(&mut self, info: &str) {
        if let Some(path) = info.split(' ').nth(2) {
            self.out.push_str(&painted(&format!("  {path}"), DIM, self.colored));
            self.out.push('\n');
        }
    }

    fn code(&mut self, line: &str) {
        let room = self.width.saturating_sub(MARGIN.len());
        for line in wrapped(line, room, "  ") {
            self.out.push_str(format!("{MARGIN}{line}").trim_end());
            self.out.push('\n');
        }
    }
}

/// Wraps a line between words, and indents all lines but the first.
pub(crate) fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for (number, word) in text.split(' ').enumerate() {
        let line = lines.last_mut().expect("there is a line from the start");
        if number > 0 && line.width() + 1 + word.width() > width {
            lines.push(format!("{indent}{word}"));
        } else {
            line.push_str(if number > 0 { " " } else { "" });
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# One\n\nWords that go\non and `some code` on.\n\n- first\n- second, which is long\n\n```sh bad a/b\nx y\n```\n";

    #[test]
    fn a_page_is_broken_at_its_width() {
        let rendered = "One\n\nWords that go on and\n`some code` on.\n\n- first\n- second, which is\n  long\n\n  a/b\n    x y\n";
        assert_eq!(render(TEXT, 20, false), rendered);
    }

    #[test]
    fn colours_take_the_place_of_marks() {
        let rendered = render(TEXT, 80, true);
        assert!(rendered.contains("\x1b[1mOne\x1b[0m"), "{rendered:?}");
        assert!(rendered.contains("and \x1b[36msome code\x1b[0m on."), "{rendered:?}");
    }

    #[test]
    fn a_word_that_is_too_wide_stands_alone() {
        assert_eq!(wrapped("a verylongword b", 5, " "), ["a", " verylongword", " b"]);
        assert_eq!(wrapped("  kept  as it is", 80, ""), ["  kept  as it is"]);
    }
}
