//! The rules about a name.

use std::{collections::HashMap, sync::LazyLock};

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::{
    finding::{
        Position, Report,
        rule::{self, Profile},
    },
    read::name::{is_reserved_on_windows, unfit_reason},
    spec::MAX_NAME,
};

pub(super) fn check(name: &str, folder: Option<&str>, at: Position, report: &mut Report) {
    let hint = "use lowercase letters and digits joined by single hyphens, such as `create-pr`";
    let normal: String = name.trim().nfkc().collect();
    let length = normal.chars().count();
    if length > MAX_NAME {
        report.note(
            &rule::NAME_TOO_LONG,
            at,
            || format!("the name has {length} characters, more than {MAX_NAME}"),
            "shorten it, and rename the folder to match",
        );
    }
    if normal.to_lowercase() != normal {
        report.note(&rule::NAME_CASE, at, || format!("the name `{normal}` is not lowercase"), hint);
    }
    if normal.starts_with('-') || normal.ends_with('-') {
        report.note(
            &rule::NAME_EDGE,
            at,
            || format!("the name `{normal}` begins or ends with a hyphen"),
            hint,
        );
    }
    if normal.contains("--") {
        report.note(
            &rule::NAME_HYPHENS,
            at,
            || format!("the name `{normal}` has two hyphens in a row"),
            hint,
        );
    }
    let marks = report.profile == Profile::Lenient;
    let odd = normal
        .chars()
        .find(|c| !c.is_alphanumeric() && *c != '-' && !(marks && is_combining_mark(*c)));
    if let Some(odd) = odd {
        report.note(
            &rule::NAME_CHARACTERS,
            at,
            || format!("the name `{normal}` has a character that is not allowed: `{odd}`"),
            hint,
        );
    }
    if let Some(folder) = folder.filter(|it| it.nfkc().collect::<String>() != normal) {
        report.note(
            &rule::NAME_FOLDER,
            at,
            || format!("the name `{normal}` does not match its folder, `{folder}`"),
            "use the same name for both: clients use either one, or require both to match",
        );
    }
    if !name.is_ascii() {
        report.note(
            &rule::NAME_NOT_ASCII,
            at,
            || {
                format!(
                    "the name `{normal}` has characters beyond ASCII, which most clients refuse"
                )
            },
            "use `a` to `z`, digits and hyphens",
        );
    }
    if let Some(word) = ["claude", "anthropic"].iter().find(|it| normal.contains(**it)) {
        report.note(
            &rule::NAME_RESERVED,
            at,
            || format!("the name contains `{word}`, which the Claude API does not accept"),
            "choose another name if you want to upload the skill",
        );
    }
    if is_reserved_on_windows(&normal) && unfit_reason(&normal).is_none() {
        report.note(
            &rule::NAME_WINDOWS,
            at,
            || format!("a folder cannot be called `{normal}` on Windows"),
            "choose another name, such as one of two words",
        );
    }
}

/// Normalizes a name by removing everything that is easily overlooked; two names with the same
/// result look alike.
pub(super) fn fold_look_alikes(name: &str) -> String {
    name.nfkc()
        .flat_map(char::to_lowercase)
        .map(|c: char| match c {
            'а' => 'a',
            'е' => 'e',
            'о' => 'o',
            'р' => 'p',
            'с' => 'c',
            'х' => 'x',
            'у' => 'y',
            'і' | 'ı' => 'i',
            '_' | ' ' => '-',
            c => c,
        })
        .collect()
}

/// Normalizes a name by replacing letters and digits with those that they resemble; two names with
/// the same result are easily confused.
pub(super) fn skeleton(name: &str) -> String {
    const PAIRS: &[(&str, &str)] = &[("rn", "m"), ("vv", "w")];
    let folded = PAIRS
        .iter()
        .fold(fold_look_alikes(name), |name, (pair, letter)| name.replace(pair, letter));
    folded
        .chars()
        .map(|c: char| match c {
            '0' => 'o',
            '1' | 'i' => 'l',
            'q' => 'g',
            c => c,
        })
        .collect()
}

/// Well-known names, which others may imitate.
const WELL_KNOWN: &[&str] = &[
    "airtable",
    "anthropic",
    "atlassian",
    "claude",
    "cloudflare",
    "confluence",
    "datadog",
    "docker",
    "figma",
    "firebase",
    "github",
    "gitlab",
    "gmail",
    "google",
    "kubernetes",
    "linear",
    "microsoft",
    "mongodb",
    "notion",
    "openai",
    "playwright",
    "postgres",
    "sentry",
    "shopify",
    "skill-creator",
    "slack",
    "stripe",
    "supabase",
    "terraform",
    "vercel",
];

/// The same, by their normalized form.
static KNOWN: LazyLock<HashMap<String, &str>> =
    LazyLock::new(|| WELL_KNOWN.iter().map(|it| (skeleton(it), *it)).collect());

/// Returns the well-known name that a name, or a part of it, resembles without being it.
pub(super) fn imitated(name: &str) -> Option<&'static str> {
    std::iter::once(name)
        .chain(name.split(['-', '_']))
        .find_map(|part| KNOWN.get(&skeleton(part)).copied().filter(|it| *it != part))
}
