//! Reads tar archives as a stream: plain, GNU and pax.

use std::io::{self, Read};

use super::{
    ArchiveError,
    tree::{Tree, damaged, read_error, too_large},
};

const BLOCK: usize = 512;
/// The most bytes of a long name or of pax records.
const RECORDS: u64 = 64 * 1024;

/// The records before an entry, which are about it.
#[derive(Debug, Default)]
struct Records {
    path: Option<String>,
    link: Option<String>,
    size: Option<u64>,
    is_sparse: bool,
}

impl Records {
    fn is_empty(&self) -> bool {
        self.path.is_none() && self.link.is_none() && self.size.is_none()
    }
}

/// Adds what is in an archive to a tree, and returns the comment of its global records. Without
/// `is_checked`, by which a truncated archive would be noticed, it must have an end.
pub(crate) fn read(
    archive: &mut dyn Read,
    is_checked: bool,
    tree: &mut Tree<'_>,
) -> Result<Option<String>, ArchiveError> {
    let mut comment = None;
    let mut next = Records::default();
    loop {
        let Some(block) = block(archive)? else {
            if !is_checked || !next.is_empty() {
                return Err(damaged("the end of the archive is missing"));
            }
            return Ok(comment);
        };
        if block == [0; BLOCK] {
            if !next.is_empty() {
                return Err(damaged("a name without a file"));
            }
            return read_end(archive).map(|()| comment);
        }
        let header = Header::parse(&block)?;
        match header.kind {
            b'x' => {
                for (key, value) in records(&data(archive, header.size)?)? {
                    match key.as_str() {
                        "path" => set(&mut next.path, value)?,
                        "linkpath" => set(&mut next.link, value)?,
                        "size" => {
                            let size = value.parse().map_err(|_| damaged("a size is no number"))?;
                            next.size = Some(size);
                        }
                        key if key.starts_with("GNU.sparse.") => next.is_sparse = true,
                        _ => {}
                    }
                }
            }
            b'g' => {
                for (key, value) in records(&data(archive, header.size)?)? {
                    match key.as_str() {
                        "comment" => comment = super::commit(value.as_bytes()),
                        "path" | "linkpath" | "size" => {
                            return Err(damaged("one name or size for all files"));
                        }
                        _ => {}
                    }
                }
            }
            b'L' => set(&mut next.path, long_name(data(archive, header.size)?)?)?,
            b'K' => set(&mut next.link, long_name(data(archive, header.size)?)?)?,
            _ => entry(archive, &header, std::mem::take(&mut next), tree)?,
        }
    }
}

/// Adds an entry to the tree, and reads to its end.
fn entry(
    archive: &mut dyn Read,
    header: &Header,
    records: Records,
    tree: &mut Tree<'_>,
) -> Result<(), ArchiveError> {
    let size = header.size;
    if records.size.is_some_and(|it| it != size) {
        return Err(damaged("two sizes of one file"));
    }
    let path = match &records.path {
        Some(path) => path.clone(),
        None => match String::from_utf8(header.name.clone()) {
            Ok(path) => path,
            Err(error) => {
                tree.count()?;
                tree.leave_out(
                    &String::from_utf8_lossy(error.as_bytes()),
                    "a name that is not UTF-8",
                )?;
                return skip(archive, size.saturating_add(padding(size)));
            }
        },
    };
    let path = path.strip_prefix("./").unwrap_or(&path);
    let mut bytes = archive.take(size);
    let is_folder = header.kind == b'5' || matches!(header.kind, b'0' | 0) && path.ends_with('/');
    match header.kind {
        _ if is_folder => tree.count()?,
        _ if records.is_sparse => left_out(tree, path, "a sparse file")?,
        b'0' | 0 | b'7' => tree.add(path, size, header.mode & 0o100 != 0, &mut bytes)?,
        b'2' => {
            let own = String::from_utf8_lossy(&header.link).into_owned();
            tree.add_link(path, &records.link.unwrap_or(own))?;
        }
        b'1' => left_out(tree, path, "a hard link")?,
        b'3' | b'4' | b'6' => left_out(tree, path, "a device or a pipe")?,
        b'S' => left_out(tree, path, "a sparse file")?,
        _ => left_out(tree, path, "an entry of an unknown type")?,
    }
    let left = bytes.limit();
    skip(archive, left)?;
    skip(archive, padding(size))
}

fn left_out(tree: &mut Tree<'_>, path: &str, reason: &'static str) -> Result<(), ArchiveError> {
    tree.count()?;
    tree.leave_out(path, reason)
}

/// The fields of a header that matter.
struct Header {
    name: Vec<u8>,
    link: Vec<u8>,
    mode: u64,
    size: u64,
    kind: u8,
}

