//! Text as a model reads it: decoded, without invisible characters and look-alikes.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

/// A text, and the same text as it is searched.
pub(super) struct Text<'a> {
    /// The text as it is.
    pub(super) original: Cow<'a, str>,
    /// The text as it is searched.
    pub(super) folded: String,
    /// Positions in the folded text from which on the distance to the original is another one.
    marks: Vec<(usize, usize)>,
    /// Whether something was there that only hides words: entities, look-alikes, invisible characters.
    pub(super) is_disguised: bool,
}

/// The disguises to undo in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Folding {
    /// Invisible characters, look-alikes and HTML entities.
    Markup,
    /// Invisible characters, look-alikes and line continuations.
    Code,
}

/// Decodes bytes as UTF-8 or UTF-16; `None` if they are not text.
pub(super) fn decode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|it| unit([it[0], it[1]]));
        char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => Some(Cow::Owned(utf16(rest, u16::from_le_bytes))),
        [0xFE, 0xFF, rest @ ..] => Some(Cow::Owned(utf16(rest, u16::from_be_bytes))),
        [0xEF, 0xBB, 0xBF, rest @ ..] => Some(String::from_utf8_lossy(rest)),
        _ => {
            let start = &bytes[..bytes.len().min(8192)];
            let zeros = start.iter().filter(|it| **it == 0).count();
            // Latin text in UTF-16 without a mark: every other byte is zero.
            if zeros * 5 > start.len() * 2 && start.len() > 3 {
                let unit = if start[0] == 0 { u16::from_be_bytes } else { u16::from_le_bytes };
                let text: String = utf16(bytes, unit);
                let printable = text.chars().take(512).filter(|it| is_printable(*it)).count();
                return (printable * 10 > text.chars().take(512).count() * 9)
                    .then_some(Cow::Owned(text));
            }
            if zeros > 0 {
                return None;
            }
            Some(String::from_utf8_lossy(bytes))
        }
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\n' | '\r' | '\t')
        || (c > '\u{A0}' && c != char::REPLACEMENT_CHARACTER)
}

impl<'a> Text<'a> {
    pub(super) fn new(original: Cow<'a, str>, folding: Folding) -> Self {
        let marker = if folding == Folding::Markup { "&" } else { "\\\n" };
        if original.is_ascii() && !original.contains(marker) {
            let folded = original.clone().into_owned();
            return Self { original, folded, marks: Vec::new(), is_disguised: false };
        }
        let mut folded = String::with_capacity(original.len());
        let mut marks = vec![(0, 0)];
        let mut is_disguised = false;
        let mut at = 0;
        while let Some(c) = original[at..].chars().next() {
            let rest = &original[at..];
            let mut is_joined = false;
            let (length, new): (usize, Replacement) = match c {
                '&' if folding == Folding::Markup => match entity(rest) {
                    Some((length, c)) => {
                        is_disguised |= c.is_ascii_alphanumeric();
                        (length, fold(c))
                    }
                    None => (1, Replacement::Char('&')),
                },
                '\\' if folding == Folding::Code && rest.starts_with("\\\n") => {
                    is_joined = true;
                    (2, Replacement::Nothing)
                }
                c if c.is_ascii() => (1, Replacement::Char(c)),
                c => (c.len_utf8(), fold(c)),
            };
            match new {
                Replacement::Char(new) => {
                    folded.push(new);
                    is_disguised |= new.is_ascii_alphabetic() && new != c && !c.is_ascii();
                }
                Replacement::Nothing => is_disguised |= !is_joined,
            }
            at += length;
            let last = marks.last().copied().unwrap_or_default();
            if folded.len() as isize - at as isize != last.0 as isize - last.1 as isize {
                marks.push((folded.len(), at));
            }
        }
        Self { original, folded, marks, is_disguised }
    }

