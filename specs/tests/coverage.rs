//! The coverage report, in workspaces that are small enough to count by hand.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

mod four_lines_of_five_are_reached_by_tests {
    use super::*;

    const FIVE: &str =
        "pub fn a() {}\npub fn b() {}\npub fn c() {}\npub fn d() {}\npub fn e() {}\n";
    const FOUR_CALLED: &str = "\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn four_are_called() {\n        \
        super::a();\n        super::b();\n        super::c();\n        super::d();\n    }\n}\n";

    #[test]
    fn a_19_too_few_lines_fail_the_command() {
        let workspace = Workspace::new([("src/lib.rs", &*format!("{FIVE}{FOUR_CALLED}"))]);
        let output = workspace.count();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(figure(&output).as_deref(), Some("coverage: 80.0 % of lines"));

        workspace.write("src/lib.rs", &format!("{FIVE}pub fn f() {{}}\n{FOUR_CALLED}"));
        let output = workspace.count();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(figure(&output).as_deref(), Some("coverage: 66.7 % of lines"));
        let missed =
            "crates/one/src/lib.rs:5: pub fn e() {}\ncrates/one/src/lib.rs:6: pub fn f() {}\n";
        assert_eq!(workspace.missed(), missed);
    }

    #[test]
    fn a_19_what_lands_has_been_counted() {
        let run = fs::read_to_string(root().join(".ci/run")).unwrap();
        assert!(run.lines().any(|it| it == "set -euo pipefail"), "{run}");
        assert!(run.lines().any(|it| it == "scripts/coverage scripts/test"), "{run}");
        let test = fs::read_to_string(root().join("scripts/test")).unwrap();
        assert!(test.lines().any(|it| it.starts_with("cargo test --workspace ")), "{test}");
    }

    #[test]
    fn a_program_is_counted_however_it_ends() {
        let program = "\
fn main() {
    before();
    if std::env::args().len() == 1 {
        std::process::abort();
    }
    behind();
}
fn before() {}
fn behind() {}
";
        let test = "\
#[test]
fn it_is_killed() {
    let mut command = std::process::Command::new(env!(\"CARGO_BIN_EXE_one\"));
    assert_eq!(command.env_clear().status().unwrap().code(), None);
}
";
        let workspace = Workspace::new([("src/main.rs", program), ("tests/one.rs", test)]);
        workspace.count();
        let missed = workspace.missed();
        let missed: Vec<&str> = missed.lines().filter_map(|it| it.split(": ").nth(1)).collect();
        assert_eq!(missed, ["    }", "    behind();", "}", "fn behind() {}"]);
    }

    #[test]
    fn tests_that_fail_have_no_figure() {
        let failing = FOUR_CALLED.replace("super::d();", "panic!();");
        let output = Workspace::new([("src/lib.rs", &*format!("{FIVE}{failing}"))]).count();
        assert_eq!(output.status.code(), Some(101), "{output:?}");
        assert_eq!(figure(&output), None);
    }

    #[test]
    fn a_count_that_cannot_be_read_fails_the_command() {
        let workspace = Workspace::new([("src/lib.rs", &*format!("{FIVE}{FOUR_CALLED}"))]);
        let also = "cargo test --offline && head -c 200 /dev/zero > target/coverage/profiles/other";
        let output = workspace.count_by(&["sh", "-c", also]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let stderr = str::from_utf8(&output.stderr).unwrap();
        assert!(stderr.contains("profiles of version 0 are not known"), "{stderr}");
        assert_eq!(figure(&output), None);
    }
}

/// A workspace of the one crate `one`.
struct Workspace {
    folder: TempDir,
}

impl Workspace {
    fn new<const N: usize>(files: [(&str, &str); N]) -> Self {
        let workspace = Self { folder: tempfile::tempdir().unwrap() };
        workspace.write("Cargo.toml", "[package]\nname = \"one\"\nedition = \"2024\"\n");
        for (path, text) in files {
            workspace.write(path, text);
        }
        let manifest = workspace.folder.path().join("Cargo.toml");
        fs::write(manifest, "[workspace]\nmembers = [\"crates/one\"]\nresolver = \"3\"\n").unwrap();
        workspace
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join("crates/one").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn count(&self) -> Output {
        self.count_by(&["cargo", "test", "--quiet", "--offline"])
    }

    fn count_by(&self, command: &[&str]) -> Output {
        Command::new(root().join("scripts/coverage"))
            .args(command)
            .current_dir(self.folder.path())
            .env("CARGO_TARGET_DIR", "target")
            .output()
            .unwrap()
    }

    fn missed(&self) -> String {
        fs::read_to_string(self.folder.path().join("target/coverage/missed.txt")).unwrap()
    }
}

fn figure(output: &Output) -> Option<String> {
    let stdout = str::from_utf8(&output.stdout).unwrap();
    stdout.lines().find(|it| it.starts_with("coverage: ")).map(str::to_owned)
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
