//! Regular expressions as schemas write them: those of JavaScript.

use regex::{Regex, RegexBuilder};

/// The maximum size of a compiled pattern.
const MAX_SIZE: usize = 256 * 1024;

/// The white space of JavaScript, inside of a class.
const SPACE: &str = r"\t\n\x0B\x0C\r\x{FEFF}\p{Zs}\x{2028}\x{2029}";

/// Compiles a pattern. Matching takes linear time, so there are no backreferences or lookarounds.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(pattern))
        .size_limit(MAX_SIZE)
        .dfa_size_limit(MAX_SIZE)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            error => error.to_string().lines().last().unwrap_or_default().to_owned(),
        })
}

/// Writes a pattern of JavaScript as one of `regex`: classes are those of ASCII there, and some
/// characters have no meaning inside of brackets.
fn translate(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut is_class = false;
    let mut before = ' ';
    while let Some(it) = rest.next() {
        match it {
            '\\' => match rest.next() {
                Some(escaped) => escape(escaped, is_class, &mut rest, &mut written),
                None => written.push(it),
            },
            '[' if is_class => written.push_str(r"\["),
            '[' => {
                let negated = rest.next_if_eq(&'^').is_some();
                match rest.next_if_eq(&']') {
                    Some(_) if negated => written.push_str(r"[\x00-\x{10FFFF}]"),
                    Some(_) => written.push_str(r"[^\x00-\x{10FFFF}]"),
                    None => {
                        is_class = true;
                        written.push_str(if negated { "[^" } else { "[" });
                    }
                }
            }
            ']' if is_class => {
                is_class = false;
                written.push(it);
            }
            '&' | '~' if is_class => written.extend(['\\', it]),
            '-' if is_class && before == '-' => written.push_str(r"\-"),
            _ => written.push(it),
        }
        before = it;
    }
    written
}

/// Writes what follows a backslash.
fn escape(
    escaped: char,
    is_class: bool,
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    written: &mut String,
) {
    match escaped {
        'd' => written.push_str("[0-9]"),
        'D' => written.push_str("[^0-9]"),
        'w' => written.push_str("[0-9A-Za-z_]"),
        'W' => written.push_str("[^0-9A-Za-z_]"),
        's' => written.push_str(&format!("[{SPACE}]")),
        'S' => written.push_str(&format!("[^{SPACE}]")),
        'b' if is_class => written.push_str(r"\x08"),
        'b' => written.push_str(r"(?-u:\b)"),
        '0' => written.push_str(r"\x00"),
        '<' | '>' => written.push(escaped),
        'c' if rest.peek().is_some_and(char::is_ascii_alphabetic) => {
            let letter = rest.next().unwrap_or_default();
            written.push_str(&format!(r"\x{:02X}", u32::from(letter) % 32));
        }
        _ => written.extend(['\\', escaped]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_javascript() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "१२", false),
            (r"^\w$", "é", false),
            (r"^[\W]$", "é", true),
            (r"^[a\d-]+$", "a-1", true),
            (r"^\s\S$", "\u{feff}a", true),
            (r"^[\s]$", "\u{85}", false),
            (r"^[[]$", "[", true),
            (r"^[a&&b]$", "&", true),
            (r"^[a~~b]$", "~", true),
            (r"^[+--]$", ",", true),
            (r"[]", "a", false),
            (r"^[^]$", "\n", true),
            (r"^\cJ$", "\n", true),
            (r"^\/\-\<$", "/-<", true),
            (r"^\u0061[\b]$", "a\u{8}", true),
            (r"\bfoo\b", "éfoo", true),
            (r"^\p{Letter}+$", "éa", true),
            (r"a", "bab", true),
            (r"^a$", "a\n", false),
        ] {
            let regex = compile(pattern).expect(pattern);
            assert_eq!(regex.is_match(text), matches, "{pattern} {text:?}");
        }
        for pattern in ["(?=a)b", r"(a)\1", "(", r"\", r"(\w{500}){500}"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
