use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use prowess::{is_plain_name, spec::SKILL_FILE};
use prowess_packages::{
    ArchiveLimits, ForeignFormat, ForeignHash, ForeignSkill, HashCheck, InstallTarget, LockedSkill,
    SkillSource, SourceKind, TargetForm, TreeFile, WantedSkill, copy_folder, read_foreign,
    read_origin,
};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::count;
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    context,
    packages::{self, Change, PackageSession},
    printer::Printer,
    safe,
    surroundings::real_path,
};

/// Take over skills that another package manager installed
///
/// Reads `skills-lock.json` and `.skill-lock.json` (npx skills), `apm.lock.yaml` and `apm.yml` (apm), `.clawhub/lock.json`
/// (clawhub), and what clawhub, openskills and `gh skill` leave in the folders of skills. Compares the files on disk with the
/// hashes that are recorded, and writes `prowess.toml` and `prowess.lock`. The skills stay where they are, and the other file is
/// not changed. It says which skills it could not pin to a commit or version.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file, or a folder with such files [default: this project]
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::AnyPath)]
    file: Option<PathBuf>,
    /// Take over the skills for all your projects
    #[arg(short, long)]
    global: bool,
    /// Show what would be taken over, without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Write without asking
    #[arg(short, long)]
    yes: bool,
}

/// A skill that can be taken over, with what was found on the disk.
struct ImportedSkill {
    entry: WantedSkill,
    locked: LockedSkill,
    /// The result of comparing the files with the recorded hash.
    check: HashCheck,
    unpinned: Option<&'static str>,
}

/// The result of reading: the skills, those that cannot be taken over, and the files.
#[derive(Default)]
struct Records {
    skills: Vec<ForeignSkill>,
    left_out: Vec<(String, String)>,
    read: Vec<String>,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let session = PackageSession::open(args.global, true, global, printer)?;
    let mut change = Change::begin(&session, printer)?;
    let mut records = read(args, global, &session)?;
    let mut taken: BTreeMap<String, ImportedSkill> = BTreeMap::new();
    for skill in std::mem::take(&mut records.skills) {
        let name = skill.name.clone();
        if change.manifest.get(&name).is_some() {
            records.left_out.push((name, "it is in `prowess.toml` already".to_owned()));
            continue;
        }
        if taken.contains_key(&name) {
            continue;
        }
        match take(&skill, &session) {
            Ok(one) => drop(taken.insert(name, one)),
            Err(why) => records.left_out.push((name, why)),
        }
    }
    let entries: Vec<WantedSkill> = taken.values().map(|it| it.entry.clone()).collect();
    change.set_entries(&entries)?;
    change.insert_all(taken.values().map(|it| it.locked.clone()).collect())?;
    let document = |is_done: bool| {
        json!({
            "dry_run": args.dry_run,
            "written": is_done,
            "read": records.read,
            "skills": taken.values().map(taken_json).collect::<Vec<_>>(),
            "left_out": records.left_out.iter().map(|(name, why)| {
                json!({ "name": name, "reason": why })
            }).collect::<Vec<_>>(),
        })
    };
    if !printer.json {
        print_taken(&taken, printer)?;
    }
    for (name, why) in &records.left_out {
        printer.warning(&format!("left out `{name}`: {why}"));
    }
    if taken.is_empty() {
        if printer.json {
            printer.document(&document(false))?;
        }
        let fault = CliError::invalid_input("there is nothing to take over");
        return Err(fault.hint("the files above list no skill that is installed here").into());
    }
    drop(change.plan()?);
    let unpinned: Vec<&str> =
        taken.values().filter(|it| it.unpinned.is_some()).map(|it| &*it.entry.name).collect();
    if !unpinned.is_empty() {
        let (skills, is) =
            (count(unpinned.len(), "skill"), if unpinned.len() == 1 { "is" } else { "are" });
        printer.note(&format!(
            "{skills} {is} not pinned to a commit or version: {}; the lock file has the digests of the files as they are now",
            context::quote_entries(&unpinned)
        ));
    }
    if args.dry_run {
        if printer.json {
            printer.document(&document(false))?;
        }
        printer.note("nothing was written");
        return Ok(ExitStatus::Success);
    }
    let question = format!("Take over {}?", count(taken.len(), "skill"));
    if !packages::is_agreed(args.yes, &question, "written")? {
        return Ok(packages::declined("written", printer));
    }
    change.apply(change.plan()?, "prowess import", printer)?;
    if printer.json {
        printer.document(&document(true))?;
        return Ok(ExitStatus::Success);
    }
    let place = &session.place;
    printer.note(&format!(
        "{} taken over into `{}` and `{}`; the other files are unchanged",
        count(taken.len(), "skill"),
        place.short(&place.manifest),
        place.short(&place.lock)
    ));
    Ok(ExitStatus::Success)
}

