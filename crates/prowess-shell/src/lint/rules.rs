//! Tables of dangerous programs and paths.

use super::expand::UNKNOWN;

/// Directories directly under the root that are essential.
const SYSTEM: &[&str] = &[
    "Applications",
    "Library",
    "System",
    "Users",
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
];

/// Programs that download.
const FETCHERS: &[&str] = &[
    "GET",
    "aria2c",
    "axel",
    "curl",
    "fetch",
    "ftp",
    "http",
    "https",
    "lftp",
    "links",
    "lwp-request",
    "lynx",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "tftp",
    "w3m",
    "wget",
];

/// Programs that decode.
const DECODERS: &[&str] = &[
    "base32", "base64", "basenc", "bunzip2", "bzcat", "gpg", "gunzip", "gzip", "openssl", "unxz",
    "uudecode", "xxd", "xz", "xzcat", "zcat", "zstd", "zstdcat",
];

/// Programs that run another command, which follows their own options.
const WRAPPERS: &[&str] = &[
    "builtin", "busybox", "chrt", "command", "coproc", "doas", "env", "exec", "ionice", "nice",
    "nohup", "parallel", "setsid", "stdbuf", "strace", "sudo", "taskset", "time", "timeout",
    "toybox", "unshare", "watch", "xargs",
];

/// Programs that run another command after one argument of their own.
const WRAPPERS_WITH_WORD: &[&str] = &["chroot", "flock", "taskset", "chrt", "ssh", "nsenter"];

/// Programs that create a file system, whatever their arguments are.
const FORMATTERS: &[&str] =
    &["mke2fs", "mkdosfs", "mkfs", "mkntfs", "mkreiserfs", "mkswap", "newfs", "wipefs"];

/// Programs that write to a disk named among their arguments.
const WRITERS: &[&str] = &[
    "badblocks",
    "blkdiscard",
    "cat",
    "cfdisk",
    "cp",
    "cryptsetup",
    "ddrescue",
    "fdisk",
    "gdisk",
    "install",
    "mv",
    "parted",
    "pv",
    "pvcreate",
    "sfdisk",
    "sgdisk",
    "shred",
    "tee",
    "truncate",
];

pub(super) fn is_fetcher(name: &str) -> bool {
    FETCHERS.contains(&name)
}

/// Whether a program rewrites texts: a text in the script that is rewritten is probably hidden.
pub(super) fn is_rewriter(name: &str) -> bool {
    matches!(name, "rev" | "tr")
}

pub(super) fn is_decoder(name: &str) -> bool {
    DECODERS.contains(&name)
}

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name) || WRAPPERS_WITH_WORD.contains(&name)
}

/// Returns the number of arguments of its own that a wrapper has before the command.
pub(super) fn own_words(name: &str) -> usize {
    usize::from(WRAPPERS_WITH_WORD.contains(&name))
}

pub(super) fn is_formatter(name: &str) -> bool {
    FORMATTERS.contains(&name) || name.starts_with("mkfs.") || name.starts_with("newfs_")
}

pub(super) fn is_writer(name: &str) -> bool {
    WRITERS.contains(&name)
}

pub(super) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "ash"
            | "bash"
            | "csh"
            | "dash"
            | "fish"
            | "ksh"
            | "mksh"
            | "rbash"
            | "sh"
            | "tcsh"
            | "yash"
            | "zsh"
    )
}

/// Returns the option letters that an interpreter takes code after; `None` if it is not an
/// interpreter.
pub(super) fn code_letters(name: &str) -> Option<&'static str> {
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match family {
        "python" | "pypy" => Some("c"),
        "perl" | "ruby" | "lua" | "luajit" | "Rscript" => Some("eE"),
        "node" | "nodejs" | "bun" | "deno" => Some("ep"),
        "php" => Some("r"),
        "osascript" => Some("e"),
        _ => None,
    }
}

/// Whether a path is the root, a home, a system directory, or everything in one of them.
pub(super) fn is_vital(path: &str) -> bool {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    while names.last().is_some_and(|it| is_everything(it)) {
        names.pop();
    }
    path.starts_with('/')
        && match names[..] {
            [] => true,
            [name] => SYSTEM.contains(&name),
            ["home" | "Users", _] => true,
            _ => false,
        }
}

/// Whether a glob matches everything.
fn is_everything(name: &str) -> bool {
    let stars = name.contains(['*', '?']) && name.chars().all(|it| "*?.".contains(it));
    stars || (name.starts_with('[') && name.ends_with("]*"))
}

/// Whether a path is a disk, or memory, rather than a file.
pub(super) fn is_disk(path: &str) -> bool {
    let parts = path.split('/').filter(|it| !matches!(*it, "" | "."));
    let mut parts = parts.skip_while(|it| *it == "..");
    if !path.starts_with('/') || parts.next() != Some("dev") {
        return false;
    }
    let Some(name) = parts.next() else { return false };
    const LETTERED: &[&str] = &["hd", "sd", "vd", "xvd"];
    const NUMBERED: &[&str] =
        &["disk", "loop", "md", "mmcblk", "mtd", "nbd", "nvme", "ram", "rdisk", "sr", "zram"];
    let follows = |prefix: &&str, fits: fn(char) -> bool| {
        let behind = name.strip_prefix(prefix).map(|it| it.chars().next());
        behind.is_some_and(|it| it.is_none_or(|it| fits(it) || "*?[".contains(it) || it == UNKNOWN))
    };
    let unclear = name.starts_with(['*', '?', '[', UNKNOWN]);
    unclear
        || matches!(name, "block" | "disk" | "kmem" | "mapper" | "mem" | "port")
        || name.starts_with("dm-")
        || LETTERED.iter().any(|it| follows(it, |c| c.is_ascii_lowercase()))
        || NUMBERED.iter().any(|it| follows(it, |c| c.is_ascii_digit()))
}

/// Returns whether the options of `rm` delete whole directories, and the operands.
pub(super) fn removal<'a>(arguments: impl Iterator<Item = &'a str>) -> (bool, Vec<&'a str>) {
    let (mut recursive, mut only_operands) = (false, false);
    let mut operands = Vec::new();
    for argument in arguments {
        match argument {
            "--" if !only_operands => only_operands = true,
            long if !only_operands && long.starts_with("--") => {
                // A long option may be abbreviated if it is unambiguous.
                recursive |= long.len() > 2 && "--recursive".starts_with(long);
                recursive |= long == "--no-preserve-root";
            }
            short if !only_operands && short.len() > 1 && short.starts_with('-') => {
                recursive |= short.contains(['r', 'R']);
            }
            operand => operands.push(operand),
        }
    }
    (recursive, operands)
}
