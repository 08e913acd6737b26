//! Shared by the commands for packages: where they work, how they fetch, what they show.

mod wording;
mod place;
mod review;
mod choosing;
mod change;
mod version_change;
mod signing;
mod removing;
mod undoing;

use std::{
    env,
    future::Future,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use prowess::{
    CLIENTS, Finding, RULES, Severity, Surroundings, client, did_you_mean, name_hint, nearest, rule,
};
use prowess_cli::settings::Config;
use prowess_packages::{
    AuditLimits, ContentDigest, DiscoveredPackage, FetchPackageError, FetchProgress, FetchedTree,
    InstallPlace, InstallReport, Lock, LockedSkill, MergeResult, PackageCache, PackageFetcher,
    PackagedSkill, Pin, Signer, SkillSource, SourceKind, TreeFile, audit_folder, discover,
};
use tokio::runtime::Runtime;

pub(crate) use self::{
    change::{Change, ChangePlan, SkillVersion, action_word, steps_json},
    choosing::{SkillChoice, choose, installed_name},
    place::Place,
    removing::remove,
    review::{ReviewRules, ReviewedSkill, print_left_out, print_skills, size_text},
    signing::{SIGNATURES, signed_text},
    undoing::{PackageChange, package_changes, undo},
    version_change::{VersionChange, folder_of_locked, print_version_change},
    wording::{source_text, version_text},
};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    commands::count,
    context, host,
    printer::{self, Printer},
    registries,
    surroundings::{absolute, real_path, surroundings},
    sys::{OwnDirectory, own_directory},
};

/// The time between two drawings of the progress.
const REDRAW: Duration = Duration::from_millis(100);
/// The sources that are fetched at the same time.
const PARALLEL: usize = 8;

/// The settings, folders and fetcher of a command for packages.
pub(crate) struct PackageSession {
    pub(crate) place: Place,
    pub(crate) config: Config,
    pub(crate) cache: PackageCache,
    pub(crate) fetcher: PackageFetcher,
    pub(crate) install: InstallPlace,
    pub(crate) rules: ReviewRules,
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
        let rules = ReviewRules { profile: global.profile.into(), limits: config.options().limits };
        Ok(Self { place, config, cache, fetcher, install, rules, runtime })
    }

    /// Returns a fetcher that sends a token to the host of a registry.
    pub(crate) fn fetcher_with_token(
        &self,
        registry: &url::Url,
        token: Option<String>,
    ) -> Result<PackageFetcher> {
        let fetcher = PackageFetcher::new(self.cache.clone()).with_proxies(host::proxies()?);
        Ok(match (registry.host_str(), token) {
            (Some(host), Some(token)) => fetcher.with_token(host, token.trim().to_owned()),
            _ => fetcher,
        })
    }

    /// Returns the clients that the settings name; none are those that are found.
    pub(crate) fn clients(&self) -> Vec<String> {
        let clients = self.config.packages.clients.value.iter().flatten();
        clients.map(|it| it.0.name.to_owned()).collect()
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
    if let Some(filled) =
        (counts.bytes.min(counts.total_bytes) * BAR as u64).checked_div(counts.total_bytes)
    {
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
    let hint = error
        .hint()
        .unwrap_or_else(|| "see `prowess add --help` for what a source can be".to_owned());
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
    let base = global.cwd.as_deref().unwrap_or(Path::new("."));
    let parsed = SkillSource::parse_in(text, &|it| base.join(it).exists());
    let mut source = parsed.map_err(|error| CliError::new(error.to_string()).hint(error.hint()))?;
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
    real_path(&absolute(&path).unwrap_or(path))
}

/// Returns the skills of a fetched source.
pub(crate) fn discover_in(tree: &FetchedTree) -> DiscoveredPackage {
    let below = tree.source.git().and_then(|it| it.path.as_deref()).unwrap_or_default();
    discover(&tree.folder, &tree.files, below)
}

/// Writes the path of a source as a manifest has it: from its folder, or from the home.
pub(crate) fn localize(source: &mut SkillSource, session: &PackageSession) {
    let root = real_path(&session.place.root);
    if let SourceKind::Folder(path) | SourceKind::File(path) = &mut source.kind {
        let home = context::home().map(|it| real_path(&it));
        let below = |folder: &Path, start: &str| {
            let rest = path.strip_prefix(folder).ok()?;
            let is_whole = rest.as_os_str().is_empty();
            Some(if is_whole { PathBuf::from(start) } else { Path::new(start).join(rest) })
        };
        // A folder beside the project is there for others who have both.
        let parent = root.parent().filter(|it| it.parent().is_some());
        let own = (!session.place.is_global)
            .then(|| below(&root, ".").or_else(|| below(parent?, "..")))
            .flatten();
        if let Some(short) = own.or_else(|| below(&home?, "~")) {
            *path = short;
        }
    }
}

/// Returns the source of an entry with the whole path of a folder.
pub(crate) fn delocalize(source: &SkillSource, session: &PackageSession) -> SkillSource {
    let mut source = source.clone();
    if let SourceKind::Folder(path) | SourceKind::File(path) = &mut source.kind {
        *path = resolve(path, &session.place.root);
    }
    source
}

/// Returns the tag that a locked skill was installed from, if it stands for another commit now.
pub(crate) fn moved_tag<'l>(
    locked: &'l LockedSkill,
    reference: Option<&str>,
    commit: Option<&str>,
) -> Option<&'l str> {
    let own = locked.reference.as_deref()?;
    let tag = own.strip_prefix("refs/tags/")?;
    (reference == Some(own) && locked.commit.as_deref() != commit).then_some(tag)
}

