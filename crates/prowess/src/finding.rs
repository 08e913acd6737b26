//! Findings of rules.

pub(crate) mod rule;

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
};

use crate::finding::rule::{Profile, Rule};

/// A fault that a rule found in a skill or a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Its severity in the profile.
    pub severity: Severity,
    /// The file or directory; empty for a text that is not from a file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The columns that it is about, counted in bytes from 0 within the line.
    pub columns: Option<(usize, usize)>,
    /// The line itself, if a text was checked.
    pub excerpt: Option<Box<str>>,
    /// A description of the fault.
    pub message: String,
    /// Advice on how to fix it.
    pub hint: Cow<'static, str>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Informational.
    Info,
    /// May cause problems in some clients.
    Warning,
    /// An error.
    Error,
}

impl Severity {
    /// Returns the word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Finding {
    /// Creates a finding about a whole file or directory.
    pub fn new(
        rule: &'static Rule,
        severity: Severity,
        path: &Path,
        message: String,
        hint: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            rule,
            severity,
            path: path.to_owned(),
            line: None,
            columns: None,
            excerpt: None,
            message,
            hint: hint.into(),
        }
    }
}

/// Collects the findings of one text in one profile.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) profile: Profile,
    /// The minimum severity of findings that are collected.
    pub(crate) least: Severity,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn new(profile: Profile, least: Severity) -> Self {
        Self { profile, least, findings: Vec::new() }
    }

    /// Returns the severity of a rule here; `None` if it does not apply.
    pub(crate) fn wants(&self, rule: &Rule) -> Option<Severity> {
        rule.severity(self.profile).filter(|it| *it >= self.least)
    }

    /// Adds a finding, if its rule applies.
    pub(crate) fn note(
        &mut self,
        rule: &'static Rule,
        at: Position,
        message: impl FnOnce() -> String,
        hint: impl Into<Cow<'static, str>>,
    ) {
        if let Some(severity) = self.wants(rule) {
            self.push(rule, severity, at, message(), hint.into());
        }
    }

    /// Adds the reason why a skill is rejected; that is an error in every profile.
    pub(crate) fn fatal(
        &mut self,
        rule: &'static Rule,
        at: Position,
        message: impl Into<String>,
        hint: impl Into<Cow<'static, str>>,
    ) {
        self.push(rule, Severity::Error, at, message.into(), hint.into());
    }

    fn push(
        &mut self,
        rule: &'static Rule,
        severity: Severity,
        at: Position,
        message: String,
        hint: Cow<'static, str>,
    ) {
        let Position { line, columns } = at;
        self.findings.push(Finding {
            rule,
            severity,
            path: PathBuf::new(),
            line,
            columns,
            excerpt: None,
            message,
            hint,
        });
    }
}

/// A position in a text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    line: Option<usize>,
    columns: Option<(usize, usize)>,
}

impl Position {
    /// The text as a whole.
    pub(crate) const FILE: Self = Self { line: None, columns: None };

    pub(crate) fn line(line: usize) -> Self {
        Self { line: Some(line), columns: None }
    }

    pub(crate) fn columns(line: usize, start: usize, end: usize) -> Self {
        Self { line: Some(line), columns: Some((start, end)) }
    }
}
