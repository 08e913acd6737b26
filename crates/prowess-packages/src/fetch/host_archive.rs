//! Fetches repositories without `git`: branches and tags as git asks for them, files as an archive of
//! the host.

use std::io::{Read as _, Seek as _};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::read::GzDecoder;
use prowess_http::Url;

use crate::{
    archive::UnpackOptions,
    cache::FetchedTree,
    fetch::{
        PackageFetcher, TreeFacts, blocking,
        error::{FetchPackageError, is_hex},
        git_program::shown,
        git_refs::{ListedReferences, Listing, ResolvedReference},
        selection::Selection,
        web::{WebRequest, join},
    },
    source::KnownHost,
};

/// The most bytes of a list of branches and tags.
const MAX_LIST: u64 = 64 << 20;
/// The host of GitHub that gives archives of private repositories.
const GITHUB_API: &str = "api.github.com";

impl PackageFetcher {
    /// Returns where the repository of a URL has moved to.
    pub(super) async fn moved_repository(
        &self,
        url: &str,
    ) -> Result<Option<String>, FetchPackageError> {
        let asked = join(url, "info/refs?service=git-upload-pack")?;
        let response = self.web.send(WebRequest::new(&asked, MAX_LIST)).await?;
        Ok(Some(&response.url).filter(|it| **it != asked).and_then(repository_of))
    }

    /// Asks a server for branches and tags; for all of them if no names are given.
    pub(super) async fn list_references_over_http(
        &self,
        url: &str,
        names: &[String],
    ) -> Result<Listing, FetchPackageError> {
        let mut plain = Url::parse(url)
            .ok()
            .filter(|it| matches!(it.scheme(), "http" | "https"))
            .ok_or_else(|| FetchPackageError::GitNeeded { url: shown(url) })?;
        let mut headers = vec![("git-protocol".to_owned(), "version=2".to_owned())];
        let own = plain.password().map(|it| format!("{}:{it}", plain.username()));
        let given = self.web.token(&plain).map(|it| format!("x-access-token:{it}"));
        if let Some(credentials) = own.or(given) {
            let value = format!("Basic {}", BASE64_STANDARD.encode(credentials));
            headers.push(("authorization".to_owned(), value));
        }
        let _ = plain.set_username("").and_then(|()| plain.set_password(None));
        let asked = join(plain.as_str(), "info/refs?service=git-upload-pack")?;
        let request = WebRequest { headers: headers.clone(), ..WebRequest::new(&asked, MAX_LIST) };
        let response = self.web.send(request).await?;
        if response.url != asked
            && let Some(place) = repository_of(&response.url)
        {
            return Ok(Listing::Moved(place));
        }
        if matches!(response.status, 401 | 403 | 404) {
            return Err(FetchPackageError::NoAccess {
                url: shown(url),
                hint: "check the spelling; for a private repository, install git or set `GITHUB_TOKEN`"
                    .to_owned(),
            });
        }
        let body = self.web.body(response.succeeded(&self.web).await?).await?;
        let malformed =
            |why: &str| FetchPackageError::Malformed { url: shown(url), why: why.to_owned() };
        let lines = packets(&body).ok_or_else(|| malformed("it is not a git repository"))?;
        if !lines.iter().any(|it| it == b"version 2") {
            return Ok(Listing::References(advertised(&lines)));
        }
        let asked = join(plain.as_str(), "git-upload-pack")?;
        let kind = "application/x-git-upload-pack-request".to_owned();
        let request = WebRequest {
            headers,
            post: Some((kind, list_request(names))),
            ..WebRequest::new(&asked, MAX_LIST)
        };
        let response = self.web.send(request).await?.succeeded(&self.web).await?;
        let body = self.web.body(response).await?;
        let lines = packets(&body).ok_or_else(|| malformed("its list of branches is cut off"))?;
        Ok(Listing::References(listed(&lines)))
    }

