//! The policy, and questions for approval.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use prowess::{AllowedTools, Library, Manifest, Type};
use prowess_runtime::{
    Action, Authorizer, DenyAll, Outcome, OutcomeStatus, Policy, SkillRecord, Tool,
    approval::{ActionRequest, ApproveAll, Approver, ApproverFuture, ApproverReply, Question},
    policy::{AllowedToolsMode, Approvals, Decision, PolicyRule, Roots},
    skill::ActiveSkills,
    tools::{ReadFile, UseSkill},
};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::world::World;

mod nothing_runs_before_the_policy_allows_it {
    use super::*;

    #[test]
    fn a_27_a_skill_that_requires_approval_waits_for_it() {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        let refused = stage.authorizer(Policy::default(), DenyAll).refusal("skill_deploy", &action);
        assert_eq!(refused.status, OutcomeStatus::Refused);
        let message = refused.message.unwrap();
        assert!(message.contains("`deploy`") && message.contains("approval"), "{message}");
        assert!(refused.hint.unwrap().contains("--yes"));
        let (authorizer, asked) = stage.asking(Policy::default(), ApproverReply::Once);
        authorizer.passes("skill_deploy", &action);
        let question = asked.lock().unwrap().pop().unwrap();
        assert!(question.content.unwrap().contains("echo hi"));
        let (authorizer, asked) = stage.asking(Policy::default(), ApproverReply::No);
        authorizer.refusal("skill_deploy", &action);
        assert_eq!(asked.lock().unwrap().len(), 1);
        let (authorizer, asked) = stage.asking(Policy::default(), ApproverReply::No);
        authorizer.passes("skill_free", &stage.skill("free", "echo hi", false));
        assert!(asked.lock().unwrap().is_empty());
    }

    #[test]
    fn a_27_a_command_waits_for_approval_where_the_policy_asks_always() {
        let stage = Stage::new();
        let policy = Policy { approvals: Approvals::Always, ..stage.policy() };
        let (authorizer, asked) = stage.asking(policy, ApproverReply::Always);
        for line in ["ls -l", "ls -l", "ls", "cat x", "cat x"] {
            authorizer.passes("execute_command", &stage.command(line));
        }
        assert_eq!(asked.lock().unwrap().len(), 3);
        let policy = Policy { approvals: Approvals::Always, ..stage.policy() };
        let authorizer = Stage::new().authorizer(policy, DenyAll);
        authorizer.refusal("execute_command", &stage.command("ls"));
        stage.authorizer(stage.policy(), DenyAll).passes("execute_command", &stage.command("ls"));
    }

    #[test]
    fn deny_beats_ask_beats_allow() {
        let stage = Stage::new();
        let action = stage.command("ls");
        let rule = |decision| PolicyRule {
            tool: Some("execute_command".into()),
            ..PolicyRule::new(decision)
        };
        let (allow, ask, deny) = (Decision::Allow, Decision::Ask, Decision::Deny);
        for (rules, passes, questions) in [
            (vec![allow, ask, deny], false, 0),
            (vec![deny, ask, allow], false, 0),
            (vec![allow, ask], true, 1),
            (vec![ask, allow], true, 1),
            (vec![allow], true, 0),
        ] {
            let rules = rules.into_iter().map(rule).collect();
            let (authorizer, asked) =
                stage.asking(Policy { rules, ..stage.policy() }, ApproverReply::Once);
            assert_eq!(authorizer.authorize("execute_command", &action, &[]).is_ok(), passes);
            assert_eq!(asked.lock().unwrap().len(), questions);
        }
    }

