//! Valid names and texts for a skill.

use prowess::spec::MAX_NAME;

/// Names that no folder can have on Windows.
const RESERVED: &[&str] = &["con", "prn", "aux", "nul"];

/// Makes a valid skill name: `SciCalculator` becomes `sci-calculator`.
pub(super) fn valid_name(name: &str) -> Option<String> {
    let mut words = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|it| letters[it]);
        let behind = letters.get(at + 1);
        // A word begins with a capital after a small letter, and with the last of several capitals.
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_alphanumeric()
                        && behind.is_some_and(char::is_ascii_lowercase)
            });
        let word = letter.is_ascii_alphanumeric();
        if (begins || !word) && !words.is_empty() && !words.ends_with('-') {
            words.push('-');
        }
        if word {
            words.push(letter.to_ascii_lowercase());
        }
    }
    words.truncate(MAX_NAME);
    let words = words.trim_end_matches('-');
    let port = words.strip_prefix("com").or_else(|| words.strip_prefix("lpt"));
    match words {
        "" => None,
        it if RESERVED.contains(&it) || port.is_some_and(|it| it.len() == 1) => {
            Some(format!("{it}-plugin"))
        }
        it => Some(it.to_owned()),
    }
}

/// A text on one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Puts a text on one line, cut to this many characters.
pub(super) fn shorten(text: &str, most: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= most {
        return line;
    }
    line.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words_with_hyphens() {
        let names = [
            "SciCalculator",
            "VCPTavern",
            "tavily_search 2",
            "URLFetch",
            "FluxGen3D",
            "a--b",
            "../../etc",
        ];
        let valid = names.map(|it| valid_name(it).unwrap_or_default());
        let wanted = [
            "sci-calculator",
            "vcp-tavern",
            "tavily-search-2",
            "url-fetch",
            "flux-gen3d",
            "a-b",
            "etc",
        ];
        assert_eq!(valid, wanted);
    }

    #[test]
    fn a_name_without_letters_is_none_and_a_taken_one_is_changed() {
        assert_eq!([valid_name("计算器"), valid_name(""), valid_name("///")], [None, None, None]);
        assert_eq!(
            [valid_name("CON"), valid_name("Com1")],
            [Some("con-plugin".to_owned()), Some("com1-plugin".to_owned())]
        );
        assert_eq!(valid_name(&"a".repeat(300)).map(|it| it.len()), Some(64));
    }
}
