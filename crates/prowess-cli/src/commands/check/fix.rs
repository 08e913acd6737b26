//! Safe fixes, file by file: read, fixed, shown, written.

use std::{
    collections::{HashMap, HashSet},
    env,
    ffi::OsStr,
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow};
use prowess::{
    CheckResult, CheckedFile, Finding, FixedText, Manifest, Profile, Rule, Severity, SizeLimits,
    fix, has_fix, is_plain_name, parse, revise, spec::SKILL_FILE,
};
use prowess_runtime::sys::PermissionsExt as _;
use prowess_runtime::{
    files::ChangeHistory,
    sandbox::{Links, Root},
};
use serde_json::{Value as Json, json};

use crate::{
    commands::{count, finding_json},
    diff::{diff, diff_head, for_file, for_terminal},
    host,
    printer::Printer,
    safe, trust,
};

/// The context lines around a change.
const AROUND: usize = 2;

/// The options of a fix.
#[derive(Debug, clap::Args)]
pub(super) struct FixArgs {
    /// Fix what is safe to fix: the meaning stays the same, and no other byte changes
    #[arg(long)]
    pub(super) fix: bool,
    /// Show what would change, without writing anything
    #[arg(long, requires = "fix")]
    pub(super) dry_run: bool,
    /// Also rename: make the names of a skill and its folder match, or lowercase
    #[arg(long, requires = "fix", value_name = "WHICH")]
    rename: Option<Rename>,
}

/// A kind of renaming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rename {
    /// Change `name` in the file to match the folder
    Name,
    /// Rename the folder to match `name`
    Folder,
    /// Rename the file to `SKILL.md`
    File,
    /// Make `name` and the folder lowercase, with hyphens between words
    Lowercase,
}

impl Rename {
    /// Returns the codes of the rules that it fixes.
    fn rules(self) -> &'static [&'static str] {
        match self {
            Self::Name | Self::Folder => &["name-folder"],
            Self::File => &["file-name"],
            Self::Lowercase => &["name-case", "name-characters", "name-edge", "name-hyphens"],
        }
    }

    /// Returns whether it clears a finding, as its cause or as a side effect.
    fn clears(self, finding: &Finding) -> bool {
        let code = finding.rule.code;
        self.rules().contains(&code) || self == Self::Lowercase && code == "name-folder"
    }
}

/// The result for one file.
#[derive(Debug, Default)]
pub(super) struct FixedFile {
    path: PathBuf,
    findings: Vec<Finding>,
    left: Vec<&'static Rule>,
    diff: String,
    /// Its path after renaming.
    renamed: Option<PathBuf>,
    /// The id by which `prowess undo` restores all files; `None` if it needs none.
    undone_by: Option<String>,
    pub(super) error: Option<anyhow::Error>,
}

/// Fixes every file with findings; files without a result are left out. For people, a change of all
/// line ends is one line of the diff.
pub(super) fn fix_files(
    args: &FixArgs,
    checked: &CheckResult,
    profile: Profile,
    limits: &SizeLimits,
    for_people: bool,
) -> Vec<FixedFile> {
    let mut found: HashMap<&Path, Vec<&Finding>> = HashMap::new();
    for finding in &checked.findings {
        found.entry(&finding.path).or_default().push(finding);
    }
    let history = host::history().map(ChangeHistory::of_one_command);
    let history = history.as_ref();
    let here = env::current_dir().map(|it| trust::project_of(&it)).unwrap_or_default();
    let fixed = checked.files.iter().filter_map(|file| {
        let found = found.remove(&*file.path)?;
        let real = prowess::real_path(file.real.as_deref().unwrap_or(&file.path));
        let is_here = real.is_ok_and(|it| it.starts_with(&here));
        let group = history.and_then(ChangeHistory::group).filter(|_| !is_here);
        let undone_by = group.map(str::to_owned);
        let mut fixed = FixedFile { path: file.path.clone(), undone_by, ..FixedFile::default() };
        let fixing = FileFix { args, file, found, profile, limits, for_people, history };
        fixed.error = fixing.run(&checked.roots, &mut fixed).err();
        fixed.has_result().then_some(fixed)
    });
    fixed.collect()
}

/// Removes the fixed findings.
pub(super) fn remove_fixed(findings: &mut Vec<Finding>, files: &[FixedFile]) {
    let fixed: HashSet<_> = files.iter().flat_map(|it| &it.findings).map(key_of).collect();
    findings.retain(|it| !fixed.contains(&key_of(it)));
}

