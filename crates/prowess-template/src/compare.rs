//! The comparison functions.

use std::cmp::Ordering;

use crate::{
    format::format_for_error,
    value::{CallResult, Content, Value},
};

/// Whether the first value equals any of the others.
pub(crate) fn eq<'v>(values: &[Value<'v>]) -> CallResult<'v> {
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

pub(crate) fn ne<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    let equal = equal(&values[0].content, &values[1].content)?;
    Ok(Content::Bool(!equal).into())
}

pub(crate) fn lt<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    Ok(Content::Bool(less(values)?).into())
}

pub(crate) fn le<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    let at_most = less(values)? || equal(&values[0].content, &values[1].content)?;
    Ok(Content::Bool(at_most).into())
}

pub(crate) fn gt<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    let at_most = less(values)? || equal(&values[0].content, &values[1].content)?;
    Ok(Content::Bool(!at_most).into())
}

pub(crate) fn ge<'v>(values: &[Value<'v>]) -> CallResult<'v> {
    Ok(Content::Bool(!less(values)?).into())
}

fn equal(one: &Content<'_>, other: &Content<'_>) -> Result<bool, String> {
    use Content::{Bool, Complex, Float, List, Map, Nil, Text};
    Ok(match (one, other) {
        (Nil, Nil) => true,
        (Nil, _) | (_, Nil) => false,
        (Bool(one), Bool(other)) => one == other,
        (Float(one), Float(other)) => one == other,
        (Complex(a, b), Complex(c, d)) => (a, b) == (c, d),
        (Text(one), Text(other)) => **one == **other,
        (List(_), List(_)) | (Map(_), Map(_)) => {
            return Err(format!(
                "non-comparable type {}: {}",
                format_for_error(other, 's'),
                other.type_name()
            ));
        }
        (List(_), Map(_)) | (Map(_), List(_)) => {
            let (name, other_name) = (one.type_name(), other.type_name());
            let (one, other) = (format_for_error(one, 's'), format_for_error(other, 'v'));
            return Err(format!("non-comparable types {one}: {name}, {other_name}: {other}"));
        }
        _ => compare_whole(one, other)?.is_eq(),
    })
}

fn less(values: &[Value<'_>]) -> Result<bool, String> {
    use Content::{Bool, Complex, Float, List, Map, Nil, Text};
    let (one, other) = (&values[0].content, &values[1].content);
    Ok(match (one, other) {
        (Nil | List(_) | Map(_), _)
        | (_, Nil | List(_) | Map(_))
        | (Bool(_), Bool(_))
        | (Complex(..), Complex(..)) => return Err("invalid type for comparison".into()),
        (Float(one), Float(other)) => one < other,
        (Text(one), Text(other)) => **one < **other,
        _ => compare_whole(one, other)?.is_lt(),
    })
}

/// Compares two integers; values of other types cannot be compared.
fn compare_whole(one: &Content<'_>, other: &Content<'_>) -> Result<Ordering, String> {
    match (one.whole(), other.whole()) {
        (Some(one), Some(other)) => Ok(one.cmp(&other)),
        _ => {
            let (one, other) = (one.type_name(), other.type_name());
            Err(format!("incompatible types for comparison: {one} and {other}"))
        }
    }
}
