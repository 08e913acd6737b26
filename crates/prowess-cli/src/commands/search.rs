use std::{collections::BTreeMap, sync::Arc};

use anyhow::Result;
use prowess::{Library, Memory, Options, Scope, Skill, matches_by};
use prowess_packages::{FetchPackageError, RegistryMatch};
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use super::{count, plural};
use crate::{
    ExitStatus,
    arguments::Global,
    cli_error::CliError,
    context, host,
    packages::{self, PackageSession},
    printer::Printer,
    safe,
};

/// Search registries and installed skills
///
/// Asks the registries of `--registry`, else those of the setting `packages.registries`, and ranks what they have together with
/// the skills that are installed here, in the same way as `prowess find`. A registry that cannot be asked is an error, and what
/// the others have is printed all the same. Exits 1 when nothing matches, and 2 when a registry cannot be asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What the skill should do; several words need no quotes
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Ask this registry: a URL such as `https://clawhub.ai`, or a name in `packages.registries`; repeatable
    #[arg(long, value_name = "URL")]
    registry: Vec<String>,
    /// Maximum number of skills, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    top: u8,
}

/// The skills that a registry is asked for, of which the best are printed.
const ASKED: usize = 50;
/// The widest column of names.
const WIDEST: usize = 36;

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let words = args.words.join(" ");
    if words.trim().is_empty() {
        let fault = CliError::new("there is nothing to search for");
        return Err(fault
            .hint("describe what the skill should do, as in `prowess search fill in forms`")
            .into());
    }
    let session = PackageSession::open(false, false, global, printer)?;
    let registries = registries(args, &session)?;
    let fetcher = &session.fetcher;
    let work = packages::in_parallel(&registries, |it| fetcher.search(Some(it), &words, ASKED));
    let answers = session.wait("searching", work, printer)?;
    let mut found: Vec<(RegistryMatch, String)> = Vec::new();
    let mut failed: Vec<&FetchPackageError> = Vec::new();
    for (registry, answer) in registries.iter().zip(&answers) {
        let host = registry.as_str().trim_end_matches('/').to_owned();
        match answer {
            Ok(matches) => found.extend(matches.iter().map(|it| (it.clone(), host.clone()))),
            Err(error) => failed.push(error),
        }
    }
    let (library, remote) = library(found, global, &session, printer)?;
    let config = &session.config;
    let ranked =
        matches_by(&library, &words, config.matching().strategy, args.top.into(), |it: &Skill| {
            it.manifest.is_active()
        });
    let rows: Vec<Row<'_>> = ranked
        .iter()
        .map(|it| {
            let remote = remote.get(&*it.skill.origin.path.to_string_lossy());
            Row { skill: it.skill, confidence: it.confidence, remote }
        })
        .collect();
    if printer.json {
        print_json(&words, &rows, &failed, printer)?;
    } else {
        print_rows(&rows, printer)?;
        if registries.is_empty() {
            printer.note("only installed skills were searched; `--registry https://clawhub.ai` asks a registry");
        }
        if let Some(first) = rows.iter().find_map(|it| it.remote) {
            let source = context::shell_quote(&first.0.source.to_string());
            printer.note(&format!("`prowess add {source} --list` shows what is in one"));
        }
    }
    if !failed.is_empty() {
        for error in failed {
            packages::fetch_error(error).print(printer);
        }
        return Ok(ExitStatus::Error);
    }
    if !rows.is_empty() {
        return Ok(ExitStatus::Success);
    }
    let fault = CliError::invalid_input(format!("no skill matches `{}`", safe::cut(&words, 60)));
    Err(fault.hint("try other words; `prowess list` lists what is installed").into())
}

/// A skill that was found.
struct Row<'a> {
    skill: &'a Skill,
    confidence: f64,
    /// The match in a registry, and the registry.
    remote: Option<&'a (RegistryMatch, String)>,
}

impl Row<'_> {
    /// Returns where it is: the source of a registry, or the folder.
    fn place(&self) -> String {
        match self.remote {
            Some((found, _)) => found.source.to_string(),
            None => self.skill.folder().display().to_string(),
        }
    }
}

/// Returns the registries to ask.
fn registries(args: &Args, session: &PackageSession) -> Result<Vec<url::Url>, CliError> {
    let known = &session.config.packages.registries.value.0;
    let named = args.registry.iter().map(|it| match known.get(it) {
        Some(address) => address.as_str().to_owned(),
        None if it.contains("://") => it.clone(),
        None => format!("https://{it}"),
    });
    let set = || known.values().map(|it| it.as_str().to_owned()).collect();
    let all: Vec<String> = if args.registry.is_empty() { set() } else { named.collect() };
    all.iter()
        .map(|it| {
            let url = url::Url::parse(it).ok();
            let url = url.filter(|it| matches!(it.scheme(), "https" | "http") && it.has_host());
            url.ok_or_else(|| {
                CliError::new(format!("`{it}` is not the address of a registry")).hint(
                    "write a URL such as `https://clawhub.ai`, or a name in `packages.registries`",
                )
            })
        })
        .collect()
}