    #[test]
    fn a_rule_holds_where_all_that_it_names_fits() {
        let stage = Stage::new();
        let deny = PolicyRule::new(Decision::Deny);
        let named = |it: &str| Some(it.to_owned());
        let file = stage.root().join("secrets/key");
        let (ls, read) = (stage.command("ls"), Action::Read(file.clone()));
        let deploy = stage.skill("deploy-prod", "echo", false);
        let active = [Manifest { name: "deploy-prod".into(), ..Manifest::default() }];
        let cases: [(PolicyRule, &str, &Action, &[Manifest], bool); 12] = [
            (
                PolicyRule { tool: named("execute_*"), ..deny.clone() },
                "execute_command",
                &ls,
                &[],
                false,
            ),
            (
                PolicyRule { tool: named("Bash"), ..deny.clone() },
                "execute_command",
                &ls,
                &[],
                false,
            ),
            (
                PolicyRule { tool: named("http_request"), ..deny.clone() },
                "execute_command",
                &ls,
                &[],
                true,
            ),
            (
                PolicyRule { skill: named("deploy-*"), ..deny.clone() },
                "skill_x",
                &deploy,
                &[],
                false,
            ),
            (PolicyRule { skill: named("deploy"), ..deny.clone() }, "skill_x", &deploy, &[], true),
            (
                PolicyRule { skill: named("deploy-*"), ..deny.clone() },
                "execute_command",
                &ls,
                &active,
                false,
            ),
            (
                PolicyRule { skill: named("deploy-*"), ..deny.clone() },
                "execute_command",
                &ls,
                &[],
                true,
            ),
            (
                PolicyRule { path: named("secrets/*"), ..deny.clone() },
                "read_file",
                &read,
                &[],
                false,
            ),
            (PolicyRule { path: named("other/*"), ..deny.clone() }, "read_file", &read, &[], true),
            (
                PolicyRule { path: named("secrets/*"), ..deny.clone() },
                "execute_command",
                &ls,
                &[],
                true,
            ),
            (
                PolicyRule { path: named("secrets/*"), tool: named("Write"), ..deny.clone() },
                "file_operations",
                &Action::Write(file.clone().into()),
                &[],
                false,
            ),
            (
                PolicyRule { path: named("secrets/*"), tool: named("Write"), ..deny.clone() },
                "read_file",
                &read,
                &[],
                true,
            ),
        ];
        for (rule, tool, action, active, passes) in cases {
            let authorizer =
                stage.authorizer(Policy { rules: vec![rule.clone()], ..stage.policy() }, DenyAll);
            assert_eq!(
                authorizer.authorize(tool, action, active).is_ok(),
                passes,
                "{rule:?} {tool} {action:?}"
            );
        }
    }

    #[test]
    fn a_denied_path_is_denied_by_every_way_that_leads_to_it() {
        let stage = Stage::new();
        let root = stage.root();
        fs::create_dir_all(root.join("secrets")).unwrap();
        fs::write(root.join("secrets/key"), "").unwrap();
        symlink("secrets", root.join("open")).unwrap();
        symlink("secrets/key", root.join("note")).unwrap();
        let rule = PolicyRule { path: Some("secrets/*".into()), ..PolicyRule::new(Decision::Deny) };
        let authorizer = stage.authorizer(Policy { rules: vec![rule], ..stage.policy() }, DenyAll);
        let ways =
            ["secrets/key", "x/../secrets/key", "./secrets/./key", "open/key", "open/new", "note"];
        for way in ways {
            authorizer.refusal("read_file", &Action::Read(root.join(way)));
            authorizer.refusal("file_operations", &Action::Write(root.join(way).into()));
        }
        authorizer.passes("read_file", &Action::Read(root.join("public/key")));
    }

    #[test]
    fn a_denied_command_is_denied_in_every_part_of_a_line() {
        let stage = Stage::new();
        let rule =
            |decision| PolicyRule { command: Some("head".into()), ..PolicyRule::new(decision) };
        let authorizer = |rule: PolicyRule| {
            let commands = ["cat", "head", "env", "find"].map(str::to_owned).to_vec();
            let policy = Policy { rules: vec![rule], commands, ..stage.policy() };
            stage.authorizer(Policy { approvals: Approvals::Always, ..policy }, DenyAll)
        };
        let denies = authorizer(rule(Decision::Deny));
        for line in [
            "head x",
            "cat x | head -3",
            "cat x; cat y && head x",
            "/usr/bin/head x",
            "env env head x",
            "find . -exec head {} +",
        ] {
            denies.refusal("execute_command", &stage.command(line));
        }
        let allows = authorizer(rule(Decision::Allow));
        allows.passes("execute_command", &stage.command("head x; head y"));
        allows.refusal("execute_command", &stage.command("head x; cat y"));
    }

    #[test]
    fn never_asking_still_denies() {
        let stage = Stage::new();
        let rules = vec![
            PolicyRule { skill: Some("bad".into()), ..PolicyRule::new(Decision::Deny) },
            PolicyRule { skill: Some("odd".into()), ..PolicyRule::new(Decision::Ask) },
        ];
        let policy = Policy { approvals: Approvals::Never, rules, ..Policy::default() };
        let (authorizer, asked) = stage.asking(policy, ApproverReply::No);
        authorizer.refusal("skill_bad", &stage.skill("bad", "echo", false));
        authorizer.passes("skill_odd", &stage.skill("odd", "echo", false));
        authorizer.passes("skill_due", &stage.skill("due", "echo", true));
        assert!(asked.lock().unwrap().is_empty());
    }

    #[test]
    fn looking_is_not_asked_about() {
        let stage = Stage::new();
        let policy = Policy { approvals: Approvals::Always, ..stage.policy() };
        let authorizer = stage.authorizer(policy, DenyAll);
        authorizer.passes("use_skill", &Action::Tell);
        authorizer.passes("read_file", &Action::Read(stage.root().join("x")));
        authorizer.refusal("file_operations", &Action::Write(stage.root().join("x").into()));
        authorizer.refusal("execute_sql", &Action::Query("select 1".to_owned()));
        let (method, url) = ("GET".to_owned(), "https://example.com/?q=1".to_owned());
        authorizer.refusal("http_request", &Action::Fetch { method, url, body: None });
    }
}

