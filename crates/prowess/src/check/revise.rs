//! Writes a manifest back to the `SKILL.md` it came from: everything unchanged is kept byte for
//! byte.

use std::ops::Range;

use prowess_frontmatter::{
    Block, EditError, Field, Value, read, remove, remove_within, set, set_within, split, write,
};

use crate::{
    check::render::{body_text, fields, render},
    finding::rule::Profile,
    read::{
        manifest::{Manifest, Status},
        manifest_field::{ManifestField, manifest_field},
        parse::{canonical, is_own, parse},
    },
};

/// The reason why a `SKILL.md` was not revised.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReviseError {
    /// It is not a skill, so that its meaning is unknown.
    #[error("it cannot be read as a skill")]
    NoSkill,
    /// Its frontmatter is not UTF-8.
    #[error("its frontmatter is not UTF-8")]
    NotUtf8,
    /// A field could not be edited.
    #[error("its field `{key}` cannot be edited in place")]
    Edit {
        /// The field.
        key: String,
        /// The cause.
        source: EditError,
    },
    /// The result would differ from the request, or something else would change with it.
    #[error("the edited file would not mean what was intended")]
    Unfaithful,
}

/// Revises the bytes of a `SKILL.md` so that it has the fields of `manifest`, and `body` below the
/// frontmatter if one is given. Comments, order and every unchanged field are kept, and so are
/// unknown fields that only the text has.
pub fn revise(
    bytes: &[u8],
    manifest: &Manifest,
    body: Option<&str>,
) -> Result<Vec<u8>, ReviseError> {
    let before = manifest_of(bytes)?;
    let mut wanted = manifest.clone();
    wanted.unknown = merge(&before.unknown, &manifest.unknown).into();
    let (text, tail) = text_of(bytes)?;
    let mut text = text.to_owned();
    let (old, new) = (fields(&before), fields(&wanted));
    let (old, new) = (leaves(&old), leaves(&new));
    for leaf in old.iter().filter(|it| it.text_among(&new).is_none()) {
        text = leaf.remove_from(&text)?;
    }
    for leaf in new.iter().filter(|it| it.text_among(&old) != it.text_among(&new)) {
        text = leaf.write_to(&text, &wanted)?;
    }
    let revised = match body {
        Some(body) => {
            let (mark, plain) = split_mark(&text);
            let start = mark.len() + split(plain).body.start;
            [&text.as_bytes()[..start], body_text(body).as_bytes()].concat()
        }
        None => [text.as_bytes(), tail].concat(),
    };
    verify(bytes, revised, &wanted, body)
}

/// A field, at the top level or under `metadata`.
struct Leaf<'f> {
    field: &'f Field<'f>,
    is_nested: bool,
}

/// Returns the fields of a manifest, those under `metadata` one by one.
fn leaves<'f>(fields: &'f [Field<'f>]) -> Vec<Leaf<'f>> {
    let mut leaves = Vec::new();
    for field in fields {
        match &field.value {
            Value::Map(inner) if field.key == METADATA => {
                leaves.extend(inner.iter().map(|field| Leaf { field, is_nested: true }));
            }
            _ => leaves.push(Leaf { field, is_nested: false }),
        }
    }
    leaves
}

const METADATA: &str = "metadata";

impl<'f> Leaf<'f> {
    fn key(&self) -> &'f str {
        &self.field.key
    }

    /// Whether it is edited under `metadata`: a text that already has it there keeps it there.
    fn is_within(&self, text: &str) -> bool {
        let is_at_top = manifest_field(canonical(self.key()))
            .is_some_and(ManifestField::is_in_metadata)
            && top_level(text).iter().any(|it| canonical(&it.key) == self.key());
        self.is_nested && !is_at_top
    }

    /// Returns how the field of this key is written among some leaves.
    fn text_among(&self, leaves: &[Leaf<'_>]) -> Option<String> {
        let found =
            leaves.iter().find(|it| (it.is_nested, it.key()) == (self.is_nested, self.key()));
        found.map(|it| write(std::slice::from_ref(it.field)))
    }

    fn remove_from(&self, text: &str) -> Result<String, ReviseError> {
        let key = spelling(text, self.key(), self.is_within(text));
        let removed = match self.is_within(text) {
            true => remove_within(text, METADATA, &key),
            false => remove(text, &key),
        };
        removed.map_err(|source| ReviseError::Edit { key, source })
    }

    fn write_to(&self, text: &str, wanted: &Manifest) -> Result<String, ReviseError> {
        let is_within = self.is_within(text);
        let key = spelling(text, self.key(), is_within);
        let written = match is_within {
            true => set_within(text, METADATA, &key, &self.field.value).or_else(|error| {
                // Braces are written anew.
                let all = fields(wanted).into_iter().find(|it| it.key == METADATA).ok_or(error)?;
                set(text, METADATA, &all.value)
            }),
            // At the top level, tags are a list.
            false if self.is_nested && self.key() == "tags" => {
                let tags = wanted.tags.iter().map(|it| Value::from(&**it));
                set(text, &key, &Value::List(tags.collect()))
            }
            false => set(text, &key, &self.field.value),
        };
        written.map_err(|source| ReviseError::Edit { key, source })
    }
}

/// Returns the fields of a text, as far as the small reader accepts it.
fn top_level(text: &str) -> Vec<Field<'_>> {
    split(split_mark(text).1).frontmatter.and_then(|it| read(it.text).ok()).unwrap_or_default()
}

