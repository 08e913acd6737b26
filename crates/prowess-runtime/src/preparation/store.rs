//! The store of prepared environments.
//!
//! Each is a folder named after its recipe: `tree` with the packages, `artifacts` with the
//! downloads, `lock`, and `environment.json`. It is moved into place by a single rename, so it is
//! either complete or absent.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use prowess::Skill;
use prowess_sandbox::{Root, Work, remove_folder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    installer::PackageManager,
    recipe::{Recipe, RecipeError},
};
use crate::sys::{DirBuilderExt as _, NO_WAIT, OpenOptionsExt as _, symlink};
use crate::{
    approval_store::ApprovalStore,
    audit_log::AuditLog,
    digest::digest,
    environment::{Ecosystem, InterpreterSearch, PackageDeclaration, detect_in},
    script::{Script, ScriptError, skill_files},
    state_directory::is_own,
    timestamp::timestamp,
};

/// The store of prepared environments, and of their approvals. Creating this touches no files.
#[derive(Debug, Clone)]
pub struct EnvironmentStore {
    root: PathBuf,
    approvals: Arc<ApprovalStore>,
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "only what installs packages logs it")
    )]
    audit: Arc<AuditLog>,
}

/// A prepared environment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedEnvironment {
    /// The folder with the packages.
    pub tree: PathBuf,
    /// Paths that the interpreter has to read, besides the system's.
    pub reads: Vec<PathBuf>,
    /// Its record.
    pub record: EnvironmentRecord,
}

/// The record of a prepared environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EnvironmentRecord {
    /// Its key.
    pub key: String,
    /// The ecosystem of its packages.
    pub ecosystem: Ecosystem,
    /// The package manager that installed them.
    pub manager: PackageManager,
    /// The interpreter that they are for.
    pub interpreter: PathBuf,
    /// The requested requirements.
    pub requirements: Vec<String>,
    /// The installed packages.
    pub packages: Vec<LockedPackage>,
    /// Requirements that were only guessed from imports, and not installed.
    pub not_installed: Vec<String>,
    /// The digest of the lock file.
    pub lock: String,
    /// Whether packages could run scripts of their own during the installation.
    pub install_scripts: bool,
    /// The skills and servers that it was prepared for, each with its folder.
    pub used_by: Vec<(String, Option<PathBuf>)>,
    /// Total size of all files in bytes.
    pub size: u64,
    /// The time of the preparation.
    pub when: String,
}

/// A package with an exact version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockedPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A prepared environment cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// It differs from the approved one.
    #[error("the environment `{key}` is not the one that was approved: {why}")]
    Changed {
        /// Its key.
        key: String,
        /// The difference.
        why: String,
    },
    /// It cannot be read.
    #[error("the environment `{key}` cannot be read")]
    Io {
        /// Its key.
        key: String,
        /// The error.
        source: io::Error,
    },
}

/// The environments that a script runs with.
#[derive(Debug, Default)]
pub struct ScriptEnvironments {
    /// Its own.
    pub own: Option<PreparedEnvironment>,
    /// Those of other scripts of the skill that it may start.
    pub others: Vec<PreparedEnvironment>,
    /// The folder within the skill that its own environment belongs to.
    pub folder: String,
}

/// The recipes of a skill's environments.
#[derive(Debug)]
#[non_exhaustive]
pub struct SkillRecipes {
    /// Each with the index of the environment among the needs of the skill.
    pub recipes: Vec<(usize, Recipe)>,
    /// Environments without an interpreter, or with an invalid requirement.
    pub errors: Vec<RecipeError>,
}

/// The maximum size of a `package.json` in bytes.
const MAX_DOCUMENT: u64 = 4 * 1024 * 1024;
pub(super) const TREE: &str = "tree";
pub(super) const ARTIFACTS: &str = "artifacts";
pub(super) const LOCK: &str = "lock";
pub(super) const RECORD: &str = "environment.json";
/// The maximum size of a record, and of a lock file.
const RECORD_SIZE: u64 = 4 * 1024 * 1024;
const LOCK_SIZE: u64 = 32 * 1024 * 1024;

impl EnvironmentStore {
    /// Creates a store in a directory. Only approved environments are used.
    pub fn new(
        root: impl Into<PathBuf>,
        approvals: Arc<ApprovalStore>,
        audit: Arc<AuditLog>,
    ) -> Self {
        Self { root: root.into(), approvals, audit }
    }

