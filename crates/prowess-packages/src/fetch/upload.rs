//! Publishes skills: to registries that speak version 1 of the ClawHub API, and to folders of sites.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use prowess_http::Url;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    archive::{ArchiveFormat, format_of},
    digest::{FileDigest, TreeFile},
    fetch::{
        PackageFetcher, blocking,
        error::FetchPackageError,
        git_program::shown,
        site::{MAX_INDEX, VERSION_2, is_name},
        web::{WebRequest, WebResponse, host, join},
    },
    pack::PackedSkill,
    sys::set_mode,
};

/// A version of a skill that is to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillUpload {
    /// The short name.
    pub slug: String,
    /// The name for people.
    pub display_name: String,
    /// The owner, if it is not the user of the token.
    pub owner: Option<String>,
    /// The version, such as `1.0.0`.
    pub version: String,
    /// The changes in this version.
    pub changelog: String,
    /// The tags that are to mean this version.
    pub tags: Vec<String>,
    /// The folder of the skill.
    pub folder: PathBuf,
    /// The files of the folder that are published.
    pub files: Vec<TreeFile>,
}

impl SkillUpload {
    /// Creates an upload of the files of a folder, with the tag `latest`.
    pub fn new(slug: &str, version: &str, folder: &Path, files: Vec<TreeFile>) -> Self {
        Self {
            slug: slug.to_owned(),
            display_name: slug.to_owned(),
            owner: None,
            version: version.to_owned(),
            changelog: String::new(),
            tags: vec!["latest".to_owned()],
            folder: folder.to_owned(),
            files,
        }
    }
}

/// A version that a registry has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UploadedSkill {
    /// The owner.
    pub owner: Option<String>,
    /// The short name.
    pub slug: String,
    /// The version.
    pub version: String,
    /// Whether the registry checks it before others can see it.
    pub is_pending: bool,
}

/// A skill cannot be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UploadError {
    /// There is no token for the registry.
    #[error("there is no token for `{host}`")]
    NoToken {
        /// The registry.
        host: String,
    },
    /// The registry does not know the token.
    #[error("`{host}` does not accept the token")]
    Token {
        /// The registry.
        host: String,
    },
    /// The version is there already.
    #[error("`{name}` has a version `{version}` already")]
    Exists {
        /// The skill.
        name: String,
        /// The version.
        version: String,
    },
    /// The registry does not take it.
    #[error("`{host}` does not accept the skill: {why}")]
    Rejected {
        /// The registry.
        host: String,
        /// Its words.
        why: String,
    },
    /// A file cannot be read, or has been changed.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file of a site cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The index of a site is not as it should be.
    #[error("`{}` cannot be understood: {why}", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The name cannot be that of a published skill.
    #[error("`{name}` cannot be published under this name")]
    Name {
        /// The name.
        name: String,
    },
    /// The registry cannot be asked.
    #[error(transparent)]
    Request(#[from] FetchPackageError),
}

