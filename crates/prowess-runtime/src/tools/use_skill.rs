//! `use_skill`: a skill is taken up, and its instructions are told.

use std::{borrow::Cow, sync::Arc};

use prowess::{UseSkill as Input, UsedSkill, nearest, use_skill};
use serde_json::{Value, json};

use super::{blocking, input, schema};
use crate::{
    active::Active,
    entry::Entry,
    outcome::{Outcome, Status},
    tool::{Act, Answer, Tool},
};

/// The tool `use_skill`.
#[derive(Debug)]
pub struct UseSkill {
    /// The skills that were taken up.
    pub active: Arc<Active>,
}

impl Tool for UseSkill {
    fn name(&self) -> &str {
        "use_skill"
    }

    fn description(&self) -> Cow<'_, str> {
        "Takes up a skill: tells its instructions and the files that come with it, which \
         `read_file` then reads."
            .into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn aliases(&self) -> &[(&str, &str)] {
        &[("skill_name", "name")]
    }

    fn act(&self, given: &Value) -> Result<Act, Box<Outcome>> {
        let Input { name } = input(given)?;
        let library = self.active.library();
        // Of what is not there, nothing but that is told.
        let told = library.get(&name).map(|it| Act::Disclose(Box::new(Entry::told(it))));
        Ok(told.unwrap_or(Act::Tell))
    }

    fn call<'a>(&'a self, given: Value) -> Answer<'a> {
        let active = Active::current().unwrap_or_else(|| self.active.clone());
        Box::pin(blocking(move || take_up(&active, &input(&given)?)))
    }
}

fn take_up(active: &Active, input: &Input) -> Result<Outcome, Box<Outcome>> {
    let library = active.library();
    // Only people take up what hides from models.
    let hides = library.get(&input.name).is_some_and(|it| it.manifest.hides_from_model());
    if hides || !active.activate(&input.name) {
        return Err(Box::new(unknown(active, &input.name)));
    }
    let used = use_skill(&library, input).map_err(|error| {
        Outcome::bad(Status::Failed, format!("cannot read the skill `{}`: {error}", input.name))
    })?;
    match used {
        UsedSkill::Found { name, folder, instructions, resources } => Ok(Outcome::ok(json!({
            "name": name,
            "folder": folder,
            "instructions": instructions,
            "resources": resources,
        }))),
        // It has gone in this moment.
        UsedSkill::NotFound { .. } => Err(Box::new(unknown(active, &input.name))),
    }
}

pub(super) fn unknown(active: &Active, name: &str) -> Outcome {
    let library = active.library();
    let outcome = Outcome::bad(Status::NotFound, format!("skill `{name}` not found"));
    let given = library.skills().map(|it| &it.manifest);
    let given = given.filter(|it| it.is_active() && !it.hides_from_model());
    match nearest(name, given.map(|it| &*it.name)) {
        Some(near) => outcome.hint(format!("did you mean `{near}`?")),
        None => outcome,
    }
}
