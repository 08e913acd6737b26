//! Spending limits: tokens, steps and cost.

use std::collections::BTreeMap;

use super::last::Last;
use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Request, Turn},
    middleware::{Middleware, Next, ResponseFuture},
    model::{ChatResponse, TokenUsage},
};

/// Stops before the next request once a limit is reached, and reports the spending after each one.
///
/// A running request is not stopped: the last one may exceed a limit. In any position, it checks
/// before every request. Tokens for summaries count too.
///
/// ```
/// # use std::sync::Arc;
/// use prowess_agent::{Agent, Budget, Price, ScriptedModel, Spending};
///
/// let spending = Spending {
///     steps: Some(20),
///     session: Budget { cost: Some(1.50), ..Budget::default() },
///     prices: [("scripted".to_owned(), Price { input: 3.0, output: 15.0, cached: 0.3 })].into(),
///     ..Spending::default()
/// };
/// let agent = Agent::new(Arc::new(ScriptedModel::new())).with(spending);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spending {
    /// The maximum number of requests to the model in a turn.
    pub steps: Option<usize>,
    /// The budget of a turn.
    pub turn: Budget,
    /// The budget of a session.
    pub session: Budget,
    /// The prices of models, by name. A model without a price counts as free, with a warning.
    pub prices: BTreeMap<String, Price>,
}

/// The limits of spending; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Input tokens.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Input and output tokens together.
    pub total: Option<u64>,
    /// The cost, in the currency of the prices.
    pub cost: Option<f64>,
}

/// The price of a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    /// For input.
    pub input: f64,
    /// For output.
    pub output: f64,
    /// For cached input.
    pub cached: f64,
}

impl Price {
    /// Returns the cost of this token usage.
    pub fn cost(&self, spent: TokenUsage) -> f64 {
        let fresh = spent.input.saturating_sub(spent.cached);
        let cached = spent.cached.min(spent.input);
        let millionths = fresh as f64 * self.input
            + cached as f64 * self.cached
            + spent.output as f64 * self.output;
        millionths / 1e6
    }
}

impl Middleware for Spending {
    fn name(&self) -> &str {
        "spending"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        self.pass_on(request, next)
    }
}

impl Last for Spending {
    fn at_last<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(self.reply(request, next))
    }
}

impl Spending {
    async fn reply(&self, request: Request, next: Next<'_>) -> Result<ChatResponse, TurnError> {
        let turn = request.turn.clone();
        self.check(&turn)?;
        let model = next.model().name();
        let is_limited = self.turn.cost.is_some() || self.session.cost.is_some();
        if is_limited && turn.steps() == 0 && !self.prices.contains_key(model) {
            let message =
                format!("no price is configured for `{model}`, so its cost is not limited");
            turn.note(EventKind::Warned { message });
        }
        let reply = next.reply(request).await;
        let spent = turn.session.spent_on();
        let has_prices = !self.prices.is_empty();
        let cost = has_prices.then(|| self.cost(&spent));
        let turn_cost = has_prices.then(|| self.cost(&turn.spent_on()));
        turn.note(EventKind::Spending { spent: spent.into_values().sum(), cost, turn_cost });
        reply
    }

    /// Returns an error if a limit is reached.
    fn check(&self, turn: &Turn) -> Result<(), TurnError> {
        let own = turn.spent_on();
        let all = turn.session.spent_on();
        let steps = self.steps.filter(|it| turn.steps() >= *it).map(|it| format!("{it} steps"));
        let of_turn = steps.or_else(|| self.turn.reached_limit(&own, self.cost(&own)));
        let what = match of_turn {
            Some(limit) => Some(format!("the turn's limit of {limit}")),
            None => {
                let limit = self.session.reached_limit(&all, self.cost(&all));
                limit.map(|it| format!("the session's limit of {it}"))
            }
        };
        what.map_or(Ok(()), |what| Err(TurnError::Spent { what }))
    }

    fn cost(&self, spent: &BTreeMap<String, TokenUsage>) -> f64 {
        let costs = spent.iter().filter_map(|(model, it)| Some(self.prices.get(model)?.cost(*it)));
        // The empty sum of floats is `-0.0`, and other sums have rounding errors.
        (costs.sum::<f64>() * 1e9).round() / 1e9 + 0.0
    }
}

impl Budget {
    /// Returns the limit that is reached, if any.
    fn reached_limit(&self, spent: &BTreeMap<String, TokenUsage>, cost: f64) -> Option<String> {
        let spent: TokenUsage = spent.values().copied().sum();
        let limits = [
            self.input.filter(|it| spent.input >= *it).map(|it| format!("{it} tokens read")),
            self.output.filter(|it| spent.output >= *it).map(|it| format!("{it} tokens written")),
            self.total
                .filter(|it| spent.input + spent.output >= *it)
                .map(|it| format!("{it} tokens")),
            self.cost.filter(|it| cost >= *it).map(|it| format!("a cost of {it}")),
        ];
        limits.into_iter().flatten().next()
    }
}
