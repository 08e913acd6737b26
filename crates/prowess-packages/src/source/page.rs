//! What a URL of the web means: a page of a host of repositories, a registry, a download, or a site.

use url::Url;

use super::{
    git::{GitSource, KnownHost},
    grammar::{Fragment, clawhub, is_loopback, npm, web_url},
    text::{Refusal, check_reference, decoded, names, relative_path},
};
use crate::source::{SkillSource, SourceKind};

/// The ends of names of what is downloaded as it is.
const DOWNLOADS: &[&str] = &[".zip", ".tar.gz", ".tgz", ".tar", ".skill", ".md"];
/// The names that Forgejo and Gitea put before a branch, tag or commit.
const REFERENCE_KINDS: &[&str] = &["branch", "tag", "commit"];
/// First names on clawhub.ai that are not owners.
const CLAWHUB_PAGES: &[&str] = &[
    ".well-known",
    "about",
    "admin",
    "api",
    "cli",
    "dashboard",
    "docs",
    "import",
    "login",
    "plugins",
    "publish",
    "search",
    "settings",
    "stars",
    "u",
    "upload",
    "users",
];

/// Whether a name has the end of an archive or a document.
pub(super) fn is_download(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    DOWNLOADS.iter().any(|it| name.strip_suffix(it).is_some_and(|stem| !stem.ends_with('/')))
}

/// Whether a name can be that of a user or an organization on GitHub.
pub(super) fn is_owner(name: &str) -> bool {
    let is_fit = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    (1..=100).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(is_fit)
}

/// Whether a name can be that of a repository on GitHub.
pub(super) fn is_repository(name: &str) -> bool {
    let is_fit = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    (1..=100).contains(&name.len())
        && !matches!(name, "." | "..")
        && !name.starts_with('-')
        && name.bytes().all(is_fit)
}

/// Returns a name of a repository without `.git` at its end.
pub(super) fn without_git(mut name: &str) -> &str {
    while let Some(shorter) = name.strip_suffix(".git").filter(|it| !it.is_empty()) {
        name = shorter;
    }
    name
}

/// Returns the groups and the project of a URL of gitlab.com, if they can be written as `gitlab:…`.
pub(super) fn gitlab_project(url: &str) -> Option<&str> {
    let project = url.strip_prefix("https://gitlab.com/")?;
    let is_plain = project.split('/').count() > 1
        && project.split('/').all(|it| is_repository(it) && without_git(it) == it);
    is_plain.then_some(project)
}

/// Reads a URL with `https://` or `http://`; `is_git` says that it begins with `git+`.
pub(super) fn parse(
    text: &str,
    fragment: Option<Fragment>,
    is_git: bool,
) -> Result<SkillSource, Refusal> {
    let url = web_url(text)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let segments: Vec<String> = url.path().split('/').skip(1).map(decoded).collect();
    if segments.iter().any(|it| it.contains(char::is_control)) {
        return Err(Refusal::new(
            "it contains control characters",
            "type it by hand instead of copying it",
        ));
    }
    let mut parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    while parts.last().is_some_and(|it| it.is_empty()) {
        parts.pop();
    }
    let page = Page { url: &url, host: &host, parts: &parts, fragment: fragment.clone() };
    if let Some(found) = page.repository(is_git) {
        return found;
    }
    // Nothing else has branches.
    let skills = match fragment {
        None => Vec::new(),
        Some(Fragment { reference: None, skills }) => skills,
        Some(Fragment { reference: Some(reference), .. }) => {
            let git = url.as_str().trim_end_matches('/');
            return Err(Refusal::new(
                "only git repositories have branches and tags, and this may be any site",
                format!("for a git repository write `git+{git}#{reference}`"),
            ));
        }
    };
    if let Some(kind) = page.registry()? {
        return Ok(SkillSource { kind, skills });
    }
    Ok(SkillSource { kind: page.site(), skills })
}

