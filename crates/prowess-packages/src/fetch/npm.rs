//! Fetches packages from npm registries.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use prowess_http::Url;
use semver::{Comparator, Op, Prerelease, Version};
use serde::Deserialize;

use crate::{
    archive::UnpackOptions,
    cache::FetchedTree,
    fetch::{
        NewestVersion, PackageFetcher, Pin, TreeFacts,
        error::FetchPackageError,
        git_program::shown,
        web::{Redirects, SavedBody, WebRequest, check_encrypted, is_same_host, join},
    },
    source::SkillSource,
};

/// The most bytes of the description of a package, which lists all of its versions.
const MAX_PACKAGE: u64 = 64 << 20;

#[derive(Debug, Deserialize)]
struct PackageAnswer {
    #[serde(rename = "dist-tags", default)]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    versions: BTreeMap<String, VersionRow>,
    /// When versions were published.
    #[serde(default)]
    time: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct VersionRow {
    dist: Dist,
    /// Why it should not be used: a text.
    #[serde(default)]
    deprecated: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Dist {
    tarball: String,
    integrity: Option<String>,
}

impl PackageFetcher {
    pub(super) async fn fetch_npm(
        &self,
        source: &SkillSource,
        name: &str,
        range: Option<&str>,
        pin: Option<&Pin>,
    ) -> Result<FetchedTree, FetchPackageError> {
        let key = |version: &str| format!("npm\n{}\n{name}\n{version}", self.npm);
        let pinned = match pin {
            Some(Pin::Version(version)) => Some(version.as_str()),
            _ => None,
        };
        if let Some(version) = pinned
            && let Some(tree) = self.recall(vec![key(version)]).await
        {
            return Ok(FetchedTree { source: source.clone(), ..tree });
        }
        let followed = format!("{}\nfollowed", key(range.unwrap_or_default()));
        if self.offline {
            let recalled = if pinned.is_some() { None } else { self.recall(vec![followed]).await };
            return recalled
                .ok_or_else(|| FetchPackageError::Offline { source_text: source.to_string() });
        }
        let package = self.npm_package(name).await?;
        let version = package.choose(name, pinned.or(range))?;
        let tree = match self.recall(vec![key(&version)]).await {
            Some(tree) => FetchedTree { source: source.clone(), ..tree },
            None => self.download_npm(source, name, &version, &package).await?,
        };
        let mut keys = vec![key(&version)];
        if pinned.is_none() {
            keys.push(followed);
        }
        self.remember(keys, &tree).await?;
        Ok(tree)
    }

    pub(super) async fn newest_of_npm(
        &self,
        source: &SkillSource,
        name: &str,
        range: Option<&str>,
    ) -> Result<NewestVersion, FetchPackageError> {
        if self.offline {
            return Err(FetchPackageError::Offline { source_text: source.to_string() });
        }
        let package = self.npm_package(name).await?;
        let version = package.choose(name, range)?;
        Ok(NewestVersion {
            published: package.published(&version),
            version: Some(version),
            ..NewestVersion::default()
        })
    }

    async fn npm_package(&self, name: &str) -> Result<PackageAnswer, FetchPackageError> {
        if !is_name(name) {
            let url = format!("npm:{}", prowess::visible(name));
            return Err(FetchPackageError::NotFound { url });
        }
        let url = join(&self.npm, &name.replace('/', "%2f"))?;
        check_encrypted(&url)?;
        let request =
            WebRequest { accept: Some("application/json"), ..WebRequest::new(&url, MAX_PACKAGE) };
        let response = self.web.send(request).await?;
        if response.status == 404 {
            return Err(FetchPackageError::NotFound { url: format!("npm:{name}") });
        }
        let response = response.succeeded(&self.web).await?;
        let body = self.web.body(response).await?;
        serde_json::from_slice(&body).map_err(|error| FetchPackageError::Malformed {
            url: shown(url.as_str()),
            why: error.to_string(),
        })
    }

    async fn download_npm(
        &self,
        source: &SkillSource,
        name: &str,
        version: &str,
        package: &PackageAnswer,
    ) -> Result<FetchedTree, FetchPackageError> {
        let registry = join(&self.npm, "")?;
        let unknown = || package.unknown(name, version);
        let row = package.versions.get(version).ok_or_else(unknown)?;
        let malformed = |why: &str| FetchPackageError::Malformed {
            url: format!("npm:{name}"),
            why: format!("version `{version}` {why}"),
        };
        let url = Url::parse(&row.dist.tarball).map_err(|_| malformed("has no valid URL"))?;
        if !is_same_host(&url, &registry) || url.scheme() != registry.scheme() {
            return Err(FetchPackageError::Refused {
                url: shown(url.as_str()),
                why: format!("it is not at the registry `{}`", shown(&self.npm)),
            });
        }
        let integrity = row.dist.integrity.as_deref().unwrap_or_default();
        let sha512 = integrity.split_whitespace().find_map(|it| it.strip_prefix("sha512-"));
        let sha512 = sha512.ok_or_else(|| malformed("has no SHA-512 digest"))?;
        let request = WebRequest {
            redirects: Redirects::Internet,
            named: registry,
            ..WebRequest::new(&url, self.limits.packed)
        };
        let response = self.web.send(request).await?.succeeded(&self.web).await?;
        let scratch = self.draft().await?;
        let body = self.web.save(response, scratch).await?;
        check_integrity(&body, &url, sha512)?;
        let options = UnpackOptions { limits: self.limits, strip_wrapper: true, leave_out: true };
        let files = self.unpack_body(body, options).await?;
        let mut notes = files.notes;
        if let Some(why) = row.deprecated.as_ref().and_then(|it| it.as_str()) {
            let why: String = why.chars().take(300).filter(|it| !it.is_control()).collect();
            notes.push(format!("its author says not to use version {version}: {why}"));
        }
        let facts = TreeFacts {
            url: shown(url.as_str()),
            version: Some(version.to_owned()),
            published: package.published(version),
            notes,
            ..TreeFacts::new(source)
        };
        self.insert(files.draft, files.files, facts).await
    }
}

fn check_integrity(body: &SavedBody, url: &Url, sha512: &str) -> Result<(), FetchPackageError> {
    let found = BASE64_STANDARD.encode(body.sha512);
    // Options may follow.
    let expected = sha512.split('?').next().unwrap_or_default();
    match found == expected {
        true => Ok(()),
        false => Err(FetchPackageError::WrongDigest {
            what: shown(url.as_str()),
            expected: format!("sha512-{expected}"),
            found: format!("sha512-{found}"),
        }),
    }
}

impl PackageAnswer {
    /// Returns the version for a range, version or tag.
    fn choose(&self, name: &str, range: Option<&str>) -> Result<String, FetchPackageError> {
        let wanted = range.map(str::trim).filter(|it| !it.is_empty()).unwrap_or("latest");
        if let Some(version) = self.tags.get(wanted) {
            return Ok(version.clone());
        }
        if self.versions.contains_key(wanted) {
            return Ok(wanted.to_owned());
        }
        let unknown = || self.unknown(name, wanted);
        let ranges = ranges(wanted).ok_or_else(unknown)?;
        let fits = |it: &Version| ranges.iter().any(|range| range.matches(it));
        let versions = self.versions.iter().filter_map(|(text, row)| {
            let version = Version::parse(text).ok().filter(fits)?;
            Some((row.deprecated.is_none(), version, text))
        });
        // Versions that should not be used come last.
        let best = versions.max_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        // As npm does, the tag `latest` goes before newer versions.
        let latest = self.tags.get("latest").filter(|it| {
            Version::parse(it).is_ok_and(|it| fits(&it)) && self.versions.contains_key(*it)
        });
        latest.or(best.map(|it| it.2)).cloned().ok_or_else(unknown)
    }

    fn unknown(&self, name: &str, wanted: &str) -> FetchPackageError {
        let mut versions: Vec<Version> =
            self.versions.keys().filter_map(|it| Version::parse(it).ok()).collect();
        versions.sort();
        FetchPackageError::UnknownVersion {
            name: format!("npm:{name}"),
            wanted: wanted.to_owned(),
            versions: versions.iter().rev().map(ToString::to_string).collect(),
        }
    }

    /// Returns when a version was published, in seconds since 1970.
    fn published(&self, version: &str) -> Option<u64> {
        time(self.time.get(version)?.as_str()?)
    }
}

/// A range without `||`: all comparisons hold.
#[derive(Debug)]
struct Range(Vec<Comparator>);

impl Range {
    /// As in npm, a version before a release fits only if one of the comparisons names such a one of
    /// the same release.
    fn matches(&self, version: &Version) -> bool {
        let is_named = |it: &Comparator| {
            !it.pre.is_empty()
                && (it.major, it.minor, it.patch)
                    == (version.major, Some(version.minor), Some(version.patch))
        };
        self.0.iter().all(|it| {
            let plain = Comparator { pre: it.pre.clone(), ..it.clone() };
            semver::VersionReq { comparators: vec![plain] }.matches(version)
                || (!version.pre.is_empty() && self.0.iter().any(is_named) && bare(it, version))
        }) && (version.pre.is_empty() || self.0.iter().any(is_named))
    }
}

/// Whether a comparison holds for a version before a release.
fn bare(comparator: &Comparator, version: &Version) -> bool {
    let limit = Version {
        major: comparator.major,
        minor: comparator.minor.unwrap_or(0),
        patch: comparator.patch.unwrap_or(0),
        pre: comparator.pre.clone(),
        build: semver::BuildMetadata::EMPTY,
    };
    match comparator.op {
        Op::Greater => *version > limit,
        Op::GreaterEq => *version >= limit,
        Op::Less => *version < limit,
        Op::LessEq => *version <= limit,
        _ => false,
    }
}

/// Reads a range as npm writes it.
fn ranges(text: &str) -> Option<Vec<Range>> {
    if text.len() > 256 {
        return None;
    }
    text.split("||").map(|it| range(it.trim())).collect()
}

fn range(text: &str) -> Option<Range> {
    if let Some((from, to)) = text.split_once(" - ") {
        let upper = comparator("<=", to.trim())?;
        return Some(Range(
            vec![comparator(">=", from.trim())?, upper].into_iter().flatten().collect(),
        ));
    }
    let mut comparators = Vec::new();
    let mut operator = String::new();
    for word in text.split([' ', ',']).filter(|it| !it.is_empty()) {
        let at = word.find(|it: char| !"<>=~^".contains(it)).unwrap_or(word.len());
        operator.push_str(&word[..at]);
        if at < word.len() {
            comparators.extend(comparator(&operator, &word[at..])?);
            operator.clear();
        }
    }
    operator.is_empty().then_some(Range(comparators))
}

/// Reads a comparison; the inner `None` holds for all versions.
fn comparator(operator: &str, version: &str) -> Option<Option<Comparator>> {
    let op = match operator {
        "" | "=" | "==" => Op::Exact,
        ">" => Op::Greater,
        ">=" => Op::GreaterEq,
        "<" => Op::Less,
        "<=" => Op::LessEq,
        "~" | "~>" => Op::Tilde,
        "^" => Op::Caret,
        _ => return None,
    };
    let version = version.trim_start_matches(['v', 'V', '=']);
    let version = version.split('+').next().unwrap_or_default();
    let (numbers, pre) = version.split_once('-').unwrap_or((version, ""));
    let mut parts = Vec::new();
    for part in numbers.split('.') {
        match part {
            "*" | "x" | "X" => break,
            part => parts.push(part.parse::<u64>().ok()?),
        }
    }
    if parts.len() > 3 {
        return None;
    }
    let Some(major) = parts.first().copied() else { return Some(None) };
    Some(Some(Comparator {
        op,
        major,
        minor: parts.get(1).copied(),
        patch: parts.get(2).copied(),
        pre: if parts.len() == 3 { Prerelease::new(pre).ok()? } else { Prerelease::EMPTY },
    }))
}

/// Whether a text is the name of a package.
fn is_name(name: &str) -> bool {
    let is_part = |it: &str| {
        !it.is_empty()
            && !it.starts_with(['.', '_'])
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.~".contains(&it))
    };
    name.len() <= 214
        && match name.strip_prefix('@') {
            Some(scoped) => scoped.split_once('/').is_some_and(|it| is_part(it.0) && is_part(it.1)),
            None => is_part(name),
        }
}

/// Returns the seconds since 1970 of a time such as `2024-05-01T10:00:00.000Z`.
fn time(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let clock = clock.strip_suffix('Z')?.split('.').next()?;
    let mut clock = clock.split(':').map(str::parse::<i64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that the day that some have more is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days - 719_468;
    u64::try_from(days * 86_400 + hour * 3600 + minute * 60 + second).ok()
}

#[cfg(test)]
mod tests {
    use semver::Version;

    use super::{is_name, ranges, time};

    fn fits(range: &str, version: &str) -> bool {
        let version = Version::parse(version).unwrap();
        ranges(range).unwrap().iter().any(|it| it.matches(&version))
    }

    #[test]
    fn ranges_are_those_of_npm() {
        for (range, version) in [
            ("1.2.3", "1.2.3"),
            ("^1.2.0", "1.9.0"),
            ("^0.2.3", "0.2.9"),
            ("~1.2", "1.2.9"),
            ("1.x", "1.7.0"),
            ("1", "1.7.0"),
            ("*", "3.0.0"),
            (">= 1.0.0 <2", "1.5.0"),
            (">=1 <2 || 3.x", "3.1.0"),
            ("1.0.0 - 1.4.0", "1.4.0"),
            (">=1.0.0-beta.1", "1.0.0-beta.2"),
            ("v1.2.3", "1.2.3"),
        ] {
            assert!(fits(range, version), "{range} {version}");
        }
        for (range, version) in [
            ("1.2.3", "1.2.4"),
            ("^1.2.0", "2.0.0"),
            ("^0.2.3", "0.3.0"),
            ("~1.2", "1.3.0"),
            ("1.x", "2.0.0"),
            ("*", "3.0.0-beta"),
            (">=1.0.0-beta.1", "1.1.0-beta.2"),
            ("1.0.0 - 1.4.0", "1.4.1"),
        ] {
            assert!(!fits(range, version), "{range} {version}");
        }
        for bad in ["beta", "1.2.3.4", ">", "^^1", "1 - x y"] {
            assert!(ranges(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn names_cannot_lead_elsewhere() {
        for good in ["a", "@scope/name", "a.b-c_d"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "../a", "a/b", "@a", "@/b", "@a/../b", "a?b", "a\nb", ".a"] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn times_are_read() {
        assert_eq!(time("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(time("2024-02-29T12:30:05.123Z"), Some(1_709_209_805));
        assert_eq!(time("yesterday"), None);
    }
}
