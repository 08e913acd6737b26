//! Interpreters on the user's machine: the one that runs a script, and the files it has to read in
//! a sandbox.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use prowess_sandbox::is_of_system;

use super::{shebang::shebang, version::satisfies, version_manager};

/// The places to search for interpreters, best first. The host fills it in: nothing here reads the
/// environment.
#[derive(Debug, Clone, Default)]
pub struct InterpreterSearch {
    /// The interpreters configured by the user, by `python` or `node`.
    pub configured: BTreeMap<String, PathBuf>,
    /// The active virtual environment (`VIRTUAL_ENV`).
    pub virtual_env: Option<PathBuf>,
    /// The directories whose `.venv` and version files apply, the nearest first: only those of a
    /// trusted project.
    pub directories: Vec<PathBuf>,
    /// The directories of `PATH`.
    pub path: Vec<PathBuf>,
    /// The user's home directory, for the installations of version managers.
    pub home: Option<PathBuf>,
}

impl InterpreterSearch {
    /// Whether a directory has a virtual environment or a version file.
    pub fn matters(directory: &Path) -> bool {
        let mut names = VENVS.iter().chain(version_manager::FILES);
        names.any(|it| directory.join(it).symlink_metadata().is_ok())
    }
}

/// An interpreter outside of the system's directories.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstalledInterpreter {
    /// The program to start.
    pub program: PathBuf,
    /// Paths that it has to read, besides the system's.
    pub reads: Vec<PathBuf>,
    /// The reason why it was chosen.
    pub origin: InterpreterOrigin,
}

/// The reason why an interpreter was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InterpreterOrigin {
    /// A setting names it.
    Setting(String),
    /// It belongs to the active virtual environment.
    VirtualEnv,
    /// It belongs to a `.venv` in the project.
    Project,
    /// It is the first on `PATH`.
    Path,
    /// A version manager installed it.
    Manager(&'static str),
}

/// A setting names an unusable interpreter.
#[derive(Debug, thiserror::Error)]
#[error("`{setting}` names `{}`, which cannot be run", path.display())]
#[non_exhaustive]
pub struct InterpreterError {
    /// The setting.
    pub setting: String,
    /// Its value.
    pub path: PathBuf,
    /// The error.
    pub source: io::Error,
}

/// The interpreters with a setting of their own: its key, and the names of the programs.
const FAMILIES: &[(&str, &[&str])] =
    &[("python", &["python", "python3"]), ("node", &["node", "nodejs"])];

/// The maximum length of a shebang line, as in the kernel.
const LINE: u64 = 256;

/// The minor versions of Python 3 that are searched by name.
const MINORS: std::ops::Range<u32> = 8..30;

/// The names of virtual environments in a project.
const VENVS: &[&str] = &[".venv", "venv"];

impl InterpreterSearch {
    /// Finds the interpreter for the name of a program; `None` if that is the system's own, or
    /// there is none.
    pub fn find(&self, program: &str) -> Result<Option<InstalledInterpreter>, InterpreterError> {
        let name = program.rsplit('/').next().unwrap_or(program);
        let family = FAMILIES.iter().find(|it| it.1.contains(&name)).map(|it| it.0);
        if let Some((family, path)) = family.and_then(|it| self.configured.get_key_value(it)) {
            return self.find_configured(family, path).map(Some);
        }
        let venv = (family == Some("python")).then(|| self.venv(name)).flatten();
        let found = venv.or_else(|| self.on_path(name));
        let found = found.filter(|it| !is_of_system(&it.program));
        Ok(found.map(|it| match family {
            Some(_) => it,
            // It must not read its neighbours.
            None => InstalledInterpreter { reads: vec![it.program.clone()], ..it },
        }))
    }

    /// Returns all interpreters that are not the system's own, by their names. Unusable ones are
    /// left out.
    pub fn by_name(&self) -> BTreeMap<String, InstalledInterpreter> {
        let names = FAMILIES.iter().flat_map(|it| it.1);
        let found = names.filter_map(|it| Some(((*it).to_owned(), self.find(it).ok()??)));
        found.collect()
    }

    /// Finds a program by its name, with all paths that it has to read: an interpreter like
    /// [`find`](Self::find), any other on `PATH`. `None` if that is the system's own, or there is
    /// none.
    pub fn program(&self, name: &str) -> Result<Option<InstalledInterpreter>, InterpreterError> {
        let found = self.find(name)?;
        if found.is_some() && self.is_interpreter(name) {
            return Ok(found);
        }
        let there = self.path.iter().filter(|it| it.is_absolute()).map(|it| it.join(name));
        let first = there.into_iter().find(|it| is_executable(it));
        Ok(first.filter(|it| !is_of_system(it)).and_then(|it| self.program_at(&it)))
    }

