//! Prints the events of an agent as they happen.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use prowess_agent::{EventKind, Middleware, SkillScore, TokenUsage, Trace, Turn};
use prowess_runtime::secret::{KnownSecrets, Masking};
use prowess_runtime::{Outcome, OutcomeStatus};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    approver::is_noted,
    markdown::MarkdownStream,
    pending,
    printer::{Printer, clock},
    safe,
};

/// The way events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The text of the model as it comes, and its actions.
    Stream,
    /// The answer alone, at the end.
    Whole,
    /// Every event as a line of JSON, as it comes.
    Events,
    /// All events in one document, at the end.
    Document,
    /// The request that would be sent: nothing is sent, and nothing is started.
    Dry,
}

/// An event on its way to the printer.
#[derive(Debug)]
pub(crate) enum UiEvent {
    What(Box<EventKind>),
    /// A line of the trace.
    Line(String),
}

/// Middleware that sends events to the printer.
#[derive(Debug)]
pub(crate) struct EventSender {
    sender: UnboundedSender<UiEvent>,
    view: View,
    pieces: Mutex<Pieces>,
}

/// The streamed text and reasoning of the model, with secrets redacted.
#[derive(Debug)]
struct Pieces {
    heard: Masking,
    thought: Masking,
}

/// Prints events, and remembers facts of a turn for later questions.
#[derive(Debug)]
pub(crate) struct EventRenderer {
    view: View,
    speech: Speech,
    /// The line at the end of the terminal that will be replaced.
    status: Option<StatusLine>,
    /// The length of the text of the model since its last request.
    said: usize,
    /// The text of a reply that is not complete, if only complete ones are printed.
    held: String,
    /// The arguments of open tool calls, by call id.
    given: BTreeMap<String, String>,
    /// The reasons of refusals in this turn.
    refusals: BTreeSet<String>,
    /// For each call refused in this turn, how to allow it, if known.
    refused: Vec<Option<String>>,
    /// The lines of the trace.
    pub(crate) lines: Vec<String>,
    /// The events of this turn, one line each.
    pub(crate) story: Vec<String>,
    /// The skills that the last request was matched to.
    pub(crate) scores: Vec<SkillScore>,
    /// The size of the last filled window, and the tokens of each part.
    pub(crate) fitted: Option<(usize, Json)>,
    /// The number of requests to the model in this turn.
    pub(crate) steps: usize,
    /// The token usage of all turns.
    pub(crate) spent: TokenUsage,
    /// Its cost, if prices are known.
    pub(crate) cost: Option<f64>,
    /// The token usage of this turn.
    pub(crate) turn_spent: TokenUsage,
    /// Its cost, if prices are known.
    pub(crate) turn_cost: Option<f64>,
}

/// A line about the work at hand, with the time since that began.
#[derive(Debug)]
struct StatusLine {
    text: String,
    since: Instant,
}

/// The text of the model, made safe for a terminal piece by piece.
#[derive(Debug)]
struct Speech {
    /// The Markdown that is being rendered, where there are colours.
    markdown: Option<MarkdownStream>,
    /// Whether the last piece ended with a carriage return, which a line feed may follow.
    has_return: bool,
    /// Whether the next piece begins a line.
    is_at_start: bool,
}

/// A wait longer than this is explained.
const LONG: Duration = Duration::from_secs(5);
/// The longest excerpt of a tool's arguments or result.
const BRIEF: usize = 100;
/// The longest excerpt of the reason of a refusal: paths are long, and the reason follows them.
const REASON: usize = 1000;

fn send(sender: &UnboundedSender<UiEvent>, event: UiEvent) {
    pending::add();
    // The receiver may be gone.
    if sender.send(event).is_err() {
        pending::done();
    }
}

impl EventSender {
    /// Returns the middleware, the middleware that writes the trace if it is printed, and the
    /// receiver. Secrets are redacted in both, whole or in pieces.
    pub(crate) fn new(
        view: View,
        secrets: &KnownSecrets,
    ) -> (Self, Option<Trace>, UnboundedReceiver<UiEvent>) {
        let (sender, receiver) = unbounded_channel();
        let lines = sender.clone();
        let trace = matches!(view, View::Events | View::Document).then(|| {
            let trace = Trace::new(move |line| {
                send(&lines, UiEvent::Line(line.to_owned()));
                Ok(())
            });
            trace.without(secrets.clone())
        });
        let masking = Masking::new(secrets.clone());
        let pieces = Mutex::new(Pieces { heard: masking.clone(), thought: masking });
        (Self { sender, view, pieces }, trace, receiver)
    }
}

