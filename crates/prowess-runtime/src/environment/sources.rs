//! The scripts of a skill and the modules that they import, each with its own imports.

use std::collections::{BTreeMap, BTreeSet};

use prowess::ResourceKind;

use super::{
    files::{Files, ancestors, folder_of, join, resolve},
    js_imports::{JsImport, js_imports, package_of},
    needs::{Interpreter, PackageNeed, Place, Runtime, VersionNeed},
    node::parse_specifier,
    packages::{distribution, is_known_npm},
    python_imports::{PythonImport, has_main, python_imports},
    shebang::{interpreter, shebang},
    standard_library::{Standard, classify_module},
};

/// A file that is run or imported.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) interpreter: Interpreter,
    /// Whether it is run directly, rather than only imported.
    pub(super) is_script: bool,
    /// The files of the skill that it imports.
    pub(super) own: Vec<String>,
    /// The packages that it imports, each once.
    pub(super) packages: Vec<PackageNeed>,
    /// The versions of the interpreter that provide its imports.
    pub(super) versions: Vec<VersionNeed>,
}

/// The maximum number of scripts of a skill, and of all their imports.
const MAX_SCRIPTS: usize = 500;
const MAX_IMPORTS: usize = 10_000;
/// The maximum number of imports of one file.
const MAX_FILE_IMPORTS: usize = 2_000;

/// Reads all scripts of a skill and the modules that they import from it, by their paths.
pub(super) fn read_sources(files: &Files<'_>) -> BTreeMap<String, Source> {
    let mut sources = BTreeMap::new();
    for path in files.paths().filter(|it| can_be_script(it)) {
        if sources.len() >= MAX_SCRIPTS {
            let message =
                format!("there are more than {MAX_SCRIPTS} scripts; the rest was not read");
            files.note(path, 0, &message);
            break;
        }
        let has_ending = interpreter(path, "").is_some();
        let text = if has_ending { files.text(path) } else { files.quiet_text(path) };
        let source = text.and_then(|it| Source::new(path, it));
        sources.extend(source.map(|it| (path.to_owned(), it)));
    }
    let paths: BTreeSet<String> = sources.keys().cloned().collect();
    let mut total = 0;
    for source in sources.values_mut() {
        total += source.read_imports(&paths, files, MAX_IMPORTS.saturating_sub(total));
    }
    if total > MAX_IMPORTS {
        let message = format!("there are more than {MAX_IMPORTS} imports; the rest was left out");
        files.note(".", 0, &message);
    }
    let imported: BTreeSet<String> = sources
        .values()
        .flat_map(|it| it.own.iter().filter(|own| **own != it.path).cloned())
        .collect();
    for path in imported {
        if let Some(source) = sources.get_mut(&path) {
            source.is_script &= shebang(&source.text).is_some() || has_main(&source.text);
        }
    }
    sources
}

/// Whether a file may be a script, by its extension or for lack of one.
fn can_be_script(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ResourceKind::of(path) == ResourceKind::Script || !name.contains('.')
}

impl Source {
    fn new(path: &str, text: String) -> Option<Self> {
        Some(Self {
            path: path.to_owned(),
            interpreter: interpreter(path, &text)?,
            text,
            is_script: !path.ends_with("__init__.py"),
            own: Vec::new(),
            packages: Vec::new(),
            versions: Vec::new(),
        })
    }

    /// Reads the imports of the file, at most `room` of them; returns their number.
    fn read_imports(&mut self, paths: &BTreeSet<String>, files: &Files<'_>, room: usize) -> usize {
        let count = match self.interpreter.runtime {
            Runtime::Python => {
                let imports = python_imports(&self.text, MAX_FILE_IMPORTS);
                imports.iter().take(room).for_each(|it| self.add_python(it, files));
                imports.len()
            }
            Runtime::Node | Runtime::Bun | Runtime::Deno => {
                let imports = js_imports(&self.text, MAX_FILE_IMPORTS);
                imports.iter().take(room).for_each(|it| self.add_js(it));
                imports.len()
            }
            Runtime::Shell | Runtime::Ruby | Runtime::Perl | Runtime::Other => 0,
        };
        if count == MAX_FILE_IMPORTS {
            let message = format!("no more than {MAX_FILE_IMPORTS} of its imports were read");
            files.note(&self.path, 0, &message);
        }
        self.own.retain(|it| paths.contains(it));
        self.own.sort();
        self.own.dedup();
        self.packages = merge_duplicates(std::mem::take(&mut self.packages));
        count
    }

