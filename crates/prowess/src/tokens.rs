//! How long a text is to a model.

/// Estimates the tokens of a text: about four characters of Latin script, or one and a half of a
/// script that has many characters, make one.
pub fn estimate(text: &str) -> usize {
    let (mut narrow, mut wide) = (0_usize, 0_usize);
    for c in text.chars() {
        if u32::from(c) < 0x2E80 { narrow += 1 } else { wide += 1 }
    }
    (narrow * 3 + wide * 8).div_ceil(12)
}

#[cfg(test)]
mod tests {
    use super::estimate;

    #[test]
    fn nothing_is_nothing_and_anything_is_something() {
        assert_eq!(estimate(""), 0);
        assert_eq!(estimate("a"), 1);
        assert_eq!(estimate("four"), 1);
        assert_eq!(estimate("技能"), 2);
    }
}
