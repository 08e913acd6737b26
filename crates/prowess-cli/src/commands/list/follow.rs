//! The list, followed by a line for each change of it.

use std::{borrow::Cow, sync::Arc, time::Duration};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use prowess::{Finding, Library, LibraryChange, Severity, Skill, library_changes};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::{Args, FindingJson, ListJson, SkillJson, finding_json, skill_json};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    context, host,
    printer::{Printer, finding_text, paint, wrap_message},
    safe,
};

/// The interval of checks whether the output is still being read.
const TICK: Duration = Duration::from_millis(500);

const GREEN: Style = AnsiColor::Green.on_default();
const RED: Style = AnsiColor::Red.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Prints the list, and each change of it until the program is ended.
pub(super) fn follow(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    if context::directories(&context::config(global)?, global).is_empty() {
        return Err(CliError::new("there is no directory to watch")
            .hint("name one with `--dir DIR` or `--preset NAME`")
            .into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut stop = {
        let _signals = runtime.enter();
        Box::pin(host::stop_signal()?)
    };
    let live_library = context::live_library(global, true, printer)?;
    let mut last = live_library.library();
    let mut before = with_tag(&last, args.tag.as_deref());
    let skills: Vec<&Skill> = before.all().collect();
    match printer.json {
        true => printer.json_line(&Event::List(ListJson::new(&before, &skills)))?,
        false => super::print(&last, &skills, args.tag.as_deref(), global, printer)?,
    }
    printer.flush()?;
    printer.note("watching for changes; Ctrl-C ends it");
    let followed = runtime.block_on(async {
        while !printer.is_closed() {
            let (waiting, since) = (live_library.clone(), last.clone());
            let next = tokio::task::spawn_blocking(move || waiting.wait(&since, TICK));
            let next = tokio::select! {
                () = &mut stop => break,
                next = next => next?,
            };
            if Arc::ptr_eq(&last, &next) {
                continue;
            }
            last = next;
            let after = with_tag(&last, args.tag.as_deref());
            for change in library_changes(&before, &after) {
                print_change(&change, printer)?;
            }
            printer.flush()?;
            before = after;
        }
        Ok(ExitStatus::Success)
    });
    runtime.shutdown_background();
    followed
}

/// Returns the skills with a tag; all if none is given.
fn with_tag(library: &Arc<Library>, tag: Option<&str>) -> Arc<Library> {
    match tag {
        Some(tag) => Arc::new(library.filter_skills(|it| it.manifest.has_tag(tag))),
        None => library.clone(),
    }
}

/// A line of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    List(ListJson<'a>),
    Added { address: &'a str, skill: SkillJson<'a> },
    Removed { address: &'a str, path: Cow<'a, str> },
    Changed { address: &'a str, skill: SkillJson<'a>, files: &'a [&'a str] },
    Found { finding: FindingJson<'a> },
    Cleared { finding: FindingJson<'a> },
}

impl<'a> Event<'a> {
    fn new(change: &'a LibraryChange<'a>) -> Option<Self> {
        Some(match change {
            LibraryChange::Added { address, skill } => {
                Self::Added { address, skill: skill_json(skill, address.clone()) }
            }
            LibraryChange::Removed { address, skill } => {
                Self::Removed { address, path: skill.origin.path.to_string_lossy() }
            }
            LibraryChange::Changed { address, skill, files } => {
                Self::Changed { address, skill: skill_json(skill, address.clone()), files }
            }
            LibraryChange::Found(finding) => Self::Found { finding: finding_json(finding) },
            LibraryChange::Cleared(finding) => Self::Cleared { finding: finding_json(finding) },
            _ => return None,
        })
    }
}

fn print_change(change: &LibraryChange<'_>, printer: &mut Printer) -> Result<()> {
    if printer.json {
        return Event::new(change).map_or(Ok(()), |it| printer.json_line(&it));
    }
    let (sign, style, name, rest) = match change {
        LibraryChange::Added { address, skill } => {
            ("+", GREEN, address, &*skill.manifest.description)
        }
        LibraryChange::Removed { address, .. } => ("-", RED, address, ""),
        LibraryChange::Changed { address, files, .. } => ("~", YELLOW, address, &*files.join(", ")),
        LibraryChange::Found(it) | LibraryChange::Cleared(it) if is_quiet(it, printer) => {
            return Ok(());
        }
        LibraryChange::Found(it) if it.severity == Severity::Error => {
            return print_finding("!", RED, it, printer);
        }
        LibraryChange::Found(it) => return print_finding("!", YELLOW, it, printer),
        LibraryChange::Cleared(it) => return print_finding("✓", GREEN, it, printer),
        _ => return Ok(()),
    };
    let (name, rest) = (safe::line(name), safe::line(rest));
    let room = printer.width.map(|it| it.saturating_sub(name.width() + 4).max(10));
    let rest = room.map_or_else(|| rest.to_string(), |it| safe::cut(&rest, it));
    let (sign, name) = (paint(sign, style, printer.colored), printer.name(&name));
    match rest.is_empty() {
        true => printer.line(format_args!("{sign} {name}")),
        false => printer.line(format_args!("{sign} {name}  {}", printer.dim(&rest))),
    }
}

/// Prints a whole finding, wrapped.
fn print_finding(sign: &str, style: Style, finding: &Finding, printer: &mut Printer) -> Result<()> {
    let label = format!("{}[{}]", finding.severity, finding.rule.code);
    let text = format!("{sign} {label}  {}", safe::line(&finding_text(finding)));
    let text =
        printer.width.map_or_else(|| text.clone(), |it| wrap_message(&text, it, "  ").join("\n"));
    let message = text.strip_prefix(&format!("{sign} {label}")).unwrap_or_default();
    let (sign, label) = (paint(sign, style, printer.colored), printer.name(&label));
    printer.line(format_args!("{sign} {label}{}", printer.dim(message)))
}

/// Returns whether a finding is printed only with `-v`.
fn is_quiet(finding: &Finding, printer: &Printer) -> bool {
    finding.severity == Severity::Info && !printer.verbose
}
