//! Inserts values into the text of a shell command, each quoted for its place, so that it is read
//! as text and never as a command.

/// The syntactic context of a position in a shell command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Plain,
    Single,
    Double,
    /// After a backslash or a dollar sign, or where a shell begins a new context.
    Unclear,
}

/// Returns a value as quoted after the text of a command. Fails in a context that allows only plain
/// characters.
pub(crate) fn quoted(before: &[u8], value: &[u8]) -> Result<Vec<u8>, String> {
    let is_plain = value.iter().all(|it| it.is_ascii_alphanumeric() || b"/._-:@%+=,".contains(it));
    match context_after(before) {
        Place::Plain if value.is_empty() => Ok(b"''".to_vec()),
        _ if is_plain => Ok(value.to_owned()),
        Place::Plain => Ok([&b"'"[..], &escaped(value, b"'", b"'\\''"), b"'"].concat()),
        Place::Single => Ok(escaped(value, b"'", b"'\\''")),
        Place::Double => Ok(in_double_quotes(value)),
        Place::Unclear => {
            let value = String::from_utf8_lossy(value);
            Err(format!("`{value}` cannot be quoted at this place of a command"))
        }
    }
}

/// Returns the context of the next character.
fn context_after(text: &[u8]) -> Place {
    let mut place = Place::Plain;
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let next = bytes.peek().copied();
        place = match (place, byte) {
            (Place::Plain | Place::Double, b'\\' | b'$') if next.is_none() => Place::Unclear,
            (Place::Plain | Place::Double, b'\\') => {
                bytes.next();
                place
            }
            (Place::Plain | Place::Double, b'`') => Place::Unclear,
            (Place::Plain | Place::Double, b'$') if matches!(next, Some(b'(' | b'{' | b'\'')) => {
                Place::Unclear
            }
            (Place::Plain, b'#') => Place::Unclear,
            (Place::Plain, b'<') if next == Some(b'<') => Place::Unclear,
            (Place::Plain, b'\'') => Place::Single,
            (Place::Plain, b'"') => Place::Double,
            (Place::Single, b'\'') | (Place::Double, b'"') => Place::Plain,
            _ => place,
        };
        if place == Place::Unclear {
            break;
        }
    }
    place
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
fn escaped(value: &[u8], quote: &[u8], instead: &[u8]) -> Vec<u8> {
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
            let quoted = quoted(before.as_bytes(), value.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(quoted).unwrap(), after, "{before}{value}");
        }
        for before in
            ["echo \"$(cat ", "echo `", "echo $", "echo \"$", "x \\", "cat << E\n", "x # "]
        {
            assert!(quoted(before.as_bytes(), b"a; b").is_err(), "{before}");
        }
    }
}
