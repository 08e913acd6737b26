//! Characters and bytes, as Go treats them.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// Whether a character can be part of a name.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    let category = get_general_category(c);
    match category {
        Category::DecimalNumber => true,
        Category::UppercaseLetter
        | Category::LowercaseLetter
        | Category::TitlecaseLetter
        | Category::ModifierLetter
        | Category::OtherLetter => true,
        // The table is one version of Unicode older.
        Category::Unassigned => c.is_alphabetic(),
        _ => c == '_',
    }
}

/// Whether a character is printable: letters, marks, numbers, punctuation, symbols and the ASCII
/// space.
pub(crate) fn is_print(c: char) -> bool {
    // After another character, only unprintable ones are escaped.
    let text = String::from_iter(['a', c]);
    matches!(c, '"' | '\'' | '\\') || text.escape_debug().eq(text.chars())
}

/// A character of bytes that may not be UTF-8, or a single invalid byte.
pub(crate) enum Rune {
    Char(char),
    Byte(u8),
}

/// Splits bytes into characters and invalid bytes.
pub(crate) fn runes(bytes: &[u8]) -> impl Iterator<Item = Rune> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let bytes = chunk.invalid().iter().map(|it| Rune::Byte(*it));
        chunk.valid().chars().map(Rune::Char).chain(bytes)
    })
}

/// Returns the number of characters; an invalid byte counts as one.
pub(crate) fn rune_count(bytes: &[u8]) -> usize {
    runes(bytes).count()
}

/// Returns the first `count` characters.
pub(crate) fn first_runes(bytes: &[u8], count: usize) -> &[u8] {
    let length = runes(bytes).take(count).map(|it| it.width()).sum();
    &bytes[..length]
}

/// Returns text, with U+FFFD for every invalid byte.
pub(crate) fn to_lossy(bytes: &[u8]) -> String {
    runes(bytes).map(|it| it.char()).collect()
}

impl Rune {
    pub(crate) fn char(&self) -> char {
        match self {
            Self::Char(c) => *c,
            Self::Byte(_) => char::REPLACEMENT_CHARACTER,
        }
    }

    /// Returns its original bytes.
    pub(crate) fn bytes<'b>(&self, buffer: &'b mut [u8; 4]) -> &'b [u8] {
        match self {
            Self::Char(c) => c.encode_utf8(buffer).as_bytes(),
            Self::Byte(byte) => {
                buffer[0] = *byte;
                &buffer[..1]
            }
        }
    }

    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Char(c) => c.len_utf8(),
            Self::Byte(_) => 1,
        }
    }
}
