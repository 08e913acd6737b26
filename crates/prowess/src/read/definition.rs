//! Definitions of composite, script and template skills: the fenced code blocks of the body.

use serde_json::{Map, Value as Json};

use crate::read::manifest::Type;

/// The part of a skill that is executed.
#[derive(Debug, Clone, PartialEq)]
pub enum Definition {
    /// Nothing: the whole text is for the model.
    Instruction {
        /// The text.
        content: String,
    },
    /// Tool calls, one after the other.
    Composite {
        /// The calls.
        steps: Vec<CompositeStep>,
    },
    /// A shell script.
    Script {
        /// The script, with its last line end.
        script: String,
    },
    /// A Go text/template.
    Template {
        /// The template, with its last line end.
        template: String,
    },
}

/// One tool call of a composite skill.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositeStep {
    /// The tool.
    pub tool: String,
    /// The arguments of the call.
    pub params: Map<String, Json>,
}

/// The error for a body that lacks what its type needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct DefinitionError {
    /// The line of the body that is at fault, counted from 1.
    pub line: usize,
    /// A description of the fault.
    pub message: String,
}

/// Parses the definition of a skill from its body.
pub fn definition(kind: Type, body: &str) -> Result<Definition, DefinitionError> {
    let fences = fences(body);
    let mut own = fences.iter().filter(|it| !it.is_parameters);
    let missing =
        |what: &str| DefinitionError { line: 1, message: format!("a {kind} skill needs {what}") };
    match kind {
        Type::Instruction => Ok(Definition::Instruction { content: body.to_owned() }),
        Type::Script => script(&fences)
            .map(|it| Definition::Script { script: it.text.clone() })
            .ok_or_else(|| missing("a `sh` code block")),
        Type::Template => own
            .find(|it| matches!(it.language, "template" | ""))
            .map(|it| Definition::Template { template: it.text.clone() })
            .ok_or_else(|| missing("a `template` code block")),
        Type::Composite => {
            let steps: Vec<CompositeStep> =
                own.filter(|it| it.language == "json").map(step).collect::<Result<_, _>>()?;
            if steps.is_empty() {
                Err(missing("a `json` code block for each step"))
            } else {
                Ok(Definition::Composite { steps })
            }
        }
    }
}

/// Parses the JSON schema of a skill's parameters from the block under `## Parameters`.
pub fn parameters(body: &str) -> Result<Option<Json>, DefinitionError> {
    let fences = fences(body);
    let Some(fence) = fences.iter().find(|it| it.is_parameters && it.language == "json") else {
        return Ok(None);
    };
    serde_json::from_str(&fence.text).map(Some).map_err(|error| bad_json(fence, &error))
}

/// Returns the block that a script skill executes.
pub(crate) fn script<'f, 'b>(fences: &'f [Fence<'b>]) -> Option<&'f Fence<'b>> {
    fences
        .iter()
        .filter(|it| !it.is_parameters)
        .find(|it: &&Fence<'_>| matches!(it.language, "sh" | "bash" | "shell" | ""))
}

fn step(fence: &Fence<'_>) -> Result<CompositeStep, DefinitionError> {
    let json: Json = serde_json::from_str(&fence.text).map_err(|error| bad_json(fence, &error))?;
    let object = json.as_object();
    let tool = object.and_then(|it| it.get("tool")).and_then(Json::as_str);
    let Some(tool) = tool else {
        let message =
            "a step needs a `tool`, such as `{\"tool\": \"read_file\", \"params\": {}}`".to_owned();
        return Err(DefinitionError { line: fence.line, message });
    };
    let params = match object.and_then(|it| it.get("params")) {
        None | Some(Json::Null) => Map::new(),
        Some(Json::Object(params)) => params.clone(),
        Some(_) => {
            let message = "the `params` of a step are not an object".to_owned();
            return Err(DefinitionError { line: fence.line, message });
        }
    };
    Ok(CompositeStep { tool: tool.to_owned(), params })
}

fn bad_json(fence: &Fence<'_>, error: &serde_json::Error) -> DefinitionError {
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or(&reason);
    DefinitionError {
        line: fence.line + error.line(),
        message: format!("the block is not JSON: {reason}"),
    }
}

/// A fenced code block.
pub(crate) struct Fence<'b> {
    pub(crate) language: &'b str,
    pub(crate) text: String,
    /// The line of its opening fence, counted from 1.
    pub(crate) line: usize,
    /// Whether it is under the heading `## Parameters`.
    pub(crate) is_parameters: bool,
}

