//! One of the tools that a skill lists, such as `Read` or `Bash(git add:*)`.

use crate::{glob::fits, tool::Action};

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
    pub(super) fn read(text: &'a str) -> Self {
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

    /// Whether it covers this use of this tool.
    pub(super) fn names(&self, tool: &str, action: &Action) -> bool {
        let is = |name: &str| self.tool.eq_ignore_ascii_case(name);
        let is_alias = |own: &str| {
            ALIASES.iter().any(|(tool, names)| *tool == own && names.iter().any(|it| is(it)))
        };
        is(tool)
            || is_alias(tool)
            // A permission to read includes reading with the tool that does both.
            || (tool == "file_operations" && matches!(action, Action::Read(_)) && is_alias("read_file"))
            || (matches!(action, Action::Execute(_)) && is("skill"))
            || (matches!(action, Action::Serve { .. }) && (fits(self.tool, tool) || begins(tool, self.tool)))
    }

    /// Whether it covers a tool of the server that would be started as `mcp__<server>`.
    pub(super) fn needs(&self, server: &str) -> bool {
        begins(self.tool, server)
    }
}

/// Whether a tool belongs to a server: `mcp__files__read` to `mcp__files`.
fn begins(tool: &str, server: &str) -> bool {
    tool.strip_prefix(server).is_some_and(|it| it.starts_with("__"))
}
