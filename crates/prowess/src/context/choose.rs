//! Which skills a conversation needs, and how much each of them matters to it.

use super::message::{Message, Role};
use crate::{
    disclosure::{
        disclose::{Level, Thresholds},
        use_skill::UseSkillInput,
    },
    library::Library,
    matching::{Match, Matching, Strategy, Unknown, activate, invoked, mentioned},
    read::skill::Skill,
};

/// How many requests before the last one are recent.
const RECENT: usize = 3;

/// How much a skill matters to a conversation; the most comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// It is mentioned or was taken up in this or a recent request, or a recent one matched it.
    Active,
    /// The request matches it.
    Relevant,
    /// Neither; it was mentioned or taken up long ago.
    Inactive,
}

/// The skills for a conversation.
#[derive(Debug, Clone, Default)]
pub struct Choice<'lib> {
    /// The most important first.
    pub skills: Vec<ChosenSkill<'lib>>,
    /// The best of all that were considered for the request, with their scores.
    pub considered: Vec<Match<'lib>>,
    /// What the request mentions and is not there.
    pub unknown: Vec<Unknown>,
}

/// A skill for a conversation.
#[derive(Debug, Clone)]
pub struct ChosenSkill<'lib> {
    /// The skill.
    pub skill: &'lib Skill,
    /// How much it matters.
    pub priority: Priority,
    /// How much of it is shown: everything when it was asked for by name, else by confidence.
    pub level: Level,
    /// What is typed behind its name, where the request invokes it: `/name arguments`.
    pub arguments: Option<String>,
}

impl Priority {
    /// The word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Relevant => "relevant",
            Self::Inactive => "inactive",
        }
    }
}

/// The request of a conversation: the last message of the user. A summary is none.
pub fn request(history: &[Message]) -> Option<&Message> {
    history.iter().rfind(|it| is_request(it))
}

/// Says whether somebody asks for something with a message.
pub(super) fn is_request(message: &Message) -> bool {
    message.role == Role::User && !super::summarise::is_summary(message)
}

/// Chooses the skills for a conversation: those that its request activates, those that it and
/// earlier ones mention, those that the model took up, and the best match of each recent request.
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
    // Whoever takes all skills has matched none to what was asked before.
    let takes_all = how.strategy == Strategy::Always && how.rule.is_none();
    for at in recent.into_iter().filter(|_| !takes_all) {
        let found = activate(library, &history[at].content, how).active.into_iter().next();
        if let Some(found) = found {
            choice.add(found.skill, Priority::Active, thresholds.level(found.confidence));
        }
    }
    for (at, message) in history.iter().enumerate().rev() {
        let priority = if at >= since { Priority::Active } else { Priority::Inactive };
        let skills = named(library, message).into_iter();
        for skill in skills.filter(|it| it.manifest.is_active()) {
            choice.add(skill, priority, Level::Full);
        }
    }
    if let Some((skill, arguments)) = invoked(library, &history[last].content)
        && let Some(it) = choice.skills.iter_mut().find(|it| std::ptr::eq(it.skill, skill))
    {
        it.arguments = Some(arguments.to_owned());
    }
    choice.skills.sort_by_key(|it| it.priority);
    choice
}

impl<'lib> Choice<'lib> {
    /// The skills that matter to the conversation, the best first: those that were chosen, then those
    /// that were considered.
    pub fn best(&self) -> impl Iterator<Item = &'lib Skill> {
        let chosen = self.skills.iter().map(|it| it.skill);
        chosen.chain(self.considered.iter().map(|it| it.skill))
    }

    /// Adds a skill, or raises the one that is there.
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

/// The skills that a person mentions or the model takes up.
fn named<'lib>(library: &'lib Library, message: &Message) -> Vec<&'lib Skill> {
    let taken = message.calls.iter().filter(|it| it.name == "use_skill");
    let taken = taken.filter_map(|it| serde_json::from_str::<UseSkillInput>(&it.arguments).ok());
    let mut skills: Vec<&Skill> = taken.filter_map(|it| library.get(&it.name)).collect();
    if is_request(message) {
        skills.extend(mentioned(library, &message.content));
    }
    skills
}
