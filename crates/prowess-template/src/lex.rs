//! Splits a template into tokens, on demand.

use std::{borrow::Cow, fmt};

use crate::{
    format::unicode,
    quote::quote,
    unicode::{first_runes, is_alphanumeric},
};

const LEFT: &str = "{{";
const RIGHT: &str = "}}";

/// A token of a template.
#[derive(Debug, Clone)]
pub(crate) struct Token<'t> {
    pub(crate) kind: Kind,
    /// The source text; for an error, its message.
    pub(crate) text: Cow<'t, str>,
    /// The position in bytes.
    pub(crate) position: usize,
    /// The line it begins on, from 1.
    pub(crate) line: usize,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Error,
    End,
    Text,
    LeftDelimiter,
    RightDelimiter,
    Space,
    LeftParen,
    RightParen,
    Pipe,
    Assign,
    Declare,
    /// Any other printable ASCII character.
    Mark,
    Bool,
    Character,
    Complex,
    Number,
    Quoted,
    Field,
    Variable,
    Identifier,
    /// A keyword of the language, including `nil` and the lone `.`.
    Keyword,
}

const KEYWORDS: &[&str] = &[
    ".", "block", "break", "continue", "define", "else", "end", "if", "nil", "range", "template",
    "with",
];

/// Returns the tokens of a template, one after the other.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    /// The start of the next token.
    start: usize,
    /// The end of the text read so far.
    at: usize,
    /// The line of `start`.
    line: usize,
    inside_action: bool,
    parens: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, start: 0, at: 0, line: 1, inside_action: false, parens: 0 }
    }

    /// Returns the next token; after an error only the end follows.
    pub(crate) fn next(&mut self) -> Token<'t> {
        let token = if self.inside_action { self.action() } else { self.text() };
        token.unwrap_or_else(|message| {
            let token = Token {
                kind: Kind::Error,
                text: message.into(),
                position: self.start,
                line: self.line,
            };
            (self.text, self.start, self.at, self.inside_action) = ("", 0, 0, false);
            token
        })
    }

    /// Reads up to the next action, over comments.
    fn text(&mut self) -> Result<Token<'t>, String> {
        loop {
            let Some(length) = self.rest().find(LEFT) else {
                self.at = self.text.len();
                let kind = if self.at > self.start { Kind::Text } else { Kind::End };
                return Ok(self.take(kind));
            };
            let delimiter = self.at + length;
            let trims = has_left_marker(&self.text[delimiter + LEFT.len()..]);
            let text = &self.text[self.start..delimiter];
            self.at += if trims { text.trim_end_matches(is_space).len() } else { length };
            if self.at > self.start {
                let token = self.take(Kind::Text);
                self.skip_to(delimiter);
                return Ok(token);
            }
            self.skip_to(delimiter);
            let inside = delimiter + LEFT.len() + if trims { 2 } else { 0 };
            if !self.text[inside..].starts_with("/*") {
                self.at = delimiter + LEFT.len();
                let token = self.take(Kind::LeftDelimiter);
                self.skip_to(inside);
                (self.inside_action, self.parens) = (true, 0);
                return Ok(token);
            }
            self.skip_to(inside);
            self.comment()?;
        }
    }

    fn comment(&mut self) -> Result<(), String> {
        let length = self.text[self.at + 2..].find("*/").ok_or("unclosed comment")?;
        self.at += 2 + length + 2;
        let trims = self.right_delimiter().ok_or("comment ends before closing delimiter")?;
        self.leave(trims);
        Ok(())
    }

    /// Reads one token of an action.
    fn action(&mut self) -> Result<Token<'t>, String> {
        if let Some(trims) = self.right_delimiter() {
            if self.parens > 0 {
                return Err("unclosed left paren".into());
            }
            if trims {
                self.skip_to(self.at + 2);
            }
            self.at += RIGHT.len();
            let token = self.take(Kind::RightDelimiter);
            if trims {
                self.skip_to(self.at + leading_space(self.rest()));
            }
            self.inside_action = false;
            return Ok(token);
        }
        let Some(c) = self.advance() else { return Err("unclosed action".into()) };
        match c {
            _ if is_space(c) => Ok(self.space()),
            '=' => Ok(self.take(Kind::Assign)),
            ':' if self.advance() == Some('=') => Ok(self.take(Kind::Declare)),
            ':' => Err("expected :=".into()),
            '|' => Ok(self.take(Kind::Pipe)),
            '"' => self.quoted('"', Kind::Quoted, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::Character, "unterminated character constant"),
            '`' => match self.rest().find('`') {
                Some(length) => {
                    self.at += length + 1;
                    Ok(self.take(Kind::Quoted))
                }
                None => Err("unterminated raw quoted string".into()),
            },
            '$' => self.name(Kind::Variable),
            '.' if self.peek().is_some_and(|it| !it.is_ascii_digit()) => self.name(Kind::Field),
            '.' | '+' | '-' | '0'..='9' => self.number(),
            _ if is_alphanumeric(c) => self.name(Kind::Identifier),
            '(' => {
                self.parens += 1;
                Ok(self.take(Kind::LeftParen))
            }
            ')' if self.parens == 0 => Err("unexpected right paren".into()),
            ')' => {
                self.parens -= 1;
                Ok(self.take(Kind::RightParen))
            }
            '!'..='~' => Ok(self.take(Kind::Mark)),
            _ => Err(format!("unrecognized character in action: {}", unicode(c))),
        }
    }

    /// Reads spaces, except the one that belongs to a trim marker.
    fn space(&mut self) -> Token<'t> {
        self.at = self.start + leading_space(&self.text[self.start..]);
        let last = self.at - 1;
        if has_right_marker(&self.text[last..]) && last > self.start {
            self.at = last;
        }
        self.take(Kind::Space)
    }

    fn quoted(&mut self, quote: char, kind: Kind, open: &str) -> Result<Token<'t>, String> {
        loop {
            match self.advance() {
                Some('\\') if self.advance().is_some_and(|it| it != '\n') => {}
                None | Some('\n' | '\\') => return Err(open.into()),
                Some(c) if c == quote => return Ok(self.take(kind)),
                Some(_) => {}
            }
        }
    }

    /// Reads the rest of a name after its first character.
    fn name(&mut self, kind: Kind) -> Result<Token<'t>, String> {
        while self.peek().is_some_and(is_alphanumeric) {
            self.advance();
        }
        if let Some(c) = self.peek().filter(|_| !self.at_terminator()) {
            return Err(format!("bad character {}", unicode(c)));
        }
        Ok(self.take(match &self.text[self.start..self.at] {
            word if KEYWORDS.contains(&word) => Kind::Keyword,
            "true" | "false" => Kind::Bool,
            _ => kind,
        }))
    }

    /// Whether a name may end here.
    fn at_terminator(&self) -> bool {
        self.peek().is_none_or(|c| is_space(c) || matches!(c, '.' | ',' | '|' | ':' | ')' | '('))
            || self.rest().starts_with(RIGHT)
    }

    /// Reads the rest of a number after its first character. The parser checks whether it is valid.
    fn number(&mut self) -> Result<Token<'t>, String> {
        self.at = self.start;
        let mut well = self.scan_number();
        let complex = well && matches!(self.peek(), Some('+' | '-'));
        if complex {
            well = self.scan_number() && self.text[..self.at].ends_with('i');
        }
        if !well {
            let text = &self.text[self.start..self.at];
            return Err(format!("bad number syntax: {}", quote(text.as_bytes())));
        }
        Ok(self.take(if complex { Kind::Complex } else { Kind::Number }))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let digits = match self.accept("0") {
            true if self.accept("xX") => "0123456789abcdefABCDEF_",
            true if self.accept("oO") => "01234567_",
            true if self.accept("bB") => "01_",
            _ => "0123456789_",
        };
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits.len() {
            11 => "eE",
            23 => "pP",
            _ => "",
        };
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        let ends = !self.peek().is_some_and(is_alphanumeric);
        if !ends {
            self.advance();
        }
        ends
    }

    fn accept_run(&mut self, set: &str) {
        while self.accept(set) {}
    }

    fn accept(&mut self, set: &str) -> bool {
        let accepted = self.peek().is_some_and(|it| set.contains(it));
        if accepted {
            self.advance();
        }
        accepted
    }

    /// Whether an action ends here, and if so, whether it trims the text after it.
    fn right_delimiter(&self) -> Option<bool> {
        let trims = has_right_marker(self.rest());
        (trims || self.rest().starts_with(RIGHT)).then_some(trims)
    }

    /// Skips the delimiter at the end of a comment.
    fn leave(&mut self, trims: bool) {
        let behind = self.at + RIGHT.len() + if trims { 2 } else { 0 };
        let space = if trims { leading_space(&self.text[behind..]) } else { 0 };
        self.skip_to(behind + space);
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Returns the text read so far as a token.
    fn take(&mut self, kind: Kind) -> Token<'t> {
        let text = &self.text[self.start..self.at];
        let token = Token { kind, text: text.into(), position: self.start, line: self.line };
        self.skip_to(self.at);
        token
    }

    fn skip_to(&mut self, at: usize) {
        self.line += self.text[self.start..at].matches('\n').count();
        (self.start, self.at) = (at, at);
    }
}

impl Token<'_> {
    pub(crate) fn is_keyword(&self, word: &str) -> bool {
        self.kind == Kind::Keyword && self.text == word
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.text.as_bytes();
        match self.kind {
            Kind::End => f.write_str("EOF"),
            Kind::Error => f.write_str(&self.text),
            Kind::Keyword => write!(f, "<{}>", self.text),
            _ if bytes.len() > 10 => write!(f, "{}...", quote(first_runes(bytes, 10))),
            _ => f.write_str(&quote(bytes)),
        }
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn leading_space(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_space).len()
}

/// Whether the text after a left delimiter begins with a trim marker.
fn has_left_marker(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|it| it.starts_with(is_space))
}

/// Whether a right delimiter with a trim marker is here: a space and a minus before it.
fn has_right_marker(text: &str) -> bool {
    let rest = text.strip_prefix(is_space).and_then(|it| it.strip_prefix('-'));
    rest.is_some_and(|it| it.starts_with(RIGHT))
}
