//! The files of a project that the entry of a server names.

use std::path::{Path, PathBuf};

use prowess_runtime::{Outcome, OutcomeStatus, text::file_digest};

use crate::config::ServerProgram;

/// Returns the files in the folder of a settings file that the command line of a server names, with
/// their digests: an approval is for these contents.
pub(super) fn named_files(
    program: &ServerProgram,
    settings: &Path,
) -> Result<Vec<(PathBuf, String)>, Box<Outcome>> {
    let folder = settings.parent().unwrap_or(Path::new("."));
    let Ok(project) = prowess::real_path(folder) else { return Ok(Vec::new()) };
    let words = [&program.command].into_iter().chain(&program.arguments);
    let mut named: Vec<(PathBuf, String)> = Vec::new();
    for word in words {
        // An option may hold a path: `--require=./hook.js`.
        let paths = [Some(&**word), word.split_once('=').map(|it| it.1)];
        for path in paths.into_iter().flatten() {
            let Ok(path) = prowess::real_path(project.join(&program.directory).join(path)) else {
                continue;
            };
            if !path.starts_with(&project) || !path.is_file() {
                continue;
            }
            let digest = file_digest(&path).map_err(|error| {
                let message = format!("`{}` cannot be read: {error}", path.display());
                Box::new(Outcome::bad(OutcomeStatus::Failed, message))
            })?;
            named.push((path, digest));
        }
    }
    Ok(named)
}
