//! The built-in functions.

use crate::{
    compare::{eq, ge, gt, le, lt, ne},
    escape::{html, js, urlquery},
    format::Writer,
    printf::{print, printf, println},
    unicode::to_lossy,
    value::{CallResult, Content, List, Text, Value},
};

/// A built-in function, with its signature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// The number of required arguments.
    pub(crate) needs: usize,
    /// Whether it accepts more than the required arguments.
    pub(crate) variadic: bool,
    pub(crate) body: Body,
}

/// The implementation of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    /// Returns the first argument that is true, or false, and evaluates no other.
    First(bool),
    /// Fails: there are no functions among JSON values.
    Call,
    /// Computes a value from values.
    Value(for<'v> fn(&[Value<'v>]) -> CallResult<'v>),
    /// Computes a value from values, and reads the texts among them.
    Reading(for<'v> fn(&[Value<'v>]) -> CallResult<'v>),
    /// Writes a text.
    Text(fn(&mut Writer, &[&Content<'_>])),
    /// Writes a text by a format, which comes first.
    Format,
}

const FUNCTIONS: &[Function] = &[
    Function::of_many("and", 1, Body::First(false)),
    Function::of_many("or", 1, Body::First(true)),
    Function::of("not", 1, Body::Value(not)),
    Function::of("len", 1, Body::Value(len)),
    Function::of_many("index", 1, Body::Reading(index)),
    Function::of_many("slice", 1, Body::Value(slice)),
    Function::of_many("call", 1, Body::Call),
    Function::of_many("eq", 1, Body::Reading(eq)),
    Function::of("ne", 2, Body::Reading(ne)),
    Function::of("lt", 2, Body::Reading(lt)),
    Function::of("le", 2, Body::Reading(le)),
    Function::of("gt", 2, Body::Reading(gt)),
    Function::of("ge", 2, Body::Reading(ge)),
    Function::of_many("print", 0, Body::Text(print)),
    Function::of_many("println", 0, Body::Text(println)),
    Function::of_many("printf", 1, Body::Format),
    Function::of_many("html", 0, Body::Text(html)),
    Function::of_many("js", 0, Body::Text(js)),
    Function::of_many("urlquery", 0, Body::Text(urlquery)),
];

impl Function {
    pub(crate) fn find(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|it| it.name == name).copied()
    }

    const fn of(name: &'static str, needs: usize, body: Body) -> Self {
        Self { name, needs, variadic: false, body }
    }

    const fn of_many(name: &'static str, needs: usize, body: Body) -> Self {
        Self { name, needs, variadic: true, body }
    }

    /// Returns the number of bytes of text that it reads.
    pub(crate) fn reads(&self, values: &[Value<'_>]) -> usize {
        match self.body {
            Body::First(_) | Body::Call | Body::Value(_) => 0,
            Body::Reading(_) | Body::Text(_) | Body::Format => values
                .iter()
                .map(|it: &Value<'_>| match &it.content {
                    Content::Text(text) => text.len(),
                    _ => 0,
                })
                .sum(),
        }
    }
}

/// Creates a text of at most `room` bytes; `None` if that is too little.
pub(crate) fn text<'v>(room: usize, write: impl FnOnce(&mut Writer)) -> Option<Value<'v>> {
    let mut writer = Writer::new(room);
    write(&mut writer);
    (!writer.overflowed).then(|| Value::from_text(writer.into_bytes()))
}

/// Writes a text by a format.
pub(crate) fn format(writer: &mut Writer, values: &[&Content<'_>]) {
    if let [Content::Text(format), values @ ..] = values {
        printf(writer, format, values);
    }
}

/// Returns the error that a value cannot be called; `name` is its source.
pub(crate) fn uncallable(value: &Value<'_>, name: Option<String>) -> String {
    let type_name = value.content.type_name();
    match (&value.content, name) {
        (Content::Nil, _) => "call of nil".into(),
        (_, Some(name)) => format!("non-function {name} of type {type_name}"),
        (Content::Text(text), None) => format!("non-function {} of type string", to_lossy(text)),
        (_, None) => format!("non-function <{type_name} Value> of type {type_name}"),
    }
}

fn not<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    Ok(Content::Bool(!values[0].content.truth()).into())
}

fn len<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    let value = &values[0];
    let length = match &value.content {
        Content::Text(text) => text.len(),
        Content::List(list) => list.length,
        Content::Map(map) => map.len(),
        Content::Nil if value.boxed => return Err("len of nil pointer".into()),
        Content::Nil => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
        content => return Err(format!("len of type {}", content.type_name())),
    };
    Ok(Content::Int(length as i64).into())
}

fn index<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    let mut item = values[0].clone().unbox();
    if item.is_none() {
        return Err("index of untyped nil".into());
    }
    for index in &values[1..] {
        let index = index.clone().unbox();
        item = match &item.content {
            Content::List(list) => {
                let item = list.items().get(position(&index, list.length)?);
                item.map(Value::element).ok_or("reflect: slice index out of range")?
            }
            Content::Text(text) => {
                let byte = text.get(position(&index, text.len())?);
                Content::Byte(*byte.ok_or("reflect: string index out of range")?).into()
            }
            Content::Map(map) => match &index.content {
                // Keys come from JSON, so all of them are UTF-8.
                Content::Text(key) => std::str::from_utf8(key)
                    .ok()
                    .and_then(|it| map.get(it))
                    .map_or(Value::HELD_NIL, Value::element),
                Content::Nil => return Err("value is nil; should be of type string".into()),
                other => {
                    let name = other.type_name();
                    return Err(format!("value has type {name}; should be string"));
                }
            },
            Content::Nil => return Err("index of nil pointer".into()),
            content => return Err(format!("can't index item of type {}", content.type_name())),
        };
    }
    Ok(item)
}

fn slice<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    let (item, indexes) = (values[0].clone().unbox(), &values[1..]);
    if item.is_none() {
        return Err("slice of untyped nil".into());
    }
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()));
    }
    let (length, capacity) = match &item.content {
        Content::Text(_) if indexes.len() == 3 => {
            return Err("cannot 3-index slice a string".into());
        }
        Content::Text(text) => (text.len(), text.len()),
        Content::List(list) => (list.length, list.capacity.len()),
        content => return Err(format!("can't slice item of type {}", content.type_name())),
    };
    let mut bounds = [0, length, capacity];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, capacity)?;
    }
    let [from, to, most] = bounds;
    for (before, behind) in [(from, to), (to, most)] {
        if before > behind {
            return Err(format!("invalid slice index: {before} > {behind}"));
        }
    }
    Ok(match item.content {
        Content::Text(Text::Given(text)) => Content::Text(Text::Given(&text[from..to])).into(),
        Content::Text(text) => Value::from_text(&text[from..to]),
        Content::List(list) => {
            let capacity = &list.capacity[from..most];
            Content::List(List { capacity, length: to - from }).into()
        }
        content => content.into(),
    })
}

/// Converts a value to an index, up to and including the length.
fn position(index: &Value<'_>, length: usize) -> Result<usize, String> {
    let number = match index.content.whole() {
        Some(number) if !index.boxed => number,
        _ if index.is_none() => return Err("cannot index slice/array with nil".into()),
        _ => return Err(format!("cannot index slice/array with type {}", index.type_name())),
    };
    usize::try_from(number)
        .ok()
        .filter(|it| *it <= length)
        .ok_or_else(|| format!("index out of range: {number}"))
}
