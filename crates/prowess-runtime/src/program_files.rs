//! The files that a server program can read and write: those in its entry, and those that its
//! arguments name.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    commands::{Withheld, secrets},
    environment::{is_everywhere, modules_around},
    listing,
    policy::Policy,
    protected::place,
    repository::named,
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
        let real = |it: &Path| fs::canonicalize(it).unwrap_or_else(|_| it.to_owned());
        matches!(self, Self::Project(project) if !real(directory).starts_with(real(project)))
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
        let (reads, writes) = (self.said("read", reads)?, self.said("write", writes)?);
        let mut files = ProgramFiles { words, writes, ..ProgramFiles::default() };
        let (mut folders, mut packages) = (Vec::new(), Vec::new());
        if self.author != Author::Skill {
            self.named(&mut files, &mut folders, &mut packages);
        }
        let is_said =
            |it: &PathBuf| reads.iter().chain(&files.writes).any(|own| it.starts_with(own));
        // Paths in a user's own entry are accessible with all their contents.
        let looked: Vec<PathBuf> = match self.author {
            Author::User => folders.iter().filter(|it| !is_said(it)).cloned().collect(),
            _ => folders
                .iter()
                .chain(&packages)
                .chain(&reads)
                .chain(&files.writes)
                .cloned()
                .collect(),
        };
        let (secrets, unseen) = secrets(&looked, self.policy);
        let withheld = Withheld::new(self.policy);
        if let Some(unseen) = unseen.or(withheld.unseen) {
            let (unseen, looked) = (unseen.display(), shown(&looked));
            return Err(format!(
                "{looked} has too much to be searched for files with secrets, as far as `{unseen}`"
            ));
        }
        // A user's own entry may name a file with secrets, but nothing that is withheld.
        let is_given = |it: &PathBuf| self.author == Author::User && is_said(it);
        let secrets = secrets.into_iter().filter(|it| !is_given(it));
        files.withheld = withheld.paths.into_iter().chain(secrets).collect();
        let real = |it: &PathBuf| fs::canonicalize(it).unwrap_or_else(|_| it.clone());
        let writes: Vec<PathBuf> = files.writes.iter().map(real).collect();
        files.reads.extend(reads.into_iter().chain(folders).chain(packages));
        files.reads.retain(|it| !writes.iter().any(|own| real(it).starts_with(own)));
        let (kept, holders) = kept(&writes, &self.policy.protected);
        files.reads.extend(kept);
        files.writes.extend(holders);
        Ok(files)
    }

    /// Returns the paths in a key of the entry.
    fn said(&self, key: &str, paths: &[String]) -> Result<Vec<PathBuf>, String> {
        paths
            .iter()
            .map(|path: &String| {
                let path = self.base.join(self.expanded(path));
                let path: PathBuf = path.components().collect();
                match fs::canonicalize(&path) {
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
    fn named(
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
                    packages.extend(self.package(&places[1]));
                }
                continue;
            }
            let sign = word.find('=').filter(|_| word.starts_with('-')).map_or(0, |it| it + 1);
            let (option, path) = word.split_at(sign);
            if path.is_empty() || (path.starts_with('-') && sign == 0) || path.contains("://") {
                continue;
            }
            let expanded = self.expanded(path);
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
                packages.extend(self.package(&absolute));
                files.reads.push(absolute);
            } else {
                files.reads.push(absolute);
            }
        }
    }

    /// Whether an argument suffices to give access to a path: it is neither a whole home directory
    /// nor part of the system.
    fn may_name(&self, path: &Path) -> bool {
        let Ok(real) = fs::canonicalize(path) else { return false };
        let is_secret = real.is_file() && self.policy.secret(&real).is_some();
        self.is_within(&real) && !self.is_wide(&real) && !is_everywhere(&real) && !is_secret
    }

    fn is_within(&self, real: &Path) -> bool {
        match self.author {
            Author::Project(directory) => {
                fs::canonicalize(directory).is_ok_and(|it| real.starts_with(it))
            }
            Author::User | Author::Skill => true,
        }
    }

    /// Whether a directory contains a home directory, or is shared by many programs.
    fn is_wide(&self, path: &Path) -> bool {
        let home = self.home.and_then(|it| fs::canonicalize(it).ok());
        path.components().count() <= 2 || home.is_some_and(|it| it.starts_with(path))
    }

    /// Returns the directories that a script belongs to: its package, and its `node_modules`.
    fn package(&self, script: &Path) -> Vec<PathBuf> {
        let real = fs::canonicalize(script).unwrap_or_else(|_| script.to_owned());
        if let Some(modules) = modules_around(&real) {
            return vec![modules.to_owned()];
        }
        let above =
            || real.ancestors().skip(1).take_while(|it| self.is_within(it) && !self.is_wide(it));
        let package = above()
            .find(|it: &&Path| PACKAGES.iter().any(|name| it.join(name).exists()))
            .or_else(|| above().next());
        let modules = above().map(|it| it.join("node_modules")).filter(|it| it.is_dir());
        package.map(Path::to_owned).into_iter().chain(modules).collect()
    }

    /// Expands `~` to the home directory.
    fn expanded(&self, path: &str) -> PathBuf {
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
fn kept(writes: &[PathBuf], protected: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut kept, mut holders) = (Vec::new(), Vec::new());
    let is_kept = |it: &Path| {
        let is_git = it.file_name().is_some_and(|it| it.eq_ignore_ascii_case(".git"));
        (is_git || place(it).is_some()) && !writes.iter().any(|own| own == it)
    };
    for top in writes {
        let mut own = named(top);
        own.extend(protected.iter().filter_map(|it| fs::canonicalize(it).ok()));
        own.retain(|it| it.starts_with(top) && it != top && it.exists());
        for (path, is_folder) in entries(top) {
            if is_kept(&path) {
                own.push(path);
            } else if is_folder {
                own.extend(entries(&path).into_iter().map(|it| it.0).filter(|it| is_kept(it)));
            }
        }
        let above = own.iter().flat_map(|it| it.ancestors().skip(1));
        holders.extend(above.filter(|it| it.starts_with(top) && it != top).map(Path::to_owned));
        kept.append(&mut own);
    }
    holders.sort();
    holders.dedup();
    let own: BTreeSet<&Path> = kept.iter().map(PathBuf::as_path).collect();
    holders.retain(|it| !it.ancestors().any(|above| own.contains(above)));
    (kept, holders)
}

/// Returns the files and folders of a folder, and whether they are folders. Links are skipped.
fn entries(folder: &Path) -> Vec<(PathBuf, bool)> {
    let entries = listing::entries(folder).take(MAX_ENTRIES);
    let kinds = entries.filter_map(|it| Some((it.path(), it.file_type().ok()?)));
    kinds.filter(|it| it.1.is_dir() || it.1.is_file()).map(|it| (it.0, it.1.is_dir())).collect()
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|it| format!("`{}`", it.display())).collect();
    paths.join(", ")
}
