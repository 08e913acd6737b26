//! Names under which people keep secrets.

/// Parts of such names, normalized.
const PARTS: &[&str] = &[
    "accesskey",
    "apikey",
    "authkey",
    "authorization",
    "cookie",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "token",
];

/// Returns a name in lower case, letters and digits only: `API_KEY` becomes `apikey`.
pub(crate) fn normalize(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).collect::<String>().to_ascii_lowercase()
}

/// Returns whether a normalized name is that of a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    PARTS.iter().any(|it| name.contains(it))
}
