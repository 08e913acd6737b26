//! Fitting: keeps the prompt within the context window, and the session small.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use prowess::{
    ContextWindow, Counts, FitError, FittedPrompt, Level, Message, Offer, Priority, Prompt, fit,
    fit_again, lock,
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

/// Makes every request fit into a context window, by [`prowess::fit`]: above 80 % of it old
/// messages are summarised, above 90 % inactive skills are removed, above 95 % only the last
/// messages and the best skill stay.
///
/// A summary also replaces the messages in the session, so that nothing is summarised twice. Skills
/// whose instructions were among them are disclosed again in the system prompt. If the model
/// reports that the prompt is too long, it is shortened, at most three times.
///
/// In any position it acts last before the model, so that it also fits what other middleware adds.
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
    /// The context window of the model.
    pub window: ContextWindow,
    /// The timeout of a summary by a model; an extract replaces it then.
    pub patience: Duration,
    summariser: Summariser,
    /// The context window that the model turned out to have, if smaller.
    learned: Arc<AtomicUsize>,
}

/// The token counts of a session's texts, kept between requests.
#[derive(Default)]
struct TokenCounts(Mutex<Counts>);

/// The maximum number of times a prompt is shortened after a rejection.
const RETRIES: usize = 3;
/// The maximum number of rounds in which summaries require further summaries.
const ROUNDS: usize = 3;
/// A model is asked if the new part is at least 1/20 of the window; for less, an extract suffices.
const WORTH: usize = 20;
/// The field that identifies a message of the session while it is fitted.
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

    /// Summarises with a model: this one, or the agent's own. Its tokens are counted.
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
        self.pass_on(request, next)
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
            request = self.fit_request(request, &window, next.model()).await?;
            let told = request.fitted.as_ref().map_or(0, |it| it.tokens.total());
            // The prompt fitted now does not apply to the next attempt.
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
            let ModelError::TooLong { window: said, prompt: counted, .. } = error else {
                return Err(error.into());
            };
            is_said = said.is_some();
            window.tokens = next_size(told, said, counted);
            attempt += 1;
            let fits = |window| fit(&window, request.complete_prompt(), &Summaries::default());
            if let Err(FitError { needed, .. }) = fits(window) {
                (window.tokens, is_said) = (needed.total(), false);
                // If nothing can be left out, the provider's error is returned.
                if window.tokens >= told || fits(window).is_err() {
                    return Err(error.into());
                }
            }
            let (message, wait) = (error.to_string(), Duration::ZERO);
            turn.note(EventKind::Retried { attempt, message, wait });
        }
    }

    /// Returns a request with its fitted prompt; summaries are stored in the session.
    async fn fit_request(
        &self,
        mut request: Request,
        window: &ContextWindow,
        own: &dyn Model,
    ) -> Result<Request, TurnError> {
        let turn = request.turn.clone();
        let told =
            last_disclosures(&request.skills_in_history).map(|it| it.call_id.clone()).collect();
        let mut summaries = Summaries::new(window.vocabulary, told);
        let counted = turn.session.keep(TokenCounts::default);
        let (mut rounds, mut is_marked) = (0, false);
        let mut fitted = loop {
            summaries.begin();
            let fitted = {
                let prompt = request.filled_by(is_marked.then_some(
                    |place: usize, message: &mut Message| {
                        message.rest.insert(PLACE.to_owned(), json!(place));
                    },
                ));
                let mut counts = lock(&counted.0);
                fit_again(window, prompt, &summaries, &mut counts)?
            };
            // The remaining messages only need to be identified if a fit step was taken.
            if !is_marked && !fitted.steps.is_empty() {
                is_marked = true;
                continue;
            }
            if offer_again(&mut request, &fitted) {
                continue;
            }
            let Some(model) = self.summariser.model(own).filter(|_| rounds < ROUNDS) else {
                break fitted;
            };
            rounds += 1;
            let (patience, tokens) = (self.patience, window.tokens / 4 * 3);
            let how = SummaryRequest { turn: &turn, model, patience, tokens };
            let learned = summaries.learn(how, |messages: &[Message]| {
                let fresh = messages.iter().filter(|it| !is_summary(it));
                fresh.map(|it| window.count(it)).sum::<usize>() >= window.tokens / WORTH
            });
            if !learned.await {
                break fitted;
            }
        };
        if is_marked {
            warn_of_cut(&turn, &request.prompt.history, &fitted);
        }
        if is_marked
            && let Some(messages) = compacted_messages(&request.prompt.history, &fitted)
            && turn.session.history() == request.prompt.history
        {
            let (before, after) = (request.prompt.history.len(), messages.len());
            turn.session.compact(messages.clone())?;
            let by = if summaries.has_used_model() { "model" } else { "extract" }.to_owned();
            turn.note(EventKind::Compacted { before, after, by });
            request.prompt.history = messages.into();
        }
        for message in &mut fitted.messages {
            message.rest.shift_remove(PLACE);
        }
        turn.note(fit_event(window, &fitted));
        request.fitted = Some(fitted);
        Ok(request)
    }
}

