//! Skills that match a request.

use std::sync::Arc;

use prowess::{
    Activate, Activation, Level, Library, LiveLibrary, Match, Matching, Memory, Message, Options,
    Priority, Role, Scope, Strategy, Thresholds, Tier, activate, choose, matches, matches_by,
};

use crate::world::World;

/// Returns a library in memory: names, each with the rest of its `SKILL.md`.
pub(crate) fn library_of(skills: &[(&str, &str)]) -> Library {
    let files = skills.iter().map(|(name, rest)| {
        (format!("{name}/SKILL.md"), format!("---\nname: {name}\n{rest}\n").into_bytes())
    });
    let source = Arc::new(Memory::new(Scope::Project, "memory", files));
    Library::load(&Options { sources: vec![source], ..Options::default() }).unwrap()
}

/// A library in memory: names and descriptions.
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

/// The names of what a request finds, best first.
pub(crate) fn found<'lib>(library: &'lib Library, request: &str) -> Vec<&'lib str> {
    names(&matches(library, request, 100))
}

fn found_by<'lib>(library: &'lib Library, request: &str, strategy: Strategy) -> Vec<&'lib str> {
    names(&matches_by(library, request, strategy, 100, |_| true))
}

fn by(strategy: Strategy) -> Matching {
    Matching { strategy, threshold: 0.0, ..Matching::default() }
}

fn active<'lib>(library: &'lib Library, request: &str, how: &Matching) -> Vec<&'lib str> {
    names(&activate(library, request, how).active)
}

/// Returns the mentions of a request: known skills, and unknown names.
fn mentions<'lib>(library: &'lib Library, request: &str) -> (Vec<&'lib str>, Vec<String>) {
    let how = Matching { max_active: 100, ..by(Strategy::Explicit) };
    let Activation { active, unknown, .. } = activate(library, request, &how);
    (names(&active), unknown.into_iter().map(|it| it.name).collect())
}

/// A house with skills that have little to do with each other.
fn house() -> Library {
    library(&[
        ("bake-bread", "Bakes sourdough bread and rolls in a hot oven"),
        ("mow-lawn", "Mows the lawn in straight lines with a mower"),
        ("tune-piano", "Tunes the strings of a piano by ear"),
        ("wash-car", "Washes a car with soap and a sponge"),
    ])
}

/// Requests of all kinds.
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

mod for_the_same_words_a_name_comes_before_a_description {
    use super::*;

    #[test]
    fn q_11_an_exact_name_comes_before_a_partial_name_before_a_description() {
        let library = library_of(&[
            (
                "a-note",
                "description: Deploys a release. To deploy a release, say release deploy\n\
              tags: [deploy, release]\n---\ndeploy release deploy release\n",
            ),
            ("deploy-release-notes", "description: Writes\n---\n"),
            ("z-other", "description: Has to do with anything else\n---\n"),
            ("deploy-release", "description: Something\n---\n"),
        ]);
        let order = ["deploy-release", "deploy-release-notes", "a-note"];
        for request in
            ["deploy-release", "Deploy release", "deploy_release", "please deploy the release"]
        {
            assert_eq!(found(&library, request), order, "{request}");
        }
        for request in ["deploy-release", "Deploy release", "DEPLOY RELEASE"] {
            assert_eq!(found_by(&library, request, Strategy::Keyword), order, "{request}");
        }
        let tiers: Vec<Tier> =
            matches(&library, "deploy release", 9).iter().map(|it| it.tier).collect();
        assert_eq!(tiers, [Tier::Named, Tier::Partial, Tier::Evidence]);
    }

    #[test]
    fn q_11_the_strategy_keyword_keeps_its_tiers_in_a_long_request() {
        let library = library(&[
            ("first", "Rotates keys in a vault for every service of a cluster"),
            ("service-menu", "Prints a card"),
            ("backup", "Copies files"),
        ]);
        let request = "rotate the keys in the vault for every service of the cluster, then backup";
        let keyword = found_by(&library, request, Strategy::Keyword);
        assert_eq!(keyword, ["backup", "service-menu", "first"]);
    }

