//! From arguments and environment to the library that is meant.

use std::{env, fs::File, io::BufReader, path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail};
use prowess::{
    Directory, Embedder, Finding, Library, Limits, Listing, Options, PRESETS, Skill, Unknown,
    bundled, nearest, preset,
};

use crate::{arguments::Global, printer::Printer};

/// Loads the library that was asked for; the bundled skills when none was.
pub(crate) fn library(global: &Global, printer: &mut Printer) -> Result<Library> {
    embedding_library(global, None, printer)
}

/// Loads the library that was asked for, with a file of vectors to find skills by what they mean.
pub(crate) fn embedding_library(
    global: &Global,
    vectors: Option<&Path>,
    printer: &mut Printer,
) -> Result<Library> {
    let embedder = vectors.map(|path| {
        let cannot = || format!("cannot use `{}` as vectors", path.display());
        let file = File::open(path).with_context(cannot)?;
        Embedder::read(BufReader::new(file)).with_context(cannot).map(Arc::new)
    });
    let options = Options { embedder: embedder.transpose()?, ..options(global)? };
    if options.directories.is_empty() {
        printer.note("no directory is configured, so these are the bundled skills; `--dir DIR` or `--preset NAME` names others");
    }
    let library = Library::load(&options)?;
    library.findings().iter().filter(|it| is_missing(it)).for_each(|it| printer.finding(it));
    Ok(library)
}

/// Whether a finding says that a directory is not there, which every command says at once.
pub(crate) fn is_missing(finding: &Finding) -> bool {
    finding.rule.code == "directory-missing"
}

/// The options that the arguments stand for.
pub(crate) fn options(global: &Global) -> Result<Options> {
    let mut directories: Vec<Directory> = global.dir.iter().map(Directory::new).collect();
    for name in &global.preset {
        let Some(preset) = preset(name) else {
            let names: Vec<&str> = PRESETS.iter().map(|it| it.name).collect();
            match nearest(name, names.iter().copied()) {
                Some(near) => bail!("there is no preset `{name}`; did you mean `{near}`?"),
                None => bail!("there is no preset `{name}`, only {}", names.join(", ")),
            }
        };
        directories.extend(preset.directories());
    }
    let sources = if directories.is_empty() { vec![bundled()] } else { Vec::new() };
    Ok(Options {
        directories,
        sources,
        cwd: global.cwd.clone(),
        home: env::home_dir(),
        include: global.include.clone(),
        exclude: global.exclude.clone(),
        limits: limits(global),
        resources: Listing::default(),
        watch: false,
        profile: global.profile.into(),
        embedder: None,
    })
}

/// The limits that the arguments stand for.
pub(crate) fn limits(global: &Global) -> Limits {
    let default = Limits::default();
    Limits {
        max_file_size: global.max_file_size.unwrap_or(default.max_file_size),
        max_skill_size: global.max_skill_size.unwrap_or(default.max_skill_size),
        depth: global.depth.into(),
        ..default
    }
}

/// Finds a skill by name; says which name comes nearest when there is none.
pub(crate) fn skill<'lib>(
    library: &'lib Library,
    name: &str,
    printer: &mut Printer,
) -> Option<&'lib Skill> {
    let skill = library.get(name);
    if skill.is_none() {
        printer.fault(&format!("there is no skill `{name}`"));
        let names = library.skills().map(|it| &*it.manifest.name);
        match nearest(name, names) {
            Some(near) => printer.hint(&format!("did you mean `{near}`?")),
            None => printer.hint("`prowess list` shows which there are"),
        }
    }
    skill
}

/// Says which skills were mentioned that are not in use, each with the name that comes nearest.
pub(crate) fn unknown(mentions: &[Unknown], printer: &mut Printer) {
    for Unknown { name, nearest } in mentions {
        let hint = nearest.as_ref().map(|it| format!("; did you mean `{it}`?"));
        let hint = hint.unwrap_or_default();
        printer.warning(&format!("no skill `{name}` is in use{hint}"));
    }
}
