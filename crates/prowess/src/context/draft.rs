//! A prompt that is being fitted, and the steps to fit it.

use std::sync::Arc;

use super::{
    ContextWindow, MESSAGE,
    choose::{Priority, is_request},
    count,
    counts::Counts,
    fit::{FitChange, FitStep, FittedPrompt, Offer, PlacedSkill, Prompt, Usage},
    mend::mend,
    message::{Message, Role},
    shorten::{scale, shorten_message},
    summarise::{Summarise, summary},
};
use crate::disclosure::{disclose::Level, marker::Marker};

/// The number of messages that stay whole when everything is squeezed.
const SQUEEZED: usize = 5;
/// The minimum length of a shortened message, in tokens: in the first pass, and in later ones.
const SHORT: usize = 256;
const SHORTEST: usize = 24;
/// The tokens of the blank line before each part of the system prompt.
const JOINT: usize = 1;

/// A prompt that is being fitted. Every text is counted once, when it is made.
pub(super) struct Draft<'a> {
    window: &'a ContextWindow,
    summarise: &'a dyn Summarise,
    /// The parts of the system prompt before the skills.
    system: Vec<String>,
    system_tokens: usize,
    /// The tokens of the catalog, which is the last part of the system prompt.
    catalog_tokens: usize,
    tool_tokens: usize,
    skills: Vec<Slot>,
    history: Vec<DraftMessage>,
    steps: Vec<FitChange>,
}

/// A skill, with the forms in which it can be shown.
struct Slot {
    offer: Offer,
    /// The current form, then the alternatives, each shorter than the one before.
    blocks: Vec<Block>,
    /// The marker that fences each block.
    marker: Option<Marker>,
    left_out: Option<FitStep>,
}

/// A skill as rendered in the system prompt.
struct Block {
    level: Level,
    text: String,
    tokens: usize,
}

/// A message, and whether it is kept.
struct DraftMessage {
    message: Message,
    tokens: usize,
    kind: MessageKind,
    is_kept: bool,
}

/// The kind of a message, which says what may be done with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    /// Kept unchanged.
    System,
    /// Kept, and shortened only as a last resort.
    Request,
    /// May be summarised.
    Turn,
    /// A summary of others, created here.
    Summary,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        window: &'a ContextWindow,
        prompt: Prompt,
        summarise: &'a dyn Summarise,
        counts: &mut Counts,
    ) -> Self {
        counts.begin();
        let mut tokens = |text: &str| counts.count(window.vocabulary, text);
        let mut part = |text: &str| if text.is_empty() { 0 } else { JOINT + tokens(text) };
        let marker = prompt.marker.as_ref();
        let explanation = marker.map(Marker::explanation).unwrap_or_default();
        let own_tokens = part(&prompt.system) + part(&explanation);
        let catalog_tokens = part(&prompt.catalog);
        let system = [prompt.system, explanation, prompt.catalog].into_iter();
        let system: Vec<String> = system.filter(|it| !it.is_empty()).collect();
        let mut offers = prompt.skills;
        offers.sort_by_key(|it| it.priority);
        let history = Arc::unwrap_or_clone(prompt.history).into_iter();
        let mut history: Vec<DraftMessage> =
            history.map(|it| DraftMessage::new(it, &mut tokens)).collect();
        if let Some(request) = history.iter_mut().rfind(|it| is_request(&it.message)) {
            request.kind = MessageKind::Request;
        }
        let mut draft = Self {
            window,
            summarise,
            system_tokens: own_tokens + catalog_tokens,
            system,
            catalog_tokens,
            tool_tokens: prompt.tools.iter().map(|it| tokens(&it.to_string())).sum(),
            skills: offers.into_iter().map(|it| Slot::new(it, marker, &mut tokens)).collect(),
            history,
            steps: Vec::new(),
        };
        draft.mend();
        draft
    }

    pub(super) fn usage(&self) -> Usage {
        let skills = self.shown_skills().map(|it| it.blocks[0].tokens).sum();
        let has_system = !self.system.is_empty() || skills > 0;
        Usage {
            system: self.system_tokens + if has_system { MESSAGE } else { 0 },
            history: self.history.iter().filter(|it| it.is_kept).map(|it| it.tokens).sum(),
            skills,
            tools: self.tool_tokens,
        }
    }

    /// Returns the skills that are not left out.
    fn shown_skills(&self) -> impl Iterator<Item = &Slot> {
        self.skills.iter().filter(|it| it.left_out.is_none())
    }

    pub(super) fn is_over(&self, percent: u128) -> bool {
        self.usage().total() as u128 * 100 > self.window.tokens as u128 * percent
    }

    /// Returns the number of tokens over 95 %: when something must be cut, there should be room for
    /// the answer.
    fn excess(&self) -> usize {
        self.usage().total().saturating_sub(self.window.tokens - self.window.tokens / 20)
    }

    pub(super) fn record(&mut self, step: FitStep, take: DraftStep<'a>) {
        let before = self.usage().total();
        let what = take(self);
        let after = self.usage().total();
        self.steps.push(FitChange { step, before, after, what });
    }

    pub(super) fn finish(self) -> FittedPrompt {
        let tokens = self.usage();
        let blocks = self.shown_skills().map(|it| it.blocks[0].text.clone());
        let parts: Vec<String> = self.system.iter().cloned().chain(blocks).collect();
        let mut messages = Vec::new();
        if !parts.is_empty() {
            messages.push(Message::new(Role::System, parts.join("\n\n")));
        }
        let kept = self.history.into_iter().filter(|it| it.is_kept);
        messages.extend(kept.map(|it| it.message));
        let skills = self.skills.into_iter().map(Slot::into_placed).collect();
        FittedPrompt { messages, tokens, skills, steps: self.steps }
    }
}

