//! A cache of folder visits, shared by successive libraries.
//!
//! A visit looks at a folder and at files in it. As long as the [`Mark`] of each is unchanged, the
//! visit would have the same result, and the cached one is used. A folder that contained a link, or
//! caused a finding, is visited again every time; so is one that changed a moment ago, because its
//! clock may not have advanced since.
//!
//! The format is the number of entries, followed by the entries, each with its length before it:
//!
//! | part | type |
//! |---|---|
//! | the source and the folder | a number, a text |
//! | the files looked at | a list of paths within the folder, each with its mark |
//! | the result | the folders in it, or a [`CachedSkill`] skill |

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use sha2::{Digest as _, Sha256};

use crate::{
    finding::Finding,
    lock::lock,
    read::{
        coded::{Codec, decode_text, encode_text, take_bytes},
        gather::SourceFolder,
        manifest::Manifest,
        skill::{METADATA_FILE, Skill},
        source::{Cache, Folder, Key, Mark, Resource, VisitMarks},
    },
    spec::SKILL_FILE,
};

/// The cached visits of an earlier scan, and those of the current one.
pub(crate) struct ScanCache<'b> {
    known: HashMap<(u32, &'b str), CacheEntry<'b>>,
    new: Mutex<NewEntries>,
    /// The time when this scan began.
    moment: SystemTime,
    settled: Duration,
}

struct CacheEntry<'b> {
    entry: &'b [u8],
    /// The bytes after the source and the folder.
    body: &'b [u8],
    is_used: AtomicBool,
}

#[derive(Default)]
struct NewEntries {
    entries: Vec<u8>,
    count: usize,
}

/// The result of a visit.
pub(crate) enum CachedVisit {
    /// A folder with these folders in it.
    Folders(Vec<PathBuf>),
    /// A skill, valid or not.
    Skill(Box<CachedSkill>),
}

/// The cached form of a skill.
pub(crate) struct CachedSkill {
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) resources: Option<Vec<Resource>>,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) findings: Vec<Finding>,
    /// The key of its text in the index.
    pub(crate) state: Option<Key>,
}

impl<'b> ScanCache<'b> {
    /// Decodes the cache. Invalid entries are ignored.
    pub(crate) fn new(mut bytes: &'b [u8], cache: &Cache) -> Self {
        let count = u32::decode(&mut bytes).unwrap_or_default() as usize;
        // A forged number must not allocate memory.
        let mut known = HashMap::with_capacity(count.min(bytes.len() / LEAST));
        while let Some((place, entry)) = entry(&mut bytes) {
            known.insert(place, entry);
        }
        let (moment, settled) = (SystemTime::now(), cache.settled);
        Self { known, new: Mutex::default(), moment, settled }
    }

    /// Returns the cached result for a folder, if everything that was looked at is unchanged.
    pub(crate) fn get(&self, at: &SourceFolder, folder: &Folder) -> Option<CachedVisit> {
        let path = at.folder.to_str()?;
        let known = self.known.get(&(at.source as u32, path))?;
        let mut bytes = known.body;
        let mut place = String::with_capacity(128);
        for _ in 0..u32::decode(&mut bytes)? {
            write_path(&mut place, path, decode_text(&mut bytes)?);
            if folder.mark(&place)? != Mark::decode(&mut bytes)? {
                return None;
            }
        }
        let visit = decode_visit(&mut bytes)?;
        known.is_used.store(true, Ordering::Relaxed);
        Some(visit)
    }

