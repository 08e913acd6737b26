//! Programs that run another command: which words that command has.

use crate::gate::Refusal;

use super::refused;

/// A program that runs another command.
struct Wrapper {
    name: &'static str,
    /// The options that stand alone.
    flags: &'static [&'static str],
    /// The options that a word follows, or is a part of them.
    with_word: &'static [&'static str],
    /// How many words stand before the command.
    words: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper { name: "env", flags: &["-i", "-"], with_word: &["-u"], words: 0 },
    Wrapper { name: "nice", flags: &[], with_word: &["-n"], words: 0 },
    Wrapper { name: "ionice", flags: &["-t"], with_word: &["-c", "-n"], words: 0 },
    Wrapper { name: "nohup", flags: &[], with_word: &[], words: 0 },
    Wrapper { name: "setsid", flags: &["-w", "-c", "-f"], with_word: &[], words: 0 },
    Wrapper { name: "stdbuf", flags: &[], with_word: &["-i", "-o", "-e"], words: 0 },
    Wrapper { name: "time", flags: &["-p", "-v"], with_word: &[], words: 0 },
    Wrapper {
        name: "timeout",
        flags: &["--foreground", "--preserve-status", "-v"],
        with_word: &["-k", "-s"],
        words: 1,
    },
    Wrapper {
        name: "xargs",
        flags: &["-0", "-r", "-t", "-x"],
        with_word: &["-n", "-P", "-L", "-d", "-I", "-s", "-E"],
        words: 0,
    },
    Wrapper { name: "busybox", flags: &[], with_word: &[], words: 0 },
    Wrapper { name: "toybox", flags: &[], with_word: &[], words: 0 },
];

/// The words of the command that a program runs; nothing for one that runs none.
pub(super) fn wrapped<'a>(name: &str, rest: &'a [String]) -> Result<Option<&'a [String]>, Refusal> {
    let Some(wrapper) = WRAPPERS.iter().find(|it| it.name == name) else { return Ok(None) };
    let mut rest = rest;
    while let [first, behind @ ..] = rest {
        if !first.starts_with('-') {
            break;
        }
        rest = behind;
        if first == "--" {
            break;
        } else if wrapper.with_word.contains(&&**first) {
            rest = rest.get(1..).unwrap_or_default();
        } else if !wrapper.flags.contains(&&**first)
            && !wrapper.with_word.iter().any(|it| first.starts_with(it) && !first.starts_with("--"))
        {
            return Err(refused(
                &format!("the option `{first}` of `{name}` is not taken"),
                "leave it out, or list the exact command in `policy.commands`",
            ));
        }
    }
    let rest = rest.get(wrapper.words..).unwrap_or_default();
    match rest.first() {
        Some(first) if first.contains('=') => Err(refused(
            "variables are not set for a command",
            "leave them out, or list the exact command in `policy.commands`",
        )),
        _ => Ok(Some(rest)),
    }
}
