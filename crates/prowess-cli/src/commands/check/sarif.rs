//! Findings as a SARIF 2.1.0 log, for code scanning services.

use std::{collections::HashMap, fmt::Write as _, path::Path};

use prowess::{Finding, Profile, RULES, Rule, Severity};
use prowess_runtime::sys::OsStrExt as _;
use prowess_runtime::text::hex;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::place;
use crate::features::AUDIT_RULES;
use crate::{page::Page, safe};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The placeholder for the root of the repository.
const ROOT: &str = "%SRCROOT%";

/// Returns the log of the findings. Paths are relative to `root`.
pub(in crate::commands) fn log(findings: &[Finding], profile: Profile, root: &Path) -> Json {
    let mut rules: Vec<&Rule> = RULES.iter().chain(AUDIT_RULES).copied().collect();
    rules.retain(|rule| findings.iter().any(|it| std::ptr::eq(it.rule, *rule)));
    let mut seen = HashMap::new();
    let results: Vec<Json> =
        findings.iter().map(|it| result(it, &rules, root, &mut seen)).collect();
    let descriptors: Vec<Json> = rules.iter().map(|it| descriptor(it, profile)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "prowess",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": descriptors,
            } },
            "invocations": [{ "executionSuccessful": true }],
            "originalUriBaseIds": { ROOT: {
                "description": { "text": "The folder in which the check was run." },
            } },
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

fn descriptor(rule: &Rule, profile: Profile) -> Json {
    let Page { why, fix, .. } = Page::of(rule);
    let severity = rule.severity(profile).unwrap_or(Severity::Error);
    json!({
        "id": rule.code,
        "shortDescription": { "text": place::sentence(rule.summary) },
        "fullDescription": { "text": why },
        "help": { "text": fix, "markdown": rule.page },
        "defaultConfiguration": { "level": level(severity) },
        "properties": { "tags": ["agent-skills"] },
    })
}

fn result(
    finding: &Finding,
    rules: &[&Rule],
    root: &Path,
    seen: &mut HashMap<String, usize>,
) -> Json {
    let path = place::path(finding, root);
    let uri = uri(&path);
    let location = match path.is_absolute() {
        true => json!({ "uri": format!("file://{uri}") }),
        false => json!({ "uri": uri, "uriBaseId": ROOT }),
    };
    json!({
        "ruleId": finding.rule.code,
        "ruleIndex": rules.iter().position(|it| std::ptr::eq(*it, finding.rule)),
        "level": level(finding.severity),
        "message": { "text": message(finding) },
        "locations": [{ "physicalLocation": {
            "artifactLocation": location,
            "region": region(finding),
        } }],
        "partialFingerprints": { "prowessFinding/v1": fingerprint(finding, &uri, seen) },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// Returns the message and hint, without text that a viewer would render as a link.
fn message(finding: &Finding) -> String {
    safe::line(&place::sentences(finding)).replace("](", "\\](")
}

/// Returns the line, and the columns if they are known. A finding about a whole file is at its
/// start, because GitHub shows nothing without a line.
fn region(finding: &Finding) -> Json {
    let mut region = json!({ "startLine": finding.line.unwrap_or(1) });
    if let Some((start, end)) = place::columns(finding, |text| text.encode_utf16().count()) {
        region["startColumn"] = json!(start);
        region["endColumn"] = json!(end);
    }
    if let Some(excerpt) = &finding.excerpt {
        region["snippet"] = json!({ "text": excerpt });
    }
    region
}

/// Returns an identifier that is stable while lines move: the rule, the file, the text of the line,
/// and a number for those that have all of these in common.
fn fingerprint(finding: &Finding, uri: &str, seen: &mut HashMap<String, usize>) -> String {
    let line = finding.excerpt.as_deref().unwrap_or_default().trim();
    let common = format!("{}\n{uri}\n{line}", finding.rule.code);
    let number = seen.entry(common.clone()).or_default();
    *number += 1;
    hex(&Sha256::digest(format!("{common}\n{number}"))[..16])
}

/// Returns a path as a URI; everything but letters, digits and `-._~/` is encoded.
fn uri(path: &Path) -> String {
    let mut uri = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(*byte));
            }
            _ => write!(uri, "%{byte:02X}").expect("a string takes everything"),
        }
    }
    uri
}
