//! Runs the `git` program: with the user's settings, but nothing of a repository's.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    sync::mpsc,
    time::sleep,
};

use crate::fetch::{
    error::{FetchPackageError, size},
    progress::FetchProgress,
    sys::{kill_group, lead_group},
};

/// The `git` program, and how it is run.
#[derive(Debug, Clone)]
pub(super) struct GitProgram {
    pub(super) program: PathBuf,
    /// All of its environment, without the variables that name a repository.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Whether it may ask for passwords at a terminal.
    pub(super) may_ask: bool,
    /// How long it may print nothing.
    pub(super) idle: Duration,
    /// The most bytes that it may receive.
    pub(super) max_received: u64,
    pub(super) progress: FetchProgress,
}

/// A run of `git` in a repository of ours.
pub(super) struct GitCall<'a> {
    /// The bare repository.
    pub(super) repository: &'a Path,
    /// The URL, for `remote.origin.url` and messages.
    pub(super) url: &'a str,
    pub(super) arguments: Vec<OsString>,
    pub(super) input: Vec<u8>,
    pub(super) output: GitOutput,
    /// Whether objects that are missing may be requested one at a time.
    pub(super) is_lazy: bool,
}

/// Where the standard output goes.
pub(super) enum GitOutput {
    /// To memory, up to this many bytes; more is an error.
    Memory(usize),
    /// To a reader in another thread.
    Pipe(mpsc::Sender<Vec<u8>>),
}

/// The result of a run.
#[derive(Debug)]
pub(super) struct GitResult {
    pub(super) succeeded: bool,
    pub(super) stdout: Vec<u8>,
    /// The end of what it printed for people.
    pub(super) stderr: String,
}

/// Variables that name a repository or change what is read from one.
const REPOSITORY_VARIABLES: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DEFAULT_HASH",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
];

/// Settings that take precedence over the user's.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.fsync=none",
    "gc.auto=0",
    "maintenance.auto=false",
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
    "protocol.version=2",
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "protocol.file.allow=always",
    // Where a redirect leads is checked by us.
    "http.followRedirects=false",
];

/// How much is kept of what it prints for people.
const MAX_STDERR: usize = 16 * 1024;

impl GitProgram {
    /// Creates a program with these variables.
    pub(super) fn environment(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let names_repository = |name: &OsString| {
            name.to_str().is_some_and(|it| REPOSITORY_VARIABLES.contains(&&*it.to_uppercase()))
        };
        variables.into_iter().filter(|(name, _)| !names_repository(name)).collect()
    }

