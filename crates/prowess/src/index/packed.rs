//! Variable-length numbers: seven bits per byte, the last one below 0x80.

/// Returns the size of an encoded number in bytes.
pub(crate) fn encoded_len(value: u32) -> u32 {
    (32 - (value | 1).leading_zeros()).div_ceil(7)
}

/// Writes a number and returns the number of bytes written.
pub(crate) fn encode(bytes: &mut [u8], mut value: u32) -> u32 {
    let mut at = 0;
    while value >= 0x80 {
        bytes[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    bytes[at] = value as u8;
    at as u32 + 1
}

/// Reads a number from the front.
#[inline]
pub(crate) fn decode(bytes: &mut &[u8]) -> Option<u32> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7F).checked_shl(shift)?;
        if *byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}
