//! Prints the events of an agent as they happen.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use prowess_agent::{EventDescription, EventKind, Middleware, SkillScore, TokenUsage, Trace, Turn};
use prowess_runtime::secret::{KnownSecrets, Masking};
use prowess_runtime::{Outcome, OutcomeStatus};
use serde_json::Value as Json;
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
    /// An event as it is.
    Event(Box<EventKind>),
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
    streamed: usize,
    /// The text of a reply that is not complete, if only complete ones are printed.
    pending: String,
    /// The open tool calls, by id.
    calls: BTreeMap<String, OpenCall>,
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

/// A tool call that has not returned.
#[derive(Debug, Default)]
struct OpenCall {
    /// What it does; its tool and input, if that is not known.
    action: String,
    /// Whether it only reads.
    only_reads: bool,
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
/// The longest excerpt of an action, or of a tool's arguments or result.
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
        send(&self.sender, UiEvent::Event(Box::new(what.clone())));
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
            streamed: 0,
            pending: String::new(),
            calls: BTreeMap::new(),
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
        let event = match event {
            UiEvent::Event(event) => *event,
            UiEvent::Line(line) if self.view == View::Events => {
                printer.line(safe::json(&line))?;
                return printer.flush();
            }
            UiEvent::Line(line) => {
                self.lines.push(line);
                return Ok(());
            }
        };
        self.remember(&event);
        if self.view == View::Stream {
            match &event {
                EventKind::Asked { .. } => self.end_line(printer)?,
                EventKind::Heard { text } if printer.is_terminal => return self.say(text, printer),
                // Text that breaks off cannot be taken back from a pipe.
                EventKind::Heard { text } => self.pending.push_str(text),
                EventKind::Replied { .. } if !printer.is_terminal => {
                    let reply = std::mem::take(&mut self.pending);
                    self.say(&reply, printer)?;
                    self.end_line(printer)?;
                }
                EventKind::Failed { .. } => self.pending.clear(),
                _ => {}
            }
        }
        self.report(&event, printer)?;
        let Some(line) = event_line(&event) else { return Ok(()) };
        if event.is_piece() {
            return self.show_status(&line, printer);
        }
        self.story.push(line.clone());
        if !printer.verbose {
            return self.show_status(&line, printer);
        }
        self.clear(printer)?;
        printer.dimmed_note(&line);
        Ok(())
    }

    /// Prints what a person should see of an event, verbose or not.
    fn report(&mut self, event: &EventKind, printer: &mut Printer) -> Result<()> {
        let is_live = matches!(self.view, View::Stream | View::Whole);
        match event {
            EventKind::Retried { wait, message, .. } => {
                if self.streamed > 0 && self.view == View::Stream {
                    self.end_line(printer)?;
                    printer.note("the reply was interrupted; it restarts below");
                    self.streamed = 0;
                }
                if *wait >= LONG && !printer.verbose {
                    self.clear(printer)?;
                    printer.note(&format!("{message}; retrying in {:.0} s", wait.as_secs_f64()));
                }
            }
            EventKind::Warned { message } => {
                self.clear(printer)?;
                printer.warning(message);
            }
            EventKind::Disclosed { skill, level, by, .. }
                if is_live && level == "full" && by != "read_file" && !printer.verbose =>
            {
                self.clear(printer)?;
                printer.dimmed_note(&format!("uses skill `{skill}`"));
            }
            EventKind::Called { id, tool, input, action, only_reads } => {
                let action = action.clone().unwrap_or_else(|| format!("{tool} {input}"));
                self.calls.insert(id.clone(), OpenCall { action, only_reads: *only_reads });
            }
            EventKind::Returned { id, tool, outcome, .. } => {
                let call = self.calls.remove(id).unwrap_or_default();
                if is_live {
                    self.report_call(&call, tool, outcome, printer)?;
                }
            }
            EventKind::Server { server, skill, state, message }
                if ["refused", "failed"].contains(&&**state) =>
            {
                self.clear(printer)?;
                let message = message.replace('\n', "; ");
                // A configured server belongs to no skill.
                let of =
                    if skill.is_empty() { String::new() } else { format!(" of skill `{skill}`") };
                let why = match message.strip_prefix(&format!("the server `{server}` ")) {
                    Some(rest) => rest.to_owned(),
                    None if state == "refused" => format!("is not started: {message}"),
                    None => format!("{state}: {message}"),
                };
                printer.warning(&format!("the server `{server}`{of} {why}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints what came of a call that had an effect, or was refused.
    fn report_call(
        &mut self,
        call: &OpenCall,
        tool: &str,
        outcome: &Outcome,
        printer: &mut Printer,
    ) -> Result<()> {
        let is_refused = outcome.status == OutcomeStatus::Refused;
        let result = match is_refused {
            true => self.refusal(outcome),
            false => describe_outcome(outcome),
        };
        if (is_refused || !call.only_reads) && !printer.verbose {
            self.clear(printer)?;
            printer.dimmed_note(&format!("{}: {result}", shorten(&call.action)));
        }
        // The configuration of a server is for a person, not for the model.
        let hint = outcome.hint.as_ref().filter(|_| !outcome.is_ok() && tool.starts_with("mcp__"));
        if let Some(hint) = hint.filter(|_| !printer.quiet) {
            self.clear(printer)?;
            printer.hint(hint);
        }
        Ok(())
    }

    /// Ends the current line, so that something else can be printed.
    pub(crate) fn end(&mut self, printer: &mut Printer) -> Result<()> {
        self.pending.clear();
        self.clear(printer)
    }

    /// Prints the answer, unless it was streamed.
    pub(crate) fn answer(&mut self, text: &str, printer: &mut Printer) -> Result<()> {
        self.clear(printer)?;
        if self.view == View::Whole || self.view == View::Stream && self.streamed == 0 {
            self.say(text, printer)?;
        }
        self.end_line(printer)
    }

    /// Returns the number of actions refused in this turn, and how to allow them; `None` if there
    /// were none.
    pub(crate) fn refusal_summary(&self) -> Option<String> {
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

    fn remember(&mut self, what: &EventKind) {
        match what {
            EventKind::Began { .. } => {
                self.story.clear();
                self.calls.clear();
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
            EventKind::Asked { step, .. } => (self.steps, self.streamed) = (*step, 0),
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
        self.streamed += text.len();
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
    fn show_status(&mut self, text: &str, printer: &mut Printer) -> Result<()> {
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

/// Returns an event in one line; `None` if it is of no interest, or reported otherwise.
fn event_line(event: &EventKind) -> Option<String> {
    let EventDescription { sentence, text, .. } = event.describe();
    match event {
        EventKind::Began { .. }
        | EventKind::Discovered { .. }
        | EventKind::Heard { .. }
        | EventKind::Spending { .. }
        | EventKind::Warned { .. }
        | EventKind::Ended { .. } => None,
        EventKind::Matched { scores, .. } if scores.iter().all(|it| it.level.is_none()) => None,
        EventKind::Fitted { steps, .. } if steps.as_array().is_none_or(Vec::is_empty) => None,
        // The reply itself is the answer.
        EventKind::Replied { .. } => Some(sentence),
        _ => Some(match text {
            Some(text) => format!("{sentence}: {}", shorten(&text)),
            None => sentence,
        }),
    }
}

/// Describes a skill that was considered, with its disclosure level and the evidence.
pub(crate) fn describe_score(score: &SkillScore) -> String {
    let level = score.level.as_deref().unwrap_or("not shown");
    let why = if score.why.is_empty() { "" } else { ": " };
    format!("{score}, {level}{why}{}", score.why.join(", "))
}

/// Describes what came of a call: its status, and the reason it failed.
fn describe_outcome(outcome: &Outcome) -> String {
    let status = outcome.status.as_str();
    match &outcome.message {
        Some(message) if !outcome.is_ok() => format!("{status} ({})", shorten(message)),
        _ => status.to_owned(),
    }
}

fn shorten(text: &str) -> String {
    safe::cut(&safe::line(text), BRIEF)
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