    /// Returns the program at a path, with all paths that it has to read: the interpreter in its
    /// shebang, and the virtual environment or the `node_modules` that it belongs to.
    pub fn program_at(&self, path: &Path) -> Option<InstalledInterpreter> {
        let name = path.file_name()?.to_str()?;
        if !is_executable(path) {
            return None;
        }
        if self.is_interpreter(name) || is_python(path) {
            return self.at(path);
        }
        let shim = version_manager::behind_shim(path, &self.directories, self.home.as_deref());
        let (path, origin) = match shim {
            version_manager::Shim::None => (path.to_owned(), InterpreterOrigin::Path),
            version_manager::Shim::For(manager, program) => {
                (program, InterpreterOrigin::Manager(manager))
            }
            version_manager::Shim::Unknown => return None,
        };
        let real = prowess::real_path(&path).ok()?;
        let mut reads = vec![path.clone()];
        reads.extend(modules_around(&real).map(Path::to_owned));
        let folder = real.parent().and_then(Path::parent).unwrap_or(&real);
        let venv = virtual_environment(&folder.join("bin/python"), self.home.as_deref());
        reads.extend(venv.into_iter().flat_map(|it| it.reads));
        let line = first_line(&real).unwrap_or_default();
        if let Some(program) = shebang(&line).and_then(|it| it.first().copied()) {
            let found = match program.contains('/') {
                true => self.at(Path::new(program)),
                false => self.find(program).ok().flatten(),
            };
            reads.extend(found.into_iter().flat_map(|it| it.reads));
        }
        reads.retain(|it| !is_of_system(it));
        Some(InstalledInterpreter { program: path, reads, origin })
    }

    fn is_interpreter(&self, name: &str) -> bool {
        FAMILIES.iter().any(|it| it.1.contains(&name))
    }

    /// Returns the base installation of the first of these programs, whichever virtual environment
    /// is active; if its version does not fit, that of another Python on `PATH`.
    pub(crate) fn installation(
        &self,
        names: &[&str],
        versions: &[&str],
    ) -> Result<Option<InstalledInterpreter>, InterpreterError> {
        let home = self.home.as_deref();
        for name in names {
            let found = self.find(name)?.map(|it| it.program).or_else(|| of_system(name));
            let found = found.and_then(|it| interpreter_at(&it, home));
            if found.as_ref().is_some_and(|it| it.fits(versions)) {
                return Ok(found);
            }
        }
        let others = MINORS.rev().map(|minor| format!("python3.{minor}"));
        Ok(others
            .filter(|_| names.contains(&"python3"))
            .filter_map(|it| interpreter_at(&self.find_installed(&it)?, home))
            .find(|it| it.fits(versions)))
    }

    /// Returns the first program of this name on `PATH` or in the system, with links resolved.
    pub(crate) fn find_installed(&self, name: &str) -> Option<PathBuf> {
        let home = self.home.as_deref();
        let there = self.path.iter().filter(|it| it.is_absolute()).map(|it| it.join(name));
        let mut there = there.filter(|it| is_executable(it));
        let found =
            there.find_map(|it| match version_manager::behind_shim(&it, &self.directories, home) {
                version_manager::Shim::None => Some(it),
                version_manager::Shim::For(_, program) => Some(program),
                version_manager::Shim::Unknown => None,
            });
        prowess::real_path(found.or_else(|| of_system(name))?).ok()
    }

    fn find_configured(
        &self,
        family: &str,
        path: &Path,
    ) -> Result<InstalledInterpreter, InterpreterError> {
        let setting = format!("run.{family}");
        let failed =
            |source| InterpreterError { setting: setting.clone(), path: path.to_owned(), source };
        let is_file = fs::metadata(path).map_err(failed)?.is_file();
        if !is_file || !is_executable(path) {
            return Err(failed(io::ErrorKind::PermissionDenied.into()));
        }
        let found = self.at(path).unwrap_or_else(|| InstalledInterpreter {
            program: path.to_owned(),
            reads: Vec::new(),
            origin: InterpreterOrigin::Path,
        });
        Ok(InstalledInterpreter { origin: InterpreterOrigin::Setting(setting), ..found })
    }

    /// Returns that of a virtual environment: the active one, else the nearest of the project.
    fn venv(&self, name: &str) -> Option<InstalledInterpreter> {
        let active = self.virtual_env.iter().map(|it| (it.clone(), InterpreterOrigin::VirtualEnv));
        let project = self.directories.iter().flat_map(|directory| {
            VENVS.iter().map(|it| (directory.join(it), InterpreterOrigin::Project))
        });
        active.chain(project).find_map(|(folder, origin)| {
            let found = virtual_environment(&folder.join("bin").join(name), self.home.as_deref())?;
            Some(InstalledInterpreter { origin, ..found })
        })
    }

    /// Returns the first on `PATH`; a shim of a version manager is resolved to the version it would
    /// start.
    fn on_path(&self, name: &str) -> Option<InstalledInterpreter> {
        let there = self.path.iter().filter(|it| it.is_absolute()).map(|it| it.join(name));
        let mut there = there.filter(|it| is_executable(it));
        there.find_map(|it| self.at(&it)).or_else(|| {
            // The version manager may only be loaded in an interactive shell.
            let program = version_manager::of_nvm(name, &self.directories, self.home.as_deref()?)?;
            let found = interpreter_at(&program, self.home.as_deref())?;
            Some(InstalledInterpreter { origin: InterpreterOrigin::Manager("nvm"), ..found })
        })
    }