    /// Fetches the archive of a commit into the cache.
    pub(super) async fn fetch_host_archive(
        &self,
        url: &str,
        resolved: &ResolvedReference,
        selection: &Selection,
        mut facts: TreeFacts,
    ) -> Result<FetchedTree, FetchPackageError> {
        let base = Url::parse(url);
        let mut base = base.map_err(|_| FetchPackageError::GitNeeded { url: shown(url) })?;
        let _ = base.set_username("").and_then(|()| base.set_password(None));
        for place in self.archives(&base, &resolved.commit)? {
            let mut request = WebRequest::new(&place, self.limits.packed);
            request.accept = Some("application/gzip, application/octet-stream, */*");
            if place.host_str() == Some(GITHUB_API)
                && let Some(token) = self.web.token(&base)
            {
                request.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
            }
            let response = self.web.send(request).await?;
            if matches!(response.status, 404 | 406) {
                continue;
            }
            let response = response.succeeded(&self.web).await?;
            let scratch = self.draft().await?;
            let mut body = self.web.save(response, scratch).await?;
            if !body.beginning.starts_with(&[0x1f, 0x8b]) {
                continue;
            }
            let (returned, time) = blocking(move || {
                let time = archive_time(&body.file);
                let _ = body.file.rewind();
                Ok((body, time))
            })
            .await?;
            let options =
                UnpackOptions { limits: self.limits, strip_wrapper: true, leave_out: true };
            let files = self.unpack_body(returned, options).await?;
            match &files.comment {
                Some(commit) if *commit != resolved.commit => {
                    return Err(FetchPackageError::WrongDigest {
                        what: shown(place.as_str()),
                        expected: resolved.commit.clone(),
                        found: commit.clone(),
                    });
                }
                Some(_) => {}
                None => {
                    facts.notes.push("the archive does not say which commit it is of".to_owned());
                }
            }
            selection.check(&files.files, &facts.url)?;
            facts.published = time;
            facts.notes.extend(files.notes);
            return self.insert(files.draft, files.files, facts).await;
        }
        Err(FetchPackageError::GitNeeded { url: shown(url) })
    }

    /// Returns the URLs that the archive of a commit may be at.
    fn archives(&self, base: &Url, commit: &str) -> Result<Vec<Url>, FetchPackageError> {
        let text = base.as_str().trim_end_matches('/');
        let text = text.strip_suffix(".git").unwrap_or(text);
        let name = text.rsplit('/').next().unwrap_or_default();
        // GitHub, Forgejo and Gitea.
        let usual = format!("archive/{commit}.tar.gz");
        let gitlab = format!("-/archive/{commit}/{name}-{commit}.tar.gz");
        let host = base.host_str().unwrap_or_default();
        let paths = match KnownHost::of(host) {
            KnownHost::GitHub if self.web.token(base).is_some() => {
                let path = base.path().trim_matches('/');
                let path = path.strip_suffix(".git").unwrap_or(path);
                let api = format!("repos/{path}/tarball/{commit}");
                return Ok(vec![join(&format!("https://{GITHUB_API}"), &api)?]);
            }
            KnownHost::GitHub | KnownHost::Forgejo => vec![usual],
            KnownHost::GitLab => vec![gitlab],
            KnownHost::Bitbucket => vec![format!("get/{commit}.tar.gz")],
            KnownHost::Azure => Vec::new(),
            KnownHost::Other => vec![usual, gitlab],
        };
        paths.iter().map(|it| join(text, it)).collect()
    }
}

/// Returns the URL of the repository whose branches and tags are listed at a URL.
fn repository_of(url: &Url) -> Option<String> {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().strip_suffix("/info/refs")?.to_owned();
    url.set_path(&path);
    Some(url.into())
}

/// Returns the time of the first entry of an archive, which is that of the commit.
fn archive_time(file: &std::fs::File) -> Option<u64> {
    let mut header = [0; 512];
    GzDecoder::new(file).read_exact(&mut header).ok()?;
    let digits = str::from_utf8(&header[136..148]).ok()?;
    u64::from_str_radix(digits.trim_matches(['\0', ' ']), 8).ok().filter(|it| *it > 0)
}

/// Returns the lines of git's protocol: four hex digits with the length before each. `None` if they are
/// cut off.
fn packets(mut body: &[u8]) -> Option<Vec<&[u8]>> {
    let mut lines = Vec::new();
    while !body.is_empty() {
        let length = body.get(..4).and_then(|it| str::from_utf8(it).ok())?;
        let length = usize::from_str_radix(length, 16).ok()?;
        // Three marks between lines have no content.
        let end = length.max(4);
        let line = body.get(4..end)?;
        if length >= 4 {
            lines.push(line.strip_suffix(b"\n").unwrap_or(line));
        }
        body = &body[end..];
    }
    Some(lines)
}

