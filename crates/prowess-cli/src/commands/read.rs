use std::{io::Read as _, path::Path};

use anyhow::Result;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use prowess::{Library, ReadError, did_you_mean, nearest, spec::SKILL_FILE};
use prowess_runtime::sandbox::{Links, Root};
use serde_json::{Value as Json, json};

use super::count;
use crate::{
    ExitStatus, arguments::Global, cli_error::CliError, completion, context, printer::Printer,
};

/// Print a file of a skill, unchanged
///
/// `SKILL.md` is printed with its frontmatter; `prowess show` prints only the instructions. Files of skills that
/// were left out can be read, too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name, `scope:name` or path of the skill
    #[arg(add = completion::skills())]
    name: String,
    /// The file, as a path in the skill's folder
    #[arg(add = completion::resources())]
    resource: String,
    /// Print only these lines, such as `10-20`, `10-` or `10`; the first line is 1
    #[arg(long, value_name = "LINES", value_parser = parse_lines)]
    lines: Option<Lines>,
}

/// The most that is read of a file of a left-out skill, which may be too large.
const MOST: u64 = 64 * 1024 * 1024;

/// A range of lines, both ends included.
#[derive(Debug, Clone, Copy)]
struct Lines {
    first: usize,
    last: usize,
}

/// Parses `10-20`, `10-` or `10`; a colon works as well.
fn parse_lines(text: &str) -> Result<Lines, &'static str> {
    let (first, last) = match text.split_once(['-', ':']) {
        None => (text.parse().ok(), text.parse().ok()),
        Some((first, "")) => (first.parse().ok(), Some(usize::MAX)),
        Some((first, last)) => (first.parse().ok(), last.parse().ok()),
    };
    let range = first.zip(last).filter(|(first, last)| (1..=*last).contains(first));
    range
        .map(|(first, last)| Lines { first, last })
        .ok_or("must be a range of lines such as `10-20`, `10-` or `10`")
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let (library, name) = context::library_for(&args.name, global, printer)?;
    let resource = args.resource.strip_prefix("./").unwrap_or(&args.resource);
    let Some(skill) = library.get(&name) else {
        let fault = context::no_skill(&library, &name);
        let Some(bytes) = read_left_out(&library, &name, resource) else {
            return Err(fault.into());
        };
        let bytes = match args.lines {
            Some(lines) => select_lines(bytes, lines, &args.resource)?,
            None => bytes,
        };
        print(args, bytes, printer)?;
        printer.flush()?;
        printer.warning(&fault.to_string());
        return Ok(ExitStatus::Success);
    };
    let read = match resource {
        SKILL_FILE => skill.document(),
        resource => skill.read(resource),
    };
    let read = match (read, args.lines) {
        (Ok(bytes), Some(lines)) => Ok(select_lines(bytes, lines, &args.resource)?),
        (read, _) => read,
    };
    match read {
        Ok(bytes) => print(args, bytes, printer)?,
        Err(error @ ReadError::NoSuchResource { .. }) => {
            printer.error_text(&error.to_string());
            let mut paths = skill.resources().iter().map(|it| &*it.path);
            let folder = format!("{}/", args.resource.trim_end_matches('/'));
            if let Some(file) = paths.clone().find(|it| it.starts_with(&folder)) {
                printer.hint(&format!("it is a folder, with files such as `{file}`"));
                return Ok(ExitStatus::Failure);
            }
            printer.hint(&match nearest(&args.resource, &mut paths) {
                Some(near) => did_you_mean(near),
                None => format!("`prowess show {}` lists its files", args.name),
            });
            return Ok(ExitStatus::Failure);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitStatus::Success)
}

fn print(args: &Args, bytes: Vec<u8>, printer: &mut Printer) -> Result<()> {
    match printer.json {
        true => printer.document(&document(args, bytes)),
        // A terminal would interpret control characters of the file.
        false if printer.is_terminal => printer.text(&String::from_utf8_lossy(&bytes)),
        false => printer.raw(&bytes),
    }
}

/// Returns a file of a skill that was left out, so that one can see why; `None` if it cannot be
/// read.
fn read_left_out(library: &Library, name: &str, resource: &str) -> Option<Vec<u8>> {
    library.why_left_out(name)?;
    let folder = match context::is_path(name) {
        true => name.into(),
        false => context::folder_of_skill(library, name)?,
    };
    let root = Root::open(&folder).ok()?;
    let mut bytes = Vec::new();
    let file = root.file(Path::new(resource), Links::Inside).ok()?;
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns some lines of a file, byte for byte.
fn select_lines(bytes: Vec<u8>, lines: Lines, file: &str) -> Result<Vec<u8>, CliError> {
    let all: Vec<&[u8]> = bytes.split_inclusive(|it| *it == b'\n').collect();
    let Lines { first, last } = lines;
    match all.get(first - 1..last.min(all.len())) {
        Some(some) if !some.is_empty() => Ok(some.concat()),
        _ => {
            let many = count(all.len(), "line");
            Err(CliError::invalid_input(format!("`{file}` has no line {first}: it has {many}")))
        }
    }
}

/// Returns the file as JSON, which can contain only text.
fn document(args: &Args, bytes: Vec<u8>) -> Json {
    let size = bytes.len();
    let (encoding, content) = match String::from_utf8(bytes) {
        Ok(text) => ("utf-8", text),
        Err(error) => ("base64", BASE64_STANDARD.encode(error.as_bytes())),
    };
    let mut document = json!({
        "name": args.name,
        "path": args.resource,
        "size": size,
        "encoding": encoding,
        "content": content,
    });
    if let Some(Lines { first, .. }) = args.lines {
        document["first_line"] = first.into();
    }
    document
}
