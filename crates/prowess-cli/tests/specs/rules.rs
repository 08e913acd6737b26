//! The rules, their pages, and the formats for other programs.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use prowess::{LiveLibrary, RULES, Rule};
use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr as _;

use crate::world::{Ran, World};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the value of a line such as `- since: 0.1.0`.
fn stated<'p>(page: &'p str, key: &str) -> Option<&'p str> {
    page.lines().find_map(|it| it.strip_prefix(&format!("- {key}: ")))
}

/// Returns the text under a heading.
fn section<'p>(page: &'p str, title: &str) -> &'p str {
    let rest = page.split_once(&format!("\n## {title}\n")).map_or("", |it| it.1);
    rest.split("\n## ").next().unwrap().trim()
}

/// Runs a command at a terminal of this width.
fn at_width(world: &World, columns: usize, arguments: &str) -> Ran {
    let line = format!("stty rows 50 cols {columns}; TERM=xterm $0 {arguments}");
    world.run_script(&format!("script -qefc \"{line}\" /dev/null"))
}

/// Returns a line without colours.
fn plain(line: &str) -> String {
    let mut pieces = line.trim_end_matches('\r').split('\x1b');
    let first = pieces.next().unwrap_or_default();
    pieces.fold(first.to_owned(), |out, it| out + it.split_once('m').map_or("", |it| it.1))
}

mod every_rule_has_a_page {
    use super::*;

