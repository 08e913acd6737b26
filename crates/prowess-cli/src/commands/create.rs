use std::{
    io::{self, IsTerminal as _, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;
use prowess::{Definition, Manifest, Severity, Type, check};
use prowess_runtime::{
    SkillRecord, Store as _,
    skill::{check_record, definition_from_json, type_from_word},
    text::strict_json,
};
use serde_json::Value as Json;

use super::{print_record, report_store_error};
use crate::{
    ExitStatus, arguments::Global, cli_error::CliError, context, input, printer::Printer, trust,
};

/// The largest definition.
const MAX_SIZE: u64 = 1024 * 1024;

/// Create a complete skill of any type from a file or stdin, and enable it
///
/// The definition is read from a file or from standard input: a script, a template or instructions; for a composite
/// skill, `{"steps": [{"tool": …, "params": {…}}]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the skill: lowercase letters and digits, joined by single hyphens
    name: String,
    /// Type of the skill
    #[arg(long = "type", value_name = "TYPE", default_value = "instruction", value_parser = PossibleValuesParser::new(Type::ALL.map(Type::as_str)))]
    kind: String,
    /// What it does and when to use it
    #[arg(long, value_name = "TEXT")]
    description: String,
    /// The definition, such as `{"script": "echo hello"}`
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    definition: Option<String>,
    /// File with the definition; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// JSON Schema of its parameters, or `@FILE`
    #[arg(long, value_name = "JSON")]
    parameters: Option<String>,
    /// Tags, separated by commas
    #[arg(long, value_name = "TAG,TAG", value_delimiter = ',')]
    tags: Vec<String>,
    /// Require approval before it runs
    #[arg(long)]
    requires_approval: bool,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let kind = type_from_word(&args.kind)?;
    let definition = match definition(args, kind, global) {
        Ok(definition) => definition,
        Err(error) => return Ok(report_error(&error, printer)),
    };
    let parameters = match &args.parameters {
        None => None,
        Some(text) => match read_schema(text, global) {
            Ok(schema) => Some(schema),
            Err(error) => return Ok(report_error(&error, printer)),
        },
    };
    if args.tags.iter().any(|it| it.trim().is_empty()) {
        return Ok(report_error(
            &anyhow::anyhow!("a tag is empty: write `--tags one,two`"),
            printer,
        ));
    }
    let manifest = Manifest {
        name: args.name.as_str().into(),
        description: args.description.trim().into(),
        kind,
        status: Some(prowess::Status::Active),
        tags: args.tags.iter().map(|it| it.trim().into()).collect(),
        requires_approval: args.requires_approval,
        ..Manifest::default()
    };
    let entry = SkillRecord { manifest, definition, parameters, folder: None };
    if let Err(error) = check_record(&entry) {
        let error = error.into();
        let status = report_error(&error, printer);
        if let Some(name) = bare_name(&error).filter(|_| kind == Type::Template) {
            printer.hint(&format!(
                "`{{{{.{name}}}}}` is replaced by the value of the parameter `{name}`"
            ));
        }
        return Ok(status);
    }
    let target = context::target_store_or_here(global, printer)?;
    match target.store.create(&entry) {
        Ok(entry) => {
            print_record(&entry, &target, printer)?;
            let folder = target.document(&entry);
            let profile = global.profile.into();
            // Infos are as often about text that this command generated.
            let least = if printer.verbose { Severity::Info } else { Severity::Warning };
            if let Ok(checked) = check(&[folder], profile, &prowess::SizeLimits::default()) {
                let worth = checked.findings.iter().filter(|it| it.severity >= least);
                worth.for_each(|it| printer.finding(it));
            }
            printer.note(&format!("`{}` is active", args.name));
            if matches!(&entry.definition, Definition::Instruction { content } if content.trim().is_empty())
            {
                let path = target.document(&entry);
                printer.warning(&format!(
                    "it has no instructions yet; add them to `{}`",
                    path.display()
                ));
            }
            if trust::is_needed(&target.path, global) {
                printer.note("`prowess run` will ask whether you trust this project; `prowess trust .` trusts it now");
            }
            Ok(ExitStatus::Success)
        }
        Err(error) => Ok(report_store_error(error, printer)),
    }
}

fn report_error(error: &anyhow::Error, printer: &mut Printer) -> ExitStatus {
    if let Some(fault) = error.downcast_ref::<CliError>() {
        fault.print(printer);
        return fault.status;
    }
    printer.error(error);
    // Input that could not be read is not known to be wrong.
    if error.chain().any(|it| it.is::<io::Error>()) {
        ExitStatus::Error
    } else {
        ExitStatus::Failure
    }
}

/// Returns the name that a template parsed as a function: other template languages write values
/// without a dot.
fn bare_name(error: &anyhow::Error) -> Option<String> {
    let said = format!("{error:#}");
    let (name, _) = said.split_once("function \"")?.1.split_once("\" not defined")?;
    Some(name.to_owned())
}

/// Returns the definition from the command line, a file, or standard input.
fn definition(args: &Args, kind: Type, global: &Global) -> Result<Definition> {
    if let Some(text) = &args.definition {
        let json = strict_json(text).context("`--definition` is not JSON")?;
        return Ok(definition_from_json(kind, &json)?);
    }
    let text = match &args.file {
        Some(path) if path != Path::new("-") => read_file(path, global)?,
        None if io::stdin().is_terminal() => String::new(),
        _ => read_text(io::stdin().lock(), "standard input")?,
    };
    // JSON of the right shape is a definition; a composite can be nothing else.
    let json = strict_json(&text);
    if let (Err(error), Ok(loose)) = (&json, serde_json::from_str(&text))
        && definition_from_json(kind, &loose).is_ok()
    {
        bail!("the definition is ambiguous: {error}");
    }
    let read = json.as_ref().ok().map(|it| definition_from_json(kind, it));
    Ok(match (kind, read) {
        (_, Some(Ok(definition))) if !text.trim().is_empty() => definition,
        (Type::Instruction, _) => Definition::Instruction { content: text },
        (_, _) if text.trim().is_empty() => {
            let hint = "use `--definition`, `--file` or standard input";
            bail!(CliError::invalid_input(format!("a {kind} skill needs a definition")).hint(hint))
        }
        (Type::Script, _) if let Some(interpreter) = other_interpreter(&text) => {
            let hint = "put it into `scripts/` of an instruction skill, and run it with `prowess run NAME --script scripts/FILE`";
            let message = format!(
                "a script skill must be a shell script, but this one is for `{interpreter}`"
            );
            bail!(CliError::invalid_input(message).hint(hint))
        }
        (Type::Script, _) => Definition::Script { script: text },
        (Type::Template, _) => Definition::Template { template: text },
        (Type::Composite, Some(Err(error))) => bail!(error),
        (Type::Composite, _) => {
            json.context("the steps of a composite are not JSON")?;
            bail!("the steps of a composite are not JSON")
        }
    })
}

/// Returns the interpreter of a script's first line, if it is not a shell.
fn other_interpreter(script: &str) -> Option<&str> {
    let words = script.lines().next()?.strip_prefix("#!")?.split_whitespace();
    let names = words.map(|it| it.rsplit('/').next().unwrap_or(it));
    let interpreter = { names }.find(|it| *it != "env" && !it.starts_with('-'))?;
    (!interpreter.ends_with("sh")).then_some(interpreter)
}

fn read_schema(text: &str, global: &Global) -> Result<Json> {
    let text = match text.strip_prefix('@') {
        Some(path) => read_file(Path::new(path), global)?,
        None => text.to_owned(),
    };
    let json = strict_json(&text).context("`--parameters` is not JSON")?;
    if !json.is_object() {
        bail!("`--parameters` is not a JSON Schema: it must be an object");
    }
    Ok(json)
}

fn read_file(path: &Path, global: &Global) -> Result<String> {
    let path = global.cwd.as_ref().map_or(path.to_owned(), |it| it.join(path));
    let shown = path.display().to_string();
    read_text(input::open(&path)?, &shown)
}

fn read_text(from: impl Read, shown: &str) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read `{shown}`"))?;
    if bytes.len() as u64 > MAX_SIZE {
        bail!("`{shown}` has more than {MAX_SIZE} bytes");
    }
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("`{shown}` is not UTF-8"))
}
