//! A settings file of another program: read as it is, written atomically.

use std::{
    fs::{self, Metadata},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use prowess_runtime::sys::with_mode;

use crate::cli_error::CliError;
use crate::sys::give_owner;

/// The largest settings file.
const MAX: u64 = 64 << 20;

/// A settings file as it was read.
#[derive(Debug)]
pub(super) struct Document {
    /// Its path.
    pub(super) path: PathBuf,
    /// The file itself, with links resolved.
    pub(super) target: PathBuf,
    /// The text; empty if there is no file.
    pub(super) text: String,
    found: Option<Metadata>,
}

impl Document {
    /// Reads a file. One of a project may not be outside the project.
    pub(super) fn open(path: PathBuf, project: Option<&Path>) -> Result<Self> {
        let shown = path.display().to_string();
        let cannot = || format!("cannot read `{shown}`");
        let is_there = path.symlink_metadata().is_ok();
        let nearest = path.ancestors().skip(1).find(|it| it.exists()).unwrap_or(Path::new("/"));
        let target = match is_there {
            true => prowess::real_path(&path).with_context(cannot)?,
            false => {
                let inner = path.strip_prefix(nearest).unwrap_or(&path);
                prowess::real_path(nearest).with_context(cannot)?.join(inner)
            }
        };
        if let Some(project) = project {
            let project = prowess::real_path(project).with_context(cannot)?;
            if !target.starts_with(project) {
                let message = format!("`{shown}` leads out of the project");
                return Err(CliError::new(message).hint("the file was not changed").into());
            }
        }
        if !is_there {
            return Ok(Self { path, target, text: String::new(), found: None });
        }
        let found = fs::metadata(&target).with_context(cannot)?;
        let wrong = if !found.is_file() {
            Some("is not a file")
        } else if found.len() > MAX {
            Some("is too large")
        } else {
            found.permissions().readonly().then_some("is read-only")
        };
        if let Some(wrong) = wrong {
            return Err(CliError::new(format!("`{shown}` {wrong}"))
                .hint("the file was not changed")
                .into());
        }
        let text = read(&target).with_context(cannot)?;
        Ok(Self { path, target, text, found: Some(found) })
    }

    pub(super) fn is_link(&self) -> bool {
        self.path.is_symlink()
    }

    /// Returns the folder that has to be created for it.
    pub(super) fn missing_folder(&self) -> Option<&Path> {
        self.target.parent().filter(|it| !it.exists())
    }

    /// Writes a new text, with the same permissions and owner. Fails if the file was changed
    /// meanwhile.
    pub(super) fn write(&self, text: &str, is_shared: bool) -> Result<()> {
        let shown = self.path.display();
        let cannot = || format!("cannot write `{shown}`");
        let folder = self.target.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).with_context(cannot)?;
        let mode = if is_shared { 0o666 } else { 0o600 };
        let mut draft = tempfile::Builder::new();
        let mut draft =
            with_mode(draft.prefix(".prowess-"), mode).tempfile_in(folder).with_context(cannot)?;
        draft.write_all(text.as_bytes()).with_context(cannot)?;
        if let Some(found) = &self.found {
            // A user who may write the file may not always change its owner.
            give_owner(draft.path(), found);
            fs::set_permissions(draft.path(), found.permissions()).with_context(cannot)?;
        }
        draft.as_file().sync_all().with_context(cannot)?;
        let now = match self.target.symlink_metadata() {
            Ok(_) => Some(read(&self.target).with_context(cannot)?),
            Err(_) => None,
        };
        if now.as_deref() != self.found.as_ref().map(|_| &*self.text) {
            let message = format!("`{shown}` was changed by another program in the meantime");
            return Err(CliError::new(message).hint("the file was not changed; try again").into());
        }
        draft.persist(&self.target).map_err(|it| it.error).with_context(cannot)?;
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MAX).read_to_string(&mut text)?;
    Ok(text)
}
