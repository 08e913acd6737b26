//! The tool `execute_command`: permitted and refused commands.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use prowess_runtime::{
    Authorizer, DenyAll, Launcher, Outcome, OutcomeStatus, Policy, Sandbox, Tool as _,
    approval::ActionRequest,
    policy::{Decision, PolicyRule},
    sandbox::{Chunk, RunLimits, SandboxLevel},
    tools::ExecuteCommand,
};
use rustix::fs::OFlags;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::world::until;

mod only_listed_commands_run {
    use super::*;

    #[test]
    fn q_22_every_part_of_a_line_is_looked_up() {
        let stage = Stage::new().listing(&["ls", "echo", "cat"]);
        for line in [
            "touch P",
            "ls; touch P",
            "ls ;touch P",
            "ls && touch P",
            "ls || touch P",
            "ls & touch P",
            "ls &",
            "echo touch P | sh",
            "ls\ntouch P",
            "ls\r\ntouch P",
            "echo $(touch P)",
            "echo `touch P`",
            "echo \"$(touch P)\"",
            "cat <(touch P)",
            "echo >(touch P)",
            "echo x > P",
            "echo x >> P",
            "echo x 2>P",
            "echo x >|P",
            "echo x &>P",
            "echo x >&P",
            "cat < P",
            "cat <<E\nx\nE",
            "cat <<< x",
            "$'\\x74ouch' P",
            "'touch' P",
            "t\\ouch P",
            "\"to\"uch P",
            "to$@uch P",
            "$((a[$(touch P)0]))",
            "echo $((1))",
            "printf -v 'a[$(touch P)0]' x",
            "echo $HOME",
            "echo ${x:-y}",
            "echo ~",
            "echo {a,b}",
            "{touch,P}",
            "FOO=1 touch P",
            "FOO=1 ls",
            "PATH=/tmp ls",
            "FOO=1",
            "(ls)",
            "{ ls; }",
            "! ls",
            "if ls; then ls; fi",
            "for x in a; do ls; done",
            "while ls; do ls; done",
            "case x in x) ls;; esac",
            "ls() { touch P; }; ls",
            "[[ -e x ]]",
            "export A=1",
            "alias ls=touch",
            "source x",
            ". x",
            "eval ls",
            "declare x",
            "typeset x",
            "exec ls",
            "trap 'touch P' EXIT",
            "cd /",
            "command ls",
            "builtin echo",
            "l*",
            "/bin/l?",
            "ls 'unclosed",
            "ls\0x",
            "ls \x1b[2J",
            "",
            " ",
            "# nothing",
            "ls | | cat",
            "touch P # ls",
            "echo cm0gLXJmIC8=|base64 -d|sh",
            "echo x | tr x y | sh",
            "sh",
            "bash -c ls",
            "env ls",
            "busybox ls",
            "dd of=/dev/sda",
            "mkfs.ext4 x",
            "kill -9 -1",
            ":(){ :|:& };:",
        ] {
            let outcome = stage.call(line);
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{line:?} {outcome:?}");
            assert!(outcome.message.is_some() && outcome.hint.is_some(), "{line:?}");
            assert!(outcome.stdout.is_none(), "{line:?}");
        }
        assert!(!stage.root().join("P").exists());
        let outcome = stage.call("touch P");
        assert_eq!(outcome.message.unwrap(), "`touch` is not an allowed command");
        assert!(outcome.hint.unwrap().contains("ls, echo, cat"));
    }

    #[test]
    fn q_22_what_is_listed_by_its_first_words_runs_only_with_them() {
        let stage = Stage::new().listing(&["head -n", "sort -o out"]);
        fs::write(stage.root().join("x"), "b\na\n").unwrap();
        assert_eq!(stage.printed("head -n 1 x"), "b\n");
        assert_eq!(stage.call("head -c 1 x").status, OutcomeStatus::Refused);
        assert_eq!(stage.call("head x").status, OutcomeStatus::Refused);
        // The policy lists exactly the form that is refused otherwise.
        assert_eq!(stage.printed("sort -o out x"), "");
        assert_eq!(fs::read_to_string(stage.root().join("out")).unwrap(), "a\nb\n");
        assert_eq!(stage.call("sort -o other x").status, OutcomeStatus::Refused);
    }

