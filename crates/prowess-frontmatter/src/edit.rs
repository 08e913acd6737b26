//! Edits in place: one key changes, every other byte stays the same.

use std::{borrow::Cow, error::Error, fmt, ops::Range};

use crate::{
    read::{MAX_KEY, UnsupportedYaml, read},
    split::{Block, Lines, split},
    value::{Field, Kind, Value},
    write::{double_quote, inline, one_line, scalar},
};

/// An edit was not made; the text is unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditError {
    /// The text has no frontmatter.
    NoFrontmatter,
    /// The frontmatter could not be parsed, so editing it is not safe.
    Unreadable(UnsupportedYaml),
    /// There is no such key.
    NoSuchKey,
    /// The key already exists, or occurs twice.
    KeyTaken,
    /// The key exceeds the maximum length.
    KeyTooLong,
    /// The value is not a text that can be moved, or the target has no lines of its own.
    NotMovable,
}

impl Error for EditError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable(unsupported) => Some(unsupported),
            Self::NoFrontmatter
            | Self::NoSuchKey
            | Self::KeyTaken
            | Self::KeyTooLong
            | Self::NotMovable => None,
        }
    }
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFrontmatter => f.write_str("the text has no frontmatter"),
            Self::Unreadable(_) => {
                f.write_str("the frontmatter cannot be read, so it is not edited")
            }
            Self::NoSuchKey => f.write_str("there is no such key"),
            Self::KeyTaken => f.write_str("the key already exists"),
            Self::KeyTooLong => f.write_str("the key is too long"),
            Self::NotMovable => f.write_str("the value cannot be moved"),
        }
    }
}

/// Sets the top-level `key` to `value`, written on one line; a new key comes last.
pub fn set(text: &str, key: &str, value: &Value<'_>) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let Some(field) = find_unique(&fields, key)? else {
        let end = block.start + block.text.len();
        return Ok(splice(text, &[(end..end, &new_line(text, key, value)?)]));
    };
    Ok(with_value(text, block, field, value))
}

/// Sets `key` in the top-level map `under`, written on one line; a new key comes last, and the map
/// is created if it is missing.
pub fn set_within(
    text: &str,
    under: &str,
    key: &str,
    value: &Value<'_>,
) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let line = new_line(text, key, value)?;
    let Some(map) = find_unique(&fields, under)? else {
        let end = block.start + block.text.len();
        let made = [&new_key(under)?, ":", line_end(text), &indent(&line, 2)].concat();
        return Ok(splice(text, &[(end..end, &made)]));
    };
    let inner = lines_of(text, block, map)?;
    if let Some(field) = find_unique(inner, key)? {
        return Ok(with_value(text, block, field, value));
    }
    let column = column(block, &inner[0]);
    let at = line_after(text, block.start + map.span.end);
    Ok(splice(text, &[(at..at, &indent(&line, column))]))
}

/// Removes `key` from the top-level map `under`, and the map with its last key.
pub fn remove_within(text: &str, under: &str, key: &str) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let map = find_unique(&fields, under)?.ok_or(EditError::NoSuchKey)?;
    let inner = lines_of(text, block, map)?;
    let field = find_unique(inner, key)?.ok_or(EditError::NoSuchKey)?;
    if inner.len() == 1 {
        return remove(text, under);
    }
    let start = line_start(text, block.start + field.key_span.start);
    let end = block.start + field.span.end.max(field.key_span.end);
    Ok(splice(text, &[(start..line_after(text, end), "")]))
}

/// Returns the fields of a map with a line for each; a map in braces has no lines to edit.
fn lines_of<'f, 'a>(
    text: &str,
    block: Block<'_>,
    map: &'f Field<'a>,
) -> Result<&'f [Field<'a>], EditError> {
    match &map.value {
        Value::Map(inner)
            if !inner.is_empty() && !text[block.start + map.span.start..].starts_with('{') =>
        {
            Ok(inner)
        }
        _ => Err(EditError::NotMovable),
    }
}

fn column(block: Block<'_>, field: &Field<'_>) -> usize {
    field.key_span.start - line_start(block.text, field.key_span.start)
}

/// Writes a value on one line.
fn on_one_line(value: &Value<'_>) -> String {
    match value {
        Value::Scalar(it) => one_line(it).into_owned(),
        other => inline(other),
    }
}

/// Returns the line of a new key.
fn new_line(text: &str, key: &str, value: &Value<'_>) -> Result<String, EditError> {
    let (key, written) = (new_key(key)?, on_one_line(value));
    let separator = if written.is_empty() { "" } else { " " };
    Ok(format!("{key}:{separator}{written}{}", line_end(text)))
}

