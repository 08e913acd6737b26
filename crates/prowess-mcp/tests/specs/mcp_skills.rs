//! The Skills extension, from the view of a host.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use prowess::{Directory, Options};
use prowess_runtime::{
    Policy,
    policy::{Decision, PolicyRule},
};
use prowess_testing::serving::{McpClient, Serving};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use crate::{
    mcp_messages::{Revision, V2025},
    world::World,
};

/// Returns the URI of the `SKILL.md` of a skill, as every list has it.
fn uri(name: &str) -> String {
    format!("skill://project/{name}/SKILL.md")
}

fn entry(client: &McpClient, uri: &str) -> Json {
    client.request("skills/get", json!({"uri": uri}))["skill"].take()
}

/// Returns the paths of an entry's files within its skill.
fn files(entry: &Json) -> Vec<&str> {
    let folder = entry["uri"].as_str().unwrap().strip_suffix("SKILL.md").unwrap();
    let files = entry["resources"].as_array().unwrap().iter();
    files.map(|it| it["uri"].as_str().unwrap().strip_prefix(folder).unwrap()).collect()
}

/// Returns the bytes of a resource.
fn bytes(client: &McpClient, uri: &str) -> Vec<u8> {
    let read = client.request("resources/read", json!({"uri": uri}));
    let content = &read["contents"][0];
    assert_eq!(content["uri"], uri);
    match content["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => BASE64_STANDARD.decode(content["blob"].as_str().unwrap()).unwrap(),
    }
}

/// Reads every file of an entry, and asserts that it matches the entry.
fn verify(client: &McpClient, entry: &Json) {
    for file in entry["resources"].as_array().unwrap() {
        let bytes = bytes(client, file["uri"].as_str().unwrap());
        assert_eq!(file["digest"], sha256(&bytes), "{file}");
        assert_eq!(file["size"], bytes.len(), "{file}");
    }
}

/// Returns all items of a list, page by page.
fn pages(client: &McpClient, method: &str, params: &Json, items: &str) -> Vec<Vec<Json>> {
    let mut pages = Vec::new();
    let mut params = params.clone();
    loop {
        let mut page = client.request(method, params.clone());
        pages.push(page[items].as_array().unwrap().clone());
        match page["nextCursor"].take() {
            Json::Null => return pages,
            cursor => params["cursor"] = cursor,
        }
    }
}

/// Returns a JSON document that is read as a resource.
fn document(client: &McpClient, uri: &str) -> Json {
    let read = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["contents"][0]["mimeType"], "application/json");
    serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|it| format!("{it:02x}")).collect();
    format!("sha256:{hex}")
}

