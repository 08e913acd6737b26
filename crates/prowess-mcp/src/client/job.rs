//! The job of a server program: the program, and the paths and hosts it can access.

#[cfg(feature = "http")]
use std::sync::Arc;
use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use prowess::Directory;
#[cfg(feature = "http")]
use prowess_http::Hosts;
#[cfg(feature = "http")]
use prowess_runtime::sandbox::{HostRemedy, Proxy};
use prowess_runtime::{
    Outcome, OutcomeStatus,
    environment::{Ecosystem, InstalledInterpreter},
    executor::system_program,
    files::{Author, FileRules, ProgramFiles},
    skill::{SkillFile, give_folder},
};
use prowess_sandbox::{Job, Network, Work, is_of_system};

use super::{
    expand::PlaceholderValues,
    launcher::McpLauncher,
    refusal::{
        refusal, refuse, refuse_for_error, refuse_missing, refuse_unknown_variable, reject_paths,
    },
};
use crate::config::{
    McpServerConfig, PackageCommand, ProjectCommand, ServerProgram, ServerSetting,
};

/// The texts of an entry, expanded.
struct ExpandedTexts {
    command: String,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    reads: Vec<String>,
    writes: Vec<String>,
}

/// A program, with its additional readable paths and search path.
#[derive(Default)]
struct ResolvedProgram {
    program: PathBuf,
    reads: Vec<PathBuf>,
    path: Vec<PathBuf>,
    /// The prepared environment that contains it, if any.
    prepared: Option<PathBuf>,
    /// Whether Node.js is hidden from it, unless its own packages bring it.
    is_without_node: bool,
}

/// The name of the copy of the skill among the files of a server.
const COPY: &str = "skill";
/// The programs of Node.js, and their replacement for a server without it.
const NODE: &[&str] = &["node", "npm", "npx"];
const ABSENT: &str =
    "#!/bin/sh\necho \"${0##*/}: not found: this server runs without Node.js\" >&2\nexit 127\n";
/// Programs that start processes elsewhere, outside of our sandbox.
const CONTAINERS: &[&str] = &["docker", "nerdctl", "podman"];

/// The folders of version managers' interpreters in a home directory.
const INSTALLATIONS: &[&str] = &[
    ".asdf/installs",
    ".local/share/mise/installs",
    ".local/share/uv/python",
    ".nvm/versions/node",
    ".pyenv/versions",
];

impl McpLauncher {
    /// Creates the job of a configured server, with the paths in its entry and its arguments.
    pub(super) fn job_of_setting(
        &self,
        set: &ServerSetting,
        program: &ServerProgram,
    ) -> Result<Job, Box<Outcome>> {
        let description = &set.description;
        let known = PlaceholderValues { folder: None, variables: &self.environment };
        let mut texts = expand_texts(program, &known)
            .map_err(|name| refuse_unknown_variable(description, &name))?;
        let file = set.file();
        let project = file.as_deref().and_then(Path::parent).filter(|_| !set.is_trusted);
        let author = project.map_or(Author::User, Author::Project);
        let base = project.unwrap_or(&self.directory);
        let mut directory = (!program.directory.is_empty()).then(|| base.join(&program.directory));
        if let Some(command) = ProjectCommand::of(&texts.command, &texts.arguments) {
            let from = directory.as_deref().unwrap_or(base);
            directory =
                Some(self.use_project_environment(description, command, from, &mut texts)?);
        }
        if let Some(directory) = directory.as_ref().filter(|it| author.is_outside(it)) {
            return Err(self.refuse_outside(description, directory));
        }
        // Its working directory is readable.
        texts.reads.extend(directory.iter().map(|it| it.to_string_lossy().into_owned()));
        let base = directory.as_deref().unwrap_or(base);
        let command = self.find_program(description, &mut texts, base, author)?;
        let ExpandedTexts { arguments, environment, reads, writes, .. } = texts;
        let files = self.files(description, arguments, [reads, writes], base, author)?;
        let begins = files.is_relative.then(|| base.to_owned());
        let job = self.make_job(description, command, files, self.work()?)?;
        let key = format!("servers.{}.hosts", description.name);
        let network = network(description, &program.hosts, key, file)?;
        Ok(Job { env: environment, directory: directory.or(begins), network, ..job })
    }

