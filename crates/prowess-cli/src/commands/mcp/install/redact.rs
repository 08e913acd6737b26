//! Settings as they are shown: without what is secret in them.

use prowess_runtime::mask;

use super::client::Format;

/// What is shown in the place of a secret.
const MASK: &str = "[masked]";
/// Tables whose values may all be secrets.
const TABLES: &[&str] =
    &["env", "envs", "environment", "headers", "http_headers", "requestheaders"];
/// Parts of names whose values are secrets, without what joins words.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "credential",
    "cookie",
];
/// How names end that say where a secret is, and have none.
const PLACES: &[&str] = &["file", "path", "dir", "url", "envvar"];

/// A text of settings with the same lines, in which no secret is left: nothing below `env` and headers,
/// nothing that is called a token or the like, and nothing that looks like one.
pub(super) fn redact(text: &str, format: Format) -> String {
    match format {
        Format::Json => flow(text, Frame::default()),
        Format::Toml => toml(text),
        Format::Yaml => yaml(text),
    }
}

/// What the scanner is in.
#[derive(Clone, Default)]
struct Frame {
    is_list: bool,
    /// Whether all that is in it is secret.
    is_secret: bool,
    /// The name that the next value has.
    key: Option<String>,
    /// The item before, of a list.
    before: String,
}

impl Frame {
    /// Whether the next value is secret.
    fn hides(&self) -> bool {
        let option = self.before.starts_with('-') && !self.before.contains('=');
        self.is_secret
            || self.key.as_deref().is_some_and(is_secret)
            || self.is_list && option && is_secret(&self.before)
    }

    /// What a list or table inside of it begins with.
    fn inner(&self, is_list: bool) -> Self {
        let is_table = self.key.as_deref().is_some_and(is_table);
        Self { is_list, is_secret: self.hides() || is_table, ..Self::default() }
    }
}

/// Hides secrets in values with brackets, as JSON has them, and TOML and YAML on one line.
fn flow(text: &str, first: Frame) -> String {
    let mut frames = vec![first];
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let Some(frame) = frames.last_mut() else { break };
        let length = match c {
            '"' | '\'' => quoted(rest, c),
            '{' | '[' => {
                let inner = frame.inner(c == '[');
                frames.push(inner);
                1
            }
            '}' | ']' => {
                if frames.len() > 1 {
                    frames.pop();
                }
                1
            }
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |it| it + 2),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            c if c.is_whitespace() || matches!(c, ',' | ':' | '=') => c.len_utf8(),
            _ => {
                let ends = |c: char| c.is_whitespace() || ",:={}[]\"'#".contains(c);
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        let is_word = !(c.is_whitespace() || "{}[],:=".contains(c));
        if !is_word {
            if let (',', Some(frame)) = (c, frames.last_mut()) {
                frame.key = None;
            }
            shown.push_str(token);
            continue;
        }
        let Some(frame) = frames.last_mut() else { break };
        let bare = token.trim_matches(['"', '\'']);
        if token.starts_with("//") || token.starts_with("/*") || token.starts_with('#') {
            shown.push_str(&mask(token));
        } else if !frame.is_list
            && frame.key.is_none()
            && behind.trim_start().starts_with([':', '='])
        {
            frame.key = Some(bare.to_owned());
            shown.push_str(token);
        } else if frame.hides() && !bare.is_empty() {
            let quote = token.chars().next().filter(|it| "\"'".contains(*it));
            let quote = quote.map(String::from).unwrap_or_default();
            shown.push_str(&format!("{quote}{MASK}{quote}"));
            frame.before = bare.to_owned();
        } else if let Some((option, _)) = bare.split_once('=').filter(|it| is_secret(it.0)) {
            let quote = token.chars().next().filter(|it| "\"'".contains(*it));
            let quote = quote.map(String::from).unwrap_or_default();
            shown.push_str(&format!("{quote}{option}={MASK}{quote}"));
            frame.before = bare.to_owned();
        } else {
            shown.push_str(&mask(token));
            frame.before = bare.to_owned();
        }
    }
    shown
}

