//! What an agent does, shown while it does it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use prowess_agent::{EventKind, Middleware, SkillScore, TokenUsage, Trace, Turn};
use prowess_runtime::{KnownSecrets, Masking};
use prowess_runtime::{Outcome, OutcomeStatus};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{approver::is_noted, highlight::Highlighter, pending, printer::Printer, safe};

/// How what happens is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// What the model says, as it comes, and what it does beside it.
    Stream,
    /// The answer alone, at the end.
    Whole,
    /// Every event as a line of JSON, as it comes.
    Events,
    /// All of them in one document, at the end.
    Document,
    /// What would be sent: nothing is, and nothing is started.
    Dry,
}

/// Something that happened, on its way to whoever prints.
#[derive(Debug)]
pub(crate) enum UiEvent {
    What(Box<EventKind>),
    /// A line of the trace.
    Line(String),
}

/// A layer that tells whoever prints what happens.
#[derive(Debug)]
pub(crate) struct EventSender {
    sender: UnboundedSender<UiEvent>,
    view: View,
    pieces: Mutex<Pieces>,
}

/// What the model says and thinks piece by piece, without what looks like a secret.
#[derive(Debug)]
struct Pieces {
    heard: Masking,
    thought: Masking,
}

/// Shows what happens, and remembers of a turn what one may ask about later.
#[derive(Debug)]
pub(crate) struct EventRenderer {
    view: View,
    speech: Speech,
    /// Whether the last thing on the terminal is a line that will be replaced.
    has_status: bool,
    /// What the model has said since it was last asked.
    said: usize,
    /// What it has said of a reply that is not whole yet, where only whole ones are shown.
    held: String,
    /// What the tools that are called are given, by the ids of their calls.
    given: BTreeMap<String, String>,
    /// Why something was refused in this turn.
    refusals: BTreeSet<String>,
    /// How each call that was refused in this turn can be allowed, where that is known.
    refused: Vec<Option<String>>,
    /// The lines of the trace.
    pub(crate) lines: Vec<String>,
    /// What happened in this turn, a line each.
    pub(crate) story: Vec<String>,
    /// The skills that the last request was matched to.
    pub(crate) scores: Vec<SkillScore>,
    /// The window that was last filled, and what each part takes of it.
    pub(crate) fitted: Option<(usize, Json)>,
    /// How often the model was asked in this turn.
    pub(crate) steps: usize,
    /// What all turns took.
    pub(crate) spent: TokenUsage,
    /// What that costs, if prices are known.
    pub(crate) cost: Option<f64>,
    /// What this turn took.
    pub(crate) turn_spent: TokenUsage,
    /// What that costs, if prices are known.
    pub(crate) turn_cost: Option<f64>,
}

/// What the model says, made safe for a terminal piece by piece, with the colours of Markdown where there are any.
#[derive(Debug)]
struct Speech {
    colors: Option<Highlighter>,
    /// A line end may follow what the last piece ended with.
    has_return: bool,
    /// Whether what comes next begins a line.
    is_at_start: bool,
}

/// Whoever waits longer wants to know what for.
const LONG: Duration = Duration::from_secs(5);
/// How much of what a tool is given or answers is shown.
const BRIEF: usize = 100;
/// How much of the reason of a refusal is shown: paths are long, and the reason stands behind them.
const REASON: usize = 1000;

fn send(sender: &UnboundedSender<UiEvent>, event: UiEvent) {
    pending::add();
    // Whoever is gone does not want to know.
    if sender.send(event).is_err() {
        pending::done();
    }
}

impl EventSender {
    /// Middleware, where it tells things, and the layer that writes the trace there, where one is wanted.
    /// The secrets are masked in both, whole or in pieces.
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
            // A trace has no pieces; whoever follows the events wants them.
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
    /// What can be shown by now, as what happens now goes on or ends what was said.
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
        // Of the two only the one that ends was before what happens now.
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
            speech: Speech { colors: None, has_return: false, is_at_start: true },
            has_status: false,
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

    /// How it shows things.
    pub(crate) fn view(&self) -> View {
        self.view
    }

    /// Shows something that happened.
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
                // What broke off cannot be taken back from whoever reads a pipe.
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
        if let Some(done) = self.done(&what).or_else(|| self.uses(&what, printer))
            && !printer.verbose
        {
            self.clear(printer)?;
            printer.told(&done);
        }
        if let EventKind::Server { server, skill, state, message } = &what
            && ["refused", "failed"].contains(&&**state)
        {
            self.clear(printer)?;
            let message = message.replace('\n', "; ");
            // One that is set belongs to no skill.
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
            // What a server is given is for a person to set, and not for the model.
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
        printer.told(&story);
        Ok(())
    }

    /// Ends what is shown, so that something else can be.
    pub(crate) fn end(&mut self, printer: &mut Printer) -> Result<()> {
        self.held.clear();
        self.clear(printer)
    }

