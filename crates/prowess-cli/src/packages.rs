//! What the commands for packages share: where they work, how they fetch, what they show.

mod place;
mod choosing;
mod review;
mod wording;

use std::{
    env,
    future::Future,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use prowess::{Finding, Profile, Surroundings};
use prowess_cli::settings::Config;
use prowess_packages::{
    FetchPackageError, FetchProgress, FetchedTree, InstallPlace, PackageCache, PackageFetcher,
    PackagedSkill, Pin, SkillSource, SourceKind,
};
use tokio::runtime::Runtime;

pub(crate) use self::{
    choosing::{Chosen, choose},
    place::Place,
    review::{ReviewedSkill, print_left_out, print_skills, size_text},
    wording::{short_commit, source_text, version_text},
};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    context, host,
    printer::{self, Printer},
    registries,
    surroundings::surroundings,
    sys::{OwnDirectory, own_directory},
};

/// The time between two drawings of the progress.
const REDRAW: Duration = Duration::from_millis(100);
/// The sources that are fetched at the same time.
const PARALLEL: usize = 8;

/// What a command for packages works with.
pub(crate) struct PackageSession {
    pub(crate) place: Place,
    pub(crate) config: Config,
    pub(crate) cache: PackageCache,
    pub(crate) fetcher: PackageFetcher,
    pub(crate) install: InstallPlace,
    pub(crate) profile: Profile,
    runtime: Runtime,
}

impl PackageSession {
    /// Opens the place, the settings, the cache and the fetcher of a command.
    pub(crate) fn open(
        is_global: bool,
        offline: bool,
        global: &Global,
        printer: &mut Printer,
    ) -> Result<Self> {
        let config = context::config(global)?;
        context::note_ignored_settings(&config, printer);
        let place = Place::find(is_global, global)?;
        let cache = open_cache()?;
        let fetcher = fetcher(&config, cache.clone(), offline, printer)?;
        let (surroundings, _) = surroundings(global, None)?;
        let install = install_place(&place, surroundings)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot wait for anything")?;
        let profile = global.profile.into();
        Ok(Self { place, config, cache, fetcher, install, profile, runtime })
    }

    /// Fetches sources, several at a time, with progress. The results are in their order.
    pub(crate) fn fetch(
        &self,
        wanted: &[(SkillSource, Option<Pin>)],
        printer: &mut Printer,
    ) -> Result<Vec<Result<FetchedTree, FetchPackageError>>> {
        let fetcher = &self.fetcher;
        let work = in_parallel(wanted, |(source, pin)| fetcher.fetch(source, pin.as_ref()));
        self.wait("fetching", work, printer)
    }

    /// Waits for work with progress, until it is done or the user stops it.
    pub(crate) fn wait<T>(
        &self,
        what: &str,
        work: impl Future<Output = T>,
        printer: &mut Printer,
    ) -> Result<T> {
        let progress = self.fetcher.progress();
        let done = self.runtime.block_on(async {
            let stop = host::stop_signal().context("cannot wait for signals")?;
            tokio::pin!(work, stop);
            let mut ticks = tokio::time::interval(REDRAW);
            loop {
                tokio::select! {
                    done = &mut work => break anyhow::Ok(Some(done)),
                    () = &mut stop => break Ok(None),
                    _ = ticks.tick() => printer.progress(&progress_text(what, &progress)),
                }
            }
        });
        printer.progress_ends();
        done?.ok_or_else(|| stopped().into())
    }
}

/// Returns the error after Ctrl-C.
pub(crate) fn stopped() -> CliError {
    CliError::invalid_input("stopped; nothing was changed").hint("run the command again")
}