impl Middleware for EventSender {
    fn name(&self) -> &str {
        "events"
    }

    fn note(&self, turn: &Turn, what: &EventKind) {
        if self.view == View::Events {
            let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
            // A trace has no pieces, but a live view prints them.
            for piece in pieces.take(what) {
                let line = serde_json::to_string(&turn.event(&piece)).unwrap_or_default();
                send(&self.sender, UiEvent::Line(line));
            }
            if what.is_piece() {
                return;
            }
        }
        send(&self.sender, UiEvent::What(Box::new(what.clone())));
    }
}

impl Pieces {
    /// Returns the events that can be printed now, given that this event continues or ends the text
    /// so far.
    fn take(&mut self, what: &EventKind) -> Vec<EventKind> {
        let heard = match what {
            EventKind::Heard { text } => self.heard.take(text),
            _ => self.heard.finish(),
        };
        let thought = match what {
            EventKind::Thought { text } => self.thought.take(text),
            _ => self.thought.finish(),
        };
        let heard = (!heard.is_empty()).then_some(EventKind::Heard { text: heard });
        let thought = (!thought.is_empty()).then_some(EventKind::Thought { text: thought });
        let calls = matches!(what, EventKind::Calls { .. }).then(|| what.clone());
        // Of text and reasoning, only the one that ends came before this event.
        let said = match what {
            EventKind::Heard { .. } => [thought, heard],
            _ => [heard, thought],
        };
        said.into_iter().flatten().chain(calls).collect()
    }
}

impl EventRenderer {
    pub(crate) fn new(view: View) -> Self {
        Self {
            view,
            speech: Speech { markdown: None, has_return: false, is_at_start: true },
            status: None,
            said: 0,
            held: String::new(),
            given: BTreeMap::new(),
            refusals: BTreeSet::new(),
            refused: Vec::new(),
            lines: Vec::new(),
            story: Vec::new(),
            scores: Vec::new(),
            fitted: None,
            steps: 0,
            spent: TokenUsage::default(),
            cost: None,
            turn_spent: TokenUsage::default(),
            turn_cost: None,
        }
    }

    /// Returns the way events are printed.
    pub(crate) fn view(&self) -> View {
        self.view
    }

    /// Prints an event.
    pub(crate) fn show(&mut self, event: UiEvent, printer: &mut Printer) -> Result<()> {
        let shown = self.show_event(event, printer);
        pending::done();
        shown
    }

    fn show_event(&mut self, event: UiEvent, printer: &mut Printer) -> Result<()> {
        let what = match event {
            UiEvent::What(what) => *what,
            UiEvent::Line(line) if self.view == View::Events => {
                printer.line(safe::json(&line))?;
                return printer.flush();
            }
            UiEvent::Line(line) => {
                self.lines.push(line);
                return Ok(());
            }
        };
        self.remember(&what);
        if matches!(what, EventKind::Asked { .. }) && self.view == View::Stream {
            self.end_line(printer)?;
        }
        if self.view == View::Stream {
            match &what {
                EventKind::Heard { text } if printer.is_terminal => return self.say(text, printer),
                // Text that breaks off cannot be taken back from a pipe.
                EventKind::Heard { text } => self.held.push_str(text),
                EventKind::Replied { .. } if !printer.is_terminal => {
                    let reply = std::mem::take(&mut self.held);
                    self.say(&reply, printer)?;
                    self.end_line(printer)?;
                }
                EventKind::Failed { .. } => self.held.clear(),
                _ => {}
            }
        }
        if let EventKind::Retried { .. } = &what
            && self.said > 0
            && self.view == View::Stream
        {
            self.end_line(printer)?;
            printer.note("the reply was interrupted; it restarts below");
            self.said = 0;
        }
        if let EventKind::Retried { wait, message, .. } = &what
            && *wait >= LONG
            && !printer.verbose
        {
            self.clear(printer)?;
            printer.note(&format!("{message}; retrying in {:.0} s", wait.as_secs_f64()));
        }
        if let EventKind::Warned { message } = &what {
            self.clear(printer)?;
            printer.warning(message);
        }
        if let Some(done) = self.done(&what).or_else(|| self.uses(&what))
            && !printer.verbose
        {
            self.clear(printer)?;
            printer.dimmed_note(&done);
        }
        if let EventKind::Server { server, skill, state, message } = &what
            && ["refused", "failed"].contains(&&**state)
        {
            self.clear(printer)?;
            let message = message.replace('\n', "; ");
            // A configured server belongs to no skill.
            let of = if skill.is_empty() { String::new() } else { format!(" of skill `{skill}`") };
            let why = match message.strip_prefix(&format!("the server `{server}` ")) {
                Some(rest) => rest.to_owned(),
                None if state == "refused" => format!("is not started: {message}"),
                None => format!("{state}: {message}"),
            };
            printer.warning(&format!("the server `{server}`{of} {why}"));
        }
        if let EventKind::Returned { tool, outcome, .. } = &what
            && let Some(hint) = outcome.hint.as_ref().filter(|_| !outcome.is_ok())
            && tool.starts_with("mcp__")
            && matches!(self.view, View::Stream | View::Whole)
            && !printer.quiet
        {
            // The configuration of a server is for a person, not for the model.
            self.clear(printer)?;
            printer.hint(hint);
        }
        let Some(story) = story(&what) else { return Ok(()) };
        if what.is_piece() {
            return self.status(&story, printer);
        }
        self.story.push(story.clone());
        if !printer.verbose {
            return self.status(&story, printer);
        }
        self.clear(printer)?;
        printer.dimmed_note(&story);
        Ok(())
    }

