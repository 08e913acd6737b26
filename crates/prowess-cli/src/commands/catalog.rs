use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use prowess::{Cataloging, Format, catalog};
use serde_json::json;

use super::count;
use crate::{ExitStatus, arguments::Global, completion, context, host, printer::Printer};

/// Print the list of skills that a model is given at the start
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directories to search, as with `--dir`
    #[arg(value_hint = clap::ValueHint::DirPath)]
    paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatName::List)]
    format: FormatName,
    /// Maximum size in tokens
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// Count tokens like this model; estimated if its tokenizer is not public
    #[arg(long, value_name = "NAME", add = completion::models())]
    model: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    /// Names only
    Names,
    /// Names and descriptions
    List,
    /// Names, descriptions and locations as XML
    Xml,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus> {
    let global = &context::with_paths(global, &args.paths);
    let config = context::config(global)?;
    let library = context::library(global, printer)?;
    context::note_left_out(&library, printer);
    let library = host::without_denied(library, &config, printer);
    let vocabulary = context::tokenizer(args.model.as_deref(), &config);
    let format = match args.format {
        FormatName::Names => Format::Names,
        FormatName::List => Format::List,
        FormatName::Xml => Format::Xml,
    };
    let how = Cataloging { format, budget: args.budget, vocabulary, ..Cataloging::default() };
    let catalog = printer.with_progress("making the catalog", || catalog(&library, &how));
    if printer.json {
        printer.document(&json!({
            "text": catalog.text,
            "tokens": catalog.tokens,
            "counted": vocabulary.as_str(),
            "shown": catalog.shown,
            "shortened": catalog.shortened,
            "dropped": catalog.dropped,
        }))?;
        return Ok(ExitStatus::Success);
    }
    if !catalog.text.is_empty() {
        printer.text(&catalog.text)?;
        printer.flush()?;
    }
    if let (Some(budget), 0, 1..) = (args.budget, catalog.shown, catalog.dropped) {
        let tokens = count(budget, "token");
        printer.warning(&format!("no skill fits into {tokens}; use a larger `--budget`"));
    }
    printer.note(&format!(
        "{}, {} of them shortened, {} left out; {} ({})",
        count(catalog.shown, "skill"),
        catalog.shortened,
        catalog.dropped,
        count(catalog.tokens, "token"),
        vocabulary.as_str(),
    ));
    Ok(ExitStatus::Success)
}