    /// A code block of an example.
    struct Block<'p> {
        language: &'p str,
        path: Option<&'p str>,
        text: String,
    }

    /// Returns the blocks of the `bad` or the `good` example of a page.
    fn blocks<'p>(page: &'p str, which: &str) -> Vec<Block<'p>> {
        let mut blocks = Vec::new();
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            let info = line.trim_start_matches('`');
            let ticks = &line[..line.len() - info.len()];
            if ticks.len() < 3 {
                continue;
            }
            let text: String =
                lines.by_ref().take_while(|it| *it != ticks).flat_map(|it| [it, "\n"]).collect();
            let words: Vec<&str> = info.split(' ').collect();
            if words.get(1) == Some(&which) {
                blocks.push(Block { language: words[0], path: words.get(2).copied(), text });
            }
        }
        assert!(!blocks.is_empty(), "no {which} example in {page}");
        blocks
    }

    /// Returns the rules and severities of the findings in an example; empty if they cannot be
    /// produced on this machine.
    fn found(page: &str, which: &str, more: &[&str]) -> Vec<(String, String)> {
        let world = World::new();
        let blocks = blocks(page, which);
        let files: Vec<(&str, &str)> =
            blocks.iter().filter_map(|it| Some((it.path?, &*it.text))).collect();
        for (number, (path, text)) in files.iter().enumerate() {
            if files[..number].iter().any(|it| it.0 == *path) {
                let live_library = LiveLibrary::start(&world.options()).unwrap();
                world.write(format!("skills/{path}"), text);
                let library = live_library.reload().unwrap();
                let found = library.findings().iter();
                return found.map(|it| (it.rule.code.into(), it.severity.to_string())).collect();
            }
            world.write(format!("skills/{path}"), text);
        }
        let mut command = "prowess check .";
        for block in &blocks {
            match block.language {
                "sh" => {
                    let ran = world.run_script(&format!("cd skills && set -e\n{}", block.text));
                    assert_eq!(ran.code, Some(0), "{}{}", ran.stderr, block.text);
                }
                "console" => command = block.text.trim().strip_prefix("$ ").unwrap(),
                _ => assert!(block.path.is_some(), "whose file is {}", block.text),
            }
        }
        let arguments = command.strip_prefix("prowess ").unwrap().split(' ');
        let own = ["--json", "--cwd", "skills"].iter().chain(more).copied();
        let arguments: Vec<&str> = arguments.chain(own).collect();
        let is_locked = blocks.iter().any(|it| it.text.contains("chmod 000"));
        let ran = match is_locked {
            true => world.run_without_rights(&arguments),
            false => world.run(&arguments),
        };
        world.run_script("chmod -R u+rwx skills");
        let said = ran.said();
        let word = |it: &Json| it.as_str().unwrap().to_owned();
        let pair = |it: &Json| (word(&it["rule"]), word(&it["severity"]));
        said.findings().iter().map(pair).collect()
    }

    /// Returns whether a rule is checked only when a library is loaded.
    fn is_listed(rule: &Rule) -> bool {
        rule.page.contains("\n$ prowess list ") || rule.code == "kept-last-good"
    }

    /// Returns the profiles in which a rule can be found: a list has only one.
    fn profiles(rule: &Rule) -> &'static [&'static str] {
        if is_listed(rule) { &["lenient"] } else { &["spec", "lenient", "reference"] }
    }

    #[test]
    fn a_bad_example_gives_its_finding_and_a_good_one_none() {
        let mut seen = 0;
        for rule in RULES {
            let named = section(rule.page, "Bad").rsplit("\n\n").next().unwrap();
            let named = named.strip_prefix("Beside it come ").unwrap_or_default();
            let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
            for profile in profiles(rule) {
                let place = format!("{} in {profile}", rule.code);
                let others = |found: Vec<(String, String)>| {
                    let mut others = found;
                    others.retain(|it| !named.contains(&&*it.0));
                    others
                };
                let bad = found(rule.page, "bad", &["--profile", profile]);
                let weight = stated(rule.page, profile).filter(|it| *it != "none");
                let wanted = weight.map(|it| (rule.code.to_owned(), it.to_owned()));
                let bad = others(bad);
                assert_eq!(bad.first(), wanted.as_ref(), "{place}: {bad:?}");
                assert!(bad.iter().all(|it| Some(it) == wanted.as_ref()), "{place}: {bad:?}");
                let good = found(rule.page, "good", &["--profile", profile]);
                assert_eq!(others(good), [], "{place}");
                seen += 1;
            }
        }
        assert!(seen > RULES.len() * 2, "{seen}");
    }

    #[test]
    fn a_page_says_what_puts_a_fault_right() {
        let mut fixed = 0;
        for rule in RULES {
            let stated = stated(rule.page, "fixed by").unwrap();
            if is_listed(rule) {
                assert_eq!(stated, "hand", "{}", rule.code);
                continue;
            }
            let command = stated.strip_prefix("`prowess check ").map(|it| it.trim_end_matches('`'));
            let arguments: Vec<&str> = command.unwrap_or("--fix").split(' ').collect();
            let left = found(rule.page, "bad", &arguments);
            let is_left = left.iter().any(|it| it.0 == rule.code);
            assert_eq!((command.is_none(), stated == "hand"), (is_left, is_left), "{}", rule.code);
            fixed += usize::from(!is_left);
        }
        assert!(fixed > 10, "{fixed}");
    }
}

mod a_rule_can_be_looked_up {
    use super::*;

    #[test]
    fn a_page_is_set_for_its_terminal() {
        let world = World::new();
        for columns in [40, 80, 200] {
            for code in ["yaml-repaired", "definition", "unknown-field"] {
                let ran = at_width(&world, columns, &format!("rule {code}"));
                assert_eq!(ran.code, Some(0), "{}", ran.stdout());
                let lines: Vec<String> = ran.stdout().lines().map(plain).collect();
                let widest = lines.iter().map(|it| it.width()).max().unwrap();
                assert!(widest <= columns.min(100) && widest > columns.min(100) / 2, "{lines:#?}");
                assert!(lines.iter().any(|it| it == "Why") && lines[0] == code, "{lines:#?}");
                assert!(ran.stdout().contains("\x1b[1mWhy\x1b[0m"), "{}", ran.stdout());
            }
        }
        let plain = at_width(&world, 80, "rule yaml-repaired --color never");
        assert!(!plain.stdout().contains('\x1b') && !plain.stdout().contains("```"));
    }

