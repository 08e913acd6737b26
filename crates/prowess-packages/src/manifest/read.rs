//! Reads `[skills]` and `[packages]`, and collects all that is wrong with them.

use std::{collections::BTreeMap, ops::Range};

use prowess::{client, is_plain_name, nearest};
use toml_edit::{Document, Item, Key, TableLike};
use url::Url;

use super::{
    Contents, MAX_FILE, MAX_SKILLS, ManifestError, ManifestNote, PackageSettings, SignerPolicy,
    WantedSkill, conflict, position, settings::duration,
};
use crate::source::SkillSource;

/// The keys of an entry.
pub(super) const KEYS: [&str; 4] = ["source", "skill", "clients", "copy"];
/// The keys of `[packages]`.
const SETTINGS: [&str; 5] = ["clients", "copy", "min_age", "registries", "signers"];
/// The most errors that are collected.
const MAX_ERRORS: usize = 100;

/// Reads a manifest, as far as it can be read, and returns what is wrong with it.
pub(super) fn read(text: &str) -> (Contents, Vec<ManifestError>) {
    if text.len() > MAX_FILE {
        return (Contents::default(), vec![ManifestError::too_large()]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            if let Some((first, last)) = conflict(text) {
                return (Contents::default(), vec![ManifestError::Conflict { first, last }]);
            }
            let (line, column) = position(text, error.span().map_or(0, |it| it.start));
            let message = error.message().trim().replace('\n', ", ");
            let error = ManifestError::Syntax { line, column, message };
            return (Contents::default(), vec![error]);
        }
    };
    let mut reader = Reader { text, contents: Contents::default(), errors: Vec::new() };
    if let Some((key, item)) = document.as_table().get_key_value("skills") {
        reader.skills(key, item);
    }
    if let Some((key, item)) = document.as_table().get_key_value("packages") {
        reader.settings(key, item);
    }
    (reader.contents, reader.errors)
}

/// Returns the skill that an entry means; `None` if it is faulty.
pub(super) fn entry(name: &str, item: &Item) -> Option<WantedSkill> {
    let mut reader = Reader { text: "", contents: Contents::default(), errors: Vec::new() };
    reader.skill(name, &Key::new(name), item)
}

struct Reader<'t> {
    text: &'t str,
    contents: Contents,
    errors: Vec<ManifestError>,
}

