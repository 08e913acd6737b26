//! Skills: discloses those that a request needs, and lets the model activate others.

mod look;
mod activate;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, Weak},
};

use prowess::{
    ActivatedSkills, Call, Catalog, Cataloging, Level, Library, Marker, Matching, Offer,
    Thresholds, Tokenizer, catalog, lock,
};
use prowess_runtime::{
    Authorizer, SkillProvider, Tool,
    outcome::ToolOutput,
    skill::{ActiveSkills, PermittedSkills},
    tools::{FindSkills, UseSkill},
};

use self::{
    activate::activate,
    look::{EarlierSkill, HistoryMatches, choose_skills},
};
use crate::{
    event::EventKind,
    middleware::request::{Request, Turn},
    middleware::{CallFuture, Middleware, Next, NextCall, ResponseFuture},
};

/// Discloses to the model the skills that a request needs, and lets it activate others.
///
/// Skills that a user mentions (`@name`, or `/name` with arguments) or that match the request are
/// in the system prompt. A skill that the model activates is disclosed as the result of its call,
/// once: again only if the result is gone, or the skill was changed. A skill whose instructions are
/// in the conversation is [active](prowess_runtime::skill::ActiveSkills); one that is only listed
/// or shown in brief is not. An agent has one such middleware.
#[derive(Debug)]
pub struct Skills {
    provider: Option<Arc<dyn SkillProvider>>,
    how: SkillOptions,
    /// Decides how much of a skill may be disclosed.
    authorizer: Option<Arc<Authorizer>>,
    /// `use_skill`, and `find_skills` for skills that do not fit into the catalog.
    tools: Vec<Arc<dyn Tool>>,
    /// The catalog of the last library.
    listed: Mutex<Option<LibraryCatalog>>,
}

/// Options of [`Skills`]. They can be combined freely.
#[derive(Debug, Clone)]
pub struct SkillOptions {
    /// The strategy by which skills are chosen for a request.
    pub matching: Matching,
    /// The confidence required for each disclosure level.
    pub thresholds: Thresholds,
    /// Whether skills that match the request are in the system prompt; if not, only mentioned ones
    /// are.
    pub matched: bool,
    /// The format of the catalog in the system prompt; `None` for no catalog.
    pub catalog: Option<Cataloging<'static>>,
    /// Whether the model is told to run an invoked skill that can be executed, by calling
    /// `run_skill`.
    pub run_skill: bool,
    /// Whether the model can activate skills with `use_skill`, and search with `find_skills` for
    /// those that do not fit into the catalog.
    pub use_skill: bool,
}

impl Default for SkillOptions {
    /// All options, with a catalog of at most 12,800 tokens.
    fn default() -> Self {
        Self {
            matching: Matching::default(),
            thresholds: Thresholds::default(),
            matched: true,
            catalog: Some(Cataloging { budget: Some(12_800), ..Cataloging::default() }),
            run_skill: false,
            use_skill: true,
        }
    }
}

impl Skills {
    /// Uses the skills of a provider. Without one there are no skills, which is a warning once per
    /// session.
    pub fn new(provider: Option<Arc<dyn SkillProvider>>, how: SkillOptions) -> Self {
        Self {
            tools: tools(provider.as_ref(), how.thresholds),
            provider,
            how,
            authorizer: None,
            listed: Mutex::default(),
        }
    }

    /// Discloses no skill that this authorizer conceals, and only name and description of a skill
    /// that it would ask about.
    #[must_use]
    pub fn with_gate(self, authorizer: Arc<Authorizer>) -> Self {
        let provider = self.provider.map(|it| -> Arc<dyn SkillProvider> {
            Arc::new(PermittedSkills::new(it, authorizer.clone()))
        });
        Self {
            tools: tools(provider.as_ref(), self.how.thresholds),
            provider,
            authorizer: Some(authorizer),
            ..self
        }
    }
}

/// Returns the tools with which a model finds and activates skills.
fn tools(provider: Option<&Arc<dyn SkillProvider>>, thresholds: Thresholds) -> Vec<Arc<dyn Tool>> {
    let tools = provider.into_iter().flat_map(|it| -> [Arc<dyn Tool>; 2] {
        let active = Arc::new(ActiveSkills::new(it.clone()));
        let find = FindSkills { provider: it.clone(), thresholds };
        [Arc::new(UseSkill { active }), Arc::new(find)]
    });
    tools.collect()
}