    #[test]
    fn a_page_passes_a_pipe_as_it_was_written() {
        let world = World::new();
        for rule in RULES {
            let ran = world.run(["rule", rule.code]);
            assert_eq!((ran.code, ran.stdout(), &*ran.stderr), (Some(0), rule.page, ""));
        }
        let json = world.run(["rule", "name-case", "--json"]).json();
        let severity = json!({ "lenient": "warning", "spec": "error", "reference": "error" });
        assert_eq!((&json["rule"], &json["severity"]), (&json!("name-case"), &severity));
        assert_eq!(json["summary"], "the name is lowercase");
        assert_eq!(json["since"], "0.1.0");
        assert_eq!(json["fixed_by"], "prowess check --fix --rename lowercase");
        let fixable = world.run(["rule", "yaml-repaired", "--json"]).json();
        assert_eq!(fixable["fixed_by"], "prowess check --fix");
        assert_eq!(json["page"], prowess::rule("name-case").unwrap().page);
        let why = json["why"].as_str().unwrap();
        assert!(
            why.starts_with("Names must be lowercase. OpenHands,") && !why.contains('\n'),
            "{why}"
        );
        assert!(json["fix"].as_str().unwrap().starts_with("Write the name in lower case"));
    }

    #[test]
    fn all_rules_are_listed_with_their_weight() {
        let world = World::new();
        let listed = world.run(["rule"]);
        assert_eq!((listed.code, listed.stdout().lines().count()), (Some(0), RULES.len()));
        let line = |ran: &Ran, code: &str| {
            let line = ran.stdout().lines().find(|it| it.starts_with(code)).unwrap().to_owned();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line(&listed, "name-case"), "name-case error the name is lowercase");
        let reference = world.run(["rule", "--profile", "reference"]);
        assert_eq!(
            line(&reference, "file-name "),
            "file-name none the file is called exactly SKILL.md"
        );
        let json = world.run(["rule", "--json"]).json();
        let rules = json["rules"].as_array().unwrap();
        assert_eq!(rules.len(), RULES.len());
        assert_eq!(rules[0]["severity"]["spec"], "warning");
        for columns in [40, 72, 80, 200] {
            let ran = at_width(&world, columns, "rule");
            let widest = ran.stdout().lines().map(|it| plain(it).width()).max().unwrap();
            assert!(widest <= columns, "{}", ran.stdout());
            assert!(ran.stdout().contains("the name is lowercase"));
        }
    }

    #[test]
    fn a_code_that_is_misspelt_gets_a_suggestion() {
        let world = World::new();
        for (typed, hint) in [
            ("name-fodler", "did you mean `name-folder`?"),
            ("allowed-tools", "possible rules: `allowed-tools-form`, `allowed-tools-not-text`"),
            ("zzzzzzzzzzzzz", "`prowess rule` lists all rules"),
            ("\x1b[2J", "`prowess rule` lists all rules"),
        ] {
            let ran = world.run(["rule", typed]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{typed}");
            assert!(ran.stderr.contains(hint), "{}", ran.stderr);
            ran.assert_safe();
        }
        let page = world.run(["rule", "name-case"]);
        for typed in ["Name-Case", "name_case"] {
            assert_eq!(world.run(["rule", typed]).out, page.out);
        }
    }

    #[test]
    fn findings_say_once_where_to_read_on() {
        let world = World::new()
            .document("a", "---\nname: a\ndescription: a\nicon: b\n---\nText\n")
            .document("b", "---\nname: c\ndescription: a: b\n---\nText\n")
            .skill_in("good", "one", "a");
        let ran = world.run(["check", "skills"]);
        assert_eq!(ran.stderr.matches("`prowess rule ").count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("`prowess rule name-folder` explains it"), "{}", ran.stderr);
        assert_eq!(world.run(["check", "skills", "-q"]).stderr, "");
        assert!(!world.run(["check", "good"]).stderr.contains("prowess rule"));
    }
}

mod other_programs_can_read_what_was_found {
    use super::*;

