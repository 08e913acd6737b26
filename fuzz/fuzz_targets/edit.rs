//! An edit changes one key and nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess_frontmatter::{Field, Value, read, remove, rename, set, split};

fuzz_target!(|input: (&str, &str, &str)| {
    let (text, key, value) = input;
    let Some(before) = fields(text) else { return };
    if let Ok(edited) = set(text, key, &Value::from(value)) {
        let after = fields(&edited).expect("an edited text can be read");
        let set = after.iter().find(|it| it.0 == key).expect("the key is there");
        assert_eq!(set.1, format!("{value:?}"));
        assert_eq!(without(&before, key), without(&after, key));
        assert_eq!(split(text).body.text, split(&edited).body.text);
    }
    if let Ok(edited) = remove(text, key) {
        let after = fields(&edited).expect("an edited text can be read");
        assert_eq!(without(&before, key), after);
        assert_eq!(split(text).body.text, split(&edited).body.text);
    }
    if let Ok(edited) = rename(text, key, value) {
        let after = fields(&edited).expect("an edited text can be read");
        let renamed = |it: &(String, String)| if it.0 == key { (value.to_owned(), it.1.clone()) } else { it.clone() };
        assert_eq!(before.iter().map(renamed).collect::<Vec<_>>(), after);
    }
});

fn fields(text: &str) -> Option<Vec<(String, String)>> {
    let block = split(text).frontmatter?;
    let fields = read(block.text).ok()?;
    Some(fields.iter().map(|it| (it.key.to_string(), shown(&it.value))).collect())
}

fn without(fields: &[(String, String)], key: &str) -> Vec<(String, String)> {
    fields.iter().filter(|it| it.0 != key).cloned().collect()
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Empty => "-".to_owned(),
        Value::Scalar(scalar) => format!("{:?}", scalar.text),
        Value::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Map(fields) => {
            let one = |it: &Field<'_>| format!("{:?}={}", it.key, shown(&it.value));
            format!("{{{}}}", fields.iter().map(one).collect::<Vec<_>>().join(","))
        }
    }
}
