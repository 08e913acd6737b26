//! Searches a text for the patterns of all families.

use std::{
    borrow::Cow,
    sync::{LazyLock, OnceLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use prowess::{Rule, Severity};
use regex::bytes::{Regex, RegexBuilder};

use super::{
    commands, credentials, downloads, exfiltration, injection,
    markdown::{Place, TextPart},
    obfuscation,
    pattern::{Pattern, Scope, WINDOW},
    persistence,
    rules::HIDDEN_INSTRUCTIONS,
    text::Text,
};

/// The tables of all families.
const FAMILIES: &[&[Pattern]] = &[
    injection::PATTERNS,
    exfiltration::PATTERNS,
    credentials::PATTERNS,
    commands::PATTERNS,
    downloads::PATTERNS,
    obfuscation::PATTERNS,
    persistence::PATTERNS,
];

/// The most matches of one pattern in one text.
const MOST: usize = 20;
/// How far after a search for a pattern the next one begins. A match is within [`WINDOW`] of an
/// anchor, so that none is missed, and every byte is searched a limited number of times.
const STEP: usize = 200;

/// A text with its parts.
pub(super) struct Document<'a> {
    pub(super) text: Text<'a>,
    /// The kind of the text outside of its parts.
    pub(super) base: Place,
    pub(super) parts: Vec<TextPart>,
    /// Whether the skill is about security, so that its documents show what they warn of.
    pub(super) teaches: bool,
}

/// A match.
pub(super) struct Hit {
    pub(super) rule: &'static Rule,
    pub(super) severity: Severity,
    /// Its position in the folded text.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) message: Cow<'static, str>,
}

struct Scanner {
    anchors: AhoCorasick,
    /// The patterns of each anchor.
    users: Vec<Vec<usize>>,
    patterns: Vec<&'static Pattern>,
    /// The expressions, compiled when they are first needed.
    regexes: Vec<OnceLock<Regex>>,
}

static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
    let patterns: Vec<&Pattern> = FAMILIES.iter().copied().flatten().collect();
    let mut anchors: Vec<&str> = patterns.iter().flat_map(|it| it.anchors).copied().collect();
    anchors.sort_unstable();
    anchors.dedup();
    let uses = |anchor: &&str| {
        let having = patterns.iter().enumerate().filter(|it| it.1.anchors.contains(anchor));
        having.map(|it| it.0).collect()
    };
    let users = anchors.iter().map(uses).collect();
    let regexes = patterns.iter().map(|_| OnceLock::new()).collect();
    let anchors = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&anchors)
        .expect("the anchors are few and short");
    Scanner { anchors, users, patterns, regexes }
});

/// Compiles an expression for bytes: what it is searched in has no look-alikes any more.
pub(super) fn regex(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(true)
        .multi_line(true)
        .build()
        .expect("the tests compile all patterns")
}

static WARNING: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:(?:^|[^\w./:@-])(?:never|not|don'?t|cannot|can'?t|avoid|refus\w+|reject\w*|block\w*|detect\w*|flag\w*|forbid\w*|prohibit\w*|prevent\w*|warn\w*|such as|e\.g|like|examples?|phrases?|patterns?|attempts?|attack\w*|inject\w*|malicious|suspicious|says?|saying|ask(?:s|ed|ing)|contains?|containing|trie[sd]|trying|claim\w*|instead of|rather than|treat|harmful|dangerous|unsafe|insecure|bad|wrong|vulnerab\w*|exploit\w*|test case|adversar\w*|jailbreak\w*|manipulat\w*|hijack\w*|untrusted|unauthori[sz]ed|proceed|continue|guess)\b|\xE2\x9D\x8C|\xE2\x9C\x97|\xF0\x9F\x9A\xAB|\xF0\x9F\x9A\xA9)",
    )
});
/// Negations that encourage.
static BOLD: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"\b(?:never|not|don'?t)\W{1,3}(?:hesitate|fail|forget|worry|refuse|be afraid|only)\b")
});
static TEACHING: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(?:anti-?patterns?|red flags?|attacks?|malicious|dangerous|bad|avoid|never|don'?ts?|do not|security|threats?|detect\w*|inject\w*|warning signs|vulnerab\w*|exploit\w*|payloads?|test cases|blocked|forbidden|prohibited|unsafe|insecure|abuse|risks?|indicators?|adversar\w*|jailbreak\w*)\b",
    )
});

