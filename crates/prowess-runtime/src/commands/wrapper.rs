//! Programs that run another command, and the words of that command.

use crate::refusal::Refusal;

use super::{Argument, refusal};

/// A program that runs another command.
struct Wrapper {
    name: &'static str,
    /// The options without a value.
    flags: &'static [&'static str],
    /// The options with a value, attached or in the next word.
    with_word: &'static [&'static str],
    /// The number of words before the command.
    words: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper { name: "env", flags: &["-i", "-"], with_word: &["-u"], words: 0 },
    Wrapper { name: "nice", flags: &[], with_word: &["-n"], words: 0 },
    Wrapper { name: "ionice", flags: &["-t"], with_word: &["-c", "-n"], words: 0 },
    Wrapper {
        name: "flock",
        flags: &["-s", "-x", "-e", "-n", "-o", "-F", "--shared", "--exclusive", "--nonblock"],
        with_word: &["-w", "-E"],
        words: 1,
    },
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
    // Without `-I`, which can replace the command itself by input.
    Wrapper {
        name: "xargs",
        flags: &["-0", "-r", "-t", "-x"],
        with_word: &["-n", "-P", "-L", "-d", "-s", "-E"],
        words: 0,
    },
    Wrapper { name: "busybox", flags: &[], with_word: &[], words: 0 },
    Wrapper { name: "toybox", flags: &[], with_word: &[], words: 0 },
];

/// Returns the words of the command that a program runs; `None` if it runs none.
pub(super) fn wrapped_command<'a>(
    name: &str,
    rest: &'a [Argument],
) -> Result<Option<&'a [Argument]>, Refusal> {
    let Some(wrapper) = WRAPPERS.iter().find(|it| it.name == name) else { return Ok(None) };
    let start = wrapper.start(rest)?;
    let (own, wrapped) = rest.split_at(start.min(rest.len()));
    if own.iter().any(|it| it.is_glob) {
        // It could expand to several words, one of them the command.
        return Err(refusal(&format!("globs cannot be options of `{name}`"), HINT));
    }
    match wrapped.first() {
        Some(first) if first.text.contains('=') => {
            Err(refusal("variable assignments are not supported", HINT))
        }
        _ => Ok(Some(wrapped)),
    }
}

const HINT: &str = "leave it out, or list the exact command in `policy.commands`";

impl Wrapper {
    /// Returns the position of the command.
    fn start(&self, rest: &[Argument]) -> Result<usize, Refusal> {
        let mut at = 0;
        while let Some(option) = rest.get(at).map(|it| &*it.text).filter(|it| it.starts_with('-')) {
            at += 1;
            if option == "--" {
                break;
            } else if self.with_word.contains(&option) {
                at += 1;
            } else if !self.flags.contains(&option)
                && !self.with_word.iter().any(|it| option.starts_with(it))
            {
                let message = format!("the option `{option}` of `{}` is not allowed", self.name);
                return Err(refusal(&message, HINT));
            }
        }
        Ok(at + self.words)
    }
}
