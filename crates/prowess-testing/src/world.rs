//! A test world: a folder with skills, the library over it, and the program run inside it.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write as _},
    mem,
    os::{
        fd::AsRawFd as _,
        unix::{fs::PermissionsExt as _, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use prowess::{
    Directory, Finding, Library, Listing, Memory, Options, ParsedSkill, Profile, ReadError,
    Resource, Scope, SizeLimits, Skill, Source, Visit,
};
use serde_json::Value as Json;
use tempfile::TempDir;

/// A timeout longer than anything takes here, for a program that hangs.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The unprivileged user and group.
const NOBODY: u32 = 65534;

/// A folder that is the working directory of the program. Skills are in `skills/` unless their path
/// differs. `home/` is a link to the home directory, which is beside it.
#[derive(Debug)]
pub struct World {
    /// The folder of both.
    _root: TempDir,
    home: PathBuf,
    work: PathBuf,
    towers: Vec<PathBuf>,
    locked: Vec<PathBuf>,
}

/// The settings of the user.
pub const SETTINGS: &str = "home/.config/prowess/prowess.toml";

/// The option `--dir` of most scenarios.
pub const SKILLS: [&str; 2] = ["--dir", "skills"];

impl World {
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    pub fn within(directory: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("prowess-specs-").tempdir_in(directory).unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (home, work) = (root.path().join("home"), root.path().join("repo"));
        fs::create_dir(&home).unwrap();
        fs::create_dir_all(work.join("skills")).unwrap();
        std::os::unix::fs::symlink("../home", work.join("home")).unwrap();
        Self { _root: root, home, work, towers: Vec::new(), locked: Vec::new() }
    }

    /// Adds a good skill in `skills/`.
    pub fn skill(self, name: &str, description: &str) -> Self {
        self.skill_in("skills", name, description)
    }

    /// Adds a good skill in another directory.
    pub fn skill_in(self, directory: &str, name: &str, description: &str) -> Self {
        let text = format!("---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n");
        self.file(format!("{directory}/{name}/SKILL.md"), text)
    }

    /// Adds a `SKILL.md` of this text, in `skills/<folder>/`.
    pub fn document(self, folder: &str, text: impl AsRef<[u8]>) -> Self {
        self.file(format!("skills/{folder}/SKILL.md"), text)
    }

    /// Adds a file, with its folders.
    pub fn file(self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> Self {
        self.write(path, text);
        self
    }

    /// Adds a sparse file of a length.
    pub fn sparse(self, path: &str, length: u64) -> Self {
        let path = self.making(path);
        File::create(path).unwrap().set_len(length).unwrap();
        self
    }

    pub fn folder(self, path: &str) -> Self {
        fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    /// Adds a symbolic link; a relative target begins at the link.
    pub fn link(self, path: &str, target: impl AsRef<Path>) -> Self {
        let path = self.making(path);
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    /// Adds a pipe without a writer.
    pub fn pipe(self, path: &str) -> Self {
        let path = self.making(path);
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        self
    }

    /// Adds a socket without a listener.
    pub fn socket(self, path: &str) -> Self {
        let path = self.making(path);
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        self
    }

    /// Adds `depth` nested folders, each called `d`.
    pub fn tower(mut self, path: &str, depth: usize) -> Self {
        let mut folder = self.path(path);
        for _ in 0..depth {
            fs::create_dir(&folder).unwrap();
            folder.push("d");
        }
        folder.pop();
        self.towers.push(folder);
        self
    }

    /// Removes all permissions of a file or folder.
    pub fn locked(mut self, path: &str) -> Self {
        let path = self.path(path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        self.locked.push(path);
        self
    }

    /// Writes a file, for example while a library is loaded.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        fs::write(self.making(path), text).unwrap();
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        match path.as_ref().strip_prefix("home") {
            Ok(inside) if inside.as_os_str().is_empty() => self.home.clone(),
            Ok(inside) => self.home.join(inside),
            Err(_) => self.work.join(path),
        }
    }

    fn making(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Returns the options of a library over `skills/`.
    pub fn options(&self) -> Options {
        Options {
            directories: vec![Directory::new("skills")],
            cwd: Some(self.work.clone()),
            home: Some(self.path("home")),
            ..Options::default()
        }
    }

    /// Loads the library over `skills/`.
    pub fn load(&self) -> Library {
        Library::load(&self.options()).unwrap()
    }

    /// Runs the program in this folder.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ran {
        self.finish(Command::new(program()).args(arguments)).unwrap()
    }

    /// Runs the program with more environment variables.
    pub fn run_with<A: AsRef<OsStr>>(
        &self,
        variables: &[(&str, &str)],
        arguments: impl IntoIterator<Item = A>,
    ) -> Ran {
        let mut command = Command::new("env");
        command.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
        self.finish(command.arg(program()).args(arguments)).unwrap()
    }

    /// Runs the program with this text on its stdin.
    pub fn run_reading(&self, text: &str, arguments: &[&str]) -> Ran {
        self.write("stdin", text);
        let script = "exec \"$0\" \"$@\" < stdin";
        self.finish(Command::new("sh").args(["-c", script, program()]).args(arguments)).unwrap()
    }

    /// Runs the program at a terminal with this typed input; its stdout is everything printed.
    pub fn run_at_terminal(&self, typed: &str, arguments: &str) -> Ran {
        self.at_terminal("", typed, &format!("{} {arguments}", program()))
    }

    /// Like [`run_at_terminal`](Self::run_at_terminal), at a terminal that can erase a line.
    pub fn run_at_xterm(&self, typed: &str, arguments: &str) -> Ran {
        self.at_terminal("", typed, &format!("TERM=xterm exec {} {arguments}", program()))
    }

    /// Like [`run_at_terminal`](Self::run_at_terminal), with this many columns.
    pub fn run_at_narrow_terminal(&self, columns: u16, typed: &str, arguments: &str) -> Ran {
        let line = format!("stty cols {columns} rows 24; exec {} {arguments}", program());
        self.at_terminal("", typed, &line)
    }

    /// Like [`run_at_terminal`](Self::run_at_terminal), with more input typed before the program
    /// begins.
    pub fn run_typing_ahead(&self, ahead: &str, typed: &str, arguments: &str) -> Ran {
        // Waits until there is something to read, and leaves it there.
        let waits = "perl -e 'vec($in, 0, 1) = 1; select($in, undef, undef, 30)'";
        self.at_terminal(ahead, typed, &format!("{waits}; exec {} {arguments}", program()))
    }

    fn at_terminal(&self, mut ahead: &str, typed: &str, line: &str) -> Ran {
        let mut lines = typed.split_inclusive('\n');
        let mut asked = 0;
        let mut command = Command::new("script");
        self.attend(command.args(["-qefc", line, "/dev/null"]), Stdio::piped(), |child, out| {
            if let Some(stdin) = &mut child.stdin {
                stdin.write_all(mem::take(&mut ahead).as_bytes()).unwrap();
            }
            let said = String::from_utf8_lossy(&fs::read(out).unwrap()).into_owned();
            let questions = said.matches("[y]es, [n]o").count();
            while asked < questions {
                asked += 1;
                match (lines.next(), &mut child.stdin) {
                    (Some(line), Some(stdin)) => stdin.write_all(line.as_bytes()).unwrap(),
                    _ => drop(child.stdin.take()),
                }
            }
        })
        .unwrap()
    }

    /// Runs the program with more environment variables.
    pub fn run_with_env(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
        let set = variables.iter().map(|(name, value)| format!("{name}={value}"));
        let arguments = arguments.iter().map(|it| (*it).to_owned());
        let all = set.chain([program().to_owned()]).chain(arguments);
        self.finish(Command::new("env").args(all)).unwrap()
    }

    /// Runs a shell script, in which `"$0"` is the program.
    pub fn run_script(&self, script: &str) -> Ran {
        self.finish(Command::new("sh").args(["-c", script, program()])).unwrap()
    }

    /// Runs the program and kills it after a while; `None` if it had not ended by then.
    pub fn run_killed(&self, arguments: &[&str], after: Duration) -> Option<i32> {
        let mut child = Command::new(program())
            .args(arguments)
            .current_dir(&self.work)
            .env("HOME", self.path("home"))
            .env_remove("XDG_CACHE_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap().code()
    }

    /// Runs the program with `kib` of address space.
    pub fn run_within(&self, kib: u64, arguments: &[&str]) -> Ran {
        let script = format!("ulimit -v {kib} && exec \"$0\" \"$@\"");
        self.finish(Command::new("sh").args(["-c", &script, program()]).args(arguments)).unwrap()
    }

    /// Runs the program as a user without special permissions.
    pub fn run_without_rights(&self, arguments: &[&str]) -> Ran {
        // Only root may be able to reach it, so it is opened before the permissions are dropped.
        let file = File::open(program()).unwrap();
        let mut command = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
        command.arg0(program()).args(arguments);
        if is_root(&self.work) {
            command.uid(NOBODY).gid(NOBODY);
        }
        self.finish(&mut command).unwrap()
    }

    /// Returns the command of the program in this folder, for a test that starts it itself.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(program());
        self.stage(command.args(arguments));
        command
    }

    fn stage<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(&self.work)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
    }

    fn finish(&self, command: &mut Command) -> io::Result<Ran> {
        self.attend(command, Stdio::null(), |_, _| {})
    }

    /// Runs a command and calls `attend` until it ends, with the file of its output.
    fn attend(
        &self,
        command: &mut Command,
        stdin: Stdio,
        mut attend: impl FnMut(&mut Child, &Path),
    ) -> io::Result<Ran> {
        let (out, err) = (tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?);
        let mut child =
            self.stage(command).stdin(stdin).stdout(out.reopen()?).stderr(err.reopen()?).spawn()?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            attend(&mut child, out.path());
            if start.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                panic!("the program did not end within {PATIENCE:?}");
            }
            thread::sleep(Duration::from_millis(2));
        };
        Ok(Ran {
            code: status.code(),
            out: fs::read(out.path())?,
            stderr: String::from_utf8(fs::read(err.path())?).expect("stderr is text"),
        })
    }

    /// Returns the output of `list --json` on `skills/`.
    pub fn list(&self) -> Said {
        self.list_with(&[])
    }

    /// Like [`list`](Self::list), with more arguments.
    pub fn list_with(&self, arguments: &[&str]) -> Said {
        let ran = self.run(["list", "--json"].iter().chain(&SKILLS).chain(arguments));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.said()
    }

    /// Returns the exit code and the output of `check --json` on a path.
    pub fn check(&self, path: &str, arguments: &[&str]) -> (Option<i32>, Said) {
        let ran = self.run(["check", path, "--json"].iter().chain(arguments));
        (ran.code, ran.said())
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for path in &self.locked {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        }
        // The standard library keeps every folder of a tower open while it goes down.
        for tower in &self.towers {
            let mut folder = tower.as_path();
            while folder.ends_with("d") && fs::remove_dir(folder).is_ok() {
                folder = folder.parent().unwrap();
            }
        }
    }
}

/// Returns the path of the tested program. Cargo gives it only to the tests of `prowess-cli`, and
/// builds it before they run.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        env::var("CARGO_BIN_EXE_prowess").expect("`cargo test -p prowess-cli` starts the program")
    });
    &PROGRAM
}

