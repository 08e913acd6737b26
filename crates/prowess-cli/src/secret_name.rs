//! Names under which people keep secrets.

/// Parts of such names, as [`plain`] writes them.
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

/// A name in lower case, without what joins its words: `API_KEY` is `apikey`.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).collect::<String>().to_ascii_lowercase()
}

/// Whether a plain name is that of a secret.
pub(crate) fn is_secret(plain: &str) -> bool {
    PARTS.iter().any(|it| plain.contains(it))
}
