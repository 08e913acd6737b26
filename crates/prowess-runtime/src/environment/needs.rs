//! The needs of a skill's scripts, and where they are declared.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The needs of a skill: interpreters and packages for its scripts, programs, variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Needs {
    /// The scripts, sorted by path.
    pub scripts: Vec<ScriptNeeds>,
    /// The environments of the scripts; a script refers to its own by index.
    pub environments: Vec<EnvironmentNeeds>,
    /// The programs that the skill declares, and well-known ones that its scripts start.
    pub programs: Vec<ProgramNeed>,
    /// The environment variables that the skill declares.
    pub variables: Vec<VariableNeed>,
    /// Notes on anything that was not understood, or not followed.
    pub notes: Vec<NeedNote>,
}

/// The needs of one script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ScriptNeeds {
    /// Its path within the skill's folder.
    pub path: String,
    /// Its interpreter.
    pub interpreter: Interpreter,
    /// The index of its environment; `None` if it needs no packages.
    pub environment: Option<usize>,
}

/// The interpreter of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Interpreter {
    /// The kind of interpreter, whatever starts it.
    pub runtime: Runtime,
    /// The program and the arguments before the path of the script, such as `uv run --script`.
    pub command: Vec<String>,
}

/// A kind of interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Runtime {
    /// `python3`, also when `uv` or `pipx` starts it.
    Python,
    /// `node`, also when `npx tsx` starts it.
    Node,
    /// `bun`.
    Bun,
    /// `deno`.
    Deno,
    /// `sh`, `bash` and similar.
    Shell,
    /// `ruby`.
    Ruby,
    /// `perl`.
    Perl,
    /// Any other program.
    Other,
}

/// Packages that are installed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EnvironmentNeeds {
    /// The ecosystem of the packages.
    pub ecosystem: Ecosystem,
    /// The kind of their declaration.
    pub declared: PackageDeclaration,
    /// The file that declares them; for imports the first script that has any.
    pub file: String,
    /// The required versions of the interpreter; all of them apply.
    pub versions: Vec<VersionNeed>,
    /// The packages, in the order of their declaration.
    pub packages: Vec<PackageNeed>,
    /// The lock file next to the file that declares them.
    pub lock_file: Option<String>,
    /// The package manager that `package.json` requires, such as `pnpm@9.1.0`.
    pub manager: Option<String>,
}

/// An ecosystem of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Ecosystem {
    /// Distributions for Python.
    Python,
    /// npm packages, for Node and Bun.
    Node,
    /// npm and JSR packages, for Deno.
    Deno,
}

/// The kind of declaration of an environment's packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PackageDeclaration {
    /// The `# /// script` block of a Python script (PEP 723).
    Header,
    /// `requirements.txt`.
    Requirements,
    /// `pyproject.toml`.
    Pyproject,
    /// `package.json`.
    PackageJson,
    /// `deno.json` or `deno.jsonc`.
    DenoJson,
    /// None: these are imported by scripts.
    Imports,
}

/// A package that is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PackageNeed {
    /// Its name, normalized as in the registry.
    pub name: String,
    /// The requirement for an installer, such as `pypdf>=4`, `docx@^9.0.0` or `jsr:@std/path@1`.
    pub requirement: String,
    /// The place where it is declared or first imported.
    pub place: Place,
    /// The source that an installer would use.
    pub source: PackageSource,
    /// The extra, group or kind of dependency that it belongs to; `None` if it is always needed.
    pub group: Option<String>,
    /// Whether the script runs without it.
    pub is_optional: bool,
    /// Whether the name is that of a module, because the package is unknown. Anybody may own the
    /// package of that name, so it is not installed unless a person has seen that it is a guess.
    pub is_guessed: bool,
    /// The imported module, if no file declares the package.
    pub module: Option<String>,
    /// The scripts that import it, if no file declares the package.
    pub scripts: Vec<String>,
}

/// The source of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PackageSource {
    /// A package registry.
    Registry,
    /// A URL or a repository.
    Url,
    /// A file or folder, of the skill or elsewhere.
    Path,
}

