//! Reads and edits the skills that a project asks for: `[skills]` and `[packages]` of `prowess.toml`.

mod edit;
mod error;
mod read;
mod settings;

use std::{collections::BTreeMap, fmt, str::FromStr};

pub use self::{
    error::ManifestError,
    settings::{PackageSettings, SignerPolicy},
};
use crate::source::SkillSource;

/// The name of a manifest.
pub const MANIFEST_FILE: &str = "prowess.toml";

/// The most bytes of a manifest, a lock file, or a file of another package manager.
pub(crate) const MAX_FILE: usize = 16 << 20;
/// The most skills of one.
pub(crate) const MAX_SKILLS: usize = 100_000;

/// The skills that a project asks for, and how it wants them installed.
///
/// ```
/// use prowess_packages::{PackageManifest, WantedSkill};
///
/// let mut manifest: PackageManifest = "[skills]\npdf = \"anthropics/skills\" # forms\n".parse()?;
/// manifest.set(&WantedSkill::new("docx", "anthropics/skills".parse()?))?;
/// assert_eq!(
///     manifest.to_string(),
///     "[skills]\ndocx = \"anthropics/skills\"\npdf = \"anthropics/skills\" # forms\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageManifest {
    /// The file, byte for byte.
    text: String,
    contents: Contents,
}

/// What a manifest says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Contents {
    /// By name.
    skills: Vec<WantedSkill>,
    settings: PackageSettings,
    notes: Vec<ManifestNote>,
}

/// A skill that a project asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WantedSkill {
    /// The name that it is installed under: the key.
    pub name: String,
    /// Its source, without names of skills.
    pub source: SkillSource,
    /// The name in its frontmatter, if it is another.
    pub skill: Option<String>,
    /// The clients that it is installed for; none are those of `packages.clients`.
    pub clients: Option<Vec<String>>,
    /// Whether each client gets its own copy.
    pub copy: bool,
}

/// Something in a manifest that has no effect, and stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestNote {
    /// The line, counted from 1.
    pub line: usize,
    /// The dotted key, such as `skills.pdf.sourse`.
    pub key: String,
    /// The key that was probably meant.
    pub nearest: Option<String>,
}

impl WantedSkill {
    /// Creates one that is installed as `packages` says.
    pub fn new(name: impl Into<String>, source: SkillSource) -> Self {
        Self { name: name.into(), source, skill: None, clients: None, copy: false }
    }

    /// Returns the name in the frontmatter of the skill.
    pub fn skill_name(&self) -> &str {
        self.skill.as_deref().unwrap_or(&self.name)
    }
}

impl PackageManifest {
    /// Creates a manifest without skills.
    pub fn new() -> Self {
        Self { text: "[skills]\n".to_owned(), contents: Contents::default() }
    }

