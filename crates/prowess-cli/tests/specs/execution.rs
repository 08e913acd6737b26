//! Outcomes of skills that are run, by the program and by the library.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Map, Value as Json, json};

use crate::world::{Ran, SKILLS, World, until};

/// Adds a skill of a type with a body, in `skills/`.
fn typed(world: World, kind: &str, name: &str, body: &str) -> World {
    let text =
        format!("---\nname: {name}\ndescription: Does {name}\ntype: {kind}\n---\n\n{body}\n");
    world.document(name, text)
}

fn script(world: World, name: &str, script: &str) -> World {
    typed(world, "script", name, &format!("```sh\n{script}\n```"))
}

/// Adds a script with a schema of its parameters.
fn taking(world: World, name: &str, text: &str, schema: &Json) -> World {
    let body = format!("```sh\n{text}\n```\n\n## Parameters\n\n```json\n{schema:#}\n```");
    typed(world, "script", name, &body)
}

/// Runs a skill of `skills/`.
fn run(world: &World, arguments: &[&str]) -> Ran {
    world.run(["run"].iter().chain(arguments).chain(&SKILLS))
}

/// Returns the exit code and the outcome of a skill of `skills/`.
fn outcome(world: &World, arguments: &[&str]) -> (Option<i32>, Json) {
    let ran = run(world, &[arguments, &["--json"]].concat());
    let mut json = ran.json();
    (ran.code, json["outcome"].take())
}

/// Returns the output of a script that succeeds.
fn stdout(world: &World, arguments: &[&str]) -> String {
    let (code, outcome) = outcome(world, arguments);
    assert_eq!((code, &outcome["status"]), (Some(0), &json!("ok")), "{outcome:#}");
    outcome["stdout"].as_str().unwrap().to_owned()
}

/// Returns the entries of a folder; none if it does not exist.
fn listed(path: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns the number of processes with this word in their command line.
fn alive(word: &str) -> usize {
    let is_one = |path: &Path| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let state = fs::read_to_string(path.join("stat")).unwrap_or_default();
        let zombie = state.rsplit(") ").next().is_some_and(|it| it.starts_with('Z'));
        !zombie && String::from_utf8_lossy(&line).split('\0').any(|it| it == word)
    };
    let processes = fs::read_dir("/proc").unwrap().map(|it| it.unwrap().path());
    processes.filter(|it| is_one(it)).count()
}

mod a_skill_executes_as_its_type_says {
    use super::*;

    #[test]
    fn s_28_a_composite_comes_to_a_plan() {
        let body = "```json\n{\"tool\": \"read_file\", \"params\": {\"path\": \"{{.x}}\"}}\n```\n\n\
                    ```json\n{\"tool\": \"execute_command\"}\n```";
        let world = typed(World::new(), "composite", "both", body);
        let ran = run(&world, &["both", "--json"]);
        let json = ran.json();
        assert_eq!(
            (ran.code, &json["skill"], &json["type"]),
            (Some(0), &json!("both"), &json!("composite"))
        );
        let plan = json!([
            {"step": 1, "tool": "read_file", "params": {"path": "{{.x}}"}},
            {"step": 2, "tool": "execute_command", "params": {}},
        ]);
        assert_eq!(json["outcome"], json!({"status": "ok", "plan": plan}));
        let text = run(&world, &["both"]);
        assert_eq!(text.stdout(), "1. read_file {\"path\":\"{{.x}}\"}\n2. execute_command {}\n");
    }

    #[test]
    fn s_29_a_script_runs_by_sh_from_a_file_that_is_gone_afterwards() {
        let world =
            script(World::new(), "well", "echo \"$0\"; cat \"$0\"; touch left; sleep \"$PARAM_T\"");
        let world = script(world, "fails", "touch left; exit 3");
        let world = script(world, "dies", "touch left; kill -9 $$").folder("tmp");
        let tmp = world.path("tmp");
        let at = |arguments: &[&str]| {
            let arguments = ["run"].iter().chain(arguments).chain(&SKILLS).chain(&["--json"]);
            let ran = world.run_with(&[("TMPDIR", tmp.to_str().unwrap())], arguments);
            assert_eq!(listed(&tmp), Vec::<String>::new());
            ran.json()["outcome"].take()
        };
        let well = at(&["well", "T=0"]);
        let (path, text) = well["stdout"].as_str().unwrap().split_once('\n').unwrap();
        assert!(path.starts_with(tmp.to_str().unwrap()), "{path}");
        assert!(!Path::new(path).exists(), "{path}");
        assert!(text.contains("touch left"), "{text}");
        assert_eq!(well["files"], json!(["left"]));
        assert_eq!(at(&["fails"])["status"], "failed");
        assert_eq!(at(&["dies"])["status"], "killed");
        assert_eq!(at(&["well", "T=60", "--timeout", "300ms"])["status"], "timed_out");
    }

    #[test]
    fn s_29_a_dangerous_script_is_refused_before_anything_runs() {
        let world = script(World::new(), "evil", "echo started\nrm -rf /");
        let (code, outcome) = outcome(&world, &["evil"]);
        assert_eq!((code, &outcome["status"]), (Some(1), &json!("refused")), "{outcome:#}");
        assert!(outcome["message"].as_str().unwrap().contains("line 2"), "{outcome:#}");
        assert_eq!(outcome["stdout"], json!(null));
        assert_eq!(outcome["sandbox"], json!(null));
    }

    #[test]
    fn s_30_a_template_is_filled_in() {
        let body = "```template\nDear {{.name}},{{range .items}}\n- {{.}}{{end}}\n```\n\n\
                    ## Parameters\n\n```json\n{\"required\": [\"name\"]}\n```";
        let world = typed(World::new(), "template", "letter", body);
        let arguments = ["letter", "name=Ada & Co", "items=[\"a\",\"b\"]"];
        let text = "Dear Ada & Co,\n- a\n- b\n";
        assert_eq!(outcome(&world, &arguments), (Some(0), json!({"status": "ok", "output": text})));
        assert_eq!(run(&world, &arguments).stdout(), text);
        let (code, missing) = outcome(&world, &["letter"]);
        assert_eq!((code, &missing["status"]), (Some(1), &json!("invalid")), "{missing:#}");

        let world = typed(World::new(), "template", "broken", "```template\na\n{{.x | nope}}\n```");
        let (code, broken) = outcome(&world, &["broken", "x=1"]);
        assert_eq!((code, &broken["status"]), (Some(1), &json!("failed")), "{broken:#}");
        assert!(broken["message"].as_str().unwrap().contains(":2"), "{broken:#}");
    }

