//! Fits a prompt into the context window of a model.
//!
//! A history is read (`read`), the skills for it are chosen (`choose`), and everything is made to
//! fit (`fit`): over 80 % of the window old messages are summarised, over 90 % inactive skills are
//! removed, over 95 % only the last messages and the best skill remain.

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

/// The tokens of a message besides its text: its role and delimiters.
const MESSAGE: usize = 4;
/// The tokens of a tool call besides its name and arguments.
const CALL: usize = 4;
/// The assumed tokens of an image or file; no model reports them in advance.
const ATTACHED: usize = 1000;

/// The maximum tokens of the catalog in a small window.
const SMALL_CATALOG: usize = 8_000;

/// The context window of a model, and what is kept when it is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWindow {
    /// Its size in tokens, not counting the answer.
    pub tokens: usize,
    /// The number of recent messages that are kept whole when older ones are summarised.
    pub keep_recent: usize,
    /// The tokenizer to count with.
    pub vocabulary: Tokenizer,
}

impl ContextWindow {
    /// Returns the token budget of the catalog: a tenth of the window; of a small one up to a
    /// quarter, if a tenth would leave no room for descriptions.
    pub fn catalog_budget(&self) -> usize {
        (self.tokens / 10).max((self.tokens / 4).min(SMALL_CATALOG))
    }

    /// Counts the tokens of a message: its text and calls, plus 4 for itself and for each call, and
    /// 1000 for an image or file.
    pub fn count(&self, message: &Message) -> usize {
        count(message, |it| self.vocabulary.count(it))
    }
}

/// Counts a message, with `tokens` counting its texts.
fn count(message: &Message, mut tokens: impl FnMut(&str) -> usize) -> usize {
    let texts = message.calls.iter().flat_map(|it| [&it.name, &it.arguments]);
    MESSAGE
        + texts.chain([&message.content]).map(|it| tokens(it)).sum::<usize>()
        + message.calls.len() * CALL
        + message.attachments() * ATTACHED
}

impl Default for ContextWindow {
    fn default() -> Self {
        Self { tokens: 128_000, keep_recent: 10, vocabulary: Tokenizer::default() }
    }
}
