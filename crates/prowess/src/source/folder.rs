//! A source on disk: a directory with a folder for each skill.
//!
//! A link is followed where it leads to something inside the configured directories, and nowhere
//! else.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
};

use super::{
    Found, Limits, ReadError, Resources, Source, Visit, What,
    open::{Entry, fill, list, modified, open_real, read_all},
    trouble::{Trouble, finding, not_text},
    walk::walk,
};
use crate::{
    finding::{Finding, Severity},
    rule,
    skill::{Resource, Scope},
};

/// How much of a `SKILL.md` is read. Of 41,124 real frontmatters two are longer.
const HEAD: usize = 4096;

/// A directory that holds skills.
#[derive(Debug)]
pub struct Folder {
    scope: Scope,
    path: PathBuf,
    real: PathBuf,
    /// The configured directories with all links resolved: what a link may lead into.
    pub(super) allowed: Arc<[PathBuf]>,
    directory: OwnedFd,
    limit: u64,
}

impl Folder {
    /// Opens a directory; a link may lead anywhere into `allowed`.
    pub(crate) fn open(
        scope: Scope,
        path: PathBuf,
        allowed: Arc<[PathBuf]>,
        limits: &Limits,
    ) -> io::Result<Self> {
        let real = std::fs::canonicalize(&path)?;
        let directory = rustix::fs::open(
            &real,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self {
            scope,
            path,
            real,
            allowed,
            directory,
            limit: limits.max_document_size.max(limits.max_file_size),
        })
    }

    /// The paths that exist, with all links resolved.
    pub(crate) fn real_paths(paths: &[PathBuf]) -> Arc<[PathBuf]> {
        paths.iter().filter_map(|it| std::fs::canonicalize(it).ok()).collect()
    }

    /// Opens what somebody wants to have checked: a skill's folder, its file, or a folder of
    /// skills. From a single skill links may lead to its neighbours as well.
    pub(crate) fn open_any(path: &Path, limits: &Limits) -> io::Result<Self> {
        let folder = match std::fs::metadata(path)?.is_file() {
            true => path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new(".")),
            false => path,
        };
        let mut names = std::fs::read_dir(folder)?.flatten().map(|it| it.file_name());
        let is_skill = names.any(|it| it.eq_ignore_ascii_case("SKILL.md"));
        let real = std::fs::canonicalize(folder)?;
        let root = real.parent().filter(|_| is_skill).unwrap_or(&real).to_owned();
        Self::open(Scope::Project, folder.to_owned(), Arc::from([root]), limits)
    }

    /// Opens a folder below this one; the real path comes with it when a link led there.
    fn enter(&self, folder: &Path) -> Result<(OwnedFd, Option<PathBuf>), Trouble> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if folder.as_os_str().is_empty() {
            return Ok((rustix::fs::openat(&self.directory, ".", flags, Mode::empty())?, None));
        }
        match rustix::fs::openat(&self.directory, folder, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(directory) => Ok((directory, None)),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let real = self.contained(&self.path.join(folder))?;
                if self.real.join(folder).starts_with(&real) {
                    return Err(Errno::LOOP.into());
                }
                let directory = rustix::fs::open(&real, flags, Mode::empty())?;
                Ok((directory, Some(real)))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// The real path behind a link, if it lies inside the configured directories.
    pub(super) fn contained(&self, path: &Path) -> Result<PathBuf, Trouble> {
        let real = std::fs::canonicalize(path).map_err(Trouble::Io)?;
        if self.allowed.iter().any(|it| real.starts_with(it)) {
            Ok(real)
        } else {
            Err(Trouble::Escapes(real))
        }
    }
}

impl Source for Folder {
    fn scope(&self) -> Scope {
        self.scope
    }

    fn visit(&self, folder: &Path, limits: &Limits) -> Visit {
        if limits.resources == Resources::OnDemand
            && let Some(found) = self.glance(folder, limits)
        {
            return Visit {
                what: What::Skill(Box::new(found)),
                linked: false,
                findings: Vec::new(),
            };
        }
        let mut findings = Vec::new();
        let mut linked = false;
        let what =
            self.look(folder, limits, &mut linked, &mut findings).unwrap_or_else(|trouble| {
                findings.extend(finding(
                    &self.path.join(folder),
                    &rule::DIRECTORY_UNREADABLE,
                    trouble,
                ));
                What::Nothing
            });
        Visit { what, linked, findings }
    }

