//! Running scripts of skills: at both levels, as the current user and as an unprivileged one.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{ErrorKind, Write as _},
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            fs::{MetadataExt as _, PermissionsExt as _, chown},
            net::{SocketAddr, UnixDatagram, UnixListener},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use prowess_runtime::{Outcome, OutcomeStatus};
use prowess_sandbox::{
    Chunk, Job, Launcher, Root, RunLimits, Sandbox, SandboxError, SandboxLevel, SandboxSupport,
    Work,
};
use tokio::{runtime::Runtime, sync::mpsc, time::timeout};

use crate::world::{PATIENCE, World, until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_prowess_launcher");
const NOBODY: u32 = 65534;
const MIB: u64 = 1024 * 1024;
/// A timeout of runs that end for another reason, on a busy machine.
const LONG: Duration = Duration::from_secs(100);

/// The confinement of scripts in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) level: SandboxLevel,
    /// Whether the launcher runs as an unprivileged user, instead of the current one.
    nobody: bool,
    /// Whether control groups are unavailable to root; an unprivileged user has none anyway.
    counted: bool,
}

/// Without a sandbox: shows that an attempt of a test would work.
const OPEN: Stage = Stage::new(SandboxLevel::None);

/// Returns every level that this machine supports, for root also as an unprivileged user.
pub(crate) fn stages() -> Vec<Stage> {
    let mut stages = own_stages();
    if is_root() && nobody_reaches_program() {
        let nobody = stages.iter().map(|it| Stage { nobody: true, ..*it });
        stages.extend(nobody.collect::<Vec<_>>());
    }
    stages
}

/// Returns the levels for the current user only.
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
    // Linux supports enough of it since 6.7; the version of Debian 12 is older.
    if given("landlock") {
        stages.push(Stage::new(SandboxLevel::Landlock));
    }
    stages
}

/// Returns all stages, including root on a machine without control groups.
fn limited_stages() -> Vec<Stage> {
    let mut stages = stages();
    if is_root() && Path::new("/sys/fs/cgroup").exists() {
        stages.extend(own_stages().into_iter().map(|it| Stage { counted: true, ..it }));
    }
    stages
}

