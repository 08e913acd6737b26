//! The branches and tags of a repository: which commit a name stands for.

use crate::fetch::{
    error::{FetchPackageError, is_hex},
    git_program::shown,
};

/// The branch, tag or commit that a name in a repository stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// The default branch.
    Default,
    /// A commit, in hex.
    Commit(String),
    /// A name that begins with `refs/`.
    Full(String),
    /// A branch or tag.
    Short(String),
}

/// A branch or tag of a repository, and its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResolvedReference {
    /// The whole name, such as `refs/heads/main`; none for a commit that was asked for itself.
    pub(super) name: Option<String>,
    /// The commit, in hex.
    pub(super) commit: String,
    /// A note for the user.
    pub(super) note: Option<String>,
}

/// The list of a server: names with objects, and where `HEAD` points.
#[derive(Debug, Clone, Default)]
pub(super) struct ListedReferences {
    /// Names and objects. The name of a tag's commit ends in `^{}`.
    pub(super) names: Vec<(String, String)>,
    /// The branch of `HEAD`.
    pub(super) head: Option<String>,
}

/// The answer of a server that is asked for branches and tags.
pub(super) enum Listing {
    References(ListedReferences),
    /// The repository is at another URL.
    Moved(String),
}

impl Reference {
    pub(super) fn new(text: Option<&str>) -> Result<Self, FetchPackageError> {
        let Some(text) = text else { return Ok(Self::Default) };
        let is_commit = matches!(text.len(), 40 | 64) && is_hex(text);
        match text {
            "HEAD" => Ok(Self::Default),
            _ if is_commit => Ok(Self::Commit(text.to_ascii_lowercase())),
            _ if !is_name(text) => {
                Err(FetchPackageError::InvalidReference { reference: text.to_owned() })
            }
            _ if text.starts_with("refs/") => Ok(Self::Full(text.to_owned())),
            _ => Ok(Self::Short(text.to_owned())),
        }
    }

    /// Returns the names to ask a server for.
    pub(super) fn asked(&self) -> Vec<String> {
        match self {
            // Of a commit, only the repository is looked for.
            Self::Default | Self::Commit(_) => vec!["HEAD".to_owned()],
            Self::Full(name) => vec![name.clone(), format!("{name}^{{}}")],
            Self::Short(name) => vec![
                format!("refs/heads/{name}"),
                format!("refs/tags/{name}"),
                format!("refs/tags/{name}^{{}}"),
            ],
        }
    }

    /// Returns the whole name, given the one by which a commit was fetched before.
    pub(super) fn known_as(&self, before: Option<&str>) -> Option<String> {
        match self {
            Self::Default => before.map(str::to_owned),
            Self::Commit(_) => None,
            Self::Full(name) => Some(name.clone()),
            Self::Short(name) => {
                let names = [format!("refs/heads/{name}"), format!("refs/tags/{name}")];
                names.into_iter().find(|it| before == Some(it))
            }
        }
    }

    /// Returns the commit among what a server lists. A branch goes before a tag of its name, as in
    /// `git clone --branch`.
    pub(super) fn resolve(&self, listed: &ListedReferences) -> Option<ResolvedReference> {
        let found = |name: &str| {
            let commit = listed.commit(name)?;
            Some(ResolvedReference { name: Some(name.to_owned()), commit, note: None })
        };
        match self {
            Self::Default => {
                let commit = listed.commit("HEAD")?;
                let name = listed.head.clone().filter(|it| is_name(it));
                Some(ResolvedReference { name, commit, note: None })
            }
            Self::Commit(commit) => {
                Some(ResolvedReference { name: None, commit: commit.clone(), note: None })
            }
            Self::Full(name) => found(name),
            Self::Short(name) => {
                let branch = found(&format!("refs/heads/{name}"));
                let tag = found(&format!("refs/tags/{name}"));
                match (branch, tag) {
                    (Some(branch), Some(tag)) if branch.commit != tag.commit => {
                        let note = format!(
                            "`{name}` is a branch and a tag; the branch is used, the tag is `#refs/tags/{name}`"
                        );
                        Some(ResolvedReference { note: Some(note), ..branch })
                    }
                    (branch, tag) => branch.or(tag),
                }
            }
        }
    }
}

