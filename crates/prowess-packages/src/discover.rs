//! Finds the skills in a folder of a package.

mod tree;
mod plugins;
mod peer;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use prowess::{
    Finding, Profile, Rule, Severity,
    frontmatter::{Kind, Value},
};

use self::{
    peer::{Peer, PeerSkill},
    plugins::Plugins,
    tree::{Tree, name_of, parent_of},
};
use crate::{
    digest::{ContentDigest, TreeFile},
    source::{SkillSource, relative_path},
};

/// The most skills of a package.
const MAX_SKILLS: usize = 20_000;
/// The most files of all skills together; one inside another counts for both.
const MAX_FILES: usize = 500_000;
/// The most bytes of a `SKILL.md` that are read: its frontmatter has less.
const HEAD: u64 = 72 * 1024;

/// The longest path that a similar one is looked for.
const LONGEST_HINT: usize = 200;

/// A skill in a folder of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackagedSkill {
    /// The name in its frontmatter; that of its folder if there is none.
    pub name: String,
    /// The description in its frontmatter.
    pub description: String,
    /// The folder in the tree, with `/`; empty for a skill that is the whole tree.
    pub path: String,
    /// Its files, with paths below its folder, in byte order. Those of a skill inside it are among them.
    pub files: Vec<TreeFile>,
    /// The digest of its files.
    pub digest: ContentDigest,
    /// The plugin that brings it.
    pub plugin: Option<String>,
    /// The folder of the skill that it is inside of, which is often one that it is an example for.
    pub inside: Option<String>,
    /// Whether other package managers for skills do not see it where it is.
    pub overlooked: bool,
    /// Why they do not see it, as words behind "because".
    pub overlooked_because: Option<&'static str>,
    /// Whether its author keeps it from being offered: `metadata.internal` in its frontmatter.
    pub internal: bool,
}

/// The skills in a folder of a package.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DiscoveredPackage {
    /// Its skills, by path.
    pub skills: Vec<PackagedSkill>,
    /// The faults of skills, those that were left out among them. Paths are those in the tree.
    pub findings: Vec<Finding>,
    /// The faults of the package itself and of the manifests of its plugins.
    pub notes: Vec<PackageNote>,
    /// Plugins of its marketplace that are elsewhere: name and source.
    pub elsewhere: Vec<(String, SkillSource)>,
}

/// Something wrong with a package that is not a fault of one skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct PackageNote {
    /// The file or folder in the tree, with `/`; empty for the tree.
    pub path: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// A description of the fault.
    pub message: String,
    /// Advice on what to do.
    pub hint: String,
}

impl PackageNote {
    fn new(path: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, message: message.into(), hint: hint.into() }
    }
}

