//! Stores: saving, finding, deleting, and failures.

use std::{
    collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path, thread,
    time::Duration,
};

use prowess::{CompositeStep, Definition, Manifest, Status, Type};
use prowess_runtime::{FileStore, SkillRecord, Store, store::StoreError};
use serde_json::{Value as Json, json};

use crate::world::{SKILLS, World};

/// Returns an instruction skill.
fn entry(name: &str, description: &str, content: &str) -> SkillRecord {
    let manifest =
        Manifest { name: name.into(), description: description.into(), ..Manifest::default() };
    let definition = Definition::Instruction { content: content.to_owned() };
    SkillRecord { manifest, definition, parameters: None, folder: None }
}

fn store(world: &World) -> FileStore {
    FileStore::open(world.path("skills")).unwrap()
}

/// Returns every file of a folder with its bytes, links with their targets; hidden ones too.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(path) = folders.pop() {
        for item in fs::read_dir(path).unwrap() {
            let path = item.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if path.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                all.insert(name, format!("-> {}", target.display()).into_bytes());
            } else if path.is_dir() {
                folders.push(path);
            } else {
                all.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    all
}

fn text(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

mod an_entry_is_saved_under_its_name {
    use super::*;

    #[test]
    fn what_is_saved_without_a_status_is_a_draft() {
        let world = World::new().skill("written", "By hand");
        let store = store(&world);
        let wanted = entry("one", "a", "text\n");
        assert_eq!(store.save(&wanted).unwrap().manifest.status, Some(Status::Draft));
        assert_eq!(world.list().skill("one")["status"], "draft");
        store.activate("one").unwrap();
        assert_eq!(store.save(&wanted).unwrap().manifest.status, Some(Status::Active));
        let mut active = entry("two", "b", "text\n");
        active.manifest.status = Some(Status::Active);
        assert_eq!(store.save(&active).unwrap().manifest.status(), Status::Active);
        assert!(!text(&world, "skills/two/SKILL.md").contains("status"));
        // A skill written by hand is active, and stays active.
        let saved = store.save(&entry("written", "Changed", "text\n")).unwrap();
        assert!(saved.manifest.is_active());
        assert!(!text(&world, "skills/written/SKILL.md").contains("status"));
    }
}

mod a_skill_is_put_in_and_out_of_use {
    use super::*;

    #[test]
    fn deactivating_changes_the_status_alone() {
        let before = "\u{FEFF}---\r\n# ours\r\nname: one\r\nx: [a,  b]   # odd\r\nstatus: active # for now\r\ndescription: >\r\n  folded\r\n---\r\n body  \r\n";
        let world = World::new().document("one", before);
        let entry = store(&world).deactivate("one").unwrap();
        assert_eq!(entry.manifest.status, Some(Status::Disabled));
        assert_eq!(
            text(&world, "skills/one/SKILL.md"),
            before.replace(": active #", ": disabled #")
        );
        assert_eq!(world.list().skill("one")["status"], "disabled");
    }

    #[test]
    fn what_cannot_be_edited_safely_stays_as_it_is() {
        for text in [
            "---\nname: one\ndescription: a\nstatus: active\nstatus: draft\n---\n",
            "---\n{name: one, description: a}\n---\n",
        ] {
            let world = World::new().document("one", text);
            let error = store(&world).deactivate("one").unwrap_err();
            assert!(matches!(error, StoreError::NotEdited { .. }), "{error}");
            assert!(error.to_string().contains("was not changed"), "{error}");
            assert_eq!(self::text(&world, "skills/one/SKILL.md"), text);
        }
        let world = World::new().skill("one", "a");
        for command in ["disable", "enable", "remove"] {
            let ran = world.run([command, "one", "--dir", "skills/one"]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{command}: {}", ran.stderr);
            assert!(ran.stderr.contains("is a skill and not a folder of skills"), "{}", ran.stderr);
        }
    }
}

mod a_deleted_skill_can_be_brought_back {
    use super::*;

    #[test]
    fn s_04_deleting_removes_the_whole_folder() {
        let world =
            World::new().skill("one", "a").file("skills/one/a/b.txt", "b").skill("two", "b");
        store(&world).delete("one").unwrap();
        assert!(!world.path("skills/one").exists());
        assert_eq!(world.list().names(), ["two"]);
        assert_eq!(world.list().findings(), [] as [Json; 0]);
        let error = store(&world).delete("one").unwrap_err();
        assert!(matches!(error, StoreError::NoSuchSkill { .. }), "{error}");
    }
}

mod a_change_is_whole_or_not_made {
    use super::*;

    fn unfinished(world: &World) -> Vec<String> {
        let names = fs::read_dir(world.path("skills")).unwrap();
        let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|it| it.starts_with('.') && it != ".trash").collect()
    }

    #[test]
    fn killing_the_program_at_any_time_loses_nothing() {
        let world = World::new().skill("stays", "Stays");
        let stays = fs::read(world.path("skills/stays/SKILL.md")).unwrap();
        let content = "line\n".repeat(2000);
        world.write("content", &content);
        let mut random = 0x2545_F491_4F6C_DD1D_u64;
        let mut there = false;
        let (mut killed, mut done) = (0, 0);
        // From long before it writes to long after it has ended, however fast this machine is.
        let mut longest = 20_000.0;
        for round in 0..60_u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let arguments: &[&str] = match (there, round % 3) {
                (false, _) => {
                    &["create", "one", "--description", "a", "--file", "content", "--dir", "skills"]
                }
                (true, 0) => &["remove", "one", "--dir", "skills"],
                (true, 1) => &["disable", "one", "--dir", "skills"],
                (true, _) => &["enable", "one", "--dir", "skills"],
            };
            let share = (random >> 33) as f64 / f64::from(1_u32 << 31);
            let ended =
                world.run_killed(arguments, Duration::from_micros((longest * share) as u64));
            longest *= if ended.is_none() { 1.15 } else { 0.9 };
            let reported = ended == Some(0);
            killed += usize::from(ended.is_none());
            done += usize::from(reported);
            let now = store(&world).get("one");
            let is_there = now.is_ok();
            if reported {
                assert_eq!(is_there, arguments[0] != "remove", "round {round}");
            }
            if let Ok(now) = now {
                assert_eq!(now.definition, Definition::Instruction { content: content.clone() });
                let status = now.manifest.status();
                match arguments[0] {
                    "disable" if reported => assert_eq!(status, Status::Disabled),
                    "create" | "enable" if reported => assert_eq!(status, Status::Active),
                    _ => {}
                }
            } else {
                assert!(!there || arguments[0] == "remove", "round {round}: it is lost");
            }
            there = is_there;
            assert_eq!(fs::read(world.path("skills/stays/SKILL.md")).unwrap(), stays);
        }
        assert!(killed > 5 && done > 5, "{killed} were killed, {done} came to their end");
        store(&world).save(&entry("last", "a", "")).unwrap();
        assert_eq!(unfinished(&world), [""; 0]);
    }

    #[test]
    fn a_full_disk_keeps_what_was_there() {
        let world = World::new().skill("one", "a");
        let before = tree(&world.path("skills"));
        world.write("large", "x\n".repeat(100_000));
        let create = "create new --description a --file large --dir skills";
        // No file may be larger than a few KiB, and a larger write fails instead of killing the
        // process.
        let limited = world.run_script(&format!("trap '' XFSZ; ulimit -f 8; \"$0\" {create}"));
        assert_eq!(limited.code, Some(2), "{}", limited.stderr);
        assert!(limited.stderr.contains("nothing has changed"), "{}", limited.stderr);
        assert!(limited.stderr.contains("free some disk space"), "{}", limited.stderr);
        assert_eq!(tree(&world.path("skills")), before);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs to mount a file system")]
    fn a_small_file_system_keeps_what_was_there() {
        let world = World::new();
        world.write("large", "x\n".repeat(100_000));
        let ran = world.run_script(
            "exec unshare -Urm sh -c 'mount -t tmpfs -o size=64k small skills || exit 77\n\
             \"$0\" create one --description a --definition \"{}\" --dir skills || exit 3\n\
             \"$0\" create new --description a --file large --dir skills; test $? = 2 || exit 4\n\
             \"$0\" list --dir skills && ls -A skills' \"$0\"",
        );
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("No space left"), "{}", ran.stderr);
        assert!(ran.stdout().starts_with("skills/one/SKILL.md\none\t"), "{}", ran.stdout());
        assert!(ran.stdout().ends_with("\none\n"), "{}", ran.stdout());
    }

    #[test]
    fn a_store_that_cannot_be_written_can_be_read() {
        let world = World::new().skill("one", "a").skill("two", "b").file("skills/one/x.md", "x");
        store(&world).delete("two").unwrap();
        let before = tree(&world.path("skills"));
        for path in ["skills", "skills/one"] {
            fs::set_permissions(world.path(path), fs::Permissions::from_mode(0o555)).unwrap();
        }
        let list = world.run_without_rights(&["list", "--json", "--dir", "skills"]);
        assert_eq!(list.said().names(), ["one"]);
        let shown = world.run_without_rights(&["read", "one", "x.md", "--dir", "skills"]);
        assert_eq!(shown.stdout(), "x");
        for arguments in [
            &["create", "new", "--description", "a"][..],
            &["new", "new"],
            &["disable", "one"],
            &["remove", "one"],
            &["undo"],
        ] {
            let ran = world.run_without_rights(&[arguments, &SKILLS].concat());
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments:?} {}", ran.stderr);
            assert!(ran.stderr.contains("permissions"), "{arguments:?} {}", ran.stderr);
        }
        for path in ["skills", "skills/one"] {
            fs::set_permissions(world.path(path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(tree(&world.path("skills")), before);
    }

    #[test]
    fn too_few_files_are_no_harm() {
        let world = World::new().skill("one", "a");
        let before = tree(&world.path("skills"));
        let (mut refused, mut done) = (0, 0);
        for limit in 4..14 {
            for command in ["create new --description a", "disable one"] {
                let ran = world
                    .run_script(&format!("ulimit -n {limit}; exec \"$0\" {command} --dir skills"));
                match ran.code {
                    Some(0) => {
                        done += 1;
                        let undo =
                            if command == "disable one" { "enable one" } else { "remove new" };
                        let undone = world.run(format!("{undo} --dir skills").split(' '));
                        assert_eq!(undone.code, Some(0), "{}", undone.stderr);
                    }
                    // The loader of programs needs some, too.
                    Some(127) => {}
                    code => {
                        refused += 1;
                        assert_eq!(code, Some(2), "{limit} {command}: {}", ran.stderr);
                    }
                }
                let mut now = tree(&world.path("skills"));
                now.retain(|path, _| !path.starts_with(".trash"));
                assert_eq!(now, before, "{limit} {command}");
            }
        }
        assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
    }
}

mod writers_wait_for_each_other_and_readers_for_nobody {
    use super::*;

    #[test]
    fn twenty_writers_lose_nothing() {
        let world = World::new().skill("shared", "a");
        let path = world.path("skills");
        thread::scope(|scope| {
            for writer in 0..20 {
                let store = FileStore::open(&path).unwrap().with_patience(Duration::from_secs(60));
                scope.spawn(move || {
                    for number in 0..10 {
                        let name = format!("w{writer}-{number}");
                        store.save(&entry(&name, "a", &name)).unwrap();
                        store.save_resource("shared", &format!("{name}.txt"), b"x").unwrap();
                    }
                    store.set_status("shared", Status::ALL[writer % 3]).unwrap();
                });
            }
            for process in 0..5 {
                let world = &world;
                scope.spawn(move || {
                    for number in 0..4 {
                        let name = format!("p{process}-{number}");
                        let arguments = ["create", &name, "--description", "a", "--dir", "skills"];
                        let ran = world.run(arguments);
                        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
                    }
                });
            }
        });
        let stock = FileStore::open(&path).unwrap().list().unwrap();
        assert_eq!((stock.entries.len(), stock.findings.len()), (1 + 20 * 10 + 5 * 4, 0));
        assert_eq!(fs::read_dir(path.join("shared")).unwrap().count(), 1 + 20 * 10);
        assert!(
            fs::read_dir(&path)
                .unwrap()
                .all(|it| { !it.unwrap().file_name().to_str().unwrap().starts_with('.') })
        );
    }

    #[test]
    fn a_busy_store_says_so() {
        let world = World::new().skill("one", "a");
        let lock = fs::File::open(world.path("skills")).unwrap();
        lock.lock().unwrap();
        let store = store(&world).with_patience(Duration::from_millis(50));
        for result in
            [store.deactivate("one").map(drop), store.delete("one"), store.undo(None).map(drop)]
        {
            let error = result.unwrap_err();
            assert!(matches!(error, StoreError::Busy { .. }), "{error}");
            assert!(error.to_string().contains("locked by another process"), "{error}");
        }
        assert!(store.get("one").unwrap().manifest.is_active());
        assert_eq!(world.list().names(), ["one"]);
        drop(lock);
        store.deactivate("one").unwrap();
    }
}

mod commands_write_to_a_store {
    use super::*;

    #[test]
    fn create_makes_a_skill_of_each_type() {
        let world = World::new().file("run.sh", "echo \"$PARAM_NAME\"\n").file(
            "steps.json",
            r#"{"steps": [{"tool": "read_file", "params": {"path": "a"}}, {"tool": "b"}]}"#,
        );
        let create = |name: &str, kind: &str, more: &[&str], stdin: &str| {
            let arguments =
                ["create", name, "--type", kind, "--description", "Does it", "--dir", "skills"];
            let ran = world.run_reading(stdin, &[&arguments[..], more].concat());
            assert_eq!(
                (ran.code, ran.stdout()),
                (Some(0), &*format!("skills/{name}/SKILL.md\n")),
                "{}",
                ran.stderr
            );
            let is_told = ran.stderr.contains("it has no instructions yet");
            assert_eq!(is_told, name == "empty", "{}", ran.stderr);
        };
        create("flag", "script", &["--definition", r#"{"script": "echo hi"}"#], "");
        create("file", "script", &["--file", "run.sh"], "");
        create("stdin", "script", &[], "echo in\n");
        create("dash", "script", &["--file", "-"], "echo dash\n");
        create("json", "script", &[], r#"{"script": "echo json"}"#);
        create("steps", "composite", &["--file", "steps.json"], "");
        create("fill", "template", &[], "Hello {{.name}}\n");
        create("told", "instruction", &[], "# Told\n\nDo it.\n");
        create("empty", "instruction", &["--definition", "{}"], "");
        let get = |name: &str| store(&world).get(name).unwrap().definition;
        let script = |text: &str| Definition::Script { script: format!("{text}\n") };
        assert_eq!(get("flag"), script("echo hi"));
        assert_eq!(get("file"), script("echo \"$PARAM_NAME\""));
        assert_eq!([get("stdin"), get("dash")], [script("echo in"), script("echo dash")]);
        assert_eq!(get("json"), script("echo json"));
        assert_eq!(get("fill"), Definition::Template { template: "Hello {{.name}}\n".into() });
        assert_eq!(get("told"), Definition::Instruction { content: "# Told\n\nDo it.\n".into() });
        assert_eq!(get("empty"), Definition::Instruction { content: String::new() });
        let step = |tool: &str, params: Json| CompositeStep {
            tool: tool.into(),
            params: params.as_object().unwrap().clone(),
        };
        let steps = vec![step("read_file", json!({"path": "a"})), step("b", json!({}))];
        assert_eq!(get("steps"), Definition::Composite { steps });
        let said = world.list();
        assert!(said.skills().iter().all(|it| it["status"] == "active"), "{said:?}");
        assert_eq!(said.skill("steps")["type"], "composite");
        let (code, said) = world.check("skills", &[]);
        assert_eq!(code, Some(0), "{said:?}");
        let brackets = "create claude-one --description <b> --definition {} --dir skills";
        let ran = world.run(brackets.split(' '));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for rule in ["name-reserved", "description-brackets"] {
            assert!(ran.stderr.contains(rule), "{}", ran.stderr);
        }
    }

    #[test]
    fn create_refuses_what_is_wrong_and_writes_nothing() {
        let world = World::new()
            .skill("taken", "a")
            .file("latin1", b"\xE9")
            .file("nul", "echo a\0b")
            .file("twice", r#"{"script":"echo a","script":"echo b"}"#)
            .pipe("pipe");
        let before = tree(&world.path("skills"));
        let create = |arguments: &str| {
            let arguments: Vec<&str> = arguments.split(' ').collect();
            world.run([&["create", "--description", "a"], &SKILLS[..], &arguments].concat())
        };
        for arguments in [
            "new --type script",
            "new --type script --definition {}",
            r#"new --type script --definition {"script":1}"#,
            r#"new --type script --definition {"template":"x"}"#,
            r#"new --type script --definition {"script":"x","more":1}"#,
            r#"new --type script --definition ["x"]"#,
            "new --type script --definition nonsense",
            "new --type script --file latin1",
            r#"new --type script --definition {"script":"rm\t-rf\t/"}"#,
            r#"new --type script --definition {"script":"\n"}"#,
            r#"new --type template --definition {"template":"{{if}}"}"#,
            r#"new --parameters {"type":7} --type script --definition {"script":"x"}"#,
            "new --type template",
            "new --type composite",
            r#"new --type composite --definition {"steps":[]}"#,
            r#"new --type composite --definition {"steps":[{"params":{}}]}"#,
            r#"new --type composite --definition {"steps":[{"tool":"a","params":1}]}"#,
            r#"new --type composite --definition {"steps":[{"tool":"a","parms":{}}]}"#,
            r#"new --parameters {"type":"array"} --type script --definition {"script":"x"}"#,
            r#"new --parameters {"type":["object","null"]} --type script --definition {"script":"x"}"#,
            r#"new --type instruction --definition {"content":1}"#,
            "new --tags a,,b --definition {}",
            "new --parameters nonsense",
            "new --parameters [] --type script --definition {\"script\":\"x\"}",
            "new --type script --file nul",
            "new --type script --file twice",
            "new --type script --file pipe",
            "new --parameters @pipe",
            r#"new --type script --definition {"script":"a","script":"b"}"#,
            r#"new --parameters {"type":"object","type":"object"}"#,
            "taken",
            "../new",
            "New",
        ] {
            let ran = create(arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{arguments}: {}", ran.stderr);
            assert!(ran.stderr.starts_with("error: "), "{arguments}: {}", ran.stderr);
        }
        for arguments in ["new --type script --file nowhere", "new --parameters @nowhere"] {
            let ran = create(arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments}: {}", ran.stderr);
            assert!(ran.stderr.contains("`nowhere`"), "{arguments}: {}", ran.stderr);
        }
        let bare = create(r#"new --type template --definition {"template":"{{name}}"}"#);
        assert!(bare.stderr.contains("`{{.name}}`"), "{}", bare.stderr);
        let unknown = create("new --type recipe");
        assert_eq!(unknown.code, Some(2));
        for kind in Type::ALL {
            assert!(unknown.stderr.contains(kind.as_str()), "{}", unknown.stderr);
        }
        assert_eq!(tree(&world.path("skills")), before);
    }

    #[test]
    fn a_script_for_another_program_than_a_shell_is_refused() {
        let world = World::new()
            .file("a.py", "#!/usr/bin/env python3\nimport os\n")
            .file("b.sh", "#!/bin/bash -e\ntrue\n");
        let create = |name: &str, file: &str| {
            let words = ["--type", "script", "--description", "d", "--file", file];
            world.run(["create", name, "--dir", "skills"].iter().chain(&words))
        };
        let ran = create("one", "a.py");
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("this one is for `python3`"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`scripts/`"), "{}", ran.stderr);
        assert!(!world.path("skills/one").exists());
        assert_eq!(create("two", "b.sh").code, Some(0));
    }

    #[test]
    fn the_fields_of_a_created_skill_are_stable() {
        let world = World::new().file("schema.json", r#"{"type": "object"}"#);
        let arguments = "create one --type template --description a --tags x,y --requires-approval --definition {\"template\":\"t\"} --parameters @schema.json --dir skills --json";
        let made = world.run(arguments.split(' ')).json();
        assert_eq!(
            made,
            json!({
                "name": "one", "description": "a", "type": "template", "status": "active",
                "scope": "project", "path": "skills/one/SKILL.md", "tags": ["x", "y"],
                "requires_approval": true, "definition": {"template": "t\n"},
                "parameters": {"type": "object"},
            })
        );
        let disabled = world.run("disable one --dir skills --json".split(' ')).json();
        assert_eq!(disabled["status"], "disabled");
        for command in ["enable", "remove", "undo"] {
            let said = world.run([command, "one", "--dir", "skills", "--json"]).json();
            assert_eq!(said, made, "{command}");
        }
    }

    #[test]
    fn disable_and_enable_restore_the_bytes() {
        let world = World::new().skill("one", "a");
        let before = fs::read(world.path("skills/one/SKILL.md")).unwrap();
        let run = |command: &str| {
            let ran = world.run([command, "one", "--dir", "skills"]);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "skills/one/SKILL.md\n"));
        };
        run("disable");
        assert_eq!(world.list().skill("one")["status"], "disabled");
        run("disable");
        run("enable");
        assert_eq!(fs::read(world.path("skills/one/SKILL.md")).unwrap(), before);
    }

    #[test]
    fn remove_says_how_to_undo_and_undo_does_it() {
        let world = World::new().skill("one", "a").document("broken", "nothing");
        let before = tree(&world.path("skills"));
        for name in ["one", "broken"] {
            let ran = world.run(["remove", name, "--dir", "skills"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let told = format!("`prowess undo {name}` restores it");
            assert!(ran.stderr.contains(&told), "{}", ran.stderr);
            assert!(!world.path("skills").join(name).exists());
            let ran = world.run(["undo", name, "--dir", "skills"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!(tree(&world.path("skills")), before);
        }
        let flags = ["--dir", "skills", "--depth", "2", "--profile", "lenient"];
        let ran = world.run([&["remove", "one"], &flags[..]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(world.run([&["undo", "one"], &flags[..]].concat()).code, Some(0));
        for name in ["one", "broken"] {
            assert_eq!(world.run(["remove", name, "--dir", "skills"]).code, Some(0));
        }
        // If a new one has taken its place, the alternative is named.
        world.write("skills/broken/SKILL.md", "nothing again");
        let ran = world.run(["undo", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{}", ran.stderr);
        for said in [
            "`broken` cannot be",
            "move the existing folder first",
            "`prowess undo one --dir skills`",
        ] {
            assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("undo broken"), "{}", ran.stderr);
        assert_eq!(world.run(["undo", "one", "--dir", "skills"]).code, Some(0));
        let ran = world.run(["undo", "--dir", "skills"]);
        assert!(ran.stderr.contains("move the existing folder first\n"), "{}", ran.stderr);
        fs::rename(world.path("skills/broken"), world.path("elsewhere")).unwrap();
        assert_eq!(world.run(["undo", "--dir", "skills"]).code, Some(0));
        assert_eq!(tree(&world.path("skills")), before);
        for arguments in [&["undo"][..], &["undo", "one"], &["remove", "nobody"]] {
            let ran = world.run([arguments, &SKILLS].concat());
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_skill_is_changed_where_list_shows_it() {
        let world = World::new().skill("one", "a").skill_in("more", "two", "b").folder("empty");
        for command in ["disable", "enable", "remove", "undo"] {
            let ran = world.run([command, "two", "--dir", "skills", "--dir", "more"]);
            assert_eq!(ran.code, Some(0), "{command}: {}", ran.stderr);
            assert_eq!(ran.stdout(), "more/two/SKILL.md\n", "{command}");
            let ran = world.run([command, "onee", "--dir", "skills"]);
            assert_eq!(ran.code, Some(1), "{command}: {}", ran.stderr);
        }
        let ran = world.run(["remove", "onee", "--dir", "skills"]);
        assert!(ran.stderr.contains("did you mean `one`?"), "{}", ran.stderr);
        for command in ["disable", "enable", "remove"] {
            let ran = world.run([command, "oen", "--dir", "empty", "--dir", "skills"]);
            assert!(ran.stderr.contains("did you mean `one`?"), "{command}: {}", ran.stderr);
        }
        let world = World::new()
            .file("prowess.toml", "[skill]\ndirectories = [\"a\", \"b\"]\n")
            .skill_in("a", "one", "a")
            .skill_in("b", "pdf", "b");
        assert_eq!(world.run(["remove", "pdf"]).code, Some(0));
        assert!(!world.path("b/pdf").exists());
        assert_eq!(world.run(["undo"]).code, Some(0));
        assert!(world.path("b/pdf/SKILL.md").exists());
        let world = World::new()
            .skill_in(".claude/skills", "own", "a")
            .skill_in("home/.claude/skills", "mine", "b")
            .skill_in("repo/plugins/x/skills", "deep", "c");
        for (name, folder, more) in [
            ("own", ".claude/skills/own", &[][..]),
            ("mine", "home/.claude/skills/mine", &[]),
            ("deep", "repo/plugins/x/skills/deep", &["--dir", "repo"]),
        ] {
            let ran = world.run([&["remove", name], more].concat());
            assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
            assert!(!world.path(folder).exists(), "{name}");
            let ran = world.run(["undo", name]);
            assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
            assert!(world.path(folder).join("SKILL.md").exists(), "{name}");
        }
        let bundled = World::new().run(["remove", "create-skill"]);
        assert_eq!((bundled.code, bundled.stdout()), (Some(1), ""), "{}", bundled.stderr);
    }

    #[test]
    fn remove_names_the_skill_that_takes_its_place() {
        let world = World::new()
            .skill("one", "a")
            .skill_in("others", "one", "b")
            .file("skills/one/prowess.toml", "[skill]\ndirectories = [\"..\"]\n");
        let ran = world.run(["remove", "one", "--dir", "skills", "--dir", "others"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("another skill `one` is still in `others/one`"),
            "{}",
            ran.stderr
        );
        assert!(!world.path("skills/one").exists());
        let ran = world.run(["remove", "one", "--dir", "others"]);
        assert!(!ran.stderr.contains("another skill"), "{}", ran.stderr);
        assert_eq!(world.run(["undo", "one", "--dir", "skills"]).code, Some(0));
        let ran = world.run(["remove", "one", "--config", "skills/one/prowess.toml"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!world.path("skills/one").exists());
    }

    #[test]
    fn what_was_removed_is_outside_the_skills_folder() {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/scripts/run.sh", "#!/bin/sh\n")
            .link("skills/one/link", "SKILL.md");
        let before = tree(&world.path("skills"));
        let ran = world.run(["remove", "one", "--dir", "skills"]);
        assert!(ran.stderr.contains("`prowess undo one` restores it"), "{}", ran.stderr);
        assert_eq!(fs::read_dir(world.path("skills")).unwrap().count(), 0);
        let trash = world.path("home/.local/state/prowess/trash/skills");
        assert_eq!(fs::metadata(&trash).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&trash).unwrap().count(), 1);
        fs::remove_dir(world.path("skills")).unwrap();
        let ran = world.run(["undo"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(tree(&world.path("skills")), before);
        assert_eq!(fs::read_dir(&trash).unwrap().count(), 0);

        // On another disk.
        let other = tempfile::tempdir_in("/dev/shm").unwrap();
        let state = other.path().to_str().unwrap();
        let there = |it: &[&str]| world.run_with_env(&[("XDG_STATE_HOME", state)], it);
        assert_eq!(there(&["remove", "one", "--dir", "skills"]).code, Some(0));
        assert!(!world.path("skills/one").exists());
        let kept = fs::read_dir(other.path().join("prowess/trash/skills")).unwrap();
        assert_eq!(kept.count(), 1);
        let ran = there(&["undo", "one"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(tree(&world.path("skills")), before);

        // Of an earlier version.
        store(&world).delete("one").unwrap();
        assert!(world.path("skills/.trash").exists());
        assert_eq!(world.run(["undo", "one", "--dir", "skills"]).code, Some(0));
        assert!(world.path("skills/one/link").exists());

        let world = world.file("file", "");
        let state = world.path("file");
        let ran = world.run_with_env(
            &[("XDG_STATE_HOME", state.to_str().unwrap())],
            &["remove", "one", "--dir", "skills"],
        );
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("nothing was removed: the trash"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`XDG_STATE_HOME`"), "{}", ran.stderr);
        assert!(world.path("skills/one/SKILL.md").exists());
    }

    #[test]
    fn somebody_else_s_lock_stops_nobody() {
        let world = World::new().skill("one", "a");
        let held = fs::File::open(world.path("skills")).unwrap();
        held.lock().unwrap();
        for arguments in [
            &["create", "new", "--description", "a", "--definition", "{}"][..],
            &["disable", "one"],
        ] {
            let ran = world.run([arguments, &SKILLS].concat());
            assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        }
        let locks = fs::read_dir(world.path("home/.local/state/prowess/locks")).unwrap();
        for lock in locks.flatten() {
            assert_eq!(lock.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            // Another writer of the same user is waited for.
            let own = fs::File::open(lock.path()).unwrap();
            own.lock().unwrap();
            let state = world.path("home/.local/state/prowess");
            let store = store(&world).with_state(state).with_patience(Duration::from_millis(20));
            let error = store.delete("one").unwrap_err();
            assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
        }
        let store = store(&world).with_patience(Duration::from_millis(20));
        let error = store.delete("one").unwrap_err();
        assert!(error.to_string().contains("locked by another process"), "{error}");
    }

    #[test]
    fn s_13_the_store_is_the_directory_that_was_typed_or_else_set() {
        let world = World::new().file("prowess.toml", "[skill]\nskills_dir = \"set\"\n");
        let create = ["create", "one", "--description", "a", "--definition", "{}"];
        assert_eq!(world.run(create).code, Some(0));
        assert!(world.path("set/one/SKILL.md").exists());
        assert_eq!(world.run(["list", "--json"]).said().names(), ["one"]);
        assert_eq!(world.run([&create[..], &SKILLS].concat()).code, Some(0));
        assert!(world.path("skills/one/SKILL.md").exists());
        assert_eq!(world.run(["remove", "one"]).code, Some(0));
        assert!(!world.path("set/one").exists() && world.path("skills/one").exists());

        let world = World::new();
        fs::remove_dir(world.path("skills")).unwrap();
        let ran = world.run(create);
        assert_eq!((ran.code, ran.stdout()), (Some(0), ".agents/skills/one/SKILL.md\n"));
        assert_eq!(world.run(["list", "--json"]).said().names(), ["one"]);
        assert_eq!(world.run(["disable", "one"]).code, Some(0));
        assert_eq!(world.run(["remove", "one"]).code, Some(0));
        let world = World::new().folder(".claude/skills");
        fs::remove_dir(world.path("skills")).unwrap();
        let ran = world.run(["new", "two"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), ".claude/skills/two/SKILL.md\n"));
        assert_eq!(world.run(["show", "two"]).code, Some(0));
        let ran = world.run(["new", "a/b"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("the name `a/b` is a path"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("Windows"), "{}", ran.stderr);
    }
}
