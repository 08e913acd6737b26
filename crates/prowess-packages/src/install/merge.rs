//! Merges local edits with a new version, file by file.
//!
//! A file that both changed is merged line by line if both changes have a place. Otherwise the
//! user's file stays, and the new one is put beside it as `NAME.new`: a skill never has conflict
//! markers, which a model would read as instructions.

use std::{collections::BTreeMap, ops::Range, path::Path};

use gix_imara_diff::{Algorithm, Diff, InternedInput};

use super::tree::{DiskTree, is_by_product};
use crate::digest::TreeFile;

/// The largest file that is merged line by line, in bytes.
const MAX_TEXT: u64 = 1 << 20;
/// The ending of a new version that lies beside the user's file.
const NEW: &str = ".new";

/// What was done with a file that the user changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeResult {
    /// The user's change stays; the new version has none there.
    Kept,
    /// The changes of both are in the file.
    Merged,
    /// The user's file stays, and the new version is beside it, with the ending `.new`.
    Beside,
    /// The user removed the file, and it stays removed.
    StaysRemoved,
    /// The new version does not have the file any more; the user's stays.
    StaysThere,
}

/// A file that the user changed, and what was done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergedFile {
    /// The path in the skill.
    pub path: String,
    /// What was done.
    pub result: MergeResult,
}

/// The source of a file of a merged folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MergedContent {
    /// The user's.
    Ours,
    /// That of a path of the new version.
    Theirs(String),
    /// Of both.
    Text(String),
}

/// A merged folder: each path with its source, and what was done with the changed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MergedTree {
    pub(super) files: BTreeMap<String, MergedContent>,
    pub(super) results: Vec<MergedFile>,
}

/// The three versions of a skill, each with its folder if there is one.
pub(super) struct Versions<'a> {
    /// What the lock says.
    pub(super) base: (&'a [TreeFile], Option<&'a Path>),
    /// What is on the disk.
    pub(super) ours: (&'a DiskTree, &'a Path),
    /// What is to be installed.
    pub(super) theirs: (&'a [TreeFile], Option<&'a Path>),
}

/// Merges the user's version of a skill with a new one.
pub(super) fn merge(versions: &Versions<'_>) -> MergedTree {
    let by_path = |files: &[TreeFile]| -> BTreeMap<String, TreeFile> {
        files.iter().map(|it| (it.path.clone(), it.clone())).collect()
    };
    let base = by_path(versions.base.0);
    let ours = by_path(&versions.ours.0.files);
    let theirs = by_path(versions.theirs.0);
    let is_same_version = base == theirs;
    let mut merged = MergedTree::default();
    let mut beside = Vec::new();
    let mut paths: Vec<&String> = base.keys().chain(ours.keys()).chain(theirs.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let (old, own, new) = (base.get(path), ours.get(path), theirs.get(path));
        let mut noted = |result| {
            merged.results.push(MergedFile { path: path.clone(), result });
        };
        let content = match (own, new) {
            (Some(own), Some(new)) if is_same(own, new) => MergedContent::Theirs(path.clone()),
            (Some(own), Some(_)) if old.is_some_and(|it| is_same(own, it)) => {
                MergedContent::Theirs(path.clone())
            }
            (Some(_), Some(new)) if old.is_some_and(|it| is_same(new, it)) => {
                noted(MergeResult::Kept);
                MergedContent::Ours
            }
            (Some(own), Some(new)) => match merge_text(versions, path, [old, Some(own), Some(new)])
            {
                Some(text) => {
                    noted(MergeResult::Merged);
                    MergedContent::Text(text)
                }
                None => {
                    noted(MergeResult::Beside);
                    beside.push(path.clone());
                    MergedContent::Ours
                }
            },
            (Some(own), None) if old.is_some_and(|it| is_same(own, it)) => continue,
            (Some(_), None) if old.is_none() && is_by_product(path) => continue,
            (Some(_), None) => {
                noted(if old.is_some() { MergeResult::StaysThere } else { MergeResult::Kept });
                MergedContent::Ours
            }
            // Files that are gone come back when the same version is installed again.
            (None, Some(_)) if old.is_none() || is_same_version => {
                MergedContent::Theirs(path.clone())
            }
            (None, Some(_)) => {
                noted(MergeResult::StaysRemoved);
                continue;
            }
            (None, None) => continue,
        };
        merged.files.insert(path.clone(), content);
    }
    // Links that the user put there are copied as they are; the rest stays in the old folder.
    for path in &versions.ours.0.others {
        let link = std::fs::symlink_metadata(versions.ours.1.join(path));
        if link.is_ok_and(|it| it.is_symlink()) {
            let result = MergeResult::Kept;
            merged.results.retain(|it| it.path != *path);
            merged.results.push(MergedFile { path: path.clone(), result });
            merged.files.insert(path.clone(), MergedContent::Ours);
        }
    }
    for path in beside {
        let free = (1..).map(|it: u32| match it {
            1 => format!("{path}{NEW}"),
            many => format!("{path}{NEW}{many}"),
        });
        let is_taken = |it: &String| merged.files.contains_key(it);
        if let Some(name) = free.into_iter().find(|it| !is_taken(it)) {
            merged.files.insert(name, MergedContent::Theirs(path));
        }
    }
    without_clashes(merged)
}

/// Removes files of the new version below a path that is a file of the user's, and the other way
/// round: the user's stay.
fn without_clashes(mut merged: MergedTree) -> MergedTree {
    let mut gone = Vec::new();
    for (path, content) in &merged.files {
        let above = path.match_indices('/').map(|it| &path[..it.0]);
        for above in above {
            let Some(other) = merged.files.get(above) else { continue };
            gone.push(match (content, other) {
                (MergedContent::Theirs(_), _) => path.clone(),
                _ => above.to_owned(),
            });
        }
    }
    gone.iter().for_each(|it| drop(merged.files.remove(it)));
    merged
}

