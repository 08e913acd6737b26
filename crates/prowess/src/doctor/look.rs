//! What lies in the directories of the clients, read once for all of them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use prowess_frontmatter::{Field, Quirk, Value};
use sha2::{Digest as _, Sha256};

use super::{
    case::{Case, OPEN},
    client::{Client, Spot},
};
use crate::{
    finding::{Finding, Report, Severity},
    gather::{Step, Visited, gather_by},
    load::whole_characters,
    parse::{self, Encoding, canonical, decode},
    rule::{self, Profile},
    skill::Scope,
    source::{Folder, Found, Limits, Listing, MAX_DEPTH, Source as _, is_link, reason},
};

/// How many folders are looked into, so that a tree that is no library does not hold anybody up.
const MAX_FOLDERS: usize = 100_000;
/// The largest `SKILL.md` that is read, in bytes: larger than the limit of any client.
const MAX_DOCUMENT: u64 = 16 * 1024 * 1024;

/// Where clients are started, and where they keep what is the user's.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// The folder that clients are started in.
    pub cwd: PathBuf,
    /// The folder of the repository that it lies in, where there is one.
    pub repository: Option<PathBuf>,
    /// What variables say that move directories; see [`VARIABLES`](crate::VARIABLES).
    pub variables: BTreeMap<String, PathBuf>,
}

impl Surroundings {
    /// The directories that a spot stands for, the nearest first; none without a home to have them in.
    pub fn directories(&self, spot: &Spot) -> Vec<PathBuf> {
        if let Some((usual, name, rest)) = spot.variable() {
            let rest = rest.trim_start_matches('/');
            let base = self.variables.get(name).cloned().or_else(|| self.at_home(usual));
            return base.into_iter().map(|it| it.join(rest)).collect();
        }
        if !spot.is_in_project() {
            return self.at_home(spot.path).into_iter().collect();
        }
        let last = self.repository.as_deref().filter(|it| spot.upwards && self.cwd.starts_with(it));
        let last = last.unwrap_or(&self.cwd);
        let folders = self.cwd.ancestors().take_while(|it| it.starts_with(last));
        folders.map(|it| it.join(spot.path)).collect()
    }

    fn at_home(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix("~/") {
            Some(rest) => self.home.as_ref().map(|it| it.join(rest)),
            None => Some(PathBuf::from(path)),
        }
    }
}

/// A `SKILL.md`, with what clients ask of it.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The file, as a person would name it.
    pub(super) path: Arc<Path>,
    /// How the file is called.
    pub(super) spelt: String,
    pub(super) size: u64,
    pub(super) body: u64,
    pub(super) is_utf8: bool,
    pub(super) has_mark: bool,
    pub(super) has_blanks: bool,
    pub(super) has_odd_end: bool,
    pub(super) has_dashes: bool,
    pub(super) has_duplicates: bool,
    pub(super) text: Text,
    /// The line that is not YAML.
    pub(super) line: Option<usize>,
    pub(super) name: Option<String>,
    /// How many characters the description has.
    pub(super) description: Option<usize>,
    pub(super) is_nested: bool,
    pub(super) hides_from_model: bool,
    pub(super) hides_from_people: bool,
    /// The open cases that it is in wherever it lies.
    pub(super) open: Vec<Case>,
    /// What tells its beginning from others.
    head: u64,
    /// What tells all of it from others, where somebody has asked; nothing where it cannot be read.
    digest: OnceLock<Option<[u8; 32]>>,
    /// The number of the directory that it was read from.
    directory: usize,
}

/// How far a frontmatter can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Fine,
    NoFrontmatter,
    /// Once values were put in quotes.
    Mended,
    /// Not at all.
    Garbled,
    /// It was not tried.
    Unread,
}

impl Candidate {
    /// Whether its fields are known.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.text, Text::Fine | Text::Mended)
    }

    /// The name of its folder, by the way that a client takes to it.
    pub(super) fn folder(&self, leaf: Option<&Leaf<'_>>) -> String {
        let within = leaf.and_then(|it| it.within.file_name().or_else(|| it.root.file_name()));
        let own = || self.path.parent().and_then(Path::file_name);
        within.or_else(own).unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// A candidate as it lies in a directory.
#[derive(Debug, Clone)]
pub(super) struct Sprig {
    pub(super) candidate: usize,
    /// Its folder, from the directory on.
    within: PathBuf,
    depth: usize,
    link: Link,
}

/// The same before a client that looks into that directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf<'a> {
    pub(super) root: &'a Path,
    pub(super) within: &'a Path,
    pub(super) depth: usize,
    pub(super) link: Link,
    pub(super) is_in_project: bool,
}

/// What is a link on the way to a `SKILL.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    None,
    Folder,
    Document,
}

