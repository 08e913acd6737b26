//! Suggestions by which clients would load more of the existing skills.

use std::path::{Path, PathBuf};

use super::{
    Checkup, Diagnosis, ExaminedSkill,
    location::Location,
    surroundings::Surroundings,
    symptom::{NameToChange, misnamed},
};
use crate::clients::{Client, Symptom, Verdict};

/// A suggestion, with the number of skills that it helps.
#[derive(Debug)]
#[non_exhaustive]
pub enum Suggestion<'a> {
    /// Fix the frontmatter of skills in these directories, which is safe.
    Fix {
        /// The directories.
        directories: Vec<&'a Path>,
        /// The number of skills that it helps.
        skills: usize,
    },
    /// Make the names of skills in these directories match those of their folders.
    Rename {
        /// The name to change.
        which: NameToChange,
        /// The directories.
        directories: Vec<&'a Path>,
        /// The number of skills that it helps.
        skills: usize,
    },
    /// Make the names of skills in these directories and of their folders lowercase, with hyphens.
    Lowercase {
        /// The directories.
        directories: Vec<&'a Path>,
        /// The number of skills that it helps.
        skills: usize,
    },
    /// Make the skills of a directory available to clients that do not read it, in one that they
    /// do.
    Share {
        /// The directory of the skills.
        from: &'a Path,
        /// The directory that the clients read.
        to: PathBuf,
        /// Whether links are known to work; otherwise it takes copies.
        is_by_link: bool,
        /// The clients that would then find them.
        clients: Vec<&'static Client>,
        /// The number of skills that it helps.
        skills: usize,
    },
    /// Review the faults in these directories that need a decision.
    Check {
        /// The directories.
        directories: Vec<&'a Path>,
        /// The number of skills that it helps.
        skills: usize,
    },
    /// Review the skills that clients truncate.
    Truncated {
        /// One of the skills.
        name: &'a str,
        /// The number of skills that are truncated.
        skills: usize,
    },
    /// Review skills that have the same name.
    Compare {
        /// One of them.
        name: &'a str,
        /// The number of skills that are shadowed, including those of other names.
        skills: usize,
    },
}

/// Returns suggestions: first those that repair skills that no client loads at all, then those for
/// other faults, then those that make skills available to more clients, each the most helpful
/// first.
pub fn suggestions<'a>(checkup: &'a Checkup, surroundings: &Surroundings) -> Vec<Suggestion<'a>> {
    let mut all: Vec<(Urgency, Suggestion<'a>)> = Vec::new();
    let (mut fixable, mut others) = (Tally::default(), Tally::default());
    let (mut folders, mut names) = (Tally::default(), Tally::default());
    let mut malformed = Tally::default();
    let mut shadowed: Vec<&'a ExaminedSkill> = Vec::new();
    let (mut truncated, mut first_truncated) = (Tally::default(), None);
    for location in &checkup.locations {
        for skill in location.skills(checkup) {
            let here = skill.diagnoses.iter().filter(|it| location.is_found_here(it));
            let is_lost =
                here.clone().all(|it| matches!(it.verdict, Verdict::Refused | Verdict::Unknown));
            for diagnosis in here.filter(|it| needs_help(it)) {
                let tally = match kind(diagnosis, skill) {
                    Kind::Fixable => &mut fixable,
                    Kind::Misnamed(NameToChange::Folder) => &mut folders,
                    Kind::Misnamed(NameToChange::Skill) => &mut names,
                    Kind::Malformed => &mut malformed,
                    Kind::Shadowed => {
                        shadowed.push(skill);
                        continue;
                    }
                    Kind::Truncated => {
                        first_truncated.get_or_insert(&*skill.name);
                        &mut truncated
                    }
                    Kind::Other => &mut others,
                };
                tally.add(&location.directory, skill, is_lost);
            }
        }
        all.extend(share(location, checkup, surroundings));
    }
    let urgency = fixable.urgency();
    let Tally { directories, skills, .. } = fixable;
    all.push((urgency, Suggestion::Fix { directories, skills: skills.len() }));
    for (which, tally) in [(NameToChange::Folder, folders), (NameToChange::Skill, names)] {
        let urgency = tally.urgency();
        let Tally { directories, skills, .. } = tally;
        all.push((urgency, Suggestion::Rename { which, directories, skills: skills.len() }));
    }
    let urgency = malformed.urgency();
    let Tally { directories, skills, .. } = malformed;
    all.push((urgency, Suggestion::Lowercase { directories, skills: skills.len() }));
    let urgency = others.urgency();
    let Tally { directories, skills, .. } = others;
    all.push((urgency, Suggestion::Check { directories, skills: skills.len() }));
    if let Some(name) = first_truncated {
        let skills = truncated.skills.len();
        all.push((truncated.urgency(), Suggestion::Truncated { name, skills }));
    }
    if let Some(first) = shadowed.first() {
        let urgency = Urgency { kind: Help::Mend, weight: shadowed.len() };
        let mut paths: Vec<&Path> = shadowed.iter().map(|it| &*it.path).collect();
        paths.sort_unstable();
        paths.dedup();
        all.push((urgency, Suggestion::Compare { name: &first.name, skills: paths.len() }));
    }
    all.retain(|it| it.0.weight > 0);
    all.sort_by_key(|it| (it.0.kind, std::cmp::Reverse(it.0.weight)));
    // The skills of two directories in one might have the same names.
    let mut targets: Vec<PathBuf> = Vec::new();
    all.retain(|it| match &it.1 {
        Suggestion::Share { to, .. } if targets.contains(to) => false,
        Suggestion::Share { to, .. } => {
            targets.push(to.clone());
            true
        }
        _ => true,
    });
    all.into_iter().map(|it| it.1).collect()
}