fn is_same(one: &TreeFile, other: &TreeFile) -> bool {
    one.digest == other.digest && (!cfg!(unix) || one.executable == other.executable)
}

/// Merges the lines of a text that both changed; `None` if it is no text, or the changes collide.
fn merge_text(
    versions: &Versions<'_>,
    path: &str,
    files: [Option<&TreeFile>; 3],
) -> Option<String> {
    let folders = [versions.base.1, Some(versions.ours.1), versions.theirs.1];
    let mut texts = Vec::new();
    for (file, folder) in files.into_iter().zip(folders) {
        if file?.size > MAX_TEXT {
            return None;
        }
        let text = std::fs::read_to_string(folder?.join(path)).ok()?;
        texts.push(Some(text).filter(|it| !it.contains('\0'))?);
    }
    merge_lines(&texts[0], &texts[1], &texts[2])
}

/// A change of lines of the base, to lines of another version.
#[derive(Clone)]
struct Hunk {
    before: Range<usize>,
    after: Range<usize>,
}

/// Merges two changed versions of a text; `None` if they change the same or adjacent lines
/// differently.
pub(super) fn merge_lines(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let [base_lines, our_lines, their_lines] =
        [base, ours, theirs].map(|it| it.split_inclusive('\n').collect::<Vec<&str>>());
    let (mut own, mut new) =
        (hunks(base, ours).into_iter().peekable(), hunks(base, theirs).into_iter().peekable());
    let mut merged = String::new();
    let mut at = 0;
    loop {
        let first = [own.peek(), new.peek()].into_iter().flatten().map(|it| it.before.start).min();
        let Some(start) = first else { break };
        merged.extend(base_lines.get(at..start)?.iter().copied());
        // All changes that overlap or touch each other.
        let (mut end, mut mine, mut others) = (start, Vec::new(), Vec::new());
        loop {
            let touches = |it: &Hunk| it.before.start <= end;
            if let Some(hunk) = own.next_if(|it| touches(it)) {
                end = end.max(hunk.before.end);
                mine.push(hunk);
            } else if let Some(hunk) = new.next_if(|it| touches(it)) {
                end = end.max(hunk.before.end);
                others.push(hunk);
            } else {
                break;
            }
        }
        let text = |hunks: &[Hunk], lines: &[&str]| -> Option<String> {
            let (mut text, mut at) = (String::new(), start);
            for hunk in hunks {
                text.extend(base_lines.get(at..hunk.before.start)?.iter().copied());
                text.extend(lines.get(hunk.after.clone())?.iter().copied());
                at = hunk.before.end;
            }
            text.extend(base_lines.get(at..end)?.iter().copied());
            Some(text)
        };
        let (mine_text, others_text) = (text(&mine, &our_lines)?, text(&others, &their_lines)?);
        match (mine.is_empty(), others.is_empty()) {
            (false, true) => merged.push_str(&mine_text),
            (true, _) => merged.push_str(&others_text),
            (false, false) if mine_text == others_text => merged.push_str(&mine_text),
            (false, false) => return None,
        }
        at = end;
    }
    merged.extend(base_lines.get(at..)?.iter().copied());
    Some(merged)
}

fn hunks(before: &str, after: &str) -> Vec<Hunk> {
    let input = InternedInput::new(before, after);
    let diff = Diff::compute(Algorithm::Myers, &input);
    let range = |it: Range<u32>| it.start as usize..it.end as usize;
    diff.hunks().map(|it| Hunk { before: range(it.before), after: range(it.after) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "a\nb\nc\nd\ne\nf\n";

    #[test]
    fn changes_in_different_places_are_both_made() {
        let merged = merge_lines(BASE, "A\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nF\ng\n");
        assert_eq!(merged.as_deref(), Some("A\nb\nc\nd\ne\nF\ng\n"));
        let merged = merge_lines(BASE, "b\nc\nd\ne\nf\n", "a\nb\nc\nd\nf\n");
        assert_eq!(merged.as_deref(), Some("b\nc\nd\nf\n"));
        assert_eq!(merge_lines(BASE, BASE, "x\n").as_deref(), Some("x\n"));
        assert_eq!(merge_lines(BASE, "x\n", BASE).as_deref(), Some("x\n"));
        assert_eq!(merge_lines("", "", "").as_deref(), Some(""));
    }

    #[test]
    fn the_same_change_is_made_once() {
        let merged = merge_lines(BASE, "a\nb\nX\nd\ne\nf\n", "a\nb\nX\nd\ne\nf\ng\n");
        assert_eq!(merged.as_deref(), Some("a\nb\nX\nd\ne\nf\ng\n"));
    }

    #[test]
    fn changes_that_collide_are_not_merged() {
        assert_eq!(merge_lines(BASE, "a\nX\nc\nd\ne\nf\n", "a\nY\nc\nd\ne\nf\n"), None);
        assert_eq!(merge_lines(BASE, "a\nX\nc\nd\ne\nf\n", "a\nb\nY\nd\ne\nf\n"), None);
        assert_eq!(merge_lines("", "x\n", "y\n"), None);
        assert_eq!(merge_lines(BASE, "", "a\nb\nX\nd\ne\nf\n"), None);
    }

    #[test]
    fn a_last_line_without_an_end_loses_nothing() {
        let merged = merge_lines("a\nb\nc\nd", "A\nb\nc\nd", "a\nb\nc\nd\ne\n");
        assert_eq!(merged.as_deref(), Some("A\nb\nc\nd\ne\n"));
        assert_eq!(merge_lines("a", "a\nb", "a\nc"), None);
    }
}
