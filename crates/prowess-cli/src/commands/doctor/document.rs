//! A checkup as JSON.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use prowess::{
    Checkup, Client, CrowdedClient, Diagnosis, ExaminedSkill, Surroundings, Verdict, VerdictReason,
    common_spot,
};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::super::{FindingJson, finding_json};

/// Returns a whole checkup, with the named skills.
pub(super) fn document<'a>(
    checkup: &'a Checkup,
    skills: &[&'a ExaminedSkill],
    clients: &[&'static Client],
    surroundings: &Surroundings,
    needs: Vec<Option<Json>>,
) -> impl Serialize {
    CheckupJson {
        clients: clients
            .iter()
            .enumerate()
            .map(|(number, client): (usize, &&'static Client)| {
                let verdicts: Vec<Verdict> =
                    skills.iter().map(|it| it.diagnoses[number].verdict).collect();
                ClientJson {
                    name: client.name,
                    label: client.label,
                    installed_at: client.installed_at(surroundings),
                    is_told_where: client.is_told_where(),
                    verdicts: Counts(verdicts),
                }
            })
            .collect(),
        skills: skills.iter().zip(needs).map(|(it, needs)| skill_json(it, needs)).collect(),
        crowded: checkup.crowded.iter().map(crowded_json).collect(),
        findings: checkup.findings.iter().map(finding_json).collect(),
    }
}

#[derive(Serialize)]
struct CheckupJson<'a> {
    clients: Vec<ClientJson>,
    skills: Vec<SkillJson<'a>>,
    crowded: Vec<CrowdedJson>,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct ClientJson {
    name: &'static str,
    label: &'static str,
    /// The path that shows that it is installed or used here.
    installed_at: Option<PathBuf>,
    /// Whether it has no directories of its own, so that it may not find a skill that it would
    /// load.
    is_told_where: bool,
    verdicts: Counts,
}

#[derive(Serialize)]
struct SkillJson<'a> {
    name: &'a str,
    path: Cow<'a, str>,
    verdicts: Verdicts<'a>,
    notes: Vec<NoteJson<'a>>,
    /// The place where a copy would reach most of the clients that look elsewhere.
    elsewhere: Option<ElsewhereJson>,
    /// Its needs, if one skill was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<Json>,
}

#[derive(Serialize)]
struct ElsewhereJson {
    directory: String,
    reaches: Vec<&'static str>,
}

#[derive(Serialize)]
struct NoteJson<'a> {
    client: &'static str,
    verdict: &'static str,
    reason: &'a str,
    fix: Option<&'a str>,
    /// Whether `check --fix` fixes it.
    fixable: bool,
    source: Option<&'static str>,
    checked: Option<&'static str>,
}

#[derive(Serialize)]
struct CrowdedJson {
    client: &'static str,
    skills: usize,
    characters: usize,
    room: usize,
}

/// The number of each verdict, the best first.
struct Counts(Vec<Verdict>);

impl Serialize for Counts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            Verdict::ALL.iter().map(|verdict| {
                (verdict.as_str(), self.0.iter().filter(|it| *it == verdict).count())
            }),
        )
    }
}

/// The verdict on a skill by each client, by name.
struct Verdicts<'a>(&'a [Diagnosis]);

impl Serialize for Verdicts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|it| (it.client.name, it.verdict.as_str())))
    }
}

fn skill_json(skill: &ExaminedSkill, needs: Option<Json>) -> SkillJson<'_> {
    let path: &Path = &skill.path;
    let notes = skill.diagnoses.iter().flat_map(|it| it.notes.iter().map(|note| (it.client, note)));
    let elsewhere = skill.diagnoses.iter().filter(|it| it.is_elsewhere()).map(|it| it.client);
    let elsewhere: Vec<&'static Client> = elsewhere.collect();
    SkillJson {
        name: &skill.name,
        path: path.to_string_lossy(),
        verdicts: Verdicts(&skill.diagnoses),
        notes: notes.map(|(client, it)| note_json(client, it)).collect(),
        elsewhere: common_spot(&elsewhere, skill.in_project).map(|(directory, reached)| {
            ElsewhereJson { directory, reaches: reached.iter().map(|it| it.name).collect() }
        }),
        needs,
    }
}

fn note_json<'a>(client: &'static Client, note: &'a VerdictReason) -> NoteJson<'a> {
    NoteJson {
        client: client.name,
        verdict: note.verdict.as_str(),
        reason: &note.reason,
        fix: note.fix.as_deref(),
        fixable: note.is_fixable,
        source: note.source.map(|it| it.url),
        checked: note.source.map(|it| it.checked),
    }
}

fn crowded_json(crowded: &CrowdedClient) -> CrowdedJson {
    let CrowdedClient { client, skills, characters, room, .. } = *crowded;
    CrowdedJson { client: client.name, skills, characters, room }
}