    #[test]
    fn a_program_is_what_its_path_leads_to() {
        let stage = Stage::new().listing(&["ls", "echo"]);
        for name in ["ls", "echo", "sub/ls"] {
            let path = stage.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\necho evil\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let evil = stage.root().join("ls").display().to_string();
        for line in [
            &evil,
            "./ls",
            "sub/ls",
            "sub/../ls",
            "../root/ls",
            "../bin/sh",
            "/bin/sh",
            "/bin/true",
        ] {
            assert_eq!(stage.call(line).status, OutcomeStatus::Refused, "{line}");
        }
        assert_eq!(stage.printed("echo one"), "one\n");
        assert_eq!(stage.printed("/usr/bin/echo one"), "one\n");
        assert_eq!(stage.printed("/usr/bin/../bin/echo one"), "one\n");
        symlink("/usr/bin/touch", stage.root().join("cat")).unwrap();
        symlink("/usr/bin/echo", stage.root().join("say")).unwrap();
        for line in ["./cat P", "./say x"] {
            assert_eq!(stage.call(line).status, OutcomeStatus::Refused, "{line}");
        }
    }

    #[test]
    fn a_link_to_a_shell_is_a_shell() {
        let stage = Stage::new();
        let link = stage.root().join("lint");
        symlink("/bin/sh", &link).unwrap();
        let link = link.to_str().unwrap().to_owned();
        let listed = stage.listing(&[&link]);
        let outcome = listed.call(&format!("{link} -c 'touch P'"));
        assert_eq!(outcome.status, OutcomeStatus::Refused);
        assert!(outcome.message.unwrap().contains("another name for"));
        // Listing `sh` includes the program that it links to.
        let listed = Stage::new().listing(&["sh"]);
        fs::write(listed.root().join("x"), "echo yes").unwrap();
        assert_eq!(listed.printed("sh x"), "yes\n");
        assert_eq!(listed.call("sh -c 'touch P'").status, OutcomeStatus::Refused);
    }

    #[test]
    fn what_runs_another_command_is_asked_for_that_one() {
        let stage = Stage::new().listing(&[
            "env", "nice", "timeout", "stdbuf", "setsid", "nohup", "xargs", "find", "echo", "sort",
            "sudo",
        ]);
        for line in [
            "env touch P",
            "env -S 'touch P'",
            "env FOO=1 touch P",
            "env FOO=1 echo x",
            "env -i touch P",
            "env env touch P",
            "env",
            "nice touch P",
            "nice -n 5 touch P",
            "timeout 3 touch P",
            "timeout -s KILL 3 touch P",
            "timeout 3",
            "stdbuf -o0 touch P",
            "setsid touch P",
            "nohup touch P",
            "echo P | xargs touch",
            "echo touch | xargs -I echo echo P",
            "echo touch P | xargs env",
            "echo --output=P | xargs sort",
            "find . -exec touch P ';'",
            "find . -exec sh -c 'touch P' \\;",
            "find . -execdir touch P +",
            "find . -ok touch P ';'",
            "sudo echo x",
            "nice timeout 3 env touch P",
            "nice -n * echo x",
            "timeout * echo x",
            "env e*",
        ] {
            assert_eq!(stage.call(line).status, OutcomeStatus::Refused, "{line}");
        }
        assert!(!stage.root().join("P").exists());
        assert_eq!(stage.printed("env echo x"), "x\n");
        assert_eq!(stage.printed("nice -n 5 timeout 3 echo x"), "x\n");
        assert_eq!(stage.printed("echo a b | xargs -n 1 echo"), "a\nb\n");
        assert_eq!(stage.printed("find . -maxdepth 0 -exec echo {} ';'"), ".\n");
    }

    #[test]
    fn options_that_run_or_write_something_are_refused() {
        let stage = Stage::new()
            .listing(&["date", "sort", "find", "awk", "sed", "uniq", "tar", "perl", "sh"]);
        for line in [
            "sort -o P x",
            "sort -oP x",
            "sort --outp=P x",
            "date -s now",
            "date --set=now",
            "sort --compress-program=sh x",
            "find . -delete",
            "find . -fprint P",
            "awk 'BEGIN{system(\"touch P\")}'",
            "awk '{print > \"P\"}' x",
            "awk 'BEGIN{print \"touch P\" | \"sh\"}'",
            "sed -i s/a/b/ x",
            "sed 's/a/b/w P' x",
            "sed '1e touch P' x",
            "uniq x P",
            "uniq *",
            "awk *",
            "sed *",
            "sh *",
            "tar cf x.tar --checkpoint=1 --checkpoint-action=exec=sh x",
            "tar xf x.tar --to-command=sh",
            "perl -e 'print 1'",
            "sh -c 'touch P'",
            "echo x | sh",
        ] {
            assert_eq!(stage.call(line).status, OutcomeStatus::Refused, "{line}");
        }
        fs::write(stage.root().join("x"), "a:1\nb:9\n").unwrap();
        assert_eq!(stage.printed("awk -F: '$2 > 5 {print $1}' x"), "b\n");
        assert_eq!(stage.printed("sed -n '1s/a/c/p' x"), "c:1\n");
        assert_eq!(stage.printed("date -u -d @0 -Iseconds"), "1970-01-01T00:00:00+00:00\n");
        assert_eq!(stage.printed("sort -r x | uniq -c | sed 's/^ *//'"), "1 b:9\n1 a:1\n");
    }

    #[test]
    fn what_takes_commands_or_code_among_its_words_is_refused() {
        let listed = ["tar", "flock", "python3", "dc", "m4", "cat", "echo", "sqlite3", "make"];
        let stage = Stage::new().listing(&listed);
        fs::write(stage.root().join("x"), "{\"a\": 1}\n").unwrap();
        fs::write(stage.root().join("own.py"), "print('own')\n").unwrap();
        for line in [
            "tar cIf 'touch P' x.tar x",
            "tar xFf ./x x.tar",
            "sqlite3 :memory: '.shell touch P'",
            "sqlite3 :memory: \"select writefile('P', 'x')\"",
            "sqlite3 -init x :memory:",
            "flock x touch P",
            "flock x -c 'touch P'",
            "flock -n x sh own.py",
            "python3 -m timeit 'open(\"P\", \"w\")'",
            "python3 -mtimeit 'open(\"P\", \"w\")'",
            "python3 -Im pdb -c 'open(\"P\", \"w\")' own.py",
            "python3 -m cProfile own.py",
            "python3 -W ignore -m code",
            "echo 'open(\"P\", \"w\")' | python3 - x",
            "echo 'open(\"P\", \"w\")' | python3 -W ignore",
            "echo 'open(\"P\", \"w\")' | python3 /dev/stdin",
            "echo 'open(\"P\", \"w\")' | python3 /proc/self/fd/0",
            "dc -e '!touch P'",
            "m4 x",
            "make --eval='all:;touch P'",
        ] {
            let outcome = stage.call(line);
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{line}: {outcome:?}");
        }
        assert!(!stage.root().join("P").exists());
        assert_eq!(stage.printed("tar cf x.tar x"), "");
        assert_eq!(stage.printed("tar tf x.tar"), "x\n");
        assert_eq!(stage.printed("flock -n x cat own.py"), "print('own')\n");
        assert_eq!(stage.printed("python3 -u own.py"), "own\n");
        assert!(stage.printed("cat x | python3 -m json.tool").contains("\"a\": 1"));
        let stage = stage.listing(&["python3 -m timeit"]);
        assert!(stage.call("python3 -m timeit -n 1 1").is_ok());
    }

    #[test]
    fn a_repository_makes_git_run_nothing() {
        let looks = ["status", "diff", "log -p", "log --show-signature", "show", "diff HEAD~1"];
        let plain = Stage::with_repository();
        for look in looks {
            assert_eq!(plain.call(&format!("git {look}")).status, OutcomeStatus::Ok, "{look}");
        }
        assert!(plain.printed("git status --short").contains(" M x.txt"));
        assert!(plain.printed("git diff").contains("+changed"));
        let run = "sh -c 'touch P; cat'";
        let root = |stage: &Stage| stage.root().display().to_string();
        type Plant<'a> = (&'a str, &'a dyn Fn(&Stage));
        let plants: &[Plant<'_>] = &[
            ("fsmonitor", &|it| it.git(&["config", "core.fsmonitor", run])),
            ("external", &|it| it.git(&["config", "diff.external", "touch P; true"])),
            ("hook", &|it| {
                it.script(".git/hooks/post-index-change", "touch P");
                // Git rewrites its index if a file is unchanged except for its time.
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
                let file = fs::File::options().write(true).open(it.root().join("same.txt"));
                file.unwrap().set_modified(time).unwrap();
            }),
            ("clean", &|it| {
                it.git(&["config", "filter.evil.clean", run]);
                fs::write(it.root().join(".gitattributes"), "*.txt filter=evil\n").unwrap();
            }),
            ("process", &|it| {
                it.git(&["config", "filter.evil.process", run]);
                fs::write(it.root().join(".git/info/attributes"), "*.txt filter=evil\n").unwrap();
            }),
            ("textconv", &|it| {
                it.git(&["config", "diff.evil.textconv", "touch P; cat"]);
                fs::write(it.root().join(".git/info/attributes"), "*.txt diff=evil\n").unwrap();
            }),
            ("command", &|it| {
                it.git(&["config", "diff.evil.command", "touch P; true"]);
                fs::write(it.root().join(".gitattributes"), "*.txt diff=evil\n").unwrap();
            }),
            ("include", &|it| {
                let settings = "[filter \"evil\"]\n\tclean = touch P; cat\n";
                fs::write(it.root().join("more"), settings).unwrap();
                it.git(&["config", "include.path", "../more"]);
                fs::write(it.root().join(".gitattributes"), "*.txt filter=evil\n").unwrap();
            }),
            ("one line", &|it| {
                let config = it.root().join(".git/config");
                let settings = fs::read_to_string(&config).unwrap();
                let evil = "[a][ \"b\"][FILTER\t\"evil\"]clean=touch P; cat\n";
                fs::write(config, settings + evil).unwrap();
                fs::write(it.root().join(".gitattributes"), "*.txt filter=evil\n").unwrap();
            }),
            ("signature", &|it| {
                it.git(&["config", "gpg.program", "./evil"]);
                it.git(&["config", "log.showSignature", "true"]);
                it.script("evil", "touch P");
                it.sign();
            }),
            ("worktree", &|it| {
                it.git(&["config", "extensions.worktreeConfig", "true"]);
                it.git(&["config", "--worktree", "filter.evil.clean", run]);
                fs::write(it.root().join(".gitattributes"), "*.txt filter=evil\n").unwrap();
            }),
            ("elsewhere", &|it| {
                it.git(&["config", "filter.evil.clean", run]);
                fs::write(it.root().join(".gitattributes"), "*.txt filter=evil\n").unwrap();
                fs::rename(it.root().join(".git"), it.root().join("store")).unwrap();
                fs::write(it.root().join(".git"), "gitdir: store\n").unwrap();
            }),
            ("inside", &|it| {
                let inner = Stage::with_repository();
                inner.git(&["config", "filter.evil.clean", &format!("touch {}/P; cat", root(it))]);
                fs::write(inner.root().join(".gitattributes"), "*.txt filter=evil\n").unwrap();
                // Git only reads files whose size is unchanged.
                fs::write(inner.root().join("x.txt"), "six\n").unwrap();
                fs::rename(inner.root(), it.root().join("sub")).unwrap();
                it.git(&["add", "sub"]);
                let modules = "[submodule \"sub\"]\n\tpath = sub\n\turl = x\n\tignore = none\n";
                fs::write(it.root().join(".gitmodules"), modules).unwrap();
            }),
        ];
        for (name, plant) in plants {
            let stage = Stage::with_repository();
            plant(&stage);
            let planted = stage.root().join("P");
            for look in looks {
                stage.try_git(&look.split(' ').collect::<Vec<_>>());
            }
            assert!(planted.exists(), "{name} runs nothing in the first place");
            fs::remove_file(&planted).unwrap();
            for look in looks {
                fs::write(stage.root().join("x.txt"), format!("{look}\n")).unwrap();
                let outcome = stage.call(&format!("git {look}"));
                assert!(!planted.exists(), "{name}: {look} {outcome:?}");
                if outcome.status == OutcomeStatus::Refused {
                    assert!(outcome.message.unwrap().contains("config"), "{name}");
                }
            }
        }
        // Git treats a folder with this layout as a repository.
        let stage = Stage::with_repository();
        stage.git(&["clone", "-q", "--bare", ".", "sub"]);
        stage.git(&["-C", "sub", "config", "core.fsmonitor", "touch ../P"]);
        for directory in ["sub", "sub/objects"] {
            let input = json!({"command": "git status", "working_directory": directory});
            assert_eq!(stage.call_with(input).status, OutcomeStatus::Refused, "{directory}");
        }
        let stage = stage.listing(&["git", "env", "timeout", "find", "git log"]);
        for line in [
            "git -C sub status",
            "env git log",
            "timeout 3 git log",
            "find . -exec git log ';'",
            "git diff --submodule=diff",
            "git log --help",
            "git status --help",
            "git status --ignore-submodules=none",
        ] {
            assert_eq!(stage.call(line).status, OutcomeStatus::Refused, "{line}");
        }
        assert!(!stage.root().join("P").exists());
    }

    #[test]
    fn what_git_keeps_is_read_by_git_alone() {
        let stage = Stage::with_repository();
        stage.git(&["config", "remote.origin.url", "https://me:token@example.com"]);
        symlink(".git/config", stage.root().join("link")).unwrap();
        for line in [
            "cat .git/config",
            "cat ./.git/../.git/config",
            "cat x.txt && head .git/config",
            "cat link",
            "cat .gi?/config",
            "cat .[g]it/*",
            "cat .*/config",
            "grep --file=.git/config x.txt",
            "grep -r token .git",
            "find . -exec cat .git/config ';'",
            "grep -f.git/config x.txt",
            "git diff --no-index /dev/null .git/config",
        ] {
            let outcome = stage.call(line);
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{line} {outcome:?}");
            assert!(outcome.message.unwrap().contains("leads into `.git`"), "{line}");
        }
        let inside = json!({"command": "cat config", "working_directory": ".git"});
        assert_eq!(stage.call_with(inside).status, OutcomeStatus::Refused);
        fs::write(stage.root().join(".gitignore"), "target\n").unwrap();
        assert_eq!(stage.printed("cat .gitignore"), "target\n");
        assert_eq!(stage.printed("grep -rl changed --exclude-dir=.git"), "x.txt\n");
        let found = stage.printed("find . -path ./.git -prune -o -name x.txt -print");
        assert_eq!(found, "./x.txt\n");
    }

    #[test]
    fn a_program_that_looks_for_files_itself_does_not_find_what_git_keeps() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage::with_repository();
            let commands = ["cat", "cp", "echo", "find", "git", "grep", "head", "sh", "xargs"];
            let stage = Stage { most, ..stage.listing(&commands) };
            let inner = stage.root().join("vendor/inner");
            for folder in [stage.root(), inner.clone()] {
                fs::create_dir_all(folder.join(".git")).unwrap();
                let config = "[remote \"origin\"]\n\turl = https://me:s3cret@example.com\n";
                fs::write(folder.join(".git/config"), config).unwrap();
            }
            fs::write(inner.join("y.txt"), "s3cret-free\n").unwrap();
            fs::write(stage.root().join("script"), "cat .git/config vendor/inner/.git/*").unwrap();
            for line in [
                "grep -r s3cret@ .",
                "find . -name config -exec cat {} +",
                "echo .git/config vendor/inner/.git/config | xargs head",
                "sh script",
                "cp -r . copy",
            ] {
                let outcome = stage.call(line);
                assert!(
                    !format!("{outcome:?}").contains("me:s3cret"),
                    "{most:?} {line} {outcome:?}"
                );
            }
            assert!(!stage.root().join("copy/.git/config").exists());
            let found = stdout(&stage.call("grep -rl s3cret-free vendor"));
            assert_eq!(found, "vendor/inner/y.txt\n");
            assert_eq!(stage.call("cp x.txt z.txt").status, OutcomeStatus::Ok, "{most:?}");
            assert!(stage.printed("git log --oneline | grep -c text").contains('2'));
            for line in [
                "git status; grep -r s3cret .",
                "git status; grep --recursive s3cret .",
                "git ls-files | xargs cat",
                "git status && find . -name config",
                "git status || sh script",
            ] {
                let outcome = stage.call(line);
                assert_eq!(outcome.status, OutcomeStatus::Refused, "{line} {outcome:?}");
                assert!(outcome.hint.unwrap().contains("run git by itself"), "{line}");
            }
        }
    }

    #[test]
    fn a_line_with_many_parts_is_looked_up_to_its_end() {
        let stage = Stage::new().listing(&["true"]);
        for (joint, times) in [("; ", 50), (" && ", 1000), (" | ", 1500), ("\n", 2000)] {
            let line = format!("{}touch P", format!("true{joint}").repeat(times));
            assert_eq!(stage.call(&line).status, OutcomeStatus::Refused, "{joint:?}");
        }
        assert!(!stage.root().join("P").exists());
        assert_eq!(stage.call(&"true; ".repeat(50)).status, OutcomeStatus::Ok);
    }
}

