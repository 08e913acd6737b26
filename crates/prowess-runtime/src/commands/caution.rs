//! Risks of well-known programs that are not obvious from their names: running other programs,
//! writing files.
//!
//! None of this is the security boundary: a missed risk is still confined by the sandbox.

use crate::refusal::Refusal;

use super::{Argument, git_command::git_command, program::family, refusal, scripts};

/// A risk of a program, and the words that cause it.
struct Caution {
    names: &'static [&'static str],
    /// Options: `--long` also if abbreviated, `-x` also if combined, `-word` and `+` as a whole or
    /// as a prefix.
    options: &'static [&'static str],
    what: RiskScope,
}

enum RiskScope {
    /// The options run or write something.
    Options,
    /// Every use does.
    All,
    /// It runs code after these options, or from its input; only these flags may precede a script.
    Code(Flags),
    /// The first word may contain options without a dash.
    Tar,
    /// It runs programs by its own commands, unless its first word makes it safe.
    Sqlite,
    /// The first words contain a subcommand, and only these are known to be harmless.
    Git,
    /// Its first argument is a program in its own language.
    Awk,
    Sed,
    /// It runs commands among its arguments.
    Find,
    /// Its second operand is an output file.
    Uniq,
    /// It sets the clock by an operand, or by a combined option.
    Date,
}

/// Flags that may precede the script of an interpreter.
#[derive(Clone, Copy)]
struct Flags {
    /// Letters without a value, alone or combined.
    short: &'static str,
    /// Letters with a value, attached or in the next word.
    with_word: &'static str,
    long: &'static [&'static str],
}

