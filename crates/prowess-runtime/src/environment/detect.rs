//! Detects the needs of a skill from its files, without running anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use prowess::{Manifest, Skill, spec::SKILL_FILE};

use super::{
    files::{Files, ancestors, folder_of},
    needs::{
        Ecosystem, EnvironmentNeeds, Interpreter, Needs, PackageDeclaration, PackageNeed, Place,
        Runtime, ScriptNeeds, VersionNeed,
    },
    node,
    programs::{self, add_started},
    python,
    requirements::{MAX_PACKAGES, too_many},
    sources::{Source, read_sources},
    started_programs::{StartedProgram, started_programs},
    system_programs::program_of_wrapper,
};
use crate::skill_folder::SkillFile;

/// The first version of Node that runs TypeScript.
const TYPESCRIPT: &str = ">=22.18";

/// Detects the needs of a skill from its files, within limits and without running anything.
pub fn detect(skill: &Skill) -> Needs {
    let document = skill.document().unwrap_or_default();
    detect_needs(&skill.manifest, &String::from_utf8_lossy(&document), Files::of(skill))
}

/// Detects the needs of a skill from files that were read already.
pub(crate) fn detect_in(manifest: &Manifest, files: &[SkillFile]) -> Needs {
    let document = files.iter().find(|it| it.path == SKILL_FILE);
    let document = document.map(|it| String::from_utf8_lossy(&it.bytes));
    detect_needs(manifest, &document.unwrap_or_default(), Files::from_read(files))
}

fn detect_needs(manifest: &Manifest, document: &str, files: Files<'_>) -> Needs {
    let mut needs = Needs::default();
    programs::add_declared(manifest, document, &mut needs);
    let sources = read_sources(&files);
    let mut detection = Detection {
        files: &files,
        sources: &sources,
        needs,
        declared: BTreeMap::new(),
        imported: BTreeMap::new(),
        started: sources
            .values()
            .map(|it| (it.path.as_str(), started_programs(&it.text, it.interpreter.runtime)))
            .collect(),
    };
    sources.values().filter(|it| it.is_script).for_each(|it| detection.add_script(it));
    let mut needs = detection.needs;
    needs.notes = files.into_notes();
    needs
}

struct Detection<'a> {
    files: &'a Files<'a>,
    sources: &'a BTreeMap<String, Source>,
    needs: Needs,
    /// The declarations of folders: each is read once.
    declared: BTreeMap<(Ecosystem, String), Option<Rc<EnvironmentNeeds>>>,
    /// Indices of the environments for undeclared imports.
    imported: BTreeMap<(Ecosystem, String), usize>,
    /// The programs that each file starts.
    started: BTreeMap<&'a str, Vec<StartedProgram>>,
}

impl<'a> Detection<'a> {
    fn add_script(&mut self, source: &'a Source) {
        let (interpreter, environment) = match source.interpreter.runtime {
            Runtime::Python => (source.interpreter.clone(), self.add_python(source)),
            Runtime::Node | Runtime::Bun | Runtime::Deno => self.add_javascript(source),
            Runtime::Shell | Runtime::Ruby | Runtime::Perl | Runtime::Other => {
                (source.interpreter.clone(), None)
            }
        };
        let path = source.path.clone();
        self.needs.scripts.push(ScriptNeeds { path, interpreter, environment });
        self.add_started_programs(source);
    }

    /// Adds the programs that a script and its imports start, including those that a wrapper
    /// package starts.
    fn add_started_programs(&mut self, source: &'a Source) {
        let reached = self.with_imports(source);
        for file in &reached {
            for StartedProgram { name, line, is_optional } in &self.started[&*file.path] {
                let place = Place::new(&file.path, *line);
                add_started(name, *is_optional, place, &source.path, &mut self.needs);
            }
        }
        for package in reached.into_iter().flat_map(|it| &it.packages) {
            if let Some(name) = program_of_wrapper(&package.name) {
                let (is_optional, place) = (package.is_optional, package.place.clone());
                add_started(name, is_optional, place, &source.path, &mut self.needs);
            }
        }
    }

