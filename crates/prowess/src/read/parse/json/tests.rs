use super::*;

/// Returns the JSON of a frontmatter with these lines, or the error.
fn json(lines: &str) -> String {
    match frontmatter_json(format!("---\n{lines}\n---\n").as_bytes()) {
        Ok(map) => Json::Object(map).to_string(),
        Err(error) => error.to_string(),
    }
}

/// Returns the JSON of one value.
#[cfg(feature = "yaml")]
fn of(value: &str) -> String {
    let json = json(&format!("k: {value}"));
    let inner = json.strip_prefix(r#"{"k":"#).and_then(|it| it.strip_suffix('}'));
    inner.unwrap_or(&json).to_owned()
}

/// YAML scalars as written, and their JSON.
#[cfg(feature = "yaml")]
const SCALARS: &[(&str, &str)] = &[
    // Words.
    ("", "null"),
    ("~", "null"),
    ("null", "null"),
    ("Null", "null"),
    ("NULL", "null"),
    ("nULL", r#""nULL""#),
    ("true", "true"),
    ("False", "false"),
    ("TRUE", "true"),
    ("tRUE", r#""tRUE""#),
    ("yes", r#""yes""#),
    ("No", r#""No""#),
    ("on", r#""on""#),
    ("OFF", r#""OFF""#),
    ("y", r#""y""#),
    // Integers.
    ("0", "0"),
    ("-0", "0"),
    ("+12", "12"),
    ("-12", "-12"),
    ("007", "7"),
    ("0o17", "15"),
    ("0x1F", "31"),
    ("-0x1F", r#""-0x1F""#),
    ("0b11", r#""0b11""#),
    ("1_000", r#""1_000""#),
    ("9007199254740993", "9007199254740993"),
    ("18446744073709551615", "18446744073709551615"),
    ("-9223372036854775808", "-9223372036854775808"),
    ("18446744073709551616", "1.8446744073709552e+19"),
    ("0xFFFFFFFFFFFFFFFF", "18446744073709551615"),
    ("0x10000000000000000", "1.8446744073709552e+19"),
    // Other numbers.
    ("1.10", "1.1"),
    ("1.0", "1.0"),
    ("1.", "1.0"),
    (".5", "0.5"),
    ("1e3", "1000.0"),
    ("-1.5E-3", "-0.0015"),
    (".inf", "the number `.inf` in the frontmatter cannot be represented in JSON"),
    ("-.INF", "the number `-.INF` in the frontmatter cannot be represented in JSON"),
    (".nan", "the number `.nan` in the frontmatter cannot be represented in JSON"),
    ("1e400", "the number `1e400` in the frontmatter cannot be represented in JSON"),
    ("1.2.3", r#""1.2.3""#),
    ("12:30:45", r#""12:30:45""#),
    // Dates.
    ("2026-01-01", r#""2026-01-01""#),
    ("2026-01-01T10:00:00Z", r#""2026-01-01T10:00:00Z""#),
    ("2026-01-01 10:00:00", r#""2026-01-01 10:00:00""#),
    // Quoted values are text, and so are those that only begin like something else.
    ("'1.10'", r#""1.10""#),
    (r#""true""#, r#""true""#),
    ("''", r#""""#),
    (r#""a\tb\u00e9\x41""#, r#""a\tbéA""#),
    ("true story", r#""true story""#),
    ("a # comment", r#""a""#),
    ("a#b", r#""a#b""#),
    ("grüße 🎉", r#""grüße 🎉""#),
    // Collections.
    ("[]", "[]"),
    ("{}", "{}"),
    ("[a, 1, true, null, 2026-01-01]", r#"["a",1,true,null,"2026-01-01"]"#),
    ("{a: {b: [1.50, 'x']}}", r#"{"a":{"b":[1.5,"x"]}}"#),
    ("\n  - a\n  -\n  - b: 1\n    c: yes", r#"["a",null,{"b":1,"c":"yes"}]"#),
    // Text over lines.
    ("|\n  a\n   b\n\n", r#""a\n b\n""#),
    ("|-\n  a\n  b", r#""a\nb""#),
    ("|+\n  a\n\n", r#""a\n\n\n""#),
    (">\n  a\n  b\n\n  c", r#""a b\nc\n""#),
    ("|\n  true", r#""true\n""#),
    ("a\n  b\n\n  c", r#""a b\nc""#),
    // Constructs that readers treat differently.
    ("&x a", "line 1 of the frontmatter is not YAML: a value that begins with `&`"),
    ("*x", "line 1 of the frontmatter is not YAML: while parsing node, found unknown anchor"),
    ("[&x a, *x]", "line 1 of the frontmatter has an alias"),
    ("!!str 1", "line 1 of the frontmatter has a tag"),
    ("{<<: {a: 1}}", "line 1 of the frontmatter has a merge key"),
    ("{a: 1, b: 2, 'a': 3}", "the key `a` appears a second time in line 1 of the frontmatter"),
];

#[test]
#[cfg(feature = "yaml")]
fn scalars_and_collections_have_one_form() {
    let wrong = SCALARS.iter().map(|(written, expected)| (*written, of(written), *expected));
    let wrong: Vec<_> = wrong.filter(|(_, found, expected)| found != expected).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Wherever the small reader accepts a text, the YAML library alone gives the same result.
#[test]
#[cfg(feature = "yaml")]
fn both_readers_come_to_the_same_json() {
    let mut compared = 0;
    for (written, _) in SCALARS {
        let text = format!("k: {written}\n");
        let Ok(fields) = read(&text) else { continue };
        let library = yaml_fields(&text).unwrap();
        assert_eq!(map(&text, &fields), map(&text, &library), "{written}");
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn keys_are_text_in_the_order_written() {
    assert_eq!(json("b: 1\na: 2"), r#"{"b":1,"a":2}"#);
    assert_eq!(
        json("yes: a\n'true': b\n2026-01-01: c"),
        r#"{"yes":"a","true":"b","2026-01-01":"c"}"#
    );
    assert_eq!(json("'1.0': a\n\"~\": b"), r#"{"1.0":"a","~":"b"}"#);
    for key in
        ["1", "true", "1.0", "1e3", "0x1F", "007", "+1", "True", "null", "~", ".inf", "__proto__"]
    {
        let expected = format!(
            "the key `{key}` in line 2 of the frontmatter is not a string in every YAML reader"
        );
        assert_eq!(json(&format!("a: {{b: c}}\n{key}: d")), expected);
        assert_eq!(json(&format!("a:\n  {key}: d")), expected);
    }
    assert_eq!(
        json("a: 1\nb:\n  c: 1\n  c: 2"),
        "the key `c` appears a second time in line 4 of the frontmatter"
    );
    assert_eq!(
        json("a: 1\n'a': 2"),
        "the key `a` appears a second time in line 2 of the frontmatter"
    );
}

#[test]
#[cfg(feature = "yaml")]
fn nothing_is_repaired() {
    assert!(json("description: Use when: asked").starts_with("line 1 of the frontmatter is not"));
    assert_eq!(json("- a\n- b"), "the frontmatter is not a map of `key: value` lines");
}

#[test]
fn only_what_every_reader_finds_is_a_frontmatter() {
    let error = |bytes: &[u8]| frontmatter_json(bytes).unwrap_err();
    assert_eq!(error(b"\xEF\xBB\xBF---\na: 1\n---\n"), FrontmatterError::Encoding);
    assert_eq!(error(b"\xFF\xFE-\0-\0-\0\n\0a\0"), FrontmatterError::Encoding);
    assert_eq!(error(b"---\na: \xFF\n---\n"), FrontmatterError::Encoding);
    assert_eq!(error(b"---\na: 1\n---\nbody \xFF\n"), FrontmatterError::Encoding);
    for text in [
        "",
        "a: 1\n",
        "---\na: 1\n",
        "\n---\na: 1\n---\n",
        " ---\na: 1\n---\n",
        "--- \na: 1\n---\n",
        "---\na: 1\n--- \n",
        "---\na: 1\n...\n",
        "---\na: 1\n----\n",
        "---\ra: 1\r---\r",
        "---\r\na: 1\rb: 2\r\n---\r\n",
    ] {
        assert_eq!(error(text.as_bytes()), FrontmatterError::Delimiters, "{text:?}");
    }
    assert_eq!(json("a: 1").len(), frontmatter_json(b"---\r\na: 1\r\n---\r\n").unwrap().len() + 6);
    let long = format!("---\na: {}\n---\n", "x".repeat(MAX_FRONTMATTER));
    assert_eq!(error(long.as_bytes()), FrontmatterError::TooLarge);
}

#[test]
#[cfg(feature = "yaml")]
fn laughs_by_the_billion_stay_outside() {
    let mut lines = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, before) in ["b", "c", "d", "e", "f", "g", "h"].iter().zip("abcdefg".chars()) {
        let aliases = vec![format!("*{before}"); 9].join(", ");
        lines.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    assert_eq!(json(&lines), "line 2 of the frontmatter has an alias");
    let deep = format!("a: {}{}", "[".repeat(1000), "]".repeat(1000));
    assert_eq!(json(&deep), "line 1 of the frontmatter has values nested too deep");
}
