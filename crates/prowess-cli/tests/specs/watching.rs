//! A library that follows its files: with notifications of the system, without, and in `list
//! --follow`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use crate::{
    model_server::{Answer, KEY, ModelServer},
    world::{PATIENCE, World, program, until},
};

fn text(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n")
}

/// The program that follows a list, and its output lines.
struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Follows `skills/`, and reads the list.
    fn of(world: &World, arguments: &[&str], listed: usize) -> Self {
        let named = ["list", "--watch", "--dir", "skills"];
        let following = Self::start(&mut world.command(named.iter().chain(arguments)));
        (0..listed).for_each(|_| drop(following.line()));
        following
    }

    fn line(&self) -> String {
        // The library scans by itself only after a minute.
        self.lines.recv_timeout(PATIENCE).expect("a line comes")
    }

    fn json(&self) -> Json {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Ends it, and returns the exit code and stderr.
    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.ended()
    }

    fn ended(&mut self) -> (Option<i32>, String) {
        until("it has ended", || self.child.try_wait().unwrap().is_some());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

mod a_keeper_hears_of_changes {
    use super::*;

    #[test]
    fn what_is_mounted_over_a_directory_is_seen() {
        let world = World::new().skill("one", "below").skill_in("other", "two", "above");
        let script = "mount --bind other skills && umount skills || exit 7
            mkfifo told; \"$0\" list --watch --quiet --dir skills > told & exec 3< told
            read -r line <&3; echo \"$line\"
            mount --bind other skills; read -r line <&3; echo \"$line\"; read -r line <&3; echo \"$line\"
            umount -l skills; read -r line <&3; echo \"$line\"; read -r line <&3; echo \"$line\"
            kill -INT $!";
        let mut command = Command::new("timeout");
        command.current_dir(world.path("")).env("HOME", world.path("home"));
        command.args(["40", "unshare", "-Urm", "sh", "-c", script, program()]);
        let ran = command.output().unwrap();
        // Not every machine allows mounts.
        if matches!(ran.status.code(), Some(1 | 7)) {
            return;
        }
        let said = String::from_utf8(ran.stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines, ["one\tbelow", "- one", "+ two  above", "+ one  below", "- two"]);
    }

    #[test]
    fn a_skill_that_comes_during_a_conversation_is_used_in_it() {
        let server = ModelServer::start([Answer::text("done")]);
        let world = World::new()
            .skill("zz-last", "Closes the day. Use at the end of the day.")
            .file("home/.config/prowess/prowess.toml", "[skill]\nwatch = true\n");
        let named = ["chat", "--base-url", &server.url(), "--model", "test-model"];
        let mut command = world.command(named.iter().chain(&["--dir", "skills"]));
        let mut child = command
            .env("OPENAI_API_KEY", KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut typing = child.stdin.take().unwrap();
        let mut skills = || {
            typing.write_all(b"/skills\n").unwrap();
            let heard = lines.by_ref().map(Result::unwrap);
            let mut names: Vec<String> = Vec::new();
            for line in heard {
                names.push(line.split(' ').next().unwrap().to_owned());
                if line.starts_with("zz-last") {
                    break;
                }
            }
            names
        };
        assert_eq!(skills(), ["zz-last"]);
        let paint = "Paint stripes on a zebra. Use when a zebra has lost its stripes.";
        let world = world.skill("paint-zebra", paint);
        until("the skill is there", || skills() == ["paint-zebra", "zz-last"]);
        typing.write_all(b"My zebra has lost its stripes.\n").unwrap();
        drop(typing);
        assert!(child.wait().unwrap().success());
        assert!(server.last().to_string().contains("# paint-zebra"), "{}", server.last());
        drop(world);
    }
}

mod where_the_system_cannot_tell_somebody_looks {
    use super::*;

    const LIST: &str = "list --watch --dir skills";

    /// Runs the program with a limit of the system; `None` if the limit cannot be set.
    fn within(world: &World, limit: &str, arguments: &str) -> Option<Following> {
        let script = format!("echo {limit} && exec \"$0\" {arguments}");
        let command = || {
            let mut command = Command::new("unshare");
            command.current_dir(world.path("")).env("HOME", world.path("home"));
            command.args(["-Ur", "sh", "-c"]);
            command
        };
        let tried = command().arg(format!("echo {limit}")).output();
        let can = tried.is_ok_and(|it| it.status.success() && it.stderr.is_empty());
        can.then(|| Following::start(command().args([&*script, program()])))
    }

    #[test]
    fn too_few_watches_are_told_once_and_changes_are_still_seen() {
        for (limit, named) in [
            ("3 > /proc/sys/user/max_inotify_watches", "fs.inotify.max_user_watches"),
            ("0 > /proc/sys/user/max_inotify_instances", "fs.inotify.max_user_instances"),
        ] {
            let world = World::new().skill("one", "a").skill("two", "b");
            let Some(following) = within(&world, limit, LIST) else { return };
            assert_eq!(following.line(), "one\ta");
            assert_eq!(following.line(), "two\tb");
            for number in 0..3 {
                world.write("skills/two/SKILL.md", text("two", &format!("changed {number}")));
                assert_eq!(following.line(), "~ two  SKILL.md");
            }
            let (code, said) = following.end(Signal::INT);
            assert_eq!((code, said.matches(named).count()), (Some(0), 1), "{said}");
            assert_eq!(said.matches("polling for changes").count(), 1, "{said}");
        }
        // Enough at the start, and too few later.
        let world = World::new().skill("one", "a");
        let steps = world.path("skills/one").ancestors().count();
        let limit = format!("{} > /proc/sys/user/max_inotify_watches", steps + 4);
        let Some(following) = within(&world, &limit, LIST) else { return };
        assert_eq!(following.line(), "one\ta");
        for number in 0..20 {
            world.write(format!("skills/one/folder-{number:02}/notes.md"), "x");
        }
        while !following.line().contains("folder-19") {}
        world.write("skills/one/folder-19/notes.md", "more");
        assert_eq!(following.line(), "~ one  folder-19/notes.md");
        let (code, said) = following.end(Signal::INT);
        assert_eq!((code, said.matches("polling for changes").count()), (Some(0), 1), "{said}");
    }

    #[test]
    fn a_server_that_has_to_look_later_says_so_too() {
        let world = World::new().skill("one", "a");
        let steps = world.path("skills/one").ancestors().count();
        let limit = format!("{} > /proc/sys/user/max_inotify_watches", steps + 4);
        let Some(mut serving) = within(&world, &limit, "mcp --watch --dir skills") else { return };
        let mut asking = serving.child.stdin.take().unwrap();
        let client = r#"{"name":"test","version":"1"}"#;
        writeln!(
            asking,
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{client}}}}}"#
        )
        .unwrap();
        assert!(serving.line().contains("serverInfo"));
        writeln!(asking, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        for number in 0..20 {
            world.write(format!("skills/one/folder-{number:02}/notes.md"), "x");
        }
        assert!(serving.line().contains("list_changed"));
        let mut said = String::new();
        let mut stderr = BufReader::new(serving.child.stderr.take().unwrap());
        stderr.read_line(&mut said).unwrap();
        assert!(said.contains("fs.inotify.max_user_watches"), "{said}");
        world.write("skills/one/folder-19/notes.md", "more");
        assert!(serving.line().contains("list_changed"));
        drop(asking);
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    }
}

