//! Findings as annotations, which a GitHub workflow shows beside the changed lines.

use std::path::Path;

use prowess::{Finding, Severity};

use super::place;
use crate::safe;

/// Returns the workflow command for a finding.
pub(in crate::commands) fn annotation(finding: &Finding, root: &Path) -> String {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let file = property(&place::path(finding, root).to_string_lossy());
    let line = finding.line.map(|it| format!(",line={it}")).unwrap_or_default();
    let columns = place::columns(finding, |text| text.chars().count());
    let columns = columns.map(|(start, end)| format!(",col={start},endColumn={end}"));
    let (columns, title) = (columns.unwrap_or_default(), finding.rule.code);
    let message = data(&place::sentences(finding));
    format!("::{level} file={file}{line}{columns},title={title}::{message}")
}

/// Escapes a text for the message of a command; `safe` has removed line ends.
fn data(text: &str) -> String {
    safe::line(text).replace('%', "%25")
}

/// Escapes a text for a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
