//! How long a text is to a model.

/// Whose tokens are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Vocabulary {
    /// Nobody's: a rule that comes near for any model. Of 7,000 real skills that it was not made
    /// from, half come out within 2 % of either vocabulary, and nineteen of twenty within 8 %.
    #[default]
    Estimate,
    /// That of GPT-4o, GPT-4.1, GPT-5 and the o-models, exactly.
    #[cfg(feature = "vocabularies")]
    O200k,
    /// That of GPT-4 and GPT-3.5, exactly.
    #[cfg(feature = "vocabularies")]
    Cl100k,
}

/// Which models count by which vocabulary, by what their names begin with.
#[cfg(feature = "vocabularies")]
const MODELS: &[(&str, Vocabulary)] = &[
    ("chatgpt-4o", Vocabulary::O200k),
    ("gpt-4o", Vocabulary::O200k),
    ("gpt-4.1", Vocabulary::O200k),
    ("gpt-4.5", Vocabulary::O200k),
    ("gpt-5", Vocabulary::O200k),
    ("gpt-oss", Vocabulary::O200k),
    ("o1", Vocabulary::O200k),
    ("o3", Vocabulary::O200k),
    ("o4", Vocabulary::O200k),
    ("gpt-4", Vocabulary::Cl100k),
    ("gpt-3.5", Vocabulary::Cl100k),
    ("gpt-35", Vocabulary::Cl100k),
];
#[cfg(not(feature = "vocabularies"))]
const MODELS: &[(&str, Vocabulary)] = &[];

impl Vocabulary {
    /// Every vocabulary.
    pub const ALL: &[Self] = &[
        Self::Estimate,
        #[cfg(feature = "vocabularies")]
        Self::O200k,
        #[cfg(feature = "vocabularies")]
        Self::Cl100k,
    ];

    /// Counts the tokens of a text, in a time that grows with its length and no faster.
    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Estimate => estimate(text),
            #[cfg(feature = "vocabularies")]
            Self::O200k => bpe_openai::o200k_base().count(text),
            #[cfg(feature = "vocabularies")]
            Self::Cl100k => bpe_openai::cl100k_base().count(text),
        }
    }

    /// The vocabulary of a model, such as `gpt-4o-mini` or `openai/o3`; the estimate for those whose
    /// vocabulary is not public.
    pub fn for_model(name: &str) -> Self {
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let begins = |start: &str| {
            name.strip_prefix(start).is_some_and(|it| !it.starts_with(char::is_alphanumeric))
        };
        MODELS.iter().find(|it| begins(it.0)).map_or(Self::Estimate, |it| it.1)
    }

    /// The word for it, as in `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Estimate => "estimate",
            #[cfg(feature = "vocabularies")]
            Self::O200k => "o200k",
            #[cfg(feature = "vocabularies")]
            Self::Cl100k => "cl100k",
        }
    }

    /// The vocabulary that a word stands for.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == word)
    }
}

/// Estimates the tokens of a text from its runs of letters, digits, marks and space.
///
/// The weights, in hundredths of a token, were fitted to half of the real skills that
/// `prowess-benches tokens` measures, for both vocabularies at once.
fn estimate(text: &str) -> usize {
    let (mut hundredths, mut rest, mut before) = (0, text, (Class::Line, 0));
    while let Some(first) = rest.chars().next() {
        let class = Class::of(first);
        let end = rest.find(|c| Class::of(c) != class).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        hundredths += match class {
            Class::Letter => words(run.as_bytes()),
            // A space goes together with the word or mark behind it, but with no number.
            Class::Digit if before == (Class::Space, 1) => 110 + 122 * end.div_ceil(3),
            Class::Digit => 122 * end.div_ceil(3),
            Class::Mark => 85 + 22 * (end - 1),
            // Marks take the line end behind them along.
            Class::Line if before.0 == Class::Mark => 100 * (end / 64),
            Class::Line => 98 + 100 * (end / 64),
            Class::Space if end == 1 => 0,
            Class::Space => 43 + 100 * (end / 64),
            Class::Accented => 100 * run.chars().count(),
            Class::Script => 50 * run.chars().count(),
            Class::Wide => 93 * run.chars().count(),
            Class::Symbol => symbols(run),
        };
        (rest, before) = (behind, (class, end));
    }
    hundredths.div_ceil(100).max(usize::from(!text.is_empty()))
}

/// What characters have in common to a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Mark,
    Space,
    Line,
    /// Latin letters beyond ASCII.
    Accented,
    /// Letters of other scripts.
    Script,
    /// Chinese, Japanese, Korean and what is as wide.
    Wide,
    Symbol,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            ' ' | '\t' => Self::Space,
            '\n' | '\r' => Self::Line,
            '\0'..='\u{7F}' => Self::Mark,
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

/// Words written together, as in `parseHTTPHeader`: a capital begins one, and so does the last of
/// several before small letters.
fn words(mut letters: &[u8]) -> usize {
    let mut hundredths = 0;
    while !letters.is_empty() {
        let capitals = letters.iter().take_while(|it| it.is_ascii_uppercase()).count();
        let small = letters[capitals..].iter().take_while(|it| it.is_ascii_lowercase()).count();
        let initial = usize::from(small > 0 && capitals > 0);
        hundredths += match capitals - initial {
            0 => 0,
            1 | 2 => 92,
            long => 142 + 42 * long.saturating_sub(6).div_ceil(3),
        };
        hundredths += match small + initial {
            0 => 0,
            1..=4 => 95,
            5..=8 => 112,
            long => 123 + 45 * long.saturating_sub(16).div_ceil(4),
        };
        letters = &letters[capitals + small..];
    }
    hundredths
}

/// Arrows, boxes and pictures; one that is repeated costs little.
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
            assert_eq!(Vocabulary::Estimate.count(text), tokens, "{text:?}");
        }
    }

    #[test]
    #[cfg(feature = "vocabularies")]
    fn the_vocabularies_count_exactly() {
        let text = "tiktoken is great! 1234567 日本語";
        assert_eq!(Vocabulary::Cl100k.count(text), 14);
        assert_eq!(Vocabulary::O200k.count(text), 12);
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
            assert_eq!(Vocabulary::for_model(name).as_str(), word, "{name}");
            assert_eq!(Vocabulary::from_word(word).map(Vocabulary::as_str), Some(word));
        }
        assert_eq!(Vocabulary::from_word("p50k"), None);
    }
}
