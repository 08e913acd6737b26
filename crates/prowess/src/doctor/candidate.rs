//! A `SKILL.md` as clients find it, parsed as far as they need it.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
    sync::{Arc, OnceLock},
};

use prowess_frontmatter::{Field, Quirk, Value};

use super::survey::{ClientPath, Link};
use crate::{
    clients::{Symptom, symptom::OPEN},
    finding::{
        Report, Severity,
        rule::{self, Profile},
    },
    library::load::whole_characters,
    read::{
        manifest::Status,
        parse::{self, Encoding, canonical, decode, quote_values},
        source::{DiscoveredSkill, Folder, Source as _},
    },
};

/// A `SKILL.md`, with its properties that clients check.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The path of the file, as displayed.
    pub(super) path: Arc<Path>,
    /// The name of the file.
    pub(super) file_name: String,
    pub(super) size: u64,
    pub(super) body: u64,
    pub(super) is_utf8: bool,
    pub(super) has_mark: bool,
    pub(super) has_blanks: bool,
    pub(super) has_odd_end: bool,
    pub(super) has_dashes: bool,
    pub(super) has_duplicates: bool,
    pub(super) text: Text,
    /// Whether quoting its values is a safe fix.
    pub(super) is_mendable: bool,
    /// The reason why its frontmatter is unreadable, if it is.
    pub(super) fault: Option<Fault>,
    pub(super) name: Option<String>,
    /// The length of the description, in characters.
    pub(super) description: Option<usize>,
    pub(super) is_nested: bool,
    pub(super) hides_from_model: bool,
    pub(super) hides_from_people: bool,
    pub(super) status: Status,
    /// The open symptoms that it has in any location.
    pub(super) open: Vec<Symptom>,
    /// A hash of its beginning.
    pub(super) head: u64,
    /// The digest of all of it, computed on demand; `None` if it cannot be read.
    pub(super) digest: OnceLock<Option<[u8; 32]>>,
    /// The link on the shortest path to it.
    pub(super) link: Link,
    /// The index of the directory that it was read from.
    pub(super) directory: usize,
}

/// The reason why a frontmatter is unreadable.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) line: Option<usize>,
    /// Whether it is valid YAML nevertheless.
    pub(super) is_yaml: bool,
    /// Advice on how to fix it.
    pub(super) hint: Cow<'static, str>,
}

/// The readability of a frontmatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Fine,
    NoFrontmatter,
    /// Readable once values are quoted.
    Mended,
    /// Unreadable.
    Garbled,
    /// Not tried.
    Unread,
}

