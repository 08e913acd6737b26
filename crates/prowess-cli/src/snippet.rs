//! A finding under the line it is about, as a compiler would show it.

use annotate_snippets::{
    AnnotationKind, Group, Level, Origin, Renderer, Snippet, renderer::DecorStyle,
};
use prowess::{Finding, Severity};

use crate::{printer::Printer, safe};

/// Renders a finding, with the line that it is about where there is one.
pub(crate) fn render(finding: &Finding, printer: &Printer) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let path = safe::line(&finding.path.display().to_string()).into_owned();
    let message = safe::line(&finding.message).into_owned();
    let hint = safe::line(&finding.hint).into_owned();
    let title = level.primary_title(message).id(finding.rule.code);
    let shown = finding.excerpt.as_deref().map(|line| Shown::new(line, finding.columns));
    let mut group = match (&shown, finding.line) {
        (Some(shown), Some(number)) => {
            let annotation = AnnotationKind::Primary.span(shown.start..shown.end);
            let snippet = Snippet::source(shown.text.as_str())
                .line_start(number)
                .path(&path)
                .annotation(annotation);
            Group::with_title(title).element(snippet)
        }
        _ => Group::with_title(title).element(Origin::path(&path)),
    };
    if !hint.is_empty() {
        group = group.element(Level::HELP.message(hint));
    }
    let renderer = if printer.colored { Renderer::styled() } else { Renderer::plain() };
    // A long line is cut around what is meant, but never in a pipe.
    let width = printer.width.unwrap_or(usize::MAX >> 1);
    renderer.term_width(width).decor_style(DecorStyle::Ascii).render(&[group])
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