    /// Counts the entries that can be decoded.
    pub(crate) fn count_decodable(&self) -> usize {
        self.known
            .values()
            .filter(|known: &&CacheEntry<'_>| {
                let bytes = &mut { known.body };
                <Vec<(Box<str>, Mark)>>::decode(bytes).and_then(|_| decode_visit(bytes)).is_some()
            })
            .count()
    }

    /// Whether the marks are certain to identify the state of a folder.
    pub(crate) fn is_cacheable(&self, seen: &VisitMarks) -> bool {
        !seen.is_more
            && !seen.marks.is_empty()
            && seen.marks.iter().all(|it: &(_, Mark)| it.1.is_settled(self.moment, self.settled))
    }

    /// Caches the subfolders of a folder.
    pub(crate) fn keep_folders(
        &self,
        at: &SourceFolder,
        seen: &VisitMarks,
        folders: &Vec<PathBuf>,
    ) {
        self.keep(at, seen, FOLDERS, folders);
    }

    /// Caches a skill.
    pub(crate) fn keep_skill(&self, at: &SourceFolder, seen: &VisitMarks, skill: &CachedSkill) {
        self.keep(at, seen, SKILL, skill);
    }

    fn keep(&self, at: &SourceFolder, seen: &VisitMarks, what: u8, visit: &impl Codec) {
        let Some(path) = at.folder.to_str() else { return };
        let mut body = Vec::new();
        (at.source as u32).encode(&mut body);
        encode_text(path, &mut body);
        seen.marks.encode(&mut body);
        what.encode(&mut body);
        visit.encode(&mut body);
        let mut new = lock(&self.new);
        (body.len() as u32).encode(&mut new.entries);
        new.entries.extend(body);
        new.count += 1;
    }

    /// Returns the bytes to write; `None` if little or nothing is new.
    pub(crate) fn updated_bytes(self, least: usize) -> Option<Vec<u8>> {
        let new = self.new.into_inner().unwrap_or_else(PoisonError::into_inner);
        // The order does not matter: no two entries are for the same folder.
        let known = self.known.into_values().filter(|it| it.is_used.load(Ordering::Relaxed));
        let old: Vec<&[u8]> = known.map(|it| it.entry).collect();
        let count = new.count + old.len();
        if new.count == 0 || count < least {
            return None;
        }
        let mut bytes = Vec::new();
        (count as u32).encode(&mut bytes);
        bytes.extend(new.entries);
        old.into_iter().for_each(|it| bytes.extend_from_slice(it));
        Some(bytes)
    }
}

/// The minimum size of an entry, in bytes.
const LEAST: usize = 16;

/// Decodes an entry from the front: its source and folder, and the rest of it.
fn entry<'b>(bytes: &mut &'b [u8]) -> Option<((u32, &'b str), CacheEntry<'b>)> {
    let start = *bytes;
    let length = u32::decode(bytes)? as usize;
    let mut body = take_bytes(bytes, length)?;
    let place = (u32::decode(&mut body)?, decode_text(&mut body)?);
    let entry = &start[..start.len() - bytes.len()];
    Some((place, CacheEntry { entry, body, is_used: AtomicBool::new(false) }))
}

fn write_path(place: &mut String, folder: &str, path: &str) {
    place.clear();
    place.push_str(folder);
    if !folder.is_empty() && !path.is_empty() {
        place.push('/');
    }
    place.push_str(path);
}

/// The tag before the result of a visit.
const FOLDERS: u8 = 0;
const SKILL: u8 = 1;

fn decode_visit(bytes: &mut &[u8]) -> Option<CachedVisit> {
    match u8::decode(bytes)? {
        FOLDERS => Codec::decode(bytes).map(CachedVisit::Folders),
        SKILL => Codec::decode(bytes).map(|it| CachedVisit::Skill(Box::new(it))),
        _ => None,
    }
}

/// Returns the index key of a skill: a digest of the folder, which may give it its name, and of the
/// files that it is read from.
pub(crate) fn state(folder: &Path, seen: &VisitMarks) -> Option<Key> {
    let mark = |name: &str| seen.marks.iter().find(|it| *it.0 == *name).map(|it| it.1);
    Some(state_of(folder.to_str()?, &mark(SKILL_FILE)?, mark(METADATA_FILE)))
}

/// Computes the same for the current state of the files.
pub(crate) fn state_now(skill: &Skill) -> Option<Key> {
    let folder = skill.home.folder.as_deref()?;
    let path = folder.relative(skill.folder())?;
    let mark = |name: &str| {
        let mut place = String::new();
        write_path(&mut place, path, name);
        folder.mark(&place)
    };
    Some(state_of(path, &mark(SKILL_FILE)?, mark(METADATA_FILE)))
}

fn state_of(folder: &str, document: &Mark, metadata: Option<Mark>) -> Key {
    let mut bytes = Vec::new();
    encode_text(folder, &mut bytes);
    document.encode(&mut bytes);
    metadata.encode(&mut bytes);
    digest(&[&bytes])
}

/// The location of a library's cached index.
#[derive(Debug, Clone)]
pub(crate) struct IndexPlace {
    pub(crate) cache: Cache,
    pub(crate) key: Key,
    /// Whether it indexes all skills that were loaded, so that it is worth caching.
    pub(crate) is_whole: bool,
}

/// Computes a digest of parts, unambiguous about where each part ends.
pub(crate) fn digest(parts: &[&[u8]]) -> Key {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let whole: [u8; 32] = digest.finalize().into();
    *whole.first_chunk().expect("it is longer")
}
