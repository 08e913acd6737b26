//! A file of lines that is only appended to, so that no line is lost or incomplete.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use crate::sys::OpenOptionsExt as _;

/// A private file of lines that is only appended to, by one process at a time.
///
/// A line is on disk when `append` returns. A failed append leaves nothing behind; a line that was
/// being written when the machine stopped is dropped.
#[derive(Debug)]
pub struct Journal {
    file: File,
    lines: Vec<String>,
    length: u64,
    syncs: bool,
}

/// The maximum size of a journal.
const MAX: u64 = 1024 * 1024 * 1024;

impl Journal {
    /// Opens or creates a journal. An error of the kind `WouldBlock` means that another process has
    /// it open.
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

    /// Stops syncing: an appended line survives the program, but not the machine.
    #[must_use]
    pub fn unsynced(self) -> Self {
        Self { syncs: false, ..self }
    }

    /// Reads the lines of a journal, even if another process has it open, without changing it.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let mut file = File::open(path)?;
        Ok(Self::whole_lines(&mut file)?.lines().map(str::to_owned).collect())
    }

    /// Reads the contents, without an incomplete last line.
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

    /// Returns the lines that existed when it was opened; later calls return nothing.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Appends a line. A line break in it is an error.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        if line.contains('\n') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let written = self.write(line);
        if written.is_err() {
            // A partial line would corrupt the next one. If this fails too, the next `open` repairs
            // it.
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
