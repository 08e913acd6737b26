//! Paths that mean the same file on every system.

use unicode_normalization::UnicodeNormalization as _;

/// The most bytes of one name.
const NAME: usize = 255;

/// Names that Windows gives to devices, whatever ending follows.
const DEVICES: &[&str] = &["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];

/// Returns why a path of a file, with `/`, cannot be used on every system.
pub(crate) fn check_path(path: &str) -> Result<(), &'static str> {
    if path.starts_with('/') {
        return Err("an absolute path");
    }
    path.split('/').try_for_each(check_name)
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if name == ".." {
        return Err("a path that leads out of its folder");
    }
    if name.is_empty() || name == "." {
        return Err("a path with an empty name");
    }
    if name.contains('\\') {
        return Err("a path with a backslash");
    }
    if name.contains(is_hidden) {
        return Err("a name with a control character or an invisible one");
    }
    if name.contains(':') {
        return Err("a name with a colon, which is a drive or a stream on Windows");
    }
    if name.contains(['<', '>', '"', '|', '?', '*']) {
        return Err("a name with a character that Windows does not allow");
    }
    if name.ends_with(['.', ' ']) {
        return Err("a name that ends with a dot or a space, which Windows drops");
    }
    if name.len() > NAME {
        return Err("a name of more than 255 bytes");
    }
    let folded = fold(name);
    if is_device(&folded) {
        return Err("a name that is a device on Windows");
    }
    // macOS takes a name with an invisible joiner for the same name without it.
    let folded = folded.replace(['\u{200c}', '\u{200d}'], "");
    if folded == ".git" || folded == "git~1" {
        return Err("a part of a git repository");
    }
    Ok(())
}

/// Whether a character has no shape of its own, or changes the order of those around it.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn is_device(folded: &str) -> bool {
    let stem = folded.split('.').next().unwrap_or(folded).trim_end_matches(' ');
    if DEVICES.contains(&stem) {
        return true;
    }
    let number = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let mut number = number.unwrap_or_default().chars();
    let is_number = |it: char| it.is_ascii_digit() || matches!(it, '¹' | '²' | '³');
    number.next().is_some_and(is_number) && number.next().is_none()
}

/// Returns a path in the form in which paths that mean the same file on some system are equal.
pub(crate) fn fold(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    // Upper case first: `ß` and `ss`, and both kinds of sigma, are then the same.
    path.nfc().collect::<String>().to_uppercase().to_lowercase().nfc().collect()
}

/// Whether a file is there only because macOS packs it: metadata of folders and files.
pub(crate) fn is_noise(path: &str) -> bool {
    path.split('/').any(|it| it == "__MACOSX" || it == ".DS_Store" || it.starts_with("._"))
}

/// Returns a path for a message: without control characters, and not long.
pub(crate) fn shown(path: &str) -> String {
    const LENGTH: usize = 200;
    let mut shown: String = path
        .chars()
        .take(LENGTH)
        .map(|it| if is_hidden(it) { char::REPLACEMENT_CHARACTER } else { it })
        .collect();
    if path.chars().nth(LENGTH).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_paths_can_be_used() {
        for path in [
            "SKILL.md",
            "a/b c/d.e",
            ".claude/x",
            "été/naïve.md",
            "com/console.txt",
            "…",
            "👩\u{200d}💻.md",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn paths_that_some_system_takes_for_something_else_cannot() {
        for path in [
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "./a",
            "a\\b",
            "c:/x",
            "a:b",
            "nul",
            "AUX.md",
            "com1.tar.gz",
            "LPT²",
            "con .txt",
            "x.",
            "x /y",
            "a\u{202e}b",
            "a\nb",
            ".git/config",
            "a/.GIT/hooks/x",
            "GIT~1/x",
            ".g\u{200c}it/config",
            ".git\u{200d}/config",
            "",
            "a/",
            "what?",
        ] {
            assert!(check_path(path).is_err(), "{path}");
        }
    }

    #[test]
    fn spellings_of_one_name_fold_to_one() {
        for (one, other) in [("README", "readme"), ("é", "e\u{301}"), ("STRASSE", "straße")] {
            assert_eq!(fold(one), fold(other));
        }
    }
}
