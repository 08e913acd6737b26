//! Folding: letters that are written in several ways become one.

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use super::han::simplified;

/// Removes accents, wide forms and optional marks from a text. Vowel signs, as in Hindi and Thai,
/// stay: without them the words would be different ones.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.nfkd().filter(|c| !is_left_out(*c)).nfc() {
        match c {
            '’' | '\'' | 'ʼ' if folded.ends_with(is_cyrillic) => {}
            'ß' | 'ẞ' => folded.push_str("ss"),
            'æ' | 'Æ' => folded.push_str("ae"),
            'œ' | 'Œ' => folded.push_str("oe"),
            _ => folded.push(fold_letter(c)),
        }
    }
    folded
}

pub(crate) fn is_cyrillic(c: char) -> bool {
    matches!(c, '\u{400}'..='\u{52F}')
}

/// Whether a character is dropped: accents, points, tone marks of Latin letters, joiners and
/// characters that only stretch a word.
fn is_left_out(c: char) -> bool {
    let is_joiner = matches!(c, '\u{AD}' | '\u{200C}' | '\u{200D}' | '\u{640}');
    let is_nukta = c == '\u{93C}';
    let is_vowel_sign =
        matches!(c, '\u{900}'..='\u{1ABF}' | '\u{3099}' | '\u{309A}' | '\u{A800}'..='\u{ABFF}');
    is_joiner || is_nukta || (is_combining_mark(c) && !is_vowel_sign)
}

/// Returns the letter that replaces this one: in Turkish, Nordic and Polish, Arabic and Persian,
/// Hindi, Ukrainian and traditional Chinese.
fn fold_letter(c: char) -> char {
    match c {
        'ı' => 'i',
        'ł' | 'Ł' => 'l',
        'ø' | 'Ø' => 'o',
        'đ' | 'Đ' | 'ð' => 'd',
        'ٱ' => 'ا',
        'ى' | 'ی' => 'ي',
        'ة' => 'ه',
        'ک' => 'ك',
        'ँ' => 'ं',
        'ґ' => 'г',
        _ => simplified(c),
    }
}