    #[test]
    fn in_a_longer_request_evidence_adds_up() {
        let library = library(&[
            ("first", "Rotates the keys in a vault for every service of a cluster"),
            ("service-menu", "Prints a card"),
            ("other", "Does something else"),
        ]);
        let request = "rotate the keys in the vault for every service of the cluster";
        assert_eq!(found(&library, request)[0], "first");
    }

    #[test]
    fn a_name_that_is_written_out_comes_first() {
        let library = library(&[
            ("create-pr", "Opens it"),
            ("debug", "Looks closely"),
            ("review-code", "Reviews the changes of a branch for bugs before they are merged"),
        ]);
        let about = "review the changes of my branch for bugs before they are merged";
        assert_eq!(found(&library, about)[0], "review-code");
        assert_eq!(found(&library, &format!("{about}, then run create-pr."))[0], "create-pr");
        assert_eq!(found(&library, &format!("{about} with the debug skill"))[0], "debug");
        assert_eq!(found(&library, &format!("{about} with the create pr skill"))[0], "create-pr");
        assert_eq!(found(&library, &format!("{about}, then run createPr."))[0], "create-pr");
        assert_eq!(found(&library, "run create pr")[0], "create-pr");
        assert_eq!(found(&library, "createpr")[0], "create-pr");
    }

    #[test]
    fn a_name_that_is_written_out_comes_first_among_hundreds() {
        let names: Vec<String> = (0..300).map(|it| format!("helper-{it}")).collect();
        let about = "Runs this project and fixes errors in the database";
        let mut skills: Vec<(&str, &str)> = names.iter().map(|it| (&**it, about)).collect();
        skills.push(("quest-design", "Opens it"));
        let library = library(&skills);
        let request = "run quest-design on this project and fix the errors in the database";
        assert_eq!(found(&library, request)[0], "quest-design");
    }

    #[test]
    fn a_name_in_a_path_in_code_or_in_an_error_message_is_none() {
        let library = house();
        for said in [
            "in src/bake-bread/index.ts",
            "of https://example.com/bake-bread",
            "from owner/bake-bread",
            "as in bake-bread.md",
            "\n```\nbake-bread --now\n```\n",
            "after \"the job bake-bread has not been done\"",
            "\nError: bake-bread not found",
        ] {
            let request = format!("tune the strings of the piano {said}");
            assert_eq!(found(&library, &request).first(), Some(&"tune-piano"), "{request}");
        }
        for said in ["with bake-bread", "with `bake-bread`", "(bake-bread)"] {
            let request = format!("tune the strings of the piano {said}");
            assert_eq!(found(&library, &request).first(), Some(&"bake-bread"), "{request}");
        }
    }

    #[test]
    fn a_name_as_it_is_written_comes_before_one_of_the_same_stem() {
        let same = "Draws mermaid diagrams";
        let library = library(&[("mermaid-diagramming", same), ("mermaid-diagrams", same)]);
        for name in ["mermaid-diagrams", "mermaid-diagramming"] {
            for request in [name.to_owned(), format!("use {name} to draw it")] {
                let found = matches(&library, &request, 2);
                assert_eq!(&*found[0].skill.manifest.name, name, "{request}");
                assert!(found[1].confidence <= found[0].confidence);
            }
        }
    }

    #[test]
    fn equal_skills_stay_in_the_order_of_their_names() {
        let source = |scope: Scope, names: &[&str]| -> Arc<dyn prowess::Source> {
            let files = names.iter().map(|name| {
                let text = format!("---\nname: {name}\ndescription: Polishes silver\n---\n");
                (format!("{name}/SKILL.md"), text.into_bytes())
            });
            Arc::new(Memory::new(scope, scope.as_str(), files.collect::<Vec<_>>()))
        };
        let sources = [
            source(Scope::Project, &["delta", "alpha"]),
            source(Scope::User, &["charlie", "bravo"]),
        ];
        for sources in [sources.to_vec(), sources.iter().rev().cloned().collect()] {
            let library = Library::load(&Options { sources, ..Options::default() }).unwrap();
            for strategy in [Strategy::Semantic, Strategy::Keyword, Strategy::Always] {
                let order = found_by(&library, "polish the silver", strategy);
                assert_eq!(order, ["alpha", "bravo", "charlie", "delta"], "{strategy:?}");
            }
        }
    }