mod what_runs_is_held {
    use super::*;

    #[test]
    fn q_22_a_listed_command_runs_in_its_directory() {
        let stage = Stage::new();
        let root = stage.root();
        fs::create_dir(root.join("sub dir")).unwrap();
        fs::write(root.join("sub dir/ä b.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(root.join("a.txt"), "x").unwrap();
        let listed = stage.printed("ls -la");
        assert!(listed.contains("sub dir") && listed.contains("a.txt"), "{listed}");
        for (line, expected) in [
            ("echo 'a  b' \"c'd\" e\\ f", "a  b c'd e f\n"),
            ("echo '$HOME `x` *' ';' \"|\"", "$HOME `x` * ; |\n"),
            ("cat 'sub dir/ä b.txt' | head -n 2 | wc -l", "2\n"),
            ("cat sub\\ dir/*.txt | tail -1", "three\n"),
            ("ls *.txt", "./a.txt\n"),
            ("ls nothing-*", ""),
            ("true && echo yes || echo no", "yes\n"),
            ("cat missing || echo no", "no\n"),
            ("echo one; echo two\necho three", "one\ntwo\nthree\n"),
            ("echo 技能 🚀", "技能 🚀\n"),
            ("echo -n", ""),
            ("printf '%s|' a 'b c'", "a|b c|"),
        ] {
            let outcome = stage.call(line);
            assert_eq!(stdout(&outcome), expected, "{line} {outcome:?}");
        }
        let outcome = stage.call_with(json!({"command": "pwd", "working_directory": "sub dir"}));
        assert_eq!(stdout(&outcome).trim_end(), root.join("sub dir").to_str().unwrap());
        let outcome = stage.call_with(json!({"command": "pwd", "cwd": root.join("sub dir")}));
        assert!(stdout(&outcome).trim_end().ends_with("sub dir"));
        let failed = stage.call("cat missing");
        assert_eq!((failed.status, failed.exit_code), (OutcomeStatus::Failed, Some(1)));
        assert!(failed.stderr.unwrap().text.contains("missing"));
        assert!(failed.sandbox.unwrap() >= SandboxLevel::Landlock);
    }

    #[test]
    fn q_22_a_command_ends_when_its_time_is_over() {
        let stage = Stage::new().listing(&["sleep"]);
        let outcome = stage.call_with(json!({"command": "sleep 30", "timeout": 0.3}));
        assert_eq!(outcome.status, OutcomeStatus::TimedOut);
        let limits = RunLimits { timeout: Duration::from_millis(300), ..RunLimits::default() };
        let stage = Stage { limits, ..stage };
        let outcome = stage.call_with(json!({"command": "sleep 30", "timeout": 600}));
        assert_eq!(outcome.status, OutcomeStatus::TimedOut);
        let limits = RunLimits { idle: Some(Duration::from_millis(300)), ..RunLimits::default() };
        let outcome = Stage { limits, ..stage }.call("sleep 30");
        assert_eq!(outcome.status, OutcomeStatus::TimedOut);
    }

    #[test]
    fn a_directory_outside_the_roots_is_refused() {
        let stage = Stage::new();
        symlink("/", stage.root().join("out")).unwrap();
        fs::write(stage.root().join("file"), "").unwrap();
        for directory in
            ["/", "..", "../..", "out", "out/etc", "file", "missing", "/etc", "../root-evil"]
        {
            let outcome = stage.call_with(json!({"command": "ls", "working_directory": directory}));
            assert_eq!(outcome.status, OutcomeStatus::Refused, "{directory}");
        }
        let nowhere = Stage { roots: Some(Vec::new()), ..stage };
        let outcome = nowhere.call("ls");
        assert_eq!(outcome.status, OutcomeStatus::Refused);
        assert!(outcome.hint.unwrap().contains("policy.roots"));
    }

    #[test]
    fn a_glob_is_no_option() {
        let stage = Stage::new();
        for name in ["-n", "--help", "b"] {
            fs::write(stage.root().join(name), "content of it\n").unwrap();
        }
        assert_eq!(stage.printed("echo *"), "./--help ./-n ./b\n");
        assert_eq!(stage.printed("echo ?"), "./b\n");
        assert_eq!(stage.printed("echo -*"), "-*\n");
        assert_eq!(stage.printed("cat * | uniq"), "content of it\n");
    }

    #[test]
    fn a_command_writes_inside_the_roots_and_nowhere_else() {
        let stage = Stage::new().listing(&["touch", "cat", "cp"]);
        let outside = stage.folder.path().join("outside");
        fs::write(&outside, "secret").unwrap();
        assert_eq!(stage.call("touch made").status, OutcomeStatus::Ok);
        assert!(stage.root().join("made").exists());
        let beside = stage.folder.path().join("beside");
        symlink(&outside, stage.root().join("link")).unwrap();
        // The temporary directory inside is a separate one, so that writing there may even succeed.
        for line in [&format!("touch {}", beside.display()), "touch ../beside", "cp made link"] {
            stage.call(line);
        }
        assert!(!beside.exists());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
        for line in [&format!("cat {}", outside.display()), "cat ../outside", "cat /etc/shadow"] {
            let outcome = stage.call(line);
            assert_eq!(
                (outcome.status, stdout(&outcome)),
                (OutcomeStatus::Failed, String::new()),
                "{line}"
            );
        }
    }

    #[test]
    fn files_that_others_act_on_stay_as_they_were() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage { most, ..Stage::new().listing(&["sh", "cp", "true"]) };
            let root = stage.root();
            fs::create_dir_all(root.join(".git/hooks")).unwrap();
            fs::write(root.join(".git/config"), "[core]\n").unwrap();
            fs::write(root.join(".git/hooks/pre-commit"), "old").unwrap();
            fs::write(root.join("evil"), "evil").unwrap();
            for line in [
                "cp evil .git/config",
                "cp evil .git/hooks/pre-commit",
                "cp evil .git/hooks/post-checkout",
                "rm -r .git/hooks",
                "cp evil prowess.toml",
                "cp evil .mcp.json",
                "mkdir -p sub/.amp && cp evil sub/.amp/settings.json",
                "mkdir -p .github && cp evil .github/mcp.json",
                "cp evil kilo.jsonc",
                "mkdir .claude && cp evil .claude/settings.json",
                "mkdir -p sub/.claude; cp evil sub/prowess.toml",
                "mkdir -p sub/.git; cp evil sub/.git/config",
                "mkdir -p sub/deep/.claude; cp evil sub/deep/.claude/settings.json",
                "mkdir -p sub/deep; ln -s ../../evil sub/deep/.git",
                "mkdir .prowess",
                "mkdir -p sub/bare/objects sub/bare/refs; cp evil sub/bare/HEAD; cp evil sub/bare/config",
                "mkdir -p .github/workflows && cp evil .github/workflows/ci.yml",
                "cp evil .envrc",
                "cp evil .zshenv",
                "mkdir -p sub/.config/systemd/user && cp evil sub/.config/systemd/user/x.service",
                "cp evil .aider.conf.yml",
                "mkdir -p lib/site-packages && cp evil lib/site-packages/x.pth",
            ] {
                fs::write(root.join("plant"), line).unwrap();
                let outcome = stage.call("sh plant");
                assert_eq!(outcome.status, OutcomeStatus::Failed, "{most}: {line}");
                let said = outcome.denied.join("\n") + &outcome.stderr.unwrap().text;
                assert!(!said.is_empty(), "{most}: {line}");
                let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
                assert_eq!(read(".git/config"), "[core]\n", "{most}: {line}");
                assert_eq!(read(".git/hooks/pre-commit"), "old", "{most}: {line}");
                for name in [
                    ".git/hooks/post-checkout",
                    "prowess.toml",
                    ".mcp.json",
                    ".claude",
                    ".prowess",
                    ".github/workflows",
                    ".envrc",
                    ".zshenv",
                    "sub/.config/systemd",
                    ".aider.conf.yml",
                    "lib/site-packages/x.pth",
                    "sub/.claude",
                    "sub/prowess.toml",
                    "sub/.git/config",
                    "sub/deep/.claude",
                    "sub/deep/.git",
                    "sub/bare/config",
                ] {
                    assert!(!root.join(name).exists(), "{most}: {line} left {name}");
                }
            }
            // The working directory counts as well.
            let line = json!({"command": "cp ../evil .mcp.json", "working_directory": "sub"});
            let outcome = stage.call_with(line);
            assert!(!root.join("sub/.mcp.json").exists());
            assert!(
                outcome.denied.iter().any(|it| it.contains(".mcp.json")),
                "{:?}",
                outcome.denied
            );
            assert_eq!(stage.call("true").denied, Vec::<String>::new());
        }
    }

