//! Renders Markdown that arrives in pieces.

use super::{layout::block_starts, page::Page, render_blocks};

/// Renders Markdown as it arrives, block by block. A block is finished once the next one has begun.
#[derive(Debug)]
pub(crate) struct MarkdownStream {
    width: usize,
    colored: bool,
    /// The text that is not finally rendered yet.
    rest: String,
    /// The length of the rest when it was last rendered.
    seen: usize,
    has_content: bool,
}

/// The divisor of the growth at which the rest is rendered again: by 1/64, so that a long block
/// costs no more per piece.
const SHARE: usize = 64;

impl MarkdownStream {
    pub(crate) fn new(width: usize, colored: bool) -> Self {
        Self { width, colored, rest: String::new(), seen: 0, has_content: false }
    }

    /// Adds a piece. Returns the blocks that it finishes, and a preview of the rest; `None` if too
    /// little was added since the last time.
    pub(crate) fn push(&mut self, piece: &str) -> Option<(String, String)> {
        self.rest.push_str(piece);
        if self.rest.len() - self.seen <= self.seen / SHARE {
            return None;
        }
        // A line that goes on may turn out to belong to the block before it.
        let lines = self.rest.rfind('\n').map_or(0, |it| it + 1);
        let starts = block_starts(&self.rest[..lines]);
        let end = starts.last().copied().unwrap_or(0);
        let finished = self.render(end);
        self.rest.drain(..end);
        self.has_content |= !finished.is_empty();
        self.seen = self.rest.len();
        Some((finished, self.render(self.rest.len())))
    }

    /// Renders the rest, at the end of the text.
    pub(crate) fn finish(&mut self) -> String {
        let rest = self.render(self.rest.len());
        *self = Self::new(self.width, self.colored);
        rest
    }

    fn render(&self, end: usize) -> String {
        let mut page = Page::new(self.width, self.colored);
        page.has_content = self.has_content;
        render_blocks(&self.rest[..end], page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::render;

    const TEXT: &str = "# One\n\nSome *words*\nand `code`.\nTwo\n---\n\n- a\n- b\n\n  c\n1. d\n\n2. e\n\n| a | b |\n|---|---|\n| 1 | 2 |\n#no\n\n> said\nlazily\n\n```sh\nx\n\n# y\n```\n[1]: https://a.b\n\nsee [x][1]\n***\n    code\n\n<b>\nhtml\n\nend";

    #[test]
    fn whatever_pieces_a_text_comes_in_it_is_shown_whole_and_once() {
        for width in [20, 80] {
            let whole = render(TEXT, width, true);
            for length in 1..40 {
                let mut stream = MarkdownStream::new(width, true);
                let characters: Vec<char> = TEXT.chars().collect();
                let mut shown = String::new();
                for piece in characters.chunks(length) {
                    let pushed = stream.push(&piece.iter().collect::<String>());
                    shown.extend(pushed.map(|it| it.0));
                }
                assert_eq!(shown + &stream.finish(), whole, "{length}");
            }
        }
    }

    #[test]
    fn a_block_is_finished_when_the_next_one_begins() {
        let mut stream = MarkdownStream::new(80, false);
        assert_eq!(stream.push("one\ntw"), Some((String::new(), "one tw\n".to_owned())));
        assert_eq!(
            stream.push("o\n\nthree"),
            Some((String::new(), "one two\n\nthree\n".to_owned()))
        );
        assert_eq!(stream.push("\n"), Some(("one two\n".to_owned(), "\nthree\n".to_owned())));
        assert_eq!(stream.finish(), "\nthree\n");
        assert_eq!(stream.finish(), "");
    }
}
