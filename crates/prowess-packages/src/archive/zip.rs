//! Reads zip archives by their central directory, and only if everything else in them agrees with it.

use std::io::{self, Read, Seek, SeekFrom};

use flate2::{Crc, read::DeflateDecoder};

use super::{
    ArchiveError, ArchiveLimits,
    tree::{Tree, damaged, read_error, too_large},
};

const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;

const END_SIZE: u64 = 22;
const END_64_SIZE: u64 = 56;
const LOCATOR_64_SIZE: u64 = 20;
/// The longest comment of an archive.
const COMMENT: u64 = u16::MAX as u64;
/// The most bytes of the central directory, which is read at once.
const DIRECTORY: u64 = 64 << 20;

const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const HAS_DESCRIPTOR: u16 = 1 << 3;
const PATCHED: u16 = 1 << 5;
/// The flags that must be the same in both headers.
const SHARED_FLAGS: u16 = ENCRYPTED | HAS_DESCRIPTOR | PATCHED | 1 << 11;

const EXTRA_64: u16 = 1;
const EXTRA_UNICODE_PATH: u16 = 0x7075;

/// An entry of the central directory.
#[derive(Debug)]
struct ZipEntry {
    flags: u16,
    method: u16,
    crc: u32,
    packed: u64,
    size: u64,
    name: Vec<u8>,
    mode: u32,
    offset: u64,
}

/// Adds what is in an archive to a tree, and returns its comment.
pub(crate) fn read<R: Read + Seek>(
    mut archive: R,
    limits: &ArchiveLimits,
    tree: &mut Tree<'_>,
) -> Result<Option<String>, ArchiveError> {
    let length = archive.seek(SeekFrom::End(0)).map_err(ArchiveError::Damaged)?;
    if length > limits.packed {
        return Err(too_large(format!("{} bytes before unpacking", limits.packed)));
    }
    let (directory, comment) = end(&mut archive, length)?;
    if directory.entries > limits.files as u64 {
        return Err(too_large(format!("{} files and folders", limits.files)));
    }
    if directory.size > DIRECTORY {
        return Err(too_large(format!("{DIRECTORY} bytes of names")));
    }
    let bytes = read_at(&mut archive, directory.offset, directory.size)?;
    let mut entries = central(&bytes, directory.entries)?;
    drop(bytes);
    entries.sort_by_key(|it| it.offset);
    let sizes = entries.iter().fold(0_u64, |sum, it| sum.saturating_add(it.size));
    if sizes > limits.unpacked {
        return Err(too_large(format!("{} bytes", limits.unpacked)));
    }
    limits.check_ratio(length, sizes)?;

    // Every byte before the central directory belongs to exactly one entry.
    let mut place = 0;
    for (at, entry) in entries.iter().enumerate() {
        if entry.offset != place {
            return Err(damaged("entries overlap, or there is something between them"));
        }
        let start = local(&mut archive, entry)?;
        let end = start.checked_add(entry.packed).filter(|it| *it <= directory.offset);
        let end = end.ok_or_else(|| damaged("an entry reaches beyond its end"))?;
        let next = entries.get(at + 1).map_or(directory.offset, |it| it.offset);
        if next < end {
            return Err(damaged("entries overlap"));
        }
        archive.seek(SeekFrom::Start(start)).map_err(ArchiveError::Damaged)?;
        unpack(&mut archive, entry, tree)?;
        if next > end || entry.flags & HAS_DESCRIPTOR != 0 {
            descriptor(&mut archive, entry, end, next - end)?;
        }
        place = next;
    }
    match place == directory.offset {
        true => Ok(comment),
        false => Err(damaged("there is something before the list of files")),
    }
}

