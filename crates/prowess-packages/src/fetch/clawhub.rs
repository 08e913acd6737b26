//! Fetches skills from registries that speak version 1 of the ClawHub API.

use std::fs;

use prowess_http::Url;
use serde::Deserialize;

use crate::{
    archive::UnpackOptions,
    cache::FetchedTree,
    digest::TreeFile,
    fetch::{
        NewestVersion, PackageFetcher, Pin, TreeFacts, blocking,
        error::FetchPackageError,
        git_program::shown,
        web::{WebRequest, WebResponse, check_encrypted, join},
    },
    source::{SkillSource, SourceKind},
};

/// A skill that a registry has found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RegistryMatch {
    /// The source, as a user writes it.
    pub source: SkillSource,
    /// The short name.
    pub slug: String,
    /// The owner.
    pub owner: Option<String>,
    /// The name for people.
    pub display_name: Option<String>,
    /// Its summary.
    pub summary: Option<String>,
    /// The newest version.
    pub version: Option<String>,
    /// How often it was downloaded.
    pub downloads: Option<u64>,
    /// When it was changed last, in seconds since 1970.
    pub updated: Option<u64>,
    /// How well it fits, by the measure of the registry.
    pub score: f64,
}

/// A skill of a registry, as a source names it.
struct RegistrySkill<'a> {
    /// The API, without a slash at the end.
    base: String,
    owner: Option<&'a str>,
    slug: &'a str,
}

/// The most bytes of an answer that is not an archive.
const MAX_ANSWER: u64 = 8 << 20;
/// The most matches of a search.
const MAX_MATCHES: usize = 200;
/// The file that registries add to what they were given.
const ADDED: &str = "_meta.json";

