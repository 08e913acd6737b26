//! A source on disk: a directory with a folder for each skill.
//!
//! A link is followed only to targets inside the configured directories.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use super::{
    DiscoveredSkill, Listing, ReadError, Search, SizeLimits, SkillPaths, Source, Stamp, Visit,
    VisitResult,
    mark::{Mark, SETTLED, VisitMarks},
    open::{Entries, FolderEntry, is_inside, list, open_contained, read_all},
    repository::{Repository, has_output, is_hidden, is_reported_link},
    sys::{self, BaseFolder, FolderHandle, Kind},
    trouble::{Role, Trouble, finding},
    walk::walk,
    watcher::Watcher,
};
use crate::{
    finding::{Finding, Severity, rule},
    read::source::{Directory, Resource, Scope},
    spec::SKILL_FILE,
};

/// The number of bytes of a `SKILL.md` that are read. Of 41,124 real frontmatters two are longer.
const HEAD: usize = 4096;

/// A directory that contains skills.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    scope: Scope,
    path: PathBuf,
    real: PathBuf,
    /// The configured directories with all links resolved: the allowed targets of links.
    pub(super) allowed: Arc<[PathBuf]>,
    directory: Arc<BaseFolder>,
    /// The search rules, if it is a repository.
    repository: Option<Arc<Repository>>,
    limit: u64,
    /// The watcher of the folders that are visited.
    watcher: Option<Arc<Watcher>>,
}

impl Folder {
    /// Opens a configured directory by its resolved path; a link may lead anywhere into `allowed`.
    pub(crate) fn open(
        configured: &Directory,
        path: PathBuf,
        allowed: Arc<[PathBuf]>,
        limits: &SizeLimits,
    ) -> io::Result<Self> {
        let scope = configured.scope;
        let real = std::fs::canonicalize(&path)?;
        let directory = Arc::new(BaseFolder::open(&real)?);
        let repository = match configured.search {
            Search::Plain => None,
            Search::Repository => Some(Arc::new(Repository::new(&real))),
        };
        let limit = limits.max_document_size.max(limits.max_file_size);
        Ok(Self { scope, path, real, allowed, directory, repository, limit, watcher: None })
    }

    /// Returns the same folder, with all folders visited from now on watched.
    pub(crate) fn watched_by(&self, watcher: Option<&Arc<Watcher>>) -> Self {
        Self { watcher: watcher.cloned(), ..self.clone() }
    }

    /// Watches a folder that a visit is about to look at.
    pub(super) fn watch(&self, visited: &Path, folder: &Path) {
        if let Some(watcher) = &self.watcher {
            watcher.watch(visited, folder);
        }
    }

    /// Watches the target of a link, since another file may take its name.
    pub(super) fn watch_target(&self, visited: &Path, real: &Path) {
        if let Some(folder) = real.parent() {
            self.watch(visited, folder);
        }
    }

