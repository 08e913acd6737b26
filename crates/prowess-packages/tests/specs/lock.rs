//! The scenarios of `specs/lock.md`.

use prowess_packages::{FileDigest, LockedSkill, SkillSource, TreeFile};

/// Returns a locked skill with these files, installed nowhere.
fn locked(name: &str, files: &[(&str, &str)]) -> LockedSkill {
    let source: SkillSource = "anthropics/skills".parse().unwrap();
    let files = files.iter().map(|(path, text)| file(path, text)).collect();
    let mut skill = LockedSkill::new(name, source, "https://github.com/anthropics/skills", files);
    skill.commit = Some("0123456789abcdef0123456789abcdef01234567".to_owned());
    skill.path = format!("skills/{name}");
    skill
}

fn file(path: &str, text: &str) -> TreeFile {
    let digest = FileDigest::of(text.as_bytes());
    TreeFile::new(path, digest, text.len() as u64, path.ends_with(".sh"))
}

mod a_manifest_is_edited_without_a_change_elsewhere {
    use proptest::prelude::*;
    use prowess_packages::{PackageManifest, WantedSkill};

    fn wanted(name: &str, source: &str) -> WantedSkill {
        WantedSkill::new(name, source.parse().unwrap())
    }

    #[test]
    fn a_skill_is_added_at_its_place_in_the_alphabet() {
        let text = "\u{feff}# ours\r\n[model]\r\nname = 'x'\r\n\r\n[skills] # all\r\n# documents\r\ndocx   = \"anthropics/skills\"\r\npdf='anthropics/skills' # forms\r\n\r\n# the rest\r\n[limits]\r\ntimeout = 5\r\n";
        let mut manifest: PackageManifest = text.parse().unwrap();
        manifest.set(&wanted("new", "anthropics/skills#v1")).unwrap();
        let added = "new = \"anthropics/skills#v1\"\r\n";
        assert_eq!(manifest.to_string(), text.replace("pdf=", &format!("{added}pdf=")));
        manifest.set(&wanted("a", "./mine")).unwrap();
        assert!(manifest.to_string().contains("[skills] # all\r\na = \"./mine\"\r\n# documents"));
        manifest.set(&wanted("z", "./mine")).unwrap();
        assert!(manifest.to_string().contains("# forms\r\nz = \"./mine\"\r\n\r\n# the rest"));
        assert!(manifest.remove("z").unwrap() && manifest.remove("a").unwrap());
        assert!(manifest.remove("new").unwrap() && !manifest.remove("new").unwrap());
        assert_eq!(manifest.to_string(), text);
    }

    #[test]
    fn a_changed_skill_keeps_its_comment_and_what_is_not_known() {
        let text = "[skills]\npdf = { source = \"https://github.com/anthropics/skills\", sourse = 1 } # forms\ndocx = 'github:anthropics/skills'   # text\n";
        let mut manifest: PackageManifest = text.parse().unwrap();
        let note = &manifest.notes()[0];
        assert_eq!((note.line, &*note.key), (2, "skills.pdf.sourse"));
        assert_eq!(note.nearest.as_deref(), Some("source"));
        for name in ["pdf", "docx"] {
            let mut skill = manifest.get(name).unwrap().clone();
            skill.clients = Some(vec!["claude-code".to_owned()]);
            manifest.set(&skill).unwrap();
        }
        assert_eq!(
            manifest.to_string(),
            "[skills]\npdf = { source = \"https://github.com/anthropics/skills\", sourse = 1, clients = [\"claude-code\"] } # forms\n\
             docx = { source = 'github:anthropics/skills', clients = [\"claude-code\"] }   # text\n"
        );
        let skill = wanted("docx", "other/skills");
        manifest.set(&skill).unwrap();
        assert!(manifest.to_string().contains("docx = { source = \"other/skills\" }   # text\n"));
        assert_eq!(manifest.get("docx"), Some(&skill));
    }

    #[test]
    fn a_removed_skill_takes_only_its_own_lines() {
        for (before, after) in [
            (
                "[skills]\n# documents\npdf = \"a/b\" # x\ndocx = \"a/b\"\n",
                "[skills]\n# documents\ndocx = \"a/b\"\n",
            ),
            (
                "[skills]\npdf = { source = \"a/b\", clients = [\n  \"codex\",\n] }\ndocx = \"a/b\"",
                "[skills]\ndocx = \"a/b\"",
            ),
            (
                "[skills]\npdf.source = \"a/b\"\ndocx = \"a/b\"\npdf.copy = true\n",
                "[skills]\ndocx = \"a/b\"\n",
            ),
            (
                "[skills.pdf]\nsource = \"a/b\"\n# end\n[skills.docx]\nsource = \"a/b\"\n",
                "# end\n[skills.docx]\nsource = \"a/b\"\n",
            ),
            (
                "skills = { pdf = \"a/b\", docx = \"a/b\" } # all\n",
                "skills = { docx = \"a/b\" } # all\n",
            ),
            ("skills.pdf = \"a/b\"\nskills.docx = \"a/b\"\n", "skills.docx = \"a/b\"\n"),
        ] {
            let mut manifest: PackageManifest = before.parse().unwrap();
            assert_eq!(manifest.wanted().len(), 2, "{before}");
            assert!(manifest.remove("pdf").unwrap());
            assert_eq!(manifest.to_string(), after);
            assert_eq!(manifest.wanted().len(), 1);
        }
    }

