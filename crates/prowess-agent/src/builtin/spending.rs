//! Spending: how many tokens, steps and how much money may go into an answer.

use std::collections::BTreeMap;

use super::last::Last;
use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::{Request, Turn},
    middleware::{Middleware, Next, ResponseFuture},
    model::{ChatResponse, TokenUsage},
};

/// Stops before the next request once a limit is reached, and says after each one what was spent.
///
/// A request that is under way is not stopped: the last one may go beyond a limit. Wherever it stands,
/// it looks before every request. What models took for summaries counts too.
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
    /// How often the model may be asked in one turn.
    pub steps: Option<usize>,
    /// What one turn may take.
    pub turn: Budget,
    /// What all turns of a session may take.
    pub session: Budget,
    /// What models cost, by their names. One that is not here costs nothing, which is said.
    pub prices: BTreeMap<String, Price>,
}

/// How much may be spent; what is not given has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// Tokens that models read.
    pub input: Option<u64>,
    /// Tokens that models write.
    pub output: Option<u64>,
    /// Both together.
    pub total: Option<u64>,
    /// Money, in whatever the prices are in.
    pub cost: Option<f64>,
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    /// Of what is read.
    pub input: f64,
    /// Of what is written.
    pub output: f64,
    /// Of what is read and was remembered.
    pub cached: f64,
}

impl Price {
    /// What so many tokens cost.
    pub fn cost(&self, spent: TokenUsage) -> f64 {
        let fresh = spent.input.saturating_sub(spent.cached);
        let millions = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        millions(fresh, self.input)
            + millions(spent.cached.min(spent.input), self.cached)
            + millions(spent.output, self.output)
    }
}

impl Middleware for Spending {
    fn name(&self) -> &str {
        "spending"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        self.go_on(request, next)
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
        let cost = |of| (!self.prices.is_empty()).then(|| self.cost(of));
        let (cost, turn_cost) = (cost(&spent), cost(&turn.spent_on()));
        turn.note(EventKind::Spending { spent: spent.into_values().sum(), cost, turn_cost });
        reply
    }

    /// Says which limit is reached, if one is.
    fn check(&self, turn: &Turn) -> Result<(), TurnError> {
        let own = turn.spent_on();
        let all = turn.session.spent_on();
        let steps = self.steps.filter(|it| turn.steps() >= *it).map(|it| format!("{it} steps"));
        let of_turn = steps.or_else(|| self.turn.reached(&own, self.cost(&own)));
        let of_session = || self.session.reached(&all, self.cost(&all));
        let what = match of_turn {
            Some(limit) => Some(format!("the turn's limit of {limit}")),
            None => of_session().map(|limit| format!("the session's limit of {limit}")),
        };
        what.map_or(Ok(()), |what| Err(TurnError::Spent { what }))
    }

    fn cost(&self, spent: &BTreeMap<String, TokenUsage>) -> f64 {
        let costs = spent.iter().filter_map(|(model, it)| Some(self.prices.get(model)?.cost(*it)));
        // The sum of no numbers is negative, and that of others is a little off.
        (costs.sum::<f64>() * 1e9).round() / 1e9 + 0.0
    }
}

impl Budget {
    /// The limit that is reached, if one is.
    fn reached(&self, spent: &BTreeMap<String, TokenUsage>, cost: f64) -> Option<String> {
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
