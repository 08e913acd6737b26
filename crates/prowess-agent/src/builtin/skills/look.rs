//! Chooses the skills of a turn.

use std::{path::Path, sync::Arc};

use prowess::{
    Choice, ChosenSkill, Level, Library, Matching, Message, Offer, Priority, Skill, Strategy, Tier,
    Type, Unknown, UsedSkill, choose, did_you_mean, invisible, request, why,
};
use prowess_runtime::Authorizer;

use super::{SkillOptions, SkillState};
use crate::{
    event::{EventKind, SkillScore},
    middleware::request::{SkillInHistory, Turn},
};

/// The skills chosen for a history.
#[derive(Default)]
pub(super) struct HistoryMatches {
    query: Option<String>,
    scores: Vec<SkillScore>,
    unknown: Vec<Unknown>,
    /// The disclosed skills, each with the cause.
    pub(super) offers: Vec<(Offer, &'static str)>,
    pub(super) invoked: Option<(String, String)>,
    pub(super) stood: Vec<Arc<EarlierSkill>>,
    /// The skills whose instructions are in the conversation, as the library names them.
    active: Vec<String>,
    /// The skills that could not be read.
    failed: Vec<String>,
    /// The skills requested by name that need an approval first.
    held_back: Vec<String>,
    /// The number of activated skills that are no longer disclosed.
    passed_over: usize,
    /// The number of invisible characters in each skill.
    invisible: Vec<(String, usize)>,
}

/// A skill whose instructions were in the result of a call.
#[derive(Debug)]
pub(super) struct EarlierSkill {
    /// The content of its file.
    source: String,
    /// The text of the result.
    result: String,
    told: SkillInHistory,
}

/// The maximum number of activated skills lost from the history that are disclosed again: the last
/// ones.
const MAX_AGAIN: usize = 10;

/// Chooses skills for a history. An activated skill whose instructions are still there is not
/// disclosed again; one whose instructions are gone is, unless it was too long ago.
pub(super) fn choose_skills(
    library: &Library,
    history: &[Message],
    how: &SkillOptions,
    authorizer: Option<&Authorizer>,
    taken: &[(String, String)],
    before: &[Arc<EarlierSkill>],
) -> HistoryMatches {
    let matching = match how.matched {
        true => how.matching.clone(),
        false => Matching { strategy: Strategy::Explicit, rule: None, ..how.matching.clone() },
    };
    let mut choice = choose(library, history, &matching, how.thresholds);
    let mut looked = HistoryMatches::default();
    let mut again: Vec<&Path> = Vec::new();
    let lost = taken.iter().filter(|it| is_lost(history, &it.0)).count();
    looked.passed_over = lost.saturating_sub(MAX_AGAIN);
    let mut passed_over = looked.passed_over;
    for (call, name) in taken {
        if passed_over > 0 && is_lost(history, call) {
            passed_over -= 1;
            continue;
        }
        let Some(skill) = library.get(name).filter(|it| it.manifest.is_active()) else { continue };
        let Ok(source) = skill.instructions() else { continue };
        let known = before.iter().find(|it| it.is_unchanged(history, call, &source)).cloned();
        let Some(stood) =
            known.map(Some).or_else(|| EarlierSkill::find(skill, history, call, source))
        else {
            continue;
        };
        let is_it = |it: &ChosenSkill<'_>| it.skill.is_at(&skill.origin.path);
        if let Some(stood) = stood {
            looked.active.push(name.to_owned());
            // With other arguments the instructions differ.
            choice.skills.retain(|it| !is_it(it) || it.arguments.is_some());
            looked.stood.push(stood);
            continue;
        }
        again.push(&skill.origin.path);
        match choice.skills.iter_mut().find(|it| is_it(it)) {
            Some(known) => known.level = Level::Full,
            None => choice.skills.push(in_full(skill)),
        }
    }
    choice.skills.sort_by_key(|it| it.priority);
    looked.take(library, history, choice, authorizer, &again, how);
    looked
}

impl EarlierSkill {
    /// Returns an activated skill; `Some(None)` if its current instructions are not in the result
    /// of the call, `None` if it can no longer be activated.
    fn find(
        skill: &Skill,
        history: &[Message],
        call: &str,
        source: String,
    ) -> Option<Option<Arc<Self>>> {
        let skill = &skill.with_instructions(&source);
        let Ok(UsedSkill::Found { instructions, .. }) = UsedSkill::of(skill) else { return None };
        let Some(result) =
            results(history, call).find(|it: &&str| it.contains(instructions.trim_end()))
        else {
            return Some(None);
        };
        let offer = Arc::new(Offer::new(&in_full(skill)).ok()?);
        let told = SkillInHistory { call_id: call.to_owned(), offer };
        Some(Some(Arc::new(Self { source, result: result.to_owned(), told })))
    }

    /// Whether it is the skill of a call, and nothing has changed since.
    fn is_unchanged(&self, history: &[Message], call: &str, source: &str) -> bool {
        let is_it = self.told.call_id == call && self.source == source;
        is_it && results(history, call).any(|it| it == self.result)
    }
}

/// Whether the result of a call is no longer in a history.
fn is_lost(history: &[Message], call: &str) -> bool {
    results(history, call).next().is_none()
}

fn results<'h>(history: &'h [Message], call: &'h str) -> impl Iterator<Item = &'h str> {
    let results = history.iter().filter(move |it| it.call_id.as_deref() == Some(call));
    results.map(|it| it.content.as_str())
}

/// Adds how to run an executable skill with its arguments.
fn instruct_to_run(offer: &mut Offer, skill: &Skill) {
    if skill.manifest.kind == Type::Instruction {
        return;
    }
    if let Some((Level::Full, text)) = offer.contents.first_mut() {
        let name = &skill.manifest.name;
        let text_end = format!(
            "\n\nThe user asks to run this skill: call `run_skill` with the name `{name}`, and pass \
             what follows the name in the request as its parameters.\n"
        );
        text.truncate(text.trim_end().len());
        text.push_str(&text_end);
    }
}

fn in_full(skill: &Skill) -> ChosenSkill<'_> {
    ChosenSkill { skill, priority: Priority::Active, level: Level::Full, arguments: None }
}

