//! Prepares environments interactively: asks, prints progress, and explains failures.

use std::{collections::HashSet, mem, path::PathBuf, time::Duration};

use prowess_runtime::{
    preparation::{
        EnvironmentRecord, PrepareError, PrepareOptions, PreparedEnvironment, Preparer, Recipe,
    },
    sandbox::Chunk,
};
use tokio::{
    sync::mpsc::unbounded_channel,
    time::{Instant, interval},
};

use crate::sys::{SignalKind, signal};
use crate::{
    ExitStatus,
    approver::approver,
    commands::count,
    printer::Printer,
    safe::{self, Pieces},
};

/// The options of a preparation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrepareChoice {
    pub(crate) with_guessed: bool,
    pub(crate) install_scripts: bool,
    pub(crate) offline: bool,
    pub(crate) update: bool,
    pub(crate) yes: bool,
    /// Whether it is for a server rather than a skill.
    pub(crate) is_server: bool,
}

/// The result of a preparation.
pub(crate) enum PrepareResult {
    Done(Box<PreparedEnvironment>),
    /// The user declined, which was reported.
    Declined(ExitStatus),
    /// Nobody was asked, because nothing could be installed. The reason was reported.
    NotOffered(ExitStatus),
    /// The reason was reported.
    Failed(ExitStatus),
}

/// The interval of progress updates.
const MOMENT: Duration = Duration::from_millis(200);

/// Prepares an environment, or reports why not.
pub(crate) async fn prepare(
    preparer: &Preparer,
    recipe: &Recipe,
    name: &str,
    folder: Option<PathBuf>,
    choice: PrepareChoice,
    printer: &mut Printer,
) -> anyhow::Result<PrepareResult> {
    for what in &recipe.left_out {
        printer.warning(&safe::line(&format!("not installed: {what}")));
    }
    if !recipe.guessed.is_empty()
        && !choice.with_guessed
        && preparer.has_agreed_to_guesses(recipe) != Some(true)
    {
        let names = safe::line(&recipe.guessed.join(", ")).into_owned();
        printer.note(&format!(
            "not installed, because the names are only guessed from imports: {names}; `--guessed` installs them"
        ));
        if recipe.requirements.is_empty() {
            return Ok(PrepareResult::NotOffered(ExitStatus::Failure));
        }
    }
    let (sender, mut chunks) = unbounded_channel();
    let options = PrepareOptions {
        name: name.to_owned(),
        folder,
        with_guessed: choice.with_guessed,
        install_scripts: choice.install_scripts,
        offline: choice.offline,
        update: choice.update,
        chunks: Some(sender),
    };
    let approver = approver(choice.yes);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let work = preparer.prepare(recipe, options, &*approver);
    tokio::pin!(work);
    let mut ticks = interval(MOMENT);
    let mut begun: Option<Instant> = None;
    let mut last = String::new();
    let mut lines = DistinctLines::default();
    let ended = loop {
        tokio::select! {
            ended = &mut work => break Some(ended),
            Some(chunk) = chunks.recv() => {
                begun.get_or_insert_with(Instant::now);
                if printer.verbose {
                    printer.stderr_raw(safe::lines(&lines.add(&chunk)).as_bytes());
                }
                last = last_line(&chunk).unwrap_or(last);
            }
            _ = ticks.tick() => {
                if let Some(begun) = begun {
                    let seconds = begun.elapsed().as_secs();
                    printer.progress(&format!("installing, {seconds} s: {last}"));
                }
            }
            _ = interrupt.recv() => break None,
            _ = terminate.recv() => break None,
        }
    };
    printer.progress_ends();
    if printer.verbose {
        while let Ok(chunk) = chunks.try_recv() {
            printer.stderr_raw(safe::lines(&lines.add(&chunk)).as_bytes());
        }
        printer.stderr_raw(safe::lines(&lines.rest()).as_bytes());
    }
    match ended {
        Some(Ok(environment)) => Ok(PrepareResult::Done(Box::new(environment))),
        // The person who declined knows it.
        Some(Err(PrepareError::Refused { is_answered: true })) => {
            printer.note("nothing was installed");
            Ok(PrepareResult::Declined(ExitStatus::Error))
        }
        Some(Err(error)) => {
            if let PrepareError::Refused { .. } = error {
                let packages = safe::line(&recipe.requirements.join(", ")).into_owned();
                let from = preparer.registries.display_hosts(recipe.ecosystem);
                printer.note(&format!("it would install {packages} from {from}"));
            }
            let flag = if choice.is_server { "--server " } else { "" };
            let status = report_error(&error, &format!("{flag}{name}"), printer);
            // Without an installer nobody is asked.
            let is_declined = match error {
                PrepareError::Refused { .. } => true,
                PrepareError::NoInstaller { .. } => !choice.yes,
                _ => false,
            };
            Ok(if is_declined {
                PrepareResult::NotOffered(status)
            } else {
                PrepareResult::Failed(status)
            })
        }
        None => {
            printer.error_text("interrupted; nothing was installed");
            Ok(PrepareResult::Failed(ExitStatus::Failure))
        }
    }
}