/// Reads the files of other package managers.
fn read(args: &Args, global: &Global, session: &PackageSession) -> Result<Records> {
    let base = global.cwd.as_deref().unwrap_or(Path::new("."));
    let mut files: Vec<(ForeignFormat, PathBuf)> = Vec::new();
    let mut folders: Vec<PathBuf> = Vec::new();
    match args.file.as_ref().map(|it| packages::resolve(it, base)) {
        Some(path) if path.is_dir() => {
            files.extend(files_in(&path));
            folders.push(path);
        }
        Some(path) => {
            let Some(format) = ForeignFormat::of(&path) else {
                let message = format!(
                    "`{}` is not the lock file of a package manager that is known",
                    path.display()
                );
                let names: Vec<&str> = ForeignFormat::ALL.iter().map(|it| it.paths()[0]).collect();
                return Err(CliError::new(message)
                    .hint(format!("known are {}", context::quote_entries(&names)))
                    .into());
            };
            if !path.exists() {
                return Err(CliError::new(format!("there is no file `{}`", path.display()))
                    .hint("check the path")
                    .into());
            }
            files.push((format, path));
        }
        None => {
            let root = match args.global {
                true => context::home().unwrap_or_default(),
                false => session.place.root.clone(),
            };
            files.extend(files_in(&root));
            if args.global
                && let Some(state) = env::var_os("XDG_STATE_HOME").map(PathBuf::from)
            {
                let path = state.join("skills/.skill-lock.json");
                files.extend(path.exists().then_some((ForeignFormat::UserLock, path)));
            }
            folders.push(root);
        }
    }
    let mut records = Records::default();
    for (format, path) in &files {
        let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let shown = session.place.short(path);
        let lock = read_foreign(*format, &bytes).map_err(|error| {
            let fault = CliError::invalid_input(format!("`{shown}`: {}", packages::chain(&error)));
            fault.hint(error.hint().unwrap_or_else(|| "give another file".to_owned()))
        })?;
        records.read.push(shown);
        records.skills.extend(lock.skills);
        records.left_out.extend(lock.left_out.into_iter().map(|it| (it.name, it.reason)));
    }
    for root in &folders {
        read_origins(root, session, &mut records);
    }
    if records.read.is_empty() && records.skills.is_empty() {
        let names = ForeignFormat::ALL.iter().map(|it| it.paths()[0]);
        let names: Vec<&str> = names.filter(|it| it.starts_with('~') == args.global).collect();
        let message = "there is no file of another package manager here";
        return Err(CliError::invalid_input(message)
            .hint(format!("name one; known are {}", context::quote_entries(&names)))
            .into());
    }
    Ok(records)
}

fn files_in(root: &Path) -> Vec<(ForeignFormat, PathBuf)> {
    let mut files = Vec::new();
    for format in ForeignFormat::ALL {
        for path in format.paths() {
            let path = root.join(path.strip_prefix("~/").unwrap_or(path));
            if path.is_file() {
                // `apm.yml` says less than the lock file beside it.
                let is_said = format == ForeignFormat::ApmManifest
                    && files.iter().any(|it: &(ForeignFormat, _)| it.0 == ForeignFormat::ApmLock);
                if !is_said {
                    files.push((format, path));
                }
                break;
            }
        }
    }
    files
}

/// Reads what other package managers left in the folders of skills.
fn read_origins(root: &Path, session: &PackageSession, records: &mut Records) {
    for (shown, directory) in session.install.directories() {
        if !directory.starts_with(root) {
            continue;
        }
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let mut folders: Vec<PathBuf> = entries.flatten().map(|it| it.path()).collect();
        folders.sort();
        for folder in folders {
            let Some(name) = folder.file_name().and_then(|it| it.to_str()) else { continue };
            match read_origin(&folder) {
                Ok(Some(Ok(mut skill))) => {
                    skill.folders.push(format!("{shown}/{name}"));
                    if records.skills.iter().all(|it| it.name != skill.name) {
                        records.skills.push(skill);
                    }
                }
                Ok(Some(Err(left_out))) => records.left_out.push((left_out.name, left_out.reason)),
                Ok(None) => {}
                Err(error) => records.left_out.push((name.to_owned(), packages::chain(&error))),
            }
        }
    }
}

