//! Finds the beginnings of the blocks of a text.

use pulldown_cmark::{Event, Options, Parser};

/// Returns the supported extensions of CommonMark.
pub(super) fn extensions() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Returns the positions where the outermost blocks of a text begin, each at the start of its
/// line. Definitions of links, which no event covers, count as blocks.
pub(super) fn block_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut covered = 0;
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, extensions()).into_offset_iter() {
        if depth == 0 {
            starts.extend(first_text_line(text, covered, range.start));
            starts.push(line_start(text, range.start));
            covered = range.end;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    starts.extend(first_text_line(text, covered, text.len()));
    starts.dedup();
    starts
}

/// Returns the start of the first line with text in a range; `None` if all of it is blank.
fn first_text_line(text: &str, start: usize, end: usize) -> Option<usize> {
    let gap = text.get(start..end)?;
    let blank = gap.len() - gap.trim_start().len();
    (blank < gap.len()).then(|| line_start(text, start + blank))
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |it| it + 1)
}
