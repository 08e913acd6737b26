//! The only place that prints. Data goes to stdout, everything else to stderr.

use std::{
    env,
    fmt::Display,
    io::{self, BufWriter, IsTerminal as _, Write as _},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, Result};
use prowess::{Finding, Severity, WorkProgress, did_you_mean};
use prowess_cli::settings::ConfigError;
use prowess_runtime::{Outcome, sandbox::ScriptConnection};
use serde::Serialize;
use serde_json::json;
use terminal_size::terminal_size_of;

#[cfg(feature = "agent")]
use crate::markdown::MarkdownStream;
use crate::{
    arguments::Global,
    context,
    markdown::{self, wrap},
    safe, snippet, suggest, sys,
};

/// The time after which progress is printed.
pub(crate) const LONG: Duration = Duration::from_millis(500);
/// The time between two drawings of a bar.
const REDRAW: Duration = Duration::from_millis(100);
/// The length of a bar, in columns.
const BAR: usize = 20;
/// The error when nothing more can be printed.
const UNWRITTEN: &str = "cannot write to standard output";
/// The number of refused connections that are printed without `-v`.
const REFUSED: usize = 10;
/// The colours of messages on stderr.
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const NOTE: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const NAME: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

pub(crate) struct Printer {
    out: BufWriter<io::Stdout>,
    err: io::Stderr,
    pub(crate) err_colored: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) json: bool,
    pub(crate) is_terminal: bool,
    pub(crate) err_is_terminal: bool,
    /// Whether progress is printed: to a person, at a terminal that can erase a line.
    shows_progress: bool,
    /// Whether a progress line has to be erased.
    is_progress_shown: bool,
    /// Whether lines of stdout can be replaced.
    #[cfg(feature = "agent")]
    redraws: bool,
    /// The rows at the end of stdout that will be replaced.
    #[cfg(feature = "agent")]
    draft_rows: usize,
    /// The width of the terminal; `None` if the output is not one, and then nothing is cut.
    pub(crate) width: Option<usize>,
    /// The height of the terminal in lines; `None` if the output is not one.
    pub(crate) height: Option<usize>,
    pub(crate) colored: bool,
    /// The options that a suggested command needs to search the same directories.
    typed: String,
    /// Whether any data was printed.
    has_data: bool,
    /// Whether ignored settings were noted, which is done once per command.
    pub(crate) has_noted_ignored_settings: bool,
    /// The warnings that were printed.
    warnings: Vec<String>,
    /// The errors and hints that were printed.
    errors: Vec<String>,
    hints: Vec<String>,
}

impl Printer {
    pub(crate) fn new(global: &Global) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let (is_terminal, err_is_terminal) = (stdout.is_terminal(), stderr.is_terminal());
        // Decided by `--color`, otherwise by the terminal and the variables about colours.
        let colored = !global.json && AutoStream::choice(&stdout) != ColorChoice::Never;
        let err_colored = AutoStream::choice(&stderr) != ColorChoice::Never;
        let width = is_terminal.then(|| width(&stdout)).flatten();
        let height = terminal_size_of(&stdout).map(|it| usize::from(it.1.0)).filter(|it| *it > 0);
        let takes_back = env::var_os("TERM").is_some_and(|it| it != "dumb");
        Self {
            out: BufWriter::with_capacity(1 << 16, stdout),
            err: stderr,
            err_colored,
            quiet: global.quiet,
            verbose: global.verbose,
            json: global.json,
            is_terminal,
            err_is_terminal,
            shows_progress: err_is_terminal && takes_back && !global.quiet && !global.json,
            is_progress_shown: false,
            #[cfg(feature = "agent")]
            redraws: is_terminal && takes_back,
            #[cfg(feature = "agent")]
            draft_rows: 0,
            width,
            height: height.filter(|_| is_terminal),
            colored,
            typed: context::directory_flags(global),
            has_data: false,
            has_noted_ignored_settings: false,
            warnings: Vec::new(),
            errors: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Prints a line of data. Text of a skill must be made safe first.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<()> {
        self.has_data = true;
        writeln!(self.out, "{line}").context(UNWRITTEN)
    }

    /// Styles a name among data.
    pub(crate) fn name(&self, text: &str) -> String {
        paint(text, NAME, self.colored)
    }

    /// Styles a detail among data.
    pub(crate) fn dim(&self, text: &str) -> String {
        paint(text, DIM, self.colored)
    }

    /// Prints raw bytes.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.has_data = true;
        self.out.write_all(bytes).context(UNWRITTEN)
    }

