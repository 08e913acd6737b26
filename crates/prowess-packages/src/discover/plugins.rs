//! Plugins and marketplaces: which skills they bring, and which plugins are elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use serde_json::{Map, Value as Json};

use super::{
    PackageNote,
    tree::{Tree, is_below, joined, name_of, parent_of, resolved},
};
use crate::source::{
    GitSource, SkillSource, SourceKind, SourceSyntaxError, check_reference, relative_path,
};

/// The most bytes of a manifest.
const MAX_MANIFEST: u64 = 1024 * 1024;
/// The most plugins of a package.
const MAX_PLUGINS: usize = 10_000;
/// The most manifests of plugins that are read.
const MAX_MANIFESTS: usize = 2_000;
/// The most notes about manifests.
const MAX_NOTES: usize = 1_000;
/// The marketplaces of Codex and Claude Code; the first one that names a plugin decides.
const MARKETPLACES: &[&str] = &[
    ".agents/plugins/marketplace.json",
    ".agents/plugins/api_marketplace.json",
    ".claude-plugin/marketplace.json",
    ".cursor-plugin/marketplace.json",
];
/// The manifests of a plugin, behind one of Agent Plugins; the first one decides.
const MANIFESTS: &[&str] =
    &[".codex-plugin/plugin.json", ".claude-plugin/plugin.json", ".cursor-plugin/plugin.json"];
/// The value of `$schema` in a manifest of Agent Plugins 1.0.0.
const AGENT_PLUGIN: &str = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
/// The beginning of all versions of that value.
const AGENT_PLUGINS: &str = "https://agent-plugins.org/schemas/";
/// The fields of a manifest of Agent Plugins 1.0.0.
const AGENT_PLUGIN_FIELDS: &[&str] = &[
    "$schema",
    "author",
    "description",
    "extensions",
    "homepage",
    "keywords",
    "license",
    "name",
    "repository",
    "version",
];

/// The plugins of a package.
#[derive(Debug, Default)]
pub(super) struct Plugins {
    plugins: Vec<Plugin>,
    pub(super) notes: Vec<PackageNote>,
    /// Plugins that are elsewhere.
    pub(super) elsewhere: Vec<(String, SkillSource)>,
    /// The names of all plugins of marketplaces.
    names: BTreeSet<String>,
    /// The plugins that list a folder, by that folder, as numbers; the first one counts.
    listing: BTreeMap<String, usize>,
    /// The plugins by their folders `skills`.
    default: BTreeMap<String, usize>,
    /// Whether there is a skill in or right below a folder.
    with_skills: BTreeMap<String, bool>,
}

/// A plugin whose files are in the package.
#[derive(Debug)]
struct Plugin {
    name: String,
    folder: String,
    /// The folders of its skills, or folders with folders of skills, that are listed.
    listed: BTreeSet<String>,
    /// Whether the skills in `skills` are its own too.
    has_default: bool,
}

/// Why a manifest cannot be used.
#[derive(Debug)]
pub(super) struct ManifestFault {
    line: Option<usize>,
    message: String,
}

/// Reads a manifest of the package; none if there is none.
pub(super) fn manifest_json(tree: &Tree<'_>, path: &str) -> Option<Result<Json, ManifestFault>> {
    if !tree.has_file(path) {
        return None;
    }
    let fault = |message: String| ManifestFault { line: None, message };
    let bytes = match tree.head(path, MAX_MANIFEST + 1) {
        Ok(bytes) => bytes,
        Err(error) => return Some(Err(fault(format!("it cannot be read: {error}")))),
    };
    if bytes.len() as u64 > MAX_MANIFEST {
        return Some(Err(fault("it has more than 1 MiB".to_owned())));
    }
    Some(serde_json::from_slice(&bytes).map_err(|error| ManifestFault {
        line: Some(error.line()).filter(|it| *it > 0),
        message: format!("it is not JSON: {error}"),
    }))
}