/// A URL in its parts.
struct Page<'u> {
    url: &'u Url,
    host: &'u str,
    /// The names of its path, decoded.
    parts: &'u [&'u str],
    fragment: Option<Fragment>,
}

/// What a page of a host says behind the name of a repository.
#[derive(Default)]
struct Behind<'u> {
    /// A branch, tag or commit, and what follows it.
    tree: Option<&'u [&'u str]>,
    /// Whether the last name is that of a file.
    is_file: bool,
}

impl<'u> Page<'u> {
    /// Returns the repository that it is a page of; none if it is not a page of a known form.
    fn repository(&self, is_git: bool) -> Option<Result<SkillSource, Refusal>> {
        let known = match self.url.port() {
            None => KnownHost::of(self.host),
            Some(_) => KnownHost::Other,
        };
        if self.host == "raw.githubusercontent.com"
            || self.host == "codeload.github.com"
            || self.host == "objects.githubusercontent.com"
        {
            return Some(self.download());
        }
        if self.host == "gist.github.com" && self.url.port().is_none() {
            let id = self.parts.last().map(|it| without_git(it)).unwrap_or_default();
            if !is_repository(id) {
                return Some(Err(Refusal::new(
                    "it has no name of a gist",
                    "write `https://gist.github.com/owner/id`",
                )));
            }
            let url = format!("https://gist.github.com/{id}.git");
            return Some(self.git(url, Behind::default(), None));
        }
        match known {
            KnownHost::GitHub => return Some(self.github("https://github.com")),
            KnownHost::GitLab => return Some(self.gitlab(known)),
            KnownHost::Forgejo => return Some(self.forgejo(2, known)),
            KnownHost::Bitbucket => return Some(self.bitbucket()),
            KnownHost::Azure | KnownHost::Other => {}
        }
        if self.parts.contains(&"_git") {
            return Some(self.azure());
        }
        if self.parts.windows(2).any(|it| it[0] == "-" && is_page(it[1])) {
            return Some(self.gitlab(known));
        }
        let kind = self
            .parts
            .windows(2)
            .position(|it| matches!(it[0], "src" | "raw") && REFERENCE_KINDS.contains(&it[1]));
        if let Some(at) = kind.filter(|it| *it >= 2) {
            return Some(self.forgejo(at, known));
        }
        if self.parts.len() > 3 && matches!(self.parts[2], "tree" | "blob") {
            return Some(self.github(&self.origin()));
        }
        self.plain(is_git)
    }

    /// A URL of a repository without more: with `.git` or `git+`.
    fn plain(&self, is_git: bool) -> Option<Result<SkillSource, Refusal>> {
        let end = self.parts.iter().position(|it| {
            let name = it.split_once(".git@").map_or(it.strip_suffix(".git"), |it| Some(it.0));
            name.is_some_and(|it| !it.is_empty())
        });
        let empty = self.parts.iter().position(|it| it.is_empty());
        let end = match (end, is_git) {
            (Some(end), _) => end + 1,
            (None, true) => empty.unwrap_or(self.parts.len()),
            (None, false) => return None,
        };
        if end == 0 {
            return Some(Err(Refusal::new(
                "it has no path to a repository",
                format!("write `{}/owner/repository.git`", self.origin()),
            )));
        }
        let (before, behind) = self.parts.split_at(end);
        if behind.first().is_some_and(|it| !it.is_empty()) {
            let url = format!("{}/{}", self.origin(), before.join("/"));
            return Some(Err(Refusal::new(
                "a folder in a repository is behind `//`",
                format!("write `{url}//{}`", behind.join("/")),
            )));
        }
        if self.url.query().is_some() {
            return Some(Err(Refusal::new(
                "the URL of a repository has no `?`",
                format!("write `{}/{}`", self.origin(), before.join("/")),
            )));
        }
        let (last, skill) = match before[end - 1].split_once('@') {
            Some((last, skill)) if last.ends_with(".git") => (last, Some(skill)),
            _ => (before[end - 1], None),
        };
        // The URL is kept as it was written, but for what is asked for of it.
        let mut url = self.url.clone();
        url.set_query(None);
        let path = url.path().split('/').skip(1).take(end);
        let mut path: Vec<String> = path.map(str::to_owned).collect();
        if skill.is_some() {
            path[end - 1] = last.to_owned();
        }
        url.set_path(&format!("/{}", path.join("/")));
        let skills = match skill.map(|it| names(it, false)).transpose() {
            Ok(skills) => skills.unwrap_or_default(),
            Err(refusal) => return Some(Err(refusal)),
        };
        Some(self.made(url.to_string(), None, relative_path(behind.iter().copied()), skills))
    }

