//! The modules that a JavaScript or TypeScript file imports, read without running it.

/// One import of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsImport {
    /// The module as written: `chalk`, `node:fs`, `./own.js`, `npm:chalk@5`.
    pub(super) specifier: String,
    /// Its line, counted from 1.
    pub(super) line: usize,
    /// Whether the script continues without it.
    pub(super) is_optional: bool,
    /// Whether only types are imported, which are erased at run time.
    pub(super) is_type: bool,
}

/// The maximum number of words between `import` and its `from`.
const MAX_NAMES: usize = 2_000;

/// The modules that come with Node and Bun.
const BUILT_IN: &[&str] = &[
    "assert",
    "async_hooks",
    "buffer",
    "bun",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "domain",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "inspector",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "repl",
    "stream",
    "string_decoder",
    "sys",
    "timers",
    "tls",
    "trace_events",
    "tty",
    "url",
    "util",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
];

/// Returns the package of an import; `None` for a built-in module, a file of the skill, or a
/// project alias.
pub(super) fn package_of(specifier: &str) -> Option<&str> {
    let is_own = specifier.starts_with(['.', '/', '#', '~']) || specifier.starts_with("@/");
    if is_own || specifier.contains([':', ' ', '\\', '$', '*', '!']) {
        return None;
    }
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    let end = specifier.match_indices('/').nth(parts - 1).map_or(specifier.len(), |it| it.0);
    let name = &specifier[..end];
    let is_whole = name.split('/').count() == parts && name.split('/').all(|it| !it.is_empty());
    (is_whole && name.len() <= 214 && BUILT_IN.binary_search(&name).is_err()).then_some(name)
}

/// Returns the first imports of a file, in order.
pub(super) fn js_imports(text: &str, most: usize) -> Vec<JsImport> {
    let tokens = tokens(text);
    let mut imports: Vec<JsImport> = Vec::new();
    // For each open brace, whether it belongs to a `try` whose failure is handled.
    let mut blocks: Vec<bool> = Vec::new();
    let mut handled = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        if imports.len() >= most {
            break;
        }
        let before = at.checked_sub(1).map_or("", |it| tokens[it].text);
        match token.kind {
            TokenKind::Sign if token.text == "{" => {
                let is_handled = before == "try" && handles_failure(&tokens, at);
                handled += usize::from(is_handled);
                blocks.push(is_handled);
            }
            TokenKind::Sign if token.text == "}" => {
                handled -= usize::from(blocks.pop() == Some(true));
            }
            TokenKind::Word => {
                let is_member = matches!(before, "." | "?.");
                let found = match token.text {
                    "import" | "export" if !is_member => imported_module(&tokens, at),
                    "require" if !is_member => required_module(&tokens, at),
                    _ => None,
                };
                let is_optional = handled > 0;
                let is_type = is_type(&tokens, at);
                imports.extend(found.map(|it| JsImport {
                    specifier: it.to_owned(),
                    line: token.line,
                    is_optional,
                    is_type,
                }));
            }
            _ => {}
        }
    }
    imports
}

/// Returns the module that `import` or `export` at this token names.
fn imported_module<'t>(tokens: &[Token<'t>], at: usize) -> Option<&'t str> {
    let is_import = tokens[at].text == "import";
    let next = tokens.get(at + 1)?;
    match (next.kind, next.text) {
        (TokenKind::Text, text) if is_import => return Some(text),
        (TokenKind::Sign, "(") if is_import => return string_at(tokens, at + 2),
        (TokenKind::Sign, "{" | "*") => {}
        (TokenKind::Word, word) if is_import || word == "type" => {}
        _ => return None,
    }
    for (number, token) in tokens.iter().enumerate().skip(at + 1).take(MAX_NAMES) {
        match (token.kind, token.text) {
            (TokenKind::Word, "from") => {
                if let Some(text) = string_at(tokens, number + 1) {
                    return Some(text);
                }
            }
            (TokenKind::Sign, ";" | "(" | "=") | (TokenKind::Word, "import" | "export") => {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// Whether `import` or `export` at this token is for types only; `type` can also be a name.
fn is_type(tokens: &[Token<'_>], at: usize) -> bool {
    let [word, next, last] = [at, at + 1, at + 2].map(|it| tokens.get(it).map_or("", |it| it.text));
    matches!(word, "import" | "export") && next == "type" && last != "from"
}

fn required_module<'t>(tokens: &[Token<'t>], at: usize) -> Option<&'t str> {
    let is_resolve = tokens.get(at + 1)?.text == "." && tokens.get(at + 2)?.text == "resolve";
    let open = if is_resolve { at + 3 } else { at + 1 };
    (tokens.get(open)?.text == "(").then(|| string_at(tokens, open + 1))?
}

fn string_at<'t>(tokens: &[Token<'t>], at: usize) -> Option<&'t str> {
    tokens.get(at).filter(|it| it.kind == TokenKind::Text).map(|it| it.text)
}

