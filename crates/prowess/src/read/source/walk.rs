//! Lists the files beside a `SKILL.md`.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use super::{
    MAX_DEPTH, MAX_ENTRIES, SizeLimits,
    folder::{Folder, document_index},
    mark::VisitMarks,
    open::{Entries, FolderEntry, list, open_contained},
    sys::{self, FolderHandle, Kind, State},
    trouble::{Role, Trouble, finding},
};
use crate::{
    finding::{Finding, Severity, rule},
    read::source::{Resource, ResourceKind},
    spec::SKILL_FILE,
};

/// Lists the files of a skill, sorted by path, and sums the bytes of those that are too large;
/// problems are added to `findings`.
pub(super) fn walk(
    folder: &Folder,
    skill: &Path,
    entries: Entries,
    limits: &SizeLimits,
    findings: &mut Vec<Finding>,
    noted: Option<&mut VisitMarks>,
) -> (Vec<Resource>, u64) {
    let (resources, omitted, seen) = (Vec::new(), 0, 0);
    let mut walk = Walk { folder, skill, limits, findings, noted, resources, omitted, seen };
    walk.entries(entries, &FolderPath { path: String::new(), depth: 0, linked: false });
    walk.resources.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    (walk.resources, walk.omitted)
}

struct Walk<'a> {
    folder: &'a Folder,
    skill: &'a Path,
    limits: &'a SizeLimits,
    findings: &'a mut Vec<Finding>,
    /// The marks of what was looked at, if they are wanted.
    noted: Option<&'a mut VisitMarks>,
    resources: Vec<Resource>,
    /// The total size of the files that are too large, in bytes.
    omitted: u64,
    /// The number of entries that were looked at.
    seen: usize,
}

/// The path to a folder of the skill.
struct FolderPath {
    path: String,
    depth: usize,
    /// Whether it contains a link.
    linked: bool,
}

impl FolderPath {
    fn displayed(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }
}

