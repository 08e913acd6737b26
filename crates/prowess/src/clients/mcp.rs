//! The settings in which a client registers MCP servers.

use super::citation::Citation;

/// The settings of a client for MCP servers: the files, and how a server is written in them.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct McpSettings {
    /// The files for all projects of a user: the first that exists, else the first. Written like the
    /// path of a [`Spot`](crate::Spot). None if they are unknown.
    pub user: &'static [&'static str],
    /// The same on macOS, if they differ there.
    pub mac: Option<&'static [&'static str]>,
    /// The files for one project: the first that exists, else the first. None if it has none.
    pub project: &'static [&'static str],
    /// The format of the files.
    pub format: SettingsFormat,
    /// The keys that lead to the servers, which are listed by name.
    pub servers: &'static [&'static str],
    /// The keys that lead to them in a newer form, which is used in a file that already has it.
    pub newer: Option<&'static [&'static str]>,
    /// The fields of a server.
    pub shape: ServerShape,
    /// The source of all this.
    pub source: &'static Citation,
}

/// The format of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsFormat {
    /// JSON, where comments and trailing commas are allowed.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// The fields of an MCP server in the settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerShape {
    /// `command` and `args`.
    Plain,
    /// `command` and `args`, with `"type": "stdio"`.
    Typed,
    /// The same, with `"type": "local"` and the list of the enabled tools: all of them.
    Tools,
    /// `"type": "local"`, and one list of the program and its arguments.
    Joined,
    /// `cmd` and `args`, with the name, the type, and that it is enabled.
    Named,
}
