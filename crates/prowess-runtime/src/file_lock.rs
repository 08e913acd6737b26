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
    // Whoever asks the system to wait has its turn; whoever asks again and again may never. When
    // nobody listens any more, the lock is let go as soon as it is there.
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || sender.send(file.lock().map(|()| file)))?;
    receiver.recv_timeout(timeout).ok().transpose()
}