/// Returns the names of all listed skills.
fn listed(client: &McpClient) -> Vec<String> {
    let skills = pages(client, "skills/list", &json!({}), "skills").concat();
    skills.iter().map(|it| it["frontmatter"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the code and message of an error.
fn refusal(client: &McpClient, method: &str, params: Json) -> (i64, String) {
    let error = client.error(method, params);
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}

/// Returns what is served with one rule.
fn denying(rule: PolicyRule) -> Serving {
    Serving { policy: Policy { rules: vec![rule], ..Policy::default() }, ..Serving::default() }
}

mod both_kinds_of_client_are_served {
    use super::*;

    #[test]
    fn the_extension_is_declared() {
        let world = World::new().skill("one", "a");
        for revision in [V2025, Revision::Stateless] {
            let client = McpClient::with(&world, revision, Serving::default());
            let capabilities = &client.server["capabilities"];
            let extension = &capabilities["extensions"]["io.modelcontextprotocol/skills"];
            assert_eq!(*extension, json!({"directoryRead": true}), "{revision:?}");
            assert!(capabilities["resources"].is_object(), "{revision:?}");
        }
    }

    #[test]
    fn what_only_one_revision_knows_is_told_to_nobody_else() {
        let world = World::new().skill("one", "a");
        let old = McpClient::new(&world);
        let new = McpClient::with(&world, Revision::Stateless, Serving::default());
        for (method, params) in [
            ("skills/list", json!({})),
            ("skills/get", json!({"uri": uri("one")})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": uri("one")})),
            ("resources/directory/read", json!({"uri": "skill://project/one"})),
        ] {
            let mut told = new.request(method, params.clone());
            let result = told.as_object_mut().unwrap();
            assert_eq!(result.remove("resultType"), Some(json!("complete")), "{method}");
            assert_eq!(result.remove("ttlMs"), Some(json!(0)), "{method}");
            assert_eq!(result.remove("cacheScope"), Some(json!("private")), "{method}");
            assert_eq!(told, old.request(method, params), "{method}");
        }
    }

    #[test]
    fn what_is_no_request_of_the_protocol_is_refused_as_such() {
        let world = World::new().skill("one", "a");
        for revision in [V2025, Revision::Stateless] {
            let client = McpClient::with(&world, revision, Serving::default());
            for (method, params) in [
                ("skills/list", json!({"cursor": 1})),
                ("skills/get", json!({})),
                ("skills/get", json!({"uri": null})),
                ("skills/get", json!({"uri": ["skill://project/one/SKILL.md"]})),
                ("resources/directory/read", json!({})),
                ("resources/directory/read", json!({"uri": {}, "cursor": null})),
                ("resources/read", json!({})),
                ("resources/read", json!({"uri": 1})),
                ("tools/list", json!({"cursor": 1})),
                ("prompts/list", json!({"cursor": {}})),
                ("resources/list", json!({"cursor": ["a"]})),
                ("resources/templates/list", json!({"cursor": false})),
            ] {
                let (code, message) = refusal(&client, method, params.clone());
                assert_eq!(code, -32602, "{method} {params}: {message}");
            }
            assert_eq!(refusal(&client, "skills/remove", json!({})).0, -32601);
            let listed = client.ask("skills/list", json!(null));
            assert!(listed["result"]["skills"].is_array(), "{listed}");
        }
    }
}

mod an_entry_tells_all_of_a_skill {
    use super::*;

    #[test]
    fn an_entry_has_the_whole_frontmatter_and_every_file() {
        let text = "---\nname: one\ndescription: a\nmetadata:\n  team: x\nmine: {deep: [true, 1]}\n---\nBody\n";
        let world = World::new()
            .document("one", text)
            .file("skills/one/references/guide.md", "guide")
            .file("skills/one/.hidden", "h")
            .skill_in("skills/one/parts", "inner", "nested");
        let client = McpClient::new(&world);
        let told = entry(&client, &uri("one"));
        assert_eq!(told["uri"], uri("one"));
        assert_eq!(
            told["frontmatter"],
            json!({"name": "one", "description": "a", "metadata": {"team": "x"}, "mine": {"deep": [true, 1]}})
        );
        assert_eq!(
            files(&told),
            ["SKILL.md", ".hidden", "parts/inner/SKILL.md", "references/guide.md"]
        );
        assert_eq!(
            told["resources"][1],
            json!({
                "uri": "skill://project/one/.hidden",
                "digest": "sha256:aaa9402664f1a41f40ebbc52c9993eb66aeb366602958fdfaa283b71e64db123",
                "size": 1
            })
        );
        assert_eq!(client.request("skills/list", json!({})), json!({"skills": [told]}));
    }

    #[test]
    fn what_is_read_is_what_was_told() {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/empty", "")
            .file("skills/one/crlf.txt", "a\r\nb\rc\0\u{feff}")
            .file("skills/one/image.png", [0x89, b'P', 0, 0xFF])
            .file("skills/one/utf16.md", [0xFF, 0xFE, b'a', 0])
            .file("skills/one/my notes (1) %2F? #é🎉.md", "odd");
        let client = McpClient::new(&world);
        let before = entry(&client, &uri("one"));
        assert_eq!(before["resources"].as_array().unwrap().len(), 6);
        verify(&client, &before);
        world.write("skills/one/empty", "no more");
        let after = entry(&client, &uri("one"));
        assert_ne!(before, after);
        verify(&client, &after);
    }

    #[test]
    fn values_are_mapped_to_json_in_one_way() {
        let lines = "date: 2026-01-01\nversion: 1.10\nyes: no\nwide: 18446744073709551615\n\
                     huge: 1e300\nhex: 0x1F\nnothing:\ntext: |\n  a\n  b\nquoted: '1'\n'1.0': ~\n";
        let text = format!("---\nname: one\ndescription: a\n{lines}---\n");
        let world = World::new().document("one", text);
        let client = McpClient::new(&world);
        let expected = "{\"name\":\"one\",\"description\":\"a\",\"date\":\"2026-01-01\",\"version\":1.1,\
                        \"yes\":\"no\",\"wide\":18446744073709551615,\"huge\":1e+300,\"hex\":31,\
                        \"nothing\":null,\"text\":\"a\\nb\\n\",\"quoted\":\"1\",\"1.0\":null}";
        assert_eq!(entry(&client, &uri("one"))["frontmatter"].to_string(), expected);
    }

    #[test]
    fn what_is_not_served_is_not_listed() {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/good.txt", "good")
            .file("skills/one/keys/secret.txt", "denied")
            .file("skills/one/a\\b.txt", "split")
            .sparse("skills/one/large.bin", 11 * 1024 * 1024)
            .file("outside.txt", "outside")
            .link("skills/one/out.txt", "../../outside.txt");
        let denied = world.path("skills/*/secret.txt").display().to_string();
        let rule = PolicyRule { path: Some(denied), ..PolicyRule::new(Decision::Deny) };
        let client = McpClient::with(&world, Revision::Stateless, denying(rule));
        assert_eq!(files(&entry(&client, &uri("one"))), ["SKILL.md", "good.txt"]);
        let folder = json!({"uri": "skill://project/one"});
        let children = client.request("resources/directory/read", folder);
        assert_eq!(children["resources"].as_array().unwrap().len(), 2, "{children}");
        for path in ["keys/secret.txt", "a\\b.txt", "a%5Cb.txt", "large.bin", "out.txt"] {
            let uri = format!("skill://project/one/{path}");
            let (code, message) = refusal(&client, "resources/read", json!({"uri": uri}));
            assert_eq!(code, -32602, "{path}: {message}");
        }
    }

    #[test]
    fn files_are_told_as_they_are_now() {
        let world = World::new().skill("one", "a").file("skills/one/notes.md", "notes");
        let client = McpClient::new(&world);
        assert_eq!(files(&entry(&client, &uri("one"))), ["SKILL.md", "notes.md"]);
        world.remove("skills/one/notes.md");
        world.write("skills/one/other.md", "other");
        let told = entry(&client, &uri("one"));
        assert_eq!(files(&told), ["SKILL.md", "other.md"]);
        verify(&client, &told);
        let folder = json!({"uri": "skill://project/one"});
        let children = client.request("resources/directory/read", folder);
        assert_eq!(children["resources"][1]["name"], "other.md");
        assert_eq!(children["resources"].as_array().unwrap().len(), 2);
    }
}

mod a_skill_that_cannot_be_carried_says_why {
    use super::*;

    #[test]
    fn whatever_a_host_could_not_verify_is_left_to_the_tools() {
        let long = format!("---\nname: long\ndescription: {}\n---\n", "é".repeat(1025));
        let cases: &[(&str, &str, &str)] = &[
            ("repaired", "---\nname: repaired\ndescription: Use: now\n---\n", "is not YAML"),
            (
                "twice",
                "---\nname: twice\ndescription: a\nx: 1\nx: 2\n---\n",
                "`x` appears a second time",
            ),
            ("padded", "---\nname: padded\ndescription: a\n--- \n", "two lines of exactly `---`"),
            (
                "typed",
                "---\nname: typed\ndescription: a\nmetadata:\n  v: 1.0\n---\n",
                "its metadata",
            ),
            (
                "system",
                "---\nname: system\ndescription: a\ncompatibility: [x]\n---\n",
                "its compatibility",
            ),
            ("long", &long, "its description"),
            ("marked", "\u{feff}---\nname: marked\ndescription: a\n---\n", "byte order mark"),
        ];
        let mut world = World::new().skill("good", "a").skill("many", "b").skill("changed", "c");
        for (folder, text, _) in cases {
            world = world.document(folder, text);
        }
        for number in 0..512 {
            world = world.file(format!("skills/many/{number}"), "");
        }
        let world = world.document("odd", "---\nname: Not_Plain\ndescription: a\n---\n");
        let client = McpClient::with(&world, Revision::Stateless, Serving::default());
        world.write("skills/changed/SKILL.md", "---\nname: other\ndescription: c\n---\n");
        assert_eq!(listed(&client), ["good"]);
        let resources = client.request("resources/list", json!({}));
        assert_eq!(resources["resources"].as_array().unwrap().len(), 1, "{resources}");
        let others = [
            ("many", "", "more than 512 files"),
            ("Not_Plain", "", "not valid by the Agent Skills specification"),
            ("changed", "", "`name: changed`"),
        ];
        for (name, _, why) in cases.iter().chain(&others) {
            let (code, message) = refusal(&client, "skills/get", json!({"uri": uri(name)}));
            assert_eq!(code, -32602, "{name}");
            assert!(message.contains(why), "{name}: {message}");
            assert_eq!(refusal(&client, "resources/read", json!({"uri": uri(name)})).0, -32602);
        }
    }

    #[test]
    fn what_needs_an_approval_is_not_told() {
        let text = "---\nname: one\ndescription: a\nrequires-approval: true\n---\nThe body\n";
        let world = World::new().document("one", text).file("skills/one/notes.md", "notes");
        let client = McpClient::with(&world, Revision::Stateless, Serving::default());
        assert_eq!(listed(&client), [""; 0]);
        let (code, message) = refusal(&client, "skills/get", json!({"uri": uri("one")}));
        assert_eq!(code, -32602);
        assert!(message.contains("it needs approval first"), "{message}");
        for path in ["SKILL.md", "notes.md"] {
            let uri = format!("skill://project/one/{path}");
            assert_eq!(refusal(&client, "resources/read", json!({"uri": uri})).0, -32602);
        }
    }

    #[test]
    fn what_is_not_in_use_or_denied_is_not_there() {
        let of = |status| format!("---\nname: {status}\ndescription: a\nstatus: {status}\n---\n");
        let world = World::new()
            .document("draft", of("draft"))
            .document("disabled", of("disabled"))
            .skill("denied", "a");
        let rule =
            PolicyRule { skill: Some("denied".to_owned()), ..PolicyRule::new(Decision::Deny) };
        let client = McpClient::with(&world, Revision::Stateless, denying(rule));
        assert_eq!(listed(&client), [""; 0]);
        for name in ["draft", "disabled", "denied", "none"] {
            let expected = |what: &str| (-32602, format!("no {what} is served at `{}`", uri(name)));
            let params = json!({"uri": uri(name)});
            assert_eq!(refusal(&client, "skills/get", params.clone()), expected("skill"));
            assert_eq!(client.error("skills/get", params.clone())["data"], params);
            assert_eq!(refusal(&client, "resources/read", params), expected("file"));
        }
    }
}

mod skills_are_found_by_their_uris {
    use super::*;

    #[test]
    fn a_scope_or_none_leads_to_a_skill() {
        let world = World::new()
            .skill("one", "a")
            .skill("user", "named like a scope")
            .file("skills/one/references/guide.md", "guide");
        let client = McpClient::new(&world);
        for folder in ["skill://project/one", "skill://one", "SKILL://project/%6fne"] {
            let told = entry(&client, &format!("{folder}/SKILL.md"));
            let folder = folder.replace("SKILL", "skill").replace("%6f", "o");
            assert_eq!(told["uri"], format!("{folder}/SKILL.md"));
            assert_eq!(files(&told), ["SKILL.md", "references/guide.md"]);
            verify(&client, &told);
        }
        let told = entry(&client, "skill://user/SKILL.md");
        assert_eq!(told["frontmatter"]["description"], "named like a scope");
    }

    #[test]
    fn a_hidden_skill_is_reached_by_its_scope() {
        let world = World::new().skill_in(".claude/skills", "one", "of the project").skill_in(
            "home/.claude/skills",
            "one",
            "of the user",
        );
        let directories = [".claude/skills", "~/.claude/skills"].map(Directory::new).to_vec();
        let host = Serving::default().start(Options { directories, ..world.options() });
        let client = McpClient::of(host, V2025);
        let list = client.request("skills/list", json!({}));
        assert_eq!(list["skills"].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(list["skills"][0]["uri"], uri("one"));
        for (scope, description) in [("project", "of the project"), ("user", "of the user")] {
            let told = entry(&client, &format!("skill://{scope}/one/SKILL.md"));
            assert_eq!(told["frontmatter"]["description"], description);
            verify(&client, &told);
        }
    }

    #[test]
    fn resources_are_what_they_are() {
        let text = "---\nname: two\ndescription: b\ndisable-model-invocation: true\n---\n";
        let world = World::new()
            .skill("one", "a")
            .document("two", text)
            .file("skills/one/image.png", [0x89, b'P', 0, 0xFF])
            .file("skills/one/data", [0, 1, 2])
            .file("skills/one/notes", "text");
        let client = McpClient::new(&world);
        let expected = json!([
            {
                "uri": uri("one"), "name": "one", "description": "a", "mimeType": "text/markdown",
                "size": "---\nname: one\ndescription: a\n---\n\n# one\n".len()
            },
            {
                "uri": uri("two"), "name": "two", "description": "b", "mimeType": "text/markdown",
                "size": text.len(), "annotations": {"audience": ["user"]}
            },
        ]);
        assert_eq!(client.request("resources/list", json!({}))["resources"], expected);
        for (path, kind, key, content) in [
            ("image.png", "image/png", "blob", "iVAA/w=="),
            ("data", "application/octet-stream", "blob", "AAEC"),
            ("notes", "text/plain", "text", "text"),
        ] {
            let uri = format!("skill://project/one/{path}");
            let read = client.request("resources/read", json!({"uri": uri}));
            let expected = json!([{"uri": uri, "mimeType": kind, key: content}]);
            assert_eq!(read["contents"], expected);
        }
        let templates = client.request("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "skill://{+path}");
    }

    #[test]
    fn an_index_lists_the_skills_for_frameworks_that_read_one() {
        let hidden = "---\nname: hidden\ndescription: d\ndisable-model-invocation: true\n---\n";
        let world = World::new().skill("one", "Does one.").skill("two", "Does \"two\".");
        let world = world.document("hidden", hidden);
        let client = McpClient::new(&world);
        let index = document(&client, "skill://index.json");
        let schema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
        assert_eq!(index["$schema"], schema);
        let skills = index["skills"].as_array().unwrap();
        let described: Vec<_> = skills.iter().map(|it| (&it["name"], &it["description"])).collect();
        assert_eq!(
            described,
            [(&json!("one"), &json!("Does one.")), (&json!("two"), &json!("Does \"two\"."))]
        );
        for skill in skills {
            assert_eq!(skill["type"], "skill-md");
            let read = bytes(&client, skill["url"].as_str().unwrap());
            assert_eq!(skill["digest"], sha256(&read));
        }
    }

    #[test]
    fn a_manifest_lists_the_files_of_a_skill_for_frameworks_that_read_one() {
        let world = World::new()
            .skill("one", "Does one.")
            .file("skills/one/data/a-b.bin", b"\x00\xff")
            .skill("own", "Has one.")
            .file("skills/own/_manifest", "mine");
        let client = McpClient::new(&world);
        for base in ["skill://one", "skill://project/one"] {
            let manifest = document(&client, &format!("{base}/_manifest"));
            assert_eq!(manifest["skill"], "one");
            let files = manifest["files"].as_array().unwrap();
            let paths: Vec<&str> = files.iter().map(|it| it["path"].as_str().unwrap()).collect();
            assert_eq!(paths, ["SKILL.md", "data/a-b.bin"]);
            for file in files {
                let read = bytes(&client, &format!("{base}/{}", file["path"].as_str().unwrap()));
                assert_eq!(
                    (&file["hash"], &file["size"]),
                    (&json!(sha256(&read)), &json!(read.len()))
                );
            }
        }
        assert_eq!(bytes(&client, "skill://own/_manifest"), b"mine");
        for nothing in
            ["skill://one/data/_manifest", "skill://none/_manifest", "skill://one/index.json"]
        {
            refusal(&client, "resources/read", json!({"uri": nothing}));
        }
    }
}

mod folders_can_be_read {
    use super::*;

    #[test]
    fn a_folder_tells_what_lies_right_in_it() {
        let world = World::new()
            .skill("one", "a")
            .skill("two", "b")
            .file("skills/one/templates/invoice.md", "invoice")
            .file("skills/one/templates/eu/invoice.md", "eu");
        let client = McpClient::new(&world);
        let read = |uri: &str| {
            client.request("resources/directory/read", json!({"uri": uri}))["resources"].take()
        };
        let folder = |uri: &str, name: &str| json!({"uri": uri, "name": name, "mimeType": "inode/directory"});
        let file = |uri: &str, name: &str, size: usize| json!({"uri": uri, "name": name, "mimeType": "text/markdown", "size": size});
        let base = "skill://project/one";
        let templates = format!("{base}/templates");
        assert_eq!(
            read(base),
            json!([file(&uri("one"), "SKILL.md", 40), folder(&templates, "templates")])
        );
        assert_eq!(
            read(&templates),
            json!([
                folder(&format!("{templates}/eu"), "eu"),
                file(&format!("{templates}/invoice.md"), "invoice.md", 7)
            ])
        );
        assert_eq!(
            read("skill://project"),
            json!([folder(base, "one"), folder("skill://project/two", "two")])
        );
        assert_eq!(read("skill://user"), json!([]));
        for uri in [&uri("one"), "skill://project/none", &format!("{base}/none"), "skill://none"] {
            let (code, message) = refusal(&client, "resources/directory/read", json!({"uri": uri}));
            assert_eq!((code, message), (-32602, format!("`{uri}` is not a directory")));
        }
    }
}

mod lists_come_in_pages {
    use super::*;

    #[test]
    fn the_pages_of_a_list_have_every_skill_once() {
        let names: Vec<String> = (0..1100).map(|it| format!("skill-{it:04}")).collect();
        let world = names.iter().fold(World::new(), |world, name| world.skill(name, "a"));
        let client = McpClient::new(&world);
        for (method, params, items, name) in [
            ("skills/list", json!({}), "skills", "/frontmatter/name"),
            ("resources/list", json!({}), "resources", "/name"),
            ("resources/directory/read", json!({"uri": "skill://project"}), "resources", "/name"),
        ] {
            let pages = pages(&client, method, &params, items);
            let sizes: Vec<usize> = pages.iter().map(Vec::len).collect();
            assert_eq!(sizes, [500, 500, 100], "{method}");
            let told: Vec<_> =
                pages.concat().iter().map(|it| it.pointer(name).unwrap().clone()).collect();
            assert_eq!(json!(told), json!(names), "{method}");
        }
    }

    #[test]
    fn a_cursor_that_no_list_gave_is_refused() {
        let names: Vec<String> = (0..501).map(|it| format!("skill-{it:03}")).collect();
        let world = names.iter().fold(World::new(), |world, name| world.skill(name, "a"));
        let client = McpClient::new(&world);
        let own = client.request("skills/list", json!({}))["nextCursor"].take();
        let own = own.as_str().unwrap();
        assert!(!own.contains("skill-"), "{own}");
        for cursor in ["", "!", "AAAA", &own[1..], &format!("{own}=")] {
            let params = json!({"cursor": cursor});
            assert_eq!(refusal(&client, "skills/list", params).0, -32602, "{cursor}");
        }
        for list in ["resources/list", "resources/templates/list", "prompts/list", "tools/list"] {
            assert_eq!(refusal(&client, list, json!({"cursor": own})).0, -32602, "{list}");
        }
        let params = json!({"uri": "skill://project", "cursor": own});
        assert_eq!(refusal(&client, "resources/directory/read", params).0, -32602);
    }
}

mod nothing_outside_is_told {
    use super::*;

    #[test]
    fn no_uri_leads_out_of_a_skill() {
        let world = World::new()
            .skill("one", "a")
            .file("skills/one/notes.md", "notes")
            .file("skills/outside.txt", "top secret")
            .file("outside.txt", "top secret");
        let root = world.path("").to_string_lossy().into_owned();
        let outside = world.path("outside.txt").to_string_lossy().into_owned();
        let long = "a/".repeat(20_000);
        let attacks = [
            "../outside.txt",
            "../../outside.txt",
            "..%2Foutside.txt",
            "%2e%2e/outside.txt",
            "%2E%2E%2Foutside.txt",
            "%252e%252e/outside.txt",
            "..\\outside.txt",
            "..%5Coutside.txt",
            "./notes.md",
            "x/../notes.md",
            "/notes.md",
            "//etc/passwd",
            "notes.md/",
            "notes.md%00",
            "notes.md%00.png",
            "notes.md?x",
            "notes.md#x",
            "%c0%ae%c0%ae/outside.txt",
            "%ff",
            "%",
            "",
            &*outside,
            &*long,
        ];
        let mut uris: Vec<String> =
            attacks.iter().map(|it| format!("skill://project/one/{it}")).collect();
        uris.extend(attacks.iter().map(|it| format!("skill://{it}")));
        uris.extend(
            [
                &format!("file://{outside}"),
                &outside,
                "skill:/project/one/SKILL.md",
                "skill://me@project/one/SKILL.md",
                "skill://project:80/one/SKILL.md",
                "https://project/one/SKILL.md",
                "",
            ]
            .map(str::to_owned),
        );
        for revision in [V2025, Revision::Stateless] {
            let client = McpClient::with(&world, revision, Serving::default());
            let answers = |client: &McpClient| {
                let mut answers = Vec::new();
                for uri in &uris {
                    for method in ["resources/read", "skills/get", "resources/directory/read"] {
                        let (code, message) = refusal(client, method, json!({"uri": uri}));
                        let unknown = revision == V2025 && method == "resources/read";
                        assert!(code == -32602 || (unknown && code == -32002), "{uri}: {code}");
                        let said = message.replace(&outside, "");
                        assert!(!said.contains("secret") && !said.contains(&root), "{message}");
                        assert!(message.len() < 1000);
                        answers.push((code, message));
                    }
                }
                answers
            };
            let with_files = answers(&client);
            world.remove("outside.txt");
            world.remove("skills/outside.txt");
            assert_eq!(answers(&client), with_files);
            world.write("outside.txt", "top secret");
            world.write("skills/outside.txt", "top secret");
            assert_eq!(bytes(&client, "skill://project/one/notes.md"), b"notes");
        }
    }
}
