//! Where a file of a skill lies to a client: `skill://<scope>/<name>/<path>`.

use prowess::Skill;

/// The address of a file of a skill.
pub(crate) fn uri(skill: Option<&Skill>, path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let Some(skill) = skill else { return format!("skill://{}", encoded(path)) };
    let name = encoded(&skill.manifest.name);
    format!("skill://{}/{name}/{}", skill.origin.scope, encoded(path))
}

/// A path in which nothing but letters, digits, `-`, `.`, `_`, `~` and `/` stands for itself.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
