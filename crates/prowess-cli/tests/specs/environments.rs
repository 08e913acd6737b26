//! The needs of the scripts of skills: declared, imported, missing.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value as Json, json};

use crate::world::{SKILLS, World};

/// Returns a world with a skill `pdf` with these files.
fn pdf(files: &[(&str, &str)]) -> World {
    let world = World::new().skill("pdf", "Reads PDF files.");
    files.iter().fold(world, |world, (path, text)| world.file(format!("skills/pdf/{path}"), text))
}

/// Returns the needs of the skill `pdf` from `show --json`.
fn needs(world: &World) -> Json {
    let ran = world.run(["show", "pdf", "--json"].iter().chain(&SKILLS));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.json()["needs"].clone()
}

/// Returns the environment of a script.
fn environment<'a>(needs: &'a Json, script: &str) -> &'a Json {
    let scripts = needs["scripts"].as_array().unwrap();
    let found = scripts.iter().find(|it| it["path"] == script);
    let found = found.unwrap_or_else(|| panic!("{script}: {scripts:#?}"));
    match found["environment"].as_u64() {
        Some(at) => &needs["environments"][at as usize],
        None => &Json::Null,
    }
}

/// Returns the packages of a script: the requirement, `?` for an optional one, `~` for a guess, and
/// the place.
fn packages(needs: &Json, script: &str) -> Vec<String> {
    let packages = environment(needs, script)["packages"].as_array().cloned().unwrap_or_default();
    let own = packages.iter().filter(|it| {
        let scripts = it["scripts"].as_array().unwrap();
        scripts.is_empty() || scripts.contains(&json!(script))
    });
    let shown = |it: &Json| {
        let sign = |key: &str, sign: &'static str| if it[key] == true { sign } else { "" };
        let (optional, guess) = (sign("is_optional", "?"), sign("is_guessed", "~"));
        format!("{}{optional}{guess} {}", it["requirement"].as_str().unwrap(), place(&it["place"]))
    };
    own.map(shown).collect()
}

fn versions(environment: &Json) -> Vec<String> {
    let versions = environment["versions"].as_array().unwrap().iter();
    versions
        .map(|it| format!("{} {}", it["requirement"].as_str().unwrap(), place(&it["place"])))
        .collect()
}

fn place(place: &Json) -> String {
    format!("{}:{}", place["file"].as_str().unwrap(), place["line"])
}

fn notes(needs: &Json) -> Vec<String> {
    let notes = needs["notes"].as_array().unwrap().iter();
    notes.map(|it| format!("{} {}", place(&it["place"]), it["message"].as_str().unwrap())).collect()
}

mod what_a_script_needs_is_read_from_what_is_declared {
    use super::*;

    #[test]
    fn the_header_of_a_python_script_counts_for_that_script() {
        let header = "#!/usr/bin/env -S uv run --script\n# /// script\n# requires-python = \">=3.11\"\n\
            # dependencies = [\n#   \"pypdf>=4\",\n#   \"rich\",\n# ]\n# [[tool.uv.index]]\n\
            # url = \"https://example.com\"\n# ///\nimport numpy\n";
        let needs = needs(&pdf(&[
            ("scripts/a.py", header),
            ("scripts/b.py", "import numpy"),
            ("requirements.txt", "lxml\n"),
        ]));
        assert_eq!(
            packages(&needs, "scripts/a.py"),
            ["pypdf>=4 scripts/a.py:5", "rich scripts/a.py:6"]
        );
        let own = environment(&needs, "scripts/a.py");
        assert_eq!((&own["declared"], &own["ecosystem"]), (&json!("header"), &json!("python")));
        assert_eq!(versions(own), [">=3.11 scripts/a.py:3"]);
        assert_eq!(packages(&needs, "scripts/b.py"), ["lxml requirements.txt:1"]);
        assert_eq!(notes(&needs), ["scripts/a.py:8 `tool.uv.index` is not followed"]);
    }

