//! The help of the program itself: its commands, grouped by purpose.

use std::fmt::Write as _;

use clap::{Command, builder::StyledStr};

use crate::{arguments::Arguments, markdown::wrap};

/// The groups of commands by purpose. A new command is one more word here.
const GROUPS: &[(&str, &[&str])] = &[
    ("Find and read skills", &["find", "list", "show", "read", "catalog"]),
    ("Check and improve them", &["check", "audit", "rule", "doctor", "lab"]),
    ("Make and change them", &["new", "create", "enable", "disable", "remove", "undo", "migrate"]),
    (
        "Install skills",
        &[
            "add", "search", "sync", "outdated", "update", "verify", "use", "import", "export",
            "publish", "cache",
        ],
    ),
    ("Run skills and tools", &["run", "prepare", "trust", "approvals", "tool", "tools", "sandbox"]),
    ("Ask a model", &["ask", "chat", "sessions", "prompt", "trace"]),
    ("Work with other programs", &["mcp", "servers"]),
    ("About this program", &["init", "config", "completions", "man", "help"]),
];

/// The widest line, as in the help of commands.
const WIDEST: usize = 100;

/// Renders the help; the long one describes flags in full.
pub(crate) fn render(is_long: bool, width: Option<usize>) -> StyledStr {
    let mut command = Arguments::command_with_examples();
    command.build();
    let commands = groups(&command, width.unwrap_or(WIDEST).min(WIDEST));
    let template = format!(
        "{{about-with-newline}}\nWithout a command, `prowess` shows your skills and which agents load them.\n\n{{usage-heading}} {{usage}}\n\n{commands}{{all-args}}"
    );
    // The commands are printed in their groups.
    let mut command = command
        .mut_subcommands(|it| it.hide(true))
        .mut_args(|it| it.hide_short_help(false))
        .override_usage("prowess [OPTIONS] [COMMAND]")
        .help_template(template);
    if is_long { command.render_long_help() } else { command.render_help() }
}

/// Renders the groups, with one line per command if there is room.
fn groups(command: &Command, width: usize) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let room = GROUPS.iter().flat_map(|it| it.1).map(|it| it.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (what, names) in GROUPS {
        let names: Vec<&&str> =
            names.iter().filter(|it: &&&str| command.find_subcommand(it).is_some()).collect();
        if names.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{header}{what}:{header:#}");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let lines = wrap(&about, width.saturating_sub(room + 4), "");
            let indent = format!("\n{}", " ".repeat(room + 4));
            let _ = writeln!(text, "  {literal}{name:room$}{literal:#}  {}", lines.join(&indent));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features;

    #[test]
    fn every_command_stands_in_one_group() {
        let mut command = Arguments::command_with_examples();
        command.build();
        let mut there: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|it| it.1).copied().collect();
        grouped.retain(|it| features::missing_command(it).is_none());
        there.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, there);
    }
}
