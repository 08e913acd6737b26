//! Tables, as wide as their columns need and the terminal allows.

use pulldown_cmark::Alignment;

use super::styled::{StyledLine, StyledText, WideWords};
use crate::printer::{DIM, paint};

/// A table; its first row is the head.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Vec<StyledText>>,
    alignments: Vec<Alignment>,
}

/// The minimum width of a readable column.
const NARROWEST: usize = 6;
const GAP: usize = 3;

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { rows: Vec::new(), alignments }
    }

    /// Returns its lines: columns side by side, or a line for each cell if they do not fit.
    pub(super) fn lines(&self, width: usize, colored: bool) -> Vec<String> {
        match self.widths(width) {
            Some(widths) => self.grid(&widths, colored),
            None => self.records(width, colored),
        }
    }

    /// Returns the widths of the columns: the widest shrink until all fit; `None` if they cannot.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let mut widths = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = cell.width().min(width).max(*widest);
            }
        }
        let room = width.checked_sub(GAP * widths.len().saturating_sub(1))?;
        let least: usize = widths.iter().map(|it| NARROWEST.min(*it)).sum();
        if least > room {
            return None;
        }
        let mut over = widths.iter().sum::<usize>().saturating_sub(room);
        // Words are broken only if there is no other way.
        let longest = self.longest_words();
        for least in [&longest[..], &vec![1; widths.len()]] {
            while over > 0 {
                let wider = widths.iter_mut().zip(least).filter(|(width, least)| **width > **least);
                let Some((widest, _)) = wider.max_by_key(|it| *it.0) else { break };
                *widest -= 1;
                over -= 1;
            }
        }
        Some(widths)
    }

    /// Returns the width of the longest word in each column.
    fn longest_words(&self) -> Vec<usize> {
        let mut longest = vec![1; self.alignments.len()];
        for row in &self.rows {
            for (longest, cell) in longest.iter_mut().zip(row) {
                *longest = cell.longest_word().max(*longest);
            }
        }
        longest
    }

    fn grid(&self, widths: &[usize], colored: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let bar = paint(" │ ", DIM, colored);
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<StyledLine>> = row
                .iter()
                .zip(widths)
                .map(|(it, width)| it.wrap(*width, WideWords::Broken))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let cells = cells.iter().zip(widths).zip(&self.alignments);
                let cells = cells.map(|((cell, width), alignment)| {
                    align(cell.get(at), *width, *alignment, colored)
                });
                lines.push(cells.collect::<Vec<_>>().join(&bar));
            }
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|it| "─".repeat(*it)).collect();
                lines.push(paint(&rules.join("─┼─"), DIM, colored));
            }
        }
        lines
    }

    /// Returns each row as lines of `head: cell`.
    fn records(&self, width: usize, colored: bool) -> Vec<String> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(String::new());
            }
            for (head, cell) in head.iter().zip(row) {
                let mut text = head.clone();
                text.push(": ", DIM);
                text.append(cell);
                let wrapped = text.wrap(width, WideWords::Whole);
                lines.extend(wrapped.iter().map(|it| it.paint(colored)));
            }
        }
        lines
    }
}

fn align(line: Option<&StyledLine>, width: usize, alignment: Alignment, colored: bool) -> String {
    let (text, used) = line.map_or((String::new(), 0), |it| (it.paint(colored), it.width));
    let free = width.saturating_sub(used);
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => free / 2,
        Alignment::Right => free,
    };
    format!("{}{text}{}", " ".repeat(before), " ".repeat(free - before))
}
