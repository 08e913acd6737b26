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
    // To those who apply it, nothing but LF ends a line.
    let [before, after] = [before, after].map(|it| it.split_inclusive('\n').collect::<Vec<_>>());
    let diff = TextDiff::from_slices(&before, &after);
    let mut out = String::new();
    for hunk in diff.unified_diff().context_radius(around).iter_hunks() {
        out.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            out.push_str(&format!("{}{}", change.tag(), change.value()));
            if !change.value().ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    if out.is_empty() { out } else { head(path) + &out }
}

/// How a comparison begins. A tab ends a path with blanks in it.
pub(crate) fn head(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let end = if path.contains(' ') { "\t" } else { "" };
    format!("--- {path}{end}\n+++ {path}{end}\n")
}

/// Makes a comparison ready for a file or a program: `patch` and `git apply -p0` take it, unless
/// there was something in it that moves a cursor.
pub(crate) fn filed(diff: &str) -> String {
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