/// Revises the status in the bytes of a `SKILL.md`. Disabling a skill and activating it again gives
/// the same bytes.
pub fn revise_status(bytes: &[u8], status: Status) -> Result<Vec<u8>, ReviseError> {
    let before = manifest_of(bytes)?;
    if before.status() == status {
        return Ok(bytes.to_vec());
    }
    let (text, tail) = text_of(bytes)?;
    let text = with_status(text, status)
        .map_err(|source| ReviseError::Edit { key: "status".to_owned(), source })?;
    let revised = [text.as_bytes(), tail].concat();
    // The current status of the text: a temporary line is removed again.
    let own_status = manifest_of(&revised).map_err(|_| ReviseError::Unfaithful)?.status;
    let unknown = before.unknown.iter().filter(|it| it.key != "status").cloned().collect();
    let wanted = Manifest { status: own_status, unknown, ..before };
    if wanted.status() != status {
        return Err(ReviseError::Unfaithful);
    }
    verify(bytes, revised, &wanted, None)
}

/// The comment after the status of a skill that had none, so that it is removed again on
/// activation.
const ADDED: &str = " # without this line it is active";

/// The comment after the status of a skill that had neither a status nor metadata.
const ADDED_BOTH: &str = " # without these two lines it is active";

/// The comment after the status of a skill whose status was empty.
const FILLED: &str = " # without this word it is active";

/// The comment after the status of a skill whose status was one of these words, before that word.
const INSTEAD: &str = " # in place of ";
const NULLS: [&str; 4] = ["null", "Null", "NULL", "~"];