    #[test]
    fn any_manifest_survives_edits() {
        proptest!(|(lines in prop::collection::vec(prop_oneof![
                Just("[skills]"), Just("[model]"), Just("# a comment"), Just(""), Just("[skills.d]"), Just("source = 'a/b'"),
                Just("a = \"a/b\" # x"), Just("c = { source = \"a/b\", copy = true }"), Just("b.source = 'a/b'"), Just("  e = 'a/b'"),
                Just("skills = { f = 'a/b' }"), Just("skills.g = 'a/b'"), Just("x = [\n 1,\n]"), Just("[skills.h]"), Just("name = \"\"\"\nx\n\"\"\""),
            ], 0..9),
            is_dos in any::<bool>(),
            ends in any::<bool>(),
            name in "[a-j]")| {
            let mut text = lines.join("\n");
            if ends { text.push('\n'); }
            if is_dos { text = text.replace('\n', "\r\n"); }
            let Ok(before) = PackageManifest::parse(&text) else { return Ok(()) };
            prop_assert_eq!(before.to_string(), &*text);
            let mut manifest = before.clone();
            let skill = wanted(&name, "x/y#v1");
            if manifest.set(&skill).is_err() {
                prop_assert_eq!(&manifest, &before);
                return Ok(());
            }
            prop_assert_eq!(manifest.get(&name), Some(&skill));
            // Every line that was not of the entry is still there, in its order.
            if before.get(&name).is_none() && !text.contains("skills =") {
                let after = manifest.to_string();
                let mut rest = after.lines();
                for line in text.lines() {
                    prop_assert!(rest.any(|it| it == line), "{:?} lost {:?}: {:?}", text, line, after);
                }
                prop_assert!(manifest.remove(&name).unwrap());
                prop_assert_eq!(manifest.wanted(), before.wanted());
            }
            prop_assert_eq!(is_dos && text.contains('\n'), manifest.to_string().contains("\r\n") && is_dos);
        });
    }

    #[test]
    fn a_first_skill_makes_the_table() {
        for (before, after) in [
            ("", "[skills]\npdf = \"a/b\"\n"),
            ("[model]\nname = 'x' # end", "[model]\nname = 'x' # end\n\n[skills]\npdf = \"a/b\"\n"),
            ("# all\r\n", "# all\r\n\r\n[skills]\r\npdf = \"a/b\"\r\n"),
        ] {
            let mut manifest: PackageManifest = before.parse().unwrap();
            manifest.set(&wanted("pdf", "a/b")).unwrap();
            assert_eq!(manifest.to_string(), after);
        }
        assert_eq!(PackageManifest::new().to_string(), "[skills]\n");
    }
}

mod many_skills_are_added_at_once {
    use std::slice;

    use proptest::prelude::*;
    use prowess_packages::{InstallTarget, Lock, PackageManifest, TargetForm, WantedSkill};

    use super::locked;

    fn wanted(name: &str, source: &str) -> WantedSkill {
        WantedSkill::new(name, source.parse().unwrap())
    }

    #[test]
    fn the_manifest_is_as_if_they_were_added_one_by_one() {
        proptest!(|(lines in prop::collection::vec(prop_oneof![
                Just("[skills]"), Just("[model]"), Just("# a comment"), Just(""), Just("[skills.d]"), Just("source = 'a/b'"),
                Just("a = \"a/b\" # x"), Just("c = { source = \"a/b\", copy = true }"), Just("b.source = 'a/b'"), Just("  e = 'a/b'"),
                Just("skills = { f = 'a/b' }"), Just("skills.g = 'a/b'"), Just("[skills.h]"),
            ], 0..9),
            ends in "\n?",
            names in prop::collection::btree_set("[a-l]", 1..5))| {
            let Ok(before) = PackageManifest::parse(&(lines.join("\n") + &*ends)) else { return Ok(()) };
            let skills: Vec<WantedSkill> = names.iter().map(|it| wanted(it, "x/y#v1")).collect();
            let (mut at_once, mut single) = (before.clone(), before.clone());
            let all_single = skills.iter().all(|it| single.set(it).is_ok());
            if at_once.set_all(&skills).is_err() {
                prop_assert_eq!(&at_once, &before);
                prop_assert!(!all_single, "{}", before);
            } else if all_single {
                // Between the braces of one table, only the spaces may differ.
                let [one, other] = [&at_once, &single].map(|it| match before.to_string() {
                    text if text.contains("skills = {") => it.to_string().replace(' ', ""),
                    _ => it.to_string(),
                });
                prop_assert_eq!(one, other);
            }
        });
        // The last one of a name counts, and what cannot be a name changes nothing.
        let mut manifest = PackageManifest::new();
        manifest.set_all(&[wanted("a", "x/y"), wanted("b", "x/y"), wanted("a", "x/z")]).unwrap();
        assert_eq!(manifest.to_string(), "[skills]\na = \"x/z\"\nb = \"x/y\"\n");
        let before = manifest.clone();
        manifest.set_all(&[wanted("c", "x/y"), wanted("C", "x/y")]).unwrap_err();
        assert_eq!(manifest, before);
    }

