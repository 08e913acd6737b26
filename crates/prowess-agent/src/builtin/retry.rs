//! Retries after errors that may be temporary.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher as _, Hasher as _},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    error::TurnError,
    event::EventKind,
    middleware::request::Request,
    middleware::{Middleware, Next, ResponseFuture},
    model::{ChatResponse, ModelError},
};

/// Sends a request again after an error that may be temporary: a rate limit, an error of the
/// provider, a broken connection, a timeout, a malformed reply.
///
/// A refused connection is retried only once, because waiting rarely helps.
///
/// The delays double, each shortened at random so that many clients that failed together do not
/// retry together. If the provider gives a delay, that is used; if it is longer than `max_wait`,
/// there is no retry, because any earlier attempt would fail.
///
/// Text that was streamed before the failure is not part of the reply: a program that shows it
/// discards it at [`EventKind::Retried`]. Tools are not called again, because their results are in
/// the session.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// use prowess_agent::{Agent, Retry, ScriptedModel};
///
/// let retry = Retry { attempts: 3, max_wait: Duration::from_secs(10), ..Retry::default() };
/// let agent = Agent::new(Arc::new(ScriptedModel::new())).with(retry);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The maximum number of attempts, including the first.
    pub attempts: usize,
    /// The maximum delay after the first failure; it doubles with each.
    pub first_wait: Duration,
    /// The maximum of any delay.
    pub max_wait: Duration,
    /// The maximum total time; no delay exceeds it.
    pub max_time: Duration,
}

impl Default for Retry {
    /// Tries 5 times, with a delay of half a second at first and a minute at most, and gives up
    /// after five minutes.
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(60),
            max_time: Duration::from_secs(300),
        }
    }
}

impl Middleware for Retry {
    fn name(&self) -> &str {
        "retry"
    }

    fn model<'a>(&'a self, request: Request, next: Next<'a>) -> ResponseFuture<'a> {
        Box::pin(self.reply(request, next))
    }
}

impl Retry {
    async fn reply(&self, request: Request, next: Next<'_>) -> Result<ChatResponse, TurnError> {
        let start = Instant::now();
        let mut attempt = 1;
        loop {
            let error = match next.reply(request.clone()).await {
                Err(TurnError::Model(error)) if error.is_passing() => error,
                reply => return reply,
            };
            let left = self.max_time.saturating_sub(start.elapsed());
            let wait = self.wait(attempt, &error).filter(|it| *it <= left);
            let attempts = match error {
                ModelError::Absent { .. } => self.attempts.min(2),
                _ => self.attempts,
            };
            let Some(wait) = wait.filter(|_| attempt < attempts) else {
                return Err(error.into());
            };
            attempt += 1;
            request.turn.note(EventKind::Retried { attempt, message: error.to_string(), wait });
            sleep(wait).await;
        }
    }

    /// Returns the delay after a failure; `None` if it exceeds the maximum.
    fn wait(&self, attempt: usize, error: &ModelError) -> Option<Duration> {
        let longest = match error.wait() {
            Some(wait) if wait > self.max_wait => return None,
            // A little more than asked for, so that waiting clients do not all retry at once.
            Some(wait) => return Some(wait.saturating_add(random(self.first_wait / 4))),
            None => {
                let doublings = u32::try_from(attempt - 1).unwrap_or(u32::MAX);
                let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
                self.first_wait.saturating_mul(factor).min(self.max_wait)
            }
        };
        Some(random(longest))
    }
}

/// Returns a random duration between zero and `longest`.
fn random(longest: Duration) -> Duration {
    // Every `RandomState` has a random seed, which is random enough here.
    let number = RandomState::new().build_hasher().finish();
    let seconds = longest.as_secs_f64() * (number as f64 / u64::MAX as f64);
    Duration::try_from_secs_f64(seconds).unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(wait: Option<Duration>) -> ModelError {
        ModelError::RateLimited { model: "m".to_owned(), message: String::new(), wait }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_are_never_the_same() {
        let retry = Retry::default();
        for (attempt, longest) in [(1, 500), (2, 1000), (3, 2000), (8, 60_000), (1000, 60_000)] {
            let waits: Vec<_> =
                (0..50).filter_map(|_| retry.wait(attempt, &limited(None))).collect();
            assert!(waits.iter().all(|it| *it <= Duration::from_millis(longest)), "{waits:?}");
            assert!(waits.iter().any(|it| *it > Duration::from_millis(longest / 4)), "{waits:?}");
            assert!(waits.iter().any(|it| *it != waits[0]), "{waits:?}");
        }
    }

    #[test]
    fn what_the_provider_asks_for_is_waited_and_what_is_absurd_is_not() {
        let retry = Retry::default();
        let wait = |seconds| retry.wait(1, &limited(Some(Duration::from_secs(seconds))));
        let waited = wait(7).map(|it| it.as_secs_f64());
        assert!(waited.is_some_and(|it| (7.0..7.2).contains(&it)), "{waited:?}");
        assert_eq!(wait(1_000_000_000), None);
        assert_eq!(retry.wait(1, &limited(Some(Duration::MAX))), None);
        let patient = Retry { max_wait: Duration::MAX, ..retry };
        assert_eq!(patient.wait(1, &limited(Some(Duration::MAX))), Some(Duration::MAX));
    }
}
