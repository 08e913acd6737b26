//! Floating-point numbers, formatted like Go's `strconv`.

use std::num::FpCategory;

/// The maximum number of digits of an `f64` before or after its point.
const EXACT: usize = 1100;

/// Formats a number for one of the verbs `e E f g G b x X`, with a sign only if it is negative.
///
/// Without a precision, with as many digits as distinguish it from any other number.
pub(crate) fn write(number: f64, verb: char, precision: Option<usize>) -> String {
    match number.classify() {
        FpCategory::Nan => return "NaN".to_owned(),
        FpCategory::Infinite => return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        _ => {}
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let number = number.abs();
    let text = match verb.to_ascii_lowercase() {
        'e' => exponential(number, precision),
        'f' => fixed(number, precision),
        'b' => binary(number),
        'x' => hexadecimal(number, precision),
        _ => general(number, precision),
    };
    let text = if verb.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text };
    format!("{sign}{text}")
}

fn exponential(number: f64, precision: Option<usize>) -> String {
    let text = match precision {
        Some(precision) => format!("{number:.*e}", precision.min(EXACT)),
        None => format!("{number:e}"),
    };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let zeros = "0".repeat(precision.map_or(0, |it| it.saturating_sub(EXACT)));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |it| ('-', it));
    format!("{digits}{zeros}e{sign}{exponent:0>2}")
}

fn fixed(number: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else { return format!("{number}") };
    let zeros = "0".repeat(precision.saturating_sub(EXACT));
    format!("{number:.*}{zeros}", precision.min(EXACT))
}

fn general(number: f64, precision: Option<usize>) -> String {
    let precision = precision.map(|it| it.max(1));
    let text = exponential(number, precision.map(|it| (it - 1).min(EXACT)));
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.replace('.', "");
    let count = digits.trim_end_matches('0').len();
    let exponent: i64 = if number == 0.0 { -1 } else { exponent.parse().unwrap_or(0) };
    let before_point = exponent + 1;
    let most = match precision {
        None => 6,
        Some(precision) if precision > count && count as i64 >= before_point => count,
        Some(precision) => precision,
    };
    if exponent < -4 || exponent >= most as i64 {
        exponential(number, Some(count.saturating_sub(1)))
    } else {
        fixed(number, Some((count as i64 - before_point).max(0) as usize))
    }
}

/// Returns its mantissa, and the exponent of two of the last bit.
fn parts(number: f64) -> (u64, i64) {
    let bits = number.to_bits();
    let (mantissa, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i64);
    if exponent == 0 { (mantissa, -1074) } else { (mantissa | 1 << 52, exponent - 1075) }
}

fn binary(number: f64) -> String {
    let (mantissa, exponent) = parts(number);
    format!("{mantissa}p{exponent:+}")
}

fn hexadecimal(number: f64, precision: Option<usize>) -> String {
    /// The bit position of the digit before the point.
    const ONE: u32 = 60;
    let (mut mantissa, mut exponent) = parts(number);
    exponent = if mantissa == 0 { 0 } else { exponent + 52 };
    if mantissa != 0 {
        let shift = mantissa.leading_zeros() - (63 - ONE);
        exponent += 8 - i64::from(shift);
        mantissa <<= shift;
    }
    if let Some(precision) = precision.filter(|it| *it < 15) {
        let cut = ONE - 4 * precision as u32;
        let (kept, lost) = (mantissa >> cut, mantissa & ((1 << cut) - 1));
        let up = lost > 1 << (cut - 1) || lost == 1 << (cut - 1) && kept & 1 == 1;
        mantissa = (kept + u64::from(up)) << cut;
        if mantissa >> ONE > 1 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let digits = format!("{:015x}", mantissa & ((1 << ONE) - 1));
    let digits = match precision {
        None => digits.trim_end_matches('0').to_owned(),
        Some(precision) if precision <= 15 => digits[..precision].to_owned(),
        Some(precision) => digits + &"0".repeat(precision - 15),
    };
    let point = if digits.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{}{point}{digits}p{sign}{:02}", mantissa >> ONE, exponent.abs())
}