    #[test]
    fn the_lock_is_as_if_they_were_added_one_by_one() {
        let skill = |name: &str, text: &str, target: &str| {
            let mut skill = locked(name, &[("SKILL.md", text)]);
            skill.targets.push(InstallTarget::new(target, TargetForm::Folder));
            skill
        };
        let skills = [
            skill("tea", "t", ".agents/skills/tea"),
            skill("pdf", "old", ".agents/skills/pdf"),
            skill("docx", "d", ".agents/skills/docx"),
            skill("pdf", "new", ".claude/skills/pdf"),
        ];
        let (mut at_once, mut single) = (Lock::default(), Lock::default());
        at_once.insert_all(skills.clone()).unwrap();
        skills.iter().for_each(|it| drop(single.insert(it.clone()).unwrap()));
        assert_eq!(at_once, single);
        assert_eq!(at_once.to_string().parse::<Lock>().unwrap(), single);
        let mut bad = skill("zip", "z", ".agents/skills/zip");
        bad.digest = skills[0].digest;
        for refused in [vec![skills[0].clone(), bad], {
            // One inside of another, which both are new.
            let (mut one, mut other) = (skills[0].clone(), skills[0].clone());
            (one.name, other.name) = ("a".to_owned(), "b".to_owned());
            one.targets[0].path = ".agents/skills/a".to_owned();
            other.targets[0].path = ".agents/skills/a/b".to_owned();
            vec![one, other]
        }] {
            at_once.insert_all(refused).unwrap_err();
            assert_eq!(at_once, single);
        }
        at_once.insert_all(slice::from_ref(&skills[1]).iter().cloned()).unwrap();
        assert_eq!(at_once.get("pdf").unwrap().digest, skills[1].digest);
    }
}

mod a_mistake_in_a_manifest_is_shown_with_its_place {
    use std::time::Duration;

    use prowess_packages::PackageManifest;

    /// Returns the message and the hint of the first mistake.
    fn mistake(text: &str) -> (String, String) {
        let error = PackageManifest::parse(text).unwrap_err();
        assert_eq!(PackageManifest::validate(text)[0], error);
        (error.to_string(), error.hint().unwrap_or_default())
    }

    #[test]
    fn each_mistake_has_a_line_and_a_hint() {
        for (text, message, hint) in [
            (
                "[skills]\n<<<<<<< HEAD\na = \"a/b\"\n=======\nb = \"a/b\"\n>>>>>>> two\n",
                "lines 2 to 6 have an unresolved merge conflict",
                "both sides",
            ),
            ("skills = 1\n", "line 1, column 1: `skills` must be a table", "[skills]"),
            (
                "[skills]\n\npdf = 1\n",
                "line 3, column 1: `skills.pdf` must be a source",
                "anthropics/skills",
            ),
            (
                "[skills]\n\"ä\" = 1",
                "line 2, column 1: `ä` cannot be the name",
                "lowercase letters",
            ),
            (
                "[skills]\npdf = { skill = \"x\" }",
                "line 2, column 1: `skills.pdf` must have a `source`",
                "source =",
            ),
            (
                "[skills]\npdf = { source = \"a/b\", skill = 1 }",
                "`skills.pdf.skill` must be a text",
                "",
            ),
            (
                "[skills]\npdf = { source = \"a/b\", clients = [\"cladue-code\"] }",
                "line 2, column 25: `cladue-code` in `skills.pdf.clients`",
                "`claude-code`",
            ),
            ("[skills]\npdf = { source = \"a/b\", copy = 1 }", "must be `true` or `false`", ""),
            (
                "[skills]\npdf = \"a/../../b\"",
                "line 2, column 1: the source of `pdf` cannot be read",
                "",
            ),
            ("[skills]\npdf = \"a/b@x,y\"", "", ""),
            ("[skills]\npdf = \"a/b\"\npdf = \"a/b\"\n", "line 3, column 1: duplicate key", ""),
            ("[skills]\n  pdf = \"a/b\n", "line 2, column 13: ", ""),
            (
                "[packages]\nmin_age = \"3 days\"",
                "line 2, column 1: `3 days` in `packages.min_age`",
                "\"3d\"",
            ),
            ("[packages]\nmin_age = 3", "`packages.min_age` must be a text", "\"3d\""),
            ("[packages]\nmin_age = \"99999999999w\"", "`99999999999w`", "\"3d\""),
            (
                "[packages.registries]\nteam = \"ftp://x\"",
                "line 2, column 1: `ftp://x`",
                "https://",
            ),
            (
                "[packages.signers]\n\"a/*\" = \"x\"",
                "`packages.signers.a/*` must be a list of texts",
                "",
            ),
        ] {
            if message.is_empty() {
                continue;
            }
            let (said, hinted) = mistake(text);
            assert!(said.contains(message) && hinted.contains(hint), "{text}: {said}; {hinted}");
        }
        let all = PackageManifest::validate("[skills]\na = 1\nB = \"a/b\"\n[packages]\ncopy = 1\n");
        assert_eq!(
            all.iter().map(|it| it.position().unwrap()).collect::<Vec<_>>(),
            [(2, 1), (3, 1), (5, 1)]
        );
    }