fn unpack<R: Read>(
    archive: &mut R,
    entry: &ZipEntry,
    tree: &mut Tree<'_>,
) -> Result<(), ArchiveError> {
    let name = match str::from_utf8(&entry.name) {
        Ok(name) => name.strip_prefix("./").unwrap_or(name),
        Err(_) => {
            tree.count()?;
            return tree
                .leave_out(&String::from_utf8_lossy(&entry.name), "a name that is not UTF-8");
        }
    };
    if entry.flags & (ENCRYPTED | PATCHED) != 0 {
        tree.count()?;
        return tree.leave_out(name, "an encrypted file");
    }
    if !matches!(entry.method, 0 | 8) {
        tree.count()?;
        return tree.leave_out(name, "a file that is packed by an unknown method");
    }
    if entry.method == 0 && entry.packed != entry.size {
        return Err(damaged("two sizes of one file"));
    }
    const FOLDER: u32 = 0o040_000;
    const FILE: u32 = 0o100_000;
    const LINK: u32 = 0o120_000;
    let kind = entry.mode & 0o170_000;
    if name.ends_with('/') || kind == FOLDER {
        tree.count()?;
        return match (entry.size, kind) {
            (0, 0 | FOLDER) => Ok(()),
            _ => Err(damaged("a folder that is a file")),
        };
    }
    let packed = archive.take(entry.packed);
    match kind {
        0 | FILE => {
            let executable = entry.mode & 0o100 != 0;
            let mut bytes = CheckedReader::new(packed, entry);
            tree.add(name, entry.size, executable, &mut bytes)
        }
        LINK => {
            const LONGEST: u64 = 4096;
            if entry.size > LONGEST {
                return Err(damaged("the target of a link is too long"));
            }
            let mut target = String::new();
            let mut bytes = CheckedReader::new(packed, entry).take(entry.size + 1);
            bytes.read_to_string(&mut target).map_err(read_error)?;
            tree.add_link(name, &target)
        }
        _ => {
            tree.count()?;
            tree.leave_out(name, "a device or a pipe")
        }
    }
}

/// Reads the content of an entry; fails at its end if it is not what the entry says.
struct CheckedReader<'e, R: Read> {
    bytes: Bytes<io::Take<R>>,
    entry: &'e ZipEntry,
    crc: Crc,
    count: u64,
}

enum Bytes<R: Read> {
    Stored(R),
    Deflated(DeflateDecoder<R>),
}

impl<'e, R: Read> CheckedReader<'e, R> {
    fn new(packed: io::Take<R>, entry: &'e ZipEntry) -> Self {
        let bytes = match entry.method {
            0 => Bytes::Stored(packed),
            _ => Bytes::Deflated(DeflateDecoder::new(packed)),
        };
        Self { bytes, entry, crc: Crc::new(), count: 0 }
    }
}

impl<R: Read> Read for CheckedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.bytes {
            Bytes::Stored(bytes) => bytes.read(buffer)?,
            Bytes::Deflated(bytes) => bytes.read(buffer)?,
        };
        self.crc.update(&buffer[..count]);
        self.count += count as u64;
        if count == 0 && !buffer.is_empty() {
            let is_used_up = match &self.bytes {
                Bytes::Stored(bytes) => bytes.limit() == 0,
                Bytes::Deflated(bytes) => bytes.total_in() == self.entry.packed,
            };
            if self.crc.sum() != self.entry.crc || self.count != self.entry.size || !is_used_up {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a file is not what its header says",
                ));
            }
        }
        Ok(count)
    }
}

/// Where the central directory is.
struct Directory {
    offset: u64,
    size: u64,
    entries: u64,
}

/// Reads the records at the end, which say where the central directory is.
fn end<R: Read + Seek>(
    archive: &mut R,
    length: u64,
) -> Result<(Directory, Option<String>), ArchiveError> {
    if length < END_SIZE {
        return Err(damaged("the end of the archive is missing"));
    }
    let tail_start = length.saturating_sub(END_SIZE + COMMENT + LOCATOR_64_SIZE + END_64_SIZE);
    let tail = read_at(archive, tail_start, length - tail_start)?;
    // The comment could contain what looks like an end: then nobody knows which is meant.
    let first = tail.len().saturating_sub((END_SIZE + COMMENT) as usize);
    let is_end = |at: &usize| {
        let mut fields = Fields(&tail[*at..]);
        fields.u32() == Some(END)
            && Fields(&tail[*at + 20..]).u16().map(usize::from)
                == Some(tail.len() - *at - END_SIZE as usize)
    };
    let mut ends = (first..=tail.len() - END_SIZE as usize).filter(is_end);
    let at = ends.next().ok_or_else(|| damaged("the end of the archive is missing"))?;
    if ends.next().is_some() {
        return Err(damaged("the archive has two ends"));
    }
    let comment = super::commit(&tail[at + END_SIZE as usize..]);
    let record = (|| {
        let mut fields = Fields(&tail[at + 4..]);
        let disks = (fields.u16()?, fields.u16()?);
        let entries = (fields.u16()?, fields.u16()?);
        Some((disks, entries, fields.u32()?, fields.u32()?))
    })();
    let (disks, entries, size, offset) =
        record.ok_or_else(|| damaged("the end of the archive is missing"))?;
    let mut directory =
        Directory { offset: offset.into(), size: size.into(), entries: entries.0.into() };
    let mut records_start = tail_start + at as u64;
    let is_saturated = entries.0 == u16::MAX || size == u32::MAX || offset == u32::MAX;
    let large = match at.checked_sub(LOCATOR_64_SIZE as usize) {
        Some(locator) => end_64(archive, &tail[locator..at], tail_start + locator as u64)?,
        None => None,
    };
    match large {
        Some((large, start)) => {
            let agrees = |small: u64, most: u64, large: u64| small == large || small == most;
            let is_same = agrees(directory.entries, u16::MAX.into(), large.entries)
                && agrees(directory.size, u32::MAX.into(), large.size)
                && agrees(directory.offset, u32::MAX.into(), large.offset);
            if !is_same {
                return Err(damaged("the archive has two ends that do not agree"));
            }
            directory = large;
            records_start = start;
        }
        None if is_saturated => return Err(damaged("the end of the archive is missing")),
        None => {}
    }
    if disks != (0, 0) || entries.0 != entries.1 {
        return Err(damaged("the archive is a part of a larger one"));
    }
    if directory.offset.checked_add(directory.size) != Some(records_start) {
        return Err(damaged("the list of files is not where the archive says"));
    }
    Ok((directory, comment))
}

