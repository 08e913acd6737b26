//! Where skills are installed: a project or the home, and the directories of clients in it.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use prowess::{CLIENTS, Spot, Surroundings, real_path};

use crate::lock::InstallTarget;

/// A project or a home that skills are installed in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InstallPlace {
    /// The folder of the project, where its manifest is, or the home.
    pub root: PathBuf,
    /// Whether it is a project; otherwise skills are for all projects of a user.
    pub in_project: bool,
    /// The state directory of the host. `packages` in it has the lock for parallel runs, unfinished
    /// changes and the history, and `trash/skills` what was removed.
    pub state: PathBuf,
    /// The home and the variables that relocate directories of clients.
    pub surroundings: Surroundings,
    /// How long to wait for other processes that install something.
    pub patience: Duration,
}

/// A folder of a skill, in a directory of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Location {
    /// The directory, without links on its path.
    pub(super) directory: PathBuf,
    /// The name of the folder in it.
    pub(super) name: String,
    /// The path as the lock has it.
    pub(super) shown: String,
}

/// Why a folder is not one that skills may be installed in.
#[derive(Debug)]
pub(super) enum LocationError {
    /// No client reads it.
    NoClientDirectory,
    /// A link leads out of the project, into the folder of a repository, or to nothing.
    LinkOutside(PathBuf),
    /// There is no directory, but something else.
    NotADirectory(PathBuf),
    /// It cannot be looked at.
    Io(PathBuf, io::Error),
}

impl InstallPlace {
    /// Describes a project.
    pub fn project(root: &Path, state: &Path, surroundings: &Surroundings) -> Self {
        Self {
            root: root.to_owned(),
            in_project: true,
            state: state.to_owned(),
            surroundings: surroundings.clone(),
            patience: Duration::from_secs(600),
        }
    }

    /// Describes the home of a user; `None` if the surroundings have none.
    pub fn user(state: &Path, surroundings: &Surroundings) -> Option<Self> {
        let root = surroundings.home.as_ref()?;
        Some(Self { in_project: false, ..Self::project(root, state, surroundings) })
    }

    /// Returns the path of a directory of a client, as the lock has it, and where it is; `None` for
    /// a directory of another scope or of the system.
    pub(super) fn directory(&self, spot: &Spot) -> Option<(String, PathBuf)> {
        if spot.is_in_project() != self.in_project || spot.path.starts_with('/') {
            return None;
        }
        if self.in_project {
            return Some((spot.path.to_owned(), self.root.join(spot.path)));
        }
        let path = self.surroundings.directories(spot).into_iter().next()?;
        let home = self.surroundings.home.as_deref();
        let shown = match home.and_then(|it| path.strip_prefix(it).ok()) {
            Some(rest) => format!("~/{}", slashed(rest)),
            None => slashed(&path),
        };
        Some((shown, path))
    }

    /// Returns every directory that a client reads here, by its path in the lock.
    pub fn directories(&self) -> BTreeMap<String, PathBuf> {
        CLIENTS.iter().flat_map(|it| it.spots).filter_map(|it| self.directory(it)).collect()
    }

    /// Prepares to find the folders of many targets.
    pub(super) fn locator(&self) -> Locator<'_> {
        Locator { place: self, directories: self.directories(), resolved: BTreeMap::new() }
    }

    /// Resolves the links of a directory that may not exist yet. In a project, none may lead out, or
    /// into `.git`: what is there acts, such as hooks of submodules.
    pub(super) fn resolve(&self, path: &Path) -> Result<PathBuf, LocationError> {
        let failed = |path: &Path, error| LocationError::Io(path.to_owned(), error);
        let root = real_path(&self.root).map_err(|error| failed(&self.root, error))?;
        for above in path.ancestors() {
            match fs::symlink_metadata(above) {
                Ok(_) => {}
                Err(error) if is_missing(&error) => continue,
                Err(error) => return Err(failed(above, error)),
            }
            let real = match real_path(above) {
                Err(error) if is_missing(&error) => {
                    return Err(LocationError::LinkOutside(above.to_owned()));
                }
                real => real.map_err(|error| failed(above, error))?,
            };
            if self.in_project && !real.strip_prefix(&root).is_ok_and(|it| !is_in_repository(it)) {
                return Err(LocationError::LinkOutside(above.to_owned()));
            }
            if !fs::symlink_metadata(&real).is_ok_and(|it| it.is_dir()) {
                return Err(LocationError::NotADirectory(above.to_owned()));
            }
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            // Joining nothing would add a slash.
            return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
        }
        Err(failed(path, io::ErrorKind::NotFound.into()))
    }
}

/// Finds the folders of targets.
#[derive(Debug)]
pub(super) struct Locator<'a> {
    place: &'a InstallPlace,
    /// Every directory that a client reads here, by its path in the lock.
    directories: BTreeMap<String, PathBuf>,
    /// The directories that were looked at, without links.
    resolved: BTreeMap<String, PathBuf>,
}

impl Locator<'_> {
    /// Finds the folder of a target of a skill. A target is a folder of the skill's name in a
    /// directory of a client, and nothing else, whatever a lock says.
    pub(super) fn locate(
        &mut self,
        target: &InstallTarget,
        name: &str,
    ) -> Result<Location, LocationError> {
        let shown = target.path.strip_suffix(name).and_then(|it| it.strip_suffix('/'));
        let shown = shown.ok_or(LocationError::NoClientDirectory)?;
        let directory = match self.resolved.get(shown) {
            Some(known) => known.clone(),
            None => {
                let path = self.directories.get(shown).ok_or(LocationError::NoClientDirectory)?;
                let resolved = self.place.resolve(path)?;
                self.resolved.insert(shown.to_owned(), resolved.clone());
                resolved
            }
        };
        Ok(Location { directory, name: name.to_owned(), shown: target.path.clone() })
    }
}

impl Location {
    /// Returns the path of the folder, without links before its name.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Returns the target of a link here that leads to another folder: relative, with `/`.
    pub(super) fn link_to(&self, other: &Self) -> String {
        let (from, to) = (&self.directory, other.path());
        let common = from.components().zip(to.components()).take_while(|it| it.0 == it.1).count();
        let up = from.components().skip(common).map(|_| "..".to_owned());
        let down = to.components().skip(common);
        let down = down.map(|it| it.as_os_str().to_string_lossy().into_owned());
        up.chain(down).collect::<Vec<_>>().join("/")
    }
}

/// Whether a path leads into what git keeps of a repository.
fn is_in_repository(path: &Path) -> bool {
    path.iter().any(|it| it.eq_ignore_ascii_case(".git"))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns a path with `/` between names.
fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() }
}