/// Returns the path of the program that confines scripts: the tested one, or that of the tests of a
/// crate below, which Cargo gives to them alone.
pub fn launcher() -> &'static str {
    static LAUNCHER: LazyLock<String> = LazyLock::new(|| {
        let mut programs = env::vars().filter(|it| it.0.starts_with("CARGO_BIN_EXE_prowess"));
        programs.next().expect("a crate whose tests run scripts has a program for that").1
    });
    &LAUNCHER
}

fn is_root(own: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(own).is_ok_and(|it| it.uid() == 0)
}

/// The result of a run of the program.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub stderr: String,
}

impl Ran {
    pub fn stdout(&self) -> &str {
        str::from_utf8(&self.out).expect("stdout is text")
    }

    /// Parses stdout as one JSON document.
    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.out)
            .unwrap_or_else(|error| panic!("{error} in {:?}, {}", self.stdout(), self.stderr))
    }

    pub fn said(&self) -> Said {
        Said(self.json())
    }

    /// Asserts that the output has no control characters, except tabs between fields.
    pub fn assert_safe(&self) {
        for text in [self.stdout(), &self.stderr] {
            let bad = text.chars().find(|c| {
                (c.is_control() && !matches!(c, '\n' | '\t'))
                    || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
                    || ('\u{E0000}'..='\u{E007F}').contains(c)
            });
            assert_eq!(bad, None, "{text:?}");
        }
    }
}