/// Returns the best of them.
pub(crate) fn best() -> Stage {
    own_stages()[0]
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Whether the program is in a folder that only root can access.
fn nobody_reaches_program() -> bool {
    let mut command = Command::new(PROGRAM);
    command.arg("--version").uid(NOBODY).gid(NOBODY);
    command.output().is_ok_and(|it| it.status.success())
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

    /// Creates a job that runs this script with `sh`.
    pub(crate) fn job(self, script: &str) -> Job {
        let work = Work::new().unwrap();
        let script = work.give("script", script.as_bytes()).unwrap();
        let argv = vec!["sh".into(), script.into()];
        let job = Job::new(argv, work, RunLimits::default());
        self.hand_over(&job.work);
        job
    }

    /// Makes the user of the launcher own the work directory.
    fn hand_over(self, work: &Work) {
        if self.nobody {
            let base = work.path().parent().unwrap();
            for path in walk(base) {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
    }

    fn run(self, script: &str) -> Outcome {
        self.run_job(self.job(script))
    }

    pub(crate) fn run_job(self, job: Job) -> Outcome {
        let outcome = Outcome::from(block_on(self.sandbox().run(job)).unwrap());
        assert_eq!(outcome.sandbox, Some(self.level), "{outcome:?}");
        outcome
    }

    /// Returns the output of a successful script.
    fn output(self, script: &str) -> String {
        let outcome = self.run(script);
        assert_eq!(outcome.status, OutcomeStatus::Ok, "{self:?} {outcome:#?}");
        outcome.stdout.unwrap().text
    }

    /// Returns the commands that succeed. They know the world as `$W`, and may read parts of it.
    fn succeed(self, world: &World, reads: &[&str], attempts: &[&str]) -> Vec<String> {
        let mut script = String::new();
        for attempt in attempts {
            script += &format!(
                "if ( {attempt}\n) >/dev/null 2>&1; then cat <<'END'\n{attempt}\nEND\nfi\n"
            );
        }
        let mut job = self.job(&script);
        job.env.insert("W".to_owned(), world.path("").to_str().unwrap().to_owned());
        job.reads = reads.iter().map(|it| world.path(it)).collect();
        let outcome = self.run_job(job);
        assert_eq!(outcome.status, OutcomeStatus::Ok, "{self:?} {outcome:#?}");
        outcome.stdout.unwrap().text.lines().map(str::to_owned).collect()
    }
}

/// Fails unless every attempt works without a sandbox, and none with one: then the world is
/// unchanged.
fn assert_refused(make: impl Fn() -> World, reads: &[&str], attempts: &[&str]) {
    let world = loosened(make());
    assert_eq!(OPEN.succeed(&world, reads, attempts), attempts);
    for stage in stages() {
        let world = loosened(make());
        let before = snapshot(&world);
        let nothing: [&str; 0] = [];
        assert_eq!(stage.succeed(&world, reads, attempts), nothing, "{stage:?}");
        assert_eq!(snapshot(&world), before, "{stage:?}");
    }
}

/// Creates a world outside of `/tmp`, because a script has its own.
fn elsewhere() -> World {
    World::within(Path::new("/var/tmp"))
}

/// Gives everybody all permissions in a world: only the sandbox refuses access.
fn loosened(world: World) -> World {
    for path in walk(&world.path("")) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    world
}

/// Returns the state of a world: paths, modes, owners, times and contents.
fn snapshot(world: &World) -> Vec<String> {
    let mut all: Vec<String> = walk(&world.path(""))
        .iter()
        .map(|path| {
            let it = fs::symlink_metadata(path).unwrap();
            let content = fs::read(path).unwrap_or_default();
            format!(
                "{path:?} {:o} {} {} {} {content:?}",
                it.mode(),
                it.uid(),
                it.mtime(),
                it.nlink()
            )
        })
        .collect();
    all.sort();
    all
}

/// Wraps the program in a Perl script, which every Debian can run.
fn wrapped(words: &str) -> Launcher {
    let text = format!("#!/usr/bin/perl\n{words}\nexec {{'{PROGRAM}'}} 'prowess-launcher';\n");
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("launcher-{:016x}", hasher.finish()));
    // The first test creates it atomically, and in a separate process, because a file that this one
    // has open for writing may be open in a child of another test too, and cannot be executed until
    // that has ended.
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

/// Returns the number of processes with a word in their command line.
fn alive(word: &str) -> usize {
    let is = |path: PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        line.windows(word.len()).any(|it| it == word.as_bytes())
    };
    fs::read_dir("/proc").unwrap().filter(|it| is(it.as_ref().unwrap().path())).count()
}

/// Returns a unique number of seconds to sleep, which identifies a process.
fn unique() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    format!("61.{}{:04}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Returns a line of Perl that makes a system call and succeeds if that does.
fn call(name: &str, arguments: &str) -> String {
    perl_call(number(name), arguments)
}

fn number(name: &str) -> &'static u32 {
    let (_, x86_64, aarch64) = CALLS.iter().find(|it| it.0 == name).unwrap();
    if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 }
}

/// Returns a line of Perl that makes a system call. The arguments are not constants, because Perl
/// does not let the kernel write to those.
fn perl_call(number: &u32, arguments: &str) -> String {
    format!("perl -e 'my @a = ({arguments}); exit(syscall({number}, @a) == -1)'")
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

/// Whether a program is installed.
fn is_installed(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|it| Path::new(it).join(program).exists())
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    Runtime::new().unwrap().block_on(future)
}

fn walk(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    if path.is_dir() {
        all.extend(fs::read_dir(path).unwrap().flat_map(|it| walk(&it.unwrap().path())));
    }
    all
}

mod a_script_reaches_only_the_files_that_it_is_given {
    use super::*;

    fn world() -> World {
        elsewhere().file("file", "as it was").file("folder/inside", "as it was").folder("empty")
    }

    #[test]
    fn writing_outside_of_the_work_directory_changes_nothing() {
        assert_refused(
            world,
            &["file", "folder"],
            &[
                r#"echo x > "$W/file""#,
                r#"echo x >> "$W/file""#,
                r#": > "$W/file""#,
                r#"truncate -s 0 "$W/file""#,
                r#"echo x > "$W/new""#,
                r#"echo x > "$W/folder/../new2""#,
                r#"ln -s "$W/file" link && echo x > link"#,
                r#"ln -s "$W" way && echo x > way/new3"#,
                r#"mkdir "$W/made""#,
                r#"mkfifo "$W/pipe""#,
                r#"ln "$W/file" "$W/hard""#,
                r#"ln -s x "$W/soft""#,
                r#"mv "$W/folder/inside" "$W/moved""#,
                r#"cp "$W/file" "$W/copied""#,
                r#"rm "$W/file""#,
                r#"rmdir "$W/empty""#,
                r#"perl -e 'open(F, "+<", "$ENV{W}/moved") || exit 1; print F "x"'"#,
            ],
        );
        for stage in stages() {
            let name = format!("/tmp/prowess-specs-{}", unique());
            stage.run(&format!("echo x > {name}; echo x > /dev/shm{name}; echo x > /usr/{name}"));
            for path in [&name, &format!("/dev/shm{name}"), &format!("/usr{name}")] {
                assert!(!Path::new(path).exists(), "{stage:?} {path}");
            }
        }
    }

    #[test]
    fn modes_and_times_and_owners_outside_stay_as_they_are() {
        assert_refused(
            world,
            &["file", "folder"],
            &[
                r#"chmod 600 "$W/file""#,
                r#"chmod 700 "$W/folder""#,
                r#"ln -s "$W/file" link && chmod 640 link"#,
                r#"touch -d 2001-01-01 "$W/file""#,
                r#"touch -a "$W/folder/inside""#,
                r#"chown "$(id -u)" "$W/file""#,
                r#"perl -e 'open(F, "<", "$ENV{W}/file") && chmod(0611, *F) || exit 1'"#,
                r#"perl -e 'open(F, "<", "$ENV{W}/file") && utime(1, 1, *F) || exit 1'"#,
                r#"perl -e 'open(F, "<", "$ENV{W}/folder/inside") && chmod(0611, "/proc/self/fd/" . fileno(F)) || exit 1'"#,
                r#"perl -e 'utime(1, 1, "$ENV{W}/folder") || exit 1'"#,
            ],
        );
    }

    #[test]
    fn attributes_of_files_outside_are_not_told() {
        let world = elsewhere().file("file", "x");
        let list = call("listxattr", r#""$ENV{W}/file", "x" x 100, 0"#);
        let get = call("getxattr", r#""$ENV{W}/file", "user.secret", "x" x 100, 100"#);
        let path = world.path("file");
        let set = call("setxattr", r#"$ENV{P}, "user.secret", "x", 1, 0"#);
        let set = Command::new("sh").args(["-c", &set]).env("P", path).status().unwrap();
        let mut attempts = vec![&*list];
        attempts.extend(set.success().then_some(&*get));
        assert_eq!(OPEN.succeed(&world, &[], &attempts), attempts);
        for stage in stages() {
            let nothing: [&str; 0] = [];
            assert_eq!(stage.succeed(&world, &[], &attempts), nothing, "{stage:?}");
        }
    }

    #[test]
    fn devices_stay_as_they_are() {
        // They are those of the machine: harmless changes show whether others would be possible.
        let attempts = ["chmod 666 /dev/null", "chmod 666 /dev/full", "touch -c -m /dev/zero"];
        for stage in stages() {
            let nothing: [&str; 0] = [];
            assert_eq!(stage.succeed(&World::new(), &[], &attempts), nothing, "{stage:?}");
            let used = "echo x > /dev/null && head -c 2 /dev/zero | wc -c";
            assert_eq!(stage.output(used), "2\n", "{stage:?}");
        }
    }

    #[test]
    fn what_is_hidden_keeps_its_mode_and_times() {
        for stage in stages() {
            let world = loosened(elsewhere().file("given/secret", "x").file("given/plain", "x"));
            let path = |name: &str| world.path(format!("given/{name}"));
            let script =
                r#"cd "$G"; for f in plain secret; do chmod 600 $f; touch -d 2001-01-01 $f; done"#;
            let mut job = stage.job(script);
            job.env.insert("G".to_owned(), path("").to_str().unwrap().to_owned());
            job.writes = vec![path("")];
            job.hidden = vec![path("secret")];
            if stage.nobody {
                for path in walk(&world.path("")) {
                    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
                }
            }
            let before = fs::metadata(path("secret")).unwrap();
            stage.run_job(job);
            let after = fs::metadata(path("secret")).unwrap();
            assert_eq!(after.mode(), before.mode(), "{stage:?}");
            assert_eq!(after.mtime(), before.mtime(), "{stage:?}");
            let plain = fs::metadata(path("plain")).unwrap();
            assert_eq!((plain.mode() & 0o777, plain.mtime() < 1_000_000_000), (0o600, true));
        }
    }

    #[test]
    fn a_skill_cannot_change_itself_or_its_neighbours() {
        let skills = || {
            elsewhere()
                .skill("own", "Its own")
                .skill("other", "Another")
                .file("skills/own/scripts/run.sh", "echo run")
        };
        assert_refused(
            skills,
            &["skills/own"],
            &[
                r#"echo x >> "$W/skills/own/SKILL.md""#,
                r#"sed -i s/own/evil/ "$W/skills/own/scripts/run.sh""#,
                r#"echo x > "$W/skills/own/new""#,
                r#"echo x >> "$W/skills/other/SKILL.md""#,
                r#"cp -r "$W/skills/own" "$W/skills/evil""#,
                r#"rm -r "$W/skills/other/SKILL.md""#,
            ],
        );
    }

    #[test]
    fn secrets_cannot_be_read() {
        let world = || {
            elsewhere()
                .file("home/.ssh/id_rsa", "secret")
                .file("home/.aws/credentials", "secret")
                .folder("given")
        };
        assert_refused(
            world,
            &["given"],
            &[
                r#"grep secret "$W/home/.ssh/id_rsa""#,
                r#"cat "$W/home/.aws/credentials""#,
                r#"cat "$W/given/../home/.ssh/id_rsa""#,
                r#"ln -s "$W/home/.ssh/id_rsa" key && cat key"#,
                r#"ls "$W/home""#,
                r#"ls / | grep -x home"#,
                r#"perl -e 'opendir(D, "$ENV{W}/home/.ssh") || exit 1'"#,
                r#"grep root:x:0:0:root: /etc/passwd"#,
                r#"cat /etc/hostname"#,
                r#"ls /etc/default"#,
                r#"ls /sys/kernel"#,
                r#"cat /proc/1/cmdline | grep ."#,
            ],
        );
        for stage in stages() {
            for path in ["/etc/shadow", "/dev/vda", "/dev/sda", "/dev/mem", "/proc/kcore"] {
                let outcome = stage.run(&format!("head -c 1 {path}"));
                assert_ne!(outcome.status, OutcomeStatus::Ok, "{stage:?} {path}");
            }
        }
    }

    #[test]
    fn what_is_given_is_there_at_its_own_path() {
        let script = r#"
            cat "$W/to read/ä b" "$W/one" "$W/both/only read/x"
            echo new > "$W/both/made" && cat "$W/both/made"
            (echo x > "$W/to read/ä b") 2>/dev/null || echo kept
            (echo x > "$W/one") 2>/dev/null || echo kept
            cat "$W/link" "$W/way/ä b"
            ls "$W/other" 2>/dev/null || echo hidden
        "#;
        for stage in stages() {
            let world = World::new()
                .file("to read/ä b", "read\n")
                .file("one", "one\n")
                .file("other/x", "")
                .file("both/only read/x", "nested\n")
                .link("link", "one")
                .link("way", "to read");
            let world = loosened(world);
            let mut job = stage.job(script);
            job.env.insert("W".to_owned(), world.path("").to_str().unwrap().to_owned());
            job.reads =
                ["to read", "one", "both/only read", "link", "way"].map(|it| world.path(it)).into();
            job.writes = vec![world.path("both")];
            let outcome = stage.run_job(job);
            let text = outcome.stdout.unwrap().text;
            let wanted = "read\none\nnested\nnew\nkept\nkept\none\nread\nhidden\n";
            assert_eq!(text, wanted, "{stage:?} {:?}", outcome.stderr);
            assert_eq!(fs::read_to_string(world.path("both/made")).unwrap(), "new\n");
            let inner = "echo x > \"$W/both/only read/x\"";
            if stage.level == SandboxLevel::Strong {
                let mut job = stage.job(inner);
                job.env.insert("W".to_owned(), world.path("").to_str().unwrap().to_owned());
                job.reads = vec![world.path("both/only read")];
                job.writes = vec![world.path("both")];
                assert_eq!(stage.run_job(job).status, OutcomeStatus::Failed, "{stage:?}");
            }
        }
    }

    #[test]
    fn what_is_not_there_cannot_be_given() {
        let paths = [
            ("/nowhere/at/all", "No such file or directory (os error 2)"),
            ("/", "scripts are never given access to the whole file system"),
            ("/proc", "scripts are never given access to `/proc`"),
            ("/proc/self", "scripts are never given access to `/proc`"),
            ("/dev/null", "scripts are never given access to `/dev`"),
            ("/sys/kernel", "scripts are never given access to `/sys`"),
        ];
        for (path, why) in paths {
            let paths = || vec![path.into()];
            for job in [
                Job { reads: paths(), ..best().job("true") },
                Job { writes: paths(), ..best().job("true") },
            ] {
                let error = block_on(best().sandbox().run(job)).unwrap_err();
                assert!(error.to_string().contains(&format!("`{path}`")), "{error}");
                let outcome = Outcome::from(error);
                assert_eq!(outcome.status, OutcomeStatus::Invalid);
                let message = outcome.message.unwrap();
                assert!(message.ends_with(why), "{message}");
            }
        }
        for stage in stages() {
            let mut job = stage.job("true");
            job.directory = Some("/nowhere".into());
            let error = block_on(stage.sandbox().run(job)).unwrap_err();
            assert!(error.to_string().contains("`/nowhere`"), "{error}");
        }
    }

    #[test]
    fn what_was_given_is_what_runs() {
        let script = r#"
            echo 'echo evil' >> "$0"
            echo evil > "$0"
            chmod 777 "$0" && echo evil
            rm -f "$0" && echo evil
            mv "$0" elsewhere && echo evil
            echo x > "$(dirname "$0")/new" && echo evil
            echo good
        "#;
        for stage in stages() {
            assert_eq!(stage.output(script), "good\n", "{stage:?}");
        }
        let work = Work::new().unwrap();
        for name in ["../script", "/script", "a/../b", "", ".", ".."] {
            assert!(work.give(name, b"").is_err(), "{name}");
        }
        assert_eq!(
            work.give("script", b"").and(work.give("script", b"")).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn two_runs_do_not_see_each_other() {
        // The word of the other one is searched by a pattern that does not match itself.
        let script = r#"
            echo $MINE > mine; echo $MINE > $TMPDIR/mine; sleep $MINE &
            sleep 0.5
            grep -l "$OTHER" $(dirname $(dirname $HOME))/prowess-work-*/*/mine
            find /tmp /dev/shm -name mine -exec grep -l "$OTHER" {} +
            cat /proc/*/cmdline | tr '\0' '\n' | grep "$OTHER"
            cat mine $TMPDIR/mine"#;
        for stage in stages() {
            let words = [unique(), unique()];
            let job = |own: usize| {
                let mut job = stage.job(script);
                let other = words[1 - own].replacen('6', "[6]", 1);
                job.env = [("MINE", words[own].clone()), ("OTHER", other)]
                    .map(|(name, value)| (name.to_owned(), value))
                    .into();
                job
            };
            let outcomes = block_on(async {
                let run = |own| async move {
                    Outcome::from(stage.sandbox().run(job(own)).await.unwrap())
                };
                <[_; 2]>::from(tokio::join!(run(0), run(1)))
            });
            for (own, outcome) in outcomes.into_iter().enumerate() {
                let wanted = format!("{0}\n{0}\n", words[own]);
                assert_eq!(outcome.stdout.unwrap().text, wanted, "{stage:?}");
            }
        }
    }
}

mod what_is_written_in_a_layer_is_discarded {
    use super::*;

    fn world() -> World {
        let world =
            elsewhere().file("own/file", "as it was").file("own/folder/inside", "as it was");
        world.file("own/kept/read", "as it was").file("outside", "as it was")
    }

    /// Creates a job with a layer over `own`, which is the script's as `$D`.
    fn job(stage: Stage, world: &World, script: &str) -> Job {
        if stage.nobody {
            for path in walk(&world.path("")) {
                std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let mut job = stage.job(script);
        job.env.insert("D".to_owned(), world.path("own").to_str().unwrap().to_owned());
        job.layered = vec![world.path("own")];
        job
    }

    const MAP: &str = "python3 -c 'import mmap, os; f = open(os.environ[\"D\"] + \"/file\", \"r+\"); m = mmap.mmap(f.fileno(), 0); m[0:2] = b\"AS\"; m.flush()'";

    #[test]
    fn a_layer_hides_what_is_below_and_changes_none_of_it() {
        let attempts = [
            "echo more >> $D/file && grep -q more $D/file",
            MAP,
            "truncate -s 3 $D/file && [ $(wc -c < $D/file) = 3 ]",
            "echo new > $D/new && [ -s $D/new ]",
            "chmod 700 $D/file && [ $(stat -c %a $D/file) = 700 ]",
            "touch -d 2001-01-01 $D/file && [ $(date -r $D/file +%Y) = 2001 ]",
            "ln $D/file $D/link && [ -f $D/link ]",
            "mv $D/file $D/moved && [ ! -e $D/file ]",
            "rm -r $D/folder && [ ! -e $D/folder ]",
            "mkdir $D/folder && [ -z \"$(ls $D/folder)\" ]",
            "chmod 755 $D && touch $D",
        ];
        let script: String = attempts
            .iter()
            .map(|it| format!("if ( {it}\n) >/dev/null 2>&1; then cat <<'END'\n{it}\nEND\nfi\n"))
            .collect();
        for stage in stages() {
            let world = world();
            job(stage, &world, "");
            let before = snapshot(&world);
            for _ in 0..2 {
                let outcome = stage.run_job(job(stage, &world, &script));
                let done: Vec<String> =
                    outcome.stdout.unwrap().text.lines().map(str::to_owned).collect();
                let wanted = if stage.level == SandboxLevel::Strong { &attempts[..] } else { &[] };
                assert_eq!(done, wanted, "{stage:?}");
                assert_eq!(snapshot(&world), before, "{stage:?}");
            }
        }
    }

    #[test]
    fn a_layer_opens_nothing() {
        let script = "
            mknod $D/null c 1 3 && echo device; mknod $D/nothing c 0 0 && echo whiteout
            echo x > $D/kept/read && echo written; rm -f $D/kept/read && echo removed
            mv $D/kept $D/moved && echo moved; echo x > $D/out && echo followed
            grep -F \" $D\" /proc/self/mounts | grep ' overlay ' | grep -v ' rw,nosuid,nodev,' && echo open
            echo end";
        for stage in stages() {
            let world = world();
            let out = world.path("outside");
            std::os::unix::fs::symlink(out, world.path("own/out")).unwrap();
            let job = job(stage, &world, script);
            let before = snapshot(&world);
            let outcome = stage.run_job(Job { reads: vec![world.path("own/kept/read")], ..job });
            assert_eq!(outcome.stdout.unwrap().text, "end\n", "{stage:?}");
            assert_eq!(snapshot(&world), before, "{stage:?}");
        }
    }

    #[test]
    fn what_is_written_in_a_layer_counts_as_written() {
        let (map, limits) = (number("mmap"), RunLimits { work: 8 * MIB, ..RunLimits::default() });
        let mapped = format!(
            r#"perl -e 'for (1 .. 3) {{ my $x = "$ENV{{D}}/x"; open(F, "+>", $x) && syswrite(F, "x" x 5000000) == 5000000 or exit 1;
                my @a = (0, 4096, 1, 1, fileno(F), 0); syscall({map}, @a) == -1 and exit 1; unlink($x); close(F) }}' && echo all"#
        );
        let ways = [
            "dd if=/dev/zero of=$D/new bs=1M count=12 && echo all",
            "exec 3>$D/new; rm $D/new; dd if=/dev/zero bs=1M count=12 >&3 && echo all",
            &mapped,
            "echo x >> $D/large && echo all",
            "perl -e 'for (1 .. 40000) { open(F, \">\", \"$ENV{D}/f$_\") || exit 1 }' && echo all",
            "head -c 5000000 /dev/zero > $D/new && head -c 5000000 /dev/zero > new && sleep 200; echo all",
        ];
        for stage in limited_stages().into_iter().filter(|it| it.level == SandboxLevel::Strong) {
            let world = world().file("own/large", vec![b'x'; 12 << 20]);
            job(stage, &world, "");
            let before = snapshot(&world);
            for script in ways {
                let outcome = stage.run_job(Job { limits, ..job(stage, &world, script) });
                assert_ne!(outcome.status, OutcomeStatus::TimedOut, "{stage:?} {script}");
                assert_eq!(outcome.stdout.unwrap().text, "", "{stage:?} {script}");
            }
            let fits = "head -c 5000000 /dev/zero > $D/new && echo all";
            let outcome = stage.run_job(Job { limits, ..job(stage, &world, fits) });
            assert_eq!(outcome.stdout.unwrap().text, "all\n", "{stage:?}");
            // Files there count as memory, too.
            let limits = RunLimits { work: 256 * MIB, memory: 64 * MIB, ..limits };
            let fills = "dd if=/dev/zero of=$D/new bs=1M count=60 && echo all";
            let outcome = stage.run_job(Job { limits, ..job(stage, &world, fills) });
            assert_eq!(outcome.stdout.unwrap().text, "", "{stage:?}");
            assert_eq!(snapshot(&world), before, "{stage:?}");
        }
    }
}

mod a_script_inherits_nothing {
    use super::*;

    #[test]
    fn the_environment_holds_a_few_names_and_what_was_given() {
        for stage in stages() {
            let mut job = stage.job("env");
            job.env.insert("PARAM_X".to_owned(), "two words\nand lines".to_owned());
            let home = job.work.path().to_str().unwrap().to_owned();
            let text = stage.run_job(job).stdout.unwrap().text;
            let mut lines: Vec<&str> =
                text.lines().filter(|it| !it.starts_with("TMPDIR=")).collect();
            lines.sort_unstable();
            let (home, pwd) = (format!("HOME={home}"), format!("PWD={home}"));
            let wanted = [
                &*home,
                "LANG=C.UTF-8",
                "PARAM_X=two words",
                "PATH=/usr/local/bin:/usr/bin:/bin",
                &*pwd,
                "and lines",
            ];
            assert_eq!(lines, wanted, "{stage:?}");
            let written = stage.output("echo x > $TMPDIR/x && cat $TMPDIR/x");
            assert_eq!(written, "x\n", "{stage:?}");
        }
    }

    #[test]
    fn no_environment_leaks_through_the_processes_above() {
        // A variable that cargo sets for tests represents any secret of the engine.
        let secret = env::var("CARGO_MANIFEST_DIR").unwrap();
        let script = format!(
            "cat /proc/1/environ /proc/$PPID/environ /proc/self/../*/environ /proc/*/task/*/environ 2>/dev/null \
             | tr '\\0' '\\n' | grep -c -F '{secret}'; true"
        );
        assert_ne!(OPEN.output(&script), "0\n");
        for stage in stages() {
            assert_eq!(stage.output(&script), "0\n", "{stage:?}");
            let parent = "cat /proc/1/environ /proc/1/mem /proc/1/maps /proc/$PPID/environ /proc/$PPID/maps 2>/dev/null | wc -c";
            assert_eq!(stage.output(parent), "0\n", "{stage:?}");
        }
    }

    #[test]
    fn variables_that_change_a_loader_or_shell_are_refused() {
        let bad = [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "PATH",
            "IFS",
            "ENV",
            "BASH_ENV",
            "BASH_FUNC_x%%",
            "SHELLOPTS",
            "PS4",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "GLIBC_TUNABLES",
            "HOME",
            "TMPDIR",
            "A=B",
            "X\0",
            "",
            "1X",
            "a b",
            "x-y",
            "ld_preload",
        ];
        for name in bad {
            let mut job = best().job("true");
            job.env.insert(name.to_owned(), "x".to_owned());
            let error = block_on(best().sandbox().run(job)).unwrap_err();
            assert!(
                matches!(&error, SandboxError::Variable { name: said } if said == name),
                "{error}"
            );
            assert_eq!(Outcome::from(error).status, OutcomeStatus::Invalid);
        }
        let mut job = best().job("true");
        job.env.insert("PARAM_X".to_owned(), "a\0b".to_owned());
        assert!(block_on(best().sandbox().run(job)).is_err());
    }

    #[test]
    fn only_three_descriptors_are_open() {
        // The engine has a file open that its child processes inherit.
        let world = World::new().file("secret", "secret");
        let path = world.path("secret").display().to_string();
        let launcher =
            wrapped(&format!("$^F = 255; open(F, '<', '{path}'); open(G, '<', '{path}');"));
        let script = "perl -e 'for (3 .. 255) { open(F, \"<&=$_\") && print \"$_ \" }'\nls /proc/self/fd 2>/dev/null | tr '\\n' ' '";
        for Stage { level, .. } in own_stages() {
            let sandbox = Sandbox::new(launcher.clone(), SandboxLevel::Landlock).at_most(level);
            let text = block_on(sandbox.run(best().job(script))).unwrap().stdout.text;
            // The fourth is the folder that is listed.
            let wanted = if level == SandboxLevel::Strong { "0 1 2 3 " } else { "" };
            assert_eq!(text, wanted, "{level}");
        }
    }

    #[test]
    fn reading_stdin_ends_at_once() {
        for stage in stages() {
            assert_eq!(
                stage.output("cat; read -r line || echo empty; wc -c"),
                "empty\n0\n",
                "{stage:?}"
            );
        }
    }
}

mod a_script_reaches_nobody {
    use super::*;

    #[test]
    fn no_connection_leaves_the_machine_or_reaches_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!(
            "perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) && connect(S, sockaddr_in({port}, inet_aton(\"127.0.0.1\"))) || exit 1'"
        );
        let bash = format!("bash -c ': < /dev/tcp/127.0.0.1/{port}'");
        let listen = "perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) && bind(S, sockaddr_in(0, inet_aton(\"127.0.0.1\"))) && listen(S, 1) || exit 1'";
        assert_refused(World::new, &[], &[&connect, &bash, listen]);
        let came = std::iter::from_fn(|| listener.accept().ok()).count();
        assert_eq!(came, 2, "those without a sandbox");
        for stage in stages() {
            for address in ["169.254.169.254", "1.1.1.1", "::1"] {
                let outcome = stage.run(&format!("bash -c ': < /dev/tcp/{address}/80'"));
                assert_eq!(outcome.status, OutcomeStatus::Failed, "{stage:?} {address}");
            }
        }
    }

    #[test]
    fn no_other_kind_of_socket_can_be_made() {
        // Family, type, protocol: MPTCP, UDP, IPv6, netlink, a unix datagram, raw, packet, vsock, TIPC.
        let kinds = [
            "2, 1, 262",
            "2, 2, 0",
            "10, 1, 0",
            "10, 2, 0",
            "16, 3, 0",
            "1, 2, 0",
            "2, 3, 1",
            "17, 3, 768",
            "40, 1, 0",
            "30, 1, 0",
            "38, 5, 0",
        ];
        let attempts: Vec<String> = kinds.iter().map(|it| call("socket", it)).collect();
        let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
        let world = World::new();
        let open = OPEN.succeed(&world, &[], &attempts);
        assert!(open.len() >= 5, "{open:#?}");
        for stage in stages() {
            let nothing: [&str; 0] = [];
            assert_eq!(stage.succeed(&world, &[], &attempts), nothing, "{stage:?}");
        }
    }

    #[test]
    fn sockets_in_files_and_abstract_ones_cannot_be_reached() {
        let name = format!("prowess-specs-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        let world = World::new().folder("run");
        let stream = UnixListener::bind(world.path("run/stream")).unwrap();
        let datagram = UnixDatagram::bind(world.path("run/datagram")).unwrap();
        for listener in [&stream, &hidden] {
            listener.set_nonblocking(true).unwrap();
        }
        datagram.set_nonblocking(true).unwrap();
        let world = loosened(world);
        let to_stream = r#"perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un("$ENV{W}/run/stream")) || exit 1'"#;
        let to_datagram = r#"perl -MSocket -e 'socket(S, PF_UNIX, SOCK_DGRAM, 0) && send(S, "x", 0, sockaddr_un("$ENV{W}/run/datagram")) || exit 1'"#;
        let by_pair = r#"perl -MSocket -e 'socketpair(S, T, PF_UNIX, SOCK_DGRAM, 0) && send(S, "x", 0, sockaddr_un("$ENV{W}/run/datagram")) || exit 1'"#;
        let to_hidden = format!(
            r#"perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) && connect(S, pack("Sa*", 1, "\0{name}")) || exit 1'"#
        );
        let attempts = [to_stream, to_datagram, by_pair, &to_hidden];
        assert_eq!(OPEN.succeed(&world, &["run"], &attempts), attempts);
        let came = || {
            let streams =
                [&stream, &hidden].map(|it| std::iter::from_fn(|| it.accept().ok()).count());
            let datagrams = std::iter::from_fn(|| datagram.recv(&mut [0]).ok()).count();
            (streams, datagrams)
        };
        assert_eq!(came(), ([1, 1], 2));
        for stage in stages() {
            let nothing: [&str; 0] = [];
            assert_eq!(stage.succeed(&world, &["run"], &attempts), nothing, "{stage:?}");
            assert_eq!(came(), ([0, 0], 0), "{stage:?}");
        }
    }

    #[test]
    fn other_processes_cannot_be_seen_into_or_signalled() {
        for stage in stages() {
            let mut command = Command::new("sleep");
            command.arg(unique());
            if stage.nobody {
                command.uid(NOBODY).gid(NOBODY);
            }
            let mut victim = command.spawn().unwrap();
            let pid = victim.id();
            let attempts = [
                format!("kill -STOP {pid}"),
                format!("kill -9 {pid}"),
                format!("perl -e 'kill(9, -{pid}) || exit 1'"),
                format!("cat /proc/{pid}/environ"),
                format!("cat /proc/{pid}/mem"),
                format!("cat /proc/{pid}/cmdline | grep ."),
                format!("ls /proc/{pid}/fd/"),
                format!("renice -n 19 -p {pid}"),
                format!("renice -n 19 -u {}", if stage.nobody { NOBODY } else { 0 }),
                format!("prlimit --pid {pid} --nofile=1:1"),
                // The supervisor of the script may be the first process of its namespace.
                "prlimit --pid 1 --nofile=1:1".to_owned(),
                "prlimit --pid $(perl -e 'print getppid') --nofile=1:1".to_owned(),
                format!("taskset -p 1 {pid}"),
                call_number(&format!("16, {pid}, 0, 0"), 101, 117),
                call_number(&format!("{pid}, 0, 0, 0, 0, 0"), 310, 270),
                format!(
                    "perl -e '$p = syscall(434, {pid}, 0); exit($p < 0 || syscall(438, $p, 0, 0) == -1)'"
                ),
                format!(
                    "perl -e '$p = syscall(434, {pid}, 0); exit($p < 0 || syscall(424, $p, 9, 0, 0) == -1)'"
                ),
            ];
            let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
            let reached = stage.succeed(&World::new(), &[], &attempts);
            let nothing: [&str; 0] = [];
            assert_eq!(reached, nothing, "{stage:?}");
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            assert!(stat.contains("(sleep) S"), "{stat}");
            if stage.nobody {
                // All processes that a script could reach. (As root that would be the whole
                // machine.)
                stage.run("trap '' TERM; kill -TERM -1; true");
                assert_eq!(victim.try_wait().unwrap(), None);
            }
            victim.kill().unwrap();
            victim.wait().unwrap();
        }
    }

    #[test]
    fn doors_into_the_kernel_are_shut() {
        // Calls that would work for any user, and are harmless: arguments, and numbers on both
        // machines.
        let harmless = [
            ("0x10000000", 272, 97),                     // unshare a user namespace
            ("0x10000011, 0, 0, 0, 0", 56, 220),         // clone into one
            ("0, -3, 1", 250, 219),                      // keyctl
            ("\"x\", 0", 319, 279),                      // memfd_create
            ("0x0040000", 135, 92),                      // personality
            ("8, \"\\0\" x 120", 425, 425),              // io_uring_setup
            ("-100, \".\", \"\\0\" x 24, 24", 437, 437), // openat2
        ];
        // Calls that need more privileges, or would be harmful. Without a sandbox, they may fail
        // for other reasons as well.
        let harmful = [
            ("0x40000000", 272, 97),                       // unshare a network
            ("\"keyring\", \"x\", 0, 0, -3", 248, 217),    // add_key
            ("0, \"\\0\" x 72, 72", 321, 280),             // bpf
            ("\"\\0\" x 120, 0, -1, -1, 0", 298, 241),     // perf_event_open
            ("1", 323, 282),                               // userfaultfd
            ("\"none\", \".\", \"tmpfs\", 0, 0", 165, 40), // mount
            ("\".\"", 161, 51),                            // chroot
            ("\".\", \".\"", 155, 41),                     // pivot_root
            ("\"tmpfs\", 0", 430, 430),                    // fsopen
            ("-100, \".\", 1", 428, 428),                  // open_tree
            ("0, 0, 0", 175, 105),                         // init_module
            ("0, 0x3b6", 29, 194),                         // shmget
            ("0, 16", 300, 262),                           // fanotify_init
            ("3, 0, 0", 103, 116),                         // syslog
            ("\"\\0\" x 64, 64", 435, 435),                // clone3
            ("0, 0, 1", 444, 444),                         // landlock_create_ruleset
            ("1000, 1001, 2", 436, 436), // close_range, for descriptors of its own
            ("78, 1, 64, 0, 0", 157, 167), // prctl, for a table of futexes
            ("0", 467, 467),             // newer than the filter
        ];
        let numbered = |calls: &[(&str, u32, u32)]| -> Vec<String> {
            calls.iter().map(|(arguments, x86, arm)| call_number(arguments, *x86, *arm)).collect()
        };
        let harmless = numbered(&harmless);
        let harmless: Vec<&str> = harmless.iter().map(String::as_str).collect();
        let open = OPEN.succeed(&World::new(), &[], &harmless);
        assert!(open.len() >= 5, "{open:#?}");
        let mut harmful = numbered(&harmful);
        if cfg!(target_arch = "x86_64") {
            // `getpid` of the x32 ABI, and a socket of it.
            harmful.push(call_number("0", 0x4000_0000 + 39, 0));
            harmful.push(call_number("2, 1, 0", 0x4000_0000 + 41, 0));
        }
        let all: Vec<&str> =
            harmless.into_iter().chain(harmful.iter().map(String::as_str)).collect();
        for stage in stages() {
            let nothing: [&str; 0] = [];
            assert_eq!(stage.succeed(&World::new(), &[], &all), nothing, "{stage:?}");
            assert_eq!(stage.output("unshare -r true 2>/dev/null || echo goes on"), "goes on\n");
        }
    }

    #[test]
    fn nothing_can_be_typed_into_the_terminal() {
        let script = r#"perl -e 'for my $call (0x5412, 0x100005412, 0x541C) { my $x = "x"; syscall(NUMBER, 0, $call, $x) == -1 && print $! + 0, " " }'
            (: < /dev/tty) 2>/dev/null || echo none"#;
        let script =
            script.replace("NUMBER", if cfg!(target_arch = "x86_64") { "16" } else { "29" });
        for stage in stages() {
            assert_eq!(stage.output(&script), "1 1 1 none\n", "{stage:?}");
        }
    }

    #[test]
    fn root_is_nobody_special_inside() {
        let attempts = [
            "grep -q '^Cap[A-Za-z]*:.*[1-9a-f]' /proc/self/status",
            "mknod device c 1 3",
            "mknod disk b 254 0",
            "touch suid && chmod u+s suid && ls -l suid | grep rws",
            "touch sgid && chmod g+s sgid",
            r#"perl -e 'sysopen(F, "suid2", 0101, 04755) || exit 1'"#,
            r#"perl -e 'my $name = "suid3"; exit(syscall(NUMBER, -100, $name, 0101, 04755) == -1)'"#,
            "chown $(($(id -u) + 1)) .",
            // Nothing would change if they worked.
            "cat /proc/sys/kernel/hostname > /proc/sys/kernel/hostname",
            "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness",
            ": >> /proc/sysrq-trigger",
            "hostname \"$(hostname)\"",
            "perl -e '$> = 0; $< = 0; exit($< != 0 || $> != 0)' && test $(id -u) = 1",
            "mount -t tmpfs x .",
            "setpriv --reuid 1 true",
            "su -c true",
            "echo 0 > /proc/self/oom_score_adj && test \"$(cat /proc/self/oom_score_adj)\" -lt 1000",
        ];
        let number = if cfg!(target_arch = "x86_64") { "257" } else { "56" };
        let attempts = attempts.map(|it| it.replace("NUMBER", number));
        let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
        for stage in stages() {
            let nothing: [&str; 0] = [];
            assert_eq!(stage.succeed(&World::new(), &[], &attempts), nothing, "{stage:?}");
        }
    }

    /// Returns a line of Perl that makes a system call by its number.
    fn call_number(arguments: &str, x86_64: u32, aarch64: u32) -> String {
        let number = if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 };
        perl_call(&number, arguments)
    }
}

mod nobody_of_a_run_is_left {
    use super::*;

    /// Returns a time limit.
    fn within(seconds: f64) -> RunLimits {
        RunLimits { timeout: Duration::from_secs_f64(seconds), ..RunLimits::default() }
    }

    /// Returns a script that keeps forking into new sessions.
    fn relay(word: &str) -> String {
        format!(
            "perl -MPOSIX -e '$SIG{{TERM}} = q(IGNORE); while (1) {{ fork && POSIX::_exit(0); setsid() }}' {word}"
        )
    }

    #[test]
    fn a_timeout_kills_the_whole_tree() {
        for stage in stages() {
            let word = unique();
            let script = format!(
                "(setsid sh -c \"trap '' TERM HUP; sleep {word}\" &)\n\
                 perl -e 'fork && exit; setpgrp; fork && exit; $SIG{{TERM}} = q(IGNORE); exec qw(sleep {word})'\n\
                 {}\n\
                 sleep {word}",
                relay(&word)
            );
            let job = Job { limits: within(0.5), ..stage.job(&script) };
            let outcome = stage.run_job(job);
            assert_eq!(outcome.status, OutcomeStatus::TimedOut, "{stage:?} {outcome:?}");
            assert_eq!(alive(&word), 0, "{stage:?}");
            assert_eq!(outcome.message.as_deref(), Some("timed out after 0.5 s"));
        }
    }

    #[test]
    fn whoever_ignores_a_polite_signal_is_killed() {
        for stage in stages() {
            let word = unique();
            let job = Job {
                limits: within(0.3),
                ..stage.job(&format!("trap '' TERM; sleep {word}; sleep {word}"))
            };
            let outcome = stage.run_job(job);
            assert_eq!(
                (outcome.status, outcome.signal),
                (OutcomeStatus::TimedOut, Some(9)),
                "{stage:?}"
            );
            let polite = "trap 'echo bye; exit 3' TERM; echo hello; sleep 60 & wait";
            let outcome = stage.run_job(Job { limits: within(2.0), ..stage.job(polite) });
            assert_eq!(
                (outcome.status, outcome.exit_code),
                (OutcomeStatus::TimedOut, Some(3)),
                "{stage:?}"
            );
            assert_eq!(outcome.stdout.unwrap().text, "hello\nbye\n", "{stage:?}");
        }
    }

    #[test]
    fn a_grandchild_that_holds_the_output_is_not_waited_for() {
        for stage in stages() {
            let word = unique();
            let text = stage.output(&format!(
                "sleep {word} & setsid sleep {word} & {}\necho done",
                relay(&word)
            ));
            assert_eq!(text, "done\n", "{stage:?}");
            // They would sleep for longer than a run may take.
            assert_eq!(alive(&word), 0, "{stage:?}");
        }
    }

    #[test]
    fn a_run_that_nobody_waits_for_ends() {
        for stage in stages() {
            let word = unique();
            let job = stage
                .job(&format!("trap '' TERM; setsid sleep {word} & echo x > file; sleep {word}"));
            let base = job.work.path().parent().unwrap().to_owned();
            let runtime = Runtime::new().unwrap();
            runtime.block_on(async {
                let sandbox = stage.sandbox();
                let run = sandbox.run(job);
                tokio::pin!(run);
                while alive(&word) < 2 {
                    assert!(timeout(Duration::from_millis(20), &mut run).await.is_err());
                }
            });
            until("nobody is left", || alive(&word) == 0 && !base.exists());
        }
    }

    #[test]
    fn an_engine_that_is_killed_leaves_nobody() {
        let name = "sandbox::nobody_of_a_run_is_left::an_engine_that_is_killed_leaves_nobody";
        be_engine();
        for number in 0..stages().len() {
            let mut run = Engine::start(name, number);
            run.engine.kill().unwrap();
            run.engine.wait().unwrap();
            until("nobody is left", || alive(&run.word) == 0 && !run.base.exists());
        }
    }

    #[test]
    fn engine_and_supervisor_killed_together_leave_nobody() {
        let name =
            "sandbox::nobody_of_a_run_is_left::engine_and_supervisor_killed_together_leave_nobody";
        be_engine();
        for number in 0..stages().len() {
            for round in 0..10 {
                let mut run = Engine::start(name, number);
                let engine = run.engine.id();
                let supervisor = children(engine).join(" ");
                // The second one may have noticed.
                let kill = match round % 2 {
                    0 => format!("kill -9 {engine} {supervisor}"),
                    _ => format!("kill -9 {supervisor} {engine}"),
                };
                assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
                run.engine.wait().unwrap();
                until("nobody is left", || alive(&run.word) == 0);
                // Perhaps no process was left to remove it.
                let _ = fs::remove_dir_all(run.base);
            }
        }
    }

    const WORD: &str = "PROWESS_SPECS_WORD";
    const STAGE: &str = "PROWESS_SPECS_STAGE";
    const FILE: &str = "PROWESS_SPECS_FILE";

    /// An engine in a separate process, which runs an endless script.
    struct Engine {
        engine: Child,
        /// The word that identifies its three processes.
        word: String,
        base: PathBuf,
    }

    impl Engine {
        /// Starts the engine of a test in a separate process.
        fn start(test: &str, stage: usize) -> Self {
            let (word, world) = (unique(), World::new());
            let file = world.path("work");
            let engine = Command::new(env::current_exe().unwrap())
                .args(["--exact", test])
                .env(WORD, &word)
                .env(STAGE, stage.to_string())
                .env(FILE, &file)
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap();
            until("it runs", || alive(&word) >= 3);
            let work = PathBuf::from(fs::read_to_string(&file).unwrap());
            let base = work.parent().unwrap().to_owned();
            assert!(base.exists());
            Self { engine, word, base }
        }
    }

    /// Runs as the engine, if this process was started as one. It is killed here.
    fn be_engine() {
        if let (Ok(word), Ok(stage)) = (env::var(WORD), env::var(STAGE)) {
            let stage = stages()[stage.parse::<usize>().unwrap()];
            let job = stage.job(&format!(
                "trap '' TERM HUP; setsid sleep {word} & (setsid sleep {word} &) ; sleep {word}"
            ));
            fs::write(env::var(FILE).unwrap(), job.work.path().to_str().unwrap()).unwrap();
            block_on(stage.sandbox().run(job)).unwrap();
            panic!("it was not killed");
        }
    }

    /// Returns the child processes of a process.
    fn children(pid: u32) -> Vec<String> {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let of = |it: fs::DirEntry| fs::read_to_string(it.path().join("children")).unwrap();
        threads
            .flat_map(|it| of(it).split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn thirty_timeouts_in_a_row_leave_nobody() {
        for stage in stages() {
            let word = unique();
            for _ in 0..30 {
                let script =
                    format!("setsid sleep {word} & (setsid setsid sleep {word} &) ; sleep {word}");
                let job = Job { limits: within(0.02), ..stage.job(&script) };
                let base = job.work.path().parent().unwrap().to_owned();
                assert_eq!(stage.run_job(job).status, OutcomeStatus::TimedOut, "{stage:?}");
                assert_eq!((alive(&word), base.exists()), (0, false), "{stage:?}");
            }
        }
    }

    #[test]
    fn a_work_directory_is_gone_however_it_was_left() {
        let script = r#"
            perl -e 'for (1 .. 40) { $d = "d" x 200; mkdir $d and chdir $d or die $! }'
            mkdir -p locked/in/side && echo x > locked/in/side/file && chmod 000 locked/in/side locked/in locked
            ln -s / root; ln -s loop loop; mkfifo pipe
            perl -e 'open F, ">\xff\xfe\n"; mkdir "1"; mkdir "1/2"; mkdir "1/1"; open F, ">1/1/1"'
            echo done
        "#;
        for stage in stages() {
            let job = stage.job(script);
            let base = job.work.path().parent().unwrap().to_owned();
            let outcome = stage.run_job(job);
            assert_eq!(outcome.stdout.unwrap().text, "done\n", "{stage:?} {:?}", outcome.stderr);
            assert!(!base.exists(), "{stage:?}");
        }
    }

    #[test]
    fn no_control_group_is_left() {
        for stage in stages() {
            let word = unique();
            let job = stage.job(&format!("setsid sleep {word} & sleep {word}"));
            let base = job.work.path().parent().unwrap().to_owned();
            let sandbox = stage.sandbox();
            let run = thread::spawn(move || block_on(sandbox.run(job)));
            until("it runs", || alive(&word) >= 2);
            let groups = groups_of(&word);
            // Its creator cannot remove it.
            let supervisor = supervisor_of(&word);
            let kill = Command::new("kill").args(["-9", &supervisor]).status().unwrap();
            assert!(kill.success());
            assert!(run.join().unwrap().is_err(), "{stage:?}");
            until("nobody is left", || alive(&word) == 0);
            until("no group is left", || {
                assert_eq!(stage.output("echo next"), "next\n");
                groups.iter().all(|it| !it.exists())
            });
            let _ = fs::remove_dir_all(base);
        }
    }

    /// Returns our control groups of a process, as folders.
    fn groups_of(word: &str) -> Vec<PathBuf> {
        let text = fs::read_to_string(format!("/proc/{}/cgroup", one(word))).unwrap();
        let ours = text.lines().filter(|it| it.contains("/prowess-run-"));
        ours.map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controller, path) = (parts.next().unwrap(), parts.next().unwrap());
            Path::new("/sys/fs/cgroup").join(controller).join(path.trim_start_matches('/'))
        })
        .collect()
    }

    /// Returns the supervisor of a process: the topmost launcher among its ancestors.
    fn supervisor_of(word: &str) -> String {
        let is_launcher = |pid: &String| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"prowess-launcher")
        };
        let parent = |pid: &String| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|it| it.strip_prefix("PPid:"))?;
            Some(line.trim().to_owned())
        };
        let above: Vec<String> = std::iter::successors(Some(one(word)), parent).collect();
        above.into_iter().rfind(is_launcher).unwrap()
    }

    /// Returns a process with a word in its command line.
    fn one(word: &str) -> String {
        let has = |pid: &String| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"sleep") && line.windows(word.len()).any(|it| it == word.as_bytes())
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.map(|it| it.file_name().to_string_lossy().into_owned()).find(has).unwrap()
    }
}

