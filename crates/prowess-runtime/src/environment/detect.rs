//! Finds out what a skill needs from its files, without running anything.

use std::collections::{BTreeMap, BTreeSet};

use prowess::{Kind, Manifest, Skill};

use super::{
    files::{Files, folder_of, inside, resolved, upward},
    js_imports::{JsImport, js_imports, package},
    needs::{
        Declared, Ecosystem, EnvironmentNeeds, Needs, PackageNeed, Place, Runtime, ScriptNeeds,
        VersionNeed,
    },
    node,
    packages::{distribution, is_known_npm},
    programs, python,
    python_imports::{PythonImport, has_main, python_imports},
    requirements::{MAX_PACKAGES, too_many},
    shebang::{interpreter, shebang},
    standard_library::{Standard, standard},
};
use crate::skill_folder::SkillFile;

/// How many scripts of a skill are looked at.
const MAX_SCRIPTS: usize = 1_000;
/// The first version of Node that runs TypeScript.
const TYPESCRIPT: &str = ">=22.18";

/// What a skill needs: read from its files, bounded, and nothing is run.
pub fn detect(skill: &Skill) -> Needs {
    let document = skill.document().unwrap_or_default();
    detected(&skill.manifest, &String::from_utf8_lossy(&document), Files::of(skill))
}

/// The same, of files that were read already.
pub(crate) fn detect_in(manifest: &Manifest, files: &[SkillFile]) -> Needs {
    let document = files.iter().find(|it| it.path == "SKILL.md");
    let document = document.map(|it| String::from_utf8_lossy(&it.bytes));
    detected(manifest, &document.unwrap_or_default(), Files::read_before(files))
}

fn detected(manifest: &Manifest, document: &str, files: Files<'_>) -> Needs {
    let mut needs = Needs::default();
    programs::declared(manifest, document, &mut needs);
    let sources = sources(&files);
    let scripts: Vec<&Source> = sources.values().filter(|it| it.is_script).collect();
    let mut detection = Detection { files: &files, sources: &sources, needs };
    scripts.into_iter().for_each(|it| detection.script(it));
    let mut needs = detection.needs;
    needs.notes = files.into_notes();
    needs
}

/// A file that is run or imported.
struct Source {
    needs: ScriptNeeds,
    text: String,
    imports: Imports,
    is_script: bool,
}

enum Imports {
    Python(Vec<PythonImport>),
    Js(Vec<JsImport>),
    None,
}

/// Reads all scripts of a skill and the modules that they import from it.
fn sources(files: &Files<'_>) -> BTreeMap<String, Source> {
    let mut sources = BTreeMap::new();
    for path in files.paths().filter(|it| can_be_script(it)) {
        if sources.len() >= MAX_SCRIPTS {
            files.note(
                path,
                0,
                &format!("there are more than {MAX_SCRIPTS} scripts; the rest was not looked at"),
            );
            break;
        }
        let has_ending = interpreter(path, "").is_some();
        let text = if has_ending { files.text(path) } else { files.quiet_text(path) };
        let Some(text) = text else { continue };
        let Some(interpreter) = interpreter(path, &text) else { continue };
        let imports = match interpreter.runtime {
            Runtime::Python => Imports::Python(python_imports(&text)),
            Runtime::Node | Runtime::Bun | Runtime::Deno => Imports::Js(js_imports(&text)),
            Runtime::Shell | Runtime::Ruby | Runtime::Perl | Runtime::Other => Imports::None,
        };
        let needs = ScriptNeeds { path: path.to_owned(), interpreter, environment: None };
        let is_script = !path.ends_with("__init__.py");
        sources.insert(path.to_owned(), Source { needs, text, imports, is_script });
    }
    let imported: BTreeSet<String> = sources
        .values()
        .flat_map(|it| {
            own_files(it, &sources, files).into_iter().filter(|own| *own != it.needs.path)
        })
        .collect();
    for path in imported {
        if let Some(source) = sources.get_mut(&path) {
            source.is_script &= shebang(&source.text).is_some() || has_main(&source.text);
        }
    }
    sources
}

/// Whether a file may be a script: of a kind that is run, or without an ending, so that its first line may say so.
fn can_be_script(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    Kind::of(path) == Kind::Script || !name.contains('.')
}

