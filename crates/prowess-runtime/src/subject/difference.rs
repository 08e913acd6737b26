//! The changes to the files of a skill, short enough to be read before an approval.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use super::{FileDigest, LOADED, rank};
use crate::line_diff::{LineChange, line_diff};

/// The maximum number of shown lines of all files together, and of files named before them.
const LINES: usize = 200;
const NAMES: usize = 50;
/// The minimum number of new files among those, if there are so many.
const NEWS: usize = 10;
/// A file of which fewer lines could be shown is only named.
const FEWEST: usize = 10;
/// The maximum number of shown characters of a line.
const LINE: usize = 200;

type Files = BTreeMap<String, FileDigest>;

/// Names every changed file, the document and executables of the skill first, then shows the
/// changes: of each file as many added lines as removed ones. Omissions are counted.
pub(super) fn difference(before: &Files, after: &Files) -> String {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changes: Vec<Change<'_>> = paths
        .into_iter()
        .filter(|it| *it != LOADED)
        .map(|path| Change { path, before: before.get(path), after: after.get(path) })
        .filter(|it| it.before.map(|it| &it.digest) != it.after.map(|it| &it.digest))
        .collect();
    // Relevant changes must not be hidden behind others: anybody can add as many new files as they
    // like.
    let referring = [referring_texts(before), referring_texts(after)].concat();
    changes.sort_by_cached_key(|it| (it.before.is_none(), it.rank(&referring)));
    let olds = changes.iter().take_while(|it| it.before.is_some()).count();
    let skipped = olds.saturating_sub(NAMES - NEWS.min(changes.len() - olds));
    changes[olds - skipped..].rotate_left(skipped);
    let mut out = String::new();
    for change in changes.iter().take(NAMES) {
        let _ = writeln!(out, "* {}", change.describe());
    }
    if changes.len() > NAMES {
        let _ = writeln!(out, "* … and {} more files", changes.len() - NAMES);
    }
    let lines: Vec<(&Change<'_>, Vec<Line>)> =
        changes.iter().map(|it| (it, it.lines())).filter(|it| !it.1.is_empty()).collect();
    let mut room = LINES - changes.len().min(NAMES + 1);
    let (shown, unseen) = lines.split_at(lines.len().min(room / FEWEST));
    for (at, (change, lines)) in shown.iter().enumerate() {
        // Unused lines of a file are left to those after it; its name and a count take two lines.
        let share = room / (shown.len() - at) - 2;
        let _ = writeln!(out, "* {}:", escape(change.path));
        room -= 2 + write_lines(lines, share, &mut out);
    }
    if !unseen.is_empty() {
        let more: usize = unseen.iter().map(|it| count_changed(&it.1)).sum();
        let _ = writeln!(out, "… and {more} more changed lines in {} more files", unseen.len());
    }
    out
}

/// Returns the changes to the text of one file, as lines with `+` and `-`, with two lines of
/// context; bounded.
pub(crate) fn file_difference(before: &str, after: &str) -> String {
    let mut out = String::new();
    write_lines(&diff_lines(before, after), LINES, &mut out);
    out
}

/// Returns the first lines of a text; omitted lines are counted.
pub(crate) fn shorten_text(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n').take(LINES) {
        let _ = writeln!(out, "{}", shorten_line(line));
    }
    let more = text.split_inclusive('\n').count().saturating_sub(LINES);
    if more > 0 {
        let _ = writeln!(out, "… and {more} more lines");
    }
    out
}

/// Lists every file with its size, executables and files that they name first; `None` if there is
/// only one.
pub(super) fn list_files(files: &Files) -> Option<String> {
    let referring = referring_texts(files);
    let mut files: Vec<(&String, &FileDigest)> = files.iter().filter(|it| it.0 != LOADED).collect();
    files.sort_by_cached_key(|(path, part)| part.rank(path, &referring));
    let mut out = String::new();
    for (path, part) in files.iter().take(NAMES) {
        let _ = writeln!(out, "* {}, {} bytes", escape(path), part.size);
    }
    if files.len() > NAMES {
        let _ = writeln!(out, "* … and {} more files", files.len() - NAMES);
    }
    (files.len() > 1).then_some(out)
}

/// Returns the texts that may name other files: the document of a skill, and executables.
fn referring_texts(files: &Files) -> Vec<&str> {
    files
        .iter()
        .filter(|(path, part): &(&String, &FileDigest)| part.rank(path, &[]) < 2)
        .filter_map(|it| it.1.text.as_deref())
        .collect()
}

impl FileDigest {
    /// Returns the order of a file; one that others name ranks like them.
    fn rank(&self, path: &str, referring: &[&str]) -> u8 {
        let mode = u32::from_str_radix(&self.mode, 8).unwrap_or(0);
        let name = path.rsplit('/').next().unwrap_or(path);
        match rank(path, mode & 0o111 != 0) {
            2 if referring.iter().any(|it| it.contains(name)) => 1,
            rank => rank,
        }
    }
}

/// One changed file.
struct Change<'f> {
    path: &'f str,
    before: Option<&'f FileDigest>,
    after: Option<&'f FileDigest>,
}

struct Line {
    /// `None` if lines are omitted between two changes.
    change: Option<LineChange>,
    text: String,
}

