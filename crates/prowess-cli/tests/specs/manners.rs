use std::{
    env,
    ffi::OsStr,
    fs,
    io::Read as _,
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    ask::hear,
    model_server::{Answer, ModelServer},
    world::{Ran, SKILLS, World, program},
};

/// Asks the program for completions of the last of these words.
fn offered(world: &World, words: &[&str]) -> Ran {
    let index = (words.len() - 1).to_string();
    let asked = [("PROWESS_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", &index)];
    world.run_with(&asked, ["--"].iter().chain(words))
}

/// Returns the candidates.
fn offers(world: &World, words: &[&str]) -> Vec<String> {
    offered(world, words).stdout().lines().map(str::to_owned).collect()
}

/// Runs the program at a terminal of this width; its stdout is everything printed, without progress
/// lines.
fn at_width(world: &World, columns: usize, arguments: &str) -> Ran {
    let line = format!("stty rows 50 cols {columns}; {} {arguments}", program());
    let quoted = line.replace('\'', "'\\''");
    let mut ran = world.run_script(&format!("script -qefc '{quoted}' /dev/null"));
    let shown = ran.stdout().replace("\r\n", "\n");
    let lines = shown.split('\n').map(|it| it.rsplit("\r\x1b[K").next().unwrap_or(it));
    ran.out = lines.collect::<Vec<_>>().join("\n").into_bytes();
    ran
}

fn brewing() -> World {
    World::new()
        .skill("brew-coffee", "Brews coffee. Use when somebody is tired.")
        .skill("steep-tea", "Steeps tea. Use when somebody is cold.")
        .file("skills/brew-coffee/scripts/grind.sh", "echo grind\n")
        .document("milk", "---\nname: milk\ndescription: Warms milk\nstatus: disabled\n---\n\nx\n")
}

/// Every command with arguments that make it print something without a person.
const COMMANDS: &[&[&str]] = &[
    &["list"],
    &["check", "skills"],
    &["rule"],
    &["rule", "name-folder"],
    &["doctor"],
    &["find", "coffee"],
    &["lab"],
    &["show", "brew-coffee"],
    &["read", "brew-coffee", "scripts/grind.sh"],
    &["prompt", "coffee"],
    &["ask", "--dry-run", "coffee"],
    &["catalog"],
    &["config"],
    &["tools"],
    &["sandbox"],
    &["completions", "bash"],
    &["man"],
    &["mcp", "install", "--client", "codex", "--dry-run"],
    &["--help"],
    &["list", "--json"],
];

mod a_shell_completes_what_can_be_typed {
    use super::*;

    /// Returns the words that the program gets for each line typed into bash, Tab among its keys.
    fn typed_in_bash(world: &World, lines: &[&str]) -> Vec<String> {
        let rc = r#"
            prowess() {
                if [[ -n $PROWESS_COMPLETE || $1 == completions ]]; then "$PROGRAM" "$@"
                else printf 'got'; printf ' <%s>' "$@"; echo; fi
            }
            source <(prowess completions bash)
        "#;
        world.write("rc.bash", rc);
        world.write("keys", format!("{}\nexit\n", lines.join("\n")));
        let ran = world.run_script(
            "export PROGRAM=$0; script -qec 'bash --rcfile rc.bash -i' /dev/null < keys",
        );
        let got = ran.stdout().lines().filter_map(|it| it.split("got <").nth(1));
        got.map(|it| format!("<{}", it.trim_end())).collect()
    }

    #[test]
    fn tab_completes_the_names_of_skills_in_bash() {
        let world = brewing();
        let lines = [
            "prowess show --dir skills st\t",
            "prowess --dir skills show br\t",
            "prowess show bre\t",
            "prowess sho\t--lev\tbr\t",
        ];
        let got = [
            "<show> <--dir> <skills> <steep-tea>",
            "<--dir> <skills> <show> <brew-coffee>",
            "<show> <brew-coffee>",
            "<show> <--level> <brief>",
        ];
        assert_eq!(typed_in_bash(&world, &lines), got);
    }

