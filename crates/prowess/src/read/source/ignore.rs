//! The patterns of a `.gitignore` that apply to folders.

use std::path::Path;

/// The maximum number of patterns read from a file.
const MAX_PATTERNS: usize = 2000;

/// The patterns of one `.gitignore`, in order.
#[derive(Debug, Default)]
pub(super) struct Ignore {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    /// Whether it re-includes what an earlier pattern ignores.
    is_exception: bool,
    segments: Vec<Segment>,
}

/// The part of a pattern between two slashes.
#[derive(Debug)]
enum Segment {
    /// `**`: any number of folders, and at least one at the end.
    Folders,
    Name(Vec<Token>),
}

#[derive(Debug)]
enum Token {
    /// `*`: any characters.
    Any,
    /// `?`: one character.
    One,
    Char(char),
    /// `[a-z]`: one of these, or with `[!a-z]` one that is not among them.
    Class {
        is_negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Ignore {
    /// Parses the patterns of a file.
    pub(super) fn new(text: &str) -> Self {
        Self { patterns: text.lines().filter_map(Pattern::new).take(MAX_PATTERNS).collect() }
    }

    /// Whether the last pattern that matches a folder, by its relative path, ignores it; `None` if
    /// no pattern matches.
    pub(super) fn decision(&self, path: &Path) -> Option<bool> {
        let names: Vec<String> = path.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        let last = self.patterns.iter().rev().find(|it| it.matches(&names));
        last.map(|it| !it.is_exception)
    }
}

impl Pattern {
    /// Parses a line; `None` for an empty one or a comment.
    fn new(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut line = line.trim_end_matches(' ');
        let escaped;
        if line.ends_with('\\') && !line.ends_with("\\\\") {
            // A space after a backslash belongs to the pattern.
            escaped = format!("{line} ");
            line = escaped.as_str();
        }
        let (is_exception, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        // Only folders are matched, so a trailing slash has no meaning.
        let body = line.strip_suffix('/').unwrap_or(line);
        let is_anchored = body.contains('/');
        let body = body.strip_prefix('/').unwrap_or(body);
        if body.is_empty() || line.starts_with('#') {
            return None;
        }
        let names = body.split('/').map(|it| match it {
            "**" => Segment::Folders,
            name => Segment::Name(tokens(name)),
        });
        let start = (!is_anchored).then_some(Segment::Folders);
        Some(Self { is_exception, segments: start.into_iter().chain(names).collect() })
    }

    fn matches(&self, names: &[String]) -> bool {
        // Whether the segments so far match the first `i` names.
        let mut reached = vec![false; names.len() + 1];
        reached[0] = true;
        for (number, segment) in self.segments.iter().enumerate() {
            let mut next = vec![false; names.len() + 1];
            match segment {
                Segment::Folders => {
                    let is_last = number + 1 == self.segments.len();
                    let mut is_reached = false;
                    for (at, next) in next.iter_mut().enumerate() {
                        *next = is_reached || reached[at] && !is_last;
                        is_reached |= reached[at];
                    }
                }
                Segment::Name(tokens) => {
                    for (at, name) in names.iter().enumerate() {
                        next[at + 1] = reached[at] && matches_name(tokens, name);
                    }
                }
            }
            reached = next;
        }
        reached[names.len()]
    }
}

fn tokens(name: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = name.chars();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            '*' => Token::Any,
            '?' => Token::One,
            '\\' => Token::Char(rest.next().unwrap_or('\\')),
            '[' => match class(rest.as_str()) {
                Some((class, behind)) => {
                    rest = behind.chars();
                    class
                }
                None => Token::Char('['),
            },
            c => Token::Char(c),
        });
    }
    tokens
}

/// Parses a class after its `[`; also returns the text after its `]`.
fn class(text: &str) -> Option<(Token, &str)> {
    let (is_negated, text) = match text.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // A bracket at the start is one of the characters.
    let first = text.chars().next()?.len_utf8();
    let end = first + text[first..].find(']')?;
    let characters: Vec<char> = text[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&low) = characters.get(at) {
        match (characters.get(at + 1), characters.get(at + 2)) {
            (Some('-'), Some(&high)) => {
                ranges.push((low, high));
                at += 3;
            }
            _ => {
                ranges.push((low, low));
                at += 1;
            }
        }
    }
    Some((Token::Class { is_negated, ranges }, &text[end + 1..]))
}

/// Whether a name matches; each `*` is retried only until the next one, so that it stays fast.
fn matches_name(tokens: &[Token], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut token, mut at) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while at < name.len() {
        match tokens.get(token) {
            Some(Token::Any) => {
                again = Some((token + 1, at));
                token += 1;
            }
            Some(one) if one.matches(name[at]) => {
                token += 1;
                at += 1;
            }
            _ => {
                let Some((behind, from)) = again else { return false };
                again = Some((behind, from + 1));
                (token, at) = (behind, from + 1);
            }
        }
    }
    tokens[token..].iter().all(|it| matches!(it, Token::Any))
}

impl Token {
    /// Whether it matches this character.
    fn matches(&self, c: char) -> bool {
        match self {
            Self::Any => false,
            Self::One => true,
            Self::Char(own) => *own == c,
            Self::Class { is_negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *is_negated
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(text: &str, path: &str) -> Option<bool> {
        Ignore::new(text).decision(Path::new(path))
    }

    #[test]
    fn patterns_match_as_git_says() {
        for (pattern, path) in [
            ("build", "build"),
            ("build", "a/b/build"),
            ("build/", "a/build"),
            ("/build", "build"),
            ("a/b", "a/b"),
            ("*.egg-info", "x/y.egg-info"),
            ("**/cache", "cache"),
            ("**/cache", "a/b/cache"),
            ("a/**", "a/b"),
            ("a/**", "a/b/c"),
            ("a/**/c", "a/c"),
            ("a/**/c", "a/x/y/c"),
            ("tmp?", "tmp1"),
            ("[Bb]in", "Bin"),
            ("v[0-9]", "v7"),
            ("[!a]x", "bx"),
            ("\\#x", "#x"),
            ("\\!x", "!x"),
            ("build  ", "build"),
            ("x\\ ", "x "),
            ("build\r", "build"),
            ("*", "anything"),
            ("[", "["),
        ] {
            assert_eq!(decision(pattern, path), Some(true), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/build", "a/build"),
            ("a/b", "x/a/b"),
            ("a/**", "a"),
            ("build", "rebuild"),
            ("*", "a/"),
            ("a*c", "ab"),
            ("# build", "build"),
            ("", "build"),
            ("/", "build"),
            ("[!a]x", "ax"),
            ("tmp?", "tmp"),
        ] {
            let expected = (pattern == "*").then_some(true);
            assert_eq!(decision(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn the_last_pattern_decides() {
        assert_eq!(decision("out*\n!output", "output"), Some(false));
        assert_eq!(decision("!output\nout*", "output"), Some(true));
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let stars = "*a".repeat(2000);
        assert_eq!(decision(&stars, &"a".repeat(250)), None);
        let folders = "**/".repeat(500) + "x";
        assert_eq!(decision(&folders, &"a/".repeat(100)), None);
    }
}