/// Returns the text with a new value of a field.
fn with_value(text: &str, block: Block<'_>, field: &Field<'_>, value: &Value<'_>) -> String {
    let written = on_one_line(value);
    let colon = block.start + colon_end(block.text, field);
    let span = block.start + field.span.start..block.start + field.span.end;
    let same_line = !text[colon..span.start].contains(['\n', '\r']);
    if span.is_empty() {
        return splice(text, &[(colon..colon, &format!(" {written}"))]);
    }
    if same_line {
        return splice(text, &[(span, &written)]);
    }
    // The old value is on lines of its own; a comment may follow the colon.
    let lines = line_start(text, span.start)..line_after(text, span.end);
    splice(text, &[(colon..colon, &format!(" {written}")), (lines, "")])
}

/// Removes the top-level `key`, with the lines of its value.
pub fn remove(text: &str, key: &str) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let field = find_unique(&fields, key)?.ok_or(EditError::NoSuchKey)?;
    let start = block.start + field.key_span.start;
    let end = block.start + field.span.end.max(field.key_span.end);
    Ok(splice(text, &[(start..line_after(text, end), "")]))
}

/// Renames the top-level `key` to `new`.
pub fn rename(text: &str, key: &str, new: &str) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let field = find_unique(&fields, key)?.ok_or(EditError::NoSuchKey)?;
    if key != new && find_unique(&fields, new)?.is_some() {
        return Err(EditError::KeyTaken);
    }
    let span = block.start + field.key_span.start..block.start + field.key_span.end;
    Ok(splice(text, &[(span, &new_key(new)?)]))
}

/// Quotes the scalar at a path of keys, such as `metadata` and `version`.
pub fn quote(text: &str, path: &[&str]) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let mut fields = &fields[..];
    for (depth, key) in path.iter().enumerate() {
        let field = find_unique(fields, key)?.ok_or(EditError::NoSuchKey)?;
        match &field.value {
            Value::Map(inner) => fields = inner,
            Value::Scalar(scalar) if depth + 1 == path.len() => {
                let span = block.start + field.span.start..block.start + field.span.end;
                return Ok(splice(text, &[(span, &double_quote(&scalar.text))]));
            }
            Value::Scalar(_) | Value::List(_) | Value::Empty => break,
        }
    }
    Err(EditError::NoSuchKey)
}

/// Moves the top-level `key`, whose value is text, with its lines into the map `under`, which is
/// created in its place if it is missing. A value that some YAML reader would not read as text is
/// quoted.
pub fn nest(text: &str, key: &str, under: &str) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let field = find_unique(&fields, key)?.ok_or(EditError::NoSuchKey)?;
    let Value::Scalar(scalar) = &field.value else { return Err(EditError::NotMovable) };
    if scalar.kind() == Kind::Null {
        return Err(EditError::NotMovable);
    }
    let span = block.start + field.span.start..block.start + field.span.end;
    let lines = block.start + field.key_span.start..line_after(text, span.end);
    let value = match scalar.kind() {
        Kind::Text => Cow::Borrowed(&text[span.clone()]),
        _ => Cow::Owned(double_quote(&scalar.text)),
    };
    let moved = [&text[lines.start..span.start], &value, &text[span.end..lines.end]].concat();
    let Some(map) = find_unique(&fields, under)? else {
        let map = [&new_key(under)?, ":", line_end(&moved), &indent(&moved, 2)].concat();
        return Ok(splice(text, &[(lines, &map)]));
    };
    let inner = lines_of(text, block, map)?;
    if inner.iter().any(|it| it.key == key) {
        return Err(EditError::KeyTaken);
    }
    let moved = indent(&moved, column(block, &inner[0]));
    let at = line_after(text, block.start + map.span.end);
    Ok(if at <= lines.start {
        splice(text, &[(at..at, &moved), (lines, "")])
    } else {
        splice(text, &[(lines, ""), (at..at, &moved)])
    })
}

/// Removes every later field called `key` that has the same value as the first.
pub fn remove_repeats(text: &str, key: &str) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let mut same = fields.iter().filter(|it| it.key == key);
    let first = inline(&same.next().ok_or(EditError::NoSuchKey)?.value);
    let repeats = same.filter(|it| inline(&it.value) == first).map(|it| {
        let end = block.start + it.span.end.max(it.key_span.end);
        (block.start + it.key_span.start..line_after(text, end), "")
    });
    Ok(splice(text, &repeats.collect::<Vec<_>>()))
}

