//! Skills of other servers: a well-behaved one, which is our own, and many malicious ones.

use std::{
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use prowess::Library;
use prowess_agent::{
    Agent, EventKind, Middleware, ScriptedModel, Servers, Session, ToolLoop, Turn,
};
use prowess_cli::settings::{Config, Places};
use prowess_mcp::{client::McpLauncher, config::ServerSetting};
use prowess_runtime::{
    Authorizer, DenyAll, Launcher, Outcome, OutcomeStatus, Policy, Sandbox, Tool, Toolbox,
    approval::{ApproveAll, Approver},
    policy::{Decision, PolicyRule},
    sandbox::{RunLimits, SandboxLevel},
};
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;

use crate::{
    server::{Server as Listener, answer},
    world::{Ran, World, program},
};

/// The settings of the user.
const SETTINGS: &str = "home/.config/prowess/prowess.toml";

/// A server whose messages a test decides.
struct Host {
    listener: Listener,
    says: Arc<Mutex<Says>>,
}

/// The messages of a server: its lists, and the content of URIs.
#[derive(Default)]
struct Says {
    /// The answer to `skills/list`, by the cursor.
    pages: Vec<Json>,
    endless: Option<Json>,
    files: Vec<(String, Json)>,
    /// Whether it knows only 2026-07-28.
    is_new: bool,
    /// Whether it knows both revisions, and offers skills only in 2026-07-28, as FastMCP does.
    is_split: bool,
    /// The requests it got: methods, with the URI if there is one.
    asked: Vec<String>,
}

impl Host {
    fn new() -> Self {
        let says = Arc::new(Mutex::new(Says::default()));
        let own = says.clone();
        let listener = Listener::new(move |heard, client| {
            if !heard.line.starts_with("POST") {
                return client.write_all(answer("405 Method Not Allowed", "", "").as_bytes());
            }
            let message: Json = serde_json::from_str(&heard.body).unwrap();
            let method = message["method"].as_str().unwrap_or_default();
            let mut own = own.lock().unwrap();
            let Some(result) = own.answer(method, &message["params"]) else {
                return client.write_all(answer("202 Accepted", "", "").as_bytes());
            };
            let is_new = own.is_new || own.is_split && is_modern(&message["params"]);
            let session = if is_new { "" } else { "mcp-session-id: s\r\n" };
            let head = format!("content-type: application/json\r\n{session}");
            let mut body = json!({"jsonrpc": "2.0", "id": message["id"]});
            let mut status = "200 OK";
            match result {
                Ok(result) => body["result"] = result,
                Err(error) => {
                    body["error"] = json!({"code": -32602, "message": error});
                    status = if is_new { "400 Bad Request" } else { status };
                }
            }
            client.write_all(answer(status, &head, &body.to_string()).as_bytes())
        });
        Self { listener, says }
    }

    /// Lists these entries on one page.
    fn listing(self, entries: Vec<Json>) -> Self {
        self.list(entries);
        self
    }

    fn list(&self, entries: Vec<Json>) {
        self.says.lock().unwrap().pages = vec![json!({ "skills": entries })];
    }

    /// Answers a URI with this text.
    fn telling(self, uri: &str, text: &str) -> Self {
        self.tell(uri, json!([{"uri": uri, "text": text}]));
        self
    }

    fn tell(&self, uri: &str, contents: Json) {
        let files = &mut self.says.lock().unwrap().files;
        files.retain(|it| it.0 != uri);
        files.push((uri.to_owned(), contents));
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.says.lock().unwrap().asked)
    }

    fn url(&self) -> String {
        self.listener.url("/mcp")
    }

    /// Returns the settings of a user with this server.
    fn settings(&self) -> String {
        let url = self.url();
        format!("policy.hosts = [\"127.0.0.1\"]\n[servers.docs]\nurl = \"{url}\"\n")
    }

    /// Returns a world whose user has this server.
    fn world(&self) -> World {
        World::new().file(SETTINGS, self.settings())
    }
}

