//! Expands words, as far as possible without running anything.

use std::collections::BTreeSet;

use crate::script::{Word, WordPart};

use super::{
    Hazard,
    command::{Stream, Walker},
};

/// A placeholder for unknown text. No script can contain it.
pub(super) const UNKNOWN: char = '\0';

/// A word passed to a command.
#[derive(Debug, Clone, Default)]
pub(super) struct Field {
    pub(super) text: String,
    /// Whether it was, or may have been, downloaded or decoded.
    pub(super) is_foreign: bool,
    /// The content of a file made by `<(…)`.
    pub(super) stream: Option<Stream>,
}

/// The value of a variable.
#[derive(Debug, Clone, Default)]
pub(super) struct Value {
    /// The possible texts; for a list, its items.
    pub(super) texts: Vec<String>,
    pub(super) is_list: bool,
    pub(super) is_foreign: bool,
}

/// The maximum number of possible texts of a word before it counts as unknown.
const MOST: usize = 64;
/// The maximum length of a text before it counts as unknown.
const LONGEST: usize = 64 * 1024;

impl Field {
    /// Returns the file name of a program. Unknown text in it counts as empty.
    pub(super) fn name(&self) -> String {
        let plain = self.text.replace(UNKNOWN, "");
        plain.rsplit('/').next().unwrap_or_default().to_owned()
    }
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { texts: vec![text.into()], ..Self::default() }
    }

    fn unknown() -> Self {
        Self::text(UNKNOWN)
    }

    fn is_blank(&self) -> bool {
        self.texts.iter().all(|it| it.is_empty() || it.contains(UNKNOWN))
    }
}

/// A word during its expansion.
struct Expansion {
    /// The completed words.
    fields: Vec<String>,
    /// The possible texts of the current word.
    open: Vec<String>,
    /// Whether there is a current word, even an empty one.
    is_open: bool,
    is_foreign: bool,
    has_braces: bool,
    stream: Option<Stream>,
}

impl Walker {
    /// Expands words into the fields of a command.
    pub(super) fn fields(&mut self, words: &[Word]) -> Result<Vec<Field>, Hazard> {
        let mut fields = Vec::new();
        for word in words {
            fields.extend(self.expand(word)?);
        }
        Ok(fields)
    }

    /// Expands a word into a single text, without splitting.
    pub(super) fn expand_unsplit(&mut self, word: &Word) -> Result<Field, Hazard> {
        let fields = self.expand(word)?;
        let texts: Vec<&str> = fields.iter().map(|it| &*it.text).collect();
        Ok(Field {
            text: texts.join(" "),
            is_foreign: fields.iter().any(|it| it.is_foreign),
            stream: fields.into_iter().find_map(|it| it.stream),
        })
    }

    /// Returns the value that words assign to a variable.
    pub(super) fn value(&mut self, words: &[Word]) -> Result<Value, Hazard> {
        let mut value = Value { is_list: words.len() != 1, ..Value::default() };
        for word in words {
            let field = self.expand_unsplit(word)?;
            value.is_foreign |= field.is_foreign;
            value.texts.push(field.text);
        }
        Ok(value)
    }

    fn expand(&mut self, word: &Word) -> Result<Vec<Field>, Hazard> {
        let mut expansion = Expansion {
            fields: Vec::new(),
            open: vec![String::new()],
            is_open: false,
            is_foreign: false,
            has_braces: false,
            stream: None,
        };
        for (at, part) in word.0.iter().enumerate() {
            self.add(part, at == 0, &mut expansion)?;
        }
        let Expansion { mut fields, open, is_open, is_foreign, has_braces, stream } = expansion;
        if is_open {
            fields.extend(open);
        }
        if has_braces {
            fields = fields.iter().flat_map(|it| braces(it)).take(MOST).collect();
        }
        self.use_steps(1 + fields.iter().map(|it| 1 + it.len() / 64).sum::<usize>())?;
        Ok(fields
            .into_iter()
            .map(|text| Field { text: bounded(text), is_foreign, stream: stream.clone() })
            .collect())
    }

    fn add(
        &mut self,
        part: &WordPart,
        is_first: bool,
        expansion: &mut Expansion,
    ) -> Result<(), Hazard> {
        match part {
            WordPart::Plain(text) => {
                expansion.has_braces |= text.contains('{');
                match text.strip_prefix('~').filter(|_| is_first) {
                    Some(rest) => expansion.append(&format!("{HOME}{rest}")),
                    None => expansion.append(text),
                }
            }
            WordPart::Quoted(text) => expansion.append(text),
            WordPart::Variable { name, is_quoted, rest } => {
                let value = self.variable(name, rest)?;
                expansion.take(&value, *is_quoted);
            }
            WordPart::Substitution { script, is_quoted } => {
                let stream = self.walk_nested(script)?;
                let text = stream.text.unwrap_or_else(|| UNKNOWN.to_string());
                let mut value = Value::text(text.trim_end_matches('\n'));
                value.is_foreign = stream.is_foreign;
                expansion.take(&value, *is_quoted);
            }
            WordPart::Process(script) => {
                let stream = self.walk_nested(script)?;
                expansion.is_foreign |= stream.is_foreign;
                expansion.stream = Some(stream);
                expansion.append(&format!("/dev/fd/{UNKNOWN}"));
            }
            WordPart::Arithmetic(parts) => {
                self.expand_unsplit(&Word(parts.clone()))?;
                expansion.append(&UNKNOWN.to_string());
            }
            WordPart::List(words) => {
                let value = self.value(words)?;
                expansion.take(&Value { is_list: true, ..value }, false);
            }
        }
        Ok(())
    }

