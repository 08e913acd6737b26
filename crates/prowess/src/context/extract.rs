//! The summariser that needs no model: it keeps the most informative sentences verbatim.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeSet};

use super::{
    message::{Message, Role},
    summarise::{Summarise, is_summary, without_header},
};
use crate::text::tokens::Tokenizer;

/// The number of bytes of a message that are read from its head and from its tail.
const HEAD: usize = 4096;
const TAIL: usize = 1024;
/// The maximum length of a sentence, in bytes.
const SENTENCE: usize = 240;
/// The number of bytes of a tool result that are kept.
const RESULT: usize = 120;
/// The minimum room for a line, in tokens.
const LINE: usize = 16;

/// Summarises by extracts: the first request, then the most informative sentences (decisions,
/// errors, numbers, paths), verbatim and in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extract {
    /// The tokenizer to count with.
    pub vocabulary: Tokenizer,
}

/// A candidate sentence.
struct Sentence<'m> {
    message: usize,
    speaker: &'m str,
    text: Cow<'m, str>,
    score: usize,
}

impl Summarise for Extract {
    fn summarise(&self, messages: &[&Message], budget: usize) -> String {
        let mut sentences = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            collect_sentences(at, message, &mut sentences);
        }
        if let Some(first) = sentences
            .iter_mut()
            .find(|it: &&mut Sentence<'_>| it.speaker == "user" || it.text.starts_with("user: "))
        {
            first.score += 10;
        }
        let mut order: Vec<usize> = (0..sentences.len()).collect();
        order.sort_by_key(|at| Reverse((sentences[*at].score, sentences[*at].message)));
        let mut kept = Vec::new();
        let mut known = BTreeSet::new();
        let mut room = budget;
        for at in order {
            let sentence = &sentences[at];
            if room < LINE {
                break;
            }
            let cost =
                self.vocabulary.count(&sentence.text) + self.vocabulary.count(sentence.speaker) + 2;
            if cost <= room && known.insert(&sentence.text) {
                room -= cost;
                kept.push(at);
            }
        }
        kept.sort_unstable();
        format_sentences(kept.iter().map(|at| &sentences[*at]))
    }
}

/// Formats sentences as lines, those of one message on one line.
fn format_sentences<'s>(sentences: impl Iterator<Item = &'s Sentence<'s>>) -> String {
    let mut out = String::new();
    let mut last = None;
    for sentence in sentences {
        if last == Some(sentence.message) && !sentence.speaker.is_empty() {
            out.push(' ');
        } else {
            out.push_str(if out.is_empty() { "- " } else { "\n- " });
            if !sentence.speaker.is_empty() {
                out.push_str(sentence.speaker);
                out.push_str(": ");
            }
        }
        last = Some(sentence.message);
        out.push_str(&sentence.text);
    }
    out
}

/// Collects the sentences of a message, each with its score.
fn collect_sentences<'m>(at: usize, message: &'m Message, sentences: &mut Vec<Sentence<'m>>) {
    let mut add = |speaker: &'m str, text: Cow<'m, str>, score: usize| {
        sentences.push(Sentence { message: at, speaker, text, score });
    };
    if is_summary(message) {
        // Its lines were worth keeping before, and include their speaker.
        for line in without_header(&message.content).lines() {
            let line = line.strip_prefix("- ").unwrap_or(line).trim();
            if !line.is_empty() {
                add("", line.into(), 3 + score_sentence(line));
            }
        }
        return;
    }
    let speaker = message.role.as_str();
    if message.role == Role::Tool {
        let head = &message.content[..message.content.floor_char_boundary(RESULT)];
        let cut = message.content.len() - head.len();
        let mut text = head.split_whitespace().collect::<Vec<_>>().join(" ");
        let score = score_sentence(&text);
        if cut > 0 {
            text.push_str(&format!("… ({cut} bytes cut)"));
        }
        if !text.is_empty() {
            add(speaker, text.into(), score);
        }
        return;
    }
    let base = if message.role == Role::User { 2 } else { 1 };
    for (number, sentence) in split(&message.content).enumerate() {
        let first = usize::from(number == 0);
        add(speaker, shorten(sentence), base + first + score_sentence(sentence));
    }
    for call in &message.calls {
        add(speaker, format!("called `{}` with {}", call.name, shorten(&call.arguments)).into(), 1);
    }
}

