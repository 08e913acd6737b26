//! Skills that match a request.

use std::sync::Arc;

use prowess::{
    Directory, Library, Match, Matching, Memory, Options, Scope, Strategy, Thresholds, activate,
    matches,
};
use prowess_testing::cost::assert_linear;
use serde_json::{Value as Json, json};

use crate::world::{Ran, SKILLS, World};

/// Returns a library in memory: names, each with the rest of its `SKILL.md`.
pub(crate) fn library_of(skills: &[(&str, &str)]) -> Library {
    let files = skills.iter().map(|(name, rest)| {
        (format!("{name}/SKILL.md"), format!("---\nname: {name}\n{rest}\n").into_bytes())
    });
    let source = Arc::new(Memory::new(Scope::Project, "memory", files));
    Library::load(&Options { sources: vec![source], ..Options::default() }).unwrap()
}

/// Returns a library in memory: names and descriptions.
pub(crate) fn library(skills: &[(&str, &str)]) -> Library {
    let documents: Vec<(&str, String)> = skills
        .iter()
        .map(|(name, description)| (*name, format!("description: \"{description}\"\n---\n")))
        .collect();
    library_of(&documents.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>())
}

fn names<'m>(matches: &[Match<'m>]) -> Vec<&'m str> {
    matches.iter().map(|it| &*it.skill.manifest.name).collect()
}

/// Returns the names of the skills that a request finds, best first.
pub(crate) fn found<'lib>(library: &'lib Library, request: &str) -> Vec<&'lib str> {
    names(&matches(library, request, 100))
}

fn by(strategy: Strategy) -> Matching {
    Matching { strategy, threshold: 0.0, ..Matching::default() }
}

fn active<'lib>(library: &'lib Library, request: &str, how: &Matching) -> Vec<&'lib str> {
    names(&activate(library, request, how).active)
}

/// Runs `find` on `skills/`.
fn find(world: &World, arguments: &[&str]) -> Ran {
    world.run(["find"].iter().chain(&SKILLS).chain(arguments))
}

fn answer(world: &World, arguments: &[&str]) -> Json {
    find(world, &[&["--json"], arguments].concat()).json()
}

