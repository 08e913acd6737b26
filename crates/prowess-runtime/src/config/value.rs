//! How each kind of value is written and shown.

use std::{
    fmt, fs,
    num::{NonZeroU64, NonZeroUsize},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use prowess::{DEEPEST, Directory, PRESETS, Preset, Scope, Strategy, nearest, preset};
use serde_json::{Value as Json, json};
use toml_edit::{Item, Value as Toml};

use super::{
    RuleSetting, ServerSetting, ServerSettings,
    origin::{Origin, Setting},
    places::Owner,
    reader::Reader,
    spelt,
    units::{bytes, duration},
};
use crate::{
    outcome::Level,
    policy::{AllowedToolsMode, Approvals, Decision},
    servers::{Description, Transport},
};

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(f64);

/// What something costs, in whatever one pays with: a number from 0 on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price(f64);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// How many folders deep skills are searched for: 1 to [`DEEPEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth(usize);

/// Presets, and where their relative directories begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presets {
    /// The presets, the first taken first.
    pub presets: Vec<&'static Preset>,
    /// Nothing for the working directory.
    pub from: Option<PathBuf>,
}

/// A directory in which files may be read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootPath(pub PathBuf);

/// The address of a server. A password in it is only shown to whoever asks for all of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Share {
    /// Takes a number from 0 to 1.
    pub fn new(number: f64) -> Option<Self> {
        (0.0..=1.0).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Price {
    /// Takes a number from 0 on.
    pub fn new(number: f64) -> Option<Self> {
        (number >= 0.0 && number.is_finite()).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Depth {
    /// As deep as skills lie.
    pub const DEEPEST: Self = Self(DEEPEST);

    /// Takes a number from 1 to [`DEEPEST`].
    pub fn new(depth: usize) -> Option<Self> {
        (1..=DEEPEST).contains(&depth).then_some(Self(depth))
    }

    /// The number.
    pub fn get(self) -> usize {
        self.0
    }
}

impl Presets {
    /// The directories of all of them.
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
    /// All of it, a password included.
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

/// A text in which the passwords of addresses are not to be read.
pub(super) fn without_password(text: &str) -> String {
    let end = |from: &str| from.find(|c: char| c.is_whitespace() || "\"'".contains(c));
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + 3);
        let address = &behind[..end(behind).unwrap_or(behind.len())];
        out.push_str(before);
        // The last `@`, because a password may hold one.
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

/// Why a setting of a project is set aside.
const LOOSER: &str = "no file of a project can make it looser";

/// A setting, whatever it holds.
pub(super) trait Slot {
    /// Takes a value of a file; what is wrong with it is noted.
    fn read(&mut self, key: &'static str, item: &Item, origin: Origin, reader: &mut Reader<'_>);

    /// Notes what is wrong with a value of a file, and does not take it.
    fn check(&self, key: &str, item: &Item, reader: &mut Reader<'_>);

    /// What it holds.
    fn show(&self) -> Json;

    /// Where it came from.
    fn origin(&self) -> &Origin;
}

/// A value of one kind.
pub(super) trait Value: Sized {
    /// Whether what several files say holds together.
    const TOGETHER: bool = false;

    /// What is to be written, as in "must be a text".
    fn wanted() -> String;

    /// The value of an item; nothing when it is not what is wanted, or when more is noted.
    fn of(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self>;

    /// What is shown of it.
    fn show(&self) -> Json;

    /// What helps somebody who wrote this item.
    fn hint(_item: &Item) -> Option<String> {
        None
    }

    /// What holds when a file that weighs less has said something else.
    fn over(self, _below: &Self) -> Self {
        self
    }

    /// Whether it lets more happen than another.
    fn is_looser(&self, _than: &Self) -> bool {
        false
    }

    /// Whether it is a place outside the directory of the file.
    fn lies_outside(&self, _reader: &Reader<'_>) -> bool {
        false
    }

    /// What of it holds in the file of a project whose user has said something else.
    fn within(self, _key: &str, _below: &Self) -> Self {
        self
    }

    /// What of it holds in the file of a project, over what holds without that; the rest is set aside.
    fn held(
        self,
        key: &'static str,
        origin: &Origin,
        without: &Self,
        reader: &mut Reader<'_>,
    ) -> Option<Self> {
        let why = if reader.only_tightens(key) && self.is_looser(without) {
            LOOSER
        } else if reader.owner == Owner::Project && self.lies_outside(reader) {
            "no file of a project can name what lies outside its directory"
        } else {
            return Some(self);
        };
        reader.set_aside.push((key, origin.clone(), why));
        None
    }

    /// Reads an item, and notes when it is not what is wanted.
    fn read(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let before = reader.faults.len();
        let value = Self::of(key, item, reader);
        if value.is_none() && reader.faults.len() == before {
            let message = format!("{key} must be {}", Self::wanted());
            reader.note(&item.span().unwrap_or_default(), message, Self::hint(item));
        }
        value
    }
}

impl<T: Value> Slot for Setting<T> {
    fn read(&mut self, key: &'static str, item: &Item, origin: Origin, reader: &mut Reader<'_>) {
        let Some(value) = T::read(&format!("`{key}`"), item, reader) else { return };
        let Some(value) = value.held(key, &origin, &self.value, reader) else { return };
        if self.given().is_some() && reader.only_completes(key) {
            let why = "no file of a project can replace what its user has set";
            reader.set_aside.push((key, origin, why));
            return;
        }
        let value = match self.given() {
            Some(below) if reader.owner == Owner::Project => {
                let (wanted, value) = (value.show(), value.within(key, below));
                if wanted != value.show() {
                    reader.set_aside.push((key, origin.clone(), LOOSER));
                }
                value.over(below)
            }
            Some(below) => value.over(below),
            None => value,
        };
        *self = Self { value, origin };
    }

    fn check(&self, key: &str, item: &Item, reader: &mut Reader<'_>) {
        T::read(&format!("`{key}`"), item, reader);
    }

    fn show(&self) -> Json {
        self.value.show()
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl Value for bool {
    fn wanted() -> String {
        "`true` or `false`".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_bool()
    }

    fn show(&self) -> Json {
        json!(self)
    }

    fn is_looser(&self, than: &Self) -> bool {
        self > than
    }
}

impl Value for usize {
    fn wanted() -> String {
        "a whole number from 0 on".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        Self::try_from(item.as_integer()?).ok()
    }

    fn show(&self) -> Json {
        json!(self)
    }
}

impl Value for NonZeroUsize {
    fn wanted() -> String {
        "a whole number from 1 on".to_owned()
    }

    fn of(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(usize::of(key, item, reader)?)
    }

    fn show(&self) -> Json {
        json!(self)
    }
}

impl Value for NonZeroU64 {
    fn wanted() -> String {
        NonZeroUsize::wanted()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(u64::try_from(item.as_integer()?).ok()?)
    }

    fn show(&self) -> Json {
        json!(self)
    }

    fn is_looser(&self, than: &Self) -> bool {
        self > than
    }
}

impl Value for Depth {
    fn wanted() -> String {
        format!("a whole number from 1 to {DEEPEST}")
    }

    fn of(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(usize::of(key, item, reader)?)
    }

    fn show(&self) -> Json {
        json!(self.0)
    }
}

impl Value for Share {
    fn wanted() -> String {
        "a number from 0 to 1".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(item.as_float().or_else(|| Some(item.as_integer()? as f64))?)
    }

    fn show(&self) -> Json {
        json!(self.0)
    }
}

impl Value for Price {
    fn wanted() -> String {
        "a number from 0 on".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        Self::new(item.as_float().or_else(|| Some(item.as_integer()? as f64))?)
    }

    fn show(&self) -> Json {
        json!(self.0)
    }
}

impl Value for Bytes {
    fn wanted() -> String {
        "a size, such as `\"1 MiB\"` or `1048576`".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        bytes(&number_or_text(item)?).map(Self)
    }

    fn show(&self) -> Json {
        json!(self.0)
    }

    fn is_looser(&self, than: &Self) -> bool {
        self > than
    }
}

impl Value for Duration {
    fn wanted() -> String {
        "a time, such as `\"30s\"`, `\"5m\"` or `30` for seconds".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        duration(&number_or_text(item)?)
    }

    fn show(&self) -> Json {
        match self.subsec_millis() {
            0 => json!(format!("{}s", self.as_secs())),
            _ => json!(format!("{}ms", self.as_millis())),
        }
    }

    fn is_looser(&self, than: &Self) -> bool {
        self > than
    }
}

/// A number as it would be written in quotes, or what stands in quotes.
fn number_or_text(item: &Item) -> Option<String> {
    let number = item.as_integer().map(|it| it.to_string());
    let number = number.or_else(|| item.as_float().map(|it| it.to_string()));
    number.or_else(|| item.as_str().map(str::to_owned))
}

impl Value for String {
    fn wanted() -> String {
        "a text in quotes".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_str().map(str::to_owned)
    }

    fn show(&self) -> Json {
        json!(self)
    }
}

impl Value for Address {
    fn wanted() -> String {
        "an address in quotes".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_str().filter(|it| it.contains(':')).map(|it| Self(it.to_owned()))
    }

    fn show(&self) -> Json {
        json!(self.to_string())
    }

    /// Of databases, only those of SQLite are files; any other is a server, which passwords of the
    /// user may go to.
    fn lies_outside(&self, reader: &Reader<'_>) -> bool {
        let Some(file) = self.0.strip_prefix("sqlite:") else { return true };
        let file = file.strip_prefix("//").unwrap_or(file);
        let file = file.split('?').next().unwrap_or_default();
        let coded = file.to_ascii_lowercase();
        match file {
            "" | ":memory:" => false,
            // A dot or a slash in disguise leads wherever it likes.
            _ if ["%2e", "%2f"].iter().any(|it| coded.contains(it)) => true,
            file => !is_inside(&reader.directory.join(file), &reader.directory),
        }
    }
}

impl Value for PathBuf {
    fn wanted() -> String {
        "a path in quotes".to_owned()
    }

    /// A relative path begins where the file lies.
    fn of(_key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let path = item.as_str().filter(|it| !it.is_empty())?;
        Some(Directory::new(path).resolve(Some(&reader.directory), reader.home))
    }

    fn show(&self) -> Json {
        json!(self.to_string_lossy())
    }
}

/// Whether a path lies in a directory, also behind links; of what is not there yet, as far as it is.
fn is_inside(path: &Path, directory: &Path) -> bool {
    let leads_inside = |it: PathBuf| it.starts_with(directory);
    fs::canonicalize(path).map_or_else(
        |_| {
            let there = path.ancestors().find_map(|it| fs::canonicalize(it).ok());
            let mut parts = path.components();
            !parts.any(|it| it == Component::ParentDir) && there.is_some_and(leads_inside)
        },
        leads_inside,
    )
}

impl Value for RootPath {
    fn wanted() -> String {
        PathBuf::wanted()
    }

    /// What a project names lies in it, also behind links; a user may name any.
    fn of(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let path = PathBuf::of(key, item, reader)?;
        if reader.owner != Owner::Project || is_inside(&path, &reader.directory) {
            return Some(Self(path));
        }
        let message = format!("{key} must lie in the directory of this file");
        let hint = "the user's own file or one that `--config` names can name others".to_owned();
        reader.note(&item.span().unwrap_or_default(), message, Some(hint));
        None
    }

    fn show(&self) -> Json {
        self.0.show()
    }
}

impl Value for Directory {
    fn wanted() -> String {
        PathBuf::wanted()
    }

    /// What the user's own file names is the user's.
    fn of(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let path = PathBuf::of(key, item, reader)?;
        let scope = match reader.owner {
            Owner::User => Scope::User,
            Owner::Project | Owner::Named => Self::new(item.as_str()?).scope,
        };
        Some(Self { scope, ..Self::repository(path) })
    }

    fn show(&self) -> Json {
        self.path.show()
    }

    fn lies_outside(&self, reader: &Reader<'_>) -> bool {
        !is_inside(&self.path, &reader.directory)
    }
}

impl Value for &'static Preset {
    fn wanted() -> String {
        "the name of a preset in quotes".to_owned()
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        item.as_str().and_then(preset)
    }

    fn show(&self) -> Json {
        json!(self.name)
    }

    fn hint(item: &Item) -> Option<String> {
        let names: Vec<&str> = PRESETS.iter().map(|it| it.name).collect();
        Some(match nearest(item.as_str()?, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", names.join(", ")),
        })
    }
}

impl Value for Presets {
    fn wanted() -> String {
        Vec::<&Preset>::wanted()
    }

    /// What the user's own file names is looked for in whatever project is worked on.
    fn of(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let from = (reader.owner != Owner::User).then(|| reader.directory.clone());
        Some(Self { presets: Vec::of(key, item, reader)?, from })
    }

    fn show(&self) -> Json {
        self.presets.show()
    }
}

impl<T: Value> Value for Option<T> {
    fn wanted() -> String {
        T::wanted()
    }

    fn of(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        T::of(key, item, reader).map(Some)
    }

    fn show(&self) -> Json {
        self.as_ref().map_or(Json::Null, T::show)
    }

    fn hint(item: &Item) -> Option<String> {
        T::hint(item)
    }

    fn lies_outside(&self, reader: &Reader<'_>) -> bool {
        self.as_ref().is_some_and(|it| it.lies_outside(reader))
    }

    /// Without a limit, anything may happen.
    fn is_looser(&self, than: &Self) -> bool {
        match (self, than) {
            (Some(own), Some(than)) => own.is_looser(than),
            (own, than) => own.is_none() && than.is_some(),
        }
    }

    /// A list without anything in it is not the same as no list.
    fn within(self, key: &str, below: &Self) -> Self {
        match (self, below) {
            (Some(own), Some(below)) => Some(own.within(key, below)),
            (own, _) => own,
        }
    }
}

impl<T: Value + Clone> Value for Vec<T> {
    fn wanted() -> String {
        format!("a list, each {}", T::wanted())
    }

    fn of(key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let items: Vec<Item> = match item {
            Item::ArrayOfTables(tables) => tables.iter().cloned().map(Item::Table).collect(),
            Item::Value(Toml::Array(values)) => values.iter().cloned().map(Item::Value).collect(),
            _ => return None,
        };
        // All are read, so that all that is wrong is noted.
        let key = format!("each of {key}");
        let read: Vec<Option<T>> = items.iter().map(|it| T::read(&key, it, reader)).collect();
        read.into_iter().collect()
    }

    fn show(&self) -> Json {
        self.iter().map(T::show).collect()
    }

    fn over(self, below: &Self) -> Self {
        if T::TOGETHER { below.iter().cloned().chain(self).collect() } else { self }
    }

    /// A project leaves out no less than its user, and allows no more.
    fn within(self, key: &str, below: &Self) -> Self {
        let has = |all: &Self, one: &T| all.iter().any(|it| covers(key, &it.show(), &one.show()));
        match key {
            "skill.exclude" => {
                let missing = below.iter().filter(|it| !has(&self, it)).cloned().collect::<Self>();
                self.into_iter().chain(missing).collect()
            }
            "skill.include" | "policy.commands" | "policy.hosts" => {
                let narrower = below.iter().filter(|it| has(&self, it) && !has_same(&self, it));
                let narrower: Self = narrower.cloned().collect();
                self.into_iter().filter(|it| has(below, it)).chain(narrower).collect()
            }
            _ => self,
        }
    }

    /// A project may well have a list without what it cannot say.
    fn held(
        self,
        key: &'static str,
        origin: &Origin,
        _without: &Self,
        reader: &mut Reader<'_>,
    ) -> Option<Self> {
        let (all, mut held) = (self.len(), Self::new());
        for it in self {
            let same = it.clone();
            held.extend(it.held(key, origin, &same, reader));
        }
        (all == 0 || !held.is_empty()).then_some(held)
    }
}

/// Whether a list has just this.
fn has_same<T: Value>(all: &[T], one: &T) -> bool {
    all.iter().any(|it| it.show() == one.show())
}

/// Whether an entry of a list stands for another: the first words of a command do, and a host does for
/// each of its ports.
fn covers(key: &str, wide: &Json, narrow: &Json) -> bool {
    match (wide.as_str(), narrow.as_str()) {
        (Some(wide), Some(narrow)) if key == "policy.commands" => {
            let mut words = spelt(narrow).split_ascii_whitespace();
            spelt(wide).split_ascii_whitespace().all(|it| words.next() == Some(it))
        }
        #[cfg(feature = "http")]
        (Some(wide), Some(narrow)) if key == "policy.hosts" => crate::http::covers(wide, narrow),
        _ => wide == narrow,
    }
}

impl Value for RuleSetting {
    const TOGETHER: bool = true;

    /// What a project allows, nobody would be asked about.
    fn held(
        self,
        key: &'static str,
        _origin: &Origin,
        _without: &Self,
        reader: &mut Reader<'_>,
    ) -> Option<Self> {
        if reader.owner != Owner::Project || self.decision != Decision::Allow {
            return Some(self);
        }
        let why = "no file of a project can allow what somebody would be asked about";
        reader.set_aside.push((key, self.origin, why));
        None
    }

    fn wanted() -> String {
        "a table, such as `{ tool = \"http_request\", decision = \"ask\" }`".to_owned()
    }

    fn of(_key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let (mut tool, mut skill, mut command) = (None, None, None);
        let (mut path, mut decision) = (None, None);
        let before = reader.faults.len();
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
        if decision.is_none() && reader.faults.len() == before {
            reader.note(
                &span,
                format!("a rule must have a `decision`: {}", Decision::wanted()),
                None,
            );
        }
        (reader.faults.len() == before).then_some(())?;
        Some(Self { tool, skill, command, path, decision: decision?, origin: reader.origin(&span) })
    }

    fn show(&self) -> Json {
        let path = self.path.as_ref().map(PathBuf::show);
        let fields = [
            ("tool", self.tool.show()),
            ("skill", self.skill.show()),
            ("command", self.command.show()),
            ("path", path.unwrap_or_default()),
            ("decision", self.decision.show()),
            ("origin", json!(self.origin.to_string())),
        ];
        let said = fields.into_iter().filter(|it| !it.1.is_null());
        Json::Object(said.map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

impl Value for ServerSettings {
    fn wanted() -> String {
        "tables with labels, such as `[servers.docs]`".to_owned()
    }

    fn of(_key: &str, item: &Item, reader: &mut Reader<'_>) -> Option<Self> {
        let before = reader.faults.len();
        let mut servers = Vec::new();
        for (label, item) in reader.entries(item.as_table_like()?) {
            match server(&label.name, item, reader) {
                Ok(Some(description)) => servers.push(ServerSetting {
                    description,
                    is_trusted: reader.owner != Owner::Project,
                    origin: reader.origin(&label.span),
                }),
                Ok(None) => {}
                Err(why) => {
                    let hint =
                        "it has a `command` with `args` and `env`, or a `url` with `headers`";
                    let message = format!("the server `{}` cannot be used: {why}", label.name);
                    reader.note(&label.span, message, Some(hint.to_owned()));
                }
            }
        }
        (reader.faults.len() == before).then_some(Self(servers))
    }

    /// What is sent to a server or given to it may be a secret, the query of its address too.
    fn show(&self) -> Json {
        let without_query = |url: &str| match without_password(url).split_once('?') {
            Some((address, _)) => format!("{address}?***"),
            None => without_password(url),
        };
        let shown = |it: &ServerSetting| {
            let what = match &it.description.transport {
                Transport::Program(program) => json!({ "command": program.command }),
                Transport::Http(address) => json!({ "url": without_query(&address.url) }),
            };
            (it.description.name.clone(), what)
        };
        Json::Object(self.0.iter().map(shown).collect())
    }

    fn over(self, below: &Self) -> Self {
        let is_kept = |it: &&ServerSetting| !self.has(&it.description.name);
        let kept: Vec<_> = below.0.iter().filter(is_kept).cloned().collect();
        Self(kept.into_iter().chain(self.0).collect())
    }

    /// A label that a person has given stays with what it was given to.
    fn held(
        self,
        key: &'static str,
        _origin: &Origin,
        without: &Self,
        reader: &mut Reader<'_>,
    ) -> Option<Self> {
        let is_taken = |it: &mut ServerSetting| {
            reader.owner == Owner::Project && without.has(&it.description.name)
        };
        let mut servers = self.0;
        let taken: Vec<ServerSetting> = servers.extract_if(.., is_taken).collect();
        for server in taken {
            let why = "no file of a project can put another server under a label of the user";
            reader.set_aside.push((key, server.origin, why));
        }
        (!servers.is_empty()).then_some(Self(servers))
    }
}

impl ServerSettings {
    fn has(&self, label: &str) -> bool {
        self.0.iter().any(|it| it.description.name == label)
    }
}

/// A server of this label; nothing for one that is switched off.
fn server(label: &str, item: &Item, reader: &Reader<'_>) -> Result<Option<Description>, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if label.is_empty() || label.len() > 32 || !label.chars().all(is_plain) {
        return Err("a label has letters, digits and `-`, 32 at the most".to_owned());
    }
    // `user:name` is a skill of the user.
    if [Scope::Project, Scope::User, Scope::Bundled].iter().any(|it| it.as_str() == label) {
        return Err("its label is the word for a scope".to_owned());
    }
    let Some(Json::Object(server)) = as_json(item) else {
        return Err("it is no table of texts".to_owned());
    };
    if let Some(key) = Description::unknown(&server).next() {
        return Err(format!("it has no key `{key}`"));
    }
    let Some(mut description) = Description::read(label, &server)? else { return Ok(None) };
    if let Transport::Program(program) = &mut description.transport
        && !program.directory.is_empty()
    {
        let directory = Directory::new(&program.directory);
        let directory = directory.resolve(Some(&reader.directory), reader.home);
        if reader.owner == Owner::Project && !is_inside(&directory, &reader.directory) {
            return Err("its `cwd` lies outside of the directory of this file".to_owned());
        }
        program.directory = directory.to_string_lossy().into_owned();
    }
    Ok(Some(description))
}

/// What is written, as JSON has it; nothing for a date.
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

    /// Why a word that others know is not among them.
    fn refused(_word: &str) -> Option<&'static str> {
        None
    }

    /// How much it holds back.
    fn strictness(self) -> u8 {
        0
    }
}

impl<T: Word> Value for T {
    fn wanted() -> String {
        let words: Vec<String> = T::words().iter().map(|it| format!("`\"{}\"`", it.0)).collect();
        format!("one of {}", words.join(", "))
    }

    fn of(_key: &str, item: &Item, _reader: &mut Reader<'_>) -> Option<Self> {
        let word = item.as_str()?;
        T::words().into_iter().find(|it| it.0 == word).map(|it| it.1)
    }

    fn show(&self) -> Json {
        let words = T::words();
        words.iter().find(|it| it.1 == *self).map_or(Json::Null, |it| json!(it.0))
    }

    fn is_looser(&self, than: &Self) -> bool {
        self.strictness() < than.strictness()
    }

    fn hint(item: &Item) -> Option<String> {
        let refused = item.as_str().and_then(T::refused).map(str::to_owned);
        refused.or_else(|| {
            let words = T::words();
            let near = nearest(item.as_str()?, words.iter().map(|it| it.0))?;
            Some(format!("did you mean `{near}`?"))
        })
    }
}

impl Word for Strategy {
    fn words() -> Vec<(&'static str, Self)> {
        Self::ALL.map(|it| (it.as_str(), it)).to_vec()
    }
}

impl Word for Level {
    fn words() -> Vec<(&'static str, Self)> {
        [Self::Strong, Self::Landlock].map(|it| (it.as_str(), it)).to_vec()
    }

    fn refused(word: &str) -> Option<&'static str> {
        (word == Self::None.as_str()).then_some(
            "a file cannot switch the sandbox off: that must be typed for the one run that is to do without",
        )
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
}
