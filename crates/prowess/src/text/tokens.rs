//! The length of a text in tokens.

#[cfg(feature = "vocabularies")]
mod exact;

/// A tokenizer to count with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tokenizer {
    /// An estimate that is close for any model. Of 7,000 real skills that it was not fitted to,
    /// half are within 2 % of either vocabulary, and nineteen of twenty within 8 %.
    #[default]
    Estimate,
    /// The vocabulary of GPT-4o, GPT-4.1, GPT-5 and the o-models, exactly.
    #[cfg(feature = "vocabularies")]
    O200k,
    /// The vocabulary of GPT-4 and GPT-3.5, exactly.
    #[cfg(feature = "vocabularies")]
    Cl100k,
}

/// The vocabularies of models, by the prefixes of their names.
#[cfg(feature = "vocabularies")]
const MODELS: &[(&str, Tokenizer)] = &[
    ("chatgpt-4o", Tokenizer::O200k),
    ("gpt-4o", Tokenizer::O200k),
    ("gpt-4.1", Tokenizer::O200k),
    ("gpt-4.5", Tokenizer::O200k),
    ("gpt-5", Tokenizer::O200k),
    ("gpt-oss", Tokenizer::O200k),
    ("o1", Tokenizer::O200k),
    ("o3", Tokenizer::O200k),
    ("o4", Tokenizer::O200k),
    ("gpt-4", Tokenizer::Cl100k),
    ("gpt-3.5", Tokenizer::Cl100k),
    ("gpt-35", Tokenizer::Cl100k),
];
#[cfg(not(feature = "vocabularies"))]
const MODELS: &[(&str, Tokenizer)] = &[];

impl Tokenizer {
    /// All tokenizers.
    pub const ALL: &[Self] = &[
        Self::Estimate,
        #[cfg(feature = "vocabularies")]
        Self::O200k,
        #[cfg(feature = "vocabularies")]
        Self::Cl100k,
    ];

    /// Counts the tokens of a text, in nearly linear time.
    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Estimate => estimate(text).div_ceil(100).max(usize::from(!text.is_empty())),
            #[cfg(feature = "vocabularies")]
            Self::O200k => exact::o200k(text),
            #[cfg(feature = "vocabularies")]
            Self::Cl100k => exact::cl100k(text),
        }
    }

    /// Returns the relative error of a count for nineteen of twenty real skills.
    pub fn error(self) -> f64 {
        if self == Self::Estimate { 0.08 } else { 0.0 }
    }

    /// Counts hundredths of tokens. Those of whole lines add up to that of the text that they form.
    pub(crate) fn hundredths(self, text: &str) -> usize {
        match self {
            Self::Estimate => estimate(text),
            #[cfg(feature = "vocabularies")]
            Self::O200k | Self::Cl100k => self.count(text) * 100,
        }
    }

    /// Returns the vocabulary of a model, such as `gpt-4o-mini` or `openai/o3`; the estimate for
    /// those whose vocabulary is not public.
    pub fn for_model(name: &str) -> Self {
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let model = MODELS.iter().find(|it| {
            let version = name.strip_prefix(it.0);
            version.is_some_and(|it| !it.starts_with(char::is_alphanumeric))
        });
        model.map_or(Self::Estimate, |it| it.1)
    }

    /// Returns the word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            #[cfg(feature = "vocabularies")]
            Self::O200k => "o200k",
            #[cfg(feature = "vocabularies")]
            Self::Cl100k => "cl100k",
        }
    }
}

/// Estimates the tokens of a text, in hundredths, from its runs of letters, digits, marks and
/// space.
///
/// The weights were fitted to half of the real skills that
/// `prowess-benches tokens` measures, for both vocabularies at once.
fn estimate(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut hundredths, mut at, mut before) = (0, 0, (Class::Line, 0));
    while at < bytes.len() {
        let class = Class::at(text, at);
        let mut next = at;
        while next < bytes.len() && Class::at(text, next) == class {
            next += width(bytes[next]);
        }
        let (run, length) = (&text[at..next], next - at);
        hundredths += match class {
            Class::Letter => words(run.as_bytes()),
            // A space belongs to the word or mark after it, but not to a number.
            Class::Digit if before == (Class::Space, 1) => 110 + 122 * length.div_ceil(3),
            Class::Digit => 122 * length.div_ceil(3),
            Class::Mark => 85 + 22 * (length - 1),
            // Marks include the line end after them.
            Class::Line if before.0 == Class::Mark => 100 * (length / 64),
            Class::Line => 98 + 100 * (length / 64),
            Class::Space if length == 1 => 0,
            Class::Space => 43 + 100 * (length / 64),
            Class::Accented => 100 * run.chars().count(),
            Class::Script => 50 * run.chars().count(),
            Class::Wide => 93 * run.chars().count(),
            Class::Symbol => symbols(run),
        };
        (at, before) = (next, (class, length));
    }
    hundredths
}

