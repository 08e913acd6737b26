//! Asking servers, and only those that may be asked: every address is looked up once, checked, and
//! connected to as it was checked, on every redirect anew.

mod address;
mod ports;
mod hosts;
mod resolver;
mod trust;
mod connect;
mod unpack;
mod fetch;
mod wire;

pub(crate) use self::{
    connect::connect,
    fetch::{FetchError, Fetcher, OURS, Request, Response, addresses},
    hosts::{covers, is_public},
};
pub use self::{
    hosts::{Hosts, HostsError},
    resolver::{Addresses, Resolver, SystemResolver},
    trust::CertificateError,
    wire::{Incoming, Patience, Post, Wire, WireError},
};
