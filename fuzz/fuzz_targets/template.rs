//! Any template renders or fails, within its limits, the same each time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess_template::{Template, TemplateLimits};
use serde_json::{Value, json};

fuzz_target!(|text: &str| {
    let (data, text) = text.split_once('\n').unwrap_or(("", text));
    let data: Value = serde_json::from_str(data)
        .unwrap_or_else(|_| json!({"a": [1, "x", null, {"b": 2.5}], "m": {"k": true}, "s": "é"}));
    let Ok(template) = Template::parse(text) else { return };
    let limits = TemplateLimits { output: 1 << 14, steps: 1 << 16 };
    let once = template.render_within(limits, &data);
    assert!(once.as_ref().map_or(0, |it| it.len()) <= 3 * limits.output);
    assert_eq!(once, template.render_within(limits, &data));
});