impl Says {
    fn answer(&mut self, method: &str, params: &Json) -> Option<Result<Json, String>> {
        let uri = params["uri"].as_str().unwrap_or_default();
        self.asked.push(format!("{method} {uri}").trim_end().to_owned());
        let is_modern = is_modern(params);
        if self.is_new && !is_modern {
            return Some(Err("nobody says which revision is spoken".to_owned()));
        }
        if self.is_split && !is_modern && method.starts_with("skills/") {
            return Some(Err("not available at protocol version '2025-11-25'".to_owned()));
        }
        let result = self.result(method, params, uri)?;
        Some(result.map(|mut it| {
            if self.is_split && !is_modern {
                it["capabilities"].as_object_mut().map(|it| it.remove("extensions"));
            }
            if self.is_new || self.is_split && is_modern {
                it["resultType"] = json!("complete");
                (it["ttlMs"], it["cacheScope"]) = (json!(0), json!("private"));
                it["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "x"}});
            }
            it
        }))
    }

    fn result(&self, method: &str, params: &Json, uri: &str) -> Option<Result<Json, String>> {
        Some(Ok(match method {
            "initialize" | "server/discover" => json!({
                "protocolVersion": params["protocolVersion"],
                "supportedVersions": ["2026-07-28"],
                "capabilities": {
                    "tools": {}, "resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}},
                },
                "serverInfo": {"name": "trusted", "version": "1"},
            }),
            "tools/list" => {
                json!({"tools": [{"name": "skill", "inputSchema": {"type": "object"}}]})
            }
            "skills/list" => {
                let page = params["cursor"].as_str().map_or(0, |it| it.parse().unwrap());
                match &self.endless {
                    Some(cursor) => {
                        let next = match cursor {
                            Json::Null => json!((page + 1).to_string()),
                            cursor => cursor.clone(),
                        };
                        json!({"skills": [good(&format!("n{page}"))], "nextCursor": next})
                    }
                    None => self.pages[page].clone(),
                }
            }
            "skills/get" => {
                let skills = self.pages.iter().flat_map(|it| it["skills"].as_array().unwrap());
                match { skills }.find(|it| it["uri"] == uri) {
                    Some(skill) => json!({ "skill": skill }),
                    None => return Some(Err("no such skill".to_owned())),
                }
            }
            "resources/read" => match self.files.iter().find(|it| it.0 == uri) {
                Some((_, contents)) => json!({ "contents": contents }),
                None => return Some(Err("no such file".to_owned())),
            },
            _ => return None,
        }))
    }
}

/// Returns whether a request is one of 2026-07-28.
fn is_modern(params: &Json) -> bool {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
}

/// Returns the `SKILL.md` of a skill.
fn document(name: &str) -> String {
    format!("---\nname: {name}\ndescription: does it\n---\n\nThe text of {name}.\n")
}

fn uri(name: &str) -> String {
    format!("skill://{name}/SKILL.md")
}

/// Returns an entry for files with these contents.
fn entry(name: &str, files: &[(&str, &str)]) -> Json {
    let resources: Vec<Json> = files
        .iter()
        .map(|(path, text)| {
            let digest: String = Sha256::digest(text).iter().map(|it| format!("{it:02x}")).collect();
            json!({"uri": format!("skill://{name}/{path}"), "digest": format!("sha256:{digest}"), "size": text.len()})
        })
        .collect();
    json!({"uri": uri(name), "frontmatter": {"name": name, "description": "does it"}, "resources": resources})
}

/// Returns the entry of a valid skill.
fn good(name: &str) -> Json {
    entry(name, &[("SKILL.md", &document(name))])
}

/// A program that speaks the revision of its first request, and offers skills only in the newer
/// one.
const TWO_REVISIONS: &str = r#"import json, sys
entry = json.load(open('entry.json'))
modern = None
for line in sys.stdin:
    asked = json.loads(line)
    method, own = asked['method'], '2026-07-28' in line
    modern = own if modern is None else modern
    result = None
    if modern == own:
        extensions = {'extensions': {'io.modelcontextprotocol/skills': {}}} if modern else {}
        info = {'capabilities': {'tools': {}, 'resources': {}, **extensions}, 'serverInfo': {'name': 'x', 'version': '1'}}
        result = {
            'tools/list': {'tools': [{'name': 'add', 'inputSchema': {'type': 'object'}}]},
            **({'server/discover': {**info, 'supportedVersions': ['2026-07-28']}, 'skills/list': {'skills': [entry]}} if modern
               else {'initialize': {**info, 'protocolVersion': '2025-11-25'}}),
        }.get(method)
    said = {'error': {'code': -32601, 'message': 'no such method'}} if result is None else {'result': {**result, **(
        {'resultType': 'complete', 'ttlMs': 0, 'cacheScope': 'private', '_meta': {'a/b': 1}} if modern else {})}}
    if 'id' in asked:
        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **said}), flush=True)
