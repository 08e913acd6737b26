//! Git repositories, and the hosts that are known.

use std::fmt;

use url::Url;

use super::{
    grammar, page,
    text::{encoded, encoded_names},
};
use crate::source::{SkillSource, SourceKind, SourceSyntaxError};

/// A git repository, and what is asked for of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GitSource {
    /// The URL, as git takes it: `https://…`, `ssh://…`, `git@host:path` or `file://…`.
    pub url: String,
    /// The branch, tag or commit; none is the default branch.
    pub reference: Option<String>,
    /// The folder in the repository, with `/`; none is the whole repository.
    pub path: Option<String>,
}

/// A host of repositories whose URLs are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum KnownHost {
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
    /// Codeberg, and other hosts with Forgejo or Gitea.
    Forgejo,
    /// Bitbucket.
    Bitbucket,
    /// Azure Repos.
    Azure,
    /// Any other.
    Other,
}

/// The names of hosts that are known.
const HOSTS: &[(&str, KnownHost)] = &[
    ("github.com", KnownHost::GitHub),
    ("www.github.com", KnownHost::GitHub),
    ("ssh.github.com", KnownHost::GitHub),
    ("gitlab.com", KnownHost::GitLab),
    ("www.gitlab.com", KnownHost::GitLab),
    ("altssh.gitlab.com", KnownHost::GitLab),
    ("codeberg.org", KnownHost::Forgejo),
    ("gitea.com", KnownHost::Forgejo),
    ("bitbucket.org", KnownHost::Bitbucket),
    ("altssh.bitbucket.org", KnownHost::Bitbucket),
    ("dev.azure.com", KnownHost::Azure),
    ("ssh.dev.azure.com", KnownHost::Azure),
];

impl KnownHost {
    /// Returns the host of this name.
    pub fn of(name: &str) -> Self {
        let known = HOSTS.iter().find(|it| it.0.eq_ignore_ascii_case(name));
        match known {
            Some(known) => known.1,
            None if name.to_ascii_lowercase().ends_with(".visualstudio.com") => Self::Azure,
            None => Self::Other,
        }
    }
}

impl GitSource {
    /// Reads the URL of a git repository, whatever it ends with.
    pub fn from_url(url: &str) -> Result<Self, SourceSyntaxError> {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let source: SkillSource = if is_web { format!("git+{url}").parse()? } else { url.parse()? };
        match source.kind {
            SourceKind::Git(git) => Ok(git),
            _ => Err(super::text::refusal(
                url,
                "it is not the URL of a git repository",
                "write a URL such as `https://example.com/team/skills.git`",
            )),
        }
    }

    /// Returns the host.
    pub fn host(&self) -> KnownHost {
        self.host_name().map_or(KnownHost::Other, |it| KnownHost::of(&it))
    }

    /// Returns the name of the host; none if the repository is on this machine.
    pub fn host_name(&self) -> Option<String> {
        match self.url.contains("://") {
            true => {
                let url = Url::parse(&self.url).ok()?;
                let is_own_port = url.port().is_none() || url.scheme() == "ssh";
                let host = url.host_str().filter(|it| !it.is_empty())?.to_ascii_lowercase();
                // Another server may listen on another port.
                Some(if is_own_port { host } else { format!("{host}:{}", url.port()?) })
            }
            false => {
                let (before, _) = self.url.split_once(':')?;
                let host = before.rsplit_once('@').map_or(before, |it| it.1);
                Some(host.to_ascii_lowercase())
            }
        }
    }

    /// Whether this is a repository on GitHub that `owner/repository` means.
    pub fn is_public_shorthand(&self) -> bool {
        self.github().is_some()
    }

