//! The files of a package while it is unpacked or read: within limits, and without names that clash.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{
    ArchiveError, ArchiveLimits, LeftOut,
    path::{check_path, fold, is_noise, shown},
};
use crate::{
    digest::{FileDigest, TreeFile},
    sys,
};

/// Files that are being collected.
#[derive(Debug)]
pub(crate) struct Tree<'l> {
    limits: &'l ArchiveLimits,
    contents: Contents,
    /// Whether entries that cannot be used are left out, instead of being an error.
    leaves_out: bool,
    /// The bytes of all files.
    total: u64,
    /// The files, folders, links and what was left out.
    entries: usize,
    /// The paths of files and folders as they are spelled, and whether they are folders, by their folded form.
    names: HashMap<String, (String, bool)>,
    pub(crate) files: BTreeMap<String, TreeFile>,
    /// Links and their targets.
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// Where the bytes of the files go.
#[derive(Debug)]
pub(crate) enum Contents {
    Folder(PathBuf),
    Memory(BTreeMap<String, Vec<u8>>),
}

impl<'l> Tree<'l> {
    pub(crate) fn new(limits: &'l ArchiveLimits, contents: Contents, leaves_out: bool) -> Self {
        Self {
            limits,
            contents,
            leaves_out,
            total: 0,
            entries: 0,
            names: HashMap::new(),
            files: BTreeMap::new(),
            links: BTreeMap::new(),
            left_out: Vec::new(),
        }
    }

    pub(crate) fn into_contents(self) -> Contents {
        self.contents
    }

    /// Adds a file, unless it is left out. The reader is read to its end only if it is added.
    pub(crate) fn add(
        &mut self,
        path: &str,
        size: u64,
        executable: bool,
        bytes: &mut dyn Read,
    ) -> Result<(), ArchiveError> {
        if !self.admit(path, size)? {
            return Ok(());
        }
        let digest = match &mut self.contents {
            Contents::Folder(folder) => {
                let target = folder.join(path);
                let written = |source| ArchiveError::Write { path: target.clone(), source };
                let mut file = create(&target).map_err(written)?;
                let digest = copy(bytes, size, |it| file.write_all(it).map_err(written))?;
                sys::set_mode(&file, executable, true).map_err(written)?;
                digest
            }
            Contents::Memory(files) => {
                let mut content = Vec::new();
                let digest = copy(bytes, size, |it| {
                    content.extend_from_slice(it);
                    Ok(())
                })?;
                files.insert(path.to_owned(), content);
                digest
            }
        };
        self.insert(path, digest, size, executable);
        Ok(())
    }

    /// Adds a link, which is an error unless links may be left out.
    pub(crate) fn add_link(&mut self, path: &str, target: &str) -> Result<(), ArchiveError> {
        self.count()?;
        if is_noise(path) {
            return Ok(());
        }
        if !self.leaves_out {
            return self.leave_out(path, "a link");
        }
        if path.len() > self.limits.name || target.len() > self.limits.name {
            return self.leave_out(path, "a link with a long path");
        }
        match check_path(path) {
            Ok(()) => drop(self.links.insert(path.to_owned(), target.to_owned())),
            Err(reason) => self.leave_out(path, reason)?,
        }
        Ok(())
    }

    /// Adds a file with the content of another.
    pub(crate) fn duplicate(&mut self, from: &TreeFile, path: &str) -> Result<(), ArchiveError> {
        if !self.admit(path, from.size)? {
            return Ok(());
        }
        match &mut self.contents {
            Contents::Folder(folder) => {
                let (source, target) = (folder.join(&from.path), folder.join(path));
                let written = |source| ArchiveError::Write { path: target.clone(), source };
                let mut file = create(&target).map_err(written)?;
                File::open(source)
                    .and_then(|mut it| io::copy(&mut it, &mut file))
                    .map_err(written)?;
                sys::set_mode(&file, from.executable, true).map_err(written)?;
            }
            Contents::Memory(files) => {
                let content = files.get(&from.path).cloned().unwrap_or_default();
                files.insert(path.to_owned(), content);
            }
        }
        self.insert(path, from.digest, from.size, from.executable);
        Ok(())
    }

    /// Notes that an entry is not used, or fails because of it.
    pub(crate) fn leave_out(
        &mut self,
        path: &str,
        reason: &'static str,
    ) -> Result<(), ArchiveError> {
        let path = shown(path);
        if !self.leaves_out {
            return Err(ArchiveError::Refused { path, reason });
        }
        self.left_out.push(LeftOut { path, reason });
        Ok(())
    }

    /// Counts an entry, whatever comes of it.
    pub(crate) fn count(&mut self) -> Result<(), ArchiveError> {
        self.entries += 1;
        match self.entries > self.limits.files {
            true => Err(too_large(format!("{} files and folders", self.limits.files))),
            false => Ok(()),
        }
    }

