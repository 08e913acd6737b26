//! The items of a `range` loop.

use serde_json::Value as Json;

use crate::{
    format::format_for_error,
    tree::Branch,
    value::{Content, Text, Value, sort_items},
};

/// A loop that is being executed.
#[derive(Debug)]
pub(crate) struct Loop<'v> {
    pub(crate) branch: &'v Branch,
    /// The first operation of its body.
    pub(crate) body: usize,
    /// The number of variables when its body begins.
    pub(crate) variables: usize,
    items: Items<'v>,
    /// The number of items used so far.
    taken: usize,
}

#[derive(Debug)]
enum Items<'v> {
    Ints(i64),
    Bytes(u8),
    List(&'v [Json]),
    Map(Vec<(&'v str, &'v Json)>),
}

impl<'v> Loop<'v> {
    /// Creates a loop over a value; `None` if that is empty.
    pub(crate) fn new(
        value: &Content<'v>,
        branch: &'v Branch,
        body: usize,
        variables: usize,
    ) -> Result<Option<Self>, String> {
        let items = match value {
            Content::Int(_) | Content::Byte(_) if branch.pipe.variables.len() > 1 => {
                let value = format_for_error(value, 'v');
                return Err(format!("can't use {value} to iterate over more than one variable"));
            }
            Content::Int(count) => Items::Ints(*count),
            Content::Byte(count) => Items::Bytes(*count),
            Content::List(list) => Items::List(list.items()),
            Content::Map(map) => Items::Map(sort_items(map)),
            Content::Nil => return Ok(None),
            _ => return Err(format!("range can't iterate over {}", format_for_error(value, 'v'))),
        };
        let it = Self { branch, body, variables, items, taken: 0 };
        Ok((!it.is_over()).then_some(it))
    }

    /// Returns the next index or key, and its value.
    pub(crate) fn take(&mut self) -> Option<(Value<'v>, Value<'v>)> {
        if self.is_over() {
            return None;
        }
        let number = Content::Int(self.taken as i64).into();
        let pair = match &self.items {
            Items::Ints(_) => (Value::NONE, number),
            Items::Bytes(_) => (Value::NONE, Content::Byte(self.taken as u8).into()),
            Items::List(items) => (number, Value::element(&items[self.taken])),
            Items::Map(entries) => {
                let (key, value) = entries[self.taken];
                (Content::Text(Text::Given(key.as_bytes())).into(), Value::element(value))
            }
        };
        self.taken += 1;
        Some(pair)
    }

    fn is_over(&self) -> bool {
        match &self.items {
            Items::Ints(count) => self.taken as i64 >= *count,
            Items::Bytes(count) => self.taken >= usize::from(*count),
            Items::List(items) => self.taken >= items.len(),
            Items::Map(entries) => self.taken >= entries.len(),
        }
    }
}
