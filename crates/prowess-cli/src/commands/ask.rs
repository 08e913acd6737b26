use std::{
    io::{self, IsTerminal as _},
    sync::Arc,
};

use anyhow::Result;
use prowess::Library;
use prowess_agent::{ChatRequest, Model, SkillScore};
use prowess_runtime::Launcher;
use serde_json::{Value as Json, json};

use super::{chat, count, prompt};
use crate::sys::has_input;
use crate::{
    ExitStatus,
    agent::{AgentArgs, DryRunModel},
    arguments::Global,
    cli_error::CliError,
    context,
    conversation::{self, Conversation, TurnEnd},
    event_renderer::{View, describe_score},
    input,
    printer::Printer,
    safe,
    sessions::SessionArgs,
};

/// Ask an agent, which loads matching skills, calls tools, and answers
///
/// The answer goes to stdout: streamed at a terminal, in one piece in a pipe. The agent's actions go to stderr, one
/// per line: skills used, files written, commands run; `-v` adds every step, `-q` hides them. If actions were
/// refused, the last line says so. The API key comes from the environment or a file, see `--key-file`. Ctrl-C stops
/// the agent; the conversation is saved, and `--resume` continues it. A second Ctrl-C exits immediately. Sessions
/// are files in `~/.local/state/prowess/sessions`; `prowess sessions` lists and removes them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The request; several words need no quotes, `-` or nothing reads it from stdin
    prompt: Vec<String>,
    /// Add this file to the request; `-` reads stdin; repeatable
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::AnyPath)]
    file: Vec<String>,
    /// Show what would be sent, without sending it; needs no key and no network
    #[arg(long)]
    dry_run: bool,
    /// Print every event as it happens, one line of JSON each
    #[arg(long, conflicts_with = "dry_run")]
    events: bool,
    #[command(flatten)]
    which: SessionArgs,
    #[command(flatten)]
    working: AgentArgs,
}

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let prompt = args.prompt()?;
    args.which.check_differs_from(args.working.trace.as_deref())?;
    if args.ignores_stdin() {
        printer.note("stdin is not read; use `--file -` to add it to the request");
    }
    if args.dry_run {
        return dry_run(args, prompt, global, launcher, printer);
    }
    let view = match (args.events, printer.json) {
        (true, _) => View::Events,
        (false, true) => View::Document,
        (false, false) if args.working.naming.no_stream => View::Whole,
        (false, false) => View::Stream,
    };
    let config = context::config(global)?;
    let model = args.working.naming.model("ask", &config, printer)?;
    let stack = args.working.stack(model, args.which.file(), view, global, launcher, printer)?;
    check_invocation(prompt.as_deref(), &stack.provider.library())?;
    let saved = args.which.open(config.agent.keep_sessions.value, printer)?;
    let mut conversation = Conversation::new(stack, saved, view, printer)?;
    conversation.exit_at_second_interrupt()?;
    let turned = conversation.turn(prompt, printer)?;
    let status = match view {
        View::Events | View::Dry => conversation::exit_status(&turned),
        View::Document => {
            printer.document(&conversation::document(&turned, &conversation))?;
            conversation::exit_status(&turned)
        }
        View::Stream | View::Whole => {
            let name = conversation.saved.name.as_ref();
            let model = args.working.naming.flags();
            let again = name.map(|it| {
                printer.with_directory_flags(&format!("`prowess ask --resume {it}{model}`"))
            });
            let renderer = &mut conversation.renderer;
            conversation::report(&turned, again.as_deref(), renderer, printer)?
        }
    };
    printer.flush()?;
    let refused = conversation.renderer.refusal_summary();
    conversation.end(printer);
    if let Some(refused) = refused {
        printer.warning(&refused);
    }
    Ok(status)
}

impl Args {
    /// Returns whether stdin has input that was not asked for.
    fn ignores_stdin(&self) -> bool {
        let is_read =
            self.typed_request().is_none_or(|it| it == "-") || self.file.iter().any(|it| it == "-");
        !is_read && !io::stdin().is_terminal() && has_input()
    }

    /// Returns the request on the command line.
    fn typed_request(&self) -> Option<String> {
        (!self.prompt.is_empty()).then(|| self.prompt.join(" "))
    }

    /// Returns the request with its attached texts; `None` to resume a session.
    fn prompt(&self) -> Result<Option<String>> {
        let asked = self.typed_request();
        let from_stdin = self.file.iter().chain(&asked).filter(|it| *it == "-").count();
        if from_stdin > 1 {
            let message = "stdin can be read only once, but `-` was given twice";
            return Err(CliError::new(message).into());
        }
        let mut prompt = match asked.as_deref() {
            Some("-") => input::read_text("-")?,
            Some(prompt) => prompt.to_owned(),
            None if self.which.resumes() && self.file.is_empty() => return Ok(None),
            None if from_stdin > 0 => String::new(),
            None if io::stdin().is_terminal() => return Err(missing_request_error().into()),
            None => input::read_text("-")?,
        };
        for path in &self.file {
            let (name, text) = match path.as_str() {
                "-" => ("stdin", input::read_text("-")?),
                path => (path, input::read_text(&format!("@{path}"))?),
            };
            prompt.push_str(&format!("\n\n<file name={name:?}>\n{}\n</file>", text.trim_end()));
        }
        match prompt.trim() {
            "" => Err(missing_request_error().into()),
            prompt => Ok(Some(prompt.to_owned())),
        }
    }
}

