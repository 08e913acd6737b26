//! From settings, arguments and environment to the library to use.

use std::{
    borrow::Cow,
    env,
    fmt::Display,
    fs::{self, File},
    io::BufReader,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use prowess::{
    Directory, Embedder, Finding, HERE, Library, Listing, LiveLibrary, Memory, Options, PRESETS,
    Preset, Scope, Skill, Source, Tokenizer, Unknown, Watching, bundled, did_you_mean, matches,
    name_hint, nearest, preset, spec::SKILL_FILE,
};
use prowess_cli::settings::{Config, IgnoredSetting, Places, Presets};
#[cfg(feature = "agent")]
use prowess_runtime::SkillProvider;
use prowess_runtime::{FileStore, SkillRecord, store::deleted_from};

use crate::{
    arguments::{Global, ProfileName},
    cli_error::CliError,
    commands::count,
    host,
    printer::Printer,
    skill_count::SkillCount,
    suggest,
    surroundings::surroundings,
    trust,
};

/// Loads the library of the settings and the command line; the bundled skills if none is
/// configured.
pub(crate) fn library(global: &Global, printer: &mut Printer) -> Result<Library> {
    library_with_vectors(global, None, printer)
}

/// Like [`library`], with a file of vectors to find skills by meaning.
pub(crate) fn library_with_vectors(
    global: &Global,
    vectors: Option<&Path>,
    printer: &mut Printer,
) -> Result<Library> {
    let embedder = vectors.map(read_embedder).transpose()?;
    let config = config(global)?;
    let options = Options { embedder, ..options(&config, global) };
    check_typed_directories(global)?;
    let (library, options) = load_or_bundled(&config, options, printer)?;
    note_sources(&config, &options, &library, printer);
    Ok(library)
}

fn read_embedder(path: &Path) -> Result<Arc<Embedder>> {
    File::open(path)
        .map_err(anyhow::Error::from)
        .and_then(|it| Ok(Embedder::read(BufReader::new(it))?))
        .map(Arc::new)
        .with_context(|| format!("cannot use `{}` as vectors", path.display()))
}

/// Loads a live library, for as long as it is served. Only a watched one lists all files from the
/// start, because any of them may change.
pub(crate) fn live_library(
    global: &Global,
    is_watched: bool,
    printer: &mut Printer,
) -> Result<Arc<LiveLibrary>> {
    let config = config(global)?;
    let resources = if is_watched { Listing::AtOnce } else { Listing::OnDemand };
    let mut options = Options { watch: is_watched, resources, ..options(&config, global) };
    check_typed_directories(global)?;
    note_ignored_settings(&config, printer);
    let mut live_library = Arc::new(LiveLibrary::start(&options)?);
    // A watched directory may be empty now and have skills later.
    let is_searched = !is_watched && !options.directories.is_empty();
    if is_searched && !has_directories(&config) && is_empty(&live_library.library()) {
        options = use_bundled(options);
        live_library = Arc::new(LiveLibrary::start(&options)?);
    }
    note_sources(&config, &options, &live_library.library(), printer);
    warn_missing(&live_library.library(), printer);
    match live_library.watching() {
        Watching::Polling(why) => note_polling(&why, printer),
        Watching::Notified => note_polling_later(&live_library, Printer::new(global)),
        Watching::Off => {}
    }
    Ok(live_library)
}

/// Returns the skill provider of a conversation: a live library, if it is to be watched.
#[cfg(feature = "agent")]
pub(crate) fn provider(global: &Global, printer: &mut Printer) -> Result<Arc<dyn SkillProvider>> {
    if config(global)?.skill.watch.value {
        let live_library = live_library(global, true, printer)?;
        note_left_out(&live_library.library(), printer);
        return Ok(live_library);
    }
    let library = library(global, printer)?;
    note_left_out(&library, printer);
    Ok(Arc::new(Arc::new(library)))
}

/// Notes that directories are polled for changes, because the system cannot report them.
fn note_polling(why: &str, printer: &mut Printer) {
    printer.warning(&format!("polling for changes, because {why}"));
}

/// Notes the same as soon as polling begins.
fn note_polling_later(live_library: &Arc<LiveLibrary>, mut printer: Printer) {
    let live_library = Arc::downgrade(live_library);
    // Without a thread the note is left out.
    let _ = thread::Builder::new().spawn(move || {
        while let Some(live_library) = live_library.upgrade() {
            let patience = Duration::from_secs(60 * 60);
            if let Watching::Polling(why) =
                live_library.wait_watching(&Watching::Notified, patience)
            {
                printer.progress_ends();
                return note_polling(&why, &mut printer);
            }
        }
    });
}

/// Loads the library, or the one skill that a path names, wherever it is. Returns the selector of
/// the skill too.
pub(crate) fn library_for(
    name: &str,
    global: &Global,
    printer: &mut Printer,
) -> Result<(Library, String)> {
    let config = config(global)?;
    let mut options = options(&config, global);
    let folder = skill_folder_at(name, global).filter(|_| config.skill.enabled.value);
    let name = folder.as_ref().map_or_else(|| name.to_owned(), |it| it.display().to_string());
    if let Some(folder) = folder {
        let directories = vec![Directory::new(folder)];
        options = Options { directories, sources: Vec::new(), cwd: None, cache: None, ..options };
        return Ok((load(&config, &options, printer)?, name));
    }
    check_typed_directories(global)?;
    let (library, options) = load_or_bundled(&config, options, printer)?;
    note_sources(&config, &options, &library, printer);
    Ok((library, name))
}

/// Returns the folder of the skill at a path; `None` for a name, or a folder without a skill.
pub(crate) fn skill_folder_at(name: &str, global: &Global) -> Option<PathBuf> {
    let path = resolve(&Directory::new(name), global);
    let folder = if path.ends_with(SKILL_FILE) { path.parent()? } else { &path };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    (is_path(name) && folder.join(SKILL_FILE).is_file()).then(|| folder.to_owned())
}

/// Returns whether a path was typed rather than a name.
pub(crate) fn is_path(name: &str) -> bool {
    name.contains('/') || matches!(name, "." | ".." | SKILL_FILE)
}

/// Loads the library without notes about where it comes from, for commands to which that does not
/// matter.
pub(crate) fn library_without_notes(global: &Global, printer: &mut Printer) -> Result<Library> {
    let config = config(global)?;
    let options = options(&config, global);
    Ok(load_or_bundled(&config, options, printer)?.0)
}

/// Loads the library of `prowess list` without notes.
pub(crate) fn library_for_counting(global: &Global) -> Result<Library> {
    let config = config(global)?;
    Ok(Library::load(&options(&config, global))?)
}

/// Returns the options with paths added to the directories of `--dir`; a `SKILL.md` stands for its
/// folder.
pub(crate) fn with_paths(global: &Global, paths: &[PathBuf]) -> Global {
    let dir = global
        .dir
        .iter()
        .cloned()
        .chain(paths.iter().map(
            |it: &PathBuf| match resolve(&Directory::new(it), global).is_file() {
                true if it.ends_with(SKILL_FILE) => match it.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
                    _ => PathBuf::from("."),
                },
                _ => it.clone(),
            },
        ))
        .collect();
    Global { dir, ..global.clone() }
}

