//! Skills of other servers: how they are listed, read and offered to models.

use std::sync::Arc;

use prowess_mcp::{client::McpServer, config::ServerSetting};
use prowess_runtime::{
    Authorizer, DenyAll, Outcome, OutcomeStatus, Policy, Tool, Toolbox,
    approval::{ApproveAll, Approver},
    policy::{Decision, PolicyRule},
    skill::{ActiveSkills, RemoteSkills},
    tools::UseSkill,
};
use prowess_testing::{
    skill_host::{SkillHost, document, good, host, uri},
    skill_servers::{local, mcp_launcher, mcp_launcher_of, message, setting},
};
use serde_json::{Value as Json, json};
use tokio::runtime::Runtime;

use crate::world::World;

/// A server `docs` in use, with its skills.
struct Docs {
    runtime: Runtime,
    server: McpServer,
    skills: RemoteSkills,
}

impl Docs {
    fn of(host: &SkillHost) -> Self {
        Self::at(&host.setting())
    }

    fn at(setting: &ServerSetting) -> Self {
        let runtime = Runtime::new().unwrap();
        let launcher = mcp_launcher(local(), Arc::new(ApproveAll));
        let server = runtime.block_on(launcher.connect(setting)).unwrap();
        let skills = runtime.block_on(server.skills()).unwrap();
        Self { runtime, server, skills }
    }

    /// Returns the addresses of its skills.
    fn names(&self) -> Vec<&str> {
        self.skills.skills.iter().map(|it| &*it.address).collect()
    }

    fn tools(&self) -> Vec<String> {
        self.server.tools().iter().map(|it| it.name().to_owned()).collect()
    }

    /// Returns the `SKILL.md` of a skill, or the reason why it cannot be read.
    fn document(&self, name: &str) -> Result<String, String> {
        let skill = self.skills.find(name).ok_or("there is no such skill")?;
        let read = self.runtime.block_on(self.server.document(skill));
        read.map_err(|it| message(&it))
    }

    fn file(&self, name: &str, path: &str) -> Vec<u8> {
        let skill = self.skills.find(name).unwrap();
        self.runtime.block_on(self.server.file(skill, path)).unwrap()
    }
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

mod what_is_read_is_what_was_listed {
    use super::*;

    #[test]
    fn a_server_that_knows_no_handshake_is_asked_at_once() {
        let host = host();
        host.says.lock().unwrap().is_new = true;
        let docs = Docs::of(&host);
        assert_eq!(docs.names(), ["docs:one"]);
        assert_eq!(docs.document("docs:one"), Ok(document("one")));
        assert_eq!(docs.file("docs:one", "a b.md"), b"more");
        host.says.lock().unwrap().files.clear();
        let said = docs.document("docs:one").unwrap_err();
        assert!(said.contains("no such file"), "{said}");
    }

    #[test]
    fn skills_that_only_2026_07_28_has_are_listed() {
        let host = host();
        host.says.lock().unwrap().is_split = true;
        let docs = Docs::of(&host);
        assert_eq!(
            (docs.names(), docs.tools()),
            (vec!["docs:one"], vec!["mcp__docs__skill_2".to_owned()])
        );
        assert_eq!(docs.document("docs:one"), Ok(document("one")));
        assert!(host.asked().contains(&"initialize".to_owned()), "it was not asked by 2025-11-25");

        // A program decides by its first request which of the two it speaks.
        let world = World::new();
        let entry =
            json!({"command": "python3", "args": ["server.py"], "cwd": world.path("served")});
        world.write("served/entry.json", good("one").to_string());
        world.write("served/server.py", TWO_REVISIONS);
        let docs = Docs::at(&setting("docs", &entry));
        assert_eq!(
            (docs.names(), docs.tools()),
            (vec!["docs:one"], vec!["mcp__docs__add".to_owned()])
        );
        // A server that knows only the older revision gets requests of that.
        let older = TWO_REVISIONS.replace("'2026-07-28' in line", "False");
        world.write("served/server.py", older);
        let docs = Docs::at(&setting("docs", &entry));
        assert_eq!((docs.names(), docs.tools()), (vec![], vec!["mcp__docs__add".to_owned()]));
    }

    #[test]
    fn nothing_is_read_ahead_of_need() {
        let host = host();
        let docs = Docs::of(&host);
        let asked = host.asked();
        assert!(asked.contains(&"skills/list".to_owned()), "{asked:?}");
        assert!(!asked.iter().any(|it| it.starts_with("resources/")), "{asked:?}");
        docs.document("docs:one").unwrap();
        assert_eq!(host.asked(), ["resources/read skill://one/SKILL.md"]);
    }
}

mod a_skill_of_a_server_stands_for_no_other {
    use super::*;

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
        let entries = vec![at("a"), at("b")];
        let host = SkillHost::start().listing(entries).telling("skill://b/one/SKILL.md", &told);
        let docs = Docs::of(&host);
        assert_eq!(docs.names(), ["docs:skill://a/one", "docs:skill://b/one"]);
        assert!(docs.document("docs:one").is_err());
        assert_eq!(docs.document("docs:skill://b/one"), Ok(told));
    }
}

mod a_model_takes_up_what_somebody_has_approved {
    use super::*;

    /// Calls the tool for the skills of the host, one input after the other.
    fn called(
        host: &SkillHost,
        approver: Arc<dyn Approver>,
        inputs: &[Json],
    ) -> (String, Vec<Outcome>) {
        let denied =
            PolicyRule { skill: Some("docs:denied".to_owned()), ..PolicyRule::new(Decision::Deny) };
        let policy = Policy { rules: vec![denied], ..local() };
        let authorizer = Arc::new(Authorizer::new(policy, approver));
        let toolbox = Toolbox::new(authorizer.clone());
        let launcher = mcp_launcher_of(authorizer);
        Runtime::new().unwrap().block_on(async {
            let server = launcher.connect(&host.setting()).await.unwrap();
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
        let active = Arc::new(ActiveSkills::new(Arc::new(Arc::new(World::new().load()))));
        let none =
            Runtime::new().unwrap().block_on(UseSkill { active }.call(json!({"name": "docs:one"})));
        assert_eq!(none.status, NotFound, "{none:?}");
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
    fn more_skills_than_can_be_told_are_found() {
        let mut entries: Vec<Json> = (0..400).map(|it| good(&format!("n{it}"))).collect();
        entries[399]["frontmatter"]["description"] = json!("Waters the plants of the office");
        let host = SkillHost::start().listing(entries);
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
        let host = SkillHost::start().listing(vec![hidden, good("one"), good("denied")]);
        let inputs = ["docs:hidden", &uri("hidden"), "docs:denied", "denied"];
        let inputs = inputs.map(|it| json!({ "name": it }));
        let (tool, outcomes) = called(&host, Arc::new(ApproveAll), &inputs);
        assert!(tool.contains("docs:one"), "{tool}");
        assert!(!tool.contains("hidden") && !tool.contains("denied"), "{tool}");
        assert!(outcomes.iter().all(|it| it.status == OutcomeStatus::NotFound), "{outcomes:?}");
        assert_eq!(Docs::of(&host).names(), ["docs:hidden", "docs:one", "docs:denied"]);
    }
}
