//! Waiting for the lock on a file that other processes use too.

use std::{
    fs::{File, TryLockError},
    io,
    sync::mpsc,
    thread,
    time::Duration,
};

/// Locks a file; `None` when others do not release it in time.
pub(crate) fn lock_within(file: File, timeout: Duration) -> io::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => return Ok(Some(file)),
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => {}
    }
    // A blocking lock is queued by the system, whereas polling may starve. After the timeout, the
    // thread releases the lock as soon as it gets it.
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || sender.send(file.lock().map(|()| file)))?;
    receiver.recv_timeout(timeout).ok().transpose()
}