/// The sort key of a suggestion.
struct Urgency {
    kind: Help,
    /// The number of additional loads of a skill by a client.
    weight: usize,
}

/// The effect of a suggestion, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Help {
    /// Repairs a skill that no client loads.
    Rescue,
    Mend,
    Share,
}

/// Skills and directories, and the number of additional loads of a skill by a client.
#[derive(Default)]
struct Tally<'a> {
    weight: usize,
    /// Whether one of the skills is loaded by no client.
    has_lost: bool,
    directories: Vec<&'a Path>,
    skills: Vec<&'a Path>,
}

impl<'a> Tally<'a> {
    fn urgency(&self) -> Urgency {
        let kind = if self.has_lost { Help::Rescue } else { Help::Mend };
        Urgency { kind, weight: self.weight }
    }

    fn add(&mut self, directory: &'a Path, skill: &'a ExaminedSkill, is_lost: bool) {
        self.weight += 1;
        self.has_lost |= is_lost;
        if !self.directories.contains(&directory) {
            self.directories.push(directory);
        }
        if self.skills.last() != Some(&&*skill.path) && !self.skills.contains(&&*skill.path) {
            self.skills.push(&skill.path);
        }
    }
}

/// The kind of help that a skill needs in a client.
enum Kind {
    Fixable,
    Misnamed(NameToChange),
    /// Neither its name nor that of its folder is valid, and in lowercase both are.
    Malformed,
    Shadowed,
    Truncated,
    Other,
}

/// Whether a skill is not loaded, or not as a whole, and its author did not ask for that.
fn needs_help(diagnosis: &Diagnosis) -> bool {
    match diagnosis.verdict {
        Verdict::Loads | Verdict::Asks => false,
        Verdict::Unknown => diagnosis.notes.iter().any(|it| it.verdict == Verdict::Unknown),
        Verdict::Hidden => !diagnosis
            .notes
            .iter()
            .all(|it| matches!(it.symptom, Some(Symptom::NotForModels | Symptom::NotForPeople))),
        Verdict::Cut | Verdict::Shadowed | Verdict::Refused | Verdict::Unseen => true,
    }
}

fn kind(diagnosis: &Diagnosis, skill: &ExaminedSkill) -> Kind {
    let mut reasons = diagnosis.notes.iter().filter(|it| it.verdict == diagnosis.verdict);
    match diagnosis.verdict {
        Verdict::Shadowed => Kind::Shadowed,
        Verdict::Cut if !reasons.clone().all(|it| it.is_fixable) => Kind::Truncated,
        _ if reasons.clone().next().is_none() => Kind::Other,
        _ if reasons.clone().any(|it| is_form_of_name(it.symptom))
            && reasons.clone().all(|it| is_about_name(it.symptom)) =>
        {
            kind_of_malformed(diagnosis, skill)
        }
        _ if reasons.clone().all(|it| it.is_fixable) => Kind::Fixable,
        _ if reasons.all(|it| matches!(it.symptom, Some(Symptom::NameNotFolder(_)))) => {
            let path = diagnosis.path.as_deref().unwrap_or(&skill.path);
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            misnamed(&skill.name, &folder.to_string_lossy()).map_or(Kind::Other, Kind::Misnamed)
        }
        _ => Kind::Other,
    }
}