/// Returns whether a word names a folder to search, which is not a skill itself.
pub(crate) fn is_folder_of_skills(word: &str, global: &Global) -> bool {
    let path = resolve(&Directory::new(word), global);
    is_path(word) && path.is_dir() && skill_folder_at(word, global).is_none()
}

/// Returns whether directories were configured, by a flag or in a file.
pub(crate) fn has_directories(config: &Config) -> bool {
    !config.directories().is_empty() || !config.skill.presets.value.presets.is_empty()
}

/// Returns the directories to search, including those of the preset `here`; empty if none is
/// configured and none exists here.
pub(crate) fn directories(config: &Config, global: &Global) -> Vec<Directory> {
    let mut directories = config.directories();
    let presets = &config.skill.presets.value.presets;
    if !has_directories(config) || presets.iter().any(|it| it.name == HERE) {
        directories.extend(here_directories(global));
    }
    directories
}

/// Returns the existing directories of the preset `here`. Those of the project are searched from
/// the working directory up.
fn here_directories(global: &Global) -> Vec<Directory> {
    let Ok((surroundings, _)) = surroundings(global, None) else { return Vec::new() };
    let directories = surroundings.here().into_iter().filter(|it| it.path.is_dir());
    directories
        .map(|it: Directory| match it.path.strip_prefix(&surroundings.cwd) {
            Ok(path) if it.scope == Scope::Project => Directory { path: path.to_owned(), ..it },
            _ => it,
        })
        .collect()
}