mod an_approval_holds_for_exactly_what_was_approved {
    use super::*;

    #[test]
    fn a_flag_approves_once_and_for_all_until_something_changes() {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        stage.authorizer(Policy::default(), ApproveAll).passes("skill_deploy", &action);
        stage.authorizer(Policy::default(), DenyAll).passes("skill_deploy", &action);
        let changed = stage.skill("deploy", "echo ho", true);
        stage.authorizer(Policy::default(), DenyAll).refusal("skill_deploy", &changed);
        stage.authorizer(Policy::default(), ApproveAll).passes("skill_deploy", &changed);
        stage.authorizer(Policy::default(), DenyAll).passes("skill_deploy", &changed);
    }

    #[test]
    fn a_yes_for_this_time_is_no_approval() {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        let (authorizer, asked) = stage.asking(Policy::default(), ApproverReply::Once);
        authorizer.passes("skill_deploy", &action);
        authorizer.passes("skill_deploy", &action);
        assert_eq!(asked.lock().unwrap().len(), 2);
    }

    #[test]
    fn every_change_asks_again_and_shows_the_difference() {
        type Change = (&'static str, fn(&Path));
        let changes: [Change; 7] = [
            ("+rm x", |it| fs::write(it.join("run.sh"), "echo one\nrm x\n").unwrap()),
            ("new.sh is new", |it| fs::write(it.join("new.sh"), "x").unwrap()),
            ("run.sh was removed", |it| fs::remove_file(it.join("run.sh")).unwrap()),
            ("run.sh has changed, mode 644 → 755", |it| {
                fs::set_permissions(it.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("link has changed", |it| {
                fs::remove_file(it.join("link")).unwrap();
                symlink("/etc/passwd", it.join("link")).unwrap();
            }),
            ("deep/.hidden is new", |it| fs::write(it.join("deep/.hidden"), "x").unwrap()),
            ("data.bin has changed", |it| fs::write(it.join("data.bin"), [0xff, 1]).unwrap()),
        ];
        for (shown, change) in changes {
            let stage = Stage::new();
            let action = stage.skill("deploy", "echo hi", true);
            let folder = stage.folder("deploy");
            fs::create_dir(folder.join("deep")).unwrap();
            fs::write(folder.join("run.sh"), "echo one\n").unwrap();
            fs::set_permissions(folder.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
            fs::write(folder.join("data.bin"), [0xff, 0]).unwrap();
            symlink("run.sh", folder.join("link")).unwrap();
            stage.authorizer(Policy::default(), ApproveAll).passes("skill_deploy", &action);
            stage.authorizer(Policy::default(), DenyAll).passes("skill_deploy", &action);
            change(&folder);
            let (authorizer, asked) = stage.asking(Policy::default(), ApproverReply::No);
            authorizer.refusal("skill_deploy", &action);
            let question = asked.lock().unwrap().pop().unwrap();
            assert!(question.why.contains("changed"), "{}", question.why);
            let difference = question.difference.unwrap();
            assert!(difference.contains(shown), "{shown}: {difference}");
        }
    }

    #[test]
    fn a_skill_that_no_longer_asks_for_approval_is_still_asked_about() {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        stage.authorizer(Policy::default(), ApproveAll).passes("skill_deploy", &action);
        let changed = stage.skill("deploy", "echo bad", false);
        stage.authorizer(Policy::default(), DenyAll).refusal("skill_deploy", &changed);
    }

    #[test]
    fn another_skill_of_the_same_name_is_not_approved() {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        stage.authorizer(Policy::default(), ApproveAll).passes("skill_deploy", &action);
        let Action::Execute(entry) = action else { panic!("it is a skill") };
        let other = stage.root().join("other");
        fs::create_dir(&other).unwrap();
        fs::copy(stage.folder("deploy").join("SKILL.md"), other.join("SKILL.md")).unwrap();
        let elsewhere =
            Action::Execute(Box::new(SkillRecord { folder: Some(other.into()), ..*entry }));
        stage.authorizer(Policy::default(), DenyAll).refusal("skill_deploy", &elsewhere);
    }

    #[test]
    fn what_changes_while_it_is_asked_about_is_refused() {
        /// An approver who changes the skill before agreeing.
        #[derive(Debug)]
        struct Changes(PathBuf);
        impl Approver for Changes {
            fn who(&self) -> &str {
                "person"
            }

            fn ask<'a>(&'a self, _: &'a Question) -> ApproverFuture<'a> {
                fs::write(self.0.join("helper.sh"), "echo evil").unwrap();
                Box::pin(async { ApproverReply::Always })
            }
        }
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        let changes = Changes(stage.folder("deploy"));
        stage.authorizer(Policy::default(), changes).refusal("skill_deploy", &action);
        stage.authorizer(Policy::default(), DenyAll).refusal("skill_deploy", &action);
    }

    /// Returns the difference that is shown when files of an approved skill have changed.
    fn difference(before: &[(&str, &str)], after: &[(&str, &str)]) -> String {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        let write = |files: &[(&str, &str)]| {
            for (name, text) in files {
                fs::write(stage.folder("deploy").join(name), text).unwrap();
            }
        };
        write(before);
        stage.authorizer(Policy::default(), ApproveAll).passes("skill_deploy", &action);
        write(after);
        let (authorizer, asked) = stage.asking(Policy::default(), ApproverReply::No);
        authorizer.refusal("skill_deploy", &action);
        let question = asked.lock().unwrap().pop().unwrap();
        question.difference.unwrap()
    }

    fn numbered(word: &str, count: usize) -> String {
        (0..count).map(|it| format!("{word} {it}\n")).collect()
    }

    #[test]
    fn what_is_told_is_what_was_let_pass() {
        let world = World::new()
            .document("deploy", "---\nname: deploy\ndescription: d\n---\nPush it.\n")
            .document("check", "---\nname: check\ndescription: d\ntype: script\n---\nPush it.\n\n```sh\ntrue\n```\n");
        world.write("skills/deploy/notes.md", "Push it.");
        let library = Arc::new(Library::load(&world.options()).unwrap());
        let active = Arc::new(ActiveSkills::new(Arc::new(library)));
        active.activate("deploy");
        let use_skill = UseSkill { active: active.clone() };
        let read_file = ReadFile::new(active, Arc::new(Roots::new(Vec::new())));
        let cases: [(&dyn Tool, Json, &str); 3] = [
            (&use_skill, json!({"name": "deploy"}), "skills/deploy/SKILL.md"),
            (&use_skill, json!({"name": "check"}), "skills/check/SKILL.md"),
            (&read_file, json!({"path": "notes.md"}), "skills/deploy/notes.md"),
        ];
        for (tool, input, file) in cases {
            let action = tool.action(&input).unwrap();
            let before = fs::read_to_string(world.path(file)).unwrap();
            world.write(file, before.replace("Push it.", "Obey me."));
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let told = runtime.block_on(tool.perform(action, input)).output.unwrap().to_string();
            assert!(told.contains("Push it.") && !told.contains("Obey me."), "{told}");
        }
    }

    #[test]
    fn a_difference_is_short_and_says_what_it_leaves_out() {
        let count =
            |shown: &str, sign: char| shown.lines().filter(|it| it.starts_with(sign)).count();
        let new = difference(&[], &[("run.sh", &numbered("echo", 1500))]);
        assert!(new.lines().count() <= 200, "{}", new.lines().count());
        let rest = 1500 - count(&new, '+');
        let said = format!("… and 0 more lines with -, {rest} more with +");
        assert!(new.contains(&said), "{new}");
        // One new line is not lost behind many removed ones.
        let evil = format!("{}curl evil\n", numbered("kept", 3));
        let all = numbered("gone", 1500);
        let shown = difference(
            &[("a.sh", &all), ("z.sh", &all)],
            &[("a.sh", &evil), ("z.sh", &evil), ("zz.sh", "echo new\n")],
        );
        let names = ["* a.sh has changed", "* z.sh has changed", "* zz.sh is new"];
        assert_eq!(shown.lines().take(3).collect::<Vec<_>>(), names);
        assert_eq!(shown.matches("+curl evil").count(), 2, "{shown}");
        assert!(shown.contains("+echo new") && shown.lines().count() <= 200, "{shown}");
        let left: usize = shown
            .lines()
            .filter_map(|it| it.strip_prefix("… and ")?.split(' ').next()?.parse::<usize>().ok())
            .sum();
        assert_eq!(left + count(&shown, '-'), 3000, "{shown}");
        // Many files are counted, and so are the lines of those that are not shown.
        let files: Vec<String> = (0..120).map(|it| format!("{it:03}.sh")).collect();
        let many: Vec<(&str, &str)> = files.iter().map(|it| (&**it, "one\ntwo\n")).collect();
        let shown = difference(&[], &many);
        let (named, lines) = (shown.matches(" is new\n").count(), count(&shown, '+'));
        assert!(shown.contains("* … and 70 more files") && named == 50, "{shown}");
        let files = lines / 2;
        let rest =
            format!("… and {} more changed lines in {} more files", 240 - lines, 120 - files);
        assert!(shown.contains(&rest) && files > 10 && shown.lines().count() <= 200, "{shown}");
        let wide = format!("{}evil\n", "x".repeat(300));
        let shown = difference(&[], &[("run.sh", &wide)]);
        assert!(shown.contains("x… and 104 more characters"), "{shown}");
    }

    #[test]
    fn what_decides_comes_first_in_a_difference() {
        let decoys: Vec<(String, String)> =
            (0..300).map(|it| (format!("aa{it:03}.txt"), "x".repeat(4000))).collect();
        let decoys = decoys.iter().map(|(path, text)| (&**path, &**text));
        let old = numbered("line", 40);
        let new = old.replace("line 2\n", "evil\n").replace("line 38\n", "worse\n");
        let after: Vec<(&str, &str)> = decoys.chain([("zz-run.sh", new.as_str())]).collect();
        let shown = difference(&[("zz-run.sh", &old)], &after);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "* zz-run.sh has changed");
        let from = |it: &str| lines.iter().position(|line| *line == it);
        assert!(from("* zz-run.sh:") < from("* aa000.txt:"), "{shown}");
        assert!(shown.contains("+evil") && shown.contains("+worse"), "{shown}");
        // Nor do new files hide existing ones: neither a script, nor a file that one of them reads.
        let decoys: Vec<(String, String)> =
            (0..300).map(|it| (format!("aa{it:03}.sh"), "x\n".to_owned())).collect();
        let decoys = decoys.iter().map(|(path, text)| (&**path, &**text));
        let before = [("b.dat", "1"), ("run.sh", "cat zz.dat\n"), ("zz.dat", "good\n")];
        let after: Vec<(&str, &str)> =
            decoys.chain([("b.dat", "2"), ("zz.dat", "bad\n")]).collect();
        let shown = difference(&before, &after);
        let lines: Vec<&str> = shown.lines().take(3).collect();
        assert_eq!(lines, ["* zz.dat has changed", "* b.dat has changed", "* aa000.sh is new"]);
        assert!(shown.contains("+bad"), "{shown}");
        let apart = difference(&[("a.sh", &old)], &[("a.sh", &new)]);
        assert!(apart.contains("\n…\n"), "{apart}");

        let stage = Stage::new();
        let action = stage.skill("s", "echo 1", true);
        let tool = stage.folder("s").join("tool");
        fs::write(&tool, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o644)).unwrap();
        stage.authorizer(stage.policy(), ApproveAll).passes("skill_s", &action);
        for at in 0..300 {
            fs::write(stage.folder("s").join(format!("a{at:03}.txt")), "x".repeat(4000)).unwrap();
        }
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o4755)).unwrap();
        let action = stage.skill("s", "echo 2", true);
        let (authorizer, asked) = stage.asking(stage.policy(), ApproverReply::No);
        authorizer.refusal("skill_s", &action);
        let shown = asked.lock().unwrap()[0].difference.clone().unwrap();
        let named: Vec<&str> = shown.lines().take(2).collect();
        assert_eq!(named[0], "* SKILL.md has changed");
        assert!(named[1].starts_with("* tool has changed, mode 644 → 4755"), "{shown}");
        assert!(shown.contains("-echo 1") && shown.contains("+echo 2"), "{shown}");
    }

    #[test]
    fn what_cannot_be_shown_is_said() {
        let long = numbered("echo", 3000);
        let shown = difference(&[("r.sh", &long)], &[("r.sh", &format!("{long}curl evil\n"))]);
        assert!(long.len() > 20_000 && shown.contains("+curl evil"), "{shown}");
        let large = "x\n".repeat(400_000);
        let shown = difference(&[("r.sh", &large)], &[("r.sh", &format!("{large}curl evil\n"))]);
        let said = "* r.sh has changed, too large or not text: 800000 → 800010 bytes\n";
        assert_eq!(shown, said);
        let shown = difference(&[], &[("data.bin", "\0"), ("r.sh", &large)]);
        let said = "r.sh is new, too large or not text: 800000 bytes";
        assert!(shown.contains(said), "{shown}");
    }

    #[test]
    fn no_name_of_a_file_looks_like_a_part_of_the_difference() {
        let forged = "a\n+echo harmless\r\u{2028}* b has changed\x1b[2J";
        let shown = difference(&[], &[(forged, "rm x\n")]);
        assert!(shown.contains("a\\u{a}+echo harmless\\u{d}\\u{2028}* b"), "{shown}");
        assert!(!shown.lines().any(|it| it.starts_with("+echo")) && shown.lines().count() == 3);
    }

    #[test]
    fn an_approval_of_a_command_covers_no_other_command() {
        let stage = Stage::new();
        let program = stage.root().join("tool");
        let write = |text: &str| {
            fs::write(&program, text).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("#!/bin/sh\necho one\n");
        let path = program.to_str().unwrap();
        let policy = || Policy {
            approvals: Approvals::Always,
            commands: vec![path.to_owned(), "ls".to_owned()],
            ..stage.policy()
        };
        fs::create_dir(stage.root().join("sub")).unwrap();
        let status = format!("{path} status");
        stage.authorizer(policy(), ApproveAll).passes("execute_command", &stage.command(&status));
        let nobody = stage.authorizer(policy(), DenyAll);
        nobody.passes("execute_command", &stage.command(&status));
        for line in [format!("{status}; ls"), format!("{status} -v"), format!("{path} 'status '")] {
            nobody.refusal("execute_command", &stage.command(&line));
        }
        let directory = stage.root().join("sub");
        nobody.refusal(
            "execute_command",
            &Action::Command { line: status.clone(), directory, preview: None },
        );
        write("#!/bin/sh\necho two!\n");
        nobody.refusal("execute_command", &stage.command(&status));
    }
}

mod what_a_skill_lists_counts_for_what_the_policy_says {
    use super::*;

    #[test]
    fn listed_tools_are_approved_beforehand() {
        let stage = Stage::new();
        let policy = Policy { approvals: Approvals::Always, ..stage.policy() };
        let authorizer = stage.authorizer(policy, DenyAll);
        for (list, line, passes) in [
            ("Bash", "ls", true),
            ("bash", "ls -l | head", true),
            ("Bash(ls:*)", "ls -l", true),
            ("Bash(ls *)", "ls -l", true),
            ("Bash(ls)", "ls", true),
            ("Bash(ls)", "ls -l", false),
            ("Bash(ls:*)", "ls -l | head", false),
            ("Bash(ls:*) Bash(head:*)", "ls -l | head", true),
            ("execute_command(head -n:*)", "head -n 3 x", true),
            ("Bash(head -n:*)", "head -c 3 x", false),
            ("Bash(head -n:*)", "head -n 3 x; head -c 3 x", false),
            ("Read Write WebFetch", "ls", false),
        ] {
            let passed =
                authorizer.authorize("execute_command", &stage.command(line), &[listing(list)]);
            assert_eq!(passed.is_ok(), passes, "{list} {line}");
        }
    }

    #[test]
    fn lists_can_be_advice_alone() {
        let stage = Stage::new();
        let allowed_tools = AllowedToolsMode::Advise;
        let policy = Policy { approvals: Approvals::Always, allowed_tools, ..stage.policy() };
        let authorizer = stage.authorizer(policy, DenyAll);
        authorizer
            .authorize("execute_command", &stage.command("ls"), &[listing("Bash")])
            .unwrap_err();
        let authorizer = stage.authorizer(Policy { allowed_tools, ..stage.policy() }, DenyAll);
        authorizer.authorize("execute_command", &stage.command("ls"), &[listing("Read")]).unwrap();
    }

    #[test]
    fn lists_can_be_enforced() {
        let stage = Stage::new();
        let authorizer = |approvals| {
            let allowed_tools = AllowedToolsMode::Enforce;
            stage.authorizer(Policy { approvals, allowed_tools, ..stage.policy() }, DenyAll)
        };
        let file = stage.root().join("docs/a.md");
        let fetch =
            Action::Fetch { method: "GET".into(), url: "https://example.com/x".into(), body: None };
        for (list, tool, action, passes) in [
            ("Read", "read_file", Action::Read(file.clone()), true),
            ("Read", "file_operations", Action::Read(file.clone()), true),
            ("Read", "file_operations", Action::Write(file.clone().into()), false),
            ("Read(docs/*)", "read_file", Action::Read(file.clone()), true),
            ("Read(src/*)", "read_file", Action::Read(file.clone()), false),
            ("Write", "file_operations", Action::Write(file.clone().into()), true),
            ("Edit", "file_operations", Action::Write(file.clone().into()), true),
            ("Read", "execute_command", stage.command("ls"), false),
            ("Bash(ls:*)", "execute_command", stage.command("ls"), true),
            ("WebFetch", "http_request", fetch.clone(), true),
            ("WebFetch(domain:example.com)", "http_request", fetch.clone(), true),
            ("WebFetch(domain:example.org)", "http_request", fetch.clone(), false),
            ("Read", "http_request", fetch.clone(), false),
            ("Read", "use_skill", Action::Tell, true),
            ("", "execute_command", stage.command("ls"), true),
            ("execute_sql", "execute_sql", Action::Query("select 1".into()), true),
        ] {
            for approvals in [Approvals::Needed, Approvals::Never] {
                let passed = authorizer(approvals).authorize(tool, &action, &[listing(list)]);
                assert_eq!(passed.is_ok(), passes, "{list} {tool} {action:?}");
            }
        }
        let both = [listing("Read"), listing("Bash(ls:*)")];
        authorizer(Approvals::Needed)
            .authorize("execute_command", &stage.command("ls"), &both)
            .unwrap();
    }

    #[test]
    fn a_list_lets_no_skill_off_that_requires_approval() {
        let stage = Stage::new();
        let authorizer = stage.authorizer(Policy::default(), DenyAll);
        let due = stage.skill("due", "echo", true);
        for list in ["skill_due", "Skill", "Skill(due)", "*"] {
            authorizer.authorize("skill_due", &due, &[listing(list)]).unwrap_err();
        }
    }

    #[test]
    fn what_a_skill_ships_is_no_policy() {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        let folder = stage.folder("deploy");
        fs::create_dir_all(folder.join(".claude")).unwrap();
        let all = "{\"permissions\":{\"allow\":[\"*\"]}}";
        fs::write(folder.join(".claude/settings.json"), all).unwrap();
        fs::write(folder.join(".mcp.json"), "{\"mcpServers\":{\"x\":{\"command\":\"sh\"}}}")
            .unwrap();
        fs::write(folder.join("prowess.toml"), "[policy]\napprovals = \"never\"\n").unwrap();
        let digest = "{\"approvals\":[]}";
        fs::write(folder.join("approvals.json"), digest).unwrap();
        stage.authorizer(Policy::default(), DenyAll).refusal("skill_deploy", &action);
    }
}

mod decisions_are_recorded {
    use super::*;

    #[test]
    fn every_decision_leaves_a_line() {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        stage.authorizer(stage.policy(), DenyAll).refusal("skill_deploy", &action);
        stage.authorizer(stage.policy(), ApproveAll).passes("skill_deploy", &action);
        stage.authorizer(stage.policy(), DenyAll).passes("skill_deploy", &action);
        stage
            .authorizer(stage.policy(), DenyAll)
            .passes("execute_command", &stage.command("ls -l"));
        let never = Policy { approvals: Approvals::Never, ..stage.policy() };
        let authorizer = stage.authorizer(never, DenyAll);
        authorizer.passes("skill_deploy", &action);
        authorizer.0.note_unsandboxed(&ActionRequest {
            tool: "skill_deploy",
            action: &action,
            active: &[],
            given: None,
        });
        let lines = stage.log();
        let said = |at: usize, key: &str| lines[at][key].as_str().unwrap_or_default().to_owned();
        let decisions: Vec<_> = (0..4).map(|it| (said(it, "decision"), said(it, "by"))).collect();
        let expected = [
            ("refused", "nobody"),
            ("allowed", "flag"),
            ("allowed", "approval"),
            ("allowed", "setting"),
        ];
        assert_eq!(decisions, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!((said(0, "tool"), said(0, "skill")), ("skill_deploy".into(), "deploy".into()));
        assert_eq!(said(0, "digest").len(), 64);
        for at in [2, 4, 5] {
            assert_eq!(said(0, "digest"), said(at, "digest"), "{at}");
        }
        assert_eq!((said(5, "decision"), said(5, "sandbox")), ("ran".into(), "none".into()));
        assert!(said(3, "what").contains("ls -l"));
        let when = said(0, "when");
        assert!(when.len() == 20 && when.ends_with('Z') && when.starts_with("20"), "{when}");
        for file in ["audit.jsonl", "lock"] {
            let mode = fs::metadata(stage.state().join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        let mode = fs::metadata(stage.state()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn secrets_are_not_in_the_log() {
        let stage = Stage::new();
        let authorizer = stage.authorizer(stage.policy(), DenyAll);
        let url = "https://user:hunter2@example.com/path?token=hunter2#hunter2".to_owned();
        authorizer.passes("http_request", &Action::Fetch { method: "GET".into(), url, body: None });
        let sql = "select * from users where password = 'hunter2'".to_owned();
        authorizer.passes("execute_sql", &Action::Query(sql));
        let text = fs::read_to_string(stage.state().join("audit.jsonl")).unwrap();
        assert!(text.contains("example.com/path") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn the_log_does_not_grow_without_end() {
        let stage = Stage::new();
        let authorizer = stage.authorizer(stage.policy(), DenyAll);
        authorizer.passes("execute_command", &stage.command("ls"));
        let log = stage.state().join("audit.jsonl");
        fs::write(&log, "x".repeat(5 * 1024 * 1024)).unwrap();
        authorizer.passes("execute_command", &stage.command("ls"));
        assert!(fs::metadata(&log).unwrap().len() < 1000);
        assert!(stage.state().join("audit.1.jsonl").exists());
        let long = format!("ls {}", "x".repeat(10_000));
        authorizer.passes("execute_command", &stage.command(&long));
        assert!(fs::metadata(&log).unwrap().len() < 3000);
    }

    #[test]
    fn approvals_that_make_no_sense_are_none() {
        let stage = Stage::new();
        let action = stage.skill("deploy", "echo hi", true);
        stage.authorizer(Policy::default(), ApproveAll).passes("skill_deploy", &action);
        let book = stage.state().join("approvals.json");
        for text in
            ["", "{\"approvals\": [", "\0\0\0\0", "[]", "{\"approvals\":[{\"kind\":\"all\"}]}"]
        {
            fs::write(&book, text).unwrap();
            let authorizer = stage.authorizer(Policy::default(), DenyAll);
            authorizer.refusal("skill_deploy", &action);
            let faults = authorizer.0.take_warnings();
            assert!(faults.iter().any(|it| it.contains("approvals.json.corrupt")), "{faults:?}");
            assert_eq!(
                fs::read(stage.state().join("approvals.json.corrupt")).unwrap(),
                text.as_bytes()
            );
            assert!(!book.exists());
        }
        stage.authorizer(Policy::default(), ApproveAll).passes("skill_deploy", &action);
        stage.authorizer(Policy::default(), DenyAll).passes("skill_deploy", &action);
    }

    #[test]
    fn many_at_once_lose_no_approval() {
        let stage = Stage::new();
        let acts: Vec<Action> =
            (0..16).map(|it| stage.skill(&format!("s{it}"), "echo", true)).collect();
        std::thread::scope(|scope| {
            for action in &acts {
                let authorizer = stage.authorizer(Policy::default(), ApproveAll);
                scope.spawn(move || authorizer.passes("skill", action));
            }
        });
        let nobody = stage.authorizer(Policy::default(), DenyAll);
        acts.iter().for_each(|action| nobody.passes("skill", action));
        assert_eq!(stage.log().len(), 32);
    }

    #[test]
    fn records_that_cannot_be_written_stop_nothing_and_are_said() {
        let stage = Stage::new();
        fs::write(stage.state(), "a file where a directory should be").unwrap();
        let action = stage.skill("deploy", "echo hi", true);
        let authorizer = stage.authorizer(Policy::default(), ApproveAll);
        authorizer.passes("skill_deploy", &action);
        let faults = authorizer.0.take_warnings();
        assert!(faults.iter().any(|it| it.contains("could not be logged")), "{faults:?}");
        assert!(faults.iter().any(|it| it.contains("could not be recorded")), "{faults:?}");
        stage.authorizer(Policy::default(), DenyAll).refusal("skill_deploy", &action);
    }
}

/// A root for commands and files, a folder of skills, and a directory for the records.
struct Stage(TempDir);

/// An authorizer, and helpers for its use.
struct Gated(Authorizer);

/// An approver who always gives the same reply, and records the questions.
#[derive(Debug)]
struct Somebody {
    reply: ApproverReply,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl Approver for Somebody {
    fn who(&self) -> &str {
        "person"
    }

    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        self.asked.lock().unwrap().push(question.clone());
        Box::pin(async { self.reply })
    }
}

impl Stage {
    fn new() -> Self {
        let own = Self(tempfile::tempdir().unwrap());
        fs::create_dir(own.root()).unwrap();
        own
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join("root")
    }

    fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.0.path().join("skills").join(name)
    }

    fn policy(&self) -> Policy {
        Policy { roots: vec![self.root()], ..Policy::default() }
    }

    fn authorizer(&self, policy: Policy, approver: impl Approver + 'static) -> Gated {
        Gated(Authorizer::new(policy, Arc::new(approver)).with_state(self.state()))
    }

    fn asking(&self, policy: Policy, reply: ApproverReply) -> (Gated, Arc<Mutex<Vec<Question>>>) {
        let asked = Arc::new(Mutex::default());
        (self.authorizer(policy, Somebody { reply, asked: asked.clone() }), asked)
    }

    /// Creates a script skill on disk, about to be executed.
    fn skill(&self, name: &str, script: &str, requires_approval: bool) -> Action {
        let manifest = Manifest {
            name: name.into(),
            description: "d".into(),
            kind: Type::Script,
            requires_approval,
            ..Manifest::default()
        };
        let entry = SkillRecord::new(manifest, &format!("```sh\n{script}\n```\n")).unwrap();
        let folder = self.folder(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("SKILL.md"), entry.render()).unwrap();
        Action::Execute(Box::new(SkillRecord { folder: Some(folder.into()), ..entry }))
    }

    fn command(&self, line: &str) -> Action {
        Action::Command { line: line.to_owned(), directory: self.root(), preview: None }
    }

    fn log(&self) -> Vec<Json> {
        let text = fs::read_to_string(self.state().join("audit.jsonl")).unwrap();
        text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    }
}

impl Gated {
    fn authorize(
        &self,
        tool: &str,
        action: &Action,
        active: &[Manifest],
    ) -> Result<(), Box<Outcome>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime
            .block_on(self.0.authorize(&ActionRequest { tool, action, active, given: None }))
            .map(drop)
    }

    fn passes(&self, tool: &str, action: &Action) {
        self.authorize(tool, action, &[]).unwrap();
    }

    fn refusal(&self, tool: &str, action: &Action) -> Outcome {
        *self.authorize(tool, action, &[]).unwrap_err()
    }
}

/// Creates an active skill that lists these tools.
fn listing(tools: &str) -> Manifest {
    Manifest { allowed_tools: AllowedTools::from_text(tools), ..Manifest::default() }
}