impl Plugins {
    /// Reads all manifests of a package.
    pub(super) fn read(tree: &Tree<'_>, below: &str) -> Self {
        let mut plugins = Self::default();
        for name in MARKETPLACES {
            let path = joined(below, name);
            match manifest_json(tree, &path) {
                None => {}
                Some(Ok(manifest)) => plugins.marketplace(tree, below, &path, &manifest),
                Some(Err(fault)) => plugins.fault(&path, fault),
            }
        }
        let mut folders: BTreeSet<String> =
            plugins.plugins.iter().map(|it| it.folder.clone()).collect();
        folders.insert(below.to_owned());
        let hidden: BTreeSet<&str> = MANIFESTS.iter().map(|it| parent_of(it)).collect();
        for folder in tree.folders().filter(|it| is_below(it, below)) {
            if hidden.contains(name_of(folder)) && tree.has_file(&joined(folder, "plugin.json")) {
                folders.insert(parent_of(folder).to_owned());
            }
        }
        for (number, folder) in folders.iter().filter(|it| is_below(it, below)).enumerate() {
            if number == MAX_MANIFESTS {
                plugins.note(
                    folder,
                    format!("there are more than {MAX_MANIFESTS} plugins; the manifests of the others are not read"),
                    "name a folder of the package",
                );
                break;
            }
            plugins.plugin(tree, folder);
        }
        for (number, plugin) in plugins.plugins.iter().enumerate() {
            for folder in &plugin.listed {
                plugins.listing.entry(folder.clone()).or_insert(number);
            }
            if plugin.has_default {
                plugins.default.entry(joined(&plugin.folder, "skills")).or_insert(number);
            }
        }
        plugins
    }

    /// Returns the name of the plugin that brings a skill.
    pub(super) fn of(&self, skill: &str) -> Option<String> {
        let listing = [skill, parent_of(skill)].into_iter().filter_map(|it| self.listing.get(it));
        let number = listing.min().or_else(|| {
            // The innermost folder.
            let first = (!skill.is_empty()).then_some(skill);
            let mut above =
                iter::successors(first, |it| Some(parent_of(it)).filter(|it| !it.is_empty()));
            above.find_map(|it| self.default.get(it))
        });
        number.map(|it| self.plugins[*it].name.clone())
    }

    fn marketplace(&mut self, tree: &Tree<'_>, below: &str, path: &str, manifest: &Json) {
        let Some(entries) = manifest.get("plugins").and_then(Json::as_array) else {
            self.note(path, "it has no list `plugins`", "write `\"plugins\": []`");
            return;
        };
        let root = manifest.get("metadata").and_then(|it| it.get("pluginRoot"));
        let root = match root {
            None => below.to_owned(),
            Some(root) => match root.as_str().and_then(|it| resolved(below, below, it)) {
                Some(root) => root,
                None => {
                    self.note(
                        path,
                        "`metadata.pluginRoot` is not a folder of the package",
                        "write a path such as `./plugins`",
                    );
                    below.to_owned()
                }
            },
        };
        for entry in entries {
            let name = entry.get("name").and_then(Json::as_str).filter(|it| !it.is_empty());
            let Some((entry, name)) = entry.as_object().zip(name) else {
                self.note(path, "a plugin has no name", "give each plugin a `name`");
                continue;
            };
            if self.names.len() == MAX_PLUGINS {
                self.note(
                    path,
                    format!("there are more than {MAX_PLUGINS} plugins; the others are left out"),
                    "name a folder of the package",
                );
                return;
            }
            // The first marketplace that names it decides.
            if !self.names.insert(name.to_owned()) {
                continue;
            }
            self.entry(tree, below, &root, path, name, entry);
        }
    }

    /// Reads a plugin of a marketplace.
    fn entry(
        &mut self,
        tree: &Tree<'_>,
        below: &str,
        root: &str,
        path: &str,
        name: &str,
        entry: &Map<String, Json>,
    ) {
        let local = match entry.get("source") {
            None => Some(""),
            Some(Json::String(source)) => Some(source.as_str()),
            Some(Json::Object(source)) if is_local(source) => {
                source.get("path").and_then(Json::as_str)
            }
            Some(Json::Object(source)) => {
                match remote(source) {
                    Ok(source) => self.elsewhere.push((name.to_owned(), source)),
                    Err(error) => self.note(
                        path,
                        format!("the source of the plugin `{name}` cannot be used: {}", error.0),
                        error.1,
                    ),
                }
                return;
            }
            Some(_) => None,
        };
        let Some(folder) = local.and_then(|it| resolved(below, root, it)) else {
            self.note(
                path,
                format!("the source of the plugin `{name}` is not a folder of the package"),
                "write a path such as `./plugins/name`, or an object",
            );
            return;
        };
        if !tree.has_folder(&folder) {
            self.note(
                path,
                format!("the plugin `{name}` is in `{folder}`, which does not exist"),
                "correct its `source`",
            );
            return;
        }
        let is_whole = entry.get("strict") == Some(&Json::Bool(false));
        let listed = self.listed(tree, path, name, &folder, entry.get("skills"));
        let has_default = !is_whole || listed.is_empty();
        self.plugins.push(Plugin { name: name.to_owned(), folder, listed, has_default });
    }

