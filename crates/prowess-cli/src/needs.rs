//! The needs of a skill and those that are missing, as text and as JSON.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::Path,
};

use prowess::{Directory, Library, Options, Skill};
use prowess_runtime::{
    environment::{
        EnvironmentNeeds, InterpreterSearch, Missing, MissingKind, Needs, PackageDeclaration,
        Present, Runtime, VersionNeed, detect, install_system_programs,
    },
    preparation::{Recipe, SkillRecipes},
};
use serde_json::{Value as Json, json};

use crate::{host, printer::Printer, safe};

/// The needs of a skill, and those that this machine lacks.
pub(crate) struct SkillNeeds {
    needs: Needs,
    missing: Vec<Missing>,
}

/// The most names in one sentence.
const NAMED: usize = 8;

impl SkillNeeds {
    /// Compares the needs of a skill with this machine.
    pub(crate) fn of(skill: &Skill, interpreters: &InterpreterSearch) -> Self {
        let needs = detect(skill);
        let present = Present::look(interpreters, skill.absolute_folder().as_deref());
        let present = present.with_prepared(prepared_environments(skill, interpreters));
        let missing = present.missing(&needs, &|name| env::var_os(name).is_some());
        Self { needs, missing }
    }

    /// Like [`of`](Self::of), for the skill in a folder; `None` if it cannot be loaded.
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

    /// Returns all needs as JSON.
    pub(crate) fn json(&self) -> Json {
        let mut document = json!(self.needs);
        document["missing"] = json!(self.missing);
        document
    }

    /// Prints one line each for the needs, the missing ones, and those that were not understood.
    pub(crate) fn print(&self, name: &str, printer: &mut Printer) {
        if let Some(needed) = self.describe_needs() {
            printer.note(&needed);
        }
        if let Some(missing) = self.describe_missing() {
            let hint = self.hint(name).map(|it| format!("; {}", printer.with_directory_flags(&it)));
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

    /// Returns a sentence with the needs; `None` for a skill that needs only a shell.
    pub(crate) fn describe_needs(&self) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        let scripts = self.needs.scripts.iter().map(|it| &it.interpreter);
        let interpreters = scripts.filter(|it| it.runtime != Runtime::Shell);
        let programs: BTreeSet<&str> =
            interpreters.filter_map(|it| it.command.first().map(|it| file_name(it))).collect();
        words.extend(programs.into_iter().map(str::to_owned));
        for environment in &self.needs.environments {
            words.extend(environment.versions.iter().map(|it: &VersionNeed| {
                format!("{} {} ({})", environment.ecosystem.as_str(), it.requirement, it.place)
            }));
            words.extend(required_packages(environment));
        }
        let programs = self.needs.programs.iter().map(|it| {
            let version = it.version.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
            let optional = if it.is_optional { ", optional" } else { "" };
            format!("{}{version} ({}{optional})", it.any_of.join(" or "), it.place)
        });
        words.extend(programs);
        let variables = self.needs.variables.iter();
        words.extend(variables.map(|it| format!("${} ({})", it.name, it.place)));
        (!words.is_empty()).then(|| format!("needs {}", safe::line(&join_words(&words))))
    }

    /// Returns a sentence with the missing needs; optional ones do not count.
    pub(crate) fn describe_missing(&self) -> Option<String> {
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
        (!words.is_empty()).then(|| format!("missing: {}", safe::line(&join_words(&words))))
    }

    /// Returns the command that installs the missing programs, if it is known.
    pub(crate) fn install_programs(&self) -> Option<String> {
        let missing = self
            .missing
            .iter()
            .filter(|it: &&Missing| it.kind == MissingKind::Program && !it.is_optional);
        let names: Vec<&str> = missing.flat_map(|it| it.name.split(" or ").take(1)).collect();
        install_system_programs(&names)
    }

    /// Leaves out the packages and programs that only other scripts need.
    pub(crate) fn of_script(mut self, path: &str) -> Self {
        self.missing.retain(|it| it.scripts.is_empty() || it.scripts.iter().any(|it| it == path));
        self
    }

    /// Returns a hint with the command that installs the missing packages.
    pub(crate) fn hint(&self, name: &str) -> Option<String> {
        let mut packages = self
            .missing
            .iter()
            .filter(|it: &&Missing| it.kind == MissingKind::Package && !it.is_optional)
            .peekable();
        packages.peek()?;
        let flag = if packages.all(|it| it.is_guessed) { " --guessed" } else { "" };
        Some(format!("`prowess prepare {}{flag}` installs packages", safe::line(name)))
    }
}

/// Returns the prepared environments of a skill by their index among its needs, each with the
/// packages that were not installed.
fn prepared_environments(
    skill: &Skill,
    interpreters: &InterpreterSearch,
) -> BTreeMap<usize, Vec<String>> {
    let store = host::environments().filter(|it| !it.is_empty());
    let Some(store) = store else { return BTreeMap::new() };
    let recipes = SkillRecipes::of(skill, interpreters).map(|it| it.recipes).unwrap_or_default();
    recipes
        .into_iter()
        .filter_map(|(at, recipe): (usize, Recipe)| {
            let found = store.find(&recipe).ok().flatten()?;
            Some((at, found.record.not_installed))
        })
        .collect()
}

/// Returns the required packages of an environment, each with its place.
fn required_packages(environment: &EnvironmentNeeds) -> impl Iterator<Item = String> {
    let needed = environment.packages.iter().filter(|it| !it.is_optional);
    let is_imported = environment.declared == PackageDeclaration::Imports;
    needed.map(move |it| match is_imported && it.is_guessed {
        true => format!("{} ({}, a guess)", it.name, it.place),
        false => format!("{} ({})", it.name, it.place),
    })
}

fn join_words(words: &[String]) -> String {
    let named = words.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match words.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