impl Walk<'_> {
    fn entries(&mut self, mut entries: Entries, way: &FolderPath) {
        // The entries omitted at the limit must not depend on the order on disk.
        entries.names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        for entry in &entries.names {
            if matches!(&*entry.name, ".git" | "node_modules") {
                continue;
            }
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                if self.seen == MAX_ENTRIES + 1 {
                    self.note(
                        &rule::SKILL_TOO_MANY_FILES,
                        "",
                        format!(
                            "the skill has more than {MAX_ENTRIES} files; the others are left out"
                        ),
                        "remove files that are not needed",
                    );
                }
                return;
            }
            let path = way.displayed(&entry.name);
            if let Err(trouble) = self.entry(&entries.directory, entry, &path, way) {
                self.findings.extend(finding(&self.skill.join(&path), Role::Resource, trouble));
            }
        }
    }

    fn entry(
        &mut self,
        directory: &FolderHandle,
        entry: &FolderEntry,
        path: &str,
        way: &FolderPath,
    ) -> Result<(), Trouble> {
        if !entry.is_text {
            return Err(Trouble::NotText);
        }
        match entry.kind {
            Kind::Folder => self.subfolder(directory.folder(&entry.name)?, path, way, way.linked),
            Kind::File | Kind::Link | Kind::Unknown => {
                let state = directory.state_of(&entry.name)?;
                match state.kind {
                    Kind::File => self.file(path, &state),
                    Kind::Link => self.link(path, way),
                    Kind::Folder => {
                        self.subfolder(directory.folder(&entry.name)?, path, way, way.linked)
                    }
                    _ => Err(Trouble::NotRegular),
                }
            }
            Kind::Other => Err(Trouble::NotRegular),
        }
    }

    /// Follows a link, but not a second one on the same path, nor one to a folder that contains it.
    fn link(&mut self, path: &str, way: &FolderPath) -> Result<(), Trouble> {
        if let Some(noted) = &mut self.noted {
            noted.is_more = true;
        }
        let real = self.folder.resolve_contained(&self.skill.join(path))?;
        self.folder.watch_target(self.skill, &real);
        if let Some(other) = skill_of(&real).filter(|it| *it != self.real("")) {
            let name = other.file_name().unwrap_or_default().to_string_lossy();
            let message =
                format!("this is a link into the skill `{name}`, so its scripts are not run");
            self.note(&rule::RESOURCE_NOT_REGULAR, path, message, "copy the files");
        }
        let state = sys::state(&real)?;
        match state.kind {
            Kind::File => self.file(path, &state),
            Kind::Folder if way.linked || self.real(&way.path).starts_with(&real) => {
                Err(Trouble::Circle)
            }
            Kind::Folder => self.subfolder(FolderHandle::open(&real)?, path, way, true),
            _ => Err(Trouble::NotRegular),
        }
    }

    fn subfolder(
        &mut self,
        directory: FolderHandle,
        path: &str,
        way: &FolderPath,
        linked: bool,
    ) -> Result<(), Trouble> {
        if way.depth == MAX_DEPTH {
            let message = "the folder is nested too deeply; its files are left out".to_owned();
            self.note(&rule::TOO_DEEP, path, message, "keep resources one or two folders deep");
            return Ok(());
        }
        if self.noted.is_some() {
            self.record_mark(path, &directory.state()?);
        }
        self.folder.watch(self.skill, &self.skill.join(path));
        let entries = list(directory)?;
        if document_index(&entries.names).is_some() {
            self.note(
                &rule::NESTED_SKILL,
                &format!("{path}/SKILL.md"),
                "this skill is inside another skill, so it is not found".to_owned(),
                "move its folder up, or add its parent as a directory",
            );
        }
        self.entries(entries, &FolderPath { path: path.to_owned(), depth: way.depth + 1, linked });
        Ok(())
    }

    fn record_mark(&mut self, path: &str, state: &State) {
        if let Some(noted) = &mut self.noted {
            noted.marks.push((path.into(), state.mark));
        }
    }

    fn file(&mut self, path: &str, state: &State) -> Result<(), Trouble> {
        self.record_mark(path, state);
        let size = state.size;
        let limit = self.limits.max_file_size;
        if size > limit {
            self.omitted = self.omitted.saturating_add(size);
            return Err(Trouble::TooLarge { size, limit });
        }
        self.resources.push(Resource {
            kind: ResourceKind::of(path),
            is_text: is_text_by_name(path).unwrap_or_else(|| self.is_text_by_content(path)),
            path: path.into(),
            size,
            modified: state.modified,
        });
        Ok(())
    }

    fn is_text_by_content(&self, path: &str) -> bool {
        let file = open_contained(&self.skill.join(path), &self.folder.allowed);
        let mut bytes = [0; 1024];
        let length = file.ok().and_then(|mut it| it.read(&mut bytes).ok()).unwrap_or(0);
        match str::from_utf8(&bytes[..length]) {
            Ok(text) => !text.contains('\0'),
            // A character may be cut off at the end.
            Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
        }
    }

    fn note(&mut self, rule: &'static rule::Rule, path: &str, message: String, hint: &'static str) {
        let path = if path.is_empty() { self.skill.to_owned() } else { self.skill.join(path) };
        self.findings.push(Finding::new(rule, Severity::Warning, &path, message, hint));
    }

    /// Returns a path of the skill with all links resolved.
    fn real(&self, path: &str) -> PathBuf {
        let path = self.skill.join(path);
        std::fs::canonicalize(&path).unwrap_or(path)
    }
}

/// Returns the folder of the skill that a real path is, or is inside; `None` if there is none.
pub fn skill_of(path: &Path) -> Option<&Path> {
    path.ancestors().find(|it| it.join(SKILL_FILE).is_file())
}

/// Whether a file is text, if its extension tells.
fn is_text_by_name(path: &str) -> Option<bool> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let ending = file.rsplit_once('.')?.1.to_ascii_lowercase();
    match ending.as_str() {
        "md" | "txt" | "sh" | "bash" | "py" | "js" | "mjs" | "ts" | "json" | "yml" | "yaml"
        | "toml" | "html" | "css" | "xml" | "csv" | "rs" | "go" | "rb" | "sql" | "svg" | "ini"
        | "cfg" => Some(true),
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "ico" | "pdf" | "zip" | "gz" | "tar" | "xz"
        | "zst" | "ttf" | "otf" | "woff" | "woff2" | "docx" | "xlsx" | "pptx" | "pyc" | "so"
        | "wasm" | "mp3" | "mp4" => Some(false),
        _ => None,
    }
}