    #[test]
    fn a_command_plants_no_settings_for_git() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage::with_repository().listing(&["sh", "git"]);
            let stage = Stage { most, ..stage };
            let root = stage.root();
            stage.git(&["config", "core.hooksPath", "tools/hooks"]);
            fs::create_dir_all(root.join("tools/hooks")).unwrap();
            fs::create_dir_all(root.join("cloned")).unwrap();
            fs::write(root.join("cloned/commondir"), "../assets\n").unwrap();
            fs::write(root.join("head"), "ref: refs/heads/main\n").unwrap();
            fs::write(root.join("to"), "../assets\n").unwrap();
            fs::write(root.join("evil"), "[core]\n\tpager = touch PWNED\n").unwrap();
            for (line, planted) in [
                (
                    "mkdir -p docs assets/objects assets/refs; cp head docs/HEAD; cp to docs/commondir; \
                     cp evil assets/config",
                    ["docs/commondir", "assets/config"],
                ),
                ("cp head cloned/HEAD", ["cloned/HEAD", "cloned/HEAD"]),
                (
                    "mkdir -p sub/.git; cp head sub/.git/HEAD; cp to sub/.git/commondir",
                    ["sub/.git/commondir", "sub/.git/commondir"],
                ),
                (
                    "mkdir -p w; cp evil w/config.worktree",
                    ["w/config.worktree", "w/config.worktree"],
                ),
                (
                    "cp evil tools/hooks/pre-commit",
                    ["tools/hooks/pre-commit", "tools/hooks/pre-commit"],
                ),
            ] {
                fs::write(root.join("plant"), line).unwrap();
                let outcome = stage.call("sh plant");
                assert_eq!(outcome.status, OutcomeStatus::Failed, "{most}: {line}: {outcome:?}");
                for path in planted {
                    assert!(!root.join(path).exists(), "{most}: {path}");
                }
            }
            assert!(stage.call("git checkout -q -b other").is_ok(), "{most}");
            assert_eq!(stage.printed("git rev-parse --abbrev-ref HEAD"), "other\n");
        }
    }

    #[test]
    fn what_only_reads_is_given_nothing_to_write() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage { most, ..Stage::new().listing(&["cat", "sort -o"]) };
            let root = stage.root();
            // A person works at the same time.
            let outcome = during(&root, || write_own(&root), || stage.call("cat gate"));
            assert_eq!(
                (outcome.status, outcome.denied),
                (OutcomeStatus::Ok, Vec::new()),
                "{most}: what a person wrote is nobody else's"
            );
            for name in OWN {
                assert_eq!(fs::read_to_string(root.join(name)).unwrap(), "mine", "{most}: {name}");
            }
            assert_eq!(stage.call("sort -o sorted .mcp.json").status, OutcomeStatus::Ok);
            assert!(root.join("sorted").exists(), "what the policy spells out may write");
        }
    }

    #[test]
    fn what_a_person_wrote_meanwhile_is_moved_and_never_lost() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage { most, ..Stage::new().listing(&["sh", "mv"]) };
            let root = stage.root();
            fs::write(root.join("waits"), "cat gate").unwrap();
            let outcome = during(&root, || write_own(&root), || stage.call("sh waits"));
            assert_eq!(outcome.status, OutcomeStatus::Failed, "{most}");
            for name in OWN {
                assert!(!root.join(name).exists(), "{most}: {name}");
            }
            let said = outcome.denied.join("\n");
            for name in [".mcp.json", ".vscode/tasks.json", "config", "prowess.toml"] {
                assert_eq!(kept(&stage, name), Some("mine".to_owned()), "{most}: {name} {said}");
            }
            assert!(said.contains(&stage.trash().display().to_string()), "{said}");
            fs::create_dir(root.join("real")).unwrap();
            fs::write(root.join("real/data"), "real").unwrap();
            assert_eq!(stage.call("mv real .vscode").status, OutcomeStatus::Failed);
            assert_eq!(kept(&stage, ".vscode/data").as_deref(), Some("real"), "{most}");
            assert!(!root.join(".vscode").exists());
        }
    }

    #[test]
    fn what_is_protected_goes_with_the_directory_that_it_lies_in() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage { most, ..Stage::new().listing(&["mv", "rm"]) };
            let root = stage.root();
            fs::create_dir_all(root.join("pack/.github/workflows")).unwrap();
            fs::write(root.join("pack/.github/workflows/ci.yml"), "ci").unwrap();
            for line in ["mv pack other", "rm -r other"] {
                let outcome = stage.call(line);
                assert_eq!(
                    (outcome.status, outcome.denied),
                    (OutcomeStatus::Ok, Vec::new()),
                    "{most}"
                );
            }
            assert!(!root.join("pack").exists() && !root.join("other").exists());
        }
    }

    #[test]
    fn what_a_protected_link_leads_to_is_protected_as_well() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage { most, ..Stage::new().listing(&["cp", "rm", "ln"]) };
            let root = stage.root();
            fs::create_dir_all(root.join(".git/hooks")).unwrap();
            for (link, to) in [
                ("AGENTS.md", "notes.txt"),
                (".git/hooks/pre-commit", "../../check.sh"),
                (".vscode", "editor"),
            ] {
                symlink(to, root.join(link)).unwrap();
            }
            fs::create_dir(root.join("editor")).unwrap();
            for name in ["notes.txt", "check.sh", "editor/tasks.json", "own.txt", "evil"] {
                fs::write(root.join(name), if name == "evil" { "evil" } else { "mine" }).unwrap();
            }
            let is_as_it_was = |name: &str| fs::read_to_string(root.join(name)).unwrap() == "mine";
            for name in ["notes.txt", "check.sh", "editor/tasks.json"] {
                for line in [format!("cp evil {name}"), format!("rm -f {name}")] {
                    let outcome = stage.call(&line);
                    assert_ne!(outcome.status, OutcomeStatus::Ok, "{most} {line}: {outcome:?}");
                    assert!(is_as_it_was(name), "{most} {line}: {outcome:?}");
                }
            }
            let outcome = stage.call("ln -s own.txt .mcp.json");
            assert_ne!(outcome.status, OutcomeStatus::Ok, "{most}");
            assert!(is_as_it_was("own.txt") && !root.join(".mcp.json").exists(), "{most}");
            assert_eq!(stage.call("cp evil own.txt").status, OutcomeStatus::Ok, "{most}");
        }
    }

    /// Files that a person may write at any time.
    const OWN: [&str; 5] =
        [".mcp.json", ".vscode/tasks.json", ".git/config", ".git/hooks/pre-commit", "prowess.toml"];

    fn write_own(root: &Path) {
        for name in OWN {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "mine").unwrap();
        }
    }

    /// Runs an action during a call of a command that reads from the pipe `gate` to its end.
    fn during(
        root: &Path,
        something: impl FnOnce() + Send,
        call: impl FnOnce() -> Outcome,
    ) -> Outcome {
        let gate = root.join("gate");
        assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut open = OpenOptions::new();
                let open = open.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
                let mut writer = None;
                until("the command reads", || {
                    writer = open.open(&gate).ok();
                    writer.is_some()
                });
                something();
            });
            call()
        })
    }

    /// Returns the content of a file in the trash.
    fn kept(stage: &Stage, name: &str) -> Option<String> {
        let moved = fs::read_dir(stage.trash()).ok()?.flatten();
        moved.into_iter().find_map(|it| fs::read_to_string(it.path().join(name)).ok())
    }

    #[test]
    fn what_was_not_looked_into_is_left_alone() {
        // One of the three exceeds the limit, until the others are gone.
        for (kept, others) in [("a", "b .vscode/c"), ("b", "a .vscode/c"), ("c", "a .vscode/b")] {
            let stage =
                Stage { most: SandboxLevel::Landlock, ..Stage::new().listing(&["rm", "true"]) };
            let settings = stage.root().join(".vscode");
            for name in ["a", "b", "c"] {
                fs::create_dir_all(settings.join(name)).unwrap();
                for number in 0..400 {
                    fs::write(settings.join(format!("{name}/{number}")), "mine").unwrap();
                }
            }
            assert_eq!(stage.call("true").denied, Vec::<String>::new());
            stage.call(&format!("rm -r .vscode/{others}"));
            let files = fs::read_dir(settings.join(kept)).map_or(0, Iterator::count);
            assert_eq!(files, 400, "{kept}");
        }
    }

    #[test]
    fn a_link_planted_in_place_of_a_directory_leads_nobody_astray() {
        let stage = Stage::new().listing(&["ln", "true"]);
        let other = stage.folder.path().join("other");
        fs::create_dir_all(other.join("hooks")).unwrap();
        fs::write(other.join("hooks/pre-commit"), "mine").unwrap();
        fs::write(other.join("config"), "mine").unwrap();
        for name in [".git", ".claude"] {
            stage.call(&format!("ln -s {} {name}", other.display()));
            stage.call("true");
        }
        assert_eq!(fs::read_to_string(other.join("hooks/pre-commit")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(other.join("config")).unwrap(), "mine");
        assert!(!stage.root().join(".claude").is_symlink());
    }

    #[test]
    fn what_the_host_withholds_is_neither_read_nor_written() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage { most, ..Stage::new().listing(&["cat", "grep", "sh", "true"]) };
            let root = stage.root();
            fs::create_dir_all(root.join("local/state/own")).unwrap();
            fs::create_dir_all(root.join("there")).unwrap();
            let book = root.join("local/state/own/book.json");
            fs::write(&book, "approved").unwrap();
            fs::write(root.join("key"), "approved").unwrap();
            fs::write(root.join("evil"), "forged").unwrap();
            for (link, target) in [("short", "local/state/own"), ("away", "there")] {
                symlink(target, root.join(link)).unwrap();
            }
            let withheld = ["local/state/own", "key", "new/own", "away/own"];
            let withheld = withheld.iter().map(|it| root.join(it)).collect();
            let stage = Stage { base: Policy { withheld, ..Policy::default() }, ..stage };
            for line in [
                "cat local/state/own/book.json",
                "cat short/book.json",
                "cat key",
                "grep -r approved .",
            ] {
                assert!(!stdout(&stage.call(line)).contains("approved"), "{most}: {line}");
            }
            for directory in ["local/state/own", "short"] {
                let input = json!({"command": "true", "working_directory": directory});
                assert_eq!(stage.call_with(input).status, OutcomeStatus::Refused, "{directory}");
            }
            for line in [
                "cp evil local/state/own/book.json",
                "cp evil short/book.json",
                "cp evil key",
                "rm -f key; cp evil key",
                "mv key key2; cp evil key",
                "mv local/state local/old; mkdir -p local/state/own; cp evil local/state/own/book.json",
                "mv local old; mkdir -p local/state/own; cp evil local/state/own/book.json",
                "rm -rf local; mkdir -p local/state/own; cp evil local/state/own/book.json",
                "mkdir -p new/own; cp evil new/own/book.json",
                "mkdir there/own; cp evil there/own/book.json",
                "rm away; mkdir -p away/own; cp evil away/own/book.json",
                "rm away; mkdir -p x/own; cp evil x/own/book.json; ln -s x away",
            ] {
                fs::write(root.join("plant"), line).unwrap();
                stage.call("sh plant");
                assert_eq!(fs::read_to_string(&book).unwrap(), "approved", "{most}: {line}");
                let key = fs::read_to_string(root.join("key")).unwrap();
                assert_eq!(key, "approved", "{most}: {line}");
                for missing in ["new/own", "away/own"] {
                    assert!(!root.join(missing).exists(), "{most}: {line} left {missing}");
                }
            }
        }
    }

    #[test]
    fn a_file_that_the_host_protects_stays_as_it_was_whatever_it_is_called() {
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage = Stage { most, ..Stage::new().listing(&["cat", "sh"]) };
            let root = stage.root();
            fs::create_dir(root.join("conf")).unwrap();
            fs::write(root.join("conf/ci.toml"), "mine").unwrap();
            fs::write(root.join("evil"), "forged").unwrap();
            symlink("conf", root.join("linked")).unwrap();
            let protected = vec![root.join("linked/ci.toml")];
            let stage = Stage { base: Policy { protected, ..Policy::default() }, ..stage };
            assert_eq!(stage.printed("cat linked/ci.toml"), "mine");
            for line in [
                "cp evil conf/ci.toml",
                "rm -f conf/ci.toml; cp evil conf/ci.toml",
                "cp evil conf/x; mv conf/x linked/ci.toml",
                "mv conf old; mkdir conf; cp evil conf/ci.toml",
                "rm linked; mkdir linked; cp evil linked/ci.toml",
                "mkdir other; cp evil other/ci.toml; rm linked; ln -s other linked",
            ] {
                fs::write(root.join("plant"), line).unwrap();
                let outcome = stage.call("sh plant");
                assert_eq!(outcome.status, OutcomeStatus::Failed, "{most}: {line}");
                let now = fs::read_to_string(root.join("linked/ci.toml")).unwrap();
                assert_eq!(now, "mine", "{most}: {line}");
            }
        }
    }

    #[test]
    fn what_a_rule_denies_to_everybody_is_not_there_for_commands() {
        let deny =
            |path: &str| PolicyRule { path: Some(path.into()), ..PolicyRule::new(Decision::Deny) };
        for most in [SandboxLevel::Strong, SandboxLevel::Landlock] {
            let stage =
                Stage { most, ..Stage::new().listing(&["cat", "grep", "cp", "true", "sh"]) };
            let root = stage.root();
            for name in ["secrets/k", "sub/a.pem", "open/k", "sub/x", "whole/k"] {
                fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
                fs::write(root.join(name), "hidden").unwrap();
            }
            symlink("secrets/k", root.join("link")).unwrap();
            let by_tool = PolicyRule { tool: Some("file_operations".to_owned()), ..deny("open/*") };
            let whole = root.join("whole").display().to_string();
            let rules = vec![deny("./secrets"), deny("secrets/*"), deny("*.pem"), by_tool];
            let rules = rules.into_iter().chain([deny(&whole)]).collect();
            let stage = Stage { base: Policy { rules, ..Policy::default() }, ..stage };
            for line in
                ["cat secrets/k", "cat link", "cat sub/a.pem", "cat whole/k", "cat sub/*.pem"]
            {
                assert!(!stdout(&stage.call(line)).contains("hidden"), "{most}: {line}");
            }
            let found = stdout(&stage.call("grep -rl hidden ."));
            let mut found: Vec<&str> = found.lines().collect();
            found.sort();
            assert_eq!(found, ["./open/k", "./sub/x"], "{most}");
            fs::write(root.join("plant"), "cp plant secrets/k; cp plant sub/a.pem").unwrap();
            stage.call("sh plant");
            for name in ["secrets/k", "sub/a.pem"] {
                assert_eq!(fs::read_to_string(root.join(name)).unwrap(), "hidden", "{most}");
            }
            let into = |it| stage.call_with(json!({"command": "true", "working_directory": it}));
            assert_eq!(into("secrets").status, OutcomeStatus::Refused);
            assert_eq!(into("open").status, OutcomeStatus::Ok);
        }
    }

    #[test]
    fn what_is_denied_is_not_told_by_its_history() {
        let telling = [
            "git show HEAD:secret/k.pem",
            "git show",
            "git log -p",
            "git log --patc",
            "git log -L1,1:secret/k.pem",
            "git log -S hidden",
            "git log -n1 -U1",
            "git diff HEAD~1",
            "git diff",
            "git grep hidden HEAD",
            "git cat-file -p HEAD:secret/k.pem",
            "git blame secret/k.pem",
            "git -C secret/.. show HEAD:secret/k.pem",
            "git status -v",
            "git add -p",
            "git stash show -p",
            "git tag --format=%(raw)",
        ];
        let commands = ["git", "git show", "git log", "git diff", "git status"];
        let mut stage = Stage::with_repository().listing(&commands);
        fs::create_dir(stage.root().join("secret")).unwrap();
        fs::write(stage.root().join("secret/k.pem"), "hidden\n").unwrap();
        stage.git(&["add", "."]);
        stage.git(&["commit", "-q", "-m", "more"]);
        let denying = |path: PathBuf| {
            let path = Some(path.display().to_string());
            let rules = vec![PolicyRule { path, ..PolicyRule::new(Decision::Deny) }];
            Policy { rules, ..Policy::default() }
        };
        stage.base = denying(stage.root().join("../other"));
        assert!(stage.printed(telling[0]).contains("hidden"));
        for path in ["secret", "secret/*", "*.pem"] {
            stage.base = denying(stage.root().join(path));
            for line in telling {
                assert_eq!(stage.call(line).status, OutcomeStatus::Refused, "{path}: {line}");
            }
            for line in ["git log --oneline -3 --stat", "git log -1", "git status --short"] {
                assert_eq!(stage.call(line).status, OutcomeStatus::Ok, "{path}: {line}");
            }
        }
    }

    #[test]
    fn what_could_not_be_put_right_is_said() {
        let stage = Stage::new().listing(&["cp"]);
        fs::write(stage.root().join("evil"), "forged").unwrap();
        let tool = stage.tool().with_trash("/proc/nowhere".into());
        let outcome = runtime().block_on(tool.call(json!({"command": "cp evil .mcp.json"})));
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert!(outcome.denied.join("").contains("still there"), "{:?}", outcome.denied);
        let said = outcome.message.unwrap() + &outcome.hint.unwrap();
        assert!(!said.contains("put right") && !said.contains("nothing is lost"), "{said}");

        let stage = Stage { most: SandboxLevel::Landlock, ..Stage::new().listing(&["cp", "true"]) };
        fs::write(stage.root().join(".mcp.json"), "x".repeat(300_000)).unwrap();
        fs::write(stage.root().join("evil"), "forged").unwrap();
        assert_eq!(stage.call("true").denied, Vec::<String>::new());
        let outcome = stage.call("cp evil .mcp.json");
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert!(outcome.denied.join("").contains("could not be restored"), "{:?}", outcome.denied);
        let said = outcome.message.unwrap() + &outcome.hint.unwrap();
        assert!(!said.contains("put right") && !said.contains("nothing is lost"), "{said}");
    }

    #[test]
    fn a_trash_on_another_disk_gets_a_copy() {
        let stage = Stage::new().listing(&["mv"]);
        let trash = tempfile::tempdir_in("/dev/shm").unwrap();
        let real = stage.root().join("real");
        fs::create_dir_all(real.join("deep")).unwrap();
        fs::write(real.join("deep/data"), "real").unwrap();
        symlink("deep/data", real.join("link")).unwrap();
        let tool = stage.tool().with_trash(trash.path().into());
        let outcome = runtime().block_on(tool.call(json!({"command": "mv real .vscode"})));
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert!(!real.exists() && !stage.root().join(".vscode").exists());
        let moved = fs::read_dir(trash.path()).unwrap().next().unwrap().unwrap();
        let moved = moved.path().join(".vscode");
        assert_eq!(fs::read_to_string(moved.join("deep/data")).unwrap(), "real");
        assert_eq!(fs::read_link(moved.join("link")).unwrap(), Path::new("deep/data"));
    }

    #[test]
    fn the_output_comes_as_it_is_printed() {
        let stage = Stage::new().listing(&["echo", "sleep"]);
        let (sender, mut chunks) = tokio::sync::mpsc::unbounded_channel();
        let tool = stage.tool().streaming(sender);
        let (first, outcome) = runtime().block_on(async {
            let mut call = tool.call(json!({"command": "echo one; sleep 1; echo two"}));
            let first = tokio::select! {
                biased;
                outcome = &mut call => panic!("it has ended before anything came: {outcome:?}"),
                first = chunks.recv() => first,
            };
            (first, call.await)
        });
        assert_eq!(first, Some(Chunk::Stdout(b"one\n".to_vec())));
        assert_eq!(stdout(&outcome), "one\ntwo\n");
    }

    #[test]
    fn input_that_is_not_understood_is_told() {
        let stage = Stage::new();
        for input in [
            json!({}),
            json!({"command": 1}),
            json!({"command": "ls", "shell": true}),
            json!({"command": "ls", "timeout": "soon"}),
            json!({"command": "ls", "timeout": -1}),
            json!({"command": "ls", "timeout": 0}),
            json!({"command": "ls", "timeout": 1e300}),
            json!("ls"),
        ] {
            let outcome = stage.call_with(input.clone());
            assert_eq!(outcome.status, OutcomeStatus::Invalid, "{input} {outcome:?}");
            assert!(outcome.message.is_some());
            let told = stage.tool().action(&input).unwrap_err();
            assert_eq!(told.status, OutcomeStatus::Invalid);
        }
        let schema = stage.tool().input_schema();
        assert_eq!(schema["required"], json!(["command"]));
        assert!(schema["properties"]["working_directory"]["description"].is_string());
    }
}