/// Whether a script continues when the `try` block with this brace fails: its `catch` does not end
/// it.
fn handles_failure(tokens: &[Token<'_>], open: usize) -> bool {
    let Some(end) = closing_brace(tokens, open) else { return false };
    let mut rest = tokens.iter().enumerate().skip(end + 1).take(8);
    if rest.next().is_none_or(|it| it.1.text != "catch") {
        return false;
    }
    let Some((handler, _)) = rest.find(|it| it.1.text == "{") else { return false };
    let end = closing_brace(tokens, handler).unwrap_or(tokens.len());
    let handler = &tokens[handler..end];
    !handler.iter().any(|it| it.text == "throw")
        && !handler
            .windows(3)
            .any(|it: &[Token<'_>]| it[0].text == "process" && it[2].text == "exit")
}

/// Returns the brace that closes the one at this token; searches at most some thousand tokens.
fn closing_brace(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open).take(4_000) {
        match (token.kind, token.text) {
            (TokenKind::Sign, "{") => depth += 1,
            (TokenKind::Sign, "}") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    Word,
    Sign,
    /// A string, without its quotes.
    Text,
    /// A token without a name: a number, a template, a regular expression.
    Value,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    pub(super) text: &'t str,
    pub(super) line: usize,
}

/// Words after which a `/` begins a regular expression.
const BEFORE_VALUE: &[&str] = &[
    "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do",
    "yield", "await",
];

/// Splits a text into tokens, without comments; the contents of `${}` in a template are code.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    // The number of open braces at the start of each `${}`.
    let mut templates: Vec<usize> = Vec::new();
    let (mut braces, mut line, mut at) = (0_usize, 1, 0);
    if text.starts_with("#!") {
        at = text.find('\n').unwrap_or(text.len());
    }
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut length = c.len_utf8();
        let begun = line;
        let mut found = None;
        match c {
            '\n' => line += 1,
            '/' if rest.starts_with("//") => length = rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                length = rest[2..].find("*/").map_or(rest.len(), |it| it + 4);
                line += rest[..length].matches('\n').count();
            }
            '/' if can_begin_value(tokens.last()) => {
                length = regex_length(rest).unwrap_or(1);
                found = Some((TokenKind::Value, &rest[..length]));
            }
            '\'' | '"' => {
                length = string_length(rest);
                let end = length - usize::from(length > 1 && rest[..length].ends_with(c));
                found = Some((TokenKind::Text, &rest[1..end.max(1)]));
            }
            '`' => {
                let template = template_length(rest, 1);
                length = template.0;
                let is_text = !template.1 && length >= 2 && rest[..length].ends_with('`');
                found = Some(if is_text {
                    (TokenKind::Text, &rest[1..length - 1])
                } else {
                    (TokenKind::Value, "")
                });
                line += rest[..length].matches('\n').count();
                if template.1 {
                    templates.push(braces);
                }
            }
            '}' if templates.last() == Some(&braces) => {
                let template = template_length(rest, 1);
                length = template.0;
                line += rest[..length].matches('\n').count();
                found = Some((TokenKind::Value, ""));
                if !template.1 {
                    templates.pop();
                }
            }
            c if c.is_alphanumeric() || c == '_' || c == '$' => {
                length = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
                    .unwrap_or(rest.len());
                let kind = if c.is_ascii_digit() { TokenKind::Value } else { TokenKind::Word };
                found = Some((kind, &rest[..length]));
            }
            c if c.is_whitespace() => {}
            _ => {
                braces = match c {
                    '{' => braces + 1,
                    '}' => braces.saturating_sub(1),
                    _ => braces,
                };
                found = Some((TokenKind::Sign, &rest[..length]));
            }
        }
        tokens.extend(found.map(|(kind, text)| Token { kind, text, line: begun }));
        at += length;
    }
    tokens
}

/// Whether a value can follow this token, so that a `/` there is not a division.
fn can_begin_value(before: Option<&Token<'_>>) -> bool {
    before.is_none_or(|it| match it.kind {
        TokenKind::Word => BEFORE_VALUE.contains(&it.text),
        TokenKind::Sign => !matches!(it.text, ")" | "]" | "}"),
        TokenKind::Text | TokenKind::Value => false,
    })
}

/// Returns the length of a regular expression without its flags; it must end on its line.
fn regex_length(text: &str) -> Option<usize> {
    let mut is_class = false;
    let mut signs = text.char_indices().skip(1);
    while let Some((at, c)) = signs.next() {
        match c {
            '\\' => drop(signs.next()),
            '\n' => return None,
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Returns the length of a string with its quotes; an unclosed one ends with its line.
fn string_length(text: &str) -> usize {
    let mut signs = text.char_indices();
    let quote = signs.next().map(|it| it.1);
    while let Some((at, c)) = signs.next() {
        match c {
            '\\' => drop(signs.next()),
            '\n' => return at,
            c if Some(c) == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a template from here on, and whether code follows.
fn template_length(text: &str, from: usize) -> (usize, bool) {
    let mut signs = text.char_indices().skip(from).peekable();
    while let Some((at, c)) = signs.next() {
        match c {
            '\\' => drop(signs.next()),
            '`' => return (at + 1, false),
            '$' if signs.peek().is_some_and(|it| it.1 == '{') => return (at + 2, true),
            _ => {}
        }
    }
    (text.len(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Vec<String> {
        js_imports(text, 100)
            .into_iter()
            .map(|it: JsImport| {
                let optional = if it.is_optional { "?" } else { "" };
                let types = if it.is_type { " (types)" } else { "" };
                format!("{}:{}{optional}{types}", it.line, it.specifier)
            })
            .collect()
    }

    #[test]
    fn imports_are_read_and_strings_are_not() {
        let text = "#!/usr/bin/env node\n// import a from 'a'\nimport b from 'b';\nimport 'c'\n\
            import * as d from \"@s/d/e\"\nimport {\n  f,\n  g as h\n} from 'f'\n/* require('i') */\n\
            const j = require('j').k, r = /require('l')/g\nconst m = `require('n') ${require('o')} \\``\n\
            await import('p'); export { q } from 'q'; export * from 'r'\nimport type { S } from 's'\n\
            x.require('t'); const u = \"import v from 'v'\"\nexport default { w: 1 }\nrequire(name)\n\
            import type from 'y'\nexport const z = 4 / 2 / require('zz')\nrequire.resolve('k')";
        let expected = [
            "3:b",
            "4:c",
            "5:@s/d/e",
            "6:f",
            "11:j",
            "12:o",
            "13:p",
            "13:q",
            "13:r",
            "14:s (types)",
            "18:y",
            "19:zz",
            "20:k",
        ];
        assert_eq!(find(text), expected);
    }

    #[test]
    fn an_import_is_optional_when_the_script_goes_on_without_it() {
        let text = "try { require('a') } catch { a = null }\n\
            try { require('b') } catch (e) { console.log('npm i b'); process.exit(1) }\n\
            try { require('c') } catch (e) { throw e }\ntry { require('d') } finally { }\nrequire('e')";
        assert_eq!(find(text), ["1:a?", "2:b", "3:c", "4:d", "5:e"]);
    }

    #[test]
    fn a_package_is_the_first_part_of_what_is_imported() {
        let cases = [
            ("chalk", Some("chalk")),
            ("lodash/fp", Some("lodash")),
            ("@scope/name/part.js", Some("@scope/name")),
            ("@scope", None),
            ("fs", None),
            ("fs/promises", None),
            ("node:test", None),
            ("bun:sqlite", None),
            ("./own", None),
            ("@/own", None),
            ("#own", None),
            ("https://example.com/x.js", None),
            ("", None),
        ];
        for (specifier, expected) in cases {
            assert_eq!(package_of(specifier), expected, "{specifier}");
        }
        assert!(BUILT_IN.is_sorted());
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_read(text in "(?s)[a-z'\"`\\\\/${}();\\n é]{0,80}|.{0,80}") {
            js_imports(&text, 100);
        }
    }
}
