//! Reads and edits the skills that a project asks for: `[skills]` of `prowess.toml`.

use crate::source::SkillSource;

/// A skill that a project asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WantedSkill {
    /// The name that it is installed under: the key.
    pub name: String,
    /// Its source.
    pub source: SkillSource,
    /// The name in its frontmatter, if it is another.
    pub skill: Option<String>,
    /// The clients that it is installed for; none are those of `packages.clients`.
    pub clients: Option<Vec<String>>,
    /// Whether each client gets its own copy.
    pub copy: bool,
}
