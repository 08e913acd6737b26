//! Stores: saving, finding, deleting, and guarantees in case of errors.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use prowess::{Definition, Manifest, Memory, Scope, Status, Type, bundled};
use prowess_runtime::{
    FileStore, SkillRecord, Store,
    store::{DiskStep, Files, MemoryStore, StateAfter, StoreError, WriteFailure},
};
use serde_json::json;

use crate::world::World;

/// Creates an instruction skill.
fn entry(name: &str, description: &str, content: &str) -> SkillRecord {
    let manifest =
        Manifest { name: name.into(), description: description.into(), ..Manifest::default() };
    let definition = Definition::Instruction { content: content.to_owned() };
    SkillRecord { manifest, definition, parameters: None, folder: None }
}

fn script(name: &str, script: &str) -> SkillRecord {
    let entry = entry(name, "Runs", "");
    SkillRecord {
        manifest: Manifest { kind: Type::Script, ..entry.manifest },
        definition: Definition::Script { script: script.to_owned() },
        ..entry
    }
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

fn names(entries: &[SkillRecord]) -> Vec<&str> {
    entries.iter().map(|it| &*it.manifest.name).collect()
}

fn text(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

fn files(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(path, text)| (path.to_string(), text.as_bytes().to_vec())).collect()
}

mod an_entry_is_saved_under_its_name {
    use super::*;

    #[test]
    fn s_01_saving_an_entry_creates_its_folder_and_skill_md() {
        let world = World::new();
        let mut wanted = script("deploy", "echo hi\n");
        wanted.manifest.status = Some(Status::Active);
        wanted.parameters = Some(json!({"type": "object"}));
        let saved = store(&world).save(&wanted).unwrap();
        assert_eq!(
            text(&world, "skills/deploy/SKILL.md"),
            "---\nname: deploy\ndescription: Runs\nmetadata:\n  type: script\n---\n\n```sh\necho hi\n```\n\n## Parameters\n\n```json\n{\n  \"type\": \"object\"\n}\n```\n"
        );
        assert_eq!(store(&world).get("deploy").unwrap(), saved);
        let folder = saved.folder.clone();
        assert_eq!(
            folder.as_deref(),
            fs::canonicalize(world.path("skills/deploy")).ok().as_deref()
        );
        wanted.manifest.status = None;
        assert_eq!(SkillRecord { folder: None, ..saved }, wanted);
        assert_eq!(tree(&world.path("skills")).len(), 1);
    }

    #[test]
    fn s_37_s_44_tools_source_and_fields_that_nobody_knows_come_back() {
        let world = World::new().document(
            "one",
            "---\nname: one\ndescription: a\nx-theirs: {deep: [1, 2]}\nsource: https://example.org/one\nallowed-tools: [exec, fs_read]\n---\n",
        );
        let read = store(&world).get("one").unwrap();
        let mut other = read.clone();
        other.manifest.name = "two".into();
        store(&world).save(&other).unwrap();
        let two = store(&world).get("two").unwrap().manifest;
        assert_eq!(two.allowed_tools.0.to_vec(), ["exec".into(), "fs_read".into()]);
        assert_eq!(two.source.as_deref(), Some("https://example.org/one"));
        let written = prowess::frontmatter::write(&two.unknown);
        assert_eq!(written, "x-theirs:\n  deep:\n    - 1\n    - 2\n");
    }

    #[test]
    fn saving_again_changes_what_has_changed_alone() {
        let before = "---\r\n# ours\r\nname: one  # the name\r\ndescription: old\r\nx-theirs: 1\r\nallowed_tools:\r\n  - Read  # only\r\nlicense: MIT\r\n---\r\n\r\n# One \r\n\r\ntext\r\n";
        let world = World::new().document("one", before);
        let mut changed = store(&world).get("one").unwrap();
        changed.manifest.description = "new: and better".into();
        store(&world).save(&changed).unwrap();
        let after = before.replace("description: old", "description: \"new: and better\"");
        assert_eq!(text(&world, "skills/one/SKILL.md"), after);
        // A new record does not mention unknown fields.
        let mut anew = changed.clone();
        anew.manifest.unknown = Box::default();
        anew.manifest.license = Some("Apache-2.0".into());
        store(&world).save(&anew).unwrap();
        assert_eq!(text(&world, "skills/one/SKILL.md"), after.replace("MIT", "Apache-2.0"));
        // An unchanged record is not written at all.
        let written = fs::metadata(world.path("skills/one/SKILL.md")).unwrap().ino();
        store(&world).save(&anew).unwrap();
        assert_eq!(fs::metadata(world.path("skills/one/SKILL.md")).unwrap().ino(), written);
    }

    #[test]
    fn a_new_definition_replaces_the_body_and_keeps_the_frontmatter() {
        let head = "---\nname: one # mine\ndescription: Runs\ntype: script\nx: 1\n---\n";
        let world = World::new().document("one", format!("{head}\n```sh\nold\n```\n"));
        let saved = store(&world).save(&script("one", "cat <<'X'\n```\nX\n")).unwrap();
        assert_eq!(saved.definition, script("one", "cat <<'X'\n```\nX\n").definition);
        let after = text(&world, "skills/one/SKILL.md");
        assert_eq!(after, format!("{head}\n````sh\ncat <<'X'\n```\nX\n````\n"));
    }

    #[test]
    fn what_would_not_come_back_as_it_is_is_refused() {
        let mut parameters = entry("one", "a", "text");
        parameters.parameters = Some(json!({}));
        let blank = entry("one", "  ", "text");
        let edges = entry("one", " a", "text");
        let typed = SkillRecord {
            definition: Definition::Script { script: "echo".into() },
            ..entry("one", "a", "")
        };
        let world = World::new();
        let large = entry("one", "a", &"x".repeat(1024 * 1024));
        for wanted in [script("one", "echo\r\n"), parameters, blank, edges, typed, large] {
            for store in [&store(&world) as &dyn Store, &MemoryStore::new()] {
                let error = store.save(&wanted).unwrap_err();
                assert!(matches!(error, StoreError::Unfit { .. }), "{error} {wanted:?}");
            }
        }
        assert_eq!(tree(&world.path("skills")), BTreeMap::new());
    }

    #[test]
    fn a_name_that_is_no_plain_word_is_refused() {
        let (long, bytes) = ("a".repeat(65), "a".repeat(255));
        let world = World::new();
        let before = tree(&world.path(""));
        for name in [
            "",
            ".",
            "..",
            "../x",
            "../skills-attacker",
            "/tmp/x",
            "a/b",
            "a\\b",
            "C:x",
            "CON",
            "nul",
            "com1",
            "aux.md",
            "name.",
            "name ",
            "-rf",
            "--help",
            "a-",
            "a--b",
            ".git",
            ".hidden",
            "Skill-A",
            "\u{430}bc",
            "e\u{301}",
            "\u{e9}",
            "ａ",
            "a\0b",
            "a\nb",
            "a\u{200b}b",
            &long,
            &bytes,
        ] {
            for store in [&store(&world) as &dyn Store, &MemoryStore::new()] {
                let error = store.save(&entry(name, "a", "text")).unwrap_err();
                assert!(matches!(error, StoreError::BadName { .. }), "{name:?}: {error}");
                let document = format!("---\nname: {}\ndescription: a\n---\n", json!(name));
                // A parser removes blanks at the ends.
                if name.trim() == name {
                    assert!(store.add(&files(&[("SKILL.md", &document)])).is_err(), "{name:?}");
                }
            }
        }
        assert_eq!(tree(&world.path("")), before);
        store(&world).save(&entry(&long[..64], "a", "text")).unwrap();
    }

    #[test]
    fn what_has_the_name_already_is_not_touched() {
        let world = World::new()
            .file("skills/folder/notes.md", "mine")
            .file("skills/file", "mine")
            .file("outside/SKILL.md", "---\nname: link\ndescription: a\n---\n")
            .link("skills/link", "../outside")
            .link("skills/nowhere", "nowhere/at/all")
            .document("broken", "no frontmatter")
            .document("other", "---\nname: another\ndescription: a\n---\n");
        let before = tree(&world.path(""));
        for name in ["folder", "file", "link", "nowhere", "broken", "other"] {
            let error = store(&world).save(&entry(name, "new", "new")).unwrap_err();
            assert!(error.is_fault() || matches!(error, StoreError::Read { .. }), "{error}");
            let error = store(&world).create(&entry(name, "new", "new")).unwrap_err();
            assert!(matches!(error, StoreError::AlreadyThere { .. }), "{error}");
        }
        assert_eq!(tree(&world.path("")), before);
    }

    #[test]
    fn a_skill_may_lie_in_a_folder_of_another_name() {
        let document = |name: &str, d: &str| format!("---\nname: {name}\ndescription: {d}\n---\n");
        let world = World::new()
            .document("bird-co", document("bird", "in bird-co"))
            .document("bird", document("fish", "in bird"));
        let store = store(&world);
        assert_eq!(names(&store.list().unwrap().entries), ["bird", "fish"]);
        assert_eq!(&*store.get("bird").unwrap().manifest.description, "in bird-co");
        assert_eq!(&*store.get("fish").unwrap().manifest.description, "in bird");
        assert!(matches!(store.get("bird-co"), Err(StoreError::NoSuchSkill { .. })));
        store.save(&entry("bird", "changed", "")).unwrap();
        assert_eq!(text(&world, "skills/bird-co/SKILL.md"), document("bird", "changed"));
        store.deactivate("fish").unwrap();
        assert!(text(&world, "skills/bird/SKILL.md").contains("status: disabled"));
        store.save_resource("bird", "a.txt", b"a").unwrap();
        assert!(world.path("skills/bird-co/a.txt").exists());
        // A folder that uses the name of another comes second, with a finding.
        let world = world
            .document("aaa", document("bird", "a guest"))
            .document("bird", document("bird", "own"));
        assert_eq!(&*store.get("bird").unwrap().manifest.description, "own");
        let stock = store.list().unwrap();
        assert_eq!(names(&stock.entries), ["bird"]);
        let about: Vec<_> =
            stock.findings.iter().filter(|it| it.rule.code == "name-taken").collect();
        assert_eq!(about.len(), 2, "{about:?}");
        store.delete("bird").unwrap();
        assert!(!world.path("skills/bird").exists() && world.path("skills/aaa").exists());
    }
}

mod what_is_kept_is_found {
    use super::*;

    #[test]
    fn s_02_active_skills_are_listed_and_hidden_folders_are_passed_over() {
        let with = |name: &str, status: &str| {
            format!("---\nname: {name}\ndescription: a\n{status}---\nbody of {name}\n")
        };
        let world = World::new()
            .document("active", with("active", "status: active\n"))
            .document("plain", with("plain", ""))
            .document("draft", with("draft", "status: draft\n"))
            .document("disabled", with("disabled", "status: disabled\n"))
            .document(".hidden", with("hidden", "status: active\n"))
            .document(".placeholder", "nothing");
        let active = store(&world).list_active().unwrap();
        assert_eq!(names(&active.entries), ["active", "plain"]);
        assert_eq!(active.findings, []);
        let body = Definition::Instruction { content: "body of active\n".into() };
        assert_eq!(active.entries[0].definition, body);
        let all = store(&world).list().unwrap();
        assert_eq!(names(&all.entries), ["active", "disabled", "draft", "plain"]);
    }

    #[test]
    fn a_broken_skill_hides_no_other() {
        let world = World::new()
            .skill("good", "Stays")
            .document("broken", "no frontmatter")
            .document("empty", "---\nname: empty\ndescription: a\ntype: script\n---\nno code\n")
            .file("outside/SKILL.md", "---\nname: out\ndescription: a\n---\nsecret\n")
            .link("skills/out", "../outside");
        let stock = store(&world).list().unwrap();
        assert_eq!(names(&stock.entries), ["good"]);
        let mut about: Vec<String> = stock
            .findings
            .iter()
            .map(|it| {
                it.path.strip_prefix(fs::canonicalize(world.path("skills")).unwrap()).unwrap()
            })
            .map(|it| it.iter().next().unwrap().to_str().unwrap().to_owned())
            .collect();
        about.sort();
        assert_eq!(about, ["broken", "empty", "out"], "{:?}", stock.findings);
        for name in ["broken", "empty", "out"] {
            let error = store(&world).get(name).unwrap_err();
            assert!(!matches!(error, StoreError::NoSuchSkill { .. }), "{error}");
        }
    }

    #[test]
    fn a_store_that_is_not_there_is_empty() {
        let world = World::new();
        let store = FileStore::open(world.path("a/b/new")).unwrap();
        assert_eq!(store.list().unwrap().entries, []);
        assert!(matches!(store.get("one"), Err(StoreError::NoSuchSkill { .. })));
        assert!(matches!(store.activate("one"), Err(StoreError::NoSuchSkill { .. })));
        assert!(matches!(store.delete("one"), Err(StoreError::NoSuchSkill { .. })));
        assert!(matches!(store.undo(None), Err(StoreError::NothingToUndo { .. })));
        assert!(!world.path("a").exists());
        store.save(&entry("one", "a", "text")).unwrap();
        assert_eq!(tree(&world.path("a")).keys().collect::<Vec<_>>(), ["b/new/one/SKILL.md"]);
        assert!(FileStore::open(world.path("a/b/new/one/SKILL.md")).is_err());
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_not_found() {
        let world = World::new()
            .skill("one", "a")
            .skill_in("other", "two", "b")
            .skill_in("skills-attacker", "three", "c")
            .document(".trash/00000000000000000001-old", "---\nname: old\ndescription: a\n---\n");
        let store = store(&world);
        let before = tree(&world.path(""));
        let absolute = world.path("other/two").to_str().unwrap().to_owned();
        for name in [
            "../other/two",
            "../skills-attacker",
            "../skills-attacker/three",
            "/etc",
            &absolute,
            "",
            ".",
            "..",
            "./one",
            "one/",
            "one/../one",
            "project:one",
            ".trash",
            "old",
            "o\0ne",
            "skills",
        ] {
            let is_none = |it: Result<SkillRecord, StoreError>| {
                matches!(it, Err(StoreError::NoSuchSkill { .. }))
            };
            assert!(is_none(store.get(name)), "{name:?}");
            assert!(is_none(store.activate(name)), "{name:?}");
            assert!(store.delete(name).is_err(), "{name:?}");
            assert!(store.save_resource(name, "a", b"a").is_err(), "{name:?}");
        }
        assert_eq!(tree(&world.path("")), before);
    }

    #[test]
    fn a_store_in_memory_does_the_same() {
        let world = World::new();
        let (file, memory) = (store(&world), MemoryStore::new());
        let played = |store: &dyn Store| {
            let mut said = Vec::new();
            let bare = |it: SkillRecord| SkillRecord { folder: None, ..it };
            let mut say = |it: Result<SkillRecord, StoreError>| {
                said.push(it.map(bare).map_err(|it| std::mem::discriminant(&it)));
            };
            say(store.save(&entry("one", "a", "text\n")));
            say(store.save(&script("two", "echo\n")));
            say(store.create(&entry("two", "b", "")));
            say(store.activate("one"));
            say(store.deactivate("one"));
            say(store.save(&entry("one", "other", "new\n")));
            say(store.get("nobody"));
            say(store.save_resource("one", "a/b.txt", b"x").and_then(|()| store.get("one")));
            say(store.save_resource("one", "../b.txt", b"x").and_then(|()| store.get("one")));
            say(store.delete("one").and_then(|()| store.get("one")));
            say(store.delete("two").and_then(|()| store.get("two")));
            say(store.undo(Some("one")).and_then(|it| store.get(&it)));
            say(store.undo(None).and_then(|it| store.get(&it)));
            say(store.undo(None).and_then(|it| store.get(&it)));
            said.extend(store.list().unwrap().entries.into_iter().map(bare).map(Ok));
            said.extend(store.list_active().unwrap().entries.into_iter().map(bare).map(Ok));
            let added = store.ensure_defaults(&*bundled()).unwrap().join(" ");
            (said, added)
        };
        let (in_folder, in_memory) = (played(&file), played(&memory));
        assert_eq!(in_folder, in_memory);
        assert!(in_folder.0.iter().filter(|it| it.is_err()).count() >= 5);
        assert!(in_folder.1.contains("create-pr"));
    }
}

mod a_skill_is_put_in_and_out_of_use {
    use super::*;

    #[test]
    fn deactivating_and_activating_again_gives_the_same_bytes() {
        let frame = |fields: &str| format!("---\nname: one\ndescription: a\n{fields}---\n\nbody\n");
        let texts = [
            frame(""),
            frame("").replace('\n', "\r\n"),
            format!("\u{FEFF}{}", frame("")),
            frame("status: active\n"),
            frame("status: \"active\"\n"),
            frame("status:\n"),
            frame("status: # not yet\n"),
            frame("status: Active\n"),
            frame("status: 'ACTIVE' # loud\n"),
            frame("status:   'active'   # active until we drop it\n"),
            frame("x: |\n  status: active\n"),
            frame("metadata:\n  status: active\n").replace("body", "status: active"),
            frame("metadata:\n    type: instruction # ours\n    owner: me\n"),
            frame("metadata:\n  status: rc\n"),
            frame("metadata: {owner: me}\n"),
            frame("metadata:\n"),
            frame("metadata:\n  owner: me\n").replace('\n', "\r\n"),
            "---\nname: one\ndescription: Use when: asked\n---\n".to_owned(),
            "---\nname: one\ndescription: a\n--- \n".to_owned(),
        ];
        let mut all: Vec<Vec<u8>> = texts.map(String::into_bytes).to_vec();
        all.push([frame("").as_bytes(), b"\xFF\xFE\x80 no text\r"].concat());
        for before in all {
            let world = World::new().document("one", &before);
            let path = world.path("skills/one/SKILL.md");
            assert!(!store(&world).deactivate("one").unwrap().manifest.is_active());
            assert_ne!(fs::read(&path).unwrap(), before);
            assert!(store(&world).activate("one").unwrap().manifest.is_active());
            assert_eq!(fs::read(&path).unwrap(), before, "{}", String::from_utf8_lossy(&before));
        }
    }
}

mod resources_are_written_beside_the_skill {
    use super::*;

    #[test]
    fn s_05_a_resource_is_written_where_its_path_says() {
        let world = World::new().skill("my-skill", "a");
        let store = store(&world);
        store.save_resource("my-skill", "scripts/run.sh", b"#!/bin/sh\necho run\n").unwrap();
        let path = world.path("skills/my-skill/scripts/run.sh");
        assert_eq!(fs::read(&path).unwrap(), b"#!/bin/sh\necho run\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path) & 0o100, 0o100);
        let bytes: Vec<u8> = (0..=255).collect();
        store.save_resource("my-skill", "./a/b/c.bin", &bytes).unwrap();
        assert_eq!(fs::read(world.path("skills/my-skill/a/b/c.bin")).unwrap(), bytes);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        store.save_resource("my-skill", "scripts/run.sh", b"").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (Vec::new(), 0o640));
    }

    #[test]
    fn a_path_that_is_none_of_the_skill_is_refused() {
        let world = World::new().skill("one", "a").skill("two", "b");
        let before = tree(&world.path(""));
        let long = "a/".repeat(600) + "b";
        for path in [
            "",
            ".",
            "..",
            "../two/x",
            "a/../../two/x",
            "a/..",
            "/etc/x",
            "//x",
            "a//b",
            "a/",
            "a/./b",
            "./",
            "a\\b",
            "..\\x",
            "C:\\x",
            "C:x",
            "a:b",
            "a\0.md",
            "a\n",
            "SKILL.md",
            "skill.md",
            "./Skill.MD",
            "SKILL.md/x",
            ".git/config",
            "a/.GIT/hooks/x",
            &long,
        ] {
            for store in [&store(&world) as &dyn Store, &memory()] {
                let error = store.save_resource("one", path, b"x").unwrap_err();
                assert!(matches!(error, StoreError::BadPath { .. }), "{path:?}: {error}");
                assert!(error.hint().is_some());
                let mut files = files(&[("SKILL.md", "---\nname: new\ndescription: a\n---\n")]);
                if path != "SKILL.md" {
                    files.insert(path.to_owned(), b"x".to_vec());
                    assert!(store.add(&files).is_err(), "{path:?}");
                }
            }
        }
        assert_eq!(tree(&world.path("")), before);
        // A name that only looks like a path outside is an ordinary one.
        store(&world).save_resource("one", "..%2f..%2fetc%2fpasswd", b"x").unwrap();
        assert!(world.path("skills/one/..%2f..%2fetc%2fpasswd").exists());
    }

    fn memory() -> MemoryStore {
        let store = MemoryStore::new();
        store.save(&entry("one", "a", "")).unwrap();
        store
    }

    #[test]
    fn a_link_in_the_skill_leads_nowhere() {
        let world = World::new()
            .skill("one", "a")
            .file("outside/file", "theirs")
            .link("skills/one/folder", "../../outside")
            .link("skills/one/file", "../../outside/file")
            .link("skills/one/root", "/")
            .link("skills/one/nowhere", "nothing")
            .link("skills/one/inside", "SKILL.md");
        let before = tree(&world.path(""));
        let root_file = format!("root{}/new", world.path("outside").display());
        for path in
            ["folder/new", "folder/file", "file", &root_file, "nowhere", "nowhere/new", "inside"]
        {
            let error = store(&world).save_resource("one", path, b"ours").unwrap_err();
            assert!(matches!(error, StoreError::NotOurs { .. }), "{path}: {error}");
        }
        assert_eq!(tree(&world.path("")), before);
        // A document that is a link is read if it stays inside, and never written through.
        let world = world.link("skills/two/SKILL.md", "../one/SKILL.md");
        assert!(store(&world).deactivate("one").is_ok());
        let target = "---\nname: three\ndescription: a\n---\n";
        let world = world.file("skills/.shared/SKILL.md", target);
        let world = world.link("skills/three/SKILL.md", "../.shared/SKILL.md");
        assert!(store(&world).deactivate("three").is_err());
        assert_eq!(text(&world, "skills/.shared/SKILL.md"), target);
    }
}

mod a_deleted_skill_can_be_brought_back {
    use super::*;

    #[test]
    fn undo_brings_back_what_was_deleted() {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/scripts/x.sh", b"\xFF\x00bytes")
            .link("skills/one/link", "/nowhere")
            .document("folder", "---\nname: two\ndescription: b\n---\n")
            .skill("three", "c");
        let before = tree(&world.path("skills"));
        for name in ["two", "one", "three"] {
            store(&world).delete(name).unwrap();
        }
        assert_eq!(store(&world).list().unwrap().entries, []);
        assert_eq!(store(&world).undo(Some("one")).unwrap(), "one");
        assert_eq!(store(&world).undo(None).unwrap(), "three");
        assert_eq!(store(&world).undo(Some("two")).unwrap(), "two");
        assert_eq!(tree(&world.path("skills")), before);
        store(&world).delete("two").unwrap();
        assert_eq!(store(&world).undo(Some("folder")).unwrap(), "two");
        assert_eq!(tree(&world.path("skills")), before);
        // Foreign files are not treated as deleted skills.
        for name in [
            "1-x",
            "00000000000000000001-.git",
            "00000000000000000001-..",
            "99999999999999999999-x",
        ] {
            let document = world.path("skills/.trash").join(name).join("SKILL.md");
            fs::create_dir_all(document.parent().unwrap()).unwrap();
            fs::write(document, "---\nname: x\ndescription: a\n---\n").unwrap();
        }
        for name in [None, Some("one"), Some("../one"), Some(".git"), Some("x"), Some("")] {
            let error = store(&world).undo(name).unwrap_err();
            assert!(matches!(error, StoreError::NothingToUndo { .. }), "{error}");
        }
    }

    /// Returns the contents of the store, without the trash.
    fn skills(world: &World) -> Vec<Vec<u8>> {
        let read = |it: &str| fs::read(world.path(format!("skills/{it}/SKILL.md"))).unwrap();
        ["one", "other"].map(read).to_vec()
    }

    #[test]
    fn undo_takes_nobody_s_place() {
        let world = World::new().skill("one", "old");
        let store = store(&world);
        store.delete("one").unwrap();
        store.save(&entry("one", "new", "")).unwrap();
        let before = tree(&world.path("skills"));
        assert!(matches!(store.undo(None), Err(StoreError::NoPlace { .. })));
        assert_eq!(tree(&world.path("skills")), before);
        store.delete("one").unwrap();
        assert_eq!(store.undo(None).unwrap(), "one");
        assert_eq!(&*store.get("one").unwrap().manifest.description, "new");
        // Another folder may have another one.
        let world = world.document("other", "---\nname: one\ndescription: theirs\n---\n");
        let before = skills(&world);
        store.delete("one").unwrap();
        assert_eq!(&*store.get("one").unwrap().manifest.description, "theirs");
        assert_eq!(store.undo(Some("one")).unwrap(), "one");
        assert_eq!(skills(&world), before);
        for _ in 0..2 {
            store.delete("one").unwrap();
        }
        assert!(!world.path("skills/other").exists());
        assert_eq!(store.undo(Some("other")).unwrap(), "one");
        assert_eq!(&*store.get("one").unwrap().manifest.description, "theirs");
        assert_eq!(store.undo(Some("one")).unwrap(), "one");
        assert_eq!(skills(&world), before);
    }

    #[test]
    fn only_a_link_goes_and_what_it_leads_to_stays() {
        let world = World::new()
            .skill_in("outside", "one", "theirs")
            .link("skills/one", "../outside/one")
            .link("skills/two", "nowhere");
        let outside = tree(&world.path("outside"));
        let before = tree(&world.path("skills"));
        store(&world).delete("one").unwrap();
        store(&world).delete("two").unwrap();
        assert!(!world.path("skills/one").is_symlink() && !world.path("skills/two").is_symlink());
        assert_eq!(tree(&world.path("outside")), outside);
        store(&world).undo(Some("one")).unwrap();
        store(&world).undo(None).unwrap();
        assert_eq!(tree(&world.path("skills")), before);
        assert_eq!(tree(&world.path("outside")), outside);
    }

    #[test]
    fn what_is_no_skill_is_not_deleted() {
        let world = World::new()
            .file("skills/folder/notes.md", "mine")
            .file("skills/file", "mine")
            .file("skills/.hidden/SKILL.md", "---\nname: hidden\ndescription: a\n---\n")
            .skill_in("other", "two", "b")
            .document("broken", "no frontmatter");
        let before = tree(&world.path(""));
        for name in ["folder", "file", ".hidden", "hidden", "../other/two", "../other", ".", ""] {
            let error = store(&world).delete(name).unwrap_err();
            assert!(matches!(error, StoreError::NoSuchSkill { .. }), "{name}: {error}");
        }
        assert_eq!(tree(&world.path("")), before);
        store(&world).delete("broken").unwrap();
        assert!(!world.path("skills/broken").exists());
        assert_eq!(store(&world).undo(None).unwrap(), "broken");
        assert_eq!(tree(&world.path("")), before);
        // A store that is itself a skill contains no others.
        let own = FileStore::open(world.path("other/two")).unwrap();
        assert!(matches!(own.delete("two"), Err(StoreError::IsSkill { .. })));
        assert!(matches!(own.save(&entry("new", "a", "")), Err(StoreError::IsSkill { .. })));
        assert_eq!(tree(&world.path("")), before);
    }

    #[test]
    fn the_trash_keeps_the_last_fifty() {
        let mut world = World::new().file("skills/.trash/notes.md", "mine");
        for number in 0..52 {
            world = world.skill(&format!("skill-{number}"), "a");
        }
        let store = store(&world);
        for number in 0..52 {
            store.delete(&format!("skill-{number}")).unwrap();
        }
        assert_eq!(text(&world, "skills/.trash/notes.md"), "mine");
        for number in (2..52).rev() {
            assert_eq!(store.undo(None).unwrap(), format!("skill-{number}"));
        }
        assert!(matches!(store.undo(None), Err(StoreError::NothingToUndo { .. })));
        assert_eq!(store.list().unwrap().entries.len(), 50);
        assert_eq!(tree(&world.path("skills")).len(), 51);
    }
}

mod defaults_are_added_once {
    use super::*;

    #[test]
    fn defaults_come_with_all_their_resources() {
        let world = World::new();
        let added = store(&world).ensure_defaults(&*bundled()).unwrap();
        let all = tree(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../prowess/skills")));
        let visible = |path: &&String| !path.split('/').any(|it| it.starts_with('.'));
        let wanted: Vec<_> = all.keys().filter(visible).collect();
        let made = tree(&world.path("skills"));
        assert_eq!(made.keys().collect::<Vec<_>>(), wanted);
        assert!(made.iter().all(|(path, bytes)| all[path] == *bytes));
        assert!(made.contains_key("create-pr/scripts/gather.sh") && added.len() >= 5);
        assert_eq!(store(&world).list_active().unwrap().entries.len(), added.len());
        assert_eq!(store(&world).ensure_defaults(&*bundled()).unwrap(), [""; 0]);
    }

    fn source(files: &[(&'static str, &'static str)]) -> Memory {
        Memory::new(Scope::Bundled, "made", files.iter().map(|it| (it.0, it.1.as_bytes())))
    }

    const ONE: (&str, &str) = ("one/SKILL.md", "---\nname: one\ndescription: a\n---\n");
    const TWO: (&str, &str) = ("two/SKILL.md", "---\nname: two\ndescription: a\n---\n");

    #[test]
    fn s_09_nothing_comes_from_hidden_folders() {
        let source = source(&[
            (".placeholder/SKILL.md", "nothing"),
            (".secret/SKILL.md", "---\nname: secret\ndescription: a\n---\n"),
            ONE,
            ("one/.cache/x", "x"),
            ("one/a/.deep/x", "x"),
            ("one/a/b", "b"),
        ]);
        let world = World::new();
        assert_eq!(store(&world).ensure_defaults(&source).unwrap(), ["one"]);
        let made = tree(&world.path("skills"));
        assert_eq!(made.keys().collect::<Vec<_>>(), ["one/SKILL.md", "one/a/b"]);
    }

    #[test]
    fn s_11_what_is_there_is_never_overwritten() {
        let document = |name: &str| format!("---\nname: {name}\ndescription: mine\n---\n");
        let worlds = [
            World::new().document("one", document("one")),
            World::new().document("one", "broken"),
            World::new().folder("skills/one"),
            World::new().file("skills/one", "a file"),
            World::new().link("skills/one", "nowhere"),
            World::new().document("another", document("one")),
        ];
        for world in worlds {
            let before = tree(&world.path("skills"));
            let source = source(&[ONE, ("one/new.md", "new"), TWO]);
            assert_eq!(store(&world).ensure_defaults(&source).unwrap(), ["two"]);
            let mut after = tree(&world.path("skills"));
            assert!(after.remove("two/SKILL.md").is_some());
            assert_eq!(after, before);
        }
    }
}

mod a_change_is_whole_or_not_made {
    use super::*;

    /// A change to a store that has the skills `one`, `two` and, deleted, `gone`.
    type Change = (&'static str, fn(&FileStore) -> Result<(), StoreError>);

    const CHANGES: &[Change] = &[
        ("create", |it| it.save(&entry("new", "a", "text")).map(drop)),
        ("save", |it| it.save(&entry("one", "changed", "changed")).map(drop)),
        ("deactivate", |it| it.deactivate("one").map(drop)),
        ("delete", |it| it.delete("one")),
        ("undo", |it| it.undo(None).map(drop)),
        ("resource", |it| it.save_resource("one", "notes.md", b"changed")),
        ("new resource", |it| it.save_resource("one", "a/b/c.txt", b"new")),
        ("add", |it| {
            let document = "---\nname: new\ndescription: a\n---\n";
            it.add(&files(&[("SKILL.md", document), ("a/x.sh", "#!x"), ("b", "")])).map(drop)
        }),
        // Each of them replaces the oldest in the trash.
        ("full trash", |it| it.delete("two")),
    ];

    fn world(change: &str) -> World {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/notes.md", "notes")
            .skill("two", "b")
            .skill("gone", "c");
        let kept = if change == "full trash" { 50 } else { 1 };
        for number in 0..kept {
            let name = format!("skills/.trash/{number:020}-gone");
            fs::create_dir_all(world.path(&name)).unwrap();
            fs::copy(world.path("skills/gone/SKILL.md"), world.path(name + "/SKILL.md")).unwrap();
        }
        fs::remove_dir_all(world.path("skills/gone")).unwrap();
        world
    }

    /// Returns the visible state: the files of all skills, and the number of those in the trash.
    fn seen(world: &World) -> (BTreeMap<String, Vec<u8>>, usize) {
        let mut all = tree(&world.path("skills"));
        all.retain(|path, _| !path.starts_with(".prowess-staging-"));
        let is_thrown = |path: &String| path.starts_with(".trash/") && path.ends_with("SKILL.md");
        let thrown = all.keys().filter(|it| is_thrown(it)).count();
        all.retain(|path, _| !path.starts_with(".trash"));
        (all, thrown)
    }

    fn unfinished(world: &World) -> Vec<String> {
        let names = fs::read_dir(world.path("skills")).unwrap();
        let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|it| it.starts_with('.') && it != ".trash").collect()
    }

    /// Returns the result of a change, and the number of its steps.
    fn made(
        name: &str,
        change: fn(&FileStore) -> Result<(), StoreError>,
    ) -> (World, Vec<DiskStep>) {
        let (world, steps) = (world(name), Arc::new(Mutex::new(Vec::new())));
        let noted = steps.clone();
        let watched = store(&world).with_steps(move |step| {
            noted.lock().unwrap().push(step);
            Ok(())
        });
        change(&watched).unwrap();
        let steps = steps.lock().unwrap().clone();
        (world, steps)
    }

    #[test]
    fn a_process_that_dies_at_any_step_leaves_old_or_new() {
        let mut both = 0;
        for (name, change) in CHANGES {
            let (new, steps) = made(name, *change);
            let (old, new) = (seen(&world(name)), seen(&new));
            assert!(steps.len() >= 3, "{name}: {steps:?}");
            for last in 0..steps.len() {
                let world = world(name);
                let count = AtomicUsize::new(0);
                // A dead process does nothing any more, not even clean up.
                let dying = store(&world).with_steps(move |_| {
                    match count.fetch_add(1, Ordering::Relaxed) < last {
                        true => Ok(()),
                        false => Err(io::Error::other("dead")),
                    }
                });
                let result = change(&dying);
                let now = seen(&world);
                // Skills are in the old state or the new one; the trash is updated last.
                let is_new = now.0 == new.0;
                assert!(is_new || now.0 == old.0, "{name} {last}: {:?}", now.0.keys());
                assert!(now.1.abs_diff(new.1) <= 1, "{name} {last}: {}", now.1);
                if let Err(StoreError::Write { now, .. }) = &result {
                    assert_eq!(is_new, *now == StateAfter::Unsafe, "{name} {last}");
                }
                both += usize::from(is_new);
                // The next writer finds a consistent store.
                let next = store(&world);
                next.save(&entry("next", "a", "text")).unwrap();
                assert_eq!(unfinished(&world), [""; 0], "{name} {last}");
                assert_eq!(next.list().unwrap().findings, [], "{name} {last}");
                if !is_new {
                    change(&next).unwrap();
                    next.delete("next").unwrap();
                    assert_eq!(seen(&world).0, new.0, "{name} {last}");
                }
            }
        }
        assert!(both > 5, "no step came after a rename");
    }

    #[test]
    fn a_step_that_fails_leaves_what_was_there() {
        // ENOSPC, EIO, EMFILE, EROFS
        let faults = [
            (28, WriteFailure::Full),
            (5, WriteFailure::Other),
            (24, WriteFailure::TooManyFiles),
            (30, WriteFailure::ReadOnly),
        ];
        for (name, change) in CHANGES {
            let (new, steps) = made(name, *change);
            let (old, new) = (seen(&world(name)), seen(&new));
            for (number, step) in steps.iter().enumerate() {
                let (code, why) = faults[number % faults.len()];
                let world = world(name);
                let count = AtomicUsize::new(0);
                let faulty = store(&world).with_steps(move |_| {
                    match count.fetch_add(1, Ordering::Relaxed) == number {
                        true => Err(io::Error::from_raw_os_error(code)),
                        false => Ok(()),
                    }
                });
                let result = change(&faulty);
                let now = seen(&world);
                match result {
                    Err(StoreError::Write { now: StateAfter::Unchanged, why: said, .. }) => {
                        assert_eq!((now, said), (old.clone(), why), "{name} {number} {step:?}");
                    }
                    Err(StoreError::Write { now: StateAfter::Unsafe, why: said, .. }) => {
                        assert_eq!((now.0, said), (new.0.clone(), why), "{name} {number}");
                        assert_eq!(*step, DiskStep::SyncDirectory);
                    }
                    Err(error) => panic!("{name} {number} {step:?}: {error}"),
                    // Only the cleanup after a completed change may fail unnoticed.
                    Ok(()) => {
                        assert_eq!(now.0, new.0, "{name} {number} {step:?}");
                        assert_eq!(*name, "full trash", "{number} {step:?}");
                    }
                }
                assert!(unfinished(&world).len() <= usize::from(*step == DiskStep::Remove));
                if now_is_old(&world, &old) {
                    change(&store(&world)).unwrap();
                    assert_eq!(seen(&world), new, "{name} {number}");
                }
            }
        }
    }

    fn now_is_old(world: &World, old: &(BTreeMap<String, Vec<u8>>, usize)) -> bool {
        seen(world) == *old
    }

    #[test]
    fn only_what_is_ours_is_taken_away() {
        let hidden = "skills/.prowess-staging-0123456789abcdef";
        let world = World::new()
            .file("outside/file", "theirs")
            .file("skills/.staging-area/file", "theirs")
            .file("skills/.prowess-staging-mine/file", "theirs")
            .link("skills/.prowess-staging-fedcba9876543210", "../outside")
            .file(format!("{hidden}/SKILL.md"), "half")
            .link(&format!("{hidden}/a/link"), "../../../outside");
        store(&world).save(&entry("one", "a", "")).unwrap();
        assert_eq!(
            tree(&world.path("")).into_keys().collect::<Vec<_>>(),
            [
                "home",
                "outside/file",
                "skills/.prowess-staging-mine/file",
                "skills/.staging-area/file",
                "skills/one/SKILL.md",
            ]
        );
    }

    #[test]
    fn what_is_said_to_be_done_is_on_the_disk() {
        for (name, change) in CHANGES {
            let (_, steps) = made(name, *change);
            let mut unsynced = 0;
            for (at, step) in steps.iter().enumerate() {
                match step {
                    DiskStep::Write => unsynced += 1,
                    DiskStep::Sync => unsynced -= 1,
                    DiskStep::Rename => {
                        assert_eq!(unsynced, 0, "{name}: {steps:?}");
                        let next = steps[at + 1..].iter().find(|it| **it != DiskStep::Remove);
                        assert_eq!(next, Some(&DiskStep::SyncDirectory), "{name}: {steps:?}");
                    }
                    DiskStep::Create | DiskStep::SyncDirectory | DiskStep::Remove => {}
                }
            }
            assert!(steps.contains(&DiskStep::Rename), "{name}");
        }
    }
}

mod writers_wait_for_each_other_and_readers_for_nobody {
    use super::*;

    #[test]
    fn a_reader_sees_a_whole_version_while_a_writer_saves() {
        let world = World::new();
        let path = world.path("skills");
        let done = AtomicBool::new(false);
        let save = |version: usize| {
            let content = format!("version {version}\n").repeat(200);
            let mut entry = entry("one", &format!("version {version}"), &content);
            entry.manifest.status = Some(Status::Active);
            store(&world).save(&entry).unwrap();
        };
        save(0);
        let version = |entry: &SkillRecord| {
            let Definition::Instruction { content } = &entry.definition else { panic!() };
            let line = format!("{}\n", entry.manifest.description);
            assert_eq!(*content, line.repeat(200));
            entry.manifest.description["version ".len()..].parse::<usize>().unwrap()
        };
        let seen = AtomicUsize::new(0);
        thread::scope(|scope| {
            for reader in 0..3 {
                let (path, done, seen, version) = (&path, &done, &seen, &version);
                scope.spawn(move || {
                    let store = FileStore::open(path).unwrap();
                    let mut before = 0;
                    while !done.load(Ordering::Relaxed) {
                        let now = match reader {
                            0 => version(&store.get("one").unwrap()),
                            1 => version(&store.list_active().unwrap().entries[0]),
                            _ => {
                                let options = prowess::Options {
                                    directories: vec![prowess::Directory::new(path)],
                                    ..prowess::Options::default()
                                };
                                let library = prowess::Library::load(&options).unwrap();
                                assert_eq!(library.findings(), []);
                                let skill = library.get("one").unwrap();
                                skill.manifest.description["version ".len()..].parse().unwrap()
                            }
                        };
                        assert!(now >= before, "{now} after {before}");
                        seen.fetch_add(usize::from(now > before), Ordering::Relaxed);
                        before = now;
                    }
                });
            }
            for number in 1..=300 {
                save(number);
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(seen.into_inner() > 20);
    }
}
