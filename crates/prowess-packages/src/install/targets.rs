//! From clients to the smallest set of directories that all of them read.

use std::{collections::BTreeSet, path::PathBuf};

use prowess::{CLIENTS, Client, client, did_you_mean, installed_clients, nearest};

use super::place::{InstallPlace, LocationError};
use crate::lock::{InstallTarget, TargetForm};

/// The directory that most clients share.
const SHARED: &str = ".agents/skills";
/// The most combinations of directories that are tried for the smallest.
const MAX_TRIES: usize = 200_000;

/// A directory that skills are installed in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TargetDirectory {
    /// Its path, as the lock has it: relative to the project with `/`, or `~/…`.
    pub path: String,
    /// Whether the skills in it are folders, or links to those of the first directory.
    pub form: TargetForm,
    /// The chosen clients that read it.
    pub clients: Vec<&'static Client>,
}

/// The directories of clients cannot be determined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// There is no client of this name.
    #[error("there is no client `{name}`")]
    UnknownClient {
        /// The name, as given.
        name: String,
        /// The most similar name.
        nearest: Option<&'static str>,
    },
    /// A client reads no directory of its own here.
    #[error("`{name}` has no directory for skills {}", if *in_project { "in a project" } else { "of a user" })]
    NoDirectory {
        /// The client.
        name: &'static str,
        /// Whether a project was meant.
        in_project: bool,
        /// Whether it has a directory in the other scope.
        is_elsewhere: bool,
    },
}

impl TargetError {
    /// Returns what to do.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownClient { nearest: Some(nearest), .. } => did_you_mean(nearest),
            Self::UnknownClient { nearest: None, .. } => clients_with_directories(None),
            Self::NoDirectory { is_elsewhere: true, in_project: true, .. } => {
                "install the skill for all projects with `--global`".to_owned()
            }
            Self::NoDirectory { is_elsewhere: true, .. } => {
                "install the skill in a project, without `--global`".to_owned()
            }
            Self::NoDirectory { in_project, .. } => clients_with_directories(Some(*in_project)),
        }
    }
}

fn clients_with_directories(in_project: Option<bool>) -> String {
    let has = |it: &&Client| {
        let mut spots = it.spots.iter();
        spots.any(|spot| in_project.is_none_or(|it| it == spot.is_in_project()))
    };
    let names: Vec<&str> = CLIENTS.iter().filter(has).map(|it| it.name).collect();
    format!("choose one of {}", names.join(", "))
}

/// Returns the smallest set of directories that some clients read, the first of which has the
/// folders of the skills. Without names, the clients are those that are installed or used here, and
/// without these it is the directory that most clients share.
///
/// The other directories have links, or copies if `copy` is set, or if one of their clients is not
/// known to follow links.
pub fn target_directories(
    place: &InstallPlace,
    clients: &[String],
    copy: bool,
) -> Result<Vec<TargetDirectory>, TargetError> {
    let mut chosen: Vec<&'static Client> = Vec::new();
    for name in clients {
        let found = client(name).ok_or_else(|| TargetError::UnknownClient {
            name: name.clone(),
            nearest: nearest(name, CLIENTS.iter().map(|it| it.name)),
        })?;
        if options(place, found).is_empty() {
            let is_elsewhere = found.spots.iter().any(|it| !it.path.starts_with('/'));
            let (name, in_project) = (found.name, place.in_project);
            return Err(TargetError::NoDirectory { name, in_project, is_elsewhere });
        }
        chosen.push(found);
    }
    if clients.is_empty() {
        chosen = installed_clients(&place.surroundings);
        chosen.retain(|it| !options(place, it).is_empty());
    }
    // The same set, whatever the order of the names.
    let place_of = |it: &&'static Client| CLIENTS.iter().position(|other| other.name == it.name);
    chosen.sort_by_key(place_of);
    chosen.dedup_by_key(|it| it.name);
    Ok(directories_of(place, &chosen, copy))
}

/// Returns the directories that a client reads here.
fn options(place: &InstallPlace, client: &Client) -> Vec<(String, PathBuf)> {
    let mut options: Vec<(String, PathBuf)> =
        client.spots.iter().filter_map(|it| place.directory(it)).collect();
    let mut seen = BTreeSet::new();
    options.retain(|it| seen.insert(it.0.clone()));
    options
}

fn is_shared(directory: &str) -> bool {
    directory.trim_start_matches("~/") == SHARED
}

/// A directory that can be chosen, with the clients that read it, as their numbers.
struct Candidate {
    path: String,
    /// Every path by which clients know it.
    paths: Vec<String>,
    real: Option<PathBuf>,
    readers: BTreeSet<usize>,
}

