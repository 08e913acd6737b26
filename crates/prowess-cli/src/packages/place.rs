//! Where the manifest and the lock file of a command are.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use prowess_packages::{LOCK_FILE, Lock, MANIFEST_FILE, PackageManifest};
use prowess_runtime::sys::{MetadataExt as _, user_id};

use crate::{
    arguments::Global,
    cli_error::CliError,
    context, host,
    surroundings::{absolute, short_path},
};

/// A project, or the user's own settings, with the skills that are asked for there.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The folder of the project, or of the user's own settings.
    pub(crate) root: PathBuf,
    /// The `prowess.toml`, whether it exists or not.
    pub(crate) manifest: PathBuf,
    /// The `prowess.lock`, whether it exists or not.
    pub(crate) lock: PathBuf,
    /// Whether it is for all projects of the user.
    pub(crate) is_global: bool,
    /// The working directory, from which paths are shown.
    here: PathBuf,
}

impl Place {
    /// Finds the place of a command: the user's own, the nearest folder whose `prowess.toml` asks for skills, the
    /// repository, or the working directory.
    pub(crate) fn find(is_global: bool, global: &Global) -> Result<Self> {
        let here = absolute(global.cwd.as_deref().unwrap_or(Path::new(".")))?;
        if !here.is_dir() {
            return Err(CliError::new(format!("there is no folder `{}`", here.display())).into());
        }
        if let Some(file) = &global.config {
            let manifest = absolute(&here.join(file))?;
            let root = manifest.parent().unwrap_or(&here).to_owned();
            return Ok(Self { lock: root.join(LOCK_FILE), root, manifest, is_global, here });
        }
        let root = if is_global {
            let user = host::user_places().user.filter(|_| context::home().is_some());
            user.ok_or_else(|| {
                CliError::new("there is no home directory to install skills in").hint("set `HOME`")
            })?
        } else {
            let own = host::user_places().user;
            let mut above = here.ancestors().filter(|it| own.as_deref() != Some(*it));
            let asking = above.find(|it| {
                let (lock, manifest) = (it.join(LOCK_FILE), it.join(MANIFEST_FILE));
                lock.is_file() && is_trusted(&lock)
                    || asks_for_skills(&manifest) && is_trusted(&manifest)
            });
            let is_repository =
                |it: &&Path| it.join(".git").exists() && is_trusted(&it.join(".git"));
            let repository = || here.ancestors().find(is_repository);
            asking.or_else(repository).unwrap_or(&here).to_owned()
        };
        let (manifest, lock) = (root.join(MANIFEST_FILE), root.join(LOCK_FILE));
        Ok(Self { root, manifest, lock, is_global, here })
    }

    /// Reads the manifest; an empty one if there is none.
    pub(crate) fn read_manifest(&self) -> Result<PackageManifest> {
        let path = self.short(&self.manifest);
        self.check_link(&self.manifest)?;
        match read(&self.manifest)? {
            None => Ok(PackageManifest::new()),
            Some(text) => PackageManifest::parse(&text).map_err(|error| {
                let hint = error.hint();
                with_hint(CliError::new(format!("`{path}`: {error}")), hint).into()
            }),
        }
    }

    /// Reads the lock file; an empty one if there is none.
    pub(crate) fn read_lock(&self) -> Result<Lock> {
        let path = self.short(&self.lock);
        self.check_link(&self.lock)?;
        match read(&self.lock)? {
            None => Ok(Lock::default()),
            Some(text) => text.parse().map_err(|error: prowess_packages::LockError| {
                let hint = error.hint();
                with_hint(CliError::new(format!("`{path}`: {error}")), hint).into()
            }),
        }
    }

    /// Refuses a file of a project that is a link to somewhere else: a change would be written there.
    fn check_link(&self, path: &Path) -> Result<()> {
        let is_link = path.symlink_metadata().is_ok_and(|it| it.is_symlink());
        let is_inside = || {
            let (root, target) = (prowess::real_path(&self.root), prowess::real_path(path));
            root.is_ok_and(|root| target.is_ok_and(|it| it.starts_with(root)))
        };
        if !is_link || self.is_global || is_inside() {
            return Ok(());
        }
        let message = format!("`{}` is a link that leads out of the project", self.short(path));
        Err(CliError::new(message).hint("replace the link with a file").into())
    }

    /// Shortens a path for people.
    pub(crate) fn short(&self, path: &Path) -> String {
        short_path(path, &self.here, context::home().as_deref())
    }

    /// Returns the flag that names this place in another command.
    pub(crate) fn flag(&self) -> &'static str {
        if self.is_global { " --global" } else { "" }
    }
}

fn with_hint(error: CliError, hint: Option<String>) -> CliError {
    hint.into_iter().fold(error, CliError::hint)
}

/// Returns whether a settings file has `[skills]`. One that cannot be read is reported when it is used.
fn asks_for_skills(manifest: &Path) -> bool {
    let Ok(Some(text)) = read(manifest) else { return false };
    text.lines().any(|it| {
        let line = it.trim_start();
        line.starts_with("[skills]") || line.starts_with("[skills.") || line.starts_with("skills.")
    })
}

/// Returns whether something belongs to the user or to the system, or is in a folder in which not everyone can write:
/// anybody can put it into `/tmp`.
fn is_trusted(path: &Path) -> bool {
    let is_own = path.symlink_metadata().is_ok_and(|it| [user_id(), 0].contains(&it.uid()));
    is_own || path.parent().is_some_and(|it| it.metadata().is_ok_and(|it| it.mode() & 0o002 == 0))
}

fn read(path: &Path) -> Result<Option<String>> {
    /// The largest file, in bytes.
    const LARGEST: u64 = 64 << 20;
    match fs::metadata(path) {
        Ok(it) if it.len() > LARGEST || !it.is_file() => {
            let message = format!("`{}` is no file that can be read", path.display());
            return Err(CliError::new(message).into());
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    let text = fs::read_to_string(path);
    text.map(Some).with_context(|| format!("cannot read `{}`", path.display()))
}
