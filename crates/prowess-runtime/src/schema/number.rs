//! Exact comparison of JSON numbers and values.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Compares two numbers: as large as they are, not as large as a float can tell.
pub(super) fn compare(left: &Number, right: &Number) -> Ordering {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_float(float(right), left).reverse(),
        (None, Some(right)) => compare_float(float(left), right),
        (None, None) => compare_floats(float(left), float(right)),
    }
}

/// Whether a number has no fraction.
pub(super) fn is_whole(number: &Number) -> bool {
    whole(number).is_some() || float(number).fract() == 0.0
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn compare_float(left: f64, right: i128) -> Ordering {
    // The cast stops at the largest and smallest number, which no whole number here reaches.
    (left.trunc() as i128).cmp(&right).then_with(|| compare_floats(left.fract(), 0.0))
}

/// Compares numbers of JSON, which are never NaN.
fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

/// Whether a number is a multiple of another, as both are written in decimal.
pub(super) fn is_multiple(number: &Number, unit: &Number) -> bool {
    let ((digits, exponent), (unit, unit_exponent)) = (decimal(number), decimal(unit));
    if unit == 0 {
        return false;
    }
    let shift = exponent - unit_exponent;
    if shift >= 0 {
        // The digits of a unit are below 10^20, so this does not overflow.
        (0..shift).fold(digits % unit, |rest, _| rest * 10 % unit) == 0
    } else {
        let unit = 10u128.checked_pow(shift.unsigned_abs()).and_then(|it| it.checked_mul(unit));
        // A unit that does not fit is larger than the number.
        unit.map_or(digits == 0, |unit| digits % unit == 0)
    }
}

/// Returns the digits of a number without its sign, and its exponent.
fn decimal(number: &Number) -> (u128, i32) {
    let written = number.to_string();
    let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((&written, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = 0u128;
    for it in whole.chars().chain(fraction.chars()).filter_map(|it| it.to_digit(10)) {
        digits = digits * 10 + u128::from(it);
    }
    (digits, exponent.parse::<i32>().unwrap_or_default() - fraction.len() as i32)
}

/// Whether two values are the same. Numbers are if they are equal, however they are written.
pub(super) fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right) == Ordering::Equal,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, it)| right.get(name).is_some_and(|b| is_equal(it, b)))
        }
        _ => left == right,
    }
}

/// Writes a value such that equal ones are written alike.
pub(super) fn canonical(value: &Value, written: &mut String) {
    match value {
        Value::Number(number) if is_whole(number) && float(number).abs() < 1e30 => {
            let whole = whole(number).unwrap_or_else(|| float(number) as i128);
            written.push_str(&whole.to_string());
        }
        Value::Array(items) => {
            written.push('[');
            for it in items {
                canonical(it, written);
                written.push(',');
            }
            written.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|it| it.0);
            written.push('{');
            for (name, it) in members {
                canonical(&Value::from(&**name), written);
                canonical(it, written);
                written.push(',');
            }
            written.push('}');
        }
        other => written.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(text: &str) -> Number {
        text.parse().expect(text)
    }

    #[test]
    fn numbers_are_compared_exactly() {
        for (left, right, expected) in [
            ("1", "1.0", Ordering::Equal),
            ("-0.0", "0", Ordering::Equal),
            ("-0.0", "0.0", Ordering::Equal),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("18446744073709551615", "-1", Ordering::Greater),
            ("18446744073709551615", "1e300", Ordering::Less),
            ("-5", "-5.5", Ordering::Greater),
            ("-1e300", "-9223372036854775808", Ordering::Less),
            ("1.5", "1.25", Ordering::Greater),
        ] {
            assert_eq!(compare(&number(left), &number(right)), expected, "{left} {right}");
            assert_eq!(compare(&number(right), &number(left)), expected.reverse());
        }
    }

    #[test]
    fn multiples_are_those_of_the_written_numbers() {
        for (value, unit, expected) in [
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("19.99", "0.01", true),
            ("-4.5", "1.5", true),
            ("0", "0.3", true),
            ("1e308", "0.5", true),
            ("1e308", "0.123456789", false),
            ("12391239123", "1e-8", true),
            ("1e-300", "1e300", false),
            ("18446744073709551615", "5", true),
        ] {
            assert_eq!(is_multiple(&number(value), &number(unit)), expected, "{value} {unit}");
        }
    }

    #[test]
    fn equal_values_are_written_alike() {
        let written = |value: &Value| {
            let mut written = String::new();
            canonical(value, &mut written);
            written
        };
        for (left, right, expected) in [
            (json!({"a": 1, "b": [2.0]}), json!({"b": [2], "a": 1.0}), true),
            (json!(-0.0), json!(0), true),
            (json!(1e300), json!(1e+300), true),
            (json!(1e300), json!(2e300), false),
            (json!("1"), json!(1), false),
            (json!(true), json!(1), false),
            (json!([]), json!({}), false),
            (json!(["a,b"]), json!(["a", "b"]), false),
        ] {
            assert_eq!(is_equal(&left, &right), expected, "{left} {right}");
            assert_eq!(written(&left) == written(&right), expected, "{left} {right}");
        }
    }
}