/// Returns the names of a document's matches.
fn matched(document: &Json) -> Vec<&str> {
    let matches = document["matches"].as_array().unwrap();
    matches.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

fn keys(object: &Json) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns skills that have little to do with each other.
fn house() -> Library {
    library(&[
        ("bake-bread", "Bakes sourdough bread and rolls in a hot oven"),
        ("mow-lawn", "Mows the lawn in straight lines with a mower"),
        ("tune-piano", "Tunes the strings of a piano by ear"),
        ("wash-car", "Washes a car with soap and a sponge"),
    ])
}

fn house_on_disk() -> World {
    World::new()
        .skill("bake-bread", "Bakes sourdough bread and rolls in a hot oven")
        .skill("tune-piano", "Tunes the strings of a piano by ear")
        .skill("wash-car", "Washes a car with soap and a sponge")
}

/// Returns requests of all kinds.
fn odd_requests() -> Vec<String> {
    let mut requests: Vec<String> = [
        "",
        " ",
        "bread",
        "bake bread",
        "BakeBread",
        "bakeBreadNow",
        "breadMachine",
        "bake-bread.",
        "@bake-bread and $tune-piano, /wash-car",
        "@nobody",
        "the and of",
        "oven oven oven",
        "piano\0\u{1b}[2J\u{202e}strings",
        "^(bread|rolls)+$",
        "../../oven/bread.md",
        "{\"bread\": 1}",
        "烤面包 bread パン",
        "C++ c# c",
        "a",
        "@",
        "$",
        "/",
        "@@@",
        "😀 bread 😀",
        "brea",
        "braed",
        "bake bread and mow the lawn and tune the piano and wash the car with soap by ear in lines",
        "quantum chromodynamics of bread",
        "ﬁnd ｂｒｅａｄ",
        "bread\nbread\r\nbread\u{2028}bread",
    ]
    .map(str::to_owned)
    .to_vec();
    requests.push("bread ".repeat(10_000));
    requests.push((0..5000).map(|it| format!("word{it} ")).collect());
    requests.push("x".repeat(100_000));
    requests
}

mod a_mention_comes_before_everything {
    use super::*;

    #[test]
    fn a_22_an_unknown_mention_is_a_warning_with_the_nearest_name() {
        let world = World::new().skill("create-pr", "Opens a pull request").skill("debug", "Fixes");
        let ran = find(&world, &["@create-prs", "and", "$zzzzzzzzzz,", "debug"]);
        assert_eq!(ran.code, Some(0));
        assert!(
            ran.stderr.contains("warning: there is no active skill `create-prs`"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("did you mean `create-pr`?"), "{}", ran.stderr);
        let document = answer(&world, &["@create-prs and $zzzzzzzzzz, debug"]);
        let unknown = json!([
            {"name": "create-prs", "nearest": "create-pr"},
            {"name": "zzzzzzzzzz", "nearest": null},
        ]);
        assert_eq!(document["unknown"], unknown);
        let ran = world.run(["prompt", "@create-prs", "--dir", "skills"]);
        assert!(ran.stderr.contains("did you mean `create-pr`?"), "{}", ran.stderr);
        assert_eq!(find(&world, &["@create-prs debug", "-q"]).stderr, "");
    }

    #[test]
    fn a_skill_that_is_hidden_by_another_is_reached_by_its_scope() {
        let world = World::new().skill("polish", "Polishes silver for the project").skill_in(
            "home/mine",
            "polish",
            "Polishes silver for the user",
        );
        let directories = vec![Directory::new("skills"), Directory::new("~/mine")];
        let library = Library::load(&Options { directories, ..world.options() }).unwrap();
        for (request, described) in [
            ("@polish", "Polishes silver for the project"),
            ("@user:polish", "Polishes silver for the user"),
            ("polish silver for the user", "Polishes silver for the project"),
        ] {
            for strategy in [Strategy::Semantic, Strategy::Keyword] {
                let activation = activate(&library, request, &by(strategy));
                assert_eq!(&*activation.active[0].skill.manifest.description, described);
            }
        }
        let ran =
            world.run(["find", "polish", "silver", "--json", "--dir", "skills", "--dir", "~/mine"]);
        let document = ran.json();
        assert_eq!(matched(&document), ["polish", "polish"]);
        let [taken, hidden] = [0, 1].map(|at| &document["matches"][at]);
        assert_eq!(taken.get("hidden_by"), None);
        assert_eq!(hidden["hidden_by"], taken["path"]);
        assert_ne!(hidden["path"], taken["path"]);
        let ran = world.run(["find", "polish", "--dir", "skills", "--dir", "~/mine"]);
        assert!(ran.stdout().contains("\nuser:polish"), "{}", ran.stdout());
        assert!(ran.stdout().contains("\thidden by "), "{}", ran.stdout());
    }
}

mod a_request_activates_skills {
    use super::*;

    #[test]
    fn a_01_every_strategy_chooses_as_it_says() {
        let library = library_of(&[
            ("bake-bread", "description: Bakes\n---\nKnead the dough.\n"),
            ("mow-lawn", "description: Cuts grass\n---\n"),
            ("wash-car", "description: Washes\n---\n"),
        ]);
        let request = "knead dough and cut grass, then @wash-car";
        let active = |strategy| {
            let mut active = active(&library, request, &by(strategy));
            active[1..].sort_unstable();
            active
        };
        assert_eq!(active(Strategy::Semantic), ["wash-car", "bake-bread", "mow-lawn"]);
        assert_eq!(active(Strategy::Keyword), ["wash-car", "mow-lawn"]);
        assert_eq!(active(Strategy::Explicit), ["wash-car"]);
        assert_eq!(active(Strategy::Model), ["wash-car"]);
        assert_eq!(active(Strategy::Always), ["bake-bread", "mow-lawn", "wash-car"]);
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::from_word(strategy.as_str()), Some(strategy));
        }
        assert_eq!(Strategy::default(), Strategy::Semantic);
        assert_eq!(Strategy::from_word("magic"), None);

        let world = house_on_disk();
        for (strategy, expected) in [
            ("semantic", &["tune-piano"][..]),
            ("keyword", &["tune-piano"]),
            ("explicit", &[]),
            ("model", &[]),
            ("always", &["bake-bread", "tune-piano", "wash-car"]),
        ] {
            let arguments = ["--strategy", strategy, "strings"];
            assert_eq!(matched(&answer(&world, &arguments)), expected, "{strategy}");
            let arguments = ["--json", "--threshold", "0", "--strategy", strategy, "strings"];
            let ran = world.run(["prompt"].iter().chain(&SKILLS).chain(&arguments));
            assert_eq!(ran.said().names(), expected, "{strategy}");
        }
    }
}

