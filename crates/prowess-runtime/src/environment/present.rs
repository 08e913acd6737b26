//! Finds the needs of a skill on this machine. Nothing is run: programs are searched on a path,
//! packages among the files that installers create.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    interpreter::InterpreterSearch,
    needs::{
        Ecosystem, EnvironmentNeeds, Needs, PackageDeclaration, PackageNeed, Place, VersionNeed,
    },
    packages::normalize_name,
    system_programs::{SystemPackages, system_packages},
    version::satisfies,
};
use crate::sys::PermissionsExt as _;

/// The installed programs on a path, and the packages of the first Python on it whose library is
/// found.
#[derive(Debug, Clone, Default)]
pub struct Present {
    path: Vec<PathBuf>,
    python: Option<PythonPackages>,
    /// The folder of the skill, for the packages that it bundles.
    folder: Option<PathBuf>,
    /// The prepared environments, by their index among the needs of the skill, each with the
    /// requirements that were not installed.
    prepared: BTreeMap<usize, Vec<String>>,
}

/// A need that is not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Missing {
    /// The kind of need.
    pub kind: MissingKind,
    /// The name of the program, package or variable, or the required version.
    pub name: String,
    /// The version found instead.
    pub found: Option<String>,
    /// Whether the skill works without it.
    pub is_optional: bool,
    /// Whether the name is only a guess; see [`PackageNeed::is_guessed`].
    pub is_guessed: bool,
    /// The place of the requirement.
    pub place: Place,
    /// The packages that provide a program, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<SystemPackages>,
    /// The scripts that need it, if not all do.
    #[serde(skip)]
    pub scripts: Vec<String>,
}

/// The kind of an unmet need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MissingKind {
    /// The interpreter of a script.
    Interpreter,
    /// A version of an interpreter.
    Version,
    /// A package.
    Package,
    /// A program.
    Program,
    /// An environment variable.
    Variable,
}

/// The packages of one Python.
#[derive(Debug, Clone, Default)]
struct PythonPackages {
    /// Its version, as far as file names show it: `3.11`.
    version: Option<String>,
    /// The distributions by name, with their versions.
    distributions: BTreeMap<String, String>,
    modules: BTreeSet<String>,
}

/// The maximum number of entries read in a folder of packages.
const MAX_ENTRIES: usize = 50_000;

impl Present {
    /// Searches the programs on the user's path and the packages of the Python that would run
    /// scripts; `folder` is that of the skill.
    pub fn look(search: &InterpreterSearch, folder: Option<&Path>) -> Self {
        let path = search.path.iter().filter(|it| it.is_absolute()).cloned().collect();
        let folder = folder.map(Path::to_owned);
        let mut present = Self { path, python: None, folder, prepared: BTreeMap::new() };
        if let Ok(Some(own)) = search.find("python3") {
            present.python = PythonPackages::of(&own.program);
            return present;
        }
        let names = ["python3", "python"].into_iter();
        let programs = names.flat_map(|name| present.path.iter().map(move |it| it.join(name)));
        present.python =
            programs.filter(|it| is_program(it)).find_map(|it| PythonPackages::of(&it));
        present
    }

    /// Treats the packages of these environments, given by index among the needs, as installed,
    /// except for the listed requirements.
    #[must_use]
    pub fn with_prepared(self, prepared: BTreeMap<usize, Vec<String>>) -> Self {
        Self { prepared, ..self }
    }

