//! `use_skill`: activates a skill, and returns its instructions.

use std::{borrow::Cow, sync::Arc};

use prowess::{Definition, ReadError, UseSkillInput, UsedSkill, did_you_mean, nearest};
use serde_json::{Value, json};

use super::{blocking, input, schema};
use crate::{
    active::ActiveSkills,
    entry::SkillRecord,
    outcome::{Outcome, OutcomeStatus},
    skill_folder::SkillFolder,
    tool::{Action, Tool, ToolFuture},
    tool_output::ToolOutput,
};

/// The tool `use_skill`.
#[derive(Debug)]
pub struct UseSkill {
    /// The active skills.
    pub active: Arc<ActiveSkills>,
}

impl Tool for UseSkill {
    fn name(&self) -> &str {
        "use_skill"
    }

    fn description(&self) -> Cow<'_, str> {
        "Load a skill's instructions and list its files.".into()
    }

    fn input_schema(&self) -> Value {
        schema::<UseSkillInput>()
    }

    fn aliases(&self) -> &[(&str, &str)] {
        &[("skill_name", "name")]
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        let UseSkillInput { name } = input(given)?;
        let active = self.active();
        let library = active.library();
        // Only people may activate skills that are hidden from models.
        let skill = library.get(&name).filter(|it| it.manifest.is_for_models());
        let skill = skill.ok_or_else(|| Box::new(unknown_skill(&active, &name)))?;
        let entry =
            SkillRecord::for_disclosure(skill).map_err(|error| read_failure(&name, &error))?;
        Ok(Action::Disclose(Box::new(entry)))
    }

    fn perform<'a>(&'a self, action: Action, given: Value) -> ToolFuture<'a> {
        let active = self.active();
        Box::pin(blocking(move || activate(&active, action, &input(&given)?)))
    }

    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        outcome.is_ok() && outcome.output.as_ref().is_some_and(Value::is_object)
    }
}

impl UseSkill {
    fn active(&self) -> Arc<ActiveSkills> {
        ActiveSkills::current().unwrap_or_else(|| self.active.clone())
    }
}

/// Activates the authorized skill, and returns exactly that.
fn activate(
    active: &ActiveSkills,
    action: Action,
    input: &UseSkillInput,
) -> Result<Outcome, Box<Outcome>> {
    let library = active.library();
    let (Action::Disclose(entry), Some(skill)) = (action, library.get(&input.name)) else {
        // It was just removed.
        return Err(Box::new(unknown_skill(active, &input.name)));
    };
    let Definition::Instruction { content } = &entry.definition else {
        let message = format!("the skill `{}` is not an instruction: run it instead", input.name);
        return Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message)));
    };
    let folder = skill.absolute_folder().map(SkillFolder::from);
    if skill.manifest != entry.manifest || folder != entry.folder {
        let message = format!("the skill `{}` changed while waiting for approval", input.name);
        return Err(Box::new(Outcome::bad(OutcomeStatus::Refused, message).hint("try again")));
    }
    let used = UsedSkill::of(&skill.with_instructions(content));
    let used = used.map_err(|error| read_failure(&input.name, &error))?;
    active.activate(&input.name);
    match &used {
        UsedSkill::Found { name, folder, instructions, resources } => {
            let output = json!({
                "name": name,
                "folder": folder,
                "instructions": instructions,
                "resources": resources,
            });
            Ok(Outcome::ok(output).with_typed(ToolOutput::UsedSkill(used)))
        }
        UsedSkill::NotFound { .. } => Err(Box::new(unknown_skill(active, &input.name))),
    }
}

fn read_failure(name: &str, error: &ReadError) -> Box<Outcome> {
    let message = format!("cannot read the skill `{name}`: {error}");
    Box::new(Outcome::bad(OutcomeStatus::Failed, message))
}

pub(super) fn unknown_skill(active: &ActiveSkills, name: &str) -> Outcome {
    let library = active.library();
    let outcome = Outcome::bad(OutcomeStatus::NotFound, format!("skill `{name}` not found"));
    let given = library.skills().map(|it| &it.manifest).filter(|it| it.is_for_models());
    match nearest(name, given.map(|it| &*it.name)) {
        Some(near) => outcome.hint(did_you_mean(near)),
        None => outcome,
    }
}