/// Notes where skills come from if no directory is configured.
fn note_sources(config: &Config, options: &Options, library: &Library, printer: &mut Printer) {
    let enabled = &config.skill.enabled;
    if !enabled.value {
        printer.note(&format!("skills are disabled by `skill.enabled` ({})", enabled.origin));
        return;
    }
    if options.home.is_none()
        && (!has_directories(config)
            || options.directories.iter().any(|it: &Directory| it.path.starts_with("~")))
    {
        printer
            .warning("`HOME` is not set to an absolute path, so your own skills are not searched");
    }
    if has_directories(config) {
        return;
    }
    if let many @ 1.. = skills_of_plugins(options) {
        let skills = count(many, "skill");
        printer.note(&format!("{skills} in `{OF_PLUGINS}` here, where clients do not look; `prowess list .` lists them"));
    }
    if options.directories.is_empty() && library.all().next().is_none() {
        // The skills were left out, which was reported.
        return;
    }
    if options.directories.is_empty() {
        printer.note("no skills in this project or your home directory, so the bundled skills are used; choose others with `--dir DIR`, `--preset NAME` or `prowess.toml`");
        return;
    }
    let skills = count(SkillCount::of(library).found, "skill");
    let places = list_directories(&options.directories, options.home.as_deref());
    printer.note(&format!("{skills} in {places} (preset `{HERE}`)"));
}

/// The skills directories in a repository of plugins.
pub(crate) const OF_PLUGINS: &str = "plugins/*/skills";

/// Returns the number of skills in the plugins of a repository in which nothing is searched.
fn skills_of_plugins(options: &Options) -> usize {
    match options.directories.iter().any(|it| it.scope == Scope::Project) {
        true => 0,
        false => count_in_plugins(options.cwd.as_deref().unwrap_or(Path::new("."))),
    }
}

/// Returns the number of skills in the plugins of a repository.
pub(crate) fn count_in_plugins(repository: &Path) -> usize {
    let plugins = entries_of(repository.join("plugins")).map(|it| it.join("skills"));
    plugins.flat_map(entries_of).filter(|it| it.join(SKILL_FILE).is_file()).count()
}

/// Returns the paths in a folder; none if it cannot be read.
fn entries_of(folder: PathBuf) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|it| Some(it.ok()?.path()))
}