    /// Creates the job of a skill's server, with a copy of the skill as the working directory.
    pub(super) fn job_of_skill(
        &self,
        description: &McpServerConfig,
        program: &ServerProgram,
        files: &[SkillFile],
    ) -> Result<Job, Box<Outcome>> {
        let work = self.work()?;
        let folder = give_folder(&work, COPY, files);
        let folder =
            folder.map_err(|error| Box::new(Outcome::error(OutcomeStatus::Failed, &error)))?;
        let known = PlaceholderValues {
            folder: Some(&folder.to_string_lossy()),
            variables: &self.environment,
        };
        let mut texts = expand_texts(program, &known)
            .map_err(|name| refuse_unknown_variable(description, &name))?;
        let command = match texts.command.contains('/') {
            true => ResolvedProgram {
                program: own_program(description, &texts.command, &folder, files)?,
                ..self.interpreters_by_name()
            },
            false => self.find_program(description, &mut texts, &folder, Author::Skill)?,
        };
        let directory = known.expand(&program.directory);
        let directory = directory.map_err(|name| refuse_unknown_variable(description, &name))?;
        let directory = resolve_inside(&directory, &folder).ok_or_else(|| {
            refuse(description, &format!("`cwd` leads out of the skill: `{directory}`"))
        })?;
        let ExpandedTexts { arguments, environment, reads, writes, .. } = texts;
        let (keys, base) = ([reads, writes], &self.directory);
        let mut access = self.files(description, arguments, keys, base, Author::Skill)?;
        access.reads.push(folder.clone());
        let job = self.make_job(description, command, access, work)?;
        let network = network(description, &program.hosts, "hosts".to_owned(), None)?;
        Ok(Job { env: environment, directory: Some(directory), network, ..job })
    }

    /// Creates a job with a program and files.
    fn make_job(
        &self,
        description: &McpServerConfig,
        command: ResolvedProgram,
        mut files: ProgramFiles,
        work: Work,
    ) -> Result<Job, Box<Outcome>> {
        // Environments are withheld from all, but a server can read its own.
        if let Some(store) = self.environments.as_ref().filter(|_| command.prepared.is_some()) {
            let root = prowess::real_path(store.root()).unwrap_or_else(|_| store.root().to_owned());
            if let Some(writes) = store.reached_by(&files.writes) {
                let (writes, root) = (writes.display(), root.display());
                let why = format!(
                    "`write` includes `{writes}`, where environments are stored (`{root}`)"
                );
                return Err(reject_paths(description, &why));
            }
            files.withheld.retain(|it| *it != root);
        }
        let mut path = command.path;
        if command.is_without_node {
            for name in NODE {
                work.give(&format!("absent/{name}"), ABSENT.as_bytes())
                    .map_err(|error| Box::new(Outcome::error(OutcomeStatus::Failed, &error)))?;
            }
            // After the programs of its own packages, before all others.
            path.insert(1, work.given_path("absent"));
        }
        let words = files.words.into_iter().map(Into::into);
        let argv = std::iter::once(command.program.into()).chain(words).collect();
        Ok(Job {
            reads: self.reads.iter().cloned().chain(files.reads).chain(command.reads).collect(),
            layered: command.prepared.into_iter().collect(),
            writes: files.writes,
            withheld: files.withheld,
            path,
            ..Job::new(argv, work, self.limits)
        })
    }

    fn work(&self) -> Result<Work, Box<Outcome>> {
        Work::new().map_err(|error| Box::new(Outcome::error(OutcomeStatus::Failed, &error)))
    }

    /// Returns the files of a server, by the keys `read` and `write` and by its arguments.
    fn files(
        &self,
        description: &McpServerConfig,
        arguments: Vec<String>,
        [reads, writes]: [Vec<String>; 2],
        base: &Path,
        author: Author<'_>,
    ) -> Result<ProgramFiles, Box<Outcome>> {
        let (policy, home) = (&self.authorizer.policy, self.interpreters.home.as_deref());
        let rules = FileRules { policy, base, home, author };
        let files = rules.files(arguments, &reads, &writes);
        files.map_err(|why| reject_paths(description, &why))
    }

    /// Refuses a path of a project's entry that is outside of the project.
    fn refuse_outside(&self, description: &McpServerConfig, path: &Path) -> Box<Outcome> {
        let (name, path) = (&description.name, path.display());
        let message = format!(
            "the server `{name}` is not started: a project's file cannot use `{path}`, which is outside the project"
        );
        refusal(message, self.outside_hint(description))
    }

    /// Returns the hint on how to give a project's server access outside of the project.
    pub(super) fn outside_hint(&self, description: &McpServerConfig) -> String {
        let (name, file) = (&description.name, self.settings_file.as_deref());
        let file = file.map_or("`prowess config --path` names it".to_owned(), |it| {
            let home = self.interpreters.home.as_ref();
            match home.and_then(|home| it.strip_prefix(home).ok()) {
                Some(rest) => format!("`~/{}`", rest.display()),
                None => format!("`{}`", it.display()),
            }
        });
        format!("move `[servers.{name}]` to your own file ({file})")
    }

