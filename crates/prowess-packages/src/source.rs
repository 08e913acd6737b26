//! Where a package is fetched from, as a user writes it.

mod text;
mod git;
mod page;
mod grammar;

use std::{fmt, path::PathBuf, str::FromStr};

use url::Url;

pub use self::git::{GitSource, KnownHost};
pub(crate) use self::text::{check_reference, relative_path};

/// Where a package is fetched from, and which of its skills are asked for.
///
/// It is read from every spelling that `npx skills` accepts, and displayed in the shortest one that
/// is read as the same source, which is also the one of manifests and lock files.
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
    /// A folder on this machine; the skills are copied from it. A path that begins with `~/` is in the
    /// user's home directory, which the host knows.
    Folder(PathBuf),
    /// An archive or a `SKILL.md` on this machine, with a path like that of a folder.
    File(PathBuf),
    /// An archive or a `SKILL.md` at a URL.
    Download(Url),
    /// A web site with an index at `.well-known/agent-skills`, or else a download.
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

/// A text is not a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a source: {why}")]
#[non_exhaustive]
pub struct SourceSyntaxError {
    /// The text, without passwords and characters that cannot be seen.
    pub text: String,
    /// The reason.
    pub why: String,
    /// The nearest form that is accepted.
    pub hint: String,
}

impl SourceSyntaxError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl SkillSource {
    /// Creates a source of which no skill is chosen.
    pub fn new(kind: SourceKind) -> Self {
        Self { kind, skills: Vec::new() }
    }

    /// Reads a source where `exists` says which paths there are, relative to the working directory.
    ///
    /// A name without `./` never means a folder. If one has that name, this is an error that says how
    /// to write either.
    pub fn parse_in(text: &str, exists: &dyn Fn(&str) -> bool) -> Result<Self, SourceSyntaxError> {
        let parsed = text.parse::<Self>();
        let name = text.trim();
        let short = match &parsed {
            Ok(source) => source.github_shorthand().filter(|_| !name.contains([':', '#'])),
            Err(_) if name.contains(':') || name.starts_with('-') => None,
            Err(_) => Some(String::new()),
        };
        let Some(short) = short.filter(|_| text::unseen(name).is_none() && exists(name)) else {
            return parsed;
        };
        let folder = format!("./{}", name.replace('\\', "/"));
        Err(match short.is_empty() {
            true => text::refusal(
                text,
                "it is the name of a file or folder here, without `./`",
                format!("write `{folder}`"),
            ),
            false => text::refusal(
                text,
                "it is both a path here and a repository on GitHub",
                format!("write `{folder}` for the path, or `github:{short}` for the repository"),
            ),
        })
    }

    /// Returns a short name for people, such as `anthropics/skills`.
    pub fn name(&self) -> String {
        match &self.kind {
            SourceKind::Git(git) => git.name(),
            SourceKind::Folder(path) | SourceKind::File(path) => match path.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => path.display().to_string(),
            },
            SourceKind::Site(url) => {
                let host = url.host_str().unwrap_or_default();
                host.strip_prefix("www.").unwrap_or(host).to_owned()
            }
            SourceKind::Download(url) => {
                let mut segments = url.path_segments().into_iter().flatten();
                let last = segments.rfind(|it| !it.is_empty());
                text::decoded(last.unwrap_or_else(|| url.host_str().unwrap_or_default()))
            }
            SourceKind::ClawHub { owner: Some(owner), slug, .. } => format!("{owner}/{slug}"),
            SourceKind::ClawHub { slug, .. } => slug.clone(),
            SourceKind::Npm { name, .. } => name.clone(),
        }
    }

    /// Returns the git repository, if it is one.
    pub fn git(&self) -> Option<&GitSource> {
        match &self.kind {
            SourceKind::Git(git) => Some(git),
            _ => None,
        }
    }

    /// Returns the shortest spelling of a repository on GitHub.
    fn github_shorthand(&self) -> Option<String> {
        self.git().filter(|it| it.is_public_shorthand()).map(|_| self.to_string())
    }
}

impl FromStr for SkillSource {
    type Err = SourceSyntaxError;

    fn from_str(text: &str) -> Result<Self, SourceSyntaxError> {
        grammar::parse(text)
    }
}

/// The shortest text that parses to the same source.
impl fmt::Display for SkillSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SourceKind::Git(git) => return git.write(f, &self.skills),
            SourceKind::Folder(path) | SourceKind::File(path) => {
                let path = path.display();
                write!(f, "{path}")?;
            }
            SourceKind::Download(url) | SourceKind::Site(url) => f.write_str(bare(url))?,
            SourceKind::ClawHub { registry: None, owner, slug, version } => {
                f.write_str("clawhub:")?;
                owner.iter().try_for_each(|it| write!(f, "@{it}/"))?;
                f.write_str(slug)?;
                version.iter().try_for_each(|it| write!(f, "@{it}"))?;
            }
            SourceKind::ClawHub { registry: Some(registry), owner, slug, version } => {
                write!(f, "clawhub+{}/", registry.as_str().trim_end_matches('/'))?;
                owner.iter().try_for_each(|it| write!(f, "@{it}/"))?;
                f.write_str(slug)?;
                version.iter().try_for_each(|it| write!(f, "@{it}"))?;
            }
            SourceKind::Npm { name, range } => {
                write!(f, "npm:{name}")?;
                range.iter().try_for_each(|it| write!(f, "@{it}"))?;
            }
        }
        match self.skills.is_empty() {
            true => Ok(()),
            false => write!(f, "#@{}", text::encoded_names(&self.skills)),
        }
    }
}

/// Returns a URL without the slash that stands for the whole site.
fn bare(url: &Url) -> &str {
    let text = url.as_str();
    match url.path() == "/" && url.query().is_none() {
        true => text.strip_suffix('/').unwrap_or(text),
        false => text,
    }
}