    /// Reads the manifest of the plugin in a folder.
    fn plugin(&mut self, tree: &Tree<'_>, folder: &str) {
        let path = joined(folder, "plugin.json");
        if let Some(Ok(manifest)) = manifest_json(tree, &path) {
            // Other programs have files of this name too.
            let schema = manifest.get("$schema").and_then(Json::as_str);
            if schema.is_some_and(|it| it.starts_with(AGENT_PLUGINS)) {
                return self.agent_plugin(folder, &path, &manifest);
            }
        }
        for name in MANIFESTS {
            let path = joined(folder, name);
            match manifest_json(tree, &path) {
                None => {}
                Some(Err(fault)) => self.fault(&path, fault),
                Some(Ok(manifest)) => {
                    let Some(own) = manifest.get("name").and_then(Json::as_str) else {
                        return self.note(&path, "it has no `name`", "give the plugin a `name`");
                    };
                    let skills = manifest.get("skills");
                    let listed = self.listed(tree, &path, own, folder, skills);
                    let replaces = name.starts_with(".codex") && !listed.is_empty();
                    self.add(own, folder, listed, !replaces);
                    return;
                }
            }
        }
    }

    /// Reads a manifest of Agent Plugins, which allows no other fields.
    fn agent_plugin(&mut self, folder: &str, path: &str, manifest: &Json) {
        let hint = "see the specification of Agent Plugins 1.0.0";
        if manifest["$schema"] != AGENT_PLUGIN {
            return self.note(path, "it is of a version of Agent Plugins that is not known", hint);
        }
        for key in manifest.as_object().into_iter().flat_map(Map::keys) {
            if !AGENT_PLUGIN_FIELDS.contains(&key.as_str()) {
                let near =
                    prowess::nearest(&key.to_lowercase(), AGENT_PLUGIN_FIELDS.iter().copied());
                let hint = near
                    .map_or_else(|| "put it below `extensions`".to_owned(), prowess::did_you_mean);
                self.note(
                    path,
                    format!("`{key}` is not a field of Agent Plugins; it is ignored"),
                    hint,
                );
            }
        }
        let texts = ["version", "description", "homepage", "repository", "license"];
        let wrong = texts.into_iter().find(|it| manifest.get(it).is_some_and(|it| !it.is_string()));
        let name = manifest.get("name").and_then(Json::as_str).unwrap_or_default();
        let is_fit =
            |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, b'-' | b'.');
        let is_name = (1..=64).contains(&name.len())
            && name.bytes().all(is_fit)
            && !name.contains("--")
            && !name.contains("..");
        let fault = if !is_name {
            "its `name` is not 1 to 64 lowercase letters, digits, hyphens and dots".to_owned()
        } else if let Some(field) = wrong {
            format!("its `{field}` is not text")
        } else if manifest.get("keywords").is_some_and(|it| !is_list_of_text(it)) {
            "its `keywords` are not a list of texts".to_owned()
        } else if manifest.get("extensions").is_some_and(|it| !it.is_object()) {
            "its `extensions` are not an object".to_owned()
        } else {
            return self.add(name, folder, BTreeSet::new(), true);
        };
        self.note(path, format!("{fault}; the plugin is not used"), hint);
    }

    /// Adds what a manifest says of a plugin, which a marketplace may have named already.
    fn add(&mut self, name: &str, folder: &str, listed: BTreeSet<String>, has_default: bool) {
        // The name of a marketplace is the one that users see.
        let known = self.plugins.iter_mut().filter(|it| it.folder == folder);
        let mut is_known = false;
        for plugin in known.filter(|it| it.has_default) {
            plugin.listed.extend(listed.iter().cloned());
            plugin.has_default = has_default;
            is_known = true;
        }
        if !is_known {
            let (name, folder) = (name.to_owned(), folder.to_owned());
            self.plugins.push(Plugin { name, folder, listed, has_default });
        }
    }

    /// Returns the folders of skills that a manifest lists.
    fn listed(
        &mut self,
        tree: &Tree<'_>,
        path: &str,
        name: &str,
        folder: &str,
        skills: Option<&Json>,
    ) -> BTreeSet<String> {
        let entries: Vec<&Json> = match skills {
            None => Vec::new(),
            Some(Json::Array(entries)) => entries.iter().collect(),
            Some(entry @ Json::String(_)) => vec![entry],
            Some(_) => {
                self.note(
                    path,
                    format!("`skills` of the plugin `{name}` are not a list of folders"),
                    "write `\"skills\": [\"./skills/name\"]`",
                );
                return BTreeSet::new();
            }
        };
        let mut listed = BTreeSet::new();
        for entry in entries {
            let text = entry.as_str().unwrap_or_default();
            let Some(place) = entry.as_str().and_then(|it| resolved(folder, folder, it)) else {
                self.note(
                    path,
                    format!(
                        "a skill of the plugin `{name}` is not a folder in the plugin: `{entry}`"
                    ),
                    "write a path such as `./skills/name`",
                );
                continue;
            };
            let has_skill = match self.with_skills.get(&place) {
                Some(known) => *known,
                None => {
                    let has_skill = tree.document(&place).is_some()
                        || tree
                            .children(&place)
                            .any(|it| tree.document(&joined(&place, it)).is_some());
                    self.with_skills.insert(place.clone(), has_skill);
                    has_skill
                }
            };
            match has_skill {
                true => drop(listed.insert(place)),
                false => self.note(
                    path,
                    format!("the plugin `{name}` lists the skill `{text}`, which does not exist"),
                    "correct the path, or remove it",
                ),
            }
        }
        listed
    }

    fn note(&mut self, path: &str, message: impl Into<String>, hint: impl Into<String>) {
        match self.notes.len() {
            MAX_NOTES => self.notes.push(PackageNote::new(
                path,
                "there are more faults in the manifests of plugins",
                "correct the others first",
            )),
            count if count > MAX_NOTES => {}
            _ => self.notes.push(PackageNote::new(path, message, hint)),
        }
    }

    fn fault(&mut self, path: &str, fault: ManifestFault) {
        let hint = "others ignore this file as it is; correct it";
        self.notes
            .push(PackageNote { line: fault.line, ..PackageNote::new(path, fault.message, hint) });
    }
}

