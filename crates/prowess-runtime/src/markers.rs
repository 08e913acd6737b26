//! The markers of a session, and what goes between them.

use std::{
    borrow::Cow,
    hash::{BuildHasher as _, RandomState},
};

use prowess::{Marker, visible, without_invisible};
use serde_json::Value;

/// Letters that spell no words.
const LETTERS: &[u8; 20] = b"bcdfghjkmnpqrstvwxyz";
/// How many of them a code has: about 43 bits.
const LENGTH: usize = 10;

/// A marker whose code nobody can guess, for one session.
pub fn fresh_marker() -> Marker {
    // The system seeds it, and its output says nothing of the seed.
    let mut random = RandomState::new().hash_one(std::process::id());
    let mut code = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        let letter = random % LETTERS.len() as u64;
        random /= LETTERS.len() as u64;
        code.push(char::from(LETTERS[letter as usize]));
    }
    Marker::new(&code).expect("ten letters are a code")
}

/// Leaves invisible characters out of every text of a value; line ends become `\n`.
pub fn make_visible(value: &mut Value) {
    change_texts(value, visible);
}

/// Leaves invisible characters out of every text of a value, and all else as it is.
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