    /// Returns skills with a finding of every severity, one of them after multi-byte characters.
    fn faulty() -> World {
        World::new()
            .document(
                "colon",
                "---\nname: colon\ndescription: Ünï 😀 when: x\nicon: x\n---\n\nText\n",
            )
            .document("empty", "---\nname: empty\ndescription: Use when asked\n---\n")
    }

    fn sarif(world: &World, arguments: &[&str]) -> Json {
        let ran = world.run(["check", "--format", "sarif"].iter().chain(arguments));
        ran.assert_safe();
        ran.json()
    }

    fn results(log: &Json) -> &[Json] {
        log["runs"][0]["results"].as_array().unwrap()
    }

    fn fingerprints(log: &Json) -> Vec<&str> {
        let prints = results(log).iter().map(|it| &it["partialFingerprints"]["prowessFinding/v1"]);
        prints.map(|it| it.as_str().unwrap()).collect()
    }

    #[test]
    fn sarif_says_all_of_a_finding() {
        let world = faulty();
        let ran = world.run(["check", "skills", "--format", "sarif"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(1), ""));
        let mut log = ran.json();
        let help = |code: &str| {
            json!({
                "text": log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().iter()
                    .find(|it| it["id"] == code).unwrap()["help"]["text"],
                "markdown": prowess::rule(code).unwrap().page,
            })
        };
        let helps: Vec<Json> = ["yaml-repaired", "unknown-field", "body-empty"].map(help).into();
        let run = log["runs"][0].take();
        let head = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [null],
        });
        assert_eq!(log, head);
        let driver = &run["tool"]["driver"];
        assert_eq!(
            (&driver["name"], &driver["semanticVersion"]),
            (&json!("prowess"), &json!("0.1.0"))
        );
        let rules = driver["rules"].as_array().unwrap();
        assert_eq!(rules.iter().map(|it| it["help"].clone()).collect::<Vec<_>>(), helps);
        let first = &rules[0];
        let summary = "A value that YAML would misread is quoted.";
        assert_eq!(first["shortDescription"]["text"], summary);
        assert_eq!(first["defaultConfiguration"]["level"], "error");
        let why = first["fullDescription"]["text"].as_str().unwrap();
        assert!(why.starts_with("A value is not valid YAML") && why.len() < 1024, "{why}");
        assert_eq!(
            first["help"]["text"],
            "Put the value in quotes, or write it as a block with `>-` and indented lines below it."
        );
        assert_eq!(run["invocations"], json!([{ "executionSuccessful": true }]));
        assert_eq!(run["columnKind"], "utf16CodeUnits");
        assert!(run["originalUriBaseIds"]["%SRCROOT%"].is_object());
        let mut found = run["results"].as_array().unwrap().clone();
        assert_eq!(found.len(), 3);
        assert_eq!(
            found[0]["partialFingerprints"]["prowessFinding/v1"].as_str().unwrap().len(),
            32
        );
        found[0]["partialFingerprints"].take();
        let location = json!({ "uri": "skills/colon/SKILL.md", "uriBaseId": "%SRCROOT%" });
        let expected = json!({
            "ruleId": "yaml-repaired",
            "ruleIndex": 0,
            "level": "error",
            "message": { "text": "The value of `description` is not YAML because of the colon in it; it was read as if in quotes. Put the value in quotes." },
            "locations": [{ "physicalLocation": {
                "artifactLocation": location,
                "region": {
                    "startLine": 3,
                    "startColumn": 25,
                    "endColumn": 26,
                    "snippet": { "text": "description: Ünï 😀 when: x" },
                },
            } }],
            "partialFingerprints": null,
        });
        assert_eq!(found[0], expected);
        let levels: Vec<&Json> = found.iter().map(|it| &it["level"]).collect();
        assert_eq!(levels, ["error", "warning", "note"]);
        let well = World::new().skill("one", "Use when asked");
        let ran = well.run(["check", "skills", "--format", "sarif"]);
        assert_eq!((ran.code, results(&ran.json()).len()), (Some(0), 0));
        let nothing = World::new().run(["check", "skills", "--format", "sarif"]);
        assert_eq!((nothing.code, nothing.stdout()), (Some(2), ""));
    }

    #[test]
    fn a_fingerprint_stays_while_lines_move() {
        let text = "---\nname: one\ndescription: a\n---\n\n[x](gone.md)\n\nTODO\n\nTODO\n";
        let world = World::new().document("one", text).document("two", text);
        let log = sarif(&world, &["skills"]);
        assert_eq!(sarif(&world, &["skills"]).to_string(), log.to_string());
        let before = fingerprints(&log);
        assert!(before.len() >= 7, "{log:#}");
        assert_eq!(before.iter().collect::<BTreeSet<_>>().len(), before.len());
        let moved = text.replace("---\n\n", "---\n\nMore\n\nlines\n\n");
        world.write("skills/one/SKILL.md", moved.replace("name:", "license: MIT\nname:"));
        let after = sarif(&world, &["skills"]);
        assert_eq!(fingerprints(&after), before);
        world.write("skills/one/SKILL.md", text.replace("gone.md", "lost.md"));
        let changed = sarif(&world, &["skills"]);
        let new = fingerprints(&changed).iter().filter(|it| !before.contains(it)).count();
        assert_eq!(new, 1);
    }

    #[test]
    fn paths_are_told_from_where_the_program_runs() {
        let bad = "---\nname: other\ndescription: a\n---\nText\n";
        let world = World::new().document("a b#é:%20", bad).file("elsewhere/plain/SKILL.md", bad);
        let uri = |log: &Json| {
            results(log)[0]["locations"][0]["physicalLocation"]["artifactLocation"].clone()
        };
        let odd = "skills/a%20b%23%C3%A9%3A%2520/SKILL.md";
        let relative = json!({ "uri": odd, "uriBaseId": "%SRCROOT%" });
        for path in ["skills", "./skills/", "elsewhere/../skills"] {
            assert_eq!(uri(&sarif(&world, &[path])), relative, "{path}");
        }
        let absolute = world.path("skills").canonicalize().unwrap();
        assert_eq!(uri(&sarif(&world, &[absolute.to_str().unwrap()])), relative);
        let ran = world.run_script("cd elsewhere && \"$0\" check ../skills --format sarif");
        let outside = uri(&ran.json());
        assert_eq!(outside["uriBaseId"], Json::Null);
        let path = outside["uri"].as_str().unwrap();
        assert!(path.starts_with("file:///") && path.ends_with(odd), "{path}");
    }

    #[test]
    fn a_workflow_of_github_is_told_by_annotations() {
        let world = faulty().document("a,b:c%", "---\nname: x\ndescription: a\n---\nText\n");
        let ran = world.run(["check", "skills", "--format", "github"]);
        assert_eq!(ran.code, Some(1));
        let lines: Vec<&str> = ran.stdout().lines().collect();
        assert_eq!(
            lines,
            [
                "::error file=skills/a%2Cb%3Ac%25/SKILL.md,line=2,col=7,endColumn=8,title=name-folder::The name `x` does not match its folder, `a,b:c%25`. Use the same name for both: clients use either one, or require both to match.",
                "::error file=skills/colon/SKILL.md,line=3,col=24,endColumn=25,title=yaml-repaired::The value of `description` is not YAML because of the colon in it; it was read as if in quotes. Put the value in quotes.",
                "::warning file=skills/colon/SKILL.md,line=4,title=unknown-field::`icon` is not a field of the specification. Move it under `metadata`.",
            ]
        );
        let verbose = world.run(["check", "skills", "--format", "github", "-v"]);
        let notice = "::notice file=skills/empty/SKILL.md,line=5,title=body-empty::There are no instructions. Describe how to do the task.";
        assert_eq!(verbose.stdout().lines().last(), Some(notice));
    }

    #[test]
    fn a_skill_cannot_speak_to_whoever_reads_its_findings() {
        let name = r#""x\n::error file=a::b\r\n::set-output name=c::d\e[2J\u202e [click](https://example.com) `""#;
        let world = World::new()
            .document("odd", format!("---\nname: odd\ndescription: a\n{name}: b\n---\nText\n"))
            .file("skills/new\n::error::line/SKILL.md", "---\nname: x\ndescription: a\n---\n");
        for format in ["text", "github", "sarif"] {
            let ran = world.run(["check", "skills", "--format", format]);
            assert!(ran.stdout().contains("unknown-field") && ran.stdout().contains("name-folder"));
            ran.assert_safe();
            let commands =
                ran.stdout().lines().filter(|it| it.contains("::") && it.starts_with("::"));
            let own = ["::error file=skills/", "::warning file=skills/"];
            for command in commands {
                assert!(own.iter().any(|it| command.starts_with(it)), "{command}");
                assert!(format == "github", "{command}");
            }
        }
        let log = sarif(&world, &["skills"]);
        let mut messages = results(&log).iter().map(|it| it["message"]["text"].as_str().unwrap());
        let linking = messages.find(|it| it.contains("click")).unwrap();
        assert!(linking.contains("[click\\](https") && !linking.contains('\n'), "{linking}");
    }

    #[test]
    fn a_format_that_is_not_known_is_refused() {
        let world = faulty();
        for arguments in [
            &["check", "skills", "--format", "xml"][..],
            &["check", "skills", "--format", "sarif", "--json"],
            &["--json", "check", "skills", "--format", "sarif"],
        ] {
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(2), "{arguments:?}");
            assert!(!ran.stdout().contains("findings"), "{}", ran.stdout());
            assert!(ran.stderr.contains("--format"), "{}", ran.stderr);
        }
        let (long, short) =
            (["check", "skills", "--format", "json"], ["check", "skills", "--json"]);
        assert_eq!(world.run(long).stdout(), world.run(short).stdout());
        let (text, plain) =
            (world.run(["check", "skills", "--format", "text"]), world.run(["check", "skills"]));
        assert_eq!(text.stdout(), plain.stdout());
    }
}