    /// Prints raw bytes on stderr.
    pub(crate) fn stderr_raw(&mut self, bytes: &[u8]) {
        let _ = self.err.write_all(bytes);
    }

    /// Prints one JSON document.
    pub(crate) fn document(&mut self, document: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(document)?;
        self.line(safe::json(&text))
    }

    /// Prints one JSON document on one line.
    pub(crate) fn json_line(&mut self, document: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(document)?;
        self.line(safe::json(&text))
    }

    /// Prints text of several lines, made safe.
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        self.line(safe::lines(text).trim_end())
    }

    /// Prints Markdown: rendered where there are colours, else as it is, made safe.
    pub(crate) fn markdown(&mut self, text: &str) -> Result<()> {
        if self.colored { self.rendered_markdown(text) } else { self.text(text) }
    }

    /// Prints Markdown rendered.
    pub(crate) fn rendered_markdown(&mut self, text: &str) -> Result<()> {
        let text = markdown::render(text, self.prose_width(), self.colored);
        self.line(text.trim_end())
    }

    fn prose_width(&self) -> usize {
        self.width.unwrap_or(80).min(markdown::WIDEST)
    }

    /// Prints the errors as the document of `--json`, unless another was printed.
    pub(crate) fn error_document(&mut self) -> Result<()> {
        if !self.json || self.has_data || self.errors.is_empty() {
            return Ok(());
        }
        let mut document = json!({ "error": self.errors.join("; ") });
        if !self.hints.is_empty() {
            document["hint"] = self.hints.join("; ").into();
        }
        self.document(&document)?;
        self.flush()
    }

    /// Returns whether the reader of the output is gone.
    pub(crate) fn is_closed(&self) -> bool {
        sys::is_closed(self.out.get_ref())
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.out.flush().context(UNWRITTEN)
    }

    /// Prints a note, unless `--quiet` is set.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet {
            self.print_message(NOTE, "note", text);
        }
    }

    /// Reports what the sandbox refused, or probably refused. System calls that the script did
    /// without are reported with `-v`.
    pub(crate) fn report_refused(&mut self, outcome: &Outcome) {
        for denied in &outcome.denied {
            let guess = denied.strip_prefix("probably: ");
            let call = denied.split(" (").next().unwrap_or_default();
            let is_call = call.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
            if outcome.is_ok() && !self.verbose && (is_call || guess.is_some()) {
                continue;
            }
            self.note(&match guess {
                Some(guess) => format!("the sandbox probably refused {guess}"),
                None if denied.starts_with("not searched ") => denied.clone(),
                None => format!("the sandbox refused {denied}"),
            });
        }
    }

    /// Reports the connections that a script was refused; with `-v`, also those it made.
    pub(crate) fn report_network(&mut self, outcome: &Outcome) {
        let mut lines: Vec<String> = Vec::new();
        for ScriptConnection { host, port, bytes_sent, bytes_received, refused } in &outcome.network
        {
            let line = match refused {
                Some(why) if host.is_empty() => format!("no connection: {why}"),
                Some(why) => format!("no connection to {host}:{port}: {why}"),
                None if self.verbose => format!(
                    "connected to {host}:{port}: {bytes_sent} bytes sent, {bytes_received} received"
                ),
                None => continue,
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let most = if self.verbose { lines.len() } else { REFUSED };
        lines.iter().take(most).for_each(|it| self.note(it));
        if let Some(more @ 1..) = lines.len().checked_sub(most) {
            self.note(&format!("{more} more connections were refused; `-v` shows them"));
        }
    }

    /// Prints a warning, unless `--quiet` is set.
    pub(crate) fn warning(&mut self, text: &str) {
        if !self.quiet {
            self.print_message(WARNING, "warning", text);
            self.warnings.push(text.to_owned());
        }
    }

    /// Prints a warning that concerns safety, with `--quiet` too, unless it was printed before.
    pub(crate) fn safety_warning(&mut self, text: &str) {
        if !self.warnings.iter().any(|it| it == text) {
            self.print_message(WARNING, "warning", text);
            self.warnings.push(text.to_owned());
        }
    }

    /// Replaces the progress line on a terminal.
    pub(crate) fn progress(&mut self, text: &str) {
        if !self.shows_progress {
            return;
        }
        let held = held_lines();
        if held.is_none() {
            self.is_progress_shown = !text.is_empty();
            let text = safe::cut(&safe::line(text), self.err_width());
            let _ = self.err.write_all(format!("\r\x1b[K{text}").as_bytes());
        }
    }

    /// Does work that can take a while, with a progress bar on a terminal once it has.
    pub(crate) fn with_progress<T>(&mut self, what: &str, work: impl FnOnce() -> T) -> T {
        if !self.shows_progress {
            return work();
        }
        let progress = Arc::new(WorkProgress::default());
        let (done, is_done) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let observed = progress.clone();
            // Without a thread the work is done without progress.
            let _ = thread::Builder::new().spawn_scoped(scope, move || {
                let mut wait = LONG;
                while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    self.progress_bar(what, observed.counts());
                    wait = REDRAW;
                }
                self.progress_ends();
            });
            let _done = done;
            progress.observe(work)
        })
    }

    /// Draws a progress bar on a terminal.
    pub(crate) fn progress_bar(&mut self, what: &str, (done, total): (usize, usize)) {
        self.progress(&match (done * BAR).checked_div(total) {
            None => format!("{what}…"),
            Some(filled) => {
                let (filled, empty) = ("█".repeat(filled), "░".repeat(BAR - filled));
                format!("{what}  {filled}{empty}  {done} of {total}")
            }
        });
    }

    /// Erases the line of [`progress`](Self::progress).
    pub(crate) fn progress_ends(&mut self) {
        if self.is_progress_shown {
            self.progress("");
        }
    }

    /// Returns the width of a progress line, if it is known.
    pub(crate) fn err_width(&self) -> usize {
        width(&self.err).unwrap_or(80) - 1
    }

    /// Prints an event on stderr, dimmed.
    pub(crate) fn dimmed_note(&mut self, text: &str) {
        let line = paint(&safe::line(text), DIM, self.err_colored);
        self.stderr_line(&line);
    }

    /// Prints a line on stderr. Text of a skill must be made safe first.
    pub(crate) fn stderr_line(&mut self, line: &str) {
        if self.quiet {
            return;
        }
        let line = format!("{line}\n");
        match &mut *held_lines() {
            Some(held) => held.push_str(&line),
            None => drop(self.err.write_all(line.as_bytes())),
        }
    }

    /// Prints an error in the command line.
    pub(crate) fn error_text(&mut self, text: &str) {
        self.errors.push(text.to_owned());
        self.print_message(ERROR, "error", text);
    }

    /// Prints a hint.
    pub(crate) fn hint(&mut self, text: &str) {
        let text = self.with_directory_flags(text);
        self.exact_hint(&text);
    }

    /// Prints a hint whose commands are complete already.
    pub(crate) fn exact_hint(&mut self, text: &str) {
        self.print_message(NOTE, "hint", text);
        self.hints.push(text.to_owned());
    }

    /// Returns an outcome whose hint has complete commands.
    pub(crate) fn with_full_hint(&self, outcome: &Outcome) -> Outcome {
        let mut outcome = outcome.clone();
        outcome.hint = outcome.hint.map(|it| self.with_directory_flags(&it));
        outcome
    }

    /// Adds the options of this command line to the commands of a hint, so that they search the
    /// same directories.
    pub(crate) fn with_directory_flags(&self, hint: &str) -> String {
        let pieces = hint.split('`').enumerate().map(|(at, piece)| {
            // Every other piece is between backticks.
            let is_command = at % 2 == 1 && piece.starts_with("prowess ");
            if is_command && !piece.ends_with(&self.typed) {
                let end = piece.find(" -- ").unwrap_or(piece.len());
                format!("{}{}{}", &piece[..end], self.typed, &piece[end..])
            } else {
                piece.to_owned()
            }
        });
        pieces.collect::<Vec<_>>().join("`")
    }

    /// Prints all errors in the settings, each with its line.
    pub(crate) fn config_error(&mut self, error: &ConfigError) {
        let width = self.message_width();
        for fault in &error.problems {
            let line = fault.line.map(|it| format!(":{it}")).unwrap_or_default();
            self.errors.push(format!("{}{line}: {}", fault.path.display(), fault.message));
            let shown = snippet::render_fault(fault, self.err_colored, width);
            let _ = self.err.write_all(format!("{shown}\n").as_bytes());
            self.suggest(&fault.path);
        }
    }

    /// Prints an error with its causes.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        self.errors.push(format!("{error:#}"));
        self.print_message(ERROR, "error", &error.to_string());
        for cause in error.chain().skip(1) {
            let cause = cause.to_string();
            self.print_message(DIM, "cause", cause.split(" (os error").next().unwrap_or(&cause));
        }
        let mut causes = error.chain().filter_map(|it| it.downcast_ref::<io::Error>());
        if causes.any(|it| it.kind() == io::ErrorKind::NotFound)
            && let Some(path) = error.to_string().split('`').nth(1)
        {
            self.suggest(Path::new(path));
        }
    }

    /// Prints a hint with the entry that a missing path may mean.
    pub(crate) fn suggest(&mut self, path: &Path) {
        if let Some(near) = suggest::path(path) {
            self.hint(&did_you_mean(near));
        }
    }

    /// Prints a finding in one line, on stderr.
    pub(crate) fn finding(&mut self, finding: &Finding) {
        if self.quiet {
            return;
        }
        let (style, label) = severity_style(finding.severity);
        self.print_message(
            style,
            &format!("{label}[{}]", finding.rule.code),
            &finding_text(finding),
        );
    }

    /// Returns the width of messages; `None` if stderr is not a terminal.
    fn message_width(&self) -> Option<usize> {
        self.err_is_terminal.then(|| width(&self.err)).flatten()
    }

    fn print_message(&mut self, style: Style, label: &str, text: &str) {
        let mut shown = format!("{label}: {}", safe::line(text));
        if let Some(width) = self.message_width() {
            shown = wrap_message(&shown, width, "  ").join("\n");
        }
        let shown = shown.replacen(label, &paint(label, style, self.err_colored), 1);
        // One write, because others may write to the same terminal. A closed stderr is ignored.
        let _ = self.err.write_all(format!("{shown}\n").as_bytes());
    }
}

