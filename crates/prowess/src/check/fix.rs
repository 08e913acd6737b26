//! Fixes: each clears the findings of one rule, and changes nothing else.
//!
//! A fix is kept only if the text still means the same and the finding is gone. Nothing is guessed:
//! a text whose fields could not be read, or only in part, is left alone.
//!
//! | rules without a fix | why |
//! |---|---|
//! | `line-endings`, except lone CR | CRLF is what some editors write, and most clients read it |
//! | about names, descriptions, placeholders, hidden characters, invalid bytes, `comment-cut` | only the author knows what was meant |
//! | `frontmatter-missing`, `-unclosed`, `-too-large`, `yaml-invalid`, `-unsafe`, `-not-map`, `-rescued` | what cannot be read is not written |
//! | `metadata-nested`, `license-not-text`, `allowed-tools-not-text`, `field-type` | a text in place of a list or map says something else |
//! | `vendor-field` | those clients read the field where it is |
//! | about instructions, scripts, other files, folders and the library | only the frontmatter is edited |

mod meaning;

use prowess_frontmatter::{
    Field, Kind, Scalar, Style, Value, delimit, nest, quote, read, remove, remove_repeats, rename,
    set, split, write,
};

use self::meaning::{Meaning, is_empty, tags, tools};
use crate::{
    check::{
        revise::{split_mark, text_of},
        validate::{check_text, support_for},
    },
    finding::{
        Finding,
        rule::{self, Profile, Rule},
    },
    read::{
        manifest_field::{Content, FieldSupport, manifest_field},
        parse::{Encoding, canonical, decode, is_own, quote_values},
    },
};

/// A text, and the findings that were fixed in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FixedText {
    /// The text: unchanged, byte for byte, if nothing could be fixed.
    pub bytes: Vec<u8>,
    /// The findings that are gone.
    pub findings: Vec<Finding>,
    /// The rules whose fix was discarded, because it would have changed the meaning of the text.
    pub left: Vec<&'static Rule>,
}

/// Fixes what the rules of a profile find in the bytes of a `SKILL.md`, where that is safe. A fixed
/// text is not changed by fixing it again.
///
/// ```
/// use prowess::{Profile, fix};
///
/// let text = "---\nname: pdf\ndescription: Use when: a PDF is read\n---\n";
/// let fixed = fix(text.as_bytes(), Profile::Spec);
/// let quoted = text.replace("Use when: a PDF is read", "'Use when: a PDF is read'");
/// assert_eq!(fixed.bytes, quoted.as_bytes());
/// assert_eq!(fixed.findings[0].rule.code, "yaml-repaired");
/// ```
pub fn fix(bytes: &[u8], profile: Profile) -> FixedText {
    let mut fixed = FixedText { bytes: bytes.to_vec(), findings: Vec::new(), left: Vec::new() };
    let Some(mut meaning) = Meaning::read(bytes) else { return fixed };
    let before = check_text(bytes, None, profile);
    let mut findings = before.clone();
    for _ in 0..PASSES {
        let start = fixed.bytes.clone();
        fixed.left.clear();
        for fix in FIXES.iter().filter(|it| it.applies_in(profile)) {
            if !findings.iter().any(|it| fix.clears(it)) {
                continue;
            }
            let edited = (fix.edit)(&fixed.bytes).filter(|it| *it != fixed.bytes);
            let Some(bytes) = edited else { continue };
            let after = check_text(&bytes, None, profile);
            let new_meaning = Meaning::read(&bytes).filter(|it| Fix::keeps_meaning(&meaning, it));
            match new_meaning.filter(|_| fix.is_better(&findings, &after)) {
                Some(new_meaning) => (fixed.bytes, findings, meaning) = (bytes, after, new_meaning),
                None => fixed.left.push(fix.rule),
            }
        }
        if fixed.bytes == start {
            break;
        }
    }
    fixed.findings = fixed_findings(before, &findings);
    fixed
}

/// The number of passes over all fixes: one may enable another that comes before it.
const PASSES: usize = 4;