/// Returns what is known about fetching, such as `fetching  ████░░  2.1 of 4.0 MB, 120 files`.
fn progress_text(what: &str, progress: &FetchProgress) -> String {
    const BAR: usize = 20;
    let counts = progress.counts();
    let mut text = format!("{what}…");
    if let Some(filled) = (counts.bytes.min(counts.total_bytes) * BAR as u64).checked_div(counts.total_bytes) {
        let filled = usize::try_from(filled).unwrap_or(BAR);
        text = format!("{what}  {}{}", "█".repeat(filled), "░".repeat(BAR - filled));
    }
    if counts.bytes > 0 {
        text.push_str(&format!("  {}", size_text(counts.bytes)));
        if counts.total_bytes > counts.bytes {
            text.push_str(&format!(" of {}", size_text(counts.total_bytes)));
        }
    }
    match (counts.files, counts.total_files) {
        (0, _) => {}
        (files, total) if total > files => text.push_str(&format!(", {files} of {total} files")),
        (files, _) => text.push_str(&format!(", {files} files")),
    }
    text
}

/// Does something with each entry, several at a time, and returns the results in their order.
pub(crate) async fn in_parallel<'w, W, T, F: Future<Output = T>>(
    all: &'w [W],
    work: impl Fn(&'w W) -> F,
) -> Vec<T> {
    let mut results: Vec<Option<T>> = all.iter().map(|_| None).collect();
    let mut waiting = all.iter().enumerate();
    let mut running: Vec<(usize, std::pin::Pin<Box<F>>)> = Vec::new();
    std::future::poll_fn(|context| {
        loop {
            while running.len() < PARALLEL
                && let Some((at, one)) = waiting.next()
            {
                running.push((at, Box::pin(work(one))));
            }
            let before = running.len();
            running.retain_mut(|(at, future)| match future.as_mut().poll(context) {
                std::task::Poll::Ready(result) => {
                    results[*at] = Some(result);
                    false
                }
                std::task::Poll::Pending => true,
            });
            if running.is_empty() && waiting.len() == 0 {
                return std::task::Poll::Ready(());
            }
            if running.len() == before {
                return std::task::Poll::Pending;
            }
        }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// Opens the cache of fetched packages.
pub(crate) fn open_cache() -> Result<PackageCache> {
    let folder = cache_folder()?;
    PackageCache::open(&folder).map_err(|error| {
        let hint = format!("packages are kept in `{}`", folder.display());
        CliError::new(chain(&error)).hint(hint).into()
    })
}

/// Returns the folder of the cache of fetched packages.
pub(crate) fn cache_folder() -> Result<PathBuf, CliError> {
    let folder = own_directory(OwnDirectory::Cache).map(|it| it.join("packages"));
    folder.ok_or_else(|| {
        CliError::new("there is no home directory to keep packages in")
            .hint("set `HOME`, or `XDG_CACHE_HOME` and `XDG_STATE_HOME`")
    })
}

fn fetcher(
    config: &Config,
    cache: PackageCache,
    offline: bool,
    printer: &Printer,
) -> Result<PackageFetcher> {
    let mut fetcher = PackageFetcher::new(cache)
        .with_git(program("git"), env::vars_os())
        .with_terminal(printer.err_is_terminal)
        .with_offline(offline)
        .with_proxies(host::proxies()?);
    let token = ["GITHUB_TOKEN", "GH_TOKEN"].iter().find_map(|it| env::var(it).ok());
    if let Some(token) = token.filter(|it| !it.trim().is_empty()) {
        fetcher = fetcher.with_token("github.com", token.trim().to_owned());
    }
    let npm = registries::registries(config).npm;
    if let Ok(url) = npm.parse() {
        fetcher = fetcher.with_npm_registry(&url);
    }
    Ok(fetcher)
}

/// Finds a program on `PATH`.
fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&path)
        .filter(|it| it.is_absolute())
        .map(|it| it.join(&file))
        .find(|it| it.is_file())
}

fn install_place(place: &Place, surroundings: Surroundings) -> Result<InstallPlace, CliError> {
    let nowhere = || {
        CliError::new("there is no home directory to keep the history of changes in")
            .hint("set `HOME`, or `XDG_STATE_HOME`")
    };
    let state = host::state().ok_or_else(nowhere)?;
    match place.is_global {
        true => InstallPlace::user(&state, &surroundings).ok_or_else(nowhere),
        false => {
            // Clients are started in the project, wherever in it the command was typed.
            let cwd = place.root.clone();
            Ok(InstallPlace::project(&place.root, &state, &Surroundings { cwd, ..surroundings }))
        }
    }
}

/// Turns an error of fetching into that of a command.
pub(crate) fn fetch_error(error: &FetchPackageError) -> CliError {
    let is_input = matches!(
        error,
        FetchPackageError::NoIndex { .. }
            | FetchPackageError::UnknownSkill { .. }
            | FetchPackageError::UnknownVersion { .. }
            | FetchPackageError::UnknownReference { .. }
            | FetchPackageError::NoFolder { .. }
            | FetchPackageError::Ambiguous { .. }
            | FetchPackageError::Blocked { .. }
            | FetchPackageError::Withdrawn { .. }
            | FetchPackageError::Moved { .. }
            | FetchPackageError::WrongDigest { .. }
    );
    let fault = match is_input {
        true => CliError::invalid_input(chain(error)),
        false => CliError::new(chain(error)),
    };
    let hint = error.hint().unwrap_or_else(|| "see `prowess add --help` for what a source can be".to_owned());
    fault.hint(hint)
}

/// Returns an error with its causes in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        let more = more.split(" (os error").next().unwrap_or(&more);
        if !text.contains(more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Parses a source, and resolves a path in it from the working directory.
pub(crate) fn parse_source(text: &str, global: &Global) -> Result<SkillSource, CliError> {
    let mut source: SkillSource = text
        .parse()
        .map_err(|error: prowess_packages::SourceSyntaxError| {
            CliError::new(error.to_string()).hint(&*error.hint)
        })?;
    let base = global.cwd.as_deref().unwrap_or(Path::new("."));
    if let SourceKind::Folder(path) | SourceKind::File(path) = &mut source.kind {
        *path = resolve(path, base);
    }
    Ok(source)
}

/// Returns the absolute path of a path in a source, which may begin with `~`.
pub(crate) fn resolve(path: &Path, base: &Path) -> PathBuf {
    let path = match (path.strip_prefix("~"), context::home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => base.join(path),
    };
    crate::surroundings::absolute(&path).unwrap_or(path)
}

/// Audits a skill in a folder.
pub(crate) fn audit(_skill: &PackagedSkill, _folder: &Path) -> Vec<Finding> {
    Vec::new()
}

/// Asks the person at the terminal, unless they have agreed by `--yes`. It is an error if there is no
/// terminal.
pub(crate) fn is_agreed(yes: bool, question: &str, what: &str) -> Result<bool> {
    use std::io::{IsTerminal as _, stderr, stdin};
    if yes {
        return Ok(true);
    }
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        let fault = CliError::new(format!("there is no terminal to ask at, so nothing was {what}"));
        return Err(fault.hint("`--yes` does it without asking").into());
    }
    Ok(printer::confirm(question)? == Some(true))
}

/// Reports that the person at the terminal said no.
pub(crate) fn declined(what: &str, printer: &mut Printer) -> ExitStatus {
    printer.note(&format!("nothing was {what}"));
    ExitStatus::Failure
}

/// Returns the skills in the lock files of this project and of the user, with their sources, for completion.
pub(crate) fn installed_skills(global: &Global) -> Vec<(String, String)> {
    let places = [false, true].map(|it| Place::find(it, global));
    let locks = places.into_iter().flatten().filter_map(|it| it.read_lock().ok());
    locks
        .flat_map(|it| {
            it.skills().iter().map(|it| (it.name.clone(), it.source.to_string())).collect::<Vec<_>>()
        })
        .collect()
}
