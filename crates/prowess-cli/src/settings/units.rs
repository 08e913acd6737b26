//! Durations and sizes in human notation.

use std::time::Duration;

/// The longest duration.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Parses a duration, such as `30s`, `1.5m` or `500 ms`; a number alone is seconds. It must be
/// positive and at most a year.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = parts(text)?;
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let time = Duration::try_from_secs_f64(number * seconds).ok()?;
    (Duration::ZERO < time && time <= LONGEST).then_some(time)
}

/// Parses a size in bytes, such as `1 MiB`, `64KB` or `1048576`.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = parts(text)?;
    let factor: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number * factor;
    // The largest whole number that a float represents exactly; no file is larger.
    (bytes <= (1_u64 << 53) as f64).then_some(bytes as u64)
}

/// Formats a size for [`bytes`], in the largest unit without a fraction: `10 MiB`.
pub fn size(bytes: u64) -> String {
    let units = [
        ("GiB", 1_u64 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1000),
    ];
    match units.iter().find(|it| bytes > 0 && bytes.is_multiple_of(it.1)) {
        Some((unit, factor)) => format!("{} {unit}", bytes / factor),
        None => format!("{bytes} B"),
    }
}

/// Splits a text into a number that is not negative, and its unit.
fn parts(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_or_are_seconds() {
        assert_eq!(
            ["30", "30s", "5m", "1.5 h", "500ms"]
                .map(|text| duration(text).map(|it| it.as_millis())),
            [Some(30_000), Some(30_000), Some(300_000), Some(5_400_000), Some(500)]
        );
        for text in ["", "s", "-1s", "0", "1 day", "1e9", "nan", "inf", "9999999h", "1.2.3s"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_have_a_unit_or_are_bytes() {
        assert_eq!(
            ["0", "1 MiB", "64KB", "1.5 kib", "2gb"].map(bytes),
            [Some(0), Some(1 << 20), Some(64_000), Some(1536), Some(2_000_000_000)]
        );
        for number in [0, 1, 1000, 1024, 1536, 102_400, 5_000_000, 10 << 20, 3 << 30, (1 << 53) - 1]
        {
            assert_eq!(bytes(&size(number)), Some(number), "{}", size(number));
        }
        assert_eq!([10 << 20, 102_400, 5_000_000].map(size), ["10 MiB", "100 KiB", "5 MB"]);
        for text in ["", "MiB", "-1", "1 M", "1 bit", "99999999999999999999", "9999999 GiB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