mod what_is_shown_of_a_finding_is_short {
    use super::*;

    #[test]
    fn a_long_line_has_a_short_mark_and_a_blank_one_none() {
        let long =
            format!("---\nname: long\ndescription: {}\n---\n\nDo it.\n", "a word ".repeat(300));
        let body = "A line.\n".repeat(501);
        let blank =
            format!("---\nname: blank\ndescription: Reads. Use when asked.\n---\n\n\n{body}");
        let world = World::new().document("long", long).document("blank", blank);
        let ran = world.run(["check", "skills"]);
        let marks = ran.stdout().lines().map(|it| it.matches('^').count());
        assert_eq!(marks.max(), Some(100), "{}", ran.stdout());
        assert!(ran.stdout().contains("blank/SKILL.md:7"), "{}", ran.stdout());
        let world = World::new().skill("plain", "Reads PDF files");
        let ran = world.run(["check", "skills"]);
        assert!(ran.stderr.contains("1 info message hidden, `-v` shows it"), "{}", ran.stderr);
    }
}

mod a_check_fits_into_other_tools {
    use super::*;

    #[test]
    fn many_files_are_checked_at_once() {
        let mut world = World::new().document("bad", "---\nname: bad\n---\nText\n");
        let mut paths = vec!["SKILL.md".to_owned()];
        for number in 0..500 {
            let name = format!("skill-{number}");
            world = world.skill(&name, "Use as one of many");
            paths.push(format!("../{name}/SKILL.md"));
        }
        let ran =
            world.run_script(&format!("cd skills/bad && \"$0\" check --json {}", paths.join(" ")));
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert_eq!(ran.json()["skills"], 501);
        let said = ran.said();
        assert_eq!(said.rules(), ["description-missing"], "{said:?}");
        assert_eq!(said.findings()[0]["path"], "./SKILL.md");
    }

