//! Decodes parts of URIs.

/// Decodes a part of a URI, or returns what is wrong with it.
pub fn percent_decoded(written: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let [first, behind @ ..] = rest {
        let [high, low] = [0, 1].map(|it| char::from(*behind.get(it)?).to_digit(16));
        rest = match (first, high, low) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                &behind[2..]
            }
            (b'%', ..) => return Err("it has a `%` without two digits after it"),
            _ => {
                bytes.push(*first);
                behind
            }
        };
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8")
}
