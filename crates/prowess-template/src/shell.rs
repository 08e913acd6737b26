//! Inserts values into the text of a shell command, each quoted for its place, so that it is read
//! as text and never as a command.

/// The syntactic context of a position in a shell command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteContext {
    Plain,
    Single,
    Double,
    /// After a backslash or a dollar sign, or where a shell begins a new context.
    Unclear,
}

/// Returns a value as quoted after the text of a command. Fails in a context that allows only plain
/// characters.
pub(crate) fn quote(before: &[u8], value: &[u8]) -> Result<Vec<u8>, String> {
    let is_plain = value.iter().all(|it| it.is_ascii_alphanumeric() || b"/._-:@%+=,".contains(it));
    match context_after(before) {
        QuoteContext::Plain if value.is_empty() => Ok(b"''".to_vec()),
        _ if is_plain => Ok(value.to_owned()),
        QuoteContext::Plain => {
            Ok([&b"'"[..], &replace_quotes(value, b"'", b"'\\''"), b"'"].concat())
        }
        QuoteContext::Single => Ok(replace_quotes(value, b"'", b"'\\''")),
        QuoteContext::Double => Ok(in_double_quotes(value)),
        QuoteContext::Unclear => {
            let value = String::from_utf8_lossy(value);
            Err(format!("`{value}` cannot be quoted at this place of a command"))
        }
    }
}

/// Returns the context of the next character.
fn context_after(text: &[u8]) -> QuoteContext {
    let mut context = QuoteContext::Plain;
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let next = bytes.peek().copied();
        context = match (context, byte) {
            (QuoteContext::Plain | QuoteContext::Double, b'\\' | b'$') if next.is_none() => {
                QuoteContext::Unclear
            }
            (QuoteContext::Plain | QuoteContext::Double, b'\\') => {
                bytes.next();
                context
            }
            (QuoteContext::Plain | QuoteContext::Double, b'`') => QuoteContext::Unclear,
            (QuoteContext::Plain | QuoteContext::Double, b'$')
                if matches!(next, Some(b'(' | b'{' | b'\'')) =>
            {
                QuoteContext::Unclear
            }
            (QuoteContext::Plain, b'#') => QuoteContext::Unclear,
            (QuoteContext::Plain, b'<') if next == Some(b'<') => QuoteContext::Unclear,
            (QuoteContext::Plain, b'\'') => QuoteContext::Single,
            (QuoteContext::Plain, b'"') => QuoteContext::Double,
            (QuoteContext::Single, b'\'') | (QuoteContext::Double, b'"') => QuoteContext::Plain,
            _ => context,
        };
        if context == QuoteContext::Unclear {
            break;
        }
    }
    context
}

fn in_double_quotes(value: &[u8]) -> Vec<u8> {
    value
        .iter()
        .flat_map(|it: &u8| match b"\\\"$`".contains(it) {
            true => vec![b'\\', *it],
            false => vec![*it],
        })
        .collect()
}

/// Returns a value with every quote replaced.
fn replace_quotes(value: &[u8], quote: &[u8], instead: &[u8]) -> Vec<u8> {
    let pieces =
        value.iter().map(|it| if quote.contains(it) { instead.to_vec() } else { vec![*it] });
    pieces.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_quoted_for_its_place() {
        for (before, value, after) in [
            ("echo ", "plain-1.txt", "plain-1.txt"),
            ("echo ", "", "''"),
            ("echo ", "a b", "'a b'"),
            ("echo ", "a; rm -rf ~", "'a; rm -rf ~'"),
            ("echo ", "it's", "'it'\\''s'"),
            ("echo '", "it's; x", "it'\\''s; x"),
            ("echo \"", "a\"; $(x) `y` \\", "a\\\"; \\$(x) \\`y\\` \\\\"),
            ("echo 'a' \"b\" \\' ", "x y", "'x y'"),
            ("echo $(cat ", "x", "x"),
        ] {
            let quoted = quote(before.as_bytes(), value.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(quoted).unwrap(), after, "{before}{value}");
        }
        for before in
            ["echo \"$(cat ", "echo `", "echo $", "echo \"$", "x \\", "cat << E\n", "x # "]
        {
            assert!(quote(before.as_bytes(), b"a; b").is_err(), "{before}");
        }
    }
}
