//! The lab: finds skills that take each other's requests or are never found, and runs evaluations.
//! It uses the matcher itself, and no model.
//!
//! `probes` are requests in the words of a skill's author; `Lab::study` finds how each skill
//! performs on them, `Advisor` says why, and `Lab::families` finds near duplicates. `Requests::read`
//! reads evaluation files, and `Lab::evaluate` compares what they expect with what matches.

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

/// The number of items that a thread processes between progress reports.
const ROUND: usize = 64;
/// The number of skills that are looked at for each request: all that the matcher ranks.
const RANKED: usize = 100;

/// A library, and the threshold for a match.
#[derive(Debug, Clone, Copy)]
pub struct Lab<'lib> {
    /// The library.
    pub library: &'lib Library,
    /// The minimum confidence of a match.
    pub threshold: f64,
}

/// A callback for progress: the number of items done, and their total.
pub type Progress<'p> = &'p mut dyn FnMut(usize, usize);

impl<'lib> Lab<'lib> {
    /// Returns the skills that a model could get for a request, best first.
    fn ask(&self, request: &str) -> Vec<Match<'lib>> {
        matches_among(self.library, request, RANKED, can_be_matched)
    }

    /// Returns the skills that requests can match, with their positions.
    fn matchable(&self) -> impl Iterator<Item = (u32, &'lib Skill)> {
        let skills = (0..).zip(self.library.all());
        skills.filter(|it| can_be_matched(it.1))
    }
}

/// Whether a request can match a skill that it does not mention.
fn can_be_matched(skill: &Skill) -> bool {
    skill.hidden_by.is_none() && skill.manifest.is_for_models()
}

/// Maps items on one thread for each core, keeping their order.
fn map_parallel<I: Sync, T: Send>(
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
            // If the system refuses a thread, this one does its work.
            let started = rest.chunks(ROUND).map(|items| {
                let started = thread::Builder::new().spawn_scoped(scope, move || work(items));
                (items, started.ok())
            });
            let started: Vec<_> = started.collect();
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