mod a_run_takes_no_more_than_its_limits {
    use super::*;

    #[test]
    fn output_is_cut_in_the_middle_and_says_so() {
        for stage in stages() {
            let limits = RunLimits { output: 1000, ..RunLimits::default() };
            let script = "echo start; yes | head -c 5000000; echo end; (echo start; yes | head -c 100000; echo end) >&2";
            let outcome = stage.run_job(Job { limits, ..stage.job(script) });
            let json = serde_json::to_value(&outcome).unwrap();
            let streams = [("stdout", 5_000_010), ("stderr", 100_010)];
            for (name, total) in streams {
                let text = json[name].as_str().unwrap();
                let cut = json[format!("{name}_cut")].as_u64().unwrap();
                assert_eq!(cut, total - 1000, "{stage:?}");
                assert!(text.starts_with("start\ny\n") && text.ends_with("y\nend\n"), "{text}");
                assert!(text.contains(&format!("\n[… {cut} bytes were cut …]\n")), "{text}");
            }
        }
        let json = serde_json::to_value(best().run("echo short")).unwrap();
        assert_eq!(json["stdout"], "short\n");
        assert_eq!((json.get("stdout_cut"), json.get("stderr_cut")), (None, None));
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        for stage in stages() {
            let text = stage.output(r"printf 'ä\377\376b\000c'");
            assert_eq!(text, "ä\u{FFFD}\u{FFFD}b\0c", "{stage:?}");
        }
    }

