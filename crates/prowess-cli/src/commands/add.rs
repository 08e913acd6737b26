use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use prowess::{Severity, is_plain_name};
use prowess_packages::{
    DiscoveredPackage, FetchedTree, GitSource, PackagedSkill, PlannedStep, SkillSource, SourceKind,
    WantedSkill,
};
use serde_json::{Value, json};

use super::{count, finding_json, plural};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    completion, context,
    packages::{
        self, Change, PackageSession, ReviewedSkill, SkillChoice, SkillVersion, choose,
        installed_name, print_left_out, print_skills, version_text,
    },
    printer::Printer,
    safe,
};

/// Install skills from a repository, registry, archive or folder
///
/// Fetches the source, shows what is in it and what `check` and `audit` find, and asks before it writes anything. The
/// skills go where your clients look: into one directory if all of them read it, and links to it from others, so that there is
/// one copy. `prowess.toml` says what is installed from where, and `prowess.lock` exactly which version, so that
/// others get the same with `prowess sync`. Nothing that a skill brings is run.
///
/// A source is `owner/repo`, `owner/repo/path` or `owner/repo@skill`, each also with `#branch`; the URL of a repository or of
/// a folder in it; a folder, an archive or a `SKILL.md`, by path (`./skills`) or URL; `npm:package`, `clawhub:skill`, or
/// the address of a web site with skills.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the skills are, such as `anthropics/skills`
    #[arg(required = true, value_name = "SOURCE", value_hint = clap::ValueHint::AnyPath)]
    sources: Vec<String>,
    /// Install the skill with this name; repeatable
    #[arg(short, long, value_name = "NAME")]
    skill: Vec<String>,
    /// Install every skill of the source
    #[arg(long, conflicts_with = "skill")]
    all: bool,
    /// Install for this client, such as `claude-code`; repeatable [default: those that are found]
    #[arg(long, value_name = "NAME", add = completion::clients())]
    client: Vec<String>,
    /// Install for all your projects, instead of the one you are in
    #[arg(short, long)]
    global: bool,
    /// Stay at this branch, tag, commit or version
    #[arg(long, value_name = "REF")]
    pin: Option<String>,
    /// Install the skill under this name instead of its own
    #[arg(long = "as", value_name = "NAME", conflicts_with = "all")]
    other_name: Option<String>,
    /// Give each client its own copy instead of a link
    #[arg(long)]
    copy: bool,
    /// Show what is in the source, and install nothing
    #[arg(short, long, conflicts_with_all = ["yes", "dry_run"])]
    list: bool,
    /// Show what would be installed, without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Install although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Use only what was fetched before
    #[arg(long)]
    offline: bool,
    /// Install without asking
    #[arg(short, long)]
    yes: bool,
}

/// A source that was fetched, with its skills.
struct Package {
    tree: FetchedTree,
    found: DiscoveredPackage,
    /// The names that were asked for.
    names: Vec<String>,
    /// The names that several of its skills have.
    shared_names: BTreeSet<String>,
}

