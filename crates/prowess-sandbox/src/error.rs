//! The error of a program that could not be run.

use std::{io, path::PathBuf};

/// A program could not be started. One that ran and failed has a [`RunResult`](crate::RunResult).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// This machine cannot confine a program.
    #[error("no sandbox is available on this machine, so nothing was run: {reason}")]
    Unavailable {
        /// The features that it lacks.
        reason: String,
        /// Advice on how to change that.
        remedy: String,
    },
    /// A variable would change how loaders, shells or interpreters work.
    #[error("the variable `{name}` cannot be passed to a script")]
    Variable {
        /// Its name.
        name: String,
    },
    /// A path of the job does not exist, or no script may access it.
    #[error("cannot give scripts access to `{}`", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The program could not be started.
    #[error("cannot {what}")]
    Start {
        /// The step that failed.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// The launcher could not be started, or ended too early.
    #[error("cannot run the launcher `{}`", program.display())]
    Launcher {
        /// The path of the launcher.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The run was dropped before it had ended.
    #[error("the run was cancelled")]
    Cancelled,
}
