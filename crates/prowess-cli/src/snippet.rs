//! A finding under the line it is about, as a compiler prints it.

use std::path::Path;

use annotate_snippets::{
    AnnotationKind, Group, Level, Origin, Renderer, Snippet, renderer::DecorStyle,
};
use prowess::{Finding, Severity};
use prowess_cli::settings::ConfigProblem;
use unicode_width::UnicodeWidthChar as _;

use crate::{
    printer::{NAME, Printer, paint, severity_style, wrap_message},
    safe,
};

/// The columns beside a line: its number, and the marks of a cut.
const GUTTER: usize = 14;

/// The parts of a snippet: the message, and its place.
struct Problem<'w> {
    severity: Severity,
    code: Option<&'static str>,
    message: &'w str,
    hint: &'w str,
    path: &'w Path,
    line: Option<usize>,
    excerpt: Option<&'w str>,
    columns: Option<(usize, usize)>,
}

/// Renders a finding for stdout, with the line that it is about if there is one.
pub(crate) fn render(finding: &Finding, printer: &Printer) -> String {
    let problem = Problem {
        severity: finding.severity,
        code: Some(finding.rule.code),
        message: &finding.message,
        hint: &finding.hint,
        path: &finding.path,
        line: finding.line,
        excerpt: finding.excerpt.as_deref(),
        columns: finding.columns,
    };
    problem.render(printer.colored, printer.width)
}

/// Renders a problem of a settings file.
pub(crate) fn render_fault(fault: &ConfigProblem, colored: bool, width: Option<usize>) -> String {
    let problem = Problem {
        severity: Severity::Error,
        code: None,
        message: &fault.message,
        hint: fault.hint.as_deref().unwrap_or_default(),
        path: &fault.path,
        line: fault.line,
        excerpt: fault.excerpt.as_deref(),
        columns: fault.columns,
    };
    problem.render(colored, width)
}

/// The most carets under a line, even if nothing is cut.
const LONGEST_MARK: usize = 100;

impl Problem<'_> {
    fn render(&self, colored: bool, width: Option<usize>) -> String {
        // A long line is cut around the marked columns, but not in a pipe.
        let width = width.unwrap_or(usize::MAX >> 1);
        let path = safe::line(&self.path.display().to_string()).into_owned();
        let room = width.saturating_sub(GUTTER).min(LONGEST_MARK);
        // A blank line has nothing to mark.
        let excerpt = self.excerpt.filter(|it| !it.trim().is_empty());
        let shown = excerpt.map(|line| SafeLine::new(line, self.columns).fit_mark(room));
        let group = Group::with_level(match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Info => Level::INFO,
        });
        let mut group = match (&shown, self.line) {
            (Some(shown), Some(number)) => {
                let annotation = AnnotationKind::Primary.span(shown.start..shown.end);
                let snippet = Snippet::source(shown.text.as_str())
                    .line_start(number)
                    .path(&path)
                    .annotation(annotation);
                group.element(snippet)
            }
            (None, Some(number)) => group.element(Origin::path(&path).line(number)),
            _ => group.element(Origin::path(&path)),
        };
        if !self.hint.is_empty() {
            let number = self.line.map_or(0, |it| it.to_string().len());
            let room = width.saturating_sub(number + " = help: ".len());
            let hint = wrap_message(&safe::line(self.hint), room, "").join("\n");
            group = group.element(Level::HELP.message(hint));
        }
        let renderer = if colored { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.term_width(width).decor_style(DecorStyle::Ascii);
        format!("{}\n{}", self.headline(colored, width), renderer.render(&[group]))
    }

    /// Returns the message, in as many lines as it needs.
    fn headline(&self, colored: bool, width: usize) -> String {
        let (style, word) = severity_style(self.severity);
        let label = self.code.map_or(word.to_owned(), |code| format!("{word}[{code}]"));
        let text = wrap_message(&format!("{label}: {}", safe::line(self.message)), width, "  ");
        let text = text.join("\n");
        let rest = text.strip_prefix(&label).unwrap_or(&text);
        let rest = rest.split('\n').map(|it| paint(it, NAME, colored)).collect::<Vec<_>>();
        format!("{}{}", paint(&label, style, colored), rest.join("\n"))
    }
}

/// A line made safe for a terminal, with the marked columns.
struct SafeLine {
    text: String,
    start: usize,
    end: usize,
}

impl SafeLine {
    fn new(line: &str, columns: Option<(usize, usize)>) -> Self {
        let margin = line.len() - line.trim_start().len();
        let (start, end) = columns.unwrap_or((margin, line.trim_end().len()));
        let before = line.get(..start).unwrap_or("");
        let meant = line.get(before.len()..end).unwrap_or(&line[before.len()..]);
        let behind = &line[before.len() + meant.len()..];
        let (before, meant, behind) = (safe::line(before), safe::line(meant), safe::line(behind));
        let (start, end) = (before.len(), before.len() + meant.len());
        Self { text: format!("{before}{meant}{behind}"), start, end }
    }

    /// Shortens the mark to the room: a wider one would make the whole line be printed.
    fn fit_mark(mut self, room: usize) -> Self {
        let mut used = 0;
        let fits = self.text[self.start..self.end].chars().take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        });
        self.end = self.start + fits.map(char::len_utf8).sum::<usize>();
        self
    }
}