/// A class of characters that a vocabulary treats alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Mark,
    Space,
    Line,
    /// Non-ASCII Latin letters.
    Accented,
    /// Letters of other scripts.
    Script,
    /// Chinese, Japanese, Korean and other wide characters.
    Wide,
    Symbol,
}

/// The classes of ASCII, so that most texts are looked up byte by byte.
const ASCII: [Class; 128] = {
    let mut classes = [Class::Mark; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b' ' | b'\t' => Class::Space,
            b'\n' | b'\r' => Class::Line,
            _ => Class::Mark,
        };
        byte += 1;
    }
    classes
};

impl Class {
    /// Returns the class of the character that begins at a byte.
    fn at(text: &str, byte: usize) -> Self {
        match ASCII.get(usize::from(text.as_bytes()[byte])) {
            Some(class) => *class,
            None => text[byte..].chars().next().map_or(Self::Symbol, Self::of),
        }
    }

    /// Returns the class of a non-ASCII character.
    fn of(c: char) -> Self {
        match c {
            '\u{C0}'..='\u{24F}' => Self::Accented,
            '\u{2E80}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' => {
                Self::Wide
            }
            '\u{FF00}'..='\u{FFEF}' | '\u{20000}'..='\u{3FFFF}' => Self::Wide,
            c if c.is_alphanumeric() => Self::Script,
            c if c.is_whitespace() => Self::Space,
            _ => Self::Symbol,
        }
    }
}

/// Returns the length in bytes of the character that begins with this one.
fn width(first: u8) -> usize {
    match first {
        ..=0xBF => 1,
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0.. => 4,
    }
}

/// Counts the words written together, as in `parseHTTPHeader`: a capital begins one, and so does
/// the last of several before lower-case letters.
fn words(letters: &[u8]) -> usize {
    let (mut hundredths, mut at) = (0, 0);
    while at < letters.len() {
        let start = at;
        while at < letters.len() && letters[at].is_ascii_uppercase() {
            at += 1;
        }
        let mut capitals = at - start;
        while at < letters.len() && letters[at].is_ascii_lowercase() {
            at += 1;
        }
        let mut small = at - start - capitals;
        if small > 0 && capitals > 0 {
            (small, capitals) = (small + 1, capitals - 1);
        }
        hundredths += match capitals {
            0 => 0,
            1 | 2 => 92,
            long => 142 + 42 * long.saturating_sub(6).div_ceil(3),
        };
        hundredths += match small {
            0 => 0,
            1..=4 => 95,
            5..=8 => 112,
            long => 123 + 45 * long.saturating_sub(16).div_ceil(4),
        };
    }
    hundredths
}

/// Estimates arrows, boxes and pictures; a repeated one costs little.
fn symbols(run: &str) -> usize {
    let mut before = None;
    run.chars().map(|c| if before.replace(c) == Some(c) { 22 } else { 140 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_long_as_its_words_marks_and_numbers() {
        for (text, tokens) in [
            ("", 0),
            (" ", 1),
            ("\u{0}", 1),
            ("the cat sat on the mat", 6),
            ("parseHTTPHeader", 4),
            ("id 123456789", 6),
            ("技能技能", 4),
            ("────────────────", 5),
            ("Привет", 3),
        ] {
            assert_eq!(Tokenizer::Estimate.count(text), tokens, "{text:?}");
        }
    }

    #[test]
    #[cfg(feature = "vocabularies")]
    fn the_vocabularies_count_exactly() {
        let text = "tiktoken is great! 1234567 日本語";
        assert_eq!(Tokenizer::Cl100k.count(text), 14);
        assert_eq!(Tokenizer::O200k.count(text), 12);
    }

    #[test]
    #[cfg(feature = "vocabularies")]
    fn a_model_counts_by_the_vocabulary_of_its_family() {
        for (name, word) in [
            ("gpt-4o", "o200k"),
            ("gpt-4o-mini-2024-07-18", "o200k"),
            ("openai/GPT-4.1-nano", "o200k"),
            ("gpt-5.1-codex", "o200k"),
            ("o3-mini", "o200k"),
            ("o1", "o200k"),
            ("gpt-4", "cl100k"),
            ("gpt-4-turbo", "cl100k"),
            ("gpt-3.5-turbo", "cl100k"),
            ("o10", "estimate"),
            ("gpt-40", "estimate"),
            ("claude-sonnet-4-5", "estimate"),
            ("", "estimate"),
        ] {
            assert_eq!(Tokenizer::for_model(name).as_str(), word, "{name}");
        }
    }
}
