//! A checkup as JSON.

use prowess::{Checkup, Client, Diagnosis, Examined, Note, Verdict};
use serde_json::{Map, Value as Json, json};

use super::super::finding_json;

/// All of a checkup, with the skills that were asked for.
pub(super) fn document(
    checkup: &Checkup,
    skills: &[&Examined],
    clients: &[&'static Client],
) -> Json {
    let clients: Vec<Json> = clients
        .iter()
        .enumerate()
        .map(|(number, it)| {
            let verdicts = skills.iter().map(|it| it.diagnoses[number].verdict);
            json!({ "name": it.name, "label": it.label, "verdicts": counts(verdicts) })
        })
        .collect();
    let crowded: Vec<Json> = checkup
        .crowded
        .iter()
        .map(|it| {
            json!({
                "client": it.client.name,
                "skills": it.skills,
                "characters": it.characters,
                "room": it.room,
            })
        })
        .collect();
    json!({
        "clients": clients,
        "skills": skills.iter().map(|it| skill(it)).collect::<Vec<_>>(),
        "crowded": crowded,
        "findings": checkup.findings.iter().map(finding_json).collect::<Vec<_>>(),
    })
}

/// How often there is each verdict, the best first.
fn counts(verdicts: impl Iterator<Item = Verdict> + Clone) -> Map<String, Json> {
    let count = |it: Verdict| verdicts.clone().filter(|other| *other == it).count();
    Verdict::ALL.into_iter().map(|it| (it.to_string(), count(it).into())).collect()
}

/// A skill; clients that do not look where it lies, for no reason of its own, are only named.
fn skill(skill: &Examined) -> Json {
    let is_elsewhere = |it: &&Diagnosis| it.verdict == Verdict::Unseen && it.notes.is_empty();
    let (elsewhere, told): (Vec<&Diagnosis>, Vec<&Diagnosis>) =
        skill.diagnoses.iter().partition(is_elsewhere);
    json!({
        "name": skill.name,
        "path": skill.path.to_string_lossy(),
        "clients": told.into_iter().map(diagnosis).collect::<Vec<_>>(),
        "unseen": elsewhere.iter().map(|it| it.client.name).collect::<Vec<_>>(),
    })
}

fn diagnosis(diagnosis: &Diagnosis) -> Json {
    let Diagnosis { client, verdict, path, notes } = diagnosis;
    json!({
        "client": client.name,
        "verdict": verdict.as_str(),
        "path": path.as_ref().map(|it| it.to_string_lossy()),
        "notes": notes.iter().map(note).collect::<Vec<_>>(),
    })
}

fn note(note: &Note) -> Json {
    json!({
        "verdict": note.verdict.as_str(),
        "reason": note.reason,
        "fix": note.fix,
        "source": note.source.map(|it| it.url),
        "checked": note.source.map(|it| it.checked),
    })
}