    fn add_python(&mut self, source: &'a Source) -> Option<usize> {
        if let Some(header) = python::read_header(self.files, &source.path, &source.text) {
            return Some(self.add(&header));
        }
        let folder = folder_of(&source.path);
        let version = ancestors(folder).find_map(|it| python::read_version_file(self.files, it));
        match self.nearest_declaration(Ecosystem::Python, &source.path) {
            Some(declared) if !declared.packages.is_empty() => {
                let at = self.add(&declared);
                add_versions(&mut self.needs.environments[at], version.into_iter().collect());
                Some(at)
            }
            declared => {
                let versions = declared.iter().flat_map(|it| it.versions.clone()).chain(version);
                self.add_imports(Ecosystem::Python, source, versions.collect())
            }
        }
    }

    fn add_javascript(&mut self, source: &'a Source) -> (Interpreter, Option<usize>) {
        let node = self.nearest_declaration(Ecosystem::Node, &source.path);
        let deno = self.nearest_declaration(Ecosystem::Deno, &source.path);
        let is_open = source.interpreter.command == ["node"] && source.path.ends_with("ts");
        let interpreter = match is_open {
            true => typescript_interpreter(source, node.as_deref(), deno.as_deref()),
            false => source.interpreter.clone(),
        };
        if interpreter.runtime == Runtime::Deno {
            let environment = match deno {
                Some(deno) => Some(self.add_specified(&deno, source)),
                None => self.add_imports(Ecosystem::Deno, source, Vec::new()),
            };
            return (interpreter, environment);
        }
        let mut versions = Vec::new();
        if is_open && interpreter.command == ["node"] {
            let place = Place::new(&source.path, 0);
            versions.push(VersionNeed { requirement: TYPESCRIPT.to_owned(), place });
        }
        let environment = match node {
            Some(node) if !node.packages.is_empty() => {
                let at = self.add(&node);
                add_versions(&mut self.needs.environments[at], versions);
                Some(at)
            }
            node => {
                versions.extend(node.iter().flat_map(|it| it.versions.clone()));
                self.add_imports(Ecosystem::Node, source, versions)
            }
        };
        (interpreter, environment)
    }

    /// Returns the declaration of the nearest folder above a script that has one.
    fn nearest_declaration(
        &mut self,
        ecosystem: Ecosystem,
        path: &str,
    ) -> Option<Rc<EnvironmentNeeds>> {
        let files = self.files;
        ancestors(folder_of(path)).find_map(|folder| {
            self.declared
                .entry((ecosystem, folder.to_owned()))
                .or_insert_with(|| {
                    let declared = match ecosystem {
                        Ecosystem::Python => python::read_declaration(files, folder),
                        Ecosystem::Node => node::read_package_json(files, folder),
                        Ecosystem::Deno => node::read_deno_json(files, folder),
                    };
                    declared.map(Rc::new)
                })
                .clone()
        })
    }

    /// Adds an environment that a file declares, once; returns its index.
    fn add(&mut self, needs: &EnvironmentNeeds) -> usize {
        let environments = &mut self.needs.environments;
        environments
            .iter()
            .position(|it| it.declared == needs.declared && it.file == needs.file)
            .unwrap_or_else(|| {
                environments.push(needs.clone());
                environments.len() - 1
            })
    }

    /// Adds the packages that a Deno script names with their registry to those that its project
    /// declares.
    fn add_specified(&mut self, deno: &EnvironmentNeeds, source: &'a Source) -> usize {
        let at = self.add(deno);
        let named = self.with_imports(source).into_iter().flat_map(|it| &it.packages);
        let named = named.filter(|it| it.requirement.contains(':'));
        let packages = &mut self.needs.environments[at].packages;
        for package in named {
            let is_new = packages.iter().all(|it| it.requirement != package.requirement);
            if is_new && packages.len() < MAX_PACKAGES {
                packages.push(package.clone());
            }
        }
        at
    }