/// Returns the sentences of the head and the tail of a text, without code.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let head = text.floor_char_boundary(HEAD);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(TAIL)).max(head);
    let mut is_code = false;
    let lines = text[..head].lines().chain(text[tail..].lines()).filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.flat_map(sentences).filter(|it| it.chars().any(char::is_alphanumeric))
}

/// Splits a line into sentences.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim();
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .find_map(|(at, c): (usize, char)| {
                let after = at + c.len_utf8();
                let is_end = matches!(c, '.' | '!' | '?') && rest[after..].starts_with(' ');
                (is_end || matches!(c, '。' | '！' | '？')).then_some(after)
            })
            .unwrap_or(rest.len());
        let (sentence, behind) = rest.split_at(end);
        rest = behind.trim_start();
        (!sentence.is_empty()).then_some(sentence)
    })
}

fn shorten(sentence: &str) -> Cow<'_, str> {
    match sentence.floor_char_boundary(SENTENCE) {
        end if end < sentence.len() => format!("{}…", &sentence[..end]).into(),
        _ => sentence.into(),
    }
}

/// Scores a sentence: words of decisions and errors, numbers, paths and code.
fn score_sentence(sentence: &str) -> usize {
    let (mut words, mut figures, mut places) = (0, 0, 0);
    for word in sentence.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        if bare.bytes().any(|it| it.is_ascii_digit()) {
            figures = 1;
        }
        if word.contains(['/', '`', '_']) || bare.contains('.') {
            places = 1;
        }
        if is_significant(bare) {
            words += 2;
        }
    }
    words.min(4) + figures + places
}

/// Whether a word indicates that something was decided, found out or went wrong.
fn is_significant(word: &str) -> bool {
    let mut lower = [0; 10];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    #[rustfmt::skip]
    let is_significant = matches!(
        &*lower,
        b"agreed" | b"always" | b"because" | b"blocked" | b"bug" | b"cannot" | b"cause" | b"chose"
        | b"conclusion" | b"confirmed" | b"decided" | b"decision" | b"denied" | b"done" | b"error"
        | b"exception" | b"fail" | b"failed" | b"fails" | b"failure" | b"fatal" | b"fix" | b"fixed"
        | b"found" | b"important" | b"instead" | b"must" | b"need" | b"never" | b"only" | b"panic"
        | b"passed" | b"plan" | b"prefer" | b"remember" | b"require" | b"required" | b"result"
        | b"should" | b"todo" | b"use" | b"warning" | b"wrong"
    );
    is_significant
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summarised(messages: &[Message], budget: usize) -> String {
        Extract::default().summarise(&messages.iter().collect::<Vec<_>>(), budget)
    }

    #[test]
    fn the_first_request_decisions_and_errors_are_kept() {
        let mut messages = vec![Message::new(Role::User, "Move the shop to Postgres 17. Thanks!")];
        for _ in 0..50 {
            messages.push(Message::new(Role::Assistant, "Let me think about that for a while."));
        }
        messages
            .push(Message::new(Role::Assistant, "We decided to drop `orders_old`. Fine by me."));
        messages.push(Message::new(Role::Tool, "error: relation missing ".repeat(20)));
        let text = summarised(&messages, 100);
        assert!(text.starts_with("- user: Move the shop to Postgres 17."), "{text}");
        assert!(text.contains("- assistant: We decided to drop `orders_old`."), "{text}");
        assert!(text.contains("- tool: error: relation missing"), "{text}");
        assert!(text.contains("bytes cut)"), "{text}");
        assert!(Tokenizer::default().count(&text) <= 100, "{text}");
    }

    #[test]
    fn sentences_end_in_any_script_and_code_is_none() {
        let text = "Version 1.2 is out. 部署完成。测试通过！\n```\nlet x = 1;\n```\nDone";
        assert_eq!(
            split(text).collect::<Vec<_>>(),
            ["Version 1.2 is out.", "部署完成。", "测试通过！", "Done"]
        );
    }

    #[test]
    fn nothing_fits_into_nothing() {
        let messages = [Message::new(Role::User, "Hello there."), Message::new(Role::Tool, "")];
        assert_eq!(summarised(&messages, 0), "");
        assert_eq!(summarised(&[], 100), "");
    }
}