    /// Returns the interpreter at a path; `None` for a shim whose target is unknown.
    fn at(&self, path: &Path) -> Option<InstalledInterpreter> {
        let home = self.home.as_deref();
        if let Some(found) = virtual_environment(path, home) {
            return Some(found);
        }
        match version_manager::behind_shim(path, &self.directories, home) {
            version_manager::Shim::None => interpreter_at(path, home),
            version_manager::Shim::For(manager, program) => {
                let found = virtual_environment(&program, home)
                    .or_else(|| interpreter_at(&program, home))?;
                Some(InstalledInterpreter { origin: InterpreterOrigin::Manager(manager), ..found })
            }
            version_manager::Shim::Unknown => None,
        }
    }
}

impl InstalledInterpreter {
    /// Whether its version, as far as its name shows, meets these requirements.
    fn fits(&self, versions: &[&str]) -> bool {
        let name = self.program.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let version = name.strip_prefix("python").unwrap_or_default();
        versions.iter().all(|it| satisfies(version, it) != Some(false))
    }
}

impl fmt::Display for InterpreterOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(key) => write!(f, "`{key}`"),
            Self::VirtualEnv => f.write_str("the active virtual environment"),
            Self::Project => f.write_str("the project's virtual environment"),
            Self::Path => f.write_str("`PATH`"),
            Self::Manager(name) => f.write_str(name),
        }
    }
}

/// Returns the interpreter of a virtual environment, if the path leads to one, with the environment
/// itself and its base installation.
fn virtual_environment(path: &Path, home: Option<&Path>) -> Option<InstalledInterpreter> {
    let folder = path.parent()?.parent()?;
    let settings = fs::read_to_string(folder.join("pyvenv.cfg")).ok()?;
    if !is_python(path) {
        return None;
    }
    let mut reads = vec![folder.to_owned()];
    // The target of its link, and the base in its configuration: either may be a link itself.
    let base = settings.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home")
            .then(|| Path::new(value.trim()).join(path.file_name().unwrap_or_default()))
    });
    for program in [Some(path.to_owned()), base].into_iter().flatten().filter(|it| is_python(it)) {
        if let Some(found) = interpreter_at(&program, home) {
            reads.extend(found.reads);
        }
    }
    reads.sort();
    reads.dedup();
    Some(InstalledInterpreter { program: path.to_owned(), reads, origin: InterpreterOrigin::Path })
}

/// Returns an installed interpreter with its installation folder, unless that contains other things
/// too.
fn interpreter_at(path: &Path, home: Option<&Path>) -> Option<InstalledInterpreter> {
    let program = prowess::real_path(path).ok()?;
    let reads = match program.parent().and_then(Path::parent) {
        _ if is_of_system(&program) => Vec::new(),
        Some(prefix) if is_shared(prefix, home) => own_files(&program, prefix),
        Some(prefix) if program.parent().is_some_and(|it| it.ends_with("bin")) => {
            vec![prefix.to_owned()]
        }
        Some(_) => vec![program.clone()],
        None => vec![program.clone()],
    };
    Some(InstalledInterpreter { program, reads, origin: InterpreterOrigin::Path })
}

/// Returns the outermost `node_modules` around a path: packages find each other there.
pub(crate) fn modules_around(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|it| it.ends_with("node_modules")).last()
}

/// Returns the first line of a file, if it is short text.
fn first_line(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    fs::File::open(path).ok()?.take(LINE).read_to_end(&mut start).ok()?;
    let end = start.iter().position(|it| *it == b'\n').unwrap_or(start.len());
    String::from_utf8(start[..end].to_vec()).ok()
}

/// Whether a path leads to a Python interpreter, according to its target.
fn is_python(path: &Path) -> bool {
    let real = prowess::real_path(path).ok();
    let name = real.as_deref().and_then(Path::file_name).and_then(|it| it.to_str());
    is_executable(path) && name.is_some_and(|it| it.starts_with("python") || it.starts_with("pypy"))
}

/// Whether a folder contains more than one installation: a home directory, a parent of it, or its
/// `.local`.
fn is_shared(prefix: &Path, home: Option<&Path>) -> bool {
    let is_top = prefix.components().count() <= 2;
    is_top || home.is_some_and(|it| it.starts_with(prefix) || prefix == it.join(".local"))
}

/// Returns the program itself, and its libraries, by their names.
fn own_files(program: &Path, prefix: &Path) -> Vec<PathBuf> {
    let libraries = fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    let own = libraries.filter(|it| {
        it.file_name().to_str().is_some_and(|name: &str| {
            name.starts_with("python3") || name.starts_with("libpython3") || name == "node_modules"
        })
    });
    [program.to_owned()].into_iter().chain(own.map(|it| it.path())).collect()
}

/// Finds a program of the system.
fn of_system(name: &str) -> Option<PathBuf> {
    let places = ["/usr/local/bin", "/usr/bin", "/bin"];
    places.iter().map(|it| Path::new(it).join(name)).find(|it| is_executable(it))
}

pub(super) fn is_executable(path: &Path) -> bool {
    crate::sys::is_executable(path)
}