/// Filters the output of an installer: each line once.
#[derive(Default)]
struct DistinctLines {
    seen: HashSet<String>,
    /// The beginning of the next line, of stdout and of stderr.
    unfinished: [(Pieces, String); 2],
}

impl DistinctLines {
    /// Returns the new lines that are complete with this chunk.
    fn add(&mut self, chunk: &Chunk) -> String {
        let (pieces, line) = &mut self.unfinished[usize::from(matches!(chunk, Chunk::Stderr(_)))];
        line.push_str(&pieces.text(chunk.bytes()));
        let end = line.rfind('\n').map_or(0, |it| it + 1);
        let rest = line.split_off(end);
        let whole = mem::replace(line, rest);
        self.keep_new(&whole)
    }

    /// Returns the text after the last line end.
    fn rest(&mut self) -> String {
        let rest = mem::take(&mut self.unfinished).map(|(_, line)| line);
        let lines = rest.iter().filter(|it| !it.is_empty()).map(|it| format!("{it}\n"));
        self.keep_new(&lines.collect::<String>())
    }

    fn keep_new(&mut self, lines: &str) -> String {
        lines
            .split_inclusive('\n')
            .filter(|line: &&str| {
                line.trim().is_empty() || self.seen.insert(without_retry_counts(line))
            })
            .collect()
    }
}

/// Normalizes a line for comparison: retry messages are equal whatever numbers they count by.
fn without_retry_counts(line: &str) -> String {
    let line = line.trim();
    if !["Retrying", "retrying", "Retry(", "retry in", "will retry"]
        .iter()
        .any(|it| line.contains(it))
    {
        return line.to_owned();
    }
    let words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|it| !it.contains(|c: char| c.is_ascii_digit())).collect::<Vec<_>>().join(" ")
}

/// Returns the last line of a chunk.
fn last_line(chunk: &Chunk) -> Option<String> {
    let text = String::from_utf8_lossy(chunk.bytes()).into_owned();
    let last = text.lines().rev().map(str::trim).find(|it| !it.is_empty())?;
    Some(safe::line(last).into_owned())
}

/// Reports why an environment was not prepared, with a hint.
fn report_error(error: &PrepareError, name: &str, printer: &mut Printer) -> ExitStatus {
    let cause = std::error::Error::source(error).map(|it| format!(": {it}")).unwrap_or_default();
    printer.error_text(&safe::line(&format!("{error}{cause}")));
    let name = safe::line(name).into_owned();
    match error {
        PrepareError::Refused { is_answered: true } => {}
        PrepareError::Refused { .. } => {
            printer.hint("use `--yes`, or answer at a terminal");
        }
        PrepareError::NoInstaller { hint, .. } => printer.hint(hint),
        PrepareError::Installer { why, output, refused, .. } => {
            // The rest of the output is npm's usage text.
            let is_lock_bad = output.contains("npm error code EUSAGE");
            if !printer.verbose && !is_lock_bad {
                // The reason was printed already.
                let mut seen = HashSet::from([without_retry_counts(why)]);
                let lines: Vec<&str> =
                    output.lines().filter(|it| seen.insert(without_retry_counts(it))).collect();
                let from = lines.len().saturating_sub(SHOWN);
                for line in &lines[from..] {
                    printer.stderr_line(&format!("  {}", safe::line(line)));
                }
            }
            if let Some(why) = refused.first() {
                printer.hint(&safe::line(why));
            } else if is_lock_bad {
                printer.hint("the lock file is broken, or does not fit `package.json`: `npm install --package-lock-only` in the folder of the skill regenerates it");
            } else if output.contains("only-binary")
                || output.contains("no-build")
                || output.contains("No matching distribution")
            {
                printer.hint(&format!("there is no such package, or it has to be built: `prowess prepare {name} --install-scripts` lets it run its own scripts in the sandbox"));
            }
        }
        PrepareError::Lock { .. } => {
            printer.hint(&format!("`prowess prepare {name} --update` chooses new versions"));
        }
        PrepareError::Offline => printer.hint("run without `--offline` to download it"),
        _ => {}
    }
    match error {
        PrepareError::Refused { .. }
        | PrepareError::Sandbox(_)
        | PrepareError::NoInstaller { .. } => ExitStatus::Error,
        _ => ExitStatus::Failure,
    }
}

/// The number of lines printed of a failed installer.
const SHOWN: usize = 12;

/// Summarizes an environment in one line.
pub(crate) fn summary(name: &str, record: &EnvironmentRecord) -> String {
    let EnvironmentRecord { manager, packages, size, key, .. } = record;
    let packages = count(packages.len(), "package");
    let ecosystem = record.ecosystem.as_str();
    let name = safe::line(name);
    format!(
        "prepared {name}: {packages} for {ecosystem} with {manager}, {} ({key})",
        format_size(*size)
    )
}

/// Formats a size for people.
pub(crate) fn format_size(size: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    match size {
        size if size >= 1024 * MIB => format!("{:.1} GiB", size as f64 / (1024 * MIB) as f64),
        size => format!("{:.1} MiB", size as f64 / MIB as f64),
    }
}
