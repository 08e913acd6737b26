//! The lab: which skills take each other's requests, which are never found, and whether evaluations
//! hold. No model is asked; it is the matcher itself that answers.

mod probe;
mod family;
mod study;
mod advise;
mod csv;
mod requests;
mod trial;
mod evaluate;

use std::{num::NonZero, thread};

pub use self::{
    evaluate::{Confusion, Evaluation, Score, TestedRequest},
    family::{NearDuplicate, NearDuplicates},
    study::{Competitor, MissReason, Probe, ProbeStatus, StudiedSkill, Study},
    trial::{ExpectedMatch, Trial, Trials},
};
use crate::{
    library::Library,
    matching::{Match, matches_among},
    read::skill::Skill,
};

/// How many items a thread takes before somebody is told how far it has come.
const ROUND: usize = 64;
/// How many skills are looked at for each request: all that the matcher ranks.
const RANKED: usize = 100;

/// A library, and when one of its skills is matched.
#[derive(Debug, Clone, Copy)]
pub struct Lab<'lib> {
    /// The library.
    pub library: &'lib Library,
    /// The least confidence of a skill that is matched.
    pub threshold: f64,
}

/// Is told how many of how many are done.
pub type Progress<'p> = &'p mut dyn FnMut(usize, usize);

impl<'lib> Lab<'lib> {
    /// The skills that a model could get for a request, best first.
    fn ask(&self, request: &str) -> Vec<Match<'lib>> {
        matches_among(self.library, request, RANKED, can_be_matched)
    }

    /// The places and skills that requests can match.
    fn matchable(&self) -> impl Iterator<Item = (u32, &'lib Skill)> {
        let skills = (0..).zip(self.library.all());
        skills.filter(|it| can_be_matched(it.1))
    }
}

/// Whether a request can match a skill that it does not mention.
fn can_be_matched(skill: &Skill) -> bool {
    skill.hidden_by.is_none() && skill.manifest.is_for_models()
}

/// Maps items on a thread for each core, in their order.
fn mapped<I: Sync, T: Send>(
    items: &[I],
    progress: Progress<'_>,
    map: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let work = &|items: &[I]| items.iter().map(&map).collect::<Vec<T>>();
    let mut done = Vec::with_capacity(items.len());
    for round in items.chunks(threads * ROUND) {
        thread::scope(|scope| {
            let (first, rest) = round.split_at(round.len().min(ROUND));
            // Where the system refuses a thread, this one does its work.
            let start = |items| {
                let started = thread::Builder::new().spawn_scoped(scope, move || work(items));
                (items, started.ok())
            };
            let started: Vec<_> = rest.chunks(ROUND).map(start).collect();
            done.extend(work(first));
            for (items, handle) in started {
                done.extend(match handle {
                    Some(handle) => {
                        handle.join().expect("a panic in a worker goes on in the caller")
                    }
                    None => work(items),
                });
            }
        });
        progress(done.len(), items.len());
    }
    done
}