    /// Makes a `uv run` command use the virtual environment of its project; returns the directory.
    fn use_project_environment(
        &self,
        description: &McpServerConfig,
        command: Result<ProjectCommand, String>,
        base: &Path,
        texts: &mut ExpandedTexts,
    ) -> Result<PathBuf, Box<Outcome>> {
        let command = command.map_err(|why| refuse(description, &why))?;
        let home = self.interpreters.home.as_deref();
        let directory = Directory::new(&command.directory).resolve(Some(base), home);
        let directory: PathBuf = directory.components().collect();
        let program = directory.join(".venv/bin").join(&command.program);
        if !program.exists() {
            let (name, place) = (&description.name, directory.display());
            let (program, message) = (&command.program, "is not started: there is no");
            let message = format!("the server `{name}` {message} `{program}` in `{place}/.venv`");
            let hint = format!("run `uv sync` in `{place}` first");
            return Err(refusal(message, hint));
        }
        texts.command = program.to_string_lossy().into_owned();
        texts.arguments = command.arguments;
        Ok(directory)
    }

    /// Finds the program of a server, by its name or its path, with the paths it has to read. If
    /// the command downloads packages, it is the prepared program, and the arguments are those
    /// after it.
    fn find_program(
        &self,
        description: &McpServerConfig,
        texts: &mut ExpandedTexts,
        base: &Path,
        author: Author<'_>,
    ) -> Result<ResolvedProgram, Box<Outcome>> {
        let command = &*texts.command;
        match PackageCommand::of(command, &texts.arguments) {
            Some(Ok(command)) => {
                let programs = self.find_prepared(description, &command, author)?;
                texts.arguments = command.arguments;
                return Ok(programs);
            }
            Some(Err(why)) => return Err(refuse(description, &why)),
            None if CONTAINERS.contains(&command) => {
                let why = format!("the sandbox cannot confine what `{command}` starts");
                return Err(refuse(description, &why));
            }
            None => {}
        }
        let (program, reads) = if command.contains('/') {
            let home = self.interpreters.home.as_deref();
            let path = Directory::new(command).resolve(Some(base), home);
            if !path.exists() {
                return Err(refuse_missing(description, command));
            }
            let found = self.interpreters.program_at(&path);
            // A project cannot give access to the files around a program elsewhere.
            let is_foreign = path.parent().is_some_and(|it| author.is_outside(it));
            if is_foreign
                && found.as_ref().is_some_and(|it: &InstalledInterpreter| {
                    it.reads.iter().any(|it| *it != path && !is_of_system(it))
                })
            {
                return Err(self.refuse_outside(description, &path));
            }
            let found = found.filter(|_| !is_foreign);
            let mut reads = found.map_or_else(|| vec![path.clone()], |it| it.reads);
            if let Author::Project(project) = author {
                // A project cannot give access to files elsewhere, whether by a link or a shebang.
                let interpreters = self.interpreters_by_name().reads;
                reads.retain(|it| {
                    *it == path
                        || is_really_in(it, project)
                        || interpreters.contains(it)
                        || is_installation(it, home)
                });
            }
            (path, reads)
        } else {
            match self
                .interpreters
                .program(command)
                .map_err(|error| Box::new(Outcome::error(OutcomeStatus::Invalid, &error)))?
            {
                Some(found) => (found.program, found.reads),
                None => {
                    let found = system_program(command);
                    (found.ok_or_else(|| refuse_missing(description, command))?, Vec::new())
                }
            }
        };
        let others = self.interpreters_by_name();
        let path = program.parent().map(Path::to_owned).into_iter().chain(others.path).collect();
        let reads = reads.into_iter().chain(others.reads).collect();
        Ok(ResolvedProgram { program, reads, path, ..ResolvedProgram::default() })
    }

    /// Finds the program of prepared packages.
    fn find_prepared(
        &self,
        description: &McpServerConfig,
        command: &PackageCommand,
        author: Author<'_>,
    ) -> Result<ResolvedProgram, Box<Outcome>> {
        let recipe = command
            .recipe(&self.interpreters)
            .map_err(|error| refuse_for_error(description, &error))?;
        let store = self.environments.as_ref();
        let found = store
            .map_or(Ok(None), |it| it.find(&recipe))
            .map_err(|error| refuse_for_error(description, &error))?;
        let Some(found) = found else {
            return Err(refuse_unprepared(description, command, author));
        };
        let program = command.program_in(&found).map_err(|why| refuse(description, &why))?;
        let others = self.interpreters_by_name();
        let own = recipe.interpreter.parent().map(Path::to_owned);
        let path = [found.bin()].into_iter().chain(own).chain(others.path).collect();
        let reads = found.reads.into_iter().chain(others.reads).collect();
        // A package that finds Node.js may download unapproved packages, and fail if it cannot.
        let names_node = command.arguments.iter().any(|it| NODE.contains(&it.as_str()));
        let is_without_node = command.ecosystem == Ecosystem::Python && !names_node;
        Ok(ResolvedProgram { program, reads, path, prepared: Some(found.tree), is_without_node })
    }

