//! Skills: the model is shown those that a request needs, and can take up others.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use prowess::{
    Call, Cataloging, Choice, Chosen, Level, Library, Matching, Message, Offer, Priority, Role,
    Strategy, Taken, Thresholds, Tier, UseSkill as Input, UsedSkill, Vocabulary, catalog, choose,
    request, use_skill, why,
};
use prowess_runtime::{Active, Outcome, Provider, Tool, UseSkill};
use serde_json::{Value as Json, json};

use crate::{
    event::{Score, What},
    layer::{Called, Layer, Next, NextCall, Replied},
    request::{Request, Told, Turn},
};

/// Shows the model the skills that a request needs, and lets it take up others.
///
/// What a person mentions (`@name`, or `/name` with arguments) or the request matches stands in the
/// system prompt. What the model takes up is told as the result of its call, once: again only when
/// it is no longer there, or was changed. A skill that stands in full before the model is active
/// for the tools and the gate.
#[derive(Debug)]
pub struct Skills {
    provider: Option<Arc<dyn Provider>>,
    how: Showing,
    tool: Option<Arc<dyn Tool>>,
    /// The list of the last library.
    listed: Mutex<Option<Listed>>,
}

/// How skills are shown. The ways can be combined as one likes.
#[derive(Debug, Clone)]
pub struct Showing {
    /// How skills are chosen for a request.
    pub matching: Matching,
    /// How much is shown of what was chosen.
    pub thresholds: Thresholds,
    /// Whether what matches the request stands in the system prompt; if not, only what a person
    /// mentions does.
    pub matched: bool,
    /// How the list of all skills is written that stands in the system prompt, if one does.
    pub catalog: Option<Cataloging<'static>>,
    /// Whether the model can take up skills by calling `use_skill`.
    pub use_skill: bool,
}

impl Default for Showing {
    /// All ways at once, with a list of 12,800 tokens at the most.
    fn default() -> Self {
        let search = "a request that needs one shows it";
        Self {
            matching: Matching::default(),
            thresholds: Thresholds::default(),
            matched: true,
            catalog: Some(Cataloging { budget: Some(12_800), search, ..Cataloging::default() }),
            use_skill: true,
        }
    }
}

impl Skills {
    /// Takes the skills of a provider. Without one there are none, which is said once a session.
    pub fn new(provider: Option<Arc<dyn Provider>>, how: Showing) -> Self {
        let tool = provider.clone().map(|it| -> Arc<dyn Tool> {
            Arc::new(UseSkill { active: Arc::new(Active::new(it)) })
        });
        Self { provider, how, tool, listed: Mutex::default() }
    }
}

impl Layer for Skills {
    fn name(&self) -> &str {
        "skills"
    }

    fn model<'a>(&'a self, mut request: Request, next: Next<'a>) -> Replied<'a> {
        Box::pin(async move {
            self.show(&mut request).await;
            next.reply(request).await
        })
    }

    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> Called<'a> {
        let kept = turn.session.keep(Kept::default);
        let Some(shown) = kept.lock().of(turn) else { return next.call(call) };
        Box::pin(async move {
            let outcome = shown.active.clone().within(next.call(call.clone())).await;
            match call.name.as_str() {
                "use_skill" => take_up(turn, &kept, &shown, &call, outcome).await,
                "read_file" => {
                    note_resource(turn, &outcome);
                    outcome
                }
                _ => outcome,
            }
        })
    }
}

/// What is kept for a session.
#[derive(Default)]
struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    has_warned: bool,
    /// The library that was last looked at.
    library: Option<Arc<Library>>,
    /// How much of each skill the model was shown.
    levels: BTreeMap<String, Level>,
    /// What is shown in the turn that is being taken.
    shown: Option<(Weak<Turn>, Arc<Shown>)>,
    /// What was taken up since the model was last asked, and how often it had been by then.
    taken: (usize, Taken),
}

/// The skills of a turn; they stay the same from its first step to its last.
#[derive(Debug)]
struct Shown {
    library: Arc<Library>,
    active: Arc<Active>,
    catalog: Arc<str>,
    offers: Vec<Offer>,
    /// The skill that was invoked with arguments, and what it says with them.
    invoked: Option<(String, String)>,
    has_tool: bool,
}

/// The list of a library, which does not change.
#[derive(Debug, Clone)]
struct Listed {
    library: Arc<Library>,
    text: Arc<str>,
    /// Whether there is a skill that a model may take up.
    has_any: bool,
}