    /// Returns the position in the original text.
    pub(super) fn original_at(&self, folded: usize) -> usize {
        let index = self.marks.partition_point(|it| it.0 <= folded);
        let (there, here) = match index.checked_sub(1) {
            Some(index) => self.marks[index],
            None => (0, 0),
        };
        let mut at = (here + (folded - there)).min(self.original.len());
        while !self.original.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

enum Replacement {
    Char(char),
    Nothing,
}

/// Returns the character as which a character is read.
fn fold(c: char) -> Replacement {
    Replacement::Char(match c {
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' => {
            return Replacement::Nothing;
        }
        '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' => {
            return Replacement::Nothing;
        }
        '\u{FE00}'..='\u{FE0F}' | '\u{E0000}'..='\u{E01EF}' => return Replacement::Nothing,
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        '\u{2028}' | '\u{2029}' | '\u{85}' => '\n',
        '‘' | '’' | 'ʼ' | '′' => '\'',
        '“' | '”' | '″' => '"',
        '‐'..='―' | '−' => '-',
        c => match LOOK_ALIKES.binary_search_by_key(&c, |it| it.0) {
            Ok(index) => LOOK_ALIKES[index].1,
            // Letters in other forms: full width, bold, script.
            Err(_) if matches!(c, '\u{2100}'..='\u{214F}' | '\u{FF01}'..='\u{FF5E}' | '\u{1D400}'..='\u{1D7FF}' | '\u{2460}'..='\u{24FF}' | '\u{1F130}'..='\u{1F189}') =>
            {
                let mut plain = std::iter::once(c).nfkc();
                plain.next().filter(char::is_ascii).unwrap_or(c)
            }
            Err(_) => c,
        },
    })
}

/// Letters that look like Latin ones, by code.
pub(super) const LOOK_ALIKES: &[(char, char)] = &[
    ('ı', 'i'),
    ('ɑ', 'a'),
    ('ɡ', 'g'),
    ('ɩ', 'i'),
    ('Α', 'A'),
    ('Β', 'B'),
    ('Ε', 'E'),
    ('Ζ', 'Z'),
    ('Η', 'H'),
    ('Ι', 'I'),
    ('Κ', 'K'),
    ('Μ', 'M'),
    ('Ν', 'N'),
    ('Ο', 'O'),
    ('Ρ', 'P'),
    ('Τ', 'T'),
    ('Υ', 'Y'),
    ('Χ', 'X'),
    ('α', 'a'),
    ('ι', 'i'),
    ('ν', 'v'),
    ('ο', 'o'),
    ('ρ', 'p'),
    ('Ѕ', 'S'),
    ('І', 'I'),
    ('Ј', 'J'),
    ('А', 'A'),
    ('В', 'B'),
    ('Е', 'E'),
    ('К', 'K'),
    ('М', 'M'),
    ('Н', 'H'),
    ('О', 'O'),
    ('Р', 'P'),
    ('С', 'C'),
    ('Т', 'T'),
    ('Х', 'X'),
    ('а', 'a'),
    ('е', 'e'),
    ('о', 'o'),
    ('р', 'p'),
    ('с', 'c'),
    ('у', 'y'),
    ('х', 'x'),
    ('ѕ', 's'),
    ('і', 'i'),
    ('ј', 'j'),
    ('ԁ', 'd'),
    ('ԛ', 'q'),
    ('ԝ', 'w'),
    ('հ', 'h'),
    ('օ', 'o'),
];

/// Reads an entity at the start of a text.
fn entity(text: &str) -> Option<(usize, char)> {
    let end = text.bytes().take(12).position(|it| it == b';')?;
    let name = &text[1..end];
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
        None => match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => ' ',
            "sol" => '/',
            "period" => '.',
            "colon" => ':',
            _ => return None,
        },
    };
    Some((end + 1, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_sorted_so_that_they_can_be_searched() {
        assert!(LOOK_ALIKES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn a_position_in_the_folded_text_leads_back() {
        let text = Text::new("é \u{200B}іgn&#111;re &amp; x".into(), Folding::Markup);
        assert_eq!(text.folded, "é ignore & x");
        let at = text.folded.find('x').unwrap_or_default();
        assert_eq!(&text.original[text.original_at(at)..], "x");
        assert!(text.is_disguised);
    }

    #[test]
    fn utf_16_is_read_with_and_without_a_mark() {
        let bytes = |mark: &str| -> Vec<u8> {
            format!("{mark}read me").encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        assert_eq!(decode(&bytes("\u{FEFF}")).as_deref(), Some("read me"));
        assert_eq!(decode(&bytes("")).as_deref(), Some("read me"));
        assert_eq!(decode(b"a\0b"), None);
    }
}
