mod json;
mod show;
#[cfg(feature = "agent")]
mod page;

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result, bail};
use prowess::{Evaluation, Finding, Lab, Library, Skill, Study};
use prowess_cli::settings::Ratio;

#[cfg(feature = "agent")]
use self::page::page;
use super::{Readers, write_page};
use crate::{
    ExitStatus,
    arguments::{Global, parse_ratio},
    cli_error::CliError,
    completion, context, features, host,
    printer::{LONG, Printer},
};

/// The largest file of requests.
const MAX: u64 = 256 * 1024 * 1024;

/// Find skills that compete for the same requests, and skills that are never found
///
/// Queries every skill in its own words and reports which other skills match instead; finds skills that are almost
/// the same; and runs the evaluations in the folders of skills (`evals/evals.json`, lists of triggers). No model is
/// used. Exits 1 if too few evaluations pass, or if a file with evaluations cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Skills to examine among all others, and folders to search, as with `--dir` [default: all]
    #[arg(add = completion::skills())]
    names: Vec<String>,
    /// Evaluate the requests in this file, too; `-` reads stdin
    ///
    /// One `{"query","skill"}` per line, or the same as a list in JSON, CSV or YAML. If `skill` is `null`, no skill
    /// should match. If only one skill is examined, `should_trigger` is enough.
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// How many skills, groups and failures to show of each kind
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Minimum confidence of a match, from 0 to 1 [default: `matching.threshold`]
    #[arg(long, value_name = "C", value_parser = parse_ratio, allow_negative_numbers = true)]
    threshold: Option<Ratio>,
    /// Minimum share of evaluations that must pass, from 0 to 1 [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = parse_ratio, allow_negative_numbers = true)]
    min_pass: Option<Ratio>,
    /// Write an HTML report to this file; `-` prints it instead of the text report
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The page of a report is empty in a build without the feature `agent`, which refuses to write one.
#[cfg(not(feature = "agent"))]
fn page(_: &Report<'_>) -> String {
    String::new()
}

/// All results.
struct Report<'lib> {
    lab: Lab<'lib>,
    study: Study<'lib>,
    evaluation: Evaluation<'lib>,
    findings: Vec<Finding>,
    /// The least share of evaluations that must pass.
    least: f64,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    if args.html.is_some() && cfg!(not(feature = "agent")) {
        return Err(CliError::new(features::missing_feature("HTML page", "agent")).into());
    }
    let is_printed = args.html.as_deref() == Some(Path::new("-"));
    if is_printed && printer.json {
        let fault = CliError::new("`--html -` prints the page, and `--json` a document");
        return Err(fault.hint("name a file for the page").into());
    }
    let (folders, names): (Vec<&String>, Vec<&String>) =
        args.names.iter().partition(|it| context::is_folder_of_skills(it, global));
    let folders: Vec<PathBuf> = folders.into_iter().map(PathBuf::from).collect();
    let global = &context::with_paths(global, &folders);
    let config = context::config(global)?;
    let library = host::without_denied(context::library(global, printer)?, &config, printer);
    let library = context::leak(library);
    let threshold = args.threshold.unwrap_or(config.matching.threshold.value);
    let lab = Lab { library, threshold: threshold.get() };
    if library.all().next().is_none() {
        let fault = CliError::new("there are no skills to examine");
        return Err(fault.hint("`prowess list` shows all skills, and what was left out").into());
    }
    let chosen = find_named(library, &names)?;
    let is_chosen =
        |it: &Skill| chosen.is_empty() || chosen.iter().any(|own| std::ptr::eq(*own, it));
    let queries =
        args.queries.as_deref().map(|it| anyhow::Ok((it, read_requests(it)?))).transpose()?;

    context::index(library, printer);
    let study = lab.study(&mut progress_callback("studying skills", printer), is_chosen);
    let mut trials = printer.with_progress("reading evaluations", || lab.evaluations(is_chosen));
    if let Some((path, bytes)) = &queries {
        let about = if let [one] = chosen[..] { Some(one) } else { None };
        trials.extend(lab.trials(bytes, path, about));
    }
    let evaluation =
        lab.evaluate(trials.trials, &mut progress_callback("trying requests", printer));
    printer.progress_ends();

    let least = args.min_pass.map_or(1.0, Ratio::get);
    let report = Report { lab, study, evaluation, findings: trials.findings, least };
    let file = args.html.as_deref().filter(|_| !is_printed);
    if let Some(path) = file {
        write_page(path, &page(&report), Readers::Usual)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    if is_printed {
        printer.raw(page(&report).as_bytes())?;
    } else if printer.json {
        printer.document(&json::document(&report, usize::MAX))?;
    } else {
        show::show(&report, args.top, args.html.is_some(), printer)?;
    }
    if let Some(path) = file {
        printer.note(&format!("wrote `{}`", path.display()));
    }
    Ok(if report.has_passed() { ExitStatus::Success } else { ExitStatus::Failure })
}

impl Report<'_> {
    /// Returns whether enough evaluations pass, and all could be read.
    fn has_passed(&self) -> bool {
        let (passed, all) = (self.evaluation.passed(), self.evaluation.tested.len());
        self.findings.is_empty() && passed as f64 >= self.least * all as f64
    }
}

/// Returns the named skills.
fn find_named<'lib>(library: &'lib Library, names: &[&String]) -> Result<Vec<&'lib Skill>> {
    Ok(names
        .iter()
        .map(|name: &&String| library.get(name).ok_or_else(|| context::no_skill(library, name)))
        .collect::<Result<_, _>>()?)
}

/// Returns a callback that prints progress once the work has taken a while.
fn progress_callback(what: &str, printer: &mut Printer) -> impl FnMut(usize, usize) {
    let start = Instant::now();
    move |done, all| {
        if start.elapsed() > LONG {
            printer.progress_bar(what, (done, all));
        }
    }
}

/// Reads a file of requests, or stdin for `-`.
fn read_requests(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MAX + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|it| it.take(MAX + 1).read_to_end(&mut bytes))
    };
    if read.with_context(|| format!("cannot read `{}`", path.display()))? as u64 > MAX {
        bail!("`{}` is larger than 256 MiB", path.display());
    }
    Ok(bytes)
}
