//! Cuts long texts in the middle.

use std::borrow::Cow;

use serde_json::json;

use super::{
    ContextWindow,
    message::{Call, Message},
};
use crate::text::tokens::Tokenizer;

/// Cuts a text to at most `budget` tokens: keeps the head and the tail, with a note between them on
/// how much is missing.
pub(super) fn shorten_text(text: &str, budget: usize, vocabulary: Tokenizer) -> Cow<'_, str> {
    let tokens = vocabulary.count(text);
    if tokens <= budget {
        return Cow::Borrowed(text);
    }
    let room = budget.saturating_sub(vocabulary.count(&cut_note(tokens)));
    let mut bytes = scale(text.len(), room, tokens);
    while bytes > 0 {
        let head = &text[..text.floor_char_boundary(bytes - bytes / 3)];
        let tail = &text[text.ceil_char_boundary(text.len() - bytes / 3)..];
        let stays = vocabulary.count(head) + vocabulary.count(tail);
        let out = format!("{head}{}{tail}", cut_note(tokens.saturating_sub(stays)));
        let count = vocabulary.count(&out);
        if count <= budget {
            return Cow::Owned(out);
        }
        // The remaining text is denser than the rest. Slightly less than its share soon fits.
        bytes = scale(bytes, budget, count) * 31 / 32;
    }
    let note = cut_note(tokens).trim().to_owned();
    Cow::Owned(if vocabulary.count(&note) <= budget { note } else { String::new() })
}

fn cut_note(tokens: usize) -> String {
    format!("\n[… {tokens} tokens cut …]\n")
}

/// Returns `length * part / whole`; `whole` is not 0.
pub(super) fn scale(length: usize, part: usize, whole: usize) -> usize {
    usize::try_from(length as u128 * part as u128 / whole as u128).unwrap_or(length)
}

/// Shortens a message to about `budget` tokens. Arguments stay JSON; images and files are replaced
/// by words.
pub(super) fn shorten_message(message: &mut Message, budget: usize, window: &ContextWindow) {
    message.parts.clear();
    let share = budget / 2 / message.calls.len().max(1);
    for call in &mut message.calls {
        shorten_arguments(call, share, window.vocabulary);
    }
    let over = window.count(message).saturating_sub(budget);
    if over > 0 {
        let room = window.vocabulary.count(&message.content).saturating_sub(over);
        message.content = shorten_text(&message.content, room, window.vocabulary).into_owned();
    }
}

fn shorten_arguments(call: &mut Call, budget: usize, vocabulary: Tokenizer) {
    let tokens = vocabulary.count(&call.arguments);
    if tokens <= budget {
        return;
    }
    let mut room = budget;
    loop {
        let arguments =
            json!({ "cut": shorten_text(&call.arguments, room, vocabulary) }).to_string();
        let count = vocabulary.count(&arguments);
        // Text inside JSON is escaped, and may become longer than it was.
        if count <= budget || room == 0 {
            if count < tokens {
                call.arguments = arguments;
            }
            return;
        }
        room /= 2;
    }
}
