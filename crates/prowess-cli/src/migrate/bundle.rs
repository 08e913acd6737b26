//! Plugins that contain skills: of Claude Code (`.claude-plugin/plugin.json`, or a marketplace that
//! lists them) and of Agent Plugins 1.0 (`plugin.json` with its schema). Their skills are copied as
//! they are.

use std::path::{Path, PathBuf};

use prowess::{Manifest, Profile, SizeLimits, parse, render, spec::SKILL_FILE};
use prowess_runtime::sandbox::{Links, Root, RootError};
use prowess_sandbox::FileType;
use serde_json::{Map, Value as Json};

use super::{
    LostItem, MigrateError, MigratedSkill,
    carry::{self, Walk},
    name::valid_name,
};

/// The manifest of a plugin of Claude Code.
pub(super) const CLAUDE: &str = ".claude-plugin/plugin.json";
/// The list of a marketplace of Claude Code.
pub(super) const MARKETPLACE: &str = ".claude-plugin/marketplace.json";
/// The manifest of an Agent Plugin.
pub(super) const AGENT: &str = "plugin.json";
/// The beginning of the schema of an Agent Plugin.
const SCHEMA: &str = "https://agent-plugins.org/schemas/";
/// The largest manifest.
const MAX_MANIFEST: u64 = 1024 * 1024;

/// The parts of a plugin that are not skills: label, path, and manifest key.
const OTHERS: &[(&str, &str, &str)] = &[
    ("agents", "agents", "agents"),
    ("hooks", "hooks", "hooks"),
    ("MCP servers", ".mcp.json", "mcpServers"),
    ("MCP servers", "mcp.json", "mcpServers"),
    ("language servers", ".lsp.json", "lspServers"),
    ("output styles", "output-styles", "outputStyles"),
];

/// Returns the folders of the plugins that the marketplace in a folder lists and contains.
pub(super) fn marketplace_plugins(folder: &Path) -> Vec<PathBuf> {
    let Ok(root) = Root::open(folder) else { return Vec::new() };
    let Some(marketplace) = manifest(&root, MARKETPLACE).ok().flatten() else { return Vec::new() };
    let base = marketplace.get("metadata").and_then(|it| it.get("pluginRoot"));
    let base = base.and_then(Json::as_str).and_then(relative).unwrap_or_default();
    let plugins = marketplace.get("plugins").and_then(Json::as_array).into_iter().flatten();
    let sources = plugins.filter_map(|it| relative(it.get("source")?.as_str()?));
    let mut folders: Vec<PathBuf> = sources.map(|it| folder.join(base.join(it))).collect();
    folders.dedup();
    folders
}

/// Returns whether a folder has the manifest of a plugin that contains skills.
pub(super) fn is_bundle(folder: &Path) -> bool {
    if [CLAUDE, MARKETPLACE].iter().any(|it| folder.join(it).symlink_metadata().is_ok()) {
        return true;
    }
    let root = Root::open(folder).ok().filter(|_| folder.join(AGENT).symlink_metadata().is_ok());
    root.is_some_and(|it| manifest(&it, AGENT).is_ok_and(|it| it.is_some()))
}

/// Returns the skills and commands of a plugin. Its other parts are reported with the first of
/// them.
pub(super) fn unpack(
    folder: &Path,
    limits: &SizeLimits,
) -> Result<Vec<MigratedSkill>, MigrateError> {
    let path = folder.to_owned();
    if folder.is_symlink() {
        return Err(MigrateError::Link { path });
    }
    let root = match Root::open(folder) {
        Ok(root) => root,
        Err(source) => return Err(MigrateError::Read { path, source }),
    };
    let mut manifests = Vec::new();
    for name in [CLAUDE, AGENT, MARKETPLACE] {
        match manifest(&root, name) {
            Ok(found) => manifests.extend(found.map(|it| (name, it))),
            Err(UnreadableManifest::Json(source)) => {
                return Err(MigrateError::NotJson { path, source });
            }
            Err(UnreadableManifest::Root(source)) => {
                return Err(MigrateError::Read { path, source });
            }
        }
    }
    let mut migrated = Vec::new();
    let mut lost = Vec::new();
    for at in skill_folders(&root, &manifests) {
        match skill(&folder.join(&at), limits) {
            Ok(it) => migrated.push(it),
            Err(why) => lost.push(LostItem::new(format!("`{}`", at.display()), why)),
        }
    }
    for entry in root.list(Path::new("commands"), Links::Never).unwrap_or_default() {
        let at = Path::new("commands").join(&entry.name);
        if entry.kind != FileType::RegularFile || at.extension().is_none_or(|it| it != "md") {
            continue;
        }
        match command(&root, &at, limits) {
            Ok(it) => migrated.push(it),
            Err(why) => lost.push(LostItem::new(format!("`{}`", at.display()), why)),
        }
    }
    let name = manifests.iter().find_map(|it| it.1.get("name")?.as_str());
    let name = name.map_or_else(|| folder.display().to_string(), str::to_owned);
    for (parts, at, key) in OTHERS {
        let what = format!("{parts} of the plugin `{name}`");
        let is_there = root.path().join(at).symlink_metadata().is_ok()
            || manifests.iter().any(|it| it.1.contains_key(*key));
        if is_there && !lost.iter().any(|it| it.what == what) {
            let why = format!("a skill cannot contain {parts}");
            lost.push(LostItem { what, why, is_plural: true });
        }
    }
    match migrated.first_mut() {
        Some(first) => first.lost.append(&mut lost),
        None => return Err(MigrateError::NoSkill { path }),
    }
    Ok(migrated)
}

