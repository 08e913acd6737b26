//! Weights of words: the rarer a word, the higher its weight.

use std::{collections::HashMap, hash::BuildHasherDefault, sync::LazyLock};

use super::words::{AsIs, hash};

/// The frequencies of words among published skills: sorted stems, each with its rarity. Stems that
/// are missing occur in fewer than one in a thousand. Written by `prowess-benches fit`.
const TABLE: &str = include_str!("background.txt");
/// The assumed frequency of a stem that is not in the table.
const UNKNOWN: f32 = 0.0005;
/// The number of skills that the table counts as, next to those of a library. Without it the weight
/// of a word would shift as a small library grows.
const COUNTS_FOR: f32 = 200.0;
/// The exponent of the weight: rare words count a little less than their rarity suggests.
const POWER: f32 = 0.8;

/// Returns the weight of a stem that occurs in `count` of `documents`.
pub(crate) fn weight(stem: &str, count: u32, documents: usize) -> f32 {
    let common = SHARES.get(&hash(stem.as_bytes())).copied().unwrap_or(UNKNOWN);
    let share = (count as f32 + COUNTS_FOR * common) / (documents as f32 + COUNTS_FOR);
    (1.0 / share).ln_1p().powf(POWER)
}

/// Whether a stem is in the table. Every new word is looked up, so this has to be fast.
pub(crate) fn is_known(stem: &str) -> bool {
    SHARES.contains_key(&hash(stem.as_bytes()))
}

/// The share of published skills in which each stem occurs, from 0 to 1.
static SHARES: LazyLock<HashMap<u64, f32, BuildHasherDefault<AsIs>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter_map(|it| it.split_once(' '));
    let share = |rarity: &str| rarity.parse().map_or(UNKNOWN, |it: f32| (-it / 10.0).exp());
    lines.map(|(stem, rarity)| (hash(stem.as_bytes()), share(rarity))).collect()
});

/// Returns every stem of the table.
#[cfg(test)]
pub(crate) fn stems() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter_map(|it| it.split_once(' ')).map(|it| it.0)
}
