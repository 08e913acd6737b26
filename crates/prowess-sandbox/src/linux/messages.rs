//! The messages between engine and launcher, over the socket that is the launcher's stdin. The first
//! is an [`Order`](crate::order::Order).

use std::{
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{ending::Ending, level::SandboxLevel};

/// The reply of the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It ran, and none of its processes is left.
    Ended(RunEnd),
    /// It could not be run.
    Failed(StartFailure),
    /// The machine supports none of the levels.
    Unavailable(Vec<(SandboxLevel, StartFailure)>),
}

/// The end of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    pub(crate) ending: Ending,
    /// The optional features of the machine.
    pub(crate) features: MachineFeatures,
}

/// The features of a machine that are optional for a level.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct MachineFeatures {
    /// The Landlock version of the kernel; 0 without Landlock.
    pub(crate) rules: i32,
    /// Whether the supervisor is notified of refused calls.
    pub(crate) listener: bool,
    pub(crate) limits: Enforcement,
}

/// The enforcement of the limits of memory and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Enforcement {
    CgroupV2,
    CgroupV1,
    /// The supervisor counts them.
    Counted,
}

/// A step that failed, with the cause.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartFailure {
    pub(crate) component: Component,
    /// The step that failed.
    pub(crate) what: String,
    /// The error number of the cause.
    pub(crate) errno: Option<i32>,
}

/// The component that a failure belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Component {
    /// The job: it asks for something that does not exist.
    Job,
    /// This and all others are the machine, which lacks something that a level needs.
    Namespaces,
    Root,
    Rules,
    Filter,
    Process,
    /// The control group, which is optional for a run.
    Group,
}

impl Component {
    /// Returns a failure of this component, for `map_err`.
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

/// The byte that asks the supervisor to stop a silent run.
pub(crate) const IDLE: u8 = b'i';
/// The byte that asks it to cancel a run.
pub(crate) const CANCEL: u8 = b'c';

/// The maximum size of a message; another program may send anything.
pub(crate) const MAX_MESSAGE: u32 = 256 << 20;

/// Encodes a message, preceded by its length.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok([&length.to_le_bytes(), body.as_slice()].concat())
}

pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&encode(message)?)
}

/// Sends a descriptor after a message.
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
    let length = u32::from_le_bytes(length);
    if length > MAX_MESSAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length as usize];
    from.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}
