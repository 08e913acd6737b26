//! Unpacks a body as it arrives, up to a maximum size.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{MultiGzDecoder, ZlibDecoder};

/// Unpacks a body as it arrives. However small it is when packed, no more than the maximum is kept
/// in memory.
pub(crate) enum Unpacker {
    Plain(BoundedBuffer),
    Gzip(MultiGzDecoder<BoundedBuffer>),
    Deflate(ZlibDecoder<BoundedBuffer>),
    Brotli(Box<DecompressorWriter<BoundedBuffer>>),
}

/// The encodings that can be unpacked, as the value of a header.
pub(crate) const ENCODINGS: &str = "gzip, deflate, br";

/// Collects bytes up to a limit.
#[derive(Default)]
pub(crate) struct BoundedBuffer {
    pub(crate) bytes: Vec<u8>,
    limit: usize,
    /// Whether the limit was exceeded.
    pub(crate) is_cut: bool,
}

impl Unpacker {
    /// Begins a body in this encoding; with an unknown one it stays packed.
    pub(crate) fn new(encoding: &str, limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let buffer = BoundedBuffer { limit, ..BoundedBuffer::default() };
        match encoding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Self::Gzip(MultiGzDecoder::new(buffer)),
            "deflate" => Self::Deflate(ZlibDecoder::new(buffer)),
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(buffer, 4096))),
            _ => Self::Plain(buffer),
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Adds the next bytes, and returns whether the limit allows more.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let pushed = self.writer().write_all(bytes).and_then(|()| self.writer().flush());
        if self.unpacked().is_cut { Ok(false) } else { pushed.map(|()| true) }
    }

    /// Ends the body; an incomplete packed one is an error.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let finished = match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Deflate(decoder) => decoder.try_finish(),
            Self::Brotli(decoder) => decoder.close(),
        };
        if self.unpacked().is_cut { Ok(()) } else { finished }
    }

    /// Returns the bytes unpacked so far.
    pub(crate) fn unpacked(&mut self) -> &mut BoundedBuffer {
        match self {
            Self::Plain(buffer) => buffer,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(buffer) => buffer,
            Self::Gzip(decoder) => decoder,
            Self::Deflate(decoder) => decoder,
            Self::Brotli(decoder) => decoder,
        }
    }
}

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.limit.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            self.is_cut = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
