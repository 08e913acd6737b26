//! The known clients, and the place of their MCP servers in their settings.

use std::{
    env,
    path::{Path, PathBuf},
};

use prowess::nearest;
use serde_json::{Map, Value as Json, json};

use crate::cli_error::CliError;

/// An MCP client that starts servers by itself.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    linux: Option<Files>,
    mac: Option<Files>,
    /// Its files in a project: the first that exists, otherwise the first.
    project: &'static [&'static str],
    pub(super) format: Format,
    /// The path of keys to its servers, which are listed by name.
    servers: &'static [&'static str],
    /// The path of keys in a newer form of the file, used if a file has it already.
    newer: Option<&'static [&'static str]>,
    shape: Shape,
    /// The URL of its documentation.
    pub(super) source: &'static str,
    /// The date on which that was read.
    pub(super) checked: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON with comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// Files of a user: the first that exists, otherwise the first.
#[derive(Debug, Clone, Copy)]
struct Files {
    base: Base,
    names: &'static [&'static str],
}

/// The base directory of a user's files.
#[derive(Debug, Clone, Copy)]
enum Base {
    Home,
    /// `XDG_CONFIG_HOME`, otherwise `.config` in the home directory.
    Config,
    /// A variable, otherwise a folder of the home directory.
    Variable(&'static str, &'static str),
}

/// The fields of a server.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// `command` and `args`.
    Plain,
    /// `command` and `args`, with `"type": "stdio"`.
    Typed,
    /// `command` and `args`, with `"type": "local"` and its tools: all of them.
    Tools,
    /// `"type": "local"`, and one list of the program and its arguments.
    Joined,
    /// `cmd` and `args`, with the name, the type, and that it is enabled.
    Named,
}

const JSON: &[&str] = &["mcpServers"];
const CHECKED: &str = "2026-11-15";

/// The fields that most clients have in common.
const COMMON: Client = Client {
    name: "",
    label: "",
    linux: None,
    mac: None,
    project: &[],
    format: Format::Json,
    servers: JSON,
    newer: None,
    shape: Shape::Plain,
    source: "",
    checked: CHECKED,
};

/// All clients. A new one is one entry here and one line in `docs/mcp-clients.md`.
pub(super) const CLIENTS: &[Client] = &[
    Client {
        name: "amp",
        label: "Amp",
        project: &[".amp/settings.json", ".amp/settings.jsonc"],
        servers: &["amp.mcpServers"],
        source: "https://ampcode.com/manual#core-settings",
        ..at_home(&[".config/amp/settings.json", ".config/amp/settings.jsonc"])
    },
    Client {
        name: "claude-code",
        label: "Claude Code",
        project: &[".mcp.json"],
        source: "https://code.claude.com/docs/en/mcp",
        ..at_home(&[".claude.json"])
    },
    Client {
        name: "claude-desktop",
        label: "Claude Desktop",
        mac: Some(Files {
            base: Base::Home,
            names: &["Library/Application Support/Claude/claude_desktop_config.json"],
        }),
        source: "https://modelcontextprotocol.io/quickstart/user",
        ..COMMON
    },
    Client {
        name: "cline",
        label: "Cline",
        source: "https://docs.cline.bot/getting-started/config",
        ..at_home(&[".cline/data/settings/cline_mcp_settings.json"])
    },
    Client {
        name: "codex",
        label: "Codex",
        project: &[".codex/config.toml"],
        format: Format::Toml,
        servers: &["mcp_servers"],
        source: "https://developers.openai.com/codex/mcp",
        ..at(Base::Variable("CODEX_HOME", ".codex"), &["config.toml"])
    },
    Client {
        name: "copilot",
        label: "GitHub Copilot CLI",
        project: &[".github/mcp.json"],
        shape: Shape::Tools,
        source: "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
        ..at(Base::Variable("COPILOT_HOME", ".copilot"), &["mcp-config.json"])
    },
    Client {
        name: "cursor",
        label: "Cursor",
        project: &[".cursor/mcp.json"],
        source: "https://cursor.com/docs/mcp",
        ..at_home(&[".cursor/mcp.json"])
    },
    Client {
        name: "droid",
        label: "Factory Droid",
        project: &[".factory/mcp.json"],
        shape: Shape::Typed,
        source: "https://docs.factory.ai/cli/configuration/mcp",
        ..at_home(&[".factory/mcp.json"])
    },
    Client {
        name: "gemini",
        label: "Gemini CLI",
        project: &[".gemini/settings.json"],
        source: "https://geminicli.com/docs/tools/mcp-server",
        ..at_home(&[".gemini/settings.json"])
    },
    Client {
        name: "goose",
        label: "goose",
        format: Format::Yaml,
        servers: &["extensions"],
        shape: Shape::Named,
        source: "https://block.github.io/goose/docs/guides/config-files",
        ..at(Base::Config, &["goose/config.yaml"])
    },
    Client {
        name: "junie",
        label: "Junie",
        project: &[".junie/mcp/mcp.json"],
        source: "https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html",
        ..at_home(&[".junie/mcp/mcp.json"])
    },
    Client {
        name: "kilo",
        label: "Kilo Code",
        project: &[".kilo/kilo.jsonc", ".kilo/kilo.json", "kilo.jsonc", "kilo.json"],
        servers: &["mcp"],
        shape: Shape::Joined,
        source: "https://kilo.ai/docs/automate/mcp/using-in-kilo-code",
        ..at(Base::Config, &["kilo/kilo.jsonc", "kilo/kilo.json"])
    },
    Client {
        name: "kiro",
        label: "Kiro",
        project: &[".kiro/settings/mcp.json"],
        source: "https://kiro.dev/docs/mcp/configuration",
        ..at_home(&[".kiro/settings/mcp.json"])
    },
    Client {
        name: "lmstudio",
        label: "LM Studio",
        source: "https://lmstudio.ai/docs/app/mcp",
        ..at_home(&[".lmstudio/mcp.json", ".cache/lm-studio/mcp.json"])
    },
    Client {
        name: "opencode",
        label: "OpenCode",
        project: &["opencode.json", "opencode.jsonc"],
        servers: &["mcp"],
        newer: Some(&["mcp", "servers"]),
        shape: Shape::Joined,
        source: "https://opencode.ai/docs/mcp-servers",
        ..at(Base::Config, &["opencode/opencode.json", "opencode/opencode.jsonc"])
    },
    Client {
        name: "qwen",
        label: "Qwen Code",
        project: &[".qwen/settings.json"],
        source: "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/",
        ..at_home(&[".qwen/settings.json"])
    },
    Client {
        name: "roo",
        label: "Roo Code",
        project: &[".roo/mcp.json"],
        source: "https://docs.roocode.com/features/mcp/using-mcp-in-roo",
        ..COMMON
    },
    Client {
        name: "vscode",
        label: "VS Code",
        linux: Some(Files { base: Base::Config, names: &["Code/User/mcp.json"] }),
        mac: Some(Files {
            base: Base::Home,
            names: &["Library/Application Support/Code/User/mcp.json"],
        }),
        project: &[".vscode/mcp.json"],
        servers: &["servers"],
        shape: Shape::Typed,
        source: "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        ..COMMON
    },
    Client {
        name: "warp",
        label: "Warp",
        project: &[".warp/.mcp.json"],
        source: "https://docs.warp.dev/agents/capabilities/mcp",
        ..at_home(&[".warp/.mcp.json"])
    },
    Client {
        name: "windsurf",
        label: "Windsurf",
        source: "https://docs.windsurf.com/windsurf/cascade/mcp",
        ..at_home(&[".codeium/windsurf/mcp_config.json"])
    },
    Client {
        name: "zed",
        label: "Zed",
        servers: &["context_servers"],
        source: "https://zed.dev/docs/ai/mcp",
        ..at(Base::Config, &["zed/settings.json"])
    },
];

