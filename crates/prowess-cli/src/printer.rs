//! The only place that prints. Data goes to stdout, everything else to stderr.

use std::{
    env,
    fmt::Display,
    io::{self, BufWriter, IsTerminal as _, Write as _},
    os::fd::AsFd,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, Result};
use prowess::{Finding, Severity, did_you_mean};
use prowess_cli::settings::ConfigError;
use prowess_runtime::{Outcome, ScriptConnection};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    termios::{QueueSelector, tcflush},
};
use serde::Serialize;
use serde_json::json;
use terminal_size::terminal_size_of;

use crate::{
    arguments::Global, context, highlight::Highlighter, markdown::wrapped, safe, snippet, suggest,
};

/// What takes longer than this is seen to go on.
pub(crate) const LONG: Duration = Duration::from_millis(500);
/// What is wrong when nothing more can be printed.
const UNWRITTEN: &str = "cannot write to standard output";
/// How many refused connections are told without `-v`.
const REFUSED: usize = 10;
/// The colours of what is said about the work.
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
    /// Whether it is shown what is going on: to a person, at a terminal that can take a line back.
    shows_progress: bool,
    /// Whether a line stands there that is to be taken back.
    is_progress_shown: bool,
    /// How wide the terminal is; nothing when the output is not one, and then nothing is cut.
    pub(crate) width: Option<usize>,
    /// How many lines the terminal shows; nothing when the output is not one.
    pub(crate) height: Option<usize>,
    pub(crate) colored: bool,
    /// What a command needs to look where this one did.
    typed: String,
    /// Whether any data was printed.
    has_data: bool,
    /// What was said to be wrong, and what to do about it.
    errors: Vec<String>,
    hints: Vec<String>,
}

impl Printer {
    pub(crate) fn new(global: &Global) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let (is_terminal, err_is_terminal) = (stdout.is_terminal(), stderr.is_terminal());
        // By the choice that `--color` has made, else by the terminal and the variables about colours.
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
            width,
            height: height.filter(|_| is_terminal),
            colored,
            typed: context::typed(global),
            has_data: false,
            errors: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Prints a line of data. What comes from a skill must be made safe first.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<()> {
        self.has_data = true;
        writeln!(self.out, "{line}").context(UNWRITTEN)
    }

    /// A name, as it stands out among data.
    pub(crate) fn name(&self, text: &str) -> String {
        painted(text, NAME, self.colored)
    }

    /// What matters less among data.
    pub(crate) fn dim(&self, text: &str) -> String {
        painted(text, DIM, self.colored)
    }