    /// Returns their directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the first of these directories, with links resolved, that contains the store or is
    /// inside it: write access to it would allow changing the packages that others run.
    pub fn reached_by<'p>(&self, writes: &'p [PathBuf]) -> Option<&'p PathBuf> {
        let root = resolve(&self.root);
        writes.iter().find(|it| {
            let real = resolve(it);
            root.starts_with(&real) || real.starts_with(&root)
        })
    }

    /// Finds the environment of a recipe, if it is prepared, and marks it as used.
    pub fn find(&self, recipe: &Recipe) -> Result<Option<PreparedEnvironment>, EnvironmentError> {
        let key = recipe.key();
        let Some(found) = self.get(&key)? else { return Ok(None) };
        // If this fails, it only appears less recently used.
        let _ = touch(&self.root.join(&key).join(RECORD));
        Ok(Some(PreparedEnvironment { reads: recipe.reads.clone(), ..found }))
    }

    /// Returns the environment with a key, if it is the approved one.
    fn get(&self, key: &str) -> Result<Option<PreparedEnvironment>, EnvironmentError> {
        let folder = self.root.join(key);
        let io = |source| EnvironmentError::Io { key: key.to_owned(), source };
        let changed =
            |why: &str| EnvironmentError::Changed { key: key.to_owned(), why: why.to_owned() };
        let metadata = match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata.map_err(io)?,
        };
        if !metadata.is_dir() || !is_own(&metadata, 0o022) {
            return Err(changed("other users can write to it"));
        }
        let text = read_text(&folder.join(RECORD), RECORD_SIZE).map_err(io)?;
        let record: EnvironmentRecord = serde_json::from_str(&text)
            .map_err(|error| changed(&format!("its record is invalid: {error}")))?;
        let lock = read_text(&folder.join(LOCK), LOCK_SIZE).map_err(io)?;
        let Some((approved, _)) = self.approvals.environment(key) else {
            return Err(changed("it is not approved, or the approval was revoked"));
        };
        if approved != digest(&lock) || approved != record.lock {
            return Err(changed("its lock file has changed"));
        }
        if record.key != key {
            return Err(changed("its record belongs to another environment"));
        }
        Ok(Some(PreparedEnvironment { tree: folder.join(TREE), reads: Vec::new(), record }))
    }

    /// Returns the approved lock file of a recipe.
    pub(super) fn approved_lock(&self, key: &str) -> Option<String> {
        let (approved, saved) = self.approvals.environment(key)?;
        let lock = saved.or_else(|| read_text(&self.root.join(key).join(LOCK), LOCK_SIZE).ok())?;
        (digest(&lock) == approved).then_some(lock)
    }

    /// Records the approval of an environment with this lock file.
    #[cfg(feature = "http")]
    pub(super) fn approve(&self, name: &str, key: &str, lock: &str, by: &str) {
        self.approvals.approve_environment(name, key, lock, by, &self.audit);
    }

    /// Returns the prepared environments for a script.
    pub fn of_script(
        &self,
        script: &Script,
        search: &InterpreterSearch,
    ) -> Result<ScriptEnvironments, EnvironmentError> {
        let mut found = ScriptEnvironments::default();
        if self.is_empty() {
            return Ok(found);
        }
        let needs = script.needs();
        let own = needs.script(&script.path).and_then(|it| it.environment);
        for (at, environment) in needs.environments.iter().enumerate() {
            let is_own = own == Some(at);
            // A header applies to its own script only.
            if !is_own && environment.declared == PackageDeclaration::Header {
                continue;
            }
            let Ok(Some(recipe)) = Recipe::of(environment, &script.files, search) else { continue };
            let mut prepared = self.find(&recipe)?;
            if prepared.is_none()
                && is_own
                && let Some(part) = environment.of_script(&script.path)
                && let Ok(Some(recipe)) = Recipe::of(&part, &script.files, search)
            {
                prepared = self.find(&recipe)?;
            }
            let Some(prepared) = prepared else { continue };
            match is_own {
                true => {
                    found.own = Some(prepared);
                    found.folder = match environment.declared {
                        PackageDeclaration::Imports => String::new(),
                        _ => environment.file.rsplit_once('/').map_or("", |it| it.0).to_owned(),
                    };
                }
                false => found.others.push(prepared),
            }
        }
        Ok(found)
    }

    /// Returns all prepared environments, including those no longer approved; the most recently
    /// used first.
    pub fn all(&self) -> Vec<(EnvironmentRecord, SystemTime)> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries
            .filter_map(|it| {
                let path = it.path().join(RECORD);
                let text = read_text(&path, RECORD_SIZE).ok()?;
                let record: EnvironmentRecord = serde_json::from_str(&text).ok()?;
                // Only the folder named after the key may be removed later.
                (it.file_name() == *record.key).then_some(())?;
                Some((record, fs::metadata(&path).and_then(|it| it.modified()).ok()?))
            })
            .collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.1));
        all
    }

    /// Removes an environment, once nobody else is preparing it.
    pub fn remove(&self, key: &str) -> io::Result<()> {
        let _lock = self.lock(key)?;
        self.discard(key)
    }

    /// Removes leftovers of killed preparations, and all environments that `is_meant` selects;
    /// returns those.
    pub fn clean(
        &self,
        is_meant: impl Fn(&EnvironmentRecord, SystemTime) -> bool,
    ) -> io::Result<Vec<EnvironmentRecord>> {
        if !self.root.is_dir() {
            return Ok(Vec::new());
        }
        Work::remove_abandoned(&self.root);
        let mut removed = Vec::new();
        for (record, used) in self.all() {
            if is_meant(&record, used) {
                self.remove(&record.key)?;
                removed.push(record);
            }
        }
        Ok(removed)
    }

    /// Removes the least recently used environments, except `but`, until the total size is at most
    /// `most` bytes.
    pub(super) fn make_room(&self, most: u64, but: &str) -> io::Result<Vec<EnvironmentRecord>> {
        let mut all = self.all();
        let mut total: u64 = all.iter().map(|it| it.0.size).sum();
        let mut removed = Vec::new();
        while total > most
            && let Some((record, _)) = all.pop()
        {
            if record.key != but {
                self.remove(&record.key)?;
                total -= record.size;
                removed.push(record);
            }
        }
        Ok(removed)
    }

    /// Prevents others from preparing or removing an environment as long as the file is open.
    pub(super) fn lock(&self, key: &str) -> io::Result<File> {
        let folder = self.root.join(LOCKS);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_WAIT);
        let lock = options.open(folder.join(key))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Rewrites the record of an environment atomically.
    pub(super) fn rewrite(&self, record: &EnvironmentRecord) -> io::Result<()> {
        let root = Root::open(&self.root.join(&record.key)).map_err(io::Error::other)?;
        let text = serde_json::to_vec_pretty(record).map_err(io::Error::other)?;
        root.write(Path::new(RECORD), &text).map_err(io::Error::other)
    }

    /// Removes an environment; the caller holds its lock.
    pub(super) fn discard(&self, key: &str) -> io::Result<()> {
        let folder = self.root.join(key);
        if !folder.exists() {
            return Ok(());
        }
        // Renamed first, so that a partly removed environment is never found.
        let aside = self.root.join(format!("{key}.removed"));
        remove_folder(&aside)?;
        fs::rename(&folder, &aside)?;
        remove_folder(&aside)
    }

    /// Whether the store contains no environments.
    pub fn is_empty(&self) -> bool {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut entries = entries.map(|it| it.file_name());
        !entries.any(|it| !it.as_encoded_bytes().starts_with(b"."))
    }
}

