//! What an approval is bound to: every file of a skill, or every word of a command.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use similar::TextDiff;

use crate::{
    entry::Entry,
    skill_folder::{FileKind, FolderError, SkillFile},
};

/// What was approved, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// What tells it from any other.
    pub(crate) digest: String,
    /// Its files by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files: BTreeMap<String, Part>,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    digest: String,
    /// Its text, where that is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// What stands for the skill as it was loaded, beside the files of its folder.
const LOADED: &str = "";
/// How much text is kept to show what has changed.
const TEXT: usize = 16 * 1024;
const TEXTS: usize = 64 * 1024;
/// How much of a difference is shown.
const LINES: usize = 200;
const LINE: usize = 200;

impl Subject {
    /// Looks at a skill: what it executes, and every file of its folder with path, kind and mode.
    /// What was read of the folder counts, else what lies there now.
    pub(crate) fn of(entry: &Entry) -> Result<Self, FolderError> {
        let mut subject = Self::default();
        let mut room = TEXTS;
        // What is executed is what was loaded, whatever the file says by now.
        let loaded = entry.render();
        match &entry.folder {
            Some(folder) => {
                subject.add(LOADED, loaded.as_bytes(), "", &mut 0);
                folder.files()?.iter().for_each(|it| subject.add_file(it, &mut room));
            }
            None => subject.add("SKILL.md", loaded.as_bytes(), "", &mut room),
        }
        let mut all = Sha256::new();
        for (path, part) in &subject.files {
            all.update(format!("{}\0{path}\0{}\n", path.len(), part.digest));
        }
        subject.digest = hex(all);
        Ok(subject)
    }

    /// Takes words as they are: a command, a request.
    pub(crate) fn of_words<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> Self {
        let mut all = Sha256::new();
        for word in words {
            all.update(word.len().to_le_bytes());
            all.update(word);
        }
        Self { digest: hex(all), files: BTreeMap::new() }
    }

    /// What has changed since `old`, as lines with `+` and `-`; bounded.
    pub(crate) fn difference(&self, old: &Self) -> String {
        let mut out = String::new();
        let paths = old.files.keys().chain(self.files.keys());
        let paths: BTreeSet<&String> = paths.filter(|it| *it != LOADED).collect();
        for path in paths {
            match (old.files.get(path), self.files.get(path)) {
                (Some(before), Some(after)) if before.digest == after.digest => {}
                (before, after) => show(path, before, after, &mut out),
            }
        }
        let more = out.lines().count().saturating_sub(LINES);
        let mut shown: String = out.lines().take(LINES).map(|it| cut(it) + "\n").collect();
        if more > 0 {
            let _ = writeln!(shown, "… and {more} more lines");
        }
        shown
    }

    fn add_file(&mut self, file: &SkillFile, room: &mut usize) {
        let mode = match file.kind {
            FileKind::Plain(mode) => format!("{mode:o}"),
            // A link counts by where it leads; a pipe or device by being one.
            FileKind::Link => format!("{:?}", FileType::Symlink),
            FileKind::Other(kind) => format!("{kind:?}"),
        };
        self.add(&file.path, &file.bytes, &mode, room);
    }

    fn add(&mut self, path: &str, bytes: &[u8], mode: &str, room: &mut usize) {
        let mut digest = Sha256::new();
        digest.update(format!("{mode}\0"));
        digest.update(bytes);
        let short = bytes.len() <= TEXT.min(*room);
        let text = short.then(|| std::str::from_utf8(bytes).ok()).flatten().map(str::to_owned);
        *room -= text.as_ref().map_or(0, String::len);
        self.files.insert(path.to_owned(), Part { digest: hex(digest), text });
    }
}

/// Shows how one file differs.
fn show(path: &str, before: Option<&Part>, after: Option<&Part>, out: &mut String) {
    let text = |part: Option<&Part>| match part {
        Some(part) => part.text.clone(),
        None => Some(String::new()),
    };
    let what = match (before, after) {
        (None, _) => "is new",
        (_, None) => "is gone",
        _ => "has changed",
    };
    let _ = writeln!(out, "{path} {what}");
    if let (Some(before), Some(after)) = (text(before), text(after)) {
        let difference = TextDiff::from_lines(&before, &after);
        let _ = write!(out, "{}", difference.unified_diff().context_radius(2));
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
