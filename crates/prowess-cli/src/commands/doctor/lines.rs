//! Sentences and verdicts, wrapped to the terminal.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use prowess::Verdict;

use crate::{
    markdown,
    printer::{Printer, paint},
    safe,
};

/// The column of the reasons: after the longest word for a verdict.
pub(super) const INDENT: usize = 10;
/// A space between words that belong together.
const NO_BREAK: &str = "\u{a0}";

/// Prints lines after the word for a verdict.
pub(super) fn print_with_verdict(
    verdict: Verdict,
    text: &str,
    printer: &mut Printer,
) -> Result<()> {
    let word = paint(verdict.as_str(), verdict_style(verdict), printer.colored);
    let pad = " ".repeat(INDENT - verdict.as_str().len());
    let lines = wrap_words(&safe::line(text), width_beside(INDENT, printer));
    for (number, line) in lines.iter().enumerate() {
        match number {
            0 => printer.line(format_args!("{word}{pad}{line}"))?,
            _ => printer.line(format_args!("{}{line}", " ".repeat(INDENT)))?,
        }
    }
    Ok(())
}

/// Prints a text, made safe for a terminal and wrapped.
pub(super) fn print_wrapped(text: &str, indent: usize, printer: &mut Printer) -> Result<()> {
    let lines = wrap_words(&safe::line(text), width_beside(indent, printer));
    lines.iter().try_for_each(|it| printer.line(format_args!("{}{it}", " ".repeat(indent))))
}

/// Returns the width left beside other columns; `None` if it is unlimited.
pub(super) fn width_beside(taken: usize, printer: &Printer) -> Option<usize> {
    printer.width.map(|it| it.saturating_sub(taken).max(10))
}

/// Wraps a text between words; a word that is too long stays whole.
pub(in crate::commands) fn wrap_words(text: &str, width: Option<usize>) -> Vec<String> {
    let lines = markdown::wrap(text, width.unwrap_or(usize::MAX), "");
    lines.iter().map(|it| it.replace(NO_BREAK, " ")).collect()
}

/// Joins the words of a text with spaces that do not break.
pub(in crate::commands) fn unbroken(text: &str) -> String {
    text.replace(' ', NO_BREAK)
}

pub(super) fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Loads => AnsiColor::Green.on_default(),
        Verdict::Asks | Verdict::Cut | Verdict::Hidden | Verdict::Unknown => {
            AnsiColor::Yellow.on_default()
        }
        Verdict::Shadowed | Verdict::Refused => AnsiColor::Red.on_default().bold(),
        Verdict::Unseen => Style::new().dimmed(),
    }
}
