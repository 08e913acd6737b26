//! Loads a library: scans directories, parses files, and resolves which skill shadows which.

use std::{
    any::TypeId,
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    path::{Path, PathBuf},
    str::Chars,
    sync::{Arc, OnceLock},
};

use sha2::{Digest as _, Sha256};

use crate::{
    check::validate::{check_at_load, too_large},
    finding::{
        Finding, Report, Severity,
        rule::{self, Profile},
    },
    library::{Library, LoadError, Options},
    read::{
        gather::{FolderContent, ScanResult, ScannedFolder, gather, gather_by},
        manifest::Manifest,
        parse::{SplitDocument, decode},
        scan_cache::{CachedSkill, CachedVisit, IndexPlace, ScanCache, digest, state},
        skill::{Home, Origin, Skill},
        source::{
            DiscoveredSkill, Folder, Key, Listing, Scope, SkillPaths, Source, VisitMarks,
            VisitResult, Watcher, reason,
        },
    },
};

/// Loads a library; `before` has the last good versions of skills that can no longer be read.
pub(crate) fn load(options: &Options, before: Option<&Library>) -> Result<Library, LoadError> {
    require_sources(options)?;
    let (homes, findings) = open(options, None);
    let (gathered, index) = scan(&homes, options);
    Ok(assemble(options, &homes, findings, gathered, index, before))
}

/// Checks that there is a directory or source to load from.
pub(crate) fn require_sources(options: &Options) -> Result<(), LoadError> {
    let is_nowhere = options.directories.is_empty() && options.sources.is_empty();
    if is_nowhere { Err(LoadError::NoDirectories) } else { Ok(()) }
}

/// Builds a library from the results of a scan of its homes, with these findings.
pub(crate) fn assemble(
    options: &Options,
    homes: &[Arc<Home>],
    mut findings: Vec<Finding>,
    gathered: ScanResult<ParsedFile>,
    index: Option<IndexPlace>,
    before: Option<&Library>,
) -> Library {
    findings.extend(gathered.findings);
    let mut made = gathered.made;
    // The same file at two paths is one skill. Without links and a second source there is one path.
    if homes.len() > 1 || made.iter().any(|it| it.linked) {
        made.sort_unstable_by(|a, b| a.rank().cmp(&b.rank()));
        let mut seen: HashSet<OsString> = HashSet::with_capacity(made.len());
        made.retain(|it| {
            it.real.as_ref().is_none_or(|real| seen.insert(real.as_os_str().to_owned()))
        });
    }
    made.extend(gathered.left_out.into_iter().map(|(number, path)| {
        let (scope, path) = (homes[number].source.scope(), Arc::from(path));
        ParsedFile {
            number,
            path,
            real: None,
            linked: false,
            scope,
            skill: None,
            findings: Vec::new(),
        }
    }));
    let mut left_out: Vec<Arc<Path>> = Vec::new();
    for it in &mut made {
        findings.append(&mut it.findings);
        if it.skill.is_none() {
            left_out.push(it.path.clone());
            it.skill = before.and_then(|before| last_good(before, &it.path, &mut findings));
        }
    }
    left_out.sort();
    left_out.dedup();
    // The first letters of a name decide most comparisons, without accessing the skill.
    let mut made: Vec<(u64, ParsedFile)> =
        made.into_iter().map(|it| (name_prefix(it.name()), it)).collect();
    made.sort_unstable_by(|(a_start, a), (b_start, b)| {
        let names = a_start.cmp(b_start).then_with(|| a.name().cmp(b.name()));
        names.then_with(|| a.rank().cmp(&b.rank()))
    });
    let skills = made.into_iter().filter_map(|it| it.1.skill).collect();
    let skills = resolve(select(skills, options, &mut findings), &mut findings);
    findings.sort_by(|a, b| (a.path.as_os_str(), a.line).cmp(&(b.path.as_os_str(), b.line)));
    let (options, searchable) = (options.clone(), Arc::default());
    Library { skills, findings, left_out, options, searchable, cached_index: index }
}

