//! How long a text is to a model.

/// Whose tokens are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Vocabulary {
    /// Nobody's: a rule that comes near for any model.
    #[default]
    Estimate,
}

impl Vocabulary {
    /// Counts the tokens of a text.
    pub fn count(self, text: &str) -> usize {
        let (mut narrow, mut wide) = (0_usize, 0_usize);
        for c in text.chars() {
            if u32::from(c) < 0x2E80 { narrow += 1 } else { wide += 1 }
        }
        (narrow * 3 + wide * 8).div_ceil(12)
    }
}

/// Estimates the tokens of a text.
pub fn estimate(text: &str) -> usize {
    Vocabulary::Estimate.count(text)
}
