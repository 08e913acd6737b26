//! The kinds of values: how each is written and shown.

use std::{
    collections::BTreeMap,
    fmt,
    num::{NonZeroU64, NonZeroUsize},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use prowess::{
    CLIENTS, Client, DEEPEST, Directory, PRESETS, Preset, Scope, Strategy, client, did_you_mean,
    name_hint, nearest, preset,
};
use prowess_mcp::config::{McpServerConfig, OauthSettings, ServerSetting, Transport};
use prowess_runtime::policy::{AllowedToolsMode, Approvals, Decision, UnlistedCommands};
use prowess_sandbox::SandboxLevel;
use serde_json::{Value as Json, json};
use toml_edit::{Item, Value as Toml};

use super::{
    RegistrySettings, RuleSetting, ServerSettings, SignerSetting, SignerSettings,
    normalize_command,
    origin::{IgnoredSetting, Setting, SettingOrigin},
    places::Owner,
    reader::Reader,
    right::ProjectRight,
    table::Facts,
    units::{bytes, duration, size},
};

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio(f64);

/// A price in any currency: a number, 0 or more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriceSetting(f64);

/// The age that something must have. More is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MinAge(pub Duration);

/// A client of the table.
#[derive(Debug, Clone, Copy)]
pub struct KnownClient(pub &'static Client);

impl PartialEq for KnownClient {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// The number of folder levels searched for skills: 1 to [`DEEPEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth(usize);

/// Presets, and the base of their relative directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presets {
    /// The presets; earlier ones win.
    pub presets: Vec<&'static Preset>,
    /// The base; `None` for the working directory.
    pub from: Option<PathBuf>,
}

/// A directory in which files may be read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath(pub PathBuf);

/// The address of a server. Its password is redacted, except in [`as_str`](Self::as_str).
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Ratio {
    /// Creates a ratio from a number from 0 to 1.
    pub fn new(number: f64) -> Option<Self> {
        (0.0..=1.0).contains(&number).then_some(Self(number))
    }

    /// Returns the number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PriceSetting {
    /// Creates a price from a number, 0 or more.
    pub fn new(number: f64) -> Option<Self> {
        (number >= 0.0 && number.is_finite()).then_some(Self(number))
    }

    /// Returns the number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Depth {
    /// The greatest depth.
    pub const DEEPEST: Self = Self(DEEPEST);

    /// Creates a depth from a number from 1 to [`DEEPEST`].
    pub fn new(depth: usize) -> Option<Self> {
        (1..=DEEPEST).contains(&depth).then_some(Self(depth))
    }

    /// Returns the number.
    pub fn get(self) -> usize {
        self.0
    }
}

impl Presets {
    /// Returns the directories of all presets.
    pub(super) fn directories(&self) -> impl Iterator<Item = Directory> {
        self.presets.iter().flat_map(|it| it.directories()).map(|it| match &self.from {
            Some(from) if it.scope == Scope::Project => {
                Directory { path: from.join(&it.path), ..it }
            }
            _ => it,
        })
    }
}

impl Address {
    /// Returns the whole address, including a password.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Redacts the passwords of addresses in a text.
pub(super) fn without_password(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + 3);
        let end = behind.find(|c: char| c.is_whitespace() || "\"'".contains(c));
        let address = &behind[..end.unwrap_or(behind.len())];
        out.push_str(before);
        // The last `@`, because a password may contain one.
        match address.rfind('@').and_then(|at| Some((address[..at].find(':')?, at))) {
            Some((colon, at)) => {
                out.push_str(&address[..=colon]);
                out.push_str("***");
                out.push_str(&address[at..]);
            }
            None => out.push_str(address),
        }
        rest = &behind[address.len()..];
    }
    out.push_str(rest);
    let secret = "password=";
    let mut from = 0;
    while let Some(at) = out[from..].find(secret).map(|it| from + it + secret.len()) {
        let stop = out[at..].find(|c: char| c.is_whitespace() || "&\"'".contains(c));
        out.replace_range(at..stop.map_or(out.len(), |it| at + it), "***");
        from = at;
    }
    out
}

/// A setting of any type.
pub(super) trait Slot {
    /// Reads a value from a file; problems are recorded.
    fn read(&mut self, facts: &Facts, item: &Item, origin: SettingOrigin, reader: &mut Reader<'_>);

    /// Returns its value as it is shown.
    fn to_json(&self) -> Json;

    /// Returns its value in TOML, in one line.
    fn to_toml(&self) -> String;

    /// Returns its origin.
    fn origin(&self) -> &SettingOrigin;

    /// Returns the kind of value, such as "a whole number, 0 or more".
    fn expected(&self) -> String;

    /// Returns the JSON schema of its values.
    fn schema(&self) -> Json;
}

/// The part of a value that a project's file may set: all of it, some, or nothing.
pub(super) struct Portion<T> {
    /// The resulting value; `None` if the value before stays.
    value: Option<T>,
    /// The entries that were left out, each with its line if it has one of its own.
    left_out: Vec<(String, Option<SettingOrigin>)>,
}

/// A value of one kind.
///
/// By default, a project's file may set none of it.
pub(super) trait Value: Sized {
    /// Returns the expected kind, such as "must be a text".
    fn expected() -> String;

    /// Returns the JSON schema.
    fn schema() -> Json;

    /// Parses an item; `None` if it is not of the expected kind, or if problems were recorded.
    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self>;

    /// Returns the value as it is shown.
    fn to_json(&self) -> Json;

    /// Returns the value in TOML, in one line.
    fn to_toml(&self) -> String {
        match self.to_json() {
            Json::Null => "not set".to_owned(),
            value => format_toml(&value),
        }
    }

    /// Returns a hint for a wrong item.
    fn hint(_item: &Item) -> Option<String> {
        None
    }

    /// Returns whether it allows more than another.
    fn is_looser(&self, _than: &Self) -> bool {
        true
    }

    /// Returns the part of it that is in the directory of the file.
    fn keep_inside(self, _reader: &Reader<'_>) -> Portion<Self> {
        Portion::nothing()
    }

    /// Returns the part of it that another value covers.
    fn restrict(self, _key: &str, _than: &Self) -> Portion<Self> {
        Portion::nothing()
    }

    /// Returns the part of it that may be set where no list is set.
    fn restrict_unset(self, _key: &str) -> Portion<Self> {
        Portion::nothing()
    }

    /// Returns the entries of a list and those of this one that a project may add.
    fn extend_list(self, _list: &Self) -> Portion<Self> {
        Portion::nothing()
    }

    /// Returns whether a project may add it to a list.
    fn is_addable(&self) -> bool {
        false
    }

    /// Returns its place, for an entry of a list.
    fn line(&self) -> Option<&SettingOrigin> {
        None
    }

    /// Parses an item, and records a problem if it is not of the expected kind.
    fn read(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let before = reader.problems.len();
        let value = Self::parse(key, item, reader);
        if value.is_none() && reader.problems.len() == before {
            let message = format!("{key} must be {}", Self::expected());
            reader.note(&item.span().unwrap_or_default(), message, Self::hint(item));
        }
        value
    }
}

impl<T> Portion<T> {
    fn all(value: T) -> Self {
        Self { value: Some(value), left_out: Vec::new() }
    }

    fn nothing() -> Self {
        Self { value: None, left_out: Vec::new() }
    }

    fn all_if(value: T, is_allowed: bool) -> Self {
        if is_allowed { Self::all(value) } else { Self::nothing() }
    }

    fn map<U>(self, wrap: impl FnOnce(T) -> U) -> Portion<U> {
        Portion { value: self.value.map(wrap), left_out: self.left_out }
    }
}

impl<T: Value> Slot for Setting<T> {
    fn read(&mut self, facts: &Facts, item: &Item, origin: SettingOrigin, reader: &mut Reader<'_>) {
        let key = facts.key;
        let Some(value) = T::read(&format!("`{key}`"), item, reader) else { return };
        if reader.owner != Owner::Project {
            *self = Self { value, origin };
            return;
        }
        let is_set = self.explicit().is_some();
        let (portion, reason) = match facts.right {
            ProjectRight::Nothing => (Portion::nothing(), "a project's file cannot set it"),
            ProjectRight::Stricter => {
                let is_stricter = !value.is_looser(&self.value);
                let portion = Portion::all_if(value, is_stricter);
                (portion, "a project's file can only make it stricter")
            }
            ProjectRight::NarrowerOrApproved if reader.is_approved => (Portion::all(value), ""),
            ProjectRight::Narrower | ProjectRight::NarrowerOrApproved => {
                let portion = value.restrict(key, &self.value);
                (portion, "a project's file can only narrow what you allow")
            }
            ProjectRight::More => (value.extend_list(&self.value), not_addable(key)),
            ProjectRight::InsideUnset | ProjectRight::Unset if is_set => {
                (Portion::nothing(), "a project's file cannot replace what you have set")
            }
            ProjectRight::Inside | ProjectRight::InsideUnset => (
                value.keep_inside(reader),
                "a project's file can only name what is in its directory",
            ),
            ProjectRight::Unset | ProjectRight::Any => (Portion::all(value), ""),
        };
        reader.ignore(facts, &origin, portion.value.is_none(), portion.left_out, reason);
        if let Some(value) = portion.value {
            *self = Self { value, origin };
        }
    }

    fn to_json(&self) -> Json {
        self.value.to_json()
    }

    fn to_toml(&self) -> String {
        self.value.to_toml()
    }

    fn origin(&self) -> &SettingOrigin {
        &self.origin
    }

    fn expected(&self) -> String {
        T::expected()
    }

    fn schema(&self) -> Json {
        T::schema()
    }
}

/// Returns the reason why an entry of a project's file is not added to a list.
fn not_addable(key: &str) -> &'static str {
    match key {
        "policy.rules" => "a project's file cannot allow what you would be asked about",
        "servers" => "a project's file cannot replace a server of yours",
        _ => "a project's file cannot add it",
    }
}

/// Formats a value in TOML, in one line.
fn format_toml(value: &Json) -> String {
    match value {
        Json::Array(values) => {
            let values: Vec<String> = values.iter().map(format_toml).collect();
            format!("[{}]", values.join(", "))
        }
        Json::Object(pairs) if pairs.is_empty() => "{}".to_owned(),
        Json::Object(pairs) => {
            let pairs =
                pairs.iter().map(|(key, it)| format!("{} = {}", toml_key(key), format_toml(it)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// Returns a key of a table, in quotes where it needs them.
fn toml_key(key: &str) -> String {
    let is_bare = key.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it));
    if is_bare && !key.is_empty() { key.to_owned() } else { json!(key).to_string() }
}

impl Value for bool {
    fn expected() -> String {
        "`true` or `false`".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "boolean" })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_bool()
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn is_looser(&self, than: &Self) -> bool {
        self > than
    }
}

impl Value for usize {
    fn expected() -> String {
        "a whole number, 0 or more".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 0 })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        Self::try_from(item.as_integer()?).ok()
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Value for NonZeroUsize {
    fn expected() -> String {
        "a whole number, 1 or more".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 1 })
    }

    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(usize::parse(key, item, reader)?)
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Value for NonZeroU64 {
    fn expected() -> String {
        NonZeroUsize::expected()
    }

    fn schema() -> Json {
        NonZeroUsize::schema()
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(u64::try_from(item.as_integer()?).ok()?)
    }

    fn to_json(&self) -> Json {
        json!(self)
    }

    fn is_looser(&self, than: &Self) -> bool {
        self > than
    }
}

impl Value for Depth {
    fn expected() -> String {
        format!("a whole number from 1 to {DEEPEST}")
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 1, "maximum": DEEPEST })
    }

    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(usize::parse(key, item, reader)?)
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }
}

