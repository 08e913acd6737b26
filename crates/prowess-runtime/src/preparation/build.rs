//! Creates an environment: asks, installs in a sandbox, locks, and moves it into place.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use prowess_http::{HostsError, Proxies};
use prowess_sandbox::{
    Chunk, Job, Network, RunLimits, Sandbox, SandboxError, Work, certificate_file, folder_size,
};
use tokio::{sync::mpsc::UnboundedSender, task::spawn_blocking};

use super::{
    installer::{Installer, Output},
    limits::PrepareLimits,
    recipe::Recipe,
    registries::{Registries, host},
    store::{
        ARTIFACTS, EnvironmentRecord, EnvironmentStore, LOCK, PreparedEnvironment, RECORD, TREE,
    },
};
use crate::sys::{DirBuilderExt as _, set_mode, symlink};
use crate::{
    approver::{Approver, ApproverReply, Coverage, Question},
    digest::digest,
    environment::{Ecosystem, InterpreterSearch, MissingKind, Present},
    outcome::{Outcome, OutcomeStatus},
    proxy::{HostRemedy, Proxy, ProxyLimits},
    script::Script,
};

/// Creates environments.
#[derive(Debug)]
pub struct Preparer {
    /// The store that they are added to.
    pub store: EnvironmentStore,
    /// The sandbox of installers, which is used even if scripts run without one.
    pub sandbox: Sandbox,
    /// The search for interpreters and package managers.
    pub search: InterpreterSearch,
    /// The registries that packages are downloaded from.
    pub registries: Registries,
    /// The limits on environments.
    pub limits: PrepareLimits,
    /// The proxies for connections to registries.
    pub proxies: Proxies,
    /// The user's settings file, which hints name.
    pub settings_file: Option<PathBuf>,
}

/// Options for the preparation of an environment.
#[derive(Debug, Default)]
pub struct PrepareOptions {
    /// The skill or server that it is for.
    pub name: String,
    /// Its folder.
    pub folder: Option<PathBuf>,
    /// Whether to install packages whose names are only guessed from imports.
    pub with_guessed: bool,
    /// Whether packages may run scripts of their own while they are installed.
    pub install_scripts: bool,
    /// Whether to download nothing: an environment is recreated from its saved downloads.
    pub offline: bool,
    /// Whether to choose versions anew, instead of those that were approved before.
    pub update: bool,
    /// Receives the installer's output as it is printed.
    pub chunks: Option<UnboundedSender<Chunk>>,
}

