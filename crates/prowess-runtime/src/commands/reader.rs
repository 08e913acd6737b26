//! Programs that only read: they are given the roots so that nothing in them can be written.

use super::{
    Argument, caution,
    git_command::{GitEffect, git_command},
};

/// Programs that look and print, or run others which are looked at by themselves. One that is missing
/// here can write; one that is wrong here cannot.
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

/// Whether a command has no need to write: its name first, then its words.
pub(super) fn only_reads(words: &[String]) -> bool {
    let Some((name, rest)) = words.split_first() else { return true };
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_reader = match name {
        "git" => told(rest)
            .is_none_or(|it| git_command(it).is_some_and(|it| it.effect != GitEffect::Changes)),
        name => READERS.contains(&name),
    };
    // A policy may spell out an option that writes.
    let words: Vec<Argument> = rest.iter().map(|it| Argument::plain(it)).collect();
    is_reader && caution::check(name, &words, true, |_| Ok(())).is_ok()
}

/// The word that tells git what to do.
fn told(words: &[String]) -> Option<&str> {
    let mut words = words.iter();
    loop {
        match &**words.next()? {
            "-C" | "-c" => drop(words.next()),
            option if option.starts_with('-') => {}
            told => return Some(told),
        }
    }
}
