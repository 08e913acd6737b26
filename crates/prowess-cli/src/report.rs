//! A report on the use of the context window.

use anstyle::{AnsiColor, Color, Style};
use prowess::{ContextWindow, FitStep, FittedPrompt, PlacedSkill, Tokenizer};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    printer::{DIM, NAME, paint},
    safe,
};

/// The least and the greatest width of a report.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=200;

/// A part of the window: its name, its tokens, and its look without and with colour.
struct WindowPart {
    name: &'static str,
    tokens: usize,
    letter: char,
    color: Option<AnsiColor>,
}

/// Returns the lines of a report, none wider than `width`.
pub(crate) fn lines(
    fitted: &FittedPrompt,
    window: &ContextWindow,
    width: usize,
    colored: bool,
) -> Vec<String> {
    let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
    let (used, tokens) = (fitted.tokens, window.tokens);
    let free = tokens.saturating_sub(used.total());
    let parts = [
        ("system", used.system, 's', Some(AnsiColor::Blue)),
        ("skills", used.skills, 'k', Some(AnsiColor::Green)),
        ("history", used.history, 'h', Some(AnsiColor::Yellow)),
        ("tools", used.tools, 't', Some(AnsiColor::Magenta)),
        ("free", free, '.', None),
    ]
    .map(|(name, tokens, letter, color)| WindowPart { name, tokens, letter, color });
    let error = window.vocabulary.error() * 100.0;
    let estimated = match window.vocabulary {
        Tokenizer::Estimate if width < 60 => format!(" ± {error:.0} %"),
        Tokenizer::Estimate => format!(" by estimate (± {error:.0} %)"),
        _ => String::new(),
    };
    let title = format!("{} of {} tokens", thousands(used.total()), thousands(tokens));
    let mut lines = vec![
        format!("{}{estimated}, {}", paint(&title, NAME, colored), percent(used.total(), tokens)),
        bar(&parts, width, colored),
    ];
    lines.extend(parts.iter().map(|it| legend(it, tokens, colored)));
    if !fitted.skills.is_empty() {
        lines.push(String::new());
        lines.extend(skills(&fitted.skills, width, colored));
    }
    if !fitted.steps.is_empty() {
        lines.extend([String::new(), paint("Steps", NAME, colored)]);
        lines.extend(steps(fitted, width, colored));
    }
    lines
}

/// Draws a bar of the window in which each part is as long as its share, and at least visible.
fn bar(parts: &[WindowPart], width: usize, colored: bool) -> String {
    let cells = shares(parts, width);
    let drawn = parts.iter().zip(cells).map(|(part, cells)| match (colored, part.color) {
        (true, Some(_)) => paint(&"█".repeat(cells), style(part), true),
        (true, None) => paint(&"░".repeat(cells), style(part), true),
        (false, _) => part.letter.to_string().repeat(cells),
    });
    drawn.collect()
}

/// Returns the cells of each part, at least one if it has any tokens.
fn shares(parts: &[WindowPart], width: usize) -> Vec<usize> {
    let total: u128 = parts.iter().map(|it| it.tokens as u128).sum::<u128>().max(1);
    let shares = parts.iter().map(|it| (it.tokens as u128 * width as u128 / total) as usize);
    let mut cells: Vec<usize> =
        shares.zip(parts).map(|(share, it)| share.max(usize::from(it.tokens > 0))).collect();
    // The largest part absorbs the rounding error.
    if let Some(largest) = (0..cells.len()).max_by_key(|at| cells[*at]) {
        let others: usize = cells.iter().sum::<usize>() - cells[largest];
        cells[largest] = width.saturating_sub(others);
    }
    cells
}

fn legend(part: &WindowPart, window: usize, colored: bool) -> String {
    let sign = match (colored, part.color) {
        (true, Some(_)) => paint("█", style(part), true),
        (true, None) => paint("░", style(part), true),
        (false, _) => part.letter.to_string(),
    };
    let share = paint(&format!("{:>7}", percent(part.tokens, window)), DIM, colored);
    format!("  {sign} {:<8}{:>12}  {share}", part.name, thousands(part.tokens))
}

fn style(part: &WindowPart) -> Style {
    part.color.map_or(DIM, |it| Style::new().fg_color(Some(Color::Ansi(it))))
}

/// Returns one line per skill: name, tokens, priority, and the level or why it was left out.
fn skills(skills: &[PlacedSkill], width: usize, colored: bool) -> Vec<String> {
    let names: Vec<String> = skills.iter().map(|it| safe::line(&it.name).into_owned()).collect();
    let widest = names.iter().map(|it| it.width()).max().unwrap_or(0).max("Skills".len());
    // The columns around the name take 28.
    let room = widest.min(width - 28);
    let pad = " ".repeat(room - "Skills".len() + 2);
    let head = paint(&format!("{pad} tokens priority level"), DIM, colored);
    let head = format!("{}{head}", paint("Skills", NAME, colored));
    std::iter::once(head)
        .chain(skills.iter().zip(&names).map(|(skill, name): (&PlacedSkill, &String)| {
            let name = safe::cut(name, room);
            let pad = " ".repeat(room - name.width());
            let level = skill.level.as_str();
            let fate = match skill.left_out {
                Some(FitStep::KeepRecent) => "squeezed".to_owned(),
                Some(_) => "evicted".to_owned(),
                None if skill.level < skill.wanted && width - room > 42 => {
                    format!("{level} instead of {}", skill.wanted.as_str())
                }
                None => level.to_owned(),
            };
            let fate = if skill.left_out.is_some() { paint(&fate, DIM, colored) } else { fate };
            let (tokens, priority) = (thousands(skill.tokens), skill.priority.as_str());
            format!("  {name}{pad} {tokens:>6} {priority:<8} {fate}")
        }))
        .collect()
}

/// Returns one line per fit step: its name, the tokens before and after, and its effect, which is
/// on a line of its own if there is no room.
fn steps(fitted: &FittedPrompt, width: usize, colored: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for change in &fitted.steps {
        let numbers = format!("{} → {}", thousands(change.before), thousands(change.after));
        let line = format!("  {:<8} {numbers:<20}", change.step.as_str());
        let what = safe::line(&change.what);
        let narrow = line.width() + what.width() > width && width < 80;
        let room = if narrow { width - 4 } else { width.saturating_sub(line.width() + 1) };
        let what = paint(&safe::cut(&what, room), DIM, colored);
        match narrow {
            true => lines.extend([line.trim_end().to_owned(), format!("    {what}")]),
            false => lines.push(format!("{line} {what}")),
        }
    }
    lines
}

/// Formats a number as `1,234,567`.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn percent(part: usize, all: usize) -> String {
    let share = part as f64 * 100.0 / all.max(1) as f64;
    match share {
        0.0 => "0 %".to_owned(),
        it if it < 0.1 => "< 0.1 %".to_owned(),
        it => format!("{it:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_wide_as_it_should_be_and_shows_every_part() {
        let part = |tokens, letter| WindowPart { name: "", tokens, letter, color: None };
        for width in [40, 80, 200] {
            let parts =
                [part(1, 's'), part(0, 'k'), part(99_000, 'h'), part(2, 't'), part(900, '.')];
            let bar = bar(&parts, width, false);
            assert_eq!(bar.len(), width, "{bar}");
            assert!(bar.starts_with("sh") && bar.contains("ht.") && !bar.contains('k'), "{bar}");
        }
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        let shares = [percent(0, 0), percent(1, 100_000), percent(1, 3)];
        assert_eq!(shares, ["0 %", "< 0.1 %", "33.3 %"]);
    }
}
