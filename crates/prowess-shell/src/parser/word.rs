//! Parses words.

use crate::script::{Assignment, ShellScript, Word, WordPart};

use super::{ParseResult, Parser, ShellError};

impl Parser<'_> {
    /// Parses a word; `None` if none begins here.
    pub(super) fn word(&mut self) -> ParseResult<Option<Word>> {
        let mut parts = Vec::new();
        while let Some(next) = self.peek() {
            match next {
                b'<' | b'>' if self.rest()[1..].starts_with('(') => {
                    self.at += 2;
                    parts.push(WordPart::Process(self.substituted()?));
                }
                b'(' if begins_list(&parts) => {
                    self.at += 1;
                    parts.push(WordPart::List(self.with_nesting(Self::listed)?));
                }
                next if ends_word(next) => break,
                b'\'' => parts.push(self.single_quoted()?),
                b'"' => self.double_quoted(&mut parts)?,
                b'\\' => parts.extend(self.escaped()?),
                b'$' => self.dollar(false, &mut parts)?,
                b'`' => parts.push(self.backticks(false)?),
                _ => {
                    let end = self.rest().find(is_special).unwrap_or(self.rest().len());
                    push(&mut parts, WordPart::Plain(self.rest()[..end].to_owned()));
                    self.at += end;
                }
            }
        }
        Ok((!parts.is_empty()).then_some(Word(parts)))
    }

    /// Parses all of the text as if between double quotes.
    pub(super) fn quoted_text(mut self) -> ParseResult<Word> {
        let mut parts = Vec::new();
        self.quoted(None, &mut parts)?;
        Ok(Word(parts))
    }

    /// Parses the content of `$(…)`, including the closing parenthesis.
    fn substituted(&mut self) -> ParseResult<ShellScript> {
        let script = self.with_nesting(Self::list)?;
        self.expect(")")?;
        Ok(script)
    }

    /// Parses the words of a list up to its parenthesis.
    fn listed(&mut self) -> ParseResult<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.blank_lines();
            match self.word()? {
                Some(word) => words.push(word),
                None => {
                    self.expect(")")?;
                    return Ok(words);
                }
            }
        }
    }

    fn single_quoted(&mut self) -> ParseResult<WordPart> {
        self.at += 1;
        let Some(end) = self.rest().find('\'') else { return Err(self.open_quote()) };
        let text = &self.rest()[..end];
        self.lines(text)?;
        self.at += end + 1;
        Ok(WordPart::Quoted(text.to_owned()))
    }

    fn double_quoted(&mut self, parts: &mut Vec<WordPart>) -> ParseResult<()> {
        self.at += 1;
        // Empty quotes are a word too.
        parts.push(WordPart::Quoted(String::new()));
        self.quoted(Some(b'"'), parts)
    }

    /// Parses text between double quotes, up to the sign that ends it.
    fn quoted(&mut self, end: Option<u8>, parts: &mut Vec<WordPart>) -> ParseResult<()> {
        loop {
            match self.peek() {
                None if end.is_none() => return Ok(()),
                None => return Err(self.open_quote()),
                it if it == end => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'$') => self.dollar(true, parts)?,
                Some(b'`') => parts.push(self.backticks(true)?),
                Some(b'\\') => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        Some('\n') => self.inner_newline()?,
                        Some(c) if matches!(c, '$' | '`' | '\\') || (c == '"' && end.is_some()) => {
                            push(parts, WordPart::Quoted(c.to_string()));
                            self.at += 1;
                        }
                        _ => push(parts, WordPart::Quoted("\\".to_owned())),
                    }
                }
                Some(_) => {
                    let length = self
                        .rest()
                        .find(|c| matches!(c, '$' | '`' | '\\') || (c == '"' && end.is_some()))
                        .unwrap_or(self.rest().len());
                    let text = &self.rest()[..length];
                    self.lines(text)?;
                    // A quote in the text of a here-document is an ordinary character.
                    let length = length.max(1);
                    push(parts, WordPart::Quoted(self.rest()[..length].to_owned()));
                    self.at += length;
                }
            }
        }
    }

    /// Parses an escaped character; an escaped line end is removed.
    fn escaped(&mut self) -> ParseResult<Option<WordPart>> {
        self.at += 1;
        match self.rest().chars().next() {
            None => Ok(Some(WordPart::Quoted("\\".to_owned()))),
            Some('\n') => self.inner_newline().map(|()| None),
            Some(c) => {
                self.at += c.len_utf8();
                Ok(Some(WordPart::Quoted(c.to_string())))
            }
        }
    }

    /// Parses an expansion after its dollar sign.
    fn dollar(&mut self, is_quoted: bool, parts: &mut Vec<WordPart>) -> ParseResult<()> {
        self.at += 1;
        let rest = self.rest();
        if self.take("((") {
            parts.push(WordPart::Arithmetic(self.with_nesting(Self::arithmetic)?));
        } else if self.take("(") {
            parts.push(WordPart::Substitution { script: self.substituted()?, is_quoted });
        } else if self.take("{") {
            let variable = self.with_nesting(|it| it.braced(is_quoted))?;
            parts.push(variable);
        } else if rest.starts_with('\'') && !is_quoted {
            parts.push(self.ansi()?);
        } else if rest.starts_with('"') && !is_quoted {
            self.double_quoted(parts)?;
        } else {
            match name_length(rest) {
                0 => push(
                    parts,
                    if is_quoted {
                        WordPart::Quoted("$".into())
                    } else {
                        WordPart::Plain("$".into())
                    },
                ),
                length => {
                    self.at += length;
                    let name = rest[..length].to_owned();
                    parts.push(WordPart::Variable { name, is_quoted, rest: Vec::new() });
                }
            }
        }
        Ok(())
    }

    /// Parses `${…}` after its opening brace.
    fn braced(&mut self, is_quoted: bool) -> ParseResult<WordPart> {
        let start = self.at;
        // A sign precedes a name for its length or an indirection; a sign alone is a parameter.
        if matches!(self.peek(), Some(b'#' | b'!')) && name_length(&self.rest()[1..]) > 0 {
            self.at += 1;
        }
        let length = self.rest().bytes().take_while(|it| is_name_byte(*it)).count();
        self.at += if length > 0 { length } else { name_length(self.rest()) };
        let name = self.text[start..self.at].to_owned();
        if name.is_empty() {
            return Err(self.unexpected());
        }
        let is_default = self.rest().trim_start_matches(':').starts_with(['-', '+', '=', '?']);
        let mut rest = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.unexpected()),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(WordPart::Variable { name, is_quoted, rest });
                }
                Some(b'"') => self.double_quoted(&mut rest)?,
                Some(b'\'') if !is_quoted => rest.push(self.single_quoted()?),
                // Whether it quotes here depends on the shell.
                Some(b'\'') if !is_default => return Err(self.unexpected()),
                Some(b'\\') => rest.extend(self.escaped()?),
                Some(b'$') => self.dollar(is_quoted, &mut rest)?,
                Some(b'`') => rest.push(self.backticks(is_quoted)?),
                Some(b'\n') => {
                    self.inner_newline()?;
                    push(&mut rest, WordPart::Plain("\n".to_owned()));
                }
                Some(_) => self.one(&mut rest),
            }
        }
    }

    /// Parses an arithmetic expression, including its two closing parentheses.
    pub(super) fn arithmetic(&mut self) -> ParseResult<Vec<WordPart>> {
        let mut parts = Vec::new();
        let mut open = 0_usize;
        loop {
            match self.peek() {
                None => return Err(self.unexpected()),
                Some(b')') if open == 0 => {
                    self.expect("))")?;
                    return Ok(parts);
                }
                Some(b'$') => self.dollar(true, &mut parts)?,
                Some(b'`') => parts.push(self.backticks(true)?),
                Some(b'\\') => parts.extend(self.escaped()?),
                Some(b'\n') => self.inner_newline()?,
                Some(next) => {
                    open += usize::from(next == b'(');
                    open -= usize::from(next == b')');
                    self.one(&mut parts);
                }
            }
        }
    }

    /// Adds one character unchanged.
    fn one(&mut self, parts: &mut Vec<WordPart>) {
        if let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            push(parts, WordPart::Plain(c.to_string()));
        }
    }

    fn backticks(&mut self, is_quoted: bool) -> ParseResult<WordPart> {
        let line = self.line;
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else { return Err(self.open_quote()) };
            match c {
                '`' => break,
                '\n' => {
                    self.inner_newline()?;
                    text.push('\n');
                    continue;
                }
                '\\' => {
                    if let Some(next) = self.rest()[1..].chars().next()
                        && (matches!(next, '`' | '\\' | '$') || (next == '"' && is_quoted))
                    {
                        text.push(next);
                        self.at += 2;
                        continue;
                    }
                    text.push('\\');
                }
                c => text.push(c),
            }
            self.at += c.len_utf8();
        }
        self.at += 1;
        Ok(WordPart::Substitution { script: self.parse_nested(&text, line)?, is_quoted })
    }

    /// Parses `$'…'`.
    fn ansi(&mut self) -> ParseResult<WordPart> {
        self.at += 1;
        let rest = self.rest();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next() {
                None => return Err(self.open_quote()),
                Some((at, '\'')) => break at,
                Some((_, '\\')) => drop(chars.next()),
                Some(_) => {}
            }
        };
        let text = &rest[..end];
        self.lines(text)?;
        self.at += end + 1;
        Ok(WordPart::Quoted(unescape(text)))
    }

    /// Counts the lines of a text inside a word, which the caller skips.
    fn lines(&mut self, text: &str) -> ParseResult<()> {
        let lines = text.matches('\n').count();
        if lines > 0 {
            let at = self.at;
            self.inner_newline()?;
            self.at = at;
            self.line += lines - 1;
        }
        Ok(())
    }

    fn open_quote(&self) -> ShellError {
        self.error("a quote is not closed")
    }
}

