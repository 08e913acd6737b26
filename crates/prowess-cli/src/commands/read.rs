use anyhow::Result;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use prowess::{ReadError, nearest};
use serde_json::{Value as Json, json};

use crate::{Status, arguments::Global, completion, context, printer::Printer};

/// Print one file of a skill, as it is
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name, `scope:name` or path of the skill
    #[arg(add = completion::skills())]
    name: String,
    /// The file, as a path within the skill's folder; what `SKILL.md` says is shown by `show`
    #[arg(add = completion::resources())]
    resource: String,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Status> {
    let (library, name) = context::library_for(&args.name, global, printer)?;
    let Some(skill) = context::skill(&library, &name, printer) else {
        return Ok(Status::AtFault);
    };
    match skill.read(args.resource.strip_prefix("./").unwrap_or(&args.resource)) {
        Ok(bytes) if printer.json => printer.document(&document(args, bytes))?,
        // A terminal would act on what a file could bring along.
        Ok(bytes) if printer.is_terminal => printer.text(&String::from_utf8_lossy(&bytes))?,
        Ok(bytes) => printer.raw(&bytes)?,
        Err(error @ ReadError::NoSuchResource { .. }) => {
            printer.fault(&error.to_string());
            let paths = skill.resources().iter().map(|it| &*it.path);
            printer.hint(&match nearest(&args.resource, paths) {
                _ if args.resource.ends_with("SKILL.md") => {
                    format!("`prowess show {}` prints what it says", args.name)
                }
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("`prowess show {}` lists its files", args.name),
            });
            return Ok(Status::AtFault);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Status::Well)
}

/// The file as it stands in JSON, which can hold nothing but text.
fn document(args: &Args, bytes: Vec<u8>) -> Json {
    let size = bytes.len();
    let (encoding, content) = match String::from_utf8(bytes) {
        Ok(text) => ("utf-8", text),
        Err(error) => ("base64", BASE64_STANDARD.encode(error.as_bytes())),
    };
    json!({
        "name": args.name,
        "path": args.resource,
        "size": size,
        "encoding": encoding,
        "content": content,
    })
}
