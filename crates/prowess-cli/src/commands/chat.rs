use std::{
    env,
    io::{self, BufRead as _, IsTerminal as _},
};

use anyhow::{Context as _, Result};
use prowess::{Level, Library, Manifest, Role, did_you_mean, nearest};
use prowess_agent::{SkillScore, TokenUsage};
use prowess_runtime::Launcher;
use rustyline::{
    CompletionType, Config, Context, Editor, ExternalPrinter, Helper, completion::Completer,
    error::ReadlineError, highlight::Highlighter, hint::Hinter, history::MemHistory,
    validate::Validator,
};
use serde_json::json;

use super::count;
use crate::{
    ExitStatus,
    agent::AgentArgs,
    arguments::Global,
    cli_error::CliError,
    context,
    conversation::{self, Conversation, TurnEnd, report},
    event_renderer::{EventRenderer, View, describe_score},
    printer::Printer,
    safe,
    sessions::{self, OpenSession, SessionArgs},
};

/// Chat with an agent
///
/// At a terminal, lines can be edited, and Tab completes commands and names of skills; in a pipe, each line is one
/// request. `/name` invokes a skill, `@name` mentions one, and `/help` lists the commands. Ctrl-C stops a step, a
/// second Ctrl-C leaves, and `--resume` continues the conversation.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    which: SessionArgs,
    #[command(flatten)]
    working: AgentArgs,
}

/// The longest excerpt of the last request.
const BRIEF: usize = 60;
/// The commands beside requests.
const COMMANDS: [(&str, &str); 7] = [
    ("skills", "list skills; the active ones are bold"),
    ("why", "explain why skills were chosen for the last request"),
    ("budget", "show the tokens used by the last request, and in total"),
    ("trace", "show what happened since the last request"),
    ("clear", "start a new conversation; this one is saved"),
    ("help", "this list"),
    ("quit", "quit, like Ctrl-D"),
];

pub(crate) fn run(
    args: &Args,
    global: &Global,
    launcher: Launcher,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let view = match (printer.json, args.working.naming.no_stream) {
        (true, _) => View::Document,
        (false, true) => View::Whole,
        (false, false) => View::Stream,
    };
    args.which.check_differs_from(args.working.trace.as_deref())?;
    let config = context::config(global)?;
    let keep = config.agent.keep_sessions.value;
    let model = args.working.naming.model("chat", &config, printer)?;
    let stack = args.working.stack(model, args.which.file(), view, global, launcher, printer)?;
    let saved = args.which.open(keep, printer)?;
    let mut lines = Lines::new(&saved)?;
    let conversation = Conversation::new(stack, saved, view, printer)?;
    let mut chat = Chat { conversation, keep, last: ExitStatus::Success };
    let ended = chat.run_loop(args, &mut lines, printer);
    let saved = &chat.conversation.saved;
    saved.discard_if_unused();
    if let Some(name) = saved.name.as_ref().filter(|_| saved.session.turns() > 0) {
        let model = args.working.naming.flags();
        let command =
            printer.with_directory_flags(&format!("`prowess chat --resume {name}{model}`"));
        printer.note(&format!("{command} continues it"));
    }
    chat.conversation.end(printer);
    ended?;
    Ok(if lines.is_terminal() { ExitStatus::Success } else { chat.last })
}

/// An interactive conversation.
struct Chat {
    conversation: Conversation,
    /// The number of unnamed sessions to keep.
    keep: usize,
    /// The exit status of the last request.
    last: ExitStatus,
}

/// A line of input.
enum Input {
    Line(String),
    Interrupt,
    End,
}

/// The continuation after a line of input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// Read the next line.
    Next,
    /// Read the next line, and end at another interrupt.
    Interrupted,
    /// End the conversation.
    End,
}

impl Chat {
    fn run_loop(&mut self, args: &Args, lines: &mut Lines, printer: &mut Printer) -> Result<()> {
        if lines.is_terminal() {
            printer.note(&format!(
                "chatting with `{}`; `/help` lists commands",
                self.conversation.stack.agent.model().name()
            ));
        }
        self.print_recap(printer);
        let mut after = match args.which.resumes() && !self.is_answered() {
            true => self.turn(None, printer)?,
            false => After::Next,
        };
        while after != After::End {
            if matches!(lines, Lines::Plain) {
                printer.raw(b"> ")?;
            }
            printer.flush()?;
            after = match lines.next(&mut self.conversation)? {
                Input::End => After::End,
                Input::Interrupt if after == After::Interrupted || !lines.is_terminal() => {
                    After::End
                }
                Input::Interrupt => {
                    printer.note("press Ctrl-C again or Ctrl-D to quit");
                    After::Interrupted
                }
                Input::Line(line) => self.handle_line(line.trim(), printer)?,
            };
        }
        Ok(())
    }