/// A fit step; returns a description of what it did.
pub(super) type DraftStep<'a> = fn(&mut Draft<'a>) -> String;

impl<'a> Draft<'a> {
    /// The fit steps, each with the percentage of the window above which it is applied.
    pub(super) const STEPS: [(FitStep, u128, DraftStep<'a>); 7] = [
        (FitStep::Compress, 80, Self::compress),
        (FitStep::Evict, 90, Self::evict_inactive),
        (FitStep::KeepRecent, 95, Self::squeeze),
        (FitStep::LowerLevel, 100, Self::degrade),
        (FitStep::Shorten, 100, Self::shorten),
        (FitStep::Evict, 100, Self::evict_all),
        (FitStep::Evict, 100, Self::evict_catalog),
    ];

    fn mend(&mut self) {
        let mut messages: Vec<Message> =
            self.history.iter_mut().map(|it| std::mem::take(&mut it.message)).collect();
        let changed = mend(&mut messages);
        let before = self.usage().total();
        for (entry, message) in self.history.iter_mut().zip(messages) {
            entry.message = message;
        }
        for at in &changed {
            self.history[*at].tokens = self.window.count(&self.history[*at].message);
        }
        if !changed.is_empty() {
            let what = "turned calls without a result, or results without a call, into text";
            let after = self.usage().total();
            self.steps.push(FitChange {
                step: FitStep::PairCalls,
                before,
                after,
                what: what.to_owned(),
            });
        }
    }

    fn compress(&mut self) -> String {
        self.summarise_before(self.window.keep_recent, self.window.tokens / 10)
    }

    fn evict_inactive(&mut self) -> String {
        self.leave_out(FitStep::Evict, |it| it.offer.priority == Priority::Inactive)
    }

    fn squeeze(&mut self) -> String {
        let keep = SQUEEZED.min(self.window.keep_recent);
        let summarised = self.summarise_before(keep, self.window.tokens / 20);
        let mut is_first = true;
        let left_out = self.leave_out(FitStep::KeepRecent, |_| !std::mem::take(&mut is_first));
        format!("{summarised}, {left_out}")
    }

    fn degrade(&mut self) -> String {
        let mut lowered = Vec::new();
        let mut excess = self.excess();
        for slot in self.skills.iter_mut().rev().filter(|it| it.left_out.is_none()) {
            let before = slot.blocks[0].level;
            // The beginning of the instructions, as far as it fits, says more than the brief.
            let room = slot.blocks[0].tokens.saturating_sub(excess);
            if let Some(part) = slot.beginning(room, self.window).filter(|_| excess > 0) {
                excess = 0;
                slot.blocks[0] = part;
            }
            while excess > 0 && slot.blocks.len() > 1 {
                let saved = slot.blocks.remove(0).tokens - slot.blocks[0].tokens;
                excess = excess.saturating_sub(saved);
            }
            let after = slot.blocks[0].level;
            if after < before {
                let (before, after) = (before.as_str(), after.as_str());
                lowered.push(format!("`{}` from {before} to {after}", slot.offer.name));
            }
        }
        match lowered.is_empty() {
            true => "no skill can be shown in less detail".to_owned(),
            false => format!("showed less detail of {}", lowered.join(", ")),
        }
    }

    /// Shortens messages, the oldest first and the request last of all.
    fn shorten(&mut self) -> String {
        let mut excess = self.excess();
        let mut cut = vec![false; self.history.len()];
        for (is_request, least) in [(false, SHORT), (false, SHORTEST), (true, SHORTEST)] {
            for (at, entry) in self.history.iter_mut().enumerate().filter(|it| it.1.is_kept) {
                let may = entry.kind != MessageKind::System
                    && (entry.kind == MessageKind::Request) == is_request;
                if excess == 0 || !may || entry.tokens <= least + MESSAGE {
                    continue;
                }
                let budget = entry.tokens.saturating_sub(excess).max(least + MESSAGE);
                let before = entry.tokens;
                shorten_message(&mut entry.message, budget, self.window);
                entry.tokens = self.window.count(&entry.message);
                excess = (excess + entry.tokens).saturating_sub(before);
                cut[at] = true;
            }
        }
        format!("cut {}", format_messages(cut.iter().filter(|it| **it).count()))
    }

    fn evict_all(&mut self) -> String {
        self.leave_out(FitStep::Evict, |_| true)
    }

    fn evict_catalog(&mut self) -> String {
        match std::mem::take(&mut self.catalog_tokens) {
            0 => "no catalog to leave out".to_owned(),
            tokens => {
                self.system.pop();
                self.system_tokens -= tokens;
                "left out the catalog".to_owned()
            }
        }
    }

    fn leave_out(&mut self, step: FitStep, mut is_meant: impl FnMut(&Slot) -> bool) -> String {
        let mut names = Vec::new();
        for slot in &mut self.skills {
            if slot.left_out.is_none() && is_meant(slot) {
                slot.left_out = Some(step);
                names.push(format!("`{}`", slot.offer.name));
            }
        }
        match names.is_empty() {
            true => "no skill to leave out".to_owned(),
            false => format!("left out {}", names.join(", ")),
        }
    }

    /// Summarises the messages before the last `keep`: those before the request, and those after
    /// it, each in its place. Earlier summaries of the same prompt are made anew, so that none is a
    /// summary of a summary.
    fn summarise_before(&mut self, keep: usize, budget: usize) -> String {
        self.history.retain(|it| it.kind != MessageKind::Summary);
        for entry in &mut self.history {
            entry.is_kept = true;
        }
        let mut start = self.history.len().saturating_sub(keep);
        // A result that is kept keeps its call.
        while self.history.get(start).is_some_and(|it| it.message.role == Role::Tool) {
            start -= 1;
        }
        let request = self.history.iter().position(|it| it.kind == MessageKind::Request);
        let middle = request.unwrap_or(0).min(start);
        let old: usize =
            self.history[..start].iter().filter(|it| it.is_turn()).map(|it| it.tokens).sum();
        let mut count = 0;
        // The later run first: inserting behind does not move what is before.
        for run in [middle..start, 0..middle] {
            let end = run.end;
            let turns: Vec<usize> = run.filter(|at| self.history[*at].is_turn()).collect();
            let tokens: usize = turns.iter().map(|at| self.history[*at].tokens).sum();
            let messages: Vec<&Message> =
                turns.iter().map(|at| &self.history[*at].message).collect();
            if messages.is_empty() {
                continue;
            }
            let share = scale(budget, tokens, old).min(tokens / 2);
            let made = summary(&messages, share, self.window, self.summarise);
            let made = DraftMessage::new(made, |it| self.window.vocabulary.count(it));
            let made = DraftMessage { kind: MessageKind::Summary, ..made };
            // A few short messages do not become shorter by a summary.
            if made.tokens < tokens {
                count += turns.len();
                for at in turns {
                    self.history[at].is_kept = false;
                }
                self.history.insert(end, made);
            }
        }
        match count {
            0 => "nothing to summarise".to_owned(),
            _ => format!("summarised {}", format_messages(count)),
        }
    }
}

impl Slot {
    fn new(
        mut offer: Offer,
        marker: Option<&Marker>,
        mut count: impl FnMut(&str) -> usize,
    ) -> Self {
        offer.contents.push((Level::Metadata, String::new()));
        let mut blocks: Vec<Block> = Vec::new();
        for (level, content) in &offer.contents {
            let text = offer.block(content, marker);
            let tokens = JOINT + count(&text);
            if blocks.last().is_none_or(|it| tokens < it.tokens) {
                blocks.push(Block { level: *level, text, tokens });
            }
        }
        Self { offer, blocks, marker: marker.cloned(), left_out: None }
    }