    /// Expands a variable, such as `${name:-default}`.
    fn variable(&mut self, name: &str, rest: &[WordPart]) -> Result<Value, Hazard> {
        let value = match (name, self.variables.get(name)) {
            (_, Some(value)) => value.clone(),
            ("HOME", _) => Value::text(HOME),
            ("PATH" | "PWD" | "OLDPWD" | "SHELL" | "TMPDIR", _) => {
                Value::text(format!("/{UNKNOWN}"))
            }
            ("IFS", _) => Value::text(" "),
            ("@" | "*", _) => self.arguments.clone(),
            _ => match name.parse::<usize>().ok().and_then(|it| it.checked_sub(1)) {
                Some(at) => match self.arguments.texts.get(at) {
                    Some(text) => Value::text(text),
                    None => Value::unknown(),
                },
                None => Value::unknown(),
            },
        };
        let Some((first, behind)) = rest.split_first() else { return Ok(value) };
        let WordPart::Plain(first) = first else { return Ok(Value::unknown()) };
        let (sign, text) =
            first.split_at(first.bytes().take_while(|it| b":-=+?".contains(it)).count());
        let other = |walker: &mut Self| {
            let start = WordPart::Plain(text.to_owned());
            walker.value(&[Word(std::iter::once(start).chain(behind.iter().cloned()).collect())])
        };
        match sign {
            ":-" | "-" | ":=" | "=" => {
                let other = other(self)?;
                Ok(if value.is_blank() { other } else { value })
            }
            ":+" | "+" => other(self),
            ":?" | "?" => Ok(value),
            "" if matches!(text, "[@]" | "[*]" | "[0]") => Ok(value),
            // A substring of a known text.
            ":" if behind.is_empty() => {
                let mut numbers = text.split(':').map(|it| it.trim().parse::<usize>());
                let (Some(Ok(from)), length) = (numbers.next(), numbers.next()) else {
                    return Ok(Value::unknown());
                };
                let length = length.and_then(Result::ok).unwrap_or(usize::MAX);
                Ok(Value {
                    texts: value
                        .texts
                        .iter()
                        .map(|it: &String| it.chars().skip(from).take(length).collect())
                        .collect(),
                    ..value
                })
            }
            _ => {
                other(self)?;
                Ok(Value { is_foreign: value.is_foreign, ..Value::unknown() })
            }
        }
    }
}

/// The stand-in for the home directory.
pub(super) const HOME: &str = "/home/~";

impl Expansion {
    fn append(&mut self, text: &str) {
        self.is_open = true;
        let known = text.strip_prefix(UNKNOWN);
        for own in &mut self.open {
            own.push_str(known.filter(|_| own.ends_with(UNKNOWN)).unwrap_or(text));
        }
    }

    /// Adds the value of a variable, split into words if it is not quoted.
    fn take(&mut self, value: &Value, is_quoted: bool) {
        self.is_foreign |= value.is_foreign;
        if value.is_list {
            return self.split(value.texts.iter().map(|it| &**it), is_quoted);
        }
        let texts: BTreeSet<&String> = value.texts.iter().collect();
        let has_space = !is_quoted && texts.iter().any(|it| it.contains(char::is_whitespace));
        if !has_space && texts.len() * self.open.len() <= MOST && !texts.is_empty() {
            self.is_open |= is_quoted || texts.iter().any(|it| !it.is_empty());
            let start = std::mem::take(&mut self.open);
            self.open =
                start.iter().flat_map(|a| texts.iter().map(move |b| format!("{a}{b}"))).collect();
            return;
        }
        // A word for each piece; all possible texts are added, one after the other.
        let pieces: Vec<&str> = match has_space {
            true => texts.iter().flat_map(|it| pieces(it)).collect(),
            false => texts.iter().map(|it| it.as_str()).collect(),
        };
        self.split(pieces.into_iter(), is_quoted);
    }

    fn split<'v>(&mut self, mut pieces: impl Iterator<Item = &'v str>, is_quoted: bool) {
        let Some(first) = pieces.next() else { return };
        if !first.is_empty() || is_quoted {
            self.append(first);
        }
        for piece in pieces {
            if self.is_open {
                self.fields.append(&mut self.open);
            }
            self.open = vec![piece.to_owned()];
            self.is_open = is_quoted || !piece.is_empty();
        }
    }
}

/// Returns the pieces between spaces; a space at the start or the end also ends a word.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let start = text.starts_with(char::is_whitespace).then_some("");
    let end = text.ends_with(char::is_whitespace).then_some("");
    start.into_iter().chain(text.split_whitespace()).chain(end)
}

/// Expands `{a,b}` in a text, the innermost braces first; up to a maximum number of texts.
fn braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        let choice = text.find('}').and_then(|end| {
            let start = text[..end].rfind('{')?;
            text[start..end].contains(',').then_some((start, end))
        });
        match choice {
            Some((start, end)) if done.len() + open.len() < MOST && text.len() < LONGEST => {
                let items = text[start + 1..end].rsplit(',').take(MOST);
                open.extend(items.map(|it| format!("{}{it}{}", &text[..start], &text[end + 1..])));
            }
            _ => done.push(text),
        }
    }
    done
}

fn bounded(text: String) -> String {
    if text.len() > LONGEST { UNKNOWN.to_string() } else { text }
}
