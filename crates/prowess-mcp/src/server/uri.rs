//! The URIs of skills: `skill://<scope>/<name>/<path>`, and `skill://<name>/<path>` for short.
//!
//! A client's URI is parsed here and compared with what is served. No part of it is ever used as a
//! path on this machine.

use std::fmt::Write as _;

use prowess_runtime::text::percent_decoded;

/// The maximum length of a URI.
pub(crate) const MAX_LENGTH: usize = 8 * 1024;

/// The decoded segments of a URI, each a valid file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Uri(pub(crate) Vec<String>);

impl Uri {
    /// Parses a URI, or returns the fault in it.
    pub(crate) fn read(uri: &str) -> Result<Self, &'static str> {
        if uri.len() > MAX_LENGTH {
            return Err("it is too long");
        }
        let rest = uri.split_once("://").filter(|it| it.0.eq_ignore_ascii_case("skill"));
        let (_, rest) = rest.ok_or("it does not begin with `skill://`")?;
        if rest.contains(['?', '#']) {
            return Err("it has a query or a fragment");
        }
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains(['@', ':']) {
            return Err("it has a user or a port");
        }
        rest.split('/').map(decode_segment).collect::<Result<_, _>>().map(Self)
    }
}

/// Decodes a segment of a URI.
fn decode_segment(written: &str) -> Result<String, &'static str> {
    let text = percent_decoded(written)?;
    if is_name(&text) { Ok(text) } else { Err("it contains an invalid file name") }
}

/// Whether a segment is a plain file name on every system: it neither leads up nor contains a
/// separator.
fn is_name(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
        && !part.contains(['/', '\\'])
        && !part.contains(char::is_control)
}

/// Whether a path within a skill can be expressed as a URI.
pub(crate) fn is_valid_path(path: &str) -> bool {
    path.split('/').all(is_name)
}

/// Returns the URI of a scope or a skill.
pub(crate) fn root_uri(name: &str) -> String {
    child_uri("skill:/", name)
}

/// Returns the URI of a path below another URI; everything but letters, digits and `-._~` is
/// escaped.
pub(crate) fn child_uri(base: &str, path: &str) -> String {
    let mut uri = base.to_owned();
    for part in path.split('/').filter(|it| !it.is_empty()) {
        uri.push('/');
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    uri.push(char::from(byte));
                }
                _ => write!(uri, "%{byte:02X}").expect("a string takes everything"),
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(uri: &str) -> Result<Vec<String>, &'static str> {
        Uri::read(uri).map(|it| it.0)
    }

    #[test]
    fn every_path_survives_a_round_trip() {
        for path in ["SKILL.md", "a/b/c.txt", "my file (1).md", "é/%2F?#.md", "a:b@c", "..."] {
            let uri = child_uri("skill://project/one", path);
            assert!(uri.bytes().all(|it| it.is_ascii_graphic()), "{uri}");
            assert_eq!(read(&uri).map(|it| it[2..].join("/")), Ok(path.to_owned()), "{uri}");
        }
    }

    #[test]
    fn spellings_of_one_uri_are_one() {
        let expected = Ok(vec!["project".to_owned(), "one".to_owned(), "a b.md".to_owned()]);
        for uri in [
            "skill://project/one/a b.md",
            "skill://project/one/a%20b.md",
            "SKILL://project/one/%61%20b%2emd",
        ] {
            assert_eq!(read(uri), expected, "{uri}");
        }
    }

    #[test]
    fn nothing_leads_up_or_elsewhere() {
        for uri in [
            "",
            "skill",
            "skill:project/one",
            "skill:///one/SKILL.md",
            "skill://",
            "file:///etc/passwd",
            "http://project/one",
            "skill://project/../one",
            "skill://project/one/..",
            "skill://project/one/%2e%2e/%2e%2E",
            "skill://project/one/.%2e/x",
            "skill://project/one/./x",
            "skill://project/one//x",
            "skill://project/one/",
            "skill://project/one/a%2fb",
            "skill://project/one/a\\b",
            "skill://project/one/..%5c..%5cx",
            "skill://project/one/a%00",
            "skill://project/one/a\0",
            "skill://project/one/a%0a",
            "skill://project/one/%ff",
            "skill://project/one/%c0%ae%c0%ae",
            "skill://project/one/%",
            "skill://project/one/%4",
            "skill://project/one/%zz",
            "skill://project/one/%+1",
            "skill://project/one/x?y",
            "skill://project/one/x#y",
            "skill://me@project/one",
            "skill://project:80/one",
            &format!("skill://project/{}", "a/".repeat(5000)),
        ] {
            assert!(read(uri).is_err(), "{uri}");
        }
    }
}
