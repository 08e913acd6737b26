//! The functions that every template knows.

use std::cmp::Ordering;

use super::{
    format::{Flags, Writer},
    printf::{print, printf, println},
    unicode::{Rune, is_print, runes},
    value::{Content, List, Text, Value},
};

/// A function of the language, with the shape of its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// How many arguments it needs.
    pub(super) needs: usize,
    /// Whether it takes more than it needs.
    pub(super) variadic: bool,
    /// Whether it reads the texts that it is given from end to end.
    pub(super) reads: bool,
    pub(super) body: Body,
}

/// What a function does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Body {
    /// Gives the first argument that is true or false as asked for, and evaluates no other.
    First(bool),
    /// Says that nothing here can be called.
    Call,
    /// Makes a value of values.
    Value(for<'v> fn(&[Value<'v>]) -> Result<Value<'v>, String>),
    /// Makes a text.
    Text(fn(&mut Writer, &[&Content<'_>])),
    /// Makes a text by the format that comes first.
    Format,
}

const FUNCTIONS: &[Function] = &[
    Function::new("and", 1, true, Body::First(false)),
    Function::new("or", 1, true, Body::First(true)),
    Function::new("not", 1, false, Body::Value(not)),
    Function::new("len", 1, false, Body::Value(len)),
    Function::new("slice", 1, true, Body::Value(slice)),
    Function::new("index", 1, true, Body::Value(index)).reading(),
    Function::new("call", 1, true, Body::Call),
    Function::new("eq", 1, true, Body::Value(eq)).reading(),
    Function::new("ne", 2, false, Body::Value(ne)).reading(),
    Function::new("lt", 2, false, Body::Value(lt)).reading(),
    Function::new("le", 2, false, Body::Value(le)).reading(),
    Function::new("gt", 2, false, Body::Value(gt)).reading(),
    Function::new("ge", 2, false, Body::Value(ge)).reading(),
    Function::new("print", 0, true, Body::Text(print)).reading(),
    Function::new("println", 0, true, Body::Text(println)).reading(),
    Function::new("printf", 1, true, Body::Format).reading(),
    Function::new("html", 0, true, Body::Text(html)).reading(),
    Function::new("js", 0, true, Body::Text(js)).reading(),
    Function::new("urlquery", 0, true, Body::Text(urlquery)).reading(),
];

impl Function {
    pub(super) fn find(name: &str) -> Option<Self> {
        FUNCTIONS.iter().find(|it| it.name == name).copied()
    }

    const fn new(name: &'static str, needs: usize, variadic: bool, body: Body) -> Self {
        Self { name, needs, variadic, reads: false, body }
    }

    const fn reading(self) -> Self {
        Self { reads: true, ..self }
    }

    /// Calls it on values whose number is right; a text that is made has at most `room` bytes.
    ///
    /// Nothing comes back when that is too little.
    pub(super) fn call<'v>(
        &self,
        values: &[Value<'v>],
        room: usize,
    ) -> Result<Option<Value<'v>>, String> {
        let mut writer = Writer::new(room);
        let contents: Vec<&Content<'_>> = values.iter().map(|it| &it.content).collect();
        match (self.body, contents.as_slice()) {
            (Body::Value(function), _) => return function(values).map(Some),
            (Body::Text(function), _) => function(&mut writer, &contents),
            (Body::Format, [Content::Text(format), rest @ ..]) => {
                printf(&mut writer, format, rest);
            }
            _ => return Err("call of nil".into()),
        }
        Ok((!writer.overflowed).then(|| Value::made(writer.into_bytes())))
    }
}

fn not<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    Ok(Content::Bool(!values[0].content.truth()).into())
}

fn len<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
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