    #[test]
    fn the_nearest_file_above_a_script_counts() {
        let needs = needs(&pdf(&[
            ("requirements.txt", "# top\nrequests\n"),
            ("scripts/deep/a.py", ""),
            ("scripts/b.py", ""),
            (
                "scripts/deep/requirements.txt",
                "-r ../more.txt\n--index-url https://user:secret@example.com\n\
                 a==1 \\\n  --hash=sha256:00\nb; sys_platform == 'win32'  # here\n",
            ),
            ("scripts/more.txt", "c[x]~=2.0\n"),
        ]));
        assert_eq!(
            packages(&needs, "scripts/deep/a.py"),
            [
                "a==1 --hash=sha256:00 scripts/deep/requirements.txt:3",
                "b; sys_platform == 'win32' scripts/deep/requirements.txt:5",
                "c[x]~=2.0 scripts/more.txt:1",
            ]
        );
        assert_eq!(packages(&needs, "scripts/b.py"), ["requests requirements.txt:2"]);
        assert_eq!(
            notes(&needs),
            ["scripts/deep/requirements.txt:2 `--index-url` is not followed"]
        );
        assert!(!needs.to_string().contains("secret"));
    }

    #[test]
    fn a_python_project_declares_packages_groups_and_its_python() {
        let project = "[project]\nname = \"x\"\nrequires-python = \">=3.10\"\n\
            dependencies = [\"pypdf\", \"own @ file:///x\"]\n[project.optional-dependencies]\nocr = [\"pytesseract\"]\n\
            [dependency-groups]\ndev = [\"pytest\", {include-group = \"x\"}]\n";
        let needs = needs(&pdf(&[
            ("pyproject.toml", project),
            ("uv.lock", ""),
            (".python-version", "3.12\n"),
            ("requirements.txt", "other\n"),
            ("scripts/a.py", ""),
        ]));
        assert_eq!(
            packages(&needs, "scripts/a.py"),
            [
                "pypdf pyproject.toml:4",
                "own @ file:///x pyproject.toml:4",
                "pytesseract? pyproject.toml:6",
                "pytest? pyproject.toml:8",
            ]
        );
        let environment = environment(&needs, "scripts/a.py");
        assert_eq!(
            versions(environment),
            [">=3.10 pyproject.toml:3", "==3.12.* .python-version:1"]
        );
        assert_eq!(environment["lock_file"], "uv.lock");
        assert_eq!(environment["packages"][1]["source"], "path");
        assert_eq!(environment["packages"][3]["group"], "dev");
    }

    #[test]
    fn projects_for_node_and_deno_come_with_their_lock_file() {
        let package = "{\n \"packageManager\": \"pnpm@9.1.0+sha512.00\",\n \"engines\": {\"node\": \">=18\"},\n \
            \"dependencies\": {\n  \"docx\": \"^9.0.0\",\n  \"own\": \"file:../own\",\n  \"far\": \"github:a/b\"\n },\n \
            \"devDependencies\": {\"vitest\": \"*\"}\n}";
        let deno = "{\n // what it needs\n \"imports\": {\n  \"path\": \"jsr:@std/path@1\",\n  \"chalk\": \"npm:chalk@5\",\n },\n}";
        let needs = needs(&pdf(&[
            ("node/package.json", package),
            ("node/pnpm-lock.yaml", ""),
            ("node/a.js", "require('unlisted')"),
            ("deno/deno.jsonc", deno),
            ("deno/deno.lock", "{}"),
            ("deno/b.ts", "import 'path'; import 'npm:zod@3'"),
        ]));
        assert_eq!(
            packages(&needs, "node/a.js"),
            [
                "docx@^9.0.0 node/package.json:5",
                "own@file:../own node/package.json:6",
                "far@github:a/b node/package.json:7",
                "vitest@*? node/package.json:9",
            ]
        );
        let node = environment(&needs, "node/a.js");
        assert_eq!(versions(node), [">=18 node/package.json:3"]);
        assert_eq!(
            (&node["lock_file"], &node["manager"]),
            (&json!("node/pnpm-lock.yaml"), &json!("pnpm@9.1.0"))
        );
        let sources: Vec<&Json> = (0..3).map(|it| &node["packages"][it]["source"]).collect();
        assert_eq!(sources, ["registry", "path", "url"]);
        assert_eq!(
            packages(&needs, "deno/b.ts"),
            [
                "jsr:@std/path@1 deno/deno.jsonc:4",
                "npm:chalk@5 deno/deno.jsonc:5",
                "npm:zod@3 deno/b.ts:1"
            ]
        );
        let deno = environment(&needs, "deno/b.ts");
        assert_eq!(
            (&deno["lock_file"], &deno["ecosystem"]),
            (&json!("deno/deno.lock"), &json!("deno"))
        );
    }

