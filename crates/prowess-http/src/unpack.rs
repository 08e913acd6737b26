//! A body as it comes, unpacked as far as there is room for it.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::{MultiGzDecoder, ZlibDecoder};

/// Unpacks a body while it comes. However small it is on the way, no more is held than was asked for.
pub(crate) enum Unpacker {
    Plain(Room),
    Gzip(MultiGzDecoder<Room>),
    Deflate(ZlibDecoder<Room>),
    Brotli(Box<DecompressorWriter<Room>>),
}

/// The encodings that can be unpacked, as a header says it.
pub(crate) const ENCODINGS: &str = "gzip, deflate, br";

/// Takes bytes as long as there is room.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) bytes: Vec<u8>,
    most: usize,
    /// Whether there was not enough.
    pub(crate) cut: bool,
}

impl Unpacker {
    /// Begins a body in this encoding; one that is not known stays packed.
    pub(crate) fn new(encoding: &str, most: u64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let room = Room { most, ..Room::default() };
        match encoding.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Self::Gzip(MultiGzDecoder::new(room)),
            "deflate" => Self::Deflate(ZlibDecoder::new(room)),
            "br" => Self::Brotli(Box::new(DecompressorWriter::new(room, 4096))),
            _ => Self::Plain(room),
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Takes the next bytes, and says whether there is room for more.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let taken = self.writer().write_all(bytes).and_then(|()| self.writer().flush());
        if self.room().cut { Ok(false) } else { taken.map(|()| true) }
    }

    /// Ends the body: one that is packed must have come to its end.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        let finished = match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Deflate(decoder) => decoder.try_finish(),
            Self::Brotli(decoder) => decoder.close(),
        };
        if self.room().cut { Ok(()) } else { finished }
    }

    /// The bytes unpacked so far.
    pub(crate) fn room(&mut self) -> &mut Room {
        match self {
            Self::Plain(room) => room,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(room) => room,
            Self::Gzip(decoder) => decoder,
            Self::Deflate(decoder) => decoder,
            Self::Brotli(decoder) => decoder,
        }
    }
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.most.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            self.cut = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