    #[test]
    fn names_are_those_of_folders_on_every_system() {
        let (said, hint) = mistake("[skills]\npdf = \"a/b\"\nPDF = \"a/b\"\n");
        assert!(said.contains("line 3, column 1: `PDF` and `pdf` would be one folder"), "{said}");
        assert!(hint.contains("`skill`"), "{hint}");
        let (_, hint) = mistake("[skills]\n\"My_Skill\" = \"a/b\"\n");
        assert_eq!(hint, "write `my-skill = { source = \"…\", skill = \"My_Skill\" }`");
        for name in ["con", "../x", "a b", "", "a--b", "-a"] {
            assert!(
                mistake(&format!("[skills]\n\"{name}\" = \"a/b\"\n"))
                    .0
                    .contains("cannot be the name"),
                "{name}"
            );
        }
    }

    #[test]
    fn settings_of_packages_are_read() {
        let text = "[packages]\nclients = [\"claude-code\", \"codex\"]\ncopy = true\nmin_age = \"3d\"\nregistry = 1\n\
                    [packages.registries]\nteam = \"https://skills.example.com\"\n\
                    [packages.signers]\n\"anthropics/*\" = [\"minisign:RWQ\"]\n[skills]\npdf = \"a/b\"\n";
        assert_eq!(PackageManifest::validate(text), []);
        let manifest = PackageManifest::parse(text).unwrap();
        let settings = manifest.settings();
        assert_eq!(settings.min_age, Some(Duration::from_secs(3 * 86_400)));
        assert_eq!(settings.registries["team"].as_str(), "https://skills.example.com/");
        assert_eq!(settings.signers[0].identities, ["minisign:RWQ"]);
        let pdf = manifest.get("pdf").unwrap();
        assert_eq!(manifest.clients_of(pdf).unwrap(), ["claude-code", "codex"]);
        assert!(manifest.is_copied(pdf));
        assert_eq!(manifest.notes()[0].key, "packages.registry");
    }

    #[test]
    fn a_policy_for_signers_is_for_every_spelling_of_a_source() {
        let text = "[packages.signers]\n\"anthropics/*\" = [\"a\"]\n\"anthropics/free\" = []\n\"*\" = [\"b\"]\n\"npm:@acme/*\" = [\"c\"]\n\"https://skills.example.com/*\" = [\"d\"]\n";
        let manifest = PackageManifest::parse(text).unwrap();
        let signer = |source: &str| {
            let signers = manifest.settings().required_signers(&source.parse().unwrap());
            signers.map(|it| it[0].clone())
        };
        for source in [
            "anthropics/skills",
            "https://github.com/Anthropics/skills.git",
            "git@github.com:anthropics/skills.git",
            "ssh://git@github.com/anthropics/skills",
            "anthropics/skills/x#v1",
            "https://github.com/anthropics/skills/tree/main/x",
        ] {
            assert_eq!(signer(source).as_deref(), Some("a"), "{source}");
        }
        assert_eq!(signer("anthropics/free"), None);
        assert_eq!(signer("anthropics-evil/skills").as_deref(), Some("b"));
        assert_eq!(signer("npm:@acme/skills").as_deref(), Some("c"));
        assert_eq!(signer("https://skills.example.com/team").as_deref(), Some("d"));
    }
}

mod a_lock_file_is_the_same_for_the_same_skills {
    use std::{fs, path::Path, process::Command};

    use proptest::prelude::*;
    use prowess_packages::{
        InstallTarget, Lock, LockedSkill, PackageManifest, TargetForm, WantedSkill,
    };

    use super::{file, locked};

    fn texts() -> impl Strategy<Value = Option<String>> {
        prop::option::of("[^\\x00-\\x1f\\x7f-\\x9f]{1,12}")
    }

