//! Fetches repositories with the `git` program.
//!
//! No file is checked out: their bytes are read from the objects, so that no filter, hook, attribute or
//! line ending of a repository or user changes them, and no link or name can lead out of the folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Read},
    path::Path,
};

use prowess::Profile;

use crate::{
    archive::{ArchiveError, ArchiveLimits, Contents, Tree, replace_links},
    cache::{CacheDraft, FetchedTree},
    digest::TreeFile,
    fetch::{
        NewestVersion, PackageFetcher, Pin, TreeFacts, blocking,
        error::FetchPackageError,
        git_program::{GitCall, GitOutput, GitProgram, GitResult, failure, is_http_here, shown},
        git_refs::{ListedReferences, Listing, Reference, ResolvedReference},
        packed::left_out,
        pipe::{PipeReader, pipe},
        selection::{Selection, file_name},
    },
    source::{GitSource, SkillSource},
};

/// A file, link or submodule of a commit.
#[derive(Debug, Clone)]
struct TreeEntry {
    mode: String,
    object: String,
    path: String,
}

/// The most bytes of names that a server or commit may list.
const MAX_NAMES: usize = 64 << 20;
/// The most bytes of a `SKILL.md`, commit or link that are read.
const MAX_SMALL: u64 = 1 << 20;

impl PackageFetcher {
    pub(super) async fn fetch_git(
        &self,
        source: &SkillSource,
        git: &GitSource,
        pin: Option<&Pin>,
    ) -> Result<FetchedTree, FetchPackageError> {
        let url = checked_url(&git.url)?;
        let reference = Reference::new(git.reference.as_deref())?;
        let selection = Selection::new(git, source);
        let pinned = match (pin, &reference) {
            (Some(Pin::Commit(commit)), _) => match Reference::new(Some(commit))? {
                Reference::Commit(commit) => Some(commit),
                _ => {
                    return Err(FetchPackageError::InvalidReference { reference: commit.clone() });
                }
            },
            (_, Reference::Commit(commit)) => Some(commit.clone()),
            _ => None,
        };
        if let Some(commit) = &pinned {
            let recalled = self.recall(selection.keys(&url, commit)).await;
            if let Some(tree) = recalled {
                let reference = reference.known_as(tree.reference.as_deref());
                return Ok(FetchedTree { source: source.clone(), reference, ..tree });
            }
        }
        let followed = selection.key_of_reference(&url, &reference);
        if self.offline {
            let recalled = match &pinned {
                None => self.recall(vec![followed]).await,
                Some(_) => None,
            };
            let recalled = recalled.map(|it| FetchedTree { source: source.clone(), ..it });
            return recalled
                .ok_or_else(|| FetchPackageError::Offline { source_text: source.to_string() });
        }
        let scratch = self.draft().await?;
        let (resolved, place) = self.resolve(&url, &reference, scratch.path()).await?;
        let resolved = match pinned {
            Some(commit) => resolved.pinned_to(commit)?,
            None => resolved,
        };
        let recalled = self.recall(selection.keys(&url, &resolved.commit)).await;
        let tree = match recalled {
            Some(tree) => FetchedTree { source: source.clone(), reference: resolved.name, ..tree },
            None => {
                let facts = TreeFacts {
                    url: shown(&place),
                    commit: Some(resolved.commit.clone()),
                    reference: resolved.name.clone(),
                    notes: resolved.note.clone().into_iter().collect(),
                    ..TreeFacts::new(source)
                };
                match &self.git {
                    Some(program) => {
                        let is_sha256 = resolved.commit.len() == 64;
                        let scratch = if is_sha256 { self.draft().await? } else { scratch };
                        let fetch = Fetch { program, url: &place, repository: scratch.path() };
                        if is_sha256 {
                            fetch.init(true).await?;
                        }
                        self.fetch_commit(&fetch, &resolved, &selection, facts).await?
                    }
                    None => self.fetch_host_archive(&place, &resolved, &selection, facts).await?,
                }
            }
        };
        let mut keys = vec![selection.key(&url, &resolved.commit)];
        if pin.is_none() {
            keys.push(followed);
        }
        self.remember(keys, &tree).await?;
        Ok(tree)
    }