    /// Adds the imports of a script to the environment for undeclared packages.
    fn add_imports(
        &mut self,
        ecosystem: Ecosystem,
        source: &'a Source,
        mut versions: Vec<VersionNeed>,
    ) -> Option<usize> {
        let reached = self.with_imports(source);
        versions.extend(reached.iter().flat_map(|it| &it.versions).cloned());
        // Only Deno resolves packages by a specifier.
        let found: Vec<&PackageNeed> = reached
            .into_iter()
            .flat_map(|it| &it.packages)
            .filter(|it| it.requirement.contains(':') == (ecosystem == Ecosystem::Deno))
            .collect();
        if found.is_empty() && versions.is_empty() {
            return None;
        }
        let environments = &mut self.needs.environments;
        let at = environments
            .iter()
            .position(|it: &EnvironmentNeeds| {
                it.declared == PackageDeclaration::Imports && it.ecosystem == ecosystem
            })
            .unwrap_or_else(|| {
                let needs =
                    EnvironmentNeeds::new(ecosystem, PackageDeclaration::Imports, &source.path);
                environments.push(needs);
                environments.len() - 1
            });
        add_versions(&mut environments[at], versions);
        for package in found {
            self.add_imported(at, package, source);
        }
        Some(at)
    }

    fn add_imported(&mut self, at: usize, package: &PackageNeed, source: &'a Source) {
        let environment = &mut self.needs.environments[at];
        let packages = &mut environment.packages;
        let key = (environment.ecosystem, package.requirement.clone());
        if let Some(known) = self.imported.get(&key) {
            let known = &mut packages[*known];
            known.is_optional &= package.is_optional;
            if known.scripts.last() != Some(&source.path) {
                known.scripts.push(source.path.clone());
            }
        } else if packages.len() < MAX_PACKAGES {
            self.imported.insert(key, packages.len());
            packages.push(PackageNeed { scripts: vec![source.path.clone()], ..package.clone() });
        } else {
            self.files.note(&environment.file, 0, &too_many());
        }
    }

    /// Returns a script and all files of the skill that it imports, directly or not.
    fn with_imports(&self, source: &'a Source) -> Vec<&'a Source> {
        let mut reached = vec![source];
        let mut seen = BTreeSet::from([source.path.as_str()]);
        let mut at = 0;
        while let Some(file) = reached.get(at).copied() {
            let next = file.own.iter().filter(|it| seen.insert(it.as_str()));
            reached.extend(next.filter_map(|it| self.sources.get(it)));
            at += 1;
        }
        reached
    }
}

/// Adds versions that are not required yet.
fn add_versions(environment: &mut EnvironmentNeeds, versions: Vec<VersionNeed>) {
    for version in versions {
        let is_new = environment.versions.iter().all(|it| it.requirement != version.requirement);
        environment.versions.extend(is_new.then_some(version));
    }
}

/// Returns the runtime of a TypeScript file without a shebang: that of the nearest project.
fn typescript_interpreter(
    source: &Source,
    node: Option<&EnvironmentNeeds>,
    deno: Option<&EnvironmentNeeds>,
) -> Interpreter {
    let [node_depth, deno_depth] = [node, deno].map(|it| it.map(|it| folder_of(&it.file).len()));
    let is_deno = deno.is_some() && node_depth < deno_depth;
    let lock = node.and_then(|it| it.lock_file.as_deref()).unwrap_or_default();
    let is_bun = lock.contains("bun.lock") || source.text.contains("Bun.");
    let has_tsx = node.is_some_and(|it| it.packages.iter().any(|it| it.name == "tsx"));
    let (runtime, command): (Runtime, &[&str]) = match () {
        () if is_deno => (Runtime::Deno, &["deno", "run"]),
        () if is_bun => (Runtime::Bun, &["bun"]),
        () if has_tsx => (Runtime::Node, &["tsx"]),
        () => (Runtime::Node, &["node"]),
    };
    Interpreter { runtime, command: command.iter().map(|it| (*it).to_owned()).collect() }
}