impl ListedReferences {
    /// Reads the output of `git ls-remote --symref`.
    pub(super) fn parse(text: &str) -> Self {
        let mut listed = Self::default();
        for line in text.lines() {
            let Some((object, name)) = line.split_once('\t') else { continue };
            if let Some(target) = object.strip_prefix("ref: ") {
                if name == "HEAD" {
                    listed.head = Some(target.to_owned());
                }
            } else if matches!(object.len(), 40 | 64) && is_hex(object) {
                listed.names.push((name.to_owned(), object.to_owned()));
            }
        }
        listed
    }

    fn commit(&self, name: &str) -> Option<String> {
        let peeled = format!("{name}^{{}}");
        let find = |name: &str| self.names.iter().find(|it| it.0 == name).map(|it| it.1.clone());
        find(&peeled).or_else(|| find(name))
    }

    /// Returns the error that a name is not among the branches and tags.
    pub(super) fn unknown(&self, url: &str, reference: &str) -> FetchPackageError {
        let short = reference.trim_start_matches("refs/heads/").trim_start_matches("refs/tags/");
        let names = || {
            let names = self.names.iter().map(|it| &*it.0).filter(|it| is_name(it));
            names.filter_map(|it| {
                it.strip_prefix("refs/heads/").or_else(|| it.strip_prefix("refs/tags/"))
            })
        };
        let names = match prowess::nearest(short, names()) {
            Some(near) => vec![near.to_owned()],
            None => names().take(200).map(str::to_owned).collect(),
        };
        FetchPackageError::UnknownReference {
            url: shown(url),
            reference: reference.to_owned(),
            names,
        }
    }
}

/// Whether git accepts a name for a branch or tag. None of them can be read as an option or pattern.
fn is_name(text: &str) -> bool {
    let is_bad = |it: char| it.is_control() || " ~^:?*[\\\u{7f}".contains(it);
    !text.is_empty()
        && text.len() <= 1024
        && text != "@"
        && !text.contains(is_bad)
        && !text.contains("..")
        && !text.contains("@{")
        && !text.ends_with('.')
        && !text.starts_with('-')
        && text
            .split('/')
            .all(|it| !it.is_empty() && !it.starts_with('.') && !it.ends_with(".lock"))
}

#[cfg(test)]
mod tests {
    use super::{ListedReferences, Reference};

    #[test]
    fn names_that_git_refuses_are_refused() {
        for bad in
            ["-x", "--upload-pack=x", "a..b", "a b", "a\n", "", "a:b", "x*", "a@{1}", "/a", "a/"]
        {
            assert!(Reference::new(Some(bad)).is_err(), "{bad}");
        }
        for good in ["main", "feature/x-1", "v1.0", "refs/pull/1/head", "ümlaut"] {
            assert!(Reference::new(Some(good)).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_branch_goes_before_a_tag_and_tags_are_peeled() {
        let [a, b, c] = ["a", "b", "c"].map(|it| it.repeat(40));
        let listed = ListedReferences::parse(&format!(
            "ref: refs/heads/main\tHEAD\n{a}\tHEAD\n{a}\trefs/heads/x\n{b}\trefs/tags/x\n{b}\trefs/tags/v\n{c}\trefs/tags/v^{{}}\n"
        ));
        let resolve = |text| Reference::new(text).unwrap().resolve(&listed);
        let x = resolve(Some("x")).unwrap();
        assert_eq!(
            (x.name.as_deref(), x.commit, x.note.is_some()),
            (Some("refs/heads/x"), a.clone(), true)
        );
        assert_eq!(resolve(Some("v")).unwrap().commit, c);
        assert_eq!(resolve(None).unwrap().name.as_deref(), Some("refs/heads/main"));
        assert_eq!(resolve(Some("y")), None);
    }
}