    pub(super) async fn newest_git(
        &self,
        source: &SkillSource,
        git: &GitSource,
    ) -> Result<NewestVersion, FetchPackageError> {
        let url = checked_url(&git.url)?;
        let reference = Reference::new(git.reference.as_deref())?;
        if self.offline {
            return Err(FetchPackageError::Offline { source_text: source.to_string() });
        }
        let scratch = self.draft().await?;
        let (resolved, _) = self.resolve(&url, &reference, scratch.path()).await?;
        Ok(NewestVersion {
            commit: Some(resolved.commit),
            reference: resolved.name,
            ..NewestVersion::default()
        })
    }

    /// Asks a repository which commit a name stands for, and returns the URL where it is now.
    async fn resolve(
        &self,
        url: &str,
        reference: &Reference,
        scratch: &Path,
    ) -> Result<(ResolvedReference, String), FetchPackageError> {
        if let Some(program) = &self.git {
            Fetch { program, url, repository: scratch }.init(false).await?;
        }
        let (listed, url) = match self.list_references(url, reference.asked(), scratch).await? {
            Listing::References(listed) => (listed, url.to_owned()),
            Listing::Moved(place) => {
                match self.list_references(&place, reference.asked(), scratch).await? {
                    Listing::References(listed) => (listed, place),
                    Listing::Moved(_) => {
                        let why = "it redirects more than once".to_owned();
                        return Err(FetchPackageError::Refused { url: shown(url), why });
                    }
                }
            }
        };
        if let Some(resolved) = reference.resolve(&listed) {
            return Ok((resolved, url));
        }
        let all = match self.list_references(&url, Vec::new(), scratch).await? {
            Listing::References(all) => all,
            Listing::Moved(_) => ListedReferences::default(),
        };
        match reference {
            Reference::Default if all.names.is_empty() => {
                Err(FetchPackageError::Empty { url: shown(&url) })
            }
            Reference::Default => Err(all.unknown(&url, "HEAD")),
            Reference::Full(name) | Reference::Short(name) | Reference::Commit(name) => {
                Err(all.unknown(&url, name))
            }
        }
    }

    async fn list_references(
        &self,
        url: &str,
        names: Vec<String>,
        scratch: &Path,
    ) -> Result<Listing, FetchPackageError> {
        let Some(program) = &self.git else {
            return self.list_references_over_http(url, &names).await;
        };
        let fetch = Fetch { program, url, repository: scratch };
        let mut arguments = vec!["ls-remote", "--symref"];
        if names.is_empty() {
            arguments.extend(["--heads", "--tags"]);
        }
        arguments.extend(["--", "origin"]);
        arguments.extend(names.iter().map(String::as_str));
        let result = fetch.run(&arguments, Vec::new(), false).await?;
        if result.succeeded {
            let text = String::from_utf8_lossy(&result.stdout);
            return Ok(Listing::References(ListedReferences::parse(&text)));
        }
        if result.stderr.contains("The requested URL returned error: 30")
            && let Some(place) = self.moved_repository(url).await?
        {
            return Ok(Listing::Moved(checked_url(&place)?));
        }
        Err(failure(url, &result.stderr))
    }

