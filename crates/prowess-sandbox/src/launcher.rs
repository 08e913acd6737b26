//! The program that holds scripts, and where it comes from.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

/// The program that holds scripts: a helper of its own, or the host, started again.
///
/// It gets no environment and one socket, and has to be of the same version as this crate.
#[derive(Debug, Clone)]
pub struct Launcher {
    pub(crate) source: LauncherSource,
}

/// Where a launcher comes from.
#[derive(Debug, Clone)]
pub(crate) enum LauncherSource {
    /// The running program, which called the hook.
    Own,
    /// This program.
    Program(PathBuf),
    /// A helper beside the running program, or on `PATH`: the file, once it was found.
    Installed(Arc<OnceLock<std::fs::File>>),
    /// A helper in the memory of the host, and the file that holds it once it was started.
    Embedded(&'static [u8], Arc<OnceLock<std::fs::File>>),
}

/// The name of the helper, and of every program that is started as a launcher.
pub(crate) const NAME: &str = "prowess-launcher";

/// Whether the running program called the hook, and so can be started again.
static HOOKED: AtomicBool = AtomicBool::new(false);

impl Launcher {
    /// Uses the running program if it called [`hook`](Self::hook), else the program
    /// `prowess-launcher` beside it or on `PATH`. The running program is never started again without
    /// the hook.
    ///
    /// A helper is not used if anybody but this user and root could change it: neither the file nor
    /// its directory may belong to others, or be writable by them; nor if the first job may write
    /// where it is. Once found, the same file is used for all jobs.
    pub fn find() -> Self {
        let hooked = HOOKED.load(Ordering::Relaxed);
        Self {
            source: if hooked {
                LauncherSource::Own
            } else {
                LauncherSource::Installed(Arc::default())
            },
        }
    }

    /// Uses this program: the helper, or one that calls [`hook`](Self::hook), such as an installed
    /// `prowess`. It is trusted as it is.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self { source: LauncherSource::Program(path.into()) }
    }

    /// Uses a helper that the host contains, such as `include_bytes!("prowess-launcher")`. It is
    /// started from memory that nobody can change.
    pub fn embedded(program: &'static [u8]) -> Self {
        Self { source: LauncherSource::Embedded(program, Arc::default()) }
    }

    /// Uses the running program, which has called the hook.
    pub(crate) fn own() -> Self {
        HOOKED.store(true, Ordering::Relaxed);
        Self { source: LauncherSource::Own }
    }

    /// Returns the program, for messages.
    pub(crate) fn path(&self) -> &Path {
        match &self.source {
            LauncherSource::Own => Path::new("/proc/self/exe"),
            LauncherSource::Program(path) => path,
            LauncherSource::Installed(_) | LauncherSource::Embedded(..) => Path::new(NAME),
        }
    }
}

impl Default for Launcher {
    fn default() -> Self {
        Self::find()
    }
}