impl Value for Ratio {
    fn expected() -> String {
        "a number from 0 to 1".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "number", "minimum": 0, "maximum": 1 })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(item.as_float().or_else(|| Some(item.as_integer()? as f64))?)
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }
}

impl Value for PriceSetting {
    fn expected() -> String {
        "a number, 0 or more".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "number", "minimum": 0 })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(item.as_float().or_else(|| Some(item.as_integer()? as f64))?)
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }
}

impl Value for Bytes {
    fn to_toml(&self) -> String {
        format!("\"{}\"", size(self.0))
    }

    fn expected() -> String {
        "a size, such as `\"1 MiB\"` or `1048576`".to_owned()
    }

    fn schema() -> Json {
        let pattern = "^\\s*[0-9]+(\\.[0-9]+)?\\s*([kKmMgG][iI]?)?[bB]?\\s*$";
        json!({ "type": ["integer", "string"], "minimum": 0, "pattern": pattern })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        bytes(&number_or_text(item)?).map(Self)
    }

    fn to_json(&self) -> Json {
        json!(self.0)
    }

    fn is_looser(&self, than: &Self) -> bool {
        self > than
    }
}

impl Value for Duration {
    fn expected() -> String {
        "a time, such as `\"30s\"`, `\"5m\"` or `30` for seconds".to_owned()
    }

