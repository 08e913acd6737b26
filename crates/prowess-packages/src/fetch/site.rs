//! Fetches skills from web sites that list them at `.well-known/agent-skills`.

use std::{collections::BTreeSet, fs};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use prowess_http::Url;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::{
    archive::{UnpackOptions, check_path},
    cache::{CacheDraft, FetchedTree},
    digest::{FileDigest, TreeFile},
    fetch::{
        NewestVersion, PackageFetcher, Pin, TreeFacts, blocking,
        error::FetchPackageError,
        git_program::shown,
        packed::DraftFiles,
        web::{Redirects, WebRequest, check_encrypted, is_same_host, join},
    },
    source::SkillSource,
};

/// The most bytes of an index.
pub(super) const MAX_INDEX: u64 = 4 << 20;
/// The most skills of an index.
const MAX_SKILLS: usize = 10_000;
/// How many requests wait for a site at the same time.
const REQUESTS: usize = 6;
/// The format of an index of version 0.2.0. It is a name and never requested.
pub(super) const VERSION_2: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

/// The index of a site.
#[derive(Debug)]
struct SiteIndex {
    /// The URL of the index.
    url: Url,
    /// The URL that all of its skills must be below.
    folder: Url,
    skills: Vec<SiteSkill>,
    /// The faults of others, and their names.
    notes: Vec<(String, String)>,
}

/// A skill of a site.
#[derive(Debug, Clone)]
struct SiteSkill {
    name: String,
    content: SiteContent,
}

#[derive(Debug, Clone)]
enum SiteContent {
    /// An archive or a `SKILL.md` with a digest.
    Artifact { url: Url, digest: FileDigest, is_archive: bool },
    /// Files, without digests.
    Files(Vec<(String, Url)>),
}

/// An index as it is written.
#[derive(Debug, Deserialize)]
struct WrittenIndex<'t> {
    #[serde(rename = "$schema")]
    schema: Option<String>,
    #[serde(borrow)]
    skills: Vec<&'t RawValue>,
}

#[derive(Debug, Deserialize)]
struct WrittenSkill {
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    digest: Option<String>,
    files: Option<Vec<String>>,
}

impl PackageFetcher {
    pub(super) async fn fetch_site(
        &self,
        source: &SkillSource,
        url: &Url,
        pin: Option<&Pin>,
    ) -> Result<FetchedTree, FetchPackageError> {
        let latest = format!("site\n{}\n{}", shown(url.as_str()), source.skills.join("\n"));
        let pinned = match pin {
            Some(Pin::Version(version)) => Some(version),
            _ => None,
        };
        if let Some(version) = pinned
            && let Some(tree) = self.recall(vec![format!("{latest}\n{version}")]).await
        {
            return Ok(FetchedTree { source: source.clone(), ..tree });
        }
        if self.offline {
            let recalled = if pinned.is_some() { None } else { self.recall(vec![latest]).await };
            return recalled
                .ok_or_else(|| FetchPackageError::Offline { source_text: source.to_string() });
        }
        check_encrypted(url)?;
        let Some(index) = self.site_index(url).await? else {
            return match self.fetch_download(source, url).await {
                Err(
                    FetchPackageError::NotAnArchive { .. } | FetchPackageError::NotFound { .. },
                ) => Err(FetchPackageError::NoIndex { url: shown(url.as_str()) }),
                fetched => fetched,
            };
        };
        let wanted = index.wanted(source)?;
        let version = version(&wanted);
        if let Some(pinned) = pinned
            && version.as_ref() != Some(pinned)
        {
            return Err(FetchPackageError::Moved {
                what: shown(url.as_str()),
                expected: pinned.clone(),
                found: version.unwrap_or_else(|| "without a digest".to_owned()),
            });
        }
        let known = version.as_ref().map(|it| format!("{latest}\n{it}"));
        let mut keys = vec![latest];
        if let Some(known) = known {
            if let Some(tree) = self.recall(vec![known.clone()]).await {
                return Ok(FetchedTree { source: source.clone(), ..tree });
            }
            keys.push(known);
        }
        let is_asked = !source.skills.is_empty();
        let mut notes: Vec<String> = Vec::new();
        if !is_asked {
            notes.extend(
                index
                    .notes
                    .iter()
                    .map(|(name, why)| format!("`{}` was left out: {why}", prowess::visible(name))),
            );
        }
        let fetched: Vec<_> = stream::iter(wanted.iter().cloned())
            .map(|skill| async {
                let fetched = self.fetch_site_skill(&index, &skill).await;
                (skill.name, fetched)
            })
            .buffered(REQUESTS)
            .collect()
            .await;
        let mut skills = Vec::new();
        let mut first_error = None;
        for (name, fetched) in fetched {
            match fetched {
                Ok(files) => skills.push((name, files)),
                Err(error) if is_asked || error.is_temporary() => return Err(error),
                Err(error) => {
                    notes.push(format!("`{name}` was left out: {}", with_causes(&error)));
                    first_error.get_or_insert(error);
                }
            }
        }
        if skills.is_empty()
            && let Some(error) = first_error
        {
            return Err(error);
        }
        let draft = self.draft().await?;
        let (draft, mut files, more) = blocking(move || combine(draft, skills)).await?;
        notes.extend(more);
        files.sort();
        if files.len() > self.limits.files {
            let limit = format!("{} files", self.limits.files);
            return Err(FetchPackageError::TooLarge { url: shown(url.as_str()), limit });
        }
        let facts =
            TreeFacts { url: shown(index.url.as_str()), version, notes, ..TreeFacts::new(source) };
        let tree = self.insert(draft, files, facts).await?;
        self.remember(keys, &tree).await?;
        Ok(tree)
    }