fn missing_request_error() -> CliError {
    let hint =
        "try `prowess ask \"what is in this repository?\"`, or `prowess chat` for a conversation";
    CliError::new("the request is missing").hint(hint)
}

/// Fails for a request that invokes an unknown skill.
fn check_invocation(prompt: Option<&str>, library: &Library) -> Result<(), CliError> {
    let name = prompt.and_then(chat::invoked_name);
    let unknown = name.and_then(|it| chat::unknown_invocation(it, std::iter::empty(), library));
    unknown.map_or(Ok(()), Err)
}

/// Runs everything up to the model, which is not called, and prints the request.
fn dry_run(
    args: &Args,
    prompt: Option<String>,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let config = context::config(global)?;
    let model = args.working.naming.model_without_key(&config)?;
    let unasked = Arc::new(DryRunModel::new(model));
    let view = View::Dry;
    let stack =
        args.working.stack(unasked.clone(), args.which.file(), view, global, launcher, printer)?;
    check_invocation(prompt.as_deref(), &stack.provider.library())?;
    let mut conversation = Conversation::new(stack, args.which.replay()?, view, printer)?;
    let turned = conversation.turn(prompt, printer)?;
    let Conversation { stack, renderer, .. } = &conversation;
    match (unasked.recorded_request(), turned) {
        (Some(ask), _) => {
            let sent = DryRunReport {
                ask: &ask,
                model: &unasked,
                scores: &renderer.scores,
                count: &|text| stack.window.vocabulary.count(text),
            };
            if printer.json {
                printer.document(&sent.json())?;
            } else {
                sent.print(printer)?;
            }
            let set = config.servers.value.0.iter().map(|it| &*it.description.name);
            let set: Vec<&str> = set.collect();
            if !set.is_empty() {
                let set = set.join("`, `");
                printer.note(&format!(
                    "these servers were not started, so their tools and skills are missing: `{set}`; see `prowess servers`"
                ));
            }
            Ok(ExitStatus::Success)
        }
        (None, TurnEnd::Failed(error)) => Err(error.into()),
        (None, _) => {
            printer.note("nothing would be sent");
            Ok(ExitStatus::Success)
        }
    }
}

/// The request that would be sent, and its sources.
struct DryRunReport<'a> {
    ask: &'a ChatRequest,
    model: &'a DryRunModel,
    scores: &'a [SkillScore],
    count: &'a dyn Fn(&str) -> usize,
}

impl DryRunReport<'_> {
    fn messages(&self) -> usize {
        self.ask.messages.iter().map(|it| (self.count)(&it.content)).sum()
    }

    fn tools(&self) -> Vec<(&str, usize)> {
        let tools = self.ask.tools.iter();
        tools.map(|it| (&*it.name, (self.count)(&json!(it).to_string()))).collect()
    }

    fn json(&self) -> Json {
        let (messages, tools) = (self.messages(), self.tools());
        let of_tools: usize = tools.iter().map(|it| it.1).sum();
        json!({
            "provider": self.model.provider(),
            "model": self.model.name(),
            "body": self.model.model.as_ref().map_or_else(|| json!(self.ask), |it| it.body(self.ask)),
            "tokens": { "messages": messages, "tools": of_tools, "total": messages + of_tools },
            "tools": tools.into_iter().map(|(name, tokens): (&str, usize)| json!({ "name": name, "tokens": tokens })).collect::<Vec<_>>(),
            "skills": self.scores,
        })
    }

    fn print(&self, printer: &mut Printer) -> Result<()> {
        printer.text(&prompt::text(&self.ask.messages))?;
        let (messages, tools) = (self.messages(), self.tools());
        printer.line("")?;
        printer.line(printer.name("Tools"))?;
        let widest = tools.iter().map(|it| it.0.len()).max().unwrap_or(0);
        for (name, tokens) in &tools {
            printer.line(format_args!("{:widest$}  {tokens:>6} tokens", safe::line(name)))?;
        }
        printer.line("")?;
        printer.line(printer.name("Skills"))?;
        for it in self.scores {
            printer.line(safe::line(&describe_score(it)))?;
        }
        if self.scores.is_empty() {
            printer.line("no skill matches")?;
        }
        printer.line("")?;
        let total = messages + tools.iter().map(|it| it.1).sum::<usize>();
        let whom = match &self.model.model {
            Some(model) => format!("Would send `{}` ({})", model.name(), model.provider()),
            None => "No model is configured. Would send".to_owned(),
        };
        let messages = count(self.ask.messages.len(), "message");
        let tools = count(tools.len(), "tool");
        printer.line(safe::line(&format!("{whom} {messages} and {tools}, {total} tokens")))
    }
}
