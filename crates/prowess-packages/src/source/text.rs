//! Checks of texts, and the characters that are written in another way.

use crate::source::SourceSyntaxError;

/// The most bytes of a source.
const LONGEST: usize = 4096;
/// The most bytes of a branch, tag or commit.
const LONGEST_REFERENCE: usize = 255;

/// Why a text is not a source, and what to write instead.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) why: String,
    pub(crate) hint: String,
}

impl Refusal {
    pub(crate) fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), hint: hint.into() }
    }

    /// Makes an error of it.
    pub(crate) fn about(self, text: &str) -> SourceSyntaxError {
        refusal(text, self.why, self.hint)
    }
}

/// Returns an error about a text, which is shown without what must not be seen.
pub(crate) fn refusal(
    text: &str,
    why: impl Into<String>,
    hint: impl Into<String>,
) -> SourceSyntaxError {
    let (why, hint) = (without_secrets(&why.into()), without_secrets(&hint.into()));
    SourceSyntaxError { text: shown(text), why, hint }
}

/// Refuses what no source can be: empty, too long, with characters that cannot be seen, an option.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    if text.is_empty() {
        return Err(Refusal::new("it is empty", "write `owner/repository`, a URL, or `./folder`"));
    }
    if text.len() > LONGEST {
        let why = format!("it has more than {LONGEST} bytes");
        return Err(Refusal::new(why, "write `owner/repository`, a URL, or `./folder`"));
    }
    if let Some(why) = unseen(text) {
        return Err(Refusal::new(why, "type it by hand instead of copying it"));
    }
    if text.starts_with('-') {
        return Err(Refusal::new(
            "it begins with `-`, as an option does",
            format!("for a folder of this name write `./{text}`"),
        ));
    }
    Ok(())
}

/// Returns why a text contains what a reader would not see.
pub(super) fn unseen(text: &str) -> Option<&'static str> {
    if text.contains(char::is_control) {
        Some("it contains control characters")
    } else if prowess::invisible(text) > 0 || text.contains(is_direction) {
        Some("it contains invisible characters")
    } else {
        None
    }
}

/// Whether a character only changes the direction of others, or separates lines.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{61C}' | '\u{2028}' | '\u{2029}')
}

/// Returns a text as it can be shown: short, on one line, and without what may be a password.
fn shown(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|it| if it.is_control() || is_direction(it) { '\u{FFFD}' } else { it })
        .take(201)
        .collect();
    let visible = prowess::without_invisible(&visible).into_owned();
    let visible = match visible.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &visible[..at]),
        None => visible,
    };
    match visible.split_once('@') {
        // `user:password@host:path`
        Some((user, host)) if user.contains(':') && host.contains(':') && !user.contains('/') => {
            format!("…@{host}")
        }
        _ => without_secrets(&visible),
    }
}

/// Replaces what may be a secret in a URL: user and password, and the values of its query.
pub(super) fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some(("git", _)) | None => authority.to_owned(),
        Some((_, host)) => format!("…@{host}"),
    };
    let behind = match behind.split_once('?') {
        Some((path, query)) if has_secret(query) => format!("{path}?…"),
        _ => behind.to_owned(),
    };
    format!("{scheme}://{authority}{behind}")
}

/// Whether a query has a parameter that gives access.
pub(super) fn has_secret(query: &str) -> bool {
    const NAMES: &[&str] = &[
        "access_token",
        "api_key",
        "apikey",
        "auth",
        "jwt",
        "key",
        "pass",
        "password",
        "private_token",
        "secret",
        "sig",
        "signature",
        "token",
        "x-amz-security-token",
        "x-amz-signature",
        "x-goog-signature",
    ];
    url::form_urlencoded::parse(query.as_bytes()).any(|(name, _)| {
        NAMES.contains(&name.to_ascii_lowercase().replace('-', "_").as_str())
            || NAMES.contains(&name.to_ascii_lowercase().as_str())
    })
}

/// Refuses a branch, tag or commit that git would not accept, or would take for something else.
pub(crate) fn check_reference(reference: &str) -> Result<(), Refusal> {
    let why = if reference.is_empty() {
        "the branch, tag or commit is empty"
    } else if reference.len() > LONGEST_REFERENCE {
        "the branch, tag or commit is too long"
    } else if reference.starts_with('-') {
        "a branch, tag or commit does not begin with `-`"
    } else if reference.contains("..") || reference.contains("//") || reference.contains("@{") {
        "a branch, tag or commit does not contain `..`, `//` or `@{`"
    } else if reference.contains([' ', '~', '^', ':', '?', '*', '[', '\\'])
        || reference.contains(char::is_whitespace)
        || unseen(reference).is_some()
    {
        "a branch, tag or commit does not contain spaces or any of `~^:?*[\\`"
    } else if reference == "@"
        || reference.starts_with('/')
        || reference.ends_with(['/', '.'])
        || reference.split('/').any(|it| it.starts_with('.') || it.ends_with(".lock"))
    {
        "git does not allow this name of a branch or tag"
    } else {
        return Ok(());
    };
    Err(Refusal::new(why, "write `#` and the name of a branch or tag, or a commit, at the end"))
}

/// Returns a path below a folder in its plain form, such as `skills/pdf`; none for the whole folder.
pub(crate) fn relative_path<'s>(
    segments: impl IntoIterator<Item = &'s str>,
) -> Result<Option<String>, Refusal> {
    let mut path = String::new();
    for segment in segments {
        if segment.is_empty() || segment == "." {
            continue;
        }
        if segment == ".." {
            return Err(Refusal::new(
                "its path contains `..`",
                "write the path from the top of the repository",
            ));
        }
        if segment.contains(['/', '\\']) || unseen(segment).is_some() {
            return Err(Refusal::new(
                "its path contains a character that no folder should have",
                "write the path with `/` between folders",
            ));
        }
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(segment);
    }
    Ok((!path.is_empty()).then_some(path))
}

/// Returns the names behind `@`, which are separated by commas.
pub(super) fn names(text: &str, is_encoded: bool) -> Result<Vec<String>, Refusal> {
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',') {
        let name = if is_encoded { decoded(name) } else { name.to_owned() };
        let name = name.trim();
        if name.is_empty() || unseen(name).is_some() {
            return Err(Refusal::new(
                "there is no name of a skill behind `@`",
                "write `owner/repository@skill`, or leave the `@` out",
            ));
        }
        if !names.iter().any(|it| it == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Returns a text with `%20` and the like decoded; as it is, if that does not give a text.
pub(super) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
        let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2)) else {
            return text.to_owned();
        };
        out.push((high * 16 + low) as u8);
        at += 3;
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// Returns a text in which these characters and `%` are written as `%20` and the like.
pub(super) fn encoded(text: &str, also: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '%' || c.is_whitespace() || also.contains(&c) {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns names as they are written behind `#…@`.
pub(super) fn encoded_names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|it| encoded(it, &[',', '#'])).collect();
    names.join(",")
}