/// Converts a word to an assignment, if it is one.
pub(super) fn assignment(word: &Word) -> Option<Assignment> {
    let (WordPart::Plain(first), behind) = word.0.split_first()? else { return None };
    let (left, right) = first.split_once('=')?;
    let (left, appends) = left.strip_suffix('+').map_or((left, false), |it| (it, true));
    let name = left.split('[').next().unwrap_or_default();
    if !is_name(name) || (left != name && !left.ends_with(']')) {
        return None;
    }
    let value = match behind {
        [WordPart::List(words)] if right.is_empty() => words.clone(),
        behind => {
            let start = (!right.is_empty()).then(|| WordPart::Plain(right.to_owned()));
            vec![Word(start.into_iter().chain(behind.iter().cloned()).collect())]
        }
    };
    Some(Assignment { name: name.to_owned(), appends, value })
}

/// Whether a text can name a variable.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|it| !it.is_ascii_digit()) && text.bytes().all(is_name_byte)
}

/// Whether an unquoted byte ends a word.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

fn is_special(c: char) -> bool {
    matches!(c, '\'' | '"' | '\\' | '$' | '`') || u8::try_from(c).is_ok_and(ends_word)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns the length of the name that begins here: of a variable, or of a special parameter.
fn name_length(text: &str) -> usize {
    match text.bytes().next() {
        Some(it) if it.is_ascii_digit() || b"@*#?-$!".contains(&it) => 1,
        _ => text.bytes().take_while(|it| is_name_byte(*it)).count(),
    }
}

/// Whether the text before a parenthesis makes it a list.
fn begins_list(parts: &[WordPart]) -> bool {
    let [WordPart::Plain(text)] = parts else { return false };
    let Some(name) = text.strip_suffix('=') else { return false };
    is_name(name.strip_suffix('+').unwrap_or(name))
}

/// Adds a part, or appends it to the previous one of the same kind.
fn push(parts: &mut Vec<WordPart>, part: WordPart) {
    match (parts.last_mut(), part) {
        (Some(WordPart::Plain(text)), WordPart::Plain(more)) => text.push_str(&more),
        (Some(WordPart::Quoted(text)), WordPart::Quoted(more)) => text.push_str(&more),
        (_, part) => parts.push(part),
    }
}

/// Decodes the text of `$'…'`.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = rest.next() else { break };
        let mut digits = |radix: u32, most: usize, start: &str| {
            let mut text = start.to_owned();
            while text.len() < most {
                let Some(digit) = rest.clone().next().filter(|it| it.is_digit(radix)) else {
                    break;
                };
                text.push(digit);
                rest.next();
            }
            u32::from_str_radix(&text, radix).ok().and_then(char::from_u32)
        };
        let decoded = match kind {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\x07'),
            'b' => Some('\x08'),
            'e' | 'E' => Some('\x1b'),
            'f' => Some('\x0c'),
            'v' => Some('\x0b'),
            'x' => digits(16, 2, ""),
            'u' => digits(16, 4, ""),
            'U' => digits(16, 8, ""),
            '0'..='7' => digits(8, 3, &kind.to_string()),
            'c' => rest.next().and_then(|it| u8::try_from(it).ok()).map(|it| char::from(it & 0x1f)),
            other => Some(other),
        };
        match decoded {
            // A shell ends the text there.
            Some('\0') => break,
            Some(decoded) => out.push(decoded),
            None => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    out
}