/// The output of `list --json` or `check --json`.
#[derive(Debug)]
pub struct Said(pub Json);

impl Said {
    /// Returns the names of the skills, in the order listed.
    pub fn names(&self) -> Vec<&str> {
        self.skills().iter().map(|it| it["name"].as_str().unwrap()).collect()
    }

    pub fn skills(&self) -> &[Json] {
        self.0["skills"].as_array().unwrap()
    }

    /// Returns the first skill of a name.
    pub fn skill(&self, name: &str) -> &Json {
        let found = self.skills().iter().find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("no skill `{name}` in {:#}", self.0))
    }

    pub fn findings(&self) -> &[Json] {
        self.0["findings"].as_array().unwrap()
    }

    /// Returns the rules of all findings, in order.
    pub fn rules(&self) -> Vec<&str> {
        self.findings().iter().map(|it| it["rule"].as_str().unwrap()).collect()
    }

    /// Returns the only finding of a rule.
    pub fn finding(&self, rule: &str) -> &Json {
        let mut found = self.findings().iter().filter(|it| it["rule"] == rule);
        match (found.next(), found.next()) {
            (Some(finding), None) => finding,
            _ => panic!("not one finding `{rule}` in {:#}", self.0),
        }
    }

    /// Returns the rules of the findings about a path that contains `part`.
    pub fn about(&self, part: &str) -> Vec<&str> {
        let findings =
            self.findings().iter().filter(|it| it["path"].as_str().unwrap().contains(part));
        findings.map(|it| it["rule"].as_str().unwrap()).collect()
    }
}

