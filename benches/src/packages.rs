//! How long it takes to place installed skills from the cache, to sync and to verify them, next to the
//! hard links and the hashes alone.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use prowess::Surroundings;
use prowess_packages::{
    ArchiveLimits, FileDigest, InstallOptions, InstallPlace, InstallTarget, Installer, LocalEdits,
    Lock, LockedSkill, PackageCache, PackageManifest, TargetForm, TreeFile, WantedSkill,
    copy_folder, verify,
};
use rustix::time::{ClockId, clock_gettime};

use crate::options::Options;

/// The files of a skill, with what is in them beside its number.
const FILES: [&str; 5] =
    ["SKILL.md", "references/a.md", "references/b.md", "scripts/run.py", "scripts/lib.py"];

/// One measurement.
#[derive(Clone, Copy)]
struct Time {
    wall: Duration,
    cpu: Duration,
}

pub(crate) fn packages(options: &Options<'_>) -> Result<()> {
    let count: usize = options.get("--skills").unwrap_or("1000").parse()?;
    let rounds: usize = options.get("--rounds").unwrap_or("15").parse()?;
    ensure!(rounds > 0 && count > 0, "there is nothing to measure");
    let folder = match options.get("--in") {
        Some(path) => tempfile::tempdir_in(path)?,
        None => tempfile::tempdir()?,
    };
    let root = folder.path();
    let cache = PackageCache::open(&root.join("cache"))?;
    // One package with all skills, as a repository has them.
    let from = root.join("from");
    for number in 0..count {
        write_skill(&from.join(number.to_string()), number)?;
    }
    let draft = cache.draft()?;
    let files = copy_folder(&from, &ArchiveLimits::default(), draft.path())?.files;
    cache.insert(draft, &files)?;
    let mut skills: Vec<(PathBuf, Vec<TreeFile>)> = Vec::new();
    for mut file in files {
        let (name, path) = file.path.split_once('/').context("a file is in no skill")?;
        let (folder, path) = (from.join(name), path.to_owned());
        file.path = path;
        match skills.last_mut() {
            Some(last) if last.0 == folder => last.1.push(file),
            _ => skills.push((folder, vec![file])),
        }
    }
    ensure!(skills.len() == count && skills.iter().all(|it| it.1.len() == FILES.len()));
    let project = Project::new(root, &cache, &skills)?;
    let mut times: [Vec<Time>; 5] = Default::default();
    for round in 0..rounds {
        let [floor, place] = ["floor", "place"].map(|it| root.join(format!("{it}-{round}")));
        fs::create_dir(&floor)?;
        fs::create_dir(&place)?;
        // Each is first in some rounds.
        for number in 0..3 {
            let case = (number + round) % 3;
            times[case].push(measured(|| match case {
                0 => link_all(&skills, &floor),
                1 => place_all(&cache, &skills, &place),
                _ => project.sync(),
            })?);
        }
        for number in 0..2 {
            let case = 3 + (number + round) % 2;
            times[case].push(measured(|| match case {
                3 => hash_all(&skills),
                _ => project.verify(),
            })?);
        }
        fs::remove_dir_all(&floor)?;
        fs::remove_dir_all(&place)?;
        project.clear()?;
    }
    println!("| case | wall ms | CPU ms | CPU ÷ floor |\n|---|---:|---:|---:|");
    let cases = [
        ("hard links alone", 0),
        ("`place_all`, synced", 0),
        ("`sync --locked`", 0),
        ("hashes alone", 3),
        ("`verify`", 3),
    ];
    for ((name, floor), own) in cases.iter().zip(&times) {
        let (wall, cpu) = (median(own, |it| it.wall), median(own, |it| it.cpu));
        let ratio = cpu.as_secs_f64() / median(&times[*floor], |it| it.cpu).as_secs_f64();
        let ms = |it: Duration| it.as_secs_f64() * 1e3;
        println!("| {name} | {:.1} | {:.1} | {ratio:.2} |", ms(wall), ms(cpu));
    }
    Ok(())
}

/// A project whose manifest and lock name all skills, with nothing installed.
struct Project<'c> {
    root: PathBuf,
    place: InstallPlace,
    cache: &'c PackageCache,
    manifest: String,
    lock: String,
}

