//! Diagnoses why a server did not start, by its output, and suggests a key of its entry.
//!
//! The output is written by the author of the server: nothing is suggested that would expose
//! secrets.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use prowess::visible;
use prowess_runtime::{
    Outcome, OutcomeStatus, Policy,
    policy::is_protected,
    secret::{KnownSecrets, holds_secrets},
};
use prowess_sandbox::{Job, Network, ScriptConnection, is_of_system};

/// The permissions of a server, and the place of its entry.
#[derive(Debug)]
pub(super) struct ServerPermissions {
    /// Describes where keys belong.
    pub(super) entry: String,
    /// The file of the entry.
    file: Option<PathBuf>,
    /// The directory that the entry cannot access paths outside of, with an alternative.
    project: Option<(PathBuf, String)>,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    network: Network,
    has_hosts: bool,
    work: PathBuf,
    /// Its working directory.
    directory: PathBuf,
    home: Option<PathBuf>,
    /// The user's own settings directory.
    settings: Option<PathBuf>,
    secrets: KnownSecrets,
    policy: Policy,
}

/// The maximum number of shown lines of output, and the maximum length of one.
const LINES: usize = 20;
const LENGTH: usize = 400;
/// The maximum length of a name in a hint.
const NAME: usize = 200;
/// The maximum number of named hosts.
const HOSTS: usize = 3;
/// The maximum number of entries of a directory that are checked for secrets.
const MAX_ENTRIES: usize = 10_000;
/// The parents of other home directories.
const HOMES: &[&str] = &["/home", "/root"];

/// Error messages for files that cannot be read, and that cannot be written.
const UNREADABLE: &[&str] = &[
    "ENOENT",
    "EACCES",
    "No such file",
    "no such file",
    "Permission denied",
    "permission denied",
    "does not exist",
    "not found",
    "annot access",
    "annot open",
    "nable to open",
    "not a valid",
    "Error accessing",
];
const UNWRITABLE: &[&str] = &["EROFS", "Read-only file system", "read-only file system"];
/// Texts before the name of a host that was not found.
const BEFORE_HOSTS: &[&str] = &[
    "getaddrinfo ENOTFOUND ",
    "getaddrinfo EAI_AGAIN ",
    "Could not resolve host: ",
    "Failed to resolve '",
    "host='",
];
/// System errors without a network, and other messages for that, in lower case.
const NETWORK_ERRORS: &[&str] = &["ENOTFOUND", "EAI_AGAIN", "ENETUNREACH", "ECONNREFUSED"];
const NO_NETWORK: &[&str] = &[
    "getaddrinfo",
    "name or service not known",
    "name resolution",
    "could not resolve",
    "no such host",
    "dns error",
    "network is unreachable",
    "network error",
    "connection refused",
    "connection error",
    "connection issue",
    "connecterror",
    "connectionerror",
    "cannot connect",
    "could not connect",
    "failed to connect",
    "all connection attempts failed",
    "error sending request",
    "fetch failed",
    "failed to fetch",
];
/// Texts before the name of a missing module.
const BEFORE_MODULES: &[(&str, &str)] = &[
    ("No module named '", "install it for the server's Python, or set `command` to another one"),
    ("No module named ", "install it for the server's Python, or set `command` to another one"),
    ("Cannot find package '", "run `npm install` in the folder of the server"),
    ("Cannot find module '", "run `npm install` in the folder of the server"),
];
/// Messages about a variable that is not set.
const UNSET: &[&str] =
    &["not set", "is required", "required", "missing", "must be set", "undefined", "not provided"];

impl ServerPermissions {
    /// Records the permissions of a job.
    pub(super) fn of(
        job: &Job,
        entry: String,
        project: Option<(PathBuf, String)>,
        policy: &Policy,
        home: Option<&Path>,
        settings: Option<&Path>,
    ) -> Self {
        Self {
            entry,
            file: None,
            project: project.map(|(it, instead)| (real_path(&it), instead)),
            reads: job.reads.iter().chain(&job.layered).map(|it| real_path(it)).collect(),
            writes: job.writes.iter().map(|it| real_path(it)).collect(),
            network: job.network.clone(),
            has_hosts: !matches!(job.network, Network::None),
            work: job.work.path().to_owned(),
            directory: job.directory.clone().unwrap_or_else(|| job.work.path().to_owned()),
            home: home.map(Path::to_owned),
            settings: settings.map(real_path),
            secrets: KnownSecrets::new(job.env.values().cloned()),
            policy: policy.clone(),
        }
    }

