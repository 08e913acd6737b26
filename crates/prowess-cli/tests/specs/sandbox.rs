//! Running scripts of skills: at both sandbox levels, as the user of the tests and as an
//! unprivileged user.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::LazyLock,
    time::{Duration, SystemTime},
};

use prowess_sandbox::{Launcher, Sandbox, SandboxLevel, SandboxSupport};

use crate::world::World;

const PROGRAM: &str = env!("CARGO_BIN_EXE_prowess");
const NOBODY: u32 = 65534;

/// The sandbox of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) level: SandboxLevel,
    /// Whether the launcher runs as an unprivileged user instead of the user of the tests.
    nobody: bool,
    /// Whether control groups are unavailable, for root; other users have none anyway.
    counted: bool,
}

/// Returns the stages of the user of the tests.
fn own_stages() -> Vec<Stage> {
    static GIVEN: LazyLock<SandboxSupport> =
        LazyLock::new(|| Stage::new(SandboxLevel::Strong).sandbox().probe());
    assert_ne!(GIVEN.level, SandboxLevel::None, "nothing can be shown here: {GIVEN:#?}");
    let given =
        |name: &str| GIVEN.checks.iter().any(|it| it.name == name && it.supported == Some(true));
    let mut stages = Vec::new();
    if GIVEN.level == SandboxLevel::Strong {
        stages.push(Stage::new(SandboxLevel::Strong));
    }
    // Landlock is sufficient from Linux 6.7 on; Debian 12 has an older one.
    if given("landlock") {
        stages.push(Stage::new(SandboxLevel::Landlock));
    }
    stages
}

impl Stage {
    const fn new(level: SandboxLevel) -> Self {
        Self { level, nobody: false, counted: false }
    }

    pub(crate) fn sandbox(self) -> Sandbox {
        let launcher = match self.nobody {
            true => wrapped(&format!(
                "chown({NOBODY}, {NOBODY}, *STDOUT, *STDERR); $( = {NOBODY}; $) = '{NOBODY} {NOBODY}'; ($<, $>) = ({NOBODY}, {NOBODY});"
            )),
            false if self.counted => wrapped(&format!(
                "my @n = (0x20000); my @p = ('none', '/', 0, 0x44000, 0); \
                 my @t = ('tmpfs', '/sys/fs/cgroup', 'tmpfs', 0, 0); \
                 syscall({}, @n) == 0 && syscall({mount}, @p) == 0 && syscall({mount}, @t) == 0 or die;",
                number("unshare"),
                mount = number("mount"),
            )),
            false => Launcher::program(PROGRAM),
        };
        let sandbox = Sandbox::new(launcher, SandboxLevel::Landlock);
        if self.level == SandboxLevel::None {
            sandbox.unconfined()
        } else {
            sandbox.at_most(self.level)
        }
    }
}

/// Returns a launcher that runs the program through a Perl script, which every Debian has.
fn wrapped(words: &str) -> Launcher {
    let text = format!("#!/usr/bin/perl\n{words}\nexec {{'{PROGRAM}'}} 'prowess-launcher';\n");
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("launcher-{:016x}", hasher.finish()));
    // The first test writes it atomically, and in a process of its own: a file that this one has
    // open for writing may be open in a child of another test too, and cannot be run until that is
    // gone.
    if !path.exists() {
        let script = "cat > \"$0.$$\" && chmod 755 \"$0.$$\" && mv \"$0.$$\" \"$0\"";
        let mut shell = Command::new("sh");
        let mut shell =
            shell.args(["-c", script]).arg(&path).stdin(Stdio::piped()).spawn().unwrap();
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(shell.wait().unwrap().success());
    }
    Launcher::program(path)
}

fn number(name: &str) -> &'static u32 {
    let (_, x86_64, aarch64) = CALLS.iter().find(|it| it.0 == name).unwrap();
    if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 }
}

/// The numbers of system calls: of x86_64 and of aarch64.
const CALLS: &[(&str, u32, u32)] = &[
    ("prctl", 157, 167),
    ("seccomp", 317, 277),
    ("clone", 56, 220),
    ("unshare", 272, 97),
    ("socket", 41, 198),
    ("setxattr", 188, 5),
    ("getxattr", 191, 8),
    ("listxattr", 194, 11),
    ("mount", 165, 40),
    ("read", 0, 63),
    ("mmap", 9, 222),
    ("munmap", 11, 215),
    ("madvise", 28, 233),
    ("exit", 60, 93),
    ("close_range", 436, 436),
];

mod nobody_of_a_run_is_left {
    use super::*;

    #[test]
    fn what_a_crash_has_left_goes_with_the_next_engine() {
        let world = World::new();
        let folder = |name: &str, age: u64| {
            let path = world.path(format!("home/{name}"));
            fs::create_dir_all(path.join("work/in")).unwrap();
            let file = fs::File::open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
            (path, file)
        };
        let (left, _) = folder("prowess-work-left", 600);
        let (new, _) = folder("prowess-work-new", 1);
        let (used, lock) = folder("prowess-work-used", 600);
        lock.lock_shared().unwrap();
        let (other, _) = folder("other", 600);
        let mut command = Command::new(PROGRAM);
        let ran = command.arg("sandbox").env("TMPDIR", world.path("home")).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let there = [left, new, used, other].map(|it| it.exists());
        assert_eq!(there, [false, true, true, true]);
        assert_eq!(fs::read_dir(world.path("home")).unwrap().count(), 3);
    }
}