    /// Fetches the files of a commit into the cache.
    async fn fetch_commit(
        &self,
        fetch: &Fetch<'_>,
        resolved: &ResolvedReference,
        selection: &Selection,
        mut facts: TreeFacts,
    ) -> Result<FetchedTree, FetchPackageError> {
        let commit = &resolved.commit;
        let is_partial = selection.path.is_some() || !selection.skills.is_empty();
        let is_partial = fetch.download(resolved, is_partial).await?;
        let listed = fetch.list(commit).await?;
        let selected = self.select(fetch, &listed, selection, is_partial).await?;
        let entries: Vec<TreeEntry> = selected.into_iter().cloned().collect();
        if entries.len() > self.limits.files {
            let limit = format!("{} files", self.limits.files);
            return Err(FetchPackageError::TooLarge { url: shown(fetch.url), limit });
        }
        let (entries, submodules): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(TreeEntry::has_content);
        facts.notes.extend(submodules.iter().take(MAX_NOTES).map(|it| {
            let path = prowess::visible(&it.path);
            format!("`{path}` was left out: it is another repository (a submodule)")
        }));
        if is_partial {
            fetch.download_objects(entries.iter().map(|it| &*it.object)).await?;
        }
        self.progress.expect_files(entries.len() as u64);
        let (sender, reader) = pipe();
        let objects = std::iter::once(&**commit).chain(entries.iter().map(|it| &*it.object));
        let input = lines(objects);
        let draft = self.draft().await?;
        let (limits, progress) = (self.limits, self.progress.clone());
        let url = shown(fetch.url);
        let writing = blocking(move || {
            write_files(reader, &entries, draft, &limits, &url, || progress.add_files(1))
        });
        let arguments = ["cat-file", "--batch", "--buffer"];
        let reading = fetch.call(&arguments, input, GitOutput::Pipe(sender), true);
        let (result, written) = tokio::join!(reading, writing);
        let result = result?;
        let written = match written {
            Err(FetchPackageError::Malformed { .. }) if !result.succeeded => {
                return Err(failure(fetch.url, &result.stderr));
            }
            written => written?,
        };
        facts.published = written.time;
        facts.notes.extend(written.notes);
        self.insert(written.draft, written.files, facts).await
    }

    /// Returns the entries that are wanted.
    async fn select<'e>(
        &self,
        fetch: &Fetch<'_>,
        entries: &'e [TreeEntry],
        selection: &Selection,
        is_partial: bool,
    ) -> Result<Vec<&'e TreeEntry>, FetchPackageError> {
        let below = selection.below(entries, |it| &it.path, &shown(fetch.url))?;
        if selection.skills.is_empty() {
            return match self.leads_out(fetch, &below, entries, is_partial).await? {
                true => Ok(entries.iter().collect()),
                false => Ok(below),
            };
        }
        let documents: Vec<&TreeEntry> = below
            .iter()
            .copied()
            .filter(|it| it.is_file() && file_name(&it.path) == "SKILL.md")
            .take(self.limits.files)
            .collect();
        let objects: BTreeSet<&str> = documents.iter().map(|it| &*it.object).collect();
        if is_partial {
            fetch.download_objects(objects.iter().copied()).await?;
        }
        let texts = fetch.read_small(&objects).await?;
        let mut folders = Vec::new();
        let mut names = BTreeSet::new();
        for document in documents {
            let folder = document.path.strip_suffix("SKILL.md").unwrap_or_default();
            let text = texts.get(&document.object).map(Vec::as_slice).unwrap_or_default();
            let name = skill_name(text, folder);
            if selection.skills.contains(&name) {
                names.insert(name);
                folders.push(folder);
            }
        }
        if names.len() < selection.skills.len() {
            // Whoever reads the tree says which skills there are.
            return Ok(below);
        }
        let is_wanted = |it: &&TreeEntry| {
            is_manifest(&it.path) || folders.iter().any(|folder| it.path.starts_with(folder))
        };
        let wanted: Vec<&TreeEntry> = below.into_iter().filter(is_wanted).collect();
        match self.leads_out(fetch, &wanted, entries, is_partial).await? {
            true => Ok(entries.iter().collect()),
            false => Ok(wanted),
        }
    }

    /// Whether a link among these leads to another file of the repository.
    async fn leads_out<'e>(
        &self,
        fetch: &Fetch<'_>,
        wanted: &[&'e TreeEntry],
        all: &'e [TreeEntry],
        is_partial: bool,
    ) -> Result<bool, FetchPackageError> {
        let links: Vec<&TreeEntry> = wanted.iter().copied().filter(|it| it.is_link()).collect();
        if links.is_empty() || wanted.len() == all.len() {
            return Ok(false);
        }
        let objects: BTreeSet<&str> = links.iter().map(|it| &*it.object).collect();
        if is_partial {
            fetch.download_objects(objects.iter().copied()).await?;
        }
        let targets = fetch.read_small(&objects).await?;
        let paths_of = |entries: &mut dyn Iterator<Item = &'e TreeEntry>| {
            entries.map(|it| &*it.path).collect::<BTreeSet<&str>>()
        };
        let (here, all) = (paths_of(&mut wanted.iter().copied()), paths_of(&mut all.iter()));
        let has = |paths: &BTreeSet<&str>, target: &str| {
            let below = format!("{target}/");
            let first = paths.range(&*below..).next();
            paths.contains(target) || first.is_some_and(|it| it.starts_with(&below))
        };
        Ok(links.iter().any(|it| {
            let target = targets.get(&it.object).map(Vec::as_slice).unwrap_or_default();
            let target = lexical(&it.path, &String::from_utf8_lossy(target));
            target.is_some_and(|it| !has(&here, &it) && has(&all, &it))
        }))
    }
}