    fn schema() -> Json {
        let pattern = "^\\s*[0-9]+(\\.[0-9]+)?\\s*(ms|s|sec|m|min|h|d)?\\s*$";
        json!({ "type": ["number", "string"], "exclusiveMinimum": 0, "pattern": pattern })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        duration(&number_or_text(item)?)
    }

    fn to_json(&self) -> Json {
        match self.subsec_millis() {
            0 => json!(format!("{}s", self.as_secs())),
            _ => json!(format!("{}ms", self.as_millis())),
        }
    }

    fn is_looser(&self, than: &Self) -> bool {
        self > than
    }
}

impl Value for MinAge {
    fn expected() -> String {
        "a time in quotes, such as `\"3d\"` or `\"12h\"`".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "pattern": "^[0-9]+[smhdw]$" })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        let text = item.as_str()?;
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number: u32 = number.parse().ok().filter(|_| !number.starts_with('+'))?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            "w" => 7 * 86_400,
            _ => return None,
        };
        let age = Duration::from_secs(u64::from(number) * unit);
        (age <= LONGEST_AGE).then_some(Self(age))
    }

    fn to_json(&self) -> Json {
        let seconds = self.0.as_secs();
        let units = [("d", 86_400), ("h", 3600), ("m", 60)];
        let unit = units.iter().find(|it| seconds > 0 && seconds.is_multiple_of(it.1));
        json!(unit.map_or(format!("{seconds}s"), |it| format!("{}{}", seconds / it.1, it.0)))
    }

    fn is_looser(&self, than: &Self) -> bool {
        self < than
    }
}

/// The longest age that can be asked for.
const LONGEST_AGE: Duration = Duration::from_secs(3660 * 86_400);

/// Returns the text of a string, or of a number.
fn number_or_text(item: &Item) -> Option<String> {
    let number = item.as_integer().map(|it| it.to_string());
    let number = number.or_else(|| item.as_float().map(|it| it.to_string()));
    number.or_else(|| item.as_str().map(str::to_owned))
}

impl Value for String {
    fn expected() -> String {
        "a string in quotes".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_str().map(str::to_owned)
    }

