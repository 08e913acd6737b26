//! Tests of the library with good and bad skills, through its public API.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod irregular;
mod files;
mod rules;
mod roundtrip;
mod fix;
mod bounds;
mod matching;
mod window;
mod recall;

use prowess::{Finding, Severity};

/// Formats findings on one line: the first letter of the severity, the line, the code.
fn shown(findings: &[Finding]) -> String {
    let one = |it: &Finding| {
        let weight = match it.severity {
            Severity::Info => 'I',
            Severity::Warning => 'W',
            Severity::Error => 'E',
        };
        let line = it.line.map_or("-".to_owned(), |line| line.to_string());
        format!("{weight}{line} {}", it.rule.code)
    };
    findings.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the codes of findings, in order.
fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|it| it.rule.code).collect()
}