/// The files of the skill that a file imports.
fn own_files(
    source: &Source,
    sources: &BTreeMap<String, Source>,
    files: &Files<'_>,
) -> Vec<String> {
    let is_there = |it: &String| sources.contains_key(it);
    match &source.imports {
        Imports::Python(imports) => {
            let found = imports.iter().flat_map(|it| own_modules(source, it, files));
            found.filter(is_there).collect()
        }
        Imports::Js(imports) => {
            let folder = folder_of(&source.needs.path);
            let own = imports.iter().filter(|it| it.specifier.starts_with('.'));
            let found = own.filter_map(|it| resolved(folder, &it.specifier));
            found.flat_map(|it| js_files(&it)).filter(is_there).collect()
        }
        Imports::None => Vec::new(),
    }
}

/// The files that a relative import may mean: also that of `./x.js` where there is only `x.ts`.
fn js_files(path: &str) -> Vec<String> {
    let stem = path.strip_suffix(".js").unwrap_or(path);
    let endings = ["", ".js", ".mjs", ".cjs", ".ts", ".mts", "/index.js", "/index.ts"];
    let whole = endings.iter().map(|it| format!("{path}{it}"));
    whole.chain([format!("{stem}.ts")]).collect()
}

/// The files of the skill that an import of Python means; none if it is no module of the skill.
fn own_modules(source: &Source, import: &PythonImport, files: &Files<'_>) -> Vec<String> {
    let own = folder_of(&source.needs.path);
    let bases: Vec<&str> = match import.level {
        0 => upward(own).filter(|it| is_own(source, import, it, files)).take(1).collect(),
        level => upward(own).nth(level - 1).into_iter().collect(),
    };
    let mut found = Vec::new();
    for base in bases {
        let mut path = base.to_owned();
        for part in import.module.split('.').filter(|it| !it.is_empty()) {
            path = inside(&path, part);
            found.extend([format!("{path}.py"), format!("{path}/__init__.py")]);
        }
        found.extend(import.names.iter().map(|it| format!("{}.py", inside(&path, it))));
    }
    found.retain(|it| files.has(it));
    found
}

/// Whether an absolute import means a module in this folder: beside the script, or above it, where scripts are
/// started from or put into `sys.path`. There a well-known package comes first.
fn is_own(source: &Source, import: &PythonImport, folder: &str, files: &Files<'_>) -> bool {
    let name = import.module.split('.').next().unwrap_or_default();
    let path = inside(folder, name);
    let is_beside = folder == folder_of(&source.needs.path);
    let is_there = files.has(&format!("{path}.py")) || files.has_in_folder(&path, ".py");
    is_there && (is_beside || distribution(&import.module).1)
}

struct Detection<'a> {
    files: &'a Files<'a>,
    sources: &'a BTreeMap<String, Source>,
    needs: Needs,
}

