//! Reads a lock file in the form that is written, line by line: twenty times as fast as TOML.
//!
//! Whatever is written in another way is left to the reader of TOML, which also finds what is wrong.

use std::str::Lines;

use super::{InstallTarget, LockedSkill, TargetForm, VERSION};
use crate::{digest::TreeFile, manifest::MAX_SKILLS};

/// Returns the skills in the order of the file; `None` if anything is not in the form that is written.
pub(super) fn read(text: &str) -> Option<Vec<LockedSkill>> {
    // The one white space that TOML and lines of Rust could see in different ways.
    if text.contains('\r') || !text.ends_with('\n') {
        return None;
    }
    let mut lines = text.lines();
    let mut line = lines.next()?;
    if line.starts_with("# ") && line.bytes().all(|it| (b' '..=b'~').contains(&it)) {
        line = lines.next()?;
    }
    if line.strip_prefix("version = ")? != VERSION.to_string() {
        return None;
    }
    let mut skills = Vec::new();
    match lines.next() {
        None => return Some(skills),
        Some("") => {}
        Some(_) => return None,
    }
    while skills.len() < MAX_SKILLS {
        if lines.next()? != "[[skill]]" {
            return None;
        }
        let (skill, is_last) = skill(&mut lines)?;
        skills.push(skill);
        if is_last {
            return Some(skills);
        }
    }
    None
}

/// Reads the fields of a skill, in the order they are written, up to an empty line or the end, and
/// returns whether it was the end.
fn skill(lines: &mut Lines<'_>) -> Option<(LockedSkill, bool)> {
    let mut fields = Fields { line: lines.next(), lines };
    let name = fields.text("name")?;
    let renamed = fields.text("skill");
    let source = fields.text("source")?.parse().ok()?;
    let mut skill = LockedSkill::new(name, source, fields.text("url")?, Vec::new());
    skill.skill = renamed.map(str::to_owned).filter(|it| it != name);
    skill.reference = fields.text("reference").map(str::to_owned);
    skill.commit = fields.text("commit").map(str::to_owned);
    skill.version = fields.text("version").map(str::to_owned);
    if let Some(value) = fields.value("published") {
        skill.published = Some(number(value)?);
    }
    skill.integrity = fields.text("integrity").map(str::to_owned);
    skill.path = fields.text("path").unwrap_or_default().to_owned();
    skill.plugin = fields.text("plugin").map(str::to_owned);
    skill.signer = fields.text("signer").map(str::to_owned);
    skill.digest = fields.text("digest")?.parse().ok()?;
    if fields.value("files")? != "[" {
        return None;
    }
    while let Some(entry) = fields.entry()? {
        skill.files.push(file(entry)?);
    }
    if !skill.files.is_sorted() {
        return None;
    }
    if let Some(value) = fields.value("clients") {
        skill.clients = Some(texts(value)?);
    }
    if let Some(value) = fields.value("copy") {
        skill.copy = (value == "true").then_some(true)?;
    }
    if let Some(value) = fields.value("targets") {
        (value == "[").then_some(())?;
        while let Some(entry) = fields.entry()? {
            skill.targets.push(target(entry)?);
        }
    }
    // A field that is not known, or in another place.
    fields.line.is_none_or(str::is_empty).then_some((skill, fields.line.is_none()))
}

/// The lines of a skill.
struct Fields<'l, 't> {
    /// The one that has not been read yet.
    line: Option<&'t str>,
    lines: &'l mut Lines<'t>,
}

impl<'t> Fields<'_, 't> {
    /// Returns the value of a field if it is next.
    fn value(&mut self, key: &str) -> Option<&'t str> {
        let value = self.line?.strip_prefix(key)?.strip_prefix(" = ")?;
        self.line = self.lines.next();
        Some(value)
    }

    /// Returns the text of a field if it is next, and plain.
    fn text(&mut self, key: &str) -> Option<&'t str> {
        let value = self.line?.strip_prefix(key)?.strip_prefix(" = ")?;
        let (text, rest) = quoted(value)?;
        if !rest.is_empty() {
            return None;
        }
        self.line = self.lines.next();
        Some(text)
    }

    /// Returns the inside of the next entry of a list, or nothing behind the last one.
    #[expect(clippy::option_option, reason = "another form is not the end of a list")]
    fn entry(&mut self) -> Option<Option<&'t str>> {
        let line = self.line?;
        self.line = self.lines.next();
        match line {
            "]" => Some(None),
            _ => line.strip_prefix("    { ")?.strip_suffix(" },").map(Some),
        }
    }
}