/// A skill to install, with its entry in the manifest.
struct SkillToAdd<'p> {
    package: &'p Package,
    skill: &'p PackagedSkill,
    entry: WantedSkill,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    packages::check_clients(&args.client)?;
    let session = PackageSession::open(args.global, args.offline, global, printer)?;
    // A manifest or lock file that cannot be used is reported before anything is fetched.
    let mut change = Change::begin(&session, printer)?;
    let mut sources = Vec::new();
    for text in &args.sources {
        let source = packages::parse_source(text, global)?;
        sources.push((pinned(source, args.pin.as_deref())?, None));
    }
    let fetched = session.fetch(&sources, printer)?;
    let mut all = Vec::new();
    for ((source, _), tree) in sources.iter().zip(fetched) {
        let tree = tree.map_err(|it| packages::fetch_error(&it))?;
        let found = packages::discover_in(&tree);
        let names = source.skills.iter().chain(&args.skill).cloned().collect();
        let mut seen = BTreeSet::new();
        let all_names = found.skills.iter().map(|it| &*it.name);
        let shared_names = all_names.filter(|it| !seen.insert(*it)).map(str::to_owned).collect();
        all.push(Package { tree, found, names, shared_names });
    }
    if args.list {
        return list(&all, &session, printer);
    }
    let mut wanted = Vec::new();
    let mut doubles = Vec::new();
    for package in &all {
        note_package(package, printer);
        let chosen = choose(&package.found, &package.tree, &package.names, args.all, printer)?;
        let Some(SkillChoice { skills, doubles: more }) = chosen else {
            return Ok(packages::declined("installed", printer));
        };
        for skill in skills {
            wanted.push(SkillToAdd {
                package,
                skill,
                entry: entry(args, package, skill, &session)?,
            });
        }
        doubles.extend(more);
    }
    check_names(args, &wanted, &change, &session)?;
    for package in &all {
        packages::check_age(&package.tree, &session)?;
    }
    let reviewed = printer.with_progress("checking skills", || {
        let skills: Vec<_> = wanted.iter().map(|it| (it.skill, &it.package.tree)).collect();
        ReviewedSkill::all(&skills, session.rules)
    });
    let mut signers = Vec::new();
    for package in &all {
        signers.push(packages::check_signature(&package.tree, &session)?);
    }
    let versions: Vec<SkillVersion<'_>> = wanted
        .iter()
        .map(|one| {
            let at = all.iter().position(|it| std::ptr::eq(it, one.package)).unwrap_or_default();
            let (entry, skill, tree) = (&one.entry, one.skill, &one.package.tree);
            SkillVersion { entry, skill, tree, signer: signers[at].as_ref() }
        })
        .collect();
    change.set_all(&versions)?;
    if !printer.json {
        print_review(&all, &wanted, &reviewed, printer)?;
    }
    for (double, first) in &doubles {
        let path = context::shell_quote(&double.path);
        printer.warning(&format!(
            "left out `{}` in `{}`, because `{}` has the same name; `--skill {path} --as NAME` installs it",
            double.name, double.path, first.path,
        ));
    }
    note_moved_tags(&wanted, &change, printer);
    let document = |steps: &[PlannedStep]| document(args, &all, &reviewed, &session, steps);
    let dangers: usize = reviewed.iter().map(|it| it.dangers).sum();
    if dangers > 0 && !args.allow_findings {
        if printer.json {
            printer.document(&document(&[]))?;
        }
        return Err(packages::dangerous(dangers, "installed").into());
    }
    let planned = change.plan()?;
    let steps = planned.steps().to_vec();
    let names: Vec<&str> = wanted.iter().map(|it| &*it.entry.name).collect();
    if !printer.json {
        for line in change.describe_targets(&names)? {
            printer.line(printer.dim(&safe::line(&line)))?;
        }
        printer.flush()?;
    }
    let is_nothing = change.is_nothing(&planned);
    if args.dry_run || is_nothing {
        if printer.json {
            printer.document(&document(&steps))?;
        }
        printer.note(match is_nothing {
            true => "this is installed already; nothing to change",
            false => "nothing was written",
        });
        return Ok(ExitStatus::Success);
    }
    // Others need not wait for the answer.
    drop(planned);
    let question = match &names[..] {
        [one] => format!("Install `{}`?", safe::line(one)),
        many => format!("Install these {}?", count(many.len(), "skill")),
    };
    if !packages::is_agreed(args.yes, &question, "installed")? {
        return Ok(packages::declined("installed", printer));
    }
    let title = format!("prowess add {}", args.sources.join(" "));
    let report = change.apply(change.plan()?, &title, printer)?;
    if printer.json {
        printer.document(&document(&report.steps))?;
        return Ok(ExitStatus::Success);
    }
    for name in &names {
        let places = change.places_of(name).join(", ");
        printer.line(format_args!("{}  {}", printer.name(name), safe::line(&places)))?;
    }
    printer.flush()?;
    packages::note_report(&report, printer);
    print_next(&names, &session, printer);
    Ok(ExitStatus::Success)
}