/// Reads the end record for large archives, if there is a locator of one.
fn end_64<R: Read + Seek>(
    archive: &mut R,
    locator: &[u8],
    locator_start: u64,
) -> Result<Option<(Directory, u64)>, ArchiveError> {
    let mut fields = Fields(locator);
    if fields.u32() != Some(LOCATOR_64) {
        return Ok(None);
    }
    let malformed = || damaged("the end of the archive is malformed");
    let place = (|| Some((fields.u32()?, fields.u64()?, fields.u32()?)))();
    let (disk, start, disks) = place.ok_or_else(malformed)?;
    if disk != 0 || disks > 1 || start.checked_add(END_64_SIZE) != Some(locator_start) {
        return Err(malformed());
    }
    let bytes = read_at(archive, start, END_64_SIZE)?;
    let mut fields = Fields(&bytes);
    let record = (|| {
        let head = (fields.u32()?, fields.u64()?);
        fields.skip(4)?;
        let disks = (fields.u32()?, fields.u32()?);
        let entries = (fields.u64()?, fields.u64()?);
        Some((head, disks, entries, fields.u64()?, fields.u64()?))
    })();
    let (head, disks, entries, size, offset) = record.ok_or_else(malformed)?;
    if head != (END_64, END_64_SIZE - 12) || disks != (0, 0) || entries.0 != entries.1 {
        return Err(malformed());
    }
    Ok(Some((Directory { offset, size, entries: entries.0 }, start)))
}

fn central(bytes: &[u8], count: u64) -> Result<Vec<ZipEntry>, ArchiveError> {
    let mut fields = Fields(bytes);
    let mut entries = Vec::new();
    for _ in 0..count {
        let entry = central_entry(&mut fields).ok_or_else(malformed_header)?;
        entries.push(entry);
    }
    match fields.0.is_empty() {
        true => Ok(entries),
        false => Err(damaged("the list of files is longer than the archive says")),
    }
}

fn malformed_header() -> ArchiveError {
    damaged("a header is malformed")
}

fn central_entry(fields: &mut Fields<'_>) -> Option<ZipEntry> {
    if fields.u32()? != CENTRAL {
        return None;
    }
    fields.skip(4)?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    fields.skip(4)?;
    let crc = fields.u32()?;
    let (packed, size) = (fields.u32()?, fields.u32()?);
    let lengths = (fields.u16()?, fields.u16()?, fields.u16()?);
    let disk = fields.u16()?;
    fields.skip(2)?;
    let attributes = fields.u32()?;
    let offset = fields.u32()?;
    let name = fields.bytes(lengths.0.into())?.to_vec();
    let extra = fields.bytes(lengths.1.into())?;
    fields.skip(lengths.2.into())?;
    let mut wide = Sizes { size: size.into(), packed: packed.into(), offset: offset.into() };
    wide.widen(extra, &name)?;
    (disk == 0).then_some(ZipEntry {
        flags,
        method,
        crc,
        packed: wide.packed,
        size: wide.size,
        name,
        mode: attributes >> 16,
        offset: wide.offset,
    })
}

