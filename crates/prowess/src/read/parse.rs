//! Parses bytes into a manifest, with findings for anything that is wrong.
//!
//! There are three readers: the small one of `prowess-frontmatter`, a YAML library, and a repair.
//! Each handles what the one before rejected, and the repair reports what it did.

mod decode;
#[cfg(feature = "yaml")]
mod yaml;
mod repair;
mod manifest;
mod json;

use prowess_frontmatter::{Block, Document, Field, Quirk, read, split};

use crate::{
    finding::{
        Finding, Position, Report, Severity,
        rule::{self, Profile},
    },
    read::manifest::Manifest,
};

pub(crate) use self::json::yaml_json;
pub use self::json::{FrontmatterError, frontmatter_json};
pub(crate) use self::{
    decode::{DecodedText, Encoding, decode},
    manifest::{SPELLINGS, canonical, is_own},
    repair::quote_values,
};

/// The maximum size of a frontmatter, in bytes. The largest of 131,694 real ones has 9 KiB.
pub(crate) const MAX_FRONTMATTER: usize = 64 * 1024;

/// A parsed `SKILL.md`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParsedSkill {
    /// The manifest, if the text is usable as a skill.
    pub manifest: Option<Manifest>,
    /// The Markdown below the frontmatter; the whole text when there is none.
    pub instructions: String,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// Parses the bytes of a `SKILL.md`. Never fails: faults are findings.
///
/// `folder` is the name of the folder, used as the skill's name when the profile is lenient and the
/// frontmatter has none.
pub fn parse(bytes: &[u8], folder: Option<&str>, profile: Profile) -> ParsedSkill {
    let mut report = Report::new(profile, Severity::Info);
    let decoded = decode(bytes);
    let reading = SplitDocument::new(&decoded, &mut report);
    let manifest = reading.manifest(folder, &mut report);
    let instructions = instructions(&reading.document).to_owned();
    ParsedSkill { manifest, instructions, findings: report.findings }
}

/// Returns the instructions of a document: its body, without leading blank lines.
pub(crate) fn instructions<'t>(document: &Document<'t>) -> &'t str {
    document.body.text.trim_start_matches(['\n', '\r'])
}

/// Returns the description in a `METADATA.yml`, which is a frontmatter without delimiters; `None`
/// if it has none that can be read.
pub(crate) fn metadata_description(bytes: &[u8]) -> Option<Box<str>> {
    let decoded = decode(bytes);
    if decoded.invalid.is_some() {
        return None;
    }
    let fields = decoded.text.trim().trim_start_matches("---").trim_end_matches("---");
    let document = format!("---\n{fields}\n---\n");
    let parsed = parse(document.as_bytes(), Some("metadata"), Profile::Lenient);
    parsed.manifest.map(|it| it.description)
}

/// A document split into frontmatter and body, with its fields.
#[derive(Debug)]
pub(crate) struct SplitDocument<'t> {
    pub(crate) document: Document<'t>,
    /// The fields; `None` if they could not be read.
    pub(crate) fields: Option<Vec<Field<'t>>>,
}

impl<'t> SplitDocument<'t> {
    pub(crate) fn new(decoded: &'t DecodedText<'t>, report: &mut Report) -> Self {
        let document = split(&decoded.text);
        note_encoding(decoded, &document, report);
        note_quirks(&document, report);
        let invalid = decoded.invalid.is_some_and(|invalid| invalid.at < document.body.start);
        let fields = match document.frontmatter {
            None => {
                // Text that is not valid has already been reported.
                if decoded.invalid.is_none() {
                    note_missing(&document, report);
                }
                None
            }
            Some(_) if invalid => None,
            Some(block) if block.text.len() > MAX_FRONTMATTER => {
                report.fatal(
                    &rule::FRONTMATTER_TOO_LARGE,
                    Position::line(block.line),
                    format!(
                        "the frontmatter has {} bytes, more than {MAX_FRONTMATTER}",
                        block.text.len()
                    ),
                    "move long text below the closing `---`",
                );
                None
            }
            Some(block) => fields(block, report),
        };
        Self { document, fields }
    }

    /// Returns the location of a field's value; that of its key if it has none.
    pub(crate) fn at(&self, field: &Field<'_>) -> Position {
        let Some(block) = self.document.frontmatter else { return Position::FILE };
        if field.key_span.is_empty() {
            return Position::line(self.line(field));
        }
        let span = if field.span.is_empty() { &field.key_span } else { &field.span };
        let Some(before) = block.text.get(..span.start) else {
            return Position::line(self.line(field));
        };
        let line_start = before.rfind(['\n', '\r']).map_or(0, |it| it + 1);
        let line = block.line + line_ends(&before[..line_start]);
        let length = block.text.get(span.clone()).unwrap_or("").lines().next().unwrap_or("").len();
        Position::columns(line, span.start - line_start, span.start - line_start + length.max(1))
    }

    /// Returns the line of a field's key, counted in the whole text.
    pub(crate) fn line(&self, field: &Field<'_>) -> usize {
        self.document.frontmatter.map_or(0, |it| it.line) + field.line.saturating_sub(1)
    }
}

/// Counts the line ends in a text: LF, CRLF or a lone CR.
fn line_ends(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(at, byte)| {
        **byte == b'\n' || (**byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'))
    });
    ends.count()
}

