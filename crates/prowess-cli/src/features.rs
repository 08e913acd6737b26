//! The parts of this program that a build can leave out.

/// The commands that need a feature: its presence, its name, and the support that it adds.
const COMMANDS: &[(&str, bool, &str, &str)] = &[
    ("ask", cfg!(feature = "agent"), "agent", "model"),
    ("chat", cfg!(feature = "agent"), "agent", "model"),
    ("sessions", cfg!(feature = "agent"), "agent", "model"),
    ("trace", cfg!(feature = "agent"), "agent", "model"),
    ("mcp", cfg!(feature = "mcp"), "mcp", "MCP"),
    ("serve", cfg!(feature = "mcp"), "mcp", "MCP"),
    ("servers", cfg!(feature = "mcp"), "mcp", "MCP"),
    ("prepare", cfg!(feature = "http"), "http", "network"),
    ("audit", cfg!(feature = "packages"), "packages", "package"),
    ("add", cfg!(feature = "packages"), "packages", "package"),
    ("install", cfg!(feature = "packages"), "packages", "package"),
    ("sync", cfg!(feature = "packages"), "packages", "package"),
    ("outdated", cfg!(feature = "packages"), "packages", "package"),
    ("update", cfg!(feature = "packages"), "packages", "package"),
    ("upgrade", cfg!(feature = "packages"), "packages", "package"),
    ("verify", cfg!(feature = "packages"), "packages", "package"),
    ("search", cfg!(feature = "packages"), "packages", "package"),
    ("use", cfg!(feature = "packages"), "packages", "package"),
    ("import", cfg!(feature = "packages"), "packages", "package"),
    ("export", cfg!(feature = "packages"), "packages", "package"),
    ("publish", cfg!(feature = "packages"), "packages", "package"),
    ("cache", cfg!(feature = "packages"), "packages", "package"),
];

/// Returns the reason why a command is missing, if this build leaves it out.
pub(crate) fn missing_command(command: &str) -> Option<String> {
    let (.., feature, what) = COMMANDS.iter().find(|it| it.0 == command && !it.1)?;
    Some(missing_feature(what, feature))
}

/// Returns the message that a feature was left out.
pub(crate) fn missing_feature(what: &str, feature: &str) -> String {
    format!("this build has no {what} support (feature `{feature}`)")
}

/// The rules of `audit`.
#[cfg(feature = "packages")]
pub(crate) use prowess_packages::AUDIT_RULES;

/// The rules of `audit`: none, because this build has no packages.
#[cfg(not(feature = "packages"))]
pub(crate) static AUDIT_RULES: &[&prowess::Rule] = &[];
