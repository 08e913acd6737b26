//! Which skills `npx skills` finds, in its order.

use std::collections::{BTreeMap, BTreeSet};

use prowess::spec::SKILL_FILE;
use serde_json::Value as Json;

use super::{
    Draft,
    plugins::manifest_json,
    tree::{Tree, is_below, joined, name_of, parent_of, resolved},
};

/// Folders that are not searched further.
const SKIPPED: &[&str] = &["node_modules", ".git", "dist", "build", "__pycache__"];
/// The folders of skills.
const CONTAINERS: &[&str] =
    &["skills", "skills/.curated", "skills/.experimental", "skills/.system"];
/// The folders in which agents look for the skills of a project.
const AGENTS: &[&str] = &[
    ".agents/skills",
    ".claude/skills",
    ".cline/skills",
    ".codebuddy/skills",
    ".codex/skills",
    ".commandcode/skills",
    ".continue/skills",
    ".factory/skills",
    ".github/skills",
    ".goose/skills",
    ".grok/skills",
    ".iflow/skills",
    ".junie/skills",
    ".kilo/skills",
    ".kilocode/skills",
    ".kimchi/skills",
    ".kiro/skills",
    ".minimax/skills",
    ".mux/skills",
    ".neovate/skills",
    ".opencode/skills",
    ".openhands/skills",
    ".pi/skills",
    ".posit/assistant/skills",
    ".qoder/skills",
    ".roo/skills",
    ".trae/skills",
    ".windsurf/skills",
    ".zcode/skills",
    ".zencoder/skills",
];
/// The depth to which the folders of skills are searched.
const CONTAINER_DEPTH: usize = 3;
/// The depth to which everything is searched when nothing was found.
const FALLBACK_DEPTH: usize = 5;
/// Rules of which a finding means that others do not read the file.
pub(super) const UNREAD: &[&str] = &[
    "description-not-text",
    "duplicate-key",
    "encoding-utf16",
    "name-missing",
    "name-not-text",
    "yaml-repaired",
    "yaml-rescued",
];

/// The search of the other program.
pub(super) struct Peer<'t> {
    tree: &'t Tree<'t>,
    below: &'t str,
    /// Names in `skills-lock.json`, which were installed from elsewhere.
    installed: BTreeSet<String>,
    /// The folders whose children it looks at, with the depth.
    places: Vec<(String, usize)>,
    /// The same folders.
    known: BTreeSet<String>,
}

/// A skill that the other program can read.
pub(super) struct PeerSkill<'t> {
    pub(super) name: &'t str,
}

/// The result of one search.
struct Search<'t, 's> {
    peer: &'s Peer<'t>,
    skills: &'s BTreeMap<&'s str, PeerSkill<'s>>,
    names: BTreeSet<&'s str>,
    looked_at: BTreeSet<&'s str>,
    found: BTreeSet<&'s str>,
}

/// Whether the other program finds the frontmatter of a file.
pub(super) fn reads(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let Some(rest) = text.strip_prefix(b"---\n").or_else(|| text.strip_prefix(b"---\r\n")) else {
        return false;
    };
    let end = rest.windows(4).position(|it| it == b"\n---");
    end.is_some_and(|end| !rest[..=end].windows(5).any(|it| it == b"\n...\n" || it == b"\n...\r"))
}

impl<'t> Peer<'t> {
    pub(super) fn new(tree: &'t Tree<'t>, below: &'t str) -> Self {
        let mut places = vec![(below.to_owned(), 1)];
        let containers = CONTAINERS.iter().chain(AGENTS);
        places.extend(containers.map(|it| (joined(below, it), CONTAINER_DEPTH)));
        let mut known: BTreeSet<String> = places.iter().map(|it| it.0.clone()).collect();
        for place in plugin_places(tree, below) {
            if known.insert(place.clone()) {
                places.push((place, 1));
            }
        }
        Self { tree, below, installed: installed(tree), places, known }
    }

    /// Returns the folders of the skills that it lists, of those that it can read.
    pub(super) fn skills<'s>(
        &'s self,
        skills: &'s BTreeMap<&'s str, PeerSkill<'s>>,
    ) -> BTreeSet<String> {
        let mut search = Search {
            peer: self,
            skills,
            names: BTreeSet::new(),
            looked_at: BTreeSet::new(),
            found: BTreeSet::new(),
        };
        search.run();
        search.found.into_iter().map(str::to_owned).collect()
    }

    /// Whether it looks at the folders in a folder.
    pub(super) fn looks_in(&self, folder: &str) -> bool {
        self.known.contains(folder)
    }

    /// Whether the package has it only because it was installed there.
    fn is_installed(&self, path: &str, name: &str) -> bool {
        let is_agents = || AGENTS.iter().any(|it| is_below(path, it));
        let is_listed = |it: &str| self.installed.contains(&normal(it));
        !self.installed.is_empty() && is_agents() && (is_listed(name) || is_listed(name_of(path)))
    }

    /// Returns why it does not list a skill, as words behind "because".
    pub(super) fn reason(&self, skill: &Draft, is_taken: bool, is_nested: bool) -> &'static str {
        if name_of(&skill.document) != SKILL_FILE {
            "its file is not called SKILL.md"
        } else if !skill.is_plain {
            "its frontmatter cannot be read without repairs"
        } else if self.is_installed(&skill.path, &skill.name) {
            "skills-lock.json says that it was installed from elsewhere"
        } else if is_nested {
            "it is inside another skill"
        } else if is_taken {
            "another skill of this name comes first"
        } else {
            "it is in a folder that they do not search"
        }
    }
}

