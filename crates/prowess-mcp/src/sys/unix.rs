//! Unix systems.

#[cfg(all(feature = "client", feature = "http"))]
pub(crate) use self::folder::PrivateFolder;

/// Splits the stream to a program: it ends for the program when the part for writing is dropped.
#[cfg(feature = "client")]
pub(crate) fn split(
    stream: prowess_sandbox::ProgramStream,
) -> (tokio::net::unix::OwnedReadHalf, tokio::net::unix::OwnedWriteHalf) {
    stream.into_split()
}

/// Whether the reader of our output is gone.
#[cfg(feature = "server")]
pub(crate) fn is_output_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let mut output = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut output, Some(&now)).is_ok()
        && output[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL)
}

#[cfg(all(feature = "client", feature = "http"))]
mod folder {
    use std::{
        fs::{DirBuilder, File},
        io::{self, Read as _, Write as _},
        os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
        path::Path,
    };

    use rustix::{
        fs::{AtFlags, Mode, OFlags, fchmod, fsync, openat, renameat, unlinkat},
        io::Errno,
        process::geteuid,
    };

    /// An open folder that belongs to the user, and that nobody else can enter.
    pub(crate) struct PrivateFolder(File);

    impl PrivateFolder {
        /// Opens a folder, which is created if it is missing.
        pub(crate) fn open_or_create(path: &Path) -> io::Result<Self> {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            Self::open(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
        }

        /// Opens a folder, and makes it private; `None` if it does not exist.
        pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let directory = match rustix::fs::open(path, flags, Mode::empty()) {
                Ok(directory) => File::from(directory),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    return Err(io::Error::other("its directory is a link, or not a directory"));
                }
                Err(error) => return Err(error.into()),
            };
            let metadata = directory.metadata()?;
            if metadata.uid() != geteuid().as_raw() {
                return Err(io::Error::other("its directory belongs to another user"));
            }
            if metadata.mode() & 0o077 != 0 {
                fchmod(&directory, Mode::RWXU)?;
            }
            Ok(Some(Self(directory)))
        }

        /// Reads the first bytes of a private file; `None` if there is none.
        pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = match openat(&self.0, name, flags, Mode::empty()) {
                Ok(file) => File::from(file),
                Err(Errno::NOENT) => return Ok(None),
                Err(Errno::LOOP) => return Err(io::Error::other("it is a link")),
                Err(error) => return Err(error.into()),
            };
            // The opened file is checked, because its path may lead elsewhere by now.
            let metadata = file.metadata()?;
            if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
                return Err(io::Error::other("it is not a file that belongs to you"));
            }
            if metadata.mode() & 0o077 != 0 {
                return Err(io::Error::other("other users can read or change it"));
            }
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }

        /// Writes a private file atomically.
        pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
            let draft = format!("{name}.new");
            match unlinkat(&self.0, &*draft, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = openat(&self.0, &*draft, flags, Mode::RUSR | Mode::WUSR)?;
            let mut file = File::from(file);
            file.write_all(bytes)?;
            file.sync_all()?;
            renameat(&self.0, &*draft, &self.0, name)?;
            Ok(fsync(&self.0)?)
        }

        /// Removes a file.
        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            Ok(unlinkat(&self.0, name, AtFlags::empty())?)
        }

        /// Opens a private file to be locked, which is created if it is missing.
        pub(crate) fn open_lock(&self, name: &str) -> io::Result<File> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?.into())
        }
    }
}
