//! The walk through the files beside a `SKILL.md`.

use std::{
    io::Read as _,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use super::{
    Limits, MAX_DEPTH, MAX_FILES,
    folder::{Folder, document},
    memory::too_large,
    open::{Entries, Entry, list, modified, open_contained},
    trouble::{Trouble, finding, not_text},
};
use crate::{
    finding::{Finding, Severity},
    rule,
    skill::{Kind, Resource},
};

/// Lists the files of a skill, sorted by path; what is in the way goes to `findings`.
pub(super) fn walk(
    folder: &Folder,
    skill: &Path,
    entries: &Entries,
    limits: &Limits,
    findings: &mut Vec<Finding>,
) -> Vec<Resource> {
    let mut walk = Walk { folder, skill, limits, findings, resources: Vec::new() };
    walk.entries(entries, "", 0);
    walk.resources.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walk.resources
}

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
        if depth == MAX_DEPTH {
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
