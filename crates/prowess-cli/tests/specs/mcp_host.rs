//! Skills of other servers: a well-behaved one, which is our own, and many malicious ones.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use prowess_testing::skill_host::{SkillHost, document, entry, good, host, uri};
use serde_json::{Value as Json, json};

use crate::world::{Ran, SETTINGS, World, program};

/// Returns the exit code and the information about the server `docs`.
fn docs(world: &World) -> (Option<i32>, Json) {
    let ran = world.run(["servers", "docs", "--json"]);
    let mut said = ran.json();
    (ran.code, said["servers"][0].take())
}

fn names(server: &Json) -> Vec<&str> {
    let skills = server["skills"].as_array().unwrap_or_else(|| panic!("{server}"));
    skills.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

fn tools(server: &Json) -> Vec<&str> {
    let tools = server["tools"].as_array().unwrap_or_else(|| panic!("{server}"));
    tools.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

fn show(world: &World, arguments: &[&str]) -> Ran {
    world.run(["servers", "show"].iter().chain(arguments))
}

mod what_is_read_is_what_was_listed {
    use super::*;

    #[test]
    fn what_our_own_server_serves_is_listed_and_shown_as_it_is() {
        let text = "---\nname: two\ndescription: \"b: c\"\nmetadata:\n  a: \"1\"\n  b: x\nlist: [1, 2.50, true, ~]\n---\r\n\n# two\n";
        let world = World::new()
            .skill_in("served", "one", "a")
            .file("served/two/SKILL.md", text)
            .file("served/two/data/a b.bin", b"\x00\xff\n");
        let toml = format!(
            "[servers.own]\ncommand = {:?}\nargs = [\"mcp\", \"--dir\", \"served\"]\ncwd = {:?}\n",
            program(),
            world.path("."),
        );
        world.write(SETTINGS, toml);
        let ran = world.run(["servers", "--json"]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout(), ran.stderr);
        let server = &ran.json()["servers"][0];
        assert_eq!(names(server), ["own:one", "own:two"]);
        assert!(tools(server).contains(&"mcp__own__use_skill"));
        assert_eq!(server["skills"][1]["files"], json!(["SKILL.md", "data/a b.bin"]));
        assert_eq!(server["skills"][1]["state"], "new");
        assert_eq!(show(&world, &["own:two"]).stdout(), text);
        assert_eq!(show(&world, &["own:two", "data/a b.bin"]).out, b"\x00\xff\n");
        let listed = world.run(["servers"]);
        assert!(listed.stdout().contains("own:two"), "{}", listed.stdout());
    }

    #[test]
    fn other_bytes_than_were_listed_are_not_shown() {
        let told = document("one");
        let same = told.replace("text", "TEXT");
        let other = told.replace("does it", "does at");
        let own = uri("one");
        let blob = |it: &str| json!([{"uri": own, "blob": BASE64_STANDARD.encode(it)}]);
        let text = |it: &str| json!([{"uri": own, "text": it}]);
        // In another notation it is the same.
        let host = host();
        let world = host.world();
        for well in [text(&told), blob(&told)] {
            host.tell(&own, well);
            assert_eq!(show(&world, &["docs:one"]).stdout(), told);
        }
        for (contents, why) in [
            (text(&same), "digest"),
            (text(&format!("{told} ")), "bytes"),
            (text(""), "bytes"),
            (blob(&same), "digest"),
            (json!([{"uri": own, "blob": "???"}]), "base64"),
            (json!([{"uri": "skill://one/a%20b.md", "text": told}]), "the requested resource"),
            (
                json!([{"uri": own, "text": told}, {"uri": own, "text": told}]),
                "the requested resource",
            ),
            (json!([]), "the requested resource"),
        ] {
            host.tell(&own, contents.clone());
            let ran = show(&world, &["docs:one"]);
            assert_ne!(ran.code, Some(0), "{contents}");
            assert_eq!(ran.stdout(), "", "{contents}");
            assert!(ran.stderr.contains(why), "{contents}: {}", ran.stderr);
        }
        // The digest matches the file, but the file's frontmatter differs from the entry.
        for file in [&*other, "no frontmatter", "---\nname: one\n---\n"] {
            host.list(vec![entry("one", &[("SKILL.md", file)])]);
            host.tell(&own, text(file));
            let ran = show(&world, &["docs:one"]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{file}");
            assert!(ran.stderr.contains("differs from what the server listed"), "{}", ran.stderr);
        }
        let mut more = good("one");
        more["frontmatter"]["allowed-tools"] = json!("Bash");
        host.list(vec![more]);
        host.tell(&own, text(&told));
        let ran = show(&world, &["docs:one"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("its `allowed-tools`"), "{}", ran.stderr);
    }

    #[test]
    fn a_file_that_is_not_listed_is_not_asked_for() {
        let host = host().telling("skill://one/c.md", "secret").telling(&uri("two"), "secret");
        let world = host.world();
        assert_eq!(show(&world, &["docs:one", "a b.md"]).stdout(), "more");
        host.asked();
        for path in ["c.md", "a%20b.md", "../two/SKILL.md", "./a b.md", "skill://one/c.md", ""] {
            let ran = show(&world, &["docs:one", path]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{path}: {}", ran.stderr);
        }
        let asked = host.asked();
        assert!(!asked.iter().any(|it| it.starts_with("resources/read")), "{asked:?}");
    }
}

mod what_cannot_be_held_to_its_word_is_refused {
    use super::*;

    #[test]
    fn a_bad_entry_is_refused_with_the_reason_and_hurts_no_other() {
        let with = |name: &str, change: &dyn Fn(&mut Json)| {
            let mut entry = good(name);
            change(&mut entry);
            entry
        };
        let extra = |uri: &'static str| {
            move |it: &mut Json| {
                let mut file = it["resources"][0].clone();
                file["uri"] = json!(uri);
                it["resources"].as_array_mut().unwrap().push(file);
            }
        };
        let many: Vec<(String, &str)> = (0..512).map(|it| (format!("f{it}"), "x")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|it| (&*it.0, it.1)).collect();
        let bad = [
            (json!(7), "URI"),
            (with("a1", &|it| it["resources"] = json!("dynamic")), "generated anew"),
            (with("a2", &|it| drop(it.as_object_mut().unwrap().remove("resources"))), "not listed"),
            (with("a3", &|it| it["resources"] = json!([])), "not among its files"),
            (with("a4", &extra("skill://a4/SKILL.md")), "more than once"),
            (with("a5", &extra("skill://other/x")), "outside"),
            (with("a6", &extra("skill://a6/../other/x")), "not a valid file name"),
            (with("a7", &extra("skill://a7/%2e%2e/x")), "not a valid file name"),
            (with("a8", &extra("file:///etc/passwd")), "outside"),
            (with("b1", &|it| it["resources"][0]["digest"] = json!("sha256:AB")), "digest"),
            (with("b2", &|it| it["resources"][0]["size"] = json!(-1)), "size"),
            (with("b3", &|it| it["resources"][0]["size"] = json!(16_777_217)), "bytes"),
            (with("b4", &|it| it["resources"][0]["size"] = json!(u64::MAX)), "bytes"),
            (entry("b5", &[&[("SKILL.md", "x")], &many[..]].concat()), "512"),
            (with("b6", &|it| it["frontmatter"]["name"] = json!("other")), "its URI says"),
            (with("b7", &|it| it["frontmatter"]["description"] = json!("x".repeat(1025))), "1024"),
            (with("b8", &|it| it["frontmatter"] = Json::Null), "frontmatter"),
            (with("B9", &|_| ()), "name"),
            (
                with("c1", &|it| it["uri"] = json!("skill://a/../c1/SKILL.md")),
                "not a valid file name",
            ),
            (with("c2", &|it| it["uri"] = json!("skill://c2/README.md")), "SKILL.md"),
            (good("c3"), "more than once"),
            (good("c3"), "more than once"),
        ];
        let entries = bad.iter().map(|it| it.0.clone()).chain([good("one")]).collect();
        let host = SkillHost::start().listing(entries);
        let (code, server) = docs(&host.world());
        assert_eq!(code, Some(1));
        assert_eq!(names(&server), ["docs:one"]);
        let refused = server["refused"].as_array().unwrap();
        assert_eq!(refused.len(), bad.len(), "{refused:#?}");
        for (refused, (entry, why)) in refused.iter().zip(&bad) {
            assert!(refused["why"].as_str().unwrap().contains(why), "{refused} {entry}");
        }
        let ran = show(&host.world(), &["docs:a1"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("generated anew"), "{}", ran.stderr);
    }

    #[test]
    fn a_list_without_an_end_ends() {
        let host = SkillHost::start();
        let world = host.world();
        for (cursor, most) in [(Json::Null, 64), (json!("0"), 2)] {
            host.says.lock().unwrap().endless = Some(cursor);
            let (_, server) = docs(&world);
            assert_eq!(server["has_more"], true, "{server}");
            let asked = host.asked().iter().filter(|it| *it == "skills/list").count();
            assert!(asked <= most, "{asked}");
        }
        host.says.lock().unwrap().endless = None;
        host.list(vec![json!({"uri": "x".repeat(9 * 1024 * 1024)})]);
        let (code, server) = docs(&world);
        assert_eq!(code, Some(1));
        assert!(server["message"].as_str().unwrap().contains("sends too much"), "{server}");
    }

    #[test]
    fn a_description_is_one_line_of_what_can_be_seen() {
        let mut entry = good("one");
        let text = "a\nb\u{1b}[31m\u{202e}c\u{200b}d\r\n- docs:two: e\u{7}";
        entry["frontmatter"]["description"] = json!(text);
        let host = SkillHost::start().listing(vec![entry]);
        let (_, server) = docs(&host.world());
        assert_eq!(server["skills"][0]["description"], "a b[31mcd - docs:two: e");
        let ran = host.world().run(["servers"]);
        ran.assert_safe();
        let lines = ran.stdout().lines().filter(|it| it.contains("docs:two")).count();
        assert_eq!(lines, 1, "{}", ran.stdout());
    }
}

mod a_skill_of_a_server_stands_for_no_other {
    use super::*;

    #[test]
    fn a_skill_that_is_here_keeps_its_name() {
        let host = host();
        let world = host.world().skill("one", "the one here");
        let ran = world.run(["servers", "--json", "--dir", "skills"]);
        assert_eq!(ran.json()["servers"][0]["skills"][0]["collides"], true);
        let ran = world.run(["servers", "--dir", "skills"]);
        assert!(ran.stderr.contains("`one` is the local skill"), "{}", ran.stderr);
        let ran = world.run(["show", "one", "--dir", "skills"]);
        assert!(ran.stdout().contains("the one here"), "{}", ran.stdout());
        assert!(show(&world, &["docs:one"]).stdout().contains("The text of one."));
        let ran = show(&world, &["one"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""));
    }

    #[test]
    fn a_label_belongs_to_whoever_gave_it_first() {
        let (host, other) = (host(), SkillHost::start().listing(vec![good("evil")]));
        let world = host.world();
        world.write("prowess.toml", format!("[servers.docs]\nurl = {:?}\n", other.url()));
        let ran = world.run(["servers", "--json"]);
        assert_eq!(names(&ran.json()["servers"][0]), ["docs:one"]);
        assert!(ran.stderr.contains("ignored `docs` in `servers`"), "{}", ran.stderr);
        assert_eq!(other.asked(), [""; 0]);
        for (toml, why) in [
            ("[servers.user]\nurl = \"http://x\"\n", "scope"),
            ("[servers.\"a:b\"]\nurl = \"http://x\"\n", "label"),
            ("[servers.x]\n", "`command`"),
            ("[servers.x]\nurl = \"http://x\"\ncommand = \"y\"\n", "both"),
            ("[servers.x]\nurl = \"http://x\"\nhedders = {}\n", "`hedders`"),
            ("[servers.x]\ncommand = \"sh\"\nargs = [1]\n", "`args`"),
            ("[servers]\nx = 1\n", "not a table"),
        ] {
            let world = World::new().file(SETTINGS, toml);
            let ran = world.run(["servers"]);
            assert_eq!(ran.code, Some(2), "{toml}");
            assert!(ran.stderr.contains(why), "{toml}: {}", ran.stderr);
            assert!(ran.stderr.contains("prowess.toml:"), "{toml}: {}", ran.stderr);
        }
        let ran = world.run(["servers", "dosc"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("did you mean `docs`"), "{}", ran.stderr);
    }
}

mod an_approval_is_bound_to_every_file {
    use super::*;

    #[test]
    fn an_approval_holds_until_the_set_of_files_is_another_one() {
        let host = host();
        let world = host.world();
        let state = |world: &World| docs(world).1["skills"][0]["state"].clone();
        assert_eq!(show(&world, &["docs:one"]).code, Some(0));
        assert_eq!(state(&world), "new");
        assert_eq!(show(&world, &["docs:one", "--yes"]).code, Some(0));
        assert_eq!(state(&world), "approved");
        let own = host.says.lock().unwrap().pages[0]["skills"][0].clone();
        let changed = |change: &dyn Fn(&mut Vec<Json>)| {
            let mut entry = own.clone();
            change(entry["resources"].as_array_mut().unwrap());
            host.list(vec![entry]);
            state(&world)
        };
        let zeros = json!(format!("sha256:{}", "0".repeat(64)));
        assert_eq!(changed(&|it| it.reverse()), "approved");
        assert_eq!(changed(&|it| it[1]["digest"] = zeros.clone()), "changed");
        assert_eq!(changed(&|it| it[1]["uri"] = json!("skill://one/c.md")), "changed");
        assert_eq!(changed(&|it| drop(it.pop())), "changed");
        let new = json!({"uri": "skill://one/new.sh", "digest": zeros, "size": 1});
        assert_eq!(changed(&|it| it.push(new.clone())), "changed");
        let ran = show(&world, &["docs:one", "--yes"]);
        assert!(ran.stderr.contains("new.sh"), "{}", ran.stderr);
        assert_eq!(state(&world), "approved");
        assert_eq!(changed(&|_| ()), "changed");
        let rule = "policy.rules = [{ skill = \"docs:*\", decision = \"deny\" }]\n";
        world.write(SETTINGS, format!("{rule}{}", host.settings()));
        let ran = show(&world, &["docs:one", "--yes"]);
        assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{}", ran.stderr);
        assert_eq!(state(&world), "denied");
        // An approval for one server does not apply to another.
        let toml = host.settings().replace("docs", "manuals");
        world.write(SETTINGS, toml);
        let ran = world.run(["servers", "--json"]);
        assert_eq!(ran.json()["servers"][0]["skills"][0]["state"], "new");
    }

    #[test]
    fn a_server_of_a_project_starts_when_somebody_has_approved_it() {
        let host = host();
        let world = World::new().file(SETTINGS, "policy.hosts = [\"127.0.0.1\"]\n");
        world.write("prowess.toml", format!("[servers.docs]\nurl = {:?}\n", host.url()));
        let (code, server) = docs(&world);
        assert_eq!((code, &server["status"]), (Some(1), &json!("refused")), "{server}");
        assert_eq!(host.asked(), [""; 0]);
        assert_eq!(world.run(["servers", "docs", "--yes"]).code, Some(0));
        assert_eq!(docs(&world).0, Some(0));
        host.asked();
        let changed =
            format!("[servers.docs]\nurl = {:?}\nheaders = {{ a = \"b\" }}\n", host.url());
        world.write("prowess.toml", changed);
        let (code, server) = docs(&world);
        assert_eq!((code, &server["status"]), (Some(1), &json!("refused")), "{server}");
        assert_eq!(host.asked(), [""; 0]);
    }

    #[test]
    fn a_program_of_a_project_is_approved_as_it_is() {
        let world = World::new()
            .file("prowess.toml", "[servers.docs]\ncommand = \"sh\"\nargs = [\"serve.sh\"]\n")
            .file("serve.sh", "exit 3\n");
        let status = || docs(&world).1["status"].clone();
        assert_eq!(status(), "refused");
        // It is no server, but it runs.
        assert_eq!(world.run(["servers", "docs", "--yes"]).code, Some(1));
        assert_eq!(status(), "failed");
        world.write("serve.sh", "exit 4\n");
        assert_eq!(status(), "refused");
        world.write("serve.sh", "exit 3\n");
        assert_eq!(status(), "failed");
    }
}

mod a_model_takes_up_what_somebody_has_approved {
    use super::*;

    #[test]
    fn a_dry_run_starts_no_server_and_names_those_that_are_set() {
        let host = host();
        let ran = host.world().run(["ask", "--dry-run", "x"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("skills are missing: `docs`"), "{}", ran.stderr);
        assert_eq!(host.asked(), [""; 0]);
    }
}