/// Lists the first directories, shortened for people.
pub(crate) fn list_directories(directories: &[Directory], home: Option<&Path>) -> String {
    /// The number of directories listed.
    const NAMED: usize = 4;
    let mut names: Vec<String> = directories
        .iter()
        .take(NAMED)
        .map(|it: &Directory| match home.and_then(|home| it.path.strip_prefix(home).ok()) {
            Some(path) => format!("`~/{}`", path.display()),
            None => format!("`{}`", it.path.display()),
        })
        .collect();
    if directories.len() > NAMED {
        names.push(format!("{} more", directories.len() - NAMED));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Fails if none of the directories on the command line exists.
pub(crate) fn check_typed_directories(global: &Global) -> Result<(), CliError> {
    let resolved: Vec<PathBuf> =
        global.dir.iter().map(|it| resolve(&Directory::new(it), global)).collect();
    let (Some(first), Some(path)) = (global.dir.first(), resolved.first()) else { return Ok(()) };
    if !global.preset.is_empty() || resolved.iter().any(|it| it.exists()) {
        return Ok(());
    }
    let fault = CliError::new(format!("there is no directory `{}`", first.display()));
    Err(match suggest::path(path).filter(|it| Path::new(it).is_dir()) {
        Some(near) => fault.hint(did_you_mean(near)),
        None => fault,
    })
}

/// Returns whether a library is empty and has no findings.
fn is_empty(library: &Library) -> bool {
    library.all().next().is_none() && library.findings().is_empty()
}

/// Replaces all sources by the bundled skills.
fn use_bundled(options: Options) -> Options {
    Options { directories: Vec::new(), sources: vec![bundled()], ..options }
}

/// Loads a library; the bundled skills if no directory is configured and there is no skill here.
fn load_or_bundled(
    config: &Config,
    options: Options,
    printer: &mut Printer,
) -> Result<(Library, Options)> {
    let library = load(config, &options, printer)?;
    if has_directories(config) || options.directories.is_empty() || !is_empty(&library) {
        return Ok((library, options));
    }
    let options = use_bundled(options);
    Ok((Library::load(&options)?, options))
}

/// Leaks a library, because freeing it at the end of the process takes longer.
pub(crate) fn leak(library: Library) -> &'static Library {
    Box::leak(Box::new(library))
}

fn load(config: &Config, options: &Options, printer: &mut Printer) -> Result<Library> {
    note_ignored_settings(config, printer);
    let library = printer.with_progress("reading skills", || Library::load(options))?;
    warn_missing(&library, printer);
    Ok(library)
}

/// Indexes all skills, with progress if there are many.
pub(crate) fn index(library: &Library, printer: &mut Printer) {
    printer.with_progress("indexing skills", || matches(library, "", 0));
}

fn warn_missing(library: &Library, printer: &mut Printer) {
    for finding in library.findings().iter().filter(|it| is_missing_directory(it)) {
        printer.finding(finding);
        if !printer.quiet {
            printer.suggest(&finding.path);
        }
    }
}

/// Returns whether a finding is about a missing directory, which every command reports at once.
pub(crate) fn is_missing_directory(finding: &Finding) -> bool {
    finding.rule.code == "directory-missing"
}

/// Loads the settings from files, and applies the flags.
pub(crate) fn config(global: &Global) -> Result<Config> {
    let mut config = global.configs.load(places(global))?;
    apply_flags(&mut config, global)?;
    Ok(config)
}

/// Returns the places of settings.
pub(crate) fn places(global: &Global) -> Places {
    let cwd = global.cwd.as_deref().unwrap_or(Path::new(""));
    Places {
        only: global.config.as_deref().map(|it| cwd.join(it)),
        from: (!global.ignores_project_file).then(|| cwd.join(".")),
        state: host::state(),
        ..host::user_places()
    }
}

fn apply_flags(config: &mut Config, global: &Global) -> Result<()> {
    let skill = &mut config.skill;
    if !global.dir.is_empty() || !global.preset.is_empty() {
        let presets = global.preset.iter().map(|it| find_preset(it)).collect::<Result<_>>()?;
        skill.skills_dir.flag("--dir", None);
        skill.directories.flag("--dir", global.dir.iter().map(Directory::repository).collect());
        skill.presets.flag("--preset", Presets { presets, from: None });
    }
    if !global.include.is_empty() {
        skill.include.flag("--include", Some(global.include.clone()));
    }
    if !global.exclude.is_empty() {
        skill.exclude.flag("--exclude", global.exclude.clone());
    }
    if let Some(size) = global.max_file_size {
        skill.max_file_size.flag("--max-file-size", size);
    }
    if let Some(size) = global.max_skill_size {
        skill.max_skill_size.flag("--max-skill-size", size);
    }
    if let Some(depth) = global.depth {
        skill.depth.flag("--depth", depth);
    }
    if global.no_cache {
        skill.cache.flag("--no-cache", false);
    }
    Ok(())
}

/// Returns the preset of a name.
fn find_preset(name: &str) -> Result<&'static Preset> {
    if let Some(preset) = preset(name) {
        return Ok(preset);
    }
    let fault = CliError::new(format!("there is no preset `{name}`"));
    Err(fault.hint(name_hint(name, PRESETS.iter().map(|it| it.name))).into())
}

/// Returns the options to load a library with.
pub(crate) fn options(config: &Config, global: &Global) -> Options {
    let mut options = Options {
        cwd: global.cwd.clone(),
        home: home(),
        profile: global.profile.into(),
        cache: config.skill.cache.value.then(host::cache).flatten(),
        ..config.options()
    };
    if config.skill.enabled.value {
        options.directories = directories(config, global);
        options.directories.retain(|it| !global.untrusted.contains(&resolve(it, global)));
    }
    if options.directories.is_empty() && options.sources.is_empty() {
        let has_others = has_directories(config) || global.leaves_out_skills;
        options.sources.push(if has_others { empty_source() } else { bundled() });
    }
    options
}

/// Returns a source without skills.
fn empty_source() -> Arc<dyn Source> {
    Arc::new(Memory::new(Scope::Project, "", <[(&str, &[u8]); 0]>::default()))
}

/// Returns the home directory, if it is known.
pub(crate) fn home() -> Option<PathBuf> {
    env::home_dir().filter(|it| it.is_absolute())
}

