//! The environment of clients: resolves their directories on this machine.

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use crate::{
    clients::{CLIENTS, Client, Spot},
    read::source::{Directory, Scope, Search, is_there},
};

/// The environment that clients are started in, and the locations of the user's files.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The directory that `~` stands for.
    pub home: Option<PathBuf>,
    /// The working directory of clients.
    pub cwd: PathBuf,
    /// The root of the repository that contains it, if there is one.
    pub repository: Option<PathBuf>,
    /// The values of variables that relocate directories; see [`VARIABLES`](crate::VARIABLES).
    pub variables: BTreeMap<String, PathBuf>,
    /// The directories in which programs are looked up.
    pub path: Vec<PathBuf>,
}

impl Surroundings {
    /// Returns the directories of a spot, the nearest first; none if it needs a home and there is
    /// none.
    pub fn directories(&self, spot: &Spot) -> Vec<PathBuf> {
        if let Some((usual, name, rest)) = spot.variable() {
            let rest = rest.trim_start_matches('/');
            let base = self.variables.get(name).cloned().or_else(|| self.at_home(usual));
            return base
                .into_iter()
                .map(|it: PathBuf| if rest.is_empty() { it } else { it.join(rest) })
                .collect();
        }
        if !spot.is_in_project() {
            return self.at_home(spot.path).into_iter().collect();
        }
        let last = self.repository.as_deref().filter(|it| spot.upwards && self.cwd.starts_with(it));
        let last = last.unwrap_or(&self.cwd);
        let folders = self.cwd.ancestors().take_while(|it| it.starts_with(last));
        folders.map(|it| it.join(spot.path)).collect()
    }

    /// Returns every directory that some client reads, whether it exists or not: those of the
    /// project, the nearest first, then those of the user and the system. This is the meaning of
    /// the preset [`HERE`](crate::HERE).
    pub fn here(&self) -> Vec<Directory> {
        let (project, users): (Vec<&Spot>, Vec<&Spot>) =
            CLIENTS.iter().flat_map(|it| it.spots).partition(|it| it.is_in_project());
        let mut users: Vec<PathBuf> =
            users.into_iter().flat_map(|it| self.directories(it)).collect();
        let project = project.into_iter().flat_map(|it| self.directories(it));
        // In the home directory the project's directories are the user's.
        let is_users: HashSet<&PathBuf> = users.iter().collect();
        let mut project: Vec<PathBuf> = project.filter(|it| !is_users.contains(it)).collect();
        // By the number of levels from the working directory up to the folder that contains it.
        project.sort_by_key(|it| {
            self.cwd.ancestors().take_while(|folder: &&Path| !it.starts_with(folder)).count()
        });
        let mut seen = HashSet::new();
        users.retain(|it| seen.insert(it.clone()));
        project.retain(|it| seen.insert(it.clone()));
        let project = project.into_iter().map(|it| (it, Scope::Project));
        let all = project.chain(users.into_iter().map(|it| (it, Scope::User)));
        let (optional, search) = (true, Search::Plain);
        all.map(|(path, scope)| Directory { path, scope, optional, search }).collect()
    }

    /// Whether a path is in the project, and not the user's, whose home may be inside the project.
    pub(super) fn has_project(&self, path: &Path) -> bool {
        let project = self.repository.as_deref().unwrap_or(&self.cwd);
        let home = self.home.as_deref().filter(|it| it.starts_with(project));
        path.starts_with(project) && !home.is_some_and(|it| path.starts_with(it))
    }

    fn at_home(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix("~/") {
            Some(rest) => self.home.as_ref().map(|it| it.join(rest)),
            None => Some(PathBuf::from(path)),
        }
    }
}

impl Client {
    /// Returns the evidence that it is installed for this user or used in this project: a path of
    /// its own, or its program.
    pub fn installed_at(&self, surroundings: &Surroundings) -> Option<PathBuf> {
        let markers = self.markers.iter().flat_map(|it| {
            let spot = Spot { path: it, upwards: true };
            let mut paths = surroundings.directories(&spot);
            // Of a folder in the home, only the user's own files are evidence.
            let home = surroundings.home.as_ref().map(|home| home.join(it));
            paths.retain(|it| !spot.is_in_project() || Some(it) != home.as_ref());
            paths
        });
        let programs = self.programs.iter();
        let programs =
            programs.flat_map(|name| surroundings.path.iter().map(move |it| it.join(name)));
        markers.chain(programs).find(|it| is_there(it))
    }
}
