//! What a skill needs and what of it is missing, as people and programs are told.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::Path,
};

use prowess::{Directory, Library, Options, Skill};
use prowess_runtime::{
    EnvironmentNeeds, InterpreterSearch, Missing, MissingKind, Needs, PackageDeclaration, Present,
    Recipe, Runtime, SkillRecipes, VersionNeed, detect, install_system_programs,
};
use serde_json::{Value as Json, json};

use crate::{host, printer::Printer, safe};

/// What a skill needs, and what of it is not on this machine.
pub(crate) struct SkillNeeds {
    needs: Needs,
    missing: Vec<Missing>,
}

/// How many things are named in one sentence.
const NAMED: usize = 8;

impl SkillNeeds {
    /// Looks at a skill and at this machine.
    pub(crate) fn of(skill: &Skill, interpreters: &InterpreterSearch) -> Self {
        let needs = detect(skill);
        let present = Present::look(interpreters, skill.absolute_folder().as_deref());
        let present = present.with_prepared(prepared(skill, interpreters));
        let missing = present.missing(&needs, &|name| env::var_os(name).is_some());
        Self { needs, missing }
    }

    /// Does the same for the skill in a folder; nothing where none can be loaded.
    pub(crate) fn in_folder(
        folder: &Path,
        options: &Options,
        interpreters: &InterpreterSearch,
    ) -> Option<Self> {
        let directories = vec![Directory::new(folder)];
        let options = Options { directories, sources: Vec::new(), cache: None, ..options.clone() };
        let library = Library::load(&options).ok()?;
        library.all().next().map(|it| Self::of(it, interpreters))
    }

    /// All of it, for programs.
    pub(crate) fn json(&self) -> Json {
        let mut document = json!(self.needs);
        document["missing"] = json!(self.missing);
        document
    }

    /// Says what is needed, then what is missing and what was not understood, each in a line.
    pub(crate) fn tell(&self, name: &str, printer: &mut Printer) {
        if let Some(needed) = self.needed() {
            printer.note(&needed);
        }
        if let Some(missing) = self.lacked() {
            let hint = self.hint(name).map(|it| format!("; {}", printer.led(&it)));
            printer.warning(&format!("{missing}{}", hint.unwrap_or_default()));
        }
        if let Some(install) = self.install_programs() {
            printer.note(&install);
        }
        let shown = if printer.verbose { self.needs.notes.len() } else { NAMED };
        for note in self.needs.notes.iter().take(shown) {
            printer.note(&safe::line(&note.to_string()));
        }
    }

    /// What is needed, in a sentence; nothing for a skill that needs no more than a shell.
    pub(crate) fn needed(&self) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        let scripts = self.needs.scripts.iter().map(|it| &it.interpreter);
        let interpreters = scripts.filter(|it| it.runtime != Runtime::Shell);
        let programs: BTreeSet<&str> =
            interpreters.filter_map(|it| it.command.first().map(|it| base(it))).collect();
        words.extend(programs.into_iter().map(str::to_owned));
        for environment in &self.needs.environments {
            let version = |it: &VersionNeed| {
                format!("{} {} ({})", environment.ecosystem.as_str(), it.requirement, it.place)
            };
            words.extend(environment.versions.iter().map(version));
            words.extend(packages(environment));
        }
        let programs = self.needs.programs.iter().map(|it| {
            let version = it.version.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
            let optional = if it.is_optional { ", optional" } else { "" };
            format!("{}{version} ({}{optional})", it.any_of.join(" or "), it.place)
        });
        words.extend(programs);
        let variables = self.needs.variables.iter();
        words.extend(variables.map(|it| format!("${} ({})", it.name, it.place)));
        (!words.is_empty()).then(|| format!("needs {}", safe::line(&listed(&words))))
    }

    /// What is missing, in a sentence; what the skill works without is not.
    pub(crate) fn lacked(&self) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        for missing in self.missing.iter().filter(|it| !it.is_optional) {
            let guess = if missing.is_guessed { ", a guess from an import" } else { "" };
            let sign = if missing.kind == MissingKind::Variable { "$" } else { "" };
            let found = match &missing.found {
                Some(found) => format!(", {found} is here"),
                None => String::new(),
            };
            words.push(format!("{sign}{} ({}{guess}{found})", missing.name, missing.place));
        }
        (!words.is_empty()).then(|| format!("missing: {}", safe::line(&listed(&words))))
    }

    /// How the programs that are missing are installed, where that is known.
    pub(crate) fn install_programs(&self) -> Option<String> {
        let is_program = |it: &&Missing| it.kind == MissingKind::Program && !it.is_optional;
        let missing = self.missing.iter().filter(is_program);
        let names: Vec<&str> = missing.flat_map(|it| it.name.split(" or ").take(1)).collect();
        install_system_programs(&names)
    }

    /// The same needs, without the packages and programs that only other scripts need.
    pub(crate) fn of_script(mut self, path: &str) -> Self {
        self.missing.retain(|it| it.scripts.is_empty() || it.scripts.iter().any(|it| it == path));
        self
    }

    /// What installs the packages that are missing.
    pub(crate) fn hint(&self, name: &str) -> Option<String> {
        let is_package = |it: &&Missing| it.kind == MissingKind::Package && !it.is_optional;
        let mut packages = self.missing.iter().filter(is_package).peekable();
        packages.peek()?;
        let flag = if packages.all(|it| it.is_guessed) { " --guessed" } else { "" };
        Some(format!("`prowess prepare {}{flag}` installs packages", safe::line(name)))
    }
}

/// The environments of a skill that are prepared, by their index among its needs, each with what was not installed.
fn prepared(skill: &Skill, interpreters: &InterpreterSearch) -> BTreeMap<usize, Vec<String>> {
    let store = host::environments().filter(|it| !it.is_empty());
    let Some(store) = store else { return BTreeMap::new() };
    let recipes = SkillRecipes::of(skill, interpreters).map(|it| it.recipes).unwrap_or_default();
    let found = |(at, recipe): (usize, Recipe)| {
        let found = store.find(&recipe).ok().flatten()?;
        Some((at, found.record.not_installed))
    };
    recipes.into_iter().filter_map(found).collect()
}

/// The packages of an environment that are needed always, each with its place.
fn packages(environment: &EnvironmentNeeds) -> impl Iterator<Item = String> {
    let needed = environment.packages.iter().filter(|it| !it.is_optional);
    let is_imported = environment.declared == PackageDeclaration::Imports;
    needed.map(move |it| match is_imported && it.is_guessed {
        true => format!("{} ({}, a guess)", it.name, it.place),
        false => format!("{} ({})", it.name, it.place),
    })
}

fn listed(words: &[String]) -> String {
    let named = words.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match words.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
