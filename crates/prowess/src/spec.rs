//! Names and limits of the Agent Skills specification.

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The maximum length of a name.
pub const MAX_NAME: usize = 64;

/// The maximum length of a description, in characters.
pub const MAX_DESCRIPTION: usize = 1024;

/// The maximum length of the field `compatibility`, in characters.
pub const MAX_COMPATIBILITY: usize = 500;

/// The recommended maximum length of the instructions, in lines.
pub const MAX_LINES: usize = 500;

/// The recommended maximum length of the instructions, in tokens.
pub const MAX_TOKENS: usize = 5000;
