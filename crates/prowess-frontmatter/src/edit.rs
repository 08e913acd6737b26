//! Edits in place: one key changes, every other byte stays as it was.

use std::{borrow::Cow, error::Error, fmt, ops::Range};

use crate::{
    read::{MAX_KEY, Unsupported, read},
    split::{Block, split},
    value::{Field, Value},
    write::{inline, scalar},
};

/// An edit was not made; the text is as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditError {
    /// The text has no frontmatter.
    NoFrontmatter,
    /// The frontmatter could not be read, so that nothing in it is safe to touch.
    Unreadable(Unsupported),
    /// There is no such key.
    NoSuchKey,
    /// There is such a key already, or there are two.
    KeyTaken,
    /// The key is longer than any key may be.
    KeyTooLong,
}

impl Error for EditError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable(unsupported) => Some(unsupported),
            Self::NoFrontmatter | Self::NoSuchKey | Self::KeyTaken | Self::KeyTooLong => None,
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
            Self::KeyTaken => f.write_str("the key is there already"),
            Self::KeyTooLong => f.write_str("the key is too long"),
        }
    }
}

/// Sets the top-level `key` to `value`, written on one line; a new key comes last.
pub fn set(text: &str, key: &str, value: &Value<'_>) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let written = inline(value);
    let Some(field) = only(&fields, key)? else {
        let end = block.start + block.text.len();
        let key = new_key(key)?;
        let separator = if written.is_empty() { "" } else { " " };
        let line = format!("{key}:{separator}{written}{}", line_end(text));
        return Ok(splice(text, &[(end..end, &line)]));
    };
    let colon = block.start + colon_end(block.text, field);
    let span = block.start + field.span.start..block.start + field.span.end;
    let same_line = !text[colon..span.start].contains(['\n', '\r']);
    if span.is_empty() {
        return Ok(splice(text, &[(colon..colon, &format!(" {written}"))]));
    }
    if same_line {
        return Ok(splice(text, &[(span, &written)]));
    }
    // The old value stands on lines of its own, a comment may stand behind the colon.
    let lines = line_start(text, span.start)..line_behind(text, span.end);
    Ok(splice(text, &[(colon..colon, &format!(" {written}")), (lines, "")]))
}

/// Takes the top-level `key` out, with the lines of its value.
pub fn remove(text: &str, key: &str) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let field = only(&fields, key)?.ok_or(EditError::NoSuchKey)?;
    let start = block.start + field.key_span.start;
    let end = block.start + field.span.end.max(field.key_span.end);
    Ok(splice(text, &[(start..line_behind(text, end), "")]))
}

/// Renames the top-level `key` to `new`.
pub fn rename(text: &str, key: &str, new: &str) -> Result<String, EditError> {
    let (block, fields) = open(text)?;
    let field = only(&fields, key)?.ok_or(EditError::NoSuchKey)?;
    if key != new && only(&fields, new)?.is_some() {
        return Err(EditError::KeyTaken);
    }
    let span = block.start + field.key_span.start..block.start + field.key_span.end;
    Ok(splice(text, &[(span, &new_key(new)?)]))
}

/// A key as it is written, if it can be read again.
fn new_key(key: &str) -> Result<Cow<'_, str>, EditError> {
    let written = scalar(key);
    if written.len() > MAX_KEY { Err(EditError::KeyTooLong) } else { Ok(written) }
}

fn open(text: &str) -> Result<(Block<'_>, Vec<Field<'_>>), EditError> {
    // A byte order mark stays where it is.
    let text_start = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let mut block = split(&text[text_start..]).frontmatter.ok_or(EditError::NoFrontmatter)?;
    block.start += text_start;
    let fields = read(block.text).map_err(EditError::Unreadable)?;
    Ok((block, fields))
}

/// The field called `key`; two of them are nothing that could be edited.
fn only<'f, 'a>(fields: &'f [Field<'a>], key: &str) -> Result<Option<&'f Field<'a>>, EditError> {
    let mut found = fields.iter().filter(|it| it.key == key);
    let first = found.next();
    if found.next().is_some() { Err(EditError::KeyTaken) } else { Ok(first) }
}

/// Behind the colon of a field.
fn colon_end(text: &str, field: &Field<'_>) -> usize {
    let behind = &text[field.key_span.end..];
    field.key_span.end + behind.find(':').map_or(0, |at| at + 1)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind(['\n', '\r']).map_or(0, |it| it + 1)
}

/// Behind the end of the line that holds `at`.
fn line_behind(text: &str, at: usize) -> usize {
    let Some(end) = text[at..].find(['\n', '\r']) else { return text.len() };
    let end = at + end;
    if text[end..].starts_with("\r\n") { end + 2 } else { end + 1 }
}

/// The line end that the text uses.
fn line_end(text: &str) -> &'static str {
    match text.find(['\n', '\r']) {
        Some(at) if text[at..].starts_with("\r\n") => "\r\n",
        Some(at) if text[at..].starts_with('\r') => "\r",
        _ => "\n",
    }
}

/// Replaces ranges that stand in order and do not overlap.
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
    fn what_cannot_be_read_is_left_alone() {
        assert_eq!(set("body", "a", &"b".into()), Err(EditError::NoFrontmatter));
        let unreadable = set("---\na: b: c\n---\n", "a", &"b".into());
        assert!(matches!(unreadable, Err(EditError::Unreadable(it)) if it.line == 1));
        assert_eq!(set("---\na: 1\na: 2\n---\n", "a", &"b".into()), Err(EditError::KeyTaken));
    }
}
