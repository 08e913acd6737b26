//! Scanning of scalars: their end and their text. The functions have no state.

use std::borrow::Cow;

use crate::split::Lines;

/// Returns the name of a character that is forbidden in a frontmatter, if there is one.
pub(crate) fn find_forbidden(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    // A loop over every byte without an early exit can be vectorized.
    if !bytes.iter().fold(false, |any, byte| any | is_suspect(*byte)) {
        return None;
    }
    let mut odd = bytes.iter().enumerate().filter(|(_, byte)| is_suspect(**byte));
    odd.find_map(|(at, byte)| match (byte, &bytes[at + 1..]) {
        (0xC2, [0x80..=0x9F, ..]) => Some("a control character"),
        (0xE2, [0x80, 0xA8 | 0xA9, ..]) => Some("a Unicode line separator"),
        (0xEF, [0xBB, 0xBF, ..] | [0xBF, 0xBE | 0xBF, ..]) => Some("a byte order mark"),
        (0xC2 | 0xE2 | 0xEF, _) => None,
        _ => Some("a control character"),
    })
}

/// Whether a byte is a control character, or begins a character that may be forbidden.
fn is_suspect(byte: u8) -> bool {
    (byte < 32 && !matches!(byte, b'\t' | b'\n' | b'\r'))
        || matches!(byte, 127 | 0xC2 | 0xE2 | 0xEF)
}

/// Whether a plain scalar may begin like `text`.
pub(crate) fn can_start_plain(text: &str) -> bool {
    let mut bytes = text.bytes();
    match bytes.next() {
        None => false,
        Some(b'-' | b'?' | b':') => !matches!(bytes.next(), None | Some(b' ' | b'\t')),
        Some(byte) => !b",[]{}#&*!|>'\"%@`".contains(&byte),
    }
}

/// Returns the position of a key's colon in a line: followed by a blank or the end, before any
/// comment.
pub(crate) fn key_colon(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b':' if matches!(bytes.get(at + 1), None | Some(b' ' | b'\t')) => return Some(at),
            b'#' if at > 0 && matches!(bytes[at - 1], b' ' | b'\t') => return None,
            _ => {}
        }
    }
    None
}

/// One line of a plain scalar.
pub(crate) struct Plain<'a> {
    pub(crate) text: &'a str,
    /// Whether a comment ended it.
    pub(crate) commented: bool,
}

/// Returns the plain scalar of a line; `None` if a colon makes it a key.
pub(crate) fn plain(line: &str) -> Option<Plain<'_>> {
    let bytes = line.as_bytes();
    let mut end = bytes.len();
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b':' && matches!(bytes.get(at + 1), None | Some(b' ' | b'\t')) {
            return None;
        }
        if *byte == b'#' && at > 0 && matches!(bytes[at - 1], b' ' | b'\t') {
            end = at;
            break;
        }
    }
    let text = line[..end].trim_end_matches([' ', '\t']);
    // A text that ends with a colon before its comment is a key as well.
    (!text.ends_with(':')).then_some(Plain { text, commented: end < bytes.len() })
}

/// Returns the start of a comment in a line: a `#` after a blank.
pub(crate) fn comment(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut hashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'#');
    hashes.find(|(at, _)| *at > 0 && matches!(bytes[at - 1], b' ' | b'\t')).map(|(at, _)| at)
}

/// Returns a plain scalar inside brackets, with the blanks after it; `None` if it is not a plain
/// one.
pub(crate) fn flow_plain(line: &str) -> Option<&str> {
    if !can_start_plain(line) {
        return None;
    }
    let bytes = line.as_bytes();
    let end = (0..bytes.len()).find(|at| match bytes[*at] {
        b',' | b'[' | b']' | b'{' | b'}' => true,
        b':' => matches!(
            bytes.get(at + 1),
            None | Some(b' ' | b'\t' | b',' | b'[' | b']' | b'{' | b'}')
        ),
        _ => false,
    });
    let end = end.unwrap_or(bytes.len());
    let text = &line[..end];
    // One that continues on the next line is left to a YAML library.
    let complete = end < bytes.len() || text.trim_end_matches([' ', '\t']).len() == bytes.len();
    (complete && end > 0 && comment(text).is_none() && !text.starts_with(['-', '?', ':']))
        .then_some(text)
}

