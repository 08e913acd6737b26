//! What the scripts of a skill need around them, and where they say so.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a skill needs: interpreters and packages for its scripts, programs, variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// The scripts, sorted by path.
    pub scripts: Vec<ScriptNeeds>,
    /// The environments that the scripts run in; a script names its own by its index.
    pub environments: Vec<EnvironmentNeeds>,
    /// The programs that the skill declares, and well-known ones that its scripts start.
    pub programs: Vec<ProgramNeed>,
    /// The environment variables that the skill declares.
    pub variables: Vec<VariableNeed>,
    /// What was not understood, or not followed.
    pub notes: Vec<NeedNote>,
}

/// What one script needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScriptNeeds {
    /// Its path within the skill's folder.
    pub path: String,
    /// What runs it.
    pub interpreter: Interpreter,
    /// The index of its environment; nothing where it needs no packages.
    pub environment: Option<usize>,
}

/// What runs a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interpreter {
    /// The kind of interpreter, whatever starts it.
    pub runtime: Runtime,
    /// The program and the arguments before the path of the script, such as `uv run --script`.
    pub command: Vec<String>,
}

/// A kind of interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// `python3`, also when `uv` or `pipx` starts it.
    Python,
    /// `node`, also when `npx tsx` starts it.
    Node,
    /// `bun`.
    Bun,
    /// `deno`.
    Deno,
    /// `sh`, `bash` and their kin.
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
pub struct EnvironmentNeeds {
    /// Whose packages they are.
    pub ecosystem: Ecosystem,
    /// What declares them.
    pub declared: PackageDeclaration,
    /// The file that declares them; for imports the first script that has any.
    pub file: String,
    /// The versions of the interpreter that will do; all of them hold.
    pub versions: Vec<VersionNeed>,
    /// The packages, in the order they are declared.
    pub packages: Vec<PackageNeed>,
    /// The lock file beside the file that declares them.
    pub lock_file: Option<String>,
    /// The package manager that `package.json` asks for, such as `pnpm@9.1.0`.
    pub manager: Option<String>,
}

/// Whose packages an environment has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ecosystem {
    /// Distributions for Python.
    Python,
    /// npm packages, for Node and Bun.
    Node,
    /// npm and JSR packages, for Deno.
    Deno,
}

/// What declares the packages of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
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
    /// Nothing: these are what scripts import.
    Imports,
}

/// A package that is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageNeed {
    /// Its name, as the registry compares names.
    pub name: String,
    /// What an installer is given, such as `pypdf>=4`, `docx@^9.0.0` or `jsr:@std/path@1`.
    pub requirement: String,
    /// Where it is declared or first imported.
    pub place: Place,
    /// Where an installer would get it from.
    pub source: PackageSource,
    /// The extra, group or kind of dependency that it belongs to; nothing for one that is always needed.
    pub group: Option<String>,
    /// Whether the script runs without it.
    pub is_optional: bool,
    /// Whether the name is that of a module, because nobody here knows the package. Somebody else may own
    /// the package of that name, so it is not installed unless a person has seen that it is a guess.
    pub is_guessed: bool,
    /// The module that is imported, where no file declares the package.
    pub module: Option<String>,
    /// The scripts that import it, where no file declares the package.
    pub scripts: Vec<String>,
}

/// Where an installer would get a package from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PackageSource {
    /// A package registry.
    Registry,
    /// An address or a repository.
    Url,
    /// A file or folder, of the skill or elsewhere.
    Path,
}

/// A version of an interpreter that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionNeed {
    /// What is asked for, as written: `>=3.10`.
    pub requirement: String,
    /// Where.
    pub place: Place,
}

/// A program that is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramNeed {
    /// Its name; one of these is enough.
    pub any_of: Vec<String>,
    /// The version that is asked for, such as `>=3.12`.
    pub version: Option<String>,
    /// Whether the skill works without it.
    pub is_optional: bool,
    /// Where it is declared or first started.
    pub place: Place,
    /// The scripts that start it, where the skill does not declare it.
    pub scripts: Vec<String>,
}

/// An environment variable that is needed. Only its name is ever read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VariableNeed {
    /// Its name.
    pub name: String,
    /// Whether the skill works without it.
    pub is_optional: bool,
    /// Where it is declared.
    pub place: Place,
}

/// Something about a file that was not understood, or not followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NeedNote {
    /// Where; line 0 is the whole file.
    pub place: Place,
    /// What.
    pub message: String,
}

/// A line of a file of the skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The path within the skill's folder.
    pub file: String,
    /// The line, counted from 1; 0 for the whole file.
    pub line: usize,
}

impl Place {
    /// A line of a file.
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
    /// Whether there is nothing to say about the skill.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What a script of this path needs.
    pub fn script(&self, path: &str) -> Option<&ScriptNeeds> {
        self.scripts.iter().find(|it| it.path == path)
    }

    /// The environment that a script runs in.
    pub fn environment(&self, script: &ScriptNeeds) -> Option<&EnvironmentNeeds> {
        self.environments.get(script.environment?)
    }

    /// The packages that a script of this path needs.
    pub fn packages(&self, script: &ScriptNeeds) -> impl Iterator<Item = &PackageNeed> {
        let packages = self.environment(script).into_iter().flat_map(|it| &it.packages);
        packages.filter(move |it| it.scripts.is_empty() || it.scripts.contains(&script.path))
    }
}

impl EnvironmentNeeds {
    /// An environment without packages.
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
    /// The environment with what one script imports; nothing where a file declares the packages of all, or the script imports
    /// all of them.
    pub fn of_script(&self, path: &str) -> Option<Self> {
        let is_its = |it: &&PackageNeed| it.scripts.iter().any(|it| it == path);
        let packages: Vec<PackageNeed> = self.packages.iter().filter(is_its).cloned().collect();
        let is_part =
            self.declared == PackageDeclaration::Imports && packages.len() < self.packages.len();
        is_part.then(|| Self { packages, ..self.clone() })
    }
}

impl PackageNeed {
    /// A declared package that is always needed, from a registry.
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
    /// Whose packages a script that it runs can use.
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
    /// The word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
            Self::Deno => "deno",
        }
    }
}
