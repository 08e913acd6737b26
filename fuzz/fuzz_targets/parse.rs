//! Parsing and checking any bytes is safe in every profile, and rendering is stable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess::{Profile, check_text, definition, parameters, parse, render};

fuzz_target!(|bytes: &[u8]| {
    for profile in [Profile::Lenient, Profile::Spec, Profile::Reference] {
        let parsed = parse(bytes, Some("folder"), profile);
        check_text(bytes, Some("folder"), profile);
        let Some(manifest) = parsed.manifest else {
            assert!(!parsed.findings.is_empty(), "nothing is dropped silently");
            continue;
        };
        let _ = definition(manifest.kind, &parsed.instructions);
        let _ = parameters(&parsed.instructions);
        let once = render(&manifest, &parsed.instructions);
        let again = parse(once.as_bytes(), Some("folder"), profile);
        let manifest = again.manifest.expect("what was rendered is a skill");
        assert_eq!(render(&manifest, &again.instructions), once);
    }
});