impl Sprig {
    pub(super) fn before<'a>(&'a self, root: &'a Path, spot: &Spot) -> Leaf<'a> {
        let Self { within, depth, link, .. } = self;
        let is_in_project = spot.is_in_project();
        Leaf { root, within, depth: *depth, link: *link, is_in_project }
    }
}

/// Everything that lies in the directories of some clients.
#[derive(Debug)]
pub(super) struct Look {
    /// Sorted by path.
    pub(super) candidates: Vec<Candidate>,
    /// What could not be looked at.
    pub(super) findings: Vec<Finding>,
    folders: Vec<Folder>,
    /// What lies in each folder, sorted by path.
    sprigs: Vec<Vec<Sprig>>,
    numbers: HashMap<PathBuf, usize>,
}

impl Look {
    /// Looks into the directories of the clients, and into some others before them.
    pub(super) fn new(
        clients: &[&'static Client],
        surroundings: &Surroundings,
        others: &[PathBuf],
    ) -> Self {
        let spots = clients.iter().flat_map(|it| it.spots);
        let paths = others.iter().cloned().chain(spots.flat_map(|it| surroundings.directories(it)));
        let limits =
            Limits { depth: MAX_DEPTH, max_document_size: MAX_DOCUMENT, ..Limits::default() };
        let mut look = Self {
            candidates: Vec::new(),
            findings: Vec::new(),
            folders: Vec::new(),
            sprigs: Vec::new(),
            numbers: HashMap::new(),
        };
        let mut reals: HashMap<PathBuf, usize> = HashMap::new();
        // Clients follow links wherever they lead, and only what they would read is read.
        let anywhere: Arc<[PathBuf]> = [PathBuf::from("/")].into();
        for path in paths {
            if look.numbers.contains_key(&path) {
                continue;
            }
            match Folder::open(Scope::Project, path.clone(), anywhere.clone(), &limits) {
                Ok(folder) => {
                    let next = look.folders.len();
                    let number = *reals.entry(folder.real().to_owned()).or_insert(next);
                    look.numbers.insert(path, number);
                    if number == next {
                        look.folders.push(folder);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => look.findings.push(Finding::new(
                    &rule::DIRECTORY_UNREADABLE,
                    Severity::Warning,
                    &path,
                    format!("the directory cannot be read: {}", reason(&error)),
                    "check what it is and its permissions",
                )),
            }
        }
        look.gather(&limits);
        look
    }

    fn gather(&mut self, limits: &Limits) {
        let seen = AtomicUsize::new(0);
        let folders = &self.folders;
        let gathered = gather_by(folders.len(), limits, |place| {
            if seen.fetch_add(1, Ordering::Relaxed) >= MAX_FOLDERS {
                return Visited { step: Step::Nothing, linked: false, findings: Vec::new() };
            }
            let folder = &folders[place.source];
            let visit = folder.visit(&place.folder, limits, Listing::OnDemand);
            Visited::new(visit, |found| {
                let link = match found.linked {
                    false => Link::None,
                    true if is_link(&found.path) => Link::Document,
                    true => Link::Folder,
                };
                let (within, depth) = (place.folder.clone(), place.depth);
                let real = found.real.clone().unwrap_or_else(|| found.path.clone());
                let candidate = Candidate::new(&found, folder, place.source);
                (place.source, real, Sprig { candidate: 0, within, depth, link }, candidate)
            })
        });
        self.findings.extend(gathered.findings);
        if seen.into_inner() > MAX_FOLDERS {
            self.findings.push(Finding::new(
                &rule::TOO_DEEP,
                Severity::Warning,
                Path::new(""),
                format!("there are more than {MAX_FOLDERS} folders; the others are not looked at"),
                "keep skills in directories of their own",
            ));
        }
        let mut made = gathered.made;
        // Of several ways to one file the first directory's is its path, and in it one without a link.
        made.sort_by(|a, b| {
            let key =
                |(number, _, sprig, _): &(usize, _, Sprig, _)| (*number, sprig.link != Link::None);
            (key(a), &a.2.within).cmp(&(key(b), &b.2.within))
        });
        self.sprigs.resize_with(self.folders.len(), Vec::new);
        let mut known: HashMap<Arc<Path>, usize> = HashMap::with_capacity(made.len());
        for (number, real, sprig, candidate) in made {
            let at = *known.entry(real).or_insert_with(|| {
                self.candidates.push(candidate);
                self.candidates.len() - 1
            });
            self.sprigs[number].push(Sprig { candidate: at, ..sprig });
        }
        self.findings.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// What lies in a directory.
    pub(super) fn inside(&self, directory: &Path) -> &[Sprig] {
        self.numbers.get(directory).map_or(&[], |it| &self.sprigs[*it])
    }

    /// Whether two candidates say the same.
    pub(super) fn are_same(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.candidates[one], &self.candidates[other]);
        let digest = |it: &Candidate| {
            let read =
                || Some(Sha256::digest(self.folders[it.directory].read(&it.path).ok()?).into());
            *it.digest.get_or_init(read)
        };
        (one.size, one.head) == (other.size, other.head)
            && digest(one).is_some_and(|it| digest(other) == Some(it))
    }
}

impl Candidate {
    fn new(found: &Found, folder: &Folder, directory: usize) -> Self {
        let is_cut = (found.head.len() as u64) < found.size;
        let head = if is_cut { whole_characters(&found.head) } else { &found.head };
        let (candidate, is_certain) = Self::read(head, found, directory);
        if !is_cut || is_certain {
            return candidate;
        }
        folder.read(&found.path).map_or(candidate, |it| Self::read(&it, found, directory).0)
    }

    /// Reads a text; says too whether more of it would change nothing.
    fn read(bytes: &[u8], found: &Found, directory: usize) -> (Self, bool) {
        let mut report = Report::new(Profile::Lenient, Severity::Info);
        let decoded = decode(bytes);
        let reading = parse::Reading::new(&decoded, &mut report);
        let document = &reading.document;
        let noted =
            |rules: &[&rule::Rule]| report.findings.iter().find(|it| rules.contains(&it.rule));
        let bad = noted(&[
            &rule::YAML_REPAIRED,
            &rule::YAML_RESCUED,
            &rule::YAML_INVALID,
            &rule::YAML_NOT_MAP,
        ]);
        let text = match (&reading.fields, document.frontmatter) {
            (_, None) => Text::NoFrontmatter,
            (Some(_), _) if bad.is_some() => Text::Mended,
            (Some(_), _) => Text::Fine,
            (None, _) if bad.is_some() => Text::Garbled,
            (None, _) => Text::Unread,
        };
        let fields = reading.fields.as_deref().unwrap_or_default();
        let field = |key: &str| fields.iter().find(|it| canonical(&it.key) == key);
        let text_of = |key: &str| {
            let text = field(key).and_then(|it| it.value.as_text()).map(str::trim);
            text.filter(|it| !it.is_empty())
        };
        let says = |key: &str, words: &[&str]| {
            text_of(key).is_some_and(|it| words.contains(&it.to_ascii_lowercase().as_str()))
        };
        let mut hasher = DefaultHasher::new();
        found.head.hash(&mut hasher);
        let mut candidate = Self {
            path: found.path.clone(),
            spelt: found.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            size: found.size,
            body: found.size.saturating_sub(document.body.start as u64),
            is_utf8: decoded.invalid.is_none() && decoded.encoding != Encoding::Utf16,
            has_mark: decoded.encoding == Encoding::Utf8Bom,
            has_blanks: document.quirks.iter().any(|it| is_blank(*it)),
            has_odd_end: document.quirks.iter().any(|it| matches!(it, Quirk::OddClosing(_))),
            has_dashes: document.frontmatter.is_some_and(|it| it.text.contains("---")),
            has_duplicates: has_duplicates(fields),
            text,
            line: bad.and_then(|it| it.line),
            name: text_of("name").map(str::to_owned),
            description: text_of("description").map(|it| it.chars().count()),
            is_nested: field("metadata").is_some_and(|it| is_nested(&it.value)),
            hides_from_model: says("disable-model-invocation", &["true", "yes", "on", "1"]),
            hides_from_people: says("user-invocable", &["false", "no", "off", "0"]),
            open: Vec::new(),
            head: hasher.finish(),
            digest: OnceLock::new(),
            directory,
        };
        candidate.open = OPEN
            .iter()
            .copied()
            .filter(|it| !it.is_of_way() && it.holds(&candidate, None))
            .collect();
        let is_certain = document.frontmatter.is_some()
            && document.quirks.is_empty()
            && !document.body.text.is_empty();
        (candidate, is_certain)
    }
}

/// Whether a quirk is nothing but space before or beside the delimiters.
fn is_blank(quirk: Quirk) -> bool {
    matches!(quirk, Quirk::BlankLinesBefore(_) | Quirk::Padded(_))
}

fn has_duplicates(fields: &[Field<'_>]) -> bool {
    let mut seen = BTreeSet::new();
    !fields.iter().all(|it| seen.insert(&it.key))
}

/// Whether a `metadata` is anything but names with single texts.
fn is_nested(metadata: &Value<'_>) -> bool {
    match metadata {
        Value::Map(fields) => {
            fields.iter().any(|it| matches!(it.value, Value::Map(_) | Value::List(_)))
        }
        Value::Empty => false,
        Value::Scalar(_) | Value::List(_) => !metadata.is_null(),
    }
}