    /// Returns the interpreters that programs start by name.
    fn interpreters_by_name(&self) -> ResolvedProgram {
        let found = ["python3", "node"].into_iter();
        let found: Vec<InstalledInterpreter> =
            found.filter_map(|it| self.interpreters.find(it).ok().flatten()).collect();
        let path = found.iter().filter_map(|it| it.program.parent()).map(Path::to_owned).collect();
        let reads = found.iter().flat_map(|it| it.reads.clone()).collect();
        ResolvedProgram { path, reads, ..ResolvedProgram::default() }
    }
}

/// Expands the texts of an entry; the error is the name of a forbidden variable.
fn expand_texts(
    program: &ServerProgram,
    known: &PlaceholderValues<'_>,
) -> Result<ExpandedTexts, String> {
    let variables = program.environment.iter();
    let variables = variables.map(|(name, value)| Ok((name.clone(), known.expand(value)?)));
    Ok(ExpandedTexts {
        command: known.expand(&program.command)?,
        arguments: known.expand_all(&program.arguments)?,
        environment: variables.collect::<Result<_, String>>()?,
        reads: known.expand_all(&program.reads)?,
        writes: known.expand_all(&program.writes)?,
    })
}

/// Whether a path is in a directory after links are resolved.
fn is_really_in(path: &Path, directory: &Path) -> bool {
    let (path, directory) = (prowess::real_path(path).ok(), prowess::real_path(directory).ok());
    path.zip(directory).is_some_and(|(path, directory)| path.starts_with(directory))
}

/// Whether a directory only contains an interpreter that a version manager has installed.
fn is_installation(path: &Path, home: Option<&Path>) -> bool {
    let real = prowess::real_path(path).unwrap_or_else(|_| path.to_owned());
    let Some(home) = home.and_then(|it| prowess::real_path(it).ok()) else { return false };
    let mut folders = INSTALLATIONS.iter().map(|it| home.join(it));
    folders.any(|it| real.starts_with(&it) && real != it)
}

/// Returns the network of a server, through our proxy.
#[cfg(feature = "http")]
fn network(
    description: &McpServerConfig,
    hosts: &[String],
    key: String,
    file: Option<PathBuf>,
) -> Result<Network, Box<Outcome>> {
    if hosts.is_empty() {
        return Ok(Network::None);
    }
    let hosts = Hosts::for_scripts(hosts).map_err(|error| {
        let name = &description.name;
        let message =
            format!("the server `{name}` is not started: `hosts` cannot be used: {error}");
        Box::new(Outcome::bad(OutcomeStatus::Invalid, message))
    })?;
    let proxy =
        Proxy::new(hosts).with_remedy(HostRemedy::Setting { key, file, names_address: false });
    Ok(Network::Proxy(Arc::new(proxy.for_one_run())))
}

#[cfg(not(feature = "http"))]
fn network(
    description: &McpServerConfig,
    hosts: &[String],
    _: String,
    _: Option<PathBuf>,
) -> Result<Network, Box<Outcome>> {
    match hosts.is_empty() {
        true => Ok(Network::None),
        false => Err(refuse(
            description,
            "this build has no network support (feature `http`), which `hosts` needs",
        )),
    }
}

/// Finds a program of a skill by its path.
fn own_program(
    description: &McpServerConfig,
    command: &str,
    folder: &Path,
    files: &[SkillFile],
) -> Result<PathBuf, Box<Outcome>> {
    match resolve_inside(command, folder).filter(|path: &PathBuf| {
        let own = path.strip_prefix(folder).unwrap_or(path);
        files.iter().filter(|it| it.is_plain()).any(|it| Path::new(it.path()) == own)
    }) {
        Some(path) => Ok(path),
        None => Err(refuse(description, &format!("the skill has no program `{command}`"))),
    }
}

/// Resolves a path within a folder, if it stays there; it contains no links.
fn resolve_inside(path: &str, folder: &Path) -> Option<PathBuf> {
    let path = Path::new(path);
    let path = path.strip_prefix(folder).unwrap_or(path);
    let stays = path.components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    let names = path.components().filter(|it| matches!(it, Component::Normal(_)));
    stays.then(|| folder.join(names.collect::<PathBuf>()))
}

/// Refuses a command that downloads packages, until they are prepared.
fn refuse_unprepared(
    description: &McpServerConfig,
    command: &PackageCommand,
    author: Author<'_>,
) -> Box<Outcome> {
    let (name, packages) = (&description.name, command.packages.join("`, `"));
    let message =
        format!("the server `{name}` is not started: it needs `{packages}`, which is not prepared");
    let hint = match author {
        Author::Skill => "`prowess prepare` with the name of the skill prepares it".to_owned(),
        _ => format!("run `prowess prepare --server {name}`"),
    };
    refusal(message, hint)
}
