//! The key derivation of RFC 7914, with the parameters as libsodium writes them.

use std::num::NonZeroU32;

use ring::pbkdf2::{PBKDF2_HMAC_SHA256, derive};

/// The block size; libsodium knows no other.
const R: usize = 8;
/// The words of a block.
const WORDS: usize = 32 * R;
/// The most rounds, which is 1 GiB of memory, and as much as `minisign` asks for.
const MOST_LOG_N: u32 = 20;
const MOST_P: usize = 4;

/// Derives a key; nothing if that takes too much memory or time.
pub(super) fn scrypt(
    password: &[u8],
    salt: &[u8],
    operations: u64,
    memory: u64,
    key: &mut [u8],
) -> Option<()> {
    let (log_n, p) = parameters(operations, memory)?;
    derive_key(password, salt, log_n, p, key)
}

/// Returns the logarithm of N, and p.
fn parameters(operations: u64, memory: u64) -> Option<(u32, usize)> {
    let operations = operations.max(32768);
    let log_of = |most: u64| (1..63).find(|it| 1_u64 << it > most / 2).unwrap_or(63);
    let (log_n, p) = if operations < memory / 32 {
        (log_of(operations / (R as u64 * 4)), 1)
    } else {
        let log_n = log_of(memory / (R as u64 * 128));
        let both = (operations / 4 / (1 << log_n)).min(0x3fff_ffff);
        (log_n, both / R as u64)
    };
    let p = usize::try_from(p).ok().filter(|it| (1..=MOST_P).contains(it))?;
    (log_n <= MOST_LOG_N).then_some((log_n, p))
}

fn derive_key(password: &[u8], salt: &[u8], log_n: u32, p: usize, key: &mut [u8]) -> Option<()> {
    let mut bytes = vec![0; p * WORDS * 4];
    derive(PBKDF2_HMAC_SHA256, NonZeroU32::MIN, salt, password, &mut bytes);
    let n = 1_usize << log_n;
    let mut table: Vec<u32> = Vec::new();
    table.try_reserve_exact(n.checked_mul(WORDS)?).ok()?;
    table.resize(n * WORDS, 0);
    for block in bytes.chunks_exact_mut(WORDS * 4) {
        let words =
            block.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]));
        let mut words: Vec<u32> = words.collect();
        mix(&mut words, &mut table, n);
        for (bytes, word) in block.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
    derive(PBKDF2_HMAC_SHA256, NonZeroU32::MIN, &bytes, password, key);
    Some(())
}

/// `scryptROMix`.
fn mix(block: &mut [u32], table: &mut [u32], n: usize) {
    let mut spare = vec![0; WORDS];
    for row in table.chunks_exact_mut(WORDS) {
        row.copy_from_slice(block);
        mix_block(block, &mut spare);
    }
    for _ in 0..n {
        let row = block[WORDS - 16] as usize & (n - 1);
        let row = &table[row * WORDS..][..WORDS];
        block.iter_mut().zip(row).for_each(|(word, other)| *word ^= other);
        mix_block(block, &mut spare);
    }
}

/// `scryptBlockMix`.
fn mix_block(block: &mut [u32], spare: &mut [u32]) {
    let mut x = [0; 16];
    x.copy_from_slice(&block[WORDS - 16..]);
    for (at, part) in block.chunks_exact(16).enumerate() {
        x.iter_mut().zip(part).for_each(|(word, other)| *word ^= other);
        salsa(&mut x);
        // Even parts first, then odd ones.
        let place = (at / 2 + at % 2 * R) * 16;
        spare[place..place + 16].copy_from_slice(&x);
    }
    block.copy_from_slice(spare);
}

/// Salsa20/8.
fn salsa(words: &mut [u32; 16]) {
    /// The columns and the rows of a double round.
    const QUARTERS: [[usize; 4]; 8] = [
        [0, 4, 8, 12],
        [5, 9, 13, 1],
        [10, 14, 2, 6],
        [15, 3, 7, 11],
        [0, 1, 2, 3],
        [5, 6, 7, 4],
        [10, 11, 8, 9],
        [15, 12, 13, 14],
    ];
    let mut x = *words;
    for _ in 0..4 {
        for [a, b, c, d] in QUARTERS {
            x[b] ^= x[a].wrapping_add(x[d]).rotate_left(7);
            x[c] ^= x[b].wrapping_add(x[a]).rotate_left(9);
            x[d] ^= x[c].wrapping_add(x[b]).rotate_left(13);
            x[a] ^= x[d].wrapping_add(x[c]).rotate_left(18);
        }
    }
    words.iter_mut().zip(x).for_each(|(word, other)| *word = word.wrapping_add(other));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third vector of RFC 7914, section 12.
    #[test]
    fn a_vector_of_the_rfc_is_reproduced() {
        let mut key = [0; 64];
        derive_key(b"pleaseletmein", b"SodiumChloride", 14, 1, &mut key).unwrap();
        let hex: String = key.iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(
            hex,
            "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2\
             d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
        );
    }

    #[test]
    fn the_parameters_of_minisign_are_one_gibibyte() {
        assert_eq!(parameters(33_554_432, 1 << 30), Some((20, 1)));
        assert_eq!(parameters(u64::MAX, u64::MAX), None);
        assert_eq!(parameters(0, 0), None);
    }
}