fn with_status(text: &str, status: Status) -> Result<String, EditError> {
    let (mark, plain) = split_mark(text);
    let block = split(plain).frontmatter.ok_or(EditError::NoFrontmatter)?;
    let (opening, word) = (&plain[..block.start], status.as_str());
    // The opening delimiter shows which line ends are used.
    let end = &opening[opening.trim_end_matches(['\r', '\n']).len()..];
    let Some(span) = status_span(block)? else {
        let (at, line) = new_status(block, word, end);
        let (before, behind) = plain.split_at(block.start + at);
        return Ok(format!("{mark}{before}{line}{behind}"));
    };
    if let Some(lines) = added_lines(block, end).filter(|_| status == Status::Active) {
        let lines = block.start + lines.start..block.start + lines.end;
        return Ok(format!("{mark}{}{}", &plain[..lines.start], &plain[lines.end..]));
    }
    let filled = Status::ALL.map(|old| format!(" {old}{FILLED}"));
    let filled = filled.into_iter().find(|it| block.text.contains(it.as_str()));
    if let Some(filled) = filled.filter(|_| status == Status::Active) {
        return Ok(text.replacen(&filled, "", 1));
    }
    let nulled = NULLS.iter().flat_map(|null| {
        Status::ALL.map(|old| (format!("status: {old}{INSTEAD}{null}"), format!("status: {null}")))
    });
    let nulled = nulled.into_iter().find(|it| block.text.contains(it.0.as_str()));
    if let Some((nulled, null)) = nulled.filter(|_| status == Status::Active) {
        return Ok(text.replacen(&nulled, &null, 1));
    }
    if span.is_empty() {
        let set = set(text, "status", &word.into())?;
        let start = mark.len() + block.start + block.text.find("status:").unwrap_or_default();
        let (before, behind) = set.split_at(start);
        let written = format!("status: {word}");
        return Ok(format!(
            "{before}{}",
            behind.replacen(&written, &(written.clone() + FILLED), 1)
        ));
    }
    let span = block.start + span.start..block.start + span.end;
    // Only the word is replaced; quotes are kept.
    let written = &plain[span.clone()];
    if NULLS.contains(&written) {
        let (before, behind) = (&plain[..span.start], &plain[span.end..]);
        return Ok(format!("{mark}{before}{word}{INSTEAD}{written}{behind}"));
    }
    match Status::ALL.iter().find_map(|it| find_word(written, it.as_str())) {
        Some(old) => {
            let new = written.replacen(old, &match_case(old, word), 1);
            Ok(format!("{mark}{}{new}{}", &plain[..span.start], &plain[span.end..]))
        }
        None => set(text, "status", &word.into()),
    }
}

/// Returns the line with the status of a skill that had none, and its position: under `metadata`,
/// if that has a line for each of its fields or does not exist.
fn new_status(block: Block<'_>, word: &str, end: &str) -> (usize, String) {
    let last = block.text.len();
    let at_top = (last, format!("status: {word}{ADDED}{end}"));
    let Ok(fields) = read(block.text) else { return at_top };
    let mut maps = fields.iter().filter(|it| it.key == METADATA);
    match (maps.next(), maps.next()) {
        (None, _) => (last, format!("{METADATA}:{end}  status: {word}{ADDED_BOTH}{end}")),
        (Some(Field { value: Value::Map(inner), span, .. }), None)
            if !block.text[span.start..].starts_with('{')
                && !inner.iter().any(|it| it.key == "status") =>
        {
            let Some(first) = inner.first() else { return at_top };
            let line = &block.text[..first.key_span.start];
            let blanks = &line[line.rfind(['\n', '\r']).map_or(0, |it| it + 1)..];
            let behind = &block.text[span.end..];
            let rest = behind.find(end).map_or(behind.len(), |it| it + end.len());
            (span.end + rest, format!("{blanks}status: {word}{ADDED}{end}"))
        }
        _ => at_top,
    }
}

/// Returns the lines that [`new_status`] has added, if they are unchanged.
fn added_lines(block: Block<'_>, end: &str) -> Option<Range<usize>> {
    let text = block.text;
    for old in Status::ALL {
        let both = format!("{METADATA}:{end}  status: {old}{ADDED_BOTH}{end}");
        if let Some(at) = text.find(&both) {
            // Something else may have been added there meanwhile.
            let is_alone = !text[at + both.len()..].starts_with([' ', '\t']);
            let start = at + if is_alone { 0 } else { METADATA.len() + 1 + end.len() };
            return Some(start..at + both.len());
        }
        let line = format!("status: {old}{ADDED}{end}");
        if let Some(at) = text.find(&line) {
            let start = at - (text[..at].len() - text[..at].trim_end_matches(' ').len());
            return Some(start..at + line.len());
        }
    }
    None
}

/// Finds a word in a text, ignoring case.
fn find_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let at = text.to_ascii_lowercase().find(word)?;
    text.get(at..at + word.len())
}

/// Returns a word in the case of another, so that it can be restored.
fn match_case(old: &str, word: &str) -> String {
    match old.split_at_checked(1) {
        Some((first, rest)) if is_upper(first) && is_upper(rest) => word.to_ascii_uppercase(),
        Some((first, _)) if is_upper(first) => {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        }
        _ => word.to_owned(),
    }
}