    fn is_addable(&self) -> bool {
        true
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Value for Address {
    fn expected() -> String {
        "an address in quotes".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_str().filter(|it| it.contains(':')).map(|it| Self(it.to_owned()))
    }

    fn to_json(&self) -> Json {
        json!(self.to_string())
    }

    fn keep_inside(self, reader: &Reader<'_>) -> Portion<Self> {
        let is_inside = self.is_inside(&reader.directory);
        Portion::all_if(self, is_inside)
    }
}

impl Address {
    /// Returns whether it is a file in a directory. Only SQLite databases are files; any other is a
    /// server, to which passwords of the user may be sent.
    fn is_inside(&self, directory: &Path) -> bool {
        let Some(file) = self.0.strip_prefix("sqlite:") else { return false };
        let file = file.strip_prefix("//").unwrap_or(file);
        let file = file.split('?').next().unwrap_or_default();
        let coded = file.to_ascii_lowercase();
        match file {
            "" | ":memory:" => true,
            // An encoded dot or slash could lead anywhere.
            _ if ["%2e", "%2f"].iter().any(|it| coded.contains(it)) => false,
            file => is_inside(&directory.join(file), directory),
        }
    }
}

impl Value for PathBuf {
    fn expected() -> String {
        "a path in quotes".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }

    /// Resolves a relative path from the folder of the file.
    fn parse(_key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let path = item.as_str().filter(|it| !it.is_empty())?;
        Some(Directory::new(path).resolve(Some(&reader.directory), reader.home))
    }

    fn to_json(&self) -> Json {
        json!(self.to_string_lossy())
    }
}

/// Returns whether a path is in a directory after links are resolved; for a missing file, its
/// existing parents are resolved.
fn is_inside(path: &Path, directory: &Path) -> bool {
    let resolved = match prowess::real_path(path) {
        Ok(path) => Some(path),
        Err(_) if path.components().any(|it| it == Component::ParentDir) => None,
        Err(_) => path.ancestors().find_map(|it| prowess::real_path(it).ok()),
    };
    resolved.is_some_and(|it| it.starts_with(directory))
}

impl Value for RootPath {
    fn expected() -> String {
        PathBuf::expected()
    }

    fn schema() -> Json {
        PathBuf::schema()
    }

    /// Limits a project to directories inside it, after links are resolved; a user may name any.
    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let path = PathBuf::parse(key, item, reader)?;
        if reader.owner != Owner::Project || is_inside(&path, &reader.directory) {
            return Some(Self(path));
        }
        let message = format!("{key} must be in the directory of this file");
        let hint =
            "only the user's own file, or one given with `--config`, can name other directories"
                .to_owned();
        reader.note(&item.span().unwrap_or_default(), message, Some(hint));
        None
    }

    fn to_json(&self) -> Json {
        self.0.to_json()
    }
}

impl Value for Directory {
    fn expected() -> String {
        PathBuf::expected()
    }

    fn schema() -> Json {
        PathBuf::schema()
    }

    /// Marks the directories of the user's own file as the user's.
    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let path = PathBuf::parse(key, item, reader)?;
        let scope = match reader.owner {
            Owner::User => Scope::User,
            Owner::Project | Owner::Named => Self::new(item.as_str()?).scope,
        };
        Some(Self { scope, ..Self::repository(path) })
    }

    fn to_json(&self) -> Json {
        self.path.to_json()
    }

    fn keep_inside(self, reader: &Reader<'_>) -> Portion<Self> {
        let is_inside = is_inside(&self.path, &reader.directory);
        Portion::all_if(self, is_inside)
    }
}

impl Value for &'static Preset {
    fn expected() -> String {
        "the name of a preset in quotes".to_owned()
    }

    fn schema() -> Json {
        json!({ "enum": PRESETS.iter().map(|it| it.name).collect::<Vec<_>>() })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_str().and_then(preset)
    }

    fn to_json(&self) -> Json {
        json!(self.name)
    }

    fn hint(item: &Item) -> Option<String> {
        Some(name_hint(item.as_str()?, PRESETS.iter().map(|it| it.name)))
    }
}

impl Value for KnownClient {
    fn expected() -> String {
        "the name of a client in quotes".to_owned()
    }

    fn schema() -> Json {
        json!({ "enum": CLIENTS.iter().map(|it| it.name).collect::<Vec<_>>() })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_str().and_then(client).map(Self)
    }

    fn to_json(&self) -> Json {
        json!(self.0.name)
    }

    fn hint(item: &Item) -> Option<String> {
        Some(name_hint(item.as_str()?, CLIENTS.iter().map(|it| it.name)))
    }
}

impl Value for Presets {
    fn expected() -> String {
        Vec::<&Preset>::expected()
    }

    fn schema() -> Json {
        Vec::<&Preset>::schema()
    }

    /// Resolves the presets of the user's own file from the current project.
    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let from = (reader.owner != Owner::User).then(|| reader.directory.clone());
        Some(Self { presets: Vec::parse(key, item, reader)?, from })
    }

    fn to_json(&self) -> Json {
        self.presets.to_json()
    }
}

impl<T: Value> Value for Option<T> {
    fn expected() -> String {
        T::expected()
    }

    fn schema() -> Json {
        T::schema()
    }

    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        T::parse(key, item, reader).map(Some)
    }

    fn to_json(&self) -> Json {
        self.as_ref().map_or(Json::Null, T::to_json)
    }

    fn hint(item: &Item) -> Option<String> {
        T::hint(item)
    }

    /// Treats no limit as the loosest.
    fn is_looser(&self, than: &Self) -> bool {
        match (self, than) {
            (Some(own), Some(than)) => own.is_looser(than),
            (own, than) => own.is_none() && than.is_some(),
        }
    }

    fn keep_inside(self, reader: &Reader<'_>) -> Portion<Self> {
        self.map_or_else(Portion::nothing, |it| it.keep_inside(reader).map(Some))
    }

    /// Distinguishes an empty list from no list.
    fn restrict(self, key: &str, than: &Self) -> Portion<Self> {
        match (self, than) {
            (Some(own), Some(than)) => own.restrict(key, than).map(Some),
            (Some(own), None) => own.restrict_unset(key).map(Some),
            (None, _) => Portion::nothing(),
        }
    }
}

