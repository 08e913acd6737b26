//! The order that JavaScript's `localeCompare` gives paths of printable ASCII characters.

/// The characters from the first to the last, each letter in lower case.
const ORDER: &[u8] = b" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz";

/// The key of a path: paths are in the order of their keys.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathKey {
    /// The places of the characters, where upper case does not count.
    letters: Vec<u8>,
    /// Which are in upper case: it comes behind lower case where the letters are the same.
    upper: Vec<bool>,
    /// Characters that the order is not known of, behind all others.
    path: String,
}

/// Returns the key of a path.
pub(super) fn path_key(path: &str) -> PathKey {
    let place = |it: u8| ORDER.iter().position(|c| *c == it.to_ascii_lowercase());
    let last = u8::MAX;
    PathKey {
        letters: path
            .bytes()
            .map(|it| place(it).and_then(|it| u8::try_from(it).ok()).unwrap_or(last))
            .collect(),
        upper: path.bytes().map(|it| it.is_ascii_uppercase()).collect(),
        path: path.to_owned(),
    }
}

/// Whether the order of a path is known.
pub(super) fn is_known(path: &str) -> bool {
    path.bytes().all(|it| ORDER.contains(&it.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_before_case_and_behind_signs() {
        let mut paths = [
            "b",
            "a",
            "A",
            "aB",
            "Ab",
            "a_b",
            "a-b",
            "a/b",
            "a.b",
            "a1",
            "_",
            "0",
            "SKILL.md",
            "scripts/a.py",
            "LICENSE.txt",
        ];
        paths.sort_by_key(|it| path_key(it));
        assert_eq!(
            paths,
            [
                "_",
                "0",
                "a",
                "A",
                "a_b",
                "a-b",
                "a.b",
                "a/b",
                "a1",
                "aB",
                "Ab",
                "b",
                "LICENSE.txt",
                "scripts/a.py",
                "SKILL.md"
            ]
        );
        assert!(is_known("a b/C.d") && !is_known("ä") && !is_known("a\tb"));
    }
}
