//! Summaries of old messages.

use serde_json::json;

use super::{
    ContextWindow,
    extract::Extract,
    message::{Message, Role},
    shorten::shorten_text,
};

/// The start of a summary's first line.
const HEADER: &str = "[Summary of ";
/// The author name of a summary, so that nothing a person types is taken for one.
const NAME: &str = "summary";

/// Summarises messages.
///
/// An implementer stays within `budget` tokens (a longer summary is cut), keeps what later messages
/// may refer to, and may be given messages that are summaries themselves. An empty text means that
/// it could not; then [`Extract`] does it.
pub trait Summarise {
    /// Summarises messages, the oldest first.
    fn summarise(&self, messages: &[&Message], budget: usize) -> String;
}

/// Summarises several messages in one of about `budget` tokens.
pub(super) fn summary(
    messages: &[&Message],
    budget: usize,
    window: &ContextWindow,
    summarise: &dyn Summarise,
) -> Message {
    let count: usize = messages.iter().map(|it| stands_for(it)).sum();
    let mut message = Message::new(Role::User, format!("{HEADER}{count} earlier messages]"));
    message.rest.insert("name".to_owned(), json!(NAME));
    let room = budget.saturating_sub(window.count(&message));
    let mut text = summarise.summarise(messages, room);
    if text.trim().is_empty() {
        text = Extract { vocabulary: window.vocabulary }.summarise(messages, room);
    }
    let text = shorten_text(without_header(text.trim()), room, window.vocabulary);
    if !text.is_empty() {
        message.content = format!("{}\n{text}", message.content);
    }
    message
}

/// Whether a message is a summary of others.
pub(super) fn is_summary(message: &Message) -> bool {
    message.role == Role::User
        && message.rest.get("name").is_some_and(|it| it == NAME)
        && message.content.starts_with(HEADER)
}

/// Returns the text of a summary without its header line.
pub(super) fn without_header(text: &str) -> &str {
    match text.strip_prefix(HEADER) {
        Some(rest) => rest.split_once('\n').map_or("", |it| it.1),
        None => text,
    }
}

/// Returns the number of messages that a message represents.
fn stands_for(message: &Message) -> usize {
    let number = message.content.strip_prefix(HEADER).filter(|_| is_summary(message));
    number.and_then(|it| it.split(' ').next()?.parse().ok()).unwrap_or(1)
}