impl<T: Value + Clone> Value for Vec<T> {
    fn expected() -> String {
        format!("a list, each {}", T::expected())
    }

    fn schema() -> Json {
        json!({ "type": "array", "items": T::schema() })
    }

    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let items: Vec<Item> = match item {
            Item::ArrayOfTables(tables) => tables.iter().cloned().map(Item::Table).collect(),
            Item::Value(Toml::Array(values)) => values.iter().cloned().map(Item::Value).collect(),
            _ => return None,
        };
        // All entries are read, so that all problems are recorded.
        let key = format!("each of {key}");
        let read: Vec<Option<T>> = items.iter().map(|it| T::read(&key, it, reader)).collect();
        read.into_iter().collect()
    }

    fn to_json(&self) -> Json {
        self.iter().map(T::to_json).collect()
    }

    fn keep_inside(self, reader: &Reader<'_>) -> Portion<Self> {
        let (mut inside, mut left_out, all) = (Self::new(), Vec::new(), self.len());
        for it in self {
            let entry = (entry_text(&it), it.line().cloned());
            match it.keep_inside(reader).value {
                Some(it) => inside.push(it),
                None => left_out.push(entry),
            }
        }
        Portion { value: (all == 0 || !inside.is_empty()).then_some(inside), left_out }
    }

    fn restrict(self, key: &str, than: &Self) -> Portion<Self> {
        let narrower =
            than.iter().filter(|it| any_covers(key, &self, it) && !contains_same(&self, it));
        let narrower: Self = narrower.cloned().collect();
        let (kept, dropped): (Self, Self) =
            self.into_iter().partition(|it| any_covers(key, than, it));
        let left_out = dropped.iter().map(|it| (entry_text(it), None)).collect();
        Portion { value: Some(kept.into_iter().chain(narrower).collect()), left_out }
    }

    /// Limits the hosts of a project to public ones; any list of skills or directories is narrower
    /// than none.
    fn restrict_unset(self, key: &str) -> Portion<Self> {
        let (kept, dropped): (Self, Self) = self.into_iter().partition(|it: &T| match key {
            "policy.hosts" => it.to_json().as_str().is_some_and(is_public),
            _ => ["skill.include", "policy.roots"].contains(&key),
        });
        let left_out = dropped.iter().map(|it| (entry_text(it), None)).collect();
        Portion { value: Some(kept), left_out }
    }

    fn extend_list(self, list: &Self) -> Portion<Self> {
        let (new, dropped): (Self, Self) = self.into_iter().partition(T::is_addable);
        let left_out = dropped.iter().map(|it| (entry_text(it), it.line().cloned())).collect();
        let kept = list.iter().filter(|it| !contains_same(&new, it)).cloned().collect::<Self>();
        let value = (dropped.is_empty() || !new.is_empty()).then(|| [kept, new].concat());
        Portion { value, left_out }
    }
}

/// Formats an entry of a list for a message.
fn entry_text<T: Value>(it: &T) -> String {
    let mut shown = it.to_json();
    // Its place is printed beside it.
    shown.as_object_mut().and_then(|it| it.remove("origin"));
    shown.as_str().map_or_else(|| format_toml(&shown), str::to_owned)
}

/// Returns whether a pattern of hosts matches public addresses only.
#[cfg(feature = "http")]
fn is_public(pattern: &str) -> bool {
    prowess_http::is_public_pattern(pattern)
}

/// Whether one pattern of hosts covers another.
#[cfg(feature = "http")]
fn covers_host(wide: &str, narrow: &str) -> bool {
    prowess_http::pattern_covers(wide, narrow)
}

/// Without network no pattern is public: a project cannot add any.
#[cfg(not(feature = "http"))]
fn is_public(_: &str) -> bool {
    false
}

/// Without network a pattern covers only itself.
#[cfg(not(feature = "http"))]
fn covers_host(wide: &str, narrow: &str) -> bool {
    wide == narrow
}

/// Returns whether a list contains an entry.
fn contains_same<T: Value>(all: &[T], one: &T) -> bool {
    all.iter().any(|it| it.to_json() == one.to_json())
}

/// Returns whether some entry of a list covers another one.
fn any_covers<T: Value>(key: &str, all: &[T], one: &T) -> bool {
    all.iter().any(|it| covers(key, &it.to_json(), &one.to_json()))
}

/// Returns whether an entry of a list covers another: as the first words of a command, or as a host
/// without a port.
fn covers(key: &str, wide: &Json, narrow: &Json) -> bool {
    match (wide.as_str(), narrow.as_str()) {
        (Some(wide), Some(narrow)) if key == "policy.commands" => {
            let mut words = normalize_command(narrow).split_ascii_whitespace();
            normalize_command(wide).split_ascii_whitespace().all(|it| words.next() == Some(it))
        }
        (Some(wide), Some(narrow)) if key == "policy.roots" => {
            let wide = Path::new(wide);
            is_inside(Path::new(narrow), &prowess::real_path(wide).unwrap_or(wide.to_owned()))
        }
        (Some(wide), Some(narrow)) if ["policy.hosts", "policy.script_hosts"].contains(&key) => {
            covers_host(wide, narrow)
        }
        _ => wide == narrow,
    }
}

