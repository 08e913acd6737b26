//! Diagnoses skills for a client, by the facts known about it.

use std::path::PathBuf;

use super::{
    Diagnosis, VerdictReason,
    candidate::Candidate,
    look::{Leaf, Look},
    resolve::resolve,
    surroundings::Surroundings,
};
use crate::clients::{Citation, Client, Symptom, Verdict, symptom::OPEN};

/// The path by which a client finds a candidate, and its precedence.
pub(super) struct ClientView<'a> {
    pub(super) rank: usize,
    pub(super) leaf: Leaf<'a>,
    pub(super) diagnosis: Diagnosis,
}

/// Diagnoses every candidate for a client.
pub(super) fn diagnose(
    client: &'static Client,
    look: &Look,
    surroundings: &Surroundings,
) -> Vec<Diagnosis> {
    if client.is_told_where() {
        return look
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
    let mut seen: Vec<Option<ClientView<'_>>> = look.candidates.iter().map(|_| None).collect();
    for (rank, directory) in &directories {
        for sprig in look.inside(directory) {
            let candidate = &look.candidates[sprig.candidate];
            let leaf = sprig.before(directory, &client.spots[*rank]);
            let known = &mut seen[sprig.candidate];
            // The first path that leads there is used.
            if known.as_ref().is_some_and(|it| it.diagnosis.verdict != Verdict::Unseen) {
                continue;
            }
            let path = Some(directory.join(leaf.within).join(&candidate.spelt));
            let notes = judge(client, candidate, Some(&leaf));
            let diagnosis = Diagnosis::new(client, path, notes);
            *known = Some(ClientView { rank: *rank, leaf, diagnosis });
        }
    }
    resolve(client, look, &mut seen);
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
    leaf: Option<&Leaf<'_>>,
) -> Vec<VerdictReason> {
    let mut notes = Vec::new();
    for fact in client.facts {
        for symptom in fact.symptoms.iter().filter(|it| it.applies_to(candidate, leaf)) {
            notes.push(note(*symptom, fact.verdict, Some(fact.source), candidate, leaf));
        }
    }
    // A client that is told where to look may be given the target of a link.
    let on_the_way = OPEN.iter().filter(|it| {
        it.is_of_way() && (leaf.is_some() || !it.is_of_link()) && it.applies_to(candidate, leaf)
    });
    for symptom in on_the_way.chain(&candidate.open).filter(|it| !client.knows(**it)) {
        notes.push(note(*symptom, Verdict::Unknown, None, candidate, leaf));
    }
    notes
}

fn note(
    symptom: Symptom,
    verdict: Verdict,
    source: Option<&'static Citation>,
    candidate: &Candidate,
    leaf: Option<&Leaf<'_>>,
) -> VerdictReason {
    VerdictReason {
        verdict,
        symptom: Some(symptom),
        reason: reason(symptom, verdict, candidate, leaf),
        fix: symptom.fix(candidate, leaf).filter(|_| verdict != Verdict::Loads),
        is_fixable: symptom.is_fixable(candidate),
        source,
    }
}

fn reason(
    symptom: Symptom,
    verdict: Verdict,
    candidate: &Candidate,
    leaf: Option<&Leaf<'_>>,
) -> String {
    let says = symptom.says(candidate, leaf);
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