impl Header {
    fn parse(block: &[u8; BLOCK]) -> Result<Self, ArchiveError> {
        let sum = |from: fn(u8) -> i64| -> i64 {
            let sums = block.iter().enumerate();
            sums.map(|(at, it)| from(if (148..156).contains(&at) { b' ' } else { *it })).sum()
        };
        let wanted = number(&block[148..156])?;
        // Some old programs added signed bytes.
        let is_sum = |it: i64| u64::try_from(it) == Ok(wanted);
        if !is_sum(sum(i64::from)) && !is_sum(sum(|it| i64::from(it.cast_signed()))) {
            return Err(damaged("a header has a wrong checksum"));
        }
        let mut name = text(&block[..100]).to_vec();
        let prefix = text(&block[345..500]);
        if &block[257..263] == b"ustar\0" && !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
        let kind = block[156];
        let size = number(&block[124..136])?;
        // These have no content, whatever their size says.
        let size = if matches!(kind, b'1'..=b'6') { 0 } else { size };
        Ok(Self {
            name,
            link: text(&block[157..257]).to_vec(),
            mode: number(&block[100..108])?,
            size,
            kind,
        })
    }
}

/// Returns the bytes of a field up to the first zero.
fn text(field: &[u8]) -> &[u8] {
    field.split(|it| *it == 0).next().unwrap_or_default()
}

/// Reads a number: octal digits, or a large one in binary.
fn number(field: &[u8]) -> Result<u64, ArchiveError> {
    if field[0] & 0x80 != 0 {
        let is_small = field[0] == 0x80 && field[1..].iter().rev().skip(8).all(|it| *it == 0);
        let bytes = field[1..].iter().rev().take(8).rev();
        return match is_small {
            true => Ok(bytes.fold(0, |sum, it| sum << 8 | u64::from(*it))),
            false => Err(damaged("a number is out of range")),
        };
    }
    let digits = str::from_utf8(field).map_err(|_| damaged("a number is none"))?;
    let digits = digits.trim_matches([' ', '\0']);
    if digits.is_empty() {
        return Ok(0);
    }
    let is_octal = digits.bytes().all(|it| matches!(it, b'0'..=b'7'));
    let value = u64::from_str_radix(digits, 8).ok().filter(|_| is_octal);
    value.ok_or_else(|| damaged("a number is none"))
}

/// Reads pax records: each is its length, a space, `key=value` and a line end.
fn records(mut bytes: &[u8]) -> Result<Vec<(String, String)>, ArchiveError> {
    let malformed = || damaged("pax records are malformed");
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().take(8).position(|it| *it == b' ').ok_or_else(malformed)?;
        let length = str::from_utf8(&bytes[..space]).ok().and_then(|it| it.parse::<usize>().ok());
        let length = length.filter(|it| (space + 2..=bytes.len()).contains(it));
        let (record, rest) = bytes.split_at(length.ok_or_else(malformed)?);
        let record = record[space + 1..].strip_suffix(b"\n").ok_or_else(malformed)?;
        let equals = record.iter().position(|it| *it == b'=').ok_or_else(malformed)?;
        let key = String::from_utf8(record[..equals].to_vec()).map_err(|_| malformed())?;
        // Only the values that matter have to be text; extended attributes need not.
        let value = &record[equals + 1..];
        match String::from_utf8(value.to_vec()) {
            Ok(value) => records.push((key, value)),
            Err(_) if matches!(key.as_str(), "path" | "linkpath" | "size") => {
                return Err(damaged("a name is not UTF-8"));
            }
            Err(_) => {}
        }
        bytes = rest;
    }
    Ok(records)
}

fn long_name(bytes: Vec<u8>) -> Result<String, ArchiveError> {
    String::from_utf8(text(&bytes).to_vec()).map_err(|_| damaged("a name is not UTF-8"))
}

/// Sets what is not set yet, or is set to the same.
fn set(field: &mut Option<String>, value: String) -> Result<(), ArchiveError> {
    match field {
        Some(old) if *old != value => Err(damaged("two names of one file")),
        _ => {
            *field = Some(value);
            Ok(())
        }
    }
}

/// Reads a block; nothing at the end of the archive.
fn block(archive: &mut dyn Read) -> Result<Option<[u8; BLOCK]>, ArchiveError> {
    let mut block = [0; BLOCK];
    let mut filled = 0;
    while filled < BLOCK {
        match archive.read(&mut block[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(damaged("the archive ends within a header")),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(error)),
        }
    }
    Ok(Some(block))
}

/// Reads the data of records, and the rest of their last block.
fn data(archive: &mut dyn Read, size: u64) -> Result<Vec<u8>, ArchiveError> {
    if size > RECORDS {
        return Err(too_large(format!("{RECORDS} bytes of a name")));
    }
    let mut bytes = Vec::new();
    let read = archive.take(size).read_to_end(&mut bytes).map_err(read_error)?;
    if read as u64 != size {
        return Err(damaged("the archive ends within a name"));
    }
    skip(archive, padding(size))?;
    Ok(bytes)
}

fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK as u64
}

fn skip(archive: &mut dyn Read, count: u64) -> Result<(), ArchiveError> {
    let skipped = io::copy(&mut archive.take(count), &mut io::sink()).map_err(read_error)?;
    match skipped == count {
        true => Ok(()),
        false => Err(damaged("the archive ends within a file")),
    }
}

/// Reads what is behind the first empty block: nothing but zeros.
fn read_end(archive: &mut dyn Read) -> Result<(), ArchiveError> {
    while let Some(block) = block(archive)? {
        if block != [0; BLOCK] {
            return Err(damaged("there is something behind the end of the archive"));
        }
    }
    Ok(())
}