    #[test]
    fn the_first_line_of_a_script_says_what_runs_it_else_its_ending() {
        let needs = needs(&pdf(&[
            ("scripts/a", "#!/usr/bin/env -S uv run --script\n"),
            ("scripts/b.ts", "#!/usr/bin/env bun\n"),
            ("scripts/c.ts", "#!/usr/bin/env -S deno run -A\n"),
            ("scripts/d.ts", "#!/usr/bin/env -S npx -y tsx\n"),
            ("scripts/e.ts", "let a: number = 1"),
            ("scripts/f.rb", ""),
            ("scripts/g.sh", "echo"),
            ("scripts/LICENSE", "Do what you want."),
            ("scripts/types.d.ts", ""),
        ]));
        let scripts = needs["scripts"].as_array().unwrap().iter();
        let scripts: Vec<String> = scripts
            .map(|it| {
                let words = it["interpreter"]["command"].as_array().unwrap().iter();
                let words: Vec<&str> = words.map(|it| it.as_str().unwrap()).collect();
                let runtime = it["interpreter"]["runtime"].as_str().unwrap();
                format!("{} {runtime}: {}", it["path"].as_str().unwrap(), words.join(" "))
            })
            .collect();
        assert_eq!(
            scripts,
            [
                "scripts/a python: uv run --script",
                "scripts/b.ts bun: bun",
                "scripts/c.ts deno: deno run -A",
                "scripts/d.ts node: npx -y tsx",
                "scripts/e.ts node: node",
                "scripts/f.rb ruby: ruby",
                "scripts/g.sh shell: sh",
            ]
        );
        assert_eq!(versions(environment(&needs, "scripts/e.ts")), [">=22.18 scripts/e.ts:0"]);
    }

    #[test]
    fn programs_and_variables_are_declared_in_words_and_in_the_ways_of_clients() {
        let text = "---\nname: pdf\ndescription: Reads PDF files.\n\
            compatibility: Requires git, docker, Python 3.12+ (optional: jq). Make sure to go online.\n\
            metadata:\n  openclaw:\n    requires:\n      bins: [gh, git]\n      anyBins: [rg, grep]\n      env: [A_TOKEN]\n    \
            primaryEnv: A_TOKEN\n  other: '{\"requires\":{\"bins\":[\"curl\", \"../x\"]}}'\n\
            prerequisites:\n  commands: [ffmpeg]\n  env_vars: [B_KEY]\n\
            required_environment_variables:\n  - name: C_KEY\n    prompt: Which?\n---\n\n# pdf\n";
        let world = World::new().document("pdf", text);
        let needs = needs(&world);
        let programs = needs["programs"].as_array().unwrap().iter().map(|it| {
            let names: Vec<&str> =
                it["any_of"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
            let optional = if it["is_optional"] == true { "?" } else { "" };
            let version = it["version"].as_str().unwrap_or_default();
            format!("{}{version}{optional} {}", names.join("|"), it["place"]["line"])
        });
        assert_eq!(
            programs.collect::<Vec<_>>(),
            [
                "git 4",
                "docker 4",
                "python3>=3.12 4",
                "jq? 4",
                "gh 8",
                "rg|grep 9",
                "curl 12",
                "ffmpeg 14"
            ]
        );
        let variables = needs["variables"].as_array().unwrap().iter();
        let variables: Vec<String> = variables
            .map(|it| format!("{} {}", it["name"].as_str().unwrap(), it["place"]["line"]))
            .collect();
        assert_eq!(variables, ["A_TOKEN 10", "B_KEY 15", "C_KEY 16"]);
    }

    #[test]
    fn well_known_programs_that_scripts_start_are_needed() {
        let world = pdf(&[
            (
                "a.py",
                "import subprocess, shutil\nsubprocess.run(['pdftoppm', '-png'])\n# subprocess.run(['ffmpeg'])\n\
                 print('qpdf')\nif shutil.which('gs'):\n    subprocess.run(['gs'])\nsubprocess.run(['own-tool'])\n",
            ),
            (
                "b.js",
                "const { execFileSync } = require('child_process');\nexecFileSync('pandoc', []);\n",
            ),
            ("c.sh", "#!/bin/sh\njq . x | cat\n"),
            ("d.py", "import pytesseract\n"),
        ]);
        let needs = needs(&world);
        let programs = needs["programs"].as_array().unwrap().iter().map(|it| {
            let place = &it["place"];
            let optional = if it["is_optional"] == true { "?" } else { "" };
            format!(
                "{}{optional} {}:{}",
                it["any_of"][0].as_str().unwrap(),
                place["file"].as_str().unwrap(),
                place["line"]
            )
        });
        assert_eq!(
            programs.collect::<Vec<_>>(),
            ["pdftoppm a.py:2", "gs? a.py:6", "pandoc b.js:2", "jq c.sh:2", "tesseract d.py:1"]
        );
    }
}

mod where_nothing_is_declared_imports_tell {
    use super::*;

