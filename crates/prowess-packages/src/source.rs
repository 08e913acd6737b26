//! Where a package is fetched from, as a user writes it.

use std::{fmt, path::PathBuf, str::FromStr};

use url::Url;

/// Where a package is fetched from, and which of its skills are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SkillSource {
    /// The place.
    pub kind: SourceKind,
    /// The names behind `@`; empty for no choice.
    pub skills: Vec<String>,
}

/// A place that packages are fetched from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SourceKind {
    /// A git repository.
    Git(GitSource),
    /// A folder on this machine; the skills are copied from it.
    Folder(PathBuf),
    /// An archive or a `SKILL.md` on this machine.
    File(PathBuf),
    /// An archive or a `SKILL.md` at a URL.
    Download(Url),
    /// A web site with an index at `.well-known/agent-skills`.
    Site(Url),
    /// A skill of a ClawHub registry.
    ClawHub {
        /// The registry; none is `https://clawhub.ai`.
        registry: Option<Url>,
        /// The owner, without `@`.
        owner: Option<String>,
        /// The short name.
        slug: String,
        /// The version or tag; none is the latest.
        version: Option<String>,
    },
    /// A package of an npm registry.
    Npm {
        /// The name, with its scope.
        name: String,
        /// The version, tag or range; none is the tag `latest`.
        range: Option<String>,
    },
}

/// A git repository, and what is asked for of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GitSource {
    /// The URL, as git takes it: `https://…`, `ssh://…`, `git@host:path` or a path.
    pub url: String,
    /// The branch, tag or commit; none is the default branch.
    pub reference: Option<String>,
    /// The folder in the repository, with `/`; none is the whole repository.
    pub path: Option<String>,
}

/// A text is not a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a source: {why}")]
#[non_exhaustive]
pub struct SourceSyntaxError {
    /// The text.
    pub text: String,
    /// The reason.
    pub why: String,
    /// The nearest form that is accepted.
    pub hint: String,
}

impl FromStr for SkillSource {
    type Err = SourceSyntaxError;

    fn from_str(text: &str) -> Result<Self, SourceSyntaxError> {
        let (repository, skill) = text.split_once('@').unwrap_or((text, ""));
        let skills = if skill.is_empty() { Vec::new() } else { vec![skill.to_owned()] };
        let url = format!("https://github.com/{repository}");
        Ok(Self { kind: SourceKind::Git(GitSource { url, reference: None, path: None }), skills })
    }
}

/// The text that parses to the same source.
impl fmt::Display for SkillSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SourceKind::Git(git) => f.write_str(&git.url)?,
            SourceKind::Folder(path) | SourceKind::File(path) => write!(f, "{}", path.display())?,
            SourceKind::Download(url) | SourceKind::Site(url) => write!(f, "{url}")?,
            SourceKind::ClawHub { slug, .. } => write!(f, "clawhub:{slug}")?,
            SourceKind::Npm { name, .. } => write!(f, "npm:{name}")?,
        }
        self.skills.iter().try_for_each(|it| write!(f, "@{it}"))
    }
}
