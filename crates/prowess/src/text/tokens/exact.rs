//! Exact counts by the public vocabularies.

use std::sync::LazyLock;

use tiktoken::{CoreBpe, encoding};

static O200K: LazyLock<CoreBpe> = LazyLock::new(encoding::o200k_base);
static CL100K: LazyLock<CoreBpe> = LazyLock::new(encoding::cl100k_base);

/// The minimum length of a text that is counted in pieces, and about the length of each, in bytes.
const PIECE: usize = 1024;

pub(super) fn o200k(text: &str) -> usize {
    count(&O200K, text, PIECE)
}

pub(super) fn cl100k(text: &str) -> usize {
    count(&CL100K, text, PIECE)
}

/// Counts piece by piece, because at every non-ASCII blank the library scans all of the remaining
/// text.
fn count(vocabulary: &CoreBpe, mut text: &str, piece: usize) -> usize {
    let mut tokens = 0;
    while text.len() > piece {
        let (first, rest) = text.split_at(seam(text, piece));
        tokens += vocabulary.count(first);
        text = rest;
    }
    tokens + vocabulary.count(text)
}

/// Returns the last position before `near` where a text can be cut without changing its tokens, or
/// else the first after it.
///
/// That is before the last blank before a word or mark. Both vocabularies attach this one of
/// several blanks to what follows it, and line ends to what precedes them.
fn seam(text: &str, near: usize) -> usize {
    let is_seam = |at: &usize| {
        let mut chars = text[*at..].chars();
        *at > 0
            && chars.next().is_some_and(|c: char| c.is_whitespace() && c != '\n' && c != '\r')
            && chars.next().is_some_and(|it| !it.is_whitespace())
    };
    let (before, behind) = text.split_at(text.floor_char_boundary(near));
    let mut behind = behind.char_indices().map(|it| before.len() + it.0);
    let last = before.char_indices().rev().map(|it| it.0).find(is_seam);
    last.or_else(|| behind.find(is_seam)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_as_many_tokens_in_pieces() {
        let parts = [
            "a", "A", "é", "技", "\u{301}", "'s", "7", "-", "/", "─", " ", "\t", "\n", "\r",
            "\u{85}", "\u{a0}", "\u{3000}",
        ];
        let mut state = 1_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..2000 {
            let text: String = (0..next(40)).map(|_| parts[next(parts.len())]).collect();
            for vocabulary in [&O200K, &CL100K] {
                assert_eq!(count(vocabulary, &text, next(8)), vocabulary.count(&text), "{text:?}");
            }
        }
    }
}
