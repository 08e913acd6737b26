//! Parses JSON and refuses duplicate names in an object, which are ambiguous.

use std::{collections::BTreeSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// Parses JSON. An object with a duplicate name, at any depth, is an error: one value might be
/// checked and the other one used.
pub fn strict_json(text: &str) -> Result<Value, serde_json::Error> {
    let value = serde_json::from_str(text)?;
    serde_json::from_str(text).map(|Unique| value)
}

/// JSON without duplicate names in an object.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        while items.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Unique, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if names.contains(&name) {
                return Err(de::Error::custom(format!("`{name}` appears twice")));
            }
            names.insert(name);
            members.next_value::<Unique>()?;
        }
        Ok(Unique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_names_in_an_object_are_refused_at_any_depth() {
        for text in ["null", "[1, -2, 0.5, true, \"x\"]", r#"{"a": {"b": 1}, "b": {"a": [{}]}}"#] {
            let value: Value = serde_json::from_str(text).expect("it is JSON");
            assert_eq!(strict_json(text).expect("no name is a duplicate"), value);
        }
        for text in [r#"{"a": 1, "a": 1}"#, r#"[0, {"x": [{"a": 1, "\u0061": 2}]}]"#] {
            let error = strict_json(text).expect_err("`a` is a duplicate");
            assert!(error.to_string().starts_with("`a` appears twice"), "{error}");
        }
        assert!(strict_json(&("[".repeat(100_000) + &"]".repeat(100_000))).is_err());
    }
}
