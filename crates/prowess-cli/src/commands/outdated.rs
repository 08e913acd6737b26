use anyhow::Result;
use prowess_packages::{FetchPackageError, LockedSkill, NewestVersion, SkillSource};
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use super::plural;
use crate::{
    ExitStatus,
    arguments::Global,
    completion,
    packages::{self, PackageSession, version_text},
    printer::Printer,
    safe,
};

/// List installed skills of which there is a newer version
///
/// Asks each source what is newest, and compares it with `prowess.lock`. Nothing is changed; `prowess update` does that.
/// Exits 0 whether or not there are newer versions, 1 if a tag has moved, and 2 if a source cannot be asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look only at these skills
    #[arg(value_name = "NAME", add = completion::installed_skills())]
    names: Vec<String>,
    /// Look at the skills for all your projects
    #[arg(short, long)]
    global: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let session = PackageSession::open(args.global, false, global, printer)?;
    let lock = session.place.read_lock()?;
    let skills = packages::named(&lock, &args.names, &session)?;
    if skills.is_empty() {
        printer.note("no skills are installed here; `prowess add SOURCE` installs some");
    }
    let mut sources: Vec<SkillSource> = Vec::new();
    for skill in &skills {
        let source = packages::delocalize(&skill.source, &session);
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    let fetcher = &session.fetcher;
    let work = packages::in_parallel(&sources, |it| fetcher.newest(it));
    let newest = session.wait("asking for newer versions", work, printer)?;
    let mut status = ExitStatus::Success;
    let mut rows: Vec<(&LockedSkill, &NewestVersion)> = Vec::new();
    let mut held = 0;
    for skill in &skills {
        let source = packages::delocalize(&skill.source, &session);
        let Some(at) = sources.iter().position(|it| *it == source) else { continue };
        let Ok(newest) = &newest[at] else { continue };
        let (reference, commit) = (newest.reference.as_deref(), newest.commit.as_deref());
        if let Some(tag) = packages::moved_tag(skill, reference, commit) {
            printer.error_text(&format!(
                "the tag `{tag}` of `{}` has moved since `{}` was installed",
                skill.source, skill.name
            ));
            printer.hint("ask its author why, before you install it again");
            status = ExitStatus::Failure;
            continue;
        }
        if !is_newer(skill, newest, &session) {
            continue;
        }
        if packages::too_young(newest.published, &session).is_some() {
            held += 1;
            continue;
        }
        rows.push((skill, newest));
    }
    if printer.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(skill, newest)| {
                json!({
                    "name": skill.name,
                    "source": skill.source.to_string(),
                    "commit": skill.commit,
                    "version": skill.version,
                    "newest": {
                        "commit": newest.commit, "version": newest.version,
                        "reference": newest.reference, "published": newest.published,
                    },
                })
            })
            .collect();
        printer.document(&json!({ "outdated": rows }))?;
    } else {
        print_rows(&rows, printer)?;
    }
    if held > 0 {
        let versions = plural(held, "newer version is", "newer versions are");
        printer.note(&format!("{versions} younger than `packages.min_age`"));
    }
    let failed: Vec<&FetchPackageError> =
        newest.iter().filter_map(|it| it.as_ref().err()).collect();
    for error in &failed {
        packages::fetch_error(error).print(printer);
        status = ExitStatus::Error;
    }
    if failed.is_empty() && !skills.is_empty() && !printer.json {
        match rows.len() {
            0 if status == ExitStatus::Success => printer.note("everything is up to date"),
            0 => {}
            _ => printer.note("`prowess update --dry-run` shows what would change"),
        }
    }
    Ok(status)
}

/// Returns whether there is another version than the locked one.
fn is_newer(skill: &LockedSkill, newest: &NewestVersion, session: &PackageSession) -> bool {
    match (&newest.version, &newest.commit, &newest.digest) {
        (Some(version), ..) => skill.version.as_ref() != Some(version),
        (None, Some(commit), _) => skill.commit.as_ref() != Some(commit),
        // The tree of a folder or file has been read; the skill in it counts.
        (None, None, Some(_)) => {
            packages::newest_digest(skill, session).is_some_and(|it| it != skill.digest)
        }
        (None, None, None) => false,
    }
}

fn print_rows(rows: &[(&LockedSkill, &NewestVersion)], printer: &mut Printer) -> Result<()> {
    let names = rows.iter().map(|it| safe::line(&it.0.name).width());
    let room = names.max().unwrap_or(0);
    for (skill, newest) in rows {
        let name = safe::line(&skill.name).into_owned();
        let pad = " ".repeat(room.saturating_sub(name.width()));
        let shown = |text: String| if text.is_empty() { "changed".to_owned() } else { text };
        let (old, new) = (version_text(*skill), shown(version_text(*newest)));
        let (old, new) = (safe::line(&old).into_owned(), safe::line(&new).into_owned());
        let old = printer.dim(&if old.is_empty() { "installed".to_owned() } else { old });
        printer.line(format_args!("{}{pad}  {old} → {new}", printer.name(&name)))?;
    }
    printer.flush()
}