impl Value for RuleSetting {
    /// Rejects rules of a project that allow, because nobody would be asked.
    fn is_addable(&self) -> bool {
        self.decision != Decision::Allow
    }

    fn line(&self) -> Option<&SettingOrigin> {
        Some(&self.origin)
    }

    fn expected() -> String {
        "a table, such as `{ tool = \"http_request\", decision = \"ask\" }`".to_owned()
    }

    fn schema() -> Json {
        json!({
            "type": "object",
            "properties": {
                "tool": String::schema(),
                "skill": String::schema(),
                "command": String::schema(),
                "path": PathBuf::schema(),
                "decision": Decision::schema(),
            },
            "required": ["decision"],
            "additionalProperties": false,
        })
    }

    fn parse(_key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let (mut tool, mut skill, mut command) = (None, None, None);
        let (mut path, mut decision) = (None, None);
        let before = reader.problems.len();
        let table = item.as_table_like()?;
        for (name, item) in reader.entries(table) {
            let key = format!("`{}` of a rule", name.name);
            match &*name.name {
                "tool" => tool = String::read(&key, item, reader),
                "skill" => skill = String::read(&key, item, reader),
                "command" => command = String::read(&key, item, reader),
                "path" => path = PathBuf::read(&key, item, reader),
                "decision" => decision = Decision::read(&key, item, reader),
                _ => {
                    let known = ["tool", "skill", "command", "path", "decision"];
                    reader.unknown_key(&name, "a rule", &known);
                }
            }
        }
        let span = item.span().unwrap_or_default();
        if decision.is_none() && reader.problems.len() == before {
            reader.note(
                &span,
                format!("a rule must have a `decision`: {}", Decision::expected()),
                None,
            );
        }
        (reader.problems.len() == before).then_some(())?;
        Some(Self { tool, skill, command, path, decision: decision?, origin: reader.origin(&span) })
    }

    fn to_json(&self) -> Json {
        let path = self.path.as_ref().map(PathBuf::to_json);
        let fields = [
            ("tool", self.tool.to_json()),
            ("skill", self.skill.to_json()),
            ("command", self.command.to_json()),
            ("path", path.unwrap_or_default()),
            ("decision", self.decision.to_json()),
            ("origin", json!(self.origin.to_string())),
        ];
        let set = fields.into_iter().filter(|it| !it.1.is_null());
        Json::Object(set.map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

impl Value for RegistrySettings {
    fn expected() -> String {
        "a table of addresses, such as `{ clawhub = \"https://clawhub.ai\" }`".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "object", "additionalProperties": { "type": "string" } })
    }

    fn parse(_key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let before = reader.problems.len();
        let mut registries = BTreeMap::new();
        for (name, item) in reader.entries(item.as_table_like()?) {
            let address = item.as_str().filter(|it| {
                let (scheme, rest) = it.split_once("://").unwrap_or_default();
                matches!(scheme, "https" | "http") && !rest.is_empty() && !rest.contains('@')
            });
            match address {
                Some(address) => {
                    registries.insert(name.name, Address(address.to_owned()));
                }
                None => {
                    let message = format!("the registry `{}` must be a URL", name.name);
                    reader.note(&name.span, message, Some("write `https://…`".to_owned()));
                }
            }
        }
        (reader.problems.len() == before).then_some(Self(registries))
    }

    fn to_json(&self) -> Json {
        let registries = self.0.iter();
        Json::Object(registries.map(|(name, it)| (name.clone(), it.to_json())).collect())
    }

    /// Keeps the registries that the user has too.
    fn restrict(self, _key: &str, than: &Self) -> Portion<Self> {
        let (kept, dropped): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.0.into_iter().partition(|(_, it)| than.0.values().any(|own| own == it));
        let left_out = dropped.into_keys().map(|it| (it, None)).collect();
        Portion { value: Some(Self(kept)), left_out }
    }
}

impl Value for SignerSettings {
    fn expected() -> String {
        "a table of lists, such as `{ \"acme/*\" = [\"minisign:RWQ…\"] }`".to_owned()
    }

    fn schema() -> Json {
        let texts = json!({ "type": "array", "items": { "type": "string", "minLength": 1 } });
        json!({ "type": "object", "additionalProperties": texts })
    }

    fn parse(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let before = reader.problems.len();
        let is_of_project = reader.owner == Owner::Project;
        let mut signers = Vec::new();
        for (name, item) in reader.entries(item.as_table_like()?) {
            let dotted = format!("`{}` in {key}", name.name);
            if let Some(identities) = Vec::read(&dotted, item, reader) {
                signers.push(SignerSetting { pattern: name.name, identities, is_of_project });
            }
        }
        (reader.problems.len() == before).then_some(Self(signers))
    }

    fn to_json(&self) -> Json {
        let signers = self.0.iter();
        Json::Object(signers.map(|it| (it.pattern.clone(), json!(it.identities))).collect())
    }