/// Warns once per turn if a part of the user's own request is left out.
fn warn_of_cut(turn: &Turn, said: &[Message], fitted: &FittedPrompt) {
    let Some(request) = prowess::request(said) else { return };
    let place = said.iter().position(|it| std::ptr::eq(it, request));
    let told = fitted.messages.iter().find(|it| self::index_in_session(it) == place);
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

/// Returns the index of a message in the session.
fn index_in_session(message: &Message) -> Option<usize> {
    message.rest.get(PLACE).and_then(Json::as_u64).map(|it| it as usize)
}

/// Returns the size of the next attempt in tokens, after a prompt of `told` tokens was too long for
/// a model that `holds` so many and `counted` so many in it.
fn next_size(told: usize, holds: Option<usize>, counted: Option<usize>) -> usize {
    let less = told / 4 * 3;
    match (holds, counted) {
        // Its token count differs from ours, and a summary may exceed its budget a little.
        (Some(holds), Some(counted)) if counted > holds => {
            let fitting = holds as u128 * told as u128 / counted as u128 * 95 / 100;
            usize::try_from(fitting).unwrap_or(less)
        }
        (holds, _) => holds.unwrap_or(less).min(less),
    }
}

/// Offers those skills again whose instructions are no longer complete in the prompt; returns
/// whether there were any.
fn offer_again(request: &mut Request, fitted: &FittedPrompt) -> bool {
    let mut any = false;
    let Prompt { skills: offers, history: said, .. } = &mut request.prompt;
    let told = &request.skills_in_history;
    for SkillInHistory { call_id, offer } in last_disclosures(told) {
        let is_result = |it: &&Message| it.call_id.as_ref() == Some(call_id);
        let stands = fitted.messages.iter().find(is_result).map(|it| &it.content);
        let is_whole =
            stands.is_some_and(|it| said.iter().any(|own| is_result(&own) && own.content == *it));
        if is_whole {
            continue;
        }
        let mut again = Offer { priority: Priority::Active, ..Offer::clone(offer) };
        // It may be disclosed for another reason, at the same level or a higher one.
        match offers.iter_mut().find(|it| it.name == offer.name) {
            Some(known) => {
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

/// Returns the messages that replace those of the session, if something was summarised.
fn compacted_messages(said: &[Message], fitted: &FittedPrompt) -> Option<Vec<Message>> {
    if !fitted.messages.iter().any(|it| index_in_session(it).is_none() && is_summary(it)) {
        return None;
    }
    let messages = fitted.messages.iter().filter_map(|it| match index_in_session(it) {
        // Messages shortened for this request stay whole in the session.
        Some(place) => said.get(place).cloned(),
        None => is_summary(it).then(|| it.clone()),
    });
    Some(messages.collect())
}

/// Returns the level at which a skill is offered.
fn level(offer: &Offer) -> Option<Level> {
    offer.contents.first().map(|it| it.0)
}

/// Returns each skill as it was last disclosed.
fn last_disclosures(told: &[SkillInHistory]) -> impl Iterator<Item = &SkillInHistory> {
    let skills = told
        .iter()
        .enumerate()
        .filter(|(at, it)| told[at + 1..].iter().all(|later| later.offer.name != it.offer.name));
    skills.map(|it| it.1)
}

/// Returns the event of the fit steps, in the terms of the `prompt` command.
fn fit_event(window: &ContextWindow, fitted: &FittedPrompt) -> EventKind {
    EventKind::Fitted {
        window: window.tokens,
        tokens: json!(fitted.tokens),
        skills: json!(fitted.skills),
        steps: json!(fitted.steps),
    }
}
