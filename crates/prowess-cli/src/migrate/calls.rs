//! Tool calls of the old format, in which a model wrote `name:「始」value「末」` between two marks.

use serde_json::{Map, Value as Json};

/// The marks around a call.
const MARKS: (&str, &str) = ("<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>");
/// The marks around a value.
const QUOTES: (&str, &str) = ("「始」", "「末」");

/// A piece of a text.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'t> {
    /// Text that is not a call.
    Text(&'t str),
    /// The arguments of a call, by name.
    Call(Map<String, Json>),
}

/// Splits a text into calls and the text around them. A call without an end is text.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(MARKS.0) {
        let Some((call, behind)) = behind.split_once(MARKS.1) else { break };
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Call(values(call)));
        rest = behind;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// Returns the arguments of a call, without the one that names the plugin.
fn values(call: &str) -> Map<String, Json> {
    let mut values = Map::new();
    let mut rest = call;
    while let Some((name, behind)) = rest.split_once(QUOTES.0) {
        let (value, behind) = behind.split_once(QUOTES.1).unwrap_or((behind, ""));
        let name = name.trim().trim_start_matches(',').trim().trim_end_matches([':', '：']).trim();
        if !name.is_empty() && name != "tool_name" {
            values.insert(name.to_owned(), Json::from(value));
        }
        rest = behind;
    }
    values
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_becomes_what_it_gives() {
        let text = "Use:<<<[TOOL_REQUEST]>>>\ntool_name:「始」Calc「末」,\nexpression:「始」1 + 1「末」\n<<<[END_TOOL_REQUEST]>>> then";
        let Json::Object(call) = json!({ "expression": "1 + 1" }) else { panic!("no object") };
        assert_eq!(pieces(text), [Piece::Text("Use:"), Piece::Call(call), Piece::Text(" then")]);
    }

    #[test]
    fn a_call_that_never_ends_is_text() {
        for text in ["", "<<<[TOOL_REQUEST]>>> a:「始」b", "「始」「末」"] {
            assert_eq!(pieces(text), [Piece::Text(text)]);
        }
    }
}
