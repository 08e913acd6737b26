//! The tools: those of the toolbox, the same for any number of skills.

use std::sync::Arc;

use prowess::{Marker, Skill, UsedSkill, visible};
use prowess_runtime::{
    Outcome, OutcomeStatus,
    outcome::{FoundSkills, SkillFilePart, ToolOutput},
    skill::ActiveSkills,
    text::make_visible,
    tool::ToolFormat,
};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        ResourceContents, Tool, ToolAnnotations,
    },
};
use serde_json::{Value, json};

use crate::server::{
    media_type::media_type, publishable::skill_uri, server_state::ServerState, uri,
};

/// The hint for clients that cannot open the files of a skill by path.
pub(crate) const READER: &str = "`read_skill_file` reads these files.";

/// Lists all of them at once.
pub(crate) fn list(served: &ServerState) -> Result<ListToolsResult, ErrorData> {
    let formats = served.toolbox.tools().iter().filter_map(|it| ToolFormat::Mcp.format(&**it));
    let tools: Result<Vec<Tool>, _> = formats.map(serde_json::from_value).collect();
    let tools = tools.map_err(|it| ErrorData::internal_error(it.to_string(), None))?;
    Ok(ListToolsResult::with_all_items(tools.into_iter().map(with_title).collect()))
}

/// Calls a tool. Every outcome is a result that the model reads; only an unknown tool is a protocol
/// error.
pub(crate) async fn call(
    served: &ServerState,
    request: CallToolRequestParams,
) -> Result<CallToolResponse, ErrorData> {
    let Some(tool) = served.toolbox.find(&request.name) else {
        let message = format!("there is no tool `{}`", request.name);
        return Err(ErrorData::invalid_params(message, None));
    };
    let input = request.arguments.map_or(Value::Null, Value::Object);
    let library = served.library();
    let named = input.get("name").or_else(|| input.get("skill_name")).and_then(Value::as_str);
    // A client that does not receive paths cannot find them by guessing either.
    if let Some(path) = named.filter(|it| it.contains('/') && !served.options.folders) {
        let text = format!("skill `{path}` not found");
        let text = served.marker.defuse(&visible(&text)).into_owned();
        return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
    }
    let skill = named.and_then(|it| library.get(it)).cloned();
    // Calls are not assigned to conversations, so no call depends on skills that another activated.
    let active = Arc::new(ActiveSkills::new(Arc::new(library)));
    let outcome = active.within(served.toolbox.call_tool(tool, input)).await;
    let is_skill_text = tool.is_skill_text(&outcome);
    let result = result(served, skill.as_ref(), &outcome, is_skill_text);
    Ok(result.into())
}

/// Adds the title for users, and the annotations for clients.
fn with_title(tool: Tool) -> Tool {
    let (title, is_read_only) = match &*tool.name {
        "find_skills" => ("Find skills", true),
        "use_skill" => ("Use a skill", true),
        "read_skill_file" => ("Read a file of a skill", true),
        "run_skill" => ("Run a skill", false),
        _ => return tool,
    };
    let mut annotations = ToolAnnotations::new().read_only(is_read_only).open_world(false);
    if !is_read_only {
        annotations = annotations.destructive(false);
    }
    tool.with_title(title).with_annotations(annotations)
}

