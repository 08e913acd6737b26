//! The challenge of a server if a request lacks a token, or a scope (`WWW-Authenticate`).

use prowess::visible;
use prowess_http::StreamedResponse as Incoming;

/// The Bearer challenge of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::client) struct Challenge {
    /// The URL of the protected resource metadata.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that the request needs, separated by spaces.
    pub(super) scope: Option<String>,
    error: Option<String>,
}

impl Challenge {
    /// Returns the challenge of an answer; empty if there is none.
    pub(in crate::client) fn of(incoming: &Incoming) -> Self {
        let headers = incoming.headers().filter(|it| it.0.eq_ignore_ascii_case("www-authenticate"));
        headers.map(|it| Self::parse(it.1)).find(|it| *it != Self::default()).unwrap_or_default()
    }

    /// Whether it requires more scopes than the token has.
    pub(in crate::client) fn wants_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// Returns the scopes that the request needs.
    pub(in crate::client) fn scopes(&self) -> Vec<String> {
        scopes(self.scope.as_deref().unwrap_or_default())
    }

    /// Parses a header, which may have challenges of several schemes.
    fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        let mut is_bearer = false;
        let mut rest = header;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            if word.is_empty() {
                // The rest is empty, or malformed.
                return challenge;
            }
            let Some(value) = behind.trim_start().strip_prefix('=') else {
                is_bearer = word.eq_ignore_ascii_case("bearer");
                rest = behind;
                continue;
            };
            let (value, behind) = read_value(value.trim_start());
            rest = behind;
            let field = match word.to_ascii_lowercase().as_str() {
                _ if !is_bearer => continue,
                "resource_metadata" => &mut challenge.resource_metadata,
                "scope" => &mut challenge.scope,
                "error" => &mut challenge.error,
                _ => continue,
            };
            field.get_or_insert(value);
        }
    }
}

/// Parses a token or quoted string at the beginning of a text, and returns the rest.
fn read_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|it| it.1)),
            c => value.push(c),
        }
    }
    (value, "")
}

/// Shortens and sanitizes a foreign text for display.
pub(super) fn sanitize(text: &str) -> String {
    const MOST: usize = 200;
    visible(text)
        .chars()
        .map(|c| if c == '\n' { ' ' } else { c })
        .filter(|c: &char| !c.is_control())
        .take(MOST)
        .collect()
}

/// Parses scopes that are safe to send and display: words of characters in RFC 6749, each once.
/// Those with a quote are left out, because a person may copy them into a shell.
pub(super) fn scopes(text: &str) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in text.split(' ').filter(|it| {
        !it.is_empty()
            && it.bytes().all(|c: u8| {
                c.is_ascii_graphic() && !matches!(c, b'"' | b'\\' | b'\'' | b'`' | b'$')
            })
    }) {
        if scopes.len() < 64 && !scopes.iter().any(|it| it == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(header: &str) -> (Option<String>, Option<String>, Option<String>) {
        let Challenge { resource_metadata, scope, error } = Challenge::parse(header);
        (resource_metadata, scope, error)
    }

    #[test]
    fn a_challenge_is_found_among_others() {
        let some = |it: &str| Some(it.to_owned());
        assert_eq!(
            parse(
                r#"Basic realm="a, b", Bearer error="insufficient_scope", scope="a b",resource_metadata="https://x/y" "#
            ),
            (some("https://x/y"), some("a b"), some("insufficient_scope"))
        );
        assert_eq!(parse("bearer scope=a"), (None, some("a"), None));
        assert_eq!(parse(r#"Bearer scope="a\"b"#), (None, some("a\"b"), None));
        assert_eq!(parse(r#"Basic scope="a""#), (None, None, None));
        for odd in ["", "Bearer", "Bearer =", "=", ",,,", "Bearer scope", "Bearer é=\"", "\"\\"] {
            assert_eq!(parse(odd), (None, None, None), "{odd}");
        }
    }

    #[test]
    fn what_others_say_is_one_short_line() {
        assert_eq!(sanitize("a\u{1b}[31mb\nc\u{202e}d"), "a[31mb cd");
        assert_eq!(sanitize(&"x".repeat(1000)).len(), 200);
        assert_eq!(scopes("a  b a c\"d é x';rm y:z"), ["a", "b", "y:z"]);
    }
}
