//! How telling a word is: the rarer, the more.

use std::{collections::HashMap, hash::BuildHasherDefault, sync::LazyLock};

use super::words::{AsIs, hash};

/// How common words are among published skills: stems in their order, each with how rare it is.
/// Whatever is not here stands in fewer than one in a thousand. Written by `prowess-benches fit`.
const TABLE: &str = include_str!("background.txt");
/// How common a stem is taken to be that is not in the table.
const UNKNOWN: f32 = 0.0005;
/// How many skills the table counts for beside those of a library. Without it a word would mean
/// more or less as a small library grows.
const COUNTS_FOR: f32 = 200.0;
/// Rare words count a little less than their rarity says.
const POWER: f32 = 0.8;

/// How telling a stem is that stands in `count` of `documents`.
pub(crate) fn weight(stem: &str, count: u32, documents: usize) -> f32 {
    let common = SHARES.get(&hash(stem.as_bytes())).copied().unwrap_or(UNKNOWN);
    let share = (count as f32 + COUNTS_FOR * common) / (documents as f32 + COUNTS_FOR);
    (1.0 / share).ln_1p().powf(POWER)
}

/// Whether a stem is in the table. Every new word is looked up, so that this has to be fast.
pub(crate) fn is_known(stem: &str) -> bool {
    SHARES.contains_key(&hash(stem.as_bytes()))
}

/// In how many published skills of one each stem stands.
static SHARES: LazyLock<HashMap<u64, f32, BuildHasherDefault<AsIs>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter_map(|it| it.split_once(' '));
    let share = |rarity: &str| rarity.parse().map_or(UNKNOWN, |it: f32| (-it / 10.0).exp());
    lines.map(|(stem, rarity)| (hash(stem.as_bytes()), share(rarity))).collect()
});

/// Every stem of the table.
#[cfg(test)]
pub(crate) fn stems() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter_map(|it| it.split_once(' ')).map(|it| it.0)
}
