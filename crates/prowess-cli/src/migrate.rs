//! From plugins to skills: a plugin of the old kind, a folder with a `plugin-manifest.json`,
//! becomes a skill; one of Claude Code or of Agent Plugins 1.0 has skills, which are copied out of
//! it.
//!
//! Nothing of a plugin is run. Items that have no place in a skill are reported one by one.

mod secret;
mod plugin;
mod name;
mod calls;
mod carry;
mod body;
mod bundle;

use std::{
    io,
    path::{Path, PathBuf},
};

use prowess::{
    Manifest, SizeLimits, render,
    spec::{MAX_DESCRIPTION, SKILL_FILE},
};
use prowess_runtime::{
    sandbox::{Links, Root, RootError},
    store::Files,
};

use self::{
    body::body,
    bundle::unpack,
    carry::carry_files,
    name::{shorten, valid_name},
    plugin::Plugin,
};

/// The manifest of a plugin.
const MANIFEST: &str = "plugin-manifest.json";

/// A skill made from a plugin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MigratedSkill {
    /// Its frontmatter.
    pub(crate) manifest: Manifest,
    /// All its files with their paths, `SKILL.md` among them.
    pub(crate) files: Files,
    /// The items that were not carried over.
    pub(crate) lost: Vec<LostItem>,
}

/// An item of a plugin that has no place in a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostItem {
    /// The item, in words.
    pub(crate) what: String,
    /// The reason it was left out.
    pub(crate) why: String,
    /// Whether the words are in the plural.
    is_plural: bool,
}

impl LostItem {
    fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), is_plural: false }
    }

    /// Says that it was not carried over, and why.
    pub(crate) fn describe(&self) -> String {
        let were = if self.is_plural { "were" } else { "was" };
        format!("{} {were} not carried over: {}", self.what, self.why)
    }
}

/// A plugin could not be made a skill.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrateError {
    /// The folder has no plugin.
    #[error("there is no `plugin-manifest.json`, `.claude-plugin/plugin.json` or `plugin.json` of an Agent Plugin in `{}`", path.display())]
    NoPlugin {
        /// The folder.
        path: PathBuf,
    },
    /// The plugin has no skill in the places of its kind.
    #[error("the plugin `{}` has no skills", path.display())]
    NoSkill {
        /// The plugin.
        path: PathBuf,
    },
    /// The plugin is a link, which could lead anywhere.
    #[error("`{}` is a link, which is not followed", path.display())]
    Link {
        /// The plugin.
        path: PathBuf,
    },
    /// The folder is already a skill.
    #[error("`{}` has a `SKILL.md` already", path.display())]
    IsSkill {
        /// The plugin.
        path: PathBuf,
    },
    /// The manifest, or another file of the plugin, cannot be read.
    #[error("cannot read the plugin `{}`", path.display())]
    Read {
        /// The plugin.
        path: PathBuf,
        /// The cause.
        source: RootError,
    },
    /// The manifest is too large.
    #[error("the `plugin-manifest.json` of `{}` is larger than {most} bytes", path.display())]
    TooLarge {
        /// The plugin.
        path: PathBuf,
        /// The limit, in bytes.
        most: u64,
    },
    /// The manifest is not a JSON object.
    #[error("the manifest of `{}` is not a JSON object", path.display())]
    NotJson {
        /// The plugin.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The plugin has no name, or none that is valid for a skill.
    #[error("the name of the plugin `{}` is not a valid skill name", path.display())]
    NoName {
        /// The plugin.
        path: PathBuf,
    },
}

/// Returns the plugin folders that a path means: of a manifest, of a plugin, or of all plugins
/// inside. If there is none, the path itself, for which [`migrate`] gives the reason.
pub(crate) fn plugins(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        let manifests = [MANIFEST, bundle::CLAUDE, bundle::MARKETPLACE, bundle::AGENT];
        if let Some(manifest) = manifests.into_iter().find(|it| path.ends_with(it)) {
            let above = path.ancestors().nth(Path::new(manifest).components().count());
            let folder = above.filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
            return if manifest == MANIFEST { vec![folder.to_owned()] } else { plugins(folder) };
        }
    }
    let listed = bundle::marketplace_plugins(path);
    if !listed.is_empty() {
        return listed;
    }
    let entries = Root::open(path).and_then(|it| it.list(Path::new(""), Links::Never));
    let folders = entries.unwrap_or_default().into_iter().map(|it| path.join(it.name));
    let found: Vec<PathBuf> = folders.filter(|it| has_manifest(it)).collect();
    if found.is_empty() || has_manifest(path) { vec![path.to_owned()] } else { found }
}

