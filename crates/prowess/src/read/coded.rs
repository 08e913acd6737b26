//! Binary encoding and decoding of the values that are cached on disk.
//!
//! A number is little-endian; a string, list or map is its length followed by its parts; an
//! optional value has a presence byte before it; an enum is a byte; a struct is its fields.

use std::{
    borrow::Cow,
    ops::Range,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use prowess_frontmatter::{Field, Scalar, Style, Value};

use crate::{
    finding::{
        Finding, Severity,
        rule::{Rule, rule},
    },
    read::{
        manifest::{AllowedTools, Dialect, Manifest, Status, Type},
        scan_cache::CachedSkill,
        source::{Mark, Resource, ResourceKind, path_bytes, path_from},
    },
};

/// The maximum nesting depth of values; more than any parser accepts.
const DEEPEST: usize = 128;

/// A value that can be encoded as bytes.
pub(crate) trait Codec: Sized {
    /// Appends the encoded value to `bytes`.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Decodes a value from the front of `bytes`; `None` if they encode something else.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;
}

/// Takes `length` bytes off the front.
pub(crate) fn take_bytes<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (own, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(own)
}

/// Decodes a string from the front, without copying it.
pub(crate) fn decode_text<'b>(bytes: &mut &'b [u8]) -> Option<&'b str> {
    let length = u32::decode(bytes)? as usize;
    str::from_utf8(take_bytes(bytes, length)?).ok()
}

/// Appends a string.
pub(crate) fn encode_text(text: &str, bytes: &mut Vec<u8>) {
    encode_length(text.len(), bytes);
    bytes.extend_from_slice(text.as_bytes());
}

fn encode_length(length: usize, bytes: &mut Vec<u8>) {
    // No cached value is anywhere near as long; one that were could not be decoded again.
    u32::try_from(length).unwrap_or(u32::MAX).encode(bytes);
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Codec for $number {
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                let (own, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*own))
            }
        }
    )*};
}

macro_rules! structs {
    ($($name:ty { $($field:ident)* })*) => {$(
        impl Codec for $name {
            fn encode(&self, bytes: &mut Vec<u8>) {
                $(self.$field.encode(bytes);)*
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Codec::decode(bytes)?),* })
            }
        }
    )*};
}

macro_rules! choices {
    ($($name:ty { $($variant:ident)* })*) => {$(
        impl Codec for $name {
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.push(*self as u8);
            }

            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                let number = u8::decode(bytes)?;
                [$(Self::$variant),*].into_iter().find(|it| *it as u8 == number)
            }
        }
    )*};
}

numbers! { u8 u32 u64 i64 }

structs! {
    Manifest {
        name description license compatibility metadata allowed_tools version author tags kind
        status source created_by requires_approval dialect unknown
    }
    Dialect {
        disable_model_invocation user_invocable argument_hint when_to_use paths context agent model
        effort hooks requires triggers
    }
    Resource { path kind is_text size modified }
    Finding { rule severity path line columns excerpt message hint }
    Mark { device inode size modified changed }
    CachedSkill { size modified resources manifest findings state }
}

choices! {
    Type { Instruction Composite Script Template }
    Status { Active Draft Disabled }
    ResourceKind { Script Reference Template Asset }
    Severity { Info Warning Error }
    Style { Plain Quoted Block }
}

impl Codec for bool {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        match u8::decode(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Codec for usize {
    fn encode(&self, bytes: &mut Vec<u8>) {
        (*self as u64).encode(bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Self::try_from(u64::decode(bytes)?).ok()
    }
}

impl Codec for Box<str> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_text(self, bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_text(bytes).map(Self::from)
    }
}

impl Codec for String {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_text(self, bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_text(bytes).map(Self::from)
    }
}

impl Codec for Cow<'static, str> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_text(self, bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        String::decode(bytes).map(Self::Owned)
    }
}

