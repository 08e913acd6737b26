//! Skills for any client: options of the program, policy, approvals and scripts.

use std::fs;

use prowess::Tokenizer;
use serde_json::{Value as Json, json};

use crate::{
    mcp_client::{McpClient, McpHost},
    mcp_messages::{Revision, V2025, file, many, named, names, texts, told, wrong},
    world::{World, with_code},
};

mod three_tools_are_enough_for_any_number_of_skills {
    use super::*;

    #[test]
    fn prompts_and_resources_can_be_left_out() {
        let world = many(3);
        let methods = [
            ("prompts/list", json!({}), "prompts"),
            ("prompts/get", json!({"name": "skill-000"}), "prompts"),
            ("resources/list", json!({}), "resources"),
            ("resources/templates/list", json!({}), "resources"),
            ("resources/read", json!({"uri": "skill://skill-000/SKILL.md"}), "resources"),
            ("skills/list", json!({}), "resources"),
            ("skills/get", json!({"uri": "skill://skill-000/SKILL.md"}), "resources"),
        ];
        for revision in [V2025, Revision::Stateless] {
            for left_out in [&["prompts"][..], &["resources"], &["prompts", "resources"]] {
                let flags: Vec<String> = left_out.iter().map(|it| format!("--no-{it}")).collect();
                let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
                let mut client = McpClient::with(&world, revision, &flags);
                let capabilities = client.server["capabilities"].clone();
                let is_offered = |what: &str| !left_out.contains(&what);
                for what in ["prompts", "resources"] {
                    assert_eq!(capabilities.get(what).is_some(), is_offered(what), "{flags:?}");
                }
                assert_eq!(capabilities.get("extensions").is_some(), is_offered("resources"));
                for (method, params, what) in &methods {
                    let answer = client.ask(method, params.clone());
                    let is_unknown = answer["error"]["code"] == -32601;
                    assert_eq!(is_unknown, !is_offered(what), "{flags:?} {answer}");
                }
                assert_eq!(
                    names(&client.request("tools/list", json!({}))["tools"]),
                    ["find_skills", "use_skill", "read_skill_file"]
                );
                told(&client.call("use_skill", named("skill-000")));
            }
        }
    }
}

mod the_policy_holds_for_every_client {
    use super::*;

    /// Finds, loads, lists and completes a skill, and returns all answers in one text.
    fn everything(world: &World, name: &str) -> String {
        let mut client = McpClient::new(world);
        let mut all = client.server["instructions"].to_string();
        all += &client.call("find_skills", json!({"query": name}))["structuredContent"].to_string();
        all += &client.request("prompts/list", json!({})).to_string();
        let path = json!({
            "ref": {"type": "ref/resource", "uri": "skill://{+path}"},
            "argument": {"name": "path", "value": ""},
        });
        all + &client.request("completion/complete", path).to_string()
    }

    #[test]
    fn what_is_denied_or_not_in_use_is_nowhere() {
        let idle = |status: &str| {
            format!("---\nname: it-{status}\ndescription: Idle.\nstatus: {status}\n---\nBody.\n")
        };
        let world = World::new()
            .skill("deploy", "Deploys.")
            .file("skills/deploy/keys/one.pem", "SECRET")
            .file("skills/deploy/notes.md", "notes")
            .skill("payroll", "Pays.")
            .file("skills/payroll/notes.md", "SECRET")
            .document("it-draft", idle("draft"))
            .document("it-disabled", idle("disabled"))
            .file(
                "prowess.toml",
                "[[policy.rules]]\nskill = \"payroll\"\ndecision = \"deny\"\n\
                 [[policy.rules]]\nskill = \"deploy\"\npath = \"*.pem\"\ndecision = \"deny\"\n",
            );
        for name in ["payroll", "it-draft", "it-disabled"] {
            let all = everything(&world, name);
            assert!(all.contains("deploy") && !all.contains(name), "{name}: {all}");
            let mut client = McpClient::new(&world);
            let text = wrong(&client.call("use_skill", named(name)));
            assert_eq!(text, format!("skill `{name}` not found"));
            let text = wrong(&client.call("read_skill_file", file(name, "notes.md")));
            assert_eq!(text, format!("skill `{name}` not found"));
            assert_eq!(client.error("prompts/get", named(name))["code"], -32602);
        }
        let mut client = McpClient::new(&world);
        assert_eq!(told(&client.call("read_skill_file", file("deploy", "notes.md"))), "notes\n");
        let text = wrong(&client.call("read_skill_file", file("deploy", "keys/one.pem")));
        assert!(text.starts_with("not allowed to read"), "{text}");
    }

