use anyhow::Result;
use prowess_packages::{
    DiscoveredPackage, FetchedTree, LocalEdits, LockedSkill, PackagedSkill, SkillSource,
    WantedSkill,
};
use serde_json::{Value, json};

use super::count;
use crate::{
    ExitStatus,
    arguments::Global,
    completion,
    packages::{
        self, Change, PackageSession, ReviewedSkill, SkillVersion, VersionChange,
        print_version_change, version_text,
    },
    printer::Printer,
    safe,
};

/// Update installed skills, after showing what changes
///
/// Shows the difference in what a model would read, then the other files that change, and asks once. What you have
/// edited is merged with the new version; where both changed the same lines, yours stays, and the new file is beside it.
/// Without names, all skills are updated. A skill that is pinned to a commit or version stays there.
/// `prowess undo` takes an update back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Update only these skills
    #[arg(value_name = "NAME", add = completion::installed_skills())]
    names: Vec<String>,
    /// Update the skills for all your projects
    #[arg(short, long)]
    global: bool,
    /// Show what would change, without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Move what you have edited to the trash instead of merging it
    #[arg(long)]
    force: bool,
    /// Update although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Update without asking
    #[arg(short, long)]
    yes: bool,
}

/// A new version of a skill.
struct Update<'t> {
    old: LockedSkill,
    entry: WantedSkill,
    new: PackagedSkill,
    tree: &'t FetchedTree,
    change: VersionChange,
    reviewed: ReviewedSkill,
    /// The number of errors of `audit` that the installed version does not have.
    dangers: usize,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let session = PackageSession::open(args.global, false, global, printer)?;
    let mut change = Change::begin(&session, printer)?;
    change.edits = if args.force { LocalEdits::SetAside } else { LocalEdits::Merge };
    let skills = packages::named(&change.lock, &args.names, &session)?;
    if skills.is_empty() {
        printer.note("no skills are installed here; `prowess add SOURCE` installs some");
        return Ok(ExitStatus::Success);
    }
    let mut sources: Vec<(SkillSource, Option<_>)> = Vec::new();
    for skill in &skills {
        let source = packages::delocalize(&skill.source, &session);
        if !sources.iter().any(|it| it.0 == source) {
            sources.push((source, None));
        }
    }
    let fetched = session.fetch(&sources, printer)?;
    let mut status = ExitStatus::Success;
    let mut trees: Vec<Option<(FetchedTree, DiscoveredPackage)>> = Vec::new();
    for tree in fetched {
        trees.push(match tree {
            Ok(tree) => {
                let found = packages::discover_in(&tree);
                Some((tree, found))
            }
            Err(error) => {
                packages::fetch_error(&error).print(printer);
                status = ExitStatus::Error;
                None
            }
        });
    }
    let mut updates: Vec<Update<'_>> = Vec::new();
    let mut only_versions = Vec::new();
    for skill in skills {
        let source = packages::delocalize(&skill.source, &session);
        let at = sources.iter().position(|it| it.0 == source);
        let Some((tree, found)) = at.and_then(|at| trees[at].as_ref()) else { continue };
        let name = skill.name.clone();
        if let Some(tag) =
            packages::moved_tag(&skill, tree.reference.as_deref(), tree.commit.as_deref())
        {
            printer.error_text(&format!(
                "the tag `{tag}` of `{}` has moved since `{name}` was installed",
                skill.source
            ));
            printer.hint(&format!(
                "ask its author why; `prowess add {} --skill {}` takes it as it is now",
                skill.source,
                skill.skill_name()
            ));
            status = ExitStatus::Failure;
            continue;
        }
        let Some(new) = packages::same_skill(&skill, found) else {
            printer.error_text(&format!("`{name}` is not in `{}` any more", skill.source));
            printer.hint(&format!("it stays installed; `prowess remove {name}` removes it"));
            status = ExitStatus::Failure;
            continue;
        };
        if let Some((age, least)) = packages::too_young(tree.published, &session)
            && new.digest != skill.digest
        {
            let (age, least) = (packages::age_text(age), packages::age_text(least));
            printer.note(&format!("`{name}` stays: its new version is {age} old, and `packages.min_age` asks for {least}"));
            continue;
        }
        let Some(entry) = change.manifest.get(&name).cloned() else { continue };
        if new.digest == skill.digest {
            if skill.commit != tree.commit
                || skill.version != tree.version
                || skill.path != new.path
            {
                only_versions.push((entry, new.clone(), tree));
            }
            continue;
        }
        let new_folder =
            if new.path.is_empty() { tree.folder.clone() } else { tree.folder.join(&new.path) };
        let old_folder = packages::folder_of_locked(&skill, &session);
        let difference = VersionChange::between(
            (&skill.files, old_folder.as_deref()),
            (&new.files, &new_folder),
        );
        let reviewed = ReviewedSkill::new(new, tree, session.rules);
        let known = old_folder.map(|it| packages::audit(&skill.files, &it)).unwrap_or_default();
        let dangers = reviewed.new_dangers(&known);
        let new = new.clone();
        updates.push(Update {
            old: skill,
            entry,
            new,
            tree,
            change: difference,
            reviewed,
            dangers,
        });
    }
    // Who must have signed depends on the source, even where the content is the same.
    let mut signers: Vec<(&SkillSource, _)> = Vec::new();
    for tree in updates.iter().map(|it| it.tree).chain(only_versions.iter().map(|it| it.2)) {
        if !signers.iter().any(|it| *it.0 == tree.source) {
            signers.push((&tree.source, packages::check_signature(tree, &session)?));
        }
    }
    let signer = |tree: &FetchedTree| {
        signers.iter().find(|it| *it.0 == tree.source).and_then(|it| it.1.as_ref())
    };
    let unchanged = only_versions.iter().map(|(entry, skill, tree)| (entry, skill, *tree));
    let changed = updates.iter().map(|it| (&it.entry, &it.new, it.tree));
    let versions: Vec<SkillVersion<'_>> = unchanged
        .chain(changed)
        .map(|(entry, skill, tree)| SkillVersion { entry, skill, tree, signer: signer(tree) })
        .collect();
    change.lock_all(&versions)?;
    if !printer.json {
        for update in &updates {
            print_update(update, printer)?;
        }
    }
    let document = |is_done: bool| {
        json!({
            "dry_run": args.dry_run,
            "updated": is_done,
            "skills": updates.iter().map(update_json).collect::<Vec<_>>(),
        })
    };
    let dangers: usize = updates.iter().map(|it| it.dangers).sum();
    if dangers > 0 && !args.allow_findings {
        if printer.json {
            printer.document(&document(false))?;
        }
        return Err(packages::dangerous(dangers, "updated").into());
    }
    if updates.is_empty() && only_versions.is_empty() {
        if printer.json {
            printer.document(&document(false))?;
        } else if status == ExitStatus::Success {
            printer.note("everything is up to date");
        }
        return Ok(status);
    }
    if args.dry_run {
        change.plan()?;
        if printer.json {
            printer.document(&document(false))?;
        }
        printer.note("nothing was written");
        return Ok(status);
    }
    if !updates.is_empty() {
        // What is in the way is reported before the question.
        drop(change.plan()?);
        let question = match &updates[..] {
            [one] => format!("Update `{}`?", safe::line(&one.old.name)),
            many => format!("Update these {}?", count(many.len(), "skill")),
        };
        if !packages::is_agreed(args.yes, &question, "updated")? {
            return Ok(packages::declined("updated", printer));
        }
    }
    let names: Vec<&str> = updates.iter().map(|it| &*it.old.name).collect();
    let title = format!("prowess update {}", names.join(" "));
    let report = change.apply(change.plan()?, title.trim_end(), printer)?;
    if printer.json {
        printer.document(&document(true))?;
        return Ok(status);
    }
    for update in &updates {
        let version = version_text(update.tree);
        let places = change.places_of(&update.old.name).join(", ");
        let line = format!(
            "{}  {}  {}",
            printer.name(&update.old.name),
            safe::line(&version),
            safe::line(&places)
        );
        printer.line(line.replace("    ", "  "))?;
    }
    printer.flush()?;
    packages::note_report(&report, printer);
    match updates.len() {
        0 => printer.note("everything is up to date; only the versions in the lock file are newer"),
        _ => printer.note("`prowess undo` takes it back"),
    }
    Ok(status)
}

fn print_update(update: &Update<'_>, printer: &mut Printer) -> Result<()> {
    let (old, new) = (version_text(&update.old), version_text(update.tree));
    let version = match (old.is_empty(), new.is_empty()) {
        (true, true) => String::new(),
        _ => format!("{} → {}", safe::line(&old), safe::line(&new)),
    };
    let title =
        format!("{}  {}", printer.name(&safe::line(&update.old.name)), printer.dim(&version));
    printer.line(title.trim_end())?;
    print_version_change(&update.change, printer)?;
    update.reviewed.print_findings(printer)?;
    printer.line("")
}

fn update_json(update: &Update<'_>) -> Value {
    json!({
        "name": update.old.name,
        "source": update.old.source.to_string(),
        "from": { "commit": update.old.commit, "version": update.old.version, "digest": update.old.digest.to_string() },
        "to": { "commit": update.tree.commit, "version": update.tree.version, "digest": update.new.digest.to_string() },
        "changes": update.change.json(),
        "skill": update.reviewed.json(),
    })
}
