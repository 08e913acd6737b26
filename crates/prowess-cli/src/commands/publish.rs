use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use prowess::{Severity, spec::SKILL_FILE};
use prowess_packages::{
    MinisignKey, PackOptions, PackedSkill, SkillUpload, UploadError, pack, publish_to_site,
};
use serde_json::{Value, json};

use super::{count, finding_json};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    packages::{self, PackageSession, ReviewedSkill, print_skills, size_text},
    printer::Printer,
    safe,
};

/// The variable with the token of a registry.
const TOKEN: &str = "PROWESS_REGISTRY_TOKEN";
/// The variable with the password of a signing key.
const PASSWORD: &str = "PROWESS_SIGNING_PASSWORD";

/// Publish a skill to a registry, or to the folder of a web site
///
/// Checks and audits the skill, packs its files reproducibly, shows what would be uploaded, and asks before it uploads.
/// Errors refuse. `--to` is the URL of a ClawHub registry, or the folder of a web site, in which the archive and its entry in
/// `.well-known/agent-skills/index.json` are written. The token comes from `PROWESS_REGISTRY_TOKEN`, and goes only to the
/// registry. With `--sign`, a signature of minisign over the digest of all files is added.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the skill
    #[arg(value_name = "PATH", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    path: PathBuf,
    /// The registry, such as `https://hub.example.com`, or the folder of a web site
    #[arg(long, value_name = "REGISTRY", value_hint = clap::ValueHint::DirPath)]
    to: String,
    /// The version, such as `1.2.0` [default: that in the skill]
    #[arg(long = "version", value_name = "VERSION")]
    release: Option<String>,
    /// The owner in the registry [default: you]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// What is new in this version
    #[arg(long, value_name = "TEXT", default_value = "")]
    changelog: String,
    /// Sign with this secret key of minisign; its password is read from `PROWESS_SIGNING_PASSWORD`
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    sign: Option<PathBuf>,
    /// Show what would be uploaded, without uploading it
    #[arg(long)]
    dry_run: bool,
    /// Publish although `audit` reports errors
    #[arg(long)]
    allow_findings: bool,
    /// Publish without asking
    #[arg(short, long)]
    yes: bool,
}

/// Where a skill is published.
enum Target {
    Registry(url::Url),
    Site(PathBuf),
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let session = PackageSession::open(false, false, global, printer)?;
    let base = global.cwd.as_deref().unwrap_or(Path::new("."));
    let folder = packages::resolve(&args.path, base);
    let target = target(args, base)?;
    let failed = |error: prowess_packages::PackError| {
        CliError::invalid_input(packages::chain(&error)).hint(error.hint())
    };
    // Reads everything before anything is decided.
    pack(&folder, &PackOptions::default()).map_err(failed)?;
    let stage = tempfile::Builder::new().prefix("prowess-publish-").tempdir()?;
    let name = name_of(&folder)?;
    let staged = stage.path().join(&name);
    let packed = stage_files(&folder, &staged, args)?;
    let reviewed = ReviewedSkill::of_folder(&staged, &packed.files, session.rules);
    let Some(reviewed) = reviewed else {
        let fault =
            CliError::invalid_input(format!("`{}` cannot be loaded as a skill", folder.display()));
        return Err(fault.hint("`prowess check PATH` says what is wrong").into());
    };
    let errors = reviewed.findings.iter().filter(|it| it.severity == Severity::Error).count();
    let version = args.release.clone().or_else(|| version_of(&folder));
    let document = |is_done: bool, extra: Value| {
        json!({
            "name": name, "version": version, "to": args.to, "published": is_done, "dry_run": args.dry_run,
            "digest": packed.digest.to_string(), "bytes": packed.bytes.len(),
            "files": packed.files.iter().map(|it| it.path.clone()).collect::<Vec<_>>(),
            "findings": reviewed.findings.iter().map(finding_json).collect::<Vec<_>>(),
            "result": extra,
        })
    };
    if !printer.json {
        print_skills(&[&reviewed], printer)?;
        for file in &packed.files {
            let size = printer.dim(&size_text(file.size));
            printer.line(format_args!("  {}  {size}", safe::line(&file.path)))?;
        }
        let digest = printer.dim(&packed.digest.to_string());
        printer.line(format_args!("{} packed, {digest}", size_text(packed.bytes.len() as u64)))?;
        printer.flush()?;
    }
    let checked = errors.saturating_sub(reviewed.dangers);
    if checked > 0 {
        let fault = CliError::invalid_input(format!(
            "`check` reports {}, so nothing was published",
            count(checked, "error")
        ));
        return Err(fault.hint("`prowess check PATH --fix` fixes what is safe to fix").into());
    }
    if reviewed.dangers > 0 && !args.allow_findings {
        return Err(packages::dangerous(reviewed.dangers, "published").into());
    }
    let version = match (&version, &target) {
        (Some(version), _) => version.clone(),
        (None, Target::Site(_)) => String::new(),
        (None, Target::Registry(_)) => {
            let fault = CliError::invalid_input("the skill has no version");
            return Err(fault.hint("give one with `--version 1.0.0`, or write `metadata: { version: \"1.0.0\" }` into its frontmatter").into());
        }
    };
    if args.dry_run {
        if printer.json {
            printer.document(&document(false, Value::Null))?;
        }
        printer.note("nothing was uploaded");
        return Ok(ExitStatus::Success);
    }
    let shown = if version.is_empty() { name.clone() } else { format!("{name} {version}") };
    if !packages::is_agreed(args.yes, &format!("Publish `{shown}` to `{}`?", args.to), "published")?
    {
        return Ok(packages::declined("published", printer));
    }
    let result = match &target {
        Target::Site(site) => {
            let about = &reviewed.skill.description;
            let path =
                publish_to_site(site, &name, about, &packed).map_err(|it| upload_error(&it))?;
            if !printer.json {
                printer.line(safe::line(&path.to_string_lossy()))?;
            }
            json!({ "path": path.to_string_lossy() })
        }
        Target::Registry(url) => {
            let mut upload = SkillUpload::new(&name, &version, &staged, packed.files.clone());
            upload.owner.clone_from(&args.owner);
            upload.changelog.clone_from(&args.changelog);
            let token = env::var(TOKEN).ok().filter(|it| !it.trim().is_empty());
            let fetcher = session.fetcher_with_token(url, token)?;
            let done = session.wait("uploading", fetcher.upload(Some(url), &upload), printer)?;
            let done = done.map_err(|it| upload_error(&it))?;
            let owner = done.owner.as_ref().map(|it| format!("@{it}/")).unwrap_or_default();
            if !printer.json {
                printer.line(safe::line(&format!("{owner}{}  {}", done.slug, done.version)))?;
            }
            if done.is_pending {
                printer.note("the registry checks it before others can see it");
            }
            json!({ "owner": done.owner, "slug": done.slug, "version": done.version, "pending": done.is_pending })
        }
    };
    if printer.json {
        printer.document(&document(true, result))?;
    }
    printer.flush()?;
    printer.note(&format!("`{shown}` is published"));
    Ok(ExitStatus::Success)
}