    #[test]
    fn repeating_a_word_does_not_win() {
        let words = "deploy staging branch environment deploy to staging ".repeat(20);
        let tags = "tags: [deploy, staging, branch, environment, deploy, staging]";
        let stuffed = format!("description: {words}\n{tags}\n---\n{}\n", words.repeat(10));
        let honest = "description: Deploys the current branch to the staging environment\n---\n\
                      Check the branch. Then deploy it, and look whether staging is well.\n";
        // A name that says it, and one that does not.
        for (name, strategies) in [
            ("deploy-staging", &[Strategy::Semantic, Strategy::Keyword][..]),
            ("ship-it", &[Strategy::Semantic]),
        ] {
            let library = library_of(&[("aaa-best-tool", &stuffed), (name, honest)]);
            for request in [
                "deploy",
                "deploy to staging",
                "deploy my branch to staging",
                "please deploy the current branch to the staging environment for me",
            ] {
                for strategy in strategies {
                    let order = found_by(&library, request, *strategy);
                    assert_eq!(order, [name, "aaa-best-tool"], "{request} {strategy:?}");
                }
            }
        }
    }
}

mod a_mention_comes_before_everything {
    use super::*;

    #[test]
    fn a_22_a_mention_activates_its_skill() {
        let library = house();
        for (request, expected) in [
            ("@bake-bread", &["bake-bread"][..]),
            ("tune the piano by ear with @bake-bread", &["bake-bread"]),
            ("tune the piano ($wash-car, @bake-bread): now", &["wash-car", "bake-bread"]),
            ("/mow-lawn and tune the piano", &["mow-lawn"]),
            ("  /mow-lawn", &["mow-lawn"]),
            ("@Bake-Bread.", &["bake-bread"]),
            ("line\n\"@tune-piano\"", &["tune-piano"]),
            ("@project:wash-car", &["wash-car"]),
        ] {
            for strategy in Strategy::ALL.into_iter().filter(|it| *it != Strategy::Always) {
                let activation = activate(&library, request, &by(strategy));
                let first = &activation.active[..expected.len()];
                assert_eq!(names(first), expected, "{request} {strategy:?}");
                let is_sure = |it: &Match<'_>| it.tier == Tier::Mentioned && it.confidence == 1.0;
                assert!(first.iter().all(is_sure), "{request} {strategy:?}");
                assert_eq!(activation.unknown, []);
            }
        }
        // A threshold is for what has to be guessed.
        let strict = Matching { threshold: 1.0, ..Matching::default() };
        assert_eq!(active(&library, "tune a piano, @wash-car", &strict), ["wash-car"]);
    }

    #[test]
    fn what_only_looks_like_a_mention_is_none() {
        let library = library(&[("debug", "Fixes"), ("types", "Checks"), ("home", "Goes")]);
        for request in [
            "write to me@debug.org or debug@example.org",
            "in src/debug or ./debug or /debug/log.txt",
            "it costs $5 and $100,000",
            "echo $HOME and ${debug} and $my_var",
            "npm install @types/node",
            "@app.route('/x') and @debug(level=1)",
            "a@debug b$debug",
            "@ debug, $ debug, 50 @ 3",
        ] {
            assert_eq!(mentions(&library, request), (vec![], vec![]), "{request}");
        }
        assert_eq!(mentions(&library, "see /debug here"), (vec![], vec![]));
        assert_eq!(found(&library, "write to bob@debug.org"), [""; 0]);
    }

