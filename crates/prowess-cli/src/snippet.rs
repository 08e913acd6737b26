//! A finding under the line it is about, as a compiler would show it.

use std::path::Path;

use annotate_snippets::{
    AnnotationKind, Group, Level, Origin, Renderer, Snippet, renderer::DecorStyle,
};
use prowess::{Finding, Severity};
use prowess_runtime::Fault;

use crate::{printer::Printer, safe};

/// What is shown: what is wrong, and where.
struct Wrong<'w> {
    level: Level<'w>,
    code: Option<&'static str>,
    message: &'w str,
    hint: &'w str,
    path: &'w Path,
    line: Option<usize>,
    excerpt: Option<&'w str>,
    columns: Option<(usize, usize)>,
}

/// Renders a finding for stdout, with the line that it is about where there is one.
pub(crate) fn render(finding: &Finding, printer: &Printer) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let wrong = Wrong {
        level,
        code: Some(finding.rule.code),
        message: &finding.message,
        hint: &finding.hint,
        path: &finding.path,
        line: finding.line,
        excerpt: finding.excerpt.as_deref(),
        columns: finding.columns,
    };
    wrong.render(printer.colored, printer.width)
}

/// Renders a fault of a file of settings.
pub(crate) fn render_fault(fault: &Fault, colored: bool) -> String {
    let wrong = Wrong {
        level: Level::ERROR,
        code: None,
        message: &fault.message,
        hint: fault.hint.as_deref().unwrap_or_default(),
        path: &fault.path,
        line: fault.line,
        excerpt: fault.excerpt.as_deref(),
        columns: fault.columns,
    };
    wrong.render(colored, None)
}

impl Wrong<'_> {
    fn render(&self, colored: bool, width: Option<usize>) -> String {
        let path = safe::line(&self.path.display().to_string()).into_owned();
        let title = self.level.clone().primary_title(safe::line(self.message).into_owned());
        let title = self.code.map_or(title.clone(), |code| title.id(code));
        let shown = self.excerpt.map(|line| Shown::new(line, self.columns));
        let mut group = match (&shown, self.line) {
            (Some(shown), Some(number)) => {
                let annotation = AnnotationKind::Primary.span(shown.start..shown.end);
                let snippet = Snippet::source(shown.text.as_str())
                    .line_start(number)
                    .path(&path)
                    .annotation(annotation);
                Group::with_title(title).element(snippet)
            }
            (None, Some(number)) => {
                Group::with_title(title).element(Origin::path(&path).line(number))
            }
            _ => Group::with_title(title).element(Origin::path(&path)),
        };
        if !self.hint.is_empty() {
            group = group.element(Level::HELP.message(safe::line(self.hint).into_owned()));
        }
        let renderer = if colored { Renderer::styled() } else { Renderer::plain() };
        // A long line is cut around what is meant, but never in a pipe.
        let width = width.unwrap_or(usize::MAX >> 1);
        renderer.term_width(width).decor_style(DecorStyle::Ascii).render(&[group])
    }
}

/// A line made safe, with the columns that are meant.
struct Shown {
    text: String,
    start: usize,
    end: usize,
}

impl Shown {
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
}
