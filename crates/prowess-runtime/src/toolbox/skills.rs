//! The skills that a toolbox can call by the name of a tool.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use prowess::{Library, Skill, matches_among};
use serde_json::{Map, Value};

use crate::{
    blocking::blocking,
    entry::SkillRecord,
    executor::Executor,
    outcome::{Outcome, OutcomeStatus},
    provider::SkillProvider,
    strict_json::strict_json,
    tool::Tool,
    tools::SkillTool,
};

/// The call of a skill by the name of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SkillCall {
    /// The selector of the skill.
    pub skill: String,
    /// The arguments of the call.
    pub parameters: Map<String, Value>,
}

/// The skills of a provider, as tools that need not be listed.
#[derive(Debug)]
pub(super) struct CallableSkills {
    provider: Arc<dyn SkillProvider>,
    executor: Executor,
    known: Mutex<KnownTools>,
}

impl CallableSkills {
    pub(super) fn new(provider: Arc<dyn SkillProvider>, executor: Executor) -> Self {
        Self { provider, executor, known: Mutex::default() }
    }

    /// Returns the selector of the skill that the name of a tool refers to, by the rules of
    /// [`Library::for_tool`].
    pub(super) fn selector(&self, tool: &str) -> Option<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&self.provider.library(), tool)
    }

    /// Returns the call of the skill that the name of a tool refers to, with every argument.
    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Option<SkillCall> {
        Some(SkillCall { skill: self.selector(tool)?, parameters: to_parameters(arguments) })
    }

    /// Returns the skill that matches a request best, and its confidence.
    pub(super) async fn find_best(&self, request: &str) -> Option<(String, f64)> {
        let (library, request) = (self.provider.library(), request.to_owned());
        blocking(move || find_best(&library, &request)).await.ok().flatten()
    }

    /// Reads a skill, and creates its tool.
    pub(super) async fn tool(&self, selector: &str) -> Result<Arc<dyn Tool>, Box<Outcome>> {
        let (library, selector) = (self.provider.library(), selector.to_owned());
        let record = blocking(move || {
            let skill = library.get(&selector).filter(|it| it.manifest.is_for_models());
            let skill = skill.ok_or_else(|| {
                let message = format!("there is no skill `{selector}`");
                Box::new(Outcome::bad(OutcomeStatus::NotFound, message))
            })?;
            SkillRecord::of(skill).map_err(|error| Box::new(Outcome::from(&error)))
        });
        let record = record.await.flatten()?;
        let name = format!("skill_{}", record.manifest.name);
        Ok(Arc::new(SkillTool::new(name, record, self.executor.clone())))
    }

    /// Returns the names of all skills that a model may call.
    pub(super) fn names(&self) -> Vec<String> {
        let library = self.provider.library();
        let skills = library.skills().filter(|it| it.manifest.is_for_models());
        skills.map(|it| it.manifest.name.to_string()).collect()
    }
}

/// The skills that names of tools refer to, in one library. A name without a skill is looked up
/// again each time.
#[derive(Debug, Default)]
struct KnownTools {
    library: Weak<Library>,
    selectors: HashMap<String, String>,
}

impl KnownTools {
    /// The maximum number of names; they come from outside, and each skill has several.
    const MAX: usize = 65_536;

    fn get(&mut self, library: &Arc<Library>, tool: &str) -> Option<String> {
        if !std::ptr::eq(self.library.as_ptr(), Arc::as_ptr(library)) {
            *self = Self { library: Arc::downgrade(library), ..Self::default() };
        }
        if let Some(selector) = self.selectors.get(tool) {
            return Some(selector.clone());
        }
        let skill = library.for_tool(tool).filter(|it| it.manifest.is_for_models())?;
        let selector = library.address(skill);
        if self.selectors.len() >= Self::MAX {
            self.selectors.clear();
        }
        self.selectors.insert(tool.to_owned(), selector.clone());
        Some(selector)
    }
}

fn find_best(library: &Library, request: &str) -> Option<(String, f64)> {
    let found = matches_among(library, request, 1, |it: &Skill| {
        it.hidden_by.is_none() && it.manifest.is_for_models()
    });
    found.first().map(|it| (library.address(it.skill), it.confidence))
}

/// Returns the parameters in the arguments of a call. None is lost: a value that is not an object
/// becomes the parameter `input`.
fn to_parameters(arguments: &Value) -> Map<String, Value> {
    match arguments {
        Value::Object(arguments) => arguments.clone(),
        Value::Null => Map::new(),
        Value::String(text) if text.trim().is_empty() => Map::new(),
        // Some models send the text of an object.
        Value::String(text) => strict_json(text)
            .and_then(serde_json::from_value)
            .unwrap_or_else(|_| Map::from_iter([("input".to_owned(), arguments.clone())])),
        other => Map::from_iter([("input".to_owned(), other.clone())]),
    }
}

#[cfg(test)]
mod tests {
    use prowess::{Memory, Options, Scope};
    use serde_json::json;

    use super::*;

    fn library(names: &[&str]) -> Arc<Library> {
        let files = names.iter().map(|it| {
            let text = format!("---\nname: {it}\ndescription: a skill\n---\n");
            (format!("{it}/SKILL.md"), text.into_bytes())
        });
        let memory = Memory::new(Scope::Project, "memory", files);
        let options = Options { sources: vec![Arc::new(memory)], ..Options::default() };
        Arc::new(Library::load(&options).expect("there is a source"))
    }

    #[test]
    fn hits_are_kept_misses_are_not_and_another_library_is_looked_at_anew() {
        let mut mapped = KnownTools::default();
        let (one, two) = (library(&["open-pr"]), library(&["open-pr", "deploy"]));
        for name in ["open-pr", "skill_open-pr", "SKILL_OPEN_PR", "Open_PR"] {
            assert_eq!(mapped.get(&one, name).as_deref(), Some("open-pr"), "{name}");
        }
        assert_eq!(mapped.selectors.len(), 4);
        assert_eq!(mapped.get(&one, "deploy"), None);
        assert_eq!(mapped.selectors.len(), 4);
        assert_eq!(mapped.get(&two, "deploy").as_deref(), Some("deploy"));
        assert_eq!(mapped.selectors.len(), 1);
    }

    #[test]
    fn no_argument_is_lost() {
        let cases = [
            (json!({"a": 1, "b": [null]}), json!({"a": 1, "b": [null]})),
            (json!("{\"a\": 1}"), json!({"a": 1})),
            (json!(null), json!({})),
            (json!(""), json!({})),
            (json!("text"), json!({"input": "text"})),
            (json!([1, 2]), json!({"input": [1, 2]})),
        ];
        for (given, kept) in cases {
            assert_eq!(Value::from(to_parameters(&given)), kept);
        }
    }
}
