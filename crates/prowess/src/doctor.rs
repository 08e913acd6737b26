//! The doctor: which clients find a skill, load it, or reject it.
//!
//! `Client::installed_at` finds the clients to judge, and `Survey` reads all their directories once.
//! `judge` compares the symptoms of each candidate with what is known about a client: a verdict, a
//! reason and a fix. Of several candidates of one name, `resolve` says which one a client uses.
//! `Location` and `suggestions` make the screen of bare `prowess` of it.
//!
//! The facts about clients are in the table in `clients`; nothing here knows any of them.

mod symptom;
mod surroundings;
mod candidate;
mod survey;
mod diagnose;
mod resolve;
mod location;
mod suggestion;

use std::{
    cmp::Ordering,
    path::{Path, PathBuf},
    sync::Arc,
};

use self::{candidate::Candidate, diagnose::diagnose, resolve::adopt, survey::Survey};
pub use self::{
    location::{DirectoryReader, Location, SkillTrouble},
    suggestion::{Suggestion, suggestions},
    surroundings::Surroundings,
    symptom::NameToChange,
};
use crate::{
    clients::{CLIENTS, Citation, Client, Symptom, Verdict},
    finding::Finding,
    read::{manifest::Status, source::Directory},
};

/// The result of an examination: the verdicts of clients on the skills on this machine.
#[derive(Debug)]
#[non_exhaustive]
pub struct Checkup {
    /// Every skill, sorted by name and path.
    pub skills: Vec<ExaminedSkill>,
    /// The directories that contain skills: those of the project first, each by path.
    pub locations: Vec<Location>,
    /// The clients with more descriptions than they have room for.
    pub crowded: Vec<CrowdedClient>,
    /// Findings about what could not be read.
    pub findings: Vec<Finding>,
}

/// A skill, with the verdicts of clients.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExaminedSkill {
    /// Its name; that of its folder if it has none.
    pub name: String,
    /// The path of its `SKILL.md`.
    pub path: Arc<Path>,
    /// Whether it is in the project that clients are started in.
    pub in_project: bool,
    /// Its status in this library; other clients do not know it.
    pub status: Status,
    /// The number of characters that clients list of it: those of its name and description.
    pub characters: usize,
    /// The diagnosis for each client, in the order in which they were given.
    pub diagnoses: Vec<Diagnosis>,
}

/// The treatment of a skill by one client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The client.
    pub client: &'static Client,
    /// The verdict on the skill.
    pub verdict: Verdict,
    /// The file by which the client finds it; `None` if it does not, or must be told where to look.
    pub path: Option<PathBuf>,
    /// The reasons, the worst first. A skill that the client does not look for has none.
    pub notes: Vec<VerdictReason>,
}

/// A reason for a verdict.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct VerdictReason {
    /// The verdict that follows from this reason.
    pub verdict: Verdict,
    /// The symptom of the skill; `None` if the reason is other skills of its name.
    pub symptom: Option<Symptom>,
    /// A description of the reason.
    pub reason: String,
    /// Advice on how to fix it; `None` if it is intended.
    pub fix: Option<String>,
    /// Whether `prowess check --fix` fixes it.
    pub is_fixable: bool,
    /// The source of this claim, if there is one.
    pub source: Option<&'static Citation>,
}

/// A client with more descriptions than it has room for.
#[derive(Debug)]
#[non_exhaustive]
pub struct CrowdedClient {
    /// The client.
    pub client: &'static Client,
    /// The number of skills that it would show.
    pub skills: usize,
    /// The number of characters in their names and descriptions.
    pub characters: usize,
    /// The number of characters that it shows.
    pub room: usize,
}

/// Examines the directories of clients, and some others, and returns the verdicts of the clients on
/// the skills there.
pub fn examine(
    clients: &[&'static Client],
    surroundings: &Surroundings,
    others: &[Directory],
) -> Checkup {
    let mut survey = Survey::new(clients, surroundings, others);
    let mut skills: Vec<ExaminedSkill> = survey
        .candidates
        .iter()
        .map(|it: &Candidate| ExaminedSkill::new(it, surroundings))
        .collect();
    let copies = survey.copies();
    let mut crowded = Vec::new();
    for client in clients {
        let mut diagnoses = diagnose(client, &survey, surroundings);
        crowded.extend(crowded_client(client, &survey, &diagnoses));
        adopt(&copies, &mut diagnoses);
        skills.iter_mut().zip(diagnoses).for_each(|(skill, it)| skill.diagnoses.push(it));
    }
    let mut order: Vec<usize> = (0..skills.len()).collect();
    order.sort_by(|a, b| by_name(&skills[*a], &skills[*b]));
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, number)| places[*number] = place);
    let locations = survey.locations(surroundings, &places);
    skills.sort_by(by_name);
    Checkup { skills, locations, crowded, findings: std::mem::take(&mut survey.findings) }
}

