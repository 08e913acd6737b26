//! What this program is: its version, and what it was built from.

use anyhow::Result;
use serde_json::json;

use crate::printer::Printer;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit and its date, unless it was built from a package.
const COMMIT: Option<&str> = option_env!("PROWESS_COMMIT");
const COMMIT_DATE: Option<&str> = option_env!("PROWESS_COMMIT_DATE");

/// Prints one line, or with `--json` everything that is known.
pub(crate) fn print(printer: &mut Printer) -> Result<()> {
    if printer.json {
        return printer.document(&json!({
            "version": VERSION,
            "commit": COMMIT,
            "date": COMMIT_DATE,
            "platform": env!("PROWESS_TARGET"),
            "features": features(),
        }));
    }
    match (COMMIT.and_then(|it| it.get(..9)), COMMIT_DATE) {
        (Some(commit), Some(date)) => printer.line(format!("prowess {VERSION} ({commit} {date})")),
        _ => printer.line(format!("prowess {VERSION}")),
    }
}

/// Returns the features of this build that add something to it.
fn features() -> Vec<&'static str> {
    let all = env!("PROWESS_FEATURES").split(',');
    all.filter(|it| !matches!(*it, "" | "default" | "external")).collect()
}
