//! The scan state of a live library: each scan only visits folders in which something has changed.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    finding::{Finding, rule},
    library::{
        Library, LoadError, Options,
        load::{ParsedFile, assemble, index_place, open, read, require_sources},
    },
    lock::lock,
    read::{
        gather::{ScanResult, ScannedFolder, SourceFolder, gather_by},
        scan_cache::{ScanCache, state},
        skill::Home,
        source::{Folder, Listing, TouchedFolders, Visit, VisitMarks, VisitResult, Watcher},
    },
};

/// The results of the last visit of every folder of the sources.
#[derive(Default)]
pub(crate) struct Scanner {
    options: Options,
    homes: Vec<Arc<Home>>,
    /// Findings about the directories themselves, after the first scan.
    findings: Option<Vec<Finding>>,
    /// For each source, the visits by their folders.
    known: Vec<HashMap<PathBuf, KnownVisit>>,
}

struct KnownVisit {
    /// A hash of the result.
    imprint: u64,
    result: ScannedFolder<ParsedFile>,
    /// Whether the result may change without an event there, as behind a link.
    is_always_outdated: bool,
    /// Whether something has changed there since.
    is_outdated: bool,
    /// Whether the current scan has come across it.
    is_visited: AtomicBool,
}

impl Scanner {
    /// Creates a scanner that has not visited anything yet.
    pub(crate) fn new(options: &Options) -> Result<Self, LoadError> {
        require_sources(options)?;
        Ok(Self { options: options.clone(), ..Self::default() })
    }

    /// Scans where something has changed, and watches it from now on. Returns all results, if
    /// anything has changed; and the reason if not all of it can be watched.
    pub(crate) fn scan(
        &mut self,
        touched: &TouchedFolders,
        watcher: Option<&Arc<Watcher>>,
    ) -> (Option<ScanResult<ParsedFile>>, Result<(), String>) {
        let again = (!touched.is_all).then(|| self.mark_outdated(touched));
        let mut look = || {
            let is_other = touched.is_all && self.open(watcher);
            let (gathered, is_changed) = self.visit(watcher);
            (is_other || is_changed).then_some(gathered)
        };
        match watcher {
            Some(watcher) => watcher.watch_during(again.as_deref(), look),
            None => (look(), Ok(())),
        }
    }

    /// Makes the next full scan return all results, even if nothing has changed.
    pub(crate) fn distrust(&mut self) {
        self.findings = None;
    }

    /// Builds a library from the results of a scan.
    pub(crate) fn assemble(
        &self,
        gathered: ScanResult<ParsedFile>,
        before: Option<&Library>,
    ) -> Library {
        let Self { options, homes, findings, .. } = self;
        let findings = findings.clone().unwrap_or_default();
        assemble(options, homes, findings, gathered, index_place(homes, options), before)
    }

    /// Marks visits as outdated where something has changed; returns the folders to visit again.
    fn mark_outdated(&mut self, touched: &TouchedFolders) -> Vec<PathBuf> {
        let mut again = Vec::new();
        for (home, known) in self.homes.iter().zip(&mut self.known) {
            let Some(folder) = &home.folder else {
                // Other sources cause no events.
                known.values_mut().for_each(|it| it.is_outdated = true);
                continue;
            };
            let mut mark = |path: &Path| {
                let known = known.get_mut(path)?;
                known.is_outdated = true;
                again.push(folder.path().join(path));
                Some(known.result.step.folders().to_vec())
            };
            let inside = |path: &Path| path.strip_prefix(folder.path()).ok().map(Path::to_owned);
            touched.folders.iter().filter_map(|it| inside(it)).for_each(|it| drop(mark(&it)));
            let mut entries: Vec<PathBuf> =
                touched.entries.iter().filter_map(|it| inside(it)).collect();
            while let Some(path) = entries.pop() {
                entries.extend(mark(&path).into_iter().flatten());
            }
            for (path, known) in known.iter_mut().filter(|it| it.1.is_always_outdated) {
                known.is_outdated = true;
                again.push(folder.path().join(path));
            }
        }
        again
    }

    /// Opens the directories anew, and marks all visits in them as outdated; returns whether they
    /// have changed.
    fn open(&mut self, watcher: Option<&Arc<Watcher>>) -> bool {
        let (homes, findings) = open(&self.options, watcher.map(|it| &**it));
        let mut pairs = homes.iter().zip(&self.homes);
        let is_same = homes.len() == self.homes.len() && pairs.all(|(one, it)| one.is_same(it));
        match is_same {
            true => {
                let known = self.known.iter_mut().flat_map(HashMap::values_mut);
                known.for_each(|it| it.is_outdated = true);
            }
            false => {
                self.known = homes.iter().map(|_| HashMap::new()).collect();
                self.homes = homes;
            }
        }
        let findings = Some(findings);
        let is_other = !is_same || findings != self.findings;
        self.findings = findings;
        is_other
    }

