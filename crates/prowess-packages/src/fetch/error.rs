//! The errors of fetching a source.

use std::{fmt::Write as _, io, path::PathBuf, time::Duration};

use prowess_http::HttpError;

use crate::{
    archive::{ArchiveError, CopyError},
    cache::CacheError,
};

/// A source cannot be fetched. Nothing of it is in the cache then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchPackageError {
    /// The host does not answer.
    #[error("cannot reach `{host}`")]
    Unreachable {
        /// The host.
        host: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The host sends nothing more.
    #[error("`{host}` sent nothing for {} s", after.as_secs_f64())]
    Stalled {
        /// The host.
        host: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The host does not say whether it is not there or not for this user.
    #[error("`{url}` does not exist, or you have no access to it")]
    NoAccess {
        /// The URL, without passwords.
        url: String,
        /// How to authenticate.
        hint: String,
    },
    /// It does not exist.
    #[error("`{url}` does not exist")]
    NotFound {
        /// The URL, path or name.
        url: String,
    },
    /// The response has another status.
    #[error("`{url}` answered with status {status}{}", quoted(message))]
    Status {
        /// The URL, without passwords.
        url: String,
        /// The status.
        status: u16,
        /// The words of the server.
        message: String,
    },
    /// The host wants fewer requests.
    #[error("`{host}` accepts no more requests for now")]
    RateLimited {
        /// The host.
        host: String,
        /// How long to wait, if the host says so.
        after: Option<Duration>,
    },
    /// The response cannot be read.
    #[error("cannot download `{url}`")]
    Http {
        /// The URL, without passwords.
        url: String,
        /// The cause.
        source: HttpError,
    },
    /// The URL is not requested.
    #[error("`{url}` is refused: {why}")]
    Refused {
        /// The URL, without passwords.
        url: String,
        /// The reason.
        why: String,
    },
    /// The text is not the name of a branch, tag or commit.
    #[error("`{reference}` is not the name of a branch, tag or commit")]
    InvalidReference {
        /// The text.
        reference: String,
    },
    /// The repository has no such branch, tag or commit.
    #[error("`{url}` has no branch, tag or commit `{reference}`")]
    UnknownReference {
        /// The URL, without passwords.
        url: String,
        /// The name.
        reference: String,
        /// Names that are similar, else some that exist.
        names: Vec<String>,
    },
    /// The repository has no commit.
    #[error("`{url}` is empty")]
    Empty {
        /// The URL, without passwords.
        url: String,
    },
    /// The folder is not in the repository.
    #[error("`{url}` has no folder `{path}`")]
    NoFolder {
        /// The URL, without passwords.
        url: String,
        /// The folder.
        path: String,
        /// The nearest folder that exists.
        nearest: Option<String>,
    },
    /// A tag or version no longer stands for what was locked.
    #[error("`{what}` is `{found}`, but `{expected}` is locked")]
    Moved {
        /// The tag, version or URL.
        what: String,
        /// The locked value.
        expected: String,
        /// The value now.
        found: String,
    },
    /// Bytes do not have the digest that was announced for them.
    #[error("`{what}` has the digest `{found}`, expected `{expected}`")]
    WrongDigest {
        /// The URL or name.
        what: String,
        /// The digest that was announced.
        expected: String,
        /// The digest of the bytes.
        found: String,
    },
    /// The `git` program is needed.
    #[error("`{url}` can be fetched only with the program `git`")]
    GitNeeded {
        /// The URL, without passwords.
        url: String,
    },
    /// The `git` program failed.
    #[error("git cannot fetch `{url}`{}", quoted(message))]
    Git {
        /// The URL, without passwords.
        url: String,
        /// The last lines that it printed.
        message: String,
    },
    /// The `git` program cannot be started.
    #[error("cannot run `{}`", program.display())]
    GitStart {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// More than a limit allows.
    #[error("`{url}` has more than {limit}")]
    TooLarge {
        /// The URL, without passwords.
        url: String,
        /// The limit, such as `50000 files`.
        limit: String,
    },
    /// It is neither an archive nor a skill.
    #[error("`{url}` is {found}, expected a zip, tar.gz or `SKILL.md`")]
    NotAnArchive {
        /// The URL, without passwords.
        url: String,
        /// The kind of thing that it is.
        found: &'static str,
    },
    /// An index or an answer of a registry is not as it should be.
    #[error("`{url}` cannot be understood: {why}")]
    Malformed {
        /// The URL, without passwords.
        url: String,
        /// The reason.
        why: String,
    },
    /// A site has no index of skills, and is not a skill itself.
    #[error("`{url}` has no skills")]
    NoIndex {
        /// The URL, without passwords.
        url: String,
    },
    /// The source does not have a skill that is asked for.
    #[error("`{url}` has no skill `{name}`")]
    UnknownSkill {
        /// The URL, without passwords.
        url: String,
        /// The name.
        name: String,
        /// The names that it has.
        names: Vec<String>,
    },
    /// A registry has several skills of this name.
    #[error("`{name}` is the name of several skills")]
    Ambiguous {
        /// The name.
        name: String,
        /// The sources to choose from, as a user writes them.
        choices: Vec<String>,
    },
    /// A registry does not have such a version.
    #[error("`{name}` has no version `{wanted}`")]
    UnknownVersion {
        /// The package.
        name: String,
        /// The version, tag or range.
        wanted: String,
        /// Versions that exist, the newest first.
        versions: Vec<String>,
    },
    /// A registry does not give it out.
    #[error("`{name}` is blocked by its registry: {why}")]
    Blocked {
        /// The package.
        name: String,
        /// The reason.
        why: String,
    },
    /// A registry has withdrawn it.
    #[error("`{name}` was withdrawn from its registry: {why}")]
    Withdrawn {
        /// The package.
        name: String,
        /// The reason.
        why: String,
    },
    /// A registry has not checked it yet.
    #[error("`{name}` is not available yet: {why}")]
    Pending {
        /// The package.
        name: String,
        /// The reason.
        why: String,
    },
    /// No host may be contacted, and it is not in the cache.
    #[error("`{source_text}` is not in the cache, and you are offline")]
    Offline {
        /// The source.
        source_text: String,
    },
    /// The archive cannot be unpacked.
    #[error("cannot unpack `{url}`")]
    Archive {
        /// The URL or path.
        url: String,
        /// The cause.
        source: ArchiveError,
    },
    /// The folder cannot be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The verb, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl FetchPackageError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unreachable { .. } => {
                "check the spelling of the host and your network; with `--offline`, the cache is used"
                    .to_owned()
            }
            Self::Stalled { .. } => "try again later".to_owned(),
            Self::NoAccess { hint, .. } => hint.clone(),
            Self::RateLimited { after: Some(after), .. } => {
                format!("try again in {} seconds", after.as_secs())
            }
            Self::RateLimited { .. } => "try again later".to_owned(),
            Self::UnknownReference { names, .. } if !names.is_empty() => {
                format!("there are {}", listed(names))
            }
            Self::UnknownReference { reference, .. }
                if (4..40).contains(&reference.len()) && is_hex(reference) =>
            {
                "give all 40 digits of a commit".to_owned()
            }
            Self::NoFolder { nearest: Some(nearest), .. } => prowess::did_you_mean(nearest),
            Self::Moved { .. } => {
                "ask its author why; to accept it, update the skill".to_owned()
            }
            Self::WrongDigest { .. } => {
                "it was changed on its way, or its index is out of date; tell its author".to_owned()
            }
            Self::GitNeeded { .. } => "install git".to_owned(),
            Self::NotAnArchive { .. } => {
                "give the URL of the file itself, not of a page about it".to_owned()
            }
            Self::UnknownSkill { name, names, .. } if !names.is_empty() => {
                match prowess::nearest(name, names.iter().map(String::as_str)) {
                    Some(near) => prowess::did_you_mean(near),
                    None => format!("there are {}", listed(names)),
                }
            }
            Self::Ambiguous { choices, .. } => format!("choose one of {}", listed(choices)),
            Self::UnknownVersion { versions, .. } if !versions.is_empty() => {
                format!("there are {}", listed(versions))
            }
            Self::Pending { .. } => "try again later".to_owned(),
            Self::Offline { .. } => "connect to the network and run it once without `--offline`".to_owned(),
            Self::Archive { source, .. } => source.hint().to_owned(),
            Self::Copy(source) => source.hint().to_owned(),
            Self::Cache(source) => source.hint().to_owned(),
            _ => return None,
        };
        Some(hint)
    }

    /// Whether it may work when it is tried again later, without a change.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Stalled { .. }
            | Self::RateLimited { .. }
            | Self::Pending { .. } => true,
            Self::Status { status, .. } => *status >= 500,
            _ => false,
        }
    }
}

/// How many names a hint lists.
const LISTED: usize = 8;

fn listed(names: &[String]) -> String {
    let mut text = String::new();
    for (at, name) in names.iter().take(LISTED).enumerate() {
        let _ = write!(text, "{}`{name}`", if at == 0 { "" } else { ", " });
    }
    if names.len() > LISTED {
        let _ = write!(text, " and {} more", names.len() - LISTED);
    }
    text
}

fn quoted(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// Returns a limit in bytes or MiB.
pub(super) fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mib => format!("{mib} MiB"),
    }
}

pub(super) fn is_hex(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_hexdigit())
}