/// The reason a manifest was not read.
enum UnreadableManifest {
    Json(serde_json::Error),
    Root(RootError),
}

/// Reads a manifest, if it exists.
fn manifest(root: &Root, name: &str) -> Result<Option<Map<String, Json>>, UnreadableManifest> {
    let file = match root.file(Path::new(name), Links::Never) {
        Ok(file) => file,
        Err(RootError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(UnreadableManifest::Root(error)),
    };
    let bytes = carry::read(file, MAX_MANIFEST)
        .map_err(|source| UnreadableManifest::Root(RootError::Io { path: name.into(), source }))?
        .unwrap_or_default();
    let found: Map<String, Json> =
        serde_json::from_slice(&bytes).map_err(UnreadableManifest::Json)?;
    // Other programs have a `plugin.json` too.
    Ok(Some(found).filter(|it| name != AGENT || is_agent_plugin(it)))
}

fn is_agent_plugin(manifest: &Map<String, Json>) -> bool {
    manifest.get("$schema").and_then(Json::as_str).is_some_and(|it| it.starts_with(SCHEMA))
}

/// Returns the folders of the skills: those in `skills/`, and those that a manifest of Claude Code
/// names.
fn skill_folders(root: &Root, manifests: &[(&str, Map<String, Json>)]) -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("skills")];
    for (name, manifest) in manifests.iter().filter(|it| it.0 != AGENT) {
        places.extend(named_paths(manifest.get("skills")));
        let plugins = manifest.get("plugins").and_then(Json::as_array).into_iter().flatten();
        for plugin in plugins.filter(|_| *name == MARKETPLACE) {
            let source = plugin.get("source").and_then(Json::as_str).and_then(relative);
            if source.is_some_and(|it| it.as_os_str().is_empty()) {
                places.extend(named_paths(plugin.get("skills")));
            }
        }
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for place in places {
        if has_skill_file(root, &place) {
            folders.push(place);
            continue;
        }
        let entries = root.list(&place, Links::Never).unwrap_or_default().into_iter();
        folders.extend(entries.map(|it| place.join(it.name)).filter(|it| has_skill_file(root, it)));
    }
    let mut seen = Vec::new();
    folders.retain(|it| {
        let is_new = !seen.contains(it);
        seen.push(it.clone());
        is_new
    });
    folders
}

/// Returns the paths of a value: one, or a list.
fn named_paths(value: Option<&Json>) -> Vec<PathBuf> {
    match value {
        Some(Json::String(path)) => relative(path).into_iter().collect(),
        Some(Json::Array(all)) => all.iter().filter_map(|it| relative(it.as_str()?)).collect(),
        _ => Vec::new(),
    }
}

fn has_skill_file(root: &Root, folder: &Path) -> bool {
    root.file(&folder.join(SKILL_FILE), Links::Never).is_ok()
}

/// Returns a path inside the plugin; `None` for one that leads out of it.
fn relative(path: &str) -> Option<PathBuf> {
    let parts = path.split('/').filter(|it| !matches!(*it, "" | "."));
    let parts: Vec<&str> = parts.collect();
    let leads_out = path.starts_with('/') || path.contains(['\\', ':']) || parts.contains(&"..");
    (!leads_out).then(|| parts.iter().collect())
}

/// Returns a skill of a plugin, unchanged.
fn skill(folder: &Path, limits: &SizeLimits) -> Result<MigratedSkill, String> {
    let root = Root::open(folder).map_err(|error| format!("it cannot be read: {error}"))?;
    let bytes = document(&root, Path::new(SKILL_FILE), limits)?;
    let own = folder.file_name().map(|it| it.to_string_lossy().into_owned());
    let manifest = parse(&bytes, own.as_deref(), Profile::Lenient).manifest;
    let manifest = manifest.ok_or("it cannot be read as a skill")?;
    let (found, mut lost) = Walk::of_folder(&root);
    lost.retain(|it| it.what != format!("`{SKILL_FILE}`"));
    let room = limits.max_skill_size.saturating_sub(bytes.len() as u64);
    let mut files = carry::read_files(&root, found, limits, room, &mut lost);
    files.insert(SKILL_FILE.to_owned(), bytes);
    Ok(MigratedSkill { manifest, files, lost })
}

/// Makes a skill of a Claude Code command: instructions that a person invokes by name.
fn command(root: &Root, path: &Path, limits: &SizeLimits) -> Result<MigratedSkill, String> {
    let bytes = document(root, path, limits)?;
    let stem = path.file_stem().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let name = valid_name(&stem).ok_or("its name is not a valid skill name")?;
    let parsed = parse(&bytes, Some(&name), Profile::Lenient);
    let manifest = parsed.manifest.ok_or("it has no description")?;
    let manifest = Manifest { name: name.into(), created_by: Some("migrate".into()), ..manifest };
    let text = render(&manifest, &parsed.instructions);
    let files = [(SKILL_FILE.to_owned(), text.into_bytes())].into();
    Ok(MigratedSkill { manifest, files, lost: Vec::new() })
}

fn document(root: &Root, path: &Path, limits: &SizeLimits) -> Result<Vec<u8>, String> {
    let most = limits.max_document_size;
    let file = root.file(path, Links::Never).map_err(|it| format!("it cannot be read: {it}"))?;
    let bytes = carry::read(file, most).map_err(|it| format!("it cannot be read: {it}"))?;
    bytes.ok_or_else(|| format!("it is larger than {most} bytes"))
}
