//! `run_skill`: executes a skill, or one of its scripts.

use std::{borrow::Cow, ffi::OsString, sync::Arc};

use prowess::{Definition, Library, Skill};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{input, schema, use_skill::unknown_skill};
use crate::{
    active::ActiveSkills,
    blocking::blocking,
    entry::SkillRecord,
    executor::{Delivery, Executor},
    outcome::{Outcome, OutcomeStatus},
    parameters::Parameters,
    script::Script,
    subject::Subject,
    tool::{Action, ReadyFuture, Tool, ToolFuture},
};

/// The tool `run_skill`: one tool for all executable skills, however many there are.
#[derive(Debug)]
pub struct RunSkill {
    /// The active skills, and their library.
    pub active: Arc<ActiveSkills>,
    /// The executor.
    pub executor: Executor,
}

/// The input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The exact name of the skill
    name: String,
    /// Parameters for a script, template or composite skill, as its `## Parameters` section describes
    #[serde(default)]
    parameters: Map<String, Value>,
    /// Run this script from the skill's files instead, such as `scripts/check.py`
    // Some clients do not support a list of types.
    #[schemars(extend("type" = "string"))]
    script: Option<String>,
    /// Command-line arguments for that script
    #[serde(default)]
    arguments: Vec<String>,
}

impl Tool for RunSkill {
    fn name(&self) -> &str {
        "run_skill"
    }

    fn description(&self) -> Cow<'_, str> {
        "Run a skill of type script, template or composite, or a script from a skill's files. It runs in a \
         sandbox without network, and with no files but the skill's."
            .into()
    }

    fn input_schema(&self) -> Value {
        schema::<Input>()
    }

    fn action(&self, given: &Value) -> Result<Action, Box<Outcome>> {
        let input: Input = input(given)?;
        let library = self.library();
        let skill = self.skill(&library, &input.name)?;
        if let Some(path) = &input.script {
            return Ok(Action::Execute(Box::new(script(skill, path)?.entry)));
        }
        let entry = SkillRecord::of(skill).and_then(SkillRecord::with_files);
        let entry = entry.map_err(|it| Outcome::from(&it))?;
        if let Definition::Instruction { .. } = entry.definition {
            let message = format!("the skill `{}` is an instruction and cannot be run", input.name);
            let hint = "load it with `use_skill`, or pass one of its scripts as `script`";
            return Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message).hint(hint)));
        }
        Ok(Action::Execute(Box::new(entry)))
    }

    fn perform<'a>(&'a self, action: Action, given: Value) -> ToolFuture<'a> {
        Box::pin(async move { self.run(action, &given).await.unwrap_or_else(|it| *it) })
    }

    fn get_ready<'a>(&'a self, _act: &'a Action, given: &'a Value) -> ReadyFuture<'a> {
        Box::pin(async move {
            let Ok(Input { name, script: Some(path), .. }) = input(given) else { return };
            if let Ok((skill, script)) = self.script(&name, &path).await {
                self.executor
                    .install_missing_packages(&script, skill.absolute_folder().as_deref())
                    .await;
            }
        })
    }

    fn is_skill_text(&self, outcome: &Outcome) -> bool {
        outcome.is_ok() || outcome.stdout.is_some() || outcome.stderr.is_some()
    }
}

impl RunSkill {
    async fn run(&self, action: Action, given: &Value) -> Result<Outcome, Box<Outcome>> {
        let Input { name, parameters, script: path, arguments } = input(given)?;
        let Action::Execute(entry) = action else {
            let message = "the call is not authorized to execute a skill";
            return Err(Box::new(Outcome::bad(OutcomeStatus::Invalid, message)));
        };
        let Some(path) = path else { return Ok(self.executor.execute(&entry, parameters).await) };
        let (skill, script) = self.script(&name, &path).await?;
        // The authorized script is the one that runs.
        if Subject::of(&script.entry).ok() != Subject::of(&entry).ok() {
            let message = format!("`{path}` changed while waiting for approval");
            return Err(Box::new(Outcome::bad(OutcomeStatus::Refused, message).hint("try again")));
        }
        let arguments = arguments.into_iter().map(OsString::from).collect();
        let arguments = self.executor.arguments(self.name(), arguments);
        let parameters = Parameters::from(parameters);
        let delivery = Delivery::default();
        let tried = self.executor.attempt_script(&script, arguments, parameters, delivery).await;
        let mut outcome = tried.unwrap_or_else(|error| Outcome::from(&error));
        if outcome.status == OutcomeStatus::Failed && outcome.hint.is_none() {
            outcome.hint = self.executor.install_hint(&script, skill.absolute_folder().as_deref());
        }
        if !outcome.files.is_empty() && outcome.message.is_none() {
            outcome.message =
                Some("the files it wrote were discarded; only its output is kept".to_owned());
        }
        Ok(outcome)
    }

    /// Reads a script again, on a thread that may block.
    async fn script(&self, name: &str, path: &str) -> Result<(Skill, Script), Box<Outcome>> {
        let skill = self.skill(&self.library(), name)?.clone();
        let path = path.to_owned();
        blocking(move || script(&skill, &path).map(|script| (skill, script))).await.flatten()
    }

    fn library(&self) -> Arc<Library> {
        ActiveSkills::current().unwrap_or_else(|| self.active.clone()).library()
    }

    /// Finds an enabled skill that a model may use.
    fn skill<'l>(&self, library: &'l Library, name: &str) -> Result<&'l Skill, Box<Outcome>> {
        let skill = library.get(name).filter(|it| it.manifest.is_for_models());
        skill.ok_or_else(|| Box::new(unknown_skill(&self.active, name)))
    }
}

fn script(skill: &Skill, path: &str) -> Result<Script, Box<Outcome>> {
    Script::of(skill, path).map_err(|it| Box::new(Outcome::from(&it)))
}
