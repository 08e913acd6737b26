//! Short forms of the trade: `k8s` is `kubernetes`.

/// The long form of a short word, where it has one.
pub(crate) fn long(word: &str) -> Option<&'static str> {
    if word.len() > LONGEST {
        return None;
    }
    LONG.binary_search_by_key(&word, |it| it.0).ok().map(|at| LONG[at].1)
}

/// No short form has more bytes.
const LONGEST: usize = 8;

/// Short and long forms, sorted.
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
