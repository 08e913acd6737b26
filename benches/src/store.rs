//! The reliability of a store: with killed writers, concurrent writers, and failing system calls.
//!
//! Killed writers are checked against an oracle: a model of the store that follows the operations
//! that the
//! writer has acknowledged. The one operation under way may have happened or not, as a whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use prowess::{Definition, Manifest, Status};
use prowess_runtime::{FileStore, SkillRecord, Store as _, store::StoreError};

use crate::{load::number, options::Options, random::Random};

/// Prints the results; fails at the first loss.
pub(crate) fn store(options: &Options<'_>) -> Result<()> {
    let cycles = options.get("--cycles").map_or(Ok(1000), number)?;
    println!("| what | how often | what came of it |\n|---|---|---|");
    kills(cycles)?;
    writers()?;
    descriptors()?;
    if let Some(program) = options.get("--program") {
        faults(Path::new(program))?;
    }
    Ok(())
}

const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// An operation, with a number that identifies its result.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Operation {
    Save(String, usize),
    Resource(String, usize),
    Switch(String, bool),
    Delete(String),
    Undo,
}

impl Operation {
    fn random(random: &mut Random, number: usize) -> Self {
        let name = random.pick(&NAMES).to_owned();
        match random.pick(&[0, 0, 0, 1, 1, 2, 2, 3, 4]) {
            0 => Self::Save(name, number),
            1 => Self::Resource(name, number),
            2 => Self::Switch(name, random.chance(50.0)),
            3 => Self::Delete(name),
            _ => Self::Undo,
        }
    }

    fn perform(&self, store: &FileStore) -> Result<(), StoreError> {
        match self {
            Self::Save(name, number) => store.save(&entry(name, *number)).map(drop),
            Self::Resource(name, number) => {
                store.save_resource(name, "data/number", number.to_string().as_bytes())
            }
            Self::Switch(name, true) => store.activate(name).map(drop),
            Self::Switch(name, false) => store.deactivate(name).map(drop),
            Self::Delete(name) => store.delete(name),
            Self::Undo => store.undo(None).map(drop),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Save(name, number) => format!("save {name} {number}"),
            Self::Resource(name, number) => format!("resource {name} {number}"),
            Self::Switch(name, on) => format!("switch {name} {}", usize::from(*on)),
            Self::Delete(name) => format!("delete {name} 0"),
            Self::Undo => "undo - 0".to_owned(),
        }
    }

    fn read(text: &str) -> Result<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        let [verb, name, last] = words[..] else { bail!("what is `{text}`?") };
        let (name, last) = (name.to_owned(), last.parse()?);
        Ok(match verb {
            "save" => Self::Save(name, last),
            "resource" => Self::Resource(name, last),
            "switch" => Self::Switch(name, last == 1),
            "delete" => Self::Delete(name),
            "undo" => Self::Undo,
            _ => bail!("what is `{text}`?"),
        })
    }
}

fn entry(name: &str, number: usize) -> SkillRecord {
    let description = format!("version {number}");
    let content = format!("{description}\n").repeat(1 + number % 300);
    let manifest = Manifest {
        name: name.into(),
        description: description.as_str().into(),
        ..Manifest::default()
    };
    let definition = Definition::Instruction { content };
    SkillRecord { manifest, definition, parameters: None, folder: None }
}

/// A skill as the oracle knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    number: usize,
    status: Status,
    resource: Option<usize>,
}

/// The oracle: the required contents of the store after the acknowledged operations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Oracle {
    skills: BTreeMap<String, Known>,
    trash: Vec<(String, Known)>,
}