    #[test]
    fn a_template_says_which_values_it_lacks() {
        let template = "```template\nDear {{.name}}{{if .title}}, {{.title}}{{end}}\n```\n";
        let declared = format!(
            "{template}\n## Parameters\n\n```json\n{{\"properties\": {{\"name\": {{}}, \"title\": {{}}}}}}\n```"
        );
        let world = typed(World::new(), "template", "letter", &declared);
        let (code, well) = outcome(&world, &["letter", "name=Ada"]);
        assert_eq!((code, &well["output"]), (Some(0), &json!("Dear Ada\n")), "{well:#}");
        let (code, lacking) = outcome(&world, &["letter"]);
        assert_eq!((code, &lacking["status"]), (Some(1), &json!("invalid")), "{lacking:#}");
        let message = lacking["message"].as_str().unwrap();
        assert!(message.contains("there is no value for `name`"), "{message}");
        let (code, unknown) = outcome(&world, &["letter", "name=Ada", "nmae=Ada"]);
        assert_eq!((code, &unknown["status"]), (Some(1), &json!("invalid")), "{unknown:#}");
        assert!(unknown["message"].as_str().unwrap().contains("nmae"), "{unknown:#}");

        let world = typed(World::new(), "template", "letter", template);
        let ran = run(&world, &["letter", "nmae=Ada"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "Dear <no value>\n"));
        assert!(ran.stderr.contains("there is no value for `name`"), "{}", ran.stderr);
        let ran = run(&world, &["letter", "name=Ada"]);
        assert_eq!((ran.stdout(), &*ran.stderr), ("Dear Ada\n", ""));
    }

    #[test]
    fn s_43_an_instruction_gives_its_name_type_and_content() {
        let text = "# Guide\n\n!`touch pwned` ${HOME} $ARGUMENTS {{.topic}}\n\n## Parameters\n\n\
                    ```json\n{\"topic\": …}\n```";
        let world = typed(World::new(), "instruction", "guide", text);
        let (code, outcome) = outcome(&world, &["guide", "topic=$(touch pwned)"]);
        let content = format!("{text}\n");
        let output = json!({"skill": "guide", "type": "instruction", "content": content});
        assert_eq!((code, outcome), (Some(0), json!({"status": "ok", "output": output})));
        assert_eq!(run(&world, &["guide"]).stdout(), content);
        assert!(!world.path("pwned").exists());
    }

    #[test]
    fn a_skill_that_is_not_in_use_is_refused() {
        let text = |status: &str| {
            format!("---\nname: {status}\ndescription: a\nstatus: {status}\n---\n\n# Text\n")
        };
        let world =
            World::new().document("draft", text("draft")).document("disabled", text("disabled"));
        for name in ["draft", "disabled"] {
            let (code, outcome) = outcome(&world, &[name]);
            assert_eq!((code, &outcome["status"]), (Some(1), &json!("refused")), "{outcome:#}");
            let hint = outcome["hint"].as_str().unwrap();
            assert!(hint.contains(&format!("`prowess enable {name} --dir skills`")), "{hint}");
            let tool = format!("skill_{name}");
            let called = world.run(["tool", &tool, "--json"].iter().chain(&SKILLS));
            let message = called.json()["outcome"]["message"].to_string();
            assert!(
                called.code == Some(1) && message.contains(&format!("skill `{name}` is {name}")),
                "{message}"
            );
            let ran = run(&world, &[name]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""));
            assert!(ran.stderr.contains("prowess enable"), "{}", ran.stderr);
        }
        for status in ["Disabled", "DRAFT", "off", "false", "[active]", "'active '"] {
            let text = text("x").replace("status: x", &format!("status: {status}\ntype: Script"));
            let world = World::new().document("x", text + "\n```sh\necho ran\n```\n");
            let ran = run(&world, &["x"]);
            let runs = status == "'active '";
            assert_eq!((ran.code == Some(0), ran.stdout() == "ran\n"), (runs, runs), "{status}");
            let unknown = ["off", "false", "[active]"].contains(&status);
            assert_eq!(ran.stderr.contains("treated as disabled"), unknown, "{}", ran.stderr);
            let tool = world.run(["tool", "skill_x"].iter().chain(&SKILLS));
            assert_eq!(tool.stderr.contains("treated as disabled"), unknown, "{}", tool.stderr);
            assert_eq!(tool.code == Some(0), runs, "{}", tool.stderr);
        }
        let odd = text("odd").replace("status: odd", "type: recipe");
        let ran = run(&World::new().document("odd", odd), &["odd"]);
        assert!(ran.stderr.contains("`type` is not one of"), "{}", ran.stderr);
    }

    #[test]
    fn what_cannot_be_run_says_so_in_an_outcome() {
        let world = typed(World::new().skill("deploy", "a"), "script", "empty", "no block");
        let (code, nothing) = outcome(&world, &["deplyo"]);
        assert_eq!((code, &nothing["status"]), (Some(1), &json!("not_found")));
        assert!(nothing["hint"].as_str().unwrap().contains("`deploy`"), "{nothing:#}");
        let (code, empty) = outcome(&world, &["empty"]);
        assert_eq!((code, &empty["status"]), (Some(1), &json!("invalid")));
        assert!(empty["message"].as_str().unwrap().contains("`sh` code block"), "{empty:#}");
        let (code, pair) = outcome(&world, &["deploy", "novalue"]);
        assert_eq!((code, &pair["status"]), (Some(1), &json!("invalid")));
        assert!(pair["message"].as_str().unwrap().contains("`novalue`"), "{pair:#}");
        let (code, file) = outcome(&world, &["deploy", "--params", "@nowhere.json"]);
        assert_eq!((code, &file["status"]), (Some(2), &json!("invalid")));
        assert!(file["message"].as_str().unwrap().contains("`nowhere.json`"), "{file:#}");
        let world = world.document("bad", "no frontmatter");
        let (code, bad) = outcome(&world, &["bad"]);
        assert_eq!((code, &bad["status"]), (Some(1), &json!("invalid")), "{bad:#}");
        assert!(bad["message"].as_str().unwrap().contains("`bad` was left out: "), "{bad:#}");
        let (_, nothing) = outcome(&world, &[""]);
        assert_eq!(nothing["status"], "not_found", "{nothing:#}");
        assert!(nothing["hint"].as_str().unwrap().contains("prowess list --dir skills"));
    }

    #[test]
    fn a_path_names_a_skill_wherever_it_lies() {
        let world = script(World::new(), "one", "echo ran");
        let absolute = world.path("skills/one").display().to_string();
        for path in ["./skills/one", "skills/one/SKILL.md", "skills/one/", &absolute] {
            let ran = world.run(["run", path]);
            assert_eq!((ran.code, ran.stdout()), (Some(0), "ran\n"), "{path}: {}", ran.stderr);
            let shown = world.run(["show", path]);
            assert!(shown.stdout().contains("echo ran"), "{path}: {}", shown.stderr);
        }
        let ran = world.run(["run", "../one", "--cwd", "skills/one"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "ran\n"), "{}", ran.stderr);
        assert_eq!(world.run(["run", "./skills/two"]).code, Some(1));
    }
}