"#;

/// Returns a host with one good skill of two files.
fn host() -> Host {
    let files = [("SKILL.md", &*document("one")), ("a b.md", "more")];
    let mut entry = entry("one", &files);
    entry["resources"][1]["uri"] = json!("skill://one/a%20b.md");
    Host::new()
        .listing(vec![entry])
        .telling(&uri("one"), &document("one"))
        .telling("skill://one/a%20b.md", "more")
}

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
    fn a_server_that_knows_no_handshake_is_asked_at_once() {
        let host = host();
        host.says.lock().unwrap().is_new = true;
        let world = host.world();
        let (code, server) = docs(&world);
        assert_eq!((code, names(&server)), (Some(0), vec!["docs:one"]), "{server}");
        assert_eq!(show(&world, &["docs:one"]).stdout(), document("one"));
        assert_eq!(show(&world, &["docs:one", "a b.md"]).stdout(), "more");
        host.says.lock().unwrap().files.clear();
        let ran = show(&world, &["docs:one"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("no such file"), "{}", ran.stderr);
    }

    #[test]
    fn skills_that_only_2026_07_28_has_are_listed() {
        let host = host();
        host.says.lock().unwrap().is_split = true;
        let world = host.world();
        let (code, server) = docs(&world);
        assert_eq!((code, names(&server)), (Some(0), vec!["docs:one"]), "{server}");
        assert_eq!(tools(&server), ["mcp__docs__skill_2"]);
        assert_eq!(show(&world, &["docs:one"]).stdout(), document("one"));
        assert!(host.asked().contains(&"initialize".to_owned()), "it was not asked by 2025-11-25");

        // A program decides by its first request which of the two it speaks.
        let world = World::new();
        let toml = format!(
            "[servers.docs]\ncommand = \"python3\"\nargs = [\"server.py\"]\ncwd = {:?}\n",
            world.path("served"),
        );
        world.write(SETTINGS, toml);
        world.write("served/entry.json", good("one").to_string());
        world.write("served/server.py", TWO_REVISIONS);
        let (code, server) = docs(&world);
        assert_eq!((code, names(&server)), (Some(0), vec!["docs:one"]), "{server}");
        assert_eq!(tools(&server), ["mcp__docs__add"]);
        // A server that knows only the older revision gets requests of that.
        let older = TWO_REVISIONS.replace("'2026-07-28' in line", "False");
        world.write("served/server.py", older);
        let (code, server) = docs(&world);
        assert_eq!((code, tools(&server)), (Some(0), vec!["mcp__docs__add"]), "{server}");
        assert_eq!(server["skills"], json!([]), "{server}");
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
            (json!([{"uri": "skill://one/a%20b.md", "text": told}]), "something else"),
            (json!([{"uri": own, "text": told}, {"uri": own, "text": told}]), "something else"),
            (json!([]), "something else"),
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
            assert!(ran.stderr.contains("is not what the server listed"), "{}", ran.stderr);
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

    #[test]
    fn nothing_is_read_ahead_of_need() {
        let host = host();
        let world = host.world();
        assert_eq!(docs(&world).0, Some(0));
        let asked = host.asked();
        assert!(asked.contains(&"skills/list".to_owned()), "{asked:?}");
        assert!(!asked.iter().any(|it| it.starts_with("resources/")), "{asked:?}");
        assert_eq!(show(&world, &["docs:one"]).code, Some(0));
        let asked = host.asked();
        let read: Vec<&String> = asked.iter().filter(|it| it.starts_with("resources/")).collect();
        assert_eq!(read, ["resources/read skill://one/SKILL.md"]);
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
        let host = Host::new().listing(entries);
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
        let host = Host::new();
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
        let host = Host::new().listing(vec![entry]);
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
    fn skills_of_one_name_are_told_from_each_other() {
        let at = |place: &str| {
            let mut entry = good("one");
            let uri = format!("skill://{place}/one/SKILL.md");
            entry["resources"][0]["uri"] = json!(uri);
            entry["uri"] = json!(uri);
            entry
        };
        let told = document("one");
        let host =
            Host::new().listing(vec![at("a"), at("b")]).telling("skill://b/one/SKILL.md", &told);
        let world = host.world();
        let (code, server) = docs(&world);
        assert_eq!(code, Some(0));
        assert_eq!(names(&server), ["docs:skill://a/one", "docs:skill://b/one"]);
        assert_eq!(show(&world, &["docs:one"]).code, Some(1));
        assert_eq!(show(&world, &["docs:skill://b/one"]).stdout(), told);
    }

    #[test]
    fn a_label_belongs_to_whoever_gave_it_first() {
        let (host, other) = (host(), Host::new().listing(vec![good("evil")]));
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

    /// Returns the configured servers, and their launcher.
    fn made(
        settings: &str,
        approver: Arc<dyn Approver>,
    ) -> (Vec<ServerSetting>, McpLauncher, Toolbox) {
        let world = World::new().file(SETTINGS, settings);
        let places = Places { only: Some(world.path(SETTINGS)), ..Places::default() };
        let config = Config::load(&places).unwrap();
        let denied =
            PolicyRule { skill: Some("docs:denied".to_owned()), ..PolicyRule::new(Decision::Deny) };
        let hosts = Some(vec!["127.0.0.1".to_owned()]);
        let policy = Policy { hosts, rules: vec![denied], ..Policy::default() };
        let authorizer = Arc::new(Authorizer::new(policy, approver));
        let sandbox = Sandbox::new(Launcher::program(program()), SandboxLevel::Landlock);
        let starter = McpLauncher::new(authorizer.clone(), sandbox, RunLimits::default());
        (config.servers.value.0, starter, Toolbox::new(authorizer))
    }

    /// Calls the tool for the skills of the host, one input after the other.
    fn called(host: &Host, approver: Arc<dyn Approver>, inputs: &[Json]) -> (String, Vec<Outcome>) {
        let (set, starter, toolbox) = made(&host.settings(), approver);
        Runtime::new().unwrap().block_on(async {
            let server = starter.connect(&set[0]).await.unwrap();
            let tool: Arc<dyn Tool> = server.skill_tool(server.skills().await.unwrap());
            host.asked();
            let mut outcomes = Vec::new();
            for input in inputs {
                outcomes.push(toolbox.call_tool(&tool, input.clone()).await);
            }
            assert_eq!(server.tools()[0].name(), "mcp__docs__skill_2");
            (format!("{} {}", tool.name(), tool.description()), outcomes)
        })
    }

    #[test]
    fn a_skill_is_taken_up_by_the_tool_of_its_server_alone() {
        let host = host();
        let inputs = [
            json!({"name": "docs:one", "path": "a b.md"}),
            json!({"name": "docs:one"}),
            json!({"name": "one", "path": "a b.md"}),
            json!({"name": "one", "path": "c.md"}),
            json!({"name": "other"}),
        ];
        let (tool, outcomes) = called(&host, Arc::new(ApproveAll), &inputs);
        assert!(tool.starts_with("mcp__docs__skill "), "{tool}");
        assert!(tool.contains("- docs:one: does it"), "{tool}");
        let statuses: Vec<OutcomeStatus> = outcomes.iter().map(|it| it.status).collect();
        use OutcomeStatus::{NotFound, Ok, Refused};
        assert_eq!(statuses, [Refused, Ok, Ok, NotFound, NotFound]);
        let told = outcomes[1].output.as_ref().unwrap();
        assert_eq!(told["name"], "docs:one");
        assert!(told["origin"].as_str().unwrap().contains("`docs` wrote this"), "{told}");
        assert_eq!(told["document"], document("one"));
        assert_eq!(told["files"], json!(["a b.md"]));
        assert_eq!(outcomes[2].output.as_ref().unwrap()["content"], "more");
        let ran = host.world().run(["tool", "use_skill", r#"{"name": "docs:one"}"#, "--yes"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout());
        let none = Library::load(&World::new().options()).unwrap();
        assert!(none.get("docs:one").is_none());
    }

    #[test]
    fn without_an_approval_the_model_is_told_nothing_of_it() {
        let take = json!({"name": "docs:one"});
        let read = json!({"name": "docs:one", "path": "a b.md"});
        let host = host();
        let (_, outcomes) = called(&host, Arc::new(DenyAll), &[take.clone(), read.clone()]);
        assert!(outcomes.iter().all(|it| it.status == OutcomeStatus::Refused), "{outcomes:?}");
        assert!(outcomes[0].hint.as_ref().unwrap().contains("prowess servers show docs:one --yes"));
        assert_eq!(host.asked(), [""; 0]);
        host.tell(&uri("one"), json!([{"uri": uri("one"), "text": "another text"}]));
        let (_, outcomes) = called(&host, Arc::new(ApproveAll), &[take, read]);
        assert!(outcomes.iter().all(|it| it.status == OutcomeStatus::Refused), "{outcomes:?}");
        assert!(!format!("{outcomes:?}").contains("another text"));
    }

    #[test]
    fn an_agent_has_the_servers_that_are_set_from_its_first_request_on() {
        let host = host();
        let mut entries = vec![host.says.lock().unwrap().pages[0]["skills"][0].clone()];
        entries.push(json!({"uri": "skill://bad/SKILL.md"}));
        host.list(entries);
        let settings = format!("{}[servers.gone]\ncommand = \"true\"\n", host.settings());
        let (set, starter, toolbox) = made(&settings, Arc::new(ApproveAll));
        let model = ScriptedModel::new()
            .calls("mcp__docs__skill", json!({"name": "docs:one"}))
            .says("done");
        let model = Arc::new(model);
        let provider = Arc::new(Arc::new(World::new().load()));
        let events = Arc::new(Mutex::new(Vec::new()));
        let agent = Agent::new(model.clone())
            .with(Watches(events.clone()))
            .with(ToolLoop::new(Arc::new(toolbox)))
            .with(Servers::new(starter, provider).with_set(set));
        let session = Session::new("s");
        let answer = Runtime::new().unwrap().block_on(agent.ask(&session, "x")).unwrap();
        assert_eq!(answer.message.content, "done");
        let asked = model.asked();
        let offered: Vec<&str> = asked[0].tools.iter().map(|it| &*it.name).collect();
        assert_eq!(offered, ["mcp__docs__skill_2", "mcp__docs__skill"]);
        let told = &asked[1].messages.last().unwrap().content;
        assert!(told.contains("The text of one.") && told.contains("`docs` wrote this"), "{told}");
        let events = events.lock().unwrap().join("\n");
        assert!(events.contains("skill://bad/SKILL.md` is refused"), "{events}");
        assert!(events.contains("gone failed"), "{events}");
    }

    #[test]
    fn a_dry_run_starts_no_server_and_names_those_that_are_set() {
        let host = host();
        let ran = host.world().run(["ask", "--dry-run", "x"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("skills are missing: `docs`"), "{}", ran.stderr);
        assert_eq!(host.asked(), [""; 0]);
    }

    #[test]
    fn what_fits_a_request_is_told_before_it() {
        let about = |name: &str, description: &str| {
            let mut entry = good(name);
            entry["frontmatter"]["description"] = json!(description);
            entry
        };
        let host = Host::new().listing(vec![
            about("refunds", "Refunds an order of a customer, and tells the customer"),
            about("invoices", "Writes the invoice of a month"),
        ]);
        let (set, starter, toolbox) = made(&host.settings(), Arc::new(ApproveAll));
        let model = Arc::new(ScriptedModel::new().says("1").says("2"));
        let agent = Agent::new(model.clone())
            .with(ToolLoop::new(Arc::new(toolbox)))
            .with(Servers::new(starter, Arc::new(Arc::new(World::new().load()))).with_set(set));
        let session = Session::new("s");
        let runtime = Runtime::new().unwrap();
        for request in ["refund the order of this customer", "what time is it?"] {
            runtime.block_on(agent.ask(&session, request)).unwrap();
        }
        let asked = model.asked();
        let [.., context, request] = &asked[0].messages[..] else { panic!("{asked:?}") };
        assert_eq!(request.content, "refund the order of this customer");
        assert!(context.content.contains("- `docs:refunds`, by `mcp__docs__skill`: Refunds an"));
        assert!(!context.content.contains("invoices"), "{}", context.content);
        let told = asked[1].messages.iter().any(|it| it.content.contains("docs:refunds"));
        assert!(!told, "{:?}", asked[1].messages);
        assert!(!host.asked().iter().any(|it| it.starts_with("resources/")));
    }

    #[test]
    fn more_skills_than_can_be_told_are_found() {
        let mut entries: Vec<Json> = (0..400).map(|it| good(&format!("n{it}"))).collect();
        entries[399]["frontmatter"]["description"] = json!("Waters the plants of the office");
        let host = Host::new().listing(entries);
        let inputs = [
            json!({"query": "water my plants"}),
            json!({"query": "a", "name": "n1"}),
            json!({}),
            json!({"query": 1}),
        ];
        let (tool, outcomes) = called(&host, Arc::new(DenyAll), &inputs);
        assert!(tool.len() < 10_000 && tool.contains("- docs:n0: does it\n"), "{tool}");
        assert!(!tool.contains("docs:n399") && tool.ends_with(" more, which `query` finds"));
        let found = outcomes[0].output.as_ref().unwrap();
        assert_eq!(
            (&found["skills"][0]["name"], &found["total"]),
            (&json!("docs:n399"), &json!(400))
        );
        assert_eq!(found["skills"][0]["description"], "Waters the plants of the office");
        assert!(outcomes[1..].iter().all(|it| it.status == OutcomeStatus::Invalid), "{outcomes:?}");
        assert_eq!(host.asked(), [""; 0]);
        // If all are listed, there is nothing to search for.
        let (tool, outcomes) = called(&super::host(), Arc::new(DenyAll), &inputs);
        assert!(!tool.contains("query"), "{tool}");
        assert_eq!(outcomes[0].status, OutcomeStatus::Invalid);
    }

    #[test]
    fn what_is_denied_or_for_people_alone_is_not_there_for_models() {
        let mut hidden = good("hidden");
        hidden["frontmatter"]["disable-model-invocation"] = json!(true);
        let host = Host::new().listing(vec![hidden, good("one"), good("denied")]);
        let inputs = ["docs:hidden", &uri("hidden"), "docs:denied", "denied"];
        let inputs = inputs.map(|it| json!({ "name": it }));
        let (tool, outcomes) = called(&host, Arc::new(ApproveAll), &inputs);
        assert!(tool.contains("docs:one"), "{tool}");
        assert!(!tool.contains("hidden") && !tool.contains("denied"), "{tool}");
        assert!(outcomes.iter().all(|it| it.status == OutcomeStatus::NotFound), "{outcomes:?}");
        let (_, server) = docs(&host.world());
        assert_eq!(names(&server), ["docs:hidden", "docs:one", "docs:denied"]);
    }

    #[test]
    fn skills_are_listed_again_when_the_server_says_so() {
        let world = World::new().skill_in("served", "one", "a");
        let settings = format!(
            "[servers.own]\ncommand = {:?}\nargs = [\"mcp\", \"--watch\", \"--dir\", \"served\"]\ncwd = {:?}\n",
            program(),
            world.path("."),
        );
        let (set, starter, toolbox) = made(&settings, Arc::new(ApproveAll));
        let model = (0..100).fold(ScriptedModel::new(), |it, _| it.says("well"));
        let model = Arc::new(model);
        let agent = Agent::new(model.clone())
            .with(ToolLoop::new(Arc::new(toolbox)))
            .with(Servers::new(starter, Arc::new(Arc::new(World::new().load()))).with_set(set));
        let session = Session::new("s");
        let runtime = Runtime::new().unwrap();
        let told = || {
            runtime.block_on(agent.ask(&session, "x")).unwrap();
            let tools = model.asked().pop().unwrap().tools;
            let tool = tools.into_iter().find(|it| it.name == "mcp__own__skill");
            tool.map(|it| it.description).unwrap_or_default()
        };
        let wait_for = |is_so: &dyn Fn(&str) -> bool| {
            (0..40).any(|_| {
                is_so(&told()) || {
                    thread::sleep(Duration::from_millis(250));
                    false
                }
            })
        };
        assert!(told().contains("own:one"));
        world.write("served/two/SKILL.md", document("two"));
        assert!(wait_for(&|it| it.contains("own:one") && it.contains("own:two: does it")));
        world.remove("served/one/SKILL.md");
        assert!(wait_for(&|it| !it.contains("own:one") && it.contains("own:two")));
        world.remove("served/two/SKILL.md");
        assert!(wait_for(&str::is_empty));
    }

    /// Records servers and warnings.
    #[derive(Debug)]
    struct Watches(Arc<Mutex<Vec<String>>>);

    impl Middleware for Watches {
        fn name(&self) -> &str {
            "watches"
        }

        fn note(&self, _: &Turn, what: &EventKind) {
            let line = match what {
                EventKind::Warned { message } => message.clone(),
                EventKind::Server { server, state, .. } => format!("{server} {state}"),
                _ => return,
            };
            self.0.lock().unwrap().push(line);
        }
    }
}