impl Oracle {
    /// Returns whether an operation is possible, and applies it.
    fn follow(&mut self, operation: &Operation) -> bool {
        match operation {
            Operation::Save(name, number) => {
                let new = Known { number: 0, status: Status::Draft, resource: None };
                self.skills.entry(name.clone()).or_insert(new).number = *number;
                true
            }
            Operation::Resource(name, number) => {
                self.skills.get_mut(name).map(|it| it.resource = Some(*number)).is_some()
            }
            Operation::Switch(name, on) => {
                let status = if *on { Status::Active } else { Status::Disabled };
                self.skills.get_mut(name).map(|it| it.status = status).is_some()
            }
            Operation::Delete(name) => match self.skills.remove_entry(name) {
                Some(deleted) => {
                    self.trash.push(deleted);
                    true
                }
                None => false,
            },
            Operation::Undo => match self.trash.pop_if(|it| !self.skills.contains_key(&it.0)) {
                Some((name, known)) => self.skills.insert(name, known).is_none(),
                None => false,
            },
        }
    }
}

/// Returns the contents of the store, read as anybody would; torn content is an error.
fn observed(path: &Path) -> Result<BTreeMap<String, Known>> {
    let stock = FileStore::open(path)?.list()?;
    ensure!(stock.findings.is_empty(), "{:?}", stock.findings);
    let mut skills = BTreeMap::new();
    for found in stock.entries {
        let name = found.manifest.name.to_string();
        let number = found.manifest.description.trim_start_matches("version ").parse()?;
        ensure!(found.definition == entry(&name, number).definition, "`{name}` is torn");
        let resource = match fs::read_to_string(path.join(&name).join("data/number")) {
            Ok(text) => Some(text.parse()?),
            Err(_) => None,
        };
        skills.insert(name, Known { number, status: found.manifest.status(), resource });
    }
    Ok(skills)
}

fn kills(cycles: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store");
    let mut random = Random::new(2026);
    let mut oracle = Oracle::default();
    let (mut acknowledged, mut under_way, mut came_true) = (0, 0, 0);
    let mut next = 1;
    for cycle in 0..cycles {
        let mut writer = start(&[
            "reliability-store-writer",
            &path.to_string_lossy(),
            &cycle.to_string(),
            &next.to_string(),
        ])?;
        let said = BufReader::new(writer.stdout.take().context("it says nothing")?);
        let pause = Duration::from_micros(2_000 + (random.unit() * 40_000.0) as u64);
        let killer = thread::spawn(move || {
            thread::sleep(pause);
            writer.kill().and_then(|()| writer.wait())
        });
        let mut begun = None;
        for line in said.lines() {
            let line = line?;
            match line.split_once(' ').context("it said half a line")? {
                ("begin", operation) => begun = Some(Operation::read(operation)?),
                ("done", _) => {
                    let operation = begun.take().context("it did what it had not begun")?;
                    ensure!(oracle.follow(&operation), "{operation:?} should not be possible");
                    acknowledged += 1;
                }
                ("refused", _) => {
                    let operation = begun.take().context("it refused what it had not begun")?;
                    ensure!(!oracle.clone().follow(&operation), "{operation:?} should be possible");
                }
                _ => bail!("{line}"),
            }
            next += 1;
        }
        killer.join().map_err(|_| anyhow::anyhow!("the killer has died"))??;
        let now = observed(&path).with_context(|| format!("after cycle {cycle}, {begun:?}"))?;
        let mut with = oracle.clone();
        if let Some(operation) = &begun {
            with.follow(operation);
            under_way += usize::from(with != oracle);
        }
        if now == with.skills && with != oracle {
            came_true += 1;
            oracle = with;
        }
        ensure!(now == oracle.skills, "after cycle {cycle}, {begun:?}: {now:?} is not {oracle:?}");
    }
    FileStore::open(&path)?.save(&entry("last", 1))?;
    let left = unfinished(&path)?;
    ensure!(left == 0, "{left} are left unfinished");
    println!(
        "| a writer is killed (SIGKILL) at a random moment | {cycles} times | {acknowledged} operations were acknowledged, 0 are lost; \
         {under_way} were under way, {came_true} of them are there whole, the others not at all; 0 skills are torn, 0 files left over |"
    );
    Ok(())
}

