//! Patterns with `*` and `?`.

/// Whether a text matches a pattern, in which `*` matches anything and `?` one character.
pub fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut read) = (0, 0);
    // Where to resume if the text after the last star does not match.
    let mut again: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                again = Some((at, read));
            }
            Some(c) if *c == '?' || *c == text[read] => {
                at += 1;
                read += 1;
            }
            _ => match again {
                Some((star, from)) => {
                    at = star;
                    read = from + 1;
                    again = Some((star, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|it| *it == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_stand_for_anything_and_the_rest_for_itself() {
        for (pattern, text) in [("*", ""), ("a*c", "abbc"), ("?", "ä"), ("**/x", "a/b/x")] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "A"), ("a*b", "abc"), ("?", ""), ("a", "aa")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
