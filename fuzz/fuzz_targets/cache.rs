//! Whatever is read as a cache does no harm.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess::attempt::{attempt, encode_cached};

fuzz_target!(|input: (&str, &str, bool, Vec<(u16, u8)>)| {
    let (one, two, is_index, changes) = input;
    let mut bytes = encode_cached(&[one, two])[usize::from(is_index)].clone();
    for (at, byte) in changes {
        if let Some(it) = bytes.get_mut(usize::from(at)) {
            *it = byte;
        }
    }
    attempt(&bytes);
});