/// Works on a store until it is killed.
pub(crate) fn writer(path: &str, seed: &str, from: &str) -> Result<()> {
    let store = FileStore::open(path)?;
    let mut random = Random::new(seed.parse()?);
    let mut out = std::io::stdout();
    for next in from.parse()?.. {
        let operation = Operation::random(&mut random, next);
        writeln!(out, "begin {}", operation.write())?;
        match operation.perform(&store) {
            Ok(()) => writeln!(out, "done {next}")?,
            Err(error) if error.is_fault() => writeln!(out, "refused {next}")?,
            Err(error) => bail!(error),
        }
    }
    Ok(())
}

const WRITERS: usize = 20;
const SAVES: usize = 50;

fn writers() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store");
    FileStore::open(&path)?.save(&entry("shared", 1))?;
    let begun = Instant::now();
    let all: Vec<Child> = (0..WRITERS)
        .map(|it| start(&["reliability-store-saver", &path.to_string_lossy(), &it.to_string()]))
        .collect::<Result<_>>()?;
    for mut writer in all {
        ensure!(writer.wait()?.success(), "a writer gave up");
    }
    let took = begun.elapsed();
    let stock = FileStore::open(&path)?.list()?;
    ensure!(stock.entries.len() == 1 + WRITERS * SAVES, "{} are there", stock.entries.len());
    let resources = fs::read_dir(path.join("shared"))?.count() - 1;
    ensure!(resources == WRITERS * SAVES, "{resources} resources are there");
    println!(
        "| {WRITERS} processes save {SAVES} skills and {SAVES} resources of one skill each, at once | {} saves | all are there, after {:.1} s |",
        2 * WRITERS * SAVES,
        took.as_secs_f64()
    );
    Ok(())
}

/// One of many that save at once.
pub(crate) fn saver(path: &str, own: &str) -> Result<()> {
    let store = FileStore::open(path)?.with_patience(Duration::from_secs(120));
    for number in 0..SAVES {
        let name = format!("w{own}-{number}");
        store.save(&entry(&name, number))?;
        store.save_resource("shared", &format!("{name}.txt"), b"x")?;
    }
    Ok(())
}

fn descriptors() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = FileStore::open(folder.path())?;
    let open = || Ok::<_, anyhow::Error>(fs::read_dir("/proc/self/fd")?.count());
    store.save(&entry("one", 1))?;
    let before = open()?;
    const ROUNDS: usize = 2_000;
    for number in 0..ROUNDS {
        store.save(&entry("one", number))?;
        store.deactivate("one")?;
        store.activate("one")?;
        store.get("one")?;
        ensure!(store.get("nobody").is_err(), "nobody is there");
    }
    let after = open()?;
    ensure!(after == before, "{before} files were open, now {after}");
    println!(
        "| one process works on a store | {} operations | {after} files are open before and after |",
        ROUNDS * 5
    );
    Ok(())
}

/// The commands, on a store that has `one`, and `gone` in its trash.
const COMMANDS: &[&str] = &[
    "create new --description a --definition {}",
    "new new",
    "disable one",
    "enable off",
    "remove one",
    "undo",
];

/// System calls, with their injected faults.
const FAULTS: &[(&str, &str)] = &[
    ("openat", "signal=SIGKILL"),
    ("openat", "error=EMFILE"),
    ("openat", "error=ENOSPC"),
    ("openat2", "signal=SIGKILL"),
    ("openat2", "error=EMFILE"),
    ("mkdirat", "signal=SIGKILL"),
    ("mkdirat", "error=ENOSPC"),
    ("mkdirat", "error=EROFS"),
    ("write", "signal=SIGKILL"),
    ("write", "error=ENOSPC"),
    ("write", "error=EIO"),
    ("fchmod", "signal=SIGKILL"),
    ("fchmod", "error=EIO"),
    ("fsync", "signal=SIGKILL"),
    ("fsync", "error=EIO"),
    ("fsync", "error=ENOSPC"),
    ("renameat", "signal=SIGKILL"),
    ("renameat", "error=ENOSPC"),
    ("renameat2", "signal=SIGKILL"),
    ("renameat2", "error=EIO"),
    ("flock", "signal=SIGKILL"),
    ("flock", "error=ENOLCK"),
];

