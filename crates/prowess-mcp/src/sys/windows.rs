//! Windows. What is below the user's own folders can be read by the user alone.

/// Splits the stream to a program. There is none yet.
#[cfg(feature = "client")]
pub(crate) fn split(
    stream: prowess_sandbox::ProgramStream,
) -> (impl tokio::io::AsyncRead, impl tokio::io::AsyncWrite) {
    tokio::io::split(stream)
}

/// Whether the reader of our output is gone: known only once something is written.
#[cfg(feature = "server")]
pub(crate) fn is_output_closed() -> bool {
    false
}

#[cfg(all(feature = "client", feature = "http"))]
pub(crate) use self::folder::PrivateFolder;

#[cfg(all(feature = "client", feature = "http"))]
mod folder {
    use std::{
        fs::{self, File, OpenOptions},
        io::{self, Read as _, Write as _},
        path::{Path, PathBuf},
    };

    use prowess_runtime::sys::{NO_WAIT, OpenOptionsExt as _};

    /// A folder below those of the user.
    pub(crate) struct PrivateFolder(PathBuf);

    impl PrivateFolder {
        /// Opens a folder, which is created if it is missing.
        pub(crate) fn open_or_create(path: &Path) -> io::Result<Self> {
            fs::create_dir_all(path)?;
            Self::open(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
        }

        /// Opens a folder; `None` if it does not exist.
        pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
            match path.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
                Ok(metadata) if !metadata.is_dir() => {
                    Err(io::Error::other("its directory is a link, or not a directory"))
                }
                Ok(_) => Ok(Some(Self(path.to_owned()))),
            }
        }

        /// Reads the first bytes of a file; `None` if there is none.
        pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
            let file = match self.open_file(name, OpenOptions::new().read(true)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                file => file?,
            };
            let mut bytes = Vec::new();
            file.take(most).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }

        /// Writes a file atomically.
        pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
            let draft = self.0.join(format!("{name}.new"));
            match fs::remove_file(&draft) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            drop(file);
            fs::rename(&draft, self.0.join(name))
        }

        /// Removes a file.
        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        /// Opens a file to be locked, which is created if it is missing.
        pub(crate) fn open_lock(&self, name: &str) -> io::Result<File> {
            let mut options = OpenOptions::new();
            self.open_file(name, options.read(true).write(true).create(true).truncate(false))
        }

        fn open_file(&self, name: &str, options: &mut OpenOptions) -> io::Result<File> {
            let file = options.custom_flags(NO_WAIT).open(self.0.join(name))?;
            let is_file = file.metadata()?.is_file();
            if is_file { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
        }
    }
}
