//! The contents of the clients' directories, read once for all of them.

use std::{
    collections::{HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use sha2::{Digest as _, Sha256};

use super::{candidate::Candidate, location::Location, surroundings::Surroundings};
use crate::{
    clients::{Client, Spot},
    finding::{Finding, Severity, rule},
    read::{
        gather::{FolderContent, ScannedFolder, gather_by},
        source::{
            DEEPEST, Directory, Folder, Listing, Search, SizeLimits, Source as _, is_link, reason,
        },
    },
};

/// The maximum number of folders that are searched, so that a tree that is not a library causes no
/// delay.
const MAX_FOLDERS: usize = 100_000;
/// The maximum size of a `SKILL.md` that is read, in bytes: larger than the limit of any client.
const MAX_DOCUMENT: u64 = 16 * 1024 * 1024;

/// A candidate in a directory.
#[derive(Debug, Clone)]
pub(super) struct CandidatePath {
    pub(super) candidate: usize,
    /// Its folder, relative to the directory.
    within: PathBuf,
    depth: usize,
    link: Link,
}

/// A candidate as seen by a client that reads that directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientPath<'a> {
    pub(super) root: &'a Path,
    pub(super) within: &'a Path,
    pub(super) depth: usize,
    pub(super) link: Link,
    pub(super) is_in_project: bool,
}

/// The part of the path to a `SKILL.md` that is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    None,
    Folder,
    Document,
}

impl CandidatePath {
    pub(super) fn client_path<'a>(&'a self, root: &'a Path, spot: &Spot) -> ClientPath<'a> {
        let Self { within, depth, link, .. } = self;
        let is_in_project = spot.is_in_project();
        ClientPath { root, within, depth: *depth, link: *link, is_in_project }
    }
}

/// The contents of the directories of some clients.
#[derive(Debug)]
pub(super) struct Survey {
    /// The candidates, in the order of the directories, and by path in each.
    pub(super) candidates: Vec<Candidate>,
    /// Findings about what could not be read.
    pub(super) findings: Vec<Finding>,
    folders: Vec<Folder>,
    /// The candidates in each folder, sorted by path.
    candidate_paths: Vec<Vec<CandidatePath>>,
    numbers: HashMap<PathBuf, usize>,
}

