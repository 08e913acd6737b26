//! Where clients are started, and what a spot stands for there.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::client::Spot;

/// Where clients are started, and where they keep what is the user's.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// The folder that clients are started in.
    pub cwd: PathBuf,
    /// The folder of the repository that it lies in, where there is one.
    pub repository: Option<PathBuf>,
    /// What variables say that move directories; see [`VARIABLES`](crate::VARIABLES).
    pub variables: BTreeMap<String, PathBuf>,
}

impl Surroundings {
    /// The directories that a spot stands for, the nearest first; none without a home to have them in.
    pub fn directories(&self, spot: &Spot) -> Vec<PathBuf> {
        if let Some((usual, name, rest)) = spot.variable() {
            let rest = rest.trim_start_matches('/');
            let base = self.variables.get(name).cloned().or_else(|| self.at_home(usual));
            return base.into_iter().map(|it| it.join(rest)).collect();
        }
        if !spot.is_in_project() {
            return self.at_home(spot.path).into_iter().collect();
        }
        let last = self.repository.as_deref().filter(|it| spot.upwards && self.cwd.starts_with(it));
        let last = last.unwrap_or(&self.cwd);
        let folders = self.cwd.ancestors().take_while(|it| it.starts_with(last));
        folders.map(|it| it.join(spot.path)).collect()
    }

    /// Whether a path lies in the project, and not with the user, whose home may lie there too.
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