mod the_list_can_be_followed {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn who_follows_the_addresses_has_the_list() {
        let world = World::new()
            .skill("one", "First")
            .skill("two", "Second")
            .skill_in("more", "one", "Other");
        let following = Following::of(&world, &["--dir", "more", "--json"], 0);
        let address = |it: &Json| it["address"].as_str().unwrap().to_owned();
        let first = following.json();
        let mut kept: BTreeMap<String, Json> = first["skills"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (address(it), it.clone()))
            .collect();
        let mut agrees = |what: &str| {
            loop {
                let listed = world.list_with(&["--dir", "skills", "--dir", "more"]);
                let listed: BTreeMap<String, Json> =
                    listed.skills().iter().map(|it| (address(it), it.clone())).collect();
                if kept == listed {
                    return;
                }
                let next = following.lines.recv_timeout(PATIENCE);
                let next = next.unwrap_or_else(|_| panic!("{what}: {kept:?}"));
                let library_changes: Json = serde_json::from_str(&next).unwrap();
                match library_changes["event"].as_str().unwrap() {
                    "added" | "changed" => drop(
                        kept.insert(address(&library_changes), library_changes["skill"].clone()),
                    ),
                    "removed" => drop(kept.remove(&address(&library_changes))),
                    _ => {}
                }
            }
        };
        agrees("at the start");
        fs::remove_dir_all(world.path("skills/one")).unwrap();
        agrees("one that hides another is removed");
        fs::rename(world.path("skills/two"), world.path("skills/moved")).unwrap();
        agrees("one is moved");
        world.write("skills/one/SKILL.md", text("one", "Again"));
        agrees("one is hidden again");
    }