impl Survey {
    /// Reads the directories of the clients, and before them some others, which must exist.
    pub(super) fn new(
        clients: &[&'static Client],
        surroundings: &Surroundings,
        others: &[Directory],
    ) -> Self {
        let spots = clients.iter().flat_map(|it| it.spots);
        let own = spots.flat_map(|it| surroundings.directories(it));
        let paths = others
            .iter()
            .map(|it| (it.path.clone(), it.search))
            .chain(own.map(|it| (it, Search::Plain)));
        let limits =
            SizeLimits { depth: DEEPEST, max_document_size: MAX_DOCUMENT, ..SizeLimits::default() };
        let mut survey = Self {
            candidates: Vec::new(),
            findings: Vec::new(),
            folders: Vec::new(),
            candidate_paths: Vec::new(),
            numbers: HashMap::new(),
        };
        let mut reals: HashMap<PathBuf, usize> = HashMap::new();
        let mut tried: HashSet<PathBuf> = HashSet::new();
        // Clients follow links wherever they lead, and only what they would read is read. The
        // empty path is a prefix of every path.
        let anywhere: Arc<[PathBuf]> = [PathBuf::new()].into();
        for (place, (path, search)) in paths.enumerate() {
            if !tried.insert(path.clone()) {
                continue;
            }
            let directory = Directory { search, ..Directory::new(&path) };
            match Folder::open(&directory, path.clone(), anywhere.clone(), &limits) {
                Ok(folder) => {
                    let next = survey.folders.len();
                    let number = *reals.entry(folder.real().to_owned()).or_insert(next);
                    survey.numbers.insert(path, number);
                    if number == next {
                        survey.folders.push(folder);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if place < others.len() {
                        survey.findings.push(Finding::new(
                            &rule::DIRECTORY_MISSING,
                            Severity::Warning,
                            &path,
                            "the directory does not exist".to_owned(),
                            "create it, or choose another",
                        ));
                    }
                }
                Err(error) => survey.findings.push(Finding::new(
                    &rule::DIRECTORY_UNREADABLE,
                    Severity::Warning,
                    &path,
                    format!("the directory cannot be read: {}", reason(&error)),
                    "check its type and permissions",
                )),
            }
        }
        survey.gather(&limits);
        survey
    }

    fn gather(&mut self, limits: &SizeLimits) {
        let seen = AtomicUsize::new(0);
        let folders = &self.folders;
        let gathered = gather_by(folders.len(), limits, |place| {
            if seen.fetch_add(1, Ordering::Relaxed) >= MAX_FOLDERS {
                return ScannedFolder {
                    step: FolderContent::Nothing,
                    linked: false,
                    findings: Vec::new(),
                };
            }
            let folder = &folders[place.source];
            let visit = folder.visit(&place.folder, limits, Listing::OnDemand);
            ScannedFolder::new(visit, |found| {
                let link = match found.linked {
                    false => Link::None,
                    true if is_link(&found.path) => Link::Document,
                    true => Link::Folder,
                };
                let (within, depth) = (place.folder.clone(), place.depth);
                let real = found.real.clone().unwrap_or_else(|| found.path.clone());
                let candidate = Candidate::new(&found, folder, link, place.source);
                (place.source, real, CandidatePath { candidate: 0, within, depth, link }, candidate)
            })
        });
        // The name of the file is judged for each client.
        self.findings
            .extend(gathered.findings.into_iter().filter(|it| *it.rule != rule::FILE_NAME));
        if seen.into_inner() > MAX_FOLDERS {
            self.findings.push(Finding::new(
                &rule::TOO_DEEP,
                Severity::Warning,
                Path::new(""),
                format!("there are more than {MAX_FOLDERS} folders; the rest is not examined"),
                "keep skills in directories of their own",
            ));
        }
        let mut made = gathered.made;
        // Of several paths to one file, that in the first directory is used, preferably without a
        // link.
        made.sort_by(|(a_number, _, a, _), (b_number, _, b, _)| {
            (a_number, a.link != Link::None, &a.within).cmp(&(
                b_number,
                b.link != Link::None,
                &b.within,
            ))
        });
        self.candidate_paths.resize_with(self.folders.len(), Vec::new);
        let mut known: HashMap<Arc<Path>, usize> = HashMap::with_capacity(made.len());
        for (number, real, candidate_path, candidate) in made {
            let at = *known.entry(real).or_insert_with(|| {
                self.candidates.push(candidate);
                self.candidates.len() - 1
            });
            self.candidate_paths[number].push(CandidatePath { candidate: at, ..candidate_path });
        }
        self.findings.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// Returns the directories that contain skills; `places` maps each candidate to its index among
    /// the skills of a checkup.
    pub(super) fn locations(&self, surroundings: &Surroundings, places: &[usize]) -> Vec<Location> {
        let full = self.candidate_paths.iter().enumerate().filter(|it| !it.1.is_empty());
        let mut locations: Vec<Location> = full
            .map(|(number, candidate_paths): (usize, &Vec<CandidatePath>)| {
                let directory = self.folders[number].path().to_owned();
                let paths = self.numbers.iter().filter(|it| *it.1 == number).map(|it| it.0.clone());
                let mut aliases: Vec<PathBuf> = paths.filter(|it| *it != directory).collect();
                aliases.sort();
                let mut skills: Vec<usize> =
                    candidate_paths.iter().map(|it| places[it.candidate]).collect();
                skills.sort_unstable();
                skills.dedup();
                let in_project = surroundings.has_project(&directory);
                Location { directory, aliases, in_project, skills }
            })
            .collect();
        locations.sort_by(|a, b| (!a.in_project, &a.directory).cmp(&(!b.in_project, &b.directory)));
        locations
    }

    /// Returns the candidates in a directory.
    pub(super) fn candidates_in(&self, directory: &Path) -> &[CandidatePath] {
        self.numbers.get(directory).map_or(&[], |it| &self.candidate_paths[*it])
    }

    /// Groups candidates with the same content, where there are several.
    pub(super) fn copies(&self) -> Vec<Vec<usize>> {
        let mut alike: HashMap<(u64, u64), Vec<Vec<usize>>> = HashMap::new();
        for (number, it) in self.candidates.iter().enumerate() {
            let groups = alike.entry((it.size, it.head)).or_default();
            match groups.iter_mut().find(|group| self.are_same(group[0], number)) {
                Some(group) => group.push(number),
                None => groups.push(vec![number]),
            }
        }
        alike.into_values().flatten().filter(|it| it.len() > 1).collect()
    }

    /// Whether two candidates have the same content.
    pub(super) fn are_same(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.candidates[one], &self.candidates[other]);
        (one.size, one.head) == (other.size, other.head)
            && self.digest(one).is_some_and(|it| self.digest(other) == Some(it))
    }

    fn digest(&self, candidate: &Candidate) -> Option<[u8; 32]> {
        *candidate.digest.get_or_init(|| {
            let bytes = self.folders[candidate.directory].read(&candidate.path).ok()?;
            Some(Sha256::digest(bytes).into())
        })
    }
}
