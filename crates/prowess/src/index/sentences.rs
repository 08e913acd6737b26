//! Descriptions without the sentences that say what a skill is not for.

/// The phrases with which authors say what a skill is not for, in lower case.
const NOT: [&str; 8] = [
    "not for ",
    "not for:",
    "not use ",
    "not trigger ",
    "not when ",
    "n't use ",
    "n't trigger ",
    "never use ",
];

/// Returns the sentences of a description, except for those that say what the skill is not for:
/// their words are those of requests that other skills should answer.
pub(crate) fn positive_sentences(description: &str) -> impl Iterator<Item = &str> {
    sentences(description).filter(|sentence| {
        let sentence = sentence.to_lowercase();
        !NOT.iter().any(|it| sentence.contains(it))
    })
}

/// Splits a text after `. `, `; `, `! `, `? ` and line ends.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let end = bytes.iter().enumerate().find_map(|(at, byte)| match byte {
            b'\n' => Some(at + 1),
            b'.' | b';' | b'!' | b'?' if bytes.get(at + 1) == Some(&b' ') => Some(at + 2),
            _ => None,
        });
        let (sentence, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!sentence.is_empty()).then_some(sentence)
    })
}
