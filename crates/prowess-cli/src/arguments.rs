//! The command line.

use std::{env, fs, io, path::PathBuf};

use clap::{
    Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint,
    builder::{PathBufValueParser, TypedValueParser},
};
use prowess::{Profile, Strategy};
use prowess_cli::settings::{Bytes, Depth, Ratio, bytes};

#[cfg(feature = "http")]
use crate::commands::prepare;
#[cfg(feature = "packages")]
use crate::commands::{
    add, audit, export, import, outdated, packages_cache, publish, search, sync, update, use_skill,
    verify,
};
#[cfg(feature = "agent")]
use crate::commands::{ask, chat, sessions, trace};
#[cfg(feature = "mcp")]
use crate::commands::{mcp, servers};
use crate::{
    commands::{
        approvals, catalog, check, completions, config, create, disable, doctor, enable, find,
        init, lab, list, man, migrate, new, prompt, read, remove, rule, run, sandbox, show, tool,
        tools, trust, undo,
    },
    completion,
    config_cache::ConfigCache,
    examples,
};

/// The heading of the options that every command takes.
const GLOBAL: &str = "Global options";

/// Adds a line with the global options to the short help of every subcommand.
fn with_global_options(command: clap::Command, line: &str) -> clap::Command {
    command.mut_subcommands(|it| with_global_options(it.after_help(line.to_owned()), line))
}

/// Skills for agents: find them, check them, read them
#[derive(Debug, Parser)]
#[command(name = "prowess", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Arguments {
    /// Returns the command line with its examples.
    pub(crate) fn command_with_examples() -> clap::Command {
        let line =
            format!("{GLOBAL}: --dir, --preset, --json, --quiet and more; see `prowess -h`\n");
        examples::add_examples(with_global_options(Self::command(), &line))
    }

    /// Parses the command line.
    pub(crate) fn parse() -> Result<Self, clap::Error> {
        let matches = Self::command_with_examples().try_get_matches()?;
        Self::from_arg_matches(&matches).map_err(|it| it.format(&mut Self::command_with_examples()))
    }
}

/// Applies `--color` to help and usage errors, which come before the arguments are parsed.
pub(crate) fn choose_color() {
    let mut words = words().take_while(|it| it != "--");
    let mut typed = None;
    while let Some(word) = words.next() {
        typed = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(value) => value.strip_prefix('=').map(str::to_owned),
            None => continue,
        };
    }
    let color = typed.and_then(|it| Color::from_str(&it, false).ok()).unwrap_or(Color::Auto);
    color.choice().write_global();
}

/// Returns the words of the command line; bytes that are not UTF-8 are replaced.
pub(crate) fn words() -> impl Iterator<Item = String> {
    env::args_os().map(|it| it.to_string_lossy().into_owned())
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(visible_alias = "ls")]
    List(list::Args),
    #[command(visible_aliases = ["lint", "validate"])]
    Check(check::Args),
    #[cfg(feature = "packages")]
    Audit(audit::Args),
    Rule(rule::Args),
    Doctor(doctor::Args),
    Find(find::Args),
    Lab(lab::Args),
    #[command(visible_alias = "cat")]
    Show(show::Args),
    Read(read::Args),
    Prompt(prompt::Args),
    #[cfg(feature = "agent")]
    Ask(ask::Args),
    #[cfg(feature = "agent")]
    Chat(chat::Args),
    #[cfg(feature = "agent")]
    Sessions(sessions::Args),
    #[cfg(feature = "mcp")]
    #[command(visible_alias = "serve")]
    Mcp(mcp::Args),
    Catalog(catalog::Args),
    New(new::Args),
    Create(create::Args),
    Enable(enable::Args),
    Disable(disable::Args),
    #[command(visible_aliases = ["rm", "uninstall"])]
    Remove(remove::Args),
    Undo(undo::Args),
    Migrate(migrate::Args),
    #[cfg(feature = "packages")]
    #[command(visible_alias = "install")]
    Add(add::Args),
    #[cfg(feature = "packages")]
    Sync(sync::Args),
    #[cfg(feature = "packages")]
    Outdated(outdated::Args),
    #[cfg(feature = "packages")]
    #[command(visible_alias = "upgrade")]
    Update(update::Args),
    #[cfg(feature = "packages")]
    Verify(verify::Args),
    #[cfg(feature = "packages")]
    Search(search::Args),
    #[cfg(feature = "packages")]
    Use(use_skill::Args),
    #[cfg(feature = "packages")]
    Import(import::Args),
    #[cfg(feature = "packages")]
    Export(export::Args),
    #[cfg(feature = "packages")]
    Publish(publish::Args),
    #[cfg(feature = "packages")]
    Cache(packages_cache::Args),
    Config(config::Args),
    Init(init::Args),
    Run(run::Args),
    #[cfg(feature = "http")]
    Prepare(prepare::Args),
    Tool(tool::Args),
    Tools(tools::Args),
    #[cfg(feature = "mcp")]
    Servers(servers::Args),
    #[cfg(feature = "agent")]
    Trace(trace::Args),
    Trust(trust::Args),
    Approvals(approvals::Args),
    Sandbox(sandbox::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// The options of every command, before or after its name.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Global {
    /// The settings that were read.
    #[arg(skip)]
    pub(crate) configs: ConfigCache,
    /// Directories of a project that is not trusted, where that matters; see `trust.rs`.
    #[arg(skip)]
    pub(crate) untrusted: Vec<PathBuf>,
    /// Whether there are skills in some of them.
    #[arg(skip)]
    pub(crate) leaves_out_skills: bool,
    /// Whether the settings of the project are ignored, because they cannot be read.
    #[arg(skip)]
    pub(crate) ignores_project_file: bool,
    /// Directory with skills; repeatable, earlier directories win
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) dir: Vec<PathBuf>,
    /// Directories of a client, such as `claude` or `agents`; repeatable
    #[arg(long, global = true, value_name = "NAME", add = completion::presets(), hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) preset: Vec<String>,
    /// Resolve relative directories from this one
    #[arg(long, global = true, value_name = "DIR", value_parser = directory_parser(), value_hint = ValueHint::DirPath, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) cwd: Option<PathBuf>,
    /// Read settings from this file only, instead of the user's and the nearest `prowess.toml`
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) config: Option<PathBuf>,
    /// How many folders deep to search, 1 to 32 [default: as deep as there are skills]
    #[arg(long, global = true, value_name = "N", value_parser = parse_depth, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) depth: Option<Depth>,
    /// Use only the skill with this name; repeatable
    #[arg(long, global = true, value_name = "NAME", add = completion::skills(), hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) include: Vec<String>,
    /// Skip the skill with this name; repeatable
    #[arg(long, global = true, value_name = "NAME", add = completion::skills(), hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) exclude: Vec<String>,
    /// Skip files larger than this, such as `500KB` [default: 10MiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) max_file_size: Option<Bytes>,
    /// Skip skills larger than this, counting all their files [default: 64MiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) max_skill_size: Option<Bytes>,
    /// Neither read nor write the cache
    #[arg(long, global = true, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) no_cache: bool,
    /// Rule set to apply
    #[arg(long, global = true, value_enum, value_name = "PROFILE", default_value_t = ProfileName::Spec, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) profile: ProfileName,
    /// Print one JSON document
    #[arg(long, global = true, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) color: Color,
    /// Print no notes or warnings, except about safety
    #[arg(short, long, global = true, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Print more detail
    #[arg(short, long, global = true, hide_short_help = true, help_heading = GLOBAL)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// At a terminal, unless `NO_COLOR` is set; everywhere with `CLICOLOR_FORCE`
    #[default]
    Auto,
    /// Always, even in pipes and files
    Always,
    /// Never
    Never,
}