    #[test]
    fn output_comes_as_it_is_printed() {
        for stage in stages() {
            let (sender, mut chunks) = mpsc::unbounded_channel();
            let script = "echo one; sleep 0.3; echo two >&2; sleep 0.3; yes | head -c 100000";
            let limits = RunLimits { output: 1000, ..RunLimits::default() };
            let job = Job { chunks: Some(sender), limits, ..stage.job(script) };
            block_on(async {
                let run = tokio::spawn(async move { stage.sandbox().run(job).await });
                assert_eq!(chunks.recv().await, Some(Chunk::Stdout(b"one\n".to_vec())));
                assert!(!run.is_finished());
                assert_eq!(chunks.recv().await, Some(Chunk::Stderr(b"two\n".to_vec())));
                assert!(!run.is_finished());
                let mut rest = Vec::new();
                while let Some(Chunk::Stdout(bytes)) = chunks.recv().await {
                    rest.extend(bytes);
                }
                let [head, tail] = [498, 250].map(|it| "y\n".repeat(it));
                let expected = format!("{head}\n[… 98504 bytes were cut …]\n{tail}");
                assert_eq!(String::from_utf8(rest).unwrap(), expected);
                assert_eq!(run.await.unwrap().unwrap().stdout.cut, 99_004);
            });
        }
    }

