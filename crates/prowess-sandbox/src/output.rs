//! The output of a program: as it comes, and as it is kept.

/// A piece of the output of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// From its stdout.
    Stdout(Vec<u8>),
    /// From its stderr.
    Stderr(Vec<u8>),
}

impl Chunk {
    /// The bytes of it.
    pub fn bytes(&self) -> &[u8] {
        let (Self::Stdout(bytes) | Self::Stderr(bytes)) = self;
        bytes
    }
}

/// The text of a stream: its beginning and its end where it was too long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedText {
    /// The text; with replacement characters for bytes that are none.
    pub text: String,
    /// How many bytes were left out of its middle; the text says where.
    pub cut: u64,
}