    #[test]
    fn what_comes_with_python_or_with_the_skill_is_not_needed() {
        let text = "\"\"\"import doc\"\"\"\nimport os, sys\nfrom xml.etree import ElementTree\nimport beside\n\
            import lib.above\nfrom . import near\n# import comment\ntext = 'import string'\n\
            from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import typed\nimport tomllib\n";
        let needs =
            needs(&pdf(&[("scripts/a.py", text), ("scripts/beside.py", ""), ("lib/above.py", "")]));
        assert_eq!(packages(&needs, "scripts/a.py"), [""; 0]);
        assert_eq!(versions(environment(&needs, "scripts/a.py")), [">=3.11 scripts/a.py:12"]);
    }

    #[test]
    fn a_package_is_known_by_the_module_that_it_brings_else_guessed() {
        let needs = needs(&pdf(&[(
            "scripts/a.py",
            "import yaml\nfrom PIL import Image\nimport some_tool.part as tool\nfrom google.cloud import storage\n",
        )]));
        assert_eq!(
            packages(&needs, "scripts/a.py"),
            [
                "pyyaml scripts/a.py:1",
                "pillow scripts/a.py:2",
                "some-tool~ scripts/a.py:3",
                "google-cloud-storage scripts/a.py:4",
            ]
        );
        assert_eq!(environment(&needs, "scripts/a.py")["declared"], "imports");
    }

    #[test]
    fn an_import_that_a_script_can_do_without_is_optional() {
        let text = "try:\n    import rich\nexcept ImportError:\n    rich = None\n\
            try:\n    import pypdf\nexcept ImportError:\n    print('pip install pypdf')\n    sys.exit(1)\n";
        let needs = needs(&pdf(&[("scripts/a.py", text)]));
        assert_eq!(
            packages(&needs, "scripts/a.py"),
            ["rich? scripts/a.py:2", "pypdf scripts/a.py:6"]
        );
    }

    #[test]
    fn what_a_script_imports_from_its_skill_has_needs_too() {
        let needs = needs(&pdf(&[
            ("scripts/a.py", "from office.base import Base\n"),
            ("scripts/office/__init__.py", ""),
            ("scripts/office/base.py", "from . import xml_tools\n"),
            ("scripts/office/xml_tools.py", "\nimport lxml.etree\n"),
            ("scripts/b.py", "import json\n"),
        ]));
        assert_eq!(packages(&needs, "scripts/a.py"), ["lxml scripts/office/xml_tools.py:2"]);
        assert_eq!(packages(&needs, "scripts/b.py"), [""; 0]);
        let scripts = needs["scripts"].as_array().unwrap().iter();
        let scripts: Vec<&str> = scripts.map(|it| it["path"].as_str().unwrap()).collect();
        assert_eq!(scripts, ["scripts/a.py", "scripts/b.py"]);
    }

