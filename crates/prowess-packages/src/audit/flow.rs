//! Follows secrets through scripts: from the line that reads them to the one that sends them.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use regex::bytes::Regex;

use super::{pattern::secret_file, scan::regex};

static SOURCE: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        "(?:",
        secret_file!(),
        r#"|(?:\bopen|\bread\w{0,12}|\bcat|path|\bcp)\b[\s("'`]{1,4}[^\n]{0,60}?(?:^|["'/\s])\.env(?:["'\s)]|$)|json\.dumps\((?:dict\()?os\.environ|json\.stringify\(process\.env\)|dict\(os\.environ\)\s{0,2}$|^\s{0,8}(?:env|printenv)\s{0,2}>|=\s{0,2}["']?\$\((?:env|printenv)\))"#
    ))
});
/// Uses of these names that reveal nothing.
static HARMLESS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:id_\w{2,8}\.pub|\bchmod\b|\bssh(?:-\w{1,10})?\s|\bscp\s{1,3}-i|\s-i\s{1,3}\S{0,60}\.ssh|--netrc|\bexists\b|is_file|gitignore|^\s{0,40}(?:#|//|\*)|\bnot found|\brm\s|\bexclude|\bignore|\bmkdir|\becho\b[^\n>]{0,200}$|\bprint\()",
    )
});
static SINK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:\bcurl\b[^\n]{0,300}(?:\s-(?:d|f|t)\b|--data|--form|--upload|@|-x\s{0,2}(?:post|put)|\$)|\bwget\b[^\n]{0,200}(?:--post|\$)|\b(?:nc|ncat|socat|netcat)\s{1,3}[\w$.-]{1,80}\s|\b(?:scp|rsync|sftp|ftp)\s|\b(?:requests|httpx|session|client|axios|http|https|got|request)\.(?:post|put|patch|request|get)\s{0,2}\(|\burlopen\s{0,2}\(|urllib\.request\.request\s{0,2}\(|\bfetch\s{0,2}\(|\baxios\s{0,2}\(|\.sendall\s{0,2}\(|\bsendmail\s{0,2}\(|\b(?:r|req|request|conn|client|sock\w{0,6})\.(?:write|end|send)\s{0,2}\(|invoke-(?:webrequest|restmethod)|\bdig\s[^\n]{0,80}\$|\bnslookup\s[^\n]{0,80}\$)",
    )
});
/// A key that is sent to log in.
static LOGIN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:authorization|\bheaders?\b|bearer|\bauth\b|api[_-]?key|_token\b|\btoken\b|x-api|client_secret|--cert|--key|-u\s)",
    )
});
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?:^\s{0,60}(?:const |let |var |export |local |my |\$)?(\w{1,60})(?:\[[^\]\n]{1,60}\])?(?:\s{0,3},\s{0,3}(\w{1,60}))?\s{0,3}(?::[^=\n]{1,40})?\+?=[^=]|\bas\s{1,3}(\w{1,60})\s{0,2}:|\bfor\s{1,3}(\w{1,60})(?:\s{0,2},\s{0,2}(\w{1,60}))?\s{1,3}(?:in|of)\b|>>?\s{0,3}["']?([\w./~${}-]{4,120})|\b(?:cp|mv|copy\w{0,6}|install)\b[^\n]{0,200}?[\s,]["']?([\w./~${}-]{4,120})["']?\)?\s{0,3}$|\btar\s{1,3}-?\w{0,5}f\s{1,3}([\w./~${}-]{4,120})|\bzip\s{1,3}(?:-\w{1,4}\s{1,3})?([\w./~${}-]{4,120})|^\s{0,8}while\s{1,3}read\s{1,3}(?:-r\s{1,3})?(\w{1,60}))"#,
    )
});
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^\s{0,60}(?:async\s{1,3})?(?:export\s{1,3})?(?:def|function|func|sub)\s{1,3}(\w{1,60})|^\s{0,8}(?:const|let)\s{1,3}(\w{1,60})\s{0,2}=\s{0,2}(?:async\s{0,2})?\(",
    )
});

/// The names and paths that hold a secret, in one skill.
#[derive(Default)]
pub(super) struct Secrets {
    paths: HashSet<Vec<u8>>,
}

/// A name that holds a secret.
#[derive(Clone, Copy)]
struct Taint {
    /// Whether it is known in one function only.
    is_local: bool,
    /// Whether it is part of what is sent to log in.
    is_login: bool,
}