    fn add_python(&mut self, import: &PythonImport, files: &Files<'_>) {
        if let Some(folder) = self.folder_of_module(import, files) {
            return self.own.extend(own_modules(folder, import));
        }
        if import.level > 0 || self.is_on_path(import, files) {
            return;
        }
        let place = Place::new(&self.path, import.line);
        match classify_module(import.module.split('.').next().unwrap_or_default()) {
            Standard::Versions(requirement) if !import.is_optional => {
                self.versions.push(VersionNeed { requirement, place });
            }
            Standard::Always | Standard::Versions(_) => {}
            Standard::Never => {
                self.packages.extend(imported_modules(import).into_iter().map(|module| {
                    let (name, is_guessed) = distribution(&module);
                    let module = module.split('.').next().map(str::to_owned);
                    let is_optional = import.is_optional;
                    let need = PackageNeed::new(name.clone(), name, place.clone());
                    PackageNeed { is_guessed, module, is_optional, ..need }
                }));
            }
        }
    }

    /// Returns the folder that a module of the skill is imported from; `None` for other modules.
    fn folder_of_module(&self, import: &PythonImport, files: &Files<'_>) -> Option<&str> {
        let own = folder_of(&self.path);
        match import.level {
            0 => ancestors(own).find(|it| has_module(it, *it == own, import, files)),
            level => ancestors(own).nth(level - 1),
        }
    }

    /// Whether a module may be one of the skill, found because the script changes `sys.path`.
    fn is_on_path(&self, import: &PythonImport, files: &Files<'_>) -> bool {
        let name = import.module.split('.').next().unwrap_or_default();
        let is_unknown = distribution(&import.module).1;
        is_unknown && files.has_module(name) && self.text.contains("sys.path")
    }

    fn add_js(&mut self, import: &JsImport) {
        let place = Place::new(&self.path, import.line);
        let is_optional = import.is_optional;
        let is_own = import.specifier.starts_with('.');
        if import.is_type && !is_own {
            return;
        }
        if is_own {
            let file = resolve(folder_of(&self.path), &import.specifier);
            self.own.extend(file.into_iter().flat_map(|it| js_files(&it)));
        } else if let Some(found) = parse_specifier(&import.specifier, place.clone()) {
            let module = Some(import.specifier.clone());
            self.packages.push(PackageNeed { module, is_optional, ..found });
        } else if let Some(name) = package_of(&import.specifier) {
            let need = PackageNeed::new(name.to_owned(), name.to_owned(), place);
            let (module, is_guessed) = (Some(name.to_owned()), !is_known_npm(name));
            self.packages.push(PackageNeed { module, is_optional, is_guessed, ..need });
        }
    }
}

/// Merges duplicates of packages; the first import is used.
fn merge_duplicates(packages: Vec<PackageNeed>) -> Vec<PackageNeed> {
    let mut merged: Vec<PackageNeed> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for package in packages {
        match known.get(&package.requirement) {
            Some(at) => merged[*at].is_optional &= package.is_optional,
            None => {
                known.insert(package.requirement.clone(), merged.len());
                merged.push(package);
            }
        }
    }
    merged
}

/// Whether an absolute import means a module in this folder: next to the script, or above it, where
/// scripts are started from. There a well-known package takes precedence.
fn has_module(folder: &str, is_beside: bool, import: &PythonImport, files: &Files<'_>) -> bool {
    let name = import.module.split('.').next().unwrap_or_default();
    let path = join(folder, name);
    let is_there = files.contains(&format!("{path}.py")) || files.has_in_folder(&path, ".py");
    is_there && (is_beside || distribution(&import.module).1)
}

/// Returns the possible files of an import from this folder.
fn own_modules(folder: &str, import: &PythonImport) -> Vec<String> {
    let mut found = Vec::new();
    let mut path = folder.to_owned();
    for part in import.module.split('.').filter(|it| !it.is_empty()) {
        path = join(&path, part);
        found.extend([format!("{path}.py"), format!("{path}/__init__.py")]);
    }
    found.extend(import.names.iter().map(|it| format!("{}.py", join(&path, it))));
    found
}

/// Returns the possible files of a relative import: also `x.ts` for `./x.js`.
fn js_files(path: &str) -> Vec<String> {
    let stem = path.strip_suffix(".js").unwrap_or(path);
    let endings = ["", ".js", ".mjs", ".cjs", ".ts", ".mts", "/index.js", "/index.ts"];
    let whole = endings.iter().map(|it| format!("{path}{it}"));
    whole.chain([format!("{stem}.ts")]).collect()
}

/// Returns the modules that an import may load: for `from google.cloud import storage` the whole
/// name.
fn imported_modules(import: &PythonImport) -> Vec<String> {
    let top = import.module.split('.').next();
    let is_namespace = matches!(top, Some("google" | "azure" | "ruamel"));
    if !is_namespace || import.names.is_empty() {
        return vec![import.module.clone()];
    }
    import.names.iter().map(|it| format!("{}.{it}", import.module)).collect()
}
