//! Evaluations: compares what requests match with what they should match.

use std::{cmp::Ordering, collections::BTreeMap};

use super::{ExpectedMatch, Lab, Progress, Trial, map_parallel};
use crate::read::skill::Skill;

/// The results of requests whose skills are known.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Evaluation<'lib> {
    /// Every request, in order.
    pub tested: Vec<TestedRequest<'lib>>,
    /// The score of each skill that was expected or matched, the worst first.
    pub scores: Vec<(&'lib Skill, Score)>,
    /// The score of all of them together.
    pub total: Score,
    /// The confusion matrix: the most frequent confusion first, then the correct matches.
    pub matrix: Vec<Confusion<'lib>>,
}

/// The result of a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TestedRequest<'lib> {
    /// The request, and the expected result.
    pub trial: Trial<'lib>,
    /// The skill that it matches, with its confidence.
    pub matched: Option<(&'lib Skill, f64)>,
    /// The rank of the expected skill, from 1, at any confidence.
    pub rank: Option<usize>,
    /// Whether the result was as expected.
    pub passed: bool,
}

/// The numbers of correct and incorrect matches of a skill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Score {
    /// Requests that should match it, and do.
    pub right: usize,
    /// Requests that match it, and should not.
    pub wrong: usize,
    /// Requests that should match it, and do not.
    pub missed: usize,
}

/// The number of requests that matched one skill when another was expected.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Confusion<'lib> {
    /// The skill that was expected; `None` if none was, or only another than the one matched.
    pub expected: Option<&'lib Skill>,
    /// The skill that was matched, if any.
    pub matched: Option<&'lib Skill>,
    /// The number of requests.
    pub count: usize,
}

impl<'lib> Lab<'lib> {
    /// Runs every request, and records its match: the first skill, if its confidence is high
    /// enough.
    pub fn evaluate(&self, trials: Vec<Trial<'lib>>, progress: Progress<'_>) -> Evaluation<'lib> {
        let mut evaluation = Evaluation {
            tested: map_parallel(&trials, progress, |trial| self.test(trial)),
            ..Evaluation::default()
        };
        let mut scores: BTreeMap<usize, Score> = BTreeMap::new();
        let mut matrix: BTreeMap<(Option<usize>, Option<usize>), usize> = BTreeMap::new();
        for TestedRequest { trial, matched, passed, .. } in &evaluation.tested {
            let matched = matched.and_then(|it| self.library.position_of(it.0));
            let expected = match &trial.expected {
                ExpectedMatch::AnyOf(_) if *passed => matched,
                ExpectedMatch::AnyOf(skills) => {
                    skills.first().and_then(|it| self.library.position_of(it))
                }
                ExpectedMatch::Not(_) | ExpectedMatch::Nothing => None,
            };
            if let ExpectedMatch::Not(_) = trial.expected
                && *passed
            {
                // The trial only says what it should not match.
                continue;
            }
            *matrix.entry((expected, matched)).or_default() += 1;
            if expected == matched {
                if let Some(place) = matched {
                    scores.entry(place).or_default().right += 1;
                }
                continue;
            }
            if let Some(place) = expected {
                scores.entry(place).or_default().missed += 1;
            }
            if let Some(place) = matched {
                scores.entry(place).or_default().wrong += 1;
            }
        }
        let skill = |place: usize| &*self.library.skills[place];
        for score in scores.values() {
            evaluation.total.right += score.right;
            evaluation.total.wrong += score.wrong;
            evaluation.total.missed += score.missed;
        }
        evaluation.scores = scores.into_iter().map(|it| (skill(it.0), it.1)).collect();
        evaluation.scores.sort_by(|a, b| worst_first(&a.1, &b.1));
        evaluation.matrix = matrix
            .into_iter()
            .map(|((expected, matched), count)| Confusion {
                expected: expected.map(skill),
                matched: matched.map(skill),
                count,
            })
            .collect();
        evaluation.matrix.sort_by_key(|it| (it.is_right(), std::cmp::Reverse(it.count)));
        evaluation
    }

    fn test(&self, trial: &Trial<'lib>) -> TestedRequest<'lib> {
        let matches = self.ask(&trial.request);
        let first = matches.first().filter(|it| it.confidence >= self.threshold);
        let place = |skill: &Skill| matches.iter().position(|it| std::ptr::eq(it.skill, skill));
        let is = |skill: &Skill| first.is_some_and(|it| std::ptr::eq(it.skill, skill));
        let (passed, place) = match &trial.expected {
            ExpectedMatch::AnyOf(skills) => {
                let best = skills.iter().filter_map(|it| place(it)).min();
                (skills.iter().any(|it| is(it)), best)
            }
            ExpectedMatch::Not(skill) => (!is(skill), place(skill)),
            ExpectedMatch::Nothing => (first.is_none(), None),
        };
        TestedRequest {
            trial: trial.clone(),
            matched: first.map(|it| (it.skill, it.confidence)),
            rank: place.map(|it| it + 1),
            passed,
        }
    }
}

impl<'lib> Evaluation<'lib> {
    /// Returns the number of requests with the expected result.
    pub fn passed(&self) -> usize {
        self.tested.iter().filter(|it| it.passed).count()
    }

    /// Returns the requests without it, those with the highest confidence first.
    pub fn failed(&self) -> Vec<&TestedRequest<'lib>> {
        let mut failed: Vec<_> = self.tested.iter().filter(|it| !it.passed).collect();
        failed.sort_by(|a, b| {
            let [a, b] = [a, b].map(|it| it.matched.map_or(0.0, |it| it.1));
            b.total_cmp(&a)
        });
        failed
    }
}

impl Score {
    /// Returns the share of its matches that are correct; `None` if there are none.
    pub fn precision(&self) -> Option<f64> {
        share(self.right, self.right + self.wrong)
    }

    /// Returns the share of requests for it that match it; `None` if there are none.
    pub fn recall(&self) -> Option<f64> {
        share(self.right, self.right + self.missed)
    }

    /// Returns the harmonic mean of both.
    pub fn f1(&self) -> Option<f64> {
        share(2 * self.right, 2 * self.right + self.wrong + self.missed)
    }
}

fn worst_first(a: &Score, b: &Score) -> Ordering {
    let [f1, other_f1] = [a, b].map(|it| it.f1().unwrap_or(0.0));
    let [errors, other_errors] = [a, b].map(|it| it.wrong + it.missed);
    f1.total_cmp(&other_f1).then(other_errors.cmp(&errors))
}

impl Confusion<'_> {
    /// Whether the expected skill was matched.
    pub fn is_right(&self) -> bool {
        match (self.expected, self.matched) {
            (Some(expected), Some(matched)) => std::ptr::eq(expected, matched),
            (expected, matched) => expected.is_none() && matched.is_none(),
        }
    }
}

fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}
