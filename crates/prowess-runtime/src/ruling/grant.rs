//! One of the tools that a skill lists, such as `Read` or `Bash(git add:*)`.

use crate::{glob::fits, tool::ListedAs};

/// A tool that a skill lists, and its permitted use.
#[derive(Debug)]
pub(super) struct Grant<'a> {
    tool: &'a str,
    pub(super) argument: Option<&'a str>,
}

/// Other clients' names for our tools.
const ALIASES: &[(&str, &[&str])] = &[
    ("execute_command", &["bash", "shell", "exec", "terminal", "run_command", "execute"]),
    ("read_file", &["read", "view", "fs_read"]),
    ("file_operations", &["write", "edit", "multiedit", "notebookedit", "ls", "glob", "fs_write"]),
    ("http_request", &["webfetch", "web_fetch", "fetch"]),
    ("use_skill", &["skill"]),
    ("execute_sql", &["sql"]),
];

impl<'a> Grant<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let text = text.trim();
        match text.strip_suffix(')').and_then(|it| it.split_once('(')) {
            Some((tool, argument)) => {
                let argument = argument.trim();
                let any = matches!(argument, "" | "*" | ":*");
                Self { tool: tool.trim(), argument: (!any).then_some(argument) }
            }
            None => Self { tool: text, argument: None },
        }
    }

    /// Whether it covers a use of this tool that is listed like that.
    pub(super) fn covers(&self, tool: &str, listed_as: ListedAs<'_>) -> bool {
        self.is_named(tool)
            || self.is_alias_of(tool)
            || match listed_as {
                // A permission to read includes reading with the tool that does both.
                ListedAs::FileToRead(_) => {
                    tool == "file_operations" && self.is_alias_of("read_file")
                }
                ListedAs::Skill(_) => self.is_named("skill"),
                ListedAs::ServerTool => fits(self.tool, tool) || belongs_to(tool, self.tool),
                ListedAs::Nothing
                | ListedAs::Tool
                | ListedAs::Command
                | ListedAs::FileToWrite(_)
                | ListedAs::Url(_)
                | ListedAs::Server => false,
            }
    }

    fn is_named(&self, name: &str) -> bool {
        self.tool.eq_ignore_ascii_case(name)
    }

    /// Whether it is another client's name for a tool.
    fn is_alias_of(&self, tool: &str) -> bool {
        let names = ALIASES.iter().filter(|it| it.0 == tool).flat_map(|it| it.1);
        names.into_iter().any(|it| self.is_named(it))
    }

    /// Whether it covers a tool of the server that would be started as `mcp__<server>`.
    pub(super) fn covers_server(&self, server: &str) -> bool {
        belongs_to(self.tool, server)
    }
}

/// Whether a tool belongs to a server: `mcp__files__read` to `mcp__files`.
fn belongs_to(tool: &str, server: &str) -> bool {
    tool.strip_prefix(server).is_some_and(|it| it.starts_with("__"))
}
