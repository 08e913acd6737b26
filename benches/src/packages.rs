//! How long it takes to place installed skills from the cache, next to the hard links alone.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use prowess_packages::{ArchiveLimits, PackageCache, TreeFile, copy_folder};
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
    let (mut floors, mut placed) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let [floor, place] = ["floor", "place"].map(|it| root.join(format!("{it}-{round}")));
        fs::create_dir(&floor)?;
        fs::create_dir(&place)?;
        let mut link = || measured(|| link_all(&skills, &floor));
        let mut put = || measured(|| place_all(&cache, &skills, &place));
        // Each is first in every second round.
        if round % 2 == 0 {
            floors.push(link()?);
            placed.push(put()?);
        } else {
            placed.push(put()?);
            floors.push(link()?);
        }
        fs::remove_dir_all(&floor)?;
        fs::remove_dir_all(&place)?;
    }
    println!("| case | wall ms | CPU ms | CPU ÷ hard links |\n|---|---:|---:|---:|");
    let floor = median(&floors, |it| it.cpu);
    for (name, times) in [("hard links alone", &floors), ("`place_all`, synced", &placed)] {
        let (wall, cpu) = (median(times, |it| it.wall), median(times, |it| it.cpu));
        let ratio = cpu.as_secs_f64() / floor.as_secs_f64();
        let ms = |it: Duration| it.as_secs_f64() * 1e3;
        println!("| {name} | {:.1} | {:.1} | {ratio:.2} |", ms(wall), ms(cpu));
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