mod a_confidence_says_how_likely_a_match_is_right {
    use super::*;

    #[test]
    fn the_same_request_gives_the_same_bytes() {
        let mut world = World::new();
        for at in 0..200 {
            let words = ["silver", "bread", "piano", "lawn", "car", "oven", "soap"];
            let about = [at % 7, at / 3 % 7, at / 5 % 7].map(|it| words[it]).join(" and ");
            world = world.skill(&format!("skill-{at}"), &format!("Takes care of {about}"));
        }
        let lines: Vec<String> = odd_requests()
            .iter()
            .enumerate()
            .map(|(id, query)| json!({"id": id, "query": query}).to_string())
            .collect();
        world.write("queries.jsonl", lines.join("\n"));
        let run = || find(&world, &["--queries", "queries.jsonl", "--why"]);
        let (first, second) = (run(), run());
        assert_eq!(first.stdout().lines().count(), odd_requests().len());
        assert!(first.stdout().contains("skill-7"));
        assert!(first.out == second.out, "the second run differs");
    }
}

mod embeddings_add_what_words_mean {
    use super::*;

    const VECTORS: &str = "fresco 0.9 0.1 0\nimage 1 0 0\nship 0 1 0\ndeploy 0 0.9 0.1\n";

    fn world() -> World {
        World::new()
            .skill("image-resize", "Scale an image down")
            .skill("deploy", "Deploy a service")
            .file("vectors.txt", VECTORS)
    }

    #[test]
    fn a_skill_is_found_that_has_no_word_of_the_request() {
        let world = world();
        let words = [&SKILLS[..], &["find", "shrink", "this", "fresco", "--json"]].concat();
        assert_eq!(world.run(&words).code, Some(1));
        let ran = world.run([&words[..], &["--embeddings", "vectors.txt"]].concat());
        assert_eq!(ran.json()["matches"][0]["name"], "image-resize", "{}", ran.stderr);
    }

    #[test]
    fn a_file_that_holds_no_vectors_is_refused() {
        let world = world().file("empty.txt", "").file("odd.txt", "a 1 2\nb 1\n");
        for (file, says) in
            [("none.txt", "none.txt"), ("empty.txt", "no vectors"), ("odd.txt", "line 2")]
        {
            let ran = world.run([&SKILLS[..], &["find", "a", "--embeddings", file]].concat());
            assert_eq!(ran.code, Some(2), "{}", ran.stderr);
            assert!(ran.stderr.contains(says) && ran.stderr.contains(file), "{}", ran.stderr);
        }
    }
}

mod the_command_find_is_for_people_and_for_programs {
    use super::*;