    #[test]
    fn a_skill_that_is_not_in_use_is_not_found() {
        let text = |status: &str| format!("description: Polishes silver\nstatus: {status}\n---\n");
        let library = library_of(&[
            ("polish-active", &text("active")),
            ("polish-disabled", &text("disabled")),
            ("polish-draft", &text("draft")),
        ]);
        for request in ["polish silver", "polish-draft", "polish disabled", "@polish-draft"] {
            for strategy in Strategy::ALL {
                let activation = activate(&library, request, &by(strategy));
                let used: Vec<&str> =
                    [names(&activation.active), names(&activation.considered)].concat();
                assert!(used.iter().all(|it| *it == "polish-active"), "{request} {used:?}");
            }
            assert!(found(&library, request).iter().all(|it| *it == "polish-active"));
        }
        let unknown = activate(&library, "@polish-draft", &Matching::default()).unknown;
        assert_eq!(unknown[0].name, "polish-draft");
        assert_ne!(unknown[0].nearest.as_deref(), Some("polish-draft"));
    }

    #[test]
    fn a_skill_that_hides_from_the_model_is_activated_by_a_mention_alone() {
        let text = "description: Polishes silver\ndisable-model-invocation: true\n---\n";
        let library = library_of(&[("polish", text), ("other", "description: Else\n---\n")]);
        for strategy in Strategy::ALL {
            let active = |request: &str| active(&library, request, &by(strategy));
            assert!(!active("polish silver").contains(&"polish"), "{strategy:?}");
            assert!(active("now @polish").contains(&"polish"), "{strategy:?}");
        }
        assert_eq!(found(&library, "polish silver"), ["polish"]);
    }
}

mod a_request_activates_skills {
    use super::*;

    #[test]
    fn a_02_no_more_skills_are_active_than_was_set() {
        let many: Vec<String> = (10..40).map(|it| format!("report-{it}")).collect();
        let many: Vec<(&str, &str)> =
            many.iter().map(|it| (it.as_str(), "Writes a report about sales")).collect();
        let library = library(&many);
        for strategy in [Strategy::Semantic, Strategy::Keyword, Strategy::Always] {
            let count = |max_active| {
                let how = Matching { max_active, ..by(strategy) };
                activate(&library, "a report about sales", &how).active.len()
            };
            assert_eq!(by(strategy).max_active, 3);
            assert_eq!([0, 1, 3, 25, 1000].map(count), [0, 1, 3, 25, 30], "{strategy:?}");
        }
        let how = Matching { max_active: 1, ..Matching::default() };
        assert_eq!(active(&library, "@report-30 @report-20", &how), ["report-30"]);
    }

    #[test]
    fn a_03_a_threshold_keeps_out_what_is_less_likely() {
        let library = house();
        let request = "bake bread, then tune the piano by ear";
        let all = activate(&library, request, &by(Strategy::Semantic)).active;
        assert_eq!(all.len(), 2);
        assert!(all[0].confidence > all[1].confidence, "{all:?}");
        let count = |request: &str, threshold: f64| {
            activate(&library, request, &Matching { threshold, ..Matching::default() }).active.len()
        };
        assert_eq!(count(request, all[1].confidence), 2);
        assert_eq!(count(request, all[1].confidence.next_up()), 1);
        assert_eq!(count(request, all[0].confidence.next_up()), 0);
        for (threshold, expected) in
            [(f64::NAN, 0), (f64::INFINITY, 0), (f64::NEG_INFINITY, 2), (-1.0, 2), (2.0, 0)]
        {
            assert_eq!(count(request, threshold), expected, "{threshold}");
            assert_eq!(count("@wash-car", threshold), 1, "{threshold}");
        }
        assert_eq!(Matching::default().threshold, 0.05);
    }

    #[test]
    fn a_04_the_scores_of_an_activation_are_kept() {
        let library = house();
        let how = Matching { max_active: 1, ..by(Strategy::Semantic) };
        let activation = activate(&library, "bake bread, then tune the piano by ear", &how);
        assert_eq!(names(&activation.active).len(), 1);
        let kept = &activation.considered;
        assert_eq!(names(kept)[0], names(&activation.active)[0]);
        assert_eq!(kept.len(), 2);
        assert!(kept[0].score > kept[1].score && kept[1].score.is_finite(), "{kept:?}");
        assert!(kept[0].confidence >= kept[1].confidence, "{kept:?}");
        // Also if the threshold excludes all of them.
        let activation =
            activate(&library, "bake bread", &Matching { threshold: 2.0, ..Matching::default() });
        assert_eq!((activation.active.len(), activation.considered.len()), (0, 1));
    }