const CAUTIONS: &[Caution] = &[
    of(&["sort"], &["-o", "--output", "--compress-program", "-T", "--temporary-directory"]),
    of(&["file"], &["-C", "--compile", "-m", "--magic-file"]),
    of(&["rg"], &["--pre", "--hostname-bin", "-z", "--search-zip"]),
    of(&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
    of(&["split"], &["--filter"]),
    of(
        &["less", "more", "most"],
        &["+", "-o", "-O", "-k", "--log-file", "--LOG-FILE", "--lesskey-file"],
    ),
    of(&["man"], &["-P", "--pager", "-H", "--html", "-l"]),
    of(&["ack", "ag", "bat", "batcat", "delta"], &["--pager"]),
    of(&["diff3", "sdiff"], &["--diff-program"]),
    of(&["install"], &["--strip-program"]),
    of(&["patch"], &["-e", "--ed"]),
    of(&["cpio"], &["--rsh-command"]),
    of(&["cmake"], &["-P", "-E", "-C"]),
    of(&["make", "gmake"], &["--eval", "-E", "-f", "--file", "--makefile"]),
    of(&["tcpdump"], &["-z", "-w"]),
    Caution {
        names: &["tar", "bsdtar"],
        what: RiskScope::Tar,
        options: &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "-I",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "-F",
            "--rmt-command",
        ],
    },
    of(&["zip"], &["-T", "--unzip-command"]),
    of(&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    of(&["scp", "sftp"], &["-o", "-S", "-F", "-D", "-J"]),
    of(&["ssh"], &["-o", "-F", "-E", "-S", "-I", "-J"]),
    of(
        &["curl"],
        &["-o", "-O", "-K", "--config", "--output", "--remote-name", "-c", "--cookie-jar", "-D"],
    ),
    of(
        &["wget"],
        &["-O", "-P", "-e", "--execute", "--use-askpass", "-o", "-a", "--output-document"],
    ),
    of(&["yq"], &["-i", "--inplace"]),
    of(&["gcc", "cc", "g++", "clang"], &["-wrapper", "-specs", "-fplugin", "-B"]),
    of(&["tree"], &["-o"]),
    of(&["xxd"], &["-r"]),
    of(&["shuf"], &["-o", "--output"]),
    Caution {
        names: &[
            "at",
            "batch",
            "capsh",
            "chroot",
            "chrt",
            "crontab",
            "dbus-launch",
            "dbus-run-session",
            "dc",
            "doas",
            "eatmydata",
            "ed",
            "emacs",
            "emacsclient",
            "entr",
            "ex",
            "expect",
            "faketime",
            "fakeroot",
            "ftp",
            "gdb",
            "ghci",
            "gnuplot",
            "gvim",
            "hyperfine",
            "ipython",
            "irb",
            "jshell",
            "lftp",
            "lldb",
            "ltrace",
            "m4",
            "mail",
            "mailx",
            "mariadb",
            "mutt",
            "mysql",
            "nano",
            "nc",
            "ncat",
            "netcat",
            "nsenter",
            "numactl",
            "nvim",
            "parallel",
            "perf",
            "pico",
            "pkexec",
            "prlimit",
            "pry",
            "psql",
            "rlwrap",
            "run-parts",
            "runuser",
            "rview",
            "rvim",
            "screen",
            "script",
            "setarch",
            "setpriv",
            "socat",
            "ssh-agent",
            "start-stop-daemon",
            "strace",
            "su",
            "sudo",
            "systemd-run",
            "taskset",
            "tmux",
            "unbuffer",
            "unshare",
            "valgrind",
            "vi",
            "view",
            "vim",
            "vimdiff",
            "watch",
            "watchexec",
            "xvfb-run",
        ],
        options: &[],
        what: RiskScope::All,
    },
    Caution {
        names: &["ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "zsh"],
        options: &["-c", "-s", "-i"],
        what: RiskScope::Code(Flags {
            short: "abefhkmnprtuvxBCEHPT",
            with_word: "oO",
            long: &["--noprofile", "--norc", "--posix", "--verbose"],
        }),
    },
    Caution {
        names: &["python", "pypy"],
        options: &["-c", "-i"],
        what: RiskScope::Code(Flags { short: "bBdEIOPqRsSuvx", with_word: "WX", long: &[] }),
    },
    Caution {
        names: &[
            "bun", "deno", "elixir", "groovy", "guile", "julia", "lua", "luajit", "node", "nodejs",
            "ocaml", "octave", "perl", "php", "racket", "raku", "Rscript", "ruby", "tclsh",
        ],
        options: &["-e", "-E", "-r", "-p", "-n", "-i", "--eval", "--print", "--require", "--run"],
        what: RiskScope::Code(Flags {
            short: "clqtTUvwW",
            with_word: "",
            long: &[
                "--check",
                "--experimental-strip-types",
                "--no-warnings",
                "--test",
                "--trace-warnings",
                "--vanilla",
            ],
        }),
    },
    Caution {
        names: &["sqlite", "litecli"],
        options: &["-init", "--init", "-cmd", "--cmd"],
        what: RiskScope::Sqlite,
    },
    Caution {
        names: &["git"],
        options: &[
            "--exec",
            "--exec-path",
            "--output",
            "--open-files-in-pager",
            "-O",
            "--upload-pack",
            "--receive-pack",
            "--ext-diff",
            "--textconv",
            "--config-env",
            "--filters",
            "--git-dir",
            "--work-tree",
            // The repository can configure the program that shows help.
            "--help",
            // Options that read nested repositories.
            "--broken",
            "--dirty",
            "--ignore-submodules",
            "--recurse-submodules",
            "--submodule",
            "-x",
        ],
        what: RiskScope::Git,
    },
    Caution {
        names: &["awk", "gawk", "mawk", "nawk", "original-awk"],
        options: &[],
        what: RiskScope::Awk,
    },
    Caution { names: &["sed", "gsed"], options: &[], what: RiskScope::Sed },
    Caution {
        names: &["find"],
        options: &["-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"],
        what: RiskScope::Find,
    },
    Caution { names: &["uniq"], options: &[], what: RiskScope::Uniq },
    Caution { names: &["date"], options: &["--set"], what: RiskScope::Date },
];

const fn of(names: &'static [&'static str], options: &'static [&'static str]) -> Caution {
    Caution { names, options, what: RiskScope::Options }
}

/// Options that may precede the subcommand.
const GIT_OPTIONS: &[&str] =
    &["--no-pager", "-P", "--no-optional-locks", "--version", "--literal-pathspecs"];

/// Python modules that accept no code as arguments: they read and print, or run files like scripts.
const MODULES: &[&str] = &[
    "ast",
    "black",
    "calendar",
    "compileall",
    "flake8",
    "json.tool",
    "mypy",
    "platform",
    "py_compile",
    "pylint",
    "pytest",
    "ruff",
    "sysconfig",
    "tabnanny",
    "tokenize",
    "unittest",
];
/// Subcommands of interpreters that run code from their arguments or input.
const RUNNING: &[&str] = &["eval", "exec", "repl", "x"];