    #[test]
    fn tab_completes_words_that_bash_takes_apart() {
        let world = brewing().file("my skills/SKILL.md", "x").file("your{a,b}\nid", "x");
        let lines = [
            "prowess list --profile=l\t",
            "prowess list --profile=\tref\t",
            "prowess --dir=skills show st\t",
            "prowess --dir 'skills' show st\t",
            "prowess check my\t",
            "prowess check \"my\tSK\t",
            "prowess check your\t",
        ];
        let got = [
            "<list> <--profile=lenient>",
            "<list> <--profile=reference>",
            "<--dir=skills> <show> <steep-tea>",
            "<--dir> <skills> <show> <steep-tea>",
            "<check> <my skills/>",
            "<check> <my skills/SKILL.md>",
            "<check> <your{a,b}",
        ];
        assert_eq!(typed_in_bash(&world, &lines), got);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs zsh and fish")]
    fn tab_completes_the_names_of_skills_in_zsh_and_fish() {
        let world = brewing().folder("bin").link("bin/prowess", program());
        let world = world.file(
            "tab.fish",
            "prowess completions fish | source\ncomplete -C 'prowess show --dir skills '\n",
        );
        let ran = world.run_script("PATH=$PWD/bin:$PATH exec fish --no-config tab.fish");
        let coffee = "brew-coffee\tBrews coffee. Use when somebody is tired.\n";
        assert!(ran.stdout().contains(coffee), "{} {}", ran.stdout(), ran.stderr);
        let script = "
            PATH=$PWD/bin:$PATH
            compdef() { :; }
            source <(prowess completions zsh)
            _describe() { for it in ${(P)3}; do print -r -- $it; done }
            words=(prowess show --dir skills '') CURRENT=5
            _clap_dynamic_completer_prowess
        ";
        world.write("tab.zsh", script);
        let ran = world.run_script("exec zsh -f tab.zsh");
        let coffee = "brew-coffee:Brews coffee. Use when somebody is tired.\n";
        assert!(ran.stdout().contains(coffee), "{} {}", ran.stdout(), ran.stderr);
    }

    #[test]
    fn every_kind_of_name_is_completed() {
        let world = brewing().file("home/.local/state/prowess/sessions/monday.jsonl", "");
        let tab =
            |words: &[&str]| offers(&world, &[&["prowess", "--dir", "skills"], words].concat());
        assert_eq!(tab(&["rule", "name-f"]), ["name-folder"]);
        assert_eq!(tab(&["doctor", "--client", "claude-c"]), ["claude-code"]);
        assert_eq!(tab(&["doctor", "br"]), ["brew-coffee"]);
        assert_eq!(tab(&["doctor", "cre"]), Vec::<String>::new());
        assert_eq!(tab(&["doctor", "./sk"]), ["./skills/"]);
        assert_eq!(tab(&["mcp", "install", "--client", "zed"]), ["zed"]);
        assert_eq!(tab(&["tool", "execute_c"]), ["execute_command"]);
        assert_eq!(tab(&["ask", "--provider", "anth"]), ["anthropic"]);
        assert_eq!(tab(&["ask", "--model", "claude"]), ["claude-sonnet-5-5"]);
        assert_eq!(tab(&["show", "--model", "gem"]), ["gemini-3.8-flash"]);
        assert_eq!(tab(&["--preset", "clau"]), ["claude"]);
        assert_eq!(tab(&["config", "skill.dep"]), ["skill.depth"]);
        assert_eq!(tab(&["chat", "--resume", "mo"]), ["monday"]);
        assert_eq!(tab(&["sessions", "--remove", "mo"]), ["monday"]);
        assert_eq!(tab(&["read", "brew-coffee", ""]), ["scripts/grind.sh"]);
        assert_eq!(tab(&["run", "brew-coffee", "--script", "sc"]), ["scripts/grind.sh"]);
        assert_eq!(tab(&["show", "x", "--level", "b"]), ["brief"]);
        assert_eq!(tab(&["enable", ""]), ["milk"]);
        assert_eq!(tab(&["disable", "m"]), Vec::<String>::new());
        assert_eq!(tab(&["list", "--cwd", "sk"]), ["skills/"]);
        let tools = world.run(["tools", "--json", "--dir", "skills"]).json();
        let tools =
            tools["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
        assert_eq!(tab(&["tool", ""]), tools.collect::<Vec<_>>());
    }

    #[test]
    fn there_is_a_script_for_every_shell() {
        let world = World::new();
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let ran = world.run(["completions", shell]);
            assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{shell}");
            let script = ran.stdout();
            assert!(script.contains("prowess") && script.contains("PROWESS_COMPLETE"), "{script}");
            let said = world.run(["completions", shell, "--json"]).json();
            assert_eq!(said["shell"], shell);
            assert!(said["script"].as_str().unwrap().contains(script.trim()));
        }
        let ran = world.run(["completions", "csh"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("bash, elvish, fish, powershell, zsh"), "{}", ran.stderr);
    }

    #[test]
    fn a_name_that_a_shell_would_execute_is_not_offered() {
        let named =
            |name: &str| format!("---\nname: {name}\ndescription: \"a\\e[2Jb\"\n---\n\nx\n");
        let mut world = World::new().document("good", named("good"));
        for (at, name) in ["a$(id)", "'a b'", "a`id`", "\"a\\eb\"", "a;id", "-a"].iter().enumerate()
        {
            world = world.document(&format!("bad-{at}"), named(name));
        }
        let listed = world.run(["list", "--json", "--dir", "skills"]).said();
        assert!(listed.names().len() > 1, "the others are skills too: {listed:?}");
        assert_eq!(offers(&world, &["prowess", "--dir", "skills", "show", ""]), ["good"]);
        let words = ["--", "prowess", "--dir", "skills", "show", ""];
        let ran = world.run_with(&[("PROWESS_COMPLETE", "fish")], words);
        assert_eq!(ran.stdout(), "good\ta\\u{1b}[2Jb\n");
    }

    #[test]
    fn tab_is_quiet_when_something_is_wrong() {
        let world = brewing().file("bad.toml", "skill = 3\n");
        for words in [
            &["prowess", "--config", "bad.toml", "show", ""][..],
            &["prowess", "--dir", "nowhere", "show", ""],
            &["prowess", "--preset", "nobody", "show", ""],
            &["prowess", "nonsense", "--what", ""],
            &["prowess", "read", "nothing", ""],
            &["prowess", "--depth", "99", "show", ""],
        ] {
            let ran = offered(&world, words);
            assert_eq!(ran.stderr, "", "{words:?}");
        }
        assert_eq!(
            world.run_with(&[("PROWESS_COMPLETE", "csh")], ["--", "prowess", ""]).stderr,
            ""
        );
        // The variable has no effect without a request.
        assert_eq!(world.run_with(&[("PROWESS_COMPLETE", "")], ["list"]).code, Some(0));
    }

    #[test]
    fn tab_is_fast_among_many_skills() {
        let world = (0..2000).fold(World::new(), |it, number| {
            it.skill(&format!("skill-{number}"), "Does one of many things")
        });
        let words = ["prowess", "--dir", "skills", "show", "skill-19"];
        assert_eq!(offers(&world, &words).len(), 111);
        let list = processor_time(&world, "\"$0\" list --no-cache --dir skills");
        let complete =
            format!("PROWESS_COMPLETE=bash _CLAP_COMPLETE_INDEX=4 \"$0\" -- {}", words.join(" "));
        let complete = processor_time(&world, &complete);
        assert!(complete < 3.0 * list, "{complete} s, and {list} s to list them");
    }
}

/// Returns the seconds of processor time that a command takes ten times in a row.
fn processor_time(world: &World, command: &str) -> f64 {
    let ran = world.run_script(&format!(
        "for i in 0 1 2 3 4 5 6 7 8 9; do {command} >/dev/null || exit 3; done; times"
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // The second line is about children: `0m1.25s 0m0.75s`.
    let spent = ran.stdout().lines().last().unwrap().split_whitespace();
    spent
        .map(|it| {
            let (minutes, seconds) = it.trim_end_matches('s').split_once('m').unwrap();
            minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
        })
        .sum()
}

/// Returns the names of the commands in a short help: only they begin after two blanks.
fn names(help: &str) -> Vec<String> {
    let lines = help.lines().filter_map(|it| it.strip_prefix("  "));
    let names = lines.filter(|it| it.starts_with(|c: char| c.is_ascii_lowercase()));
    let names = names.map(|it| it.split(' ').next().unwrap().to_owned());
    names.filter(|it| it != "help").collect()
}

mod there_is_a_manual {
    use super::*;

    /// Returns the commands and subcommands that help lists.
    fn commands(world: &World) -> Vec<String> {
        let below = |words: &[&str]| {
            let ran = world.run(words.iter().chain(&["-h"]));
            names(ran.stdout())
        };
        let first = below(&[]);
        let second = first
            .iter()
            .flat_map(|above| below(&[above]).into_iter().map(move |it| format!("{above} {it}")));
        let second: Vec<String> = second.collect();
        first.into_iter().chain(second).collect()
    }

    #[test]
    fn every_command_has_a_page() {
        let world = World::new();
        let ran = world.run(["man", "pages/man1"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        let commands = commands(&world);
        assert!(
            commands.len() > 28 && commands.contains(&"mcp install".to_owned()),
            "{commands:?}"
        );
        assert_eq!(ran.stdout().lines().count(), commands.len() + 1);
        for path in ran.stdout().lines() {
            let page = fs::read_to_string(world.path(path)).unwrap();
            assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{path}");
            assert!(page.contains("\\-\\-json"), "{path}");
            let is_root = path.ends_with("/prowess.1");
            let last = if is_root { ".SH \"EXIT STATUS\"" } else { ".SH EXAMPLES" };
            assert!(page.contains(last), "{path}");
        }
        for command in commands {
            let name = command.replace(' ', "-");
            assert!(world.path(format!("pages/man1/prowess-{name}.1")).is_file(), "{name}");
        }
    }

    #[test]
    fn a_page_is_printed_without_a_directory() {
        let world = World::new().file("taken", "");
        let ran = world.run(["man"]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout().contains(".TH prowess 1"), "{}", ran.stdout());
        let ran = world.run(["man", "taken"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("cannot write to `taken`"), "{}", ran.stderr);
        let pages = world.run(["man", "pages", "--json"]).json();
        assert!(pages["pages"].as_array().unwrap().contains(&"pages/prowess-find.1".into()));
    }

    #[test]
    fn help_ends_with_examples() {
        let world = World::new();
        for command in commands(&world) {
            let long = world.run(command.split(' ').chain(["--help"]));
            let examples = long.stdout().rsplit("Examples:\n").next().unwrap().to_owned();
            assert!(examples.contains("prowess ") && examples.len() < 500, "{command}: {examples}");
            let short = world.run(command.split(' ').chain(["-h"]));
            assert!(!short.stdout().contains("Examples:"), "{command}");
        }
    }

    #[test]
    fn short_help_names_the_global_options_in_one_line() {
        let world = World::new();
        for command in commands(&world) {
            let short = world.run(command.split(' ').chain(["-h"]));
            let said = short.stdout();
            let end = said.rsplit("\n\n").next().unwrap().replace('\n', " ");
            assert!(end.starts_with("Global options: --dir, --preset, "), "{command}: {said}");
            assert!(end.ends_with(" and more; see `prowess -h` "), "{command}: {said}");
            assert!(said.lines().last().unwrap().starts_with("Global"), "{command}: {said}");
            assert!(!said.contains("--max-skill-size <SIZE>"), "{command}: {said}");
            let long = world.run(command.split(' ').chain(["--help"]));
            let (_, end) = long.stdout().split_once("\nGlobal options:\n").unwrap();
            let is_heading = |it: &&str| it.ends_with(':') && !it.starts_with(' ');
            let headings: Vec<&str> = end.lines().filter(is_heading).collect();
            assert_eq!(headings, ["Examples:"], "{command}: {}", long.stdout());
        }
        let own = world.run(["-h"]);
        assert!(own.stdout().contains("--max-skill-size <SIZE>  Skip skills"), "{}", own.stdout());
    }

    #[test]
    fn the_program_lists_its_commands_when_asked() {
        let world = World::new();
        let ran = world.run(["-h"]);
        assert_eq!(ran.code, Some(0));
        let said = ran.stdout();
        assert!(said.contains("\nFind and read skills:\n  find "), "{said}");
        assert!(said.contains("Usage: prowess [OPTIONS] [COMMAND]\n"), "{said}");
        assert!(said.contains("Without a command, `prowess` shows your skills"), "{said}");
        assert!(!said.contains("Possible values"), "{said}");
        assert_eq!(world.run(["help"]).stdout(), world.run(["--help"]).stdout());
    }
}

mod output_fits_its_reader {
    use super::*;

    #[test]
    fn what_is_said_is_broken_between_words() {
        let world = brewing().file("prowess.toml", "[model]\nname = \"m\"\n");
        let long = "and then more ".repeat(9);
        let tea = format!("---\nname: Tea\ndescription: Use: when cold\n---\n\nx\u{200b} {long}\n");
        let world = world.document("tea", tea);
        let found = at_width(&world, 40, "check skills");
        let wide = found.stdout().lines().find(|it| it.chars().count() > 40);
        assert_eq!(wide, None, "{}", found.stdout());
        let said = at_width(&world, 40, "list --config prowess.toml");
        let note = said.stdout().split("Tea").next().unwrap();
        let lines: Vec<&str> = note.lines().collect();
        assert!(lines.len() > 1 && lines.iter().all(|it| it.chars().count() <= 40), "{note}");
        assert!(lines[1..].iter().all(|it| it.starts_with("  ")), "{note}");
        let hint = at_width(&world, 40, "chat");
        let command = "`prowess chat --base-url http://127.0.0.1:11434/v1 --model NAME`";
        assert!(hint.stdout().contains(command), "{}", hint.stdout());
        let tools = at_width(&world, 40, "tools");
        let wide = tools.stdout().lines().find(|it| it.chars().count() > 40);
        assert_eq!(wide, None, "{}", tools.stdout());
    }

    #[test]
    fn a_list_is_as_wide_as_the_terminal() {
        let world = World::new()
            .skill("wide", &"Ａ".repeat(1000))
            .skill(&"技".repeat(30), &"言葉".repeat(200));
        let width = |line: &str| {
            line.chars().map(|it| if it.is_ascii() || it == '…' { 1 } else { 2 }).sum::<usize>()
        };
        for command in ["list", "find 言葉"] {
            let ran = at_width(&world, 80, &format!("{command} --dir skills --color never"));
            let skills = ran.stdout().lines().filter(|it| it.contains('Ａ') || it.contains('技'));
            let wide = skills.map(|it| width(it.trim_end())).max();
            assert!(wide.is_some_and(|it| it <= 80), "{command}: {wide:?} {}", ran.stdout());
        }
    }

    #[test]
    fn findings_read_whole_in_any_width() {
        let world = World::new().document(
            "tea",
            "---\nname: Tea\ndescription: Use when: cold\nallowed-tools: [Read]\n---\n\nx\n",
        );
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let whole = world.run(["check", "skills"]);
        let is_told = |it: &&str| it.contains("]: ") || it.contains("= help: ");
        let told: Vec<_> = whole.stdout().lines().filter(is_told).map(words).collect();
        assert_eq!(told.len(), 8, "{told:?}");
        for columns in [40, 80, 120, 200] {
            let ran = at_width(&world, columns, "check skills --color never");
            let wide = ran.stdout().lines().find(|it| it.chars().count() > columns);
            assert_eq!(wide, None, "{columns}");
            let shown = words(ran.stdout());
            for text in &told {
                assert!(shown.contains(text), "{columns}: {text} is not in {shown}");
            }
        }
    }

    #[test]
    fn nothing_is_cut_in_a_pipe() {
        let long = "Does one thing after the other, ".repeat(30);
        let world = World::new().skill("long", long.trim());
        for command in [&["list"][..], &["find", "long"], &["tools"], &["show", "long"]] {
            let arguments = command.iter().chain(&SKILLS);
            let plain = world.run(arguments.clone());
            assert!(plain.stdout().contains(long.trim()), "{command:?}: {}", plain.stdout());
            let narrow = world.run_with(&[("COLUMNS", "40")], arguments);
            assert_eq!((plain.out, plain.stderr), (narrow.out, narrow.stderr), "{command:?}");
        }
    }

    #[test]
    fn columns_says_how_wide_a_terminal_is() {
        let world = World::new().skill("long", "Does one thing after the other, and then another");
        let line = "list --dir skills";
        let wide = at_width(&world, 200, line);
        assert!(wide.stdout().contains("and then another"), "{}", wide.stdout());
        let program = program();
        let script =
            format!("script -qefc 'stty rows 9 cols 200; COLUMNS=40 {program} {line}' /dev/null");
        let narrow = world.run_script(&script);
        assert!(narrow.stdout().contains('…'), "{}", narrow.stdout());
    }

    #[test]
    fn colours_follow_what_was_set() {
        let world = brewing();
        let is_colored = |variables: &[(&str, &str)], arguments: &[&str]| {
            let ran = world.run_with(variables, arguments.iter().chain(&SKILLS));
            ran.stdout().contains('\x1b') || ran.stderr.contains('\x1b')
        };
        for command in [&["list"][..], &["show", "nothing"], &["list", "--help"], &["--nonsense"]] {
            let with = |flag: &'static str| [&[flag], command].concat();
            assert!(!is_colored(&[], command), "{command:?}");
            assert!(is_colored(&[("CLICOLOR_FORCE", "1")], command), "{command:?}");
            assert!(
                !is_colored(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], command),
                "{command:?}"
            );
            assert!(!is_colored(&[("CLICOLOR_FORCE", "1")], &with("--color=never")), "{command:?}");
            assert!(is_colored(&[("NO_COLOR", "1")], &with("--color=always")), "{command:?}");
            assert!(is_colored(&[], &[&["--color", "always"], command].concat()), "{command:?}");
        }
    }

    #[test]
    fn a_closed_pipe_is_no_fault() {
        let world = brewing();
        for command in COMMANDS {
            let arguments = command.iter().chain(&SKILLS);
            let mut process = world.command(arguments);
            let process =
                process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = process.spawn().unwrap();
            drop(child.stdout.take());
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            let code = child.wait().unwrap().code();
            assert!(matches!(code, Some(0 | 1)), "{command:?} {code:?} {said}");
            let complains =
                said.contains("pipe") || said.contains("panic") || said.contains("error:");
            assert!(!complains, "{command:?} {said}");
        }
    }

    #[test]
    fn a_full_disk_is_told() {
        let world = brewing().document("broken", "no frontmatter\n");
        for command in COMMANDS {
            let line = [*command, &SKILLS].concat().join(" ");
            let ran = world.run_script(&format!("$0 {line} > /dev/full"));
            assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
            let said = "error: cannot write to standard output\ncause: No space left on device\n";
            assert!(ran.stderr.contains(said), "{line}: {}", ran.stderr);
        }
    }

    #[test]
    fn what_takes_long_is_seen_to_go_on() {
        let body = "Grind the beans, warm the pot, pour the water and wait. ".repeat(900);
        let world = (0..600).fold(World::new(), |it, number| {
            let text = format!("---\nname: skill-{number}\ndescription: Does it\n---\n\n{body}\n");
            it.document(&format!("skill-{number}"), text)
        });
        // One core has to do the work of many.
        let find = format!("taskset -c 0 {} find --no-cache beans --dir skills", program());
        let at_terminal = |line: &str| {
            let line = format!("stty rows 9 cols 80; {line}");
            world.run_script(&format!("TERM=xterm script -qefc '{line}' /dev/null"))
        };
        let shown = at_terminal(&find);
        let (drawn, end) = shown.stdout().rsplit_once(" of 600").unwrap();
        assert!(drawn.contains("indexing skills  █"), "{:?}", shown.stdout());
        assert!(end.starts_with("\r\x1b[K") && !end.contains('█'), "{:?}", shown.stdout());
        let piped = world.run_script(&find);
        assert!(!piped.stderr.contains("indexing"), "{}", piped.stderr);
        for unseen in [format!("TERM=dumb {find}"), format!("{find} --json"), format!("{find} -q")]
        {
            let shown = at_terminal(&unseen);
            assert!(!shown.stdout().contains("\x1b[K"), "{unseen}: {:?}", shown.stdout());
        }
    }

    #[test]
    fn a_clock_runs_while_something_works() {
        let server = ModelServer::start([Answer::text("").then_hang()]);
        let world = brewing().file("skills/brew-coffee/scripts/wait.sh", "#!/bin/sh\nsleep 60\n");
        let ask = format!("ask Hi --dir skills --base-url {} --model m", server.url());
        let run = "run brew-coffee --script scripts/wait.sh --dir skills --yes".to_owned();
        for (line, clock) in [(ask, "asks `m` (step 1), "), (run, "running `brew-coffee`, ")] {
            let line = format!("exec {} {line}", program());
            let mut child = Command::new("script")
                .args(["-qefc", &line, "/dev/null"])
                .current_dir(world.path(""))
                .env("HOME", world.path("home"))
                .env("TERM", "xterm")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            hear(child.stdout.as_mut().unwrap(), clock);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn quiet_shows_a_warning_about_safety() {
        let toml = "[servers.x]\ncommand = \"sh\"\nargs = [\"-c\", \"echo mine > AGENTS.md\"]\nwrite = [\".\"]\ncwd = \".\"\n";
        for arguments in [&["servers", "x"][..], &["servers", "x", "-q"]] {
            let world = World::new().file("prowess.toml", toml);
            let ran = world.run(arguments.iter().chain(&["--config", "prowess.toml"]));
            let told = ran.stderr.lines().filter(|it| it.contains("AGENTS.md` (new)")).count();
            assert_eq!(told, 1, "{arguments:?} {}", ran.stderr);
        }
    }
}

mod who_mistypes_is_helped {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let world = brewing()
            .file("prowess.toml", "")
            .file("home/.local/state/prowess/sessions/monday.jsonl", "");
        for (line, near) in [
            ("lst", "list"),
            ("list --dri skills", "--dir"),
            ("list --jsn", "--json"),
            ("show brew-cofee --dir skills", "brew-coffee"),
            ("rule name-foldr", "name-folder"),
            ("doctor --client cursr", "cursor"),
            ("mcp install --client cursr", "cursor"),
            ("list --preset cladue", "claude"),
            ("config skil.depth", "skill.depth"),
            ("tool execute_comand", "execute_command"),
            ("sessions --remove mondy", "monday"),
            ("read brew-coffee scripts/grnd.sh --dir skills", "scripts/grind.sh"),
            ("help lst", "list"),
            ("mcp instal", "install"),
            ("list --profile specc", "spec"),
            ("check skils", "skills"),
            ("check skills/brew-cofee", "skills/brew-coffee"),
            ("find --queries skils", "skills"),
            ("list --config prowes.toml", "prowess.toml"),
        ] {
            let ran = world.run(line.split(' '));
            assert!(matches!(ran.code, Some(1 | 2)), "{line}");
            let hint = format!("hint: did you mean `{near}`?");
            assert!(ran.stderr.contains(&hint), "{line}: {}", ran.stderr);
        }
        let ran = world.run(["list", "--dir", "skils"]);
        assert!(ran.stderr.contains("hint: did you mean `skills`?"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("--depth"), "{}", ran.stderr);
        let ran = world.run(["doctor", "--client", "nope"]);
        assert!(!ran.stderr.contains("did you mean"), "nothing is near: {}", ran.stderr);
        let ran = world.run([OsStr::new("list"), OsStr::from_bytes(b"--\xff")]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{}", ran.stderr);
    }
}

mod every_fault_has_one_form {
    use super::*;

    #[test]
    fn a_command_line_that_makes_no_sense_is_told_as_all_else_is() {
        let world = brewing();
        for (line, error, hint) in [
            ("xyzzy", "unknown command `xyzzy`", "see `prowess --help`"),
            (
                "--dir list show --evel brief",
                "unexpected argument `--evel`",
                "did you mean `--level`?",
            ),
            ("rule all of", "unexpected argument `of`", "see `prowess rule --help`"),
            ("show", "`prowess show` needs `<NAME>`", "see `prowess show --help`"),
            ("list --color", "`--color` needs a value", "possible values: auto, always, never"),
            (
                "list --color red",
                "invalid value `red` for `--color`",
                "possible values: auto, always, never",
            ),
            (
                "find x --top 0",
                "invalid value `0` for `--top`: must be from 1 to 100",
                "see `prowess find --help`",
            ),
            (
                "catalog --budget x",
                "invalid value `x` for `--budget`: must be a number",
                "see `prowess catalog --help`",
            ),
            (
                "sessions --remove x --remove-older 3d",
                "`--remove` cannot be used with `--remove-older`",
                "see `prowess sessions --help`",
            ),
            (
                "servers a b",
                "`prowess servers` takes `LABEL` or a command, not both",
                "see `prowess servers --help`",
            ),
        ] {
            let ran = world.run(line.split(' '));
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{line}");
            assert_eq!(ran.stderr, format!("error: {error}\nhint: {hint}\n"), "{line}");
        }
    }

    #[test]
    fn a_name_that_does_not_exist_exits_1() {
        let world = World::new().skill("brew-coffee", "Brews").file("bad/SKILL.md", "no skill");
        let model = ["--provider", "scripted", "--model", "/dev/null"];
        let names = [
            "show none",
            "read none SKILL.md",
            "read brew-coffee none",
            "run none",
            "run --trust-project brew-coffee --script none",
            "doctor none",
            "lab none",
            "prepare none",
            "prepare --server none",
            "enable none",
            "disable none",
            "remove none",
            "undo none",
            "rule none",
            "config none",
            "tool none",
            "tool skill_none",
            "tool mcp__none__x",
            "tool read_file path=x --skill none",
            "servers none",
            "servers show none:x",
            "servers login none",
            "servers logout none",
            "sessions --remove none",
            "approvals --revoke none",
            "trust --revoke none",
            "ask --resume none x",
            "ask /none",
        ];
        for line in names {
            let words = line.split(' ').chain(SKILLS);
            let ran = match line.starts_with("ask") {
                true => world.run(words.chain(model)),
                false
                    if ["trust", "sessions", "approvals"].iter().any(|it| line.starts_with(it)) =>
                {
                    world.run(line.split(' '))
                }
                false => world.run(words),
            };
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{line}: {}", ran.stderr);
            assert!(ran.stderr.contains("error: "), "{line}: {}", ran.stderr);
        }
        for line in [
            "list none",
            "catalog none",
            "check none",
            "migrate none",
            "trace none",
            "list --dir none",
            "list --preset none",
            "doctor --client none",
            "mcp install --client none",
            "ask --provider none x",
            "lab --queries none",
            "prompt --history none",
        ] {
            let ran = world.run(line.split(' '));
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{line}: {}", ran.stderr);
        }
    }

    #[test]
    fn a_server_that_does_not_speak_the_protocol_is_shown_with_its_first_line() {
        let line = format!("Listening \\033[31mon stdio {}", "x".repeat(500));
        let toml =
            format!("[servers.x]\ncommand = \"sh\"\nargs = [\"-c\", 'printf \"{line}\\n\"']\n");
        let world = World::new().file("home/.config/prowess/prowess.toml", toml);
        let ran = world.run(["servers", "x"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let said = "its output is not JSON-RPC, and begins with `Listening on stdio xxx";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        assert!(!ran.stderr.contains(&"x".repeat(100)) && !ran.stderr.contains('\x1b'));
    }
}

mod what_people_see_is_kept {
    use super::*;

    #[test]
    fn every_command_has_a_transcript() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/transcripts"));
        let is_update = env::var_os("UPDATE").is_some();
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
            let kept = fs::read_to_string(&path).unwrap();
            let played = play(&kept);
            if is_update {
                fs::write(&path, played).unwrap();
            } else {
                assert_eq!(played, kept, "{}; `UPDATE=1` writes it anew", path.display());
            }
        }
        for name in super::names(World::new().run(["-h"]).stdout()) {
            assert!(names.contains(&name), "{name} has no transcript");
        }
    }

    /// Returns the world of the transcripts. Its path has the same length on every machine, since
    /// lines are wrapped by their length.
    fn stage() -> World {
        World::within(Path::new("/tmp"))
            .skill("brew-coffee", "Brews coffee in any pot there is. Use when somebody is tired or asks for coffee.")
            .file("skills/brew-coffee/scripts/grind.sh", "#!/bin/sh\necho \"ground for $1\"\n")
            .document("steep-tea", "---\nname: steep-tea\ndescription: Use when: somebody is cold\nfoo: bar\n---\n\nPour. Wait.\n")
            .file("plugins/lamp/plugin-manifest.json", r#"{"name": "lamp", "version": "1.0", "description": "Lights up"}"#)
    }

    /// Runs the lines of a transcript that begin with `$`, in a new world and at a width of
    /// `columns`.
    fn play(transcript: &str) -> String {
        let mut world = stage();
        let mut columns = 80;
        let mut out = String::new();
        for line in transcript.lines() {
            if let Some(number) = line.strip_prefix("columns ") {
                columns = number.parse().unwrap();
                world = stage();
                out.push_str(&format!("columns {columns}\n"));
            } else if let Some(arguments) = line.strip_prefix("$ prowess") {
                let ran = at_width(&world, columns, arguments.trim());
                let shown = ran.stdout().replace(program(), "prowess");
                // The working directory first: it is in the folder of both.
                let folders = [world.path("skills"), world.path("home")];
                let folders = folders.map(|it| it.parent().unwrap().display().to_string());
                let shown = folders
                    .iter()
                    .fold(shown, |shown, it| shown.replace(it, "/tmp/prowess-specs-000000"));
                let code = ran.code.unwrap();
                let status = if code == 0 { String::new() } else { format!("[exits {code}]\n") };
                out.push_str(&format!("\n{line}\n{}\n{status}", shown.trim_end()));
            }
        }
        out
    }
}
