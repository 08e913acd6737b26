//! Differences between two versions of a file, in the format of `diff -u`.

use std::ops::Range;

use anstyle::{AnsiColor, Style};
use prowess_runtime::text::line_diff;

use crate::{
    printer::{NAME, paint},
    safe,
};

const REMOVED: Style = AnsiColor::Red.on_default();
const ADDED: Style = AnsiColor::Green.on_default();
const HUNK: Style = AnsiColor::Cyan.on_default();

/// Compares two versions of a file, with this many context lines around each change; empty if they
/// are equal.
pub(crate) fn diff(path: &str, before: &str, after: &str, around: usize) -> String {
    let mut out = String::new();
    for hunk in line_diff(before, after, around) {
        out.push_str(&format!("@@ -{} +{} @@\n", place(&hunk.before), place(&hunk.after)));
        for line in hunk.lines {
            out.push(line.change.sign());
            out.push_str(line.text);
            if !line.text.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    if out.is_empty() { out } else { diff_head(path) + &out }
}

/// Returns the first line, counted from 1, and the number of lines unless it is 1. If it is 0, the
/// line is the one before.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

/// Returns the head of a diff. A tab ends a path that contains blanks.
pub(crate) fn diff_head(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let end = if path.contains(' ') { "\t" } else { "" };
    format!("--- {path}{end}\n+++ {path}{end}\n")
}

/// Prepares a diff for a file or a program: `patch` and `git apply -p0` accept it, unless control
/// characters had to be escaped.
pub(crate) fn for_file(diff: &str) -> String {
    const MARK: char = '\u{FEFF}';
    let mut out = String::new();
    for line in diff.split_terminator('\n') {
        let (line, end) = line.strip_suffix('\r').map_or((line, "\n"), |it| (it, "\r\n"));
        let pieces: Vec<_> = line.split(MARK).map(safe::lines).collect();
        out.push_str(&pieces.join(&*MARK.to_string()));
        out.push_str(end);
    }
    out
}

/// Prepares a diff for a terminal.
pub(crate) fn for_terminal(diff: &str, colored: bool) -> String {
    let mut out = String::new();
    for (number, line) in diff.split_terminator('\n').enumerate() {
        let style = match line.as_bytes().first() {
            _ if number < 2 => NAME,
            Some(b'-') => REMOVED,
            Some(b'+') => ADDED,
            Some(b'@') => HUNK,
            _ => Style::new(),
        };
        let line = safe::lines(line.trim_end_matches('\r'));
        out.push_str(&paint(&line, style, colored && !style.is_plain()));
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
        assert_eq!(for_terminal(&diff, false), "--- a\n+++ a\n@@ -2 +2 @@\n--- \\u{1b}[2J\n+y\n");
        let colored = for_terminal(&diff, true);
        let lines: Vec<&str> = colored.lines().collect();
        assert_eq!(lines[3..], ["\u{1b}[31m--- \\u{1b}[2J\u{1b}[0m", "\u{1b}[32m+y\u{1b}[0m"]);
    }
}