    /// Sets the file of the entry.
    pub(super) fn in_file(self, file: Option<PathBuf>) -> Self {
        Self { file, ..self }
    }

    /// Adds the last output of the server to an outcome, with a hint.
    pub(super) fn explain(&self, mut outcome: Outcome) -> Outcome {
        let printed = outcome.stderr.as_ref().map(|it| &*it.text).unwrap_or_default();
        let printed = without_sequences(printed);
        let printed = self.secrets.mask(&printed);
        let cause = self.cause(&printed, &outcome);
        let hint = cause.or_else(|| outcome.hint.clone()).unwrap_or_else(|| {
            let network = if self.has_hosts { "" } else { ", and has no network" };
            let entry = &self.entry;
            format!(
                "a server can read its own files and those that its arguments name{network}; `read`, `write`, `hosts` and `env` in {entry} allow more"
            )
        });
        let text = last_lines(&printed);
        outcome.hint = Some(hint);
        outcome.stderr = outcome.stderr.filter(|_| !text.is_empty());
        if let Some(stderr) = &mut outcome.stderr {
            stderr.text = text;
        }
        outcome
    }

    /// Returns the number of refused connections so far.
    pub(super) fn refusals(&self) -> usize {
        self.network.refusals().len()
    }

    /// Returns a hint for a call that failed with this message; `before` is the number of
    /// connections refused before it.
    pub(super) fn hint(&self, message: &str, before: usize) -> Option<String> {
        let refused = self.network.refusals().into_iter().nth(before);
        refused.or_else(|| self.cause(message, &Outcome::new(OutcomeStatus::Failed)))
    }

    /// Returns the cause of a failure with a remedy.
    fn cause(&self, printed: &str, outcome: &Outcome) -> Option<String> {
        self.refused_hosts(outcome)
            .or_else(|| missing_module(printed))
            .or_else(|| self.missing_network(printed))
            .or_else(|| printed.lines().find_map(|it| self.unreachable_file(it)))
            .or_else(|| printed.lines().find_map(|it| self.missing_variable(it)))
    }

    /// Suggests the hosts that the proxy has refused.
    fn refused_hosts(&self, outcome: &Outcome) -> Option<String> {
        let refused = outcome.network.iter().filter(|it| it.refused.is_some());
        let hosts: BTreeSet<String> = refused
            .filter_map(|it: &ScriptConnection| match it.port {
                0 | 80 | 443 => host(&it.host),
                port => host(&it.host).map(|it| format!("{it}:{port}")),
            })
            .collect();
        let hosts: Vec<String> = hosts.into_iter().take(HOSTS).collect();
        (!hosts.is_empty()).then(|| self.add_hosts(&hosts))
    }

    fn add_hosts(&self, hosts: &[String]) -> String {
        let names: Vec<String> = hosts.iter().map(|it| format!("`{it}`")).collect();
        let quoted: Vec<String> = hosts.iter().map(|it| format!("\"{it}\"")).collect();
        let (names, quoted, entry) = (names.join(", "), quoted.join(", "), &self.entry);
        let place = self.of_file();
        match self.has_hosts {
            true => {
                format!("it tried to connect to {names}: add {quoted} to `hosts` in {entry}{place}")
            }
            false => format!(
                "it tried to connect to {names}: add `hosts = [{quoted}]` in {entry}{place}"
            ),
        }
    }

    /// Returns the file of the entry as a phrase that follows it.
    fn of_file(&self) -> String {
        let file = self.file.as_deref().map(|it| self.short_path(it));
        file.map(|it| format!(" of `{it}`")).unwrap_or_default()
    }