/// Returns the fenced code blocks of a Markdown text. An unclosed block extends to the end.
pub(crate) fn fences(body: &str) -> Vec<Fence<'_>> {
    let mut fences = Vec::new();
    let mut in_parameters = false;
    let mut lines = body.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some((marks, language)) = opening(line) {
            let indent = line.len() - line.trim_start().len();
            let mut text = String::new();
            for (_, line) in lines.by_ref() {
                if is_closing(line, marks) {
                    break;
                }
                let lead = line.len() - line.trim_start_matches(' ').len();
                text.push_str(&line[lead.min(indent)..]);
                text.push('\n');
            }
            fences.push(Fence { language, text, line: number + 1, is_parameters: in_parameters });
        } else if let Some(title) = heading(line) {
            in_parameters = line.starts_with("## ") && title.eq_ignore_ascii_case("parameters");
        }
    }
    fences
}

/// Returns the marks and the language of an opening fence.
pub(crate) fn opening(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start_matches(' ');
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = text.trim_start_matches(mark);
    let marks = &text[..text.len() - info.len()];
    let valid =
        marks.len() >= 3 && line.len() - text.len() <= 3 && !(mark == '`' && info.contains('`'));
    valid.then(|| (marks, info.split_whitespace().next().unwrap_or("")))
}

/// Whether a line closes a fence that was opened with `marks`.
pub(crate) fn is_closing(line: &str, marks: &str) -> bool {
    let text = line.trim();
    text.starts_with(marks) && text.chars().all(|c| marks.starts_with(c))
}

/// Returns the title of an ATX heading.
fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' '))
        .then(|| title.trim().trim_end_matches('#').trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameters_block_is_no_step() {
        let body = "```json\n{\"tool\": \"a\"}\n```\n\n## Parameters\n\n```json\n{\"type\": \"object\"}\n```\n";
        let Ok(Definition::Composite { steps }) = definition(Type::Composite, body) else {
            panic!("no steps")
        };
        assert_eq!(steps.iter().map(|it| &*it.tool).collect::<Vec<_>>(), ["a"]);
        assert_eq!(parameters(body).unwrap().unwrap()["type"], "object");
    }

    #[test]
    fn a_longer_fence_holds_shorter_ones_and_heredocs() {
        let body = "````sh\ncat <<'X'\n```json\n## Parameters\n```\nX\n````\n";
        let Ok(Definition::Script { script }) = definition(Type::Script, body) else {
            panic!("no script")
        };
        assert_eq!(script, "cat <<'X'\n```json\n## Parameters\n```\nX\n");
        assert_eq!(parameters(body), Ok(None));
    }

    #[test]
    fn what_is_missing_or_broken_is_said_with_its_line() {
        assert_eq!(
            definition(Type::Script, "text").unwrap_err().message,
            "a script skill needs a `sh` code block"
        );
        let error = definition(Type::Composite, "\n```json\n{\n\"tool\": }\n```\n").unwrap_err();
        assert_eq!((error.line, &*error.message), (4, "the block is not JSON: expected value"));
        assert_eq!(definition(Type::Composite, "```json\n{}\n```").unwrap_err().line, 1);
    }

    #[test]
    fn a_deeper_parameters_heading_is_another_section() {
        let body = "### Parameters\n```json\n{\"tool\": \"a\"}\n```\n";
        assert!(definition(Type::Composite, body).is_ok());
    }
}