impl Change<'_> {
    fn rank(&self, referring: &[&str]) -> u8 {
        [self.before, self.after]
            .into_iter()
            .flatten()
            .map(|it| it.rank(self.path, referring))
            .min()
            .unwrap_or(u8::MAX)
    }

    /// Returns its name, and the changes that cannot be shown in lines.
    fn describe(&self) -> String {
        let name = escape(self.path);
        let size = |it: &FileDigest| format!("{} bytes", it.size);
        let (what, sizes) = match (self.before, self.after) {
            (Some(before), Some(after)) => {
                ("has changed", format!("{} → {}", before.size, size(after)))
            }
            (None, Some(after)) => ("is new", size(after)),
            (before, None) => ("was removed", before.map(size).unwrap_or_default()),
        };
        let mode = match (self.before, self.after) {
            (Some(before), Some(after)) if before.mode != after.mode => {
                format!(
                    ", mode {} → {}",
                    permission_bits(&before.mode),
                    permission_bits(&after.mode)
                )
            }
            _ => String::new(),
        };
        let unseen = match self.texts() {
            None => format!(", too large or not text: {sizes}"),
            Some(_) => String::new(),
        };
        format!("{name} {what}{mode}{unseen}")
    }

    /// Returns its old and new text, if both are known.
    fn texts(&self) -> Option<(&str, &str)> {
        fn text(part: Option<&FileDigest>) -> Option<&str> {
            part.map_or(Some(""), |it| it.text.as_deref())
        }
        Some((text(self.before)?, text(self.after)?))
    }

    /// Returns the changed lines, with two lines of context.
    fn lines(&self) -> Vec<Line> {
        self.texts().map_or_else(Vec::new, |(before, after)| diff_lines(before, after))
    }
}

/// Returns the differing lines, with two lines of context.
fn diff_lines(before: &str, after: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for hunk in line_diff(before, after, 2) {
        if !lines.is_empty() {
            lines.push(Line { change: None, text: "…".to_owned() });
        }
        lines.extend(hunk.lines.iter().flat_map(|it| {
            let text = it.text.strip_suffix('\n').unwrap_or(it.text);
            let text = text.strip_suffix('\r').unwrap_or(text);
            // Some programs end a line at CR alone.
            text.split('\r').map(|text| Line { change: Some(it.change), text: shorten_line(text) })
        }));
    }
    lines
}

/// Writes at most `most` lines, and the number of omitted ones. Returns the number of lines written.
fn write_lines(lines: &[Line], most: usize, out: &mut String) -> usize {
    let count = |change| lines.iter().filter(|it| it.change == Some(change)).count();
    let (gone, new) = (count(LineChange::Removed), count(LineChange::Added));
    let is_short = lines.len() <= most;
    let new_share = new.min((most / 2).max(most.saturating_sub(gone)));
    let (mut gone_left, mut new_left) = (gone.min(most - new_share), new_share);
    let mut shown = 0;
    for line in lines {
        let (sign, left) = match line.change {
            None if is_short => ("", &mut 1),
            Some(LineChange::Unchanged) if is_short => (" ", &mut 1),
            // The context is less important than the change.
            None | Some(LineChange::Unchanged) => continue,
            Some(LineChange::Removed) => ("-", &mut gone_left),
            Some(LineChange::Added) => ("+", &mut new_left),
        };
        if *left > 0 {
            *left -= 1;
            shown += 1;
            let _ = writeln!(out, "{sign}{}", line.text);
        }
    }
    if !is_short && gone + new > shown {
        let (less, more) = (gone - gone.min(most - new_share), new - new_share);
        let _ = writeln!(out, "… and {less} more lines with -, {more} more with +");
    }
    shown
}

fn count_changed(lines: &[Line]) -> usize {
    let changes = [Some(LineChange::Removed), Some(LineChange::Added)];
    lines.iter().filter(|it| changes.contains(&it.change)).count()
}

/// Returns the permission bits of a mode.
fn permission_bits(mode: &str) -> String {
    u32::from_str_radix(mode, 8).map_or_else(|_| mode.to_owned(), |it| format!("{:o}", it & 0o7777))
}

/// Returns a line without its end, and shortened; omitted characters are counted.
fn shorten_line(line: &str) -> String {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.char_indices().nth(LINE) {
        Some((at, _)) => {
            let more = line[at..].chars().count();
            format!("{}… and {more} more characters", escape(&line[..at]))
        }
        None => escape(line),
    }
}

/// Escapes a text so that it cannot end its line, or look like another.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "{}", c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_among_lines_that_end_at_cr() {
        let before = "one = 1\r".repeat(100) + "two = 2\r";
        let after = before.replace("two", "system");
        let shown: Vec<String> =
            diff_lines(&before, &after).into_iter().map(|it| it.text).collect();
        assert!(shown.contains(&"two = 2".to_owned()), "{shown:?}");
        assert!(shown.contains(&"system = 2".to_owned()), "{shown:?}");
        let crlf: Vec<String> =
            diff_lines("a\r\n", "b\r\n").into_iter().map(|it| it.text).collect();
        assert_eq!(crlf, ["a", "b"]);
    }
}