impl Reader<'_> {
    fn skills(&mut self, key: &Key, item: &Item) {
        let Some(table) = self.table("skills", key, item) else { return };
        if table.len() > MAX_SKILLS {
            self.errors.push(ManifestError::TooLarge { limit: format!("{MAX_SKILLS} skills") });
            return;
        }
        let mut folded: BTreeMap<String, &str> = BTreeMap::new();
        for (name, item) in table.iter() {
            let Some(key) = table.key(name) else { continue };
            let (line, column) = self.position(key, item);
            if let Some(other) = folded.insert(name.to_lowercase(), name) {
                let (name, other) = (name.to_owned(), other.to_owned());
                self.error(ManifestError::Collision { line, column, name, other });
            } else if !is_plain_name(name) {
                self.error(ManifestError::Name { line, column, name: name.to_owned() });
            } else if let Some(skill) = self.skill(name, key, item) {
                self.contents.skills.push(skill);
            }
        }
        self.contents.skills.sort_by(|a, b| a.name.cmp(&b.name));
    }

    fn skill(&mut self, name: &str, key: &Key, item: &Item) -> Option<WantedSkill> {
        let dotted = format!("skills.{name}");
        if let Some(text) = item.as_str() {
            let (source, skill) = self.source(name, key, item, text)?;
            return Some(WantedSkill { skill, ..WantedSkill::new(name, source) });
        }
        let Some(table) = item.as_table_like() else {
            return self.wrong_type(dotted, key, item, "must be a source or a table with one");
        };
        self.note_unknown(&dotted, table, &KEYS);
        let Some((source_key, source)) = table.get_key_value("source") else {
            return self.wrong_type(dotted, key, item, "must have a `source`");
        };
        let Some(text) = source.as_str() else {
            return self.wrong_type(
                format!("{dotted}.source"),
                source_key,
                source,
                "must be a text",
            );
        };
        let (from, chosen) = self.source(name, source_key, source, text)?;
        let mut wanted = WantedSkill { skill: chosen, ..WantedSkill::new(name, from) };
        if let Some((key, item)) = table.get_key_value("skill") {
            let dotted = format!("{dotted}.skill");
            let Some(skill) = item.as_str() else {
                return self.wrong_type(dotted, key, item, "must be a text");
            };
            let is_name = (1..=256).contains(&skill.len()) && !skill.contains(char::is_control);
            let agrees = wanted.skill.as_deref().is_none_or(|it| it == skill);
            if !is_name || !agrees {
                let why = match is_name {
                    true => "is not the skill that the source names",
                    false => "is not the name of a skill",
                };
                return self.wrong_value(dotted, key, item, skill, why);
            }
            wanted.skill = Some(skill.to_owned()).filter(|it| it != name);
        }
        if let Some((key, item)) = table.get_key_value("clients") {
            wanted.clients = Some(self.clients(format!("{dotted}.clients"), key, item)?);
        }
        if let Some((key, item)) = table.get_key_value("copy") {
            wanted.copy = self.switch(format!("{dotted}.copy"), key, item)?;
        }
        Some(wanted)
    }

    /// Returns a source without names of skills, and the name that it has if it is not that of the key.
    fn source(
        &mut self,
        name: &str,
        key: &Key,
        item: &Item,
        text: &str,
    ) -> Option<(SkillSource, Option<String>)> {
        let mut source = match text.parse::<SkillSource>() {
            Ok(source) => source,
            Err(source) => {
                let (line, column) = self.position(key, item);
                let name = name.to_owned();
                self.error(ManifestError::Source { line, column, name, source });
                return None;
            }
        };
        let mut skills = std::mem::take(&mut source.skills);
        if skills.len() > 1 {
            let why = "names several skills, and each needs an entry";
            return self.wrong_value(format!("skills.{name}"), key, item, text, why);
        }
        Some((source, skills.pop().filter(|it| it != name)))
    }

    fn settings(&mut self, key: &Key, item: &Item) {
        let Some(table) = self.table("packages", key, item) else { return };
        self.note_unknown("packages", table, &SETTINGS);
        let mut settings = PackageSettings::default();
        for (name, item) in table.iter() {
            let Some(key) = table.key(name) else { continue };
            let dotted = format!("packages.{name}");
            match name {
                "clients" => settings.clients = self.clients(dotted, key, item),
                "copy" => settings.copy = self.switch(dotted, key, item).unwrap_or_default(),
                "min_age" => settings.min_age = self.age(dotted, key, item),
                "registries" => settings.registries = self.registries(&dotted, key, item),
                "signers" => settings.signers = self.signers(&dotted, key, item),
                _ => {}
            }
        }
        self.contents.settings = settings;
    }

    fn age(&mut self, dotted: String, key: &Key, item: &Item) -> Option<std::time::Duration> {
        let Some(text) = item.as_str() else {
            return self.wrong_type(dotted, key, item, "must be a text");
        };
        duration(text).or_else(|| self.wrong_value(dotted, key, item, text, "is not a duration"))
    }

    fn registries(&mut self, dotted: &str, key: &Key, item: &Item) -> BTreeMap<String, Url> {
        let mut registries = BTreeMap::new();
        let Some(table) = self.table(dotted, key, item) else { return registries };
        for (name, item) in table.iter() {
            let Some(key) = table.key(name) else { continue };
            let dotted = format!("{dotted}.{name}");
            let Some(text) = item.as_str() else {
                let _: Option<()> = self.wrong_type(dotted, key, item, "must be a text");
                continue;
            };
            let url = Url::parse(text).ok().filter(|it| {
                matches!(it.scheme(), "https" | "http") && it.has_host() && it.password().is_none()
            });
            match url {
                _ if !is_plain_name(name) => {
                    let why = "is not a plain name for a registry";
                    let _: Option<()> = self.wrong_value(dotted, key, item, name, why);
                }
                Some(url) => drop(registries.insert(name.to_owned(), url)),
                None => {
                    let why = "is not the URL of a registry";
                    let _: Option<()> = self.wrong_value(dotted, key, item, text, why);
                }
            }
        }
        registries
    }

    fn signers(&mut self, dotted: &str, key: &Key, item: &Item) -> Vec<SignerPolicy> {
        let mut signers = Vec::new();
        let Some(table) = self.table(dotted, key, item) else { return signers };
        for (pattern, item) in table.iter() {
            let Some(key) = table.key(pattern) else { continue };
            let dotted = format!("{dotted}.{pattern}");
            if pattern.is_empty() || pattern.contains(|c: char| c.is_control() || c == ' ') {
                let _: Option<()> =
                    self.wrong_value(dotted, key, item, pattern, "is not a pattern of sources");
            } else if let Some(identities) = self.texts(dotted, key, item) {
                signers.push(SignerPolicy { pattern: pattern.to_owned(), identities });
            }
        }
        signers
    }

    fn clients(&mut self, dotted: String, key: &Key, item: &Item) -> Option<Vec<String>> {
        let names = self.texts(dotted.clone(), key, item)?;
        match names.iter().find(|it| client(it).is_none()) {
            Some(name) => {
                let name = name.clone();
                self.wrong_value(dotted, key, item, &name, "is not the name of a client")
            }
            None => Some(names),
        }
    }

    fn texts(&mut self, dotted: String, key: &Key, item: &Item) -> Option<Vec<String>> {
        let texts: Option<Vec<String>> = item.as_array().and_then(|it| {
            it.iter().map(|it| it.as_str().filter(|it| !it.is_empty()).map(str::to_owned)).collect()
        });
        texts.or_else(|| self.wrong_type(dotted, key, item, "must be a list of texts"))
    }

    fn switch(&mut self, dotted: String, key: &Key, item: &Item) -> Option<bool> {
        item.as_bool().or_else(|| self.wrong_type(dotted, key, item, "must be `true` or `false`"))
    }

    fn table<'i>(&mut self, name: &str, key: &Key, item: &'i Item) -> Option<&'i dyn TableLike> {
        let table = item.as_table_like();
        table.or_else(|| self.wrong_type(name.to_owned(), key, item, "must be a table"))
    }

    fn note_unknown(&mut self, dotted: &str, table: &dyn TableLike, known: &[&'static str]) {
        for (name, item) in table.iter().filter(|it| !known.contains(&it.0)) {
            let Some(key) = table.key(name) else { continue };
            let (line, _) = self.position(key, item);
            let near = nearest(name, known.iter().copied()).map(str::to_owned);
            if self.contents.notes.len() < MAX_ERRORS {
                let key = format!("{dotted}.{name}");
                self.contents.notes.push(ManifestNote { line, key, nearest: near });
            }
        }
    }

    fn wrong_type<T>(
        &mut self,
        dotted: String,
        key: &Key,
        item: &Item,
        expected: &'static str,
    ) -> Option<T> {
        let (line, column) = self.position(key, item);
        self.error(ManifestError::Type { line, column, key: dotted, expected });
        None
    }

    fn wrong_value<T>(
        &mut self,
        dotted: String,
        key: &Key,
        item: &Item,
        value: &str,
        why: &'static str,
    ) -> Option<T> {
        let (line, column) = self.position(key, item);
        let value = value.to_owned();
        self.error(ManifestError::Value { line, column, key: dotted, value, why });
        None
    }

    fn error(&mut self, error: ManifestError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }

    /// Returns the place of an entry: of its key, or of its header.
    fn position(&self, key: &Key, item: &Item) -> (usize, usize) {
        let span: Range<usize> = key.span().or_else(|| item.span()).unwrap_or(0..0);
        position(self.text, span.start)
    }
}