    prop_compose! {
        fn skills()(
            name in "[a-z]{1,3}",
            paths in prop::collection::btree_set("[a-zäß\"' .]{0,5}[a-z]", 0..4),
            texts in (texts(), texts(), texts(), texts()),
            published in prop::option::of(0..i64::MAX as u64),
            clients in prop::option::of(prop::collection::vec("[a-z\"-]{1,9}", 0..3)),
            copy in any::<bool>(),
            forms in prop::collection::vec(any::<bool>(), 0..3),
        ) -> LockedSkill {
            let mut seen = std::collections::BTreeSet::new();
            let paths: Vec<&String> = paths.iter().filter(|it| seen.insert(it.to_lowercase())).collect();
            let files: Vec<(&str, &str)> = paths.iter().map(|it| (it.as_str(), "x")).collect();
            let mut skill = locked(&name, &files);
            (skill.version, skill.plugin, skill.signer, skill.integrity) = texts;
            (skill.published, skill.clients, skill.copy) = (published, clients, copy);
            for (at, is_link) in forms.into_iter().enumerate() {
                let form = if is_link { TargetForm::Link } else { TargetForm::Folder };
                skill.targets.push(InstallTarget::new(format!(".client{at}/skills/{name}"), form));
            }
            skill
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        proptest!(|(skills in prop::collection::vec(skills(), 0..4))| {
            let mut lock = Lock::default();
            for skill in skills {
                if let Err(error) = lock.insert(skill) {
                    // Only names that systems compose into one may be refused.
                    prop_assert!(error.to_string().contains("the path"), "{}", error);
                }
            }
            let text = lock.to_string();
            let back = Lock::parse(&text).unwrap();
            prop_assert_eq!(&back, &lock);
            prop_assert_eq!(back.to_string(), text);
        });
    }

    #[test]
    fn the_text_is_sorted_and_has_a_field_on_a_line() {
        let pdf = {
            let mut pdf = locked("pdf", &[("SKILL.md", "x"), ("scripts/fill.sh", "y")]);
            pdf.targets.push(InstallTarget::new(".agents/skills/pdf", TargetForm::Folder));
            pdf.targets.push(InstallTarget::new(".claude/skills/pdf", TargetForm::Link));
            pdf.reference = Some("refs/heads/main".to_owned());
            pdf
        };
        let docx = locked("docx", &[("SKILL.md", "x")]);
        let [mut one, mut two] = [Lock::default(), Lock::default()];
        one.insert(pdf.clone()).unwrap();
        one.insert(docx.clone()).unwrap();
        two.insert(docx).unwrap();
        two.insert(pdf).unwrap();
        assert_eq!(one.to_string(), two.to_string());
        let digest = |text: &str| prowess_packages::FileDigest::of(text.as_bytes()).to_string();
        let (x, y) = (digest("x"), digest("y"));
        let of = one.get("pdf").unwrap().digest;
        let text = one.to_string();
        let (_, behind) = text.split_once("\n\n[[skill]]\nname = \"pdf\"\n").unwrap();
        assert_eq!(
            behind,
            format!(
                "source = \"anthropics/skills\"\nurl = \"https://github.com/anthropics/skills\"\nreference = \"refs/heads/main\"\n\
                 commit = \"0123456789abcdef0123456789abcdef01234567\"\npath = \"skills/pdf\"\ndigest = \"{of}\"\nfiles = [\n\
                 \x20   {{ path = \"SKILL.md\", size = 1, digest = \"{x}\" }},\n\
                 \x20   {{ path = \"scripts/fill.sh\", size = 1, executable = true, digest = \"{y}\" }},\n]\ntargets = [\n\
                 \x20   {{ path = \".agents/skills/pdf\", form = \"folder\" }},\n\
                 \x20   {{ path = \".claude/skills/pdf\", form = \"link\" }},\n]\n"
            )
        );
        assert!(
            text.starts_with("# ")
                && text.contains("\nversion = 1\n\n[[skill]]\nname = \"docx\"\n")
        );
    }

    #[test]
    fn fields_of_other_versions_survive() {
        let mut lock = Lock::default();
        lock.insert(locked("pdf", &[("SKILL.md", "x")])).unwrap();
        let text = lock.to_string();
        let text = text
            .replace("version = 1\n", "version = 1\nnext = [\"b\", \"a\"]\n")
            .replace("files = [", "\"a b\" = { z = 1, 'y' = 1.5 }\nfiles = [")
            + "date = 2026-01-01\n\n[skill.more]\ntext = \"\"\"a\nb\"\"\"\n\n[[later]]\nx = 1\n";
        let mut lock = Lock::parse(&text).unwrap();
        lock.insert(locked("docx", &[("SKILL.md", "x")])).unwrap();
        lock.insert(locked("pdf", &[("SKILL.md", "newer")])).unwrap();
        let after = lock.to_string();
        for field in [
            "version = 1\nlater = [{ x = 1 }]\nnext = [\n    \"b\",\n    \"a\",\n]\n",
            "\"a b\" = { y = 1.5, z = 1 }\ndate = 2026-01-01\nmore = { text = \"a\\nb\" }\n",
        ] {
            assert!(after.contains(field), "{after}");
        }
        assert_eq!(Lock::parse(&after).unwrap(), lock);
        assert_eq!(Lock::parse(&after).unwrap().to_string(), after);
    }

    #[test]
    fn line_ends_of_other_systems_are_read() {
        let mut lock = Lock::default();
        lock.insert(locked("pdf", &[("SKILL.md", "x")])).unwrap();
        let text = format!("\u{feff}{}", lock.to_string().replace('\n', "\r\n"));
        assert_eq!(Lock::parse(&text).unwrap(), lock);
        assert!(!lock.to_string().contains('\r'));
    }

    #[test]
    fn git_merges_skills_that_two_branches_add() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let output = Command::new("git")
                .current_dir(folder.path())
                .args([
                    "-c",
                    "user.name=t",
                    "-c",
                    "user.email=t@example.com",
                    "-c",
                    "commit.gpgsign=false",
                ])
                .args(arguments)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .output()
                .unwrap();
            assert!(output.status.success(), "git {arguments:?}: {output:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        write(folder.path(), &["a", "h", "p", "z"]);
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "base"]);
        git(&["checkout", "-q", "-b", "one"]);
        write(folder.path(), &["a", "b", "h", "p", "z"]);
        git(&["commit", "-q", "-am", "one"]);
        git(&["checkout", "-q", "-b", "two", "main"]);
        write(folder.path(), &["a", "h", "i", "p", "z", "zz"]);
        git(&["commit", "-q", "-am", "two"]);
        // One that only changes, beside one that is new.
        git(&["checkout", "-q", "-b", "three", "main"]);
        write(folder.path(), &["a", "h", "p", "z"]);
        let changed = fs::read_to_string(folder.path().join("prowess.lock")).unwrap();
        let mut lock = Lock::parse(&changed).unwrap();
        lock.insert(locked("p", &[("SKILL.md", "newer"), ("more.md", "x")])).unwrap();
        fs::write(folder.path().join("prowess.lock"), lock.to_string()).unwrap();
        git(&["commit", "-q", "-am", "three"]);
        git(&["merge", "-q", "one", "-m", "merge"]);
        git(&["merge", "-q", "two", "-m", "merge"]);
        let lock =
            Lock::parse(&fs::read_to_string(folder.path().join("prowess.lock")).unwrap()).unwrap();
        let names: Vec<&str> = lock.skills().iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["a", "b", "h", "i", "p", "z", "zz"]);
        assert_eq!(lock.get("p").unwrap().files.len(), 2);
        let manifest = fs::read_to_string(folder.path().join("prowess.toml")).unwrap();
        assert_eq!(lock.differences(&PackageManifest::parse(&manifest).unwrap()), []);
        let again = lock.to_string();
        assert_eq!(again, fs::read_to_string(folder.path().join("prowess.lock")).unwrap());
    }

    /// Writes manifest and lock with these skills.
    fn write(folder: &Path, names: &[&str]) {
        let (mut lock, mut manifest) = (Lock::default(), PackageManifest::new());
        for name in names {
            let mut skill = locked(name, &[]);
            let files = vec![file("SKILL.md", name), file("scripts/a.sh", "same")];
            skill = LockedSkill::new(*name, skill.source, skill.url, files);
            skill
                .targets
                .push(InstallTarget::new(format!(".agents/skills/{name}"), TargetForm::Folder));
            manifest.set(&WantedSkill::new(*name, skill.source.clone())).unwrap();
            lock.insert(skill).unwrap();
        }
        fs::write(folder.join("prowess.lock"), lock.to_string()).unwrap();
        fs::write(folder.join("prowess.toml"), manifest.to_string()).unwrap();
    }
}