/// Whether [`fix`] may clear the findings of a rule; whether it does depends on the text.
pub fn has_fix(rule: &Rule, profile: Profile) -> bool {
    FIXES.iter().any(|it| it.is_for(rule) && it.applies_in(profile))
}

/// The fix for the findings of one rule.
struct Fix {
    rule: &'static Rule,
    /// Returns the bytes with the findings cleared; `None` if that cannot be done.
    edit: fn(&[u8]) -> Option<Vec<u8>>,
}

/// All fixes. Those that make a text readable, or enable others, are tried first.
static FIXES: &[Fix] = &[
    Fix { rule: &rule::ENCODING_UTF16, edit: as_utf8 },
    Fix { rule: &rule::BYTE_ORDER_MARK, edit: without_mark },
    Fix { rule: &rule::LINE_ENDINGS, edit: with_lf },
    Fix { rule: &rule::FRONTMATTER_DELIMITER, edit: |it| edit_text(it, with_delimiters) },
    Fix { rule: &rule::YAML_REPAIRED, edit: |it| edit_text(it, with_quoted_values) },
    Fix { rule: &rule::DUPLICATE_KEY, edit: |it| edit_text(it, without_repeats) },
    Fix { rule: &rule::METADATA_NOT_MAP, edit: |it| edit_text(it, without_empty) },
    Fix { rule: &rule::COMPATIBILITY, edit: |it| edit_text(it, without_empty) },
    Fix { rule: &rule::YAML_STRICT, edit: |it| edit_text(it, with_lines) },
    Fix { rule: &rule::UNKNOWN_FIELD, edit: |it| edit_text(it, with_known_fields) },
    Fix { rule: &rule::NAME_NOT_TEXT, edit: |it| edit_text(it, with_texts) },
    Fix { rule: &rule::DESCRIPTION_NOT_TEXT, edit: |it| edit_text(it, with_texts) },
    Fix { rule: &rule::SCALAR_NOT_TEXT, edit: |it| edit_text(it, with_texts) },
    Fix { rule: &rule::ALLOWED_TOOLS_FORM, edit: |it| edit_text(it, with_spaced_tools) },
    Fix { rule: &rule::TAGS_NOT_LIST, edit: |it| edit_text(it, with_listed_tags) },
];

/// The rules that are only applied to a text whose fields can all be read: their faults were there
/// before.
static ADVICE: &[&Rule] = &[&rule::DESCRIPTION_WHEN, &rule::ARGUMENT_HINT, &rule::UNPINNED_PACKAGE];

impl Fix {
    fn is_for(&self, rule: &Rule) -> bool {
        std::ptr::eq(self.rule, rule)
    }

    fn clears(&self, finding: &Finding) -> bool {
        self.is_for(finding.rule)
    }

    /// Whether the fix applies in a profile: one that is lenient about fields has nothing to clear.
    fn applies_in(&self, profile: Profile) -> bool {
        profile != Profile::Lenient || !self.is_for(&rule::UNKNOWN_FIELD)
    }

    /// Whether a text means the same as before.
    fn keeps_meaning(before: &Meaning, after: &Meaning) -> bool {
        (&before.instructions, &before.fields, before.hashes)
            == (&after.instructions, &after.fields, after.hashes)
    }

    /// Returns how much of its findings a text has. The reference library names all unknown fields
    /// in one finding, so their message counts by its length.
    fn weigh(&self, findings: &[Finding]) -> usize {
        let own = findings.iter().filter(|it| self.clears(it));
        match self.is_for(&rule::UNKNOWN_FIELD) {
            true => own.map(|it| it.message.len()).sum(),
            false => own.count(),
        }
    }