    /// Prints the last messages of a resumed conversation.
    fn print_recap(&self, printer: &mut Printer) {
        let session = &self.conversation.saved.session;
        let messages = session.messages();
        if let Some(request) = prowess::request(&messages) {
            let (turns, said) = (session.turns(), safe::cut(&safe::line(&request.content), BRIEF));
            printer.note(&format!(
                "continuing after {}; the last one was: {said}",
                count(turns, "request")
            ));
        }
    }

    /// Handles a line of input.
    fn handle_line(&mut self, text: &str, printer: &mut Printer) -> Result<After> {
        if text.is_empty() {
            return Ok(After::Next);
        }
        let Some(name) = invoked_name(text) else {
            return self.turn(Some(text.to_owned()), printer);
        };
        match name {
            "quit" | "exit" => return Ok(After::End),
            "help" => print_answer(name, help_lines(), printer)?,
            "skills" => print_answer(name, self.skill_lines(printer), printer)?,
            "why" => print_answer(name, self.why_lines(), printer)?,
            "budget" => print_answer(name, self.budget_lines(), printer)?,
            "trace" => {
                let story = self.conversation.renderer.story.iter();
                print_answer(name, story.map(|it| safe::line(it).into_owned()).collect(), printer)?;
            }
            "clear" => {
                self.conversation.close_servers(printer);
                let Conversation { saved, renderer, .. } = &mut self.conversation;
                saved.discard_if_unused();
                // The conversation after one that is not saved is not saved either.
                let keep = if saved.name.is_some() { self.keep } else { 0 };
                *saved = sessions::start_session(keep, printer);
                *renderer = EventRenderer::new(renderer.view());
                printer.note("started a new conversation");
            }
            _ => {
                let commands = COMMANDS.iter().map(|it| it.0);
                let library = self.conversation.stack.provider.library();
                match unknown_invocation(name, commands, &library) {
                    None => return self.turn(Some(text.to_owned()), printer),
                    Some(fault) => fault.print(printer),
                }
                self.last = ExitStatus::Failure;
            }
        }
        Ok(After::Next)
    }

    fn turn(&mut self, prompt: Option<String>, printer: &mut Printer) -> Result<After> {
        let conversation = &mut self.conversation;
        let turned = conversation.turn(prompt, printer)?;
        if printer.json {
            printer.json_line(&conversation::document(&turned, conversation))?;
            conversation.renderer.lines.clear();
            self.last = conversation::exit_status(&turned);
        } else {
            self.last = report(&turned, None, &mut conversation.renderer, printer)?;
        }
        Ok(match turned {
            TurnEnd::Terminated => After::End,
            TurnEnd::Interrupted => After::Interrupted,
            _ => After::Next,
        })
    }

    /// Returns whether the last turn was answered.
    fn is_answered(&self) -> bool {
        let messages = self.conversation.saved.session.messages();
        messages.last().is_none_or(|it| it.role == Role::Assistant && it.calls.is_empty())
    }

    fn skill_lines(&self, printer: &Printer) -> Vec<String> {
        let Conversation { stack, saved, renderer, .. } = &self.conversation;
        let taken = saved.session.activated_skills();
        let is_full = |it: &&SkillScore| it.level.as_deref() == Some(Level::Full.as_str());
        let shown = renderer.scores.iter().filter(is_full).map(|it| &*it.name);
        let active: Vec<&str> = shown.chain(taken.iter().map(|it| &*it.1)).collect();
        let library = stack.provider.library();
        let skills = library.skills().map(|it| &it.manifest);
        let skills: Vec<&Manifest> = skills.filter(|it| it.is_active()).collect();
        let widest = skills.iter().map(|it| it.name.len()).max().unwrap_or(0);
        let room = printer.width.unwrap_or(usize::MAX).saturating_sub(widest + 2).max(20);
        skills
            .iter()
            .map(|skill: &&Manifest| {
                let padded = format!("{:widest$}", safe::line(&skill.name));
                let is_active = active.contains(&&*skill.name);
                let name = if is_active { printer.name(&padded) } else { padded };
                format!("{name}  {}", safe::cut(&safe::line(&skill.description), room))
            })
            .collect()
    }

