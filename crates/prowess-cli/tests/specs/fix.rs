//! Safe fixes.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    process::Command,
};

use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::{Value as Json, json};

use crate::world::{Ran, World};

/// Returns the skill `pdf` with more fields.
fn with(fields: &str) -> String {
    format!("---\nname: pdf\ndescription: Reads when asked.\n{fields}---\n\nRead the file.\n")
}

/// A skill whose description has a colon, and the same with quotes around it.
const COLON: &str = "---\nname: colon\ndescription: Use when: asked\n---\n\nAsk.\n";
const QUOTED: &str = "---\nname: colon\ndescription: 'Use when: asked'\n---\n\nAsk.\n";

fn fix(world: &World, more: &[&str]) -> Ran {
    world.run(["check", "skills", "--fix"].iter().chain(more))
}

fn bytes(world: &World, path: &str) -> Vec<u8> {
    fs::read(world.path(path)).unwrap()
}

fn text(world: &World, path: &str) -> String {
    String::from_utf8(bytes(world, path)).unwrap()
}

/// Fixes the skill `pdf` of this text, and returns the new text.
fn fixed(before: impl AsRef<[u8]>, more: &[&str]) -> String {
    let world = World::new().document("pdf", before);
    let ran = fix(&world, more);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout(), ran.stderr);
    text(&world, "skills/pdf/SKILL.md")
}

