//! Resolves which of several skills of one name a client uses.

use std::{collections::BTreeMap, path::Path};

use super::{Diagnosis, VerdictReason, diagnose::ClientView, survey::Survey};
use crate::clients::{Clash, Client, Verdict};

/// For a client that does not find a skill, substitutes a copy of it that it finds.
pub(super) fn adopt(copies: &[Vec<usize>], diagnoses: &mut [Diagnosis]) {
    for copies in copies {
        let Some(adopted) = copies
            .iter()
            .find(|it: &&usize| {
                let Diagnosis { verdict, path, .. } = &diagnoses[**it];
                path.is_some() && *verdict < Verdict::Shadowed
            })
            .copied()
        else {
            continue;
        };
        let Diagnosis { client, verdict, .. } = diagnoses[adopted];
        let path = diagnoses[adopted].path.clone();
        let shown = path.as_deref().unwrap_or(Path::new("")).display();
        let note = VerdictReason::caused_by_others(
            Verdict::Loads,
            format!("`{shown}` is a copy of it"),
            client,
        );
        for copy in copies.iter().filter(|it| **it != adopted) {
            if diagnoses[*copy].verdict == Verdict::Unseen {
                let mut notes = diagnoses[adopted].notes.clone();
                notes.push(note.clone());
                diagnoses[*copy] = Diagnosis { client, verdict, path: path.clone(), notes };
            }
        }
    }
}

/// Adds to every skill that a client finds the reasons that are caused by others of its name.
pub(super) fn resolve(
    client: &'static Client,
    survey: &Survey,
    seen: &mut [Option<ClientView<'_>>],
) {
    if client.clash == Clash::Both {
        return;
    }
    let mut noted: Vec<(usize, VerdictReason)> = Vec::new();
    for rivals in rivals(client, survey, seen) {
        let rank = |it: usize| seen[it].as_ref().map_or(usize::MAX, |it| it.rank);
        for (at, number) in rivals.iter().copied().enumerate() {
            // The first is compared with the second, all others with the first.
            let other = rivals[usize::from(at == 0)];
            let is_even = rank(number) == rank(other);
            if at == 0 && client.clash == Clash::First && !is_even {
                continue;
            }
            let path = seen[other].as_ref().and_then(|it| it.diagnosis.path.as_deref());
            let path = path.unwrap_or(&survey.candidates[other].path).display();
            let (verdict, what) = match client.clash {
                _ if survey.are_same(number, other) => (Verdict::Loads, "is a copy of it"),
                Clash::First if !is_even => {
                    (Verdict::Shadowed, "has the same name and comes first")
                }
                Clash::Random => (Verdict::Unknown, "has the same name, and either may win"),
                Clash::First | Clash::Both | Clash::Unknown => {
                    (Verdict::Unknown, "has the same name, and it is unknown which one wins")
                }
            };
            let reason = format!("`{path}` {what}");
            let fix =
                (verdict != Verdict::Loads).then(|| "rename or remove one of them".to_owned());
            noted.push((
                number,
                VerdictReason { fix, ..VerdictReason::caused_by_others(verdict, reason, client) },
            ));
        }
    }
    for (number, note) in noted {
        if let Some(seen) = &mut seen[number] {
            seen.diagnosis.note(note);
        }
    }
}

/// Returns groups of several candidates that have one name in a client, in the order in which it
/// looks at them. Those that it rejects are left out.
fn rivals(client: &Client, survey: &Survey, seen: &[Option<ClientView<'_>>]) -> Vec<Vec<usize>> {
    let mut named: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for (number, it) in seen.iter().enumerate() {
        let Some(ClientView { rank, client_path, diagnosis }) = it else { continue };
        if diagnosis.verdict < Verdict::Refused {
            let candidate = &survey.candidates[number];
            let own = candidate.name.clone().filter(|_| !client.by_folder);
            let name = own.unwrap_or_else(|| candidate.folder(Some(client_path)));
            named.entry(name).or_default().push((*rank, number));
        }
    }
    let several = named.into_values().filter(|it| it.len() > 1);
    several
        .map(|mut it| {
            it.sort_unstable();
            it.into_iter().map(|it| it.1).collect()
        })
        .collect()
}
