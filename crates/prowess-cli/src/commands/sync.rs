use std::collections::BTreeSet;

use anyhow::Result;
use prowess_packages::{
    DiscoveredPackage, InstallAction, LockDifference, LockedSkill, PackagedSkill, Pin, SkillSource,
    WantedSkill,
};
use serde_json::json;

use super::count;
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    packages::{
        self, Change, ChangePlan, PackageSession, ReviewedSkill, SkillChoice, SkillVersion, choose,
        print_skills,
    },
    printer::Printer,
    safe,
};

/// Install exactly what `prowess.lock` says
///
/// Fetches what is missing, and puts every skill where the lock file says. Skills that are new in `prowess.toml` are shown
/// and added to the lock file, and those that are gone from it are removed, once you agree. With `--locked`, the lock file is not
/// changed: if it does not agree with `prowess.toml`, nothing is installed and it exits 1, which is what CI wants. What you have
/// edited stays, and is reported.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Fail if `prowess.lock` does not agree with `prowess.toml`
    #[arg(long)]
    locked: bool,
    /// Use only what was fetched before
    #[arg(long)]
    offline: bool,
    /// Sync the skills for all your projects
    #[arg(short, long)]
    global: bool,
    /// Show what would change, without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Install although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Install what is new in `prowess.toml`, and remove what is gone from it, without asking
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let session = PackageSession::open(args.global, args.offline, global, printer)?;
    let mut change = Change::begin(&session, printer)?;
    let differences = change.lock.differences(&change.manifest);
    if args.locked && !differences.is_empty() {
        return Err(disagreement(&differences, &session).into());
    }
    if change.manifest.wanted().is_empty() && change.lock.skills().is_empty() {
        let manifest = session.place.short(&session.place.manifest);
        printer.note(&format!("`{manifest}` asks for no skills; `prowess add SOURCE` adds some"));
        return Ok(ExitStatus::Success);
    }
    let asks = resolve(args, &differences, &mut change, &session, printer)?;
    let planned = change.plan()?;
    if args.dry_run {
        print_steps(&planned, args, printer)?;
        printer.note("nothing was written");
        return Ok(ExitStatus::Success);
    }
    if asks {
        // Others need not wait for the answer.
        if !printer.json {
            print_steps(&planned, args, printer)?;
        }
        drop(planned);
        if !packages::is_agreed(args.yes, "Make these changes?", "changed")? {
            return Ok(packages::declined("changed", printer));
        }
    } else {
        drop(planned);
    }
    let planned = change.plan()?;
    fetch_missing(&planned, &change, &session, printer)?;
    let report = change.apply(planned, "prowess sync", printer)?;
    let is_done = |it: &&prowess_packages::PlannedStep| {
        !matches!(it.action, InstallAction::Keep | InstallAction::KeepEdited)
    };
    let changed: BTreeSet<&str> =
        report.steps.iter().filter(is_done).map(|it| &*it.skill).collect();
    if printer.json {
        printer.document(&json!({
            "dry_run": false,
            "skills": report.skills.len(),
            "changes": packages::steps_json(&report.steps),
        }))?;
    }
    packages::note_report(&report, printer);
    let skills = count(report.skills.len(), "skill");
    printer.note(&match changed.len() {
        0 => format!("{skills} as the lock file says; nothing to change"),
        many => format!("{skills} as the lock file says; {} changed", count(many, "skill")),
    });
    Ok(ExitStatus::Success)
}

/// Returns the error that the lock does not agree with the manifest.
fn disagreement(differences: &[LockDifference], session: &PackageSession) -> CliError {
    /// The differences that are named.
    const NAMED: usize = 5;
    let named: Vec<String> = differences.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match differences.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {}", count(more, "more difference")),
    };
    let lock = session.place.short(&session.place.lock);
    let message = format!("`{lock}` does not agree with the manifest: {}{more}", named.join("; "));
    CliError::invalid_input(message).hint(format!(
        "run `prowess sync{}` without `--locked`, and commit both files",
        session.place.flag()
    ))
}