impl Skills {
    /// Adds what there is to show to a request.
    async fn show(&self, request: &mut Request) {
        let turn = request.turn.clone();
        let kept = turn.session.keep(Kept::default);
        let Some(provider) = &self.provider else {
            if !std::mem::replace(&mut kept.lock().has_warned, true) {
                let message = "there is no library, so there are no skills".to_owned();
                turn.note(What::Warned { message });
            }
            return;
        };
        let known = kept.lock().of(&turn);
        let shown = match known {
            Some(shown) => shown,
            None => {
                let shown = self.look(provider, request, &kept).await;
                kept.lock().shown = Some((Arc::downgrade(&turn), shown.clone()));
                shown
            }
        };
        request.prompt.catalog.push_str(&shown.catalog);
        request.prompt.skills.extend(shown.offers.iter().cloned());
        request.told = turn.told();
        if let Some(tool) = self.tool.as_ref().filter(|_| shown.has_tool) {
            request.offer(tool.clone());
        }
    }

    /// Chooses what is shown in a turn, and says so.
    async fn look(
        &self,
        provider: &Arc<dyn Provider>,
        request: &Request,
        kept: &Kept,
    ) -> Arc<Shown> {
        let turn = &request.turn;
        let library = provider.library();
        note_library(turn, &library, kept);
        let (how, history) = (self.how.clone(), request.prompt.history.clone());
        let known = lock(&self.listed).clone().filter(|it| Arc::ptr_eq(&it.library, &library));
        let (own, taken) = (library.clone(), turn.session.taken());
        // Matching reads every skill the first time, and those that it shows each time.
        let work = move || {
            let listed = known.unwrap_or_else(|| Listed::new(own.clone(), how.catalog.as_ref()));
            (listed, looked_up(&own, &history, &how, &taken))
        };
        let (listed, looked) = match tokio::task::spawn_blocking(work).await {
            Ok(found) => found,
            Err(error) => {
                turn.note(What::Warned { message: format!("no skill is shown: {error}") });
                (
                    Listed { library: library.clone(), text: "".into(), has_any: false },
                    Looked::default(),
                )
            }
        };
        *lock(&self.listed) = Some(listed.clone());
        let active = Arc::new(Active::new(Arc::new(library.clone())));
        looked.tell(turn, &active, kept, &self.how);
        Arc::new(Shown {
            has_tool: self.how.use_skill && listed.has_any,
            catalog: listed.text,
            invoked: looked.invoked,
            offers: looked.offers.into_iter().map(|it| it.0).collect(),
            library,
            active,
        })
    }
}

impl Listed {
    fn new(library: Arc<Library>, how: Option<&Cataloging<'_>>) -> Self {
        let text = how.map(|it| catalog(&library, it).text).unwrap_or_default();
        let may = |it: &prowess::Skill| it.manifest.is_active() && !it.manifest.hides_from_model();
        let has_any = library.skills().any(may);
        Self { library, text: text.into(), has_any }
    }
}