    /// Detects a missing network.
    fn missing_network(&self, printed: &str) -> Option<String> {
        let named = BEFORE_HOSTS.iter().find_map(|before| {
            let (_, rest) = printed.split_once(before)?;
            host(rest.split(|c: char| !c.is_ascii_alphanumeric() && !".-".contains(c)).next()?)
        });
        if let Some(name) = named {
            return Some(self.add_hosts(&[name]));
        }
        let small = printed.to_ascii_lowercase();
        let is_said = NETWORK_ERRORS.iter().any(|it| printed.contains(it))
            || NO_NETWORK.iter().any(|it| small.contains(it));
        (is_said && !self.has_hosts).then(|| {
            format!(
                "it tried to use the network: add the hosts that it needs as `hosts = […]` in {}{}",
                self.entry,
                self.of_file()
            )
        })
    }

    /// Detects a file that it cannot access.
    fn unreachable_file(&self, line: &str) -> Option<String> {
        let is_unwritable = UNWRITABLE.iter().any(|it| line.contains(it));
        if !is_unwritable && !UNREADABLE.iter().any(|it| line.contains(it)) {
            return None;
        }
        paths(line).into_iter().find_map(|path| {
            let path = self.directory.join(path);
            if is_unwritable {
                self.explain_unwritable(&path)
            } else {
                self.explain_unreadable(&path)
            }
        })
    }

    fn explain_unreadable(&self, path: &Path) -> Option<String> {
        if let Ok(own) = path.strip_prefix(&self.work) {
            let is_at_home = self.home.as_ref().is_some_and(|it| it.join(own).exists());
            let is_own = own.as_os_str().is_empty() || !is_at_home;
            let real = self.home.as_ref().and_then(|it| prowess::real_path(it.join(own)).ok());
            return (!is_own).then(|| {
                if let Some(why) = real.and_then(|it| self.why_not_suggested(&it, "read")) {
                    return format!("it tried to open `~/{}`, {why}", own.display());
                }
                let own = own.display();
                if let Some((_, instead)) = &self.project {
                    return format!("it tried to open `~/{own}`, which a project's file cannot allow: {instead}");
                }
                format!("it looked for `~/{own}` in its home directory, which is empty in the sandbox: use the absolute path in `args` or `env`, and add it to `read` in {}", self.entry)
            });
        }
        let real = prowess::real_path(path).ok()?;
        if is_of_system(&real)
            || self.reads.iter().chain(&self.writes).any(|it: &PathBuf| real.starts_with(it))
        {
            return None;
        }
        let shown = self.short_path(path);
        if let Some(why) = self.why_not_suggested(&real, "read") {
            return Some(format!("it tried to open `{shown}`, {why}"));
        }
        let remedy = self.remedy(&real, &format!("read = [\"{shown}\"]"));
        Some(format!("it tried to open `{shown}`{remedy}"))
    }

    fn explain_unwritable(&self, path: &Path) -> Option<String> {
        let folder = if path.is_dir() { path } else { path.parent()? };
        let folder = folder.ancestors().find(|it| it.is_dir())?;
        let real = prowess::real_path(folder).ok()?;
        if is_of_system(&real) || real.components().count() <= 2 {
            return None;
        }
        let (shown, folder) = (self.short_path(path), self.short_path(folder));
        let why = self
            .why_not_suggested(&real, "write")
            .or_else(|| self.why_not_suggested(path, "write"));
        if let Some(why) = why {
            return Some(format!("it tried to write `{shown}`, {why}"));
        }
        let remedy = self.remedy(&real, &format!("write = [\"{folder}\"]"));
        Some(format!("it tried to write `{shown}`{remedy}"))
    }

    /// Returns the remedy for a path as a phrase that follows it: a key, unless the entry of a
    /// project cannot provide access.
    fn remedy(&self, real: &Path, key: &str) -> String {
        match &self.project {
            Some((directory, instead)) if !real.starts_with(directory) => {
                format!(", which a project's file cannot allow: {instead}")
            }
            _ => format!(": add `{key}` in {}", self.entry),
        }
    }

