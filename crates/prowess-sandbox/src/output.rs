//! The output of a program: as chunks, and as captured.

/// A chunk of a program's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// From its stdout.
    Stdout(Vec<u8>),
    /// From its stderr.
    Stderr(Vec<u8>),
}

impl Chunk {
    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        let (Self::Stdout(bytes) | Self::Stderr(bytes)) = self;
        bytes
    }
}

/// The text of a stream: its beginning and its end if it was too long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedText {
    /// The text; invalid bytes are replacement characters.
    pub text: String,
    /// The number of bytes left out of its middle; the text marks the place.
    pub cut: u64,
}