fn key_of(it: &Finding) -> (&Path, &str, Option<usize>, &str) {
    (&it.path, it.rule.code, it.line, &it.message)
}

impl FixedFile {
    fn has_result(&self) -> bool {
        !self.findings.is_empty() || !self.left.is_empty() || self.error.is_some()
    }

    /// Returns the new path of a path on the command line after this file was renamed.
    pub(super) fn renamed_path(&self, given: &Path) -> Option<PathBuf> {
        let folder = self.renamed.as_ref()?.parent()?;
        let is_it = given == self.path || Some(given) == self.path.parent();
        (is_it && given != Path::new(".")).then(|| folder.to_owned())
    }

    /// Returns the result as JSON.
    pub(super) fn json(&self) -> Json {
        json!({
            "path": self.path.to_string_lossy(),
            "findings": self.findings.iter().map(finding_json).collect::<Vec<_>>(),
            "left": self.left.iter().map(|it| it.code).collect::<Vec<_>>(),
            "renamed": self.renamed.as_ref().map(|it| it.to_string_lossy()),
            "diff": self.diff,
            "error": self.error.as_ref().map(|it| format!("{it:#}")),
        })
    }
}

/// Notes how many findings `--fix` would fix, including hidden ones, and how names are changed,
/// unless that was requested.
pub(super) fn note_fixes(
    args: &FixArgs,
    checked: &CheckResult,
    profile: Profile,
    limits: &SizeLimits,
    printer: &mut Printer,
) {
    let least = if printer.verbose { Severity::Info } else { Severity::Warning };
    if !args.fix && checked.findings.iter().any(|it| has_fix(it.rule, profile)) {
        let args = FixArgs { fix: true, dry_run: true, rename: None };
        let fixed = fix_files(&args, checked, profile, limits, true);
        let fixed: Vec<&Finding> = fixed.iter().flat_map(|it| &it.findings).collect();
        let hidden = fixed.iter().filter(|it| it.severity < least).count();
        let hidden = match hidden {
            0 => String::new(),
            1 => ", 1 of them hidden,".to_owned(),
            many => format!(", {many} of them hidden,"),
        };
        if !fixed.is_empty() {
            let findings = count(fixed.len(), "finding");
            printer.note(&format!("{findings}{hidden} can be fixed safely: `--fix --dry-run` shows the changes, `--fix` makes them"));
        }
    }
    let shown = checked.findings.iter().filter(|it| it.severity >= least && args.rename.is_none());
    let codes: Vec<&str> = shown.map(|it| it.rule.code).collect();
    if Rename::Folder.rules().iter().any(|it| codes.contains(it)) {
        printer.note("`--fix --rename folder` renames folders to match their skills, `--fix --rename name` renames skills to match their folders");
    }
    if Rename::Lowercase.rules().iter().any(|it| codes.contains(it)) {
        printer.note("`--fix --rename lowercase` makes names and their folders lowercase, with hyphens for all other characters");
    }
}

/// Prints the changes and their result.
pub(super) fn print_changes(
    args: &FixArgs,
    files: &[FixedFile],
    printer: &mut Printer,
) -> Result<()> {
    for file in files.iter().filter(|it| !it.diff.is_empty()) {
        let is_read = printer.is_terminal || printer.colored;
        let diff =
            if is_read { for_terminal(&file.diff, printer.colored) } else { for_file(&file.diff) };
        printer.line(diff)?;
    }
    printer.flush()?;
    for file in files {
        let path = file.path.display();
        for rule in &file.left {
            let code = rule.code;
            let why = "a fix would lose a comment or change the meaning";
            printer.note(&format!("`{path}`: `{code}` was not fixed: {why}"));
        }
        if let Some(renamed) = &file.renamed {
            let is = if args.dry_run { "would be" } else { "is now" };
            printer.note(&format!("`{path}` {is} `{}`", renamed.display()));
        }
    }
    let has_failed = files.iter().any(|it| it.error.is_some());
    let by = files.iter().find_map(|it| it.undone_by.as_ref().filter(|_| !it.findings.is_empty()));
    let by = by.map(|it| format!(" {it}")).unwrap_or_default();
    let findings: usize = files.iter().map(|it| it.findings.len()).sum();
    let of = files.iter().filter(|it| !it.findings.is_empty()).count();
    let (findings, files) = (count(findings, "finding"), count(of, "file"));
    printer.note(&match (of, args.dry_run) {
        (0, _) if has_failed => "nothing was fixed".to_owned(),
        (0, _) => "nothing to fix safely".to_owned(),
        (_, true) => format!("{findings} in {files} would be fixed; nothing was written"),
        (_, false) => format!("{findings} in {files} fixed; `prowess undo{by}` undoes this, `prowess undo FILE` only one file"),
    });
    Ok(())
}

