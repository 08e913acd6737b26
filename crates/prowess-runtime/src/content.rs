//! Converts a part of a file, or of a server's answer, to JSON for a model.

use std::io::{self, Read, Seek, SeekFrom};

use serde_json::{Map, Value, json};

use crate::digest::digest;

/// Bytes for a model: text unchanged, anything else in base64.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text(String),
    Base64(String),
}

/// A part of a file.
#[derive(Debug)]
pub(crate) struct FileChunk {
    /// The offset in bytes.
    offset: u64,
    bytes: Vec<u8>,
    /// Whether more follows.
    more: bool,
}

/// The maximum size of a part of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// Bytes of the output, in JSON or in base64.
    pub(crate) output: u64,
}

impl Content {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        // Text never contains a zero byte, and each would take six bytes in JSON.
        if bytes.contains(&0) {
            return Self::Base64(base64(&bytes));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Base64(base64(error.as_bytes())),
        }
    }

    /// Adds it to an answer, under `key` or `<key>_base64`.
    pub(crate) fn insert_into(self, answer: &mut Map<String, Value>, key: &str) {
        match self {
            Self::Text(text) => answer.insert(key.to_owned(), text.into()),
            Self::Base64(text) => answer.insert(format!("{key}_base64"), text.into()),
        };
    }
}

impl FileChunk {
    /// Reads at most a page from `offset` on. Text ends with a whole line if possible, else with a
    /// whole character.
    pub(crate) fn read(file: &mut (impl Read + Seek), offset: u64, page: Page) -> io::Result<Self> {
        // The system rejects offsets beyond any possible file.
        let end = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(offset.min(end)))?;
        let mut bytes = Vec::new();
        file.take(page.bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        let fitting = fitting_length(&bytes, page.output).min(page.bytes) as usize;
        let more = bytes.len() > fitting;
        if more {
            bytes.truncate(fitting);
            bytes.truncate(line_end(&bytes));
        }
        Ok(Self { offset, bytes, more })
    }

    /// Returns the answer about a file of this size: its content, the offset to continue at, and
    /// the digest of a file that is returned as a whole.
    pub(crate) fn into_output(self, size: u64) -> Map<String, Value> {
        let Self { offset, bytes, more } = self;
        let end = offset.saturating_add(bytes.len() as u64);
        let digest = (offset == 0 && !more).then(|| digest(&bytes));
        let mut answer = Map::new();
        answer.insert("size".to_owned(), size.into());
        answer.insert("offset".to_owned(), offset.into());
        Content::new(bytes).insert_into(&mut answer, "content");
        if more {
            answer.insert("next_offset".to_owned(), json!(end));
        }
        answer.extend(digest.map(|it| ("sha256".to_owned(), it.into())));
        answer
    }
}

/// Returns how many of these bytes fit into so many bytes of output.
fn fitting_length(bytes: &[u8], output: u64) -> u64 {
    if bytes.contains(&0) || str::from_utf8(&bytes[..text_end(bytes)]).is_err() {
        return output / 4 * 3;
    }
    let mut sum = 0;
    bytes
        .iter()
        .take_while(|byte: &&u8| {
            sum += escaped_length(**byte);
            sum <= output
        })
        .count() as u64
}

/// Returns the length of a byte of text in JSON.
fn escaped_length(byte: u8) -> u64 {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

/// Returns the end of the last whole character, if the bytes are text.
pub(crate) fn text_end(bytes: &[u8]) -> usize {
    match str::from_utf8(bytes) {
        // The last character is incomplete; if there is nothing else, it is not text.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Returns the end of the last whole line, if there is one.
fn line_end(bytes: &[u8]) -> usize {
    let end = text_end(bytes);
    let line = bytes[..end].iter().rposition(|it| *it == b'\n').map(|it| it + 1);
    line.filter(|_| str::from_utf8(&bytes[..end]).is_ok()).unwrap_or(end)
}

/// Encodes bytes in base64, with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (group >> (18 - 6 * digit)) as usize & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[value]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_the_standard_says() {
        let given = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let wanted = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(given.map(|it| base64(it.as_bytes())), wanted);
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn text_is_cut_behind_a_line_or_a_character_and_other_bytes_nowhere() {
        let cut = |bytes: &[u8]| line_end(bytes);
        assert_eq!(cut(b"one\ntwo\nthr"), 8);
        assert_eq!(cut(b"one"), 3);
        assert_eq!(cut("aä".as_bytes().split_last().unwrap().1), 1);
        // A part that is too short for one character is returned as bytes, so that reading
        // continues.
        assert_eq!(cut(&"€".as_bytes()[..2]), 2);
        assert_eq!(cut(b"one\n\xff\xfe"), 6);
        assert_eq!(text_end(b"one\ntwo"), 7);
        assert_eq!(cut(b""), 0);
    }

    #[test]
    fn a_page_is_no_longer_than_it_may_be_told() {
        for bytes in [&b"\"\n\x01a"[..], "ä\t".as_bytes(), b"a\0b", b"\xff\xfe\n"] {
            let bytes = bytes.repeat(100);
            for output in 12..60 {
                let page = Page { bytes: 1000, output };
                let part = FileChunk::read(&mut io::Cursor::new(&bytes), 0, page).unwrap();
                let mut answer = Map::new();
                Content::new(part.bytes.clone()).insert_into(&mut answer, "c");
                let length = answer.values().next().unwrap().to_string().len() - 2;
                assert!(
                    part.more && !part.bytes.is_empty() && length as u64 <= output,
                    "{answer:?}"
                );
            }
        }
    }

    #[test]
    fn parts_put_together_are_the_file() {
        let text = "first\nsecond line\n€€€€ no end of line here\nlast".repeat(3);
        for limit in 1..40 {
            let (mut all, mut offset, mut rounds) = (Vec::new(), 0, 0);
            loop {
                let page = Page { bytes: limit, output: u64::MAX };
                let part = FileChunk::read(&mut io::Cursor::new(&text), offset, page).unwrap();
                assert!(part.bytes.len() as u64 <= limit);
                all.extend_from_slice(&part.bytes);
                offset += part.bytes.len() as u64;
                rounds += 1;
                assert!(rounds <= text.len(), "no end with {limit}");
                if !part.more {
                    break;
                }
            }
            assert_eq!(String::from_utf8(all).unwrap(), text);
        }
    }
}
