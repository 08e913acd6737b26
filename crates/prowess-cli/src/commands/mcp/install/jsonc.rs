//! JSON with comments, edited in place: only the bytes of the entry change.

use std::{borrow::Cow, ops::Range};

use serde_json::{Map, Value as Json};

use super::Broken;

/// The greatest nesting depth.
const DEPTH: usize = 128;

/// Adds a server at a path of keys. If one with a command exists, only the fields that differ are
/// written, so that its other fields stay.
pub(super) fn put(text: &str, way: &[&str], entry: &Map<String, Json>) -> Result<String, Broken> {
    if text.trim().is_empty() {
        return Ok(format!("{}\n", format_multiline(&nest(way, entry.clone().into()), "", UNIT)));
    }
    let old = get(text, way)?;
    if old.as_ref().and_then(|it| it.get("command")).is_none() {
        return set(text, way, &Json::Object(entry.clone()));
    }
    entry.iter().try_fold(text.to_owned(), |text, (field, value)| {
        set(&text, &[way, &[field.as_str()]].concat(), value)
    })
}

/// Returns the value at a path of keys.
pub(super) fn get(text: &str, way: &[&str]) -> Result<Option<Json>, Broken> {
    let root = parse(text)?;
    let (node, rest) = descend(text, &root, way)?;
    Ok(rest.is_empty().then(|| node.value()))
}

/// Removes the value at a path of keys, with its comma.
pub(super) fn remove(text: &str, way: &[&str]) -> Result<String, Broken> {
    let [above @ .., name] = way else { return Ok(text.to_owned()) };
    let root = parse(text)?;
    // A duplicate key on the path is an error.
    descend(text, &root, way)?;
    let (node, []) = descend(text, &root, above)? else { return Ok(text.to_owned()) };
    let members = node.members();
    let Some(at) = members.iter().position(|it| it.name == *name) else {
        return Ok(text.to_owned());
    };
    let member = &members[at];
    let mut edits = Vec::new();
    if let (None, Some(before)) = (member.comma, at.checked_sub(1).map(|it| &members[it])) {
        edits.extend(before.comma.map(|it| (it..it + 1, String::new())));
    }
    let end = member.comma.map_or(member.value.span.end, |it| it + 1);
    let start = text[..member.start].trim_end_matches([' ', '\t']).len();
    let rest = text[end..].trim_start_matches([' ', '\t', '\r']);
    let is_alone = text[..start].ends_with('\n') && rest.starts_with('\n');
    let cut = if is_alone {
        start..text.len() - rest.len() + 1
    } else if at + 1 == members.len() {
        start..end
    } else {
        member.start..text.len() - text[end..].trim_start_matches([' ', '\t']).len()
    };
    edits.push((cut, String::new()));
    Ok(apply(text, edits))
}

/// Writes a value at a path of keys, and creates the objects on the way.
fn set(text: &str, way: &[&str], value: &Json) -> Result<String, Broken> {
    let root = parse(text)?;
    let (node, rest) = descend(text, &root, way)?;
    let edits = match rest {
        [] if node.value() == *value => Vec::new(),
        [] => {
            let start = node.span.start;
            let written = format_multiline(value, indentation(text, start), unit(text, &root));
            vec![(node.span.clone(), written)]
        }
        [name, inner @ ..] => {
            insert(text, node, unit(text, &root), name, &nest(inner, value.clone()))
        }
    };
    Ok(apply(text, edits))
}