/// Makes each system call fail, or be the last, one after the other.
fn faults(program: &Path) -> Result<()> {
    let (mut runs, mut kept, mut made, mut told) = (0, 0, 0, 0);
    let mut calls = BTreeSet::new();
    for command in COMMANDS {
        let old = prepared()?;
        let new = prepared()?;
        let ran = Command::new(program)
            .args(command.split(' '))
            .args(["--dir", "store"])
            .current_dir(&new)
            .output()?;
        ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let (old, new) = (seen(old.path())?, seen(new.path())?);
        for (call, fault) in FAULTS {
            for when in 1.. {
                let folder = prepared()?;
                let ran = Command::new("strace")
                    .args(["-f", "-qq", "-o", "log", "-e", &format!("trace={call}")])
                    .args(["-e", &format!("inject={call}:{fault}:when={when}")])
                    .arg(program)
                    .args(command.split(' '))
                    .args(["--dir", "store"])
                    .current_dir(&folder)
                    .stdin(Stdio::null())
                    .output()
                    .context("strace is not here")?;
                let log = fs::read_to_string(folder.path().join("log"))
                    .with_context(|| format!("{ran:?}"))?;
                if !log.contains("INJECTED") && !log.contains("killed by SIGKILL") {
                    break;
                }
                let context = || {
                    format!(
                        "{command}: {call} {fault} {when}: {}",
                        String::from_utf8_lossy(&ran.stderr)
                    )
                };
                let (now, is_killed) = (seen(folder.path())?, *fault == "signal=SIGKILL");
                ensure!(now == old || now == new, "{} left {now:?}", context());
                ensure!(!ran.status.success() || now == new, "{} says that it is done", context());
                ensure!(ran.status.code() != Some(101), "{} panicked", context());
                let is_new = now == new;
                told += usize::from(is_new && !ran.status.success() && !is_killed);
                if !is_killed {
                    let left = unfinished(&folder.path().join("store"))?;
                    ensure!(left == 0, "{} left {left} unfinished", context());
                }
                FileStore::open(folder.path().join("store"))?.save(&entry("next", 1))?;
                ensure!(unfinished(&folder.path().join("store"))? == 0, "{} left more", context());
                calls.insert(*call);
                runs += 1;
                kept += usize::from(!is_new);
                made += usize::from(is_new);
            }
        }
    }
    println!(
        "| one call of the system fails, or is the last, each in turn: {} | {runs} runs of {} commands | {kept} times all is as it was, {made} times the \
         change is there whole, {told} of them with an error; never anything else |",
        calls.into_iter().collect::<Vec<_>>().join(", "),
        COMMANDS.len()
    );
    Ok(())
}

fn prepared() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let store = FileStore::open(folder.path().join("store"))?;
    for name in ["one", "off", "gone"] {
        store.save(&entry(name, 7))?;
        store.activate(name)?;
    }
    store.deactivate("off")?;
    store.delete("gone")?;
    Ok(folder)
}

/// Returns the files of all skills, and the number of entries in the trash.
fn seen(folder: &Path) -> Result<(BTreeMap<String, Vec<u8>>, usize)> {
    let mut files = BTreeMap::new();
    for name in fs::read_dir(folder.join("store"))? {
        let path = name?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            let document = path.join("SKILL.md");
            let bytes = fs::read(&document);
            files.insert(name, bytes.with_context(|| document.display().to_string())?);
        }
    }
    Ok((files, fs::read_dir(folder.join("store/.trash"))?.count()))
}

fn unfinished(store: &Path) -> Result<usize> {
    let names = fs::read_dir(store)?.map(|it| Ok(it?.file_name()));
    let names = names.collect::<Result<Vec<_>>>()?;
    Ok(names.iter().filter(|it| it.to_string_lossy().starts_with(".prowess-staging-")).count())
}

/// Starts this program again, as one of many.
fn start(arguments: &[&str]) -> Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    Ok(command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?)
}
