//! The library: all skills of one moment.

use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use sha2::{Digest as _, Sha256};

use crate::{
    discover::Directory,
    finding::{Finding, Report, Severity},
    gather::gather,
    parse::{Reading, decode},
    rule::{self, Profile},
    skill::{Home, Manifest, Origin, Scope, Skill},
    source::{Folder, Found, Limits, Source},
    validate::at_load,
};

/// What a library is loaded from, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The directories to look in, the first taken first.
    pub directories: Vec<Directory>,
    /// Other sources, taken after the directories.
    pub sources: Vec<Arc<dyn Source>>,
    /// Where relative directories begin; the process's working directory when not given.
    pub cwd: Option<PathBuf>,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// The names to take; all when empty.
    pub include: Vec<String>,
    /// The names to leave out.
    pub exclude: Vec<String>,
    /// How much is taken in.
    pub limits: Limits,
    /// The lenient profile takes a folder's name for a skill that has none.
    pub profile: Profile,
}

/// All skills of one moment. A library never changes; [`reload`](Self::reload) makes a new one.
#[derive(Debug, Clone)]
pub struct Library {
    /// Sorted by name; of those with the same name the one that is taken comes first.
    skills: Vec<Arc<Skill>>,
    findings: Vec<Finding>,
    /// Where a skill lies that could not be made one.
    left_out: Vec<Arc<Path>>,
    options: Options,
}

/// No library was loaded. What is wrong with a skill or directory is a [`Finding`] instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Nothing is scanned that nobody named.
    #[error("no directory is configured: name the directories that hold skills")]
    NoDirectories,
}

impl Library {
    /// Loads the skills of all directories and sources. Only frontmatter is read.
    pub fn load(options: &Options) -> Result<Self, LoadError> {
        let (skills, left_out, findings) = load(options)?;
        Ok(Self::resolve(skills, left_out, findings, options.clone()))
    }

    /// Loads everything anew. A skill that can no longer be read stays as it was, with a finding.
    pub fn reload(&self) -> Result<Self, LoadError> {
        let (mut skills, left_out, mut findings) = load(&self.options)?;
        for path in &left_out {
            let Some(before) = self.skills.iter().find(|it| it.origin.path == *path) else {
                continue;
            };
            findings.push(Finding::about(
                &rule::KEPT_LAST_GOOD,
                Severity::Error,
                path,
                format!(
                    "the file can no longer be read as a skill; `{}` stays as it was",
                    before.manifest.name
                ),
                "see the other finding about this file",
            ));
            let mut kept = before.clone();
            Arc::make_mut(&mut kept).hidden_by = None;
            skills.push(kept);
        }
        Ok(Self::resolve(skills, left_out, findings, self.options.clone()))
    }

    /// Every skill, sorted by name, those that are hidden by another included.
    pub fn all(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().map(|it| &**it)
    }

    /// The skills that can be asked for by name alone, sorted by it.
    pub fn skills(&self) -> impl Iterator<Item = &Skill> {
        self.all().filter(|it| it.hidden_by.is_none())
    }