    /// Says the answer, where it was not said as it came.
    pub(crate) fn answer(&mut self, text: &str, printer: &mut Printer) -> Result<()> {
        self.clear(printer)?;
        if self.view == View::Whole || self.view == View::Stream && self.said == 0 {
            self.say(text, printer)?;
        }
        self.end_line(printer)
    }

    /// How many actions were refused in this turn, and how to allow them; nothing where none was.
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

    /// What is told of a call that did something, or was not allowed to.
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

    /// A refusal with its reason, whole, where that is not told yet.
    fn refusal(&mut self, outcome: &Outcome) -> String {
        let is_new = |it: &&String| !is_noted(it) && self.refusals.insert((*it).clone());
        match outcome.message.as_ref().filter(is_new) {
            Some(message) => format!("refused ({})", safe::cut(&safe::line(message), REASON)),
            None => "refused".to_owned(),
        }
    }

    /// What is told of a skill that is used, where no line that changes says so.
    fn uses(&self, what: &EventKind, printer: &Printer) -> Option<String> {
        let is_shown = matches!(self.view, View::Stream | View::Whole) && !printer.err_is_terminal;
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
            EventKind::Asked { step, .. } => {
                (self.steps, self.said) = (*step, 0);
                // A block of code that was not closed ends with the reply.
                self.speech.colors = None;
            }
            EventKind::Spending { spent, cost, turn_cost } => {
                (self.spent, self.cost, self.turn_cost) = (*spent, *cost, *turn_cost);
            }
            EventKind::Ended { spent, .. } => self.turn_spent = *spent,
            _ => {}
        }
    }

    fn say(&mut self, text: &str, printer: &mut Printer) -> Result<()> {
        self.said += text.len();
        if self.has_status {
            printer.progress_ends();
            self.has_status = false;
        }
        if printer.colored {
            self.speech.colors.get_or_insert_default();
        }
        printer.raw(self.speech.safe(text).as_bytes())?;
        printer.flush()
    }

    /// Shows what is going on, instead of what was shown before.
    fn status(&mut self, text: &str, printer: &mut Printer) -> Result<()> {
        if self.view == View::Stream && printer.is_terminal {
            self.end_line(printer)?;
        }
        printer.progress(&safe::cut(&safe::line(text), printer.err_width()));
        self.has_status = true;
        Ok(())
    }

    /// Takes away what will be replaced, and ends the line that is being said.
    fn clear(&mut self, printer: &mut Printer) -> Result<()> {
        if self.has_status {
            printer.progress_ends();
            self.has_status = false;
        }
        if printer.is_terminal { self.end_line(printer) } else { Ok(()) }
    }

    fn end_line(&mut self, printer: &mut Printer) -> Result<()> {
        let (rest, is_open) = self.speech.ends();
        if !rest.is_empty() {
            printer.raw(rest.as_bytes())?;
        }
        if is_open {
            printer.line("")?;
        }
        printer.flush()
    }
}

impl Speech {
    /// A piece as a terminal can show it: line ends of every kind stay, whatever else would move the
    /// cursor is shown.
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
        let text = safe::lines(&text);
        match &mut self.colors {
            Some(colors) => colors.piece(&text),
            None => text.into_owned(),
        }
    }

    /// Ends what is being said: what was held back of it, and whether it leaves a line open.
    fn ends(&mut self) -> (String, bool) {
        self.has_return = false;
        let rest = self.colors.as_mut().map(Highlighter::end).unwrap_or_default();
        (rest, !std::mem::replace(&mut self.is_at_start, true))
    }
}

/// What happened, in a line; nothing for what nobody follows.
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

/// Whether a call of one of our tools changes nothing.
fn only_looks(tool: &str, input: &str) -> bool {
    let reads = || {
        let input: Json = serde_json::from_str(input).unwrap_or_default();
        input["operation"] == "read" || input["operation"] == "list"
    };
    ["use_skill", "find_skills", "read_file"].contains(&tool)
        || tool == "file_operations" && reads()
}

/// A skill that was considered, with how sure that is.
fn score(score: &SkillScore) -> String {
    if score.carried {
        return format!("{} carried over", score.name);
    }
    format!("{} {:.0} %", score.name, score.confidence * 100.0)
}

/// The same with how much of it is shown, and what speaks for it.
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

/// One field of each object of a list.
fn names(list: &Json, field: &str) -> String {
    let names = list.as_array().into_iter().flatten().filter_map(|it| it[field].as_str());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_in_pieces_moves_no_cursor_and_keeps_its_lines() {
        let mut speech = Speech { colors: None, has_return: false, is_at_start: true };
        let mut said = |piece: &str| speech.safe(piece);
        assert_eq!([said("a\r"), said("\nb\x1b"), said("[2J\r"), said("x")], {
            ["a", "\nb\\u{1b}", "[2J", "\\u{d}x"].map(str::to_owned)
        });
        assert_eq!(speech.ends(), (String::new(), true));
        assert_eq!(speech.ends(), (String::new(), false));
    }
}