    fn extend_list(self, list: &Self) -> Portion<Self> {
        Portion::all(Self(list.0.iter().cloned().chain(self.0).collect()))
    }
}

impl Value for ServerSettings {
    fn expected() -> String {
        "tables with labels, such as `[servers.docs]`".to_owned()
    }

    fn schema() -> Json {
        let (text, texts) = (
            json!({ "type": "string" }),
            json!({ "type": "array", "items": { "type": "string" } }),
        );
        let by_name = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let server = json!({
            "type": "object",
            "properties": {
                "command": text, "args": texts, "env": by_name, "cwd": text,
                "read": texts, "write": texts, "hosts": texts,
                "url": text, "headers": by_name,
            },
        });
        json!({ "type": "object", "additionalProperties": server })
    }

    fn parse(_key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let before = reader.problems.len();
        let mut servers = Vec::new();
        for (label, item) in reader.entries(item.as_table_like()?) {
            match server(&label.name, item, reader) {
                Ok(Some(description)) => servers.push(ServerSetting {
                    description,
                    is_trusted: reader.owner != Owner::Project,
                    place: reader.origin(&label.span).to_place(),
                }),
                Ok(None) => {}
                Err(Unusable::Outside { key, reason }) => {
                    let table = item.as_table_like().map(|it| reader.entries(it));
                    let place = table.into_iter().flatten().find(|it| it.0.name == key);
                    let span = place.map_or(label.span, |it| it.0.span);
                    reader.ignored.push(IgnoredSetting {
                        key: "servers",
                        origin: reader.origin(&span),
                        entries: vec![label.name],
                        reason,
                        can_be_approved: false,
                    });
                }
                Err(Unusable::Wrong(why)) => {
                    let hint = "it has a `command` with `args`, `env`, `cwd`, `read`, `write` and `hosts`, or a `url` with `headers` and `oauth`";
                    let message = format!("the server `{}` cannot be used: {why}", label.name);
                    reader.note(&label.span, message, Some(hint.to_owned()));
                }
            }
        }
        (reader.problems.len() == before).then_some(Self(servers))
    }

    /// Hides headers, environment and the query of the address, which may be secret.
    fn to_json(&self) -> Json {
        let servers = self.0.iter().map(|it| {
            let what = match &it.description.transport {
                Transport::Program(program) => json!({ "command": program.command }),
                Transport::Http(address) => json!({ "url": without_query(&address.url) }),
            };
            (it.description.name.clone(), what)
        });
        Json::Object(servers.collect())
    }

    /// Keeps the server of a label that the user has set.
    fn extend_list(self, list: &Self) -> Portion<Self> {
        let (taken, new): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(|it| list.has(&it.description.name));
        let left_out = taken
            .iter()
            .map(|it| (it.description.name.clone(), SettingOrigin::from_place(it.place.as_ref())));
        let left_out: Vec<_> = left_out.collect();
        let value = (left_out.is_empty() || !new.is_empty())
            .then(|| Self(list.0.iter().cloned().chain(new).collect()));
        Portion { value, left_out }
    }
}

/// Redacts the password and the query of an address.
fn without_query(url: &str) -> String {
    match without_password(url).split_once('?') {
        Some((address, _)) => format!("{address}?***"),
        None => without_password(url),
    }
}

impl ServerSettings {
    fn has(&self, label: &str) -> bool {
        self.0.iter().any(|it| it.description.name == label)
    }
}

/// The reason why the entry of a server cannot be used.
enum Unusable {
    Wrong(String),
    /// A key of a project's entry names a file outside its directory.
    Outside {
        key: &'static str,
        reason: &'static str,
    },
}

impl<T: Into<String>> From<T> for Unusable {
    fn from(why: T) -> Self {
        Self::Wrong(why.into())
    }
}

/// The keys of a server that name files, each with the message where a project's file may not set
/// it.
const SERVER_PATHS: [(&str, &str); 3] = [
    ("cwd", "its `cwd` names what is outside the directory of this file"),
    ("read", "its `read` names what is outside the directory of this file"),
    ("write", "its `write` names what is outside the directory of this file"),
];

/// Parses the server of a label; `None` if it is disabled.
fn server(
    label: &str,
    item: &Item,
    reader: &Reader<'_>,
) -> Result<Option<McpServerConfig>, Unusable> {
    if label.is_empty()
        || label.len() > 32
        || !label.chars().all(|c: char| c.is_ascii_alphanumeric() || c == '-')
    {
        return Err("a label has letters, digits and `-`, at most 32".into());
    }
    // `user:name` is a skill of the user.
    if [Scope::Project, Scope::User, Scope::Bundled].iter().any(|it| it.as_str() == label) {
        return Err("its label is the name of a scope".into());
    }
    let Some(Json::Object(server)) = as_json(item) else {
        return Err("it is not a table of strings".into());
    };
    if let Some(key) = McpServerConfig::unknown(&server).next() {
        return Err(format!("it has no key `{key}`").into());
    }
    let Some(mut description) = McpServerConfig::read(label, &server)? else { return Ok(None) };
    match &mut description.transport {
        Transport::Http(address) => address.oauth = OauthSettings::read(&server)?,
        Transport::Program(_) if server.contains_key("oauth") => {
            return Err("`oauth` is for servers with a `url`".into());
        }
        Transport::Program(_) => {}
    }
    if let Transport::Program(program) = &mut description.transport {
        let [cwd, read, write] = SERVER_PATHS;
        if !program.directory.is_empty() {
            let from = Some(&*reader.directory);
            program.directory = server_path(cwd, &program.directory, from, reader)?;
        }
        // Paths in a user's own file are relative to the current project, which is not known here.
        let from = (reader.owner == Owner::Project).then_some(&*reader.directory);
        for (key, paths) in [(read, &mut program.reads), (write, &mut program.writes)] {
            for path in paths {
                *path = server_path(key, path, from, reader)?;
            }
        }
    }
    Ok(Some(description))
}

/// Resolves a path of a server; an error for a path of a project that leads out of it.
fn server_path(
    (key, reason): (&'static str, &'static str),
    path: &str,
    from: Option<&Path>,
    reader: &Reader<'_>,
) -> Result<String, Unusable> {
    let path = Directory::new(path).resolve(from, reader.home);
    if reader.owner == Owner::Project && !is_inside(&path, &reader.directory) {
        return Err(Unusable::Outside { key, reason });
    }
    Ok(path.to_string_lossy().into_owned())
}

/// Converts an item to JSON; `None` for a date.
fn as_json(item: &Item) -> Option<Json> {
    if let Some(table) = item.as_table_like() {
        let pairs = table.iter().map(|(key, item)| Some((key.to_owned(), as_json(item)?)));
        return pairs.collect::<Option<_>>().map(Json::Object);
    }
    if let Some(items) = item.as_array() {
        let items = items.iter().map(|it| as_json(&Item::Value(it.clone())));
        return items.collect::<Option<_>>().map(Json::Array);
    }
    let text = item.as_str().map(|it| json!(it));
    let text = text.or_else(|| item.as_bool().map(|it| json!(it)));
    text.or_else(|| item.as_integer().map(|it| json!(it)))
}

/// One of a few words.
trait Word: Copy + PartialEq + 'static {
    fn words() -> Vec<(&'static str, Self)>;

    /// Returns why a word that other programs know is not accepted.
    fn refusal(_word: &str) -> Option<&'static str> {
        None
    }

