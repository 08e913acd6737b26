//! Files that tools read and write.

use std::fs;

use serde_json::{Value as Json, json};

use crate::world::World;

mod nothing_leads_out_of_the_roots {
    use super::*;

    #[test]
    fn no_tool_forges_an_approval() {
        let config = "[policy]\ncommands = ['cp', 'cat']\n[model]\nkey_file = 'my.key'\n";
        let world = World::new()
            .file("evil", "forged")
            .file("my.key", "approved")
            .file("ci.toml", config)
            .document("peek", PEEK);
        let state = "home/.local/state/prowess";
        let book = &format!("{state}/approvals.json");
        let tool = |name: &str, input: Json| {
            world.run(["tool", "--config", "ci.toml", "--yes", name, &input.to_string()])
        };
        for path in [&**book, &format!("{state}/audit.jsonl"), "my.key", "ci.toml"] {
            let input = json!({"operation": "write", "path": path, "content": "forged"});
            assert_ne!(tool("file_operations", input).code, Some(0), "{path}");
            tool("execute_command", json!({"command": format!("cp evil {path}")}));
            let now = fs::read_to_string(world.path(path)).unwrap_or_default();
            assert_ne!(now, "forged", "{path}");
        }
        world.write(book, "approved");
        for path in [&**book, "my.key"] {
            for ran in [
                tool("read_file", json!({"path": path})),
                tool("file_operations", json!({"operation": "read", "path": path})),
                tool("execute_command", json!({"command": format!("cat {path}")})),
            ] {
                assert!(!ran.stdout().contains("approved"), "{path}: {}", ran.stdout());
            }
        }
        assert_eq!(fs::read_to_string(world.path("ci.toml")).unwrap(), config);
        world.write("home/other", "seen");
        let home = world.path("home").display().to_string();
        let parameters = format!("home={home}");
        let peek = ["run", "peek", &parameters, "--dir", "skills", "--read", "home"];
        let ran = world.run(peek);
        assert!(ran.stdout().contains("seen"), "{} {}", ran.stdout(), ran.stderr);
        assert!(!ran.stdout().contains("approved"), "{}", ran.stdout());
    }

    /// A skill whose script looks around in a home.
    const PEEK: &str = "---\nname: peek\ndescription: d\ntype: script\n---\n```sh\ncat \"$PARAM_HOME/other\" \"$PARAM_HOME/.local/state/prowess/approvals.json\"\n```\n";
}