/// A source that counts reads of files.
#[derive(Debug)]
pub struct Counting {
    memory: Memory,
    reads: AtomicUsize,
}

impl Counting {
    pub fn new(memory: Memory) -> Self {
        Self { memory, reads: AtomicUsize::new(0) }
    }

    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }
}

impl Source for Counting {
    fn scope(&self) -> Scope {
        self.memory.scope()
    }

    fn visit(&self, folder: &Path, limits: &SizeLimits, listing: Listing) -> Visit {
        self.memory.visit(folder, limits, listing)
    }

    fn resources(&self, path: &Path, limits: &SizeLimits) -> (Vec<Resource>, Vec<Finding>) {
        self.memory.resources(path, limits)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, ReadError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.memory.read(path)
    }

    fn read_beside(&self, path: &Path, resource: &str) -> Result<Vec<u8>, ReadError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.memory.read_beside(path, resource)
    }
}

/// Waits until a condition holds.
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the paths of a skill's resources in `list --json`.
pub fn resources(skill: &Json) -> Vec<&str> {
    skill["resources"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect()
}

/// Returns every skill of a library, including shadowed ones.
pub fn all(library: &Library) -> Vec<&Skill> {
    library.all().collect()
}

/// Parses a text by the rules of the specification.
pub fn parsed(text: &str) -> ParsedSkill {
    prowess::parse(text.as_bytes(), None, Profile::Spec)
}

/// Returns the rules of the findings about a text.
pub fn rules(parsed: &ParsedSkill) -> Vec<&'static str> {
    parsed.findings.iter().map(|it| it.rule.code).collect()
}

/// Removes the markers around text of skills, and their explanation.
pub fn unfenced(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("Text between `[begin ") {
            lines.next_if(|it| it.trim().is_empty());
        } else if !is_marker(line) {
            out.push_str(line);
        }
    }
    out
}

fn is_marker(line: &str) -> bool {
    let line = line.trim_end_matches('\n');
    (line.starts_with("[begin ") || line.starts_with("[end ")) && line.ends_with(']')
}

/// Replaces the code in the markers of a text.
pub fn with_code(text: &str, code: &str) -> String {
    let own = text.split_once("[begin ").and_then(|it| it.1.split_once(']')).map(|it| it.0);
    own.map_or_else(|| text.to_owned(), |own| text.replace(own, code))
}