mod nothing_in_a_lock_file_is_trusted {
    use proptest::prelude::*;
    use prowess_packages::{
        ContentDigest, InstallTarget, Lock, LockError, PackageManifest, TargetForm,
    };

    use super::{file, locked};

    /// Returns a lock of one skill, with a target.
    fn text() -> String {
        let mut skill = locked("pdf", &[("SKILL.md", "x"), ("a/b.md", "y")]);
        skill.targets.push(InstallTarget::new(".agents/skills/pdf", TargetForm::Folder));
        let mut lock = Lock::default();
        lock.insert(skill).unwrap();
        lock.to_string()
    }

    fn refusal(text: &str) -> LockError {
        Lock::parse(text).unwrap_err()
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_refused() {
        for path in [
            "../x",
            "a/../../x",
            "/etc/passwd",
            "a\\\\b",
            "C:/x",
            "c:x",
            "a//b",
            "./a",
            "a/.",
            "a\\nb",
            "a\\u0085b",
            "",
            "~/x",
            "skill.MD",
            "A/B.md",
            "a",
            "SKILL.md/x",
        ] {
            for field in ["\"a/b.md\"", "\"skills/pdf\""] {
                // For the folder in the repository, only what leads away is wrong.
                if field.contains("skills")
                    && matches!(path, "" | "skill.MD" | "A/B.md" | "a" | "SKILL.md/x")
                {
                    continue;
                }
                let more = "{ path = \"a/b.md\", size = 1, digest = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\" },\n";
                let text = match path {
                    "skill.MD" | "A/B.md" | "a" | "SKILL.md/x" => text().replace(
                        "files = [\n",
                        &format!("files = [\n{}", more.replace("a/b.md", path)),
                    ),
                    _ => text().replace(field, &format!("\"{path}\"")),
                };
                let error = refusal(&text);
                assert!(matches!(error, LockError::Path { .. }), "{path}: {error:?}");
                assert_eq!(error.line(), Some(4), "{error}");
                assert!(!error.to_string().contains(char::is_control));
            }
        }
        let mut lock = Lock::default();
        let composed = locked("pdf", &[("\u{e9}", "x"), ("e\u{301}", "y")]);
        assert!(lock.insert(composed).unwrap_err().to_string().contains("is another file"));
    }

    #[test]
    fn a_target_is_the_folder_of_its_skill() {
        let target = "\".agents/skills/pdf\"";
        for path in [
            "src",
            ".agents/skills",
            ".git/skills/pdf",
            ".GIT/pdf",
            "a/../pdf",
            "/home/u/pdf",
            "pdf",
            "~/../pdf",
            "~root/pdf",
            "pdf/x",
            "a/PDF",
        ] {
            let error = refusal(&text().replace(target, &format!("\"{path}\"")));
            assert!(matches!(error, LockError::Path { line: Some(4), .. }), "{path}: {error:?}");
        }
        let mut lock = Lock::parse(&text()).unwrap();
        let mut inner = locked("x", &[("SKILL.md", "x")]);
        for path in [".agents/skills/pdf/x", ".Agents/skills/PDF/sub/x"] {
            inner.targets = vec![InstallTarget::new(path, TargetForm::Link)];
            assert!(lock.insert(inner.clone()).unwrap_err().to_string().contains("overlaps with"));
        }
        assert!(lock.check_in_project().is_ok());
        let user = Lock::parse(&text().replace(target, "\"~/.agents/skills/pdf\"")).unwrap();
        assert!(
            user.check_in_project().unwrap_err().to_string().contains("outside of the project")
        );
    }

    #[test]
    fn a_digest_that_is_not_that_of_the_files_is_refused() {
        let good = text();
        let said = Lock::parse(&good).unwrap().get("pdf").unwrap().digest.to_string();
        let other = ContentDigest::of(&[]).to_string();
        assert!(matches!(
            refusal(&good.replace(&said, &other)),
            LockError::Mismatch { line: Some(4), .. }
        ));
        assert!(
            matches!(refusal(&good.replace(&said, "sha256:1")), LockError::Digest { line: 10, .. }),
            "{:?}",
            refusal(&good.replace(&said, "sha256:1"))
        );
        assert!(matches!(
            refusal(&good.replace("size = 1, digest = \"sha256:", "size = 1, digest = \"md5:")),
            LockError::Digest { line: 12, .. }
        ));
        assert!(matches!(
            refusal(&good.replace(
                "{ path = \"a/b.md\", size = 1",
                "{ path = \"a/b.md\", executable = true, size = 1"
            )),
            LockError::Mismatch { .. }
        ));
    }

    #[test]
    fn a_newer_version_is_said() {
        let error = refusal("version = 2\nskill = \"anything\"\n");
        assert_eq!(
            error.to_string(),
            "the lock file has version 2, and this program reads up to 1"
        );
        assert!(error.hint().unwrap().contains("update Prowess"));
        for text in ["", "version = \"1\"", "version = 0", "version = -1"] {
            assert!(matches!(refusal(text), LockError::Field { .. }), "{text}");
        }
    }

    #[test]
    fn an_unresolved_merge_conflict_is_said() {
        let text = text()
            .replace("digest = \"sha256:", "<<<<<<< HEAD\ndigest = \"sha256:")
            .replace("targets", "=======\n>>>>>>> theirs\ntargets");
        let error = refusal(&text);
        let LockError::Conflict { first: 10, last } = error else { panic!("{error:?}") };
        assert!(last > 12);
        assert!(error.to_string().contains("unresolved merge conflict in lines 10 to"));
        assert!(error.hint().unwrap().contains("git checkout --theirs prowess.lock"));
        assert!(error.hint().unwrap().contains("prowess sync"));
    }

    #[test]
    fn a_skill_that_is_there_twice_is_refused() {
        let good = text();
        let (_, entry) = good.split_once("[[skill]]").unwrap();
        let twice = format!("{good}\n[[skill]]{}", entry.replace(".agents", ".claude"));
        let error = refusal(&twice);
        assert!(
            matches!(&error, LockError::Duplicate { line, name } if *line > 15 && name == "pdf"),
            "{error:?}"
        );
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let good = text();
        assert_eq!(
            refusal(&good.replace("form = \"folder\"", "form = \"junction\"")).to_string(),
            "line 16 of the lock file: `junction` is not a form of a target"
        );
        for (from, to, field) in [
            ("name = \"pdf\"", "", "name"),
            ("source = ", "sauce = ", "source"),
            ("url = ", "uri = ", "url"),
            ("files = ", "fills = ", "files"),
            (", size = 1", "", "files.size"),
            ("size = 1", "size = -1", "files.size"),
            ("targets = [", "copy = 1\ntargets = [", "copy"),
            ("targets = [", "clients = [1]\ntargets = [", "clients"),
            ("name = \"pdf\"", "name = 1", "name"),
        ] {
            let error = refusal(&good.replace(from, to));
            assert!(
                matches!(&error, LockError::Field { field: it, .. } if it == field),
                "{from}: {error:?}"
            );
        }
        for (from, to) in [
            ("0123456789abcdef0123456789abcdef01234567", "--upload-pack=x"),
            ("https://github.com/anthropics/skills", "--x"),
            ("commit = ", "reference = \"--x\"\ncommit = "),
            ("commit = ", "version = \"a\\u001bb\"\ncommit = "),
            ("name = \"pdf\"", "name = \"PDF\""),
        ] {
            let error = refusal(&good.replace(from, to));
            assert!(matches!(error, LockError::Value { line: Some(4), .. }), "{error:?}");
        }
        assert!(
            matches!(
                refusal(&good.replace("\"anthropics/skills\"", "\"a/../..\"")),
                LockError::Source { line: 6, .. }
            ),
            "{:?}",
            refusal(&good.replace("\"anthropics/skills\"", "\"a/../..\""))
        );
        assert!(matches!(
            refusal(&good.replace("version = 1", "version = ")),
            LockError::Syntax { line: 2, .. }
        ));
        assert!(matches!(refusal(&"x".repeat((16 << 20) + 1)), LockError::TooLarge { .. }));
    }

    #[test]
    fn no_bytes_cause_a_panic() {
        proptest!(|(any in any::<String>(), at in 0..900_usize, len in 0..40_usize, put in "[\\x00-\\x7f]{0,8}")| {
            let _ = (Lock::parse(&any), PackageManifest::parse(&any), PackageManifest::validate(&format!("[skills]\n{any}")));
            let good = text();
            let at = at.min(good.len());
            let end = (at + len).min(good.len());
            let changed = format!("{}{put}{}", &good[..at], &good[end..]);
            if let Ok(lock) = Lock::parse(&changed) {
                prop_assert_eq!(Lock::parse(&lock.to_string()).unwrap(), lock);
            }
        });
    }

    #[test]
    fn a_lock_that_could_not_be_read_is_not_written() {
        let mut lock = Lock::parse(&text()).unwrap();
        let before = lock.clone();
        let good = locked("docx", &[("SKILL.md", "x")]);
        let mut bad = vec![good.clone(); 5];
        bad[0].name = "Docx".to_owned();
        bad[1].commit = Some("main".to_owned());
        bad[2].path = "../x".to_owned();
        bad[3].files.push(file("z", "z"));
        bad[4].version = Some(String::new());
        for skill in bad {
            let error = lock.insert(skill).unwrap_err();
            assert!(error.to_string().contains("cannot be locked"), "{error}");
            assert_eq!(lock, before);
        }
        assert!(lock.insert(good).unwrap().is_none());
        assert_eq!(lock.remove("pdf"), before.get("pdf").cloned());
    }
}

mod a_lock_is_compared_with_its_manifest {
    use prowess_packages::{Lock, PackageManifest};

    use super::locked;

    #[test]
    fn each_difference_is_reported() {
        let mut lock = Lock::default();
        for name in ["docx", "extra", "pdf", "same"] {
            let mut skill = locked(name, &[("SKILL.md", "x")]);
            skill.clients = (name == "docx").then(|| vec!["codex".to_owned()]);
            lock.insert(skill).unwrap();
        }
        let manifest = "[skills]\nsame = \"https://github.com/anthropics/skills\"\nmissing = \"a/b\"\npdf = { source = \"anthropics/skills#v2\", skill = \"forms\", copy = true }\ndocx = \"anthropics/skills\"\n";
        let manifest: PackageManifest = manifest.parse().unwrap();
        let said: Vec<String> =
            lock.differences(&manifest).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "`docx` is locked for codex, and the manifest asks for those it finds",
                "`extra` is in the lock file, but not in the manifest",
                "`missing` is not in the lock file",
                "`pdf` is locked from `anthropics/skills`, and the manifest asks for `anthropics/skills#v2`",
                "`pdf` is locked as the skill `pdf`, and the manifest asks for `forms`",
                "`pdf` is locked with links, and the manifest asks for copies",
            ]
        );
    }
}