    fn github(&self, origin: &str) -> Result<SkillSource, Refusal> {
        let [owner, name, behind @ ..] = self.parts else {
            let owner = self.parts.first().copied().unwrap_or("owner");
            return Err(Refusal::new(
                "it has no repository",
                format!("write `{}/repository`", if is_owner(owner) { owner } else { "owner" }),
            ));
        };
        let (name, skill) = name.split_once('@').map_or((*name, None), |it| (it.0, Some(it.1)));
        let name = without_git(name);
        if !is_owner(owner) || !is_repository(name) {
            return Err(Refusal::new(
                "this is not a name of a repository on GitHub",
                format!("write `{origin}/owner/repository`"),
            ));
        }
        let page = match behind {
            ["raw", _, ..] | ["archive", _, ..] => return self.download(),
            ["releases", "download", _, ..] | ["releases", "latest", "download", _, ..] => {
                return self.download();
            }
            ["blob", .., file]
                if is_download(file) && !file.to_ascii_lowercase().ends_with(".md") =>
            {
                let raw = self.url.path().replacen("/blob/", "/raw/", 1);
                let mut url = self.url.clone();
                url.set_path(&raw);
                return self.downloaded(url);
            }
            ["tree", tree @ ..] if !tree.is_empty() => Behind { tree: Some(tree), is_file: false },
            ["blob", tree @ ..] if tree.len() > 1 => Behind { tree: Some(tree), is_file: true },
            ["commit", commit, ..] => {
                Behind { tree: Some(std::slice::from_ref(commit)), is_file: false }
            }
            ["releases", "tag", tag @ ..] if !tag.is_empty() => {
                return self.made(
                    format!("{origin}/{owner}/{name}"),
                    Some(tag.join("/")),
                    Ok(None),
                    Vec::new(),
                );
            }
            ["", path @ ..] => {
                let skills = skill.map(|it| names(it, false)).transpose()?.unwrap_or_default();
                let url = format!("{origin}/{owner}/{name}");
                return self.made(url, None, relative_path(path.iter().copied()), skills);
            }
            // Any other page is one of the repository.
            _ => Behind::default(),
        };
        let is_public = origin == "https://github.com";
        let end = if is_public { "" } else { ".git" };
        self.git(format!("{origin}/{owner}/{name}{end}"), page, skill)
    }

