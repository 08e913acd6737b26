//! What changes in a file, as `diff -u` would say it.

use anstyle::{AnsiColor, Style};
use similar::TextDiff;

use crate::{
    printer::{NAME, painted},
    safe,
};

const GONE: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();

/// Compares two texts of a file, with so many lines around each change; empty where nothing changes.
pub(crate) fn diff(path: &str, before: &str, after: &str, around: usize) -> String {
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().context_radius(around).header(path, path).to_string()
}

/// Makes a comparison ready for a terminal.
pub(crate) fn shown(diff: &str, colored: bool) -> String {
    let mut out = String::new();
    for (number, line) in diff.split_terminator('\n').enumerate() {
        let style = match line.as_bytes().first() {
            _ if number < 2 => NAME,
            Some(b'-') => GONE,
            Some(b'+') => NEW,
            Some(b'@') => PLACE,
            _ => Style::new(),
        };
        let line = safe::lines(line.trim_end_matches('\r'));
        out.push_str(&painted(&line, style, colored && !style.is_plain()));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_coloured_and_nothing_in_them_moves_the_cursor() {
        let diff = diff("a", "x\n-- \x1b[2J\n", "x\ny\r\n", 0);
        assert_eq!(shown(&diff, false), "--- a\n+++ a\n@@ -2 +2 @@\n--- \\u{1b}[2J\n+y\n");
        let colored = shown(&diff, true);
        let lines: Vec<&str> = colored.lines().collect();
        assert_eq!(lines[3..], ["\u{1b}[31m--- \\u{1b}[2J\u{1b}[0m", "\u{1b}[32m+y\u{1b}[0m"]);
    }
}
