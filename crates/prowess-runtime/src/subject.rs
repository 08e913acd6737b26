//! The subject of an approval: every file of a skill, or every word of a command.

mod difference;

use std::collections::BTreeMap;

use prowess::{ResourceKind, spec::SKILL_FILE};
use prowess_sandbox::FileType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use self::difference::{difference, list_files};
pub(crate) use self::difference::{file_difference, shorten_text};
use crate::{
    digest::hex,
    entry::SkillRecord,
    remote_skill::{RemoteFile, RemoteSkill},
    skill_folder::{FileKind, FolderError, SkillFile},
};

/// The subject of an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// Its digest, which identifies it.
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
    /// Its mode in octal digits, or its type if it is not a regular file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    mode: String,
    /// Its size in bytes.
    #[serde(default)]
    size: u64,
    /// Its text, unless that is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// The path of the skill as loaded, in addition to the files of its folder.
const LOADED: &str = "";
/// The maximum total size of saved texts, to show changes.
const TEXTS: usize = 512 * 1024;

impl Subject {
    /// Creates the subject of a skill: its definition, and every file of its folder with path, type
    /// and mode. The files that were read are used, else the current ones.
    pub(crate) fn of(entry: &SkillRecord) -> Result<Self, FolderError> {
        let mut subject = Self::default();
        let mut room = TEXTS;
        // The loaded definition is executed, even if the file has changed since.
        let loaded = entry.render();
        match &entry.folder {
            Some(folder) => {
                subject.add(LOADED, loaded.as_bytes(), "", &mut 0);
                let files = folder.files()?;
                // The most important texts are saved first, within the limit.
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

    /// Creates the subject of words: a command, a request.
    pub(crate) fn of_words<'w>(words: impl IntoIterator<Item = &'w [u8]>) -> Self {
        let mut all = Sha256::new();
        for word in words {
            all.update(word.len().to_le_bytes());
            all.update(word);
        }
        Self { digest: hex(all.finalize()), ..Self::default() }
    }

    /// Creates the subject of a text, which is saved.
    #[cfg(feature = "http")]
    pub(crate) fn of_text(path: &str, text: &str) -> Self {
        let digest = crate::digest::digest(text);
        let (mode, size) = (String::new(), text.len() as u64);
        let part = FileDigest { digest: digest.clone(), mode, size, text: Some(text.to_owned()) };
        Self { digest, files: BTreeMap::from([(path.to_owned(), part)]), ..Self::default() }
    }

    /// Returns the text that it was created from, if that is still saved.
    pub(crate) fn into_text(self) -> Option<String> {
        self.files.into_values().next()?.text
    }

    /// Adds the hosts that it may connect to.
    pub(crate) fn with_hosts(self, hosts: &[String]) -> Self {
        let mut hosts = hosts.to_vec();
        hosts.sort_unstable();
        hosts.dedup();
        let words = hosts.iter().map(|it| it.as_bytes());
        let words = [self.digest.as_bytes()].into_iter().chain(words);
        Self { digest: Self::of_words(words).digest, hosts, ..self }
    }

    /// Creates the subject of a remote skill, as the server lists it: every file with its URI.
    pub(crate) fn of_remote(skill: &RemoteSkill) -> Self {
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

    /// Describes the changes since `old`: every file by name, then lines with `+` and `-`; bounded.
    pub(crate) fn difference(&self, old: &Self) -> String {
        difference(&old.files, &self.files)
    }

    /// Lists its files with their sizes, executable ones first; `None` if there is only one.
    pub(crate) fn list_files(&self) -> Option<String> {
        list_files(&self.files)
    }

    /// Drops the texts of the files, and keeps their digests.
    pub(crate) fn drop_texts(&mut self) {
        self.files.values_mut().for_each(|it| it.text = None);
    }

    /// Returns the total size of the saved texts in bytes.
    pub(crate) fn texts_size(&self) -> usize {
        self.files.values().filter_map(|it| it.text.as_ref()).map(String::len).sum()
    }

    fn add_file(&mut self, file: &SkillFile, room: &mut usize) {
        let mode = match file.kind {
            FileKind::Plain(mode) => format!("{mode:o}"),
            // A link is represented by its target; a pipe or device by its type.
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

/// Returns the order of files: the document of a skill, then executable ones, then all others.
fn rank(path: &str, is_executable: bool) -> u8 {
    match path {
        SKILL_FILE | "skill.md" => 0,
        path if is_executable || ResourceKind::of(path) == ResourceKind::Script => 1,
        _ => 2,
    }
}
