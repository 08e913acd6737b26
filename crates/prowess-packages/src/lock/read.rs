//! Reads a lock file, and checks what it says.

use toml_edit::{Document, Item, TableLike, Value};

use super::{
    InstallTarget, Lock, LockError, LockedSkill, TargetForm, VERSION, check, plain, write,
};
use crate::{
    digest::TreeFile,
    manifest::{MAX_FILE, MAX_SKILLS, conflict, position},
    source::SkillSource,
};

/// The fields of the file, of a skill, of a file and of a target.
const FIELDS: [&str; 2] = ["version", "skill"];

pub(super) fn read(text: &str) -> Result<Lock, LockError> {
    if text.len() > MAX_FILE {
        return Err(LockError::too_long());
    }
    // What is wrong is found with its line by the reader of TOML.
    match plain::read(text).and_then(|it| checked(it).ok()) {
        Some(lock) => Ok(lock),
        None => read_toml(text),
    }
}

/// Returns the lock of skills in any order, without unknown fields, if nothing is wrong with them.
pub(super) fn checked(mut skills: Vec<LockedSkill>) -> Result<Lock, LockError> {
    skills.iter().try_for_each(check::skill)?;
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = skills.windows(2).find(|it| it[0].name == it[1].name) {
        return Err(LockError::Duplicate { line: 0, name: pair[0].name.clone() });
    }
    check::targets(skills.iter())?;
    Ok(Lock { skills, unknown: Vec::new() })
}

/// Reads a lock file in any form of TOML.
pub(super) fn read_toml(text: &str) -> Result<Lock, LockError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some((first, last)) = conflict(text) {
        return Err(LockError::Conflict { first, last });
    }
    let document = Document::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |it| it.start));
        let message = error.message().trim().replace('\n', ", ");
        LockError::Syntax { line, column, message }
    })?;
    let reader = Reader { lines: line_starts(text) };
    let root = document.as_table();
    // Of a newer version, nothing else is certain.
    let version = root.get("version").map(|it| it.as_integer());
    match version {
        Some(Some(version)) if version > VERSION => {
            return Err(LockError::Newer { version, newest: VERSION });
        }
        Some(Some(VERSION)) => {}
        _ => return Err(reader.field(root.get("version"), "version", "must be 1")),
    }
    let mut lock = Lock { skills: Vec::new(), unknown: unknown(root, &FIELDS) };
    match root.get("skill") {
        None => {}
        Some(Item::ArrayOfTables(tables)) => {
            if tables.len() > MAX_SKILLS {
                return Err(LockError::too_many());
            }
            for table in tables {
                let line = table.span().map_or(1, |it| reader.line(it.start));
                lock.skills.push(reader.skill(table, line)?);
            }
        }
        // An empty list, as other programs may write it.
        Some(item) if item.as_array().is_some_and(toml_edit::Array::is_empty) => {}
        item => return Err(reader.field(item, "skill", "must be written as `[[skill]]`")),
    }
    lock.skills.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = lock.skills.windows(2).find(|it| it[0].name == it[1].name) {
        let name = pair[0].name.clone();
        let tables = root.get("skill").and_then(Item::as_array_of_tables).into_iter().flatten();
        let second =
            tables.filter(|it| it.get("name").and_then(Item::as_str) == Some(&name)).nth(1);
        let line = second.and_then(toml_edit::Table::span).map_or(1, |it| reader.line(it.start));
        return Err(LockError::Duplicate { line, name });
    }
    check::targets(lock.skills.iter())?;
    Ok(lock)
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|it| it.0 + 1)).collect()
}

fn unknown(table: &dyn TableLike, known: &[&str]) -> Vec<(String, String)> {
    let fields = table.iter().filter(|it| !known.contains(&it.0));
    let mut fields: Vec<(String, String)> =
        fields.filter_map(|(key, item)| Some((key.to_owned(), write::unknown(item)?))).collect();
    fields.sort();
    fields
}

struct Reader {
    /// Where lines begin.
    lines: Vec<usize>,
}