impl Document<'_> {
    /// Returns the part at a position, or the stretch between two of them.
    fn part_at(&self, at: usize) -> TextPart {
        let index = self.parts.partition_point(|it| it.start <= at);
        let before = index.checked_sub(1).map(|it| self.parts[it]);
        match before {
            Some(part) if at < part.end => part,
            _ => TextPart {
                start: before.map_or(0, |it| it.end),
                end: self.parts.get(index).map_or(self.text.folded.len(), |it| it.start),
                place: self.base,
                is_shell: false,
            },
        }
    }

    /// Returns the stretch around an anchor that a pattern is searched in.
    fn window(part: &TextPart, at: usize) -> (usize, usize) {
        (at.saturating_sub(WINDOW).max(part.start), (at + WINDOW).min(part.end))
    }

    /// Returns how severe a match is here; `None` if it is not reported.
    fn severity(
        &self,
        pattern: &Pattern,
        part: &TextPart,
        start: usize,
        end: usize,
    ) -> Option<Severity> {
        let (scope, place) = (pattern.scope, part.place);
        let is_document = matches!(place, Place::Prose | Place::Frontmatter | Place::Fence);
        let severity = match (scope, place) {
            (Scope::Words(Severity::Info), Place::Hidden) => Severity::Warning,
            (Scope::Words(_), Place::Hidden) => return Some(Severity::Error),
            (Scope::Words(severity), Place::Prose | Place::Frontmatter) => severity,
            (Scope::Words(severity), _) => lower(severity)?,
            (Scope::Code(severity, _), Place::Script) => severity,
            (Scope::Code(_, severity), Place::Data | Place::Hidden) => severity?,
            (Scope::Code(_, severity), _) => severity?,
            (Scope::Description(severity), Place::Frontmatter) => {
                let line = self.line_before(start, 4096);
                let is_description =
                    line.trim_start().starts_with("description") || line.starts_with([' ', '\t']);
                return is_description.then_some(severity);
            }
            (Scope::Description(_), _) => return None,
        };
        let is_about_it = is_document && (self.teaches || self.is_below_warning(start));
        match self.mention(pattern, part, start, end) {
            Mention::Sure => Some(Severity::Info),
            Mention::Likely if is_about_it => Some(Severity::Info),
            Mention::Likely => lower(severity),
            Mention::No if is_about_it && severity == Severity::Error => lower(severity),
            Mention::No => Some(severity),
        }
    }

    /// Returns the start of the line up to a position.
    fn line_before(&self, at: usize, most: usize) -> &str {
        let text = &self.text.folded;
        let mut from = at.saturating_sub(most);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        let before = text.get(from..at).unwrap_or("");
        before.rsplit('\n').next().unwrap_or("")
    }

    /// Returns how sure it is that a match is only about an attack: an example, quoted, or what the
    /// reader is told not to do.
    fn mention(&self, pattern: &Pattern, part: &TextPart, start: usize, end: usize) -> Mention {
        let Pattern { scope, rule, .. } = *pattern;
        let is_words = matches!(scope, Scope::Words(_));
        let bytes = self.text.folded.as_bytes();
        let line_start = bytes[..start].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        let line_end =
            bytes[end..].iter().position(|it| *it == b'\n').map_or(bytes.len(), |it| end + it);
        let line_start = line_start.max(start.saturating_sub(400));
        let before = &bytes[line_start..start];
        let is_comment = |marks: &[&str]| {
            marks.iter().any(|it| before.trim_ascii_start().starts_with(it.as_bytes()))
        };
        match part.place {
            Place::Script | Place::Data => match is_comment(&["#", "//", "-- ", "* ", "REM "])
                || (is_words && WARNING.is_match(before))
            {
                true => Mention::Sure,
                false => Mention::No,
            },
            Place::Fence if is_comment(&["#", "//"]) => Mention::Sure,
            Place::Fence => {
                let note = &bytes[end..line_end.min(end + 160)];
                let above = &bytes[line_start.saturating_sub(160).max(part.start)..line_start];
                let lead = &bytes[part.start.saturating_sub(260)..part.start];
                let lead = &lead[lead.windows(2).rposition(|it| it == b"\n\n").unwrap_or(0)..];
                match remarks(note) || remarks(above) || warns(lead) {
                    true => Mention::Likely,
                    false => Mention::No,
                }
            }
            Place::Hidden => Mention::No,
            Place::Prose | Place::Frontmatter => {
                // Only what is before it in the same sentence; a table row is one sentence.
                let is_row = before.trim_ascii_start().starts_with(b"|");
                let from = sentence_start(bytes, start.saturating_sub(200).max(part.start), start);
                let sentence = &bytes[if is_row { line_start } else { from }..start];
                let behind = &bytes[end..line_end.min(end + 200)];
                if warns(sentence) || (is_row && warns(behind)) {
                    return Mention::Sure;
                }
                let odd = |mark: u8| before.iter().filter(|it| **it == mark).count() % 2 == 1;
                let is_quoted = odd(b'"') || odd(b'`') || before.last() == Some(&b'\'');
                // Addresses and commands are quoted where they are meant, too.
                let is_shown = matches!(rule.code, "exfiltration" | "untrusted-download");
                match is_quoted && is_words && !is_shown {
                    true => Mention::Likely,
                    false => Mention::No,
                }
            }
        }
    }

    /// Whether the heading above says that what follows is bad.
    fn is_below_warning(&self, at: usize) -> bool {
        let bytes = self.text.folded.as_bytes();
        let from = at.saturating_sub(3000);
        let before = &bytes[from..at];
        let heading = before.windows(2).rposition(|it| it == b"\n#").map(|it| &before[it + 1..]);
        let heading = heading.and_then(|it| it.split(|byte| *byte == b'\n').next());
        heading.is_some_and(|it| TEACHING.is_match(&it[..it.len().min(200)]))
    }
}