    /// Finds a skill by its name, by `scope:name`, or by its path.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        let (scope, bare) = name.split_once(':').unwrap_or(("", name));
        let path = Path::new(name);
        let qualified = || self.named(bare).iter().find(|it| it.origin.scope.as_str() == scope);
        let by_path =
            || self.skills.iter().find(|it| &*it.origin.path == path || it.folder() == path);
        self.named(name).first().or_else(qualified).or_else(by_path).map(|it| &**it)
    }

    /// The skills of one name, the one that is taken first.
    fn named(&self, name: &str) -> &[Arc<Skill>] {
        let start = self.skills.partition_point(|it| &*it.manifest.name < name);
        let rest = &self.skills[start..];
        &rest[..rest.partition_point(|it| &*it.manifest.name == name)]
    }

    /// The skills that have a tag.
    pub fn tagged(&self, tag: &str) -> impl Iterator<Item = &Skill> {
        self.skills()
            .filter(move |it| it.manifest.tags.iter().any(|own| own.eq_ignore_ascii_case(tag)))
    }

    /// What was noticed while loading: what was repaired, left out or hidden.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Decides which of the skills with the same name is taken.
    fn resolve(
        mut skills: Vec<Arc<Skill>>,
        left_out: Vec<Arc<Path>>,
        mut findings: Vec<Finding>,
        options: Options,
    ) -> Self {
        let wanted = |name: &str, names: &[String]| names.iter().any(|it| it == name);
        skills.retain(|it| {
            let name = &*it.manifest.name;
            (options.include.is_empty() || wanted(name, &options.include))
                && !wanted(name, &options.exclude)
        });
        for name in &options.include {
            if !skills.iter().any(|it| *it.manifest.name == **name) {
                findings.push(Finding::about(
                    &rule::INCLUDE_UNMATCHED,
                    Severity::Warning,
                    Path::new(""),
                    format!("no skill is called `{name}`, which is to be included"),
                    "check the spelling",
                ));
            }
        }
        // Those of one name come in order of precedence, and this sort keeps it.
        skills.sort_by(|a, b| a.manifest.name.cmp(&b.manifest.name));
        let mut resolved: Vec<Arc<Skill>> = Vec::with_capacity(skills.len());
        for group in skills.chunk_by(|a, b| a.manifest.name == b.manifest.name) {
            let [winner, others @ ..] = group else { continue };
            resolved.push(winner.clone());
            if others.is_empty() {
                continue;
            }
            let mut contents = HashSet::from([content(winner)]);
            for skill in others {
                // A copy of the same skill is no second one.
                if !contents.insert(content(skill)) {
                    continue;
                }
                findings.push(hidden(skill, winner));
                let mut skill = skill.clone();
                Arc::make_mut(&mut skill).hidden_by = Some(winner.origin.path.clone());
                resolved.push(skill);
            }
        }
        findings.sort_by(|a, b| (a.path.as_os_str(), a.line).cmp(&(b.path.as_os_str(), b.line)));
        Self { skills: resolved, findings, left_out, options }
    }

    /// Where skills lie that could not be made one, each with a finding that says why.
    pub fn left_out(&self) -> &[Arc<Path>] {
        &self.left_out
    }
}

type Loaded = (Vec<Arc<Skill>>, Vec<Arc<Path>>, Vec<Finding>);

/// The skills, those of one name in order of precedence, the paths of those left out, and what
/// was noticed.
fn load(options: &Options) -> Result<Loaded, LoadError> {
    if options.directories.is_empty() && options.sources.is_empty() {
        return Err(LoadError::NoDirectories);
    }
    let (sources, mut findings) = open(options);
    let visited: Vec<&dyn Source> = sources.iter().map(|it| &**it).collect();
    let home = |source: &Arc<dyn Source>| {
        Arc::new(Home { source: source.clone(), limits: options.limits })
    };
    let homes: Vec<Arc<Home>> = sources.iter().map(home).collect();
    let gathered = gather(&visited, &options.limits, |number, found| {
        Made::new(number, &homes[number], found, options)
    });
    findings.extend(gathered.findings);
    let mut made = gathered.made;
    // The same file by two ways is one skill. Without links and a second source there is one way.
    if sources.len() > 1 || made.iter().any(|it| it.linked) {
        made.sort_unstable_by(|a, b| a.rank().cmp(&b.rank()));
        let mut seen: HashSet<OsString> = HashSet::with_capacity(made.len());
        made.retain(|it| seen.insert(it.real.as_os_str().to_owned()));
    }
    made.sort_unstable_by(|a, b| (a.name(), a.rank()).cmp(&(b.name(), b.rank())));
    let mut skills = Vec::with_capacity(made.len());
    let mut left_out: Vec<Arc<Path>> = gathered.left_out.into_iter().map(Arc::from).collect();
    for it in made {
        findings.extend(it.findings);
        match it.skill {
            Some(skill) => skills.push(skill),
            None => left_out.push(it.path),
        }
    }
    left_out.sort();
    Ok((skills, left_out, findings))
}