mod parameters_are_checked_before_anything_runs {
    use super::*;

    #[test]
    fn every_mismatch_is_told_at_once_by_the_name_of_the_parameter() {
        let schema = json!({
            "type": "object",
            "properties": {"count": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": false,
        });
        let world = taking(World::new(), "one", "echo ran", &schema);
        let (code, outcome) = outcome(&world, &["one", "count=many", "nme=x"]);
        assert_eq!((code, &outcome["status"]), (Some(1), &json!("invalid")), "{outcome:#}");
        let message = outcome["message"].as_str().unwrap();
        for part in
            ["`count` is not of type \"integer\"", "`name` is missing", "`nme` is not a parameter"]
        {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(outcome["output"]["mismatches"][1]["parameter"], "name");
        assert_eq!(outcome["stdout"], json!(null));
        let text = run(&world, &["one", "count=many"]);
        assert_eq!((text.code, text.stdout()), (Some(1), ""));
        assert!(text.stderr.contains("`count`") && text.stderr.contains("`name`"));
    }

    #[test]
    fn defaults_of_the_schema_are_filled_in() {
        let schema = json!({"properties": {
            "greeting": {"type": "string", "default": "Hello"},
            "times": {"type": "integer", "default": 2},
        }});
        let text = "echo \"$PARAM_GREETING $PARAM_TIMES\"; cat \"$PARAMS_FILE\"";
        let world = taking(World::new(), "one", text, &schema);
        let expected = "Hello 3\n{\"times\":3,\"greeting\":\"Hello\"}";
        assert_eq!(stdout(&world, &["one", "times=3"]), expected);
    }

    #[test]
    fn a_value_is_json_unless_the_schema_says_string() {
        let schema =
            json!({"properties": {"version": {"type": "string"}, "zip": {"type": "string"}}});
        let text = "env | grep ^PARAM_ | sort; cat \"$PARAMS_FILE\"";
        let world = taking(World::new(), "one", text, &schema);
        let said = stdout(
            &world,
            &[
                "one",
                "items=[\"a\",\"b\"]",
                "n=3",
                "flag=true",
                "version=1.10",
                "zip=01234",
                "text=a 'b' \"c\"",
            ],
        );
        let expected = "PARAM_FLAG=true\nPARAM_ITEMS=[\"a\",\"b\"]\nPARAM_N=3\nPARAM_TEXT=a 'b' \"c\"\n\
                        PARAM_VERSION=1.10\nPARAM_ZIP=01234\n";
        let (variables, file) = said.split_at(expected.len());
        assert_eq!(variables, expected);
        let file: Json = serde_json::from_str(file).unwrap();
        let values = json!({
            "items": ["a", "b"], "n": 3, "flag": true, "version": "1.10", "zip": "01234",
            "text": "a 'b' \"c\"",
        });
        assert_eq!(file, values);
        let world = world.file("params.json", "{\"n\": 4, \"text\": \"two\\nlines\"}");
        for given in ["@params.json", "{\"n\": 4, \"text\": \"two\\nlines\"}"] {
            let said = stdout(&world, &["one", "zip=1", "--params", given]);
            assert!(said.starts_with("PARAM_N=4\nPARAM_TEXT=two\nPARAM_ZIP=1\n"), "{said}");
        }
        let said = stdout(&world, &["one", "c=\"q\"", "g= 5 "]);
        assert_eq!(said, "PARAM_C=\"q\"\nPARAM_G= 5 \n{\"c\":\"q\",\"g\":5}");
        let text = json!({"type": "string"});
        for schema in [
            json!({"additionalProperties": text}),
            json!({"patternProperties": {"^v": text}, "additionalProperties": {"type": "integer"}}),
            json!({"allOf": [{"properties": {"n": {}}}, {"properties": {"v": text}}]}),
            json!({"anyOf": [{"properties": {"v": text}}, {"properties": {"v": {"const": "x"}}}]}),
            json!({"properties": {"v": {"anyOf": [text, {"type": "null"}]}}}),
            json!({"properties": {"v": {"$ref": "#/$defs/v"}}, "$defs": {"v": {"allOf": [text]}}}),
        ] {
            let world = taking(World::new(), "two", "cat \"$PARAMS_FILE\"", &schema);
            assert_eq!(stdout(&world, &["two", "v=1.10"]), r#"{"v":"1.10"}"#, "{schema}");
        }
        let schema = json!({"properties": {"v": {"anyOf": [text, {"type": "number"}]}}});
        let other = taking(World::new(), "two", "cat \"$PARAMS_FILE\"", &schema);
        assert_eq!(stdout(&other, &["two", "v=1.10"]), r#"{"v":1.10}"#);
        let (code, twice) = outcome(&world, &["one", "n=1", "--params", "@params.json"]);
        assert_eq!((code, &twice["status"]), (Some(1), &json!("invalid")), "{twice:#}");
    }

    #[test]
    fn parameters_are_data_and_never_become_code() {
        let text = "printf '%s\\n' \"$PARAM_X\"; ls";
        let world = script(World::new(), "one", text);
        let evil = "a'; touch pwned; $(touch pwned) `touch pwned` \"; touch pwned #";
        assert_eq!(stdout(&world, &["one", &format!("x={evil}")]), format!("{evil}\n"));
        let template = typed(World::new(), "template", "one", "```template\n{{.x}}\n```");
        let evil = "{{.y}} {{template \"x\"}}";
        let (_, filled) = outcome(&template, &["one", &format!("x={evil}"), "y=secret"]);
        assert_eq!(filled["output"], format!("{evil}\n"));
    }

    #[test]
    fn numbers_are_exact_or_an_error() {
        let world = script(World::new(), "one", "echo \"$PARAM_N\"; cat \"$PARAMS_FILE\"");
        for (given, file) in [
            ("9223372036854775808", "9223372036854775808"),
            ("18446744073709551616", "\"18446744073709551616\""),
            ("1e400", "\"1e400\""),
            ("-0", "-0"),
            ("NaN", "\"NaN\""),
            ("0.10", "0.10"),
        ] {
            let said = stdout(&world, &["one", &format!("n={given}")]);
            assert_eq!(said, format!("{given}\n{{\"n\":{file}}}"));
        }
        let schema = json!({"properties": {"n": {"type": "number"}}});
        let world = taking(world, "two", "echo ran", &schema);
        for given in ["18446744073709551616", "1e400", "NaN"] {
            let (code, outcome) = outcome(&world, &["two", &format!("n={given}")]);
            assert_eq!((code, &outcome["status"]), (Some(1), &json!("invalid")), "{given}");
        }
        let (_, large) = outcome(&world, &["two", "--params", "{\"n\": 1e400}"]);
        assert!(large["message"].as_str().unwrap().contains("`n`"), "{large:#}");
    }

    #[test]
    fn a_name_without_a_letter_of_ascii_has_no_variable() {
        let text = "env | grep PARAM_ | sort; cat \"$PARAMS_FILE\"";
        let world = script(World::new(), "one", text);
        let (code, ran) = outcome(&world, &["one", "城市=Wuhan", "日期=today", "größe-2=3"]);
        let printed = "PARAM_GR__E_2=3\n{\"城市\":\"Wuhan\",\"日期\":\"today\",\"größe-2\":3}";
        assert_eq!((code, &ran["stdout"]), (Some(0), &json!(printed)), "{ran:#}");
        let (code, same) = outcome(&world, &["one", "größe=1", "gräße=2"]);
        assert_eq!((code, &same["status"]), (Some(1), &json!("invalid")), "{same:#}");
        assert!(same["message"].as_str().unwrap().contains("PARAM_GR__E"), "{same:#}");
    }

    #[test]
    fn what_no_variable_can_hold_is_an_error_and_what_is_too_large_stands_in_the_file() {
        let text = "echo \"${PARAM_LONG-none}\"; wc -c < \"$PARAMS_FILE\"";
        let world = script(World::new(), "one", text);
        let (code, same) = outcome(&world, &["one", "a-b=1", "a_b=2"]);
        assert_eq!((code, &same["status"]), (Some(1), &json!("invalid")), "{same:#}");
        assert!(same["message"].as_str().unwrap().contains("PARAM_A_B"), "{same:#}");
        let (_, nul) = outcome(&world, &["one", "--params", "{\"x\": \"a\\u0000b\"}"]);
        assert!(nul["message"].as_str().unwrap().contains("NUL"), "{nul:#}");
        let (_, nul) = outcome(&world, &["one", "--params", "{\"a\\u0000b\": 1}"]);
        assert!(nul["message"].as_str().unwrap().contains("NUL"), "{nul:#}");
        let long = format!("{{\"long\": \"{}\"}}", "x".repeat(200_000));
        let world = world.file("long.json", long);
        let (code, large) = outcome(&world, &["one", "--params", "@long.json"]);
        assert_eq!((code, &large["stdout"]), (Some(0), &json!("none\n200011\n")), "{large:#}");
        assert!(large["message"].as_str().unwrap().contains("`long`"), "{large:#}");
        let world = world.file("huge.json", format!("{{\"x\": \"{}\"}}", "x".repeat(9_000_000)));
        let (code, huge) = outcome(&world, &["one", "--params", "@huge.json"]);
        assert_eq!((code, &huge["status"]), (Some(1), &json!("invalid")));
        assert!(huge["message"].as_str().unwrap().contains("8388608 bytes"), "{huge:#}");
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for arguments in
            [[&format!("x={deep}"), "y=1"], ["--params", &format!("{{\"x\": {deep}}}")]]
        {
            let (_, deep) = outcome(&world, &["one", arguments[0], arguments[1]]);
            assert!(deep["message"].as_str().unwrap().contains("nested too deeply"), "{deep:#}");
        }
    }

    #[test]
    fn a_schema_leads_nowhere() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = format!("http://{}/schema.json", listener.local_addr().unwrap());
        let mut doubling = Map::new();
        for number in 0..30 {
            let next = json!({"$ref": format!("#/$defs/{}", number + 1)});
            doubling.insert(number.to_string(), json!({"anyOf": [next, next]}));
        }
        for schema in [
            json!({"$ref": address}),
            json!({"properties": {"x": {"$ref": address}}}),
            json!({"$schema": address}),
            json!({"properties": {"x": {"$ref": "file:///etc/passwd"}}}),
            json!({"properties": {"x": {"$ref": "#"}}}),
            json!({"$ref": "#/$defs/0", "$defs": doubling}),
            json!({"properties": {"x": {"pattern": "(a{500}){500}"}}}),
        ] {
            let world = taking(World::new(), "one", "echo ran", &schema);
            let (code, outcome) = outcome(&world, &["one", "x=a"]);
            assert_eq!((code, &outcome["status"]), (Some(1), &json!("invalid")), "{schema}");
            assert!(outcome["message"].as_str().unwrap().contains("schema"), "{outcome:#}");
        }
        assert!(listener.accept().is_err(), "somebody was asked for a schema");
        let schema = json!({"properties": {"x": {"pattern": "^(a+)+$"}}});
        let world = taking(World::new(), "one", "echo ran", &schema);
        let (_, outcome) = outcome(&world, &["one", &format!("x={}b", "a".repeat(50_000))]);
        assert_eq!(outcome["status"], "invalid");
    }

    #[test]
    fn only_declared_variables_of_the_environment_are_passed_on() {
        let world = script(World::new(), "one", "echo \"${TOKEN-none} ${OTHER-none}\"");
        let with = |arguments: &[&str]| {
            let variables = [("TOKEN", "secret"), ("OTHER", "hidden"), ("LD_PRELOAD", "")];
            let arguments = ["run", "one", "--json"].iter().chain(arguments).chain(&SKILLS);
            let ran = world.run_with(&variables, arguments);
            (ran.code, ran.json()["outcome"].take())
        };
        assert_eq!(with(&[]).1["stdout"], "none none\n");
        assert_eq!(with(&["--env", "TOKEN"]).1["stdout"], "secret none\n");
        for name in ["LD_PRELOAD", "PATH", "BASH_ENV", "A=B", "BASH_FUNC_x%%", ""] {
            let (code, outcome) = with(&["--env", name]);
            assert_eq!((code, &outcome["status"]), (Some(1), &json!("invalid")), "{name}");
            assert_eq!(outcome["stdout"], json!(null), "{name}");
        }
        for (name, why) in [("A=B", "takes only a name"), ("PARAMS_FILE", "gets its own")] {
            let (_, outcome) = with(&["--env", name]);
            assert!(outcome["message"].as_str().unwrap().contains(why), "{outcome:#}");
        }
        let (code, missing) = with(&["--env", "NOT_SET"]);
        assert_eq!((code, &missing["status"]), (Some(1), &json!("invalid")), "{missing:#}");
        let world = world.file("prowess.toml", "[policy]\nenvironment = [\"OTHER\"]\n");
        let given = |more: &[&'static str]| {
            let arguments = ["run", "one", "--json"].iter().chain(&SKILLS).chain(more);
            world.run_with(&[("OTHER", "given")], arguments).json()["outcome"]["stdout"].take()
        };
        assert_eq!(given(&[]), "none none\n");
        assert_eq!(given(&["--config", "prowess.toml"]), "none given\n");
    }

    #[test]
    fn only_what_is_named_is_readable_beside_the_skill() {
        let world = World::new().file("data/in.txt", "given\n").file("other/in.txt", "secret\n");
        let [data, other] = ["data", "other"].map(|it| world.path(it).display().to_string());
        let text = format!(
            "cat {data}/in.txt; cat {other}/in.txt; echo x > {data}/in.txt; cat {data}/in.txt"
        );
        let world = script(world, "one", &text);
        let (_, outcome) = outcome(&world, &["one", "--read", "data"]);
        assert_eq!(outcome["stdout"], "given\ngiven\n", "{outcome:#}");
        assert_eq!(fs::read_to_string(world.path("data/in.txt")).unwrap(), "given\n");
        let ran = run(&world, &["one", "--read", "nowhere"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""));
        assert!(ran.stderr.contains("nowhere"), "{}", ran.stderr);
    }
}

mod whatever_a_script_does_is_an_outcome {
    use super::*;

    #[test]
    fn a_script_that_fails_is_told_with_its_code_and_both_streams() {
        let world = script(World::new(), "one", "echo out; echo err >&2; exit 3");
        let (code, outcome) = outcome(&world, &["one"]);
        assert_eq!(code, Some(1));
        for (key, value) in [
            ("status", json!("failed")),
            ("exit_code", json!(3)),
            ("stdout", json!("out\n")),
            ("stderr", json!("err\n")),
        ] {
            assert_eq!(outcome[key], value, "{outcome:#}");
        }
        assert!(outcome["duration_ms"].is_u64(), "{outcome:#}");
        let text = run(&world, &["one"]);
        assert_eq!((text.code, text.stdout()), (Some(1), "out\n"));
        assert!(text.stderr.starts_with("err\n") && text.stderr.contains('3'), "{}", text.stderr);
    }

    #[test]
    fn a_script_that_a_signal_ends_is_told_with_the_signal() {
        let world = script(World::new(), "one", "kill -9 $$");
        let (code, outcome) = outcome(&world, &["one"]);
        let told = (code, &outcome["status"], &outcome["signal"]);
        assert_eq!(told, (Some(1), &json!("killed"), &json!(9)), "{outcome:#}");
    }

    #[test]
    fn a_script_that_takes_too_long_is_ended_with_all_it_has_started() {
        let word = format!("61.{}", std::process::id());
        let text = format!(
            "trap '' TERM HUP\necho started\n(setsid sh -c \"trap '' TERM HUP; sleep {word}\" &)\nsleep {word}"
        );
        let world = script(World::new(), "one", &text);
        let (code, outcome) = outcome(&world, &["one", "--timeout", "3s"]);
        assert_eq!((code, &outcome["status"]), (Some(1), &json!("timed_out")), "{outcome:#}");
        assert_eq!(outcome["stdout"], "started\n");
        until("nobody is alive", || alive(&word) == 0);
    }

    #[test]
    fn an_interrupted_run_ends_with_all_it_has_started() {
        let word = format!("62.{}", std::process::id());
        let text = format!("(setsid sleep {word} &)\necho started\nsleep {word}");
        let world = script(World::new(), "one", &text).folder("tmp");
        let (mut child, mut lines) = started(&world, &["one"]);
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        assert_eq!(first, "started\n");
        until("all are started", || alive(&word) == 2);
        let interrupt = |child: &Child| {
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        };
        interrupt(&child);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(1));
        until("nobody is alive", || alive(&word) == 0);
        until("nothing is left", || listed(&world.path("tmp")).is_empty());

        let (mut child, mut lines) = started(&world, &["one", "--json"]);
        until("all are started", || alive(&word) == 2);
        interrupt(&child);
        let mut text = String::new();
        lines.read_to_string(&mut text).unwrap();
        child.wait().unwrap();
        let json: Json = serde_json::from_str(&text).unwrap();
        let outcome = &json["outcome"];
        let told = (&outcome["status"], &outcome["stdout"], &outcome["message"]);
        let expected = (&json!("cancelled"), &json!("started\n"), &json!("interrupted"));
        assert_eq!(told, expected, "{outcome:#}");
        assert!(outcome["duration_ms"].is_u64() && outcome["sandbox"].is_string(), "{outcome:#}");
    }

    /// Starts the program without waiting for it; its temporary files are in `tmp`.
    fn started(world: &World, arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_prowess"))
            .args(["run"].iter().chain(arguments).chain(&SKILLS))
            .current_dir(world.path(""))
            .env("TMPDIR", world.path("tmp"))
            .env("HOME", world.path("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A test that is started in the background would pass on that interrupts are ignored.
            .process_group(0)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        (child, lines)
    }

    #[test]
    fn a_flood_and_bytes_that_are_no_text_are_outcomes() {
        let flood = "echo begin; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo end";
        let world = script(World::new(), "flood", flood);
        let world = script(world, "bytes", "printf 'a\\377\\376b\\n'");
        let (code, flood) = outcome(&world, &["flood"]);
        let text = flood["stdout"].as_str().unwrap();
        assert_eq!((code, &flood["status"]), (Some(0), &json!("ok")));
        assert!(text.starts_with("begin\n") && text.ends_with("\nend\n"), "{}", &text[..100]);
        assert!(text.len() < 1_100_000, "{}", text.len());
        let cut = flood["stdout_cut"].as_u64().unwrap();
        assert!(cut > 3_900_000 && text.contains(&cut.to_string()), "{cut}");
        let shown = run(&world, &["flood"]);
        let text = shown.stdout();
        assert!(text.starts_with("begin\n") && text.ends_with("x\nend\n"), "{}", &text[..100]);
        assert!(text.contains("x\n[… ") && text.contains(" bytes were cut …]\nx"), "no line");
        assert!(text.len() < 1_600_000, "{}", text.len());
        assert_eq!(stdout(&world, &["bytes"]), "a\u{fffd}\u{fffd}b\n");
        assert_eq!(run(&world, &["bytes"]).out, b"a\xff\xfeb\n");
    }

    #[test]
    fn output_comes_as_it_is_printed() {
        let word = format!("63.{}", std::process::id());
        let text = format!("echo first; echo second >&2; sleep {word}");
        let world = script(World::new(), "one", &text).folder("tmp");
        let (mut child, mut lines) = started(&world, &["one"]);
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (mut out, mut err) = (String::new(), String::new());
        lines.read_line(&mut out).unwrap();
        errors.read_line(&mut err).unwrap();
        assert_eq!((&*out, &*err), ("first\n", "second\n"));
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
        until("nobody is alive", || alive(&word) == 0);
    }

    #[test]
    fn a_terminal_is_shown_what_a_script_prints_and_obeys_none_of_it() {
        let text = "printf 'a\\033[2Jb \\342\\200\\256c\\n'; printf 'e\\033[2Jf\\n' >&2";
        let world = script(World::new(), "one", text);
        assert_eq!(run(&world, &["one"]).out, "a\x1b[2Jb \u{202e}c\n".as_bytes());
        let line = format!("{} run one --dir skills", env!("CARGO_BIN_EXE_prowess"));
        let shown = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .current_dir(world.path(""))
            .env("HOME", world.path("home"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        // On a slow machine a clock is drawn and erased.
        let shown = String::from_utf8(shown.stdout).unwrap().replace("\r\x1b[K", "");
        assert!(shown.contains("a\\u{1b}[2Jb \\u{202e}c"), "{shown:?}");
        assert!(shown.contains("e\\u{1b}[2Jf"), "{shown:?}");
        assert!(!shown.contains('\x1b') && !shown.contains('\u{202e}'), "{shown:?}");
    }

    #[test]
    fn without_a_file_to_hand_over_no_directory_is_made() {
        let world = script(World::new(), "none", "echo hi").folder("there");
        let world = script(world, "some", "echo x > made");
        let ran = run(&world, &["none", "--output", "out/deep"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "hi\n"), "{}", ran.stderr);
        let note = "it created no files, so nothing was copied to `out/deep`";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        assert!(!world.path("out").exists());
        assert_eq!(run(&world, &["none", "--output", "there"]).code, Some(0));
        assert!(world.path("there").exists());
        assert_eq!(run(&world, &["some", "--output", "out/deep"]).code, Some(0));
        assert_eq!(listed(&world.path("out/deep")), ["made"]);
        let always = "[policy]\napprovals = \"always\"\n";
        let world = world.file("home/.config/prowess/prowess.toml", always);
        assert_eq!(run(&world, &["some", "--output", "refused"]).code, Some(1));
        assert!(!world.path("refused").exists());
    }

    #[test]
    fn what_a_script_leaves_behind_can_be_taken_along() {
        let text = "mkdir -p a/b; echo text > a/b/c.txt; ln -s /etc/passwd link; ln -s a/b/c.txt near; mkfifo pipe";
        let world = script(World::new(), "one", text).file("there/a/b/c.txt", "mine");
        let (code, outcome) = outcome(&world, &["one", "--output", "out"]);
        assert_eq!((code, &outcome["status"]), (Some(0), &json!("ok")), "{outcome:#}");
        assert_eq!(fs::read_to_string(world.path("out/a/b/c.txt")).unwrap(), "text\n");
        assert_eq!(listed(&world.path("out")), ["a"]);
        assert_eq!(
            outcome["left_out"],
            json!(["link: it is a link", "near: it is a link", "pipe: it is not a regular file"])
        );
        let ran = run(&world, &["one", "--output", "there"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let there = fs::canonicalize(world.path("there/a/b/c.txt")).unwrap();
        let told = format!("`{}` already exists", there.display());
        assert!(ran.stderr.contains(&told) && ran.stderr.contains("hint:"), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&there).unwrap(), "mine");

        let text = "echo ran > ok; echo x > \"$(printf 'a\\377b')\"; mkdir -p .git .claude; \
                    echo x > \"$(printf 'c\\033[31m')\"; \
                    echo x > prowess.toml; echo x > .git/config; echo x > .claude/any; \
                    mkdir -p bare/objects bare/refs; echo x > bare/objects/x; echo x > bare/refs/x; \
                    echo x > bare/HEAD; echo x > bare/config; echo x > bare/notes";
        let world = script(world, "two", text).file("file", "");
        let ran = run(&world, &["two", "--output", "two"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(listed(&world.path("two")), ["a\u{fffd}b", "bare", "ok"]);
        assert_eq!(listed(&world.path("two/bare")), ["notes"]);
        let told = "not copied: bare/config: git would treat it as part of a repository";
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
        for name in ["prowess.toml", ".git/config", ".claude/any"] {
            let told = format!("not copied: {name}: it is protected");
            assert!(ran.stderr.contains(&told), "{}", ran.stderr);
        }
        assert!(ran.stderr.contains("its name contains control characters"), "{}", ran.stderr);
        ran.assert_safe();
        let ran = run(&world, &["two", "--output", "file"]);
        assert_eq!((ran.code, ran.stdout()), (Some(2), ""), "{}", ran.stderr);
        let told = world.path("file").display().to_string();
        assert!(ran.stderr.contains(&told) && !ran.stderr.contains("ran"), "{}", ran.stderr);
        let large = "truncate -s 200K a; truncate -s 200K b; truncate -s 10 c";
        let world =
            script(world, "large", large).file("prowess.toml", "[limits]\nwork = \"300 KiB\"\n");
        let ran = run(&world, &["large", "--output", "large"]);
        assert_eq!((ran.code, listed(&world.path("large")).join(" ")), (Some(1), "a c".into()));
        for told in ["2 of 3 files", "not copied: b: ", "`limits.work`"] {
            assert!(ran.stderr.contains(told), "{}", ran.stderr);
        }
    }

    #[test]
    fn running_without_a_sandbox_must_be_typed_and_is_stamped() {
        let world = World::new();
        let file = world.path("written");
        let text = format!("echo x > {} && echo written", file.display());
        let world = script(world, "one", &text);
        let (_, held) = outcome(&world, &["one"]);
        assert!(!file.exists(), "{held:#}");
        assert!(["landlock", "strong"].contains(&held["sandbox"].as_str().unwrap()), "{held:#}");
        let (code, free) = outcome(&world, &["one", "--unsandboxed"]);
        assert_eq!((code, file.exists(), &free["sandbox"]), (Some(0), true, &json!("none")));
        let ran = run(&world, &["one", "--unsandboxed"]);
        assert!(ran.stderr.contains("warning: running without a sandbox"), "{}", ran.stderr);
        let world = script(world, "two", "echo 'Permission denied' >&2");
        let (_, blamed) = outcome(&world, &["two"]);
        assert!(blamed["denied"].is_array(), "{blamed:#}");
        let (_, free) = outcome(&world, &["two", "--unsandboxed"]);
        assert_eq!(free["denied"], Json::Null, "{free:#}");
        assert!(!run(&world, &["one"]).stderr.contains("nothing holds"));
        world.run_with(&[("HOME", "relative")], ["run", "one", "--dir", "skills"]);
        assert!(!world.path("relative").exists());
        let gone = world.path("gone");
        let home = [("HOME", gone.to_str().unwrap())];
        let ran = world.run_with(&home, ["run", "one", "--dir", "skills"]);
        assert!(!gone.exists() && ran.stderr.contains("nothing is logged"), "{}", ran.stderr);
        let log = fs::read_to_string(world.path("home/.local/state/prowess/audit.jsonl")).unwrap();
        let lines: Vec<Json> = log.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert!(lines.iter().any(|it| it["sandbox"] == "none" && it["skill"] == "one"), "{log}");
    }
}

mod a_script_among_the_files_of_a_skill_can_be_run {
    use super::*;

    fn with_scripts() -> World {
        World::new()
            .skill("one", "a")
            .file("skills/one/scripts/show.sh", "printf '<%s>' \"$@\"; echo")
            .file("skills/one/scripts/perl", "#!/usr/bin/env perl\nprint \"perl @ARGV\\n\";\n")
            .file("skills/one/scripts/sourcing.sh", ". \"$(dirname \"$0\")/lib.sh\"; hello")
            .file(
                "skills/one/scripts/lib.sh",
                "hello() { cat \"$SKILL_DIR/data/text.txt\"; echo \"$SKILL_NAME\"; }",
            )
            .file("skills/one/scripts/writing.sh", "echo x > \"$SKILL_DIR/data/text.txt\"")
            .file("skills/one/data/text.txt", "data\n")
            .file("skills/one/data/large.bin", vec![b'x'; 150_000])
            .file("outside.sh", "echo outside")
    }

    #[test]
    fn whoever_runs_instructions_is_told_of_the_scripts_beside_them() {
        let world = with_scripts().skill("plain", "a");
        let ran = run(&world, &["one"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "# one\n"), "{}", ran.stderr);
        let note =
            "it has 5 scripts; run one with `prowess run one --script scripts/lib.sh --dir skills`";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        assert_eq!(run(&world, &["plain"]).stderr, "");
    }

    #[test]
    fn arguments_without_a_script_are_told() {
        let world = script(with_scripts(), "greet", "echo $PARAM_WHO");
        for (name, hint) in [
            ("greet", "use `KEY=VALUE`; the script gets it as `$PARAM_KEY`"),
            ("one", "`--script scripts/lib.sh -- ARGUMENTS` runs one of its files"),
        ] {
            let ran = world.run(["run", name, "--dir", "skills", "--", "a", "b"]);
            assert_eq!((ran.code, ran.stdout()), (Some(1), ""), "{}", ran.stderr);
            let told = format!("`{name}` takes no arguments after `--`");
            assert!(ran.stderr.contains(&told) && ran.stderr.contains(hint), "{}", ran.stderr);
        }
    }

    #[test]
    fn a_script_that_is_not_there_is_told_with_json() {
        let ran = run(&with_scripts(), &["one", "--script", "scripts/sho.sh", "--json"]);
        let said = ran.json();
        assert_eq!((ran.code, &said["outcome"]["status"]), (Some(1), &json!("not_found")));
        assert_eq!(said["error"], "skill `one` has no resource `scripts/sho.sh`");
        assert_eq!(said["hint"], "did you mean `scripts/show.sh`?");
        let well = run(&with_scripts(), &["one", "--script", "scripts/show.sh", "--json"]).json();
        assert_eq!((&well["error"], &well["hint"]), (&Json::Null, &Json::Null));
    }

    #[test]
    fn scripts_that_the_instructions_name_are_suggested_first() {
        let text = "---\nname: one\ndescription: a\n---\n\nRun `python {baseDir}/scripts/zebra.py`, then `mule.py`. Not beta.pyc.\n";
        let files = ["__init__", "alpha", "beta", "mule", "zebra", "lib/__init__"];
        let world = files.iter().fold(World::new().document("one", text), |world, name| {
            world.file(format!("skills/one/scripts/{name}.py"), "print(1)\n")
        });
        let ran = run(&world, &["one"]);
        let note = "it has 4 scripts; run one with `prowess run one --script scripts/zebra.py --dir skills`";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        let ran = world.run(["run", "one", "--dir", "skills", "--", "a"]);
        assert!(ran.stderr.contains("`--script scripts/zebra.py -- ARG"), "{}", ran.stderr);
        let ran = run(&world, &["one", "--script", "nothing/like/it.rb"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let order = ["zebra", "mule", "alpha", "beta"].map(|it| format!("`scripts/{it}.py`"));
        assert!(ran.stderr.contains(&order.join(", ")), "{}", ran.stderr);
        for typed in ["init.py", "__init__", "scripts/__init_.py"] {
            let ran = run(&world, &["one", "--script", typed]);
            assert!(!ran.stderr.contains("`scripts/__init__.py`"), "{}", ran.stderr);
            assert!(ran.stderr.contains("`scripts/zebra.py`"), "{}", ran.stderr);
        }
        let ran = run(&world, &["one", "--script", "bin/alpha.py"]);
        assert!(ran.stderr.contains("did you mean `scripts/alpha.py`?"), "{}", ran.stderr);
        let world = World::new().skill("one", "a").file("skills/one/scripts/__init__.py", "");
        assert_eq!(run(&world, &["one"]).stderr, "");
    }

    #[test]
    fn its_first_line_or_its_ending_says_what_runs_it_and_it_gets_its_arguments() {
        let world = with_scripts();
        let run = |arguments: &[&str]| {
            let arguments = ["run", "one", "--json"].iter().chain(&SKILLS).chain(arguments);
            let ran = world.run(arguments);
            assert_eq!(ran.code, Some(0), "{}", ran.stdout());
            ran.json()["outcome"]["stdout"].as_str().unwrap().to_owned()
        };
        let arguments = ["--script", "scripts/show.sh", "--", "a b\tc", "", "-x", "k=v", "$(id)"];
        assert_eq!(run(&arguments), "<a b\tc><><-x><k=v><$(id)>\n");
        assert_eq!(run(&["--script", "./scripts/perl", "--", "1", "2"]), "perl 1 2\n");
        let world = world.file("skills/one/scripts/odd", "#!/nowhere/odd\necho ran\n");
        let (code, odd) = outcome(&world, &["one", "--script", "scripts/odd"]);
        assert_eq!((code, &odd["status"]), (Some(2), &json!("refused")), "{odd:#}");
        assert!(odd["message"].as_str().unwrap().contains("/nowhere/odd"), "{odd:#}");
    }

    #[test]
    fn it_finds_the_files_beside_it() {
        let world = with_scripts();
        assert_eq!(stdout(&world, &["one", "--script", "scripts/sourcing.sh"]), "data\none\n");
        let (code, writing) = outcome(&world, &["one", "--script", "scripts/writing.sh"]);
        assert_eq!((code, &writing["status"]), (Some(1), &json!("failed")), "{writing:#}");
        assert_eq!(fs::read_to_string(world.path("skills/one/data/text.txt")).unwrap(), "data\n");
        let world =
            world.file("skills/one/scripts/large.sh", "wc -c < \"$SKILL_DIR/data/large.bin\"");
        assert_eq!(stdout(&world, &["one", "--script", "scripts/large.sh"]), "150000\n");
    }

    #[test]
    fn only_files_of_the_skill_are_run() {
        let world = with_scripts().link("skills/one/scripts/link.sh", "../../../outside.sh");
        for path in [
            "../../outside.sh",
            "scripts/../../../outside.sh",
            "/bin/sh",
            "scripts/link.sh",
            "scripts/none.sh",
            "data/text.txt",
            "SKILL.md",
            "",
        ] {
            let (code, outcome) = outcome(&world, &["one", "--script", path]);
            assert_eq!((code, &outcome["stdout"]), (Some(1), &json!(null)), "{path}: {outcome:#}");
            assert!(["not_found", "invalid"].contains(&outcome["status"].as_str().unwrap()));
        }
    }
}

mod a_script_runs_among_the_files_that_were_approved {
    use super::*;

    #[test]
    fn the_copy_is_like_the_folder() {
        let world = super::script(
            World::new(),
            "one",
            "cd \"$SKILL_DIR\" && ls -F . deep && \"./run\" && cat deep/link && echo x > data",
        );
        let world = world.file("skills/one/run", "#!/bin/sh\necho ran\n");
        let world = world.file("skills/one/data", "data\n").file("skills/one/deep/x", "");
        let world = world.link("skills/one/deep/link", "../data");
        let run = world.path("skills/one/run");
        fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
        let (code, outcome) = outcome(&world, &["one"]);
        let listed = ".:\nSKILL.md\ndata\ndeep/\nrun*\n\ndeep:\nlink@\nx\nran\ndata\n";
        assert_eq!((code, &outcome["stdout"]), (Some(1), &json!(listed)), "{outcome:#}");
        assert!(outcome["stderr"].as_str().unwrap().contains("ead-only"), "{outcome:#}");
        assert_eq!(fs::read_to_string(world.path("skills/one/data")).unwrap(), "data\n");
        // A script behind a linked folder runs as well, unless it belongs to another skill.
        let world = world.file("skills/shared/run", "#!/bin/sh\necho ran\n");
        let world = world.skill("two", "b").link("skills/two/linked", "../shared");
        let ran = world.run(["run", "two", "--script", "linked/run", "--dir", "skills"]);
        assert_eq!((ran.code, ran.stdout()), (Some(0), "ran\n"), "{}", ran.stderr);
    }
}
