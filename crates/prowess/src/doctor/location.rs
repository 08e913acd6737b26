//! A directory with skills, and how clients treat them.

use std::path::PathBuf;

use super::{Checkup, Diagnosis, ExaminedSkill, VerdictReason};
use crate::clients::{Client, Verdict};

/// A directory that contains skills.
#[derive(Debug)]
#[non_exhaustive]
pub struct Location {
    /// Its path.
    pub directory: PathBuf,
    /// Other paths of the same directory, under which clients know it.
    pub aliases: Vec<PathBuf>,
    /// Whether it is in the project that clients are started in.
    pub in_project: bool,
    /// The skills in it, as indices into [`Checkup::skills`]. A linked skill is in several.
    pub skills: Vec<usize>,
}

/// A client that reads a directory.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DirectoryReader {
    /// The client.
    pub client: &'static Client,
    /// The number of skills that it loads.
    pub loaded: usize,
    /// The number of those that it hides from the model or from people.
    pub hidden: usize,
    /// The number of skills for which it is unknown whether it loads them.
    pub unknown: usize,
}

/// A skill that a client drops, truncates, hides or shadows, or may not load.
#[derive(Debug)]
#[non_exhaustive]
pub struct SkillTrouble<'a> {
    /// The skill.
    pub skill: &'a ExaminedSkill,
    /// The verdict.
    pub verdict: Verdict,
    /// The clients that do this for the same reason.
    pub clients: Vec<&'static Client>,
    /// The reason, if there is one.
    pub note: Option<&'a VerdictReason>,
}

impl Location {
    /// Returns the clients that read this directory, with what they load from it.
    pub fn readers(&self, checkup: &Checkup) -> Vec<DirectoryReader> {
        let mut readers: Vec<DirectoryReader> = Vec::new();
        for diagnosis in self.skills(checkup).flat_map(|it| &it.diagnoses) {
            if !self.is_found_here(diagnosis) {
                continue;
            }
            let client = diagnosis.client;
            let at = readers.iter().position(|it| it.client.name == client.name);
            let at = at.unwrap_or_else(|| {
                readers.push(DirectoryReader { client, loaded: 0, hidden: 0, unknown: 0 });
                readers.len() - 1
            });
            readers[at].hidden += usize::from(diagnosis.verdict == Verdict::Hidden);
            match diagnosis.verdict {
                Verdict::Unknown => readers[at].unknown += 1,
                verdict if verdict < Verdict::Unknown => readers[at].loaded += 1,
                _ => {}
            }
        }
        readers
    }

    /// Returns the clients that do not read this directory and find some of its skills nowhere
    /// else.
    pub fn strangers(&self, checkup: &Checkup) -> Vec<&'static Client> {
        let mut strangers: Vec<&'static Client> = Vec::new();
        for diagnosis in self.skills(checkup).flat_map(|it| &it.diagnoses) {
            let client = diagnosis.client;
            if diagnosis.is_elsewhere() && !strangers.iter().any(|it| it.name == client.name) {
                strangers.push(client);
            }
        }
        strangers
    }

    /// Returns the skills found here that clients drop, shadow, may not load, truncate or hide, the
    /// worst first.
    pub fn troubles<'a>(&self, checkup: &'a Checkup) -> Vec<SkillTrouble<'a>> {
        let mut troubles: Vec<SkillTrouble<'a>> = Vec::new();
        for skill in self.skills(checkup) {
            let first = troubles.len();
            for diagnosis in skill.diagnoses.iter().filter(|it| self.is_found_here(it)) {
                let Diagnosis { client, verdict, notes, .. } = diagnosis;
                let note = notes.iter().find(|it| it.verdict == *verdict);
                if *verdict <= Verdict::Asks || *verdict == Verdict::Unknown && note.is_none() {
                    continue;
                }
                match troubles[first..].iter_mut().find(|it: &&mut SkillTrouble<'_>| {
                    it.verdict == *verdict
                        && it.note.and_then(|it| it.symptom) == note.and_then(|it| it.symptom)
                }) {
                    Some(trouble) => trouble.clients.push(client),
                    None => {
                        let (verdict, clients) = (*verdict, vec![*client]);
                        troubles.push(SkillTrouble { skill, verdict, clients, note });
                    }
                }
            }
        }
        troubles.sort_by_key(|it| (gravity(it.verdict), std::cmp::Reverse(it.clients.len())));
        troubles
    }

    /// Returns the skills in it.
    pub fn skills<'a>(&self, checkup: &'a Checkup) -> impl Iterator<Item = &'a ExaminedSkill> {
        self.skills.iter().map(|it| &checkup.skills[*it])
    }

    /// Returns whether a client finds a skill by a path in this directory.
    pub(super) fn is_found_here(&self, diagnosis: &Diagnosis) -> bool {
        let Some(path) = &diagnosis.path else { return false };
        self.aliases.iter().chain([&self.directory]).any(|it| path.starts_with(it))
    }
}

/// Returns the rank of a verdict in reports: what is missing altogether comes first, and what its
/// author asked for last.
fn gravity(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Refused | Verdict::Unseen => 0,
        Verdict::Shadowed => 1,
        Verdict::Unknown => 2,
        Verdict::Cut => 3,
        _ => 4,
    }
}