/// Opens the directories. One that cannot be opened is a finding.
fn open(options: &Options) -> (Vec<Arc<dyn Source>>, Vec<Finding>) {
    let mut findings = Vec::new();
    let (cwd, home) = (options.cwd.as_deref(), options.home.as_deref());
    let paths: Vec<PathBuf> = options.directories.iter().map(|it| it.resolve(cwd, home)).collect();
    let allowed = Folder::real_paths(&paths);
    let mut sources: Vec<Arc<dyn Source>> = Vec::new();
    for (directory, path) in options.directories.iter().zip(paths) {
        match Folder::open(directory.scope, path.clone(), allowed.clone(), &options.limits) {
            Ok(folder) => sources.push(Arc::new(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory.optional => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => findings.push(Finding::about(
                &rule::DIRECTORY_MISSING,
                Severity::Warning,
                &path,
                "the directory does not exist".to_owned(),
                "create it, or take it out of the configuration",
            )),
            Err(error) => findings.push(Finding::about(
                &rule::DIRECTORY_UNREADABLE,
                Severity::Error,
                &path,
                format!("the directory cannot be read: {}", error.kind()),
                "check what it is and its permissions",
            )),
        }
    }
    sources.extend(options.sources.iter().cloned());
    (sources, findings)
}

/// What was made of one `SKILL.md`.
struct Made {
    number: usize,
    path: Arc<Path>,
    real: Arc<Path>,
    linked: bool,
    scope: Scope,
    skill: Option<Arc<Skill>>,
    findings: Vec<Finding>,
}

impl Made {
    fn new(number: usize, home: &Arc<Home>, found: Found, options: &Options) -> Self {
        let source = &home.source;
        let Found { path, real, linked, head, size, modified, resources } = found;
        let (mut manifest, mut findings) = match read(&path, whole_characters(&head, size), options)
        {
            // The frontmatter may be longer than the head.
            (None, _) if (head.len() as u64) < size => {
                let whole = source.read(&path).unwrap_or(head);
                read(&path, &whole, options)
            }
            read => read,
        };
        let total = size + resources.iter().flatten().map(|it| it.size).sum::<u64>();
        if total > options.limits.max_skill_size {
            manifest = None;
            findings.push(Finding::about(
                &rule::SKILL_TOO_LARGE,
                Severity::Error,
                &path,
                format!(
                    "the skill has {total} bytes, more than {}, and is left out",
                    options.limits.max_skill_size
                ),
                "make it smaller, or raise `max_skill_size`",
            ));
        }
        for finding in &mut findings {
            finding.path = path.to_path_buf();
        }
        let skill = manifest.map(|manifest| {
            Arc::new(Skill {
                manifest,
                origin: Origin { scope: source.scope(), path: path.clone(), size, modified },
                resources: resources.map_or_else(OnceLock::new, |it| it.into_boxed_slice().into()),
                hidden_by: None,
                home: home.clone(),
            })
        });
        Self { number, path, real, linked, scope: source.scope(), skill, findings }
    }

    fn name(&self) -> &str {
        self.skill.as_ref().map_or("", |it| &it.manifest.name)
    }

    /// Project before user before bundled, then the order of directories, then that of paths,
    /// those of links last.
    fn rank(&self) -> (Scope, usize, bool, &OsStr) {
        (self.scope, self.number, self.linked, self.path.as_os_str())
    }
}

/// Makes a manifest of the beginning of a file, or says why not.
fn read(path: &Path, bytes: &[u8], options: &Options) -> (Option<Manifest>, Vec<Finding>) {
    let mut report = Report::new(Profile::Lenient, Severity::Warning);
    let decoded = decode(bytes);
    let reading = Reading::new(&decoded, &mut report);
    let folder = match options.profile {
        Profile::Lenient => path.parent().and_then(Path::file_name).map(OsStr::to_string_lossy),
        Profile::Spec | Profile::Reference => None,
    };
    let manifest = reading.manifest(folder.as_deref(), &mut report);
    if let Some(manifest) = &manifest {
        at_load(&reading, manifest, &mut report);
    }
    (manifest, report.findings)
}

/// Takes off a character that was cut apart at the end of a head.
fn whole_characters(head: &[u8], size: u64) -> &[u8] {
    if head.len() as u64 >= size {
        return head;
    }
    let tail = head.len().saturating_sub(3);
    let start = (tail..head.len()).rev().find(|at| head[*at] >= 0xC0);
    match start {
        Some(at) if str::from_utf8(&head[at..]).is_err() => &head[..at],
        _ => head,
    }
}

/// The finding about a skill whose name is taken.
fn hidden(skill: &Skill, winner: &Skill) -> Finding {
    let name = &skill.manifest.name;
    Finding::about(
        &rule::NAME_TAKEN,
        Severity::Warning,
        &skill.origin.path,
        format!("`{name}` is hidden by `{}`", winner.origin.path.display()),
        format!("rename one of them, or ask for `{}:{name}`", skill.origin.scope),
    )
}

/// What tells two skills of one name apart: the digest of all their bytes. What cannot be read
/// now is told apart by its path.
fn content(skill: &Skill) -> [u8; 32] {
    let mut digest = Sha256::new();
    match skill.home.source.read(&skill.origin.path) {
        Ok(bytes) => digest.update(bytes),
        Err(_) => digest.update(skill.origin.path.as_os_str().as_encoded_bytes()),
    }
    for resource in skill.resources() {
        digest.update(resource.path.as_bytes());
        digest.update(resource.size.to_le_bytes());
        if let Ok(bytes) = skill.read(&resource.path) {
            digest.update(bytes);
        }
    }
    digest.finalize().into()
}
