//! Light stemming: `deploys`, `deploying` and `deployed` are `deploy`.

use std::borrow::Cow;

/// Strips the commonest endings of English from a lower-case word. Other scripts are left
/// unchanged.
pub(crate) fn stem(word: &str) -> Cow<'_, str> {
    if word.len() <= 3 || !word.is_ascii() || word.bytes().any(|it| it.is_ascii_digit()) {
        return Cow::Borrowed(word);
    }
    let mut stem = strip_plural(word);
    for ending in ["ingly", "edly", "ing", "ed", "ly"] {
        let Some(base) = strip_ending(&stem, ending) else { continue };
        if base.len() >= 3 && base.bytes().any(is_vowel) {
            stem = Cow::Owned(undouble(base).to_owned());
            break;
        }
    }
    let endings = if NOUNS.contains(&&*stem) { &[][..] } else { &ENDINGS };
    for (ending, instead) in endings {
        if let Some(base) = strip_ending(&stem, ending).filter(|it| it.len() >= 4) {
            stem = Cow::Owned(format!("{base}{instead}"));
            break;
        }
    }
    if stem.len() > 4 && stem.ends_with('e') {
        stem = Cow::Owned(stem[..stem.len() - 1].to_owned());
    }
    if stem.len() > 3 && stem.ends_with('y') {
        stem = Cow::Owned(format!("{}i", &stem[..stem.len() - 1]));
    }
    stem
}

/// Endings that derive one word from another.
const ENDINGS: [(&str, &str); 12] = [
    ("ization", "iz"),
    ("isation", "iz"),
    ("ational", "at"),
    ("ation", "at"),
    ("ator", "at"),
    ("izer", "iz"),
    ("iser", "iz"),
    ("ise", "iz"),
    ("ment", ""),
    ("ness", ""),
    ("tion", "t"),
    ("er", ""),
];

/// Words that only look like agent nouns: a poster posts nothing.
const NOUNS: [&str; 14] = [
    "banner",
    "center",
    "container",
    "corner",
    "counter",
    "customer",
    "docker",
    "flower",
    "folder",
    "footer",
    "header",
    "poster",
    "quarter",
    "shower",
];

fn strip_plural(word: &str) -> Cow<'_, str> {
    let keep = ["ss", "us", "is", "ous"];
    if let Some(base) = strip_ending(word, "ies").filter(|it| it.len() >= 2) {
        return Cow::Owned(format!("{base}y"));
    }
    for ending in ["sses", "shes", "ches", "xes", "zes"] {
        if strip_ending(word, ending).is_some() {
            return Cow::Borrowed(&word[..word.len() - 2]);
        }
    }
    if word.ends_with('s') && !keep.iter().any(|it| word.ends_with(it)) {
        return Cow::Borrowed(&word[..word.len() - 1]);
    }
    Cow::Borrowed(word)
}

/// Strips an ending. Most words have another last letter, which is checked first.
fn strip_ending<'w>(word: &'w str, ending: &str) -> Option<&'w str> {
    (word.as_bytes().last() == ending.as_bytes().last()).then(|| word.strip_suffix(ending))?
}

/// Undoes doubled letters: `runn` as in `running` is `run`, but `install` stays.
fn undouble(base: &str) -> &str {
    let bytes = base.as_bytes();
    let [.., a, b] = bytes else { return base };
    let doubled = a == b && !is_vowel(*a) && !matches!(a, b'l' | b's' | b'z') && base.len() > 3;
    if doubled { &base[..base.len() - 1] } else { base }
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}