/// A file being fixed.
struct FileFix<'f> {
    args: &'f FixArgs,
    file: &'f CheckedFile,
    found: Vec<&'f Finding>,
    profile: Profile,
    limits: &'f SizeLimits,
    for_people: bool,
    history: Option<&'f ChangeHistory>,
}

impl FileFix<'_> {
    fn run(&self, roots: &[PathBuf], fixed: &mut FixedFile) -> Result<()> {
        let cannot = || format!("cannot fix `{}`", self.file.path.display());
        let real = self.real_path();
        let (root, inside) = roots
            .iter()
            .find_map(|root| Some((root, real.strip_prefix(root).ok()?)))
            .with_context(cannot)?;
        let root = Root::open(root).with_context(cannot)?;
        let before = self.read(&root, inside).with_context(cannot)?;
        let FixedText { bytes: mut after, mut findings, left, .. } = fix(&before, self.profile);
        findings.iter_mut().for_each(|it| it.path.clone_from(&self.file.path));
        fixed.left = left;
        let named = match self.args.rename {
            Some(Rename::Name) if self.is_asked_for() => Some(self.with_folder_name(&after)),
            Some(Rename::Lowercase) if self.is_asked_for() => {
                Some(self.with_lowercase_name(&after))
            }
            _ => None,
        };
        let named = named.transpose();
        if let Ok(Some(named)) = &named {
            after.clone_from(named);
            findings.extend(self.cleared_findings());
        }
        if after != before {
            if !self.args.dry_run {
                let kept = self.record(&before, &after);
                let written = root.rewrite(inside, &before, &after);
                if let (Err(_), Some((history, time))) = (&written, kept) {
                    history.forget(time);
                }
                written.with_context(cannot)?;
            }
            fixed.diff = self.diff(&before, &after, &findings);
        }
        fixed.findings = findings;
        if let Some((from, to)) = self.path_to_rename(inside, &after) {
            let folder = self.file.path.parent().unwrap_or(Path::new(""));
            let new = match from == inside {
                true => folder.join(&to),
                false => folder.with_file_name(&to),
            };
            self.rename(&root, &from, &to, &new)?;
            fixed.renamed = Some(match from == inside {
                true => new,
                false => new.join(real.file_name().unwrap_or_default()),
            });
            if matches!(named, Ok(None)) {
                fixed.findings.extend(self.cleared_findings());
            }
        }
        named.map(drop)
    }

    /// Records the content of the file for `prowess undo`, if there is a history.
    fn record(&self, before: &[u8], after: &[u8]) -> Option<(&ChangeHistory, u64)> {
        let (history, path) = (self.history?, prowess::real_path(self.real_path()).ok()?);
        let mode = fs::metadata(&path).ok()?.permissions().mode();
        let time = history.keep(&path, Some((before, mode)), after).ok()?;
        Some((history, time))
    }

    /// Returns the path of the file with all links resolved.
    fn real_path(&self) -> &Path {
        self.file.real.as_deref().unwrap_or(&self.file.path)
    }

    fn read(&self, root: &Root, inside: &Path) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = root.file(inside, Links::Never)?;
        file.take(self.limits.max_document_size).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns whether a finding asks for the requested renaming.
    fn is_asked_for(&self) -> bool {
        let rules = self.args.rename.map(Rename::rules).unwrap_or_default();
        self.found.iter().any(|it| rules.contains(&it.rule.code))
    }

    /// Returns the findings that a renaming clears.
    fn cleared_findings(&self) -> impl Iterator<Item = Finding> {
        let rename = self.args.rename;
        self.found
            .iter()
            .filter(move |it: &&&Finding| rename.is_some_and(|rename| rename.clears(it)))
            .map(|it| (*it).clone())
    }

    /// Returns the text with the name of its folder.
    fn with_folder_name(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let folder = folder_name(self.real_path()).unwrap_or_default().to_string_lossy();
        self.with_name(bytes, &folder)
    }

    /// Returns the text with its name in lowercase letters and digits joined by hyphens, unless
    /// another folder has that name.
    fn with_lowercase_name(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let manifest = parse(bytes, None, Profile::Lenient).manifest;
        let name = lowercase(manifest.as_ref().map_or("", |it| &it.name));
        let folder = self.real_path().parent().unwrap_or(Path::new("")).with_file_name(&name);
        if folder_name(self.real_path()) != Some(OsStr::new(&name))
            && folder.symlink_metadata().is_ok()
        {
            let (path, folder) = (self.file.path.display(), folder.display());
            let cannot = format!("cannot rename the skill in `{path}` to `{name}`");
            return Err(anyhow!("`{folder}` is already there").context(cannot));
        }
        self.with_name(bytes, &name)
    }

    fn with_name(&self, bytes: &[u8], name: &str) -> Result<Vec<u8>> {
        let path = self.file.path.display();
        let cannot = || format!("cannot rename the skill in `{path}` to `{name}`");
        self.refuse_link().and_then(|()| check_name(name)).with_context(cannot)?;
        let manifest = parse(bytes, None, Profile::Lenient).manifest.with_context(cannot)?;
        revise(bytes, &Manifest { name: name.into(), ..manifest }, None).with_context(cannot)
    }

    /// Returns the path to rename, relative to the root, and its new name.
    fn path_to_rename(&self, inside: &Path, bytes: &[u8]) -> Option<(PathBuf, String)> {
        let rename = self.args.rename.filter(|_| self.is_asked_for())?;
        if rename == Rename::File {
            return Some((inside.to_owned(), SKILL_FILE.to_owned()));
        }
        let name = parse(bytes, None, Profile::Lenient).manifest?.name;
        let is_other = folder_name(self.real_path()) != Some(OsStr::new(&*name));
        (rename != Rename::Name && is_other).then_some((inside.parent()?.to_owned(), name.into()))
    }

    fn rename(&self, root: &Root, from: &Path, to: &str, new: &Path) -> Result<()> {
        let cannot = || format!("cannot rename `{}` to `{to}`", from.display());
        self.refuse_link()
            .and_then(|()| if to == SKILL_FILE { Ok(()) } else { check_name(to) })
            .with_context(cannot)?;
        if root.path().join(from).with_file_name(to).symlink_metadata().is_ok() {
            return Err(anyhow!("`{}` is already there", new.display())).with_context(cannot);
        }
        if !self.args.dry_run {
            let before = prowess::real_path(root.path().join(from)).ok();
            root.rename(from, to).with_context(cannot)?;
            if let (Some(history), Some(before)) = (self.history, before) {
                // The renaming is done even if it cannot be recorded.
                let _ = history.keep_rename(&before, &before.with_file_name(to));
            }
        }
        Ok(())
    }

    /// Fails for a link, whose target has other names on other paths.
    fn refuse_link(&self) -> Result<()> {
        let shown = folder_name(&self.file.path);
        let is_linked =
            self.file.linked || shown.is_some_and(|it| Some(it) != folder_name(self.real_path()));
        if is_linked { Err(anyhow!("it is a link")) } else { Ok(()) }
    }

    /// Returns the diff of the text.
    fn diff(&self, before: &[u8], after: &[u8], findings: &[Finding]) -> String {
        let codes: Vec<&str> = findings.iter().map(|it| it.rule.code).collect();
        let path = self.file.path.to_string_lossy();
        let path = safe::line(&path);
        let mut before = String::from_utf8_lossy(before);
        let after = String::from_utf8_lossy(after);
        let mut notes = String::new();
        if codes.contains(&"encoding-utf16") {
            before.clone_from(&after);
            notes.push_str("\\ UTF-16 becomes UTF-8\n");
        } else if self.for_people && codes.contains(&"line-endings") {
            before = before.replace('\r', "\n").into();
            notes.push_str("\\ lines end with LF\n");
        }
        match diff(&path, &before, &after, AROUND) {
            text if text.is_empty() => diff_head(&path) + &notes,
            text => text + &notes,
        }
    }
}

/// Returns the name of the folder of a file.
fn folder_name(path: &Path) -> Option<&OsStr> {
    path.parent().and_then(Path::file_name)
}

/// Returns a name in lowercase letters and digits, with hyphens for everything else.
fn lowercase(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// Fails for a name that is not valid for a skill or a folder.
fn check_name(name: &str) -> Result<()> {
    let why = "a name consists of lowercase letters and digits, joined by single hyphens";
    if is_plain_name(name) { Ok(()) } else { Err(anyhow!(why)) }
}