fn is_upper(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_uppercase())
}

/// Returns the position of the value of `status`, at the top level or else under `metadata`; by its
/// line if the small reader cannot read the frontmatter.
fn status_span(block: Block<'_>) -> Result<Option<Range<usize>>, EditError> {
    let spans: Vec<Range<usize>> = match read(block.text) {
        Ok(fields) => {
            let is_set = fields.iter().any(|it| it.key == "status" && !it.value.is_null());
            let nested = fields.iter().find(|it| it.key == METADATA).map(|it| &it.value);
            let fields = match nested {
                Some(Value::Map(inner))
                    if !is_set
                        && inner.iter().find(|it| it.key == "status").is_some_and(is_own) =>
                {
                    inner
                }
                _ => &fields,
            };
            fields.iter().filter(|it| it.key == "status").map(|it| it.span.clone()).collect()
        }
        Err(_) => lines_of_status(block.text),
    };
    match &spans[..] {
        [] => Ok(None),
        [span] => Ok(Some(span.clone())),
        _ => Err(EditError::KeyTaken),
    }
}

fn lines_of_status(text: &str) -> Vec<Range<usize>> {
    const KEY: &str = "status:";
    let mut spans = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive(['\n', '\r']) {
        if let Some(value) = line.strip_prefix(KEY) {
            let value = value.split(" #").next().unwrap_or_default();
            let from = start + KEY.len() + value.len() - value.trim_start().len();
            spans.push(from..from + value.trim().len());
        }
        start += line.len();
    }
    spans
}

/// Returns the revised bytes if they mean what was wanted and nothing else has changed.
fn verify(
    before: &[u8],
    revised: Vec<u8>,
    wanted: &Manifest,
    body: Option<&str>,
) -> Result<Vec<u8>, ReviseError> {
    let after = parse(&revised, None, Profile::Lenient);
    let body = match body {
        Some(body) => body_text(body).trim_start_matches(['\n', '\r']).to_owned(),
        None => parse(before, None, Profile::Lenient).instructions,
    };
    let says = after.manifest.is_some_and(|it| render(&it, "") == render(wanted, ""));
    if says && after.instructions == body { Ok(revised) } else { Err(ReviseError::Unfaithful) }
}

fn manifest_of(bytes: &[u8]) -> Result<Manifest, ReviseError> {
    parse(bytes, None, Profile::Lenient).manifest.ok_or(ReviseError::NoSkill)
}

/// Splits bytes into valid UTF-8, which includes all of the frontmatter, and the rest.
pub(crate) fn text_of(bytes: &[u8]) -> Result<(&str, &[u8]), ReviseError> {
    let (text, tail) = match str::from_utf8(bytes) {
        Ok(text) => (text, &[][..]),
        Err(error) => {
            let (text, tail) = bytes.split_at(error.valid_up_to());
            (str::from_utf8(text).map_err(|_| ReviseError::NotUtf8)?, tail)
        }
    };
    match split(split_mark(text).1).frontmatter {
        Some(_) => Ok((text, tail)),
        None => Err(ReviseError::NotUtf8),
    }
}

/// Splits off the byte order mark of a text.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    let mark = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    text.split_at(mark)
}

/// Returns the spelling of a field in a text, at the top level or under `metadata`.
fn spelling(text: &str, key: &str, is_within: bool) -> String {
    let fields = top_level(text);
    let nested = fields.iter().find(|it| it.key == METADATA).map(|it| &it.value);
    let fields = match nested {
        Some(Value::Map(inner)) if is_within => inner,
        _ if is_within => return key.to_owned(),
        _ => &fields,
    };
    let spelt = fields.iter().find(|it| canonical(&it.key) == key || it.key == key);
    spelt.map_or(key, |it| &it.key).to_owned()
}

