//! The library to load: copies of real skills, or made-up ones with their variety.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::random::Random;

/// The properties of a library.
pub(crate) struct Corpus {
    pub(crate) skills: usize,
    /// The folder of real skills, which are used in turn. Without it skills are made up.
    pub(crate) from: Option<PathBuf>,
    /// Whether a real skill gets a new name each time it is reused.
    pub(crate) distinct: bool,
    /// Whether every second skill has two resources.
    pub(crate) resources: bool,
}

/// A library on disk, removed when dropped.
pub(crate) struct Library {
    pub(crate) root: PathBuf,
    /// A description of its origin.
    pub(crate) about: String,
    _directory: TempDir,
}

impl Corpus {
    pub(crate) fn make(&self) -> Result<Library> {
        let directory = tempfile::tempdir()?;
        let root = directory.path().join("skills");
        fs::create_dir(&root)?;
        let about = match &self.from {
            Some(from) => self.copy(from, &root)?,
            None => self.invent(&root)?,
        };
        Ok(Library { root, about, _directory: directory })
    }

    fn copy(&self, from: &Path, root: &Path) -> Result<String> {
        let mut files = Vec::new();
        collect(from, &mut files).with_context(|| format!("cannot read `{}`", from.display()))?;
        files.sort_unstable();
        if files.is_empty() {
            bail!("there is no SKILL.md below `{}`", from.display());
        }
        let mut taken: HashMap<String, usize> = HashMap::new();
        for (number, file) in files.iter().cycle().take(self.skills).enumerate() {
            let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
            let folder = folder.to_string_lossy();
            let times = taken.entry(folder.to_lowercase()).or_default();
            *times += 1;
            let folder = if *times == 1 { folder.into() } else { format!("{folder}--{times}") };
            let mut bytes = fs::read(file)?;
            if self.distinct && number >= files.len() {
                rename(&mut bytes, number / files.len());
            }
            self.write(root, number, &folder, &bytes)?;
        }
        let same = if self.distinct { "names made distinct" } else { "as they are" };
        Ok(format!("{} real files in turn, {same}", files.len()))
    }

    fn invent(&self, root: &Path) -> Result<String> {
        let mut random = Random::new(1);
        for number in 0..self.skills {
            let name = format!("{}-{}-{number}", random.pick(WORDS), random.pick(WORDS));
            self.write(root, number, &name, skill(&name, &mut random).as_bytes())?;
        }
        Ok("made-up files".to_owned())
    }

    fn write(&self, root: &Path, number: usize, folder: &str, bytes: &[u8]) -> Result<()> {
        let folder = root.join(folder);
        fs::create_dir(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        fs::write(folder.join("SKILL.md"), bytes)?;
        if self.resources && number.is_multiple_of(2) {
            fs::create_dir(folder.join("references"))?;
            fs::write(folder.join("references/guide.md"), "# Guide\n\nRead this first.\n")?;
            fs::create_dir(folder.join("scripts"))?;
            fs::write(folder.join("scripts/run.sh"), "#!/bin/sh\necho done\n")?;
        }
        Ok(())
    }
}

/// Finds every `SKILL.md` below a folder.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else if entry.file_name() == "SKILL.md" {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Gives a skill a name of its own, so that it is not a copy of another. One without a name on one
/// line stays as it is.
fn rename(bytes: &mut Vec<u8>, turn: usize) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let mut start = 0;
    for line in text.split_inclusive('\n').take(30) {
        if line.starts_with("name: ") {
            let end = line.trim_end().trim_end_matches(['"', '\'']).len();
            let at = start + end;
            bytes.splice(at..at, format!("-{turn}").into_bytes());
            return;
        }
        start += line.len();
    }
}

/// The shares of real files up to these sizes, in bytes.
const SIZES: &[(f64, f64)] = &[
    (0.0, 300.0),
    (0.1, 1_600.0),
    (0.5, 5_600.0),
    (0.9, 16_000.0),
    (0.99, 34_400.0),
    (1.0, 100_000.0),
];
/// The same for their frontmatter.
const FRONTMATTER_SIZES: &[(f64, f64)] =
    &[(0.0, 120.0), (0.1, 220.0), (0.5, 446.0), (0.9, 811.0), (0.99, 2_004.0), (1.0, 3_500.0)];
/// The longest description allowed.
const LONGEST_DESCRIPTION: usize = 1000;

const WORDS: &[&str] = &[
    "review", "deploy", "query", "render", "parse", "table", "image", "cloud", "server", "client",
    "report", "branch", "commit", "schema", "vector", "prompt", "agent", "token", "model", "cache",
    "stream", "socket", "thread", "memory", "layout", "design", "budget", "invoice", "search",
    "index", "graph", "chart", "audio", "video", "email", "calendar", "notes", "tests", "release",
    "security",
];

/// Returns the size at this share of all files.
fn quantile(points: &[(f64, f64)], at: f64) -> usize {
    let next = points.iter().position(|it| at < it.0).unwrap_or(points.len() - 1);
    let ((low, small), (high, large)) = (points[next - 1], points[next]);
    let share = (at - low) / (high - low);
    // Sizes grow by factors, so that the interpolation is linear in their logarithms.
    (small.ln() + (large.ln() - small.ln()) * share).exp() as usize
}