/// Returns the branches and tags of a server that lists them at once.
fn advertised(lines: &[&[u8]]) -> ListedReferences {
    let mut listed = ListedReferences::default();
    for line in lines {
        let mut parts = line.splitn(2, |it| *it == 0);
        let (line, capabilities) = (parts.next().unwrap_or_default(), parts.next());
        let capabilities = String::from_utf8_lossy(capabilities.unwrap_or_default()).into_owned();
        let head = capabilities.split(' ').find_map(|it| it.strip_prefix("symref=HEAD:"));
        listed.head = listed.head.or_else(|| head.map(str::to_owned));
        let line = String::from_utf8_lossy(line);
        if let Some((object, name)) = line.split_once(' ')
            && matches!(object.len(), 40 | 64)
            && is_hex(object)
        {
            listed.names.push((name.to_owned(), object.to_owned()));
        }
    }
    listed
}

/// Returns the branches and tags that a server was asked for.
fn listed(lines: &[&[u8]]) -> ListedReferences {
    let mut listed = ListedReferences::default();
    for line in lines {
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let (Some(object), Some(name)) = (words.next(), words.next()) else { continue };
        if !matches!(object.len(), 40 | 64) || !is_hex(object) {
            continue;
        }
        for attribute in words {
            if let Some(target) = attribute.strip_prefix("symref-target:")
                && name == "HEAD"
            {
                listed.head = Some(target.to_owned());
            }
            if let Some(commit) = attribute.strip_prefix("peeled:")
                && matches!(commit.len(), 40 | 64)
                && is_hex(commit)
            {
                listed.names.push((format!("{name}^{{}}"), commit.to_owned()));
            }
        }
        listed.names.push((name.to_owned(), object.to_owned()));
    }
    listed
}

/// Returns the request for branches and tags of version 2 of the protocol.
fn list_request(names: &[String]) -> Vec<u8> {
    let mut request = Vec::new();
    let mut line = |text: &str| request.extend(format!("{:04x}{text}\n", text.len() + 5).bytes());
    line("command=ls-refs");
    request.extend(b"0001");
    let mut line = |text: &str| request.extend(format!("{:04x}{text}\n", text.len() + 5).bytes());
    line("peel");
    line("symrefs");
    let all = ["refs/heads/".to_owned(), "refs/tags/".to_owned()];
    let names = if names.is_empty() { &all[..] } else { names };
    for name in names.iter().filter(|it| !it.ends_with("^{}")) {
        line(&format!("ref-prefix {name}"));
    }
    request.extend(b"0000");
    request
}

#[cfg(test)]
mod tests {
    use super::{advertised, list_request, listed, packets};

    #[test]
    fn both_versions_of_the_protocol_are_read() {
        let object = "a".repeat(40);
        let first = format!("{object} HEAD\0multi_ack symref=HEAD:refs/heads/main agent=x\n");
        let second = format!("{object} refs/heads/main\n");
        let text = format!(
            "001e# service=git-upload-pack\n0000{:04x}{first}{:04x}{second}0000",
            first.len() + 4,
            second.len() + 4
        );
        let one = advertised(&packets(text.as_bytes()).unwrap());
        assert_eq!(one.head.as_deref(), Some("refs/heads/main"));
        assert_eq!(one.names.len(), 2);
        let line = format!("{object} refs/tags/v1 peeled:{}\n", "b".repeat(40));
        let text = format!("{:04x}{line}0000", line.len() + 4);
        let two = listed(&packets(text.as_bytes()).unwrap());
        assert_eq!(two.names[0], ("refs/tags/v1^{}".to_owned(), "b".repeat(40)));
    }

    #[test]
    fn a_list_that_is_cut_off_is_noticed() {
        assert_eq!(packets(b"00ffabc"), None);
        assert_eq!(packets(b"00"), None);
        assert_eq!(packets(b"<html>"), None);
        assert_eq!(packets(b"0000"), Some(Vec::new()));
    }

    #[test]
    fn requests_are_framed() {
        let request = list_request(&["HEAD".to_owned()]);
        assert_eq!(
            request,
            b"0014command=ls-refs\n00010009peel\n000csymrefs\n0014ref-prefix HEAD\n0000"
        );
    }
}