    #[test]
    fn modules_of_node_are_told_from_packages() {
        let node = "import fs from 'node:fs'; import path from 'path'\nimport { x } from './x.js'\n\
            import type { T } from 'types'\n// require('comment')\nconst s = `require('template')`\n\
            const { chromium } = require('playwright')\nconst own = require('@scope/own/part')\n";
        let needs = needs(&pdf(&[
            ("scripts/a.mjs", node),
            ("scripts/x.js", "export * from 'sharp'"),
            (
                "scripts/b.ts",
                "#!/usr/bin/env -S deno run\nimport { z } from 'npm:zod@3'\nimport 'jsr:@std/path'\nimport 'node:fs'\n",
            ),
        ]));
        assert_eq!(
            packages(&needs, "scripts/a.mjs"),
            ["playwright scripts/a.mjs:6", "@scope/own~ scripts/a.mjs:7", "sharp scripts/x.js:1"]
        );
        assert_eq!(
            packages(&needs, "scripts/b.ts"),
            ["npm:zod@3 scripts/b.ts:2", "jsr:@std/path scripts/b.ts:3"]
        );
    }
}

mod a_person_sees_what_is_needed_and_what_is_missing {
    use super::*;

    /// Returns a skill, and a machine with a Python that has some packages.
    fn machine() -> World {
        let compatibility = "compatibility: Requires git and ffmpeg\n";
        let text =
            format!("---\nname: pdf\ndescription: Reads PDF files.\n{compatibility}---\n\n# pdf\n");
        let world = World::new()
            .document("pdf", text)
            .file("skills/pdf/scripts/count.py", "import pypdf\n")
            .file(
                "skills/pdf/requirements.txt",
                "pypdf>=4\nlxml>=5\nrich\npywin32; sys_platform == 'win32'\n",
            )
            .file("usr/bin/python3.11", "")
            .file("usr/bin/git", "")
            // The shim of a version manager.
            .file("shims/python3", "#!/bin/sh\n")
            .folder("usr/lib/python3.11/site-packages/pypdf-5.1.0.dist-info")
            .folder("usr/lib/python3.11/site-packages/lxml-4.9.1.dist-info")
            .link("usr/bin/python3", "python3.11");
        for program in ["usr/bin/python3.11", "usr/bin/git", "shims/python3"] {
            let path = world.path(program);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        world
    }

    fn path_of(world: &World) -> String {
        ["shims", "usr/bin"].map(|it| world.path(it).display().to_string()).join(":")
    }

    #[test]
    fn what_is_needed_and_what_is_missing_is_told_with_the_skill() {
        let world = machine();
        let path = path_of(&world);
        let show = |more: &[&str]| {
            let arguments: Vec<&str> =
                ["show", "pdf"].iter().chain(&SKILLS).chain(more).copied().collect();
            let ran = world.run_script(&format!("PATH={path} \"$0\" {}", arguments.join(" ")));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            ran
        };
        let ran = show(&[]);
        assert_eq!(ran.stdout(), show(&["-q"]).stdout());
        assert!(!ran.stdout().contains("missing"), "{}", ran.stdout());
        assert_eq!(show(&["-q"]).stderr, "");
        for said in [
            "needs python3, pypdf (requirements.txt:1), lxml (requirements.txt:2)",
            "git (SKILL.md:4)",
        ] {
            assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
        }
        let missing = "missing: lxml (requirements.txt:2, 4.9.1 is here), rich (requirements.txt:3), ffmpeg (SKILL.md:4)";
        assert!(ran.stderr.contains(missing), "{}", ran.stderr);
        let document = show(&["--json"]).json();
        let missing = document["needs"]["missing"].as_array().unwrap().iter();
        let missing: Vec<(&str, &str)> = missing
            .map(|it| (it["kind"].as_str().unwrap(), it["name"].as_str().unwrap()))
            .collect();
        assert_eq!(missing, [("package", "lxml"), ("package", "rich"), ("program", "ffmpeg")]);
    }

    #[test]
    fn the_doctor_says_what_the_skill_that_it_is_asked_about_needs() {
        let world = machine();
        let path = path_of(&world);
        let doctor = |more: &str| {
            world.run_script(&format!(
                "PATH={path} \"$0\" doctor pdf --dir skills --client codex {more}"
            ))
        };
        let ran = doctor("");
        assert!(
            ran.stdout().contains("needs python3, pypdf (requirements.txt:1)"),
            "{}",
            ran.stdout()
        );
        assert!(ran.stdout().contains("missing: lxml"), "{}", ran.stdout());
        let needs = &doctor("--json").json()["skills"][0]["needs"];
        assert_eq!(needs["missing"][0]["name"], "lxml", "{needs}");
    }

    #[test]
    fn how_a_missing_program_is_installed_is_told() {
        let install = "`pdftoppm` is not installed; on Debian: `apt install poppler-utils`; with Homebrew: `brew install poppler`";
        let world = machine()
            .file("skills/pdf/pages.sh", "#!/bin/sh\npdftoppm -v\n")
            .file("skills/pdf/own.sh", "#!/bin/sh\nown-tool\n")
            .file(
                "skills/pdf/said.sh",
                "#!/bin/sh\necho \"FileNotFoundError: [Errno 2] No such file or directory: 'pdftoppm'\" >&2\nexit 1\n",
            );
        let text = "---\nname: pdf\ndescription: Reads.\nmetadata:\n  requires:\n    bins: [\"a\\e[2Jb\", \"x`y\", pdftoppm]\n---\n";
        world.write("skills/pdf/SKILL.md", text);
        world.remove("skills/pdf/requirements.txt");
        let path = path_of(&world);
        let run = |words: &str| {
            let line = format!("PATH={path} \"$0\" {words} --dir skills");
            let ran = world.run_script(&line);
            ran.assert_safe();
            format!("{}\n{}", ran.stdout(), ran.stderr)
        };
        for words in ["show pdf", "doctor pdf --client codex", "prepare pdf"] {
            let said = run(words);
            assert!(said.contains(install), "{words}: {said}");
            assert!(!said.contains("x`y"), "{words}: {said}");
        }
        for script in ["pages.sh", "said.sh"] {
            let said = run(&format!("run pdf --yes --no-install --script {script}"));
            assert!(said.contains(&format!("hint: {install}")), "{script}: {said}");
        }
        let said = run("run pdf --yes --script own.sh");
        assert!(said.contains("hint: `own-tool` is not installed"), "{said}");
        world.write("skills/pdf/requirements.txt", "rich\n");
        let said = run("doctor pdf --client codex");
        assert!(said.contains("`prowess prepare pdf` installs packages"), "{said}");
    }

    #[test]
    fn of_a_variable_only_the_name_is_told() {
        let text = "---\nname: pdf\ndescription: Reads.\nmetadata:\n  openclaw:\n    requires:\n      \
            env: [A_KEY, B_KEY, 'C_KEY=hidden-value']\n---\n\n# pdf\n";
        let world = World::new().document("pdf", text);
        let show = |more: &[&'static str]| {
            let arguments: Vec<&str> = ["show", "pdf", "--level", "metadata"]
                .iter()
                .chain(&SKILLS)
                .chain(more)
                .copied()
                .collect();
            world.run_with_env(&[("A_KEY", "value-of-a")], &arguments)
        };
        let ran = show(&[]);
        assert!(
            ran.stderr.contains("missing: $B_KEY (SKILL.md:7), $C_KEY (SKILL.md:7)"),
            "{}",
            ran.stderr
        );
        let needs = show(&["--json"]).json()["needs"].to_string();
        for secret in ["value-of-a", "hidden-value"] {
            assert!(!ran.stderr.contains(secret) && !needs.contains(secret), "{needs}");
        }
    }
}

mod what_cannot_be_read_hurts_nothing_else {
    use super::*;