/// The folder of the locks of environments.
const LOCKS: &str = ".locks";

impl ScriptEnvironments {
    /// Returns all of them, its own first.
    pub fn all(&self) -> impl Iterator<Item = &PreparedEnvironment> {
        self.own.iter().chain(&self.others)
    }

    /// Returns the command that runs the script in its own environment.
    pub(crate) fn command(&self, command: &[OsString]) -> Vec<OsString> {
        let Some(own) = &self.own else { return command.to_vec() };
        let (name, rest) = match command {
            [program, rest @ ..] => (file_name(program), rest),
            [] => return Vec::new(),
        };
        match own.record.ecosystem {
            Ecosystem::Python => {
                let python = own.bin().join("python").into_os_string();
                // The environment already does the work of `uv run` and `pipx run`.
                let rest = if name.starts_with("python") { rest } else { &[] };
                [&[python], rest].concat()
            }
            Ecosystem::Node => {
                let is_npx = matches!(name, "npx" | "bunx");
                let words = if is_npx { rest } else { command };
                let words = words.iter().skip_while(|it| is_npx && file_name(it).starts_with('-'));
                let mut words: Vec<OsString> = words.cloned().collect();
                if let Some(first) = words.first_mut()
                    && let Some(program) = own.program(file_name(first))
                {
                    *first = program.into();
                }
                words
            }
            Ecosystem::Deno => {
                let at =
                    command.iter().position(|it| it == "run").map_or(command.len(), |it| it + 1);
                let (before, after) = command.split_at(at);
                [before, &["--cached-only".into()], after].concat()
            }
        }
    }