    /// Returns the reason not to suggest access to a path as a phrase that follows it.
    fn why_not_suggested(&self, path: &Path, key: &str) -> Option<String> {
        let mut homes = self.home.as_deref().into_iter().chain(HOMES.iter().map(Path::new));
        if homes.any(|it| it.starts_with(path)) {
            return Some(
                "which is a whole home directory: list the directories that it needs instead"
                    .to_owned(),
            );
        }
        let withheld = &self.policy.withheld;
        let secret = self.secret_in(path);
        if key == "write"
            && (is_protected(path) || path.components().any(|it| it.as_os_str() == ".git"))
        {
            return Some("which other programs act on: servers cannot write it".to_owned());
        }
        let is_secret = secret.is_some()
            || is_protected(path)
            || holds_secrets(path)
            || withheld.iter().any(|it| it.starts_with(path))
            || self
                .settings
                .as_deref()
                .and_then(Path::parent)
                .is_some_and(|it| path.starts_with(it));
        if withheld.iter().any(|it| path.starts_with(it)) || is_secret && self.project.is_some() {
            return Some("which servers cannot access".to_owned());
        }
        let such = secret.filter(|it| it != path);
        let such =
            such.map(|it| format!(" such as `{}`", self.short_path(&it))).unwrap_or_default();
        let entry = &self.entry;
        is_secret.then(|| {
            format!("which may contain secrets{such}: if the server needs it, add it to `{key}` in {entry} yourself")
        })
    }

    /// Returns a file that may contain secrets: this one, or one in this directory.
    fn secret_in(&self, path: &Path) -> Option<PathBuf> {
        if self.policy.known_secret(path).is_some() {
            return Some(path.to_owned());
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten().take(MAX_ENTRIES);
        entries.map(|it| it.path()).find(|it| self.policy.known_secret(it).is_some())
    }

    /// Formats a path as a person would write it.
    fn short_path(&self, path: &Path) -> String {
        match self.home.as_ref().and_then(|it| path.strip_prefix(it).ok()) {
            Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
            _ => path.display().to_string(),
        }
    }

    /// Detects a missing variable.
    fn missing_variable(&self, line: &str) -> Option<String> {
        if !UNSET.iter().any(|it| line.contains(it)) {
            return None;
        }
        let mut words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = words.find(|it: &&str| {
            it.len() > 4
                && it.len() < 64
                && it.contains('_')
                && it.starts_with(|c: char| c.is_ascii_uppercase())
                && it.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        })?;
        Some(format!(
            "it needs the variable `{name}`: add `env = {{ {name} = \"${{{name}}}\" }}` in {}, and `{name}` to `policy.environment`",
            self.entry
        ))
    }
}

/// Returns the path with all links resolved; unchanged if it cannot be resolved.
fn real_path(path: &Path) -> PathBuf {
    prowess::real_path(path).unwrap_or_else(|_| path.to_owned())
}

/// Detects a missing module.
fn missing_module(printed: &str) -> Option<String> {
    BEFORE_MODULES.iter().find_map(|(before, remedy)| {
        let (_, rest) = printed.split_once(before)?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_.-@/".contains(c));
        let name = &rest[..end.unwrap_or(rest.len()).min(NAME)];
        (!name.is_empty()).then(|| format!("it cannot find the module `{name}`: {remedy}"))
    })
}

/// Returns the paths in a line: quoted ones whole, and absolute ones up to a space or punctuation.
fn paths(line: &str) -> Vec<&str> {
    let quoted = ['\'', '"', '`'].into_iter().flat_map(|sign| line.split(sign).skip(1).step_by(2));
    let words = line.split(|c: char| c.is_whitespace() || "'\"`,;:()[]=".contains(c));
    let bare = words.filter(|it| it.starts_with('/'));
    let paths = quoted.chain(bare.map(|it| it.trim_end_matches('.')));
    paths
        .filter(|it: &&str| (2..=NAME).contains(&it.len()) && it.contains('/'))
        .filter(|it: &&str| !it.contains(|c: char| c.is_control() || "\"`\\$".contains(c)))
        .collect()
}

/// Returns a host if its name or address is valid in a list.
fn host(name: &str) -> Option<String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || ".-:".contains(c));
    let is_host = name.contains(['.', ':']) || name == "localhost";
    (is_plain && is_host && name.len() <= NAME).then(|| name.to_owned())
}