/// An environment was not created. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The approval was refused.
    #[error("the packages were not installed, because that was not approved")]
    Refused {
        /// Whether a user answered no, as opposed to nobody being asked.
        is_answered: bool,
    },
    /// No suitable package manager is installed.
    #[error("no package manager for {ecosystem} is installed")]
    NoInstaller {
        /// The ecosystem of the packages.
        ecosystem: &'static str,
        /// The next step.
        hint: &'static str,
    },
    /// The installer failed.
    #[error("{manager} failed to install the packages: {why}")]
    Installer {
        /// Its name.
        manager: &'static str,
        /// The last error it printed, or the limit that it exceeded.
        why: String,
        /// Its output.
        output: String,
        /// The refused connections, each with the reason.
        refused: Vec<String>,
    },
    /// The installed packages differ from the approved ones.
    #[error("the installed packages differ from the lock file: {why}")]
    Lock {
        /// The difference.
        why: String,
    },
    /// Nothing was downloaded before, and offline mode was requested.
    #[error("the packages were never downloaded, or have been removed since")]
    Offline,
    /// The address of a registry is invalid.
    #[error("invalid address of a package registry: {0}")]
    Registry(#[from] HostsError),
    /// The sandbox could not be started.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The environment could not be written.
    #[error("cannot write the environment")]
    Io(#[from] io::Error),
}

/// The memory, processes and open files available to an installer.
const MEMORY: u64 = 4 << 30;
const PROCESSES: u64 = 512;
const DESCRIPTORS: u64 = 4096;
/// The largest file that is searched for the path of its tree; programs that contain it are short.
const PROGRAM: u64 = 1024 * 1024;
/// The maximum size of an installer's captured output, in bytes.
const OUTPUT: u64 = 256 * 1024;

impl Preparer {
    /// Creates an environment, after approval; an existing one is returned as it is, unless
    /// versions are to be chosen anew. Waits for another process that prepares the same one.
    pub async fn prepare(
        &self,
        recipe: &Recipe,
        options: PrepareOptions,
        approver: &dyn Approver,
    ) -> Result<PreparedEnvironment, PrepareError> {
        let key = recipe.key();
        let mut options = options;
        // A lock file records what was approved, guesses included; one without them does not
        // suffice if they are wanted.
        match self.has_agreed_to_guesses(recipe) {
            Some(true) => options.with_guessed = true,
            Some(false) => options.update |= options.with_guessed && !recipe.guessed.is_empty(),
            None => {}
        }
        if let Some(found) = self.find_usable(recipe, &options) {
            return Ok(self.add_user(found, &options)?);
        }
        let installer =
            Installer::choose(recipe, &self.search).ok_or_else(|| no_installer(recipe))?;
        let by = self.ask(recipe, &installer, &options, approver).await?;
        DirBuilder::new().recursive(true).mode(0o700).create(self.store.root())?;
        let (store, locked) = (self.store.clone(), key.clone());
        let _lock =
            spawn_blocking(move || store.lock(&locked)).await.map_err(io::Error::other)??;
        // Another process may have been faster.
        if let Some(found) = self.find_usable(recipe, &options) {
            return Ok(self.add_user(found, &options)?);
        }
        Work::remove_abandoned(self.store.root());
        let approved = self.store.approved_lock(&key).filter(|_| !options.update);
        let built = self.build(recipe, &installer, &options, approved.as_deref()).await?;
        let record = self.publish(recipe, &installer, &options, built, &by)?;
        self.store.make_room(self.limits.total, &key)?;
        let tree = self.store.root().join(&key).join(TREE);
        Ok(PreparedEnvironment { tree, reads: recipe.reads.clone(), record })
    }

    /// Whether the guesses of a recipe were approved with the rest; `None` if it was never
    /// approved.
    pub fn has_agreed_to_guesses(&self, recipe: &Recipe) -> Option<bool> {
        let lock = self.store.approved_lock(&recipe.key())?;
        Some(recipe.is_locked_with_guesses(&lock))
    }

    /// Returns the existing environment of a recipe, if it has what the options ask for.
    fn find_usable(
        &self,
        recipe: &Recipe,
        options: &PrepareOptions,
    ) -> Option<PreparedEnvironment> {
        if options.update || options.offline {
            return None;
        }
        self.store.find(recipe).ok()?.filter(|it: &PreparedEnvironment| {
            (it.record.not_installed.is_empty() || !options.with_guessed)
                && (it.record.install_scripts || !options.install_scripts)
        })
    }

    /// Records another user of an environment.
    fn add_user(
        &self,
        mut found: PreparedEnvironment,
        options: &PrepareOptions,
    ) -> io::Result<PreparedEnvironment> {
        let user = (options.name.clone(), options.folder.clone());
        if !found.record.used_by.contains(&user) {
            found.record.used_by.push(user);
            self.store.rewrite(&found.record)?;
        }
        Ok(found)
    }

    /// Returns the recipe of a script's environment, if packages that it needs are missing and can
    /// be installed; `folder` is that of the skill.
    pub fn missing_recipe(&self, script: &Script, folder: Option<&Path>) -> Option<Recipe> {
        let needs = script.needs();
        let own = needs.script(&script.path)?;
        let environment = needs.environment(own)?;
        let mut recipe = Recipe::of(environment, &script.files, &self.search).ok()??;
        if self.is_prepared(&recipe) {
            return None;
        }
        if let Some(part) = environment.of_script(&script.path) {
            recipe = Recipe::of(&part, &script.files, &self.search).ok()??;
        }
        if self.is_prepared(&recipe) || recipe.requirements.is_empty() {
            return None;
        }
        let missing = Present::look(&self.search, folder).missing(needs, &|_| true);
        let missing: Vec<_> = missing
            .iter()
            .filter(|it| it.kind == MissingKind::Package)
            .map(|it| &it.name)
            .collect();
        let mut required = needs.packages(own).filter(|it| !it.is_optional);
        required.any(|it| missing.contains(&&it.name)).then_some(recipe)
    }

    fn is_prepared(&self, recipe: &Recipe) -> bool {
        self.store.find(recipe).is_ok_and(|it| it.is_some())
    }

    /// Asks for approval to install packages. Returns who approved.
    async fn ask(
        &self,
        recipe: &Recipe,
        installer: &Installer,
        options: &PrepareOptions,
        approver: &dyn Approver,
    ) -> Result<String, PrepareError> {
        let key = recipe.key();
        let is_same = !options.update && !options.install_scripts;
        if is_same && self.store.approved_lock(&key).is_some() {
            return Ok("approval".to_owned());
        }
        let installed = recipe.to_install(options.with_guessed);
        let mut content = installed.iter().map(|it| format!("{it}\n")).collect::<String>();
        if options.with_guessed && !recipe.guessed.is_empty() {
            let guessed = recipe.guessed.join(", ");
            content += &format!("only guessed from imports: {guessed}\n");
        }
        if let Some((name, _)) = installer.own_lock(recipe) {
            content += &format!("with the versions in {name}\n");
        }
        let from = self.registries.display_hosts(recipe.ecosystem);
        let reached = self.registries.allowed_hosts(recipe.ecosystem).join(", ");
        let packages = if installed.len() == 1 { "package" } else { "packages" };
        let count = installed.len();
        let name = &options.name;
        let scripts = match options.install_scripts {
            true => "packages may run scripts of their own in the sandbox",
            false => "packages run no scripts of their own",
        };
        let question = Question {
            what: format!("install {count} {packages} for `{name}` from {from}"),
            why: format!(
                "`{name}` needs the listed packages; their dependencies are installed as well"
            ),
            content: Some(content),
            reach: vec![
                format!("{} in a sandbox that can only connect to {reached}", installer.manager()),
                scripts.to_owned(),
            ],
            coverage: Coverage::Once,
            ..Question::default()
        };
        match approver.ask(&question).await {
            ApproverReply::No => {
                let is_answered = approver.who_answers(&question) == "person";
                Err(PrepareError::Refused { is_answered })
            }
            ApproverReply::Once | ApproverReply::Session | ApproverReply::Always => {
                Ok(approver.who_answers(&question).to_owned())
            }
        }
    }

    /// Installs the packages in a separate folder.
    async fn build(
        &self,
        recipe: &Recipe,
        installer: &Installer,
        options: &PrepareOptions,
        approved: Option<&str>,
    ) -> Result<UnplacedEnvironment, PrepareError> {
        let work = Work::within(self.store.root())?;
        let out = work.path().join("out");
        let (tree, artifacts) = (out.join(TREE), out.join(ARTIFACTS));
        for folder in [&out, &tree, &artifacts] {
            DirBuilder::new().mode(0o700).create(folder)?;
        }
        if options.offline {
            let saved = self.store.root().join(recipe.key()).join(ARTIFACTS);
            if !saved.is_dir() || approved.is_none() {
                return Err(PrepareError::Offline);
            }
            copy(&saved, &artifacts)?;
        }
        for (name, text) in installer.files(recipe, approved, options.with_guessed) {
            fs::write(tree.join(name), text)?;
        }
        let requirements = match approved {
            Some(lock) => lock.to_owned(),
            None => recipe.to_install(options.with_guessed).join("\n") + "\n",
        };
        let requirements = work.give("requirements.txt", requirements.as_bytes())?;
        for name in ["pyproject.toml", "uv.lock"] {
            if let Some(text) = recipe.lock_file(name) {
                work.give(&format!("project/{name}"), text.as_bytes())?;
            }
        }
        let script = work.give("install.sh", installer.script().as_bytes())?;
        let index = match recipe.ecosystem {
            Ecosystem::Python => &self.registries.python,
            _ => &self.registries.npm,
        };
        let flag = |is_set: bool| if is_set { "yes" } else { "" }.to_owned();
        let is_locked = approved.is_some() || installer.own_lock(recipe).is_some();
        let plain = host(index).filter(|_| index.starts_with("http://"));
        let no_scripts = if options.install_scripts { "" } else { "--ignore-scripts" };
        let env: BTreeMap<String, String> = [
            ("INTERPRETER", path_text(&recipe.interpreter)),
            ("PROGRAM", path_text(installer.program())),
            ("TREE", path_text(&tree)),
            ("ARTIFACTS", path_text(&artifacts)),
            ("LOCK", path_text(&out.join(LOCK))),
            ("PROJECT", path_text(&work.given_path("project"))),
            ("REQUIREMENTS", path_text(&requirements)),
            ("INDEX", index.clone()),
            ("PLAIN_HOST", plain.unwrap_or_default()),
            ("CERTIFICATES", certificate_file().unwrap_or_default().to_owned()),
            ("LOCKED", flag(is_locked)),
            ("OFFLINE", flag(options.offline)),
            ("INSTALL_SCRIPTS", flag(options.install_scripts)),
            ("NO_INSTALL_SCRIPTS", no_scripts.to_owned()),
            ("NO_COLOR", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let path = recipe.interpreter.parent().map(Path::to_owned);
        let job = Job {
            env,
            reads: recipe
                .reads
                .iter()
                .chain(&installer.reads)
                .cloned()
                .chain(system_files())
                .collect(),
            path: path.into_iter().collect(),
            network: self.network(recipe, options.offline)?,
            chunks: options.chunks.clone(),
            ..Job::new(vec!["sh".into(), script.into()], work, self.job_limits())
        };
        let (result, work) = self.sandbox.clone().confined().run_keeping(job).await?;
        let outcome = Outcome::from(result);
        if !outcome.is_ok() {
            return Err(installer_error(installer, &outcome));
        }
        Ok(UnplacedEnvironment { out: work.path().join("out"), work })
    }

    /// Locks the installed packages, and moves the environment into place.
    fn publish(
        &self,
        recipe: &Recipe,
        installer: &Installer,
        options: &PrepareOptions,
        built: UnplacedEnvironment,
        by: &str,
    ) -> Result<EnvironmentRecord, PrepareError> {
        let UnplacedEnvironment { out, work } = built;
        let key = recipe.key();
        let (tree, artifacts) = (out.join(TREE), out.join(ARTIFACTS));
        refuse_links(&out).map_err(|why| PrepareError::Lock { why })?;
        let output = Output { tree: &tree, artifacts: &artifacts, lock: &out.join(LOCK) };
        let lock = installer.lock(&output).map_err(|why| PrepareError::Lock { why })?;
        let installed = recipe.to_install(options.with_guessed);
        installer.check_names(&installed, &tree).map_err(|why| PrepareError::Lock { why })?;
        let approved = self.store.approved_lock(&key).filter(|_| !options.update);
        if approved.is_some_and(|it| digest(&it) != digest(&lock)) {
            let why = "packages or their hashes have changed since they were approved".to_owned();
            return Err(PrepareError::Lock { why });
        }
        let place = self.store.root().join(&key);
        relocate(&tree.join("bin"), &tree, &place.join(TREE))?;
        let mut used_by = vec![(options.name.clone(), options.folder.clone())];
        if let Ok(Some(old)) = self.store.find(recipe) {
            used_by.extend(old.record.used_by);
            used_by.sort();
            used_by.dedup();
        }
        let record = EnvironmentRecord {
            requirements: recipe.to_install(options.with_guessed),
            packages: installer.packages(&lock, &tree),
            not_installed: match options.with_guessed {
                true => Vec::new(),
                false => recipe.guessed.clone(),
            },
            lock: digest(&lock),
            install_scripts: options.install_scripts,
            used_by,
            size: folder_size(&out, self.limits.size),
            ..EnvironmentRecord::new(recipe, installer.manager())
        };
        write(&out, LOCK, lock.as_bytes())?;
        write(&out, RECORD, &serde_json::to_vec_pretty(&record).map_err(io::Error::other)?)?;
        set_mode(&out, 0o700)?;
        self.store.discard(&key)?;
        fs::rename(&out, &place)?;
        drop(work);
        self.store.approve(&options.name, &key, &lock, by);
        Ok(record)
    }

    fn network(&self, recipe: &Recipe, offline: bool) -> Result<Network, HostsError> {
        if offline {
            return Ok(Network::None);
        }
        let hosts = self.registries.hosts(recipe.ecosystem)?;
        let limits = ProxyLimits { bytes: self.limits.size, ..ProxyLimits::default() };
        let (key, file) = ("prepare.hosts".to_owned(), self.settings_file.clone());
        let remedy = HostRemedy::Setting { key, file, names_address: true };
        let proxy = Proxy::new(hosts).with_limits(limits).with_remedy(remedy);
        Ok(Network::Proxy(Arc::new(proxy.with_proxies(self.proxies.clone()))))
    }

    fn job_limits(&self) -> RunLimits {
        let PrepareLimits { timeout, size, .. } = self.limits;
        RunLimits {
            timeout,
            cpu: timeout,
            output: OUTPUT,
            memory: MEMORY,
            file: size,
            work: size,
            processes: PROCESSES,
            descriptors: DESCRIPTORS,
            ..RunLimits::default()
        }
    }
}

fn installer_error(installer: &Installer, outcome: &Outcome) -> PrepareError {
    let streams = [&outcome.stdout, &outcome.stderr];
    let output: String = streams.into_iter().flatten().map(|it| &*it.text).collect();
    let why = match (&outcome.status, &outcome.message) {
        (OutcomeStatus::Failed, _) => find_reason(&output).map(str::to_owned),
        (_, message) => message.clone(),
    };
    let why = why.or_else(|| outcome.message.clone()).unwrap_or_else(|| "it failed".to_owned());
    let refused = outcome.network.iter().filter_map(|it| it.refused.clone());
    let mut refused: Vec<String> = refused.collect();
    refused.sort();
    refused.dedup();
    PrepareError::Installer { manager: installer.manager().as_str(), why, output, refused }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the files that identify the operating system; pip sends this to registries.
fn system_files() -> impl Iterator<Item = PathBuf> {
    let files = ["/etc/debian_version", "/etc/lsb-release", "/etc/os-release"];
    files.into_iter().map(PathBuf::from).filter(|it| it.exists())
}

/// A new environment that is still in its working directory.
struct UnplacedEnvironment {
    out: PathBuf,
    work: Work,
}

/// Finds the line of the output with the reason for a failure.
fn find_reason(output: &str) -> Option<&str> {
    if output.contains("No space left on device") {
        return Some("there is no space left on the disk");
    }
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let error = lines.iter().find(|it| {
        let it = it.to_ascii_lowercase();
        ["error", "npm error", "×", " err_"].iter().any(|sign| it.starts_with(sign))
            || it.contains("error: ")
    });
    error.or(lines.last()).copied()
}

fn no_installer(recipe: &Recipe) -> PrepareError {
    let (ecosystem, hint) = match recipe.ecosystem {
        Ecosystem::Python => ("Python", "install `uv`, or Python with its module `venv`"),
        Ecosystem::Node => ("Node.js", "install `npm`, `pnpm` or `bun`"),
        Ecosystem::Deno => ("Deno", "install `deno`"),
    };
    PrepareError::NoInstaller { ecosystem, hint }
}

/// Refuses links in place of folders that are walked from outside of the sandbox: a package with
/// install scripts could have created them.
fn refuse_links(out: &Path) -> Result<(), String> {
    let tree = out.join(TREE);
    let own = [out.to_owned(), tree.clone(), out.join(ARTIFACTS)];
    let inside = ["bin", "node_modules", "node_modules/.bin"].map(|it| tree.join(it));
    match own
        .iter()
        .chain(&inside)
        .find(|it: &&PathBuf| fs::symlink_metadata(it).is_ok_and(|it| !it.is_dir()))
    {
        Some(link) => Err(format!("`{}` is not a folder", link.display())),
        None => Ok(()),
    }
}

/// Writes a file, replacing any existing one.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)?.write_all(bytes)
}

/// Rewrites paths in the programs of a tree to its final location.
fn relocate(programs: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
    for entry in fs::read_dir(programs).into_iter().flatten() {
        let entry = entry?;
        if !entry.file_type()?.is_file() || entry.metadata()?.len() > PROGRAM {
            continue;
        }
        let bytes = fs::read(entry.path())?;
        if let Ok(text) = String::from_utf8(bytes)
            && text.contains(&*from)
        {
            fs::write(entry.path(), text.replace(&*from, &to))?;
        }
    }
    Ok(())
}

/// Copies the files of a folder; links are not copied.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = folders.pop() {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                DirBuilder::new().mode(0o700).create(&target)?;
                folders.push((entry.path(), target));
            } else if kind.is_file() {
                fs::copy(entry.path(), target)?;
            } else if kind.is_symlink() {
                symlink(fs::read_link(entry.path())?, target)?;
            }
        }
    }
    Ok(())
}