    fn resources(&self, path: &Path, limits: &Limits) -> Vec<Resource> {
        let skill = path.parent().unwrap_or(path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened =
            self.contained(skill).and_then(|it| Ok(rustix::fs::open(it, flags, Mode::empty())?));
        let Ok(mut entries) = opened.and_then(list) else { return Vec::new() };
        if let Some(document) = document(&entries.names) {
            entries.names.swap_remove(document);
        }
        walk(self, skill, &entries, limits, &mut Vec::new())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        read_all(path, &self.allowed, self.limit)
    }

    fn read_beside(&self, path: &Path, resource: &str) -> Result<Vec<u8>, ReadError> {
        read_all(&path.with_file_name(resource), &self.allowed, self.limit)
    }
}

impl Folder {
    fn look(
        &self,
        folder: &Path,
        limits: &Limits,
        by_link: &mut bool,
        findings: &mut Vec<Finding>,
    ) -> Result<What, Trouble> {
        let (directory, linked) = self.enter(folder)?;
        *by_link = linked.is_some();
        let mut entries = list(directory)?;
        let Some(document) = document(&entries.names) else {
            let is_folder = |it: &Entry| {
                matches!(it.kind, FileType::Directory | FileType::Symlink | FileType::Unknown)
            };
            let folders = entries.names.iter().filter(|it| is_folder(it) && !is_skipped(&it.name));
            let (named, nameless): (Vec<&Entry>, Vec<&Entry>) = folders.partition(|it| it.is_text);
            findings
                .extend(nameless.iter().map(|it| not_text(&joined(&self.path, folder, &it.name))));
            return Ok(What::Folders(named.iter().map(|it| folder.join(&*it.name)).collect()));
        };
        let entry = entries.names.swap_remove(document);
        let path = joined(&self.path, folder, &entry.name);
        let head = match self.head(&entries.directory, &entry, &path, limits) {
            Ok(head) => head,
            Err(trouble) => {
                findings.extend(finding(&path, &rule::FILE_UNREADABLE, trouble));
                return Ok(What::LeftOut(path));
            }
        };
        if &*entry.name != "SKILL.md" {
            findings.push(Finding::about(
                &rule::FILE_NAME,
                Severity::Warning,
                &path,
                "the file is not called exactly `SKILL.md`; some clients will not find it"
                    .to_owned(),
                "rename it to `SKILL.md`",
            ));
        }
        let resources = match limits.resources {
            Resources::AtOnce => {
                Some(walk(self, path.parent().unwrap_or(&path), &entries, limits, findings))
            }
            Resources::OnDemand => None,
        };
        let by_link = linked.is_some() || head.real.is_some();
        let path: Arc<Path> = path.into();
        let real = match (head.real, linked) {
            (Some(real), _) => real.into(),
            (None, Some(linked)) => linked.join(&*entry.name).into(),
            (None, None) if self.path == self.real => path.clone(),
            (None, None) => joined(&self.real, folder, &entry.name).into(),
        };
        let Head { bytes, size, modified, .. } = head;
        Ok(What::Skill(Box::new(Found {
            path,
            real,
            linked: by_link,
            head: bytes,
            size,
            modified,
            resources,
        })))
    }

    /// The beginning of a `SKILL.md`.
    fn head(
        &self,
        directory: &OwnedFd,
        entry: &Entry,
        path: &Path,
        limits: &Limits,
    ) -> Result<Head, Trouble> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (file, real) = match rustix::fs::openat(
            directory,
            &*entry.name,
            flags | OFlags::NOFOLLOW,
            Mode::empty(),
        ) {
            Ok(file) => (file, None),
            Err(Errno::LOOP) => {
                let real = self.contained(path)?;
                (open_real(&real).map_err(Trouble::Io)?, Some(real))
            }
            // A socket cannot be opened at all.
            Err(Errno::NXIO) => return Err(Trouble::NotRegular),
            Err(errno) => return Err(errno.into()),
        };
        Head::of(&file, real, limits)
    }

    /// A skill in a folder that is no link, found without listing the folder. Nothing for anything
    /// else: a closer look tells what it is.
    fn glance(&self, folder: &Path, limits: &Limits) -> Option<Found> {
        if folder.as_os_str().is_empty() {
            return None;
        }
        let file = open_beneath(&self.directory, &joined(Path::new(""), folder, "SKILL.md"))?;
        let Head { bytes, size, modified, .. } = Head::of(&file, None, limits).ok()?;
        let path: Arc<Path> = joined(&self.path, folder, "SKILL.md").into();
        let real = if self.path == self.real {
            path.clone()
        } else {
            joined(&self.real, folder, "SKILL.md").into()
        };
        Some(Found { path, real, linked: false, head: bytes, size, modified, resources: None })
    }
}

impl Head {
    fn of(file: &OwnedFd, real: Option<PathBuf>, limits: &Limits) -> Result<Self, Trouble> {
        let stat = rustix::fs::fstat(file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Trouble::NotRegular);
        }
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > limits.max_document_size {
            return Err(Trouble::TooLarge(size));
        }
        let mut bytes = Vec::with_capacity(HEAD.min(size as usize + 1));
        fill(file, &mut bytes)?;
        Ok(Self { bytes, real, size, modified: modified(&stat) })
    }
}

/// Opens a file below a directory when no link leads there.
#[cfg(target_os = "linux")]
fn open_beneath(directory: &OwnedFd, path: &Path) -> Option<OwnedFd> {
    use rustix::fs::ResolveFlags;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat2(directory, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(_directory: &OwnedFd, _path: &Path) -> Option<OwnedFd> {
    None
}

/// A path of three parts, made at once.
fn joined(root: &Path, folder: &Path, name: &str) -> PathBuf {
    let length = root.as_os_str().len() + folder.as_os_str().len() + name.len() + 2;
    let mut path = PathBuf::with_capacity(length);
    path.push(root);
    if !folder.as_os_str().is_empty() {
        path.push(folder);
    }
    path.push(name);
    path
}

struct Head {
    bytes: Vec<u8>,
    /// Where a link led.
    real: Option<PathBuf>,
    size: u64,
    modified: Option<SystemTime>,
}

/// Which entry is the `SKILL.md`: the exact name before any other spelling.
pub(super) fn document(names: &[Entry]) -> Option<usize> {
    let exact = names.iter().position(|it| &*it.name == "SKILL.md");
    exact.or_else(|| {
        let spelt =
            names.iter().enumerate().filter(|it| it.1.name.eq_ignore_ascii_case("SKILL.md"));
        spelt.min_by(|a, b| a.1.name.cmp(&b.1.name)).map(|it| it.0)
    })
}

/// Hidden folders are nobody's skills, and neither is what a package manager put there.
fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || name == "node_modules"
}
