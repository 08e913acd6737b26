//! Fits a prompt into a context window.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::{
    ContextWindow,
    choose::{ChosenSkill, Priority},
    counts::Counts,
    draft::Draft,
    mend::mend,
    message::{Message, Role},
    summarise::Summarise,
};
use crate::{
    disclosure::{
        catalog::block,
        disclose::{Level, render_cached},
        invoke::{fill_instructions, with_files},
        marker::Marker,
    },
    read::source::ReadError,
    text::shorten::{escape_tags, one_line},
};

/// A prompt before it is fitted.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// The system prompt.
    pub system: String,
    /// The catalog of skills that the model can activate; empty for none.
    pub catalog: String,
    /// The skills to show, the most important first.
    pub skills: Vec<Offer>,
    /// Fences each skill with markers, and explains them to the model.
    pub marker: Option<Marker>,
    /// The tools that the model can call, as their schemas.
    pub tools: Vec<Json>,
    /// The messages so far, the oldest first. They are long, and shared until they are changed.
    pub history: Arc<Vec<Message>>,
}

/// A skill that can be shown to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its priority.
    pub priority: Priority,
    /// Its content at the wanted level and at those below, the highest first; name and description
    /// alone need not be listed.
    pub contents: Vec<(Level, String)>,
}

/// A prompt that fits, and the steps that made it fit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FittedPrompt {
    /// The messages, the system prompt first.
    pub messages: Vec<Message>,
    /// Their token usage, including the tools.
    pub tokens: Usage,
    /// Every offered skill, in the order in which they are shown.
    pub skills: Vec<PlacedSkill>,
    /// The fit steps that were applied, in order.
    pub steps: Vec<FitChange>,
}

/// The number of tokens in each part of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The system prompt with the catalog.
    pub system: usize,
    /// The messages.
    pub history: usize,
    /// The skills.
    pub skills: usize,
    /// The tools.
    pub tools: usize,
}

/// The placement of a skill that was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedSkill {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: Priority,
    /// The level that was wanted.
    pub wanted: Level,
    /// The level that is shown, or was before it was left out.
    pub level: Level,
    /// The tokens that it takes.
    pub tokens: usize,
    /// The step that left it out.
    pub left_out: Option<FitStep>,
}

/// A fit step that was applied to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FitChange {
    /// The step.
    pub step: FitStep,
    /// The number of tokens before it.
    pub before: usize,
    /// The number of tokens after it.
    pub after: usize,
    /// A description of what it did.
    pub what: String,
}

/// A step to make a prompt fit, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FitStep {
    /// Results without their call and calls without their result become text, in any window.
    PairCalls,
    /// Over 80 %: the oldest messages are summarised.
    Compress,
    /// Over 90 %: inactive skills are left out; over 100 % after all other steps: all skills, and
    /// then the catalog.
    Evict,
    /// Over 95 %: all but the last 5 messages are summarised, and all but the first skill left out.
    KeepRecent,
    /// Over 100 %: less of each skill is shown.
    LowerLevel,
    /// Over 100 %: long messages are cut in the middle.
    Shorten,
}

/// The error for a prompt that is too large even without everything that may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a context window of {window} tokens is too small: the system prompt needs {}, the tools need {}, and the conversation needs {} even when shortened",
    needed.system, needed.tools, needed.history
)]
#[non_exhaustive]
pub struct FitError {
    /// The size of the window, in tokens.
    pub window: usize,
    /// The minimum number of tokens needed.
    pub needed: Usage,
}

impl Usage {
    /// Returns the total.
    pub fn total(&self) -> usize {
        self.system + self.history + self.skills + self.tools
    }
}

impl Serialize for Usage {
    /// Serializes each part, and the total.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { system, history, skills, tools } = self;
        let total = self.total();
        json!({"system": system, "history": history, "skills": skills, "tools": tools, "total": total})
            .serialize(serializer)
    }
}

impl Serialize for PlacedSkill {
    /// Serializes the level that is shown, and the step that left it out.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "name": self.name,
            "priority": self.priority.as_str(),
            "level": self.level.as_str(),
            "tokens": self.tokens,
            "kept": self.left_out.is_none(),
            "left_out_by": self.left_out.map(FitStep::as_str),
        })
        .serialize(serializer)
    }
}

