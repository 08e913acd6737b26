//! Chooses the skills that a conversation needs, with their priorities.

use super::message::{Message, Role};
use crate::{
    disclosure::{
        disclose::{Level, Thresholds},
        use_skill::UseSkillInput,
    },
    library::Library,
    matching::{Match, Matching, Strategy, Unknown, activate, invoked_skill, mentioned_skills},
    read::skill::Skill,
};

/// The number of requests before the last one that are recent.
const RECENT: usize = 3;

/// The priority of a skill in a conversation; the highest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Priority {
    /// It was mentioned or activated in this or a recent request, or matched a recent one.
    Active,
    /// The request matches it.
    Relevant,
    /// It was mentioned or activated long ago.
    Inactive,
}

/// The skills for a conversation.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Choice<'lib> {
    /// The skills, the most important first.
    pub skills: Vec<ChosenSkill<'lib>>,
    /// The best candidates for the request, with their scores.
    pub considered: Vec<Match<'lib>>,
    /// The mentions of unknown skills in the request.
    pub unknown: Vec<Unknown>,
}

/// A skill for a conversation.
#[derive(Debug, Clone)]
pub struct ChosenSkill<'lib> {
    /// The skill.
    pub skill: &'lib Skill,
    /// Its priority.
    pub priority: Priority,
    /// Its disclosure level: full if it was asked for by name, else by confidence.
    pub level: Level,
    /// The arguments after its name, if the request invokes it: `/name arguments`.
    pub arguments: Option<String>,
}

impl<'lib> ChosenSkill<'lib> {
    /// Creates a skill that is active, without arguments.
    pub fn new(skill: &'lib Skill, level: Level) -> Self {
        Self { skill, priority: Priority::Active, level, arguments: None }
    }
}

impl Priority {
    /// Returns the word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Relevant => "relevant",
            Self::Inactive => "inactive",
        }
    }
}

/// Returns the request of a conversation: the last message of the user, not counting summaries.
pub fn request(history: &[Message]) -> Option<&Message> {
    history.iter().rfind(|it| is_request(it))
}

/// Whether a message is a request.
pub(super) fn is_request(message: &Message) -> bool {
    message.role == Role::User && !super::summarise::is_summary(message)
}

/// Chooses the skills for a conversation: those that its request activates, those that it and
/// earlier requests mention, those that the model activated, and the best match of each recent
/// request.
pub fn choose<'lib>(
    library: &'lib Library,
    history: &[Message],
    how: &Matching,
    thresholds: Thresholds,
) -> Choice<'lib> {
    let mut choice = Choice::default();
    let mut requests = (0..history.len()).rev().filter(|at| is_request(&history[*at]));
    let Some(last) = requests.next() else { return choice };
    let recent: Vec<usize> = requests.take(RECENT).collect();
    let since = recent.last().copied().unwrap_or(last);

    let activation = activate(library, &history[last].content, how);
    for found in activation.active {
        choice.add(found.skill, Priority::Relevant, thresholds.level(found.confidence));
    }
    choice.considered = activation.considered;
    choice.unknown = activation.unknown;
    // A strategy that uses all skills has matched none to earlier requests.
    let takes_all = how.strategy == Strategy::Always && how.rule.is_none();
    for at in recent.into_iter().filter(|_| !takes_all) {
        let found = activate(library, &history[at].content, how).active.into_iter().next();
        if let Some(found) = found {
            choice.add(found.skill, Priority::Active, thresholds.level(found.confidence));
        }
    }
    for (at, message) in history.iter().enumerate().rev() {
        let priority = if at >= since { Priority::Active } else { Priority::Inactive };
        let skills = named_skills(library, message).into_iter();
        for skill in skills.filter(|it| it.manifest.is_active()) {
            choice.add(skill, priority, Level::Full);
        }
    }
    if let Some((skill, arguments)) = invoked_skill(library, &history[last].content)
        && let Some(it) = choice.skills.iter_mut().find(|it| std::ptr::eq(it.skill, skill))
    {
        it.arguments = Some(arguments.to_owned());
    }
    choice.skills.sort_by_key(|it| it.priority);
    choice
}

impl<'lib> Choice<'lib> {
    /// Returns the skills for the conversation, the best first: those that were chosen, then those
    /// that were considered.
    pub fn best(&self) -> impl Iterator<Item = &'lib Skill> {
        let chosen = self.skills.iter().map(|it| it.skill);
        chosen.chain(self.considered.iter().map(|it| it.skill))
    }

    /// Adds a skill, or raises its priority and level if it is already there.
    fn add(&mut self, skill: &'lib Skill, priority: Priority, level: Level) {
        match self.skills.iter_mut().find(|it| it.skill.is_at(&skill.origin.path)) {
            Some(known) => {
                known.priority = known.priority.min(priority);
                known.level = known.level.max(level);
            }
            None => self.skills.push(ChosenSkill { skill, priority, level, arguments: None }),
        }
    }
}

/// Returns the skills that a person mentions or the model activates.
fn named_skills<'lib>(library: &'lib Library, message: &Message) -> Vec<&'lib Skill> {
    let inputs = message.calls.iter().filter(|it| it.name == "use_skill");
    let inputs = inputs.filter_map(|it| serde_json::from_str::<UseSkillInput>(&it.arguments).ok());
    let mut skills: Vec<&Skill> = inputs.filter_map(|it| library.get(&it.name)).collect();
    if is_request(message) {
        skills.extend(mentioned_skills(library, &message.content));
    }
    skills
}
