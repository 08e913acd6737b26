//! One command a file.

pub(crate) mod list;
pub(crate) mod check;
pub(crate) mod show;
pub(crate) mod read;
pub(crate) mod new;

use anyhow::Result;
use prowess::{Finding, Resource};
use serde_json::{Value as Json, json};

use crate::{
    Status,
    arguments::{Arguments, Command},
    printer::Printer,
};

/// Runs the command that was typed.
pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Status> {
    let global = &arguments.global;
    match &arguments.command {
        Command::List(args) => list::run(args, global, printer),
        Command::Check(args) => check::run(args, global, printer),
        Command::Show(args) => show::run(args, global, printer),
        Command::Read(args) => read::run(args, global, printer),
        Command::New(args) => new::run(args, global, printer),
    }
}

/// A finding as it stands in JSON.
fn finding_json(finding: &Finding) -> Json {
    json!({
        "path": finding.path.to_string_lossy(),
        "line": finding.line,
        "rule": finding.rule.code,
        "severity": finding.severity.as_str(),
        "message": finding.message,
        "hint": finding.hint,
    })
}

/// A resource as it stands in JSON.
fn resource_json(resource: &Resource) -> Json {
    json!({ "path": resource.path, "kind": resource.kind.as_str(), "size": resource.size })
}

/// `1 skill`, `2 skills`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