    fn why_lines(&self) -> Vec<String> {
        let renderer = &self.conversation.renderer;
        match (renderer.scores.is_empty(), renderer.steps) {
            (true, 0) => vec!["no request yet".to_owned()],
            (true, _) => vec!["no skill matches the last request".to_owned()],
            _ => renderer
                .scores
                .iter()
                .map(|it| safe::line(&describe_score(it)).into_owned())
                .collect(),
        }
    }

    fn budget_lines(&self) -> Vec<String> {
        let (renderer, window) =
            (&self.conversation.renderer, self.conversation.stack.window.tokens);
        let Some((window, tokens)) = &renderer.fitted else {
            let mut lines = vec![format!("no request yet; the context window has {window} tokens")];
            let spent = self.conversation.saved.session.spent_on();
            let spent: TokenUsage = spent.into_values().sum();
            if spent.input + spent.output > 0 {
                lines.push(format!("before that: {spent} ({} cached)", spent.cached));
            }
            return lines;
        };
        let parts = ["system", "skills", "history", "tools", "total"];
        let mut parts = parts.map(|it| (it, tokens[it].as_u64().unwrap_or(0)));
        parts[4] = ("free", (*window as u64).saturating_sub(parts[4].1));
        let mut lines = Vec::new();
        for (name, tokens) in parts {
            let share = tokens as f64 / (*window).max(1) as f64 * 100.0;
            lines.push(format!("{name:7}  {tokens:>8} tokens  {share:>5.1} %"));
        }
        lines.push(format!("so far: {} ({} cached)", renderer.spent, renderer.spent.cached));
        lines.extend(renderer.cost.map(|cost| format!("cost so far: {cost:.4}")));
        lines
    }
}

/// Prints the answer to a command.
fn print_answer(command: &str, lines: Vec<String>, printer: &mut Printer) -> Result<()> {
    if printer.json {
        return printer.json_line(&json!({ "command": command, "lines": lines }));
    }
    lines.iter().try_for_each(|it| printer.line(it))
}

fn help_lines() -> Vec<String> {
    let mut lines: Vec<String> =
        COMMANDS.iter().map(|(name, what)| format!("{:10}  {what}", format!("/{name}"))).collect();
    lines.push("/SKILL …    invoke a skill, with arguments".to_owned());
    lines.push("@SKILL      mention a skill in a request".to_owned());
    lines
}

/// Returns the error for a line that invokes something that is neither a command nor a skill.
pub(super) fn unknown_invocation<'c>(
    name: &str,
    commands: impl Iterator<Item = &'c str>,
    library: &Library,
) -> Option<CliError> {
    if library.get(name).is_some_and(|it| can_be_invoked(&it.manifest)) {
        return None;
    }
    let mut known: Vec<&str> = commands.collect();
    let (what, list) = match known.is_empty() {
        true => ("no skill", "`prowess list` lists the skills"),
        false => {
            ("neither a command nor a skill", "`/help` lists the commands, `/skills` the skills")
        }
    };
    let names = invocable_names(library);
    known.extend(names.iter().map(String::as_str));
    let fault = CliError::invalid_input(format!("there is {what} `/{name}`"));
    Some(match nearest(name, known.into_iter()) {
        Some(near) => fault.hint(did_you_mean(format_args!("/{near}"))),
        None => fault.hint(list),
    })
}

/// Returns the name of the command or skill at the start of a line; `None` for a path.
pub(super) fn invoked_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('/')?.split(char::is_whitespace).next()?;
    (!name.is_empty() && name.chars().all(|c: char| c.is_alphanumeric() || "-_:.".contains(c)))
        .then_some(name)
}

fn can_be_invoked(manifest: &Manifest) -> bool {
    manifest.is_active() && manifest.dialect().user_invocable != Some(false)
}

fn invocable_names(library: &Library) -> Vec<String> {
    let skills = library.skills().map(|it| &it.manifest).filter(|it| can_be_invoked(it));
    skills.map(|it| it.name.to_string()).collect()
}

/// The source of lines.
enum Lines {
    Terminal(Box<Terminal>),
    /// A terminal without line editing.
    Plain,
    Pipe,
}

struct Terminal {
    editor: Editor<ChatCompleter, MemHistory>,
    /// An editor with an external printer waits for signals and keys alike, and misses none.
    _beside: Box<dyn ExternalPrinter>,
}