#[derive(Debug, Deserialize)]
struct Discovery {
    #[serde(rename = "apiBase", alias = "registry")]
    base: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SkillAnswer {
    skill: Option<SkillRow>,
    latest_version: Option<VersionRow>,
    owner: Option<OwnerRow>,
    moderation: Option<Moderation>,
}

#[derive(Debug, Deserialize)]
struct SkillRow {
    slug: String,
    #[serde(default)]
    tags: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionRow {
    version: String,
    /// In milliseconds.
    created_at: Option<f64>,
    #[serde(default)]
    files: Vec<FileRow>,
}

#[derive(Debug, Deserialize)]
struct FileRow {
    path: String,
    sha256: String,
}

#[derive(Debug, Deserialize)]
struct OwnerRow {
    handle: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Moderation {
    is_suspicious: bool,
    is_malware_blocked: bool,
    verdict: Option<String>,
    summary: Option<String>,
}

#[derive(Debug, Deserialize)]
struct VersionAnswer {
    version: VersionRow,
}

#[derive(Debug, Deserialize)]
struct VersionsAnswer {
    items: Vec<VersionRow>,
}

#[derive(Debug, Deserialize)]
struct AmbiguousAnswer {
    matches: Vec<AmbiguousRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AmbiguousRow {
    owner_handle: String,
    slug: String,
}

#[derive(Debug, Deserialize)]
struct GitHubAnswer {
    repo: String,
    commit: String,
    #[serde(default)]
    path: String,
}

#[derive(Debug, Deserialize)]
struct InstallAnswer {
    github: Option<GitHubAnswer>,
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct SearchAnswer {
    results: Vec<SearchRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchRow {
    #[serde(default)]
    score: f64,
    #[serde(alias = "name")]
    slug: Option<String>,
    display_name: Option<String>,
    #[serde(alias = "description")]
    summary: Option<String>,
    version: Option<String>,
    downloads: Option<f64>,
    /// In milliseconds.
    updated_at: Option<f64>,
    owner_handle: Option<String>,
    owner: Option<OwnerRow>,
}

/// The facts about a version before it is downloaded.
struct ChosenVersion {
    version: String,
    published: Option<u64>,
    /// Its files with their digests, if the registry lists them.
    files: Vec<FileRow>,
    owner: Option<String>,
    slug: String,
    notes: Vec<String>,
    warning: Option<String>,
}

impl PackageFetcher {
    pub(super) async fn fetch_clawhub(
        &self,
        source: &SkillSource,
        pin: Option<&Pin>,
    ) -> Result<FetchedTree, FetchPackageError> {
        let SourceKind::ClawHub { registry, owner, slug, version } = &source.kind else {
            return Err(FetchPackageError::NotFound { url: source.to_string() });
        };
        let named = registry.as_ref().map_or(&*self.clawhub, Url::as_str);
        let named = named.trim_end_matches('/');
        let key = |version: &str| {
            format!("clawhub\n{named}\n{}\n{slug}\n{version}", owner.as_deref().unwrap_or_default())
        };
        let pinned = match pin {
            Some(Pin::Version(version)) => Some(version.as_str()),
            _ => None,
        };
        if let Some(version) = pinned
            && let Some(tree) = self.recall(vec![key(version)]).await
        {
            return Ok(FetchedTree { source: source.clone(), ..tree });
        }
        let followed = format!("{}\nfollowed", key(version.as_deref().unwrap_or_default()));
        if self.offline {
            let recalled = if pinned.is_some() { None } else { self.recall(vec![followed]).await };
            return recalled
                .ok_or_else(|| FetchPackageError::Offline { source_text: source.to_string() });
        }
        let wanted = self.clawhub_skill(named, owner.as_deref(), slug).await?;
        let chosen = self.choose(&wanted, pinned.or(version.as_deref())).await?;
        let tree = match self.recall(vec![key(&chosen.version)]).await {
            // What a registry says about it may have changed.
            Some(tree) => FetchedTree { source: source.clone(), warning: chosen.warning, ..tree },
            None => self.download_clawhub(source, &wanted, chosen).await?,
        };
        let mut keys = vec![key(tree.version.as_deref().unwrap_or_default())];
        if pinned.is_none() {
            keys.push(followed);
        }
        self.remember(keys, &tree).await?;
        Ok(tree)
    }

    pub(super) async fn newest_of_clawhub(
        &self,
        source: &SkillSource,
    ) -> Result<NewestVersion, FetchPackageError> {
        let SourceKind::ClawHub { registry, owner, slug, version } = &source.kind else {
            return Err(FetchPackageError::NotFound { url: source.to_string() });
        };
        if self.offline {
            return Err(FetchPackageError::Offline { source_text: source.to_string() });
        }
        let named = registry.as_ref().map_or(&*self.clawhub, Url::as_str);
        let wanted = self.clawhub_skill(named, owner.as_deref(), slug).await?;
        let chosen = self.choose(&wanted, version.as_deref()).await?;
        Ok(NewestVersion {
            version: Some(chosen.version),
            published: chosen.published,
            ..NewestVersion::default()
        })
    }

    /// Searches a registry; none is the default one. An outage is an error, never an empty result.
    pub async fn search(
        &self,
        registry: Option<&Url>,
        words: &str,
        limit: usize,
    ) -> Result<Vec<RegistryMatch>, FetchPackageError> {
        let named = registry.map_or(&*self.clawhub, Url::as_str);
        if self.offline {
            return Err(FetchPackageError::Offline { source_text: shown(named) });
        }
        let base = self.api_of(named).await?;
        let limit = limit.min(MAX_MATCHES);
        let mut url = join(&base, "api/v1/search")?;
        url.query_pairs_mut().append_pair("q", words).append_pair("limit", &limit.to_string());
        let response = self.ask(&url).await?.succeeded(&self.web).await?;
        let answer: SearchAnswer = self.json(response).await?;
        let matches = answer.results.into_iter().take(limit).filter_map(|row| {
            let slug = row.slug.filter(|it| is_name(it))?;
            let owner = row.owner_handle.or_else(|| row.owner?.handle).filter(|it| is_name(it));
            Some(RegistryMatch {
                source: SkillSource {
                    kind: SourceKind::ClawHub {
                        registry: registry.cloned(),
                        owner: owner.clone(),
                        slug: slug.clone(),
                        version: None,
                    },
                    skills: Vec::new(),
                },
                slug,
                owner,
                display_name: row.display_name,
                summary: row.summary,
                version: row.version,
                downloads: row.downloads.map(|it| it as u64),
                updated: row.updated_at.map(seconds),
                score: row.score,
            })
        });
        Ok(matches.collect())
    }

    async fn clawhub_skill<'a>(
        &self,
        named: &str,
        owner: Option<&'a str>,
        slug: &'a str,
    ) -> Result<RegistrySkill<'a>, FetchPackageError> {
        let bad = [owner.unwrap_or("a"), slug].into_iter().find(|it| !is_name(it));
        if let Some(bad) = bad {
            return Err(FetchPackageError::NotFound { url: prowess::visible(bad).to_string() });
        }
        Ok(RegistrySkill { base: self.api_of(named).await?, owner, slug })
    }