    /// Visits every folder that is outdated or unknown; returns all results, and whether anything
    /// has changed.
    fn visit(&mut self, watcher: Option<&Arc<Watcher>>) -> (ScanResult<ParsedFile>, bool) {
        let Options { limits, resources: listing, cache, .. } = &self.options;
        let recall = cache.as_ref().map(|it| ScanCache::new(&[], it));
        // New results may have different content at the same path.
        let homes: Vec<Arc<Home>> =
            self.homes.iter().map(|it| Arc::new(it.with_empty_caches())).collect();
        let watched: Vec<Option<Folder>> =
            homes.iter().map(|it| it.folder.as_ref().map(|it| it.watched_by(watcher))).collect();
        let new: Mutex<Vec<(usize, PathBuf, KnownVisit)>> = Mutex::default();
        let is_other = AtomicBool::new(false);
        let gathered = gather_by(homes.len(), limits, |place| {
            let known = self.known[place.source].get(&place.folder);
            if let Some(known) = known {
                known.is_visited.store(true, Ordering::Relaxed);
                if !known.is_outdated {
                    return known.result.clone();
                }
            }
            let mut seen = VisitMarks::default();
            let home = &homes[place.source];
            let visit = match &watched[place.source] {
                Some(folder) => {
                    folder.visit_noting(&place.folder, limits, *listing, Some(&mut seen))
                }
                None => home.source.visit(&place.folder, limits, *listing),
            };
            let imprint = imprint(&visit, &seen);
            let is_always_outdated =
                !visit.findings.is_empty() || seen.is_more || seen.marks.is_empty();
            let result = match known.filter(|it| it.imprint == imprint) {
                Some(known) => known.result.clone(),
                None => {
                    is_other.store(true, Ordering::Relaxed);
                    self.make(place, home, visit, &seen, recall.as_ref())
                }
            };
            let (is_outdated, is_visited) = (false, AtomicBool::new(true));
            let known = KnownVisit {
                imprint,
                result: result.clone(),
                is_always_outdated,
                is_outdated,
                is_visited,
            };
            let mut new = lock(&new);
            new.push((place.source, place.folder.clone(), known));
            result
        });
        for (source, folder, known) in new.into_inner().unwrap_or_else(PoisonError::into_inner) {
            self.known[source].insert(folder, known);
        }
        // A folder that is no longer reachable might be different when it comes back.
        for known in &mut self.known {
            known.retain(|_, it| mem::take(it.is_visited.get_mut()));
        }
        (gathered, is_other.into_inner())
    }

    fn make(
        &self,
        place: &SourceFolder,
        home: &Arc<Home>,
        visit: Visit,
        seen: &VisitMarks,
        recall: Option<&ScanCache<'_>>,
    ) -> ScannedFolder<ParsedFile> {
        let is_cacheable = place.links == 0
            && visit.findings.is_empty()
            && self.options.resources == Listing::AtOnce
            && recall.is_some_and(|it| it.is_cacheable(seen));
        ScannedFolder::new(visit, |found| {
            let (at, mut cached) = read(found, &*home.source, &self.options);
            let is_unread = cached.findings.iter().any(|it| *it.rule == rule::FILE_UNREADABLE);
            cached.state =
                (is_cacheable && !is_unread).then(|| state(&place.folder, seen)).flatten();
            ParsedFile::from_cached(place.source, home, at, cached)
        })
    }
}

/// Returns a hash of a visit's result.
fn imprint(visit: &Visit, seen: &VisitMarks) -> u64 {
    let mut hasher = DefaultHasher::new();
    visit.linked.hash(&mut hasher);
    match &visit.what {
        VisitResult::Skill(found) => {
            (0, found.path.as_os_str(), found.size, found.modified).hash(&mut hasher);
            (&found.real, &found.head, seen.document()).hash(&mut hasher);
            for resource in found.resources.iter().flatten() {
                (&resource.path, resource.size, resource.modified).hash(&mut hasher);
            }
        }
        VisitResult::Folders(folders) => (1, folders).hash(&mut hasher),
        VisitResult::LeftOut(path) => (2, path).hash(&mut hasher),
        VisitResult::Nothing => 3.hash(&mut hasher),
    }
    for finding in &visit.findings {
        (finding.rule.code, finding.path.as_os_str(), &finding.message).hash(&mut hasher);
    }
    hasher.finish()
}