/// Changes the lock to what the manifest asks for. Returns whether a person has to agree.
fn resolve(
    args: &Args,
    differences: &[LockDifference],
    change: &mut Change<'_>,
    session: &PackageSession,
    printer: &mut Printer,
) -> Result<bool> {
    let (mut wanted, mut moved, mut gone): (Vec<WantedSkill>, Vec<WantedSkill>, Vec<String>) =
        Default::default();
    for difference in differences {
        let entry = change.manifest.get(difference.name()).cloned();
        match (difference, entry) {
            (LockDifference::Extra { name }, _) => gone.push(name.clone()),
            (LockDifference::Clients { .. } | LockDifference::Copy { .. }, Some(entry)) => {
                moved.push(entry);
            }
            (_, Some(entry)) => wanted.push(entry),
            (_, None) => {}
        }
    }
    wanted.dedup_by(|a, b| a.name == b.name);
    for name in &gone {
        change.remove(name)?;
    }
    let resolved: BTreeSet<&str> = wanted.iter().map(|it| &*it.name).collect();
    let mut relocated = Vec::new();
    for entry in moved.iter().filter(|it| !resolved.contains(&*it.name)) {
        let Some(mut locked) = change.wanted(&entry.name).cloned() else { continue };
        locked.clients = change.manifest.clients_of(entry).map(<[String]>::to_vec);
        locked.copy = change.manifest.is_copied(entry);
        locked.targets =
            change.directories(entry)?.iter().map(|it| it.target(&entry.name)).collect();
        relocated.push(locked);
    }
    change.insert_all(relocated)?;
    if wanted.is_empty() {
        return Ok(!gone.is_empty());
    }
    let mut sources: Vec<(SkillSource, Option<Pin>)> = Vec::new();
    for entry in &wanted {
        let source = packages::delocalize(&entry.source, session);
        if !sources.iter().any(|it| it.0 == source) {
            sources.push((source, None));
        }
    }
    let fetched = session.fetch(&sources, printer)?;
    let mut trees = Vec::new();
    for tree in fetched {
        let tree = tree.map_err(|it| packages::fetch_error(&it))?;
        packages::check_age(&tree, session)?;
        let found = packages::discover_in(&tree);
        trees.push((tree, found));
    }
    let mut new: Vec<(WantedSkill, PackagedSkill, usize)> = Vec::new();
    for entry in wanted {
        let source = packages::delocalize(&entry.source, session);
        let at = sources.iter().position(|it| it.0 == source).unwrap_or_default();
        let (tree, found) = &trees[at];
        let names = [entry.skill_name().to_owned()];
        let chosen = choose(found, tree, &names, false, printer)?;
        let Some(SkillChoice { skills, .. }) = chosen else { continue };
        if let [skill, ..] = skills[..] {
            new.push((entry, skill.clone(), at));
        }
    }
    let reviewed: Vec<ReviewedSkill> = printer.with_progress("checking skills", || {
        let skills: Vec<_> = new.iter().map(|(_, skill, at)| (skill, &trees[*at].0)).collect();
        ReviewedSkill::all(&skills, session.rules)
    });
    if !printer.json {
        print_skills(&reviewed.iter().collect::<Vec<_>>(), printer)?;
        printer.flush()?;
    }
    let dangers: usize = reviewed.iter().map(|it| it.dangers).sum();
    if dangers > 0 && !args.allow_findings {
        return Err(packages::dangerous(dangers, "installed").into());
    }
    let mut signers = Vec::new();
    for (tree, _) in &trees {
        signers.push(packages::check_signature(tree, session)?);
    }
    let versions: Vec<SkillVersion<'_>> = new
        .iter()
        .map(|(entry, skill, at)| {
            let (tree, signer) = (&trees[*at].0, signers[*at].as_ref());
            SkillVersion { entry, skill, tree, signer }
        })
        .collect();
    change.lock_all(&versions)?;
    Ok(true)
}

/// Fetches the locked versions that have to be installed and are not in the cache. What the settings ask of a version is
/// asked of locked ones too: a lock file may be anybody's.
fn fetch_missing(
    planned: &ChangePlan,
    change: &Change<'_>,
    session: &PackageSession,
    printer: &mut Printer,
) -> Result<()> {
    let needed = planned.steps().iter().filter(|it| {
        !matches!(
            it.action,
            InstallAction::Keep
                | InstallAction::KeepEdited
                | InstallAction::Remove
                | InstallAction::Forget
        )
    });
    let names: BTreeSet<&str> = needed.map(|it| &*it.skill).collect();
    let mut missing: Vec<(&LockedSkill, bool)> = Vec::new();
    for skill in names.into_iter().filter_map(|it| change.wanted(it)) {
        let has_policy =
            packages::has_policy(&packages::delocalize(&skill.source, session), session)?;
        if has_policy || !session.cache.contains(&skill.files) {
            missing.push((skill, has_policy));
        }
    }
    let mut sources: Vec<(SkillSource, Option<Pin>)> = Vec::new();
    let mut from: Vec<usize> = Vec::new();
    for (skill, _) in &missing {
        let source = packages::source_of_locked(skill, session);
        from.push(sources.iter().position(|it| *it == source).unwrap_or_else(|| {
            sources.push(source);
            sources.len() - 1
        }));
    }
    let fetched = session.fetch(&sources, printer)?;
    let mut found: Vec<Option<DiscoveredPackage>> = fetched.iter().map(|_| None).collect();
    for ((skill, has_policy), at) in missing.into_iter().zip(from) {
        let tree = fetched[at].as_ref().map_err(packages::fetch_error)?;
        packages::check_age(tree, session)?;
        packages::check_signature(tree, session)?;
        let found = found[at].get_or_insert_with(|| packages::discover_in(tree));
        let same = found.skills.iter().any(|it| it.digest == skill.digest);
        let is_cached = !has_policy && session.cache.contains(&skill.files);
        if !same && !is_cached {
            let message = format!(
                "`{}` in `{}` is not what the lock file says: its content has changed",
                skill.name, skill.source
            );
            return Err(CliError::invalid_input(message)
                .hint(format!(
                    "`prowess update {}` shows what has changed, and takes it",
                    skill.name
                ))
                .into());
        }
    }
    Ok(())
}

fn print_steps(planned: &ChangePlan, args: &Args, printer: &mut Printer) -> Result<()> {
    if printer.json {
        if args.dry_run {
            printer.document(&json!({
                "dry_run": true,
                "changes": packages::steps_json(planned.steps()),
            }))?;
        }
        return Ok(());
    }
    for step in planned.steps().iter().filter(|it| it.action != InstallAction::Keep) {
        let word = packages::action_word(step.action);
        printer.line(format_args!("{word:8} {}", safe::line(&step.path)))?;
    }
    printer.flush()
}