fn by_name(a: &ExaminedSkill, b: &ExaminedSkill) -> Ordering {
    (&a.name, &a.path).cmp(&(&b.name, &b.path))
}

/// Returns the clients that are installed for this user or used in this project.
pub fn installed_clients(surroundings: &Surroundings) -> Vec<&'static Client> {
    CLIENTS.iter().filter(|it| it.installed_at(surroundings).is_some()).collect()
}

/// Returns the directory that most of some clients read, by its usual name, and which of them do.
/// Of several with as many, the one that clients share, and else the first of the table.
pub fn common_spot(
    clients: &[&'static Client],
    in_project: bool,
) -> Option<(String, Vec<&'static Client>)> {
    let mut spots: Vec<(String, Vec<&'static Client>)> = Vec::new();
    for client in clients {
        for spot in client.spots.iter().filter(|it| it.is_in_project() == in_project) {
            let usual = spot.usual();
            match spots.iter_mut().find(|it| it.0 == usual) {
                Some(known) => known.1.push(client),
                None => spots.push((usual, vec![client])),
            }
        }
    }
    let most = spots.iter().map(|it| it.1.len()).max()?;
    let best = spots.into_iter().filter(|it| it.1.len() == most);
    best.min_by_key(|it| !it.0.ends_with(".agents/skills"))
}

impl ExaminedSkill {
    fn new(candidate: &Candidate, surroundings: &Surroundings) -> Self {
        let name = candidate.name.clone().unwrap_or_else(|| candidate.folder(None));
        let path = candidate.path.clone();
        let in_project = surroundings.has_project(&path);
        let characters = listed_characters(candidate);
        let status = candidate.status;
        Self { name, path, in_project, status, characters, diagnoses: Vec::new() }
    }

    /// Returns the worst verdict of a client that looks where the skill is.
    pub fn worst(&self) -> Option<Verdict> {
        self.diagnoses.iter().filter(|it| it.path.is_some()).map(|it| it.verdict).max()
    }
}

impl VerdictReason {
    /// Returns a reason that is caused by other skills of the same name.
    fn caused_by_others(verdict: Verdict, reason: String, client: &'static Client) -> Self {
        let source = Some(client.source);
        Self { verdict, symptom: None, reason, fix: None, is_fixable: false, source }
    }
}

impl Diagnosis {
    /// Whether the client looks where the skill is, and does not load it.
    pub fn is_fault(&self) -> bool {
        self.path.is_some() && self.verdict.is_fault()
    }

    /// Whether the client looks elsewhere.
    pub fn is_elsewhere(&self) -> bool {
        self.verdict == Verdict::Unseen && self.path.is_none() && !self.client.is_told_where()
    }

    fn new(client: &'static Client, path: Option<PathBuf>, notes: Vec<VerdictReason>) -> Self {
        let verdict = Verdict::Loads;
        let mut diagnosis = Self { client, verdict, path, notes: Vec::new() };
        notes.into_iter().for_each(|it| diagnosis.note(it));
        diagnosis
    }

    /// Adds a reason, and removes those that no longer matter.
    fn note(&mut self, note: VerdictReason) {
        self.verdict = self.verdict.max(note.verdict);
        let at = self.notes.partition_point(|it| it.verdict >= note.verdict);
        self.notes.insert(at, note);
        let (verdict, unknown) = (self.verdict, Verdict::Unknown);
        match verdict {
            Verdict::Unseen => self.notes.retain(|it| it.verdict == verdict),
            Verdict::Shadowed | Verdict::Refused => self.notes.retain(|it| it.verdict > unknown),
            _ => {}
        }
    }
}

/// Returns the client if it has more to show than it has room for.
fn crowded_client(
    client: &'static Client,
    survey: &Survey,
    diagnoses: &[Diagnosis],
) -> Option<CrowdedClient> {
    let room = client.room?;
    let shown = diagnoses.iter().zip(&survey.candidates).filter(|it| it.0.verdict <= Verdict::Cut);
    let lengths = shown.map(|it| listed_characters(it.1));
    let (skills, characters) = lengths.fold((0, 0), |(skills, sum), it| (skills + 1, sum + it));
    (characters > room).then_some(CrowdedClient { client, skills, characters, room })
}

/// Returns the number of characters that a client lists of a skill.
fn listed_characters(candidate: &Candidate) -> usize {
    let name = candidate.name.as_ref().map_or(0, |it| it.chars().count());
    name + candidate.description.unwrap_or_default()
}
