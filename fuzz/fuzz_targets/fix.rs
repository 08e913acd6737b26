//! A fix changes what its rule found and nothing else, and does not come undone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess::{FixedText, Profile, fix, parse};

fuzz_target!(|bytes: &[u8]| {
    for profile in [Profile::Lenient, Profile::Spec, Profile::Reference] {
        let FixedText { bytes: after, findings, .. } = fix(bytes, profile);
        assert_eq!(after == bytes, findings.is_empty());
        assert_eq!(fix(&after, profile).bytes, after);
        let (old, new) = (parse(bytes, None, profile), parse(&after, None, profile));
        let is_lines = findings.iter().any(|it| it.rule.code == "line-endings");
        let ends = |text: String| if is_lines { text.replace("\r\n", "\n") } else { text };
        assert_eq!(ends(old.instructions), new.instructions);
        let Some(old) = old.manifest else { continue };
        let new = new.manifest.expect("a skill is still one");
        assert_eq!((old.name, old.description), (new.name, new.description));
        assert_eq!((old.allowed_tools, old.tags), (new.allowed_tools, new.tags));
        assert_eq!((old.kind, old.status), (new.kind, new.status));
        assert_eq!(old.requires_approval, new.requires_approval);
    }
});
