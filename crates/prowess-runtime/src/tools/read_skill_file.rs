//! `read_skill_file`: reads a file of a skill, by the name of the skill and its path there.

use std::{borrow::Cow, io, sync::Arc};

use prowess::{ReadError, Skill, did_you_mean, nearest, spec::SKILL_FILE};
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::Value;

use super::{
    blocking,
    file_operations::{page, with_path},
    input, schema,
    use_skill::unknown_skill,
};
use crate::{
    active::ActiveSkills,
    authorizer::Authorizer,
    content::FileChunk,
    outcome::{Outcome, OutcomeStatus},
    tool::{Action, Tool, ToolFuture},
    tool_output::{SkillFilePart, ToolOutput},
};

/// The tool `read_skill_file`, for agents without other access to the files of a skill.
///
/// A skill need not be active. One that requires approval is refused, with all of its files. The
/// `SKILL.md` of one that is hidden from models is not returned, but its other files are: a person
/// may have invoked it, and its instructions name them.
#[derive(Debug)]
pub struct ReadSkillFile {
    /// The library of the skills.
    pub active: Arc<ActiveSkills>,
    /// Decides on the disclosure of a skill.
    pub authorizer: Arc<Authorizer>,
}

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = simplify_numbers)]
struct Input {
    /// The exact name of the skill
    name: String,
    /// The path of the file in the skill
    path: String,
    /// Byte offset to start from
    #[serde(default)]
    offset: u64,
    /// Maximum number of bytes
    limit: Option<u64>,
}

/// Removes the details of numbers from the schema.
fn simplify_numbers(schema: &mut Schema) {
    for name in ["offset", "limit"] {
        let properties = schema.get_mut("properties").and_then(|it| it.get_mut(name));
        if let Some(number) = properties.and_then(Value::as_object_mut) {
            number.insert("type".to_owned(), "integer".into());
            number.retain(|key, _| ["type", "description"].contains(&key.as_str()));
        }
    }
}

impl Tool for ReadSkillFile {
    fn name(&self) -> &str {
        "read_skill_file"
    }

    fn description(&self) -> Cow<'_, str> {
        "Read a file of a skill.".into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn aliases(&self) -> &[(&str, &str)] {
        &[("skill_name", "name")]
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        let input: Input = input(given)?;
        let active = ActiveSkills::current().unwrap_or_else(|| self.active.clone());
        let library = active.library();
        let skill = library.get(&input.name).filter(|it| it.manifest.is_active());
        let skill = skill.ok_or_else(|| Box::new(unknown_skill(&active, &input.name)))?;
        if let Some(refusal) = self.authorizer.why_withheld(skill) {
            return Err(refusal);
        }
        // Rules about an active skill apply to reading its files.
        active.activate(&input.name);
        let path = input.path.strip_prefix("./").unwrap_or(&input.path);
        let bytes = read(skill, path).map_err(|error| read_failure(skill, &input.path, &error))?;
        let folder = skill.absolute_folder().unwrap_or_else(|| skill.folder().to_owned());
        Ok(Action::Resource { path: folder.join(path), bytes: bytes.into() })
    }

    fn perform<'a>(&'a self, action: Action, given: Value) -> ToolFuture<'a> {
        Box::pin(blocking(move || {
            let input: Input = input(&given)?;
            let Action::Resource { bytes, .. } = action else {
                let message = "the call is not authorized for this file";
                return Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message)));
            };
            let page = page(input.limit)?;
            let part = FileChunk::read(&mut io::Cursor::new(&bytes), input.offset, page);
            let part = part.expect("reading from memory cannot fail");
            let output = with_path(&input.path, part.into_output(bytes.len() as u64));
            let part = SkillFilePart::deserialize(&output).expect("it has the fields of a part");
            Ok(Outcome::ok(output).with_typed(ToolOutput::SkillFile(part)))
        }))
    }

    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        outcome.is_ok()
    }
}

/// Reads a resource of a skill, or its `SKILL.md`.
fn read(skill: &Skill, path: &str) -> Result<Vec<u8>, ReadError> {
    match path == SKILL_FILE && skill.manifest.is_for_models() {
        true => skill.document(),
        false => skill.read(path),
    }
}

fn read_failure(skill: &Skill, path: &str, error: &ReadError) -> Box<Outcome> {
    if !matches!(error, ReadError::NoSuchResource { .. }) {
        return Box::new(Outcome::error(OutcomeStatus::Failed, error));
    }
    let outcome = Outcome::bad(OutcomeStatus::NotFound, error.to_string());
    let paths = skill.resources().iter().map(|it| &*it.path);
    Box::new(match nearest(path, paths) {
        Some(near) => outcome.hint(did_you_mean(near)),
        None => outcome.hint("`use_skill` lists the files"),
    })
}
