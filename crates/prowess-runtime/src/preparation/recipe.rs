//! Recipes: the packages, lock file and interpreter that an environment is made from.

use std::{collections::BTreeMap, env::consts, path::PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    digest::hex,
    environment::{
        Ecosystem, EnvironmentNeeds, InstalledInterpreter, InterpreterError, InterpreterSearch,
        PackageDeclaration, PackageNeed, PackageSource, Place, VersionNeed,
    },
    skill_folder::SkillFile,
};

/// The packages of an environment, their lock file, and the interpreter that uses them. Equal
/// recipes share one environment, whichever skills they come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recipe {
    /// The ecosystem of the packages.
    pub ecosystem: Ecosystem,
    /// Requirements as passed to the installer, sorted: `pypdf>=4`, `docx@^9`, `jsr:@std/path@1`.
    pub requirements: Vec<String>,
    /// Requirements whose package names are only guessed from imports. They are installed only on
    /// request.
    pub guessed: Vec<String>,
    /// `package.json`, `pyproject.toml` and lock files, as passed to the installer.
    pub(super) files: BTreeMap<String, String>,
    /// The interpreter that uses the packages, with links resolved.
    pub interpreter: PathBuf,
    platform: String,
    /// Paths that the interpreter has to read.
    #[serde(skip)]
    pub(super) reads: Vec<PathBuf>,
    /// Packages that are needed but not installed, each with the reason.
    #[serde(skip)]
    pub left_out: Vec<String>,
}

/// The needs of a skill cannot be installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// The interpreter is not installed.
    #[error("`{name}` is not installed")]
    NoInterpreter {
        /// Its name, with the requested version.
        name: String,
    },
    /// The interpreter that settings name cannot be used.
    #[error(transparent)]
    Interpreter(#[from] InterpreterError),
    /// Packages are needed, but none of them is in a package registry.
    #[error("none of these can be installed: {}", what.join("; "))]
    LeftOut {
        /// Each with the reason.
        what: Vec<String>,
    },
    /// A requirement is invalid.
    #[error("`{requirement}` is not a valid requirement")]
    Requirement {
        /// The requirement as it is written.
        requirement: String,
    },
}

impl Recipe {
    /// Returns the recipe of an environment that a skill needs; `None` if it needs no packages.
    pub(crate) fn of(
        needs: &EnvironmentNeeds,
        files: &[SkillFile],
        search: &InterpreterSearch,
    ) -> Result<Option<Self>, RecipeError> {
        let mut recipe = Self::new(needs.ecosystem, find_interpreter(needs, search)?);
        for package in needs.packages.iter().filter(|it| is_needed(needs, it)) {
            recipe.add_package(package)?;
        }
        if recipe.requirements.is_empty() && recipe.guessed.is_empty() {
            return match recipe.left_out.is_empty() {
                true => Ok(None),
                false => Err(RecipeError::LeftOut { what: recipe.left_out }),
            };
        }
        recipe.add_files(needs, files);
        recipe.sort();
        Ok(Some(recipe))
    }

    /// Returns the recipe for named packages, such as those of `npx` and `uvx`, for this version of
    /// the interpreter.
    pub fn of_packages(
        ecosystem: Ecosystem,
        requirements: Vec<String>,
        version: Option<&str>,
        search: &InterpreterSearch,
    ) -> Result<Self, RecipeError> {
        let mut needs = EnvironmentNeeds::new(ecosystem, PackageDeclaration::Imports, "");
        needs.versions.extend(
            version.map(|it| VersionNeed {
                requirement: format!("=={it}.*"),
                place: Place::new("", 0),
            }),
        );
        let mut recipe = Self::new(ecosystem, find_interpreter(&needs, search)?);
        recipe.requirements = requirements;
        if let Some(bad) = recipe.requirements.iter().find(|it| !is_requirement(it)) {
            return Err(RecipeError::Requirement { requirement: bad.clone() });
        }
        if ecosystem == Ecosystem::Node {
            let package = package_json(&recipe.requirements);
            recipe.files.insert(PACKAGE.to_owned(), package);
        }
        recipe.sort();
        Ok(recipe)
    }

    /// Returns the key of the environment.
    pub fn key(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        hex(&Sha256::digest(text)[..16])
    }