/// Returns the style and label of a severity.
pub(crate) fn severity_style(severity: Severity) -> (Style, &'static str) {
    match severity {
        Severity::Error => (ERROR, "error"),
        Severity::Warning => (WARNING, "warning"),
        Severity::Info => (NOTE, "info"),
    }
}

/// Returns a finding after its place.
pub(crate) fn finding_text(finding: &Finding) -> String {
    let line = finding.line.map(|it| format!(":{it}")).unwrap_or_default();
    match finding.path.as_os_str().is_empty() {
        true => finding.message.clone(),
        false => format!("{}{line}: {}", finding.path.display(), finding.message),
    }
}

/// Returns the width of a terminal, or that of `COLUMNS`.
fn width(terminal: impl sys::Terminal) -> Option<usize> {
    let said = env::var("COLUMNS").ok().and_then(|it| it.parse().ok()).filter(|it| *it > 0);
    said.or_else(|| terminal_size_of(terminal).map(|it| it.0.0.into())).map(|it: usize| it.max(20))
}

/// Wraps a text to a width, and indents all lines but the first. Text in backticks is to be copied,
/// and is not broken.
pub(crate) fn wrap_message(text: &str, width: usize, indent: &str) -> Vec<String> {
    // No text that is safe contains this character.
    const GLUE: &str = "\u{1f}";
    let pieces = text.split('`').enumerate();
    let glued = pieces.map(|(at, it)| if at % 2 == 1 { it.replace(' ', GLUE) } else { it.into() });
    let lines = wrap(&glued.collect::<Vec<_>>().join("`"), width, indent);
    lines.iter().map(|it| it.replace(GLUE, " ")).collect()
}

