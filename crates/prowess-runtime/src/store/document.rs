//! Converts between records and the bytes of a `SKILL.md`.

use std::{error::Error as _, path::Path};

use prowess::{
    Definition, Finding, Profile, Severity, SizeLimits, Status, parse, render, revise, rule,
    spec::SKILL_FILE,
};

use super::{Files, StoreError, path};
use crate::entry::{SkillRecord, SkillRecordError};

/// Parses the bytes of a `SKILL.md`; a finding if that fails.
pub(super) fn parse_record(bytes: &[u8], document: &Path) -> Result<SkillRecord, Box<Finding>> {
    let limit = SizeLimits::default().max_document_size;
    if bytes.len() as u64 > limit {
        let rule = rule("file-too-large").expect("there is such a rule");
        let message = format!("it has more than {limit} bytes");
        let hint = "move long parts into other files of the skill";
        return Err(Box::new(Finding::new(rule, Severity::Error, document, message, hint)));
    }
    let mut parsed = parse(bytes, None, Profile::Lenient);
    let Some(manifest) = parsed.manifest else {
        parsed.findings.sort_by_key(|it| it.severity);
        let mut finding = parsed.findings.pop().expect("no skill is left out without a finding");
        finding.path = document.to_owned();
        return Err(Box::new(finding));
    };
    let made = SkillRecord::new(manifest, &parsed.instructions);
    made.map(|it| SkillRecord { folder: document.parent().map(|it| it.to_owned().into()), ..it })
        .map_err(|error| {
            let message = match &error {
                SkillRecordError::Definition { source, .. } => source.to_string(),
                SkillRecordError::Read { .. } | SkillRecordError::Files { .. } => error.to_string(),
            };
            let rule = rule("definition").expect("there is such a rule");
            let hint = "add the code blocks that its type needs";
            Box::new(Finding::new(rule, Severity::Error, document, message, hint))
        })
}

/// Creates the finding for an unreadable `SKILL.md`.
pub(super) fn unreadable_finding(document: &Path, error: &StoreError) -> Finding {
    let why = error.source().map(|it| format!(": {it}")).unwrap_or_default();
    let rule = rule("file-unreadable").expect("there is such a rule");
    let message = format!("the store cannot read it{why}");
    let hint = "check that it is a regular file, and its permissions";
    Finding::new(rule, Severity::Error, document, message, hint)
}

/// Renders the `SKILL.md` of a new entry. One without a status is a draft.
pub(super) fn render_record(wanted: &SkillRecord) -> Result<Vec<u8>, StoreError> {
    path::check_name(&wanted.manifest.name)?;
    let mut wanted = wanted.clone();
    wanted.manifest.status.get_or_insert(Status::Draft);
    check_round_trip(wanted.render().into_bytes(), &wanted)
}

/// Edits the existing `SKILL.md` to match an entry.
pub(super) fn revise_record(
    bytes: &[u8],
    now: &SkillRecord,
    wanted: &SkillRecord,
) -> Result<Vec<u8>, StoreError> {
    let mut wanted = wanted.clone();
    wanted.manifest.status = wanted.manifest.status.or(now.manifest.status);
    let same = is_same(&now.definition, &wanted.definition) && now.parameters == wanted.parameters;
    let body = (!same).then(|| wanted.body());
    let revised = revise(bytes, &wanted.manifest, body.as_deref());
    let revised = revised.map_err(|source| {
        let folder = now.folder.as_deref().unwrap_or(Path::new(""));
        StoreError::NotEdited { path: folder.join(SKILL_FILE), source }
    })?;
    let unknown = parse(&revised, None, Profile::Lenient).manifest.map(|it| it.unknown);
    wanted.manifest.unknown = unknown.unwrap_or_default();
    check_round_trip(revised, &wanted)
}

/// Checks that a new skill can be parsed from its files; returns its name.
pub(super) fn check_files(files: &Files) -> Result<String, StoreError> {
    let unfit = |why: String| StoreError::Unfit { name: SKILL_FILE.to_owned(), why };
    let bytes = files.get(SKILL_FILE).ok_or_else(|| unfit("it is missing".to_owned()))?;
    let entry = parse_record(bytes, Path::new("")).map_err(|it| unfit(it.message))?;
    for path in files.keys().filter(|it| *it != SKILL_FILE) {
        path::check_resource(path)?;
    }
    Ok(path::check_name(&entry.manifest.name)?.to_owned())
}

/// Returns the bytes if they parse to the same record again.
fn check_round_trip(bytes: Vec<u8>, wanted: &SkillRecord) -> Result<Vec<u8>, StoreError> {
    let unfit = |why: String| StoreError::Unfit { name: wanted.manifest.name.to_string(), why };
    let again = parse_record(&bytes, Path::new("")).map_err(|it| unfit(it.message))?;
    let lost = if render(&again.manifest, "") != render(&wanted.manifest, "") {
        "a field cannot be saved unchanged: leading and trailing whitespace is lost"
    } else if !is_same(&again.definition, &wanted.definition) {
        "its definition cannot be saved unchanged: lines must end with LF"
    } else if again.parameters != wanted.parameters {
        "its parameters cannot be saved: an instruction skill has no parameters of its own"
    } else {
        return Ok(bytes);
    };
    Err(unfit(lost.to_owned()))
}

/// Whether two definitions are equal except for leading and trailing blank lines, which are not
/// preserved.
fn is_same(a: &Definition, b: &Definition) -> bool {
    fn text(definition: &Definition) -> Option<&str> {
        match definition {
            Definition::Instruction { content } => Some(content.trim_matches(['\n', '\r'])),
            Definition::Script { script: text } | Definition::Template { template: text } => {
                Some(text.strip_suffix('\n').unwrap_or(text))
            }
            Definition::Composite { .. } => None,
        }
    }
    a == b
        || (std::mem::discriminant(a) == std::mem::discriminant(b)
            && text(a).is_some()
            && text(a) == text(b))
}
