//! A skill that a server offers, as the server describes it. Nothing it says is trusted: anything
//! that cannot be verified later is refused here.

use std::collections::{BTreeMap, BTreeSet};

use prowess::{
    frontmatter_json, is_plain_name,
    spec::{MAX_DESCRIPTION, SKILL_FILE},
};
use serde_json::{Map, Value};
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::{digest::digest, percent::percent_decoded};

/// A skill that a server offers. Its files have not been read yet.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteSkill {
    /// Its address here: the label of its server, a colon, and its name.
    pub address: String,
    /// The label of its server.
    pub server: String,
    /// Its name on the server.
    pub name: String,
    /// The server's description, in one line.
    pub description: String,
    /// The URI of its `SKILL.md` on the server.
    pub uri: String,
    /// All of its files.
    pub files: Vec<RemoteFile>,
    /// The project file that configures the server; `None` if a person does.
    pub(crate) set_by: Option<String>,
    frontmatter: Map<String, Value>,
}

/// A file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteFile {
    /// Its URI on the server.
    pub uri: String,
    /// Its path within the skill.
    pub path: String,
    /// Its digest, as `sha256:` and 64 digits.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The skills that a server offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemoteSkills {
    /// The valid ones, in the order in which they are listed.
    pub skills: Vec<RemoteSkill>,
    /// The others, each with the reason.
    pub refused: Vec<(String, String)>,
    /// Whether the server has more than were read.
    pub has_more: bool,
}

/// The file that every skill has.
const DOCUMENT: &str = SKILL_FILE;
/// The maximum number of files of a skill, and their maximum total size.
const FILES: usize = 512;
const BYTES: u64 = 16 * 1024 * 1024;
/// The maximum length of a URI, of a description, and of a frontmatter.
const URI: usize = 2048;
const FRONTMATTER: usize = 64 * 1024;
/// The maximum length of a server's text in a message.
const SHOWN: usize = 200;

impl RemoteSkills {
    /// Parses a server's list. `set_by` is the project's file that configures the server, if one
    /// does.
    pub fn of(server: &str, set_by: Option<&str>, listed: &[Value], has_more: bool) -> Self {
        let mut all = Self { has_more, ..Self::default() };
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for uri in listed.iter().filter_map(|it| it["uri"].as_str()) {
            *times.entry(uri).or_default() += 1;
        }
        for entry in listed {
            let uri = entry["uri"].as_str().unwrap_or_default();
            let read = match times.get(uri) {
                Some(2..) => Err("it is listed more than once".to_owned()),
                _ => RemoteSkill::read(server, set_by, entry),
            };
            match read {
                Ok(skill) => all.skills.push(skill),
                Err(why) => all.refused.push((excerpt(uri), why)),
            }
        }
        all.disambiguate();
        all
    }

    /// Finds a skill by its address, or by its URI.
    pub fn find(&self, name: &str) -> Option<&RemoteSkill> {
        self.skills.iter().find(|it| it.address == name || it.uri == name)
    }

    /// Replaces the listed entry of a skill.
    pub fn replace(&mut self, skill: RemoteSkill) {
        match self.skills.iter_mut().find(|it| it.uri == skill.uri) {
            Some(old) => *old = RemoteSkill { address: old.address.clone(), ..skill },
            None => self.skills.push(skill),
        }
    }

    /// Extends the addresses of skills with the same name by their paths.
    fn disambiguate(&mut self) {
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for skill in &self.skills {
            *names.entry(skill.name.clone()).or_default() += 1;
        }
        for skill in self.skills.iter_mut().filter(|it| names[&it.name] > 1) {
            let base = skill.uri.strip_suffix("/SKILL.md").unwrap_or(&skill.uri);
            skill.address = format!("{}:{base}", skill.server);
        }
    }
}

impl RemoteSkill {
    /// The path of the file that every skill has.
    pub const DOCUMENT: &str = "SKILL.md";

    /// Parses an entry of a server's list; fails with the reason.
    pub fn read(server: &str, set_by: Option<&str>, entry: &Value) -> Result<Self, String> {
        let uri = entry["uri"].as_str().ok_or("its URI is not a string")?;
        let parts = parse_uri(uri)?;
        let [.., folder, document] = &parts[..] else {
            return Err("its URI names no skill".to_owned());
        };
        let base = uri.strip_suffix(DOCUMENT).filter(|_| document == DOCUMENT);
        let base = base.ok_or("its URI is not that of a `SKILL.md`")?;
        let frontmatter = entry["frontmatter"].as_object().ok_or("it has no frontmatter")?;
        if entry["frontmatter"].to_string().len() > FRONTMATTER {
            return Err(format!("its frontmatter has more than {FRONTMATTER} bytes"));
        }
        let text = |key: &str| frontmatter.get(key).and_then(Value::as_str);
        let name = text("name").filter(|it| is_plain_name(it));
        let name = name.ok_or("its name is not a valid skill name")?;
        if folder != name {
            return Err(format!("its name is `{name}`, but its URI says `{}`", excerpt(folder)));
        }
        let description = text("description")
            .filter(|it: &&str| !it.trim().is_empty() && it.chars().count() <= MAX_DESCRIPTION);
        let description = description.ok_or(format!(
            "its description is not a string of 1 to {MAX_DESCRIPTION} characters"
        ))?;
        Ok(Self {
            address: format!("{server}:{name}"),
            server: server.to_owned(),
            name: name.to_owned(),
            description: one_line(description),
            uri: uri.to_owned(),
            files: parse_files(base, &entry["resources"])?,
            set_by: set_by.map(str::to_owned),
            frontmatter: frontmatter.clone(),
        })
    }

