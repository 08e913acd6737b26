//! Reads a settings file: values go to their slots, problems are recorded with their line.

use std::{
    io::{self, Read as _},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use prowess::{did_you_mean, nearest};
use prowess_runtime::sys::open_no_wait;
use prowess_runtime::{ApprovalStore, approval::settings_digest};
use toml_edit::{Document, Item, TableLike};

use super::{
    origin::{ConfigProblem, IgnoredSetting, SettingOrigin},
    places::{ConfigLayer, Owner, Places},
    right::ProjectRight,
    table::{Facts, Row},
    value::without_password,
};

/// The largest file of settings, in bytes.
const LARGEST: u64 = 1024 * 1024;
/// The characters shown of a line on each side of the marked part.
const AROUND: usize = 80;
/// The most problems reported of one file.
const MOST: usize = 100;

/// The table with the skills that a project asks for, which are no settings.
pub(super) const MANIFEST: &str = "skills";

pub(super) struct Reader<'h> {
    path: Arc<Path>,
    document: Document<String>,
    /// The offset of each line but the first.
    lines: Vec<usize>,
    /// The directory from which relative paths are resolved.
    pub(super) directory: PathBuf,
    pub(super) home: Option<&'h Path>,
    pub(super) owner: Owner,
    /// Whether the user has approved exactly these bytes.
    pub(super) is_approved: bool,
    /// The digest of its bytes.
    pub(super) digest: String,
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) ignored: Vec<IgnoredSetting>,
}

impl<'h> Reader<'h> {
    /// Reads and parses a file.
    pub(super) fn open(
        layer: &ConfigLayer,
        places: &'h Places,
    ) -> Result<Self, Box<ConfigProblem>> {
        let path: Arc<Path> = layer.file.as_path().into();
        let bytes = read(&path).map_err(|it| ConfigProblem::new(&*path, it))?;
        let digest = settings_digest(&bytes);
        let lines: Vec<usize> = (1..=bytes.len()).filter(|at| bytes[at - 1] == b'\n').collect();
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = Some(line_number(&lines, error.utf8_error().valid_up_to()));
            ConfigProblem { line, ..ConfigProblem::new(&*path, "this is not UTF-8 text") }
        })?;
        let absolute =
            std::path::absolute(&path).map_err(|it| ConfigProblem::new(&*path, it.to_string()))?;
        let directory = absolute.parent().unwrap_or(Path::new("/")).to_owned();
        let document = Document::parse(text.clone()).map_err(|error| {
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            let problem = ConfigProblem::new(&*path, format!("this is not TOML: {message}"));
            with_excerpt(problem, &text, &lines, error.span().unwrap_or_default())
        })?;
        let is_approved = layer.owner == Owner::Project
            && places
                .state
                .as_ref()
                .is_some_and(|it| ApprovalStore::at(it).has_approved_settings(&path, &digest));
        Ok(Self {
            path,
            document,
            lines,
            directory,
            home: places.home.as_deref(),
            owner: layer.owner,
            is_approved,
            digest,
            problems: Vec::new(),
            ignored: Vec::new(),
        })
    }

    /// Reads every value of the file into the slot of its key.
    pub(super) fn read(&mut self, rows: &mut [Row<'_>]) {
        let root = self.document.as_table().clone();
        let keys: Vec<&str> = rows.iter().map(|it| it.facts.key).collect();
        for (table, item) in self.entries(&root) {
            let own: Vec<&str> =
                keys.iter().filter_map(|it| strip_table(it, &table.name)).collect();
            // Tables with names of the user's choice have no known keys.
            if table.name == MANIFEST {
                self.check_manifest(item);
            } else if let Some(row) = rows.iter_mut().find(|it| it.facts.key == table.name) {
                let origin = self.origin(&table.span);
                row.slot.read(&row.facts, item, origin, self);
            } else if own.is_empty() {
                self.unknown_table(&table, &keys);
            } else if let Some(inner) = item.as_table_like() {
                for (key, item) in self.entries(inner) {
                    let dotted = format!("{}.{}", table.name, key.name);
                    match rows.iter_mut().find(|it| it.facts.key == dotted) {
                        Some(row) => {
                            let origin = self.origin(&key.span);
                            row.slot.read(&row.facts, item, origin, self);
                        }
                        None => self.unknown_key(&key, &format!("`[{}]`", table.name), &own),
                    }
                }
            } else {
                let message = format!("`{}` must be a table", table.name);
                let hint = format!("write `[{}]` on a line of its own", table.name);
                self.note(&table.span, message, Some(hint));
            }
        }
        self.problems.sort_by_key(|it| it.line);
    }

    /// Checks the shape of the skills that a project asks for. Their sources are read where they
    /// are installed.
    fn check_manifest(&mut self, item: &Item) {
        let Some(table) = item.as_table_like() else {
            let span = item.span().unwrap_or_default();
            let hint = "write `[skills]` on a line of its own, and below it a line for each skill";
            return self.note(&span, "`skills` must be a table", Some(hint.to_owned()));
        };
        for (key, item) in self.entries(table) {
            if item.as_str().is_none() && item.as_table_like().is_none() {
                let message = format!("`{}` in `[skills]` is no source of a skill", key.name);
                let hint = "a skill is written as `pdf = \"anthropics/skills\"`; settings belong below `[skill]`";
                self.note(&key.span, message, Some(hint.to_owned()));
            }
        }
    }

    /// Records a setting that a project's file may not set: as a whole, or some of its entries.
    pub(super) fn ignore(
        &mut self,
        facts: &Facts,
        origin: &SettingOrigin,
        is_all: bool,
        entries: Vec<(String, Option<SettingOrigin>)>,
        reason: &'static str,
    ) {
        let whole = IgnoredSetting {
            key: facts.key,
            origin: origin.clone(),
            entries: Vec::new(),
            reason,
            can_be_approved: facts.right == ProjectRight::NarrowerOrApproved,
        };
        if is_all && entries.is_empty() {
            self.ignored.push(whole);
            return;
        }
        let mut entries_without_line = Vec::new();
        for (entry, line) in entries {
            match line {
                Some(origin) => {
                    let entries = vec![entry];
                    self.ignored.push(IgnoredSetting { origin, entries, ..whole.clone() });
                }
                None => entries_without_line.push(entry),
            }
        }
        if !entries_without_line.is_empty() {
            self.ignored.push(IgnoredSetting { entries: entries_without_line, ..whole });
        }
    }

    /// Returns the keys and values of a table.
    pub(super) fn entries<'i>(&self, table: &'i dyn TableLike) -> Vec<(Key, &'i Item)> {
        table.iter().map(|(name, item)| (key_of(table, name, item), item)).collect()
    }

    /// Records an unknown key.
    pub(super) fn unknown_key(&mut self, key: &Key, of: &str, known: &[&str]) {
        let hint = match nearest(&key.name, known.iter().copied()) {
            Some(near) => did_you_mean(near),
            None => format!("there are {}", join_quoted(known)),
        };
        self.note(&key.span, format!("{of} has no key `{}`", key.name), Some(hint));
    }

    fn unknown_table(&mut self, table: &Key, keys: &[&str]) {
        let mut tables: Vec<&str> = keys.iter().filter_map(|it| it.split('.').next()).collect();
        tables.dedup();
        tables.push(MANIFEST);
        let home = keys.iter().find_map(|it| it.split_once('.').filter(|it| it.1 == table.name));
        let hint = match (home, nearest(&table.name, tables.iter().copied())) {
            (Some((home, key)), _) => format!("`{key}` belongs below `[{home}]`"),
            (None, Some(near)) => did_you_mean(format_args!("[{near}]")),
            (None, None) => format!("there are {}", join_quoted(&tables)),
        };
        self.note(&table.span, format!("there is no table `{}`", table.name), Some(hint));
    }

    /// Records a problem with a part of the file.
    pub(super) fn note(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        if self.problems.len() < MOST {
            let problem = ConfigProblem { hint, ..ConfigProblem::new(&*self.path, message) };
            let text = self.document.raw();
            self.problems.push(with_excerpt(problem, text, &self.lines, span.clone()));
        }
    }

    /// Returns the origin of a part of the file.
    pub(super) fn origin(&self, span: &Range<usize>) -> SettingOrigin {
        SettingOrigin::File { path: self.path.clone(), line: line_number(&self.lines, span.start) }
    }
}