/// Returns the names in a folder.
fn names(world: &World, path: &str) -> Vec<String> {
    let entries = fs::read_dir(world.path(path)).unwrap();
    let mut names: Vec<_> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

mod what_is_found_is_put_right {
    use super::*;

    #[test]
    fn a_value_that_yaml_trips_over_is_put_in_quotes() {
        let world = World::new().document("colon", COLON);
        assert_eq!(world.check("skills", &[]).0, Some(1));
        assert_eq!(fix(&world, &[]).code, Some(0));
        assert_eq!(text(&world, "skills/colon/SKILL.md"), QUOTED);
        assert_eq!(world.check("skills", &[]).1.findings(), [] as [Json; 0]);
        let nested = with("metadata:\n  a: @it's  # no\n\n  b: c\n");
        let quoted = nested.replace("@it's  # no", "'@it''s  # no'");
        assert_eq!(fixed(nested, &[]), quoted);
    }

    #[test]
    fn what_keeps_others_from_reading_the_text_is_taken_out() {
        let plain = with("metadata:\n  a: b\n");
        let marked = format!("\u{FEFF}{plain}");
        let utf16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(fixed(utf16, &[]), plain);
        for before in [
            format!("\u{FEFF}{plain}"),
            plain.replace('\n', "\r"),
            plain.replace("  a", "\ta"),
            format!("\n\n{}", plain.replace("---\n", " --- \n")),
            plain.replace("---\n\n", "----\n\n"),
            format!("\u{FEFF}\n{}", plain.replace("  a", "\ta")),
        ] {
            assert_eq!(fixed(&before, &[]), plain, "{before:?}");
        }
    }

    #[test]
    fn line_ends_stay() {
        let crlf = |text: &str| text.replace('\n', "\r\n");
        let world = World::new().document("colon", crlf(COLON));
        let said = world.run(["check", "skills"]);
        let offer = "note: 1 finding can be fixed safely: `--fix --dry-run` shows the changes, `--fix` makes them\n";
        assert!(said.stderr.contains(offer), "{}", said.stderr);
        let ran = fix(&world, &[]);
        assert!(ran.stderr.contains("note: 1 finding in 1 file fixed;"), "{}", ran.stderr);
        assert_eq!(text(&world, "skills/colon/SKILL.md"), crlf(QUOTED));
    }

    #[test]
    fn fields_get_the_form_that_the_specification_asks_for() {
        for (before, after) in [
            ("allowed-tools: [Read, 'Bash(git add:*)']\n", "allowed-tools: Read Bash(git add:*)\n"),
            ("allowed-tools:\n  - Read\n  - Grep\n", "allowed-tools: Read Grep\n"),
            ("allowed-tools: Read, Grep # both\n", "allowed-tools: Read Grep # both\n"),
            ("tags: pdf, forms\n", "tags: [pdf, forms]\n"),
            ("version: 1.10\n", "version: \"1.10\"\n"),
            ("metadata:\n  since: 2026-11-15\n", "metadata:\n  since: \"2026-11-15\"\n"),
            ("compatibility:\nmetadata:\nlicense: MIT\n", "license: MIT\n"),
            ("license: MIT\nauthor: me\nlicense: MIT\n", "license: MIT\nauthor: me\n"),
        ] {
            assert_eq!(fixed(with(before), &[]), with(after), "{before}");
        }
    }

    #[test]
    fn fields_that_nobody_knows_move_under_metadata() {
        let before = "colour: red # ish\nauthor: me\nsize: 3\nlist: [a]\nallowed_tools: Read\n";
        let after = "metadata:\n  colour: red # ish\n  size: \"3\"\nauthor: me\nlist: [a]\nallowed-tools: Read\n";
        assert_eq!(fixed(with(before), &[]), with(after));
        let before = "colour: >\n  red\n\n  or so\nmetadata:\n    size: x\nlicense: MIT\n";
        let after =
            "metadata:\n    size: x\n    colour: >\n      red\n\n      or so\nlicense: MIT\n";
        assert_eq!(fixed(with(before), &[]), with(after));
        let lenient = with(before);
        assert_eq!(fixed(&lenient, &["--profile", "lenient"]), lenient);
        assert_eq!(fixed(&lenient, &["--profile", "reference"]), with(after));
        let both = with("author: me\ncolour: red\n");
        let world = World::new().document("pdf", &both);
        assert_eq!(fix(&world, &["--profile", "reference"]).code, Some(1));
        let moved = both.replace("colour: red", "metadata:\n  colour: red");
        assert_eq!(text(&world, "skills/pdf/SKILL.md"), moved);
    }

    #[test]
    fn fields_that_are_read_under_metadata_too_move_there() {
        let before = with("type: script\nstatus: draft # for now\n") + "\n```sh\necho hi\n```\n";
        let moved = "metadata:\n  type: script\n  status: draft # for now\n";
        let after = before.replace("type: script\nstatus: draft # for now\n", moved);
        for profile in ["spec", "reference"] {
            let world = World::new().document("pdf", &before);
            let ran = world.run(["check", "skills", "--profile", profile]);
            assert!(ran.stdout().contains("unknown-field"), "{}", ran.stdout());
            assert_eq!(fix(&world, &["--profile", profile]).code, Some(0));
            assert_eq!(text(&world, "skills/pdf/SKILL.md"), after);
            let said = world.list();
            let skill = said.skill("pdf");
            assert_eq!((&skill["type"], &skill["status"]), (&"script".into(), &"draft".into()));
        }
        // There nobody would know that it is disabled.
        let retired = with("status: retired\n");
        let world = World::new().document("pdf", &retired);
        fix(&world, &[]);
        assert_eq!(text(&world, "skills/pdf/SKILL.md"), retired);
        assert_eq!(world.list().skill("pdf")["status"], "disabled");
    }

    #[test]
    fn a_profile_fixes_only_what_it_finds() {
        let before =
            with("version: 1.10\n").replace("Reads when asked.", "Use: now").replace('\n', "\r\n");
        let quoted = before.replace("Use: now", "'Use: now'");
        let lenient = fixed(&before, &["--profile", "lenient"]);
        assert_eq!(lenient, quoted);
        let world = World::new().document("pdf", &before);
        fix(&world, &["--profile", "reference"]);
        assert_eq!(text(&world, "skills/pdf/SKILL.md"), quoted);
    }
}

mod nothing_else_changes {
    use super::*;

    #[test]
    fn comments_order_blanks_and_instructions_stay_to_the_byte() {
        let fields = "# first\nlicense:   MIT   # mine\n\nversion: 2 \n'quoted':  \"x\"\n#last\n";
        let body = b"\t\r\n  odd \xFF\xFE --- \rend";
        let world = World::new().document("pdf", [with(fields).as_bytes(), body].concat());
        assert_eq!(fix(&world, &["--profile", "spec"]).code, Some(1));
        let fields = fields
            .replace("version: 2", "version: \"2\"")
            .replace("'quoted':", "metadata:\n  'quoted':");
        let after = [with(&fields).as_bytes(), body].concat();
        assert_eq!(bytes(&world, "skills/pdf/SKILL.md"), after);
    }

    #[test]
    fn what_is_fixed_stays_fixed() {
        let world =
            World::new().document("colon", COLON).document("pdf", with("colour: red\nv: [x]\n"));
        fix(&world, &[]);
        let state = |folder: &str| {
            let path = format!("skills/{folder}/SKILL.md");
            (bytes(&world, &path), fs::metadata(world.path(&path)).unwrap().ino())
        };
        let before = [state("colon"), state("pdf")];
        assert_eq!(fix(&world, &["--json"]).json()["fixed"], json!([]));
        assert_eq!([state("colon"), state("pdf")], before);
    }

    #[test]
    fn a_file_without_anything_to_fix_is_not_written() {
        let world = World::new().document("pdf", with("list: [a]\n")).skill("good", "Stays");
        let number = |path: &str| fs::metadata(world.path(path)).unwrap().ino();
        let paths = ["skills/pdf/SKILL.md", "skills/good/SKILL.md"];
        let before = paths.map(number);
        let ran = fix(&world, &[]);
        assert_eq!(paths.map(number), before);
        assert!(ran.stderr.contains("nothing to fix safely"), "{}", ran.stderr);
    }

    #[test]
    fn the_text_of_a_block_keeps_its_shape() {
        for (before, after) in [
            ("license: |\nOne\n  two\n\nthree\n", "license: |\n  One\n    two\n\n  three\n"),
            (
                "license: >-\n    One\n  two\n      three\n",
                "license: >-\n    One\n    two\n      three\n",
            ),
            ("license: |2-\n\tOne\n   two\n", "license: |2-\n  One\n   two\n"),
            (
                "metadata:\n  a: |\n    One\n    \ttwo\n\tb: c\n",
                "metadata:\n  a: |\n    One\n    \ttwo\n  b: c\n",
            ),
        ] {
            assert_eq!(fixed(with(before), &[]), with(after), "{before}");
        }
    }
}

mod nothing_is_guessed {
    use super::*;

    #[test]
    fn what_yaml_would_take_for_more_than_text_is_not_put_in_quotes() {
        for (fields, line) in [
            ("license: &all Mine: all\nmetadata:\n  owner: *all\n", 4),
            ("metadata: &more\n  owner: me\n", 4),
            ("metadata:\n  owner: &me I: myself\n", 5),
            ("license: MIT\ncompatibility:none\n", 5),
        ] {
            let before = with(fields);
            let world = World::new().document("pdf", &before);
            let said = fix(&world, &["--json"]).json();
            assert_eq!(text(&world, "skills/pdf/SKILL.md"), before);
            let found = said["findings"].as_array().unwrap().iter();
            let lines: Vec<_> =
                found.filter(|it| it["rule"] == "yaml-repaired").map(|it| &it["line"]).collect();
            assert_eq!(lines[0], line, "{said}");
        }
        let stray = "---\nname: pdf\ndescription:Reads.\n---\n";
        let ran = World::new().document("pdf", stray).run(["check", "skills"]);
        assert!(ran.stdout().contains("this line is not a field"), "{}", ran.stdout());
        assert!(ran.stdout().contains("3 | description:Reads."), "{}", ran.stdout());
    }

    #[test]
    fn what_is_no_name_of_a_field_does_not_move() {
        for key in ["Use it when", "1", "true", "~", "description:\u{a0}Use when"] {
            let before = with(&format!("{key}: asked\n"));
            assert_eq!(fixed(&before, &[]), before);
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_written() {
        for before in [
            "Read.\r\n",
            "---\nname: pdf\ndescription: Use: now\n",
            "---\nname: pdf\ndescription: Reads.\n]: [\n---\n",
            "---\n- name: pdf\n---\n",
            "---\nname: pdf\nversion: 1.10\ndescription: !!str Reads.\n---\n",
        ] {
            let world = World::new().document("pdf", before);
            let ran = fix(&world, &["--json"]);
            assert_eq!(ran.code, Some(1), "{before}");
            assert_eq!(ran.json()["fixed"], json!([]), "{before}");
            assert_ne!(ran.json()["findings"], json!([]), "{before}");
            assert_eq!(text(&world, "skills/pdf/SKILL.md"), before);
        }
    }

    #[test]
    fn a_fix_that_would_lose_something_is_not_kept() {
        let before = with("allowed-tools:\n- Read # files\n- Grep\n");
        let world = World::new().document("pdf", &before);
        let ran = fix(&world, &[]);
        assert_eq!(text(&world, "skills/pdf/SKILL.md"), before);
        assert!(ran.stderr.contains("`allowed-tools-form` was not fixed"), "{}", ran.stderr);
        assert_eq!(fix(&world, &["--json"]).json()["fixed"][0]["left"][0], "allowed-tools-form");
    }

    #[test]
    fn names_are_made_alike_only_on_request() {
        let world = || {
            let lower = "---\nname: lower\ndescription: b\n---\n\nc\n";
            World::new().document("forms", with("")).file("skills/lower/skill.md", lower)
        };
        let plain = world();
        let ran = fix(&plain, &[]);
        assert_eq!(ran.code, Some(1));
        let note = "note: `--fix --rename folder` renames folders to match their skills";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        assert_eq!(text(&plain, "skills/forms/SKILL.md"), with(""));
        let name = world();
        assert!(!fix(&name, &["--rename", "name"]).stderr.contains("`--fix --rename name`"));
        assert_eq!(text(&name, "skills/forms/SKILL.md"), with("").replace("pdf", "forms"));
        let folder = world();
        let ran = folder.run(["check", "skills/forms", "--fix", "--rename", "folder"]);
        assert_eq!(
            (ran.code, names(&folder, "skills")),
            (Some(0), vec!["lower".into(), "pdf".into()])
        );
        assert_eq!(text(&folder, "skills/pdf/SKILL.md"), with(""));
        let there = folder.folder("skills/forms");
        let taken = there.run(["undo"]);
        assert_eq!(taken.code, Some(1));
        assert!(taken.stderr.contains("skills/forms` exists again"), "{}", taken.stderr);
        fs::remove_dir(there.path("skills/forms")).unwrap();
        assert_eq!(there.run(["undo"]).code, Some(0));
        assert_eq!(names(&there, "skills"), ["forms", "lower"]);
        for paths in [["skills/forms", "skills"], ["skills", "skills/forms"]] {
            let twice = world();
            let ran = twice.run(["check", paths[0], paths[1], "--fix", "--rename", "folder"]);
            assert!(ran.stderr.contains("is now `skills/pdf/SKILL.md`"), "{}", ran.stderr);
            assert_eq!(names(&twice, "skills"), ["lower", "pdf"]);
        }
        let dry = world();
        fix(&dry, &["--rename", "folder", "--dry-run"]);
        assert_eq!(names(&dry, "skills"), ["forms", "lower"]);
        let file = world();
        fix(&file, &["--rename", "file"]);
        assert_eq!(names(&file, "skills/lower"), ["SKILL.md"]);
        assert_eq!(names(&file, "skills"), ["forms", "lower"]);
    }

    #[test]
    fn a_name_with_capitals_is_made_lowercase_on_request() {
        let document =
            |name: &str| format!("---\nname: {name}\ndescription: Use it\n---\n\nDo it.\n");
        for (before, after) in [("Broken", "broken"), ("My_Skill", "my-skill"), ("A b", "a-b")] {
            let world = World::new().document(before, document(before));
            let said = world.run(["check", "skills"]);
            assert_eq!(said.code, Some(1));
            assert!(said.stderr.contains("`--fix --rename lowercase` makes"), "{}", said.stderr);
            let ran = fix(&world, &["--rename", "lowercase"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!(names(&world, "skills"), [after]);
            assert_eq!(text(&world, &format!("skills/{after}/SKILL.md")), document(after));
            let listed = world.run(["undo", "--list"]);
            assert!(listed.stdout().contains(" renamed "), "{}", listed.stdout());
            let undone = world.run(["undo"]);
            assert_eq!(undone.code, Some(0), "{}", undone.stderr);
            assert_eq!(names(&world, "skills"), [before]);
            assert_eq!(text(&world, &format!("skills/{before}/SKILL.md")), document(before));
        }
        let world = World::new().document("Broken", document("Broken")).folder("skills/broken");
        let ran = fix(&world, &["--rename", "lowercase"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("is already there"), "{}", ran.stderr);
        assert_eq!(text(&world, "skills/Broken/SKILL.md"), document("Broken"));
    }

    #[test]
    fn nothing_is_renamed_to_what_is_there_already() {
        let odd = with("").replace("name: pdf", "name: Odd pdf");
        let world = World::new()
            .document("forms", with("version: 1.10\n"))
            .file("skills/pdf/note.txt", "mine")
            .document("odd", &odd);
        for more in [&["--rename", "folder"][..], &["--rename", "folder", "--dry-run"]] {
            let ran = fix(&world, more);
            assert_eq!(ran.code, Some(2));
            assert!(ran.stderr.contains("is already there"), "{}", ran.stderr);
            assert!(ran.stderr.contains("lowercase letters"), "{}", ran.stderr);
        }
        assert_eq!(names(&world, "skills"), ["forms", "odd", "pdf"]);
        assert_eq!(names(&world, "skills/pdf"), ["note.txt"]);
        assert_eq!(text(&world, "skills/forms/SKILL.md"), with("version: \"1.10\"\n"));
        assert_eq!(text(&world, "skills/odd/SKILL.md"), odd);
    }
}

mod a_file_is_written_whole_or_not_at_all {
    use super::*;

    #[test]
    fn rights_stay() {
        let world = World::new().document("colon", COLON);
        let path = world.path("skills/colon/SKILL.md");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(fix(&world, &[]).code, Some(0));
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(&world, "skills/colon"), ["SKILL.md"]);
    }

    #[test]
    fn attributes_stay() {
        let world = World::new().document("colon", COLON);
        let path = world.path("skills/colon/SKILL.md");
        let flags = XattrFlags::empty();
        // Not every file system has extended attributes.
        if setxattr(&path, "user.mark", b"mine", flags).is_ok() {
            assert_eq!(fix(&world, &[]).code, Some(0));
            let mut value = [0; 8];
            let length = getxattr(&path, "user.mark", &mut value).unwrap();
            assert_eq!(&value[..length], b"mine");
        }
        assert_eq!(fix(&world, &[]).code, Some(0));
    }

    #[test]
    fn what_a_writer_left_who_was_killed_is_taken_away() {
        let dead = ".SKILL.md.0123456789abcdef.draft";
        let alive = ".SKILL.md.fedcba9876543210.draft";
        let other = ".SKILL.md.my-notes-of-2026.draft";
        let world = World::new().document("colon", COLON);
        for name in [dead, alive, other] {
            world.write(format!("skills/colon/{name}"), "---\n");
        }
        let file = fs::File::open(world.path(format!("skills/colon/{alive}"))).unwrap();
        file.lock().unwrap();
        assert_eq!(fix(&world, &[]).code, Some(0));
        assert_eq!(names(&world, "skills/colon"), [alive, other, "SKILL.md"]);
    }

    #[test]
    fn a_read_only_file_is_told_and_the_others_are_fixed() {
        let world = World::new().document("colon", COLON).document("pdf", with("version: 1\n"));
        let path = world.path("skills/colon/SKILL.md");
        fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
        let ran = fix(&world, &[]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("cannot fix `skills/colon/SKILL.md`"), "{}", ran.stderr);
        assert!(ran.stderr.contains("read-only"), "{}", ran.stderr);
        assert_eq!(text(&world, "skills/colon/SKILL.md"), COLON);
        assert_eq!(names(&world, "skills/colon"), ["SKILL.md"]);
        assert_eq!(text(&world, "skills/pdf/SKILL.md"), with("version: \"1\"\n"));
        let again = fix(&world, &[]);
        assert!(again.stderr.contains("note: nothing was fixed\n"), "{}", again.stderr);
    }

    #[test]
    fn no_link_leads_out() {
        let world = World::new()
            .file("elsewhere/SKILL.md", COLON)
            .link("skills/out/SKILL.md", "../../elsewhere/SKILL.md")
            .link("skills/away", "../elsewhere")
            .document("colon", "x")
            .file("skills/shared/one.md", COLON);
        world.remove("skills/colon/SKILL.md");
        let world = world.link("skills/colon/SKILL.md", "../shared/one.md");
        fix(&world, &[]);
        assert_eq!(text(&world, "elsewhere/SKILL.md"), COLON);
        assert_eq!(text(&world, "skills/shared/one.md"), QUOTED);
        assert!(world.path("skills/colon/SKILL.md").is_symlink());
        let world = world.document("forms", with("")).link("other", "skills/forms");
        let ran = world.run(["check", "other", "--fix", "--rename", "folder"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("it is a link"), "{}", ran.stderr);
        assert!(world.path("skills/forms").is_dir());
    }

    #[test]
    fn the_bundled_skills_are_not_changed() {
        let ran = World::new().run(["check", "--fix"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("no skill"), "{}", ran.stderr);
        assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    }
}

mod what_changes_is_seen {
    use super::*;

    #[test]
    fn a_diff_shows_every_change() {
        let world = World::new().document("colon", COLON.replace("asked", "\u{202e}asked\x1b[2J"));
        let ran = world.run(["check", "skills", "--fix", "--dry-run"]);
        ran.assert_safe();
        let world = World::new().document("colon", COLON);
        let ran = world.run(["check", "skills", "--fix", "--dry-run", "--color", "always"]);
        assert!(ran.stdout().contains("\u{1b}[32m+description: 'Use when: asked'\u{1b}[0m\n"));
        let ran = fix(&world, &[]);
        let diff = "--- skills/colon/SKILL.md\n+++ skills/colon/SKILL.md\n@@ -1,5 +1,5 @@\n ---\n name: colon\n-description: Use when: asked\n+description: 'Use when: asked'\n ---\n \n\n";
        assert_eq!(ran.stdout(), diff);
        let cr = World::new().document("colon", QUOTED.replace('\n', "\r"));
        let ran = fix(&cr, &["--color", "always"]);
        assert!(ran.stdout().ends_with("\n\\ lines end with LF\n\n"), "{}", ran.stdout());
        assert_eq!(ran.stdout().lines().count(), 4);
    }

    #[test]
    fn a_diff_can_be_applied() {
        let stage = || {
            World::new()
                .document("colon", COLON)
                .document("pdf", with("version: 1\n").replace('\n', "\r\n"))
                .document("lone", COLON.replace('\n', "\r"))
                .document("odd name", format!("\u{FEFF}{}", COLON.trim_end()))
        };
        let paths = ["colon", "pdf", "lone", "odd name"].map(|it| format!("skills/{it}/SKILL.md"));
        let fixed = stage();
        fix(&fixed, &[]);
        let plain = stage().run(["check", "./skills", "--fix", "--dry-run"]).out;
        let json = fix(&stage(), &["--dry-run", "--json"]).json();
        let json = json["fixed"].as_array().unwrap().iter().map(|it| it["diff"].as_str().unwrap());
        let json = json.collect::<String>().into_bytes();
        // A lone CR moves the cursor, and is escaped.
        for (diff, but) in [(plain, "skills/lone/SKILL.md"), (json, "")] {
            let world = stage().file("a.patch", diff);
            let mut git = Command::new("git");
            let git = git.args(["apply", "-p0", "a.patch", &format!("--exclude={but}")]);
            assert!(git.current_dir(world.path("")).status().unwrap().success());
            for path in paths.iter().filter(|it| *it != but) {
                assert_eq!(bytes(&world, path), bytes(&fixed, path), "{path}");
            }
        }
    }

    #[test]
    fn a_dry_run_writes_nothing() {
        let world = World::new().document("colon", COLON);
        let dry = fix(&world, &["--dry-run"]);
        assert_eq!(dry.code, Some(1));
        assert!(dry.stderr.contains("1 finding in 1 file would be fixed"), "{}", dry.stderr);
        assert_eq!(text(&world, "skills/colon/SKILL.md"), COLON);
        let wet = fix(&world, &[]);
        assert!(dry.stdout().starts_with(wet.stdout()), "{}", dry.stdout());
        for more in [&["--dry-run"][..], &["--rename", "name"]] {
            let ran = world.run(["check", "skills"].iter().chain(more));
            assert_eq!(ran.code, Some(2));
        }
    }

    #[test]
    fn a_dry_run_says_what_would_remain() {
        let world = World::new().document("colon", COLON).document("pdf", with("v: [x]\nw: x\n"));
        let ran = fix(&world, &["--dry-run", "--json"]);
        assert_eq!(ran.code, Some(1));
        let findings = &ran.json()["findings"];
        assert_eq!(findings.as_array().unwrap().len(), 1, "{findings}");
        assert_eq!(
            (&findings[0]["rule"], &findings[0]["line"]),
            (&"unknown-field".into(), &4.into())
        );
        let ran = fix(&world, &["--dry-run"]);
        assert!(!ran.stdout().contains("yaml-repaired"), "{}", ran.stdout());
        assert!(ran.stderr.contains("2 skills checked: 1 warning would remain"), "{}", ran.stderr);
        let world = World::new().document("colon", COLON);
        let ran = fix(&world, &["--dry-run"]);
        assert!(ran.stderr.contains("1 skill checked: nothing would remain"), "{}", ran.stderr);
    }

    #[test]
    fn a_check_says_what_may_be_fixed() {
        let note = "can be fixed safely: `--fix --dry-run` shows the changes";
        let world = World::new().document("colon", COLON).document("pdf", with("colour: red\n"));
        let ran = world.run(["check", "skills"]);
        assert!(ran.stderr.contains(&format!("note: 2 findings {note}")), "{}", ran.stderr);
        let marked = World::new().document("colon", format!("\u{FEFF}{COLON}"));
        let ran = marked.run(["check", "skills"]);
        let hidden = format!("note: 2 findings, 1 of them hidden, {note}");
        assert!(ran.stderr.contains(&hidden), "{}", ran.stderr);
        let ran = fix(&marked, &[]);
        assert!(ran.stderr.contains("note: 2 findings in 1 file fixed"), "{}", ran.stderr);
        let ran = world.run(["check", "skills/pdf", "--profile", "reference"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        let ran = world.run(["check", "skills/pdf", "--profile", "lenient"]);
        assert!(!ran.stderr.contains(note), "{}", ran.stderr);
        assert!(!fix(&world, &[]).stderr.contains(note));
    }

    #[test]
    fn json_says_what_was_fixed_in_each_file() {
        let world = World::new()
            .document("colon", COLON.replace("---\n\n", "v: [x]\n---\n\n"))
            .document("pdf", with("version: 1\nsize: 2\n"))
            .skill("good", "Use when it stays");
        let said = fix(&world, &["--json"]).json();
        assert_eq!(said["skills"], 3);
        let remains: Vec<&Json> =
            said["findings"].as_array().unwrap().iter().map(|it| &it["rule"]).collect();
        assert_eq!(remains, ["unknown-field", "vendor-field"]);
        let fixed = said["fixed"].as_array().unwrap();
        let paths: Vec<&Json> = fixed.iter().map(|it| &it["path"]).collect();
        assert_eq!(paths, ["skills/colon/SKILL.md", "skills/pdf/SKILL.md"]);
        assert_eq!(fixed[0]["findings"][0]["rule"], "yaml-repaired");
        assert_eq!(fixed[0]["findings"][0]["path"], "skills/colon/SKILL.md");
        assert_eq!(fixed[1]["findings"].as_array().unwrap().len(), 2);
        assert!(fixed[1]["diff"].as_str().unwrap().contains("\n+  size: \"2\"\n"));
        assert_eq!((&fixed[0]["error"], &fixed[0]["renamed"]), (&Json::Null, &Json::Null));
        let plain = world.run(["check", "skills", "--json"]).json();
        assert_eq!(plain.get("fixed"), None);
    }

    #[test]
    fn the_exit_code_says_what_remains() {
        let world = World::new().document("colon", COLON);
        assert_eq!(fix(&world, &[]).code, Some(0));
        let world = world.document("pdf", with("").replace("pdf", "PDF"));
        world.write("skills/colon/SKILL.md", COLON);
        assert_eq!(fix(&world, &[]).code, Some(1));
        assert_eq!(text(&world, "skills/colon/SKILL.md"), QUOTED);
    }
}