    pub(super) async fn newest_of_site(
        &self,
        source: &SkillSource,
        url: &Url,
    ) -> Result<NewestVersion, FetchPackageError> {
        if self.offline {
            return Err(FetchPackageError::Offline { source_text: source.to_string() });
        }
        check_encrypted(url)?;
        if let Some(index) = self.site_index(url).await?
            && let Some(version) = version(&index.wanted(source)?)
        {
            return Ok(NewestVersion { version: Some(version), ..NewestVersion::default() });
        }
        let tree = self.fetch_site(source, url, None).await?;
        let digest = Some(tree.digest);
        Ok(NewestVersion { digest, ..NewestVersion::default() })
    }

    /// Returns the index of a site, wherever it is.
    async fn site_index(&self, url: &Url) -> Result<Option<SiteIndex>, FetchPackageError> {
        let mut site = url.clone();
        site.set_query(None);
        site.set_fragment(None);
        let path = site.path().trim_end_matches('/').to_owned();
        let path = path.split("/.well-known/").next().unwrap_or_default().to_owned();
        let mut folders = vec![path.clone()];
        if !path.is_empty() {
            folders.push(String::new());
        }
        for folder in ["agent-skills", "skills"] {
            for above in &folders {
                let mut base = site.clone();
                base.set_path(&format!("{above}/"));
                let place = join(base.as_str(), &format!(".well-known/{folder}/index.json"))?;
                let Some(index) = self.index_at(&place, &base).await? else { continue };
                if *above != path {
                    base.set_path("/");
                    return Err(FetchPackageError::Refused {
                        url: shown(url.as_str()),
                        why: format!(
                            "its index is of all of the site; use `{base}` if you mean that"
                        ),
                    });
                }
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    async fn index_at(
        &self,
        place: &Url,
        folder: &Url,
    ) -> Result<Option<SiteIndex>, FetchPackageError> {
        let request = WebRequest {
            accept: Some("application/json"),
            redirects: Redirects::SameHost,
            ..WebRequest::new(place, MAX_INDEX)
        };
        let response = self.web.send(request).await?;
        if response.status >= 500 {
            response.succeeded(&self.web).await?;
            return Ok(None);
        }
        if response.status != 200 {
            return Ok(None);
        }
        let url = response.url.clone();
        let body = self.web.body(response).await?;
        // Many sites answer everything with a page.
        if body.trim_ascii_start().first() != Some(&b'{') {
            return Ok(None);
        }
        SiteIndex::read(&body, url, folder).map(Some)
    }

    /// Fetches a skill of a site.
    async fn fetch_site_skill(
        &self,
        index: &SiteIndex,
        skill: &SiteSkill,
    ) -> Result<DraftFiles, FetchPackageError> {
        match &skill.content {
            SiteContent::Artifact { url, digest, is_archive } => {
                let request = WebRequest {
                    named: index.url.clone(),
                    ..WebRequest::new(url, self.limits.packed)
                };
                let response = self.web.send(request).await?.succeeded(&self.web).await?;
                let scratch = self.draft().await?;
                let body = self.web.save(response, scratch).await?;
                if body.digest != *digest {
                    return Err(FetchPackageError::WrongDigest {
                        what: shown(url.as_str()),
                        expected: digest.to_string(),
                        found: body.digest.to_string(),
                    });
                }
                let is_packed = body.beginning.starts_with(b"PK\x03\x04")
                    || body.beginning.starts_with(&[0x1f, 0x8b]);
                if is_packed != *is_archive {
                    let found = if is_packed { "an archive" } else { "no archive" };
                    let url = shown(url.as_str());
                    return Err(FetchPackageError::Malformed {
                        url,
                        why: format!("it is {found}, but its index says otherwise"),
                    });
                }
                let options = UnpackOptions { limits: self.limits, ..UnpackOptions::default() };
                let files = self.unpack_body(body, options).await?;
                if files.files.iter().any(|it| it.path == "SKILL.md") {
                    Ok(files)
                } else {
                    let url = shown(url.as_str());
                    Err(FetchPackageError::Malformed {
                        url,
                        why: "it has no `SKILL.md`".to_owned(),
                    })
                }
            }
            SiteContent::Files(files) => {
                let bodies: Vec<(String, Vec<u8>)> = stream::iter(files.iter().cloned())
                    .map(|(path, url)| async move {
                        // There is no digest that would tell where the bytes come from.
                        let request = WebRequest {
                            named: index.url.clone(),
                            redirects: Redirects::SameHost,
                            ..WebRequest::new(&url, self.limits.file.min(MAX_FILE))
                        };
                        let response = self.web.send(request).await?;
                        let response = response.succeeded(&self.web).await?;
                        if !is_below(&response.url, &index.folder) {
                            return Err(FetchPackageError::Refused {
                                url: shown(url.as_str()),
                                why: format!(
                                    "it redirects out of the folder of its site, to `{}`",
                                    shown(response.url.as_str())
                                ),
                            });
                        }
                        Ok((path, self.web.body(response).await?))
                    })
                    .buffered(REQUESTS)
                    .try_collect()
                    .await?;
                let draft = self.draft().await?;
                blocking(move || write_files(draft, &bodies)).await
            }
        }
    }
}

/// The most bytes of a file that is listed by itself.
const MAX_FILE: u64 = 16 << 20;

impl SiteIndex {
    fn read(body: &[u8], url: Url, folder: &Url) -> Result<Self, FetchPackageError> {
        let malformed =
            |why: String| FetchPackageError::Malformed { url: shown(url.as_str()), why };
        let written: WrittenIndex<'_> =
            serde_json::from_slice(body).map_err(|error| malformed(error.to_string()))?;
        let is_second = match written.schema.as_deref() {
            None => false,
            Some(VERSION_2) => true,
            Some(other) => {
                let other: String = other.chars().take(100).collect();
                return Err(malformed(format!("the format `{other}` is unknown")));
            }
        };
        if written.skills.len() > MAX_SKILLS {
            return Err(FetchPackageError::TooLarge {
                url: shown(url.as_str()),
                limit: format!("{MAX_SKILLS} skills"),
            });
        }
        let mut index = Self { url, folder: folder.clone(), skills: Vec::new(), notes: Vec::new() };
        let mut names = BTreeSet::new();
        for (at, raw) in written.skills.iter().enumerate() {
            let (name, read) = match serde_json::from_str::<WrittenSkill>(raw.get()) {
                Ok(skill) if !names.insert(skill.name.clone()) => {
                    (skill.name, Err("the index has the name twice".to_owned()))
                }
                Ok(skill) => (skill.name.clone(), index.skill(skill, is_second)),
                Err(error) => (format!("skills[{at}]"), Err(error.to_string())),
            };
            match read {
                Ok(skill) => index.skills.push(skill),
                Err(why) => index.notes.push((name, why)),
            }
        }
        Ok(index)
    }

    fn skill(&self, written: WrittenSkill, is_second: bool) -> Result<SiteSkill, String> {
        let name = written.name;
        if !is_name(&name) {
            return Err("the name is not of letters a to z, digits and hyphens".to_owned());
        }
        let content = if is_second {
            let is_archive = match written.kind.as_deref() {
                Some("skill-md") => false,
                Some("archive") => true,
                _ => return Err("its type is neither `skill-md` nor `archive`".to_owned()),
            };
            let url = written.url.ok_or("it has no URL")?;
            let digest = written.digest.ok_or("it has no digest")?;
            let digest = digest.parse().map_err(|it| format!("{it}"))?;
            let url = self.url.join(&url).map_err(|_| "its URL is not valid".to_owned())?;
            self.check(&url)?;
            SiteContent::Artifact { url, digest, is_archive }
        } else {
            let files = written.files.ok_or("it has no files")?;
            if !files.iter().any(|it| it == "SKILL.md") {
                return Err("it has no `SKILL.md`".to_owned());
            }
            if files.len() > MAX_FILES {
                return Err(format!("it has more than {MAX_FILES} files"));
            }
            let urls = files.into_iter().map(|file| {
                check_path(&file)
                    .map_err(|why| format!("`{}` is {why}", prowess::visible(&file)))?;
                let mut url = self.url.join(".").map_err(|_| "its URL is not valid")?;
                if let Ok(mut segments) = url.path_segments_mut() {
                    segments.pop_if_empty().push(&name).extend(file.split('/'));
                }
                self.check(&url)?;
                Ok((file, url))
            });
            SiteContent::Files(urls.collect::<Result<_, String>>()?)
        };
        Ok(SiteSkill { name, content })
    }

    /// Fails if a URL leads away from the site.
    fn check(&self, url: &Url) -> Result<(), String> {
        match is_below(url, &self.folder) {
            true => Ok(()),
            false => Err(format!(
                "its URL `{}` leads out of `{}`",
                shown(url.as_str()),
                shown(self.folder.as_str())
            )),
        }
    }

    /// Returns the skills that are asked for.
    fn wanted(&self, source: &SkillSource) -> Result<Vec<SiteSkill>, FetchPackageError> {
        if source.skills.is_empty() {
            return match self.notes.first() {
                Some((name, why)) if self.skills.is_empty() => Err(self.malformed(name, why)),
                None if self.skills.is_empty() => {
                    Err(FetchPackageError::NoIndex { url: shown(self.url.as_str()) })
                }
                _ => Ok(self.skills.clone()),
            };
        }
        let wanted = source.skills.iter().map(|name| {
            let skill = self.skills.iter().find(|it| it.name.eq_ignore_ascii_case(name));
            if let Some(skill) = skill {
                return Ok(skill.clone());
            }
            let bad = self.notes.iter().find(|it| it.0.eq_ignore_ascii_case(name));
            Err(match bad {
                Some((name, why)) => self.malformed(name, why),
                None => FetchPackageError::UnknownSkill {
                    url: shown(self.url.as_str()),
                    name: name.clone(),
                    names: self.skills.iter().map(|it| it.name.clone()).collect(),
                },
            })
        });
        wanted.collect()
    }

    fn malformed(&self, name: &str, why: &str) -> FetchPackageError {
        FetchPackageError::Malformed {
            url: shown(self.url.as_str()),
            why: format!("the skill `{}`: {why}", prowess::visible(name)),
        }
    }
}

/// The most files of a skill that are listed by themselves.
const MAX_FILES: usize = 1000;

/// Whether a URL is below a folder of a server.
fn is_below(url: &Url, folder: &Url) -> bool {
    url.scheme() == folder.scheme()
        && is_same_host(url, folder)
        && url.path().starts_with(folder.path())
        && !url.path().to_ascii_lowercase().contains("%2f")
}

/// Returns one text for the versions of skills: the digest of the one, or one of all digests.
fn version(skills: &[SiteSkill]) -> Option<String> {
    let mut digests = Vec::new();
    for skill in skills {
        let SiteContent::Artifact { digest, .. } = &skill.content else { return None };
        digests.push((&skill.name, digest));
    }
    if let [(_, digest)] = digests[..] {
        return Some(digest.to_string());
    }
    digests.sort();
    let mut hasher = Sha256::new();
    for (name, digest) in digests {
        hasher.update(format!("{name} {digest}\n"));
    }
    Some(FileDigest(hasher.finalize().into()).to_string())
}

/// Whether a name is that of a skill: it becomes that of a folder.
pub(super) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Moves the files of skills to one draft, each below its name.
fn combine(
    draft: CacheDraft,
    skills: Vec<(String, DraftFiles)>,
) -> Result<(CacheDraft, Vec<TreeFile>, Vec<String>), FetchPackageError> {
    let mut files = Vec::new();
    let mut notes = Vec::new();
    for (name, skill) in skills {
        let folder = draft.path().join(&name);
        let failed =
            |source| FetchPackageError::Io { action: "create", path: folder.clone(), source };
        fs::create_dir(&folder).map_err(failed)?;
        for entry in fs::read_dir(skill.draft.path()).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            fs::rename(entry.path(), folder.join(entry.file_name())).map_err(failed)?;
        }
        files.extend(skill.files.into_iter().map(|mut it| {
            it.path.insert_str(0, &format!("{name}/"));
            it
        }));
        notes.extend(skill.notes);
    }
    Ok((draft, files, notes))
}

/// Writes files whose paths are checked.
fn write_files(
    draft: CacheDraft,
    bodies: &[(String, Vec<u8>)],
) -> Result<DraftFiles, FetchPackageError> {
    let mut files = Vec::new();
    for (path, bytes) in bodies {
        let target = draft.path().join(path);
        let failed =
            |source| FetchPackageError::Io { action: "write", path: target.clone(), source };
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut file = fs::File::create_new(&target).map_err(failed)?;
        std::io::Write::write_all(&mut file, bytes).map_err(failed)?;
        files.push(TreeFile {
            path: path.clone(),
            digest: FileDigest::of(bytes),
            size: bytes.len() as u64,
            executable: bytes.starts_with(b"#!"),
        });
    }
    files.sort();
    Ok(DraftFiles { draft, files, comment: None, notes: Vec::new() })
}

/// Returns an error and what caused it, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use prowess_http::Url;

    use super::is_below;

    #[test]
    fn entries_stay_below_their_site() {
        let folder = Url::parse("https://example.com/team/").unwrap();
        let below = |text: &str| is_below(&Url::parse(text).unwrap(), &folder);
        assert!(below("https://example.com/team/.well-known/agent-skills/a/SKILL.md"));
        for out in [
            "https://example.com/other/a.zip",
            "https://example.com/team/../other/a.zip",
            "https://example.com/team/%2e%2e/other/a.zip",
            "https://example.com/team/..%2fother/a.zip",
            "https://example.com:444/team/a.zip",
            "http://example.com/team/a.zip",
            "https://example.org/team/a.zip",
            "file:///team/a.zip",
        ] {
            assert!(!below(out), "{out}");
        }
    }
}