    /// Returns the URL of the API of a registry: a site can say that it is elsewhere.
    pub(super) async fn api_of(&self, named: &str) -> Result<String, FetchPackageError> {
        let base = named.trim_end_matches('/').to_owned();
        let root = join(&base, "")?;
        check_encrypted(&root)?;
        if base == super::CLAWHUB || root.path() != "/" {
            return Ok(base);
        }
        let known = self.registries.lock().ok().and_then(|it| it.get(&base).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let found = self.discover_api(&base, &root).await?;
        if let Ok(mut registries) = self.registries.lock() {
            registries.insert(base, found.clone());
        }
        Ok(found)
    }

    async fn discover_api(&self, base: &str, root: &Url) -> Result<String, FetchPackageError> {
        for name in ["clawhub.json", "clawdhub.json"] {
            let url = join(base, &format!(".well-known/{name}"))?;
            let response = self.ask(&url).await?;
            if response.status != 200 {
                continue;
            }
            let body = self.web.body(response).await?;
            let Ok(discovery) = serde_json::from_slice::<Discovery>(&body) else { continue };
            // Some give the path of version 1 itself.
            let place = root.join(&discovery.base).ok();
            let place = place.filter(|it| it.origin() == root.origin() || it.scheme() == "https");
            let Some(place) = place else { continue };
            if place.host_str() != root.host_str() {
                return Err(FetchPackageError::Refused {
                    url: shown(base),
                    why: format!(
                        "its API is at `{}`; use that as the registry if you trust it",
                        shown(place.as_str())
                    ),
                });
            }
            let place = place.as_str().trim_end_matches('/');
            return Ok(place.strip_suffix("/api/v1").unwrap_or(place).to_owned());
        }
        Ok(base.to_owned())
    }

    async fn ask(&self, url: &Url) -> Result<WebResponse, FetchPackageError> {
        let request =
            WebRequest { accept: Some("application/json"), ..WebRequest::new(url, MAX_ANSWER) };
        self.web.send(request).await
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        response: WebResponse,
    ) -> Result<T, FetchPackageError> {
        let url = shown(response.url.as_str());
        let body = self.web.body(response).await?;
        serde_json::from_slice(&body)
            .map_err(|error| FetchPackageError::Malformed { url, why: error.to_string() })
    }

    /// Finds the version that is wanted, and what the registry says about it.
    async fn choose(
        &self,
        wanted: &RegistrySkill<'_>,
        version: Option<&str>,
    ) -> Result<ChosenVersion, FetchPackageError> {
        let response = self.ask(&wanted.url("")?).await?;
        let answer: SkillAnswer = self.answer(wanted, response).await?;
        let name = wanted.name();
        let moderation = answer.moderation.unwrap_or_default();
        let summary = moderation.summary.as_deref().map(line).filter(|it| !it.is_empty());
        if moderation.is_malware_blocked || moderation.verdict.as_deref() == Some("malicious") {
            let why = summary.unwrap_or_else(|| "it was found to be malicious".to_owned());
            return Err(FetchPackageError::Blocked { name, why });
        }
        let is_suspicious =
            moderation.is_suspicious || moderation.verdict.as_deref() == Some("suspicious");
        let warning = is_suspicious
            .then(|| summary.unwrap_or_else(|| "the registry marks it as suspicious".to_owned()));
        let Some(skill) = answer.skill else {
            return Err(FetchPackageError::NotFound { url: name });
        };
        let latest = answer.latest_version;
        let tagged = version.and_then(|it| skill.tags.get(it)).and_then(|it| it.as_str());
        let version = match (tagged.or(version), &latest) {
            (Some("latest") | None, Some(latest)) => latest.version.clone(),
            (Some(version), _) => version.to_owned(),
            (None, None) => return Err(self.without_version(wanted).await),
        };
        let place = format!("/versions/{}", segment(&version));
        let response = self.ask(&wanted.url(&place)?).await?;
        let is_latest = latest.as_ref().is_some_and(|it| it.version == version);
        let row = match response.status {
            // Not every registry has this.
            404 if is_latest => latest,
            404 => {
                let versions = self.versions(wanted).await;
                if versions.is_empty() || !versions.contains(&version) {
                    let wanted = version;
                    return Err(FetchPackageError::UnknownVersion { name, wanted, versions });
                }
                None
            }
            _ => Some(self.answer::<VersionAnswer>(wanted, response).await?.version),
        };
        let mut notes = Vec::new();
        if skill.slug != wanted.slug {
            notes.push(format!("`{name}` is now called `{}`", prowess::visible(&skill.slug)));
        }
        Ok(ChosenVersion {
            version,
            published: row.as_ref().and_then(|it| it.created_at).map(seconds),
            files: row.map(|it| it.files).unwrap_or_default(),
            owner: answer.owner.and_then(|it| it.handle).filter(|it| is_name(it)),
            slug: if is_name(&skill.slug) { skill.slug } else { wanted.slug.to_owned() },
            notes,
            warning,
        })
    }

    /// Returns why a skill has no version in the registry.
    async fn without_version(&self, wanted: &RegistrySkill<'_>) -> FetchPackageError {
        let name = wanted.name();
        let none = FetchPackageError::UnknownVersion {
            name: name.clone(),
            wanted: "latest".to_owned(),
            versions: Vec::new(),
        };
        let Ok(url) = wanted.url("/install") else { return none };
        let Ok(response) = self.ask(&url).await else { return none };
        let status = response.status;
        let Ok(answer) = self.json::<InstallAnswer>(response).await else { return none };
        let message = answer.message.as_deref().map(line).unwrap_or_default();
        match (status, answer.github) {
            (200, Some(github)) => github.refusal(&name),
            (423, _) => FetchPackageError::Pending { name, why: message },
            (410, _) => FetchPackageError::Withdrawn { name, why: message },
            (403, _) => FetchPackageError::Blocked { name, why: message },
            _ => none,
        }
    }

    async fn versions(&self, wanted: &RegistrySkill<'_>) -> Vec<String> {
        let Ok(url) = wanted.url("/versions") else { return Vec::new() };
        let Ok(response) = self.ask(&url).await else { return Vec::new() };
        let Ok(response) = response.succeeded(&self.web).await else { return Vec::new() };
        let answer = self.json::<VersionsAnswer>(response).await;
        answer.map(|it| it.items.into_iter().map(|it| it.version).collect()).unwrap_or_default()
    }

    async fn download_clawhub(
        &self,
        source: &SkillSource,
        wanted: &RegistrySkill<'_>,
        chosen: ChosenVersion,
    ) -> Result<FetchedTree, FetchPackageError> {
        let name = wanted.name();
        let mut url = join(&wanted.base, "api/v1/download")?;
        url.query_pairs_mut()
            .append_pair("slug", &chosen.slug)
            .append_pair("version", &chosen.version);
        if let Some(owner) = wanted.owner.or(chosen.owner.as_deref()) {
            url.query_pairs_mut().append_pair("ownerHandle", owner);
        }
        let response = self.web.send(WebRequest::new(&url, self.limits.packed)).await?;
        let response = self.checked(wanted, response).await?;
        let scratch = self.draft().await?;
        let body = self.web.save(response, scratch).await?;
        if body.beginning.starts_with(b"{") {
            let read = serde_json::from_slice::<GitHubAnswer>(&body.beginning);
            return Err(match read {
                Ok(github) => github.refusal(&name),
                Err(error) => FetchPackageError::Malformed {
                    url: shown(url.as_str()),
                    why: error.to_string(),
                },
            });
        }
        let options = UnpackOptions { limits: self.limits, ..UnpackOptions::default() };
        let mut files = self.unpack_body(body, options).await?;
        if let Some(at) = files.files.iter().position(|it| it.path == ADDED) {
            files.files.remove(at);
            files = blocking(move || {
                let path = files.draft.path().join(ADDED);
                fs::remove_file(&path).map_err(|source| FetchPackageError::Io {
                    action: "remove",
                    path,
                    source,
                })?;
                Ok(files)
            })
            .await?;
        }
        check_files(&name, &chosen, &files.files)?;
        let mut notes = chosen.notes;
        notes.extend(files.notes);
        let facts = TreeFacts {
            url: shown(url.as_str()),
            version: Some(chosen.version),
            published: chosen.published,
            notes,
            warning: chosen.warning,
            ..TreeFacts::new(source)
        };
        self.insert(files.draft, files.files, facts).await
    }

    async fn answer<T: serde::de::DeserializeOwned>(
        &self,
        wanted: &RegistrySkill<'_>,
        response: WebResponse,
    ) -> Result<T, FetchPackageError> {
        let response = self.checked(wanted, response).await?;
        self.json(response).await
    }

    /// Returns a response if it succeeded, else what the registry means.
    async fn checked(
        &self,
        wanted: &RegistrySkill<'_>,
        response: WebResponse,
    ) -> Result<WebResponse, FetchPackageError> {
        let (name, url) = (wanted.name(), shown(response.url.as_str()));
        match response.status {
            404 => Err(FetchPackageError::NotFound { url: name }),
            409 => {
                let body = self.web.body(response).await?;
                Err(match serde_json::from_slice::<AmbiguousAnswer>(&body) {
                    Ok(answer) => FetchPackageError::Ambiguous {
                        name,
                        choices: answer
                            .matches
                            .iter()
                            .filter(|it| is_name(&it.owner_handle) && is_name(&it.slug))
                            .take(20)
                            .map(|it| format!("clawhub:{}/{}", it.owner_handle, it.slug))
                            .collect(),
                    },
                    Err(_) => {
                        let message = line(&String::from_utf8_lossy(&body));
                        FetchPackageError::Pending { name, why: message }
                    }
                })
            }
            403 => Err(FetchPackageError::Blocked { name, why: self.web.message(response).await }),
            410 => {
                Err(FetchPackageError::Withdrawn { name, why: self.web.message(response).await })
            }
            423 => Err(FetchPackageError::Pending { name, why: self.web.message(response).await }),
            400 => {
                let message = self.web.message(response).await;
                Err(FetchPackageError::Status { url, status: 400, message })
            }
            _ => response.succeeded(&self.web).await,
        }
    }
}

impl RegistrySkill<'_> {
    fn name(&self) -> String {
        match self.owner {
            Some(owner) => format!("clawhub:{owner}/{}", self.slug),
            None => format!("clawhub:{}", self.slug),
        }
    }