    /// Whether both are of the same repository, whatever is asked for of it. Letter case makes no
    /// difference on hosts that ignore it, nor does a `.git` at the end.
    pub fn is_same_repository(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            let url = it.url.trim_end_matches('/');
            let url = url.strip_suffix(".git").unwrap_or(url);
            match it.host() {
                KnownHost::Other => url.to_owned(),
                _ => url.to_ascii_lowercase(),
            }
        };
        key(self) == key(other)
    }

    /// Returns a short name for people, such as `anthropics/skills`.
    pub fn name(&self) -> String {
        let path = match self.url.split_once("://") {
            Some((_, rest)) => rest.split_once('/').map_or(rest, |it| it.1),
            None => self.url.split_once(':').map_or(&*self.url, |it| it.1),
        };
        let segments: Vec<&str> =
            path.split('/').filter(|it| !it.is_empty() && *it != "_git").collect();
        let last = &segments[segments.len().saturating_sub(2)..];
        let name = super::text::decoded(&last.join("/"));
        match name.strip_suffix(".git").unwrap_or(&name) {
            "" => self.url.clone(),
            name => name.to_owned(),
        }
    }

    /// Returns the URL of an archive of a branch, tag or commit, or of the default branch; none if the
    /// host is not known, or the repository is not fetched over HTTPS.
    ///
    /// The archive has one folder at its top, except that of Azure, which is a zip archive without one.
    /// The others are packed with gzip.
    pub fn archive_url(&self, reference: Option<&str>) -> Option<Url> {
        let url = Url::parse(&self.url).ok().filter(|it| it.scheme() == "https")?;
        let host = self.host();
        let project = url.path().trim_matches('/');
        let project = project.strip_suffix(".git").unwrap_or(project);
        if project.is_empty() {
            return None;
        }
        // A slash separates folders for all but GitLab, which takes it as a parameter.
        let at = encoded(reference.unwrap_or("HEAD"), &['?', '#', '&', '+', '"', '<', '>']);
        let archive = match host {
            KnownHost::GitHub => format!("https://codeload.github.com/{project}/tar.gz/{at}"),
            KnownHost::Bitbucket => format!("https://bitbucket.org/{project}/get/{at}.tar.gz"),
            KnownHost::Forgejo => {
                format!("https://{}/{project}/archive/{at}.tar.gz", url.host_str()?)
            }
            KnownHost::GitLab => {
                let project = project.replace('/', "%2F");
                let mut archive = Url::parse(&format!(
                    "https://gitlab.com/api/v4/projects/{project}/repository/archive.tar.gz"
                ))
                .ok()?;
                if let Some(reference) = reference {
                    archive.query_pairs_mut().append_pair("sha", reference);
                }
                return Some(archive);
            }
            KnownHost::Azure => return azure_archive(&url, project, reference),
            KnownHost::Other => return None,
        };
        Url::parse(&archive).ok()
    }

    /// Returns owner and name of a repository on GitHub.
    fn github(&self) -> Option<(&str, &str)> {
        let (owner, name) = self.url.strip_prefix("https://github.com/")?.split_once('/')?;
        let is_valid = page::is_owner(owner) && page::is_repository(name);
        (is_valid && !name.ends_with(".git")).then_some((owner, name))
    }

    /// Writes it with the names of skills.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, skills: &[String]) -> fmt::Result {
        let mut is_short = true;
        let url = &*self.url;
        if let Some((owner, name)) = self.github() {
            write!(f, "{owner}/{name}")?;
        } else if let Some(project) = page::gitlab_project(url) {
            write!(f, "gitlab:{project}")?;
        } else {
            is_short = false;
            let is_web = url.starts_with("https://") || url.starts_with("http://");
            if is_web && !grammar::is_read_as_git(url) {
                f.write_str("git+")?;
            }
            f.write_str(url)?;
        }
        if let Some(path) = &self.path {
            let last = path.rsplit('/').next().unwrap_or_default();
            let is_plain = self.is_public_shorthand()
                && !path.contains(['#', '\\'])
                && path.trim() == path
                && !last.char_indices().skip(1).any(|it| it.1 == '@');
            match is_plain {
                true => write!(f, "/{path}")?,
                false => write!(f, "//{}", encoded(path, &['#', '?', '\\']))?,
            }
        }
        let is_plain = is_short
            && self.path.is_none()
            && !skills.iter().any(|it| it.contains(['#', ',', '/', ':', '\\', '%']));
        match (&self.reference, skills) {
            (None, []) => Ok(()),
            (None, skills) if is_plain => write!(f, "@{}", skills.join(",")),
            (None, skills) => write!(f, "#@{}", encoded_names(skills)),
            (Some(reference), []) => write!(f, "#{}", encoded(reference, &['@', '#'])),
            (Some(reference), skills) => {
                write!(f, "#{}@{}", encoded(reference, &['@', '#']), encoded_names(skills))
            }
        }
    }
}

/// Returns the URL of a zip archive of a repository in Azure Repos.
fn azure_archive(url: &Url, project: &str, reference: Option<&str>) -> Option<Url> {
    let (project, repository) = project.split_once("_git/")?;
    let mut archive = url.clone();
    archive.set_path(&format!("{project}_apis/git/repositories/{repository}/items"));
    let mut query = archive.query_pairs_mut();
    query.append_pair("path", "/").append_pair("$format", "zip").append_pair("api-version", "7.1");
    if let Some(reference) = reference {
        let is_commit = reference.len() == 40 && reference.bytes().all(|it| it.is_ascii_hexdigit());
        let (kind, version) = match reference.strip_prefix("refs/tags/") {
            Some(tag) => ("tag", tag),
            None if is_commit => ("commit", reference),
            None => ("branch", reference.strip_prefix("refs/heads/").unwrap_or(reference)),
        };
        query.append_pair("versionDescriptor.versionType", kind);
        query.append_pair("versionDescriptor.version", version);
    }
    drop(query);
    Some(archive)
}