/// Returns the result of a call, as the model reads it.
fn result(
    served: &ServerState,
    skill: Option<&Skill>,
    outcome: &Outcome,
    is_skill_text: bool,
) -> CallToolResult {
    let told = |text: String| ContentBlock::text(served.hide_folder(skill, text));
    let told_by_skill = |text: String| match is_skill_text {
        true => ContentBlock::text(served.marker.fence(&served.hide_folder(skill, text))),
        // A model may repeat anything it was sent, including the marker's code.
        false => told(served.marker.defuse(&visible(&text)).into_owned()),
    };
    if outcome.status != OutcomeStatus::Ok {
        return CallToolResult::error(vec![told_by_skill(error_text(outcome))]);
    }
    if let Some(plan) = &outcome.plan {
        let mut text = "Nothing was run. These are the calls that the skill plans:\n".to_owned();
        for step in plan {
            text += &format!("{step}\n");
        }
        return CallToolResult::success(vec![told_by_skill(text)]);
    }
    let mut output = outcome.output.clone().unwrap_or_default();
    if is_skill_text {
        make_visible(&mut output);
    }
    match (outcome.typed.as_deref(), output) {
        (Some(ToolOutput::FoundSkills(skills)), output) => {
            let mut result =
                CallToolResult::success(vec![told(list_matches(skills, &served.marker))]);
            result.structured_content = Some(output);
            result
        }
        (Some(ToolOutput::UsedSkill(skill)), _) => {
            CallToolResult::success(vec![told_by_skill(skill_text(skill))])
        }
        (Some(ToolOutput::SkillFile(part)), _) => {
            CallToolResult::success(file_content(skill, part, told, &served.marker))
        }
        (_, Value::String(text)) => CallToolResult::success(vec![told_by_skill(text)]),
        (_, Value::Null) => CallToolResult::success(vec![told_by_skill(outcome_json(outcome))]),
        (_, output) => CallToolResult::success(vec![told_by_skill(output.to_string())]),
    }
}

/// Returns everything known about a run, without invisible characters.
fn outcome_json(outcome: &Outcome) -> String {
    let mut outcome = json!(outcome);
    make_visible(&mut outcome);
    outcome.to_string()
}

/// Returns the error and its hint; if something ran, everything known about it.
pub(crate) fn error_text(outcome: &Outcome) -> String {
    if outcome.stdout.is_some() || outcome.stderr.is_some() {
        return outcome_json(outcome);
    }
    let parts = [&outcome.message, &outcome.hint, &outcome.difference];
    parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// Returns the matching skills, one per line, and their number.
fn list_matches(FoundSkills { skills, total, .. }: &FoundSkills, marker: &Marker) -> String {
    let text = match (skills.first(), total) {
        (_, 0) => return "There are no skills.".to_owned(),
        (None, _) => return format!("None of the {total} skills matches. Try other words."),
        (Some(first), _) if first.level == "metadata" => {
            format!("No skill clearly matches. The closest of {total} skills:\n")
        }
        _ => format!("The best matches of {total} skills:\n"),
    };
    let mut lines = String::new();
    for it in skills {
        let percent = match (it.confidence * 100.0).round() {
            0.0 => "<1".to_owned(),
            percent => percent.to_string(),
        };
        lines += &format!("- {} ({percent}%, {}): {}\n", it.name, it.level, it.description);
    }
    format!("{text}{}\n", marker.fence(&visible(&lines)))
}

/// Returns the instructions verbatim, without escaping.
fn skill_text(used: &UsedSkill) -> String {
    let text = used.to_string();
    let text = visible(&text);
    match used {
        UsedSkill::Found { resources, .. } if !resources.is_empty() => {
            format!("{text}\n{READER}\n")
        }
        _ => text.into_owned(),
    }
}

/// Returns a part of a file: text verbatim, anything else in base64; and how to continue if there
/// is more.
fn file_content(
    skill: Option<&Skill>,
    part: &SkillFilePart,
    told: impl Fn(String) -> ContentBlock,
    marker: &Marker,
) -> Vec<ContentBlock> {
    let mut content = match (&part.content, &part.content_base64) {
        (Some(text), _) => vec![ContentBlock::text(marker.fence(&visible(text)))],
        (_, Some(bytes)) => {
            let path = visible(&part.path);
            let path = path.strip_prefix("./").unwrap_or(&path);
            let uri = skill.map(|it| uri::child_uri(&skill_uri(it), path)).unwrap_or_default();
            let blob = ResourceContents::blob(bytes.clone(), uri);
            vec![ContentBlock::resource(blob.with_mime_type(media_type(path, false)))]
        }
        _ => Vec::new(),
    };
    if let Some(next) = part.next_offset {
        let size = part.size;
        content.push(told(format!("The file has {size} bytes; read on at `offset` {next}.")));
    }
    content
}
