//! The reader: parses the lines of a frontmatter into fields.
//!
//! It rejects rather than guesses: anything that a YAML library might read differently is
//! [`UnsupportedYaml`], never a value.

use std::{borrow::Cow, error::Error, fmt, ops::Range};

use crate::{
    scan,
    split::{Lines, line_length},
    value::{Field, Scalar, Style, Value},
};

/// The maximum nesting of collections.
const MAX_DEPTH: usize = 16;
/// The maximum number of values.
const MAX_VALUES: usize = 2048;
/// The maximum length of a key in bytes; the limit of YAML itself is 1024 characters.
pub(crate) const MAX_KEY: usize = 512;

/// The frontmatter contains something that this reader leaves to a YAML library, or that is not
/// YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedYaml {
    /// The line, counted from 1 within the frontmatter.
    pub line: usize,
    /// A description for users.
    pub what: &'static str,
}

impl fmt::Display for UnsupportedYaml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in line {}", self.what, self.line)
    }
}

impl Error for UnsupportedYaml {}

/// Parses the fields of a frontmatter, in the order written and with duplicates kept.
pub fn read(text: &str) -> Result<Vec<Field<'_>>, UnsupportedYaml> {
    let mut reader = Reader { text, at: 0, line_end: 0, line: 1, end: 0, depth: 0, values: 0 };
    reader.begin_line(0);
    if let Some(what) = scan::find_forbidden(text) {
        return reader.refuse(what);
    }
    let fields = match reader.indent()? {
        None => Vec::new(),
        Some(0) => reader.map(0, MapStart::LineStart)?,
        Some(_) => return reader.refuse("the first key is indented"),
    };
    match reader.indent()? {
        None => Ok(fields),
        Some(_) => reader.refuse("not a `key: value` line"),
    }
}

/// Whether a map begins at the start of a line or within one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MapStart {
    LineStart,
    Inline,
}

/// The owner of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Key,
    Item,
}