impl Candidate {
    /// Whether its fields were read.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.text, Text::Fine | Text::Mended)
    }

    /// Returns the name of its folder, on the path by which a client finds it.
    pub(super) fn folder(&self, client_path: Option<&ClientPath<'_>>) -> String {
        let within =
            client_path.and_then(|it| it.within.file_name().or_else(|| it.root.file_name()));
        within
            .or_else(|| self.path.parent().and_then(Path::file_name))
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    pub(super) fn new(
        found: &DiscoveredSkill,
        folder: &Folder,
        link: Link,
        directory: usize,
    ) -> Self {
        let is_cut = (found.head.len() as u64) < found.size;
        let head = if is_cut { whole_characters(&found.head) } else { &found.head };
        let (mut candidate, is_certain) = Self::read(head, found, directory);
        if is_cut && !is_certain {
            let whole = folder.read(&found.path);
            candidate = whole.map_or(candidate, |it| Self::read(&it, found, directory).0);
        }
        Self { link, ..candidate }
    }

    /// Parses a text; also returns whether reading more of it would change nothing.
    fn read(bytes: &[u8], found: &DiscoveredSkill, directory: usize) -> (Self, bool) {
        let mut report = Report::new(Profile::Lenient, Severity::Info);
        let decoded = decode(bytes);
        let reading = parse::SplitDocument::new(&decoded, &mut report);
        let document = &reading.document;
        let bad = report.findings.iter().find(|it| UNREADABLE.contains(&it.rule));
        let text = match (&reading.fields, document.frontmatter) {
            (_, None) => Text::NoFrontmatter,
            (Some(_), _) if bad.is_some_and(|it| *it.rule == rule::YAML_REPAIRED) => Text::Mended,
            (_, _) if bad.is_some() => Text::Garbled,
            (Some(_), _) => Text::Fine,
            (None, _) => Text::Unread,
        };
        let fields = reading.fields.as_deref().unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        found.head.hash(&mut hasher);
        let mut candidate = Self {
            path: found.path.clone(),
            file_name: found.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            size: found.size,
            body: found.size.saturating_sub(document.body.start as u64),
            is_utf8: decoded.invalid.is_none() && decoded.encoding != Encoding::Utf16,
            has_mark: decoded.encoding == Encoding::Utf8Bom,
            has_blanks: document.quirks.iter().any(|it| is_blank(*it)),
            has_odd_end: document.quirks.iter().any(|it| matches!(it, Quirk::OddClosing(_))),
            has_dashes: document.frontmatter.is_some_and(|it| it.text.contains("---")),
            has_duplicates: has_duplicates(fields),
            text,
            is_mendable: text == Text::Mended
                && document.frontmatter.is_some_and(|it| quote_values(it.text).is_some()),
            fault: bad.map(|it| Fault {
                line: it.line,
                is_yaml: *it.rule == rule::YAML_NOT_MAP,
                hint: it.hint.clone(),
            }),
            name: text_of(fields, "name").map(str::to_owned),
            description: text_of(fields, "description").map(|it| it.chars().count()),
            is_nested: field(fields, "metadata").is_some_and(|it| is_nested(&it.value)),
            hides_from_model: is_one_of(
                fields,
                "disable-model-invocation",
                &["true", "yes", "on", "1"],
            ),
            hides_from_people: is_one_of(fields, "user-invocable", &["false", "no", "off", "0"]),
            status: status(fields),
            open: Vec::new(),
            head: hasher.finish(),
            digest: OnceLock::new(),
            link: Link::None,
            directory,
        };
        candidate.open = OPEN
            .iter()
            .copied()
            .filter(|it| !it.is_about_path() && it.applies_to(&candidate, None))
            .collect();
        let is_certain = document.frontmatter.is_some()
            && document.quirks.is_empty()
            && !document.body.text.is_empty();
        (candidate, is_certain)
    }
}

/// The rules for a frontmatter that is not YAML, or not a map.
const UNREADABLE: [&rule::Rule; 4] =
    [&rule::YAML_REPAIRED, &rule::YAML_RESCUED, &rule::YAML_INVALID, &rule::YAML_NOT_MAP];

fn field<'f, 'a>(fields: &'f [Field<'a>], key: &str) -> Option<&'f Field<'a>> {
    fields.iter().find(|it| canonical(&it.key) == key)
}

fn text_of<'f>(fields: &'f [Field<'_>], key: &str) -> Option<&'f str> {
    let text = field(fields, key).and_then(|it| it.value.as_text()).map(str::trim);
    text.filter(|it| !it.is_empty())
}

fn is_one_of(fields: &[Field<'_>], key: &str, words: &[&str]) -> bool {
    text_of(fields, key).is_some_and(|it| words.contains(&it.to_ascii_lowercase().as_str()))
}

/// Whether a quirk is only blank space before or beside the delimiters.
fn is_blank(quirk: Quirk) -> bool {
    matches!(quirk, Quirk::BlankLinesBefore(_) | Quirk::Padded(_))
}

fn has_duplicates(fields: &[Field<'_>]) -> bool {
    let mut seen = BTreeSet::new();
    !fields.iter().all(|it| seen.insert(&it.key))
}

/// Returns the status, from the top level or from `metadata`.
fn status(fields: &[Field<'_>]) -> Status {
    let metadata = fields.iter().find(|it| it.key == "metadata").map(|it| &it.value);
    let nested = match metadata {
        Some(Value::Map(nested)) => &nested[..],
        _ => &[],
    };
    let mut own = fields.iter().chain(nested).filter(|it| it.key == "status");
    own.find_map(|it: &Field<'_>| Status::from_word(&it.value.as_text()?.trim().to_lowercase()))
        .unwrap_or_default()
}

/// Whether a `metadata` is anything but a map of strings.
fn is_nested(metadata: &Value<'_>) -> bool {
    match metadata {
        Value::Map(fields) => {
            fields.iter().any(|it| matches!(it.value, Value::Map(_) | Value::List(_)))
        }
        Value::Empty => false,
        Value::Scalar(_) | Value::List(_) => !metadata.is_null(),
    }
}
