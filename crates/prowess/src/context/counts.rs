//! Token counts that are cached from one prompt to the next.

use std::collections::HashMap;

use crate::{index::hash, text::tokens::Tokenizer};

/// The token counts of the texts in the last prompt that was fitted with it, so that repeated texts
/// are counted once.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    current: HashMap<Text, usize>,
    previous: HashMap<Text, usize>,
}

/// A text: its hash and length, and the tokenizer.
type Text = (u64, usize, Tokenizer);

/// The minimum length of a cached text, in bytes; a shorter one is counted as fast as it is looked
/// up.
const SHORT: usize = 64;

impl Counts {
    /// Begins a prompt: keeps the counts of the last one, and drops older ones.
    pub(super) fn begin(&mut self) {
        self.previous = std::mem::take(&mut self.current);
    }

    pub(super) fn count(&mut self, vocabulary: Tokenizer, text: &str) -> usize {
        if text.len() < SHORT {
            return vocabulary.count(text);
        }
        let key = (hash(text.as_bytes()), text.len(), vocabulary);
        let previous = self.previous.get(&key);
        *self
            .current
            .entry(key)
            .or_insert_with(|| previous.copied().unwrap_or_else(|| vocabulary.count(text)))
    }
}
