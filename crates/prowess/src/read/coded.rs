//! Binary encoding and decoding of the values that are cached on disk.
//!
//! A number is little-endian; a string, list or map is its length followed by its parts; an
//! optional value has a presence byte before it; an enum is a byte; a struct is its fields.

use std::{
    borrow::Cow,
    ffi::OsString,
    ops::Range,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
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
        source::{Mark, Resource, ResourceKind},
    },
};

/// The maximum nesting depth of values; more than any parser accepts.
const DEEPEST: usize = 128;

/// A value that can be encoded as bytes.
pub(crate) trait Codec: Sized {
    /// Appends the encoded value to `bytes`.
    fn put(&self, bytes: &mut Vec<u8>);

    /// Decodes a value from the front of `bytes`; `None` if they encode something else.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

/// Takes `length` bytes off the front.
pub(crate) fn slice<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (own, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(own)
}

/// Decodes a string from the front, without copying it.
pub(crate) fn text<'b>(bytes: &mut &'b [u8]) -> Option<&'b str> {
    let length = u32::take(bytes)? as usize;
    str::from_utf8(slice(bytes, length)?).ok()
}

/// Appends a string.
pub(crate) fn put_text(text: &str, bytes: &mut Vec<u8>) {
    put_length(text.len(), bytes);
    bytes.extend_from_slice(text.as_bytes());
}

fn put_length(length: usize, bytes: &mut Vec<u8>) {
    // No cached value is anywhere near as long; one that were could not be decoded again.
    u32::try_from(length).unwrap_or(u32::MAX).put(bytes);
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Codec for $number {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
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
            fn put(&self, bytes: &mut Vec<u8>) {
                $(self.$field.put(bytes);)*
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Codec::take(bytes)?),* })
            }
        }
    )*};
}

macro_rules! choices {
    ($($name:ty { $($variant:ident)* })*) => {$(
        impl Codec for $name {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.push(*self as u8);
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let number = u8::take(bytes)?;
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
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        match u8::take(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Codec for usize {
    fn put(&self, bytes: &mut Vec<u8>) {
        (*self as u64).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Self::try_from(u64::take(bytes)?).ok()
    }
}

impl Codec for Box<str> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_text(self, bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        text(bytes).map(Self::from)
    }
}

impl Codec for String {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_text(self, bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        text(bytes).map(Self::from)
    }
}

impl Codec for Cow<'static, str> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_text(self, bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        String::take(bytes).map(Self::Owned)
    }
}

impl Codec for PathBuf {
    fn put(&self, bytes: &mut Vec<u8>) {
        let own = self.as_os_str().as_bytes();
        put_length(own.len(), bytes);
        bytes.extend_from_slice(own);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let length = u32::take(bytes)? as usize;
        Some(OsString::from_vec(slice(bytes, length)?.to_vec()).into())
    }
}

impl Codec for SystemTime {
    fn put(&self, bytes: &mut Vec<u8>) {
        let since = self.duration_since(Self::UNIX_EPOCH).unwrap_or_default();
        (since.as_secs(), since.subsec_nanos()).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (seconds, nanoseconds) = <(u64, u32)>::take(bytes)?;
        // More would carry into the seconds, which may already be at their maximum.
        let is_part = nanoseconds < 1_000_000_000;
        is_part.then(|| Self::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds)))?
    }
}

impl Codec for [u8; 16] {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        slice(bytes, 16)?.try_into().ok()
    }
}

impl Codec for &'static Rule {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_text(self.code, bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        rule(text(bytes)?)
    }
}

impl Codec for AllowedTools {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Codec::take(bytes).map(Self)
    }
}

impl Codec for Range<usize> {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.start, self.end).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        <(usize, usize)>::take(bytes).map(|(start, end)| start..end)
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
        self.1.put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::take(bytes)?, B::take(bytes)?))
    }
}

impl<T: Codec> Codec for Option<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.is_some().put(bytes);
        self.iter().for_each(|it| it.put(bytes));
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        if bool::take(bytes)? { T::take(bytes).map(Some) } else { Some(None) }
    }
}

impl Codec for Box<Dialect> {
    fn put(&self, bytes: &mut Vec<u8>) {
        (**self).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Dialect::take(bytes).map(Self::new)
    }
}

impl<T: Codec> Codec for Box<[T]> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_list(self, bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Vec::take(bytes).map(Vec::into_boxed_slice)
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_list(self, bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        take_list(bytes, T::take)
    }
}

fn put_list<T: Codec>(list: &[T], bytes: &mut Vec<u8>) {
    put_length(list.len(), bytes);
    list.iter().for_each(|it| it.put(bytes));
}

fn take_list<T>(
    bytes: &mut &[u8],
    mut take: impl FnMut(&mut &[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let length = u32::take(bytes)? as usize;
    // A forged length must not allocate memory.
    let mut list = Vec::with_capacity(length.min(bytes.len()).min(16));
    for _ in 0..length {
        list.push(take(bytes)?);
    }
    Some(list)
}

impl Codec for Field<'static> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.key.put(bytes);
        self.value.put(bytes);
        self.line.put(bytes);
        self.key_span.put(bytes);
        self.span.put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        field(bytes, 0)
    }
}

impl Codec for Value<'static> {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Empty => bytes.push(0),
            Self::Scalar(Scalar { text, style }) => {
                bytes.push(1);
                text.put(bytes);
                style.put(bytes);
            }
            Self::List(items) => {
                bytes.push(2);
                items.put(bytes);
            }
            Self::Map(fields) => {
                bytes.push(3);
                fields.put(bytes);
            }
        }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        value(bytes, 0)
    }
}

fn field(bytes: &mut &[u8], depth: usize) -> Option<Field<'static>> {
    Some(Field {
        key: Codec::take(bytes)?,
        value: value(bytes, depth)?,
        line: Codec::take(bytes)?,
        key_span: Codec::take(bytes)?,
        span: Codec::take(bytes)?,
    })
}

fn value(bytes: &mut &[u8], depth: usize) -> Option<Value<'static>> {
    if depth > DEEPEST {
        return None;
    }
    Some(match u8::take(bytes)? {
        0 => Value::Empty,
        1 => Value::Scalar(Scalar { text: Codec::take(bytes)?, style: Codec::take(bytes)? }),
        2 => Value::List(take_list(bytes, |it| value(it, depth + 1))?),
        3 => Value::Map(take_list(bytes, |it| field(it, depth + 1))?),
        _ => return None,
    })
}
