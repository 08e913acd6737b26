//! Markdown for people at a terminal.
//!
//! Text is parsed first and escaped after that, so that no entity of HTML becomes a control
//! character.

mod layout;
mod page;
#[cfg(feature = "agent")]
mod stream;
mod styled;
mod table;

use unicode_width::UnicodeWidthStr as _;

#[cfg(feature = "agent")]
pub(crate) use self::stream::MarkdownStream;
use self::{layout::block_starts, page::Page};

/// The maximum width of prose, in columns.
pub(crate) const WIDEST: usize = 100;

/// Renders a text in lines no wider than `width`, unless a word is.
pub(crate) fn render(text: &str, width: usize, colored: bool) -> String {
    render_blocks(text, Page::new(width, colored))
}

fn render_blocks(text: &str, mut page: Page) -> String {
    let starts = block_starts(text);
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(text.len());
        page.block(&text[*start..end]);
    }
    page.into_text()
}

/// Wraps a line between words, and indents all lines but the first.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
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
        assert!(rendered.starts_with("\x1b[1m\x1b[4mOne\x1b[0m\n\n"), "{rendered:?}");
        assert!(rendered.contains("and \x1b[36msome code\x1b[0m on."), "{rendered:?}");
        let rendered = render("**a *b*** ~~c~~ d", 80, true);
        let expected = "\x1b[1ma \x1b[0m\x1b[1m\x1b[3mb\x1b[0m \x1b[9mc\x1b[0m d\n".to_owned();
        assert_eq!(rendered, expected);
        assert_eq!(render("**a *b*** ~~c~~ d", 80, false), "**a *b*** ~~c~~ d\n");
    }

    #[test]
    fn lists_are_nested_and_numbered() {
        let text = "9. nine\n10. ten\n    - in it\n\n      and on\n\n> said\n>\n> - [x] done\n";
        let rendered = "9. nine\n10. ten\n    - in it\n\n      and on\n\n│ said\n│\n│ - [x] done\n";
        assert_eq!(render(text, 80, false), rendered);
        assert_eq!(render("- a\n\n- b\n  - c\n", 80, false), "- a\n\n- b\n\n  - c\n");
        assert_eq!(render("-\n- - b\n", 80, false), "-\n- - b\n");
    }

    #[test]
    fn links_show_where_they_lead() {
        let text = "[here](https://a.b) and <https://c.d>, [x][1]\n\n[1]: https://e.f\n";
        let rendered = "here (https://a.b) and https://c.d, [x][1]\n\n[1]: https://e.f\n";
        assert_eq!(render(text, 80, false), rendered);
    }

    #[test]
    fn a_table_is_aligned_and_fits() {
        let text = "| name | count |\n|---|--:|\n| `a` | 1 |\n| longer | 20 |\n";
        let rendered = "name   │ count\n───────┼──────\n`a`    │     1\nlonger │    20\n";
        assert_eq!(render(text, 80, false), rendered);
        let narrow = render("|a|b|\n|-|-|\n|one two three|four five six|\n", 19, false);
        assert_eq!(
            narrow,
            "a        │ b\n─────────┼─────────\none two  │ four\nthree    │ five six\n"
        );
        let words = render("|temperature|remark|\n|-|-|\n|70|a b c d e f g h|\n", 20, false);
        assert!(words.starts_with("temperature │ remark\n"), "{words}");
        let many = format!("|{}\n|{}\n|{}\n", "h|".repeat(9), "-|".repeat(9), "v|".repeat(9));
        assert!(render(&many, 20, false).starts_with("h: v\nh: v\n"));
    }

    #[test]
    fn nothing_of_a_text_moves_the_cursor() {
        let text = "a&#27;[2J \x1b[2J `\x1b[1A`\n\n```\n\x1b[2J\n```\n\n<b\x1b>\n\n[\x1b](x\x1by)\n\n|\x1b|\n|-|\n";
        for colored in [false, true] {
            let rendered = render(text, 80, colored);
            let escapes = rendered.matches('\x1b').count();
            let styles = rendered.matches("\x1b[").filter(|_| colored).count();
            assert_eq!(escapes, styles, "{rendered:?}");
            assert!(!rendered.contains("\x1b[2J") && !rendered.contains("\x1b[1A"), "{rendered:?}");
            assert_eq!(rendered.matches("\\u{1b}").count(), 8, "{rendered:?}");
        }
    }

    #[test]
    fn depth_and_size_cost_nothing() {
        let deep = format!("{}x\n", "> ".repeat(20_000));
        assert!(render(&deep, 40, true).contains('x'));
        let deep = format!("{}x\n", "- ".repeat(2_000));
        assert_eq!(render(&deep, 40, false).matches("- ").count(), 2_000);
        assert!(render(&"*a".repeat(20_000), 40, true).contains('a'));
    }

    #[test]
    fn a_word_that_is_too_wide_stands_alone() {
        assert_eq!(wrap("a verylongword b", 5, " "), ["a", " verylongword", " b"]);
        assert_eq!(wrap("  kept  as it is", 80, ""), ["  kept  as it is"]);
    }
}