    #[test]
    fn what_needs_approval_is_refused_with_the_command_that_approves_it() {
        let text = "---\nname: deploy\ndescription: d\nrequires-approval: true\n---\nPush it.\n";
        let world = World::new().document("deploy", text).file("skills/deploy/notes.md", "notes");
        let mut client = McpClient::new(&world);
        let refusals = |client: &mut McpClient| {
            [
                wrong(&client.call("use_skill", named("deploy"))),
                wrong(&client.call("read_skill_file", file("deploy", "notes.md"))),
                client.error("prompts/get", named("deploy"))["message"].to_string(),
            ]
        };
        let refused = refusals(&mut client);
        assert!(refused.iter().all(|it| it.contains("approval is needed")), "{refused:?}");
        let commands = |text: &String| text.split('`').any(|it| it == "prowess run deploy --yes");
        assert!(refused.iter().all(commands), "{refused:?}");
        let ran = world.run(["run", "deploy", "--yes", "--dir", "skills"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(told(&client.call("use_skill", named("deploy"))).contains("Push it."));
        assert_eq!(told(&client.call("read_skill_file", file("deploy", "notes.md"))), "notes\n");
        client.request("prompts/get", named("deploy"));
        world.write("skills/deploy/notes.md", "others");
        let refused = refusals(&mut client);
        assert!(refused[0].contains("it has changed since it was approved"), "{refused:?}");
    }

    #[test]
    fn over_http_nobody_is_told_where_skills_lie() {
        let world = World::new()
            .document(
                "deploy",
                "---\nname: deploy\ndescription: d\n---\n\
                 Run [it](scripts/run.sh) in ${SKILL_DIR}, or ${SKILL_DIR}/scripts/run.sh.\n",
            )
            .file("skills/deploy/scripts/run.sh", "echo \"at $SKILL_DIR\"\n")
            .file("skills/deploy/key.pem", "SECRET")
            .skill("gone", "d")
            .file("prowess.toml", "[[policy.rules]]\npath = \"*.pem\"\ndecision = \"deny\"\n");
        let host = McpHost::new(&world, &["--run"]);
        let session = host.at.session();
        world.remove("skills/gone/SKILL.md");
        let call = |tool: &str, arguments: Json| {
            session.ask("tools/call", json!({"name": tool, "arguments": arguments})).json()
        };
        let script = json!({"name": "deploy", "script": "scripts/run.sh"});
        let answers = [
            host.at.ask_stateless("server/discover", json!({})).json(),
            call("find_skills", json!({"query": "deploy"})),
            call("use_skill", named("deploy")),
            session.ask("prompts/get", named("deploy")).json(),
            call("run_skill", script),
            call("read_skill_file", file("deploy", "key.pem")),
            call("use_skill", named("gone")),
            call("use_skill", named(&world.path("skills/deploy").display().to_string()))["result"]
                ["isError"]
                .take(),
            session.ask("prompts/get", named("gone")).json(),
        ];
        let roots = [world.path(""), fs::canonicalize(world.path("")).unwrap()];
        for (root, answer) in
            roots.iter().flat_map(|it| answers.iter().map(move |answer| (it, answer)))
        {
            let root = root.display().to_string();
            assert!(!answer.to_string().contains(root.trim_end_matches('/')), "{answer}");
        }
        let text = texts(&answers[2]["result"]);
        let told = "Folder: .\n\nRun [it](scripts/run.sh) in ., or scripts/run.sh.\n";
        assert!(text.contains(told), "{text}");
        assert!(answers[4].to_string().contains("given/skill"), "{}", answers[4]);
        assert!(wrong(&answers[5]["result"]).ends_with("shows the rules"), "{}", answers[5]);
        assert!(wrong(&answers[6]["result"]).contains("cannot read"), "{}", answers[6]);
        assert_eq!((&answers[7], &answers[8]["error"]["code"]), (&json!(true), &json!(-32603)));
    }
}

mod skills_run_only_where_that_is_offered {
    use super::*;

    fn script(more: &str) -> World {
        let text = format!(
            "---\nname: greet\ndescription: Greets.\ntype: script\n{more}---\n\n```sh\necho \"hello, $PARAM_WHO\"\n```\n"
        );
        World::new().document("greet", text)
    }

    #[test]
    fn nothing_runs_unless_the_server_was_started_for_it() {
        let world = script("");
        let mut client = McpClient::with(&world, V2025, &["--run"]);
        let tools = client.request("tools/list", json!({}))["tools"].take();
        assert_eq!(names(&tools)[3..], ["run_skill"]);
        assert_eq!(tools[3]["annotations"]["readOnlyHint"], false);
        let arguments = json!({"name": "greet", "parameters": {"who": "Ada"}});
        let result = client.call("run_skill", arguments.clone());
        assert!(told(&result).contains("hello, Ada"), "{result}");
        let mut client = McpClient::new(&world);
        let error =
            client.error("tools/call", json!({"name": "run_skill", "arguments": arguments}));
        assert_eq!(error["code"], -32602);
    }

    #[test]
    fn what_needs_approval_does_not_run() {
        let world = script("requires-approval: true\n");
        let mut client = McpClient::with(&world, V2025, &["--run"]);
        let text = wrong(&client.call("run_skill", named("greet")));
        assert!(text.contains("approval is needed to run the skill `greet`"), "{text}");
        assert!(text.contains("use `prowess run greet --yes`"), "{text}");
        assert_eq!(world.run(["run", "greet", "--yes", "--dir", "skills"]).code, Some(0));
        assert!(told(&client.call("run_skill", named("greet"))).contains("hello"));
    }
}

mod the_instructions_are_a_catalog_within_a_budget {
    use super::*;

    fn instructions(world: &World, revision: Revision, arguments: &[&str]) -> String {
        let client = McpClient::with(world, revision, arguments);
        with_code(client.server["instructions"].as_str().unwrap(), "bcdfghjkmn")
    }

    #[test]
    fn the_same_skills_give_the_same_bytes_within_the_budget() {
        for (count, budget) in [(5, 2000), (5, 220), (500, 2000), (500, 6000)] {
            let world = many(count).file("prowess.toml", "[model]\nname = \"gpt-4o\"\n");
            let arguments = &["--budget", &budget.to_string()];
            let text = instructions(&world, V2025, arguments);
            assert_eq!(text, instructions(&world, V2025, arguments));
            assert_eq!(text, instructions(&world, Revision::Stateless, arguments));
            let tokens = Tokenizer::O200k.count(&text);
            assert!(tokens <= budget, "{tokens} of {budget}");
            let listed = text.lines().filter(|it| it.starts_with("- skill-")).count();
            let rest = format!(
                "{} more skills are not listed; search for them with `find_skills`.",
                count - listed
            );
            assert_eq!(text.contains(&rest), listed < count, "{text}");
            assert!(listed > 4 && text.contains("`use_skill`"), "{text}");
        }
    }
}