/// Writes both delimiters as exactly `---`, the first in line 1.
pub fn delimit(text: &str) -> Result<String, EditError> {
    let (mark, plain) = text.split_at(mark_length(text));
    let document = split(plain);
    let block = document.frontmatter.ok_or(EditError::NoFrontmatter)?;
    let (opening, closing) = (0..block.start, block.start + block.text.len()..document.body.start);
    let [first, last] = [&opening, &closing].map(|range| {
        let line = &plain[range.clone()];
        format!("---{}", &line[line.trim_end_matches(['\n', '\r']).len()..])
    });
    Ok(mark.to_owned() + &splice(plain, &[(opening, &first), (closing, &last)]))
}

/// Returns lines indented by this many further columns.
fn indent(lines: &str, columns: usize) -> String {
    let blanks = " ".repeat(columns);
    let mut out = String::with_capacity(lines.len() + columns);
    for line in Lines::new(lines) {
        out.push_str(if line.text.is_empty() { "" } else { &blanks });
        out.push_str(&lines[line.start..line.next]);
    }
    out
}

/// Returns a key as written, if it can be read back.
fn new_key(key: &str) -> Result<Cow<'_, str>, EditError> {
    let written = scalar(key);
    if written.len() > MAX_KEY { Err(EditError::KeyTooLong) } else { Ok(written) }
}

fn open(text: &str) -> Result<(Block<'_>, Vec<Field<'_>>), EditError> {
    // A byte order mark stays in place.
    let text_start = mark_length(text);
    let mut block = split(&text[text_start..]).frontmatter.ok_or(EditError::NoFrontmatter)?;
    block.start += text_start;
    let fields = read(block.text).map_err(EditError::Unreadable)?;
    Ok((block, fields))
}

/// Returns the length of a text's byte order mark.
fn mark_length(text: &str) -> usize {
    if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 }
}

/// Returns the field called `key`; a duplicate one cannot be edited.
fn find_unique<'f, 'a>(
    fields: &'f [Field<'a>],
    key: &str,
) -> Result<Option<&'f Field<'a>>, EditError> {
    let mut found = fields.iter().filter(|it| it.key == key);
    let first = found.next();
    if found.next().is_some() { Err(EditError::KeyTaken) } else { Ok(first) }
}

/// Returns the position after the colon of a field.
fn colon_end(text: &str, field: &Field<'_>) -> usize {
    let behind = &text[field.key_span.end..];
    field.key_span.end + behind.find(':').map_or(0, |at| at + 1)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind(['\n', '\r']).map_or(0, |it| it + 1)
}

/// Returns the position after the end of the line that contains `at`.
fn line_after(text: &str, at: usize) -> usize {
    let Some(end) = text[at..].find(['\n', '\r']) else { return text.len() };
    let end = at + end;
    if text[end..].starts_with("\r\n") { end + 2 } else { end + 1 }
}

/// Returns the line end that the text uses.
fn line_end(text: &str) -> &'static str {
    match text.find(['\n', '\r']) {
        Some(at) if text[at..].starts_with("\r\n") => "\r\n",
        Some(at) if text[at..].starts_with('\r') => "\r",
        _ => "\n",
    }
}