/// Finds all skills below a folder, whose files are listed in the byte order of their paths.
///
/// Only files that are listed are opened, and none through a link. Skills in `.git` are not searched,
/// and those in `node_modules` are counted only. No fault of a package is an error.
pub fn discover(folder: &Path, files: &[TreeFile], below: &str) -> DiscoveredPackage {
    let mut found = DiscoveredPackage::default();
    let tree = Tree::new(folder, files);
    found.notes.extend(tree.notes());
    let Some(below) = start(&tree, below, &mut found.notes) else { return found };
    let plugins = Plugins::read(&tree, &below);
    let peer = Peer::new(&tree, &below);
    let drafts = drafts(&tree, &below, &peer, &mut found);
    let seen = |internal: bool| {
        let readable = drafts.values().filter(|it| it.is_plain && (internal || !it.internal));
        let readable = readable.map(|it| (&*it.path, PeerSkill { name: &it.name }));
        peer.skills(&readable.collect())
    };
    let (offered, with_internal) = (seen(false), seen(true));
    let is_seen = |it: &Draft| match it.internal {
        true => with_internal.contains(&*it.path),
        false => offered.contains(&*it.path),
    };
    let mut listed = 0;
    let mut first: BTreeMap<&str, &Draft> = BTreeMap::new();
    for draft in drafts.values().filter(|it| is_seen(it)).chain(drafts.values()) {
        first.entry(&draft.name).or_insert(draft);
    }
    for draft in drafts.values() {
        let own = tree.below(&draft.path);
        listed += own.len();
        if listed > MAX_FILES {
            found.notes.push(PackageNote::new(
                &draft.path,
                format!(
                    "the skills have more than {MAX_FILES} files; this and the others are left out"
                ),
                "name a folder of the package that has fewer skills",
            ));
            break;
        }
        let files: Vec<TreeFile> = own.iter().map(|it| relative(it, &draft.path)).collect();
        let inside = above(&draft.path).find(|it| drafts.contains_key(*it)).map(str::to_owned);
        let chosen = first[&*draft.name];
        if chosen.path != draft.path {
            found.findings.push(taken(draft, chosen));
        }
        if let Some(outer) = &inside {
            found.findings.push(nested(draft, outer));
        }
        let because = match is_seen(draft) {
            true => None,
            false => Some(peer.reason(draft, chosen.path != draft.path, inside.is_some())),
        };
        found.skills.push(PackagedSkill {
            name: draft.name.clone(),
            description: draft.description.clone(),
            path: draft.path.clone(),
            digest: ContentDigest::of(&files),
            files,
            plugin: plugins.of(&draft.path),
            inside,
            overlooked: because.is_some(),
            overlooked_because: because,
            internal: draft.internal,
        });
    }
    found.notes.extend(plugins.notes);
    found.elsewhere = plugins.elsewhere;
    found
}

/// A skill that was read.
struct Draft {
    name: String,
    description: String,
    path: String,
    /// The path of its file.
    document: String,
    internal: bool,
    /// Whether others can read it: with a plain frontmatter that has a name and a description.
    is_plain: bool,
}

/// Returns the folder that the search begins in; none if it is not there.
fn start(tree: &Tree<'_>, below: &str, notes: &mut Vec<PackageNote>) -> Option<String> {
    let path = match relative_path(below.split('/')) {
        Ok(path) => path.unwrap_or_default(),
        Err(refusal) => {
            notes.push(PackageNote::new("", refusal.why, refusal.hint));
            return None;
        }
    };
    // A page of a file was named.
    let path = match tree.document(parent_of(&path)) {
        Some(name) if name == name_of(&path) && !path.is_empty() => parent_of(&path).to_owned(),
        _ => path,
    };
    if tree.has_folder(&path) {
        return Some(path);
    }
    // Comparing long names would take long.
    let is_short = path.len() <= LONGEST_HINT;
    let folders = tree.folders().filter(|it| is_short && it.len() <= LONGEST_HINT).take(10_000);
    let near = prowess::nearest(&path.to_lowercase(), folders);
    let hint = match near {
        Some(near) => prowess::did_you_mean(near),
        None => "name a folder of the package, or leave it out".to_owned(),
    };
    notes.push(PackageNote::new(&path, format!("there is no folder `{path}`"), hint));
    None
}

/// Reads all skills below a folder, by path.
fn drafts(
    tree: &Tree<'_>,
    below: &str,
    peer: &Peer<'_>,
    found: &mut DiscoveredPackage,
) -> BTreeMap<String, Draft> {
    let mut drafts = BTreeMap::new();
    let mut dependencies = 0;
    for (folder, name) in tree.documents_below(below) {
        let inner = &folder[below.len()..];
        if inner.split('/').any(|it| it == ".git") {
            continue;
        }
        let is_dependency = parent_of(inner).split('/').any(|it| it == "node_modules");
        if is_dependency && !peer.looks_in(parent_of(folder)) {
            dependencies += 1;
            continue;
        }
        if drafts.len() == MAX_SKILLS {
            found.notes.push(PackageNote::new(
                folder,
                format!(
                    "there are more than {MAX_SKILLS} skills; this and the others are left out"
                ),
                "name a folder of the package that has fewer skills",
            ));
            break;
        }
        if let Some(draft) = draft(tree, folder, name, &mut found.findings) {
            drafts.insert(draft.path.clone(), draft);
        }
    }
    if dependencies > 0 {
        found.notes.push(PackageNote::new(
            below,
            format!("{dependencies} skills in `node_modules` are not listed"),
            "name their folder, or add them from where they are published",
        ));
    }
    drafts
}

