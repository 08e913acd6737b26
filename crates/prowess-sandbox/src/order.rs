//! What the launcher is told, and what it answers, over the socket that is its stdin.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    level::SandboxLevel,
    limits::RunLimits,
    work::{GIVEN, ROOT, TEMPORARY, WORK},
};

/// What the launcher is to run, and how.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// What to run; nothing when it is only to find out what the machine gives.
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) directory: OsString,
    /// Whether what it prints goes to a socket, from which it hears what is said to it.
    pub(crate) interactive: bool,
    /// Whether a pipe comes behind this, which is its stdin.
    pub(crate) has_stdin: bool,
    /// Directories of `PATH`, before those of the system.
    pub(crate) path: Vec<OsString>,
    /// Its `HOME`; the work directory when not given.
    pub(crate) home: Option<OsString>,
    /// What the script may read, and what it may write, besides the system and its own work. No
    /// path of these has a link in it.
    pub(crate) reads: Vec<OsString>,
    pub(crate) writes: Vec<OsString>,
    /// Directories to read that it may write in a layer of its own.
    pub(crate) layered: Vec<OsString>,
    /// What of these it may not read.
    pub(crate) hidden: Vec<OsString>,
    /// What of these it may neither read nor write.
    pub(crate) withheld: Vec<OsString>,
    /// Other paths by which these are known, and where they lead.
    pub(crate) links: Vec<(OsString, OsString)>,
    /// Where the directories of its work lie.
    pub(crate) base: OsString,
    pub(crate) limits: RunLimits,
    /// Whether it can connect to the one socket that is handed over, and the password that keeps others
    /// from using it.
    pub(crate) network: Option<String>,
    /// The levels to try, best first.
    pub(crate) levels: Vec<SandboxLevel>,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It ran, and no process of it is left.
    Ended(RunEnd),
    /// It could not be run.
    Failed(StartFailure),
    /// The machine gives none of the levels.
    Unavailable(Vec<(SandboxLevel, StartFailure)>),
}

/// How a run ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    pub(crate) level: SandboxLevel,
    /// What else the machine gives.
    pub(crate) given: MachineFeatures,
    pub(crate) exit: Exit,
    pub(crate) stopped: Option<StopCause>,
    /// What was refused, each thing once.
    pub(crate) denied: Vec<String>,
}

/// What a machine gives that a level can do without.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct MachineFeatures {
    /// The version of the kernel's rules about files; 0 where there are none.
    pub(crate) rules: i32,
    /// Whether the supervisor hears of calls that are refused.
    pub(crate) listener: bool,
    pub(crate) limits: Enforcement,
}

/// What holds a run to its limits of memory and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Enforcement {
    CgroupV2,
    CgroupV1,
    /// The supervisor, which counts.
    Counted,
}

/// What a process left behind.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// Why a run was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StopCause {
    /// Nobody waits for it any more.
    Unwanted,
    Time,
    Idle,
    Memory,
    Work,
    Processes,
    /// It lets nobody look, so that nothing can be counted.
    Hidden,
}

/// What could not be done, and why.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartFailure {
    pub(crate) component: Component,
    /// What could not be done.
    pub(crate) what: String,
    /// The system's number for why.
    pub(crate) errno: Option<i32>,
}

/// What something that fails belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Component {
    /// The job: it asks for what is not there.
    Job,
    /// Anything else is the machine, which does not give what a level needs.
    Namespaces,
    Root,
    Rules,
    Filter,
    Process,
    /// The control group, which a run can do without.
    Group,
}

impl Order {
    pub(crate) fn base(&self) -> &Path {
        Path::new(&self.base)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.base().join(WORK)
    }

    pub(crate) fn given(&self) -> PathBuf {
        self.base().join(GIVEN)
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.base().join(TEMPORARY)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base().join(ROOT)
    }
}

impl Component {
    /// A failure of this part, for `map_err`.
    pub(crate) fn failed<E: Into<io::Error>>(
        self,
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> StartFailure {
        move |error| StartFailure {
            component: self,
            what: what.into(),
            errno: error.into().raw_os_error(),
        }
    }
}

impl StartFailure {
    pub(crate) fn error(&self) -> io::Error {
        self.errno.map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error)
    }
}

/// The byte that asks the supervisor to stop a run that says nothing.
pub(crate) const IDLE: u8 = b'i';
/// The byte that asks it to stop a run that nobody wants any more.
pub(crate) const CANCEL: u8 = b'c';

/// A message, with its length before it.
pub(crate) fn framed(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok([&length.to_le_bytes(), body.as_slice()].concat())
}

pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&framed(message)?)
}

/// Sends a descriptor behind a message.
pub(crate) fn send_descriptor(to: impl AsFd, descriptor: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(to, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(crate) fn receive_descriptor(from: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let descriptor = ancillary.drain().find_map(|it| match it {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}