/// The name of a table or value, and its place.
pub(super) struct Key {
    pub(super) name: String,
    pub(super) span: Range<usize>,
}

fn key_of(table: &dyn TableLike, name: &str, item: &Item) -> Key {
    let span = table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span());
    Key { name: name.to_owned(), span: span.unwrap_or_default() }
}

/// Returns the rest of a dotted key that belongs to a table.
fn strip_table<'k>(key: &'k str, table: &str) -> Option<&'k str> {
    key.split_once('.').filter(|it| it.0 == table).map(|it| it.1)
}

/// Returns `a`, `b` and `c`, each in backticks.
fn join_quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|it| format!("`{it}`")).collect();
    words.join(", ")
}

/// Reads a regular file; does not wait for a pipe.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = match open_no_wait(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err("there is no such file".to_owned());
        }
        Err(error) => return Err(format!("the settings cannot be read: {error}")),
    };
    let mut bytes = Vec::new();
    let read = match file.metadata() {
        Ok(it) if !it.is_file() => {
            return Err("the settings cannot be read: it is not a regular file".to_owned());
        }
        Ok(_) => file.take(LARGEST + 1).read_to_end(&mut bytes),
        Err(error) => Err(error),
    };
    read.map_err(|error| format!("the settings cannot be read: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("the settings are larger than {LARGEST} bytes"));
    }
    Ok(bytes)
}

/// Returns the line of a byte, counted from 1.
fn line_number(lines: &[usize], at: usize) -> usize {
    lines.partition_point(|it| *it <= at) + 1
}

/// Adds the marked line to a problem, cut around the mark if it is very long.
fn with_excerpt(
    problem: ConfigProblem,
    text: &str,
    lines: &[usize],
    span: Range<usize>,
) -> ConfigProblem {
    let at = text.floor_char_boundary(span.start);
    let number = line_number(lines, at);
    let begin = if number > 1 { lines[number - 2] } else { 0 };
    let end = lines.get(number - 1).map_or(text.len(), |it| it - 1);
    let from = begin.max(text.ceil_char_boundary(at.saturating_sub(AROUND)));
    let to = text.floor_char_boundary(span.end.clamp(at, end.max(at)));
    let until = end.min(text.floor_char_boundary(to.saturating_add(AROUND))).max(to);
    let plain = text[from..until].trim_end_matches('\r');
    let excerpt = without_password(plain);
    // Removing a password moves the text after it.
    let columns = (excerpt == plain).then_some((at - from, to - from)).filter(|it| it.0 < it.1);
    ConfigProblem { line: Some(number), excerpt: Some(excerpt), columns, ..problem }
}
