//! Fitting: what is told stays within the window, and the session stays small with it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use prowess::{
    ContextWindow, Counts, FitError, FittedPrompt, Message, Offer, Priority, Prompt, fit, fit_again,
};
use serde_json::{Value as Json, json};

use super::{
    last::Last,
    summary::{Summaries, Summariser, SummaryRequest, is_summary},
};
use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Request, SkillInHistory, Turn},
    middleware::{Middleware, Next, ResponseFuture},
    model::{ChatResponse, Model, ModelError},
};

/// Makes every request fit into a window, by [`prowess::fit`]: over 80 % of it old messages are
/// summarised, over 90 % inactive skills go, over 95 % only the last words and the best skill stay.
///
/// What was summarised is replaced in the session too, so that nothing is summarised twice. Skills
/// whose instructions went with it are told again in the system prompt. A model that says it was told
/// too much is told less, three times at the most.
///
/// Wherever it stands, it has the last word before the model: what other middleware adds, fits too.
///
/// ```
/// # use std::sync::Arc;
/// use prowess::ContextWindow;
/// use prowess_agent::{Agent, FitContext, ScriptedModel};
///
/// let window = ContextWindow { tokens: 32_000, ..ContextWindow::default() };
/// // The agent's own model summarises.
/// let fit = FitContext::new(window).with_summaries(None);
/// let agent = Agent::new(Arc::new(ScriptedModel::new())).with(fit);
/// ```
#[derive(Debug, Clone)]
pub struct FitContext {
    /// How much the model can be told.
    pub window: ContextWindow,
    /// How long a model may take for a summary; an extract takes its place then.
    pub patience: Duration,
    summariser: Summariser,
    /// What the model turned out to hold, where that is less than the window.
    learned: Arc<AtomicUsize>,
}

/// What the texts of a session count, kept from one request to the next.
#[derive(Default)]
struct TokenCounts(Mutex<Counts>);

/// How often less is told.
const RETRIES: usize = 3;
/// How often a model is asked for summaries that the last ones brought up.
const ROUNDS: usize = 3;
/// A model is asked when what is new is at least so much of the window; for less, an extract will do.
const WORTH: usize = 20;
/// The field by which a message of the session is known while it is made to fit.
const PLACE: &str = "prowess_place";

impl FitContext {
    /// Fits into a window, and summarises by extracts.
    pub fn new(window: ContextWindow) -> Self {
        Self {
            window,
            patience: Duration::from_secs(60),
            summariser: Summariser::Nobody,
            learned: Arc::new(AtomicUsize::new(usize::MAX)),
        }
    }

    /// Has a model summarise: this one, or the agent's own. What it takes is counted.
    #[must_use]
    pub fn with_summaries(self, model: Option<Arc<dyn Model>>) -> Self {
        Self { summariser: model.map_or(Summariser::Own, Summariser::Other), ..self }
    }
}

impl Middleware for FitContext {
    fn name(&self) -> &str {
        "fit"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        self.go_on(request, next)
    }
}

impl Last for FitContext {
    fn at_last<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(self.reply(request, next))
    }
}

impl FitContext {
    async fn reply(&self, mut request: Request, next: Next<'_>) -> Result<ChatResponse, TurnError> {
        let turn = request.turn.clone();
        let most = self.learned.load(Ordering::Relaxed).min(self.window.tokens);
        let mut window = ContextWindow { tokens: most, ..self.window };
        let mut is_said = false;
        let mut attempt = 1;
        loop {
            request = self.fitted(request, &window, next.model()).await?;
            let told = request.fitted.as_ref().map_or(0, |it| it.tokens.total());
            // What is told of it now tells nothing of the next attempt.
            let fitted = request.fitted.take();
            let error = match next.reply(Request { fitted, ..request.clone() }).await {
                Err(TurnError::Model(error)) if attempt <= RETRIES => error,
                reply => {
                    if is_said && reply.is_ok() {
                        self.learned.fetch_min(window.tokens, Ordering::Relaxed);
                    }
                    return reply;
                }
            };
            let ModelError::TooLong { window: said, told: counted, .. } = error else {
                return Err(error.into());
            };
            is_said = said.is_some();
            window.tokens = less(told, said, counted);
            attempt += 1;
            let fits = |window| fit(&window, request.filled(), &Summaries::default());
            if let Err(FitError { needed, .. }) = fits(window) {
                (window.tokens, is_said) = (needed.total(), false);
                // Where nothing can be left out, what the provider says is what there is to say.
                if window.tokens >= told || fits(window).is_err() {
                    return Err(error.into());
                }
            }
            let (message, wait) = (error.to_string(), Duration::ZERO);
            turn.note(EventKind::Retried { attempt, message, wait });
        }
    }

