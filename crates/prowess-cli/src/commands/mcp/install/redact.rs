//! Redacts secrets in settings.

use prowess::SettingsFormat;
use prowess_runtime::secret::{MASK, is_secret_name, mask};

/// Tables whose values may all be secrets.
const TABLES: &[&str] =
    &["env", "envs", "environment", "headers", "http_headers", "requestheaders"];

/// Redacts the secrets in settings, line by line: everything below `env` and headers, values with
/// names like `token`, and values that look like a secret.
pub(super) fn redact(text: &str, format: SettingsFormat) -> String {
    match format {
        SettingsFormat::Json => redact_flow(text, Frame::default()),
        SettingsFormat::Toml => redact_toml(text),
        SettingsFormat::Yaml => redact_yaml(text),
    }
}

/// A list or table that the scanner is in.
#[derive(Clone, Default)]
struct Frame {
    is_list: bool,
    /// Whether all its values are secret.
    is_secret: bool,
    /// The key of the next value.
    key: Option<String>,
    /// The previous item of a list.
    before: String,
}

impl Frame {
    /// Returns whether the next value is secret.
    fn hides(&self) -> bool {
        let option = self.before.starts_with('-') && !self.before.contains('=');
        self.is_secret
            || self.key.as_deref().is_some_and(is_secret_name)
            || self.is_list && option && is_secret_name(&self.before)
    }

    /// Returns the frame of a list or table inside it.
    fn frame_inside(&self, is_list: bool) -> Self {
        let is_table = self.key.as_deref().is_some_and(is_table);
        Self { is_list, is_secret: self.hides() || is_table, ..Self::default() }
    }
}

/// Redacts secrets in bracketed values, as in JSON, and in TOML and YAML on one line.
fn redact_flow(text: &str, first: Frame) -> String {
    let mut frames = vec![first];
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let Some(frame) = frames.last_mut() else { break };
        let length = match c {
            '"' | '\'' => quoted_length(rest, c),
            '{' | '[' => {
                let inner = frame.frame_inside(c == '[');
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
            _ => rest
                .find(|c: char| c.is_whitespace() || ",:={}[]\"'#".contains(c))
                .unwrap_or(rest.len()),
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
        } else if let Some((option, _)) = bare.split_once('=').filter(|it| is_secret_name(it.0)) {
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

/// Returns the length of the quoted string at the start of a text.
fn quoted_length(text: &str, quote: char) -> usize {
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

fn redact_toml(text: &str) -> String {
    let mut is_hidden = false;
    text.split_inclusive('\n')
        .map(|line: &str| {
            let trimmed = line.trim_start();
            if trimmed.starts_with('[') && !trimmed.contains('=') {
                let name = trimmed.trim_end().trim_matches(['[', ']']);
                let last = name.rsplit('.').next().unwrap_or_default();
                is_hidden = is_table(last.trim().trim_matches(['"', '\'']));
                return line.to_owned();
            }
            redact_flow(line, Frame { is_secret: is_hidden, ..Frame::default() })
        })
        .collect()
}

fn redact_yaml(text: &str) -> String {
    // The indent of the key below which everything is hidden.
    let mut hidden: Option<usize> = None;
    text.split_inclusive('\n')
        .map(|line: &str| {
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
            let is_hidden = hidden.is_some() || name.is_some_and(is_secret_name);
            let is_open = matches!(value.trim(), "" | "|" | ">" | "|-" | ">-");
            if hidden.is_none()
                && name.is_some_and(|it| is_table(it) || is_secret_name(it))
                && is_open
            {
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
            format!("{before}{}", redact_flow(value, Frame { key, ..Frame::default() }))
        })
        .collect()
}

fn is_table(name: &str) -> bool {
    TABLES.iter().any(|it| it.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_all_else_stays() {
        for (format, text, shown) in [
            (
                SettingsFormat::Json,
                r#"{"mcpServers":{"a":{"command":"x","env":{"TOKEN":"s3cret","N":1},"args":["--api-key","s3cret","--token=s3cret","--port=1"]}},"n":"x"}"#,
                r#"{"mcpServers":{"a":{"command":"x","env":{"TOKEN":"[masked]","N":[masked]},"args":["--api-key","[masked]","--token=[masked]","--port=1"]}},"n":"x"}"#,
            ),
            (
                SettingsFormat::Json,
                "{\"oauth\": {\"accessToken\": \"a\\\"b\", \"list\": [\"x\"]}, // TOKEN\n \"token_file\": \"f\"}",
                "{\"oauth\": {\"accessToken\": \"[masked]\", \"list\": [\"x\"]}, // TOKEN\n \"token_file\": \"f\"}",
            ),
            (
                SettingsFormat::Toml,
                "[a.env]\nX = \"s3cret\"\n[b]\nkey = 'k'\nenv = { A = \"s3cret\" }\ntoken = \"s3cret\"\n",
                "[a.env]\nX = \"[masked]\"\n[b]\nkey = 'k'\nenv = { A = \"[masked]\" }\ntoken = \"[masked]\"\n",
            ),
            (
                SettingsFormat::Yaml,
                "a:\n  envs:\n    X: s3cret\n    Y: |\n      s3cret\n  cmd: x\n  env: {A: s3cret}\n  token: s3cret\n",
                "a:\n  envs:\n    X: [masked]\n    Y: |\n      [masked]\n  cmd: x\n  env: {A: [masked]}\n  token: [masked]\n",
            ),
        ] {
            assert_eq!(redact(text, format), shown);
        }
        for text in ["{\"a", "}]}", "{'x': \\", "[[[{", "\"", "// x"] {
            for format in [SettingsFormat::Json, SettingsFormat::Toml, SettingsFormat::Yaml] {
                redact(text, format);
            }
        }
    }
}