    /// Whether only people may activate it, according to its server.
    pub fn hides_from_models(&self) -> bool {
        match self.frontmatter.get("disable-model-invocation") {
            Some(Value::Bool(hides)) => *hides,
            // Words that some YAML parsers treat as a boolean.
            Some(Value::String(word)) => {
                matches!(&*word.to_ascii_lowercase(), "true" | "yes" | "on")
            }
            _ => false,
        }
    }

    /// Returns the file at a path. An unlisted file is not part of the skill.
    pub fn file(&self, path: &str) -> Option<&RemoteFile> {
        self.files.iter().find(|it| it.path == path)
    }

    /// Verifies that a `SKILL.md` matches the entry; returns the difference otherwise.
    pub fn verify(&self, document: &[u8]) -> Result<(), String> {
        let written = frontmatter_json(document).map_err(|error| error.to_string())?;
        let keys: BTreeSet<&String> = written.keys().chain(self.frontmatter.keys()).collect();
        match keys.into_iter().find(|key: &&String| {
            match (written.get(*key), self.frontmatter.get(*key)) {
                (Some(one), Some(other)) => !is_same(one, other),
                _ => true,
            }
        }) {
            Some(key) => Err(format!("its `{}` differs from the listed one", excerpt(key))),
            None => Ok(()),
        }
    }
}

impl RemoteFile {
    /// Verifies its bytes; returns the difference otherwise.
    pub fn verify(&self, bytes: &[u8]) -> Result<(), String> {
        let size = bytes.len() as u64;
        if size != self.size {
            return Err(format!("it has {size} bytes, but {} were listed", self.size));
        }
        match self.digest.strip_prefix("sha256:") == Some(&*digest(bytes)) {
            true => Ok(()),
            false => Err("its digest differs from the listed one".to_owned()),
        }
    }
}

/// Parses the files of a skill below `base`; they must be complete and unique.
fn parse_files(base: &str, listed: &Value) -> Result<Vec<RemoteFile>, String> {
    if listed == "dynamic" {
        return Err("it is generated anew each time, so it cannot be approved".to_owned());
    }
    let listed = listed.as_array().ok_or("its files are not listed")?;
    if listed.len() > FILES {
        return Err(format!("it has more than {FILES} files"));
    }
    let mut paths = BTreeSet::new();
    let mut room = BYTES;
    let mut files = Vec::with_capacity(listed.len());
    for file in listed {
        let uri = file["uri"].as_str().ok_or("the URI of a file is not a string")?;
        let file = parse_file(base, uri, file)
            .map_err(|why| format!("its file `{}`: {why}", excerpt(uri)))?;
        if !paths.insert(file.path.clone()) {
            return Err(format!("its file `{}`: it is listed more than once", excerpt(uri)));
        }
        room = room
            .checked_sub(file.size)
            .ok_or_else(|| format!("its files have more than {BYTES} bytes"))?;
        files.push(file);
    }
    match files.iter().any(|it: &RemoteFile| it.uri.strip_prefix(base) == Some(DOCUMENT)) {
        true => Ok(files),
        false => Err("its `SKILL.md` is not among its files".to_owned()),
    }
}

