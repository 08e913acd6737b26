//! The files that a server program can read and write: those in its entry, and those that its
//! arguments name.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    commands::{Withheld, find_secrets},
    environment::{is_everywhere, modules_around},
    listing,
    policy::Policy,
    protected::{is_named, protected_in},
    repository::named_by_settings,
};

/// The files and directories of a program, besides itself.
#[derive(Debug, Default)]
pub struct ProgramFiles {
    /// The arguments to pass to the program.
    pub words: Vec<String>,
    /// The files and directories it reads.
    pub reads: Vec<PathBuf>,
    /// The files and directories it reads and writes.
    pub writes: Vec<PathBuf>,
    /// The files among these that it may neither read nor write.
    pub withheld: Vec<PathBuf>,
    /// Whether an argument is a relative path.
    pub is_relative: bool,
}

/// Determines the files that a server can read and write.
#[derive(Debug)]
pub struct FileRules<'r> {
    /// The policy that withholds and protects files.
    pub policy: &'r Policy,
    /// The directory of relative paths.
    pub base: &'r Path,
    /// The home directory of the user.
    pub home: Option<&'r Path>,
    /// The author of the entry.
    pub author: Author<'r>,
}

/// The author of a server's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author<'a> {
    /// The user.
    User,
    /// A project: it has no access to files outside of its directory, or to files with secrets.
    Project(&'a Path),
    /// A skill: it has no access to files that arguments name, or to files with secrets.
    Skill,
}

impl Author<'_> {
    /// Whether a directory is outside of the author's scope, with links resolved.
    pub fn is_outside(self, directory: &Path) -> bool {
        matches!(self, Self::Project(project) if !resolve(directory).starts_with(resolve(project)))
    }
}

/// The maximum number of entries of a folder.
const MAX_ENTRIES: usize = 10_000;
/// The extensions of scripts, which need the files around them.
const SCRIPTS: &[&str] = &["cjs", "js", "mjs", "mts", "py", "ts"];
/// Files at the top of a package.
const PACKAGES: &[&str] = &[
    "package.json",
    "deno.json",
    "pyproject.toml",
    "requirements.txt",
    "setup.py",
    "node_modules",
    ".venv",
];

impl FileRules<'_> {
    /// Returns the files of a program with these arguments, and with the additional readable and
    /// writable paths of its entry. The error describes a fault in the entry.
    pub fn files(
        &self,
        words: Vec<String>,
        reads: &[String],
        writes: &[String],
    ) -> Result<ProgramFiles, String> {
        let reads = self.resolve_paths("read", reads)?;
        let writes = self.resolve_paths("write", writes)?;
        let mut files = ProgramFiles { words, writes, ..ProgramFiles::default() };
        let (mut folders, mut packages) = (Vec::new(), Vec::new());
        if self.author != Author::Skill {
            self.add_named(&mut files, &mut folders, &mut packages);
        }
        let is_listed =
            |it: &PathBuf| reads.iter().chain(&files.writes).any(|own| it.starts_with(own));
        // Paths in a user's own entry are accessible with all their contents.
        let searched: Vec<PathBuf> = match self.author {
            Author::User => folders.iter().filter(|it| !is_listed(it)).cloned().collect(),
            _ => folders
                .iter()
                .chain(&packages)
                .chain(&reads)
                .chain(&files.writes)
                .cloned()
                .collect(),
        };
        let (secrets, unsearched) = find_secrets(&searched, self.policy);
        let withheld = Withheld::new(self.policy);
        if let Some(unsearched) = unsearched.or(withheld.unsearched) {
            let (unsearched, searched) = (unsearched.display(), list_paths(&searched));
            return Err(format!(
                "{searched} has too many directories to be searched for files with secrets, such as `{unsearched}`"
            ));
        }
        // A user's own entry may name a file with secrets, but nothing that is withheld.
        let secrets =
            secrets.into_iter().filter(|it| self.author != Author::User || !is_listed(it));
        files.withheld = withheld.paths.into_iter().chain(secrets).collect();
        let writes: Vec<PathBuf> = files.writes.iter().map(|it| resolve(it)).collect();
        files.reads.extend(reads.into_iter().chain(folders).chain(packages));
        files.reads.retain(|it| !writes.iter().any(|own| resolve(it).starts_with(own)));
        let (read_only, parents) = read_only_paths(&writes, &self.policy.protected);
        files.reads.extend(read_only);
        files.writes.extend(parents);
        Ok(files)
    }

    /// Returns the paths in a key of the entry.
    fn resolve_paths(&self, key: &str, paths: &[String]) -> Result<Vec<PathBuf>, String> {
        paths
            .iter()
            .map(|path: &String| {
                let path = self.base.join(self.expand_home(path));
                let path: PathBuf = path.components().collect();
                match prowess::real_path(&path) {
                    Err(error) => Err(format!("`{key}` names `{}`: {error}", path.display())),
                    Ok(real) if !self.is_within(&real) => {
                        Err(format!("`{key}` leads out of the project: `{}`", path.display()))
                    }
                    Ok(_) => Ok(path),
                }
            })
            .collect()
    }

    /// Adds the paths in arguments: folders, and scripts with their packages.
    fn add_named(
        &self,
        files: &mut ProgramFiles,
        folders: &mut Vec<PathBuf>,
        packages: &mut Vec<PathBuf>,
    ) {
        let mut is_module = false;
        for word in &mut files.words {
            if std::mem::replace(&mut is_module, word == "-m") {
                let module = word.split('.').next().unwrap_or_default();
                let places = [self.base.join(module), self.base.join(format!("{module}.py"))];
                if places.iter().any(|it| it.exists() && self.may_name(it)) {
                    files.is_relative = true;
                    packages.extend(self.package_folders(&places[1]));
                }
                continue;
            }
            let sign = word.find('=').filter(|_| word.starts_with('-')).map_or(0, |it| it + 1);
            let (option, path) = word.split_at(sign);
            if path.is_empty() || (path.starts_with('-') && sign == 0) || path.contains("://") {
                continue;
            }
            let expanded = self.expand_home(path);
            let absolute: PathBuf = self.base.join(&expanded).components().collect();
            if !absolute.exists() || !self.may_name(&absolute) {
                continue;
            }
            files.is_relative |= expanded.is_relative();
            if path.starts_with('~') {
                *word = format!("{option}{}", expanded.display());
            }
            let ending = absolute.extension().and_then(|it| it.to_str()).unwrap_or_default();
            if absolute.is_dir() {
                folders.push(absolute);
            } else if SCRIPTS.contains(&ending) {
                packages.extend(self.package_folders(&absolute));
                files.reads.push(absolute);
            } else {
                files.reads.push(absolute);
            }
        }
    }

    /// Whether an argument suffices to give access to a path: it is neither a whole home directory
    /// nor part of the system.
    fn may_name(&self, path: &Path) -> bool {
        let Ok(real) = prowess::real_path(path) else { return false };
        let is_secret = real.is_file() && self.policy.why_secret(&real).is_some();
        self.is_within(&real) && !self.is_wide(&real) && !is_everywhere(&real) && !is_secret
    }

    fn is_within(&self, real: &Path) -> bool {
        match self.author {
            Author::Project(directory) => {
                prowess::real_path(directory).is_ok_and(|it| real.starts_with(it))
            }
            Author::User | Author::Skill => true,
        }
    }

    /// Whether a directory contains a home directory, or is shared by many programs.
    fn is_wide(&self, path: &Path) -> bool {
        let home = self.home.and_then(|it| prowess::real_path(it).ok());
        path.components().count() <= 2 || home.is_some_and(|it| it.starts_with(path))
    }

    /// Returns the directories that a script belongs to: its package, and its `node_modules`.
    fn package_folders(&self, script: &Path) -> Vec<PathBuf> {
        let real = prowess::real_path(script).unwrap_or_else(|_| script.to_owned());
        if let Some(modules) = modules_around(&real) {
            return vec![modules.to_owned()];
        }
        let above: Vec<&Path> = real
            .ancestors()
            .skip(1)
            .take_while(|it| self.is_within(it) && !self.is_wide(it))
            .collect();
        let package = above.iter().find(|it| PACKAGES.iter().any(|name| it.join(name).exists()));
        let package = package.or(above.first()).map(|it| it.to_path_buf());
        let modules = above.iter().map(|it| it.join("node_modules")).filter(|it| it.is_dir());
        package.into_iter().chain(modules).collect()
    }

    /// Expands `~` to the home directory.
    fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(path),
        }
    }
}

