//! The skills and directories named on the command line.

use std::path::{Path, PathBuf};

use anyhow::Result;
use prowess::{Checkup, ExaminedSkill, Location, spec::SKILL_FILE};

use crate::{
    arguments::Global,
    context,
    surroundings::{absolute, real_path},
};

/// The named skills and directories; everything if none was named.
pub(super) struct SummaryScope {
    pub(super) directories: Vec<PathBuf>,
    include: Vec<String>,
    exclude: Vec<String>,
}

impl SummaryScope {
    pub(super) fn of(global: &Global) -> Result<Self> {
        let directories = match global.dir.is_empty() && global.preset.is_empty() {
            true => Vec::new(),
            false => context::directories(&context::config(global)?, global),
        };
        let directories = directories.iter().map(|it| absolute(&context::resolve(it, global)));
        Ok(Self {
            directories: directories.collect::<Result<_>>()?,
            include: global.include.clone(),
            exclude: global.exclude.clone(),
        })
    }

    pub(super) fn is_everything(&self) -> bool {
        self.directories.is_empty() && self.include.is_empty() && self.exclude.is_empty()
    }

    /// Returns whether single skills are named rather than directories.
    pub(super) fn is_of_skills(&self) -> bool {
        !self.include.is_empty()
            || !self.exclude.is_empty()
            || self.directories.iter().any(|it: &PathBuf| it.join(SKILL_FILE).is_file())
    }

    /// Removes everything else from a checkup. The verdicts were given with everything in place.
    pub(super) fn restrict(&self, checkup: &mut Checkup) {
        if self.is_everything() {
            return;
        }
        let named: Vec<PathBuf> = self.directories.iter().map(|it| real_path(it)).collect();
        let Checkup { skills, locations, crowded, findings, .. } = checkup;
        for location in &mut *locations {
            let mut paths = location.aliases.iter().chain([&location.directory]);
            let is_named = paths.any(|it| is_in_named(it, &named));
            location.skills.retain(|number| {
                let ExaminedSkill { name, path, .. } = &skills[*number];
                let is_named =
                    is_named || path.parent().is_some_and(|it| named.contains(&real_path(it)));
                is_named
                    && (self.include.is_empty() || self.include.contains(name))
                    && !self.exclude.contains(name)
            });
        }
        locations.retain(|it| !it.skills.is_empty());
        // A named skill is shown in its directory.
        let (of_skills, others): (Vec<Location>, Vec<Location>) =
            std::mem::take(locations).into_iter().partition(|location| {
                let mut paths = location.skills.iter().map(|it| &skills[*it].path);
                paths.any(|it| it.parent() == Some(&location.directory))
            });
        *locations = if others.is_empty() { of_skills } else { others };
        // A named directory may contain directories that clients read.
        let inner: Vec<(PathBuf, Vec<usize>)> =
            locations.iter().map(|it| (it.directory.clone(), it.skills.clone())).collect();
        for location in &mut *locations {
            let outer = location.directory.clone();
            let inside: Vec<usize> = inner
                .iter()
                .filter(|it: &&(PathBuf, Vec<usize>)| it.0 != outer && it.0.starts_with(&outer))
                .flat_map(|it| it.1.clone())
                .collect();
            location.skills.retain(|it| !inside.contains(it));
        }
        locations.retain(|it| !it.skills.is_empty());
        findings.retain(|it| is_in_named(&it.path, &named));
        // That is about everything a client reads.
        crowded.clear();
    }
}

/// Returns whether a path is in one of the named directories, or none was named.
fn is_in_named(path: &Path, named: &[PathBuf]) -> bool {
    let path = real_path(path);
    named.is_empty() || named.iter().any(|it| path.starts_with(it))
}
