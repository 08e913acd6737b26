//! `prowess servers login` and `prowess servers logout`.

use std::{
    env, io,
    io::IsTerminal as _,
    process::{Command, Stdio},
    sync::mpsc::{Sender, channel},
    thread,
};

use anyhow::Result;
use prowess_mcp::client::{LoginPrompt, LoginRequest};
use prowess_runtime::Outcome;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::ServersContext;
use crate::{
    ExitStatus, completion,
    host::PermissionArgs,
    printer::{self, Printer},
    safe,
    server_label::server_of_label,
};

/// Log in to a server by OAuth, in a browser or with a code
///
/// The token is saved in a file that only you can read, and sent only to this server; `ask`, `chat` and `servers`
/// use it, and renew it when it expires.
#[derive(Debug, clap::Args)]
pub(super) struct Login {
    /// Label of the server
    #[arg(add = completion::servers())]
    label: String,
    /// Log in with a code entered on any device, if the server supports it
    #[arg(long)]
    device: bool,
    /// Request this additional scope; repeatable
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Let settings refer to this environment variable; repeatable
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Approve a server from a project's settings
    #[arg(long)]
    yes: bool,
}

/// Log out of a server, and revoke its token if the server supports that
#[derive(Debug, clap::Args)]
pub(super) struct Logout {
    /// Label of the server
    #[arg(add = completion::servers())]
    label: String,
    /// Let settings refer to this environment variable; repeatable
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
}

impl Login {
    pub(super) fn running(&self) -> PermissionArgs {
        let mut running = PermissionArgs::default();
        (running.env, running.yes) = (self.env.clone(), self.yes);
        running
    }
}

impl Logout {
    pub(super) fn running(&self) -> PermissionArgs {
        let mut running = PermissionArgs::default();
        running.env = self.env.clone();
        running
    }
}

impl ServersContext {
    pub(super) async fn login(&self, args: &Login, printer: &mut Printer) -> Result<ExitStatus> {
        let set = server_of_label(&self.config, &args.label)?;
        let label = &set.description.name;
        // Standard input is left to other questions until something is to be pasted.
        let (start, lines) = read_pasted_lines();
        let request = LoginRequest {
            is_device: args.device,
            scopes: args.scope.clone(),
            pasted: Some(lines),
            prompt: &|it: LoginPrompt<'_>| {
                print_prompt(label, &it);
                if matches!(it, LoginPrompt::Browser { .. }) {
                    let _ = start.send(());
                }
            },
        };
        let state = match self.server_launcher.login(set, request).await {
            Ok(state) => state,
            Err(outcome) => return Ok(report_failure(&outcome, printer)),
        };
        if printer.json {
            printer.document(&json!({ "label": label, "login": state }))?;
        } else {
            let issuer = safe::line(&state.issuer).into_owned();
            printer.line(format_args!("logged in to {label} at {issuer}"))?;
        }
        Ok(ExitStatus::Success)
    }

    pub(super) async fn logout(&self, args: &Logout, printer: &mut Printer) -> Result<ExitStatus> {
        let set = server_of_label(&self.config, &args.label)?;
        let label = &set.description.name;
        let is_removed = match self.server_launcher.logout(set).await {
            Ok(is_removed) => is_removed,
            Err(outcome) => return Ok(report_failure(&outcome, printer)),
        };
        if printer.json {
            printer.document(&json!({ "label": label, "logged_out": is_removed }))?;
        } else if is_removed {
            printer.line(format_args!("logged out of {label}"))?;
        } else {
            printer.note(&format!("not logged in to `{label}`"));
        }
        Ok(ExitStatus::Success)
    }
}

fn report_failure(outcome: &Outcome, printer: &mut Printer) -> ExitStatus {
    printer.error_text(outcome.message.as_deref().unwrap_or_default());
    outcome.difference.iter().for_each(|it| printer.note(it));
    outcome.hint.iter().for_each(|it| printer.hint(it));
    ExitStatus::Error
}

/// Prints instructions. A URL is on a line of its own, so that it can be copied from a narrow
/// terminal.
fn print_prompt(label: &str, prompt: &LoginPrompt<'_>) {
    match prompt {
        LoginPrompt::Browser { url, issuer, is_elsewhere } => {
            let issuer = safe::line(issuer);
            let way = match open_browser(url) {
                true => "Your browser should open now; if it does not, open this URL",
                false => "Open this URL in a browser",
            };
            printer::write_stderr(&format!(
                "Logging in to `{label}` at {issuer}\n{way}:\n\n  {url}\n\n"
            ));
            if *is_elsewhere {
                printer::write_stderr(
                    "warning: this page is not on the host of the authorization server; log in there only if you know it\n",
                );
            }
            if io::stdin().is_terminal() {
                printer::write_stderr(
                    "If the browser is on another machine, paste the URL that it is redirected to here:\n",
                );
            }
        }
        LoginPrompt::Device { url, complete, code, issuer } => {
            let (issuer, code) = (safe::line(issuer), safe::line(code));
            let whole = complete.map(|it| format!(", or open one that has it:\n\n  {it}\n"));
            let whole = whole.unwrap_or_default();
            printer::write_stderr(&format!(
                "Logging in to `{label}` at {issuer}\nOpen this URL on any device:\n\n  {url}\n\nand type the code {code}{whole}\n"
            ));
        }
        LoginPrompt::Stranger => printer::write_stderr(
            "warning: ignored an answer that does not belong to this login; still waiting\n",
        ),
        LoginPrompt::MoreScopes { scopes } => {
            let scopes = safe::line(scopes);
            printer::write_stderr(&format!("`{label}` needs more permissions: {scopes}\n"));
        }
        _ => {}
    }
}

/// Opens a URL in the user's browser, if there is a display.
fn open_browser(url: &str) -> bool {
    let is_mac = cfg!(target_os = "macos");
    let has_screen =
        is_mac || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|it| env::var_os(it).is_some());
    if !has_screen || !io::stderr().is_terminal() {
        return false;
    }
    let mut opener = Command::new(if is_mac { "open" } else { "xdg-open" });
    let opener = opener.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.spawn().is_ok()
}

/// Reads lines from stdin, once the sender has sent something.
fn read_pasted_lines() -> (Sender<()>, UnboundedReceiver<String>) {
    let (start, started) = channel();
    let (send, lines) = unbounded_channel();
    // Without a thread nothing can be pasted. Nothing wakes one that waits for a line; it ends with
    // the program.
    let _ = thread::Builder::new().spawn(move || {
        if started.recv().is_ok() {
            let _ = io::stdin().lines().map_while(Result::ok).try_for_each(|it| send.send(it));
        }
    });
    (start, lines)
}
