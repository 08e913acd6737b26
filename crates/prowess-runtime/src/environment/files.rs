//! The files of a skill for detection: within limits, inside of the skill, without following links.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    io::Read as _,
    path::Path,
};

use prowess::{Skill, spec::SKILL_FILE};
use prowess_sandbox::{FileType, Links, Root};

use super::needs::{NeedNote, Place};
use crate::skill_folder::{FileKind, SkillFile};

/// The files of a skill.
pub(super) struct Files<'a> {
    paths: BTreeSet<String>,
    /// The names of all Python modules: files, and folders with such files.
    modules: BTreeSet<String>,
    source: FileSource<'a>,
    /// The number of bytes that may still be read.
    room: Cell<u64>,
    notes: RefCell<BTreeSet<NeedNote>>,
}

/// The source of the files.
enum FileSource<'a> {
    Folder(Root),
    Skill(&'a Skill),
    Read(&'a [SkillFile]),
}

/// The size limits of a file, and of all files together, in bytes.
const FILE: u64 = 1024 * 1024;
const ALL: u64 = 32 * 1024 * 1024;
/// The limits on the number of files and folders, and on their depth.
const ENTRIES: usize = 10_000;
const DEPTH: usize = 32;
/// Folders that installers and tools create; they contain no scripts of the skill.
const GENERATED: &[&str] =
    &[".git", ".venv", "__pycache__", "node_modules", "site-packages", "venv"];

impl<'a> Files<'a> {
    /// Lists the current files of a skill.
    pub(super) fn of(skill: &'a Skill) -> Self {
        let root = skill.absolute_folder().map(|it| Root::open(&it));
        match root {
            Some(Ok(root)) => Self::in_folder(root),
            Some(Err(error)) => {
                let files = Self::new(BTreeSet::new(), FileSource::Skill(skill));
                files.note(SKILL_FILE, 0, &format!("its folder cannot be read: {error}"));
                files
            }
            None => {
                let paths = skill.resources().iter().map(|it| it.path.to_string());
                Self::new(paths.filter(|it| !is_generated(it)).collect(), FileSource::Skill(skill))
            }
        }
    }

    /// Uses files that were read already.
    pub(super) fn from_read(files: &'a [SkillFile]) -> Self {
        let plain = files.iter().filter(|it| matches!(it.kind, FileKind::Plain(_)));
        let paths = plain.map(|it| it.path.clone()).filter(|it| !is_generated(it));
        Self::new(paths.collect(), FileSource::Read(files))
    }

    fn in_folder(root: Root) -> Self {
        let mut paths = BTreeSet::new();
        let mut faults: Vec<(String, String)> = Vec::new();
        let mut folders = vec![(String::new(), 0)];
        let mut seen = 0;
        while let Some((folder, depth)) = folders.pop() {
            let page = match root.page(Path::new(&folder), Links::Never, 0, ENTRIES) {
                Ok(page) => page,
                Err(error) => {
                    faults.push((folder, error.to_string()));
                    continue;
                }
            };
            seen += page.total;
            if seen > ENTRIES {
                faults.push((
                    folder,
                    format!("there are more than {ENTRIES} files; the rest was not read"),
                ));
                break;
            }
            for listed in page.entries {
                let Some(name) = listed.name.to_str() else { continue };
                let path = if folder.is_empty() { name.into() } else { format!("{folder}/{name}") };
                match listed.kind {
                    FileType::Directory if GENERATED.contains(&name) => {}
                    FileType::Directory if depth < DEPTH => folders.push((path, depth + 1)),
                    FileType::RegularFile => {
                        paths.insert(path);
                    }
                    _ => {}
                }
            }
        }
        let files = Self::new(paths, FileSource::Folder(root));
        for (folder, why) in &faults {
            files.note(if folder.is_empty() { "." } else { folder }, 0, why);
        }
        files
    }

    fn new(paths: BTreeSet<String>, source: FileSource<'a>) -> Self {
        let modules = paths.iter().filter_map(|it| it.strip_suffix(".py"));
        let modules = modules.flat_map(|it| it.split('/')).map(str::to_owned).collect();
        Self { paths, modules, source, room: Cell::new(ALL), notes: RefCell::default() }
    }

    /// Returns the paths of all files, sorted.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Whether there is a file at this path.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Whether there is a folder at this path that contains a file with this extension at any
    /// depth.
    pub(super) fn has_in_folder(&self, folder: &str, ending: &str) -> bool {
        let start = format!("{folder}/");
        let mut inside = self.paths.range(start.clone()..).take_while(|it| it.starts_with(&start));
        inside.any(|it| it.ends_with(ending))
    }

    /// Whether some folder has a Python module of this name.
    pub(super) fn has_module(&self, name: &str) -> bool {
        self.modules.contains(name)
    }

    /// Reads a text file; `None` if it is not text.
    pub(super) fn quiet_text(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    /// Reads a text file; adds a note if it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        if !self.contains(path) {
            return None;
        }
        match self.read(path) {
            Ok(text) => Some(text),
            Err(why) => {
                self.note(path, 0, &why);
                None
            }
        }
    }

    fn read(&self, path: &str) -> Result<String, String> {
        let limit = FILE.min(self.room.get());
        let bytes = self.read_bytes(path, limit)?;
        if bytes.len() as u64 > limit {
            return Err(match limit {
                FILE => format!("it has more than {FILE} bytes, so it was not read"),
                _ => format!("more than {ALL} bytes were read already, so it was not read"),
            });
        }
        self.room.set(self.room.get() - bytes.len() as u64);
        match String::from_utf8(bytes) {
            Ok(text) if text.contains('\0') => Err(NO_TEXT.to_owned()),
            Ok(text) => match text.strip_prefix('\u{feff}') {
                Some(text) => Ok(text.to_owned()),
                None => Ok(text),
            },
            Err(_) => Err(NO_TEXT.to_owned()),
        }
    }

    /// Reads a file up to one byte more than the limit.
    fn read_bytes(&self, path: &str, limit: u64) -> Result<Vec<u8>, String> {
        match &self.source {
            FileSource::Folder(root) => {
                let file = root.file(Path::new(path), Links::Never).map_err(|it| it.to_string())?;
                let mut bytes = Vec::new();
                file.take(limit + 1).read_to_end(&mut bytes).map_err(|it| it.to_string())?;
                Ok(bytes)
            }
            FileSource::Skill(skill) => skill.read(path).map_err(|it| it.to_string()),
            FileSource::Read(files) => {
                let file = files.iter().find(|it| it.path == path);
                Ok(file.map(|it| it.bytes.clone()).unwrap_or_default())
            }
        }
    }

    /// Adds a note on a line of a file; line 0 is the whole file.
    pub(super) fn note(&self, file: &str, line: usize, message: &str) {
        let mut notes = self.notes.borrow_mut();
        if notes.len() < MAX_NOTES {
            notes.insert(NeedNote { place: Place::new(file, line), message: message.to_owned() });
        }
    }

    /// Returns all notes, sorted by place.
    pub(super) fn into_notes(self) -> Vec<NeedNote> {
        self.notes.into_inner().into_iter().collect()
    }
}

/// The note on a file that is not text.
const NO_TEXT: &str = "it is not UTF-8 text, so it was not read";
/// The maximum number of notes.
const MAX_NOTES: usize = 100;

fn is_generated(path: &str) -> bool {
    path.split('/').any(|it| GENERATED.contains(&it))
}

/// Returns the folder of a path; empty at the top.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |it| it.0)
}

/// Returns a path inside of a folder.
pub(super) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns a folder and all above it, the nearest first, up to that of the skill.
pub(super) fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(folder);
    std::iter::from_fn(move || {
        let here = next?;
        next = if here.is_empty() { None } else { Some(folder_of(here)) };
        Some(here)
    })
}

/// Resolves a path relative to a folder; `None` if it leads out of the skill.
pub(super) fn resolve(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains(['\\', ':']) {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
