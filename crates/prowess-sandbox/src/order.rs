//! The order for a run: the job with everything that it may use, checked and without links.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{self, Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::SandboxError,
    job::Job,
    level::SandboxLevel,
    limits::RunLimits,
    variables,
    work::{GIVEN, ROOT, TEMPORARY, WORK},
};

/// The order for a run: the program, and its sandbox.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The program and its arguments; empty to only probe the machine.
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) directory: OsString,
    /// Whether stdin and stdout are a socket to the caller.
    pub(crate) interactive: bool,
    /// Whether a pipe for stdin follows this message.
    pub(crate) has_stdin: bool,
    /// Directories of `PATH`, before those of the system.
    pub(crate) path: Vec<OsString>,
    /// Its `HOME`; by default, the work directory.
    pub(crate) home: Option<OsString>,
    /// The paths that the script may read, and those that it may write, besides the system and its
    /// own work directory. They contain no links.
    pub(crate) reads: Vec<OsString>,
    pub(crate) writes: Vec<OsString>,
    /// Directories to read that it may write in a layer of its own.
    pub(crate) layered: Vec<OsString>,
    /// The paths among these that it may not read.
    pub(crate) hidden: Vec<OsString>,
    /// The paths among these that it may neither read nor write.
    pub(crate) withheld: Vec<OsString>,
    /// Aliases of these paths, and their targets.
    pub(crate) links: Vec<(OsString, OsString)>,
    /// The parent of its work directories.
    pub(crate) base: OsString,
    pub(crate) limits: RunLimits,
    /// The password of the only socket that it can connect to, which keeps others from using it;
    /// `None` without a network.
    pub(crate) network: Option<String>,
    /// The levels to try, best first.
    pub(crate) levels: Vec<SandboxLevel>,
}

impl Order {
    /// Returns the order of a job, at the first of these levels that is available.
    pub(crate) fn new(job: &Job, levels: Vec<SandboxLevel>) -> Result<Self, SandboxError> {
        if let Some((name, _)) =
            job.env.iter().find(|(name, value)| !variables::is_harmless(name, value))
        {
            return Err(SandboxError::Variable { name: name.clone() });
        }
        if job.argv.is_empty() {
            let source = io::ErrorKind::InvalidInput.into();
            return Err(SandboxError::Start { what: "run an empty command".to_owned(), source });
        }
        let directory = job.directory.as_deref().unwrap_or(job.work.path());
        let (mut reads, layered) = (resolve_all(&job.reads)?, resolve_all(&job.layered)?);
        reads.extend(layered.iter().cloned());
        let (writes, hidden) = (resolve_all(&job.writes)?, resolve_all(&job.hidden)?);
        let withheld = job.withheld.iter().filter_map(|it| fs::canonicalize(it).ok());
        let known = job.reads.iter().chain(&job.layered).chain(&job.writes);
        let known = known.zip(reads.iter().chain(&writes));
        let links = known.filter_map(|(path, real)| {
            let path = path::absolute(path).ok()?.into_os_string();
            (path != *real).then(|| (path, real.clone()))
        });
        Ok(Self {
            links: links.collect(),
            argv: job.argv.clone(),
            env: job.env.clone().into_iter().chain(job.python_path()).collect(),
            directory: path::absolute(directory)
                .map_err(|source| SandboxError::Path { path: directory.to_owned(), source })?
                .into(),
            interactive: false,
            has_stdin: job.stdin.is_some(),
            path: job.path.iter().map(Into::into).collect(),
            home: job.home.as_ref().map(Into::into),
            reads,
            layered,
            writes,
            hidden,
            withheld: withheld.map(Into::into).collect(),
            base: job.work.base().into(),
            limits: job.limits,
            network: job.network.password(),
            levels,
        })
    }

    pub(crate) fn base(&self) -> &Path {
        Path::new(&self.base)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.base().join(WORK)
    }

    pub(crate) fn given_dir(&self) -> PathBuf {
        self.base().join(GIVEN)
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.base().join(TEMPORARY)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base().join(ROOT)
    }
}

fn resolve_all(paths: &[PathBuf]) -> Result<Vec<OsString>, SandboxError> {
    paths
        .iter()
        .map(|it| resolve(it).map_err(|source| SandboxError::Path { path: it.clone(), source }))
        .collect()
}

/// Returns a path for a script, without links. Refuses the root directory and everything in
/// `/proc`, `/sys` and `/dev`.
fn resolve(path: &Path) -> io::Result<OsString> {
    let path = fs::canonicalize(path)?;
    let own = ["/proc", "/sys", "/dev"].iter().find(|it| path.starts_with(it));
    let rule = match own {
        Some(own) => format!("scripts are never given access to `{own}`"),
        None if path == Path::new("/") => {
            "scripts are never given access to the whole file system".to_owned()
        }
        None => return Ok(path.into()),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, rule))
}
