//! Skills as resources: each `SKILL.md` is listed, and every file of a skill can be read.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use prowess::{
    beginning, brief_line,
    spec::{MAX_DESCRIPTION, SKILL_FILE},
};
use rmcp::{
    ErrorData,
    model::{
        Annotations, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
        Resource, ResourceContents, ResourceTemplate, Role,
    },
};
use serde_json::{Value, json};

use crate::server::{
    discovery::{self, INDEX, MANIFEST},
    media_type::media_type,
    paging::page,
    publishable::{PublishableSkill, UriTarget, listed_skills, skill_uri},
    server_state::ServerState,
    uri::{self, Uri},
};

/// Lists the `SKILL.md` of each published skill, a page at a time.
pub(crate) fn list(
    served: &ServerState,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let library = served.library();
    let all = listed_skills(&library).map(|it| (&*it.manifest.name, it));
    let page = page("resources", cursor, all, |skill| {
        let resource = document(&PublishableSkill::new(skill, served.toolbox.authorizer()).ok()?);
        let cost = resource.description.as_ref().map_or(0, String::len) + 256;
        Some((resource, cost))
    })?;
    let mut result = ListResourcesResult::with_all_items(page.items);
    result.next_cursor = page.next;
    Ok(result)
}

/// The template of every URI that can be read.
pub(crate) const TEMPLATE: &str = "skill://{+path}";

/// Returns the template of every URI that can be read.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(TEMPLATE, "skill-file")
        .with_title("File of a skill")
        .with_description("<scope>/<name>/SKILL.md, or another file that the skill brings");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Reads one file of a skill, or one of the documents about them.
pub(crate) fn read(served: &ServerState, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    if uri == INDEX {
        return Ok(json_document(&discovery::index(served), uri));
    }
    let found = Uri::read(uri).map_err(|why| malformed_uri(uri, why))?;
    let library = served.library();
    let nothing = || {
        let message = format!("no file is served at {}", short_uri(uri));
        ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
    };
    let Some(UriTarget::Skill { skill, base, path }) = UriTarget::find(&library, &found) else {
        return Err(nothing());
    };
    let skill = PublishableSkill::new(skill, served.toolbox.authorizer()).map_err(|_| nothing())?;
    let Some(bytes) = skill.read(&path) else {
        return match &*path {
            MANIFEST => Ok(json_document(&discovery::manifest(&skill), uri)),
            _ => Err(nothing()),
        };
    };
    let listed = skill.files.iter().find(|it| *it.path == *path);
    let is_text = listed.is_none_or(|it| it.is_text);
    let uri = uri::child_uri(&base, &path);
    let contents = match str::from_utf8(&bytes) {
        Ok(text) if is_text => ResourceContents::text(text, uri),
        _ => ResourceContents::blob(BASE64_STANDARD.encode(&bytes), uri),
    };
    Ok(ReadResourceResult::new(vec![contents.with_mime_type(media_type(&path, is_text))]))
}

/// Returns a generated JSON document as a resource.
fn json_document(document: &Value, uri: &str) -> ReadResourceResult {
    let contents = ResourceContents::text(document.to_string(), uri);
    ReadResourceResult::new(vec![contents.with_mime_type("application/json")])
}

/// Returns the `SKILL.md` of a skill as a resource.
fn document(skill: &PublishableSkill) -> Resource {
    let manifest = &skill.skill.manifest;
    let uri = uri::child_uri(&skill_uri(&skill.skill), SKILL_FILE);
    let resource = Resource::new(uri, &*manifest.name)
        .with_description(brief_line(&manifest.description, MAX_DESCRIPTION))
        .with_mime_type(media_type(SKILL_FILE, true))
        .with_size(skill.document.len() as u64);
    match manifest.hides_from_model() {
        true => resource.with_annotations(Annotations::default().with_audience(vec![Role::User])),
        false => resource,
    }
}

/// Returns the error for an invalid URI.
pub(crate) fn malformed_uri(uri: &str, why: &str) -> ErrorData {
    let message = format!("{} is not the URI of a skill: {why}", short_uri(uri));
    // Clients look here for what they asked for; what is too long is not told back to them.
    let data = (uri.len() <= uri::MAX_LENGTH).then(|| json!({ "uri": uri }));
    ErrorData::invalid_params(message, data)
}

/// Returns the error for a URI that nothing is served at.
pub(crate) fn unserved_uri(uri: &str, message: String) -> ErrorData {
    ErrorData::invalid_params(message, Some(json!({ "uri": uri })))
}

/// Returns a client's URI, cut to the length for a message.
pub(crate) fn short_uri(uri: &str) -> String {
    format!("`{}`", beginning(uri, 200))
}