impl Detection<'_> {
    fn script(&mut self, source: &Source) {
        let mut needs = source.needs.clone();
        needs.environment = match needs.interpreter.runtime {
            Runtime::Python => self.python(source),
            Runtime::Node | Runtime::Bun | Runtime::Deno => self.javascript(source, &mut needs),
            Runtime::Shell | Runtime::Ruby | Runtime::Perl | Runtime::Other => None,
        };
        self.needs.scripts.push(needs);
    }

    fn python(&mut self, source: &Source) -> Option<usize> {
        let path = &source.needs.path;
        let folder = folder_of(path);
        let version = || upward(folder).find_map(|it| python::version_file(self.files, it));
        if let Some(header) = python::header(self.files, path, &source.text) {
            return Some(self.add(header));
        }
        let known = |it: &EnvironmentNeeds| {
            matches!(it.declared, Declared::Requirements | Declared::Pyproject)
        };
        let declared = upward(folder).find_map(|folder| {
            // Every folder is read once.
            let same = self
                .needs
                .environments
                .iter()
                .position(|it| known(it) && folder_of(&it.file) == folder);
            same.map(Ok).or_else(|| python::declared(self.files, folder).map(Err))
        });
        let version = version();
        match declared {
            Some(Ok(same)) if !self.needs.environments[same].packages.is_empty() => Some(same),
            Some(Err(mut declared)) if !declared.packages.is_empty() => {
                declared.versions.extend(version);
                Some(self.add(declared))
            }
            other => {
                let versions = match other {
                    Some(Ok(same)) => self.needs.environments[same].versions.clone(),
                    Some(Err(declared)) => declared.versions,
                    None => Vec::new(),
                };
                self.python_imports(source, versions.into_iter().chain(version))
            }
        }
    }

    /// The environment of all Python scripts of the skill for which nothing is declared.
    fn python_imports(
        &mut self,
        source: &Source,
        versions: impl Iterator<Item = VersionNeed>,
    ) -> Option<usize> {
        let mut asked: Vec<VersionNeed> = versions.collect();
        let mut found = Vec::new();
        for file in self.reached(source) {
            let Imports::Python(imports) = &file.imports else { continue };
            let absolute = imports.iter().filter(|it| it.level == 0);
            for import in absolute.filter(|it| !is_own_module(file, it, self.files)) {
                let place = Place::new(&file.needs.path, import.line);
                match standard(import.module.split('.').next().unwrap_or_default()) {
                    Standard::Always => {}
                    Standard::Versions(requirement) if !import.is_optional => {
                        asked.push(VersionNeed { requirement, place });
                    }
                    Standard::Versions(_) => {}
                    Standard::Never => found.extend(brought(import).into_iter().map(|module| {
                        let (name, is_guessed) = distribution(&module);
                        let module = module.split('.').next().unwrap_or_default().to_owned();
                        let need = PackageNeed::new(name.clone(), name, place.clone());
                        PackageNeed {
                            is_guessed,
                            module: Some(module),
                            is_optional: import.is_optional,
                            ..need
                        }
                    })),
                }
            }
        }
        self.imported(Ecosystem::Python, source, found, asked)
    }

    fn javascript(&mut self, source: &Source, needs: &mut ScriptNeeds) -> Option<usize> {
        let folder = folder_of(&source.needs.path);
        let is_typescript = needs.interpreter.command == ["node"] && needs.path.ends_with("ts");
        let depth = |it: &EnvironmentNeeds| folder_of(&it.file).len();
        let deno = upward(folder).find_map(|it| node::declared_for_deno(self.files, it));
        let package = upward(folder).find_map(|it| {
            node::declared(self.files, it)
                .filter(|it| !it.packages.is_empty() || !it.versions.is_empty())
        });
        if is_typescript {
            let is_deno = deno
                .as_ref()
                .is_some_and(|it| package.as_ref().is_none_or(|other| depth(other) < depth(it)));
            let has = |name: &str| {
                package.as_ref().is_some_and(|it| it.packages.iter().any(|it| it.name == name))
            };
            let lock = package.as_ref().and_then(|it| it.lock_file.as_deref()).unwrap_or_default();
            let (runtime, command): (Runtime, &[&str]) = if is_deno {
                (Runtime::Deno, &["deno", "run"])
            } else if lock.contains("bun.lock") || source.text.contains("Bun.") {
                (Runtime::Bun, &["bun"])
            } else if has("tsx") {
                (Runtime::Node, &["tsx"])
            } else {
                (Runtime::Node, &["node"])
            };
            needs.interpreter.runtime = runtime;
            needs.interpreter.command = command.iter().map(|it| (*it).to_owned()).collect();
        }
        let mut versions = Vec::new();
        if needs.interpreter.command == ["node"] && is_typescript {
            let place = Place::new(&needs.path, 0);
            versions.push(VersionNeed { requirement: TYPESCRIPT.to_owned(), place });
        }
        if needs.interpreter.runtime == Runtime::Deno {
            let (specified, _) = self.specified(source);
            return match deno {
                Some(deno) => {
                    let at = self.add(deno);
                    let packages = &mut self.needs.environments[at].packages;
                    for package in specified {
                        let is_new =
                            packages.iter().all(|it| it.requirement != package.requirement);
                        packages.extend(is_new.then_some(package));
                    }
                    Some(at)
                }
                None => self.imported(Ecosystem::Deno, source, specified, versions),
            };
        }
        match package {
            Some(package) if !package.packages.is_empty() => {
                let at = self.add(package);
                let known = &mut self.needs.environments[at].versions;
                let is_new = |it: &VersionNeed| {
                    known.iter().all(|known| known.requirement != it.requirement)
                };
                versions.retain(is_new);
                known.extend(versions);
                Some(at)
            }
            package => {
                versions.extend(package.into_iter().flat_map(|it| it.versions));
                let (_, bare) = self.specified(source);
                self.imported(Ecosystem::Node, source, bare, versions)
            }
        }
    }

    /// The packages that a script and what it imports name: with their registry, and without.
    fn specified(&self, source: &Source) -> (Vec<PackageNeed>, Vec<PackageNeed>) {
        let (mut specified, mut bare) = (Vec::new(), Vec::new());
        for file in self.reached(source) {
            let Imports::Js(imports) = &file.imports else { continue };
            for import in imports {
                let place = Place::new(&file.needs.path, import.line);
                if let Some(found) = node::specified(&import.specifier, place.clone()) {
                    let module = Some(import.specifier.clone());
                    specified.push(PackageNeed {
                        module,
                        is_optional: import.is_optional,
                        ..found
                    });
                } else if let Some(name) = package(&import.specifier) {
                    bare.push(PackageNeed {
                        module: Some(name.to_owned()),
                        is_optional: import.is_optional,
                        is_guessed: !is_known_npm(name),
                        ..PackageNeed::new(name.to_owned(), name.to_owned(), place)
                    });
                }
            }
        }
        (specified, bare)
    }

    /// A script and all files of the skill that it comes to import.
    fn reached<'s>(&'s self, source: &'s Source) -> Vec<&'s Source> {
        let mut reached = vec![source];
        let mut seen = BTreeSet::from([source.needs.path.clone()]);
        let mut at = 0;
        while let Some(file) = reached.get(at).copied() {
            for path in own_files(file, self.sources, self.files) {
                if seen.insert(path.clone()) {
                    reached.extend(self.sources.get(&path));
                }
            }
            at += 1;
        }
        reached
    }

    /// Adds an environment that a file declares, once; returns its index.
    fn add(&mut self, needs: EnvironmentNeeds) -> usize {
        let is_same =
            |it: &EnvironmentNeeds| it.declared == needs.declared && it.file == needs.file;
        let environments = &mut self.needs.environments;
        environments.iter().position(is_same).unwrap_or_else(|| {
            environments.push(needs);
            environments.len() - 1
        })
    }

    /// Adds what a script imports to the environment of all for which nothing is declared.
    fn imported(
        &mut self,
        ecosystem: Ecosystem,
        source: &Source,
        found: Vec<PackageNeed>,
        versions: Vec<VersionNeed>,
    ) -> Option<usize> {
        if found.is_empty() && versions.is_empty() {
            return None;
        }
        let path = &source.needs.path;
        let environments = &mut self.needs.environments;
        let is_same =
            |it: &EnvironmentNeeds| it.declared == Declared::Imports && it.ecosystem == ecosystem;
        let at = environments.iter().position(is_same).unwrap_or_else(|| {
            environments.push(EnvironmentNeeds::new(ecosystem, Declared::Imports, path));
            environments.len() - 1
        });
        let environment = &mut environments[at];
        for version in versions {
            let is_new =
                environment.versions.iter().all(|it| it.requirement != version.requirement);
            environment.versions.extend(is_new.then_some(version));
        }
        for package in found {
            let packages = &mut environment.packages;
            let same = packages.iter().position(|it| it.requirement == package.requirement);
            if let Some(same) = same {
                let same = &mut packages[same];
                same.is_optional &= package.is_optional;
                if !same.scripts.contains(path) {
                    same.scripts.push(path.clone());
                }
            } else if packages.len() < MAX_PACKAGES {
                packages.push(PackageNeed { scripts: vec![path.clone()], ..package });
            } else {
                self.files.note(path, package.place.line, &too_many());
                break;
            }
        }
        Some(at)
    }
}

/// The modules that an import may bring in: of `from google.cloud import storage` the whole name counts.
fn brought(import: &PythonImport) -> Vec<String> {
    let is_namespace =
        matches!(import.module.split('.').next(), Some("google" | "azure" | "ruamel"));
    if !is_namespace || import.names.is_empty() {
        return vec![import.module.clone()];
    }
    import.names.iter().map(|it| format!("{}.{it}", import.module)).collect()
}

/// Whether an absolute import of Python means a module of the skill.
fn is_own_module(source: &Source, import: &PythonImport, files: &Files<'_>) -> bool {
    let own = folder_of(&source.needs.path);
    let name = import.module.split('.').next().unwrap_or_default();
    upward(own).any(|it| is_own(source, import, it, files))
        // Wherever it put into `sys.path`.
        || source.text.contains("sys.path") && distribution(&import.module).1 && files.has_module(name)
}
