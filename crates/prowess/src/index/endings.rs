//! Endings in languages other than English: `Rechnungen` and `Rechnung` are one word.
//!
//! The language of a word is unknown, so each script has one table, and the stem need not be a
//! word: it only has to be the same for all forms. A word that is common in English keeps its
//! English stem.
//!
//! A language that requests are understood in is here, in `stop.rs`, in `lexicon/` (one file,
//! packed by `prowess-benches lexicon`), and in `WHEN` of `check/validate/guidance.rs`. Endings are
//! written without accents, as `fold` returns them.

use std::borrow::Cow;

use super::fold::is_cyrillic;

/// Strips the endings of a folded lower-case word, by its script.
pub(crate) fn strip_endings(word: &str) -> Cow<'_, str> {
    match word.chars().next() {
        Some('a'..='z') if word.bytes().all(|it| it.is_ascii_lowercase()) => strip_latin(word),
        Some('\u{620}'..='\u{64A}') => strip_arabic(word),
        Some('\u{900}'..='\u{97F}') => Cow::Borrowed(strip_longest(word, HINDI, 2)),
        Some(c) if is_cyrillic(c) => strip_cyrillic(word),
        _ => Cow::Borrowed(word),
    }
}

/// Endings that the English stemmer handles, and better.
const ENGLISH: &[&str] = &["ed", "ing", "ings", "ly", "ment", "ments", "ness", "tion", "tions"];

/// Endings in German and Dutch, Romance languages, Polish, and Turkish.
#[rustfmt::skip]
const LATIN: &[&str] = &[
    "ungen", "ung", "ern", "en", "em", "er", "es", "in",
    "mente", "ciones", "cion", "zione", "zioni", "iendo", "ando", "endo", "ado", "ada", "ido", "ida",
    "ato", "ata", "are", "ere", "ire", "ar", "ir", "ao", "oes", "ens", "ez", "ons",
    "ami", "ach", "ych", "ymi", "ego", "emu", "ej", "ow", "om",
    "lar", "ler", "lari", "leri", "larin", "lerin", "nin", "nun", "ini", "unu", "dan", "den", "im",
    "um", "un",
];

/// Strips at most two endings, then the last vowel, or a `t` as in `schreibt`.
fn strip_latin(word: &str) -> Cow<'_, str> {
    if word.len() < 5 || strip_longest(word, ENGLISH, 0) != word {
        return Cow::Borrowed(word);
    }
    let rest = strip_longest(strip_longest(strip_plural(word), LATIN, 4), LATIN, 5);
    let is_whole = rest == word;
    let rest = match rest.as_bytes() {
        [_, _, _, _, .., last] if is_vowel(*last) => &rest[..rest.len() - 1],
        [_, _, _, _, .., before, b't'] if is_whole && !is_vowel(*before) && *before != b's' => {
            &rest[..rest.len() - 1]
        }
        _ => rest,
    };
    if rest == word && rest.len() < 7 {
        return Cow::Borrowed(word);
    }
    // Normalizes the two ways to write an umlaut, and letters that are doubled in some forms only.
    let mut bare = rest.to_owned();
    while let Some(at) =
        bare.as_bytes().windows(2).position(|it| matches!(it, b"ae" | b"oe" | b"ue"))
    {
        bare.remove(at + 1);
    }
    match bare.as_bytes() {
        [_, _, _, .., b, c] if b == c => drop(bare.pop()),
        [_, _, .., a, b, _] if a == b && is_vowel(*a) => drop(bare.remove(bare.len() - 2)),
        _ => {}
    }
    Cow::Owned(bare)
}