/// Returns the directories that a project has to be trusted for, each with the folder of the
/// settings file that names it.
pub(crate) fn directories_of_project(
    config: &Config,
    global: &Global,
) -> Vec<(Directory, Option<PathBuf>)> {
    let typed = places(global).only.filter(|it| trust::is_of_project(it, global));
    let mut directories = config.directories_of_project(typed.as_deref());
    let presets = &config.skill.presets.value.presets;
    if !has_directories(config) || presets.iter().any(|it| it.name == HERE) {
        let here = here_directories(global).into_iter().filter(|it| it.scope == Scope::Project);
        directories.extend(here.map(|it| (it, None)));
    }
    let typed: Vec<PathBuf> =
        global.dir.iter().map(|it| resolve(&Directory::repository(it), global)).collect();
    directories.retain(|it| !typed.contains(&resolve(&it.0, global)));
    directories
}

/// Resolves a configured directory.
pub(crate) fn resolve(directory: &Directory, global: &Global) -> PathBuf {
    directory.resolve(global.cwd.as_deref(), home().as_deref())
}

/// A store to write to, with its path for people.
pub(crate) struct TargetStore {
    pub(crate) store: FileStore,
    /// The path, as typed or configured.
    pub(crate) path: PathBuf,
    pub(crate) scope: Scope,
}

impl TargetStore {
    /// Returns the path of the `SKILL.md` of a record, for people.
    pub(crate) fn document(&self, entry: &SkillRecord) -> PathBuf {
        let folder = entry.folder.as_deref().and_then(Path::file_name).unwrap_or_default();
        self.path.join(folder).join(SKILL_FILE)
    }
}

/// Returns the store to write to: the first directory on the command line, otherwise the configured
/// one.
pub(crate) fn target_store(global: &Global, printer: &mut Printer) -> Result<Option<TargetStore>> {
    let config = config(global)?;
    note_ignored_settings(&config, printer);
    let directory = config.directories().into_iter().next();
    directory.map(|it: Directory| open_store(resolve(&it, global), it.scope)).transpose()
}

/// Returns the store to write to; if none is configured, the first existing client directory of
/// this project, or `.agents/skills`, which most clients read.
pub(crate) fn target_store_or_here(global: &Global, printer: &mut Printer) -> Result<TargetStore> {
    if let Some(target) = target_store(global, printer)? {
        return Ok(target);
    }
    let project = here_directories(global).into_iter().find(|it| it.scope == Scope::Project);
    let directory = project.unwrap_or_else(|| Directory::new(".agents/skills"));
    open_store(resolve(&directory, global), Scope::Project)
}

/// Returns the store that contains a skill; if there is no such skill, the one to write to.
pub(crate) fn store_of_skill(
    name: &str,
    global: &Global,
    printer: &mut Printer,
) -> Result<TargetStore> {
    let config = config(global)?;
    let library = Library::load(&options(&config, global))?;
    let skill = find_by_name(&library, name);
    // A directory that is a skill itself is not a store.
    let named: Vec<PathBuf> =
        directories(&config, global).iter().map(|it| resolve(it, global)).collect();
    let Some(folder) = folder_of_skill(&library, name).filter(|it| !named.contains(it)) else {
        return target_store_or_here(global, printer);
    };
    let store = folder.parent().unwrap_or(Path::new("")).to_owned();
    let scope = skill.map_or(Scope::Project, |it| it.origin.scope);
    open_store(store, scope)
}

/// Returns the folder of a skill, even if the skill was left out.
pub(crate) fn folder_of_skill(library: &Library, name: &str) -> Option<PathBuf> {
    let loaded = find_by_name(library, name).map(Skill::folder);
    // A skill that could not be loaded has a finding, and a folder of its name.
    let broken = library.findings().iter().filter_map(|it| it.path.parent());
    let broken = broken.filter(|it| it.file_name().is_some_and(|it| it == name));
    loaded.into_iter().chain(broken).find(|it| it.is_dir()).map(Path::to_owned)
}

/// Returns a skill by name, even if it is hidden or disabled.
fn find_by_name<'lib>(library: &'lib Library, name: &str) -> Option<&'lib Skill> {
    library.get(name).or_else(|| library.all().find(|it| &*it.manifest.name == name))
}