/// Replaces ranges that are ordered and do not overlap.
fn splice(text: &str, changes: &[(Range<usize>, &str)]) -> String {
    let mut out =
        String::with_capacity(text.len() + changes.iter().map(|it| it.1.len()).sum::<usize>());
    let mut at = 0;
    for (range, new) in changes {
        out.push_str(&text[at..range.start]);
        out.push_str(new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "---\r\nname: a # the name\r\ntags:\r\n  - x\r\n\r\n  - y\r\n# next\r\nlast:\r\n---\r\nbody\r\n";

    #[test]
    fn setting_changes_the_value_alone() {
        assert_eq!(set(TEXT, "name", &"b: c".into()).unwrap(), TEXT.replace("a #", "\"b: c\" #"));
        assert_eq!(set(TEXT, "last", &"z".into()).unwrap(), TEXT.replace("last:", "last: z"));
        assert_eq!(
            set(TEXT, "tags", &Value::List(vec!["q".into()])).unwrap(),
            TEXT.replace("tags:\r\n  - x\r\n\r\n  - y\r\n", "tags: [q]\r\n")
        );
        assert_eq!(
            set(TEXT, "new", &"fresh".into()).unwrap(),
            TEXT.replace("last:\r\n", "last:\r\nnew: fresh\r\n")
        );
    }

    #[test]
    fn removing_takes_the_lines_of_the_value() {
        assert_eq!(
            remove(TEXT, "tags").unwrap(),
            TEXT.replace("tags:\r\n  - x\r\n\r\n  - y\r\n", "")
        );
        assert_eq!(remove(TEXT, "nope"), Err(EditError::NoSuchKey));
    }

    #[test]
    fn renaming_changes_the_key_alone() {
        assert_eq!(rename(TEXT, "tags", "labels").unwrap(), TEXT.replace("tags", "labels"));
        assert_eq!(rename(TEXT, "tags", "name"), Err(EditError::KeyTaken));
    }

    #[test]
    fn quoting_changes_a_scalar_alone() {
        let text = "---\nv: 1.10 # one\nm:\n  w: 2\n  x: [y]\n---\n";
        assert_eq!(quote(text, &["v"]).unwrap(), text.replace("1.10", "\"1.10\""));
        assert_eq!(quote(text, &["m", "w"]).unwrap(), text.replace('2', "\"2\""));
        for path in [&["m"][..], &["m", "x"], &["v", "w"], &["m", "z"], &[]] {
            assert_eq!(quote(text, path), Err(EditError::NoSuchKey), "{path:?}");
        }
    }

    #[test]
    fn nesting_moves_the_lines_of_a_text() {
        let text = "---\na: 1 # one\nb: >\n  two\n\n   three\nm:\n    c: d\ne: f\n---\n";
        let nested = nest(text, "b", "m").unwrap();
        let nested = nest(&nest(&nested, "e", "m").unwrap(), "a", "m").unwrap();
        assert_eq!(
            nested,
            "---\nm:\n    c: d\n    b: >\n      two\n\n       three\n    e: f\n    a: \"1\" # one\n---\n"
        );
        let crlf = "---\r\na: b\r\nn:\r\n---\r\n";
        assert_eq!(nest(crlf, "a", "m").unwrap(), crlf.replace("a: b", "m:\r\n  a: b"));
        assert_eq!(nest(text, "m", "b"), Err(EditError::NotMovable));
        assert_eq!(nest(crlf, "n", "m"), Err(EditError::NotMovable));
        for (under, error) in [("{c: d}", EditError::NotMovable), ("\n  a: x", EditError::KeyTaken)]
        {
            assert_eq!(nest(&format!("---\na: b\nm: {under}\n---\n"), "a", "m"), Err(error));
        }
    }

    #[test]
    fn a_key_within_a_map_is_edited_alone() {
        let text = "---\na: b\nm: # mine\n   c: d # e\n   f: g\nh: i\n---\n";
        assert_eq!(set_within(text, "m", "c", &"x".into()).unwrap(), text.replace("c: d", "c: x"));
        assert_eq!(
            set_within(text, "m", "k", &"true".into()).unwrap(),
            text.replace("   f: g\n", "   f: g\n   k: \"true\"\n")
        );
        assert_eq!(
            set_within(text, "o", "k", &"z".into()).unwrap(),
            text.replace("h: i\n", "h: i\no:\n  k: z\n")
        );
        let one = remove_within(text, "m", "c").unwrap();
        assert_eq!(one, text.replace("   c: d # e\n", ""));
        assert_eq!(remove_within(&one, "m", "f").unwrap(), "---\na: b\nh: i\n---\n");
        assert_eq!(remove_within(text, "m", "z"), Err(EditError::NoSuchKey));
        for map in ["{c: d}", "", "text"] {
            let text = format!("---\nm: {map}\n---\n");
            assert_eq!(
                set_within(&text, "m", "c", &"x".into()),
                Err(EditError::NotMovable),
                "{map}"
            );
        }
    }

    #[test]
    fn only_what_is_said_twice_is_taken_out() {
        let text = "---\na: [x, z]\nb: 1\na:\n- x\n- 'z'\na: [x]\n---\n";
        assert_eq!(remove_repeats(text, "a").unwrap(), text.replace("a:\n- x\n- 'z'\n", ""));
        assert_eq!(remove_repeats(text, "b").unwrap(), text);
    }

    #[test]
    fn delimiters_become_three_dashes() {
        let text = "\u{FEFF}\r\n ---\r\na: 1\r\n.... \r\nbody";
        assert_eq!(delimit(text), Err(EditError::NoFrontmatter));
        let text = text.replace("....", "...");
        assert_eq!(delimit(&text).unwrap(), "\u{FEFF}---\r\na: 1\r\n---\r\nbody");
        assert_eq!(delimit("---\na: 1\n----").unwrap(), "---\na: 1\n---");
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        assert_eq!(set("body", "a", &"b".into()), Err(EditError::NoFrontmatter));
        let unreadable = set("---\na: b: c\n---\n", "a", &"b".into());
        assert!(matches!(unreadable, Err(EditError::Unreadable(it)) if it.line == 1));
        assert_eq!(set("---\na: 1\na: 2\n---\n", "a", &"b".into()), Err(EditError::KeyTaken));
    }
}