/// Creates a client whose files are in the same place on every system.
const fn at(base: Base, names: &'static [&'static str]) -> Client {
    let files = Some(Files { base, names });
    Client { linux: files, mac: files, ..COMMON }
}

const fn at_home(names: &'static [&'static str]) -> Client {
    at(Base::Home, names)
}

impl Client {
    /// Returns the client of a name; the error has the nearest name, and the list.
    pub(super) fn named(name: &str) -> Result<&'static Self, CliError> {
        let names = || CLIENTS.iter().map(|it| it.name);
        CLIENTS.iter().find(|it| it.name == name).ok_or_else(|| {
            let fault = CliError::unable(format!("there is no client `{name}`"));
            fault.hint(match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
            })
        })
    }

    /// Returns its file for all projects of a user.
    pub(super) fn user_file(&self) -> Result<PathBuf, CliError> {
        let files = if cfg!(target_os = "macos") { self.mac } else { self.linux };
        let label = self.label;
        let Some(Files { base, names }) = files else {
            let fault = CliError::unable(format!(
                "it is not known where {label} stores its servers on this system"
            ));
            return Err(match self.project {
                [] => fault,
                _ => fault.hint("use `--project` to register it for a project"),
            });
        };
        let home = || {
            let home = env::home_dir().filter(|it| it.is_absolute());
            home.ok_or_else(|| CliError::unable("there is no home directory"))
        };
        let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let base = match base {
            Base::Home => home()?,
            // Only on macOS do these clients use it.
            Base::Config if cfg!(target_os = "macos") => home()?.join(".config"),
            Base::Config => {
                set("XDG_CONFIG_HOME").map_or_else(|| Ok(home()?.join(".config")), Ok)?
            }
            Base::Variable(name, or) => set(name).map_or_else(|| Ok(home()?.join(or)), Ok)?,
        };
        Ok(first(&base, names))
    }

    /// Returns its file for one project.
    pub(super) fn project_file(&self, project: &Path) -> Result<PathBuf, CliError> {
        match self.project {
            [] => {
                let message = format!("{} has no servers per project", self.label);
                Err(CliError::unable(message).hint("use `--user` to register it for all projects"))
            }
            names => Ok(first(project, names)),
        }
    }

    /// Returns the path of keys to its servers, given a test whether a file has a path.
    pub(super) fn servers(&self, has: impl Fn(&[&str]) -> bool) -> &'static [&'static str] {
        self.newer.filter(|it| has(it)).unwrap_or(self.servers)
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
        let fields = match self.shape {
            Shape::Plain => vec![command, args],
            Shape::Typed => vec![kind("stdio"), command, args],
            Shape::Tools => vec![kind("local"), command, args, ("tools", json!(["*"]))],
            Shape::Joined => {
                let all: Json =
                    [program].into_iter().chain(arguments.iter().map(|it| &**it)).collect();
                vec![kind("local"), ("command", all)]
            }
            Shape::Named => vec![
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

/// Returns the first file that exists, otherwise the first.
fn first(base: &Path, names: &[&str]) -> PathBuf {
    let mut paths = names.iter().map(|it| base.join(it));
    let there = paths.clone().find(|it| it.symlink_metadata().is_ok());
    there.or_else(|| paths.next()).unwrap_or_default()
}
