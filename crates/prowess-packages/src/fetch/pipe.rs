//! Brings bytes that arrive from a socket or process to a thread that may block on the disk.

use std::io::{self, Read};

use tokio::sync::mpsc;

/// How many parts may wait to be read.
const WAITING: usize = 16;

/// Reads what its sender sends; at its end when the sender is dropped.
#[derive(Debug)]
pub(super) struct PipeReader {
    parts: mpsc::Receiver<Vec<u8>>,
    part: Vec<u8>,
    at: usize,
}

/// Creates a pipe.
pub(super) fn pipe() -> (mpsc::Sender<Vec<u8>>, PipeReader) {
    let (sender, parts) = mpsc::channel(WAITING);
    (sender, PipeReader { parts, part: Vec::new(), at: 0 })
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.part.len() {
            let Some(part) = self.parts.blocking_recv() else { return Ok(0) };
            (self.part, self.at) = (part, 0);
        }
        let count = buffer.len().min(self.part.len() - self.at);
        buffer[..count].copy_from_slice(&self.part[self.at..][..count]);
        self.at += count;
        Ok(count)
    }
}
