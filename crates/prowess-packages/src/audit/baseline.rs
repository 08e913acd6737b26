//! Findings that were looked at and accepted.

use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
};

use super::AuditFinding;
use crate::digest::FileDigest;

/// Findings that were looked at and accepted, as in a file `prowess-audit.toml`.
///
/// An accepted finding is known by its rule, its file and the digest of its line: when the line
/// changes, the finding is reported again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AuditBaseline {
    /// The accepted findings, by path, rule and digest.
    pub accepted: Vec<AcceptedFinding>,
}

/// A finding that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct AcceptedFinding {
    /// The path of the file, relative to the folder of the baseline, with `/`.
    pub path: String,
    /// The code of the rule.
    pub rule: String,
    /// The digest of the line, or of the file if the finding is about all of it.
    pub digest: FileDigest,
    /// The line, for people; not compared.
    pub text: String,
    /// Why it is accepted.
    pub reason: String,
}

/// A baseline cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// It is not TOML, or a field is missing or wrong.
    #[error("the baseline is not valid: {0}")]
    Syntax(String),
    /// It was written by a newer version.
    #[error("the baseline has version {0}")]
    Version(i64),
}

impl BaselineError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Syntax(_) => "correct it, or delete it and write a new one with `--accept`",
            Self::Version(_) => "update `prowess`; this one reads version 1",
        }
    }
}

impl AuditBaseline {
    /// Reads a baseline.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let syntax = |it: &dyn std::fmt::Display| {
            BaselineError::Syntax(it.to_string().trim().replace('\n', " "))
        };
        let document: toml_edit::DocumentMut =
            text.parse().map_err(|it: toml_edit::TomlError| syntax(&it.message()))?;
        let integer = |item: &toml_edit::Item| item.as_integer();
        match document.get("version").and_then(integer) {
            Some(1) => {}
            Some(version) => return Err(BaselineError::Version(version)),
            None => return Err(BaselineError::Syntax("there is no `version`".to_owned())),
        }
        let tables = document.get("accepted").and_then(toml_edit::Item::as_array_of_tables);
        let mut accepted = Vec::new();
        for (number, table) in tables.into_iter().flatten().enumerate() {
            let text =
                |key: &str| table.get(key).and_then(toml_edit::Item::as_str).map(str::to_owned);
            let needed = |key: &str| {
                text(key).ok_or_else(|| {
                    BaselineError::Syntax(format!("entry {} has no `{key}`", number + 1))
                })
            };
            accepted.push(AcceptedFinding {
                path: needed("path")?,
                rule: needed("rule")?,
                digest: needed("line")?
                    .parse()
                    .map_err(|it: crate::digest::DigestSyntaxError| syntax(&it))?,
                text: text("text").unwrap_or_default(),
                reason: text("reason").unwrap_or_default(),
            });
        }
        accepted.sort();
        Ok(Self { accepted })
    }

    /// Returns the text of the file.
    pub fn to_toml(&self) -> String {
        let mut out = String::from(
            "# Findings of `prowess audit` that were looked at and accepted.\nversion = 1\n",
        );
        for AcceptedFinding { path, rule, digest, text, reason } in &self.accepted {
            let line = digest.to_string();
            out.push_str("\n[[accepted]]\n");
            let fields = [
                ("path", path),
                ("rule", rule),
                ("line", &line),
                ("text", text),
                ("reason", reason),
            ];
            for (key, value) in fields {
                out.push_str(&format!("{key} = {}\n", toml_edit::Value::from(value.as_str())));
            }
        }
        out
    }

    /// Adds a finding. `folder` is the one of the baseline.
    pub fn accept(&mut self, finding: &AuditFinding, folder: &Path, reason: &str) {
        let (path, rule) =
            (relative(&finding.finding.path, folder), finding.finding.rule.code.to_owned());
        if self
            .accepted
            .iter()
            .any(|it| it.path == path && it.rule == rule && it.digest == finding.digest)
        {
            return;
        }
        let text = finding.finding.excerpt.as_deref().unwrap_or_default().trim();
        let end = text.char_indices().nth(100).map_or(text.len(), |it| it.0);
        let text = text[..end].to_owned();
        self.accepted.push(AcceptedFinding {
            path,
            rule,
            digest: finding.digest,
            text,
            reason: reason.to_owned(),
        });
        self.accepted.sort();
    }

    /// Removes accepted findings from a list. Returns how many they were, and the entries that stand
    /// for none.
    pub fn remove_accepted(
        &self,
        findings: &mut Vec<AuditFinding>,
        folder: &Path,
    ) -> (usize, Vec<&AcceptedFinding>) {
        let mut used = HashSet::new();
        let before = findings.len();
        findings.retain(|finding| {
            let path = relative(&finding.finding.path, folder);
            let entry = self.accepted.iter().position(|it| {
                it.digest == finding.digest
                    && it.rule == finding.finding.rule.code
                    && it.path == path
            });
            entry.is_none_or(|it| {
                used.insert(it);
                false
            })
        });
        let stale =
            self.accepted.iter().enumerate().filter(|it| !used.contains(&it.0)).map(|it| it.1);
        (before - findings.len(), stale.collect())
    }
}

/// Returns a path relative to a folder, with `/`.
fn relative(path: &Path, folder: &Path) -> String {
    let mut parts = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = parts.strip_prefix(folder).unwrap_or(&parts);
    path.components().map(|it| it.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