impl Lines {
    fn new(saved: &OpenSession) -> Result<Self> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Ok(Self::Pipe);
        }
        let terminal = env::var("TERM").unwrap_or_default();
        if ["", "dumb", "unknown"].contains(&&*terminal) {
            return Ok(Self::Plain);
        }
        Ok(Self::with_editor(saved).unwrap_or(Self::Plain))
    }

    fn with_editor(saved: &OpenSession) -> Result<Self> {
        let config = Config::builder().completion_type(CompletionType::List).build();
        let mut editor =
            Editor::with_history(config, MemHistory::new()).context("cannot read lines")?;
        for message in saved.session.messages().iter().filter(|it| it.role == Role::User) {
            editor.add_history_entry(&*message.content)?;
        }
        let beside = editor.create_external_printer().context("cannot read lines")?;
        Ok(Self::Terminal(Box::new(Terminal { editor, _beside: Box::new(beside) })))
    }

    fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_) | Self::Plain)
    }

    fn next(&mut self, conversation: &mut Conversation) -> Result<Input> {
        let editor = match self {
            Self::Terminal(terminal) => &mut terminal.editor,
            Self::Plain | Self::Pipe => {
                return conversation.wait(read_piped_line()).unwrap_or(Ok(Input::Interrupt));
            }
        };
        let ending = conversation.interrupt_on_termination()?;
        // A quick second interrupt is meant as such.
        match conversation.take_signal() {
            Some(TurnEnd::Terminated) => return Ok(Input::End),
            Some(_) => return Ok(Input::Interrupt),
            None => {}
        }
        let skills = invocable_names(&conversation.stack.provider.library());
        editor.set_helper(Some(ChatCompleter { skills }));
        let read = editor.readline("> ");
        ending.abort();
        match read {
            _ if matches!(conversation.take_signal(), Some(TurnEnd::Terminated)) => Ok(Input::End),
            Ok(line) => {
                editor.add_history_entry(&*line)?;
                Ok(Input::Line(line))
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Input::Interrupt),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(error) => Err(error).context("cannot read the input"),
        }
    }
}

/// Reads the next line of a pipe.
async fn read_piped_line() -> Result<Input> {
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        io::stdin().lock().read_until(b'\n', &mut bytes).map(|_| bytes)
    });
    let bytes = read.await?.context("cannot read stdin")?;
    Ok(match bytes.is_empty() {
        true => Input::End,
        false => Input::Line(String::from_utf8_lossy(&bytes).into_owned()),
    })
}

/// Completes commands and the names of skills.
struct ChatCompleter {
    skills: Vec<String>,
}

impl Completer for ChatCompleter {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(complete_word(&self.skills, &line[..at]))
    }
}

/// Returns the start of the word being typed, and its completions.
fn complete_word(skills: &[String], line: &str) -> (usize, Vec<String>) {
    let start = line.rfind(char::is_whitespace).map_or(0, |it| it + 1);
    let word = &line[start..];
    let skills = skills.iter().map(String::as_str);
    let known: Vec<&str> = match word.chars().next() {
        Some('/') if start == 0 => COMMANDS.iter().map(|it| it.0).chain(skills).collect(),
        Some('@') => skills.collect(),
        _ => return (start, Vec::new()),
    };
    let (sign, begun) = word.split_at(1);
    let fits = known.into_iter().filter(|it| it.starts_with(begun));
    (start, fits.map(|it| format!("{sign}{it}")).collect())
}

impl Hinter for ChatCompleter {
    type Hint = String;
}

impl Highlighter for ChatCompleter {}
impl Validator for ChatCompleter {}
impl Helper for ChatCompleter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_complete_at_the_start_and_skills_wherever_they_are_mentioned() {
        let skills = ["create-pr".to_owned(), "clean".to_owned()];
        assert_eq!(
            complete_word(&skills, "/cl"),
            (0, vec!["/clear".to_owned(), "/clean".to_owned()])
        );
        assert_eq!(complete_word(&skills, "mit ä @cr"), (7, vec!["@create-pr".to_owned()]));
        assert_eq!(complete_word(&skills, "a /c").1, Vec::<String>::new());
        assert_eq!(complete_word(&skills, "").1, Vec::<String>::new());
    }

    #[test]
    fn a_path_is_no_command() {
        assert_eq!(invoked_name("/why not"), Some("why"));
        assert_eq!(invoked_name("/etc/passwd is what?"), None);
        assert_eq!([invoked_name("/ what"), invoked_name("why"), invoked_name("/")], [None; 3]);
    }
}