/// Returns the path that a link means, if it is in the repository.
fn lexical(link: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut names: Vec<&str> = link.split('/').collect();
    names.pop();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

impl ResolvedReference {
    /// Returns the commit that is locked. A branch may have moved on; a tag may not.
    fn pinned_to(self, commit: String) -> Result<Self, FetchPackageError> {
        match &self.name {
            Some(tag) if tag.starts_with("refs/tags/") && self.commit != commit => {
                Err(FetchPackageError::Moved {
                    what: tag.clone(),
                    expected: commit,
                    found: self.commit,
                })
            }
            _ => Ok(Self { commit, ..self }),
        }
    }
}

/// A repository that is being fetched.
struct Fetch<'a> {
    program: &'a GitProgram,
    url: &'a str,
    /// The bare repository to fetch into.
    repository: &'a Path,
}

impl Fetch<'_> {
    async fn call(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
        output: GitOutput,
        is_lazy: bool,
    ) -> Result<GitResult, FetchPackageError> {
        let (repository, url) = (self.repository, self.url);
        let arguments = arguments.iter().map(OsString::from).collect();
        self.program.run(GitCall { repository, url, arguments, input, output, is_lazy }).await
    }

    async fn run(
        &self,
        arguments: &[&str],
        input: Vec<u8>,
        is_lazy: bool,
    ) -> Result<GitResult, FetchPackageError> {
        self.call(arguments, input, GitOutput::Memory(MAX_NAMES), is_lazy).await
    }

    /// Creates the empty repository.
    async fn init(&self, is_sha256: bool) -> Result<(), FetchPackageError> {
        let mut arguments = vec!["init", "--bare", "--quiet", "--template="];
        if is_sha256 {
            arguments.push("--object-format=sha256");
        }
        let result = self.run(&arguments, Vec::new(), false).await?;
        if result.succeeded { Ok(()) } else { Err(failure(self.url, &result.stderr)) }
    }

    /// Downloads a commit, and returns whether the contents of its files are still missing.
    async fn download(
        &self,
        resolved: &ResolvedReference,
        is_partial: bool,
    ) -> Result<bool, FetchPackageError> {
        let commit = &*resolved.commit;
        let named = resolved.name.as_ref().map(|it| format!("+{it}:refs/prowess/wanted"));
        let mut common = vec!["fetch", "--progress", "--no-tags", "--no-recurse-submodules"];
        if is_partial {
            common.push("--filter=blob:none");
        }
        // Some servers give out only what a branch or tag stands for, and some only whole histories.
        let attempts = [
            Some(vec!["--depth=1", "--", "origin", commit]),
            named.as_deref().map(|it| vec!["--depth=1", "--", "origin", it]),
            Some(vec!["--", "origin", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]),
        ];
        let mut error = None;
        for attempt in attempts.into_iter().flatten() {
            let arguments = [&common[..], &attempt[..]].concat();
            let result = self.run(&arguments, Vec::new(), false).await?;
            if !result.succeeded {
                match failure(self.url, &result.stderr) {
                    failed @ FetchPackageError::Git { .. } => error = Some(failed),
                    // The same words are said of objects.
                    failed if result.stderr.contains("not our ref") => error = Some(failed),
                    failed => return Err(failed),
                }
                continue;
            }
            let kind = self.run(&["cat-file", "-t", commit], Vec::new(), false).await?;
            if kind.stdout.trim_ascii() == b"commit" {
                let is_ignored = result.stderr.contains("filtering not recognized");
                return Ok(is_partial && !is_ignored);
            }
            error = None;
        }
        Err(error.unwrap_or_else(|| FetchPackageError::UnknownReference {
            url: shown(self.url),
            reference: commit.to_owned(),
            names: Vec::new(),
        }))
    }

    /// Downloads objects in one request.
    async fn download_objects<'o>(
        &self,
        objects: impl Iterator<Item = &'o str>,
    ) -> Result<(), FetchPackageError> {
        let objects: BTreeSet<&str> = objects.collect();
        if objects.is_empty() {
            return Ok(());
        }
        let arguments = [
            "-c",
            "fetch.negotiationAlgorithm=noop",
            "fetch",
            "--progress",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--filter=blob:none",
            "--stdin",
            "origin",
        ];
        let result = self.run(&arguments, lines(objects.into_iter()), false).await?;
        match result.succeeded {
            true => Ok(()),
            false => match failure(self.url, &result.stderr) {
                // An older git requests them when they are read.
                FetchPackageError::Git { .. } => Ok(()),
                failed => Err(failed),
            },
        }
    }

    /// Lists the files of a commit.
    async fn list(&self, commit: &str) -> Result<Vec<TreeEntry>, FetchPackageError> {
        let arguments = ["ls-tree", "-r", "-z", "--full-tree", commit];
        let result = self.run(&arguments, Vec::new(), true).await?;
        if !result.succeeded {
            return Err(failure(self.url, &result.stderr));
        }
        let entries = result.stdout.split(|it| *it == 0).filter(|it| !it.is_empty());
        entries.map(|it| TreeEntry::parse(it).ok_or_else(|| self.unreadable())).collect()
    }

    /// Reads objects that are small.
    async fn read_small(
        &self,
        objects: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Vec<u8>>, FetchPackageError> {
        let (sender, reader) = pipe();
        let wanted: Vec<String> = objects.iter().map(|it| (*it).to_owned()).collect();
        let reading = blocking(move || {
            let mut objects = Objects::new(reader);
            let mut texts = BTreeMap::new();
            for object in wanted {
                let Ok(size) = objects.next(&object) else { break };
                let Ok(text) = objects.small(size) else { break };
                texts.insert(object, text);
            }
            Ok(texts)
        });
        let arguments = ["cat-file", "--batch", "--buffer"];
        let input = lines(objects.iter().copied());
        let result = self.call(&arguments, input, GitOutput::Pipe(sender), true);
        let (result, texts) = tokio::join!(result, reading);
        result?;
        texts
    }

    fn unreadable(&self) -> FetchPackageError {
        unreadable(&shown(self.url))
    }
}

