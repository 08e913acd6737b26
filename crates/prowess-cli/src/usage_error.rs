//! Usage errors, in the same form as all other errors.

use std::{error::Error as _, path::Path};

use clap::{
    Command, CommandFactory as _, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use prowess::{did_you_mean, nearest};

use crate::{arguments::Arguments, cli_error::CliError, context::shell_quote, features};

/// Returns whether the command line has no command.
pub(crate) fn is_bare(words: &[String]) -> bool {
    typed_command(&Arguments::command(), words).get_name() == "prowess"
}

/// Turns a parse error into an error with a suggestion.
pub(crate) fn explain(error: &Error, words: &[String]) -> CliError {
    let mut root = Arguments::command();
    root.build();
    let command = typed_command(&root, words);
    let name = command.get_bin_name().unwrap_or("prowess");
    let argument = flag_name(&context_string(error, ContextKind::InvalidArg));
    let value = context_string(error, ContextKind::InvalidValue);
    let help = format!("see `{name} --help`");
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = context_string(error, ContextKind::InvalidSubcommand);
            if let Some(message) = features::missing_command(&typed) {
                return CliError::new(message).hint("install a build that has it");
            }
            if Path::new(&typed).is_dir() {
                let (fault, path) = (format!("unknown command `{typed}`"), shell_quote(&typed));
                let hint = format!(
                    "`prowess --dir {path}` shows the skills in it, `prowess list {path}` lists them"
                );
                return CliError::new(fault).hint(hint);
            }
            let commands = command.get_subcommands().map(Command::get_name);
            let fault = CliError::new(format!("unknown command `{typed}`"));
            with_suggestion(fault, nearest(&typed, commands), help)
        }
        ErrorKind::UnknownArgument => {
            let flags = command.get_arguments().filter_map(clap::Arg::get_long);
            let near = argument.strip_prefix("--").and_then(|it| nearest(it, flags));
            let near = near.map(|it| format!("--{it}"));
            let fault = CliError::new(format!("unexpected argument `{argument}`"));
            with_suggestion(fault, near.as_deref(), help)
        }
        ErrorKind::InvalidValue if value.is_empty() => with_values(
            CliError::new(format!("`{argument}` needs a value")),
            context_strings(error, ContextKind::ValidValue),
        ),
        ErrorKind::InvalidValue => {
            let values = context_strings(error, ContextKind::ValidValue);
            let near = nearest(&value, values.iter().map(String::as_str)).map(str::to_owned);
            let fault = CliError::new(format!("invalid value `{value}` for `{argument}`"));
            let fault = near.into_iter().fold(fault, |fault, it| fault.hint(did_you_mean(&it)));
            with_values(fault, values)
        }
        ErrorKind::ValueValidation => {
            let why = error.source().map(reason).unwrap_or_default();
            CliError::new(format!("invalid value `{value}` for `{argument}`: {why}")).hint(help)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = context_strings(error, ContextKind::InvalidArg);
            CliError::new(format!("`{name}` needs `{}`", missing.join("` and `"))).hint(help)
        }
        ErrorKind::ArgumentConflict => {
            let others = context_strings(error, ContextKind::PriorArg);
            let others: Vec<String> = others.iter().map(|it| flag_name(it)).collect();
            CliError::new(match others.contains(&argument) {
                true => format!("`{argument}` can be given only once"),
                _ if argument.is_empty() => {
                    format!("`{name}` takes `{}` or a command, not both", others.join("` and `"))
                }
                false => format!("`{argument}` cannot be used with `{}`", others.join("` and `")),
            })
            .hint(help)
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            CliError::new(first.trim_start_matches("error: ")).hint(help)
        }
    }
}

/// Returns the deepest subcommand that the words name.
fn typed_command<'c>(root: &'c Command, words: &[String]) -> &'c Command {
    let mut command = root;
    let mut words = words.iter().take_while(|it| *it != "--");
    while let Some(word) = words.next() {
        let inside = command.find_subcommand(word).filter(|it| it.get_name() != "help");
        command = inside.unwrap_or(command);
        let Some(flag) = word.strip_prefix("--") else { continue };
        let flag = command.get_arguments().find(|it| it.get_long() == Some(flag));
        if flag.is_some_and(|it| it.get_action().takes_values()) {
            // The value of a flag may look like a command.
            words.next();
        }
    }
    command
}

/// Returns the strings of an error's context.
fn context_strings(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns the first string of an error's context, or an empty one.
fn context_string(error: &Error, kind: ContextKind) -> String {
    context_strings(error, kind).into_iter().next().unwrap_or_default()
}

/// Returns a flag or argument without the placeholder of its value.
fn flag_name(shown: &str) -> String {
    let name = shown.split([' ', '=']).next().unwrap_or(shown);
    name.trim_matches(['<', '>', '[', ']', '.']).to_owned()
}

/// Returns the reason a value is invalid. The messages of the standard library describe how numbers
/// are parsed.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    match error.is::<std::num::ParseIntError>() || error.is::<std::num::ParseFloatError>() {
        true => "must be a number".to_owned(),
        false => error.to_string(),
    }
}

fn with_suggestion(fault: CliError, near: Option<&str>, help: String) -> CliError {
    fault.hint(near.map_or(help, did_you_mean))
}

/// Adds a hint with the possible values.
fn with_values(fault: CliError, values: Vec<String>) -> CliError {
    if values.is_empty() {
        fault
    } else {
        fault.hint(format!("possible values: {}", values.join(", ")))
    }
}
