//! The Skills extension of the protocol: `skills/list`, `skills/get`, `resources/directory/read`.

use std::sync::Arc;

use prowess::spec::SKILL_FILE;
use rmcp::{
    ErrorData,
    model::{CustomRequest, CustomResult, ExtensionCapabilities, JsonObject, ProtocolVersion},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::server::{
    directory,
    entry::SkillListing,
    frame::no_method,
    paging::page,
    publishable::{PublishableSkill, UriTarget, listed_skills, skill_uri},
    resources::{malformed_uri, short_uri, unserved_uri},
    server_state::ServerState,
    uri::Uri,
};

/// Returns the extension capabilities of the server.
pub(crate) fn capabilities() -> ExtensionCapabilities {
    let settings = JsonObject::from_iter([("directoryRead".to_owned(), true.into())]);
    ExtensionCapabilities::from([("io.modelcontextprotocol/skills".to_owned(), settings)])
}

/// The parameters of `skills/list`.
#[derive(Debug, Deserialize)]
struct ListParams {
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct GetParams {
    uri: String,
}

#[derive(Debug, Deserialize)]
struct ReadParams {
    uri: String,
    cursor: Option<String>,
}

/// Answers a request whose method is not part of the base protocol.
pub(crate) async fn answer(
    served: &Arc<ServerState>,
    request: CustomRequest,
    version: Option<ProtocolVersion>,
) -> Result<CustomResult, ErrorData> {
    let CustomRequest { method, params, .. } = request;
    let mut result = match &*method {
        "skills/list" => {
            let ListParams { cursor } = parse_params(params)?;
            served.work(move |served| list(served, cursor.as_deref())).await?
        }
        "skills/get" => {
            let GetParams { uri } = parse_params(params)?;
            served.work(move |served| get(served, &uri)).await?
        }
        "resources/directory/read" => {
            let ReadParams { uri, cursor } = parse_params(params)?;
            served.work(move |served| read(served, &uri, cursor.as_deref())).await?
        }
        _ => return Err(no_method(&method)),
    };
    if version
        .is_some_and(|it: ProtocolVersion| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
    {
        result["resultType"] = "complete".into();
        // Files may change at any moment, so results must not be cached.
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
    }
    Ok(CustomResult(result))
}

fn parse_params<T: DeserializeOwned>(params: Option<Value>) -> Result<T, ErrorData> {
    let params = params.filter(|it| !it.is_null()).unwrap_or_else(|| json!({}));
    let taken = serde_json::from_value(params);
    taken.map_err(|it| ErrorData::invalid_params(it.to_string(), None))
}

/// Returns a page of the skills. Only the skills of the requested page are hashed.
fn list(served: &ServerState, cursor: Option<&str>) -> Result<Value, ErrorData> {
    let library = served.library();
    let all = listed_skills(&library).map(|it| (&*it.manifest.name, it));
    let page = page("skills", cursor, all, |skill| {
        let published = PublishableSkill::new(skill, served.toolbox.authorizer()).ok()?;
        let entry = SkillListing::new(&published, &skill_uri(skill));
        let cost = entry.cost();
        Some((entry, cost))
    })?;
    Ok(with_next_cursor(json!({ "skills": page.items }), page.next))
}

/// Returns the entry of a skill.
fn get(served: &ServerState, uri: &str) -> Result<Value, ErrorData> {
    let found = Uri::read(uri).map_err(|why| malformed_uri(uri, why))?;
    let library = served.library();
    let (skill, base) = match UriTarget::find(&library, &found) {
        Some(UriTarget::Skill { skill, base, path }) if path == SKILL_FILE => (skill, base),
        _ => return Err(unserved_uri(uri, format!("no skill is served at {}", short_uri(uri)))),
    };
    let published = PublishableSkill::new(skill, served.toolbox.authorizer()).map_err(|why| {
        unserved_uri(uri, format!("{} is available only through the tools: {why}", short_uri(uri)))
    })?;
    Ok(json!({ "skill": SkillListing::new(&published, &base) }))
}

/// Returns a page of a folder's children.
fn read(served: &ServerState, uri: &str, cursor: Option<&str>) -> Result<Value, ErrorData> {
    let page = directory::read(served, uri, cursor)?;
    Ok(with_next_cursor(json!({ "resources": page.items }), page.next))
}

/// Returns a result, with the cursor of the next page.
fn with_next_cursor(mut result: Value, next: Option<String>) -> Value {
    if let Some(next) = next {
        result["nextCursor"] = next.into();
    }
    result
}