/// A quoted scalar.
pub(crate) struct QuotedScalar<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The position after the closing quote.
    pub(crate) end: usize,
    /// The number of line ends inside.
    pub(crate) lines: usize,
}

/// Parses the scalar whose opening quote is at `start`, with lines indented by at least `indent`.
pub(crate) fn quoted(text: &str, start: usize, indent: usize) -> Option<QuotedScalar<'_>> {
    let bytes = text.as_bytes();
    let quote = bytes[start];
    let mut at = start + 1;
    let mut copied = at;
    let mut owned: Option<String> = None;
    let mut lines = 0;
    loop {
        let byte = *bytes.get(at)?;
        if byte == quote && quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') {
            let string = owned.get_or_insert_default();
            string.push_str(&text[copied..=at]);
            at += 2;
            copied = at;
        } else if byte == quote {
            let text = match owned {
                None => Cow::Borrowed(&text[copied..at]),
                Some(mut string) => {
                    string.push_str(&text[copied..at]);
                    Cow::Owned(string)
                }
            };
            return Some(QuotedScalar { text, end: at + 1, lines });
        } else if byte == b'\\' && quote == b'"' {
            let string = owned.get_or_insert_default();
            string.push_str(&text[copied..at]);
            if matches!(bytes.get(at + 1)?, b'\n' | b'\r') {
                let (next, blank) = fold(text, at + 1, indent)?;
                (0..blank).for_each(|_| string.push('\n'));
                lines += blank + 1;
                at = next;
            } else {
                let (c, length) = escape(&text[at + 1..])?;
                string.push(c);
                at += 1 + length;
            }
            copied = at;
        } else if matches!(byte, b'\n' | b'\r') {
            let string = owned.get_or_insert_default();
            // Blanks before a line end are folded away, except escaped ones.
            string.push_str(text[copied..at].trim_end_matches([' ', '\t']));
            let (next, blank) = fold(text, at, indent)?;
            match blank {
                0 => string.push(' '),
                _ => (0..blank).for_each(|_| string.push('\n')),
            }
            lines += blank + 1;
            at = next;
            copied = at;
        } else {
            at += 1;
        }
    }
}

/// Skips from the line end at `at` to the next text: returns its position, and the number of blank
/// lines.
fn fold(text: &str, at: usize, indent: usize) -> Option<(usize, usize)> {
    let mut lines = Lines { text, at, number: 0 };
    lines.next();
    let mut blank = 0;
    for line in lines {
        let content = line.text.trim_start_matches([' ', '\t']);
        if content.is_empty() {
            // YAML readers differ about a tab there.
            if line.text.contains('\t') {
                return None;
            }
            blank += 1;
            continue;
        }
        let spaces = line.text.len() - line.text.trim_start_matches(' ').len();
        let start = line.start + line.text.len() - content.len();
        return (spaces >= indent.max(1)).then_some((start, blank));
    }
    None
}

/// Parses an escape: returns its character, and its length in bytes after the backslash.
fn escape(rest: &str) -> Option<(char, usize)> {
    let hex = |from: usize, digits: usize| {
        let digits = rest.get(from..from + digits)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
        u32::from_str_radix(digits, 16).ok()
    };
    let c = match rest.bytes().next()? {
        b'0' => '\0',
        b'a' => '\x07',
        b'b' => '\x08',
        b't' | b'\t' => '\t',
        b'n' => '\n',
        b'v' => '\x0B',
        b'f' => '\x0C',
        b'r' => '\r',
        b'e' => '\x1B',
        b' ' => ' ',
        b'"' => '"',
        b'/' => '/',
        b'\\' => '\\',
        b'N' => '\u{85}',
        b'_' => '\u{A0}',
        b'L' => '\u{2028}',
        b'P' => '\u{2029}',
        b'x' => return Some((char::from_u32(hex(1, 2)?)?, 3)),
        b'U' => return Some((char::from_u32(hex(1, 8)?)?, 9)),
        b'u' => {
            let unit = hex(1, 4)?;
            // JSON writes a character beyond 16 bits as two escapes.
            if (0xD800..0xDC00).contains(&unit) && rest.get(5..7) == Some("\\u") {
                let low = hex(7, 4).filter(|low| (0xDC00..0xE000).contains(low))?;
                return Some((
                    char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))?,
                    11,
                ));
            }
            return Some((char::from_u32(unit)?, 5));
        }
        _ => return None,
    };
    Some((c, 1))
}