impl Color {
    fn choice(self) -> anstream::ColorChoice {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// What the major clients load; a missing name is taken from the folder
    Lenient,
    /// The open Agent Skills specification
    #[default]
    Spec,
    /// What the reference library `skills-ref` reports
    Reference,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Lenient => Self::Lenient,
            ProfileName::Spec => Self::Spec,
            ProfileName::Reference => Self::Reference,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyName {
    /// By their whole text
    Semantic,
    /// By name and description only
    Keyword,
    /// Only skills mentioned as `@name`
    Explicit,
    /// All skills
    Always,
    /// Like explicit; the model loads what it needs
    Model,
}

impl From<StrategyName> for Strategy {
    fn from(name: StrategyName) -> Self {
        match name {
            StrategyName::Semantic => Self::Semantic,
            StrategyName::Keyword => Self::Keyword,
            StrategyName::Explicit => Self::Explicit,
            StrategyName::Always => Self::Always,
            StrategyName::Model => Self::Model,
        }
    }
}

/// Parses a number from 0 to 1.
pub(crate) fn parse_ratio(text: &str) -> Result<Ratio, String> {
    let number = text.parse().map_err(|_| "must be a number".to_owned())?;
    Ratio::new(number).ok_or_else(|| "must be from 0 to 1".to_owned())
}

/// Returns a parser for an existing directory.
pub(crate) fn directory_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match fs::metadata(&path) {
        Ok(it) if it.is_dir() => Ok(path),
        Ok(_) => Err("not a directory"),
        Err(error) => Err(unreadable_reason(&error)),
    })
}

/// Returns a parser for an existing file or directory.
pub(crate) fn existing_path_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(unreadable_reason(&error)),
    })
}

fn unreadable_reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "cannot be read",
        _ => "does not exist",
    }
}

/// Parses a folder depth.
fn parse_depth(text: &str) -> Result<Depth, String> {
    text.parse()
        .ok()
        .and_then(Depth::new)
        .ok_or_else(|| format!("must be from 1 to {}", Depth::DEEPEST.get()))
}

/// Parses a size, such as `500KB`, `10MiB` or a number of bytes.
pub(crate) fn parse_size(text: &str) -> Result<Bytes, String> {
    // A number too large for its unit is still a size.
    let size = text.parse().ok().or_else(|| bytes(text));
    size.map(Bytes).ok_or_else(|| "must be a size such as `500KB`, `10MiB` or `1048576`".to_owned())
}

#[cfg(test)]
mod tests {
    use prowess_cli::settings::Config;

    use super::*;

    #[test]
    fn the_help_of_a_flag_names_the_default_of_its_setting() {
        let program = Arguments::command();
        // `find` has defaults of its own.
        let commands = program.get_subcommands().filter(|it| it.get_name() != "find");
        let mut compared = 0;
        let settings = Config::default().settings();
        for argument in commands.chain([&program]).flat_map(|it| it.get_arguments()) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let Some((_, default)) = help.split_once("[default: ") else { continue };
            let default = default.split([',', ']']).next().unwrap_or_default();
            let flag = argument.get_long().map(|it| format!("--{it}"));
            let setting = settings.iter().find(|it| it.flag == flag.as_deref());
            let set = setting.map(|it| it.default.replace([' ', '"'], "")).unwrap_or_default();
            if [default, &set].iter().all(|it| it.starts_with(|it: char| it.is_ascii_digit())) {
                assert_eq!(default, set, "{flag:?}");
                compared += 1;
            }
        }
        assert!(compared >= 8, "{compared}");
    }
}