fn target(args: &Args, base: &Path) -> Result<Target, CliError> {
    if args.to.contains("://") {
        let url = url::Url::parse(&args.to).ok();
        let url = url.filter(|it| matches!(it.scheme(), "https" | "http") && it.has_host());
        return url.map(Target::Registry).ok_or_else(|| {
            CliError::new(format!("`{}` is not the address of a registry", args.to))
                .hint("write a URL such as `https://hub.example.com`")
        });
    }
    let site = packages::resolve(Path::new(&args.to), base);
    match site.is_dir() {
        true => Ok(Target::Site(site)),
        false => Err(CliError::new(format!("there is no folder `{}`", args.to))
            .hint("write the URL of a registry with `https://`, or create the folder of the site")),
    }
}

/// Copies the files that are published, and adds the signature.
fn stage_files(folder: &Path, staged: &Path, args: &Args) -> Result<PackedSkill> {
    let failed = |error: prowess_packages::PackError| {
        CliError::invalid_input(packages::chain(&error)).hint(error.hint())
    };
    let packed = pack(folder, &PackOptions::default()).map_err(failed)?;
    for file in &packed.files {
        let path = staged.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(folder.join(&file.path), &path)
            .with_context(|| format!("cannot read `{}`", folder.join(&file.path).display()))?;
    }
    if let Some(key) = &args.sign {
        let text =
            fs::read_to_string(key).with_context(|| format!("cannot read `{}`", key.display()))?;
        let password = env::var(PASSWORD).ok();
        let key = MinisignKey::parse(&text, password.as_deref())
            .map_err(|error| CliError::new(packages::chain(&error)).hint(error.hint()))?;
        let signed = packages::signed_text(&packed.files);
        let signature = key.sign(signed.as_bytes(), "files of a skill")?;
        fs::write(staged.join(packages::SIGNATURES[0]), signature)?;
    }
    Ok(pack(staged, &PackOptions::default()).map_err(failed)?)
}

/// Returns the name in the frontmatter.
fn name_of(folder: &Path) -> Result<String, CliError> {
    let name = frontmatter(folder).and_then(|it| it.get("name")?.as_str().map(str::to_owned));
    name.filter(|it| prowess::is_plain_name(it)).ok_or_else(|| {
        CliError::invalid_input("the skill has no valid `name`")
            .hint("`prowess check PATH` says what is wrong")
    })
}

/// Returns the version in the frontmatter.
fn version_of(folder: &Path) -> Option<String> {
    let json = frontmatter(folder)?;
    let version = json.get("version").or_else(|| json.get("metadata")?.get("version"))?;
    let text = version.as_str().map(str::to_owned);
    text.or_else(|| version.is_number().then(|| version.to_string()))
}

fn frontmatter(folder: &Path) -> Option<serde_json::Map<String, Value>> {
    prowess::frontmatter_json(&fs::read(folder.join(SKILL_FILE)).ok()?).ok()
}

fn upload_error(error: &UploadError) -> CliError {
    let fault = CliError::new(packages::chain(error));
    let fault = match error {
        UploadError::NoToken { .. } => {
            return fault.hint(format!("get a token of the registry, and set `{TOKEN}`"));
        }
        UploadError::Exists { .. } | UploadError::Rejected { .. } | UploadError::Name { .. } => {
            CliError::invalid_input(packages::chain(error))
        }
        _ => fault,
    };
    match error.hint() {
        Some(hint) => fault.hint(hint),
        None => fault.hint("nothing was published; try again"),
    }
}