impl Reader {
    fn skill(&self, table: &toml_edit::Table, line: usize) -> Result<LockedSkill, LockError> {
        let name = self.text(table, "name", line)?.ok_or_else(|| missing(line, "name"))?;
        let source = self.text(table, "source", line)?.ok_or_else(|| missing(line, "source"))?;
        let source: SkillSource = source.parse().map_err(|source| LockError::Source {
            line: self.line_of(table.get("source"), line),
            skill: name.to_owned(),
            source,
        })?;
        let url = self.text(table, "url", line)?.ok_or_else(|| missing(line, "url"))?;
        let digest = self.text(table, "digest", line)?.ok_or_else(|| missing(line, "digest"))?;
        let digest = digest.parse().map_err(|source| LockError::Digest {
            line: self.line_of(table.get("digest"), line),
            of: name.to_owned(),
            source,
        })?;
        let mut files = Vec::new();
        for value in self.list(table, "files", line)?.ok_or_else(|| missing(line, "files"))? {
            files.push(self.file(value, line)?);
        }
        if !files.is_sorted() {
            files.sort();
        }
        let mut targets = Vec::new();
        for value in self.list(table, "targets", line)?.into_iter().flatten() {
            targets.push(self.target(value, line)?);
        }
        let clients = self.list(table, "clients", line)?.map(|it| {
            it.iter()
                .map(|it| it.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
                .ok_or_else(|| {
                    self.field(table.get("clients"), "clients", "must be a list of texts")
                })
        });
        let published = match table.get("published") {
            None => None,
            Some(item) => {
                Some(item.as_integer().and_then(|it| u64::try_from(it).ok()).ok_or_else(|| {
                    self.field(Some(item), "published", "must be a number of seconds since 1970")
                })?)
            }
        };
        let text = |key: &str| Ok(self.text(table, key, line)?.map(str::to_owned));
        let skill = LockedSkill {
            name: name.to_owned(),
            skill: text("skill")?.filter(|it| it != name),
            source,
            url: url.to_owned(),
            reference: text("reference")?,
            commit: text("commit")?,
            version: text("version")?,
            published,
            integrity: text("integrity")?,
            path: text("path")?.unwrap_or_default(),
            plugin: text("plugin")?,
            digest,
            files,
            signer: text("signer")?,
            clients: clients.transpose()?,
            copy: self.switch(table.get("copy"), "copy")?,
            targets,
            unknown: unknown(table, &write::SKILL_FIELDS),
        };
        check::skill(&skill).map_err(|it| it.at(line))?;
        Ok(skill)
    }

    fn file(&self, value: &Value, line: usize) -> Result<TreeFile, LockError> {
        let line = value.span().map_or(line, |it| self.line(it.start));
        let Some(table) = value.as_inline_table() else {
            return Err(LockError::Field {
                line,
                field: "files".to_owned(),
                expected: "must be a list of tables",
            });
        };
        let path = self.text(table, "path", line)?.ok_or_else(|| missing(line, "files.path"))?;
        let digest =
            self.text(table, "digest", line)?.ok_or_else(|| missing(line, "files.digest"))?;
        let digest = digest.parse().map_err(|source| LockError::Digest {
            line,
            of: path.to_owned(),
            source,
        })?;
        let size =
            table.get("size").and_then(Value::as_integer).and_then(|it| u64::try_from(it).ok());
        let size = size.ok_or(LockError::Field {
            line,
            field: "files.size".to_owned(),
            expected: "must be a number, 0 or more",
        })?;
        let executable = match table.get("executable") {
            None => false,
            Some(value) => value.as_bool().ok_or(LockError::Field {
                line,
                field: "files.executable".to_owned(),
                expected: "must be `true` or `false`",
            })?,
        };
        Ok(TreeFile { path: path.to_owned(), digest, size, executable })
    }

    fn target(&self, value: &Value, line: usize) -> Result<InstallTarget, LockError> {
        let line = value.span().map_or(line, |it| self.line(it.start));
        let Some(table) = value.as_inline_table() else {
            return Err(LockError::Field {
                line,
                field: "targets".to_owned(),
                expected: "must be a list of tables",
            });
        };
        let path = self.text(table, "path", line)?.ok_or_else(|| missing(line, "targets.path"))?;
        let form = self.text(table, "form", line)?.ok_or_else(|| missing(line, "targets.form"))?;
        let known = TargetForm::NAMES.iter().find(|it| it.1 == form);
        let (form, _) = known.ok_or_else(|| LockError::Form { line, form: form.to_owned() })?;
        Ok(InstallTarget::new(path, *form))
    }

    /// Returns a text; `None` if there is no such field.
    fn text<'t>(
        &self,
        table: &'t dyn TableLike,
        key: &str,
        line: usize,
    ) -> Result<Option<&'t str>, LockError> {
        let Some(item) = table.get(key) else { return Ok(None) };
        match item.as_str() {
            Some(text) => Ok(Some(text)),
            None => Err(LockError::Field {
                line: self.line_of(Some(item), line),
                field: key.to_owned(),
                expected: "must be a text",
            }),
        }
    }

    fn list<'t>(
        &self,
        table: &'t toml_edit::Table,
        key: &str,
        line: usize,
    ) -> Result<Option<&'t toml_edit::Array>, LockError> {
        let Some(item) = table.get(key) else { return Ok(None) };
        let list = item.as_array();
        let line = self.line_of(Some(item), line);
        list.map(Some).ok_or(LockError::Field {
            line,
            field: key.to_owned(),
            expected: "must be a list",
        })
    }

    fn switch(&self, item: Option<&Item>, field: &str) -> Result<bool, LockError> {
        match item {
            None => Ok(false),
            Some(value) => {
                value.as_bool().ok_or_else(|| self.field(item, field, "must be `true` or `false`"))
            }
        }
    }

    fn field(&self, item: Option<&Item>, field: &str, expected: &'static str) -> LockError {
        LockError::Field { line: self.line_of(item, 1), field: field.to_owned(), expected }
    }

    fn line_of(&self, item: Option<&Item>, otherwise: usize) -> usize {
        item.and_then(Item::span).map_or(otherwise, |it| self.line(it.start))
    }

    fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|it| *it <= offset)
    }
}

fn missing(line: usize, field: &str) -> LockError {
    LockError::Field { line, field: field.to_owned(), expected: "is missing" }
}
