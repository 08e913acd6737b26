//! Weights of words: the rarer a word, the higher its weight.

use std::{collections::HashMap, hash::BuildHasherDefault, sync::LazyLock};

use super::words::{IdentityHasher, hash};

/// The frequencies of words among published skills: sorted stems, each with its rarity. Stems that
/// are missing occur in fewer than one in a thousand. Written by `prowess-benches fit`.
const TABLE: &str = include_str!("background.txt");
/// The assumed frequency of a stem that is not in the table.
const UNKNOWN: f32 = 0.0005;
/// The same in names and descriptions.
const UNKNOWN_DESCRIBED: f32 = 0.0001;
/// The share of published skills above which a stem is of an English word.
const ENGLISH: f32 = 0.0025;
/// The number of skills that the table counts as, next to those of a library. Without it the weight
/// of a word would shift as a small library grows.
const COUNTS_FOR: f32 = 200.0;
/// The exponent of the weight: rare words count a little less than their rarity suggests.
const POWER: f32 = 0.8;

/// Returns the weight of a stem that occurs in `count` of `documents`.
pub(crate) fn weight(stem: &str, count: u32, documents: usize) -> f32 {
    let common = SHARES.get(&hash(stem.as_bytes())).map_or(UNKNOWN, |it| it.anywhere);
    let share = (count as f32 + COUNTS_FOR * common) / (documents as f32 + COUNTS_FOR);
    (1.0 / share).ln_1p().powf(POWER)
}

/// Returns the weight of a stem in a name or a description: `two` and `mistakes` are in many
/// instructions, and in few descriptions.
pub(crate) fn weight_described(stem: &str) -> f32 {
    let common = SHARES.get(&hash(stem.as_bytes())).map_or(UNKNOWN_DESCRIBED, |it| it.described);
    (1.0 / common).ln_1p().powf(POWER)
}

/// Whether a stem is in the table. Every new word is looked up, so this has to be fast.
pub(crate) fn is_known(stem: &str) -> bool {
    SHARES.contains_key(&hash(stem.as_bytes()))
}

/// Whether a stem is of an English word: those of other languages are in few published skills.
pub(crate) fn is_english(stem: &str) -> bool {
    SHARES.get(&hash(stem.as_bytes())).is_some_and(|it| it.anywhere > ENGLISH)
}

/// The share of published skills that contain a stem, from 0 to 1.
#[derive(Debug, Clone, Copy)]
struct Shares {
    anywhere: f32,
    /// The share that contain it in name or description.
    described: f32,
}

static SHARES: LazyLock<HashMap<u64, Shares, BuildHasherDefault<IdentityHasher>>> =
    LazyLock::new(|| {
        let share = |rarity: &str| rarity.parse().map_or(UNKNOWN, |it: f32| (-it / 10.0).exp());
        let shares = TABLE.lines().filter_map(|line| {
            let mut fields = line.split(' ');
            let stem = hash(fields.next()?.as_bytes());
            let anywhere = share(fields.next()?);
            Some((stem, Shares { anywhere, described: share(fields.next()?) }))
        });
        shares.collect()
    });

/// Returns every stem of the table.
#[cfg(test)]
pub(crate) fn stems() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter_map(|it| it.split_once(' ')).map(|it| it.0)
}