/// The lines printed while a question waits for its answer: nothing is drawn over a question.
static HELD: Mutex<Option<String>> = Mutex::new(None);

fn held_lines() -> MutexGuard<'static, Option<String>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of times a question is asked before it counts as unanswered.
const ATTEMPTS: usize = 3;

/// Asks the person at the terminal until the answer is one of the choices, such as `[y]es, [n]o`.
/// Returns `None` if it is over before, or the answer is invalid several times. Text of a skill
/// must be made safe first.
pub(crate) fn ask<T>(
    question: &str,
    choices: &str,
    is_over: &AtomicBool,
    understand: impl Fn(&str) -> Option<T>,
) -> io::Result<Option<T>> {
    let mut text = format!("{question}{}: ", wrap_for_stderr(choices));
    for _ in 0..ATTEMPTS {
        let answer = ask_once(&text, is_over)?;
        // Standard input has ended.
        if answer.is_empty() {
            break;
        }
        if let Some(understood) = understand(answer.trim().to_ascii_lowercase().as_str()) {
            return Ok(Some(understood));
        }
        text = wrap_for_stderr(&format!("Please answer {choices}")) + ": ";
    }
    Ok(None)
}

/// Asks for a yes or no; anything but a clear yes is a no.
pub(crate) fn confirm(question: &str) -> io::Result<Option<bool>> {
    let question = wrap_for_stderr(question) + "\n";
    ask(&question, "[y]es, [n]o", &AtomicBool::new(false), |answer| match answer {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    })
}

