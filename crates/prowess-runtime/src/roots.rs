//! The directories that tools may use: a path from outside is resolved in one of them, or refused.

use std::path::{Path, PathBuf};

use prowess_sandbox::{Root, RootError};

use crate::{
    outcome::{Outcome, OutcomeStatus},
    protected::{ResolvedPath, is_named, is_protected, is_within},
    repository::{is_named_by_settings, is_of_repository},
};

/// The directories that tools may use. Relative paths start at the first.
///
/// The `.git` directories are excluded: they may contain tokens.
#[derive(Debug)]
pub struct Roots {
    roots: Vec<Root>,
    /// Further excluded paths, and read-only paths, both with links resolved.
    withheld: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

/// A file or directory inside one of the roots, by a path with links resolved.
#[derive(Debug)]
pub(crate) struct Place<'r> {
    pub(crate) root: &'r Root,
    pub(crate) path: PathBuf,
}

impl Roots {
    /// Creates the roots, the working directory first.
    pub fn new(roots: Vec<Root>) -> Self {
        Self { roots, withheld: Vec::new(), protected: Vec::new() }
    }

    /// Excludes these files and directories, whether they exist or not.
    #[must_use]
    pub fn without(self, withheld: &[PathBuf]) -> Self {
        Self { withheld: withheld.iter().map(|it| ResolvedPath::of(it).end).collect(), ..self }
    }

    /// Makes these files read-only.
    #[must_use]
    pub fn protecting(self, protected: &[PathBuf]) -> Self {
        Self { protected: protected.iter().map(|it| ResolvedPath::of(it).end).collect(), ..self }
    }

    /// Returns the paths of these directories.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(Root::path)
    }

    /// Finds an existing file or directory, following all links.
    pub(crate) fn find_existing(&self, path: &str) -> Result<Place<'_>, Box<Outcome>> {
        let found = self.find(path).and_then(|(root, inside)| {
            let path = root.real(inside)?;
            Ok(Place { root, path })
        });
        let place = found.map_err(|error| self.to_outcome(path, &error))?;
        // A link may lead to an excluded path.
        let is_withheld = is_of_git(&place.path) || is_in_any(&self.withheld, &place.absolute());
        if is_withheld { Err(protected_path(path)) } else { Ok(place) }
    }

    /// Finds a file to write, existing or not, without following links.
    pub(crate) fn find_writable(&self, path: &str) -> Result<Place<'_>, Box<Outcome>> {
        let (root, inside) = self.find(path).map_err(|error| self.to_outcome(path, &error))?;
        let place = Place { root, path: inside.to_owned() };
        let absolute = place.absolute();
        if is_in_any(&self.withheld, &absolute) {
            return Err(protected_path(path));
        }
        if is_protected(inside) || is_in_any(&self.protected, &absolute) {
            let message = format!("`{path}` is protected: other programs or agents act on it");
            return Err(Outcome::bad(OutcomeStatus::Refused, message).into());
        }
        if is_of_repository(&absolute, |it: &Path| it.metadata().ok().map(|it| it.is_dir()))
            || is_named_by_settings(&absolute)
        {
            let message = format!("`{path}` is protected: git would read it as settings");
            return Err(Outcome::bad(OutcomeStatus::Refused, message).into());
        }
        if matches!(path.rsplit('/').next(), Some("" | ".")) {
            let message = format!("`{path}` is a directory; only files can be written");
            return Err(Outcome::bad(OutcomeStatus::Refused, message).into());
        }
        Ok(place)
    }

    /// Converts an error about a path. All paths outside look the same, existing or not.
    pub(crate) fn to_outcome(&self, path: &str, error: &RootError) -> Box<Outcome> {
        let (status, message) = match error {
            RootError::Outside { .. } if is_of_git(Path::new(path)) => return protected_path(path),
            RootError::Outside { .. } => return self.outside_error(path),
            RootError::NotRegular { .. } => {
                (OutcomeStatus::Refused, format!("`{path}` is not a regular file"))
            }
            error if error.is_missing() => {
                (OutcomeStatus::NotFound, format!("there is no `{path}`"))
            }
            RootError::Io { source, .. } => {
                (OutcomeStatus::Failed, format!("cannot access `{path}`: {source}"))
            }
            error => return Box::new(Outcome::error(OutcomeStatus::Failed, error)),
        };
        Box::new(Outcome::bad(status, message))
    }

    /// Creates the outcome for a path outside of these directories.
    fn outside_error(&self, path: &str) -> Box<Outcome> {
        let message = format!("`{path}` is not in a directory that may be used");
        let roots: Vec<String> = self.paths().map(|it| format!("`{}`", it.display())).collect();
        let hint = match &roots[..] {
            [] => "add directories with `--root` or `policy.roots`".to_owned(),
            roots => format!("use a path inside {}", roots.join(" or ")),
        };
        Outcome::bad(OutcomeStatus::Refused, message).hint(hint).into()
    }

    /// Finds the root of a path by its text alone, and the rest of the path.
    fn find<'p>(&self, path: &'p str) -> Result<(&Root, &'p Path), RootError> {
        let given = Path::new(path);
        let found = if is_foreign(path) || is_of_git(given) {
            None
        } else if given.is_relative() {
            self.roots.first().map(|root| (root, given))
        } else {
            let inside = self.roots.iter().filter_map(|root| Some((root, root.within(given)?)));
            inside.min_by_key(|(_, rest)| rest.components().count())
        };
        found.ok_or_else(|| RootError::Outside { path: path.into() })
    }
}

impl Place<'_> {
    /// Returns the absolute path.
    pub(crate) fn absolute(&self) -> PathBuf {
        self.root.path().join(&self.path)
    }
}

/// Creates the outcome for an excluded path.
fn protected_path(path: &str) -> Box<Outcome> {
    let outcome =
        Outcome::bad(OutcomeStatus::Refused, format!("`{path}` is protected from all tools"));
    let is_of_git = is_of_git(Path::new(path));
    Box::new(if is_of_git { outcome.hint("use git itself, such as `git log`") } else { outcome })
}

/// Whether a path is one of these or inside of one.
fn is_in_any(paths: &[PathBuf], path: &Path) -> bool {
    paths.iter().any(|it| is_within(path, it))
}

/// Whether a path leads into a `.git` directory, ignoring case.
pub(crate) fn is_of_git(path: &Path) -> bool {
    path.iter().any(|it| is_named(it, ".git"))
}

/// Whether another system would interpret a path differently.
fn is_foreign(path: &str) -> bool {
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    drive || path.contains(['\0', '\\']) || path.contains("::$")
}