    /// Takes every skill whose name ends with the last letter of the request.
    #[derive(Debug)]
    struct ByLetter;

    impl Activate for ByLetter {
        fn activate<'lib>(&self, library: &'lib Library, request: &str) -> Vec<Match<'lib>> {
            let fits = library
                .skills()
                .filter(|it| it.manifest.name.chars().last() == request.chars().last());
            let confidences = [0.9, 0.5, f64::NAN].into_iter().cycle();
            let scored = fits.zip(confidences).map(|(skill, confidence)| {
                let mut found = Match::new(skill, confidence);
                found.score = 7.0;
                found
            });
            scored.collect()
        }
    }

    #[test]
    fn a_14_a_rule_of_one_s_own_replaces_ours() {
        let library = library(&["an", "in", "on", "to", "un"].map(|it| (it, "Polishes silver")));
        let how = |max_active, threshold| Matching {
            rule: Some(Arc::new(ByLetter)),
            strategy: Strategy::Always,
            max_active,
            threshold,
        };
        assert_eq!(active(&library, "pan", &how(9, 0.1)), ["an", "in", "un"]);
        assert_eq!(active(&library, "pan", &how(2, 0.1)), ["an", "in"]);
        assert_eq!(active(&library, "pan", &how(9, 0.6)), ["an", "un"]);
        assert_eq!(active(&library, "to", &how(9, 0.1)), ["to"]);
        assert_eq!(active(&library, "polish silver", &how(9, 0.1)), [""; 0]);
        let considered = activate(&library, "pan", &how(1, 0.6)).considered;
        assert_eq!(names(&considered), ["an", "in", "on", "un"]);
        assert_eq!(considered[1].score, 7.0);
    }

    #[test]
    fn the_levels_of_chosen_skills_follow_the_thresholds() {
        let library = house();
        let chosen = |request: &str, brief_at: f64, full_at: f64| {
            let history = [Message::new(Role::User, request)];
            let thresholds = Thresholds::new(brief_at, full_at).unwrap();
            let choice = choose(&library, &history, &by(Strategy::Semantic), thresholds);
            (choice.skills[0].level, choice.skills[0].priority)
        };
        let request = "my strings";
        assert_eq!(chosen(request, 0.0, 0.0), (Level::Full, Priority::Relevant));
        assert_eq!(chosen(request, 0.0, 1.0), (Level::Brief, Priority::Relevant));
        assert_eq!(chosen(request, 1.0, 1.0), (Level::Metadata, Priority::Relevant));
        assert_eq!(chosen("@tune-piano", 1.0, 1.0), (Level::Full, Priority::Active));
    }
}

mod a_confidence_says_how_likely_a_match_is_right {
    use super::*;

    #[test]
    fn confidences_lie_between_0_and_1_and_never_rise() {
        let library = house();
        for request in odd_requests() {
            for strategy in Strategy::ALL {
                let matches = matches_by(&library, &request, strategy, 100, |_| true);
                let request: String = request.chars().take(80).collect();
                for found in &matches {
                    assert!((0.0..=1.0).contains(&found.confidence), "{request:?} {found:?}");
                    assert!(found.score.is_finite(), "{request:?} {found:?}");
                }
                let falls = matches.is_sorted_by(|a, b| a.confidence >= b.confidence);
                assert!(falls, "{request:?} {matches:?}");
                let tiers = matches.is_sorted_by(|a, b| a.tier >= b.tier);
                assert!(tiers, "{request:?} {matches:?}");
            }
        }
    }

    #[test]
    fn what_no_skill_fits_has_a_low_confidence() {
        let library = house();
        let best = |request: &str| matches(&library, request, 1).first().map(|it| it.confidence);
        assert_eq!(best("explain quantum chromodynamics"), None);
        let fits = best("tune the strings of my piano").unwrap();
        let unfit = best("book a hot holiday near volcanoes, glaciers and geysers").unwrap();
        assert!(unfit < 0.3 && fits > 0.5, "{unfit} {fits}");
        let body = "description: Bakes bread\n---\n1. Take 2 cups of flour.\n2. Draw an x on it.\n";
        let library = library_of(&[("bake-bread", body)]);
        for request in ["2", "what's 2 + 2?", "x", "1", "/other x"] {
            assert!(matches(&library, request, 1).is_empty(), "{request}");
        }
    }

