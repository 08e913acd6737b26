//! Programs that only read: they get read-only access to the roots.

use super::{
    Argument, caution,
    git_command::{GitEffect, git_command},
};

/// Programs that only read and print, or run others which are checked by themselves. One that is
/// missing here gets write access; one that is wrong here does not.
const READERS: &[&str] = &[
    "ack",
    "ag",
    "arch",
    "awk",
    "b2sum",
    "base32",
    "base64",
    "basename",
    "bat",
    "cat",
    "cksum",
    "cloc",
    "cmp",
    "column",
    "comm",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "env",
    "expand",
    "false",
    "fd",
    "fdfind",
    "fgrep",
    "file",
    "find",
    "fmt",
    "fold",
    "free",
    "grep",
    "gsed",
    "head",
    "hexdump",
    "hostname",
    "id",
    "join",
    "jq",
    "ls",
    "md5sum",
    "nice",
    "nl",
    "nproc",
    "od",
    "paste",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "sed",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "sleep",
    "sort",
    "stat",
    "strings",
    "tac",
    "tail",
    "time",
    "timeout",
    "tokei",
    "tr",
    "tree",
    "true",
    "tsort",
    "uname",
    "unexpand",
    "uniq",
    "uptime",
    "wc",
    "whoami",
    "xargs",
    "xxd",
    "yes",
    "zcat",
    "zgrep",
];

/// Whether a command does not need write access: its name first, then its words.
pub(super) fn only_reads(words: &[String]) -> bool {
    let Some((name, rest)) = words.split_first() else { return true };
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_reader = match name {
        "git" => git_subcommand(rest)
            .is_none_or(|it| git_command(it).is_some_and(|it| it.effect != GitEffect::Changes)),
        name => READERS.contains(&name),
    };
    // A policy may spell out an option that writes.
    let words: Vec<Argument> = rest.iter().map(|it| Argument::literal(it)).collect();
    is_reader && caution::check(name, &words, true, |_| Ok(())).is_ok()
}

/// Returns the subcommand of git.
fn git_subcommand(words: &[String]) -> Option<&str> {
    let mut words = words.iter();
    loop {
        match &**words.next()? {
            "-C" | "-c" => drop(words.next()),
            option if option.starts_with('-') => {}
            subcommand => return Some(subcommand),
        }
    }
}