fn strip_plural(word: &str) -> &str {
    match word.as_bytes() {
        [.., before, b's'] if !matches!(before, b's' | b'u' | b'i') => &word[..word.len() - 1],
        _ => word,
    }
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Endings of Russian and Ukrainian nouns, adjectives and verbs, in folded form: without the breve
/// of `й` and the dots of `ї`.
#[rustfmt::skip]
const CYRILLIC: &[&str] = &[
    "а", "е", "и", "о", "у", "ы", "ь", "ю", "я", "і", "є",
    "ами", "ями", "иями", "ах", "ях", "иях", "ам", "ям", "иям", "ом", "ем", "ием", "ов", "ев", "еи",
    "ии", "ия", "ие", "ию", "ью", "ья", "иеи", "ів", "ові", "еві", "ою", "ею", "ія", "ію", "іі", "іи",
    "єю", "ією", "іями", "іях", "ям",
    "ыи", "ои", "ая", "яя", "ое", "ее", "ые", "ую", "юю", "ым", "им", "ых", "их", "ыми", "ими", "ого",
    "его", "ому", "ему", "оі",
    "ать", "ять", "ить", "еть", "уть", "ает", "яет", "ует", "ит", "ет", "ют", "ают", "яют", "ят", "ут",
    "ал", "ил", "аи", "ати", "яти", "ити", "ути", "ує", "ає", "яє", "ють", "ують", "ають", "яють",
];

/// Endings of participles.
const PARTICIPLES: &[&str] =
    &["ающ", "яющ", "ующ", "ющ", "ящ", "ащ", "ущ", "анн", "енн", "янн", "юван"];

fn strip_cyrillic(word: &str) -> Cow<'_, str> {
    let word = ["ся", "сь"].iter().find_map(|it| word.strip_suffix(it)).unwrap_or(word);
    let rest = strip_longest(strip_longest(word, CYRILLIC, 3), PARTICIPLES, 4);
    let mut letters: Vec<char> = rest.chars().collect();
    match &mut letters[..] {
        // `выставляет` and `выставить`
        [.., 'б' | 'в' | 'м' | 'п', 'л'] => letters.truncate(letters.len() - 1),
        // `ошибок` and `ошибки`
        [_, _, .., 'о' | 'е', 'к'] => drop(letters.remove(letters.len() - 2)),
        // `договір` and `договори`
        [.., before, vowel @ 'і', last] if !"аеиоу".contains([*before, *last]) => {
            *vowel = 'о';
        }
        _ => return Cow::Borrowed(rest),
    }
    Cow::Owned(letters.into_iter().collect())
}

/// Endings of Hindi nouns and verbs.
#[rustfmt::skip]
const HINDI: &[&str] = &[
    "ा", "ि", "ी", "ो", "े", "ु", "ू", "ं", "ें", "ों", "ओं", "ाओं", "ियों", "ियां", "ाएं", "ाए", "ाऊं", "ता",
    "ते", "ती", "ना", "ने", "नी", "ाता", "ाते", "ाती", "ाना", "ाने", "िए", "िये", "ेगा",
];

/// Articles and particles that are written together with an Arabic noun.
const ARABIC_BEFORE: &[&str] = &["وال", "بال", "كال", "فال", "ولل", "ال", "لل", "و"];
/// Endings of Arabic nouns and verbs.
const ARABIC: &[&str] =
    &["ها", "هم", "ان", "ات", "ون", "ين", "يه", "نا", "تي", "تك", "تها", "ه", "ي", "ا"];

/// Strips the affixes of an Arabic word, as long as three letters are left: plurals and verbs
/// change their inside as well.
fn strip_arabic(word: &str) -> Cow<'_, str> {
    let count = |word: &str| word.chars().count();
    let rest = ARABIC_BEFORE
        .iter()
        .find_map(|it: &&str| word.strip_prefix(*it).filter(|rest| count(rest) >= 3))
        .unwrap_or(word);
    let rest = strip_longest(rest, ARABIC, 3);
    let mut root: String = rest.chars().filter(|c| !"اويء".contains(*c)).collect();
    while count(&root) > 3 && root.starts_with(['م', 'ت', 'ن', 'ب', 'ل']) {
        root.remove(0);
    }
    if count(&root) < 2 { Cow::Borrowed(rest) } else { Cow::Owned(root) }
}

/// Strips the longest of some endings that leaves `least` letters.
fn strip_longest<'w>(word: &'w str, endings: &[&str], least: usize) -> &'w str {
    let last = word.as_bytes().last();
    // Few endings have the right last byte, and that is fast to check.
    let possible = endings.iter().filter(|it| it.as_bytes().last() == last);
    let rests = possible.filter_map(|it| word.strip_suffix(it));
    rests.filter(|it| it.chars().count() >= least).min_by_key(|it| it.len()).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::fold::fold;

    #[test]
    fn the_endings_are_folded() {
        let all = [ENGLISH, LATIN, CYRILLIC, PARTICIPLES, HINDI, ARABIC_BEFORE, ARABIC];
        for ending in all.into_iter().flatten() {
            let folded = fold(ending);
            assert!(folded == **ending, "`{ending}` is never found: write `{folded}`");
        }
    }
}