const HINT: &str = "leave it out, or list the exact command in `policy.commands`";

/// Whether a program has known risks.
pub(super) fn is_known(name: &str) -> bool {
    find_caution(name).is_some()
}

/// Checks the words after those that the policy spells out. `is_bare` means that it spells out the
/// name only; `inner` checks a command among the arguments.
pub(super) fn check(
    name: &str,
    rest: &[Argument],
    is_bare: bool,
    mut inner: impl FnMut(&[Argument]) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let Some(caution) = find_caution(name) else { return Ok(()) };
    let bad = |what: &str| {
        refusal(&format!("`{what}` of `{name}` may run a program or write a file"), HINT)
    };
    let bundle = match (&caution.what, rest.first()) {
        (RiskScope::Tar, Some(first)) if !first.text.starts_with('-') => format!("-{}", first.text),
        _ => String::new(),
    };
    if caution.options.iter().any(|it| is_option(&bundle, it)) {
        return Err(bad(&bundle[1..]));
    }
    let end = match caution.what {
        RiskScope::Options | RiskScope::Tar => rest.iter().position(|it| it.text == "--"),
        // Words after a script belong to the script; a word after an option may belong to that.
        RiskScope::Code(_) => rest.first().filter(|it| !it.text.starts_with('-')).map(|_| 0),
        _ => None,
    };
    for argument in &rest[..end.unwrap_or(rest.len())] {
        if caution.options.iter().any(|it| is_option(&argument.text, it)) {
            return Err(bad(&argument.text));
        }
    }
    match caution.what {
        RiskScope::Options | RiskScope::Tar => Ok(()),
        RiskScope::All if !is_bare => Ok(()),
        RiskScope::All => Err(refusal(&format!("`{name}` may run or write anything"), HINT)),
        RiskScope::Code(_) | RiskScope::Sqlite if !is_bare || is_version(rest) => Ok(()),
        RiskScope::Code(flags) => check_interpreter(family(name), flags, rest, &bad),
        RiskScope::Sqlite => match rest.first().map(|it| &*it.text) {
            Some("-safe" | "--safe") => Ok(()),
            _ => Err(refusal(
                &format!(
                    "`{name}` may run a program or write a file, by commands such as `.shell`"
                ),
                "put `-safe` first, or list the exact command in `policy.commands`",
            )),
        },
        RiskScope::Git if is_bare => check_git(rest, &bad),
        RiskScope::Git => Ok(()),
        RiskScope::Awk => scripts::check_awk(rest).map_err(|it| bad(&it)),
        RiskScope::Sed => scripts::check_sed(rest).map_err(|it| bad(&it)),
        RiskScope::Find => rest
            .split(|it: &Argument| matches!(&*it.text, "-exec" | "-execdir" | "-ok" | "-okdir"))
            .skip(1)
            .try_for_each(|behind| {
                let end = behind.iter().position(|it| matches!(&*it.text, ";" | "+"));
                match &behind[..end.unwrap_or(0)] {
                    [] => Err(bad("-exec")),
                    wrapped => inner(wrapped),
                }
            }),
        RiskScope::Uniq => {
            let mut operands =
                operands(rest, |it: &Argument| matches!(&*it.text, "-f" | "-s" | "-w")).enumerate();
            match operands.find(|(at, it)| *at > 0 || it.is_glob) {
                Some((_, written)) => Err(bad(&written.text)),
                None => Ok(()),
            }
        }
        RiskScope::Date => {
            let mut operands = operands(rest, |it: &Argument| {
                matches!(&*it.text, "--date" | "--file" | "--reference")
                    || it.text.starts_with('-') && it.text.ends_with(['d', 'f', 'r'])
            })
            .filter(|it| !it.text.starts_with('+'));
            match operands.next().or_else(|| rest.iter().find(|it| sets_clock(it))) {
                Some(it) => Err(refusal(&format!("`{}` sets the clock", it.text), HINT)),
                None => Ok(()),
            }
        }
    }
}

/// Whether an argument of `date` contains the option `-s`, alone or combined with others.
fn sets_clock(argument: &Argument) -> bool {
    let cluster = argument.text.strip_prefix('-').filter(|it| !it.starts_with('-'));
    let flags = cluster.and_then(|it| it.split(['I', 'd', 'f', 'r']).next());
    flags.is_some_and(|it| it.contains('s'))
}

