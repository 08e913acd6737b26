//! Characters and bytes, as Go sees them.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// Whether a character can stand in a name.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    let category = get_general_category(c);
    match category {
        Category::DecimalNumber => true,
        Category::UppercaseLetter
        | Category::LowercaseLetter
        | Category::TitlecaseLetter
        | Category::ModifierLetter
        | Category::OtherLetter => true,
        // The table is a version of Unicode behind.
        Category::Unassigned => c.is_alphabetic(),
        _ => c == '_',
    }
}

/// Whether a character shows: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub(crate) fn is_print(c: char) -> bool {
    // Behind another character, only what does not show is escaped.
    let text = String::from_iter(['a', c]);
    matches!(c, '"' | '\'' | '\\') || text.escape_debug().eq(text.chars())
}

/// One character of bytes that may be no text, or one byte that is none.
pub(crate) enum Rune {
    Char(char),
    Byte(u8),
}

/// Takes bytes apart into characters, and bytes that belong to none.
pub(crate) fn runes(bytes: &[u8]) -> impl Iterator<Item = Rune> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let bytes = chunk.invalid().iter().map(|it| Rune::Byte(*it));
        chunk.valid().chars().map(Rune::Char).chain(bytes)
    })
}

/// How many characters there are, a byte that belongs to none counted as one.
pub(crate) fn rune_count(bytes: &[u8]) -> usize {
    runes(bytes).count()
}

/// The first `count` characters.
pub(crate) fn first_runes(bytes: &[u8], count: usize) -> &[u8] {
    let length = runes(bytes).take(count).map(|it| it.width()).sum();
    &bytes[..length]
}

/// Text, with U+FFFD for every byte that belongs to no character.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    runes(bytes).map(|it| it.char()).collect()
}

impl Rune {
    pub(crate) fn char(&self) -> char {
        match self {
            Self::Char(c) => *c,
            Self::Byte(_) => char::REPLACEMENT_CHARACTER,
        }
    }

    /// How it was written.
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
