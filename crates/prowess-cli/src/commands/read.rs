use anyhow::Result;
use prowess::{ReadError, nearest};

use crate::{Status, arguments::Global, completion, context, printer::Printer};

/// Print one file of a skill, as it is
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name, `scope:name` or path of the skill
    #[arg(add = completion::skills())]
    name: String,
    /// The file, as a path within the skill's folder
    #[arg(add = completion::resources())]
    resource: String,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Status> {
    let library = context::library(global, printer)?;
    let Some(skill) = context::skill(&library, &args.name, printer) else {
        return Ok(Status::AtFault);
    };
    match skill.read(&args.resource) {
        // A terminal would act on what a file could bring along.
        Ok(bytes) if printer.is_terminal => printer.text(&String::from_utf8_lossy(&bytes))?,
        Ok(bytes) => printer.raw(&bytes)?,
        Err(error @ ReadError::NoSuchResource { .. }) => {
            printer.fault(&error.to_string());
            let paths = skill.resources().iter().map(|it| &*it.path);
            match nearest(&args.resource, paths) {
                Some(near) => printer.hint(&format!("did you mean `{near}`?")),
                None => printer.hint(&format!("`prowess show {}` lists its files", args.name)),
            }
            return Ok(Status::AtFault);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Status::Well)
}
