use anyhow::Result;
use prowess::nearest;
use prowess_runtime::{Origin, Shown};
use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    Status, arguments::Global, completion, context, markdown::wrapped, printer::Printer, safe,
};

/// Show what is set, and where each value came from
///
/// Values come from flags, else from the nearest `prowess.toml` here or above, else from the user's
/// own, else they are defaults.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this setting, such as `skill.depth`, or those of one table, such as `limits`
    #[arg(add = completion::settings())]
    key: Option<String>,
}

pub(crate) fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Status> {
    let config = context::config(global)?;
    context::passed_over(&config, printer);
    let all = config.settings();
    let wanted = |it: &&Shown| match args.key.as_deref() {
        None => true,
        Some(key) => it.key == key || it.key.split('.').next() == Some(key),
    };
    let settings: Vec<&Shown> = all.iter().filter(wanted).collect();
    if let (true, Some(key)) = (settings.is_empty(), &args.key) {
        printer.fault(&format!("there is no setting `{key}`"));
        match nearest(key, all.iter().map(|it| it.key)) {
            Some(near) => printer.hint(&format!("did you mean `{near}`?")),
            None => printer.hint("`prowess config` shows which there are"),
        }
        return Ok(Status::AtFault);
    }
    if printer.json {
        let files: Vec<_> = config.files.iter().map(|it| it.to_string_lossy()).collect();
        let settings: Vec<Json> = settings
            .iter()
            .map(|it| json!({ "key": it.key, "value": it.value, "origin": it.origin.to_string() }))
            .collect();
        printer.document(&json!({ "files": files, "settings": settings }))?;
        return Ok(Status::Well);
    }
    table(&settings, printer)?;
    printer.flush()?;
    if config.files.is_empty() {
        printer.note("no `prowess.toml` was found, here, above, or in the user's own directory");
    }
    Ok(Status::Well)
}

/// A line a setting: key, value, and where it came from unless that is nowhere.
fn table(settings: &[&Shown], printer: &mut Printer) -> Result<()> {
    let widest = settings.iter().map(|it| it.key.len()).max().unwrap_or(0);
    let values: Vec<String> =
        settings.iter().map(|it| safe::line(&text(&it.value)).into_owned()).collect();
    let room = values.iter().map(|it| it.width()).filter(|it| *it <= 30).max().unwrap_or(0);
    for (setting, value) in settings.iter().zip(&values) {
        let pad = " ".repeat(widest - setting.key.len());
        let origin = setting.origin.to_string();
        let line = match setting.origin {
            Origin::Default => {
                let indent = widest + 2;
                let width =
                    printer.width.map_or(usize::MAX, |it| it.saturating_sub(indent).max(20));
                let lines = wrapped(value, width, "");
                let lines: Vec<String> = lines.iter().map(|it| printer.dim(it)).collect();
                lines.join(&format!("\n{}", " ".repeat(indent)))
            }
            Origin::File { .. } | Origin::Flag(_) => {
                let pad = " ".repeat(room.saturating_sub(value.width()));
                format!("{value}{pad}  {}", printer.dim(&safe::line(&origin)))
            }
        };
        printer.line(format_args!("{}{pad}  {line}", printer.name(setting.key)))?;
    }
    Ok(())
}

/// A value as JSON, with blanks behind commas.
fn text(value: &Json) -> String {
    match value.as_array() {
        Some(values) => {
            let values: Vec<String> = values.iter().map(Json::to_string).collect();
            format!("[{}]", values.join(", "))
        }
        None => value.to_string(),
    }
}