fn is_list_of_text(value: &Json) -> bool {
    value.as_array().is_some_and(|it| it.iter().all(Json::is_string))
}

fn is_local(source: &Map<String, Json>) -> bool {
    let kind = source.get("source").and_then(Json::as_str);
    matches!(kind, Some("local" | "path" | "directory"))
}

/// A reason and a hint.
struct Unusable(String, String);

impl Unusable {
    fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self(why.into(), hint.into())
    }
}

impl From<SourceSyntaxError> for Unusable {
    fn from(error: SourceSyntaxError) -> Self {
        Self(error.to_string(), error.hint)
    }
}

/// Reads where a plugin is that is not in the package.
fn remote(source: &Map<String, Json>) -> Result<SkillSource, Unusable> {
    let text = |key: &str| source.get(key).and_then(Json::as_str).filter(|it| !it.is_empty());
    let missing = |key: &str| {
        Unusable::new(format!("it has no `{key}`"), format!("write a text as its `{key}`"))
    };
    let kind = text("source").ok_or_else(|| missing("source"))?;
    let mut git: GitSource = match kind {
        "github" => {
            let repo = text("repo").ok_or_else(|| missing("repo"))?;
            let source: SkillSource = format!("github:{repo}").parse()?;
            plain_git(source, repo)?
        }
        "url" | "git" | "git-subdir" => {
            let url = text("url").ok_or_else(|| missing("url"))?;
            let is_short = !url.contains(':') && !url.starts_with(['.', '/', '~']);
            match is_short {
                true => plain_git(url.parse()?, url)?,
                false => GitSource::from_url(url)?,
            }
        }
        "npm" => {
            let package = text("package").ok_or_else(|| missing("package"))?;
            let is_other = text("registry").is_some_and(|it| !it.contains("://registry.npmjs.org"));
            if is_other {
                return Err(Unusable::new(
                    "it is in a registry of its own",
                    "add the package from there yourself",
                ));
            }
            let version = text("version").map(|it| format!("@{it}")).unwrap_or_default();
            return Ok(format!("npm:{package}{version}").parse()?);
        }
        other => {
            return Err(Unusable::new(
                format!("`{other}` is not a known kind of source"),
                "the kinds are github, url, git-subdir, npm and local",
            ));
        }
    };
    let is_remote = git.url.starts_with("https://") || git.host_name().is_some();
    if !is_remote || git.url.starts_with("http://") || git.url.starts_with("git://") {
        return Err(Unusable::new(
            "it leads to this machine",
            "if you trust it, add that repository yourself",
        ));
    }
    // A commit says more than the branch that it is on.
    if let Some(reference) = text("sha").or_else(|| text("ref")) {
        check_reference(reference).map_err(|it| Unusable::new(it.why, it.hint))?;
        git.reference = Some(reference.to_owned());
    }
    if let Some(path) = text("path") {
        git.path = relative_path(path.split('/')).map_err(|it| Unusable::new(it.why, it.hint))?;
    }
    Ok(SkillSource::new(SourceKind::Git(git)))
}

/// Returns the repository of a source without a choice of skills.
fn plain_git(source: SkillSource, text: &str) -> Result<GitSource, Unusable> {
    match source {
        SkillSource { kind: SourceKind::Git(git), skills } if skills.is_empty() => Ok(git),
        _ => {
            Err(Unusable::new(format!("`{text}` is not a repository"), "write `owner/repository`"))
        }
    }
}
