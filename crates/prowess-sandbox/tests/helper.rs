//! Programs in the sandbox by the helper, from a host that does not call the hook: these tests have
//! an ordinary harness, and would start again if they were executed as a launcher.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "this is a test")]

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::Path,
    process::Command,
    sync::LazyLock,
    thread,
};

use prowess_sandbox::{
    Job, Launcher, RunLimits, RunResult, Sandbox, SandboxError, SandboxLevel, Work,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

const PROGRAM: &str = env!("CARGO_BIN_EXE_prowess-launcher");
/// The helper, as a host would include it.
static BYTES: LazyLock<&[u8]> = LazyLock::new(|| fs::read(PROGRAM).unwrap().leak());
const NAME: &str = "prowess-launcher";

fn sandbox(launcher: Launcher) -> Sandbox {
    Sandbox::new(launcher, SandboxLevel::Landlock)
}

fn run(launcher: Launcher) -> Result<RunResult, SandboxError> {
    let argv = ["sh", "-c", "echo ran; tr '\\0' '\\n' < /proc/1/environ | grep -c ="];
    let mut job =
        Job::new(argv.map(Into::into).to_vec(), Work::new().unwrap(), RunLimits::default());
    job.writes.extend(env::var_os("WRITES").map(Into::into));
    Runtime::new().unwrap().block_on(sandbox(launcher).run(job))
}

/// Returns the whole message of a launcher that cannot be used.
fn refusal(launcher: Launcher) -> String {
    let probed = sandbox(launcher.clone()).probe();
    assert_eq!(probed.level, SandboxLevel::None, "{probed:?}");
    match run(launcher) {
        Err(error @ SandboxError::Launcher { .. }) => {
            let whole = format!("{error}: {}", std::error::Error::source(&error).unwrap());
            assert_eq!(probed.checks[0].name, "launcher");
            whole
        }
        other => panic!("it was not refused: {other:?}"),
    }
}

fn assert_runs(launcher: Launcher) {
    let result = run(launcher).unwrap();
    assert!(result.stdout.text.starts_with("ran\n"), "{result:?}");
    assert!(result.level >= SandboxLevel::Landlock, "{result:?}");
}

/// Creates a program in a folder that only this user may write to.
fn program(text: &str) -> TempDir {
    let folder =
        tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    write_program(&folder.path().join(NAME), text.as_bytes());
    folder
}

/// Writes a program in a separate process, because a file that this one has open for writing may be
/// open in a child of another test too, and cannot be executed then.
fn write_program(path: &Path, bytes: &[u8]) {
    let source = path.with_extension("source");
    fs::write(&source, bytes).unwrap();
    let copied = Command::new("install").args(["-m", "755"]).arg(&source).arg(path).status();
    assert!(copied.unwrap().success());
}

#[test]
fn a_program_runs_by_the_helper_and_by_one_in_memory() {
    assert_runs(Launcher::program(PROGRAM));
    let embedded = Launcher::embedded(*BYTES);
    assert_runs(embedded.clone());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let launcher = embedded.clone();
            thread::spawn(move || assert_runs(launcher))
        })
        .collect();
    threads.into_iter().for_each(|it| it.join().unwrap());
}

#[test]
fn another_program_is_no_launcher() {
    for other in ["/bin/true", "/bin/echo"] {
        let message = refusal(Launcher::program(other));
        assert!(message.contains("not a launcher"), "{message}");
    }
    let message = refusal(Launcher::program("/no/such/launcher"));
    assert!(message.contains("`/no/such/launcher`: No such file"), "{message}");
    static SHORT: &[u8] = b"\x7fELF\x02\x01\x01 and no more";
    for broken in [SHORT, b"", &BYTES[..8192]] {
        let message = refusal(Launcher::embedded(broken));
        assert!(message.starts_with("cannot run the launcher"), "{message}");
    }
}

#[test]
fn another_version_is_named() {
    let greeting = r#"{"launcher":"9.8.7"}"#;
    let length = format!("\\{:03o}\\000\\000\\000", greeting.len());
    let folder = program(&format!("#!/bin/sh\nprintf '{length}{greeting}' >&0; exec cat\n"));
    let message = refusal(Launcher::program(folder.path().join(NAME)));
    assert!(message.contains("version 9.8.7") && message.contains("cargo install"), "{message}");
}

/// Returns the answer of a host with this `PATH`, in a process of its own.
fn found(path: &str) -> String {
    found_with(path, &[])
}

/// The same for a job that may write these paths.
fn found_with(path: &str, writes: &[&Path]) -> String {
    let mut host = Command::new(env::current_exe().unwrap());
    host.args(["--exact", "a_host_that_searches", "--ignored", "--nocapture"]).env("PATH", path);
    host.envs(writes.iter().map(|it| ("WRITES", it)));
    String::from_utf8(host.output().unwrap().stdout).unwrap()
}

#[test]
#[ignore = "the host of another test"]
fn a_host_that_searches() {
    let answer = match run(Launcher::default()) {
        Ok(result) => result.stdout.text,
        Err(error) => format!("{error}: {}", std::error::Error::source(&error).unwrap()),
    };
    // The output is read by the other test.
    fs::write("/dev/stdout", format!("answer: {answer}\n")).unwrap();
}

#[test]
fn the_helper_is_found_on_the_path_where_nobody_else_can_change_it() {
    let good = program("");
    let path = |folder: &TempDir| folder.path().to_str().unwrap().to_owned();
    write_program(&good.path().join(NAME), *BYTES);
    let answer = found(&format!("relative:{}", path(&good)));
    assert!(answer.contains("answer: ran"), "{answer}");

    let linked = program("");
    fs::remove_file(linked.path().join(NAME)).unwrap();
    symlink(good.path().join(NAME), linked.path().join(NAME)).unwrap();
    assert!(found(&path(&linked)).contains("answer: ran"));

    for (path, writes) in [(path(&good), &good), (path(&linked), &good), (path(&linked), &linked)] {
        let answer = found_with(&path, &[writes.path()]);
        assert!(answer.contains("because what runs in the sandbox may write there"), "{answer}");
    }

    let answer = found("/no/such/folder");
    assert!(answer.contains("cargo install prowess-sandbox@"), "{answer}");
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&good.path().join(NAME), 0o777);
    let answer = found(&path(&good));
    assert!(answer.contains("because others may write to it"), "{answer}");
    set(&good.path().join(NAME), 0o755);
    set(good.path(), 0o1777);
    let answer = found(&path(&good));
    assert!(answer.contains("because others may write to its directory"), "{answer}");
    set(good.path(), 0o755);
    set(&good.path().join(NAME), 0o644);
    assert!(found(&path(&good)).contains("because it is not a program"));
    set(&good.path().join(NAME), 0o755);
    // Only root can give a file away.
    if chown(good.path().join(NAME), Some(65533), None).is_ok() {
        let answer = found(&path(&good));
        assert!(answer.contains("because it belongs to another user"), "{answer}");
    }
}

#[test]
fn a_person_who_types_its_name_is_told_what_it_is_for() {
    let typed = Command::new(PROGRAM).output().unwrap();
    assert_eq!(typed.status.code(), Some(2));
    assert!(String::from_utf8(typed.stderr).unwrap().contains("is started by programs"));
    let version = Command::new(PROGRAM).arg("--version").output().unwrap().stdout;
    assert_eq!(version, format!("prowess-launcher {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}
