//! Completion of arguments and paths as a user types.

use prowess::{Library, Skill, is_plain_name, spec::SKILL_FILE};
use rmcp::{
    ErrorData,
    model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference},
};

use crate::server::{
    prompts, publishable::listed_skills, resources::TEMPLATE, server_state::ServerState,
};

/// Completes the argument of a prompt, or the path in the URI of a skill.
pub(crate) fn complete(
    served: &ServerState,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let library = served.library();
    let (argument, typed) = (&*request.argument.name, &*request.argument.value);
    let all = match &request.r#ref {
        Reference::Prompt(prompt) => {
            let skill = prompts::find(&library, &prompt.name)?;
            let names = prompts::arguments(skill);
            let Some(at) = names.iter().position(|it| *it == argument) else {
                let message = format!("the prompt `{}` has no argument `{argument}`", prompt.name);
                return Err(ErrorData::invalid_params(message, None));
            };
            choices(skill, at).into_iter().filter(|it| it.starts_with(typed)).collect()
        }
        Reference::Resource(template) if template.uri == TEMPLATE && argument == "path" => {
            paths(&library, typed)
        }
        _ => {
            let message = format!("only prompts and the `path` of `{TEMPLATE}` are completed");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    Ok(CompleteResult::new(first_choices(all)))
}

/// Returns the choices of an `argument-hint` at this position: `[staging|production]` has two, and
/// so has `<where: staging|production>`.
fn choices(skill: &Skill, at: usize) -> Vec<String> {
    let hint = skill.manifest.dialect().argument_hint.as_deref().unwrap_or_default();
    let places: Vec<&str> = match hint.contains(['[', '<']) {
        true => {
            hint.split(['[', '<']).skip(1).filter_map(|it| it.split([']', '>']).next()).collect()
        }
        false => hint.split_whitespace().collect(),
    };
    let place = places.into_iter().filter(|it| !it.is_empty()).nth(at).unwrap_or_default();
    let offered = place.rsplit(':').next().filter(|it| it.contains('|')).unwrap_or_default();
    offered.split('|').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

/// Returns the paths of skills that begin with the typed text, or whose skill's name does.
fn paths(library: &Library, typed: &str) -> Vec<String> {
    let skills = listed_skills(library).filter(|it| is_plain_name(&it.manifest.name));
    skills
        .filter_map(|skill: &Skill| {
            let (scope, name) = (skill.origin.scope, &skill.manifest.name);
            let path = format!("{scope}/{name}/{SKILL_FILE}");
            (path.starts_with(typed) || name.starts_with(typed)).then_some(path)
        })
        .collect()
}

/// Returns the first of them, and their number.
fn first_choices(mut all: Vec<String>) -> CompletionInfo {
    let (total, more) = (all.len(), all.len() > CompletionInfo::MAX_VALUES);
    all.truncate(CompletionInfo::MAX_VALUES);
    let total = u32::try_from(total).ok();
    CompletionInfo::with_pagination(all, total, more).unwrap_or_default()
}
