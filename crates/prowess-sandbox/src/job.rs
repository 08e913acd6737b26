//! A program to run, and all that it may use.

use std::{collections::BTreeMap, ffi::OsString, fmt, io, os::fd::OwnedFd, path::PathBuf};

use tokio::{io::AsyncRead, net::unix::pipe, sync::mpsc::UnboundedSender, task::AbortHandle};

use crate::{limits::RunLimits, network::Network, output::Chunk, work::Work};

/// A program to run, and all that it may use.
#[derive(Debug)]
pub struct Job {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Variables of its environment, beside `PATH`, `HOME`, `LANG` and `TMPDIR`.
    pub env: BTreeMap<String, String>,
    /// The directories that a Python looks for modules in, before its own.
    pub python_path: Vec<PathBuf>,
    /// Where it begins; the work directory when not given.
    pub directory: Option<PathBuf>,
    /// Files and directories that it may read, besides the system.
    pub reads: Vec<PathBuf>,
    /// Directories that it may read, and write in a layer of its own that is gone when it ends. Where a machine gives no
    /// such layer, they can only be read.
    pub layered: Vec<PathBuf>,
    /// Files and directories that it may write, besides the work directory.
    pub writes: Vec<PathBuf>,
    /// Paths among these that it may not read.
    pub hidden: Vec<PathBuf>,
    /// Paths among these that it may neither read nor write. Those that do not exist are passed over.
    pub withheld: Vec<PathBuf>,
    /// Its private directory.
    pub work: Work,
    /// How long and how much it may take.
    pub limits: RunLimits,
    /// Directories of `PATH`, before those of the system.
    pub path: Vec<PathBuf>,
    /// Its `HOME`; the work directory when not given.
    pub home: Option<PathBuf>,
    /// Its stdin; empty when not given.
    pub stdin: Option<Stdin>,
    /// The network that it reaches.
    pub network: Network,
    /// Gets what it prints as it comes, up to the limit of each stream; of what is over that, the end
    /// when it has ended.
    pub chunks: Option<UnboundedSender<Chunk>>,
}

/// The stdin of a program, passed on as it comes.
pub struct Stdin(Box<dyn AsyncRead + Send + Unpin>);

impl Stdin {
    /// Passes on what is read here.
    pub fn new(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self(Box::new(reader))
    }

    /// Begins to pass it on; returns where it is read, and what ends it when dropped.
    pub(crate) fn pass_on(mut self) -> io::Result<(OwnedFd, AbortOnDrop)> {
        let (theirs, ours) = io::pipe()?;
        let mut ours = pipe::Sender::from_owned_fd(ours.into())?;
        // Who no longer reads does not mind.
        let task = tokio::spawn(async move { _ = tokio::io::copy(&mut self.0, &mut ours).await });
        Ok((theirs.into(), AbortOnDrop(task.abort_handle())))
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stdin")
    }
}

/// Ends a task when it is dropped.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Job {
    /// A job that is given nothing but its work directory.
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
    /// The variable that says where modules of Python are, which nobody else may set.
    pub(crate) fn python_path(&self) -> Option<(String, String)> {
        let paths = self.python_path.iter().map(|it| it.to_string_lossy());
        let path = paths.collect::<Vec<_>>().join(":");
        (!path.is_empty()).then(|| ("PYTHONPATH".to_owned(), path))
    }
}
