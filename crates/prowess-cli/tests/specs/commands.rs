//! The commands that `execute_command` runs and refuses.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use serde_json::json;

use crate::world::World;

mod only_listed_commands_run {
    use super::*;

    #[test]
    fn commands_find_the_interpreters_of_their_user() {
        let world = World::new();
        let venv = world.path("home/venv");
        let made =
            Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv).status();
        assert!(made.unwrap().success());
        let libraries = fs::read_dir(venv.join("lib")).unwrap().next().unwrap().unwrap().path();
        fs::write(libraries.join("site-packages/greeting.py"), "print('from venv')\n").unwrap();
        let python = venv.join("bin/python3");
        let program = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        program(&venv.join("bin/greet"), &format!("#!{}\nimport greeting\n", python.display()));
        program(&venv.join("bin/whoami"), "#!/bin/sh\necho evil\n");
        program(&world.path("home/bin/other"), "#!/bin/sh\necho evil\n");
        let path = format!("{}:/usr/bin:/bin", world.path("home/bin").display());
        let active = [("VIRTUAL_ENV", venv.to_str().unwrap()), ("PATH", &*path)];
        let run = |variables: &[(&str, &str)], line: &str| {
            let input = json!({ "command": line }).to_string();
            let ran = world.run_with(variables, ["tool", "execute_command", &input, "--yes"]);
            format!("{}{}", ran.stdout(), ran.stderr)
        };
        for line in ["python3 -m greeting", "python -m greeting", "greet"] {
            let said = run(&active, line);
            assert!(said.contains("from venv"), "{line}: {said}");
        }
        assert!(!run(&active, "whoami").contains("evil"));
        assert!(run(&active, "other").contains("there is no program `other`"));
        assert!(run(&[], "greet").contains("there is no program `greet`"));
        assert!(!run(&[], "python3 -m greeting").contains("from venv"));
    }
}