fn index<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    let mut item = values[0].clone().unboxed();
    if item.is_none() {
        return Err("index of untyped nil".into());
    }
    for index in &values[1..] {
        item = match &item.content {
            Content::List(list) => {
                let at = position(&index.clone().unboxed(), list.length)?;
                let item = list.items().get(at);
                item.map(Value::held).ok_or("reflect: slice index out of range")?
            }
            Content::Text(text) => {
                let at = position(&index.clone().unboxed(), text.len())?;
                let byte = text.get(at).ok_or("reflect: string index out of range")?;
                Content::Byte(*byte).into()
            }
            Content::Map(map) => match &index.content {
                // A key that is no text is none of this map, which holds texts from JSON.
                Content::Text(key) => std::str::from_utf8(key)
                    .ok()
                    .and_then(|it| map.get(it))
                    .map_or_else(Value::held_nil, Value::held),
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

fn slice<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    let item = values[0].clone().unboxed();
    let indexes = &values[1..];
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
        Content::Text(text) => Value::made(&text[from..to]),
        Content::List(list) => {
            let capacity = &list.capacity[from..most];
            Content::List(List { capacity, length: to - from }).into()
        }
        content => content.into(),
    })
}

/// Takes a value as an index, up to and with the length.
fn position(index: &Value<'_>, length: usize) -> Result<usize, String> {
    let number = match index.content {
        Content::Int(number) if !index.boxed => number,
        Content::Byte(number) if !index.boxed => i64::from(number),
        _ if index.is_none() => return Err("cannot index slice/array with nil".into()),
        _ => return Err(format!("cannot index slice/array with type {}", index.type_name())),
    };
    usize::try_from(number)
        .ok()
        .filter(|it| *it <= length)
        .ok_or_else(|| format!("index out of range: {number}"))
}

fn eq<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    let (first, others) = (&values[0].content, &values[1..]);
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for other in others {
        if equal(first, &other.content)? {
            return Ok(Content::Bool(true).into());
        }
    }
    Ok(Content::Bool(false).into())
}

fn ne<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    truth(!equal(&values[0].content, &values[1].content)?)
}

fn lt<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    truth(less(values)?)
}

fn le<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    truth(less(values)? || equal(&values[0].content, &values[1].content)?)
}

fn gt<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    truth(!(less(values)? || equal(&values[0].content, &values[1].content)?))
}

fn ge<'v>(values: &[Value<'v>]) -> Result<Value<'v>, String> {
    truth(!less(values)?)
}

fn truth<'v>(truth: bool) -> Result<Value<'v>, String> {
    Ok(Content::Bool(truth).into())
}

fn equal(one: &Content<'_>, other: &Content<'_>) -> Result<bool, String> {
    Ok(match (one, other) {
        (Content::Nil, other) => other.is_nil(),
        (_, Content::Nil) => false,
        (Content::Bool(one), Content::Bool(other)) => one == other,
        (Content::Float(one), Content::Float(other)) => one == other,
        (Content::Complex(a, b), Content::Complex(c, d)) => (a, b) == (c, d),
        (Content::Text(one), Content::Text(other)) => **one == **other,
        (Content::List(_), Content::List(_)) | (Content::Map(_), Content::Map(_)) => {
            return Err(format!(
                "non-comparable type {}: {}",
                shown(other, 's'),
                other.type_name()
            ));
        }
        (Content::List(_), Content::Map(_)) | (Content::Map(_), Content::List(_)) => {
            let (name, other_name) = (one.type_name(), other.type_name());
            let (one, other) = (shown(one, 's'), shown(other, 'v'));
            return Err(format!("non-comparable types {one}: {name}, {other_name}: {other}"));
        }
        _ => compare_whole(one, other)?.is_eq(),
    })
}