impl Middleware for Skills {
    fn name(&self) -> &str {
        "skills"
    }

    fn model<'a>(&'a self, mut request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(async move {
            self.show(&mut request).await;
            next.reply(request).await
        })
    }

    fn tool<'a>(&'a self, turn: &'a Turn, call: Call, next: NextCall<'a>) -> CallFuture<'a> {
        let kept = turn.session.keep(SkillState::default);
        let Some(shown) = kept.lock().of(turn) else { return next.call(call) };
        Box::pin(async move {
            let outcome = next.call(call.clone()).await;
            match outcome.typed.as_deref() {
                Some(ToolOutput::UsedSkill(used)) => {
                    activate(turn, &kept, &shown, &call, used, &outcome).await
                }
                Some(ToolOutput::ActiveResource { skill, resource, text }) => {
                    turn.note(disclosure(skill, resource, "read_file", text));
                    outcome
                }
                _ => outcome,
            }
        })
    }
}

/// The state of a session.
#[derive(Default)]
struct SkillState(Mutex<State>);

#[derive(Default)]
struct State {
    has_warned: bool,
    /// Whether there was a warning that some skills are no longer disclosed.
    has_passed_over: bool,
    /// The last library.
    library: Option<Arc<Library>>,
    /// The level at which each skill was disclosed to the model.
    levels: BTreeMap<String, Level>,
    /// The skills of the current turn.
    shown: Option<(Weak<Turn>, Arc<TurnSkills>)>,
    /// The skills with invisible characters, which were reported.
    cleaned: BTreeSet<String>,
    /// The number of requests to the model so far, and the skills activated since the last one.
    taken: (usize, ActivatedSkills),
}

/// The skills of a turn; they stay the same from its first step to its last.
#[derive(Debug)]
struct TurnSkills {
    library: Arc<Library>,
    catalog: Arc<Catalog>,
    offers: Vec<Offer>,
    /// The skill that was invoked with arguments, and its instructions with the arguments filled
    /// in.
    invoked: Option<(String, String)>,
    /// The skills whose instructions are in the history.
    stood: Vec<Arc<EarlierSkill>>,
    /// The number of tools that are offered.
    tools: usize,
}

/// The catalog of a library, which does not change.
#[derive(Debug, Clone)]
struct LibraryCatalog {
    library: Arc<Library>,
    catalog: Arc<Catalog>,
    /// The number of tools it needs.
    tools: usize,
}

impl Skills {
    /// Adds the skills of the turn to a request.
    async fn show(&self, request: &mut Request) {
        let turn = request.turn.clone();
        let kept = turn.session.keep(SkillState::default);
        let Some(provider) = &self.provider else {
            if !std::mem::replace(&mut kept.lock().has_warned, true) {
                let message = "there is no library, so there are no skills".to_owned();
                turn.note(EventKind::Warned { message });
            }
            return;
        };
        let known = kept.lock().of(&turn);
        let shown = match known {
            Some(shown) => shown,
            None => {
                let shown = self.choose(provider, request, &kept).await;
                kept.lock().shown = Some((Arc::downgrade(&turn), shown.clone()));
                shown
            }
        };
        if !shown.catalog.text.is_empty() {
            request.prompt.catalog.push_str(&shown.catalog.fenced(&turn.session.marker()));
        }
        request.prompt.skills.extend(shown.offers.iter().cloned());
        request.skills_in_history = turn.skills_in_history();
        for tool in self.tools.iter().take(shown.tools) {
            request.offer(tool.clone());
        }
    }