impl Serialize for FitChange {
    /// Serializes the step, and its result.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { step, before, after, what } = self;
        json!({"step": step.as_str(), "before": before, "after": after, "what": what})
            .serialize(serializer)
    }
}

impl FitStep {
    /// Returns the word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PairCalls => "mend",
            Self::Compress => "compress",
            Self::Evict => "evict",
            Self::KeepRecent => "squeeze",
            Self::LowerLevel => "degrade",
            Self::Shorten => "shorten",
        }
    }
}

impl Prompt {
    /// Returns the whole prompt as messages, the system prompt first, however long. Counts nothing.
    pub fn whole(mut self) -> Vec<Message> {
        self.skills.sort_by_key(|it| it.priority);
        let marker = self.marker.as_ref();
        let explanation = marker.map(Marker::explanation).unwrap_or_default();
        let parts = [self.system, explanation, self.catalog].into_iter();
        let parts = parts.filter(|it| !it.is_empty());
        let parts: Vec<String> = parts
            .chain(
                self.skills
                    .iter()
                    .map(|it: &Offer| it.block(it.contents.first().map_or("", |it| &it.1), marker)),
            )
            .collect();
        let mut messages = Arc::unwrap_or_clone(self.history);
        mend(&mut messages);
        if !parts.is_empty() {
            messages.insert(0, Message::new(Role::System, parts.join("\n\n")));
        }
        messages
    }
}

impl Offer {
    /// Offers a skill at the level it was chosen for and at those below.
    pub fn new(chosen: &ChosenSkill<'_>) -> Result<Self, ReadError> {
        let skill = chosen.skill;
        let [name, description] = [&skill.manifest.name, &skill.manifest.description]
            .map(|it| escape_tags(&one_line(it)).into_owned());
        let mut contents = Vec::new();
        if chosen.level >= Level::Brief {
            let instructions = skill.text()?;
            let arguments = chosen.arguments.as_deref();
            let invoked = arguments.map(|it| fill_instructions(skill, &instructions, Some(it)));
            let rendered = render_cached(skill, instructions);
            if chosen.level >= Level::Full {
                let full = invoked.unwrap_or_else(|| rendered.full.clone());
                contents.push((Level::Full, with_files(skill, full)));
            }
            // Name and description are already above the content.
            let brief = rendered.brief.trim().to_owned();
            contents.push((Level::Brief, brief));
        }
        Ok(Self { name, description, priority: chosen.priority, contents })
    }

    /// Renders a skill for the system prompt.
    pub(super) fn block(&self, content: &str, marker: Option<&Marker>) -> String {
        let Self { name, description, .. } = self;
        let text = match content {
            "" => format!("## Skill: {name}\n{description}"),
            _ => block(name, description, content),
        };
        match marker {
            Some(marker) => marker.fence(&text),
            None => text,
        }
    }
}

/// Fits a prompt into a window, [`FitStep`] by [`FitStep`]: a step is applied when there are
/// strictly more tokens than its share of the window, and they are counted again after it.
///
/// The last message of the user is never summarised or dropped, nor is a system message; a call and
/// its result stay together; skills are in the order of their priority. The same input gives the
/// same bytes, as far as `summarise` does.
pub fn fit(
    window: &ContextWindow,
    prompt: Prompt,
    summarise: &dyn Summarise,
) -> Result<FittedPrompt, FitError> {
    fit_again(window, prompt, summarise, &mut Counts::default())
}

/// Does the same, and counts only texts that were not counted the last time.
pub fn fit_again(
    window: &ContextWindow,
    prompt: Prompt,
    summarise: &dyn Summarise,
    counts: &mut Counts,
) -> Result<FittedPrompt, FitError> {
    let mut draft = Draft::new(window, prompt, summarise, counts);
    for (step, percent, take) in Draft::STEPS {
        if draft.is_over(percent) {
            draft.record(step, take);
        }
    }
    if draft.is_over(100) {
        return Err(FitError { window: window.tokens, needed: draft.usage() });
    }
    Ok(draft.finish())
}
