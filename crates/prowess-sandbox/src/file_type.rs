//! The types of files.

/// The type of a file; a link is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileType {
    /// A regular file.
    RegularFile,
    /// A directory.
    Directory,
    /// A symbolic link; on Windows also a junction.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device of characters, such as a terminal.
    CharacterDevice,
    /// A device of blocks, such as a disk.
    BlockDevice,
    /// Something else.
    Unknown,
}