/// Fails if a version is younger than the settings ask for.
pub(crate) fn check_age(tree: &FetchedTree, session: &PackageSession) -> Result<(), CliError> {
    let Some((age, least)) = too_young(tree.published, session) else { return Ok(()) };
    let what = tree.source.name();
    let message = format!(
        "`{what}` is {} old, and `packages.min_age` asks for {}",
        age_text(age),
        age_text(least)
    );
    let fault = CliError::invalid_input(message);
    Err(fault.hint("wait, or stay at an older version with `--pin`"))
}

/// Returns the age of a version, and the one that it must have, if it is too young.
pub(crate) fn too_young(
    published: Option<u64>,
    session: &PackageSession,
) -> Option<(Duration, Duration)> {
    let least = session.config.packages.min_age.value?.0;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = now.saturating_sub(Duration::from_secs(published?));
    (age < least).then_some((age, least))
}

/// Formats an age in its largest whole unit.
pub(crate) fn age_text(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute")];
    let unit = units.iter().find(|it| seconds >= it.0);
    let (number, name) = unit.map_or((seconds, "second"), |it| (seconds / it.0, it.1));
    count(usize::try_from(number).unwrap_or(usize::MAX), name)
}

/// Returns who signed a package, if somebody must have.
pub(crate) fn check_signature(
    tree: &FetchedTree,
    session: &PackageSession,
) -> Result<Option<Signer>, CliError> {
    signing::check(tree, session)
}

/// Returns whether the settings say who must have signed what comes from a source, or how old it must be.
pub(crate) fn has_policy(source: &SkillSource, session: &PackageSession) -> Result<bool, CliError> {
    Ok(session.config.packages.min_age.value.is_some() || signing::is_required(source, session)?)
}

/// Returns the error that `audit` found something.
pub(crate) fn dangerous(dangers: usize, what: &str) -> CliError {
    let message = format!("`audit` reports {}, so nothing was {what}", count(dangers, "error"));
    CliError::invalid_input(message)
        .hint("read the lines named above; if they are fine, `--allow-findings` goes on")
}

/// Says what was merged, and what could not be moved to the trash yet.
pub(crate) fn note_report(report: &InstallReport, printer: &mut Printer) {
    for step in &report.steps {
        for file in &step.merged {
            let path = format!("{}/{}", step.path, file.path);
            match file.result {
                MergeResult::Kept => {}
                MergeResult::Merged => printer.note(&format!("`{path}` has your changes and the new ones")),
                MergeResult::Beside => printer.warning(&format!(
                    "`{path}` was changed by you and by the new version: yours stays, and the new one is `{path}.new`"
                )),
                MergeResult::StaysRemoved => {
                    printer.note(&format!("`{path}` stays removed, as you removed it"));
                }
                MergeResult::StaysThere => printer.note(&format!(
                    "`{path}` stays with your changes; the new version does not have it any more"
                )),
                _ => {}
            }
        }
        if step.action == prowess_packages::InstallAction::KeepEdited {
            printer.note(&format!("`{}` stays with your changes", step.path));
        }
    }
    if let Some(unfinished) = &report.unfinished {
        printer.warning(unfinished);
    }
}

