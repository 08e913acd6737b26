//! The parts of a text: prose, code, and what a reader of the rendered text does not see.

use std::sync::LazyLock;

use regex::Regex;

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Text for readers.
    Prose,
    /// The frontmatter of a document.
    Frontmatter,
    /// A fenced block in a document.
    Fence,
    /// Text that is not shown: comments, hidden elements, alternative texts, titles, decoded texts.
    Hidden,
    /// A script, or a command that a client runs.
    Script,
    /// Data and settings.
    Data,
}

/// A part of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextPart {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) place: Place,
    /// Whether it is a fence in the language of a shell.
    pub(super) is_shell: bool,
}

static ATTRIBUTES: LazyLock<Regex> = LazyLock::new(|| {
    let alternative = r"!\[([^\]\n]{12,2000})\]\(";
    let title = r#"\]\([^\s()]{1,500}\s+["'(]([^"\n]{12,2000}?)["')]\)"#;
    let attribute = r#"<[a-zA-Z][^<>]{0,300}?\s(?:alt|title|aria-label|data-[\w-]{1,40})\s*=\s*"([^"]{12,2000})""#;
    regex(&format!("{alternative}|{title}|{attribute}"))
});
static REFERENCES: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"(?m)^ {0,3}\[[^\]\n]{1,80}\]:\s*\S{1,500}\s+["'(](.{12,2000}?)["')]\s*$"#)
});
static HIDDEN_ELEMENTS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?i)<[a-z]{1,12}\s[^<>]{0,200}?(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](?:px|em|pt|;|")|opacity\s*:\s*0[;"\s]|color\s*:\s*(?:white|#fff(?:fff)?|transparent)\b|\shidden[\s>=])[^<>]{0,200}>([^<]{8,4000})"#,
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the tests compile all patterns")
}

/// Returns the parts of a Markdown text that are not prose, in order, and without overlap.
pub(super) fn parts(text: &str) -> Vec<TextPart> {
    let mut parts = blocks(text);
    let hidden = hidden(text);
    // What is hidden within code is shown as code.
    let fences: Vec<(usize, usize)> =
        parts.iter().filter(|it| it.place == Place::Fence).map(|it| (it.start, it.end)).collect();
    parts.extend(
        hidden
            .into_iter()
            .filter(|(start, _)| {
                let index = fences.partition_point(|it| it.0 <= *start);
                index == 0 || fences[index - 1].1 <= *start
            })
            .map(|(start, end)| TextPart { start, end, place: Place::Hidden, is_shell: false }),
    );
    parts.sort_by_key(|it| (it.start, it.end));
    let mut end = 0;
    parts.retain(|it| {
        let is_behind = it.start >= end;
        if is_behind {
            end = it.end;
        }
        is_behind
    });
    parts
}

/// Returns the frontmatter and the fences.
fn blocks(text: &str) -> Vec<TextPart> {
    let mut parts = Vec::new();
    let mut at = 0;
    let mut open: Option<(u8, usize, usize, bool)> = None;
    let mut is_frontmatter = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        let content = line.trim_end();
        if number == 0 && content == "---" {
            is_frontmatter = true;
            continue;
        }
        if is_frontmatter {
            if matches!(content, "---" | "...") {
                parts.push(TextPart {
                    start: 0,
                    end: at,
                    place: Place::Frontmatter,
                    is_shell: false,
                });
                is_frontmatter = false;
            }
            continue;
        }
        let mut inner = content.trim_start();
        while let Some(rest) = inner.strip_prefix('>') {
            inner = rest.trim_start();
        }
        let mark = inner.bytes().next().unwrap_or(0);
        let length = inner.bytes().take_while(|it| *it == mark).count();
        let is_fence = matches!(mark, b'`' | b'~') && length >= 3;
        match open {
            None if is_fence && !inner[length..].contains('`') => {
                let language = inner[length..].trim().split([' ', ',', '{']).next().unwrap_or("");
                let is_shell = matches!(
                    language.to_ascii_lowercase().as_str(),
                    "sh" | "bash" | "shell" | "zsh" | "console" | "shell-session" | "terminal"
                );
                open = Some((mark, length, at, is_shell));
            }
            Some((kind, least, from, is_shell))
                if is_fence && mark == kind && length >= least && inner.len() == length =>
            {
                parts.push(TextPart { start: from, end: start, place: Place::Fence, is_shell });
                open = None;
            }
            _ => {}
        }
    }
    if let Some((.., from, is_shell)) = open {
        parts.push(TextPart { start: from, end: text.len(), place: Place::Fence, is_shell });
    }
    parts
}

/// Returns what a reader of the rendered text does not see.
fn hidden(text: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("<!--").map(|it| at + it + 4) {
        let end = text[start..].find("-->").map_or(text.len(), |it| start + it);
        spans.push((start, end));
        at = end;
    }
    let mut captured = |regex: &Regex| {
        for captures in regex.captures_iter(text) {
            if let Some(group) = captures.iter().skip(1).flatten().next() {
                spans.push((group.start(), group.end()));
            }
        }
    };
    if text.contains("](") || text.contains("=\"") {
        captured(&ATTRIBUTES);
    }
    if text.contains("]:") {
        captured(&REFERENCES);
    }
    if text.contains("style") || text.contains("hidden") || text.contains("STYLE") {
        captured(&HIDDEN_ELEMENTS);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found() {
        let text = "---\nname: x\n---\nsee <!-- this --> and ![a long alternative](x.png)\n\n```sh\nls <!-- no -->\n```\n[//]: # (a comment of Markdown)\n";
        let found: Vec<_> =
            parts(text).iter().map(|it| (it.place, text[it.start..it.end].trim())).collect();
        assert_eq!(
            found,
            [
                (Place::Frontmatter, "---\nname: x\n---"),
                (Place::Hidden, "this"),
                (Place::Hidden, "a long alternative"),
                (Place::Fence, "ls <!-- no -->"),
                (Place::Hidden, "a comment of Markdown"),
            ]
        );
    }

    #[test]
    fn the_patterns_compile() {
        for pattern in [&ATTRIBUTES, &REFERENCES, &HIDDEN_ELEMENTS] {
            assert!(!pattern.is_match(""));
        }
    }
}