/// What was found for a history.
#[derive(Default)]
struct Looked {
    query: Option<String>,
    scores: Vec<Score>,
    unknown: Vec<prowess::Unknown>,
    /// Each with by what it came to be shown.
    offers: Vec<(Offer, &'static str)>,
    invoked: Option<(String, String)>,
    told: Vec<Told>,
    /// The skills that stand in full before the model, as the library knows them.
    active: Vec<String>,
    /// What could not be read.
    failed: Vec<String>,
}

/// Chooses skills for a history. What was taken up and still stands there is not shown again; what
/// no longer does, is.
fn looked_up(
    library: &Library,
    history: &[Message],
    how: &Showing,
    taken: &[(String, String)],
) -> Looked {
    let explicit = || Matching { strategy: Strategy::Explicit, rule: None, ..how.matching.clone() };
    let matching = if how.matched { how.matching.clone() } else { explicit() };
    let mut choice = choose(library, history, &matching, how.thresholds);
    let mut looked = Looked::default();
    let mut again: Vec<&Path> = Vec::new();
    for (name, calls) in by_skill(taken) {
        let Some(skill) = library.get(name).filter(|it| it.manifest.is_active()) else { continue };
        let Ok(UsedSkill::Found { instructions, .. }) =
            use_skill(library, &Input { name: name.to_owned() })
        else {
            continue;
        };
        let stands = |call: &&&str| {
            let is_it = |it: &&Message| it.call_id.as_deref() == Some(**call);
            history
                .iter()
                .find(is_it)
                .is_some_and(|it| it.content.contains(instructions.trim_end()))
        };
        let chosen =
            Chosen { skill, priority: Priority::Active, level: Level::Full, arguments: None };
        let is_it = |it: &Chosen<'_>| it.skill.origin.path == skill.origin.path;
        looked.active.push(name.to_owned());
        match calls.iter().find(stands) {
            Some(call) => {
                // With other arguments it says something else.
                choice.skills.retain(|it| !is_it(it) || it.arguments.is_some());
                let call_id = (*call).to_owned();
                looked.told.extend(Offer::new(&chosen).map(|offer| Told { call_id, offer }));
            }
            None => {
                again.push(&skill.origin.path);
                match choice.skills.iter_mut().find(|it| is_it(it)) {
                    Some(known) => known.level = Level::Full,
                    None => choice.skills.push(chosen),
                }
            }
        }
    }
    choice.skills.sort_by_key(|it| it.priority);
    looked.take(library, history, choice, &again);
    looked
}

/// The calls that told each skill, those of the last one first.
fn by_skill(taken: &[(String, String)]) -> BTreeMap<&str, Vec<&str>> {
    let mut skills: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (call, skill) in taken.iter().rev() {
        skills.entry(skill).or_default().push(call);
    }
    skills
}

impl Looked {
    /// Reads what was chosen, with what speaks for it.
    fn take(
        &mut self,
        library: &Library,
        history: &[Message],
        choice: Choice<'_>,
        again: &[&Path],
    ) {
        let query = request(history).map(|it| it.content.clone());
        for chosen in &choice.skills {
            let (skill, path) = (chosen.skill, &*chosen.skill.origin.path);
            let found = choice.considered.iter().find(|it| *it.skill.origin.path == *path);
            let by = match found {
                _ if again.contains(&path) => "again",
                Some(found) if found.tier == Tier::Mentioned => "mentioned",
                _ => "matched",
            };
            match Offer::new(chosen) {
                Ok(offer) => {
                    if chosen.level == Level::Full {
                        self.active.push(library.address(skill));
                    }
                    if let (Some(_), Some((_, text))) = (&chosen.arguments, offer.contents.first())
                    {
                        self.invoked = Some((offer.name.clone(), text.clone()));
                    }
                    self.offers.push((offer, by));
                }
                Err(error) => {
                    let name = &skill.manifest.name;
                    self.failed.push(format!("skill `{name}` is left out: {error}"));
                }
            }
        }
        let level = |path: &Path| {
            let chosen = choice.skills.iter().find(|it| *it.skill.origin.path == *path);
            chosen.map(|it| it.level.as_str().to_owned())
        };
        self.scores = choice
            .considered
            .iter()
            .map(|it| {
                let level = level(&it.skill.origin.path);
                // To say why means to read the skill, which is worth it for those that are shown.
                let reasons = level.as_ref().zip(query.as_deref());
                let reasons =
                    reasons.map(|(_, query)| why(library, query, it.skill)).unwrap_or_default();
                Score {
                    name: it.skill.manifest.name.to_string(),
                    confidence: it.confidence,
                    level,
                    why: reasons.into_iter().map(|it| it.word).collect(),
                }
            })
            .collect();
        (self.query, self.unknown) = (query, choice.unknown);
    }