    /// Whether there are fewer of the findings to clear, and no new ones: except those that a later
    /// fix clears, advice, which is given once all fields can be read, and those that can be seen
    /// only now that the frontmatter is YAML.
    fn is_better(&self, before: &[Finding], after: &[Finding]) -> bool {
        self.weigh(after) < self.weigh(before)
            && (self.is_for(&rule::YAML_REPAIRED)
                || after.iter().all(|finding: &Finding| {
                    let mut behind = FIXES.iter().skip_while(|it| !self.is_for(it.rule));
                    before.iter().any(|it| std::ptr::eq(it.rule, finding.rule))
                        || behind.any(|it| it.clears(finding))
                        || ADVICE.iter().any(|it| std::ptr::eq(*it, finding.rule))
                }))
    }
}

/// Returns the findings that were there before, are gone after, and have a fix.
fn fixed_findings(before: Vec<Finding>, after: &[Finding]) -> Vec<Finding> {
    let mut left: Vec<_> = after.iter().map(|it| (it.rule.code, &it.message)).collect();
    let gone = before.into_iter().filter(|finding| {
        match left.iter().position(|it| *it == (finding.rule.code, &finding.message)) {
            Some(at) => {
                left.swap_remove(at);
                false
            }
            None => FIXES.iter().any(|it| it.clears(finding)),
        }
    });
    gone.collect()
}

fn as_utf8(bytes: &[u8]) -> Option<Vec<u8>> {
    let decoded = decode(bytes);
    let is_whole = decoded.invalid.is_none() && bytes.len().is_multiple_of(2);
    (decoded.encoding == Encoding::Utf16 && is_whole).then(|| decoded.text.into_owned().into())
}

fn without_mark(bytes: &[u8]) -> Option<Vec<u8>> {
    bytes.strip_prefix("\u{FEFF}".as_bytes()).map(<[u8]>::to_vec)
}

/// Replaces each lone CR, which most readers do not treat as a line end. CRLF is one, and stays as
/// the author's editor wrote it.
fn with_lf(bytes: &[u8]) -> Option<Vec<u8>> {
    decode(bytes)
        .lone_cr
        .then(|| bytes.iter().map(|it| if *it == b'\r' { b'\n' } else { *it }).collect())
}

