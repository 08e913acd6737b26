//! The lab: skills against each other, evaluations, and a page in a real browser.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
    thread,
};

use serde_json::{Value as Json, json};

use crate::{
    browser::Page,
    world::{Ran, World},
};

/// Returns a world with skills about different things.
fn tools() -> World {
    World::new()
        .skill("merge-pdf", "Merge and split PDF documents. Use when pages should be combined.")
        .skill("water-plants", "Plan when to water plants and fertilise the garden.")
        .skill("tune-guitar", "Tune a guitar by ear. Use when strings sound wrong.")
}

fn lab(world: &World, arguments: &[&str]) -> Ran {
    world.run([&["lab", "--dir", "skills"], arguments].concat())
}

/// Returns the output of `--json`, whatever the exit code.
fn report(world: &World, arguments: &[&str]) -> Json {
    lab(world, &[&["--json"], arguments].concat()).json()
}

fn studied<'r>(report: &'r Json, name: &str) -> &'r Json {
    let skills = report["studied"].as_array().unwrap();
    let found = skills.iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("no `{name}` in {report:#}"))
}

fn names(list: &Json) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

mod every_skill_is_asked_for_in_its_own_words {
    use super::*;

    #[test]
    fn a_skill_that_its_own_words_bring_first_is_found() {
        let world = tools();
        let ran = lab(&world, &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout().ends_with("all 3 skills can be found\n"), "{}", ran.stdout());
        let report = report(&world, &[]);
        assert_eq!(report["standings"], json!({"found": 3}));
        let pdf = studied(&report, "merge-pdf");
        let requests: Vec<&str> = pdf["probes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["request"].as_str().unwrap())
            .collect();
        assert_eq!(requests, ["Merge and split PDF documents", "pages should be combined"]);
        assert_eq!((&pdf["won"], &pdf["probes"][0]["rank"]), (&json!(2), &json!(1)));
    }

    #[test]
    fn a_skill_that_says_nothing_is_never_found_and_gets_words_to_use() {
        let text = "---\nname: helper\ndescription: Use this when you need it.\n---\n# Espresso\nGrind beans for espresso. Froth milk for espresso.\n```sh\ncode code code\n```\n";
        let world = tools().document("helper", text).skill("others", "Use it for others");
        let report = report(&world, &[]);
        let helper = studied(&report, "helper");
        assert_eq!(helper["standing"], "never_found", "{helper:#}");
        assert_eq!(helper["because"], "its description has no meaningful words");
        assert_eq!(helper["own"], json!(["espresso"]), "{helper:#}");
        assert_eq!(report["studied"][0]["name"], "helper", "the worst comes first");
        let shown = lab(&world, &[]);
        assert!(shown.stdout().contains("`espresso`"), "{}", shown.stdout());
        assert_eq!(shown.code, Some(0), "no evaluation has failed");
    }

    #[test]
    fn a_placeholder_is_named_as_the_cause() {
        let mut world = tools();
        for name in ["crypto-wallet", "agent-arena", "click-up"] {
            let description = format!("Use when skill {name}. See SKILL.md body for details.");
            world = world.skill(name, &description);
        }
        let report = report(&world, &[]);
        let placeholders = report["studied"].as_array().unwrap().iter();
        let bad: Vec<&Json> = placeholders.filter(|it| !it["because"].is_null()).collect();
        assert!(!bad.is_empty(), "{report:#}");
        for it in bad {
            assert_eq!(it["because"], "its description is a placeholder", "{it:#}");
            assert_eq!(it["advice"].as_array().unwrap().len(), 1, "{it:#}");
        }
    }

    #[test]
    fn the_closest_pairs_are_shown_where_nothing_is_wrong() {
        let world = World::new()
            .skill("merge-pdf", "Merge and split PDF documents when pages should be combined")
            .skill("sign-pdf", "Sign PDF contracts with a certificate")
            .skill("brew-tea", "Brew green tea in a pot");
        let ran = lab(&world, &[]);
        assert!(ran.stdout().contains("Closest"), "{}", ran.stdout());
        assert!(ran.stdout().contains("merge-pdf, sign-pdf"), "{}", ran.stdout());
        assert!(ran.stdout().ends_with("all 3 skills can be found\n"), "{}", ran.stdout());
        let closest = &report(&world, &[])["closest"];
        assert_eq!(names(&closest[0]["members"]), ["merge-pdf", "sign-pdf"]);
        let page = lab(&world, &["--html", "-"]);
        assert!(page.stdout().contains("Closest pairs"), "no pairs on the page");
    }

    #[test]
    fn a_skill_whose_requests_another_takes_learns_who_takes_them() {
        let world = tools()
            .skill("deploy-service-staging", "Deploy a service to staging. Roll back a staging deployment.")
            .skill("ops", "Assorted. Deploy a service to staging. Roll back a staging deployment. Other chores of operators, such as rotas, budgets, invoices, hardware, travel and office plants.");
        let report = report(&world, &[]);
        let ops = studied(&report, "ops");
        let competitor = &ops["thieves"][0];
        assert_eq!(competitor["name"], "deploy-service-staging", "{ops:#}");
        assert!(
            competitor["takes"].as_u64().unwrap() >= 1
                && competitor["lead"].as_f64().unwrap() > 0.0
        );
        let world = World::new()
            .skill(
                "deploy-service",
                "Deploy a service to the staging cluster of the operators; watch it",
            )
            .skill("ops", "Deploy a service to the staging cluster of operators")
            .skill("brew-tea", "Brew green tea in a pot");
        let shown = lab(&world, &[]);
        let said = "its only request finds `deploy-service` first\n";
        assert!(shown.stdout().contains(said), "{}", shown.stdout());
    }

    #[test]
    fn a_description_that_writes_out_the_name_of_another_skill_is_told_so() {
        let world = tools().skill("infrastructure-as-code", "Describe servers in files").skill(
            "cloud",
            "Plans startups with modern infrastructure-as-code habits and budgets.",
        );
        let report = report(&world, &["cloud"]);
        let cloud = studied(&report, "cloud");
        assert_eq!(cloud["because"], "it writes out the name of `infrastructure-as-code`");
        let advice = cloud["advice"][0].as_str().unwrap();
        assert!(advice.starts_with("write `infrastructure as code`"), "{advice}");
    }

    #[test]
    fn following_the_advice_helps() {
        let text = |name: &str, description: &str, body: &str| {
            format!("---\nname: {name}\ndescription: {description}\n---\n{body}\n")
        };
        let espresso = "# Espresso\nFroth milk, grind beans and clean the portafilter: espresso needs milk, beans and a portafilter.";
        let lute = "# Lutes\nLutes have gut frets and a rosette. Frets and rosette of lutes wear.";
        let world = tools()
            .document("helper", text("helper", "Use this when it is needed.", espresso))
            .document("strings", text("strings", "Tune a guitar by ear.", lute));
        let before = report(&world, &[]);
        for (name, described, body) in [
            ("helper", "Use this when it is needed.", espresso),
            ("strings", "Tune a guitar by ear.", lute),
        ] {
            let own = studied(&before, name)["own"].as_array().unwrap().iter();
            let own: Vec<&str> = own.map(|it| it.as_str().unwrap()).collect();
            assert!(own.len() > 1, "{name}: {own:?}");
            let described = format!("{described} Use for {}.", own.join(", "));
            world.write(format!("skills/{name}/SKILL.md"), text(name, &described, body));
        }
        let after = report(&world, &[]);
        assert_eq!(studied(&before, "helper")["standing"], "never_found");
        assert_eq!(studied(&after, "helper")["standing"], "found");
        let won = |report: &Json| studied(report, "strings")["won"].as_u64();
        assert_eq!((won(&before), won(&after)), (Some(0), Some(1)), "{after:#}");
    }

    #[test]
    fn a_skill_that_no_request_can_match_is_told_from_one_that_loses() {
        let manual = "---\nname: manual\ndescription: Merge and split PDF documents by hand\ndisable-model-invocation: true\n---\n";
        let off = "---\nname: off\ndescription: Merge and split PDF documents offline\nstatus: disabled\n---\n";
        let world = tools().document("manual", manual).document("off", off);
        let world = world.skill_in("more", "merge-pdf", "Merge and split PDF documents again");
        let report = report(&world, &["--dir", "more"]);
        assert_eq!(
            report["standings"],
            json!({"found": 3, "for_people": 1, "hidden": 1, "not_in_use": 1})
        );
        let manual = studied(&report, "manual");
        assert_eq!(manual["probes"], json!([]));
        assert!(manual["advice"][0].as_str().unwrap().contains("disable-model-invocation"));
        assert_eq!(studied(&report, "merge-pdf")["thieves"], json!([]));
        assert_eq!(report["families"], json!([]), "they are not in each other's way");
    }

    #[test]
    fn some_skills_are_studied_next_to_all_others() {
        let shoes = "Polish leather with wax. Use when boots look dull.";
        let world = tools().skill("alpha", shoes).skill("beta", shoes);
        let (all, some) = (report(&world, &[]), report(&world, &["merge-pdf", "beta"]));
        assert_eq!(names(&some["studied"]), ["beta", "merge-pdf"], "the worst first");
        assert_eq!(studied(&some, "beta"), studied(&all, "beta"));
        assert_eq!(some["families"].as_array().unwrap().len(), 1);
        assert_eq!(report(&world, &["merge-pdf"])["families"], json!([]));
        let ran = lab(&world, &["merge-pfd"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("did you mean `merge-pdf`?"), "{}", ran.stderr);
    }

    #[test]
    fn what_was_left_out_is_not_forgotten() {
        let world = tools().document("mute", "---\nname: mute\n---\nText.\n");
        let ran = lab(&world, &[]);
        assert!(ran.stdout().ends_with("all 3 skills can be found\n"), "{}", ran.stdout());
        let note = "1 skill is left out; `prowess list --dir skills` shows why";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        let ran = world.folder("nothing").run(["lab", "--dir", "nothing"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("there are no skills to examine"), "{}", ran.stderr);
    }

    #[test]
    fn the_same_library_gives_the_same_report() {
        let world = tools().skill("also-pdf", "Split PDF documents and water plants");
        let evals = json!([{"query": "water the roses", "should_trigger": true}]);
        let world = world.file("skills/water-plants/evals/triggers.json", evals.to_string());
        let first = lab(&world, &["--json"]);
        assert_eq!(first.out, lab(&world, &["--json", "--no-cache"]).out);
    }
}

mod skills_that_are_almost_the_same_are_named {
    use super::*;

    #[test]
    fn copies_with_few_changes_are_one_family() {
        let text = |name: &str, word: &str| {
            format!(
                "---\nname: {name}\ndescription: Brew espresso with a lever machine, and froth milk.\n---\n# Espresso\nGrind twenty grams of beans {word}, tamp them evenly, warm the portafilter, pull the lever slowly, stop after thirty seconds, and clean the group head with a brush.\n"
            )
        };
        let other = "---\nname: zz\ndescription: Brew espresso with a lever machine, and froth milk.\n---\nSomething else entirely: rockets, orbits, telescopes, comets, nebulae and the like.\n";
        let world = tools()
            .document("brew", text("brew", "finely"))
            .document("coffee", text("coffee", "finely"))
            .document("java", text("java", "coarsely"))
            .document("zz", other);
        let report = report(&world, &[]);
        let families = report["families"].as_array().unwrap();
        assert_eq!(families.len(), 2, "{families:#?}");
        assert_eq!(
            (&*names(&families[0]["members"]), &families[0]["alike"]),
            (&["brew", "coffee", "java"][..], &json!("text"))
        );
        assert_eq!(families[1]["alike"], "description");
        assert!(names(&families[1]["members"]).contains(&"zz"));
        let likeness = |at: usize| families[0]["members"][at]["likeness"].as_f64().unwrap();
        assert_eq!((likeness(0), likeness(1)), (1.0, 1.0));
        assert!((0.8..1.0).contains(&likeness(2)));
        let first = world
            .run(["find", "--dir", "skills", "--json", "Brew espresso with a lever machine"])
            .json();
        assert_eq!(first["matches"][0]["name"], names(&families[0]["members"])[0]);
        let java = studied(&report, "java");
        assert_eq!(
            (&java["standing"], &java["thieves"][0]["name"]),
            (&json!("contested"), &json!("brew"))
        );
        assert_eq!(java["because"], "almost the same as `brew`");
    }

    #[test]
    fn what_follows_one_pattern_about_different_things_is_no_family() {
        let products = ["gmail", "slack", "jira", "notion", "trello", "asana", "zendesk", "stripe"];
        let world = products.iter().fold(World::new(), |world, it| {
            world.skill(
                &format!("{it}-automation"),
                &format!(
                    "Automate {it} tasks through connectors: messages, lists and searches in {it}."
                ),
            )
        });
        let report = report(&world, &[]);
        assert_eq!(report["families"], json!([]));
        assert_eq!(report["standings"], json!({"found": 8}));
    }
}

mod evaluations_are_run_without_a_model {
    use super::*;

    #[test]
    fn evaluations_are_read_in_every_shape_that_is_in_use() {
        let world = tools()
            .file("skills/merge-pdf/evals/evals.json", r#"{"skill_name": "old-name", "evals": [{"id": 1, "prompt": "merge two PDF documents", "expected_output": "one", "expectations": []}]}"#)
            .file("skills/merge-pdf/evals/trigger-cases.json", r#"{"skill": "merge-pdf", "cases": [{"prompt": "split a PDF", "should_trigger": true}, {"prompt": "tune a guitar", "shouldTrigger": false}]}"#)
            .file("skills/water-plants/evals/eval_queries.json", r#"[{"query": "water the plants", "should_trigger": true}]"#)
            .file("skills/water-plants/tests/test-triggers.json", r#"{"should_trigger": ["fertilise the garden"], "should_not_trigger": ["combine pages"]}"#)
            .file("skills/tune-guitar/evals/triggers.jsonl", "{\"query\": \"guitar strings sound wrong\"}\n\n{\"query\": \"weather\", \"should_trigger\": false}\n")
            .file("skills/tune-guitar/evals/results.json", "not even JSON")
            .file("skills/tune-guitar/data.json", "{}");
        let report = report(&world, &[]);
        let evaluation = &report["evaluation"];
        assert_eq!(
            (&evaluation["requests"], &evaluation["passed"]),
            (&json!(8), &json!(8)),
            "{evaluation:#}"
        );
        assert_eq!((&report["findings"], &evaluation["holds"]), (&json!([]), &json!(true)));
        let ran = lab(&world, &[]);
        assert_eq!(
            ran.stdout().lines().last(),
            Some("8 of 8 evaluations passed (100 %), precision 1.00, recall 1.00, F1 1.00")
        );
    }

    #[test]
    fn tables_and_yaml_are_read_as_well() {
        let world = tools()
            .file("skills/merge-pdf/evals/merge.prompts.csv", "id,should_trigger,prompt\n1,true,\"merge, then split PDF documents\"\n2,no,tune a guitar\n")
            .file("skills/tune-guitar/tests/triggers.yaml", "skill: tune-guitar\nshould_trigger_prompts:\n  - prompt: tune a guitar\n    reason: said so\nshould_not_trigger_prompts:\n  - merge PDF documents\n")
            .file("queries.tsv", "Query\tExpected Skill\nwater the plants\twater-plants\nzxcvb qwert\t\n")
            .file("queries.yml", "---\n- query: water the plants\n  skill: water-plants\n\n- query: tune a guitar\n  skill: merge-pdf\n");
        let evaluation = |queries: &str| {
            let report = report(&world, &["--queries", queries]);
            assert_eq!(report["findings"], json!([]));
            report["evaluation"].clone()
        };
        let of_table = evaluation("queries.tsv");
        assert_eq!((&of_table["requests"], &of_table["passed"]), (&json!(6), &json!(6)));
        let of_yaml = evaluation("queries.yml");
        assert_eq!((&of_yaml["requests"], &of_yaml["passed"]), (&json!(6), &json!(5)));
        let failed = &of_yaml["failed"][0];
        assert_eq!((&failed["line"], &failed["expected"]), (&json!(5), &json!(["merge-pdf"])));
    }

    #[test]
    fn a_large_file_beside_a_skill_is_read_or_said_to_be_too_large() {
        let evals = |many: usize| {
            let eval =
                json!({"prompt": "merge PDF documents", "expected_output": "x".repeat(1000)});
            json!({"evals": vec![eval; many]}).to_string()
        };
        let path = "skills/merge-pdf/evals/evals.json";
        let world = tools().file(path, evals(200));
        assert_eq!(report(&world, &[])["evaluation"]["passed"], 200);
        world.write(path, evals(1100));
        let ran = lab(&world, &["--json", "--max-file-size", "1MiB"]);
        assert_eq!(ran.code, Some(1));
        let report = ran.json();
        assert_eq!(report["evaluation"]["requests"], 0);
        assert_eq!(report["findings"][0]["rule"], "resource-too-large", "{report:#}");
        assert_eq!(report["findings"][0]["path"], path);
    }

    #[test]
    fn a_request_that_matches_another_skill_fails_and_says_why() {
        let world = tools().file(
            "skills/tune-guitar/evals/evals.json",
            "{\n\"evals\": [\n  {\"prompt\": \"merge PDF documents about guitars\"}\n]}",
        );
        let ran = lab(&world, &["--json"]);
        assert_eq!(ran.code, Some(1));
        let report = ran.json();
        let failed = &report["evaluation"]["failed"][0];
        assert_eq!(failed["path"], "skills/tune-guitar/evals/evals.json");
        assert_eq!((&failed["line"], &failed["rank"]), (&json!(3), &json!(2)));
        assert_eq!(
            (&failed["expected"], &failed["matched"]),
            (&json!(["tune-guitar"]), &json!("merge-pdf"))
        );
        assert!(failed["confidence"].as_f64().unwrap() > 0.05);
        assert!(failed["why"][0].as_str().unwrap().contains("description"), "{failed:#}");
        let shown = lab(&world, &[]);
        assert_eq!(shown.code, Some(1));
        for part in [
            "1 × tune-guitar → merge-pdf",
            "it came second",
            "evals.json:3",
            "0 of 1 evaluation passed",
        ] {
            assert!(shown.stdout().contains(part), "no {part} in {}", shown.stdout());
        }
    }

    #[test]
    fn a_request_that_should_not_match_a_skill_may_match_any_other() {
        let evals =
            |request: &str| json!([{"query": request, "should_trigger": false}]).to_string();
        let path = "skills/tune-guitar/evals/triggers.json";
        let world = tools().file(path, evals("merge PDF documents"));
        let report_of = |world: &World| report(world, &[])["evaluation"].clone();
        let well = report_of(&world);
        assert_eq!((&well["passed"], &well["matrix"]), (&json!(1), &json!([])));
        world.write(path, evals("tune my guitar by ear"));
        let bad = report_of(&world);
        assert_eq!((&bad["passed"], &bad["failed"][0]["not"]), (&json!(0), &json!("tune-guitar")));
        assert_eq!(bad["scores"][0]["wrong"], 1);
        let none = json!([{"query": "merge PDF documents", "expected_skill": null}, {"prompt": "merge PDF", "type": "should_not_trigger"}]);
        world.write(path, none.to_string());
        assert_eq!(report_of(&world)["passed"], 2);
    }

    #[test]
    fn a_file_of_requests_says_which_skill_each_should_match() {
        let lines = [
            json!({"id": 1, "query": "split PDF documents", "skill": "merge-pdf"}),
            json!({"id": 2, "query": "water plants", "skill": ["tune-guitar", "water-plants"]}),
            json!({"id": 3, "query": "zxcvb qwert", "expected_skill": null}),
            json!({"id": 4, "query": "tune a guitar", "skill": "tune-guitar", "should_trigger": false}),
        ];
        let lines = lines.map(|it| it.to_string());
        let text = lines.join("\n");
        let world = tools().file("queries.jsonl", format!("\u{feff}{text}\n"));
        let report = report(&world, &["--queries", "queries.jsonl"]);
        assert_eq!(
            (&report["evaluation"]["requests"], &report["evaluation"]["passed"]),
            (&json!(4), &json!(3))
        );
        let failed = report["evaluation"]["failed"].as_array().unwrap();
        assert_eq!((failed.len(), &failed[0]["line"]), (1, &json!(4)));
        let typed =
            world.run_reading(&lines[0], &["lab", "--dir", "skills", "--queries", "-", "--json"]);
        assert_eq!((typed.code, &typed.json()["evaluation"]["passed"]), (Some(0), &json!(1)));
    }

    #[test]
    fn a_list_of_triggers_is_about_the_one_skill_that_is_looked_at() {
        let list = json!([{"query": "split a PDF", "should_trigger": true}, {"query": "tune a guitar", "should_trigger": false}]);
        let world = tools().file("list.json", list.to_string());
        let one = report(&world, &["merge-pdf", "--queries", "list.json"]);
        assert_eq!((&one["evaluation"]["passed"], &one["findings"]), (&json!(2), &json!([])));
        let other = report(&world, &["tune-guitar", "--queries", "list.json"]);
        assert_eq!(other["evaluation"]["passed"], 0);
        let all = report(&world, &["--queries", "list.json"]);
        assert_eq!(all["findings"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn the_figures_are_those_of_the_confusion_matrix() {
        let right = |query: &str, skill: &str| json!({"query": query, "skill": skill}).to_string();
        let world = tools().file(
            "queries.jsonl",
            [
                right("merge PDF documents", "merge-pdf"),
                right("split PDF documents", "merge-pdf"),
                right("tune a guitar by ear", "water-plants"),
                right("guitar strings sound wrong", "water-plants"),
                right("tune my guitar", "tune-guitar"),
                right("zxcvb qwert", "tune-guitar"),
            ]
            .join("\n"),
        );
        let report = report(&world, &["--queries", "queries.jsonl"]);
        let evaluation = &report["evaluation"];
        let cell = |at: usize| &evaluation["matrix"][at];
        assert_eq!(
            cell(0),
            &json!({"expected": "water-plants", "matched": "tune-guitar", "count": 2})
        );
        assert_eq!(cell(1), &json!({"expected": "tune-guitar", "matched": null, "count": 1}));
        assert_eq!(cell(2), &json!({"expected": "merge-pdf", "matched": "merge-pdf", "count": 2}));
        let scores = evaluation["scores"].as_array().unwrap();
        assert_eq!(names(&evaluation["scores"]), ["water-plants", "tune-guitar", "merge-pdf"]);
        let figures = |score: &Json| ["precision", "recall", "f1"].map(|it| score[it].clone());
        assert_eq!(figures(&scores[0]), [json!(null), json!(0.0), json!(0.0)]);
        assert_eq!(figures(&scores[1]), [json!(0.3333), json!(0.5), json!(0.4)]);
        assert_eq!(figures(&scores[2]), [json!(1.0), json!(1.0), json!(1.0)]);
        assert_eq!(figures(&evaluation["total"]), [json!(0.6), json!(0.5), json!(0.5455)]);
    }

    #[test]
    fn how_many_have_to_pass_can_be_said() {
        let lines = r#"{"query": "merge PDF documents", "skill": "merge-pdf"}
{"query": "water plants", "skill": "water-plants"}
{"query": "zxcvb", "skill": "tune-guitar"}"#;
        let world = tools().file("queries.jsonl", lines);
        let code = |arguments: &[&str]| {
            lab(&world, &[&["--queries", "queries.jsonl"], arguments].concat()).code
        };
        assert_eq!(code(&[]), Some(1));
        assert_eq!(code(&["--min-pass", "0.7"]), Some(1));
        assert_eq!(code(&["--min-pass", "0.6"]), Some(0));
        assert_eq!(code(&["--min-pass", "2"]), Some(2));
        let all_sure = ["--threshold", "1", "--min-pass", "0.6"];
        assert_eq!(code(&all_sure), Some(1), "a threshold that nothing reaches");
    }

    #[test]
    fn a_faulty_evaluation_file_is_a_finding_with_its_line() {
        let world = tools()
            .file("skills/merge-pdf/evals/evals.json", "{\"evals\": [\n  {\"prompt\": \"merge PDF documents\"},\n  {\"prompt\": 5},\n  {\"prompt\": \"split PDF\", \"should_trigger\": \"yes\"}\n]}")
            .file("skills/tune-guitar/evals/evals.json", "{\"evals\": [\n{\"prompt\"\n]}")
            .file("skills/water-plants/evals/triggers.json", "{\"name\": \"none\"}")
            .file("queries.jsonl", "{\"query\": \"water plants\", \"skill\": \"water-plants\"}\n{\"query\": \"x\", \"skill\": \"nobody\"}\n[1]\n{\"query\": \"x\"}\n\u{0}{{{\n");
        let ran = lab(&world, &["--queries", "queries.jsonl", "--json"]);
        assert_eq!(ran.code, Some(1));
        let report = ran.json();
        assert_eq!(
            (&report["evaluation"]["requests"], &report["evaluation"]["passed"]),
            (&json!(2), &json!(2))
        );
        let found = report["findings"].as_array().unwrap().iter();
        let found: Vec<String> = found
            .map(|it| {
                assert_eq!((&it["rule"], &it["severity"]), (&json!("evals"), &json!("warning")));
                assert!(it["hint"].as_str().unwrap().contains("\"query\""), "{it}");
                format!(
                    "{}:{} {}",
                    it["path"].as_str().unwrap(),
                    it["line"],
                    it["message"].as_str().unwrap()
                )
            })
            .collect();
        let starts = [
            "skills/merge-pdf/evals/evals.json:3 there is no `query` or `prompt`",
            "skills/merge-pdf/evals/evals.json:4 `should_trigger` is neither true nor false",
            "skills/tune-guitar/evals/evals.json:3 it is not JSON: expected `:`",
            "skills/water-plants/evals/triggers.json:null it has no list of requests",
            "queries.jsonl:2 there is no skill `nobody`",
            "queries.jsonl:3 there is no `query` or `prompt`",
            "queries.jsonl:4 it does not say which `skill` is expected",
            "queries.jsonl:5 it is not JSON",
        ];
        assert_eq!(found.len(), starts.len(), "{found:#?}");
        for (found, start) in found.iter().zip(starts) {
            assert!(found.starts_with(start), "{found} is not {start}");
        }
        let shown = lab(&world, &["--queries", "queries.jsonl"]);
        assert!(shown.stderr.contains("skills/merge-pdf/evals/evals.json:3: "), "{}", shown.stderr);
        shown.assert_safe();
    }

    #[test]
    fn whoever_wrote_a_file_that_is_at_fault_is_told_what_to_do() {
        let world = tools()
            .file("plain.txt", "merge a PDF\nwater, then wait\n")
            .file("misspelt.csv", "query,skill\nmerge,merge-pfd\nsplit,merge-pfd\n")
            .file("columns.csv", "a,b\n1,2\n")
            .file("open.csv", "query,skill\n\"merge,merge-pdf\n");
        let told = |queries: &str| {
            let ran = lab(&world, &["--queries", queries]);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            ran.stderr
        };
        let plain = told("plain.txt");
        assert!(plain.contains("plain.txt: it is neither JSON, nor CSV or YAML"), "{plain}");
        assert!(plain.contains(r#"note: write each request as {"query""#), "{plain}");
        let misspelt = told("misspelt.csv");
        assert!(misspelt.contains("misspelt.csv:3: there is no skill `merge-pfd`"), "{misspelt}");
        assert_eq!(misspelt.matches("did you mean `merge-pdf`?").count(), 1, "{misspelt}");
        assert!(told("columns.csv").contains("columns.csv:1: there is no column `query`"));
        assert!(told("open.csv").contains("open.csv:2: a quote is not closed"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_said_to_be_so() {
        let world = tools();
        for arguments in
            [["--queries", "nothing.jsonl"], ["--queries", "skills"], ["--html", "no/page.html"]]
        {
            let ran = lab(&world, &arguments);
            assert_eq!(ran.code, Some(2), "{arguments:?}");
            assert!(ran.stderr.contains(&format!("`{}`", arguments[1])), "{}", ran.stderr);
        }
    }
}

mod the_report_can_be_looked_at {
    use super::*;

    const LABELS: &str = "[...document.querySelectorAll('.row')].filter((it) => it.offsetParent).map((it) => it.querySelector('.label').firstChild.textContent)";
    const SELECTED: &str =
        "document.querySelector('[aria-selected=true] .label').firstChild.textContent";
    const DETAIL: &str = "document.getElementById('detail').textContent";

    /// Returns a world with a problem of every kind.
    fn troubled() -> World {
        let shoes = "Polish leather with wax. Use when boots look dull.";
        let helper = "---\nname: helper\ndescription: Use this when you need it.\n---\nGrind beans for espresso, then froth milk for espresso.\n";
        tools()
            .skill("alpha", shoes)
            .skill("beta", shoes)
            .document("helper", helper)
            .file(
                "skills/merge-pdf/evals/evals.json",
                r#"{"evals": [{"prompt": "merge PDF documents"}, {"prompt": "water the plants"}]}"#,
            )
            .file("skills/helper/evals/evals.json", "{")
    }

    fn page(world: &World) -> Page {
        let ran = lab(world, &["--html", "page.html"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        Page::open(&world.path("page.html"))
    }

    #[test]
    fn a_narrow_terminal_shows_it_whole() {
        let world = troubled().skill("other", "Polish leather with wax. Use when boots look dull.");
        let script = "stty rows 24 cols 40; exec \"$0\" lab --dir skills --top 1 --color never";
        let ran = world.run_script(&format!(
            "script -qec '{}' /dev/null",
            script.replace("\"$0\"", "'\"$0\"'")
        ));
        // Progress lines were erased.
        let lines = ran.stdout().lines().map(|it| it.rsplit("\x1b[K").next().unwrap_or(it));
        let lines: Vec<&str> = lines.map(str::trim_end).collect();
        assert!(lines[0].starts_with("Never found"), "{lines:#?}");
        let data = lines.iter().take_while(|it| !it.contains("evaluations passed"));
        assert!(data.clone().count() > 10, "{lines:#?}");
        let wide = data.clone().find(|it| it.chars().count() > 40);
        assert_eq!(wide, None);
        assert!(ran.stdout().contains("`--html FILE`"), "{lines:#?}");
    }

    #[test]
    fn the_page_is_printed_or_can_be_shared_and_not_advised_when_it_is_there() {
        let world = troubled();
        let advised = |arguments: &[&str]| {
            let ran = lab(&world, &[&["--top", "0"], arguments].concat());
            assert!(ran.stderr.contains("`--top N` shows more"), "{}", ran.stderr);
            ran.stderr.contains("`--html FILE`")
        };
        assert!(advised(&[]) && !advised(&["--html", "page.html"]));
        world.write("other.html", "");
        let mode = |file: &str| fs::metadata(world.path(file)).unwrap().permissions();
        assert_eq!(mode("page.html"), mode("other.html"));
        let printed = lab(&world, &["--html", "-"]);
        assert_eq!(printed.stdout(), fs::read_to_string(world.path("page.html")).unwrap());
        assert!(!world.path("-").exists());
        let at_home = world.skill_in("home/.claude/skills", "brew-coffee", "Brews coffee");
        let page = at_home.run(["lab", "--preset", "claude", "--html", "-"]);
        let home = at_home.path("home").display().to_string();
        assert!(page.stdout().contains("~/.claude/skills/brew-coffee/SKILL.md"));
        assert!(!page.stdout().contains(&home), "{}", page.stdout());
        let both = lab(&at_home, &["--html", "-", "--json"]);
        assert_eq!(both.code, Some(2), "{}", both.stdout());
    }

    #[test]
    fn a_page_goes_through_links_and_pipes_and_stays_private() {
        let world = troubled();
        world.write("private.html", "");
        let private = world.path("private.html");
        fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&private, world.path("link.html")).unwrap();
        lab(&world, &["--html", "link.html"]);
        assert!(world.path("link.html").is_symlink());
        let page = fs::read_to_string(&private).unwrap();
        assert!(page.trim_end().ends_with("</html>"), "{page}");
        assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o600);
        let pipe = world.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let open = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let reader = fs::File::open(&pipe).unwrap();
        let read = thread::spawn(|| io::read_to_string(reader).unwrap());
        lab(&world, &["--html", "pipe"]);
        drop(open);
        assert_eq!(read.join().unwrap(), page);
    }

    #[test]
    fn a_hostile_skill_cannot_reach_the_terminal() {
        let text = "---\nname: \"evil\\u202ename\"\ndescription: \"\\e[2J\\u202e\\a Use it\"\n---\n# \u{1b}[2J\u{202e}\n";
        let evals = json!([{"query": "\u{1b}[2J\u{202e}wipe \u{7}plants with water", "should_trigger": true}, {"query": ""}]);
        let world = troubled()
            .document("evil", text)
            .file("skills/evil/evals/triggers.json", evals.to_string());
        for arguments in [&["--top", "99"][..], &["--json"]] {
            let ran = lab(&world, arguments);
            assert_eq!(ran.code, Some(1));
            assert!(ran.stdout().contains("wipe"), "{}", ran.stdout());
            ran.assert_safe();
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    fn the_page_shows_skills_confusions_and_advice() {
        let mut page = page(&troubled());
        let labels = page.eval(LABELS);
        let expected = [
            "Overview",
            "Evaluation",
            "Almost the same",
            "Evaluation files at fault",
            "Never found",
            "helper",
            "Contested",
            "beta",
            "Found",
            "alpha",
            "merge-pdf",
            "tune-guitar",
            "water-plants",
        ];
        assert_eq!(labels, json!(expected));
        assert!(page.text(DETAIL).contains("its description has no meaningful words"));
        assert_eq!(page.text("document.title"), "Trigger lab: 6 skills");
        let totals = page.text("document.getElementById('totals').innerText").replace('\n', " ");
        assert!(totals.contains("never found 1") && totals.contains("passed 1 / 2"), "{totals}");
        page.press("j");
        let cell = "(() => { const it = document.querySelector('.heat td.wrong'); return it.title + ' ' + getComputedStyle(it).backgroundColor; })()";
        let cell = page.text(cell);
        assert!(cell.starts_with("1 request for merge-pdf matched water-plants "), "{cell}");
        assert!(!cell.contains("rgba(0, 0, 0, 0)"), "{cell}");
        page.press("j");
        assert!(page.text(DETAIL).contains("alpha") && page.text(DETAIL).contains("100 %"));
        page.eval("[...document.querySelectorAll('#detail .link')].find((it) => it.textContent === 'beta').click()");
        assert_eq!(page.text(SELECTED), "beta");
        for part in
            ["almost the same as", "remove it or", "boots look dull", "Skills that match instead"]
        {
            assert!(page.text(DETAIL).contains(part), "no {part} in {}", page.text(DETAIL));
        }
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    fn the_page_is_used_by_keys_searched_light_and_dark() {
        let mut page = page(&troubled());
        page.press("End");
        assert_eq!(page.text(SELECTED), "water-plants");
        page.press("k");
        assert_eq!(page.text(SELECTED), "tune-guitar");
        page.press("/");
        page.type_text("Espresso");
        assert_eq!(page.eval(LABELS), json!(["Never found", "helper"]));
        assert!(page.is("document.querySelectorAll('#detail mark').length > 0"));
        page.press("Escape");
        assert_eq!(page.eval(LABELS).as_array().unwrap().len(), 13);
        let background = "getComputedStyle(document.body).backgroundColor";
        let light = page.text(background);
        page.look(1400, 900, "dark");
        assert_ne!(page.text(background), light);
        page.look(1400, 900, "light");
        page.press("t");
        assert_ne!(page.text(background), light);
        page.press("t");
        assert_eq!(page.text(background), light);
        for width in [1400, 760, 360] {
            page.look(width, 800, "light");
            for _ in 0..13 {
                let widest = page.eval("document.documentElement.scrollWidth").as_u64().unwrap();
                assert!(
                    widest <= u64::from(width),
                    "{widest} of {width} in {}",
                    page.text(SELECTED)
                );
                page.press("j");
            }
            page.press("Home");
        }
        assert_eq!(page.eval("performance.getEntriesByType('resource').length"), 0);
    }

    #[test]
    #[cfg_attr(not(feature = "external"), ignore = "needs Chromium")]
    fn nothing_that_a_skill_says_is_run_by_the_page() {
        let name = "<script><img src=x onerror=alert(1)>";
        let attack = "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">{data}`";
        let text = format!(
            "---\nname: {}\ndescription: {}\n---\n{attack}\n",
            json!(name),
            json!(format!("{attack} wipe disks"))
        );
        let evals = json!([{"query": format!("{attack} pwned"), "skill": "water-plants"}, {"query": attack, "skill": name}, {"query": "x", "skill": "<b>"}]);
        let world = tools()
            .document("evil", &text)
            .document("evil-2", text.replacen("<script><img", "<img", 1).replace("wipe", "erase"))
            .file("skills/evil/evals/triggers.json", evals.to_string());
        let mut page = page(&world);
        let rows = page.eval("document.querySelectorAll('.row').length").as_u64().unwrap();
        assert!(rows >= 6);
        for row in 0..rows {
            assert_eq!(page.eval("document.scripts.length"), 2, "row {row}");
            assert_eq!(page.eval("document.querySelectorAll('img, iframe, #detail b').length - document.querySelectorAll('.facts b, .legend b').length"), 0);
            assert!(page.text("document.title").starts_with("Trigger lab"));
            page.press("j");
        }
        let all = fs::read_to_string(world.path("page.html")).unwrap();
        assert!(!all.contains("<img src=x"), "it stands there as text alone");
    }
}