    #[test]
    fn the_fields_of_an_answer_are_stable() {
        let world = house_on_disk();
        let document = answer(&world, &["strings of a piano in a hot car"]);
        assert_eq!(keys(&document), ["query", "matches"]);
        assert_eq!(document["query"], "strings of a piano in a hot car");
        assert_eq!(matched(&document).len(), 3);
        for found in document["matches"].as_array().unwrap() {
            let fields = ["name", "confidence", "level", "path", "tier"];
            let own = keys(found).into_iter().filter(|it| *it != "below_threshold");
            assert_eq!(own.collect::<Vec<_>>(), fields);
            let confidence = found["confidence"].as_f64().unwrap();
            assert_eq!(found["level"], Thresholds::default().level(confidence).as_str());
            let path = found["path"].as_str().unwrap();
            assert!(path.ends_with(&format!("{}/SKILL.md", found["name"].as_str().unwrap())));
        }
        let tiers = ["@bake-bread", "bake-bread", "bread", "rolls"];
        let tiers = tiers.map(|it| answer(&world, &[it])["matches"][0]["tier"].clone());
        assert_eq!(tiers, ["mentioned", "named", "partial", "evidence"]);
        let document = answer(&world, &["@bake-bread", "@nobody", "--why"]);
        assert_eq!(keys(&document), ["query", "matches", "unknown"]);
        let found = &document["matches"][0];
        assert_eq!(keys(found), ["name", "confidence", "level", "path", "tier", "why"]);
        assert_eq!(keys(&found["why"][0]), ["word", "fields", "share"]);
        assert_eq!((&found["confidence"], &found["level"]), (&json!(1.0), &json!("full")));
    }

    #[test]
    fn what_is_below_the_threshold_is_marked() {
        let world = house_on_disk().file("prowess.toml", "[matching]\nthreshold = 0.99\n");
        let arguments =
            ["strings", "of", "a", "piano", "in", "a", "hot", "car", "--threshold", "0"];
        let document = answer(&world, &arguments);
        let found = document["matches"].as_array().unwrap();
        assert!(found.iter().all(|it| it["below_threshold"] == true), "{document:#}");
        let ran = find(&world, &arguments);
        let mark = "below the threshold";
        assert_eq!(ran.stdout().matches(mark).count(), found.len(), "{}", ran.stdout());
        assert!(ran.stderr.contains("no skill matches well"), "{}", ran.stderr);
        let ran = find(&world, &["@bake-bread strings", "--threshold", "0"]);
        assert_eq!((ran.stdout().matches(mark).count(), &*ran.stderr), (1, ""), "{}", ran.stdout());
        let mentioned = answer(&world, &["@bake-bread", "--threshold", "0"]);
        assert!(mentioned["matches"][0].get("below_threshold").is_none(), "{mentioned:#}");
    }