fn is_form_of_name(symptom: Option<Symptom>) -> bool {
    matches!(symptom, Some(Symptom::NameForm(_)))
}

fn is_about_name(symptom: Option<Symptom>) -> bool {
    is_form_of_name(symptom) || matches!(symptom, Some(Symptom::NameNotFolder(_)))
}

/// Returns the kind of help for a name with characters that are not allowed: that of the folder, if
/// it has none.
fn kind_of_malformed(diagnosis: &Diagnosis, skill: &ExaminedSkill) -> Kind {
    let path = diagnosis.path.as_deref().unwrap_or(&skill.path);
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    match misnamed(&skill.name, &folder.to_string_lossy()) {
        Some(NameToChange::Skill) => Kind::Misnamed(NameToChange::Skill),
        None if skill.name.contains(char::is_alphanumeric) => Kind::Malformed,
        _ => Kind::Other,
    }
}

/// Suggests where to put links or copies of a directory's skills for clients that do not read it.
fn share<'a>(
    location: &'a Location,
    checkup: &Checkup,
    surroundings: &Surroundings,
) -> Option<(Urgency, Suggestion<'a>)> {
    // Of a repository, more than its skills would be copied.
    if location
        .skills(checkup)
        .filter_map(|it| it.path.strip_prefix(&location.directory).ok())
        .any(|it| it.components().count() != 2)
    {
        return None;
    }
    let mut strangers = location.strangers(checkup);
    strangers.retain(|it| has_room(it, location, checkup));
    let readers = location.readers(checkup);
    let looks = |client: &Client, directory: &Path| {
        let spots = client.spots.iter().flat_map(|it| surroundings.directories(it));
        spots.into_iter().any(|it| it == directory)
    };
    // System-wide directories are for the administrator to change.
    let spots = strangers
        .iter()
        .flat_map(|it| it.spots)
        .filter(|it| it.is_in_project() == location.in_project && !it.path.starts_with('/'));
    // The directory that reaches most clients; one that reads both directories may show a skill
    // twice.
    let mut best: Option<(usize, std::cmp::Reverse<usize>, PathBuf)> = None;
    for directory in spots.filter_map(|it| surroundings.directories(it).into_iter().next()) {
        let reached = strangers.iter().filter(|it| looks(it, &directory)).count();
        let doubled = readers.iter().filter(|it| looks(it.client, &directory)).count();
        let found = (reached, std::cmp::Reverse(doubled), directory);
        if best.as_ref().is_none_or(|it| (found.0, found.1) > (it.0, it.1)) {
            best = Some(found);
        }
    }
    let (_, _, to) = best?;
    let clients: Vec<&'static Client> = strangers.into_iter().filter(|it| looks(it, &to)).collect();
    let skills = location
        .skills(checkup)
        .filter(|it: &&ExaminedSkill| {
            let own = it.diagnoses.iter().filter(|it| it.is_elsewhere());
            own.into_iter().any(|it| clients.iter().any(|client| client.name == it.client.name))
        })
        .count();
    let is_by_link = clients.iter().all(|it| it.follows_links(location.in_project));
    let urgency = Urgency { kind: Help::Share, weight: skills * clients.len() };
    let from = &*location.directory;
    Some((urgency, Suggestion::Share { from, to, is_by_link, clients, skills }))
}

/// Whether a client can list the skills of a directory that it does not read, in addition to those
/// that it already lists.
fn has_room(client: &Client, location: &Location, checkup: &Checkup) -> bool {
    let Some(room) = client.room else { return true };
    let own = |skill: &&ExaminedSkill, is_meant: fn(&Diagnosis) -> bool| {
        skill.diagnoses.iter().any(|it| it.client.name == client.name && is_meant(it))
    };
    let listed = checkup.skills.iter().filter(|it| own(it, |it| it.verdict <= Verdict::Cut));
    let more = location.skills(checkup).filter(|it| own(it, Diagnosis::is_elsewhere));
    listed.chain(more).map(|it| it.characters).sum::<usize>() <= room
}
