//! What a script has connected to, and what it was refused.

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

/// The connections of one run, in the order in which they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Log {
    records: Mutex<Vec<Arc<Record>>>,
    omitted: AtomicU64,
    bytes: AtomicU64,
}

/// One connection. What it has sent and received is counted as it passes.
#[derive(Debug)]
pub(super) struct Record {
    host: String,
    port: u16,
    sent: AtomicU64,
    received: AtomicU64,
    refused: OnceLock<String>,
}

/// How many connections are listed.
const LISTED: usize = 1000;
/// How much of a name is listed.
const NAME: usize = 255;

impl Log {
    /// Begins to list a connection.
    pub(super) fn begin(&self, target: &Target) -> Arc<Record> {
        self.list(target.host.to_string(), target.port)
    }

    /// Lists something that was refused before it was known what it was about.
    pub(crate) fn refuse_unknown(&self, why: &str) {
        self.list(String::new(), 0).refuse(why);
    }

    /// Lists what was asked for and could not be read.
    pub(super) fn refuse(&self, asked: &str, why: &str) {
        let end = asked.floor_char_boundary(NAME.min(asked.len()));
        self.list(asked[..end].to_owned(), 0).refuse(why);
    }

    /// What there was, and how many connections are not listed.
    pub(crate) fn connections(&self) -> (Vec<ScriptConnection>, u64) {
        let all = lock(&self.records).iter().map(|it| it.connection()).collect();
        (all, self.omitted.load(Relaxed))
    }

    /// Counts bytes of all connections together, up to a limit.
    pub(super) fn count(&self, bytes: usize, most: u64) -> io::Result<()> {
        let before = self.bytes.fetch_add(bytes as u64, Relaxed);
        match before.saturating_add(bytes as u64) > most {
            true => Err(io::Error::other(format!("the run took more than {most} bytes"))),
            false => Ok(()),
        }
    }

    fn list(&self, host: String, port: u16) -> Arc<Record> {
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
    /// Says why there is no such connection, or why it ended; the first word counts.
    pub(super) fn refuse(&self, why: &str) {
        let _ = self.refused.set(why.to_owned());
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
    }

    fn connection(&self) -> ScriptConnection {
        ScriptConnection {
            host: self.host.clone(),
            port: self.port,
            bytes_sent: self.sent.load(Relaxed),
            bytes_received: self.received.load(Relaxed),
            refused: self.refused.get().cloned(),
        }
    }
}
