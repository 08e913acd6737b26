//! The changes of installed skills that `prowess undo` takes back.

use std::path::PathBuf;

use anyhow::Result;
use prowess_packages::{InstallOptions, InstalledChange, Installer, install_history};
use serde_json::{Value, json};

use super::{PackageSession, Place, change::install_error, install_place, wording};
use crate::{
    ExitStatus, arguments::Global, context::quote_entries, printer::Printer,
    surroundings::surroundings,
};

/// A change of installed skills.
pub(crate) struct PackageChange {
    installed: InstalledChange,
    is_global: bool,
}

impl PackageChange {
    /// Returns when it was made, in nanoseconds since 1970.
    pub(crate) fn time(&self) -> u64 {
        self.installed.time
    }

    /// Returns the day and time.
    pub(crate) fn when(&self) -> String {
        wording::moment(self.installed.time / 1_000_000_000).unwrap_or_default()
    }

    /// Returns the id by which it is undone.
    pub(crate) fn id(&self) -> &str {
        &self.installed.id
    }

    /// Returns whether it is about the skills for all projects.
    pub(crate) fn is_global(&self) -> bool {
        self.is_global
    }

    /// Returns whether a word is its id, or the name of a skill that it changed.
    pub(crate) fn is_about(&self, word: &str) -> bool {
        self.installed.id == word || self.installed.skills.iter().any(|it| it == word)
    }

    /// Describes it in one line.
    pub(crate) fn describe(&self) -> String {
        let InstalledChange { title, skills, .. } = &self.installed;
        match &skills[..] {
            [] => title.clone(),
            names => format!("{title}: {}", quote_entries(names).replace('`', "")),
        }
    }

    /// Returns it as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "id": self.installed.id,
            "change": "packages",
            "title": self.installed.title,
            "skills": self.installed.skills,
            "when": self.when(),
        })
    }
}

/// Returns the changes of this project and of the user, without those that cannot be read.
pub(crate) fn package_changes(global: &Global) -> Vec<PackageChange> {
    let mut changes = Vec::new();
    for is_global in [false, true] {
        let Ok(place) = Place::find(is_global, global) else { continue };
        let Ok((surroundings, _)) = surroundings(global, None) else { continue };
        let Ok(install) = install_place(&place, surroundings) else { continue };
        let history = install_history(&install).unwrap_or_default();
        changes.extend(history.into_iter().map(|installed| PackageChange { installed, is_global }));
    }
    changes
}

/// Takes a change back.
pub(crate) fn undo(
    change: &PackageChange,
    global: &Global,
    printer: &mut Printer,
) -> Result<ExitStatus> {
    let session = PackageSession::open(change.is_global, true, global, printer)?;
    let installer = Installer::open(&session.install, &session.cache, &|| ())
        .map_err(|it| install_error(&it))?;
    let title = format!("prowess undo {}", change.installed.title.trim_start_matches("prowess "));
    let undone = installer
        .undo(&change.installed.id, &InstallOptions::new(&title))
        .map_err(|it| install_error(&it))?;
    if printer.json {
        let paths: Vec<PathBuf> = undone.paths;
        printer.document(&json!({
            "change": "packages", "title": undone.title, "skills": undone.skills, "paths": paths,
        }))?;
        return Ok(ExitStatus::Success);
    }
    for path in &undone.paths {
        printer.dimmed_note(&format!("  {}", session.place.short(path)));
    }
    printer.note(&format!("`{}` is undone", undone.title));
    Ok(ExitStatus::Success)
}