/// Adds a member after the others of an object.
fn insert(
    text: &str,
    node: &Node,
    unit: &str,
    name: &str,
    value: &Json,
) -> Vec<(Range<usize>, String)> {
    let (open, close) = (node.span.start, node.span.end - 1);
    let name = Json::from(name);
    let last = node.members().last();
    if let Some(last) = last.filter(|_| !text[open..close].contains('\n')) {
        let (at, written) = match last.comma {
            Some(comma) => (comma + 1, format!(" {name}: {},", format_flat(value))),
            None => (last.value.span.end, format!(", {name}: {}", format_flat(value))),
        };
        return vec![(at..at, written)];
    }
    let outer = indentation(text, open);
    let indent =
        last.map_or_else(|| format!("{outer}{unit}"), |it| indentation(text, it.start).to_owned());
    let mut edits = Vec::new();
    let has_comma = last.is_some_and(|it| it.comma.is_some());
    if let Some(last) = last.filter(|_| !has_comma) {
        edits.push((last.value.span.end..last.value.span.end, ",".to_owned()));
    }
    let comma = if has_comma { "," } else { "" };
    let written = format!("\n{indent}{name}: {}{comma}", format_multiline(value, &indent, unit));
    // After the comments, before the white space in front of the brace.
    let end = text[..close].trim_end_matches([' ', '\t', '\r', '\n']).len();
    edits.push(match text[end..close].contains('\n') {
        true => (end..end, written),
        false => (end..close, format!("{written}\n{outer}")),
    });
    edits
}

/// Applies edits, which are in order; new lines end like those of the text.
fn apply(text: &str, edits: Vec<(Range<usize>, String)>) -> String {
    let is_crlf = text.contains("\r\n");
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (range, written) in edits {
        out.push_str(&text[at..range.start]);
        out.push_str(&if is_crlf {
            Cow::from(written.replace('\n', "\r\n"))
        } else {
            written.into()
        });
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Nests a value in objects, the outermost first.
fn nest(way: &[&str], value: Json) -> Json {
    let wrap =
        |value: Json, name: &&str| Json::Object(Map::from_iter([((*name).to_owned(), value)]));
    way.iter().rev().fold(value, wrap)
}

/// The indent if a file does not show one.
const UNIT: &str = "  ";

/// Returns the indent of a file.
fn unit<'t>(text: &'t str, root: &Node) -> &'t str {
    let first = root.members().first().map(|it| indentation(text, it.start));
    first.filter(|it| !it.is_empty()).unwrap_or(UNIT)
}

/// Returns the white space at the start of the line of an offset.
fn indentation(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |it| it + 1);
    let rest = &text[line..at];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

/// Formats a value with a line per member of an object.
fn format_multiline(value: &Json, indent: &str, unit: &str) -> String {
    let Json::Object(members) = value else { return format_flat(value) };
    let inner = format!("{indent}{unit}");
    let members = members.iter().map(|(name, value)| {
        format!("{inner}{}: {}", Json::from(name.as_str()), format_multiline(value, &inner, unit))
    });
    format!("{{\n{}\n{indent}}}", members.collect::<Vec<_>>().join(",\n"))
}

