//! A file to which lines are added, so that none is lost and none is half.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// A file to which lines are added, by one process at a time. Its owner alone can read it.
///
/// A line that was added is on disk when that is said. One that could not be added leaves nothing
/// behind; one that was being added when the machine went down is forgotten.
#[derive(Debug)]
pub struct Journal {
    file: File,
    lines: Vec<String>,
    length: u64,
    syncs: bool,
}

/// The most that is read of a journal.
const MAX: u64 = 1024 * 1024 * 1024;

impl Journal {
    /// Opens a journal, or begins one. An error of the kind `WouldBlock` says that another process
    /// has it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let text = Self::whole_lines(&mut file)?;
        let length = text.len() as u64;
        file.set_len(length)?;
        let lines = text.lines().map(str::to_owned).collect();
        Ok(Self { file, lines, length, syncs: true })
    }

    /// Waits for the disk no more: a line that was added outlives the program, but not the machine.
    #[must_use]
    pub fn unsynced(self) -> Self {
        Self { syncs: false, ..self }
    }

    /// Reads the lines of a journal, whoever has it, and leaves it as it is.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let mut file = File::open(path)?;
        Ok(Self::whole_lines(&mut file)?.lines().map(str::to_owned).collect())
    }

    /// All that stands there, without a last line that is half.
    fn whole_lines(file: &mut File) -> io::Result<String> {
        if file.metadata()?.len() > MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        file.take(MAX).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        bytes.truncate(whole);
        String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The lines that stood there when it was opened; only the first who asks is told.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Adds a line. A line break in it would make two of it and is refused.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        if line.contains('\n') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let written = self.write(line);
        if written.is_err() {
            // Half a line would spoil the next one. If even that fails, opening mends it.
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::End(0));
        }
        written
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let text = format!("{line}\n");
        self.file.write_all(text.as_bytes())?;
        if self.syncs {
            self.file.sync_data()?;
        }
        self.length += text.len() as u64;
        Ok(())
    }
}