    /// Whether it is the same directory, with the same allowed targets of links.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let [own, others] = [self, other]
            .map(|it| it.directory.state().ok().map(|it| (it.mark.device, it.mark.inode)));
        own.is_some()
            && own == others
            && self.identity() == other.identity()
            && self.allowed == other.allowed
    }

    /// Returns the directory as given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory with all links resolved.
    pub(crate) fn real(&self) -> &Path {
        &self.real
    }

    /// Returns the paths that exist, with all links resolved.
    pub(crate) fn real_paths(paths: &[PathBuf]) -> Arc<[PathBuf]> {
        paths.iter().filter_map(|it| std::fs::canonicalize(it).ok()).collect()
    }

    /// Resolves a path to be checked to a folder: a skill's folder, its file, or a folder of
    /// skills. Also returns where links from there may lead: from a single skill to its neighbours
    /// too.
    pub(crate) fn resolve_checked(path: &Path) -> io::Result<(PathBuf, PathBuf)> {
        let folder = match std::fs::metadata(path)?.is_dir() {
            true => path,
            false if path.file_name().is_some_and(is_skill_file) => {
                path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
            }
            false => {
                let what = "it is neither a folder nor a `SKILL.md`";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
        };
        let is_skill =
            std::fs::read_dir(folder)?.flatten().any(|it| is_skill_file(&it.file_name()));
        let real = std::fs::canonicalize(folder)?;
        let root = real.parent().filter(|_| is_skill).unwrap_or(&real).to_owned();
        Ok((folder.to_owned(), root))
    }

    /// Returns the target of a link, if it is inside the configured directories.
    pub(super) fn resolve_contained(&self, path: &Path) -> Result<PathBuf, Trouble> {
        let real = std::fs::canonicalize(path)?;
        if is_inside(&real, &self.allowed) { Ok(real) } else { Err(Trouble::Escapes(real)) }
    }

    /// Opens a folder below this one; also returns the real path if a link led there.
    fn enter(&self, folder: &Path) -> Result<(FolderHandle, Option<PathBuf>), Trouble> {
        match self.directory.folder_beneath(folder) {
            Ok(directory) => {
                let path = self.path.join(folder);
                self.watch(&path, &path);
                Ok((directory, None))
            }
            Err(error)
                if sys::is_link_error(&error) || error.kind() == io::ErrorKind::NotADirectory =>
            {
                let path = self.path.join(folder);
                let real = self.resolve_contained(&path)?;
                if self.real.join(folder).starts_with(&real) {
                    return Err(Trouble::Circle);
                }
                self.watch_target(&path, &real);
                self.watch(&path, &real);
                Ok((FolderHandle::open(&real)?, Some(real)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Visits one folder as [`visit`](Source::visit) does, and records the marks of what it looked
    /// at.
    pub(crate) fn visit_noting(
        &self,
        folder: &Path,
        limits: &SizeLimits,
        listing: Listing,
        mut seen: Option<&mut VisitMarks>,
    ) -> Visit {
        if listing == Listing::OnDemand
            && let Some(found) = self.visit_plain_skill(folder, limits, seen.as_deref_mut())
        {
            return Visit {
                what: VisitResult::Skill(Box::new(found)),
                linked: false,
                findings: Vec::new(),
            };
        }
        let mut findings = Vec::new();
        match self.visit(folder, limits, listing, &mut findings, seen) {
            Ok((what, linked)) => Visit { what, linked, findings },
            Err(trouble) => {
                if self.repository.is_none() || is_reported_link(&self.real, folder, &trouble) {
                    findings.extend(finding(&self.path.join(folder), Role::Folder, trouble));
                }
                Visit { what: VisitResult::Nothing, linked: false, findings }
            }
        }
    }

    /// Returns the mark of a file or folder, by its path below this one; `None` if it does not
    /// exist.
    pub(crate) fn mark(&self, path: &str) -> Option<Mark> {
        self.directory.state_of(path).ok().map(|it| it.mark)
    }

    /// Returns the mark of a file by its whole path, if any later change will give it another one.
    /// A link has none, because its target can change.
    pub(crate) fn settled_mark(&self, path: &Path) -> Option<Mark> {
        let moment = SystemTime::now();
        let state = sys::link_state(path).ok().filter(|it| it.kind == Kind::File)?;
        Some(state.mark).filter(|it| it.is_settled(moment, SETTLED))
    }

    /// Returns bytes that identify this directory, including the name that it was given by.
    pub(crate) fn identity(&self) -> Vec<u8> {
        let is_repository = self.repository.is_some();
        format!("{} {:?} {:?} {is_repository}", self.scope, self.path, self.real).into_bytes()
    }

    /// Returns the path of a file relative to this directory, as displayed.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> Option<&'p str> {
        path.strip_prefix(&self.path).ok()?.to_str()
    }

    fn visit(
        &self,
        folder: &Path,
        limits: &SizeLimits,
        listing: Listing,
        findings: &mut Vec<Finding>,
        mut seen: Option<&mut VisitMarks>,
    ) -> Result<(VisitResult, bool), Trouble> {
        let (directory, linked) = self.enter(folder)?;
        if let Some(seen) = seen.as_deref_mut() {
            seen.is_more = linked.is_some();
            seen.marks.push(("".into(), directory.state()?.mark));
        }
        let mut entries = list(directory)?;
        // A hidden folder may contain a folder of skills, but is not a skill itself.
        let is_hidden = self.repository.is_some() && is_hidden(folder);
        let Some(document) = document_index(&entries.names).filter(|_| !is_hidden) else {
            if let Some(repository) = &self.repository {
                repository.enter(folder, &entries);
                if let Some(seen) = seen {
                    seen.is_more |= repository.ignores_anything();
                }
            }
            let folders = self.folders(folder, &entries, findings);
            return Ok((VisitResult::Folders(folders), linked.is_some()));
        };
        let entry = entries.names.swap_remove(document);
        let path = join_path(&self.path, folder, &entry.name);
        let head = match self.head(&entries.directory, &entry, &path, limits) {
            Ok(head) => head,
            Err(trouble) => {
                let found = finding(&path, Role::Document, trouble);
                let what =
                    if found.is_some() { VisitResult::LeftOut(path) } else { VisitResult::Nothing };
                findings.extend(found);
                return Ok((what, false));
            }
        };
        if &*entry.name != SKILL_FILE {
            let message =
                "the file is not called exactly `SKILL.md`; some clients will not find it";
            let hint = "rename it to `SKILL.md`";
            findings.push(Finding::new(
                &rule::FILE_NAME,
                Severity::Warning,
                &path,
                message.to_owned(),
                hint,
            ));
        }
        if let Some(seen) = seen.as_deref_mut() {
            seen.is_more |= head.real.is_some();
            seen.marks.push((entry.name.clone(), head.mark));
        }
        let listed = match listing {
            Listing::AtOnce => {
                Some(walk(self, path.parent().unwrap_or(&path), entries, limits, findings, seen))
            }
            Listing::OnDemand => None,
        };
        let real = head.real.clone().or(linked.map(|it| it.join(&*entry.name)));
        let found = self.found_skill(folder, &entry.name, path, real, head, listed);
        Ok((VisitResult::Skill(Box::new(found)), false))
    }

    /// Returns the subfolders of a folder that is not a skill.
    fn folders(
        &self,
        folder: &Path,
        entries: &Entries,
        findings: &mut Vec<Finding>,
    ) -> Vec<PathBuf> {
        let mut folders = Vec::with_capacity(entries.names.len());
        if self.repository.is_some() && has_output(folder, entries) {
            return folders;
        }
        for entry in &entries.names {
            let is_folder = matches!(entry.kind, Kind::Folder | Kind::Link | Kind::Unknown);
            let is_skipped = is_folder
                && match &self.repository {
                    Some(repository) => repository.skips(folder, &entry.name),
                    None => is_skipped(&entry.name),
                };
            if !is_folder || is_skipped {
                continue;
            }
            if entry.is_text {
                folders.push(folder.join(&*entry.name));
            } else {
                let path = join_path(&self.path, folder, &entry.name);
                findings.extend(finding(&path, Role::Folder, Trouble::NotText));
            }
        }
        folders
    }

    /// Reads a skill in a folder that is not a link, without listing the folder. `None` for
    /// anything else, which takes a closer look.
    fn visit_plain_skill(
        &self,
        folder: &Path,
        limits: &SizeLimits,
        seen: Option<&mut VisitMarks>,
    ) -> Option<DiscoveredSkill> {
        if folder.as_os_str().is_empty() || self.repository.is_some() && is_hidden(folder) {
            return None;
        }
        let path = self.path.join(folder);
        self.watch(&path, &path);
        let mark = seen.is_some().then(|| self.mark(folder.to_str()?)).flatten();
        let file = self.directory.file_beneath(&folder.join(SKILL_FILE)).ok()?;
        let head = Head::new(&file, None, limits).ok()?;
        if let Some(seen) = seen {
            seen.is_more = mark.is_none();
            seen.marks.extend(mark.map(|it| ("".into(), it)));
            seen.marks.push((SKILL_FILE.into(), head.mark));
        }
        let path = join_path(&self.path, folder, SKILL_FILE);
        Some(self.found_skill(folder, SKILL_FILE, path, None, head, None))
    }

    /// Returns the paths of the skill in a folder that is not a link.
    pub(crate) fn at(&self, folder: &Path) -> SkillPaths {
        let path: Arc<Path> = join_path(&self.path, folder, SKILL_FILE).into();
        let real = Some(self.real_path(&path, folder, SKILL_FILE));
        SkillPaths { path, real, linked: false }
    }

    fn real_path(&self, path: &Arc<Path>, folder: &Path, name: &str) -> Arc<Path> {
        match self.path.as_os_str() == self.real.as_os_str() {
            true => path.clone(),
            false => join_path(&self.real, folder, name).into(),
        }
    }

    fn found_skill(
        &self,
        folder: &Path,
        name: &str,
        path: PathBuf,
        linked: Option<PathBuf>,
        head: Head,
        listed: Option<(Vec<Resource>, u64)>,
    ) -> DiscoveredSkill {
        let (resources, omitted) = match listed {
            Some((resources, omitted)) => (Some(resources), omitted),
            None => (None, 0),
        };
        let path: Arc<Path> = path.into();
        let real = match &linked {
            Some(real) => real.as_path().into(),
            None => self.real_path(&path, folder, name),
        };
        let Head { bytes, size, modified, .. } = head;
        DiscoveredSkill {
            path,
            real: Some(real),
            linked: linked.is_some(),
            head: bytes,
            size,
            modified,
            resources,
            omitted,
        }
    }

    /// Reads the beginning of a `SKILL.md`.
    fn head(
        &self,
        directory: &FolderHandle,
        entry: &FolderEntry,
        path: &Path,
        limits: &SizeLimits,
    ) -> Result<Head, Trouble> {
        let (file, real) = match directory.file(&entry.name) {
            Ok(file) => (file, None),
            Err(error) if sys::is_link_error(&error) => {
                let real = self.resolve_contained(path)?;
                self.watch_target(path.parent().unwrap_or(path), &real);
                (sys::open_file(&real)?, Some(real))
            }
            // A socket cannot be opened at all.
            Err(error) if sys::is_unopenable(&error) => return Err(Trouble::NotRegular),
            Err(error) => return Err(error.into()),
        };
        Head::new(&file, real, limits)
    }
}

impl Source for Folder {
    fn scope(&self) -> Scope {
        self.scope
    }

    fn visit(&self, folder: &Path, limits: &SizeLimits, listing: Listing) -> Visit {
        self.visit_noting(folder, limits, listing, None)
    }

    fn resources(&self, path: &Path, limits: &SizeLimits) -> (Vec<Resource>, Vec<Finding>) {
        let skill = path.parent().unwrap_or(path);
        let mut findings = Vec::new();
        let opened = self.resolve_contained(skill).and_then(|it| Ok(FolderHandle::open(&it)?));
        let resources = match opened.and_then(list) {
            Ok(mut entries) => {
                if let Some(document) = document_index(&entries.names) {
                    entries.names.swap_remove(document);
                }
                walk(self, skill, entries, limits, &mut findings, None).0
            }
            Err(trouble) => {
                findings.extend(finding(skill, Role::Folder, trouble));
                Vec::new()
            }
        };
        (resources, findings)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        read_all(path, &self.allowed, self.limit)
    }

    fn read_beside(&self, path: &Path, resource: &str) -> Result<Vec<u8>, ReadError> {
        read_all(&path.with_file_name(resource), &self.allowed, self.limit)
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        let metadata = open_contained(path, &self.allowed).ok()?.metadata().ok()?;
        Some((metadata.len(), metadata.modified().ok()))
    }

    fn absolute(&self, path: &Path) -> Option<PathBuf> {
        Some(sys::plain_path(self.real.join(path.strip_prefix(&self.path).ok()?)))
    }
}

struct Head {
    bytes: Vec<u8>,
    /// The target, if it was a link.
    real: Option<PathBuf>,
    size: u64,
    modified: Option<SystemTime>,
    mark: Mark,
}

impl Head {
    fn new(file: &File, real: Option<PathBuf>, limits: &SizeLimits) -> Result<Self, Trouble> {
        let state = sys::file_state(file)?;
        if state.kind != Kind::File {
            return Err(Trouble::NotRegular);
        }
        let (size, limit) = (state.size, limits.max_document_size);
        if size > limit {
            return Err(Trouble::TooLarge { size, limit });
        }
        let mut bytes = Vec::with_capacity(HEAD.min(size as usize + 1));
        sys::fill(file, &mut bytes)?;
        Ok(Self { bytes, real, size, modified: state.modified, mark: state.mark })
    }
}

/// Whether a path is itself a link.
pub(crate) fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink())
}

/// Joins three parts of a path in one allocation.
fn join_path(root: &Path, folder: &Path, name: &str) -> PathBuf {
    let length = root.as_os_str().len() + folder.as_os_str().len() + name.len() + 2;
    let mut path = PathBuf::with_capacity(length);
    path.push(root);
    if !folder.as_os_str().is_empty() {
        path.push(folder);
    }
    path.push(name);
    path
}

/// Returns the index of the `SKILL.md`: the exact name before any other spelling.
pub(super) fn document_index(names: &[FolderEntry]) -> Option<usize> {
    let exact = names.iter().position(|it| &*it.name == SKILL_FILE);
    exact.or_else(|| {
        let spelt =
            names.iter().enumerate().filter(|it| it.1.name.eq_ignore_ascii_case(SKILL_FILE));
        spelt.min_by(|a, b| a.1.name.cmp(&b.1.name)).map(|it| it.0)
    })
}

fn is_skill_file(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(SKILL_FILE)
}

/// Whether a folder is skipped: hidden folders and those of package managers contain no skills.
fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || name == "node_modules"
}