impl<'s> Search<'_, 's> {
    fn run(&mut self) {
        let below = self.peer.below;
        if self.has_document(below) && self.look_at(below) && self.found.contains(below) {
            return;
        }
        for (place, depth) in &self.peer.places {
            self.walk(place, *depth);
        }
        if self.found.is_empty() {
            self.everywhere(below, 0);
        }
    }

    fn has_document(&self, folder: &str) -> bool {
        self.peer.tree.document(folder) == Some(SKILL_FILE)
    }

    /// Lists the skill in a folder that has a file; false if the file was looked at before.
    fn look_at(&mut self, folder: &str) -> bool {
        let Some((folder, skill)) = self.skills.get_key_value(folder) else { return true };
        if !self.looked_at.insert(folder) {
            return false;
        }
        if !self.names.contains(skill.name) && !self.peer.is_installed(folder, skill.name) {
            self.names.insert(skill.name);
            self.found.insert(folder);
        }
        true
    }

    fn walk(&mut self, folder: &str, depth: usize) {
        for name in self.peer.tree.children(folder) {
            let child = joined(folder, name);
            if self.has_document(&child) {
                self.look_at(&child);
            } else if depth > 1 && !SKIPPED.contains(&name) {
                self.walk(&child, depth - 1);
            }
        }
    }

    fn everywhere(&mut self, folder: &str, depth: usize) {
        if depth > FALLBACK_DEPTH {
            return;
        }
        if self.has_document(folder) {
            self.look_at(folder);
        }
        for name in self.peer.tree.children(folder).filter(|it| !SKIPPED.contains(it)) {
            self.everywhere(&joined(folder, name), depth + 1);
        }
    }
}

/// Returns the names in the lock file of a package.
fn installed(tree: &Tree<'_>) -> BTreeSet<String> {
    let Some(Ok(lock)) = manifest_json(tree, "skills-lock.json") else { return BTreeSet::new() };
    let is_read = lock["version"].as_f64().is_some_and(|it| it >= 1.0);
    let skills = lock["skills"].as_object().filter(|_| is_read);
    skills.into_iter().flatten().map(|it| normal(it.0)).collect()
}

/// Returns a name as it is compared: in lower case, with hyphens.
fn normal(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    let mut was_gap = false;
    for c in name.to_lowercase().chars() {
        let is_gap = c == '_' || c.is_whitespace();
        match is_gap {
            true if was_gap => {}
            true => normal.push('-'),
            false => normal.push(c),
        }
        was_gap = is_gap;
    }
    normal
}

/// Returns the folders that its manifests of plugins add. It stops at the first odd value.
fn plugin_places(tree: &Tree<'_>, below: &str) -> Vec<String> {
    let mut places = Vec::new();
    let path = joined(below, ".claude-plugin/marketplace.json");
    if let Some(Ok(manifest)) = manifest_json(tree, &path) {
        let _ = marketplace_places(&manifest, below, &mut places);
    }
    let path = joined(below, ".claude-plugin/plugin.json");
    if let Some(Ok(manifest)) =
        manifest_json(tree, &path).filter(|it| !matches!(it, Ok(Json::Null)))
    {
        let _ = add_places(below, below, manifest.get("skills"), &mut places);
    }
    places
}

fn marketplace_places(manifest: &Json, below: &str, places: &mut Vec<String>) -> Option<()> {
    let root = match manifest.get("metadata").and_then(|it| it.get("pluginRoot")) {
        None => "",
        Some(root) => root.as_str().filter(|it| it.starts_with("./"))?,
    };
    for plugin in manifest.get("plugins")?.as_array()? {
        let source = match plugin.get("source") {
            _ if plugin.is_null() => return None,
            None => "",
            Some(Json::String(source)) if source.starts_with("./") => source,
            Some(_) => continue,
        };
        let path = format!("{root}/{source}");
        if let Some(folder) = resolved(below, below, &path) {
            add_places(below, &folder, plugin.get("skills"), places)?;
        }
    }
    Some(())
}

fn add_places(
    below: &str,
    folder: &str,
    skills: Option<&Json>,
    places: &mut Vec<String>,
) -> Option<()> {
    for skill in skills.and_then(Json::as_array).into_iter().flatten() {
        let path = skill.as_str()?;
        let resolved = path.starts_with("./").then(|| resolved("", folder, path)).flatten();
        let Some(resolved) = resolved.filter(|it| it != below) else { continue };
        let parent = parent_of(&resolved);
        if is_below(parent, below) {
            places.push(parent.to_owned());
        }
    }
    places.push(joined(folder, "skills"));
    Some(())
}
