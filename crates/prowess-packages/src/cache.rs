//! The cache of fetched packages: files by digest, and folders made of them.
//!
//! ```text
//! blobs/ab/cdef…      a file by its SHA-256, read-only, with a fixed time; `.x` for an executable one
//! trees/0123…         a folder of hard links to blobs, by its content digest
//! keys/4567….json     which tree was fetched for a key
//! drafts/             folders that are being filled, each with a file that its owner has locked
//! lock                locked by everybody who uses the cache, and alone by who removes from it
//! ```
//!
//! A blob that somebody changed through one of its links has another time, and is hashed again
//! before it is used.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    str::FromStr as _,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use crate::{
    archive::check_path,
    digest::{ContentDigest, FileDigest, TreeFile},
    source::SkillSource,
    sys,
};

/// The time of all blobs, in seconds since 1970.
const TIME: u64 = 1_000_000_000;
/// When a draft is removed whose owner cannot be asked.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// The most bytes of a file of `keys`.
const KEY_FILE: u64 = 64 << 20;
/// From how many new files on everything is synced at once, where that is possible.
const MANY: usize = 16;
/// From how many files on a second thread helps.
const TWO_THREADS: usize = 64;

/// The cache of fetched packages. Several processes can use one at the same time, and one that is
/// killed leaves nothing behind that another would use.
///
/// What [`insert`](Self::insert) has returned is on the disk, names included, and so are folders of
/// [`place`](Self::place).
#[derive(Debug, Clone)]
pub struct PackageCache {
    folder: PathBuf,
    /// Keeps others from removing files; `None` where files cannot be locked.
    _lock: Option<Arc<File>>,
}

/// An empty folder to unpack into; removed when it is dropped.
#[derive(Debug)]
pub struct CacheDraft {
    folder: tempfile::TempDir,
    /// Locked as long as the draft is in use.
    _owner: tempfile::TempPath,
    _lock: File,
    _cache: PackageCache,
}

/// How files were put somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placing {
    /// All as hard links to files of the cache.
    HardLinks,
    /// Some or all as copies, because hard links were not possible or not wanted.
    Copies,
}

/// The number and size of files in a cache, or removed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheSize {
    /// The number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The cache cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// A file or folder of it, or a folder to write, cannot be used.
    #[error("cannot {action} `{path}`")]
    Io {
        /// The verb, such as `read`.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file is not in the cache, or not as it was written.
    #[error("`{0}` is not in the cache")]
    Missing(ContentDigest),
    /// Files cannot be removed while others use the cache.
    #[error("the cache `{0}` is in use")]
    InUse(PathBuf),
}

impl CacheError {
    /// Returns what a user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the permissions and the free space",
            Self::Missing(_) => "fetch it again, without `--offline`",
            Self::InUse(_) => "try again when no other command is running",
        }
    }
}

/// A read-only folder in the cache, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchedTree {
    /// The folder; do not write there.
    pub folder: PathBuf,
    /// Its files, in the byte order of their paths.
    pub files: Vec<TreeFile>,
    /// The digest of its files.
    pub digest: ContentDigest,
    /// The source that was asked for.
    pub source: SkillSource,
    /// The URL or path that it was fetched from, after redirects.
    pub url: String,
    /// The commit of a repository, in hex.
    pub commit: Option<String>,
    /// The branch or tag that was followed, such as `refs/heads/main`.
    pub reference: Option<String>,
    /// The version that a registry gave.
    pub version: Option<String>,
    /// When this version was published, in seconds since 1970: the time of the commit, or what a registry says.
    pub published: Option<u64>,
    /// Notes for the user, such as about links that were left out: each a sentence.
    pub notes: Vec<String>,
    /// Why its registry warns of it; a user should be asked before it is used.
    pub warning: Option<String>,
}

impl FetchedTree {
    /// Creates one without a commit, reference, version, time and notes.
    pub fn new(folder: PathBuf, files: Vec<TreeFile>, source: SkillSource, url: &str) -> Self {
        Self {
            digest: ContentDigest::of(&files),
            folder,
            files,
            source,
            url: url.to_owned(),
            commit: None,
            reference: None,
            version: None,
            published: None,
            notes: Vec::new(),
            warning: None,
        }
    }
}