/// A required version of an interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VersionNeed {
    /// The requirement, as written: `>=3.10`.
    pub requirement: String,
    /// The place of the requirement.
    pub place: Place,
}

/// A program that is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProgramNeed {
    /// Its alternative names; any one of these suffices.
    pub any_of: Vec<String>,
    /// The required version, such as `>=3.12`.
    pub version: Option<String>,
    /// Whether the skill works without it.
    pub is_optional: bool,
    /// The place where it is declared or first started.
    pub place: Place,
    /// The scripts that start it, if the skill does not declare it.
    pub scripts: Vec<String>,
}

/// An environment variable that is needed. Only its name is ever read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VariableNeed {
    /// Its name.
    pub name: String,
    /// Whether the skill works without it.
    pub is_optional: bool,
    /// The place of its declaration.
    pub place: Place,
}

/// A note on a file that was not understood, or not followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct NeedNote {
    /// The place; line 0 is the whole file.
    pub place: Place,
    /// The message.
    pub message: String,
}

/// A line of a file of the skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// The path within the skill's folder.
    pub file: String,
    /// The line, counted from 1; 0 for the whole file.
    pub line: usize,
}

impl Place {
    /// Creates a place from a file and a line.
    pub fn new(file: &str, line: usize) -> Self {
        Self { file: file.to_owned(), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

impl fmt::Display for NeedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl Needs {
    /// Whether the skill has no needs or notes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the needs of the script at this path.
    pub fn script(&self, path: &str) -> Option<&ScriptNeeds> {
        self.scripts.iter().find(|it| it.path == path)
    }

    /// Returns the environment of a script.
    pub fn environment(&self, script: &ScriptNeeds) -> Option<&EnvironmentNeeds> {
        self.environments.get(script.environment?)
    }

    /// Returns the packages that a script needs.
    pub fn packages(&self, script: &ScriptNeeds) -> impl Iterator<Item = &PackageNeed> {
        let packages = self.environment(script).into_iter().flat_map(|it| &it.packages);
        packages.filter(move |it| it.scripts.is_empty() || it.scripts.contains(&script.path))
    }
}

impl EnvironmentNeeds {
    /// Creates an environment without packages.
    pub fn new(ecosystem: Ecosystem, declared: PackageDeclaration, file: &str) -> Self {
        Self {
            ecosystem,
            declared,
            file: file.to_owned(),
            versions: Vec::new(),
            packages: Vec::new(),
            lock_file: None,
            manager: None,
        }
    }
}

impl EnvironmentNeeds {
    /// Returns the part of the environment that one script imports; `None` if a file declares the
    /// packages, or the script imports all of them.
    pub fn of_script(&self, path: &str) -> Option<Self> {
        let packages: Vec<PackageNeed> = self
            .packages
            .iter()
            .filter(|it: &&PackageNeed| it.scripts.iter().any(|it| it == path))
            .cloned()
            .collect();
        let is_part =
            self.declared == PackageDeclaration::Imports && packages.len() < self.packages.len();
        is_part.then(|| Self { packages, ..self.clone() })
    }
}

impl PackageNeed {
    /// Creates a declared package that is always needed, from a registry.
    pub fn new(name: String, requirement: String, place: Place) -> Self {
        Self {
            name,
            requirement,
            place,
            source: PackageSource::Registry,
            group: None,
            is_optional: false,
            is_guessed: false,
            module: None,
            scripts: Vec::new(),
        }
    }
}

impl Runtime {
    /// Returns the ecosystem whose packages a script can use.
    pub fn ecosystem(self) -> Option<Ecosystem> {
        match self {
            Self::Python => Some(Ecosystem::Python),
            Self::Node | Self::Bun => Some(Ecosystem::Node),
            Self::Deno => Some(Ecosystem::Deno),
            Self::Shell | Self::Ruby | Self::Perl | Self::Other => None,
        }
    }
}

impl Ecosystem {
    /// Returns its name, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Deno => "deno",
        }
    }
}