/// Returns the location of the cached index of a library over these homes.
pub(crate) fn index_place(homes: &[Arc<Home>], options: &Options) -> Option<IndexPlace> {
    let cache = options.cache.as_ref().filter(|_| folders(homes).next().is_some())?.clone();
    Some(IndexPlace { cache, key: keys(options, folders(homes)).1, is_whole: true })
}

/// Scans the sources, using the cache. Also returns the location of the cached index.
fn scan(homes: &[Arc<Home>], options: &Options) -> (ScanResult<ParsedFile>, Option<IndexPlace>) {
    let Options { limits, resources: listing, .. } = options;
    let Some(cache) = options.cache.as_ref().filter(|_| folders(homes).next().is_some()) else {
        let sources: Vec<&dyn Source> = homes.iter().map(|it| &*it.source).collect();
        let made = gather(&sources, limits, *listing, |number, found| {
            ParsedFile::new(number, &homes[number], found, options)
        });
        return (made, None);
    };
    let (key, index) = keys(options, folders(homes));
    let bytes = cache.read("skills", &key).unwrap_or_default();
    let recall = ScanCache::new(&bytes, cache);
    let gathered = gather_by(homes.len(), limits, |place| {
        let (number, path, home) = (place.source, &*place.folder, &homes[place.source]);
        // Content behind a link depends on more than the marks cover.
        let Some(folder) = home.folder.as_deref().filter(|_| place.links == 0) else {
            let visit = home.source.visit(path, limits, *listing);
            return ScannedFolder::new(visit, |found| {
                ParsedFile::new(number, home, found, options)
            });
        };
        if let Some(cached) = recall.get(place, folder) {
            let step = match cached {
                CachedVisit::Folders(folders) => FolderContent::Folders(folders),
                CachedVisit::Skill(skill) => FolderContent::Made(ParsedFile::from_cached(
                    number,
                    home,
                    folder.at(path),
                    *skill,
                )),
            };
            return ScannedFolder { step, linked: false, findings: Vec::new() };
        }
        let mut seen = VisitMarks::default();
        let visit = folder.visit_noting(path, limits, *listing, Some(&mut seen));
        let is_cacheable = visit.findings.is_empty() && recall.is_cacheable(&seen);
        if let VisitResult::Folders(folders) = &visit.what
            && is_cacheable
        {
            recall.keep_folders(place, &seen, folders);
        }
        ScannedFolder::new(visit, |found| {
            let (at, mut skill) = read(found, &*home.source, options);
            if is_cacheable && !skill.findings.iter().any(|it| *it.rule == rule::FILE_UNREADABLE) {
                skill.state = state(path, &seen).filter(|_| *listing == Listing::AtOnce);
                recall.keep_skill(place, &seen, &skill);
            }
            ParsedFile::from_cached(number, home, at, skill)
        })
    });
    if let Some(bytes) = recall.updated_bytes(cache.least) {
        cache.write("skills", &key, &bytes);
    }
    (gathered, Some(IndexPlace { cache: cache.clone(), key: index, is_whole: true }))
}

/// Returns the last good version of a skill whose file can no longer be loaded.
fn last_good(before: &Library, path: &Path, findings: &mut Vec<Finding>) -> Option<Arc<Skill>> {
    let mut skill = before
        .skills
        .iter()
        .find(|it: &&Arc<Skill>| it.origin.path.as_os_str() == path.as_os_str())?
        .clone();
    let renewed = Arc::make_mut(&mut skill);
    (renewed.hidden_by, renewed.state) = (None, None);
    let message = format!(
        "the file is no longer a valid skill; the last valid version of `{}` is used",
        skill.manifest.name
    );
    let hint = "fix the other findings about this file";
    findings.push(Finding::new(&rule::KEPT_LAST_GOOD, Severity::Error, path, message, hint));
    Some(skill)
}