    #[test]
    fn on_a_narrow_terminal_a_finding_is_told_to_its_end() {
        let world = World::new().skill("one", "First");
        let line = format!(
            "stty rows 50 cols 40; {} list --watch --quiet --color never --dir skills",
            program()
        );
        let mut command = Command::new("script");
        command.current_dir(world.path("")).env("HOME", world.path("home"));
        let following = Following::start(command.args(["-qefc", &line, "/dev/null"]));
        assert_eq!(following.line().trim_end(), "one  First");
        world.write("skills/one/SKILL.md", "broken");
        let mut told = String::new();
        while !(told.contains("the last valid version of") && told.contains("does not begin with"))
        {
            let line = following.line();
            let line = line.trim_end();
            assert!(line.chars().count() <= 40, "{line:?}");
            told.push_str(line.trim_start());
            told.push(' ');
        }
    }

    #[test]
    fn each_change_is_a_line() {
        let world = World::new().skill("one", "First").skill("two", "Second");
        let following = Following::of(&world, &[], 2);
        let world = world.skill("three", "Third");
        assert_eq!(following.line(), "+ three  Third");
        world.write("skills/one/notes.md", "x");
        assert_eq!(following.line(), "~ one  notes.md");
        world.write("skills/two/SKILL.md", "broken");
        let mut found = [following.line(), following.line()];
        found.sort();
        let place = "skills/two/SKILL.md";
        assert!(found[0].starts_with(&format!("! error[frontmatter-missing]  {place}:1: ")));
        assert!(found[1].starts_with(&format!("! error[kept-last-good]  {place}: ")));
        let world = world.skill("two", "Mended");
        assert_eq!(following.line(), "~ two  SKILL.md");
        let mut cleared = [following.line(), following.line()];
        cleared.sort();
        assert_eq!(cleared, found.map(|it| it.replacen('!', "✓", 1)));
        fs::remove_dir_all(world.path("skills/one")).unwrap();
        assert_eq!(following.line(), "- one");
        fs::rename(world.path("skills/two"), world.path("skills/moved")).unwrap();
        assert_eq!(following.line(), "~ two  SKILL.md");
        let (code, said) = following.end(Signal::INT);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("2 skills") && said.contains("Ctrl-C"), "{said}");
    }

    #[test]
    fn with_json_each_line_is_a_document() {
        let world = World::new().skill("one", "First");
        let following = Following::of(&world, &["--json"], 0);
        let mut list = following.json();
        assert_eq!(list["event"].take(), "list");
        list.as_object_mut().unwrap().remove("event");
        assert_eq!(list, world.list().0);
        let keys = |it: &Json| it.as_object().unwrap().keys().cloned().collect::<Vec<_>>();

        let world = world.skill("two", "Second");
        let added = following.json();
        assert_eq!(keys(&added), ["event", "address", "skill"]);
        assert_eq!((&added["event"], &added["address"]), (&"added".into(), &"two".into()));
        assert_eq!(&added["skill"], world.list().skill("two"));
        world.write("skills/two/a.md", "x");
        let changed = following.json();
        assert_eq!(keys(&changed), ["event", "address", "skill", "files"]);
        assert_eq!(changed["event"], "changed");
        assert_eq!(changed["files"], serde_json::json!(["a.md"]));
        assert_eq!(&changed["skill"], world.list().skill("two"));
        fs::remove_dir_all(world.path("skills/two")).unwrap();
        let removed = following.json();
        assert_eq!(keys(&removed), ["event", "address", "path"]);
        assert_eq!(removed["event"], "removed");
        assert_eq!(removed["path"], "skills/two/SKILL.md");
        world.write("skills/bad/SKILL.md", "none");
        let found = following.json();
        assert_eq!(
            (keys(&found), &found["event"]),
            (vec!["event".into(), "finding".into()], &"found".into())
        );
        assert_eq!(found["finding"], world.list().findings()[0]);
        world.remove("skills/bad/SKILL.md");
        let cleared = following.json();
        assert_eq!(cleared["event"], "cleared");
        assert_eq!(cleared["finding"], found["finding"]);
        assert_eq!(following.end(Signal::INT).0, Some(0));
    }

    #[test]
    fn only_skills_with_a_tag_are_followed_when_one_is_given() {
        let tagged = |tag: &str| format!("---\nname: one\ndescription: a\ntags: [{tag}]\n---\n");
        let world = World::new().document("one", tagged("other")).document("two", tagged("mine"));
        world.write("skills/two/SKILL.md", tagged("mine").replace("one", "two"));
        let following = Following::of(&world, &["--tag", "mine"], 1);
        world.write("skills/one/SKILL.md", tagged("mine"));
        assert_eq!(following.line(), "+ one  a");
        world.write("skills/one/SKILL.md", tagged("other"));
        assert_eq!(following.line(), "- one");
    }

    #[test]
    fn a_change_cannot_move_the_cursor() {
        let world = World::new().skill("one", "First");
        let following = Following::of(&world, &[], 1);
        world.write(
            "skills/bad/SKILL.md",
            "---\nname: bad\ndescription: \"c\\e[1Ad\\u202E\"\n---\n",
        );
        assert_eq!(following.line(), "+ bad  c\\u{1b}[1Ad\\u{202e}");
        world.write("skills/one/x\x1b[2J.md", "x");
        let rest = std::iter::from_fn(|| Some(following.line()));
        let changed = rest.take(20).find(|it| it.starts_with('~')).unwrap();
        assert_eq!(changed, "~ one  x\\u{1b}[2J.md");
        world.write("skills/\x1b[2J/SKILL.md", "none");
        let found = following.line();
        assert!(found.contains("  skills/\\u{1b}[2J/SKILL.md:1: "), "{found:?}");
        assert_eq!(following.end(Signal::INT).0, Some(0));
    }

    #[test]
    fn an_interrupt_ends_it_well() {
        for signal in [Signal::INT, Signal::TERM] {
            let world = World::new().skill("one", "First");
            let following = Following::of(&world, &["--quiet"], 1);
            assert_eq!(following.end(signal), (Some(0), String::new()));
        }
    }

    #[test]
    fn it_ends_when_nobody_reads_any_more() {
        let world = World::new().skill("one", "First");
        let ran = world.run_script(
            "{ \"$0\" list --watch --dir skills --quiet; echo \"exit $?\" >&2; } | head -n 1",
        );
        assert_eq!((ran.stdout(), &*ran.stderr), ("one\tFirst\n", "exit 0\n"));
    }

    #[test]
    fn nothing_to_watch_is_a_fault() {
        let world = World::new();
        let ran = world.folder("empty").run(["list", "--watch", "--cwd", "empty"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("no directory to watch"), "{}", ran.stderr);
        assert!(ran.stderr.contains("--dir DIR"), "{}", ran.stderr);
    }
}
