//! The description provider: describes tools by name, at the level for a confidence.

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::{Duration, Instant},
};

use crate::{
    disclosure::disclose::{Disclosure, Level, Thresholds, disclose},
    library::Library,
    lock::lock,
    read::source::{ReadError, Stamp},
};

/// The maximum number of cached disclosures, and their maximum total size in bytes.
const MAX_ENTRIES: usize = 65_536;
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Describes tools that are skills, with a cache: metadata for good, a brief for 30 minutes, a full
/// text for 15. Entries are dropped when their `SKILL.md` is edited or the library is replaced. A
/// missing skill is looked up anew each time.
pub struct Describer {
    library: Box<dyn Fn() -> Arc<Library> + Send + Sync>,
    thresholds: Thresholds,
    clock: Box<dyn Fn() -> Instant + Send + Sync>,
    cache: Mutex<DescriptionCache>,
}

impl Describer {
    /// Creates a describer from a function that returns the current library, such as `move ||
    /// keeper.library()`.
    pub fn new(library: impl Fn() -> Arc<Library> + Send + Sync + 'static) -> Self {
        Self {
            library: Box::new(library),
            thresholds: Thresholds::default(),
            clock: Box::new(Instant::now),
            cache: Mutex::default(),
        }
    }

    /// Sets other thresholds than [`Thresholds::DEFAULT`].
    #[must_use]
    pub fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// Sets another clock than the system's.
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self { clock: Box::new(clock), ..self }
    }

    /// Describes a tool at the level for a confidence; without one, by its metadata. `None` for a
    /// name that [belongs to](Library::for_tool) no active skill.
    pub fn resolve(
        &self,
        tool_name: &str,
        confidence: Option<f64>,
    ) -> Result<Option<Arc<Disclosure>>, ReadError> {
        let level = confidence.map_or(Level::Metadata, |it| self.thresholds.level(it));
        self.describe(tool_name, level)
    }

    /// Describes a tool that is about to be executed: always in full.
    pub fn for_execution(&self, tool_name: &str) -> Result<Option<Arc<Disclosure>>, ReadError> {
        self.describe(tool_name, Level::Full)
    }

    fn describe(&self, name: &str, level: Level) -> Result<Option<Arc<Disclosure>>, ReadError> {
        let library = (self.library)();
        let Some(skill) = library.for_tool(name) else { return Ok(None) };
        let path = &skill.origin.path;
        let (now, stamp) = ((self.clock)(), skill.home.source.stamp(path));
        let key = (path.clone(), level);
        if let Some(disclosure) = self.lock_cache().get(&library, &key, stamp, now) {
            return Ok(Some(disclosure));
        }
        let disclosure = Arc::new(disclose(skill, level)?);
        let entry = CachedDisclosure { disclosure: disclosure.clone(), stamp, created: now };
        self.lock_cache().put(&library, key, entry);
        Ok(Some(disclosure))
    }

    fn lock_cache(&self) -> MutexGuard<'_, DescriptionCache> {
        lock(&self.cache)
    }
}

impl fmt::Debug for Describer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Describer").field("thresholds", &self.thresholds).finish_non_exhaustive()
    }
}

/// The cached disclosures of one library.
#[derive(Default)]
struct DescriptionCache {
    library: Weak<Library>,
    entries: HashMap<(Arc<Path>, Level), CachedDisclosure>,
    bytes: usize,
}

struct CachedDisclosure {
    disclosure: Arc<Disclosure>,
    stamp: Option<Stamp>,
    created: Instant,
}

impl DescriptionCache {
    fn get(
        &mut self,
        library: &Arc<Library>,
        key: &(Arc<Path>, Level),
        stamp: Option<Stamp>,
        now: Instant,
    ) -> Option<Arc<Disclosure>> {
        if self.library.as_ptr() != Arc::as_ptr(library) {
            *self = Self { library: Arc::downgrade(library), ..Self::default() };
        }
        let entry = self.entries.get(key).filter(|it| it.stamp == stamp)?;
        let age = now.saturating_duration_since(entry.created);
        lifetime(key.1).is_none_or(|it| age < it).then(|| entry.disclosure.clone())
    }

    /// Caches a disclosure, unless the library was replaced while it was read.
    fn put(&mut self, library: &Arc<Library>, key: (Arc<Path>, Level), entry: CachedDisclosure) {
        let bytes = entry.bytes();
        if self.library.as_ptr() != Arc::as_ptr(library) || bytes > MAX_BYTES {
            return;
        }
        // The entries with the shortest lifetime are removed first.
        for level in [Level::Full, Level::Brief, Level::Metadata] {
            if self.entries.len() < MAX_ENTRIES && self.bytes + bytes <= MAX_BYTES {
                break;
            }
            self.entries.retain(|it, _| it.1 != level);
            self.bytes = self.entries.values().map(CachedDisclosure::bytes).sum();
        }
        self.bytes += bytes;
        if let Some(old) = self.entries.insert(key, entry) {
            self.bytes -= old.bytes();
        }
    }
}

impl CachedDisclosure {
    fn bytes(&self) -> usize {
        let resources = self.disclosure.resources.iter().map(|it| it.path.len() + 64);
        self.disclosure.text.len() + resources.sum::<usize>() + 256
    }
}

/// Returns the lifetime of a cached disclosure; `None` is unlimited.
fn lifetime(level: Level) -> Option<Duration> {
    match level {
        Level::Metadata => None,
        Level::Brief => Some(Duration::from_mins(30)),
        Level::Full => Some(Duration::from_mins(15)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{library::Options, read::bundled::bundled};

    #[test]
    fn what_is_kept_has_a_bound_and_metadata_goes_last() {
        let options = Options { sources: vec![bundled()], ..Options::default() };
        let library = Arc::new(Library::load(&options).unwrap());
        let mut cache =
            DescriptionCache { library: Arc::downgrade(&library), ..DescriptionCache::default() };
        let mut put = |name: &str, level, length| {
            let (text, resources) = ("x".repeat(length), Vec::new());
            let disclosure = Arc::new(Disclosure { level, text, tokens: 0, resources });
            let entry = CachedDisclosure { disclosure, stamp: None, created: Instant::now() };
            cache.put(&library, (Path::new(name).into(), level), entry);
            let levels = [Level::Metadata, Level::Full];
            let bytes: usize = cache.entries.values().map(CachedDisclosure::bytes).sum();
            assert!(cache.bytes == bytes && bytes <= MAX_BYTES, "{} of {bytes}", cache.bytes);
            levels.map(|level| cache.entries.keys().filter(|it| it.1 == level).count())
        };
        assert_eq!(put("a", Level::Metadata, 100), [1, 0]);
        assert_eq!(put("a", Level::Full, MAX_BYTES / 2), [1, 1]);
        assert_eq!(put("a", Level::Full, MAX_BYTES / 3), [1, 1]);
        assert_eq!(put("b", Level::Full, MAX_BYTES / 3), [1, 2]);
        assert_eq!(put("c", Level::Full, MAX_BYTES / 2), [1, 1]);
        assert_eq!(put("d", Level::Full, MAX_BYTES), [1, 1]);
        assert_eq!(put("e", Level::Metadata, MAX_BYTES - 300), [1, 0]);
    }
}