/// Warns about tags that stand for another commit than when they were locked.
fn note_moved_tags(wanted: &[SkillToAdd<'_>], change: &Change<'_>, printer: &mut Printer) {
    for one in wanted {
        let tree = &one.package.tree;
        if let Some(locked) = change.lock.get(&one.entry.name)
            && let Some(tag) =
                packages::moved_tag(locked, tree.reference.as_deref(), tree.commit.as_deref())
        {
            printer.safety_warning(&format!(
                "the tag `{tag}` has moved since `{}` was installed: ask its author why",
                one.entry.name
            ));
        }
    }
}

/// Says what can be done next.
fn print_next(names: &[&str], session: &PackageSession, printer: &mut Printer) {
    let them = if names.len() == 1 { "it" } else { "them" };
    let place = &session.place;
    let (manifest, lock) = (place.short(&place.manifest), place.short(&place.lock));
    printer.note(&match place.is_global {
        true => format!("recorded in `{manifest}`; `prowess undo` takes {them} back"),
        false => format!(
            "recorded in `{manifest}` and `{lock}`: commit both; `prowess undo` takes {them} back"
        ),
    });
    if let [name] = names {
        let name = context::shell_quote(name);
        printer.note(&format!("next: `prowess show {name}` shows the skill"));
    }
}

/// Returns a source that stays at a branch, tag, commit or version.
fn pinned(mut source: SkillSource, pin: Option<&str>) -> Result<SkillSource, CliError> {
    let Some(pin) = pin else { return Ok(source) };
    let shown = source.to_string();
    let slot = match &mut source.kind {
        SourceKind::Git(GitSource { reference, .. }) => reference,
        SourceKind::ClawHub { version, .. } => version,
        SourceKind::Npm { range, .. } => range,
        SourceKind::Folder(_)
        | SourceKind::File(_)
        | SourceKind::Download(_)
        | SourceKind::Site(_)
        | _ => {
            let fault = CliError::new(format!("`{shown}` has no versions to pin"));
            return Err(fault.hint("leave `--pin` out; the lock file records its digest"));
        }
    };
    match slot {
        Some(typed) if typed != pin => {
            let message = format!("`{shown}` names `{typed}`, and `--pin` names `{pin}`");
            Err(CliError::new(message).hint("write only one of them"))
        }
        _ => {
            *slot = Some(pin.to_owned());
            // The text in the manifest must be read as the same source.
            match source.to_string().parse::<SkillSource>() {
                Ok(read) if read == source => Ok(source),
                _ => Err(CliError::new(format!("`{pin}` is not the name of a version"))
                    .hint("give a branch, tag, commit or version")),
            }
        }
    }
}

/// Returns the entry of a skill in the manifest.
fn entry(
    args: &Args,
    package: &Package,
    skill: &PackagedSkill,
    session: &PackageSession,
) -> Result<WantedSkill> {
    let key = match &args.other_name {
        Some(name) => name.clone(),
        None => installed_name(&skill.name),
    };
    if !is_plain_name(&key) {
        let fault =
            CliError::invalid_input(format!("`{key}` cannot be the name of an installed skill"));
        return Err(fault
            .hint("give it one with `--as`, of lowercase letters, digits and hyphens")
            .into());
    }
    let mut source = SkillSource::new(package.tree.source.kind.clone());
    // Where the name alone is not enough, the folder says which one is meant.
    if let SourceKind::Git(git) = &mut source.kind
        && package.shared_names.contains(&skill.name)
        && !skill.path.is_empty()
    {
        git.path = Some(skill.path.clone());
    }
    packages::localize(&mut source, session);
    let mut wanted = WantedSkill::new(&*key, source);
    wanted.skill = (skill.name != key).then(|| skill.name.clone());
    wanted.copy = args.copy;
    wanted.clients = (!args.client.is_empty()).then(|| args.client.clone());
    Ok(wanted)
}

/// Fails if two skills would have one name, with what to do about it.
fn check_names(
    args: &Args,
    wanted: &[SkillToAdd<'_>],
    change: &Change<'_>,
    session: &PackageSession,
) -> Result<(), CliError> {
    if args.other_name.is_some() && wanted.len() != 1 {
        let fault = CliError::new("`--as` names one skill, and several were chosen");
        return Err(fault.hint("choose one with `--skill`"));
    }
    let mut taken: BTreeMap<&str, &SkillToAdd<'_>> = BTreeMap::new();
    for one in wanted {
        let name = &*one.entry.name;
        let source = one.entry.source.to_string();
        if let Some(other) = taken.insert(name, one) {
            let other = other.entry.source.to_string();
            return Err(same_name(name, &other, &one.entry, session, false));
        }
        let known = change.manifest.get(name);
        if let Some(known) = known.filter(|it| !is_same_origin(&it.source, &one.entry.source)) {
            let other = known.source.to_string();
            debug_assert_ne!(other, source);
            return Err(same_name(name, &other, &one.entry, session, true));
        }
    }
    Ok(())
}

fn same_name(
    name: &str,
    other: &str,
    entry: &WantedSkill,
    session: &PackageSession,
    is_installed: bool,
) -> CliError {
    let source = entry.source.to_string();
    let message = match is_installed {
        true => format!(
            "`{name}` is installed from `{other}` already, and `{source}` is another source"
        ),
        false => format!("`{other}` and `{source}` both have a skill `{name}`"),
    };
    let line =
        format!("{name}-2 = {{ source = \"{source}\", skill = \"{}\" }}", entry.skill_name());
    let typed = context::shell_quote(&source);
    let own = context::shell_quote(entry.skill_name());
    let fault = CliError::invalid_input(message).hint(format!(
        "to have both, `prowess add {typed} --skill {own} --as {name}-2`, which is `{line}` in `prowess.toml`"
    ));
    match is_installed {
        true => fault.hint(format!(
            "to have only the new one, `prowess remove {name}{}` first",
            session.place.flag()
        )),
        false => fault,
    }
}

/// Returns whether two sources are the same place, perhaps in another version.
fn is_same_origin(one: &SkillSource, other: &SkillSource) -> bool {
    match (&one.kind, &other.kind) {
        (SourceKind::Git(one), SourceKind::Git(other)) => one.url == other.url,
        (
            SourceKind::ClawHub { registry, owner, slug, .. },
            SourceKind::ClawHub {
                registry: other_registry,
                owner: other_owner,
                slug: other_slug,
                ..
            },
        ) => registry == other_registry && owner == other_owner && slug == other_slug,
        (SourceKind::Npm { name, .. }, SourceKind::Npm { name: other, .. }) => name == other,
        (one, other) => one == other,
    }
}

fn note_package(package: &Package, printer: &mut Printer) {
    let tree = &package.tree;
    if let Some(warning) = &tree.warning {
        printer.safety_warning(warning);
    }
    // Who asks for a skill by name is told about others only on demand.
    if package.names.is_empty() || printer.verbose {
        print_left_out(&package.found, tree, printer);
    }
    for (name, source) in &package.found.elsewhere {
        if printer.verbose {
            printer.note(&format!("its plugin `{name}` is elsewhere: `{source}`"));
        }
    }
    if !printer.verbose && !package.found.elsewhere.is_empty() {
        let plugins = plural(package.found.elsewhere.len(), "plugin", "plugins");
        printer.note(&format!("{plugins} of its marketplace are elsewhere; `-v` names them"));
    }
}

fn print_title(tree: &FetchedTree, printer: &mut Printer) -> Result<()> {
    let here = Path::new(".");
    let here = crate::surroundings::absolute(here)?;
    let source = packages::source_text(&tree.source, &here, context::home().as_deref());
    let version = version_text(tree);
    let title =
        format!("{}  {}", printer.name(&safe::line(&source)), printer.dim(&safe::line(&version)));
    printer.line(title.trim_end())
}

fn print_review(
    all: &[Package],
    wanted: &[SkillToAdd<'_>],
    reviewed: &[ReviewedSkill],
    printer: &mut Printer,
) -> Result<()> {
    let mut reviewed = reviewed.iter();
    for package in all {
        print_title(&package.tree, printer)?;
        let own = wanted.iter().filter(|it| std::ptr::eq(it.package, package)).count();
        let own: Vec<&ReviewedSkill> = reviewed.by_ref().take(own).collect();
        print_skills(&own, printer)?;
    }
    printer.flush()
}

fn list(all: &[Package], session: &PackageSession, printer: &mut Printer) -> Result<ExitStatus> {
    let mut documents = Vec::new();
    for package in all {
        let skills: Vec<&PackagedSkill> = match &package.names[..] {
            [] => package.found.skills.iter().collect(),
            names => {
                let chosen = choose(&package.found, &package.tree, names, false, printer)?;
                chosen.map(|it| it.skills).unwrap_or_default()
            }
        };
        if skills.is_empty() {
            // The same error as when they were to be installed.
            choose(&package.found, &package.tree, &[], true, printer)?;
        }
        let reviewed: Vec<ReviewedSkill> = printer.with_progress("checking skills", || {
            let skills: Vec<_> = skills.iter().map(|it| (*it, &package.tree)).collect();
            ReviewedSkill::all(&skills, session.rules)
        });
        if printer.json {
            documents.push(package_json(package, reviewed.iter()));
            continue;
        }
        print_title(&package.tree, printer)?;
        print_skills(&reviewed.iter().collect::<Vec<_>>(), printer)?;
        printer.flush()?;
        note_package(package, printer);
    }
    if printer.json {
        printer.document(&json!({ "packages": documents }))?;
    }
    Ok(ExitStatus::Success)
}

fn package_json<'r>(package: &Package, skills: impl Iterator<Item = &'r ReviewedSkill>) -> Value {
    let tree = &package.tree;
    let mut findings = package.found.findings.clone();
    for finding in &mut findings {
        if let Ok(path) = finding.path.strip_prefix(&tree.folder) {
            finding.path = path.to_owned();
        }
    }
    let least = |it: &&prowess::Finding| it.severity >= Severity::Info;
    json!({
        "source": tree.source.to_string(),
        "url": tree.url,
        "commit": tree.commit,
        "reference": tree.reference,
        "version": tree.version,
        "published": tree.published,
        "warning": tree.warning,
        "notes": tree.notes,
        "skills": skills.map(ReviewedSkill::json).collect::<Vec<_>>(),
        "findings": findings.iter().filter(least).map(finding_json).collect::<Vec<_>>(),
        "elsewhere": package.found.elsewhere.iter().map(|(plugin, source)| {
            json!({ "plugin": plugin, "source": source.to_string() })
        }).collect::<Vec<_>>(),
    })
}

/// Returns the document of `--json`.
fn document(
    args: &Args,
    all: &[Package],
    reviewed: &[ReviewedSkill],
    session: &PackageSession,
    steps: &[PlannedStep],
) -> Value {
    let packages = all.iter().map(|package| {
        let skills = package.found.skills.iter();
        let skills: BTreeSet<_> = skills.map(|it| (&*it.path, it.digest)).collect();
        let is_own = |it: &&ReviewedSkill| skills.contains(&(&*it.skill.path, it.skill.digest));
        package_json(package, reviewed.iter().filter(is_own))
    });
    json!({
        "dry_run": args.dry_run,
        "packages": packages.collect::<Vec<_>>(),
        "changes": packages::steps_json(steps),
        "manifest": session.place.manifest.to_string_lossy(),
        "lock": session.place.lock.to_string_lossy(),
    })
}