fn parse_file(base: &str, uri: &str, file: &Value) -> Result<RemoteFile, String> {
    let below = uri.strip_prefix(base).ok_or("it is outside of the skill")?;
    parse_uri(uri)?;
    let path = below.split('/').map(decode_component).collect::<Result<Vec<_>, _>>()?.join("/");
    let digest = file["digest"].as_str().filter(|it| is_digest(it));
    let digest = digest.ok_or("its digest is not a SHA-256 digest")?.to_owned();
    let size = file["size"].as_u64().ok_or("its size is not a number of bytes")?;
    Ok(RemoteFile { uri: uri.to_owned(), path, digest, size })
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|it| {
        it.len() == 64 && it.bytes().all(|it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Returns the decoded components of a URI after its scheme. None leads up, or is anything but a
/// name.
fn parse_uri(uri: &str) -> Result<Vec<String>, String> {
    if uri.len() > URI {
        return Err(format!("its URI has more than {URI} bytes"));
    }
    let (scheme, rest) = uri.split_once("://").ok_or("its URI has no scheme")?;
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        || !scheme.bytes().all(|it: u8| it.is_ascii_alphanumeric() || b"+-.".contains(&it))
    {
        return Err("its URI has no scheme".to_owned());
    }
    if !rest.chars().all(|c: char| is_visible(&c) && !c.is_whitespace() && !"?#\\".contains(c)) {
        return Err("its URI has characters that are not allowed".to_owned());
    }
    // Other schemes may have an empty host.
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    rest.split('/').map(decode_component).collect()
}

/// Decodes a component of a path.
fn decode_component(written: &str) -> Result<String, String> {
    let text = percent_decoded(written).map_err(|why| format!("its URI is invalid: {why}"))?;
    let is_name = !matches!(&*text, "" | "." | "..")
        && text.chars().all(|c| is_visible(&c) && c != '/' && c != '\\');
    if is_name { Ok(text) } else { Err("a part of its URI is not a valid file name".into()) }
}

/// Whether two values are equal, however a number is written.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.as_f64() == other.as_f64() && one.is_f64() != other.is_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value): (&String, &Value)| {
                    other.get(key).is_some_and(|it| is_same(value, it))
                })
        }
        _ => one == other,
    }
}

/// Returns a text as one line, without invisible characters.
pub fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|it| it.chars().filter(is_visible).collect::<String>());
    words.filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether a character is visible, rather than a control or formatting character.
fn is_visible(c: &char) -> bool {
    !c.is_control() && get_general_category(*c) != GeneralCategory::Format
}

fn excerpt(text: &str) -> String {
    one_line(text).chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(uri: &str, resources: Value) -> Value {
        let frontmatter = json!({"name": "one", "description": "a"});
        json!({"uri": uri, "frontmatter": frontmatter, "resources": resources})
    }

    fn file(uri: &str) -> Value {
        json!({"uri": uri, "digest": format!("sha256:{}", "a".repeat(64)), "size": 1})
    }

    #[test]
    fn a_skill_lies_where_its_name_says_and_its_files_below() {
        for base in ["skill://one", "skill://a/b/one", "github://me/x/one", "file:///x/one"] {
            let files: Vec<Value> = ["SKILL.md", "a/b.md", "with%20space.md"]
                .iter()
                .map(|it| file(&format!("{base}/{it}")))
                .collect();
            let read =
                RemoteSkill::read("s", None, &entry(&format!("{base}/SKILL.md"), json!(files)));
            let skill = read.expect(base);
            let paths: Vec<&str> = skill.files.iter().map(|it| &*it.path).collect();
            assert_eq!(paths, ["SKILL.md", "a/b.md", "with space.md"]);
            assert_eq!(skill.address, "s:one");
        }
    }

    #[test]
    fn no_uri_leads_elsewhere() {
        for uri in [
            "one/SKILL.md",
            "://one/SKILL.md",
            "skill://two/SKILL.md",
            "skill://one/skill.md",
            "skill://one",
            "skill://SKILL.md",
            "skill://a/../one/SKILL.md",
            "skill://a/%2e%2E/one/SKILL.md",
            "skill://a%2fb/one/SKILL.md",
            "skill://a//one/SKILL.md",
            "skill://one/SKILL.md?x",
            "skill://one/SKILL.md#x",
            "skill://a\\b/one/SKILL.md",
            "skill://a\u{7}/one/SKILL.md",
            "skill://a%0a/one/SKILL.md",
            "skill://a\u{202e}/one/SKILL.md",
            "skill://a%E2%80%AE/one/SKILL.md",
            "skill://%ff/one/SKILL.md",
            "skill://%/one/SKILL.md",
        ] {
            let entry = entry(uri, json!([file(uri)]));
            assert!(RemoteSkill::read("s", None, &entry).is_err(), "{uri}");
        }
        let own = "skill://one/SKILL.md";
        for other in [
            own,
            "skill://one/%53KILL.md",
            "skill://one/../two/x",
            "skill://one/%2e%2e/two",
            "skill://one/a/..%2f..%2fb",
            "skill://one/",
            "skill://onetwo/x",
            "skill://two/x",
            "file:///etc/passwd",
            "",
        ] {
            let entry = entry(own, json!([file(own), file(other)]));
            assert!(RemoteSkill::read("s", None, &entry).is_err(), "{other}");
        }
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        assert!(is_same(&json!([1, {"a": 1.5}]), &json!([1.0, {"a": 1.5}])));
        for (one, other) in [
            (json!(1), json!(2)),
            (json!(1), json!("1")),
            (json!({"a": 1}), json!({"a": 1, "b": 1})),
            (json!([1]), json!([1, 1])),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
        ] {
            assert!(!is_same(&one, &other), "{one} {other}");
        }
    }
}
