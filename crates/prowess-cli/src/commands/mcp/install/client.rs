//! The known clients, and the place of their MCP servers in their settings.

use std::path::{Path, PathBuf};

use prowess::{McpSettings, ServerShape, Spot, Surroundings, mcp_clients, name_hint};
use serde_json::{Map, Value as Json, json};

use crate::cli_error::CliError;

/// A client that can start MCP servers by itself, with its settings for them.
#[derive(Debug, Clone, Copy)]
pub(super) struct McpClient {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) settings: &'static McpSettings,
}

impl McpClient {
    /// All of them, by name.
    pub(super) fn all() -> Vec<Self> {
        let clients = mcp_clients().into_iter();
        clients.map(|(it, settings)| Self { name: it.name, label: it.label, settings }).collect()
    }

    /// Returns the client of a name; the error has the nearest name, and the list.
    pub(super) fn find(name: &str) -> Result<Self, CliError> {
        let all = Self::all();
        all.iter().find(|it| it.name == name).copied().ok_or_else(|| {
            let fault = CliError::new(format!("there is no client `{name}`"));
            fault.hint(name_hint(name, all.iter().map(|it| it.name)))
        })
    }

    /// Returns its file for all projects of a user.
    pub(super) fn user_file(&self, mut surroundings: Surroundings) -> Result<PathBuf, CliError> {
        let mut paths = self.settings.user;
        if cfg!(target_os = "macos") {
            paths = self.settings.mac.unwrap_or(paths);
            // These clients do not read it there.
            surroundings.variables.remove("XDG_CONFIG_HOME");
        }
        if paths.is_empty() {
            let label = self.label;
            let fault = CliError::new(format!(
                "it is not known where {label} stores its servers on this system"
            ));
            return Err(match self.settings.project {
                [] => fault,
                _ => fault.hint("use `--project` to register it for a project"),
            });
        }
        let files =
            paths.iter().flat_map(|path| surroundings.directories(&Spot::new(path))).collect();
        existing_or_first(files).ok_or_else(|| CliError::new("there is no home directory"))
    }

    /// Returns its file for one project.
    pub(super) fn project_file(&self, project: &Path) -> Result<PathBuf, CliError> {
        existing_or_first(self.settings.project.iter().map(|it| project.join(it)).collect())
            .ok_or_else(|| {
                let message = format!("{} has no servers per project", self.label);
                CliError::new(message).hint("use `--user` to register it for all projects")
            })
    }

    /// Returns the path of keys to its servers, given a test whether a file has a path.
    pub(super) fn servers(&self, has: impl Fn(&[&str]) -> bool) -> &'static [&'static str] {
        self.settings.newer.filter(|it| has(it)).unwrap_or(self.settings.servers)
    }

    /// Returns the entry of a server for this client.
    pub(super) fn entry(
        &self,
        name: &str,
        program: &str,
        arguments: &[String],
    ) -> Map<String, Json> {
        let kind = |it: &str| ("type", Json::from(it));
        let command = ("command", Json::from(program));
        let args = ("args", Json::from(arguments));
        let fields = match self.settings.shape {
            ServerShape::Plain => vec![command, args],
            ServerShape::Typed => vec![kind("stdio"), command, args],
            ServerShape::Tools => vec![kind("local"), command, args, ("tools", json!(["*"]))],
            ServerShape::Joined => {
                let all: Json =
                    [program].into_iter().chain(arguments.iter().map(|it| &**it)).collect();
                vec![kind("local"), ("command", all)]
            }
            ServerShape::Named => vec![
                ("enabled", true.into()),
                kind("stdio"),
                ("name", name.into()),
                ("cmd", program.into()),
                args,
            ],
        };
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The first file that exists, else the first.
fn existing_or_first(files: Vec<PathBuf>) -> Option<PathBuf> {
    let there = files.iter().find(|it| it.symlink_metadata().is_ok()).cloned();
    there.or_else(|| files.into_iter().next())
}