impl PackageCache {
    /// Opens or creates a cache in a folder, which must be the user's own: others could put anything
    /// into it.
    pub fn open(folder: &Path) -> Result<Self, CacheError> {
        sys::create_private_folder(folder).map_err(|it| failed("create", folder, it))?;
        sys::check_own(folder).map_err(|it| failed("use", folder, it))?;
        for name in ["blobs", "trees", "keys", "drafts"] {
            let path = folder.join(name);
            sys::create_private_folder(&path).map_err(|it| failed("create", &path, it))?;
        }
        // Without the tag, programs that make backups would save what can be fetched again.
        let tag = folder.join("CACHEDIR.TAG");
        if !tag.exists() {
            let text = "Signature: 8a477f597d28d172789f06886806bc55\n";
            fs::write(&tag, text).map_err(|it| failed("write", &tag, it))?;
        }
        let path = folder.join("lock");
        let lock = open_lock(&path).map_err(|it| failed("open", &path, it))?;
        let lock = match lock.lock_shared() {
            Ok(()) => Some(Arc::new(lock)),
            Err(error) if is_not_supported(&error) => None,
            Err(error) => return Err(failed("lock", &path, error)),
        };
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Creates an empty folder on the file system of the cache, and removes those of killed processes.
    pub fn draft(&self) -> Result<CacheDraft, CacheError> {
        let drafts = self.folder.join("drafts");
        let failed = |it| failed("create a folder in", &drafts, it);
        // While this is locked, no draft is without the lock of its owner.
        let gate = open_lock(&self.folder.join("drafts.lock")).map_err(failed)?;
        match gate.lock() {
            Err(error) if !is_not_supported(&error) => return Err(failed(error)),
            _ => remove_drafts(&drafts),
        }
        let owner = tempfile::Builder::new().prefix("draft-").suffix(".lock").tempfile_in(&drafts);
        let (lock, owner) = owner.map_err(failed)?.into_parts();
        match lock.try_lock() {
            Err(TryLockError::Error(error)) if is_not_supported(&error) => {}
            other => other.map_err(|it| failed(it.into()))?,
        }
        let folder = tempfile::Builder::new()
            .prefix(owner.file_stem().unwrap_or_default())
            .rand_bytes(0)
            .tempdir_in(&drafts)
            .map_err(failed)?;
        Ok(CacheDraft { folder, _owner: owner, _lock: lock, _cache: self.clone() })
    }

    /// Moves the files of a draft into the cache, and returns a folder of the cache that has them.
    ///
    /// The digests are those of [`unpack`](crate::unpack), which wrote the files.
    pub fn insert(&self, draft: CacheDraft, files: &[TreeFile]) -> Result<PathBuf, CacheError> {
        let mut new = Vec::new();
        for file in files {
            let path = draft.path().join(&file.path);
            if self.keep(&path, file).map_err(|it| failed("keep", &path, it))? {
                new.push(path);
            }
        }
        sync_all(new.iter().map(PathBuf::as_path))?;
        self.keep_folder(draft.path(), files)
    }

    /// Returns a folder of the cache with these files if all of them are there, unchanged.
    pub fn folder_of(&self, files: &[TreeFile]) -> Option<PathBuf> {
        let folder = self.tree(&ContentDigest::of(files));
        if is_whole(&folder, files) {
            return Some(folder);
        }
        // The files can be there without the folder, or the folder with a file that was changed.
        let draft = self.draft().ok()?;
        let inner = draft.path().join("tree");
        fs::create_dir(&inner).ok()?;
        if self.link_all(files, &inner, false).ok()?.0 == Placing::Copies {
            for file in files {
                seal(&inner.join(&file.path), file.executable).ok()?;
            }
        }
        self.keep_folder(&inner, files).ok()
    }

    /// Returns whether all of these files are there, unchanged.
    pub fn contains(&self, files: &[TreeFile]) -> bool {
        files.iter().all(|it| is_intact(&self.blob(it), it))
    }

    /// Writes files to a new folder that does not exist yet, as hard links or copies, and syncs it.
    /// After an error, nothing of it is left.
    ///
    /// Linked files cannot be written to; whoever does nevertheless changes all of their links,
    /// which is noticed before the cache uses them again.
    pub fn place(&self, files: &[TreeFile], folder: &Path) -> Result<Placing, CacheError> {
        self.place_new(&[(files, folder)], false).map(|it| it[0])
    }

    /// Writes files to a new folder like [`place`](Self::place), as copies that can be changed.
    pub fn copy(&self, files: &[TreeFile], folder: &Path) -> Result<Placing, CacheError> {
        self.place_new(&[(files, folder)], true).map(|it| it[0])
    }

    /// Writes many folders like [`place`](Self::place), all or none of them, and syncs them once.
    pub fn place_all(&self, folders: &[(&[TreeFile], &Path)]) -> Result<Vec<Placing>, CacheError> {
        self.place_new(folders, false)
    }

    /// Remembers which tree a key such as `git URL COMMIT` stands for.
    pub fn remember(&self, key: &str, tree: &FetchedTree) -> Result<(), CacheError> {
        let path = self.key_file(key);
        let folder = self.folder.join("keys");
        let failed = |it| failed("write", &path, it);
        let entry = KeyFile {
            version: 1,
            key: key.to_owned(),
            digest: tree.digest.to_string(),
            source: tree.source.to_string(),
            url: tree.url.clone(),
            commit: tree.commit.clone(),
            reference: tree.reference.clone(),
            release: tree.version.clone(),
            published: tree.published,
            notes: tree.notes.clone(),
            warning: tree.warning.clone(),
            files: tree.files.iter().map(FileEntry::of).collect(),
        };
        let bytes = serde_json::to_vec(&entry).map_err(|it| failed(it.into()))?;
        let mut draft = tempfile::NamedTempFile::new_in(&folder).map_err(failed)?;
        draft.write_all(&bytes).map_err(failed)?;
        draft.as_file().sync_all().map_err(failed)?;
        draft.persist(&path).map_err(|it| failed(it.error))?;
        Ok(())
    }

    /// Returns the tree that a key stands for, if all of its files are still there.
    pub fn recall(&self, key: &str) -> Option<FetchedTree> {
        let mut bytes = Vec::new();
        let file = File::open(self.key_file(key)).ok()?;
        file.take(KEY_FILE + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > KEY_FILE {
            return None;
        }
        let entry: KeyFile = serde_json::from_slice(&bytes).ok()?;
        if entry.version != 1 || entry.key != key {
            return None;
        }
        let files: Option<Vec<TreeFile>> = entry.files.iter().map(FileEntry::file).collect();
        let files = files?;
        let is_sorted = files.is_sorted_by(|one, other| one.path < other.path);
        if !is_sorted || ContentDigest::of(&files).to_string() != entry.digest {
            return None;
        }
        Some(FetchedTree {
            folder: self.folder_of(&files)?,
            digest: ContentDigest::of(&files),
            files,
            source: SkillSource::from_str(&entry.source).ok()?,
            url: entry.url,
            commit: entry.commit,
            reference: entry.reference,
            version: entry.release,
            published: entry.published,
            notes: entry.notes,
            warning: entry.warning,
        })
    }

    /// Forgets a key; its files stay.
    pub fn forget(&self, key: &str) -> Result<(), CacheError> {
        let path = self.key_file(key);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    /// Returns how much is in the cache. A file that several packages have counts once.
    pub fn size(&self) -> Result<CacheSize, CacheError> {
        let mut size = CacheSize::default();
        self.for_each_blob(|_, metadata| {
            size.files += 1;
            size.bytes += metadata.len();
            Ok(())
        })?;
        Ok(size)
    }

    /// Removes all keys, and all files but those to keep and those that are installed as hard links
    /// somewhere (where the system tells). Fails if the cache is in use, also by this process.
    pub fn prune(self, keep: &BTreeSet<FileDigest>) -> Result<CacheSize, CacheError> {
        let lock_path = self.folder.join("lock");
        let Self { folder, _lock } = self;
        drop(_lock);
        let lock = open_lock(&lock_path).map_err(|it| failed("open", &lock_path, it))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) if is_not_supported(&error) => {}
            Err(TryLockError::WouldBlock) => return Err(CacheError::InUse(folder)),
            Err(TryLockError::Error(error)) => return Err(failed("lock", &lock_path, error)),
        }
        let cache = Self { folder, _lock: None };
        for name in ["keys", "trees", "drafts"] {
            let path = cache.folder.join(name);
            let failed = |it| failed("remove", &path, it);
            fs::remove_dir_all(&path).map_err(failed)?;
            sys::create_private_folder(&path).map_err(failed)?;
        }
        let keep: BTreeSet<String> = keep.iter().map(|it| hex(&it.0)).collect();
        let mut removed = CacheSize::default();
        cache.for_each_blob(|path, metadata| {
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let digest = format!("{}{}", folder.to_string_lossy(), name.trim_end_matches(".x"));
            let is_installed = sys::link_count(metadata).is_some_and(|it| it > 1);
            if !is_installed && !keep.contains(&digest) {
                fs::remove_file(path).map_err(|it| failed("remove", path, it))?;
                removed.files += 1;
                removed.bytes += metadata.len();
            }
            Ok(())
        })?;
        Ok(removed)
    }

    fn for_each_blob(
        &self,
        mut each: impl FnMut(&Path, &fs::Metadata) -> Result<(), CacheError>,
    ) -> Result<(), CacheError> {
        let blobs = self.folder.join("blobs");
        for folder in entries(&blobs)? {
            for path in entries(&folder)? {
                match fs::symlink_metadata(&path) {
                    Ok(metadata) => each(&path, &metadata)?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(failed("read", &path, error)),
                }
            }
        }
        Ok(())
    }

    fn tree(&self, digest: &ContentDigest) -> PathBuf {
        self.folder.join("trees").join(hex(&digest.0))
    }

    fn key_file(&self, key: &str) -> PathBuf {
        let name = hex(&FileDigest::of(key.as_bytes()).0);
        self.folder.join("keys").join(format!("{name}.json"))
    }

    fn blob(&self, file: &TreeFile) -> PathBuf {
        let mut name = hex(&file.digest.0);
        if file.executable {
            name.push_str(".x");
        }
        let (folder, name) = name.split_at(2);
        let mut path = self.folder.join("blobs");
        path.push(folder);
        path.push(name);
        path
    }

    /// Makes a file of a draft a blob, or a link to the one that is there. Returns whether it is new.
    fn keep(&self, path: &Path, file: &TreeFile) -> io::Result<bool> {
        let blob = self.blob(file);
        if is_intact(&blob, file) {
            fs::remove_file(path)?;
            if fs::hard_link(&blob, path).is_err() {
                copy_file(&blob, path, file, false)?;
            }
            return Ok(false);
        }
        seal(path, file.executable)?;
        match fs::hard_link(path, &blob) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                sys::create_private_folder(blob.parent().unwrap_or(&self.folder))?;
            }
            // A damaged one that was not removed, or another process was faster.
            Err(_) => {}
        }
        match fs::hard_link(path, &blob) {
            Ok(()) => Ok(true),
            Err(_) if is_intact(&blob, file) => Ok(true),
            // No hard links here.
            Err(_) => {
                let folder = blob.parent().unwrap_or(&self.folder);
                let draft = tempfile::NamedTempFile::new_in(folder)?.into_temp_path();
                fs::remove_file(&draft)?;
                copy_file(path, &draft, file, false)?;
                draft.persist(&blob).map_err(|it| it.error)?;
                Ok(true)
            }
        }
    }

    /// Makes a folder with blobs one of the cache.
    fn keep_folder(&self, from: &Path, files: &[TreeFile]) -> Result<PathBuf, CacheError> {
        let folder = self.tree(&ContentDigest::of(files));
        for _ in 0..3 {
            match fs::rename(from, &folder) {
                Ok(()) => {
                    let trees = self.folder.join("trees");
                    sys::sync_folder(&trees).map_err(|it| failed("sync", &trees, it))?;
                    return Ok(folder);
                }
                Err(_) if is_whole(&folder, files) => return Ok(folder),
                // One that has been changed goes away; then it is tried again.
                Err(_) if folder.exists() => self.discard(&folder)?,
                Err(error) => return Err(failed("create", &folder, error)),
            }
        }
        Err(failed("create", &folder, io::ErrorKind::AlreadyExists.into()))
    }

    fn discard(&self, folder: &Path) -> Result<(), CacheError> {
        let failed = |it| failed("remove", folder, it);
        let drafts = self.folder.join("drafts");
        let holder = tempfile::Builder::new().prefix("discarded-").tempdir_in(drafts);
        let holder = holder.map_err(failed)?;
        match fs::rename(folder, holder.path().join("tree")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    fn place_new(
        &self,
        wanted: &[(&[TreeFile], &Path)],
        copies: bool,
    ) -> Result<Vec<Placing>, CacheError> {
        let count: usize = wanted.iter().map(|it| it.0.len()).sum();
        let middle = if count < TWO_THREADS { 0 } else { wanted.len() / 2 };
        let (first, second) = wanted.split_at(middle);
        let ((one, failed), (other, other_failed)) = match first {
            [] => ((PlacingCount::default(), Ok(())), self.place_some(second, copies)),
            _ => thread::scope(|scope| {
                let other = scope.spawn(|| self.place_some(second, copies));
                let one = self.place_some(first, copies);
                (one, other.join().unwrap_or_else(|it| std::panic::resume_unwind(it)))
            }),
        };
        let result = failed.and(other_failed).and_then(|()| {
            let copied = one.copied.iter().chain(&other.copied);
            let created = one.folders.iter().chain(&other.folders);
            // The names of the folders are in those above, of which many have the same.
            let above: BTreeSet<&Path> = wanted.iter().filter_map(|it| it.1.parent()).collect();
            let paths = copied.chain(created).map(PathBuf::as_path).chain(above);
            sync_all(paths)
        });
        if let Err(error) = result {
            for folder in one.roots.iter().chain(&other.roots) {
                // It was created here, and so nothing in it is of anybody else.
                let _ = fs::remove_dir_all(folder);
            }
            return Err(error);
        }
        Ok([one.placings, other.placings].concat())
    }

    /// Places folders one after the other, up to the first that fails.
    fn place_some(
        &self,
        wanted: &[(&[TreeFile], &Path)],
        copies: bool,
    ) -> (PlacingCount, Result<(), CacheError>) {
        let mut placed = PlacingCount::default();
        for (files, folder) in wanted {
            if let Err(error) = fs::create_dir(folder) {
                return (placed, Err(failed("create", folder, error)));
            }
            placed.roots.push(folder.to_path_buf());
            placed.folders.push(folder.to_path_buf());
            match self.link_all(files, folder, copies) {
                Ok((placing, folders)) => {
                    placed.placings.push(placing);
                    placed.folders.extend(folders);
                    if placing == Placing::Copies {
                        placed.copied.extend(files.iter().map(|it| folder.join(&it.path)));
                    }
                }
                Err(error) => return (placed, Err(error)),
            }
        }
        (placed, Ok(()))
    }

    /// Puts files into an empty folder. Returns the folders that were created in it.
    fn link_all(
        &self,
        files: &[TreeFile],
        folder: &Path,
        copies: bool,
    ) -> Result<(Placing, Vec<PathBuf>), CacheError> {
        let mut folders = BTreeSet::new();
        for file in files {
            for (end, _) in file.path.match_indices('/') {
                folders.insert(&file.path[..end]);
            }
            if check_path(&file.path).is_err() {
                let refused = io::Error::from(io::ErrorKind::InvalidFilename);
                return Err(failed("write", &folder.join(&file.path), refused));
            }
        }
        let mut created = Vec::new();
        for inner in folders {
            let path = folder.join(inner);
            fs::create_dir(&path).map_err(|it| failed("create", &path, it))?;
            created.push(path);
        }
        let put = |files: &[TreeFile]| -> Result<Option<Placing>, CacheError> {
            let mut placing = Placing::HardLinks;
            for file in files {
                let path = folder.join(&file.path);
                match self.put(file, &path, copies).map_err(|it| failed("write", &path, it))? {
                    Some(Placing::HardLinks) => {}
                    Some(Placing::Copies) => placing = Placing::Copies,
                    None => return Ok(None),
                }
            }
            Ok(Some(placing))
        };
        let (first, second) = match files.len() < TWO_THREADS {
            true => files.split_at(0),
            false => files.split_at(files.len() / 2),
        };
        let (one, other) = match first {
            [] => (Some(Placing::HardLinks), put(second)?),
            _ => {
                let (one, other) = thread::scope(|scope| {
                    let other = scope.spawn(|| put(second));
                    let one = put(first);
                    (one, other.join().unwrap_or_else(|it| std::panic::resume_unwind(it)))
                });
                (one?, other?)
            }
        };
        match (one, other) {
            (Some(Placing::HardLinks), Some(Placing::HardLinks)) => {
                Ok((Placing::HardLinks, created))
            }
            (Some(_), Some(_)) => Ok((Placing::Copies, created)),
            _ => Err(CacheError::Missing(ContentDigest::of(files))),
        }
    }

    /// Puts a file somewhere; nothing if it is not in the cache.
    fn put(&self, file: &TreeFile, path: &Path, copies: bool) -> io::Result<Option<Placing>> {
        let blob = self.blob(file);
        if !is_intact(&blob, file) {
            return Ok(None);
        }
        if !copies && fs::hard_link(&blob, path).is_ok() {
            return Ok(Some(Placing::HardLinks));
        }
        // Another file system, one without hard links, or a file that has too many of them.
        copy_file(&blob, path, file, true)?;
        Ok(Some(Placing::Copies))
    }
}

impl CacheDraft {
    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Folders that were placed.
#[derive(Debug, Default)]
struct PlacingCount {
    placings: Vec<Placing>,
    /// Those that were asked for.
    roots: Vec<PathBuf>,
    /// All that were created.
    folders: Vec<PathBuf>,
    /// Files that are copies.
    copied: Vec<PathBuf>,
}

/// A file of `keys`.
#[derive(Debug, Serialize, Deserialize)]
struct KeyFile {
    version: u32,
    key: String,
    digest: String,
    source: String,
    url: String,
    commit: Option<String>,
    reference: Option<String>,
    release: Option<String>,
    published: Option<u64>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    warning: Option<String>,
    files: Vec<FileEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileEntry {
    path: String,
    digest: String,
    size: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    executable: bool,
}

impl FileEntry {
    fn of(file: &TreeFile) -> Self {
        Self {
            path: file.path.clone(),
            digest: file.digest.to_string(),
            size: file.size,
            executable: file.executable,
        }
    }

    fn file(&self) -> Option<TreeFile> {
        check_path(&self.path).ok()?;
        Some(TreeFile {
            path: self.path.clone(),
            digest: self.digest.parse().ok()?,
            size: self.size,
            executable: self.executable,
        })
    }
}

/// Whether a blob is as it was written. One that was touched is hashed again, and removed if it
/// has changed.
fn is_intact(blob: &Path, file: &TreeFile) -> bool {
    let Ok(metadata) = fs::symlink_metadata(blob) else { return false };
    if is_sealed(&metadata, file) {
        return true;
    }
    let is_same = metadata.is_file()
        && metadata.len() == file.size
        && FileDigest::of_file(blob).is_ok_and(|it| it.0 == file.digest);
    let is_intact = is_same && seal(blob, file.executable).is_ok();
    if !is_intact {
        let _ = fs::remove_file(blob);
    }
    is_intact
}

/// Whether a folder has these files as blobs.
fn is_whole(folder: &Path, files: &[TreeFile]) -> bool {
    folder.is_dir()
        && files.iter().all(|it| {
            let metadata = fs::symlink_metadata(folder.join(&it.path));
            metadata.is_ok_and(|metadata| is_sealed(&metadata, it))
        })
}

/// Whether a file has the size, time and mode of a blob.
fn is_sealed(metadata: &fs::Metadata, file: &TreeFile) -> bool {
    metadata.is_file()
        && metadata.len() == file.size
        && metadata.modified().is_ok_and(|it| it == time())
        && sys::has_mode(metadata, file.executable, false)
}

/// Gives a file the time and mode of a blob.
fn seal(path: &Path, executable: bool) -> io::Result<()> {
    // On Unix, whoever owns a file can do it, on Windows who can write to it.
    let file = OpenOptions::new().read(true).write(cfg!(not(unix))).open(path)?;
    file.set_modified(time())?;
    sys::set_mode(&file, executable, false)
}

fn time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(TIME)
}

fn copy_file(from: &Path, to: &Path, file: &TreeFile, writable: bool) -> io::Result<()> {
    let mut copy = OpenOptions::new().write(true).create_new(true).open(to)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    if !writable {
        copy.set_modified(time())?;
    }
    sys::set_mode(&copy, file.executable, writable)
}

/// Waits until files, and the names in folders, are on the disk.
fn sync_all<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<(), CacheError> {
    // A relative path of one name has an empty parent.
    let paths = paths.map(|it| if it.as_os_str().is_empty() { Path::new(".") } else { it });
    let paths: Vec<&Path> = paths.collect();
    let mut synced = BTreeSet::new();
    for path in &paths {
        let mut sync = || -> io::Result<()> {
            let metadata = fs::metadata(path)?;
            let device = sys::device(&metadata);
            if synced.contains(&device) {
                return Ok(());
            }
            // One call for all is faster than one for each.
            if paths.len() >= MANY && sys::sync_file_system(path)? {
                synced.insert(device);
                return Ok(());
            }
            match metadata.is_dir() {
                true => sys::sync_folder(path),
                false => sys::sync_file(path),
            }
        };
        sync().map_err(|it| failed("sync", path, it))?;
    }
    Ok(())
}

/// Removes the drafts of processes that are gone. Failures are those of the next time.
fn remove_drafts(drafts: &Path) {
    let Ok(paths) = entries(drafts) else { return };
    for path in paths {
        let is_old = || {
            let modified = fs::symlink_metadata(&path).and_then(|it| it.modified());
            modified.is_ok_and(|it| it.elapsed().is_ok_and(|it| it > OLD))
        };
        if path.extension().is_some_and(|it| it == "lock") {
            let is_left = match File::open(&path).map(|it| (it.try_lock(), it)) {
                Ok((Ok(()), _)) => true,
                Ok((Err(TryLockError::WouldBlock), _)) => false,
                _ => is_old(),
            };
            let folder = path.with_extension("");
            let is_gone = || match fs::remove_dir_all(&folder) {
                Ok(()) => true,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            };
            // The lock file goes last, so that a folder is never without one.
            if is_left && is_gone() {
                let _ = fs::remove_file(&path);
            }
        } else if !path.with_extension("lock").exists() && is_old() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, CacheError> {
    let failed = |it| failed("read", folder, it);
    let entries = fs::read_dir(folder).map_err(failed)?;
    entries.map(|it| it.map(|it| it.path()).map_err(failed)).collect()
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Whether an error says that this file system has no locks.
fn is_not_supported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || sys::is_without_locks(error)
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> CacheError {
    CacheError::Io { action, path: path.to_owned(), source }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|it| [it >> 4, it & 15]);
    digits.map(|it| char::from(DIGITS[usize::from(it)])).collect()
}