/// Returns the operands, without options and their values.
fn operands(
    rest: &[Argument],
    takes_word: impl Fn(&Argument) -> bool,
) -> impl Iterator<Item = &Argument> {
    let before = std::iter::once(None).chain(rest.iter().map(Some));
    rest.iter()
        .zip(before)
        .filter(move |(own, before): &(&Argument, Option<&Argument>)| {
            !own.text.starts_with('-') && !before.is_some_and(&takes_word)
        })
        .map(|it| it.0)
}

/// Checks the words before the script of an interpreter, and that there is one.
fn check_interpreter(
    name: &str,
    flags: Flags,
    rest: &[Argument],
    bad: &impl Fn(&str) -> Refusal,
) -> Result<(), Refusal> {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let text = &*word.text;
        let Some(option) = text.strip_prefix(['-', '+']) else {
            // The script must be literal.
            let is_input = ["/dev/", "/proc/"].iter().any(|it| text.starts_with(it));
            let is_order = matches!(name, "bun" | "deno") && RUNNING.contains(&text);
            return if word.is_glob || is_input || is_order { Err(bad(text)) } else { Ok(()) };
        };
        if option.is_empty() {
            return Err(bad("standard input"));
        }
        if flags.long.contains(&text) || text == "--" {
            continue;
        }
        let known = option.trim_start_matches(|it| flags.short.contains(it));
        if known.is_empty() {
            continue;
        }
        if name.starts_with("py") && known.starts_with('m') {
            let module = Some(&known[1..]).filter(|it| !it.is_empty());
            let module = module.or_else(|| words.next().map(|it| &*it.text)).unwrap_or_default();
            return if MODULES.contains(&module) {
                Ok(())
            } else {
                Err(bad(&format!("-m {module}")))
            };
        }
        if !known.starts_with(|it| flags.with_word.contains(it)) {
            return Err(bad(text));
        }
        if known.len() == 1 {
            words.next();
        }
    }
    Err(bad("standard input"))
}

/// Checks the words before the subcommand of git, and the subcommand.
fn check_git(rest: &[Argument], bad: &impl Fn(&str) -> Refusal) -> Result<(), Refusal> {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match &*word.text {
            "-C" if words.next().is_some_and(|it| !it.is_glob) => {}
            known if GIT_OPTIONS.contains(&known) => {}
            known if git_command(known).is_some() => return Ok(()),
            other => return Err(bad(other)),
        }
    }
    Ok(())
}

fn is_version(rest: &[Argument]) -> bool {
    matches!(rest, [only] if matches!(&*only.text, "--version" | "-V" | "-v" | "--help"))
}

fn find_caution(name: &str) -> Option<&'static Caution> {
    CAUTIONS.iter().find(|it| it.names.contains(&name) || it.names.contains(&family(name)))
}