    #[test]
    fn silence_can_be_limited() {
        for stage in stages() {
            let limits = RunLimits { idle: Some(Duration::from_secs(2)), ..RunLimits::default() };
            let talks = "for i in 1 2 3 4 5; do echo $i; sleep 0.5; done";
            let outcome = stage.run_job(Job { limits, ..stage.job(talks) });
            assert_eq!(outcome.status, OutcomeStatus::Ok, "{stage:?} {outcome:?}");
            let word = unique();
            let outcome =
                stage.run_job(Job { limits, ..stage.job(&format!("echo hello; sleep {word}")) });
            assert_eq!(outcome.status, OutcomeStatus::TimedOut, "{stage:?} {outcome:?}");
            assert_eq!(outcome.message.as_deref(), Some("no output for 2 s"));
            assert_eq!(outcome.stdout.unwrap().text, "hello\n");
            assert_eq!(alive(&word), 0);
        }
    }

    #[test]
    fn a_processor_can_be_used_for_so_long() {
        for stage in own_stages() {
            let limits = RunLimits { cpu: Duration::from_secs(1), ..RunLimits::default() };
            let outcome = stage.run_job(Job { limits, ..stage.job("while :; do :; done") });
            assert_eq!(outcome.status, OutcomeStatus::Killed, "{stage:?} {outcome:?}");
            assert_eq!(outcome.message.as_deref(), Some("used more than 1 s of CPU time"));
        }
    }