    fn gitlab(&self, known: KnownHost) -> Result<SkillSource, Refusal> {
        let end = self.parts.iter().position(|it| matches!(*it, "-" | ""));
        let (project, behind) = self.parts.split_at(end.unwrap_or(self.parts.len()));
        if project.len() < 2 {
            return Err(Refusal::new(
                "it has no repository",
                format!("write `{}/group/repository`", self.origin()),
            ));
        }
        let (last, skill) = match project[project.len() - 1].split_once('@') {
            Some((last, skill)) => (last, Some(skill)),
            None => (project[project.len() - 1], None),
        };
        let mut project = project.to_vec();
        let at = project.len() - 1;
        project[at] = without_git(last);
        if project.iter().any(|it| !is_repository(it)) {
            return Err(Refusal::new(
                "this is not a name of a repository on GitLab",
                format!("write `{}/group/repository`", self.origin()),
            ));
        }
        let is_public = known == KnownHost::GitLab;
        let origin = if is_public { "https://gitlab.com".to_owned() } else { self.origin() };
        let end = if is_public { "" } else { ".git" };
        let url = format!("{origin}/{}{end}", project.join("/"));
        let page = match behind {
            ["-", "raw" | "archive", _, ..] => return self.download(),
            ["-", "blob", .., file]
                if is_download(file) && !file.to_ascii_lowercase().ends_with(".md") =>
            {
                let mut url = self.url.clone();
                url.set_path(&self.url.path().replacen("/-/blob/", "/-/raw/", 1));
                return self.downloaded(url);
            }
            ["-", "tree", tree @ ..] if !tree.is_empty() => {
                Behind { tree: Some(tree), is_file: false }
            }
            ["-", "blob", tree @ ..] if tree.len() > 1 => {
                Behind { tree: Some(tree), is_file: true }
            }
            ["-", "commit" | "tags", reference, ..] => {
                Behind { tree: Some(std::slice::from_ref(reference)), is_file: false }
            }
            ["", path @ ..] => {
                let skills = skill.map(|it| names(it, false)).transpose()?.unwrap_or_default();
                return self.made(url, None, relative_path(path.iter().copied()), skills);
            }
            _ => Behind::default(),
        };
        self.git(url, page, skill)
    }

    /// A page of Forgejo or Gitea, whose repository ends at this part.
    fn forgejo(&self, at: usize, known: KnownHost) -> Result<SkillSource, Refusal> {
        if self.parts.len() < 2 {
            return Err(Refusal::new(
                "it has no repository",
                format!("write `{}/owner/repository`", self.origin()),
            ));
        }
        let (project, behind) = self.parts.split_at(at.min(self.parts.len()));
        let mut project = project.to_vec();
        let last = project.len() - 1;
        let (name, skill) = match project[last].split_once('@') {
            Some((name, skill)) => (name, Some(skill)),
            None => (project[last], None),
        };
        project[last] = without_git(name);
        if project.iter().any(|it| !is_repository(it)) {
            return Err(Refusal::new(
                "this is not a name of a repository",
                format!("write `{}/owner/repository`", self.origin()),
            ));
        }
        let end = if known == KnownHost::Forgejo { "" } else { ".git" };
        let origin = match known {
            KnownHost::Forgejo => format!("https://{}", self.host),
            _ => self.origin(),
        };
        let url = format!("{origin}/{}{end}", project.join("/"));
        let page = match behind {
            ["raw" | "media" | "archive", _, ..] | ["releases", "download", _, ..] => {
                return self.download();
            }
            ["src", kind, tree @ ..] if REFERENCE_KINDS.contains(kind) && !tree.is_empty() => {
                let file = tree.last().filter(|_| tree.len() > 1);
                // Its pages of files and folders look alike.
                let is_file = file.is_some_and(|it| *it == "SKILL.md");
                Behind { tree: Some(tree), is_file }
            }
            ["commit", commit, ..] => {
                Behind { tree: Some(std::slice::from_ref(commit)), is_file: false }
            }
            ["", path @ ..] => {
                let skills = skill.map(|it| names(it, false)).transpose()?.unwrap_or_default();
                return self.made(url, None, relative_path(path.iter().copied()), skills);
            }
            _ => Behind::default(),
        };
        self.git(url, page, skill)
    }