impl UploadError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoToken { .. } => "create a token at the registry, and give it to this command",
            Self::Token { .. } => "it may have expired; create another one at the registry",
            Self::Exists { .. } => "a version never changes; publish another one",
            Self::Index { .. } => "restore it, or remove it to begin with an empty one",
            Self::Name { .. } => "use letters a to z, digits and single hyphens",
            Self::Request(error) => return error.hint(),
            Self::Rejected { .. } | Self::Read { .. } | Self::Write { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// The most bytes of an answer.
const MAX_ANSWER: u64 = 1 << 20;
/// The folder of a site that has its index.
const SITE_FOLDER: &str = ".well-known/agent-skills";

#[derive(Debug, Deserialize)]
struct WhoAmI {
    user: Option<UserRow>,
}

#[derive(Debug, Deserialize)]
struct UserRow {
    handle: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UploadAnswer {
    ok: bool,
    slug: Option<String>,
    version: Option<String>,
    status: Option<String>,
    publication_status: Option<String>,
}

impl PackageFetcher {
    /// Publishes a version of a skill to a registry; none is the default one. Its token is that of
    /// [`with_token`](Self::with_token).
    pub async fn upload(
        &self,
        registry: Option<&Url>,
        upload: &SkillUpload,
    ) -> Result<UploadedSkill, UploadError> {
        if !is_name(&upload.slug) {
            return Err(UploadError::Name { name: upload.slug.clone() });
        }
        let named = registry.map_or(&*self.clawhub, Url::as_str);
        if self.offline {
            return Err(FetchPackageError::Offline { source_text: shown(named) }.into());
        }
        let base = self.api_of(named).await?;
        let url = join(&base, "api/v1/skills")?;
        let host = host(&url);
        if self.web.token(&url).is_none() {
            return Err(UploadError::NoToken { host });
        }
        let request = WebRequest::new(&join(&base, "api/v1/whoami")?, MAX_ANSWER);
        let response = self.web.send(request).await?;
        if matches!(response.status, 401 | 403) {
            return Err(UploadError::Token { host });
        }
        let user: WhoAmI = self.answer_of(response.succeeded(&self.web).await?).await?;
        let owner = upload.owner.clone().or_else(|| user.user?.handle);
        let exists = || UploadError::Exists {
            name: match &owner {
                Some(owner) => format!("{owner}/{}", upload.slug),
                None => upload.slug.clone(),
            },
            version: upload.version.clone(),
        };
        let taken = format!("api/v1/skills/{}/versions/{}", upload.slug, upload.version);
        let mut taken = join(&base, &taken)?;
        if let Some(owner) = &owner {
            taken.query_pairs_mut().append_pair("ownerHandle", owner);
        }
        if self.web.send(WebRequest::new(&taken, MAX_ANSWER)).await?.status == 200 {
            return Err(exists());
        }
        let sent = upload.clone();
        let (kind, body) = blocking(move || Ok(multipart(&sent))).await??;
        let request = WebRequest { post: Some((kind, body)), ..WebRequest::new(&url, MAX_ANSWER) };
        let response = self.web.send(request).await?;
        let answer: UploadAnswer = match response.status {
            200 | 201 => self.answer_of(response).await?,
            401 => return Err(UploadError::Token { host }),
            400 | 403 | 409 | 413 | 415 | 422 => {
                let why = self.web.message(response).await;
                return Err(match why.contains("already exists") {
                    true => exists(),
                    false => UploadError::Rejected { host, why },
                });
            }
            _ => self.answer_of(response.succeeded(&self.web).await?).await?,
        };
        if !answer.ok {
            let why = answer.status.unwrap_or_else(|| "it gives no reason".to_owned());
            return Err(UploadError::Rejected { host, why });
        }
        let status = answer.publication_status.or(answer.status);
        Ok(UploadedSkill {
            owner,
            slug: answer.slug.unwrap_or_else(|| upload.slug.clone()),
            version: answer.version.unwrap_or_else(|| upload.version.clone()),
            is_pending: status.as_deref() == Some("pending"),
        })
    }

    async fn answer_of<T: serde::de::DeserializeOwned>(
        &self,
        response: WebResponse,
    ) -> Result<T, FetchPackageError> {
        let url = shown(response.url.as_str());
        let body = self.web.body(response).await?;
        serde_json::from_slice(&body)
            .map_err(|error| FetchPackageError::Malformed { url, why: error.to_string() })
    }
}

/// Returns the type and the body of a request with a description and files.
fn multipart(upload: &SkillUpload) -> Result<(String, Vec<u8>), UploadError> {
    let mut payload = json!({
        "slug": upload.slug,
        "displayName": upload.display_name,
        "version": upload.version,
        "changelog": upload.changelog,
        "acceptLicenseTerms": true,
        "tags": upload.tags,
    });
    if let Some(owner) = &upload.owner {
        payload["ownerHandle"] = json!(owner);
    }
    let payload = payload.to_string();
    let mut files = Vec::new();
    for file in &upload.files {
        let path = upload.folder.join(&file.path);
        let failed = |source| UploadError::Read { path: path.clone(), source };
        let mut bytes = Vec::new();
        let opened = File::open(&path).map_err(failed)?;
        opened.take(file.size.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if FileDigest::of(&bytes) != file.digest {
            return Err(failed(io::Error::other("it has been changed meanwhile")));
        }
        files.push((&file.path, bytes));
    }
    // No content can have the digest of all content in it.
    let mut all = payload.clone().into_bytes();
    all.extend(upload.files.iter().flat_map(|it| it.digest.0));
    let boundary = FileDigest::of(&all).to_string().replace(':', "-");
    let mut body = Vec::new();
    let mut part = |head: &str, content: &[u8]| {
        body.extend(
            format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n").bytes(),
        );
        body.extend(content);
        body.extend(b"\r\n");
    };
    part("name=\"payload\"\r\nContent-Type: application/json", payload.as_bytes());
    for (path, bytes) in files {
        let kind = match str::from_utf8(&bytes) {
            Ok(_) => "text/plain; charset=utf-8",
            Err(_) => "application/octet-stream",
        };
        let head = format!("name=\"files\"; filename=\"{path}\"\r\nContent-Type: {kind}");
        part(&head, &bytes);
    }
    body.extend(format!("--{boundary}--\r\n").bytes());
    Ok((format!("multipart/form-data; boundary={boundary}"), body))
}

/// Publishes a skill in the folder of a site: writes its archive, and its entry in the index of
/// `.well-known/agent-skills`. Returns the path of the archive.
///
/// The index is replaced last, by one rename, so that a visitor sees the old version or the new one.
/// What others have put into it stays.
pub fn publish_to_site(
    site: &Path,
    name: &str,
    description: &str,
    packed: &PackedSkill,
) -> Result<PathBuf, UploadError> {
    if !is_name(name) {
        return Err(UploadError::Name { name: name.to_owned() });
    }
    let folder = site.join(SITE_FOLDER);
    let index_path = folder.join("index.json");
    let mut index = read_index(&index_path)?;
    let extension = match format_of("", &packed.bytes) {
        Some(ArchiveFormat::Zip) => "zip",
        Some(ArchiveFormat::TarGz) => "tar.gz",
        _ => return Err(UploadError::Name { name: name.to_owned() }),
    };
    let digest = FileDigest::of(&packed.bytes).to_string();
    // Another version has another name, so that no cache mixes them up.
    let file = format!("{name}-{}.{extension}", &digest["sha256:".len()..][..12]);
    let entry = json!({
        "name": name,
        "type": "archive",
        "description": description,
        "url": file,
        "digest": digest,
    });
    let skills = index.entry("skills").or_insert_with(|| json!([]));
    let Value::Array(skills) = skills else {
        let why = "`skills` is not a list".to_owned();
        return Err(UploadError::Index { path: index_path, why });
    };
    match skills.iter_mut().find(|it| it.get("name").and_then(Value::as_str) == Some(name)) {
        Some(old) => *old = entry,
        None => skills.push(entry),
    }
    let text = serde_json::to_vec_pretty(&index)
        .map_err(|error| UploadError::Index { path: index_path.clone(), why: error.to_string() })?;
    fs::create_dir_all(&folder)
        .map_err(|source| UploadError::Write { path: folder.clone(), source })?;
    let archive = folder.join(file);
    replace(&archive, &packed.bytes)?;
    replace(&index_path, &text)?;
    Ok(archive)
}

fn read_index(path: &Path) -> Result<Map<String, Value>, UploadError> {
    let wrong = |why: String| UploadError::Index { path: path.to_owned(), why };
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => {
            let read = file.take(MAX_INDEX + 1).read_to_end(&mut bytes);
            read.map_err(|source| UploadError::Read { path: path.to_owned(), source })?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Map::from_iter([("$schema".to_owned(), json!(VERSION_2))]));
        }
        Err(source) => return Err(UploadError::Read { path: path.to_owned(), source }),
    }
    if bytes.len() as u64 > MAX_INDEX {
        return Err(wrong("it is too large".to_owned()));
    }
    let index: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    match index.get("$schema").and_then(Value::as_str) {
        Some(VERSION_2) => Ok(index),
        _ => Err(wrong("it is not of version 0.2.0".to_owned())),
    }
}

/// Writes a file, which appears whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), UploadError> {
    let failed = |source| UploadError::Write { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(path);
    let mut draft = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    draft.write_all(bytes).map_err(failed)?;
    // Servers of sites often run as another user.
    set_mode(draft.as_file(), false, true).map_err(failed)?;
    draft.as_file().sync_all().map_err(failed)?;
    draft.persist(path).map_err(|it| failed(it.error))?;
    Ok(())
}