    /// Runs it to its end; it is ended with its children when the future is dropped.
    pub(super) async fn run(&self, call: GitCall<'_>) -> Result<GitResult, FetchPackageError> {
        let mut command = self.command(&call);
        if self.is_ssh_plain(call.url, call.repository).await {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        let start = |source| FetchPackageError::GitStart { program: self.program.clone(), source };
        self.progress.add_request();
        let mut child = command.spawn().map_err(start)?;
        let mut group = Group(child.id().filter(|_| !self.may_ask));
        let mut stdin = child.stdin.take();
        let mut stdout = child.stdout.take();
        let mut stderr = child.stderr.take();
        let (mut out, mut err) = (vec![0; 64 * 1024], vec![0; 8 * 1024]);
        let mut result = GitResult { succeeded: false, stdout: Vec::new(), stderr: String::new() };
        let mut written = 0;
        let mut received = ReceivedBytes::default();
        let stalled = || FetchPackageError::Stalled { host: host(call.url), after: self.idle };
        while stdout.is_some() || stderr.is_some() {
            if written == call.input.len() {
                stdin = None;
            }
            tokio::select! {
                count = read(&mut stdout, &mut out), if stdout.is_some() => match count {
                    0 => stdout = None,
                    count => match &call.output {
                        GitOutput::Memory(most) if result.stdout.len() + count > *most => {
                            let limit = format!("{most} bytes of names");
                            return Err(FetchPackageError::TooLarge { url: shown(call.url), limit });
                        }
                        GitOutput::Memory(_) => result.stdout.extend(&out[..count]),
                        // A reader that has seen enough has an error of its own.
                        GitOutput::Pipe(pipe) => {
                            if pipe.send(out[..count].to_vec()).await.is_err() {
                                return Ok(result);
                            }
                        }
                    },
                },
                count = read(&mut stderr, &mut err), if stderr.is_some() => match count {
                    0 => stderr = None,
                    count => {
                        let text = String::from_utf8_lossy(&err[..count]);
                        if let Some(new) = received.add(&text) {
                            self.progress.add_bytes(new);
                        }
                        if received.bytes > self.max_received {
                            let limit = size(self.max_received);
                            return Err(FetchPackageError::TooLarge { url: shown(call.url), limit });
                        }
                        result.stderr.push_str(&text);
                        if result.stderr.len() > 2 * MAX_STDERR {
                            let from = result.stderr.ceil_char_boundary(result.stderr.len() - MAX_STDERR);
                            result.stderr.drain(..from);
                        }
                    }
                },
                count = write(&mut stdin, &call.input[written..]), if stdin.is_some() => match count {
                    // It ends without reading the rest, and says why.
                    0 => written = call.input.len(),
                    count => written += count,
                },
                () = sleep(self.idle) => return Err(stalled()),
            }
        }
        tokio::select! {
            status = child.wait() => result.succeeded = status.map_err(start)?.success(),
            () = sleep(self.idle) => return Err(stalled()),
        }
        group.0 = None;
        Ok(result)
    }

    fn command(&self, call: &GitCall<'_>) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("LC_ALL", "C").env("GIT_LFS_SKIP_SMUDGE", "1");
        command.env("GIT_PROTOCOL_FROM_USER", "1").env("GIT_ALLOW_PROTOCOL", protocols(call.url));
        command.env("GIT_NO_LAZY_FETCH", if call.is_lazy { "0" } else { "1" });
        command.env("GIT_CEILING_DIRECTORIES", call.repository);
        if !self.may_ask {
            command.env("GIT_TERMINAL_PROMPT", "0").env("GCM_INTERACTIVE", "never");
        }
        let mut directory = OsString::from("--git-dir=");
        directory.push(call.repository);
        command.arg(directory).current_dir(call.repository);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        if is_http_here(call.url) {
            command.args(["-c", "protocol.http.allow=always"]);
        }
        command.arg("-c").arg(format!("remote.origin.url={}", call.url));
        command.args(&call.arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        if !self.may_ask {
            lead_group(&mut command);
        }
        command
    }

    /// Whether `ssh` is to be told not to ask: it looks for a terminal itself. A command that the user
    /// has set stays as it is.
    async fn is_ssh_plain(&self, url: &str, repository: &Path) -> bool {
        let is_ssh = url.starts_with("ssh:") || !url.contains("://");
        if self.may_ask || !is_ssh || self.has("GIT_SSH_COMMAND") || self.has("GIT_SSH") {
            return false;
        }
        let mut command = Command::new(&self.program);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.args(["config", "--get", "core.sshCommand"]).current_dir(repository);
        command.env("GIT_CEILING_DIRECTORIES", repository);
        command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        command.output().await.is_ok_and(|it| it.stdout.is_empty())
    }

    fn has(&self, variable: &str) -> bool {
        self.environment.iter().any(|it| it.0 == variable)
    }
}

/// Ends a group of processes when it is dropped.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            kill_group(leader);
        }
    }
}

/// Counts what git says that it has received.
#[derive(Debug, Default)]
struct ReceivedBytes {
    bytes: u64,
    line: String,
}

impl ReceivedBytes {
    /// Reads more of what git prints, and returns how many bytes more it has received.
    fn add(&mut self, text: &str) -> Option<u64> {
        let before = self.bytes;
        for part in text.split_inclusive(['\r', '\n']) {
            if self.line.len() < 1024 {
                self.line.push_str(part);
            }
            if part.ends_with(['\r', '\n']) {
                self.bytes = self.bytes.max(received(&self.line).unwrap_or(0));
                self.line.clear();
            }
        }
        (self.bytes > before).then(|| self.bytes - before)
    }
}

/// Returns the bytes of a line such as `Receiving objects:  50% (5/10), 1.20 MiB | 3.00 MiB/s`.
fn received(line: &str) -> Option<u64> {
    let (_, counts) = line.split_once("Receiving objects:")?;
    let (_, size) = counts.split_once("), ")?;
    let mut words = size.split(' ');
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "bytes" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * unit) as u64)
}