    /// Returns the path of a program.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        if name.starts_with('/') {
            return Some(PathBuf::from(name)).filter(|it| is_program(it));
        }
        self.path.iter().map(|it| it.join(name)).find(|it| is_program(it))
    }

    /// Returns the unmet needs, each once. Needs that cannot be checked are not listed.
    /// `is_set` says whether a variable is set.
    pub fn missing(&self, needs: &Needs, is_set: &dyn Fn(&str) -> bool) -> Vec<Missing> {
        let mut missing: Vec<Missing> = Vec::new();
        for script in &needs.scripts {
            let name = script.interpreter.command.first().map_or("", String::as_str);
            if !self.has_interpreter(name) {
                let place = Place::new(&script.path, 0);
                Missing::new(MissingKind::Interpreter, name, place).add_to(&mut missing);
            }
        }
        for (at, environment) in needs.environments.iter().enumerate() {
            let not_installed = self.prepared.get(&at);
            if not_installed.is_none() {
                for version in &environment.versions {
                    if let Some(wrong) = self.wrong_version(environment, version) {
                        wrong.add_to(&mut missing);
                    }
                }
            }
            for package in &environment.packages {
                if not_installed.is_none_or(|it| it.contains(&package.requirement))
                    && let Some(package) = self.missing_package(environment, package)
                {
                    package.add_to(&mut missing);
                }
            }
        }
        for program in &needs.programs {
            if !program.any_of.iter().any(|it| self.has_interpreter(it)) {
                let name = program.any_of.join(" or ");
                let unmet = Missing::new(MissingKind::Program, &name, program.place.clone());
                let packages = program.any_of.iter().find_map(|it| system_packages(it));
                let (is_optional, scripts) = (program.is_optional, program.scripts.clone());
                Missing { is_optional, packages, scripts, ..unmet }.add_to(&mut missing);
            }
        }
        for variable in needs.variables.iter().filter(|it| !is_set(&it.name)) {
            let unmet = Missing::new(MissingKind::Variable, &variable.name, variable.place.clone());
            Missing { is_optional: variable.is_optional, ..unmet }.add_to(&mut missing);
        }
        missing
    }

    fn has_interpreter(&self, name: &str) -> bool {
        // A program named by a path is often at another one, such as `/bin/bash`.
        let base = name.rsplit('/').next().unwrap_or(name);
        let others: &[&str] = match base {
            "python" => &["python3"],
            "nodejs" => &["node"],
            "magick" => &["convert"],
            "google-chrome" => &["chromium", "chromium-browser"],
            "soffice" => &["libreoffice"],
            _ => &[],
        };
        self.program(name).or_else(|| self.program(base)).is_some()
            || others.iter().any(|it| self.program(it).is_some())
    }

    /// Returns the installed version, if it is not a required one.
    fn wrong_version(
        &self,
        environment: &EnvironmentNeeds,
        asked: &VersionNeed,
    ) -> Option<Missing> {
        let found = match environment.ecosystem {
            Ecosystem::Python => self.python.as_ref()?.version.clone()?,
            Ecosystem::Node | Ecosystem::Deno => return None,
        };
        let name = format!("{} {}", environment.ecosystem.as_str(), asked.requirement);
        let missing = Missing::new(MissingKind::Version, &name, asked.place.clone());
        let is_other = satisfies(&found, &asked.requirement) == Some(false);
        is_other.then_some(Missing { found: Some(found), ..missing })
    }

    fn missing_package(
        &self,
        environment: &EnvironmentNeeds,
        package: &PackageNeed,
    ) -> Option<Missing> {
        let found = match environment.ecosystem {
            Ecosystem::Python => {
                let python = self.python.as_ref()?;
                let found = python.distributions.get(&package.name);
                let is_imported = environment.declared == PackageDeclaration::Imports;
                let has_module =
                    package.module.as_ref().is_some_and(|it| python.modules.contains(it));
                // Part of a namespace: only the distribution is conclusive.
                let is_namespace =
                    matches!(package.module.as_deref(), Some("google" | "azure" | "ruamel"));
                if is_imported && has_module && !is_namespace {
                    return None;
                }
                if package.requirement.contains(';') && found.is_none() {
                    // Its marker may exclude this machine.
                    return None;
                }
                match found {
                    Some(version) if may_satisfy(version, &package.requirement) => return None,
                    found => found.cloned(),
                }
            }
            Ecosystem::Node if self.has_module(environment, &package.name)? => return None,
            Ecosystem::Node => None,
            Ecosystem::Deno => return None,
        };
        let missing = Missing::new(MissingKind::Package, &package.name, package.place.clone());
        let (is_optional, is_guessed) = (package.is_optional, package.is_guessed);
        let scripts = package.scripts.clone();
        Some(Missing { found, is_optional, is_guessed, scripts, ..missing })
    }

    /// Whether a folder of the skill, from that of the environment upward, has an npm package.
    fn has_module(&self, environment: &EnvironmentNeeds, name: &str) -> Option<bool> {
        let folder = self.folder.as_ref()?;
        let from = folder.join(&environment.file);
        let mut folders = from.ancestors().skip(1).take_while(|it| it.starts_with(folder));
        Some(folders.any(|it| it.join("node_modules").join(name).is_dir()))
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Whether a version satisfies a requirement such as `pypdf[crypto]>=4; x`; true if that is
/// undecidable.
fn may_satisfy(version: &str, requirement: &str) -> bool {
    let requirement = requirement.split([';', '@']).next().unwrap_or_default();
    let requirement = requirement.split(" --").next().unwrap_or_default();
    let Some(at) = requirement.find(['=', '<', '>', '!', '~']) else { return true };
    satisfies(version, requirement[at..].trim_end_matches(')')) != Some(false)
}

impl Missing {
    fn new(kind: MissingKind, name: &str, place: Place) -> Self {
        let name = name.to_owned();
        let (found, packages, scripts) = (None, None, Vec::new());
        Self { kind, name, found, is_optional: false, is_guessed: false, place, packages, scripts }
    }

    /// Adds it to others, or merges it with the same one.
    fn add_to(self, others: &mut Vec<Self>) {
        let same = others.iter_mut().find(|it| it.kind == self.kind && it.name == self.name);
        let Some(same) = same else { return others.push(self) };
        same.is_optional &= self.is_optional;
        match self.scripts.is_empty() {
            true => same.scripts.clear(),
            false if same.scripts.is_empty() => {}
            false => same.scripts.extend(self.scripts),
        }
    }
}

impl PythonPackages {
    /// Finds the packages of the Python at this path; `None` if its library is not found.
    fn of(program: &Path) -> Option<Self> {
        let mut packages = Self::default();
        let venv =
            program.parent().and_then(Path::parent).filter(|it| it.join("pyvenv.cfg").is_file());
        let real = prowess::real_path(program).unwrap_or_else(|_| program.to_owned());
        let prefix =
            venv.or_else(|| real.parent().and_then(Path::parent)).unwrap_or(Path::new("/usr"));
        let named = real.file_name().and_then(|it| it.to_str()?.strip_prefix("python3."));
        let minor = named.filter(|it| it.bytes().all(|it| it.is_ascii_digit())).map(str::to_owned);
        let minor = minor.or_else(|| only_minor(&prefix.join("lib")))?;
        packages.version = Some(format!("3.{minor}"));
        let versioned = format!("lib/python3.{minor}");
        let mut folders = vec![prefix.join(&versioned).join("site-packages")];
        if prefix == Path::new("/usr") {
            let local = Path::new("/usr/local").join(&versioned);
            folders.extend(["/usr/lib/python3/dist-packages".into(), local.join("dist-packages")]);
        }
        folders.iter().for_each(|it| packages.add_folder(it));
        Some(packages)
    }

    fn add_folder(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(about) =
                name.strip_suffix(".dist-info").or_else(|| name.strip_suffix(".egg-info"))
            {
                let (name, version) = about.split_once('-').unwrap_or((about, ""));
                let version = version.split("-py").next().unwrap_or_default();
                self.distributions.insert(normalize_name(name), version.to_owned());
            } else {
                // `yaml`, `six.py`, `_cffi.cpython-311-x86_64-linux-gnu.so`
                let module = name.split('.').next().unwrap_or_default();
                self.modules.insert(module.to_owned());
            }
        }
    }
}

/// Returns the minor version of the only Python with its library in a folder.
fn only_minor(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten().take(MAX_ENTRIES);
    let names = entries
        .filter_map(|it| it.file_name().to_str()?.strip_prefix("python3.").map(str::to_owned));
    let mut names = names.filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
    names.next().filter(|_| names.next().is_none())
}
