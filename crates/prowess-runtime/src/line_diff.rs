//! The lines in which two texts differ.

use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, InternedInput};

/// Changes that are close to each other, with unchanged lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffHunk<'t> {
    /// The lines of the old text, counted from 0.
    pub before: Range<usize>,
    /// The lines of the new text, counted from 0.
    pub after: Range<usize>,
    /// The lines of both, in order.
    pub lines: Vec<DiffLine<'t>>,
}

/// A line of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffLine<'t> {
    /// Whether it is in both texts.
    pub change: LineChange,
    /// The line with its end.
    pub text: &'t str,
}

/// Whether a line was kept, removed or added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// It is in both texts.
    Unchanged,
    /// It is in the old text only.
    Removed,
    /// It is in the new text only.
    Added,
}

impl LineChange {
    /// Returns the first character of such a line in a unified diff.
    pub fn sign(self) -> char {
        match self {
            Self::Unchanged => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

/// Compares two texts line by line, with this many unchanged lines around each change. Only LF ends
/// a line. The difference of long texts may not be the shortest, so that it is found quickly.
pub fn line_diff<'t>(before: &'t str, after: &'t str, context: usize) -> Vec<DiffHunk<'t>> {
    let input = InternedInput::new(before, after);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let mut groups: Vec<Vec<Change>> = Vec::new();
    for hunk in diff.hunks() {
        let [before, after] =
            [hunk.before, hunk.after].map(|it| it.start as usize..it.end as usize);
        let change = Change { before, after };
        let previous = groups.last_mut().filter(|group| {
            group
                .last()
                .is_some_and(|it| change.before.start - it.before.end <= context.saturating_mul(2))
        });
        match previous {
            Some(group) => group.push(change),
            None => groups.push(vec![change]),
        }
    }
    let [old, new] = [before, after].map(|it| it.split_inclusive('\n').collect::<Vec<_>>());
    groups.iter().filter_map(|it| to_hunk(&old, &new, it, context)).collect()
}

/// Lines that were replaced.
struct Change {
    before: Range<usize>,
    after: Range<usize>,
}

fn to_hunk<'t>(
    old: &[&'t str],
    new: &[&'t str],
    changes: &[Change],
    context: usize,
) -> Option<DiffHunk<'t>> {
    let (first, last) = (changes.first()?, changes.last()?);
    let leading = context.min(first.before.start);
    let trailing = context.min(old.len() - last.before.end);
    let mut hunk = DiffHunk {
        before: first.before.start - leading..last.before.end + trailing,
        after: first.after.start - leading..last.after.end + trailing,
        lines: Vec::new(),
    };
    let mut add = |change, lines: &[&'t str]| {
        hunk.lines.extend(lines.iter().map(|text| DiffLine { change, text }));
    };
    let mut next = hunk.before.start;
    for change in changes {
        add(LineChange::Unchanged, &old[next..change.before.start]);
        add(LineChange::Removed, &old[change.before.clone()]);
        add(LineChange::Added, &new[change.after.clone()]);
        next = change.before.end;
    }
    add(LineChange::Unchanged, &old[next..hunk.before.end]);
    Some(hunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hunks as lines: where each begins, and its lines with their signs.
    fn shown(before: &str, after: &str, context: usize) -> Vec<String> {
        let hunks = line_diff(before, after, context).into_iter();
        let shown = hunks.map(|it| {
            let lines = it.lines.iter().map(|it| format!("{}{}", it.change.sign(), it.text.trim()));
            let lines = lines.collect::<Vec<_>>().join(" ");
            format!("{:?} {:?}: {lines}", it.before, it.after)
        });
        shown.collect()
    }

    #[test]
    fn changes_have_context_and_near_ones_are_together() {
        let before = "a\nb\nc\nd\ne\nf\ng\n";
        assert_eq!(shown(before, before, 3), [""; 0]);
        let after = "a\nB\nc\nd\nE\nf\nx\ng\n";
        assert_eq!(
            shown(before, after, 0),
            ["1..2 1..2: -b +B", "4..5 4..5: -e +E", "6..6 6..7: +x"]
        );
        assert_eq!(shown(before, after, 1), ["0..7 0..8:  a -b +B  c  d -e +E  f +x  g"]);
        assert_eq!(shown("", "a", 2), ["0..0 0..1: +a"]);
        assert_eq!(shown("a\n", "", 2), ["0..1 0..0: -a"]);
    }

    #[test]
    fn lines_end_at_lf_only_and_their_ends_count() {
        assert_eq!(line_diff("a\rb\n", "a\rc\n", 0)[0].lines.len(), 2);
        let hunks = line_diff("a\r\n", "a", 0);
        let texts: Vec<&str> = hunks[0].lines.iter().map(|it| it.text).collect();
        assert_eq!(texts, ["a\r\n", "a"]);
    }
}