/// Makes up a `SKILL.md`.
fn skill(name: &str, random: &mut Random) -> String {
    let size = quantile(SIZES, random.unit());
    let mut text = if random.chance(1.0) { String::new() } else { frontmatter(name, random) };
    let _ = writeln!(text, "\n# {name}\n");
    while text.len() < size {
        match random.unit() {
            0.0..0.1 => text.push_str("\n## How to do it\n\n"),
            0.1..0.2 => text.push_str("\n```sh\nmake all && make check\n```\n\n"),
            0.2..0.4 => {
                let item = sentence(60, random);
                let _ = writeln!(text, "- {item}");
            }
            _ => {
                let paragraph = sentence(300, random);
                let _ = writeln!(text, "{paragraph}\n");
            }
        }
    }
    text
}

/// Makes up a frontmatter, with its delimiters.
fn frontmatter(name: &str, random: &mut Random) -> String {
    let size = quantile(FRONTMATTER_SIZES, random.unit());
    let mut rest = String::new();
    if random.chance(54.0) {
        let (major, minor) = (random.pick(&[0, 1, 2]), random.pick(&[0, 1, 4]));
        let _ = writeln!(rest, "author: {}-team", random.pick(WORDS));
        let _ = writeln!(rest, "version: \"{major}.{minor}.0\"");
    }
    if random.chance(17.0) {
        let (first, second) = (random.pick(WORDS), random.pick(WORDS));
        let _ = writeln!(rest, "tags: [{first}, \"{second}\", {}]", random.pick(WORDS));
    }
    if random.chance(12.0) {
        let word = random.pick(WORDS);
        let _ = writeln!(rest, "metadata:\n  category: {word}\n  links:\n    - {word}\n    - home");
    }
    if random.chance(30.0) {
        rest.push_str("license: MIT\n");
    }
    let used = name.len() + rest.len() + 32;
    let length = size.saturating_sub(used).max(40);
    let description = sentence(length.min(LONGEST_DESCRIPTION), random);
    if length > LONGEST_DESCRIPTION {
        rest.push_str("metadata-notes:\n");
        for _ in 0..(length - LONGEST_DESCRIPTION) / 64 {
            let _ = writeln!(rest, "  - {}", sentence(56, random));
        }
    }
    let description = match random.unit() * 100.0 {
        0.0..17.0 => format!(">-\n  {}", description.replacen(". ", ".\n  ", 1)),
        17.0..17.5 => format!("Use when: {description}"),
        17.5..50.0 => format!("\"{description}\""),
        _ => description,
    };
    format!("---\nname: {name}\ndescription: {description}\n{rest}---\n")
}

/// Returns sentences of about this many bytes in all.
fn sentence(length: usize, random: &mut Random) -> String {
    let mut text = "Use".to_owned();
    let mut words = 1;
    while text.len() < length {
        text.push_str(if words % 12 == 0 { ". Then " } else { " " });
        text.push_str(random.pick(WORDS));
        words += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up() -> Vec<String> {
        let mut random = Random::new(1);
        (0..4000).map(|number| skill(&format!("skill-{number}"), &mut random)).collect()
    }

    /// Returns whether `measured` is about as expected.
    fn near(measured: usize, expected: usize) -> bool {
        measured.abs_diff(expected) * 10 <= expected
    }

    #[test]
    fn made_up_files_are_as_large_as_real_ones() {
        let mut sizes: Vec<usize> = made_up().iter().map(String::len).collect();
        sizes.sort_unstable();
        assert!(near(sizes[2000], 5_600), "{}", sizes[2000]);
        assert!(near(sizes[3600], 16_000), "{}", sizes[3600]);
        // So few are this large that their share is more reliable than their sizes.
        let large = sizes.iter().filter(|it| **it > 34_400).count();
        assert!((24..=56).contains(&large), "{large} of 4000, not about 40");
    }

    #[test]
    fn made_up_frontmatters_are_as_large_as_real_ones() {
        let files = made_up();
        let split = files.iter().map(|it| prowess::frontmatter::split(it));
        let mut sizes: Vec<usize> =
            split.filter_map(|it| it.frontmatter).map(|it| it.text.len()).collect();
        sizes.sort_unstable();
        assert!((3900..4000).contains(&sizes.len()), "{}", sizes.len());
        assert!(near(sizes[sizes.len() / 2], 446), "{}", sizes[sizes.len() / 2]);
        assert!(near(sizes[sizes.len() * 9 / 10], 811), "{}", sizes[sizes.len() * 9 / 10]);
    }

    #[test]
    fn made_up_files_have_the_variety_of_real_ones() {
        let files = made_up();
        let percent = |part: &str| files.iter().filter(|it| it.contains(part)).count() / 40;
        let shares = ["description: >-", "\nauthor: ", "\ntags: [", "\nmetadata:\n"].map(percent);
        assert!((15..=19).contains(&shares[0]), "{shares:?}");
        assert!((51..=57).contains(&shares[1]), "{shares:?}");
        assert!((15..=19).contains(&shares[2]), "{shares:?}");
        assert!((10..=14).contains(&shares[3]), "{shares:?}");
        let colons = files.iter().filter(|it| it.contains("description: Use when: ")).count();
        assert!((8..40).contains(&colons), "{colons}");
    }

    #[test]
    fn a_renamed_skill_keeps_its_quotes() {
        let renamed = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            rename(&mut bytes, 3);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(renamed("---\nname: a\nx: y\n---\n"), "---\nname: a-3\nx: y\n---\n");
        assert_eq!(renamed("---\r\nname: \"a\"\r\n---\r\n"), "---\r\nname: \"a-3\"\r\n---\r\n");
        assert_eq!(renamed("# No frontmatter\n"), "# No frontmatter\n");
    }
}