/// Opens the directories. One that cannot be opened is a finding.
pub(crate) fn open(options: &Options, watcher: Option<&Watcher>) -> (Vec<Arc<Home>>, Vec<Finding>) {
    let mut findings = Vec::new();
    let (cwd, home) = (options.cwd.as_deref(), options.home.as_deref());
    let paths: Vec<PathBuf> = options.directories.iter().map(|it| it.resolve(cwd, home)).collect();
    if let Some(watcher) = watcher {
        paths.iter().for_each(|it| watcher.watch_path(it));
    }
    let allowed = Folder::real_paths(&paths);
    let mut homes: Vec<Arc<Home>> = Vec::new();
    let mut opened: HashSet<PathBuf> = HashSet::new();
    for (directory, path) in options.directories.iter().zip(paths) {
        match Folder::open(directory, path.clone(), allowed.clone(), &options.limits) {
            // The same directory under another name contains nothing new.
            Ok(folder) if !opened.insert(folder.real().to_owned()) => {}
            Ok(folder) => {
                let folder = Arc::new(folder);
                homes.push(Arc::new(Home::new(folder.clone(), Some(folder), options.limits)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory.optional => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => findings.push(Finding::new(
                &rule::DIRECTORY_MISSING,
                Severity::Warning,
                &path,
                "the directory does not exist".to_owned(),
                "create it, or remove it from the settings",
            )),
            Err(error) => findings.push(Finding::new(
                &rule::DIRECTORY_UNREADABLE,
                Severity::Error,
                &path,
                format!("the directory cannot be read: {}", reason(&error)),
                "check its type and permissions",
            )),
        }
    }
    let others = options.sources.iter();
    homes.extend(others.map(|it| Arc::new(Home::new(it.clone(), None, options.limits))));
    (homes, findings)
}

/// Returns the first letters of a name as a number with the same order.
fn name_prefix(name: &str) -> u64 {
    let mut bytes = [0; 8];
    name.bytes().zip(&mut bytes).for_each(|(byte, place)| *place = byte);
    u64::from_be_bytes(bytes)
}

/// The result of parsing one `SKILL.md`.
#[derive(Clone)]
pub(crate) struct ParsedFile {
    number: usize,
    path: Arc<Path>,
    real: Option<Arc<Path>>,
    linked: bool,
    scope: Scope,
    skill: Option<Arc<Skill>>,
    findings: Vec<Finding>,
}

impl ParsedFile {
    fn new(number: usize, home: &Arc<Home>, found: DiscoveredSkill, options: &Options) -> Self {
        let (at, skill) = read(found, &*home.source, options);
        Self::from_cached(number, home, at, skill)
    }

    pub(crate) fn from_cached(
        number: usize,
        home: &Arc<Home>,
        at: SkillPaths,
        skill: CachedSkill,
    ) -> Self {
        let scope = home.source.scope();
        let SkillPaths { path, real, linked } = at;
        let CachedSkill { size, modified, resources, manifest, findings, state } = skill;
        let skill = manifest.map(|manifest| {
            Arc::new(Skill {
                manifest,
                origin: Origin { scope, path: path.clone(), size, modified },
                resources: resources.map_or_else(OnceLock::new, |it| it.into_boxed_slice().into()),
                hidden_by: None,
                home: home.clone(),
                pinned_instructions: None,
                state,
            })
        });
        Self { number, path, real, linked, scope, skill, findings }
    }

    fn name(&self) -> &str {
        self.skill.as_ref().map_or("", |it| &it.manifest.name)
    }

    /// Returns the precedence: project before user before bundled, then the order of directories;
    /// within one, a skill without a link, one whose folder has its name, and then the order of
    /// paths.
    fn rank(&self) -> (Scope, usize, bool, bool, &OsStr) {
        let folder = self.path.parent().and_then(Path::file_name);
        let has_other_folder_name = folder.is_none_or(|it| it != self.name());
        (self.scope, self.number, self.linked, has_other_folder_name, self.path.as_os_str())
    }
}

/// Parses a discovered skill: its paths and its manifest.
pub(crate) fn read(
    found: DiscoveredSkill,
    source: &dyn Source,
    options: &Options,
) -> (SkillPaths, CachedSkill) {
    let (mut manifest, mut findings) = manifest(&found, source, options);
    for finding in &mut findings {
        finding.path = found.path.to_path_buf();
    }
    if let Some(finding) = too_large(&found, &options.limits) {
        manifest = None;
        findings.push(finding);
    }
    let DiscoveredSkill { path, real, linked, size, modified, resources, .. } = found;
    let skill = CachedSkill { size, modified, resources, manifest, findings, state: None };
    (SkillPaths { path, real, linked }, skill)
}

/// Parses the manifest from the head of a file, or from all of it if the frontmatter is longer.
fn manifest(
    found: &DiscoveredSkill,
    source: &dyn Source,
    options: &Options,
) -> (Option<Manifest>, Vec<Finding>) {
    let folder = found.folder_name().filter(|_| options.profile == Profile::Lenient);
    let cut = (found.head.len() as u64) < found.size;
    let head = if cut { whole_characters(&found.head) } else { &found.head };
    let first = read_text(head, folder.as_deref());
    if !cut || first.is_certain {
        return (first.manifest, first.findings);
    }
    match source.read(&found.path) {
        Ok(whole) => {
            let second = read_text(&whole, folder.as_deref());
            (second.manifest, second.findings)
        }
        Err(error) => {
            let message = format!("the file cannot be read completely: {error}");
            let hint = "check the file";
            (
                None,
                vec![Finding::new(
                    &rule::FILE_UNREADABLE,
                    Severity::Error,
                    &found.path,
                    message,
                    hint,
                )],
            )
        }
    }
}

struct ReadText {
    manifest: Option<Manifest>,
    findings: Vec<Finding>,
    /// Whether more text would change nothing: the frontmatter certainly ends within it.
    is_certain: bool,
}

fn read_text(bytes: &[u8], folder: Option<&str>) -> ReadText {
    let mut report = Report::new(Profile::Lenient, Severity::Warning);
    let decoded = decode(bytes);
    let reading = SplitDocument::new(&decoded, &mut report);
    let manifest = reading.manifest(folder, &mut report);
    if let Some(manifest) = &manifest {
        check_at_load(&reading, manifest, &mut report);
    }
    let document = &reading.document;
    let is_certain = document.frontmatter.is_some()
        && document.quirks.is_empty()
        && !document.body.text.is_empty();
    ReadText { manifest, findings: report.findings, is_certain }
}

/// Removes a character that was cut off at the end of a head.
pub(crate) fn whole_characters(head: &[u8]) -> &[u8] {
    let tail = head.len().saturating_sub(3);
    let start = (tail..head.len()).rev().find(|at| head[*at] >= 0xC0);
    match start {
        Some(at) if str::from_utf8(&head[at..]).is_err() => &head[..at],
        _ => head,
    }
}

/// Returns the skills that are included and not excluded.
fn select(
    mut skills: Vec<Arc<Skill>>,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Vec<Arc<Skill>> {
    for name in options.include.iter().flatten() {
        if !skills.iter().any(|it| *it.manifest.name == **name) {
            let message = format!("there is no skill `{name}` to include");
            let hint = "check the spelling";
            findings.push(Finding::new(
                &rule::INCLUDE_UNMATCHED,
                Severity::Warning,
                Path::new(""),
                message,
                hint,
            ));
        }
    }
    skills.retain(|it| {
        let name = &*it.manifest.name;
        options.include.as_ref().is_none_or(|it| it.iter().any(|it| it == name))
            && !options.exclude.iter().any(|it| it == name)
    });
    skills
}

/// Resolves which of the skills with the same name takes precedence. They are sorted by name, those
/// of one name in order of precedence.
fn resolve(skills: Vec<Arc<Skill>>, findings: &mut Vec<Finding>) -> Vec<Arc<Skill>> {
    let mut resolved: Vec<Arc<Skill>> = Vec::with_capacity(skills.len());
    for group in skills.chunk_by(|a, b| a.manifest.name == b.manifest.name) {
        let [winner, others @ ..] = group else { continue };
        resolved.push(winner.clone());
        if others.is_empty() {
            continue;
        }
        // Only files of the same size can be the same, so few have to be read.
        let mut sizes: HashMap<u64, usize> = HashMap::new();
        group.iter().for_each(|it| *sizes.entry(it.origin.size).or_default() += 1);
        let key = |it: &Skill| (it.origin.size, (sizes[&it.origin.size] > 1).then(|| content(it)));
        let mut contents = HashSet::from([key(winner)]);
        for (number, skill) in others.iter().enumerate() {
            let is_new = contents.insert(key(skill));
            let scope = skill.origin.scope;
            let is_first = !group[..=number].iter().any(|it| it.origin.scope == scope);
            findings.push(if is_new {
                shadowed_finding(skill, winner, is_first)
            } else {
                copy_finding(skill, winner)
            });
            // A copy of the same skill is not a second one.
            if is_new {
                let mut skill = skill.clone();
                Arc::make_mut(&mut skill).hidden_by = Some(winner.origin.path.clone());
                resolved.push(skill);
            }
        }
    }
    resolved
}

/// Returns the finding about a shadowed skill; the first of its scope can still be found with the
/// scope.
fn shadowed_finding(skill: &Skill, winner: &Skill, is_first: bool) -> Finding {
    let (name, path) = (&skill.manifest.name, &skill.origin.path);
    let hint = match is_first {
        true => format!("rename one of them, or ask for `{}:{name}`", skill.origin.scope),
        false => "rename one of them, or ask for this one by its path".to_owned(),
    };
    let message = format!("`{name}` is shadowed by `{}`", winner.origin.path.display());
    Finding::new(&rule::NAME_TAKEN, Severity::Warning, path, message, hint)
}

/// Returns the finding about a skill that is identical to another.
fn copy_finding(skill: &Skill, winner: &Skill) -> Finding {
    let message = format!("this is a copy of `{}`", winner.origin.path.display());
    Finding::new(
        &rule::SAME_CONTENT,
        Severity::Info,
        &skill.origin.path,
        message,
        "remove one of them",
    )
}

/// Returns the digest of all bytes of a skill, which tells skills of one name apart. One that
/// cannot be read now is identified by its path.
fn content(skill: &Skill) -> [u8; 32] {
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    let source = &skill.home.source;
    let path = &skill.origin.path;
    add(&source.read(path).unwrap_or_else(|_| path.as_os_str().as_encoded_bytes().to_vec()));
    for resource in skill.resources() {
        add(resource.path.as_bytes());
        add(&source.read_beside(path, &resource.path).unwrap_or_default());
    }
    digest.finalize().into()
}

/// Identifies the code that reads files and builds the index. The id of a type differs with the
/// version and the features of its crate.
fn code() -> String {
    let mut hasher = DefaultHasher::new();
    #[cfg(feature = "yaml")]
    TypeId::of::<granit_parser::ScanError>().hash(&mut hasher);
    TypeId::of::<unicode_normalization::Decompositions<Chars<'static>>>().hash(&mut hasher);
    let libraries = hasher.finish();
    format!("{} {} {libraries:x}", env!("PROWESS_BUILD"), prowess_frontmatter::CODE)
}

fn folders(homes: &[Arc<Home>]) -> impl Iterator<Item = &Folder> {
    homes.iter().filter_map(|it| it.folder.as_deref())
}

/// Returns the cache keys of a library's visits and of its index. They cover everything that
/// affects the result, except for the files.
fn keys<'f>(options: &Options, folders: impl Iterator<Item = &'f Folder>) -> (Key, Key) {
    let Options { limits, resources, profile, include, exclude, .. } = options;
    let mut parts: Vec<Vec<u8>> =
        vec![code().into(), format!("{limits:?} {resources:?} {profile:?}").into()];
    parts.extend(folders.map(Folder::identity));
    let parts: Vec<&[u8]> = parts.iter().map(|it| &**it).collect();
    let skills = digest(&parts);
    (skills, digest(&[&skills, format!("{include:?} {exclude:?}").as_bytes()]))
}