impl HistoryMatches {
    /// Reads the chosen skills, with the evidence for them.
    fn take(
        &mut self,
        library: &Library,
        history: &[Message],
        mut choice: Choice<'_>,
        authorizer: Option<&Authorizer>,
        again: &[&Path],
        how: &SkillOptions,
    ) {
        let query = request(history).map(|it| it.content.clone());
        for chosen in &mut choice.skills {
            let (skill, path) = (chosen.skill, &*chosen.skill.origin.path);
            let found = choice.considered.iter().find(|it| it.skill.is_at(path));
            let by = match found {
                _ if again.contains(&path) => "again",
                Some(found) if found.tier == Tier::Mentioned => "mentioned",
                _ => "matched",
            };
            let offer = match authorizer {
                Some(authorizer) => authorizer.offer(chosen),
                None => Offer::new(chosen).map(|it| (it, false)),
            };
            match offer {
                Ok((mut offer, asks)) => {
                    if how.run_skill && chosen.arguments.is_some() {
                        instruct_to_run(&mut offer, skill);
                    }
                    if asks {
                        chosen.level = Level::Metadata;
                    }
                    if asks && by == "mentioned" {
                        let name = &skill.manifest.name;
                        self.held_back.push(format!(
                            "skill `{name}` needs approval before it is shown; `use_skill` asks for it"
                        ));
                    }
                    if chosen.level == Level::Full {
                        self.active.push(library.address(skill));
                    }
                    if let (Some(_), Some((_, text))) = (&chosen.arguments, offer.contents.first())
                    {
                        self.invoked = Some((offer.name.clone(), text.clone()));
                    }
                    if chosen.level >= Level::Brief {
                        let characters = skill.instructions().map_or(0, |it| invisible(&it));
                        self.invisible.push((offer.name.clone(), characters));
                    }
                    self.offers.push((offer, by));
                }
                Err(error) => {
                    let name = &skill.manifest.name;
                    self.failed.push(format!("skill `{name}` is left out: {error}"));
                }
            }
        }
        self.scores = choice
            .considered
            .iter()
            .map(|it| {
                let chosen =
                    choice.skills.iter().find(|its| its.skill.is_at(&it.skill.origin.path));
                let level = chosen.map(|it| it.level.as_str().to_owned());
                // Giving the evidence requires reading the skill, which only pays off for disclosed
                // ones.
                let reasons = level.as_ref().zip(query.as_deref());
                let reasons =
                    reasons.map(|(_, query)| why(library, query, it.skill)).unwrap_or_default();
                let words = reasons.into_iter().map(|it| it.word);
                let by_name = match it.tier {
                    Tier::Mentioned if chosen.is_some_and(|it| it.arguments.is_some()) => {
                        Some("it is invoked".to_owned())
                    }
                    Tier::Mentioned => Some("it is mentioned".to_owned()),
                    _ => None,
                };
                let is_sure = it.tier == Tier::Mentioned || it.confidence >= how.matching.threshold;
                SkillScore {
                    name: it.skill.manifest.name.to_string(),
                    confidence: it.confidence,
                    carried: level.is_some() && !is_sure,
                    level,
                    why: by_name.into_iter().chain(words).collect(),
                }
            })
            .collect();
        (self.query, self.unknown) = (query, choice.unknown);
    }

    /// Reports the chosen skills, and activates them.
    pub(super) fn report(
        &self,
        turn: &Turn,
        library: &Arc<Library>,
        kept: &SkillState,
        how: &SkillOptions,
    ) {
        if let Some(query) = &self.query {
            let strategy = match (&how.matching.rule, how.matched) {
                (Some(_), true) => "rule",
                (None, true) => how.matching.strategy.as_str(),
                (_, false) => Strategy::Explicit.as_str(),
            };
            turn.note(EventKind::Matched {
                query: query.clone(),
                strategy: strategy.to_owned(),
                scores: self.scores.clone(),
                unknown: self.unknown.iter().map(|it| it.name.clone()).collect(),
            });
        }
        for unknown in &self.unknown {
            let near = unknown.nearest.as_ref().map(|it| format!("; {}", did_you_mean(it)));
            let message =
                format!("there is no skill `{}`{}", unknown.name, near.unwrap_or_default());
            turn.note(EventKind::Warned { message });
        }
        for message in self.failed.iter().chain(&self.held_back) {
            turn.note(EventKind::Warned { message: message.clone() });
        }
        if self.passed_over > 0 && !std::mem::replace(&mut kept.lock().has_passed_over, true) {
            let message =
                format!("only the last {MAX_AGAIN} active skills are still in the prompt");
            turn.note(EventKind::Warned { message });
        }
        for (skill, characters) in &self.invisible {
            kept.report_invisible(turn, skill, *characters);
        }
        for (offer, by) in &self.offers {
            let (level, text) = match offer.contents.first() {
                Some((level, text)) => (*level, text.as_str()),
                None => (Level::Metadata, ""),
            };
            kept.disclose(turn, &offer.name, level, by, text);
        }
        self.stood.iter().for_each(|it| turn.record_skill(it.told.clone()));
        turn.look_up_skills_in(library.clone());
        self.active.iter().for_each(|it| turn.activate(it));
    }
}