    fn bitbucket(&self) -> Result<SkillSource, Refusal> {
        let [owner, name, behind @ ..] = self.parts else {
            return Err(Refusal::new(
                "it has no repository",
                "write `https://bitbucket.org/workspace/repository`",
            ));
        };
        let (name, skill) = name.split_once('@').map_or((*name, None), |it| (it.0, Some(it.1)));
        let name = without_git(name);
        if !is_repository(owner) || !is_repository(name) {
            return Err(Refusal::new(
                "this is not a name of a repository on Bitbucket",
                "write `https://bitbucket.org/workspace/repository`",
            ));
        }
        let url = format!("https://bitbucket.org/{owner}/{name}");
        let page = match behind {
            ["raw" | "get" | "downloads", _, ..] => return self.download(),
            ["src", tree @ ..] if !tree.is_empty() => {
                let is_file = tree.len() > 1 && tree.last() == Some(&"SKILL.md");
                Behind { tree: Some(tree), is_file }
            }
            ["commits", commit, ..] => {
                Behind { tree: Some(std::slice::from_ref(commit)), is_file: false }
            }
            ["branch", ..] if behind.len() > 1 => {
                return self.made(url, Some(behind[1..].join("/")), Ok(None), Vec::new());
            }
            ["", path @ ..] => {
                let skills = skill.map(|it| names(it, false)).transpose()?.unwrap_or_default();
                return self.made(url, None, relative_path(path.iter().copied()), skills);
            }
            _ => Behind::default(),
        };
        self.git(url, page, skill)
    }

    fn azure(&self) -> Result<SkillSource, Refusal> {
        let at = self.parts.iter().position(|it| *it == "_git").unwrap_or_default();
        let name = self.parts.get(at + 1).filter(|it| !it.is_empty());
        let has_owner = self.parts[..at].iter().any(|it| !it.is_empty());
        let Some(name) = name.filter(|_| has_owner) else {
            return Err(Refusal::new(
                "it has no repository behind `_git`",
                "write `https://dev.azure.com/organization/project/_git/repository`",
            ));
        };
        let (name, skill) = match name.split_once('@') {
            Some((before, skill)) if !before.is_empty() => (before, Some(skill)),
            _ => (*name, None),
        };
        let mut url = self.url.clone();
        url.set_query(None);
        let _ = url.set_username("");
        if let Ok(mut path) = url.path_segments_mut() {
            path.clear();
            path.extend(self.parts[..=at].iter().filter(|it| !it.is_empty()));
            path.push(without_git(name));
        }
        let mut reference = None;
        let mut folder = None;
        for (key, value) in self.url.query_pairs() {
            match &*key {
                "version" => {
                    // Branch, tag or commit.
                    let kinds = ["GB", "GT", "GC"];
                    let kind = value.get(..2).map(str::to_ascii_uppercase);
                    if kind.is_some_and(|it| kinds.contains(&&*it)) && value.len() > 2 {
                        reference = Some(value[2..].to_owned());
                    }
                }
                "path" => folder = relative_path(value.split('/'))?,
                _ => {}
            }
        }
        if let Some(["", path @ ..]) = self.parts.get(at + 2..) {
            folder = relative_path(path.iter().copied())?;
        }
        let folder = match folder {
            Some(it) if it == "SKILL.md" => None,
            Some(it) => Some(it.strip_suffix("/SKILL.md").unwrap_or(&it).to_owned()),
            None => None,
        };
        let skills = skill.map(|it| names(it, false)).transpose()?.unwrap_or_default();
        self.made(url.to_string(), reference, Ok(folder), skills)
    }

    /// Returns what a page of a registry shows; none if it is no such page.
    fn registry(&self) -> Result<Option<SourceKind>, Refusal> {
        let host = self.host.strip_prefix("www.").unwrap_or(self.host);
        if self.url.port().is_some() || self.url.scheme() != "https" {
            return Ok(None);
        }
        Ok(match (host, self.parts) {
            ("npmjs.com", ["package", scope, name, rest @ ..]) if scope.starts_with('@') => {
                Some(npm(&format!("{scope}/{name}{}", version_of(rest)))?)
            }
            ("npmjs.com", ["package", name, rest @ ..]) => {
                Some(npm(&format!("{name}{}", version_of(rest)))?)
            }
            ("clawhub.ai" | "clawhub.com", ["skills", slug]) => Some(clawhub(None, slug)?),
            ("clawhub.ai" | "clawhub.com", [owner, slug] | [owner, "skills", slug])
                if !CLAWHUB_PAGES.contains(owner) && *owner != "skills" =>
            {
                let owner = owner.trim_start_matches('@');
                Some(clawhub(None, &format!("@{owner}/{slug}"))?)
            }
            _ => None,
        })
    }

