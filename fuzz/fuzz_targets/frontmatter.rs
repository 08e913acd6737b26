//! Splitting and reading any text is safe, and what is written reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess_frontmatter::{Field, Value, read, split, write};

fuzz_target!(|text: &str| {
    let document = split(text);
    let whole = document.frontmatter.map_or(0, |it| it.text.len()) + document.body.text.len();
    assert!(whole <= text.len());
    for block in [document.frontmatter.map(|it| it.text), Some(text)].into_iter().flatten() {
        let Ok(fields) = read(block) else { continue };
        for field in &fields {
            assert!(block.get(field.span.clone()).is_some() && block.get(field.key_span.clone()).is_some());
        }
        let written = write(&fields);
        let back = read(&written).expect("what was written can be read");
        assert_eq!(shown(&fields), shown(&back), "{written:?}");
        assert_eq!(write(&back), written);
    }
});

/// Everything but places and styles.
fn shown(fields: &[Field<'_>]) -> String {
    fields.iter().map(|it| format!("{:?}={} ", it.key, value(&it.value))).collect()
}

fn value(it: &Value<'_>) -> String {
    match it {
        Value::Empty => "-".to_owned(),
        Value::Scalar(scalar) => format!("{:?}", scalar.text),
        Value::List(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(",")),
        Value::Map(fields) => format!("{{{}}}", shown(fields)),
    }
}