/// Merges the fields of both, those of `new` replacing old ones.
fn merge(old: &[Field<'static>], new: &[Field<'static>]) -> Vec<Field<'static>> {
    let kept = old.iter().map(|it| new.iter().find(|new| new.key == it.key).unwrap_or(it));
    let added = new.iter().filter(|it| !old.iter().any(|old| old.key == it.key));
    kept.chain(added).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switched(text: &str) -> String {
        let disabled = revise_status(text.as_bytes(), Status::Disabled).unwrap();
        assert_eq!(manifest_of(&disabled).unwrap().status(), Status::Disabled);
        let again = revise_status(&disabled, Status::Active).unwrap();
        assert_eq!(again, text.as_bytes(), "{}", String::from_utf8_lossy(&disabled));
        String::from_utf8(disabled).unwrap()
    }

    #[test]
    fn disabling_and_activating_again_gives_the_same_bytes() {
        let frame = |fields: &str| format!("---\nname: a\n{fields}description: b\n---\nbody\n");
        assert_eq!(
            switched(&frame("")),
            "---\nname: a\ndescription: b\nmetadata:\n  status: disabled # without these two lines it is active\n---\nbody\n"
        );
        assert_eq!(
            switched(&frame("metadata:\n   x: y # z\n")),
            frame("metadata:\n   x: y # z\n   status: disabled # without this line it is active\n")
        );
        for inner in
            ["status: active", "'status': \"Active\" # mine", "type: script\n  status: active"]
        {
            let text = frame(&format!("metadata:\n  {inner}\n"));
            assert!(switched(&text).to_lowercase().contains("disabled"), "{inner}");
        }
        // The author's own value there is not a status, or there is no line to put it on.
        for metadata in [
            "\n  status: rc",
            "\n  status:",
            " {}",
            " {x: y}",
            "",
            " null",
            "\n  x: y\nmetadata:\n  z: y",
        ] {
            let text = frame(&format!("metadata:{metadata}\n"));
            let line = "\nstatus: disabled # without this line it is active\n---";
            assert!(switched(&text).contains(line), "{metadata}");
        }
        for value in ["active", "\"active\"", " 'active'  # mine", "active # active"] {
            let text = frame(&format!("status: {value}\n"));
            assert_eq!(switched(&text), text.replacen("active", "disabled", 1));
        }
        for (value, disabled) in [
            ("Active", "Disabled"),
            ("'ACTIVE' # mine", "'DISABLED' # mine"),
            ("", "disabled # without this word it is active"),
            ("# mine", "disabled # without this word it is active # mine"),
            ("null", "disabled # in place of null"),
            ("~ # mine", "disabled # in place of ~ # mine"),
        ] {
            let text = frame(&format!("status: {value}\n")).replace(": \n", ":\n");
            assert!(switched(&text).contains(&format!("\nstatus: {disabled}\n")), "{value}");
        }
        switched(&frame("status:\n").replace('\n', "\r\n"));
        let dos = frame("# a comment\n").replace('\n', "\r\n");
        assert!(switched(&dos).contains(
            "metadata:\r\n  status: disabled # without these two lines it is active\r\n---"
        ));
        switched(&format!("\u{FEFF}{dos}"));
        switched(&frame("").replace('\n', "\r"));
        // The small reader rejects this one.
        let colon = "---\nname: a\ndescription: Use when: x\nstatus: active\n---\n";
        assert_eq!(switched(colon), colon.replace("status: active", "status: disabled"));
        assert!(switched(&colon.replace("status: active\n", "")).contains("\nstatus: disabled #"));
    }

    #[test]
    fn what_was_noted_meanwhile_stays() {
        let text = "---\nname: a\ndescription: b\n---\nbody\n";
        let disabled = revise_status(text.as_bytes(), Status::Disabled).unwrap();
        let noted = String::from_utf8(disabled).unwrap().replace("---\nbody", "  x: y\n---\nbody");
        let active = revise_status(noted.as_bytes(), Status::Active).unwrap();
        let wanted = text.replace("---\nbody", "metadata:\n  x: y\n---\nbody");
        assert_eq!(String::from_utf8(active).unwrap(), wanted);
    }

    #[test]
    fn a_status_at_the_top_level_counts_before_one_under_metadata() {
        let both =
            "---\nname: a\ndescription: b\nstatus: active\nmetadata:\n  status: draft\n---\n";
        assert_eq!(switched(both), both.replace("status: active", "status: disabled"));
        let empty = both.replace("status: active", "status:");
        assert_eq!(manifest_of(empty.as_bytes()).unwrap().status(), Status::Draft);
        let active = revise_status(empty.as_bytes(), Status::Active).unwrap();
        assert_eq!(String::from_utf8(active).unwrap(), empty.replace("draft", "active"));
    }

    #[test]
    fn bytes_that_are_no_text_stay_in_the_body() {
        let bytes = b"---\nname: a\ndescription: b\n---\nbody \xFF\xFE end\n";
        let disabled = revise_status(bytes, Status::Disabled).unwrap();
        assert!(disabled.ends_with(b"---\nbody \xFF\xFE end\n"));
        assert_eq!(revise_status(&disabled, Status::Active).unwrap(), bytes);
    }

    #[test]
    fn what_cannot_be_edited_safely_is_refused() {
        let refused = |text: &str| revise_status(text.as_bytes(), Status::Disabled).unwrap_err();
        assert_eq!(refused("no frontmatter"), ReviseError::NoSkill);
        // Only a YAML library reads this one.
        let flow = match cfg!(feature = "yaml") {
            true => ReviseError::Unfaithful,
            false => ReviseError::NoSkill,
        };
        assert_eq!(refused("---\n{name: a, description: b}\n---\n"), flow);
        let twice = refused("---\nname: a\ndescription: b\nstatus: active\nstatus: draft\n---\n");
        assert!(matches!(twice, ReviseError::Edit { source: EditError::KeyTaken, .. }));
    }

    #[test]
    fn only_what_has_changed_is_edited() {
        let text = "---\n# top\nname: a\nallowed_tools: [x, y]  # both\nx-mine: {k: v}\nlicense: MIT\ndescription: >\n  b\n---\n\nbody\n";
        let mut manifest = manifest_of(text.as_bytes()).unwrap();
        assert_eq!(revise(text.as_bytes(), &manifest, None).unwrap(), text.as_bytes());
        manifest.allowed_tools.0 = ["x".into()].into();
        manifest.license = None;
        manifest.unknown = Box::default();
        manifest.version = Some("1.10".into());
        let revised = revise(text.as_bytes(), &manifest, Some("new body")).unwrap();
        assert_eq!(
            String::from_utf8(revised).unwrap(),
            "---\n# top\nname: a\nallowed_tools: x  # both\nx-mine: {k: v}\ndescription: >\n  b\nmetadata:\n  version: \"1.10\"\n---\n\nnew body\n"
        );
    }

    #[test]
    fn a_field_is_edited_where_it_stands() {
        let changed = |text: &str, change: fn(&mut Manifest)| {
            let mut manifest = manifest_of(text.as_bytes()).unwrap();
            change(&mut manifest);
            String::from_utf8(revise(text.as_bytes(), &manifest, None).unwrap()).unwrap()
        };
        let frame = |fields: &str| format!("---\nname: a\n{fields}description: b\n---\nbody\n");
        let retag: fn(&mut Manifest) = |it| it.tags = ["x".into(), "q".into()].into();
        assert_eq!(changed(&frame("tags: [z] # mine\n"), retag), frame("tags: [x, q] # mine\n"));
        let nested = frame("metadata:\n  tags: z, a # mine\n  k: v\n");
        assert_eq!(changed(&nested, retag), nested.replace("z, a", "x, q"));
        let old: fn(&mut Manifest) = |it| it.version = Some("2".into());
        assert_eq!(changed(&frame("version: 1.0\n"), old), frame("version: \"2\"\n"));
        let noted = frame("metadata:\n  k: v\n");
        assert_eq!(changed(&noted, old), frame("metadata:\n  k: v\n  version: \"2\"\n"));
        assert_eq!(
            changed(&frame("metadata: {k: v}\n"), old),
            frame("metadata: {version: \"2\", k: v}\n")
        );
        let gone: fn(&mut Manifest) = |it| it.version = None;
        assert_eq!(changed(&frame("metadata:\n  version: '1'\n  k: v\n"), gone), noted);
        assert_eq!(changed(&frame("metadata:\n  version: '1'\n"), gone), frame(""));
    }
}