/// A line that sends a secret.
pub(super) struct Leak {
    pub(super) start: usize,
    /// Whether it may be a key of the service that it is sent to.
    pub(super) is_login: bool,
    /// The name that holds it.
    pub(super) name: String,
}

/// The most names of one script that are followed.
const MOST: usize = 200;
/// The longest line that is looked at.
const LONGEST: usize = 2000;

impl Secrets {
    /// Follows the secrets through a script, and learns which files they are written to.
    pub(super) fn follow(&mut self, script: &str) -> Vec<Leak> {
        let mut leaks = Vec::new();
        let bytes = script.as_bytes();
        if self.paths.is_empty() && !SOURCE.is_match(bytes) {
            return leaks;
        }
        let mut names: HashMap<Vec<u8>, Taint> = HashMap::new();
        let mut function: Option<Vec<u8>> = None;
        // How many lines and open brackets of a call that sends are left.
        let (mut open, mut lines) = (0_isize, 0_usize);
        let mut at = 0;
        for line in bytes.split_inclusive(|it| *it == b'\n') {
            let start = at;
            at += line.len();
            let line = &line[..line.len().min(LONGEST)];
            if let Some(found) = FUNCTION.captures(line) {
                function = found.iter().skip(1).flatten().next().map(|it| it.as_bytes().to_vec());
                names.retain(|_, it| !it.is_local);
            }
            let is_source = SOURCE.is_match(line) && !HARMLESS.is_match(line);
            let name = self.named(line, &names);
            let is_sink = SINK.is_match(line);
            let brackets = |it: &[u8]| -> isize {
                it.iter()
                    .map(|byte| match byte {
                        b'(' | b'{' => 1,
                        b')' | b'}' => -1,
                        _ => 0,
                    })
                    .sum()
            };
            let is_within = lines > 0;
            if is_sink {
                (open, lines) = (brackets(line), 12);
            } else if lines > 0 {
                (open, lines) = (open + brackets(line), lines - 1);
            }
            if open <= 0 {
                lines = 0;
            }
            if (is_sink || is_within) && (is_source || name.is_some()) && !HARMLESS.is_match(line) {
                let is_login = LOGIN.is_match(line) || name.as_ref().is_some_and(|it| it.1);
                let name = name.clone().unwrap_or_default().0;
                let name = String::from_utf8_lossy(&name).into_owned();
                leaks.push(Leak { start, is_login, name });
                if leaks.len() == 10 {
                    break;
                }
            }
            if (is_source || name.is_some()) && names.len() < MOST {
                let is_login =
                    name.as_ref().is_some_and(|it| it.1) || (!is_source && LOGIN.is_match(line));
                let is_local = line.first().is_some_and(u8::is_ascii_whitespace);
                if line.trim_ascii_start().starts_with(b"return") {
                    names.extend(
                        function.clone().map(|it| (it, Taint { is_local: false, is_login })),
                    );
                }
                for captures in ASSIGNED.captures_iter(line).take(4) {
                    for group in captures.iter().skip(1).flatten() {
                        let name = group.as_bytes();
                        if name.contains(&b'/') || name.contains(&b'.') {
                            if name != b"/dev/null" && self.paths.len() < MOST {
                                self.paths.insert(name.to_vec());
                            }
                        } else if !matches!(
                            name,
                            b"self" | b"this" | b"os" | b"i" | b"url" | b"path" | b"home"
                        ) {
                            names.insert(name.to_vec(), Taint { is_local, is_login });
                        }
                    }
                }
            }
        }
        leaks
    }

    /// Returns the name in a line that holds a secret, and whether it is used to log in.
    fn named(&self, line: &[u8], names: &HashMap<Vec<u8>, Taint>) -> Option<(Vec<u8>, bool)> {
        let is_word = |it: &u8| it.is_ascii_alphanumeric() || *it == b'_';
        let words = line.split(|it| !is_word(it));
        let word = words.filter_map(|it| Some((it, names.get(it)?.is_login))).min_by_key(|it| it.1);
        let is_path = |it: &u8| !(is_word(it) || b"./~${}-".contains(it));
        let path = || line.split(is_path).find(|it| self.paths.contains(*it)).map(|it| (it, false));
        word.or_else(path).map(|it| (it.0.to_vec(), it.1))
    }
}