/// Wraps a text for stderr, if it is a terminal.
pub(crate) fn wrap_for_stderr(text: &str) -> String {
    let terminal = io::stderr();
    let width = terminal.is_terminal().then(|| width(&terminal)).flatten();
    width.map_or_else(|| text.to_owned(), |it| wrap_message(text, it, "").join("\n"))
}

fn ask_once(question: &str, is_over: &AtomicBool) -> io::Result<String> {
    // Input typed before the question is not an answer to it.
    sys::drop_input();
    // The progress line is erased.
    let clear = if io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    let mut open = held_lines();
    io::stderr().write_all(format!("{clear}{question}").as_bytes())?;
    *open = Some(String::new());
    drop(open);
    let answer = read_answer(is_over);
    let mut open = held_lines();
    // The person has not ended the line.
    if !answer.as_ref().is_ok_and(|it| it.ends_with('\n')) {
        write_stderr("\n");
    }
    write_stderr(&open.take().unwrap_or_default());
    answer
}

/// Waits for a line of input.
fn read_answer(is_over: &AtomicBool) -> io::Result<String> {
    loop {
        let is_there = sys::wait_for_input(Duration::from_millis(50))?;
        // Checked after the wait: input after the end is not for this question.
        if is_over.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if is_there {
            break;
        }
    }
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer)
}

/// Prints an important message on stderr. Text of a skill must be made safe first.
pub(crate) fn write_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Styles a text, if colours are enabled.
pub(crate) fn paint(text: &str, style: Style, colored: bool) -> String {
    if colored && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

#[cfg(feature = "agent")]
impl Printer {
    /// Markdown that comes in pieces, to be rendered for this terminal.
    pub(crate) fn markdown_stream(&self) -> MarkdownStream {
        MarkdownStream::new(self.prose_width(), self.colored)
    }

    /// Prints lines in place of the ones that were drafts, and as many drafts below them as there is room for.
    pub(crate) fn redraw(&mut self, lines: &str, drafts: &str) -> Result<()> {
        let mut out = String::new();
        if self.draft_rows > 0 {
            out.push_str(&format!("\x1b[{}A\r\x1b[J", self.draft_rows));
        }
        out.push_str(lines);
        let (drafts, rows) = if self.redraws { self.last_rows(drafts) } else { ("", 0) };
        out.push_str(drafts);
        self.draft_rows = rows;
        self.raw(out.as_bytes())?;
        self.flush()
    }

    /// The last lines of a text that a terminal can show below its first row, and the rows that they take. A terminal
    /// that is cleared from its first row on may save what it has shown.
    fn last_rows<'t>(&self, text: &'t str) -> (&'t str, usize) {
        let (columns, most) = match terminal_size_of(self.out.get_ref()) {
            Some((columns, rows)) if columns.0 > 0 && rows.0 > 2 => (columns.0, rows.0 - 2),
            _ => (80, 22),
        };
        let (mut start, mut used) = (text.len(), 0);
        for line in text.split_inclusive('\n').rev() {
            let rows = safe::columns(line).div_ceil(columns.into()).max(1);
            if used + rows > most.into() {
                break;
            }
            (start, used) = (start - line.len(), used + rows);
        }
        (&text[start..], used)
    }
}

/// The seconds that work has taken, to follow its description; nothing within the first one.
pub(crate) fn clock(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        0 => String::new(),
        seconds => format!(", {seconds} s"),
    }
}