async fn read(from: &mut Option<impl tokio::io::AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match from {
        Some(from) => from.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

async fn write(to: &mut Option<impl tokio::io::AsyncWrite + Unpin>, bytes: &[u8]) -> usize {
    match to {
        Some(to) => to.write(bytes).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Returns the protocols that a URL of a user may use.
fn protocols(url: &str) -> &'static str {
    if is_http_here(url) { "http:https:ssh:file" } else { "https:ssh:file" }
}

/// Whether it is an `http:` URL of this machine.
pub(super) fn is_http_here(url: &str) -> bool {
    let Ok(url) = url::Url::parse(url) else { return false };
    url.scheme() == "http" && is_this_machine(&url)
}

/// Whether a URL names this machine.
pub(super) fn is_this_machine(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns the host of a URL as git takes it, for messages.
pub(super) fn host(url: &str) -> String {
    if let Ok(url) = url::Url::parse(url)
        && let Some(host) = url.host_str()
    {
        return host.to_owned();
    }
    match url.split_once(':') {
        Some((host, _)) if !host.contains('/') => {
            host.rsplit('@').next().unwrap_or(host).to_owned()
        }
        _ => shown(url),
    }
}

/// Returns a URL without a password, and what could be one.
pub(super) fn shown(url: &str) -> String {
    let Ok(mut parsed) = url::Url::parse(url) else { return url.to_owned() };
    // A token may stand for the user.
    let is_secret = matches!(parsed.scheme(), "http" | "https") && !parsed.username().is_empty();
    if parsed.password().is_none() && !is_secret {
        return url.to_owned();
    }
    let _ = parsed.set_password(None);
    if is_secret {
        let _ = parsed.set_username("");
    }
    parsed.into()
}

/// Returns what went wrong, from what git printed.
pub(super) fn failure(url: &str, stderr: &str) -> FetchPackageError {
    let has = |parts: &[&str]| parts.iter().any(|it| stderr.contains(it));
    let message = message(stderr);
    if has(UNREACHABLE) {
        return FetchPackageError::Unreachable {
            host: host(url),
            source: io::Error::other(message).into(),
        };
    }
    if has(&["Host key verification failed"]) {
        let hint = format!("its key is not known; connect to it once with `ssh {}`", host(url));
        return FetchPackageError::NoAccess { url: shown(url), hint };
    }
    if has(NO_ACCESS) {
        let hint = if host(url) == "github.com" || url.starts_with("http") {
            "check the spelling; for a private repository, sign in to git (for GitHub: `gh auth setup-git`) or use its SSH URL"
        } else if url.contains("://") && !url.starts_with("ssh:") {
            "check the path"
        } else {
            "check the spelling, and that your key is in the SSH agent"
        };
        return FetchPackageError::NoAccess { url: shown(url), hint: hint.to_owned() };
    }
    FetchPackageError::Git { url: shown(url), message }
}

const UNREACHABLE: &[&str] = &[
    "Could not resolve host",
    "Failed to connect",
    "Couldn't connect",
    "Connection refused",
    "Connection timed out",
    "Operation timed out",
    "Network is unreachable",
    "No route to host",
    "Empty reply from server",
];

const NO_ACCESS: &[&str] = &[
    "not found",
    "could not be found",
    "Repository not found",
    "returned error: 401",
    "returned error: 403",
    "returned error: 404",
    "does not appear to be a git repository",
    "does not exist",
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "terminal prompts disabled",
    "Permission denied",
];

/// Returns the lines that say what is wrong, in one line without passwords.
fn message(stderr: &str) -> String {
    let lines = stderr.split(['\n', '\r']).map(str::trim).filter(|it| !it.is_empty());
    let told: Vec<&str> = lines
        .clone()
        .filter_map(|it| it.strip_prefix("fatal: ").or_else(|| it.strip_prefix("error: ")))
        .collect();
    let told = if told.is_empty() { lines.rev().take(1).collect() } else { told };
    let told: Vec<&str> = told.into_iter().rev().take(3).collect();
    let line: Vec<&str> = told.into_iter().rev().collect();
    let line = line.join("; ");
    let words = line.split(' ').map(|it| {
        let bare = it.trim_matches(['\'', '"', ':', ',']);
        if bare.contains("://") { it.replace(bare, &shown(bare)) } else { it.to_owned() }
    });
    let line: String = words.collect::<Vec<_>>().join(" ").chars().take(500).collect();
    line.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use super::{ReceivedBytes, host, message, shown};

    #[test]
    fn received_bytes_are_read_from_progress() {
        let mut received = ReceivedBytes::default();
        assert_eq!(received.add("remote: Counting objects: 3\r"), None);
        assert_eq!(received.add("Receiving objects:  50% (1/2), 1.00 K"), None);
        assert_eq!(
            received.add("iB | 2.00 MiB/s\rReceiving objects: 100% (2/2), 1.50"),
            Some(1024)
        );
        assert_eq!(received.add(" MiB | 2.00 MiB/s, done.\n"), Some(1536 * 1024 - 1024));
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(shown("https://user:secret@host/a"), "https://host/a");
        assert_eq!(shown("https://token@host/a"), "https://host/a");
        assert_eq!(shown("ssh://git@host/a"), "ssh://git@host/a");
        assert_eq!(shown("git@host:a/b"), "git@host:a/b");
        let told = message("fatal: unable to access 'https://u:p@host/a/': \u{1b}[31mno\n");
        assert_eq!(told, "unable to access 'https://host/a/':  [31mno");
    }

    #[test]
    fn hosts_are_read_from_all_kinds_of_urls() {
        assert_eq!(host("git@example.com:a/b"), "example.com");
        assert_eq!(host("ssh://git@example.com:22/a"), "example.com");
        assert_eq!(host("https://example.com/a"), "example.com");
    }
}
