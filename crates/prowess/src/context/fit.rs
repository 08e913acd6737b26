//! From all that a model could be told to what fits into its window.

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
        disclose::{Level, rendered},
        invoke::{filled, with_files},
        marker::Marker,
    },
    read::source::ReadError,
    text::shorten::{defused, one_line},
};

/// All that a model could be told.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    /// What it is told before anything else.
    pub system: String,
    /// The list of skills that it can take up; empty for none.
    pub catalog: String,
    /// The skills that it is shown, the most important first.
    pub skills: Vec<Offer>,
    /// Puts each skill between markers, and tells the model what they mean.
    pub marker: Option<Marker>,
    /// The tools that it can call, as their schemas.
    pub tools: Vec<Json>,
    /// What was said so far, the oldest first. It is long, and shared until somebody changes it.
    pub history: Arc<Vec<Message>>,
}

/// A skill that a model could be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What it is called.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// How much it matters.
    pub priority: Priority,
    /// What it says, at the level that is wanted and at those below, the most first; its name and
    /// description alone need not stand here.
    pub contents: Vec<(Level, String)>,
}

/// What a model is told, and how it came to fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedPrompt {
    /// The messages, the system prompt first.
    pub messages: Vec<Message>,
    /// What they and the tools take.
    pub tokens: Usage,
    /// Every skill that was offered, in the order in which they are shown.
    pub skills: Vec<PlacedSkill>,
    /// What was done to make it fit, in order.
    pub steps: Vec<FitChange>,
}

/// How many tokens each part of a prompt takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The system prompt with the catalog.
    pub system: usize,
    /// What was said.
    pub history: usize,
    /// The skills.
    pub skills: usize,
    /// The tools.
    pub tools: usize,
}

/// What became of a skill that was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSkill {
    /// What it is called.
    pub name: String,
    /// How much it matters.
    pub priority: Priority,
    /// How much of it was wanted.
    pub wanted: Level,
    /// How much of it is shown, or was before it was left out.
    pub level: Level,
    /// What that takes.
    pub tokens: usize,
    /// By what it was left out.
    pub left_out: Option<FitStep>,
}

/// Something that was done to make a prompt fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FitChange {
    /// What it is called.
    pub step: FitStep,
    /// How many tokens there were before it.
    pub before: usize,
    /// How many there were after it.
    pub after: usize,
    /// What it did, in words.
    pub what: String,
}

/// What can be done to make a prompt fit, in the order in which it is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitStep {
    /// Results without their call and calls without their result become text, in any window.
    PairCalls,
    /// Over 80 %: the oldest messages are summarised.
    Compress,
    /// Over 90 %: inactive skills are left out; over 100 % after all else: all of them, and then the
    /// catalog.
    Evict,
    /// Over 95 %: all but the last 5 messages are summarised, and all but the first skill left out.
    KeepRecent,
    /// Over 100 %: less of each skill is shown.
    LowerLevel,
    /// Over 100 %: long messages are cut in the middle.
    Shorten,
}

/// Nothing that may be left out is left, and it is still too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a window of {window} tokens is too small: the system prompt needs {}, the tools need {} and what was said needs {} even when it is shortened",
    needed.system, needed.tools, needed.history
)]
pub struct FitError {
    /// How many tokens there are.
    pub window: usize,
    /// How many are needed at the least.
    pub needed: Usage,
}

impl Usage {
    /// All of it.
    pub fn total(&self) -> usize {
        self.system + self.history + self.skills + self.tools
    }
}

impl Serialize for Usage {
    /// Each part, and the total.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { system, history, skills, tools } = self;
        let total = self.total();
        json!({"system": system, "history": history, "skills": skills, "tools": tools, "total": total})
            .serialize(serializer)
    }
}

impl Serialize for PlacedSkill {
    /// What is shown of it, and by what it was left out.
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
    /// What was done, and what came of it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { step, before, after, what } = self;
        json!({"step": step.as_str(), "before": before, "after": after, "what": what})
            .serialize(serializer)
    }
}

impl FitStep {
    /// The word for it, as in `--json`.
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
    /// All of it as messages, the system prompt first, however long they are. Nothing is counted.
    pub fn whole(mut self) -> Vec<Message> {
        self.skills.sort_by_key(|it| it.priority);
        let marker = self.marker.as_ref();
        let block = |it: &Offer| it.block(it.contents.first().map_or("", |it| &it.1), marker);
        let explanation = marker.map(Marker::explanation).unwrap_or_default();
        let parts = [self.system, explanation, self.catalog].into_iter();
        let parts = parts.filter(|it| !it.is_empty());
        let parts: Vec<String> = parts.chain(self.skills.iter().map(block)).collect();
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
        let line = |text: &str| defused(&one_line(text)).into_owned();
        let (name, description) = (line(&skill.manifest.name), line(&skill.manifest.description));
        let mut contents = Vec::new();
        if chosen.level >= Level::Brief {
            let instructions = skill.text()?;
            let arguments = chosen.arguments.as_deref();
            let invoked = arguments.map(|it| filled(skill, &instructions, Some(it)));
            let told = rendered(skill, instructions);
            if chosen.level >= Level::Full {
                let full = invoked.unwrap_or_else(|| told.full.clone());
                contents.push((Level::Full, with_files(skill, full)));
            }
            // Name and description stand above the content already.
            let brief = told.brief.trim().to_owned();
            contents.push((Level::Brief, brief));
        }
        Ok(Self { name, description, priority: chosen.priority, contents })
    }

    /// A skill as it stands in the system prompt.
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

/// Makes a prompt fit into a window, by [`FitStep`] after [`FitStep`]: a step is taken when there are
/// strictly more tokens than its share of the window, and they are counted again after it.
///
/// The last message of the user is never summarised or dropped, nor is a system message; a call and
/// its result stay together; skills stand in the order of their priority. The same input gives the
/// same bytes, as far as `summarise` does.
pub fn fit(
    window: &ContextWindow,
    prompt: Prompt,
    summarise: &dyn Summarise,
) -> Result<FittedPrompt, FitError> {
    fit_again(window, prompt, summarise, &mut Counts::default())
}

/// Does the same, and counts only what was not counted the last time.
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