/// How long the text in quotes is that a text begins with.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => drop(chars.next()),
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn toml(text: &str) -> String {
    let mut is_hidden = false;
    let line = |line: &str| {
        let trimmed = line.trim_start();
        if trimmed.starts_with('[') && !trimmed.contains('=') {
            let name = trimmed.trim_end().trim_matches(['[', ']']);
            let last = name.rsplit('.').next().unwrap_or_default();
            is_hidden = is_table(last.trim().trim_matches(['"', '\'']));
            return line.to_owned();
        }
        flow(line, Frame { is_secret: is_hidden, ..Frame::default() })
    };
    text.split_inclusive('\n').map(line).collect()
}

fn yaml(text: &str) -> String {
    // How far the name is indented below which all is hidden.
    let mut hidden: Option<usize> = None;
    let line = |line: &str| {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if trimmed.is_empty() {
            return line.to_owned();
        }
        hidden = hidden.filter(|it| indent > *it);
        let item = trimmed.strip_prefix("- ").unwrap_or(trimmed);
        let (name, value) = match item.split_once(':') {
            Some((name, value)) if value.is_empty() || value.starts_with([' ', '\n', '\r']) => {
                (Some(name.trim().trim_matches(['"', '\''])), value)
            }
            _ => (None, item),
        };
        let is_hidden = hidden.is_some() || name.is_some_and(is_secret);
        let is_open = matches!(value.trim(), "" | "|" | ">" | "|-" | ">-");
        if hidden.is_none() && name.is_some_and(|it| is_table(it) || is_secret(it)) && is_open {
            hidden = Some(indent);
        }
        let before = &line[..line.len() - value.len()];
        if is_open && name.is_some() {
            return line.to_owned();
        }
        if is_hidden {
            let end = &value[value.trim_end().len()..];
            let space = if name.is_some() { " " } else { "" };
            return format!("{before}{space}{MASK}{end}");
        }
        let key = name.map(str::to_owned);
        format!("{before}{}", flow(value, Frame { key, ..Frame::default() }))
    };
    text.split_inclusive('\n').map(line).collect()
}

fn is_table(name: &str) -> bool {
    TABLES.iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// Whether a name is that of a secret.
fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(|it| it.is_alphanumeric()).collect();
    let plain = plain.to_ascii_lowercase();
    NAMES.iter().any(|it| plain.contains(it)) && !PLACES.iter().any(|it| plain.ends_with(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_all_else_stays() {
        for (format, text, shown) in [
            (
                Format::Json,
                r#"{"mcpServers":{"a":{"command":"x","env":{"TOKEN":"s3cret","N":1},"args":["--api-key","s3cret","--token=s3cret","--port=1"]}},"n":"x"}"#,
                r#"{"mcpServers":{"a":{"command":"x","env":{"TOKEN":"[masked]","N":[masked]},"args":["--api-key","[masked]","--token=[masked]","--port=1"]}},"n":"x"}"#,
            ),
            (
                Format::Json,
                "{\"oauth\": {\"accessToken\": \"a\\\"b\", \"list\": [\"x\"]}, // TOKEN\n \"token_file\": \"f\"}",
                "{\"oauth\": {\"accessToken\": \"[masked]\", \"list\": [\"x\"]}, // TOKEN\n \"token_file\": \"f\"}",
            ),
            (
                Format::Toml,
                "[a.env]\nX = \"s3cret\"\n[b]\nkey = 'k'\nenv = { A = \"s3cret\" }\ntoken = \"s3cret\"\n",
                "[a.env]\nX = \"[masked]\"\n[b]\nkey = 'k'\nenv = { A = \"[masked]\" }\ntoken = \"[masked]\"\n",
            ),
            (
                Format::Yaml,
                "a:\n  envs:\n    X: s3cret\n    Y: |\n      s3cret\n  cmd: x\n  env: {A: s3cret}\n  token: s3cret\n",
                "a:\n  envs:\n    X: [masked]\n    Y: |\n      [masked]\n  cmd: x\n  env: {A: [masked]}\n  token: [masked]\n",
            ),
        ] {
            assert_eq!(redact(text, format), shown);
        }
        for text in ["{\"a", "}]}", "{'x': \\", "[[[{", "\"", "// x"] {
            for format in [Format::Json, Format::Toml, Format::Yaml] {
                redact(text, format);
            }
        }
    }
}
