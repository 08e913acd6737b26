//! Prompts: the skills that a user can invoke, each with its arguments.

use prowess::{
    Library, Skill, argument_names, brief_line, did_you_mean, invoke, nearest,
    spec::MAX_DESCRIPTION,
};
use rmcp::{
    ErrorData,
    model::{
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, JsonObject, ListPromptsResult,
        Prompt, PromptArgument, PromptMessage, Role,
    },
};

use crate::server::{
    paging::page,
    server_state::ServerState,
    tools::{READER, error_text},
};

/// The argument of a skill that does not name its arguments: the text after its name.
pub(crate) const ARGUMENTS: &str = "arguments";

/// Lists the skills that a user can invoke, by name, a page at a time.
pub(crate) fn list(
    served: &ServerState,
    cursor: Option<&str>,
) -> Result<ListPromptsResult, ErrorData> {
    let library = served.library();
    let all = invocable_skills(&library).map(|it| (&*it.manifest.name, it));
    let page = page("prompts", cursor, all, |skill| Some((prompt(skill), MAX_DESCRIPTION)))?;
    let mut result = ListPromptsResult::with_all_items(page.items);
    result.next_cursor = page.next;
    Ok(result)
}

/// Returns a skill with its arguments filled in, as a user message.
pub(crate) fn get(
    served: &ServerState,
    request: GetPromptRequestParams,
) -> Result<GetPromptResponse, ErrorData> {
    let library = served.library();
    let skill = find(&library, &request.name)?;
    let arguments = argument_line(skill, &request.arguments.unwrap_or_default())
        .map_err(|it| ErrorData::invalid_params(it, None))?;
    let unreadable = |error: prowess::ReadError| {
        let message = format!("cannot read the skill `{}`: {error}", request.name);
        ErrorData::internal_error(served.hide_folder(Some(skill), message), None)
    };
    // Exactly the text that is checked is disclosed.
    let held = skill.with_instructions(&skill.instructions().map_err(unreadable)?);
    if let Some(refusal) = served.toolbox.authorizer().why_withheld(&held) {
        return Err(ErrorData::invalid_params(error_text(&refusal), None));
    }
    let mut text = invoke(&held, Some(&arguments)).map_err(unreadable)?;
    if !skill.resources().is_empty() {
        text += READER;
        text.push('\n');
    }
    let text = served.marker.fence(&served.hide_folder(Some(skill), text));
    let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)])
        .with_description(brief_line(&skill.manifest.description, MAX_DESCRIPTION));
    Ok(result.into())
}

/// Finds the skill of a prompt.
pub(crate) fn find<'l>(library: &'l Library, name: &str) -> Result<&'l Skill, ErrorData> {
    let found = library.get(name).filter(|it| &*it.manifest.name == name);
    found.filter(|it| it.manifest.is_for_people()).ok_or_else(|| {
        let names = invocable_skills(library).map(|it| &*it.manifest.name);
        let near = nearest(name, names).map(|it| format!("; {}", did_you_mean(it)));
        let message = format!("there is no prompt `{name}`{}", near.unwrap_or_default());
        ErrorData::invalid_params(message, None)
    })
}

/// Returns the names of a prompt's arguments: those that the skill names, else one for all of them.
pub(crate) fn arguments(skill: &Skill) -> Vec<&str> {
    let names = argument_names(&skill.manifest);
    if names.is_empty() { vec![ARGUMENTS] } else { names }
}

fn invocable_skills(library: &Library) -> impl Iterator<Item = &Skill> {
    library.skills().filter(|it| it.manifest.is_for_people())
}

fn prompt(skill: &Skill) -> Prompt {
    let manifest = &skill.manifest;
    let hint = manifest.dialect().argument_hint.as_deref();
    let hint = hint.map(|it| brief_line(it, MAX_DESCRIPTION)).filter(|it| !it.is_empty());
    let arguments = arguments(skill)
        .into_iter()
        .map(|name: &str| {
            let argument = PromptArgument::new(name).with_required(false);
            hint.iter().fold(argument, |it, hint| it.with_description(hint))
        })
        .collect();
    let description = brief_line(&manifest.description, MAX_DESCRIPTION);
    Prompt::new(&*manifest.name, Some(description), Some(arguments))
}

/// Returns the arguments as they would be typed after the name of the skill.
fn argument_line(skill: &Skill, given: &JsonObject) -> Result<String, String> {
    let names = arguments(skill);
    if let Some(unknown) = given.keys().find(|it| !names.contains(&it.as_str())) {
        let known = names.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
        return Err(format!("there is no argument `{unknown}`, only {known}"));
    }
    let values = names
        .iter()
        .map(|name: &&str| match given.get(*name) {
            None => Ok(""),
            Some(value) => value.as_str().ok_or_else(|| format!("`{name}` must be a string")),
        })
        .collect::<Result<Vec<_>, _>>()?;
    if names == [ARGUMENTS] {
        return Ok(values.concat());
    }
    let end = values.iter().rposition(|it| !it.is_empty()).map_or(0, |it| it + 1);
    Ok(values[..end].iter().map(|it| quote(it)).collect::<Vec<_>>().join(" "))
}

/// Quotes a value so that a shell would read it as one word.
fn quote(value: &str) -> String {
    if !value.is_empty()
        && value.chars().all(|c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\'))
    {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
