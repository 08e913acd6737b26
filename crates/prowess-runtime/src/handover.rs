//! Copies the output files of a run.

use std::{
    fs, io,
    path::{self, Path, PathBuf},
};

use prowess_sandbox::{FileType, Root, RootError, Work};

use crate::{
    outcome::{Outcome, OutcomeStatus},
    protected::is_protected,
    repository::{is_named_by_settings, is_of_repository},
    roots::is_of_git,
    sensitive::why_acted_on,
};

/// A directory for the files of a run. Existing files are not overwritten.
#[derive(Debug)]
pub(crate) struct Handover {
    root: Root,
    /// The directories that were created for it, the innermost first.
    made: Vec<PathBuf>,
}

impl Drop for Handover {
    /// Removes the created directories that are empty.
    fn drop(&mut self) {
        let _ = self.made.iter().try_for_each(fs::remove_dir);
    }
}

impl Handover {
    /// Opens a directory, which is created if it is missing.
    pub(crate) fn open(directory: &Path) -> Result<Self, RootError> {
        let missing = directory.ancestors().take_while(|it| !it.exists());
        let made = missing.filter(|it| !it.as_os_str().is_empty()).map(Path::to_owned).collect();
        create_writable(directory).map_err(|source| {
            let path = path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
            RootError::Io { path, source }
        })?;
        Ok(Self { root: Root::open(directory)?, made })
    }

    /// Copies the files of a run, except for links that were given to it, up to a size limit; the
    /// outcome lists the files that were not copied.
    pub(crate) fn copy_files(
        &self,
        work: &Work,
        links: &[PathBuf],
        most: u64,
        outcome: &mut Outcome,
    ) {
        let left = match work.list() {
            Ok(left) => left,
            Err(error) => {
                return mark_failed(outcome, Outcome::error(OutcomeStatus::Failed, &error));
            }
        };
        let mut files = Vec::new();
        for (path, kind) in left {
            if kind == FileType::Symlink && links.contains(&path) {
                continue;
            }
            match why_not_copied(&path, kind) {
                Some(why) => outcome.left_out.push(format!("{}: {why}", path.display())),
                None => files.push(path),
            }
        }
        let (git, files): (Vec<PathBuf>, Vec<PathBuf>) = files.iter().cloned().partition(|it| {
            is_of_repository(it, |it: &Path| match files.iter().find(|file| file.starts_with(it)) {
                Some(file) => Some(file.as_path() != it),
                None => self.root.path().join(it).metadata().ok().map(|it| it.is_dir()),
            }) || is_named_by_settings(&self.root.path().join(it))
        });
        let why = "git would treat it as part of a repository, and run commands from it";
        outcome.left_out.extend(git.iter().map(|it| format!("{}: {why}", it.display())));
        if let Some(there) = files
            .iter()
            .map(|it: &PathBuf| self.root.path().join(it))
            .find(|it| it.symlink_metadata().is_ok())
        {
            let message = format!("`{}` already exists, so no file was copied", there.display());
            let bad = Outcome::bad(OutcomeStatus::Failed, message);
            return mark_failed(outcome, bad.hint("choose another directory, or move it away"));
        }
        let (mut room, mut lost) = (most, 0);
        for path in &files {
            match self.copy(work, path, room) {
                Ok(size) => room -= size,
                Err(error) => {
                    lost += 1;
                    outcome.left_out.push(format!("{}: {}", path.display(), reason(&error, most)));
                }
            }
        }
        if lost > 0 {
            let copied = files.len() - lost;
            let message = format!(
                "{copied} of {} files were copied to `{}`",
                files.len(),
                self.root.path().display()
            );
            mark_failed(outcome, Outcome::bad(OutcomeStatus::Failed, message));
        }
    }

    fn copy(&self, work: &Work, path: &Path, most: u64) -> Result<u64, RootError> {
        let bytes = work.read(path, most)?;
        self.root.write(path, &bytes)?;
        Ok(bytes.len() as u64)
    }
}

/// Creates a directory if it is missing; fails if it is not writable.
fn create_writable(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    crate::sys::check_writable(directory)
}

/// Returns the reason why a file is not copied.
fn why_not_copied(path: &Path, kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::Symlink => Some("it is a link"),
        _ if path.to_string_lossy().contains(char::is_control) => {
            Some("its name contains control characters")
        }
        FileType::RegularFile if is_protected(path) || is_of_git(path) => {
            Some("it is protected: other programs or agents act on it")
        }
        FileType::RegularFile => why_acted_on(path),
        _ => Some("it is not a regular file"),
    }
}

fn reason(error: &RootError, most: u64) -> String {
    match error {
        RootError::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => {
            format!("all together would be more than {most} bytes (`limits.work`)")
        }
        RootError::Io { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}

/// Marks a run as failed because its files could not be copied.
fn mark_failed(outcome: &mut Outcome, bad: Outcome) {
    let said = outcome.message.take().into_iter().chain(bad.message);
    outcome.message = Some(said.collect::<Vec<_>>().join("; "));
    outcome.hint = bad.hint.or(outcome.hint.take());
    if outcome.is_ok() {
        outcome.status = bad.status;
    }
}