    #[test]
    fn a_hook_checks_the_files_of_a_change() {
        let hooks = fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
        // A file whose name differs in case is found, too.
        let files = "  files: (?i)(^|/)SKILL\\.md$\n";
        assert!(hooks.contains("language: script\n  entry: scripts/hook\n"), "{hooks}");
        assert_eq!(hooks.matches(files).count(), 2, "{hooks}");
        let world = World::new()
            .skill("good", "a")
            .document("odd name", "---\nname: x\ndescription: a\n---\nText\n")
            .link("hooks/target/release/prowess", crate::world::program());
        fs::create_dir(world.path("hooks/scripts")).unwrap();
        fs::copy(root().join("scripts/hook"), world.path("hooks/scripts/hook")).unwrap();
        let hook = |arguments: &str| world.run_script(&format!("hooks/scripts/hook {arguments}"));
        let well = hook("skills/good/SKILL.md");
        assert_eq!((well.code, well.stdout()), (Some(0), ""), "{}", well.stderr);
        let odd = hook("skills/good/SKILL.md 'skills/odd name/SKILL.md'");
        assert_eq!(odd.code, Some(1), "{}", odd.stderr);
        assert!(odd.stdout().contains("error[name-folder]"), "{}", odd.stdout());
        let lenient = hook("--profile lenient 'skills/odd name/SKILL.md'");
        assert_eq!(lenient.code, Some(0), "{}", lenient.stdout());
    }