/// Whether an argument is an option, also if abbreviated or combined.
pub(super) fn is_option(argument: &str, option: &str) -> bool {
    let given = argument.split('=').next().unwrap_or_default();
    match option.as_bytes() {
        [b'-', b'-', ..] => given.len() > 2 && option.starts_with(given),
        [b'-', letter] => {
            let cluster = argument.strip_prefix('-').filter(|it| !it.starts_with('-'));
            cluster.is_some_and(|it| it.as_bytes().contains(letter))
        }
        [b'-', ..] => given == option,
        _ => argument.starts_with(option),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a command whose name alone is listed; `ok` may run inside another.
    fn checked(line: &str) -> Result<(), Refusal> {
        let words: Vec<Argument> = line
            .split(' ')
            .map(|it| Argument {
                text: it.replace('_', " "),
                quoted: String::new(),
                is_glob: it.starts_with('*'),
            })
            .collect();
        check(&words[0].text, &words[1..], true, |inner| match &*inner[0].text {
            "ok" => Ok(()),
            name => Err(refusal(name, "")),
        })
    }

    #[test]
    fn what_runs_or_writes_by_an_option_is_refused() {
        for line in [
            "sort -o P x",
            "sort -oP x",
            "sort -ro P",
            "sort --output=P",
            "sort --outp P",
            "sort --comp=sh",
            "date -s now",
            "date -us now",
            "date --set=now",
            "date 01010000",
            "rg --pre sh x",
            "fd -x touch",
            "tar --checkpoint-action=exec=sh",
            "tar --to-comm=sh",
            "tar -I sh",
            "tar cIf touch x.tar f",
            "tar xFf script x.tar",
            "sqlite3 :memory: .shell_touch_P",
            "sqlite3 -init P db",
            "sqlite3 -safe -cmd .shell db",
            "sqlite3",
            "python3 -m timeit x",
            "python3 -mtimeit x",
            "python3 -Bm pdb x.py",
            "python3 -W ignore -m cProfile x.py",
            "python3 -W ignore",
            "python3 - x",
            "python3 /dev/stdin",
            "bash /proc/self/fd/0",
            "bash -eo pipefail",
            "node - x",
            "node --title x",
            "perl -Mre x",
            "deno eval x",
            "make --eval=all:;touch",
            "make -f other.mk",
            "cmake -E touch P",
            "bat --pager=sh x",
            "dc -e !ls",
            "m4 x",
            "tmux new sh",
            "psql -c \\!ls",
            "less +!sh",
            "man -P sh ls",
            "rsync -e sh",
            "tree -o P",
            "uniq in out",
            "uniq -f 1 in out",
            "uniq *",
            "awk *",
            "sed -e *",
            "sed *",
            "python3 *",
            "git -C * status",
            "vim -c !sh",
            "ed",
            "gdb -ex shell",
            "strace -o P ls",
            "sudo ls",
            "python3 -c x",
            "python3 -W ignore -c x",
            "python3.11 -c x",
            "python3",
            "perl -e x",
            "perl -ne x file",
            "node --eval x",
            "php -r x",
            "ruby -e x",
            "bash -c x",
            "bash",
            "sh -s",
            "git -c alias.z=!sh z",
            "git -c core.fsmonitor=sh status",
            "git z",
            "git config alias.z !sh",
            "git diff --output=P",
            "git log --outpu=P",
            "git grep -Osh x",
            "git grep --open-files-in-pager=sh x",
            "git --exec-path=dir status",
            "git bisect run sh",
            "git archive --remote=x --exec=sh",
            "git ls-remote --upload-pack=sh x",
            "git rebase -x sh",
            "git submodule foreach sh",
            "git diff --ext-diff",
            "git -C x -c a=b status",
            "git --git-dir=x status",
            "git log --help",
            "git describe --dirty",
            "find . -delete",
            "find . -fprint P",
            "find . -exec touch P ;",
            "find . -exec ok {} + -exec touch P ;",
            "find . -exec",
            "awk BEGIN{system(\"touch_P\")}",
            "awk {print_>_\"P\"}",
            "gawk -f x",
            "sed -i s/a/b/ x",
            "sed s/a/b/w_P x",
            "sed 1e_touch_P x",
        ] {
            assert!(checked(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_only_reads_and_prints_passes() {
        for line in [
            "sort -n -k 2 x",
            "sort -- -o",
            "date +%F",
            "date -Iseconds",
            "date -u -d yesterday +%s",
            "date --date=yesterday",
            "rg -n x",
            "tar tf x.tar",
            "tar -tvf x.tar",
            "tar tvf Index.tar",
            "sqlite3 -safe x.db select",
            "sqlite3 --version",
            "python3 -u -W ignore build.py",
            "python3 -m json.tool x.json",
            "python3 -m pytest -q",
            "bash -euo pipefail build.sh",
            "node --test x.js",
            "perl -w x.pl",
            "deno run x.ts",
            "make -j4 test",
            "less x",
            "uniq -c -f 1 x",
            "python3 build.py -c x",
            "python3 --version",
            "bash build.sh",
            "git status",
            "git --no-pager log --oneline -5",
            "git log --date=iso --stat --reverse",
            "git diff --ignore-all-space --dirstat",
            "git -C sub diff HEAD~1",
            "git show HEAD@{1}",
            "git commit -m a_message",
            "find . -name *.rs",
            "find . -exec ok {} ;",
            "awk {print_$1} x",
            "awk -F : $3_>_5_{print} x",
            "sed -n 1,5p x",
            "sed s/a/b/g x",
            "ls -la --output",
            "unknown --output=P",
        ] {
            assert_eq!(checked(line), Ok(()), "{line}");
        }
    }
}