impl Codec for PathBuf {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let own = path_bytes(self);
        encode_length(own.len(), bytes);
        bytes.extend_from_slice(own);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let length = u32::decode(bytes)? as usize;
        path_from(take_bytes(bytes, length)?.to_vec())
    }
}

impl Codec for SystemTime {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let since = self.duration_since(Self::UNIX_EPOCH).unwrap_or_default();
        (since.as_secs(), since.subsec_nanos()).encode(bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (seconds, nanoseconds) = <(u64, u32)>::decode(bytes)?;
        // More would carry into the seconds, which may already be at their maximum.
        let is_part = nanoseconds < 1_000_000_000;
        is_part.then(|| Self::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds)))?
    }
}

impl Codec for [u8; 16] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        take_bytes(bytes, 16)?.try_into().ok()
    }
}

impl Codec for &'static Rule {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_text(self.code, bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        rule(decode_text(bytes)?)
    }
}

impl Codec for AllowedTools {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.0.encode(bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Codec::decode(bytes).map(Self)
    }
}

impl Codec for Range<usize> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        (self.start, self.end).encode(bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        <(usize, usize)>::decode(bytes).map(|(start, end)| start..end)
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.0.encode(bytes);
        self.1.encode(bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::decode(bytes)?, B::decode(bytes)?))
    }
}

impl<T: Codec> Codec for Option<T> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.is_some().encode(bytes);
        self.iter().for_each(|it| it.encode(bytes));
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        if bool::decode(bytes)? { T::decode(bytes).map(Some) } else { Some(None) }
    }
}

impl Codec for Box<Dialect> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        (**self).encode(bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Dialect::decode(bytes).map(Self::new)
    }
}

impl<T: Codec> Codec for Box<[T]> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_list(self, bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Vec::decode(bytes).map(Vec::into_boxed_slice)
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_list(self, bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_list(bytes, T::decode)
    }
}

fn encode_list<T: Codec>(list: &[T], bytes: &mut Vec<u8>) {
    encode_length(list.len(), bytes);
    list.iter().for_each(|it| it.encode(bytes));
}

fn decode_list<T>(
    bytes: &mut &[u8],
    mut take: impl FnMut(&mut &[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let length = u32::decode(bytes)? as usize;
    // A forged length must not allocate memory.
    let mut list = Vec::with_capacity(length.min(bytes.len()).min(16));
    for _ in 0..length {
        list.push(take(bytes)?);
    }
    Some(list)
}

impl Codec for Field<'static> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.key.encode(bytes);
        self.value.encode(bytes);
        self.line.encode(bytes);
        self.key_span.encode(bytes);
        self.span.encode(bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_field(bytes, 0)
    }
}

impl Codec for Value<'static> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Empty => bytes.push(0),
            Self::Scalar(Scalar { text, style }) => {
                bytes.push(1);
                text.encode(bytes);
                style.encode(bytes);
            }
            Self::List(items) => {
                bytes.push(2);
                items.encode(bytes);
            }
            Self::Map(fields) => {
                bytes.push(3);
                fields.encode(bytes);
            }
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        decode_value(bytes, 0)
    }
}

fn decode_field(bytes: &mut &[u8], depth: usize) -> Option<Field<'static>> {
    Some(Field {
        key: Codec::decode(bytes)?,
        value: decode_value(bytes, depth)?,
        line: Codec::decode(bytes)?,
        key_span: Codec::decode(bytes)?,
        span: Codec::decode(bytes)?,
    })
}

fn decode_value(bytes: &mut &[u8], depth: usize) -> Option<Value<'static>> {
    if depth > DEEPEST {
        return None;
    }
    Some(match u8::decode(bytes)? {
        0 => Value::Empty,
        1 => Value::Scalar(Scalar { text: Codec::decode(bytes)?, style: Codec::decode(bytes)? }),
        2 => Value::List(decode_list(bytes, |it| decode_value(it, depth + 1))?),
        3 => Value::Map(decode_list(bytes, |it| decode_field(it, depth + 1))?),
        _ => return None,
    })
}