/// Returns the store from which a skill was last removed: one of the searched directories before
/// any other, and only those if some were typed.
pub(crate) fn store_of_removed_skill(
    name: Option<&str>,
    global: &Global,
    printer: &mut Printer,
) -> Result<TargetStore> {
    let searched = searched_directories(&config(global)?, global);
    let is_typed = !global.dir.is_empty() || !global.preset.is_empty();
    let store = host::state().and_then(|state| {
        deleted_from(&state, name, |it| as_typed(it, &searched).is_some())
            .or_else(|| deleted_from(&state, name, |_| !is_typed))
    });
    match store {
        Some(store) => open_store(as_typed(&store, &searched).unwrap_or(store), Scope::Project),
        None => target_store_or_here(global, printer),
    }
}

/// Returns the path of a store below one of the searched directories, as that was typed or set.
fn as_typed(store: &Path, searched: &[(PathBuf, PathBuf)]) -> Option<PathBuf> {
    searched.iter().find_map(|(real, typed)| {
        let rest = store.strip_prefix(real).ok()?;
        Some(if rest.as_os_str().is_empty() { typed.clone() } else { typed.join(rest) })
    })
}

/// Returns the store of the latest removal among those that match.
pub(crate) fn last_removal_store(is_wanted: impl Fn(&Path) -> bool) -> Option<FileStore> {
    let state = host::state()?;
    let store = FileStore::open(deleted_from(&state, None, is_wanted)?).ok()?;
    Some(store.with_state(state))
}

/// Returns the searched directories: each resolved, and as typed or set.
pub(crate) fn searched_directories(config: &Config, global: &Global) -> Vec<(PathBuf, PathBuf)> {
    let searched = directories(config, global);
    let searched = searched.iter().map(|it| resolve(it, global));
    searched.filter_map(|it| Some((prowess::real_path(&it).ok()?, it))).collect()
}

fn open_store(path: PathBuf, scope: Scope) -> Result<TargetStore> {
    let here = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
    let store = FileStore::open(here)?;
    let store = match host::state() {
        Some(state) => store.with_state(state),
        None => store,
    };
    Ok(TargetStore { store, path, scope })
}