/// Reads a skill; none, with findings, if it cannot be used.
fn draft(tree: &Tree<'_>, folder: &str, name: &str, findings: &mut Vec<Finding>) -> Option<Draft> {
    let document = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    let path = PathBuf::from(&document);
    let mut head = match tree.head(&document, HEAD) {
        Ok(head) => head,
        Err(error) => {
            findings.push(Finding::new(
                rule("file-unreadable"),
                Severity::Error,
                &path,
                format!("the file cannot be read: {error}"),
                "fetch the package again",
            ));
            return None;
        }
    };
    if head.len() as u64 >= HEAD {
        // What was cut off must not look like a fault.
        let is_wide = matches!(*head, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
        let end = match is_wide {
            true => head.len() & !1,
            false => head.iter().rposition(|it| *it == b'\n').map_or(head.len(), |it| it + 1),
        };
        head.truncate(end);
    }
    // The folder of a whole package has a name of the cache, not of its author.
    let folder_name = (!folder.is_empty()).then(|| name_of(folder));
    let parsed = prowess::parse(&head, folder_name, Profile::Lenient);
    let mut is_plain = name == prowess::spec::SKILL_FILE && peer::reads(&head);
    for mut finding in parsed.findings {
        is_plain &= !peer::UNREAD.contains(&finding.rule.code);
        if finding.severity > Severity::Info {
            finding.path.clone_from(&path);
            findings.push(finding);
        }
    }
    if name != prowess::spec::SKILL_FILE {
        findings.push(Finding::new(
            rule("file-name"),
            Severity::Warning,
            &path,
            format!("the file is called `{name}`, which others do not find"),
            "rename it to `SKILL.md`",
        ));
    }
    let manifest = parsed.manifest?;
    let internal = manifest.metadata.iter().any(|it| {
        it.key == "internal"
            && matches!(&it.value, Value::Scalar(scalar)
                if scalar.kind() == Kind::Bool && scalar.text.eq_ignore_ascii_case("true"))
    });
    Some(Draft {
        name: manifest.name.into(),
        description: manifest.description.into(),
        path: folder.to_owned(),
        document,
        internal,
        is_plain,
    })
}

/// Returns the folders above a folder, the nearest one first; the last is the tree.
fn above(folder: &str) -> impl Iterator<Item = &str> {
    let first = (!folder.is_empty()).then(|| parent_of(folder));
    std::iter::successors(first, |it| (!it.is_empty()).then(|| parent_of(it)))
}

/// Returns a file with its path below a folder.
fn relative(file: &TreeFile, folder: &str) -> TreeFile {
    let cut = if folder.is_empty() { 0 } else { folder.len() + 1 };
    TreeFile { path: file.path[cut..].to_owned(), ..file.clone() }
}

fn taken(draft: &Draft, other: &Draft) -> Finding {
    Finding::new(
        rule("name-taken"),
        Severity::Warning,
        Path::new(&draft.document),
        format!("`{}` is also the name of the skill in `{}`", draft.name, shown(&other.path)),
        format!("others take that one; choose this one by its folder, `{}`", shown(&draft.path)),
    )
}

fn nested(draft: &Draft, outer: &str) -> Finding {
    Finding::new(
        rule("nested-skill"),
        Severity::Warning,
        Path::new(&draft.document),
        format!("this skill is inside the skill in `{}`, and is installed with it", shown(outer)),
        "move it beside the other, if it is not only an example",
    )
}

/// Returns a path as people write it.
fn shown(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// Returns a rule of the library.
fn rule(code: &str) -> &'static Rule {
    prowess::rule(code).expect("codes of rules never change")
}
