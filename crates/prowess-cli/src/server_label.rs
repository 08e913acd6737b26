//! Finds a server of the settings by its label.

use prowess::nearest;
use prowess_cli::settings::{Config, IgnoredSetting};
use prowess_mcp::config::ServerSetting;

use crate::{cli_error::CliError, host};

/// The server of a label.
pub(crate) fn server_of_label<'c>(
    config: &'c Config,
    label: &str,
) -> Result<&'c ServerSetting, CliError> {
    let servers = &config.servers.value.0;
    let found = servers.iter().find(|it| it.description.name == label);
    found.ok_or_else(|| {
        if let Some(ignored) = config.ignored.iter().find(|it: &&IgnoredSetting| {
            it.key == "servers" && it.entries.iter().any(|entry| entry == label)
        }) {
            let IgnoredSetting { origin, reason, .. } = ignored;
            let fault = CliError::invalid_input(format!(
                "the server `{label}` ({origin}) is ignored: {reason}"
            ));
            return match host::user_places().user_file() {
                Some(file) => {
                    let file = file.display();
                    fault.hint(format!("move `[servers.{label}]` to your own file (`{file}`)"))
                }
                None => fault,
            };
        }
        let fault = CliError::invalid_input(format!("there is no server `{label}`"));
        match nearest(label, servers.iter().map(|it| &*it.description.name)) {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.hint("`prowess servers` lists the configured servers"),
        }
    })
}