/// Returns whether a folder has the manifest of a plugin.
fn has_manifest(folder: &Path) -> bool {
    folder.join(MANIFEST).symlink_metadata().is_ok() || bundle::is_bundle(folder)
}

/// Makes skills of the plugin in a folder, of any kind.
pub(crate) fn migrate_all(
    folder: &Path,
    limits: &SizeLimits,
) -> Result<Vec<MigratedSkill>, MigrateError> {
    let is_old = folder.join(MANIFEST).symlink_metadata().is_ok();
    match !is_old && bundle::is_bundle(folder) {
        true => unpack(folder, limits),
        false => migrate(folder, limits).map(|it| vec![it]),
    }
}

/// Makes a skill of an old-style plugin in a folder. Files over the limits are left out.
fn migrate(folder: &Path, limits: &SizeLimits) -> Result<MigratedSkill, MigrateError> {
    let path = folder.to_owned();
    if folder.is_symlink() {
        return Err(MigrateError::Link { path });
    }
    // The text of the skill repeats the manifest, some of it twice, and must leave room for files.
    let most = limits.max_document_size.min(limits.max_skill_size) / 8;
    let (root, bytes) = match read_manifest(folder, most) {
        Ok(ManifestBytes::Found { root, bytes }) => (root, bytes),
        Ok(ManifestBytes::OfSkill) => return Err(MigrateError::IsSkill { path }),
        Ok(ManifestBytes::Missing) => return Err(MigrateError::NoPlugin { path }),
        Ok(ManifestBytes::TooLarge) => return Err(MigrateError::TooLarge { path, most }),
        Err(source) => return Err(MigrateError::Read { path, source }),
    };
    let plugin = match Plugin::parse(&bytes) {
        Ok(plugin) => plugin,
        Err(source) => return Err(MigrateError::NotJson { path, source }),
    };
    let own = root.path().file_name().map(|it| it.to_string_lossy().into_owned());
    let name = plugin.name.as_deref().and_then(|it| valid_name(it).or_else(|| valid_name(&own?)));
    let name = name.ok_or(MigrateError::NoName { path })?;

    let room = limits.max_skill_size - 6 * bytes.len() as u64;
    let (mut files, mut lost) = carry_files(&root, &plugin, limits, room);
    lost.extend(plugin.lost_items(&files));
    let manifest = Manifest {
        name: name.into(),
        description: shorten(&plugin.description(), MAX_DESCRIPTION).into(),
        version: plugin.version.as_deref().map(Into::into),
        author: plugin.author.as_deref().map(Into::into),
        license: plugin.license.as_deref().map(Into::into),
        compatibility: plugin.needs().map(|it| shorten(&it, 500).into()),
        tags: plugin.tags.iter().map(|it| it.as_str().into()).collect(),
        created_by: Some("migrate".into()),
        ..Manifest::default()
    };
    let text = render(&manifest, &body(&plugin, &files, &lost));
    files.insert(SKILL_FILE.to_owned(), text.into_bytes());
    Ok(MigratedSkill { manifest, files, lost })
}

/// The manifest of an old-style plugin, or the reason there is none.
enum ManifestBytes {
    Found {
        root: Root,
        bytes: Vec<u8>,
    },
    Missing,
    TooLarge,
    /// The folder is already a skill.
    OfSkill,
}

fn read_manifest(folder: &Path, most: u64) -> Result<ManifestBytes, RootError> {
    let root = Root::open(folder)?;
    let entries = root.list(Path::new(""), Links::Never)?;
    if entries.iter().any(|it| it.name.eq_ignore_ascii_case(SKILL_FILE)) {
        return Ok(ManifestBytes::OfSkill);
    }
    let file = match root.file(Path::new(MANIFEST), Links::Never) {
        Err(RootError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(ManifestBytes::Missing);
        }
        file => file?,
    };
    let bytes = carry::read(file, most)
        .map_err(|source| RootError::Io { path: MANIFEST.into(), source })?;
    Ok(bytes.map_or(ManifestBytes::TooLarge, |bytes| ManifestBytes::Found { root, bytes }))
}
