use std::sync::Arc;

use anyhow::{Context as _, Result};
use prowess::{Library, Skill};
#[cfg(feature = "mcp")]
use prowess::{did_you_mean, nearest};
#[cfg(feature = "mcp")]
use prowess_cli::settings::Config;
#[cfg(feature = "mcp")]
use prowess_mcp::config::ServerSetting;
use prowess_runtime::{
    Launcher, Outcome, OutcomeStatus, SkillProvider, Toolbox,
    parameters::unknown_parameters,
    text::{fresh_marker, make_visible, strict_json},
    toolbox::takes_parameters,
};
use serde_json::{Value, json};

use super::{disabled_outcome, run::parameters, warn_about_fields};
#[cfg(feature = "mcp")]
use crate::connecting::{Installer, connect};
use crate::{
    ExitStatus,
    arguments::Global,
    completion, context,
    host::PermissionArgs,
    input,
    printer::Printer,
    readable::{format_value, is_text_and_structured},
    toolbox::{self, Caller, Kit},
    trust,
};

/// Call a tool
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the tool; `prowess tools` lists them
    #[arg(add = completion::tools())]
    name: String,
    /// Input: any number of `KEY=VALUE`, or a JSON object, `@FILE`, or `-` for standard input
    ///
    /// A value that is valid JSON is passed as JSON, unless the tool expects a string.
    #[arg(value_name = "KEY=VALUE|JSON")]
    input: Vec<String>,
    /// Activate this skill first; repeatable
    #[arg(long, value_name = "NAME", add = completion::skills())]
    skill: Vec<String>,
    #[command(flatten)]
    running: PermissionArgs,
}

/// The tools that disclose or run skills, beside the tools of the skills themselves.
const OVER_SKILLS: &[&str] =
    &["find_skills", "read_file", "read_skill_file", "run_skill", "use_skill"];

impl Args {
    /// Returns whether the tool discloses or runs skills.
    fn uses_skills(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        !self.skill.is_empty() || name.starts_with("skill_") || OVER_SKILLS.contains(&&*name)
    }

    /// Returns the skills that the call names; `None` if it may be about any skill.
    fn named_skills(&self, input: &Input<'_>) -> Option<Vec<String>> {
        let mut names = self.skill.clone();
        match &*self.name.to_ascii_lowercase() {
            "find_skills" | "read_file" => return None,
            "read_skill_file" | "run_skill" | "use_skill" => names.push(input.text("name")?),
            name if name.starts_with("skill_") => names.push(self.name.clone()),
            _ => {}
        }
        Some(names)
    }
}

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let input = match &*args.input {
        [] => Ok(Input::Json(json!({}))),
        [text] if !is_pair(text) => match input::read_text(text) {
            Ok(text) => parse_input(&text),
            Err(error) => {
                print_outcome(
                    &args.name,
                    &Outcome::error(OutcomeStatus::Invalid, error.as_ref()),
                    false,
                    printer,
                )?;
                return Ok(input::exit_status(&error));
            }
        },
        pairs => Ok(Input::Pairs(pairs)),
    };
    let (outcome, is_skill_text) = match input {
        Ok(input) => call(args, input, global, launcher, printer)?,
        Err(outcome) => (*outcome, false),
    };
    print_outcome(&args.name, &outcome, is_skill_text, printer)?;
    Ok(if outcome.is_ok() { ExitStatus::Success } else { ExitStatus::Failure })
}

/// The input of a tool.
enum Input<'a> {
    Json(Value),
    /// Pairs whose types depend on the schema of the tool.
    Pairs(&'a [String]),
}

impl Input<'_> {
    /// Returns the text of a parameter.
    fn text(&self, key: &str) -> Option<String> {
        match self {
            Self::Json(input) => input[key].as_str().map(str::to_owned),
            Self::Pairs(pairs) => pairs.iter().find_map(|it: &String| {
                let (name, value) = it.split_once('=')?;
                (name == key).then(|| value.to_owned())
            }),
        }
    }
}

/// Returns whether a word is `KEY=VALUE`, and neither JSON nor a file.
fn is_pair(word: &str) -> bool {
    word.split_once('=').is_some_and(|(key, _)| {
        !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
    })
}

fn parse_input(text: &str) -> Result<Input<'static>, Box<Outcome>> {
    strict_json(text).map(Input::Json).map_err(|error| {
        let what = if error.is_data() { "the input is ambiguous" } else { "the input is not JSON" };
        let outcome = Outcome::bad(OutcomeStatus::Invalid, format!("{what}: {error}"));
        Box::new(outcome.hint("write it as `KEY=VALUE`, or as an object: `'{\"KEY\": \"VALUE\"}'`"))
    })
}

