//! The summary as JSON.

use std::{borrow::Cow, path::Path};

use prowess::{DirectoryReader, ExaminedSkill, Location, SkillTrouble};
use serde::Serialize;

use super::{
    super::{FindingJson, finding_json},
    Advice, Summary,
};

/// Returns the whole summary, with nothing folded.
pub(super) fn document<'a>(summary: &'a Summary<'_>) -> impl Serialize + use<'a> {
    SummaryJson {
        clients: summary
            .clients
            .iter()
            .map(|it: &&'static prowess::Client| ClientJson {
                name: it.name,
                label: it.label,
                installed_at: it
                    .installed_at(summary.surroundings)
                    .map(|it| it.display().to_string()),
            })
            .collect(),
        clients_detected: summary.is_detected,
        locations: summary.checkup.locations.iter().map(|it| location_json(it, summary)).collect(),
        suggestions: summary
            .advice
            .iter()
            .map(|it: &Advice| SuggestionJson { command: &it.command, purpose: &it.why })
            .collect(),
        plugins: summary.plugins.as_deref().map(Path::to_string_lossy),
        findings: summary.checkup.findings.iter().map(finding_json).collect(),
    }
}

#[derive(Serialize)]
struct SummaryJson<'a> {
    clients: Vec<ClientJson>,
    /// Whether these are the installed clients; otherwise all known ones.
    clients_detected: bool,
    locations: Vec<LocationJson<'a>>,
    suggestions: Vec<SuggestionJson<'a>>,
    /// The directory of plugins, whose skills are not examined.
    plugins: Option<Cow<'a, str>>,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct ClientJson {
    name: &'static str,
    label: &'static str,
    installed_at: Option<String>,
}

#[derive(Serialize)]
struct LocationJson<'a> {
    directory: Cow<'a, str>,
    aliases: Vec<Cow<'a, str>>,
    scope: &'static str,
    skills: Vec<SkillJson<'a>>,
    /// The clients that read it, with the number of skills they load.
    read_by: Vec<ReaderJson>,
    not_read_by: Vec<&'static str>,
    troubles: Vec<TroubleJson<'a>>,
}

#[derive(Serialize)]
struct SkillJson<'a> {
    name: &'a str,
    path: Cow<'a, str>,
    status: &'static str,
    /// Whether Prowess itself leaves it out.
    left_out: bool,
}

#[derive(Serialize)]
struct ReaderJson {
    client: &'static str,
    loaded: usize,
    hidden: usize,
    unknown: usize,
}

#[derive(Serialize)]
struct TroubleJson<'a> {
    skill: &'a str,
    path: Cow<'a, str>,
    verdict: &'static str,
    clients: Vec<&'static str>,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct SuggestionJson<'a> {
    command: &'a str,
    purpose: &'a str,
}

fn location_json<'a>(location: &'a Location, summary: &'a Summary<'_>) -> LocationJson<'a> {
    let checkup = summary.checkup;
    LocationJson {
        directory: location.directory.to_string_lossy(),
        aliases: location.aliases.iter().map(|it| it.to_string_lossy()).collect(),
        scope: if location.in_project { "project" } else { "user" },
        skills: location
            .skills(checkup)
            .map(|it: &ExaminedSkill| SkillJson {
                name: &it.name,
                path: it.path.to_string_lossy(),
                status: it.status.as_str(),
                left_out: summary.is_left_out(&it.path),
            })
            .collect(),
        read_by: location
            .readers(checkup)
            .into_iter()
            .map(|it: DirectoryReader| ReaderJson {
                client: it.client.name,
                loaded: it.loaded,
                hidden: it.hidden,
                unknown: it.unknown,
            })
            .collect(),
        not_read_by: location.strangers(checkup).iter().map(|it| it.name).collect(),
        troubles: location
            .troubles(checkup)
            .into_iter()
            .map(|it: SkillTrouble<'a>| TroubleJson {
                skill: &it.skill.name,
                path: it.skill.path.to_string_lossy(),
                verdict: it.verdict.as_str(),
                clients: it.clients.iter().map(|it| it.name).collect(),
                reason: it.note.map(|it| &*it.reason),
            })
            .collect(),
    }
}