    #[test]
    fn memory_is_limited_for_one_process_and_for_all_together() {
        let alone = "perl -e '$x = \"x\" x (3 << 30); print length $x'";
        // Shared memory does not belong to a single process; many small processes add up.
        let shared = "perl -e 'open(F, \"+>\", \"/dev/shm/x\") or exit 7; for (1 .. 3000) { print F \"x\" x (1 << 20) or exit 8 } print \"all\"'";
        let many = "for i in 1 2 3 4 5 6 7 8; do perl -e '$x = \"x\" x (100 << 20); sleep 200' & done; wait; echo all";
        for stage in stages() {
            let limits = RunLimits { memory: 512 * MIB, timeout: LONG, ..RunLimits::default() };
            for script in [alone, shared, many] {
                let outcome = stage.run_job(Job { limits, ..stage.job(script) });
                assert!(
                    matches!(outcome.status, OutcomeStatus::Failed | OutcomeStatus::Killed),
                    "{stage:?} {outcome:?}"
                );
                assert_eq!(outcome.stdout.unwrap().text, "", "{stage:?} {script}");
            }
            for script in [many, &many.replace("$x", &format!("{}; $x", hide()))] {
                let outcome = stage.run_job(Job { limits, ..stage.job(script) });
                let said = outcome.message.as_deref();
                assert_eq!(said, Some("used more than 512 MiB of memory"), "{stage:?} {script}");
            }
        }
    }

    /// Runs a script that exceeds its memory, and checks the reported reason if possible.
    fn assert_out_of_memory(script: &str) {
        let limits = RunLimits { memory: 64 * MIB, timeout: LONG, ..RunLimits::default() };
        for stage in limited_stages() {
            let outcome = stage.run_job(Job { limits, ..stage.job(script) });
            let (status, said) = (outcome.status, outcome.message);
            let ended = matches!(status, OutcomeStatus::Failed | OutcomeStatus::Killed);
            assert!(ended, "{stage:?} {script} {status:?} {said:?}");
            assert_eq!(outcome.stdout.unwrap().text, "", "{stage:?} {script}");
        }
    }

    /// Returns Perl functions that map memory (bytes, protection, flags), fill it, and release it.
    fn memory_words() -> String {
        let [map, read, unmap, advise] = ["mmap", "read", "munmap", "madvise"].map(number);
        format!(
            "sub map_it {{ my @a = (0, $_[0], $_[1], $_[2], -1, 0); my $p = syscall({map}, @a); \
             $p == -1 and exit 3; $p }} \
             sub fill {{ open(my $z, \"<\", \"/dev/zero\"); my @a = (fileno($z), @_); \
             syscall({read}, @a) == $_[1] or exit 4 }} \
             sub unmap {{ my @a = @_; syscall({unmap}, @a) == 0 or exit 5 }} \
             sub advise {{ my @a = @_; syscall({advise}, @a) == 0 or exit 6 }} "
        )
    }

    #[test]
    fn shared_memory_that_no_process_shows_counts() {
        let words = memory_words();
        let ways = [
            "fill($p, 16 << 20); advise($p, 16 << 20, 4)",
            "if (!fork) { fill($p, 16 << 20); exit } wait; $? == 0 or exit 7",
            "fill($p, 16 << 20); unmap($p + 4096, (16 << 20) - 4096)",
        ];
        for way in ways {
            assert_out_of_memory(&format!(
                "perl -e '{words} for (1 .. 16) {{ my $p = map_it(16 << 20, 3, 0x21); {way} }} \
                 sleep 200; print \"all\"'"
            ));
        }
    }

    #[test]
    fn page_tables_and_mappings_count() {
        let words = memory_words();
        // One page of every two megabytes, of 128 gigabytes that are only read.
        let tables =
            "my $p = map_it(128 << 30, 1, 0x22); advise($p + ($_ << 21), 4096, 22) for 0 .. 65535";
        assert_out_of_memory(&format!("perl -e '{words} {tables}; sleep 200; print \"all\"'"));
        // None of them can be merged with the next.
        let many = "for (1 .. 12) { next if fork; map_it(4096, $_ & 1, 0x22) for 1 .. 60000; sleep 200; exit }";
        assert_out_of_memory(&format!("perl -e '{words} {many} sleep 200; print \"all\"'"));
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_counts() {
        if !is_installed("python3") {
            return;
        }
        let exit = number("exit");
        let script = format!(
            "cat > x.py <<'E'
import ctypes, os, threading, time
def work():
    kept = bytearray(b'x' * (20 << 20))
    time.sleep(200)
    print(len(kept))
for i in range(8):
    if os.fork() == 0:
        threading.Thread(target=work).start()
        ctypes.CDLL(None).syscall({exit}, 0)
time.sleep(200)
os.write(1, b'all')
os._exit(0)
E
python3 x.py"
        );
        assert_out_of_memory(&script);
    }

    #[test]
    fn what_only_the_kernel_keeps_counts() {
        if !is_installed("python3") {
            return;
        }
        // Many watches; and locks on every other byte.
        let watched = "
    import select
    pollers = [select.epoll() for i in range(100)]
    pipes = [os.pipe() for i in range(60)]
    for poller in pollers:
        for pipe in pipes:
            poller.register(pipe[0])
            poller.register(pipe[1])";
        let locked = "
    import fcntl
    for i in range(200):
        f = os.open(f'{n}-{i}', os.O_RDWR | os.O_CREAT)
        for at in range(120):
            fcntl.lockf(f, fcntl.LOCK_EX, 1, at * 2)";
        for held in [watched, locked] {
            assert_out_of_memory(&format!(
                "cat > x.py <<'E'
import os, time
def hold(n):{held}
    time.sleep(200)
for n in range(40):
    if os.fork() == 0:
        hold(n)
        os._exit(1)
time.sleep(200)
os.write(1, b'all')
E
python3 x.py"
            ));
        }
    }

    #[test]
    fn what_waits_in_sockets_is_memory() {
        let pairs = "for (1 .. 115) { socketpair($a[$_], $b[$_], AF_UNIX, SOCK_STREAM, 0) or last; \
                     $a[$_]->blocking(0); 1 while syswrite($a[$_], \"x\" x 65536) } sleep 200";
        let script = format!(
            "for i in $(seq 20); do perl -MSocket -MIO::Handle -e '{pairs}' & done; wait; echo all"
        );
        let larger = "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or exit 2; \
                      exit !setsockopt(A, SOL_SOCKET, SO_SNDBUF, 16 << 20)'";
        assert_eq!(OPEN.run(larger).status, OutcomeStatus::Ok);
        for stage in stages() {
            let limits = RunLimits { memory: 512 * MIB, timeout: LONG, ..RunLimits::default() };
            let outcome = stage.run_job(Job { limits, ..stage.job(&script) });
            let said = outcome.message.as_deref();
            assert_eq!(said, Some("used more than 512 MiB of memory"), "{stage:?} {outcome:?}");
            assert_eq!(stage.run(larger).exit_code, Some(1), "{stage:?}");
        }
    }

    /// Returns a Perl expression that hides a process from others of its user.
    fn hide() -> String {
        format!("syscall({}, 4, 0)", number("prctl"))
    }

    #[test]
    fn files_and_all_files_together_are_limited() {
        let limits = RunLimits { file: MIB, work: 4 * MIB, timeout: LONG, ..RunLimits::default() };
        for stage in stages() {
            let one =
                stage.run_job(Job { limits, ..stage.job("exec head -c 2000000 /dev/zero > x") });
            assert_ne!(one.status, OutcomeStatus::Ok, "{stage:?} {one:?}");
            let at_once = "fallocate -l 500000 x && exit 1; [ ! -s x ]";
            let outcome = stage.run_job(Job { limits, ..stage.job(at_once) });
            assert_eq!(outcome.status, OutcomeStatus::Ok, "{stage:?} {outcome:?}");
            // Another way to do the same.
            let reserve = r#"perl -e 'open(F, "+>", "x") or exit 2; my $room = pack("s2 x4 q2 l L5", 0, 0, 0, 500000);
                              exit !ioctl(F, 0x40305828, $room)'"#;
            assert_eq!(stage.run(reserve).exit_code, Some(1), "{stage:?}");
            let huge = stage.run_job(Job { limits, ..stage.job("truncate -s 10G x") });
            assert_ne!(huge.status, OutcomeStatus::Ok, "{stage:?} {huge:?}");
            let many = "i=0; while :; do i=$((i+1)); head -c 500000 /dev/zero > $i || exit 1; done";
            let temporary = format!("cd $TMPDIR; {many}");
            let empty = "perl -e 'for (1 .. 1e9) { open(F, \">\", \"f$_\") || exit 1 }'";
            let deleted = r#"perl -e '
                for (1 .. 100) {
                    open($f[$_], ">", "x") && syswrite($f[$_], "x" x 500000) && unlink("x") || exit 1;
                    select(undef, undef, undef, 0.1);
                }'"#;
            let hidden = deleted.replace("for", &format!("{}; for", hide()));
            // It has ended before it is checked.
            let fast = "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 500000 /dev/zero > $i; done";
            for script in [many, &temporary, empty, deleted, &hidden, fast] {
                let outcome = stage.run_job(Job { limits, ..stage.job(script) });
                assert_eq!(outcome.status, OutcomeStatus::Killed, "{stage:?} {script} {outcome:?}");
                let said = outcome.message.as_deref();
                assert_eq!(said, Some("wrote more than 4 MiB of files"), "{stage:?}");
            }
        }
    }

    #[test]
    fn files_count_however_they_are_put_away() {
        let deep = r#"perl -e 'for (1 .. 20) { $d = "d" x 250; mkdir $d and chdir $d or die }
            for (1 .. 3) { open(F, ">", $_) && syswrite(F, "x" x 7000000) or die }'"#;
        let locked = "mkdir -p l/m; chmod 300 l/m; chmod 300 l; cd l/m; \
                      for i in 1 2 3; do head -c 7000000 /dev/zero > $i; done";
        let [map, close_range] = ["mmap", "close_range"].map(number);
        let mapped = format!(
            r#"perl -e 'for (1 .. 3) {{
                open(F, "+>", "x") && syswrite(F, "x" x 7000000) or die;
                my @a = (0, 4096, 1, 1, fileno(F), 0); syscall({map}, @a) == -1 and die;
                unlink("x"); close(F) }} sleep 200; print "all"'"#
        );
        let running = "for i in 1 2 3; do cp /bin/sleep s; head -c 7000000 /dev/zero >> s; \
                       ./s 20 & sleep 0.3; rm s; done; wait; echo all";
        let thread = format!(
            "cat > x.py <<'E'
import ctypes, os, threading, time
def work():
    ctypes.CDLL(None).syscall({close_range}, 1000, 1001, 2)
    for i in range(3):
        f = os.open('x', os.O_RDWR | os.O_CREAT)
        os.write(f, b'x' * 7000000)
        os.unlink('x')
    time.sleep(200)
threading.Thread(target=work).start()
E
python3 x.py; echo all"
        );
        let mut ways = vec![deep.to_owned(), locked.to_owned(), mapped, running.to_owned()];
        ways.extend(is_installed("python3").then_some(thread));
        let limits =
            RunLimits { file: 8 * MIB, work: 16 * MIB, timeout: LONG, ..RunLimits::default() };
        for stage in limited_stages() {
            for script in &ways {
                let outcome = stage.run_job(Job { limits, ..stage.job(script) });
                let said = outcome.message.as_deref();
                assert_eq!(said, Some("wrote more than 16 MiB of files"), "{stage:?} {script}");
                assert_eq!(outcome.stdout.unwrap().text, "", "{stage:?} {script}");
            }
        }
    }

    #[test]
    fn open_files_cannot_be_sent() {
        if !is_installed("python3") {
            return;
        }
        let script = "cat > x.py <<'E'
import os, socket
a, b = socket.socketpair()
f = os.open('x', os.O_RDWR | os.O_CREAT)
a.send(b'plain')
print(b.recv(9).decode(), flush=True)
socket.send_fds(a, [b'x'], [f])
print('all')
E
python3 x.py";
        assert_eq!(OPEN.output(script), "plain\nall\n");
        for stage in limited_stages() {
            let outcome = stage.run(script);
            assert_eq!(outcome.status, OutcomeStatus::Failed, "{stage:?} {outcome:?}");
            assert_eq!(outcome.stdout.unwrap().text, "plain\n", "{stage:?}");
        }
    }

    #[test]
    fn who_lets_nobody_look_is_stopped() {
        let script = "cp /bin/sleep s; chmod 111 s; ./s 20 & wait; echo all";
        for stage in stages().into_iter().filter(|it| it.nobody || !is_root()) {
            let outcome = stage.run(script);
            assert_eq!(outcome.status, OutcomeStatus::Killed, "{stage:?} {outcome:?}");
            let said = outcome.message.unwrap();
            assert!(said.starts_with("memory and files could not be measured"), "{said}");
        }
    }

    #[test]
    fn a_fork_loop_stays_within_its_limit_and_its_time() {
        let limits =
            RunLimits { processes: 32, timeout: Duration::from_secs(2), ..RunLimits::default() };
        let report = best().sandbox().probe();
        let grouped = report.checks.iter().any(|it| it.detail.contains("limits: cgroup"));
        for stage in limited_stages() {
            for before in ["", "setpgrp; "] {
                let word = unique();
                let script = format!(
                    "perl -e '$SIG{{TERM}} = sub {{}}; while (1) {{ fork; {before}}}' {word}"
                );
                let job = Job { limits, ..stage.job(&script) };
                let run = thread::spawn(move || stage.run_job(job));
                let mut most = 0;
                while !run.is_finished() {
                    most = most.max(alive(&word));
                }
                let outcome = run.join().unwrap();
                assert!(
                    matches!(outcome.status, OutcomeStatus::TimedOut | OutcomeStatus::Killed),
                    "{stage:?} {outcome:?}"
                );
                // If the kernel does not limit them, they are killed once they are counted.
                let bounded = match (stage.nobody, stage.counted) {
                    (false, false) => grouped,
                    _ => stage.level == SandboxLevel::Strong && stage.nobody,
                };
                let most_there = if bounded { 2 * 32 } else { 20 * 32 };
                assert!(most <= most_there, "{stage:?} {most}");
                assert_eq!(alive(&word), 0, "{stage:?}");
            }
        }
    }

    #[test]
    fn processes_and_descriptors_are_limited() {
        let limits =
            RunLimits { processes: 30, descriptors: 64, timeout: LONG, ..RunLimits::default() };
        for stage in stages() {
            let word = unique();
            let sleepers = format!(
                "i=0; while [ $i -lt 200 ]; do i=$((i+1)); sleep {word} & done; sleep 1; echo all"
            );
            let sessions = sleepers.replace("sleep 6", "setsid sleep 6");
            for script in [sleepers, sessions] {
                let outcome = stage.run_job(Job { limits, ..stage.job(&script) });
                assert!(
                    matches!(outcome.status, OutcomeStatus::Failed | OutcomeStatus::Killed),
                    "{stage:?} {outcome:?}"
                );
                assert_eq!(outcome.stdout.unwrap().text, "", "{stage:?}");
                assert_eq!(alive(&word), 0, "{stage:?}");
            }
            let descriptors = "perl -e 'for (1 .. 200) { open($f[$_], \"<\", \"/dev/null\") or last; $n = $_ } print $n'";
            let outcome = stage.run_job(Job { limits, ..stage.job(descriptors) });
            let count: u64 = outcome.stdout.unwrap().text.parse().unwrap();
            assert!((50..=64).contains(&count), "{stage:?} {count}");
            assert_eq!(stage.output("ulimit -c; ulimit -H -c"), "0\n0\n", "{stage:?}");
        }
    }
}