    /// Ends the current line, so that something else can be printed.
    pub(crate) fn end(&mut self, printer: &mut Printer) -> Result<()> {
        self.held.clear();
        self.clear(printer)
    }

    /// Prints the answer, unless it was streamed.
    pub(crate) fn answer(&mut self, text: &str, printer: &mut Printer) -> Result<()> {
        self.clear(printer)?;
        if self.view == View::Whole || self.view == View::Stream && self.said == 0 {
            self.say(text, printer)?;
        }
        self.end_line(printer)
    }

    /// Returns the number of actions refused in this turn, and how to allow them; `None` if there
    /// were none.
    pub(crate) fn refused(&self) -> Option<String> {
        let hints: BTreeSet<&str> = self.refused.iter().flatten().map(|it| &**it).collect();
        let how = match (hints.len(), hints.first()) {
            (1, Some(hint)) => format!(": {hint}"),
            _ => "; the reasons are above".to_owned(),
        };
        match self.refused.len() {
            0 => None,
            1 => Some(format!("1 action was refused{how}")),
            many => Some(format!("{many} actions were refused{how}")),
        }
    }

    /// Returns the line for a call that had an effect, or was refused.
    fn done(&mut self, what: &EventKind) -> Option<String> {
        match what {
            EventKind::Called { id, input, .. } => {
                self.given.insert(id.clone(), input.clone());
                None
            }
            EventKind::Returned { id, tool, outcome, .. } => {
                let input = self.given.remove(id).unwrap_or_default();
                let is_refused = outcome.status == OutcomeStatus::Refused;
                let is_told = matches!(self.view, View::Stream | View::Whole)
                    && (is_refused || !only_looks(tool, &input));
                let ended = if is_refused { self.refusal(outcome) } else { ended(outcome) };
                is_told.then(|| format!("{tool} {}: {ended}", brief(&input)))
            }
            _ => None,
        }
    }

    /// Returns a refusal, with its whole reason unless that was printed already.
    fn refusal(&mut self, outcome: &Outcome) -> String {
        match outcome
            .message
            .as_ref()
            .filter(|it: &&String| !is_noted(it) && self.refusals.insert((*it).clone()))
        {
            Some(message) => format!("refused ({})", safe::cut(&safe::line(message), REASON)),
            None => "refused".to_owned(),
        }
    }

    /// Returns the line for an activated skill.
    fn uses(&self, what: &EventKind) -> Option<String> {
        let is_shown = matches!(self.view, View::Stream | View::Whole);
        match what {
            EventKind::Disclosed { skill, level, by, .. }
                if is_shown && level == "full" && by != "read_file" =>
            {
                Some(format!("uses skill `{skill}`"))
            }
            _ => None,
        }
    }

