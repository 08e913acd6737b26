//! What says how agents and tools behave that act without being asked: nothing an agent does writes it.

use std::path::Path;

/// Files and directories of that kind, wherever they lie: of ours, of git, of other clients, and of
/// programs that run what a project holds.
pub(crate) const PROTECTED: &[&str] = &[
    "prowess.toml",
    ".prowess",
    ".mcp.json",
    ".git/config",
    ".git/hooks",
    ".amazonq",
    ".claude",
    ".cline",
    ".clinerules",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".kiro",
    ".opencode",
    "opencode.json",
    ".roo",
    ".vscode",
    ".windsurf",
    ".cargo/config",
    ".cargo/config.toml",
    ".envrc",
    ".github/workflows",
    ".husky",
];

/// Whether a path is one of them or lies in one, in any case a file system may ignore.
pub(crate) fn is_protected(path: &Path) -> bool {
    path.ancestors().any(|it| place(it).is_some())
}

/// The directory in which a path is one of them.
pub(crate) fn place(path: &Path) -> Option<&Path> {
    PROTECTED.iter().find_map(|own| {
        let mut place = path;
        for name in own.rsplit('/') {
            place.file_name().filter(|it| it.eq_ignore_ascii_case(name))?;
            place = place.parent()?;
        }
        Some(place)
    })
}