    fn new(ecosystem: Ecosystem, interpreter: InstalledInterpreter) -> Self {
        Self {
            ecosystem,
            requirements: Vec::new(),
            guessed: Vec::new(),
            files: BTreeMap::new(),
            interpreter: interpreter.program,
            platform: format!("{}-{}", consts::OS, consts::ARCH),
            reads: interpreter.reads,
            left_out: Vec::new(),
        }
    }

    fn add_package(&mut self, package: &PackageNeed) -> Result<(), RecipeError> {
        let PackageNeed { requirement, source, .. } = package;
        let reason = match source {
            PackageSource::Registry if is_requirement(requirement) => {
                match package.is_guessed {
                    true => self.guessed.push(requirement.clone()),
                    false => self.requirements.push(requirement.clone()),
                }
                return Ok(());
            }
            PackageSource::Registry => {
                return Err(RecipeError::Requirement { requirement: requirement.clone() });
            }
            PackageSource::Url => "it comes from a URL or repository, not from a package registry",
            PackageSource::Path => "it is a file or folder, not a package in a registry",
        };
        self.left_out.push(format!("{requirement}: {reason}"));
        Ok(())
    }

    /// Adds the files that the installer reads besides the requirements.
    fn add_files(&mut self, needs: &EnvironmentNeeds, files: &[SkillFile]) {
        let lock = needs.lock_file.as_deref().filter(|_| self.left_out.is_empty());
        let lock = lock.and_then(|it| Some((file_name(it).to_owned(), file_text(files, it)?)));
        match (self.ecosystem, lock) {
            (Ecosystem::Node, Some((name, lock))) => {
                let whole = file_text(files, &needs.file).and_then(|it| reduce_package_json(&it));
                self.files.extend(whole.map(|it| (PACKAGE.to_owned(), it)));
                self.files.insert(name, lock);
            }
            (Ecosystem::Node, None) => {
                self.files.insert(PACKAGE.to_owned(), package_json(&self.requirements));
            }
            (Ecosystem::Python, Some((name, lock))) => {
                let name_of_file = file_name(&needs.file).to_owned();
                self.files.extend(file_text(files, &needs.file).map(|it| (name_of_file, it)));
                self.files.insert(name, lock);
            }
            (Ecosystem::Deno, Some((name, lock))) => {
                self.files.insert(name, lock);
            }
            (Ecosystem::Python | Ecosystem::Deno, None) => {}
        }
    }

    fn sort(&mut self) {
        for list in [&mut self.requirements, &mut self.guessed] {
            list.sort();
            list.dedup();
        }
    }

    /// Whether a lock file contains the packages that are only guessed.
    #[cfg(feature = "http")]
    pub(super) fn is_locked_with_guesses(&self, lock: &str) -> bool {
        let lock = normalize(lock);
        !self.guessed.is_empty()
            && self.guessed.iter().all(|requirement: &String| {
                let end = requirement.find(|c: char| "=<>!~;[ @".contains(c) && c != '@');
                let name = normalize(&requirement[..end.unwrap_or(requirement.len())]);
                lock.contains(&format!("{name}=="))
                    || lock.contains(&format!("node-modules/{name}\""))
                    || lock.contains(&format!("{name}@"))
            })
    }

    /// Returns the requirements to install, with the guesses or without.
    pub(super) fn to_install(&self, with_guessed: bool) -> Vec<String> {
        let guessed = self.guessed.iter().filter(|_| with_guessed);
        self.requirements.iter().chain(guessed).cloned().collect()
    }

    /// Returns `package.json` for the installer.
    pub(super) fn package_json(&self, with_guessed: bool) -> String {
        match self.files.get(PACKAGE).filter(|_| self.guessed.is_empty()) {
            Some(text) => text.clone(),
            None => package_json(&self.to_install(with_guessed)),
        }
    }

    /// Returns the lock file of this name.
    pub(super) fn lock_file(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(String::as_str)
    }
}

pub(super) const PACKAGE: &str = "package.json";

/// Whether a package is installed: those of extras and groups are not, except peer and optional
/// ones of npm.
fn is_needed(needs: &EnvironmentNeeds, package: &PackageNeed) -> bool {
    let is_npm_optional = needs.ecosystem == Ecosystem::Node
        && matches!(package.group.as_deref(), Some("peer" | "optional"));
    match package.group {
        None => !package.is_optional,
        Some(_) => is_npm_optional,
    }
}

