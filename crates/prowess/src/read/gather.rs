//! Visits the folders of sources in parallel and collects a result for each skill.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    finding::{Finding, Severity, rule},
    progress::WorkCounter,
    read::source::{
        DEEPEST, DiscoveredSkill, Listing, MAX_FOLDERS, SizeLimits, Source, Visit, VisitResult,
    },
};

/// The number of threads on a cold disk, which serves many requests at once.
const COLD_THREADS: usize = 16;
/// The minimum time for a folder on a cold disk; on a warm one it is a tenth of that.
const COLD: Duration = Duration::from_micros(120);
/// The number of folders that are timed to tell whether the disk is cold.
const SAMPLE: usize = 32;
/// The number of folders that a thread takes at a time.
const CHUNK: usize = 32;
/// Work that takes no longer is not worth a thread.
const SHORT: Duration = Duration::from_millis(2);

/// The results of a scan, in no particular order.
pub(crate) struct ScanResult<T> {
    /// The result for each skill.
    pub(crate) made: Vec<T>,
    /// The path of each skill that could not be read, with the index of its source.
    pub(crate) left_out: Vec<(usize, PathBuf)>,
    pub(crate) findings: Vec<Finding>,
}

/// Visits the folders of all sources and maps every skill.
pub(crate) fn gather<T: Send>(
    sources: &[&dyn Source],
    limits: &SizeLimits,
    listing: Listing,
    make: impl Fn(usize, DiscoveredSkill) -> T + Sync,
) -> ScanResult<T> {
    gather_by(sources.len(), limits, |place| {
        let visit = sources[place.source].visit(&place.folder, limits, listing);
        ScannedFolder::new(visit, |found| make(place.source, found))
    })
}

/// Visits the folders of the given number of sources with a custom visit function.
pub(crate) fn gather_by<T: Send>(
    sources: usize,
    limits: &SizeLimits,
    visit: impl Fn(&SourceFolder) -> ScannedFolder<T> + Sync,
) -> ScanResult<T> {
    let mut gathered = ScanResult { made: Vec::new(), left_out: Vec::new(), findings: Vec::new() };
    let mut places: Vec<SourceFolder> = (0..sources)
        .map(|source| SourceFolder { source, folder: PathBuf::new(), depth: 0, links: 0 })
        .collect();
    let mut left = MAX_FOLDERS;
    let counter = WorkCounter::begin();
    while !places.is_empty() {
        if places.len() > left {
            places.truncate(left);
            gathered.findings.push(Finding::new(
                &rule::TOO_DEEP,
                Severity::Warning,
                Path::new(""),
                format!("there are more than {MAX_FOLDERS} folders; the rest is not searched"),
                "configure only directories that contain skills",
            ));
        }
        left -= places.len();
        counter.expect(places.len());
        let visited = parallel(&places, |place| {
            let ScannedFolder { step, linked, findings } = visit(place);
            counter.step();
            let links = place.links + usize::from(linked);
            // A second link on the path may lead in circles.
            let deeper = place.depth < limits.depth.min(DEEPEST) && links < 2;
            let step = match step {
                FolderContent::Folders(folders) if deeper => {
                    FolderContent::Folders(place.children(folders, links))
                }
                FolderContent::Folders(_) | FolderContent::Nothing => FolderContent::Nothing,
                FolderContent::Made(made) => FolderContent::Made(made),
                FolderContent::LeftOut(path) => FolderContent::LeftOut((place.source, path)),
            };
            (step, findings)
        });
        places.clear();
        for (step, found) in visited.into_iter().flatten() {
            gathered.findings.extend(found);
            match step {
                FolderContent::Made(it) => gathered.made.push(it),
                FolderContent::LeftOut(it) => gathered.left_out.push(it),
                FolderContent::Folders(more) => places.extend(more),
                FolderContent::Nothing => {}
            }
        }
    }
    gathered
}

/// A folder to visit.
pub(crate) struct SourceFolder {
    pub(crate) source: usize,
    pub(crate) folder: PathBuf,
    pub(crate) depth: usize,
    /// The number of links on the path to it.
    pub(crate) links: usize,
}

impl SourceFolder {
    fn children(&self, folders: Vec<PathBuf>, links: usize) -> Vec<Self> {
        folders
            .into_iter()
            .map(|folder| Self { source: self.source, folder, depth: self.depth + 1, links })
            .collect()
    }
}

/// The result of one visit.
#[derive(Clone)]
pub(crate) struct ScannedFolder<T> {
    pub(crate) step: FolderContent<T, PathBuf, PathBuf>,
    /// Whether a link led to it.
    pub(crate) linked: bool,
    pub(crate) findings: Vec<Finding>,
}

/// The kind of a folder, with its content.
#[derive(Clone)]
pub(crate) enum FolderContent<T, F, L> {
    Made(T),
    Folders(Vec<F>),
    LeftOut(L),
    Nothing,
}

impl<T, F, L> FolderContent<T, F, L> {
    /// Returns the subfolders to visit.
    pub(crate) fn folders(&self) -> &[F] {
        if let Self::Folders(folders) = self { folders } else { &[] }
    }
}

impl<T> ScannedFolder<T> {
    pub(crate) fn new(visit: Visit, make: impl FnOnce(DiscoveredSkill) -> T) -> Self {
        let Visit { what, linked, findings } = visit;
        let step = match what {
            VisitResult::Skill(found) => FolderContent::Made(make(*found)),
            VisitResult::Folders(folders) => FolderContent::Folders(folders),
            VisitResult::LeftOut(path) => FolderContent::LeftOut(path),
            VisitResult::Nothing => FolderContent::Nothing,
        };
        Self { step, linked, findings }
    }
}

/// Maps items on as many threads as pay off: none for a few items, one for each core when items are
/// fast, more when they are slow. Each thread's results stay in a list of their own, because moving
/// them would take as much memory again.
fn parallel<I: Sync, T: Send>(items: &[I], map: impl Fn(&I) -> T + Sync) -> Vec<Vec<T>> {
    let (sample, rest) = items.split_at(items.len().min(SAMPLE));
    let started = Instant::now();
    let mut mapped: Vec<Vec<T>> = vec![sample.iter().map(&map).collect()];
    let took = started.elapsed();
    let cold = took > COLD * u32::try_from(sample.len()).unwrap_or(1);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let chunks = rest.len().div_ceil(CHUNK);
    let threads = match cold {
        true => COLD_THREADS.max(cores).min(chunks),
        false if took * u32::try_from(chunks).unwrap_or(u32::MAX) < SHORT => 1,
        false => cores.min(chunks),
    };

    let next = AtomicUsize::new(0);
    let work = || {
        let mut mapped = Vec::new();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(rest) = rest.get(start..) else { return mapped };
            mapped.extend(rest.iter().take(CHUNK).map(&map));
        }
    };
    thread::scope(|scope| {
        // If the system refuses a thread, the existing ones do its work.
        let handles: Vec<_> = (1..threads)
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        mapped.push(work());
        for handle in handles {
            mapped.push(handle.join().expect("a panic in a worker goes on in the caller"));
        }
        mapped
    })
}