    #[test]
    fn people_get_a_line_a_skill() {
        let mut world = house_on_disk();
        for at in 1..=9 {
            world = world.skill(&format!("sort-{at}"), "Sorts screws in a box\\n\\nby size");
        }
        let ran = find(&world, &["@bake-bread", "and", "sort", "screws"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        let lines: Vec<&str> = ran.stdout().lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(
            lines[0],
            "bake-bread\t100%\tfull\tBakes sourdough bread and rolls in a hot oven"
        );
        assert!(lines[1].starts_with("sort-1\t"), "{}", ran.stdout());
        let description = |it: &&str| it.split('\t').nth(3).unwrap().starts_with("Sorts screws");
        assert!(lines[1..].iter().all(description), "{}", ran.stdout());
        assert_eq!(find(&world, &["sort", "--top", "2"]).stdout().lines().count(), 2);
        let ran = find(&world, &["sort", "--top", "2", "--why"]);
        let last: Vec<&str> = ran.stdout().lines().filter_map(|it| it.split('\t').nth(4)).collect();
        assert!(last.len() == 2 && last.iter().all(|it| it.contains("sort (")), "{}", ran.stdout());
        assert_eq!(find(&world, &["sort", "--top", "100"]).stdout().lines().count(), 9);
    }

    #[test]
    fn a_skill_takes_two_lines_of_any_terminal() {
        let long = "Bakes bread in an oven. ".repeat(30);
        let world = World::new()
            .file("prowess.toml", "[matching]\nthreshold = 0\n")
            .skill("bread", long.trim())
            .skill("rolls", long.trim());
        for columns in [40, 80, 160, 300] {
            let ran = world.run_at_narrow_terminal(
                columns,
                "",
                "find bake bread --dir skills --top 5 --color never",
            );
            let said = ran.stdout().replace('\r', "");
            assert_eq!(said.lines().count(), 4, "{columns}: {said}");
            assert_eq!(said.matches(" …\n").count(), 2, "{columns}: {said}");
        }
    }

    #[test]
    fn beside_a_strong_match_weak_ones_are_not_shown_to_people() {
        let words = ["strings", "of", "a", "violin", "and", "bread"];
        let world = house_on_disk();
        let found = answer(&world, &words);
        let confidence = |it: &Json| it["confidence"].as_f64().unwrap();
        let all: Vec<f64> = found["matches"].as_array().unwrap().iter().map(confidence).collect();
        let weak = all.iter().filter(|it| **it < all[0] / 10.0).count();
        assert!(all[0] >= 0.5 && weak > 0, "{all:?}");
        let typed = format!("find {} --dir skills", words.join(" "));
        let names = |said: &str| said.lines().filter(|it| it.contains("%  ")).count();
        let ran = world.run_at_terminal("", &typed);
        assert_eq!(names(ran.stdout()), all.len() - weak, "{}", ran.stdout());
        let note = "not shown; `--top 5` shows";
        assert!(ran.stdout().contains(note), "{}", ran.stdout());
        let ran = world.run_at_terminal("", &format!("{typed} --top 5"));
        assert_eq!(names(ran.stdout()), all.len(), "{}", ran.stdout());
        assert_eq!(find(&world, &words).stdout().lines().count(), all.len());
    }

    #[test]
    fn no_match_exits_1() {
        let world = house_on_disk();
        for arguments in [&["chromodynamics"][..], &["strings", "--threshold", "1"]] {
            let ran = find(&world, arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{arguments:?}");
            assert!(ran.stderr.contains("no skill matches `"), "{}", ran.stderr);
            assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
            let ran = find(&world, &[arguments, &["--json"]].concat());
            assert_eq!((ran.code, &ran.json()["matches"]), (Some(1), &json!([])));
        }
        assert_eq!(find(&World::new(), &["anything"]).code, Some(1));
    }

    #[test]
    fn a_request_that_cannot_be_one_exits_2() {
        let world = house_on_disk().file("queries.jsonl", "");
        for arguments in [
            &[][..],
            &[""],
            &[" ", "\t"],
            &["bread", "--top", "0"],
            &["bread", "--top", "101"],
            &["bread", "--top", "-1"],
            &["bread", "--threshold", "nan"],
            &["bread", "--threshold", "inf"],
            &["bread", "--threshold", "1.01"],
            &["bread", "--strategy", "magic"],
            &["bread", "--queries", "queries.jsonl"],
        ] {
            let ran = find(&world, arguments);
            assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{arguments:?}");
            assert!(!ran.stderr.is_empty(), "{arguments:?}");
        }
    }

    #[test]
    fn why_is_said_for_every_match() {
        let world = house_on_disk().document(
            "front",
            "---\nname: front\ndescription: Paints\ntags: [decor]\n---\n# Colours\n\nGlaze the webShop.\n",
        );
        let why = |request: &str, name: &str| -> Vec<Json> {
            let document = answer(&world, &[request, "--why"]);
            let matches = document["matches"].as_array().unwrap();
            for found in matches {
                assert!(!found["why"].as_array().unwrap().is_empty(), "{request} {found}");
            }
            let found = matches.iter().find(|it| it["name"] == name).unwrap();
            let reasons = found["why"].as_array().unwrap();
            let shares: Vec<f64> = reasons.iter().map(|it| it["share"].as_f64().unwrap()).collect();
            assert!(shares.iter().all(|it| (0.0..=1.0).contains(it)), "{shares:?}");
            assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
            let mut reasons: Vec<Json> =
                reasons.iter().map(|it| json!([it["word"], it["fields"]])).collect();
            reasons.sort_by_key(Json::to_string);
            reasons
        };
        assert_eq!(
            why("Bake the rolls, please", "bake-bread"),
            [
                json!(["bake", ["name", "description", "headings", "body"]]),
                json!(["rolls", ["description"]]),
            ]
        );
        let words = why("decor colours glaze", "front");
        let fields: Vec<&Json> = words.iter().map(|it| &it[1]).collect();
        assert_eq!(fields, [&json!(["headings", "body"]), &json!(["tags"]), &json!(["body"])]);
        assert_eq!(why("pinao", "tune-piano")[0][0], "pinao");
        assert_eq!(why("shopWindow", "front")[0], json!(["shop", ["body"]]));
        assert_eq!(why("@wash-car", "wash-car").len(), 2);

        let world = world.skill("talks", "Plans a presentation");
        let other = &answer(&world, &["my slide deck", "--why"])["matches"][0];
        assert_eq!(other["why"][0]["other_word"], "presentation", "{other}");
        let said = find(&world, &["my slide deck", "--why"]);
        assert!(
            said.stdout().contains("slide deck ≈ presentation (description)"),
            "{}",
            said.stdout()
        );

        let ran = find(&world, &["@tune-piano", "strings", "--why"]);
        let why = ran.stdout().lines().next().unwrap().split('\t').next_back().unwrap();
        assert!(why.starts_with("mentioned, "), "{why}");
        assert!(why.contains("strings (description)"), "{why}");
    }

    #[test]
    fn many_requests_are_answered_line_by_line() {
        let mut world = house_on_disk();
        for at in 10..30 {
            world = world.skill(&format!("sort-{at}"), "Sorts screws");
        }
        let text = "\u{feff}{\"id\": 1, \"query\": \"bake bread\"}\n\
                    {\"query\": \"@tune-piano\", \"id\": \"b\", \"more\": true}\r\n\
                    \n\
                    {\"id\": {\"z\": [1.50, 123456789012345678901234567890]}, \"query\": \"\"}\n\
                    {\"id\": null, \"query\": \"sort \\u0073crews\"}\n\
                    {\"id\": 1, \"query\": \"@nobody\"}";
        world.write("queries.jsonl", text);
        let ran = find(&world, &["--queries", "queries.jsonl"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
        assert_eq!(
            world.run_reading(text, &["find", "--dir", "skills", "--queries", "-"]).out,
            ran.out
        );
        let lines: Vec<&str> = ran.stdout().lines().collect();
        let documents: Vec<Json> =
            lines.iter().map(|it| serde_json::from_str(it).unwrap()).collect();
        let ids = ["1", "\"b\"", "{\"z\": [1.50, 123456789012345678901234567890]}", "null", "1"];
        for (line, id) in lines.iter().zip(ids) {
            assert!(line.starts_with(&format!("{{\"id\":{id},\"matches\":[")), "{line}");
        }
        assert_eq!(documents.len(), 5);
        assert_eq!(documents[2]["matches"], json!([]));
        assert_eq!(documents[3]["matches"].as_array().unwrap().len(), 10);
        assert_eq!(documents[4]["unknown"][0]["name"], "nobody");
        let single = answer(&world, &["bake bread", "--top", "10"]);
        assert_eq!(documents[0]["matches"], single["matches"]);
        assert_eq!(matched(&documents[1])[0], "tune-piano");
        let ran = find(&world, &["--queries", "queries.jsonl", "--top", "1", "--json"]);
        let last = ran.stdout().lines().nth(3).unwrap();
        assert_eq!(matched(&serde_json::from_str(last).unwrap()), ["sort-10"]);
    }

    #[test]
    fn a_bad_line_does_not_stop_the_others() {
        let world = house_on_disk();
        let good = r#"{"id":7,"query":"bread"}"#;
        let bad: [&[u8]; 9] = [
            b"nonsense",
            b"{\"id\":1}",
            b"{\"query\":\"bread\"}",
            b"{\"id\":1,\"query\":5}",
            b"[1,\"bread\",3]",
            b"{\"id\":1,\"query\":\"\xff\"}",
            b"{\"id\":1,\"query\":\"bread\"",
            b"{\"id\":1,\"query\":\"bread\"} trailing",
            b"{\"id\":\"\x1b[2J\",\"query\":\"bread\"}",
        ];
        let lines: Vec<&[u8]> = bad.iter().flat_map(|it| [*it, good.as_bytes()]).collect();
        world.write("queries.jsonl", lines.join(&b'\n'));
        let ran = find(&world, &["--queries", "queries.jsonl"]);
        assert_eq!(ran.code, Some(1));
        assert_eq!(ran.stdout().lines().count(), bad.len());
        for at in 0..bad.len() {
            let place = format!("error: queries.jsonl:{}: ", at * 2 + 1);
            assert!(ran.stderr.contains(&place), "{place} {}", ran.stderr);
        }
        assert!(ran.stderr.contains("missing field `query`"), "{}", ran.stderr);
        ran.assert_safe();
        let ran = find(&world, &["--queries", "nowhere.jsonl"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("cannot read `nowhere.jsonl`"), "{}", ran.stderr);
    }

    #[test]
    fn what_a_match_says_cannot_move_the_cursor() {
        let world = World::new().document(
            "evil",
            "---\nname: evil\ndescription: \"Cleans \\e[31m the \\u202e house\\r\"\n---\n",
        );
        let request = "clean\u{1b}[2J the\u{202e} house @ev\u{9b}il";
        let id = "{\"id\":\"\\u001b[2J\u{202e}\",\"query\":\"clean \u{202e}house\"}\n";
        world.write("queries.jsonl", id);
        for arguments in [
            &[request][..],
            &[request, "--why"],
            &[request, "--why", "--json"],
            &["nothing\u{1b}[2J\u{202e}", "--json"],
            &["nothing\u{1b}[2J\u{202e}"],
            &["--queries", "queries.jsonl", "--why"],
        ] {
            let ran = find(&world, arguments);
            ran.assert_safe();
            assert!(!ran.stderr.is_empty() || ran.stdout().contains("evil"), "{arguments:?}");
        }
    }
}

mod odd_requests_and_odd_libraries_have_an_outcome {
    use super::*;

    #[test]
    fn a_megabyte_is_answered_at_once() {
        let library = house();
        let size = 1 << 20;
        let filled = |text: &str| text.repeat(size / text.len());
        let distinct: String = (0..).map(|it| format!("@w{it} ")).take(size / 8).collect();
        let pasted = format!("tune my piano:\n{}", filled("lorem ipsum dolor "));
        for request in [
            filled("lorem ipsum "),
            filled("x"),
            filled("@a "),
            filled("a@b "),
            filled("é@ü.de@"),
            filled("tune-piano "),
            filled("部署"),
            distinct,
            pasted.clone(),
        ] {
            for strategy in [Strategy::Semantic, Strategy::Keyword] {
                let start: String = request.chars().take(20).collect();
                assert_linear(&format!("{start} {strategy:?}"), request.len(), |size| {
                    activate(
                        &library,
                        &request[..request.floor_char_boundary(size)],
                        &by(strategy),
                    );
                });
            }
        }
        assert_eq!(found(&library, &pasted), ["tune-piano"]);
        let world = house_on_disk();
        let line = json!({"id": 1, "query": pasted}).to_string();
        world.write("queries.jsonl", line);
        let ran = find(&world, &["--queries", "queries.jsonl"]);
        assert_eq!(matched(&ran.json()), ["tune-piano"]);
    }
}