    /// Returns the variable that the script needs in addition.
    pub(crate) fn variables(&self) -> Option<(String, String)> {
        let own = self.own.as_ref().filter(|it| it.record.ecosystem == Ecosystem::Deno)?;
        let directory = own.tree.join("deno").to_string_lossy().into_owned();
        Some(("DENO_DIR".to_owned(), directory))
    }

    /// Links the packages of its own npm environment into a copy of the skill.
    pub(crate) fn link_modules(&self, skill: &Path) -> io::Result<()> {
        let Some(own) = self.own.as_ref().filter(|it| it.record.ecosystem == Ecosystem::Node)
        else {
            return Ok(());
        };
        let link = skill.join(&self.folder).join("node_modules");
        match symlink(own.tree.join("node_modules"), link) {
            // The skill brings packages of its own.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    }
}

fn file_name(program: &OsStr) -> &str {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    name.unwrap_or_default()
}

impl SkillRecipes {
    /// Reads the recipes of a skill's environments from its files as they are now.
    pub fn of(skill: &Skill, search: &InterpreterSearch) -> Result<Self, ScriptError> {
        let files = skill_files(skill)?;
        let needs = detect_in(&skill.manifest, &files);
        let mut all = Self { recipes: Vec::new(), errors: Vec::new() };
        for (at, environment) in needs.environments.iter().enumerate() {
            match Recipe::of(environment, &files, search) {
                Ok(Some(recipe)) => all.recipes.push((at, recipe)),
                Ok(None) => {}
                Err(error) => all.errors.push(error),
            }
        }
        Ok(all)
    }
}

impl PreparedEnvironment {
    /// Returns the directory of the programs of its packages.
    pub fn bin(&self) -> PathBuf {
        match self.record.ecosystem {
            Ecosystem::Python => self.tree.join("bin"),
            Ecosystem::Node => self.tree.join("node_modules/.bin"),
            Ecosystem::Deno => self.tree.clone(),
        }
    }

    /// Returns the path of a program of its packages.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let is_name = !name.is_empty() && !name.contains('/') && name != "..";
        Some(self.bin().join(name)).filter(|it| is_name && it.is_file())
    }

    /// Returns the program of an npm package: its only one, or that of its name. Fails with the
    /// reason.
    pub fn program_of_package(&self, package: &str) -> Result<String, String> {
        let at = package.rfind('@').filter(|it| *it > 0);
        let name = at.map_or(package, |it| &package[..it]);
        let unscoped = name.rsplit('/').next().unwrap_or(name);
        let document = self.tree.join("node_modules").join(name).join("package.json");
        let document = read_text(&document, MAX_DOCUMENT).ok();
        let document = document.and_then(|it| serde_json::from_str(&it).ok());
        let programs = match document.unwrap_or(Value::Null).get_mut("bin").map(Value::take) {
            Some(Value::String(_)) => vec![unscoped.to_owned()],
            Some(Value::Object(programs)) => programs.into_iter().map(|it| it.0).collect(),
            _ => Vec::new(),
        };
        match &programs[..] {
            [only] => Ok(only.clone()),
            all if all.iter().any(|it| it == unscoped) => Ok(unscoped.to_owned()),
            [] => Err(format!("`{package}` has no program")),
            all => {
                Err(format!("`{package}` has several programs: name one of `{}`", all.join("`, `")))
            }
        }
    }
}

impl EnvironmentRecord {
    /// Whether all that it was prepared for are gone, or it was not used for longer than `age`.
    pub fn is_unused(&self, used: SystemTime, age: Duration) -> bool {
        let is_old = used.elapsed().is_ok_and(|it| it > age);
        is_old
            || (!self.used_by.is_empty()
                && self.used_by.iter().all(|it: &(String, Option<PathBuf>)| {
                    it.1.as_ref().is_some_and(|it| !it.exists())
                }))
    }

    pub(super) fn new(recipe: &Recipe, manager: PackageManager) -> Self {
        Self {
            key: recipe.key(),
            ecosystem: recipe.ecosystem,
            manager,
            interpreter: recipe.interpreter.clone(),
            requirements: Vec::new(),
            packages: Vec::new(),
            not_installed: Vec::new(),
            lock: String::new(),
            install_scripts: false,
            used_by: Vec::new(),
            size: 0,
            when: timestamp(),
        }
    }
}

fn resolve(path: &Path) -> PathBuf {
    prowess::real_path(path).unwrap_or_else(|_| path.to_owned())
}

/// Reads a regular file of at most `most` bytes.
pub(super) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    use std::io::Read as _;
    let file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

fn touch(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().append(true).custom_flags(NO_WAIT).open(path)?;
    file.set_modified(SystemTime::now())
}