    #[test]
    fn bad_files_are_noted_and_the_rest_is_told() {
        let world = pdf(&[
            ("toml/pyproject.toml", "[project\n"),
            ("toml/a.py", "import yaml\n"),
            ("json/package.json", "{\"dependencies\": {\"a\": 1}, \"devDependencies\": []}"),
            ("json/b.js", "require('zod')\n"),
            ("broken/package.json", "{\"dependencies\":\n}"),
            ("broken/c.js", "require('zod')\n"),
            (
                "cycle/requirements.txt",
                "-r other.txt\n-r ../../../outside.txt\n-r gone.txt\nthis is none\nrich\n",
            ),
            ("cycle/other.txt", "-r requirements.txt\ntqdm\n"),
            ("cycle/d.py", ""),
            ("header.py", "# /// script\n# dependencies = 7\n# ///\n"),
            ("version/.python-version", "newest\n"),
            ("version/e.py", "import rich\n"),
        ])
        .file("outside.txt", "outside\n")
        .file("skills/pdf/scripts/latin.py", b"# \xE9\nimport requests\n")
        .file("skills/pdf/scripts/nul.py", b"import requests\0\n")
        .file("skills/pdf/huge/requirements.txt", "package\n".repeat(1_000_000))
        .file("skills/pdf/huge/f.py", "import rich\n")
        .file("secret.py", "import secret_module\n")
        .link("skills/pdf/scripts/link.py", "../../../secret.py")
        .file("skills/pdf/scripts/good.py", "import numpy\n");
        let needs = needs(&world);
        let notes = notes(&needs);
        for (place, message) in [
            ("toml/pyproject.toml:1", "it is not TOML"),
            ("json/package.json:1", "this is not a package and its version"),
            ("json/package.json:1", "`devDependencies` is not an object"),
            ("broken/package.json:2", "it is not JSON"),
            ("cycle/requirements.txt:2", "this file is not in the skill"),
            ("cycle/requirements.txt:3", "this file is not in the skill"),
            ("cycle/requirements.txt:4", "this is not a requirement"),
            ("header.py:2", "this is not a list of requirements"),
            ("version/.python-version:1", "this is not a version of Python"),
            ("scripts/latin.py:0", "it is not UTF-8 text"),
            ("scripts/nul.py:0", "it is not UTF-8 text"),
            ("huge/requirements.txt:0", "it has more than 1048576 bytes"),
        ] {
            let is_noted =
                |it: &String| it.starts_with(&format!("{place} ")) && it.contains(message);
            assert!(notes.iter().any(is_noted), "{place} {message}: {notes:#?}");
        }
        assert_eq!(
            packages(&needs, "cycle/d.py"),
            ["rich cycle/requirements.txt:5", "tqdm cycle/other.txt:2"]
        );
        assert_eq!(packages(&needs, "toml/a.py"), ["pyyaml toml/a.py:1"]);
        assert_eq!(packages(&needs, "scripts/good.py"), ["numpy scripts/good.py:1"]);
        assert!(
            !needs.to_string().contains("secret_module")
                && !needs.to_string().contains("outside\"")
        );
    }

    #[test]
    fn thousands_of_imports_are_bounded() {
        let imports = |from: usize| {
            (from..from + 1_500).map(|it| format!("import module{it}\n")).collect::<String>()
        };
        let world = pdf(&[("a.py", &imports(0)), ("b.py", &imports(5_000))]);
        let ring: String = (0..200).map(|it| format!("import ring{it}\n")).collect();
        let world = (0..200)
            .fold(world, |world, it| world.file(format!("skills/pdf/ring/ring{it}.py"), &ring));
        let needs = needs(&world);
        assert_eq!(environment(&needs, "b.py")["packages"].as_array().unwrap().len(), 2_000);
        let notes = notes(&needs);
        for message in ["more than 2000 packages", "more than 10000 imports"] {
            assert!(notes.iter().any(|it| it.contains(message)), "{message}: {notes:#?}");
        }
    }
}
