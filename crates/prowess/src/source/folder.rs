//! A source on disk: a directory with a folder for each skill.
//!
//! Every file is opened without waiting and looked at before it is read, so that a pipe or device
//! cannot block. A link is followed where it leads to something inside the configured directories;
//! [`open_contained`] is the one place where that is decided for reading.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::{Found, Limits, MAX_FILES, ReadError, Source, Visit, What, memory::too_large};
use crate::{
    finding::{Finding, Severity},
    rule::{self, Rule},
    skill::{Kind, Resource, Scope},
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
    allowed: Arc<[PathBuf]>,
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
    fn contained(&self, path: &Path) -> Result<PathBuf, Trouble> {
        let real = std::fs::canonicalize(path).map_err(Trouble::Io)?;
        if self.allowed.iter().any(|it| real.starts_with(it)) {
            Ok(real)
        } else {
            Err(Trouble::Escapes(real))
        }
    }
}

/// Why an entry was not taken.
enum Trouble {
    Io(io::Error),
    Escapes(PathBuf),
    NotRegular,
    TooLarge(u64),
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

impl Source for Folder {
    fn scope(&self) -> Scope {
        self.scope
    }

    fn visit(&self, folder: &Path, limits: &Limits) -> Visit {
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
        let mut resources = Vec::new();
        if !entries.names.is_empty() {
            let skill = path.parent().unwrap_or(&path);
            let mut walk = Walk { folder: self, skill, limits, findings, resources };
            walk.entries(&entries, "", 0);
            resources = walk.resources;
            resources.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        }
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
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Trouble::NotRegular);
        }
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > limits.max_document_size {
            return Err(Trouble::TooLarge(size));
        }
        let mut bytes = Vec::with_capacity(HEAD.min(size as usize + 1));
        fill(&file, &mut bytes)?;
        Ok(Head { bytes, real, size, modified: modified(&stat) })
    }
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

struct Entry {
    /// The name; with replacement characters where it is no text.
    name: Box<str>,
    is_text: bool,
    kind: FileType,
}

struct Entries {
    directory: OwnedFd,
    names: Vec<Entry>,
}

/// The entries of a directory.
fn list(directory: OwnedFd) -> Result<Entries, Trouble> {
    let mut names = Vec::new();
    each_entry(&directory, |name, kind| {
        if !matches!(name, b"." | b"..") {
            let text = String::from_utf8_lossy(name);
            let is_text = matches!(text, Cow::Borrowed(_));
            names.push(Entry { name: text.into(), is_text, kind });
        }
    })?;
    Ok(Entries { directory, names })
}