/// Audits the files of a skill in a folder. What cannot be audited is a finding too.
pub(crate) fn audit(files: &[TreeFile], folder: &Path) -> Vec<Finding> {
    let report = match audit_folder(folder, &AuditLimits::default()) {
        Ok(report) => report,
        Err(error) => return vec![not_audited(folder, chain(&error))],
    };
    let is_own = |it: &Finding| {
        let path =
            it.path.strip_prefix(folder).unwrap_or(&it.path).to_string_lossy().replace('\\', "/");
        path.is_empty() || files.iter().any(|file| file.path == path)
    };
    report.findings.into_iter().map(|it| it.finding).filter(is_own).collect()
}

/// Returns the finding that a skill could not be audited, which is an error of `audit`.
fn not_audited(folder: &Path, why: String) -> Finding {
    let rule = rule("file-unreadable").unwrap_or(RULES[0]);
    Finding::new(rule, Severity::Error, folder, why, "check the file and its permissions")
}

/// Returns the status of a program that was ended by a signal, as shells give it.
pub(crate) fn signal_status(status: &std::process::ExitStatus) -> u8 {
    crate::sys::signal_of(status).map_or(1, |it| 128_u8.saturating_add(it))
}

/// Fails if a client is not known.
pub(crate) fn check_clients(names: &[String]) -> Result<(), CliError> {
    match names.iter().find(|it| client(it).is_none()) {
        None => Ok(()),
        Some(name) => {
            let known = CLIENTS.iter().map(|it| it.name);
            Err(CliError::new(format!("there is no client `{name}`")).hint(name_hint(name, known)))
        }
    }
}

/// Returns the locked skills of some names, or all of them.
pub(crate) fn named(
    lock: &Lock,
    names: &[String],
    session: &PackageSession,
) -> Result<Vec<LockedSkill>, CliError> {
    if names.is_empty() {
        return Ok(lock.skills().to_vec());
    }
    let found = names
        .iter()
        .map(|name| lock.get(name).cloned().ok_or_else(|| no_locked(lock, name, session)));
    found.collect()
}

/// Returns the error that no skill of this name is installed from a package.
pub(crate) fn no_locked(lock: &Lock, name: &str, session: &PackageSession) -> CliError {
    let path = session.place.short(&session.place.lock);
    let fault = CliError::invalid_input(format!("there is no skill `{name}` in `{path}`"));
    match nearest(name, lock.skills().iter().map(|it| &*it.name)) {
        Some(near) => fault.hint(did_you_mean(near)),
        None if session.place.is_global => fault.hint("without `--global`, those of this project are meant"),
        None => fault.hint("`prowess verify` lists what is installed here; `--global` means those for all your projects"),
    }
}

/// Finds a locked skill in another version of its package: in the same folder, else by its name.
pub(crate) fn same_skill<'p>(
    locked: &LockedSkill,
    package: &'p DiscoveredPackage,
) -> Option<&'p PackagedSkill> {
    let has_name = |it: &&PackagedSkill| it.name.eq_ignore_ascii_case(locked.skill_name());
    let at_path = package.skills.iter().find(|it| it.path == locked.path && has_name(it));
    at_path.or_else(|| {
        let mut named = package.skills.iter().filter(has_name);
        named.next().filter(|_| named.next().is_none())
    })
}

/// Returns the digest of a skill in its source now, for a source without versions that was just fetched.
pub(crate) fn newest_digest(
    locked: &LockedSkill,
    session: &PackageSession,
) -> Option<ContentDigest> {
    let source = delocalize(&locked.source, session);
    let tree = session.runtime.block_on(session.fetcher.fetch(&source, None)).ok()?;
    same_skill(locked, &discover_in(&tree)).map(|it| it.digest)
}

/// Returns the source of a locked skill, and the version that is locked.
pub(crate) fn source_of_locked(
    locked: &LockedSkill,
    session: &PackageSession,
) -> (SkillSource, Option<Pin>) {
    let source = delocalize(&locked.source, session);
    let pin = match (&locked.commit, &locked.version) {
        (Some(commit), _) => Some(Pin::Commit(commit.clone())),
        (None, Some(version)) => Some(Pin::Version(version.clone())),
        (None, None) => None,
    };
    (source, pin)
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
            it.skills()
                .iter()
                .map(|it| (it.name.clone(), it.source.to_string()))
                .collect::<Vec<_>>()
        })
        .collect()
}