    /// Moves everything out of the one folder that everything is in, if there is one.
    pub(crate) fn strip_wrapper(&mut self) -> Result<(), ArchiveError> {
        let first = self.files.keys().next().and_then(|it| it.split_once('/'));
        let Some(wrapper) = first.map(|it| format!("{}/", it.0)) else { return Ok(()) };
        if !self.files.keys().all(|it| it.starts_with(&wrapper)) {
            return Ok(());
        }
        if let Contents::Folder(folder) = &self.contents {
            let failed = |source| ArchiveError::Write { path: folder.clone(), source };
            unwrap_folder(folder, wrapper.trim_end_matches('/')).map_err(failed)?;
        }
        let files = std::mem::take(&mut self.files);
        self.files = files
            .into_values()
            .map(|mut it| {
                it.path.drain(..wrapper.len());
                (it.path.clone(), it)
            })
            .collect();
        for left_out in &mut self.left_out {
            if let Some(path) = left_out.path.strip_prefix(&wrapper) {
                left_out.path = path.to_owned();
            }
        }
        Ok(())
    }

    /// Whether a file of this path and size is added; if so, its folders are there afterwards.
    fn admit(&mut self, path: &str, size: u64) -> Result<bool, ArchiveError> {
        self.count()?;
        if is_noise(path) {
            return Ok(false);
        }
        if let Err(reason) = self.check(path) {
            return self.leave_out(path, reason).map(|()| false);
        }
        if size > self.limits.file {
            if self.leaves_out {
                return self.leave_out(path, "a file that is too large").map(|()| false);
            }
            return Err(too_large(format!("{} bytes in a file", self.limits.file)));
        }
        self.total = self.total.saturating_add(size);
        if self.total > self.limits.unpacked {
            return Err(too_large(format!("{} bytes", self.limits.unpacked)));
        }
        // Folders first: one of them can be a file.
        let mut folders = Vec::new();
        for (end, _) in path.match_indices('/') {
            let folder = &path[..end];
            match self.names.get(&fold(folder)) {
                None => folders.push(folder),
                Some((spelled, true)) if spelled == folder => {}
                Some((_, is_folder)) => return self.clash(path, *is_folder),
            }
        }
        let folded = fold(path);
        if let Some((_, is_folder)) = self.names.get(&folded) {
            let is_folder = *is_folder;
            return self.clash(path, !is_folder);
        }
        for folder in folders {
            self.count()?;
            if let Contents::Folder(root) = &self.contents {
                let path = root.join(folder);
                fs::create_dir(&path).map_err(|source| ArchiveError::Write { path, source })?;
            }
            self.names.insert(fold(folder), (folder.to_owned(), true));
        }
        self.names.insert(folded, (path.to_owned(), false));
        Ok(true)
    }

    fn clash(&mut self, path: &str, are_of_one_kind: bool) -> Result<bool, ArchiveError> {
        let reason = match are_of_one_kind {
            true => "a name that is there already, as it is or in another case or form",
            false => "a name that is there already, as a file and as a folder",
        };
        self.leave_out(path, reason).map(|()| false)
    }

    fn check(&self, path: &str) -> Result<(), &'static str> {
        if path.len() > self.limits.name {
            return Err("a path that is too long");
        }
        if path.matches('/').count() > self.limits.depth {
            return Err("a path with too many folders");
        }
        check_path(path)
    }

    fn insert(&mut self, path: &str, digest: FileDigest, size: u64, executable: bool) {
        let file = TreeFile { path: path.to_owned(), digest, size, executable };
        self.files.insert(path.to_owned(), file);
    }
}

pub(crate) fn too_large(limit: String) -> ArchiveError {
    ArchiveError::TooLarge { limit }
}

pub(crate) fn damaged(message: impl Into<String>) -> ArchiveError {
    ArchiveError::Damaged(io::Error::new(io::ErrorKind::InvalidData, message.into()))
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Copies exactly as many bytes as were announced, and returns their digest.
fn copy(
    from: &mut dyn Read,
    size: u64,
    mut write: impl FnMut(&[u8]) -> Result<(), ArchiveError>,
) -> Result<FileDigest, ArchiveError> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 32 * 1024];
    let mut copied = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(read_error(error)),
        };
        copied += count as u64;
        if copied > size {
            return Err(damaged("a file has more bytes than its size says"));
        }
        hasher.update(&buffer[..count]);
        write(&buffer[..count])?;
    }
    match copied == size {
        true => Ok(FileDigest(hasher.finalize().into())),
        false => Err(damaged("a file has fewer bytes than its size says")),
    }
}

/// Returns what reading failed with: a limit that a reader below found exceeded, or damage.
pub(crate) fn read_error(error: io::Error) -> ArchiveError {
    match error.downcast::<ArchiveError>() {
        Ok(error) => error,
        Err(error) => ArchiveError::Damaged(error),
    }
}

/// Moves what is in a folder's one folder up.
fn unwrap_folder(folder: &Path, wrapper: &str) -> io::Result<()> {
    // What is moved up may have the name of the folder that it was in.
    let holder = tempfile::Builder::new().prefix(".wrapper-").tempdir_in(folder)?;
    let inner = holder.path().join("inner");
    fs::rename(folder.join(wrapper), &inner)?;
    for entry in fs::read_dir(&inner)? {
        let name = entry?.file_name();
        fs::rename(inner.join(&name), folder.join(&name))?;
    }
    holder.close()
}