    /// Chooses the skills of a turn, and reports them.
    async fn choose(
        &self,
        provider: &Arc<dyn SkillProvider>,
        request: &Request,
        kept: &SkillState,
    ) -> Arc<TurnSkills> {
        let turn = &request.turn;
        let library = provider.library();
        note_library(turn, &library, kept);
        let (how, said) = (self.how.clone(), request.prompt.history.clone());
        let known = lock(&self.listed).clone().filter(|it| Arc::ptr_eq(&it.library, &library));
        let (own, taken, authorizer) =
            (library.clone(), turn.session.activated_skills(), self.authorizer.clone());
        let before = kept.lock().earlier_skills(&library);
        // Matching reads every skill the first time, and the disclosed ones every time.
        let found = tokio::task::spawn_blocking(move || {
            let listed =
                known.unwrap_or_else(|| LibraryCatalog::new(own.clone(), how.catalog.as_ref()));
            (listed, choose_skills(&own, &said, &how, authorizer.as_deref(), &taken, &before))
        });
        let (listed, looked) = match found.await {
            Ok(found) => found,
            Err(error) => {
                turn.note(EventKind::Warned { message: format!("no skill is shown: {error}") });
                let catalog = Arc::default();
                (
                    LibraryCatalog { library: library.clone(), catalog, tools: 0 },
                    HistoryMatches::default(),
                )
            }
        };
        *lock(&self.listed) = Some(listed.clone());
        looked.report(turn, &library, kept, &self.how);
        Arc::new(TurnSkills {
            tools: if self.how.use_skill { listed.tools } else { 0 },
            catalog: listed.catalog,
            invoked: looked.invoked,
            stood: looked.stood,
            offers: looked.offers.into_iter().map(|it| it.0).collect(),
            library,
        })
    }
}

impl LibraryCatalog {
    fn new(library: Arc<Library>, how: Option<&Cataloging<'_>>) -> Self {
        let drawn = how.map(|it| {
            let budget = it.budget.map(|it| it.saturating_sub(Marker::TOKENS));
            catalog(&library, &Cataloging { budget, ..it.clone() })
        });
        let drawn = drawn.unwrap_or_default();
        let tools = match library.skills().any(|it| it.manifest.is_for_models()) {
            // A skill without a description cannot be chosen either.
            true if drawn.dropped > 0 || drawn.shortened * 2 > drawn.shown => 2,
            has_any => usize::from(has_any),
        };
        Self { library, catalog: Arc::new(drawn), tools }
    }
}

impl SkillState {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Reports once that invisible characters are removed from a skill.
    fn report_invisible(&self, turn: &Turn, skill: &str, characters: usize) {
        if characters > 0 && self.lock().cleaned.insert(skill.to_owned()) {
            let plural = if characters == 1 { " was" } else { "s were" };
            let message = format!(
                "{characters} invisible character{plural} left out of the skill `{skill}`; see \
                 `prowess check`"
            );
            turn.note(EventKind::Warned { message });
        }
    }

    /// Reports that a skill is disclosed to the model, if at a higher level than before.
    fn disclose(&self, turn: &Turn, skill: &str, level: Level, by: &str, text: &str) {
        let is_more = {
            let levels = &mut self.lock().levels;
            let before = levels.get(skill).copied();
            levels.insert(skill.to_owned(), before.map_or(level, |it| it.max(level)));
            before.is_none_or(|it| it < level)
        };
        if is_more || by == "again" {
            turn.note(disclosure(skill, level.as_str(), by, text));
        }
    }
}

impl State {
    /// Returns the skills of a turn, once chosen.
    fn of(&self, turn: &Turn) -> Option<Arc<TurnSkills>> {
        let own = self.shown.as_ref().filter(|it| std::ptr::eq(it.0.as_ptr(), turn));
        own.map(|it| it.1.clone())
    }

    /// Returns the skills that were in the history in the last turn, if that had the same library.
    fn earlier_skills(&self, library: &Arc<Library>) -> Vec<Arc<EarlierSkill>> {
        let last = self.shown.as_ref().filter(|it| Arc::ptr_eq(&it.1.library, library));
        last.map(|it| it.1.stood.clone()).unwrap_or_default()
    }
}

fn note_library(turn: &Turn, library: &Arc<Library>, kept: &SkillState) {
    let before = kept.lock().library.replace(library.clone());
    if before.is_none_or(|it| !Arc::ptr_eq(&it, library)) {
        let findings = library.findings().iter();
        let findings = findings.map(|it| format!("{}: {}", it.path.display(), it.message));
        turn.note(EventKind::Discovered {
            skills: library.skills().count(),
            findings: findings.take(MAX_FINDINGS).collect(),
        });
    }
}

/// The maximum number of findings of a library that are reported.
const MAX_FINDINGS: usize = 100;

fn disclosure(skill: &str, level: &str, by: &str, text: &str) -> EventKind {
    EventKind::Disclosed {
        skill: skill.to_owned(),
        level: level.to_owned(),
        by: by.to_owned(),
        tokens: Tokenizer::Estimate.count(text),
    }
}