/// A root for commands, and its policy.
struct Stage {
    folder: TempDir,
    commands: Vec<String>,
    limits: RunLimits,
    roots: Option<Vec<PathBuf>>,
    most: SandboxLevel,
    /// The rest of the policy.
    base: Policy,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        let base = Policy::default();
        let (commands, limits) = (base.commands.clone(), RunLimits::default());
        Self { folder, commands, limits, roots: None, most: SandboxLevel::Strong, base }
    }

    fn listing(self, commands: &[&str]) -> Self {
        Self { commands: commands.iter().map(|&it| it.to_owned()).collect(), ..self }
    }

    /// Creates a root that is a repository, with a changed file.
    fn with_repository() -> Self {
        let stage = Self::new();
        stage.git(&["init", "-q"]);
        fs::write(stage.root().join("same.txt"), "same\n").unwrap();
        for text in ["one\n", "two\n"] {
            fs::write(stage.root().join("x.txt"), text).unwrap();
            stage.git(&["add", "x.txt", "same.txt"]);
            stage.git(&["commit", "-q", "-m", "text"]);
        }
        fs::write(stage.root().join("x.txt"), "changed\n").unwrap();
        stage
    }

    /// Makes the last commit look signed.
    fn sign(&self) {
        let script = "git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP \
                      SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----' \
                      | git hash-object -t commit -w --stdin | xargs git update-ref HEAD";
        let signed = Command::new("sh").args(["-c", script]).current_dir(self.root()).status();
        assert!(signed.unwrap().success());
    }

    fn script(&self, name: &str, line: &str) {
        let path = self.root().join(name);
        fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs git without a sandbox.
    fn try_git(&self, words: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@example.com"]).args(words);
        git.current_dir(self.root()).stdin(Stdio::null()).stdout(Stdio::null());
        git.stderr(Stdio::null()).status().unwrap().success()
    }

    fn git(&self, words: &[&str]) {
        assert!(self.try_git(words), "{words:?}");
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).unwrap().join("root")
    }

    fn policy(&self) -> Policy {
        let roots = self.roots.clone().unwrap_or_else(|| vec![self.root()]);
        Policy { commands: self.commands.clone(), roots, ..self.base.clone() }
    }

    fn tool(&self) -> ExecuteCommand {
        let launcher = Launcher::program(env!("CARGO_BIN_EXE_prowess_launcher"));
        let sandbox = Sandbox::new(launcher, SandboxLevel::Landlock).at_most(self.most);
        ExecuteCommand::new(self.policy(), sandbox, self.limits, self.root())
            .with_trash(self.trash())
    }

    fn trash(&self) -> PathBuf {
        self.folder.path().join("trash")
    }

    fn call(&self, line: &str) -> Outcome {
        self.call_with(json!({"command": line}))
    }

    /// Authorizes the call and performs it; both refuse the same.
    fn call_with(&self, input: Json) -> Outcome {
        let tool = self.tool();
        let authorizer = Authorizer::new(self.policy(), Arc::new(DenyAll));
        runtime().block_on(async {
            let called = tool.call(input.clone()).await;
            if let Ok(action) = tool.action(&input) {
                let passed = authorizer
                    .authorize(&ActionRequest {
                        tool: tool.name(),
                        action: &action,
                        active: &[],
                        given: None,
                    })
                    .await;
                let refused = called.status == OutcomeStatus::Refused;
                assert_eq!(passed.is_err(), refused, "{input} {passed:?} {called:?}");
            }
            called
        })
    }

    fn printed(&self, line: &str) -> String {
        let outcome = self.call(line);
        assert_eq!(outcome.status, OutcomeStatus::Ok, "{line}: {outcome:?}");
        stdout(&outcome)
    }
}

fn stdout(outcome: &Outcome) -> String {
    outcome.stdout.clone().unwrap_or_default().text
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
