//! Repositories, servers and a fetcher for tests.

use std::{
    ffi::OsString,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use prowess_http::{Timeouts, Url};
use prowess_packages::{
    FetchPackageError, FetchedTree, PackageCache, PackageFetcher, Pin, SkillSource, SourceKind,
};
use prowess_testing::server::{Server, answer};
use serde_json::json;
use tempfile::TempDir;

/// A folder with repositories, a home and a cache.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

/// A repository of a place.
pub(crate) struct Repository {
    pub(crate) folder: PathBuf,
    home: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Creates a repository that servers may give parts of.
    pub(crate) fn repository(&self, name: &str) -> Repository {
        let folder = self.path(name);
        fs::create_dir_all(&folder).unwrap();
        let repository = Repository { folder, home: self.path("home") };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        for setting in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
            repository.git(&["config", setting, "true"]);
        }
        repository
    }

    /// Returns a fetcher with git, and a cache that all fetchers of the place share.
    pub(crate) fn fetcher(&self) -> PackageFetcher {
        self.fetcher_with(&[])
    }

    /// Returns a fetcher whose git has more variables.
    pub(crate) fn fetcher_with(&self, variables: &[(&str, &str)]) -> PackageFetcher {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let environment = environment(&self.path("home")).into_iter().chain(variables);
        self.plain_fetcher().with_git(Some(git()), environment)
    }

    /// Returns a fetcher without git.
    pub(crate) fn plain_fetcher(&self) -> PackageFetcher {
        PackageFetcher::new(PackageCache::open(&self.path("cache")).unwrap())
    }

    /// Returns the names of what is left over from fetching: drafts.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let drafts = fs::read_dir(self.path("cache/drafts")).unwrap();
        drafts.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Repository {
    /// Runs git in it, and returns what it prints.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let ran = Command::new(git())
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .envs(environment(&self.home))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn skill(&self, folder: &str, name: &str) -> &Self {
        self.write(&format!("{folder}/SKILL.md"), skill(name))
    }

    /// Commits everything, and returns the commit.
    pub(crate) fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Adds a file to the next commit by its content alone: with a mode and a name that a disk may not
    /// have.
    pub(crate) fn stage(&self, mode: &str, path: &str, content: &str) {
        let object = match mode {
            "160000" => content.to_owned(),
            _ => {
                let mut child = Command::new(git())
                    .args(["hash-object", "-w", "--stdin"])
                    .current_dir(&self.folder)
                    .env_clear()
                    .envs(environment(&self.home))
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
                let output = child.wait_with_output().unwrap();
                String::from_utf8(output.stdout).unwrap().trim().to_owned()
            }
        };
        let entry = format!("{mode},{object},{path}");
        self.git(&["-c", "core.protectNTFS=false", "update-index", "--add", "--cacheinfo", &entry]);
    }

    /// Commits what is staged.
    pub(crate) fn commit_staged(&self) -> String {
        self.git(&["commit", "--quiet", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Removes the content of a file from the objects, so that nobody can be given it.
    pub(crate) fn lose(&self, path: &str) {
        let object = self.git(&["rev-parse", &format!("HEAD:{path}")]);
        let file = format!(".git/objects/{}/{}", &object[..2], &object[2..]);
        fs::remove_file(self.folder.join(file)).unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.folder.display())
    }

    /// Returns the source of it; `rest` may be `#reference` or `/path`.
    pub(crate) fn source(&self) -> SkillSource {
        git_source(&self.url(), None, None)
    }
}

/// Returns the source of a repository.
pub(crate) fn git_source(url: &str, reference: Option<&str>, path: Option<&str>) -> SkillSource {
    let mut source: SkillSource = "a/b".parse().unwrap();
    if let SourceKind::Git(git) = &mut source.kind {
        url.clone_into(&mut git.url);
        git.reference = reference.map(str::to_owned);
        git.path = path.map(str::to_owned);
    }
    source
}

pub(crate) fn source(kind: SourceKind) -> SkillSource {
    let mut source: SkillSource = "a/b".parse().unwrap();
    source.kind = kind;
    source
}

/// Returns a source with the names of skills.
pub(crate) fn with_skills(mut source: SkillSource, skills: &[&str]) -> SkillSource {
    source.skills = skills.iter().map(|it| (*it).to_owned()).collect();
    source
}

pub(crate) fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

pub(crate) fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\n---\nDo {name}.\n")
}

fn git() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut programs = std::env::split_paths(&path).map(|it| it.join("git"));
    programs.find(|it| it.exists()).unwrap()
}

fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> =
        vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("HOME".into(), home.into())];
    for (name, value) in [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_AUTHOR_EMAIL", "a@example.com"),
        ("GIT_COMMITTER_NAME", "A"),
        ("GIT_COMMITTER_EMAIL", "a@example.com"),
        ("GIT_COMMITTER_DATE", "1700000000 +0000"),
    ] {
        environment.push((name.into(), value.into()));
    }
    environment
}

/// Waits for a future.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

/// Fetches a source.
pub(crate) fn fetch(
    fetcher: &PackageFetcher,
    source: &SkillSource,
) -> Result<FetchedTree, FetchPackageError> {
    wait(fetcher.fetch(source, None))
}

