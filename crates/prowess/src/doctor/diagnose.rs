//! Diagnoses skills for a client, by the facts known about it.

use std::path::PathBuf;

use super::{
    Diagnosis, VerdictReason,
    candidate::Candidate,
    resolve::resolve,
    surroundings::Surroundings,
    survey::{ClientPath, Survey},
};
use crate::clients::{Citation, Client, Symptom, Verdict, symptom::OPEN};

/// The path by which a client finds a candidate, and its precedence.
pub(super) struct ClientView<'a> {
    pub(super) rank: usize,
    pub(super) client_path: ClientPath<'a>,
    pub(super) diagnosis: Diagnosis,
}

/// Diagnoses every candidate for a client.
pub(super) fn diagnose(
    client: &'static Client,
    survey: &Survey,
    surroundings: &Surroundings,
) -> Vec<Diagnosis> {
    if client.is_told_where() {
        return survey
            .candidates
            .iter()
            .map(|it: &Candidate| Diagnosis::new(client, None, judge(client, it, None)))
            .collect();
    }
    let directories: Vec<(usize, PathBuf)> = client
        .spots
        .iter()
        .enumerate()
        .flat_map(|(rank, spot)| {
            surroundings.directories(spot).into_iter().map(move |it| (rank, it))
        })
        .collect();
    let mut seen: Vec<Option<ClientView<'_>>> = survey.candidates.iter().map(|_| None).collect();
    for (rank, directory) in &directories {
        for candidate_path in survey.candidates_in(directory) {
            let candidate = &survey.candidates[candidate_path.candidate];
            let client_path = candidate_path.client_path(directory, &client.spots[*rank]);
            let known = &mut seen[candidate_path.candidate];
            // The first path that leads there is used.
            if known.as_ref().is_some_and(|it| it.diagnosis.verdict != Verdict::Unseen) {
                continue;
            }
            let path = Some(directory.join(client_path.within).join(&candidate.file_name));
            let notes = judge(client, candidate, Some(&client_path));
            let diagnosis = Diagnosis::new(client, path, notes);
            *known = Some(ClientView { rank: *rank, client_path, diagnosis });
        }
    }
    resolve(client, survey, &mut seen);
    let diagnoses = seen.into_iter().map(|it| match it {
        Some(it) => it.diagnosis,
        None => Diagnosis { verdict: Verdict::Unseen, ..Diagnosis::new(client, None, Vec::new()) },
    });
    diagnoses.collect()
}

/// Returns the reasons that a candidate gives a client, by the facts known about the client.
fn judge(
    client: &'static Client,
    candidate: &Candidate,
    client_path: Option<&ClientPath<'_>>,
) -> Vec<VerdictReason> {
    let mut notes = Vec::new();
    for fact in client.facts {
        for symptom in fact.symptoms.iter().filter(|it| it.applies_to(candidate, client_path)) {
            notes.push(note(*symptom, fact.verdict, Some(fact.source), candidate, client_path));
        }
    }
    // A user who names the directories may name the target of a link.
    let on_the_way = OPEN.iter().filter(|it| {
        it.is_about_path()
            && (client_path.is_some() || !it.is_about_link())
            && it.applies_to(candidate, client_path)
    });
    for symptom in on_the_way.chain(&candidate.open).filter(|it| !client.knows(**it)) {
        notes.push(note(*symptom, Verdict::Unknown, None, candidate, client_path));
    }
    notes
}

fn note(
    symptom: Symptom,
    verdict: Verdict,
    source: Option<&'static Citation>,
    candidate: &Candidate,
    client_path: Option<&ClientPath<'_>>,
) -> VerdictReason {
    VerdictReason {
        verdict,
        symptom: Some(symptom),
        reason: reason(symptom, verdict, candidate, client_path),
        fix: symptom.fix(candidate, client_path).filter(|_| verdict != Verdict::Loads),
        is_fixable: symptom.is_fixable(candidate),
        source,
    }
}

fn reason(
    symptom: Symptom,
    verdict: Verdict,
    candidate: &Candidate,
    client_path: Option<&ClientPath<'_>>,
) -> String {
    let says = symptom.describe_for(candidate, client_path);
    match verdict {
        Verdict::Loads => format!("{says}; it is loaded anyway"),
        Verdict::Asks => format!("{says}, which must be trusted first"),
        Verdict::Cut => format!("{says}; the rest is not shown"),
        Verdict::Hidden if symptom == Symptom::NotForPeople => {
            format!("{says}: only the model can use it")
        }
        Verdict::Hidden => format!("{says}: only people can invoke it"),
        Verdict::Unknown => format!("{says}; what the client does then is unknown"),
        Verdict::Shadowed | Verdict::Refused | Verdict::Unseen => says,
    }
}
