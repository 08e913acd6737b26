//! The statistics of a trace.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value as Json;

use super::read::{RecordedTrace, text};
use crate::model::TokenUsage;

/// The statistics of a trace.
#[derive(Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of turns.
    pub turns: usize,
    /// The number of requests to a model.
    pub steps: usize,
    /// The number of tool calls.
    pub calls: usize,
    /// The number of turns, replies and calls that failed.
    pub errors: usize,
    /// The ids of the sessions.
    pub sessions: Vec<String>,
    /// The models.
    pub models: Vec<String>,
    /// The time it began, in milliseconds since 1970.
    pub began: u64,
    /// The total duration of the turns.
    pub took_ms: f64,
    /// The part of it spent on models.
    pub models_ms: f64,
    /// The total duration of tool calls; concurrent ones count individually.
    pub tools_ms: f64,
    /// The token usage of all replies.
    pub tokens: TokenUsage,
    /// The cost of them, if prices were known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The tools that were called.
    pub tools: Vec<TotalOfTool>,
    /// The skills that were disclosed to the model.
    pub skills: Vec<UseOfSkill>,
    /// The number of approvals that were asked for.
    pub approvals: usize,
    /// The warnings.
    pub warnings: Vec<String>,
    /// The number of events of unknown kinds.
    pub other: usize,
    /// The numbers of the lines that cannot be parsed, from 1.
    pub unreadable: Vec<usize>,
    /// Whether the last line is incomplete.
    pub torn: bool,
    /// The number of events beyond the limit.
    pub left_out: usize,
}

/// The statistics of a tool.
#[derive(Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TotalOfTool {
    /// The tool.
    pub name: String,
    /// The number of calls.
    pub calls: usize,
    /// The number of calls that failed.
    pub failed: usize,
    /// The total duration.
    pub took_ms: f64,
}

/// A skill that was disclosed to a model.
#[derive(Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UseOfSkill {
    /// The skill.
    pub name: String,
    /// Its disclosure levels, in order.
    pub levels: Vec<String>,
    /// The causes of the disclosures.
    pub by: Vec<String>,
}

impl RecordedTrace {
    /// Computes the statistics.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary {
            turns: self.turns.len(),
            began: self.turns.iter().map(|it| it.at).min().unwrap_or_default(),
            other: self.other.len(),
            unreadable: self.unreadable.clone(),
            torn: self.is_torn,
            left_out: self.left_out,
            ..Summary::default()
        };
        let mut costs: BTreeMap<&str, f64> = BTreeMap::new();
        let mut models = BTreeSet::new();
        let mut tools: BTreeMap<&str, TotalOfTool> = BTreeMap::new();
        let mut skills: Vec<UseOfSkill> = Vec::new();
        for turn in &self.turns {
            if !summary.sessions.contains(&turn.session) {
                summary.sessions.push(turn.session.clone());
            }
            let ended = turn.ended.as_ref();
            let passed = (turn.until.saturating_sub(turn.at)) as f64;
            summary.took_ms += ended.and_then(|it| it["took_ms"].as_f64()).unwrap_or(passed);
            summary.errors += usize::from(ended.is_some_and(|it| it["error"].is_string()));
            for step in turn.steps.iter().filter(|it| it.asked.is_object()) {
                summary.steps += 1;
                models.insert(text(&step.asked, "model"));
                let Some(replied) = &step.replied else { continue };
                summary.models_ms += replied["took_ms"].as_f64().unwrap_or_default();
                summary.errors += usize::from(replied["event"] == "failed");
                summary.tokens += read_usage(&replied["reply"]["spent"]);
            }
            for call in turn.steps.iter().flat_map(|it| &it.calls) {
                summary.calls += 1;
                let total = tools.entry(&call.tool).or_default();
                total.calls += 1;
                let Some(returned) = &call.returned else { continue };
                let has_failed = returned["outcome"]["status"] != "ok";
                let took_ms = returned["took_ms"].as_f64().unwrap_or_default();
                total.failed += usize::from(has_failed);
                total.took_ms += took_ms;
                summary.errors += usize::from(has_failed);
                summary.tools_ms += took_ms;
            }
            for event in &turn.events {
                match event["event"].as_str().unwrap_or_default() {
                    "approval" => summary.approvals += 1,
                    "warned" => summary.warnings.push(text(event, "message")),
                    "spending" => {
                        costs.extend(event["cost"].as_f64().map(|it| (&*turn.session, it)));
                    }
                    "summarised" => summary.tokens += read_usage(&event["spent"]),
                    "disclosed" => record_disclosure(&mut skills, event),
                    _ => {}
                }
            }
        }
        summary.models = models.into_iter().collect();
        summary.cost = (!costs.is_empty()).then(|| costs.values().sum());
        summary.skills = skills;
        let named =
            |(name, total): (&str, TotalOfTool)| TotalOfTool { name: name.to_owned(), ..total };
        summary.tools = tools.into_iter().map(named).collect();
        summary
    }
}

fn record_disclosure(skills: &mut Vec<UseOfSkill>, event: &Json) {
    let name = text(event, "skill");
    let at = skills.iter().position(|it| it.name == name).unwrap_or_else(|| {
        skills.push(UseOfSkill { name, ..UseOfSkill::default() });
        skills.len() - 1
    });
    let skill = &mut skills[at];
    for (list, word) in
        [(&mut skill.levels, text(event, "level")), (&mut skill.by, text(event, "by"))]
    {
        if !list.contains(&word) {
            list.push(word);
        }
    }
}

fn read_usage(json: &Json) -> TokenUsage {
    TokenUsage {
        input: json["input"].as_u64().unwrap_or_default(),
        output: json["output"].as_u64().unwrap_or_default(),
        cached: json["cached"].as_u64().unwrap_or_default(),
        estimated: json["estimated"] == true,
    }
}