mod what_a_script_leaves_can_be_taken_out {
    use super::*;

    fn left(stage: Stage, script: &str) -> (Outcome, Work) {
        let (result, work) = block_on(stage.sandbox().run_keeping(stage.job(script))).unwrap();
        let outcome = Outcome::from(result);
        assert_eq!(outcome.status, OutcomeStatus::Ok, "{outcome:?}");
        (outcome, work)
    }

    #[test]
    fn files_are_listed_and_copied() {
        for stage in stages() {
            let (outcome, work) =
                left(stage, "mkdir -p 'a b/ü'; echo 1 > 'a b/ü/x'; echo 2 > y; mkdir empty");
            assert_eq!(outcome.files, ["a b/ü/x", "y"], "{stage:?}");
            assert_eq!(work.read("y", 100).unwrap(), b"2\n");
            assert!(work.read("y", 1).is_err());
            let into = World::new();
            let copied = work.collect(&Root::open(&into.path("home")).unwrap(), MIB).unwrap();
            assert_eq!(copied, ["a b/ü/x", "y"]);
            assert_eq!(fs::read(into.path("home/a b/ü/x")).unwrap(), b"1\n");
            let base = work.path().parent().unwrap().to_owned();
            assert!(base.exists());
            drop(work);
            assert!(!base.exists());
        }
    }

    #[test]
    fn no_link_is_followed_on_the_way_out() {
        let world = World::new().file("secret/key", "secret");
        let secret = world.path("secret").display().to_string();
        let script = format!(
            "ln -s {secret}/key result; ln -s {secret} out; mkdir in; ln -s {secret}/key in/result; mkfifo pipe; echo x > file"
        );
        for stage in stages() {
            let (outcome, work) = left(stage, &script);
            assert_eq!(outcome.files, ["file"], "{stage:?}");
            for path in ["result", "out/key", "in/result", "pipe", "../given/script", "/etc/passwd"]
            {
                assert!(work.read(path, MIB).is_err(), "{path}");
            }
            let into = World::new().link("home/file", world.path("secret/key"));
            let copied = work.collect(&Root::open(&into.path("home")).unwrap(), MIB);
            assert!(copied.is_err(), "a link in the place of the copy");
            assert_eq!(fs::read(world.path("secret/key")).unwrap(), b"secret");
        }
    }

    #[test]
    fn no_more_is_copied_out_than_may_be() {
        let (outcome, work) = left(best(), "for i in 1 2 3 4; do truncate -s 1M $i; done");
        assert_eq!(outcome.files.len(), 4);
        let into = World::new();
        let root = Root::open(&into.path("home")).unwrap();
        assert!(work.collect(&root, 3 * MIB).is_err());
        assert_eq!(work.collect(&root, 4 * MIB).unwrap().len(), 4);
    }
}

mod a_poor_machine_is_no_reason_to_run_without_a_sandbox {
    use super::*;

    /// A feature that a machine lacks: a call that fails, with its numbers on x86_64 and aarch64
    /// and an errno; some only if an argument has certain bits.
    type Lack = (u32, u32, u32, Option<(u32, u32)>);
    const NO_NAMESPACES: &[Lack] =
        &[(272, 97, 1, None), (56, 220, 1, Some((0, 0x1000_0000))), (435, 435, 38, None)];
    const NO_LANDLOCK: &[Lack] =
        &[(444, 444, 38, None), (445, 445, 38, None), (446, 446, 38, None)];
    const LANDLOCK_OFF: &[Lack] =
        &[(444, 444, 95, None), (445, 445, 95, None), (446, 446, 95, None)];
    const NO_MOUNTS: &[Lack] = &[(165, 40, 1, None)];
    const NO_FILTER: &[Lack] = &[(317, 277, 38, None)];
    const NO_LISTENER: &[Lack] = &[(317, 277, 16, Some((1, 8)))];

    /// Returns Perl code that disables features of a machine by a filter of system calls.
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

    fn poor(lacks: &[&[Lack]], least: SandboxLevel) -> Sandbox {
        Sandbox::new(wrapped(&poorer(lacks)), least)
    }

    #[test]
    fn without_any_level_nothing_runs() {
        let machines: [(&[&[Lack]], &str, &str); 4] = [
            (
                &[NO_NAMESPACES, NO_LANDLOCK],
                "create namespaces: operation not permitted",
                "namespaces",
            ),
            (&[NO_NAMESPACES, LANDLOCK_OFF], "use Landlock: operation not supported", "namespaces"),
            (&[NO_MOUNTS, NO_LANDLOCK], "mount a root: operation not permitted", "namespaces"),
            (&[NO_FILTER], "filter system calls: function not implemented", "seccomp"),
        ];
        for (lacks, reason, remedy) in machines {
            let world = World::new();
            let job = Job {
                writes: vec![world.path("home")],
                ..OPEN.job(&format!("touch {}/x", world.path("home").display()))
            };
            for least in [SandboxLevel::Landlock, SandboxLevel::None] {
                let job = Job {
                    work: Work::new().unwrap(),
                    argv: job.argv.clone(),
                    writes: job.writes.clone(),
                    ..OPEN.job("")
                };
                let error = block_on(poor(lacks, least).run(job)).unwrap_err();
                let said = error.to_string();
                assert!(
                    matches!(error, SandboxError::Unavailable { .. }) && said.contains(reason),
                    "{said}"
                );
                let outcome = Outcome::from(error);
                assert_eq!(outcome.status, OutcomeStatus::Refused);
                assert!(outcome.hint.as_deref().unwrap().contains(remedy), "{:?}", outcome.hint);
            }
            assert!(!world.path("home/x").exists());
        }
    }

    #[test]
    fn the_level_that_was_reached_is_in_the_outcome() {
        let world = World::new();
        let script = format!("echo x > {}/x; echo ran", world.path("home").display());
        for (lacks, level) in [
            (NO_NAMESPACES, SandboxLevel::Landlock),
            (NO_MOUNTS, SandboxLevel::Landlock),
            (NO_LANDLOCK, SandboxLevel::Strong),
        ] {
            if !own_stages().contains(&Stage::new(level)) {
                continue;
            }
            let result =
                block_on(poor(&[lacks], SandboxLevel::Landlock).run(OPEN.job(&script))).unwrap();
            assert_eq!(result.level, level, "{result:?}");
            assert_eq!(result.stdout.text, "ran\n");
            assert!(!world.path("home/x").exists());
            let strong = block_on(poor(&[lacks], SandboxLevel::Strong).run(OPEN.job(&script)));
            assert_eq!(strong.is_ok(), level == SandboxLevel::Strong, "{strong:?}");
        }
    }

    #[test]
    fn running_without_a_sandbox_has_to_be_asked_for() {
        let poor =
            poor(&[NO_NAMESPACES, NO_LANDLOCK, NO_FILTER], SandboxLevel::Strong).unconfined();
        let word = unique();
        let script = format!("env | grep -c CARGO; setsid sleep {word} & sleep {word}");
        let limits = RunLimits { timeout: Duration::from_millis(300), ..RunLimits::default() };
        let result = block_on(poor.run(Job { limits, ..OPEN.job(&script) })).unwrap();
        let json = serde_json::to_value(Outcome::from(result)).unwrap();
        assert_eq!(
            (json["sandbox"].as_str(), json["status"].as_str()),
            (Some("none"), Some("timed_out"))
        );
        assert_eq!(json["stdout"], "0\n");
        assert_eq!(alive(&word), 0);
    }