    /// Returns the script of a step of `action.yml`.
    fn step(name: &str) -> String {
        let action = fs::read_to_string(root().join("action.yml")).unwrap();
        let step = action.split("    - name: ").find(|it| it.starts_with(&format!("{name}\n")));
        let (_, script) = step.unwrap().split_once("      run: ").unwrap();
        script
            .trim_start_matches("|\n")
            .lines()
            .map(|it| format!("{}\n", it.trim_start()))
            .collect()
    }

    #[test]
    fn an_action_checks_and_leaves_a_sarif_file() {
        let world = World::new()
            .skill_in("my skills", "good", "Use when asked")
            .skill_in("others/deep", "good-too", "Use when asked")
            .file("bad/SKILL.md", "---\nname: x\n---\n")
            .folder("empty")
            .folder("temp")
            .link("bin/prowess", crate::world::program());
        let script = format!("set -eo pipefail\n{}", step("Check"));
        let run = |paths: &str| {
            let (out, temp) = (world.path("output"), world.path("temp"));
            let _ = fs::remove_file(&out);
            let _ = fs::remove_file(temp.join("prowess.sarif"));
            world.write("step", &script);
            let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
            let set = format!(
                "env PATH='{path}' PATHS='{paths}' PROFILE=spec DEPTH=2 RUNNER_TEMP='{}' GITHUB_OUTPUT='{}' bash step",
                temp.display(),
                out.display(),
            );
            let ran = world.run_script(&set);
            let outputs = fs::read_to_string(&out).unwrap();
            let status =
                outputs.lines().find_map(|it| it.strip_prefix("status=")).unwrap().to_owned();
            assert!(outputs.contains(&format!("sarif={}/prowess.sarif\n", temp.display())));
            (ran, status, fs::read(temp.join("prowess.sarif")).ok())
        };
        let (ran, status, log) = run("my skills\nothers\n");
        assert_eq!((ran.code, ran.stdout(), &*status), (Some(0), "", "0"), "{}", ran.stderr);
        let log: Json = serde_json::from_slice(&log.unwrap()).unwrap();
        assert_eq!(log["runs"][0]["results"], json!([]));
        let (ran, status, log) = run("\nbad\nmy skills");
        assert_eq!((ran.code, &*status), (Some(0), "1"), "{}", ran.stderr);
        assert!(ran.stdout().contains("::error file=bad/SKILL.md,line=1"), "{}", ran.stdout());
        let log: Json = serde_json::from_slice(&log.unwrap()).unwrap();
        assert_eq!(log["runs"][0]["results"][0]["level"], "error");
        let (ran, status, log) = run("empty");
        assert_eq!((ran.code, &*status, log), (Some(2), "2", None), "{}", ran.stderr);
        assert_eq!(step("Say how it ended"), "exit \"$STATUS\"\n");
    }
}
