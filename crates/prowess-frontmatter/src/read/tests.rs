//! Tests of the reader, alone and on the output of the writer.

use proptest::prelude::*;

use super::*;
use crate::write;

/// Returns the fields of `text` in one line each, or the error.
fn fields(text: &str) -> String {
    match read(text) {
        Ok(fields) => fields
            .iter()
            .map(|it| format!("{}={}", it.key, shown(&it.value)))
            .collect::<Vec<_>>()
            .join(" "),
        Err(UnsupportedYaml { line, what }) => format!("{line}: {what}"),
    }
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Empty => "-".to_owned(),
        Value::Scalar(it) => format!("{:?}", it.text),
        Value::List(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
        }
        Value::Map(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|it| format!("{}={}", it.key, shown(&it.value))).collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

#[test]
fn scalars_are_kept_as_written() {
    assert_eq!(
        fields("a: x y\nb: 1.10\nc:\nd: 'it''s'\ne: \"q\\n\\u00e9\"\n"),
        r#"a="x y" b="1.10" c=- d="it's" e="q\né""#
    );
    assert_eq!(
        fields("u: http://x/y#z\nt: a:b\nh: C# rocks # not this\n"),
        r#"u="http://x/y#z" t="a:b" h="C# rocks""#
    );
    assert_eq!(fields("e: \"\\ud83e\\udd9e\"\n"), "e=\"🦞\"");
}

#[test]
fn lists_come_in_two_spellings() {
    assert_eq!(fields("t: [a, 'b, c', \"d\"]\n"), r#"t=["a","b, c","d"]"#);
    assert_eq!(
        fields("t:\n  - a\n  - b c\nu:\n- x\n- y\nv: []\n"),
        r#"t=["a","b c"] u=["x","y"] v=[]"#
    );
    assert_eq!(fields("t: [\n  a,\n  b,\n  ]\n"), r#"t=["a","b"]"#);
}

#[test]
fn maps_nest() {
    assert_eq!(fields("m:\n  a: 1\n  b:\n    c: [x]\nn: 2\n"), r#"m={a="1",b={c=["x"]}} n="2""#);
    assert_eq!(fields("m: {\"a\":1, b: {c: d}}\n"), r#"m={a="1",b={c="d"}}"#);
    assert_eq!(fields("l:\n  - n: a\n    v: 1\n  - n: b\n"), r#"l=[{n="a",v="1"},{n="b"}]"#);
    assert_eq!(fields("m:\n  {\n    \"a\": [\"x\"],\n  }\nz: 1\n"), r#"m={a=["x"]} z="1""#);
}

#[test]
fn block_scalars_fold_and_chomp() {
    assert_eq!(fields("d: |\n  a\n   b\n\n  c\n\nz: 1\n"), r#"d="a\n b\n\nc\n" z="1""#);
    assert_eq!(fields("d: >\n  a\n  b\n\n  c\n    d\n  e\n"), r#"d="a b\nc\n  d\ne\n""#);
    assert_eq!(
        fields("d: >-\n  a\n  b\ne: |+\n  x\n\nf: |2-\n   y\n"),
        r#"d="a b" e="x\n\n" f=" y""#
    );
    assert_eq!(fields("d: >- # why\n  a: b # no comment\n"), r#"d="a: b # no comment""#);
}

#[test]
fn values_go_on_over_lines() {
    assert_eq!(
        fields("d: a\n  b\n\n  c\ne: \"x\n  y\\\n  z\"\nf:\n  g h\n  i\n"),
        r#"d="a b\nc" e="x yz" f="g h i""#
    );
}

#[test]
fn comments_are_no_content() {
    assert_eq!(fields("# one\na: 1 # two\n\n  # three\nb:\n  # four\n  - x\n"), r#"a="1" b=["x"]"#);
}

#[test]
fn duplicate_keys_are_kept() {
    assert_eq!(fields("a: 1\na: 2\n"), r#"a="1" a="2""#);
}

#[test]
fn what_is_no_plain_yaml_is_refused_with_its_line() {
    assert_eq!(fields("a: 1\nb: use when: x\n"), "2: a colon inside a value without quotes");
    assert_eq!(fields("a: ends:\n"), "1: a colon inside a value without quotes");
    assert_eq!(fields("a: [BETA] x\n"), "1: text after the end of a value");
    assert_eq!(fields("a: @x\n"), "1: a value that begins with a YAML indicator");
    assert_eq!(fields("a: &x 1\n"), "1: a value that begins with a YAML indicator");
    assert_eq!(fields("a: *x\n"), "1: a value that begins with a YAML indicator");
    assert_eq!(fields("a:\n\tb: 1\n"), "2: a tab in the indentation");
    assert_eq!(fields("<<: x\n"), "1: a merge key");
    assert_eq!(fields("name:pdf\n"), "1: not a `key: value` line");
    assert_eq!(fields("a: \"\\d\"\n"), "1: an unclosed quote or an invalid escape in a value");
    assert_eq!(fields("a: > text\n"), "1: text after `|` or `>`");
    assert_eq!(fields("a: \0\n"), "1: a control character");
    assert_eq!(fields("a: x\n  # c\n  y\n"), "3: a comment inside a value of several lines");
    assert_eq!(fields("a:\n    b: 1\n  c: 2\n"), "3: indented deeper than its siblings");
    assert_eq!(fields(&format!("a: {}\n", "[".repeat(40))), "1: nested too deep");
}

#[test]
fn keys_that_mean_something_to_yaml_are_written_in_quotes() {
    for key in ["<<", "---", "--- a", "...", "...'", "", "a: b", "# c", "true", "- x", "? y"] {
        let text = write(&[Field::new(key, Value::from("v"))]);
        assert_eq!(fields(&text), format!("{key}=\"v\""), "{text}");
    }
}

#[test]
fn spans_are_what_was_written() {
    let text = "a:  x y  # c\n\"b\": [1,\n  2]\nl:\n  - p\n  - q\nd: |\n  t\n\nz:\n";
    let fields = read(text).unwrap();
    let spans: Vec<(&str, &str, usize)> = fields
        .iter()
        .map(|it| (&text[it.key_span.clone()], &text[it.span.clone()], it.line))
        .collect();
    assert_eq!(
        spans,
        [
            ("a", "x y", 1),
            ("\"b\"", "[1,\n  2]", 2),
            ("l", "- p\n  - q", 4),
            ("d", "|\n  t", 7),
            ("z", "", 10)
        ]
    );
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[ -~\n\t]{0,40}", "[a-z:#'\"\\-\\[\\]{}|>&*!%@ \n]{0,20}"]
}

fn values() -> impl Strategy<Value = Value<'static>> {
    let styles = prop_oneof![Just(Style::Plain), Just(Style::Quoted), Just(Style::Block)];
    let leaf = prop_oneof![
        Just(Value::Empty),
        (texts(), styles)
            .prop_map(|(text, style)| Value::Scalar(Scalar { text: text.into(), style })),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::vec((texts(), inner), 0..4).prop_map(|fields| Value::Map(
                fields.into_iter().map(|(key, value)| Field::new(key, value)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_written_reads_back(all in prop::collection::vec((texts(), values()), 0..5)) {
        let all: Vec<Field<'_>> = all.into_iter().map(|(key, value)| Field::new(key, value)).collect();
        prop_assume!(all.iter().all(|it| it.key.len() < 100 && short_keys(&it.value)));
        let text = write(&all);
        let back = read(&text).map_err(|it| TestCaseError::fail(format!("{it:?} in {text:?}")))?;
        let same = |a: &[Field<'_>], b: &[Field<'_>]| fields_text(a) == fields_text(b);
        prop_assert!(same(&all, &back), "{text:?}");
        prop_assert_eq!(write(&back), text);
    }

    #[test]
    fn reading_anything_is_safe(text in any::<String>()) {
        let _ = read(&text);
        let _ = crate::split(&text);
    }

    #[test]
    fn an_edit_touches_nothing_else(before in "(k[0-9]: [a-z ]{0,6}\n){0,3}", value in texts(), body in any::<String>()) {
        let text = format!("---\nkey: old # c\n{}---\n{body}", before.replace(": \n", ":\n"));
        let Ok(edited) = crate::set(&text, "key", &Value::from(value.as_str())) else { return Ok(()) };
        let document = crate::split(&edited);
        let fields = read(document.frontmatter.expect("it was there").text).expect("it was readable");
        prop_assert_eq!(fields[0].value.as_text(), Some(value.as_str()));
        prop_assert!(edited.ends_with(&text["---\nkey: old".len()..]));
    }
}

fn short_keys(value: &Value<'_>) -> bool {
    match value {
        Value::Map(fields) => fields.iter().all(|it| it.key.len() < 100 && short_keys(&it.value)),
        Value::List(items) => items.iter().all(short_keys),
        Value::Empty | Value::Scalar(_) => true,
    }
}

/// Formats everything except positions and styles.
fn fields_text(fields: &[Field<'_>]) -> String {
    fields.iter().map(|it| format!("{:?}={} ", it.key, shown(&it.value))).collect()
}