/// Formats a value on one line.
fn format_flat(value: &Json) -> String {
    match value {
        Json::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| {
                format!("{}: {}", Json::from(name.as_str()), format_flat(value))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Json::Array(items) => {
            format!("[{}]", items.iter().map(format_flat).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// A value and its place.
#[derive(Debug)]
struct Node {
    span: Range<usize>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar(Json),
}

#[derive(Debug)]
struct Member {
    start: usize,
    name: String,
    value: Node,
    /// The offset of the comma after it.
    comma: Option<usize>,
}

impl Node {
    fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            Kind::Array(_) | Kind::Scalar(_) => &[],
        }
    }

    fn value(&self) -> Json {
        match &self.kind {
            Kind::Object(members) => {
                members.iter().map(|it| (it.name.clone(), it.value.value())).collect()
            }
            Kind::Array(items) => items.iter().map(Self::value).collect(),
            Kind::Scalar(value) => value.clone(),
        }
    }
}

/// Follows a path of keys as far as it exists. Returns the last node, and the rest of the path.
fn descend<'n, 'w>(
    text: &str,
    mut node: &'n Node,
    mut way: &'w [&'w str],
) -> Result<(&'n Node, &'w [&'w str]), Broken> {
    while let [name, rest @ ..] = way {
        let Kind::Object(members) = &node.kind else {
            return Err(Broken::at(text, node.span.start, "expected an object"));
        };
        let mut named = members.iter().filter(|it| it.name == *name);
        match (named.next(), named.next()) {
            (None, _) => break,
            (Some(member), None) => (node, way) = (&member.value, rest),
            // Clients differ in which of them they use.
            (Some(_), Some(second)) => {
                return Err(Broken::at(text, second.start, format!("`{name}` appears twice")));
            }
        }
    }
    Ok((node, way))
}

fn parse(text: &str) -> Result<Node, Broken> {
    let mut parser = Parser { text, at: 0 };
    let root = parser.value(DEPTH)?;
    parser.skip_trivia()?;
    if parser.at < text.len() {
        return Err(parser.error_here("unexpected text after the value"));
    }
    Ok(root)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn value(&mut self, depth: usize) -> Result<Node, Broken> {
        self.skip_trivia()?;
        let start = self.at;
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.error_here("values are nested too deeply"));
        };
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Kind::Scalar(self.string()?.into()),
            _ => {
                let word = self.rest().len()
                    - self
                        .rest()
                        .trim_start_matches(|c: char| {
                            c.is_ascii_alphanumeric() || "+-.".contains(c)
                        })
                        .len();
                let value = serde_json::from_str(&self.rest()[..word]);
                let value = value.map_err(|_| self.error_here("expected a value"))?;
                self.at += word;
                Kind::Scalar(value)
            }
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Broken> {
        let mut members: Vec<Member> = Vec::new();
        self.at += 1;
        loop {
            self.skip_trivia()?;
            let start = self.at;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') if members.last().is_none_or(|it| it.comma.is_some()) => {}
                Some(b'"') => return Err(self.error_here("expected a comma before this")),
                _ => return Err(self.error_here("expected a name in quotes or `}`")),
            }
            let name = self.string()?;
            self.skip_trivia()?;
            if self.peek() != Some(b':') {
                return Err(self.error_here("expected `:`"));
            }
            self.at += 1;
            let value = self.value(depth)?;
            let comma = self.comma()?;
            members.push(Member { start, name, value, comma });
        }
        self.at += 1;
        Ok(Kind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Kind, Broken> {
        let mut items = Vec::new();
        let mut is_next = true;
        self.at += 1;
        loop {
            self.skip_trivia()?;
            match self.peek() {
                Some(b']') => break,
                _ if !is_next => return Err(self.error_here("expected a comma or `]`")),
                _ => items.push(self.value(depth)?),
            }
            is_next = self.comma()?.is_some();
        }
        self.at += 1;
        Ok(Kind::Array(items))
    }

    fn string(&mut self) -> Result<String, Broken> {
        let mut end = self.at + 1;
        let bytes = self.text.as_bytes();
        while bytes.get(end).is_some_and(|it| *it != b'"') {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let read = self.text.get(self.at..=end).map(serde_json::from_str);
        match read {
            Some(Ok(text)) => {
                self.at = end + 1;
                Ok(text)
            }
            _ => Err(self.error_here("this string is not terminated or not valid")),
        }
    }

    /// Skips a comma, and returns its offset.
    fn comma(&mut self) -> Result<Option<usize>, Broken> {
        let behind = self.at;
        self.skip_trivia()?;
        if self.peek() == Some(b',') {
            self.at += 1;
            return Ok(Some(self.at - 1));
        }
        self.at = behind;
        Ok(None)
    }

    /// Skips white space and comments.
    fn skip_trivia(&mut self) -> Result<(), Broken> {
        loop {
            let rest = self.rest().trim_start_matches([' ', '\t', '\r', '\n']);
            self.at = self.text.len() - rest.len();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end = rest
                    .find("*/")
                    .ok_or_else(|| self.error_here("this comment is not terminated"))?;
                self.at += end + 2;
            } else {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error_here(&self, what: &str) -> Broken {
        Broken::at(self.text, self.at, what)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> Map<String, Json> {
        json!({ "command": "/p", "args": ["mcp"] }).as_object().cloned().unwrap_or_default()
    }

    fn put_in(text: &str) -> String {
        put(text, &["s", "p"], &entry()).unwrap_or_else(|it| it.what)
    }

    #[test]
    fn a_server_is_put_in_as_the_file_is_written() {
        let flat = r#"{"command": "/p", "args": ["mcp"]}"#;
        assert_eq!(
            put_in("{\"s\": {\"a\": 1}}"),
            format!("{{\"s\": {{\"a\": 1, \"p\": {flat}}}}}")
        );
        assert_eq!(
            put_in("{\"s\": {\"a\": 1,}}"),
            format!("{{\"s\": {{\"a\": 1, \"p\": {flat},}}}}")
        );
        let lines = "\"p\": {\n\t\t\t\"command\": \"/p\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}";
        assert_eq!(
            put_in("{\n\t\"s\": {\n\t\t\"a\": 1 // one\n\t\t/* end */\n\t}\n}"),
            format!("{{\n\t\"s\": {{\n\t\t\"a\": 1, // one\n\t\t/* end */\n\t\t{lines}\n\t}}\n}}")
        );
        assert_eq!(
            put_in("{\n\t\"s\": {}, // none\n}\n"),
            format!("{{\n\t\"s\": {{\n\t\t{lines}\n\t}}, // none\n}}\n")
        );
        assert_eq!(put_in("{}"), put_in(" ").trim());
        assert_eq!(put_in("{ // all\n}"), format!("{{ // all\n{}", &put_in("")[2..].trim_end()));
    }

    #[test]
    fn what_is_put_in_comes_out_again() {
        for text in [
            "{\"s\": {\"a\": 1}}",
            "{\"s\": {\"a\": 1,}}",
            "{\n  \"s\": {\n    \"a\": 1 // one\n  }\n}\n",
            "{\r\n  \"s\": {\r\n    \"a\": {},\r\n    // end\r\n  }\r\n}\r\n",
        ] {
            let there = put_in(text);
            assert_eq!(put_in(&there), there);
            assert_eq!(remove(&there, &["s", "p"]).map_err(|it| it.what), Ok(text.to_owned()));
        }
        let first = remove("{\"p\": 1, \"a\": 2}", &["p"]).map_err(|it| it.what);
        assert_eq!(first, Ok("{\"a\": 2}".to_owned()));
    }

    #[test]
    fn whatever_it_reads_it_edits_right() {
        let way = ["s", "p"];
        let check = |text: &str| {
            if let Ok(there) = put(text, &way, &entry()) {
                let read = get(&there, &way).map_err(|it| it.what);
                let read = read.ok().flatten().unwrap_or_default();
                assert_eq!(read["command"], "/p", "{text:?} became {there:?}");
                let gone = remove(&there, &way).map_err(|it| it.what).unwrap_or_default();
                let read = get(&gone, &way).map_err(|it| it.what);
                assert_eq!(read, Ok(None), "{there:?} became {gone:?}");
            }
        };
        let text = "{\n// é\n\"s\": {\"a\\\"\": [1, -2.5e3, null, \"é\\u00e9\"], /* x */ \"p\": {\"command\": true,},\n\"b\":2 //\n,},}";
        assert!(get(text, &way).is_ok_and(|it| it.is_some()));
        check(text);
        for (at, c) in text.char_indices() {
            let rest = &text[at + c.len_utf8()..];
            check(&text[..at]);
            check(&format!("{}{rest}", &text[..at]));
            for other in ["\n", ",", "}", "\"", "//", "{}", "\r\n \t"] {
                check(&format!("{}{other}{rest}", &text[..at]));
                check(&format!("{}{other}{c}{rest}", &text[..at]));
            }
        }
        assert!(get(&"[".repeat(100_000), &["s"]).is_err());
        assert!(get(&"{\"a\":".repeat(100_000), &["s"]).is_err());
    }
}