/// Whether the text is nothing but a package name with a version to an installer.
fn is_requirement(text: &str) -> bool {
    let first = text.chars().next();
    first.is_some_and(|it| it.is_ascii_alphanumeric() || it == '@')
        && !text.chars().any(char::is_control)
        && text.len() <= 16 * 1024
        && !text.contains("://")
        // Other options of pip build packages, or download them from elsewhere.
        && text.split_whitespace().skip(1).all(|it| !it.starts_with('-') || it.starts_with("--hash="))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn file_text(files: &[SkillFile], path: &str) -> Option<String> {
    let file = files.iter().find(|it| it.path == path)?;
    String::from_utf8(file.bytes.clone()).ok()
}

/// Returns a text in which names of packages are comparable, however they are written.
#[cfg(feature = "http")]
fn normalize(text: &str) -> String {
    text.to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Returns the interpreter to install packages for: the base installation, even if a virtual
/// environment is used.
fn find_interpreter(
    needs: &EnvironmentNeeds,
    search: &InterpreterSearch,
) -> Result<InstalledInterpreter, RecipeError> {
    let names: &[&str] = match needs.ecosystem {
        Ecosystem::Python => &["python3", "python"],
        Ecosystem::Node => &["node", "nodejs", "bun"],
        Ecosystem::Deno => &["deno"],
    };
    let asked: Vec<&str> = needs.versions.iter().map(|it| &*it.requirement).collect();
    search.installation(names, &asked)?.ok_or_else(|| {
        let name = [&names[..1], &asked].concat().join(" ");
        RecipeError::NoInterpreter { name }
    })
}

/// Returns a `package.json` with these dependencies.
fn package_json(requirements: &[String]) -> String {
    let dependencies: Map<String, Value> = requirements
        .iter()
        .map(|it| {
            let at = it.rfind('@').filter(|at| *at > 0);
            let (name, range) = at.map_or((&**it, "*"), |at| (&it[..at], &it[at + 1..]));
            (name.to_owned(), range.into())
        })
        .collect();
    json!({ "name": "environment", "private": true, "dependencies": dependencies }).to_string()
}

/// Returns a `package.json` reduced to its dependencies, without any scripts.
fn reduce_package_json(text: &str) -> Option<String> {
    const KEPT: &[&str] = &[
        "name",
        "version",
        "dependencies",
        "devDependencies",
        "optionalDependencies",
        "peerDependencies",
        "peerDependenciesMeta",
        "overrides",
        "packageManager",
        "engines",
    ];
    let mut document: Map<String, Value> = serde_json::from_str(text).ok()?;
    document.retain(|name, _| KEPT.contains(&&**name));
    Some(Value::from(document).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(requirements: &[&str]) -> Result<Recipe, RecipeError> {
        let search =
            InterpreterSearch { path: vec!["/usr/bin".into()], ..InterpreterSearch::default() };
        let requirements = requirements.iter().map(|it| (*it).to_owned()).collect();
        Recipe::of_packages(Ecosystem::Node, requirements, None, &search)
    }

    #[test]
    fn a_requirement_is_never_an_option_or_an_address() {
        let bad = ["--index-url=x", "-r x", "", "a\n-r b", "git+https://x/y", "a @ https://x"];
        for bad in bad.into_iter().chain(["a --global-option=b", "a -C b", "a --no-binary=:all:"]) {
            assert!(recipe(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn nothing_of_a_package_json_runs() {
        let text =
            r#"{"scripts": {"postinstall": "x"}, "dependencies": {"a": "1"}, "workspaces": ["b"]}"#;
        assert_eq!(reduce_package_json(text).as_deref(), Some(r#"{"dependencies":{"a":"1"}}"#));
    }

    #[test]
    fn scopes_and_versions_are_told_apart() {
        let requirements = ["@scope/a@^1", "@scope/b", "c@2"].map(str::to_owned);
        let expected = r#"{"name":"environment","private":true,"dependencies":{"@scope/a":"^1","@scope/b":"*","c":"2"}}"#;
        assert_eq!(package_json(&requirements), expected);
    }
}