    /// Reads a manifest.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        match read::read(text) {
            (contents, errors) if errors.is_empty() => Ok(Self { text: text.to_owned(), contents }),
            (_, mut errors) => Err(errors.swap_remove(0)),
        }
    }

    /// Returns everything that is wrong with `[skills]` and `[packages]` of a text, in the order of their keys.
    pub fn validate(text: &str) -> Vec<ManifestError> {
        read::read(text).1
    }

    /// Returns the skills, by name.
    pub fn wanted(&self) -> &[WantedSkill] {
        &self.contents.skills
    }

    /// Returns the skill of a name.
    pub fn get(&self, name: &str) -> Option<&WantedSkill> {
        let at = self.contents.skills.binary_search_by(|it| it.name.as_str().cmp(name));
        at.ok().map(|at| &self.contents.skills[at])
    }

    /// Returns the clients that a skill is installed for; none if the manifest does not say.
    pub fn clients_of<'m>(&'m self, skill: &'m WantedSkill) -> Option<&'m [String]> {
        skill.clients.as_deref().or(self.contents.settings.clients.as_deref())
    }

    /// Returns whether each client gets its own copy of a skill.
    pub fn is_copied(&self, skill: &WantedSkill) -> bool {
        skill.copy || self.contents.settings.copy
    }

    /// Returns the settings in `[packages]`.
    pub fn settings(&self) -> &PackageSettings {
        &self.contents.settings
    }

    /// Returns the keys that have no effect.
    pub fn notes(&self) -> &[ManifestNote] {
        &self.contents.notes
    }

    /// Adds a skill, or changes that of the same name. Everything else stays byte for byte, and
    /// so do keys of the entry that are not known.
    pub fn set(&mut self, skill: &WantedSkill) -> Result<(), ManifestError> {
        self.set_all(std::slice::from_ref(skill))
    }

    /// Adds and changes skills like [`set`](Self::set), all or none of them, in one pass over the file.
    /// Of several with one name, the last one counts.
    pub fn set_all(&mut self, skills: &[WantedSkill]) -> Result<(), ManifestError> {
        skills.iter().try_for_each(edit::check)?;
        let mut expected: BTreeMap<&str, &WantedSkill> =
            self.contents.skills.iter().map(|it| (&*it.name, it)).collect();
        let mut changed: BTreeMap<&str, &WantedSkill> = BTreeMap::new();
        for skill in skills {
            if expected.insert(&skill.name, skill) != Some(skill) {
                changed.insert(&skill.name, skill);
            }
        }
        let Some(name) = changed.keys().next().map(|it| (*it).to_owned()) else { return Ok(()) };
        if expected.len() > MAX_SKILLS {
            return Err(ManifestError::TooLarge { limit: format!("{MAX_SKILLS} skills") });
        }
        let expected = expected.into_values().cloned().collect();
        let changed: Vec<&WantedSkill> = changed.into_values().collect();
        self.take(edit::set(&self.text, &changed), expected, &name)
    }

    /// Removes a skill, and returns whether it was there. Comments of their own lines stay.
    pub fn remove(&mut self, name: &str) -> Result<bool, ManifestError> {
        let mut expected = self.contents.skills.clone();
        let Ok(at) = expected.binary_search_by(|it| it.name.as_str().cmp(name)) else {
            return Ok(false);
        };
        expected.remove(at);
        self.take(edit::remove(&self.text, name), expected, name).map(|()| true)
    }

    /// Takes an edited text if it says what is expected.
    fn take(
        &mut self,
        text: Option<String>,
        expected: Vec<WantedSkill>,
        name: &str,
    ) -> Result<(), ManifestError> {
        let edited = text.and_then(|it| Self::parse(&it).ok()).filter(|it| {
            it.contents.skills == expected && it.contents.settings == self.contents.settings
        });
        *self = edited.ok_or_else(|| ManifestError::NotEdited { name: name.to_owned() })?;
        Ok(())
    }
}

impl Default for PackageManifest {
    fn default() -> Self {
        Self::new()
    }
}

impl FromStr for PackageManifest {
    type Err = ManifestError;

    fn from_str(text: &str) -> Result<Self, ManifestError> {
        Self::parse(text)
    }
}

impl fmt::Display for PackageManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the line and the column of an offset, both counted from 1.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let start = before.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let line = before.iter().filter(|it| **it == b'\n').count() + 1;
    // Bytes that continue a character do not count.
    let column = before[start..].iter().filter(|it| **it & 0xc0 != 0x80).count() + 1;
    (line, column)
}

/// Returns the first and the last line with a marker of a merge conflict.
pub(crate) fn conflict(text: &str) -> Option<(usize, usize)> {
    let markers = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];
    let is_marker = |it: &&str| markers.iter().any(|marker| it.starts_with(marker));
    let mut lines = text.lines().enumerate().filter(|it| is_marker(&it.1)).map(|it| it.0 + 1);
    let first = lines.next()?;
    Some((first, lines.last().unwrap_or(first)))
}