/// Returns the protected files at the top of writable directories and one level below, and those
/// protected regardless of their names: they are read-only, unless they are writable directories
/// themselves. Also returns their parent directories, which cannot be moved away if they are
/// mounted separately.
fn read_only_paths(writes: &[PathBuf], protected: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut read_only, mut parents) = (Vec::new(), Vec::new());
    for top in writes {
        let mut own = named_by_settings(top);
        own.extend(protected.iter().filter_map(|it| prowess::real_path(it).ok()));
        own.retain(|it| it.starts_with(top) && it != top && it.exists());
        for (path, is_folder) in entries(top) {
            if is_read_only(&path, writes) {
                own.push(path);
            } else if is_folder {
                let inside = entries(&path).into_iter().map(|it| it.0);
                own.extend(inside.filter(|it| is_read_only(it, writes)));
            }
        }
        let above = own.iter().flat_map(|it| it.ancestors().skip(1));
        parents.extend(above.filter(|it| it.starts_with(top) && it != top).map(Path::to_owned));
        read_only.append(&mut own);
    }
    parents.sort();
    parents.dedup();
    let own: BTreeSet<&Path> = read_only.iter().map(PathBuf::as_path).collect();
    parents.retain(|it| !it.ancestors().any(|above| own.contains(above)));
    (read_only, parents)
}

/// Whether a path is protected by its name, and not writable itself.
fn is_read_only(path: &Path, writes: &[PathBuf]) -> bool {
    let is_git = path.file_name().is_some_and(|it| is_named(it, ".git"));
    (is_git || protected_in(path).is_some()) && !writes.iter().any(|it| it == path)
}

/// Returns the files and folders of a folder, and whether they are folders. Links are skipped.
fn entries(folder: &Path) -> Vec<(PathBuf, bool)> {
    let entries = listing::entries(folder).take(MAX_ENTRIES);
    let kinds = entries.filter_map(|it| Some((it.path(), it.file_type().ok()?)));
    kinds.filter(|it| it.1.is_dir() || it.1.is_file()).map(|it| (it.0, it.1.is_dir())).collect()
}

fn list_paths(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|it| format!("`{}`", it.display())).collect();
    paths.join(", ")
}

fn resolve(path: &Path) -> PathBuf {
    prowess::real_path(path).unwrap_or_else(|_| path.to_owned())
}
