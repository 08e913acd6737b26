//! The settings in `[packages]`.

use std::{collections::BTreeMap, time::Duration};

use url::Url;

use crate::source::{SkillSource, SourceKind};

/// How packages are installed: `[packages]` of a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageSettings {
    /// The clients that skills are installed for; none if it is not said.
    pub clients: Option<Vec<String>>,
    /// Whether each client gets its own copy of a skill.
    pub copy: bool,
    /// How long a version must have been published before it is installed.
    pub min_age: Option<Duration>,
    /// Registries by the names that sources use for them.
    pub registries: BTreeMap<String, Url>,
    /// Who must have signed what comes from a source, in the order written.
    pub signers: Vec<SignerPolicy>,
}

/// Who must have signed what comes from sources of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignerPolicy {
    /// The pattern of sources, in which `*` stands for any text, such as `anthropics/*`.
    pub pattern: String,
    /// The accepted identities, of which one is enough; empty if no signature is needed.
    pub identities: Vec<String>,
}

impl PackageSettings {
    /// Returns who must have signed what comes from a source; none if nobody must.
    ///
    /// Of several patterns that match, the longest decides: one without identities is an exception
    /// from a shorter one.
    pub fn required_signers(&self, source: &SkillSource) -> Option<&[String]> {
        let key = source_key(source);
        let matching = self.signers.iter().filter(|it| it.is_for(&key));
        let longest = matching.max_by_key(|it| pattern_key(&it.pattern).len())?;
        Some(&*longest.identities).filter(|it| !it.is_empty())
    }
}

impl SignerPolicy {
    /// Whether the policy is for a source, however that is spelled.
    pub fn matches(&self, source: &SkillSource) -> bool {
        self.is_for(&source_key(source))
    }

    fn is_for(&self, key: &str) -> bool {
        is_match(&pattern_key(&self.pattern), key)
    }
}

/// Returns the text that patterns are compared with: host and path, the same for all spellings.
fn source_key(source: &SkillSource) -> String {
    match &source.kind {
        SourceKind::Git(git) => place_key(&git.url),
        SourceKind::Download(url) | SourceKind::Site(url) => place_key(url.as_str()),
        SourceKind::Folder(path) | SourceKind::File(path) => path.to_string_lossy().into_owned(),
        SourceKind::ClawHub { registry, owner, slug, .. } => {
            let host =
                registry.as_ref().map_or("clawhub.ai".to_owned(), |it| place_key(it.as_str()));
            let owner = owner.as_deref().unwrap_or("*");
            format!("{host}/{owner}/{slug}").to_lowercase()
        }
        SourceKind::Npm { name, .. } => format!("npm:{}", name.to_lowercase()),
    }
}

/// Returns a pattern as [`source_key`] writes sources.
fn pattern_key(pattern: &str) -> String {
    let first = pattern.split('/').next().unwrap_or_default();
    if let Some(rest) = pattern.strip_prefix("clawhub:") {
        let rest = rest.trim_start_matches('@');
        return format!("clawhub.ai/{}{rest}", if rest.contains('/') { "" } else { "*/" })
            .to_lowercase();
    }
    let is_plain = !pattern.contains(':') && !first.contains('.') && first != "*";
    match is_plain && pattern.contains('/') && !first.is_empty() {
        true => format!("github.com/{pattern}").to_lowercase(),
        false if pattern.starts_with("npm:") => pattern.to_lowercase(),
        false => place_key(pattern),
    }
}

/// Returns host and path of an address, in lower case: a policy that depended on case could be avoided by it.
fn place_key(address: &str) -> String {
    let lower = address.to_lowercase();
    let (scheme, rest) = lower.split_once("://").map_or((false, &*lower), |it| (true, it.1));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = match (scheme, rest.split_once('/'), rest.split_once(':')) {
        // `git@host:path`
        (false, slash, Some((host, path))) if slash.is_none_or(|it| it.0.len() > host.len()) => {
            (host, path)
        }
        (_, Some((host, path)), _) => (host, path),
        (_, None, _) => (rest, ""),
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = host.trim_end_matches('.').trim_start_matches("www.");
    let host = ["443", "80", "22"].iter().fold(host, |it, port| {
        it.strip_suffix(port).and_then(|it| it.strip_suffix(':')).unwrap_or(it)
    });
    let path: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let path = path.join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path);
    if path.is_empty() { host.to_owned() } else { format!("{host}/{path}") }
}

/// Whether a text is of a pattern, in which `*` stands for any text.
fn is_match(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns the duration that a text such as `3d` means.
pub(super) fn duration(text: &str) -> Option<Duration> {
    const LONGEST: u64 = 3660 * 86_400;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    let is_number = number.bytes().all(|it| it.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| is_number)?;
    number.checked_mul(seconds).filter(|it| *it <= LONGEST).map(Duration::from_secs)
}