type ReadResult<T> = Result<T, UnsupportedYaml>;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The end of the current line.
    line_end: usize,
    line: usize,
    /// The end of the last token, without blanks and comments after it.
    end: usize,
    depth: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    fn count(&mut self) -> ReadResult<()> {
        self.values += 1;
        if self.values > MAX_VALUES { self.refuse("too many values") } else { Ok(()) }
    }

    fn refuse<T>(&self, what: &'static str) -> ReadResult<T> {
        Err(UnsupportedYaml { line: self.line, what })
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Returns the rest of the current line, without its line end.
    fn rest(&self) -> &'a str {
        &self.text[self.at..self.line_end]
    }

    /// Moves to `at`, in a line that was not visited yet.
    fn begin_line(&mut self, at: usize) {
        self.at = at;
        self.line_end = at + line_length(&self.text[at..]);
    }

    fn skip_blanks(&mut self) {
        while matches!(self.byte(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn next_line(&mut self) {
        let behind = &self.text.as_bytes()[self.line_end..];
        let ending = match behind {
            [] => 0,
            [b'\r', b'\n', ..] => 2,
            _ => 1,
        };
        self.begin_line(self.line_end + ending);
        self.line += 1;
    }

    /// Moves to the start of the next line with content, and returns its indentation.
    fn indent(&mut self) -> ReadResult<Option<usize>> {
        while self.at < self.text.len() {
            let line = self.rest();
            let content = line.trim_start_matches(' ');
            let indent = line.len() - content.len();
            if content.starts_with('\t') && !content.trim_start().is_empty() {
                return self.refuse("a tab in the indentation");
            }
            if !content.trim_start().is_empty() && !content.starts_with('#') {
                return Ok(Some(indent));
            }
            self.next_line();
        }
        Ok(None)
    }

    /// Leaves the line of a complete value: only a comment may follow it.
    fn finish_line(&mut self) -> ReadResult<()> {
        self.end = self.at;
        let rest = self.rest();
        let trimmed = rest.trim_start_matches([' ', '\t']);
        if !trimmed.is_empty() && (!trimmed.starts_with('#') || trimmed.len() == rest.len()) {
            return self.refuse("text after the end of a value");
        }
        self.next_line();
        Ok(())
    }

    fn with_nesting<T>(&mut self, read: impl FnOnce(&mut Self) -> ReadResult<T>) -> ReadResult<T> {
        if self.depth == MAX_DEPTH {
            return self.refuse("nested too deep");
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Parses the fields whose keys are at column `indent`.
    fn map(&mut self, indent: usize, mut entry: MapStart) -> ReadResult<Vec<Field<'a>>> {
        // Most frontmatters have fewer than eight fields, and growing costs more than spare
        // capacity.
        let mut fields = Vec::with_capacity(if indent == 0 { 8 } else { 4 });
        loop {
            if entry == MapStart::LineStart {
                match self.indent()? {
                    Some(column) if column == indent => self.at += indent,
                    Some(column) if column > indent => {
                        return self.refuse("indented deeper than its siblings");
                    }
                    _ => return Ok(fields),
                }
            }
            if indent > 0 && entry == MapStart::LineStart && self.at_item() {
                // A list item instead of a key ends the map; the caller reports the error.
                self.at -= indent;
                return Ok(fields);
            }
            entry = MapStart::LineStart;
            let line = self.line;
            let (key, key_span) = self.key(indent)?;
            let colon = self.at;
            let (value, start) = self.value(indent, Holder::Key)?;
            let span = start.map_or(colon..colon, |start| start..self.end.max(start));
            fields.push(Field { key, value, line, key_span, span });
            self.count()?;
        }
    }

    /// Parses a key and its colon.
    fn key(&mut self, column: usize) -> ReadResult<(Cow<'a, str>, Range<usize>)> {
        let start = self.at;
        let (key, length, colon) = match self.byte(0) {
            Some(b'"' | b'\'') => {
                let quoted = scan::quoted(self.text, self.at, 0);
                let Some(quoted) = quoted.filter(|it| it.lines == 0) else {
                    return self.refuse("an unclosed quote in a key");
                };
                let length = quoted.end - start;
                let behind = self.text[quoted.end..].trim_start_matches([' ', '\t']);
                (quoted.text, length, self.text.len() - behind.len())
            }
            _ => {
                let rest = self.rest();
                let Some(colon) = scan::key_colon(rest) else {
                    return self.refuse("not a `key: value` line");
                };
                let key = rest[..colon].trim_end_matches([' ', '\t']);
                if column == 0 && (key.starts_with("---") || key.starts_with("...")) {
                    return self.refuse("a document marker");
                }
                if key == "<<" {
                    return self.refuse("a merge key");
                }
                if !scan::can_start_plain(key) {
                    return self.refuse("a key that begins with a YAML indicator");
                }
                (Cow::Borrowed(key), key.len(), start + colon)
            }
        };
        let ends = matches!(
            self.text.as_bytes().get(colon + 1),
            None | Some(b' ' | b'\t' | b'\n' | b'\r')
        );
        if self.text.as_bytes().get(colon) != Some(&b':') || !ends {
            return self.refuse("a key without a colon and a space after it");
        }
        if length > MAX_KEY {
            return self.refuse("a key that is too long");
        }
        self.at = colon + 1;
        Ok((key, start..start + length))
    }

    /// Parses the value after a colon or a dash; returns it with its start, if there is one.
    fn value(&mut self, parent: usize, holder: Holder) -> ReadResult<(Value<'a>, Option<usize>)> {
        self.skip_blanks();
        let rest = self.rest();
        let spaced = matches!(self.text.as_bytes()[self.at - 1], b' ' | b'\t');
        let empty = rest.is_empty() || (rest.starts_with('#') && spaced);
        if !empty {
            let start = self.at;
            return Ok((self.inline(parent)?, Some(start)));
        }
        self.end = self.at;
        self.next_line();
        match self.indent()? {
            Some(column) if column > parent => self.nested(parent, column),
            // The list of a key may have the same indentation as the key.
            Some(column) if column == parent && holder == Holder::Key => {
                self.at += column;
                let (start, item) = (self.at, self.at_item());
                self.at -= column;
                if !item {
                    return Ok((Value::Empty, None));
                }
                Ok((self.with_nesting(|it| it.list(column))?, Some(start)))
            }
            _ => Ok((Value::Empty, None)),
        }
    }

    /// Parses the value that begins at `column` of this line.
    fn nested(&mut self, parent: usize, column: usize) -> ReadResult<(Value<'a>, Option<usize>)> {
        self.at += column;
        let start = self.at;
        let value = if self.at_item() {
            self.at -= column;
            self.with_nesting(|it| it.list(column))?
        } else if self.at_key() {
            Value::Map(self.with_nesting(|it| it.map(column, MapStart::Inline))?)
        } else {
            self.inline(parent)?
        };
        Ok((value, Some(start)))
    }

    fn at_item(&self) -> bool {
        self.byte(0) == Some(b'-')
            && matches!(self.byte(1), None | Some(b' ' | b'\t' | b'\n' | b'\r'))
    }

    /// Whether a key and a colon follow.
    fn at_key(&self) -> bool {
        match self.byte(0) {
            Some(b'"' | b'\'') => scan::quoted(self.text, self.at, 0).is_some_and(|quoted| {
                let behind = self.text[quoted.end..].trim_start_matches([' ', '\t']);
                quoted.lines == 0 && behind.starts_with(':')
            }),
            Some(b'[' | b'{' | b'|' | b'>') => false,
            _ => scan::key_colon(self.rest()).is_some(),
        }
    }

    /// Parses the items whose dashes are at column `indent`.
    fn list(&mut self, indent: usize) -> ReadResult<Value<'a>> {
        let mut items = Vec::new();
        loop {
            match self.indent()? {
                Some(column) if column == indent => self.at += indent,
                Some(column) if column > indent => {
                    return self.refuse("indented deeper than its siblings");
                }
                _ => return Ok(Value::List(items)),
            }
            if !self.at_item() {
                self.at -= indent;
                return Ok(Value::List(items));
            }
            self.count()?;
            let dash = self.at;
            self.at += 1;
            self.skip_blanks();
            let rest = self.rest();
            if rest.is_empty() || rest.starts_with('#') {
                self.at = dash + 1;
                items.push(self.value(indent, Holder::Item)?.0);
            } else if self.text[dash..self.at].contains('\t') || self.at_item() {
                return self.refuse("a list within a list item");
            } else if self.at_key() {
                let column = indent + self.at - dash;
                items.push(Value::Map(self.with_nesting(|it| it.map(column, MapStart::Inline))?));
            } else {
                items.push(self.inline(indent)?);
            }
        }
    }

    /// Parses a scalar or flow collection that begins here, inside something indented by `parent`.
    fn inline(&mut self, parent: usize) -> ReadResult<Value<'a>> {
        match self.byte(0) {
            Some(b'|' | b'>') => self.block(parent),
            Some(b'"' | b'\'') => {
                let value = self.quoted(parent)?;
                self.finish_line()?;
                Ok(value)
            }
            Some(b'[' | b'{') => {
                let value = self.flow(parent)?;
                self.finish_line()?;
                Ok(value)
            }
            _ if scan::can_start_plain(self.rest()) => self.plain(parent),
            _ => self.refuse("a value that begins with a YAML indicator"),
        }
    }

    fn quoted(&mut self, parent: usize) -> ReadResult<Value<'a>> {
        let Some(quoted) = scan::quoted(self.text, self.at, parent + 1) else {
            return self.refuse("an unclosed quote or an invalid escape in a value");
        };
        match quoted.lines {
            0 => self.at = quoted.end,
            lines => {
                self.begin_line(quoted.end);
                self.line += lines;
            }
        }
        Ok(scalar(quoted.text, Style::Quoted))
    }

    /// Parses a plain scalar, which may continue over lines that are indented deeper than `parent`.
    fn plain(&mut self, parent: usize) -> ReadResult<Value<'a>> {
        let (first, mut commented) = self.plain_line()?;
        let mut text = Cow::Borrowed(first);
        loop {
            let mut blank = 0;
            while self.at < self.text.len() && self.rest().trim().is_empty() {
                blank += 1;
                self.next_line();
            }
            match self.indent()? {
                Some(column) if column > parent => {
                    let line = self.rest();
                    // A comment ends a plain scalar; `indent` has skipped it if there was one.
                    let interrupted = commented || !self.follows_directly(blank);
                    if interrupted || line.trim_start().starts_with('#') {
                        return self.refuse("a comment inside a value of several lines");
                    }
                    self.at += column;
                    let (more, comment) = self.plain_line()?;
                    commented = comment;
                    let text = text.to_mut();
                    match blank {
                        0 => text.push(' '),
                        _ => (0..blank).for_each(|_| text.push('\n')),
                    }
                    text.push_str(more);
                }
                _ => return Ok(scalar(text, Style::Plain)),
            }
        }
    }

    /// Whether only `blank` empty lines are between the end of the last text and here.
    fn follows_directly(&self, blank: usize) -> bool {
        let between = Lines::new(&self.text[self.end..self.at]);
        between.skip(1).filter(|line| line.text.trim().is_empty()).count() == blank
            && !self.text[self.end..self.at].contains('#')
    }

    /// Parses one line of a plain scalar; returns it, and whether a comment ended it.
    fn plain_line(&mut self) -> ReadResult<(&'a str, bool)> {
        let Some(plain) = scan::plain(self.rest()) else {
            return self.refuse("a colon inside a value without quotes");
        };
        self.end = self.at + plain.text.len();
        self.next_line();
        Ok((plain.text, plain.commented))
    }

    /// Parses a block scalar: `|` or `>`, with its indicators.
    fn block(&mut self, parent: usize) -> ReadResult<Value<'a>> {
        let Some(header) = scan::block_header(self.rest()) else {
            return self.refuse("text after `|` or `>`");
        };
        let header_end = self.at + header.length;
        self.next_line();
        let Some(block) = scan::block(self.text, self.at, header, parent) else {
            return self.refuse("a block scalar with uneven indentation");
        };
        self.end = block.last.max(header_end);
        self.begin_line(block.end);
        self.line += block.lines;
        Ok(scalar(block.text, Style::Block))
    }

    /// Parses a flow collection, including its closing bracket.
    fn flow(&mut self, parent: usize) -> ReadResult<Value<'a>> {
        match self.byte(0) {
            Some(b'[') => self.with_nesting(|it| it.flow_list(parent)),
            Some(b'{') => self.with_nesting(|it| it.flow_map(parent)),
            Some(b'"' | b'\'') => self.quoted(parent),
            _ => {
                let Some(text) = scan::flow_plain(self.rest()) else {
                    return self.refuse("an unsupported value inside brackets");
                };
                self.at += text.len();
                Ok(scalar(Cow::Borrowed(text.trim_end_matches([' ', '\t'])), Style::Plain))
            }
        }
    }

    fn flow_list(&mut self, parent: usize) -> ReadResult<Value<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.flow_blanks(parent)?;
            if self.byte(0) == Some(b']') {
                self.at += 1;
                return Ok(Value::List(items));
            }
            items.push(self.flow(parent)?);
            self.count()?;
            self.flow_blanks(parent)?;
            self.flow_separator(b']')?;
        }
    }

    fn flow_map(&mut self, parent: usize) -> ReadResult<Value<'a>> {
        let mut fields = Vec::new();
        self.at += 1;
        loop {
            self.flow_blanks(parent)?;
            if self.byte(0) == Some(b'}') {
                self.at += 1;
                return Ok(Value::Map(fields));
            }
            let (line, start) = (self.line, self.at);
            let quoted = matches!(self.byte(0), Some(b'"' | b'\''));
            let Value::Scalar(key) = self.flow(parent)? else {
                return self.refuse("a collection as a key");
            };
            let key_span = start..start + self.text[start..self.at].trim_end().len();
            self.flow_blanks(parent)?;
            let spaced = matches!(self.byte(1), Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b'}'));
            if self.byte(0) != Some(b':') || !(quoted || spaced) || (key.text == "<<" && !quoted) {
                return self.refuse("a key without a value inside braces");
            }
            self.at += 1;
            self.flow_blanks(parent)?;
            let start = self.at;
            let value = match self.byte(0) {
                Some(b',' | b'}') => Value::Empty,
                _ => self.flow(parent)?,
            };
            let span = start..start + self.text[start..self.at].trim_end().len();
            fields.push(Field { key: key.text, value, line, key_span, span });
            self.count()?;
            self.flow_blanks(parent)?;
            self.flow_separator(b'}')?;
        }
    }

    fn flow_separator(&mut self, closing: u8) -> ReadResult<()> {
        match self.byte(0) {
            Some(b',') => self.at += 1,
            Some(byte) if byte == closing => {}
            _ => return self.refuse("an unclosed bracket"),
        }
        Ok(())
    }

    /// Skips blanks and line ends inside a flow collection.
    fn flow_blanks(&mut self, parent: usize) -> ReadResult<()> {
        loop {
            self.skip_blanks();
            if !matches!(self.byte(0), Some(b'\n' | b'\r')) {
                return Ok(());
            }
            self.next_line();
            match self.indent()? {
                Some(column) if column > parent => {}
                _ => return self.refuse("an unclosed bracket"),
            }
        }
    }
}

fn scalar(text: Cow<'_, str>, style: Style) -> Value<'_> {
    Value::Scalar(Scalar { text, style })
}

#[cfg(test)]
mod tests;