#[cfg(target_os = "linux")]
fn each_entry(directory: &OwnedFd, mut take: impl FnMut(&[u8], FileType)) -> Result<(), Errno> {
    let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 8192];
    let mut entries = rustix::fs::RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        take(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn each_entry(directory: &OwnedFd, mut take: impl FnMut(&[u8], FileType)) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(directory)? {
        let entry = entry?;
        take(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(())
}

/// Which entry is the `SKILL.md`: the exact name before any other spelling.
fn document(names: &[Entry]) -> Option<usize> {
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

/// The walk through the other files of a skill.
struct Walk<'a> {
    folder: &'a Folder,
    skill: &'a Path,
    limits: &'a Limits,
    findings: &'a mut Vec<Finding>,
    resources: Vec<Resource>,
}

impl Walk<'_> {
    fn entries(&mut self, entries: &Entries, prefix: &str, depth: usize) {
        for entry in &entries.names {
            if matches!(&*entry.name, ".git" | "node_modules") {
                continue;
            }
            if self.resources.len() == MAX_FILES {
                self.findings.push(Finding::about(
                    &rule::SKILL_TOO_MANY_FILES,
                    Severity::Warning,
                    self.skill,
                    format!("the skill has more than {MAX_FILES} files; the others are left out"),
                    "leave out what is not needed",
                ));
                return;
            }
            let path = if prefix.is_empty() {
                entry.name.to_string()
            } else {
                format!("{prefix}/{}", entry.name)
            };
            if !entry.is_text {
                self.findings.push(not_text(&self.skill.join(&path)));
                continue;
            }
            if let Err(trouble) = self.entry(&entries.directory, entry, &path, depth) {
                self.findings.extend(finding(
                    &self.skill.join(&path),
                    &rule::FILE_UNREADABLE,
                    trouble,
                ));
            }
        }
    }

    fn entry(
        &mut self,
        directory: &OwnedFd,
        entry: &Entry,
        path: &str,
        depth: usize,
    ) -> Result<(), Trouble> {
        let mut kind = entry.kind;
        let mut stat = None;
        if matches!(kind, FileType::Unknown | FileType::RegularFile) {
            let found = rustix::fs::statat(directory, &*entry.name, AtFlags::SYMLINK_NOFOLLOW)?;
            kind = FileType::from_raw_mode(found.st_mode);
            stat = Some(found);
        }
        if kind == FileType::Symlink {
            let real = self.folder.contained(&self.skill.join(path))?;
            let found = rustix::fs::stat(&real)?;
            kind = FileType::from_raw_mode(found.st_mode);
            // A link to a folder that holds it would never end.
            if kind == FileType::Directory && self.skill_real().starts_with(&real) {
                return Ok(());
            }
            stat = Some(found);
        }
        match (kind, stat) {
            (FileType::RegularFile, Some(stat)) => self.file(path, &stat),
            (FileType::Directory, _) => self.folder(directory, &entry.name, path, depth)?,
            _ => return Err(Trouble::NotRegular),
        }
        Ok(())
    }

    fn folder(
        &mut self,
        directory: &OwnedFd,
        name: &str,
        path: &str,
        depth: usize,
    ) -> Result<(), Trouble> {
        if depth == super::MAX_DEPTH {
            self.findings.push(Finding::about(
                &rule::TOO_DEEP,
                Severity::Warning,
                &self.skill.join(path),
                "the folder lies too deep; its files are left out".to_owned(),
                "keep resources one or two folders deep",
            ));
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entries = list(rustix::fs::openat(directory, name, flags, Mode::empty())?)?;
        if document(&entries.names).is_some() {
            self.findings.push(Finding::about(
                &rule::NESTED_SKILL,
                Severity::Warning,
                &self.skill.join(path).join("SKILL.md"),
                "this skill lies inside another, so that it is not found".to_owned(),
                "move its folder up, or name its parent as a directory",
            ));
        }
        self.entries(&entries, path, depth + 1);
        Ok(())
    }

    fn file(&mut self, path: &str, stat: &Stat) {
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > self.limits.max_file_size {
            self.findings.push(too_large(&self.skill.join(path), size, self.limits));
            return;
        }
        self.resources.push(Resource {
            kind: Kind::of(path),
            is_text: text_by_name(path).unwrap_or_else(|| self.text_by_content(path)),
            path: path.into(),
            size,
            modified: modified(stat),
        });
    }

    fn text_by_content(&self, path: &str) -> bool {
        let file = open_contained(&self.skill.join(path), &self.folder.allowed);
        let mut bytes = [0; 1024];
        let length = file.ok().and_then(|mut it| it.read(&mut bytes).ok()).unwrap_or(0);
        match str::from_utf8(&bytes[..length]) {
            Ok(text) => !text.contains('\0'),
            // A character may be cut apart at the end.
            Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
        }
    }

    fn skill_real(&self) -> PathBuf {
        std::fs::canonicalize(self.skill).unwrap_or_else(|_| self.skill.to_owned())
    }
}

/// Whether a file is text, where its ending tells.
fn text_by_name(path: &str) -> Option<bool> {
    let ending = path
        .rsplit('/')
        .next()
        .and_then(|file| file.rsplit_once('.'))
        .map(|it| it.1.to_ascii_lowercase());
    match ending.as_deref()? {
        "md" | "txt" | "sh" | "bash" | "py" | "js" | "mjs" | "ts" | "json" | "yml" | "yaml"
        | "toml" | "html" | "css" | "xml" | "csv" | "rs" | "go" | "rb" | "sql" | "svg" | "ini"
        | "cfg" => Some(true),
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "ico" | "pdf" | "zip" | "gz" | "tar" | "xz"
        | "zst" | "ttf" | "otf" | "woff" | "woff2" | "docx" | "xlsx" | "pptx" | "pyc" | "so"
        | "wasm" | "mp3" | "mp4" => Some(false),
        _ => None,
    }
}

fn modified(stat: &Stat) -> Option<SystemTime> {
    let seconds = u64::try_from(stat.st_mtime).ok()?;
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::new(seconds, u32::try_from(stat.st_mtime_nsec).ok()?))
}

/// Reads into what is free of a buffer, until it is full or the file ends.
fn fill(file: &OwnedFd, bytes: &mut Vec<u8>) -> Result<(), Trouble> {
    loop {
        let free = bytes.capacity() - bytes.len();
        match rustix::io::read(file, rustix::buffer::spare_capacity(bytes)) {
            // An ordinary file gives less than was asked for only at its end.
            Ok(read) if read < free || read == 0 => return Ok(()),
            Ok(_) if bytes.len() == bytes.capacity() => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Reads a whole file, if it lies inside `allowed`.
fn read_all(path: &Path, allowed: &[PathBuf], limit: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let file = open_contained(path, allowed)?;
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// Reads an ordinary file of at most a mebibyte, to show lines of it.
pub(super) fn read_for_display(path: &Path) -> Option<Vec<u8>> {
    let everywhere = [PathBuf::from("/")];
    read_all(path, &everywhere, 1024 * 1024).ok()
}

/// Opens an ordinary file that lies inside `allowed` once every link is resolved.
///
/// The resolved path is opened without following any link, so that one swapped in meanwhile leads
/// nowhere.
fn open_contained(path: &Path, allowed: &[PathBuf]) -> Result<File, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let real = std::fs::canonicalize(path).map_err(failed)?;
    if !allowed.iter().any(|it| real.starts_with(it)) {
        return Err(ReadError::Outside { path: path.to_owned() });
    }
    let file = open_real(&real).map_err(failed)?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ReadError::NotRegular { path: path.to_owned() });
    }
    Ok(File::from(file))
}

/// Opens a path that holds no link; a link that has come since is an error.
fn open_real(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags};
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            // Kernels before 5.6 and some containers do not have it.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The finding about an entry whose name is no text, so that nobody could ask for it.
fn not_text(path: &Path) -> Finding {
    Finding::about(
        &rule::FILE_UNREADABLE,
        Severity::Error,
        path,
        "the name of this entry is not valid UTF-8; it is left out".to_owned(),
        "rename it",
    )
}

/// The finding about an entry that was not taken; `unreadable` is the rule for a plain refusal.
fn finding(path: &Path, unreadable: &'static Rule, trouble: Trouble) -> Option<Finding> {
    let document = std::ptr::eq(unreadable, &rule::FILE_UNREADABLE)
        && path.file_name().is_some_and(|it| it.eq_ignore_ascii_case("SKILL.md"));
    let weight = if document { Severity::Error } else { Severity::Warning };
    Some(match trouble {
        // It was there a moment ago: nobody misses it.
        Trouble::Io(error) if error.kind() == io::ErrorKind::NotFound && !is_link(path) => {
            return None;
        }
        Trouble::Io(error) if error.kind() == io::ErrorKind::NotFound => Finding::about(
            &rule::LINK_BROKEN,
            weight,
            path,
            "the link leads nowhere".to_owned(),
            "remove the link or restore what it leads to",
        ),
        Trouble::Io(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            Finding::about(
                &rule::LINK_BROKEN,
                weight,
                path,
                "the link leads back to itself".to_owned(),
                "remove the link",
            )
        }
        // A file in a directory of skills is nothing to report.
        Trouble::Io(error) if error.kind() == io::ErrorKind::NotADirectory => return None,
        Trouble::Io(error) => Finding::about(
            unreadable,
            Severity::Error,
            path,
            format!("cannot be read: {}", lower(&error)),
            "check its permissions",
        ),
        Trouble::Escapes(real) => Finding::about(
            &rule::LINK_ESCAPES,
            Severity::Error,
            path,
            format!("the link leads out of the configured directories, to `{}`", real.display()),
            "name the directory that it leads to as well, or copy the folder",
        ),
        Trouble::NotRegular => Finding::about(
            if document { &rule::FILE_NOT_REGULAR } else { &rule::RESOURCE_NOT_REGULAR },
            weight,
            path,
            "this is not an ordinary file".to_owned(),
            "replace it with a file",
        ),
        Trouble::TooLarge(size) => Finding::about(
            &rule::FILE_TOO_LARGE,
            Severity::Error,
            path,
            format!("the file has {size} bytes, more than the limit"),
            "move parts of it to files beside it",
        ),
    })
}

/// The words of a system error, without its number.
fn lower(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.chars()
        .enumerate()
        .map(|(at, c)| if at == 0 { c.to_ascii_lowercase() } else { c })
        .collect()
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink())
}
