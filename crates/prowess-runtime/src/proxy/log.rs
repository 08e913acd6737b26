//! The log of a script's connections and refusals.

use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use prowess::lock;
use prowess_sandbox::ScriptConnection;

use super::target::Target;

/// The connections of one run, in the order of the requests.
#[derive(Debug, Default)]
pub(crate) struct Log {
    records: Mutex<Vec<Arc<Record>>>,
    omitted: AtomicU64,
    bytes: AtomicU64,
}

/// One connection. Its bytes are counted as they pass.
#[derive(Debug)]
pub(super) struct Record {
    host: String,
    port: u16,
    sent: AtomicU64,
    received: AtomicU64,
    refused: OnceLock<String>,
}

/// The maximum number of listed connections.
const LISTED: usize = 1000;
/// The maximum length of a listed name.
const NAME: usize = 255;

impl Log {
    /// Adds a connection.
    pub(super) fn begin(&self, target: &Target) -> Arc<Record> {
        self.add(target.host.to_string(), target.port)
    }

    /// Adds a refusal whose target is unknown.
    pub(crate) fn refuse_unknown(&self, why: &str) {
        self.add(String::new(), 0).refuse(why);
    }

    /// Adds a refused request that could not be parsed.
    pub(super) fn refuse(&self, asked: &str, why: &str) {
        let end = asked.floor_char_boundary(NAME.min(asked.len()));
        self.add(asked[..end].to_owned(), 0).refuse(why);
    }

    /// Returns the connections, and the number of those not listed.
    pub(crate) fn connections(&self) -> (Vec<ScriptConnection>, u64) {
        let all = lock(&self.records).iter().map(|it| it.to_connection()).collect();
        (all, self.omitted.load(Relaxed))
    }

    /// Counts bytes of all connections together, up to a limit.
    pub(super) fn count(&self, bytes: usize, most: u64) -> io::Result<()> {
        let before = self.bytes.fetch_add(bytes as u64, Relaxed);
        match before.saturating_add(bytes as u64) > most {
            true => Err(io::Error::other(format!("the run transferred more than {most} bytes"))),
            false => Ok(()),
        }
    }

    fn add(&self, host: String, port: u16) -> Arc<Record> {
        let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
        let record = Arc::new(Record { host, port, sent, received, refused: OnceLock::new() });
        let mut records = lock(&self.records);
        if records.len() < LISTED {
            records.push(record.clone());
        } else {
            self.omitted.fetch_add(1, Relaxed);
        }
        record
    }
}

impl Record {
    /// Records why the connection was refused or ended; the first reason counts.
    pub(super) fn refuse(&self, why: &str) {
        let _ = self.refused.set(why.to_owned());
    }

    pub(super) fn add_sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn add_received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
    }

    fn to_connection(&self) -> ScriptConnection {
        ScriptConnection {
            host: self.host.clone(),
            port: self.port,
            bytes_sent: self.sent.load(Relaxed),
            bytes_received: self.received.load(Relaxed),
            refused: self.refused.get().cloned(),
        }
    }
}
