//! One command a file.

pub(crate) mod list;
pub(crate) mod check;
pub(crate) mod find;
pub(crate) mod show;
pub(crate) mod read;
pub(crate) mod prompt;
pub(crate) mod catalog;
pub(crate) mod new;
pub(crate) mod config;
pub(crate) mod run;
pub(crate) mod sandbox;

use std::borrow::Cow;

use anyhow::Result;
use prowess::{Finding, Resource};
use prowess_runtime::Launcher;
use serde::Serialize;

use crate::{
    Status,
    arguments::{Arguments, Command},
    printer::Printer,
};

/// Runs the command that was typed.
pub(crate) fn run(
    arguments: &Arguments,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<Status> {
    let global = &arguments.global;
    match &arguments.command {
        Command::List(args) => list::run(args, global, printer),
        Command::Check(args) => check::run(args, global, printer),
        Command::Find(args) => find::run(args, global, printer),
        Command::Show(args) => show::run(args, global, printer),
        Command::Read(args) => read::run(args, global, printer),
        Command::Prompt(args) => prompt::run(args, global, printer),
        Command::Catalog(args) => catalog::run(args, global, printer),
        Command::New(args) => new::run(args, global, printer),
        Command::Config(args) => config::run(args, global, printer),
        Command::Run(args) => run::run(args, global, launcher, printer),
        Command::Sandbox(args) => sandbox::run(args, &launcher, printer),
    }
}

/// A finding as it stands in JSON.
#[derive(Serialize)]
struct FindingJson<'a> {
    path: Cow<'a, str>,
    line: Option<usize>,
    rule: &'a str,
    severity: &'a str,
    message: &'a str,
    hint: &'a str,
}

/// A resource as it stands in JSON.
#[derive(Serialize)]
struct ResourceJson<'a> {
    path: &'a str,
    kind: &'a str,
    size: u64,
}

fn finding_json(finding: &Finding) -> FindingJson<'_> {
    FindingJson {
        path: finding.path.to_string_lossy(),
        line: finding.line,
        rule: finding.rule.code,
        severity: finding.severity.as_str(),
        message: &finding.message,
        hint: &finding.hint,
    }
}

fn resource_json(resource: &Resource) -> ResourceJson<'_> {
    ResourceJson { path: &resource.path, kind: resource.kind.as_str(), size: resource.size }
}

/// `1 skill`, `2 skills`.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