/// How sure it is that words are only mentioned.
enum Mention {
    Sure,
    Likely,
    No,
}

/// Whether a text warns of what follows, and does not tell the reader to be bold.
fn warns(text: &[u8]) -> bool {
    WARNING.is_match(text) && !BOLD.is_match(text)
}

/// Whether a text has a comment that warns, or a mark such as a red cross.
fn remarks(text: &[u8]) -> bool {
    let begins =
        |it: &[u8]| matches!(it, b" #" | b"\n#" | b" /" | b"\n/") || matches!(it[0], 0xE2 | 0xF0);
    text.windows(2).position(begins).is_some_and(|it| warns(&text[it..]))
}

/// Returns where the sentence up to a position begins.
fn sentence_start(bytes: &[u8], from: usize, at: usize) -> usize {
    let ends = |it: &[u8]| {
        matches!(
            it,
            b". " | b"! " | b"? " | b".\n" | b"!\n" | b"?\n" | b"\n\n" | b"\n-" | b"\n*" | b"\n#"
        ) || (it[0] == b'\n' && it[1].is_ascii_digit())
    };
    let mut until = at;
    while let Some(it) = bytes[from..until].windows(2).rposition(ends) {
        let end = from + it + 1;
        let is_short =
            [&b"e.g."[..], b"i.e.", b"etc."].iter().any(|it| bytes[from..end].ends_with(it));
        if !is_short {
            return end;
        }
        until = end;
    }
    from
}

fn lower(severity: Severity) -> Option<Severity> {
    match severity {
        Severity::Error => Some(Severity::Warning),
        Severity::Warning => Some(Severity::Info),
        Severity::Info => None,
    }
}

/// Returns all matches in a text, in no order.
pub(super) fn scan(document: &Document<'_>) -> Vec<Hit> {
    let scanner = &*SCANNER;
    let text = document.text.folded.as_bytes();
    let mut hits: Vec<Hit> = Vec::new();
    // Where each pattern is searched again, where its last match ended, and how many there were.
    let mut state = vec![(0_usize, 0_usize, 0_usize); scanner.patterns.len()];
    for anchor in scanner.anchors.find_overlapping_iter(text) {
        let at = anchor.start();
        for &index in &scanner.users[anchor.pattern().as_usize()] {
            let (next, last, count) = &mut state[index];
            if at < *next || *count >= MOST {
                continue;
            }
            let pattern = scanner.patterns[index];
            let part = document.part_at(at);
            if matches!(pattern.scope, Scope::Description(_)) && part.place != Place::Frontmatter {
                continue;
            }
            let (start, end) = Document::window(&part, at);
            let start = start.max(*last);
            let regex = scanner.regexes[index].get_or_init(|| regex(pattern.regex));
            let Some(found) = regex.find(&text[start..end]) else {
                *next = (at + STEP).min(end).max(at + 1);
                continue;
            };
            let margin = found.as_bytes().iter().take_while(|it| it.is_ascii_whitespace()).count();
            let (start, end) = (start + found.start() + margin, start + found.end());
            *next = end.max(at + 1);
            *last = end;
            *count += 1;
            let Some(severity) = document.severity(pattern, &part, start, end) else {
                continue;
            };
            let is_hidden = part.place == Place::Hidden && matches!(pattern.scope, Scope::Words(_));
            let (rule, message) = match is_hidden {
                true => (
                    &HIDDEN_INSTRUCTIONS,
                    format!("{}, where readers do not see it", pattern.message).into(),
                ),
                false => (pattern.rule, Cow::Borrowed(pattern.message)),
            };
            hits.push(Hit { rule, severity, start, end, message });
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_needs_one_of_its_anchors() {
        for pattern in FAMILIES.iter().copied().flatten() {
            assert!(!regex(pattern.regex).is_match(b""), "{}", pattern.regex);
            for anchor in pattern.anchors {
                assert_eq!(*anchor, anchor.to_lowercase(), "an anchor is in lower case");
            }
        }
        assert!(WARNING.is_match(b"never") && TEACHING.is_match(b"# Red flags"));
    }
}