/// Finds a skill on the disk, and returns what the manifest and the lock say about it.
fn take(skill: &ForeignSkill, session: &PackageSession) -> Result<ImportedSkill, String> {
    if !is_plain_name(&skill.name) {
        return Err("its name cannot be that of an installed skill".to_owned());
    }
    let mut targets: Vec<InstallTarget> = Vec::new();
    let mut first: Option<PathBuf> = None;
    let directories = session.install.directories();
    // The folders that the record names first, then those of clients.
    let named = skill.folders.iter().filter_map(|it| {
        let (directory, name) = it.rsplit_once('/')?;
        (name == skill.name).then_some(directory)
    });
    let mut shown: Vec<&str> = named.filter(|it| directories.contains_key(*it)).collect();
    shown.extend(directories.keys().map(String::as_str));
    let mut links = Vec::new();
    for directory in shown {
        let path = directories[directory].join(&skill.name);
        let target = format!("{directory}/{}", skill.name);
        if targets.iter().any(|it| it.path == target) || !path.join(SKILL_FILE).is_file() {
            continue;
        }
        match path.symlink_metadata() {
            Ok(it) if it.is_symlink() => links.push((target, real_path(&path))),
            Ok(it) if it.is_dir() => {
                first.get_or_insert_with(|| real_path(&path));
                targets.push(InstallTarget::new(target, TargetForm::Folder));
            }
            _ => {}
        }
    }
    let Some(first) = first else { return Err("it is not installed here".to_owned()) };
    for (target, leads) in links {
        if leads == first && targets.iter().all(|it| it.path != target) {
            targets.push(InstallTarget::new(target, TargetForm::Link));
        }
    }
    let files = files_of(&first, session)?;
    // Folders with other files are not copies of the first.
    targets.retain(|it| {
        let own = directories_path(&directories, &it.path, &skill.name);
        it.form == TargetForm::Link
            || own.is_some_and(|path| {
                real_path(&path) == first || files_of(&path, session).as_ref() == Ok(&files)
            })
    });
    let check = match &skill.hash {
        ForeignHash::None(why) => HashCheck::NotChecked((*why).to_owned()),
        hash => hash.verify(&first),
    };
    let mut source = SkillSource::new(skill.source.kind.clone());
    if let SourceKind::Git(git) = &mut source.kind
        && git.reference.is_none()
    {
        git.reference.clone_from(&skill.reference);
    }
    let own_name = name_of(&first);
    let mut entry = WantedSkill::new(&*skill.name, source.clone());
    entry.skill = own_name.filter(|it| *it != skill.name);
    let url = match &source.kind {
        SourceKind::Git(git) => git.url.clone(),
        _ => source.to_string(),
    };
    let mut locked = LockedSkill::new(&*skill.name, source, url, files);
    locked.skill.clone_from(&entry.skill);
    locked.reference.clone_from(&skill.reference);
    locked.commit.clone_from(&skill.commit);
    locked.version.clone_from(&skill.version);
    locked.path = skill.path.clone().unwrap_or_default();
    locked.targets = targets;
    let unpinned = match check {
        HashCheck::Differs => Some("its files are not those that were recorded"),
        _ => skill.unpinned,
    };
    if unpinned.is_some() {
        // Another version may be in the source by now.
        locked.commit = None;
        locked.version = None;
    }
    Ok(ImportedSkill { entry, locked, check, unpinned })
}

fn directories_path(
    directories: &BTreeMap<String, PathBuf>,
    target: &str,
    name: &str,
) -> Option<PathBuf> {
    let directory = target.strip_suffix(name)?.strip_suffix('/')?;
    Some(directories.get(directory)?.join(name))
}

/// Returns the name in the frontmatter of a skill.
fn name_of(folder: &Path) -> Option<String> {
    let text = fs::read(folder.join(SKILL_FILE)).ok()?;
    let json = prowess::frontmatter_json(&text).ok()?;
    json.get("name")?.as_str().map(str::to_owned)
}

/// Reads the files of a folder into the cache.
fn files_of(folder: &Path, session: &PackageSession) -> Result<Vec<TreeFile>, String> {
    let draft = session.cache.draft().map_err(|it| packages::chain(&it))?;
    let unpacked = copy_folder(folder, &ArchiveLimits::default(), draft.path())
        .map_err(|it| packages::chain(&it))?;
    if let Some(left_out) = unpacked.left_out.first() {
        return Err(format!("`{}` is {}", left_out.path, left_out.reason));
    }
    session.cache.insert(draft, &unpacked.files).map_err(|it| packages::chain(&it))?;
    Ok(unpacked.files)
}

fn print_taken(taken: &BTreeMap<String, ImportedSkill>, printer: &mut Printer) -> Result<()> {
    let room = taken.keys().map(|it| it.width()).max().unwrap_or(0);
    for (name, one) in taken {
        let pad = " ".repeat(room.saturating_sub(name.width()));
        let source = safe::line(&one.entry.source.to_string()).into_owned();
        let check = match &one.check {
            HashCheck::Matches => "files as recorded".to_owned(),
            HashCheck::Differs => "files changed since they were recorded".to_owned(),
            HashCheck::NotChecked(why) => format!("files not compared: {why}"),
            _ => String::new(),
        };
        let pinned = match one.unpinned {
            Some(why) => format!("not pinned: {why}"),
            None => "pinned".to_owned(),
        };
        printer.line(format_args!("{}{pad}  {source}", printer.name(name)))?;
        let indent = " ".repeat(room + 2);
        let details = safe::line(&format!("{check}; {pinned}")).into_owned();
        printer.line(format_args!("{indent}{}", printer.dim(&details)))?;
    }
    printer.flush()
}

fn taken_json(one: &ImportedSkill) -> Value {
    json!({
        "name": one.entry.name,
        "source": one.entry.source.to_string(),
        "commit": one.locked.commit,
        "version": one.locked.version,
        "digest": one.locked.digest.to_string(),
        "targets": one.locked.targets.iter().map(|it| it.path.clone()).collect::<Vec<_>>(),
        "hash": match &one.check {
            HashCheck::Matches => "matches",
            HashCheck::Differs => "differs",
            _ => "not-checked",
        },
        "unpinned": one.unpinned,
    })
}