    /// A request with what is told of it; what was summarised is in the session from now on.
    async fn fitted(
        &self,
        mut request: Request,
        window: &ContextWindow,
        own: &dyn Model,
    ) -> Result<Request, TurnError> {
        let turn = request.turn.clone();
        let told = last(&request.told).map(|it| it.call_id.clone()).collect();
        let mut summaries = Summaries::new(window.vocabulary, told);
        let counted = turn.session.keep(TokenCounts::default);
        let (mut rounds, mut is_marked) = (0, false);
        let mut fitted = loop {
            summaries.begin();
            let fitted = {
                let mark = |place: usize, message: &mut Message| {
                    message.rest.insert(PLACE.to_owned(), json!(place));
                };
                let prompt = request.filled_by(is_marked.then_some(mark));
                let mut counts = counted.0.lock().unwrap_or_else(PoisonError::into_inner);
                fit_again(window, prompt, &summaries, &mut counts)?
            };
            // Which messages are left is only asked where something was done to them.
            if !is_marked && !fitted.steps.is_empty() {
                is_marked = true;
                continue;
            }
            if tell_again(&mut request, &fitted) {
                continue;
            }
            let Some(model) = self.summariser.model(own).filter(|_| rounds < ROUNDS) else {
                break fitted;
            };
            rounds += 1;
            let (patience, tokens) = (self.patience, window.tokens / 4 * 3);
            let how = SummaryRequest { turn: &turn, model, patience, tokens };
            let fresh = |messages: &[Message]| -> usize {
                messages.iter().filter(|it| !is_summary(it)).map(|it| window.count(it)).sum()
            };
            if !summaries.learn(how, |it| fresh(it) >= window.tokens / WORTH).await {
                break fitted;
            }
        };
        if is_marked {
            warn_of_cut(&turn, &request.prompt.history, &fitted);
        }
        if is_marked
            && let Some(messages) = compacted(&request.prompt.history, &fitted)
            && turn.session.history() == request.prompt.history
        {
            let (before, after) = (request.prompt.history.len(), messages.len());
            turn.session.compact(messages.clone())?;
            let by = if summaries.used() { "model" } else { "extract" }.to_owned();
            turn.note(EventKind::Compacted { before, after, by });
            request.prompt.history = messages.into();
        }
        for message in &mut fitted.messages {
            message.rest.shift_remove(PLACE);
        }
        turn.note(noted(window, &fitted));
        request.fitted = Some(fitted);
        Ok(request)
    }
}

/// Says once a turn how much of the person's own request is not told.
fn warn_of_cut(turn: &Turn, said: &[Message], fitted: &FittedPrompt) {
    let Some(request) = prowess::request(said) else { return };
    let place = said.iter().position(|it| std::ptr::eq(it, request));
    let told = fitted.messages.iter().find(|it| self::place(it) == place);
    let Some(told) = told.filter(|it| it.content != request.content) else { return };
    let warned = turn.session.keep(|| AtomicUsize::new(0));
    if warned.swap(turn.number, Ordering::Relaxed) != turn.number {
        let (all, left) = (request.content.len(), told.content.len());
        let message = format!(
            "the request is too long for the window: of {all} bytes {} are left out of its middle",
            all.saturating_sub(left)
        );
        turn.note(EventKind::Warned { message });
    }
}

/// Where a message stands in the session.
fn place(message: &Message) -> Option<usize> {
    message.rest.get(PLACE).and_then(Json::as_u64).map(|it| it as usize)
}

/// How much is told next, where so much was too much for a model that holds so many tokens, and counts
/// so many in what it was told.
fn less(told: usize, holds: Option<usize>, counted: Option<usize>) -> usize {
    let less = told / 4 * 3;
    match (holds, counted) {
        // It counts otherwise than we do, and a summary may be a little longer than it should.
        (Some(holds), Some(counted)) if counted > holds => {
            let fitting = holds as u128 * told as u128 / counted as u128 * 95 / 100;
            usize::try_from(fitting).unwrap_or(less)
        }
        (holds, _) => holds.unwrap_or(less).min(less),
    }
}

/// Offers the skills anew whose instructions no longer stand whole in what is told, and says whether
/// there were any.
fn tell_again(request: &mut Request, fitted: &FittedPrompt) -> bool {
    let mut any = false;
    let Prompt { skills: offers, history: said, .. } = &mut request.prompt;
    let told = &request.told;
    for SkillInHistory { call_id, offer } in last(told) {
        let is_result = |it: &&Message| it.call_id.as_ref() == Some(call_id);
        let stands = fitted.messages.iter().find(is_result).map(|it| &it.content);
        let is_whole =
            stands.is_some_and(|it| said.iter().any(|own| is_result(&own) && own.content == *it));
        if is_whole {
            continue;
        }
        let mut again = Offer { priority: Priority::Active, ..Offer::clone(offer) };
        // It may be shown for another reason, and as much of it.
        match offers.iter_mut().find(|it| it.name == offer.name) {
            Some(known) => {
                let level = |it: &Offer| it.contents.first().map(|it| it.0);
                if level(known) >= level(&again) {
                    again.contents.clone_from(&known.contents);
                }
                any |= *known != again;
                *known = again;
            }
            None => {
                any = true;
                offers.push(again);
            }
        }
    }
    any
}

/// What stands in the session in place of what was said, once something was summarised.
fn compacted(said: &[Message], fitted: &FittedPrompt) -> Option<Vec<Message>> {
    let is_made = |it: &Message| place(it).is_none() && is_summary(it);
    // What was shortened for this request stays whole in the session.
    let stays = |it: &Message| match place(it) {
        Some(place) => said.get(place).cloned(),
        None => is_made(it).then(|| it.clone()),
    };
    let is_any = fitted.messages.iter().any(is_made);
    is_any.then(|| fitted.messages.iter().filter_map(stays).collect())
}

/// Each skill as it was last told.
fn last(told: &[SkillInHistory]) -> impl Iterator<Item = &SkillInHistory> {
    let is_last = |at: usize, it: &SkillInHistory| {
        told[at + 1..].iter().all(|later| later.offer.name != it.offer.name)
    };
    told.iter().enumerate().filter(move |(at, it)| is_last(*at, it)).map(|it| it.1)
}

/// What was done, as the `prompt` command tells it.
fn noted(window: &ContextWindow, fitted: &FittedPrompt) -> EventKind {
    EventKind::Fitted {
        window: window.tokens,
        tokens: json!(fitted.tokens),
        skills: json!(fitted.skills),
        steps: json!(fitted.steps),
    }
}
