//! A finding under the line it is about, as a compiler would show it.

use annotate_snippets::{
    AnnotationKind, Group, Level, Origin, Renderer, Snippet, renderer::DecorStyle,
};
use prowess::{Finding, Severity};

use crate::safe;

/// Renders a finding; `source` is the line that it is about, where there is one.
pub(crate) fn render(finding: &Finding, source: Option<&str>, colored: bool) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let path = safe::line(&finding.path.display().to_string()).into_owned();
    let message = safe::line(&finding.message).into_owned();
    let hint = safe::line(&finding.hint).into_owned();
    let title = level.primary_title(message).id(finding.rule.code);
    let shown = source.map(|line| Shown::new(line, finding.columns));
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
    let renderer = if colored { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii).render(&[group])
}

/// A line made safe, with the columns that are meant.
struct Shown {
    text: String,
    start: usize,
    end: usize,
}

impl Shown {
    /// Long lines are cut: nobody reads a screen of one line.
    const LONGEST: usize = 160;

    fn new(line: &str, columns: Option<(usize, usize)>) -> Self {
        let (start, end) =
            columns.unwrap_or((line.len() - line.trim_start().len(), line.trim_end().len()));
        let before = line.get(..start).unwrap_or("");
        let meant = line.get(start..end).or_else(|| line.get(start..)).unwrap_or("");
        let mut text = safe::line(before).into_owned();
        let mut start = text.len();
        text.push_str(&safe::line(meant));
        let mut end = text.len();
        text.push_str(&safe::line(line.get(before.len() + meant.len()..).unwrap_or("")));
        if text.chars().count() > Self::LONGEST {
            let cut = text.char_indices().nth(Self::LONGEST).map_or(text.len(), |it| it.0);
            text.truncate(cut);
            end = end.min(cut);
            start = start.min(cut);
            text.push('…');
        }
        Self { start, end, text }
    }
}