/// The indicators of a block scalar.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    folded: bool,
    chomp: Chomp,
    indent: Option<usize>,
    /// Their length in bytes.
    pub(crate) length: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomp {
    Clip,
    Strip,
    Keep,
}

/// Parses `|` or `>` with the rest of its line.
pub(crate) fn block_header(line: &str) -> Option<Header> {
    let mut header =
        Header { folded: line.starts_with('>'), chomp: Chomp::Clip, indent: None, length: 1 };
    for byte in line.bytes().skip(1) {
        match byte {
            b'-' if header.chomp == Chomp::Clip => header.chomp = Chomp::Strip,
            b'+' if header.chomp == Chomp::Clip => header.chomp = Chomp::Keep,
            b'1'..=b'9' if header.indent.is_none() => {
                header.indent = Some(usize::from(byte - b'0'));
            }
            _ => break,
        }
        header.length += 1;
    }
    let rest = &line[header.length..];
    let trimmed = rest.trim_start_matches([' ', '\t']);
    (trimmed.is_empty() || (trimmed.starts_with('#') && trimmed.len() < rest.len()))
        .then_some(header)
}

/// A block scalar.
pub(crate) struct BlockText<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The start of the line after it.
    pub(crate) end: usize,
    /// The end of its last line that is not blank.
    pub(crate) last: usize,
    pub(crate) lines: usize,
}

/// Parses the lines of a block scalar that begin at `start`, inside something indented by `parent`.
pub(crate) fn block(
    text: &str,
    start: usize,
    header: Header,
    parent: usize,
) -> Option<BlockText<'_>> {
    let mut indent = header.indent.map(|it| parent + it);
    let mut content: Vec<&str> = Vec::new();
    let (mut end, mut last, mut kept, mut lines) = (start, 0, 0, 0);
    let mut widest_blank = 0;
    for line in (Lines { text, at: start, number: 0 }) {
        let spaces = line.text.len() - line.text.trim_start_matches(' ').len();
        let blank = spaces == line.text.len();
        if blank && indent.is_none_or(|indent| spaces <= indent) {
            widest_blank = widest_blank.max(if indent.is_none() { spaces } else { 0 });
            // Blanks that end the text without a line end are not a line.
            if line.next > line.range().end {
                content.push("");
            }
        } else if blank || spaces > parent && indent.is_none_or(|indent| spaces >= indent) {
            let indent = *indent.get_or_insert(spaces);
            content.push(&line.text[indent..]);
            kept = content.len();
            last = line.range().end;
        } else if spaces > parent || line.text[spaces..].starts_with('\t') {
            return None;
        } else {
            break;
        }
        end = line.next;
        lines += 1;
    }
    if indent.is_some_and(|indent| widest_blank > indent) {
        return None;
    }
    let trailing = content.len() - kept;
    let mut string =
        if header.folded { join_folded(&content[..kept]) } else { content[..kept].join("\n") };
    let breaks = match header.chomp {
        Chomp::Strip => 0,
        Chomp::Clip => usize::from(kept > 0),
        Chomp::Keep => trailing + usize::from(kept > 0),
    };
    (0..breaks).for_each(|_| string.push('\n'));
    Some(BlockText { text: Cow::Owned(string), end, last, lines })
}

/// Joins lines with spaces; a blank line is a line end, and indented lines stay as they are.
fn join_folded(lines: &[&str]) -> String {
    let mut text = String::new();
    let mut blank = 0;
    let mut before: Option<bool> = None;
    for line in lines {
        if line.is_empty() {
            blank += 1;
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        let breaks = match before {
            None => blank,
            Some(before) if before || indented => blank + 1,
            Some(_) => blank,
        };
        if breaks == 0 && before.is_some() {
            text.push(' ');
        }
        (0..breaks).for_each(|_| text.push('\n'));
        text.push_str(line);
        before = Some(indented);
        blank = 0;
    }
    text
}
