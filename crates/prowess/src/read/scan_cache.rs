//! What libraries recall of the folders that one before them has visited.
//!
//! A visit looks at a folder and at files in it. As long as the [`Mark`] of each is what it was, the
//! visit would come to the same, and what was made of it then is taken. A folder in which there was a
//! link, or something to report, is visited again every time; so is one that changed a moment ago,
//! because its clock may not have moved on since.
//!
//! What is kept is a number, of the entries, and a row of them, each with its length before it:
//!
//! | what | of which type |
//! |---|---|
//! | the source and the folder | a number, a text |
//! | what was looked at | a list of paths within the folder, each with its mark |
//! | what it came to | the folders in it, or a [`CachedSkill`] skill |

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
    read::{
        coded::{Codec, put_text, slice, text},
        gather::Place,
        manifest::Manifest,
        skill::{METADATA_FILE, Skill},
        source::{Cache, Folder, Key, Mark, Resource, VisitMarks},
    },
};

/// What was made of folders before, and what is made of them now.
pub(crate) struct ScanCache<'b> {
    known: HashMap<(u32, &'b str), CacheEntry<'b>>,
    new: Mutex<New>,
    /// When this look at the sources began.
    moment: SystemTime,
    settled: Duration,
}

struct CacheEntry<'b> {
    entry: &'b [u8],
    /// What follows the source and the folder.
    body: &'b [u8],
    is_used: AtomicBool,
}

#[derive(Default)]
struct New {
    entries: Vec<u8>,
    count: usize,
}

/// What a visit came to.
pub(crate) enum CachedVisit {
    /// A folder with these folders in it.
    Folders(Vec<PathBuf>),
    /// A skill, or what was to be one.
    Skill(Box<CachedSkill>),
}

/// What is kept of a skill.
pub(crate) struct CachedSkill {
    pub(crate) size: u64,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) resources: Option<Vec<Resource>>,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) findings: Vec<Finding>,
    /// What its text for the index is told from others by.
    pub(crate) state: Option<Key>,
}

impl<'b> ScanCache<'b> {
    /// Reads what is kept. What makes no sense is not known.
    pub(crate) fn new(mut bytes: &'b [u8], cache: &Cache) -> Self {
        let count = u32::take(&mut bytes).unwrap_or_default() as usize;
        // A number that was made up must not take any memory.
        let mut known = HashMap::with_capacity(count.min(bytes.len() / LEAST));
        while let Some((place, entry)) = entry(&mut bytes) {
            known.insert(place, entry);
        }
        let (moment, settled) = (SystemTime::now(), cache.settled);
        Self { known, new: Mutex::default(), moment, settled }
    }

    /// What a folder came to, if all that was looked at is as it was.
    pub(crate) fn look(&self, at: &Place, folder: &Folder) -> Option<CachedVisit> {
        let path = at.folder.to_str()?;
        let known = self.known.get(&(at.source as u32, path))?;
        let mut bytes = known.body;
        let mut place = String::with_capacity(128);
        for _ in 0..u32::take(&mut bytes)? {
            join(&mut place, path, text(&mut bytes)?);
            if folder.mark(&place)? != Mark::take(&mut bytes)? {
                return None;
            }
        }
        let came = came(&mut bytes)?;
        known.is_used.store(true, Ordering::Relaxed);
        Some(came)
    }

