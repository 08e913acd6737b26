//! The toolbox and the tool `use_skill`.

use std::process::Command;

use serde_json::{Value as Json, json};

use crate::world::World;

mod the_toolbox_knows_its_tools {
    use super::*;

    #[test]
    fn q_25_all_built_in_tools_are_there_at_the_start() {
        let world = World::new();
        let description = |name: &str| {
            let json = world.run(["tools", "--json"]).json();
            let tools = json["tools"].as_array().unwrap();
            let tool = tools.iter().find(|it| it["name"] == name);
            let tool = tool.unwrap_or_else(|| panic!("{name} is not there: {json}"));
            assert_eq!(tool["input_schema"]["type"], "object", "{tool}");
            tool["description"].as_str().unwrap().to_owned()
        };
        let built_in =
            ["use_skill", "read_file", "file_operations", "http_request", "execute_command"];
        for name in built_in {
            assert!(!description(name).is_empty(), "{name}");
        }
        let setting = "`url` under `[sql]` in `prowess.toml`";
        assert!(description("execute_sql").contains(setting));
        let ask = || {
            world.run(["tool", "execute_sql", r#"{"sql": "SELECT 1"}"#, "--json"]).json()["outcome"]
                .take()
        };
        let refused = ask();
        assert_eq!(refused["status"], "refused", "{refused}");
        assert!(refused["hint"].as_str().unwrap().contains(setting), "{refused}");
        world.write("prowess.toml", "[sql]\nurl = \"sqlite::memory:\"\n");
        assert!(!description("execute_sql").contains(setting));
        assert_eq!(ask()["output"]["rows"], json!([[1]]));
    }

    #[test]
    fn the_program_finds_a_tool_in_any_case() {
        let world = World::new().skill("c1", "Counts");
        let ran = world.run(["tool", "skill_C1", "{}", "--dir", "skills"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
}

mod one_tool_runs_every_skill_that_does_something {
    use super::*;

    fn world() -> World {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
        let script = format!(
            "---\nname: twice\ndescription: a\ntype: script\n---\n\n```sh\necho $((PARAM_N * 2))\n```\n\n\
             ## Parameters\n\n```json\n{schema}\n```\n"
        );
        let careful = "---\nname: careful\ndescription: a\ntype: script\nrequires_approval: true\n---\n\n\
                       ```sh\necho done\n```\n";
        let plain = "---\nname: plain\ndescription: a\n---\n\n# Plain\n";
        World::new()
            .document("twice", &script)
            .document("careful", careful)
            .document("plain", plain)
            .document("off", plain.replace("name: plain", "name: off\nstatus: disabled"))
            .file("skills/plain/scripts/say.sh", "cat \"$SKILL_DIR/notes.txt\"; echo \" $1\"\n")
            .file("skills/plain/notes.txt", "the notes")
            .file("skills/careful/scripts/x.sh", "echo x\n")
    }

    fn run(world: &World, input: &Json) -> Json {
        let ran = world.run(["tool", "run_skill", &input.to_string(), "--dir", "skills", "--json"]);
        ran.json()["outcome"].clone()
    }

    #[test]
    fn a_skill_runs_with_its_parameters() {
        let world = world();
        let outcome = run(&world, &json!({"name": "twice", "parameters": {"n": 21}}));
        assert_eq!((&outcome["status"], &outcome["stdout"]), (&json!("ok"), &json!("42\n")));
        let outcome = run(&world, &json!({"name": "twice", "parameters": {"n": "x; rm"}}));
        assert_eq!(outcome["status"], "invalid", "{outcome}");
    }

    #[test]
    fn a_script_among_the_files_of_a_skill_runs() {
        let input = json!({"name": "plain", "script": "scripts/say.sh", "arguments": ["$(id) b"]});
        let outcome = run(&world(), &input);
        assert_eq!(outcome["stdout"], "the notes $(id) b\n", "{outcome}");
        assert_ne!(outcome["sandbox"], "none");
    }

    #[test]
    fn what_cannot_run_is_told_apart() {
        let world = world();
        for (input, status, message) in [
            (json!({"name": "plain"}), "invalid", "is an instruction"),
            (json!({"name": "plian"}), "not_found", "`plian` not found"),
            (json!({"name": "off"}), "not_found", "`off` not found"),
            (json!({"name": "plain", "script": "../twice/SKILL.md"}), "", ""),
            (json!({"name": "plain", "script": "none.sh"}), "", "none.sh"),
            (json!({"name": "plain", "script": "notes.txt"}), "", "no interpreter is known for"),
        ] {
            let outcome = run(&world, &input);
            let said = outcome["message"].as_str().unwrap_or_default();
            assert!(said.contains(message), "{input}: {outcome}");
            assert!(outcome["status"].as_str().unwrap().contains(status), "{input}: {outcome}");
            assert!(outcome["status"] != "ok" && outcome["stdout"].is_null(), "{input}: {outcome}");
        }
    }

    #[test]
    fn approval_is_asked_as_for_any_other_way() {
        let world = world();
        for input in
            [json!({"name": "careful"}), json!({"name": "careful", "script": "scripts/x.sh"})]
        {
            assert_eq!(run(&world, &input)["status"], "refused", "{input}");
        }
    }
}

mod tools_are_told_as_their_readers_want_it {
    use super::*;

    /// Phrases that cost tokens without information.
    const NOISE: [&str; 7] =
        ["$schema", "$ref", "$defs", "\"title\"", "\"null\"", "uint", "The input."];

    #[test]
    fn schemas_are_whole_and_plain() {
        let world = World::new().file("prowess.toml", "[sql]\nurl = \"sqlite:data.db\"\n");
        let listed = world.run(["tools", "--json"]).json();
        for tool in listed["tools"].as_array().unwrap() {
            let schema = &tool["input_schema"];
            let text = schema.to_string();
            for noise in NOISE {
                assert!(!text.contains(noise), "{tool:#}");
            }
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "`{name}` of {tool:#}");
            }
        }
        let asked = world.run(["ask", "Hi", "--dry-run", "--json"]).json();
        let told = asked["body"]["tools"].to_string();
        assert!(told.contains("next_offset"), "{told}");
        assert_eq!(NOISE.iter().find(|it| told.contains(**it)), None, "{told}");
        // An optional parameter may still be null.
        world.write("x.txt", "text");
        let ran = world.run(["tool", "read_file", r#"{"path": "x.txt", "limit": null}"#]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }

    #[test]
    fn a_schema_that_a_provider_refuses_is_told_in_another_form_or_its_tool_is_left_out() {
        let skill = |name: &str, schema: &str| {
            format!(
                "---\nname: {name}\ndescription: d\ntype: template\n---\n```template\nx\n```\n\n## Parameters\n\n```json\n{schema}\n```\n"
            )
        };
        let choice = r#"{"oneOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]}"#;
        let world = World::new()
            .file("s/choice/SKILL.md", skill("choice", choice))
            .file("s/list/SKILL.md", skill("list", r#"{"type": "array"}"#));
        let told = |format: &str| {
            let ran = world.run(["tools", "--format", format, "--dir", "s"]);
            assert!(ran.stderr.contains("`skill_list`"), "{}", ran.stderr);
            let json = ran.json();
            let tools = json["tools"].as_array().unwrap().clone();
            let name = |it: &Json| it.get("function").unwrap_or(it)["name"].clone();
            assert!(!tools.iter().any(|it| name(it) == "skill_list"));
            tools.into_iter().find(|it| name(it) == "skill_choice").unwrap()
        };
        let flat = json!({"type": "object", "properties":
            {"a": {"type": "string"}, "b": {"type": "integer"}}});
        assert_eq!(told("anthropic")["input_schema"], flat);
        let function = &told("openai")["function"];
        assert_eq!((&function["parameters"], &function["strict"]), (&flat, &json!(false)));
        assert!(told("mcp")["inputSchema"]["oneOf"].is_array());
        let called = |input: &str| {
            let ran = world.run(["tool", "skill_choice", input, "--dir", "s", "--json"]);
            ran.json()["outcome"]["status"].clone()
        };
        assert_eq!([called("{}"), called(r#"{"b": 1}"#)], [json!("invalid"), json!("ok")]);
    }

    #[test]
    fn the_program_prints_each_form() {
        let world = World::new();
        for (format, schema) in [
            ("openai", "/function/parameters"),
            ("anthropic", "/input_schema"),
            ("mcp", "/inputSchema"),
        ] {
            let told = world.run(["tools", "--format", format]).json();
            for tool in told["tools"].as_array().unwrap() {
                assert_eq!(tool.pointer(schema).unwrap()["type"], "object", "{tool:#}");
            }
        }
    }
}

mod a_person_can_call_any_tool {
    use super::*;

    #[test]
    fn the_input_is_typed_read_from_a_file_or_from_standard_input() {
        let input = "{\"path\": \"notes.txt\"}";
        let world = World::new().file("notes.txt", "the notes").file("input.json", input);
        let told = [
            world.run(["tool", "read_file", input, "--json"]),
            world.run(["tool", "read_file", "@input.json", "--json"]),
            world.run_reading(input, &["tool", "read_file", "-", "--json"]),
            world.run(["tool", "read_file", "path=notes.txt", "--json"]),
        ];
        for ran in told {
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert_eq!(ran.json()["outcome"]["output"]["content"], "the notes");
        }
        world.write("5", "five");
        let pairs = ["path=5", "offset=2"];
        let ran = world.run(["tool", "read_file", "--json"].iter().chain(&pairs));
        assert_eq!(ran.json()["outcome"]["output"]["content"], "ve", "{}", ran.stderr);
        let ran = world.run(["tool", "read_file", "notes.txt"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("the input is not JSON"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`KEY=VALUE`"), "{}", ran.stderr);
        let ran = world.run(["tool", "read_file", "path=5", "offset"]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("`offset` is not KEY=VALUE"), "{}", ran.stderr);
        let ran = world.run(["tool", "read_file", "@missing.json"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("cannot open `missing.json`"), "{}", ran.stderr);
        let made = Command::new("mkfifo").arg(world.path("pipe")).status().unwrap();
        assert!(made.success());
        for arguments in [
            vec!["tool", "read_file", "@pipe"],
            vec!["run", "debug", "--params", "@pipe"],
            vec!["run", "debug", "--params", "@/dev/zero"],
        ] {
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            assert!(ran.stderr.contains("not a regular file"), "{}", ran.stderr);
        }
        let huge = format!("{input}{}", " ".repeat(8 << 20));
        let ran = world.run_reading(&huge, &["tool", "read_file", "-", "--json"]);
        assert_eq!((ran.code, &ran.json()["outcome"]["status"]), (Some(1), &json!("invalid")));
        let message = ran.json()["outcome"]["message"].as_str().unwrap().to_owned();
        assert_eq!(message, "`standard input` has more than 8388608 bytes");
        let ran = world.run(["tool", "read_file", "--json"]);
        assert_eq!((ran.code, &ran.json()["outcome"]["status"]), (Some(1), &json!("invalid")));
    }

    #[test]
    fn a_name_that_stands_twice_is_refused() {
        let world = World::new().file("a.txt", "a").file("b.txt", "b");
        let inputs = [
            r#"{"path": "a.txt", "path": "b.txt"}"#,
            r#"{"path": "a.txt", "p\u0061th": "b.txt"}"#,
            r#"{"path": "a.txt", "x": [{"y": 1, "y": 2}]}"#,
        ];
        for input in inputs {
            let ran = world.run(["tool", "read_file", input]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{input}");
            assert!(ran.stderr.contains("appears twice"), "{}", ran.stderr);
        }
        let ran = world.run(["run", "debug", "--params", r#"{"a": {"b": 1, "b": 2}}"#]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("`b` appears twice"), "{}", ran.stderr);
        let ran = world.run(["run", "debug", r#"a={"b": 1, "b": 2}"#]);
        assert!(ran.stderr.contains("`b` appears twice"), "{}", ran.stderr);
        let ran = world.run(["run", "debug", "--params", r#"{"a": "\ud800"}"#]);
        assert!(
            !ran.stderr.contains("number") && ran.stderr.contains("hex escape"),
            "{}",
            ran.stderr
        );
    }

    #[test]
    fn what_comes_out_is_shown_for_people_and_for_programs() {
        let world = World::new().file("a.txt", "one\ntwo\n\u{1b}[31m").file("b.txt", "");
        let ran = world.run(["tool", "read_file", "{\"path\": \"a.txt\"}"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout().contains("\ncontent:\none\ntwo\n"), "{}", ran.stdout());
        ran.assert_safe();
        let list = "{\"operation\": \"list\", \"path\": \".\"}";
        let ran = world.run(["tool", "file_operations", list]);
        assert!(ran.stdout().contains("\na.txt  file  "), "{}", ran.stdout());
        for (arguments, status, message) in [
            (["tool", "raed_file", "{}"], "not_found", "there is no tool `raed_file`"),
            (
                ["tool", "file_operations", r#"{"operation": "delete", "path": "a.txt"}"#],
                "invalid",
                r#"`operation` is not one of "read", "write" or "list""#,
            ),
            (["tool", "read_file", "{\"path\": \"../x\"}"], "refused", "`../x`"),
            (["tool", "read_file", "{\"path\": \"missing\"}"], "not_found", "`missing`"),
        ] {
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(1), "{arguments:?}");
            assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
            let json = world.run(arguments.into_iter().chain(["--json"])).json();
            assert_eq!(json["tool"], arguments[1]);
            assert_eq!(json["outcome"]["status"], status, "{json:#}");
        }
    }

    #[test]
    fn skills_are_taken_up_before_a_call() {
        let world = World::new().skill("one", "a").file("skills/one/notes.md", "the notes");
        let call = ["tool", "read_file", "{\"path\": \"notes.md\"}", "--dir", "skills"];
        assert_eq!(world.run(call).code, Some(1));
        let ran = world.run(call.into_iter().chain(["--skill", "one"]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout().contains("the notes"), "{}", ran.stdout());
        let ran = world.run(call.into_iter().chain(["--skill", "on"]));
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("skill `on` not found"), "{}", ran.stderr);
    }

    #[test]
    fn the_database_of_the_settings_is_asked() {
        let empty: &[u8] = &[];
        let world = World::new()
            .file("project/prowess.toml", "[sql]\nurl = \"sqlite:data.db\"\n")
            .file("home/.config/prowess/prowess.toml", "[sql]\nwrite = true\n")
            .file("project/data.db", empty)
            .file("project/below/x", "");
        let ask = |sql: &str| {
            let input = json!({"sql": sql}).to_string();
            world.run(["tool", "execute_sql", &input, "--cwd", "project/below"])
        };
        let made = ask("CREATE TABLE t AS SELECT 1 AS id, 'one' AS name");
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        assert_eq!(ask("SELECT * FROM t").stdout(), "id  name\n1   one\n");
        world.write("home/.config/prowess/prowess.toml", "");
        world.write("project/prowess.toml", "[sql]\nurl = \"sqlite://data.db\"\nwrite = true\n");
        assert_eq!(ask("SELECT * FROM t").stdout(), "id  name\n1   one\n");
        let refused = ask("DROP TABLE t");
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("`write = true`"), "{}", refused.stderr);
        assert_eq!(ask("SELECT * FROM t").code, Some(0));
    }
}
