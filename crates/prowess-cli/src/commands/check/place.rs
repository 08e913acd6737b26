//! Places and messages of findings, for other programs.

use std::path::{Component, Path, PathBuf};

use prowess::Finding;

/// Returns the columns of a finding, counted from 1 in the units of `length`; the second is one
/// past the last.
pub(super) fn columns(finding: &Finding, length: fn(&str) -> usize) -> Option<(usize, usize)> {
    let (excerpt, (start, end)) = (finding.excerpt.as_deref()?, finding.columns?);
    let before = excerpt.get(..start)?;
    let until = excerpt.get(..end.min(excerpt.len()))?;
    Some((length(before) + 1, length(until) + 1))
}

/// Returns the path of a finding relative to `root`, an absolute path; absolute if it is elsewhere.
pub(super) fn path(finding: &Finding, root: &Path) -> PathBuf {
    let mut path = PathBuf::new();
    for part in root.join(&finding.path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    path.strip_prefix(root).map(Path::to_owned).unwrap_or(path)
}

/// Returns a message and its hint as two sentences.
pub(super) fn sentences(finding: &Finding) -> String {
    let (message, hint) = (sentence(&finding.message), sentence(&finding.hint));
    format!("{message} {hint}").trim_end().to_owned()
}

/// Capitalizes a text and adds a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    let stop = if text.is_empty() || text.ends_with(['.', '?', '!']) { "" } else { "." };
    first.chain(rest).chain(stop.chars()).collect()
}