fn file(entry: &str) -> Option<TreeFile> {
    let (path, rest) = quoted(entry.strip_prefix("path = ")?)?;
    let (size, rest) = rest.strip_prefix(", size = ")?.split_once(", ")?;
    let (executable, rest) = match rest.strip_prefix("executable = true, ") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (digest, rest) = quoted(rest.strip_prefix("digest = ")?)?;
    rest.is_empty().then_some(())?;
    Some(TreeFile {
        path: path.to_owned(),
        digest: digest.parse().ok()?,
        size: number(size)?,
        executable,
    })
}

fn target(entry: &str) -> Option<InstallTarget> {
    let (path, rest) = quoted(entry.strip_prefix("path = ")?)?;
    let (form, rest) = quoted(rest.strip_prefix(", form = ")?)?;
    let (form, _) = TargetForm::NAMES.iter().find(|it| it.1 == form && rest.is_empty())?;
    Some(InstallTarget::new(path, *form))
}

fn texts(value: &str) -> Option<Vec<String>> {
    let mut rest = value.strip_prefix('[')?.strip_suffix(']')?;
    let mut texts = Vec::new();
    while !rest.is_empty() {
        let (text, behind) = quoted(rest)?;
        texts.push(text.to_owned());
        rest = match behind.strip_prefix(", ") {
            Some(rest) if !rest.is_empty() => rest,
            Some(_) => return None,
            None => behind.is_empty().then_some(behind)?,
        };
    }
    Some(texts)
}

/// Splits off a text between quotes that has nothing to unescape.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (text, rest) = text.strip_prefix('"')?.split_once('"')?;
    let is_plain = !text.bytes().any(|it| it < b' ' || matches!(it, b'\\' | 0x7f));
    is_plain.then_some((text, rest))
}

fn number(text: &str) -> Option<u64> {
    let is_plain =
        text.bytes().all(|it| it.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let number: i64 = text.parse().ok().filter(|_| is_plain)?;
    u64::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{Lock, read::read_toml},
        *,
    };
    use crate::digest::FileDigest;

    /// Returns a lock with every field.
    fn lock() -> Lock {
        let files = ["SKILL.md", "a b/ä.sh"]
            .map(|it| TreeFile::new(it, FileDigest::of(b"x"), 1, it.ends_with("sh")));
        let mut skill = LockedSkill::new(
            "pdf",
            "anthropics/skills#v1".parse().unwrap(),
            "https://x",
            files.to_vec(),
        );
        skill.skill = Some("Forms".to_owned());
        skill.reference = Some("refs/tags/v1".to_owned());
        skill.commit = Some("0123456789abcdef0123456789abcdef01234567".to_owned());
        (skill.version, skill.published) = (Some("1.0".to_owned()), Some(12));
        (skill.integrity, skill.plugin) = (Some("sha512-x".to_owned()), Some("office".to_owned()));
        (skill.path, skill.signer) = ("skills/pdf".to_owned(), Some("minisign:x".to_owned()));
        (skill.clients, skill.copy) = (Some(vec!["codex".to_owned(), "cline".to_owned()]), true);
        skill.targets.push(InstallTarget::new(".agents/skills/pdf", TargetForm::Folder));
        skill.targets.push(InstallTarget::new(".claude/skills/pdf", TargetForm::Link));
        let mut lock = Lock::default();
        lock.insert(skill).unwrap();
        lock.insert(LockedSkill::new("docx", "a/b".parse().unwrap(), "x", Vec::new())).unwrap();
        lock
    }

    #[test]
    fn it_reads_what_is_written() {
        let lock = lock();
        assert_eq!(read(&lock.to_string()).as_deref(), Some(lock.skills()));
        assert_eq!(read(&Lock::default().to_string()), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn what_it_reads_is_what_toml_says(at in 0..2000_usize, len in 0..30_usize, put in "[ -~\n\t]{0,6}|name = \"x\"\n|\n\\[\\[skill\\]\\]\n|\"\"\"|'|ä|\u{7f}|01|true|, ") {
            let good = lock().to_string();
            let at = (0..=at.min(good.len())).rev().find(|it| good.is_char_boundary(*it)).unwrap_or_default();
            let end = ((at + len).min(good.len())..=good.len()).find(|it| good.is_char_boundary(*it)).unwrap_or(good.len());
            let text = format!("{}{put}{}", &good[..at], &good[end..]);
            let checked = read(&text).and_then(|it| super::super::read::checked(it).ok());
            if let Some(lock) = checked {
                prop_assert_eq!(Some(lock), read_toml(&text).ok(), "{}", text);
            }
        }
    }
}
