//! What an approval is bound to: every file of a skill, or every word of a command.

mod difference;

use std::collections::BTreeMap;

use prowess::{ResourceKind, spec::SKILL_FILE};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::difference::{difference, listed};
pub(crate) use self::difference::{file_difference, shortened};
use crate::{
    digest::{self, hex},
    entry::SkillRecord,
    remote_skill::{RemoteFile, RemoteSkill},
    skill_folder::{FileKind, FolderError, SkillFile},
};

/// What was approved, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// What tells it from any other.
    pub(crate) digest: String,
    /// Its files by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) files: BTreeMap<String, FileDigest>,
    /// The hosts that it may connect to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<String>,
}

/// One file of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileDigest {
    digest: String,
    /// Its mode in octal digits, or what it is if it is no file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    mode: String,
    /// How many bytes it has.
    #[serde(default)]
    size: u64,
    /// Its text, where that is not too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// What stands for the skill as it was loaded, beside the files of its folder.
const LOADED: &str = "";
/// How much text is kept of all files, to show what has changed.
const TEXTS: usize = 512 * 1024;

impl Subject {
    /// Looks at a skill: what it executes, and every file of its folder with path, kind and mode.
    /// What was read of the folder counts, else what lies there now.
    pub(crate) fn of(entry: &SkillRecord) -> Result<Self, FolderError> {
        let mut subject = Self::default();
        let mut room = TEXTS;
        // What is executed is what was loaded, whatever the file says by now.
        let loaded = entry.render();
        match &entry.folder {
            Some(folder) => {
                subject.add(LOADED, loaded.as_bytes(), "", &mut 0);
                let files = folder.files()?;
                // What decides is kept, however much else there is.
                let mut files: Vec<&SkillFile> = files.iter().collect();
                files.sort_by_key(|it| (rank(&it.path, it.kind.is_executable()), &*it.path));
                files.into_iter().for_each(|it| subject.add_file(it, &mut room));
            }
            None => subject.add(SKILL_FILE, loaded.as_bytes(), "", &mut room),
        }
        let mut all = Sha256::new();
        for (path, part) in &subject.files {
            all.update(format!("{}\0{path}\0{}\n", path.len(), part.digest));
        }
        subject.digest = hex(all.finalize());
        Ok(subject)
    }

    /// Takes words as they are: a command, a request.
    pub(crate) fn of_words<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> Self {
        let mut all = Sha256::new();
        for word in words {
            all.update(word.len().to_le_bytes());
            all.update(word);
        }
        Self { digest: hex(all.finalize()), ..Self::default() }
    }

    /// Takes a text as it is, and keeps it.
    #[cfg(feature = "http")]
    pub(crate) fn of_text(path: &str, text: &str) -> Self {
        let digest = digest::digest(text);
        let (mode, size) = (String::new(), text.len() as u64);
        let part = FileDigest { digest: digest.clone(), mode, size, text: Some(text.to_owned()) };
        Self { digest, files: BTreeMap::from([(path.to_owned(), part)]), ..Self::default() }
    }

    /// The text that it was made from, as long as it is kept.
    pub(crate) fn into_text(self) -> Option<String> {
        self.files.into_values().next()?.text
    }

    /// The same, with hosts that it may connect to.
    pub(crate) fn with_hosts(self, hosts: &[String]) -> Self {
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        hosts.dedup();
        let words = hosts.iter().map(|it| it.as_bytes());
        let words = [self.digest.as_bytes()].into_iter().chain(words);
        Self { digest: Self::of_words(words).digest, hosts, ..self }
    }

    /// Takes a skill that a server offers as the server lists it: every file with where it is.
    pub(crate) fn offered(skill: &RemoteSkill) -> Self {
        let mut all = Sha256::new();
        let mut subject = Self::default();
        let mut files: Vec<&RemoteFile> = skill.files.iter().collect();
        files.sort_by_key(|it| &it.uri);
        for RemoteFile { uri, path, digest, size } in files {
            let part =
                FileDigest { digest: digest.clone(), mode: String::new(), size: *size, text: None };
            subject.files.insert(path.clone(), part);
            all.update(format!("{}\0{uri}\0{digest}\n", uri.len()));
        }
        subject.digest = hex(all.finalize());
        subject
    }

    /// What has changed since `old`: every file by name, then lines with `+` and `-`; bounded.
    pub(crate) fn difference(&self, old: &Self) -> String {
        difference(&old.files, &self.files)
    }

    /// Its files with their sizes, those first that can run; nothing where there is one alone.
    pub(crate) fn listed(&self) -> Option<String> {
        listed(&self.files)
    }

    /// Forgets what the files say, and still tells them from others.
    pub(crate) fn forget_texts(&mut self) {
        self.files.values_mut().for_each(|it| it.text = None);
    }

    /// How many bytes it keeps of what the files say.
    pub(crate) fn kept(&self) -> usize {
        self.files.values().filter_map(|it| it.text.as_ref()).map(String::len).sum()
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
        let short = bytes.len() <= *room;
        let text = short.then(|| std::str::from_utf8(bytes).ok()).flatten().map(str::to_owned);
        *room -= text.as_ref().map_or(0, String::len);
        let (mode, size) = (mode.to_owned(), bytes.len() as u64);
        self.files.insert(
            path.to_owned(),
            FileDigest { digest: hex(digest.finalize()), mode, size, text },
        );
    }
}

/// What is looked at first: what a skill says, then what it can run, then all else.
fn rank(path: &str, is_executable: bool) -> u8 {
    match path {
        SKILL_FILE | "skill.md" => 0,
        path if is_executable || ResourceKind::of(path) == ResourceKind::Script => 1,
        _ => 2,
    }
}