    /// Returns the instructions as far as they fit, cut after a line; `None` if the brief says as
    /// much.
    fn beginning(&self, room: usize, window: &ContextWindow) -> Option<Block> {
        let [whole, brief, ..] = &self.blocks[..] else { return None };
        let (level, content) = self.offer.contents.first()?;
        if whole.level != Level::Full || *level != Level::Full || room <= brief.tokens {
            return None;
        }
        let mut length = content.len() * room / whole.tokens.max(1);
        loop {
            let start = &content[..content.floor_char_boundary(length)];
            let start = &start[..start.rfind('\n')?];
            let text = self.offer.block(&cut_off(start, content), self.marker.as_ref());
            let tokens = JOINT + window.vocabulary.count(&text);
            if tokens <= brief.tokens {
                return None;
            }
            if tokens <= room {
                return Some(Block { level: Level::Brief, text, tokens });
            }
            length = (start.len() * room / tokens).min(start.len() * 31 / 32);
        }
    }

    fn into_placed(self) -> PlacedSkill {
        PlacedSkill {
            name: self.offer.name,
            priority: self.offer.priority,
            wanted: self.offer.contents[0].0,
            level: self.blocks[0].level,
            tokens: self.blocks[0].tokens,
            left_out: self.left_out,
        }
    }
}

impl DraftMessage {
    fn new(message: Message, tokens: impl FnMut(&str) -> usize) -> Self {
        let kind =
            if message.role == Role::System { MessageKind::System } else { MessageKind::Turn };
        Self { tokens: count(&message, tokens), message, kind, is_kept: true }
    }

    fn is_turn(&self) -> bool {
        self.kind == MessageKind::Turn
    }
}

/// Returns the start of a text, with a note on how much is missing. Closes a code block that is
/// cut.
fn cut_off(start: &str, whole: &str) -> String {
    let fences = start.lines().filter(|it| it.trim_start().starts_with("```")).count();
    let close = if fences % 2 == 1 { "\n```" } else { "" };
    let more = whole[start.len()..].trim().lines().count();
    let lines = if more == 1 { "line" } else { "lines" };
    let start = start.trim_end();
    format!(
        "{start}{close}\n\n[{more} more {lines} of this skill do not fit into the context window]"
    )
}

/// Formats a count: `1 message`, `2 messages`.
fn format_messages(count: usize) -> String {
    format!("{count} message{}", if count == 1 { "" } else { "s" })
}