impl<'c> Project<'c> {
    fn new(
        root: &Path,
        cache: &'c PackageCache,
        skills: &[(PathBuf, Vec<TreeFile>)],
    ) -> Result<Self> {
        let (state, root) = (root.join("state"), root.join("project"));
        fs::create_dir(&root)?;
        let mut locked = Vec::new();
        let mut wanted = Vec::new();
        for (number, (_, files)) in skills.iter().enumerate() {
            let name = format!("skill-{number}");
            let mut skill = LockedSkill::new(&*name, "./pack".parse()?, "./pack", files.to_vec());
            let target = format!(".claude/skills/{name}");
            skill.targets.push(InstallTarget::new(target, TargetForm::Folder));
            locked.push(skill);
            wanted.push(WantedSkill::new(name, "./pack".parse()?));
        }
        let (mut lock, mut manifest) = (Lock::default(), PackageManifest::new());
        lock.insert_all(locked)?;
        manifest.set_all(&wanted)?;
        let place = InstallPlace::project(&root, &state, &Surroundings::default());
        let (manifest, lock) = (manifest.to_string(), lock.to_string());
        Ok(Self { root, place, cache, manifest, lock })
    }

    fn read(&self) -> Result<Lock> {
        let lock = Lock::parse(&self.lock)?;
        ensure!(lock.differences(&PackageManifest::parse(&self.manifest)?).is_empty());
        Ok(lock)
    }

    /// What `prowess sync --locked` does.
    fn sync(&self) -> Result<()> {
        let installer = Installer::open(&self.place, self.cache, &|| ())?;
        let lock = self.read()?;
        let plan = installer.plan(lock.skills(), lock.skills().to_vec(), LocalEdits::Refuse)?;
        ensure!(lock.skills().iter().all(|it| self.cache.contains(&it.files)));
        installer.apply(plan, &InstallOptions::new("sync"), |_| Vec::new())?;
        Ok(())
    }

    /// What `prowess verify` does.
    fn verify(&self) -> Result<()> {
        let lock = self.read()?;
        let verified = verify(&self.place, lock.skills());
        ensure!(verified.iter().all(|it| it.faults.is_empty()) && !verified.is_empty());
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        fs::remove_dir_all(&self.root)?;
        fs::create_dir(&self.root)?;
        Ok(())
    }
}

/// What cannot be avoided: reading and hashing.
fn hash_all(skills: &[(PathBuf, Vec<TreeFile>)]) -> Result<()> {
    for (folder, files) in skills {
        for file in files {
            let bytes = fs::read(folder.join(&file.path))?;
            ensure!(FileDigest::of(&bytes) == file.digest);
        }
    }
    Ok(())
}

fn write_skill(folder: &Path, number: usize) -> Result<()> {
    fs::create_dir_all(folder.join("references"))?;
    fs::create_dir_all(folder.join("scripts"))?;
    for name in FILES {
        fs::write(folder.join(name), format!("{name} of skill {number}\n").repeat(60))?;
    }
    Ok(())
}

/// What cannot be avoided: folders and links.
fn link_all(skills: &[(PathBuf, Vec<TreeFile>)], to: &Path) -> Result<()> {
    for (number, (from, _)) in skills.iter().enumerate() {
        let folder = to.join(number.to_string());
        fs::create_dir(&folder)?;
        fs::create_dir(folder.join("references"))?;
        fs::create_dir(folder.join("scripts"))?;
        for name in FILES {
            fs::hard_link(from.join(name), folder.join(name))?;
        }
    }
    Ok(())
}

fn place_all(cache: &PackageCache, skills: &[(PathBuf, Vec<TreeFile>)], to: &Path) -> Result<()> {
    let folders: Vec<PathBuf> = (0..skills.len()).map(|it| to.join(it.to_string())).collect();
    let wanted: Vec<(&[TreeFile], &Path)> = skills
        .iter()
        .zip(&folders)
        .map(|((_, files), folder)| (&files[..], folder.as_path()))
        .collect();
    cache.place_all(&wanted)?;
    Ok(())
}

fn measured(work: impl FnOnce() -> Result<()>) -> Result<Time> {
    let (start, cpu) = (Instant::now(), cpu_time());
    work()?;
    Ok(Time { wall: start.elapsed(), cpu: cpu_time() - cpu })
}

/// The CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.try_into().unwrap_or_default())
}

fn median(times: &[Time], of: impl Fn(&Time) -> Duration) -> Duration {
    let mut times: Vec<Duration> = times.iter().map(of).collect();
    times.sort_unstable();
    times[times.len() / 2]
}
