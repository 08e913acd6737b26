//! The results of the lab as JSON.

use prowess::{
    ExpectedMatch, MissReason, Probe, Reason, Score, Skill, StudiedSkill, TestedRequest, why,
};
use serde_json::{Value as Json, json};

use super::Report;
use crate::commands::finding_json;

/// The number of failures with an explanation of the other match.
const EXPLAINED: usize = 500;
/// The number of words given as reasons.
const WORDS: usize = 6;

/// Returns the document, with this many skills, groups of near duplicates and failures of each
/// kind.
pub(super) fn document(report: &Report<'_>, most: usize) -> Json {
    let Report { lab, study, evaluation, findings, .. } = report;
    let scores = evaluation.scores.iter().take(most);
    let failed = evaluation.failed().into_iter().take(most);
    let family = |family: &prowess::NearDuplicates<'_>| {
        json!({
            "alike": if family.whole { "text" } else { "description" },
            "members": family.members.iter().map(|it: &prowess::NearDuplicate<'_>| json!({"name": name(it.skill), "path": path(it.skill), "likeness": round(it.likeness)})).collect::<Vec<_>>(),
        })
    };
    json!({
        "skills": lab.library.all().count(),
        "threshold": lab.threshold,
        "standings": count_by_status(report),
        "studied": study.skills.iter().take(most).map(studied_json).collect::<Vec<_>>(),
        "families": study.families.iter().take(most).map(family).collect::<Vec<_>>(),
        "closest": study.closest.iter().map(family).collect::<Vec<_>>(),
        "evaluation": {
            "requests": evaluation.tested.len(),
            "passed": evaluation.passed(),
            "holds": report.has_passed(),
            "total": score_json(&evaluation.total),
            "scores": scores.map(|(skill, own)| with_field(score_json(own), "name", name(skill))).collect::<Vec<_>>(),
            "matrix": evaluation.matrix.iter().map(|it| json!({
                "expected": it.expected.map(name),
                "matched": it.matched.map(name),
                "count": it.count,
            })).collect::<Vec<_>>(),
            "failed": failed.enumerate().map(|(at, it)| {
                let why = it.matched.filter(|_| at < EXPLAINED);
                let why = why.map(|(skill, _)| why_words(report, &it.trial.request, skill));
                failure_json(it, why.unwrap_or_default())
            }).collect::<Vec<_>>(),
        },
        "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
    })
}

/// Returns the words of a request that match a skill, with their fields.
pub(super) fn why_words(report: &Report<'_>, request: &str, skill: &Skill) -> Vec<String> {
    why(report.lab.library, request, skill).iter().take(WORDS).map(Reason::to_string).collect()
}

/// Returns the number of skills of each status.
pub(super) fn count_by_status(report: &Report<'_>) -> Json {
    let mut counts = serde_json::Map::new();
    for it in &report.study.skills {
        let count = counts.entry(it.standing.as_str().replace(' ', "_")).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap_or(0) + 1);
    }
    Json::Object(counts)
}

fn studied_json(it: &StudiedSkill<'_>) -> Json {
    json!({
        "name": name(it.skill),
        "path": path(it.skill),
        "description": it.skill.manifest.description,
        "standing": it.standing.as_str().replace(' ', "_"),
        "because": it.because.map(explain_miss),
        "won": it.won,
        "probes": it.probes.iter().map(|it: &Probe<'_>| {
        json!({
            "request": it.request,
            "rank": it.rank,
            "confidence": round(it.confidence),
            "first": it.first.map(|it| name(it.0)),
            "first_confidence": it.first.map(|it| round(it.1)),
        })
    }).collect::<Vec<_>>(),
        "thieves": it.competitors.iter().map(|it: &prowess::Competitor<'_>| json!({"name": name(it.skill), "takes": it.takes, "lead": round(it.lead)})).collect::<Vec<_>>(),
        "shared": it.shared,
        "own": it.own,
        "advice": it.advice,
    })
}

/// Explains why requests miss a skill.
pub(super) fn explain_miss(because: MissReason<'_>) -> String {
    match because {
        MissReason::Placeholder => "its description is a placeholder".to_owned(),
        MissReason::Wordless => "its description has no meaningful words".to_owned(),
        MissReason::Twin(other) => format!("almost the same as `{}`", name(other)),
        MissReason::Names(other) => format!("it writes out the name of `{}`", name(other)),
        MissReason::Short(1) => "its description has one meaningful word".to_owned(),
        MissReason::Short(words) => format!("its description has {words} meaningful words"),
        MissReason::Common(_) => "its description has only common words".to_owned(),
        MissReason::Shadowed(other) => format!("shadowed by `{}`", name(other)),
        MissReason::Crowded(others) => format!("{others} other skills match instead"),
        MissReason::Unsure(_) => "its matches are always below the threshold".to_owned(),
        _ => "its own words do not find it".to_owned(),
    }
}

fn failure_json(it: &TestedRequest<'_>, why: Vec<String>) -> Json {
    let (expected, not) = match &it.trial.expected {
        ExpectedMatch::AnyOf(skills) => (skills.iter().map(|it| name(it)).collect(), None),
        ExpectedMatch::Not(skill) => (Vec::new(), Some(name(skill))),
        ExpectedMatch::Nothing => (Vec::new(), None),
    };
    json!({
        "path": it.trial.path.to_string_lossy(),
        "line": it.trial.line,
        "request": it.trial.request,
        "expected": expected,
        "not": not,
        "matched": it.matched.map(|it| name(it.0)),
        "confidence": it.matched.map(|it| round(it.1)),
        "rank": it.rank,
        "why": why,
    })
}

fn score_json(score: &Score) -> Json {
    json!({
        "right": score.right,
        "wrong": score.wrong,
        "missed": score.missed,
        "precision": score.precision().map(round),
        "recall": score.recall().map(round),
        "f1": score.f1().map(round),
    })
}

fn with_field(mut json: Json, key: &str, value: &str) -> Json {
    json[key] = json!(value);
    json
}

fn name(skill: &Skill) -> &str {
    &skill.manifest.name
}

fn path(skill: &Skill) -> String {
    skill.origin.path.to_string_lossy().into_owned()
}

fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}
