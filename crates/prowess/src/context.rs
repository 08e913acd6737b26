//! Fitting what a model is told into its window.
//!
//! A history is read (`read`), the skills for it are chosen (`choose`), and everything is made to
//! fit (`fit`): over 80 % of the window old messages are summarised, over 90 % inactive skills go,
//! over 95 % only the last words and the best skill stay.

mod message;
mod read;
mod mend;
mod choose;
mod summarise;
mod extract;
mod shorten;
mod counts;
mod draft;
mod fit;

pub use choose::{Choice, ChosenSkill, Priority, choose, request};
pub use counts::Counts;
pub use extract::Extract;
pub use fit::{
    FitChange, FitError, FitStep, FittedPrompt, Offer, PlacedSkill, Prompt, Usage, fit, fit_again,
};
pub use message::{Call, Message, Role};
pub use read::{HistoryError, history};
pub use summarise::Summarise;

use crate::text::tokens::Tokenizer;

/// What a message costs beside its text: its role, and where it begins and ends.
const MESSAGE: usize = 4;
/// What a tool call costs beside its name and arguments.
const CALL: usize = 4;
/// What an image or file is taken to cost; no model says it before it has seen it.
const ATTACHED: usize = 1000;

/// The tokens that the list of skills takes in a small window at the most.
const SMALL_CATALOG: usize = 8_000;

/// How much a model can be told at once, and what stays when that is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWindow {
    /// How many tokens it holds, the answer not counted.
    pub tokens: usize,
    /// How many of the last messages stay whole when older ones are summarised.
    pub keep_recent: usize,
    /// Whose tokens are counted.
    pub vocabulary: Tokenizer,
}

impl ContextWindow {
    /// The tokens that the list of skills may take: a tenth of the window; of a small one up to a
    /// quarter, where a tenth would leave no room for descriptions.
    pub fn catalog_budget(&self) -> usize {
        (self.tokens / 10).max((self.tokens / 4).min(SMALL_CATALOG))
    }

    /// Counts the tokens of a message: its text and calls, 4 for itself and for each call, 1000 for
    /// an image or file.
    pub fn count(&self, message: &Message) -> usize {
        count(message, |it| self.vocabulary.count(it))
    }
}

/// Counts a message by what its texts count.
fn count(message: &Message, mut tokens: impl FnMut(&str) -> usize) -> usize {
    let texts = message.calls.iter().flat_map(|it| [&it.name, &it.arguments]);
    MESSAGE
        + texts.chain([&message.content]).map(|it| tokens(it)).sum::<usize>()
        + message.calls.len() * CALL
        + message.attached() * ATTACHED
}

impl Default for ContextWindow {
    fn default() -> Self {
        Self { tokens: 128_000, keep_recent: 10, vocabulary: Tokenizer::default() }
    }
}