fn unreadable(url: &str) -> FetchPackageError {
    FetchPackageError::Malformed {
        url: url.to_owned(),
        why: "git does not list its files".to_owned(),
    }
}

impl TreeEntry {
    fn parse(line: &[u8]) -> Option<Self> {
        let at = line.iter().position(|it| *it == b'\t')?;
        let head = str::from_utf8(&line[..at]).ok()?;
        let mut words = head.split(' ');
        let (mode, _, object) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            mode: mode.to_owned(),
            object: object.to_owned(),
            path: String::from_utf8_lossy(&line[at + 1..]).into_owned(),
        })
    }

    fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }

    fn is_link(&self) -> bool {
        self.mode == "120000"
    }

    fn has_content(&self) -> bool {
        self.is_file() || self.is_link()
    }
}

/// The most notes about a tree.
const MAX_NOTES: usize = 100;

/// Files that were written.
struct WrittenFiles {
    draft: CacheDraft,
    files: Vec<TreeFile>,
    /// The time of the commit.
    time: Option<u64>,
    notes: Vec<String>,
}

/// Reads a commit and its files from `git cat-file --batch`, and writes the files.
fn write_files(
    reader: PipeReader,
    entries: &[TreeEntry],
    draft: CacheDraft,
    limits: &ArchiveLimits,
    url: &str,
    written: impl Fn(),
) -> Result<WrittenFiles, FetchPackageError> {
    let mut objects = Objects::new(reader);
    let broken = |_| unreadable(url);
    let failed = |error| match error {
        ArchiveError::TooLarge { limit } => {
            FetchPackageError::TooLarge { url: url.to_owned(), limit }
        }
        ArchiveError::Damaged(_) => unreadable(url),
        source => FetchPackageError::Archive { url: url.to_owned(), source },
    };
    let size = objects.head().map_err(broken)?.1;
    let commit = objects.small(size).map_err(broken)?;
    let time = commit_time(&commit);
    let mut tree = Tree::new(limits, Contents::Folder(draft.path().to_owned()), true);
    let mut notes = Vec::new();
    for entry in entries {
        let size = objects.next(&entry.object).map_err(broken)?;
        if entry.is_link() {
            let target = objects.small(size).map_err(broken)?;
            tree.add_link(&entry.path, &String::from_utf8_lossy(&target)).map_err(failed)?;
            continue;
        }
        let mut content = Content { bytes: (&mut objects.0).take(size), beginning: Vec::new() };
        let is_executable = entry.mode == "100755";
        tree.add(&entry.path, size, is_executable, &mut content).map_err(failed)?;
        if content.beginning == LFS && notes.len() < MAX_NOTES {
            let path = prowess::visible(&entry.path);
            notes.push(format!("`{path}` is only a pointer: its content is kept by Git LFS"));
        }
        // It may have been left out.
        io::copy(&mut content.bytes, &mut io::sink()).map_err(broken)?;
        objects.end().map_err(broken)?;
        written();
    }
    replace_links(&mut tree).map_err(failed)?;
    notes.extend(left_out(&tree.left_out));
    let files = std::mem::take(&mut tree.files).into_values().collect();
    Ok(WrittenFiles { draft, files, time, notes })
}