    fn remember(&mut self, what: &EventKind) {
        match what {
            EventKind::Began { .. } => {
                self.story.clear();
                self.given.clear();
                self.refusals.clear();
                self.refused.clear();
                self.steps = 0;
                (self.turn_spent, self.turn_cost) = (TokenUsage::default(), None);
            }
            EventKind::Returned { outcome, .. } if outcome.status == OutcomeStatus::Refused => {
                self.refused.push(outcome.hint.clone());
            }
            EventKind::Matched { scores, .. } => self.scores.clone_from(scores),
            EventKind::Fitted { window, tokens, .. } => {
                self.fitted = Some((*window, tokens.clone()));
            }
            EventKind::Asked { step, .. } => (self.steps, self.said) = (*step, 0),
            EventKind::Spending { spent, cost, turn_cost } => {
                (self.spent, self.cost, self.turn_cost) = (*spent, *cost, *turn_cost);
            }
            EventKind::Ended { spent, .. } => self.turn_spent = *spent,
            _ => {}
        }
    }

    fn say(&mut self, text: &str, printer: &mut Printer) -> Result<()> {
        // Some servers begin a reply with nothing, and then think.
        if text.is_empty() {
            return Ok(());
        }
        self.said += text.len();
        self.end_status(printer);
        if printer.colored {
            let markdown = self.speech.markdown.get_or_insert_with(|| printer.markdown_stream());
            return match markdown.push(text) {
                Some((finished, unfinished)) => printer.redraw(&finished, &unfinished),
                None => Ok(()),
            };
        }
        printer.raw(self.speech.safe(text).as_bytes())?;
        printer.flush()
    }

    /// Replaces the status line.
    fn status(&mut self, text: &str, printer: &mut Printer) -> Result<()> {
        if self.view == View::Stream && printer.is_terminal {
            self.end_line(printer)?;
        }
        let before = self.status.take().filter(|it| it.text == text);
        let since = before.map_or_else(Instant::now, |it| it.since);
        self.status = Some(StatusLine { text: text.to_owned(), since });
        self.tick(printer);
        Ok(())
    }

    /// Shows for how many seconds the work at hand has been going on.
    pub(crate) fn tick(&self, printer: &mut Printer) {
        let Some(StatusLine { text, since }) = &self.status else { return };
        let clock = clock(since.elapsed());
        let room = printer.err_width().saturating_sub(clock.len());
        printer.progress(&format!("{}{clock}", safe::cut(&safe::line(text), room)));
    }

    fn end_status(&mut self, printer: &mut Printer) {
        if self.status.take().is_some() {
            printer.progress_ends();
        }
    }

    /// Removes the status line, and ends the line of text being streamed.
    fn clear(&mut self, printer: &mut Printer) -> Result<()> {
        self.end_status(printer);
        if printer.is_terminal { self.end_line(printer) } else { Ok(()) }
    }

    fn end_line(&mut self, printer: &mut Printer) -> Result<()> {
        if let Some(mut markdown) = self.speech.markdown.take() {
            return printer.redraw(&markdown.finish(), "");
        }
        if self.speech.end() {
            printer.line("")?;
        }
        printer.flush()
    }
}

impl Speech {
    /// Makes a piece safe for a terminal: keeps line ends of every kind, escapes other control
    /// characters.
    fn safe(&mut self, piece: &str) -> String {
        let mut text = String::with_capacity(piece.len() + 1);
        if std::mem::take(&mut self.has_return) {
            text.push('\r');
        }
        text.push_str(piece);
        if text.ends_with('\r') {
            self.has_return = true;
            text.pop();
        }
        if let Some(last) = text.chars().last() {
            self.is_at_start = last == '\n';
        }
        let text = text.replace("\r\n", "\n");
        safe::lines(&text).into_owned()
    }

    /// Ends the text, and returns whether it leaves a line open.
    fn end(&mut self) -> bool {
        self.has_return = false;
        !std::mem::replace(&mut self.is_at_start, true)
    }
}