fn less(values: &[Value<'_>]) -> Result<bool, String> {
    let (one, other) = (&values[0].content, &values[1].content);
    let composite =
        |it: &Content<'_>| matches!(it, Content::Nil | Content::List(_) | Content::Map(_));
    Ok(match (one, other) {
        _ if composite(one) || composite(other) => return Err(NO_ORDER.into()),
        (Content::Bool(_), Content::Bool(_)) => return Err(NO_ORDER.into()),
        (Content::Complex(..), Content::Complex(..)) => return Err(NO_ORDER.into()),
        (Content::Float(one), Content::Float(other)) => one < other,
        (Content::Text(one), Content::Text(other)) => **one < **other,
        _ => compare_whole(one, other)?.is_lt(),
    })
}

const NO_ORDER: &str = "invalid type for comparison";

/// Compares two whole numbers; whatever is left cannot be compared.
fn compare_whole(one: &Content<'_>, other: &Content<'_>) -> Result<Ordering, String> {
    let whole = |it: &Content<'_>| match it {
        Content::Int(number) => Some(*number),
        Content::Byte(number) => Some(i64::from(*number)),
        _ => None,
    };
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Ok(one.cmp(&other)),
        _ => {
            let (one, other) = (one.type_name(), other.type_name());
            Err(format!("incompatible types for comparison: {one} and {other}"))
        }
    }
}

/// A value as errors show it.
pub(super) fn shown(value: &Content<'_>, verb: char) -> String {
    /// More of it would help nobody.
    const ROOM: usize = 4096;
    let mut writer = Writer::new(ROOM);
    writer.argument(value, verb, Flags::default());
    super::unicode::lossy(&writer.into_bytes())
}

/// What something that is called comes to: there are no functions among JSON values.
pub(super) fn call(value: &Value<'_>, name: &str) -> String {
    if value.content.is_nil() {
        return "call of nil".into();
    }
    format!("non-function {name} of type {}", value.content.type_name())
}

/// How Go calls a value that came through a pipe.
pub(super) fn callee(value: &Value<'_>) -> String {
    match &value.content {
        Content::Text(text) => super::unicode::lossy(text),
        Content::Nil => "<invalid Value>".into(),
        content => format!("<{} Value>", content.type_name()),
    }
}

fn html(writer: &mut Writer, values: &[&Content<'_>]) {
    escape(writer, values, |writer, rune| match rune {
        Rune::Char('\0') => writer.push("\u{fffd}"),
        Rune::Char('"') => writer.push("&#34;"),
        Rune::Char('\'') => writer.push("&#39;"),
        Rune::Char('&') => writer.push("&amp;"),
        Rune::Char('<') => writer.push("&lt;"),
        Rune::Char('>') => writer.push("&gt;"),
        rune => writer.push(rune.bytes(&mut [0; 4])),
    });
}

fn js(writer: &mut Writer, values: &[&Content<'_>]) {
    escape(writer, values, |writer, rune| match rune {
        Rune::Char(c @ ('\\' | '\'' | '"')) => writer.push(format!("\\{c}")),
        Rune::Char(c @ ('<' | '>' | '&' | '=')) => writer.push(format!("\\u{:04X}", c as u32)),
        Rune::Char(c) if c != '\x7f' && !is_print(c) => {
            writer.push(format!("\\u{:04X}", c as u32));
        }
        rune => writer.push(rune.bytes(&mut [0; 4])),
    });
}

fn urlquery(writer: &mut Writer, values: &[&Content<'_>]) {
    escape(writer, values, |writer, rune| match rune {
        Rune::Char(' ') => writer.push("+"),
        Rune::Char(c) if c.is_ascii_alphanumeric() || "-_.~".contains(c) => {
            writer.push([c as u8]);
        }
        rune => {
            for byte in rune.bytes(&mut [0; 4]) {
                writer.push(format!("%{byte:02X}"));
            }
        }
    });
}

/// Prints values as an action would, and writes the text anew, character by character.
fn escape(writer: &mut Writer, values: &[&Content<'_>], write: fn(&mut Writer, Rune)) {
    let missing = Content::Text(Text::Given(b"<no value>"));
    let values: Vec<&Content<'_>> =
        values.iter().map(|it| if it.is_nil() { &missing } else { *it }).collect();
    let mut plain = Writer::new(writer.room());
    print(&mut plain, &values);
    writer.overflowed |= plain.overflowed;
    for rune in runes(&plain.into_bytes()) {
        if writer.overflowed {
            return;
        }
        write(writer, rune);
    }
}