/// Fetches a source with a pin.
pub(crate) fn fetch_pinned(
    fetcher: &PackageFetcher,
    source: &SkillSource,
    pin: Pin,
) -> Result<FetchedTree, FetchPackageError> {
    wait(fetcher.fetch(source, Some(&pin)))
}

/// Returns the paths of a tree.
pub(crate) fn paths(tree: &FetchedTree) -> Vec<&str> {
    tree.files.iter().map(|it| &*it.path).collect()
}

/// Returns a file of a tree.
pub(crate) fn text(tree: &FetchedTree, path: &str) -> String {
    fs::read_to_string(tree.folder.join(path)).unwrap()
}

/// Returns an error, its causes and its hint.
pub(crate) fn told(error: &FetchPackageError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text += &error.hint().map(|it| format!(" ({it})")).unwrap_or_default();
    text
}

/// Timeouts that a test does not wait for long.
pub(crate) fn impatient() -> Timeouts {
    let timeout = Duration::from_millis(300);
    Timeouts { connect: timeout, idle: timeout, total: Duration::from_secs(60) }
}

/// Starts a server of the repositories in a folder: `git http-backend`, and archives as Forgejo offers
/// them.
pub(crate) fn git_server(folder: &Path) -> Server {
    git_server_of(folder, true)
}

/// Starts a server of repositories that speaks the first version of git's protocol.
pub(crate) fn old_git_server(folder: &Path) -> Server {
    git_server_of(folder, false)
}

fn git_server_of(folder: &Path, is_new: bool) -> Server {
    let folder = folder.to_owned();
    Server::new(move |asked, client| {
        let mut words = asked.line.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if let Some((repository, archive)) = path.split_once("/archive/") {
            let commit = archive.trim_end_matches(".tar.gz");
            let packed = Command::new(git())
                .args(["archive", "--format=tar.gz", "--prefix=wrapper/", commit])
                .current_dir(folder.join(repository.trim_start_matches('/')))
                .output()?;
            return client.write_all(&bytes("200 OK", "", &packed.stdout));
        }
        let mut child = Command::new(git())
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &folder)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REQUEST_METHOD", method)
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("CONTENT_TYPE", asked.header("content-type").unwrap_or_default())
            .env("CONTENT_LENGTH", asked.bytes.len().to_string())
            .env("HTTP_CONTENT_ENCODING", asked.header("content-encoding").unwrap_or_default())
            .env(
                "GIT_PROTOCOL",
                asked.header("git-protocol").filter(|_| is_new).unwrap_or_default(),
            )
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "safe.directory")
            .env("GIT_CONFIG_VALUE_0", "*")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut stdin = child.stdin.take().unwrap();
        let body = asked.bytes.clone();
        let writing = std::thread::spawn(move || stdin.write_all(&body));
        let output = child.wait_with_output()?.stdout;
        let _ = writing.join();
        let end = output.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let status = head.lines().find_map(|it| it.strip_prefix("Status: ")).unwrap_or("200 OK");
        let others = head.lines().filter(|it| !it.starts_with("Status: "));
        let headers: String = others.map(|it| format!("{it}\r\n")).collect();
        client.write_all(&bytes(status, &headers, &output[end + 4..]))
    })
}

/// Returns a response with bytes.
pub(crate) fn bytes(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Returns a zip archive.
pub(crate) fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    python(
        "import json,sys,zipfile,io\nb=io.BytesIO()\nz=zipfile.ZipFile(b,'w',zipfile.ZIP_DEFLATED)\nfor p,t in json.load(sys.stdin): z.writestr(p,t)\nz.close()\nsys.stdout.buffer.write(b.getvalue())",
        files,
    )
}

/// Returns a tar.gz archive.
pub(crate) fn tar_gz(files: &[(&str, &str)]) -> Vec<u8> {
    python(
        "import json,sys,tarfile,io\nb=io.BytesIO()\nimport gzip\ng=gzip.GzipFile(fileobj=b,mode='wb',mtime=0)\nt=tarfile.open(fileobj=g,mode='w')\nfor p,x in json.load(sys.stdin):\n i=tarfile.TarInfo(p);d=x.encode();i.size=len(d);t.addfile(i,io.BytesIO(d))\nt.close()\ng.close()\nsys.stdout.buffer.write(b.getvalue())",
        files,
    )
}

fn python(program: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let mut child = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(json!(files).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// A table of paths, with status and body.
pub(crate) type Pages = Vec<(String, &'static str, Vec<u8>)>;

/// Starts a server of pages; what is not in the table is 404.
pub(crate) fn site(pages: Pages) -> Server {
    Server::new(move |asked, client| {
        let target = asked.line.split(' ').nth(1).unwrap();
        match pages.iter().find(|it| it.0 == target) {
            Some((_, status, body)) if status.starts_with('3') => {
                let location = String::from_utf8_lossy(body);
                client
                    .write_all(answer(status, &format!("location: {location}\r\n"), "").as_bytes())
            }
            Some((_, status, body)) => client.write_all(&bytes(status, "", body)),
            None => client.write_all(answer("404 Not Found", "", "no such page").as_bytes()),
        }
    })
}

/// Returns a page.
pub(crate) fn page(path: &str, body: impl Into<Vec<u8>>) -> (String, &'static str, Vec<u8>) {
    (path.to_owned(), "200 OK", body.into())
}