/// Edits the text of a `SKILL.md`; trailing bytes that are not valid UTF-8 are kept.
fn edit_text(bytes: &[u8], edit: fn(&str, &[Field<'_>]) -> Option<String>) -> Option<Vec<u8>> {
    let (text, tail) = text_of(bytes).ok()?;
    let block = split(split_mark(text).1).frontmatter?;
    let text = edit(text, &read(block.text).unwrap_or_default())?;
    Some([text.as_bytes(), tail].concat())
}

fn with_delimiters(text: &str, _: &[Field<'_>]) -> Option<String> {
    delimit(text).ok()
}

fn with_quoted_values(text: &str, _: &[Field<'_>]) -> Option<String> {
    let (mark, plain) = split_mark(text);
    let block = split(plain).frontmatter?;
    let (opening, rest) = plain.split_at(block.start);
    Some([mark, opening, &quote_values(block.text)?, &rest[block.text.len()..]].concat())
}

fn without_repeats(text: &str, fields: &[Field<'_>]) -> Option<String> {
    edit_fields(text, fields, |text, field| {
        let is_repeated = fields.iter().filter(|it| it.key == field.key).nth(1).is_some();
        is_repeated.then(|| remove_repeats(text, &field.key).ok())?
    })
}

fn without_empty(text: &str, fields: &[Field<'_>]) -> Option<String> {
    edit_fields(text, fields, |text, field| match &*field.key {
        "metadata" | "compatibility" if is_empty(&field.value) => remove(text, &field.key).ok(),
        _ => None,
    })
}

fn with_known_fields(text: &str, fields: &[Field<'_>]) -> Option<String> {
    edit_fields(text, fields, |text, field| match support_for(&field.key) {
        FieldSupport::Misspelt(right) => rename(text, &field.key, right).ok(),
        // A value that would not be understood there means something else at the top level.
        FieldSupport::Movable if is_own(field) => nest(text, &field.key, "metadata").ok(),
        FieldSupport::Unknown if !is_empty(&field.value) && is_word(&field.key) => {
            nest(text, &field.key, "metadata").ok()
        }
        FieldSupport::Specified
        | FieldSupport::Vendor(_)
        | FieldSupport::Movable
        | FieldSupport::Unknown => None,
    })
}

/// Whether a key is the name of a field, and not prose with a colon in it, a number or similar.
fn is_word(key: &str) -> bool {
    let scalar = Scalar { text: key.into(), style: Style::Plain };
    key.chars().all(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && scalar.kind() == Kind::Text
}

fn with_texts(text: &str, fields: &[Field<'_>]) -> Option<String> {
    edit_fields(text, fields, |text, field| match (canonical(&field.key), &field.value) {
        ("metadata", Value::Map(inner)) => edit_fields(text, inner, |text, nested| {
            let is_quoted = is_odd(nested) && !is_number_or_bool(nested);
            is_quoted.then(|| quote(text, &[&field.key, &nested.key]).ok())?
        }),
        (key, _) if is_text(key) && is_odd(field) => quote(text, &[&field.key]).ok(),
        _ => None,
    })
}

/// Whether the value of a field at the top level is a text.
fn is_text(key: &str) -> bool {
    matches!(key, "name" | "description")
        || manifest_field(key).is_some_and(|it| matches!(it.content, Content::Text { .. }))
}

/// Whether some reader would not treat a scalar as text.
fn is_odd(field: &Field<'_>) -> bool {
    matches!(&field.value, Value::Scalar(it) if !matches!(it.kind(), Kind::Text | Kind::Null))
}

/// Whether every reader sees the same number or boolean: quoted, it would become text for readers
/// that expect its type. A number with a fraction may be a version, of which readers lose digits.
fn is_number_or_bool(field: &Field<'_>) -> bool {
    matches!(&field.value, Value::Scalar(it) if matches!(it.kind(), Kind::Integer | Kind::Bool))
}

fn with_spaced_tools(text: &str, fields: &[Field<'_>]) -> Option<String> {
    let field = fields.iter().find(|it| it.key == "allowed-tools")?;
    let tools = tools(&field.value)?.to_text().filter(|it| !it.is_empty())?;
    set(text, &field.key, &Value::from(&*tools)).ok()
}

/// Writes one line for each value, in place of brackets.
fn with_lines(text: &str, fields: &[Field<'_>]) -> Option<String> {
    let text = with_spaced_tools(text, fields).unwrap_or_else(|| text.to_owned());
    let (mark, plain) = split_mark(&text);
    let block = split(plain).frontmatter?;
    let end = if block.text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = mark.to_owned() + &plain[..block.start];
    let mut at = 0;
    for field in &read(block.text).ok()? {
        let written = block.text.get(field.span.clone())?;
        let is_collection = matches!(field.value, Value::List(_) | Value::Map(_));
        if !is_collection || !written.contains(['[', '{']) {
            continue;
        }
        let behind = &block.text[field.span.end..];
        let line = behind.find(end).map_or(behind.len(), |it| it + end.len());
        // Anything but blanks there is a comment, or part of a value.
        if !behind[..line].trim().is_empty() {
            continue;
        }
        out.push_str(&block.text[at..field.key_span.start]);
        out.push_str(&write(std::slice::from_ref(field)).replace('\n', end));
        at = field.span.end + line;
    }
    out.push_str(&plain[block.start + at..]);
    Some(out)
}

fn with_listed_tags(text: &str, fields: &[Field<'_>]) -> Option<String> {
    let field = fields.iter().find(|it| it.key == "tags")?;
    set(text, &field.key, &tags(&field.value)?).ok()
}

/// Edits one field after the other; those for which there is no edit are kept.
fn edit_fields(
    text: &str,
    fields: &[Field<'_>],
    edit: impl Fn(&str, &Field<'_>) -> Option<String>,
) -> Option<String> {
    Some(fields.iter().fold(text.to_owned(), |text, field| edit(&text, field).unwrap_or(text)))
}
