//! Counts that are remembered from one prompt to the next.

use std::collections::HashMap;

use crate::{index::hash, text::tokens::Tokenizer};

/// How many tokens texts have: those of the last prompt that was made to fit with it, so that what is
/// told again and again is counted once.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    known: HashMap<Text, usize>,
    before: HashMap<Text, usize>,
}

/// A text: its hash and length, and whose tokens are counted.
type Text = (u64, usize, Tokenizer);

/// Shorter texts are counted as soon as they are looked up.
const SHORT: usize = 64;

impl Counts {
    /// Begins a prompt: what the last one had is known, what others had is forgotten.
    pub(super) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.known);
    }

    pub(super) fn count(&mut self, vocabulary: Tokenizer, text: &str) -> usize {
        if text.len() < SHORT {
            return vocabulary.count(text);
        }
        let key = (hash(text.as_bytes()), text.len(), vocabulary);
        let before = self.before.get(&key);
        let count = || before.copied().unwrap_or_else(|| vocabulary.count(text));
        *self.known.entry(key).or_insert_with(count)
    }
}
