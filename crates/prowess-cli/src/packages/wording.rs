//! How sources and versions are shown.

use std::path::Path;

use prowess_packages::{FetchedTree, LockedSkill, NewestVersion, SkillSource, SourceKind};

use crate::surroundings::short_path;

/// The digits of a commit that are shown.
const COMMIT: usize = 9;

/// Shortens a commit for people.
pub(crate) fn short_commit(commit: &str) -> &str {
    commit.get(..COMMIT).unwrap_or(commit)
}

/// Returns a source as it is shown: `owner/repo` for GitHub, and a short path for a folder.
pub(crate) fn source_text(source: &SkillSource, from: &Path, home: Option<&Path>) -> String {
    match &source.kind {
        SourceKind::Folder(path) | SourceKind::File(path) => short_path(path, from, home),
        _ => source.to_string(),
    }
}

/// The identity of a version: its number or commit, the branch or tag, and its day.
pub(crate) trait VersionFacts {
    fn version(&self) -> Option<&str>;
    fn commit(&self) -> Option<&str>;
    fn reference(&self) -> Option<&str>;
    fn published(&self) -> Option<u64>;
}

macro_rules! versioned {
    ($($name:ident)*) => {$(
        impl VersionFacts for $name {
            fn version(&self) -> Option<&str> {
                self.version.as_deref()
            }

            fn commit(&self) -> Option<&str> {
                self.commit.as_deref()
            }

            fn reference(&self) -> Option<&str> {
                self.reference.as_deref()
            }

            fn published(&self) -> Option<u64> {
                self.published
            }
        }
    )*};
}

versioned!(FetchedTree LockedSkill NewestVersion);

/// Returns a version as it is shown, such as `main at 1a2b3c4d5 (2026-11-02)`; empty for a source without versions.
pub(crate) fn version_text(it: &impl VersionFacts) -> String {
    let reference = it.reference().map(|it| {
        let name = it.strip_prefix("refs/heads/").or_else(|| it.strip_prefix("refs/tags/"));
        name.unwrap_or(it)
    });
    let mut text = match (it.version(), reference, it.commit()) {
        (Some(version), ..) => version.to_owned(),
        (None, Some(name), Some(commit)) => format!("{name} at {}", short_commit(commit)),
        (None, None, Some(commit)) => short_commit(commit).to_owned(),
        (None, Some(name), None) => name.to_owned(),
        (None, None, None) => return String::new(),
    };
    if let Some(day) = it.published().and_then(day) {
        text.push_str(&format!(" ({day})"));
    }
    text
}

/// Returns the day of a time in seconds since 1970, as `2026-11-02`.
pub(crate) fn day(seconds: u64) -> Option<String> {
    // Days since 0000-03-01, in eras of 400 years.
    let days = i64::try_from(seconds / 86_400).ok()? + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year <= 9999).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// Returns a time in seconds since 1970, as `2026-11-02T12:30:00Z`.
pub(crate) fn moment(seconds: u64) -> Option<String> {
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    Some(format!("{}T{hour:02}:{minute:02}:{second:02}Z", day(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let days = [0, 951_782_400, 1_709_164_800, 1_709_251_200, 1_793_491_200].map(day);
        let days = days.map(Option::unwrap_or_default);
        assert_eq!(days, ["1970-01-01", "2000-02-29", "2024-02-29", "2024-03-01", "2026-11-01"]);
        assert_eq!(day(u64::MAX), None);
    }
}