    #[test]
    fn a_filter_can_be_had_without_its_notifications() {
        for Stage { level, .. } in own_stages() {
            let sandbox = poor(&[NO_LISTENER], SandboxLevel::Landlock).at_most(level);
            let script = format!(
                "{} || echo refused; touch x 2>/dev/null; setsid true 2>/dev/null; echo ran",
                call("socket", "2, 1, 0")
            );
            let result = block_on(sandbox.run(OPEN.job(&script))).unwrap();
            assert_eq!(result.stdout.text, "refused\nran\n", "{level}");
            assert_eq!(result.level, level);
        }
    }
}

mod real_scripts_run_unmodified {
    use super::*;

    #[test]
    fn shells_and_interpreters_work() {
        let scripts = [
            ("sh", "echo hi | tr a-z A-Z | sed s/I/O/", "HO\n"),
            ("sh", "cat <<E\nhere $((6 * 7))\nE", "here 42\n"),
            (
                "bash",
                r#"bash -c 'diff <(echo a) <(echo a) && set -o pipefail && seq 1 1000 | sort -rn | head -1; a=(1 2); echo ${#a[@]}; echo err > /dev/stderr; echo out > /dev/stdout' 2>/dev/null"#,
                "1000\n2\nout\n",
            ),
            ("sh", "mkdir 'a b' && echo x > 'a b/ü \"q\".txt' && cat a*/ü*", "x\n"),
            (
                "sh",
                "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); /bin/true || exit 1; done; echo $i",
                "1000\n",
            ),
            ("perl", "perl -e 'print join(q(,), map { $_ * 2 } 1 .. 3), qq(\\n)'", "2,4,6\n"),
            (
                "python3",
                r#"python3 -c 'import json, tempfile, os; print(json.dumps({"a": [1, "ü"]}, ensure_ascii=False)); tempfile.NamedTemporaryFile().write(b"x"); print(os.getcwd() == os.environ["HOME"])'"#,
                "{\"a\": [1, \"ü\"]}\nTrue\n",
            ),
            (
                "python3",
                "python3 -c 'import subprocess, concurrent.futures as c; print(subprocess.run([\"echo\", \"sub\"], capture_output=True).stdout); print(sum(c.ThreadPoolExecutor(8).map(abs, range(100))))'",
                "b'sub\\n'\n4950\n",
            ),
            ("python3", "python3 -c 'x = bytearray(500 << 20); print(len(x) >> 20)'", "500\n"),
            (
                "node",
                "node -e 'console.log(JSON.stringify({a: [1, 2].map(x => x * 2)}), require(\"child_process\").execSync(\"echo sub\").toString().trim())'",
                "{\"a\":[2,4]} sub\n",
            ),
            (
                "node",
                "node -e 'const b = Buffer.alloc(500 << 20, 1); console.log(b.length >> 20)'",
                "500\n",
            ),
            ("jq", "echo '{\"a\":[1,2,3]}' | jq -c '.a|map(.*2)'", "[2,4,6]\n"),
        ];
        for (program, script, wanted) in scripts {
            if !is_installed(program) {
                continue;
            }
            for stage in stages() {
                assert_eq!(stage.output(script), wanted, "{stage:?} {script}");
            }
        }
    }

    #[test]
    fn slow_and_long_is_fine_within_the_limits() {
        for stage in stages() {
            let limits = RunLimits { timeout: PATIENCE, ..RunLimits::default() };
            let outcome =
                stage.run_job(Job { limits, ..stage.job("sleep 1.5; yes | head -c 900000") });
            assert_eq!(outcome.status, OutcomeStatus::Ok, "{stage:?} {outcome:?}");
            let stdout = outcome.stdout.unwrap();
            assert_eq!((stdout.text.len(), stdout.cut), (900_000, 0));
        }
    }

    #[test]
    fn memory_can_be_shared_and_folders_be_locked() {
        let shared = "import mmap, os
m = mmap.mmap(-1, 1 << 20)
if os.fork() == 0:
    m[:5] = b'child'
    os._exit(0)
os.wait()
print(m[:5].decode())";
        let locked = "mkdir l && echo x > l/f && chmod 0 l && sleep 0.3 && stat -c %a l";
        for stage in limited_stages() {
            if is_installed("python3") {
                let script = format!("python3 - <<'E'\n{shared}\nE");
                assert_eq!(stage.output(&script), "child\n", "{stage:?}");
            }
            assert_eq!(stage.output(locked), "0\n", "{stage:?}");
        }
    }

    #[test]
    fn ordinary_tools_work_in_the_work_directory() {
        let script = "set -e
            printf '#!/bin/sh\\necho made\\n' > tool; chmod +x tool; ./tool
            touch new; touch -d '2001-02-03 04:05:06 UTC' new; date -u -r new +%Y-%m-%d
            mkdir -p in/to; cp -p new in/to/; tar -cf all.tar tool in; mkdir out; tar -xf all.tar -C out; out/tool
            mv out elsewhere; ln -s tool link; ./link; ln tool hard; ./hard; rm -rf elsewhere
            install -m 700 tool installed; stat -c %a installed; mktemp > /dev/null; id -un > /dev/null 2>&1 || true; ls -l > /dev/null";
        for stage in stages() {
            assert_eq!(
                stage.output(script),
                "made\n2001-02-03\nmade\nmade\nmade\n700\n",
                "{stage:?}"
            );
        }
    }

    #[test]
    fn the_place_does_not_matter() {
        let world = World::new().folder("odd \"name\"\n\u{e4} $(x)").folder("gone");
        let odd = world.path("odd \"name\"\n\u{e4} $(x)");
        for stage in own_stages() {
            let work = Work::within(&odd).unwrap();
            let script = work
                .give("a script", b"echo x > y; cat y \"$HOME/y\"; cat < $0 | wc -l; pwd")
                .unwrap();
            let text = format!("x\nx\n0\n{}\n", work.path().display());
            let job = Job { argv: vec!["sh".into(), script.into()], work, ..stage.job("") };
            assert_eq!(stage.run_job(job).stdout.unwrap().text, text, "{stage:?}");
        }
        // The program is in a folder that a script cannot see, and the launcher starts in one that
        // was removed.
        let hidden = world.path("home/prowess");
        assert!(Command::new("cp").args([Path::new(PROGRAM), &hidden]).status().unwrap().success());
        let launcher = wrapped(&format!(
            "chdir '{0}' and rmdir '{0}' or die; exec {{'{1}'}} 'prowess-launcher';",
            world.path("gone").display(),
            hidden.display()
        ));
        for Stage { level, .. } in own_stages() {
            fs::create_dir_all(world.path("gone")).unwrap();
            let sandbox = Sandbox::new(launcher.clone(), level).at_most(level);
            let result =
                block_on(sandbox.run(
                    best().job(&format!("cat '{}' 2>/dev/null || echo ran", hidden.display())),
                ))
                .unwrap();
            assert_eq!(result.stdout.text, "ran\n", "{level}");
        }
        assert!(Work::within(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn how_it_ended_is_told() {
        for stage in stages() {
            let outcome = stage.run("exit 7");
            assert_eq!(
                (outcome.status, outcome.exit_code),
                (OutcomeStatus::Failed, Some(7)),
                "{stage:?}"
            );
            assert_eq!(outcome.message.as_deref(), Some("exited with code 7"));
            let outcome = stage.run("kill -SEGV $$");
            assert_eq!(
                (outcome.status, outcome.signal),
                (OutcomeStatus::Killed, Some(11)),
                "{stage:?}"
            );
            assert!(outcome.duration.unwrap() > Duration::ZERO);
            let missing = Job { argv: vec!["no-such-program".into()], ..stage.job("") };
            let error = block_on(stage.sandbox().run(missing)).unwrap_err();
            assert_eq!(error.to_string(), "cannot start `no-such-program`", "{stage:?}");
            assert!(
                block_on(stage.sandbox().run(Job { argv: Vec::new(), ..stage.job("") })).is_err()
            );
        }
        let nowhere = Sandbox::new(Launcher::program("/no/such/launcher"), SandboxLevel::Landlock);
        let error = block_on(nowhere.run(best().job("true"))).unwrap_err();
        assert_eq!(error.to_string(), "cannot run the launcher `/no/such/launcher`");
    }

    #[test]
    fn what_was_refused_is_told() {
        for stage in stages() {
            let script = format!(
                "{}; {}; {}",
                call("socket", "2, 1, 0"),
                call("socket", "2, 1, 0"),
                call("unshare", "0x40000000")
            );
            let denied = stage.run(&script).denied;
            assert_eq!(denied, ["socket (IPv4)", "unshare"], "{stage:?}");
            let connect = r#"perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un("/run/docker.sock"))'; true"#;
            assert_eq!(stage.run(connect).denied, ["connect (/run/docker.sock)"], "{stage:?}");
            let guess = stage.run("echo x > /usr/evil").denied;
            assert!(guess.len() == 1 && guess[0].starts_with("probably: "), "{stage:?} {guess:?}");
            let shared = stage.run("echo x > /dev/shm/x");
            let is_hinted = shared.hint.is_some_and(|it| it.contains("shared memory"));
            assert_eq!(is_hinted, stage.level == SandboxLevel::Landlock, "{stage:?}");
            let nothing = stage.run("ls -l / > /dev/null 2>&1; id > /dev/null; echo x > y; cat y");
            assert_eq!(nothing.denied, [] as [&str; 0], "{stage:?}");
        }
    }
}

mod only_a_launcher_of_the_same_version_holds_scripts {
    use super::*;

    #[test]
    fn a_launcher_in_memory_holds_scripts() {
        let launcher = Launcher::embedded(fs::read(PROGRAM).unwrap().leak());
        for stage in own_stages() {
            let sandbox = Sandbox::new(launcher.clone(), SandboxLevel::Landlock);
            let open = "for n in 3 4 5 6 7 8 9; do (: <&$n) && echo open $n; done; echo end";
            let job = stage.job(&format!("cat /etc/shadow; echo x > /usr/evil; {open}"));
            let result = block_on(sandbox.at_most(stage.level).run(job)).unwrap();
            assert_eq!(result.level, stage.level);
            assert_eq!(result.stdout.text, "end\n", "{stage:?} {result:?}");
            assert!(!Path::new("/usr/evil").exists());
        }
    }

    #[test]
    fn another_program_is_no_launcher() {
        let message = |launcher: Launcher| {
            let sandbox = Sandbox::new(launcher, SandboxLevel::Landlock);
            assert_eq!(sandbox.probe().level, SandboxLevel::None);
            let error = block_on(sandbox.run(best().job("true"))).unwrap_err();
            assert!(matches!(error, SandboxError::Launcher { .. }), "{error}");
            Outcome::from(error).message.unwrap()
        };
        let missing = message(Launcher::program("/no/such/launcher"));
        assert!(missing.contains("No such file"), "{missing}");
        let other = message(Launcher::program("/bin/true"));
        assert!(other.contains("it is not a launcher of this version"), "{other}");
        let world = World::new();
        let greeting = "printf '\\022\\000\\000\\000{\"launcher\":\"9.0\"}' >&0; exec cat";
        let world = world.file("launcher", format!("#!/bin/sh\n{greeting}\n"));
        let path = world.path("launcher");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let old = message(Launcher::program(path));
        assert!(old.contains("version 9.0") && old.contains("cargo install"), "{old}");
    }
}
