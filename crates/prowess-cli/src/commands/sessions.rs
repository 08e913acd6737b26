use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde_json::{Value as Json, json};

use super::count;
use crate::{
    ExitStatus, completion, host,
    printer::Printer,
    safe,
    sessions::{self, SavedSession},
};

/// List saved sessions, newest first, or remove some
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Remove the session with this name; repeatable
    #[arg(long, value_name = "NAME", add = completion::sessions())]
    remove: Vec<String>,
    /// Remove sessions that were last used longer ago than this, such as `30d`
    #[arg(long, value_name = "TIME", value_parser = host::parse_time, conflicts_with = "remove")]
    remove_older: Option<Duration>,
}

pub(crate) fn run(args: &Args, printer: &mut Printer) -> Result<ExitStatus> {
    match args.remove_older {
        Some(time) => {
            let old = sessions::saved_sessions().into_iter().filter(|it| age(it) > time);
            remove(&old.map(|it| it.name).collect::<Vec<_>>(), printer)
        }
        None if args.remove.is_empty() => list(printer),
        None => remove(&args.remove, printer),
    }
}

fn list(printer: &mut Printer) -> Result<ExitStatus> {
    let past = sessions::saved_sessions();
    if printer.json {
        printer.document(&json!({ "sessions": past.iter().map(json).collect::<Vec<_>>() }))?;
        return Ok(ExitStatus::Success);
    }
    let widest = past.iter().map(|it| it.name.len()).max().unwrap_or(0);
    for it in &past {
        let (age, size) = (format_age(age(it)), format!("{} KiB", it.bytes.div_ceil(1024)));
        let line = format!("{:widest$}  {age:>8}  {size:>9}  {}", it.name, safe::line(&it.begins));
        printer.line(match printer.width {
            Some(width) => safe::cut(&line, width),
            None => line,
        })?;
    }
    printer.flush()?;
    printer.note(&match past.first() {
        Some(last) => format!(
            "{}; `prowess chat --resume {}` continues the last one",
            count(past.len(), "session"),
            last.name
        ),
        None => "there are no saved sessions".to_owned(),
    });
    Ok(ExitStatus::Success)
}

fn remove(names: &[String], printer: &mut Printer) -> Result<ExitStatus> {
    for name in names {
        sessions::remove(name)?;
    }
    if printer.json {
        printer.document(&json!({ "removed": names }))?;
    } else {
        printer.note(&format!("removed {}", count(names.len(), "session")));
    }
    Ok(ExitStatus::Success)
}

fn json(past: &SavedSession) -> Json {
    json!({
        "name": past.name,
        "age_seconds": age(past).as_secs(),
        "bytes": past.bytes,
        "begins": past.begins,
    })
}

/// Returns the time since the last message.
fn age(past: &SavedSession) -> Duration {
    SystemTime::now().duration_since(past.changed).unwrap_or_default()
}

/// Formats a time in its largest unit.
fn format_age(time: Duration) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let seconds = time.as_secs();
    let unit = units.into_iter().find(|it| seconds >= it.0);
    unit.map_or_else(|| format!("{seconds} s"), |(unit, word)| format!("{} {word}", seconds / unit))
}