/// Calls the tool, and returns whether its output is text of a skill.
fn call(
    args: &Args,
    input: Input<'_>,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<(Outcome, bool)> {
    let config = context::config(global)?;
    let library = Arc::new(match args.uses_skills() {
        true => {
            let is_trusted = args.running.trust_project;
            let global = &match args.named_skills(&input) {
                Some(names) => {
                    let names = names.iter().map(String::as_str);
                    trust::ask_for_trust_in(names, &config, global, is_trusted, printer)?
                }
                None => trust::ask_for_trust(&config, global, is_trusted, printer),
            };
            context::library(global, printer)?
        }
        // The policy keeps their files from other tools, whether or not they are trusted.
        false => context::library_without_notes(global, printer)?,
    });
    let provider: Arc<dyn SkillProvider> = Arc::new(library.clone());
    #[cfg(feature = "mcp")]
    let installer = Installer::new(&config, launcher.clone())?;
    let kit =
        toolbox::toolbox(Caller::Person, &args.running, &provider, global, &[], launcher, printer)?;
    let Kit { toolbox, authorizer, .. } = kit;
    if args.name.get(..6).is_some_and(|it| it.eq_ignore_ascii_case("skill_")) {
        let skill = library.for_tool(&args.name).or_else(|| disabled_skill(&library, &args.name));
        skill.iter().for_each(|it| warn_about_fields(&library, it, printer));
    }
    if toolbox.find(&args.name).is_none()
        && let Some(skill) = disabled_skill(&library, &args.name)
    {
        return Ok((*disabled_outcome(&skill.manifest), false));
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("cannot start the async runtime")?;
    let is_of_server = toolbox.find(&args.name).is_none() && args.name.starts_with("mcp__");
    #[cfg(not(feature = "mcp"))]
    if is_of_server {
        let why = crate::features::missing_feature("MCP", "mcp");
        return Ok((Outcome::bad(OutcomeStatus::NotFound, why), false));
    }
    #[cfg(feature = "mcp")]
    let (toolbox, server) = match is_of_server {
        true => {
            let Some(set) = server_of(&config, &args.name) else {
                return Ok((no_server(&config, &args.name), false));
            };
            args.running.warn_about_servers(printer);
            let yes = args.running.yes;
            let connected = connect(&kit.server_launcher, set, &installer, yes, printer);
            match runtime.block_on(connected)? {
                Ok(server) => {
                    (server.tools().into_iter().fold(toolbox, Toolbox::with), Some(server))
                }
                Err(outcome) => return Ok((*outcome, false)),
            }
        }
        false => (toolbox, None),
    };
    let outcome = runtime.block_on(async {
        let outcome = call_with_input(args, input, &toolbox, printer).await;
        #[cfg(feature = "mcp")]
        if let Some(server) = server {
            server.stop().await;
        }
        outcome
    });
    // Pending work, such as the end of a statement, is not waited for.
    runtime.shutdown_background();
    authorizer.take_warnings().iter().for_each(|it| printer.safety_warning(it));
    let is_skill_text = toolbox.find(&args.name).is_some_and(|it| it.is_skill_text(&outcome));
    Ok((outcome, is_skill_text))
}

/// Calls the tool with input that matches its schema, once the skills are activated.
async fn call_with_input(
    args: &Args,
    input: Input<'_>,
    toolbox: &Toolbox,
    printer: &mut Printer,
) -> Outcome {
    let found = toolbox.find(&args.name).cloned();
    let schema = found.as_ref().map(|it| it.input_schema());
    let input = match input {
        Input::Json(input) => input,
        Input::Pairs(pairs) => match parameters(pairs, None, schema.as_ref()) {
            Ok(parameters) => Value::Object(parameters.values().clone()),
            Err(error) => return Outcome::from(&error),
        },
    };
    for skill in &args.skill {
        let activated = toolbox.call("use_skill", json!({ "name": skill })).await;
        if !activated.is_ok() {
            return activated;
        }
    }
    let Some((tool, schema)) = found.zip(schema) else {
        return toolbox.call(&args.name, input).await;
    };
    let unknown = unknown_parameters(&schema, &input);
    let outcome = toolbox.call(&args.name, input.clone()).await;
    // If the schema allows any name, the tool was called, and has probably ignored it.
    if outcome.status != OutcomeStatus::Invalid && !unknown.is_empty() {
        let (names, name) = (context::quote_entries(&unknown), tool.name());
        let is = if unknown.len() == 1 { "is not a parameter" } else { "are not parameters" };
        let takes = takes_parameters(name, &schema, &unknown);
        let takes = takes.map(|it| format!("; {it}")).unwrap_or_default();
        printer.warning(&format!("{names} {is}{takes}"));
    }
    outcome
}

/// Returns the configured server whose tools have names like this one.
#[cfg(feature = "mcp")]
fn server_of<'c>(config: &'c Config, tool: &str) -> Option<&'c ServerSetting> {
    config.servers.value.0.iter().find(|it: &&ServerSetting| {
        tool.strip_prefix("mcp__")
            .and_then(|rest| rest.strip_prefix(&*it.description.name))
            .is_some_and(|rest| rest.starts_with("__"))
    })
}