/// Describes an event in one line; `None` for events of no interest.
fn story(what: &EventKind) -> Option<String> {
    Some(match what {
        EventKind::Matched { scores, .. } => {
            let shown = || scores.iter().filter(|it| it.level.is_some());
            let fitting: Vec<String> = shown().filter(|it| !it.carried).map(score).collect();
            let carried: Vec<&str> = shown().filter(|it| it.carried).map(|it| &*it.name).collect();
            let lists =
                [("matching skills", fitting.join(", ")), ("carried over", carried.join(", "))];
            let told = lists.iter().filter(|it| !it.1.is_empty());
            let told: Vec<String> = told.map(|(what, names)| format!("{what}: {names}")).collect();
            if told.is_empty() {
                return None;
            }
            told.join("; ")
        }
        EventKind::Disclosed { skill, level, by, tokens } => match by.as_str() {
            "read_file" => format!("reads `{level}` of skill `{skill}` ({tokens} tokens)"),
            "use_skill" => format!("loads skill `{skill}` ({tokens} tokens)"),
            _ => format!("shows skill `{skill}`: {level}, {by} ({tokens} tokens)"),
        },
        EventKind::Retrieved { documents } => format!("adds {}", documents.join(", ")),
        EventKind::Fitted { steps, .. } => match steps.as_array().map(Vec::len) {
            None | Some(0) => return None,
            Some(_) => format!("makes the prompt fit: {}", names(steps, "step")),
        },
        EventKind::Compacted { before, after, by } => {
            format!("summarised {before} messages into {after} (by {by})")
        }
        EventKind::Asked { step, model, .. } => format!("asks `{model}` (step {step})"),
        EventKind::Thought { .. } => "thinks".to_owned(),
        EventKind::Calls { tool } => format!("is about to call {tool}"),
        EventKind::Replied { reply, took, .. } => {
            format!("replied after {:.1} s: {}", took.as_secs_f64(), reply.spent)
        }
        EventKind::Failed { message, .. } => format!("no reply: {message}"),
        EventKind::Retried { attempt, message, wait } => {
            format!("retries in {:.1} s (attempt {attempt}): {message}", wait.as_secs_f64())
        }
        EventKind::Called { tool, input, .. } => format!("calls {tool} {}", brief(input)),
        EventKind::Returned { tool, outcome, took, .. } => {
            format!("{tool}: {} after {:.1} s", ended(outcome), took.as_secs_f64())
        }
        EventKind::Approval { what, reply, .. } => format!("may it {what}? {reply}"),
        EventKind::Server { server, state, message, .. } => {
            format!("server `{server}` {state}: {}", brief(message))
        }
        _ => return None,
    })
}

/// Returns whether a call of a built-in tool is read-only.
fn only_looks(tool: &str, input: &str) -> bool {
    let reads = || {
        let input: Json = serde_json::from_str(input).unwrap_or_default();
        input["operation"] == "read" || input["operation"] == "list"
    };
    ["use_skill", "find_skills", "read_file"].contains(&tool)
        || tool == "file_operations" && reads()
}

/// Formats a skill that was considered, with its confidence.
fn score(score: &SkillScore) -> String {
    if score.carried {
        return format!("{} carried over", score.name);
    }
    format!("{} {:.0} %", score.name, score.confidence * 100.0)
}

/// Like [`score`], with the disclosure level and the evidence.
pub(crate) fn judged(it: &SkillScore) -> String {
    let level = it.level.as_deref().unwrap_or("not shown");
    let why = if it.why.is_empty() { String::new() } else { format!(": {}", it.why.join(", ")) };
    format!("{}, {level}{why}", score(it))
}

fn ended(outcome: &Outcome) -> String {
    let status = json!(outcome.status);
    let status = status.as_str().unwrap_or_default();
    match &outcome.message {
        Some(message) if !outcome.is_ok() => format!("{status} ({})", brief(message)),
        _ => status.to_owned(),
    }
}

fn brief(text: &str) -> String {
    safe::cut(&safe::line(text), BRIEF)
}

/// Joins one field of each object of a list.
fn names(list: &Json, field: &str) -> String {
    let names = list.as_array().into_iter().flatten().filter_map(|it| it[field].as_str());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_in_pieces_moves_no_cursor_and_keeps_its_lines() {
        let mut speech = Speech { markdown: None, has_return: false, is_at_start: true };
        let mut said = |piece: &str| speech.safe(piece);
        assert_eq!([said("a\r"), said("\nb\x1b"), said("[2J\r"), said("x")], {
            ["a", "\nb\\u{1b}", "[2J", "\\u{d}x"].map(str::to_owned)
        });
        assert_eq!([speech.end(), speech.end()], [true, false]);
    }
}
