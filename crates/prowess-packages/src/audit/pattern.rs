//! Patterns: a row for each form of an attack.

use prowess::{Rule, Severity};

/// A form of an attack that can be found by its words.
pub(super) struct Pattern {
    pub(super) rule: &'static Rule,
    /// The parts of a skill that it is searched in.
    pub(super) scope: Scope,
    /// Words in lower case, one of which is in every match: the text is searched for these first.
    pub(super) anchors: &'static [&'static str],
    /// The expression, without regard to case, over at most [`WINDOW`] bytes on either side of an
    /// anchor. No part of it is repeated without a limit over line ends.
    pub(super) regex: &'static str,
    /// The message: what the matched text does.
    pub(super) message: &'static str,
}

/// The parts that a pattern is searched in, and how severe a match is there; `None` is not reported.
#[derive(Clone, Copy)]
pub(super) enum Scope {
    /// Sentences to an agent: the severity in prose; in code it is one less.
    Words(Severity),
    /// Code: the severity in a script, and in a document, which may only be about it.
    Code(Severity, Option<Severity>),
    /// The description in the frontmatter.
    Description(Severity),
}

pub(super) const WINDOW: usize = 600;

pub(super) const E: Severity = Severity::Error;
pub(super) const W: Severity = Severity::Warning;
pub(super) const I: Severity = Severity::Info;

/// Declares the table of a family.
macro_rules! patterns {
    ($($rule:ident $scope:expr, [$($anchor:literal),+], $regex:expr, $message:literal;)*) => {
        pub(super) const PATTERNS: &[crate::audit::pattern::Pattern] = &[$(
            crate::audit::pattern::Pattern {
                rule: &crate::audit::rules::$rule,
                scope: $scope,
                anchors: &[$($anchor),+],
                regex: $regex,
                message: $message,
            }
        ),*];
    };
}
pub(super) use patterns;

/// Files with secrets of other programs, as an expression.
macro_rules! secret_file {
    () => {
        r#"(?:\.ssh/(?:id_(?:rsa|ed25519|ecdsa|dsa)\b|\*)|\.ssh["'/\s,)]{1,8}id_(?:rsa|ed25519|ecdsa|dsa)|~/\.ssh\b|home\(\)\s*/\s*["']\.ssh|\.aws/(?:credentials|config)|~/\.aws\b|\.netrc\b|\.git-credentials|\.gnupg\b|\.kube/config|~/\.kube\b|\.docker/config\.json|\.config/gh/hosts|\.config/gcloud|\.npmrc\b|\.pypirc\b|\.claude/\.credentials|\.claude/history|\.codex/auth|\.(?:clawdbot|openclaw|moltbot)/(?:\.env|credentials|openclaw\.json)|/etc/shadow\b|login data\b|cookies\.sqlite|key4\.db|logins\.json|wallet\.dat|\.ethereum/keystore|\.config/solana/id\.json|\.(?:bash|zsh)_history|\.password-store)"#
    };
}
pub(super) use secret_file;