/// Sizes of a header, of which those that are too large for it are in its extra field.
struct Sizes {
    size: u64,
    packed: u64,
    offset: u64,
}

impl Sizes {
    /// Takes sizes from an extra field, which must not have another name for the file.
    fn widen(&mut self, extra: &[u8], name: &[u8]) -> Option<()> {
        let mut fields = Fields(extra);
        // Less than a header of a field is padding.
        while fields.0.len() >= 4 {
            let (kind, length) = (fields.u16()?, fields.u16()?);
            let content = fields.bytes(length.into())?;
            match kind {
                EXTRA_64 => {
                    let mut wide = Fields(content);
                    for small in [&mut self.size, &mut self.packed, &mut self.offset] {
                        if *small == u64::from(u32::MAX) {
                            *small = wide.u64()?;
                        }
                    }
                }
                EXTRA_UNICODE_PATH if content.get(5..) != Some(name) => return None,
                _ => {}
            }
        }
        Some(())
    }
}

/// Compares the header before an entry with the entry, and returns where its content begins.
fn local<R: Read + Seek>(archive: &mut R, entry: &ZipEntry) -> Result<u64, ArchiveError> {
    const HEADER: u64 = 30;
    let head = read_at(archive, entry.offset, HEADER)?;
    let mut fields = Fields(&head);
    let header = (|| {
        let signature = fields.u32()?;
        fields.skip(2)?;
        let (flags, method) = (fields.u16()?, fields.u16()?);
        fields.skip(4)?;
        let numbers = (fields.u32()?, fields.u32()?, fields.u32()?);
        Some((signature, flags, method, numbers, fields.u16()?, fields.u16()?))
    })();
    let (signature, flags, method, (crc, packed, size), name, extra) =
        header.ok_or_else(malformed_header)?;
    let name_length = u64::from(name);
    let rest = read_at(archive, entry.offset + HEADER, name_length + u64::from(extra))?;
    let (name, extra) = rest.split_at(usize::from(name));
    let differs = || damaged("a header does not agree with the list of files");
    let mut wide = Sizes { size: size.into(), packed: packed.into(), offset: 0 };
    wide.widen(extra, name).ok_or_else(differs)?;
    // What was not known yet is in the descriptor behind the content.
    let has_descriptor = entry.flags & HAS_DESCRIPTOR != 0;
    let agrees = |local: u64, central: u64| {
        local == central || has_descriptor && matches!(local, 0 | 0xFFFF_FFFF)
    };
    let is_same = signature == LOCAL
        && flags & SHARED_FLAGS == entry.flags & SHARED_FLAGS
        && method == entry.method
        && name == entry.name
        && agrees(crc.into(), entry.crc.into())
        && agrees(wide.packed, entry.packed)
        && agrees(wide.size, entry.size);
    match is_same {
        true => Ok(entry.offset + HEADER + rest.len() as u64),
        false => Err(differs()),
    }
}

/// Checks what is between the content of an entry and the next one: its descriptor.
fn descriptor<R: Read + Seek>(
    archive: &mut R,
    entry: &ZipEntry,
    at: u64,
    length: u64,
) -> Result<(), ArchiveError> {
    let wrong = || damaged("there is something between entries");
    if entry.flags & HAS_DESCRIPTOR == 0 || !matches!(length, 12 | 16 | 20 | 24) {
        return Err(wrong());
    }
    let bytes = read_at(archive, at, length)?;
    let mut fields = Fields(&bytes);
    let record = (|| {
        if matches!(length, 16 | 24) && fields.u32()? != DESCRIPTOR {
            return None;
        }
        let crc = fields.u32()?;
        match length {
            12 | 16 => Some((crc, fields.u32()?.into(), fields.u32()?.into())),
            _ => Some((crc, fields.u64()?, fields.u64()?)),
        }
    })();
    match record == Some((entry.crc, entry.packed, entry.size)) {
        true => Ok(()),
        false => Err(wrong()),
    }
}

fn read_at<R: Read + Seek>(archive: &mut R, at: u64, count: u64) -> Result<Vec<u8>, ArchiveError> {
    archive.seek(SeekFrom::Start(at)).map_err(ArchiveError::Damaged)?;
    let mut bytes = Vec::new();
    let read = archive.take(count).read_to_end(&mut bytes).map_err(read_error)?;
    match read as u64 == count {
        true => Ok(bytes),
        false => Err(damaged("the archive ends too early")),
    }
}

/// Numbers, the lowest byte first.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes(count).map(drop)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }
}