    /// Says what was found, and makes it active.
    fn tell(&self, turn: &Turn, active: &Active, kept: &Kept, how: &Showing) {
        if let Some(query) = &self.query {
            let strategy = match (&how.matching.rule, how.matched) {
                (Some(_), true) => "rule",
                (None, true) => how.matching.strategy.as_str(),
                (_, false) => Strategy::Explicit.as_str(),
            };
            turn.note(What::Matched {
                query: query.clone(),
                strategy: strategy.to_owned(),
                scores: self.scores.clone(),
                unknown: self.unknown.iter().map(|it| it.name.clone()).collect(),
            });
        }
        for unknown in &self.unknown {
            let near = unknown.nearest.as_ref().map(|it| format!("; did you mean `{it}`?"));
            let message =
                format!("there is no skill `{}`{}", unknown.name, near.unwrap_or_default());
            turn.note(What::Warned { message });
        }
        for message in &self.failed {
            turn.note(What::Warned { message: message.clone() });
        }
        for (offer, by) in &self.offers {
            let (level, text) = match offer.contents.first() {
                Some((level, text)) => (*level, text.as_str()),
                None => (Level::Metadata, ""),
            };
            kept.disclose(turn, &offer.name, level, by, text);
            if offer.priority != Priority::Inactive {
                turn.activate(&offer.name);
            }
        }
        for told in &self.told {
            turn.activate(&told.offer.name);
            turn.tell(told.clone());
        }
        for address in &self.active {
            active.activate(address);
        }
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Notes that the model is shown a skill, if it is more than before.
    fn disclose(&self, turn: &Turn, skill: &str, level: Level, by: &str, text: &str) {
        let is_more = {
            let levels = &mut self.lock().levels;
            let before = levels.get(skill).copied();
            levels.insert(skill.to_owned(), before.map_or(level, |it| it.max(level)));
            before.is_none_or(|it| it < level)
        };
        if is_more || by == "again" {
            turn.note(disclosed(skill, level.as_str(), by, text));
        }
    }
}

impl State {
    /// What is shown in a turn, once that is known.
    fn of(&self, turn: &Turn) -> Option<Arc<Shown>> {
        let own = self.shown.as_ref().filter(|it| std::ptr::eq(it.0.as_ptr(), turn));
        own.map(|it| it.1.clone())
    }
}

/// Tells the instructions of a skill that the model takes up, unless they stand before it.
async fn take_up(
    turn: &Turn,
    kept: &Kept,
    shown: &Arc<Shown>,
    call: &Call,
    outcome: Outcome,
) -> Outcome {
    let Some(used) = used(&outcome) else { return outcome };
    let UsedSkill::Found { name, instructions, .. } = &used else { return outcome };
    let input = serde_json::from_str::<Input>(&call.arguments).map(|it| it.name);
    let skill = shown.library.get(input.as_ref().unwrap_or(name));
    let address = skill.map_or_else(|| name.clone(), |it| shown.library.address(it));
    turn.activate(name);
    let is_new = {
        let mut state = kept.lock();
        if state.taken.0 != turn.steps() {
            state.taken = (turn.steps(), Taken::default());
        }
        state.taken.1.take(&address, instructions)
    };
    let said = |text: String| Outcome { output: Some(text.into()), ..outcome.clone() };
    if let Some(place) = place(turn, shown, name, instructions) {
        return said(format!("The skill `{name}` is taken up: its instructions stand {place}."));
    }
    if !is_new {
        return said(format!("The skill `{name}` is taken up with another call of this reply."));
    }
    if let Err(error) = turn.session.take_up(&call.id, &address) {
        turn.note(What::Warned { message: error.to_string() });
    }
    let library = shown.library.clone();
    let offer = tokio::task::spawn_blocking(move || {
        let skill = library.get(&address)?;
        let (priority, level) = (Priority::Active, Level::Full);
        Offer::new(&Chosen { skill, priority, level, arguments: None }).ok()
    });
    if let Ok(Some(offer)) = offer.await {
        turn.tell(Told { call_id: call.id.clone(), offer });
    }
    let text = used.to_string();
    kept.lock().levels.insert(name.clone(), Level::Full);
    turn.note(disclosed(name, Level::Full.as_str(), "use_skill", &text));
    said(text)
}

/// What `use_skill` gave, if it gave something.
fn used(outcome: &Outcome) -> Option<UsedSkill> {
    let mut output = outcome.output.clone().filter(|_| outcome.is_ok())?;
    output.as_object_mut()?.insert("status".to_owned(), json!("found"));
    serde_json::from_value(output).ok()
}

/// Where the instructions of a skill stand in what the model was last told, if they do.
fn place(turn: &Turn, shown: &Shown, name: &str, instructions: &str) -> Option<&'static str> {
    let instructions = instructions.trim_end();
    let invoked = shown.invoked.as_ref().filter(|it| it.0 == name);
    let is_there = |it: &Message| {
        let text = it.content.as_str();
        text.contains(instructions) || invoked.is_some_and(|it| text.contains(&*it.1))
    };
    let asked = turn.asked();
    let found = asked.messages.iter().find(|it| is_there(it)).filter(|_| !instructions.is_empty());
    found.map(|it| match it.role {
        Role::System => "in the system prompt",
        _ => "above",
    })
}

fn note_library(turn: &Turn, library: &Arc<Library>, kept: &Kept) {
    let before = kept.lock().library.replace(library.clone());
    if before.is_none_or(|it| !Arc::ptr_eq(&it, library)) {
        let findings = library.findings().iter();
        let findings = findings.map(|it| format!("{}: {}", it.path.display(), it.message));
        turn.note(What::Discovered {
            skills: library.skills().count(),
            findings: findings.take(MAX_FINDINGS).collect(),
        });
    }
}

/// How many findings of a library are told.
const MAX_FINDINGS: usize = 100;

/// Notes that a file of a skill was read.
fn note_resource(turn: &Turn, outcome: &Outcome) {
    let Some(output) = outcome.output.as_ref().filter(|_| outcome.is_ok()) else { return };
    if let (Some(skill), Some(resource)) = (output["skill"].as_str(), output["resource"].as_str()) {
        let text = output.get("content").and_then(Json::as_str).unwrap_or_default();
        turn.note(disclosed(skill, resource, "read_file", text));
    }
}

fn disclosed(skill: &str, level: &str, by: &str, text: &str) -> What {
    What::Disclosed {
        skill: skill.to_owned(),
        level: level.to_owned(),
        by: by.to_owned(),
        tokens: Vocabulary::Estimate.count(text),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