    /// Returns its rank, the loosest first.
    fn strictness(self) -> u8 {
        0
    }
}

impl<T: Word> Value for T {
    fn expected() -> String {
        let words: Vec<String> = T::words().iter().map(|it| format!("`\"{}\"`", it.0)).collect();
        format!("one of {}", words.join(", "))
    }

    fn schema() -> Json {
        json!({ "enum": T::words().iter().map(|it| it.0).collect::<Vec<_>>() })
    }

    fn parse(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        let word = item.as_str()?;
        T::words().into_iter().find(|it| it.0 == word).map(|it| it.1)
    }

    fn to_json(&self) -> Json {
        let words = T::words();
        words.iter().find(|it| it.1 == *self).map_or(Json::Null, |it| json!(it.0))
    }

    fn is_looser(&self, than: &Self) -> bool {
        self.strictness() < than.strictness()
    }

    fn hint(item: &Item) -> Option<String> {
        let refusal = item.as_str().and_then(T::refusal).map(str::to_owned);
        refusal.or_else(|| {
            let words = T::words();
            let near = nearest(item.as_str()?, words.iter().map(|it| it.0))?;
            Some(did_you_mean(near))
        })
    }
}

impl Word for Strategy {
    fn words() -> Vec<(&'static str, Self)> {
        Self::ALL.map(|it| (it.as_str(), it)).to_vec()
    }
}

impl Word for SandboxLevel {
    fn words() -> Vec<(&'static str, Self)> {
        [Self::Strong, Self::Landlock].map(|it| (it.as_str(), it)).to_vec()
    }

    fn refusal(word: &str) -> Option<&'static str> {
        (word == Self::None.as_str())
            .then_some("a file cannot switch off the sandbox; `--unsandboxed` does, for one run")
    }

    fn strictness(self) -> u8 {
        self as u8
    }
}

impl Word for Approvals {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("needed", Self::Needed), ("always", Self::Always), ("never", Self::Never)]
    }

    fn strictness(self) -> u8 {
        match self {
            Self::Never => 0,
            Self::Needed => 1,
            Self::Always => 2,
        }
    }
}

impl Word for AllowedToolsMode {
    fn words() -> Vec<(&'static str, Self)> {
        let preapprove = ("preapprove", Self::Preapprove);
        vec![preapprove, ("advise", Self::Advise), ("enforce", Self::Enforce)]
    }

    fn strictness(self) -> u8 {
        self as u8
    }
}

impl Word for Decision {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("allow", Self::Allow), ("ask", Self::Ask), ("deny", Self::Deny)]
    }

    fn strictness(self) -> u8 {
        self as u8
    }
}

impl Word for UnlistedCommands {
    fn words() -> Vec<(&'static str, Self)> {
        vec![("deny", Self::Deny), ("ask", Self::Ask)]
    }

    fn refusal(word: &str) -> Option<&'static str> {
        (word == "allow")
            .then_some("list the commands that may run without a question in `policy.commands`")
    }

    fn strictness(self) -> u8 {
        match self {
            Self::Ask => 0,
            Self::Deny => 1,
        }
    }
}
