//! Removes installed skills, from all clients or from some.

use anyhow::Result;
use prowess::{Client, client};
use prowess_packages::{InstallAction, LocalEdits};
use serde_json::json;

use super::{Change, PackageSession, Place, note_report, steps_json};
use crate::{
    ExitStatus, arguments::Global, cli_error::CliError, commands::remove, context::quote_entries,
    printer::Printer, safe,
};

/// Removes a skill that was installed from a package; `None` if it was not.
pub(crate) fn remove(
    args: &remove::Args,
    global: &Global,
    printer: &mut Printer,
) -> Result<Option<ExitStatus>> {
    let is_meant = args.global || args.force || !args.client.is_empty();
    // Directories on the command line are stores.
    if (!global.dir.is_empty() || !global.preset.is_empty()) && !is_meant {
        return Ok(None);
    }
    let is_in = |is_global: bool| -> Result<bool> {
        let place = Place::find(is_global, global)?;
        Ok(place.lock.exists() && place.read_lock()?.get(&args.name).is_some())
    };
    let is_global = match args.global {
        true => true,
        false if is_in(false)? => false,
        // It is found by its name wherever it is, as a skill that was not installed.
        false if is_in(true).unwrap_or(false) => true,
        false if is_meant => false,
        false => return Ok(None),
    };
    super::check_clients(&args.client)?;
    let session = PackageSession::open(is_global, true, global, printer)?;
    let mut change = Change::begin(&session, printer)?;
    if args.force {
        change.edits = LocalEdits::SetAside;
    }
    let Some(locked) = change.lock.get(&args.name).cloned() else {
        return Err(super::no_locked(&change.lock, &args.name, &session).into());
    };
    let kept = match args.client.is_empty() {
        true => Vec::new(),
        false => other_clients(args, &change)?,
    };
    match (kept.is_empty(), change.manifest.get(&args.name).cloned()) {
        (false, Some(mut entry)) => {
            entry.clients = Some(kept.iter().map(|it| it.name.to_owned()).collect());
            change.set_entries(std::slice::from_ref(&entry))?;
            let mut locked = locked.clone();
            locked.clients = entry.clients.clone();
            locked.targets =
                change.directories(&entry)?.iter().map(|it| it.target(&args.name)).collect();
            change.insert_all(vec![locked])?;
        }
        _ => change.remove(&args.name)?,
    }
    let planned = change.plan()?;
    let is_gone = change.wanted(&args.name).is_none();
    let title = match &args.client[..] {
        [] => format!("prowess remove {}", args.name),
        clients => format!("prowess remove {} --client {}", args.name, clients.join(" --client ")),
    };
    let report = change.apply(planned, &title, printer)?;
    if printer.json {
        printer.document(&json!({
            "name": args.name,
            "source": locked.source.to_string(),
            "changes": steps_json(&report.steps),
        }))?;
    } else {
        let is_removed =
            |it: &InstallAction| matches!(it, InstallAction::Remove | InstallAction::SetAside);
        for step in report.steps.iter().filter(|it| it.skill == args.name && is_removed(&it.action))
        {
            printer.line(safe::line(&step.path))?;
        }
        printer.flush()?;
    }
    note_report(&report, printer);
    let name = &args.name;
    printer.note(&match is_gone {
        true => format!("`{name}` is removed; `prowess undo` restores it"),
        false => {
            let labels: Vec<&str> = kept.iter().map(|it| it.label).collect();
            format!(
                "`{name}` stays for {}; `prowess undo` takes this back",
                quote_entries(&labels).replace('`', "")
            )
        }
    });
    Ok(Some(ExitStatus::Success))
}

/// Returns the clients that a skill stays installed for.
fn other_clients(args: &remove::Args, change: &Change<'_>) -> Result<Vec<&'static Client>> {
    let name = &args.name;
    let Some(entry) = change.manifest.get(name) else { return Ok(Vec::new()) };
    let mut clients: Vec<&'static Client> = Vec::new();
    match change.manifest.clients_of(entry) {
        Some(names) => clients.extend(names.iter().filter_map(|it| client(it))),
        None => {
            for directory in change.directories(entry)? {
                for client in directory.clients {
                    if !clients.iter().any(|it| it.name == client.name) {
                        clients.push(client);
                    }
                }
            }
        }
    }
    if let Some(other) = args.client.iter().find(|it| clients.iter().all(|one| one.name != **it)) {
        let names: Vec<&str> = clients.iter().map(|it| it.name).collect();
        let fault = CliError::invalid_input(format!("`{name}` is not installed for `{other}`"));
        return Err(match names.is_empty() {
            true => fault.hint("leave `--client` out to remove it"),
            false => fault.hint(format!("it is installed for {}", quote_entries(&names))),
        }
        .into());
    }
    clients.retain(|it| args.client.iter().all(|other| other != it.name));
    Ok(clients)
}