    /// How many visits are told that can be understood.
    pub(crate) fn told(&self) -> usize {
        let is_told = |known: &&CacheEntry<'_>| {
            let bytes = &mut { known.body };
            <Vec<(Box<str>, Mark)>>::take(bytes).and_then(|_| came(bytes)).is_some()
        };
        self.known.values().filter(is_told).count()
    }

    /// Whether what was seen tells all about a folder, beyond doubt.
    pub(crate) fn is_telling(&self, seen: &VisitMarks) -> bool {
        let is_settled = |it: &(_, Mark)| it.1.is_settled(self.moment, self.settled);
        !seen.is_more && !seen.marks.is_empty() && seen.marks.iter().all(is_settled)
    }

    /// Keeps which folders a folder has.
    pub(crate) fn keep_folders(&self, at: &Place, seen: &VisitMarks, folders: &Vec<PathBuf>) {
        self.keep(at, seen, FOLDERS, folders);
    }

    /// Keeps what was made of a skill.
    pub(crate) fn keep_skill(&self, at: &Place, seen: &VisitMarks, kept: &CachedSkill) {
        self.keep(at, seen, SKILL, kept);
    }

    fn keep(&self, at: &Place, seen: &VisitMarks, what: u8, came: &impl Codec) {
        let Some(path) = at.folder.to_str() else { return };
        let mut body = Vec::new();
        (at.source as u32).put(&mut body);
        put_text(path, &mut body);
        seen.marks.put(&mut body);
        what.put(&mut body);
        came.put(&mut body);
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        (body.len() as u32).put(&mut new.entries);
        new.entries.extend(body);
        new.count += 1;
    }

    /// All that is to be kept; nothing where little or nothing is new.
    pub(crate) fn renewed(self, least: usize) -> Option<Vec<u8>> {
        let new = self.new.into_inner().unwrap_or_else(PoisonError::into_inner);
        // The order makes no difference: no two entries are about the same folder.
        let known = self.known.into_values().filter(|it| it.is_used.load(Ordering::Relaxed));
        let old: Vec<&[u8]> = known.map(|it| it.entry).collect();
        let count = new.count + old.len();
        if new.count == 0 || count < least {
            return None;
        }
        let mut bytes = Vec::new();
        (count as u32).put(&mut bytes);
        bytes.extend(new.entries);
        old.into_iter().for_each(|it| bytes.extend_from_slice(it));
        Some(bytes)
    }
}

/// No entry has fewer bytes.
const LEAST: usize = 16;

/// Takes an entry off the front: where it belongs, and the rest of it.
fn entry<'b>(bytes: &mut &'b [u8]) -> Option<((u32, &'b str), CacheEntry<'b>)> {
    let start = *bytes;
    let length = u32::take(bytes)? as usize;
    let mut body = slice(bytes, length)?;
    let place = (u32::take(&mut body)?, text(&mut body)?);
    let entry = &start[..start.len() - bytes.len()];
    Some((place, CacheEntry { entry, body, is_used: AtomicBool::new(false) }))
}

fn join(place: &mut String, folder: &str, path: &str) {
    place.clear();
    place.push_str(folder);
    if !folder.is_empty() && !path.is_empty() {
        place.push('/');
    }
    place.push_str(path);
}

/// What stands before what a visit came to.
const FOLDERS: u8 = 0;
const SKILL: u8 = 1;

fn came(bytes: &mut &[u8]) -> Option<CachedVisit> {
    match u8::take(bytes)? {
        FOLDERS => Codec::take(bytes).map(CachedVisit::Folders),
        SKILL => Codec::take(bytes).map(|it| CachedVisit::Skill(Box::new(it))),
        _ => None,
    }
}

/// What the text of a skill for the index is told from others by: the folder, which may give it its
/// name, and the files that it is read from.
pub(crate) fn state(folder: &Path, seen: &VisitMarks) -> Option<Key> {
    let mark = |name: &str| seen.marks.iter().find(|it| *it.0 == *name).map(|it| it.1);
    Some(state_of(folder.to_str()?, &mark("SKILL.md")?, mark(METADATA_FILE)))
}

/// The same as it is now.
pub(crate) fn state_now(skill: &Skill) -> Option<Key> {
    let folder = skill.home.folder.as_deref()?;
    let path = folder.within(skill.folder())?;
    let mark = |name: &str| {
        let mut place = String::new();
        join(&mut place, path, name);
        folder.mark(&place)
    };
    Some(state_of(path, &mark("SKILL.md")?, mark(METADATA_FILE)))
}

fn state_of(folder: &str, document: &Mark, metadata: Option<Mark>) -> Key {
    let mut bytes = Vec::new();
    put_text(folder, &mut bytes);
    document.put(&mut bytes);
    metadata.put(&mut bytes);
    digest(&[&bytes])
}

/// Where the index of a library is kept.
#[derive(Debug, Clone)]
pub(crate) struct IndexPlace {
    pub(crate) cache: Cache,
    pub(crate) key: Key,
    /// Whether it is the index of all skills that were loaded, so that it is worth keeping.
    pub(crate) is_whole: bool,
}

/// A digest of parts of which none can be taken for a piece of another.
pub(crate) fn digest(parts: &[&[u8]]) -> Key {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let whole: [u8; 32] = digest.finalize().into();
    *whole.first_chunk().expect("it is longer")
}