/// Returns the options that choose directories, for a suggested command.
pub(crate) fn directory_flags(global: &Global) -> String {
    let (dirs, cwd, config) = (global.dir.iter(), global.cwd.iter(), global.config.iter());
    let mut all: Vec<(&str, Cow<'_, str>)> = Vec::new();
    all.extend(dirs.map(|it| ("--dir", it.to_string_lossy())));
    all.extend(global.preset.iter().map(|it| ("--preset", it.into())));
    all.extend(cwd.map(|it| ("--cwd", it.to_string_lossy())));
    all.extend(config.map(|it| ("--config", it.to_string_lossy())));
    all.extend(global.depth.iter().map(|it| ("--depth", it.get().to_string().into())));
    if global.profile != ProfileName::Spec {
        let name = global.profile.to_possible_value().map(|it| it.get_name().to_owned());
        all.extend(name.map(|it| ("--profile", it.into())));
    }
    all.iter().map(|(flag, it)| format!(" {flag} {}", shell_quote(it))).collect()
}

/// Quotes a word for a shell.
pub(crate) fn shell_quote(word: &str) -> String {
    match !word.is_empty()
        && word.chars().all(|c: char| c.is_alphanumeric() || "/._-~:@%+=,".contains(c))
    {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Notes once in a command, in one line, which settings files were ignored, and which settings of a
/// project's file.
pub(crate) fn note_ignored_settings(config: &Config, printer: &mut Printer) {
    if mem::replace(&mut printer.has_noted_ignored_settings, true) {
        return;
    }
    let config_command = printer.with_directory_flags("`prowess config`");
    match (&config.ignored_files[..], &config.ignored[..]) {
        ([], []) => {}
        ([file], []) => printer.warning(&describe_ignored_file(file)),
        ([], [one]) => {
            let ignored = describe_ignored(one);
            printer.warning(&format!("{ignored}; see {config_command}"));
        }
        (files, settings) => {
            let mut names: Vec<Cow<'_, str>> =
                files.iter().map(|it| it.0.to_string_lossy()).collect();
            names.extend(settings.iter().map(|it| it.key.into()));
            names.dedup();
            let names = quote_entries(&names);
            let of = match &config.project {
                Some(project) => format!(" ({})", project.path.display()),
                None => String::new(),
            };
            printer.warning(&format!("ignored {names}{of}; {config_command} explains why"));
        }
    }
}

fn describe_ignored_file((path, why): &(PathBuf, &'static str)) -> String {
    format!("ignored `{}`: {why}; use `--config` to read it", path.display())
}

fn describe_ignored(ignored: &IgnoredSetting) -> String {
    let IgnoredSetting { key, origin, entries, reason, .. } = ignored;
    let what = match entries.is_empty() {
        true => format!("`{key}`"),
        false => format!("{} in `{key}`", quote_entries(entries)),
    };
    format!("ignored {what} ({origin}): {reason}")
}

/// Explains which settings files were ignored, and which settings of a project's file, each in a
/// line, and what to do about it.
pub(crate) fn explain_ignored_settings(config: &Config, printer: &mut Printer) {
    config.ignored_files.iter().for_each(|it| printer.warning(&describe_ignored_file(it)));
    config.ignored.iter().for_each(|it| printer.warning(&describe_ignored(it)));
    if printer.quiet {
        return;
    }
    if config.ignored.iter().any(|it| it.can_be_approved) {
        printer.hint(
            "read the file, then accept its commands and hosts with `prowess config --approve`",
        );
    } else if !config.ignored.is_empty() {
        printer.hint(
            "set it in your own file (`prowess config --path`), or use this file with `--config`",
        );
    }
}

/// Lists the first entries, each in backticks.
pub(crate) fn quote_entries(entries: &[impl Display]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = entries.iter().take(SHOWN).map(|it| format!("`{it}`")).collect();
    match entries.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns the tokenizer of the model on the command line, otherwise of the configured one.
pub(crate) fn tokenizer(model: Option<&str>, config: &Config) -> Tokenizer {
    let model = model.or(config.model.name.value.as_deref());
    model.map_or(Tokenizer::Estimate, Tokenizer::for_model)
}

/// Returns the error that there is no skill of this name, with the reason it was left out, or the
/// nearest name.
pub(crate) fn no_skill(library: &Library, name: &str) -> CliError {
    if let Some(finding) = library.why_left_out(name) {
        let path = finding.path.display();
        let fault =
            CliError::invalid_input(format!("`{name}` was left out: {} ({path})", finding.message));
        return fault.hint(&*finding.hint);
    }
    let fault = CliError::invalid_input(format!("there is no skill `{name}`"));
    match nearest_skill(library, name) {
        Some(near) => fault.hint(did_you_mean(near)),
        None => fault.hint("`prowess list` lists all skills"),
    }
}

/// Returns the nearest name of a skill, or of the folder of one that was left out.
pub(crate) fn nearest_skill<'l>(library: &'l Library, name: &str) -> Option<&'l str> {
    let left_out = library.left_out().iter();
    let folders = left_out.filter_map(|it| it.parent()?.file_name()?.to_str());
    nearest(name, library.skills().map(|it| &*it.manifest.name).chain(folders))
}

/// Notes in one line which skills were left out, with reasons, for commands that would have used
/// them.
pub(crate) fn note_left_out(library: &Library, printer: &mut Printer) {
    /// The number of skills named.
    const NAMED: usize = 3;
    let left_out = library.left_out();
    let mut names: Vec<String> = left_out
        .iter()
        .take(NAMED)
        .map(|path: &Arc<Path>| {
            let folder = path.parent().and_then(Path::file_name).unwrap_or(path.as_os_str());
            let why = library.reason(path).map(|it| format!(" ({})", it.message));
            format!("`{}`{}", folder.to_string_lossy(), why.unwrap_or_default())
        })
        .collect();
    if left_out.len() > NAMED {
        names.push(format!("{} more", left_out.len() - NAMED));
    }
    if !names.is_empty() {
        let (skills, see) =
            (count(left_out.len(), "skill"), printer.with_directory_flags("`prowess list`"));
        printer.warning(&format!("{skills} left out: {}; see {see}", names.join(", ")));
    }
}

/// Warns about mentions of unknown or disabled skills, each with the nearest name.
pub(crate) fn warn_about_unknown(mentions: &[Unknown], printer: &mut Printer) {
    for Unknown { name, nearest, .. } in mentions {
        let hint = nearest.as_ref().map(|it| format!("; {}", did_you_mean(it)));
        let hint = hint.unwrap_or_default();
        printer.warning(&format!("there is no active skill `{name}`{hint}"));
    }
}
