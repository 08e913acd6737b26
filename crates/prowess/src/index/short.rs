//! Abbreviations in computing: `k8s` is `kubernetes`.

/// Returns the long form of an abbreviation.
pub(crate) fn expand(word: &str) -> Option<&'static str> {
    if word.len() > LONGEST {
        return None;
    }
    LONG.binary_search_by_key(&word, |it| it.0).ok().map(|at| LONG[at].1)
}

/// The maximum length of an abbreviation, in bytes.
const LONGEST: usize = 8;

/// Abbreviations and their long forms, sorted.
pub(super) const LONG: [(&str, &str); 33] = [
    ("a11y", "accessibility"),
    ("app", "application"),
    ("apps", "application"),
    ("auth", "authentication"),
    ("config", "configuration"),
    ("configs", "configuration"),
    ("db", "database"),
    ("dbs", "database"),
    ("deps", "dependency"),
    ("dev", "development"),
    ("doc", "documentation"),
    ("docs", "documentation"),
    ("env", "environment"),
    ("envs", "environment"),
    ("gh", "github"),
    ("i18n", "internationalization"),
    ("infra", "infrastructure"),
    ("js", "javascript"),
    ("k8s", "kubernetes"),
    ("l10n", "localization"),
    ("lib", "library"),
    ("libs", "library"),
    ("param", "parameter"),
    ("params", "parameter"),
    ("perf", "performance"),
    ("postgres", "postgresql"),
    ("prod", "production"),
    ("py", "python"),
    ("repo", "repository"),
    ("repos", "repository"),
    ("spec", "specification"),
    ("specs", "specification"),
    ("ts", "typescript"),
];
