use anyhow::{Context as _, Result};
use prowess_runtime::{
    ApprovalStore, AuditLog,
    approval::{ApprovalKind, RememberedApproval},
};
use serde_json::json;

use super::count;
use crate::{ExitStatus, cli_error::CliError, host, printer::Printer, safe};

/// List saved approvals, or revoke them
///
/// Lists what you answered with `always`, the skills that `--yes` approved until they change, and the project files
/// accepted with `prowess config --approve`. You are asked again about everything you revoke. `prowess trust
/// --list` lists trusted projects.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Revoke the approvals with these IDs, the first column of the list
    #[arg(long, value_name = "ID", num_args = 0..)]
    revoke: Option<Vec<String>>,
    /// Revoke every approval
    #[arg(long, requires = "revoke")]
    all: bool,
}

pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<ExitStatus> {
    let Some(state) = host::state() else {
        let fault = CliError::new("there is no home directory to save approvals in");
        return Err(fault.hint("set `HOME`, or `XDG_STATE_HOME` to an absolute path").into());
    };
    let (store, audit) = (ApprovalStore::at(&state), AuditLog::at(state));
    let status = match &args.revoke {
        None => list(&store.remembered(), printer)?,
        Some(ids) => revoke(&store, &audit, ids, args.all, printer)?,
    };
    match [store.take_warnings(), audit.take_warnings()].concat() {
        warnings if warnings.is_empty() => Ok(status),
        warnings => Err(CliError::new(warnings.join("; ")).into()),
    }
}

fn list(approvals: &[RememberedApproval], printer: &mut Printer) -> Result<ExitStatus> {
    if printer.json {
        printer.document(&json!({ "approvals": approvals }))?;
        return Ok(ExitStatus::Success);
    }
    for approval in approvals.iter().rev() {
        let RememberedApproval { id, when, .. } = approval;
        let what = safe::line(&describe(approval)).into_owned();
        printer.line(format_args!("{}  {when}  {what}", printer.name(id)))?;
    }
    printer.flush()?;
    match approvals.is_empty() {
        true => printer.note("there are no saved approvals"),
        false => printer
            .note("`prowess approvals --revoke ID` revokes one, `--revoke --all` all of them"),
    }
    Ok(ExitStatus::Success)
}

/// Describes an approval in one line.
fn describe(approval: &RememberedApproval) -> String {
    let RememberedApproval { kind, name, place, by, hosts, .. } = approval;
    let what = match kind {
        ApprovalKind::Skill => format!("run the skill {name} in {place}"),
        ApprovalKind::Server => format!("start the server {name} in {place}"),
        ApprovalKind::Call => format!("{name}: {place}"),
        ApprovalKind::Write => format!("write {place}"),
        ApprovalKind::Read => format!("read {place}"),
        ApprovalKind::Send => format!("send to {place}"),
        ApprovalKind::Settings => format!("accept the commands and hosts of {place}"),
        ApprovalKind::Network if hosts.is_empty() => {
            format!("let the skill {name} in {place} connect to hosts")
        }
        ApprovalKind::Network => {
            format!("let the skill {name} in {place} connect to {}", hosts.join(", "))
        }
        ApprovalKind::Environment => {
            format!("use the packages that were installed for {name}, {place}")
        }
    };
    // A person who typed `--yes` may not know that it is remembered.
    if by == "flag" { format!("{what} (by --yes)") } else { what }
}

fn revoke(
    store: &ApprovalStore,
    audit: &AuditLog,
    ids: &[String],
    all: bool,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    if ids.is_empty() && !all {
        let fault = CliError::new("no approval was given");
        return Err(fault
            .hint("`prowess approvals` lists them; `--revoke --all` revokes all")
            .into());
    }
    let known = store.remembered();
    if let Some(id) = ids.iter().find(|id| known.iter().all(|it| it.id != **id)) {
        let fault = CliError::invalid_input(format!("there is no approval `{id}`"));
        return Err(fault.hint("`prowess approvals` lists them").into());
    }
    let revoked = store.revoke(
        |it: &RememberedApproval| all || ids.contains(&it.id),
        "approvals --revoke",
        audit,
    );
    let revoked = revoked.context("the approvals cannot be changed")?;
    if printer.json {
        printer.document(&json!({ "revoked": revoked }))?;
        return Ok(ExitStatus::Success);
    }
    printer.note(&match revoked.len() {
        0 => "there are no saved approvals".to_owned(),
        many => format!("{} revoked; you will be asked again", count(many, "approval")),
    });
    Ok(ExitStatus::Success)
}