fn directories_of(
    place: &InstallPlace,
    clients: &[&'static Client],
    copy: bool,
) -> Vec<TargetDirectory> {
    let shared = if place.in_project { SHARED.to_owned() } else { format!("~/{SHARED}") };
    if clients.is_empty() {
        return vec![TargetDirectory {
            path: shared,
            form: TargetForm::Folder,
            clients: Vec::new(),
        }];
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for (number, client) in clients.iter().enumerate() {
        for (path, directory) in options(place, client) {
            // Two paths of one directory are one candidate, so that nothing lies on itself.
            let real = match place.resolve(&directory) {
                Ok(real) => Some(real),
                Err(LocationError::LinkOutside(_) | LocationError::NotADirectory(_)) => None,
                Err(_) => Some(directory),
            };
            let is_same =
                |it: &&mut Candidate| it.path == path || real.is_some() && it.real == real;
            match candidates.iter_mut().find(is_same) {
                Some(known) => {
                    known.readers.insert(number);
                    if is_shared(&path) {
                        known.path.clone_from(&path);
                    }
                    known.paths.push(path);
                }
                None => {
                    let (paths, readers) = (vec![path.clone()], [number].into());
                    candidates.push(Candidate { path, paths, real, readers });
                }
            }
        }
    }
    // The shared directory first, then those of most clients, then those that clients look at first.
    candidates.sort_by_key(|it| (!is_shared(&it.path), std::cmp::Reverse(it.readers.len())));
    let mut chosen = smallest_cover(&candidates, clients.len());
    chosen.sort_unstable();
    let chosen: Vec<&Candidate> = chosen.into_iter().map(|it| &candidates[it]).collect();
    // The directory in which each client looks first.
    let first: Vec<Option<usize>> = clients
        .iter()
        .map(|client| {
            let mut own = options(place, client).into_iter();
            own.find_map(|(path, _)| chosen.iter().position(|it| it.paths.contains(&path)))
        })
        .collect();
    let form = |number: usize| {
        let mut rely = (0..clients.len()).filter(|it| first[*it] == Some(number));
        match number > 0 && !copy && rely.all(|it| clients[it].follows_links(place.in_project)) {
            true => TargetForm::Link,
            false => TargetForm::Folder,
        }
    };
    let directories = chosen.iter().enumerate().map(|(number, it)| TargetDirectory {
        path: it.path.clone(),
        form: form(number),
        clients: it.readers.iter().map(|it| clients[*it]).collect(),
    });
    directories.collect()
}

/// Returns the smallest set of candidates that reaches all clients; of several the one with the
/// first candidates.
fn smallest_cover(candidates: &[Candidate], clients: usize) -> Vec<usize> {
    let mut tries = MAX_TRIES;
    for size in 1..=clients {
        let mut chosen = Vec::new();
        if cover(candidates, (0..clients).collect(), size, &mut chosen, &mut tries) {
            return chosen;
        }
        if tries == 0 {
            break;
        }
    }
    // Of many clients with directories of their own: always the one that reaches most.
    let (mut chosen, mut rest) = (Vec::new(), (0..clients).collect::<BTreeSet<usize>>());
    while !rest.is_empty() {
        let reached = |it: &usize| candidates[*it].readers.intersection(&rest).count();
        let best = (0..candidates.len()).max_by_key(|it| (reached(it), std::cmp::Reverse(*it)));
        let Some(best) = best.filter(|it| reached(it) > 0) else { break };
        rest.retain(|it| !candidates[best].readers.contains(it));
        chosen.push(best);
    }
    chosen
}

/// Searches a set of at most `size` candidates that reaches the remaining clients.
fn cover(
    candidates: &[Candidate],
    rest: BTreeSet<usize>,
    size: usize,
    chosen: &mut Vec<usize>,
    tries: &mut usize,
) -> bool {
    // The client with the fewest choices decides first.
    let choices = |client: usize| {
        (0..candidates.len()).filter(move |it| candidates[*it].readers.contains(&client))
    };
    let Some(client) = rest.iter().copied().min_by_key(|it| choices(*it).count()) else {
        return true;
    };
    if size == 0 || *tries == 0 {
        return false;
    }
    *tries -= 1;
    for candidate in choices(client) {
        chosen.push(candidate);
        let left = rest.difference(&candidates[candidate].readers).copied().collect();
        if cover(candidates, left, size - 1, chosen, tries) {
            return true;
        }
        chosen.pop();
    }
    false
}

impl TargetDirectory {
    /// Returns the target of a skill in this directory.
    pub fn target(&self, name: &str) -> InstallTarget {
        InstallTarget { path: format!("{}/{name}", self.path), form: self.form }
    }
}