/// The bytes of a file, of which the first are remembered.
struct Content<R> {
    bytes: io::Take<R>,
    beginning: Vec<u8>,
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read(buffer)?;
        let room = LFS.len() - self.beginning.len();
        self.beginning.extend(&buffer[..count.min(room)]);
        Ok(count)
    }
}

/// The beginning of the pointers of Git LFS.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Returns the time of a commit, in seconds since 1970.
fn commit_time(commit: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(commit);
    let head = text.split("\n\n").next()?;
    let line = head.lines().find_map(|it| it.strip_prefix("committer "))?;
    let (_, time) = line.rsplit_once("> ")?;
    time.split(' ').next()?.parse().ok()
}

/// The output of `git cat-file --batch`.
struct Objects(BufReader<PipeReader>);

impl Objects {
    fn new(reader: PipeReader) -> Self {
        Self(BufReader::with_capacity(64 * 1024, reader))
    }

    /// Reads the head of an object, and returns its size.
    fn next(&mut self, object: &str) -> io::Result<u64> {
        let (name, size) = self.head()?;
        if name == object { Ok(size) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn head(&mut self) -> io::Result<(String, u64)> {
        let mut line = String::new();
        (&mut self.0).take(256).read_line(&mut line)?;
        let mut words = line.trim_end().split(' ');
        let (name, _, size) = (words.next(), words.next(), words.next());
        let size = size.and_then(|it| it.parse().ok());
        match (name, size) {
            (Some(name), Some(size)) => Ok((name.to_owned(), size)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Reads an object, and returns its beginning.
    fn small(&mut self, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&mut self.0).take(size.min(MAX_SMALL)).read_to_end(&mut bytes)?;
        io::copy(&mut (&mut self.0).take(size.saturating_sub(MAX_SMALL)), &mut io::sink())?;
        self.end()?;
        Ok(bytes)
    }

    /// Reads the line end behind an object.
    fn end(&mut self) -> io::Result<()> {
        let mut end = [0];
        self.0.read_exact(&mut end)?;
        if end == *b"\n" { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

/// Returns the name of a skill in lower case.
fn skill_name(text: &[u8], folder: &str) -> String {
    let folder = file_name(folder.trim_end_matches('/'));
    let folder = Some(folder).filter(|it| !it.is_empty());
    let parsed = prowess::parse(text, folder, Profile::Lenient);
    let name = parsed.manifest.map(|it| it.name).unwrap_or_default();
    name.to_lowercase()
}

/// Whether a file says which plugins and skills there are.
fn is_manifest(path: &str) -> bool {
    let name = file_name(path);
    let folder = path.strip_suffix(name).unwrap_or_default().trim_end_matches('/');
    match name {
        "plugin.json" => true,
        "marketplace.json" | "api_marketplace.json" => {
            file_name(folder).starts_with('.') || file_name(folder) == "plugins"
        }
        _ => false,
    }
}

fn lines<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend(line.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

/// Returns the URL of a repository as it is given to git; fails if it is not to be used.
fn checked_url(url: &str) -> Result<String, FetchPackageError> {
    let refused =
        |why: &str| Err(FetchPackageError::Refused { url: shown(url), why: why.to_owned() });
    if url.starts_with('-') || url.is_empty() || url.chars().any(char::is_control) {
        return refused("it is not a URL");
    }
    if let Some((helper, _)) = url.split_once("::")
        && helper.bytes().all(|it| it.is_ascii_alphanumeric() || b"+.-".contains(&it))
    {
        return refused("a helper program of git would run");
    }
    let Some((scheme, _)) = url.split_once("://") else {
        let before = url.split('/').next().unwrap_or_default();
        let is_drive = before.len() == 2 && before.ends_with(':');
        if before.contains(':') && !is_drive {
            return Ok(url.to_owned());
        }
        // Git is started in another folder.
        let absolute = std::path::absolute(url);
        let absolute = absolute.ok().and_then(|it| it.to_str().map(str::to_owned));
        return Ok(absolute.unwrap_or_else(|| url.to_owned()));
    };
    match &*scheme.to_ascii_lowercase() {
        "https" | "ssh" | "git+ssh" | "ssh+git" | "file" => Ok(url.to_owned()),
        "http" if is_http_here(url) => Ok(url.to_owned()),
        "http" => refused("`http:` can be read and changed on its way; use `https:`"),
        "git" => refused("`git:` can be read and changed on its way; use `https:`"),
        _ => refused("expected `https:`, `ssh:` or `file:`"),
    }
}

#[cfg(test)]
mod tests {
    use super::{checked_url, commit_time};

    #[test]
    fn only_urls_that_are_safe_reach_git() {
        for bad in [
            "ext::sh -c touch% /tmp/x",
            "fd::17",
            "--upload-pack=touch x",
            "git://example.com/a",
            "http://example.com/a",
            "ftp://example.com/a",
            "https://example.com/a\nb",
            "",
        ] {
            assert!(checked_url(bad).is_err(), "{bad}");
        }
        for good in [
            "https://example.com/a",
            "git@example.com:a/b",
            "ssh://git@h/a",
            "file:///a",
            "http://127.0.0.1:1/a",
        ] {
            assert_eq!(checked_url(good).unwrap(), good);
        }
    }

    #[test]
    fn the_time_of_a_commit_is_that_of_its_committer() {
        let commit = b"tree x\nauthor A <a> 1 +0000\ncommitter B > <b> 1700000000 +0200\n\ncommitter C <c> 2 +0000\n";
        assert_eq!(commit_time(commit), Some(1_700_000_000));
    }
}