    fn site(&self) -> SourceKind {
        let mut url = self.url.clone();
        if self.parts.last().is_some_and(|it| is_download(it)) {
            return SourceKind::Download(url);
        }
        // The index itself was named.
        if let [before @ .., ".well-known", "agent-skills" | "skills", "index.json"] = self.parts {
            url.set_path(&before.join("/"));
        }
        SourceKind::Site(url)
    }

    fn download(&self) -> Result<SkillSource, Refusal> {
        self.downloaded(self.url.clone())
    }

    fn downloaded(&self, url: Url) -> Result<SkillSource, Refusal> {
        let fragment = self.fragment.clone().unwrap_or_default();
        if let Some(reference) = fragment.reference {
            return Err(Refusal::new(
                "a download has no branches and tags",
                format!("leave `#{reference}` out, or name the repository"),
            ));
        }
        Ok(SkillSource { kind: SourceKind::Download(url), skills: fragment.skills })
    }

    fn git(
        &self,
        url: String,
        page: Behind<'_>,
        skill: Option<&str>,
    ) -> Result<SkillSource, Refusal> {
        let skills = skill.map(|it| names(it, false)).transpose()?.unwrap_or_default();
        let Some(tree) = page.tree else { return self.made(url, None, Ok(None), skills) };
        let asked = self.fragment.as_ref().and_then(|it| it.reference.as_deref());
        let end = tree.len() - usize::from(page.is_file);
        // Only a `#` says where a branch with a slash ends.
        let length = match asked {
            None => 1,
            Some(asked) => {
                let count = asked.split('/').count();
                if tree.len() < count || tree[..count].join("/") != asked {
                    return Err(Refusal::new(
                        format!("it names two branches, `{}` and `{asked}`", tree[0]),
                        "leave one of them out",
                    ));
                }
                count
            }
        };
        let reference = tree[..length].join("/");
        let path = relative_path(tree.get(length..end).unwrap_or_default().iter().copied());
        self.made(url, Some(reference), path, skills)
    }

    fn made(
        &self,
        url: String,
        reference: Option<String>,
        path: Result<Option<String>, Refusal>,
        skills: Vec<String>,
    ) -> Result<SkillSource, Refusal> {
        if url.starts_with("http://") && !is_loopback(self.url) {
            return Err(Refusal::new(
                "git over plain HTTP can be changed on its way",
                format!("write `https{}`", url.trim_start_matches("http")),
            ));
        }
        let fragment = self.fragment.clone().unwrap_or_default();
        let reference = match (reference, fragment.reference.clone()) {
            (Some(one), Some(other)) if one != other => {
                return Err(Refusal::new(
                    format!("it names two branches, `{one}` and `{other}`"),
                    "leave one of them out",
                ));
            }
            (one, other) => one.or(other),
        };
        reference.as_deref().map(check_reference).transpose()?;
        let git = GitSource { url, reference, path: path? };
        Ok(SkillSource { kind: SourceKind::Git(git), skills: fragment.skills_or(skills)? })
    }

    /// The scheme, host and port.
    fn origin(&self) -> String {
        let port = self.url.port().map(|it| format!(":{it}")).unwrap_or_default();
        format!("{}://{}{port}", self.url.scheme(), self.host)
    }
}

/// Whether GitLab has pages of this name behind `/-/` that say something about files.
fn is_page(name: &str) -> bool {
    matches!(name, "tree" | "blob" | "raw" | "archive")
}

/// Returns the version in a page of npm.
fn version_of(behind: &[&str]) -> String {
    match behind {
        ["v", version, ..] => format!("@{version}"),
        _ => String::new(),
    }
}
