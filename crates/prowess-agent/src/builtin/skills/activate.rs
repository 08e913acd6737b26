//! Activation by the model: skills, and their files.

use std::sync::Arc;

use prowess::{
    ActivatedSkills, Call, ChosenSkill, Level, Message, Offer, Priority, Role, UseSkillInput,
    UsedSkill, invisible,
};
use prowess_runtime::Outcome;

use super::{SkillState, TurnSkills, disclosure};
use crate::{
    event::EventKind,
    middleware::request::{SkillInHistory, Turn},
};

/// Discloses the instructions of a skill that the model activates, unless it has them already.
pub(super) async fn activate(
    turn: &Turn,
    kept: &SkillState,
    shown: &Arc<TurnSkills>,
    call: &Call,
    used: &UsedSkill,
    outcome: &Outcome,
) -> Outcome {
    let UsedSkill::Found { name, instructions, .. } = used else { return outcome.clone() };
    let input = serde_json::from_str::<UseSkillInput>(&call.arguments).map(|it| it.name);
    let skill = shown.library.get(input.as_ref().unwrap_or(name));
    let address = skill.map_or_else(|| name.clone(), |it| shown.library.address(it));
    turn.activate(&address);
    let is_new = {
        let mut state = kept.lock();
        if state.taken.0 != turn.steps() {
            state.taken = (turn.steps(), ActivatedSkills::default());
        }
        state.taken.1.take(&address, instructions)
    };
    if let Some(place) = place_in_prompt(turn, shown, name, instructions) {
        let text = format!("The skill `{name}` is already active: its instructions are {place}.");
        return with_text(outcome, text);
    }
    if !is_new {
        let text = format!("The skill `{name}` is loaded by another call of this reply.");
        return with_text(outcome, text);
    }
    if let Err(error) = turn.session.activate(&call.id, &address) {
        turn.note(EventKind::Warned { message: error.to_string() });
    }
    let (library, instructions) = (shown.library.clone(), instructions.clone());
    let offer = tokio::task::spawn_blocking(move || {
        let skill = library.get(&address)?;
        let characters = skill.instructions().map_or(0, |it| invisible(&it));
        let skill = &skill.with_instructions(&instructions);
        let (priority, level) = (Priority::Active, Level::Full);
        let offer = Offer::new(&ChosenSkill { skill, priority, level, arguments: None }).ok()?;
        Some((offer, characters))
    });
    if let Ok(Some((offer, characters))) = offer.await {
        kept.report_invisible(turn, &offer.name, characters);
        turn.record_skill(SkillInHistory { call_id: call.id.clone(), offer: Arc::new(offer) });
    }
    let text = turn.session.marker().fence(&used.to_string());
    kept.lock().levels.insert(name.clone(), Level::Full);
    turn.note(disclosure(name, Level::Full.as_str(), "use_skill", &text));
    with_text(outcome, text)
}

/// Returns the same outcome with another output.
fn with_text(outcome: &Outcome, text: String) -> Outcome {
    let mut outcome = outcome.clone();
    outcome.output = Some(text.into());
    outcome.typed = None;
    outcome
}

/// Returns the place of a skill's instructions in the last prompt, if they are there.
fn place_in_prompt(
    turn: &Turn,
    shown: &TurnSkills,
    name: &str,
    instructions: &str,
) -> Option<&'static str> {
    let invoked = shown.invoked.as_ref().filter(|it| it.0 == name);
    let opening = turn.session.marker().opening();
    let in_system = format!("{opening}\n## Skill: {name}\n");
    let in_result = format!("{opening}\n# Skill: {name}\n");
    let asked = turn.last_request();
    let found = asked.messages.iter().find(|it: &&Message| {
        let text = it.content.as_str();
        let has_heading = match it.role {
            Role::System => text.contains(&in_system),
            _ => text.starts_with(&in_result),
        };
        let has_all = |instructions: &str| text.contains(instructions.trim_end());
        has_heading && (has_all(instructions) || invoked.is_some_and(|it| has_all(&it.1)))
    });
    found.map(|it| match it.role {
        Role::System => "in the system prompt",
        _ => "above",
    })
}
