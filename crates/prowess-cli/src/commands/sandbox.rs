use anyhow::Result;
use prowess_sandbox::{FeatureCheck, Launcher, Sandbox, SandboxLevel};

use crate::{ExitStatus, markdown::wrap, printer::Printer};

/// Show which sandbox features this machine supports
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, launcher: &Launcher, printer: &mut Printer) -> Result<ExitStatus> {
    let report = Sandbox::new(launcher.clone(), SandboxLevel::Landlock).probe();
    let status = if report.level >= SandboxLevel::Landlock {
        ExitStatus::Success
    } else {
        ExitStatus::Failure
    };
    if printer.json {
        printer.document(&report)?;
        return Ok(status);
    }
    printer.line(format_args!("level: {}", printer.name(report.level.as_str())))?;
    let widest = report.checks.iter().map(|it| it.name.len()).max().unwrap_or(0);
    for FeatureCheck { name, supported, detail, .. } in &report.checks {
        let supported = match supported {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        let room = printer.width.map_or(usize::MAX, |it| it.saturating_sub(widest + 7).max(20));
        let lines = wrap(detail, room, "");
        let lines: Vec<String> = lines.iter().map(|it| printer.dim(it)).collect();
        let detail = lines.join(&format!("\n{}", " ".repeat(widest + 7)));
        printer.line(format_args!("{name:widest$}  {supported:3}  {detail}"))?;
    }
    printer.flush()?;
    for remedy in report.checks.iter().filter_map(|it| it.remedy.as_deref()) {
        printer.hint(remedy);
    }
    Ok(status)
}
