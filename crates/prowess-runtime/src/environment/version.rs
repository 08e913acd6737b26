//! Compares versions with requirements, by their numbers.

/// Whether a version satisfies a requirement of Python (`>=3.10,<4`, `~=1.4`, `==3.12.*`) or of
/// Node (`>=18`, `^20 || >=22`); `None` if the syntax is unknown. An incomplete version such as
/// `3.11` matches if any version with that prefix does.
pub(super) fn satisfies(version: &str, requirement: &str) -> Option<bool> {
    let version = numbers(version)?;
    let mut is_any = false;
    for choice in requirement.split("||") {
        is_any |= satisfies_all(&version, choice)?;
    }
    Some(is_any)
}

fn satisfies_all(version: &[u64], choice: &str) -> Option<bool> {
    let choice = choice.trim();
    if choice.is_empty() || choice == "*" {
        return Some(true);
    }
    // There may be a space between an operator and its number.
    let mut joined = choice.to_owned();
    for sign in ["=", "<", ">", "~", "^"] {
        while joined.contains(&format!("{sign} ")) {
            joined = joined.replace(&format!("{sign} "), sign);
        }
    }
    let mut all = joined.split([',', ' ']).map(str::trim).filter(|it| !it.is_empty());
    all.try_fold(true, |so_far, it| Some(so_far & satisfies_one(version, it)?))
}

fn satisfies_one(version: &[u64], comparison: &str) -> Option<bool> {
    let end = comparison.find(|c: char| !"=<>!~^".contains(c)).unwrap_or(comparison.len());
    let (sign, text) = comparison.split_at(end);
    let text = text.trim_end_matches(".*").trim_end_matches(".x");
    let wanted = numbers(text)?;
    let known = version.len().min(wanted.len());
    let (begins, wanted_begins) = (&version[..known], &wanted[..known]);
    // Missing parts of the version may be anything; missing parts of the requirement are 0.
    let is_open = begins == wanted_begins && version.len() < wanted.len();
    let least = is_open || version >= &wanted[..];
    Some(match sign {
        ">=" => least,
        "<=" => begins <= wanted_begins,
        ">" => {
            is_open
                || (version > &wanted[..] && begins != wanted_begins)
                || version.len() > wanted.len()
                    && begins == wanted_begins
                    && version[known..].iter().any(|it| *it > 0)
        }
        "<" => begins < wanted_begins,
        "==" | "===" | "=" | "" => begins == wanted_begins,
        "!=" => begins != wanted_begins || is_open,
        // The last written number may increase.
        "~=" => least && begins_alike(version, &wanted[..wanted.len().saturating_sub(1)]),
        "~" => least && begins_alike(version, &wanted[..wanted.len().min(2)]),
        "^" => {
            let fixed = wanted.iter().position(|it| *it > 0).map_or(1, |it| it + 1);
            least && begins_alike(version, &wanted[..fixed.min(wanted.len())])
        }
        _ => return None,
    })
}

fn begins_alike(version: &[u64], wanted: &[u64]) -> bool {
    version.iter().zip(wanted).all(|(one, other)| one == other)
}

/// Returns the leading numbers of a version; suffixes (`rc1`, `-beta`) are ignored.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let version = version.trim().trim_start_matches('v');
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let parts = version[..end].trim_end_matches('.').split('.');
    parts.map(|it| it.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let cases = [
            ("3.11", ">=3.10", Some(true)),
            ("3.9", ">=3.10", Some(false)),
            ("3.11", ">=3.11.4", Some(true)),
            ("3.11", ">=3.10,<3.11", Some(false)),
            ("3.11", "<4", Some(true)),
            ("3.11", "==3.11.*", Some(true)),
            ("3.11", "==3.12.*", Some(false)),
            ("3.11", "~=3.10", Some(true)),
            ("1.4.5", "~=1.4.2", Some(true)),
            ("1.5", "~=1.4.2", Some(false)),
            ("1.0", "!=1.0", Some(false)),
            ("2.1", ">2", Some(true)),
            ("2", ">2", Some(false)),
            ("20.1.0", ">=18", Some(true)),
            ("20.1.0", "^18 || ^20", Some(true)),
            ("20.1.0", "^18 || >= 22", Some(false)),
            ("20.1.0", ">= 18 < 21", Some(true)),
            ("0.3.5", "^0.3.1", Some(true)),
            ("0.4.0", "^0.3.1", Some(false)),
            ("20.1.0", "20.x", Some(true)),
            ("20.1.0", "*", Some(true)),
            ("1.0rc1", ">=1.0", Some(true)),
            ("1.0", "latest", None),
            ("1.0", ">=$x", None),
            ("x", ">=1", None),
        ];
        for (version, requirement, expected) in cases {
            assert_eq!(satisfies(version, requirement), expected, "{version} {requirement}");
        }
    }
}
