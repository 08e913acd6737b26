//! A program to run, and everything that it may use.

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc::UnboundedSender,
    task::AbortHandle,
};

use crate::{limits::RunLimits, network::Network, output::Chunk, work::Work};

/// A program to run, and everything that it may use.
#[derive(Debug)]
pub struct Job {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Environment variables, in addition to `PATH`, `HOME`, `LANG` and `TMPDIR`.
    pub env: BTreeMap<String, String>,
    /// Directories in which Python looks for modules, before its own.
    pub python_path: Vec<PathBuf>,
    /// Its working directory; by default, the work directory.
    pub directory: Option<PathBuf>,
    /// Files and directories that it may read, besides the system.
    pub reads: Vec<PathBuf>,
    /// Directories that it may read, and write in a layer of its own that is discarded when it
    /// ends. On machines without support for such layers, they are read-only.
    pub layered: Vec<PathBuf>,
    /// Files and directories that it may write, besides the work directory.
    pub writes: Vec<PathBuf>,
    /// Paths among these that it may not read.
    pub hidden: Vec<PathBuf>,
    /// Paths among these that it may neither read nor write. Those that do not exist are ignored.
    pub withheld: Vec<PathBuf>,
    /// Its private directory.
    pub work: Work,
    /// Its limits.
    pub limits: RunLimits,
    /// Directories of `PATH`, before those of the system.
    pub path: Vec<PathBuf>,
    /// Its `HOME`; by default, the work directory.
    pub home: Option<PathBuf>,
    /// Its stdin; by default, empty.
    pub stdin: Option<Stdin>,
    /// Its network access.
    pub network: Network,
    /// Receives the output as it is printed, up to the limit of each stream; of the output above
    /// the limit, the end when the program has ended.
    pub chunks: Option<UnboundedSender<Chunk>>,
}

/// The stdin of a program, passed on as it arrives.
pub struct Stdin(Box<dyn AsyncRead + Send + Unpin>);

impl Stdin {
    /// Passes on the bytes of this reader.
    pub fn new(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self(Box::new(reader))
    }

    /// Starts to pass it on; returns a handle that stops it when dropped.
    pub(crate) fn pass_on(
        mut self,
        mut to: impl AsyncWrite + Send + Unpin + 'static,
    ) -> AbortOnDrop {
        // The program may have closed its stdin.
        let task = tokio::spawn(async move { _ = tokio::io::copy(&mut self.0, &mut to).await });
        AbortOnDrop(task.abort_handle())
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stdin")
    }
}

/// Aborts a task when it is dropped.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Job {
    /// Creates a job that is given nothing but its work directory.
    pub fn new(argv: Vec<OsString>, work: Work, limits: RunLimits) -> Self {
        let (env, python_path, reads, layered, writes, hidden, withheld, path, network) =
            Default::default();
        let (directory, home, stdin, chunks) = (None, None, None, None);
        Self {
            argv,
            env,
            python_path,
            directory,
            reads,
            layered,
            writes,
            hidden,
            withheld,
            work,
            limits,
            path,
            home,
            stdin,
            network,
            chunks,
        }
    }
}

impl Job {
    /// Returns the variable with the search path of Python, which no caller may set directly.
    pub(crate) fn python_path(&self) -> Option<(String, String)> {
        let paths = self.python_path.iter().map(|it| it.to_string_lossy());
        let path = paths.collect::<Vec<_>>().join(":");
        (!path.is_empty()).then(|| ("PYTHONPATH".to_owned(), path))
    }
}