/// Removes terminal sequences and invisible characters from a text.
pub(super) fn without_sequences(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\u{1b}', '\u{9b}']) {
        plain.push_str(&rest[..at]);
        rest = behind_sequence(&rest[at..]);
    }
    plain.push_str(rest);
    visible(&plain).lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Returns the text after a leading terminal sequence.
fn behind_sequence(text: &str) -> &str {
    let mut letters = text.char_indices();
    let is_short = letters.next().is_some_and(|it| it.1 == '\u{9b}');
    let kind = if is_short { Some('[') } else { letters.next().map(|it| it.1) };
    let end = match kind {
        Some('[') => letters.find(|it| ('\u{40}'..='\u{7e}').contains(&it.1)),
        // A title or similar, up to a bell or the next sequence.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            letters.find(|it| matches!(it.1, '\u{7}' | '\u{1b}' | '\n'))
        }
        _ => return letters.as_str(),
    };
    match end {
        Some((at, '\u{1b}' | '\n')) => &text[at..],
        Some((at, letter)) => &text[at + letter.len_utf8()..],
        None => "",
    }
}

/// Returns the last lines of a text, each shortened.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|it| !it.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].iter().map(|it| shorten(it, LENGTH));
    last.collect::<Vec<_>>().join("\n")
}

/// Shortens a text to at most so many characters.
pub(super) fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use prowess_sandbox::CapturedText;

    use super::*;

    fn permissions(home: &Path) -> ServerPermissions {
        let policy = Policy { withheld: vec![home.join("state/inside")], ..Policy::default() };
        ServerPermissions {
            entry: "`[servers.x]`".to_owned(),
            file: None,
            project: None,
            network: Network::None,
            reads: vec![home.join("given")],
            writes: Vec::new(),
            has_hosts: false,
            work: PathBuf::from("/tmp/own/work"),
            directory: home.to_owned(),
            home: Some(home.to_owned()),
            settings: Some(home.join(".config/prowess/prowess.toml")),
            secrets: KnownSecrets::new(["hunter2-hunter2".to_owned()]),
            policy,
        }
    }

    #[test]
    fn an_error_message_leads_to_the_key_that_helps() {
        let home = tempfile::tempdir().unwrap();
        let home = prowess::real_path(home.path()).unwrap();
        let own_folders = [".ssh", ".aws", ".gnupg", ".mozilla/firefox", ".config/prowess"];
        let folders = ["given", "notes", "app", ".config/app", ".local/state", "state/inside"];
        for folder in folders.into_iter().chain(own_folders) {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in ["app/.env", ".bash_history", ".python_history", ".config/prowess/prowess.toml"]
        {
            fs::write(home.join(file), "x").unwrap();
        }
        let own = permissions(&home);
        let at = |path: &str| home.join(path).display().to_string();
        let cause = |text: &str| own.cause(text, &Outcome::new(OutcomeStatus::Failed));
        let table = [
            (
                format!("Error: ENOENT: no such file or directory, stat '{}'", at("notes")),
                "add `read = [\"~/notes\"]`",
            ),
            (
                format!(
                    "FileNotFoundError: [Errno 2] No such file or directory: '{}'",
                    at("notes")
                ),
                "`~/notes`",
            ),
            (
                format!("OSError: [Errno 30] Read-only file system: '{}'", at("given/a.txt")),
                "add `write = [\"~/given\"]`",
            ),
            (
                "OSError: [Errno 30] Read-only file system: 'given/a.txt'".to_owned(),
                "add `write = [\"~/given\"]`",
            ),
            (
                format!("Cannot access directory {}, skipping", home.display()),
                "a whole home directory",
            ),
            (
                format!("OSError: [Errno 30] Read-only file system: '{}'", at("x.txt")),
                "a whole home directory",
            ),
            (format!("ENOENT '{}'", at(".config/app")), "add `read = [\"~/.config/app\"]`"),
            (format!("ENOENT '{}'", at("state/inside")), "which servers cannot access"),
            (format!("ENOENT '{}'", at("app")), "contain secrets such as `~/app/.env`"),
            (
                "Error: getaddrinfo ENOTFOUND api.github.com".to_owned(),
                "add `hosts = [\"api.github.com\"]`",
            ),
            ("curl: (6) Could not resolve host: example.org".to_owned(), "\"example.org\""),
            ("TypeError: fetch failed".to_owned(), "`hosts = […]`"),
            (
                "ModuleNotFoundError: No module named 'mcp'".to_owned(),
                "cannot find the module `mcp`",
            ),
            (
                "/usr/bin/python3: No module named mcp_server_git".to_owned(),
                "cannot find the module `mcp_server_git`",
            ),
            ("Error: Cannot find module 'express'".to_owned(), "`npm install`"),
            ("BRAVE_API_KEY environment variable is required".to_owned(), "`BRAVE_API_KEY`"),
            (
                format!("Error: ENOENT: no such file or directory, open '{}'", at(".ssh")),
                "which may contain secrets: if the server needs it, add it to `read` in `[servers.x]` yourself",
            ),
        ];
        for (text, words) in table {
            let said = cause(&text).unwrap_or_default();
            assert!(said.contains(words), "{text}: {said}");
        }
        for kept in [
            ".ssh",
            ".aws",
            ".gnupg",
            ".mozilla",
            ".mozilla/firefox",
            ".bash_history",
            ".python_history",
            ".config",
            ".config/prowess",
            ".config/prowess/prowess.toml",
            ".local",
            "app",
            "state",
        ] {
            for text in [format!("EACCES '{}'", at(kept)), format!("ENOENT '/tmp/own/work/{kept}'")]
            {
                let said = cause(&text).unwrap_or_default();
                assert!(said.contains("may contain secrets"), "{text}: {said}");
                assert!(!said.contains(" = ["), "{said}");
            }
        }
        for kept in ["/root", "/home", "/etc/shadow", "/etc"] {
            let said = cause(&format!("EACCES '{kept}'")).unwrap_or_default();
            assert!(!said.contains(" = ["), "{said}");
        }
        for text in [
            "",
            "listening",
            "ENOENT: no such file, open '/nowhere/at/all'",
            "No such file or directory: '/usr/bin/x'",
            &format!("ENOENT '{}'", at("given")),
        ] {
            assert_eq!(cause(text), None, "{text}");
        }
        for text in ["ENOENT '/\u{1b}[2J'", "ENOENT \"/a`b\"", "getaddrinfo ENOTFOUND \"]\n#"] {
            let said = cause(text).unwrap_or_default();
            assert!(!said.contains('\u{1b}') && !said.contains("\"/a`"), "{said}");
        }
    }

    #[test]
    fn shown_output_is_short_and_has_no_escapes_or_secrets() {
        let own = permissions(Path::new("/nowhere"));
        let flood = "line\n".repeat(1000);
        let text = format!(
            "{flood}\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}end\u{202e}\u{200b}\r\n\u{9b}2Jkey hunter2-hunter2\n{}",
            "x".repeat(5000)
        );
        let mut outcome = Outcome::new(OutcomeStatus::Failed);
        outcome.stderr.insert(CapturedText::default()).text = text;
        let said = own.explain(outcome).stderr.unwrap().text;
        assert_eq!(said.lines().count(), LINES);
        assert!(said.contains("\nred end\nkey [masked]\n"), "{said:?}");
        assert!(said.chars().all(|it| it == '\n' || !it.is_control()), "{said:?}");
        assert!(said.lines().all(|it| it.chars().count() <= LENGTH + 1), "{said:?}");
        for torn in ["\u{1b}", "\u{1b}[", "\u{1b}]never ends", "\u{1b}[31", "a\u{1b}[é"] {
            assert!(!without_sequences(torn).contains('\u{1b}'), "{torn:?}");
        }
    }
}