mod a_poor_machine_is_no_reason_to_run_without_a_sandbox {
    use super::*;

    /// A missing feature of a machine: system calls that fail, with their numbers on x86_64 and
    /// aarch64 and an errno; some only if an argument has certain bits.
    type Lack = (u32, u32, u32, Option<(u32, u32)>);
    const NO_NAMESPACES: &[Lack] =
        &[(272, 97, 1, None), (56, 220, 1, Some((0, 0x1000_0000))), (435, 435, 38, None)];
    const NO_LANDLOCK: &[Lack] =
        &[(444, 444, 38, None), (445, 445, 38, None), (446, 446, 38, None)];

    /// Returns a Perl script that removes features from a machine by a filter of system calls.
    fn poorer(lacks: &[&[Lack]]) -> String {
        let x86 = cfg!(target_arch = "x86_64");
        let mut words = "my $f = pack('SCCL', 0x20, 0, 0, 0);\n".to_owned();
        for (x86_number, arm_number, errno, test) in lacks.iter().copied().flatten() {
            let number = if x86 { x86_number } else { arm_number };
            let refuse = format!("$f .= pack('SCCL', 6, 0, 0, {});\n", 0x50000 + errno);
            match test {
                None => words += &format!("$f .= pack('SCCL', 0x15, 0, 1, {number});\n{refuse}"),
                Some((argument, bits)) => {
                    words += &format!(
                        "$f .= pack('SCCL', 0x15, 0, 4, {number}) . pack('SCCL', 0x20, 0, 0, {});\n\
                         $f .= pack('SCCL', 0x45, 0, 1, {bits});\n{refuse}$f .= pack('SCCL', 0x20, 0, 0, 0);\n",
                        16 + 8 * argument
                    );
                }
            }
        }
        let prctl = if x86 { 157 } else { 167 };
        words
            + &format!(
                "$f .= pack('SCCL', 6, 0, 0, 0x7fff0000);\n\
             my $p = pack('S x6 P', length($f) / 8, $f);\n\
             syscall({prctl}, 38, 1, 0, 0, 0) == 0 && syscall({prctl}, 22, 2, $p) == 0 or die;"
            )
    }

    #[test]
    fn the_program_says_what_a_machine_gives() {
        let world = World::new();
        let run = |lacks: &[&[Lack]], arguments: &str| {
            world.write("poor", format!("{}\nexec '{PROGRAM}', qw({arguments});", poorer(lacks)));
            let output = Command::new("perl").arg(world.path("poor")).output().unwrap();
            let out = String::from_utf8(output.stdout).unwrap();
            (output.status.code(), out, String::from_utf8(output.stderr).unwrap())
        };
        let machines: [(&[&[Lack]], SandboxLevel, i32); 4] = [
            (&[], SandboxLevel::Strong, 0),
            (&[NO_LANDLOCK], SandboxLevel::Strong, 0),
            (&[NO_NAMESPACES], SandboxLevel::Landlock, 0),
            (&[NO_NAMESPACES, NO_LANDLOCK], SandboxLevel::None, 1),
        ];
        for (lacks, level, code) in machines {
            if level != SandboxLevel::None && !own_stages().contains(&Stage::new(level)) {
                continue;
            }
            let level = level.as_str();
            let (exit, out, err) = run(lacks, "sandbox");
            assert_eq!(exit, Some(code), "{out} {err}");
            assert!(out.starts_with(&format!("level: {level}\n")), "{out}");
            let seen = "scripts can still list files outside and read their metadata";
            assert_eq!(out.contains(seen), !lacks.contains(&NO_LANDLOCK), "{out}");
            if !lacks.is_empty() || !out.contains("counted every") {
                assert_eq!(err.contains("hint: "), !lacks.is_empty(), "{err}");
            }
            let (exit, out, _) = run(lacks, "sandbox --json");
            let json: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!((exit, json["level"].as_str()), (Some(code), Some(level)));
            let checks = json["checks"].as_array().unwrap();
            let supported = |name: &str| {
                checks.iter().find(|it| it["name"] == name).unwrap()["supported"].clone()
            };
            assert_eq!(supported("namespaces"), !lacks.contains(&NO_NAMESPACES));
            assert_eq!(supported("landlock"), !lacks.contains(&NO_LANDLOCK));
            if code == 0 {
                let limits = checks.iter().find(|it| it["name"] == "limits").unwrap();
                let detail = limits["detail"].as_str().unwrap();
                let ways = ["cgroup v1", "cgroup v2", "counted every 50 ms"];
                let said = ways.map(|it| format!("memory and process limits: {it}"));
                assert!(said.iter().any(|it| it == detail), "{detail}");
            }
        }
    }
}

mod real_scripts_run_unmodified {
    use super::*;

    #[test]
    fn the_program_says_what_was_refused() {
        let world = World::new().folder("skills");
        let prowess = |arguments: &[&str]| {
            let output = Command::new(PROGRAM).current_dir(world.path("")).args(arguments).output();
            String::from_utf8(output.unwrap().stderr).unwrap()
        };
        let definition = r#"{"script": "echo x > \"$SKILL_DIR/x\""}"#;
        let create =
            ["create", "one", "--type", "script", "--description", "Tries", "--dir", "skills"];
        prowess(&[&create[..], &["--definition", definition]].concat());
        let said = prowess(&["run", "one", "--dir", "skills"]);
        assert!(said.contains("note: the sandbox probably refused "), "{said}");
    }
}