    fn url(&self, path: &str) -> Result<Url, FetchPackageError> {
        let mut url = join(&self.base, &format!("api/v1/skills/{}{path}", self.slug))?;
        if let Some(owner) = self.owner {
            url.query_pairs_mut().append_pair("ownerHandle", owner);
        }
        Ok(url)
    }
}

impl GitHubAnswer {
    /// Returns that the files are at a host that the user has not named.
    fn refusal(&self, name: &str) -> FetchPackageError {
        let path = match self.path.trim_matches('/') {
            "" | "." => String::new(),
            path => format!("/{path}"),
        };
        let source = format!("{}{path}#{}", self.repo, self.commit);
        FetchPackageError::Refused {
            url: name.to_owned(),
            why: format!("its files are on GitHub; add `{}` instead", prowess::visible(&source)),
        }
    }
}

/// Fails if the files are not those that the registry lists.
fn check_files(
    name: &str,
    chosen: &ChosenVersion,
    files: &[TreeFile],
) -> Result<(), FetchPackageError> {
    for row in &chosen.files {
        let expected = format!("sha256:{}", row.sha256.to_ascii_lowercase());
        let file = files.iter().find(|it| it.path == row.path);
        let found = file.map(|it| it.digest.to_string());
        if found.as_deref() != Some(&expected) {
            return Err(FetchPackageError::WrongDigest {
                what: format!("{name}/{}", prowess::visible(&row.path)),
                expected,
                found: found.unwrap_or_else(|| "nothing".to_owned()),
            });
        }
    }
    let added = files
        .iter()
        .find(|it| !chosen.files.is_empty() && chosen.files.iter().all(|row| row.path != it.path));
    match added {
        None => Ok(()),
        Some(file) => Err(FetchPackageError::WrongDigest {
            what: format!("{name}/{}", file.path),
            expected: "nothing".to_owned(),
            found: file.digest.to_string(),
        }),
    }
}

/// Whether a text can be a name in a URL of a registry.
fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
        && !text.starts_with('.')
}

/// Returns a text as one segment of a path.
fn segment(text: &str) -> String {
    text.bytes()
        .map(|it| match it {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'+' => {
                char::from(it).to_string()
            }
            b'.' if text.bytes().any(|it| it != b'.') => ".".to_owned(),
            it => format!("%{it:02X}"),
        })
        .collect()
}

/// Returns seconds for milliseconds.
fn seconds(milliseconds: f64) -> u64 {
    (milliseconds / 1000.0) as u64
}

/// Returns the first line of a text, short and without control characters.
fn line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(300).map(|it| if it.is_control() { ' ' } else { it }).collect()
}