#[cfg(feature = "mcp")]
fn no_server(config: &Config, tool: &str) -> Outcome {
    let message = format!("there is no tool `{tool}`: no configured server provides it");
    let labels = config.servers.value.0.iter().map(|it| &*it.description.name);
    let named = tool.strip_prefix("mcp__").and_then(|it| it.split_once("__"));
    if let Some((label, own)) = named
        && let Some(near) = nearest(label, labels)
    {
        let hint = did_you_mean(format_args!("mcp__{near}__{own}"));
        return Outcome::bad(OutcomeStatus::NotFound, message).hint(hint);
    }
    let hint = "`prowess servers` lists the configured servers and their tools; servers of skills are only for `ask` and `chat`";
    Outcome::bad(OutcomeStatus::NotFound, message).hint(hint)
}

/// Returns the disabled skill that would be this tool.
fn disabled_skill<'lib>(library: &'lib Library, tool: &str) -> Option<&'lib Skill> {
    let name = tool.get(6..).filter(|_| tool[..6].eq_ignore_ascii_case("skill_"))?;
    let mut disabled = library.skills().filter(|it| !it.manifest.is_active());
    disabled.find(|it| it.manifest.name.eq_ignore_ascii_case(name))
}

fn print_outcome(
    name: &str,
    outcome: &Outcome,
    is_skill_text: bool,
    printer: &mut Printer,
) -> Result<()> {
    let outcome = &printer.with_full_hint(outcome);
    if printer.json {
        return printer.document(&json!({ "tool": name, "outcome": outcome }));
    }
    print_output(outcome, is_skill_text, printer)?;
    if let Some(message) = &outcome.message {
        if outcome.is_ok() { printer.note(message) } else { printer.error_text(message) }
    }
    if let Some(hint) = &outcome.hint {
        printer.hint(hint);
    }
    printer.report_refused(outcome);
    printer.report_network(outcome);
    Ok(())
}

/// Prints the output of a tool; in a pipe, text of a skill is fenced.
pub(super) fn print_output(
    outcome: &Outcome,
    is_skill_text: bool,
    printer: &mut Printer,
) -> Result<()> {
    if let Some(stdout) = outcome.stdout.as_ref().filter(|it| !it.text.is_empty()) {
        printer.text(&stdout.text)?;
    }
    if let Some(stderr) = outcome.stderr.as_ref().filter(|it| !it.text.is_empty()) {
        let text = crate::safe::lines(&stderr.text);
        match outcome.is_ok() {
            true => printer.stderr_line(text.trim_end()),
            // Errors are printed even with `-q`.
            false => printer.stderr_raw(format!("{}\n", text.trim_end()).as_bytes()),
        }
    }
    for step in outcome.plan.iter().flatten() {
        printer.text(&step.to_string())?;
    }
    if let Some(output) = &outcome.output {
        match is_skill_text && !printer.is_terminal {
            // The reader may be a model.
            true => {
                let text = fence_output(output, printer);
                printer.text(&text)?;
            }
            false => printer.text(&format_value(output))?,
        }
        if is_text_and_structured(output) {
            printer.note("`--json` prints the structured content too");
        }
        for what in output["left_out"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            printer.note(&format!("left out: {what}"));
        }
    }
    Ok(())
}

/// Returns text of a skill between markers, which are explained on stderr.
fn fence_output(output: &Value, printer: &mut Printer) -> String {
    let (marker, mut output) = (fresh_marker(), output.clone());
    make_visible(&mut output);
    printer.note(&marker.explanation());
    marker.fence(&format_value(&output))
}
