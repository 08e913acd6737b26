//! The values of a template, as in Go.

use std::{ops::Deref, rc::Rc};

use serde_json::{Map, Value as Json};

use crate::literal::Number;

/// A value.
#[derive(Debug, Clone)]
pub(crate) struct Value<'v> {
    pub(crate) content: Content<'v>,
    /// Whether it is in an `interface {}`, as the items of lists and maps are. Go distinguishes
    /// such a nil from one that is not: only the first is a value.
    pub(crate) boxed: bool,
}

/// The value of a function call, or a message about its arguments.
pub(crate) type CallResult<'v> = Result<Value<'v>, String>;

/// The content of a value, by Go type.
#[derive(Debug, Clone)]
pub(crate) enum Content<'v> {
    Nil,
    Bool(bool),
    Int(i64),
    /// An integer that is too large for that.
    Uint(u64),
    /// A byte of a text.
    Byte(u8),
    Float(f64),
    Complex(f64, f64),
    Text(Text<'v>),
    List(List<'v>),
    Map(&'v Map<String, Json>),
}

/// A text, which in Go need not be UTF-8.
#[derive(Debug, Clone)]
pub(crate) enum Text<'v> {
    Given(&'v [u8]),
    Made(Rc<[u8]>),
}

/// A part of a list that, as in Go, can be extended again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'v> {
    /// The items from the start of the part to the end of the whole list.
    pub(crate) capacity: &'v [Json],
    pub(crate) length: usize,
}

impl<'v> Value<'v> {
    /// No value at all, such as that of a missing key.
    pub(crate) const NONE: Self = Self { content: Content::Nil, boxed: false };

    /// A nil in a list or map.
    pub(crate) const HELD_NIL: Self = Self { content: Content::Nil, boxed: true };

    /// Returns a value of a list or map.
    pub(crate) fn element(json: &'v Json) -> Self {
        Self { content: Content::of(json), boxed: true }
    }

    pub(crate) fn from_text(text: impl Into<Rc<[u8]>>) -> Self {
        Content::Text(Text::Made(text.into())).into()
    }

    /// Returns the value without the interface around it.
    pub(crate) fn unbox(self) -> Self {
        Self { boxed: false, ..self }
    }

    pub(crate) fn is_none(&self) -> bool {
        !self.boxed && self.content.is_nil()
    }

    /// Returns its type, as Go writes it.
    pub(crate) fn type_name(&self) -> &'static str {
        if self.boxed { "interface {}" } else { self.content.type_name() }
    }
}

impl<'v> From<Content<'v>> for Value<'v> {
    fn from(content: Content<'v>) -> Self {
        Self { content, boxed: false }
    }
}

impl<'v> Content<'v> {
    pub(crate) fn of(json: &'v Json) -> Self {
        match json {
            Json::Null => Self::Nil,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Int(number),
                (None, Some(number)) => Self::Uint(number),
                (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(Text::Given(text.as_bytes())),
            Json::Array(items) => Self::List(List { capacity: items, length: items.len() }),
            Json::Object(map) => Self::Map(map),
        }
    }

    /// Returns the value of a number literal; `None` if it is too large for an `int`.
    pub(crate) fn of_number(number: Number) -> Option<Self> {
        match number {
            Number::Int(number) => Some(Self::Int(number)),
            Number::Float(number) => Some(Self::Float(number)),
            Number::Complex(real, imaginary) => Some(Self::Complex(real, imaginary)),
            Number::TooLarge => None,
        }
    }

    /// Returns an integer of any type.
    pub(crate) fn whole(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some(i128::from(*number)),
            Self::Uint(number) => Some(i128::from(*number)),
            Self::Byte(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// Whether it counts as true: anything but zero, nil and empty values.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(number) => *number != 0,
            Self::Uint(number) => *number != 0,
            Self::Byte(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => list.length > 0,
            Self::Map(map) => !map.is_empty(),
        }
    }

    /// Returns its type, as Go writes it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::Text(_) => "string",
            Self::List(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
        }
    }
}

impl<'v> List<'v> {
    pub(crate) fn items(self) -> &'v [Json] {
        &self.capacity[..self.length]
    }
}

impl Deref for Text<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Given(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

/// Returns the items of a map, sorted by key.
pub(crate) fn sort_items(map: &Map<String, Json>) -> Vec<(&str, &Json)> {
    let mut entries: Vec<(&str, &Json)> = map.iter().map(|(key, value)| (&**key, value)).collect();
    entries.sort_unstable_by_key(|it| it.0);
    entries
}