    #[test]
    fn an_edit_is_found_after_a_reload() {
        let world = World::new().skill("one", "Polishes silver").skill("two", "Bakes bread");
        let live_library = LiveLibrary::start(&world.options()).unwrap();
        let held = live_library.library();
        assert_eq!(found(&held, "silver"), ["one"]);
        let world = world.skill("one", "Shears sheep").skill("three", "Polishes silver");
        world.remove("skills/two/SKILL.md");
        assert_eq!(found(&held, "silver"), ["one"]);
        let reloaded = live_library.reload().unwrap();
        assert_eq!(found(&reloaded, "silver"), ["three"]);
        assert_eq!(found(&reloaded, "sheep"), ["one"]);
        assert_eq!(found(&reloaded, "bread"), [""; 0]);
        assert_eq!(found(&held, "bread"), ["two"]);
    }
}

mod odd_requests_and_odd_libraries_have_an_outcome {
    use super::*;

    #[test]
    fn a_request_without_words_finds_nothing() {
        let body = "description: Themes for slides\n---\nSay hello there, and go over there.\n";
        let polite = library_of(&[("themes", body), ("go", "description: Writes Go\n---\n")]);
        assert_eq!(found(&polite, "hello there"), [""; 0]);
        assert_eq!(found(&polite, "go"), ["go"]);
        let library = house();
        for request in [
            "",
            " \t\n",
            "?!…",
            "\0\u{1}\u{1b}\u{7f}",
            "@ $ /",
            "the and of to",
            "please can you help",
            "\u{202e}\u{200b}",
            "😀",
        ] {
            for strategy in Strategy::ALL.into_iter().filter(|it| *it != Strategy::Always) {
                let activation = activate(&library, request, &by(strategy));
                assert_eq!(names(&activation.considered), [""; 0], "{request:?} {strategy:?}");
                assert_eq!(activation.unknown, [], "{request:?}");
            }
        }
    }

    #[test]
    fn a_request_that_is_code_is_taken_as_words() {
        let library = house();
        for request in [
            "^(piano|forte)+[a-z]*$",
            "./src/../piano/main.rs",
            "C:\\piano\\x.txt",
            "https://example.org/piano?x=%20#y",
            "{\"piano\": [null, {}]}",
            "'; DROP TABLE piano; --",
            "钢琴 piano ピアノ пианино \u{200f}פסנתר",
            "pi\u{1b}[0m \0piano\0",
        ] {
            assert_eq!(found(&library, request).first(), Some(&"tune-piano"), "{request}");
        }
    }

    #[test]
    fn a_library_of_none_or_one_skill_answers() {
        let none = library(&[]);
        let one = library(&[("polish-silver", "Polishes silver")]);
        for request in odd_requests() {
            assert_eq!(found(&none, &request), [""; 0]);
            for strategy in Strategy::ALL {
                assert_eq!(names(&activate(&none, &request, &by(strategy)).considered), [""; 0]);
            }
        }
        assert_eq!(found(&one, "polished silver spoons"), ["polish-silver"]);
        assert_eq!(found(&one, "golden spoons"), [""; 0]);
    }

    #[test]
    fn thousands_of_skills_that_say_the_same_stay_apart_by_name() {
        let many: Vec<String> = (0..5000).map(|it| format!("silver-{it:04}")).collect();
        let many: Vec<(&str, &str)> =
            many.iter().map(|it| (it.as_str(), "Polishes a fork")).collect();
        let library = library(&many);
        let first: Vec<&str> = many[..5].iter().map(|it| it.0).collect();
        for strategy in [Strategy::Semantic, Strategy::Keyword] {
            assert_eq!(found_by(&library, "polish my fork", strategy)[..5], first);
            assert_eq!(found_by(&library, "silver-4321", strategy)[0], "silver-4321");
            assert_eq!(found_by(&library, "a fork for @silver-4321", strategy)[0], "silver-4321");
        }
    }
}