/// Reads the fields of a frontmatter with the first reader that can.
fn fields<'t>(block: Block<'t>, report: &mut Report) -> Option<Vec<Field<'t>>> {
    if let Ok(fields) = read(block.text) {
        return Some(fields);
    }
    let fault = match yaml_fields(block.text) {
        Ok(fields) => return Some(fields),
        Err(fault) => fault,
    };
    match fault {
        Fault::Unsafe { line, what } => {
            report.fatal(
                &rule::YAML_UNSAFE,
                Position::line(block.line + line - 1),
                format!("the frontmatter has {what}, which is not supported"),
                "write the value out, in quotes if it is a string",
            );
            None
        }
        Fault::NotMap { line } => {
            report.fatal(
                &rule::YAML_NOT_MAP,
                Position::line(block.line + line - 1),
                "the frontmatter is not a map of `key: value` lines",
                "begin with `name:` and `description:`",
            );
            None
        }
        Fault::Invalid { line, what } => repair::repair(block, line, &what, report),
    }
}

/// Returns the fields of a YAML text, or the line and a description of the fault.
pub(crate) fn yaml_map(text: &str) -> Result<Vec<Field<'_>>, (usize, String)> {
    let fields = read(text).or_else(|_| yaml_fields(text));
    fields.map_err(|fault| match fault {
        Fault::Invalid { line, what } => (line, what),
        Fault::Unsafe { line, what } => (line, what.to_owned()),
        Fault::NotMap { line } => (line, "no `key: value`".to_owned()),
    })
}

/// The reason why the YAML library returned no fields.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "yaml"),
    expect(dead_code, reason = "the small reader does not tell them apart")
)]
pub(crate) enum Fault {
    /// It is not YAML.
    Invalid { line: usize, what: String },
    /// It is YAML, but a frontmatter like this is only written to do harm.
    Unsafe { line: usize, what: &'static str },
    /// It is YAML, but not a map.
    NotMap { line: usize },
}

#[cfg(feature = "yaml")]
fn yaml_fields(text: &str) -> Result<Vec<Field<'_>>, Fault> {
    yaml::read(text)
}

/// Without a YAML library the small reader decides.
#[cfg(not(feature = "yaml"))]
fn yaml_fields(text: &str) -> Result<Vec<Field<'_>>, Fault> {
    read(text).map_err(|it| Fault::Invalid { line: it.line, what: it.what.to_owned() })
}

fn note_encoding(decoded: &DecodedText<'_>, document: &Document<'_>, report: &mut Report) {
    match decoded.encoding {
        Encoding::Utf8 => {}
        Encoding::Utf8Bom => report.note(
            &rule::BYTE_ORDER_MARK,
            Position::FILE,
            || "the file begins with a byte order mark".to_owned(),
            "save it as UTF-8 without one",
        ),
        Encoding::Utf16 => report.note(
            &rule::ENCODING_UTF16,
            Position::FILE,
            || "the file is UTF-16, which most clients cannot read".to_owned(),
            "save it as UTF-8",
        ),
    }
    if let Some(invalid) = decoded.invalid {
        let at = Position::line(invalid.line);
        let message = format!(
            "the text is not valid UTF-8: byte {:#04X} at offset {}",
            invalid.byte, invalid.at
        );
        let hint = "save the file as UTF-8";
        // Without the frontmatter there is no skill; an invalid byte in the body can be ignored.
        if invalid.at < document.body.start || document.frontmatter.is_none() {
            report.fatal(&rule::ENCODING, at, message, hint);
        } else {
            report.note(&rule::ENCODING, at, || message, hint);
        }
    }
    let crlf = document.frontmatter.is_some_and(|it| it.text.contains('\r'));
    if decoded.lone_cr || crlf {
        let what = if decoded.lone_cr { "a lone CR" } else { "CRLF" };
        report.note(
            &rule::LINE_ENDINGS,
            Position::line(1),
            || format!("lines end with {what}"),
            "use LF",
        );
    }
}

fn note_quirks(document: &Document<'_>, report: &mut Report) {
    // The reference library checks for other fields.
    if report.profile == Profile::Reference {
        return;
    }
    for quirk in &document.quirks {
        let (line, message) = match quirk {
            Quirk::BlankLinesBefore(line) => {
                (*line, "there are blank lines before the frontmatter")
            }
            Quirk::Padded(line) => (*line, "the delimiter has spaces around its dashes"),
            Quirk::OddClosing(line) => {
                (*line, "the frontmatter is not closed by exactly three dashes")
            }
            Quirk::Unclosed(_) | Quirk::NotFirst(_) => continue,
        };
        report.note(
            &rule::FRONTMATTER_DELIMITER,
            Position::line(line),
            || message.to_owned(),
            "write `---` alone on its line, the first one in line 1",
        );
    }
}

fn note_missing(document: &Document<'_>, report: &mut Report) {
    for quirk in &document.quirks {
        match quirk {
            Quirk::Unclosed(line) => report.fatal(
                &rule::FRONTMATTER_UNCLOSED,
                Position::line(*line),
                "the frontmatter that begins here is never closed",
                "write `---` on its own line after the last field",
            ),
            Quirk::NotFirst(line) => report.fatal(
                &rule::FRONTMATTER_MISSING,
                Position::line(*line),
                "the frontmatter begins here, after other text",
                "move it to the start of the file",
            ),
            _ => continue,
        }
        return;
    }
    let message = match document.body.text.trim().is_empty() {
        true => "the file is empty",
        false => "the file has no frontmatter: it does not begin with a `---` line",
    };
    report.fatal(
        &rule::FRONTMATTER_MISSING,
        Position::line(1),
        message,
        "begin with `---`, `name: …`, `description: …`, `---`",
    );
}

#[cfg(test)]
mod tests;
