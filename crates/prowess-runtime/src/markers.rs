//! The markers of a session, and the sanitizing of text between them.

use std::{
    borrow::Cow,
    hash::{BuildHasher as _, RandomState},
};

use prowess::{Marker, visible, without_invisible};
use serde_json::Value;

/// Letters that do not form words.
const LETTERS: &[u8; 20] = b"bcdfghjkmnpqrstvwxyz";
/// The length of a code: about 43 bits.
const LENGTH: usize = 10;

/// Creates a marker with an unguessable code, for one session.
pub fn fresh_marker() -> Marker {
    // It is seeded by the system, and its output does not reveal the seed.
    let mut random = RandomState::new().hash_one(std::process::id());
    let mut code = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        let letter = random % LETTERS.len() as u64;
        random /= LETTERS.len() as u64;
        code.push(char::from(LETTERS[letter as usize]));
    }
    Marker::new(&code).expect("ten letters are a code")
}

/// Removes invisible characters from all strings of a value; line ends become `
/// `.
pub fn make_visible(value: &mut Value) {
    change_texts(value, visible);
}

/// Removes invisible characters from all strings of a value, and nothing else.
pub fn strip_invisible(value: &mut Value) {
    change_texts(value, without_invisible);
}

fn change_texts(value: &mut Value, change: fn(&str) -> Cow<'_, str>) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = change(text) {
                *text = clean;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|it| change_texts(it, change)),
        Value::Object(values) => values.values_mut().for_each(|it| change_texts(it, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_has_another_marker() {
        let markers: Vec<Marker> = (0..100).map(|_| fresh_marker()).collect();
        for (at, marker) in markers.iter().enumerate() {
            assert_eq!(marker.code().len(), LENGTH);
            assert!(!markers[..at].contains(marker), "{marker:?}");
        }
    }
}