/// The matches in registries, by the path that stands for each.
type Remote = BTreeMap<String, (RegistryMatch, String)>;

/// Returns a library of the skills that are installed here and of those that registries have.
fn library(
    found: Vec<(RegistryMatch, String)>,
    global: &Global,
    session: &PackageSession,
    printer: &mut Printer,
) -> Result<(Library, Remote)> {
    let config = &session.config;
    let mut options: Options = context::options(config, global);
    if options.directories.is_empty() {
        options.sources.clear();
    }
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut remote = Remote::new();
    for (number, (found, registry)) in found.into_iter().enumerate() {
        let about =
            found.summary.as_deref().or(found.display_name.as_deref()).unwrap_or(&found.slug);
        let title = found.display_name.as_deref().unwrap_or_default();
        // A JSON text is a YAML text.
        let text = format!(
            "---\nname: {}\ndescription: {}\n---\n\n{title}\n",
            json!(found.slug),
            json!(about.chars().take(1024).collect::<String>()),
        );
        let path = format!("{number:04}/{}/SKILL.md", found.slug);
        files.push((path.clone(), text.into_bytes()));
        remote.insert(path, (found, registry));
    }
    if !files.is_empty() {
        options.sources.push(Arc::new(Memory::new(Scope::Bundled, "", files)));
    }
    let library = printer.with_progress("reading skills", || Library::load(&options))?;
    Ok((host::without_denied(library, config, printer), remote))
}

fn print_rows(rows: &[Row<'_>], printer: &mut Printer) -> Result<()> {
    let names = rows.iter().map(|it| safe::line(&it.skill.manifest.name).width());
    let room = names.max().unwrap_or(0).min(WIDEST);
    for row in rows {
        let name = safe::line(&row.skill.manifest.name).into_owned();
        let description = safe::line(&row.skill.manifest.description).into_owned();
        let percent = match row.confidence * 100.0 {
            it if it < 1.0 => "<1%".to_owned(),
            it => format!("{:.0}%", it.floor()),
        };
        let place = safe::line(&row.place()).into_owned();
        if !printer.is_terminal {
            let is_there = if row.remote.is_some() { "registry" } else { "installed" };
            let how = match row.remote {
                Some((found, _)) => {
                    format!("\tprowess add {}", context::shell_quote(&found.source.to_string()))
                }
                None => String::new(),
            };
            printer.line(format_args!(
                "{}\t{percent}\t{is_there}\t{place}\t{description}{how}",
                printer.name(&name)
            ))?;
            continue;
        }
        let width = printer.width.unwrap_or(80);
        let pad = " ".repeat(room.saturating_sub(name.width()));
        let left = width.saturating_sub(room + 8).max(20);
        printer.line(format_args!(
            "{}{pad}  {percent:>4}  {}",
            printer.name(&name),
            safe::cut(&description, left)
        ))?;
        let how = match row.remote {
            Some((found, _)) => {
                let version =
                    found.version.as_ref().map(|it| format!("{it}, ")).unwrap_or_default();
                let downloads = found.downloads.map(|it| {
                    let it = usize::try_from(it).unwrap_or(usize::MAX);
                    format!("{}, ", plural(it, "download", "downloads"))
                });
                let source = context::shell_quote(&found.source.to_string());
                format!("{version}{}prowess add {source}", downloads.unwrap_or_default())
            }
            None => format!("installed in {place}"),
        };
        let indent = " ".repeat(room + 8);
        printer
            .line(format_args!("{indent}{}", printer.dim(&safe::cut(&safe::line(&how), left))))?;
    }
    printer.flush()?;
    let installed = rows.iter().filter(|it| it.remote.is_none()).count();
    if printer.verbose {
        printer.note(&format!(
            "{} of {} are installed here",
            installed,
            count(rows.len(), "skill")
        ));
    }
    Ok(())
}

fn print_json(
    words: &str,
    rows: &[Row<'_>],
    failed: &[&FetchPackageError],
    printer: &mut Printer,
) -> Result<()> {
    let matches: Vec<_> = rows
        .iter()
        .map(|row| {
            let mut json = json!({
                "name": row.skill.manifest.name,
                "description": row.skill.manifest.description,
                "confidence": (row.confidence * 1e4).round() / 1e4,
                "installed": row.remote.is_none(),
            });
            match row.remote {
                Some((found, registry)) => {
                    json["source"] = json!(found.source.to_string());
                    json["registry"] = json!(registry);
                    json["version"] = json!(found.version);
                    json["downloads"] = json!(found.downloads);
                }
                None => json["path"] = json!(row.skill.origin.path.to_string_lossy()),
            }
            json
        })
        .collect();
    let errors: Vec<String> = failed.iter().map(|it| packages::chain(*it)).collect();
    printer.document(&json!({ "query": words, "matches": matches, "errors": errors }))
}
