//! The number literals of a template, parsed like Go.

use crate::{
    quote::{quote, unquote_unit},
    unicode::Rune,
};

/// A number literal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
    Complex(f64, f64),
    /// An integer that exceeds `int`.
    TooLarge,
}

/// Parses a character between single quotes.
pub(crate) fn character(text: &str) -> Result<Number, String> {
    let (unit, rest) = text
        .strip_prefix('\'')
        .and_then(|it| unquote_unit(it, '\''))
        .ok_or_else(|| "invalid syntax".to_owned())?;
    if rest != "'" {
        return Err(format!("malformed character constant: {text}"));
    }
    Ok(Number::Int(match unit {
        Rune::Char(c) => i64::from(u32::from(c)),
        Rune::Byte(byte) => i64::from(byte),
    }))
}

/// Parses two parts with a sign between them, the second with an `i`.
pub(crate) fn complex(text: &str) -> Result<Number, String> {
    let middle = text
        .char_indices()
        .find_map(|(at, c): (usize, char)| {
            let exponent = text[..at].ends_with(['e', 'E', 'p', 'P']);
            (matches!(c, '+' | '-') && at > 0 && !exponent).then_some(at)
        })
        .unwrap_or(0);
    let (real, imaginary) = text.split_at(middle);
    let imaginary = imaginary.strip_suffix('i').unwrap_or(imaginary);
    // Go checks the form of both parts before it parses either.
    if is_malformed_part(real) || is_malformed_part(imaginary) || imaginary.len() < 2 {
        return Err("syntax error scanning complex number".into());
    }
    Ok(Number::Complex(complex_part(real)?, complex_part(imaginary)?))
}

fn is_malformed_part(part: &str) -> bool {
    let digits = part.trim_start_matches(['+', '-']).to_ascii_lowercase();
    digits.starts_with("0b") || digits.starts_with("0o") || digits.ends_with('i')
}

fn complex_part(part: &str) -> Result<f64, String> {
    float(part).ok_or_else(|| {
        format!("strconv.ParseFloat: parsing {}: invalid syntax", quote(part.as_bytes()))
    })
}

/// Parses any other number; its form determines its type.
pub(crate) fn number(text: &str) -> Result<Number, String> {
    if let Some(imaginary) = text.strip_suffix('i').and_then(float) {
        return Ok(Number::Complex(0.0, imaginary));
    }
    let looks_like_float = text.contains(['.', 'e', 'E', 'p', 'P']);
    // With a sign before it, Go treats a hexadecimal number that contains an `e` as a float.
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let whole = integer(text);
    if looks_like_float && (!hexadecimal || text.contains(['p', 'P'])) {
        let number = whole.map(|it| it as f64).or_else(|| float(text));
        if let Some(number) = number {
            return Ok(Number::Float(number));
        }
    }
    match whole {
        Some(number) => Ok(i64::try_from(number).map_or(Number::TooLarge, Number::Int)),
        None if !looks_like_float && float(text).is_some() => {
            Err(format!("integer overflow: {}", quote(text.as_bytes())))
        }
        None => Err(format!("illegal number syntax: {}", quote(text.as_bytes()))),
    }
}

/// Parses an integer of up to 64 bits, with Go's prefixes.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.get(..2) {
        Some("0x") if lower.len() > 2 => (16, &lower[2..]),
        Some("0o") if lower.len() > 2 => (8, &lower[2..]),
        Some("0b") if lower.len() > 2 => (2, &lower[2..]),
        Some(prefix) if prefix.starts_with('0') => (8, &lower[1..]),
        _ => (10, &*lower),
    };
    if lower.is_empty() || !underscores_separate_digits(text) {
        return None;
    }
    let mut number: i128 = 0;
    for digit in digits.chars().filter(|it| *it != '_') {
        number = number * base + i128::from(digit.to_digit(base as u32)?);
        if number > i128::from(u64::MAX) {
            return None;
        }
    }
    let number = if negative { -number } else { number };
    let signed = text.starts_with(['+', '-']);
    (!signed || i64::try_from(number).is_ok()).then_some(number)
}

/// Parses a finite decimal or hexadecimal floating-point number.
fn float(text: &str) -> Option<f64> {
    if !underscores_separate_digits(text) {
        return None;
    }
    let plain = text.replace('_', "").to_ascii_lowercase();
    let (sign, magnitude) = match plain.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let number = match magnitude.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits)?,
        None if magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            magnitude.parse().ok()?
        }
        None => return None,
    };
    Some(sign * number).filter(|it: &f64| it.is_finite())
}

fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p')?;
    let mut exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    exponent = exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    let mut mantissa: u64 = 0;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            // Of the remaining digits, only whether they are zero matters.
            mantissa |= u64::from(digit != 0);
            exponent = exponent.checked_add(4)?;
        }
    }
    // Two steps, because half of the exponent may already be out of range.
    let half = exponent / 2;
    Some(mantissa as f64 * 2f64.powi(half) * 2f64.powi(exponent - half))
}

/// Whether every underscore is between digits, or between a prefix and a digit.
fn underscores_separate_digits(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let prefixed = ["0x", "0o", "0b"].iter().any(|it| text.starts_with(it));
    let hexadecimal = text.starts_with("0x");
    let digit = |c: char| c.is_ascii_digit() || hexadecimal && c.is_ascii_hexdigit();
    let mut before = if prefixed { '0' } else { '!' };
    for c in text.chars().skip(if prefixed { 2 } else { 0 }).chain(['!']) {
        if c == '_' && !digit(before) || before == '_' && !digit(c) {
            return false;
        }
        before = c;
    }
    true
}
