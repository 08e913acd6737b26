//! Skills of other servers in an agent: what a model is offered and told of them.

use std::sync::{Arc, Mutex};

use prowess_agent::{
    Agent, EventKind, Middleware, ScriptedModel, Servers, Session, ToolLoop, Turn,
};
use prowess_mcp::config::ServerSetting;
use prowess_runtime::{Authorizer, Toolbox, approval::ApproveAll};
use prowess_testing::{
    serving::{McpHost, Serving},
    skill_host::{SkillHost, document, good, host},
    skill_servers::{local, mcp_launcher_of, setting},
};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::world::{World, until};

mod a_model_takes_up_what_somebody_has_approved {
    use super::*;

    /// Returns an agent with these servers, and what happens in it.
    fn agent(model: &Arc<ScriptedModel>, set: Vec<ServerSetting>) -> (Agent, Happened) {
        let authorizer = Arc::new(Authorizer::new(local(), Arc::new(ApproveAll)));
        let toolbox = Toolbox::new(authorizer.clone());
        let provider = Arc::new(Arc::new(World::new().load()));
        let happened = Happened::default();
        let agent = Agent::new(model.clone())
            .with(Watches(happened.clone()))
            .with(ToolLoop::new(Arc::new(toolbox)))
            .with(Servers::new(mcp_launcher_of(authorizer), provider).with_set(set));
        (agent, happened)
    }

    #[test]
    fn an_agent_has_the_servers_that_are_set_from_its_first_request_on() {
        let host = host();
        let mut entries = vec![host.says.lock().unwrap().pages[0]["skills"][0].clone()];
        entries.push(json!({"uri": "skill://bad/SKILL.md"}));
        host.list(entries);
        let gone = setting("gone", &json!({"command": "true"}));
        let model = ScriptedModel::new()
            .calls("mcp__docs__skill", json!({"name": "docs:one"}))
            .says("done");
        let model = Arc::new(model);
        let (agent, happened) = agent(&model, vec![host.setting(), gone]);
        let session = Session::new("s");
        let answer = Runtime::new().unwrap().block_on(agent.ask(&session, "x")).unwrap();
        assert_eq!(answer.message.content, "done");
        let asked = model.asked();
        let offered: Vec<&str> = asked[0].tools.iter().map(|it| &*it.name).collect();
        assert_eq!(offered, ["mcp__docs__skill_2", "mcp__docs__skill"]);
        let told = &asked[1].messages.last().unwrap().content;
        assert!(told.contains("The text of one.") && told.contains("`docs` wrote this"), "{told}");
        let happened = happened.lock().unwrap().join("\n");
        assert!(happened.contains("skill://bad/SKILL.md` is refused"), "{happened}");
        assert!(happened.contains("gone failed"), "{happened}");
    }

    #[test]
    fn what_fits_a_request_is_told_before_it() {
        let about = |name: &str, description: &str| {
            let mut entry = good(name);
            entry["frontmatter"]["description"] = json!(description);
            entry
        };
        let host = SkillHost::start().listing(vec![
            about("refunds", "Refunds an order of a customer, and tells the customer"),
            about("invoices", "Writes the invoice of a month"),
        ]);
        let model = Arc::new(ScriptedModel::new().says("1").says("2"));
        let (agent, _) = agent(&model, vec![host.setting()]);
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
    fn skills_are_listed_again_when_the_server_says_so() {
        let world = World::new().skill("one", "a");
        let serving = Serving { watches: true, ..Serving::default() };
        let host = McpHost::new(&world, serving);
        let url = format!("http://127.0.0.1:{}/mcp", host.at.port);
        let model = Arc::new(ScriptedModel::new());
        let (agent, _) = agent(&model, vec![setting("own", &json!({ "url": url }))]);
        let session = Session::new("s");
        let runtime = Runtime::new().unwrap();
        let told = || {
            // The model says nothing; only what it is told counts.
            let _ = runtime.block_on(agent.ask(&session, "x"));
            let tools = model.asked().pop().unwrap().tools;
            let tool = tools.into_iter().find(|it| it.name == "mcp__own__skill");
            tool.map(|it| it.description).unwrap_or_default()
        };
        assert!(told().contains("own:one"));
        world.write("skills/two/SKILL.md", document("two"));
        until("both are told", || {
            let told = told();
            told.contains("own:one") && told.contains("own:two: does it")
        });
        world.remove("skills/one/SKILL.md");
        until("only the second is told", || {
            let told = told();
            !told.contains("own:one") && told.contains("own:two")
        });
        world.remove("skills/two/SKILL.md");
        until("none is told", || told().is_empty());
    }
}

type Happened = Arc<Mutex<Vec<String>>>;

/// Records servers and warnings.
#[derive(Debug)]
struct Watches(Happened);

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