    /// Prints bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.has_data = true;
        self.out.write_all(bytes).context(UNWRITTEN)
    }

    /// Prints bytes as they are, on stderr.
    pub(crate) fn raw_aside(&mut self, bytes: &[u8]) {
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

    /// Prints Markdown, made safe, with colours where there are any. No character of it changes.
    pub(crate) fn markdown(&mut self, text: &str) -> Result<()> {
        let text = safe::lines(text);
        match self.colored {
            true => self.line(Highlighter::whole(text.trim_end())),
            false => self.line(text.trim_end()),
        }
    }

    /// Prints what went wrong as the one document of `--json`, where no other was printed.
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

    /// Whether nobody reads what is printed any more.
    pub(crate) fn is_closed(&self) -> bool {
        let mut out = [PollFd::new(self.out.get_ref(), PollFlags::empty())];
        let looked = poll(&mut out, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        looked.is_ok() && out[0].revents().contains(PollFlags::ERR)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.out.flush().context(UNWRITTEN)
    }

    /// Says something about the work, unless nobody wants to hear it.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.quiet {
            self.say(NOTE, "note", text);
        }
    }

    /// Says what the sandbox has refused, or probably has. A system call that a script did well without is told with `-v`.
    pub(crate) fn refused(&mut self, outcome: &Outcome) {
        for denied in &outcome.denied {
            let guess = denied.strip_prefix("probably: ");
            let call = denied.split(" (").next().unwrap_or_default();
            let is_call = call.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
            if outcome.is_ok() && !self.verbose && (is_call || guess.is_some()) {
                continue;
            }
            self.note(&match guess {
                Some(guess) => format!("the sandbox probably refused {guess}"),
                None => format!("the sandbox refused {denied}"),
            });
        }
    }

    /// Says which connections a script was refused; with `-v`, also which it had.
    pub(crate) fn network(&mut self, outcome: &Outcome) {
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

    /// Warns of something, unless nobody wants to hear it.
    pub(crate) fn warning(&mut self, text: &str) {
        if !self.quiet {
            self.say(WARNING, "warning", text);
        }
    }

    /// Shows on a terminal what is going on, instead of what was shown before.
    pub(crate) fn progress(&mut self, text: &str) {
        if !self.shows_progress {
            return;
        }
        let held = held();
        if held.is_none() {
            self.is_progress_shown = !text.is_empty();
            let text = safe::cut(&safe::line(text), self.err_width());
            let _ = self.err.write_all(format!("\r\x1b[K{text}").as_bytes());
        }
    }

    /// Does what can take a while, and shows on a terminal that it goes on once it has.
    pub(crate) fn during<T>(&mut self, what: &str, work: impl FnOnce() -> T) -> T {
        if !self.shows_progress {
            return work();
        }
        let (done, is_done) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let show = move || {
                if is_done.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
                    self.progress(&format!("{what}…"));
                    let _ = is_done.recv();
                    self.progress_ends();
                }
            };
            // Where there is no thread to be had, the work matters more.
            let _ = thread::Builder::new().spawn_scoped(scope, show);
            let _done = done;
            work()
        })
    }

    /// Takes away what [`progress`](Self::progress) has shown.
    pub(crate) fn progress_ends(&mut self) {
        if self.is_progress_shown {
            self.progress("");
        }
    }

    /// How wide a line is that is shown for a while, where that is known.
    pub(crate) fn err_width(&self) -> usize {
        width(&self.err).unwrap_or(80) - 1
    }

    /// Tells what happened, in a line that matters less, on stderr.
    pub(crate) fn told(&mut self, text: &str) {
        let line = painted(&safe::line(text), DIM, self.err_colored);
        self.aside(&line);
    }

    /// Prints a line beside the data, on stderr. What comes from a skill must be made safe first.
    pub(crate) fn aside(&mut self, line: &str) {
        if self.quiet {
            return;
        }
        let line = format!("{line}\n");
        match &mut *held() {
            Some(held) => held.push_str(&line),
            None => drop(self.err.write_all(line.as_bytes())),
        }
    }

    /// Says that what was typed is at fault.
    pub(crate) fn fault(&mut self, text: &str) {
        self.errors.push(text.to_owned());
        self.say(ERROR, "error", text);
    }

    /// Says what to do next.
    pub(crate) fn hint(&mut self, text: &str) {
        let text = self.led(text);
        self.exact_hint(&text);
    }

    /// Says what to do next, with commands that can be typed as they are.
    pub(crate) fn exact_hint(&mut self, text: &str) {
        self.say(NOTE, "hint", text);
        self.hints.push(text.to_owned());
    }

    /// An outcome whose hint can be typed as it is.
    pub(crate) fn outcome(&self, outcome: &Outcome) -> Outcome {
        Outcome { hint: outcome.hint.as_deref().map(|it| self.led(it)), ..outcome.clone() }
    }

    /// A hint whose commands look where this one did.
    pub(crate) fn led(&self, hint: &str) -> String {
        let pieces = hint.split('`').enumerate().map(|(at, piece)| {
            // Every other piece stands between backticks.
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

    /// Says all that is wrong with the settings, each with its line.
    pub(crate) fn config_error(&mut self, error: &ConfigError) {
        let width = self.say_width();
        for fault in &error.faults {
            let line = fault.line.map(|it| format!(":{it}")).unwrap_or_default();
            self.errors.push(format!("{}{line}: {}", fault.path.display(), fault.message));
            let shown = snippet::render_fault(fault, self.err_colored, width);
            let _ = self.err.write_all(format!("{shown}\n").as_bytes());
            self.suggest(&fault.path);
        }
    }

    /// Says why we could not do it, with its causes.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        self.errors.push(format!("{error:#}"));
        self.say(ERROR, "error", &error.to_string());
        for cause in error.chain().skip(1) {
            let cause = cause.to_string();
            self.say(DIM, "cause", cause.split(" (os error").next().unwrap_or(&cause));
        }
        let mut causes = error.chain().filter_map(|it| it.downcast_ref::<io::Error>());
        if causes.any(|it| it.kind() == io::ErrorKind::NotFound)
            && let Some(path) = error.to_string().split('`').nth(1)
        {
            self.suggest(Path::new(path));
        }
    }

    /// Names what may be meant by a path that is not there.
    pub(crate) fn suggest(&mut self, path: &Path) {
        if let Some(near) = suggest::path(path) {
            self.hint(&did_you_mean(near));
        }
    }

    /// Says in one line what was found, on stderr.
    pub(crate) fn finding(&mut self, finding: &Finding) {
        if self.quiet {
            return;
        }
        let (style, label) = labelled(finding.severity);
        self.say(style, &format!("{label}[{}]", finding.rule.code), &placed(finding));
    }

    /// How wide what is said may be; nothing where stderr is no terminal.
    fn say_width(&self) -> Option<usize> {
        self.err_is_terminal.then(|| width(&self.err)).flatten()
    }

    fn say(&mut self, style: Style, label: &str, text: &str) {
        let mut shown = format!("{label}: {}", safe::line(text));
        if let Some(width) = self.say_width() {
            shown = broken(&shown, width, "  ").join("\n");
        }
        let shown = shown.replacen(label, &painted(label, style, self.err_colored), 1);
        // One write, because others may write to the same terminal; and whoever closed stderr does
        // not want to know.
        let _ = self.err.write_all(format!("{shown}\n").as_bytes());
    }
}

/// How a finding is headed.
pub(crate) fn labelled(severity: Severity) -> (Style, &'static str) {
    match severity {
        Severity::Error => (ERROR, "error"),
        Severity::Warning => (WARNING, "warning"),
        Severity::Info => (NOTE, "info"),
    }
}

/// What was found, behind where that is.
pub(crate) fn placed(finding: &Finding) -> String {
    let line = finding.line.map(|it| format!(":{it}")).unwrap_or_default();
    match finding.path.as_os_str().is_empty() {
        true => finding.message.clone(),
        false => format!("{}{line}: {}", finding.path.display(), finding.message),
    }
}

/// How wide a terminal is, or is said to be by `COLUMNS`.
fn width(terminal: impl AsFd) -> Option<usize> {
    let said = env::var("COLUMNS").ok().and_then(|it| it.parse().ok()).filter(|it| *it > 0);
    let seen = || terminal_size_of(terminal).map(|it| it.0.0.into());
    said.or_else(seen).map(|it: usize| it.max(20))
}

/// A text in lines of a width, all but the first indented. What stands in backticks is to be copied,
/// and stays whole.
pub(crate) fn broken(text: &str, width: usize, indent: &str) -> Vec<String> {
    // No text that is safe has this sign.
    const GLUE: &str = "\u{1f}";
    let pieces = text.split('`').enumerate();
    let glued = pieces.map(|(at, it)| if at % 2 == 1 { it.replace(' ', GLUE) } else { it.into() });
    let lines = wrapped(&glued.collect::<Vec<_>>().join("`"), width, indent);
    lines.iter().map(|it| it.replace(GLUE, " ")).collect()
}

/// While a question waits for its answer, the lines that are printed after it: nothing is drawn over a question.
static HELD: Mutex<Option<String>> = Mutex::new(None);

fn held() -> MutexGuard<'static, Option<String>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often a question is asked until it counts as not answered.
const ATTEMPTS: usize = 3;

/// Asks the person at the terminal until the answer is understood, which choices such as `[y]es, [n]o` help
/// with. Nothing comes of it where it is over before, or not understood after a few times. What comes from a
/// skill must be made safe first.
pub(crate) fn ask<T>(
    question: &str,
    choices: &str,
    is_over: &AtomicBool,
    understand: impl Fn(&str) -> Option<T>,
) -> io::Result<Option<T>> {
    let mut text = format!("{question}{}: ", by_words(choices));
    for _ in 0..ATTEMPTS {
        let answer = asked(&text, is_over)?;
        // Nobody is there any more.
        if answer.is_empty() {
            break;
        }
        if let Some(understood) = understand(answer.trim().to_ascii_lowercase().as_str()) {
            return Ok(Some(understood));
        }
        text = by_words(&format!("Please answer {choices}")) + ": ";
    }
    Ok(None)
}

/// Asks for a yes or no; whatever is no clear yes is a no.
pub(crate) fn confirm(question: &str) -> io::Result<Option<bool>> {
    let question = by_words(question) + "\n";
    ask(&question, "[y]es, [n]o", &AtomicBool::new(false), |answer| match answer {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    })
}

/// A text for the person at stderr, broken between words where their terminal is narrower.
pub(crate) fn by_words(text: &str) -> String {
    let terminal = io::stderr();
    let width = terminal.is_terminal().then(|| width(&terminal)).flatten();
    width.map_or_else(|| text.to_owned(), |it| broken(text, it, "").join("\n"))
}

fn asked(question: &str, is_over: &AtomicBool) -> io::Result<String> {
    // What was typed before answers something else.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    // What is shown for a while gives way.
    let clear = if io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    let mut open = held();
    io::stderr().write_all(format!("{clear}{question}").as_bytes())?;
    *open = Some(String::new());
    drop(open);
    let answer = answer(is_over);
    let mut open = held();
    // Nobody has ended the line.
    if !answer.as_ref().is_ok_and(|it| it.ends_with('\n')) {
        tell("\n");
    }
    tell(&open.take().unwrap_or_default());
    answer
}

/// Waits for the line that is typed.
fn answer(is_over: &AtomicBool) -> io::Result<String> {
    let (stdin, patience) = (io::stdin(), Timespec { tv_sec: 0, tv_nsec: 50_000_000 });
    loop {
        let is_there = match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&patience)) {
            Ok(count) => count > 0,
            Err(Errno::INTR) => false,
            Err(error) => return Err(error.into()),
        };
        // Asked behind the wait: what came after the end is not for us.
        if is_over.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if is_there {
            break;
        }
    }
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    Ok(answer)
}

/// Tells the person at stderr something that they have to know. What comes from a skill must be made
/// safe first.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A text in a style, where there are colours.
pub(crate) fn painted(text: &str, style: Style, colored: bool) -> String {
    if colored && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
}
